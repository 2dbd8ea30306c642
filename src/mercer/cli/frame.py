"""The frame of all commands: the parser, and one run from arguments to exit code."""

import os
import signal
import sys
import warnings
from argparse import ArgumentError, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from types import ModuleType
from typing import NoReturn

from . import (
    cluster,
    compare,
    demo,
    denoise,
    describe,
    embed,
    explain,
    fit,
    inverse,
    mds,
    plan,
    report,
    significance,
    transform,
)
from .completion import SHELLS, completion_script
from .failures import SUCCESS, WRONG_USAGE, Manner, UsageError, one_line, report_failure
from .messages import say
from .options import add_common
from .results import Result, to_json
from .signals import Stopped, stopped_by_signals
from .standard_streams import is_stdout, stdin_as_file
from .suggestions import did_you_mean

COMMANDS: dict[str, ModuleType] = {
    "fit": fit,
    "transform": transform,
    "inverse": inverse,
    "describe": describe,
    "explain": explain,
    "significance": significance,
    "report": report,
    "plan": plan,
    "compare": compare,
    "cluster": cluster,
    "embed": embed,
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
        return SUCCESS if isinstance(error, BrokenPipeError) else report_failure(error, Manner())
    return code


def run(argv: Sequence[str] | None) -> int:
    """Parse, run and print; whatever goes wrong becomes a line and an exit code."""
    words = sys.argv[1:] if argv is None else argv
    # Known before the options are parsed, which may fail.
    manner = Manner(json="--json" in words, debug="--debug" in words)
    try:
        parser = make_parser()
        args = parser.parse_args(words)
        if args.run is None or args.version or args.verbose:
            return run_without_command(parser, args)
        manner.command = args.command
        args.accounts = []
        with stopped_by_signals(), heard_warnings(args.quiet, manner.warnings):
            with stdin_as_file(args):
                result = args.run(args)
            show(args, result, manner.warnings)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else WRONG_USAGE
    except BrokenPipeError:
        raise
    except KeyboardInterrupt:  # before or after the command itself
        return report_failure(Stopped(signal.SIGINT), manner)
    except (Exception, Stopped) as error:
        return report_failure(error, manner)
    return SUCCESS


def run_without_command(parser: ArgumentParser, args: Namespace) -> int:
    """Versions, a script for the shell, or the help that a newcomer is after."""
    if args.version:
        print(version_text(args.verbose))
    elif args.verbose:
        parser.error("--verbose goes with --version")
    elif args.print_completion:
        print(completion_script(make_parser(), args.print_completion))
    else:
        parser.print_help()
    return SUCCESS


def show(args: Namespace, result: Result, heard: list[str]) -> None:
    """Say what was made of the tables, and print a result.

    It goes to stdout, or to stderr where stdout holds the output itself.
    """
    for line in filter(None, (account.line() for account in args.accounts)):
        say(args, line)
    tables = [account.facts() for account in args.accounts]
    facts = result.facts | ({"tables": tables} if tables else {}) | {"warnings": heard}
    output = vars(args).get("output")
    if not is_stdout(output):
        print(to_json(facts) if args.json else result.text)
        return
    facts["output"], text = "stdout", result.text.replace(str(output), "stdout")
    say(args, to_json(facts) if args.json else text)


def make_parser() -> ArgumentParser:
    """The parser of all commands."""
    parser = Parser(prog="mercer", description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument("--version", action="store_true", help="show the version and exit")
    parser.add_argument(
        "--verbose",
        action="store_true",
        help="with --version: libraries, threads, devices and memory as well, for bug reports",
    )
    parser.add_argument(
        "--print-completion",
        choices=SHELLS,
        metavar="SHELL",
        help="print a script that completes commands and options in %(choices)s",
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
        one.set_defaults(run=module.run, command=one.prog, parser=one)
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

    def parse_args(self, args=None, namespace=None):
        """As usual; what is left over is an error of the command that it was meant for."""
        found, rest = self.parse_known_args(args, namespace)
        if rest:
            parser = vars(found).get("parser", self)
            options = [name for action in parser._actions for name in action.option_strings]
            near = did_you_mean(rest[0].partition("=")[0], options)
            parser.error(f"unrecognized arguments: {' '.join(rest)}.{near}")
        return found

    def error(self, message: str) -> NoReturn:
        """Say what was wrong; the frame says where to read on."""
        raise UsageError(message, self.prog)

    def _check_value(self, action, value):
        if action.choices is not None and value not in action.choices:
            names = ", ".join(map(str, action.choices))
            near = did_you_mean(str(value), map(str, action.choices))
            raise ArgumentError(action, f"invalid choice: {value!r}.{near} Choose from {names}")


def version_text(verbose: bool) -> str:
    """The version, and what a bug report needs besides; imported only when it is asked for."""
    if verbose:
        from .._versions import versions_text

        return versions_text()
    from .. import __version__

    return f"mercer {__version__}"


@contextmanager
def heard_warnings(quiet: bool, heard: list[str]) -> Iterator[None]:
    """Collect warnings meant for users, and print each as a line on stderr unless quiet."""

    def hear(message, category, *_place):
        if issubclass(category, UserWarning) and one_line(message) not in heard:
            heard.append(one_line(message))
            if not quiet:
                print(f"mercer: warning: {heard[-1]}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always")  # each is told once, and in every run
        warnings.showwarning = hear
        yield
