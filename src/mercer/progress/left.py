"""The time that is left, as a column of a progress bar."""

from rich.progress import ProgressColumn
from rich.text import Text


class TimeLeft(ProgressColumn):
    """The time left: the least that was ever foreseen, so that it never grows.

    How many passes a fit takes is known only as it goes. While that is a guess (the field
    ``guess`` of a task is true) no time is shown.
    """

    max_refresh = 0.5

    def __init__(self):
        super().__init__()
        self._least: dict[int, float] = {}

    def render(self, task):
        """Minutes and seconds, with hours before them where there are any."""
        if task.finished:
            return Text("0:00")
        if task.fields.get("guess") or not task.total or not task.completed or not task.elapsed:
            return Text("-:--")
        # At the mean speed so far: rich forgets its own when a total changes.
        foreseen = task.elapsed * (task.total - task.completed) / task.completed
        least = self._least[task.id] = min(foreseen, self._least.get(task.id, foreseen))
        minutes, seconds = divmod(int(least), 60)
        hours, minutes = divmod(minutes, 60)
        text = f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
        return Text(text)
