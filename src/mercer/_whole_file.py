"""Files that are written whole or not at all."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def whole_file(path, overwrite=True) -> Iterator[BinaryIO]:
    """A file that is written whole or not at all.

    The bytes go to a temporary file beside `path`, which takes its place once it is complete.
    """
    path = Path(path)
    if not overwrite and path.exists():
        raise FileExistsError(f"{path} exists. Choose another name, or pass overwrite=True.")
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"There is no folder {path.parent} to write {path.name} to. Make it first."
        )
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with open(part, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
