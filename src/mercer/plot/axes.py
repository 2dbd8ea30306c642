"""Axes to draw on, and arrays to draw."""

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from ..compute import is_sparse, to_numpy

# Shapes and dashes tell groups apart where color cannot.
MARKERS = "os^vDP*X<>"
DASHES = ["-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3))]


def new_axes(size=None):
    """Axes of a figure of their own, of some size in inches."""
    return plt.subplots(layout="constrained", figsize=size)[1]


def row_of_axes(ax, count: int):
    """`count` axes as an array: those given, or a new row of them."""
    if ax is None:
        size = (0.6 + 3.2 * count, 3.2)
        return plt.subplots(1, count, figsize=size, layout="constrained", squeeze=False)[1][0]
    axes = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
    if axes.size != count:
        raise ValueError(f"{count} pictures need as many axes, and ax= has {axes.size}.")
    return axes


def log_heights(ax, low: float, high: float) -> None:
    """A logarithmic y axis, with numbers between the powers of ten where those are few."""
    ax.set_yscale("log")
    if high < 100 * low:
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        ax.yaxis.set_minor_formatter(NullFormatter())


def shades(count: int):
    """Colors (count, 4) whose lightness grows, none as pale as paper."""
    return plt.get_cmap("viridis")(np.linspace(0, 0.85, count))


def dense(A):
    """A NumPy array of whatever holds rows."""
    return np.asarray(A.toarray() if is_sparse(A) else to_numpy(A))


def check_component(component, count: int) -> int:
    """The component's number, or an error that says which there are."""
    if not 0 <= component < count:
        raise ValueError(
            f"component {component} does not exist: the model has {count}, counted from 0."
        )
    return int(component)
