"""The contract of a row source, and what all share: even blocks of checked rows.

Missing values are an error; `DropMissing` leaves out their rows, `FillMissing` fills them in.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy import sparse

from ..compute import format_bytes, is_sparse, parse_bytes, stack_rows, to_numpy
from ..compute.numbers import check_meaning, reason, sound_sparse
from ..exceptions import InvalidRowsError

# Rows of a block when all are read.
READ_ROWS = 65536
# No columns of numbers, for those who read all as what they are, by `RowSource.others`.
NO_COLUMNS: list[str] = []
# Columns that a message lists.
LISTED = 30
# Why the index of a data frame is left out where nobody asks for it.
COUNTER = "row numbers without a name"


@contextmanager
def readable(name: str, kind: str | None = None) -> Iterator[None]:
    """Errors of a library as one that names what was read; `kind` is that of a file.

    What damaged bytes raise is not documented, so that anything counts as damage but sentences of
    ours, which have the name already, and what another machine or installation would not raise.
    """
    try:
        yield
    except Exception as error:
        # Arrow has a type of its own for memory, which damaged files claim without end.
        if isinstance(error, ImportError) or type(error) is MemoryError:
            raise
        if type(error) in (ValueError, TypeError) and name in str(error):
            raise
        said = f": {error}"
        if kind is not None:
            said = f" as {kind}: it is cut short, damaged or another kind of file. ({error})"
        raise ValueError(f"{name} cannot be read{said}") from error


class RowSource(ABC):
    """Rows of numbers that are read in blocks, and never all at once.

    Attributes
    ----------
    name : str
        What messages call it: a file name, or what was passed.
    n_columns : int
    n_rows : int or None
        None if only reading to the end would tell.
    likely_rows : int or None
        An estimate for progress bars where `n_rows` is None.
    dtype : dtype
        float32 if all numbers are, else float64.
    columns : list of str or None
        Names of the columns, if they have any.
    reasons : dict of str to str
        The other columns of a table, and why each of them is left out.
    notes : tuple of str
        Warnings about how the rows were read.
    sparse : bool
        Whether blocks are CSR matrices.
    repeatable : bool
        Whether the rows can be read again.
    threaded : bool
        Whether another thread than the one that opened it may read.
    array : array or None
        The rows as one array or memmap, if they are one on disk or in memory.
    again : str
        Advice for rows that can be read only once.
    """

    name: str
    n_columns: int
    n_rows: int | None = None
    likely_rows: int | None = None
    dtype: np.dtype = np.dtype(np.float64)
    columns: list[str] | None = None
    reasons: Mapping[str, str] = MappingProxyType({})
    notes: tuple[str, ...] = ()
    sparse: bool = False
    repeatable: bool = True
    threaded: bool = True
    array: np.ndarray | None = None
    again: str = ""
    _was_read = False

    @property
    def left_out(self) -> tuple[str, ...]:
        """The columns of a table that are no numbers, or were not asked for."""
        return tuple(self.reasons)

    @abstractmethod
    def chunks(self, rows: int) -> Iterator:
        """The rows as the source has them, about `rows` at a time, in pieces of any length."""

    def chunks_from(self, start: int, rows: int) -> Iterator:
        """The same behind the first rows, which are read as well where a source cannot seek."""
        for chunk in self.chunks(rows):
            skipped, start = min(start, chunk.shape[0]), max(start - chunk.shape[0], 0)
            yield chunk[skipped:] if skipped else chunk

    def others(self, names: Sequence[str] | None = None) -> dict[str, np.ndarray]:
        """Columns of any kind by name, each of length n_rows.

        Parameters
        ----------
        names : sequence of str or None
            None for all that are left out.
        """
        return {}

    def place_of(self, row: int) -> str:
        """Where a row stands in its file, for messages, such as "line 7"; empty if unknown."""
        return ""

    def check_repeatable(self, why: str) -> None:
        """Raise ValueError where the rows can be read only once, and say why that is not enough."""
        if not self.repeatable:
            raise ValueError(f"{self.name} can be read only once, and {why}. {self.again}")

    def pieces(self, rows: int, start: int = 0) -> Iterator:
        """The rows from `start` on as floats in pieces of any length, with NaN where missing."""
        if self._was_read:
            self.check_repeatable("it was read already")
        self._was_read = True
        for chunk in self.chunks_from(start, rows) if start else self.chunks(rows):
            chunk = as_rows(chunk, f"{self.name}: the block at row {start:,}")
            if chunk.shape[1] != self.n_columns:
                raise ValueError(
                    f"{self.name}: the rows from {start:,} have {chunk.shape[1]} columns, and "
                    f"those before had {self.n_columns}. All rows need the same columns."
                )
            start += chunk.shape[0]
            if is_sparse(chunk) != self.sparse:
                chunk = sparse.csr_matrix(chunk) if self.sparse else chunk.toarray()
            yield chunk.astype(self.dtype, copy=False)
        if self.n_rows not in (None, start):
            raise ValueError(
                f"{self.name} claims {self.n_rows:,} rows, and {start:,} were read: it is damaged, "
                "or was changed meanwhile. Write it again."
            )

    def blocks(self, rows: int, start: int = 0) -> Generator:
        """The rows from `start` on in blocks of exactly `rows`, the last one shorter, checked.

        What comes out does not depend on how the source was cut: pieces are joined and split,
        and empty ones are passed over.

        Returns
        -------
        iterator of arrays or CSR matrices of shape (rows, n_columns), in `dtype`

        Raises
        ------
        ValueError
            Where a piece has another width, is not made of numbers, or holds NaN or infinity;
            the message names the source and the rows.
        """
        held: list = []
        count, seen = 0, start
        for piece in self.pieces(rows, start):
            self._check_finite(piece, seen)
            seen += piece.shape[0]
            first = 0
            while first < piece.shape[0]:
                held.append(piece[first : first + rows - count])
                first += held[-1].shape[0]
                count += held[-1].shape[0]
                if count == rows:
                    yield stack_rows(held)
                    held, count = [], 0
        if held:
            yield stack_rows(held)

    def read(self, room: float = np.inf) -> Any:
        """All rows at once, (n_rows, n_columns); None where they take more bytes than that."""
        width, held, size = self.n_columns * self.dtype.itemsize, [], 0
        if not self.sparse and (self.n_rows or 0) * width > room:
            return None
        with closing(self.blocks(int(max(1, min(READ_ROWS, room / width))))) as blocks:
            for block in blocks:
                held.append(block)
                parts = (block.data, block.indices, block.indptr) if self.sparse else (block,)
                size += sum(part.nbytes for part in parts)
                if size > room:
                    return None
        return stack_rows(held) if held else np.empty((0, self.n_columns), self.dtype)

    def _check_finite(self, rows, start: int) -> None:
        """Raise ValueError that names the first row that holds NaN or infinity, and its place."""
        check_finite(rows, self.name, self.label_of, start, self.place_of)

    def label_of(self, column: int) -> str:
        """The name of a column for messages, or its number."""
        return repr(self.columns[column]) if self.columns else str(column)


def chosen_columns(
    name: str, kinds: dict[str, str | None], wanted: Any
) -> tuple[list[str], dict[str, str]]:
    """The columns of a table that are read as numbers, and why each of the others is left out.

    Parameters
    ----------
    name : str
        What messages call the table.
    kinds : dict of str to (str or None)
        Every column, and why it is not read as numbers; None for columns of numbers.
    wanted : list of str or None
        None for all columns of numbers.
    """
    if wanted is None:
        columns = [column for column, why in kinds.items() if why is None]
        if not columns:
            reasons = listed(f"{column} ({why})" for column, why in kinds.items())
            raise ValueError(
                f"{name} has no column of numbers; its columns are {reasons}. Convert those that "
                "are meant as numbers."
            )
    else:
        columns = [wanted] if isinstance(wanted, str) else [str(column) for column in wanted]
        if not columns and wanted is not NO_COLUMNS:
            raise ValueError("columns is empty. Name at least one, or leave it out for all.")
        for column in columns:
            if column not in kinds:
                raise ValueError(
                    f"{name} has no column {column!r}; its columns are "
                    f"{listed(map(repr, kinds))}. Name some of these."
                )
            if kinds[column] not in (None, COUNTER):
                raise ValueError(
                    f"{name}: column {column!r} is not made of numbers ({kinds[column]}). Leave it "
                    "out."
                )
        if len(set(columns)) < len(columns):
            raise ValueError(f"columns={columns} names a column twice. Name each once.")
    taken = set(columns)
    return columns, {c: why or "not asked for" for c, why in kinds.items() if c not in taken}


def check_unique(names: Iterable[str], where: str) -> None:
    """Raise ValueError where two columns of a table have the same name."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(
            f"{where}: two columns have the same name, {twice[0]!r:.60}. Rename one of them."
        )


def check_finite(
    rows: Any,
    name: str,
    label_of: Callable[[int], str] = str,
    start: int = 0,
    place_of: Callable[[int], str] | None = None,
) -> None:
    """Raise InvalidRowsError that names the first of the rows from `start` on with a bad number."""
    if np.isfinite(rows.data if is_sparse(rows) else rows).all():
        return
    cells = sparse.coo_array(rows)
    bad = ~np.isfinite(cells.data)
    row, column = start + int(cells.row[bad][0]), label_of(int(cells.col[bad][0]))
    count = f"{np.unique(cells.row[bad]).size:,} of {rows.shape[0]:,} rows"
    since = f" from row {start:,} on" if start else ""
    line = place_of(row) if place_of is not None else ""
    place = f", {line}" if line else ""
    raise InvalidRowsError(
        f"{name}: row {row:,} (counted from 0) holds NaN or infinity in column {column}{place}; "
        f"{count}{since} have missing values. Fill or leave out those rows first.",
        parameter="missing",
    )


def check_room(what: str, size: int, memory: Any, instead: str) -> None:
    """Raise ValueError for what takes more than the budget, or half of what is free."""
    room = parse_bytes(memory)
    if size > room:
        raise ValueError(
            f"{what} takes {format_bytes(size)} or more in memory, and memory allows "
            f"{format_bytes(room)}. Raise memory, or {instead}."
        )


def listed(items) -> str:
    """Items for a message, the first few of many."""
    items = list(items)
    rest = f" and {len(items) - LISTED:,} more" if len(items) > LISTED else ""
    return ", ".join(items[:LISTED]) + rest


def as_rows(chunk, title: str):
    """A piece of a source as a 2-D array of numbers or a CSR matrix."""
    check_meaning(chunk, title)
    try:
        rows = to_numpy(chunk)
        rows = sound_sparse(rows, title).tocsr() if is_sparse(rows) else np.asarray(rows)
        rows = rows if rows.dtype.kind in "biuf" else rows.astype(float)
    except (ValueError, TypeError) as error:
        raise reason(chunk, error, title) from error
    if rows.ndim != 2:
        raise ValueError(
            f"{title} is no array of shape (rows, columns), but has shape {rows.shape}. Pass a "
            "single row as x[None, :]."
        )
    return rows


def float_of(dtype) -> np.dtype:
    """The NumPy type that rows of any library are read in: float32 stays, all else is float64."""
    return np.dtype(np.float32 if "float32" in str(dtype) else np.float64)


def read_blocks(source: RowSource, rows: int, start: int = 0) -> Generator:
    """The blocks of a source from a row on, the next one decoded while the last one is worked on.

    One is read ahead where another thread may read the source. Close it
    (`contextlib.closing`) when it is left before its end.
    """
    with closing(source.blocks(rows, start)) as blocks:
        if not source.threaded:
            yield from blocks
            return
        with ThreadPoolExecutor(1) as reader:
            waiting = reader.submit(next, blocks, None)
            while (block := waiting.result()) is not None:
                waiting = reader.submit(next, blocks, None)
                yield block


class DerivedSource(RowSource):
    """The rows of another source, changed as they are read; all else is as there.

    Parameters
    ----------
    source : RowSource
    change : callable or None
        ``change(block)`` gives the rows to read in place of a block; None in subclasses that have
        their own `chunks`.
    """

    def __init__(self, source: RowSource, change: Callable | None = None):
        self.change = change
        for name in RowSource.__annotations__:
            setattr(self, name, getattr(source, name))
        self.source, self.array = source, None

    def chunks(self, rows: int) -> Iterator:
        """The source's blocks, changed."""
        return map(self.change, self.source.blocks(rows))  # type: ignore[arg-type]

    def others(self, names: Any = None) -> Any:
        """Columns of any kind."""
        return self.source.others(names)


class DropMissing(DerivedSource):
    """Only the rows without a missing value.

    Parameters
    ----------
    source : RowSource

    Attributes
    ----------
    dropped : int
        Rows left out in the last reading.
    """

    def __init__(self, source: RowSource):
        check_dense(source)
        super().__init__(source)
        self.n_rows, self.dropped = None, 0  # known after a reading

    def chunks(self, rows: int) -> Any:
        """The source's pieces without those rows."""
        self.dropped = 0
        for piece in self.source.pieces(rows):
            complete = ~np.isnan(piece).any(axis=1)
            self.dropped += int(np.sum(~complete))
            yield piece[complete]

    def others(self, names: Any = None) -> Any:
        """Columns of any kind, of the rows without a missing value."""
        columns = super().others(names)
        if not columns:
            return columns
        pieces = self.source.pieces(READ_ROWS)
        complete = np.concatenate([~np.isnan(piece).any(axis=1) for piece in pieces])
        return {name: column[complete] for name, column in columns.items()}


def check_dense(source: RowSource) -> None:
    """Raise ValueError for sparse rows, whose missing values cannot be told from zeros."""
    if source.sparse:
        raise ValueError("Missing values are not filled in sparse rows. Fill them before.")


class FillMissing(DerivedSource):
    """Missing values replaced, column by column.

    Parameters
    ----------
    source : RowSource
    means : array of shape (n_columns,) or None
        What stands for a missing value; None for the means of the columns, found in a reading.

    Attributes
    ----------
    filled : int
        Values replaced in the last reading.
    """

    def __init__(self, source: RowSource, means: Any = None):
        check_dense(source)
        super().__init__(source)
        self.filled = 0
        if means is None:
            total, count = np.zeros(source.n_columns), np.zeros(source.n_columns)
            for piece in source.pieces(READ_ROWS):
                total += np.nansum(piece, axis=0, dtype=float)
                count += (~np.isnan(piece)).sum(axis=0)
            if not count.all():
                label = source.label_of(int(np.argmin(count)))
                raise ValueError(f"{source.name}: column {label} has no values. Leave it out.")
            means = total / count
        self.means = np.asarray(means, dtype=float)

    def chunks(self, rows: int) -> Any:
        """The source's pieces, filled."""
        self.filled = 0
        for piece in self.source.pieces(rows):
            missing = np.isnan(piece)
            self.filled += int(missing.sum())
            yield np.where(missing, self.means, piece)
