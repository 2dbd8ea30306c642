"""``mercer inverse``: rows that have given scores."""

from argparse import ArgumentParser, Namespace

from .failures import JobError
from .messages import watched
from .options import add_data, add_kept, add_output, table_path
from .results import Result

SUMMARY = "Find rows with given scores: the way back from mercer transform."
EXAMPLES = """\
  mercer inverse demo-output/digits.mercer demo-output/scores.csv -o digit-rows.csv
"""


def configure(parser: ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("model", metavar="MODEL", help="file of mercer fit")
    add_data(parser, "SCORES", "table of mercer transform, a column a component")
    add_kept(parser)
    add_output(parser, table_path, "rows: .npy, .csv or .parquet; stdout if not given")


def run(args: Namespace) -> Result:
    """Read scores in blocks, and write rows as they come."""
    from .delivery import deliver_blocks, draft_of
    from .prepared import PreparedModel
    from .tables import kept_beside, open_rows, scanned

    with draft_of(args) as draft:
        model = PreparedModel.load(args.model)
        scores = open_rows(args, named_scores(args, model))
        check_scores(args.data, scores.n_columns, model)
        names = model.columns or [f"x{i}" for i in range(1, model.n_features_in_ + 1)]
        rows = watched(args, scanned(scores), "pre-images", scores.n_rows)
        blocks = (model.inverse_transform(block) for block in rows)
        return deliver_blocks(args, draft, blocks, names, kept_beside(args, scores))


def named_scores(args: Namespace, model) -> list[str] | None:
    """The columns of scores by name, where the table has them beside what was kept."""
    from ..files import open_source

    columns = open_source(args.data, name=args.array).columns
    wanted = [str(name) for name in model.get_feature_names_out()]
    return wanted if columns is not None and set(wanted) <= set(columns) else None


def check_scores(name: str, width: int, model) -> None:
    """Raise JobError unless there is a column a component."""
    wanted = len(model.get_feature_names_out())
    if width != wanted:
        raise JobError(
            f"{name} has {width} columns of numbers, and the model has {wanted} components. Give a "
            "table of mercer transform, or choose its columns with --columns."
        )
