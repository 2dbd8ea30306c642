import numpy as np
import pytest

from mercer import metrics


class RowsOnly:
    """A Gram matrix known by its rows and products, as the library's operators are."""

    def __init__(self, K):
        self.K, self.shape = K, K.shape

    def rows(self, index):
        return self.K[index]

    def __matmul__(self, V):
        return self.K @ V


@pytest.fixture
def K():
    X = np.random.default_rng(0).standard_normal((300, 12)) * np.arange(1, 13)
    X -= X.mean(axis=0)
    return X @ X.T


def directions(K, r):
    values, U = np.linalg.eigh(K)
    return (U[:, ::-1][:, :r] / np.sqrt(values[::-1][:r])).T, values


def test_exact_directions_have_no_excess(K):
    A, values = directions(K, 4)
    minimum = metrics.minimal_reconstruction_error(values, 4)
    assert metrics.reconstruction_error(K, A) == pytest.approx(minimum, rel=1e-12)
    assert abs(metrics.excess_reconstruction_error(K, A)) < 1e-12
    assert abs(metrics.excess_reconstruction_error(RowsOnly(K), A, minimum)) < 1e-12


def test_excess_is_the_definition(K):
    A = directions(K, 4)[0] * 0.9
    S = A @ K
    minimum = np.linalg.norm(np.sort(np.linalg.eigvalsh(K))[::-1][4:])
    expected = np.linalg.norm(K - S.T @ S) / minimum - 1
    assert metrics.excess_reconstruction_error(K, A) == pytest.approx(expected, rel=1e-10)


def test_excess_of_a_matrix_that_r_directions_explain(K):
    A, _ = directions(K, 12)
    assert metrics.excess_reconstruction_error(K, A) < 1e-12
    assert metrics.excess_reconstruction_error(np.zeros((3, 3)), np.zeros((1, 3))) == 0.0


def test_projection_error_is_the_trace_of_the_residual(K):
    Z = np.arange(5)
    R = K - K[:, Z] @ np.linalg.pinv(K[np.ix_(Z, Z)]) @ K[Z]
    error = metrics.projection_error(K[:, Z], K[np.ix_(Z, Z)], np.diag(K))
    assert error == pytest.approx(np.trace(R) / np.trace(K), rel=1e-10)


def test_projection_error_with_repeated_landmarks(K):
    Z = np.array([0, 1, 1, 2])
    once = metrics.projection_error(K[:, :3], K[:3, :3], np.diag(K))
    twice = metrics.projection_error(K[:, Z], K[np.ix_(Z, Z)], np.diag(K))
    assert twice == pytest.approx(once, rel=1e-9)


@pytest.mark.parametrize("angle", [0.0, 1e-10, 1e-3, 1.0])
def test_subspace_error_is_the_sine(angle):
    U = np.eye(6)[:, :2]
    V = U.copy()
    V[:, 1] = np.cos(angle) * V[:, 1] + np.sin(angle) * np.eye(6)[2]
    mixed = V @ np.array([[1.0, 3.0], [0.0, 2.0]])
    assert metrics.subspace_error(U, mixed) == pytest.approx(np.sin(angle), abs=1e-15, rel=1e-6)


def test_subspace_error_within_a_larger_span():
    assert metrics.subspace_error(np.eye(5)[:, :2], np.eye(5)[:, :4]) < 1e-15


def test_variation_of_information():
    rng = np.random.default_rng(1)
    a, b, c = rng.integers(0, 5, (3, 4000))
    vi = metrics.variation_of_information
    assert max(vi(a, a), vi(a, (a + 2) % 5)) < 1e-12
    assert vi(a, b) == pytest.approx(vi(b, a))
    assert vi(a, c) <= vi(a, b) + vi(b, c)
    # Independent clusterings: the sum of the entropies.
    assert vi(a, b) == pytest.approx(2 * np.log(5), abs=0.02)
    assert vi(a, np.zeros_like(a)) == pytest.approx(np.log(5), abs=0.01)


def test_snr():
    rng = np.random.default_rng(2)
    clean = 5 + rng.standard_normal((50, 50))
    noise = rng.standard_normal((50, 50))
    noise *= np.sqrt(np.var(clean) / 100 / np.mean(noise**2))
    assert metrics.snr(clean, clean + noise) == pytest.approx(20.0)
    assert metrics.snr(clean, clean) == np.inf
