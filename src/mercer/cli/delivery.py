"""Columns as the result of a command: to a file where one is named, else to stdout."""

import csv
import io
from argparse import Namespace
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path

import numpy as np

from ..files import open_sink
from .failures import JobError
from .messages import say
from .outputs import whole_file
from .results import Result, lines

Columns = dict[str, np.ndarray]
Pairs = list[tuple[str, object]]


def draft_of(args: Namespace):
    """A draft of ``args.output`` as a context; of None where the result goes to stdout."""
    return nullcontext() if args.output is None else whole_file(args.output, args.force)


def deliver(
    args: Namespace, draft: Path | None, columns: Columns, facts: dict, summary: Pairs
) -> Result:
    """The result of a command whose outcome is columns.

    Parameters
    ----------
    args : Namespace
    draft : Path or None
        Where to write; None for stdout, which then gets the columns, and stderr the summary.
    columns : dict of str to array of shape (n,)
    facts : dict
        What is known beside the columns.
    summary : list of (str, object)
        The same for people, names and values.
    """
    if draft is not None:
        write_columns(draft, columns)
        facts = facts | {"output": str(args.output)}
        return Result(facts, lines([*summary, ("written", args.output)]))
    if not args.json:
        say(args, lines(summary))
    return Result(facts | {"result": columns}, as_csv(columns))


def deliver_blocks(
    args: Namespace, draft: Path | None, blocks: Iterable, names: list[str], kept: Columns
) -> Result:
    """The result of a command whose outcome is rows, written as they come.

    Parameters
    ----------
    args, draft : Namespace, Path or None
    blocks : iterable of arrays
    names : list of str
        Of their columns.
    kept : dict of str to array
        Columns of the table that go before them.
    """
    if draft is None:
        rows = np.concatenate([*some(blocks, args.data)])
        columns = beside(kept, matrix_columns(rows, names), len(rows))
        return deliver(args, None, columns, {"rows": len(rows)}, [("rows", f"{len(rows):,}")])
    count = write_blocks(draft, some(blocks, args.data), names, kept)
    names = [*kept, *names]
    facts = {"rows": count, "names": names, "output": str(args.output)}
    size = f"{count:,} of {len(names)} columns"
    return Result(facts, lines([("rows", size), ("written", args.output)]))


def some(blocks: Iterable, name: str) -> Iterable:
    """The blocks, of which there must be one."""
    empty = True
    for block in blocks:
        empty = False
        yield block
    if empty:
        raise JobError(f"{name} has no rows.")


def beside(kept: Columns, columns: Columns, rows: int) -> Columns:
    """Columns of the table and of the result, side by side."""
    clash = sorted(set(kept) & set(columns))
    if clash:
        raise JobError(f"The result would have two columns called {clash[0]!r}. Keep another one.")
    return {name: column[:rows] for name, column in kept.items()} | columns


def write_blocks(path: Path, blocks: Iterable, names: list[str], kept: Columns) -> int:
    """Write rows block by block, and count them."""
    blocks = iter(blocks)
    first = next(blocks)
    with open_sink(path, len(names), first.dtype, names, kept) as sink:
        sink.write(first)
        for block in blocks:
            sink.write(block)
    return sink.n_rows


def matrix_columns(S, names: list[str]) -> Columns:
    """The columns of a matrix by name."""
    return dict(zip(names, np.asarray(S).T, strict=True))


def write_columns(path: Path, columns: Columns) -> None:
    """Write columns in the format that the suffix names; `.npy` has the numbers only."""
    kind = path.suffix.lower()
    if kind == ".npy":
        np.save(path, stacked(columns))
    elif kind == ".csv":
        path.write_text(as_csv(columns) + "\n", encoding="utf-8")
    else:
        write_parquet(path, columns)


def stacked(columns: Columns) -> np.ndarray:
    """The columns of numbers as a matrix; a single one as a vector."""
    numbers = [column for column in columns.values() if column.dtype.kind in "biuf"]
    return numbers[0] if len(numbers) == 1 else np.column_stack(numbers)


def as_csv(columns: Columns) -> str:
    """A header and a line a row, every number with the digits that tell it apart."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue().rstrip("\n")


def write_parquet(path: Path, columns: Columns) -> None:
    """A Parquet file with the columns of these names."""
    from .._packages import needed

    table = needed("pyarrow", "files").table(columns)
    needed("pyarrow.parquet", "files").write_table(table, path)
