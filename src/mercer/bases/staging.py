"""Whitening in two stages, for landmarks that are too close to dependent to be whitened late.

Kernel rows k are best added up as they are and whitened once, W' (sum k k') W, but rounding of the
sum grows with the condition of G. So the landmarks are split by a pivoted Cholesky factorization
G = L L' into a first part, whose G_11 is well conditioned, and the rest, from which the first is
taken out: u = [k_1, k_2 - A k_1] with A = L_21 L_11^{-1}. The Gram matrix of u is block diagonal,
G_11 and the Schur complement L_22 L_22', and each of them can be whitened late. That costs p_1 p_2
products a row beside those of the sum, at most a fourth of p^2, where early whitening takes p^2.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, block_diag
from scipy.linalg.blas import dtrmm
from scipy.linalg.lapack import dtrtri

from ..compute import on_device_of
from ..compute.linalg import cholesky, eigh, solve_triangular
from .thinning import rounding_of

# What the square of a pivot was seen to be above the least eigenvalue of the landmarks before it,
# with a margin.
PIVOT_MARGIN = 10.0
# Margins that are tried where the condition is only bounded.
PIVOT_MARGINS = (10.0, 30.0, 100.0)

# Eigenvalues of a basis whose squares, summed over any number of rows, are ordinary numbers.
ORDINARY = (1e-100, 1e100)


@dataclass(frozen=True)
class Stages:
    """How coordinates are made of kernel rows: residuals of the second part, then whitening.

    Attributes
    ----------
    used : array of int, (p,)
        Landmarks, the first part before the rest.
    A : array of shape (p_2, p_1)
    blocks : tuple of arrays
        Whiteners of the parts, V l^{-1/2}.
    trace : float
        Of G.
    """

    used: np.ndarray
    A: np.ndarray
    blocks: tuple[np.ndarray, ...]
    trace: float

    def residuals(self, K: Any) -> Any:
        """[k_1, k_2 - A k_1] in place of kernel rows [k_1, k_2], (b, p)."""
        first = self.A.shape[1]
        if first == K.shape[1]:
            return K
        K[:, first:] -= K[:, :first] @ on_device_of(self.A, K).T
        return K

    @property
    def width(self) -> int:
        """Number of coordinates."""
        return sum(W.shape[1] for W in self.blocks)

    def coordinates(self, K: Any) -> Any:
        """Coordinates of kernel rows (b, p), which are overwritten, (b, k)."""
        return self.residuals(K) @ on_device_of(self.late, K)

    @property
    def late(self) -> np.ndarray:
        """What whitens the sum of the residuals, (p, k)."""
        return self.blocks[0] if len(self.blocks) == 1 else block_diag(*self.blocks)

    def weights(self, size: int) -> np.ndarray:
        """The whole as weights of `size` landmarks, (size, k)."""
        W, first = self.late, self.A.shape[1]
        if len(self.A):
            W[:first] -= self.A.T @ W[first:]
        full = np.zeros((size, W.shape[1]))
        full[self.used] = W
        return full


@dataclass(frozen=True)
class Factor(Stages):
    """Stages of a Cholesky factor: W = L^{-T}, which takes a twentieth of the time of eigenvectors.

    Coordinates are those of eigenvectors but for a rotation, so that eigenvalues are the same.

    Attributes
    ----------
    whole : array of shape (p, p)
        W, of which the blocks are those along its diagonal.
    conditions : tuple of float
        At least the condition of what each block whitens.
    """

    whole: np.ndarray
    conditions: tuple[float, ...]

    def coordinates(self, K: Any) -> Any:
        """As of `Stages`, by half of the products."""
        return dtrmm(1.0, self.whole.T, K.T, lower=1, overwrite_b=1).T

    def weights(self, size: int) -> np.ndarray:
        """As of `Stages`."""
        full = np.zeros((size, self.used.size))
        full[self.used] = self.whole
        return full

    def energy_of_weights(self, C: np.ndarray) -> float:
        """tr W C W': the squared weights of rows whose coordinates have second moments C.

        Over eigenvectors of G it is the sum of the energies over the eigenvalues.
        """
        return float(np.sum(dtrmm(1.0, self.whole, C) * self.whole))


def factored(G: np.ndarray, order: np.ndarray, L: np.ndarray, rcond: float) -> Factor | None:
    """One or two stages of landmarks in the order of their Cholesky factor; None where they fail.

    Parameters as of `staged`. The leading part of L^{-1} is the inverse of the leading part of L,
    and the last part that of the rest.
    """
    pivots = np.square(np.diagonal(L))
    if not pivots.size or not ORDINARY[0] < pivots.min() <= pivots.max() < ORDINARY[1]:
        return None
    minor = G if order.size == len(G) else G[np.ix_(order, order)]
    inverse, _ = dtrtri(L, lower=1)
    norm, trace = float(np.abs(minor).sum(axis=0).max()), float(np.trace(minor))
    first, most = leading_part(pivots, inverse, norm, rcond)
    if first == order.size:
        none, whole = np.zeros((0, first)), inverse.T
        return Factor(order, none, (whole,), trace, whole, (most,))
    rest = square_norm(L[first:, first:]) * inverse_norm(inverse[first:, first:])
    if not first or rest * rcond > 1:
        return None
    A = -L[first:, first:] @ inverse[first:, :first]
    blocks = inverse[:first, :first].T, inverse[first:, first:].T
    return Factor(order, A, blocks, trace, inverse.T, (most, rest))


def leading_part(pivots, inverse, norm: float, rcond: float) -> tuple[int, float]:
    """How many of the first landmarks can be whitened late, and a bound of their condition.

    As many as have pivots of the usual size, or some larger, or else as the squares of the inverse,
    which add up to more than the largest, are sure of.
    """
    for margin in PIVOT_MARGINS:
        first = int(np.sum(pivots >= margin * rcond * norm))
        most = norm * inverse_norm(inverse[:first, :first])
        if first and most * rcond <= 1:
            return first, most
    sure = norm * np.cumsum(np.einsum("ij,ij->i", inverse, inverse))
    first = int(np.searchsorted(sure, 1 / rcond, side="right"))
    return first, float(sure[first - 1]) if first else 0.0


def inverse_norm(inverse: np.ndarray) -> float:
    """|G^{-1}|_F from L^{-1}, at least its largest eigenvalue."""
    return float(np.linalg.norm(inverse.T @ inverse))


def square_norm(A: np.ndarray) -> float:
    """At least the square of the largest singular value."""
    size = np.abs(A)
    return float(min(size.sum(axis=0).max() * size.sum(axis=1).max(), np.square(A).sum()))


def cholesky_of(G: np.ndarray) -> np.ndarray | None:
    """The lower Cholesky factor; None where G has none."""
    try:
        return cholesky(G, lower=True, check_finite=False)
    except LinAlgError:
        return None


def staged(G: np.ndarray, order: np.ndarray, L: np.ndarray, rcond: float) -> Stages | None:
    """Stages for landmarks in the order of their Cholesky factor; None where they do not help.

    Parameters
    ----------
    G : array of shape (m, m)
    order, L : array of int (p,), array of shape (p, p)
        ``G[order][:, order] = L L'``, pivots falling.
    rcond : float
        Least condition of a block that can be whitened late, inverted.
    """
    p = order.shape[0]
    minor = G[np.ix_(order, order)]
    largest = float(np.abs(minor).sum(axis=0).max())
    least = PIVOT_MARGIN * rcond * largest
    first = int(np.sum(np.square(np.diagonal(L)) >= least))
    if not 0 < first < p or not ORDINARY[0] < largest < ORDINARY[1]:
        return None
    A = solve_triangular(L[:first, :first], L[first:, :first].T, lower=True, transposed=True).T
    rest = L[first:, first:]
    rounding = rounding_of(G)
    blocks = scaled(minor[:first, :first], rounding), scaled(rest @ rest.T, rounding)
    if any(not W.shape[1] or condition(W) * rcond > 1 for W in blocks):
        return None
    return Stages(order, A, blocks, float(np.trace(minor)))


def scaled(G: np.ndarray, rounding: float) -> np.ndarray:
    """V l^{-1/2} over the eigenvalues l of G above rounding."""
    values, V = eigh(G)
    kept = values > rounding
    return V[:, kept] / np.sqrt(values[kept])


def condition(W: np.ndarray) -> float:
    """Largest over smallest l of W = V l^{-1/2}."""
    inverse = inverse_eigenvalues(W)
    return float(inverse.max() / inverse.min()) if inverse.size else 1.0


def inverse_eigenvalues(W: np.ndarray) -> np.ndarray:
    """1 / l from W = V l^{-1/2}, whose columns V are of unit length."""
    return np.einsum("ij,ij->j", W, W)
