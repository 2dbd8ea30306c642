"""``mercer report``: a model and rows as one interactive page."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path

from .options import add_data, add_output, path_with, whole
from .results import Result, lines

SUMMARY = "Show a model and the rows of a table as one interactive HTML file."
EXAMPLES = """\
  mercer report demo-output/digits.mercer demo-output/digits.csv --color digit -o digits-report.html
"""


def configure(parser: ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("model", metavar="MODEL", help="file of mercer fit")
    add_data(parser)
    parser.add_argument(
        "--color",
        metavar="NAME",
        help="column to color rows by, or a .csv or .parquet file with one, such as labels",
    )
    parser.add_argument("--title", metavar="TEXT", help="heading of the page")
    parser.add_argument(
        "--image",
        type=image_shape,
        metavar="HxW",
        help="rows are images of this size (of a folder of images it is known)",
    )
    parser.add_argument(
        "--points", type=whole(1), default=20_000, metavar="N", help="at most (default: 20000)"
    )
    add_output(parser, path_with(".html"), "page, which ends in .html", required=True)


def run(args: Namespace) -> Result:
    """Read the rows and write the page."""
    from ..report import write_report
    from .outputs import whole_file
    from .prepared import PreparedModel
    from .tables import check_width, read_rows

    with whole_file(args.output, args.force) as draft:
        model = PreparedModel.load(args.model, mixed=True)
        if model._encoding is None:
            table = read_rows(args, model.columns, model.fill)
            check_width(args.data, table.X.shape[1], model)
            rows, columns = table.X, table.names
        else:
            rows, table = mixed_report(args, model._encoding)
            columns = rows.columns
        write_report(
            model.model,
            rows,
            draft,
            scaling=model.scaling,
            columns=columns,
            colors=color_of(args, table),
            color_name=args.color,
            images=args.image or table.image_shape or model.image_shape,
            title=args.title,
            max_points=args.points,
            row_names=row_names(args, table),
        )
    facts = {"rows": rows.shape[0], "output": str(args.output)}
    return Result(facts, lines([("rows", f"{facts['rows']:,}"), ("written", args.output)]))


def mixed_report(args: Namespace, encoding):
    """A table with texts, and all of its columns to color and name rows by."""
    import numpy as np

    from ..files import Table
    from .mixed import EncodedTable

    source = EncodedTable(args, encoding)
    found = {name: source.table[name] for name in source.table.columns} | source.others()
    return source.table, Table(np.zeros((len(source.table), 0)), [], found)


def row_names(args: Namespace, table):
    """What rows are called: the column of --id, or the names of image files."""
    from .tables import column_of

    if table.image_shape is not None:
        return table.others["file"]
    return None if args.id is None else column_of(table, args.id)


def color_of(args: Namespace, table):
    """What to color rows by: a column by its name, or the values of another column or file."""
    from ..files import read_table
    from .failures import JobError
    from .suggestions import did_you_mean
    from .tables import shown

    if args.color is None or args.color in (table.names or []):
        return args.color
    if args.color in table.others:
        return table.others[args.color]
    if Path(args.color).suffix in (".csv", ".parquet"):
        labels = read_table(args.color)
        return next(iter(labels.others.values()), labels.X[:, 0])
    known = [*(table.names or []), *table.others]
    named = f"are {shown(known)}" if known else "have no names; give a .csv file with one"
    near = did_you_mean(args.color, known)
    raise JobError(f"{args.data} has no column {args.color!r}.{near} Its columns {named}.")


def image_shape(text: str) -> tuple[int, ...]:
    """Height and width, as in 28x28, and channels if there are any."""
    try:
        sides = tuple(whole(1)(side) for side in text.split("x"))
    except ArgumentTypeError:
        sides = ()
    if len(sides) not in (2, 3):
        raise ArgumentTypeError(f"{text!r} is not HEIGHTxWIDTH, such as 28x28")
    return sides
