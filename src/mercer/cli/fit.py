"""``mercer fit``: kernel PCA of a table, saved as a model file."""

import warnings
from argparse import ArgumentParser, Namespace

from .failures import JobError
from .methods import add_method, make_model, settle_method
from .options import add_budget, add_data, add_kernel, add_output, add_scale, path_with, share
from .results import Result, lines

SUMMARY = "Fit kernel PCA to a table and save the model."
EXAMPLES = """\
  mercer fit demo-output/digits.csv --drop digit -o digits16.mercer
  mercer fit demo-output/digits.csv --drop digit --scale standard --components 0.8 -o wide.mercer
  mercer fit demo-output/digits.csv --drop digit --landmarks 300 --json -o small.mercer
  mercer fit demo-output/digits.csv --target digit -o towards.mercer
"""


def configure(parser: ArgumentParser) -> None:
    """Add the options."""
    add_data(parser)
    add_scale(parser)
    parser.add_argument(
        "--strict", action="store_true", help="fail where the method has not converged"
    )
    parser.add_argument(
        "--checkpoint",
        metavar="FOLDER",
        help="leave there what a long fit has found; the same command goes on after a crash",
    )
    add_method(parser)
    add_target(parser)
    add_kernel(parser)
    add_budget(parser, device=True)
    add_output(parser, path_with(".mercer"), "model file, which ends in .mercer", required=True)


def add_target(parser: ArgumentParser) -> None:
    """What components are to depend on."""
    group = parser.add_argument_group("supervised")
    group.add_argument(
        "--target",
        metavar="COLUMN",
        help="find the components that depend most on this column: labels, or numbers with a point",
    )
    group.add_argument(
        "--unsupervised",
        type=share,
        default=0.0,
        metavar="A",
        help="share of plain kernel PCA, 0 to 1, for more components than classes (default: 0)",
    )


def run(args: Namespace) -> Result:
    """Read, scale, fit, save."""
    from .outputs import whole_file
    from .prepared import PreparedModel
    from .training import training_rows

    method = settle_method(args)
    with whole_file(args.output, args.force) as draft:
        rows = training_rows(args, method)
        model = make_model(args, method)
        if args.checkpoint:
            model.set_params(checkpoint=args.checkpoint)
        with warnings.catch_warnings():
            # The default number of components is for all targets.
            warnings.filterwarnings("ignore", message=".*rank of the target kernel")
            model.fit(rows.X, rows.target)
        if args.strict and not model.certificate_.converged:
            raise JobError("Not converged, and --strict was given. Raise --passes or --tol.")
        parts = (rows.columns, rows.scaling, rows.image_shape, rows.fill)
        PreparedModel(model, *parts).save(draft)
    facts = facts_of(model, method, rows) | {"output": str(args.output)}
    return Result(facts, summary(facts, model))


def facts_of(model, method: str, rows) -> dict:
    """A fit for machines."""
    certificate = model.certificate_
    target = {} if rows.target is None else {"target_kernel": str(model.target_)}
    target |= {} if rows.target is None else {"hsic": model.hsic_}
    plan = vars(model).get("plan_")
    return {
        "rows": rows.count,
        "columns": int(model.n_features_in_),
        "components": int(model.eigenvalues_.shape[0]),
        "method": method if plan is None else plan.method,
        "kernel": " ".join(repr(model.kernel_).split()),
        "scale": rows.scaling.kind,
        "eigenvalues": model.eigenvalues_,
        "explained_variance_ratio": model.explained_variance_ratio_,
        "certificate": certificate.to_dict() | {"relative_residual": certificate.relative_residual},
        **target,
    }


def summary(facts: dict, model) -> str:
    """A fit for people."""
    size = "rows unknown" if facts["rows"] is None else f"{facts['rows']:,} rows"
    head = [
        ("table", f"{size}, {facts['columns']} columns, scaling: {facts['scale']}"),
        ("kernel", facts["kernel"]),
        ("method", facts["method"]),
    ]
    if "hsic" in facts:
        head.append(("target", f"{facts['target_kernel']} kernel, HSIC {facts['hsic']:.4g}"))
    return lines([*head, *model.certificate_.summary(), ("written", facts["output"])])
