"""The `mercer` command: kernel PCA from the shell.

A command is one file: `SUMMARY` and `EXAMPLES` for its help, `configure(parser)` for its options
and `run(args)`, which returns a `Result`. The frame does the rest, the same for all of them:

- results go to stdout, as text or, with ``--json``, as one JSON document; messages, warnings and
  progress go to stderr;
- exit code 0 is success, 1 a job that failed, 2 wrong usage, 130 an interrupt;
- an error is one line that says what was wrong and what to do, a traceback only with ``--debug``;
- output files appear whole or not at all, and replace others only with ``--force``.

Commands import numerics inside their functions, so that ``mercer --help`` does not wait for them.
A new command is a file and a line in `mercer.cli.frame.COMMANDS`, which is also the list that the
tests run over.
"""

import os
import sys
from collections.abc import Sequence

# Exit codes from here on say which signal ended the job.
BY_SIGNAL = 128


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; an interrupt while it is being imported ends it without a traceback."""
    try:
        from .frame import main as run
    except KeyboardInterrupt:
        return 130
    code = run(argv)
    if code > BY_SIGNAL:
        end_at_once(code)
    return code


def end_at_once(code: int) -> None:
    """End the process where the interpreter would first wait for a call of LAPACK."""
    from ..compute.linalg import still_working

    if still_working():
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(code)


__all__ = ["main"]
