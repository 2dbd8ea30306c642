"""A report: one interactive HTML file that shows a fitted model.

The file holds everything it needs and loads nothing; its content security policy forbids that.
`content` gathers numbers and says them in sentences, `page` writes the HTML with charts that do
not move, and the scripts in `assets/` draw what does.
"""

from os import PathLike
from pathlib import Path
from typing import Any

from .content import Report


def write_report(model: Any, X: Any, path: str | PathLike[str], **options: Any) -> Path:
    """Write an interactive report of a fitted model as one HTML file that needs no network.

    Parameters
    ----------
    model : fitted estimator of mercer
    X : rows
    path : str or path
        The file, replaced if there is one. On failure nothing is left of the new and the old
        one stays.
    **options
        As of `Report`, which says what there is to show.

    Returns
    -------
    pathlib.Path
        The file written.
    """
    Report(model, X, path, **options)
    return Path(path)


__all__ = ["Report", "write_report"]
