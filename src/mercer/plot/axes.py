"""Axes to draw on, models and arrays to draw, and how groups are told apart."""

import math
from copy import copy
from numbers import Integral
from types import ModuleType
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._tables import counted
from ..compute import is_sparse, to_numpy
from ..compute.arrays import has_columns

# How each function is called, for messages.
CALLS = {
    "attribution": "plot.attribution(model), with a fitted model that has `attribute`",
    "contours": "plot.contours(model, X), with a fitted model and its rows of two columns",
    "control_chart": "plot.control_chart(monitor, X), or plot.control_chart(monitor.chart(X))",
    "convergence": "plot.convergence(model.history_), or several histories by name",
    "denoised": "plot.denoised(model, X), or plot.denoised(noisy, result, clean); images= draws "
    "rows as images instead of curves",
    "embedding": "plot.embedding(model), with a fitted model that has `embedding_`",
    "landmarks": "plot.landmarks(model, X), with a model fitted by landmarks, and rows",
    "preimages": "plot.preimages(model), with a fitted model that has `inverse_transform`",
    "scores": "plot.scores(model, X), or plot.scores(S) with the scores of a model",
    "selection": "plot.selection(search), with a fitted KernelPCASearch or its selection_",
    "eigengaps": "plot.eigengaps(model), with a fitted SpectralClustering",
    "spectrum": "plot.spectrum(model), with a fitted model that has `eigenvalues_`",
}

# Shapes and dashes tell groups apart without color.
MARKERS = "os^vDP*X<>"
DASHES = ["-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3))]
# Found by search: as far apart in OKLab as could be had for ordinary vision and simulated
# protanopia, deuteranopia and tritanopia alike, among colors that stand out from white paper and
# from a dark page. Reports have the same (`report/assets/paint.js`).
GROUP_COLORS = (
    "#273bc4",  # blue
    "#d88914",  # orange
    "#008962",  # green
    "#d83b14",  # red
    "#b176ff",  # violet
    "#629db1",  # gray blue
    "#892700",  # brown
    "#62d8b1",  # mint
    "#623b76",  # plum
    "#d8c400",  # yellow
    "#8962b1",  # purple
    "#b1b1ff",  # lavender
)


def group_color(k: int) -> str:
    """The color of the k-th group, as #rrggbb; they begin again after twelve."""
    return GROUP_COLORS[k % len(GROUP_COLORS)]


def described(value: Any) -> str:
    """What a value is, in few words."""
    if isinstance(value, ModuleType | type):
        return f"the {'module' if isinstance(value, ModuleType) else 'class'} {value.__name__}"
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return f"{type(value).__name__} of shape {shape}"
    return f"{value!r:.60}"


def wrong_call(name: str, value: Any) -> TypeError:
    """An error that says how a function of this folder is called."""
    return TypeError(f"Call {CALLS[name]}. It got {described(value)}.")


def is_model(value: Any) -> bool:
    """Whether a value is an estimator, or the class of one; NotFittedError if it is not fitted."""
    if not isinstance(value, BaseEstimator):
        return isinstance(value, type) and issubclass(value, BaseEstimator)
    check_is_fitted(value)
    return True


def model_with(name: str, value: Any, *members: str) -> Any:
    """A fitted model that has these members, or the model within it; TypeError if there is none.

    A model within that has other columns than the rows has only a spectrum, and scores of its own
    rows.
    """
    if not is_model(value) or isinstance(value, type):
        raise wrong_call(name, value)
    whitened = "_of_columns" in dir(value) and not value._of_columns
    same = not whitened or name in ("scores", "spectrum")
    inner = [vars(value).get(one) for one in ("best_estimator_", "model_") if same]
    for model in [value, *inner]:
        if isinstance(model, BaseEstimator) and set(members) <= set(dir(model)):
            return model
    raise wrong_call(name, value)


def rows_of(name: str, X: Any) -> Any:
    """Rows as they are, or an error that says how the function is called."""
    if X is None:
        raise TypeError(f"The rows are missing. Call {CALLS[name]}.")
    if np.ndim(X) != 2:
        raise wrong_call(name, X)
    return X


def scores_of(model: Any, X: Any) -> np.ndarray:
    """Scores of rows, which may have lost the names of their columns."""
    if "feature_names_in_" in vars(model) and not has_columns(X):
        model = copy(model)
        del model.feature_names_in_
    return dense(model.transform(X))


def matrix(name: str, A: Any) -> np.ndarray:
    """Numbers (n, r) of whatever holds rows, or an error that says how the function is called."""
    rows = dense(A)
    if rows.ndim != 2 or rows.dtype.kind not in "biuf":
        raise wrong_call(name, A)
    if not rows.size:
        raise ValueError(f"There is nothing to draw in shape {rows.shape}. Pass at least one row.")
    return rows


def one_each(name: str, values: Any, n: int) -> Any:
    """A value for each of n rows as an array, None of None, or an error that says how many."""
    if values is None:
        return None
    values = np.asarray(to_numpy(values))
    if values.shape != (n,):
        raise ValueError(
            f"{name} has shape {values.shape}, and there are {n} rows. Give one value a row."
        )
    return values


def axes_of(ax: Any, count: int = 1, size: Any = None) -> np.ndarray:
    """`count` axes as an array: those given, those of the figure given, or new ones side by side.

    `size` is that of a new figure of one picture, in inches.
    """
    if ax is None:
        size = size if count == 1 else (0.6 + 3.2 * count, 3.2)
        ax = plt.figure(figsize=size, layout="constrained")
    if isinstance(ax, FigureBase):
        ax = ax.axes or ax.subplots(1, count)
    axes = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
    for one in axes:
        if not isinstance(one, Axes):
            raise TypeError(
                f"ax= takes axes or a figure of matplotlib, and got {described(ax)}. Leave ax out "
                "for a new figure."
            )
    if axes.size != count:
        pictures = counted(count, "picture")
        raise ValueError(f"{pictures} need as many axes, and ax= has {axes.size}.")
    return axes


def whole_ticks(ax: Axes) -> None:
    """Whole numbers below the axes: passes, components and columns have no fractions."""
    ax.xaxis.get_major_locator().set_params(integer=True)  # type: ignore[call-arg]


def dense(A):
    """A NumPy array of whatever holds rows."""
    return np.asarray(A.toarray() if is_sparse(A) else to_numpy(A))


def check_component(component, count: int) -> int:
    """The component's number, or an error that says which there are."""
    if not isinstance(component, Integral):
        raise TypeError(
            f"component must be a whole number from 0 to {count - 1}; it is {described(component)}."
        )
    if not 0 <= int(component) < count:
        raise ValueError(
            f"component {component} does not exist: the model has {count}, counted from 0."
        )
    return int(component)


def check_pair(components: Any, count: int) -> list[int]:
    """Two numbers of components, or an error that says which there are."""
    if np.shape(components) != (2,):
        raise ValueError(f"components must be two numbers such as (0, 1); it is {components!r}.")
    return [check_component(k, count) for k in components]


def image_shape(images: Any, d: int) -> tuple[int, ...]:
    """The shape of a row of d columns as an image, or an error that says what it can be."""
    shape = tuple(np.atleast_1d(images).tolist())
    if len(shape) not in (2, 3) or min(shape) < 1 or math.prod(shape) != d:
        raise ValueError(
            f"images={images!r} is not the shape of a row of {d} columns. Give (height, width) or "
            "(height, width, channels) whose product is the number of columns."
        )
    return shape
