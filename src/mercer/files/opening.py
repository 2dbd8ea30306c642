"""Opening whatever yields rows: one function, one line for each kind."""

from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..compute import is_sparse
from ..compute.arrays import is_foreign
from .arrays import ArraySource, BlocksSource, from_memory, from_npy, from_npz
from .arrow import from_arrow, from_feather, from_parquet, is_arrow, library_of
from .base import RowSource
from .delimited import CSVSource
from .layout import TextFormat, bare_suffix
from .tables import SheetSource

#: Text tables, compressed (``.gz``) or not.
TEXTS = (".csv", ".tsv", ".txt")
#: Readers of tables with sheets: ``reader(path, columns, name, format)``.
BOOKS: dict[str, Callable[..., RowSource]] = dict.fromkeys((".xlsx", ".xls", ".ods"), SheetSource)
#: Readers of other tables, by suffix: ``reader(path, columns)``.
TABLES: dict[str, Callable[..., RowSource]] = {
    ".parquet": from_parquet,
    ".pq": from_parquet,
    ".feather": from_feather,
    ".arrow": from_feather,
}
#: Readers of arrays, by suffix: ``reader(path, name)``.
ARRAYS: dict[str, Callable[..., RowSource]] = {".npy": from_npy, ".npz": from_npz}
#: Files of stores that their own library opens, and how.
STORES = {
    ".h5": "h5py.File(path)[name]",
    ".hdf5": "h5py.File(path)[name]",
    ".zarr": "zarr.open(path)",
}


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
          ``.xlsx``;
        - whatever speaks the Arrow stream protocol: a DuckDB relation, a polars frame or query,
          a table, dataset or reader of pyarrow;
        - an iterator of blocks of rows, which can be read only once;
        - a function without arguments that returns a fresh iterator of blocks.
    columns : list of str or None
        Columns of a table to take; None for all that are numbers.
    name : str or None
        Which array of an ``.npz`` file, where there are several; which sheet of an Excel file.
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
        chunks = source.chunks  # those of HDF5 may have none
        return ArraySource(source, f"the {library_of(source)} array", chunks[0] if chunks else 1)
    if isinstance(source, Iterator) or callable(source):
        return BlocksSource(source)
    raise TypeError(
        f"Rows cannot be read from {type(source).__name__}. Pass an array, a path, an iterator "
        "of blocks, or a function that returns one."
    )


def open_path(path: Path, columns, name, format) -> RowSource:
    """The file or folder by its suffix; a folder without one holds Parquet files."""
    suffix = path.suffix.lower()
    if suffix in STORES:
        raise ValueError(
            f"{path.name} is opened by its own library. In Python pass {STORES[suffix]}, or a "
            "function that returns an iterator of blocks; else save its rows as .npy or .parquet."
        )
    if suffix in ARRAYS:
        if columns is not None:
            raise ValueError(f"columns are for tables, and {path.name} has no column names.")
        return ARRAYS[suffix](path, name)
    if suffix in BOOKS:
        return BOOKS[suffix](path, columns, name, format)
    if name is not None:
        raise ValueError(f"name= is for archives, and {path.name} is a table.")
    if bare_suffix(path) in TEXTS:
        return CSVSource(path, columns, format)
    if path.is_dir() or suffix in TABLES:
        return TABLES.get(suffix, from_parquet)(path, columns)
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
    suffix = path.suffix.lower()
    return path.is_dir() or bare_suffix(path) in TEXTS or suffix in TABLES or suffix in BOOKS


def is_store(source: Any) -> bool:
    """Whether this is an open array of a chunked store, told without importing its library."""
    return library_of(source) in ("zarr", "h5py") and hasattr(source, "shape")
