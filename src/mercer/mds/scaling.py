"""Classical scaling: coordinates from distances, for all points, by landmarks, for new ones.

With B = -H D2 H / 2 and its leading eigenpairs U, L the coordinates are Y = U L^{1/2}. A new point
with squared distances d2 to the points has (Gower 1968)

    y = L^{-1/2} U' (-d2 / 2 - mean of the rows of -D2 / 2),

which is the score of kernel PCA with the kernel -d^2 / 2. Only positive eigenvalues have
coordinates; the others are measured (`Spectrum`) or lifted by a constant. There are three problems:
Euclidean data by the smaller of two Gram matrices, distances tile by tile, landmarks.
"""

import math
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from scipy.linalg import eigvalsh
from scipy.spatial.distance import cdist

from ..bases import ColumnBasis, PointBasis, PrecomputedBasis, Whitening
from ..compute.arrays import some_of
from ..compute.engine import moment_bytes
from ..compute.linalg import peak_signs
from ..fitting.certificate import Certificate, Rounding, certify
from ..fitting.expansion import OfExpansion
from ..fitting.functions import CountOf, SurveyOf, Together, sampled_numbers
from ..fitting.moments import Moments, MomentsOf, RowFunction
from ..fitting.problems import EPS, Problem, roundings_of
from ..fitting.task import WITNESS
from ..kernels import Kernel, Linear, Precomputed, SquaredDistance
from ..kernels.base import dense_rows
from ..operators import DenseOperator, DoubleCentered, Multiple
from ..solvers import BlockKrylov, Eigenpairs
from ..solvers.base import orthonormal_against, small_eigh
from .distances import (
    EuclideanDistance,
    LiftedDistance,
    check_entries,
    check_matrix,
    landmark_count,
)

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
# Points up to which the fit is measured on all pairs, and the sample beyond.
ALL_PAIRS_ROWS, SAMPLE_ROWS, SAMPLE_COLUMNS = 2000, 1000, 2000
# The most rows of the matrix that are read at once.
STREAM_ROWS = 2048
TINY = 1e-300


class Distances(Precomputed):
    """Stands for the distances of a task until its problem is posed: they cost what kernels do."""

    seconds = Kernel.seconds


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
        Whether the last two are exact, and not estimated.
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

    def goodness_of_fit(self, values: np.ndarray) -> tuple[float, float]:
        """Sum of the fitted eigenvalues over that of |l|, and over that of the positive ones."""
        positive, fitted = (self.absolute + self.total) / 2, float(np.sum(values))
        first, second = (min(fitted / max(of, TINY), 1.0) for of in (self.absolute, positive))
        return first, second


@dataclass(frozen=True)
class SpectralPairs(Eigenpairs):
    """Leading eigenpairs, and what all eigenvalues say."""

    spectrum: Spectrum | None = None


@dataclass(frozen=True)
class LinearMap:
    """Coordinates of rows of Euclidean data: a rotation about the mean."""

    mean: Annotated[np.ndarray, "d"]
    rotation: Annotated[np.ndarray, "d p"]

    size = property(lambda self: self.rotation.shape[1])

    def __call__(self, X) -> np.ndarray:
        """(X - mean) Q, (n, p)."""
        return (X - self.mean) @ self.rotation

    def turned(self, signs: np.ndarray) -> "LinearMap":
        """The map with its coordinates times signs."""
        return replace(self, rotation=self.rotation * signs)


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

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return (self.weights if self.rotation is None else self.rotation).shape[1]

    def __call__(self, D) -> np.ndarray:
        """Coordinates for distances D (not squared), (n, m) to (n, p)."""
        Y = (-0.5 * np.square(D)) @ self.weights - self.offset
        return Y if self.rotation is None else Y @ self.rotation

    def turned(self, signs: np.ndarray) -> "DistanceMap":
        """The map with its coordinates times signs."""
        if self.rotation is None:
            return DistanceMap(self.weights * signs, self.offset * signs)
        return replace(self, rotation=self.rotation * signs)


@dataclass(frozen=True)
class Placing:
    """A map with the points that it takes distances to: coordinates of rows wherever they are.

    Attributes
    ----------
    map : LinearMap or DistanceMap
    basis : PointBasis
        The points, and minus half of the squared distance to them as a kernel.
    """

    map: Any
    basis: Any

    @classmethod
    def of(cls, place: Any, distance: Any, points: Any, engine: Any) -> "Placing":
        """From a map, a distance, and the points that it is taken to."""
        return cls(place, PointBasis(SquaredDistance(distance), points, engine))

    def __call__(self, rows: Any) -> np.ndarray:
        """Coordinates of a block of rows, (n, p)."""
        if isinstance(self.map, LinearMap):
            return self.map(rows)
        D = self.basis.kernel.distance(rows, self.basis.points)
        check_entries(D, "X")
        return self.map(D)

    def coordinates(self, rows: Any) -> np.ndarray:
        """Coordinates of any number of rows, block by block."""
        rows, basis = dense_rows(rows), self.basis
        Y, step = np.empty((rows.shape[0], self.map.size)), basis.product_rows(rows)
        basis.engine.map_rows(lambda block: self(rows[block]), len(Y), step, Y)
        return Y

    def of_rows(self) -> OfExpansion:
        """The coordinates as a function of rows."""
        this: Any = self
        return OfExpansion(this, Placing.coordinates, (self.map.size,), "coordinates", float)


@dataclass(frozen=True)
class PlacedMoments(RowFunction):
    """Moments of the coordinates of rows."""

    placing: Placing

    def moved(self, engine):
        return PlacedMoments(replace(self.placing, basis=self.placing.basis.moved(engine)))

    def __call__(self, rows, first):
        placing, basis = self.placing, self.placing.basis

        def moments(block):
            return Moments.of_blocks([placing(dense_rows(rows[block]))])

        return basis.engine.sum_rows(moments, rows.shape[0], basis.product_rows(rows))


def moments_of_rows(d: int, engine: Any) -> MomentsOf:
    """Moments of the rows themselves, as a function of rows."""
    return MomentsOf(ColumnBasis(Linear(), d, engine), Whitening(d))


@dataclass(frozen=True)
class ScalingResult:
    """What the eigenpairs of a scaling problem become.

    Attributes
    ----------
    map : LinearMap or DistanceMap
        Places new points.
    embedding : array of shape (n, p) or None
        None of rows that are not one array, which the map is yet to be applied to.
    eigenvalues : array of shape (p,)
        Zero where there is no positive one.
    pairs : Eigenpairs
        As the solver has them.
    spectrum : Spectrum
    certificate : Certificate
    strain, stress : float
        The second is stress-1.
    problem : ScalingProblem
        Whose result it is, with the distance and its additive constant.
    """

    map: Any
    embedding: np.ndarray
    eigenvalues: np.ndarray
    pairs: Eigenpairs
    spectrum: Spectrum
    certificate: Certificate
    strain: float
    stress: float
    problem: Any


@dataclass(frozen=True, eq=False, kw_only=True)
class ScalingProblem(Problem):
    """The eigenproblem whose leading eigenpairs are the coordinates of points.

    Attributes
    ----------
    n_rows : int
        Rows that a plan is made for.
    task : FitTask
        Its array are all points, where they are one array.
    distance : callable
        ``distance(rows, columns)`` between two blocks of points, with its additive constant.
    marks : Marks
        The landmarks; without any all points.
    dimensions : int or None
        None where they are asked for by their share of the squared eigenvalues.
    constant : float
        What `distance` adds to half of the squares.
    """

    operator: Any
    basis: Any
    n_rows: int
    task: Any
    distance: Any
    marks: "Marks"
    dimensions: int | None
    constant: float = 0.0

    def canonical(self, pairs: Eigenpairs, precision: str = "d") -> Eigenpairs:
        """The pairs as they are: negative eigenvalues are measured, and the map has the signs."""
        return pairs

    def count_holding(self, values: np.ndarray, share: float) -> int:
        """As many as hold more than a share of the squared eigenvalues; see `fewest`.

        Eigenvalues are those of the distances without the constant, which raises all but one.
        """
        return fewest(values - self.constant, share, self.square)

    @cached_property
    def square(self) -> float:
        """The sum of all squared eigenvalues, without the constant; one reading of the matrix."""
        n, c, square = self.size, self.constant, 0.0
        step = max(1, min(STREAM_ROWS, self.task.engine.memory // (24 * n)))
        for start in range(0, n, step):
            B = self.operator.rows(np.arange(start, min(start + step, n)))
            square += float(np.vdot(B, B))
        return square + (n - 1) * c**2 - 2 * c * float(self.operator.diagonal().sum())

    def result(self, pairs: Eigenpairs) -> ScalingResult:
        p = self.dimensions or len(pairs.values)
        values = positive_part(pairs.values)
        residuals = widened(pairs.residuals + np.abs(values - pairs.values), p)
        values, vectors = widened(values, p), widened(pairs.vectors, p)
        clipped = replace(pairs, values=values, vectors=vectors, residuals=residuals)
        place, Y, spectrum, certificate = self.placed(clipped)
        signs = peak_signs(self.shown(place, Y))
        place, Y = place.turned(signs), None if Y is None else Y * signs
        statements = spectrum, certificate, *self.misfit(place, Y)
        return ScalingResult(place, Y, values, pairs, *statements, self)

    def shown(self, place: Any, Y: Any) -> np.ndarray:
        """Coordinates whose largest entries are positive: those of all points."""
        return Y

    @abstractmethod
    def placed(self, pairs: Any) -> tuple[Any, np.ndarray, Spectrum, Certificate]:
        """The map, coordinates of all points, spectrum and certificate; no value is negative."""

    def misfit(self, place: Any, Y: Any) -> tuple[float, float]:
        """Strain and stress-1, on all pairs or a sample of them; see `misfit`."""
        points, n = self.task.array, len(self.task.array)
        width = judged(self.task.engine, n)
        if n <= min(ALL_PAIRS_ROWS, width):
            return misfit(distances_of(self.distance, points, points), Y, Y, n)
        rng = deepcopy(self.task.rng)  # the same sample each time
        columns = np.sort(rng.choice(n, min(SAMPLE_COLUMNS, width), replace=False))
        rows = np.sort(rng.choice(n, min(SAMPLE_ROWS, n), replace=False))
        D = distances_of(self.distance, some_of(points, columns), some_of(points, rows))
        return misfit(D, Y[columns], Y[rows], n)


@dataclass(frozen=True, eq=False, kw_only=True)
class EuclideanProblem(ScalingProblem):
    """PCA of the rows by the smaller of the two Gram matrices, which is never larger than they are.

    That is the scatter of the columns, or the inner products of the rows about their mean.

    Attributes
    ----------
    moments : Moments
        Of the rows.
    """

    moments: Moments

    def placed(self, pairs: Any) -> tuple[Any, np.ndarray, Spectrum, Certificate]:
        X, mean, Q = self.task.array, self.moments.mean, pairs.vectors
        n, d = X.shape
        if d > n:
            Q = (X - mean).T @ Q
            Q /= np.maximum(np.linalg.norm(Q, axis=0), TINY)
        place = LinearMap(mean, Q * (pairs.values > 0))
        Y = Placing.of(place, None, mean[None], self.task.engine).coordinates(X)
        total = float(np.trace(self.operator.A))
        # Rows are rounded as they are, and added up about their mean.
        far = np.sqrt(n * float(mean @ mean) / max(total, TINY))
        error = EPS * (d + 4 * float(np.clip(far, n**0.5, 1 / EPS))) * total
        rounding = Rounding(error, error, (error * total) ** 0.5)
        certificate = certify(pairs, self.size, total, (rounding,), definite=True)
        return place, Y, Spectrum(total, total, 0.0), certificate


@dataclass(frozen=True, eq=False, kw_only=True)
class TiledProblem(ScalingProblem):
    """-H D2 H / 2, of which products are made tile by tile.

    The coordinates are the map's own, one product beyond the eigenvectors, so that the points keep
    their place however small the residual was asked to be.
    """

    @contextmanager
    def session(self, reserve: int = 0, checkpoint: Any = None, **settings: bool) -> Iterator[Any]:
        with self.basis.session(reserve, checkpoint, **settings) as gram:
            operator = DoubleCentered(gram)
            yield operator
        self.operator.learn_from(operator)

    def count_to_find(self, r: int) -> int:
        """All of few points, so that the whole spectrum is known."""
        n = self.size
        every = n <= FEW * r or (n <= DENSE_ROWS and 104 * n**2 <= self.task.engine.memory)
        return n if every else r

    def completed(self, pairs: Eigenpairs, operator, rng) -> "SpectralPairs":
        """The pairs with the whole spectrum: of few points known, of more estimated."""
        every = len(pairs.values) == self.size
        spectrum = Spectrum.of(pairs.values) if every else estimated_spectrum(operator, pairs, rng)
        return SpectralPairs(**vars(pairs), spectrum=spectrum)

    def placed(self, pairs: Any) -> tuple[Any, np.ndarray, Spectrum, Certificate]:
        A = pairs.vectors * inverse_root(pairs.values)
        A = A - A.mean(axis=0)
        Y = self.basis.gram(A)
        offset = Y.mean(axis=0)
        Y -= offset
        # No row of the matrix of |d^2 / 2| has a larger sum, nor has its norm, of which rounding is
        # a share.
        n, operator, shift = self.size, self.operator, float(self.basis.kernel.shift)
        scale = n * (float(np.max(shift - operator.row_means)) + abs(shift))
        means = operator.means_rounding * scale
        rounding = roundings_of(self.basis, scale, pairs.evidence, means)
        certificate = certify(pairs, n, float(operator.diagonal().sum()), rounding)
        return DistanceMap(A, offset), Y, pairs.spectrum, certificate

    def lifted(self) -> "TiledProblem":
        """The problem with the least constant on the squares that makes distances Euclidean."""
        task = self.task
        with self.session() as operator, task.engine.single_blas():
            if self.size <= DENSE_ROWS:
                constant = -float(eigvalsh(operator.to_dense())[0])
            else:
                pairs = BlockKrylov().solve(Multiple(operator, -1.0), 1, task.rng, task.tol)
                constant = float(pairs.values[0] + pairs.residuals[0])
        mean = 2 * float(self.operator.diagonal().mean())
        distance = with_constant(self.distance, constant, mean)
        matrix = task.array, task.engine, task.rng, self.dimensions
        operator = DoubleCentered.of_distance(distance, *matrix)
        lifted = {"distance": distance, "constant": distance.constant}
        return replace(self, operator=operator, basis=operator.basis, **lifted)


@dataclass(frozen=True, eq=False, kw_only=True)
class LandmarkProblem(ScalingProblem):
    """PCA of all points, placed by the landmarks' own map.

    Attributes
    ----------
    first : Placing
        Of the landmarks, by all of their eigenpairs above the noise.
    landmark_spectrum : Spectrum
    coordinates : array of shape (n, k) or None
        What `first` makes of all points, where the budget holds it.
    moments : Moments
        Of these.
    between : array of shape (m, m)
        Distances between the landmarks.
    """

    first: Placing
    landmark_spectrum: Spectrum
    coordinates: np.ndarray | None
    moments: Moments
    between: np.ndarray

    def count_to_find(self, r: int) -> int:
        return self.size

    def count_holding(self, values: np.ndarray, share: float) -> int:
        """As the distances between the landmarks have it."""
        return self.dimensions or 1

    def placed(self, pairs: Any) -> tuple[Any, Any, Spectrum, Certificate]:
        moments, first, Q = self.moments, self.first.map, pairs.vectors * (pairs.values > 0)
        place = replace(first, offset=first.offset + moments.mean, rotation=Q)
        if self.coordinates is not None:
            Y: Any = (self.coordinates - moments.mean) @ Q
        else:
            placing = replace(self.first, map=place)
            Y = None if self.task.array is None else placing.coordinates(self.task.array)
        # The landmarks' spectrum on the scale of all points, whose positive part is known.
        squares = np.square(first.weights).sum(axis=0)
        used, total = float(np.sum(1 / squares[squares > 0])), float(np.trace(moments.scatter))
        factor, of = total / max(used, TINY), self.landmark_spectrum
        spectrum = Spectrum(factor * of.total, factor * of.absolute, factor * of.least, exact=False)
        # Nothing bounds what distances between other points are, nor what they do to eigenvalues.
        ends = np.full(Q.shape[1], np.inf)
        return place, Y, spectrum, Certificate("estimate", -ends, ends, None, None, pairs.converged)

    def shown(self, place: Any, Y: Any) -> np.ndarray:
        """The landmarks: no order of the rows changes their signs."""
        return place(self.between)

    def misfit(self, place: Any, Y: Any) -> tuple[float, float]:
        D = np.asarray(self.distance(self.marks.judges, self.marks.anchors), dtype=float)
        placed, Z = place(D), place(self.between[:SAMPLE_ROWS])
        return misfit(D[:, :SAMPLE_ROWS], placed, Z, self.n_rows)


def misfit(D, placed, Z, n: int) -> tuple[float, float]:
    """Squared error of inner products (strain) of n points, and stress-1, on some of the pairs.

    Of points whose coordinates are `placed` with some whose are Z; D are their distances, with the
    constant. Inner products are about the mean of the pairs looked at.
    """
    E = cdist(placed, Z)
    E -= D
    stress = math.sqrt(float(np.vdot(E, E)) / max(float(np.vdot(D, D)), TINY))
    gap = double_centered(D)
    gap -= (placed - placed.mean(axis=0)) @ (Z - Z.mean(axis=0)).T
    return float(np.vdot(gap, gap)) / gap.size * n**2, stress


def distances_of(distance, points, anchors) -> np.ndarray:
    """Distances, a few points at a time where they have many columns."""
    D = SquaredDistance(distance)(points, anchors, np.float64)
    D *= -2.0
    return np.sqrt(D, out=D)


def judged(engine, n: int, m: int = SAMPLE_ROWS) -> int:
    """Points at most whose distances to a sample of m fit the budget."""
    return min(n, max(64, engine.memory // (48 * max(m, SAMPLE_ROWS))))


def scaling_problem(task, distance, correction) -> ScalingProblem:
    """The problem of a distance between all points of a task, by the way that fits it.

    `correction` is that of the estimator.
    """
    points, engine, (n, d) = task.array, task.engine, task.array.shape
    asked = None if task.count_asked is None else min(task.count_asked, n)
    parts: dict = {"task": task, "distance": distance, "dimensions": asked}
    parts["marks"] = Marks(points, points, None, None)
    if not isinstance(distance, EuclideanDistance) or moment_bytes(d, engine) > engine.memory:
        operator: Any = DoubleCentered.of_distance(distance, points, engine, task.rng, asked)
        problem = TiledProblem(**parts, operator=operator, basis=operator.basis, n_rows=n)
        return problem if correction is None else problem.lifted()
    moments = task.rows.sum(moments_of_rows(d, engine))
    G = moments.scatter
    if d > n:
        G = DoubleCentered.of_distance(None, points, engine, task.rng).to_dense()
    # The plan is that of a matrix of its size.
    parts |= {"operator": DenseOperator(G), "basis": PrecomputedBasis(G, engine), "n_rows": len(G)}
    return EuclideanProblem(**parts, moments=moments)


def landmark_problem(task, distance, correction, marks: "Marks") -> LandmarkProblem:
    """The problem of all points in the coordinates that the landmarks give them, wherever they are.

    Parameters as of `scaling_problem`, and the landmarks.
    """
    engine, rows, n = task.engine, task.rows, count_of(task.rows)
    p = None if task.count_asked is None else min(task.count_asked, n)
    D = np.asarray(distance(marks.chosen, marks.anchors), dtype=float)
    check_matrix(D)
    D, constant = (D + D.T) / 2, 0.0
    if p is None or correction is not None:
        values = eigvalsh(double_centered(D))[::-1]
        p = fewest(values, task.n_components, float(values @ values)) if p is None else p
        if correction is not None:
            distance = with_constant(distance, -values[-1], np.mean(np.square(D)))
            constant = distance.constant
            D = distance.lift(D) if constant else D
    place, spectrum = landmark_map(D, p)
    first = Placing.of(place, distance, marks.anchors, engine)
    # Distances may be expensive: each is computed once if the coordinates fit the budget.
    fits = task.array is not None and 8 * n * place.size <= engine.memory
    Y = first.coordinates(task.array) if fits else None
    if Y is None:
        moments = rows.sum(PlacedMoments(first), "summing moments", again=True)
    else:
        moments = Moments.of_blocks([Y.copy()])
    parts = {"distance": distance, "dimensions": p, "moments": moments, "basis": first.basis}
    parts |= {"operator": DenseOperator(moments.scatter), "n_rows": n, "coordinates": Y}
    parts |= {"task": task, "marks": marks, "constant": constant, "between": D}
    return LandmarkProblem(**parts, first=first, landmark_spectrum=spectrum)


@dataclass(frozen=True)
class Marks:
    """Landmarks of a scaling problem.

    Attributes
    ----------
    chosen, anchors : arrays
        The landmarks as points whose distances are taken, and as points that these are taken to:
        two numberings of a matrix of distances to landmarks alone.
    index : array of int or None
        Their numbers among all rows, where rows have numbers.
    judges : array or None
        Uniform points on which the fit by landmarks is measured.
    """

    chosen: Any
    anchors: Any
    index: Any
    judges: Any


def marks_of(task, landmarks, index) -> Marks:
    """Landmarks of rows wherever they are, the same for any kind of them.

    `index` has row numbers where these were given, and else `landmarks` is a number or a share.
    """
    rows, seed, n = task.rows, task.seed, count_of(task.rows)
    m = landmark_count(landmarks, n) if index is None else index.size
    size = min(SAMPLE_COLUMNS, judged(task.engine, n, m))
    judging = SurveyOf(size, seed ^ WITNESS)
    if index is not None:
        chosen = dense_rows(rows.take(index))
        return Marks(chosen, chosen, index, dense_rows(rows.sample(size, judging.seed)))
    if task.array is not None:
        index = sampled_numbers(n, m, seed)
        return Marks(*2 * (task.array[index],), index, rows.sample(size, judging.seed))
    looking = Together((SurveyOf(m, seed), judging))
    first, second = (seen.sample for seen in rows.sum(looking, "sampling rows", again=True).parts)
    chosen = dense_rows(first.rows)
    return Marks(chosen, chosen, first.numbers, dense_rows(second.rows))


def count_of(rows) -> int:
    """The number of rows; a pass where it is not known."""
    n: int | None = rows.shape[0]
    return rows.sum(CountOf(), "counting rows", again=True) if n is None else n


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


def with_constant(distance, constant: float, mean: float) -> LiftedDistance:
    """A distance with a constant that is not negative; `mean` is that of the squared distances."""
    same = SAME_POINT * float(np.sqrt(mean))
    return LiftedDistance(distance, max(float(constant), 0.0), same)


def fewest(values, share: float, square: float) -> int:
    """The fewest dimensions whose squared eigenvalues are more than a share of the sum of all.

    `values` are the leading eigenvalues, of which negative ones have no dimension, and `square` is
    the sum of the squares of all. One more than there are values if these do not tell.
    """
    positive = positive_part(values)
    count = 1 + int(np.sum(np.cumsum(np.square(positive)) <= share * square))
    return count if positive.all() else max(1, min(count, int(np.count_nonzero(positive))))


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
