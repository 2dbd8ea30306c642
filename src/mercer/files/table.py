"""A whole file in memory: numbers, names, and what is not a number."""

from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from .images import is_image, list_images, read_images
from .opening import existing, open_source


@dataclass(frozen=True)
class Table:
    """Rows of numbers, with what a file says beside them.

    Attributes
    ----------
    X : array or CSR matrix of shape (n, d)
    names : list of str or None
        Names of its columns, where the file has them.
    others : dict of str to array of shape (n,)
        Columns that are not numbers, or were not asked for; of images their file names.
    image_shape : tuple of int or None
        Of the images that the rows are, (height, width) or (height, width, 3).
    """

    X: np.ndarray
    names: list[str] | None = None
    others: dict[str, np.ndarray] = field(default_factory=dict)
    image_shape: tuple[int, ...] | None = None


def read_table(path: str | PathLike[str], columns: Any = None, name: Any = None) -> Table:
    """A small file, read whole.

    Parameters
    ----------
    path : str or Path
        Any file that `open_source` takes, an image, or a folder of images of one size.
    columns : list of str or None
        Columns of a table that are the data; None for all that are numbers.
    name : str or None
        Which array of an archive.

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
    path = existing(path)
    images = [path] if is_image(path) else list_images(path)
    if images:
        return _image_table(images)
    source = open_source(path, columns=columns, name=name)
    return Table(source.read(), source.columns, source.others())


def _image_table(files: list[Path]) -> Table:
    """One row an image."""
    images = read_images(files)
    names = np.array([file.name for file in files])
    return Table(images.reshape(len(files), -1), None, {"file": names}, images.shape[1:])
