"""Libraries that only some formats need, imported when such a file is met."""

from importlib import import_module
from importlib.util import find_spec


def needed(module: str, extra: str):
    """The module, or an ImportError that says what to install."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.split(".")[0]
        raise ImportError(
            f"This needs {package}, which is not installed. "
            f"Install it with pip install 'mercer[{extra}]'."
        ) from error


def has(module: str) -> bool:
    """Whether a top-level module is installed, without importing it."""
    return find_spec(module) is not None
