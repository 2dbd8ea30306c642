"""What can go wrong: exit codes, and every error as one line."""

import json
import sys
import traceback
from dataclasses import dataclass, field

from ..exceptions import InvalidParameterError
from .signals import Stopped

SUCCESS, FAILED, WRONG_USAGE = 0, 1, 2


class JobError(Exception):
    """The job cannot be done; the message says why and what to do."""


class UsageError(Exception):
    """The options make no sense; the message says which and what to give instead.

    Parameters
    ----------
    message : str
    command : str or None
        Whose help to read, such as ``mercer fit``; None for that of the command that runs.
    """

    def __init__(self, message: str, command: str | None = None):
        super().__init__(message)
        self.command = command


# Errors whose message is written for users; all others are defects.
EXPECTED = (JobError, UsageError, ValueError, ImportError, RuntimeError, OSError, UserWarning)

# The library names parameters in its messages; here they are options.
OPTIONS = (
    ("give header=False", "give --no-header"),
    ("give header=True", "give --header"),
    ("give decimal=','", "give --decimal ,"),
    ("give missing='drop' or 'mean'", "give --missing drop or --missing mean"),
    ("Fill or leave out those rows first", "Give --missing drop or --missing mean, or fill them"),
    ("give its encoding, such as", "give its --encoding, such as"),
    ("the rows, leave it out.", "the rows, leave it out with --drop, or keep it with --id."),
    ("measurement, leave it out.", "measurement, leave it out with --drop, or keep it with --id."),
    ("Give name= one of these", "Name one of these with --array"),
    ("name= is for archives", "--array is for archives"),
    ("max_iter or tol", "--passes or --tol"),
    ("basis='landmarks'", "--method landmarks"),
    ("basis='points'", "--method exact"),
    ("eigen_solver='krylov'", "--method krylov"),
    ("n_components=", "--components "),
    ("n_clusters=", "--clusters "),
    ("memory=", "--memory "),
    ("aise memory", "aise --memory"),
    ("device=", "--device "),
    ("leave device out", "leave it out"),
)


@dataclass
class Manner:
    """How a command speaks of failure.

    Attributes
    ----------
    command : str
        What its help is asked of, such as ``mercer fit``.
    json, debug : bool
        Whether errors are JSON documents on stdout too, and whether tracebacks are shown.
    warnings : list of str
        What was warned of before.
    """

    command: str = "mercer"
    json: bool = False
    debug: bool = False
    warnings: list[str] = field(default_factory=list)


def report_failure(error: BaseException, manner: Manner) -> int:
    """Print one line about an error, after its traceback if asked, and return the exit code."""
    if manner.debug:
        traceback.print_exception(error)
    if isinstance(error, Stopped):
        text = f"stopped by {error}; no file is half written"
        print(f"mercer: {text}", file=sys.stderr)
        return documented(text, error.exit_code, manner)
    text, code = one_line(error), FAILED
    if is_wrong_usage(error):
        command = (isinstance(error, UsageError) and error.command) or manner.command
        end = "" if text.endswith("?") else "."
        text, code = f"{text.rstrip('.')}{end} See {command} --help", WRONG_USAGE
    print(f"mercer: error: {text}", file=sys.stderr)
    return documented(text, code, manner)


def documented(text: str, code: int, manner: Manner) -> int:
    """The exit code, after a JSON document about the error where JSON was asked for."""
    if manner.json:
        facts = {"error": {"message": text, "exit_code": code}, "warnings": manner.warnings}
        print(json.dumps(facts))
    return code


def one_line(error: BaseException) -> str:
    """The message of an error without line breaks."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, MemoryError):
        return "out of memory. Give a smaller --memory, or --method landmarks."
    text = " ".join(str(error).split())
    if isinstance(error, EXPECTED) and text:
        return with_options(text)
    return f"unexpected {type(error).__name__}: {text}. Run again with --debug and report it."


def with_options(text: str) -> str:
    """A message of the library in the words of the command line."""
    for parameter, option in OPTIONS:
        text = text.replace(parameter, option)
    return text


def is_wrong_usage(error: BaseException) -> bool:
    """Whether the command line is at fault, rather than the data or the machine."""
    return isinstance(error, UsageError | InvalidParameterError)
