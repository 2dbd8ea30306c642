"""The rows that a model is fitted to: in memory, or on disk where they are too many."""

from argparse import Namespace
from dataclasses import dataclass
from typing import Any

from ..files import RowSource
from .failures import JobError
from .prepared import ScaledRows
from .standardization import Standardization
from .tables import is_images, needs_disk, open_rows, read_rows, scanned


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
    scaling : Scaling
    image_shape : tuple of int or None
    """

    X: Any
    count: int | None
    columns: list[str] | None
    scaling: Standardization
    image_shape: tuple[int, ...] | None = None


def training_rows(args: Namespace, method: str) -> TrainingRows:
    """DATA as the estimator of a method takes it."""
    if not is_images(args.data):
        source = open_rows(args)
        if needs_disk(source, args.data, args.memory):
            return rows_on_disk(args, source, method)
    table = read_rows(args)
    if table.X.shape[0] < 2:
        raise JobError(f"{args.data} has one row, and kernel PCA needs two at least.")
    scaling = Standardization.of([table.X], args.scale)
    X = scaling.apply(table.X)
    return TrainingRows(X, X.shape[0], table.names, scaling, table.image_shape)


def rows_on_disk(args: Namespace, source: RowSource, method: str) -> TrainingRows:
    """Rows that are read in blocks, as often as the estimator asks for them."""
    if method == "hebbian":
        raise JobError(
            f"{source.name} is larger than the memory budget, and --method hebbian needs its rows "
            "in memory. Raise --memory, or take --method landmarks."
        )
    if args.scale == "none":
        return TrainingRows(source, source.n_rows, source.columns, Standardization())
    scaling = Standardization.of(scanned(source), args.scale)
    return TrainingRows(ScaledRows(source, scaling), source.n_rows, source.columns, scaling)
