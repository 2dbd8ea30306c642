"""Files that are written whole or not at all, and what killed processes have left of them."""

import os
import re
import secrets
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows lets nobody remove a file that another process writes
    fcntl = None  # type: ignore[assignment]

# Seconds after which a part that nobody holds is a left-over: one that is just made is not.
YOUNG = 2.0


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
            f"There is no folder {path.parent} to write {path.name} to. Make it first, or "
            "choose another."
        )
    with ended_by_sigterm():
        part, file = begin_part(path)
        try:
            with file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)


def begin_part(path: Path) -> tuple[Path, BinaryIO]:
    """A new hidden file beside `path`, held while it is open.

    Parts of this very file that killed processes have left, and no living one writes, are removed.
    """
    own = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{8}}\.part")
    with suppress(OSError):
        for left in filter(lambda part: own.fullmatch(part.name), path.parent.iterdir()):
            with suppress(OSError):
                old = time.time() - left.stat().st_mtime >= YOUNG
                with open(left, "rb") as found:
                    free = old and hold(found)
                if free:
                    left.unlink()
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    file = open(part, "xb")  # noqa: SIM115
    hold(file)
    return part, file


def hold(file) -> bool:
    """Take the lock on a file, which the end of its process gives back; whether it was free."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # held, or a file system without locks: then nothing is removed
        return False
    return True


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end the process by SystemExit, which cleans up, where nobody else listens."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def end(number, _frame):
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
