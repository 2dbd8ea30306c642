"""Exit codes, every error as one line, and signals as errors."""

import json
import re
import signal
import traceback
from collections.abc import Sequence

from ..exceptions import InvalidParameterError, MercerError, to_stderr

SUCCESS, FAILED, WRONG_USAGE = 0, 1, 2


class JobError(Exception):
    """The job cannot be done; the message says why and what to do."""


class UsageError(Exception):
    """The options contradict each other; the message says which and what to give instead.

    Parameters
    ----------
    message : str
    command : str or None
        The command whose help to read, such as ``mercer fit``; None for the one that runs.
    """

    def __init__(self, message: str, command: str | None = None):
        super().__init__(message)
        self.command = command


class Stopped(BaseException):
    """A signal asks to stop.

    Not KeyboardInterrupt, on which online methods return the model so far: a command that is
    stopped leaves nothing behind.
    """

    def __init__(self, number: int):
        super().__init__(signal.Signals(number).name)
        # What shells report for a program that a signal has ended.
        self.exit_code = 128 + number


# Errors whose message is written for users; all others are defects.
EXPECTED = (JobError, UsageError, ValueError, ImportError, RuntimeError, OSError, UserWarning)

# Parameters of the library, and the options that stand for them here.
OPTIONS = {
    "n_components": "--components",
    "n_clusters": "--clusters",
    "basis": "--method",
    "eigen_solver": "--method",
    "max_iter": "--passes",
    "n_neighbors": "--neighbors",
    "n_jobs": "--threads",
    "name": "--array",
}
SAME = "tol memory device encoding decimal thousands header missing checkpoint"
OPTIONS |= {name: f"--{name}" for name in SAME.split()}
# Values that have another name here; a basis of all points is the exact method.
VALUES = {"--header True": "--header", "--header False": "--no-header"}
VALUES |= {"--method points": "--method exact"}
# Messages of the library write a parameter as name=value, or by a name that is no English word.
NAMED = re.compile(
    rf"\b({'|'.join(OPTIONS)})=('[^']*'|True|False| |)"
    r"|\b(n_components|max_iter|tol)\b|(?<=aise )(memory)\b"
)


def report_failure(
    error: BaseException,
    words: Sequence[str] = (),
    command: str = "mercer",
    warnings: Sequence[str] = (),
) -> int:
    """Print one line about an error and return the exit code.

    Parameters
    ----------
    error : exception
    words : sequence of str
        The command line: ``--debug`` in it asks for the traceback, ``--json`` for a JSON document
        on stdout too.
    command : str
        The command whose help to read, such as ``mercer fit``.
    warnings : sequence of str
        Warnings so far.
    """
    if "--debug" in words:
        to_stderr("".join(traceback.format_exception(error)).rstrip())
    if isinstance(error, Stopped):
        text, code = f"stopped by {error}; no file is half written", error.exit_code
        to_stderr(f"mercer: {text}")
    else:
        text, code = one_line(error), FAILED
        if isinstance(error, UsageError | InvalidParameterError):
            command = (isinstance(error, UsageError) and error.command) or command
            end = "" if text.endswith("?") else "."
            text, code = f"{text.rstrip('.')}{end} See {command} --help", WRONG_USAGE
        to_stderr(f"mercer: error: {text}")
    if "--json" in words:
        failure = {"error": {"message": text, "exit_code": code}, "warnings": list(warnings)}
        print(json.dumps(failure))
    return code


def one_line(error: BaseException) -> str:
    """The message of an error or warning on one line, with options in place of parameters."""
    if isinstance(error, MemoryError):
        return "out of memory. Give a smaller --memory, or --method landmarks."
    text = " ".join(str(error).split())
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, EXPECTED) and text:
        text = NAMED.sub(as_option, text)
        parameter = error.parameter if isinstance(error, MercerError) else None
        if isinstance(error, InvalidParameterError) and parameter is not None:
            return f"{OPTIONS.get(parameter, f'--{parameter}')}: {text}"
        return f"{text} Give --missing drop or --missing mean." if parameter == "missing" else text
    return f"unexpected {type(error).__name__}: {text}. Run again with --debug and report it."


def as_option(match: re.Match) -> str:
    """A parameter of the library, with its value if it has one, as an option."""
    name, value, alone, memory = match.groups()
    if name is None:
        return OPTIONS[alone or memory]
    text = OPTIONS[name] + " " + value.strip(" '")
    return VALUES.get(text, text)
