"""``mercer mds``: points whose distances are those given."""

from argparse import ArgumentParser, Namespace

from .options import add_budget, add_components, add_data, add_kept, add_output, table_path, whole
from .results import Result

SUMMARY = "Classical multidimensional scaling: find points with the distances given."
EXAMPLES = """\
  mercer mds demo-output/distances.csv --components 2
  mercer mds demo-output/digits.csv --drop digit --metric cosine -o cosine-map.csv
"""
METRICS = ("euclidean", "manhattan", "cosine", "chebyshev", "correlation")


def configure(parser: ArgumentParser) -> None:
    """Add the options."""
    add_data(parser, "DISTANCES", "square table of distances, with or without names of the points")
    add_kept(parser)
    add_components(parser, whole(1), 2, "dimensions")
    parser.add_argument(
        "--metric",
        choices=METRICS,
        metavar="NAME",
        help=f"the table holds rows and not distances: measure them by {', '.join(METRICS)}",
    )
    parser.add_argument(
        "--landmarks", type=whole(1), metavar="M", help="use the distances to M rows only"
    )
    parser.add_argument(
        "--correction",
        choices=("lingoes", "cailliez"),
        help="make the distances Euclidean by an additive constant",
    )
    add_budget(parser)
    add_output(parser, table_path, "coordinates: .npy, .csv or .parquet; stdout if not given")


def run(args: Namespace) -> Result:
    """Scale, and say how well the distances fit."""
    from .. import ClassicalMDS
    from .delivery import deliver, draft_of, matrix_columns
    from .methods import budget_of
    from .tables import named_points, read_rows

    with draft_of(args) as draft:
        table = read_rows(args)
        model = ClassicalMDS(
            args.components,
            dissimilarity=args.metric or "precomputed",
            landmarks=args.landmarks,
            correction=args.correction,
            **budget_of(args),
        ).fit(table.X)
        names = [f"x{i}" for i in range(1, model.embedding_.shape[1] + 1)]
        columns = named_points(args, table) | matrix_columns(model.embedding_, names)
        return deliver(args, draft, columns, facts_of(model), summary(model))


def facts_of(model) -> dict:
    """The fit for machines."""
    rows, components = model.embedding_.shape
    return {
        "rows": rows,
        "components": components,
        "eigenvalues": model.eigenvalues_,
        "stress": model.stress_,
        "strain": model.strain_,
        "goodness_of_fit": model.goodness_of_fit_,
        "least_eigenvalue": model.least_eigenvalue_,
        "negative_share": model.negative_share_,
        "correction_constant": model.correction_constant_,
    }


def summary(model) -> list[tuple[str, object]]:
    """The fit for people."""
    rows, components = model.embedding_.shape
    return [
        ("points", f"{rows:,} in {components} dimensions"),
        ("stress-1", f"{model.stress_:.3g} (0 is a perfect fit)"),
        ("goodness of fit", " / ".join(f"{share:.3f}" for share in model.goodness_of_fit_)),
        ("negative eigenvalues", f"{100 * model.negative_share_:.2g} % of the spectrum"),
    ]
