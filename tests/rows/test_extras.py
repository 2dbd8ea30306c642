"""A target and weights come from wherever rows may come, and mean what the array would."""

import re

import numpy as np
import pytest
from contracts import SEED, generator
from numpy.testing import assert_allclose

from mercer import KernelCCA, KernelPCA, StreamingKernelPCA, SupervisedKernelPCA

N = 90
X = generator(7, SEED).standard_normal((N, 4))
RNG = generator(8, SEED)
TARGETS = {
    "labels": RNG.integers(0, 3, N),
    "words": np.array(["red", "green", "blue"])[RNG.integers(0, 3, N)],
    "numbers": RNG.standard_normal(N),
    "two columns": RNG.standard_normal((N, 2)),
    "weights": RNG.random(N) + 0.1,
}
CUT = int(RNG.integers(1, N - 1))


def frame_of(v, pandas):
    table = v.reshape(N, -1)
    return pandas.DataFrame(table, columns=[f"c{i}" for i in range(table.shape[1])])


def in_form(form, v, folder):
    """The values in one of the forms that rows may have."""
    pandas = pytest.importorskip("pandas")
    frame, path = frame_of(v, pandas), folder / f"v.{form}"
    if form in ("npy", "npz"):
        (np.save if form == "npy" else np.savez)(path, v)
        return path
    if form in ("csv", "csv.gz"):
        frame.to_csv(path, index=False)
        return str(path)
    if form == "blocks":
        return iter([v[:CUT], v[CUT:]])
    if form == "function":
        return lambda: iter([v[:CUT], v[CUT:]])
    if form == "dask":
        return pytest.importorskip("dask.array").from_array(v, chunks=(CUT, *v.shape[1:]))
    if form == "frame":
        return frame
    if form == "dask frame":
        return pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=3)
    arrow = pytest.importorskip("pyarrow")
    if form in ("parquet", "feather"):
        getattr(frame, f"to_{form}")(path)
        return path
    if form == "xlsx":
        pytest.importorskip("openpyxl")
        frame.to_excel(path, index=False)
        return path
    if form == "table":
        return arrow.Table.from_pandas(frame)
    if form == "lazy frame":
        return pytest.importorskip("polars").from_pandas(frame).lazy()
    return arrow.Table.from_pandas(frame).to_reader()


FORMS = ["npy", "npz", "csv", "csv.gz", "parquet", "feather", "xlsx", "blocks", "function"]
FORMS += ["dask", "dask frame", "frame", "table", "lazy frame", "reader"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("what", TARGETS)
def test_any_form_is_the_array(form, what, tmp_path):
    v = TARGETS[what]

    def values(given):
        if what == "weights":
            stream = StreamingKernelPCA(2, kernel="rbf", gamma=0.5)
            batches = [X[:CUT], X[CUT:]] if form == "npy" else X
            model = KernelPCA(2, kernel="rbf", gamma=0.5)
            if form in ("blocks", "reader"):  # which are read once
                return model.fit(X, sample_weight=given).eigenvalues_
            learned = stream.fit(batches, sample_weight=given).eigenvalues_
            return np.append(model.fit(X, sample_weight=given).eigenvalues_, learned)
        if what == "two columns":
            return KernelCCA(1).fit(X, given).correlations_
        return SupervisedKernelPCA(1, kernel="rbf", gamma=0.5).fit(X, given).eigenvalues_

    assert_allclose(values(in_form(form, v, tmp_path)), values(v), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", ["pandas", "csv", "parquet", "polars", "query", "dataset", "dask"])
def test_a_column_of_the_rows(kind, tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    rows = pandas.DataFrame(X, columns=list("abcd"))
    frame = rows.assign(y=TARGETS["labels"], w=TARGETS["weights"])
    frame = frame[list(generator(9, SEED).permutation(frame.columns))]
    path = tmp_path / f"rows.{kind}"
    if kind in ("csv", "parquet", "dataset"):
        frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    given = path
    if kind == "pandas":
        given = frame
    elif kind in ("polars", "query"):
        given = pytest.importorskip("polars").from_pandas(frame)
        given = given.lazy() if kind == "query" else given
    elif kind == "dataset":
        given = pytest.importorskip("pyarrow.dataset").dataset(path)
    elif kind == "dask":
        given = pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=3)
    ordered = rows[[name for name in frame.columns if name in "abcd"]]

    def model():
        return SupervisedKernelPCA(2, kernel="rbf", gamma=0.5, basis="landmarks", random_state=0)

    fitted = model().fit(given, "y", sample_weight="w")
    wanted = model().fit(ordered, TARGETS["labels"], sample_weight=TARGETS["weights"])
    assert list(fitted.feature_names_in_) == list(ordered.columns)
    assert_allclose(fitted.eigenvalues_, wanted.eigenvalues_, rtol=1e-9)
    scores = KernelPCA(2).fit_transform(given, sample_weight="w")
    assert np.shape(scores)[1] == 2
    with pytest.raises(ValueError, match=r"sample_weight='z' is no file, and no column of X"):
        KernelPCA(2).fit(given, sample_weight="z")


def test_what_cannot_stand_beside_rows(tmp_path):
    with pytest.raises(ValueError, match=r"y='no.csv' is no file, and no column of X\. Pass y as"):
        KernelCCA(1).fit(X, "no.csv")
    with pytest.raises(ValueError, match=re.escape("y gave no rows")):
        KernelCCA(1).fit(X, iter(()))
    masked = np.ma.array(TARGETS["weights"], mask=np.arange(N) == 3)
    with pytest.raises(ValueError, match="masked"):
        KernelPCA(1).fit(X, sample_weight=iter([masked]))
    large = (np.ones((1000, 9)) for _ in range(10**6))
    with pytest.raises(ValueError, match=r"y, which is needed as one array, .* memory allows 5"):
        KernelCCA(1, memory="20MB").fit(X, large)
    for weights in (TARGETS["weights"][1:], np.append(TARGETS["weights"], 1.0)):
        with pytest.raises(ValueError, match="a number for each of the"):
            StreamingKernelPCA(2).fit([X[:CUT], X[CUT:]], sample_weight=weights)
