"""Libraries that only some uses need, imported when such a use is met."""

from importlib import import_module
from importlib.util import find_spec


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
        beside = f", which mercer's extra {extra!r} brings" if extra else ""
        raise ImportError(
            f"{use} needs {top}, which is not installed. Install it with pip install {top}{beside}."
        ) from error


def has(module: str) -> bool:
    """Whether a top-level module is installed, without importing it."""
    return find_spec(module) is not None
