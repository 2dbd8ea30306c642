"""Parquet files and folders of them, read batch by batch."""

from pathlib import Path

import numpy as np

from .._packages import needed
from .arrow import dtype_of, kinds_of, stacked
from .base import RowSource
from .columns import choose_columns, reasons_of

# Bytes of a column that are read at a time, and rows decoded at once: row groups may be larger than
# the budget. Reading a million rows of 20 columns took 40 MB so, and 260 MB as pyarrow would read.
BUFFER_BYTES, BATCH_ROWS = 2**16, 2**14


class ParquetSource(RowSource):
    """A Parquet file, or all files of a folder in the order of their names.

    Parameters
    ----------
    path : Path
    columns : list of str or None
        None for all columns of numbers; the others are then left out.
    """

    def __init__(self, path: Path, columns=None):
        self.files = parquet_files(path)
        self.name = path.name
        schema, self.n_rows = self._open(self.files[0]).schema_arrow, 0
        kinds = kinds_of(schema)
        self.columns, self.left_out = choose_columns(kinds, columns, path.name)
        self.reasons = reasons_of(kinds, self.left_out)
        for file in self.files:
            opened = self._open(file)
            self._check_schema(opened.schema_arrow, file)
            self.n_rows += counted(opened.metadata, file)
        self.n_columns = len(self.columns)
        self.dtype = dtype_of(schema, self.columns)

    def chunks(self, rows):
        """Batches of the files, columns side by side."""
        pa = needed("pyarrow", "files")
        for file in self.files:
            try:
                size = min(rows, BATCH_ROWS)
                for batch in self._open(file).iter_batches(size, columns=self.columns):
                    yield stacked(batch, self.columns, self.dtype)
            except (OSError, pa.ArrowException) as error:
                raise unreadable(file, error) from error

    def others(self, names=None):
        """Columns of all files."""
        names = list(self.left_out if names is None else names)
        if not names:
            return {}
        tables = [self._read(file, names) for file in self.files]
        return {
            name: np.concatenate([table[name].to_numpy() for table in tables]) for name in names
        }

    def _read(self, file, names):
        pa = needed("pyarrow", "files")
        try:
            return self._open(file).read(columns=names)
        except (OSError, pa.ArrowException) as error:
            raise unreadable(file, error) from error

    def _open(self, file):
        parquet = needed("pyarrow.parquet", "files")
        try:
            return parquet.ParquetFile(file, buffer_size=BUFFER_BYTES, pre_buffer=False)
        except (OSError, ValueError, NotImplementedError) as error:  # of these kinds are pyarrow's
            raise unreadable(file, error) from error

    def _check_schema(self, schema, file):
        kinds = kinds_of(schema)
        missing = [name for name in self.columns or () if kinds.get(name, "missing") is not None]
        if missing:
            raise ValueError(
                f"{file.name} has no column of numbers called {missing[0]!r}, which "
                f"{self.files[0].name} has. All files of a folder need the same columns."
            )


def counted(metadata, file: Path) -> int:
    """The rows of a file, or an error where its groups do not have them."""
    groups = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    if min(groups, default=0) < 0 or sum(groups) != metadata.num_rows:
        raise ValueError(
            f"{file.name} claims {metadata.num_rows:,} rows, and its groups have {groups!r:.60}: "
            "it is damaged. Write it again."
        )
    return metadata.num_rows


def parquet_files(path: Path) -> list[Path]:
    """The file itself, or the Parquet files below a folder; hidden ones are not data."""
    if path.is_file():
        return [path]
    found = [
        file
        for file in sorted(path.rglob("*.parquet"))
        if not any(part.startswith(("_", ".")) for part in file.relative_to(path).parts)
    ]
    if not found:
        raise ValueError(
            f"{path.name} is a folder without Parquet files (*.parquet). Name one that has some."
        )
    return found


def unreadable(file: Path, error) -> ValueError:
    """What to say of a file that is cut short, or none of its kind."""
    return ValueError(
        f"{file.name} cannot be read as Parquet: it is cut short, damaged or another kind of "
        f"file. ({error})"
    )
