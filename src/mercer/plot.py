"""Pictures of fitted models: each function returns axes, takes ``ax=`` and reads in grey."""

import numpy as np
from matplotlib import pyplot as plt

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


def _new_axes():
    return plt.subplots(layout="constrained")[1]
