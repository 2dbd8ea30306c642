"""Images as arrays: grey values or colors between 0 and 1."""

from os import PathLike
from pathlib import Path

import numpy as np

SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".pgm", ".ppm", ".webp"}


def is_image(path: Path) -> bool:
    """Whether the name is that of an image file."""
    return path.is_file() and path.suffix.lower() in SUFFIXES


def list_images(folder: Path) -> list[Path]:
    """The images of a folder in the order of their names, or none."""
    return sorted(file for file in folder.iterdir() if is_image(file)) if folder.is_dir() else []


def read_image(path: str | PathLike[str], color: bool | None = None) -> np.ndarray:
    """An image as grey values (height, width) or colors (height, width, 3), from 0 to 1.

    Parameters
    ----------
    path : str or Path
    color : bool or None
        None for colors where the file has any. Transparency is dropped.
    """
    image = _open(Path(path))
    color = _has_color(image) if color is None else color
    if not color and image.mode.startswith(("I", "F")):
        return _wide_grey(image)
    return np.asarray(image.convert("RGB" if color else "L"), dtype=float) / 255


def read_images(files: list[Path]) -> np.ndarray:
    """Images of one size, (n, height, width), with a last axis of 3 where any has color."""
    color = any(_has_color(_open(file)) for file in files)
    images = []
    for file in files:
        images.append(read_image(file, color))
        if images[-1].shape != images[0].shape:
            raise ValueError(
                f"{file.name} is {size_of(images[-1])} pixels and {files[0].name} is "
                f"{size_of(images[0])}. All images of a folder need one size."
            )
    return np.array(images)


def size_of(image) -> str:
    """Width and height, as people write them."""
    return f"{image.shape[1]} x {image.shape[0]}"


def _open(path: Path):
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


def _wide_grey(image) -> np.ndarray:
    """Grey values of more than eight bits; those of 16 have 65535 as white."""
    values = np.asarray(image, dtype=float)
    return values if image.mode == "F" else values / 65535
