"""Pictures of fitted models: each function returns axes, takes ``ax=`` and reads in grey."""

import numpy as np
from matplotlib import pyplot as plt

from .compute import to_numpy

# Shapes tell groups apart where colour cannot.
MARKERS = "os^vDP*X<>"


def scores(S, labels=None, components=(0, 1), ax=None):
    """Scatter of two components, one colour and marker a label.

    Parameters
    ----------
    S : array of shape (n, r)
    labels : array of shape (n,) or None
    components : pair of int
    ax : matplotlib Axes or None

    Returns
    -------
    matplotlib Axes
    """
    ax = ax or _new_axes()
    i, j = components
    groups = [None] if labels is None else list(np.unique(labels))
    shades = plt.get_cmap("viridis")(np.linspace(0, 0.9, len(groups)))
    for k, group in enumerate(groups):
        some = slice(None) if group is None else np.asarray(labels) == group
        ax.scatter(
            S[some, i],
            S[some, j],
            s=14,
            alpha=0.7,
            linewidths=0,
            color=shades[k],
            marker=MARKERS[k % len(MARKERS)],
            label=None if group is None else str(group),
        )
    ax.set_xlabel(f"component {i + 1}")
    ax.set_ylabel(f"component {j + 1}")
    if labels is not None:
        ax.legend(fontsize="small", ncols=2, framealpha=0.6)
    return ax


def spectrum(model, ax=None):
    """Eigenvalues of a fitted model with the intervals that are certified to hold true ones.

    Parameters
    ----------
    model : fitted estimator with `eigenvalues_` and `certificate_`
    ax : matplotlib Axes or None

    Returns
    -------
    matplotlib Axes
    """
    ax = ax or _new_axes()
    values, certificate = np.asarray(model.eigenvalues_), model.certificate_
    number = np.arange(1, values.size + 1)
    low = np.maximum(values - certificate.eigenvalue_lower, 0)
    high = np.maximum(certificate.eigenvalue_upper - values, 0)
    ax.errorbar(number, values, yerr=[low, high], fmt="o-", color="0.2", ms=4, capsize=3, lw=1)
    if values.size and values.min() > 0:
        ax.set_yscale("log")
    ax.set_xlabel("component")
    ax.set_ylabel("eigenvalue")
    low_share, high_share = (100 * share for share in certificate.captured_variance)
    ax.set_title(f"{low_share:.1f} to {high_share:.1f} % of the variance", fontsize="medium")
    return ax


def landmarks(model, X, components=(0, 1), ax=None):
    """A dictionary over its data: rows as pale dots, landmarks as ringed crosses.

    Data of two columns are shown as they are, others by two scores of the model.

    Parameters
    ----------
    model : fitted estimator with `landmarks_`, or array of shape (m, d)
        Landmarks given as points have no scores: their data need two columns.
    X : array of shape (n, d)
        A few thousand rows are enough to see.
    components : pair of int
        Scores to show where the data have more than two columns.
    ax : matplotlib Axes or None

    Returns
    -------
    matplotlib Axes
    """
    Z = getattr(model, "landmarks_", model)
    plane = X.shape[1] == 2
    if not plane and not hasattr(model, "transform"):
        raise ValueError(
            f"Points of {X.shape[1]} columns have no place in a picture. Give the fitted model, "
            "whose scores show them, or data of two columns."
        )
    ax = ax or _new_axes()
    i, j = (0, 1) if plane else components
    rows, chosen = (_dense(A) if plane else _dense(model.transform(A)) for A in (X, Z))
    ax.scatter(rows[:, i], rows[:, j], s=8, color="0.75", linewidths=0, label="data")
    # A white ring keeps crosses apart from the dots beneath, in grey as in colour.
    ax.scatter(chosen[:, i], chosen[:, j], s=60, color="white", marker="X", linewidths=0)
    name = f"{len(chosen)} landmarks"
    ax.scatter(chosen[:, i], chosen[:, j], s=28, color="0.1", marker="X", linewidths=0, label=name)
    kind = "column" if plane else "component"
    ax.set_xlabel(f"{kind} {i + 1}")
    ax.set_ylabel(f"{kind} {j + 1}")
    ax.legend(fontsize="small", framealpha=0.6)
    return ax


def _dense(A):
    """A NumPy array of whatever holds rows."""
    return np.asarray(A.toarray() if hasattr(A, "toarray") else to_numpy(A))


def selection(result, ax=None):
    """Heat map of the errors that a search over widths and components met; the best is ringed.

    Parameters
    ----------
    result : Selection or fitted KernelPCASearch
    ax : matplotlib Axes or None

    Returns
    -------
    matplotlib Axes
    """
    ax = ax or _new_axes()
    result = getattr(result, "selection_", result)
    shares = result.errors / result.reference
    picture = ax.imshow(shares, cmap="gray", aspect="auto", vmin=0, vmax=1)
    for (i, j), share in np.ndenumerate(shares):
        shade = "white" if share < 0.5 else "black"
        ax.text(j, i, f"{share:.2f}", ha="center", va="center", fontsize="small", color=shade)
    i, j = np.unravel_index(np.nanargmin(result.errors), result.errors.shape)
    ax.plot(j, i, "o", ms=30, mfc="none", mec="tab:orange", mew=2)
    ax.set_xticks(range(len(result.n_components)), [str(r) for r in result.n_components])
    ax.set_yticks(range(len(result.gammas)), [f"{gamma:.2g}" for gamma in result.gammas])
    ax.set_xlabel("components")
    ax.set_ylabel("gamma")
    ax.set_title(f"Error by {result.criterion}, 1 = nothing done", fontsize="medium")
    ax.figure.colorbar(picture, ax=ax)
    return ax


def _new_axes():
    return plt.subplots(layout="constrained")[1]
