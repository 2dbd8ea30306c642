"""Each term of the certificate of a stream, from moments for which the truth needs it."""

from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest

from mercer.bases import Whitening
from mercer.compute import LocalEngine
from mercer.fitting.moments import Moments
from mercer.fitting.remainder import Remainder
from mercer.kernels import Linear
from mercer.solvers import Eigenpairs
from mercer.solvers.base import Evidence
from mercer.stream import components
from mercer.stream.components import StreamProblem

EPS, CLOSE = float(np.finfo(float).eps), 1e-12


def stated(moments, early, missed, *, center=False, rounding=0.0, residual=0.0, remainder=None):
    """The certificate of a stream's moments, and the ends that its shares are made of."""
    m = len(moments.mean)
    basis = SimpleNamespace(
        kernel=Linear(),
        engine=LocalEngine(10**6, 1),
        rounding=lambda: 0.0,
        exact_norms=True,
        points=None,
    )
    stream = SimpleNamespace(early=early, missed=np.asarray(missed, float), span=None)
    whitening = Whitening(m, rounding=rounding)
    problem = StreamProblem(basis, whitening, moments, center, stream=stream)
    vars(problem)["remainder"] = remainder
    values, U = np.linalg.eigh(moments.scatter if center else moments.about_zero())
    values, U = values[::-1], U[:, ::-1]
    pairs = Eigenpairs(values, U, np.full(m, residual), evidence=(Evidence(values, rest=0.0),))
    ends, shares = [], components.shares

    def noted(*numbers):
        ends.append(numbers)
        return shares(*numbers)

    with patch.object(components, "shares", noted):
        certificate = problem.certificate(pairs)
    return certificate, ends[-1]


def diagonal(*energies, count=10.0, energy=None):
    """Moments of rows about zero, with these energies along the directions."""
    total = sum(energies) if energy is None else energy
    return Moments(count, np.zeros(len(energies)), np.diag(energies), float(total), 1.0)


def test_losses_are_rounded_as_the_energies_are():
    """Nothing was lost, by a difference of energies, and the cross term is the root of that."""
    moments, early = diagonal(1.0, 1.0), diagonal(1.0, 0.0, count=5.0)
    certificate, _ = stated(moments, early, [0.0, 0.0])
    cross = np.sqrt(1.0 * EPS * moments.energy)
    true = np.linalg.eigvalsh([[1.0, cross], [cross, 1.0]])[::-1]
    assert np.all(certificate.eigenvalue_lower <= true + EPS)
    assert np.all(true <= certificate.eigenvalue_upper + EPS)


@pytest.mark.parametrize("part", ["rounding", "residual"])
def test_rounding_of_coordinates_and_of_the_small_problem(part):
    moments, early = diagonal(1.0, 0.5), diagonal(0.0, 0.0, count=5.0)
    off, true = 0.1, np.array([1.0, 0.5])
    number = off / moments.energy if part == "rounding" else off
    certificate, ends = stated(moments, early, [0.0, 0.0], **{part: number})
    assert np.all(certificate.eigenvalue_lower <= true - off + CLOSE)
    assert np.all(certificate.eigenvalue_upper >= true + off - CLOSE)
    held, total = 1.5, 1.5
    assert ends[0] <= held - off + CLOSE and ends[1] >= held + off - CLOSE
    assert ends[2] <= total - off + CLOSE and ends[3] >= total + off - CLOSE


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("early, late", [(30, 10), (5, 50)])
def test_the_mean_has_a_part_that_early_rows_lost(early, late, sign):
    """Rows of a line: early ones count with a zero, and others with what they have."""
    lost, other, n = sign * 0.05, 1.0, early + late
    energy = early * lost**2 + late * other**2
    mean = late * other / n
    moments = Moments(
        float(n), np.array([mean]), np.array([[late * other**2 - n * mean**2]]), energy
    )
    zeros = Moments(float(early), np.zeros(1), np.zeros((1, 1)), early * lost**2)
    _, ends = stated(moments, zeros, [early * lost**2], center=True)
    true = energy - (early * lost + late * other) ** 2 / n
    assert ends[2] <= true + CLOSE and true <= ends[3] + CLOSE
    held = late * other**2 - n * mean**2
    assert ends[0] <= held and held <= ends[1]


def test_the_mean_of_what_is_outside_the_span():
    """All rows have the same part outside, so that all that was lost is in their mean."""
    n, outside = 10, 0.3
    moments = Moments(float(n), np.array([1.0]), np.array([[2.0]]), n + 2.0 + n * outside**2)
    early = Moments(1.0, np.zeros(1), np.zeros((1, 1)), 0.0)
    _, ends = stated(moments, early, [0.0], center=True)
    assert ends[2] <= 2.0 + CLOSE


@pytest.mark.parametrize("part", ["sure", "likely"])
def test_squares_that_early_rows_missed_come_beside_what_is_outside(part):
    """Along the first direction as well, where the rest is as much as it can be."""
    missed, beyond = 0.04, 0.3
    moments, early = diagonal(1.0, 0.5, energy=9.0), diagonal(0.0, 0.0, count=5.0)
    remainder = Remainder(beyond, beyond, True, 1.0)
    if part == "likely":
        remainder = Remainder(5.0, beyond, True, 1 - 1e-6)
    certificate, _ = stated(moments, early, [missed, 0.0], remainder=remainder)
    upper = certificate.eigenvalue_upper if part == "sure" else certificate.likely_upper
    assert upper[0] >= 1.0 + missed + beyond - 1e-9
    assert upper[0] < 3.0, "less than all that was lost"
