"""``-`` for a file: rows from stdin, results to stdout."""

import shutil
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .failures import JobError

DASH = "-"
# What files of other kinds than text begin with.
MAGIC = {
    b"PAR1": ".parquet",
    b"ARROW1": ".feather",
    b"\x93NUMPY": ".npy",
    b"\x1f\x8b": ".csv.gz",
    b"\xd0\xcf\x11\xe0": ".xls",
}


@contextmanager
def stdin_as_file(args: Namespace) -> Iterator[None]:
    """Where DATA is ``-``, a file with what stdin gives, for as long as the command runs.

    Rows are read more than once, which a pipe does not allow.
    """
    if vars(args).get("data") != DASH:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="mercer-") as folder:
        args.data = str(spool(sys.stdin.buffer, Path(folder)))
        yield


def spool(stream, folder: Path) -> Path:
    """All of a stream in a file whose suffix says what it is."""
    start = stream.read(8)
    if not start:
        raise JobError("stdin is empty. Pipe a table into the command, or name a file.")
    suffix = next((kind for magic, kind in MAGIC.items() if start.startswith(magic)), ".csv")
    if start.startswith(b"PK"):
        raise JobError("stdin holds an archive (.npz or .xlsx). Name it as a file instead.")
    path = folder / f"stdin{suffix}"
    with path.open("wb") as file:
        file.write(start)
        shutil.copyfileobj(stream, file)
    return path


def stdout_path(suffix: str) -> Path:
    """The path that stands for stdout, with the suffix that names the format."""
    return Path(f"{DASH}{suffix}")


def is_stdout(path: Path | None) -> bool:
    """Whether an output is stdout, and no file."""
    return path is not None and path.stem == DASH and path.parent == Path()
