"""Row functions: called on blocks of rows where the rows are; their results add with ``+``."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..bases import FourierBasis
from ..bases.fourier import row_range
from ..compute import stack_rows, to_numpy
from ..kernels.base import wide_row_squares
from .moments import RowFunction, WeightedFunction
from .sampling import RowSample


@dataclass(frozen=True)
class TrigonometricOf(WeightedFunction):
    """Trigonometric moments of rows for a Fourier grid."""

    basis: FourierBasis

    def __call__(self, rows, first):
        return self.basis.moments(rows, self.weights_of(rows, first))

    def finished(self, found):
        """The sum over all blocks as it is."""
        return found


@dataclass(frozen=True)
class Sums:
    """Sums of several functions, which add up one by one."""

    parts: tuple

    def __sizeof__(self):
        # A scheduler asks for it before it moves one.
        return object.__sizeof__(self) + sum(part.__sizeof__() for part in self.parts)

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(tuple(a + b for a, b in zip(self.parts, other.parts, strict=True)))


@dataclass(frozen=True)
class Together(RowFunction):
    """Several functions in one pass, the first of which may weigh rows."""

    functions: tuple[RowFunction, ...]

    def __call__(self, rows, first):
        return Sums(tuple(function(rows, first) for function in self.functions))

    @property
    def weights(self) -> Any:  # type: ignore[override]
        return self.functions[0].weights

    def moved(self, engine):
        return Together(tuple(function.moved(engine) for function in self.functions))

    def weighing(self, weights, start=0):
        return Together(tuple(function.weighing(weights, start) for function in self.functions))


@dataclass(frozen=True)
class Survey:
    """Rows counted and sampled in one pass.

    Attributes
    ----------
    sample : RowSample
    count : int
    reach : float
        The largest squared norm of a row.
    farthest : array of shape (<= 1, d)
        That row: a sample alone would miss it.
    """

    sample: RowSample
    count: int
    reach: float
    farthest: Any

    def __sizeof__(self):
        # A scheduler asks for it before it moves one.
        rows = self.sample.rows
        return object.__sizeof__(self) + (0 if rows is None else 8 * rows.shape[0] * rows.shape[1])

    def __add__(self, other: "Survey") -> "Survey":
        far = self if self.reach >= other.reach else other
        return Survey(self.sample + other.sample, self.count + other.count, far.reach, far.farthest)

    @property
    def pilot(self) -> Any:
        """The sample, with the farthest row where rows were left out."""
        rows = self.sample.rows
        return rows if rows.shape[0] == self.count else stack_rows([rows, self.farthest])


@dataclass(frozen=True)
class SurveyOf(RowFunction):
    """Counts rows and gives each its chance in a sample."""

    size: int
    seed: int

    def __call__(self, rows, first):
        sample = RowSample(self.size, self.seed).add(rows, first)
        squares = to_numpy(wide_row_squares(rows))
        peak = int(np.argmax(squares)) if squares.size else 0
        reach = float(squares[peak]) if squares.size else -1.0
        # A copy: a slice would keep its whole block alive.
        return Survey(sample, rows.shape[0], reach, rows[[peak]] if squares.size else rows[:0])


@dataclass(frozen=True)
class Box:
    """Least and largest value of every column, (d, 2); the sum of two boxes holds both."""

    bounds: np.ndarray

    def __add__(self, other: "Box") -> "Box":
        low = np.minimum(self.bounds[:, 0], other.bounds[:, 0])
        high = np.maximum(self.bounds[:, 1], other.bounds[:, 1])
        return Box(np.stack([low, high], axis=1))


@dataclass(frozen=True)
class RangeOf(RowFunction):
    """The box of rows."""

    def __call__(self, rows, first):
        return Box(row_range(rows))


@dataclass(frozen=True)
class CountOf(RowFunction):
    """How many rows there are."""

    def __call__(self, rows, first):
        return rows.shape[0]


@dataclass(frozen=True)
class PickOf(RowFunction):
    """Rows of given numbers; the parts add up as tuples of what was found where."""

    index: np.ndarray

    def __call__(self, rows, first):
        local = self.index - first
        places = np.flatnonzero((local >= 0) & (local < rows.shape[0]))
        return ((places, rows[local[places]]),) if places.size else ()
