"""Canonical correlations of two views, regularized, from their joint moments.

Bach & Jordan (2002), Hardoon, Szedmak & Shawe-Taylor (2004): of all pairs of functions f of one
view and g of the other those with the largest

    cov(f, g) / sqrt((var f + c |f|^2) (var g + c' |g|^2)).

In orthonormal coordinates x and y of the spans these are the singular vectors of
``(Sx + c I)^{-1/2} Sxy (Sy + c' I)^{-1/2}``.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..bases import Basis
from ..compute.linalg import eigh, self_product, thin_svd
from ..fitting.certificate import PROVEN_SHARE, Certificate, leading
from ..fitting.expansion import KernelExpansion
from ..fitting.moments import Moments
from .joint import JointMoments


@dataclass(frozen=True)
class CanonicalPairs:
    """Pairs of directions along which two views vary together, the strongest first.

    Attributes
    ----------
    first, second : arrays of shape (k, r) and (q, r)
        Directions in the coordinates of each view; scores of the rows have variance 1.
    correlations : array of shape (r,)
        Of the scores of the rows.
    regularized : array of shape (r,)
        The singular values: covariances over the regularized variances.
    """

    first: np.ndarray
    second: np.ndarray
    correlations: np.ndarray
    regularized: np.ndarray


def canonical_pairs(
    joint: JointMoments, r: int, regularization: float, noises: tuple[float, float] = (0.0, 0.0)
) -> CanonicalPairs:
    """The leading pairs; c is the regularization times the total variance of a view.

    `noises` are the variances in each view that rounding alone gives a direction: no direction
    with less takes part.
    """
    n = joint.count
    Sx, Sy, C = joint.scatter / n, joint.other.scatter / n, joint.cross / n
    Rx, Ry = (
        inverse_root(S, regularization, noise) for S, noise in zip((Sx, Sy), noises, strict=True)
    )
    U, s, Vt = thin_svd(Rx @ C @ Ry)
    r = min(r, len(s))
    A, B = unit_variance(Rx @ U[:, :r], Sx), unit_variance(Ry @ Vt[:r].T, Sy)
    found = np.einsum("ij,ij->j", A, C @ B)
    return CanonicalPairs(A, B, np.clip(found, -1.0, 1.0), np.clip(s[:r], 0.0, 1.0))


def certified(pairs: CanonicalPairs, left_out, regularized, certain: bool) -> Certificate:
    """Intervals of the regularized correlations, by what bases leave out of both kernel matrices.

    They are the singular values of Tx^1/2 Ty^1/2 with T = K (K + n c I)^-1 for the centered kernel
    matrix of each view; so the i-th eigenvalue of Tx^1/2 Ty Tx^1/2 changes by no more than both T
    do. For K + E with E >= 0, and c larger by as great a share as the trace, T grows by |E| / n c
    at most and falls by tr E / n c at most.

    Parameters
    ----------
    left_out : pair of floats
        tr E at most, and what rounding does to the matrix and to its trace.
    regularized : pair of floats
        n c.
    certain : bool
        Whether E >= 0 and that is a bound.
    """
    share = sum(e / c if c > 0 else np.inf for e, c in zip(left_out, regularized, strict=True))
    squares = pairs.regularized**2
    lower = np.sqrt(np.clip(squares - share, 0.0, 1.0))
    upper = np.sqrt(np.clip(squares + share, 0.0, 1.0))
    kind: Any = "bound" if certain else "estimate"
    proven = leading(upper - lower <= PROVEN_SHARE) if certain else 0
    return Certificate(kind, lower, upper, None, None, True, n_proven=proven)


def inverse_root(S: np.ndarray, regularization: float, noise: float = 0.0) -> np.ndarray:
    """(S + c I)^{-1/2} on the directions that have variance, (k, k)."""
    values, V = eigh((S + S.T) / 2)
    total = float(np.trace(S))
    some = values > max(len(values) * np.finfo(float).eps * max(float(values[-1]), 0.0), noise)
    values = np.where(some, np.maximum(values, 0.0) + regularization * total, 1.0)
    return (V * (some / np.sqrt(values))) @ V.T


def unit_variance(A: np.ndarray, S: np.ndarray) -> np.ndarray:
    """Directions along which the rows have variance 1; those without any stay as they are."""
    variances = np.einsum("ij,ij->j", A, S @ A)
    return A / np.sqrt(np.where(variances > 0, variances, 1.0))


def expansion_of(
    basis: Basis, whitener: np.ndarray | None, moments: Moments, A: np.ndarray
) -> KernelExpansion:
    """The mean and directions A of coordinates, as weights over a basis.

    Unlike those of kernel PCA the directions are neither orthogonal nor of unit length.
    """
    frame = np.hstack([moments.mean[:, None], A])
    metric = self_product(frame)
    return KernelExpansion(basis, frame if whitener is None else whitener @ frame, metric)
