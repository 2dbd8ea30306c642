"""The rows that a model is fitted to: in memory, or on disk where they are too many."""

from argparse import Namespace
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..files import FillMissing, RowSource, Table
from ..relatives.mixed import MixedTable
from .failures import JobError, UsageError
from .methods import HEBBIAN
from .mixed import KEEP, mixed_rows
from .prepared import ScaledRows
from .standardization import Standardization
from .tables import (
    is_images,
    kept_columns,
    kept_names,
    needs_disk,
    open_rows,
    read_images_of,
    read_rows,
    say_missing,
    scanned,
    warn_of_scales,
)


@dataclass(frozen=True)
class TrainingRows:
    """What a fit starts from.

    Attributes
    ----------
    X : array, sparse matrix, memmap or RowSource
        Scaled.
    count : int or None
        Rows, where known.
    columns : list of str or None
    scaling : Standardization
    image_shape : tuple of int or None
    fill : array of shape (d,) or None
        Means of the columns, where missing values are filled with them.
    target : array of shape (n,) or None
        The column that components are to depend on.
    """

    X: Any
    count: int | None
    columns: list[str] | None
    scaling: Standardization
    image_shape: tuple[int, ...] | None = None
    fill: np.ndarray | None = None
    target: np.ndarray | None = None


def training_rows(args: Namespace, method: str) -> TrainingRows:
    """DATA as the estimator of a method takes it."""
    if is_images(args.data):
        if args.target is not None:
            raise UsageError("--target is a column of a table, and images have none.")
        table = read_images_of(args)
        check_enough(args, table.X)
        scaling = Standardization.of([table.X], args.scale)
        X = scaling.apply(table.X)
        return TrainingRows(X, X.shape[0], None, scaling, table.image_shape)
    args.keep = None if args.target is None else [args.target]
    if args.kernel == "gower":
        mixed = mixed_rows(args)
        if mixed is not None:
            target = mixed_target(args)
            return TrainingRows(mixed, len(mixed), mixed.columns, Standardization(), target=target)
        args.accounts.clear()
    source = open_rows(args)
    if needs_disk(source, args.data, args.memory):
        return rows_on_disk(args, source, method)
    X = source.read()
    say_missing(args, source)
    check_enough(args, X)
    warn_of_scales(args, X, source.columns)
    scaling = Standardization.of([X], args.scale)
    X = scaling.apply(X)
    target = target_of(args, source)
    return TrainingRows(X, X.shape[0], source.columns, scaling, fill=fill_of(source), target=target)


def scaled_table(args: Namespace) -> tuple[Table, Any]:
    """DATA read as a whole, and its rows scaled as asked for."""
    table = read_rows(args)
    warn_of_scales(args, table.X, table.names)
    return table, Standardization.of([table.X], args.scale).apply(table.X)


def affinity_table(args: Namespace) -> tuple[Table, Any]:
    """As `scaled_table`; rows that the Gower kernel compares have texts and missing values too."""
    if args.kernel == "gower" and args.neighbors is None and not is_images(args.data):
        mixed = mixed_rows(args)
        if mixed is not None:
            return beside_mixed(args, mixed), mixed
        args.accounts.clear()
    return scaled_table(args)


def beside_mixed(args: Namespace, mixed: MixedTable) -> Table:
    """The columns that accompany the rows of a table with texts."""
    wanted = kept_names(args)
    aside = [name for name in wanted if name not in mixed.columns]
    account = args.accounts[-1]
    kept = open_rows(args, policy=KEEP).others(aside) if aside else {}
    args.accounts[:] = [account]
    here = {name: mixed[name] for name in wanted if name not in aside}
    return Table(np.zeros((len(mixed), 0)), [], kept | here)


def mixed_target(args: Namespace) -> np.ndarray | None:
    """The column that components are to depend on, of a table with texts."""
    return None if args.target is None else target_of(args, open_rows(args, policy=KEEP))


def target_of(args: Namespace, source: RowSource) -> np.ndarray | None:
    """The column that components are to depend on, as the rows are."""
    if args.target is None:
        return None
    column = kept_columns(args, source)[args.target]
    whole = column.dtype.kind == "f" and bool(np.all(column == np.round(column)))
    # Tables of text hold all numbers as floats; labels have no decimals.
    return column.astype(np.int64) if whole else column


def rows_on_disk(args: Namespace, source: RowSource, method: str) -> TrainingRows:
    """Rows that are read in blocks, as often as the estimator asks for them."""
    if method == HEBBIAN:
        raise JobError(
            f"{source.name} is larger than the memory budget, and --method hebbian needs its rows "
            "in memory. Raise --memory, or take --method landmarks."
        )
    with closing(scanned(source)) as blocks:
        warn_of_scales(args, next(blocks), source.columns)
    more: dict = {"fill": fill_of(source), "target": target_of(args, source)}
    if args.scale == "none":
        return TrainingRows(source, source.n_rows, source.columns, Standardization(), **more)
    scaling = Standardization.of(scanned(source), args.scale)
    rows = ScaledRows(source, scaling)
    return TrainingRows(rows, source.n_rows, source.columns, scaling, **more)


def check_enough(args: Namespace, X) -> None:
    """Raise JobError unless there are two rows."""
    if X.shape[0] < 2:
        count = "one row" if X.shape[0] else "no rows"
        raise JobError(f"{args.data} has {count}, and kernel PCA needs two at least.")


def fill_of(source: RowSource) -> np.ndarray | None:
    """What stands for missing values, for the model to keep."""
    return source.means if isinstance(source, FillMissing) else None
