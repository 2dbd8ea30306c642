"""Axes to draw on, arrays to draw, and how groups are told apart."""

import numpy as np
from matplotlib import pyplot as plt

from ..compute import is_sparse, to_numpy

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


def new_axes(size=None):
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
