"""The frame of all commands: one run from arguments to exit code."""

import json
import os
import shutil
import signal
import sys
import traceback
import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path

from .._whole_file import raising, telling
from ..exceptions import InvalidParameterError, MercerError, to_stderr
from .parser import COMMANDS, DASH, OPTIONS, JobError, UsageError, in_options, make_parser

# Exit codes.
SUCCESS, FAILED, WRONG_USAGE = 0, 1, 2
# What files of other kinds than text begin with.
MAGIC = {
    b"PAR1": ".parquet",
    b"ARROW1": ".feather",
    b"\x93NUMPY": ".npy",
    b"\x1f\x8b": ".csv.gz",
    b"\xd0\xcf\x11\xe0": ".xls",
}
# What errors of stdout call it.
STDOUT = Path("<stdout>")
# Errors whose message is written for users; all others are defects.
EXPECTED = (JobError, UsageError, ValueError, ImportError, RuntimeError, OSError, UserWarning)


class Stopped(BaseException):
    """A signal asks to stop.

    Not KeyboardInterrupt, on which online methods return the model so far: a command that is
    stopped leaves nothing behind.
    """

    def __init__(self, number: int):
        super().__init__(signal.Signals(number).name)
        # What shells report for a program that a signal has ended.
        self.exit_code = 128 + number


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    Parameters
    ----------
    argv : sequence of str or None
        The arguments after the program's name; None for those of this process.
    """
    if isinstance(sys.stdout, TextIOWrapper):
        # A name that the terminal's encoding lacks is spelled out, and no reason to fail.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = run(argv)
        with telling("stdout", STDOUT):
            if sys.stdout is not None:  # as it is where the shell closed it
                sys.stdout.flush()
    except OSError as error:
        # The interpreter flushes once more at its end, and that must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        # A closed pipe is not an error.
        return SUCCESS if isinstance(error, BrokenPipeError) else report_failure(error)
    if code > 128:  # ended by a signal, and the interpreter would first wait for a call of LAPACK
        from ..compute.linalg import still_working  # numerics, for which no help waits

        if still_working():
            os._exit(code)
    return code


def run(argv: Sequence[str] | None) -> int:
    """Parse, run and print; whatever goes wrong becomes a line and an exit code."""
    words = sys.argv[1:] if argv is None else argv
    command = " ".join(["mercer", *(word for word in words[:1] if word in COMMANDS)])
    heard: list[str] = []
    try:
        parser = make_parser()
        args = parser.parse_args(words)
        if args.run is None or args.version or args.verbose:
            with telling("stdout", STDOUT):
                return run_without_command(parser, args)
        from .outputs import output_files  # numerics, for which no help waits

        args.table = None
        # Shells let their background jobs ignore SIGINT, and so do we.
        stopping = (signal.SIGINT, signal.SIGTERM)
        heeded = [n for n in stopping if signal.getsignal(n) is not signal.SIG_IGN]
        with raising(Stopped, heeded), heard_warnings(args.quiet, heard):
            with stdin_as_file(args), output_files(args):
                result = args.run(args)
            with telling("stdout", STDOUT):
                result.show(args, heard)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else WRONG_USAGE
    except BrokenPipeError:
        raise
    except KeyboardInterrupt:  # before or after the command itself
        return report_failure(Stopped(signal.SIGINT), words, command, heard)
    except (Exception, Stopped) as error:
        return report_failure(error, words, command, heard)
    return SUCCESS


def run_without_command(parser: ArgumentParser, args: Namespace) -> int:
    """Versions, a script for the shell, or the help that a newcomer is after."""
    if args.version and args.verbose:
        from .._packages import show_versions

        show_versions()
    elif args.version:
        from .. import __version__

        print(f"mercer {__version__}")
    elif args.verbose:
        parser.error("--verbose goes with --version")
    elif args.print_completion:
        from .._packages import needed

        shtab = needed("shtab", "completion", "Completion")
        print(shtab.complete(make_parser(), shell=args.print_completion))
    else:
        parser.print_help()
    return SUCCESS


@contextmanager
def heard_warnings(quiet: bool, heard: list[str]) -> Iterator[None]:
    """Collect warnings meant for users, and print each as a line on stderr unless quiet."""

    def hear(message, category, *_place):
        if issubclass(category, UserWarning) and one_line(message) not in heard:
            heard.append(one_line(message))
            if not quiet:
                to_stderr(f"mercer: warning: {heard[-1]}")

    with warnings.catch_warnings():
        warnings.simplefilter("always")  # each is told once, and in every run
        warnings.showwarning = hear
        yield


@contextmanager
def stdin_as_file(args: Namespace) -> Iterator[None]:
    """Where DATA is ``-``, a file with what stdin gives, for as long as the command runs.

    Rows are read more than once, which a pipe does not allow.
    """
    if vars(args).get("data") != DASH:
        yield
        return
    start = sys.stdin.buffer.read(8)
    if not start:
        raise JobError("stdin is empty. Pipe a table into the command, or name a file.")
    if start.startswith(b"PK"):
        raise JobError("stdin holds an archive (.npz or .xlsx). Name it as a file instead.")
    suffix = next((kind for magic, kind in MAGIC.items() if start.startswith(magic)), ".csv")
    from .outputs import temporary_folder  # numerics, for which no help waits

    with temporary_folder() as folder:
        path = folder / f"stdin{suffix}"
        with path.open("wb") as file:
            file.write(start)
            shutil.copyfileobj(sys.stdin.buffer, file)
        args.data = str(path)
        yield


def report_failure(error, words=(), command="mercer", warnings=()) -> int:
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
    text = " ".join(str(error).split()).removesuffix(vars(error).get("python", "")).strip()
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, EXPECTED) and text:
        text = in_options(text)
        parameter = error.parameter if isinstance(error, MercerError) else None
        if isinstance(error, InvalidParameterError) and parameter is not None:
            return f"{OPTIONS.get(parameter, f'--{parameter}')}: {text}"
        return f"{text} Give --missing drop or --missing mean." if parameter == "missing" else text
    return f"unexpected {type(error).__name__}: {text}. Run again with --debug and report it."
