"""``mercer plan``: what each method would cost, before anything is run."""

import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from math import isfinite

from .failures import UsageError
from .options import add_budget, add_components, add_data, positive, whole
from .registries import KERNEL_NAMES
from .results import Result

SUMMARY = "Say what each method would cost for a table, or for one of a given shape."
EXAMPLES = """\
  mercer plan demo-output/digits.csv --components 16
  mercer plan --shape 100000x54 --memory 2GB
"""
# How a plan calls a method that is a basis, and one that is an estimator.
BASIS, ESTIMATOR = re.compile(r'basis="(.+)"'), {"HebbianKernelPCA": "hebbian"}


def configure(parser: ArgumentParser) -> None:
    """Add the options."""
    add_data(parser, nargs="?")
    parser.add_argument(
        "--shape", type=shape, metavar="NxD", help="rows x columns, instead of a table"
    )
    add_components(parser, whole(1), 16, "components")
    parser.add_argument(
        "--kernel",
        choices=KERNEL_NAMES,
        default="rbf",
        metavar="NAME",
        help="%(choices)s (default: rbf)",
    )
    parser.add_argument("--tol", type=positive, default=0.0, metavar="T", help="as of mercer fit")
    add_budget(parser, device=True)


def run(args: Namespace) -> Result:
    """Measure this machine for a moment, and count."""
    if (args.data is None) == (args.shape is None):
        raise UsageError("Give either a table or --shape, such as --shape 100000x54.")
    from .. import plan

    found = plan(
        args.shape or size_of(args),
        args.components,
        kernel=args.kernel,
        memory=args.memory,
        device=args.device,
        tol=args.tol,
        n_jobs=args.threads,
    )
    facts = facts_of(found)
    advice = f"to run it: mercer fit DATA --method {facts['option']} -o model.mercer"
    return Result(facts, f"{found}\n{advice}")


def size_of(args: Namespace) -> tuple[int, int]:
    """Rows and columns of the table."""
    from .tables import shape_of

    return shape_of(args)


def facts_of(plan) -> dict:
    """A plan for machines."""
    work = plan.workload
    methods = [
        {
            "method": e.method,
            "option": option_of(e.method),
            "kernel_evaluations": e.evaluations,
            "bytes": e.bytes,
            "seconds": e.seconds if isfinite(e.seconds) else None,
            "fits": e.fits,
            "note": e.note,
        }
        for e in plan.estimates
    ]
    return {
        "rows": work.n,
        "columns": work.d,
        "components": work.r,
        "memory": work.memory,
        "threads": work.threads,
        "method": plan.method,
        "option": option_of(plan.method),
        "reason": plan.reason,
        "methods": methods,
    }


def option_of(method: str) -> str:
    """The --method of mercer fit that asks for a method of a plan."""
    found = BASIS.fullmatch(method)
    return found[1] if found else ESTIMATOR.get(method, method.split(",")[0])


def shape(text: str) -> tuple[int, int]:
    """Rows and columns, as in 100000x54."""
    rows, _, columns = text.partition("x")
    try:
        return whole(2)(rows), whole(1)(columns)
    except ArgumentTypeError:
        raise ArgumentTypeError(f"{text!r} is not ROWSxCOLUMNS, such as 100000x54") from None
