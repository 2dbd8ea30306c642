"""Gram power: the published recursion, its block form, and the linear case."""

import os
import tracemalloc
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from mercer import KernelPCA
from mercer.compute import to_numpy
from mercer.operators import DenseOperator, SymmetricOperator
from mercer.solvers.gram_power import GramPower, sequential_pass


def centered(K):
    means = K.mean(axis=0)
    return K - means - means[:, None] + means.mean()


def gaussian(X, width):
    norms = np.sum(X**2, axis=1)
    return centered(np.exp(-np.maximum(norms[:, None] + norms - 2 * X @ X.T, 0) / width))


def excess(K, values, U, r):
    best = np.linalg.norm(np.linalg.eigvalsh(K)[:-r])
    A = U[:, :r] / np.sqrt(values[:r])
    S = K @ A
    return np.linalg.norm(K - S @ S.T) / best - 1


@pytest.fixture(scope="module")
def digits():
    return gaussian(load_digits().data[:600] / 16, 8.0)


def published(K, k, passes, amnesic):
    """Equations 11 and 12 in the words of the paper; amnesic as in Weng, Zhang and Hwang."""
    m = len(K)
    omega = [None] * k
    for i in range(k):
        residual = K[i].copy()
        for j in range(i):
            residual = residual - residual @ omega[j] / (omega[j] @ omega[j]) * omega[j]
        omega[i] = residual
    n = k
    for _ in range(passes):
        for t in range(m):
            n += 1
            K_i = K[t].copy()
            for i in range(k):
                unit = omega[i] / np.linalg.norm(omega[i])
                old, new = (n - 1 - amnesic) / n, (1 + amnesic) / n
                omega[i] = old * omega[i] + new * K_i * (K_i @ unit)
                unit = omega[i] / np.linalg.norm(omega[i])
                K_i = K_i - (K_i @ unit) * unit
    return np.array(omega)


@pytest.mark.parametrize("amnesic", [0.0, 2.0])
def test_block_of_one_is_the_published_algorithm(digits, amnesic):
    K, k = digits[:80, :80], 4
    U, L = np.zeros((80, 0)), np.zeros(0)
    for done in range(2):
        U, L = sequential_pass(DenseOperator(K), U, L, 80 * done, k, amnesic)
    omega = published(K, k, 2, amnesic)
    scale = np.linalg.norm(omega, axis=1)
    np.testing.assert_allclose(L, scale, rtol=1e-11)
    np.testing.assert_allclose(U.T * L[:, None], omega, atol=1e-11 * scale.max())


def test_solver_with_block_one_counts_as_published(digits):
    K = digits[:80, :80]
    pairs = GramPower(block=1, amnesic=2, n_passes=3).solve(
        DenseOperator(K), 4, np.random.default_rng(0)
    )
    V, _ = np.linalg.qr(published(K, 4, 3, 2.0).T)
    values = np.linalg.eigvalsh(V.T @ K @ V)[::-1]
    np.testing.assert_allclose(pairs.values, values, rtol=1e-9)


@pytest.mark.parametrize("block", [2, 7, 128, 1000])
def test_residuals_are_true_and_vectors_orthonormal(digits, block):
    solver = GramPower(block=block)
    pairs = solver.solve(DenseOperator(digits), 6, np.random.default_rng(1))
    U = pairs.vectors
    true = np.linalg.norm(digits @ U - U * pairs.values, axis=0)
    np.testing.assert_allclose(pairs.residuals, true, atol=1e-10 * pairs.values[0])
    np.testing.assert_allclose(U.T @ U, np.eye(6), atol=1e-12)
    assert (np.diff(pairs.values) <= 0).all()
    assert pairs.n_passes == 2
    assert pairs.converged == (pairs.residuals.max() <= 1e-9 * pairs.values[0])


def test_one_pass_is_nearly_exact(digits):
    pairs = GramPower().solve(DenseOperator(digits), 8, np.random.default_rng(2))
    assert excess(digits, pairs.values, pairs.vectors, 8) < 1e-4


def test_one_block_of_all_rows_is_exact(digits):
    pairs = GramPower(block=600).solve(DenseOperator(digits), 8, np.random.default_rng(3))
    np.testing.assert_allclose(pairs.values, np.linalg.eigvalsh(digits)[::-1][:8], rtol=1e-10)


def test_passes_go_on_until_the_tolerance(digits):
    seen = []
    solver = GramPower(n_passes=2)
    pairs = solver.solve(DenseOperator(digits), 5, np.random.default_rng(4), 1e-8, seen.append)
    assert pairs.converged and pairs.residuals.max() <= 1e-8 * pairs.values[0]
    assert len(seen) > 3 and pairs.n_passes == 2 + len(seen) == seen[-1].n_passes
    residuals = [state.residual for state in seen]
    assert residuals == sorted(residuals, reverse=True)


def test_flat_spectra_are_said_not_to_converge():
    Q, _ = np.linalg.qr(np.random.default_rng(14).standard_normal((200, 200)))
    A = Q * (1 + 0.01 * np.cos(np.arange(200.0))) @ Q.T
    pairs = GramPower().solve(DenseOperator(A), 5, np.random.default_rng(4), 1e-9)
    assert not pairs.converged and pairs.residuals.max() > 1e-9


def test_report_can_stop(digits):
    pairs = GramPower(n_passes=9).solve(
        DenseOperator(digits), 5, np.random.default_rng(5), 1e-14, lambda state: True
    )
    assert pairs.n_passes == 2 and not pairs.converged


@pytest.mark.parametrize("rank", [0, 1, 3])
@pytest.mark.parametrize("block", [1, 16])
def test_fewer_directions_than_asked_for(rank, block):
    X = np.random.default_rng(6).standard_normal((40, rank))
    pairs = GramPower(block=block).solve(DenseOperator(X @ X.T), 5, np.random.default_rng(7))
    assert np.isfinite(pairs.vectors).all() and np.isfinite(pairs.residuals).all()
    expected = np.linalg.eigvalsh(X @ X.T)[::-1][:5]
    if block > 1:
        np.testing.assert_allclose(pairs.values, expected, atol=1e-9 * (1 + expected[0]))


def test_single_precision_rows(digits):
    single = DenseOperator(digits.astype(np.float32))
    pairs = GramPower().solve(single, 6, np.random.default_rng(8))
    np.testing.assert_allclose(pairs.values, np.linalg.eigvalsh(digits)[::-1][:6], rtol=1e-4)


def test_linear_kernel_is_ccipca_of_the_data():
    """On the rows of a linear Gram matrix the vectors are the scores of plain PCA."""
    X = load_digits().data[:400]
    X = X - X.mean(axis=0)
    pairs = GramPower(n_passes=4).solve(DenseOperator(X @ X.T), 4, np.random.default_rng(9), 1e-8)
    _, s, Vt = np.linalg.svd(X, full_matrices=False)
    np.testing.assert_allclose(pairs.values, s[:4] ** 2, rtol=1e-6)
    axes = X.T @ pairs.vectors / np.sqrt(pairs.values)
    np.testing.assert_allclose(np.abs(np.sum(axes * Vt[:4].T, axis=0)), 1.0, atol=1e-5)


def test_three_clusters_of_the_paper():
    """Table 1: eigenvalues 22.558, 20.936, 4.648 for one draw; here the mean of twelve."""
    rng = np.random.default_rng(10)
    centers = np.repeat([[-0.5, -0.2], [0.0, 0.6], [0.5, 0.0]], 30, axis=0)
    values = []
    for _ in range(12):
        K = gaussian(centers + 0.1 * rng.standard_normal((90, 2)), 0.1)
        values.append(GramPower(block=30).solve(DenseOperator(K), 3, rng).values)
    # The standard deviation of a draw is about 0.7, 0.75 and 0.45.
    np.testing.assert_allclose(np.mean(values, axis=0), [22.67, 21.54, 4.25], atol=0.65)


def test_memory_is_linear_in_the_rows():
    n, r = 6000, 5
    x = np.random.default_rng(11).uniform(0, 3, n)

    class Streamed(SymmetricOperator):
        shape = (n, n)

        def to_dense(self):
            raise AssertionError("the matrix does not fit")

        def rows(self, index):
            return np.exp(-((x[index, None] - x) ** 2))

        def __matmul__(self, V):
            parts = [self.rows(np.arange(i, min(n, i + 64))) @ V for i in range(0, n, 64)]
            return np.concatenate(parts)

    tracemalloc.start()
    GramPower(block=64, oversampling=5).solve(Streamed(), r, np.random.default_rng(12))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * n * (5 * 64 + 8 * (r + 5))


def test_usps_one_pass():
    root = os.environ.get("MERCER_DATA")
    if not root:
        pytest.skip("MERCER_DATA does not name a folder with usps.npz")
    stored = np.load(os.path.join(root, "usps.npz"))
    X, y = stored["X_train"] / stored["scale"], stored["y_train"]
    X = X[np.concatenate([np.flatnonzero(y == digit)[:100] for digit in range(10)])]
    K = gaussian(X, 128.0)
    solver = GramPower(oversampling=16)
    pairs = solver.solve(DenseOperator(K), 16, np.random.default_rng(13))
    assert excess(K, pairs.values, pairs.vectors, 16) < 2e-5


@pytest.mark.parametrize("amnesic", [0.0, 2.0])
def test_recursion_alone_is_the_published_result(digits, amnesic):
    K = digits[:80, :80]
    solver = GramPower(block=1, amnesic=amnesic, n_passes=3, rotate=False)
    pairs = solver.solve(DenseOperator(K), 4, np.random.default_rng(0))
    omega = published(K, 4, 3, amnesic)
    lengths = np.linalg.norm(omega, axis=1)
    order = np.argsort(-lengths)
    np.testing.assert_allclose(pairs.values, np.sqrt(80 * lengths[order]), rtol=1e-10)
    units = (omega / lengths[:, None])[order]
    np.testing.assert_allclose(pairs.vectors.T, units, atol=1e-10)
    true = np.linalg.norm(K @ units.T - units.T * pairs.values, axis=0)
    np.testing.assert_allclose(pairs.residuals, true, rtol=1e-8)
    assert not pairs.ritz and pairs.n_passes == 4


@pytest.mark.parametrize("block", [1, 30])
def test_errors_are_true_without_rotation(block):
    """Vectors that are not orthonormal still give the right reconstruction errors."""
    X = np.random.default_rng(block).standard_normal((90, 3))
    power = GramPower(block=block, n_passes=2, rotate=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KernelPCA(4, kernel="rbf", gamma=0.5, eigen_solver=power).fit(X)
    A = to_numpy(model.expansion_.frame[:, 1:])
    K = model.kernel_(X)
    np.testing.assert_allclose(model.expansion_.metric[1:, 1:], A.T @ K @ A, atol=1e-10)
    H = np.eye(90) - 1 / 90
    P = H @ K @ A
    errors = np.diag(H @ K @ H) - 2 * np.sum(P * P, 1) + np.sum((P @ (A.T @ K @ A)) * P, 1)
    np.testing.assert_allclose(model.reconstruction_error(X), errors, atol=1e-10)


def test_unit_features_are_equation_6():
    X = np.random.default_rng(5).standard_normal((60, 3))
    model = KernelPCA(3, kernel="poly", degree=2, gamma=1.0, coef0=0.0).fit(X[:40])
    K, k = model.kernel_(X[:40]), model.kernel_(X[40:], X[:40])
    H = np.eye(40) - 1 / 40
    expected = (k - K.mean(axis=0)) @ H @ model.eigenvectors_
    np.testing.assert_allclose(model.unit_features(X[40:]), expected, atol=1e-9)
