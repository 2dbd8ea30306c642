"""``mercer embed``: coordinates of every row from a graph of affinities."""

from argparse import ArgumentParser, Namespace

from .options import (
    add_affinity,
    add_budget,
    add_components,
    add_data,
    add_kept,
    add_output,
    add_scale,
    table_path,
    whole,
)
from .results import Result

SUMMARY = "Spectral embedding and diffusion maps: find coordinates that keep near rows together."
EXAMPLES = """\
  mercer embed demo-output/digits.csv --drop digit --components 2 -o embedding.csv
  mercer embed demo-output/digits.csv --drop digit --diffusion --alpha 1 --steps 2 --gamma median
"""


def configure(parser: ArgumentParser) -> None:
    """Add the options."""
    add_data(parser)
    add_kept(parser)
    add_components(parser, whole(1), 2, "coordinates")
    parser.add_argument(
        "--diffusion", action="store_true", help="diffusion map: distances of a random walk"
    )
    parser.add_argument(
        "--alpha",
        type=float,
        default=0.5,
        help="with --diffusion: how much of the density is taken out, 0 to 1 (default: 0.5)",
    )
    parser.add_argument(
        "--steps", type=float, default=1, help="with --diffusion: steps of the walk (default: 1)"
    )
    add_affinity(parser)
    add_scale(parser)
    add_budget(parser)
    add_output(parser, table_path, "coordinates: .npy, .csv or .parquet; stdout if not given")


def run(args: Namespace) -> Result:
    """Embed the rows."""
    from .. import DiffusionMap, SpectralEmbedding
    from .delivery import beside, deliver, draft_of, matrix_columns
    from .methods import affinity_of, budget_of
    from .tables import kept_of
    from .training import affinity_table

    with draft_of(args) as draft:
        table, X = affinity_table(args)
        make = DiffusionMap if args.diffusion else SpectralEmbedding
        walk = {"alpha": args.alpha, "t": args.steps} if args.diffusion else {}
        model = make(args.components, **affinity_of(args), **budget_of(args), **walk).fit(X)
        facts = {
            "rows": X.shape[0],
            "components": args.components,
            "eigenvalues": model.eigenvalues_,
        }
        names = [f"x{i}" for i in range(1, args.components + 1)]
        coordinates = matrix_columns(model.embedding_, names)
        columns = beside(kept_of(args, table), coordinates, X.shape[0])
        return deliver(args, draft, columns, facts, summary(model))


def summary(model) -> list[tuple[str, object]]:
    """The outcome for people."""
    values = " ".join(f"{value:.4f}" for value in model.eigenvalues_)
    rows, components = model.embedding_.shape
    return [
        ("rows", f"{rows:,} in {components} coordinates"),
        ("eigenvalues", f"{values} (1 is a piece apart)"),
    ]
