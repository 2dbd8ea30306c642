"""Landmarks in two stages: a cheap choice of a pool, a careful one within it."""

from math import isqrt

import numpy as np

from ..compute.arrays import Array
from ..kernels import Kernel
from .base import Selector
from .cholesky import RPCholesky
from .greedy import FullGreedy
from .random import Uniform

# Rows of the pool for each atom, and at least. On covertype, 200 rows that full greedy chose of
# 2,000 have 0.77 of the error of random ones, of 4,000 0.71 for four times the work; 1,000 rows
# of 3,000 have 0.62, of 5,000 0.56 for two and a half times the work.
POOL_PER_ATOM, MIN_POOL = 8, 2000
# Landmarks from which random pivots are the default, and rows that they are drawn from for each:
# greedy choice takes time with the square of its pool. Of 8,000 rows of covertype 1,000 pivots lose
# 0.17 of what random rows do, after 0.4 s; greedy ones of 4,000 lose 0.22 after 2 s.
MANY, PIVOT_POOL = 300, 4
# Rows that full greedy chooses among in some milliseconds.
LEAST_POOL = 300


def default_selector(n: int | None, size: int) -> "TwoStage":
    """How `size` landmarks of n rows are chosen where nobody says how; None for many rows.

    In less time than the fit takes that follows, which grows with n size^2. Full greedy within a
    pool of sqrt(n size) / 3 rows, from 300 to 2,000 and at least twice the size; from 300
    landmarks on random pivots among four times as many rows, and at least 2,000.
    """
    return TwoStage(second=second_stage(size), pool=default_pool(n, size))


def second_stage(size: int) -> Selector:
    """The careful choice that so many landmarks can afford."""
    return FullGreedy() if size < MANY else RPCholesky()


def default_pool(n: int | None, size: int) -> int:
    """Rows among which the default chooses."""
    if size >= MANY:
        return max(MIN_POOL, PIVOT_POOL * size)
    most = MIN_POOL if n is None else isqrt(n * size) // 3
    return max(2 * size, LEAST_POOL, min(MIN_POOL, most))


class TwoStage(Selector):
    """`first` picks a pool, `second` selects within it.

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
