"""Progress of a pass over rows: how many, how fast, and the time left."""

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Column
from rich.text import Text

from .left import TimeLeft
from .notebook import make_progress


class RowBar:
    """A bar on stderr for each pass over the rows of a source.

    Parameters
    ----------
    verbose : int
        0 for silence, 1 for bars.
    console : rich Console or None
        Where to draw; None for stderr.
    """

    def __init__(self, verbose=0, console=None):
        self._bar = _make_bar(console or Console(stderr=True)) if verbose else None
        self._task = TaskID(0)  # of no meaning until there is a bar

    def __enter__(self):
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *error):
        if self._bar is not None:
            self._bar.stop()

    def over(self, blocks, title: str, total: int | None):
        """The same blocks, counted as they are done; the total may be unknown."""
        if self._bar is not None:
            self._task = self._bar.add_task(title, total=total)
        done = 0
        for block in blocks:
            yield block
            done += block.shape[0]
            if self._bar is not None:
                self._bar.update(self._task, completed=done)
        if self._bar is not None:
            self._bar.update(self._task, total=done)


class RowsPerSecond(ProgressColumn):
    """Rows done, and how many a second."""

    def render(self, task):
        """For example ``1,200,000 rows, 350,000/s``."""
        speed = task.finished_speed or task.speed
        rate = f", {speed:,.0f}/s" if speed else ""
        return Text(f"{task.completed:,.0f} rows{rate}")


def _make_bar(console) -> Progress:
    return make_progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),  # leaves room for the numbers on 80 columns
        RowsPerSecond(table_column=Column(no_wrap=True)),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeLeft(),
        console=console,
    )
