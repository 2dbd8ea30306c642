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

from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csr_matrix

from ..bases import Basis, FourierBasis, PrecomputedBasis
from ..bases.base import check_moments
from ..compute import array_namespace, is_sparse, on_device_of, to_numpy
from ..compute.arrays import Array, dtype_name
from ..compute.linalg import self_product
from ..fitting.certificate import PROVEN_SHARE, Certificate, certify, leading, sines
from ..fitting.choosing import Eigenproblem
from ..fitting.problems import EPS, FFT_ROUNDING, roundings_of
from ..kernels import Hollow
from ..kernels.base import row_squares
from ..operators import DenseOperator, NormalizedGram, ToeplitzCovariance
from ..solvers import Eigenpairs
from ..solvers.base import NO_ROUNDING, Rounding

# Eigenvalues of S, whose largest is 1, that say nothing more about any cluster.
ZERO = 1e-12
TINY = float(np.finfo(float).tiny)
# Share of a direction's energy that is ties to other rows, below which they are rounding.
ISOLATED = {"float64": 1e-9, "float32": 1e-4}
# Degrees below which single precision, or any, has lost digits of affinities.
FAINT, FAINTEST = 1e-20, 1e-280
# Eigenvalues of the reduced matrix, at most 1, below which directions can be no leading ones.
SMALL = {"float64": 1e-10, "float32": 1e-5}


def spectral_problem(basis, X):
    """The normalized eigenproblem in a basis: n x n for all points, else m x m."""
    if isinstance(basis, FourierBasis):
        return FourierNormalizedProblem(basis, X)
    return NormalizedProblem(basis) if basis.spans_data else ReducedNormalizedProblem(basis, X)


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
        # A block of affinities, and what is compared of it.
        fitting = engine.memory // (32 * engine.threads * self.basis.size)
        rows = max(1, min(self.basis.product_rows(X), fitting))
        engine.map_rows(lambda block: self._extended(products(block)), n, rows, out)
        return out

    def _extended(self, K):
        """v(x) from the affinities of rows with the training rows, (b, m)."""
        total = np.asarray(to_numpy(K.sum(axis=1)), dtype=float).reshape(-1, 1)
        signs = np.where(self.values < 0, -1.0, 1.0)
        nearest, own = self._nearest(K, tell_apart=signs.min(initial=1.0) < 0)
        below = signs * own[:, None] + self.values * (total - own[:, None])
        W = on_device_of(self.weights.astype(dtype_name(K.dtype), copy=False), K)
        sums = np.asarray(to_numpy(K @ W), dtype=float)
        if signs.min(initial=1.0) < 0:
            sums -= (1 - signs) * own[:, None] * self.weights[nearest]
        good = np.abs(below) > ZERO * total
        return np.divide(sums, below, out=np.zeros(sums.shape), where=good)

    def _nearest(self, K, tell_apart: bool) -> tuple[np.ndarray, np.ndarray]:
        """The nearest training row of each row, and their affinity; equally near ones told apart.

        By Cauchy and Schwarz no row of a kernel is nearer to others than to itself. Of affinities
        that are given it may be: then it is found by those with all others.
        """
        nearest, own = nearest_affinities(K, self.own)
        if isinstance(self.basis, PrecomputedBasis) and self.own.any():
            doubt = np.flatnonzero(tell_apart | (own > (1 + 1e-9) * self.own[nearest]))
            if doubt.size:
                nearest[doubt] = most_alike(K[doubt], self.basis.G)
                own = np.maximum(entries(K, nearest), 0.0)
        return nearest, own


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
        own = to_numpy(self.basis.norms(X))
        return sums[:, :-1] / floored(sums[:, -1], own)[:, None]


class AffinityProblem(Eigenproblem):
    """An eigenproblem of affinities in a basis; `assemble` says what its eigenpairs become."""

    basis: Any
    #: The smallest sum of a row's affinities.
    least_degree: float = 0.0

    def certificate(self, pairs: Eigenpairs, V: np.ndarray, power: float = 0.0) -> Certificate:
        """What is known of the eigenvalues, and of V, the functions at the rows, times l^power.

        Here of the eigenproblem in a span: what this leaves out of degrees is not bounded.
        """
        known = replace(pairs, evidence=())
        return self._stated(certify(known, self.size, 0.0, (NO_ROUNDING,)))

    def _stated(self, found: Certificate, most: float = np.inf) -> Certificate:
        """Without what makes sense for variances alone; no eigenvalue is more than `most`."""
        lower, upper = found.eigenvalue_lower, found.eigenvalue_upper
        upper = np.maximum(np.minimum(upper, most), lower)
        known = leading(upper - lower <= PROVEN_SHARE) if found.kind == "bound" else 0
        return replace(
            found,
            eigenvalue_upper=upper,
            captured_variance=None,
            indefinite=False,
            n_proven=max(known, found.n_proven),
        )


class AllAffinities(AffinityProblem):
    """The eigenproblem of a normalized n x n matrix of affinities."""

    operator: NormalizedGram
    #: What the rounding of degrees counts for.
    rounds: float = 1.0

    def certificate(self, pairs: Eigenpairs, V: np.ndarray, power: float = 0.0) -> Certificate:
        """Never false for affinities of one sign: right to a share, their sums and S are so too."""
        operator, basis, coarse = self.operator, self.operator.basis, self.operator.is_coarse
        degrees = to_numpy(operator.known_degrees).astype(float)
        kernel = basis.kernel.kernel if isinstance(basis.kernel, Hollow) else basis.kernel
        given, positive, size = basis.points is None, are_positive(basis, kernel), 2 * self.rounds
        if not positive:
            own = to_numpy(basis.own_affinities()) + to_numpy(basis.diagonal())
            norm, roots = float((own / degrees).sum()), np.sqrt(own)
            size = norm * (1 + self.rounds * float((roots * roots.sum() / degrees).max()))
        seen: tuple = pairs.evidence if positive or kernel.definite else ()
        if not given and self.least_degree < FAINT:
            lost = coarse or self.least_degree < FAINTEST
            seen = () if lost else tuple(e for e in seen if e.level == 0)
        roundings: Any = roundings_of(basis, size, seen)
        # Degrees in single precision are those of another matrix.
        draft: Any = basis.draft if coarse else None
        doubt = roundings_of(draft, size)[0].matrix if coarse else 0.0
        total = float((to_numpy(basis.diagonal()) / degrees).sum())
        off, wide = (roundings[-1].matrix + doubt) * total, self.size**0.5
        roundings = [
            replace(r, matrix=r.matrix + doubt, root=r.root * wide, trace=off) for r in roundings
        ]
        stretch = float(self.row_scale().max()) / np.linalg.norm(V, axis=0)
        found = certify(
            replace(pairs, evidence=seen),
            self.size,
            total,
            tuple(roundings),
            definite=operator.definite,
            errors=partial(function_errors, stretch=stretch, power=power),
        )
        return self._stated(found, 1.0 if positive else np.inf)

    def row_scale(self) -> np.ndarray:
        """What the entries of eigenvectors are multiplied by to be functions of rows, (n,)."""
        return to_numpy(self.operator.known_degrees).astype(float) ** -0.5


class NormalizedProblem(AllAffinities):
    """All points: the eigenproblem of D^{-1/2} K D^{-1/2} itself."""

    def __init__(self, basis):
        self.basis, self.operator = basis, NormalizedGram(basis)

    @property
    def least_degree(self) -> float:  # type: ignore[override]
        return self.operator.least_degree

    def assemble(self, pairs: Eigenpairs, X: Array) -> tuple[PointMap, np.ndarray]:
        V = to_numpy(pairs.vectors) / np.sqrt(to_numpy(self.operator.known_degrees))[:, None]
        return PointMap(self.basis, V, pairs.values, to_numpy(self.basis.own_affinities())), V


class ReducedNormalizedProblem(AffinityProblem):
    """Landmarks: the same eigenproblem for K~ = Y Y', Y the rows' coordinates in the basis.

    With F the degrees of K~, its diagonal included, M = Y' F^{-1} Y has the eigenvalues of
    F^{-1/2} K~ F^{-1/2}. A row that is tied to itself above all makes an eigenvalue near 1 there, a
    cluster of one. So the diagonal, N = diag(|y|^2), is taken off by Rayleigh and Ritz within
    the functions v = F^{-1} Y c with the largest

        v' (K~ - N) v / v' (F - N) v = c' (M^2 - T) c / c' (M - T) c,   T = Y' F^{-1} N F^{-1} Y.

    In coordinates where M is the identity that is M - T against I - T. If all rows are landmarks,
    the span is everything and the result exact. Three passes over the rows, none of them kept. K~
    may miss a row that is far from all landmarks; its degree is therefore at least k(x, x).
    """

    def __init__(self, basis, X):
        check_moments(basis.size, basis.noun, basis.engine)
        self.basis = basis
        dtype = basis.precision(X)
        self.whitener = basis.whitener(dtype)
        total, M, T = normalized_scatters(basis, self.whitener, X)
        H, self._back = without_diagonal(M, T, np.dtype(dtype).name, basis.engine.eigh)
        self.total = self._in_basis(total)
        self.operator = DenseOperator(H)
        self.operator.definite = False

    def assemble(self, pairs: Eigenpairs, X: Array) -> tuple[ReducedMap, np.ndarray]:
        map_ = ReducedMap(self.basis, self._in_basis(self._back @ pairs.vectors), self.total)
        return map_, map_.functions(X)

    def _in_basis(self, Q):
        """Coordinates in the orthonormal basis as weights of the basis itself."""
        return Q if self.whitener is None else self.whitener @ Q


class FourierNormalizedProblem(AffinityProblem):
    """A Fourier grid: the degrees are one more function of the rows, and the matrix is Toeplitz.

    Two transforms of all rows and the evaluation of one function between them, whatever the number
    of frequencies. The diagonal of K stays.
    """

    def __init__(self, basis: FourierBasis, X):
        self.basis, grid, sums = basis, basis.frequencies, basis.moments(X)
        self.total = sums.count * ToeplitzCovariance(grid.index, basis.amplitudes, sums).mean
        degrees = to_numpy(basis.project(X, self.total[:, None]))[:, 0]
        # A row has its own affinity; what is less is the rounding of the transforms.
        degrees = np.maximum(degrees, basis.top)
        weighted = basis.moments(X, 1 / degrees)
        self.sums, self.degrees = weighted, degrees
        # What cut frequencies, aliases and errors of the sums change in the kernel matrix, each
        # entry and each degree.
        self.off = len(degrees) * (grid.alias + grid.cut) + 3 * sums.error * basis.top
        threads = basis.engine.threads
        self.operator = ToeplitzCovariance(grid.index, basis.amplitudes, weighted, False, threads)

    def assemble(self, pairs: Eigenpairs, X: Array) -> tuple[ReducedMap, np.ndarray]:
        weights = pairs.vectors * np.sqrt(inverse(np.maximum(pairs.values, 0)))
        map_ = ReducedMap(self.basis, weights, self.total)
        return map_, map_.functions(X)

    def certificate(self, pairs: Eigenpairs, V: np.ndarray, power: float = 0.0) -> Certificate:
        """By how much the kernel of the grid can be off, and with it degrees, which are 1 or more.

        Of functions no error is stated.
        """
        scale = float(self.sums.count) * self.basis.top
        steps = np.log2(np.prod(self.sums.sums.shape)) + 1
        slack = 3 * self.sums.error * self.basis.top + FFT_ROUNDING * steps * scale
        off = 2 * self.off * float((1 / self.degrees).max())
        rounding = (Rounding(slack, slack, EPS**0.5 * scale),)
        known = certify(pairs, self.size, scale, rounding, definite=True, above=off, below=off)
        return self._stated(replace(known, score_error=None), 1.0)


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


def normalized_scatters(basis, whitener, X) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Y' 1, Y' F^{-1} Y and Y' F^{-1} N F^{-1} Y for the coordinates Y of the rows of X.

    F = max(Y Y' 1, k(x, x)) and N = |y|^2, row by row; (m,), (m, m) and (m, m).
    """
    X = basis.engine.place(X)
    n, rows, stream = X.shape[0], basis.product_rows(X), basis.block_products(X, whitener)
    total = basis.engine.sum_rows(lambda block: column_sums(stream(block)), n, rows)

    def scatters(block):
        Y = stream(block)
        xp, wide = array_namespace(Y), array_namespace(Y).float64
        norms = row_squares(Y)
        own = xp.asarray(basis.norms(X[block]), dtype=wide)
        degrees = xp.asarray(floored(xp.asarray(Y, dtype=wide) @ total, own), dtype=Y.dtype)
        Y /= xp.sqrt(degrees)[:, None]
        M = xp.asarray(self_product(Y), dtype=wide)
        Y *= xp.sqrt(norms / degrees)[:, None]
        return xp.stack([M, xp.asarray(self_product(Y), dtype=wide)])

    scattered = basis.engine.sum_rows(scatters, n, rows)
    return to_numpy(total), *to_numpy(scattered)


def column_sums(Y) -> Array:
    """Sums of the columns in double precision, (m,)."""
    xp = array_namespace(Y)
    return xp.sum(Y, axis=0, dtype=xp.float64)


def without_diagonal(M, T, precision: str, eigh=eigh) -> tuple[np.ndarray, np.ndarray]:
    """The pencil (M^2 - T, M - T) as one symmetric matrix H, and the way back from its vectors.

    Left out are directions that only rows without ties to others have, and those too small in M to
    be leading ones.
    """
    values, Q = eigh(M)
    kept = values > min(SMALL[precision], values[-1] / 2)
    values, Q = values[kept], Q[:, kept]
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
    scores, squares = csr_matrix(K @ G.T), np.asarray(G.multiply(G).sum(axis=1)).ravel()
    # All above zero, which is what entries that are not stored count as.
    scores.data = 2 * scores.data - squares[scores.indices] + 2 * squares.max(initial=1.0)
    return np.asarray(scores.argmax(axis=1)).ravel()


def entries(K, j) -> np.ndarray:
    """K[i, j_i], (b,)."""
    each = np.arange(K.shape[0])
    found = K[each, j] if is_sparse(K) else K[on_device_of(each, K), on_device_of(j, K)]
    return np.asarray(to_numpy(found), dtype=float).ravel()


def floored(degrees, own) -> np.ndarray:
    """Degrees that are at least a row's affinity with itself, and above zero, (n,)."""
    return array_namespace(degrees).clip(degrees, array_namespace(own).clip(own, TINY, None), None)


def inverse(values) -> np.ndarray:
    """1 / l for the eigenvalues that are not zero, and 0 for the others, (k,)."""
    return np.divide(1.0, values, out=np.zeros(values.shape), where=np.abs(values) > ZERO)
