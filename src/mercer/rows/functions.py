"""Functions of blocks of rows, called where the rows are; what they return adds up."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..bases import FourierBasis, Whitening
from ..bases.fourier import row_range
from ..compute import TiledEngine, stack_rows, to_numpy
from ..fitting.expansion import KernelExpansion
from ..fitting.moments import Moments, row_moments, whitened
from ..fitting.sampling import RowSample
from ..kernels.base import wide_row_squares


class RowFunction(ABC):
    """A function of a block of rows, which may be called where the rows are."""

    @abstractmethod
    def __call__(self, rows, first: int) -> Any:
        """Its value for the rows number first, first + 1, ..."""

    def moved(self, engine: TiledEngine) -> "RowFunction":
        """The same function where another engine works."""
        return self

    def weighing(self, weights: np.ndarray | None, start: int = 0) -> "RowFunction":
        """The same with the weights of rows number start, start + 1, ..., where it has any."""
        return self


@dataclass(frozen=True)
class WeightedFunction(RowFunction):
    """A function of weighted rows.

    Attributes
    ----------
    basis : Basis
    weights : array or None
        Of rows number start, start + 1, ...
    start : int
    """

    basis: Any
    weights: np.ndarray | None = field(default=None, kw_only=True)
    start: int = field(default=0, kw_only=True)

    def moved(self, engine):
        """Against the same basis elsewhere."""
        return replace(self, basis=self.basis.moved(engine))

    def weighing(self, weights, start=0):
        """With other weights."""
        return replace(self, weights=weights, start=start)

    def weights_of(self, rows, first: int):
        """The weights of the rows number first, first + 1, ...; None where there are none."""
        if self.weights is None:
            return None
        return self.weights[first - self.start : first - self.start + rows.shape[0]]


@dataclass(frozen=True)
class MomentsOf(WeightedFunction):
    """Moments of rows against a basis, which add up; `finished` completes their sum."""

    whitening: Whitening

    def __call__(self, rows, first):
        """Moments of a block."""
        self.basis.kernel.check(rows)
        return row_moments(self.basis, self.whitening, rows, self.weights_of(rows, first))

    def over(self, rows) -> Moments:
        """The moments of the coordinates of all rows, in one pass."""
        return self.finished(rows.sum(self, "summing moments"))

    def finished(self, found: Moments) -> Moments:
        """The moments of coordinates from the sum over all blocks."""
        return whitened(self.basis, self.whitening, found)


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
    """Several functions in one pass."""

    functions: tuple[RowFunction, ...]

    def __call__(self, rows, first):
        """All of them for a block."""
        return Sums(tuple(function(rows, first) for function in self.functions))

    def moved(self, engine):
        """All of them elsewhere."""
        return Together(tuple(function.moved(engine) for function in self.functions))

    def weighing(self, weights, start=0):
        """All of them."""
        return Together(tuple(function.weighing(weights, start) for function in self.functions))


@dataclass(frozen=True)
class TrigonometricOf(WeightedFunction):
    """Trigonometric moments of rows for a Fourier grid."""

    basis: FourierBasis

    def __call__(self, rows, first):
        """Those of a block."""
        return self.basis.moments(rows, self.weights_of(rows, first))


@dataclass(frozen=True)
class OfExpansion(RowFunction):
    """A verb of an expansion, as a function of blocks of rows.

    Attributes
    ----------
    expansion : KernelExpansion
    verb : callable
        ``verb(expansion, rows)``.
    tail : tuple of int
        The shape of one row's result.
    title : str
        What progress says is being made.
    """

    expansion: KernelExpansion
    verb: Callable
    tail: tuple[int, ...]
    title: str

    def __call__(self, rows, first):
        """The verb for a block."""
        self.expansion.basis.kernel.check(rows)
        return self.verb(self.expansion, rows)

    def moved(self, engine: TiledEngine) -> Any:
        """With the basis elsewhere."""
        basis = self.expansion.basis.moved(engine)
        return replace(self, expansion=replace(self.expansion, basis=basis))


def scores_of(expansion: KernelExpansion) -> OfExpansion:
    """Coordinates of rows along the directions."""
    return OfExpansion(expansion, KernelExpansion.scores, (expansion.n_components,), "scores")


def errors_of(expansion: KernelExpansion) -> OfExpansion:
    """Squared distances of rows to their reconstructions."""
    return OfExpansion(expansion, KernelExpansion.squared_errors, (), "errors")


@dataclass(frozen=True)
class Survey:
    """Rows counted and sampled in one pass; two of them add up to one.

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


@dataclass(frozen=True)
class SurveyOf(RowFunction):
    """Counts rows and gives each its chance in a sample."""

    size: int
    seed: int

    def __call__(self, rows, first):
        """The survey of a block."""
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
        """Of a block."""
        return Box(row_range(rows))


@dataclass(frozen=True)
class CountOf(RowFunction):
    """How many rows there are."""

    def __call__(self, rows, first):
        """Of a block."""
        return rows.shape[0]


@dataclass(frozen=True)
class PickOf(RowFunction):
    """Rows of given numbers; the parts add up as tuples of what was found where."""

    index: np.ndarray

    def __call__(self, rows, first):
        """The rows of a block that are wanted, with their places in the order asked for."""
        local = self.index - first
        places = np.flatnonzero((local >= 0) & (local < rows.shape[0]))
        return ((places, rows[local[places]]),) if places.size else ()


def in_order(found: tuple) -> Any:
    """The rows of `PickOf` in the order asked for."""
    places = np.concatenate([places for places, _ in found])
    return stack_rows([rows for _, rows in found])[np.argsort(places, kind="stable")]
