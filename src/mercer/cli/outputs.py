"""Output files: whole or not at all, and never over another file unless asked."""

import errno
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .failures import JobError
from .standard_streams import is_stdout

# What writing fails with where there is no room left.
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextmanager
def whole_file(path: Path, force: bool) -> Iterator[Path]:
    """A path to write to, which becomes `path` when the block ends well and vanishes when not.

    Entered before the work starts, so that an output that cannot be written is found at once.

    Parameters
    ----------
    path : Path
    force : bool
        Whether a file of that name may be replaced.
    """
    if is_stdout(path):
        with file_for_stdout(path.suffix) as draft:
            yield draft
        return
    check_free(path, force)
    # The suffix stays: writers choose the format by it.
    draft = path.with_name(f".{path.stem}.{secrets.token_hex(4)}{path.suffix}")
    try:
        draft.touch(exist_ok=False)
    except OSError as error:
        raise JobError(
            f"{path} cannot be written: {error.strerror}. Give an output in a folder that can be "
            "written to."
        ) from error
    try:
        yield draft
        check_free(path, force)
        os.replace(draft, path)
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise JobError(
            f"{path} could not be written: {error.strerror}. Make room, or write to another disk."
        ) from error
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def file_for_stdout(suffix: str) -> Iterator[Path]:
    """A path to write to, whose bytes go to stdout when the block ends well."""
    with tempfile.TemporaryDirectory(prefix="mercer-") as folder:
        draft = Path(folder, f"output{suffix}")
        yield draft
        sys.stdout.flush()
        with draft.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def check_free(path: Path, force: bool) -> None:
    """Raise JobError if a file cannot be put there, or must not."""
    if not path.parent.is_dir():
        raise JobError(f"There is no folder {path.parent} to write {path.name} to. Make it first.")
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
    if not folder.parent.is_dir():
        raise JobError(f"{folder} cannot be made: there is no folder {folder.parent}.")
    if folder.exists() and not force and any(folder.iterdir()):
        raise JobError(f"{folder} is not empty. Give another folder, or --force to replace files.")
    try:
        draft = tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.")
    except OSError as error:
        raise JobError(f"{folder} cannot be made: {error.strerror}.") from error
    with draft as name:
        yield Path(name)
        folder.mkdir(exist_ok=True)
        for file in sorted(Path(name).iterdir()):
            os.replace(file, folder / file.name)
