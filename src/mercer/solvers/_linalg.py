"""Small dense steps that solvers share; big arrays are (n, b), small ones live on the host."""

import numpy as np
from scipy.linalg import eigh


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
    """An orthonormal basis V of W's columns orthogonal to Q's, with W = Q (Q'W) + V B.

    Twice is enough for the projection; the second QR repairs columns that were almost
    in the span of Q and so are mostly rounding.

    Returns
    -------
    V : array of shape (n, b)
    C : array of shape (q, b), Q'W
    B : array of shape (b, b)
    """
    C = Q.T @ W
    W = W - Q @ C
    again = Q.T @ W
    W -= Q @ again
    V, B = np.linalg.qr(W)
    V -= Q @ (Q.T @ V)
    V, R = np.linalg.qr(V)
    return V, C + again, R @ B
