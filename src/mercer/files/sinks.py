"""Writing results block by block: whole or not at all.

A sink writes to a hidden file beside its target and moves it into place when it is closed
without an error. Blocks are written, never mapped: on a disk that fills, a write raises, where
a memory map would end the process.
"""

import csv
import io
import os
from abc import ABC, abstractmethod
from contextlib import ExitStack, suppress
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from .._packages import needed
from .._whole_file import begin_part, ended_by_sigterm
from ..compute.arrays import Array


class Sink(ABC):
    """A file that takes blocks of rows, as a context manager.

    Parameters
    ----------
    path : Path
    columns : list of str
    dtype : dtype
    kept : dict of str to array of shape (n,)
        Columns of any kind that stand before the rows, such as their names.
    """

    def __init__(self, path: Path, columns: list[str], dtype: Any, kept: Any = None):
        self.path, self.columns, self.dtype = path, columns, np.dtype(dtype)
        self.kept = dict(kept or {})
        self.n_rows = 0
        clash = sorted(set(self.kept) & set(columns))
        if clash:
            raise ValueError(
                f"{path.name} would have two columns called {clash[0]!r}. Rename the one that is "
                "kept."
            )

    def __enter__(self):
        folder = self.path.parent
        if not folder.is_dir():
            raise FileNotFoundError(
                f"There is no folder {folder} to write {self.path.name} to. Make it first."
            )
        self._ending = ExitStack()
        self._ending.enter_context(ended_by_sigterm())
        self._part, self._file = begin_part(self.path)
        try:
            self._begin()
        except BaseException:
            self._abandon()
            raise
        return self

    def __exit__(self, kind, error, trace):
        if kind is not None:
            self._abandon()
            if isinstance(error, OSError):
                error.add_note(f"Nothing was written to {self.path}.")
            return
        try:
            self._finish()
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            os.replace(self._part, self.path)
        except BaseException:
            self._abandon()
            raise
        self._ending.close()

    def write(self, rows: Array) -> None:
        """Append a block, (k, number of columns)."""
        these = slice(self.n_rows, self.n_rows + rows.shape[0])
        kept = [column[these] for column in self.kept.values()]
        self._write(np.ascontiguousarray(rows, dtype=self.dtype), kept)
        self.n_rows += rows.shape[0]

    def _abandon(self):
        """Leave nothing behind, whatever state the writing is in."""
        # What is still buffered may not fit the disk, and is not wanted.
        with suppress(Exception):
            self._release()
        with suppress(OSError):
            self._file.close()
        self._part.unlink(missing_ok=True)
        self._ending.close()

    def _begin(self) -> None:
        """Write what comes before the rows."""
        return

    @abstractmethod
    def _write(self, rows, kept: list) -> None:
        """Write rows of the right type, and what is kept of them."""

    def _finish(self) -> None:
        """Write what comes after the rows."""
        return

    def _release(self) -> None:
        """Let go of what holds on to the file."""
        return


class NpySink(Sink):
    """A ``.npy`` file. Its header, which holds the number of rows, is written again at the end."""

    def _begin(self):
        if self.kept:
            raise ValueError(
                f"{self.path.name} holds numbers of one kind only. Give a .csv or .parquet file "
                f"for {', '.join(self.kept)}."
            )
        self._header()

    def _write(self, rows, kept):
        self._file.write(rows.data)

    def _finish(self):
        end = self._file.tell()
        self._file.seek(0)
        self._header()
        self._file.seek(end)

    def _header(self):
        # NumPy leaves room for the number of rows to grow in place.
        shape = (self.n_rows, len(self.columns))
        header = {"descr": self.dtype.str, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(self._file, header)


class ParquetSink(Sink):
    """A Parquet file with one column a component."""

    def _begin(self):
        self._arrow, parquet = needed("pyarrow", "files"), needed("pyarrow.parquet", "files")
        kind = self._arrow.from_numpy_dtype(self.dtype)
        self._beside = [self._arrow.array(column).type for column in self.kept.values()]
        fields = [*zip(self.kept, self._beside, strict=True), *((c, kind) for c in self.columns)]
        self._schema = self._arrow.schema(fields)
        self._writer = parquet.ParquetWriter(self._file, self._schema)

    def _write(self, rows, kept):
        beside = [self._arrow.array(c, t) for c, t in zip(kept, self._beside, strict=True)]
        columns = [self._arrow.array(np.ascontiguousarray(column)) for column in rows.T]
        batch = self._arrow.RecordBatch.from_arrays([*beside, *columns], schema=self._schema)
        self._writer.write_batch(batch)

    def _finish(self):
        self._writer.close()

    def _release(self):
        self._writer.close()


class CSVSink(Sink):
    """A CSV file with a header; numbers are written so that they read back as they are."""

    def _begin(self):
        self._cells([[*self.kept, *self.columns]])

    def _write(self, rows, kept):
        digits = 9 if self.dtype == np.float32 else 17
        if not kept:
            np.savetxt(self._file, rows, fmt=f"%.{digits}g", delimiter=",")
            return
        numbers = ([f"{number:.{digits}g}" for number in row] for row in rows)
        self._cells([*cells, *row] for *cells, row in zip(*kept, numbers, strict=True))

    def _cells(self, rows):
        """Write rows of cells, in quotes where a comma or a line break asks for them."""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        self._file.write(text.getvalue().encode())


SINKS: dict[str, type[Sink]] = {
    ".npy": NpySink,
    ".parquet": ParquetSink,
    ".pq": ParquetSink,
    ".csv": CSVSink,
}


def open_sink(
    path: str | PathLike[str],
    n_columns: int,
    dtype: Any = np.float64,
    columns: Any = None,
    kept: Any = None,
) -> Sink:
    """A file to write blocks of rows to, by its suffix.

    Parameters
    ----------
    path : str or Path
        ``.npy``, ``.parquet`` or ``.csv``. A file that is there is replaced, at the end.
    n_columns : int
    dtype : dtype
    columns : list of str or None
        Their names, for Parquet and CSV; None for ``"0"``, ``"1"`` and so on.
    kept : dict of str to array or None
        Columns of any kind that stand before the rows, such as their names; not for ``.npy``.

    Returns
    -------
    Sink
        ``with open_sink(...) as sink: sink.write(rows)``
    """
    path = Path(path)
    if path.suffix.lower() not in SINKS:
        raise ValueError(
            f"{path.name}: scores can be written to files that end in {', '.join(SINKS)}. Give "
            "the file such a name."
        )
    names = [str(i) for i in range(n_columns)] if columns is None else list(map(str, columns))
    return SINKS[path.suffix.lower()](path, names, dtype, kept)
