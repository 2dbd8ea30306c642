"""Small dense steps that solvers share.

Big arrays are (n, b) and stay in their library and on their device; small ones are on the
host, in NumPy: a device gains nothing on them.
"""

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dtrtri

from ..compute import array_namespace, on_device_of, to_numpy
from ..compute.arrays import placement_of
from ..compute.linalg import cholesky, eigh, times_few
from ..operators.base import padded

# Least pivot of the scaled Gram matrix of a block: below, its condition number squared
# leaves fewer than half of the digits.
CHOLESKY_LEAST = 1e-4
# Length that a unit vector keeps when it is projected a second time, unless it was rounding.
LEAST_KEPT = 0.5
# Length, as a share of the longest column of a block, below which what is left of one is rounding.
LEAST_LENGTH = 8 * np.finfo(float).eps


def small_eigh(T):
    """All eigenpairs of a small symmetric matrix, largest first."""
    # Rounding leaves the triangles of T unequal, and LAPACK reads only one.
    values, V = eigh((T + T.T) / 2)
    return values[::-1], V[:, ::-1]


def column_norms(V):
    """Euclidean norms of the columns, (b,), on the host."""
    if isinstance(V, np.ndarray):
        return np.sqrt(np.einsum("ij,ij->j", V, V))
    xp = array_namespace(V)
    return to_numpy(xp.sqrt(xp.sum(V * V, axis=0)))


def inner(V, W):
    """V'W on the host, for tall V and W."""
    return to_numpy(V.T @ W)


def times(V, Y):
    """V Y for a tall V and a small Y of the host."""
    return times_few(V, on_device_of(Y, V))


def tall(V, k: int):
    """An array for k columns beside V, each column in one piece."""
    xp = array_namespace(V)
    return xp.empty((k, V.shape[0]), dtype=V.dtype, **placement_of(V)).T


def qr(V):
    """Householder QR of a tall V: Q beside V, R on the host."""
    Q, R = array_namespace(V).linalg.qr(V)
    return Q, to_numpy(R)


def largest_of(m, total, square, slack=0.0):
    """Bound on the largest of m numbers by their sum and sum of squares.

    Wolkowicz & Styan (1980); the sum is known to within `slack`.
    """
    spread = square - m * np.maximum(np.abs(total) - slack, 0.0) ** 2 / m**2
    return (total + slack) / m + np.sqrt(np.maximum(spread, 0.0) * (m - 1) / m)


def rayleigh_ritz(V, AV):
    """Ritz values in the span of V, Ritz vectors U and A U, from A V."""
    V, R = orthonormal(V)
    AV = times(AV, np.linalg.inv(R))
    values, Y = small_eigh(inner(V, AV))
    return values, times(V, Y), times(AV, Y)


def orthonormal(W):
    """An orthonormal basis V of W's columns to rounding, with W = V R, R on the host."""
    V, R = orthonormalize(W)
    V, again = orthonormalize(V)
    return V, again @ R


def orthonormal_against(W, Q):
    """An orthonormal basis V of W's columns orthogonal to Q's, with W = Q C + V B.

    Twice is enough: the second projection repairs columns that were almost in the span of
    Q and so are mostly rounding.

    Returns
    -------
    V : array of shape (n, b)
    C : array of shape (q, b), Q'W
    B : array of shape (b, b)
    """
    C = inner(Q, W)
    V, B = orthonormalize(W - times(Q, C))
    again = inner(Q, V)
    V, R = orthonormalize(V - times(Q, again))
    C, kept = C + again @ B, np.abs(np.diag(R)) >= LEAST_KEPT
    if kept.all() or not np.isfinite(C).all():
        return V, C, R @ B
    # A column that is rounding may have turned the others into it. Where Q spans all that a matrix
    # of low rank reaches, random columns take the place of such.
    X = W - times(Q, C)
    V, lengths, _ = array_namespace(X).linalg.svd(X - times(Q, inner(Q, X)), full_matrices=False)
    most = float(np.max(column_norms(W), initial=0.0))
    V = V[:, : int(np.sum(to_numpy(lengths) > LEAST_LENGTH * most))]
    V = padded(V, W.shape[1], np.random.default_rng(Q.shape[1]))
    for _ in range(3):
        V, _ = qr(V - times(Q, inner(Q, V)))
    return V, C, inner(V, W)


def orthonormalize(W):
    """An orthonormal basis V of the columns of W, (n, b), with W = V R.

    By the Cholesky factor of W'W, which is all GEMM, where W is well enough conditioned for
    it, else by Householder reflections. Call it twice for orthogonality to rounding.
    """
    G = inner(W, W)
    scale = np.sqrt(np.diag(G))
    scale = np.where(scale == 0, 1.0, scale)
    try:
        R = cholesky(G / np.outer(scale, scale), check_finite=False)
    except LinAlgError:
        return qr(W)
    if np.min(np.diag(R)) < CHOLESKY_LEAST:
        return qr(W)
    R *= scale
    inverse, _ = dtrtri(R)
    return times(W, inverse), R
