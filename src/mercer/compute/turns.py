"""Results of threads that are added up in a fixed order, so that sums are the same in every run."""

import threading
from collections.abc import Callable, Hashable

# Seconds after which a waiting thread looks again whether the work was called off.
PATIENCE = 0.1


class Turns:
    """Lets the results of tasks be added in the order of the tasks, whichever is done first.

    Floating-point sums depend on their order. Tasks are begun in their order, so that the
    first one that is not done never waits, and a thread waits only to add, not to compute.
    """

    def __init__(self) -> None:
        self._next: dict[Hashable, int] = {}
        self._changed = threading.Condition()
        self._called_off = False

    def add(self, place: Hashable, number: int, action: Callable[[], object]) -> None:
        """Do `action` after those of all smaller numbers at the same place."""
        with self._changed:
            while self._next.get(place, 0) != number:
                if self._called_off:
                    return
                self._changed.wait(PATIENCE)
        action()
        with self._changed:
            self._next[place] = number + 1
            self._changed.notify_all()

    def call_off(self) -> None:
        """Let nobody wait for a thread that has failed."""
        self._called_off = True
