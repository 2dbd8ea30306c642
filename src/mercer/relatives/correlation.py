"""Canonical correlations of two views, regularized, from their joint moments.

Bach & Jordan (2002), Hardoon, Szedmak & Shawe-Taylor (2004): of all pairs of functions f of one
view and g of the other those with the largest

    cov(f, g) / sqrt((var f + c |f|^2) (var g + c' |g|^2)).

In orthonormal coordinates x and y of the spans these are the singular vectors of
``(Sx + c I)^{-1/2} Sxy (Sy + c' I)^{-1/2}``.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..bases import Basis, ColumnBasis
from ..compute import to_numpy
from ..compute.linalg import eigh, self_product, thin_svd
from ..fitting.certificate import PROVEN_SHARE, Certificate, leading, stand_above
from ..fitting.expansion import KernelExpansion
from ..fitting.moments import Moments
from ..fitting.problems import Problem, Result
from ..operators import DenseOperator
from ..solvers import Eigenpairs

# Safety factor on the rounding of kernel values.
ROUNDING = 4.0


@dataclass(frozen=True)
class View:
    """One of the two views: its basis, how coordinates are made, and their moments."""

    basis: Basis
    whitener: Any
    moments: Moments
    energy: float

    @cached_property
    def noise(self) -> float:
        """Variance that rounding alone gives a direction: of kernel values, or of columns."""
        moments, eps = self.moments, ROUNDING * np.finfo(float).eps
        if isinstance(self.basis, ColumnBasis):
            return eps**2 * float(np.sum(moments.mean**2))
        return eps * moments.projected_energy / moments.count

    @property
    def left_out(self) -> float:
        """The trace of what the basis leaves out of the kernel matrix, and twice the rounding.

        Rounding changes the matrix, and by its trace the regularization.
        """
        n, size, inside = self.moments.count, self.moments.mean.size, self.moments.projected_energy
        lost = 0.0 if isinstance(self.basis, ColumnBasis) else abs(self.energy - inside)
        rounding = max(self.basis.rounding(), np.finfo(float).eps) * (size + n**0.5)
        return lost + 2 * (n * self.noise + rounding * max(self.energy, inside))

    def root(self, regularization: float) -> np.ndarray:
        """(S + c I)^{-1/2} of the covariance S on the directions that have variance, (k, k).

        c is the regularization times the trace of S.
        """
        S = self.moments.scatter / self.moments.count
        values, V = eigh((S + S.T) / 2)
        rounding = len(values) * np.finfo(float).eps * max(float(values[-1]), 0.0)
        varied = values > max(rounding, self.noise)
        penalty = regularization * float(np.trace(S))
        values = np.where(varied, np.maximum(values, 0.0) + penalty, 1.0)
        return (V * (varied / np.sqrt(values))) @ V.T

    def expanded(self, A: np.ndarray) -> KernelExpansion:
        """The mean and directions A of coordinates, as weights over the basis.

        Unlike those of kernel PCA the directions are neither orthogonal nor of unit length.
        """
        frame = np.hstack([self.moments.mean[:, None], A])
        metric = self_product(frame)
        frame = frame if self.whitener is None else self.whitener @ frame
        return KernelExpansion(self.basis, frame, metric)


@dataclass(frozen=True, kw_only=True)
class CorrelationResult(Result):
    """Pairs of directions along which two views vary together, the strongest first.

    Attributes
    ----------
    expansion, expansion_y : KernelExpansion
        Directions of each view; scores of the rows have variance 1.
    pairs : Eigenpairs
        Of the squares.
    correlations : array of shape (r,)
        Of the scores of the rows.
    regularized_correlations : array of shape (r,)
        The singular values: covariances over the regularized variances.
    """

    expansion_y: KernelExpansion
    correlations: np.ndarray
    regularized_correlations: np.ndarray


@dataclass(frozen=True, eq=False)
class CorrelationProblem(Problem):
    """The singular vectors of (Sx + c I)^{-1/2} Sxy (Sy + c' I)^{-1/2}, by the smaller Gram matrix.

    Attributes
    ----------
    inner : ReducedProblem
        The first view, whose moments are joint with those of the second.
    other : View
        The second one.
    other_columns : int
        Its columns.
    regularization : float
        c over the total variance of a view.
    """

    inner: Any
    other: View
    other_columns: int
    regularization: float

    basis = property(lambda self: self.inner.basis)
    center = True
    weight = property(lambda self: self.inner.weight)
    n_rows = property(lambda self: self.inner.n_rows)
    moments = property(lambda self: self.inner.moments)
    total = property(lambda self: float(np.sum(self.matrix**2)))
    scale = total
    slack = 0.0

    @cached_property
    def view(self) -> View:
        """The first view."""
        moments = self.inner.moments
        return View(self.basis, self.inner.whitening.weights, moments, float(moments.energy))

    @cached_property
    def roots(self) -> list[np.ndarray]:
        """(S + c I)^{-1/2} of both views."""
        return [view.root(self.regularization) for view in (self.view, self.other)]

    @cached_property
    def matrix(self) -> np.ndarray:
        """The matrix whose singular vectors are wanted, (k, q)."""
        cross = self.inner.moments.cross / self.inner.moments.count
        return self.roots[0] @ cross @ self.roots[1]

    @property
    def tall(self) -> np.ndarray:
        """The matrix or its transpose, with no more columns than rows."""
        T = self.matrix
        return T.T if T.shape[0] <= T.shape[1] else T

    @cached_property
    def operator(self) -> DenseOperator:
        return DenseOperator(self_product(self.tall))

    def result(self, pairs: Eigenpairs) -> CorrelationResult:
        Q, moments = to_numpy(pairs.vectors), self.inner.moments
        # The pairs within the span of the vectors: eigenvalues are squares, with half the digits.
        long, s, turn = thin_svd(self.tall @ Q)
        sides = (long, Q @ turn.T) if self.tall is self.matrix else (Q @ turn.T, long)
        n, views = moments.count, (self.view, self.other)
        found = zip(views, self.roots, sides, strict=True)
        A, B = (unit_variance(root @ W, view.moments.scatter / n) for view, root, W in found)
        correlations = np.clip(np.einsum("ij,ij->j", A, moments.cross @ B / n), -1.0, 1.0)
        regularized = np.clip(s, 0.0, 1.0)
        first, second = self.view.expanded(A), self.other.expanded(B)
        signs = first.signs(self.inner.model_rows, self.inner.count)
        penalties = [self.regularization * float(np.trace(v.moments.scatter)) for v in views]
        definite = all(v.basis.kernel.definite and v.basis.exact_norms for v in views)
        certain = definite and min(penalties) > 0
        left_out = [view.left_out for view in views]
        certificate = certified(regularized, left_out, penalties, certain)
        first, second = first.stretched(signs), second.stretched(signs)
        values: dict = {"correlations": correlations, "regularized_correlations": regularized}
        return CorrelationResult(first, certificate, pairs, self, expansion_y=second, **values)


def certified(values: np.ndarray, left_out, penalties, certain: bool) -> Certificate:
    """Intervals of the regularized correlations, by what bases leave out of both kernel matrices.

    They are the singular values of Tx^1/2 Ty^1/2 with T = K (K + n c I)^-1 for the centered kernel
    matrix of each view; so the i-th eigenvalue of Tx^1/2 Ty Tx^1/2 changes by no more than both T
    do. For K + E with E >= 0, and c larger by as great a share as the trace, T grows by |E| / n c
    at most and falls by tr E / n c at most.

    Parameters
    ----------
    values : array of shape (r,)
        The correlations.
    left_out : pair of floats
        tr E at most, and what rounding does to the matrix and to its trace.
    penalties : pair of floats
        n c.
    certain : bool
        Whether E >= 0 and that is a bound.
    """
    share = sum(e / c if c > 0 else np.inf for e, c in zip(left_out, penalties, strict=True))
    squares = values**2
    lower = np.sqrt(np.clip(squares - share, 0.0, 1.0))
    upper = np.sqrt(np.clip(squares + share, 0.0, 1.0))
    kind: Any = "bound" if certain else "estimate"
    clear = stand_above(values, upper - lower) & (upper - lower <= PROVEN_SHARE)
    proven = leading(clear & certain)
    return Certificate(kind, lower, upper, None, None, True, n_proven=proven)


def unit_variance(A: np.ndarray, S: np.ndarray) -> np.ndarray:
    """Directions along which the rows have variance 1; those without any stay as they are."""
    variances = np.einsum("ij,ij->j", A, S @ A)
    return A / np.sqrt(np.where(variances > 0, variances, 1.0))
