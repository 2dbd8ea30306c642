"""Progress of a fit: a bar for people, a callback for programs."""

import math

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from ..solvers import PassState
from .left import TimeLeft
from .notebook import make_progress

# Passes foreseen before the first residual is known.
FIRST_GUESS = 6


class PassBar:
    """Receives every pass and every tile of a fit.

    Parameters
    ----------
    verbose : int
        0 for silence, 1 for a progress bar on stderr, or in the notebook.
    callback : callable or None
        ``callback(state)`` after each pass; True stops the fit.
    passes : int or None
        Passes there will be, where that is known beforehand.
    title : str
        What the bar says is being done.
    """

    def __init__(self, verbose=0, callback=None, passes=None, title="kernel PCA"):
        self.title = title
        self.callback = callback
        self.stopped = False
        self.passes = passes
        self._bar = _make_bar() if verbose else None
        self._task = TaskID(0)  # of no meaning until there is a bar
        self._done = 0
        self._first: tuple[float, float] | None = None

    def __enter__(self):
        if self._bar is not None:
            self._bar.start()
            known = self.passes is not None
            self._task = self._bar.add_task(
                self.title, total=self._guess, state="first pass", guess=not known
            )
        return self

    def __exit__(self, *error):
        if self._bar is not None:
            if error[0] is None:
                self._bar.update(self._task, completed=self._done, total=self._done)
            self._bar.stop()

    def tiles(self, done: int, total: int) -> None:
        """A share of the running pass is done."""
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done + done / total)

    def report(self, state: PassState) -> bool:
        """A pass is done; True if the callback asks to stop."""
        self._done = state.n_passes
        if self._bar is not None:
            text = f"pass {state.n_passes}, residual {state.residual:.1e}"
            guess = self.passes is None and self._first is None
            total = max(self._expected(state), state.n_passes)
            self._bar.update(
                self._task, completed=state.n_passes, total=total, state=text, guess=guess
            )
        self.stopped |= self.callback is not None and bool(self.callback(state))
        return self.stopped

    @property
    def _guess(self) -> int:
        return self.passes or FIRST_GUESS

    def _expected(self, state) -> float:
        """Passes in all if the residual keeps falling as it has since the first one."""
        if self.passes is not None:
            return self.passes
        if self._first is None:
            self._first = (state.n_passes, state.residual)
            return max(FIRST_GUESS, state.n_passes + 1)
        passes = state.n_passes - self._first[0]
        fall = math.log(max(self._first[1], 1e-300) / max(state.residual, 1e-300))
        left = math.log(max(state.residual, 1e-300) / max(state.tol, 1e-300))
        return state.n_passes if left <= 0 else state.n_passes + left * passes / max(fall, 0.1)


def _make_bar() -> Progress:
    return make_progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[state]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeLeft(),
        console=Console(stderr=True),
    )
