"""Byte budgets: what the user wrote, what the machine has, and how to print it."""

import os
import re
import sys
import time
from functools import lru_cache

if sys.platform != "win32":
    import resource

# Share of free memory that a fit may take when the user gives no budget: the rest is for the
# user's data and for other programs.
FREE_SHARE = 0.5

# Binary digits kept of that budget: within 3 % of it.
BUDGET_BITS = 6

# Far more than any machine has; float64 holds sums and products of budgets up to it.
MOST_BYTES = 1e30

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY = {"KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
_PATTERN = re.compile(r"\s*([0-9]*\.?[0-9]+(?:[eE][+]?[0-9]+)?)\s*([KMGT]?I?)B?\s*", re.IGNORECASE)


def parse_bytes(memory: int | str | None) -> int:
    """A byte count from an int, a string such as ``"300MB"`` or ``"2GiB"``, or None.

    None is half of the memory that is free now, rounded down to a few digits, so that the same fit
    has the same plan a moment later.
    """
    if memory is None:
        limit = None if sys.platform == "win32" else resource.getrlimit(resource.RLIMIT_AS)[0]
        return rounded_down(int(FREE_SHARE * _recently_free(int(4 * time.monotonic()), limit)))
    if isinstance(memory, str):
        match = _PATTERN.fullmatch(memory)
        units = _UNITS | _BINARY
        if match is None or match[2].upper() not in units:
            raise ValueError(
                f"memory={memory!r} is not an amount of memory. Give a number of bytes or "
                "a string such as '300MB' or '2GiB'."
            )
        count = float(match[1]) * units[match[2].upper()]
    else:
        count = memory
    if not 1 <= count < MOST_BYTES:
        raise ValueError(
            f"memory={memory!r:.40} must be a positive amount of memory, of less than "
            f"{MOST_BYTES:.0e} bytes. Give what the work may take, such as '2GB'."
        )
    return int(count)


def rounded_down(count: int) -> int:
    """A number with its first BUDGET_BITS binary digits, the others zero."""
    rest = max(0, count.bit_length() - BUDGET_BITS)
    return count >> rest << rest


@lru_cache(maxsize=1)
def _recently_free(quarter: int, limit: int | None) -> int:
    """Free memory, read once a quarter of a second: reading takes longer than a small plan."""
    return available_memory()


def available_memory() -> int:
    """Bytes free now, the limits of a container and of the shell (``ulimit -v``) included."""
    # Only the first lines are read: every fit asks for it.
    kilobytes = _read("/proc/meminfo", after=b"MemAvailable:")
    if kilobytes is not None:
        free = 1024 * kilobytes
    elif os.name == "nt":
        free = _free_on_windows()
    else:
        # A guess for systems that do not report free memory, such as macOS.
        free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    if sys.platform != "win32":
        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            used = (_read("/proc/self/statm") or 0) * resource.getpagesize()
            free = min(free, max(limit - used, 0))
    most, taken = (_read(f"/sys/fs/cgroup/memory.{name}") for name in ("max", "current"))
    if most is not None and taken is not None:
        free = min(free, max(most - taken, 0))
    return free


def _read(path: str, after: bytes = b"") -> int | None:
    """The first number in a system file, or the first after `after`; None if there is none."""
    try:
        # A file object takes three times as long.
        file = os.open(path, os.O_RDONLY)
        try:
            return int(os.read(file, 256).split(after or None, 1)[bool(after)].split(None, 1)[0])
        finally:
            os.close(file)
    except (OSError, IndexError, ValueError):
        return None


def _free_on_windows() -> int:
    """Physical memory that is free, as GlobalMemoryStatusEx reports it."""
    import ctypes

    class Status(ctypes.Structure):
        _fields_ = (
            ("length", ctypes.c_ulong),
            ("load", ctypes.c_ulong),
            ("total", ctypes.c_ulonglong),
            ("free", ctypes.c_ulonglong),
            ("others", ctypes.c_ulonglong * 5),
        )

    status = Status(length=ctypes.sizeof(Status))
    ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))  # type: ignore[attr-defined]
    return int(status.free)


def format_bytes(count: float) -> str:
    """A byte count for people: ``"1.5 GB"``."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5:  # what rounds to 1000 belongs to the next unit
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"
