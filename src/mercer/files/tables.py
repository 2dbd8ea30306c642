"""What is read whole into memory: sheets of Excel files, images, and small files of any kind."""

import shutil
import weakref
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np

from .._packages import needed
from .delimited import CSVSource
from .layout import TextFormat

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
        Columns that are not numbers, or were not asked for; of images their file names, and the
        folder of each where there are several.
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
        Any file that `open_source` takes, an image, or a folder of images of one size, or of
        folders of them, such as one a class.
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
    others = {"file": np.array([file.name for file in files])}
    if files[0].parent != Path(path) != files[0]:
        others["folder"] = np.array([file.parent.name for file in files])
    return Table(np.array(images).reshape(len(files), -1), None, others, images[0].shape)


def image_files(path: str | PathLike[str]) -> list[Path]:
    """The image that a path is, those of a folder by name, or those of its folders; else none."""
    path = Path(path)
    for found in (path.iterdir(), path.glob("*/*")) if path.is_dir() else ([path],):
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
            f"of file. ({error})"
        ) from error
    return image


def _has_color(image) -> bool:
    """Whether a file stores colors; grey values stored as colors count as colors."""
    return image.mode in ("P", "RGB", "RGBA", "CMYK", "YCbCr", "LAB", "HSV")


class SheetSource(CSVSource):
    """A sheet of an Excel file, read as the text table that it would be saved as.

    So the same table has the same columns in either form.

    Parameters
    ----------
    path : Path
    columns : list of str or None
        None for all columns of numbers.
    name : str or None
        Of the sheet; None for the first one.
    format : TextFormat or None
        Of cells that are text.
    """

    def __init__(self, path: Path, columns=None, name=None, format: TextFormat | None = None):
        pandas = needed("pandas", "excel", path.name)
        if path.suffix.lower() == ".xlsx":
            needed("openpyxl", "excel", path.name)
        try:
            sheet = 0 if name is None else name
            frame = pandas.read_excel(path, sheet_name=sheet, header=None, dtype=object)
        except (ValueError, OSError, KeyError) as error:
            raise ValueError(f"{path.name} cannot be read as an Excel file: {error}") from error
        folder = mkdtemp(prefix="mercer-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        text = Path(folder, f"{path.name}.tsv")
        frame.to_csv(text, sep="\t", index=False, header=False, encoding="utf-8")
        # Cells that hold numbers have points.
        plain = replace(format or TextFormat(), encoding="utf-8", decimal=".")
        super().__init__(text, columns, plain, path.name)
        self.n_rows = len(frame) - self.layout.header
