"""Engines: tiles of a kernel matrix and blocks of rows, moved within a byte budget; such budgets.

NumPy releases the interpreter lock in GEMM and in ufuncs, so plain threads over tiles scale
without compiled code. BLAS's own threads would compete with ours, and on a busy machine they wait
for each other (a 400 x 400 eigenproblem was seen to take seconds), so BLAS is held at one thread.
"""

import math
import os
import re
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from copy import copy
from functools import lru_cache, partial
from typing import Any

import numpy as np
from array_api_compat import is_torch_array

from .._packages import needed
from .arrays import Array, array_namespace, is_on_device, itemsize, to_numpy
from .linalg import eigh, one_thread, times_few

if sys.platform != "win32":
    import resource

# Entries of a matrix below which a thread, and mirroring half of it, cost more than the work.
ALONE = 700**2
# Rows of a tile that are summed at once: in the cache, and on a device a step that is long enough.
SUMMED_ROWS, SUMMED_ON_DEVICE = 32, 1024
# Matrices of a basis's size beside one a thread while moments are summed, and in all while the
# small eigenproblem is solved.
MERGED_PARTS, SMALL_MATRICES = 3, 9
# Overflow in a tile is not warned of: the code that sums the tiles checks for it.
QUIET: Any = {"over": "ignore", "invalid": "ignore"}

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


class TileStore:
    """Tiles kept from one product to the next, first come first kept, within `room` bytes.

    A store ends with its fit: it is deleted with the Gram matrix it belongs to. With `weights` w of
    the rows, the first product also sums all entries.
    """

    def __init__(self, room: int = 0, empty: Callable = np.empty, weights: Array = None):
        self.room, self.weights = room, weights
        #: Sums of w_i w_j K_ij^2 and, for every row, of w_j K_ij, available after the first
        #: product; a fused tile leaves those of rows to the product with a column of ones.
        self.sums: tuple[float, Array] | None = None
        self._empty = empty
        #: Filled tiles by the numbers of their blocks of rows and columns.
        self.tiles: dict[tuple[int, int], Any] = {}
        self._lock = threading.Lock()

    def reserve(self, shape: Any, dtype: Any) -> Array:
        """A fresh array to fill and keep, or None when the room is used up."""
        size = shape[0] * shape[1] * itemsize(dtype)
        with self._lock:
            if size > self.room:
                return None
            self.room -= size
        return self._empty(shape, dtype=dtype)


class Turns:
    """Lets the results of tasks be added in the order of the tasks, whichever is done first.

    Floating-point sums depend on their order. Tasks are begun in their order, so that the
    first one that is not done never waits, and a thread waits only to add, not to compute.
    """

    def __init__(self) -> None:
        self._next: dict[Hashable, int] = {}
        self._changed = threading.Condition()
        #: Ends all waiting, since a thread has failed.
        self.called_off = False

    def add(self, place: Hashable, number: int, action: Callable[[], object]) -> None:
        """Do `action` after those of all smaller numbers at the same place."""
        with self._changed:
            while self._next.get(place, 0) != number:
                if self.called_off:
                    return
                self._changed.wait(0.1)
        action()
        with self._changed:
            self._next[place] = number + 1
            self._changed.notify_all()


class TiledEngine:
    """Row blocks and tiles: on NumPy arrays, unless a subclass makes others.

    Attributes
    ----------
    memory : int
        Bytes that work arrays may take, kept tiles included.
    threads : int
        Tasks at a time.
    on_tiles : callable or None
        ``on_tiles(done, total)`` after tiles of the calling thread.
    """

    memory: int
    threads = 1
    on_tiles: Callable | None = None
    #: The device that arrays are on; None for main memory.
    device: Any = None
    #: ... by name.
    where = "cpu"
    #: Tile sides to try, largest first.
    sides: tuple[int, ...]
    #: Side below which tiles are not cut only to share them out between threads.
    small_side: int
    #: Rows of a streamed block.
    stream_block = 1024

    def empty(self, shape: Any, dtype: Any = np.float64) -> Array:
        """A new array where the work is done."""
        return np.empty(shape, dtype)

    def zeros(self, shape: Any) -> Array:
        """A new array of zeros in double precision where the work is done."""
        return np.zeros(shape)

    def asarray(self, A: Array, dtype: Any = None) -> Array:
        """A small array where the work is done."""
        return np.ascontiguousarray(to_numpy(A), dtype=dtype)

    def place(self, X: Array) -> Array:
        """Rows where the work is done, or an object whose blocks are."""
        return X

    def draft(self, dtype: Any, kernel: Any) -> Any:
        """The next cheaper precision for passes that need no more than it, or None."""
        return np.float32 if dtype == np.float64 else None

    def expect(self, kernel: Any, shape: tuple[int, ...], columns: int) -> None:
        """Get ready for products of the kernel matrix of rows of a shape with some columns."""
        return

    def rounded(self, V: Any, dtype: Any, kernel: Any) -> Any:
        """V with as few digits as make products in `dtype` cheaper; itself where none do."""
        return V

    def fuses(self, kernel: Any) -> bool:
        """Whether products with this kernel's matrix need no tiles in memory."""
        return False

    def single_blas(self) -> Any:
        """Hold BLAS at one thread, for small problems and inside our own threads."""
        return one_thread()

    def eigh(self, A: Array) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues, rising, and eigenvectors of a symmetric matrix, in main memory."""
        with one_thread():
            return eigh(A)

    def tiling(self, pairs: Any) -> tuple[int, int]:
        """The tile side and the number of threads that the budget allows.

        A fourth of the budget goes to tiles in flight, so that most of it can keep
        tiles; the whole of it when that would force tiny tiles.
        """
        few = pairs.shape[0] * pairs.shape[1] <= ALONE
        for share in (4, 1):
            for threads in dict.fromkeys((self.threads, 1)):
                for side in self.sides:
                    if threads * pairs.tile_bytes(side) <= self.memory // share:
                        return side, 1 if few else threads
        least = pairs.tile_bytes(self.sides[-1])
        raise too_little(self.memory, least, "one tile of the kernel matrix")

    def with_memory(self, memory: int) -> "TiledEngine":
        """The same engine with another budget."""
        engine = copy(self)
        engine.memory, engine.on_tiles = memory, self.on_tiles
        return engine

    def pair_rows(self, pairs: Any, V: Array, store: TileStore | None = None) -> Array:
        """The product of the kernel matrix between two sets of rows with V, in float64.

        A symmetric matrix is visited in tiles on and above the diagonal, each used for
        both sides and kept in `store` while it has room.

        Parameters
        ----------
        pairs : object with ``shape, dtype, symmetric, tile(rows, columns, out), tile_bytes(side)``
        V : array of shape (m, b)

        Returns
        -------
        array of shape (n, b)
        """
        (n, m), b, symmetric = pairs.shape, V.shape[1], pairs.symmetric
        side, threads = self.tiling(pairs)
        V, store = self.asarray(V, pairs.dtype), store or TileStore()
        height = self._block_rows(pairs, side, threads)
        blocks = row_blocks(n, height)
        across = blocks if symmetric else row_blocks(m, side)
        tiles = [(i, j) for i in range(len(blocks)) for j in range(symmetric * i, len(across))]
        total, turns = self.zeros((n, b)), Turns()
        summing = store.weights is not None and store.sums is None
        square: list[float] = []
        sums = self.zeros((n if summing else 0,))
        w: Any = self.asarray(store.weights) if summing else None
        even = summing and bool((store.weights == 1).all())

        def add(rows, part, numbers):
            total[rows] += part
            if summing:
                sums[rows] += numbers

        def work(tiles):
            size = min(height, n), min(height if symmetric else side, m)
            scratch = self.empty(size, pairs.dtype)
            for i, j in tiles:
                rows, columns = blocks[i], across[j]
                T = store.tiles.get((i, j))
                if T is None:
                    shape = (rows.stop - rows.start, columns.stop - columns.start)
                    reserved = store.reserve(shape, pairs.dtype)
                    out = scratch[: shape[0], : shape[1]] if reserved is None else reserved
                    T = pairs.tile(rows, columns, out)
                    if reserved is not None:
                        store.tiles[i, j] = T
                squares, right, down = 0.0, 0.0, 0.0
                if summing:
                    squares, right, down = tile_sums(T, w[rows], w[columns], even)
                square.append((1 if i == j else 2) * squares)
                # Block k takes part in the tiles (0, k), (1, k), ..., (k, k), (k, k + 1), ...
                turns.add(i, j, partial(add, rows, times_few(T, V[columns]), right))
                if symmetric and i != j:
                    turns.add(j, i, partial(add, columns, times_few(T.T, V[rows]), down))

        self._share(tiles, work, threads, turns)
        if summing:
            store.sums = math.fsum(square), to_numpy(sums)
        return total

    def _block_rows(self, pairs: Any, side: int, threads: int) -> int:
        """Rows of a tile: every thread gets some, of a triangle so that none waits long.

        But enough to be worth preparing columns for.
        """
        if pairs.shape[0] * pairs.shape[1] <= ALONE:
            return side
        share = -(-pairs.shape[0] // (4 * threads if pairs.symmetric else threads))
        return min(side, max(self.small_side, share))

    def fill(self, pairs: Any, out: Array) -> Array:
        """The kernel matrix itself, tile by tile into `out`; a symmetric one is mirrored."""
        side, threads = self.tiling(pairs)
        if pairs.symmetric:
            # Smaller tiles leave out more of the half that is mirrored.
            side = self._block_rows(pairs, side, threads)
        rows, columns = (row_blocks(size, side) for size in pairs.shape)
        tiles = [(i, j) for i in rows for j in columns if not pairs.symmetric or i.start <= j.start]
        direct = out.dtype == pairs.dtype

        def work(tiles):
            scratch = self.empty((0, 0) if direct else (side, side), pairs.dtype)
            for i, j in tiles:
                target = out[i, j]
                if not direct:
                    target = scratch[: i.stop - i.start, : j.stop - j.start]
                tile = pairs.tile(i, j, target)
                if not direct or tile is not target:
                    out[i, j] = tile
                if pairs.symmetric and i != j:
                    out[j, i] = out[i, j].T

        self._share(tiles, work, threads)
        return out

    def map_rows(self, function: Callable, n: int, rows: int, out: Array) -> None:
        """Fill ``out[block] = function(block)`` for slices of at most `rows` of n rows."""

        def work(blocks):
            for block in blocks:
                out[block] = function(block)

        self._share(row_blocks(n, rows), work, self.threads)

    def sum_rows(self, function: Callable, n: int, rows: int) -> Any:
        """The sum of ``function(block)`` over slices of at most `rows` of n rows.

        Parts are added in the order of the rows, so that the sum is the same for any number of
        threads, and memory does not grow with n.
        """
        total, turns = None, Turns()

        def work(blocks):
            for number, block in blocks:
                turns.add("total", number, partial(add, function(block)))

        def add(part):
            nonlocal total
            total = part if total is None else total + part

        self._share(enumerate(row_blocks(n, rows)), work, self.threads, turns)
        return total

    def __getstate__(self):
        # Progress bars are not pickled.
        return self.__dict__ | {"on_tiles": None}

    def _share(
        self, tasks: Iterable, work: Callable, threads: int, turns: Turns | None = None
    ) -> None:
        """Call ``work(tasks)`` in this thread and in helpers, which share the tasks.

        Tasks are begun in their order. An interrupt or an error stops every thread after the task
        it is in. BLAS is held at one thread, and overflow is not warned of.
        """
        waiting = deque(tasks)
        helpers = max(0, min(threads, len(waiting)) - 1)
        ends = [None] * (helpers + 1)
        waiting.extend(ends)
        mine: Iterable = iter(waiting.popleft, None)
        if self.on_tiles is not None:
            mine = reported(mine, waiting, len(ends), self.on_tiles)
        with one_thread(), np.errstate(**QUIET), ExitStack() as stack:
            if helpers:

                def stop(done=None):
                    if done is None or done.exception():
                        waiting.extendleft(ends)
                        if turns is not None:
                            turns.called_off = True

                quiet = partial(np.seterr, **QUIET)
                pool = stack.enter_context(ThreadPoolExecutor(helpers, initializer=quiet))
                stack.callback(stop)
                futures = [pool.submit(work, iter(waiting.popleft, None)) for _ in range(helpers)]
                for future in futures:
                    future.add_done_callback(stop)
            work(mine)
            if helpers:
                for future in futures:
                    future.result()


class LocalEngine(TiledEngine):
    """Row blocks and tiles on the cores of this machine.

    Parameters
    ----------
    memory : int
        Bytes that work arrays may take, kept tiles included.
    threads : int or None
        Threads over tiles; None or -1 for all cores this process may use, -2 for all but one.
    on_tiles : callable or None
        ``on_tiles(done, total)`` after tiles of the calling thread.
    """

    # About 1024 keeps a tile inside the cache and the small GEMMs efficient; below 64 the overhead
    # of Python per tile takes over.
    sides, small_side = (1024, 512, 256, 128, 64), 192

    def __init__(self, memory: int, threads: int | None = None, on_tiles: Callable | None = None):
        self.memory = memory
        self.threads = count_threads(threads)
        self.on_tiles = on_tiles


def count_threads(n_jobs: int | None) -> int:
    """Threads from scikit-learn's way to ask for them."""
    if n_jobs is None:
        return usable_cores()
    if n_jobs == 0:
        raise ValueError("n_jobs=0 has no meaning. Give a number of threads, or None for all.")
    return n_jobs if n_jobs > 0 else max(1, usable_cores() + 1 + n_jobs)


def usable_cores() -> int:
    """Cores this process may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def make_engine(
    X: Array = None,
    *,
    memory: int | str | None = None,
    device: Any = None,
    threads: int | None = None,
    on_tiles: Callable[[int, int], None] | None = None,
) -> TiledEngine:
    """The engine that computes where the data are, or on `device`.

    Parameters
    ----------
    X : array or None
        The data; on a CUDA device they are computed on there.
    memory : int, str or None
        Byte budget, of main memory or of the device.
    device : None, str or torch.device
        None for where X is, "cpu" for the threads of this machine, "cuda" or "cuda:1" for a
        GPU. With a `torch.device` torch computes there, on the CPU as well.
    threads : int or None
    on_tiles : callable or None
    """
    if device is None and is_on_device(X):
        device = f"cuda:{device_index(X)}"
    if device is None or (isinstance(device, str) and device == "cpu"):
        return LocalEngine(parse_bytes(memory), threads, on_tiles)
    if isinstance(device, str) and not re.fullmatch(r"(cpu|cuda)(:\d{1,3})?", device):
        raise ValueError(f"device={device!r:.60} is not supported. Give None, 'cpu' or 'cuda'.")
    needed("torch", "torch", f"device={str(device)!r}")
    from .device import TorchEngine

    return TorchEngine(memory, device, on_tiles)


def steps_on_device(A: Array) -> bool:
    """Whether small steps that depend on each other can be made where A is, by compiled kernels."""
    if not is_torch_array(A):
        return False
    from .device import can_fuse

    return can_fuse(A.device)


def device_index(X) -> int:
    """The number of the CUDA device that X is on, as torch, CuPy and JAX write it."""
    device = X.device
    for name in ("index", "id"):
        number = getattr(device, name, None)
        if isinstance(number, int):
            return number
    return 0


def reported(tasks, waiting, ends: int, on_tiles: Callable):
    """The tasks of the calling thread; after each, how many of all are done or begun."""
    total = len(waiting) - ends
    for task in tasks:
        yield task
        on_tiles(total - max(0, len(waiting) - ends), total)


def tile_sums(
    T: Array, left: Array, right: Array, even: bool = False
) -> tuple[float, Array, Array]:
    """Sums over T, in double: of a_i T_ij^2 b_j, and over rows and columns of T b and a T.

    With `even` a and b are ones, which takes a pass less over each entry.
    """
    xp, rows, columns, square = array_namespace(T), [], 0.0, 0.0
    step = SUMMED_ROWS if isinstance(T, np.ndarray) else SUMMED_ON_DEVICE
    for i in range(0, T.shape[0], step):
        strip = xp.asarray(T[i : i + step, :], dtype=xp.float64, copy=True)
        part = left[i : i + step]
        rows.append(strip @ right)
        columns = columns + part @ strip
        flat = strip.reshape(-1)
        square = square + (flat @ flat if even else part @ ((strip * strip) @ right))
    return float(square), xp.concat(rows), columns


def moment_bytes(size: int, engine: TiledEngine) -> int:
    """Least budget for the m x m matrices of a basis of m vectors."""
    # Half of the budget is for blocks of rows.
    return 8 * size**2 * max(2 * (engine.threads + MERGED_PARTS), SMALL_MATRICES)


def too_little(memory: int, least: int, what: str, advice: str = "") -> ValueError:
    """The error for a budget that cannot hold something; `advice` ends with a space."""
    return ValueError(
        f"memory={format_bytes(memory)} cannot hold {what}. {advice}Give at least "
        f"{format_bytes(least)}, for example memory={least}."
    )


def row_blocks(n: int, rows: int) -> list[slice]:
    """Slices of at most `rows` that cover n rows."""
    return [slice(start, min(start + rows, n)) for start in range(0, n, rows)]


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
