"""Each term that the problems of kernel PCA put into their bounds, where the truth needs it.

What a problem says of its own rounding is taken at its word: numbers are off by just that, all of
them in the direction that hurts. The statements must hold nevertheless.
"""

from contextlib import nullcontext
from copy import copy
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import oracle
import pytest
from contracts import generator
from fuzz import WIDE

from mercer import KernelPCA
from mercer.bases import FourierGrid, Whitening
from mercer.bases.whitening import CholeskyWhitening
from mercer.compute import LocalEngine
from mercer.fitting import certificate as certificates
from mercer.fitting.certificate import Certificate, Rounding, narrowed
from mercer.fitting.moments import Moments
from mercer.fitting.problems import FourierProblem, ReducedProblem, roundings_of
from mercer.kernels import RBF
from mercer.operators import DenseOperator
from mercer.solvers import Eigenpairs
from mercer.solvers.base import Evidence

EPS, SINGLE = (float(np.finfo(t).eps) for t in (np.float64, np.float32))
CLOSE = 1e-12


def result_of(model, X, **options):
    """What a fit adopts: the result, with its problem."""
    adopted, adopt = [], type(model)._adopt

    def watched(self, result, *others):
        adopted.append(result)
        return adopt(self, result, *others)

    with patch.object(type(model), "_adopt", watched):
        model.fit(X, **options)
    return adopted[0]


# All points: what rounding changes in a matrix.


def a_basis(size=1, entry=0.0, dtype=np.float64, fuses=False, draft=None):
    """As much of a basis as its rounding is made of."""
    engine = SimpleNamespace(fuses=lambda kernel: fuses)
    facts = {"size": size, "dtype": np.dtype(dtype), "engine": engine, "kernel": None}
    return SimpleNamespace(rounding=lambda: entry, draft=draft, **facts)


def test_entries_that_are_all_off_alike():
    n, off = 50, 1e-3
    K = np.ones((n, n))
    [rounding] = roundings_of(a_basis(n, off), float(np.trace(K)))
    assert rounding.matrix >= np.linalg.norm(off * K, 2)
    assert rounding.root**2 >= np.sum((K + off) ** 2 - K**2)


def test_entries_are_off_by_the_function_of_the_kernel():
    """The inner product is exact, and an exponential is right to a few units."""
    [rounding] = roundings_of(a_basis(1), 1.0)
    assert rounding.matrix >= 9 * EPS


def test_sums_over_many_rows():
    """One after the other, as a loop makes them."""
    n = 10**6
    K = generator(1).uniform(0.1, 1.0, n)
    off = float(np.max(np.abs(np.cumsum(K) - np.cumsum(K.astype(WIDE)))))
    [rounding] = roundings_of(a_basis(n), float(K.sum()))
    assert off <= rounding.matrix
    [short] = roundings_of(a_basis(1), float(K.sum()))
    assert off > short.matrix, "the case is one of many rows"


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_entries_of_a_product_that_are_all_rounded_up(dtype):
    n, eps = 64, float(np.finfo(dtype).eps)
    product = np.ones((n, n)) @ np.full(n, n**-0.5)
    [rounding] = roundings_of(a_basis(n, dtype=dtype), float(n))
    assert rounding.product >= np.linalg.norm(eps * product) * (1 - 1e-12)


def test_squares_of_exact_entries_are_rounded_as_they_are_added():
    """In pairs, pairs of pairs and so on, each sum too small by its rounding."""
    n = 64
    short = n**2 - n**2 * (1 - EPS) ** np.log2(n**2)
    [rounding] = roundings_of(a_basis(n), float(n))
    assert rounding.root**2 >= short


def test_squares_that_fused_tiles_add_in_single_precision():
    n, seen = 64, (Evidence(np.ones(1), level=1),)
    draft = a_basis(n, 1e-5, np.float32, fuses=True)
    _, rounding = roundings_of(a_basis(n, draft=draft), float(n), seen)
    assert rounding.root**2 >= 1e-7 * n**2


@pytest.mark.filterwarnings("ignore")
def test_a_total_from_row_means_in_single_precision():
    """Equal rows, whose total is zero: means that are too large make it negative."""
    n, off = 40, 1e-3
    X = np.tile(generator(2).standard_normal((1, 3)), (n, 1))
    X[0] += 1e-9
    model = KernelPCA(1, kernel="rbf", gamma=0.5, basis="points", eigen_solver="dense")
    problem = result_of(model, X).problem
    means = np.ones(n) * (1 + off)
    problem.operator._row_means, problem.operator.means_rounding = means, off
    total = float(problem.operator.diagonal().sum())
    assert total == pytest.approx(-off * n)
    assert abs(total) <= problem.roundings()[0].trace * (1 + CLOSE)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("weighted", [False, True])
def test_entries_of_a_kernel_whose_diagonal_is_zero(weighted):
    """Their rounding is a share of the other entries, each as often as its rows count."""
    groups, times = 12, 4
    Z = 3.0 * np.eye(groups)
    model = KernelPCA(1, kernel="additive_chi2", basis="points", eigen_solver="dense")
    if weighted:
        problem = result_of(model, Z, sample_weight=np.full(groups, float(times))).problem
    else:
        problem = result_of(model, np.repeat(Z, times, axis=0)).problem
    K = np.repeat(np.repeat(oracle.kernel_matrix("additive_chi2", Z), times, 0), times, 1)
    assert problem.scale == 0.0
    off = problem.basis.rounding() * np.linalg.norm(K, 2)
    assert off <= problem.roundings()[0].matrix
    # What the entries are off by is nearly all that is stated beside sums.
    size = problem._size()
    assert np.linalg.norm(K, 2) <= size <= 1.2 * np.linalg.norm(K, 2)


# A span: what rounding of coordinates changes in their moments.


def a_span(scatter, energy, rounding=0.0, u=0.0, points=None, model_rows=None):
    """The problem of moments about a mean of zero, and the certificate of all its pairs."""
    scatter = np.asarray(scatter, float)
    basis = SimpleNamespace(
        kernel=RBF(1.0),
        engine=LocalEngine(10**6, 1),
        rounding=lambda: u,
        exact_norms=True,
        points=points,
        precision=lambda rows: rows.dtype,
        norms=lambda rows: np.ones(len(rows)),
    )
    m = len(scatter)
    moments = Moments(10.0, np.zeros(m), scatter, energy, 1.0)
    whitening = Whitening(m, rounding=rounding)
    problem = ReducedProblem(basis, whitening, moments, model_rows=model_rows)
    values, U = np.linalg.eigh(scatter)
    values, U = values[::-1], U[:, ::-1]
    seen = (Evidence(values, rest=0.0),)
    return problem.certificate(Eigenpairs(values, U, np.zeros(m), evidence=seen))


def holds(certificate, true):
    true = np.asarray(true, float)
    assert np.all(certificate.eigenvalue_lower <= true + CLOSE)
    assert np.all(true <= certificate.eigenvalue_upper + CLOSE)


@pytest.mark.parametrize("part", ["rounding", "u"])
@pytest.mark.parametrize("sign", [-1, 1])
def test_coordinates_off_by_a_share_of_all_energy(part, sign):
    """Those of the whitening, or those of kernel values."""
    certificate = a_span(np.diag([4.0, 1.0]), 5.0, **{part: 0.1})
    holds(certificate, [4.0 + sign * 0.1 * 5.0, 1.0])


def test_more_energy_in_the_span_than_there_is():
    """One direction has too much, another too little, and the sum shows the difference."""
    off = 0.1
    holds(a_span(np.diag([4.0 + 2 * off, 1.0 - off]), 5.0), [4.0, 1.0])


@pytest.mark.parametrize("place", ["points", "model_rows"])
def test_rows_projected_in_single_precision(place):
    """Kernel values of all rows are off alike, and with them the scores of the first."""
    u = 1e-12
    rows = {place: np.ones((2, 1), np.float32)}
    error = a_span(np.diag([4.0, 1e-3]), 4.001, u=u, **rows).score_error[0]
    assert error >= SINGLE / EPS * u * (1 - 1e-6)
    wide = {place: np.ones((2, 1))}
    assert a_span(np.diag([4.0, 1e-3]), 4.001, u=u, **wide).score_error[0] < 1e-10


@pytest.mark.parametrize("seed", range(5))
def test_vectors_of_small_components_of_columns(seed):
    """Scores are rounded as the largest are, and a small one is divided by its small root."""
    rng = generator(seed, 3)
    X = rng.standard_normal((60, 3)) @ np.linalg.qr(rng.standard_normal((3, 3)))[0]
    U, s, V = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    X = U * s * np.array([1.0, 1e-2, 1e-4]) @ V
    result = result_of(KernelPCA(3, kernel="linear", basis="columns"), X)
    W = X.astype(WIDE)
    W = W - W.mean(axis=0)
    V, values = result.vectors.astype(WIDE), result.pairs.values
    R = W @ (W.T @ V) - V * values
    residuals = np.sqrt((R * R).sum(axis=0))
    assert np.all(residuals <= result.certificate.residuals)
    assert residuals[2] > 20 * EPS * values[0], "the case is one of a small component"


@pytest.mark.parametrize("alias, cut", [(0.1, 0.0), (0.0, 0.1)])
def test_kernels_of_a_grid_off_by_what_it_states(alias, cut):
    """Equal rows: every entry is too large, or too small, and the eigenvalue by their sum."""
    n = 30
    X = np.tile([[0.3]], (n, 1)) + 1e-6 * np.arange(n)[:, None]
    model = KernelPCA(1, kernel="rbf", gamma=0.5, basis=FourierGrid(tol=1e-9), center=False)
    result = result_of(model, X)
    basis = copy(result.problem.basis)
    basis.frequencies = replace(basis.frequencies, alias=alias, cut=cut)
    problem = FourierProblem(basis, result.problem.sums, center=False)
    certificate, found = problem.result(result.pairs).certificate, result.pairs.values[0]
    assert certificate.eigenvalue_lower[0] <= found - n * alias + 1e-6
    assert certificate.eigenvalue_upper[0] >= found + n * (cut + alias / 2) - 1e-6


def test_transforms_round_at_each_of_their_levels():
    model = KernelPCA(1, kernel="rbf", gamma=0.5, basis=FourierGrid(tol=1e-9))
    problem = result_of(model, generator(4).uniform(-1, 1, (40, 1))).problem
    exact = replace(problem, sums=replace(problem.sums, error=0.0))
    levels = np.log2(problem.sums.sums.size)
    assert exact.slack >= EPS * levels * problem.scale
    # An error of the sums moves the matrix once and its mean twice.
    off = replace(problem, sums=replace(problem.sums, error=1e-3))
    assert off.slack >= 3e-3 * problem.basis.top


# Whitening: directions of small eigenvalues magnify rounding.


def whitened(scales, along):
    """The whitening by eigenvectors of a diagonal basis, and moments with these energies."""
    W = np.diag(1 / np.sqrt(scales))
    moments = Moments(1.0, np.zeros(len(scales)), np.diag(along), float(np.sum(along)))
    return Whitening(len(scales), W), moments


def by_parts(scales):
    """The same by a Cholesky factor, in one part."""
    W, m = np.diag(1 / np.sqrt(scales)), len(scales)
    most = float(max(scales) / min(scales))
    parts = (slice(0, m),), (np.zeros((m, 0)),), (most,)
    return CholeskyWhitening(m, W, None, 0.0, *parts, float(np.sum(scales)))


@pytest.mark.parametrize("way", ["eigenvectors", "factor"])
def test_a_basis_that_is_off_along_its_smallest_direction(way):
    """Its rows have all their energy there: y = k / sqrt(scale) changes with the scale."""
    scales, u, energy = np.array([1.0, 1e-9]), 1e-12, 5.0
    whitening, moments = whitened(scales, [0.0, energy])
    whitening = by_parts(scales) if way == "factor" else whitening
    true = energy * scales[1] / (scales[1] - u * scales.sum())
    with patch.object(type(whitening), "late", None):
        assert true - energy <= whitening.slack(moments, u, energy) - late_share(
            way, scales, moments
        )


def late_share(way, scales, moments):
    """What a factor, which is always late, states for the sums; nothing of it is needed here."""
    spread = float(np.trace(moments.scatter))
    return 4 * EPS * spread * max(scales) / min(scales) if way == "factor" else 0.0


@pytest.mark.parametrize("way", ["eigenvectors", "factor"])
def test_rows_that_are_off_along_a_direction_they_have_little_of(way):
    """A first-order change of a small energy, of all rows alike."""
    scales, u, energy = np.array([1.0, 1e-4]), 1e-6, 1.0
    little = 1e-8
    whitening, moments = whitened(scales, [0.0, little])
    whitening = by_parts(scales) if way == "factor" else whitening
    # One row of length one: its kernel with the basis vector is off by u sqrt(tr G).
    true = (np.sqrt(little * scales[1]) + u * np.sqrt(scales.sum())) ** 2 / scales[1]
    with patch.object(type(whitening), "late", None):
        stated = whitening.slack(moments, u, energy) - late_share(way, scales, moments)
    assert true - little <= stated


@pytest.mark.parametrize("way", ["eigenvectors", "factor"])
def test_sums_that_are_whitened_late(way):
    """Sums of k k' are rounded by a share of the largest, and divided by the least eigenvalue."""
    scales = np.array([1.0, 1e-7])
    whitening, moments = whitened(scales, [3.0, 1e-9])
    whitening = by_parts(scales) if way == "factor" else whitening
    off = EPS * float(np.diag(moments.scatter) @ scales) / scales[1]
    assert whitening.late is not None
    assert off <= whitening.slack(moments, 0.0, 3.0)


# A product with the exact matrix.


class Multiplied(DenseOperator):
    """A matrix as it is multiplied, whose diagonal and squares are known to more digits."""

    weights = None

    def __init__(self, A, total=None, square=None):
        super().__init__(A)
        self.total, self.squares = total, square

    def diagonal(self):
        n = len(self.A)
        return self.A.diagonal() if self.total is None else np.full(n, self.total / n)

    def square(self):
        return self.squares


def narrowed_of(A, Q, leads, r, *, slack=0.0, rest=0.0, left=0.0, seed=0, **options):
    """The certificate after a product with A, of scores along Q and the span's eigenvalues."""
    exact = SimpleNamespace(
        slack=slack / 2,
        scale=1.0,
        basis=SimpleNamespace(points=None),
        roundings=lambda: (Rounding(),),
    )
    leads = np.asarray(leads, float)
    off = options.pop("projection", 0.0)
    problem = SimpleNamespace(
        exact=exact,
        basis=SimpleNamespace(exact_norms=True),
        lost=left,
        scale=1.0,
        remainder=None,
        slack=rest,
        projection=lambda pairs: off,
        seed=seed,
        operator=DenseOperator(np.diag(leads)),
        expand=lambda pairs: SimpleNamespace(scores=lambda points: Q),
    )
    values = np.asarray(options.pop("values", leads[:r]), float)
    pairs = Eigenpairs(values, np.eye(len(leads), r), np.zeros(r))
    before = Certificate("bound", np.zeros(r), np.full(r, np.inf), None, (0.0, 1.0), True)
    operator = Multiplied(np.asarray(A, float), **options)
    problem.exact.session = lambda **settings: nullcontext(operator)
    return narrowed(before, problem, pairs)


def test_products_too_long_hide_what_is_left():
    """Both quotients came out too large, so that trace and squares show less than there is."""
    off, true = 0.05, np.array([1.0, 0.8, 1.5])
    A, Q = np.diag(true + off * np.array([1, 1, -1])), np.eye(3, 2)
    totals = {"total": float(true.sum()), "square": float(true @ true)}
    stated = narrowed_of(A, Q, [1.0, 0.8], 1, slack=off, left=9.0, **totals)
    assert stated.eigenvalue_upper[0] >= 1.5 - CLOSE


def test_products_too_long_leave_too_little_of_the_squares():
    """The square of a large quotient is off by far more than the quotient."""
    off, n = 0.01, 400
    true = np.append([10.0, 0.5, 1.0], np.zeros(n - 3))
    A, totals = np.diag(true + off * (true > 0)), {"total": 11.5, "square": float(true @ true)}
    stated = narrowed_of(A, np.eye(n, 2), [10.0, 0.5], 2, slack=off, left=9.0, **totals)
    assert stated.eigenvalue_upper[1] >= 1.0 - CLOSE


@pytest.mark.parametrize("part", ["rest", "left"])
def test_what_the_span_has_beyond_the_components_that_are_multiplied(part):
    """Seventeen of twenty equal eigenvalues are, and what the span leaves out is along another."""
    off = {part: 0.5}
    values = np.ones(20)
    values[18] += 0.5
    stated = narrowed_of(np.diag(values), np.eye(20, 17), np.ones(20), 1, **off)
    assert stated.eigenvalue_upper[0] >= 1.5 - CLOSE


def test_what_was_found_stays_within_its_interval():
    """Also where the product shows that the true eigenvalue is above or below it."""
    above = narrowed_of(np.diag([2.0, 0.1]), np.eye(2, 1), [1.0], 1)
    assert above.eigenvalue_lower[0] <= 1.0 <= above.eigenvalue_upper[0]
    below = narrowed_of(np.diag([1.0, 0.1]), np.eye(2, 1), [1.5], 1)
    assert below.eigenvalue_lower[0] <= 1.5 <= below.eigenvalue_upper[0]


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_product_that_is_off(sign):
    off, A = 0.1, np.diag([2.0, 0.1])
    stated = narrowed_of(A, np.eye(2, 1), [2.0], 1, slack=off)
    true = 2.0 + sign * off
    assert stated.eigenvalue_lower[0] <= true + CLOSE
    assert true <= stated.eigenvalue_upper[0] + CLOSE


@pytest.mark.parametrize("part", ["rest", "projection"])
def test_scores_have_the_rounding_of_the_coordinates(part):
    """Every score is off by it, and the vectors are not turned."""
    error = narrowed_of(np.diag([2.0, 0.1]), np.eye(2, 1), [2.0], 1, **{part: 0.2}).score_error[0]
    assert error >= 0.2 / 2.0 - CLOSE


def test_random_vectors_see_what_is_left_at_the_confidence_that_is_stated():
    """One hidden direction, with a trace that says nothing: the length of its probes is exact."""
    n, hidden, failure = 12, 3.0, 0.05
    A, times, held = np.zeros((n, n)), 200, 0
    A[0, 0], A[1, 1] = 1.0, hidden
    with patch.object(certificates, "FAILURE", failure):
        for seed in range(times):
            stated = narrowed_of(A, np.eye(n, 1), [1.0], 1, left=99.0, seed=seed, total=99.0)
            held += stated.likely_upper[0] >= hidden
            assert stated.confidence == 1 - failure
            assert stated.eigenvalue_upper[0] >= hidden
    spread = np.sqrt(times * failure * (1 - failure))
    assert abs(held - (1 - failure) * times) <= 4 * spread


def test_probes_are_rounded_as_products_are():
    """Of what is left nothing was seen, since rounding hid it."""
    off, A = 0.5, np.diag([0.2, 0.0, 0.0])
    stated = narrowed_of(A, np.eye(3, 1), [0.2], 1, slack=off, left=99.0, total=99.0)
    assert stated.likely_upper[0] >= 2 * off - CLOSE


def test_vectors_are_turned_by_what_the_product_is_off_by():
    off, values = 0.02, np.array([4.0, 3.8])
    error = narrowed_of(np.diag([*values, 0.0]), np.eye(3, 2), values, 2, slack=off).score_error
    true, U = np.linalg.eigh(np.diag(values) + off * np.array([[0, 1], [1, 0]]))
    for i in range(2):
        scores = np.sqrt(true[1 - i]) * np.abs(U[:, 1 - i])
        assert np.linalg.norm(scores - np.sqrt(values[i]) * np.eye(2)[i]) <= error[i] * scores.max()
