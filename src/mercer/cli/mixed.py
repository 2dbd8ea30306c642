"""Tables of numbers and texts, for the Gower kernel."""

from argparse import Namespace
from collections.abc import Iterator

import numpy as np

from ..files import RowSource
from ..files.base import READ_ROWS
from ..files.layout import MISSING
from ..relatives.mixed import MixedTable, TableEncoding
from .failures import JobError, UsageError
from .tables import kept_names, open_rows

# Why a column is left out that can be compared by equality.
TEXTS = ("text", "dictionary")
# What to do about missing values where they are a value of their own.
KEEP = "keep"


def mixed_rows(args: Namespace) -> MixedTable | None:
    """DATA with its columns of text; None where it is made of complete numbers."""
    source = open_rows(args, policy=args.missing or KEEP)
    texts = text_columns(args, source)
    X = np.concatenate([np.zeros((0, source.n_columns)), *source.pieces(READ_ROWS)])
    if not texts and np.isfinite(X).all():
        return None
    if args.scale != "none":
        raise UsageError("--scale is not for a table with texts or missing values: Gower scales.")
    if args.missing not in (None, KEEP) and np.isnan(X).any():
        raise JobError(f"{source.name} has missing values. Leave --missing out: Gower takes them.")
    args.accounts[-1].left_out = {
        name: why for name, why in args.accounts[-1].left_out.items() if name not in texts
    }
    return table_of(source, X, texts)


def text_columns(args: Namespace, source: RowSource) -> list[str]:
    """Columns that are compared by equality: texts that the user has not set aside."""
    aside = {*(args.drop or []), *kept_names(args)}
    return [
        name
        for name, why in source.reasons.items()
        if why.startswith(TEXTS) and name not in aside and not args.columns
    ]


def table_of(source: RowSource, X: np.ndarray, texts: list[str]) -> MixedTable:
    """Numbers and texts by name."""
    names = source.columns or [str(i) for i in range(source.n_columns)]
    numbers = {name: X[:, j] for j, name in enumerate(names)}
    others = source.others(texts) if texts else {}
    return MixedTable(numbers | {name: labels(column) for name, column in others.items()})


def labels(column: np.ndarray) -> np.ndarray:
    """Texts of a column, None where they are missing."""
    found = [None if is_missing(value) else str(value).strip() for value in column]
    return np.array(found, dtype=object)


def is_missing(value) -> bool:
    """Whether a cell holds nothing."""
    return value is None or value != value or str(value).strip().lower() in MISSING


class EncodedTable(RowSource):
    """Rows of a table as the encoding of a model makes numbers of them.

    Parameters
    ----------
    args : Namespace
    encoding : TableEncoding
    """

    def __init__(self, args: Namespace, encoding: TableEncoding):
        texts = [name for name, known in zip(encoding.names, encoding.labels, strict=True) if known]
        numbers = [name for name in encoding.names if name not in texts]
        source = open_rows(args, numbers, policy=KEEP)
        self.source, self.name = source, source.name
        missing = [name for name in texts if name not in source.left_out]
        if missing:
            raise JobError(
                f"{source.name} has no column {missing[0]!r} of texts, which the model was fitted "
                "to. Pass the same columns."
            )
        X = np.concatenate([np.zeros((0, source.n_columns)), *source.pieces(READ_ROWS)])
        self.table = table_of(source, X, texts)
        self.rows = encoding.apply(self.table)
        args.accounts[-1].left_out = {
            name: why for name, why in args.accounts[-1].left_out.items() if name not in texts
        }
        self.n_rows, self.n_columns = self.rows.shape
        self.left_out = source.left_out

    def chunks(self, rows: int) -> Iterator:
        """Slices of them."""
        for start in range(0, self.n_rows or 0, rows):
            yield self.rows[start : start + rows]

    def others(self, names=None):
        """As of the table."""
        return self.source.others(names)
