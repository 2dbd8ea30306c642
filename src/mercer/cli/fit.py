"""``mercer fit``: kernel PCA of a table, saved as a model file; estimators by their options."""

import warnings
from argparse import Namespace
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from .. import HebbianKernelPCA, KernelPCA, SupervisedKernelPCA
from ..compute import parse_bytes
from ..files import RowSource
from ..files.layout import COMPRESSED
from ..rows.blocks import WHOLE_SHARE
from ..selectors import SELECTORS
from .failures import JobError, UsageError
from .models import TableModel
from .outputs import Result, verbosity
from .parser import BASES, KERNELS, SOLVERS, did_you_mean, methods
from .tables import InputTable, Scaling, mixed_table, warn_of_scales

# Bytes of text in a byte of a compressed table, more than numbers have.
UNPACKED = 8


def fit(args: Namespace) -> Result:
    """Read, scale, fit, save."""
    method = settle_method(args)
    args.keep = None if args.target is None else [args.target]
    mixed = mixed_table(args)
    if mixed is not None:
        (table, X), scaling = mixed, Scaling()
    else:
        table = InputTable(args)
        X, scaling = training_rows(table, method)
    y = None if args.target is None else table.kept()[args.target]
    if y is not None and y.dtype.kind == "f" and bool(np.all(y == np.round(y))):
        y = y.astype(np.int64)  # whole numbers are labels
    model = make_model(args, method)
    if args.checkpoint:
        model.set_params(checkpoint=args.checkpoint)
    with warnings.catch_warnings():
        # The default number of components is for all targets.
        warnings.filterwarnings("ignore", message=".*rank of the target kernel")
        model.fit(X, y)
    if args.strict and not model.certificate_.converged:
        raise JobError("Not converged, and --strict was given. Raise --passes or --tol.")
    TableModel.of(table, model, scaling).save(args.draft)
    rows = X.n_rows if isinstance(X, RowSource) else X.shape[0]
    return fit_result(args, model, method, rows, scaling)


def fit_result(args: Namespace, model, method: str, rows: int | None, scaling: Scaling) -> Result:
    """A fit for programs and for people."""
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
    said = [
        ("table", f"{size}, {facts['columns']} columns, scaling: {scaling.kind}"),
        ("kernel", model.kernel_),
        ("method", facts["method"]),
    ]
    if args.target is not None:
        facts |= {"target_kernel": str(model.target_), "hsic": model.hsic_}
        said.append(("target", f"{model.target_} kernel, HSIC {model.hsic_:.4g}"))
    return Result(facts, [*said, *certificate.summary()])


def training_rows(table: InputTable, method: str) -> tuple[Any, Scaling]:
    """The rows as the estimator takes them, in memory or read in blocks, and their scaling."""
    args, rows, path = table.args, table.source, Path(table.args.data)
    # Text takes about as much as its numbers, and what is compressed several times less.
    size = path.stat().st_size * (UNPACKED if path.suffix.lower() in COMPRESSED else 1)
    if rows.n_rows is not None:
        size = rows.n_rows * rows.n_columns * rows.dtype.itemsize
    if table.image_shape is not None or size <= parse_bytes(args.memory) // WHOLE_SHARE:
        rows = first = table.source.read()
        if len(rows) < 2:
            count = "one row" if len(rows) else "no rows"
            raise JobError(f"{args.data} has {count}, and kernel PCA needs two at least.")
    elif method == "hebbian":
        raise JobError(
            f"{rows.name} is larger than the memory budget, and --method hebbian needs its rows in "
            "memory. Raise --memory, or take --method landmarks."
        )
    else:
        with closing(table.blocks()) as blocks:
            first = next(blocks)
    if table.image_shape is None:
        warn_of_scales(args, first, table.columns)
    scaling = Scaling.fitted(table.blocks() if rows is table.source else [rows], args.scale)
    return scaling.apply(rows), scaling


def settle_method(args: Namespace) -> str:
    """The method asked for; a number of landmarks or features asks for that one."""
    method = args.method
    if method == "auto" and (args.landmarks or args.selector):
        method = "landmarks"
    elif method == "auto" and args.features:
        method = "features"
    if (args.landmarks or args.selector) and method != "landmarks":
        raise UsageError(f"--landmarks and --selector are not for --method {method}.")
    if args.features and method != "features":
        raise UsageError(f"--features is not for --method {method}.")
    if args.passes and not iterates(method):
        able = ", ".join(filter(iterates, methods()))
        raise UsageError(f"--passes is for --method {able}, and not for {method}.")
    if method in ("hebbian", "fourier") and args.target is not None:
        raise UsageError(f"--target is not for --method {method}.")
    if method == "hebbian" and not isinstance(args.components, int):
        raise UsageError("--method hebbian needs a number of components, not a share.")
    return method


def iterates(method: str) -> bool:
    """Whether the passes of a method can be limited."""
    solver = SOLVERS.load().get(method)
    return method == "hebbian" if solver is None else solver().cap(1).most_passes is not None


def make_model(args: Namespace, method: str):
    """The estimator of a method, not fitted."""
    settings = {
        "kernel": args.kernel,
        "gamma": width(args),
        "degree": args.degree,
        "coef0": args.coef0,
        "tol": args.tol,
        "copy_X": False,
        "device": args.device,
        **budget(args),
    }
    if method == "hebbian":
        passes = {} if args.passes is None else {"n_passes": args.passes}
        return HebbianKernelPCA(args.components, **passes, **settings)
    settings["max_iter"] = args.passes
    if method in BASES:
        size = {"size": args.features} if method == "features" and args.features else {}
        if method == "landmarks":
            size = {"size": args.landmarks, "selector": make_selector(args.selector)}
        settings["basis"] = BASES.load()[method](**size)
    else:
        settings["basis"] = "auto" if method == "auto" else "points"
        settings["eigen_solver"] = method if method in SOLVERS else "auto"
    if vars(args).get("target") is not None:
        return SupervisedKernelPCA(args.components, unsupervised=args.unsupervised, **settings)
    return KernelPCA(args.components, **settings)


def make_selector(name: str | None):
    """A selector with its defaults, by the name of its class in any case."""
    if name is None:
        return None
    known = {kind.lower(): selector for kind, selector in SELECTORS.items()}
    if name.lower() not in known:
        raise UsageError(
            f"--selector {name} is unknown.{did_you_mean(name, SELECTORS)} Choose one of "
            f"{', '.join(SELECTORS)}."
        )
    return known[name.lower()]()


def width(args: Namespace) -> float | str | None:
    """Gamma as the estimators take it."""
    if args.gamma == "auto":
        return "median" if KERNELS.load()[args.kernel].metric else None
    return None if args.gamma == "columns" else args.gamma


def budget(args: Namespace) -> dict[str, Any]:
    """The parameters of every estimator that the options of resources stand for."""
    return {
        "random_state": args.seed,
        "memory": args.memory,
        "n_jobs": args.threads,
        "verbose": verbosity(args),
    }
