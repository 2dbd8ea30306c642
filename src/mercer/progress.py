"""Progress bars of passes and of rows, in terminals and notebooks."""

import io
import math
import sys
import time
from collections.abc import Callable
from threading import Event, Thread

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column
from rich.text import Text

from .solvers import PassState

# Expected passes before the first residual is known.
FIRST_GUESS = 6
# Seconds from which a fit is announced, and seconds between lines in logs.
LONG, EVERY = 60, 60


class PassBar:
    """Receives every pass and every tile of a fit.

    Parameters
    ----------
    verbose : int
        0 for silence, 1 for a progress bar on stderr, or in the notebook, 2 for a line each minute.
    callback : callable or None
        ``callback(state)`` after each pass; True stops the fit.
    passes : int or None
        Passes there will be, where that is known beforehand.
    title : str
        What the bar says is being done.
    drawn : bool
        Whether there is a bar at all; passes over blocks show their own.
    """

    def __init__(self, verbose=0, callback=None, passes=None, title="kernel PCA", drawn=True):
        self.title, self.verbose, self.callback, self.passes = title, verbose, callback, passes
        self.seconds, self.stopped = 0.0, False
        middle = TextColumn("{task.fields[state]}")
        self._bar = make_bar(middle, lines=verbose == 2) if verbose and drawn else None
        self._task = TaskID(0)  # of no meaning until there is a bar
        self._done = 0
        self._first: tuple[float, float] | None = None

    def __enter__(self):
        if self._bar is not None:
            self._bar.start()
            total, fields = self.passes or FIRST_GUESS, {"guess": self.passes is None}
            self._task = self._bar.add_task(self.title, total=total, state="first pass", **fields)
        return self

    def __exit__(self, *error):
        if self._bar is not None:
            if error[0] is None:
                self._bar.update(self._task, completed=self._done, total=self._done)
            self._bar.stop()

    @property
    def tiles(self) -> Callable[[int, int], None] | None:
        """What to call when a share of the running pass is done; None where nothing is shown."""
        bar = self._bar
        if bar is None:
            return None
        return lambda done, total: bar.update(self._task, completed=self._done + done / total)

    def foresee(self, seconds: float, words: str) -> None:
        """Announce a fit that is predicted to take more than a minute, once."""
        if not seconds > LONG:  # NaN if unknown
            return
        if not self.seconds and (self.verbose or sys.stderr.isatty()):
            print(words, file=sys.stderr)
        self.seconds = seconds
        if self._bar is not None:
            self._bar.update(self._task, foreseen=seconds)

    def report(self, state: PassState) -> bool:
        """A pass is done; True if the callback asks to stop."""
        self._done = done = state.n_passes
        if self._bar is not None:
            text = f"pass {done}, residual {state.residual:.1e}"
            guess = self.passes is None and self._first is None
            total = max(self._expected(state), done)
            self._bar.update(self._task, completed=done, total=total, state=text, guess=guess)
        self.stopped |= self.callback is not None and bool(self.callback(state))
        return self.stopped

    def _expected(self, state) -> float:
        """Total number of passes if the residual keeps falling as it has since the first one."""
        if self.passes is not None:
            return self.passes
        if self._first is None:
            self._first = (state.n_passes, state.residual)
            return max(FIRST_GUESS, state.n_passes + 1)
        passes = state.n_passes - self._first[0]
        first, last, goal = (
            math.log(max(r, 1e-300)) for r in (self._first[1], state.residual, state.tol)
        )
        return state.n_passes + max(last - goal, 0.0) * passes / max(first - last, 0.1)


class RowBar:
    """A bar on stderr for each pass over the rows of a source.

    Parameters
    ----------
    verbose : int
        0 for silence, 1 for bars, 2 for a line each minute.
    console : rich Console or None
        Where to draw; None for stderr.
    """

    def __init__(self, verbose=0, console=None):
        # A short bar leaves room for the numbers on 80 columns.
        middle = RowsPerSecond(table_column=Column(no_wrap=True))
        self._bar = make_bar(middle, 20, console, verbose == 2) if verbose else None

    def __enter__(self):
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *error):
        if self._bar is not None:
            self._bar.stop()

    def over(self, blocks, title: str, total: int | None):
        """The same blocks, counted as they are done; the total may be unknown."""
        if self._bar is None:
            yield from blocks
            return
        task, done = self._bar.add_task(title, total=total), 0
        for block in blocks:
            yield block
            done += block.shape[0]
            self._bar.update(task, completed=done)
        self._bar.update(task, total=done)


def make_bar(middle: ProgressColumn, width=40, console=None, lines=False) -> Progress:
    """A bar for where the program runs: a terminal, a notebook, or `lines` of a log."""
    console = console or Console(stderr=True)
    kind = LineProgress if lines else NotebookProgress if console.is_jupyter else Progress
    left = (TimeElapsedColumn(), TextColumn("left"), TimeLeft())
    what = TextColumn("{task.description}")
    return kind(what, BarColumn(bar_width=width), middle, *left, console=console)


class RowsPerSecond(ProgressColumn):
    """Rows done, and how many a second: ``1,200,000 rows, 350,000/s``."""

    def render(self, task):
        speed = task.finished_speed or task.speed
        rate = f", {speed:,.0f}/s" if speed else ""
        return Text(f"{task.completed:,.0f} rows{rate}")


class TimeLeft(ProgressColumn):
    """The time left: the least that was ever foreseen, so that it never grows.

    How many passes a fit takes is known only as it goes. While that is a guess (the field
    ``guess`` of a task is true) what was foreseen before the fit is shown, if anything was.
    """

    max_refresh = 0.5

    def __init__(self):
        super().__init__()
        self._least: dict[int, float] = {}

    def render(self, task):
        if task.finished:
            return Text("0:00")
        foreseen = task.fields.get("foreseen", 0) - (task.elapsed or 0)
        if not task.fields.get("guess") and task.total and task.completed and task.elapsed:
            # At the mean speed so far: rich forgets its own when a total changes.
            foreseen = task.elapsed * (task.total - task.completed) / task.completed
        elif foreseen <= 0 or not task.fields.get("guess"):
            return Text("-:--")
        least = self._least[task.id] = min(foreseen, self._least.get(task.id, foreseen))
        minutes, seconds = divmod(int(least), 60)
        hours, minutes = divmod(minutes, 60)
        return Text(f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}")


class LineProgress(Progress):
    """rich's bar as a line each minute, for logs; nothing of what is done sooner."""

    def start(self) -> None:
        self._over = Event()
        Thread(target=self._speak, daemon=True).start()

    def _speak(self) -> None:
        while not self._over.wait(EVERY):
            self.console.print(self.get_renderable())

    def stop(self) -> None:
        self._over.set()


class NotebookProgress(Progress):
    """rich's bar as HTML in one output of the cell.

    rich itself asks for ipywidgets here, and without them warns and shows nothing.
    """

    _handle = None
    _drawn = 0.0

    def start(self) -> None:
        from IPython.display import HTML, display

        self._handle = display(HTML(self._html()), display_id=True)

    def update(self, task_id, **fields) -> None:  # type: ignore[override]
        super().update(task_id, **fields)
        # Notebooks get every drawing as a message.
        if time.monotonic() - self._drawn >= 0.1:
            self.refresh()

    def refresh(self) -> None:
        if self._handle is not None:
            from IPython.display import HTML

            self._drawn = time.monotonic()
            self._handle.update(HTML(self._html()))

    def stop(self) -> None:
        self.refresh()
        self._handle = None

    def _html(self) -> str:
        console = Console(record=True, file=io.StringIO(), width=100, force_jupyter=False)
        console.print(self.get_renderable())
        # The page's own colors for plain text, so that light and dark pages are both readable.
        frame = "<pre style='white-space:pre;overflow-x:auto;line-height:normal'>{code}</pre>"
        return console.export_html(inline_styles=True, code_format=frame)
