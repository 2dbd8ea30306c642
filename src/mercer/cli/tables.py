"""DATA of a command line: a path, the columns wanted of it, and whether it fits in memory."""

from argparse import Namespace
from collections.abc import Generator, Iterator
from pathlib import Path

import numpy as np

from ..compute import is_sparse, parse_bytes
from ..exceptions import TableWarning, tell
from ..files import (
    DropMissing,
    FillMissing,
    RowSource,
    Table,
    TextFormat,
    open_source,
    read_table,
)
from ..files.layout import COMPRESSED
from ..files.opening import existing, is_table
from ..files.tables import image_files
from ..rows.blocks import WHOLE_SHARE
from .accounts import take_account
from .failures import JobError, UsageError
from .messages import say
from .suggestions import did_you_mean

# Rows and bytes read at a time, at most: few enough to see progress.
BLOCK_ROWS, BLOCK_BYTES = 8192, 2**25
# Ranges of columns that differ by more than this make the larger ones rule all distances. The
# narrowest tenth of the columns is not counted: rare pixels of images are no other unit.
SCALES_APART, NARROWEST = 100, 0.1
# Kernels to which the scales of columns do not matter.
SCALE_FREE = {"precomputed", "gower"}
# Bytes of text in a byte of a compressed table, more than numbers have.
UNPACKED = 8


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
        others = (str(i) for i in range(source.n_columns) if i not in places)
        self.left_out = tuple(others)
        self.reasons = dict.fromkeys(self.left_out, "not asked for")

    def chunks(self, rows: int) -> Iterator:
        """The source's pieces, narrower."""
        for chunk in self.source.chunks(rows):
            yield chunk[:, self.places]

    def others(self, names=None):
        """Columns by their numbers."""
        names = self.left_out if names is None else names
        rows = self.source.read()
        return {name: rows[:, int(name)] for name in names}


class ImageRows(RowSource):
    """Images in memory, one row an image, with the names of their files.

    Parameters
    ----------
    name : str
    table : Table
    """

    def __init__(self, name: str, table: Table):
        self.name, self.table = name, table
        self.n_rows, self.n_columns = table.X.shape
        self.left_out = tuple(table.others)

    def chunks(self, rows: int) -> Iterator:
        """Slices of rows."""
        for start in range(0, self.n_rows or 0, rows):
            yield self.table.X[start : start + rows]

    def others(self, names=None):
        """The names of the files."""
        return {name: self.table.others[name] for name in names or self.left_out}


def open_rows(
    args: Namespace, columns: list[str] | None = None, fill=None, policy: str | None = None
) -> RowSource:
    """The rows of DATA, not read yet.

    Parameters
    ----------
    args : Namespace
        With the options of `add_data`.
    columns : list of str or None
        The columns to take where the user names none and the table has names.
    fill : array or None
        What stands for missing values of each column, as a model keeps it.
    policy : str or None
        What to do about missing values, which "keep" leaves to the reader; None for what the user
        asks for.
    """
    policy = policy or args.missing or ("error" if fill is None else "mean")
    picked = pick_columns(args, columns, policy)
    chosen = bool(args.columns or columns)
    account = take_account(args, picked, chosen, kept_names(args))
    if policy in ("error", "keep"):
        return picked
    account.missing["policy"] = policy
    if policy == "drop":
        return DropMissing(picked)
    return FillMissing(picked, fill)


def pick_columns(args: Namespace, columns: list[str] | None, policy: str) -> RowSource:
    """The rows of DATA with the columns that are asked for, missing values as they are."""
    form = text_format(args, policy)
    source = open_source(args.data, name=args.array, format=form)
    if args.columns is None and source.columns is not None:
        check_known(source, columns or [], "which the model was fitted to")
        picked = pick(source, columns, dropped(args, columns))
    else:
        picked = pick(source, args.columns, dropped(args, args.columns))
    check_known(source, kept_names(args), "which was to be kept")
    if picked is None:
        return source
    if is_table(args.data):
        return open_source(args.data, columns=picked, name=args.array, format=form)
    return PickedColumns(source, [int(name) for name in picked])


def text_format(args: Namespace, policy: str) -> TextFormat:
    """How the text of DATA is written, as far as the user says."""
    return TextFormat(
        encoding=args.encoding,
        decimal=args.decimal,
        comment=args.comment,
        header=args.header,
        marks=policy != "error",
    )


def dropped(args: Namespace, wanted: list[str] | None) -> list[str] | None:
    """Columns to leave out: as asked for, and those to carry along that are not wanted besides."""
    kept = [name for name in kept_names(args) if name not in (wanted or [])]
    return [*(args.drop or []), *kept] or None


def kept_names(args: Namespace) -> list[str]:
    """The columns to carry along."""
    id_column = [] if args.id is None else [args.id]
    return list(dict.fromkeys([*id_column, *(vars(args).get("keep") or [])]))


def kept_columns(args: Namespace, source: RowSource) -> dict[str, np.ndarray]:
    """Columns that accompany the rows into the result: as asked for, and the names of images."""
    if isinstance(source, ImageRows):
        return source.others()
    wanted = kept_names(args)
    return source.others(wanted) if wanted else {}


def kept_of(args: Namespace, table: Table) -> dict[str, np.ndarray]:
    """Columns of a table in memory that accompany its rows."""
    if table.image_shape is not None:
        return table.others
    return {name: column_of(table, name) for name in kept_names(args)}


def column_of(table: Table, name: str) -> np.ndarray:
    """A column of a table in memory, used or left out."""
    if name in table.others:
        return table.others[name]
    return table.X[:, (table.names or []).index(name)]


def named_points(args: Namespace, table: Table) -> dict[str, np.ndarray]:
    """What is asked for of a table, else its columns of text: names of points among distances."""
    wanted = kept_names(args)
    texts = [name for name, column in table.others.items() if column.dtype.kind in "UO"]
    for account in args.accounts:
        account.left_out |= dict.fromkeys(wanted or texts, "kept")
    return {name: column_of(table, name) for name in wanted or texts}


def kept_beside(args: Namespace, source: RowSource) -> dict[str, np.ndarray]:
    """Columns that go into a file of results; names of images do not fit one of numbers only."""
    kept = kept_columns(args, source)
    numbers_only = args.output is not None and args.output.suffix.lower() == ".npy"
    if numbers_only and kept and not kept_names(args):
        say(args, f"{args.output.name} holds numbers only; .csv and .parquet hold file names too")
        return {}
    return kept


def read_rows(args: Namespace, columns: list[str] | None = None, fill=None) -> Table:
    """DATA in memory, an image or a folder of images included."""
    if is_images(args.data):
        table = read_images_of(args)
    else:
        source = open_rows(args, columns, fill)
        table = Table(source.read(), source.columns, source.others())
        say_missing(args, source)
    if table.X.shape[0] == 0:
        raise JobError(f"{args.data} has no rows.")
    return table


def read_images_of(args: Namespace) -> Table:
    """Images in memory."""
    if args.columns or args.drop or kept_names(args):
        raise UsageError("--columns, --drop and --id are for tables, and images have pixels.")
    return read_table(args.data)


def say_missing(args: Namespace, source: RowSource) -> None:
    """Say how many rows were left out or cells filled, after a reading, and remember it."""
    if isinstance(source, DropMissing):
        args.accounts[-1].missing["rows_dropped"] = source.dropped
        if source.dropped:
            rows = "row" if source.dropped == 1 else "rows"
            say(args, f"{source.name}: left out {source.dropped:,} {rows} with missing values")
    elif isinstance(source, FillMissing):
        args.accounts[-1].missing["cells_filled"] = source.filled
        if source.filled:
            values = "value" if source.filled == 1 else "values"
            say(args, f"{source.name}: filled {source.filled:,} missing {values} with means")


def is_images(path: str) -> bool:
    """Whether a path is an image or a folder that has some."""
    return bool(image_files(existing(path)))


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
                f"{source.name} has no column {name!r}, {why}.{did_you_mean(name, known)} Its "
                f"columns are {shown(known)}."
            )


def shown(names: list[str], most: int = 12) -> str:
    """Names for a message, not all of many."""
    text = ", ".join(names[:most])
    return text if len(names) <= most else f"{text}, ... ({len(names)} in all)"


def scanned(source: RowSource) -> Generator:
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
        return ImageRows(args.data, table)
    if model._encoding is not None:
        from .mixed import EncodedTable

        return EncodedTable(args, model._encoding)
    source = open_rows(args, model.columns, model.fill)
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
    packed = Path(path).suffix.lower() in COMPRESSED
    # Text takes about as much as its numbers, and what is compressed several times less.
    size = Path(path).stat().st_size * (UNPACKED if packed else 1)
    if source.n_rows is not None:
        size = source.n_rows * source.n_columns * source.dtype.itemsize
    return size > parse_bytes(memory) // WHOLE_SHARE


def warn_of_scales(args: Namespace, X, columns: list[str] | None) -> None:
    """Warn where some columns are so much larger than others that they rule all distances."""
    if args.scale != "none" or args.kernel in SCALE_FREE or is_sparse(X) or X.shape[1] < 2:
        return
    ranges = np.ptp(np.asarray(X, dtype=float), axis=0)
    places = np.flatnonzero(ranges)
    order = places[np.argsort(ranges[places])]
    if order.size < 2:
        return
    small, large = order[int(NARROWEST * (order.size - 1))], order[-1]
    if ranges[large] < SCALES_APART * ranges[small]:
        return
    names = columns or [str(i) for i in range(X.shape[1])]
    tell(
        f"Columns have very different scales: {names[large]} ranges over {ranges[large]:.3g} and "
        f"{names[small]} over {ranges[small]:.3g}, so that {names[small]} hardly counts. "
        "--scale standard gives all of them the same weight.",
        TableWarning,
    )
