"""The `mercer` command: kernel PCA from the shell.

It parses, calls the library and writes. `commands.toml` declares every command with its options;
what runs it is a function of the parsed options that returns a `Result`, imported when it runs.
The frame does the rest, the same for all of them:

- results go to stdout, as text or, with ``--json``, as one JSON document; messages, warnings and
  progress go to stderr;
- exit code 0 is success, 1 a job that failed, 2 wrong usage, 130 an interrupt;
- an error is one line that says what was wrong and what to do, a traceback only with ``--debug``;
- output files appear whole or not at all, and replace others only with ``--force``.

A new command is a function that runs it and a table in `commands.toml`, over which the tests run.
"""

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; an interrupt while it is being imported ends it without a traceback."""
    try:
        from .frame import main as run
    except KeyboardInterrupt:
        return 130
    return run(argv)


__all__ = ["main"]
