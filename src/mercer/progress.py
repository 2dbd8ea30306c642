"""Progress bars of passes and of rows, in terminals and notebooks."""

import io
import math
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread

from rich.console import Console
from rich.file_proxy import FileProxy
from rich.progress import BarColumn, Progress, ProgressColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column
from rich.text import Text

from .exceptions import Unfailing, to_stderr
from .solvers import PassState

# Expected passes before the first residual is known.
FIRST_GUESS = 6
# Residual that no pass lowers.
ROUNDED = 1e-15
# Seconds from which a fit is announced, and seconds between lines.
LONG, EVERY = 60, 60
# Seconds to the first line of a log, and to that of a terminal where nobody asked for progress.
FIRST, UNASKED = 2, 10


class PassBar:
    """Receives every pass and every tile of a fit.

    Parameters
    ----------
    verbose : int
        1 for a progress bar on stderr, or in the notebook, 2 for a line each minute. 0 for lines in
        a terminal from ten seconds on, which would seem to hang; -1 for silence.
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
        self.announced, self.stopped = False, False
        self._bar, is_watched = None, False
        with suppress(Exception):  # a stderr that is gone
            is_watched = sys.stderr.isatty()
        if (verbose > 0 and drawn) or (verbose == 0 and is_watched):
            first = (UNASKED, 0, FIRST)[verbose] if verbose < 3 else 0
            self._bar = make_bar(TextColumn("{task.fields[state]}"), first=first)
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
        """Take the predicted seconds for the time left, and announce the fit, once.

        With a bar that was asked for it is announced in any case, else from a minute on.
        """
        if self._bar is not None and self._bar.tasks and seconds > 0:  # NaN if unknown
            elapsed = self._bar.tasks[0].elapsed or 0.0
            self._bar.update(self._task, foreseen=elapsed + seconds)
        if (seconds > LONG or self.verbose == 1) and not self.announced:
            self.announced = True
            if self.verbose == 1 and isinstance(self._bar, NotebookProgress):
                self._bar.heading = words
            elif self.verbose > 0 or self._bar is not None:
                to_stderr(words)

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
            math.log(max(r, ROUNDED)) for r in (self._first[1], state.residual, state.tol)
        )
        return state.n_passes + max(last - goal, 0.0) * passes / max(first - last, 0.1)


class RowBar:
    """A bar on stderr for each pass over the rows of a source.

    Parameters
    ----------
    verbose : int
        1 for bars, 2 for a line each minute, less for silence.
    console : rich Console or None
        Where to draw; None for stderr.
    """

    def __init__(self, verbose=0, console=None):
        # A short bar leaves room for the numbers on 80 columns.
        middle = RowsPerSecond(table_column=Column(no_wrap=True))
        first = FIRST if verbose == 2 else 0
        self._bar = make_bar(middle, 20, console, first) if verbose > 0 else None

    def __enter__(self):
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *error):
        if self._bar is not None:
            self._bar.stop()

    def over(self, blocks, title: str, total: int | None):
        """The same blocks, counted as they are done; the total may be unknown, or an estimate."""
        if self._bar is None:
            yield from blocks
            return
        task, done = self._bar.add_task(title, total=total), 0
        for block in blocks:
            yield block
            done += block.shape[0]
            self._bar.update(task, completed=done, total=total and max(total, done))
        self._bar.update(task, total=done)


def make_bar(middle: ProgressColumn, width=40, console=None, first: float = 0) -> Progress:
    """A bar for where the program runs; with `first` lines instead, the first after so long."""
    # A bar that is drawn already stands between a program and its stderr.
    stderr = sys.stderr.rich_proxied_file if isinstance(sys.stderr, FileProxy) else sys.stderr
    console = console or Console(file=Unfailing(stderr))  # type: ignore[arg-type]
    left = (TimeElapsedColumn(), TextColumn("left"), TimeLeft())
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=width), middle, *left)
    if first:
        return LineProgress(first, *columns, console=console)
    return (NotebookProgress if console.is_jupyter else Progress)(*columns, console=console)


class RowsPerSecond(ProgressColumn):
    """Rows done, and how many a second: ``1,200,000 rows, 350,000/s``."""

    def render(self, task):
        speed = task.finished_speed or task.speed
        rate = f", {speed:,.0f}/s" if speed else ""
        return Text(f"{task.completed:,.0f} rows{rate}")


class TimeLeft(ProgressColumn):
    """The time left: the least that was foreseen in the same way, so that it seldom grows.

    How many passes a fit takes is known only as it goes. While that is a guess (the field
    ``guess`` of a task is true) what was foreseen before the fit is shown. Without that, or once
    it is over, the time left is that of the expected passes at the mean speed so far.
    """

    max_refresh = 0.5

    def __init__(self):
        super().__init__()
        self._least: dict[tuple[int, bool, bool], float] = {}

    def render(self, task):
        if task.finished:
            return Text("0:00")
        elapsed, guess = task.elapsed or 0.0, bool(task.fields.get("guess"))
        left = task.fields.get("foreseen", 0.0) - elapsed
        kind = (task.id, guess, left > 0)
        if (left <= 0 or not guess) and task.total and task.completed:
            # Not by rich, which forgets its speed when a total changes.
            left = elapsed * (task.total - task.completed) / task.completed
        if left <= 0:
            return Text("-:--")
        least = self._least[kind] = min(left, self._least.get(kind, left))
        minutes, seconds = divmod(int(least), 60)
        hours, minutes = divmod(minutes, 60)
        return Text(f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}")


class LineProgress(Progress):
    """rich's bar as lines, the first after `first` seconds and then one each minute."""

    def __init__(self, first: float, *columns: ProgressColumn, console: Console):
        super().__init__(*columns, console=console)
        self._first, self._over = first, Event()

    def start(self) -> None:
        Thread(target=self._speak, daemon=True).start()

    def _speak(self) -> None:
        wait = min(self._first, EVERY)
        while not self._over.wait(wait):
            self.console.print(self.get_renderable())
            wait = EVERY

    def stop(self) -> None:
        self._over.set()


class NotebookProgress(Progress):
    """rich's bar as HTML in one output of the cell.

    rich itself asks for ipywidgets here, and without them warns and shows nothing.
    """

    _handle = None
    _drawn = 0.0
    heading = ""

    def start(self) -> None:
        from IPython.display import HTML, display

        with suppress(Exception):  # a page that is closed must not end a fit
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
            with suppress(Exception):
                self._handle.update(HTML(self._html()))

    def stop(self) -> None:
        self.refresh()
        self._handle = None

    def _html(self) -> str:
        console = Console(record=True, file=io.StringIO(), width=100, force_jupyter=False)
        if self.heading:
            console.print(self.heading, markup=False, highlight=False)
        console.print(self.get_renderable())
        # The page's own colors for plain text, so that light and dark pages are both readable.
        frame = "<pre style='white-space:pre;overflow-x:auto;line-height:normal'>{code}</pre>"
        return console.export_html(inline_styles=True, code_format=frame)
