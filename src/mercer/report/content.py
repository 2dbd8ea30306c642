"""What a report shows, gathered from a model and rows: numbers only, no HTML."""

import math
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from numbers import Real
from os import PathLike
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from ..compute import is_sparse, to_numpy
from ..files import RowSource, is_arrow, open_source
from ..hebbian import History
from ..plot.axes import dense
from ..plot.fits import QUANTITIES, curves
from ..plot.rows import steps_along, walk
from ..relatives.explaining import Attribution
from .words import lead, name_words, sentences

# Components among which to choose axes, and rows of the table of outliers.
COMPONENTS = 32
OUTLIERS = 20
# Rows shown unless told otherwise, of images and of others.
IMAGES, ROWS = 20_000, 200_000
# Values of columns that a page holds: of very many columns the first ones are shown.
VALUES = 8_000_000
# Rows whose gradients are averaged.
ATTRIBUTION_ROWS = 300
# Components to walk along, steps of each, and standard deviations to both sides.
WALKED = 8
STEPS = 21
SPAN = 2.5
# Numbers of all walks; rows of very many columns are walked along fewer components.
WALK_NUMBERS = 2_000_000
# Whole numbers with no more distinct values than this are groups, such as digits, in colors.
WHOLE_GROUPS = 20
# The code of a row without a value.
MISSING = -1
# A date, or a date and a time, as text.
DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?")
# What a model says of rows, by the kind of estimator: name, and words for values.
LABELS: dict[str | None, tuple[str, dict]] = {
    "clusterer": ("cluster", {}),
    "outlier_detector": ("novelty", {1: "normal", -1: "novel"}),
}


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
    """Everything on the page, gathered and checked; for the parameters see `Report`.

    What a model does not have is None, and has no place on the page.

    Attributes
    ----------
    model, inner : fitted estimators
        The one given, and the kernel PCA that it holds if it holds one; else the same.
    lead : str
        What is seen, for readers who never saw the code.
    sentences : list of str
    index : array of shape (n,)
        Numbers of the rows shown, in order.
    scores : array of shape (n, at most COMPONENTS)
    score_errors : array of shape (at most COMPONENTS,) or None
        How far the scores of each component can be off, root mean square; NaN where not known.
    errors : array of shape (n,) or None
        Squared distance of each row to its reconstruction; None for a precomputed kernel, whose
        k(x, x) is not known for new rows.
    outliers : array
        Places, among the rows shown, of those with the largest errors, largest first.
    rows : array of shape (n, d) or None
        The rows shown, where they are images; None otherwise.
    columns : list of Column
        Those of the table, labels that the model gives, and what to color by.
    left_out : int
        Columns that are too many to be shown.
    colored : Column or None
        The one to color by at first.
    shape : tuple of int or None
        Of a row as an image.
    names : list of str
        Of all columns that the model was fitted to.
    walks : Walks, str or None
        Or why there are none.
    history : (str, dict) or None
        A label and curves by name.
    row_names : list of str or None
        What the rows shown are called, besides their numbers.
    attribution : Attribution, str or None
        Columns that drive the components, or why that is not known.
    significance : Significance or None
    """

    def __init__(
        self,
        model,
        X,
        columns,
        table,
        colors,
        color_name,
        images,
        title,
        max_points,
        history,
        row_names,
        significance,
        scaling,
        tell,
    ):
        check_points(max_points)
        facts = vars(model)
        self.model = model
        self.inner = inner = facts.get("best_estimator_") or facts.get("model_") or model
        X, columns, others = with_others(model, X, columns, table)
        precomputed, mixed = inner._is_precomputed(), model._encoding is not None
        given = X if scaling is None else scaling.apply(X)
        own = given if inner is model else model._encoded(given, False)
        tell("scores")
        S = dense(inner.transform(own))
        if not S.shape[1]:
            raise ValueError(
                "The model kept no component, so that there is nothing to show. Fit it to rows "
                "that are not all equal."
            )
        tell("errors")
        known = offers(inner, "reconstruction_error") and not precomputed
        errors = dense(inner.reconstruction_error(own)) if known else None
        if offers(model, "predict"):
            name, words = LABELS.get(model.__sklearn_tags__().estimator_type, ("label", {}))
            labels = dense(model.predict(given))
            others[name] = np.array([words.get(one, str(one)) for one in labels.tolist()])
            colors = name if colors is None else colors
        self.names = column_names(model, X, columns)
        X = X if mixed else plain_rows(X)
        n, d = X.shape
        self.shape = check_images(images, d)
        if row_names is not None and len(row_names) != n:
            raise ValueError(f"row_names has {len(row_names)} names, and X has {n} rows.")
        most = int(max_points or (IMAGES if self.shape else ROWS))
        most_errors = min(OUTLIERS, most)
        worst = np.arange(0) if errors is None else np.argsort(-errors, kind="stable")[:most_errors]
        self.index = index = rows_to_show(n, worst, most)
        rows = None if mixed else X[index]
        hidden = precomputed or self.shape
        shown = [] if hidden else self.names[: max(1, VALUES // index.size)]
        self.left_out = 0 if hidden else d - len(shown)
        values = {
            name: dense(X[name])[index] if rows is None else dense(rows[:, [k]]).ravel()
            for k, name in enumerate(shown)
        }
        for name, column in others.items():
            values[name] = one_each(column, n, f"The column {name!r}")[index]
        color = color_of(colors, color_name, self.names, X, values, index)
        self.columns = [Column.of(name, column, name == color) for name, column in values.items()]
        self.colored = next((one for one in self.columns if one.name == color), None)
        r = S.shape[1]
        self.title = title or f"{name_words(model)} of {n:,} rows"
        self.lead = lead(inner, r, index.size)
        self.sentences = sentences(model, inner, r, n, index.size)
        self.scores = S[index, :COMPONENTS]
        certificate = vars(inner).get("certificate_")
        self.score_errors = None
        if certificate is not None and certificate.score_error is not None:
            sizes = np.sqrt(np.mean(np.square(S, dtype=float), axis=0))
            self.score_errors = (dense(certificate.score_error) * sizes)[:COMPONENTS]
        self.errors = None if errors is None else errors[index]
        self.outliers = np.searchsorted(index, worst)
        self.rows = dense(rows) if self.shape else None
        self.row_names = None
        if row_names is not None:
            self.row_names = [str(name) for name in np.asarray(row_names)[index]]
        tell("pre-images")
        self.walks = take_walks(inner, scaling)
        self.history = recorded(inner, history)
        self.significance = significance or vars(inner).get("significance_")
        self.attribution: Attribution | str | None = None
        tell("columns that drive components")
        if offers(inner, "attribute"):
            try:
                found = inner.attribute(max_rows=ATTRIBUTION_ROWS)
                self.attribution = replace(found, columns=tuple(self.names))
            except ValueError as error:
                self.attribution = str(error)


def offers(model, method: str) -> bool:
    """Whether an estimator has a method."""
    return method in dir(model)


def check_points(most) -> None:
    """Raise ValueError unless so many points can be shown."""
    if most is not None and (not isinstance(most, int | np.integer) or most < 1):
        raise ValueError(f"max_points={most!r} must be a whole number of at least 1.")


def with_others(model, X, columns, table) -> tuple[Any, Any, dict]:
    """The rows with the columns of the model, their names if known, and all other columns."""
    named = {} if table is None else table if isinstance(table, Mapping) else table.columns
    others = {str(name): table[name] for name in named}
    names = list(vars(model).get("feature_names_in_", ()))
    if is_arrow(X) or isinstance(X, str | PathLike):
        source, X = X, open_source(X)
        if names and X.columns not in (None, names):
            X = open_source(source, columns=names)
        return X, columns or X.columns, X.others() | others
    known = list(getattr(X, "columns", ()))
    if names and set(names) < set(known):
        others = {str(name): X[name] for name in known if name not in names} | others
        X = X[names]
    return X, columns, others


def one_each(column, n: int, what: str) -> np.ndarray:
    """A value a row as a NumPy array, or an error that says how many there are."""
    values = np.asarray(to_numpy(column))
    if values.shape != (n,):
        raise ValueError(
            f"{what} has shape {values.shape}, and X has {n} rows. Give one value a row, or the "
            "name of a column."
        )
    return values


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


def plain_rows(X):
    """X as a NumPy array, memmap or CSR matrix; the model has checked it already."""
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


def take_walks(model, scaling) -> Walks | str | None:
    """Walks along the leading components, or why the model has no way back to rows."""
    if not offers(model, "inverse_transform") or "explained_variance_" not in vars(model):
        return None
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
class Column:
    """A value for every row shown.

    Attributes
    ----------
    name : str
    kind : "number", "date" or "group"
    values : array of shape (n,)
        Numbers, milliseconds since 1970 or codes of the groups; NaN or MISSING where there is none.
    groups : list of str
        Names of the groups.
    """

    name: str
    kind: str
    values: np.ndarray
    groups: list[str]

    @classmethod
    def of(cls, name: str, values: np.ndarray, grouped: bool = False) -> "Column":
        """A column of any kind; `grouped` makes few different whole numbers groups."""
        values = unwrapped(values)
        if values.dtype.kind == "M":
            times = values.astype("datetime64[ms]")
            numbers = np.where(np.isnat(times), np.nan, times.astype(np.int64))
            return cls(name, "date", numbers, [])
        if values.dtype.kind in "iuf":
            numbers = np.where(np.isfinite(values), values, np.nan)
            known = numbers[np.isfinite(numbers)]
            whole = np.all(known == np.round(known))
            if not (grouped and whole and np.unique(known).size <= WHOLE_GROUPS):
                return cls(name, "number", numbers, [])
            values = np.array([None if x != x else f"{x:g}" for x in numbers.tolist()], object)
        texts = [None if is_missing(value) else str(value) for value in values.tolist()]
        order = sorted({text for text in texts if text is not None}, key=in_order)
        code: dict[str | None, int] = {text: k for k, text in enumerate(order)} | {None: MISSING}
        return cls(name, "group", np.array([code[text] for text in texts], np.int32), order)

    def text(self, i: int) -> str:
        """The value of row i, for a table."""
        value = self.values[i]
        if self.kind == "group":
            return "" if value == MISSING else self.groups[value]
        if np.isnan(value):
            return ""
        return f"{value:.6g}" if self.kind == "number" else str(np.datetime64(int(value), "ms"))


def unwrapped(values: np.ndarray) -> np.ndarray:
    """Objects that are all numbers or dates as an array of these; texts that are dates, too."""
    if values.dtype.kind not in "OUT":
        return values
    present = [value for value in values.tolist() if not is_missing(value)]
    if present and all(isinstance(value, Real) and value is not True for value in present):
        wanted, blank = "f8", np.nan
    elif present and all(isinstance(one, date) or DATE.fullmatch(str(one)) for one in present):
        wanted, blank = "datetime64[ms]", np.datetime64("NaT")
    else:
        return values
    try:
        return np.array([blank if is_missing(v) else in_utc(v) for v in values.tolist()], wanted)
    except ValueError:  # no day of any calendar
        return values


def in_utc(value):
    """A time without a zone, which NumPy has none of; anything else as it is."""
    zone = isinstance(value, datetime) and value.tzinfo is not None
    return value.astimezone(UTC).replace(tzinfo=None) if zone else value


def is_missing(value) -> bool:
    """Whether a value is None, NaN, NaT or pandas' NA, whose comparisons are neither."""
    return value is None or type(value).__name__ == "NAType" or value != value


def in_order(text: str) -> tuple[float, str]:
    """Numbers in the order of numbers, then words."""
    try:
        return float(text), text
    except ValueError:
        return math.inf, text


def color_of(colors, name, names, X, values: dict, index) -> str | None:
    """The column to color by, which joins the others where it is not among them yet."""
    if colors is None:
        return None
    if isinstance(colors, int | np.integer) and not isinstance(colors, bool):
        colors = names[colors] if 0 <= colors < len(names) else int(colors)
    if not isinstance(colors, str | int):
        called = str(name or getattr(colors, "name", None) or "color")
        values[called] = one_each(colors, X.shape[0], "colors")[index]
        return called
    if colors in names and colors not in values:  # of images and of very many columns
        values[colors] = dense(X[index][:, [names.index(colors)]]).ravel()
    if colors not in values:
        some = ", ".join(repr(name) for name in [*names, *values][:10])
        raise ValueError(
            f"There is no column {colors!r} to color by. Choose one of these: {some}; or give "
            f"a number below {len(names)}, counted from 0."
        )
    if name:
        values[name] = values.pop(colors)
    return name or colors
