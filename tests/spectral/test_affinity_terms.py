"""Each term of the bounds of affinities, where the truth needs it.

What a problem says of its own rounding is taken at its word: numbers are off by just that.
"""

from copy import copy
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest
from contracts import generator

from mercer import SpectralClustering
from mercer.bases import FourierGrid
from mercer.rows import ArrayRows
from mercer.solvers import Eigenpairs
from mercer.solvers.base import Evidence
from mercer.spectral.problems import (
    FAINT,
    FAINTEST,
    FourierNormalizedProblem,
    NormalizedProblem,
    function_errors,
)

EPS, CLOSE = float(np.finfo(float).eps), 1e-12


def stated(seen, r=1, total=None, **options):
    """The certificate of leading values of some evidence, of affinities with these facts.

    `entry` is the rounding of entries, and `single` that in single precision.
    """
    facts = {"n": 10, "entry": 0.0, "single": 0.0, "positive": True, "definite": True}
    facts |= {"coarse": False, "least": 1.0, "degrees": 1.0, "residual": 0.0} | options
    n, values = facts["n"], seen.values[:r]
    engine = SimpleNamespace(fuses=lambda kernel: False)
    draft = SimpleNamespace(
        size=n, dtype=np.dtype(np.float32), rounding=lambda: facts["single"], engine=engine
    )
    draft.kernel = None
    degrees = np.full(n, facts["degrees"])
    diagonal = np.ones(n) if total is None else np.full(n, total / n) * degrees
    kernel = SimpleNamespace(
        metric="distance" if facts["positive"] else None, definite=facts["definite"]
    )
    basis = SimpleNamespace(
        size=n,
        dtype=np.dtype(np.float64),
        rounding=lambda: facts["entry"],
        engine=engine,
        kernel=kernel,
        points=np.zeros((n, 1)),
        draft=draft,
        diagonal=lambda: diagonal,
        own_affinities=lambda: np.zeros(n),
    )
    operator = SimpleNamespace(
        basis=basis, is_coarse=facts["coarse"], known_degrees=degrees, definite=facts["definite"]
    )
    problem = SimpleNamespace(
        operator=operator,
        rounds=1.0,
        least_degree=facts["least"],
        size=n,
        power=0.0,
        row_scale=lambda: facts.get("scales", np.ones(n)),
    )
    problem._stated = lambda *found: NormalizedProblem._stated(problem, *found)
    V = np.eye(n, r)
    pairs = Eigenpairs(values, V, np.full(r, facts["residual"]), evidence=(seen,))
    return NormalizedProblem.all_certificate(problem, pairs, V)


def test_entries_and_degrees_are_off_alike():
    """Each by a share, so that the matrix, of norm one, is off by twice that."""
    off = 0.01
    certificate = stated(Evidence(np.array([0.5]), rest=0.0), entry=off)
    assert certificate.eigenvalue_lower[0] <= 0.5 - 2 * off + CLOSE
    assert certificate.eigenvalue_upper[0] >= 0.5 + 2 * off - CLOSE


def test_degrees_in_single_precision_are_those_of_another_matrix():
    off = 0.01
    seen = Evidence(np.array([0.5]), rest=0.0)
    certificate = stated(seen, single=off, coarse=True)
    assert certificate.eigenvalue_lower[0] <= 0.5 - off + CLOSE
    assert certificate.eigenvalue_upper[0] >= 0.5 + off - CLOSE


def test_a_hidden_eigenvalue_that_the_trace_does_not_show():
    """Entries of the diagonal came out too small by their rounding, and quotients too large."""
    off, k, hidden = 0.01, 12, 0.9
    total = k * 0.5 + hidden
    seen = Evidence(np.full(k, 0.5 + 2 * off), np.zeros((k, k)))
    certificate = stated(seen, total=total * (1 - 2 * off), entry=off, n=20)
    assert certificate.eigenvalue_upper[0] >= hidden - CLOSE


def test_a_hidden_eigenvalue_that_the_squares_do_not_show():
    """Their sum is off by a share, and may be as large as the number of rows."""
    off, k, hidden, n = 1e-3, 60, 0.95, 1000
    square = k * 0.81 + hidden**2
    seen = Evidence(np.full(k, 0.9), np.zeros((k, k)), square=square * (1 - 4 * off))
    certificate = stated(seen, n=n, total=k * 0.9 + hidden, entry=off, definite=False)
    assert certificate.eigenvalue_upper[0] >= hidden - CLOSE


@pytest.mark.parametrize("level, least, coarse", [(1, FAINT, True), (0, FAINTEST, False)])
def test_degrees_of_which_digits_are_lost_prove_nothing(level, least, coarse):
    seen = Evidence(np.array([0.5]), rest=0.0, level=level)
    assert stated(seen, least=2 * least, coarse=coarse).kind == "bound"
    assert stated(seen, least=least / 2, coarse=coarse).kind == "estimate"


def test_single_precision_is_no_evidence_for_faint_degrees():
    seen = Evidence(np.array([0.5]), rest=0.0, level=1)
    assert stated(seen, least=FAINT / 2).kind == "estimate"
    assert stated(replace(seen, level=0), least=FAINT / 2).kind == "bound"


def test_affinities_of_both_signs():
    """Degrees that cancel are off by far more than a share, and all of the matrix with them."""
    off, n, degree = 1e-6, 4, 0.1
    # All rows alike: one eigenvalue, the trace, and degrees off by the sum of what entries are.
    value = n / degree
    known = {"n": n, "degrees": degree, "entry": off, "positive": False}
    certificate = stated(Evidence(np.array([value]), rest=0.0), **known)
    entries, degrees = off * value, off * n / degree * value
    assert certificate.eigenvalue_lower[0] <= value - entries - degrees + CLOSE
    assert certificate.eigenvalue_upper[0] >= value + entries + degrees - CLOSE
    assert stated(Evidence(np.array([0.5]), rest=0.0), definite=False, **known).kind == "estimate"


# Functions.


def errors_of(angle, true, scales, power=0.0, slack=0.0):
    """Stated for a vector of the plane at some angle from the true one, and the functions."""
    found = true + angle
    f, g = (scales * np.array([np.cos(t), np.sin(t)]) for t in (found, true))
    stretch = scales.max() / np.linalg.norm(f)
    value, other = 1.0, 0.0
    around = np.array([np.sin(angle)])
    bounds = np.array([value]), np.array([value, other])
    error = function_errors(np.array([value]), around, *bounds, slack, stretch, power)
    return error[0], f, g


def test_functions_where_degrees_are_small():
    """A turn towards a row of small degree moves its function by far more than the angle."""
    error, f, g = errors_of(0.01, 0.0, np.array([1.0, 30.0]))
    assert np.isfinite(error)
    assert np.linalg.norm(f - g) <= error * np.linalg.norm(f)


def test_a_function_found_at_rows_of_large_degree():
    """The eigenvector is turned by its residual over the gap, and a row of small degree sees it."""
    scales = np.append(np.ones(9), 30.0)
    seen = Evidence(np.array([1.0]), rest=0.0)
    assert stated(seen, residual=0.01, scales=scales).score_error[0] >= 30 * np.sin(0.01)


def test_functions_as_a_share_of_the_true_ones():
    """Which may be far smaller than those found."""
    error, f, g = errors_of(0.05, 0.1, np.array([1.0, 1e6]))
    assert np.isfinite(error)
    assert np.linalg.norm(f - g) <= error * np.linalg.norm(g)


def test_functions_have_the_rounding_of_the_matrix():
    assert errors_of(0.0, 0.0, np.ones(2), slack=0.1)[0] >= 0.1


@pytest.mark.parametrize("power", [1.0, 3.0])
def test_powers_of_an_eigenvalue_that_is_off(power):
    value, lower, upper = np.array([0.9]), np.array([0.8]), np.array([0.9, 0.1])
    error = function_errors(value, np.zeros(1), lower, upper, 0.0, 1.0, power)
    assert error[0] >= (0.9 / 0.8) ** power - 1


# Fourier grids.


def grid_result(X):
    adopted, adopt = [], SpectralClustering._adopt

    def watched(self, result, *others):
        adopted.append(result)
        return adopt(self, result, *others)

    with patch.object(SpectralClustering, "_adopt", watched):
        SpectralClustering(2, gamma=0.5, basis=FourierGrid(tol=1e-8), n_init=1).fit(X)
    return adopted[0]


@pytest.fixture(scope="module")
def grid():
    X = generator(1).uniform(-2, 2, (40, 1))
    return X, grid_result(X)


def test_degrees_and_entries_of_a_grid_are_off_alike(grid):
    """K by its error over the least degree, and once more as the degrees are."""
    _, result = grid
    off = 0.01 * result.problem.least_of_rows
    problem = replace(result.problem, kernel_error=off)
    certificate, values = problem.certificate(result.pairs), result.pairs.values
    change = 2 * off / problem.least_of_rows
    assert np.all(certificate.eigenvalue_lower <= values - change + 1e-9)
    assert certificate.eigenvalue_upper[1] >= values[1] + change - 1e-9


@pytest.mark.parametrize("part", ["alias", "cut"])
def test_what_a_grid_leaves_out_is_in_every_entry(part, grid):
    X, result = grid
    basis = copy(result.problem.basis)
    basis.frequencies = replace(basis.frequencies, **{part: 0.01})
    problem = FourierNormalizedProblem.of(basis, ArrayRows(X))
    assert problem.kernel_error >= 0.01 * len(X)


def test_sums_of_a_grid_are_off_in_the_degrees_and_in_the_matrix(grid):
    """Of the matrix once and of its mean, the degrees, twice."""
    X, result = grid
    basis = copy(result.problem.basis)
    moments = basis.moments
    basis.moments = lambda rows, weights=None: replace(moments(rows, weights), error=1e-3)
    assert FourierNormalizedProblem.of(basis, ArrayRows(X)).kernel_error >= 3e-3 * basis.top
    problem = replace(result.problem, kernel_error=0.0)
    problem = replace(problem, sums=replace(problem.sums, error=1e-3))
    certificate, values = problem.certificate(result.pairs), result.pairs.values
    off = 3e-3 * problem.basis.top
    assert np.all(certificate.eigenvalue_lower <= values - off + 1e-9)
    assert certificate.eigenvalue_upper[1] >= values[1] + off - 1e-9


def test_transforms_round_at_each_of_their_levels(grid):
    _, result = grid
    problem = replace(result.problem, kernel_error=0.0)
    problem = replace(problem, sums=replace(problem.sums, error=0.0))
    scale, levels = problem.sums.count * problem.basis.top, np.log2(problem.sums.sums.size)
    exact = {"residuals": np.zeros(1), "evidence": (Evidence(np.array([0.5]), rest=0.0),)}
    pairs = replace(result.pairs.leading(1), values=np.array([0.5]), **exact)
    assert problem.certificate(pairs).eigenvalue_lower[0] <= 0.5 - EPS * levels * scale
