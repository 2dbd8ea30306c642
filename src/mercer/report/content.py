"""What a report shows, gathered from a model and rows: numbers only, no HTML."""

from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np

from ..compute import is_sparse, to_numpy
from ..files import RowSource, is_arrow, open_source
from ..kernels import Precomputed
from ..plot.axes import dense
from ..plot.fits import QUANTITIES, curves
from ..relatives.attribution import Attribution
from ..relatives.significance import Significance
from .coloring import Coloring, make_coloring
from .thumbnails import check_images
from .walks import Walks, take_walks
from .words import lead, sentences

# Components among which to choose axes, columns whose values are shown, rows of the table.
COMPONENTS = 32
COLUMNS = 32
OUTLIERS = 20
# Rows whose gradients are averaged.
ATTRIBUTION_ROWS = 300


@dataclass(frozen=True)
class Content:
    """Everything on the page.

    Attributes
    ----------
    title : str
    lead : str
        What is seen, for readers who never saw the code.
    sentences : list of str
    model : fitted estimator
    total : int
        Rows given.
    index : array of shape (n,)
        Numbers of the rows shown, in order.
    scores : array of shape (n, at most COMPONENTS)
    errors : array of shape (n,) or None
        Squared distance of each row to its reconstruction; None for a precomputed kernel, whose
        k(x, x) is not known for new rows.
    outliers : array
        Places, among the rows shown, of those with the largest errors, largest first.
    rows : array of shape (n, d) or None
        The rows shown, where they are images; None otherwise.
    columns : list of str
        Names of the columns in `values`.
    values : array of shape (n, at most COLUMNS)
    coloring : Coloring or None
    shape : tuple of int or None
        Of a row as an image.
    names : list of str
        Of all columns.
    walks : Walks or str
        Or why there are none.
    history : (str, dict) or None
        A label and curves by name.
    row_names : list of str or None
        What the rows shown are called, besides their numbers.
    attribution : Attribution or str
        Columns that drive the components, or why that is not known.
    significance : Significance or None
    """

    title: str
    lead: str
    sentences: list[str]
    model: Any
    total: int
    index: np.ndarray
    scores: np.ndarray
    errors: np.ndarray | None
    outliers: np.ndarray
    rows: np.ndarray | None
    columns: list[str]
    values: np.ndarray
    coloring: Coloring | None
    shape: tuple[int, ...] | None
    names: list[str]
    walks: Walks | str
    history: tuple[str, dict] | None
    row_names: list[str] | None
    attribution: Attribution | str
    significance: Significance | None = None


def gather(
    model, X, columns, colors, color_name, images, title, max_points, history, row_names=None
) -> Content:
    """The content of a report; all checks of its arguments are here."""
    if not isinstance(max_points, int | np.integer) or max_points < 1:
        raise ValueError(f"max_points={max_points!r} must be a whole number of at least 1.")
    if is_arrow(X) or isinstance(X, str | PathLike):
        X = table_for(model, X)
        columns = columns or X.columns
        if isinstance(colors, str) and colors in X.left_out:
            color_name, colors = color_name or colors, X.others([colors])[colors]
    precomputed = isinstance(model.kernel_, Precomputed)
    S = scores_of(model, X)
    errors = None if precomputed else dense(model.reconstruction_error(X))
    names = column_names(model, X, columns)
    if model._encoding is not None:
        if isinstance(colors, str) and colors in names:
            color_name, colors = color_name or colors, np.asarray(X[colors])
        X = numbers_of(X, names)
    X = plain_rows(X)
    n, d = X.shape
    shape = check_images(images, d)
    coloring = make_coloring(colors, names, X, n, color_name)
    worst = worst_rows(errors, min(OUTLIERS, int(max_points)))
    index = rows_to_show(n, worst, int(max_points))
    rows = X[index]
    shown = [] if precomputed or shape else shown_columns(model, rows)
    return Content(
        title=title or f"Kernel PCA of {n:,} rows",
        lead=lead(model, index.size),
        sentences=sentences(model, n, index.size),
        model=model,
        total=n,
        index=index,
        scores=S[index, :COMPONENTS],
        errors=None if errors is None else errors[index],
        outliers=np.searchsorted(index, worst),
        rows=dense(rows) if shape else None,
        columns=[names[k] for k in shown],
        values=dense(rows[:, shown]),
        coloring=coloring and coloring.take(index),
        shape=shape,
        names=names,
        walks=take_walks(model),
        history=recorded(model, history),
        row_names=names_of_rows(row_names, n, index),
        attribution=driven_by(model, names),
    )


def numbers_of(frame, names) -> np.ndarray:
    """The columns of a mixed frame, (n, d), NaN where they hold no numbers."""
    columns = (np.asarray(frame[name]) for name in names)
    blank = np.full(len(frame), np.nan)
    return np.column_stack([c.astype(float) if c.dtype.kind in "biuf" else blank for c in columns])


def shown_columns(model, rows) -> list[int]:
    """The first columns; of a mixed frame those of complete numbers."""
    d = rows.shape[1]
    whole = range(d) if model._encoding is None else np.flatnonzero(np.isfinite(rows).all(axis=0))
    return [int(k) for k in whole][:COLUMNS]


def scores_of(model, X) -> np.ndarray:
    """The scores of the rows of X, of which there is something to show."""
    S = dense(model.transform(X))
    if not S.shape[1]:
        raise ValueError(
            "The model kept no component, so that there is nothing to show. Fit it to rows that "
            "are not all equal."
        )
    return S


def driven_by(model, names) -> Attribution | str:
    """The columns that drive the components over training rows, or why that is not known."""
    try:
        return replace(model.attribute(max_rows=ATTRIBUTION_ROWS), columns=tuple(names))
    except ValueError as error:
        return str(error)


def table_for(model, X) -> RowSource:
    """A table, or the path of one, with the columns that the model was fitted to."""
    names, source = model._recorded().columns, open_source(X)
    if names is None or source.columns in (None, names):
        return source
    return open_source(X, columns=names)


def plain_rows(X):
    """X as a NumPy array, memmap or CSR matrix; the model has checked it already."""
    X = X.read() if isinstance(X, RowSource) else X
    return X.tocsr() if is_sparse(X) else np.asarray(to_numpy(X))


def column_names(model, X, columns) -> list[str]:
    """Names given, those of a DataFrame, those of the fit, or numbers from 1."""
    if columns is None:
        columns = getattr(X, "columns", model._recorded().columns)
    if columns is None:
        return [f"column {k + 1}" for k in range(model.n_features_in_)]
    if isinstance(columns, str):
        raise TypeError(f"columns={columns!r} must be a sequence of names, one for each column.")
    names = [str(name) for name in columns]
    d = model.n_features_in_
    if len(names) != d:
        raise ValueError(f"columns has {len(names)} names, and the rows have {d} columns.")
    return names


def names_of_rows(row_names, n: int, index) -> list[str] | None:
    """The names of the rows shown, one a row."""
    if row_names is None:
        return None
    if len(row_names) != n:
        raise ValueError(f"row_names has {len(row_names)} names, and X has {n} rows.")
    return [str(name) for name in np.asarray(row_names)[index]]


def worst_rows(errors, most: int) -> np.ndarray:
    """Rows with the largest errors, largest first; none where errors are not known."""
    return np.arange(0) if errors is None else np.argsort(-errors, kind="stable")[:most]


def rows_to_show(n: int, worst, most: int) -> np.ndarray:
    """All rows, or the worst and a random sample of the others, in order.

    The same rows each time: the sample is drawn with a fixed seed.
    """
    if n <= most:
        return np.arange(n)
    others = np.setdiff1d(np.arange(n), worst)
    drawn = np.random.default_rng(0).choice(others, most - worst.size, replace=False)
    return np.sort(np.concatenate([worst, drawn]))


def recorded(model, history):
    """A label and the curves of the passes, where some were recorded."""
    if history is None:
        history = model._recorded().passes
        if history is None or not len(history.changes):
            return None
    quantity, named = curves(history)
    return QUANTITIES[quantity], named
