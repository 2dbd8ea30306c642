"""How a fit went: its spectrum, its passes, the search that chose it."""

from typing import TYPE_CHECKING, Any

import numpy as np

from .._colors import group_color
from ..estimators import KernelPCASearch
from ..relatives.significance import Significance
from .axes import DASHES, MARKERS, dense, log_heights, new_axes
from .histories import QUANTITIES, curves

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def spectrum(
    model: Any, ax: "Axes | None" = None, *, significance: Significance | None = None
) -> "Axes":
    """Eigenvalues of a fitted model with the intervals that are certified to hold true ones.

    Parameters
    ----------
    model : fitted estimator with `eigenvalues_` and `certificate_`
    ax : matplotlib Axes or None
    significance : Significance or None, default=None
        Of ``model.significance()``: the height of noise is drawn too, and the title says how many
        components stand above it.

    Returns
    -------
    matplotlib Axes
    """
    ax = ax or new_axes()
    values, certificate = dense(model.eigenvalues_), model.certificate_
    number = np.arange(1, values.size + 1)
    low = np.maximum(values - dense(certificate.eigenvalue_lower), 0)
    high = np.maximum(dense(certificate.eigenvalue_upper) - values, 0)
    ax.errorbar(number, values, yerr=[low, high], fmt="o-", color="0.2", ms=4, capsize=3, lw=1)
    if values.size and values.min() > 0:
        log_heights(ax, values.min(), np.max(values + high))
    ax.set_xlabel("component")
    ax.set_ylabel("eigenvalue")
    low_share, high_share = (100 * share for share in certificate.captured_variance)
    ends = dict.fromkeys(f"{share:.1f}" for share in (low_share, high_share))
    title = f"{' to '.join(ends)} % of the variance"
    if significance is not None:
        draw_noise(ax, values, significance)
        title += f"; {significance.n_significant} of {values.size} stand above noise"
    ax.set_title(title, fontsize="medium")
    return ax


def draw_noise(ax, values, significance) -> None:
    """The eigenvalues of noise, in the unit of those of the model."""
    count = min(len(significance.eigenvalues), values.size)
    # A sample was looked at: its first eigenvalue stands for the model's.
    unit = values[0] / significance.eigenvalues[0] if significance.eigenvalues[0] > 0 else 1.0
    noise = unit * significance.null_upper[:count]
    number = np.arange(1, count + 1)
    ax.plot(number, noise, "s--", color="0.5", mfc="white", ms=4, lw=1, label="noise")
    ax.legend(fontsize="small", framealpha=0.6)


def convergence(histories: Any, quantity: str = "auto", ax: "Axes | None" = None) -> "Axes":
    """Error after each pass on a logarithmic scale, a marker and line style a method.

    Parameters
    ----------
    histories : history or mapping of str to history
        A history is `HebbianKernelPCA.history_`, a list of the states that a callback
        collected (``callback=states.append``), or one number a pass.
    quantity : "auto", "excess", "residual" or "change", default="auto"
        What to show. "auto" is the excess error where all histories have it, or else the
        residual.
    ax : matplotlib Axes or None

    Returns
    -------
    matplotlib Axes
    """
    quantity, named = curves(histories, quantity)
    ax = ax or new_axes()
    for k, (name, (passes, values)) in enumerate(named.items()):
        ax.plot(
            passes,
            # A logarithm has no place for zero; a gap is drawn there.
            np.where(values > 0, values, np.nan),
            color=group_color(k),
            linestyle=DASHES[k % len(DASHES)],
            marker=MARKERS[k % len(MARKERS)],
            markersize=5,
            label=name or None,
        )
    ax.set_yscale("log")
    ax.set_xlabel("pass over the kernel matrix")
    ax.set_ylabel(QUANTITIES[quantity])
    ax.xaxis.get_major_locator().set_params(integer=True)  # type: ignore[call-arg]
    if any(named):
        ax.legend(fontsize="small", framealpha=0.6)
    return ax


def selection(result: Any, ax: "Axes | None" = None) -> Any:
    """Heat map of the errors that a search over widths and components met; the best is ringed.

    Parameters
    ----------
    result : Selection or fitted KernelPCASearch
    ax : matplotlib Axes or None

    Returns
    -------
    matplotlib Axes
    """
    ax = ax or new_axes()
    result = result.selection_ if isinstance(result, KernelPCASearch) else result
    shares = result.errors / result.reference
    picture = ax.imshow(shares, cmap="gray", aspect="auto", vmin=0, vmax=1)
    for (i, j), share in np.ndenumerate(shares):
        if np.isnan(share):  # not tried
            continue
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
