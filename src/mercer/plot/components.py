"""Rows by their components or coordinates; rows as images or curves along a component."""

import math
from copy import copy
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from ..compute.arrays import Array, has_columns
from ..preimage import FixedPoint
from .axes import (
    DASHES,
    GROUP_COLORS,
    MARKERS,
    axes_of,
    check_component,
    check_pair,
    dense,
    group_color,
    image_shape,
    is_model,
    matrix,
    model_with,
    one_each,
    rows_of,
    scores_of,
    whole_ticks,
    wrong_call,
)

# White pixels between the images of a montage, and inches of its longer side.
GAP = 1
MONTAGE = 7.0
# Rows that are drawn as curves, a picture each.
MOST_CURVES = 20


def scores(
    S: Any,
    X: Array = None,
    labels: Array = None,
    components: tuple[int, int] = (0, 1),
    ax: Any = None,
) -> Axes:
    """Scatter of two components, one color and marker a label.

    Parameters
    ----------
    S : fitted model, or array of shape (n, r)
        A model with `transform`, or scores.
    X : array of shape (n, n_features) or None
        Rows of the model. After scores the labels may stand here: ``plot.scores(S, y)``.
    labels : array of shape (n,) or None
        Many different floating numbers are shown by shade.
    components : pair of int
    ax : matplotlib Axes, figure or None

    Returns
    -------
    matplotlib Axes
    """
    if is_model(S):
        model, X = model_with("scores", S, "transform"), rows_of("scores", X)
        S = scores_of(model, X if model is S else S._inner_rows(X))
    elif labels is None:
        labels = X
    S = matrix("scores", S)
    labels = one_each("labels", labels, len(S))
    i, j = check_pair(components, S.shape[1])
    (ax,) = axes_of(ax)
    many = labels is not None and np.unique(labels).size > len(GROUP_COLORS)
    shaded = many and labels.dtype.kind == "f"
    if shaded:
        ax.scatter(S[:, i], S[:, j], c=labels, s=10, linewidths=0, cmap="viridis")
    for k, (group, some) in enumerate([] if shaded else _groups(labels)):
        look = {"color": group_color(k), "marker": MARKERS[k % len(MARKERS)], "label": group}
        ax.scatter(S[some, i], S[some, j], s=14, alpha=0.7, linewidths=0, **look)
    ax.set(xlabel=f"component {i + 1}", ylabel=f"component {j + 1}")
    if labels is not None and not shaded:
        ax.legend(fontsize="small", ncols=2, framealpha=0.6)
    return ax


def _groups(labels):
    """Names of the groups, and which rows are theirs."""
    if labels is None:
        return [(None, slice(None))]
    labels = np.asarray(labels)
    return [(str(group), labels == group) for group in np.unique(labels)]


def contours(
    model: Any,
    X: Array = None,
    components: Any = None,
    labels: Array = None,
    resolution: int = 120,
    ax: Any = None,
) -> Any:
    """Lines of equal score over data of two columns, a picture a component.

    Figure 1 of Shi, Guo & Xue (2009), after Schoelkopf, Smola & Mueller (1998). A
    component separates rows best where its lines are close.

    Parameters
    ----------
    model : fitted estimator
        Of data with two columns.
    X : array of shape (n, 2)
        Rows to show.
    components : int, sequence of int or None
        Components to show, counted from 0; None for the first three.
    labels : array of shape (n,) or None
        A marker each.
    resolution : int
        Points of the grid along each side.
    ax : matplotlib Axes, array of Axes, figure or None
        As many axes as components.

    Returns
    -------
    array of matplotlib Axes
    """
    model = model_with("contours", model, "transform")
    X = matrix("contours", rows_of("contours", X))
    if X.shape[1] != 2:
        raise ValueError(
            f"Contours are drawn over data of two columns, and X has shape {X.shape}. Use "
            "plot.scores for other data, which shows components against each other."
        )
    labels = one_each("labels", labels, len(X))
    low, high = X.min(axis=0), X.max(axis=0)
    if not np.isfinite(high - low).all():
        raise ValueError("X contains NaN or infinity. Remove or fill those rows first.")
    margin = 0.1 * np.where(high > low, high - low, 1.0)
    x, y = np.linspace(low - margin, high + margin, resolution).T
    plane = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    S = scores_of(model, plane.astype(X.dtype)).reshape(resolution, resolution, -1)
    r = S.shape[2]
    wanted = range(min(3, r)) if components is None else np.atleast_1d(components)
    numbers = [check_component(k, r) for k in wanted]
    axes = axes_of(ax, len(numbers))
    for k, panel in zip(numbers, axes, strict=True):
        panel.contourf(x, y, S[:, :, k], levels=14, cmap="gray", alpha=0.75)
        panel.contour(x, y, S[:, :, k], levels=14, colors="0.15", linewidths=0.6)
        for i, (_, some) in enumerate(_groups(labels)):
            # A white edge stands out from any shade beneath.
            edge = {"edgecolors": "white", "linewidths": 0.5}
            panel.scatter(*X[some].T, s=16, color="black", marker=MARKERS[i % len(MARKERS)], **edge)
        panel.set_title(f"component {k + 1}", fontsize="medium")
    return axes


def landmarks(
    model: Any, X: Array = None, components: tuple[int, int] = (0, 1), ax: Any = None
) -> Axes:
    """A dictionary over its data: rows as pale dots, landmarks as ringed crosses.

    Data of two columns are shown as they are, others by two scores of the model.

    Parameters
    ----------
    model : fitted estimator with `landmarks_`, or array of shape (m, d)
        Landmarks given as points have no scores: their data need two columns.
    X : array of shape (n, d)
        A few thousand rows are enough to see.
    components : pair of int
        Scores to show if the data have more than two columns.
    ax : matplotlib Axes, figure or None

    Returns
    -------
    matplotlib Axes
    """
    X, Z = rows_of("landmarks", X), model
    plane = np.shape(X)[1] == 2
    if is_model(model):
        model = model_with("landmarks", model, "transform")
        Z = vars(model).get("landmarks_")
        if Z is None:
            raise ValueError(
                f"{type(model).__name__} was fitted without landmarks. Fit with basis='landmarks', "
                "or give the landmarks as an array."
            )
    elif not plane:
        raise ValueError(
            f"The picture has two axes, and the points have {np.shape(X)[1]} columns. Give the "
            "fitted model to draw scores, or data of two columns."
        )
    rows, chosen = (matrix("landmarks", A) if plane else scores_of(model, A) for A in (X, Z))
    i, j = check_pair((0, 1) if plane else components, rows.shape[1])
    if chosen.shape[1] != rows.shape[1]:
        raise wrong_call("landmarks", X)
    (ax,) = axes_of(ax)
    ax.scatter(rows[:, i], rows[:, j], s=8, color="0.75", linewidths=0, label="data")
    # A white ring keeps crosses apart from the dots beneath, in grey as in color.
    ax.scatter(chosen[:, i], chosen[:, j], s=60, color="white", marker="X", linewidths=0)
    name = f"{len(chosen)} landmarks"
    ax.scatter(chosen[:, i], chosen[:, j], s=28, color="0.1", marker="X", linewidths=0, label=name)
    kind = "column" if plane else "component"
    names = [f"{kind} {i + 1}", f"{kind} {j + 1}"]
    names = list(X.columns) if plane and has_columns(X) else names
    ax.set(xlabel=names[0], ylabel=names[1])
    ax.legend(fontsize="small", framealpha=0.6)
    return ax


def embedding(
    model: Any,
    colors: Array = None,
    new: Array = None,
    new_colors: Array = None,
    components: tuple[int, int] = (0, 1),
    ax: Any = None,
) -> Any:
    """Training rows by two coordinates of an embedding, and new rows as crosses among them.

    Parameters
    ----------
    model : SpectralEmbedding, DiffusionMap or ClassicalMDS
        Fitted.
    colors : array of shape (n,) or None
        A number for each training row, or a label: as of `scores`.
    new : array of shape (q, n_features) or None
        Rows that are placed by ``model.transform``.
    new_colors : array of shape (q,) or None
        As `colors`, for the new rows, if these are numbers.
    components : pair of int
    ax : matplotlib Axes, figure or None

    Returns
    -------
    matplotlib Axes
    """
    fitted = is_model(model) and not isinstance(model, type)
    if fitted and "embedding_" not in dir(model) and "transform" in dir(model):
        raise TypeError(
            f"{type(model).__name__} has scores and no embedding. Call plot.scores(model, X)."
        )
    Y = dense(model_with("embedding", model, "embedding_").embedding_)
    i, j = check_pair(components, Y.shape[1])
    ax = scores(Y, one_each("colors", colors, len(Y)), components=(i, j), ax=ax)
    if new is not None:
        Z = scores_of(model, rows_of("embedding", new))
        new_colors, shown = one_each("new_colors", new_colors, len(Z)), ax.collections[-1]
        look: dict[str, Any] = {"c": "black"}
        if new_colors is not None and shown.get_array() is not None:  # the rows are shaded
            look = {"c": new_colors, "cmap": shown.cmap, "norm": shown.norm}
        ax.scatter(Z[:, i], Z[:, j], marker="x", s=36, linewidths=1.2, **look)
    for k, name in ((i, "x"), (j, "y")):
        value = float(dense(model.eigenvalues_)[k])
        ax.set(**{f"{name}label": f"coordinate {k + 1} (eigenvalue {value:.3g})"})
    return ax


def preimages(
    model: Any,
    component: int = 0,
    images: Any = None,
    n_steps: int = 7,
    span: float = 2.0,
    ax: Any = None,
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
    ax : matplotlib Axes, figure or None

    Returns
    -------
    matplotlib Axes
    """
    model = model_with("preimages", model, "inverse_transform", "explained_variance_")
    steps = steps_along(span, n_steps)
    rows = walk(model, component, steps)
    labels = [f"{step:+.3g}" for step in steps]
    if images is None:
        (ax,) = axes_of(ax)
        # Lightness grows along the walk, and no curve is as pale as paper.
        colors = plt.get_cmap("viridis")(np.linspace(0, 0.85, n_steps))
        columns = np.arange(1, rows.shape[1] + 1)
        for k, (row, label) in enumerate(zip(rows, labels, strict=True)):
            ax.plot(columns, row, color=colors[k], linestyle=DASHES[k % len(DASHES)], label=label)
        ax.set_xlabel("column")
        whole_ticks(ax)
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

    The row in the middle stands for the mean of feature space, not for the mean of the columns.
    With ``preimage="auto"`` rows are fixed points where the basis has them: few rows have scores
    near zero, and there the ridge extrapolates far from all rows.

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
    if "preimage" in model.get_params() and str(model.preimage) == "auto":
        try:
            FixedPoint().check(model.expansion_.basis)
        except ValueError:
            return dense(model.inverse_transform(S))
        model = copy(model).set_params(preimage="fixed-point")
    return dense(model.inverse_transform(S))


def denoised(
    noisy: Any, result: Array = None, clean: Array = None, images: Any = None, ax: Any = None
) -> Any:
    """Noisy rows, the same denoised, and the clean ones if they are known.

    Parameters
    ----------
    noisy, result : arrays of shape (n, d), or images of shape `images`
        A fitted model and noisy rows stand for the rows and what the model makes of them.
    clean : array of the same shape or None
    images : (h, w), (h, w, channels) or None
        Shape of a row as an image: one picture, in which a kind is a line of images. None
        draws rows as curves over their columns, a picture each.
    ax : matplotlib Axes, array of Axes, figure or None
        One for images; for curves as many as rows.

    Returns
    -------
    matplotlib Axes, or array of them for curves
    """
    if is_model(noisy):
        model = model_with("denoised", noisy, "denoise")
        noisy, result = result, model.denoise(rows_of("denoised", result))
    if noisy is None or result is None:
        raise wrong_call("denoised", noisy)
    kinds = {"noisy": noisy, "denoised": result, "clean": clean}
    kinds = {name: dense(rows) for name, rows in kinds.items() if rows is not None}
    for rows in kinds.values():
        if rows.dtype.kind not in "biuf":
            raise wrong_call("denoised", rows)
    if len({rows.shape for rows in kinds.values()}) > 1:
        shapes = ", ".join(f"{name} {rows.shape}" for name, rows in kinds.items())
        raise ValueError(f"The rows must be the same, of one shape; they are {shapes}.")
    if images is not None:
        lines = [as_images(rows, images) for rows in kinds.values()]
        # Noise beyond the values of the others is cut off, or it would leave them pale.
        ax = _montage(ax, lines, lines[1:])
        ax.set_yticks(_centers(images[0], len(kinds)), list(kinds))
        ax.set_xticks([])
        return ax
    count = len(matrix("denoised", kinds["noisy"]))
    if count > MOST_CURVES:
        raise ValueError(
            f"Curves are drawn for at most {MOST_CURVES} rows, and there are {count:,}. Pass a few "
            "of the rows, or images= for images."
        )
    axes = axes_of(ax, count)
    styles = {"noisy": ("0.65", "-"), "denoised": ("0.0", "-"), "clean": ("C1", "--")}
    for i, panel in enumerate(axes):
        for name, rows in kinds.items():
            color, dash = styles[name]
            panel.plot(rows[i], color=color, linestyle=dash, label=name)
        panel.set_xlabel("column")
    axes[0].legend(fontsize="small", framealpha=0.6)
    return axes


def as_images(rows, shape):
    """Rows (n, d), or one image, as images (n, h, w[, channels])."""
    whole = not rows.size or rows.shape == tuple(np.atleast_1d(shape).tolist())
    return rows.reshape(
        -1, *image_shape(shape, math.prod(rows.shape if whole else rows.shape[-1:]))
    )


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
    (ax,) = axes_of(ax, size=(MONTAGE, min(MONTAGE, 0.7 + MONTAGE * h / w)))
    ax.imshow(picture, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    ax.set_yticks([])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return ax


def _centers(side, count):
    """Where the middles of images lie along a montage."""
    return (side + GAP) * np.arange(count) + (side - 1) / 2
