"""``mercer transform``: the scores of new rows."""

from argparse import ArgumentParser, Namespace

from .messages import watched
from .options import add_data, add_kept, add_output, table_path
from .results import Result

SUMMARY = "Compute the scores of rows along the components of a model."
EXAMPLES = """\
  mercer transform demo-output/digits.mercer demo-output/digits.csv -o digit-scores.csv
"""


def configure(parser: ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("model", metavar="MODEL", help="file of mercer fit")
    add_data(parser)
    add_kept(parser)
    add_output(parser, table_path, "scores: .npy, .csv or .parquet; stdout if not given")


def run(args: Namespace) -> Result:
    """Read rows in blocks, and write their scores as they come."""
    from .delivery import deliver_blocks, draft_of
    from .prepared import PreparedModel
    from .tables import kept_beside, open_model_rows, say_missing, scanned

    with draft_of(args) as draft:
        model = PreparedModel.load(args.model, mixed=True)
        names = list(model.get_feature_names_out())
        source = open_model_rows(args, model)
        rows = watched(args, scanned(source), "scores", source.n_rows)
        blocks = (model.transform(block) for block in rows)
        result = deliver_blocks(args, draft, blocks, names, kept_beside(args, source))
        say_missing(args, source)
        return result
