"""Spectral clustering: from a basis to functions that tell clusters apart, for any row.

With S = D^{-1/2} K D^{-1/2}, K without its diagonal, and S u = l u, v = D^{-1/2} u solves

    sum_{j != i} k(x_i, x_j) v_j = l d_i v_i.

For any x let s(x) be the sum of its affinities with all training rows and a(x) the one with the row
nearest to it, which of a training row is itself. Then

    v(x) = sum_j k(x, x_j) v_j / (a(x) + l (s(x) - a(x)))

is v_i at x_i, continuous, and far from all rows the value at the nearest. The Nystroem extension,
sum_j k(x, x_j) v_j / (l s(x)), is neither the first nor the last. Where l < 0 the nearest row
counts with -a(x) above and below, since a(x) + l (s(x) - a(x)) may be zero: v_i at x_i as well, but
not continuous where another row becomes the nearest.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Annotated, Any

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csr_matrix

from ..bases import Basis, FourierBasis, GramBasis, PrecomputedBasis
from ..bases.base import check_moments
from ..compute import array_namespace, dtype_name, is_sparse, on_device_of, self_product, to_numpy
from ..fitting.certificate import (
    NO_ROUNDING,
    PROVEN_SHARE,
    Certificate,
    Rounding,
    certify,
    leading,
    sines,
    stand_above,
)
from ..fitting.functions import Sums, TrigonometricOf
from ..fitting.moments import RowFunction
from ..fitting.problems import EPS, FFT_ROUNDING, Problem, roundings_of
from ..kernels import Hollow
from ..kernels.base import row_squares
from ..operators import DenseOperator, NormalizedGram, ToeplitzCovariance
from ..solvers import Eigenpairs

# Eigenvalues of S, whose largest is 1, that count as zero.
ZERO = 1e-12
TINY = float(np.finfo(float).tiny)
# Share of a direction's energy that is ties to other rows, below which they are rounding.
ISOLATED = {"float64": 1e-9, "float32": 1e-4}
# Degrees below which single precision, or any, has lost digits of affinities.
FAINT, FAINTEST = 1e-20, 1e-280
# Eigenvalues of the reduced matrix, at most 1, below which directions can be no leading ones.
SMALL = {"float64": 1e-10, "float32": 1e-5}


@dataclass(frozen=True)
class PointMap:
    """The functions v(x) of all points.

    Attributes
    ----------
    basis : GramBasis
    weights : array of shape (m, k)
        Values of the functions at the points.
    values : array of shape (k,)
        Eigenvalues of S.
    own : array of shape (m,)
        k(x_j, x_j) where the matrix is without its diagonal, else zeros: then a(x) is zero.
    """

    basis: Basis
    weights: Annotated[np.ndarray, "m k"]
    values: Annotated[np.ndarray, "k"]
    own: Annotated[np.ndarray, "m"]

    def functions(self, X) -> np.ndarray:
        """v(x) of every row of X, (n, k)."""
        if is_sparse(X) and isinstance(self.basis, PrecomputedBasis):
            return self._extended(X)
        engine, n = self.basis.engine, X.shape[0]
        products, out = self.basis.block_products(X), np.empty((n, self.weights.shape[1]))
        # Room for a block of affinities, and for the arrays that compare it.
        fitting = engine.memory // (32 * engine.threads * self.basis.size)
        rows = max(1, min(self.basis.product_rows(X), fitting))
        engine.map_rows(lambda block: self._extended(products(block)), n, rows, out)
        return out

    def _extended(self, K):
        """v(x) from the affinities of rows with the training rows, (b, m)."""
        total = np.asarray(to_numpy(K.sum(axis=1)), dtype=float).reshape(-1, 1)
        signs = np.where(self.values < 0, -1.0, 1.0)
        nearest, affinity = self._nearest(K, tell_apart=signs.min(initial=1.0) < 0)
        affinity = affinity[:, None]
        below = signs * affinity + self.values * (total - affinity)
        W = on_device_of(self.weights.astype(dtype_name(K.dtype), copy=False), K)
        sums = np.asarray(to_numpy(K @ W), dtype=float)
        sums -= (1 - signs) * affinity * self.weights[nearest]
        good = np.abs(below) > ZERO * total
        return np.divide(sums, below, out=np.zeros(sums.shape), where=good)

    def _nearest(self, K, tell_apart: bool) -> tuple[np.ndarray, np.ndarray]:
        """The nearest training row of each row, and their affinity; equally near ones told apart.

        By Cauchy and Schwarz no row of a kernel is nearer to others than to itself. Of affinities
        that are given it may be: then it is found by those with all others.
        """
        nearest, affinity = nearest_affinities(K, self.own)
        if isinstance(self.basis, PrecomputedBasis) and self.own.any():
            doubt = np.flatnonzero(tell_apart | (affinity > (1 + 1e-9) * self.own[nearest]))
            if doubt.size:
                nearest[doubt] = most_alike(K[doubt], self.basis.G)
                affinity = np.maximum(entries(K, nearest), 0.0)
        return nearest, affinity


@dataclass(frozen=True)
class ReducedMap:
    """The functions v(x) in a span: sums of basis vectors over their degree, another such sum.

    Attributes
    ----------
    basis : Basis
    weights : array of shape (m, k)
    total : array of shape (m,)
        Weights of the degree.
    """

    basis: Basis
    weights: Annotated[np.ndarray, "m k"]
    total: Annotated[np.ndarray, "m"]

    def functions(self, X) -> np.ndarray:
        """v(x) of every row of X, (n, k)."""
        sums = to_numpy(self.basis.project(X, np.column_stack([self.weights, self.total])))
        return sums[:, :-1] / floored(sums[:, -1], to_numpy(self.basis.norms(X)))[:, None]


@dataclass(frozen=True)
class AffinityResult:
    """What eigenpairs of affinities become.

    Attributes
    ----------
    map : PointMap, ReducedMap or DiffusionFunctions
        The functions of any row.
    functions : array of shape (n, k) or None
        Their values at the training rows, where they are known from the eigenvectors.
    certificate : Certificate
    pairs : Eigenpairs
    problem : AffinityProblem
        Whose result it is.
    """

    map: Any
    functions: Any
    certificate: Certificate
    pairs: Eigenpairs
    problem: Any


class AffinityProblem(Problem):
    """An eigenproblem of affinities in a basis, whose eigenpairs become functions of rows."""

    center, total, scale, slack, n_rows = False, 0.0, 0.0, 0.0, 0
    #: The smallest sum of a row's affinities.
    least_degree: float = 0.0

    def canonical(self, pairs: Eigenpairs, precision: str = "d") -> Eigenpairs:
        """As they are: eigenvalues of affinities may be negative."""
        if self.least_degree < 0:
            raise ValueError(
                f"The affinities of a row sum to {self.least_degree:.3g}, and they must not be "
                "negative. Use a kernel such as 'rbf', or add a constant to yours."
            )
        if not np.any(pairs.values > 0):
            raise ValueError(
                "No two rows have an affinity: the kernel is too narrow for these data. Give a "
                "smaller gamma, such as gamma='median', or scale the data."
            )
        return pairs

    def certificate(self, pairs: Eigenpairs) -> Certificate:
        """What is known of the eigenvalues in a span; what it leaves out is not bounded."""
        return self._stated(certify(replace(pairs, evidence=()), self.size, 0.0, (NO_ROUNDING,)))

    def _stated(self, certificate: Certificate, most: float = np.inf) -> Certificate:
        """The certificate without statements about variance; no eigenvalue is above `most`."""
        lower, upper = certificate.eigenvalue_lower, certificate.eigenvalue_upper
        upper = np.maximum(np.minimum(upper, most), lower)
        clear = stand_above((lower + upper) / 2, upper - lower)
        narrow = (upper - lower <= PROVEN_SHARE) & clear & (certificate.kind == "bound")
        proven, likely = max(leading(narrow), certificate.n_proven), certificate.likely_upper
        likely = None if likely is None else np.minimum(likely, upper)
        stated = replace(certificate, captured_variance=None, indefinite=False, n_proven=proven)
        return replace(stated, eigenvalue_upper=upper, likely_upper=likely)


@dataclass(frozen=True, eq=False)
class AllAffinities(AffinityProblem):
    """The eigenproblem of a normalized n x n matrix of affinities.

    Attributes
    ----------
    power : float
        Power of the eigenvalue that functions are multiplied by.
    """

    basis: GramBasis
    power: float = 0.0

    #: How often the rounding of degrees enters that of S.
    rounds = 1.0

    count = property(lambda self: self.basis.size)
    weight = property(lambda self: float(self.basis.size))

    @cached_property
    def operator(self) -> NormalizedGram:
        return self._operator(self.basis)

    def _operator(self, basis: GramBasis) -> NormalizedGram:
        return NormalizedGram(basis)

    @contextmanager
    def session(self, reserve: int = 0, checkpoint: Any = None, **settings: bool) -> Iterator[Any]:
        self.operator  # noqa: B018, what it needs of its own is made before the room is taken
        with self.basis.session(reserve, checkpoint, **settings) as gram:
            operator = self._operator(gram)
            yield operator
        self.operator.learn_from(operator)

    least_degree = property(lambda self: self.operator.least_degree)

    def all_certificate(self, pairs: Eigenpairs, V: np.ndarray) -> Certificate:
        """Certificate of the eigenvalues and of V, the functions at the rows.

        Never false for affinities of one sign: right to a share, their sums and S are so too.
        """
        operator, basis, coarse = self.operator, self.operator.basis, self.operator.is_coarse
        degrees = to_numpy(operator.known_degrees).astype(float)
        kernel = basis.kernel.kernel if isinstance(basis.kernel, Hollow) else basis.kernel
        positive, size = are_positive(basis, kernel), 2 * self.rounds
        if not positive:
            diagonal = to_numpy(basis.own_affinities()) + to_numpy(basis.diagonal())
            norm, roots = float((diagonal / degrees).sum()), np.sqrt(diagonal)
            size = norm * (1 + self.rounds * float((roots * roots.sum() / degrees).max()))
        seen: tuple = pairs.evidence if positive or kernel.definite else ()
        if basis.points is not None and self.least_degree < FAINT:
            lost = coarse or self.least_degree < FAINTEST
            seen = () if lost else tuple(e for e in seen if e.level == 0)
        roundings: Any = roundings_of(basis, size, seen)
        # Degrees in single precision are those of another matrix.
        draft: Any = basis.draft if coarse else None
        doubt = roundings_of(draft, size)[0].matrix if coarse else 0.0
        total = float((to_numpy(basis.diagonal()) / degrees).sum())
        trace, growth = (roundings[-1].matrix + doubt) * total, self.size**0.5
        roundings = [
            replace(r, matrix=r.matrix + doubt, root=r.root * growth, trace=trace)
            for r in roundings
        ]
        stretch = float(self.row_scale().max()) / np.linalg.norm(V, axis=0)
        what = replace(pairs, evidence=seen), self.size, total, tuple(roundings)
        errors = partial(function_errors, stretch=stretch, power=self.power)
        certificate = certify(*what, definite=operator.definite, errors=errors)
        return self._stated(certificate, 1.0 if positive else np.inf)

    def row_scale(self) -> np.ndarray:
        """What the entries of eigenvectors are multiplied by to be functions of rows, (n,)."""
        return to_numpy(self.operator.known_degrees).astype(float) ** -0.5


class NormalizedProblem(AllAffinities):
    """All points: the eigenproblem of D^{-1/2} K D^{-1/2} itself."""

    def result(self, pairs: Eigenpairs) -> AffinityResult:
        V = to_numpy(pairs.vectors) / np.sqrt(to_numpy(self.operator.known_degrees))[:, None]
        functions = PointMap(self.basis, V, pairs.values, to_numpy(self.basis.own_affinities()))
        return AffinityResult(functions, V, self.all_certificate(pairs, V), pairs, self)


@dataclass(frozen=True)
class Coordinates(RowFunction):
    """A function of the orthonormal coordinates Y of rows, summed over blocks; see `normalized`.

    Attributes
    ----------
    basis : Basis
    whitener : array or None
        Of the basis.
    total : array or None
        The sum of all coordinates; None to take it.
    """

    basis: Basis
    whitener: Any
    total: Any = None

    def __call__(self, rows, first=None):
        basis = self.basis
        basis.kernel.check(rows)
        X = basis.engine.place(rows)
        n, step, stream = X.shape[0], basis.product_rows(X), basis.block_products(X, self.whitener)
        total = None if self.total is None else basis.engine.asarray(self.total)

        def summed(block):
            Y = stream(block)
            if total is not None:
                return self.scattered(Y, basis.norms(X[block]), total)
            xp = array_namespace(Y)
            return xp.sum(Y, axis=0, dtype=xp.float64)

        return to_numpy(basis.engine.sum_rows(summed, n, step))

    def moved(self, engine):
        return replace(self, basis=self.basis.moved(engine))

    def scattered(self, Y, norms, total):
        """Y' F^{-1} Y and Y' F^{-1} N F^{-1} Y of a block of coordinates, (2, m, m).

        F = max(Y Y' 1, k(x, x)) and N = |y|^2, row by row.
        """
        xp, float64 = array_namespace(Y), array_namespace(Y).float64
        squares, norms = row_squares(Y), xp.asarray(norms, dtype=float64)
        degrees = xp.asarray(floored(xp.asarray(Y, dtype=float64) @ total, norms), dtype=Y.dtype)
        Y /= xp.sqrt(degrees)[:, None]
        M = xp.asarray(self_product(Y), dtype=float64)
        Y *= xp.sqrt(squares / degrees)[:, None]
        return xp.stack([M, xp.asarray(self_product(Y), dtype=float64)])


@dataclass(frozen=True, eq=False)
class ReducedNormalizedProblem(AffinityProblem):
    """Landmarks: the same eigenproblem for K~ = Y Y', Y the rows' coordinates in the basis.

    With F the degrees of K~, its diagonal included, M = Y' F^{-1} Y has the eigenvalues of
    F^{-1/2} K~ F^{-1/2}. A row that is tied to itself above all makes an eigenvalue near 1 there, a
    cluster of one. So the diagonal, N = diag(|y|^2), is taken off by Rayleigh and Ritz within
    the functions v = F^{-1} Y c with the largest

        v' (K~ - N) v / v' (F - N) v = c' (M^2 - T) c / c' (M - T) c,   T = Y' F^{-1} N F^{-1} Y.

    In coordinates where M is the identity that is M - T against I - T. If all rows are landmarks,
    the span is everything and the result exact. Two passes over the rows, none of them kept. K~
    may miss a row that is far from all landmarks; its degree is therefore at least k(x, x).
    """

    basis: Basis
    whitener: Any
    operator: Any
    #: Weights of the degrees in the basis, and the way from eigenvectors to coordinates.
    total_weights: Any
    back: Any
    weight: float = 0.0

    @classmethod
    def of(cls, basis: Basis, rows: Any) -> "ReducedNormalizedProblem":
        """After two passes over the rows."""
        check_moments(basis.size, basis.noun, basis.engine)
        dtype = basis.precision(np.empty((0, 1), rows.dtype))
        whitener = basis.whitener(dtype)
        sums = Coordinates(basis, whitener)
        total = rows.sum(sums, "degrees", again=True)
        M, T = rows.sum(replace(sums, total=total), "affinities", again=True)
        H, back = without_diagonal(M, T, np.dtype(dtype).name, basis.engine.eigh)
        operator = DenseOperator(H)
        operator.definite = False
        total = total if whitener is None else whitener @ total
        return cls(basis, whitener, operator, total, back, float(rows.shape[0]))

    def result(self, pairs: Eigenpairs) -> AffinityResult:
        Q = self.back @ pairs.vectors
        weights = Q if self.whitener is None else self.whitener @ Q
        functions = ReducedMap(self.basis, weights, self.total_weights)
        return AffinityResult(functions, None, self.certificate(pairs), pairs, self)


@dataclass(frozen=True)
class DegreesOf(RowFunction):
    """Trigonometric moments of rows over their degrees, and the least degree."""

    basis: FourierBasis
    total: Any

    def __call__(self, rows, first=None):
        degrees = to_numpy(self.basis.project(rows, self.total[:, None]))[:, 0]
        # A row has its own affinity; what is less is the rounding of the transforms.
        degrees = np.maximum(degrees, self.basis.top)
        return Sums((self.basis.moments(rows, 1 / degrees), Least(float(degrees.min()))))


class Least(float):
    """A number; the sum of two is the smaller one."""

    def __add__(self, other):
        return Least(min(self, other))


@dataclass(frozen=True, eq=False)
class FourierNormalizedProblem(AffinityProblem):
    """A Fourier grid: the degrees are one more function of the rows, and the matrix is Toeplitz.

    Two transforms of all rows and the evaluation of one function between them, whatever the number
    of frequencies. The diagonal of K stays.
    """

    basis: FourierBasis
    total_weights: Any
    sums: Any
    least_of_rows: float
    #: What cut frequencies, aliases and errors of the sums change in the kernel matrix, each entry
    #: and each degree.
    kernel_error: float
    n_rows: int  # those of `sums` count by their degrees

    @classmethod
    def of(cls, basis: FourierBasis, rows: Any) -> "FourierNormalizedProblem":
        """After two passes over the rows."""
        sums, grid = rows.sum(TrigonometricOf(basis), "degrees", again=True), basis.frequencies
        mean = ToeplitzCovariance(grid.index, basis.amplitudes, sums).mean
        total = sums.count * mean
        weighted, least = rows.sum(DegreesOf(basis, total), "affinities", again=True).parts
        error = rows.shape[0] * (grid.alias + grid.cut) + 3 * sums.error * basis.top
        return cls(basis, total, weighted, float(least), error, rows.shape[0])

    weight = property(lambda self: float(self.n_rows))

    @cached_property
    def operator(self) -> Any:
        grid, threads = self.basis.frequencies, self.basis.engine.threads
        return ToeplitzCovariance(grid.index, self.basis.amplitudes, self.sums, False, threads)

    def result(self, pairs: Eigenpairs) -> AffinityResult:
        weights = pairs.vectors * np.sqrt(inverse(np.maximum(pairs.values, 0)))
        functions = ReducedMap(self.basis, weights, self.total_weights)
        return AffinityResult(functions, None, self.certificate(pairs), pairs, self)

    def certificate(self, pairs: Eigenpairs) -> Certificate:
        """By how much the kernel of the grid can be off, and with it degrees, which are 1 or more.

        Of functions no error is stated.
        """
        scale = float(self.sums.count) * self.basis.top
        steps = np.log2(np.prod(self.sums.sums.shape)) + 1
        slack = 3 * self.sums.error * self.basis.top + FFT_ROUNDING * steps * scale
        change = 2 * self.kernel_error / self.least_of_rows
        rounding = (Rounding(slack, slack, EPS**0.5 * scale),)
        certificate = certify(
            pairs, self.size, scale, rounding, definite=True, above=change, below=change
        )
        return self._stated(replace(certificate, score_error=None), 1.0)


def are_positive(basis, kernel) -> bool:
    """Whether no affinity is negative: of the data given, or of the kernel of a distance."""
    if basis.points is not None:
        return kernel.metric is not None
    G = basis.G.data if is_sparse(basis.G) else basis.G
    return bool(G.shape[0] == 0 or G.min() >= 0)


def function_errors(values, around, lower, upper, slack, stretch, power) -> np.ndarray:
    """Root mean square error of functions at the rows, as a share of their own: see `score_errors`.

    Where entries of eigenvectors are multiplied by `stretch` at most, in units of the functions,
    and these by l^power.
    """
    error = 2**0.5 * stretch * sines(values, around, lower, upper)
    error = error / np.maximum(1 - error, TINY) + slack
    if power:
        safe = np.maximum(lower, np.maximum(around, TINY))
        error = error + (np.maximum(upper[:-1], 0.0) / safe) ** power - 1
    return np.where((error >= 0) & (error < 1), error, np.nan)


def without_diagonal(M, T, precision: str, eigh=eigh) -> tuple[np.ndarray, np.ndarray]:
    """The pencil (M^2 - T, M - T) as one symmetric matrix H, and the way back from its vectors.

    Left out are directions that only rows without ties to others have, and those too small in M to
    be leading ones.
    """
    values, Q = eigh(M)
    large = values > min(SMALL[precision], values[-1] / 2)
    values, Q = values[large], Q[:, large]
    C = Q / np.sqrt(values)
    T = C.T @ T @ C
    shares, P = eigh(np.eye(len(T)) - (T + T.T) / 2)
    tied = shares > ISOLATED[precision]
    if not tied.any():  # no row is tied to another: all are alike
        tied[:] = True
        shares = np.ones(len(T))
    P = P[:, tied] / np.sqrt(shares[tied])
    H = P.T @ (np.diag(values) - T) @ P
    return (H + H.T) / 2, C @ P


def nearest_affinities(K, own) -> tuple[np.ndarray, np.ndarray]:
    """The j with the largest k(x, x_j) / sqrt(k(x_j, x_j)), the nearest row, and k(x, x_j), (b,).

    By Cauchy and Schwarz that is i itself for x = x_i. Rows without an affinity with themselves
    are nobody's nearest.
    """
    roots = np.divide(1.0, np.sqrt(own), out=np.zeros(own.shape), where=own > 0)
    if not roots.max() > 0:
        return np.zeros(K.shape[0], dtype=int), np.zeros(K.shape[0])
    if is_sparse(K):
        j = np.asarray(K.multiply(roots[None]).tocsr().argmax(axis=1)).ravel()
    else:
        even = roots.min() == roots.max()
        scaled = K if even else K * on_device_of(roots.astype(dtype_name(K.dtype)), K)
        j = to_numpy(array_namespace(K).argmax(scaled, axis=1))
    return j, np.maximum(entries(K, j), 0.0)


def most_alike(K, G) -> np.ndarray:
    """The row of G that differs least from each row of K, (b,)."""
    if not is_sparse(K):
        scores = K @ G.T
        return to_numpy(array_namespace(K).argmax(2 * scores - row_squares(G), axis=1))
    scores, squares = csr_matrix(K @ G.T), row_squares(G)
    # Raised above zero: entries that are not stored count as zero.
    scores.data = 2 * scores.data - squares[scores.indices] + 2 * squares.max(initial=1.0)
    return np.asarray(scores.argmax(axis=1)).ravel()


def entries(K, j) -> np.ndarray:
    """K[i, j_i], (b,)."""
    each = np.arange(K.shape[0])
    places = (each, j) if is_sparse(K) else (on_device_of(each, K), on_device_of(j, K))
    return np.asarray(to_numpy(K[places]), dtype=float).ravel()


def floored(degrees, own) -> np.ndarray:
    """Degrees that are at least a row's affinity with itself, and above zero, (n,)."""
    return array_namespace(degrees).clip(degrees, array_namespace(own).clip(own, TINY, None), None)


def inverse(values) -> np.ndarray:
    """1 / l for the eigenvalues that are not zero, and 0 for the others, (k,)."""
    return np.divide(1.0, values, out=np.zeros(values.shape), where=np.abs(values) > ZERO)
