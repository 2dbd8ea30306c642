"""The contract of a row source, and what all share: even blocks of checked rows."""

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy import sparse

from ..compute import is_sparse, stack_rows, to_numpy
from ..compute.arrays import Array
from ..compute.numbers import check_meaning

# Rows of a block when all are read.
READ_ROWS = 65536


class RowSource(ABC):
    """Rows of numbers that are read in blocks, and never all at once.

    Attributes
    ----------
    name : str
        What messages call it: a file name, or what was passed.
    n_columns : int
    n_rows : int or None
        None where only reading to the end would tell.
    dtype : dtype
        float32 where all numbers are, else float64.
    columns : list of str or None
        Names of the columns, where they have any.
    left_out : tuple of str
        The other columns of a table: no numbers, or not asked for.
    reasons : dict of str to str
        Why each of them is left out.
    notes : tuple of str
        What a user should be told of how the rows were read.
    sparse : bool
        Whether blocks are CSR matrices.
    repeatable : bool
        Whether the rows can be read again.
    threaded : bool
        Whether a thread other than that which opened it may read.
    array : array or None
        The rows as one array or memmap, where they are one on disk or in memory.
    """

    name: str
    n_columns: int
    n_rows: int | None = None
    dtype: np.dtype = np.dtype(np.float64)
    columns: list[str] | None = None
    left_out: tuple[str, ...] = ()
    reasons: Mapping[str, str] = MappingProxyType({})
    notes: tuple[str, ...] = ()
    sparse: bool = False
    repeatable: bool = True
    threaded: bool = True
    array: np.ndarray | None = None

    @abstractmethod
    def chunks(self, rows: int) -> Iterator:
        """The rows as the source has them, about `rows` at a time, in pieces of any length."""

    def blocks(self, rows: int) -> Generator:
        """The rows in blocks of exactly `rows`, the last one shorter, checked.

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
        return recut(self._checked(rows), rows)

    def read(self) -> Any:
        """All rows at once, (n_rows, n_columns)."""
        blocks = list(self.blocks(READ_ROWS))
        return stack_rows(blocks) if blocks else np.empty((0, self.n_columns), self.dtype)

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

    def _checked(self, rows):
        """Pieces as floats, each checked with its place in the source known."""
        start = 0
        for chunk in self.chunks(rows):
            chunk = as_rows(chunk, self.name, start)
            if chunk.shape[1] != self.n_columns:
                raise ValueError(
                    f"{self.name}: the rows from {start:,} have {chunk.shape[1]} columns, and "
                    f"those before had {self.n_columns}. All rows need the same columns."
                )
            chunk = of_kind(chunk, self.sparse).astype(self.dtype, copy=False)
            check_finite(chunk, self.name, start, self.columns, self.place_of)
            start += chunk.shape[0]
            yield chunk


def as_rows(chunk, name: str, start: int = 0):
    """A piece of a source as a 2-D array of numbers or a CSR matrix."""
    check_meaning(chunk, f"{name}: the block at row {start:,}")
    rows = to_numpy(chunk)
    rows = rows.tocsr() if is_sparse(rows) else np.asarray(rows)
    if rows.ndim != 2:
        raise ValueError(
            f"{name}: expected blocks of rows, arrays of shape (rows, columns), and the one at row "
            f"{start:,} has shape {rows.shape}. Pass a single row as x[None, :]."
        )
    if rows.dtype.kind not in "biuf":
        raise ValueError(
            f"{name}: the rows from {start:,} are of type {rows.dtype}, and numbers are needed. "
            "Convert or leave out what is not a number."
        )
    return rows


def of_kind(rows: Array, as_sparse: bool) -> Any:
    """The same rows as a CSR matrix, or as an array."""
    if as_sparse:
        return rows if is_sparse(rows) else sparse.csr_matrix(rows)
    return rows.toarray() if is_sparse(rows) else rows


def float_of(dtype) -> np.dtype:
    """The floating type that rows of a type are read in: float32 stays, all else is float64."""
    return np.dtype(np.float32 if np.dtype(dtype) == np.float32 else np.float64)


def check_finite(rows, name: str, start: int, columns=None, place_of=lambda row: "") -> None:
    """Raise ValueError that names the first row that holds NaN or infinity, and its place."""
    good = np.isfinite(rows.data if is_sparse(rows) else rows)
    if good.all():
        return
    if is_sparse(rows):
        entry = int(np.argmin(good))
        row, column = int(np.searchsorted(rows.indptr, entry, "right")) - 1, rows.indices[entry]
        many = "one row or more"
    else:
        bad = ~good.all(axis=1)
        row = int(np.argmax(bad))
        column, many = int(np.argmin(good[row])), f"{int(bad.sum()):,}"
    label = repr(columns[column]) if columns else str(column)
    place = f", {found}" if (found := place_of(start + row)) else ""
    raise ValueError(
        f"{name}: row {start + row:,} (counted from 0) holds NaN or infinity in column "
        f"{label}{place}; {many} of the rows {start:,} to {start + rows.shape[0] - 1:,} are so. "
        "Fill or leave out those rows first."
    )


def recut(chunks: Iterable, rows: int) -> Generator:
    """The rows of pieces of any length in blocks of `rows`, the last one shorter."""
    held: list = []
    count = 0
    for chunk in chunks:
        start, n = 0, chunk.shape[0]
        while start < n:
            piece = chunk[start : start + rows - count]
            start += piece.shape[0]
            count += piece.shape[0]
            held.append(piece)
            if count == rows:
                yield stack_rows(held)
                held, count = [], 0
    if held:
        yield stack_rows(held)
