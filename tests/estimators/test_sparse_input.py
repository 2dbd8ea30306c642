"""Sparse matrices whose parts contradict each other are refused; cells with two entries add up."""

import numpy as np
import pytest
from contracts import SEED, generator
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

import mercer
from mercer import (
    ClassicalMDS,
    DiffusionMap,
    HebbianKernelPCA,
    Isomap,
    KernelCCA,
    KernelPCA,
    KernelPCASearch,
    NoveltyDetector,
    Nystroem,
    SpectralClustering,
    SpectralEmbedding,
    StreamingKernelPCA,
    SupervisedKernelPCA,
)
from mercer.bases import Landmarks
from mercer.files import open_source

N, D = 60, 8
MODELS = {
    "points": KernelPCA(2, kernel="rbf"),
    "landmarks": KernelPCA(2, kernel="rbf", basis=Landmarks(20), random_state=0),
    "hebbian": HebbianKernelPCA(2, kernel="rbf", random_state=0),
    "stream": StreamingKernelPCA(2, kernel="rbf", random_state=0),
    "cca": KernelCCA(2, kernel="rbf"),
    "supervised": SupervisedKernelPCA(2, kernel="rbf"),
    "nystroem": Nystroem(n_components=9, random_state=0),
    "neighbors": SpectralEmbedding(2, n_neighbors=9, random_state=0),
    "clusters": SpectralClustering(2, gamma=0.3, random_state=0),
    "diffusion": DiffusionMap(2, random_state=0),
}


def matrix(kind=sparse.csr_matrix, key=0):
    return kind(sparse.random(N, D, 0.4, "csr", rng=generator(key)))


def others(model):
    """What a fit takes beside the rows."""
    if isinstance(model, KernelCCA):
        return (generator(5).standard_normal((N, 3)),)
    return (np.arange(N) % 3,) if isinstance(model, SupervisedKernelPCA) else ()


def damaged(how, key=0, kind=sparse.csr_matrix):
    """A matrix with a part that contradicts the others, drawn by the key."""
    A, rng = matrix(kind, key), generator(key, 1)
    entry, row = rng.integers(A.nnz), rng.integers(1, 8)
    if how == "negative":
        A.indices[entry] = -1 - rng.integers(100)
    elif how == "beyond":
        A.indices[entry] = max(A.shape) + rng.integers(100)
    elif how == "falls":
        A.indptr[row] = A.nnz + 7
    elif how == "starts":
        A.indptr[0] = 1
    elif how == "ends":
        A.indptr[-1] += 5
    elif how == "ends at zero":
        A.indptr[-1] = 0
    elif how == "few indices":
        A.indices = A.indices[:-1]
    return A


DAMAGES = ["negative", "beyond", "falls", "starts", "ends", "ends at zero", "few indices"]
CONTRADICT = "sparse matrix whose parts contradict each other.*Pass scipy.sparse"


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("how", DAMAGES)
def test_parts_that_contradict_are_refused(name, how):
    model = MODELS[name]
    with pytest.raises(ValueError, match=CONTRADICT):
        model.fit(damaged(how), *others(model))


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_matrix, sparse.bsr_matrix])
@pytest.mark.parametrize("how", ["negative", "beyond", "falls"])
def test_other_formats_are_checked_too(kind, how):
    with pytest.raises(ValueError, match=CONTRADICT):
        MODELS["points"].fit(damaged(how, kind=kind))
    triples = matrix(sparse.coo_matrix)
    triples.row[3] = N + 4
    with pytest.raises(ValueError, match=CONTRADICT):
        MODELS["points"].fit(triples)


@pytest.mark.parametrize("name", ["points", "landmarks", "nystroem", "neighbors", "diffusion"])
def test_new_rows_are_checked_too(name):
    model = MODELS[name].fit(matrix())
    for how in DAMAGES:
        with pytest.raises(ValueError, match=CONTRADICT):
            model.transform(damaged(how))


@pytest.mark.parametrize("how", DAMAGES)
def test_blocks_are_checked_too(how):
    for rows in (lambda: iter([matrix(), damaged(how)]), lambda: iter([damaged(how)])):
        with pytest.raises(ValueError, match=f"block at row.*{CONTRADICT}"):
            MODELS["landmarks"].fit(rows)
    with pytest.raises(ValueError, match=CONTRADICT):
        open_source(damaged(how))


def in_two_parts(A):
    """The same matrix with two entries in every cell, unsorted."""
    halves = np.repeat(A.data / 2, 2)
    return sparse.csr_matrix((halves, np.repeat(A.indices, 2), 2 * A.indptr), shape=A.shape)


@pytest.mark.parametrize("name", MODELS)
def test_entries_of_one_cell_add_up(name):
    A, model = matrix(), MODELS[name]
    B = in_two_parts(A)
    parts = [part.copy() for part in (B.data, B.indices, B.indptr)]
    verb = "predict" if isinstance(model, SpectralClustering) else "transform"
    expected = getattr(model.fit(A, *others(model)), verb)(A)
    result = getattr(model.fit(B, *others(model)), verb)(B)
    assert_allclose(result, expected, atol=1e-9)
    for part, before in zip((B.data, B.indices, B.indptr), parts, strict=True):
        assert_array_equal(part, before)


def test_entries_of_one_cell_add_up_in_files(tmp_path):
    A = matrix()
    path = tmp_path / "rows.npz"
    sparse.save_npz(path, in_two_parts(A))
    for source in (path, lambda: iter([in_two_parts(A)[:20], in_two_parts(A)[20:]])):
        rows = open_source(source).read()
        assert rows.nnz == A.nnz
        assert_allclose(rows.toarray(), A.toarray())
    model = SpectralEmbedding(2, n_neighbors=9, random_state=0)
    assert_allclose(model.fit_transform(path), model.fit_transform(A), atol=1e-9)


FORMS = ["csr_matrix", "csr_array", "csc_matrix", "csc_array", "coo_matrix", "coo_array", "npz"]
TABLE = MODELS | {
    "linear": KernelPCA(2),
    "columns": KernelPCA(2, basis="columns"),
    "cosine": KernelPCA(2, kernel="cosine"),
    "polynomial": KernelPCA(2, kernel="poly", gamma=0.5),
    "features": KernelPCA(2, kernel="rbf", basis="features", random_state=0),
    "novelty": NoveltyDetector(3, random_state=0),
    "search": KernelPCASearch(random_state=0, n_components=[2, 4], widths=[1.0]),
    "scaling": ClassicalMDS(2),
    "scaling by landmarks": ClassicalMDS(2, landmarks=20, random_state=0),
    "scaling of cosines": ClassicalMDS(2, dissimilarity="cosine"),
    "stream of features": StreamingKernelPCA(2, basis="features", kernel="rbf", random_state=0),
    "isomap": Isomap(2),
    "local": DiffusionMap(2, affinity="nearest_neighbors", neighbor_weights="local"),
}
TABLE |= {
    name: KernelPCA(2, kernel=name)
    for name in ("gower", "laplacian", "matern", "rational_quadratic", "sigmoid")
}
METHODS = ["transform", "fit_transform", "score_samples", "predict", "decision_function"]
METHODS += ["reconstruction_error", "score", "denoise", "inverse_transform", "fit_predict"]


def answers(model, A, folder):
    """What the model gives by each of its methods, fitted to rows of one form."""
    model, found = clone(model), {}
    model.fit(A, *others(model))
    for name in METHODS:
        if not hasattr(model, name) or (name == "score" and isinstance(model, KernelCCA)):
            continue
        given = model.transform(A) if name == "inverse_transform" else A
        found[name] = getattr(model, name)(given, *others(model) * name.startswith("fit_"))
    return found


@pytest.mark.filterwarnings("ignore::mercer.exceptions.MercerWarning")
@pytest.mark.parametrize("name", TABLE)
def test_every_form_gives_what_dense_rows_give(name, tmp_path):
    dense = matrix(key=SEED + 2).toarray()
    wanted = answers(TABLE[name], dense, tmp_path)
    assert wanted
    for form in FORMS:
        A = getattr(sparse, form)(dense) if form != "npz" else tmp_path / "rows.npz"
        if form == "npz":
            if name == "nystroem":
                continue
            sparse.save_npz(A, sparse.csc_matrix(dense))
        found = answers(TABLE[name], A, tmp_path)
        assert found.keys() == wanted.keys()
        for method, values in found.items():
            assert_allclose(values, wanted[method], atol=1e-8, err_msg=f"{form}: {method}")


@pytest.mark.filterwarnings("ignore::mercer.exceptions.MercerWarning")
@pytest.mark.parametrize("training", [sparse.csr_matrix, np.asarray])
@pytest.mark.parametrize("name", [name for name in TABLE if name != "nystroem"])
def test_new_rows_need_not_be_sparse_as_the_training_rows_were(name, training, tmp_path):
    """Also of a model from a file, and where they come from one."""
    model = clone(TABLE[name])
    model.fit(training(matrix(key=4).toarray()), *others(model))
    new = matrix(key=SEED + 5).toarray()[:9]
    sparse.save_npz(tmp_path / "new.npz", sparse.csr_matrix(new))
    forms = [new, sparse.csr_array(new), sparse.dok_matrix(new), tmp_path / "new.npz"]
    model.save(tmp_path / "model")
    for method in ("transform", "predict", "decision_function", "reconstruction_error"):
        if hasattr(model, method):
            wanted = getattr(model, method)(forms[training is not np.asarray])
            for one in (model, mercer.load(tmp_path / "model")):
                for rows in forms:
                    assert_allclose(getattr(one, method)(rows), wanted, atol=1e-8)


@pytest.mark.parametrize("form", FORMS)
def test_a_learned_inverse_transform_needs_dense_rows(form, tmp_path):
    A = tmp_path / "rows.npz"
    sparse.save_npz(A, matrix())
    if form != "npz":
        A = getattr(sparse, form)(matrix())
    with pytest.raises(TypeError, match=r"(dense data is|needs dense rows)"):
        KernelPCA(2, kernel="rbf", fit_inverse_transform=True).fit(A)


WIDE = sparse.random(150, 40_000, 2e-4, "csr", rng=generator(4))


def test_dense_results_stay_within_the_budget():
    linear = KernelPCA(2, memory="10MB").fit(WIDE)
    S = linear.transform(WIDE)
    Z = linear.inverse_transform(S[:5])
    mean, centered = WIDE.mean(axis=0), WIDE.toarray() - WIDE.mean(axis=0)
    Q = np.linalg.svd(centered, full_matrices=False)[2][:2]
    assert_allclose(Z, centered[:5] @ Q.T @ Q + mean, atol=1e-8)
    gaussian = KernelPCA(2, kernel="rbf", memory="10MB").fit(WIDE)
    small = {"memory": "10MB"}
    for refused in (
        lambda: linear.inverse_transform(S),
        lambda: linear.denoise(WIDE),
        lambda: gaussian.inverse_transform(gaussian.transform(WIDE)),
        lambda: KernelPCASearch(model=KernelPCA(memory="10MB")).fit(WIDE),
        lambda: ClassicalMDS(2, **small).fit(WIDE),
    ):
        with pytest.raises(ValueError, match=r"cannot hold .*dense rows.*(fewer|Use|use)"):
            refused()
    novelty = NoveltyDetector(3, memory="100MB", random_state=0).fit(WIDE)
    assert novelty.predict(WIDE).shape == (150,)
    with pytest.raises(ValueError, match="sparse matrix of distances does not say"):
        ClassicalMDS(2, dissimilarity="precomputed").fit(sparse.csr_matrix(np.eye(4)))
