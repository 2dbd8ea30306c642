"""Commands that fit an estimator to a table or an image, and those that weigh methods for it."""

import re
import time
import tracemalloc
import warnings
from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from .. import estimators
from .. import plan as make_plan
from .._tables import text_table
from ..bases import BASES, Landmarks
from ..compute import format_bytes
from ..files import RowSource, read_image
from ..files.opening import existing
from ..selectors import SELECTORS
from ..solvers import SOLVERS
from . import outputs
from .models import TableModel
from .parser import OPTIONS, JobError, UsageError, did_you_mean, in_options, methods
from .tables import InputTable, Scaling, training_table

# Gray levels of an image file, the unit in which people speak of noise.
WHITE = 255
# Methods whose eigenvalues others can be compared with.
EXACT = {"auto", "exact", "dense", "krylov"}
# Rows of the first fit of every method, which is not measured.
WARM_ROWS = 200
# Options that are not the parameter of that name.
OTHERWISE = {"method", "scale", "target", "metric"}
# Options that belong to one method.
OWNERS = {"landmarks": "landmarks", "selector": "landmarks", "features": "features"}
# What target kernels compare.
TARGETS = {"delta": "labels", "linear": "numbers"}
# Outliers that are named.
SHOWN_ROWS = 10
# What the bars of a comparison show, its title and unit.
COSTS = (
    ("seconds", "time, s", 1.0),
    ("peak_bytes", "memory of arrays, MB", 1e-6),
    ("error", "certified error, share of the first eigenvalue", 1.0),
)
# From dark to light, and different in gray as well.
SHADES = ("0.0", "0.35", "0.55", "0.7", "0.2", "0.45", "0.6", "0.8")


def fit(args: Namespace) -> outputs.Result:
    """Read, scale, fit, save."""
    method = settle_method(args)
    args.keep = None if args.target is None else [args.target]
    table, X, scaling = training_table(args, in_blocks=True)
    in_blocks = isinstance(X, RowSource)
    if in_blocks and method == "hebbian":
        raise JobError(
            f"{X.name} is larger than the memory budget, and --method hebbian needs its rows in "
            "memory. Raise --memory, or use --method landmarks."
        )
    y = None if args.target is None else table.kept()[args.target]
    if y is not None and y.dtype.kind == "f" and bool(np.all(y == np.round(y))):
        y = y.astype(np.int64)  # whole numbers are labels
    model = make_model(args, method)
    with warnings.catch_warnings():
        # The default number of components is for all targets.
        warnings.filterwarnings("ignore", message=".*rank of the target kernel")
        model.fit(X, y)
    if args.strict and not model.certificate_.converged:
        raise JobError("Not converged, and --strict was given. Raise --passes or --tol.")
    TableModel.of(table, model, scaling).save(args.draft)
    rows = X.n_rows if in_blocks else X.shape[0]
    certificate, plan = model.certificate_, vars(model).get("plan_")
    facts = {
        "rows": rows,
        "columns": int(model.n_features_in_),
        "components": int(model.eigenvalues_.shape[0]),
        "method": method if plan is None else plan.method,
        "kernel": " ".join(repr(model.kernel_).split()),
        "scale": scaling.kind,
        "eigenvalues": model.eigenvalues_,
        "explained_variance_ratio": model.explained_variance_ratio_,
        "certificate": certificate.to_dict() | {"relative_residual": certificate.relative_residual},
    }
    size = "rows unknown" if rows is None else f"{rows:,} rows"
    shape = f"{size}, {facts['columns']} columns, scaling: {scaling.kind}"
    summary = [("table", shape), ("kernel", model.kernel_)]
    if plan is not None or method != "auto":
        summary.append(("method", in_options(facts["method"])))
    if args.target is not None:
        facts |= {"target_kernel": str(model.target_), "hsic": model.hsic_}
        kind = TARGETS.get(str(model.target_), f"{model.target_} kernel")
        text = f"{args.target} ({kind}), dependence (HSIC) {model.hsic_:.4g}"
        summary.append(("target", text))
    return outputs.Result(facts, [*summary, *outputs.statements(certificate.summary())])


def settle_method(args: Namespace) -> str:
    """The method to use; options that belong to one method choose it, and refuse others."""
    method = args.method
    for option, owner in OWNERS.items():
        if vars(args)[option]:
            method = owner if method == "auto" else method
            if method != owner:
                raise UsageError(f"--{option} is not for --method {method}.")
    if args.passes and not iterates(method):
        able = ", ".join(filter(iterates, methods()))
        raise UsageError(f"--passes is for --method {able}, and not for {method}.")
    if method in ("hebbian", "fourier") and args.target is not None:
        raise UsageError(f"--target is not for --method {method}.")
    if args.checkpoint and args.target is not None:
        raise UsageError("--checkpoint is not for --target.")
    if method == "hebbian" and not isinstance(args.components, int):
        raise UsageError("--method hebbian needs a number of components, not a share.")
    return method


def iterates(method: str) -> bool:
    """Whether the number of passes of a method can be limited."""
    solver = SOLVERS.get(method)
    return method == "hebbian" if solver is None else solver().cap(1).most_passes is not None


def make_model(args: Namespace, method: str) -> Any:
    """The estimator of a method, not fitted."""
    if method == "hebbian":
        return make(estimators.HebbianKernelPCA, args, copy_X=False)
    if method == "landmarks":
        basis: Any = Landmarks(args.landmarks, make_selector(args.selector))
    elif method in BASES:
        size = {"size": args.features} if method == "features" and args.features else {}
        basis = BASES[method](**size)
    else:
        basis = "auto" if method == "auto" else "points"
    supervised = vars(args).get("target") is not None
    kind = estimators.SupervisedKernelPCA if supervised else estimators.KernelPCA
    solver = method if method in SOLVERS else "auto"
    return make(kind, args, basis=basis, eigen_solver=solver, copy_X=False)


def make(kind: Callable, args: Namespace, **settings: Any) -> Any:
    """An estimator whose parameters are these settings, and the options of the same meaning.

    An option that was not given leaves the default.
    """
    options = {name: value for name, value in vars(args).items() if name not in OTHERWISE}
    options["verbose"] = outputs.verbosity(args)
    for name in signature(kind).parameters:
        value = options.get(OPTIONS.get(name, name).removeprefix("--").replace("-", "_"))
        if value is not None:
            settings.setdefault(name, value)
    if settings.get("gamma") == "columns":
        settings["gamma"] = None
    return kind(**settings)


def make_selector(name: str | None):
    """A selector with its defaults, by the name of its class in any case."""
    if name is None:
        return None
    by_name = {kind.lower(): selector for kind, selector in SELECTORS.items()}
    if name.lower() not in by_name:
        raise UsageError(
            f"--selector {name} is unknown.{did_you_mean(name, SELECTORS)} Choose one of "
            f"{', '.join(SELECTORS)}."
        )
    return by_name[name.lower()]()


def cluster(args: Namespace) -> outputs.Result:
    """The cluster of every row."""
    table, X, scaling, settings = affinity(args)
    model = make(estimators.SpectralClustering, args, **settings).fit(X)
    count, gaps = model.n_clusters_, model.eigengaps_
    sizes = np.bincount(model.labels_, minlength=count)
    summary = [
        ("rows", f"{X.shape[0]:,}"),
        ("cluster sizes", " ".join(str(size) for size in sizes)),
        ("eigenvalues", f"{rounded(model)} (1 means a fully separate cluster)"),
    ]
    if args.clusters == "auto":
        best = 2 + np.argsort(-gaps[1:], kind="stable")[:3]
        evidence = ", ".join(f"{gaps[k - 1]:.3f} for {k}" for k in best)
        summary.insert(1, ("clusters", f"{count}, by the largest scaled eigengap ({evidence})"))
    if args.gaps is not None:
        from ..plot import eigengaps

        figure: Any = eigengaps(model).figure
        figure.savefig(args.drafts["gaps"], dpi=130)
    TableModel.of(table, model, scaling).save(args.drafts["save"])
    facts = {"rows": X.shape[0], "clusters": count, "sizes": sizes, "eigengaps": gaps}
    columns = outputs.beside(table.kept(), {"cluster": model.labels_})
    return delivered(args, model, columns, facts, summary)


def embed(args: Namespace) -> outputs.Result:
    """Coordinates of every row from a graph of affinities."""
    table, X, scaling, settings = affinity(args)
    kind: Any = estimators.SpectralEmbedding
    if args.diffusion:
        kind, settings = estimators.DiffusionMap, settings | {"t": args.steps}
    model = make(kind, args, **settings).fit(X)
    summary = [
        ("rows", f"{X.shape[0]:,} in {model.embedding_.shape[1]} coordinates"),
        ("eigenvalues", f"{rounded(model)} (1 means a separate piece)"),
    ]
    TableModel.of(table, model, scaling).save(args.drafts["save"])
    facts = {"rows": X.shape[0], "components": args.components}
    columns = outputs.beside(table.kept(), coordinates(model))
    return delivered(args, model, columns, facts, summary)


def mds(args: Namespace) -> outputs.Result:
    """Points that have the distances of the table."""
    table = InputTable(args)
    of = args.metric or "precomputed"
    model = make(estimators.ClassicalMDS, args, dissimilarity=of).fit(table.read())
    rows, components = model.embedding_.shape
    names = "stress strain goodness_of_fit least_eigenvalue negative_share correction_constant"
    facts = {"rows": rows, "components": components}
    facts |= {name: vars(model)[f"{name}_"] for name in names.split()}
    summary = [
        ("points", f"{rows:,} in {components} dimensions"),
        ("stress-1", f"{model.stress_:.3g} (0 is a perfect fit)"),
        ("goodness of fit", " / ".join(f"{share:.3f}" for share in model.goodness_of_fit_)),
        ("negative eigenvalues", f"{100 * model.negative_share_:.2g} % of the spectrum"),
    ]
    named = table.kept()
    if not named:  # columns of text are names of points among distances
        named = {name: text for name, text in table.others().items() if text.dtype.kind in "UO"}
        table.left_out |= dict.fromkeys(named, "kept")
    return delivered(args, model, named | coordinates(model), facts, summary)


def outliers(args: Namespace) -> outputs.Result:
    """Which rows are unlike the others, or unlike those of another table."""

    def fitted() -> tuple[TableModel, InputTable, Any]:
        table, X, scaling = training_table(args)
        settings = {"gamma": "median"} if args.gamma == "auto" else {}
        model = make(estimators.NoveltyDetector, args, **settings).fit(X)
        return TableModel.of(table, model, scaling), table, X

    prepared, table, X = learned_and_judged(args, fitted)
    errors = -np.asarray(prepared.model.score_samples(X), dtype=float)
    over = errors / -prepared.model.offset_
    count = int(np.sum(over > 1))
    worst = np.argsort(-over, kind="stable")[: min(count, SHOWN_ROWS)]
    kept = table.kept()
    what = args.id if args.id in kept else "row"
    names = kept.get(args.id, np.arange(len(over)))
    shown = ", ".join(f"{names[row]} ({over[row]:.3g})" for row in worst)
    summary = [("outliers", f"{count:,} of {len(over):,} rows")]
    if count:
        summary.append((f"farthest by {what} (error / limit)", shown))
    columns = {"outlier": over > 1, "over_limit": over}
    facts = {"rows": len(over), "outliers": count, "limit": -prepared.model.offset_}
    return outputs.deliver(args, outputs.beside(kept, columns), facts, summary)


def monitor(args: Namespace) -> outputs.Result:
    """The control chart of rows in the order of time, and the sensors behind its alarms."""

    def fitted() -> tuple[TableModel, InputTable, Any]:
        table = InputTable(args)
        rows = table.read()
        model = make(estimators.ProcessMonitor, args).fit(rows)
        return TableModel.of(table, model, Scaling()), table, rows

    prepared, table, X = learned_and_judged(args, fitted)
    chart = prepared.model.chart(X)
    kept = table.kept()
    rows = kept.get(args.id, chart.rows) if args.id else chart.rows
    chart = replace(chart, rows=rows, sensors=tuple(prepared.columns or chart.sensors))
    if args.chart is not None:
        from matplotlib.figure import Figure

        from ..plot import control_chart

        figure = Figure(figsize=(10, 5), layout="constrained")
        control_chart(chart, ax=figure.subplots(2, 1, sharex=True))
        figure.savefig(args.drafts["chart"], dpi=130)
    heads, episodes = chart.table()
    told = chart.sentence() + (f"\n{text_table(heads, episodes)}" if episodes else "")
    columns = outputs.beside(kept, chart.as_columns())
    return outputs.deliver(args, columns, chart.as_dict(), told)


def learned_and_judged(args: Namespace, fitted: Callable) -> tuple[TableModel, InputTable, Any]:
    """A model of DATA, which may be its file, and the rows to judge: those of NEW, else of DATA."""
    if Path(args.data).suffix.lower() != ".mercer":
        prepared, table, X = fitted()
    elif args.new is None:
        raise UsageError(f"{args.data} is a model: name a table of new rows after it.")
    else:
        for name in ("components", "false_alarms", "share", "lags", "smoothing"):
            if vars(args).get(name):
                option = f"--{name.replace('_', '-')}"
                raise UsageError(f"{option} is for a fit, and {args.data} is a fitted model.")
        prepared = TableModel.load(args.data, "score_samples", mixed=True)
    prepared.save(args.drafts["save"])
    if args.new is not None:
        args.data = args.new
        table, X, _ = prepared.whole_table(args)
        X = prepared.scaling.apply(X)
    return prepared, table, X


def delivered(args: Namespace, model, columns, facts: dict, summary: list) -> outputs.Result:
    """The columns, the summary and what the certificate of the model says."""
    certificate = model.certificate_
    facts |= {"eigenvalues": model.eigenvalues_, "certificate": certificate.to_dict()}
    certified = outputs.statements(certificate.summary())
    return outputs.deliver(args, columns, facts, summary + certified)


def affinity(args: Namespace) -> tuple[InputTable, Any, Scaling, dict[str, Any]]:
    """`training_table`, and parameters of the spectral estimators beside those of `make`."""
    graph = args.kernel is None and not vars(args).get("diffusion")
    kind, args.kernel = "auto" if graph else args.kernel or "rbf", args.kernel or "rbf"
    settings = {"affinity": kind if args.neighbors is None else "nearest_neighbors"}
    settings["basis"] = "auto" if args.landmarks is None else Landmarks(args.landmarks)
    return *training_table(args, mixed=args.neighbors is None), settings


def coordinates(model) -> dict[str, np.ndarray]:
    """The columns of an embedding by name."""
    count = model.embedding_.shape[1]
    return outputs.as_columns(model.embedding_, [f"x{i}" for i in range(1, count + 1)])


def rounded(model) -> str:
    return " ".join(f"{value:.4f}" for value in model.eigenvalues_)


def denoise(args: Namespace) -> outputs.Result:
    """Learn the patches of the image, and project them."""
    image = read_image(existing(args.image))
    noise = None if args.noise is None else args.noise / WHITE
    model = make(estimators.PatchDenoiser, args, noise=noise).fit(image)
    clean = model.denoise(image)
    pixels = np.rint(WHITE * np.clip(clean, 0, 1)).astype(np.uint8)
    Image.fromarray(pixels).save(args.draft)
    height, width = image.shape[:2]
    facts = {
        "width": width,
        "height": height,
        "channels": 1 if image.ndim == 2 else image.shape[2],
        "noise": WHITE * model.noise_,
        "noise_given": args.noise is not None,
        "change": WHITE * float(((image - clean) ** 2).mean() ** 0.5),
    }
    summary = [
        ("image", f"{width} x {height}, {'gray' if image.ndim == 2 else 'color'}"),
        ("noise", f"{facts['noise']:.1f} of 255, {'given' if args.noise else 'estimated'}"),
        ("change", f"{facts['change']:.1f} of 255, root mean square"),
    ]
    return outputs.Result(facts, summary)


def plan(args: Namespace) -> outputs.Result:
    """What each method would cost on this machine."""
    if (args.data is None) == (args.shape is None):
        raise UsageError("Give either a table or --shape, such as --shape 100000x54.")
    if args.shape is None:
        table = InputTable(args)
        n, d = table.source.n_rows, table.source.n_columns
        # Scans the table if the number of rows is unknown.
        args.shape = (sum(len(block) for block in table.blocks()) if n is None else n), d
    settings = {"kernel": args.kernel, "memory": args.memory, "device": args.device}
    chosen = make_plan(args.shape, args.components, tol=args.tol, n_jobs=args.threads, **settings)
    option, work = option_of(chosen.method), chosen.workload
    methods = [
        {"method": e.method, "option": option_of(e.method), "kernel_evaluations": e.evaluations}
        | {name: vars(e)[name] for name in ("bytes", "seconds", "fits", "note")}
        for e in chosen.estimates
    ]
    facts: dict[str, Any] = {"rows": work.n, "columns": work.d, "components": work.r}
    facts |= {"memory": work.memory, "threads": work.threads, "method": chosen.method}
    facts |= {"option": option, "reason": chosen.reason, "methods": methods}
    return outputs.Result(
        facts,
        f"{in_options(str(chosen))}\nto run it: mercer fit {args.data or 'DATA'} --method {option} "
        "-o model.mercer",
    )


def option_of(method: str) -> str:
    """The --method of mercer fit that asks for a method of a plan."""
    if method == "HebbianKernelPCA":
        return "hebbian"
    basis = re.fullmatch(r'basis="(.+)"', method)
    return basis[1] if basis else method.split(",")[0]


def compare(args: Namespace) -> outputs.Result:
    """Fit every method in turn, and measure."""
    _, X, _ = training_table(args, mixed=False)
    args.passes = None  # as many as each method takes by itself
    measured = [measure(args, method, X) for method in args.methods]
    exact = next((one for one in measured if one["method"] in EXACT and one["converged"]), None)
    for one in measured:
        one["difference"] = None
        if exact is not None and one is not exact:
            pairs = zip(one["eigenvalues"], exact["eigenvalues"], strict=False)
            largest = max(abs(float(a - b)) for a, b in pairs)
            one["difference"] = largest / float(exact["eigenvalues"][0])
    if args.draft is not None:
        draw(measured, args.draft)
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
        for one in measured
    ]
    facts = {"rows": X.shape[0], "columns": X.shape[1], "methods": measured}
    units = "Errors, and differences from exact, are shares of the first eigenvalue."
    return outputs.Result(facts, f"{text_table(heads, rows)}\n{units}")


def measure(args: Namespace, method: str, X) -> dict:
    """Fit one method: seconds, peak memory of arrays, and what its certificate says."""
    outputs.say(args, f"{method} ...")
    few = X[:WARM_ROWS, :WARM_ROWS] if args.kernel == "precomputed" else X[:WARM_ROWS]
    with warnings.catch_warnings():
        # A fit of a few rows first, so that imports and compilation are in no method's time.
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
    facts = {"method": method, "seconds": seconds, "peak_bytes": peak}
    facts |= {"certificate": certificate.kind, "converged": certificate.converged}
    # The widest interval of an eigenvalue, over the first one.
    facts["error"] = certificate.widest if certificate.kind == "bound" else None
    facts |= {"captured_variance": certificate.captured_variance, "eigenvalues": model.eigenvalues_}
    ends = ("eigenvalue_lower", "eigenvalue_upper")
    return facts | {name: vars(certificate)[name] for name in ends}


def draw(measured: list[dict], path: Path) -> None:
    """Spectra with certified intervals, and what each method cost."""
    from matplotlib.figure import Figure

    from ..plot.axes import MARKERS

    figure = Figure(figsize=(11, 6), layout="constrained")
    axes = figure.subplot_mosaic([["spectrum", cost] for cost, _, _ in COSTS])
    ax, offsets = axes["spectrum"], np.linspace(-0.4, 0.4, len(measured) + 2)[1:-1]
    for k, (one, offset) in enumerate(zip(measured, offsets, strict=True)):
        values, certified = np.asarray(one["eigenvalues"]), one["certificate"] == "bound"
        look: dict[str, Any] = {"fmt": MARKERS[k % len(MARKERS)], "color": SHADES[k % len(SHADES)]}
        look["label"] = one["method"] if certified else f"{one['method']}, not certified"
        ends = [values - one["eigenvalue_lower"], one["eigenvalue_upper"] - values]
        bars = np.maximum(ends, 0) if certified else None
        places = np.arange(1, values.size + 1) + offset
        ax.errorbar(places, values, yerr=bars, ms=4, capsize=2, lw=1, **look)
    ax.set(yscale="log", xlabel="component")
    ax.set_ylabel("eigenvalue, with the interval that holds the exact one")
    ax.legend(fontsize="small")
    names = [one["method"] for one in measured]
    for fact, title, unit in COSTS:
        ax, costs = axes[fact], [one[fact] for one in measured]
        shown = ax.barh(names, [unit * (cost or 0) for cost in costs], color="0.75")
        texts = ["none" if cost is None else f"{unit * cost:.2g}" for cost in costs]
        ax.bar_label(shown, texts, padding=3, fontsize="small")
        ax.set_title(title, fontsize="medium")
        ax.margins(x=0.2)
        ax.invert_yaxis()
    ax.set_xscale("log")
    differences = {one["method"]: one["difference"] for one in measured if one["difference"]}
    if differences:
        ax.plot(list(differences.values()), list(differences), "kx", label="measured against exact")
        ax.legend(fontsize="small")
    figure.savefig(path, dpi=130)
