"""A report: one HTML file that shows a fitted model to people who would rather look than read.

The file holds everything it needs, loads nothing, and its content security policy forbids it
to. Python gathers numbers (`content`), says them in words (`words`) and draws what does not
move (`charts`); the page's own scripts in `assets/` draw what does.
"""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._whole_file import check_folder, whole_file
from ..estimators._model import KernelModel
from ..relatives.explaining import Significance
from .content import Content
from .page import render


def write_report(
    model: Any,
    X: Any,
    path: str | PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    colors: Any = None,
    color_name: str | None = None,
    images: Any = None,
    title: str | None = None,
    max_points: int = 20_000,
    history: Any = None,
    row_names: Sequence[str] | None = None,
    significance: Significance | None = None,
    scaling: Any = None,
) -> Path:
    """Write an interactive report of a fitted model as one HTML file that needs no network.

    The page says in words what was fitted and how sure the numbers are, and shows the rows by
    any two or three components, the spectrum, the passes where they were recorded, what each
    component means by a walk of pre-images, and the rows that the components explain worst.

    The file holds values of the rows it shows: share it only with those who may see them.

    Parameters
    ----------
    model : fitted KernelPCA, HebbianKernelPCA or StreamingKernelPCA
        A model loaded from a file serves as well.
    X : array-like, sparse matrix, DataFrame, path or Arrow data of shape (n, n_features)
        Rows to show, those of the fit or others; with a precomputed kernel their kernel with
        the training rows. Errors are found for all of them.
    path : str or path
        The file, replaced if there is one. On failure nothing is left of the new and the old
        one stays.
    columns : sequence of str or None, default=None
        Names of the columns; None takes them from a DataFrame or from the fit.
    colors : str, int, array-like of shape (n,) or None, default=None
        What to color the points by at first: a column by name or number, or a value for every
        row. Words, truth values and few whole numbers are groups; other numbers are a scale.
    color_name : str or None, default=None
        What the values in `colors` are called; None for the name of a Series or column.
    images : (h, w), (h, w, channels) or None, default=None
        Shape of a row as an image. Rows are then shown as thumbnails.
    title : str or None, default=None
        Heading of the page.
    max_points : int, default=20_000
        Points shown at most: the rows with the largest errors and a random sample of the rest.
    history : history, mapping of str to history, or None, default=None
        Passes to show, as `mercer.plot.convergence` takes them; None for the model's own.
    row_names : sequence of str or None, default=None
        What rows are called, such as the names of image files: shown, searched and exported.
    significance : Significance or None, default=None
        Of ``model.significance()``: shown beside the spectrum. None for what the model has kept
        of the last one.
    scaling : object with `apply` and `undo`, or None, default=None
        How rows were scaled before the fit. X is given, and shown, as it was before.

    Returns
    -------
    pathlib.Path
        The file written.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelPCA
    >>> from mercer.report import write_report
    >>> X, species = load_iris(return_X_y=True)
    >>> model = KernelPCA(3, kernel="rbf", gamma="median").fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(model, X, folder + "/iris.html", colors=species).name
    'iris.html'
    """
    if not isinstance(model, BaseEstimator):
        raise TypeError(f"A report needs a fitted model, and got {model!r}.")
    if not isinstance(model, KernelModel):
        raise TypeError(
            f"A report needs a kernel PCA of mercer, such as mercer.KernelPCA, and got "
            f"{type(model).__name__}."
        )
    check_is_fitted(model)
    path = Path(path)
    check_folder(path)
    look = (columns, colors, color_name, images, title, max_points, history, row_names)
    text = render(Content(model, X, *look, significance, scaling))
    with whole_file(path) as file:
        # What UTF-8 cannot hold, such as half of a surrogate pair, is named by number.
        file.write(text.encode("utf-8", "xmlcharrefreplace"))
    return path


__all__ = ["write_report"]
