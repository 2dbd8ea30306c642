"""KernelPCA: its results against the oracle, and its manners as an estimator."""

import pickle
import warnings
from copy import deepcopy

import numpy as np
import oracle
import pytest
from contracts import generator
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as SklearnKernelPCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from mercer import KernelPCA
from mercer.bases import Landmarks
from mercer.kernels import RBF, Matern, Polynomial
from mercer.selectors import Uniform
from mercer.solvers import SOLVERS as ALL_SOLVERS
from mercer.solvers import BlockKrylov, Dense

SOLVERS = ["dense", "krylov", "arpack", "randomized"]


def blobs(n=200, d=4, seed=0, dtype=np.float64):
    """Three clusters: a spectrum with a few leading values and a tail."""
    rng = generator(n, d, seed)
    centers = 2 * rng.standard_normal((3, d))
    return (centers[rng.integers(0, 3, n)] + 0.7 * rng.standard_normal((n, d))).astype(dtype)


def rbf(X, Y=None, gamma=0.1):
    return oracle.kernel_matrix("rbf", X, Y, gamma=gamma)


X = blobs()
NEW = blobs(50, seed=1)


# --- what is fitted


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("solver", SOLVERS)
def test_fitted_attributes(solver, center):
    r = 4
    options = {"iterated_power": 30} if solver == "randomized" else {}
    model = KernelPCA(
        r, kernel="rbf", gamma=0.1, eigen_solver=solver, center=center, random_state=0, **options
    ).fit(X)
    K = rbf(X)
    values, U = oracle.eigenpairs(K, r, center)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-9)
    assert oracle.subspace_error(model.eigenvectors_, U) < 1e-6
    np.testing.assert_allclose(np.abs(np.sum(U * model.eigenvectors_, axis=0)), 1, atol=1e-9)
    V = model.eigenvectors_
    assert (V[np.abs(V).argmax(axis=0), range(r)] > 0).all()
    total = oracle.total_variance(K, center)
    np.testing.assert_allclose(model.explained_variance_ratio_, values / total, rtol=1e-9)
    np.testing.assert_allclose(
        model.explained_variance_, values / (199 if center else 200), rtol=1e-9
    )
    assert model.n_features_in_ == 4 and model.gamma_ == 0.1
    np.testing.assert_array_equal(model.X_fit_, X)
    assert model.kernel_.gamma == 0.1 and model.plan_.method and model.certificate_.converged
    assert list(model.get_feature_names_out()) == [f"kernelpca{i}" for i in range(r)]


@pytest.mark.parametrize("center", [True, False])
def test_expansion_is_an_orthonormal_frame(center):
    model = KernelPCA(5, kernel="rbf", gamma=0.1, center=center).fit(X)
    F, M, K = model.expansion_.frame, model.expansion_.metric, rbf(X)
    np.testing.assert_allclose(F.T @ K @ F, M, atol=1e-7)
    np.testing.assert_allclose(M[1:, 1:], np.eye(5), atol=1e-7)
    S = model.transform(NEW)
    W = model.expansion_.weights(S)
    P = W @ K @ W.T - 2 * W @ rbf(X, NEW) + rbf(NEW)  # squared distances, on the diagonal
    np.testing.assert_allclose(np.diag(P), model.reconstruction_error(NEW), atol=1e-7)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("solver", ["dense", "krylov"])
def test_scores_and_errors(solver, center):
    r = 4
    model = KernelPCA(r, kernel="rbf", gamma=0.1, eigen_solver=solver, center=center)
    scores = model.fit_transform(X)
    K, K_new = rbf(X), rbf(NEW, X)
    exact = oracle.scores(K_new, K, r, center)
    signs = np.sign(np.sum(exact * model.transform(NEW), axis=0))
    np.testing.assert_allclose(model.transform(NEW), exact * signs, atol=1e-6)
    np.testing.assert_allclose(model.transform(X), scores, atol=1e-6)
    error = oracle.reconstruction_error(np.ones(50), K_new, K, r, center)
    np.testing.assert_allclose(model.reconstruction_error(NEW), error, atol=1e-9)
    assert model.score(NEW) == pytest.approx(-error.mean())
    # On the training rows the mean error is what the other components hold.
    left = oracle.total_variance(K, center) - oracle.eigenpairs(K, r, center)[0].sum()
    assert model.score(X) == pytest.approx(-left / 200)


def test_scores_have_the_variances():
    model = KernelPCA(4, kernel="rbf", gamma=0.1)
    S = model.fit_transform(X)
    np.testing.assert_allclose(np.cov(S.T), np.diag(model.explained_variance_), atol=1e-12)
    np.testing.assert_allclose(S.mean(axis=0), 0, atol=1e-12)


@pytest.mark.parametrize("solver", ["dense", "krylov"])
def test_linear_kernel_is_pca(solver):
    Y = blobs(300, 12)
    pca = PCA(3).fit(Y)
    model = KernelPCA(3, kernel="linear", eigen_solver=solver).fit(Y)
    np.testing.assert_allclose(model.explained_variance_, pca.explained_variance_)
    np.testing.assert_allclose(model.explained_variance_ratio_, pca.explained_variance_ratio_)
    scores = pca.transform(Y)
    signs = np.sign(np.sum(scores * model.transform(Y), axis=0))
    np.testing.assert_allclose(model.transform(Y), scores * signs, atol=1e-6)
    left = ((Y - pca.inverse_transform(scores)) ** 2).sum(axis=1)
    np.testing.assert_allclose(model.reconstruction_error(Y), left, atol=1e-6)


@pytest.mark.parametrize("solver", ["dense", "krylov"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_linear_kernel_far_from_the_origin(solver, dtype):
    """Rows 1e3 sigma from zero: the Gram matrix is a million times its variance."""
    Y = (blobs(300, 12) + 1e3).astype(dtype)
    pca = PCA(3).fit(Y.astype(float))
    model = KernelPCA(3, kernel="linear", eigen_solver=solver).fit(Y)
    np.testing.assert_allclose(model.explained_variance_, pca.explained_variance_, rtol=1e-5)
    ratio = pca.explained_variance_ratio_
    np.testing.assert_allclose(model.explained_variance_ratio_, ratio, rtol=1e-4)
    S = model.transform(Y)
    np.testing.assert_allclose(
        S, model.eigenvectors_ * model.eigenvalues_**0.5, atol=1e-3 * np.abs(S).max()
    )


@pytest.mark.parametrize("n", [600, 1200])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "matern"])
def test_krylov_is_exact_in_float64(kernel, n):
    Y = blobs(n, 5)
    params = {"gamma": 0.05} | ({"nu": 1.5} if kernel == "matern" else {})
    model = KernelPCA(8, kernel=kernel, gamma=0.05, eigen_solver="krylov", random_state=0).fit(Y)
    with threadpool_limits(1):  # LAPACK's threads wait for each other on a busy machine
        values, _ = oracle.eigenpairs(oracle.kernel_matrix(kernel, Y, **params), 8)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=0, atol=1e-9 * values[0])
    assert model.plan_.method.startswith("krylov") and model.certificate_.n_passes > 1


@pytest.mark.parametrize("solver", ["dense", "krylov"])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "laplacian", "cosine"])
def test_float32_in_float32_out(kernel, solver):
    Y = blobs(500, 5, dtype=np.float32)
    model = KernelPCA(6, kernel=kernel, gamma=0.05, eigen_solver=solver)
    scores = model.fit_transform(Y)
    params = {"gamma": 0.05} if kernel in ("rbf", "laplacian") else {}
    values, _ = oracle.eigenpairs(oracle.kernel_matrix(kernel, Y, **params), 4)
    np.testing.assert_allclose(model.eigenvalues_[:4], values, rtol=0, atol=1e-5 * values[0])
    for array in (
        scores,
        model.transform(Y),
        model.eigenvalues_,
        model.eigenvectors_,
        model.explained_variance_,
        model.explained_variance_ratio_,
        model.reconstruction_error(Y),
    ):
        assert array.dtype == np.float32


# --- how many components


@pytest.mark.parametrize("share", [0.3, 0.8, 0.99, np.float32(0.5)])
@pytest.mark.parametrize("solver", ["auto", "krylov"])
def test_share_of_variance(share, solver):
    model = KernelPCA(share, kernel="rbf", gamma=0.1, eigen_solver=solver).fit(X)
    K = rbf(X)
    values, _ = oracle.eigenpairs(K)
    kept = np.cumsum(values) / oracle.total_variance(K)
    r = int(np.searchsorted(kept, share)) + 1
    assert model.eigenvalues_.shape == (r,)
    assert model.explained_variance_ratio_.sum() >= share


def test_all_components():
    model = KernelPCA(kernel="rbf", gamma=0.1).fit(X[:60])
    assert model.eigenvalues_.size == 59, "centering takes one away"
    assert model.explained_variance_ratio_.sum() == pytest.approx(1)
    np.testing.assert_allclose(model.reconstruction_error(X[:60]), 0, atol=1e-9)
    rank = KernelPCA(10, kernel="linear", remove_zero_eig=True).fit(X)
    assert rank.eigenvalues_.size == 4
    kept = KernelPCA(10, kernel="linear").fit(X)
    np.testing.assert_array_equal(kept.eigenvalues_[4:], 0)
    np.testing.assert_allclose(kept.transform(NEW)[:, 4:], 0, atol=1e-6)


# --- kinds of input


def test_callable_kernel():
    def function(x, z, gamma):
        return np.exp(-gamma * np.sum((x - z) ** 2))

    model = KernelPCA(3, kernel=function, kernel_params={"gamma": 0.1}).fit(X[:60])
    values, _ = oracle.eigenpairs(rbf(X[:60]), 3)
    np.testing.assert_allclose(model.eigenvalues_, values)
    np.testing.assert_allclose(model.transform(X[:60]), model.fit_transform(X[:60]), atol=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_precomputed_kernel(solver, kind):
    options = {"iterated_power": 30} if solver == "randomized" else {}
    model = KernelPCA(3, kernel="precomputed", eigen_solver=solver, random_state=0, **options)
    plain = KernelPCA(3, kernel="rbf", gamma=0.1).fit(X)
    model.fit(kind(rbf(X)))
    np.testing.assert_allclose(model.eigenvalues_, plain.eigenvalues_)
    np.testing.assert_allclose(model.transform(kind(rbf(NEW, X))), plain.transform(NEW), atol=1e-6)
    np.testing.assert_allclose(model.explained_variance_ratio_, plain.explained_variance_ratio_)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix, sparse.coo_array])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "cosine", "laplacian"])
@pytest.mark.parametrize("solver", ["dense", "krylov"])
def test_sparse_is_dense(kind, kernel, solver):
    Y = np.maximum(blobs(200, 8), 0)
    dense, sparsely = (
        KernelPCA(3, kernel=kernel, gamma=0.1, eigen_solver=solver).fit(A) for A in (Y, kind(Y))
    )
    np.testing.assert_allclose(sparsely.eigenvalues_, dense.eigenvalues_, rtol=1e-8)
    np.testing.assert_allclose(sparsely.transform(kind(Y)), dense.transform(Y), atol=1e-6)
    np.testing.assert_allclose(
        sparsely.reconstruction_error(kind(Y)), dense.reconstruction_error(Y), atol=1e-6
    )


def test_pandas():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcd"), index=range(1000, 1200))
    model = KernelPCA(2, kernel="rbf").set_output(transform="pandas")
    out = model.fit_transform(frame)
    assert list(out.columns) == ["kernelpca0", "kernelpca1"] and (out.index == frame.index).all()
    assert list(model.feature_names_in_) == list("abcd")
    np.testing.assert_allclose(model.transform(frame), out, atol=1e-6)


@pytest.mark.parametrize("library", ["torch", "array_api_strict"])
@pytest.mark.parametrize("name", ["float32", "float64"])
def test_same_kind_out(library, name):
    xp = pytest.importorskip(library)
    A = xp.asarray(X.astype(name))
    model = KernelPCA(3, kernel="rbf", gamma=0.1, random_state=0)
    outs = [
        model.fit_transform(A),
        model.transform(A),
        model.eigenvalues_,
        model.eigenvectors_,
        model.explained_variance_,
        model.explained_variance_ratio_,
    ]
    for out in outs:
        assert type(out) is type(A) and str(out.dtype).endswith(name)
    plain = KernelPCA(3, kernel="rbf", gamma=0.1, random_state=0).fit_transform(X.astype(name))
    np.testing.assert_allclose(np.asarray(outs[0]), plain, rtol=0, atol=2e-5)
    # NumPy in, NumPy out, whatever the model was fitted on.
    assert isinstance(model.transform(X), np.ndarray)


@pytest.mark.parametrize("library", ["torch", "array_api_strict"])
def test_same_kind_out_of_the_other_methods(library):
    xp = pytest.importorskip(library)
    A = xp.asarray(X)
    model = KernelPCA(3, kernel="rbf", gamma=0.1, fit_inverse_transform=True).fit(A)
    assert type(model.inverse_transform(model.transform(A))) is type(A)
    assert type(model.reconstruction_error(A)) is type(A)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16, np.uint8])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "laplacian"])
@pytest.mark.parametrize("solver", ["dense", "krylov"])
def test_memmap_is_never_copied(tmp_path, dtype, kernel, solver):
    Y = (blobs(300, 6) * 20 + 100).clip(0, 255).astype(dtype)
    rows = np.memmap(tmp_path / "rows", dtype, "w+", shape=Y.shape)
    rows[...] = Y
    rows.flush()
    rows = np.memmap(tmp_path / "rows", dtype, "r", shape=Y.shape)
    model = KernelPCA(3, kernel=kernel, gamma=1e-4, eigen_solver=solver).fit(rows)
    assert np.shares_memory(model.X_fit_, rows)
    plain = KernelPCA(3, kernel=kernel, gamma=1e-4, eigen_solver="dense").fit(Y)
    np.testing.assert_allclose(model.eigenvalues_, plain.eigenvalues_, rtol=1e-5)
    np.testing.assert_allclose(
        model.explained_variance_ratio_, plain.explained_variance_ratio_, rtol=1e-5
    )
    scale = np.abs(plain.transform(Y)).max()
    np.testing.assert_allclose(model.transform(rows), plain.transform(Y), atol=1e-4 * scale)
    errors = plain.reconstruction_error(Y)
    np.testing.assert_allclose(model.reconstruction_error(rows), errors, atol=1e-3 * scale**2)


def test_memmap_of_halves(tmp_path):
    rows = np.memmap(tmp_path / "rows", np.float16, "w+", shape=X.shape)
    rows[...] = X
    model = KernelPCA(3, kernel="rbf", gamma=0.1).fit(rows)
    plain = KernelPCA(3, kernel="rbf", gamma=0.1).fit(np.asarray(rows, dtype=float))
    np.testing.assert_allclose(model.eigenvalues_, plain.eigenvalues_)


def test_layouts_and_lists():
    plain = KernelPCA(3, kernel="rbf", gamma=0.1).fit_transform(X)
    for Y in (np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2], X.tolist(), X[::-1][::-1]):
        out = KernelPCA(3, kernel="rbf", gamma=0.1).fit_transform(Y)
        np.testing.assert_allclose(out, plain, atol=1e-6)


# --- as an estimator


def test_clone_and_params():
    model = KernelPCA(3, kernel=RBF(gamma="median"), eigen_solver=BlockKrylov(block=9))
    before = repr(model)
    copy = clone(model.fit(X))
    assert repr(model) == before == repr(copy) and not hasattr(copy, "eigenvalues_")
    assert model.kernel.gamma == "median" and isinstance(model.kernel_.gamma, float)
    copy.set_params(kernel__gamma=0.5, eigen_solver__block=7).fit(X)
    assert copy.kernel_.gamma == 0.5 and model.kernel.gamma == "median"


@pytest.mark.parametrize("copy_X", [True, False])
@pytest.mark.parametrize("kind", [np.array, sparse.csr_array])
def test_fit_does_not_change_the_data(copy_X, kind):
    Y, before = kind(X), X.copy()
    for solver in ("dense", "krylov"):
        model = KernelPCA(2, kernel="rbf", copy_X=copy_X, eigen_solver=solver).fit(Y)
        model.transform(Y)
        model.reconstruction_error(Y)
    np.testing.assert_array_equal(Y.toarray() if sparse.issparse(Y) else Y, before)
    K = rbf(X)
    KernelPCA(2, kernel="precomputed", copy_X=False, eigen_solver="dense").fit(K)
    np.testing.assert_array_equal(K, rbf(X))


def test_later_changes_of_the_data_do_not_matter():
    Y = X.copy()
    model = KernelPCA(2, kernel="rbf").fit(Y)
    expected = model.transform(NEW)
    Y[...] = 0
    np.testing.assert_array_equal(model.transform(NEW), expected)


def test_pipeline_and_grid_search():
    Y = blobs(90)
    y = (Y[:, 0] > np.median(Y[:, 0])).astype(int)
    pipe = make_pipeline(KernelPCA(3, kernel=RBF()), LogisticRegression())
    grid = {"kernelpca__kernel__gamma": [0.01, 0.1], "kernelpca__n_components": [2, 3]}
    search = GridSearchCV(pipe, grid, cv=2).fit(Y, y)
    assert search.best_score_ > 0.6
    gamma = search.best_params_["kernelpca__kernel__gamma"]
    assert search.best_estimator_[0].kernel_.gamma == gamma
    kernels = GridSearchCV(
        pipe, {"kernelpca__kernel": [RBF(gamma=0.1), Matern(gamma=0.1), Polynomial()]}, cv=2
    ).fit(Y, y)
    assert kernels.cv_results_["mean_test_score"].shape == (3,)


@pytest.mark.parametrize("solver", ["dense", "krylov"])
def test_pickle_and_copy(solver):
    model = KernelPCA(3, kernel="rbf", gamma=0.1, eigen_solver=solver).fit(X)
    for copy in (pickle.loads(pickle.dumps(model)), deepcopy(model)):
        np.testing.assert_array_equal(copy.transform(NEW), model.transform(NEW))
        np.testing.assert_array_equal(
            copy.reconstruction_error(NEW), model.reconstruction_error(NEW)
        )
        assert repr(copy.certificate_) == repr(model.certificate_)
    assert len(pickle.dumps(model)) < 6 * X.nbytes + 40_000, "no tiles travel"


def test_joblib(tmp_path):
    joblib = pytest.importorskip("joblib")
    model = KernelPCA(3, kernel="rbf").fit(X)
    joblib.dump(model, tmp_path / "model")
    np.testing.assert_array_equal(
        joblib.load(tmp_path / "model").transform(NEW), model.transform(NEW)
    )


@pytest.mark.parametrize("solver", SOLVERS)
def test_random_state(solver):
    Y = blobs(400)
    one, two = (
        KernelPCA(3, kernel="rbf", eigen_solver=solver, random_state=5, n_jobs=1).fit(Y)
        for _ in range(2)
    )
    np.testing.assert_array_equal(one.eigenvalues_, two.eigenvalues_)
    np.testing.assert_array_equal(one.eigenvectors_, two.eigenvectors_)
    if solver != "randomized":
        other = KernelPCA(3, kernel="rbf", eigen_solver=solver, random_state=6).fit(Y)
        np.testing.assert_allclose(other.eigenvalues_, one.eigenvalues_, rtol=1e-9)
        np.testing.assert_allclose(other.eigenvectors_, one.eigenvectors_, atol=1e-6)


def test_global_random_state_is_left_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    KernelPCA(3, kernel="rbf", eigen_solver="krylov", random_state=0).fit(X)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_inverse_transform_is_scikit_learns():
    kwargs = {"kernel": "rbf", "gamma": 0.1, "fit_inverse_transform": True, "alpha": 0.3}
    ours, theirs = (kind(3, **kwargs).fit(X) for kind in (KernelPCA, SklearnKernelPCA))
    np.testing.assert_allclose(
        ours.inverse_transform(ours.transform(NEW)),
        theirs.inverse_transform(theirs.transform(NEW)),
        atol=1e-6,
    )
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-6)


# --- solvers, progress, stopping


@pytest.mark.parametrize("solver", [Dense(), BlockKrylov(), BlockKrylov(block=5, max_columns=40)])
def test_solver_objects(solver):
    before = repr(solver)
    model = KernelPCA(3, kernel="rbf", gamma=0.1, eigen_solver=solver).fit(X)
    values, _ = oracle.eigenpairs(rbf(X), 3)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-9)
    assert repr(solver) == before
    assert type(model.plan_.solver) is type(solver) and "asked" in model.plan_.reason


def test_callback_sees_every_pass_and_can_stop():
    Y = blobs(500, 20)
    states = []
    KernelPCA(4, kernel="rbf", gamma=0.3, eigen_solver="krylov", callback=states.append).fit(Y)
    assert len(states) > 3 and states[-1].residual <= states[-1].tol
    assert [s.n_passes for s in states] == sorted({s.n_passes for s in states})
    count = []
    stopped = KernelPCA(
        4,
        kernel="rbf",
        gamma=0.3,
        eigen_solver="krylov",
        callback=lambda s: count.append(s) or len(count) == 2,
    ).fit(Y)
    assert not stopped.certificate_.converged and stopped.certificate_.n_passes <= 4
    assert stopped.eigenvalues_.shape == (4,)
    exact, _ = oracle.eigenpairs(rbf(Y, gamma=0.3))
    for value, residual in zip(stopped.eigenvalues_, stopped.certificate_.residuals, strict=True):
        assert np.abs(exact - value).min() <= residual * 1.001 + 1e-9


def test_callback_may_answer_with_numpys_true():
    Y = blobs(500, 20)
    model = KernelPCA(
        4, kernel="rbf", gamma=0.3, eigen_solver="krylov", callback=lambda s: s.values[0] > 0
    ).fit(Y)
    assert not model.certificate_.converged


@pytest.mark.parametrize("solver", SOLVERS)
def test_verbose_writes_to_stderr(solver, capsys):
    Y = blobs(300)
    KernelPCA(3, kernel="rbf", eigen_solver=solver).fit(Y)
    silence = capsys.readouterr()
    assert silence.out == silence.err == ""
    model = KernelPCA(3, kernel="rbf", eigen_solver=solver, verbose=1).fit(Y)
    spoken = capsys.readouterr()
    assert spoken.out == "" and "kernel PCA" in spoken.err
    pickle.dumps(model)
    model.transform(Y)
    assert capsys.readouterr().out == ""


def test_auto_is_exact_on_hard_spectra():
    """Far too narrow a kernel: all eigenvalues near one, which no Krylov method separates."""
    Y = generator(9).standard_normal((700, 10))
    model = KernelPCA(4, kernel="rbf", gamma=2.0, random_state=0).fit(Y)
    values, _ = oracle.eigenpairs(oracle.kernel_matrix("rbf", Y, gamma=2.0), 4)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-9)
    assert model.certificate_.converged


@pytest.mark.parametrize("r", [2, 5])
def test_auto_finds_every_copy_of_a_multiple_eigenvalue(r):
    """Points of a circle: all eigenvalues but one come in pairs."""
    angles = 2 * np.pi * np.arange(400) / 400
    Y = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    values, _ = oracle.eigenpairs(oracle.kernel_matrix("rbf", Y, gamma=50.0), r)
    for tol in (0, 1e-6):
        model = KernelPCA(r, kernel="rbf", gamma=50.0, tol=tol, random_state=0).fit(Y)
        np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-6)


@pytest.mark.parametrize("tol", [0.0, 1e-8])
@pytest.mark.parametrize("most", [1, 2, 3, 7])
@pytest.mark.parametrize("solver", ["auto", *sorted(set(ALL_SOLVERS) - {"dense", "arpack"})])
def test_max_iter_limits_whatever_solver_is_taken(solver, most, tol):
    """No more passes than that, and a warning where they were not enough."""
    rng = generator(most, len(solver))
    Y = rng.standard_normal((int(rng.integers(900, 1800)), 10))
    gamma, r = float(rng.uniform(0.2, 2)), int(rng.integers(1, 6))
    model = KernelPCA(
        r, kernel="rbf", gamma=gamma, eigen_solver=solver, max_iter=most, tol=tol, random_state=most
    )
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(Y)
    passes = model.certificate_.n_passes
    assert passes <= most
    # Without a tolerance the one pass of gram-power and its product are all that it does.
    finished = solver == "gram-power" and tol == 0 and passes < most
    assert finished or model.certificate_.converged != any(
        issubclass(w.category, ConvergenceWarning) for w in said
    )
    assert not finished or passes == 2


def test_hard_data():
    """Duplicates, constant columns, one far row: finite, exact and certified."""
    rng = generator(10)
    Y = np.hstack([np.repeat(rng.standard_normal((150, 2)), 2, axis=0), np.full((300, 1), 7.0)])
    Y[0] = 1e4
    for solver in ("dense", "krylov"):
        model = KernelPCA(5, kernel="rbf", gamma=0.5, eigen_solver=solver).fit(Y)
        values, _ = oracle.eigenpairs(oracle.kernel_matrix("rbf", Y, gamma=0.5), 5)
        np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-7)
        assert np.isfinite(model.transform(Y)).all()


@pytest.mark.parametrize("solver", ["dense", "krylov"])
@pytest.mark.parametrize("degree", [3, 12])
def test_large_polynomials(solver, degree):
    """Values beyond float32 must not break the single-precision passes."""
    Y = blobs(300, 3) * 1e3
    model = KernelPCA(2, kernel="poly", degree=degree, gamma=1.0, eigen_solver=solver).fit(Y)
    K = oracle.kernel_matrix("polynomial", Y, gamma=1.0, coef0=1, degree=degree)
    values, _ = oracle.eigenpairs(K, 2)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-7)


def test_threads_do_not_matter():
    Y = blobs(400)
    one, four = (
        KernelPCA(3, kernel="rbf", n_jobs=j, eigen_solver="krylov", random_state=0).fit(Y)
        for j in (1, 4)
    )
    np.testing.assert_allclose(one.eigenvalues_, four.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(one.transform(Y), four.transform(Y), atol=1e-6)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "cosine", "laplacian"])
@pytest.mark.parametrize("basis", ["points", Landmarks(5)])
def test_sparse_and_dense_rows_meet(kernel, basis):
    X = generator(60, 5).random((60, 5)) + 3
    S = sparse.csr_matrix(X)
    for fitted in (X, S):
        model = KernelPCA(2, kernel=kernel, basis=basis, random_state=0).fit(fitted)
        np.testing.assert_allclose(model.transform(X), model.transform(S), atol=1e-10)


@pytest.mark.parametrize("selector", [None, Uniform()])
def test_landmarks_of_a_kernel_without_a_feature_space(selector):
    X = generator(50, 4).random((50, 4))
    model = KernelPCA(2, kernel="additive_chi2", basis=Landmarks(8, selector), random_state=0)
    with pytest.raises(ValueError, match=r"AdditiveChi2.*basis='points'"):
        model.fit(X)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("solver", ["dense", "krylov"])
def test_rows_far_apart_for_the_width(dtype, solver):
    """Rounding of large squared norms must not make a Gaussian of a distance exceed one."""
    X = (1e5 * generator(7).standard_normal((60, 5))).astype(dtype)
    K = RBF(gamma=1e8)(X)
    assert K.max() <= 1.0 + 2e-4
    model = KernelPCA(2, kernel="rbf", eigen_solver=solver, tol=0.1, random_state=0).fit(X)
    np.testing.assert_allclose(model.eigenvalues_, 1.0, rtol=1e-3)


@pytest.mark.parametrize("seed", range(12))
def test_learned_inverses_are_scikit_learns_wherever_the_rows_are(seed):
    """Far rows have a kernel of their own about their mean, which is none of the scores'."""
    rng = generator(91, seed)
    n, d = int(rng.integers(10, 60)), int(rng.integers(2, 9))
    X = rng.standard_normal((n, d)) + 10 ** rng.uniform(-1, 4) * rng.standard_normal(d)
    r, kernel = int(rng.integers(1, d + 1)), ["linear", "linear", "rbf", "cosine"][seed % 4]
    options = {"kernel": kernel, "fit_inverse_transform": True, "alpha": 0.1, "gamma": 0.01}
    ours, theirs = KernelPCA(r, **options).fit(X), SklearnKernelPCA(r, **options).fit(X)
    back = ours.inverse_transform(ours.transform(X))
    expected = theirs.inverse_transform(theirs.transform(X))
    np.testing.assert_allclose(back, expected, atol=1e-4 * np.abs(X).max())
