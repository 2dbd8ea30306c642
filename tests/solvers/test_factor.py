"""A basis, a Cholesky factor or probes say that no component was missed: never where one was."""

import numpy as np
import pytest

from mercer import KernelPCA
from mercer.fitting.certificate import Rounding, certify
from mercer.operators import DenseOperator
from mercer.solvers import Arpack
from mercer.solvers.peers import rest_bound


def drawn_matrix(rng, n):
    """Clusters, copies and near copies above a bulk that decays or is flat; some indefinite."""
    values = np.repeat(rng.uniform(0.1, 1.0, 5), rng.integers(1, 4, 5))
    near = rng.choice([0.0, 1e-12, 1e-9, 1e-6, 1e-3])
    values = values * (1 + near * rng.normal(size=len(values)))
    bulk = rng.uniform(0, 0.3, n - len(values)) ** rng.choice([1, 4])
    bulk -= 0.1 * (rng.random() < 0.3)
    values = np.sort(np.concatenate([values, bulk]))[::-1] * 10.0 ** rng.integers(-60, 61)
    Q, _ = np.linalg.qr(rng.normal(size=(n, n)))
    A = (Q * values) @ Q.T
    return values, Q, (A + A.T) / 2


@pytest.mark.parametrize("seed", range(6))
def test_no_bound_is_below_what_is_left_out(seed):
    rng = np.random.default_rng(seed)
    stated = 0
    for _ in range(15):
        n, r = int(rng.integers(30, 120)), int(rng.integers(1, 9))
        values, Q, A = drawn_matrix(rng, n)
        taken = np.arange(r) if rng.random() < 0.3 else np.delete(np.arange(r + 1), rng.integers(r))
        U = Q[:, taken] + rng.choice([0.0, 1e-12, 1e-6, 1e-2]) * rng.normal(size=(n, r)) / n**0.5
        matrix = np.asfortranarray(A)
        bound = rest_bound(matrix, values[taken], U, float(np.linalg.norm(A)))
        V, _ = np.linalg.qr(U)
        P = np.eye(n) - V @ V.T
        left = np.linalg.eigvalsh(P @ (A / values[0]) @ P)[-1]
        assert bound / values[0] >= left - 1e-14, (n, r)
        np.testing.assert_array_equal(np.triu(matrix), np.triu(A))
        stated += bound < np.inf
    assert 1 <= stated < 15


@pytest.mark.parametrize("n", [90, 300])
def test_components_of_drawn_spectra_are_true_and_all_proven_of_definite_ones(n):
    for seed in range(6):
        rng = np.random.default_rng([seed, n])
        values, _, A = drawn_matrix(rng, n)
        r, top, unit = int(rng.integers(1 if n < 250 else 10, 15)), 1.0, float(values[0])
        operator = DenseOperator(A / unit)
        operator.definite = bool(values[-1] >= 0)
        true = np.linalg.eigvalsh(A / unit)[::-1][:r]
        pairs = Arpack(form=True, to_rounding=True).solve(operator, r, rng)
        slack = 4 * n * np.finfo(float).eps * top
        rounding = (Rounding(slack, slack, (slack * top) ** 0.5, slack),)
        stated = certify(pairs, n, float(np.trace(A)) / unit, rounding, definite=operator.definite)
        assert (stated.eigenvalue_lower <= true + slack).all(), seed
        assert (stated.eigenvalue_upper >= true - slack).all(), seed
        assert np.max(np.abs(pairs.values - true)) <= 2e-6 * top, seed
        assert stated.n_proven == r or not operator.definite, seed


def test_ends_by_the_basis_or_by_probes_are_true():
    """Of matrices too large for a factor: the basis of Lanczos proves, else a random start does."""
    proven = 0
    for draw in range(16):
        rng = np.random.default_rng([draw, 5])
        n, r = int(rng.integers(360, 520)), int(rng.integers(1, 10))
        values, _, A = drawn_matrix(rng, n)
        unit = float(values[0])
        operator = DenseOperator(A / unit)
        operator.definite = bool(values[-1] >= 0)
        true = np.linalg.eigvalsh(A / unit)[::-1][:r]
        pairs = Arpack(form=True, to_rounding=True).solve(operator, r, rng)
        slack = 4 * n * np.finfo(float).eps
        rounding = (Rounding(slack, slack, slack**0.5, slack),)
        stated = certify(pairs, n, float(np.trace(A)) / unit, rounding, definite=operator.definite)
        upper = stated.eigenvalue_upper if stated.confidence is None else stated.likely_upper
        assert (stated.eigenvalue_lower <= true + slack).all(), draw
        assert (upper >= true - slack).all(), draw
        assert (stated.eigenvalue_upper >= true - slack).all(), draw
        if pairs.converged:
            assert np.max(np.abs(pairs.values - true)) <= 2e-6, draw
        proven += stated.n_proven == r
    assert proven >= 4


@pytest.mark.parametrize(
    ("n", "d", "r"),
    [(1000, 10, 12), (1000, 10, 50), (60, 10, 2), (150, 10, 8), (250, 10, 1), (500, 100, 8)]
    + [(500, 10, 2), (800, 60, 3), (1500, 100, 8), (1500, 10, 2)],
)
def test_all_components_of_exact_fits_are_proven(n, d, r):
    X = np.random.default_rng(r).standard_normal((n, d)) / np.sqrt(1 + np.arange(d) / 4)
    model = KernelPCA(r, kernel="rbf", eigen_solver="arpack", random_state=0).fit(X)
    assert model.certificate_.n_proven == r
    assert model.certificate_.confidence in (None, 1 - 1e-6)
