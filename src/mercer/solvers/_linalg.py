"""Small dense steps that solvers share.

Big arrays are (n, b) and stay in their library and on their device; small ones are on the
host, in NumPy: a device gains nothing on them.
"""

import numpy as np
from scipy.linalg import LinAlgError, cholesky
from scipy.linalg.lapack import dtrtri

from ..compute import array_namespace, on_device_of, to_numpy
from ..compute.arrays import placement_of
from ..compute.linalg import eigh, times_few

# Least pivot of the scaled Gram matrix of a block: below, its condition number squared
# leaves fewer than half of the digits.
CHOLESKY_LEAST = 1e-4
# Length that a unit vector keeps when it is projected a second time, unless it was rounding.
LEAST_KEPT = 0.5


def descending(values, vectors):
    """Eigenpairs largest first."""
    return values[::-1], vectors[:, ::-1]


def small_eigh(T):
    """All eigenpairs of a small symmetric matrix, largest first.

    Rounding leaves the triangles of T unequal, and LAPACK reads only one.
    """
    return descending(*eigh((T + T.T) / 2))


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


def random_columns(V, k: int, rng):
    """k columns of normal numbers beside V."""
    return on_device_of(rng.standard_normal((V.shape[0], k)), V)


def beside(operator, V):
    """Vectors of the host where the operator takes them."""
    return operator.vectors(V)


def tall(V, k: int):
    """An array for k columns beside V, each column in one piece."""
    xp = array_namespace(V)
    return xp.empty((k, V.shape[0]), dtype=V.dtype, **placement_of(V)).T


def qr(V):
    """Householder QR of a tall V: Q beside V, R on the host."""
    Q, R = array_namespace(V).linalg.qr(V)
    return Q, to_numpy(R)


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
    C, lost = C + again @ B, np.abs(np.diag(R)) < LEAST_KEPT
    if not lost.any():
        return V, C, R @ B
    V = with_new_columns(V, Q, lost)
    return V, C, inner(V, W)


def with_new_columns(V, Q, lost):
    """V with random columns, orthogonal to Q and the others, for those that Q spans already.

    They come where all that a matrix of low rank reaches is in the basis.
    """
    kept, xp = np.flatnonzero(~lost), array_namespace(V)
    new = random_columns(V, int(lost.sum()), np.random.default_rng(Q.shape[1]))
    V = xp.concat([V[:, on_device_of(kept, V)], new], axis=1)
    for _ in range(3):
        V, _ = qr(V - times(Q, inner(Q, V)))
    return V


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
