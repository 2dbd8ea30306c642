"""A report: one HTML file that shows a fitted model to people who would rather look than read.

The file holds everything it needs, loads nothing, and its content security policy forbids it
to. Python gathers numbers (`content`), says them in words (`words`) and draws what does not
move (`charts`); the page's own scripts in `assets/` draw what does.
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
