"""A dictionary of points that grows while rows arrive, and the coordinates of rows in it.

With Z the points and k(Z, Z) = L L', a row has the coordinates ``L^{-1} k(Z, x)`` in the
orthonormal basis that Gram-Schmidt makes of the points in the order they came. A point that joins
adds a row to L and one coordinate; those there were do not change. So what was learned of earlier
rows stays valid, with a zero in the new place: what they had along the new direction was part of
their novelty, at most the threshold times k(x, x), and is lost.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from scipy.linalg import LinAlgError, qr, solve_triangular
from scipy.linalg.lapack import dpotri

from ..bases import PointBasis
from ..compute import stack_rows
from ..compute.linalg import cholesky, self_product
from ..selectors import Novelty
from ..selectors.online import independent_rows, least_threshold

EPS = float(np.finfo(float).eps)
# Share of the mean k(x, x) that is added to k(x, x) of points that join whatever they are, so that
# copies leave L invertible: to remove one of two equal points cancels 1 / JITTER, and half of the
# digits should be left.
JITTER = 1e-9


@dataclass(frozen=True)
class GrowingDictionary:
    """Points that were news when they came (Ouimet and Bengio 2005), at most `budget`.

    A row joins if more than the share `novelty` of k(x, x) lies outside the span of the points
    that joined before it. Rows are judged one after another in the order they come, so that it
    makes no difference how they are cut into blocks.

    Attributes
    ----------
    kernel : Kernel
    novelty : float or None
        None for all rows to join, copies of others too.
    budget : int
    points : array or sparse matrix of shape (m, d)
    factor : array of shape (m, m)
        L, lower triangular.
    """

    kernel: Any
    novelty: Annotated[float, "[0, 1)"] | None
    budget: Annotated[int, "[1, inf)"]
    points: Annotated[Any, "n d sparse"]
    factor: Annotated[np.ndarray, "n n"] = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def size(self) -> int:
        """Number of coordinates m."""
        return len(self.factor)

    full = property(lambda self: self.size >= self.budget)

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

    def coordinates(self, X, K=None) -> np.ndarray:
        """Coordinates of rows, (n, m), from k(X, Z); one triangular solve."""
        if not self.size:
            return np.zeros((X.shape[0], 0))
        K = np.asarray(self.kernel(X, self.points) if K is None else K, dtype=float)
        return solve_triangular(
            self.factor, K.T, lower=True, overwrite_b=True, check_finite=False
        ).T

    def unwhiten(self, A) -> np.ndarray:
        """Coordinates of the sums of points with weights A, (m, b); points not yet known are 0."""
        return self.factor[: len(A)].T @ A

    def weights(self, Q) -> np.ndarray:
        """Weights of the points in vectors with the coordinates Q, (m, b)."""
        return solve_triangular(self.factor, Q, lower=True, trans=1, check_finite=False)

    def least_news(self, norms):
        """Squared distances to the span beyond which rows join, by their k(x, x)."""
        least = least_threshold(np.float64)
        return norms * (0.0 if self.novelty is None else max(self.novelty, least))

    def with_all(self, points) -> "GrowingDictionary":
        """The dictionary of given points, whatever they are."""
        G = np.asarray(self.kernel(points, points), dtype=float)
        ridge = jitter(G.diagonal())
        for _ in range(60):
            G[np.diag_indices_from(G)] += ridge
            try:
                return replace(self, points=points, factor=cholesky(G, lower=True))
            except LinAlgError:  # an indefinite kernel: lifted until it is not
                ridge *= 10
        raise ValueError(
            f"{self.kernel!r} gives values on these points that are out of range. Scale the data, "
            "or change the kernel's parameters."
        )

    def admit(self, X, K=None, cross=None) -> tuple["GrowingDictionary", np.ndarray, np.ndarray]:
        """Take in a block of rows in their order.

        K = k(X, X) and cross = k(X, Z), which is overwritten, where they are known.

        Returns
        -------
        grown : GrowingDictionary
        Y : array of shape (n, size of grown)
            Coordinates of each row in it.
        joined : array of int
            Which rows joined, in order.
        """
        Y = self.coordinates(X, cross)
        norms = np.asarray(self.kernel.diag(X) if K is None else K.diagonal(), dtype=float)
        ridge = jitter(norms) if self.novelty is None else 0.0
        outside = norms + ridge - np.einsum("ij,ij->i", Y, Y)
        # What is outside the span only shrinks as points join: the other rows never will.
        maybe = np.flatnonzero(outside > self.least_news(norms))
        if self.full or not maybe.size:
            return self, Y, maybe[:0]
        rows = X[maybe]
        H = np.asarray(self.kernel(rows, rows) if K is None else K[np.ix_(maybe, maybe)])
        H = H + ridge * np.eye(len(H)) - self_product(Y[maybe].T)
        chosen, C = independent_rows(H, self.least_news(norms[maybe]), self.budget - self.size)
        joined = maybe[chosen]
        m, b = self.size, len(C)
        factor = np.zeros((m + b, m + b))
        factor[:m, :m], factor[m:, :m], factor[m:, m:] = self.factor, Y[joined], C
        grown = replace(self, points=stack_rows([self.points, X[joined]]), factor=factor)
        K = np.asarray(self.kernel(X, X[joined]) if K is None else K[:, joined])
        new = solve_triangular(C, (K - Y @ Y[joined].T).T, lower=True, check_finite=False).T
        new[joined] = C
        return grown, np.hstack([Y, new]), joined

    def least_useful(self, R, most: int, below: float = np.inf) -> np.ndarray:
        """Points that cost least, chosen one after another: at most `most`, each below a cost.

        R (m, k) holds coordinates of vectors that the points are to express. With F their weights
        and P = (L L')^{-1}, point j is at the squared distance 1 / P_jj from the span of the
        others, so that without it they lose F_j^2 / P_jj; both follow a removal by a rank-one
        change.
        """
        F, P = self.weights(R), dpotri(self.factor.T)[0]  # its upper triangle
        V, left = np.empty((most, len(F))), P.diagonal().copy()
        leaving: list[int] = []
        while len(leaving) < most:
            costs = np.einsum("ij,ij->i", F, F) / left
            costs[leaving] = np.inf
            j = int(np.argmin(costs))
            if not costs[j] < below:
                break
            b = len(leaving)
            row = np.concatenate([P[:j, j], P[j, j:]]) - V[:b, j] @ V[:b]
            V[b] = row / np.sqrt(row[j])
            left -= V[b] ** 2
            F -= np.outer(row / row[j], F[j])
            leaving.append(j)
            left[leaving] = 1.0  # rounding of zero
        return np.array(leaving, dtype=int)

    def without(self, leaving) -> tuple["GrowingDictionary", np.ndarray]:
        """The dictionary without some points, and T, (m, m'): coordinates y become y T.

        The columns of T are orthonormal, so that y T are the coordinates of the projection.
        """
        staying = np.setdiff1d(np.arange(self.size), leaving)
        T, R = qr(self.factor[staying].T, overwrite_a=True, mode="economic", check_finite=False)
        signs = np.where(R.diagonal() < 0, -1.0, 1.0)
        R *= signs[:, None]
        T *= signs
        return replace(self, points=self.points[staying], factor=R.T), T


def jitter(norms) -> float:
    """What to add to k(x, x) of points that join whatever they are."""
    # Points that are zero stay so beside all others.
    return JITTER * (abs(float(np.mean(norms))) or 1e-20)


def threshold_of(novelty: Any, example: float) -> float | None:
    """The share of k(x, x) from which a row is new, as a number or a `Novelty` gives it."""
    if not isinstance(novelty, Novelty):
        return novelty
    if novelty.threshold is None:
        raise ValueError(
            f"novelty=Novelty() needs a threshold, for example Novelty(threshold={example})."
        )
    return novelty.threshold
