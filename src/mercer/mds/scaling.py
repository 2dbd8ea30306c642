"""Classical scaling: coordinates from distances, for all points, by landmarks, for new ones.

With B = -H D2 H / 2 and its leading eigenpairs U, L the coordinates are Y = U L^{1/2}. A new point
with squared distances d2 to the points has (Gower 1968)

    y = L^{-1/2} U' (-d2 / 2 - mean of the rows of -D2 / 2),

which is the score of kernel PCA with the kernel -d^2 / 2. Only positive eigenvalues have
coordinates; the others are measured (`Spectrum`) or lifted by a constant. Three ways: Euclidean
data by the smaller of two Gram matrices, distances tile by tile, landmarks.
"""

import math
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from scipy.linalg import eigvals, eigvalsh
from scipy.spatial.distance import cdist

from ..bases.base import moment_bytes
from ..compute import LocalEngine
from ..compute.arrays import some_of
from ..compute.linalg import peak_signs
from ..fitting.certificate import NO_ROUNDING, Certificate, Rounding, certify
from ..fitting.choosing import Eigenproblem, solve_planned, warn_unconverged
from ..fitting.costs import Workload
from ..fitting.moments import Moments
from ..fitting.problems import EPS, roundings_of
from ..kernels.derived import SquaredDistance
from ..operators import DenseOperator, DoubleCentered, Multiple
from ..solvers import BlockKrylov, Eigenpairs
from ..solvers._linalg import orthonormal_against, small_eigh
from .distances import EuclideanDistance, LiftedDistance, check_landmark_block

# Eigenvalues below this share of the largest are rounding and have no coordinate.
ZERO_SHARE = 1e-12
# Landmark eigenvalues below this share of the largest are not used, whatever their sign.
LANDMARK_SHARE = 1e-9
# Distances below this share of the largest are between copies of a point, which a constant
# must not drive apart: training rows were seen to move by half their norm.
SAME_POINT = 1e-8
# Shares of the first eigenvalue that rounding leaves of a zero, in double and single precision.
ROUNDING, DRAFT_NOISE = 1e-12, 1e-6
# Probes and steps of the quadrature that estimates the sum of |l|.
PROBES, STEPS = 8, 8
# Points up to which all eigenvalues come from one decomposition, where the budget allows: half
# a second on one core.
DENSE_ROWS = 1000
# Points for each dimension from which a few eigenpairs are cheaper than all.
FEW = 8
# Points up to which Cailliez's eigenproblem, twice the size and nonsymmetric, is bearable.
CAILLIEZ_ROWS = 1000
# Points up to which the fit is measured on all pairs, and the sample beyond.
ALL_PAIRS_ROWS, SAMPLE_ROWS, SAMPLE_COLUMNS = 2000, 1000, 2000
# Dimensions looked at first where a share of the squared eigenvalues is asked for.
FIRST_DIMENSIONS = 16
# Rows of a streamed block at most.
STREAM_ROWS = 2048
TINY = 1e-300


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
    progress: Any

    @property
    def n(self) -> int:
        """Number of points."""
        return self.points.shape[0]

    @property
    def is_euclidean(self) -> bool:
        """Whether distances are those of rows of data whose moments the budget holds."""
        rows = self.index is None and isinstance(self.distance, EuclideanDistance)
        return rows and moment_bytes(self.points.shape[1], self.engine) <= self.engine.memory

    def block_rows(self, width: int) -> int:
        """Rows of `width` numbers that leave every thread inside the budget."""
        return min(max(self.engine.memory // (24 * self.engine.threads * width), 1), STREAM_ROWS)

    def moments(self) -> Moments:
        """Moments of the points, which are rows of data."""
        rows = self.block_rows(self.points.shape[1])
        return self.engine.sum_rows(
            lambda block: Moments.of_blocks([self.points[block].astype(float)]), self.n, rows
        )

    def landmark_distances(self) -> np.ndarray:
        """Distances between the landmarks, (m, m)."""
        D = np.asarray(self.distance(self.points[self.index], self.anchors), dtype=float)
        check_landmark_block(D)
        return (D + D.T) / 2

    def solve(self, operator, r: int) -> Eigenpairs:
        """Leading eigenpairs by the cheapest solver."""
        n, engine, d = operator.shape[0], self.engine, self.points.shape[1]
        work = Workload(n, d, r, engine.memory, engine.threads, float(self.tol))
        pairs, _ = solve_planned(Eigenproblem(operator), work, self.rng, engine, self.progress)
        warn_unconverged(pairs, self.tol)
        return pairs


@dataclass(frozen=True)
class Spectrum:
    """What all eigenvalues of B say about the distances.

    Attributes
    ----------
    total : float
        Sum of the eigenvalues.
    absolute : float
        Sum of their absolute values.
    least : float
        The smallest: negative where no points have these distances.
    exact : bool
        Whether the last two are known, and not estimated.
    """

    total: Annotated[float, "(-inf, inf)"]
    absolute: Annotated[float, "(-inf, inf)"]
    least: Annotated[float, "(-inf, inf)"]
    exact: bool = True

    @classmethod
    def of(cls, values: np.ndarray) -> "Spectrum":
        """From all eigenvalues."""
        return cls(float(values.sum()), float(np.abs(values).sum()), float(values.min()))

    @property
    def negative_share(self) -> float:
        """The share of the sum of |l| that is negative: 0 for Euclidean distances."""
        return max(self.absolute - self.total, 0.0) / 2 / max(self.absolute, TINY)

    def goodness_of_fit(self, kept: np.ndarray) -> tuple[float, float]:
        """Sum of the kept eigenvalues over that of |l|, and over that of the positive ones."""
        positive = (self.absolute + self.total) / 2
        share = float(np.sum(kept)) / np.maximum([self.absolute, positive], TINY)
        first, second = np.minimum(share, 1.0)
        return float(first), float(second)


@dataclass(frozen=True)
class LinearMap:
    """Coordinates of rows of Euclidean data: a rotation about the mean."""

    mean: Annotated[np.ndarray, "d"]
    rotation: Annotated[np.ndarray, "d p"]

    def __call__(self, X) -> np.ndarray:
        """(X - mean) Q, (n, p)."""
        return (X - self.mean) @ self.rotation


@dataclass(frozen=True)
class DistanceMap:
    """Coordinates of any point from its distances to the m points of the map.

    y = ((-d2 / 2) A - offset) R, with R the identity where it is None.

    Attributes
    ----------
    weights : array of shape (m, k)
        A, with columns that sum to zero.
    offset : array of shape (k,)
    rotation : array of shape (k, p) or None
    """

    weights: Annotated[np.ndarray, "a k"]
    offset: Annotated[np.ndarray, "k"]
    rotation: Annotated[np.ndarray, "k p"] | None = None

    def __call__(self, D) -> np.ndarray:
        """Coordinates for distances D (not squared), (n, m) to (n, p)."""
        Y = (-0.5 * np.square(D)) @ self.weights - self.offset
        return Y if self.rotation is None else Y @ self.rotation


@dataclass(frozen=True)
class Coordinates:
    """Coordinates, the map that places new points, and what the eigenvalues say."""

    map: Any
    embedding: np.ndarray
    values: np.ndarray
    spectrum: Spectrum
    distance: Any
    certificate: Certificate
    constant: float = 0.0


def dimensions_for(task: Task, share: float) -> int:
    """The fewest dimensions whose squared eigenvalues are more than a share of the sum of all.

    The sum of all is the squared norm of -H D2 H / 2, from one reading of it; of landmarks that of
    theirs. Eigenpairs are found in rounds, twice as many each time.
    """
    if task.index is not None:
        operator: Any = DenseOperator(double_centered(task.landmark_distances()))
    elif task.is_euclidean:
        operator = smaller_gram(task, task.moments())
    else:
        operator = tiled(task, task.distance)
    n, total = operator.shape[0], 0.0
    step, count = task.block_rows(n), FIRST_DIMENSIONS
    for start in range(0, n, step):
        B = operator.rows(np.arange(start, min(start + step, n)))
        total += float(np.vdot(B, B))
    while True:
        count = min(count, n)
        values = positive_part(task.solve(operator, count).values)
        sums = np.cumsum(np.square(values))
        if sums[-1] > share * total or count == n or values[-1] == 0:
            wanted = int(np.sum(sums <= share * total)) + 1
            return max(1, min(wanted, int(np.count_nonzero(values))))
        count *= 2


def find_coordinates(task: Task) -> Coordinates:
    """Coordinates by the way that fits the task."""
    if task.index is not None:
        return landmark_coordinates(task)
    return euclidean_coordinates(task) if task.is_euclidean else tiled_coordinates(task)


def euclidean_coordinates(task: Task) -> Coordinates:
    """PCA by the smaller of the two Gram matrices, which is never larger than the data."""
    X, p, (n, d) = task.points, task.n_components, task.points.shape
    moments = task.moments()
    operator = smaller_gram(task, moments)
    pairs = task.solve(operator, min(p, d, n))
    values, Q = positive_part(pairs.values), pairs.vectors
    if d > n:
        Q = (X - moments.mean).T @ Q
        Q /= np.maximum(np.linalg.norm(Q, axis=0), TINY)
    Y, map_ = np.empty((n, p)), LinearMap(moments.mean, widened(Q * (values > 0), p))
    task.engine.map_rows(lambda block: map_(X[block]), n, task.block_rows(d), Y)
    signs, total = peak_signs(Y), float(np.trace(operator.A))
    map_ = replace(map_, rotation=map_.rotation * signs)
    spectrum = Spectrum(total, total, 0.0)
    # Rows are rounded as they are, and added up about their mean.
    far = np.sqrt(n * float(moments.mean @ moments.mean) / max(total, TINY))
    rounding = EPS * (d + 4 * float(np.clip(far, n**0.5, 1 / EPS))) * total
    known = (Rounding(rounding, rounding, (rounding * total) ** 0.5),)
    found = certified(pairs, p, operator.shape[0], total, known, definite=True)
    return Coordinates(map_, Y * signs, widened(values, p), spectrum, task.distance, found)


def certified(pairs: Eigenpairs, p: int, *of_matrix: Any, **known: Any) -> Certificate:
    """The certificate of p coordinates, whose eigenvalues are not negative."""
    values, residuals = positive_part(pairs.values), pairs.residuals
    residuals = widened(residuals + np.abs(values - pairs.values), p)
    return certify(
        replace(pairs, values=widened(values, p), residuals=residuals), *of_matrix, **known
    )


def smaller_gram(task: Task, moments: Moments) -> DenseOperator:
    """The scatter of the columns of data, or the inner products of its rows about their mean."""
    n, d = task.points.shape
    if d <= n:
        return DenseOperator(moments.scatter)
    operator = DoubleCentered.of_distance(None, task.points, task.engine, task.rng)
    return DenseOperator(operator.to_dense())


def tiled(task: Task, distance) -> DoubleCentered:
    """-H D2 H / 2 of a distance, tile by tile."""
    r = min(task.n_components, task.n)
    return DoubleCentered.of_distance(distance, task.points, task.engine, task.rng, r)


def tiled_coordinates(task: Task) -> Coordinates:
    """Leading eigenpairs of -H D2 H / 2, of which products are made tile by tile.

    The coordinates are the map's own, one product beyond the eigenvectors, so that the points keep
    their place however small the residual was asked to be.
    """
    n, p, r = task.n, task.n_components, min(task.n_components, task.n)
    distance, constant = corrected(task)
    operator = tiled(task, distance)
    # All eigenvalues of few points are known, of more they are estimated.
    if n <= FEW * r or (n <= DENSE_ROWS and 104 * n**2 <= task.engine.memory):
        pairs = task.solve(operator, n)
        spectrum, pairs = Spectrum.of(pairs.values), pairs.leading(r)
    else:
        pairs = task.solve(operator, r)
        with task.engine.single_blas():
            spectrum = estimated_spectrum(operator, pairs, task.rng)
    values = widened(positive_part(pairs.values), p)
    A = widened(pairs.vectors, p) * inverse_root(values)
    A = A - A.mean(axis=0)
    Y = operator.basis.gram(A)
    offset = Y.mean(axis=0)
    Y -= offset
    signs = peak_signs(Y)
    map_ = DistanceMap(A * signs, offset * signs)
    # No row of the matrix of |d^2 / 2| has a larger sum, nor has its norm, of which rounding is a
    # share.
    shift = float(operator.basis.kernel.shift)
    size = n * (float(np.max(shift - operator.row_means)) + abs(shift))
    known = roundings_of(operator.basis, size, pairs.evidence, operator.means_rounding * size)
    found = certified(pairs, p, n, float(operator.diagonal().sum()), known)
    return Coordinates(map_, Y * signs, values, spectrum, distance, found, constant)


def landmark_coordinates(task: Task) -> Coordinates:
    """All eigenpairs of the landmarks above the noise, then PCA of all points."""
    engine, p, n = task.engine, task.n_components, task.n
    D = task.landmark_distances()
    distance, constant = corrected(task, D)
    if constant:
        D = distance.lift(D)
    first, spectrum = landmark_map(D, p)
    rows, width = task.block_rows(4 * len(D)), first.weights.shape[1]

    def place(block, map_=first):
        return map_(distance(task.points[block], task.anchors))

    # Distances may be dear: each is asked for once where its place can be kept.
    kept = np.empty((n, width)) if 8 * n * width <= engine.memory else None
    if kept is not None:
        engine.map_rows(place, n, rows, kept)
        moments = Moments.of_blocks([kept.copy()])
    else:
        moments = engine.sum_rows(lambda block: Moments.of_blocks([place(block)]), n, rows)
    values, Q = small_eigh(moments.scatter)
    values = positive_part(values[:p])
    Q, values = widened(Q[:, :p] * (values > 0), p), widened(values, p)
    map_ = DistanceMap(first.weights, first.offset + moments.mean, Q)
    if kept is not None:
        Y = (kept - moments.mean) @ Q
    else:
        Y = np.empty((n, p))
        engine.map_rows(lambda block: place(block, map_), n, rows, Y)
    signs = peak_signs(Y)
    map_ = replace(map_, rotation=Q * signs)
    # The landmarks' spectrum on the scale of all points, whose positive part is known.
    squares = np.square(first.weights).sum(axis=0)
    used = float(np.sum(1 / squares[squares > 0]))
    factor = float(np.trace(moments.scatter)) / max(used, TINY)
    total, absolute = factor * spectrum.total, factor * spectrum.absolute
    spectrum = Spectrum(total, absolute, factor * spectrum.least, exact=False)
    # Nothing bounds what distances between other points are.
    pairs = Eigenpairs(values, Q, np.zeros(p), bounded=False)
    found = certified(pairs, p, n, float(np.trace(moments.scatter)), (NO_ROUNDING,))
    return Coordinates(map_, Y * signs, values, spectrum, distance, found, constant)


def landmark_map(D, p: int) -> tuple[DistanceMap, Spectrum]:
    """The map of m landmarks from their own distances D, (m, m).

    All eigenpairs above the noise level, which the most negative one shows, and at least p:
    triangulation with the leading p alone (de Silva & Tenenbaum 2004) was seen to be five
    times farther from the exact result.
    """
    values, U = small_eigh(double_centered(D))
    noise = max(LANDMARK_SHARE * values[0], -values[-1])
    k = max(int(np.sum(values > noise)), min(p, len(values)))
    A = U[:, :k] * inverse_root(positive_part(values[:k]))
    A -= A.mean(axis=0)
    return DistanceMap(A, (-0.5 * np.square(D) @ A).mean(axis=0)), Spectrum.of(values)


def estimated_spectrum(operator, pairs: Eigenpairs, rng) -> Spectrum:
    """From the leading eigenpairs, the trace, and block Lanczos quadrature of what they leave.

    For Rademacher vectors z and f(l) = max(-l, 0), z'f(B)z is the negative mass on average
    (Hutchinson); Lanczos from z gives it, and the smallest eigenvalue on the way (Bai, Fahey &
    Golub 1996). With the trace it gives the sum of |l|, and is zero where nothing is negative.
    Single precision is enough, and what it cannot tell from zero counts as zero.
    """
    inner, noise = (operator, ROUNDING) if operator.draft is None else (operator.draft, DRAFT_NOISE)
    U = pairs.vectors
    Z = rng.choice([-1.0, 1.0], size=(operator.shape[0], PROBES))
    V, _, B = orthonormal_against(Z, U)
    steps = min(STEPS, (operator.shape[0] - U.shape[1]) // PROBES)
    blocks, T = [V], np.zeros((steps * PROBES, steps * PROBES))
    for step in range(steps):
        new = slice(step * PROBES, (step + 1) * PROBES)
        Q = np.hstack([U, *blocks])
        V, C, _ = orthonormal_against(inner @ blocks[-1], Q)
        C = C[U.shape[1] :]
        T[: new.stop, new], T[new, : new.stop] = C, C.T
        blocks.append(V)
    values, Y = small_eigh(T)
    values = np.where(values < -noise * abs(float(pairs.values[0])), values, 0.0)
    weights = np.square(Y[:PROBES].T @ B).sum(axis=1) / PROBES
    negative = float(weights @ np.maximum(-values, 0.0))
    total = float(operator.diagonal().sum())
    return Spectrum(total, total + 2 * negative, float(values[-1]), exact=False)


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
        operator = tiled(task, task.distance)
        constant, mean = -least_eigenvalue(task, operator), 2 * float(operator.diagonal().mean())
    constant, same = max(float(constant), 0.0), SAME_POINT * float(np.sqrt(mean))
    return LiftedDistance(task.distance, task.correction, constant, same), constant


def least_eigenvalue(task: Task, operator) -> float:
    """The smallest eigenvalue of B, less its residual."""
    with task.engine.single_blas():
        if task.n <= DENSE_ROWS:
            return float(eigvalsh(operator.to_dense())[0])
        pairs = BlockKrylov().solve(Multiple(operator, -1.0), 1, task.rng, task.tol)
    return -float(pairs.values[0] + pairs.residuals[0])


def cailliez_constant(D) -> float:
    """The least c for which the distances d + c are Euclidean (Cailliez 1983).

    The largest real eigenvalue of a nonsymmetric 2n x 2n matrix: O(n^3) with a large factor.
    """
    n = D.shape[0]
    M = np.zeros((2 * n, 2 * n))
    M[:n, n:] = 2 * double_centered(D)
    M[n:, :n] = -np.eye(n)
    M[n:, n:] = -4 * double_centered(np.sqrt(D))
    return max(float(eigvals(M, overwrite_a=True, check_finite=False).real.max()), 0.0)


def measure_misfit(task: Task, distance, Y) -> tuple[float, float]:
    """Squared error of inner products (strain) and stress-1, on all pairs or a sample of them.

    `distance` is what was scaled, with its constant. Inner products are about the mean of the
    pairs looked at.
    """
    width = min(task.n, max(64, task.engine.memory // (48 * SAMPLE_ROWS)))
    points, anchors, placed, Z = task.points, task.anchors, Y, Y
    if task.n > min(ALL_PAIRS_ROWS, width):
        columns = np.sort(task.rng.choice(task.n, min(SAMPLE_COLUMNS, width), replace=False))
        rows = np.sort(task.rng.choice(task.n, min(SAMPLE_ROWS, task.n), replace=False))
        points, placed = some_of(points, columns), Y[columns]
        if task.index is None:
            anchors, Z = some_of(anchors, rows), Y[rows]
    if task.index is not None:
        anchors, Z = anchors[:SAMPLE_ROWS], Y[task.index[:SAMPLE_ROWS]]
    # Wide points a few at a time.
    D = SquaredDistance(distance)(points, anchors, np.float64)
    D *= -2.0
    np.sqrt(D, out=D)
    E = cdist(placed, Z)
    E -= D
    stress = math.sqrt(float(np.vdot(E, E)) / max(float(np.vdot(D, D)), TINY))
    gap = double_centered(D)
    gap -= (placed - placed.mean(axis=0)) @ (Z - Z.mean(axis=0)).T
    return float(np.vdot(gap, gap)) / gap.size * task.n**2, stress


def double_centered(D) -> np.ndarray:
    """-H D2 H / 2 of distances, (n, m)."""
    B = -0.5 * np.square(D)
    B -= B.mean(axis=0)
    B -= B.mean(axis=1)[:, None]
    return B


def positive_part(values) -> np.ndarray:
    """Eigenvalues with rounding and negative ones set to zero."""
    return np.where(values > ZERO_SHARE * max(float(np.max(values)), 0.0), values, 0.0)


def inverse_root(values) -> np.ndarray:
    """l^{-1/2} where l is positive, else 0."""
    return np.divide(1.0, np.sqrt(values), out=np.zeros(values.shape), where=values > 0)


def widened(A, p: int) -> np.ndarray:
    """Values or vectors with zeros up to p of them."""
    short = p - A.shape[-1]
    return np.pad(A, [(0, 0)] * (A.ndim - 1) + [(0, short)]) if short > 0 else A
