"""The threads of BLAS, held at one while small problems or our own threads are at work."""

import threading
from contextlib import contextmanager
from functools import cache
from typing import Any
from weakref import WeakSet

from threadpoolctl import ThreadpoolController


class Holder:
    """Somebody who needs BLAS at one thread, for as long as this is alive."""


class OneThread:
    """Holds BLAS at one thread from the first holder's coming to the last one's leaving.

    The number of threads belongs to the whole process. Fits in several threads of a program that
    each put back what they had found would leave it at whatever the last of them had met. Holders
    that an interrupt kept from leaving are forgotten, and the next one to leave puts back.
    """

    def __init__(self) -> None:
        # Of the thread that has it, so that an interrupt at any moment leaves nobody waiting.
        self._lock = threading.RLock()
        self._holders: WeakSet[Holder] = WeakSet()
        self._before: list[int] | None = None

    @contextmanager
    def __call__(self) -> Any:
        """One thread for what stands below; asked for again, it costs nothing."""
        holder = Holder()
        try:
            self._come(holder)
            yield
        finally:
            self._leave(holder)

    def _come(self, holder: Holder) -> None:
        with self._lock:
            self._holders.add(holder)
            if self._before is None:
                # What threadpoolctl's own `limit` does, which describes every library on the way.
                self._before = [library.num_threads for library in libraries()]
                for library, threads in zip(libraries(), self._before, strict=True):
                    if threads != 1:
                        library.set_num_threads(1)

    def _leave(self, holder: Holder) -> None:
        with self._lock:
            self._holders.discard(holder)
            if self._before is not None and not self._holders:
                for library, threads in zip(libraries(), self._before, strict=True):
                    if threads != 1:
                        library.set_num_threads(threads)
                self._before = None


@cache
def libraries() -> list:
    """What has threads of its own in this process; looking for it takes some milliseconds."""
    # NumPy and SciPy bring a BLAS each, and only what is loaded is found.
    import scipy.linalg  # noqa: F401

    return ThreadpoolController().lib_controllers


one_thread = OneThread()
