"""Writing results block by block: whole or not at all.

A sink writes to a hidden file beside its target, which takes its place when all is written
without an error. Blocks are written, never mapped: on a disk that fills, a write raises, where
a memory map would end the process.
"""

import csv
import io
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from os import PathLike
from typing import Any, BinaryIO

import numpy as np

from .._packages import needed
from .._remote import as_path
from .._whole_file import whole_file
from ..compute.arrays import Array

# Rows of a row group at most: readers decode one at a time.
GROUP_ROWS = 2**20


class Sink(ABC):
    """A file that takes blocks of rows.

    Parameters
    ----------
    file : binary file
    columns : list of str
    dtype : dtype
    kept : dict of str to array of shape (n,)
        Columns of any kind before those of the rows, such as their names.
    held : int
        Bytes of rows that may wait to be written together.
    """

    #: Whether what was written is changed at the end.
    seeks = False

    def __init__(self, file: BinaryIO, columns: list[str], dtype: np.dtype, kept: dict, held: int):
        self.file, self.columns, self.dtype, self.kept = file, columns, dtype, kept
        self.n_rows, self.held = 0, held

    def write(self, rows: Array) -> None:
        """Append a block, (k, number of columns)."""
        start, self.n_rows = self.n_rows, self.n_rows + rows.shape[0]
        block = np.ascontiguousarray(rows, dtype=self.dtype)
        self._write(block, [column[start : self.n_rows] for column in self.kept.values()])

    @abstractmethod
    def _write(self, rows, kept: list) -> None:
        """Write a block of rows, and its columns of any kind."""

    def finish(self) -> None:
        """Write what comes after the rows, and leave the file open."""
        return


class NpySink(Sink):
    """A ``.npy`` file. Its header, which holds the number of rows, is written again at the end."""

    seeks = True

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self._header()

    def _write(self, rows, kept):
        self.file.write(rows.data)

    def finish(self):
        """Write the number of rows into the header."""
        end = self.file.tell()
        self.file.seek(0)
        self._header()
        self.file.seek(end)

    def _header(self):
        # NumPy leaves room for the number of rows to grow in place.
        shape = (self.n_rows, len(self.columns))
        header = {"descr": self.dtype.str, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(self.file, header)


class ParquetSink(Sink):
    """A Parquet file with one column a component; blocks wait until they fill a row group."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self._arrow, parquet = needed("pyarrow", "files"), needed("pyarrow.parquet", "files")
        types = {name: self._arrow.array(column).type for name, column in self.kept.items()}
        types |= dict.fromkeys(self.columns, self._arrow.from_numpy_dtype(self.dtype))
        self._schema = self._arrow.schema(types.items())
        # Scores hardly ever repeat: a dictionary of them takes twice as long, and more space.
        plain = {"use_dictionary": list(self.kept)}
        self._writer = parquet.ParquetWriter(self.file, self._schema, **plain)
        self._waiting: list = []

    def _write(self, rows, kept):
        columns = zip([*kept, *map(np.ascontiguousarray, rows.T)], self._schema.types, strict=True)
        arrays = [self._arrow.array(column, kind) for column, kind in columns]
        batch = self._arrow.record_batch(arrays, schema=self._schema)
        if sum(one.nbytes for one in self._waiting) + batch.nbytes > self.held:
            self._write_group()
        self._waiting.append(batch)

    def _write_group(self):
        """The blocks that wait as one row group, or as few."""
        waiting, self._waiting = self._waiting, []
        table = self._arrow.Table.from_batches(waiting, self._schema)
        if table.num_rows:
            self._writer.write_table(table, GROUP_ROWS)

    def finish(self):
        """Write the last row group, and the index of the file."""
        with closing(self._writer):
            self._write_group()


class CSVSink(Sink):
    """A CSV file with a header; numbers have all their digits."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self._text = io.TextIOWrapper(self.file, encoding="utf-8", newline="", write_through=True)
        self._rows = csv.writer(self._text, lineterminator="\n")
        self._rows.writerow([*self.kept, *self.columns])

    def _write(self, rows, kept):
        if kept:
            self._rows.writerows(zip(*kept, *rows.T, strict=True))
        else:  # twice as fast
            digits = 9 if self.dtype == np.float32 else 17
            np.savetxt(self.file, rows, fmt=f"%.{digits}g", delimiter=",")

    def finish(self):
        """Write what is buffered, and leave the file open."""
        self._text.detach()


SINKS: dict[str, type[Sink]] = {
    ".npy": NpySink,
    ".parquet": ParquetSink,
    ".pq": ParquetSink,
    ".csv": CSVSink,
}


@contextmanager
def open_sink(
    path: str | PathLike[str],
    n_columns: int,
    dtype: Any = np.float64,
    columns: Any = None,
    kept: Any = None,
    held: int = 2**25,
) -> Iterator[Sink]:
    """A file to write blocks of rows to, by its suffix.

    Parameters
    ----------
    path : str or Path
        ``.npy``, ``.parquet`` or ``.csv``, also as a URL. A file that is there is replaced at the
        end.
    n_columns : int
    dtype : dtype
    columns : list of str or None
        Their names, for Parquet and CSV; None for ``"0"``, ``"1"`` and so on.
    kept : dict of str to array or None
        Columns of any kind that stand before the rows, such as their names; not for ``.npy``.
    held : int
        Bytes of rows that may wait in memory until they fill a row group of a Parquet file.

    Returns
    -------
    context manager of a Sink
        ``with open_sink(...) as sink: sink.write(rows)``
    """
    target = as_path(path)
    kind = SINKS.get(target.suffix.lower())
    if kind is None:
        raise ValueError(
            f"{target.name}: scores can be written to files that end in {', '.join(SINKS)}. Give "
            "the file such a name."
        )
    names = [str(i) for i in range(n_columns)] if columns is None else list(map(str, columns))
    others = dict(kept or {})
    if others and kind is NpySink:
        raise ValueError(
            f"{target.name} holds numbers of one kind only. Give a .csv or .parquet file for "
            f"{', '.join(others)}."
        )
    clash = sorted(set(others) & set(names))
    if clash:
        raise ValueError(
            f"{target.name} would have two columns called {clash[0]!r}. Rename the one that is "
            "kept."
        )
    with whole_file(target, parameter="out", seeks=kind.seeks) as file:
        sink = kind(file, names, np.dtype(dtype), others, held)
        try:
            yield sink
            sink.finish()
        except BaseException:
            # What is still buffered may not fit the disk, and is not wanted.
            with suppress(Exception):
                sink.finish()
            raise
