"""DATA of a command line: the columns wanted of it, what is done about missing values, scaling."""

from argparse import Namespace
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from .. import files
from .._tables import counted
from ..compute import is_sparse, parse_bytes
from ..exceptions import TableWarning, tell
from ..files.base import READ_ROWS, DerivedSource, listed
from ..files.delimited import COMPRESSED, MISSING
from ..files.opening import existing, image_files
from ..kernels import KERNELS
from ..relatives.mixed import MixedTable, is_missing
from ..rows.blocks import WHOLE_SHARE
from .outputs import Columns, as_columns, say
from .parser import JobError, UsageError, did_you_mean

# Rows and bytes read at a time, at most: few enough to see progress.
BLOCK_ROWS, BLOCK_BYTES = 8192, 2**25
# If ranges of columns differ by more than this, only the larger ones count in distances. The
# narrowest tenth of the columns is ignored: rare pixels of images are not in another unit.
SCALES_APART, NARROWEST = 100, 0.1
# Bytes of text in a byte of a compressed table, more than numbers have.
UNPACKED = 8
# Whose columns these are, in messages.
FITTED = "which the model was fitted to"
# Reasons for leaving out columns that can be compared by equality.
TEXTS = ("text", "dictionary")


class InputTable:
    """DATA of a command line, opened and not read yet.

    Parameters
    ----------
    args : Namespace
        With the options of a table. Its `table` becomes this one, for the messages at the end.
    columns : list of str or None
        The columns to use if the user names none and the table has names.
    fill : array or None
        A value for missing cells of each column, as a model keeps it.
    keep_missing : bool
        Whether missing values stay as they are.
    row_names : str or None
        The column that named the rows of the fit. It stands for --id, if that is not given and
        the table has the column.

    Attributes
    ----------
    source : RowSource
    image_shape : tuple of int or None
        Of the images that the rows are.
    left_out : dict of str to str
        Columns that are not used, and why.
    """

    def __init__(self, args, columns=None, fill=None, keep_missing=False, row_names=None):
        args.table, self.args = self, args
        self.compared: list[str] = []  # columns of texts that the model takes
        self.row_names = row_names if args.id is None else None
        self.kept_names = [*filter(None, dict.fromkeys([args.id, *(vars(args).get("keep") or ())]))]
        self.image_shape, self.files, self.chosen = None, {}, False
        if image_files(existing(args.data)):
            if args.columns or args.drop or self.kept_names:
                raise UsageError("--columns, --drop, --id and --target are not for images.")
            images = files.read_table(args.data)
            self.source: files.RowSource = files.open_source(images.X)
            self.source.name, self.policy, self.left_out = args.data, "error", {}
            self.image_shape, self.files = images.image_shape, images.others
            return
        self.policy = (
            "keep" if keep_missing else args.missing or ("mean" if fill is not None else "error")
        )
        self.source = self._pick(columns)
        self.left_out = dict(self.source.reasons)
        self.left_out |= dict.fromkeys(set(self.kept_names) & set(self.left_out), "kept")
        # A user who names the columns knows what is left out.
        self.chosen = bool(args.columns or columns)
        for note in self.source.notes:
            shell = "leave it out with --drop, or keep it with --id."
            tell(note.replace("leave it out.", shell), TableWarning)
        self.source.notes = ()  # or a fit would warn again
        if self.policy == "drop":
            self.source = files.DropMissing(self.source)
        elif self.policy == "mean":
            self.source = files.FillMissing(self.source, fill)

    def _pick(self, columns: list[str] | None) -> files.RowSource:
        """The rows with the columns that are asked for, missing values as they are."""
        args = self.args
        given = {name: vars(args)[name] for name in ("decimal", "comment", "header")}
        given |= {"encoding": args.encoding or "utf-8", "thousands": args.thousands or ""}
        form = files.TextFormat(marks=self.policy != "error", **given)
        self.memory = vars(args).get("memory")
        source = files.open_source(args.data, name=args.array, format=form, memory=self.memory)
        places = [str(i) for i in range(source.n_columns + len(source.left_out))]
        numbers = source.columns or [place for place in places if place not in source.left_out]
        names = [*numbers, *source.left_out]
        wanted = args.columns
        check_known(source, [*(wanted or ()), *(args.drop or ()), *self.kept_names], names)
        if wanted is None and source.columns is not None:
            wanted = columns
            check_known(source, wanted or (), names, FITTED)
        if self.row_names in names:
            args.id = self.row_names
            self.kept_names = list(dict.fromkeys([args.id, *self.kept_names]))
        aside = {*(args.drop or []), *(set(self.kept_names) - set(wanted or []))}
        if wanted is None and not aside:
            return source
        picked = [name for name in wanted or numbers if name not in aside]
        if not picked:
            raise JobError(f"No column of {source.name} is left. Drop fewer of them.")
        if files.is_table(args.data):
            return files.open_source(
                args.data, columns=picked, name=args.array, format=form, memory=self.memory
            )
        return PickedColumns(source, [int(name) for name in picked])

    @property
    def columns(self) -> list[str] | None:
        return self.source.columns

    def read(self) -> Any:
        """All rows; raises if there is none."""
        X = self.source.read()
        if X.shape[0] == 0:
            raise JobError(f"{self.args.data} has no rows.")
        return X

    def blocks(self) -> Generator:
        """The rows in blocks of a moderate size."""
        rows = BLOCK_BYTES // (8 * self.source.n_columns)
        return self.source.blocks(max(1, min(BLOCK_ROWS, rows)))

    def size(self) -> int:
        """Bytes of the rows in memory; of text a guess."""
        source, path = self.source, Path(self.args.data)
        if source.n_rows is not None and not source.sparse:
            return source.n_rows * source.n_columns * source.dtype.itemsize
        # Text takes about as much as its numbers, and compressed text several times less.
        return path.stat().st_size * (UNPACKED if path.suffix.lower() in COMPRESSED else 1)

    def mixed(self, texts: list[str]) -> MixedTable:
        """All rows with columns of numbers and of texts; missing cells are None and NaN."""
        pieces = self.source.pieces(READ_ROWS)
        X = np.concatenate([np.zeros((0, self.source.n_columns)), *pieces])
        for name in texts:
            self.left_out.pop(name, None)
        self.compared = texts
        numbers = as_columns(X, self.columns or [str(i) for i in range(X.shape[1])])
        columns: Columns = {}
        for name, column in (self.source.others(texts) if texts else {}).items():
            cells = (None if is_missing(cell) else str(cell).strip() for cell in column)
            present = (None if cell is None or cell.lower() in MISSING else cell for cell in cells)
            columns[name] = np.array([*present], dtype=object)
        return MixedTable(numbers | columns)

    def texts(self) -> list[str]:
        """Columns that can be compared by equality: texts that the user has not excluded."""
        aside = {*(self.args.drop or []), *self.kept_names}
        return [
            name
            for name, why in self.left_out.items()
            if why.startswith(TEXTS) and name not in aside and not self.args.columns
        ]

    def others(self, names: list[str] | None = None) -> Columns:
        """Columns of any kind by name; None for all that are not used."""
        return self.files or self.source.others(names)

    def kept(self) -> Columns:
        """Columns that accompany the rows into the result: as asked for, and the names of images.

        A file of numbers only has no place for the names of images.
        """
        output = vars(self.args).get("output")
        remembered = self.row_names is not None and self.row_names == self.args.id
        if (self.files or remembered) and output is not None and output.suffix.lower() == ".npy":
            say(self.args, f"{output.name} holds numbers only; .csv and .parquet hold row names")
            return self.others(self.kept_names[1:]) if self.kept_names[1:] else {}
        return self.others(self.kept_names) if self.files or self.kept_names else {}

    def facts(self) -> dict:
        """What was used of the table, for programs."""
        missing: dict = {} if self.policy in ("error", "keep") else {"policy": self.policy}
        if isinstance(self.source, files.DropMissing):
            missing["rows_dropped"] = self.source.dropped
        elif isinstance(self.source, files.FillMissing):
            missing["cells_filled"] = self.source.filled
        used: Any = self.source.n_columns if self.columns is None else self.columns
        used = used + (len(self.compared) if self.columns is None else self.compared)
        facts = {"name": self.source.name, "used": used}
        return facts | {"left_out": self.left_out, "missing": missing}

    def lines(self) -> Iterator[str]:
        """The same for people; nothing if all columns and rows were used."""
        name, source = self.source.name, self.source
        if isinstance(source, files.DropMissing) and source.dropped:
            yield f"{name}: left out {counted(source.dropped, 'row')} with missing values"
        elif isinstance(source, files.FillMissing) and source.filled:
            yield f"{name}: filled {counted(source.filled, 'missing value')} with means"
        expected = ("not asked for", "kept")
        if self.row_names is not None and self.args.id is None and not self.files:
            yield f"{name}: no column {self.row_names!r}, which named the rows of the fit"
        unused = [f"{one} ({why})" for one, why in self.left_out.items() if why not in expected]
        if unused and not self.chosen:
            used = source.n_columns + len(self.compared)
            yield f"{name}: used {counted(used, 'column')}; left out: {listed(unused)}"


class PickedColumns(DerivedSource):
    """Some columns of rows that have no names, by their numbers.

    Parameters
    ----------
    source : RowSource
    places : list of int
    """

    def __init__(self, source: files.RowSource, places: list[int]):
        super().__init__(source)
        self.places, self.n_columns = places, len(places)
        others = (str(i) for i in range(source.n_columns) if i not in places)
        self.reasons = dict.fromkeys(others, "not asked for")

    def chunks(self, rows: int) -> Iterator:
        for chunk in self.source.chunks(rows):
            yield chunk[:, self.places]

    def others(self, names=None):
        rows = self.source.read()
        return {name: rows[:, int(name)] for name in (self.left_out if names is None else names)}


@dataclass(frozen=True)
class Scaling:
    """The shift and the size of each column: scaled = (column - shift) / size.

    Attributes
    ----------
    kind : "none", "standard" or "minmax"
    shift, size : arrays of shape (d,), or None
        None where nothing is scaled.
    """

    kind: str = "none"
    shift: np.ndarray | None = None
    size: np.ndarray | None = None

    @classmethod
    def fitted(cls, blocks: Iterable, kind: str) -> "Scaling":
        """The scaling of all rows, given in blocks."""
        if kind == "none":
            return cls()
        scaler: Any = StandardScaler() if kind == "standard" else MinMaxScaler()
        for block in blocks:
            scaler.partial_fit(dense_rows(block))
        if kind == "standard":
            return cls(kind, scaler.mean_, scaler.scale_)
        # A column that is constant becomes zero.
        return cls(kind, scaler.data_min_, np.where(scaler.data_range_ > 0, scaler.data_range_, 1))

    def apply(self, X):
        """Rows as the model takes them, in their own floating type."""
        if self.shift is None:
            return X
        if isinstance(X, files.RowSource):
            return DerivedSource(X, self.apply)
        return ((dense_rows(X) - self.shift) / self.size).astype(X.dtype, copy=False)

    def undo(self, X):
        """Rows as the table had them."""
        return X if self.shift is None else (X * self.size + self.shift).astype(X.dtype, copy=False)


def dense_rows(X) -> np.ndarray:
    """Rows that a shift can be subtracted from."""
    if is_sparse(X):
        raise UsageError("--scale would make sparse rows dense. Leave it out.")
    return np.asarray(X)


def mixed_table(args: Namespace) -> tuple[InputTable, MixedTable] | None:
    """DATA with texts or missing values, for a kernel that takes them; None if it has neither."""
    if KERNELS[args.kernel].encoder is None or image_files(existing(args.data)):
        return None
    table = InputTable(args, keep_missing=args.missing is None)
    texts = table.texts()
    rows = table.mixed(texts)
    numbers = [rows[name] for name in rows.columns if name not in texts]
    if not texts and np.isfinite(numbers).all():
        return None
    if args.scale != "none":
        raise UsageError(
            "--scale is not for a table with texts or missing values: the kernel gower scales the "
            "columns itself. Leave --scale out."
        )
    if args.missing is not None and np.isnan(numbers).any():
        name = table.source.name
        raise JobError(f"{name} has missing values. Leave --missing out: gower takes them.")
    return table, rows


def training_table(
    args: Namespace, mixed: bool = True, in_blocks: bool = False
) -> tuple[InputTable, Any, Scaling]:
    """DATA, its rows as the estimators take them, and how these are scaled.

    Parameters
    ----------
    args : Namespace
    mixed : bool
        Texts and missing values too, for a kernel that takes them.
    in_blocks : bool
        Rows that are larger than the memory budget are not read now, but in blocks by the fit.
    """
    if mixed and (found := mixed_table(args)) is not None:
        return *found, Scaling()
    table = InputTable(args)
    rows: Any = table.source
    if in_blocks and not table.files and table.size() > parse_bytes(args.memory) // WHOLE_SHARE:
        with closing(table.blocks()) as blocks:
            first = next(blocks)
        scaling = Scaling.fitted(table.blocks(), args.scale)
    else:
        rows = first = table.read()
        if rows.shape[0] < 2:
            raise JobError(f"{args.data} has one row, and kernel PCA needs at least two.")
        scaling = Scaling.fitted([rows], args.scale)
    warn_of_scales(table, first)
    return table, scaling.apply(rows), scaling


def warn_of_scales(table: InputTable, X) -> None:
    """Warn if some columns are so much larger than others that only they count in distances."""
    # The scales of columns do not matter to a kernel that encodes them, nor to a precomputed one;
    # images have one scale.
    args = table.args
    scaled = args.scale != "none" or KERNELS[args.kernel].encoder is not None
    if scaled or table.image_shape or args.kernel == "precomputed" or is_sparse(X):
        return
    ranges = np.ptp(np.asarray(X, dtype=float), axis=0)
    places = np.flatnonzero(ranges)
    order = places[np.argsort(ranges[places])]
    if order.size < 2:
        return
    small, large = order[int(NARROWEST * (order.size - 1))], order[-1]
    if ranges[large] < SCALES_APART * ranges[small]:
        return
    names = table.columns or [str(i) for i in range(X.shape[1])]
    tell(
        f"Columns have very different scales: {names[large]} ranges over {ranges[large]:.3g} and "
        f"{names[small]} over {ranges[small]:.3g}, so that {names[small]} hardly counts. "
        "--scale standard gives all of them the same weight.",
        TableWarning,
    )


def check_known(
    source: files.RowSource,
    wanted: Iterable[str],
    known: Sequence[str],
    why: str = "which was asked for",
) -> None:
    """Raise JobError unless a table has all these columns."""
    for name in wanted:
        if name not in known:
            raise JobError(
                f"{source.name} has no column {name!r}, {why}.{did_you_mean(name, known)} Its "
                f"columns are {listed(known)}."
            )
