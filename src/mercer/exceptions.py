"""Errors of our own, and warnings that name the user's own line, whatever the way in."""

import re
import sys
import warnings
from pathlib import Path
from typing import Any

# Frames of these packages are between the user's line and the warning: ours, and the one through
# which we may be called (wrapped methods, pipelines, searches).
_BETWEEN = ("mercer", "sklearn", "joblib")
_NUMBER = re.compile(r"\d[\d.,]*(?:e[-+]?\d+)?")


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


def tell(message: str, category: type[Warning] = MercerWarning) -> None:
    """Warn once at the innermost line that is not ours, nor scikit-learn's or joblib's."""
    ours = tuple(folder_of(name) for name in _BETWEEN if name in sys.modules)
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(ours):
        level, frame = level + 1, frame.f_back
    if not said_before(frame, message, category):
        warnings.warn(message, category, stacklevel=level)


def said_before(frame, message: str, category: type[Warning]) -> bool:
    """Whether this line was told the same before, numbers apart, and wants to hear it once.

    Python's own memory serves neither folds, whose messages differ in their numbers, nor
    scikit-learn, which sets the filters anew for every fold and so clears it. Like Python's it is
    kept in the user's module.
    """
    if not heard_once(frame, message, category):
        return False
    told = frame.f_globals.setdefault("__mercer_told__", set())
    key = (frame.f_code.co_filename, frame.f_lineno, category, _NUMBER.sub("#", message))
    before = key in told
    told.add(key)
    return before


def heard_once(frame, message: str, category: type[Warning]) -> bool:
    """Whether the user's filters show a warning once for a line, rather than always or never."""
    module = str(frame.f_globals.get("__name__", ""))
    for action, text, kind, where, line in warnings.filters:
        fits = line in (0, frame.f_lineno) and issubclass(category, kind)
        if fits and matches(text, message) and matches(where, module):
            return action in ("default", "module", "once")
    return True


def matches(pattern, text: str) -> bool:
    """Whether a pattern of a filter, which may be none or a text, fits."""
    if pattern is None or isinstance(pattern, str):
        return pattern in (None, text)
    return pattern.match(text) is not None


def folder_of(package: str) -> str:
    """The folder that an imported package was read from."""
    return str(Path(sys.modules[package].__file__ or "").parent)
