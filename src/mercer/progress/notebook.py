"""Progress bars in a notebook: one display that is drawn again, without any widgets."""

import io
import time

from rich.console import Console
from rich.progress import Progress

# Seconds between two drawings: notebooks get every one as a message.
PAUSE = 0.1
# Characters of a line.
WIDTH = 100


class NotebookProgress(Progress):
    """rich's bar as HTML in one output of the cell.

    rich itself asks for ipywidgets here, and without them warns and shows nothing.
    """

    _handle = None
    _drawn = 0.0

    def start(self) -> None:
        """Show the bar."""
        from IPython.display import HTML, display

        self._handle = display(HTML(self._html()), display_id=True)

    def update(self, task_id, **fields) -> None:  # type: ignore[override]
        """Change a task, and draw it unless that was done a moment ago."""
        super().update(task_id, **fields)
        if time.monotonic() - self._drawn >= PAUSE:
            self.refresh()

    def refresh(self) -> None:
        """Draw the bar again where it is."""
        if self._handle is not None:
            from IPython.display import HTML

            self._drawn = time.monotonic()
            self._handle.update(HTML(self._html()))

    def stop(self) -> None:
        """Draw the bar for the last time."""
        self.refresh()
        self._handle = None

    def _html(self) -> str:
        console = Console(record=True, file=io.StringIO(), width=WIDTH, force_jupyter=False)
        console.print(self.get_renderable())
        # The page's own colors for plain text, so that light and dark pages are both readable.
        frame = "<pre style='white-space:pre;overflow-x:auto;line-height:normal'>{code}</pre>"
        return console.export_html(inline_styles=True, code_format=frame)


def make_progress(*columns, console: Console) -> Progress:
    """A bar for where the program runs: a terminal, a file or a notebook."""
    kind = NotebookProgress if console.is_jupyter else Progress
    return kind(*columns, console=console)
