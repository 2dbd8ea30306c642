"""Ctrl-C and SIGTERM as one exception that cleans up on its way out."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

STOPPING = (signal.SIGINT, signal.SIGTERM)


class Stopped(BaseException):
    """A signal asks to stop.

    Not KeyboardInterrupt, which online methods answer with a valid model so far: a command that
    is stopped leaves nothing behind.
    """

    def __init__(self, number: int):
        super().__init__(signal.Signals(number).name)
        # What shells report for a program that a signal has ended.
        self.exit_code = 128 + number


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Raise `Stopped` in the main thread when SIGINT or SIGTERM comes."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers
        return

    def stop(number, _frame):
        raise Stopped(number)

    # Shells let their background jobs ignore SIGINT, which is to stay so.
    heard = [n for n in STOPPING if signal.getsignal(n) is not signal.SIG_IGN]
    before = {number: signal.signal(number, stop) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
