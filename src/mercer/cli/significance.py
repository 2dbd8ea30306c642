"""``mercer significance``: how many components stand above noise."""

from argparse import ArgumentParser, Namespace

from .options import add_data, level, whole
from .results import Result

SUMMARY = "Say how many components of a model stand above noise, and how stable they are."
EXAMPLES = """\
  mercer significance demo-output/digits.mercer demo-output/digits.csv --rows 400
"""


def configure(parser: ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("model", metavar="MODEL", help="file of mercer fit")
    add_data(parser)
    parser.add_argument(
        "--alpha", type=level, default=0.05, metavar="P", help="level (default: 0.05)"
    )
    parser.add_argument(
        "--shuffles", type=whole(1), default=39, metavar="N", help="of columns (default: 39)"
    )
    parser.add_argument(
        "--draws", type=whole(0), default=50, metavar="N", help="of rows (default: 50)"
    )
    parser.add_argument(
        "--rows", type=whole(2), default=1000, metavar="N", help="looked at (default: 1000)"
    )
    parser.add_argument("--seed", type=whole(0), default=0, metavar="N", help="default: 0")


def run(args: Namespace) -> Result:
    """Shuffle columns and draw rows of a sample."""
    from .._tables import text_table
    from .prepared import PreparedModel, ScaledRows
    from .tables import open_model_rows, say_missing

    model = PreparedModel.load(args.model)
    source = open_model_rows(args, model)
    found = model.significance(
        ScaledRows(source, model.scaling),
        alpha=args.alpha,
        n_permutations=args.shuffles,
        n_bootstrap=args.draws,
        max_rows=args.rows,
        random_state=args.seed,
    )
    say_missing(args, source)
    return Result(found.as_dict(), f"{found.sentence()}\n{text_table(*found.table())}")
