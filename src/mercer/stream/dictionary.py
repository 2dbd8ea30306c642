"""A dictionary that grows while rows arrive, and the coordinates of rows in it.

With Z the points and k(Z, Z) = L L', a row has the coordinates ``L^{-1} k(Z, x)`` in the
orthonormal basis that Gram-Schmidt makes of the points in the order they came. A point that
joins adds a row to L and one coordinate; those there were do not change. So the moments of rows
seen before stay valid, with a zero in the new place: what these rows had along the new direction
was part of their novelty, at most the threshold times k(x, x), and is lost (see `stream`).
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from ..bases import PointBasis
from ..compute import stack_rows
from ..selectors.novelty import least_threshold

EPS = float(np.finfo(float).eps)


@dataclass(frozen=True)
class GrowingDictionary:
    """Points that were news when they came (Ouimet and Bengio 2005), at most `budget`.

    A row joins if more than the share `novelty` of k(x, x) lies outside the span of the points
    that joined before it. Rows are judged one after another in the order they come, so that it
    makes no difference how they are cut into blocks.

    Attributes
    ----------
    kernel : Kernel
    novelty : float
    budget : int
    points : array or sparse matrix of shape (m, d)
    factor : array of shape (m, m)
        L, lower triangular.
    """

    kernel: Any
    novelty: float
    budget: int
    points: Any
    factor: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))

    #: Inner products are those of the kernel.
    exact = True

    @property
    def size(self) -> int:
        """Number of coordinates m."""
        return len(self.factor)

    @property
    def full(self) -> bool:
        """Whether no more points can join."""
        return self.size >= self.budget

    @cached_property
    def rounding(self) -> float:
        """Relative rounding of the coordinates: a point near the span of others magnifies it."""
        norms = np.sqrt(np.einsum("ij,ij->i", self.factor, self.factor))
        return EPS * self.size * float(np.max(norms / self.factor.diagonal(), initial=1.0))

    @cached_property
    def whitener(self) -> np.ndarray:
        """W with coordinates k(x, Z) W: the inverse of L'."""
        return solve_triangular(self.factor, np.eye(self.size), lower=True).T

    def basis(self, engine) -> PointBasis:
        """The points as a basis, rows always in double precision."""
        return PointBasis(self.kernel, self.points, engine, single=False)

    def coordinates(self, X) -> np.ndarray:
        """Coordinates of rows, (n, m); one triangular solve."""
        if not self.size:
            return np.zeros((X.shape[0], 0))
        K = np.asarray(self.kernel(X, self.points))
        return solve_triangular(
            self.factor, K.T, lower=True, overwrite_b=True, check_finite=False
        ).T

    def unwhiten(self, A) -> np.ndarray:
        """Coordinates of the sums of points with weights A, (m, b); points not yet known are 0."""
        return self.factor[: len(A)].T @ A

    def admit(self, X) -> tuple["GrowingDictionary", np.ndarray, np.ndarray]:
        """Take in a block of rows in their order.

        Returns
        -------
        grown : GrowingDictionary
        Y : array of shape (n, size of grown)
            Coordinates of each row in the dictionary as it was when the row came, the row itself
            included; zero for points that joined later.
        joined : array of int
            Which rows joined, in order.
        """
        Y = self.coordinates(X)
        joined, C = self._news(X, Y)
        if not joined.size:
            return self, Y, joined
        K = np.asarray(self.kernel(X, X[joined])) - Y @ Y[joined].T
        new = solve_triangular(C, K.T, lower=True, check_finite=False).T
        new[np.arange(X.shape[0])[:, None] < joined] = 0.0
        return self._with(X[joined], Y[joined], C), np.hstack([Y, new]), joined

    def candidates(self, Y, norms) -> np.ndarray:
        """Rows that may join, by their coordinates and k(x, x): all others never will.

        What is outside the span only shrinks as points join.
        """
        return np.flatnonzero(norms - np.einsum("ij,ij->i", Y, Y) > self._floor(norms))

    def losses(self, M) -> np.ndarray:
        """Energy that only each point explains, of rows with second moments M, (m,).

        What is lost without point j is along the one direction of the span that is orthogonal
        to all others, the row j of L^{-T} scaled to unit length.
        """
        D = self.whitener
        return np.einsum("ij,jk,ik->i", D, M, D) / np.einsum("ij,ij->i", D, D)

    def without(self, leaving) -> tuple["GrowingDictionary", np.ndarray]:
        """The dictionary without some points, and T, (m, m'): coordinates y become y T.

        The columns of T are orthonormal, so that y T are the coordinates of the projection.
        """
        kept = np.setdiff1d(np.arange(self.size), leaving)
        T, R = np.linalg.qr(self.factor[kept].T)
        signs = np.where(R.diagonal() < 0, -1.0, 1.0)
        factor = np.tril((R * signs[:, None]).T)
        return replace(self, points=self.points[kept], factor=factor), T * signs

    def _floor(self, norms):
        return max(self.novelty, least_threshold(np.float64)) * norms

    def _news(self, X, Y):
        """Indices of the rows that join, and the Cholesky factor of what they add."""
        norms = np.asarray(self.kernel.diag(X), dtype=float)
        candidates = self.candidates(Y, norms)
        if self.full or not candidates.size:
            return candidates[:0], np.zeros((0, 0))
        rows = X[candidates]
        H = np.asarray(self.kernel(rows, rows)) - Y[candidates] @ Y[candidates].T
        floor = self._floor(norms[candidates])
        chosen, C = first_independent(H, floor, self.budget - self.size)
        return candidates[chosen], C

    def _with(self, X, Y, C) -> "GrowingDictionary":
        """The dictionary with rows X, whose coordinates are Y in it and C beyond it."""
        m, b = self.size, len(C)
        factor = np.zeros((m + b, m + b))
        factor[:m, :m], factor[m:, :m], factor[m:, m:] = self.factor, Y, C
        return replace(self, points=stack_rows([self.points, X]), factor=factor)


def first_independent(H, floor, limit):
    """Rows of a Gram matrix outside the span of those chosen before, in order.

    Parameters
    ----------
    H : array of shape (n, n)
    floor : array of shape (n,)
        A row is chosen if its squared distance to the span is above this.
    limit : int
        Most rows to choose.

    Returns
    -------
    chosen : array of int, (b,)
    factor : array of shape (b, b)
        Lower Cholesky factor of their Gram matrix.
    """
    chosen: list[int] = []
    V = np.empty((min(limit, len(H)), len(H)))
    distance = H.diagonal().copy()
    for i in range(len(H)):
        if len(chosen) == len(V):
            break
        if distance[i] > floor[i]:
            b = len(chosen)
            V[b] = (H[i] - V[:b, i] @ V[:b]) / np.sqrt(distance[i])
            distance -= V[b] ** 2
            chosen.append(i)
    return np.array(chosen, dtype=int), np.tril(V[: len(chosen), chosen].T)
