"""Measures of how good an approximate kernel PCA, a clustering or a denoising is.

All are plain functions of NumPy arrays; where a Gram matrix is asked for, an operator
with ``@`` and ``rows`` (such as ``mercer.operators.CenteredGram``) serves as well, and
is then read in blocks of rows and never stored.
"""

from typing import Any

import numpy as np
from scipy.stats import entropy
from sklearn.metrics.cluster import contingency_matrix

from .compute.arrays import Array

__all__ = [
    "excess_reconstruction_error",
    "minimal_reconstruction_error",
    "projection_error",
    "reconstruction_error",
    "snr",
    "subspace_error",
    "variation_of_information",
]

ROWS = 256  # rows of a Gram operator held at once


def reconstruction_error(K: Array, A: Array) -> Any:
    """Frobenius error of the Gram matrix rebuilt from expansion coefficients.

    E(A) = ||K - (AK)'(AK)||, equation 22 of Schraudolph, Günter and Vishwanathan (2007).

    Parameters
    ----------
    K : array (n, n) or operator
        Centered Gram matrix.
    A : array (r, n)
        One row of coefficients a direction, of unit norm in the feature space.

    Returns
    -------
    float

    Notes
    -----
    Reads K twice. The error is summed over blocks of rows of the difference itself:
    expanding the square would cancel half of the digits.
    """
    A = np.asarray(A)
    S = np.asarray(K @ A.T)
    total = 0.0
    for start in range(0, S.shape[0], ROWS):
        part = slice(start, start + ROWS)
        total += float(np.sum((_rows(K, part) - S[part] @ S.T) ** 2, dtype=np.float64))
    return total**0.5


def minimal_reconstruction_error(eigenvalues: Array, n_components: int) -> Any:
    """Smallest E(A) of any `n_components` directions, given all eigenvalues of K.

    Parameters
    ----------
    eigenvalues : array (n,)
        All eigenvalues of the centered Gram matrix, in any order.
    n_components : int

    Returns
    -------
    float

    Examples
    --------
    >>> minimal_reconstruction_error([5.0, 3.0, 4.0], 1)
    5.0
    """
    tail = np.sort(np.asarray(eigenvalues, dtype=np.float64))[::-1][n_components:]
    return float(np.linalg.norm(tail))


def excess_reconstruction_error(K: Array, A: Array, minimum: float | None = None) -> Any:
    """Relative excess E(A) / E_min - 1 of the reconstruction error over the best possible.

    Parameters
    ----------
    K : array (n, n) or operator
        Centered Gram matrix.
    A : array (r, n)
        Expansion coefficients of the directions, see `reconstruction_error`.
    minimum : float, optional
        E_min, the error of r exact eigenvectors. By default computed from all eigenvalues
        of K, which takes O(n^3) operations and K as an array.

    Returns
    -------
    float
        Zero for exact directions. Not invariant to the norm of the rows of A or to their
        angles in the feature space: a right subspace with wrong lengths scores badly.
        Where the best error is zero (rank of K at most r), the error relative to the norm
        of K is returned instead.

    Examples
    --------
    >>> K = np.diag([4.0, 1.0, 1.0])
    >>> excess_reconstruction_error(K, [[0.5, 0.0, 0.0]])
    0.0
    """
    A = np.atleast_2d(A)
    if minimum is None:
        minimum = minimal_reconstruction_error(np.linalg.eigvalsh(np.asarray(K)), len(A))
    error = reconstruction_error(K, A)
    blocks = (_rows(K, slice(i, i + ROWS)) for i in range(0, K.shape[0], ROWS))
    scale = float(np.sqrt(sum(np.sum(block**2) for block in blocks)))  # Frobenius norm
    if minimum <= 1e-12 * scale:
        return error / scale if scale else 0.0
    return error / minimum - 1.0


def projection_error(K_xz: Array, K_zz: Array, norms: Array, rcond: float | None = None) -> Any:
    """Share of the feature-space energy of X that landmarks Z do not span.

    tr(K - K_xz K_zz^+ K_zx) / tr K.

    Parameters
    ----------
    K_xz : array (n, m)
        Kernel between the data and the landmarks.
    K_zz : array (m, m)
        Kernel among the landmarks.
    norms : array (n,)
        The diagonal k(x, x).
    rcond : float, optional
        Eigenvalues of K_zz below ``rcond`` times the largest count as zero; m eps by default.

    Returns
    -------
    float
        Between 0 (the landmarks span the data) and 1.

    Examples
    --------
    >>> float(projection_error(np.eye(4)[:, :1], np.eye(1), np.ones(4)))
    0.75
    """
    K_zz = np.asarray(K_zz)
    w, Q = np.linalg.eigh((K_zz + K_zz.T) / 2)
    rcond = len(w) * np.finfo(w.dtype).eps if rcond is None else rcond
    keep = w > rcond * max(w[-1], 0)
    spanned = np.asarray(K_xz) @ (Q[:, keep] / np.sqrt(w[keep]))
    return 1.0 - np.sum(spanned**2) / np.sum(norms)


def subspace_error(U: Array, V: Array) -> float:
    """Sine of the largest angle between the column spans of U and V.

    Parameters
    ----------
    U, V : array (n, r) and (n, q) with r <= q
        Columns need not be orthonormal, but are taken to be independent.

    Returns
    -------
    float
        0 if span U lies in span V, 1 if some direction of U is orthogonal to V.

    Examples
    --------
    >>> subspace_error(np.eye(3)[:, :2], np.eye(3)[:, [0, 2]])
    1.0
    """
    Q, P = np.linalg.qr(U)[0], np.linalg.qr(V)[0]
    # The part of Q outside V, not 1 - cos^2, whose cancellation hides errors below 1e-8.
    return min(1.0, float(np.linalg.norm(Q - P @ (P.T @ Q), 2)))


def variation_of_information(labels: Array, other: Array) -> float:
    """Variation of information between two clusterings of the same points, in nats.

    H(a|b) + H(b|a): 0 for equal clusterings, at most log n, a metric (Meila 2005).

    Parameters
    ----------
    labels, other : array (n,)
        Cluster labels; their names do not matter.

    Returns
    -------
    float

    Examples
    --------
    >>> variation_of_information([0, 0, 1, 1], ["b", "b", "a", "a"])
    0.0
    """
    joint = contingency_matrix(np.ravel(labels), np.ravel(other))
    margins = entropy(joint.sum(axis=0)) + entropy(joint.sum(axis=1))
    return max(0.0, float(2 * entropy(joint, axis=None) - margins))


def snr(clean: Array, estimate: Array) -> float:
    """Signal-to-noise ratio 10 log10(var(clean) / mean squared error), in decibels.

    Parameters
    ----------
    clean, estimate : array
        Of one shape.

    Returns
    -------
    float
        Infinite for a perfect estimate.

    Examples
    --------
    >>> round(snr([0.0, 2.0], [0.1, 2.1]), 6)
    20.0
    """
    clean, estimate = np.asarray(clean, dtype=float), np.asarray(estimate, dtype=float)
    error = float(np.mean((clean - estimate) ** 2))
    return float("inf") if error == 0 else 10 * float(np.log10(np.var(clean) / error))


def _rows(K, part):
    """Rows of a Gram matrix, stored or not."""
    return K.rows(part) if hasattr(K, "rows") else np.asarray(K)[part]
