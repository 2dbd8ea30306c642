"""What is said beside the result: lines on stderr."""

import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator


def say(args: Namespace, text: str) -> None:
    """Print to stderr unless the user asked for quiet."""
    if not args.quiet:
        print(text, file=sys.stderr)


def verbosity(args: Namespace) -> int:
    """1 where somebody watches a progress bar, else 0."""
    return int(not args.quiet and sys.stderr.isatty())


def watched(args: Namespace, blocks: Iterable, title: str, total: int | None) -> Iterator:
    """The same blocks of rows, with a progress bar where somebody watches."""
    from ..progress import RowBar

    with RowBar(verbosity(args)) as progress:
        yield from progress.over(blocks, title, total)
