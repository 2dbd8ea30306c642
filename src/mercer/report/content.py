"""What a report shows, gathered from a model and rows: numbers only, no HTML."""

import math
import warnings
from dataclasses import dataclass, replace
from os import PathLike

import numpy as np
from sklearn.exceptions import NotFittedError

from ..compute import is_sparse, to_numpy
from ..files import RowSource, is_arrow, open_source
from ..hebbian import History
from ..kernels import Precomputed
from ..plot.axes import dense
from ..plot.fits import QUANTITIES, curves
from ..plot.rows import steps_along, walk
from ..relatives.explaining import Attribution
from .words import lead, sentences

# Components among which to choose axes, columns whose values are shown, rows of the table.
COMPONENTS = 32
COLUMNS = 32
OUTLIERS = 20
# Rows whose gradients are averaged.
ATTRIBUTION_ROWS = 300
# Components to walk along, steps of each, and standard deviations to both sides.
WALKED = 8
STEPS = 21
SPAN = 2.5
# Numbers of all walks; rows of very many columns are walked along fewer components.
WALK_NUMBERS = 2_000_000


# Whole numbers with no more distinct values than this are groups, such as digits.
WHOLE_GROUPS = 20
# Groups beyond this many would be told apart by neither color nor shape.
MOST_GROUPS = 60
# The code of a row without a value.
MISSING = 65_535


@dataclass(frozen=True)
class Walks:
    """Pre-images along the leading components.

    Attributes
    ----------
    steps : array of shape (q,)
        In standard deviations.
    deviations : array of shape (c,)
        Standard deviation of the scores of each component.
    rows : array of shape (c, q, d)
    note : str
        What the method warned of; empty if of nothing.
    """

    steps: np.ndarray
    deviations: np.ndarray
    rows: np.ndarray
    note: str


class Content:
    """Everything on the page, gathered and checked; for the parameters see `write_report`.

    Attributes
    ----------
    lead : str
        What is seen, for readers who never saw the code.
    sentences : list of str
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

    def __init__(
        self,
        model,
        X,
        columns,
        colors,
        color_name,
        images,
        title,
        max_points,
        history,
        row_names,
        significance,
        scaling,
    ):
        if not isinstance(max_points, int | np.integer) or max_points < 1:
            raise ValueError(f"max_points={max_points!r} must be a whole number of at least 1.")
        if is_arrow(X) or isinstance(X, str | PathLike):
            known, X = list(vars(model).get("feature_names_in_", ())), open_source(source := X)
            if known and X.columns not in (None, known):
                X = open_source(source, columns=known)
            columns = columns or X.columns
            if isinstance(colors, str) and colors in X.left_out:
                color_name, colors = color_name or colors, X.others([colors])[colors]
        precomputed, mixed = isinstance(model.kernel_, Precomputed), model._encoding is not None
        given = X if scaling is None else scaling.apply(X)
        S = dense(model.transform(given))
        if not S.shape[1]:
            raise ValueError(
                "The model kept no component, so that there is nothing to show. Fit it to rows "
                "that are not all equal."
            )
        errors = None if precomputed else dense(model.reconstruction_error(given))
        self.model, self.names = model, column_names(model, X, columns)
        if mixed and isinstance(colors, str) and colors in self.names:
            color_name, colors = color_name or colors, np.asarray(X[colors])
        X = plain_rows(X, self.names if mixed else None)
        n, d = X.shape
        self.shape = check_images(images, d)
        coloring = make_coloring(colors, self.names, X, n, color_name)
        if row_names is not None and len(row_names) != n:
            raise ValueError(f"row_names has {len(row_names)} names, and X has {n} rows.")
        most = min(OUTLIERS, int(max_points))
        worst = np.arange(0) if errors is None else np.argsort(-errors, kind="stable")[:most]
        self.index = index = rows_to_show(n, worst, int(max_points))
        rows = X[index]
        # Of a table with texts, the columns of complete numbers.
        whole = np.flatnonzero(np.isfinite(rows).all(axis=0)) if mixed else np.arange(d)
        shown = [] if precomputed or self.shape else whole[:COLUMNS].tolist()
        self.title = title or f"Kernel PCA of {n:,} rows"
        self.lead, self.sentences = lead(model, index.size), sentences(model, n, index.size)
        self.scores = S[index, :COMPONENTS]
        self.errors = None if errors is None else errors[index]
        self.outliers = np.searchsorted(index, worst)
        self.rows = dense(rows) if self.shape else None
        self.columns, self.values = [self.names[k] for k in shown], dense(rows[:, shown])
        self.coloring = coloring and coloring.take(index)
        self.row_names = None
        if row_names is not None:
            self.row_names = [str(name) for name in np.asarray(row_names)[index]]
        self.walks = take_walks(model, scaling)
        self.history = recorded(model, history)
        self.significance = significance or vars(model).get("significance_")
        self.attribution: Attribution | str
        try:
            found = model.attribute(max_rows=ATTRIBUTION_ROWS)
            self.attribution = replace(found, columns=tuple(self.names))
        except ValueError as error:
            self.attribution = str(error)


def column_names(model, X, columns) -> list[str]:
    """Names given, those of a DataFrame, those of the fit, or numbers from 1."""
    if columns is None:
        columns = getattr(X, "columns", vars(model).get("feature_names_in_"))
    if columns is None:
        return [f"column {k + 1}" for k in range(model.n_features_in_)]
    if isinstance(columns, str):
        raise TypeError(f"columns={columns!r} must be a sequence of names, one for each column.")
    names = [str(name) for name in columns]
    d = model.n_features_in_
    if len(names) != d:
        raise ValueError(f"columns has {len(names)} names, and the rows have {d} columns.")
    return names


def plain_rows(X, mixed: list[str] | None):
    """X as a NumPy array, memmap or CSR matrix; the model has checked it already.

    `mixed` names the columns of a frame with texts, which become NaN.
    """
    if mixed is not None:
        columns = (np.asarray(X[name]) for name in mixed)
        blank = np.full(len(X), np.nan)
        return np.column_stack(
            [c.astype(float) if c.dtype.kind in "biuf" else blank for c in columns]
        )
    X = X.read() if isinstance(X, RowSource) else X
    return X.tocsr() if is_sparse(X) else np.asarray(to_numpy(X))


def check_images(images, d: int) -> tuple[int, ...] | None:
    """The shape of a row as an image, or an error that says why it is none."""
    if images is None:
        return None
    shape = tuple(int(side) for side in images)
    if len(shape) not in (2, 3) or min(shape) < 1 or math.prod(shape) != d:
        raise ValueError(
            f"images={images!r} is not the shape of a row of {d} columns. Give (height, width) or "
            "(height, width, channels) whose product is the number of columns."
        )
    if shape[2:] not in ((), (1,), (3,)):
        raise ValueError(f"images={images!r} has {shape[2]} channels, and 1 or 3 can be shown.")
    return shape


def rows_to_show(n: int, worst, most: int) -> np.ndarray:
    """All rows, or the worst and a random sample of the others, in order.

    The same rows each time: the sample is drawn with a fixed seed.
    """
    if n <= most:
        return np.arange(n)
    others = np.setdiff1d(np.arange(n), worst)
    drawn = np.random.default_rng(0).choice(others, most - worst.size, replace=False)
    return np.sort(np.concatenate([worst, drawn]))


def take_walks(model, scaling) -> Walks | str:
    """Walks along the leading components, or why the model has no way back to rows."""
    deviations = np.sqrt(np.maximum(dense(model.explained_variance_).astype(float), 0.0))
    count = min(WALKED, deviations.size, max(1, WALK_NUMBERS // (STEPS * model.n_features_in_)))
    steps = steps_along(SPAN, STEPS)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            rows = np.stack([walk(model, k, steps) for k in range(count)])
        except (NotFittedError, ValueError) as error:
            return str(error)
    rows = rows if scaling is None else scaling.undo(rows)
    if not np.isfinite(rows).all():
        return "The pre-images of this model are not finite."
    note = " ".join(dict.fromkeys(str(one.message) for one in told))
    return Walks(steps, deviations[:count], rows, note)


def recorded(model, history):
    """A label and the curves of the passes, where some were recorded."""
    if history is None:
        history = vars(model).get("history_")
        if not isinstance(history, History) or not len(history.changes):
            return None
    quantity, named = curves(history)
    return QUANTITIES[quantity], named


@dataclass(frozen=True)
class Coloring:
    """A value for every row.

    Attributes
    ----------
    name : str
    groups : tuple of str or None
        Names of the groups; None for numbers on a scale.
    values : array of shape (n,)
        Codes of the groups, or numbers; NaN where there is none.
    """

    name: str
    groups: tuple[str, ...] | None
    values: np.ndarray

    def take(self, index) -> "Coloring":
        """The coloring of some rows."""
        return Coloring(self.name, self.groups, self.values[index])

    def text(self, i: int) -> str:
        """The value of row i, for a table."""
        value = self.values[i]
        if self.groups is None:
            return "" if np.isnan(value) else f"{value:.6g}"
        return "" if value == MISSING else self.groups[int(value)]


def make_coloring(colors, names, X, n: int, name: str | None = None) -> Coloring | None:
    """The coloring asked for.

    Parameters
    ----------
    colors : str, int, array-like of shape (n,) or None
    names : list of str
        Names of the columns of X.
    X : array of shape (n, d), sparse or not
    n : int
    name : str or None
        What to call the values; None for the name they bring.
    """
    if colors is None:
        return None
    if isinstance(colors, str | int | np.integer) and not isinstance(colors, bool):
        if colors not in names if isinstance(colors, str) else not 0 <= colors < len(names):
            some = ", ".join(repr(name) for name in names[:10])
            raise ValueError(
                f"There is no column {colors!r} to color by. Choose one of these: {some}; or give "
                f"a number below {len(names)}, counted from 0."
            )
        k = names.index(colors) if isinstance(colors, str) else int(colors)
        return _of_values(name or names[k], dense(X[:, [k]]).ravel())
    values = np.asarray(to_numpy(colors))
    if values.shape != (n,):
        raise ValueError(
            f"colors has shape {values.shape}, and X has {n} rows. Give one value a row, or the "
            "name of a column."
        )
    return _of_values(str(name or getattr(colors, "name", None) or "color"), values)


def _of_values(name, values) -> Coloring:
    if values.dtype.kind in "iuf":
        known = values[np.isfinite(values)]
        if not np.all(known == np.round(known)) or np.unique(known).size > WHOLE_GROUPS:
            numbers = values.astype(np.float32)
            # An infinite value has no place on a scale.
            return Coloring(name, None, np.where(np.isfinite(numbers), numbers, np.nan))
    texts = [_text(value) for value in values]
    present = np.array([text is not None for text in texts], dtype=bool)
    # Numbers in the order of numbers, words in that of words.
    numeric = values.dtype.kind in "biuf"
    order = (
        np.unique(values[present])
        if numeric
        else sorted(text for text in texts if text is not None)
    )
    code = {group: k for k, group in enumerate(dict.fromkeys(str(_text(one)) for one in order))}
    if len(code) > MOST_GROUPS:
        raise ValueError(
            f"colors has {len(code)} groups, which no one can tell apart. Give at most "
            f"{MOST_GROUPS}, or numbers for a scale."
        )
    codes = np.array([MISSING if text is None else code[text] for text in texts], np.uint16)
    return Coloring(name, tuple(code), codes)


def _text(value) -> str | None:
    """The name of a group; None for a missing value."""
    if value is None or value != value:
        return None
    return f"{value:g}" if isinstance(value, float | np.floating) else str(value)
