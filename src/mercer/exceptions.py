"""Errors, warnings and messages of mercer; warnings point at the line of the user's code."""

import contextlib
import io
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class MercerError(Exception):
    """Base class of all errors of mercer.

    Attributes
    ----------
    parameter : str or None
        The parameter that is wrong or would help, if there is one.
    """

    def __init__(self, *args: Any, parameter: str | None = None):
        super().__init__(*args)
        self.parameter = parameter


class InvalidParameterError(MercerError, ValueError, TypeError):
    """A parameter of an estimator has a type or a value that it cannot have."""


class InvalidRowsError(MercerError, ValueError, TypeError):
    """Input is not a numeric 2-D array: missing values, dates, texts, unequal rows."""


class CheckpointError(MercerError, ValueError):
    """A checkpoint is damaged, or belongs to another fit."""


class ModelFileError(MercerError, ValueError):
    """A file is not an intact model file, or a model cannot be saved."""


class MercerWarning(UserWarning):
    """Base class of warnings: the result is valid, but may not be what was meant."""


class TableWarning(MercerWarning):
    """A table was read in one of several possible ways."""


@contextlib.contextmanager
def trials() -> Iterator[None]:
    """Ignore warnings about gamma in fits that only try a value."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "gamma=", MercerWarning)
        yield


def tell(message: str, category: type[Warning] = MercerWarning, python: str = "") -> None:
    """Warn at the line of the user's code.

    Frames of mercer, scikit-learn, joblib and contextlib are skipped: they may call us. `python`
    is a last sentence for users of the library: the command, which has no such names, drops it.
    """
    told: Any = category(f"{message} {python}".strip())
    told.python = python
    between = [sys.modules[name] for name in ("mercer", "sklearn", "joblib") if name in sys.modules]
    folders = [str(Path(module.__file__ or "").parent) for module in between]
    passed = (*folders, contextlib.__file__)
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(passed):
        level, frame = level + 1, frame.f_back
    with contextlib.suppress(ValueError):  # Python's where stderr is closed
        warnings.warn(told, stacklevel=level)


class Unfailing(io.TextIOBase):
    """A text stream that drops what it cannot write: no message is worth the end of a fit.

    Parameters
    ----------
    stream : text stream or None
        Such as stderr, which may be closed, a pipe that nobody reads, or None.
    """

    def __init__(self, stream: Any):
        self.stream = stream

    @property
    def encoding(self) -> str:  # type: ignore[override]
        with contextlib.suppress(Exception):
            return self.stream.encoding
        return "utf-8"

    def write(self, text: str) -> int:
        with contextlib.suppress(Exception):
            self.stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(Exception):
            self.stream.flush()

    def isatty(self) -> bool:
        with contextlib.suppress(Exception):
            return self.stream.isatty()
        return False


def to_stderr(text: str) -> None:
    """Print to stderr, if that can be written."""
    print(text, file=Unfailing(sys.stderr))
