"""``mercer explain``: which columns drive which component."""

from argparse import ArgumentParser, Namespace

from .options import add_data, add_output, table_path, whole
from .results import Result, lines

SUMMARY = "Say which columns drive which component of a model."
EXAMPLES = """\
  mercer explain demo-output/digits.mercer demo-output/digits.csv
  mercer explain demo-output/digits.mercer demo-output/digits.csv --top 3 --json
"""


def configure(parser: ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("model", metavar="MODEL", help="file of mercer fit")
    add_data(parser)
    parser.add_argument(
        "--top", type=whole(1), default=5, metavar="N", help="columns to name (default: 5)"
    )
    parser.add_argument(
        "--rows", type=whole(1), default=2000, metavar="N", help="rows drawn (default: 2000)"
    )
    add_output(parser, table_path, "all numbers: .npy, .csv or .parquet, a row for each column")


def run(args: Namespace) -> Result:
    """Read rows in blocks, and average the gradients of their scores."""
    from .._tables import text_table
    from .delivery import draft_of, write_columns
    from .prepared import PreparedModel
    from .tables import open_model_rows, say_missing

    with draft_of(args) as draft:
        model = PreparedModel.load(args.model)
        source = open_model_rows(args, model)
        found = model.explained(source, args.rows)
        say_missing(args, source)
        if draft is not None:
            write_columns(draft, as_columns(found))
    facts = found.as_dict() | {"top": [leaders(found, j, args.top) for j in components(found)]}
    text = text_table(*found.table(args.top))
    if args.output is not None:
        facts["output"] = str(args.output)
        text += "\n" + lines([("written", args.output)])
    return Result(facts, text)


def components(found) -> range:
    """Numbers of the components."""
    return range(len(found.components))


def leaders(found, component: int, count: int) -> dict:
    """The columns that drive a component most, by name."""
    return {"component": found.components[component], "columns": dict(found.top(component, count))}


def as_columns(found) -> dict:
    """A table: the name of each column, and how much it drives all components and each."""
    import numpy as np

    sizes = {name: found.size[:, j] for j, name in enumerate(found.components)}
    return {"column": np.array(found.columns, dtype=object), "all": found.overall} | sizes
