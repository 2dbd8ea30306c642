"""A report, and what it shows: numbers of a model and rows, and sentences about them; no HTML."""

import math
import re
import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import date, datetime
from html import escape
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from textwrap import shorten
from typing import Any, cast

import numpy as np
from rich.progress import TextColumn
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from .._remote import as_path
from .._tables import counted
from .._whole_file import check_folder, whole_file
from ..compute import is_sparse, to_numpy
from ..estimators._door import Door
from ..estimators._output import basis_text, kernel_text
from ..files import RowSource, is_arrow, is_cluster_table, open_source
from ..fitting.certificate import confidence_text
from ..hebbian import History
from ..kernels.function import Objects
from ..plot.axes import dense, image_shape, one_each
from ..plot.components import steps_along, walk
from ..plot.fits import QUANTITIES, curves
from ..progress import FIRST, make_bar
from ..relatives.explaining import Attribution, Significance
from ..relatives.mixed import is_missing

# Components among which to choose axes, and rows of the table of outliers.
COMPONENTS = 32
OUTLIERS = 20
# Rows shown unless told otherwise, of images and of others.
IMAGES, ROWS = 20_000, 200_000
# Values of columns that a page holds: of very many columns the first ones are shown.
VALUES = 8_000_000
# Height in pixels of a report inside a notebook, and stages of its progress bar.
HEIGHT, STAGES = 860, 5
# Errors that lie further above the upper quartile than this many interquartile ranges, and above
# this share of the mean squared length of the scores, belong to rows unlike the others.
FAR_OUT, ROUNDING = 3, 1e-5
# Parameters that change no result, or only where it is computed.
RESOURCES = {"verbose", "callback", "copy_X", "n_jobs", "memory", "device", "checkpoint"}
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
# What the vectors of a basis do for the kernel.
BASES = {
    "landmarks": " that stand for all rows",
    "Fourier features": " that give the kernel exactly",
    "random features": " that approximate the kernel",
}
# Kernels that are called after people; the names of others are words.
EPONYMS = {"RBF": "Gaussian", "Laplacian": "Laplacian", "Matern": "Matérn", "Gower": "Gower"}


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


class Report:
    """An interactive page of a fitted model and rows; a notebook shows it in place.

    The page says in words what was fitted and how sure the numbers are, and shows the rows by
    any two or three components, the spectrum, the passes if they were recorded, what each
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
    path : str, path or None, default=None
        A file to write the page to, whole or not at all.
    columns : sequence of str or None, default=None
        Names of the columns; None takes them from a DataFrame or from the fit.
    table : DataFrame, mapping of str to array-like or None, default=None
        Further columns of the rows, numbers, texts or dates, of any number of different values
        and with missing ones: to color by, to search and to save.
    color : str, int, array-like of shape (n,) or None, default=None
        What to color the points by at first: a column by name or number, or a value for every
        row. Words, truth values and few whole numbers are groups; other numbers are a scale.
    color_name : str or None, default=None
        What the values in `color` are called; None for the name of a Series or column.
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
    settings : mapping of str to object or None, default=None
        Settings of the fit to list; None lists the parameters of the model that are not defaults.
    verbose : int or None, default=None
        1 shows what is being done as a bar, 2 as a line each minute; None for what the model has.

    Attributes
    ----------
    html : str
        The whole page.
    model, inner : fitted estimators
        The one given, and the kernel PCA that it holds if it holds one; else the same.
    lead : str
        What is seen, for readers who never saw the code.
    sentences : list of str
    index : array of shape (n,)
        Numbers of the rows shown, in order.
    scores : array of shape (n, at most COMPONENTS)
    score_errors : array of shape (at most COMPONENTS,) or None
        Bound on the error of the scores of each component, root mean square; NaN if unknown.
    errors : array of shape (n,) or None
        Squared distance of each row to its reconstruction; None for a precomputed kernel, whose
        k(x, x) is not known for new rows.
    outliers : array
        Places, among the rows shown, of those with the largest errors, largest first.
    n_unlike : int
        How many of the outliers have errors far beyond those of the other rows.
    settings : dict of str to str
    examples : list of str
        Searches for rows by the columns shown.
    rows : array of shape (n, d) or None
        The rows shown if they are images; else None.
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
    chart : ControlChart or None
        Of all rows, if the model watches a process.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelPCA
    >>> X, species = load_iris(return_X_y=True)
    >>> model = KernelPCA(3, kernel="rbf", gamma="median").fit(X)
    >>> report = model.report(X, color=species)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report.save(folder + "/iris.html").name
    'iris.html'
    """

    def __init__(
        self,
        model: Any,
        X: Any,
        path: str | PathLike[str] | None = None,
        *,
        columns: Sequence[str] | None = None,
        table: Mapping[str, Any] | Any = None,
        color: Any = None,
        color_name: str | None = None,
        images: Any = None,
        title: str | None = None,
        max_points: int | None = None,
        history: Any = None,
        row_names: Sequence[str] | None = None,
        significance: Significance | None = None,
        scaling: Any = None,
        settings: Mapping[str, Any] | None = None,
        verbose: int | None = None,
    ):
        from .page import render  # which knows reports

        check_model(model)
        if path is not None:
            check_folder(as_path(path))
        if max_points is not None and not (isinstance(max_points, Integral) and max_points > 0):
            raise ValueError(f"max_points={max_points!r} must be a whole number of at least 1.")
        verbose = model.verbose if verbose is None else verbose
        bar = make_bar(TextColumn("{task.fields[state]}"), 20, first=FIRST if verbose == 2 else 0)
        task = bar.add_task("report", total=STAGES, state="")

        def tell(state: str) -> None:
            bar.update(task, advance=1, state=state)

        with bar if verbose > 0 else nullcontext():
            facts = vars(model)
            self.model = model
            self.inner = inner = facts.get("best_estimator_") or facts.get("model_") or model
            able = dir(inner)
            X, self.names, others = rows_and_columns(model, X, columns, table)
            precomputed, mixed = inner._is_precomputed(), model._encoding is not None
            scaled = X if scaling is None else scaling.apply(X)
            inner_rows = scaled if inner is model else plain_rows(model._inner_rows(scaled))
            tell("scores")
            S = dense(inner.transform(inner_rows))
            if not S.shape[1]:
                raise ValueError(
                    "The model has no component, so there is nothing to show. Fit it to rows "
                    "that are not all equal."
                )
            tell("errors")
            has_errors = "reconstruction_error" in able and not precomputed
            errors = dense(inner.reconstruction_error(inner_rows)) if has_errors else None
            if "predict" in dir(model):
                name, words = LABELS.get(model.__sklearn_tags__().estimator_type, ("label", {}))
                labels = dense(model.predict(scaled))
                others[name] = np.array([words.get(one, str(one)) for one in labels.tolist()])
                color = name if color is None else color
            self.chart = model.chart(scaled) if "chart" in dir(model) else None
            if self.chart is not None:
                called = self.chart.rows if row_names is None else np.asarray(row_names)
                self.chart = replace(self.chart, rows=called, sensors=tuple(self.names))
                others |= {"T2": self.chart.statistics[:, 0], "sensor": self.chart.sensor}
            X = X if mixed else plain_rows(X)
            n, d = S.shape[0], len(self.names)
            self.shape = None if images is None else image_shape(images, d)
            if self.shape and self.shape[2:] not in ((), (1,), (3,)):
                channels = self.shape[2]
                raise ValueError(f"images={images!r} has {channels} channels; 1 or 3 can be shown.")
            if row_names is not None and len(row_names) != n:
                raise ValueError(f"row_names has {len(row_names)} names, and X has {n} rows.")
            most = int(max_points or (IMAGES if self.shape else ROWS))
            order = np.argsort([] if errors is None else -errors, kind="stable")
            worst = order[: min(OUTLIERS, most)]
            self.index = index = rows_to_show(n, worst, most)
            rows = None if mixed else X[index]
            hidden = precomputed or self.shape or isinstance(model._encoding, Objects)
            shown = [] if hidden else self.names[: max(1, VALUES // index.size)]
            self.left_out = 0 if hidden else d - len(shown)
            values = {
                name: dense(X[name])[index] if rows is None else dense(rows[:, [k]]).ravel()
                for k, name in enumerate(shown)
            }
            for name, column in others.items():
                values[name] = one_each(f"The column {name!r}", column, n)[index]
            color = color_of(color, color_name, self.names, X, values, index)
            self.columns = [
                Column.of(name, column, name == color) for name, column in values.items()
            ]
            self.colored = next((one for one in self.columns if one.name == color), None)
            r = S.shape[1]
            self.title = title or f"{name_words(model)} of {n:,} rows"
            self.n_unlike = 0 if errors is None else count_unlike(errors, worst, S)
            self.lead = lead(inner, r, n, index.size, self.n_unlike)
            self.sentences = sentences(model, inner, r, n, index.size, has_errors)
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
            self.walks = take_walks(inner, scaling) if model._of_columns else None
            self.history = recorded(inner, history)
            self.significance = significance or vars(inner).get("significance_")
            self.attribution: Attribution | str | None = None
            tell("columns that drive components")
            if "attribute" in able and model._of_columns:
                try:
                    attributed = inner.attribute(max_rows=ATTRIBUTION_ROWS)
                    self.attribution = replace(attributed, columns=tuple(self.names))
                except ValueError as error:
                    self.attribution = str(error)
            self.settings = settings_of(model, settings)
            self.examples = searches(self.columns, self.row_names)
            tell("page")
            self.html = render(self)
        if path is not None:
            self.save(path)

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
    """Raise TypeError for a model without a report, with advice."""
    if not isinstance(model, Door):
        raise TypeError(f"A report needs a fitted model of mercer, and got {model!r:.200}.")
    check_is_fitted(model)
    if not model.__sklearn_tags__().input_tags.two_d_array:
        rows = "X_fit_" if "X_fit_" in vars(vars(model)["model_"] or model) else "X_sample_"
        raise TypeError(
            f"{type(model).__name__} works on images, which are no rows to show. Show the patches "
            f"that it has learned from: model.model_.report(model.model_.{rows}, images=(7, 7)), "
            "with the size of a patch."
        )


def rows_and_columns(model, X, columns, table) -> tuple[Any, list[str], dict]:
    """The rows with the columns of the model, the names of these, and all other columns."""
    named = {} if table is None else table if isinstance(table, Mapping) else table.columns
    others = {str(name): table[name] for name in named}
    known = list(vars(model).get("feature_names_in_", ()))
    d = model.n_features_in_
    if is_cluster_table(X):
        raise ValueError(
            "A report shows rows from an array or a file, and X is on a cluster. Pass a sample of "
            "it, brought here."
        )
    if is_arrow(X) or isinstance(X, str | PathLike) or (callable(X) and "shape" not in dir(X)):
        memory = vars(model).get("memory")
        source, X = X, open_source(X, memory=memory)
        if known and X.columns not in (None, known):
            X = open_source(source, columns=known, memory=memory)
        others = X.others() | others
    available = X.columns if "columns" in dir(X) else None
    if known and available is not None and set(known) < set(available):
        others = {str(name): X[name] for name in available if name not in known} | others
        X = X[known]
    if columns is not None and (isinstance(columns, str) or len(columns) != d):
        raise ValueError(f"columns={columns!r:.200} must be {d} names, one for each column.")
    for names in (columns, known, available):
        if names is not None and len(names):
            return X, [str(name) for name in names], others
    return X, [f"column {k + 1}" for k in range(d)], others


def plain_rows(X):
    """X as a NumPy array, memmap or CSR matrix; the model has checked it already."""
    X = X.read() if isinstance(X, RowSource) else X
    return X.tocsr() if is_sparse(X) else np.asarray(to_numpy(X))


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
    if "inverse_transform" not in dir(model) or "explained_variance_" not in vars(model):
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
    # Advice for users of the library is nothing to readers of the page.
    notes = (str(one.message).removesuffix(vars(one.message).get("python", "")) for one in told)
    note = " ".join(dict.fromkeys(text.strip() for text in notes))
    return Walks(steps, deviations[:count], rows, note)


def recorded(model, history):
    """A label and the curves of the passes; None if none were recorded."""
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
        Numbers, milliseconds since 1970 or codes of the groups; NaN or MISSING if missing.
    groups : list of str
        Names of the groups.
    """

    name: str
    kind: str
    values: np.ndarray
    groups: list[str]

    @property
    def missing(self) -> np.ndarray:
        """Which rows have no value, (n,)."""
        return self.values == MISSING if self.kind == "group" else np.isnan(self.values)

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
            finite = numbers[np.isfinite(numbers)]
            are_integers = np.all(finite == np.round(finite))
            if not (grouped and are_integers and np.unique(finite).size <= WHOLE_GROUPS):
                return cls(name, "number", numbers, [])
            values = np.array([None if x != x else f"{x:g}" for x in numbers.tolist()], object)
        texts = [None if is_missing(value) else str(value) for value in values.tolist()]
        order = sorted({text for text in texts if text is not None})
        order.sort(key=lambda text: len(text) if text.isdecimal() else math.inf)
        code: dict[str | None, int] = {text: k for k, text in enumerate(order)} | {None: MISSING}
        return cls(name, "group", np.array([code[text] for text in texts], np.int32), order)


def unwrapped(values: np.ndarray) -> np.ndarray:
    """Objects that are all numbers or dates as an array of these; texts that are dates, too."""
    if values.dtype.kind not in "OUT":
        return values
    present = [value for value in values.tolist() if not is_missing(value)]
    if present and all(isinstance(one, Real) and not isinstance(one, bool) for one in present):
        wanted, blank = "f8", cast(Any, np.nan)
    elif present and all(isinstance(one, date) or DATE.fullmatch(str(one)) for one in present):
        wanted, blank = "datetime64[ms]", np.datetime64("NaT", "ms")
    else:
        return values
    # NumPy knows no zones: times are shown as the table has them.
    plain = (one.replace(tzinfo=None) if isinstance(one, datetime) else one for one in values)
    try:
        return np.array([blank if is_missing(one) else one for one in plain], wanted)
    except ValueError:  # no day of any calendar
        return values


def color_of(color, name, names, X, values: dict, index) -> str | None:
    """The name of the column to color by; adds it to `values` if needed."""
    if color is None:
        return None
    if isinstance(color, int | np.integer) and not isinstance(color, bool):
        color = names[color] if 0 <= color < len(names) else int(color)
    if not isinstance(color, str | int):
        called = str(name or getattr(color, "name", None) or "color")
        values[called] = one_each("color", color, X.shape[0])[index]
        return called
    if color in names and color not in values:  # of images and of very many columns
        values[color] = dense(X[index][:, [names.index(color)]]).ravel()
    if color not in values:
        examples = ", ".join(repr(name) for name in [*names, *values][:10])
        raise ValueError(
            f"There is no column {color!r} to color by. Choose one of these: {examples}; or give "
            f"a number below {len(names)}, counted from 0."
        )
    if name:
        values[name] = values.pop(color)
    return str(name or color)


def name_words(model) -> str:
    """What an estimator is called: Kernel PCA, Diffusion Map."""
    return " ".join(re.findall("[A-Z]+(?![a-z])|[A-Z][a-z]+", type(model).__name__))


def count_unlike(errors, worst, S) -> int:
    """How many of the worst rows have errors far beyond those of the others."""
    low, high = np.percentile(errors, [25, 75])
    rounding = ROUNDING * float(np.mean(np.sum(np.square(S, dtype=float), axis=1)))
    return int(np.sum(errors[worst] > max(high + FAR_OUT * (high - low), rounding)))


def lead(model, r: int, rows: int, shown: int, n_unlike: int) -> str:
    """What the page shows, for readers who never saw the code."""
    text = (
        f"Each point is a row: {f'{shown:,} of ' * (shown < rows)}{counted(rows, 'row')}, "
        f"described by {counted(r, 'component')}. "
        "Rows that are alike lie near each other. Near rows need not be alike: the axes do not "
        "show every difference."
    )
    if n_unlike:
        ringed = "the row" if n_unlike == 1 else f"each of the {n_unlike} rows"
        text += f" A ring marks {ringed} most unlike the others."
    ratios = vars(model).get("explained_variance_ratio_")
    if ratios is not None:
        share = 100 * dense(ratios)[:2].sum()
        hold = "Components 1 and 2 hold" if r > 1 else "The component holds"
        text += f" {hold} {share:.3g} % of the variance."
    return text.replace(" %", "\u00a0%")


def settings_of(model, settings: Mapping[str, Any] | None) -> dict[str, str]:
    """Settings by name as short texts: those given, or the parameters that somebody chose."""
    if settings is None:
        defaults, given = (one.get_params(deep=False) for one in (type(model)(), model))
        chosen = (name for name in given if repr(given[name]) != repr(defaults[name]))
        settings = {name: given[name] for name in chosen if name not in RESOURCES}
    return {
        str(name): shorten(value if isinstance(value, str) else repr(value), 200)
        for name, value in settings.items()
    }


def searches(columns: "list[Column]", names: list[str] | None) -> list[str]:
    """Searches for rows by what the page has: a name, a column, two together, missing values."""
    usable = [one for one in columns if in_quotes(one.name) and not one.missing.all()]
    # By the first column of each kind that has a typical value.
    typical = {one.kind: text for one in reversed(usable) if (text := condition(one))}
    conditions = [typical[kind] for kind in ("group", "number", "date") if kind in typical]
    conditions = [*conditions, "component 1 > 0"][:2]
    both, either = " and ".join(conditions), " or ".join(conditions)
    missing = [f"{in_quotes(one.name)} is missing" for one in usable if one.missing.any()]
    name = [text for text in map(in_quotes, (names or [])[:1]) if text]
    return [*name, *dict.fromkeys([conditions[0], both, (missing or [f"not ({either})"])[0]])]


def condition(column: "Column") -> str | None:
    """That a column has its largest group, or is from its median on; None of very many groups."""
    name, values = in_quotes(column.name), column.values[~column.missing]
    if column.kind == "group":
        text = in_quotes(column.groups[np.bincount(values).argmax()])
        return f"{name} = {text}" if text and len(column.groups) <= WHOLE_GROUPS else None
    middle = float(np.median(values))
    if column.kind == "date":
        return f"{name} >= {np.datetime64(int(middle), 'ms').astype('M8[D]')}"
    return f"{name} >= {np.format_float_positional(float(f'{middle:.3g}'), trim='-')}"


def in_quotes(text: str) -> str | None:
    """A name or a group as the search of the page reads it; None if it holds both quotes."""
    if re.fullmatch(r"[\w.]+( [\w.]+)*", text) and not re.search(
        r"\b(and|or|not|is)\b", text, re.I
    ):
        return text
    return next((f"{mark}{text}{mark}" for mark in "\"'" if mark not in text), None)


def sentences(model, inner, r: int, rows: int, shown: int, has_errors: bool = True) -> list[str]:
    """The summary in paragraphs: what was fitted, its share of the variance, how sure that is."""
    fitted = vars(inner)
    what = f"{name_words(model)} with {counted(r, 'component')}"
    if "kernel_" in fitted:
        known = kernel_text(inner) if "graph_" in fitted else kernel_words(inner.kernel_)
        what += f" and a {known}"
    if "expansion_" in fitted:
        what += f" uses {basis_words(inner)}"
    if shown < rows:
        worst = "; the rows with the largest errors are among them" if has_errors else ""
        what += f". {shown:,} of {rows:,} rows are shown, drawn at random{worst}."
    else:
        what += f". {counted(rows, 'row')} shown."
    paragraphs = [what]
    if "explained_variance_ratio_" in fitted:
        shares = 100 * dense(inner.explained_variance_ratio_)
        second = f", the second {shares[1]:.3g} %" if shares.size > 1 else ""
        paragraphs.append(
            f"Together the components hold {shares.sum():.3g} % of the variance in feature space; "
            f"the first alone {shares[0]:.3g} %{second}."
        )
    if "certificate_" in fitted:
        paragraphs.append(_how_sure(inner))
    # A number stays on the line of its percent sign.
    return [text.replace(" %", "\u00a0%") for text in paragraphs]


def kernel_words(kernel) -> str:
    """A kernel's name and numbers."""
    kind = type(kernel).__name__
    words = " ".join(re.findall("[A-Z][a-z0-9]*", kind)).lower().replace("chi2", "chi-squared")
    name = EPONYMS.get(kind, words)
    numbers = [
        f"{key} = {value:.4g}"
        for key, value in kernel.get_params(deep=False).items()
        if isinstance(value, int | float | np.number) and not isinstance(value, bool)
    ]
    return f"{name} kernel ({', '.join(numbers)})" if numbers else f"{name} kernel"


def basis_words(model) -> str:
    """The basis of a model, and how it was learned."""
    basis = model.expansion_.basis
    text = f"{basis_text(basis)}{BASES.get(basis.noun, '')}"
    if basis.spans_data:
        text = f"all {counted(basis.size, 'training row')}"
    fitted = vars(model)
    if isinstance(fitted.get("history_"), History):
        passes = counted(len(fitted["history_"].changes), "pass", "passes")
        text += f", learned by a Hebbian rule in {passes}"
    elif "n_samples_seen_" in fitted:
        text += f", learned from a stream of {counted(fitted['n_samples_seen_'], 'row')}"
    return text


def _how_sure(model) -> str:
    """How far from the exact components those found can be."""
    certificate = model.certificate_
    certain = certificate.kind == "bound"
    said = ["This is certified." if certain else "This is an estimate, not a bound."]
    # With a target, the variance is that of the target and not of the rows.
    if certificate.captured_variance is not None and "hsic_" not in vars(model):
        # One number if both ends agree to the digits shown.
        ends = dict.fromkeys(f"{100 * share:.4g}" for share in certificate.captured_variance)
        held = f"between {' and '.join(ends)}" if len(ends) > 1 else next(iter(ends))
        said.append(f"The components hold {held} % of the variance.")
    residual = certificate.relative_residual
    if residual is not None:
        far = f"differs from an exact one by at most {_part(residual)} of the largest"
        said.append(f"Each eigenvalue found {far}.")
    elif certain and certificate.widest is not None:
        far = f"by at most {_part(certificate.widest)} of the largest"
        said.append(f"Exact eigenvalues exceed the eigenvalues found {far}.")
    if certificate.confidence is not None and certificate.confidence < 1:
        sure, likely = confidence_text(certificate.confidence), _part(certificate.likely_widest)
        said.append(f"With confidence {sure} the difference is at most {likely} of the largest.")
    if not certificate.converged:
        said.append("The fit stopped before it reached the tolerance asked for.")
    if certificate.indefinite:
        said.append(
            "The kernel is indefinite: it has negative eigenvalues, and shares of variance mean "
            "nothing."
        )
    return " ".join(said)


def _part(share: float) -> str:
    """A share as people read it: percents, or a power of ten if they would be all zeros."""
    return f"{100 * share:.2g} %" if share >= 1e-4 else f"{share:.1e}"
