"""How a fit went and what it means: spectrum, passes, the search that chose it, driving columns."""

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter
from sklearn.base import BaseEstimator

from ..estimators.search import Selection
from ..hebbian import History
from ..relatives.explaining import Attribution, Significance
from ..relatives.monitor import ControlChart
from ..solvers import PassState
from .axes import (
    DASHES,
    MARKERS,
    axes_of,
    check_component,
    dense,
    group_color,
    model_with,
    rows_of,
    whole_ticks,
    wrong_call,
)

# What a curve can show, best first: equation 22 of the Hebbian paper, what residuals say, and
# how far the subspace turned.
QUANTITIES = {
    "excess": "excess reconstruction error",
    "residual": "residual / largest eigenvalue",
    "change": "turn of the subspace (sine)",
}
# Share of a gradient's size that must have one sign for a bar to count as rising or falling.
ONE_SIGN = 0.5
# Beyond so many times its median a statistic is drawn on a logarithmic scale.
WIDE = 20
HATCHES = {"rises": "", "falls": "////", "both": "...."}


def spectrum(model: Any, ax: Any = None, *, significance: Significance | None = None) -> Axes:
    """Eigenvalues of a fitted model with certified intervals of the exact ones.

    Parameters
    ----------
    model : fitted estimator with `eigenvalues_` and `certificate_`
    ax : matplotlib Axes, figure or None
    significance : Significance or None, default=None
        Of ``model.significance()``: the height of noise is drawn too, and the title says how many
        components stand above it.

    Returns
    -------
    matplotlib Axes
    """
    model, (ax,) = model_with("spectrum", model, "eigenvalues_", "certificate_"), axes_of(ax)
    values, certificate = dense(model.eigenvalues_), model.certificate_
    number = np.arange(1, values.size + 1)
    low = np.maximum(values - dense(certificate.eigenvalue_lower), 0)
    high = np.maximum(dense(certificate.eigenvalue_upper) - values, 0)
    # No bar where nothing bounds them.
    low, high = (np.where(np.isfinite(ends), ends, 0.0) for ends in (low, high))
    ax.errorbar(number, values, yerr=[low, high], fmt="o-", color="0.2", ms=4, capsize=3, lw=1)
    if values.size and values.min() > 0:
        ax.set_yscale("log")
        if np.max(values + high) < 100 * values.min():
            # Few powers of ten: ticks between them too.
            ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            ax.yaxis.set_minor_formatter(NullFormatter())
    ax.set(xlabel="component", ylabel="eigenvalue")
    whole_ticks(ax)
    title = f"{values.size} components"
    if certificate.captured_variance is not None:
        ends = dict.fromkeys(f"{100 * share:.1f}" for share in certificate.captured_variance)
        title = f"{' to '.join(ends)} % of the variance"
    if significance is not None:
        count = min(len(significance.eigenvalues), values.size)
        # A sample was looked at: its first eigenvalue stands for the model's.
        top = significance.eigenvalues[0]
        noise = significance.null_upper[:count] * (values[0] / top if top > 0 else 1.0)
        ax.plot(number[:count], noise, "s--", color="0.5", mfc="white", ms=4, lw=1, label="noise")
        ax.legend(fontsize="small", framealpha=0.6)
        title += f"; {significance.n_significant} of {values.size} stand above noise"
    ax.set_title(title, fontsize="medium")
    return ax


def eigengaps(model: Any, ax: Any = None) -> Axes:
    """The evidence for each number of clusters: a bar for the eigengap after it.

    Parameters
    ----------
    model : fitted SpectralClustering
        With ``n_clusters="auto"``, or with more `n_components` than clusters.
    ax : matplotlib Axes, figure or None

    Returns
    -------
    matplotlib Axes
        The bar of the model's own number is dark.
    """
    model = model_with("eigengaps", model, "eigengaps_", "n_clusters_")
    gaps, chosen = model.eigengaps_, model.n_clusters_
    if gaps.size < 2:
        raise ValueError(
            f"This model has {gaps.size + 1} eigenvectors, too few to compare numbers of clusters. "
            "Fit with n_clusters='auto'."
        )
    (ax,), counts = axes_of(ax), np.arange(2, gaps.size + 1)
    ax.bar(counts, gaps[1:], color=np.where(counts == chosen, "0.2", "0.75"), ec="0.2")
    whole_ticks(ax)
    ax.set(xlabel="clusters", ylabel="eigengap")
    best, second = counts[np.argsort(-gaps[1:], kind="stable")[:2]] if gaps.size > 2 else (2, 2)
    rest = f", then {second}" if second != best else ""
    ax.set_title(f"{chosen} clusters; the largest gap is at {best}{rest}", fontsize="medium")
    return ax


def convergence(histories: Any, quantity: str = "auto", ax: Any = None) -> Axes:
    """Error after each pass on a logarithmic scale, a marker and line style a method.

    Parameters
    ----------
    histories : history or mapping of str to history
        A history is `HebbianKernelPCA.history_`, a list of the states that a callback
        collected (``callback=states.append``), or one number a pass. A model fitted by
        `HebbianKernelPCA` stands for its own.
    quantity : "auto", "excess", "residual" or "change", default="auto"
        What to show. "auto" is the excess error if all histories have it, else the
        residual.
    ax : matplotlib Axes, figure or None

    Returns
    -------
    matplotlib Axes
    """
    if not isinstance(quantity, str):
        raise wrong_call("convergence", quantity)
    quantity, named = curves(histories, quantity)
    (ax,) = axes_of(ax)
    for k, (name, (passes, values)) in enumerate(named.items()):
        look = {"color": group_color(k), "ls": DASHES[k % len(DASHES)], "label": name or None}
        # A logarithm has no place for zero; a gap is drawn there.
        shown = np.where(values > 0, values, np.nan)
        ax.plot(passes, shown, marker=MARKERS[k % len(MARKERS)], markersize=5, **look)
    ax.set(yscale="log", xlabel="pass over the kernel matrix", ylabel=QUANTITIES[quantity])
    whole_ticks(ax)
    if any(named):
        ax.legend(fontsize="small", framealpha=0.6)
    return ax


def curves(histories, quantity: str = "auto"):
    """Curves of one quantity, from one history or several by name.

    Parameters
    ----------
    histories : history or mapping of str to history
    quantity : "auto", "excess", "residual" or "change"
        "auto" is the first of these that all histories have. Plain numbers are taken for
        whatever is asked.

    Returns
    -------
    quantity : str
    named : dict of str to (passes, values)
        Two arrays a history.
    """
    if not isinstance(histories, Mapping):
        histories = {"": histories}
    quantities = {name: _read(history, name) for name, history in histories.items()}
    if not quantities:
        raise ValueError("There is no history to show. Give one, or several by name.")
    for one in QUANTITIES if quantity == "auto" else [quantity]:
        if all(one in kinds for kinds in quantities.values()):
            return one, {name: kinds[one] for name, kinds in quantities.items()}
    have = "; ".join(f"{name}: {', '.join(kinds)}" for name, kinds in quantities.items())
    raise ValueError(
        f"quantity={quantity!r} must be one that every history has. They have {have}. Draw them "
        "one by one; for the excess error fit HebbianKernelPCA with track_excess=True."
    )


def _read(history, name):
    """Quantities of one history, each as (passes, values)."""
    if isinstance(history, BaseEstimator | type | ModuleType):
        history = model_with("convergence", history, "history_").history_
    if isinstance(history, History):
        passes = np.arange(1, len(history.changes) + 1)
        if not passes.size:
            raise ValueError("The history is empty: no pass was finished.")
        top = np.maximum(history.eigenvalues.max(axis=1), np.finfo(float).tiny)
        values_of = {"residual": history.residuals.max(axis=1) / top, "change": history.changes}
        if history.excess is not None:
            values_of["excess"] = history.excess
        return {kind: (passes, np.asarray(values, float)) for kind, values in values_of.items()}
    if isinstance(history, str) or np.ndim(history) == 0:
        raise wrong_call("convergence", history)
    history = list(history)
    if not history:
        raise ValueError(f"History {name!r} is empty: no pass was recorded.")
    if all(isinstance(state, PassState) for state in history):
        passes = np.array([state.n_passes for state in history])
        return {"residual": (passes, np.array([state.residual for state in history], float))}
    try:
        values = np.asarray(history, dtype=float)
    except (TypeError, ValueError):
        raise wrong_call("convergence", history) from None
    if values.ndim != 1:
        raise ValueError(f"History {name!r} needs one number a pass, and has shape {values.shape}.")
    return {quantity: (np.arange(1, values.size + 1), values) for quantity in QUANTITIES}


def selection(result: Any, ax: Any = None) -> Any:
    """Heat map of the errors of a search over widths and components; the best is ringed.

    Parameters
    ----------
    result : Selection or fitted KernelPCASearch
    ax : matplotlib Axes, figure or None

    Returns
    -------
    matplotlib Axes
    """
    if not isinstance(result, Selection):
        result = model_with("selection", result, "selection_").selection_
    (ax,) = axes_of(ax)
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
    ax.set(xlabel="components", ylabel="gamma")
    ax.set_title(f"Error by {result.criterion}, 1 = without denoising", fontsize="medium")
    ax.figure.colorbar(picture, ax=ax)
    return ax


def control_chart(chart: Any, X: Any = None, *, names: int = 4, ax: Any = None) -> Any:
    """T-squared and SPE row by row with their limits, alarms, and the sensors behind the longest.

    Parameters
    ----------
    chart : ControlChart or fitted ProcessMonitor
    X : array-like of shape (n, n_features) or None, default=None
        Rows for a monitor.
    names : int, default=4
        Alarms, the longest first, whose sensor is written above them.
    ax : two matplotlib Axes, a figure or None

    Returns
    -------
    array of two matplotlib Axes
    """
    if not isinstance(chart, ControlChart):
        chart = model_with("control_chart", chart, "chart").chart(rows_of("control_chart", X))
    if ax is None:
        _, ax = plt.subplots(2, 1, figsize=(8, 4.5), sharex=True, layout="constrained")
    axes = axes_of(ax, 2)
    rows = chart.rows if chart.rows.dtype.kind in "iufM" else np.arange(len(chart.rows))
    longest = sorted(chart.episodes(), key=lambda part: part.start - part.stop)[:names]
    for k, title in enumerate(("T-squared", "SPE")):
        one, values, limit = axes[k], chart.statistics[:, k], chart.limits[k]
        beyond = values > limit
        one.plot(rows, values, color="0.35", lw=0.8)
        one.plot(rows[beyond], values[beyond], "o", color=group_color(3), ms=3)
        one.axhline(limit, color="0.1", lw=1, ls="--")
        for part in longest:
            one.axvspan(rows[part.start], rows[part.stop - 1], color=group_color(1), alpha=0.2)
        if min(values.min(initial=1), limit) > 0 and values.max() > WIDE * np.median(values):
            one.set_yscale("log")
        one.margins(x=0.01, y=0.1)
        one.set_ylabel(title)
    above = axes[0].get_xaxis_transform()
    for part in longest:
        sensor, middle = "".join(name for name, _ in chart.top(part, 1)), part.start + part.stop
        axes[0].text(rows[middle // 2], 1.02, sensor, transform=above, ha="center", size="small")
    axes[1].set_xlabel("row")
    axes[0].set_title(chart.sentence().split(";")[0], fontsize="medium", loc="left", pad=16)
    return axes


def attribution(
    result: Any, component: int | None = None, *, X: Any = None, count: int = 12, ax: Any = None
) -> Any:
    """Bars of the columns that drive a component, or all of them, the longest first.

    Parameters
    ----------
    result : Attribution or fitted estimator with `attribute`
        Of an estimator, the attribution of X is drawn.
    component : int or None, default=None
        Which, from 0; None for all together.
    X : array of shape (n, n_features) or None, default=None
        Rows to average over; None for the training rows that the estimator has.
    count : int, default=12
        Columns shown at most.
    ax : matplotlib Axes, figure or None

    Returns
    -------
    matplotlib Axes
        Bars are plain if the score rises with the column, striped if it falls and dotted if it
        does both.
    """
    attributed = result
    if not isinstance(result, Attribution):
        model = model_with("attribution", result, "attribute")
        attributed = model.attribute(None if X is None else rows_of("attribution", X))
    if component is not None:
        component = check_component(component, len(attributed.components))
    order = attributed.order(component)[:count]
    values = attributed.overall if component is None else attributed.size[:, component]
    (ax,) = axes_of(ax, size=(5.2, 0.8 + 0.28 * len(order)))
    direction = np.ones(len(order)) if component is None else attributed.direction[order, component]
    kinds = np.select([direction > ONE_SIGN, direction < -ONE_SIGN], ["rises", "falls"], "both")
    for kind, hatch in HATCHES.items():
        place = np.flatnonzero(kinds == kind)
        if place.size:
            ax.barh(place, values[order][place], color="0.75", ec="0.2", hatch=hatch, label=kind)
    ax.set_yticks(range(len(order)), [attributed.columns[i] for i in order])
    ax.invert_yaxis()
    ax.set_xlabel("change of the score per standard deviation", loc="right")
    name = "all components" if component is None else f"component {component + 1}"
    ax.set_title(f"What drives {name}", fontsize="medium")
    if component is not None:
        ax.legend(fontsize="small", loc="lower right", title="with the column it")
        ax.margins(x=0.4)  # beside the bars, not over them
    return ax
