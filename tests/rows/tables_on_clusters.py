"""What every kind of table on a cluster must answer, for the tests of Spark and Ray."""

import warnings

import numpy as np
import pandas as pd
import pytest
from contracts import SEED, generator
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from mercer import (
    ClassicalMDS,
    DiffusionMap,
    HebbianKernelPCA,
    KernelCCA,
    KernelPCA,
    KernelPCASearch,
    NoveltyDetector,
    Nystroem,
    ProcessMonitor,
    SpectralClustering,
    SpectralEmbedding,
    StreamingKernelPCA,
    SupervisedKernelPCA,
)
from mercer.bases import Landmarks
from mercer.exceptions import InvalidRowsError, TableWarning
from mercer.files import open_source

N, COLUMNS = 263, ["a", "b", "weird `name`", "d"]
RNG = generator(5, SEED)
DTYPES = pytest.mark.parametrize("dtype", ["f8", pytest.param("f4", marks=pytest.mark.slow)])
X = np.sin(RNG.standard_normal((N, 2)) @ RNG.standard_normal((2, 4))) + 3.0


def drawn(dtype="f8", **columns):
    """The rows as a table, with text that tells them apart, and further columns."""
    table = pd.DataFrame(X.astype(dtype), columns=COLUMNS)
    return table.assign(text=[f"row {i}" for i in range(N)], **columns)


def pieces(table, count=5):
    """The table cut anywhere, into parts of which some are empty."""
    ends = np.sort(RNG.integers(0, len(table) + 1, count - 2))
    ends = np.sort([*ends, *ends[:1]])
    return [table.iloc[i:j] for i, j in zip([0, *ends], [*ends, len(table)], strict=True)]


def model(kind=KernelPCA, columns=4, **options):
    Z = X[:30, :columns]
    return kind(2, kernel="rbf", gamma=0.3, basis=Landmarks(points=Z), random_state=0, **options)


def check_scores(made, to_pandas, dtype):
    """Fit, scores, errors and the mean error are those of the array, beside all columns."""
    table, rows = made(pieces(drawn(dtype))), X.astype(dtype)
    here, there = model().fit(rows), model().fit(table)
    eigenvalues, scores, errors = (1e-12, 1e-9, 1e-9) if dtype == "f8" else (1e-4, 1e-3, 1e-4)
    assert_allclose(there.eigenvalues_, here.eigenvalues_, rtol=eigenvalues)
    assert list(there.feature_names_in_) == COLUMNS
    found = to_pandas(there.transform(table)).set_index("text")
    names = list(there.get_feature_names_out())
    assert list(found) == [*COLUMNS, *names] and len(found) == N
    found = found.loc[drawn()["text"]]
    S, wanted = (
        np.stack([np.asarray(found[name], dtype) for name in names], 1),
        here.transform(rows),
    )
    assert "float" in str(found[names[0]].dtype) or "double" in str(found[names[0]].dtype)
    assert_allclose(S * np.sign(np.sum(S * wanted, axis=0)), wanted, atol=scores)
    assert_allclose(found[COLUMNS].astype(dtype), rows, rtol=0)
    lost = to_pandas(there.reconstruction_error(table)).set_index("text")["errors"]
    lost = lost.loc[drawn()["text"]].astype(float)
    assert_allclose(lost, here.reconstruction_error(rows), atol=errors)
    assert there.score(table) == pytest.approx(here.score(rows), rel=1e-3)
    one = here.score(rows[:1])
    assert there.score(made([drawn(dtype)[:1]])) == pytest.approx(one, rel=1e-3)


def check_others(made, to_pandas):
    """What learns from a sample, from affinities and from distances, as of the array."""
    table, Z = made(pieces(drawn())), X[:30]
    given = {"gamma": 0.3, "basis": Landmarks(points=Z), "random_state": 0}
    search = {"noise": 0.6, "n_components": [2, 4], "widths": [1], "random_state": 0}
    fits = {
        "spectralclustering": SpectralClustering(2, **given),
        "spectralembedding": SpectralEmbedding(2, affinity="rbf", **given),
        "diffusionmap": DiffusionMap(2, **given),
        "classicalmds": ClassicalMDS(2, landmarks=N, random_state=0),
        "hebbiankernelpca": HebbianKernelPCA(2, kernel="rbf", n_passes=9, **given),
        "nystroem": Nystroem(n_components=5, gamma=0.3, random_state=0),
    }
    for name, here in fits.items():
        there = clone(here).fit(table)
        here.fit(X)
        if hasattr(here, "eigenvalues_"):
            rtol = 1e-3 if name == "hebbiankernelpca" else 1e-9
            assert_allclose(there.eigenvalues_, here.eigenvalues_, rtol=rtol)
        found = to_pandas(there.transform(table))
        assert len(found) == N and set(COLUMNS) < set(found), name
        if hasattr(here, "embedding_"):
            found = to_pandas(there.embedding_).set_index("text").loc[drawn()["text"]]
            Y = found.drop(columns=COLUMNS).to_numpy(float)
            assert_allclose(np.abs(Y), np.abs(here.embedding_), atol=1e-6)
    clusters = fits["spectralclustering"]
    there = clone(clusters).fit(table)
    for labels in (there.labels_, there.predict(table)):
        found = to_pandas(labels).set_index("text").loc[drawn()["text"]]["label"]
        assert found.dtype.kind == "i"
        assert adjusted_rand_score(found, clusters.labels_) == 1
    detector = NoveltyDetector(3, **given).fit(table)
    scores = to_pandas(detector.score_samples(table)).set_index("text")["score"]
    scores = scores.loc[drawn()["text"]].astype(float)
    assert_allclose(scores, detector.score_samples(X), atol=1e-9)
    assert 0.8 < np.mean(scores >= detector.offset_) <= 1
    for column, results in [("label", detector.predict), ("decision", detector.decision_function)]:
        found = to_pandas(results(table)).set_index("text")[column].loc[drawn()["text"]]
        wanted = results(X)
        assert found.dtype.kind == wanted.dtype.kind
        assert_allclose(found, wanted, atol=1e-9)
    inner = KernelPCA(basis=given["basis"], random_state=0)
    found = KernelPCASearch(model=inner, **search).fit(table)
    assert found.best_params_["n_components"] in (2, 4)
    assert len(to_pandas(found.transform(table))) == N


def check_columns(made, to_pandas):
    """Weights and targets are columns beside the rows, and no part of them."""
    w = RNG.integers(0, 4, N).astype(float)
    table = made(pieces(drawn(w=w)))
    here, there = model().fit(X, sample_weight=w), model().fit(table, sample_weight="w")
    assert_allclose(there.eigenvalues_, here.eigenvalues_, rtol=1e-11)
    assert there.n_features_in_ == 4 and len(there._weights) == N
    kept = {tuple(row): weight for row, weight in zip(X, w, strict=True)}
    assert_allclose(there._weights, [kept[tuple(row)] for row in there.X_sample_], rtol=0)
    labels = np.where(X[:, 0] > np.median(X[:, 0]), "up", "down")
    target = X @ RNG.standard_normal(4)
    for values in (labels, target):
        table = made(pieces(drawn(y=values, w=w)))
        here = model(SupervisedKernelPCA).fit(X, values, sample_weight=w)
        there = model(SupervisedKernelPCA).fit(table, y="y", sample_weight="w")
        assert_allclose(there.eigenvalues_, here.eigenvalues_, rtol=1e-9)
        assert there.target_ == here.target_
        assert "supervisedkernelpca0" in to_pandas(there.transform(table))
    rows = open_source(table, columns=COLUMNS)
    for name, weights in [(None, None), ("w", w)]:
        here = model(StreamingKernelPCA).fit(X, sample_weight=weights)
        there = model(StreamingKernelPCA).fit(rows, sample_weight=name)
        assert_allclose(there.eigenvalues_, here.eigenvalues_, rtol=1e-9)
    again = there.partial_fit(rows, sample_weight="w")
    assert_allclose(again.eigenvalues_, 2 * here.eigenvalues_, rtol=1e-9)
    assert again.n_samples_seen_ == 2 * here.n_samples_seen_


def check_bad_rows(made, to_pandas, place):
    """What is wrong with a row is said with its partition and its number there."""
    row = int(RNG.integers(0, N))
    table = drawn(w=np.zeros(N))
    for count in (0, 1):
        words = f"has {N} rows, and {count} with a weight above 0, while a minimum of 2"
        with pytest.raises(ValueError, match=words):
            model().fit(made(pieces(table)), sample_weight="w")
        table.loc[row, "w"] = 2.0
    cases = [("b", np.nan), ("d", np.inf), ("w", -1.0), ("w", np.nan), ("y", None)]
    for column, value in cases:
        table = drawn(w=np.ones(N), y=["u", "v", *["u"] * (N - 2)])
        table[column] = table[column].astype(object if column == "y" else float)
        table.loc[row, column] = value
        parts = pieces(table)
        last = np.cumsum([len(part) for part in parts])
        part = int(np.searchsorted(last, row, side="right"))
        number = row - int(last[part]) + len(parts[part])
        where = f"{place(part, parts)} of X.* holds .*column '?{column}'?"
        words = f"(?s)^(?=.*row {number:,} ).*{where}"
        fitted = model(SupervisedKernelPCA)
        with pytest.raises(InvalidRowsError, match=words) as caught:
            fitted.fit(made(parts), y="y", sample_weight="w")
        assert "java" not in str(caught.value).lower()
        if column == "b":
            scored = model().fit(X).transform(open_source(made(parts), columns=COLUMNS))
            with pytest.raises(Exception, match=words):
                to_pandas(scored)


def check_choice(made):
    """Keys are told of, and columns are chosen by name, of new rows too."""
    numbers = RNG.permutation(N).astype(np.int64)
    table = made([drawn(row_id=numbers, count=numbers + 7, few=numbers % 3)])
    with pytest.warns(TableWarning) as caught:
        KernelPCA(2, kernel="rbf", gamma=0.3, basis=Landmarks(20)).fit(table)
    said = " ".join(str(warning.message) for warning in caught)
    assert "'row_id'" in said and "'count'" in said and "'few'" not in said
    with warnings.catch_warnings():
        warnings.simplefilter("error", TableWarning)
        chosen = model().fit(open_source(table, columns=COLUMNS))
    assert_allclose(chosen.eigenvalues_, model().fit(X).eigenvalues_, rtol=1e-12)
    assert chosen.score(table) == pytest.approx(chosen.score(X), rel=1e-9)
    with pytest.raises(ValueError, match="no column 'nothing'; its columns are 'a', 'b'"):
        model().fit(open_source(table, columns=["a", "nothing"]))
    with pytest.raises(ValueError, match="'text' is not made of numbers"):
        model().fit(open_source(table, columns=["a", "text"]))
    with pytest.raises(ValueError, match="no column 'd'"):
        chosen.transform(made([drawn().drop(columns="d")]))
    with pytest.raises(ValueError, match="has columns 'kernelpca0' already"):
        chosen.transform(made([drawn(kernelpca0=np.ones(N))]))


def check_refusals(made):
    """What needs row numbers, or all rows in one place, is refused with what to do."""
    table = made(pieces(drawn()))
    ones = np.ones(N)
    refused = [
        (lambda: KernelPCA(2, basis="points").fit(table), "no order that lasts"),
        (lambda: model(checkpoint="nowhere").fit(table), "checkpoint= resumes after a row number"),
        (
            lambda: model().fit(table, sample_weight=ones),
            "sample_weight must be the name of a column",
        ),
        (lambda: model().fit(table, sample_weight="v"), "got 'v'. The columns are 'a'"),
        (
            lambda: model(SupervisedKernelPCA).fit(table, y=ones),
            "y must be the name of a column of X",
        ),
        (lambda: model(KernelCCA).fit(table, y="a"), "rows of a table on a cluster have no order"),
        (lambda: HebbianKernelPCA(2, basis="points").fit(table), "no order that lasts"),
        (lambda: ProcessMonitor(2).fit(table), "needs rows in the order of time in one place"),
        (lambda: model().fit(X).transform(table, out="s.npy"), "X is on a cluster. Leave it out"),
        (lambda: model().fit(X).report(table), "X is on a cluster. Pass a sample"),
        (lambda: model().fit(made([drawn()[:1]])), "1 rows, while a minimum of 2"),
        (lambda: model(device="cuda").fit(table), "device='cuda' is for arrays and Dask"),
    ]
    for call, words in refused:
        with pytest.raises(ValueError) as caught:
            call()
        assert words in str(caught.value), str(caught.value)
