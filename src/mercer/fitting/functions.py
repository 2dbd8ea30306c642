"""Row functions: called on blocks of rows where the rows are; their results add with ``+``.

Samples are uniform, and the same however the rows are cut into blocks, chunks or batches. `pack`
and `unpack` make plain numbers and arrays of a sum and back, for a pass that was killed.
"""

from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any

import numpy as np

from ..bases import FourierBasis, TrigonometricMoments
from ..bases.fourier import row_range
from ..compute import is_sparse, on_device_of, stack_rows, to_numpy
from ..compute.arrays import csr_from_parts
from ..exceptions import CheckpointError
from ..kernels.base import wide_row_squares
from .moments import Moments, RowFunction, WeightedFunction

# Numbers that are looked at together.
BLOCK = 2**15


@dataclass(frozen=True)
class TrigonometricOf(WeightedFunction):
    """Trigonometric moments of rows for a Fourier grid."""

    basis: FourierBasis

    def __call__(self, rows, first):
        return self.basis.moments(rows, self.weights_of(rows, first))


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
        parts = []
        for function in self.functions:  # without a frame more on the stack
            parts.append(function(rows, first))
        return Sums(tuple(parts))

    weights = property(lambda self: self.functions[0].weights)

    def moved(self, engine):
        return Together(tuple(function.moved(engine) for function in self.functions))

    def weighing(self, weights, start=0):
        return Together(tuple(function.weighing(weights, start) for function in self.functions))

    def with_columns(self, columns, start):
        return Together(tuple(function.with_columns(columns, start) for function in self.functions))


@dataclass(frozen=True)
class RowSample:
    """The rows with the smallest keys; a row's key follows from its number.

    With u uniform in (0, 1) a row of weight w gets the key ``-log(u) / w`` (Efraimidis and
    Spirakis 2006), here its logarithm: weights that grow as ``forgetting^-t`` only add
    ``t log(forgetting)``. Without forgetting the sample is uniform, else it follows the memory.

    Attributes
    ----------
    size : int
        Most rows to keep.
    seed : int
    rows : array or sparse matrix of shape (at most size, d), or None
        In the order they came.
    keys : array
    weights : array or None
        How often each of the rows counts, where some count more than others: they are drawn alike.
    numbers : array of int or None
        Those of the rows, which they are then in the order of, however samples are added up.
    """

    size: Annotated[int, "[1, inf)"]
    seed: Annotated[int, "[0, inf)"]
    rows: Annotated[Any, "n d sparse or None"] = None
    keys: Annotated[np.ndarray, "k"] = field(default_factory=lambda: np.zeros(0))
    weights: Annotated[np.ndarray | None, "k or None"] = None
    numbers: Annotated[np.ndarray | None, "k int or None"] = None

    def add(self, X, first: int, forgetting: float = 1.0, weights: Any = None) -> "RowSample":
        """The sample with the chance given to rows number first, first + 1, ..."""
        number = np.arange(first, first + X.shape[0])
        keys = np.log(-np.log(uniforms(number, self.seed))) + number * np.log(forgetting)
        if len(self.keys) == self.size:
            hopeful = keys < self.keys.max()
            number, keys = number[hopeful], keys[hopeful]
        weights = None if weights is None else np.asarray(weights, dtype=float)[number - first]
        rows = X if len(number) == X.shape[0] else X[number - first]
        return self._smallest(rows, keys, weights, number)

    def __add__(self, other: "RowSample") -> "RowSample":
        """A sample of both sets of rows, those of `other` after these; the smaller of two sizes."""
        if other.rows is None:
            return self
        both = replace(self, size=min(self.size, other.size))
        return both._smallest(other.rows, other.keys, other.weights, other.numbers)

    def leading(self, size: int) -> "RowSample":
        """The sample of fewer rows: it lies within this one."""
        index = smallest(self.keys, size)
        parts = {name: vars(self)[name] for name in ("rows", "keys", "weights", "numbers")}
        parts = {name: None if part is None else part[index] for name, part in parts.items()}
        return replace(self, size=size, **parts)

    def _smallest(self, X, keys, weights, numbers) -> "RowSample":
        w = None
        if weights is not None or self.weights is not None:
            sides = (self.weights, len(self.keys)), (weights, len(keys))
            w = np.concatenate([np.ones(n) if side is None else side for side, n in sides])
        keys = np.concatenate([self.keys, keys])
        index = smallest(keys, self.size)
        if self.numbers is None:
            numbers = None
        else:
            numbers = np.concatenate([self.numbers, numbers])
            index = index[np.argsort(numbers[index], kind="stable")]
            numbers = numbers[index]
        rows = X if self.rows is None else stack_rows([self.rows, on_device_of(X, self.rows)])
        w = w if w is None else w[index]
        return replace(self, rows=rows[index], keys=keys[index], weights=w, numbers=numbers)


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
    """Counts rows and gives each its chance in a sample.

    `weights`, a `ExtraColumn`, are kept with the rows and do not change their chance.
    """

    size: int
    seed: int
    weights: Any = None

    def weighing(self, weights, start=0):
        return self if self.weights is None else replace(self, weights=weights)

    def __call__(self, rows, first):
        empty = RowSample(self.size, self.seed, numbers=np.arange(0))
        sample = empty.add(rows, first, weights=self.weights)
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


def sampled_numbers(n: int, size: int, seed: int) -> np.ndarray:
    """The numbers of the rows that a `RowSample` of n rows keeps, in order."""
    number = np.arange(0)
    for start in range(0, n, BLOCK):
        number = np.append(number, np.arange(start, min(start + BLOCK, n)))
        number = number[smallest(-uniforms(number, seed), size)]
    return number


def smallest(keys, size: int) -> np.ndarray:
    """Places of the `size` smallest keys, in order."""
    if len(keys) <= size:
        return np.arange(len(keys))
    return np.sort(np.argpartition(keys, size)[:size])


def uniforms(number, seed: int) -> np.ndarray:
    """A fixed random number in (0, 1) for every whole number."""
    # The seed is mixed first: else seeds that follow each other would only shift the numbers.
    start = mixed(np.array([seed], dtype=np.uint64))
    z = mixed(number.astype(np.uint64) + start)
    # 52 bits and a half: neither 0 nor, by rounding, 1.
    return ((z >> np.uint64(12)).astype(float) + 0.5) * 2.0**-52


def mixed(z) -> np.ndarray:
    """64 bits that depend on all of those given (splitmix64)."""
    with np.errstate(over="ignore"):
        z = z * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


# All that sums are made of, relatives add theirs: names are looked up here, never imported.
SUMS: dict[str, type] = {
    kind.__name__: kind for kind in (Moments, TrigonometricMoments, Survey, RowSample, Box, Sums)
}


def pack(value: Any, arrays: list) -> Any:
    """The value as JSON; its arrays are appended to `arrays`."""
    if value is None or isinstance(value, int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple | list):
        return [pack(item, arrays) for item in value]
    if isinstance(value, frozenset):
        return {"@": "set", "items": list(value)}
    if is_sparse(value):
        parts = [pack(part, arrays) for part in (value.data, value.indices, value.indptr)]
        return {"@": "csr", "parts": parts, "columns": value.shape[1]}
    if isinstance(value, np.ndarray):
        is_complex = value.dtype.kind == "c"
        arrays.append(np.ascontiguousarray(value).view(float) if is_complex else value)
        return {"@": "complex" if is_complex else "array", "place": len(arrays) - 1}
    named = {field.name: pack(vars(value)[field.name], arrays) for field in fields(value)}
    return {"@": type(value).__name__, "fields": named}


def unpack(item: Any, arrays: list) -> Any:
    """The value that `pack` made JSON of."""
    if isinstance(item, list):
        return tuple(unpack(one, arrays) for one in item)
    if not isinstance(item, dict):
        return item
    kind = item["@"]
    if kind == "array":
        return arrays[item["place"]]
    if kind == "complex":
        return arrays[item["place"]].view(complex)
    if kind == "csr":
        data, indices, indptr = unpack(item["parts"], arrays)
        return csr_from_parts(data, indices, indptr, item["columns"])
    if kind == "set":
        return frozenset(item["items"])
    if kind not in SUMS:
        raise CheckpointError(
            f"A checkpoint names {kind!r:.60}, which mercer does not know. Delete it to start anew."
        )
    return SUMS[kind](**{name: unpack(part, arrays) for name, part in item["fields"].items()})
