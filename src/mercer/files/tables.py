"""What is read whole into memory: sheets of Excel files, images, and small files of any kind."""

from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from .._packages import needed
from .base import COUNTER, RowSource

IMAGES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".pgm", ".ppm", ".webp"}


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
    from .opening import open_source

    files = image_files(path)
    if not files:
        source = open_source(path, columns=columns, name=name)
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
    names = np.array([file.name for file in files])
    return Table(np.array(images).reshape(len(files), -1), None, {"file": names}, images[0].shape)


def image_files(path: str | PathLike[str]) -> list[Path]:
    """The image that a path is, or those of a folder in the order of their names; else none."""
    path = Path(path)
    found = sorted(path.iterdir()) if path.is_dir() else [path]
    return [file for file in found if file.suffix.lower() in IMAGES and file.is_file()]


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
            f"of file. ({error})"
        ) from error
    return image


def _has_color(image) -> bool:
    """Whether a file stores colors; grey values stored as colors count as colors."""
    return image.mode in ("P", "RGB", "RGBA", "CMYK", "YCbCr", "LAB", "HSV")


class SheetSource(RowSource):
    """A sheet of an Excel file, as pandas reads it.

    Parameters
    ----------
    path : Path
    columns : list of str or None
        None for all columns of numbers.
    name : str or None
        Of the sheet; None for the first one.
    """

    def __init__(self, path: Path, columns=None, name: str | None = None):
        pandas = needed("pandas", "excel", path.name)
        if path.suffix.lower() == ".xlsx":
            needed("openpyxl", "excel", path.name)
        try:
            frame = pandas.read_excel(path, sheet_name=0 if name is None else name)
        except (ValueError, OSError, KeyError) as error:
            raise ValueError(f"{path.name} cannot be read as an Excel file: {error}") from error
        if frame.empty:
            raise ValueError(f"{path.name} has no rows. Add at least one.")
        frame.columns = [str(column) for column in frame.columns]
        if not frame.columns.is_unique:
            raise ValueError(
                f"{path.name}: two columns have the same name in {list(frame.columns)}. Rename one."
            )
        self.frame, self.name, self.n_rows = frame, path.name, len(frame)
        self._take_columns({c: why_no_number(frame[c]) for c in frame.columns}, columns)
        if columns is None:
            # Columns of mostly numbers that are left out for a few cells.
            told = ((column, why) for column, why in self.reasons.items() if " in row " in why)
            self.notes = tuple(f"{path.name}: Column {c!r} is left out: {why}." for c, why in told)

    def chunks(self, rows):
        """Slices of rows."""
        numbers = self.frame[self.columns]
        for start in range(0, len(self.frame), rows):
            yield numbers.iloc[start : start + rows].to_numpy(dtype=float, na_value=np.nan)

    def others(self, names=None):
        """Columns of any kind."""
        names = self.left_out if names is None else names
        return {name: self.frame[name].to_numpy() for name in names}


def why_no_number(column) -> str | None:
    """Why a column of a frame is not read as numbers; None if it is."""
    pandas = needed("pandas", "excel")
    if column.isna().all():
        return "empty"
    if pandas.api.types.is_numeric_dtype(column):
        numbers = column.to_numpy()
        counts = numbers[0] in (0, 1) and np.array_equal(
            numbers, numbers[0] + np.arange(len(column))
        )
        return COUNTER if counts and str(column.name).startswith("Unnamed: ") else None
    if pandas.api.types.is_datetime64_any_dtype(column):
        return "dates"
    known = column.dropna()
    numbers = pandas.to_numeric(known, errors="coerce")
    fault = known[numbers.isna()]
    if len(fault) and numbers.notna().mean() > 0.5:
        # Row 1 of a sheet is the header, and pandas counts from 0.
        return f"{str(fault.iloc[0])!r} in row {int(fault.index[0]) + 2}"
    return "text"
