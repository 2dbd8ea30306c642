"""Libraries that only some uses need, imported when such a use is met."""

from importlib import import_module
from importlib.util import find_spec

# Packages whose modules have another name.
NAMES = {"skimage": "scikit-image"}


def needed(module: str, extra: str | None = None, use: str = "This"):
    """The module, or an ImportError that says what to install.

    Parameters
    ----------
    module : str
        Such as "pyarrow.parquet".
    extra : str or None
        The extra of mercer that brings it.
    use : str
        What needs it, as the subject of a sentence.
    """
    top = module.split(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != top:
            raise  # it is there, and something that it needs is not
        package = NAMES.get(top, top)
        beside = f", which mercer's extra {extra!r} brings" if extra else ""
        raise ImportError(
            f"{use} needs {package}, which is not installed. "
            f"Install it with pip install {package}{beside}."
        ) from error


def has(module: str) -> bool:
    """Whether a top-level module is installed, without importing it."""
    return find_spec(module) is not None
