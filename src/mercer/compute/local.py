"""The local engine: threads over tiles within a byte budget, BLAS held at one thread.

NumPy leaves the interpreter lock in GEMM and in ufuncs, so plain threads over tiles
scale without compiled code. BLAS's own threads would fight with ours, and on a busy
machine they wait for each other: a 400 x 400 eigenproblem was seen to take seconds.
"""

import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from .arrays import Array
from .tiles import TiledEngine

# About 1024 keeps a tile inside the cache and the small GEMMs efficient; below 64 the
# overhead of Python per tile takes over.
TILE_SIDES = (1024, 512, 256, 128, 64)

SMALL_SIDE = 192
# Below this side what a tile of the mirrored half saves is less than the calls for it.
MIRROR_SIDE = 256


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

    sides, small_side, mirror_side = TILE_SIDES, SMALL_SIDE, MIRROR_SIDE

    def __init__(
        self,
        memory: int,
        threads: int | None = None,
        on_tiles: Callable[[int, int], None] | None = None,
    ):
        self.memory = memory
        self.threads = count_threads(threads)
        self.on_tiles = on_tiles

    def empty(self, shape: Any, dtype: Any = np.float64) -> Array:
        """A NumPy array."""
        return np.empty(shape, dtype)

    def zeros(self, shape: Any) -> Array:
        """A NumPy array of zeros."""
        return np.zeros(shape)

    def asarray(self, A: Array, dtype: Any = None) -> Array:
        """A contiguous NumPy array."""
        return np.ascontiguousarray(A, dtype=dtype)

    def _run(self, tasks, work, threads, begin=lambda: None, call_off=lambda: None):
        """Call ``work(task, local)`` for every task, the calling thread working too.

        An interrupt or an error stops every thread after the tile it is in.
        """
        waiting = deque(tasks)
        total = len(waiting)
        if total == 1:
            with np.errstate(over="ignore", invalid="ignore"):
                work(waiting.popleft(), begin())
            if self.on_tiles is not None:
                self.on_tiles(1, 1)
            return
        stop = threading.Event()

        def drain(on_tiles=None):
            try:
                local = begin()
                while not stop.is_set():
                    try:
                        task = waiting.popleft()
                    except IndexError:
                        return
                    with np.errstate(over="ignore", invalid="ignore"):
                        work(task, local)
                    if on_tiles is not None:
                        on_tiles(total - len(waiting), total)
            except BaseException:
                stop.set()
                call_off()
                raise

        helpers = min(threads, total) - 1
        if helpers < 1:
            drain(self.on_tiles)
            return
        with ThreadPoolExecutor(helpers) as pool:
            try:
                futures = [pool.submit(drain) for _ in range(helpers)]
                drain(self.on_tiles)
                for future in futures:
                    future.result()
            finally:
                stop.set()
                call_off()


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
