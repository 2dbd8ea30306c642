"""Rows as people see them, images or curves: along a component, and before and after denoising."""

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import pyplot as plt

from ..compute.arrays import Array
from .axes import DASHES, check_component, dense, new_axes, row_of_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# White pixels between the images of a montage, and inches of its longer side.
GAP = 1
MONTAGE = 7.0


def preimages(
    model: Any,
    component: int = 0,
    images: Any = None,
    n_steps: int = 7,
    span: float = 2.0,
    ax: "Axes | None" = None,
) -> Any:
    """What a component means: pre-images on a walk along it through the mean.

    Parameters
    ----------
    model : fitted estimator with `inverse_transform`
    component : int
        Counted from 0.
    images : (h, w), (h, w, channels) or None
        Shape of a row as an image; None draws rows as curves over their columns.
    n_steps : int
    span : float
        The walk goes from -span to span standard deviations of the component.
    ax : matplotlib Axes or None

    Returns
    -------
    matplotlib Axes
    """
    steps = steps_along(span, n_steps)
    rows = walk(model, component, steps)
    labels = [f"{step:+.3g}" for step in steps]
    if images is None:
        ax = ax or new_axes()
        # Lightness grows along the walk, and no curve is as pale as paper.
        colors = plt.get_cmap("viridis")(np.linspace(0, 0.85, n_steps))
        columns = np.arange(1, rows.shape[1] + 1)
        for k, (row, label) in enumerate(zip(rows, labels, strict=True)):
            ax.plot(columns, row, color=colors[k], linestyle=DASHES[k % len(DASHES)], label=label)
        ax.set_xlabel("column")
        ax.legend(title="standard deviations", fontsize="small", ncols=2, framealpha=0.6)
    else:
        lines = [as_images(rows, images)]
        ax = _montage(ax, lines, lines)
        ax.set_xticks(_centers(images[1], n_steps), labels)
        ax.set_xlabel("standard deviations")
    ax.set_title(f"along component {component + 1}", fontsize="medium")
    return ax


def steps_along(span: float, count: int) -> np.ndarray:
    """Places of a walk from -span to span, in standard deviations."""
    if not (span > 0 and np.isfinite(span) and count >= 2):
        raise ValueError(
            f"A walk needs a positive span and at least 2 steps; span={span!r}, n_steps={count!r}."
        )
    return np.linspace(-span, span, count)


def walk(model, component: int, steps):
    """Rows (len(steps), d) whose scores are zero but along one component.

    Parameters
    ----------
    model : fitted estimator with `inverse_transform`
    component : int
    steps : array
        In standard deviations of the component.
    """
    variances = dense(model.explained_variance_)
    component = check_component(component, variances.size)
    S = np.zeros((len(steps), variances.size))
    S[:, component] = np.asarray(steps) * np.sqrt(max(float(variances[component]), 0.0))
    return dense(model.inverse_transform(S))


def denoised(
    noisy: Array, result: Array, clean: Array = None, images: Any = None, ax: "Axes | None" = None
) -> Any:
    """Noisy rows, what became of them, and what they should be where that is known.

    Parameters
    ----------
    noisy, result : arrays of shape (n, d), or images of shape `images`
    clean : array of the same shape or None
    images : (h, w), (h, w, channels) or None
        Shape of a row as an image: one picture, in which a kind is a line of images. None
        draws rows as curves over their columns, a picture each.
    ax : matplotlib Axes, array of Axes or None
        One for images; for curves as many as rows.

    Returns
    -------
    matplotlib Axes, or array of them for curves
    """
    kinds = {"noisy": noisy, "denoised": result, "clean": clean}
    kinds = {name: dense(rows) for name, rows in kinds.items() if rows is not None}
    if len({rows.shape for rows in kinds.values()}) > 1:
        shapes = ", ".join(f"{name} {rows.shape}" for name, rows in kinds.items())
        raise ValueError(f"The rows must be the same, of one shape; they are {shapes}.")
    if images is None:
        return _denoised_curves(kinds, ax)
    lines = [as_images(rows, images) for rows in kinds.values()]
    # Noise beyond the values of the others is cut off, or it would leave them pale.
    ax = _montage(ax, lines, lines[1:])
    ax.set_yticks(_centers(images[0], len(kinds)), list(kinds))
    ax.set_xticks([])
    return ax


def as_images(rows, shape):
    """Rows (n, d), or one image, as images (n, h, w[, channels])."""
    shape = tuple(shape)
    if len(shape) not in (2, 3) or rows.size % int(np.prod(shape)) or not rows.size:
        raise ValueError(
            f"Rows of shape {rows.shape} are no images of shape {shape}. Give images= as (height, "
            "width) or (height, width, channels) whose product is the number of columns."
        )
    if rows.shape != shape and rows.shape[-1] != int(np.prod(shape)):
        raise ValueError(
            f"Rows of {rows.shape[-1]} columns are no images of shape {shape}, which have "
            f"{int(np.prod(shape))} values. Give images= another shape."
        )
    return rows.reshape(-1, *shape)


def _denoised_curves(kinds, ax):
    """A picture a row, a line style a kind."""
    first = next(iter(kinds.values()))
    if first.ndim != 2:
        raise ValueError(
            f"Curves are rows of a 2-D array, not of one of shape {first.shape}. Pass images= for "
            "images."
        )
    axes = row_of_axes(ax, len(first))
    styles = {"noisy": ("0.65", "-"), "denoised": ("0.0", "-"), "clean": ("C1", "--")}
    for i, panel in enumerate(axes):
        for name, rows in kinds.items():
            color, dash = styles[name]
            panel.plot(rows[i], color=color, linestyle=dash, label=name)
        panel.set_xlabel("column")
    axes[0].legend(fontsize="small", framealpha=0.6)
    return axes


def _montage(ax, lines, measured):
    """Lines of images in one gray or color picture, thin gaps between.

    The least and largest values of the images `measured` become black and white.
    """
    low = min(float(np.min(images)) for images in measured)
    high = max(float(np.max(images)) for images in measured)
    high = high if high > low else low + 1.0
    gaps = [(0, 0), (0, GAP), (0, GAP)] + [(0, 0)] * (lines[0].ndim - 3)
    shown = (np.clip((images - low) / (high - low), 0.0, 1.0) for images in lines)
    padded = (np.pad(images, gaps, constant_values=1.0) for images in shown)
    picture = np.concatenate([np.concatenate(list(images), axis=1) for images in padded])
    h, w = picture.shape[:2]
    ax = ax or new_axes((MONTAGE, min(MONTAGE, 0.7 + MONTAGE * h / w)))
    ax.imshow(picture, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    ax.set_yticks([])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return ax


def _centers(side, count):
    """Where the middles of images lie along a montage."""
    return (side + GAP) * np.arange(count) + (side - 1) / 2
