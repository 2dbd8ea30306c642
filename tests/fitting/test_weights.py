"""Weights of rows: whole ones are repeated rows, zero ones are rows left out, for every basis."""

import numpy as np
import pytest
import sklearn
from contracts import check_operator, generator
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import KernelPCA, StreamingKernelPCA, kernels
from mercer.bases import AllPoints, FourierGrid, Landmarks, RandomFeatures
from mercer.compute import LocalEngine
from mercer.fitting.moments import Moments
from mercer.operators import CenteredGram
from mercer.solvers import SOLVERS


def rows(n=60, d=3, key=0):
    return generator(500, key).standard_normal((n, d))


def counts(n, key=0, zeros=True):
    w = generator(501, key).integers(0 if zeros else 1, 5, n)
    w[:2] = 3
    return w


def assert_same(found, wanted, X, tol=1e-6):
    """The same eigenvalues, scores, errors and certificate as of the other model."""
    top = wanted.eigenvalues_[0]
    np.testing.assert_allclose(found.eigenvalues_, wanted.eigenvalues_, rtol=0, atol=tol * top)
    np.testing.assert_allclose(
        found.explained_variance_, wanted.explained_variance_, rtol=0, atol=tol * top
    )
    np.testing.assert_allclose(
        found.explained_variance_ratio_, wanted.explained_variance_ratio_, atol=tol
    )
    np.testing.assert_allclose(found.transform(X), wanted.transform(X), atol=1e3 * tol)
    np.testing.assert_allclose(
        found.reconstruction_error(X), wanted.reconstruction_error(X), atol=1e3 * tol
    )
    assert found.certificate_.kind == wanted.certificate_.kind
    slack = 1e-9 * top
    assert (found.certificate_.eigenvalue_lower <= wanted.eigenvalues_ + slack).all()
    assert (found.certificate_.eigenvalue_upper >= wanted.eigenvalues_ - slack).all()


WAYS = {
    "points": {"kernel": "rbf", "gamma": 0.3, "basis": "points"},
    "uncentered": {"kernel": "rbf", "gamma": 0.3, "basis": "points", "center": False},
    "poly": {"kernel": "poly", "gamma": 0.3},
    "sigmoid": {"kernel": "sigmoid", "gamma": 0.05, "coef0": 0.0},
    "laplacian": {"kernel": "laplacian", "gamma": 0.3},
    "linear": {"kernel": "linear", "basis": "points"},
    "columns": {"kernel": "linear", "basis": "columns"},
    "columns, uncentered": {"kernel": "linear", "basis": "columns", "center": False},
    "cosine": {"kernel": "cosine", "basis": "columns"},
    "landmarks": {"kernel": "rbf", "gamma": 0.3, "basis": Landmarks(points=rows(15, key=9))},
    "features": {"kernel": "rbf", "gamma": 0.3, "basis": RandomFeatures(40)},
    "fourier": {"kernel": "rbf", "gamma": 0.03, "basis": FourierGrid(tol=1e-4, box=[[-6, 6]] * 3)},
}


@pytest.mark.filterwarnings("ignore::mercer.exceptions.MercerWarning")
@pytest.mark.parametrize("key", range(2))
@pytest.mark.parametrize("way", WAYS)
def test_whole_weights_are_repeated_rows(way, key):
    """For every basis: eigenvalues, variances, scores, errors and bounds."""
    X, w = rows(key=key), counts(60, key)
    settings = {"n_components": 3, "random_state": 0, **WAYS[way]}
    found = KernelPCA(**settings).fit(X, sample_weight=w)
    wanted = KernelPCA(**settings).fit(np.repeat(X, w, axis=0))
    assert_same(found, wanted, rows(20, key=7))


@pytest.mark.filterwarnings("ignore:.*Not converged", "ignore::UserWarning")
@pytest.mark.parametrize("solver", sorted(SOLVERS))
def test_every_solver(solver):
    X, w = rows(120, key=2), counts(120, 2)
    settings = {"kernel": "rbf", "gamma": 0.3, "eigen_solver": solver, "random_state": 0}
    found = KernelPCA(3, **settings).fit(X, sample_weight=w)
    wanted = KernelPCA(3, kernel="rbf", gamma=0.3, eigen_solver="dense")
    wanted.fit(np.repeat(X, w, axis=0))
    tol = 1e-2 if solver in ("gram-power", "randomized") else 1e-6
    np.testing.assert_allclose(found.eigenvalues_, wanted.eigenvalues_, rtol=tol)
    S, T = found.transform(X[:9]), wanted.transform(X[:9])
    np.testing.assert_allclose(np.abs(S), np.abs(T), atol=10 * tol)


@pytest.mark.parametrize("way", ["points", "columns", "fourier", "features"])
def test_zero_weights_leave_rows_out(way):
    X = rows(50, key=3)
    w = generator(502).uniform(0.5, 2.0, 50)
    w[generator(503).permutation(50)[:20]] = 0
    settings = {"n_components": 3, "random_state": 0, **WAYS[way]}
    found = KernelPCA(**settings).fit(X, sample_weight=w)
    wanted = KernelPCA(**settings).fit(X[w > 0], sample_weight=w[w > 0])
    assert_same(found, wanted, rows(20, key=7))


@pytest.mark.parametrize("way", ["points", "columns", "landmarks", "fourier"])
def test_equal_weights_change_eigenvalues_only(way):
    """Components do not depend on the unit of the weights."""
    X = rows(50, key=4)
    settings = {"n_components": 3, "random_state": 0, **WAYS[way]}
    plain = KernelPCA(**settings).fit(X)
    for scale in (2.5, 1e-3):
        found = KernelPCA(**settings).fit(X, sample_weight=np.full(50, scale))
        np.testing.assert_allclose(found.eigenvalues_, scale * plain.eigenvalues_, rtol=1e-6)
        np.testing.assert_allclose(found.transform(X), plain.transform(X), atol=1e-5)
        assert (found.explained_variance_ > 0).all()
    number = KernelPCA(**settings).fit(X, sample_weight=2.5)
    np.testing.assert_allclose(number.eigenvalues_, 2.5 * plain.eigenvalues_, rtol=1e-6)


def test_vectors_and_scores_of_the_rows_themselves():
    """Repeated rows have the entries of the row they repeat; `fit_transform` gives all rows."""
    X, w = rows(40, key=5), counts(40, 5)
    settings = {"n_components": 3, "kernel": "rbf", "gamma": 0.3}
    found = KernelPCA(**settings).fit(X, sample_weight=w)
    wanted = KernelPCA(**settings).fit(np.repeat(X, w, axis=0))
    some = w > 0
    np.testing.assert_allclose(
        np.repeat(found.eigenvectors_, w[some], axis=0), wanted.eigenvectors_, atol=1e-6
    )
    S = KernelPCA(**settings).fit_transform(X, sample_weight=w)
    np.testing.assert_allclose(S, found.transform(X), atol=1e-8)
    inverse = {**settings, "fit_inverse_transform": True, "alpha": 0.1}
    ours = KernelPCA(**inverse).fit(X, sample_weight=w)
    theirs = KernelPCA(**inverse).fit(np.repeat(X, w, axis=0))
    np.testing.assert_allclose(
        ours.inverse_transform(S[:9]), theirs.inverse_transform(S[:9]), atol=1e-4
    )


def test_sparse_precomputed_torch_and_single_precision_rows():
    X, w = rows(50, key=6), counts(50, 6, zeros=False)
    settings = {"n_components": 3, "kernel": "rbf", "gamma": 0.3}
    wanted = KernelPCA(**settings).fit(X, sample_weight=w)
    thin = KernelPCA(**settings).fit(sparse.csr_matrix(X), sample_weight=w)
    np.testing.assert_allclose(thin.eigenvalues_, wanted.eigenvalues_, rtol=1e-9)
    K = kernels.RBF(0.3)(X)
    given = KernelPCA(3, kernel="precomputed").fit(K, sample_weight=w)
    np.testing.assert_allclose(given.eigenvalues_, wanted.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(given.transform(K[:5]), wanted.transform(X[:5]), atol=1e-7)
    single = KernelPCA(**settings).fit(X.astype(np.float32), sample_weight=w)
    np.testing.assert_allclose(single.eigenvalues_, wanted.eigenvalues_, rtol=1e-4)
    torch = pytest.importorskip("torch")
    there = KernelPCA(**settings).fit(torch.tensor(X), sample_weight=torch.tensor(w))
    np.testing.assert_allclose(there.eigenvalues_, wanted.eigenvalues_, rtol=1e-9)


@pytest.mark.parametrize("way", ["landmarks", "features", "columns", "fourier"])
def test_files_in_blocks(way, tmp_path):
    # Few enough, also when repeated, for all of them to decide signs.
    X, w = rows(700, key=8), counts(700, 8, zeros=False)
    np.save(tmp_path / "rows.npy", X)
    settings = {"n_components": 3, "random_state": 0, "memory": "60MB", **WAYS[way]}
    found = KernelPCA(**settings).fit(str(tmp_path / "rows.npy"), sample_weight=w)
    wanted = KernelPCA(**settings).fit(np.repeat(X, w, axis=0))
    assert_same(found, wanted, rows(20, key=7))


# Ways whose basis does not depend on the rows.
GIVEN = ["landmarks given", "features", "columns", "fourier"]


def given(way):
    if way != "landmarks given":
        return WAYS[way]
    return {"kernel": "rbf", "gamma": 0.3, "basis": Landmarks(points=rows(30, key=11))}


def assert_same_but_signs(found, wanted):
    new = rows(20, key=7)
    np.testing.assert_allclose(found.eigenvalues_, wanted.eigenvalues_, rtol=1e-6)
    np.testing.assert_allclose(
        np.abs(found.transform(new)), np.abs(wanted.transform(new)), atol=1e-5
    )
    assert found.score(new) == pytest.approx(wanted.score(new), rel=1e-6)


@pytest.mark.parametrize("way", GIVEN)
def test_zeros_in_a_file_leave_rows_out(way, tmp_path):
    """Blocks of zeros alone among them."""
    X, w = rows(900, key=9), counts(900, 9)
    w[200:420] = 0
    settings = {"n_components": 3, "random_state": 0, "memory": "60MB", **given(way)}
    found = KernelPCA(**settings).fit(lambda: iter(np.array_split(X, 9)), sample_weight=w)
    wanted = KernelPCA(**settings).fit(np.repeat(X, w, axis=0))
    # A row that counts nothing may still be the one that a sign follows.
    assert_same_but_signs(found, wanted)
    small = KernelPCA(3, kernel="rbf", gamma=0.3).fit(
        lambda: iter(np.array_split(X, 9)), sample_weight=w
    )
    assert small.X_fit_.shape[0] == np.count_nonzero(w)


@pytest.mark.parametrize("lengths", [(900,), (300, 0, 1, 420, 179), (10,) * 90])
@pytest.mark.parametrize("way", [*GIVEN, "points"])
def test_rows_of_a_cluster(way, lengths):
    da = pytest.importorskip("dask.array")
    X, w = rows(900, key=10), counts(900, 10, zeros=way != "points")
    w[300:700] *= way == "points"
    D = da.from_array(X, chunks=(lengths, -1))
    settings = {"n_components": 3, "random_state": 0, "memory": "60MB", **given(way)}
    found = KernelPCA(**settings).fit(D, sample_weight=w)
    wanted = KernelPCA(**settings).fit(X, sample_weight=w)
    assert_same_but_signs(found, wanted)
    lazy = KernelPCA(**settings).fit(D, sample_weight=da.from_array(w, chunks=70))
    np.testing.assert_array_equal(lazy.eigenvalues_, found.eigenvalues_)


def test_small_chunks_of_a_cluster_have_their_weights():
    da = pytest.importorskip("dask.array")
    X, w = rows(700, key=12), counts(700, 12)
    settings = {"n_components": 3, **given("landmarks given")}
    found = KernelPCA(**settings).fit(da.from_array(X, chunks=(2, -1)), sample_weight=w)
    wanted = KernelPCA(**settings).fit(X, sample_weight=w)
    np.testing.assert_allclose(found.eigenvalues_, wanted.eigenvalues_, rtol=1e-9)


def test_a_checkpoint_of_other_weights_is_not_taken(tmp_path):
    X, w = rows(60), counts(60)
    path = tmp_path / "fit.checkpoint"
    a = KernelPCA(2, kernel="rbf", checkpoint=path, random_state=0).fit(X, sample_weight=w)
    b = KernelPCA(2, kernel="rbf", random_state=0).fit(X, sample_weight=w)
    np.testing.assert_allclose(a.eigenvalues_, b.eigenvalues_)


@pytest.mark.parametrize(
    "weights, words",
    [
        (np.ones(9), "expected \\(20,\\)"),
        (np.r_[-1.0, np.ones(19)], "Negative values in sample_weight"),
        (np.r_[np.nan, np.ones(19)], "NaN"),
        (np.r_[np.inf, np.ones(19)], "infinity"),
        (np.ones((20, 1)), "a number for each of"),
        (["a"] * 20, "a number for each of"),
        (np.r_[1.0, np.zeros(19)], "Only 1 of 20 values"),
        (0.0, "Only 0 of 20 values"),
    ],
    ids=str,
)
def test_weights_that_make_no_sense(weights, words):
    model = KernelPCA(2)
    with pytest.raises(ValueError, match=words):
        model.fit(rows(20), sample_weight=weights)
    assert not hasattr(model, "eigenvalues_")


def test_what_cannot_be_weighted_says_so():
    X = rows(20)
    with pytest.raises(ValueError, match="precomputed kernel cannot be left out"):
        KernelPCA(2, kernel="precomputed").fit(X @ X.T, sample_weight=np.r_[0, np.ones(19)])
    da = pytest.importorskip("dask.array")
    with pytest.raises(ValueError, match=r"all points of a cluster.*landmarks"):
        KernelPCA(2, kernel="rbf", basis="points").fit(
            da.from_array(X), sample_weight=np.r_[0, np.ones(19)]
        )


def test_metadata_is_routed():
    X, w = rows(40), counts(40)
    with sklearn.config_context(enable_metadata_routing=True):
        model = KernelPCA(2, kernel="rbf", gamma=0.3).set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=True)
        pipe = make_pipeline(scaler, model).fit(X, sample_weight=w)
    Z = StandardScaler().fit(X, sample_weight=w).transform(X)
    wanted = KernelPCA(2, kernel="rbf", gamma=0.3).fit(np.repeat(Z, w, axis=0))
    np.testing.assert_allclose(pipe[-1].eigenvalues_, wanted.eigenvalues_, rtol=1e-6)


STREAMS = {
    "dictionary": {"basis": "dictionary", "budget": 30},
    "full dictionary": {"basis": "dictionary", "budget": 8},
    "landmarks": {"basis": Landmarks(points=rows(15, key=9))},
    "features": {"basis": RandomFeatures(40)},
    "fourier": {"basis": FourierGrid(tol=1e-4, box=[[-6, 6]] * 3), "gamma": 0.005},
}


@pytest.mark.filterwarnings("ignore::mercer.exceptions.MercerWarning")
@pytest.mark.parametrize("way", STREAMS)
def test_streams(way):
    """Batches with weights are batches of repeated rows, in one `fit` or many `partial_fit`s."""
    X, w = rows(200, key=10), counts(200, 10)
    settings = {"n_components": 3, "kernel": "rbf", "gamma": 0.3, "random_state": 0, **STREAMS[way]}
    found, wanted = (StreamingKernelPCA(**settings) for _ in range(2))
    for start in range(0, 200, 50):
        some = slice(start, start + 50)
        found.partial_fit(X[some], sample_weight=w[some])
        wanted.partial_fit(np.repeat(X[some], w[some], axis=0))
    np.testing.assert_allclose(found.eigenvalues_, wanted.eigenvalues_, rtol=1e-6)
    np.testing.assert_allclose(found.explained_variance_, wanted.explained_variance_, rtol=1e-6)
    Y = rows(20, key=11)
    np.testing.assert_allclose(np.abs(found.transform(Y)), np.abs(wanted.transform(Y)), atol=1e-5)
    lower, upper = found.certificate_.eigenvalue_lower, found.certificate_.eigenvalue_upper
    assert (lower <= wanted.eigenvalues_ * (1 + 1e-9)).all()
    assert (upper >= wanted.eigenvalues_ * (1 - 1e-9)).all()
    whole = StreamingKernelPCA(**settings).fit(X, sample_weight=w)
    np.testing.assert_allclose(whole.eigenvalues_, wanted.eigenvalues_, rtol=1e-6)
    seen, before = found.n_samples_seen_, found.eigenvalues_.copy()
    found.partial_fit(X[:5], sample_weight=np.zeros(5))
    assert found.n_samples_seen_ == seen
    np.testing.assert_array_equal(found.eigenvalues_, before)
    with pytest.raises(ValueError, match="Negative values in sample_weight"):
        found.partial_fit(X[:5], sample_weight=-np.ones(5))
    np.testing.assert_array_equal(found.eigenvalues_, before)
    batches = StreamingKernelPCA(**settings).fit([X[:50], X[50:]], sample_weight=w)
    np.testing.assert_allclose(batches.eigenvalues_, whole.eigenvalues_, rtol=1e-6)
    with pytest.raises(ValueError, match=r"expected \(\d+,\), a number for each"):
        StreamingKernelPCA(**settings).fit([X[:50], X[50:]], sample_weight=w[1:])
    with pytest.raises(ValueError, match="no row to begin with"):
        StreamingKernelPCA(**settings).partial_fit(X[:5], sample_weight=np.zeros(5))


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("n", [6, 64, 130])
def test_operator(n, center):
    """The contract of operators, against the dense formula."""
    X = generator(n, 3).standard_normal((n, 3))
    w = generator(n, 4).uniform(0.1, 3.0, n)
    K = kernels.RBF(0.3)(X)
    H = np.eye(n) - np.outer(np.ones(n), w) / w.sum() if center else np.eye(n)
    A = np.sqrt(w)[:, None] * (H @ K @ H.T) * np.sqrt(w)
    basis = AllPoints().build(kernels.RBF(0.3), X, LocalEngine(10**6, 2), generator(1))
    check_operator(CenteredGram(basis, center, w), A)


def test_landmarks_by_number_are_rows_of_x():
    """Also where rows before them have no weight and are left out."""
    X, w = rows(40, key=11), counts(40, 11)
    w[:7] = 0
    index = [3, 9, 20, 33]
    for recipe, points in ((Landmarks(indices=index), X[index]), (Landmarks(0.5), None)):
        model = KernelPCA(2, kernel="rbf", gamma=0.3, basis=recipe, random_state=0)
        model.fit(X, sample_weight=w)
        if points is None:
            assert len(model.landmarks_) == round(0.5 * np.count_nonzero(w))
        else:
            np.testing.assert_array_equal(model.landmarks_, points)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("draw", range(20))
def test_moments_of_rows_of_any_weight(draw, dtype):
    """Far rows of no weight and near rows of great weight, in any block."""
    rng = generator(504, draw)
    Y = rng.standard_normal((60, 3)) * 10 ** rng.uniform(-5, 5, 60)[:, None] + rng.uniform(-9, 9)
    w = 10 ** rng.uniform(-8, 8, 60)
    Y, cuts = Y.astype(dtype), np.sort(rng.integers(1, 59, 4))
    found = Moments.of_blocks(np.split(Y.copy(), cuts), 1.0, np.split(w, cuts))
    wide = Y.astype(np.longdouble)
    mean = w @ wide / w.sum()
    truth = (wide - mean).T @ (w[:, None] * (wide - mean))
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(found.count, w.sum(), rtol=1e-12)
    # Of the largest terms of each sum.
    assert np.abs(found.scatter - truth).max() <= 60 * eps * np.trace(truth)
    assert np.abs(found.mean - mean).max() <= 60 * eps * np.abs(w[:, None] * wide).sum() / w.sum()


def test_the_plan_counts_rows_and_not_weights():
    X, w = rows(50, key=12), np.full(50, 1e6)
    plan = KernelPCA(2, basis="columns").fit(X, sample_weight=w).plan_
    assert "50 rows" in repr(plan)
