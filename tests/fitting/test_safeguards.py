"""Safeguards of the numerics, each in a case where leaving it out gives a wrong answer.

Most of them act seldom, so that tests of ordinary problems pass without them.
"""

import numpy as np
import oracle
import pytest
from contracts import generator

from mercer import KernelPCA
from mercer.bases import Landmarks
from mercer.bases.whitening import CholeskyWhitening, choose_whitening
from mercer.compute import LocalEngine
from mercer.fitting.moments import MomentsOf
from mercer.fitting.problems import ReducedProblem
from mercer.hebbian import HebbianRule
from mercer.kernels import RBF, Linear, Polynomial
from mercer.operators import DenseOperator
from mercer.preimage.fixed_point import climb
from mercer.solvers import BlockKrylov, GramPower
from mercer.solvers.gram_power import ipca_update, split

ENGINE = LocalEngine(10**8, 1)


def spiky(n, seed):
    """A symmetric matrix with a spectrum of many orders."""
    Q, _ = np.linalg.qr(generator(n, seed).standard_normal((n, n)))
    return (Q * np.geomspace(1, 1e-6, n)) @ Q.T


class Rounded(DenseOperator):
    """A matrix whose draft is rounded so coarsely that a residual must show it."""

    def __init__(self, A, noise):
        super().__init__(A)
        E = generator(5).standard_normal(A.shape)
        self._draft = DenseOperator(A + noise * (E + E.T))

    @property
    def draft(self):
        return self._draft


@pytest.mark.parametrize("noise", [1e-8, 1e-6, 1e-5])
def test_residuals_hold_what_the_search_left_and_what_rounding_changed(noise):
    """Of a draft's pairs: the part outside of the subspace, and the difference of the products."""
    A = spiky(400, 0)
    for max_passes in (3, 100):
        solver = BlockKrylov(oversampling=4, max_passes=max_passes)
        pairs = solver.solve(Rounded(A, noise), 5, generator(1), tol=1e-4)
        true = np.linalg.norm(A @ pairs.vectors - pairs.vectors * pairs.values, axis=0)
        assert np.all(pairs.residuals >= 0.5 * true)
        assert np.all(pairs.residuals <= 50 * true + 1e-12)


def test_squared_errors_are_not_negative():
    """Rows that all components explain have an error of nothing, give or take rounding."""
    X = generator(2).standard_normal((60, 2))
    for kernel in (Linear(), Polynomial(degree=2, gamma=100.0)):
        model = KernelPCA(kernel=kernel).fit(1e3 * X)
        errors = model.reconstruction_error(1e3 * X)
        expansion = model.expansion_
        P = expansion.basis.project(1e3 * X, expansion.frame)
        t = P - expansion.metric[0]
        t[:, 0] = 1.0
        norms = expansion.basis.norms(1e3 * X)
        raw = norms - 2 * (t * P).sum(axis=1) + ((t @ expansion.metric) * t).sum(axis=1)
        assert raw.min() < 0, "the case is one where rounding makes them negative"
        assert errors.min() == 0.0


@pytest.mark.parametrize("gap", [1e-1, 1e-3])
def test_eigenvalues_do_not_depend_on_when_rows_are_whitened(gap):
    """Summed first, rounding grows by the condition of the landmarks: there must be a limit."""
    X = generator(3).standard_normal((300, 3))
    Z = np.vstack([X[:15], X[:15] + gap * generator(4).standard_normal((15, 3))])
    basis = Landmarks(points=Z).build(RBF(0.3), X, ENGINE, None)
    whitening = choose_whitening(basis, X, len(X))
    function = MomentsOf(basis, whitening)
    problem = ReducedProblem(basis, whitening, function.finished(function(X, 0)))
    K, K_XZ, K_ZZ = (
        oracle.kernel_matrix("rbf", A, B, gamma=0.3) for A, B in ((X, X), (X, Z), (Z, Z))
    )
    w, V = np.linalg.eigh(K_ZZ)
    kept = w > 30 * np.finfo(float).eps * w[-1]
    Y = K_XZ @ (V[:, kept] / np.sqrt(w[kept]))
    Y -= Y.mean(axis=0)
    exact = np.linalg.svd(Y, compute_uv=False) ** 2
    values = np.linalg.eigvalsh(problem.operator.to_dense())[::-1]
    allowed = max(problem.rounding, 1e-12) * np.trace(K)
    np.testing.assert_allclose(values[:10], exact[:10], atol=allowed)
    assert allowed < 1e-6 * np.trace(K), "rounding is kept small by whitening early"
    late = isinstance(whitening, CholeskyWhitening) or whitening.late is not None
    assert late == (np.linalg.cond(K_ZZ) * np.finfo(float).eps < 3e-8)


def test_what_lies_outside_of_a_span_is_orthogonal_to_it():
    """Once is not enough where little lies outside: rounding of the rest would stay in it."""
    U, _ = np.linalg.qr(generator(5).standard_normal((50, 6)))
    K = 1e6 * generator(6).standard_normal((9, 6)) @ U.T + 1e-6 * generator(7).standard_normal(
        (9, 50)
    )
    C, E = split(K, U)
    np.testing.assert_allclose(C @ U.T + E, K, rtol=1e-13, atol=1e-9)
    assert np.abs(E @ U).max() <= 1e-14 * np.linalg.norm(E) + 1e-20


@pytest.mark.parametrize("g", [0.2, 0.7])
def test_updates_weigh_the_old_and_the_new(g):
    """(1 - g) U L U' + (g / b) K'K: with all directions kept the update is that matrix."""
    n, b = 12, 5
    U, _ = np.linalg.qr(generator(8).standard_normal((n, n)))
    L, K = np.geomspace(3, 0.1, n), generator(9).standard_normal((b, n))
    expected = (1 - g) * (U * L) @ U.T + g / b * K.T @ K
    V, w = ipca_update(U, L, K, g, n)
    np.testing.assert_allclose(np.sort(w), np.linalg.eigvalsh(expected), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose((V * w) @ V.T, expected, atol=1e-11)


@pytest.mark.parametrize("amnesic", [0.0, 2.0])
def test_gram_power_weighs_rows_as_it_says(amnesic):
    """With all directions kept a pass is the weighted mean of the rows' outer products."""
    A, order = spiky(48, 3), generator(10).permutation(48)
    solver = GramPower(block=16, oversampling=48, amnesic=amnesic)
    U, L = solver._pass(DenseOperator(A), np.zeros((48, 0)), np.zeros(0), 0, 48, order)
    expected, seen = np.zeros((48, 48)), 0
    for first in range(0, 48, 16):
        K, seen = A[order[first : first + 16]], seen + 16
        g = min(1.0, (1 + amnesic) * 16 / seen)
        expected = (1 - g) * expected + g * K.T @ K / 16
    if amnesic == 0:
        np.testing.assert_allclose(expected, A @ A / 48, atol=1e-15)
    np.testing.assert_allclose((U * L) @ U.T, expected, atol=1e-13)


@pytest.mark.parametrize("gain", [7e2, 1e3])
def test_a_block_that_multiplies_the_coefficients_is_taken_back(gain):
    """A gain far too large: the rule brakes instead of running away, though all is finite."""
    K = np.full((6, 6), 0.2) + np.eye(6)
    rule = HebbianRule(np.full((1, 6), 1e-9), cap=np.inf)
    rule.step(np.arange(6), K, np.full(1, gain), 0.0, 0.0)
    assert np.isfinite(rule.A).all() and rule.brake < 1.0 and rule.cap == 1.0


class Ridge:
    """-|z - 1|^2 with steps that overshoot: damped once, then of full length again."""

    damping = 1.0
    asked: list

    def __init__(self):
        self.asked = []

    def evaluate(self, Z, W):
        self.asked.append(Z.copy())
        value = -np.square(Z - 1.0).sum(axis=1)
        # The first step overshoots fourfold, the later ones go half of the way.
        factor = 4.0 if len(self.asked) == 1 else 0.5
        return value, np.abs(value), factor * (1.0 - Z)


def test_steps_are_long_again_after_one_that_was_halved():
    form = Ridge()
    Z, _, converged, steps = climb(form, np.ones((1, 1)), np.zeros((1, 3)), 1e-9, 100.0, 60)
    assert converged.all()
    np.testing.assert_allclose(Z, 1.0, atol=1e-8)
    assert steps.max() < 45, "with the step left short it takes twice as long"


@pytest.mark.parametrize("seed", range(4))
def test_ties_of_the_greedy_choice_go_to_the_independent_row(seed):
    """At the last direction all gains are equal: a row nearly in the span is no landmark."""
    from mercer.selectors import FullGreedy

    rng = generator(11, seed)
    X = rng.standard_normal((40, 3))
    X[5:12] = X[0] + 1e-7 * rng.standard_normal((7, 3))
    chosen = FullGreedy().select(Linear(), X, 3, None)
    w = np.linalg.eigvalsh(X[chosen] @ X[chosen].T)
    assert w[-1] / w[0] < 1e4
