"""Whitening: orthonormal coordinates y = W' k of rows from their kernel rows k, W' G W = I.

Kernel rows k are best added up as they are and whitened once, W' (sum k k') W: a third of the work
of whitening each row. But rounding of the sum grows with the condition of G. So landmarks that are
close to dependent are cut into parts along their pivoted Cholesky factor, G = L L', and the parts
before are taken out of each part: with A_j = -L_jj (L^{-1})_ji, i < j, the rows
u_j = k_j - A_j k_i have a block diagonal Gram matrix L_jj L_jj', whose blocks are conditioned well
enough. With two parts that costs p_1 p_2 products a row beside those of the sum, at most a fourth
of p^2.

The same factorization says which landmarks are worth their work: its first p span most of what all
do, and for some rows it gives what every p would lose. Moments of n rows cost n p^2.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import block_diag
from scipy.linalg.lapack import dpstrf, dtrtri

from ..compute import Array, on_device_of, to_numpy
from ..compute.linalg import self_product, solve_triangular
from .base import Basis
from .points import PointBasis

# Condition of the basis up to which kernel rows are whitened after they are summed: rounding of the
# sums grows by the condition, to 2e-8 of the total.
LATE_CONDITION = 1e8
# Eigenvalues of a basis whose squares, summed over any number of rows, are ordinary numbers.
ORDINARY = (1e-100, 1e100)

# With so many rows for each landmark, it pays to search for landmarks to leave out.
MANY_ROWS = 20
# Rows on which the loss of leaving out landmarks is measured, and the fewest that are enough.
JUDGES, LEAST_JUDGES = 1000, 200
# With so many rows for each landmark, parts take less time than eigenvectors.
SOME_ROWS = 2
# Largest loss by landmarks that are left out, as a share of the energy: eigenvalues are those of
# all landmarks.
LEFT_OUT = 1e-10

# Single-precision rows were seen to change eigenvalues by up to 2e-7 of the total. The certificate
# allows for five times that.
SINGLE_ROUNDING = 1e-6
# Safety factor on the rounding of coordinates.
COORDINATE_ROUNDING = 4.0
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Whitening:
    """Coordinates by W = V l^{-1/2}, the eigenvectors of G; W is None where G = I.

    Attributes
    ----------
    size : int
        Vectors of the basis, m.
    W : array of shape (p, k) or None
    used : int array of shape (p,) or None
        The basis vectors that W is over; None for all.
    rounding : float
        Relative rounding of the coordinates, beside that of kernel values.
    """

    size: int
    W: np.ndarray | None = None
    used: np.ndarray | None = None
    rounding: float = 0.0

    @property
    def width(self) -> int:
        """Number of coordinates, k."""
        return self.size if self.W is None else self.W.shape[1]

    @cached_property
    def weights(self) -> Any:
        """W as weights of all basis vectors, (m, k), or None."""
        if self.W is None or self.used is None:
            return self.W
        full = np.zeros((self.size, self.width))
        full[self.used] = self.W
        return full

    @cached_property
    def late(self) -> Any:
        """The matrix that whitens a sum of rows; None if each row is whitened."""
        if self.W is None:
            return None
        inverse = inverse_eigenvalues(self.W)
        ordinary = np.all((inverse > ORDINARY[0]) & (inverse < ORDINARY[1]))
        conditioned = np.all(inverse <= LATE_CONDITION * inverse.min(initial=np.inf))
        return self.W if ordinary and conditioned else None

    def summands(self, basis: Any, X: Array) -> tuple[Any, Callable[[slice], Any]]:
        """The basis vectors used, and the function of blocks of X that gives their products.

        What is summed are the moments of these after `parted`.
        """
        basis = basis if self.used is None else basis.subset(self.used)
        if self.late is not None:
            # In single precision the sums would lose what the late product magnifies.
            return basis, basis.block_products(X, dtype=np.float64)
        return basis, basis.block_products(X, self.W)

    def parted(self, K: Any) -> Any:
        """Products of a block after one part was projected out of another, in place of K."""
        return K

    def slack(self, moments: Any, u: float, energy: float) -> float:
        """Largest change of an eigenvalue by rounding of the coordinates.

        In direction j of the basis, with eigenvalue l_j and energy e_j of the rows, rounding u of
        kernel values changes the basis by u tr G / l_j, and the rows by u sqrt(e tr G / l_j),
        where e is their energy in all. Rows whitened after they are summed have the rounding of
        the sums, whose size is sum l_i s_i with s the centered energy, over l_j; its signs vary.
        """
        if self.W is None or not self.W.size:
            return 0.0
        spread = np.abs(np.diagonal(moments.scatter))
        inverse, along = inverse_eigenvalues(self.W), spread + moments.count * moments.mean**2
        trace = float(np.sum(1 / inverse))
        rows = np.sqrt(energy) * np.sqrt(trace)
        early = u * float(trace * (inverse @ along) + rows * np.sqrt(along * inverse).sum())
        late = 0.0
        if self.late is not None:
            late = EPS * float((spread / inverse).sum() * np.linalg.norm(inverse))
        return COORDINATE_ROUNDING * (early + late)


@dataclass(frozen=True)
class CholeskyWhitening(Whitening):
    """Coordinates by W = L^{-T}, in parts: a twentieth of the time of eigenvectors.

    Coordinates are those of eigenvectors but for a rotation, so that eigenvalues are the same.

    Attributes
    ----------
    parts : tuple of slice
        The landmarks, cut along the factor.
    steps : tuple of arrays
        For every part A, what takes the parts before out of it.
    conditions : tuple of float
        At least the condition of the Gram matrix of each part.
    trace : float
        Of G.
    """

    W: np.ndarray
    parts: tuple[slice, ...] = ()
    steps: tuple[np.ndarray, ...] = ()
    conditions: tuple[float, ...] = ()
    trace: float = 0.0

    @cached_property
    def late(self) -> Any:
        """The diagonal blocks of W."""
        return block_diag(*(self.W[part, part] for part in self.parts))

    def parted(self, K: Any) -> Any:
        """Kernel rows with the parts before taken out of each part."""
        for part, A in zip(self.parts[:0:-1], self.steps[:0:-1], strict=True):
            K[:, part] -= K[:, : part.start] @ on_device_of(A, K).T
        return K

    def slack(self, moments: Any, u: float, energy: float) -> float:
        """See `Whitening.slack`.

        Rounding of the factor is as if G were wrong by k eps of its trace. tr W C W', C the second
        moments, is the sum of the energies over the eigenvalues; the second sum over eigenvectors
        is at most the root of their number times it. Products of one part with another are at most
        as bad as both.
        """
        k, u = self.width, max(u, self.width * EPS)
        weights = max(float(np.sum(moments.about_zero() * self_product(self.W))), 0.0)
        early = u * (self.trace * weights + np.sqrt(energy * self.trace * k * weights))
        spread = np.abs(np.diagonal(moments.scatter))
        sums = [float(spread[part].sum()) for part in self.parts]
        late = EPS * len(sums) * float(np.dot(sums, self.conditions))
        return COORDINATE_ROUNDING * (early + late)


def choose_whitening(basis: Basis, X: Array, n: int | None) -> Whitening:
    """The quickest whitening for the moments of n rows, of which X are some.

    n is None where they were not counted; they are then many.
    By a Cholesky factor over those landmarks that are no sums of others to rounding, and where rows
    are many over those that are worth their work; else by eigenvectors. Never by a Cholesky factor
    where it would have to divide by rounding: smooth kernels are numerically rank-deficient.
    """
    whitening = quickest(basis, X, n)
    if basis.precision(X) != np.float32:
        return replace(whitening, rounding=EPS * basis.size)
    W = whitening.W
    if W is not None:
        # Directions for which the condition is too large to whiten late are left out: they hold
        # less than the rounding of the data.
        inverse = inverse_eigenvalues(W)
        W = W[:, inverse <= LATE_CONDITION * inverse.min(initial=np.inf)]
    return replace(whitening, W=W, rounding=SINGLE_ROUNDING)


def quickest(basis: Any, X: Array, n: int | None) -> Whitening:
    """`choose_whitening` before directions are left out that single precision cannot resolve."""
    m = basis.size
    if not isinstance(basis, PointBasis):
        return Whitening(m, basis.whitener(np.float64))
    many = n is None or n >= MANY_ROWS * max(m, JUDGES)
    G = basis.kernel_matrix()
    # Several parts round more than eigenvectors do, which take little time for few landmarks.
    parts_serve = many or (m >= LEAST_JUDGES and X.shape[0] >= SOME_ROWS * m)
    if basis.engine.device is None and basis.kernel.definite:
        with basis.engine.single_blas():
            order, L = worthwhile(basis, G, X if many else X[:0])
            whitening = in_parts(G, L, order) if basis.precision(X) == np.float64 else None
            if whitening is not None and (parts_serve or len(whitening.parts) == 1):
                return whitening
            if order.size:
                few = basis.subset(order)
                return Whitening(m, few.whitener(np.float64, G[np.ix_(order, order)]), order)
    return Whitening(m, basis.whitener(np.float64, G))


def worthwhile(basis: PointBasis, G: np.ndarray, X: Array) -> tuple[np.ndarray, np.ndarray]:
    """Landmarks to use, and the Cholesky factor of their Gram matrix, pivots falling.

    Those that are sums of others to rounding are left out, and those without which some rows of X
    lose no more than with all.
    """
    # Eigenvalues up to m eps times the largest row sum are rounding.
    rounding = len(G) * EPS * float(np.abs(G).sum(axis=0).max())
    L, order, rank, _ = dpstrf(G, tol=rounding, lower=1)
    order, L = order[:rank] - 1, np.tril(L[:rank, :rank])
    rows = X[:: max(1, -(-X.shape[0] // JUDGES))]
    if rows.shape[0] < LEAST_JUDGES or not order.size:
        return order, L
    energy = float(basis.kernel.diag(rows).sum())
    K = to_numpy(basis.kernel(rows, basis.points, np.float64))[:, order]
    B = solve_triangular(L, K.T, lower=True, check_finite=False)
    lost = energy - np.cumsum(np.einsum("ij,ij->i", B, B))
    p = 1 + int(np.argmax(lost <= max(float(lost[-1]), 0.0) + LEFT_OUT * energy))
    return order[:p], L[:p, :p]


def in_parts(G: np.ndarray, L: np.ndarray, order: np.ndarray) -> CholeskyWhitening | None:
    """Whitening by a Cholesky factor, ``G[order][:, order] = L L'``; None where no parts serve.

    The leading part of L^{-1} is the inverse of the leading part of L, and the last that of the
    rest. A part is as long as the squares of the inverse, which add up to more than the largest
    eigenvalue of G^{-1}, are sure of its condition.
    """
    pivots = np.square(np.diagonal(L))
    if not pivots.size or not ORDINARY[0] < pivots.min() <= pivots.max() < ORDINARY[1]:
        return None
    p, minor = len(L), G[np.ix_(order, order)]
    inverse, _ = dtrtri(L, lower=1)
    cuts, start = [], 0
    # At least the largest eigenvalue of what is left: later its trace.
    norm = float(np.abs(minor).sum(axis=0).max())
    while start < p:
        rest = slice(start, p)
        squares = np.einsum("ij,ij->i", inverse[rest, rest], inverse[rest, rest])
        sure = norm * np.cumsum(squares)
        count = int(np.searchsorted(sure, LATE_CONDITION, side="right"))
        if not count:
            return None
        part = slice(start, start + count)
        # Its Frobenius norm bounds the largest eigenvalue of G^{-1} more closely than its trace.
        most = norm * float(np.linalg.norm(self_product(inverse[part, part])))
        cuts.append((part, -L[part, part] @ inverse[part, :start], most))
        start += count
        norm = float(np.square(L[start:, start:]).sum())
    parts, steps, conditions = zip(*cuts, strict=True)
    trace = float(np.trace(minor))
    return CholeskyWhitening(len(G), inverse.T, order, 0.0, parts, steps, conditions, trace)


def inverse_eigenvalues(W: np.ndarray) -> np.ndarray:
    """1 / l from W = V l^{-1/2}, whose columns V are of unit length."""
    return np.einsum("ij,ij->j", W, W)
