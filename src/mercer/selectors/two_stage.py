"""Landmarks in two stages: a cheap choice of a pool, a careful one within it."""

import numpy as np

from ..compute.arrays import Array
from ..kernels import Kernel
from .base import Selector
from .greedy import FullGreedy
from .random import Uniform

# Rows of the pool for each atom, and at least. On covertype, 200 rows that full greedy chose of
# 2,000 have 0.77 of the error of random ones, of 4,000 0.71 for four times the work; 1,000 rows
# of 3,000 have 0.62, of 5,000 0.56 for two and a half times the work.
POOL_PER_ATOM, MIN_POOL = 8, 2000


class TwoStage(Selector):
    """`first` picks a pool, `second` selects within it: the default way to choose landmarks.

    Careful selectors need the Gram matrix of all their candidates. A uniform pool a few times
    the size asked for gives most of what they could reach on all rows.

    Parameters
    ----------
    first : selector or None
        None is `Uniform()`.
    second : selector or None
        None is `FullGreedy()`.
    pool : int or None
        Rows that the first stage picks; None is the larger of 2,000 and 8 times the size.

    References
    ----------
    Perry, Elhabian & Whitaker, Efficient non-linear analysis of large data sets (slides).
    """

    def __init__(
        self, first: Selector | None = None, second: Selector | None = None, pool: int | None = None
    ):
        self.first = first
        self.second = second
        self.pool = pool

    @property
    def stages(self) -> tuple[Selector, Selector]:
        """Both selectors, with the defaults in place."""
        return self.first or Uniform(), self.second or FullGreedy()

    @property
    def nested(self) -> bool:  # type: ignore[override]
        """A pool of fixed size, and a nested choice in it."""
        return self.pool is not None and self.stages[1].nested

    @property
    def needs_points(self) -> bool:  # type: ignore[override]
        """Either stage may."""
        return any(stage.needs_points for stage in self.stages)

    @property
    def returns_points(self) -> bool:  # type: ignore[override]
        """Either stage may."""
        return any(stage.returns_points for stage in self.stages)

    @property
    def independent(self) -> bool:  # type: ignore[override]
        """The second stage decides."""
        return self.stages[1].independent

    def work_bytes(self, n: int, size: int) -> int:
        """That of the stage which needs more."""
        (first, second), pool = self.stages, min(n, self._pool(size))
        return max(first.work_bytes(n, pool), second.work_bytes(pool, size))

    def select(self, kernel: Kernel, X: Array, size: int, rng: np.random.Generator) -> Array:
        """Choose at most `size` landmarks among a pool of the rows of X."""
        first, second = self.stages
        pool = first.select(kernel, X, self._pool(size), rng)
        candidates = pool if first.returns_points else X[pool]
        chosen = second.select(kernel, candidates, size, rng)
        if second.returns_points:
            return chosen
        return pool[chosen]

    def _pool(self, size: int) -> int:
        return self.pool or max(MIN_POOL, POOL_PER_ATOM * size)
