"""The picture of a comparison: spectra with certified intervals, and what each method cost."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from ..plot.axes import MARKERS

# Dark to light, told apart in gray as well.
SHADES = ("0.0", "0.35", "0.55", "0.7", "0.2", "0.45", "0.6", "0.8")


def draw_comparison(found: list[dict], path: Path) -> None:
    """Draw what `mercer compare` measured, one entry a method.

    Parameters
    ----------
    found : list of dict
        With ``method``, ``seconds``, ``peak_bytes``, ``error``, and eigenvalues with their bounds.
    path : Path
    """
    figure = Figure(figsize=(11, 6), layout="constrained")
    costs = ("time", "memory", "error")
    parts = figure.subplot_mosaic([["spectrum", cost] for cost in costs])
    draw_spectra(parts["spectrum"], found)
    draw_bars(parts["time"], found, "seconds", "time, s")
    draw_bars(parts["memory"], found, "peak_bytes", "memory of arrays, MB", 1e-6)
    draw_bars(parts["error"], found, "error", "certified error, share of the first eigenvalue")
    parts["error"].set_xscale("log")
    draw_differences(parts["error"], found)
    figure.savefig(path, dpi=130)


def draw_spectra(ax, found) -> None:
    """Eigenvalues of all methods side by side, each with its interval."""
    offsets = np.linspace(-0.25, 0.25, len(found)) if len(found) > 1 else [0.0]
    for i, (one, offset) in enumerate(zip(found, offsets, strict=True)):
        values = np.asarray(one["eigenvalues"])
        low = np.maximum(values - one["eigenvalue_lower"], 0)
        high = np.maximum(one["eigenvalue_upper"] - values, 0)
        certified = one["certificate"] == "bound"
        ax.errorbar(
            np.arange(1, values.size + 1) + offset,
            values,
            yerr=[low, high] if certified else None,
            fmt=MARKERS[i % len(MARKERS)],
            color=SHADES[i % len(SHADES)],
            ms=4,
            capsize=2,
            lw=1,
            label=one["method"] if certified else f"{one['method']}, not certified",
        )
    ax.set_yscale("log")
    ax.set_xlabel("component")
    ax.set_ylabel("eigenvalue, with the interval that holds the exact one")
    ax.legend(fontsize="small")


def draw_bars(ax, found, fact: str, title: str, unit: float = 1.0) -> None:
    """One fact of all methods."""
    names = [one["method"] for one in found][::-1]
    values = [unit * (one[fact] or 0) for one in found][::-1]
    bars = ax.barh(names, values, color="0.75")
    texts = ["none" if one[fact] is None else f"{unit * one[fact]:.2g}" for one in found][::-1]
    ax.bar_label(bars, texts, padding=3, fontsize="small")
    ax.margins(x=0.2)
    ax.set_title(title, fontsize="medium")


def draw_differences(ax, found) -> None:
    """Measured differences from the exact method, beside what is certified."""
    known = [one for one in found if one["difference"]]
    if known:
        names, values = [o["method"] for o in known], [o["difference"] for o in known]
        ax.plot(values, names, "kx", label="measured against exact")
        ax.legend(fontsize="small")
