"""Small dense steps that solvers share; big arrays are (n, b), small ones live on the host."""

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigh
from scipy.linalg.lapack import dtrtri

# Least pivot of the scaled Gram matrix of a block: below, its condition number squared
# leaves fewer than half of the digits.
CHOLESKY_LEAST = 1e-4


def descending(values, vectors):
    """Eigenpairs largest first."""
    return values[::-1], vectors[:, ::-1]


def small_eigh(T):
    """All eigenpairs of a small symmetric matrix, largest first.

    Rounding leaves the triangles of T unequal, and LAPACK reads only one.
    """
    return descending(*eigh((T + T.T) / 2))


def column_norms(V):
    """Euclidean norms of the columns, (b,)."""
    return np.sqrt(np.einsum("ij,ij->j", V, V))


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
    C = Q.T @ W
    V, B = orthonormalize(W - Q @ C)
    again = Q.T @ V
    V, R = orthonormalize(V - Q @ again)
    return V, C + again @ B, R @ B


def orthonormalize(W):
    """An orthonormal basis V of the columns of W, (n, b), with W = V R.

    By the Cholesky factor of W'W, which is all GEMM, where W is well enough conditioned for
    it, else by Householder reflections. Call it twice for orthogonality to rounding.
    """
    scale = column_norms(W)
    scale[scale == 0] = 1.0
    try:
        R = cholesky(W.T @ W / np.outer(scale, scale), check_finite=False)
    except LinAlgError:
        return np.linalg.qr(W)
    if np.min(np.diag(R)) < CHOLESKY_LEAST:
        return np.linalg.qr(W)
    R *= scale
    inverse, _ = dtrtri(R)
    return W @ inverse, R
