"""Rows of a table on a cluster whose rows have no order, such as a Spark frame or a Ray dataset.

The table is a plan that is run anew for every pass. So its rows have no numbers that last: within a
pass a row is known by its partition and its place there, which is what samples are drawn by;
weights and targets are columns beside the rows; and scores come back as columns beside all others.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from math import prod
from operator import add
from typing import Any

import numpy as np

from .._packages import needed
from ..compute import TiledEngine, make_engine, match_sparsity, parse_bytes, to_numpy
from ..compute.arrays import Array
from ..compute.engine import count_threads, usable_cores
from ..exceptions import InvalidRowsError, TableWarning, tell
from ..files import ChosenColumns
from ..files.arrow import stacked, why_no_number
from ..files.base import check_finite, chosen_columns, listed
from ..fitting.moments import ExtraColumn, RowFunction
from ..kernels import Kernel
from .base import Opening, Rows
from .blocks import BLOCK_ROWS, BLOCK_SHARE

# Names of whole numbers that are keys, and rows that are looked at to tell keys by their values.
KEY_NAME = re.compile(r"(^|_)(id|key|uid|index|row_?num(ber)?)$|Id$|ID$|Key$")
KEY_ROWS = 100
ADVICE = "Fill or leave out such rows first."


@dataclass(frozen=True)
class Part:
    """The sums of a pass over some partitions.

    Attributes
    ----------
    rows : int
    value : object
        None where there were no rows.
    counting : int
        Rows whose weight is not zero.
    error : Exception or None
        What was wrong with a row: the pass ends with it in the program that called.
    keys : set of str or None
        Columns of whole numbers without a value twice; None where too few rows were seen.
    """

    rows: int
    value: Any
    counting: int = 0
    error: Exception | None = None
    keys: frozenset | None = None

    def __add__(self, other: "Part") -> "Part":
        if self.error is not None or other.error is not None:
            return other if self.error is None else self
        values = [part.value for part in (self, other) if part.value is not None]
        keys = [part.keys for part in (self, other) if part.keys is not None]
        return Part(
            self.rows + other.rows,
            reduce(add, values) if values else None,
            self.counting + other.counting,
            keys=frozenset.intersection(*keys) if keys else None,
        )


@dataclass(frozen=True)
class Reader:
    """Checked blocks of rows from the Arrow batches of a partition, within the budget of a task.

    Attributes
    ----------
    columns : list of str
        Columns of numbers, or the one whose entries are whole rows.
    width : int
        Numbers of a row.
    nested : bool
        Whether there is one column of whole rows.
    extras : tuple of ExtraColumn
    whole_numbers : list of str
        Columns that may be keys.
    """

    columns: list[str]
    width: int
    dtype: np.dtype
    nested: bool = False
    extras: tuple[ExtraColumn, ...] = ()
    whole_numbers: tuple[str, ...] = ()
    memory: Any = None
    threads: int = 1

    @property
    def names(self) -> list[str]:
        """All columns that are read, each once."""
        return list(dict.fromkeys([*self.columns, *(column.name for column in self.extras)]))

    @property
    def budget(self) -> int:
        """Bytes for the task that asks; where none were given, its share of a machine."""
        return parse_bytes(self.memory) // (usable_cores() if self.memory is None else 1)

    def engine(self) -> TiledEngine:
        """The engine of the task that calls this."""
        return make_engine(memory=self.budget, threads=self.threads)

    def blocks(self, batches: Iterable, place: str, first: int) -> Iterator[tuple]:
        """Record batches, their rows, the columns beside these by name, the number of the first."""
        room = self.budget // (BLOCK_SHARE * 8 * self.width)
        size, count = min(BLOCK_ROWS, max(1, room)), 0
        for whole in batches:
            for start in range(0, whole.num_rows, size):
                batch = whole.slice(start, size)
                rows = self.rows_of(batch, place, count)
                columns = {
                    c.name: c.values(batch.column(c.name), place, count) for c in self.extras
                }
                yield batch, rows, columns, first + count
                count += batch.num_rows

    def rows_of(self, batch, place: str, start: int) -> np.ndarray:
        """The rows of a batch in floating point; InvalidRowsError names one that has no number."""
        if self.nested:
            rows = self._unnested(batch.column(self.columns[0]), place, start)
        else:
            rows = stacked(batch, self.columns, self.dtype)

        def label_of(column):
            return f"entry {column} of {self.columns[0]!r}" if self.nested else self.columns[column]

        check_finite(rows, f"{place} of X", label_of, start)
        return rows

    def _unnested(self, column, place: str, start: int) -> np.ndarray:
        compute = needed("pyarrow.compute", "files")
        column = getattr(column, "storage", column)
        lengths = compute.fill_null(compute.list_value_length(column), -1).to_numpy()
        bad = np.flatnonzero(lengths != self.width)
        if bad.size:
            size = "null" if lengths[bad[0]] < 0 else f"{lengths[bad[0]]} numbers"
            raise InvalidRowsError(
                f"{place} of X holds {size} in column {self.columns[0]!r}, first in its row "
                f"{start + bad[0]:,} (counted from 0), and {self.width} are needed. {ADVICE}"
            )
        numbers = column.flatten().to_numpy(zero_copy_only=False)
        return numbers.astype(self.dtype, copy=False).reshape(-1, self.width)

    def keys_among(self, rows: np.ndarray) -> frozenset | None:
        """Columns of whole numbers in which no value is there twice."""
        if len(rows) < KEY_ROWS:
            return None
        columns = ((name, rows[:, self.columns.index(name)]) for name in self.whole_numbers)
        return frozenset(name for name, column in columns if len(np.unique(column)) == len(rows))


@dataclass(frozen=True)
class SumOf:
    """The sum of a row function over a partition, as one `Part`."""

    reader: Reader
    function: RowFunction

    def __call__(self, batches: Iterable, place: str, first: int) -> Iterator[Part]:
        function, total = self.function.moved(self.reader.engine()), Part(0, None)
        try:
            for _, rows, columns, number in self.reader.blocks(batches, place, first):
                value = function.with_columns(columns, number)(rows, number)
                keys = self.reader.keys_among(rows) if total.keys is None else None
                weights = (columns[c.name] for c in self.reader.extras if c.is_weight)
                counting = int(np.count_nonzero(next(weights, np.ones(len(rows)))))
                total = total + Part(len(rows), value, counting, None, keys)
        except (ValueError, TypeError, ArithmeticError) as error:
            total = Part(0, None, error=error)
        yield total


@dataclass(frozen=True)
class BlocksOf:
    """The blocks of a partition and the columns beside each, as a `Part`."""

    reader: Reader

    def __call__(self, batches: Iterable, place: str, first: int) -> Iterator[Part]:
        try:
            for _, rows, columns, _ in self.reader.blocks(batches, place, first):
                yield Part(len(rows), (rows, columns))
        except ValueError as error:
            yield Part(0, None, error=error)


@dataclass(frozen=True)
class ColumnsOf:
    """A function of rows as columns behind those of the table, for every block of a partition."""

    reader: Reader
    function: Any
    names: tuple[str, ...]

    def __call__(self, batches: Iterable, place: str, first: int) -> Iterator:
        pa = needed("pyarrow", "files")
        function = self.function.moved(self.reader.engine())
        points = function.expansion.basis.points  # may be sparse where rows are dense
        for batch, rows, _, number in self.reader.blocks(batches, place, first):
            values = to_numpy(function(match_sparsity(rows, points), number))
            values = values.reshape(len(rows), -1).astype(self.dtype, copy=False)
            columns = [pa.array(np.ascontiguousarray(column)) for column in values.T]
            names = [*batch.schema.names, *self.names]
            yield pa.RecordBatch.from_arrays([*batch.columns, *columns], names=names)

    @property
    def dtype(self) -> np.dtype:
        """The type of the columns."""
        return np.dtype(self.function.dtype or self.reader.dtype)


class FrameRows(Rows):
    """The rows of a table on a cluster.

    A kind of table says how work is done on its partitions: `_total` adds up the parts of all of
    them, in a tree, `_parts` brings one after the other, and `_with_columns` adds columns lazily.

    Parameters
    ----------
    X : table or ChosenColumns
    how : Opening
    types : dict of str to object
        The Arrow type of every column.
    """

    _elsewhere = True
    dtype: Any = None
    _title: str

    def __init__(self, X: Any, how: Opening, types: dict[str, Any]):
        chosen = X if isinstance(X, ChosenColumns) else ChosenColumns(X)
        self.frame, self.types = chosen.table, types
        if how.device not in (None, "cpu"):
            raise ValueError(
                f"device={how.device!r} is for arrays and Dask, and {self._title} is read by the "
                "cores of its workers. Leave device out."
            )
        extras = chosen.extras
        kinds = {name: why_no_number(kind) for name, kind in types.items()}
        rest = [name for name in types if name not in {column.name for column in extras}]
        wanted = how.names or chosen.columns
        # The column whose entries are rows: the one asked for, or the only one of its kind.
        asked = rest if wanted is None else wanted
        columns = [name for name in asked if is_nested(types.get(name))]
        numbers = any(kinds.get(name, "") is None for name in asked)
        nested = len(columns) == 1 and not numbers
        if nested:
            width, element = self._shape_of(columns[0])
            elements, self.reasons = {str(element)}, dict[str, str]()
        else:
            kinds = {name: kinds[name] for name in rest}
            columns, self.reasons = chosen_columns(self._title, kinds, wanted)
            self.names, width = columns, len(columns)
            elements = {str(types[name]) for name in columns}
        if how.names is None:
            how.check_all_read(
                [f"{name} ({why})" for name, why in self.reasons.items()],
                f"{self._title} would be read without",
                f"{self._collected} if it fits into memory, or its columns of numbers",
            )
        self.dtype = np.dtype(np.float32 if elements == {"float"} else np.float64)
        guessed = wanted is None and not nested
        whole = [c for c in columns if guessed and "int" in str(types[c])]
        named = [c for c in whole if KEY_NAME.search(c)]
        self._warn_of_keys(named, "by their names")
        self._reader = Reader(
            columns,
            width,
            self.dtype,
            nested,
            extras,
            tuple(name for name in whole if name not in named),
            how.memory,
            count_threads(how.n_jobs or 1),
        )
        self._count: int | None = None
        self._least_rows = 2 if how.names is None else 1

    def _shape_of(self, name: str) -> tuple[int, Any]:
        """Numbers and type of the entries of a column of whole rows."""
        kind = self.types[name]
        element = getattr(kind, "storage_type", kind).value_type
        if hasattr(kind, "shape"):
            return prod(kind.shape), element
        first = self._first(name)
        if first is None:
            raise ValueError(
                f"{self._title} has no value in column {name!r}, and at least one is needed."
            )
        return len(first), element

    def _first(self, name: str) -> Any:
        """The first entry of a column, None if there is none."""
        raise NotImplementedError

    def _total(self, work: SumOf) -> Part:
        """The sum of the parts of all partitions."""
        raise NotImplementedError

    def _parts(self, work: BlocksOf) -> Iterator[Part]:
        """The parts of all partitions, one after the other."""
        raise NotImplementedError

    def _with_columns(self, work: ColumnsOf) -> Any:
        """The table with further columns, lazily."""
        raise NotImplementedError

    @property
    def shape(self) -> Any:
        """Rows, None before a pass has counted them, and columns."""
        return self._count, self._reader.width

    def _partial_sums(self, function, title, again, done, checkpoint):
        """The sum over all partitions, with the number of rows checked against the last pass."""
        total = self._total(SumOf(self._reader, function))
        if total.error is not None:
            raise total.error
        if self._count not in (None, total.rows):
            raise ValueError(
                f"{self._title} gave {self._count:,} rows at first and {total.rows:,} when it was "
                "run again. Its plan must give the same rows each time: write it to files first, "
                "or give random parts of it a seed."
            )
        if total.counting < self._least_rows:
            that_count = f", and {total.counting} with a weight above 0" if total.rows > 1 else ""
            raise ValueError(
                f"{self._title} has {total.rows:,} rows{that_count}, while a minimum of "
                f"{self._least_rows} is required."
            )
        self._warn_of_keys(sorted(total.keys or ()), "no value is there twice")
        self._count = total.rows
        self._reader = replace(self._reader, whole_numbers=())
        yield total.value, {}

    def map(self, function: Any, out: Any = None, names: Any = None) -> Any:
        """The table with the results in columns behind its own, lazily: rows have no order."""
        self._check_stays(out)
        if names is None:
            numbers = range(prod(function.tail)) if function.tail else [""]
            names = [f"{function.title}{i}" for i in numbers]
        twice = [name for name in names if name in self.types]
        if twice:
            raise ValueError(
                f"{self._title} has columns {listed(map(repr, twice))} already, and results are "
                "written beside its columns under these names. Rename or drop them."
            )
        reader = replace(self._reader, extras=())
        return self._with_columns(ColumnsOf(reader, function, tuple(map(str, names))))

    def as_basis(self, kernel: Kernel, engine: TiledEngine, n_components: int | None) -> str:
        """The reason why not: a Gram matrix needs numbers of rows that last."""
        return f"the rows of {self._title} have no order that lasts from pass to pass"

    def take(self, index: Array) -> Array:
        """Raise ValueError: rows have no numbers."""
        raise ValueError(
            f"Rows of {self._title} have no row numbers, because it is run anew for every pass. "
            "Give the rows themselves, such as Landmarks(points=Z)."
        )

    def blocks(self) -> Iterator:
        """Blocks of one partition after the other, brought here; the order is that of this run."""
        return (rows for rows, _ in self.blocks_with_extras())

    def blocks_with_extras(self) -> Iterator[tuple[np.ndarray, dict[str, np.ndarray]]]:
        """The same, each with the columns beside its rows."""
        for part in self._parts(BlocksOf(self._reader)):
            if part.error is not None:
                raise part.error
            yield part.value

    def identity(self) -> list:
        """Raise ValueError: a resumed pass could not tell which rows it has."""
        raise ValueError(
            f"checkpoint= resumes after a row number, and rows of {self._title} have none. Leave "
            "it out (the cluster repeats the partitions of a worker that dies), or write the rows "
            "to Parquet."
        )

    def _warn_of_keys(self, names: list[str], why: str) -> None:
        if names:
            tell(
                f"Whole numbers in {listed(map(repr, names))} of {self._title} look like keys "
                f"({why}), and are used as numbers. Choose columns: mercer.files.open_source("
                "table, columns=[...]); the others come back beside the scores all the same.",
                TableWarning,
            )


def is_nested(kind: Any) -> bool:
    """Whether entries of an Arrow type are lists of numbers."""
    element = getattr(getattr(kind, "storage_type", kind), "value_type", None)
    is_list = element is not None and "list" in str(getattr(kind, "storage_type", kind))
    return is_list and why_no_number(element) is None


def extra_columns(X: Any, given: dict[str, Any]) -> tuple[Any, ...]:
    """A table without the columns that are named, and what was given as such columns."""
    chosen = X if isinstance(X, ChosenColumns) else ChosenColumns(X)
    # What has no columns is refused when it is opened.
    names = chosen.table.columns if "columns" in dir(chosen.table) else ()
    names = list(names() if callable(names) else names)
    picked: dict[str, Any] = {}
    for title, value in given.items():
        if isinstance(value, str) and value in names:
            value = ExtraColumn(value, is_weight=title == "sample_weight")
        elif value is not None and not isinstance(value, ExtraColumn):
            said = repr(value) if isinstance(value, str) else f"a {type(value).__name__}"
            raise ValueError(
                f"Rows on a cluster have no order: {title} must be the name of a column of X, "
                f"and got {said}. The columns are {listed(map(repr, names))}."
            )
        picked[title] = value
    extras = [column for column in picked.values() if column is not None]
    taken = {column.name for column in extras}
    columns = chosen.columns
    if columns is not None:
        columns = [name for name in columns if name not in taken]
    return replace(chosen, columns=columns, extras=tuple(extras)), *picked.values()
