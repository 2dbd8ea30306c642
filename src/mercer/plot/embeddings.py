"""Coordinates of an embedding, colored, with the places of new rows."""

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..compute.arrays import Array
from .axes import check_component, dense, new_axes
from .components import scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def embedding(
    model: Any,
    colors: Array = None,
    new: Array = None,
    new_colors: Array = None,
    components: tuple[int, int] = (0, 1),
    ax: "Axes | None" = None,
) -> Any:
    """Training rows by two coordinates of an embedding, and new rows as crosses among them.

    Parameters
    ----------
    model : SpectralEmbedding, DiffusionMap or ClassicalMDS
        Fitted.
    colors : array of shape (n,) or None
        A number for each training row, shown by shade, or labels: a color and marker each.
    new : array of shape (q, n_features) or None
        Rows that are placed by ``model.transform``.
    new_colors : array of shape (q,) or None
        As `colors`, for the new rows, where these are numbers.
    components : pair of int
    ax : matplotlib Axes or None

    Returns
    -------
    matplotlib Axes
    """
    check_is_fitted(model, "embedding_")
    ax, Y = ax or new_axes(), dense(model.embedding_)
    i, j = (check_component(k, Y.shape[1]) for k in components)
    colors = None if colors is None else np.asarray(colors)
    shaded = colors is not None and colors.dtype.kind == "f"
    if shaded:
        low, high = float(np.min(colors)), float(np.max(colors))
        shades: dict[str, Any] = {"cmap": "viridis", "vmin": low, "vmax": high}
        ax.scatter(Y[:, i], Y[:, j], c=colors, s=10, linewidths=0, **shades)
    else:
        scores(Y, colors, (i, j), ax)
    if new is not None:
        Z = dense(model.transform(new))
        look = {"c": new_colors, **shades} if shaded and new_colors is not None else {"c": "black"}
        ax.scatter(Z[:, i], Z[:, j], marker="x", s=36, linewidths=1.2, **look)
    for k, name in ((i, "x"), (j, "y")):
        value = float(dense(model.eigenvalues_)[k])
        ax.set(**{f"{name}label": f"coordinate {k + 1} (eigenvalue {value:.3g})"})
    return ax
