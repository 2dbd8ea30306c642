"""The three ways to scale: Euclidean data, distances tile by tile, landmarks."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigvalsh

from ..compute import LocalEngine
from ..compute.linalg import peak_signs
from ..fitting.choosing import Eigenproblem, solve_planned, warn_unconverged
from ..fitting.costs import Workload
from ..fitting.moments import Moments
from ..operators import DenseOperator, DoubleCentered, Multiple
from ..solvers import BlockKrylov, Eigenpairs
from .coordinates import (
    SAME_POINT,
    DistanceMap,
    Spectrum,
    cailliez_constant,
    double_centered,
    estimated_spectrum,
    full_spectrum,
    gower_map,
    landmark_map,
    misfit,
    positive_part,
    principal_map,
)
from .distances import EuclideanDistance, LiftedDistance, check_landmark_block

# Points up to which all eigenvalues come from one decomposition, where the budget allows: half
# a second on one core.
DENSE_ROWS = 1000
# Points for each dimension from which a few eigenpairs are cheaper than all.
FEW = 8
# Points up to which Cailliez's eigenproblem, twice the size and nonsymmetric, is bearable.
CAILLIEZ_ROWS = 1000
# Points up to which the fit is measured on all pairs, and the sample beyond.
ALL_PAIRS_ROWS, SAMPLE_ROWS, SAMPLE_COLUMNS = 2000, 1000, 2000
# Negative eigenvalues below this share of the sum of |l| are rounding.
ROUNDING = 1e-9
# Dimensions looked at first where a share of the squared eigenvalues is asked for.
FIRST_DIMENSIONS = 16
# Rows of a streamed block at most.
STREAM_ROWS = 2048


@dataclass(frozen=True)
class Task:
    """What is to be scaled and with what means.

    Attributes
    ----------
    distance : callable
        ``distance(rows, columns)`` between two blocks of points.
    points, anchors : arrays
        All points, and those that distances are taken to: all, or the landmarks.
    index : array of int or None
        Row numbers of the landmarks.
    n_components, tol, correction
        As the estimator has them.
    """

    distance: Any
    points: np.ndarray
    anchors: np.ndarray
    index: np.ndarray | None
    n_components: int
    tol: float
    correction: str | None
    engine: LocalEngine
    rng: np.random.Generator
    report: Any

    @property
    def n(self) -> int:
        """Number of points."""
        return self.points.shape[0]


@dataclass(frozen=True)
class Coordinates:
    """Coordinates, the map that places new points, and what the eigenvalues say."""

    map: Any
    embedding: np.ndarray
    values: np.ndarray
    spectrum: Spectrum
    distance: Any
    constant: float = 0.0


@dataclass(frozen=True)
class LinearMap:
    """Coordinates of rows of Euclidean data: a rotation about the mean."""

    mean: np.ndarray
    rotation: np.ndarray

    def __call__(self, X):
        """(X - mean) Q, (n, p)."""
        return (X - self.mean) @ self.rotation


def dimensions_for(task: Task, share: float) -> int:
    """The fewest dimensions whose squared eigenvalues are more than a share of the sum of all.

    The sum of all is the squared norm of -H D2 H / 2, from one reading of it; of landmarks that of
    theirs. Eigenpairs are found in rounds, twice as many each time.
    """
    operator = _judged(task)
    total, step = 0.0, block_rows(task.engine, operator.shape[0])
    for start in range(0, operator.shape[0], step):
        B = operator.rows(np.arange(start, min(start + step, operator.shape[0])))
        total += float(np.vdot(B, B))
    count = FIRST_DIMENSIONS
    while True:
        count = min(count, operator.shape[0])
        values = positive_part(solve(task, operator, count).values)
        sums = np.cumsum(np.square(values))
        if sums[-1] > share * total or count == operator.shape[0] or values[-1] == 0:
            return max(
                1, min(int(np.sum(sums <= share * total)) + 1, int(np.count_nonzero(values)))
            )
        count *= 2


def _judged(task: Task):
    """The double-centered matrix of all points, or of the landmarks."""
    if task.index is not None:
        D = np.asarray(task.distance(task.points[task.index], task.anchors), dtype=float)
        return DenseOperator(double_centered((D + D.T) / 2))
    if isinstance(task.distance, EuclideanDistance):
        X, d = task.points, task.points.shape[1]
        if d <= task.n:
            rows = block_rows(task.engine, d)
            moments = task.engine.sum_rows(
                lambda block: Moments.of(X[block].astype(float)), task.n, rows
            )
            return DenseOperator(moments.scatter)
        return DenseOperator(DoubleCentered.of_data(X, task.engine, task.rng).to_dense())
    return make_operator(task, task.distance)


def find_coordinates(task: Task) -> Coordinates:
    """Coordinates by the way that fits the task."""
    if task.index is not None:
        return landmark_coordinates(task)
    plain = isinstance(task.distance, EuclideanDistance)
    return euclidean_coordinates(task) if plain else matrix_free_coordinates(task)


def euclidean_coordinates(task: Task) -> Coordinates:
    """PCA by the smaller of the two Gram matrices, which is never larger than the data."""
    X, engine, p = task.points, task.engine, task.n_components
    n, d = X.shape
    rows = block_rows(engine, d)
    moments = engine.sum_rows(lambda block: Moments.of(X[block].astype(float)), n, rows)
    if d <= n:
        operator = DenseOperator(moments.scatter)
    else:
        operator = DenseOperator(DoubleCentered.of_data(X, engine, task.rng).to_dense())
    pairs = solve(task, operator, min(p, d, n))
    values, Q = positive_part(pairs.values), pairs.vectors
    if d > n:
        Q = (X - moments.mean).T @ Q
        Q /= np.maximum(np.linalg.norm(Q, axis=0), 1e-300)
    Q, values = widened(Q * (values > 0), p), widened(values, p)
    Y, map_ = np.empty((n, p)), LinearMap(moments.mean, Q)
    engine.map_rows(lambda block: map_(X[block]), n, rows, Y)
    signs = peak_signs(Y)
    total = float(np.trace(operator.A))
    spectrum = Spectrum(total, total, 0.0)
    return Coordinates(
        LinearMap(moments.mean, Q * signs), Y * signs, values, spectrum, task.distance
    )


def matrix_free_coordinates(task: Task) -> Coordinates:
    """Leading eigenpairs of -H D2 H / 2, met tile by tile."""
    p = task.n_components
    distance, constant = corrected(task)
    operator = make_operator(task, distance)
    pairs, spectrum = leading(task, operator)
    values = positive_part(pairs.values)
    map_, Y = gower_map(operator.basis, widened(pairs.vectors, p), widened(values, p))
    return Coordinates(map_, Y, widened(values, p), spectrum, distance, constant)


def landmark_coordinates(task: Task) -> Coordinates:
    """All eigenpairs of the landmarks above the noise, then PCA of all points."""
    assert task.index is not None
    engine, p, n = task.engine, task.n_components, task.n
    D = np.asarray(task.distance(task.points[task.index], task.anchors), dtype=float)
    check_landmark_block(D)
    distance, constant = corrected(task, D := (D + D.T) / 2)
    if constant:
        D = distance.lift(D)
    first, spectrum = landmark_map(D, p)
    rows = block_rows(engine, 4 * len(D))

    def place(block, map_=first):
        return map_(distance(task.points[block], task.anchors))

    width = first.weights.shape[1]
    if 8 * n * width <= engine.memory:
        # Distances may be dear: each is asked for once where its place can be kept.
        Y = np.empty((n, width))
        engine.map_rows(place, n, rows, Y)
        moments = Moments.of(Y.copy())
        map_, values = principal_map(first, moments, p)
        Y = (Y - moments.mean) @ map_.rotation
    else:
        moments = engine.sum_rows(lambda block: Moments.of(place(block)), n, rows)
        map_, values = principal_map(first, moments, p)
        Y = np.empty((n, p))
        engine.map_rows(lambda block: place(block, map_), n, rows, Y)
    signs = peak_signs(Y)
    map_ = DistanceMap(map_.weights, map_.offset, map_.rotation * signs)
    spectrum = extended(spectrum, float(np.trace(moments.scatter)), first)
    return Coordinates(map_, Y * signs, values, spectrum, distance, constant)


def extended(spectrum: Spectrum, energy: float, first: DistanceMap) -> Spectrum:
    """The landmarks' spectrum on the scale of all points, whose positive part is known."""
    squares = np.square(first.weights).sum(axis=0)
    used = float(np.sum(1 / squares[squares > 0]))
    factor = energy / max(used, 1e-300)
    return Spectrum(
        spectrum.total * factor, spectrum.absolute * factor, spectrum.least * factor, exact=False
    )


def leading(task: Task, operator) -> tuple[Eigenpairs, Spectrum]:
    """The wanted eigenpairs and the spectrum: exact for few points, else estimated."""
    r = min(task.n_components, task.n)
    small = task.n <= DENSE_ROWS and 64 * task.n**2 <= task.engine.memory
    if task.n > FEW * r and not small:
        pairs = solve(task, operator, r)
        with task.engine.single_blas():
            return pairs, estimated_spectrum(operator, pairs, task.rng)
    pairs = solve(task, operator, task.n)
    return pairs.leading(r), full_spectrum(pairs.values)


def solve(task: Task, operator, r: int) -> Eigenpairs:
    """Leading eigenpairs by the cheapest solver."""
    n, engine = operator.shape[0], task.engine
    work = Workload(n, task.points.shape[1], r, engine.memory, engine.threads, float(task.tol))
    pairs, _ = solve_planned(Eigenproblem(operator), work, task.rng, engine, task.report)
    warn_unconverged(pairs, task.tol)
    return pairs


def corrected(task: Task, D=None):
    """The distance with its additive constant, and the constant; D where it is at hand."""
    if task.correction is None:
        return task.distance, 0.0
    if task.correction == "cailliez":
        size = task.n if D is None else len(D)
        if size > CAILLIEZ_ROWS:
            raise ValueError(
                f"correction='cailliez' decomposes a matrix twice the size of its {size:,} "
                f"points, and is limited to {CAILLIEZ_ROWS:,}. Use correction='lingoes'."
            )
        D = task.distance(task.points, task.points) if D is None else D
        constant, mean = cailliez_constant(np.asarray(D, dtype=float)), np.mean(np.square(D))
    elif D is not None:
        constant, mean = -eigvalsh(double_centered(D))[0], np.mean(np.square(D))
    else:
        operator = make_operator(task, task.distance)
        constant = -least_eigenvalue(task, operator)
        mean = 2 * operator.trace() / task.n
    same = SAME_POINT * float(np.sqrt(mean))
    constant = max(float(constant), 0.0)
    return LiftedDistance(task.distance, task.correction, constant, same), constant


def least_eigenvalue(task: Task, operator) -> float:
    """The smallest eigenvalue of B, less its residual."""
    with task.engine.single_blas():
        if task.n <= DENSE_ROWS:
            return float(eigvalsh(operator.to_dense())[0])
        pairs = BlockKrylov().solve(Multiple(operator, -1.0), 1, task.rng, task.tol)
    return -float(pairs.values[0] + pairs.residuals[0])


def make_operator(task: Task, distance) -> DoubleCentered:
    """-H D2 H / 2 of a distance."""
    r = min(task.n_components, task.n)
    return DoubleCentered.of_distance(distance, task.points, task.engine, task.rng, r)


def measure_misfit(task: Task, distance, Y) -> tuple[float, float]:
    """Strain and stress of the embedding on all pairs, or on a sample of them.

    `distance` is what was scaled, with its constant.
    """
    width = min(task.n, max(64, task.engine.memory // (48 * SAMPLE_ROWS)))
    points, anchors, placed, others = task.points, task.anchors, Y, Y
    if task.n > min(ALL_PAIRS_ROWS, width):
        columns = np.sort(task.rng.choice(task.n, min(SAMPLE_COLUMNS, width), replace=False))
        rows = np.sort(task.rng.choice(task.n, min(SAMPLE_ROWS, task.n), replace=False))
        points, placed = points[columns], Y[columns]
        if task.index is None:
            anchors, others = anchors[rows], Y[rows]
    if task.index is not None:
        anchors, others = anchors[:SAMPLE_ROWS], Y[task.index[:SAMPLE_ROWS]]
    D = np.asarray(distance(points, anchors), dtype=float)
    strain, stress = misfit(D, placed, others)
    return strain * task.n**2, stress


def widened(A, p: int):
    """Values or vectors with zeros up to p of them."""
    short = p - A.shape[-1]
    return np.pad(A, [(0, 0)] * (A.ndim - 1) + [(0, short)]) if short > 0 else A


def block_rows(engine, width: int) -> int:
    """Rows of a block that leave every thread inside the budget."""
    return min(max(engine.memory // (24 * engine.threads * width), 1), STREAM_ROWS)


def describe(model) -> str:
    """The summary of a fitted model."""
    first, second = model.goodness_of_fit_
    how = "" if model.spectrum_.exact else ", estimated"
    n, p = model.embedding_.shape
    constant = f"{model.correction}, {model.correction_constant_:.4g}"
    return "\n".join(
        [
            f"Classical MDS of {n:,} points in {p} dimensions",
            "eigenvalues           " + " ".join(f"{v:.4g}" for v in model.eigenvalues_[:10]),
            f"goodness of fit       {first:.4f} of all |l|, {second:.4f} of the positive{how}",
            f"negative eigenvalues  {describe_negative(model)}{how}",
            f"stress-1              {model.stress_:.4g}",
            f"strain                {model.strain_:.4g}",
            f"additive constant     {constant if model.correction else 'none'}",
        ]
    )


def describe_negative(model) -> str:
    """How far from Euclidean the distances are."""
    if model.negative_share_ < ROUNDING:
        return "none, the distances are Euclidean"
    share = model.least_eigenvalue_ / max(float(model.eigenvalues_[0]), 1e-300)
    return (
        f"{model.negative_share_:.1%} of the sum of |l|, least {model.least_eigenvalue_:.4g} "
        f"or {share:.1%} of the first"
    )
