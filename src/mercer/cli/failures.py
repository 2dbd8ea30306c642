"""What can go wrong: exit codes, and every error as one line."""

import sys
import traceback

from ..exceptions import InvalidParameterError
from .signals import Stopped

SUCCESS, FAILED, WRONG_USAGE = 0, 1, 2


class JobError(Exception):
    """The job cannot be done; the message says why and what to do."""


class UsageError(Exception):
    """The options make no sense together; the message says which and what to give instead."""


# Errors whose message is written for users; all others are defects.
EXPECTED = (JobError, UsageError, ValueError, ImportError, RuntimeError, OSError, UserWarning)

# The library names parameters in its messages; here they are options.
OPTIONS = (
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


def report_failure(error: BaseException, debug: bool) -> int:
    """Print one line about an error, after its traceback if asked, and return the exit code."""
    if debug:
        traceback.print_exception(error)
    if isinstance(error, Stopped):
        print(f"mercer: stopped by {error}; no file is half written", file=sys.stderr)
        return error.exit_code
    print(f"mercer: error: {one_line(error)}", file=sys.stderr)
    return WRONG_USAGE if is_wrong_usage(error) else FAILED


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
