"""Opening whatever yields rows: one function, one line for each kind."""

from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..compute import is_sparse
from ..compute.arrays import is_foreign
from .arrays import from_hdf5, from_memory, from_npy, from_store, from_zarr
from .arrow import from_arrow, from_feather, is_arrow
from .base import RowSource
from .delimited import CSVSource
from .frames import from_excel
from .iterators import CallSource, IteratorSource
from .npz import from_npz
from .parquet import ParquetSource
from .text import TextFormat, bare_suffix

#: Readers of text tables, compressed (``.gz``) or not: ``reader(path, columns, format)``.
TEXTS: dict[str, Callable[..., RowSource]] = {
    ".csv": CSVSource,
    ".tsv": CSVSource,
    ".txt": CSVSource,
}
#: Readers of tables with sheets: ``reader(path, columns, name)``.
BOOKS: dict[str, Callable[..., RowSource]] = {
    ".xlsx": from_excel,
    ".xls": from_excel,
    ".ods": from_excel,
}
#: Readers of other tables, by suffix: ``reader(path, columns)``.
TABLES: dict[str, Callable[..., RowSource]] = {
    ".parquet": ParquetSource,
    ".pq": ParquetSource,
    ".feather": from_feather,
    ".arrow": from_feather,
}
#: Readers of arrays, by suffix: ``reader(path, name)``.
ARRAYS: dict[str, Callable[..., RowSource]] = {
    ".npy": from_npy,
    ".npz": from_npz,
    ".h5": from_hdf5,
    ".hdf5": from_hdf5,
    ".zarr": from_zarr,
}
# Libraries whose arrays are read in chunks rather than taken as arrays in memory.
STORES = {"zarr", "h5py"}


def open_source(
    source: Any, columns: Any = None, name: str | None = None, format: TextFormat | None = None
) -> RowSource:
    """Rows to read in blocks, from whatever has them.

    Parameters
    ----------
    source : array, sparse matrix, path, iterator, function or RowSource
        - a NumPy array, memmap or `scipy.sparse` matrix, an open HDF5 dataset or zarr array;
        - a path to ``.npy`` (mapped), ``.npz`` (also of `scipy.sparse.save_npz`), ``.csv`` and
          ``.tsv`` (also ``.csv.gz``), ``.parquet`` or a folder of Parquet files, ``.feather``,
          ``.xlsx``, ``.h5``, ``.zarr``;
        - whatever speaks the Arrow stream protocol: a DuckDB relation, a polars frame or query,
          a table, dataset or reader of pyarrow;
        - an iterator of blocks of rows, which can be read only once;
        - a function without arguments that returns a fresh iterator of blocks.
    columns : list of str or None
        Columns of a table to take; None for all that are numbers.
    name : str or None
        Which array of an ``.npz``, HDF5 or zarr file, where there are several; which sheet of
        an Excel file.
    format : TextFormat or None
        How a text table is written, where that cannot be seen from its text.

    Returns
    -------
    RowSource

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.files import open_source
    >>> source = open_source(lambda: (np.full((k, 2), k) for k in (3, 0, 4)))
    >>> [block.shape for block in source.blocks(5)]
    [(5, 2), (2, 2)]
    """
    if isinstance(source, str | PathLike):
        return open_path(existing(source), columns, name, format)
    if is_arrow(source) and name is None:
        return from_arrow(source, columns)
    if columns is not None or name is not None:
        raise ValueError("columns and name are for files. Choose the columns of an array yourself.")
    if isinstance(source, RowSource):
        return source
    if isinstance(source, np.ndarray) or is_sparse(source) or is_foreign(source):
        return from_memory(source)
    if is_store(source):
        return from_store(source)
    if isinstance(source, Iterator):
        return IteratorSource(source)
    if callable(source):
        return CallSource(source)
    raise TypeError(
        f"Rows cannot be read from {type(source).__name__}. Pass an array, a path, an iterator "
        "of blocks, or a function that returns one."
    )


def open_path(path: Path, columns=None, name=None, format=None) -> RowSource:
    """The file or folder by its suffix; a folder without one holds Parquet files."""
    suffix = path.suffix.lower()
    if bare_suffix(path) in TEXTS:
        if name is not None:
            raise ValueError(f"name= is for archives, and {path.name} is a table.")
        return TEXTS[bare_suffix(path)](path, columns, format)
    if suffix in BOOKS:
        return BOOKS[suffix](path, columns, name)
    if path.is_dir() and suffix not in ARRAYS:
        suffix = ".zarr" if is_zarr(path) else ".parquet"
    if suffix in TABLES:
        if name is not None:
            raise ValueError(f"name= is for archives, and {path.name} is a table.")
        return TABLES[suffix](path, columns)
    if suffix in ARRAYS:
        if columns is not None:
            raise ValueError(f"columns are for tables, and {path.name} has no column names.")
        return ARRAYS[suffix](path, name)
    raise ValueError(
        f"{path.name}: files that end in {suffix or 'nothing'} are not known. "
        f"Known are {', '.join([*ARRAYS, *TABLES, *TEXTS, *BOOKS])}, compressed text (.csv.gz) "
        "and folders of Parquet files."
    )


def existing(path) -> Path:
    """The path, if there is something."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(
            f"There is no file or folder {path}. Check its name, and the folder you are in."
        )
    return path


def is_table(source: Any) -> bool:
    """Whether this is a table, or the path of one, whose columns can be chosen."""
    if not isinstance(source, str | PathLike):
        return is_arrow(source)
    path = Path(source)
    if path.is_dir():
        return not is_zarr(path)
    return bare_suffix(path) in TEXTS or path.suffix.lower() in TABLES | BOOKS


def is_zarr(path: Path) -> bool:
    """Whether a folder is a zarr store."""
    marks = ("zarr.json", ".zarray", ".zgroup")
    return path.suffix.lower() == ".zarr" or any((path / mark).exists() for mark in marks)


def is_store(source: Any) -> bool:
    """Whether this is an array of a chunked store, told without importing its library."""
    return type(source).__module__.split(".")[0] in STORES and hasattr(source, "shape")
