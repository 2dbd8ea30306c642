"""``mercer plan`` and ``mercer compare``: which method to take, by counting and by trying."""

import re
import time
import tracemalloc
import warnings
from argparse import Namespace
from pathlib import Path

import numpy as np

from .. import plan as make_plan
from .._tables import text_table
from ..compute import format_bytes
from .failures import JobError, UsageError
from .fit import make_model
from .outputs import Result, say
from .tables import InputTable, scaled_table

# Methods whose eigenvalues others can be measured against.
EXACT = {"auto", "exact", "dense", "krylov"}
# Rows that every method sees first.
WARM_ROWS = 200
# Dark to light, told apart in gray as well.
SHADES = ("0.0", "0.35", "0.55", "0.7", "0.2", "0.45", "0.6", "0.8")


def plan(args: Namespace) -> Result:
    """Measure this machine for a moment, and count."""
    if (args.data is None) == (args.shape is None):
        raise UsageError("Give either a table or --shape, such as --shape 100000x54.")
    if args.shape is None:
        table = InputTable(args)
        n, d = table.source.n_rows, table.source.n_columns
        # Tables that do not tell are read through once.
        args.shape = (sum(len(block) for block in table.blocks()) if n is None else n), d
    found = make_plan(
        args.shape,
        args.components,
        kernel=args.kernel,
        memory=args.memory,
        device=args.device,
        tol=args.tol,
        n_jobs=args.threads,
    )
    work, option = found.workload, option_of(found.method)
    methods = [
        {
            "method": e.method,
            "option": option_of(e.method),
            "kernel_evaluations": e.evaluations,
            "bytes": e.bytes,
            "seconds": e.seconds,
            "fits": e.fits,
            "note": e.note,
        }
        for e in found.estimates
    ]
    facts = {
        "rows": work.n,
        "columns": work.d,
        "components": work.r,
        "memory": work.memory,
        "threads": work.threads,
        "method": found.method,
        "option": option,
        "reason": found.reason,
        "methods": methods,
    }
    advice = f"to run it: mercer fit DATA --method {option} -o model.mercer"
    return Result(facts, f"{found}\n{advice}")


def option_of(method: str) -> str:
    """The --method of mercer fit that asks for a method of a plan."""
    if method == "HebbianKernelPCA":
        return "hebbian"
    basis = re.fullmatch(r'basis="(.+)"', method)
    return basis[1] if basis else method.split(",")[0]


def compare(args: Namespace) -> Result:
    """Fit every method in turn, and measure."""
    _, X, _ = scaled_table(args)
    found = [measure(args, method, X) for method in args.methods]
    exact = next((one for one in found if one["method"] in EXACT and one["converged"]), None)
    for one in found:
        one["difference"] = None
        if exact is not None and one is not exact:
            pairs = zip(one["eigenvalues"], exact["eigenvalues"], strict=False)
            largest = max(abs(float(a - b)) for a, b in pairs)
            one["difference"] = largest / float(exact["eigenvalues"][0])
    if args.draft is not None:
        draw(found, args.draft)
    facts = {"rows": X.shape[0], "columns": X.shape[1], "methods": found}
    heads = ["method", "time", "memory", "variance held", "certified error", "from exact", ""]
    rows = [
        [
            one["method"],
            f"{one['seconds']:.3g} s",
            format_bytes(one["peak_bytes"]),
            " to ".join(f"{100 * share:.2f}" for share in one["captured_variance"]) + " %",
            "none" if one["error"] is None else f"{one['error']:.1e}",
            "" if one["difference"] is None else f"{one['difference']:.1e}",
            "" if one["converged"] else "not converged",
        ]
        for one in found
    ]
    return Result(facts, text_table(heads, rows))


def measure(args: Namespace, method: str, X) -> dict:
    """Fit one method: seconds, peak of arrays in memory, and what its certificate says."""
    say(args, f"{method} ...")
    few = X[:WARM_ROWS, :WARM_ROWS] if args.kernel == "precomputed" else X[:WARM_ROWS]
    with warnings.catch_warnings():
        # A fit of a few rows, so that imports and compilation are in no method's time.
        warnings.simplefilter("ignore")
        try:
            make_model(args, method).set_params(verbose=0).fit(few)
        except ValueError as error:
            raise JobError(f"{method}: {error} Leave it out with --methods.") from error
    tracemalloc.start()
    try:
        start = time.perf_counter()
        model = make_model(args, method).fit(X)
        seconds = time.perf_counter() - start
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    certificate = model.certificate_
    lower, upper = certificate.eigenvalue_lower, certificate.eigenvalue_upper
    widest = None  # interval of an eigenvalue, over the first one
    if certificate.kind == "bound":
        widest = float((upper - lower).max() / upper[0]) if upper[0] > 0 else 0.0
    return {
        "method": method,
        "seconds": seconds,
        "peak_bytes": peak,
        "certificate": certificate.kind,
        "converged": certificate.converged,
        "error": widest,
        "captured_variance": certificate.captured_variance,
        "eigenvalues": model.eigenvalues_,
        "eigenvalue_lower": lower,
        "eigenvalue_upper": upper,
    }


def draw(found: list[dict], path: Path) -> None:
    """Spectra with certified intervals, and what each method cost."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 6), layout="constrained")
    parts = figure.subplot_mosaic([["spectrum", cost] for cost in ("time", "memory", "error")])
    draw_spectra(parts["spectrum"], found)
    draw_bars(parts["time"], found, "seconds", "time, s")
    draw_bars(parts["memory"], found, "peak_bytes", "memory of arrays, MB", 1e-6)
    draw_bars(parts["error"], found, "error", "certified error, share of the first eigenvalue")
    parts["error"].set_xscale("log")
    known = [one for one in found if one["difference"]]
    if known:
        names, values = [one["method"] for one in known], [one["difference"] for one in known]
        parts["error"].plot(values, names, "kx", label="measured against exact")
        parts["error"].legend(fontsize="small")
    figure.savefig(path, dpi=130)


def draw_spectra(ax, found) -> None:
    """Eigenvalues of all methods side by side, each with its interval."""
    from ..plot.axes import MARKERS

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
    told = "eigenvalue, with the interval that holds the exact one"
    ax.set(yscale="log", xlabel="component", ylabel=told)
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
