"""DATA of a command line: a path, the columns wanted of it, and whether it fits in memory."""

from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from ..compute import parse_bytes
from ..estimators.sources import ROWS_SHARE
from ..files import RowSource, Table, open_source, read_table
from ..files.images import is_image, list_images
from ..files.opening import existing, is_table
from .failures import JobError, UsageError

# Rows and bytes read at a time, at most: few enough to see progress.
BLOCK_ROWS, BLOCK_BYTES = 8192, 2**25


class PickedColumns(RowSource):
    """Some columns of rows that have no names, by their numbers.

    Parameters
    ----------
    source : RowSource
    places : list of int
    """

    def __init__(self, source: RowSource, places: list[int]):
        self.source, self.places = source, places
        self.name, self.dtype, self.n_rows = source.name, source.dtype, source.n_rows
        self.n_columns = len(places)

    def chunks(self, rows: int) -> Iterator:
        """The source's pieces, narrower."""
        for chunk in self.source.chunks(rows):
            yield chunk[:, self.places]


def open_rows(args: Namespace, columns: list[str] | None = None) -> RowSource:
    """The rows of DATA, not read yet.

    Parameters
    ----------
    args : Namespace
        With `data`, `columns`, `drop` and `array`.
    columns : list of str or None
        The columns to take where the user names none and the table has names.
    """
    source = open_source(args.data, name=args.array)
    if args.columns is None and source.columns is not None:
        check_known(source, columns or [], "which the model was fitted to")
        picked = pick(source, columns, args.drop)
    else:
        picked = pick(source, args.columns, args.drop)
    if picked is None:
        return source
    if is_table(args.data):
        return open_source(args.data, columns=picked)
    return PickedColumns(source, [int(name) for name in picked])


def read_rows(args: Namespace, columns: list[str] | None = None) -> Table:
    """DATA in memory, an image or a folder of images included."""
    if is_images(args.data):
        if args.columns or args.drop:
            raise UsageError("--columns and --drop are for tables, and images have pixels.")
        table = read_table(args.data)
    else:
        source = open_rows(args, columns)
        table = Table(source.read(), source.columns, source.others())
    if table.X.shape[0] == 0:
        raise JobError(f"{args.data} has no rows.")
    return table


def is_images(path: str) -> bool:
    """Whether a path is an image or a folder that has some."""
    where = existing(path)
    return is_image(where) or bool(list_images(where))


def pick(source: RowSource, columns: list[str] | None, drop: list[str] | None):
    """Names or numbers of the columns to take; None for all there are."""
    if columns is None and drop is None:
        return None
    check_known(source, [*(columns or []), *(drop or [])], "which was asked for")
    picked = [name for name in columns or numbers_of(source) if name not in (drop or [])]
    if not picked:
        raise JobError(f"No column of {source.name} is left. Drop fewer of them.")
    return picked


def numbers_of(source: RowSource) -> list[str]:
    """Names of the columns of numbers; where they have none, their places from 0."""
    places = (str(i) for i in range(source.n_columns + len(source.left_out)))
    return source.columns or [place for place in places if place not in source.left_out]


def check_known(source: RowSource, wanted: list[str], why: str) -> None:
    """Raise JobError unless a table has all these columns."""
    known = [*numbers_of(source), *source.left_out]
    for name in wanted:
        if name not in known:
            raise JobError(
                f"{source.name} has no column {name!r}, {why}. Its columns are {shown(known)}."
            )


def shown(names: list[str], most: int = 12) -> str:
    """Names for a message, not all of many."""
    text = ", ".join(names[:most])
    return text if len(names) <= most else f"{text}, ... ({len(names)} in all)"


def scanned(source: RowSource) -> Iterator:
    """The rows in blocks of a moderate size."""
    return source.blocks(max(1, min(BLOCK_ROWS, BLOCK_BYTES // (8 * source.n_columns))))


def open_model_rows(args: Namespace, model) -> RowSource:
    """The rows of DATA, with the columns that a model was fitted to."""
    if is_images(args.data):
        table = read_rows(args)
        check_width(args.data, table.X.shape[1], model)
        if model.image_shape is not None and table.image_shape != model.image_shape:
            raise JobError(
                f"The images of {args.data} have shape {table.image_shape}, and the model was "
                f"fitted to {model.image_shape}. Bring them to that size first."
            )
        return open_source(table.X)
    source = open_rows(args, model.columns)
    check_width(args.data, source.n_columns, model)
    return source


def check_width(name: str, width: int, model) -> None:
    """Raise JobError unless rows have the columns that a model was fitted to."""
    wanted = model.n_features_in_
    if width != wanted:
        named = "" if model.columns is None else f" ({shown(model.columns)})"
        raise JobError(
            f"{name} has {width} columns of numbers, and the model was fitted to {wanted}{named}. "
            "Choose them with --columns or --drop."
        )


def shape_of(args: Namespace) -> tuple[int, int]:
    """Rows and columns of DATA; tables that do not tell are read through once."""
    if is_images(args.data):
        return read_rows(args).X.shape
    source = open_rows(args)
    if source.n_rows is None:
        return sum(len(block) for block in scanned(source)), source.n_columns
    return source.n_rows, source.n_columns


def needs_disk(source: RowSource, path: str, memory: str | None) -> bool:
    """Whether the rows as an array would take more than their share of the memory budget."""
    size = Path(path).stat().st_size  # of text about that of its numbers
    if source.n_rows is not None:
        size = source.n_rows * source.n_columns * source.dtype.itemsize
    return size > parse_bytes(memory) // ROWS_SHARE
