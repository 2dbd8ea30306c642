"""Landmarks as the basis: a few chosen points stand for all (Nystroem)."""

import warnings

import numpy as np

from ..selectors import TwoStage
from .base import BasisRecipe
from .points import DRAFT_SPREAD, PointBasis

# Landmarks for each component when no size is given, and the least: at 200 the default
# selector leaves about 1 % of covtype's variance.
PER_COMPONENT, LEAST = 10, 200
# First size tried, and growth of it, when an error is asked for.
FIRST_SIZE, GROWTH = 64, 2


class Landmarks(BasisRecipe):
    """A basis of chosen points: Nystroem kernel PCA.

    One pass over the data, memory for m x m moments, and a model that transforms new
    rows from the m landmarks alone.

    Parameters
    ----------
    size : int, float or None
        Number of landmarks, or their share of the rows; None for ten a component and at
        least 200.
    selector : Selector or None
        How they are chosen; None is `TwoStage()`: full greedy within a uniform pool.
    error : float or None
        Instead of a size: grow until the certified share of energy that is lost,
        ``tr(K - K_nys) / tr K``, is at most this.
    points : array of shape (m, d) or None
        The landmarks themselves.
    indices : array of int or None
        The landmarks as rows of the training data.
    """

    def __init__(self, size=None, selector=None, *, error=None, points=None, indices=None):
        self.size = size
        self.selector = selector
        self.error = error
        self.points = points
        self.indices = indices

    def build(self, kernel, X, engine, rng, n_components=None):
        """Choose the landmarks among the rows of X and make them a basis."""
        given = [self.size, self.error, self.points, self.indices]
        if sum(value is not None for value in given) > 1:
            raise ValueError("Landmarks: give one of size, error, points and indices, not several.")
        single = kernel.spread(X) <= DRAFT_SPREAD
        if self.points is not None or self.indices is not None:
            return PointBasis(kernel, self._given(X), engine, single=single)
        if self.error is not None:
            return self._grow(kernel, X, engine, rng, single)
        size = self.count(X.shape[0], n_components)
        return PointBasis(kernel, self._choose(kernel, X, size, rng, engine), engine, single=single)

    def count(self, n: int, n_components: int | None = None) -> int:
        """Number of landmarks for n rows."""
        if self.size is None:
            return min(n, max(LEAST, PER_COMPONENT * (n_components or 0)))
        if isinstance(self.size, float) and 0 < self.size < 1:
            return max(1, round(self.size * n))
        if self.size < 1 or self.size != int(self.size):
            raise ValueError(
                f"Landmarks: size={self.size!r} must be a whole number above 0 or a share "
                "in (0, 1)."
            )
        if self.size > n:
            raise ValueError(
                f"Landmarks: size={self.size} is more than the {n} rows there are. "
                "Give a smaller size, or use basis='points' for the exact method."
            )
        return int(self.size)

    def _given(self, X):
        if self.indices is not None:
            return X[np.asarray(self.indices)]
        points = np.asarray(self.points, dtype=X.dtype)
        if points.ndim != 2 or points.shape[1] != X.shape[1] or points.shape[0] == 0:
            raise ValueError(
                f"Landmarks: points have shape {points.shape} and the data have "
                f"{X.shape[1]} columns. Give an array of shape (m, {X.shape[1]})."
            )
        return points

    def _choose(self, kernel, X, size, rng, engine):
        selector = self.selector or TwoStage()
        with engine.single_blas():
            chosen = selector.select(kernel, X, size, rng)
        if len(chosen) < size and not getattr(selector, "replace", False):
            warnings.warn(
                f"Only {len(chosen)} of {size} landmarks were chosen: the data have no more "
                "distinct or independent rows.",
                UserWarning,
                stacklevel=6,
            )
        return chosen if selector.returns_points else X[chosen]

    def _grow(self, kernel, X, engine, rng, single):
        if not 0 < self.error < 1:
            raise ValueError(f"Landmarks: error={self.error!r} must be a share in (0, 1).")
        size = min(FIRST_SIZE, X.shape[0])
        while True:
            basis = PointBasis(
                kernel, self._choose(kernel, X, size, rng, engine), engine, single=single
            )
            if basis.lost_share(X) <= self.error or basis.size < size or size == X.shape[0]:
                return basis
            size = min(GROWTH * size, X.shape[0])
