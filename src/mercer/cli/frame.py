"""The frame of all commands: the parser, and one run from arguments to exit code."""

import os
import signal
import sys
import warnings
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from types import ModuleType
from typing import NoReturn

from . import cluster, compare, demo, denoise, describe, fit, inverse, mds, plan, report, transform
from .failures import SUCCESS, WRONG_USAGE, one_line, report_failure
from .options import add_common
from .results import to_json
from .signals import Stopped, stopped_by_signals

COMMANDS: dict[str, ModuleType] = {
    "fit": fit,
    "transform": transform,
    "inverse": inverse,
    "describe": describe,
    "report": report,
    "plan": plan,
    "compare": compare,
    "cluster": cluster,
    "mds": mds,
    "denoise": denoise,
    "demo": demo,
}
DESCRIPTION = "Kernel PCA that scales, with a certificate of error on every result."
EPILOG = """\
Results go to stdout, messages to stderr. Exit codes: 0 success, 1 the job failed, 2 wrong usage,
130 interrupted. Every command has a --help with an example.

example:
  mercer demo
"""
FILES_NOTE = "\nThe files of examples are those that mercer demo leaves behind.\n"


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
        if sys.stdout is not None:  # as it is where the shell closed it
            sys.stdout.flush()
    except OSError as error:
        # The interpreter flushes once more at its end, and that must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        # A reader that has seen enough is no failure of this job.
        return SUCCESS if isinstance(error, BrokenPipeError) else report_failure(error, False)
    return code


def run(argv: Sequence[str] | None) -> int:
    """Parse, run and print; whatever goes wrong becomes a line and an exit code."""
    debug = False
    try:
        parser = make_parser()
        args = parser.parse_args(argv)
        if args.version:
            print(version_text(args.verbose))
            return SUCCESS
        if args.verbose:
            parser.error("--verbose goes with --version")
        if args.run is None:
            parser.error("the following arguments are required: COMMAND")
        debug = args.debug
        with stopped_by_signals(), heard_warnings(args.quiet) as heard:
            result = args.run(args)
        print(to_json(result.facts | {"warnings": heard}) if args.json else result.text)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else WRONG_USAGE
    except BrokenPipeError:
        raise
    except KeyboardInterrupt:  # before or after the command itself
        return report_failure(Stopped(signal.SIGINT), debug)
    except (Exception, Stopped) as error:
        return report_failure(error, debug)
    return SUCCESS


def make_parser() -> ArgumentParser:
    """The parser of all commands."""
    parser = Parser(prog="mercer", description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument("--version", action="store_true", help="show the version and exit")
    parser.add_argument(
        "--verbose",
        action="store_true",
        help="with --version: libraries, threads, devices and memory as well, for bug reports",
    )
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(metavar="COMMAND", title="commands")
    for name, module in COMMANDS.items():
        one = commands.add_parser(
            name,
            help=module.SUMMARY,
            description=module.SUMMARY,
            epilog=f"example:\n{module.EXAMPLES}{FILES_NOTE if name != 'demo' else ''}",
        )
        module.configure(one)
        add_common(one)
        one.set_defaults(run=module.run)
    return parser


class Form(RawDescriptionHelpFormatter):
    """Examples keep their lines, and options have room beside their help."""

    def __init__(self, prog, **options):
        super().__init__(prog, max_help_position=28, **options)
        # argparse does not count that commands are indented more than options.
        self._action_max_length = 14


class Parser(ArgumentParser):
    """Options in full, and wrong usage as one line."""

    def __init__(self, **options):
        # An abbreviation that works today would break with the next option.
        super().__init__(formatter_class=Form, allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        """Say what was wrong and where to read on."""
        self.exit(WRONG_USAGE, f"mercer: error: {message.rstrip('.')}. See {self.prog} --help\n")


def version_text(verbose: bool) -> str:
    """The version, and what a bug report needs besides; imported only when it is asked for."""
    if verbose:
        from .._versions import versions_text

        return versions_text()
    from .. import __version__

    return f"mercer {__version__}"


@contextmanager
def heard_warnings(quiet: bool) -> Iterator[list[str]]:
    """Collect warnings meant for users, and print each as a line on stderr unless quiet."""
    heard: list[str] = []

    def hear(message, category, *_place):
        if issubclass(category, UserWarning):
            heard.append(one_line(message))
            if not quiet:
                print(f"mercer: warning: {heard[-1]}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = hear
        yield heard
