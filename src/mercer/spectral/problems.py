"""Spectral clustering: from a basis to functions that tell clusters apart, for any row.

With S = D^{-1/2} K D^{-1/2}, K without its diagonal, and S u = l u, v = D^{-1/2} u solves

    sum_{j != i} k(x_i, x_j) v_j = l d_i v_i.

For any x let s(x) be the sum of its affinities with all training rows and a(x) the one with the row
nearest to it, which of a training row is itself. Then

    v(x) = sum_j k(x, x_j) v_j / (a(x) + l (s(x) - a(x)))

is v_i at x_i, continuous, and far from all rows the value at the nearest. The Nystroem extension,
sum_j k(x, x_j) v_j / (l s(x)), is neither the first nor the last.
"""

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from scipy.linalg import eigh

from ..bases import Basis, FourierBasis, PrecomputedBasis
from ..bases.base import check_moments
from ..compute import array_namespace, is_sparse, on_device_of, to_numpy
from ..compute.arrays import Array, dtype_name
from ..kernels.base import row_squares
from ..operators import DenseOperator, NormalizedGram, ToeplitzCovariance
from ..solvers import Eigenpairs

# Eigenvalues of S, whose largest is 1, that say nothing more about any cluster.
ZERO = 1e-12
TINY = float(np.finfo(float).tiny)
# Share of a direction's energy that is ties to other rows, below which they are rounding.
ISOLATED = {"float64": 1e-9, "float32": 1e-4}
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

    def without_first(self, signs) -> "PointMap":
        """Without the first function, which is constant, and with signs for the others."""
        return replace(self, weights=self.weights[:, 1:] * signs, values=self.values[1:])

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
        own = nearest_affinities(K, self.own).reshape(-1, 1)
        below = own + np.maximum(self.values, 0) * (total - own)
        W = on_device_of(self.weights.astype(dtype_name(K.dtype), copy=False), K)
        sums = np.asarray(to_numpy(K @ W), dtype=float)
        good = (below > 0) & (self.values > ZERO)
        return np.divide(sums, below, out=np.zeros(sums.shape), where=good)


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

    def without_first(self, signs) -> "ReducedMap":
        """Without the first function, which is constant, and with signs for the others."""
        return replace(self, weights=self.weights[:, 1:] * signs)

    def functions(self, X) -> np.ndarray:
        """v(x) of every row of X, (n, k)."""
        sums = to_numpy(self.basis.project(X, np.column_stack([self.weights, self.total])))
        own = to_numpy(self.basis.norms(X))
        return sums[:, :-1] / floored(sums[:, -1], own)[:, None]


class AffinityProblem:
    """An eigenproblem of affinities: an `operator` in a `basis`, and what its eigenpairs become."""

    basis: Any
    operator: Any

    @property
    def size(self) -> int:
        """Number of eigenpairs there can be."""
        return self.operator.shape[0]

    @property
    def least_degree(self) -> float:
        """The smallest sum of the affinities of a row."""
        return 0.0

    def is_zero(self) -> bool:
        """Never: equal rows have affinities too."""
        return False

    def assemble(self, pairs: Eigenpairs, X: Array) -> tuple[Any, np.ndarray]:
        """The functions of any row, and their values at the training rows X, (n, k)."""
        raise NotImplementedError


class NormalizedProblem(AffinityProblem):
    """All points: the eigenproblem of D^{-1/2} K D^{-1/2} itself."""

    def __init__(self, basis):
        self.basis, self.operator = basis, NormalizedGram(basis)

    @property
    def least_degree(self) -> float:
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
        weighted = basis.moments(X, 1 / np.maximum(degrees, basis.top))
        threads = basis.engine.threads
        self.operator = ToeplitzCovariance(grid.index, basis.amplitudes, weighted, False, threads)

    def assemble(self, pairs: Eigenpairs, X: Array) -> tuple[ReducedMap, np.ndarray]:
        weights = pairs.vectors * np.sqrt(inverse(pairs.values))
        map_ = ReducedMap(self.basis, weights, self.total)
        return map_, map_.functions(X)


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
        M = xp.asarray(Y.T @ Y, dtype=wide)
        Y *= xp.sqrt(norms / degrees)[:, None]
        return xp.stack([M, xp.asarray(Y.T @ Y, dtype=wide)])

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


def nearest_affinities(K, own) -> np.ndarray:
    """k(x, x_j) for the j with the largest k(x, x_j) / sqrt(k(x_j, x_j)), (b,): the nearest row.

    By Cauchy and Schwarz that is i itself for x = x_i. Rows without an affinity with themselves
    are nobody's nearest.
    """
    roots = np.divide(1.0, np.sqrt(own), out=np.zeros(own.shape), where=own > 0)
    if is_sparse(K):
        j = np.asarray(K.multiply(roots[None]).tocsr().argmax(axis=1)).ravel()
        found = np.asarray(K[np.arange(K.shape[0]), j], dtype=float).ravel()
    elif roots.min() == roots.max():
        found = to_numpy(array_namespace(K).max(K, axis=1))
    else:
        j = (K * on_device_of(roots.astype(dtype_name(K.dtype)), K)).argmax(axis=1)
        found = to_numpy(K[np.arange(K.shape[0]), j])
    return np.maximum(found if roots.max() > 0 else np.zeros(K.shape[0]), 0.0)


def floored(degrees, own) -> np.ndarray:
    """Degrees that are at least a row's affinity with itself, and above zero, (n,)."""
    return array_namespace(degrees).clip(degrees, array_namespace(own).clip(own, TINY, None), None)


def inverse(values) -> np.ndarray:
    """1 / l for the eigenvalues above zero, and 0 for the others, (k,)."""
    return np.divide(1.0, values, out=np.zeros(values.shape), where=values > ZERO)
