"""Errors of our own, and warnings that name the user's own line, whatever the way in."""

import sys
import warnings
from pathlib import Path

# Frames of these packages are between the user's line and the warning: ours, and the one through
# which we may be called (wrapped methods, pipelines, searches).
_BETWEEN = ("mercer", "sklearn")


class InvalidParameterError(ValueError, TypeError):
    """A parameter of an estimator has a type or a value that it cannot have."""


class MercerWarning(UserWarning):
    """What mercer warns of: the result is valid, and may not be what was meant."""


class TableWarning(MercerWarning):
    """A table was read in one of several ways that make sense."""


def tell(message: str, category: type[Warning] = MercerWarning) -> None:
    """Warn at the innermost line that is neither ours nor scikit-learn's."""
    ours = tuple(folder_of(name) for name in _BETWEEN if name in sys.modules)
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(ours):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def folder_of(package: str) -> str:
    """The folder that an imported package was read from."""
    return str(Path(sys.modules[package].__file__ or "").parent)
