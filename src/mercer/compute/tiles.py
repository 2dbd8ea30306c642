"""Tiles of a kernel matrix within a byte budget: what every engine on one machine shares."""

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from copy import copy
from typing import Any

import numpy as np

from .arrays import Array, itemsize
from .linalg import eigh, one_thread, times_few
from .memory import format_bytes
from .turns import Turns

# Entries of a matrix that is made sooner than a thread is started, and than half of it is mirrored.
ALONE = 512**2
# Blocks of rows of a matrix that is mirrored, more of them where many threads share its tiles.
MIRROR_PARTS = 4


class TileStore:
    """Tiles kept from one product to the next, first come first kept, within `room` bytes.

    A store outlives no fit: the Gram matrix it belongs to drops it with itself.
    """

    def __init__(self, room: int = 0, empty: Callable = np.empty):
        self.room = room
        self._empty = empty
        self._tiles: dict[tuple[int, int], Any] = {}
        self._lock = threading.Lock()

    def get(self, key: Any) -> Array:
        """The tile kept under `key`, or None."""
        return self._tiles.get(key)

    def reserve(self, shape: Any, dtype: Any) -> Array:
        """A fresh array to fill and keep, or None when the room is used up."""
        size = shape[0] * shape[1] * itemsize(dtype)
        with self._lock:
            if size > self.room:
                return None
            self.room -= size
        return self._empty(shape, dtype=dtype)

    def keep(self, key: Any, tile: Array) -> None:
        """Keep a filled tile; a tile that was never filled must not come here."""
        self._tiles[key] = tile


class TiledEngine(ABC):
    """Row blocks and tiles, wherever arrays live: a subclass makes arrays and runs tasks.

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
    #: Tile sides to try, largest first.
    sides: tuple[int, ...]
    #: Side below which tiles are not cut only to share them out between threads.
    small_side: int
    #: Least side of a tile of a matrix that is formed and mirrored.
    mirror_side: int
    #: Rows of a block in a sum over many rows of few columns, and of a streamed block.
    sum_block = 512
    stream_block = 1024

    @abstractmethod
    def empty(self, shape: Any, dtype: Any = np.float64) -> Array:
        """A new array where the work is done."""

    @abstractmethod
    def zeros(self, shape: Any) -> Array:
        """A new array of zeros in double precision where the work is done."""

    @abstractmethod
    def asarray(self, A: Array, dtype: Any = None) -> Array:
        """A small array where the work is done."""

    @property
    def where(self) -> str:
        """The device by name, ``"cpu"`` for main memory."""
        return "cpu" if self.device is None else str(self.device)

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
        with self.single_blas():
            return eigh(A)

    def store(self, room: int) -> TileStore:
        """A place for `room` bytes of tiles."""
        return TileStore(room, self.empty)

    def tiling(self, pairs: Any) -> tuple[int, int]:
        """The tile side and the number of threads that the budget allows.

        A fourth of the budget goes to tiles in flight, so that most of it can keep
        tiles; the whole of it when that would force tiny tiles.
        """
        for share in (4, 1):
            for threads in dict.fromkeys((self.threads, 1)):
                for side in self.sides:
                    if threads * pairs.tile_bytes(side) <= self.memory // share:
                        return side, threads
        least = self.least_tile(pairs)
        raise ValueError(
            f"memory={format_bytes(self.memory)} cannot hold one tile of the kernel matrix. "
            f"Give at least {format_bytes(least)}, for example memory={least}."
        )

    def least_tile(self, pairs: Any) -> int:
        """Bytes of the smallest tile."""
        return int(pairs.tile_bytes(self.sides[-1]))

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
        side, threads = self.tiling(pairs)
        if pairs.shape[0] * pairs.shape[1] <= ALONE:
            threads = 1
        elif pairs.symmetric:
            # Enough tiles that no thread waits long for the last one.
            side = min(side, max(self.small_side, -(-pairs.shape[0] // (4 * threads))))
        V = self.asarray(V, pairs.dtype)
        with self.single_blas():
            if pairs.symmetric:
                return self._symmetric(pairs, V, side, threads, store or TileStore())
            return self._rectangular(pairs, V, side, threads)

    def fill(self, pairs: Any, out: Array) -> Array:
        """The kernel matrix itself, tile by tile into `out`; a symmetric one is mirrored."""
        side, threads = self.tiling(pairs)
        if pairs.shape[0] * pairs.shape[1] <= ALONE:
            threads = 1
        elif pairs.symmetric:
            # Smaller tiles leave out more of the half that is mirrored, and are slower.
            parts = max(MIRROR_PARTS, math.isqrt(6 * threads))
            side = min(side, max(self.mirror_side, -(-pairs.shape[0] // parts)))
        rows, columns = (row_blocks(size, side) for size in pairs.shape)
        tasks = [(i, j) for i in rows for j in columns if not pairs.symmetric or i.start <= j.start]
        direct = out.dtype == pairs.dtype

        def work(task, scratch):
            i, j = task
            target = out[i, j]
            if not direct:
                target = scratch[: i.stop - i.start, : j.stop - j.start]
            tile = pairs.tile(i, j, target)
            if not direct or tile is not target:
                out[i, j] = tile
            if pairs.symmetric and i != j:
                out[j, i] = out[i, j].T

        def begin():
            return None if direct else self.empty((side, side), pairs.dtype)

        with self.single_blas():
            self._run(tasks, work, threads, begin)
        return out

    def map_rows(self, function: Callable, n: int, rows: int, out: Array) -> None:
        """Fill ``out[block] = function(block)`` for slices of at most `rows` of n rows."""

        def work(block, _):
            out[block] = function(block)

        with self.single_blas():
            self._run(row_blocks(n, rows), work, self.threads)

    def sum_rows(self, function: Callable, n: int, rows: int) -> Any:
        """The sum of ``function(block)`` over slices of at most `rows` of n rows.

        Parts are added in the order of the rows, so that the sum is the same for any number of
        threads, and memory does not grow with n.
        """
        if n <= rows:
            with self.single_blas(), np.errstate(over="ignore", invalid="ignore"):
                return function(slice(0, n)) if n else None
        total, turns = None, Turns()

        def work(task, _):
            number, block = task
            part = function(block)

            def add():
                nonlocal total
                total = part if total is None else total + part

            turns.add("total", number, add)

        with self.single_blas():
            self._run(enumerate(row_blocks(n, rows)), work, self.threads, call_off=turns.call_off)
        return total

    def __getstate__(self):
        # Progress bars do not travel.
        return self.__dict__ | {"on_tiles": None}

    def _symmetric(self, pairs, V, side, threads, store):
        n, b = pairs.shape[0], V.shape[1]
        blocks = row_blocks(n, side)
        tasks = [(i, j) for i in range(len(blocks)) for j in range(i, len(blocks))]
        total, turns = self.zeros((n, b)), Turns()

        def add(k, number, product):
            def into():
                total[blocks[k]] += product

            turns.add(k, number, into)

        def work(task, scratch):
            i, j = task
            T = store.get(task)
            if T is None:
                T = self._fill(pairs, task, blocks[i], blocks[j], store, scratch)
            # Block k takes part in the tiles (0, k), (1, k), ..., (k, k), (k, k + 1), ...
            add(i, j, times_few(T, V[blocks[j]]))
            if i != j:
                add(j, i, times_few(T.T, V[blocks[i]]))

        def begin():
            return self.empty((side, side), pairs.dtype)

        self._run(tasks, work, threads, begin, turns.call_off)
        return total

    def _fill(self, pairs, task, i, j, store, scratch):
        shape = (i.stop - i.start, j.stop - j.start)
        kept = store.reserve(shape, pairs.dtype)
        T = pairs.tile(i, j, scratch[: shape[0], : shape[1]] if kept is None else kept)
        if kept is not None:
            store.keep(task, T)
        return T

    def _rectangular(self, pairs, V, side, threads):
        n, m = pairs.shape
        columns = row_blocks(m, side)
        out = self.empty((n, V.shape[1]))

        def work(i, scratch):
            total = self.zeros((i.stop - i.start, V.shape[1]))
            for j in columns:
                T = pairs.tile(i, j, scratch[: i.stop - i.start, : j.stop - j.start])
                total += times_few(T, V[j])
            out[i] = total

        # Every thread gets a strip, and strips wide enough to be worth preparing columns for.
        strip = min(side, max(self.small_side, -(-n // threads)))
        tasks = row_blocks(n, strip)
        self._run(tasks, work, threads, lambda: self.empty((side, side), pairs.dtype))
        return out

    def _run(
        self,
        tasks: Iterable,
        work: Callable,
        threads: int,
        begin: Callable = lambda: None,
        call_off: Callable = lambda: None,
    ) -> None:
        """Call ``work(task, local)`` for every task, one after the other.

        Threads begin tasks in their order; `call_off` is called where one of them has failed.
        """
        tasks, local = list(tasks), begin()
        for done, task in enumerate(tasks, 1):
            work(task, local)
            if self.on_tiles is not None:
                self.on_tiles(done, len(tasks))


def row_blocks(n: int, rows: int) -> list[slice]:
    """Slices of at most `rows` that cover n rows."""
    return [slice(start, min(start + rows, n)) for start in range(0, n, rows)]
