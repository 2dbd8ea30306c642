"""Every estimator on every kind of rows: what NumPy gives, or a sentence that says what to use."""

import numpy as np
import pytest
import scipy.sparse
from contracts import generator
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

import mercer
from mercer import estimators
from mercer.bases import Landmarks
from mercer.selectors import Uniform

N = 4500
RNG = generator(77)
GROUP = RNG.integers(0, 3, N)
X = 0.6 * RNG.standard_normal((N, 3)) + np.array([(0, 0, 0), (2, 0, 0.5), (0, 2, 1)])[GROUP]
GIVEN = {"gamma": 0.3, "basis": Landmarks(points=X[:30]), "random_state": 0}
RBF = GIVEN | {"kernel": "rbf"}
# Of landmarks and rows alike the budget holds some, and of the rows less than all.
SMALL = "400KB"

ESTIMATORS = {
    "KernelPCA": lambda: mercer.KernelPCA(3, **RBF),
    "SupervisedKernelPCA": lambda: mercer.SupervisedKernelPCA(1, **RBF),
    "KernelCCA": lambda: mercer.KernelCCA(2, **RBF),
    "StreamingKernelPCA": lambda: mercer.StreamingKernelPCA(3, **RBF),
    "SpectralClustering": lambda: mercer.SpectralClustering(3, **GIVEN),
    "SpectralEmbedding": lambda: mercer.SpectralEmbedding(2, affinity="rbf", **GIVEN),
    "DiffusionMap": lambda: mercer.DiffusionMap(2, **GIVEN),
    "NoveltyDetector": lambda: mercer.NoveltyDetector(4, **GIVEN),
    "KernelPCASearch": lambda: mercer.KernelPCASearch(
        noise=0.6, n_components=[2, 4], widths=[1], random_state=0,
        model=mercer.KernelPCA(basis=GIVEN["basis"], random_state=0),
    ),
    "Nystroem": lambda: mercer.Nystroem(
        n_components=9, gamma=0.3, selector=Uniform(), random_state=0
    ),
    "ClassicalMDS": lambda: mercer.ClassicalMDS(2, landmarks=30, random_state=0),
    "Isomap": lambda: mercer.Isomap(2, landmarks=20, n_neighbors=12, random_state=0),
    "HebbianKernelPCA": lambda: mercer.HebbianKernelPCA(
        2, n_passes=2, **RBF
    ),
    "ProcessMonitor": lambda: mercer.ProcessMonitor(3, random_state=0),
}  # fmt: skip
BESIDE = {
    "SupervisedKernelPCA": {"y": X[:, 0] ** 2},
    "KernelCCA": {"y": np.sin(X)},
}
#: What works in one place alone, with what is said on a cluster and above the budget.
ONE_PLACE = {"Isomap", "ProcessMonitor"}
#: What learns from a sample, or finds centers on one, where the budget does not hold all rows.
SAMPLED = {"NoveltyDetector", "KernelPCASearch", "SpectralClustering", "Nystroem"}
#: Fits of few rows, since these take long.
SLOW = {"Isomap": 600, "ProcessMonitor": 600}


def parquet(X, folder):
    frame = pytest.importorskip("pandas").DataFrame(X, columns=list("abc"))
    pytest.importorskip("pyarrow")
    frame.to_parquet(folder / "rows.parquet", row_group_size=len(X) // 5)
    return folder / "rows.parquet"


def text(X, folder):
    np.savetxt(folder / "rows.csv", X, delimiter=",", header="a,b,c", comments="", fmt="%.17g")
    return folder / "rows.csv"


def dask(X, folder):
    return pytest.importorskip("dask.array").from_array(X, chunks=(len(X) // 4, 3))


KINDS = {
    "parquet": parquet,
    "parquet above the budget": parquet,
    "csv": text,
    "iterator": lambda X, folder: lambda: iter(np.array_split(X, 7)),
    "dask": dask,
}


def test_the_table_is_complete():
    of_images = {"PatchDenoiser"}
    kinds = {name for name in estimators.__all__ if isinstance(getattr(mercer, name), type)}
    assert kinds - of_images - set(ESTIMATORS) <= {"Selection"}


def facts(model):
    names = ("eigenvalues_", "offset_", "correlations_", "best_params_", "labels_", "components_")
    return {name: getattr(model, name) for name in names if hasattr(model, name)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_fit_is_that_of_the_array_or_says_what_to_use(name, kind, tmp_path):
    rows = X[: SLOW.get(name, N)]
    source, beside = KINDS[kind](rows, tmp_path), BESIDE.get(name, {})
    here = ESTIMATORS[name]()
    there, is_small = clone(here), "above" in kind
    if is_small:
        inner = there.model if name == "KernelPCASearch" else there
        inner.set_params(memory="40KB" if name in SLOW else SMALL)
    if name in ONE_PLACE and (kind == "dask" or is_small):
        with pytest.raises(ValueError, match=r"basis='landmarks'|[Rr]aise memory|Give |or give"):
            there.fit(source, **beside)
        return
    here.fit(rows, **beside), there.fit(source, **beside)
    if name in SAMPLED and is_small:
        if name == "NoveltyDetector":
            assert 0.01 < np.mean(there.predict(source) == -1) < 0.1
        elif name == "SpectralClustering":
            np.testing.assert_allclose(there.eigenvalues_, here.eigenvalues_, rtol=1e-9)
            assert adjusted_rand_score(there.labels_, here.labels_) > 0.97
            np.testing.assert_array_equal(there.predict(source), there.labels_)
            assert not hasattr(there, "embedding_")
        elif name == "Nystroem":
            np.testing.assert_array_equal(there.components_, rows[there.component_indices_])
    else:
        for fact, value in facts(here).items():
            found = getattr(there, fact)
            if isinstance(value, dict):
                assert found == value
            else:
                np.testing.assert_allclose(np.asarray(found), value, rtol=1e-9, atol=1e-9)
    there.save(tmp_path / "model.mercer")
    saved = vars(mercer.load(tmp_path / "model.mercer"))
    for fact in {"labels_", "embedding_"} & vars(there).keys():
        assert hasattr(getattr(there, fact), "compute") == (kind == "dask"), fact
        assert kind != "dask" or fact not in saved
        if not (name in SAMPLED and is_small):
            found = np.asarray(getattr(there, fact))
            np.testing.assert_allclose(found, getattr(here, fact), atol=1e-6)
    for method in ("transform", "predict", "score_samples", "reconstruction_error"):
        if hasattr(there, method) and name != "KernelCCA":
            scores = getattr(there, method)(source)
            assert hasattr(scores, "compute") == (kind == "dask"), method
            if not (name in SAMPLED and is_small):
                wanted = getattr(here, method)(rows)
                assert np.asarray(scores).dtype.kind == wanted.dtype.kind
                np.testing.assert_allclose(np.asarray(scores), wanted, atol=1e-7)


@pytest.mark.parametrize("kind", ["parquet", "iterator", "dask"])
@pytest.mark.parametrize("name", sorted(ESTIMATORS.keys() - ONE_PLACE - {"KernelCCA"}))
def test_results_are_of_one_type_wherever_rows_are(name, kind, tmp_path):
    rows = X[generator(81).permutation(N)[:400]].astype(np.float32)
    beside = {"y": rows[:, 0]} if name in BESIDE else {}
    here, source = ESTIMATORS[name](), KINDS[kind](rows, tmp_path)
    there = clone(here).fit(source, **beside)
    here.fit(rows, **beside)
    methods = ("transform", "predict", "score_samples", "decision_function")
    for method in {*methods} & {*dir(here)}:
        assert getattr(there, method)(source).dtype == getattr(here, method)(rows).dtype, method
    for fact in {"embedding_", "labels_"} & {*vars(here)}:
        assert getattr(there, fact).dtype == getattr(here, fact).dtype


@pytest.mark.parametrize("kind", KINDS)
def test_a_graph_of_neighbors_is_made_of_any_rows_that_fit(kind, tmp_path):
    is_small = "above" in kind
    rows = X[generator(78).permutation(N)[: N if is_small else 400]]
    source = KINDS[kind](rows, tmp_path)
    here = mercer.SpectralClustering(3, random_state=0, memory=SMALL if is_small else None)
    if is_small or kind == "dask":
        for asked in ({"affinity": "nearest_neighbors"}, {"n_neighbors": 7}):
            with pytest.raises(ValueError, match="A graph of neighbors needs all rows") as caught:
                clone(here).set_params(**asked).fit(source)
            assert "affinity='rbf' with basis='landmarks'" in str(caught.value)
        advised = clone(here).set_params(affinity="rbf", basis=Landmarks(20)).fit(source)
        assert advised.labels_.shape == (len(rows),)
        return
    there = clone(here).fit(source)
    np.testing.assert_array_equal(there.labels_, here.fit(rows).labels_)
    np.testing.assert_allclose(there.eigenvalues_, here.eigenvalues_, rtol=1e-9)
    np.testing.assert_array_equal(there.predict(source), here.predict(rows))


@pytest.mark.parametrize("name", sorted(ESTIMATORS.keys() - set(SLOW)))
def test_rows_that_come_once_are_fitted_or_refused_with_what_works(name):
    rows = X[generator(82).permutation(N)[:400]]
    here, beside = ESTIMATORS[name](), {"y": np.sin(rows[:, 0])} if name in BESIDE else {}
    if name == "KernelCCA":
        beside = {"y": np.sin(rows)}
    there = clone(here)
    try:
        there.fit(iter(np.array_split(rows, 7)), **beside)
    except ValueError as error:
        # Landmarks and gamma are given here: to give them is no advice.
        assert "this fit makes more than one pass" in str(error) or "read already" in str(error)
        assert "Pass a function that returns a fresh iterator, or a file" in str(error)
        there.fit(lambda: iter(np.array_split(rows, 7)), **beside)
    here.fit(rows, **beside)
    for fact in {"eigenvalues_", "offset_", "correlations_", "components_"} & {*dir(here)}:
        np.testing.assert_allclose(getattr(there, fact), getattr(here, fact), rtol=1e-7)


def test_what_is_refused_says_what_works(tmp_path):
    rows = X[generator(79).permutation(N)[:400]]
    chunks = dask(rows, tmp_path)
    with pytest.raises(ValueError, match="or give landmarks=500"):
        mercer.ClassicalMDS(2).fit(chunks)
    with pytest.raises(ValueError, match=r"or use DiffusionMap\(basis='landmarks'\)") as caught:
        mercer.Isomap(2, landmarks=20).fit(chunks)
    assert "give landmarks" not in str(caught.value)
    mercer.DiffusionMap(2, basis="landmarks", random_state=0).fit(chunks)
    model = mercer.KernelPCA(2, **RBF).fit(rows)
    with pytest.raises(ValueError, match=r"denoise needs all rows .* pass some of them at a time"):
        model.denoise(chunks)
    sparse = scipy.sparse.csr_array(rows)
    scipy.sparse.save_npz(tmp_path / "rows.npz", sparse, compressed=False)
    for source in (tmp_path / "rows.npz", chunks.map_blocks(scipy.sparse.csr_matrix)):
        with pytest.raises(TypeError, match="ProcessMonitor needs dense rows"):
            mercer.ProcessMonitor(2).fit(source)


@pytest.mark.parametrize("name", ["scores.npy", "scores.parquet", "scores.csv"])
def test_scores_in_a_file_come_back_as_rows(name, tmp_path):
    rows = X[generator(80).permutation(N)[:90]]
    model = mercer.KernelPCA(2, **RBF).fit(X)
    wanted = model.inverse_transform(model.transform(rows))
    path = model.transform(parquet(rows, tmp_path), out=tmp_path / name)
    np.testing.assert_allclose(model.inverse_transform(path), wanted, rtol=1e-9)
    learned = clone(model).set_params(fit_inverse_transform=True, basis="points").fit(rows)
    wanted = learned.inverse_transform(learned.transform(rows))
    path = learned.transform(parquet(rows, tmp_path), out=tmp_path / name)
    np.testing.assert_allclose(learned.inverse_transform(path), wanted, rtol=1e-9)
    with pytest.raises(ValueError, match="have 3 columns, and the model has 2 components"):
        model.inverse_transform(text(rows, tmp_path))
