"""Different ways to the same result, and laws that hold for every kernel and shape."""

import numpy as np
import oracle
import pytest
from contracts import generator
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.decomposition import KernelPCA as SklearnKernelPCA

from mercer import KernelPCA
from mercer.bases import Landmarks
from mercer.kernels import RBF, Linear, Matern, Polynomial, RationalQuadratic

few = settings(
    max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)

NAMES = [
    "linear",
    "poly",
    "rbf",
    "sigmoid",
    "cosine",
    "laplacian",
    "matern",
    "rational_quadratic",
    "chi2",
    "additive_chi2",
]
# Parameters that KernelPCA passes on by name, and what the oracle calls the kernel.
GIVEN = {
    "poly": {"gamma": 0.2, "degree": 3, "coef0": 1},
    "rbf": {"gamma": 0.2},
    "sigmoid": {"gamma": 0.02, "coef0": 0.1},
    "laplacian": {"gamma": 0.2},
    "matern": {"gamma": 0.2},
    "rational_quadratic": {"gamma": 0.2},
    "chi2": {"gamma": 0.2},
}
HIDDEN = {"matern": {"nu": 1.5}, "rational_quadratic": {"alpha": 1.0}}


def data(n, d, seed, dtype=np.float64):
    rng = generator(n, d, seed)
    return (rng.random((n, d)) + 0.3 * rng.integers(0, 3, (n, 1))).astype(dtype)


def exact(name, X, Y=None):
    return oracle.kernel_matrix(
        {"poly": "polynomial"}.get(name, name), X, Y, **GIVEN.get(name, {}) | HIDDEN.get(name, {})
    )


@pytest.mark.parametrize("name", NAMES)
def test_krylov_is_dense(name):
    X, new = data(300, 6, 0), data(20, 6, 1)
    one, two = (
        KernelPCA(3, kernel=name, eigen_solver=solver, random_state=0, **GIVEN.get(name, {})).fit(X)
        for solver in ("dense", "krylov")
    )
    np.testing.assert_allclose(
        two.eigenvalues_, one.eigenvalues_, rtol=0, atol=1e-9 * one.eigenvalues_[0]
    )
    gap = np.abs(np.diff(oracle.eigenpairs(exact(name, X), 4)[0])).min() / one.eigenvalues_[0]
    loose = 1e-7 / gap * np.sqrt(one.eigenvalues_[0])
    np.testing.assert_allclose(two.transform(new), one.transform(new), atol=loose)
    np.testing.assert_allclose(
        two.explained_variance_ratio_, one.explained_variance_ratio_, rtol=1e-6, atol=1e-9
    )


@pytest.mark.parametrize("name", ["rbf", "linear", "laplacian", "matern", "cosine"])
def test_float32_is_near_float64(name):
    X = data(300, 6, 2)
    wide, narrow = (
        KernelPCA(3, kernel=name, **GIVEN.get(name, {})).fit(X.astype(t))
        for t in (np.float64, np.float32)
    )
    np.testing.assert_allclose(
        narrow.eigenvalues_, wide.eigenvalues_, rtol=0, atol=1e-5 * wide.eigenvalues_[0]
    )
    np.testing.assert_allclose(
        narrow.explained_variance_ratio_, wide.explained_variance_ratio_, atol=1e-5
    )
    errors = wide.reconstruction_error(X)
    np.testing.assert_allclose(
        narrow.reconstruction_error(X.astype(np.float32)), errors, atol=1e-4 * max(1, errors.max())
    )


@pytest.mark.parametrize("solver", ["dense", "krylov"])
def test_row_order_does_not_matter(solver):
    X = data(250, 4, 3)
    order = generator(4).permutation(250)
    one = KernelPCA(3, kernel="rbf", eigen_solver=solver).fit(X)
    two = KernelPCA(3, kernel="rbf", eigen_solver=solver).fit(X[order])
    np.testing.assert_allclose(two.eigenvalues_, one.eigenvalues_, rtol=1e-9)
    signs = np.sign(np.sum(one.transform(X) * two.transform(X), axis=0))
    np.testing.assert_allclose(two.transform(X) * signs, one.transform(X), atol=1e-6)


def test_repeated_rows_double_the_eigenvalues():
    X = data(120, 4, 5)
    one, two = (KernelPCA(3, kernel="rbf").fit(np.tile(X, (k, 1))) for k in (1, 2))
    np.testing.assert_allclose(two.eigenvalues_, 2 * one.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(two.explained_variance_ratio_, one.explained_variance_ratio_)


@pytest.mark.parametrize("scale", [1e-4, 1e3])
def test_scaling_laws(scale):
    """Stationary kernels: scaling the data is scaling the width. Linear: scores scale."""
    X = data(150, 4, 6)
    for kernel in (RBF, Matern, RationalQuadratic):
        one = KernelPCA(3, kernel=kernel(gamma=0.3)).fit(X)
        two = KernelPCA(3, kernel=kernel(gamma=0.3 / scale**2)).fit(scale * X)
        np.testing.assert_allclose(two.eigenvalues_, one.eigenvalues_, rtol=1e-7)
    one, two = (KernelPCA(3, kernel=Linear()).fit(s * X) for s in (1, scale))
    np.testing.assert_allclose(two.eigenvalues_, scale**2 * one.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(
        two.transform(scale * X), scale * one.transform(X), atol=1e-9 * scale
    )
    for word in ("median", "mean"):
        one, two = (KernelPCA(3, kernel="rbf", gamma=word).fit(s * X) for s in (1, scale))
        np.testing.assert_allclose(two.eigenvalues_, one.eigenvalues_, rtol=1e-9)


def test_shifts_and_rotations_do_not_matter():
    X = data(150, 4, 7)
    Q, _ = np.linalg.qr(generator(8).standard_normal((4, 4)))
    for kernel in (RBF(gamma=0.3), Matern(gamma=0.3), Linear()):
        one, two = (KernelPCA(3, kernel=kernel).fit(Y) for Y in (X, X @ Q + 5))
        np.testing.assert_allclose(two.eigenvalues_, one.eigenvalues_, rtol=1e-8)


def test_wide_gaussian_is_linear():
    """exp(-g d^2) = 1 - g d^2 + ...: centered, 2 g times the linear kernel."""
    X = data(150, 4, 9)
    gamma = 1e-6
    wide = KernelPCA(3, kernel=RBF(gamma=gamma)).fit(X)
    linear = KernelPCA(3, kernel=Linear()).fit(X)
    np.testing.assert_allclose(wide.eigenvalues_, 2 * gamma * linear.eigenvalues_, rtol=1e-4)
    assert oracle.subspace_error(wide.eigenvectors_, linear.eigenvectors_) < 1e-3


def test_shares_of_a_wide_gaussian():
    """The variance is 1e-5 of the trace: what is summed must be in double precision."""
    X = data(400, 4, 9)
    dense, krylov = (
        KernelPCA(3, kernel=RBF(gamma=1e-5), eigen_solver=solver, random_state=0).fit(X)
        for solver in ("dense", "krylov")
    )
    ratio = dense.explained_variance_ratio_
    np.testing.assert_allclose(krylov.explained_variance_ratio_, ratio, rtol=1e-6)


def test_narrow_gaussian_is_the_identity():
    X = data(80, 4, 10)
    kernel = RBF(gamma=1e6)
    model = KernelPCA(kernel=kernel).fit(X)
    # Distances by GEMM: even k(x, x) has the rounding of the terms that cancel in it.
    np.testing.assert_allclose(model.eigenvalues_, 1, atol=100 * 2.3e-16 * kernel.spread(X))


def test_degree_one_is_linear_and_products_of_kernels():
    X = data(100, 3, 11)
    linear = KernelPCA(3, kernel=Linear()).fit(X)
    first = KernelPCA(3, kernel=Polynomial(degree=1, gamma=1.0, coef0=5.0)).fit(X)
    np.testing.assert_allclose(first.eigenvalues_, linear.eigenvalues_, rtol=1e-8)


@pytest.mark.parametrize("name", ["linear", "poly", "rbf", "sigmoid", "cosine"])
def test_scikit_learn_agrees(name):
    X, new = data(80, 5, 12), data(9, 5, 13)
    kwargs = {"kernel": name, "eigen_solver": "dense", **GIVEN.get(name, {})}
    ours, theirs = (kind(3, **kwargs).fit(X) for kind in (KernelPCA, SklearnKernelPCA))
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-8)
    np.testing.assert_allclose(ours.eigenvectors_, theirs.eigenvectors_, atol=1e-7)
    np.testing.assert_allclose(ours.transform(new), theirs.transform(new), atol=1e-7)


@pytest.mark.parametrize("memory", [1_400_000, 3 * 10**6, 10**8])
def test_budget_does_not_change_the_result(memory):
    X = data(500, 4, 14)
    model = KernelPCA(4, kernel="rbf", gamma=0.3, memory=memory, eigen_solver="krylov").fit(X)
    values, _ = oracle.eigenpairs(oracle.kernel_matrix("rbf", X, gamma=0.3), 4)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=0, atol=1e-9 * values[0])


@few
@given(
    n=st.integers(3, 90),
    d=st.integers(1, 9),
    r=st.integers(1, 6),
    name=st.sampled_from(NAMES),
    single=st.booleans(),
    center=st.booleans(),
    seed=st.integers(0, 10**6),
    solver=st.sampled_from(["auto", "dense", "krylov"]),
)
def test_any_shape_kernel_and_precision(n, d, r, name, single, center, seed, solver):
    """The whole pipeline against the oracle: eigenvalues, scores' lengths, errors, shares."""
    X = data(n, d, seed, np.float32 if single else np.float64)
    K = exact(name, X)
    values, _ = oracle.eigenpairs(K, centered=center)
    r = min(r, n)
    # Only where the wanted eigenvalues are clear of zero is there something to compare.
    if name == "additive_chi2" and not center:
        return
    if values[0] <= 1e-6 * np.abs(K).max() or values[r - 1] < 1e-5 * values[0]:
        return
    if values[r - 1] < np.abs(min(values[-1], 0)):
        return
    model = KernelPCA(
        r, kernel=name, center=center, eigen_solver=solver, random_state=0, **GIVEN.get(name, {})
    ).fit(X)
    scale = np.abs(K).max() * n
    atol = (1e-6 if single else 1e-10) * scale
    np.testing.assert_allclose(model.eigenvalues_, values[:r], rtol=0, atol=atol)
    total = oracle.total_variance(K, center)
    np.testing.assert_allclose(
        model.explained_variance_ratio_, values[:r] / total, rtol=0, atol=10 * atol / total
    )
    S = model.transform(X)
    assert S.shape == (n, r) and S.dtype == X.dtype
    np.testing.assert_allclose(
        (S.astype(float) ** 2).sum(axis=0),
        values[:r],
        rtol=0,
        atol=100 * atol * np.sqrt(scale / values[r - 1]),
    )
    errors = model.reconstruction_error(X).astype(float)
    left = max(total - values[:r].sum(), 0)
    if values[-1] > -1e-9 * values[0]:
        assert errors.sum() == pytest.approx(left, abs=1000 * atol * scale / values[r - 1])


@pytest.mark.parametrize("seed", range(3))
def test_landmarks_and_all_points_have_the_same_signs(seed):
    """Pictures of both fits of the same data are not mirrored."""
    rng = np.random.default_rng(seed)
    X = np.exp(0.5 * rng.standard_normal((400, 3))) * [3.0, 2.0, 1.0]
    exact = KernelPCA(4, kernel="rbf", gamma=0.05).fit_transform(X)
    reduced = KernelPCA(4, kernel="rbf", gamma=0.05, basis=Landmarks(150), random_state=seed)
    for some in (reduced, clone(reduced).set_params(basis="features")):
        agreement = np.einsum("ij,ij->j", exact, some.fit_transform(X))
        assert (agreement[:3] > 0).all()
