"""Errors of our own, and warnings that name the user's own line, whatever the way in."""

import contextlib
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class MercerError(Exception):
    """What mercer refuses, whatever the reason: all errors of its own are of this kind.

    Attributes
    ----------
    parameter : str or None
        The parameter that is wrong or would help, where it is one.
    """

    def __init__(self, *args: Any, parameter: str | None = None):
        super().__init__(*args)
        self.parameter = parameter


class InvalidParameterError(MercerError, ValueError, TypeError):
    """A parameter of an estimator has a type or a value that it cannot have."""


class InvalidRowsError(MercerError, ValueError, TypeError):
    """Data are no rows of numbers: missing values, dates, texts, rows of different lengths."""


class CheckpointError(MercerError, ValueError):
    """A checkpoint is damaged, or is that of another fit."""


class ModelFileError(MercerError, ValueError):
    """A file that is no intact model file, or a model that no file can hold."""


class MercerWarning(UserWarning):
    """What mercer warns of: the result is valid, and may not be what was meant."""


class TableWarning(MercerWarning):
    """A table was read in one of several ways that make sense."""


@contextlib.contextmanager
def trials() -> Iterator[None]:
    """Fits that only try a width: that it is wrong is no news."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "gamma=", MercerWarning)
        yield


def tell(message: str, category: type[Warning] = MercerWarning) -> None:
    """Warn at the innermost line that is not ours, nor scikit-learn's or joblib's.

    Through those we may be called: wrapped methods, pipelines, searches; and through a context.
    """
    between = [sys.modules[name] for name in ("mercer", "sklearn", "joblib") if name in sys.modules]
    folders = [str(Path(module.__file__ or "").parent) for module in between]
    passed = (*folders, contextlib.__file__)
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(passed):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
