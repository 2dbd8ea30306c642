"""Missing values of a table: an error, rows that are left out, or the mean of the column."""

from typing import Any

import numpy as np

from .base import READ_ROWS, RowSource

#: What can be done about missing values.
POLICIES = ("error", "drop", "mean")


class TreatedSource(RowSource):
    """The rows of another source, with something done about what is missing."""

    def __init__(self, source: RowSource):
        if source.sparse:
            raise ValueError("Missing values are not filled in sparse rows. Fill them before.")
        for name in RowSource.__annotations__:
            setattr(self, name, getattr(source, name))
        self.source, self.array = source, None

    def others(self, names: Any = None) -> Any:
        """Columns of any kind, of the rows that are left."""
        return self.source.others(names)


class DropMissing(TreatedSource):
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
        """Columns of any kind, of the rows that are left."""
        found = super().others(names)
        if not found:
            return found
        pieces = self.source.pieces(READ_ROWS)
        kept = np.concatenate([~np.isnan(piece).any(axis=1) for piece in pieces])
        return {name: column[kept] for name, column in found.items()}


class FillMissing(TreatedSource):
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
        super().__init__(source)
        self.filled = 0
        self.means = column_means(source) if means is None else np.asarray(means, dtype=float)

    def chunks(self, rows: int) -> Any:
        """The source's pieces, filled."""
        self.filled = 0
        for piece in self.source.pieces(rows):
            missing = np.isnan(piece)
            self.filled += int(missing.sum())
            yield np.where(missing, self.means, piece)


def column_means(source: RowSource) -> np.ndarray:
    """Means of the columns without what is missing, in one reading."""
    total, count = np.zeros(source.n_columns), np.zeros(source.n_columns)
    for piece in source.pieces(READ_ROWS):
        total += np.nansum(piece, axis=0, dtype=float)
        count += (~np.isnan(piece)).sum(axis=0)
    if not count.all():
        empty = int(np.argmin(count))
        label = repr(source.columns[empty]) if source.columns else str(empty)
        raise ValueError(f"{source.name}: column {label} has no values at all. Leave it out.")
    return total / count
