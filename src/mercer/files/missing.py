"""Missing values of a table: an error, rows that are left out, or the mean of the column."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..compute import is_sparse
from ..compute.arrays import Array
from .base import READ_ROWS, RowSource, as_rows

#: What can be done about missing values.
POLICIES = ("error", "drop", "mean")


class DropMissing(RowSource):
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
        self.source, self.dropped = source, 0
        take_after(self, source)
        self.n_rows = None  # known after a reading

    def chunks(self, rows: Array) -> Any:
        """The source's pieces without those rows."""
        self.dropped = 0
        for chunk in whole_rows(self.source, rows):
            whole = ~np.isnan(chunk).any(axis=1)
            self.dropped += int(np.sum(~whole))
            yield chunk[whole]

    def others(self, names: Any = None) -> Any:
        """Columns of the rows that are kept."""
        found = self.source.others(names)
        if not found:
            return found
        pieces = whole_rows(self.source, READ_ROWS)
        kept = np.concatenate([~np.isnan(chunk).any(axis=1) for chunk in pieces])
        return {name: column[kept] for name, column in found.items()}


class FillMissing(RowSource):
    """Missing values replaced, column by column.

    Parameters
    ----------
    source : RowSource
    means : array of shape (n_columns,) or None
        What stands for a missing value; None for the means of the columns, found in a reading.
    """

    def __init__(self, source: RowSource, means: Any = None):
        self.source, self.filled = source, 0
        take_after(self, source)
        self.means = column_means(source) if means is None else np.asarray(means, dtype=float)

    def chunks(self, rows: Array) -> Any:
        """The source's pieces, filled."""
        self.filled = 0
        for chunk in whole_rows(self.source, rows):
            missing = np.isnan(chunk)
            self.filled += int(missing.sum())
            yield np.where(missing, self.means, chunk)

    def others(self, names: Any = None) -> Any:
        """As of the source."""
        return self.source.others(names)


def take_after(new: RowSource, source: RowSource) -> None:
    """The same columns and names as another source."""
    if source.sparse:
        raise ValueError("Missing values are not filled in sparse rows. Fill them before.")
    for name in ("name", "n_columns", "n_rows", "dtype", "columns", "left_out", "reasons"):
        setattr(new, name, getattr(source, name))
    new.notes, new.repeatable, new.threaded = source.notes, source.repeatable, source.threaded


def whole_rows(source: RowSource, rows: int) -> Iterator[np.ndarray]:
    """Pieces of a source as floats, with their missing values."""
    start = 0
    for chunk in source.chunks(rows):
        chunk = as_rows(chunk, source.name, start)
        chunk = chunk.toarray() if is_sparse(chunk) else chunk
        start += chunk.shape[0]
        yield chunk.astype(source.dtype, copy=False)


def column_means(source: RowSource) -> np.ndarray:
    """Means of the columns without what is missing, in one reading."""
    total, count = np.zeros(source.n_columns), np.zeros(source.n_columns)
    for chunk in whole_rows(source, READ_ROWS):
        total += np.nansum(chunk, axis=0, dtype=float)
        count += (~np.isnan(chunk)).sum(axis=0)
    if not count.all():
        empty = int(np.argmin(count))
        label = repr(source.columns[empty]) if source.columns else str(empty)
        raise ValueError(f"{source.name}: column {label} has no values at all. Leave it out.")
    return total / count
