"""Kernel canonical correlations against scikit-learn's, their definition, and rows never seen."""

import numpy as np
import oracle
import pytest
from scipy.linalg import eigh
from scipy.sparse import csr_matrix
from sklearn.cross_decomposition import CCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import KernelCCA, kernels, load
from mercer.bases import FourierGrid, Landmarks, RandomFeatures

N = 90


def generator(*seed):
    return np.random.default_rng([*seed, 3811])


def views(seed, n=N):
    """Two views that share two columns up to noise."""
    rng = generator(seed)
    Z = rng.standard_normal((n, 2))
    X = np.hstack([Z + 0.5 * rng.standard_normal((n, 2)), rng.standard_normal((n, 2))])
    Y = np.hstack([Z @ [[1.0, 2.0], [0.5, -1.0]], rng.standard_normal((n, 1))])
    return X, Y + 0.4 * rng.standard_normal((n, 3))


def ring(seed, n):
    """A place on a ring, and a nonlinear function of it."""
    rng = generator(seed, 2)
    angle = rng.uniform(0, 2 * np.pi, n)
    X = np.column_stack([np.cos(angle), np.sin(angle)]) + 0.1 * rng.standard_normal((n, 2))
    return X, np.cos(3 * angle)[:, None] + 0.1 * rng.standard_normal((n, 1))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("basis", ["auto", "points", "columns"])
def test_the_linear_kernel_is_cca(seed, basis):
    """With little regularization: correlations and scores of scikit-learn's."""
    X, Y = views(seed)
    ours = KernelCCA(2, regularization=1e-12, basis=basis).fit(X, Y)
    S, T = CCA(2, max_iter=10_000, tol=1e-14).fit(X, Y).transform(X, Y)
    wanted = [np.corrcoef(S[:, i], T[:, i])[0, 1] for i in range(2)]
    np.testing.assert_allclose(ours.correlations_, wanted, atol=1e-6)
    np.testing.assert_allclose(ours.regularized_correlations_, wanted, atol=1e-6)
    for mine, theirs in zip(ours.transform(X, Y), (S, T), strict=True):
        found = [abs(np.corrcoef(mine[:, i], theirs[:, i])[0, 1]) for i in range(2)]
        np.testing.assert_allclose(found, 1.0, atol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_it_is_its_definition(seed):
    """The generalized eigenproblem of Hardoon et al. over the weights of all rows."""
    X, Y = views(seed)
    K, L = (oracle.center(kernels.RBF(0.2)(rows)) for rows in (X, Y))
    reg = 0.02
    zero = np.zeros((N, N))
    cross = np.block([[zero, K @ L], [L @ K, zero]])
    own = [A @ A + reg * np.trace(A) * A + 1e-9 * np.eye(N) for A in (K, L)]
    wanted = eigh(cross, np.block([[own[0], zero], [zero, own[1]]]), eigvals_only=True)[::-1][:3]
    model = KernelCCA(3, kernel="rbf", gamma=0.2, regularization=reg).fit(X, Y)
    np.testing.assert_allclose(model.regularized_correlations_, wanted, rtol=1e-5)
    S, T = model.transform(X, Y)
    np.testing.assert_allclose(S.var(axis=0), 1, rtol=1e-6)
    np.testing.assert_allclose(T.var(axis=0), 1, rtol=1e-6)
    np.testing.assert_allclose(np.mean(S * T, axis=0), model.correlations_, atol=1e-6)
    np.testing.assert_allclose(S.mean(axis=0), 0, atol=1e-6)
    assert np.all(model.correlations_ >= model.regularized_correlations_ - 1e-9)


def test_landmarks_features_files_and_clusters(tmp_path):
    X, Y = views(4, 400)
    np.save(tmp_path / "X.npy", X)
    options = {"kernel": "rbf", "gamma": 0.2, "random_state": 0}
    exact = KernelCCA(2, **options).fit(X, Y)
    every = KernelCCA(2, basis=Landmarks(150), **options).fit(X, Y)
    np.testing.assert_allclose(every.correlations_, exact.correlations_, atol=0.02)
    some = KernelCCA(2, basis=RandomFeatures(1000), **options).fit(X, Y)
    np.testing.assert_allclose(some.correlations_, exact.correlations_, atol=0.1)
    known = KernelCCA(2, basis=Landmarks(40), memory="40MB", **options)
    read = known.fit(str(tmp_path / "X.npy"), Y).transform(X)
    np.testing.assert_allclose(
        known.fit(np.load(tmp_path / "X.npy", mmap_mode="r"), Y).transform(X), read
    )
    assert read.shape == (400, 2)
    dask = pytest.importorskip("dask.array")
    chunked = KernelCCA(2, **options).fit(dask.from_array(X, chunks=(90, 4)), Y)
    assert np.all(chunked.correlations_ > 0)


def test_a_nonlinear_tie_is_found_on_new_rows():
    X, Y = ring(5, 600)
    model = KernelCCA(1, kernel="rbf", gamma=2.0, regularization=1e-3).fit(X[:400], Y[:400])
    assert model.score(X[400:], Y[400:]) > 0.9
    assert KernelCCA(1).fit(X[:400], Y[:400]).score(X[400:], Y[400:]) < 0.4


def test_without_regularization_noise_is_perfectly_correlated():
    rng = generator(6)
    X, Y = rng.standard_normal((2, 60, 5))
    model = KernelCCA(1, kernel="rbf", gamma=1.0, regularization=1e-9).fit(X, Y)
    assert model.correlations_[0] > 0.999
    assert abs(model.score(*rng.standard_normal((2, 500, 5)))) < 0.3
    held = KernelCCA(1, kernel="rbf", gamma=1.0, regularization=1.0).fit(X, Y)
    assert held.regularized_correlations_[0] < 0.2


def test_kernels_and_widths_of_each_view():
    X, Y = ring(7, 200)
    model = KernelCCA(1, kernel="rbf", gamma="median", kernel_y="linear").fit(X, Y)
    assert isinstance(model.kernel_y_, kernels.Linear)
    both = KernelCCA(1, kernel="rbf", gamma="median").fit(X, 100 * Y)
    assert both.kernel_y_.gamma < 1e-2 * both.kernel_.gamma
    own = KernelCCA(1, kernel="rbf", gamma=1.0, gamma_y=0.3).fit(X, Y)
    assert (own.kernel_.gamma, own.kernel_y_.gamma) == (1.0, 0.3)
    # A view may be one column, and sparse.
    flat = KernelCCA(1, kernel="rbf", gamma=1.0).fit(X, Y[:, 0])
    sparse = KernelCCA(1, kernel="rbf", gamma=1.0).fit(csr_matrix(X), csr_matrix(Y))
    np.testing.assert_allclose(sparse.correlations_, flat.correlations_, rtol=1e-8)
    np.testing.assert_allclose(sparse.transform(X), flat.transform(X), atol=1e-7)


def test_saved_and_loaded(tmp_path):
    X, Y = views(8)
    for basis in ("points", Landmarks(20), RandomFeatures(30)):
        model = KernelCCA(2, kernel="rbf", gamma=0.2, basis=basis, random_state=0).fit(X, Y)
        model.save(tmp_path / "m.mercer")
        again = load(tmp_path / "m.mercer")
        for a, b in zip(again.transform(X, Y), model.transform(X, Y), strict=True):
            np.testing.assert_array_equal(a, b)
        assert again.score(X, Y) == model.score(X, Y)


def test_searched_and_in_a_pipeline():
    X, Y = ring(9, 300)
    grid = {"regularization": [1e-6, 1e-3, 10.0]}
    found = GridSearchCV(KernelCCA(1, kernel="rbf", gamma=2.0), grid, cv=3).fit(X, Y)
    assert found.best_params_["regularization"] < 1
    names = KernelCCA(2, kernel="rbf").fit(X, Y).set_output(transform="pandas").transform(X)
    assert list(names.columns) == ["kernelcca0", "kernelcca1"]
    pipe = make_pipeline(KernelCCA(1, kernel="rbf", gamma=2.0), LogisticRegression())
    assert pipe.fit(X, Y[:, 0] > 0).score(X, Y[:, 0] > 0) > 0.9


@pytest.mark.parametrize(
    ("options", "X", "Y", "words"),
    [
        ({}, views(0)[0], None, "requires y"),
        ({}, views(0)[0], views(0)[1][:-1], "rows"),
        ({}, views(0)[0][:-1], views(0)[1], "inconsistent numbers of samples"),
        ({}, views(0)[0], np.full((N, 2), np.nan), "NaN"),
        ({"basis": FourierGrid()}, *views(0), "no canonical correlations"),
        ({"basis": "fourier"}, *views(0), "no canonical correlations"),
        ({"regularization": -1.0}, *views(0), "regularization"),
        ({"kernel": "precomputed"}, *views(0), "kernel"),
    ],
)
def test_what_cannot_be_done_is_said(options, X, Y, words):
    with pytest.raises(ValueError, match=words):
        KernelCCA(**options).fit(X, Y)


def test_other_columns_and_too_many_components():
    X, Y = views(10)
    with pytest.warns(UserWarning, match="the 3 directions of the smaller view"):
        model = KernelCCA(9).fit(X, Y)
    assert model.transform(X).shape == (N, 3)
    with pytest.raises(ValueError, match="fitted to 3"):
        model.transform(X, Y[:, :2])
    with pytest.raises(ValueError, match="inconsistent"):
        model.score(X, Y[:-1])


@parametrize_with_checks([KernelCCA(n_components=1, kernel="rbf")])
def test_estimator(estimator, check):
    check(estimator)


@pytest.mark.parametrize("constant", [0, 1])
def test_a_view_without_variance_says_so(constant):
    views = [np.random.default_rng(90).standard_normal((40, 3)) for _ in range(2)]
    views[constant] = np.ones((40, 2))
    with pytest.warns(UserWarning, match="no variance"):
        model = KernelCCA(1, kernel="rbf").fit(*views)
    assert model.correlations_ == [0]


# Every part of the bound is needed.


def certified_correlations(model, views):
    """The certificate holds the regularized correlations of centered kernel matrices K = A A'.

    Of each view A is given, (n, q) with n > q, in long double.
    """
    roots = []
    for A in views:
        A = A - A.mean(axis=0)
        A = A - A.mean(axis=0)
        S = A.T @ A
        U, values = jacobi(S)
        B = A @ U
        roots.append(B / np.sqrt(values + model.regularization * np.trace(S)))
    C = roots[0].T @ roots[1]
    true = np.sqrt(np.maximum(np.sort(jacobi(C @ C.T)[1])[::-1], 0))
    certificate, r = model.certificate_, model.certificate_.eigenvalue_lower.size
    assert certificate.kind == "bound"
    slack = 1e-13
    assert np.all(certificate.eigenvalue_lower <= true[:r] + slack), (certificate, true)
    assert np.all(true[:r] <= certificate.eigenvalue_upper + slack), (certificate, true)
    return certificate, true


def jacobi(S):
    """Eigenvectors and eigenvalues of a small symmetric matrix in its own precision."""
    S, U = S.copy(), np.eye(len(S), dtype=S.dtype)
    for _ in range(12):
        for i in range(len(S)):
            for j in range(i):
                angle = np.arctan2(2 * S[i, j], S[i, i] - S[j, j]) / 2
                turn = np.eye(len(S), dtype=S.dtype)
                turn[i, i] = turn[j, j] = np.cos(angle)
                turn[i, j], turn[j, i] = -np.sin(angle), np.sin(angle)
                S, U = turn.T @ S @ turn, U @ turn
    return U, np.diag(S)


@pytest.mark.parametrize("regularization", [1e-3, 0.1, 1.0])
@pytest.mark.parametrize("other", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_what_the_basis_of_a_view_misses_may_be_what_both_share(seed, other, regularization):
    """A landmark sees the first column of a view, and the second is the other view, shrunk."""
    rng = generator(seed, 71)
    n = 60
    Z, _ = np.linalg.qr(np.column_stack([np.ones(n), rng.standard_normal((n, 2))]))
    size = np.sqrt(0.2 * regularization)
    X, Y = np.column_stack([Z[:, 1], size * Z[:, 2]]), np.column_stack([Z[:, 2], np.zeros(n)])
    views = (Y, X) if other else (X, Y)
    model = KernelCCA(1, regularization=regularization, basis=Landmarks(points=np.eye(1, 2)))
    certificate, true = certified_correlations(model.fit(*views), views)
    assert model.regularized_correlations_[0] < 1e-6 < 0.1 < true[0]
    assert certificate.eigenvalue_upper[0] ** 2 <= 1.01 * 0.2, "no wider than what is proven"


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("other", [False, True])
def test_a_direction_that_rounding_blurs(seed, other):
    """Columns that are nearly the same, and a regularization not far above rounding."""
    rng = generator(seed, 72)
    n = 200
    x, z = rng.standard_normal((2, n))
    X = np.column_stack([x, x + 1e-6 * z, x - 3e-7 * z])
    views = (z[:, None], X) if other else (X, z[:, None])
    model = KernelCCA(1, regularization=1e-12, basis="columns").fit(*views)
    certified_correlations(model, [view.astype(np.longdouble) for view in views])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_rounding_is_no_direction(seed, kernel):
    """Rows that differ in the last digit, or whose kernel values do, have nothing to correlate."""
    rng = generator(seed, 73)
    X, Y = rng.standard_normal((2, 80, 1))
    if kernel == "linear":
        X = 1e8 + 1.5e-8 * np.round(X)
    options = {"kernel": kernel, "gamma": 1e-16, "gamma_y": 1.0}
    with pytest.warns(UserWarning, match="no variance"):
        model = KernelCCA(1, regularization=1e-3, **options).fit(X, Y)
    assert not model.regularized_correlations_.any()
    assert model.certificate_.eigenvalue_upper[0] == 1.0


def test_scores_go_to_a_file(tmp_path):
    X, Y = ring(12, 80)
    model = KernelCCA(2, kernel="rbf", gamma=0.2).fit(X, Y)
    path, other = model.transform(X, Y, out=tmp_path / "scores.npy")
    for a, b in zip((np.load(path), other), model.transform(X, Y), strict=True):
        np.testing.assert_array_equal(a, b)


def test_signs_along_given_landmarks_do_not_depend_on_the_order_of_rows():
    for seed in range(4):
        rng = generator(seed, 74)
        X = rng.standard_normal((20_000, 3))
        Y = np.sin(X) + 0.5 * rng.standard_normal(X.shape)
        order = rng.permutation(20_000)
        model = KernelCCA(6, kernel="rbf", gamma=0.3, basis=Landmarks(points=X[:20]))
        model.set_params(random_state=0)
        wanted = model.fit(X, Y).transform(X[:50])
        found = model.fit(X[order], Y[order]).transform(X[:50])
        np.testing.assert_array_equal(np.sign(np.sum(found * wanted, axis=0)), 1)
