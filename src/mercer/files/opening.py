"""Opening whatever yields rows: one function, one line for each kind; images are read whole."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from .._remote import RemotePath, as_path, local_copy
from ..compute import is_sparse
from ..compute.arrays import is_foreign
from .arrays import ArraySource, BlocksSource, from_memory, from_npy, from_npz
from .arrow import from_arrow, from_feather, from_parquet, is_arrow, library_of
from .base import RowSource
from .delimited import CSVSource, SheetSource, TextFormat, bare_suffix

#: Text tables, compressed (``.gz``) or not.
TEXTS = (".csv", ".tsv", ".txt")
#: Readers of tables with sheets: ``reader(path, columns, name, format)``.
BOOKS: dict[str, Callable[..., RowSource]] = dict.fromkeys((".xlsx", ".xls", ".ods"), SheetSource)
#: Readers of other tables, by suffix: ``reader(path, columns, memory)``.
TABLES: dict[str, Callable[..., RowSource]] = {
    ".parquet": from_parquet,
    ".pq": from_parquet,
    ".feather": from_feather,
    ".arrow": from_feather,
}
#: Readers of arrays, by suffix: ``reader(path, name, memory)``.
ARRAYS: dict[str, Callable[..., RowSource]] = {".npy": from_npy, ".npz": from_npz}
#: Files of stores that their own library opens.
STORES = (".h5", ".hdf5", ".zarr")

IMAGES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".pgm", ".ppm", ".webp"}


def open_source(
    source: Any,
    columns: Any = None,
    name: str | None = None,
    format: TextFormat | None = None,
    memory: int | str | None = None,
) -> Any:
    """Rows to read in blocks, from whatever has them.

    Parameters
    ----------
    source : array, sparse matrix, path, iterator, function or RowSource
        - a NumPy array, memmap or `scipy.sparse` matrix, an open HDF5 dataset or zarr array;
        - a path to ``.npy`` (mapped), ``.npz`` (also of `scipy.sparse.save_npz`), ``.csv`` and
          ``.tsv`` (also ``.csv.gz``), ``.parquet`` or a folder of Parquet files, ``.feather``,
          ``.xlsx``; or a URL of one, such as ``s3://bucket/rows.parquet``: Parquet is read where
          it is, others from a copy on this machine;
        - whatever speaks the Arrow stream protocol: a DuckDB relation, a polars frame or query,
          a table, dataset or reader of pyarrow;
        - an iterator of blocks of rows, which can be read only once;
        - a function without arguments that returns a fresh iterator of blocks;
        - a Spark frame or a Ray dataset, whose chosen columns come back as `ChosenColumns`.
    columns : list of str or None
        Columns of a table to take; None for all that are numbers.
    name : str or None
        Which array of an ``.npz`` file, where there are several; which sheet of an Excel file.
    format : TextFormat or None
        How a text table is written, where that cannot be seen from its text.
    memory : int, str or None
        The budget of what is unpacked whole, such as Excel files and sparse archives, and of the
        pages of Parquet.

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
        return open_path(existing(source), columns, name, format, memory)
    if is_cluster_table(source) and name is None:
        return ChosenColumns(source, None if columns is None else list(columns))
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


@dataclass(frozen=True)
class ChosenColumns:
    """A table of Spark or Ray, and which of its columns are the rows; its workers read them.

    Attributes
    ----------
    table : pyspark DataFrame or ray Dataset
    columns : list of str or None
        None for all columns of numbers.
    extras : tuple
        Columns that are weights or a target.
    """

    table: Any
    columns: list[str] | None = None
    extras: tuple = ()


def table_of(source: Any) -> Any:
    """The table whose columns are chosen; all else as it is."""
    return source.table if isinstance(source, ChosenColumns) else source


def is_cluster_table(source: Any, libraries: tuple[str, ...] = ("pyspark", "ray")) -> bool:
    """Whether this is a table of Spark or Ray, or columns of one, told without importing them."""
    return library_of(table_of(source)) in libraries


def open_path(path: Any, columns, name, format, memory=None) -> RowSource:
    """The file or folder by its suffix; a folder without one holds Parquet files.

    Of a URL all but Parquet is read from a copy, which is removed with the source.
    """
    suffix = path.suffix.lower()
    is_copied = suffix in (*ARRAYS, *BOOKS, ".feather", ".arrow") or bare_suffix(path) in TEXTS
    if isinstance(path, RemotePath) and is_copied:
        source: Any = open_path(local_copy(path), columns, name, format, memory)
        source.copied = path  # whose end is that of the copy
        return source
    if suffix in STORES:
        raise ValueError(
            f"{path.name} is opened by its own library. In Python pass h5py.File(path)[name] or "
            "zarr.open(path), or a function that returns an iterator of blocks; else save its rows "
            "as .npy or .parquet."
        )
    if suffix in ARRAYS:
        if columns is not None:
            raise ValueError(f"columns are for tables, and {path.name} has no column names.")
        return ARRAYS[suffix](path, name, memory)
    if suffix in BOOKS:
        return BOOKS[suffix](path, columns, name, format, memory)
    if name is not None:
        raise ValueError(f"name= is for archives, and {path.name} is a table.")
    if path.is_dir() or suffix in TABLES:
        return TABLES.get(suffix, from_parquet)(path, columns, memory)
    if bare_suffix(path) in TEXTS:
        return CSVSource(path, columns, format)
    raise ValueError(
        f"{path.name}: files that end in {suffix or 'nothing'} are not known. "
        f"Known are {', '.join([*ARRAYS, *TABLES, *TEXTS, *BOOKS])}, compressed text (.csv.gz) "
        "and folders of Parquet files."
    )


def existing(path) -> Any:
    """The path, if there is something."""
    path = as_path(path)
    if not path.exists():
        where = "the folder you are in"
        if isinstance(path, Path) and re.match(r"\w{2,}:/", path.as_posix()):
            where = "give a URL as text, since a Path has one slash only"
        raise FileNotFoundError(f"There is no file or folder {path}. Check its name, and {where}.")
    return path


def is_table(source: Any) -> bool:
    """Whether this is a table, or the path of one, whose columns can be chosen."""
    if not isinstance(source, str | PathLike):
        return is_arrow(source)
    path = as_path(source)
    suffix = path.suffix.lower()
    return path.is_dir() or suffix in TABLES or suffix in BOOKS or bare_suffix(path) in TEXTS


def is_store(source: Any) -> bool:
    """Whether this is an open array of a chunked store, told without importing its library."""
    return library_of(source) in ("zarr", "h5py") and hasattr(source, "shape")


@dataclass(frozen=True)
class Table:
    """Rows of numbers, with what a file says beside them.

    Attributes
    ----------
    X : array or CSR matrix of shape (n, d)
    names : list of str or None
        Names of its columns, where the file has them.
    others : dict of str to array of shape (n,)
        Columns that are not numbers, or were not asked for; of images their file names, and the
        folder of each where there are several.
    image_shape : tuple of int or None
        Of the images that the rows are, (height, width) or (height, width, 3).
    """

    X: np.ndarray
    names: list[str] | None = None
    others: dict[str, np.ndarray] = field(default_factory=dict)
    image_shape: tuple[int, ...] | None = None


def read_table(
    path: str | PathLike[str], columns: Any = None, name: Any = None, memory: Any = None
) -> Table:
    """A small file, read whole.

    Parameters
    ----------
    path : str or Path
        Any file that `open_source` takes, an image, or a folder of images of one size, or of
        folders of them, such as one a class.
    columns : list of str or None
        Columns of a table that are the data; None for all that are numbers.
    name : str or None
        Which array of an archive.
    memory : int, str or None
        As of `open_source`.

    Returns
    -------
    Table

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "iris.csv"
    >>> _ = path.write_text("length,width,species\\n5.1,3.5,setosa\\n6.2,2.9,virginica\\n")
    >>> table = read_table(path)
    >>> table.names, table.X.shape, list(table.others["species"])
    (['length', 'width'], (2, 2), [np.str_('setosa'), np.str_('virginica')])
    """
    files = image_files(path)
    if not files:
        source = open_source(path, columns=columns, name=name, memory=memory)
        return Table(source.read(), source.columns, source.others())
    color = any(_has_color(_open_image(file)) for file in files)
    images: list[np.ndarray] = []
    for file in files:
        images.append(read_image(file, color))
        if images[-1].shape != images[0].shape:
            (h, w), (height, width) = images[-1].shape[:2], images[0].shape[:2]
            raise ValueError(
                f"{file.name} is {w} x {h} pixels and {files[0].name} is {width} x {height}. All "
                "images of a folder need one size."
            )
    others = {"file": np.array([file.name for file in files])}
    if files[0].parent != Path(path) != files[0]:
        others["folder"] = np.array([file.parent.name for file in files])
    return Table(np.array(images).reshape(len(files), -1), None, others, images[0].shape)


def image_files(path: str | PathLike[str]) -> list[Path]:
    """The image that a path is, those of a folder by name, or those of its folders; else none."""
    place = as_path(path)
    if isinstance(place, RemotePath):
        return []
    for found in (place.iterdir(), place.glob("*/*")) if place.is_dir() else ([place],):
        images = [file for file in found if file.suffix.lower() in IMAGES and file.is_file()]
        if images:
            return sorted(images)
    return []


def read_image(path: str | PathLike[str], color: bool | None = None) -> np.ndarray:
    """An image as grey values (height, width) or colors (height, width, 3), from 0 to 1.

    Parameters
    ----------
    path : str or Path
    color : bool or None
        None for colors where the file has any. Transparency is dropped.
    """
    image = _open_image(Path(path))
    color = _has_color(image) if color is None else color
    if not color and image.mode.startswith(("I", "F")):
        # Grey values of more than eight bits; those of 16 have 65535 as white.
        return np.asarray(image, dtype=float) / (1 if image.mode == "F" else 65535)
    return np.asarray(image.convert("RGB" if color else "L"), dtype=float) / 255


def _open_image(path: Path):
    from PIL import Image, UnidentifiedImageError

    try:
        with path.open("rb") as file:
            image = Image.open(file)
            image.load()
    except (OSError, SyntaxError, UnidentifiedImageError) as error:
        raise ValueError(
            f"{path.name} cannot be read as an image: it is cut short, damaged or another kind "
            "of file. Save it again, or leave it out."
        ) from error
    return image


def _has_color(image) -> bool:
    """Whether a file stores colors; grey values stored as colors count as colors."""
    return image.mode in ("P", "RGB", "RGBA", "CMYK", "YCbCr", "LAB", "HSV")
