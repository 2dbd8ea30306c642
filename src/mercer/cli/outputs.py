"""What a command returns: messages, results, and output files that are complete or absent."""

import csv
import io
import json
import os
import shutil
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from .._whole_file import check_folder, telling
from ..exceptions import Unfailing, to_stderr
from ..files import open_sink
from .parser import DASH, JobError, in_options

Columns = dict[str, np.ndarray]
Pairs = Sequence[tuple[str, object]]
# Options whose files a command writes, in the order in which it says so.
FILES = ("output", "save", "gaps", "chart", "atlas")


@dataclass(frozen=True)
class Result:
    """The outcome of a command.

    Attributes
    ----------
    facts : dict
        One JSON document; arrays and NumPy numbers are allowed.
    said : str, or sequence of (str, object)
        The same for people: a text, or names and values.
    """

    facts: dict
    said: str | Pairs

    def show(self, args: Namespace, warnings: list[str]) -> None:
        """Say what was made of the table, and print the result.

        It goes to stdout, or to stderr where stdout holds the output itself.
        """
        facts, options = dict(self.facts), vars(args)
        files = {name: options[name] for name in FILES if options.get(name) is not None}
        named = {name: "stdout" if is_stdout(path) else str(path) for name, path in files.items()}
        if "output" in named:
            facts["output"] = named["output"]
        written = [("written", ", ".join(named.values()))] if named else []
        if args.table is not None:
            facts["tables"] = [args.table.facts()]
            for line in args.table.lines():
                say(args, line)
        if args.json:
            text = to_json(facts | {"warnings": warnings})
        elif isinstance(self.said, str):
            text = "\n".join([self.said, *(f"{name}: {value}" for name, value in written)])
        else:
            text = lines([*self.said, *written])
        if "stdout" in named.values():
            say(args, text)
        else:
            print(text)


def statements(summary: Iterable) -> list[tuple[str, str]]:
    """What a certificate says, with options in place of parameters."""
    return [("certificate" if name == "kind" else name, in_options(text)) for name, text in summary]


def say(args: Namespace, text: str) -> None:
    """Print to stderr unless the user asked for quiet."""
    if not args.quiet:
        to_stderr(text)


def verbosity(args: Namespace) -> int:
    """1 for a progress bar in a terminal, 2 for a line each minute in logs, -1 if quiet."""
    return -1 if args.quiet else 1 if Unfailing(sys.stderr).isatty() else 2


def plain(value: Any) -> Any:
    """A form for JSON of other values: arrays as lists, all else as text."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)


def to_json(facts: dict) -> str:
    """One JSON document; NaN and infinity become null."""
    text = json.dumps(facts, default=plain)
    return json.dumps(json.loads(text, parse_constant=lambda name: None))


def lines(pairs: Pairs) -> str:
    """Names and values in two columns."""
    width = max(len(name) for name, _ in pairs)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in pairs)


def is_stdout(path: Path | None) -> bool:
    """Whether an output is stdout, and no file."""
    return path is not None and path.stem == DASH and path.parent == Path()


@contextmanager
def output_files(args: Namespace) -> Iterator[None]:
    """Give a command a path to write to for each file that its options name, or None.

    ``args.drafts`` has them by option, and ``args.draft`` is that of the output. The files appear
    when the block ends well. One that cannot be written is found before the work starts.
    """
    options = vars(args)
    with ExitStack() as stack:
        args.drafts = {
            name: stack.enter_context(whole_file(options.get(name), bool(options.get("force"))))
            for name in FILES
        }
        args.draft = args.drafts["output"]
        yield


@contextmanager
def whole_file(path: Path | None, force: bool) -> Iterator[Any]:
    """A path to write to, which becomes `path` when the block ends well and vanishes when not.

    Parameters
    ----------
    path : Path or None
        None where the result is printed, and there is nothing to write to.
    force : bool
        Whether a file of that name may be replaced.
    """
    if path is None:
        yield None
        return
    if is_stdout(path):
        with temporary_folder() as folder:
            draft = folder / f"output{path.suffix}"
            yield draft
            sys.stdout.flush()
            with telling("stdout", draft), draft.open("rb") as file:
                shutil.copyfileobj(file, sys.stdout.buffer)
            sys.stdout.buffer.flush()
        return
    check_free(path, force)
    with hidden_folder(path) as folder:
        draft = folder / path.name
        yield draft
        check_free(path, force)
        os.replace(draft, path)


def temporary_folder() -> AbstractContextManager[Path]:
    """A folder that is removed at the end; an error of writing to it names TMPDIR."""
    place = tempfile.gettempdir()
    return hidden_folder(Path(place, "mercer"), f"the temporary folder {place} (TMPDIR)")


@contextmanager
def hidden_folder(target: Path, name: str = "") -> Iterator[Path]:
    """A folder beside a path, removed at the end; errors of writing name the path, or `name`."""
    start = target.with_name(f".{target.name}.")
    with (
        telling(name or str(target), start),
        tempfile.TemporaryDirectory(dir=target.parent, prefix=start.name) as folder,
    ):
        yield Path(folder)


def check_free(path: Path, force: bool) -> None:
    """Raise JobError if a file cannot be put there, or must not."""
    check_folder(path, "--output")
    if path.is_dir():
        raise JobError(f"{path} is a folder, and the output is a file. Give a file name.")
    if path.exists() and not force:
        raise JobError(f"{path} exists already. Give another name, or --force to replace it.")


@contextmanager
def whole_folder(folder: Path, force: bool) -> Iterator[Path]:
    """A folder to write files to, which all move to `folder` when the block ends well.

    Parameters
    ----------
    folder : Path
        Made where it is missing; files in it that have other names stay.
    force : bool
        Whether files of the same names may be replaced.
    """
    if folder.exists() and not folder.is_dir():
        raise JobError(f"{folder} is a file. Give a folder, or a name that is free.")
    check_folder(folder, "folder")
    if folder.exists() and not force and any(folder.iterdir()):
        raise JobError(f"{folder} is not empty. Give another folder, or --force to replace files.")
    with hidden_folder(folder) as draft:
        yield draft
        folder.mkdir(exist_ok=True)
        for file in sorted(draft.iterdir()):
            os.replace(file, folder / file.name)


def deliver(args: Namespace, columns: Columns, facts: dict, summary: Pairs | str) -> Result:
    """The result of a command that computes columns.

    Without an output file they go to stdout, and the summary to stderr.

    Parameters
    ----------
    args : Namespace
    columns : dict of str to array of shape (n,)
    facts : dict
        Facts about the columns, for programs.
    summary : list of (str, object) or str
        The same for people, names and values, or a text.
    """
    if args.draft is not None:
        write_columns(args.draft, columns)
        return Result(facts, summary)
    if not args.json:
        say(args, summary if isinstance(summary, str) else lines(summary))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")  # numbers with the digits that tell them apart
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return Result(facts | {"result": columns}, text.getvalue().rstrip("\n"))


def deliver_blocks(args: Namespace, blocks: Iterable, names: list[str], kept: Columns) -> Result:
    """The result of a command that computes rows, written block by block.

    Parameters
    ----------
    args : Namespace
    blocks : iterable of arrays
    names : list of str
        Of their columns.
    kept : dict of str to array
        Columns of the table that go before them.
    """
    blocks = iter(blocks)
    first = next(blocks, None)
    if first is None:
        raise JobError(f"{args.data} has no rows.")
    blocks = chain([first], blocks)
    if args.draft is None:
        rows = np.concatenate(list(blocks))
        columns = beside(kept, as_columns(rows, names))
        return deliver(args, columns, {"rows": len(rows)}, [("rows", f"{len(rows):,}")])
    with open_sink(args.draft, len(names), first.dtype, names, kept) as sink:
        for block in blocks:
            sink.write(block)
    names = [*kept, *names]
    summary = [("rows", f"{sink.n_rows:,}"), ("columns", len(names))]
    return Result({"rows": sink.n_rows, "names": names}, summary)


def beside(kept: Columns, columns: Columns) -> Columns:
    """Columns of the table and of the result, side by side."""
    clash = sorted(set(kept) & set(columns))
    if clash:
        raise JobError(f"The result would have two columns called {clash[0]!r}. Keep another one.")
    return kept | columns


def as_columns(S, names: list[str]) -> Columns:
    """The columns of a matrix by name."""
    return dict(zip(names, np.asarray(S).T, strict=True))


def write_columns(path: Path, columns: Columns) -> None:
    """Write columns in the format that the suffix names; `.npy` has the numbers only."""
    if path.suffix.lower() == ".npy":
        numbers = [column for column in columns.values() if column.dtype.kind in "biuf"]
        np.save(path, numbers[0] if len(numbers) == 1 else np.column_stack(numbers))
        return
    rows = len(next(iter(columns.values())))
    with open_sink(path, 0, kept=columns) as sink:
        sink.write(np.empty((rows, 0)))
