"""Each term of the bounds of supervised components and correlations, where the truth needs it."""

from types import SimpleNamespace

import numpy as np
import pytest

from mercer.bases import ColumnBasis
from mercer.fitting.moments import Moments
from mercer.fitting.problems import ColumnProblem
from mercer.fitting.remainder import Remainder
from mercer.relatives.correlation import ROUNDING, View, certified
from mercer.relatives.supervised import SupervisedReduced
from mercer.solvers import Eigenpairs
from mercer.solvers.base import Evidence

EPS, CLOSE = float(np.finfo(float).eps), 1e-12
# The largest eigenvalue of the target kernel.
NORM = 3.0


def target(cross):
    """Moments of coordinates with a target whose kernel has the norm above."""
    other = SimpleNamespace(scatter=np.diag([NORM, 1.0]))
    return SimpleNamespace(cross=np.asarray(cross, float), other=other)


def supervised(lost=0.0, slack=0.0, remainder=None, residual=0.0):
    """The certificate of the first of two components, 4 and 2."""
    inner = SimpleNamespace(
        moments=target(np.diag([2.0, 2**0.5])),
        size=2,
        lost=lost,
        slack=slack,
        remainder=remainder,
        judgment=lambda: (True, False),
    )
    inner.moments.scatter = np.eye(2)
    seen = Evidence(np.array([4.0, 2.0]), rest=0.0)
    pairs = Eigenpairs(np.array([4.0]), np.eye(2, 1), np.array([residual]), evidence=(seen,))
    return SupervisedReduced(inner).certificate(pairs)


def test_what_a_span_leaves_out_is_seen_through_the_target():
    """All of it along the direction that the target kernel stretches most."""
    assert supervised(lost=0.5).eigenvalue_upper[0] >= 4.0 + NORM * 0.5 - CLOSE
    remainder = Remainder(0.2, 0.2, True, 1.0)
    assert supervised(lost=0.5, remainder=remainder).eigenvalue_upper[0] >= 4 + NORM * 0.2 - CLOSE
    low, _ = supervised(lost=0.5).captured_variance
    assert low <= 4.0 / (6.0 + NORM * 0.5) + CLOSE


@pytest.mark.parametrize("part", ["slack", "residual"])
def test_rounding_is_seen_through_the_target(part):
    off = NORM * 0.1 if part == "slack" else 0.1
    certificate = supervised(**{part: 0.1})
    assert certificate.eigenvalue_lower[0] <= 4.0 - off + CLOSE
    assert certificate.eigenvalue_upper[0] >= 4.0 + off - CLOSE
    low, high = certificate.captured_variance
    assert low <= (4.0 - off) / (6.0 + off) + CLOSE
    assert high >= (4.0 + off) / (6.0 - off) - CLOSE


def test_columns_are_rounded_by_a_share_of_their_variance():
    inner = object.__new__(ColumnProblem)
    joint = Moments(10.0, np.zeros(2), np.diag([4.0, 1.0]), 5.0)
    vars(joint).update(vars(target(np.diag([2.0, 2**0.5]))))
    vars(inner).update(rounding=0.01, moments=joint, center=True)
    seen = Evidence(np.array([4.0, 2.0]), rest=0.0)
    pairs = Eigenpairs(np.array([4.0]), np.eye(2, 1), np.zeros(1), evidence=(seen,))
    inner = SupervisedReduced(inner)
    vars(inner)["operator"] = SimpleNamespace(shape=(2, 2))
    vars(inner.inner)["operator"] = SimpleNamespace(shape=(2, 2))
    certificate, off = inner.certificate(pairs), NORM * 0.01 * 5.0
    assert certificate.eigenvalue_lower[0] <= 4.0 - off + CLOSE
    assert certificate.eigenvalue_upper[0] >= 4.0 + off - CLOSE


@pytest.mark.parametrize("sign", [-1, 1])
def test_correlations_move_by_what_both_views_leave_out(sign):
    """The i-th squared correlation by no more than the regularized projections of both."""
    certificate = certified(np.array([0.8]), (0.3, 0.1), (6.0, 1.0), True)
    true = np.sqrt(0.64 + sign * (0.3 / 6.0 + 0.1 / 1.0))
    assert certificate.eigenvalue_lower[0] <= true + CLOSE
    assert true <= certificate.eigenvalue_upper[0] + CLOSE
    certificate = certified(np.array([0.8]), (0.3, 0.1), (0.0, 1.0), True)
    assert certificate.eigenvalue_lower[0] == 0.0 and certificate.eigenvalue_upper[0] == 1.0


def a_view(energy, u=0.0, mean=1.0, count=4.0, columns=False):
    basis = object.__new__(ColumnBasis) if columns else SimpleNamespace()
    vars(basis)["rounding"] = lambda: u
    return View(basis, None, Moments(count, np.array([mean]), np.array([[1.0]])), energy)


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_view_leaves_out_what_its_energy_lacks(sign):
    """Or has too much by rounding; of columns nothing is left out."""
    assert a_view(5.0 + sign * 0.5).left_out >= 0.5
    assert a_view(5.5, columns=True).left_out < 1e-10


def test_rounding_of_a_view_is_in_its_matrix_and_in_its_trace():
    """The matrix is off by a share of the energy, and the regularization with it."""
    off = 1e-3
    assert a_view(5.0, u=off).left_out >= 2 * off * 5.0
    assert a_view(50.0, u=off).left_out >= 45.0 + 2 * off * 50.0
    assert a_view(1.0, u=off).left_out >= 4.0 + 2 * off * 5.0


def test_directions_taken_for_rounding_are_left_out():
    """Each may have as much variance as rounding gives one."""
    noise = ROUNDING * EPS * (1.0 + 1.0)
    view = a_view(2.0, count=1.0)
    assert view.noise >= noise * (1 - CLOSE)
    assert view.left_out >= 2 * noise * (1 - CLOSE)
    far = View(object.__new__(ColumnBasis), None, Moments(1.0, np.array([3.0]), np.eye(1)), 1.0)
    assert far.noise >= (ROUNDING * EPS * 3.0) ** 2 * (1 - CLOSE)
