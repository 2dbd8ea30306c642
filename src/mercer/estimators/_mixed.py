"""Data frames of numbers, categories and booleans as rows of numbers for the Gower kernel.

Every column becomes one of numbers that are compared by max(0, 1 - |x - z|). Numbers are scaled to
[0, 1] by their range in the training rows; a category is a whole number, so that two are equal or
have nothing in common. What is missing is a value of its own: alike to what is missing too, and
to nothing else. (Gower's rule, the mean over columns that both rows have, can give matrices with
negative eigenvalues.)
"""

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from ..files.arrow import library_of

# Where new numbers far outside the range go, 1 or more from all training rows' numbers, and what
# stands for missing entries and for categories that were not in the training rows.
LOWEST, HIGHEST, MISSING, UNKNOWN = -1.0, 2.0, -3.0, -1.0
FRAMES = {"pandas", "polars"}


class MixedTable:
    """Columns of numbers and texts by name, where no library of frames is needed.

    Parameters
    ----------
    columns : dict of str to array of shape (n,)
        Numbers, NaN where they are missing, or objects, None where they are.
    """

    def __init__(self, columns: dict[str, np.ndarray]):
        self._columns = columns

    @property
    def columns(self) -> list[str]:
        """Their names."""
        return list(self._columns)

    def __getitem__(self, name: str) -> np.ndarray:
        return self._columns[name]

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self), len(self._columns)


@dataclass(frozen=True)
class EncodedRows:
    """Rows that the encoding of a model has made numbers of already, (n, d)."""

    rows: np.ndarray


@dataclass(frozen=True)
class TableEncoding:
    """What turns the columns of a data frame into numbers.

    Attributes
    ----------
    names : tuple of str
        Columns.
    labels : tuple
        For each column its categories, or None where it is made of numbers.
    low, size : arrays of shape (d,)
        Least number and range of each column of numbers; 0 and 1 for categories.
    """

    names: tuple[str, ...]
    labels: tuple[tuple[str, ...] | None, ...]
    low: np.ndarray
    size: np.ndarray

    @classmethod
    def of(cls, frame) -> "TableEncoding":
        """The encoding of training rows."""
        names = tuple(str(name) for name in frame.columns)
        if len(set(names)) < len(names):
            raise ValueError(f"Two columns have the same name in {list(names)}. Rename one.")
        known = [learned(frame[name], str(name)) for name in frame.columns]
        labels, low, size = zip(*known, strict=True)
        return cls(names, labels, np.array(low), np.array(size))

    def apply(self, frame):
        """A frame of the same kind whose columns are numbers, or an array of a `MixedTable`."""
        if isinstance(frame, EncodedRows):
            return frame.rows
        if not is_frame(frame):
            raise ValueError(
                f"The model was fitted to a data frame with the columns {list(self.names)}, and "
                f"these rows are of type {type(frame).__name__}. Pass a data frame of pandas or "
                "polars with these columns."
            )
        given = {str(name): name for name in frame.columns}
        if given.keys() != set(self.names):
            raise ValueError(
                f"The data frame has the columns {list(given)}, and the model was fitted to "
                f"{list(self.names)}. Pass the same columns."
            )
        columns = zip(self.names, self.labels, self.low, self.size, strict=True)
        found = {name: encoded(frame[given[name]], name, *how) for name, *how in columns}
        if isinstance(frame, MixedTable):
            return np.column_stack(list(found.values()))
        return type(frame)(found)


def is_frame(X) -> bool:
    """Whether X is a data frame in memory, of pandas, polars or our own."""
    return isinstance(X, MixedTable) or (
        type(X).__name__ == "DataFrame" and library_of(X) in FRAMES
    )


def is_mixed(X) -> bool:
    """Whether X is a data frame in memory that has more than complete columns of numbers."""
    if not is_frame(X):
        return False
    columns = [X[name] for name in X.columns]
    return any(
        not is_number(column) or bool(np.isnan(numbers_of(column, "")).any()) for column in columns
    )


def learned(column, name: str) -> tuple[tuple[str, ...] | None, float, float]:
    """Categories, or least number and range of a column."""
    if not is_number(column):
        labels = tuple(sorted({label for label in labels_of(column, name) if label is not None}))
        if not labels:
            raise ValueError(f"Column {name!r} is empty. Leave it out.")
        return labels, 0.0, 1.0
    numbers = numbers_of(column, name)
    if np.isnan(numbers).all():
        raise ValueError(f"Column {name!r} is empty. Leave it out.")
    low = float(np.nanmin(numbers))
    with np.errstate(over="ignore"):
        size = float(np.nanmax(numbers)) - low
    if not np.isfinite(size):
        raise ValueError(f"Column {name!r} has a range that float64 does not hold. Scale it.")
    return None, low, size


def encoded(column, name: str, labels, low: float, size: float) -> np.ndarray:
    """One column as numbers, (n,)."""
    if labels is not None:
        codes = {label: float(code) for code, label in enumerate(labels)}
        codes[None] = MISSING
        return np.array([codes.get(label, UNKNOWN) for label in labels_of(column, name)])
    numbers = numbers_of(column, name)
    with np.errstate(over="ignore"):
        # A column that was constant is compared by equality.
        scaled = (numbers - low) / size if size else np.where(numbers == low, 0.0, HIGHEST)
    return np.where(np.isnan(numbers), MISSING, np.clip(scaled, LOWEST, HIGHEST))


def is_number(column) -> bool:
    """Whether a column is made of numbers: by its type, or by all its entries."""
    kind = getattr(column.dtype, "kind", None)  # of pandas
    if kind is None:
        return bool(column.dtype.is_numeric())
    if kind != "O" or str(column.dtype) != "object":
        return kind in "iuf"
    known = [value for value in column if not is_missing(value)]
    return bool(known) and all(isinstance(v, Real) and not is_bool(v) for v in known)


def numbers_of(column, name: str) -> np.ndarray:
    """A column as float64, NaN where it is missing."""
    try:
        if library_of(column) == "polars":
            found = column.cast(float, strict=True).to_numpy()
        elif str(column.dtype) == "object":
            found = np.array([np.nan if is_missing(v) else float(v) for v in column])
        elif isinstance(column, np.ndarray):
            found = column.astype(float)
        else:
            found = column.to_numpy(dtype=float, na_value=np.nan)
    except (TypeError, ValueError, ArithmeticError) as error:
        raise not_numbers(name, error) from error
    except Exception as error:
        if library_of(error) != "polars":
            raise
        raise not_numbers(name, error) from error
    if np.isinf(found).any():
        raise ValueError(f"Column {name!r} contains infinity. Remove or fill those rows first.")
    return np.asarray(found, dtype=float)


def not_numbers(name: str, error) -> ValueError:
    """What is wrong with a column that was made of numbers before."""
    return ValueError(
        f"Column {name!r} is made of numbers in the training rows and is not here: {error}. "
        "Convert it, or mark what is missing as NaN."
    )


def labels_of(column, name: str) -> list[str | None]:
    """The categories of a column as text, None where it is missing."""
    kind = getattr(column.dtype, "kind", "")
    if kind in ("M", "m", "c") or (kind == "" and column.dtype.is_temporal()):
        raise ValueError(
            f"Column {name!r} is of type {column.dtype}, which is neither numbers nor categories. "
            "Turn dates into numbers, such as days since one of them."
        )
    return [None if is_missing(value) else label_of(value) for value in column]


def label_of(value: Any) -> str:
    """A category as text; 1 and 1.0 are the same."""
    if isinstance(value, Real) and not is_bool(value):
        return repr(float(value))
    return str(value)


def is_bool(value: Any) -> bool:
    """Whether a value is a boolean."""
    return isinstance(value, bool | np.bool_)


def is_missing(value: Any) -> bool:
    """Whether an entry of a frame is missing: None, NaN or the NA of pandas."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, Real) and value != value
