"""Landmarks that are worth their work: the others lie, to rounding, in their span.

A pivoted Cholesky factorization of G orders the landmarks so that the first p of them span most
of what all do, and gives the coordinates of rows in that order. So one factorization tells, for
some rows that judge, what every p would lose. Moments of n rows cost n p^2.
"""

import numpy as np
from scipy.linalg.lapack import dpstrf

from ..compute.linalg import solve_triangular

# What the landmarks that are left out may add to what all of them lose, as a share of the energy:
# who asks for 500 landmarks gets the eigenvalues of 500.
ROUNDING = 1e-10


def independent(G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Landmarks in the order of a pivoted Cholesky factorization, and its factor L, (p, p).

    Those that are sums of the others to rounding are left out.
    """
    factor, order, rank, _ = dpstrf(G, tol=rounding_of(G), lower=1)
    return order[:rank] - 1, np.tril(factor[:rank, :rank])


def rounding_of(G: np.ndarray) -> float:
    """Eigenvalues of G up to which they are rounding: m eps times its largest row sum."""
    return float(G.shape[0] * np.finfo(float).eps * np.abs(G).sum(axis=0).max())


def worthwhile(L: np.ndarray, K: np.ndarray, energy: float) -> int:
    """How many of the first landmarks lose no more of some rows than all do.

    Parameters
    ----------
    L : array of shape (p, p)
        As `independent` gives it.
    K : array of shape (s, p)
        The kernel between the rows that judge and the landmarks in the same order.
    energy : float
        The sum of k(x, x) over those rows.
    """
    B = solve_triangular(L, K.T, lower=True, check_finite=False)
    lost = energy - np.cumsum(np.einsum("ij,ij->i", B, B))
    allowed = max(float(lost[-1]), 0.0) + ROUNDING * energy
    return 1 + int(np.argmax(lost <= allowed))
