"""A report: one HTML file that shows a fitted model to people who would rather look than read.

The file holds everything it needs, loads nothing, and its content security policy forbids it
to. Python gathers numbers (`content`), says them in words (`words`) and draws what does not
move (`charts`); the page's own scripts in `assets/` draw what does.
"""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any

from rich.progress import TextColumn
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._whole_file import check_folder, whole_file
from ..estimators._door import Door
from ..progress import make_bar
from ..relatives.explaining import Significance
from .content import Content
from .page import render

# Pixels of a report inside a notebook.
HEIGHT = 860


class Report:
    """An interactive page of a fitted model and rows; a notebook shows it in place.

    The page says in words what was fitted and how sure the numbers are, and shows the rows by
    any two or three components, the spectrum, the passes where they were recorded, what each
    component means by a walk of pre-images, and the rows that the components explain worst. Where
    a model has none of one of these, the page is without.

    The page holds values of the rows it shows: share it only with those who may see them.

    Parameters
    ----------
    model : fitted estimator of mercer
        A model loaded from a file serves as well.
    X : array-like, sparse matrix, DataFrame, path or Arrow data of shape (n, n_features)
        Rows to show, those of the fit or others; with a precomputed kernel their kernel with
        the training rows. Errors are found for all of them. Of a table with names the model takes
        its columns, and the others are shown.
    columns : sequence of str or None, default=None
        Names of the columns; None takes them from a DataFrame or from the fit.
    table : DataFrame, mapping of str to array-like or None, default=None
        Further columns of the rows, numbers, texts or dates, of any number of different values
        and with missing ones: to color by, to search and to save.
    colors : str, int, array-like of shape (n,) or None, default=None
        What to color the points by at first: a column by name or number, or a value for every
        row. Words, truth values and few whole numbers are groups; other numbers are a scale.
    color_name : str or None, default=None
        What the values in `colors` are called; None for the name of a Series or column.
    images : (h, w), (h, w, channels) or None, default=None
        Shape of a row as an image. Rows are then shown as thumbnails.
    title : str or None, default=None
        Heading of the page.
    max_points : int or None, default=None
        Points shown at most: the rows with the largest errors and a random sample of the rest.
        None for 200,000, or 20,000 images.
    history : history, mapping of str to history, or None, default=None
        Passes to show, as `mercer.plot.convergence` takes them; None for the model's own.
    row_names : sequence of str or None, default=None
        What rows are called, such as the names of image files: shown, searched and exported.
    significance : Significance or None, default=None
        Of ``model.significance()``: shown beside the spectrum. None for what the model has kept
        of the last one.
    scaling : object with `apply` and `undo`, or None, default=None
        How rows were scaled before the fit. X is given, and shown, as it was before.
    verbose : int or None, default=None
        1 shows what is being done as a bar, 2 as a line each minute; None for what the model has.

    Attributes
    ----------
    html : str
        The whole page.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelPCA
    >>> X, species = load_iris(return_X_y=True)
    >>> model = KernelPCA(3, kernel="rbf", gamma="median").fit(X)
    >>> report = model.report(X, colors=species)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report.save(folder + "/iris.html").name
    'iris.html'
    """

    def __init__(
        self,
        model: Any,
        X: Any,
        *,
        columns: Sequence[str] | None = None,
        table: Mapping[str, Any] | Any = None,
        colors: Any = None,
        color_name: str | None = None,
        images: Any = None,
        title: str | None = None,
        max_points: int | None = None,
        history: Any = None,
        row_names: Sequence[str] | None = None,
        significance: Significance | None = None,
        scaling: Any = None,
        verbose: int | None = None,
    ):
        check_model(model)
        verbose = model.verbose if verbose is None else verbose
        made = make_bar(TextColumn("{task.fields[state]}"), 20, lines=verbose == 2)
        with made if verbose else nullcontext():
            task = made.add_task("report", total=5, state="")

            def tell(state: str) -> None:
                made.update(task, advance=1, state=state)

            look = (columns, table, colors, color_name, images, title, max_points, history)
            content = Content(model, X, *look, row_names, significance, scaling, tell)
            tell("page")
            self.html = render(content)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the page to a file, whole or not at all, and return its path."""
        with whole_file(path) as file:
            # What UTF-8 cannot hold, such as half of a surrogate pair, is named by number.
            file.write(self.html.encode("utf-8", "xmlcharrefreplace"))
        return Path(path)

    def _repr_html_(self) -> str:
        # A frame of its own keeps the page's style and policy apart from the notebook's.
        return (
            f'<iframe srcdoc="{escape(self.html)}" width="100%" height="{HEIGHT}" '
            'sandbox="allow-scripts allow-downloads" frameborder="0"></iframe>'
        )

    def __repr__(self) -> str:
        return f"Report of {len(self.html) / 1e6:.1f} MB; save(path) writes it"


def check_model(model) -> None:
    """Raise TypeError for what has no report, with what to do instead."""
    if not isinstance(model, BaseEstimator):
        raise TypeError(f"A report needs a fitted model, and got {model!r}.")
    if not isinstance(model, Door):
        raise TypeError(
            f"A report needs an estimator of mercer, such as mercer.KernelPCA, and got "
            f"{type(model).__name__}."
        )
    check_is_fitted(model)
    if not model.__sklearn_tags__().input_tags.two_d_array:
        known = "X_fit_" if "X_fit_" in vars(vars(model)["model_"] or model) else "X_sample_"
        raise TypeError(
            f"{type(model).__name__} works on images, which are no rows to show. Show the patches "
            f"that it has learned from: model.model_.report(model.model_.{known}, images=(7, 7)), "
            "with the size of a patch."
        )


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
    check_folder(Path(path))
    return Report(model, X, **options).save(path)


__all__ = ["Report", "write_report"]
