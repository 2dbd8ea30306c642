"""Each term of the bounds, on a matrix for which the statement is false without it.

The matrix that was multiplied, A, and the true one differ by as much as the rounding allows, in the
direction that hurts. Bounds are met up to rounding of the last digit where they are sharp.
"""

from dataclasses import replace

import numpy as np
import pytest
from contracts import generator

from mercer.fitting.certificate import Rounding, certify, projection_certificate
from mercer.fitting.remainder import Remainder
from mercer.solvers import Eigenpairs
from mercer.solvers.base import Evidence

CLOSE, EXACT = 1e-12, Rounding()


def stated(*seen, size, total, r=None, rounding=(EXACT,), residuals=None, **known):
    """The certificate of the first r Ritz pairs of the last evidence."""
    last = seen[-1]
    values = last.values[:r] * last.unit
    if residuals is None:
        RR = np.zeros((values.size, values.size)) if last.RR is None else last.RR
        residuals = np.sqrt(np.diag(RR)[:r]) * last.unit
    vectors = np.eye(size, values.size)
    pairs = Eigenpairs(values, vectors, np.asarray(residuals, float), evidence=seen)
    return certify(pairs, size, total, rounding, **known)


def holds(certificate, true):
    """The intervals hold the eigenvalues of their number."""
    true = np.asarray(true, float)[: certificate.eigenvalue_lower.size]
    assert np.all(certificate.eigenvalue_lower <= true + CLOSE)
    assert np.all(true <= certificate.eigenvalue_upper + CLOSE)


def seen_in(A, k, **known):
    """What the first k coordinate vectors say about a matrix."""
    theta, Y = np.linalg.eigh(A[:k, :k])
    theta, Y = theta[::-1], Y[:, ::-1]
    R = A[:, :k] @ Y - np.eye(len(A), k) @ Y * theta
    return Evidence(theta, R.T @ R, **known)


def descending(A):
    return np.linalg.eigvalsh(A)[::-1]


# What no product has seen: gamma from the trace and from the squares.


def test_a_hidden_eigenvalue_that_the_trace_does_not_show():
    """The sum of the diagonal came out too small by its rounding."""
    seen = Evidence(np.array([2.0, 1.0]), np.zeros((2, 2)))
    certificate = stated(seen, size=6, total=3.0, rounding=(Rounding(trace=3.0),), definite=True)
    holds(certificate, [3.0, 2.0])


def test_a_hidden_eigenvalue_that_values_too_large_hide():
    """Every Ritz value came out too large by the rounding of the matrix, and the trace is right."""
    off, hidden = 0.25, 2.0
    seen = Evidence(np.array([1.0, 0.8, 0.6]) + off, np.zeros((3, 3)))
    total = 1.0 + 0.8 + 0.6 + hidden
    rounding = (Rounding(matrix=off),)
    holds(stated(seen, size=9, total=total, rounding=rounding, definite=True), [hidden, 1.0, 0.8])


def test_a_hidden_eigenvalue_is_what_is_left_of_the_trace():
    seen = Evidence(np.array([2.0, 1.0]), np.zeros((2, 2)))
    holds(stated(seen, size=6, total=6.0, definite=True), [3.0, 2.0])


def test_the_last_eigenvalue_of_an_indefinite_matrix():
    """One vector was not seen: it has the rest of the sum, with the rounding of that."""
    seen = Evidence(np.array([1.0, 0.5]), np.zeros((2, 2)), square=1.25 + 9.0)
    holds(stated(seen, size=3, total=4.5), [3.0, 1.0])
    rounded = (Rounding(trace=2.0),)
    holds(stated(seen, size=3, total=2.5, rounding=rounded), [3.0, 1.0])
    seen = Evidence(np.array([1.25, 0.75]), np.zeros((2, 2)), square=1.25 + 9.0)
    holds(stated(seen, size=3, total=4.5, rounding=(Rounding(matrix=0.25),)), [3.0, 1.0])


def test_a_hidden_eigenvalue_that_the_squares_do_not_show():
    """Their sum came out too small by its rounding."""
    seen = Evidence(np.array([1.0, 0.5]), np.zeros((2, 2)), square=1.25 + 4.0)
    rounding = (Rounding(root=5.0**0.5),)
    holds(stated(seen, size=9, total=4.5, rounding=rounding), [3.0, 1.0])


def test_products_too_long_hide_an_eigenvalue():
    """Squares of Ritz values that came out too large are taken off the sum of squares."""
    off, true = 0.01, np.array([10.0, 0.5])
    seen = Evidence(true + off, np.zeros((2, 2)), square=float(true @ true) + 1.0)
    rounding = (Rounding(matrix=off, product=off),)
    certificate = stated(seen, size=1000, total=float(true.sum()) + 1.0, rounding=rounding)
    holds(certificate, [10.0, 1.0])


def test_negative_eigenvalues_hide_a_positive_one():
    """A sum that came out too small leaves less spread to what was not seen."""
    off, hidden, many = 0.3, 2.0, 40
    others = np.full(many - 1, -0.2)
    rest, square = hidden + float(others.sum()), hidden**2 + float(others @ others)
    seen = Evidence(np.array([1.0]), np.zeros((1, 1)), square=1.0 + square)
    rounding, total = (Rounding(trace=off),), 1.0 + rest - off
    holds(stated(seen, size=1 + many, total=total, rounding=rounding), [hidden])


# From gamma to the ends.


def test_residuals_beside_a_hidden_eigenvalue_of_the_same_size():
    A = np.array([[1.0, 0.4], [0.4, 1.0]])
    seen = seen_in(A, 1, rest=1.0)
    certificate = stated(seen, size=2, total=2.0, residuals=[0.4])
    holds(certificate, descending(A))
    assert certificate.eigenvalue_upper[0] <= 1.4 + CLOSE


def test_residuals_above_a_hidden_eigenvalue():
    A = np.array([[2.0, 0.5], [0.5, 1.0]])
    holds(stated(seen_in(A, 1, rest=1.0), size=2, total=3.0, residuals=[0.5]), descending(A))


def test_a_hidden_eigenvalue_below_the_first_and_above_the_second():
    A = np.diag([10.0, 0.0, 1.0])
    A[0, 2] = A[2, 0] = 0.1
    holds(stated(seen_in(A, 2, rest=1.0), size=3, total=11.0), descending(A))
    seen = Evidence(np.array([0.5, 0.0]), np.zeros((2, 2)), rest=1.0)
    holds(stated(seen, size=3, total=1.5), [1.0, 0.5])


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("definite", [False, True])
def test_evidence_bounds_every_eigenvalue_of_any_matrix(seed, definite):
    """Also of indefinite ones, in any unit, and with a basis that says little."""
    rng = generator(seed)
    n, k = int(rng.integers(5, 60)), int(rng.integers(1, 12))
    k, decay, unit = min(k, n), rng.uniform(0.5, 1.0), float(10 ** rng.uniform(-3, 3))
    signs = np.ones(n) if definite else rng.choice([-1.0, 1.0], n, p=[0.2, 0.8])
    values = decay ** np.arange(n) * signs
    V, _ = np.linalg.qr(rng.standard_normal((n, n)))
    # A basis near the leading eigenvectors, or anywhere.
    start = V[:, np.argsort(-values)[:k]] + rng.choice([1e-6, 1e-2, 10.0]) * rng.normal(size=(n, k))
    Q, _ = np.linalg.qr(np.hstack([start, rng.standard_normal((n, n - k))]))
    seen = seen_in(Q.T @ (V * values) @ V.T @ Q, k, square=float(np.sum(values**2)), unit=unit)
    certificate = stated(seen, size=n, total=unit * float(values.sum()), definite=definite)
    true = unit * np.sort(values)[::-1][:k]
    assert np.all(certificate.eigenvalue_lower <= true + CLOSE * unit)
    assert np.all(true <= certificate.eigenvalue_upper + CLOSE * unit)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("source", ["rounding", "doubt"])
def test_a_matrix_that_is_wrong_all_over(sign, source):
    """By rounding, or by what a sample left in doubt, in another unit."""
    off, values = 0.5, np.array([4.0, 3.0, 2.0])
    doubt, matrix = (0.0, off) if source == "rounding" else (off / 8, 0.0)
    seen = Evidence(values / 8, np.zeros((3, 3)), rest=0.1, doubt=doubt, unit=8.0)
    rounding = (Rounding(matrix=matrix),)
    holds(stated(seen, size=5, total=10.0, rounding=rounding), values + sign * off)


def test_a_gap_known_from_a_coarser_precision():
    """Lehmann's bound in a matrix whose second eigenvalue rounding lifts above the true one."""
    off, A = 0.1, np.array([[2.0, 0.5], [0.5, 1.0]])
    values, U = np.linalg.eigh(A)
    true = (U * (values + [-off, off])) @ U.T
    second, first = values + [-off, off]
    coarse = Evidence(np.array([1.5, second]), np.diag([9.0, 0.0]), rest=0.0, level=1)
    fine = seen_in(A, 1, rest=values[0])
    rounding = (Rounding(matrix=off), Rounding())
    certificate = stated(coarse, fine, size=2, total=3.0, rounding=rounding)
    holds(certificate, descending(true))
    # Sharp: what the second eigenvalue may be in the rounded matrix is what makes it wider.
    above = second + off
    assert certificate.eigenvalue_upper[0] <= 2.0 + 0.25 / (2.0 - above) + off + CLOSE
    assert first == pytest.approx(certificate.eigenvalue_upper[0])


def test_a_draft_has_its_own_rounding():
    """Of two precisions each is as wrong as its own rounding allows."""
    draft = Evidence(np.array([3.0]), rest=0.0, level=1)
    fine = Evidence(np.array([3.4]), rest=1.0)
    rounding = (Rounding(matrix=0.5), Rounding(matrix=0.6))
    holds(stated(draft, fine, size=4, total=3.0, rounding=rounding), [3.6])
    holds(stated(draft, fine, size=4, total=3.0, rounding=rounding), [2.9])


# What certificates make of the ends.


def test_how_many_are_proven():
    """As many as there are before the first that may not be the one of its number."""
    seen = Evidence(np.array([2.0, 1.0]), np.zeros((2, 2)), rest=1.5)
    assert stated(seen, size=5, total=5.0).n_proven == 1
    assert stated(replace(seen, rest=2.5), size=5, total=5.0).n_proven == 0
    assert stated(replace(seen, rest=0.5), size=5, total=5.0).n_proven == 2
    mixed = projected([4.0, 3.99, 1.0], 0.01)
    assert np.isnan(mixed.score_error[:2]).all() and np.isfinite(mixed.score_error[2])
    assert mixed.n_proven == 0


def test_rounding_is_not_called_indefinite():
    pairs = Eigenpairs(np.array([1.0]), np.eye(4, 1), np.zeros(1), least=-0.3)
    for definite, off, indefinite in ((True, 0.5, False), (True, 0.2, True), (False, 0.5, True)):
        certificate = certify(pairs, 4, 1.0, (Rounding(matrix=off),), definite=definite)
        assert certificate.indefinite == indefinite


@pytest.mark.parametrize("side", ["above", "below"])
def test_eigenvalues_of_a_kernel_that_is_off(side):
    values = np.array([4.0, 3.0])
    seen, off = Evidence(values, rest=0.0), 0.5
    certificate = stated(seen, size=3, total=7.0, definite=True, **{side: off})
    holds(certificate, values - off if side == "above" else values + off)


def shares_of(held, total):
    return min(held / total, 1.0)


@pytest.mark.parametrize(
    "off",
    [
        {"rounding": (Rounding(matrix=0.5),)},
        {"rounding": (Rounding(trace=0.5),)},
        {"above": 0.5},
        {"below": 0.5},
    ],
)
def test_a_total_that_is_off(off):
    """By rounding of the matrix, of the sum of its diagonal, or by what the kernel is off by."""
    seen = Evidence(np.array([2.0]), rest=0.25)
    low, high = stated(seen, size=40, total=8.0, definite=True, **off).captured_variance
    assert low <= shares_of(2.0, 8.5) + CLOSE and shares_of(2.0, 7.5) <= high + CLOSE


def test_what_directions_hold_when_values_are_no_quotients():
    """Each quotient is as far from its value as the residual and the rounding allow."""
    seen, residuals = Evidence(np.array([3.0, 2.0]), rest=0.25), np.array([0.3, 0.2])
    rounding = (Rounding(matrix=0.1),)
    given = {"size": 40, "total": 10.0, "rounding": rounding, "residuals": residuals}
    low, high = stated(seen, **given).captured_variance
    off = float(residuals.sum()) + 2 * 0.1
    assert low <= shares_of(5.0 - off, 10.0) + CLOSE
    assert shares_of(5.0 + off, 10.0) <= high + CLOSE


def test_what_a_direction_far_from_its_vector_holds():
    """Rows have the variance |A u|^2 / l along A u / sqrt(l)."""
    A = np.array([[1.0, 3.0], [3.0, 20.0]])
    seen = replace(seen_in(A, 1), rest=20.0)
    certificate = stated(seen, size=2, total=21.0, residuals=[3.0])
    along = float(A[0] @ A[0]) / A[0, 0]
    assert along / 21.0 <= certificate.captured_variance[1] + CLOSE


def test_a_captured_share_of_which_nothing_is_proven():
    """Without evidence rounding still counts, once for each component."""
    pairs = Eigenpairs(np.array([3.0, 2.0]), np.eye(9, 2), np.zeros(2))
    certificate = certify(pairs, 9, 10.0, (Rounding(matrix=0.5),))
    low, high = certificate.captured_variance
    assert certificate.kind == "estimate" and certificate.n_proven == 0
    assert low <= 4.0 / 10.5 + CLOSE and high + CLOSE >= 6.0 / 9.5
    rough = certify(replace(pairs, residuals=np.array([0.3, 0.1])), 9, 10.0, (Rounding(0.5),))
    np.testing.assert_allclose(rough.eigenvalue_lower, [2.2, 1.4])
    np.testing.assert_allclose(rough.eigenvalue_upper, [3.8, 2.6])


def turned(angle, values, place):
    """Vector `place` of a diagonal matrix turned towards another, its scores, and the residual."""
    other = 1 - place
    u = np.zeros(2)
    u[place], u[other] = np.cos(angle), np.sin(angle)
    product = values * u
    return product / np.sqrt(values[place]), float(np.linalg.norm(product - values[place] * u))


@pytest.mark.parametrize(
    "values, place, angle",
    [
        ([1.001, 1.0], 0, 0.7),  # of a close neighbor all of the angle, and more than its sine
        ([1.001, 1.0], 1, 0.7),
        ([50.0, 1.0], 1, 0.005),  # scores have the residual over the eigenvalue beside the angle
        ([1.0, -3.0], 0, 0.1),
    ],
)
@pytest.mark.parametrize("part", ["residual", "rounding", "kernel"])
def test_scores_along_a_vector_that_is_turned(values, place, angle, part):
    """By an angle that residual, rounding or the error of the kernel, in turn, stands for."""
    values = np.array(values)
    scores, off = turned(angle if part == "residual" else angle / 4, values, place)
    seen = Evidence(values[: place + 1], rest=0.0 if place else float(values[1]))
    options = {
        "residual": {"residuals": np.full(place + 1, off)},
        "rounding": {"rounding": (Rounding(matrix=off),), "projection": 1e-300},
        "kernel": {"above": off, "projection": 1e-300},
    }[part]
    error = stated(seen, size=3, total=float(values.sum()), **options).score_error[place]
    true = np.sqrt(values[place]) * np.eye(2)[place]
    assert np.isfinite(error)
    assert np.linalg.norm(scores - true) <= (error + CLOSE) * np.linalg.norm(true)


def test_scores_made_in_a_coarser_precision():
    """Rows are projected with a rounding of their own."""
    seen, off = Evidence(np.array([4.0]), rest=0.0), 0.4
    known = stated(seen, size=3, total=4.0, projection=off).score_error[0]
    assert off / 4.0 <= known + CLOSE


def test_a_neighbor_may_be_as_near_as_its_interval():
    """The one below may be at its upper end, and the one above at its lower end."""
    angle = 0.3
    seen = Evidence(np.array([1.0, 0.5]), np.diag([0.0, 0.16]), rest=0.0)
    below = stated(seen, size=3, total=2.0).eigenvalue_upper[1]
    scores, off = turned(angle, np.array([1.0, below]), 0)
    error = stated(seen, size=3, total=2.0, residuals=[off, 0.4]).score_error[0]
    assert below > 0.6 and np.linalg.norm(scores - [1.0, 0.0]) <= error + CLOSE
    # The first value is above what it stands for.
    true = np.array([0.8, 0.5])
    scores, off = turned(angle, true, 1)
    pairs = Eigenpairs(
        np.array([1.0, 0.5]),
        np.eye(3, 2),
        np.array([0.2, off]),
        evidence=(Evidence(true, rest=0.0),),
    )
    error = certify(pairs, 3, 1.3, (Rounding(),)).score_error[1]
    assert np.isfinite(error)
    assert np.linalg.norm(scores - [0.0, 0.5**0.5]) <= (error + CLOSE) * 0.5**0.5


# A subspace, and what it leaves out.


def projected(values, lost, total=None, slack=0.0, remainder=None, residual=0.0, **known):
    """The certificate of a small problem that was solved for all its eigenvalues."""
    values = np.asarray(values, float)
    seen = Evidence(values, rest=0.0)
    pairs = Eigenpairs(
        values, np.eye(values.size), np.full(values.size, residual), evidence=(seen,)
    )
    total = float(values.sum()) + lost if total is None else total
    return projection_certificate(pairs, values.size, total, lost, slack, remainder, **known)


def test_what_a_span_leaves_out_may_be_along_what_it_holds():
    """Equal rows, of which a landmark sees a part: all that is lost is in one direction."""
    holds(projected([4.0, 0.0], 3.0), [7.0, 0.0])
    holds(projected([4.0, 3.5], 3.0), [7.0, 3.5])
    holds(projected([4.0, 3.5], 3.0), [4.0, 4.0])
    holds(projected([4.0, 0.0], 3.0, remainder=Remainder(2.0, 2.0, True, 1.0)), [6.0, 1.0])
    # Or in several, each of which has its share.
    holds(projected([4.0, 0.0, 0.0], 3.0), [4.0, 1.5, 1.5])
    holds(projected([4.0, 1.0, 0.0], 3.0), [4.0, 2.5, 1.5])


def test_a_small_problem_that_was_not_solved_to_the_end():
    A = np.array([[2.0, 0.5], [0.5, 1.0]])
    pairs = Eigenpairs(
        np.array([2.0]), np.eye(2, 1), np.array([0.0]), evidence=(seen_in(A, 1, rest=1.0),)
    )
    holds(projection_certificate(pairs, 2, 3.0, 0.0), descending(A))


@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("part", ["slack", "residual"])
def test_rounding_of_a_small_problem(sign, part):
    off = 0.25
    options = {"slack": off} if part == "slack" else {"residual": off}
    values = np.array([4.0, 3.0])
    certificate = projected(values, 1.0, **options)
    true = values + (0.0 if sign < 0 else 1.0) + sign * off
    holds(certificate, np.minimum(true, [np.inf, 3.5 + off if sign > 0 else np.inf]))


def test_what_the_sample_says_is_beside_rounding():
    """Of a span eigenvalues only grow; of features they move either way."""
    values, off = np.array([4.0, 3.0]), 0.25
    likely = Remainder(3.0, 1.0, True, 1 - 1e-6)
    certificate = projected(values, 3.0, slack=off, remainder=likely)
    assert np.all(certificate.likely_lower <= values - off + CLOSE)
    assert certificate.likely_upper[0] >= 5.0 + off - CLOSE
    either = Remainder(np.inf, 1.0, False, 1 - 1e-6)
    certificate = projected(values, 0.0, slack=off, remainder=either, certain=False)
    assert certificate.kind == "estimate" and certificate.confidence == 1 - 1e-6
    for lower, upper in (
        (certificate.likely_lower, certificate.likely_upper),
        (certificate.eigenvalue_lower, certificate.eigenvalue_upper),
    ):
        assert np.all(lower <= values - 1.0 - off + CLOSE)
        assert np.all(upper >= values + 1.0 + off - CLOSE)


def test_the_share_that_a_subspace_holds():
    """Components may hold less by rounding, and the total is known up to the mean outside."""
    low, high = projected([4.0, 3.0], 2.0, total=10.0).captured_variance
    assert low <= 7.0 / 10.0 + CLOSE and high + CLOSE >= 7.0 / 8.0
    low, high = projected([4.0, 3.0], 0.0, total=10.0, slack=0.5).captured_variance
    assert low <= 6.0 / 10.5 + CLOSE and high + CLOSE >= 8.0 / 9.5
    low, high = projected([4.0, 3.0], 0.0, total=10.0, residual=0.5).captured_variance
    assert low <= 6.0 / 10.5 + CLOSE and high + CLOSE >= 8.0 / 9.5


@pytest.mark.parametrize("part", ["lost", "likely", "slack", "residual", "projection"])
def test_scores_in_a_subspace(part):
    """A vector is turned by what is left out, or by rounding; scores are rounded once more."""
    values, off = np.array([4.0, 3.8]), 0.02
    options = {
        "lost": {"lost": off},
        "likely": {"lost": 1.0, "remainder": Remainder(1.0, off, True, 1 - 1e-6)},
        "slack": {"lost": 0.0, "slack": off},
        "residual": {"lost": 0.0, "residual": off},
        "projection": {"lost": 0.0, "projection": off},
    }[part]
    error = projected(values, **options).score_error
    assert np.isfinite(error).all()
    if part == "projection":
        assert off / 4.0 <= error[0] + CLOSE
        return
    # The true matrix has E beside it, which turns the first vector the most; E is not negative.
    for angle in np.linspace(0, np.pi, 50):
        e = np.array([np.cos(angle), np.sin(angle)])
        values_, U = np.linalg.eigh(np.diag(values) + off * np.outer(e, e))
        for i in range(2):
            true = np.sqrt(values_[1 - i]) * U[:, 1 - i]
            found = np.sqrt(values[i]) * np.eye(2)[i]
            gap = min(np.linalg.norm(found - true), np.linalg.norm(found + true))
            assert gap <= (error[i] + CLOSE) * np.linalg.norm(true)
