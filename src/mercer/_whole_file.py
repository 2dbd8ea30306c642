"""Files that are complete or absent; temporary files of killed processes are removed."""

import errno
import os
import re
import secrets
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO

from ._remote import CHUNK, RemotePath, as_path

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]
    import msvcrt  # Windows

# Seconds after which a temporary file without a lock belongs to a killed process.
YOUNG = 2.0
# What writing fails with where there is no room left.
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextmanager
def whole_file(path, overwrite=True, parameter="path", seeks=True) -> Iterator[BinaryIO]:
    """A file to write, which is complete at the end or absent.

    The bytes go to a temporary file beside `path`, which is renamed once it is complete; to a URL
    from its start to its end, through a file of this machine if the writer `seeks`. Errors of
    writing name the `parameter` that holds the path.
    """
    path = as_path(path)
    check_folder(path, parameter)
    if not overwrite and path.exists():
        raise FileExistsError(f"{path} exists. Choose another name, or pass overwrite=True.")
    if isinstance(path, RemotePath):
        with ExitStack() as stack:
            if not seeks:
                yield stack.enter_context(path.writing(parameter))
                return
            local = stack.enter_context(TemporaryFile())
            yield local  # type: ignore[misc]
            local.seek(0)
            shutil.copyfileobj(local, stack.enter_context(path.writing(parameter)), CHUNK)
        return
    # SIGTERM would leave the temporary file behind; SystemExit cleans up.
    default = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    ended = raising(lambda number: SystemExit(128 + number), [signal.SIGTERM] if default else [])
    with ended, telling(f"{parameter}='{path}'", path.with_name(f".{path.name}.")):
        part, file = begin_part(path)
        try:
            with file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)


def check_folder(path: Any, parameter="path") -> None:
    """Raise FileNotFoundError where there is no folder for a file; stores have none."""
    if not isinstance(path, RemotePath) and not path.parent.is_dir():
        raise FileNotFoundError(
            f"There is no folder {path.parent} for {parameter}={str(path)!r}. Make it first, or "
            "choose another."
        )


@contextmanager
def telling(name: str, start: Path) -> Iterator[None]:
    """Let errors of writing say which file it was, and what to do.

    These are full disks, and errors of files whose paths begin with `start`; others may be errors
    of reading. An error that names a file already, such as a checkpoint, stays as it is.
    """
    try:
        yield
    except OSError as error:
        full, text = error.errno in FULL, f"{error.filename} {error.strerror}"
        is_told = " cannot be written: " in text
        if error.errno is None or not (str(start) in text or (full and not is_told)):
            raise
        advice = "Make room, or give a place on another disk."
        advice = advice if full else "Give a file name in a folder that you may write to."
        reason = os.strerror(error.errno)
        raise OSError(error.errno, f"{name} cannot be written: {reason}. {advice}") from error


def begin_part(path: Path) -> tuple[Path, BinaryIO]:
    """A new hidden file beside `path`, locked while it is open.

    Removes such files of the same `path` that killed processes have left.
    """
    part_name = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{8}}\.part")
    with suppress(OSError):
        for left in filter(lambda file: part_name.fullmatch(file.name), path.parent.iterdir()):
            with suppress(OSError):
                old = time.time() - left.stat().st_mtime >= YOUNG
                with open(left, "rb") as found:
                    free = old and hold(found)
                if free:
                    left.unlink()
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    file = open(part, "xb")  # noqa: SIM115
    with suppress(OSError):  # without locks nobody removes it
        hold(file)
    return part, file


def hold(file) -> bool:
    """Take the lock on a file, which the end of its process gives back; whether it was free.

    Raises OSError on file systems without locks.
    """
    try:
        if fcntl is None:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


@contextmanager
def raising(error: Callable[[int], BaseException], signals: list) -> Iterator[None]:
    """Raise ``error(number)`` in the main thread when one of these signals comes."""
    if threading.current_thread() is not threading.main_thread():
        signals = []  # only the main thread may set handlers

    def stop(number, _frame):
        raise error(number)

    before = {number: signal.signal(number, stop) for number in signals}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
