"""Tables of numbers, categories and booleans: Gower's similarity, and the numbers it compares.

    k(x, z) = mean over columns of max(0, 1 - |x_j - z_j| / range_j)

A column whose range is 0 is compared by equality: a category by its code. Within the range this is
Gower (1971). Beyond it, where 1 - |x - z| / range would be negative, it is 0: the triangle is a
positive definite function on the whole line, so that new rows may lie anywhere.

Every column of a data frame becomes one of numbers that are compared by max(0, 1 - |x - z|).
Numbers are scaled to [0, 1] by their range in the training rows; a category is a whole number, so
that two are equal or have nothing in common, and ordered ones are numbers by their rank. What is
missing is as similar to an entry as values of its column are in the mean, which is the mean of
feature space. (A value of its own would make rows alike because of their gaps. Gower's rule, the
mean over columns that both rows have, serves as well, but its matrices have negative eigenvalues.)
"""

from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from numbers import Number, Real
from typing import Annotated, Any

import numpy as np
from sklearn.base import clone

from ..compute import array_namespace, is_sparse, on_device_of, to_numpy
from ..compute.arrays import Array, blocks_of
from ..exceptions import TableWarning, tell
from ..kernels import KERNELS, DirectKernel, Kernel, Pairs
from ..kernels.base import DifferenceKernel, farthest
from ..kernels.coordinate import add_coordinates, by_columns, columns_of, contiguous

# With at least so many rows, a column of texts that are all different is taken for names.
NAMED_ROWS = 10
# New numbers are clipped to [LOWEST, HIGHEST], which is 1 or more from all training rows' numbers;
# codes of missing entries and of categories that were not in the training rows.
LOWEST, HIGHEST, MISSING, UNKNOWN = -1.0, 2.0, -3.0, -1.0
# Values of a column that stand for what is missing in it.
USUAL = 32


@dataclass(eq=False, repr=False)
class Gower(DifferenceKernel, DirectKernel):
    """``mean_j max(0, 1 - |x_j - z_j| / range_j)``: the share of what two rows have in common.

    For tables of numbers in different units, categories and booleans. The estimators recognize the
    categories of data frames; of arrays all columns are numbers unless their range is given as 0.

    Parameters
    ----------
    ranges : float, array of shape (d,) or None
        Range of each column, or one for all; None takes them from the training rows. With 0 two
        entries are either equal or have nothing in common, as codes of categories.
    usual : array of shape (q, d) or None
        Values of each column: the similarity of an entry that is missing, which is -3, is the mean
        of theirs. None where -3 is a number; data frames bring their own.

    References
    ----------
    Gower (1971), A general coefficient of similarity and some of its properties.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Gower
    >>> X = np.array([[20.0, 0], [30.0, 0], [40.0, 2]])  # an age, and the code of a color
    >>> Gower(ranges=[20, 0])(X)
    array([[1.  , 0.75, 0.  ],
           [0.75, 1.  , 0.25],
           [0.  , 0.25, 1.  ]])
    """

    per_column = ("ranges", "usual")

    ranges: Any = None
    usual: Any = None

    @property
    def live_tiles(self) -> int:  # type: ignore[override]
        return 1 if self.usual is None else 3

    def origin(self, X: Array) -> Any:
        """None where one number has a meaning of its own."""
        return super().origin(X) if self.usual is None else None

    def diag(self, X: Array) -> Array:
        """1, less what is not known of rows with gaps."""
        if self.usual is None:
            return super().diag(X)
        gaps, means = self._gaps(X)
        return 1 - (gaps * (1 - 2 * means)).sum(axis=1) / X.shape[1]

    @property
    def needs_range(self) -> bool:  # type: ignore[override]
        return self.ranges is None

    def resolve(self, X: Array, rng: np.random.Generator | None = None) -> Kernel:
        """A copy with the ranges as numbers: those given, or those of X."""
        resolved = clone(self)
        if self.ranges is None:
            resolved.ranges = column_ranges(X)
        elif not np.isscalar(self.ranges):
            resolved.ranges = np.array(self.ranges, dtype=float)
        return resolved

    def check(self, X: Array) -> None:
        """Raise ValueError unless ranges are finite numbers that are not negative."""
        super().check(X)
        ranges = np.asarray(self.ranges, dtype=float)
        if ranges.ndim > 1 or not np.isfinite(ranges).all() or (ranges < 0).any():
            raise ValueError(
                f"ranges={self.ranges!r} must be a finite number that is not negative, or one for "
                "each column. If they were taken from the data, scale these: X / np.abs(X).max()."
            )
        if self.usual is not None:
            usual = np.asarray(self.usual)
            fits = usual.ndim == 2 and usual.shape[1] == X.shape[1] and usual.size
            if not fits or not np.isfinite(usual).all():
                raise ValueError(
                    f"usual has the shape {usual.shape}. Give finite numbers for each of "
                    f"{X.shape[1]} columns, (q, {X.shape[1]}), or None."
                )

    def pairs(self, X: Array, Z: Array = None, dtype: Any = None, store: int = 0) -> Pairs:
        """Tiles by loops over pairs, with a range for every column."""
        self._per_column(X.shape[1])
        return super().pairs(X, Z, dtype, store)

    def argument(self, X: Array) -> float:
        """Mean of |x| / range of the row farthest from the origin."""
        ranges = self._per_column(X.shape[1])
        # Codes of categories, which have no range, are small whole numbers.
        units = np.where(ranges > 0, ranges, 1.0)
        return farthest(X, self.origin(X), lambda rows: abs(contiguous(rows) / units).mean(axis=1))

    def spread(self, X: Array) -> float:
        """As of other kernels; inf where rounding to float32 could make unequal codes equal."""
        codes = self._per_column(X.shape[1]) == 0

        def rounding(rows):
            rows = contiguous(rows)[:, codes]
            return abs(rows - rows.astype(np.float32)).sum(axis=1)

        exact = not codes.any() or farthest(X, None, rounding) == 0
        return super().spread(X) if exact else np.inf

    def fill(self, X: Array, Z: Array, out: Array) -> None:
        """Sums of triangles over columns, then their mean."""
        add_coordinates("triangle_sums", triangle, X, Z, out, self._per_column(X.shape[1]))
        if self.usual is not None:
            (gaps, means), (others, their_means) = self._gaps(X), self._gaps(Z)
            # What both rows miss was counted as equal.
            out += gaps @ (their_means - others).T
            out += means @ others.T
        out *= 1.0 / X.shape[1]

    def _gaps(self, X: Array) -> tuple[Array, Array]:
        """Which entries are missing, 0 or 1, and how similar others are to that, (n, d) each.

        Of a missing entry half of what two of them are, so that the sum of two is that.
        """
        xp, U = array_namespace(X), on_device_of(np.asarray(self.usual), X)
        ranges = self._per_column(X.shape[1])

        def mean(A):
            columns = columns_of(A, xp.asarray(U, dtype=X.dtype), ranges)
            return xp.stack([triangle(*column).mean(axis=1) for column in columns], axis=1)

        gaps = xp.asarray(X == MISSING, dtype=X.dtype)
        both = mean(xp.asarray(U, dtype=X.dtype)).mean(axis=0) / 2
        return gaps, xp.where(gaps > 0, both, mean(X))

    def gradient(self, X: Array, Z: Array, W: Array) -> Array:
        """-sign(x - z) / (range d) within the range; zero at the kinks and for range 0."""
        xp, d = array_namespace(X), X.shape[1]

        def slope(x, z, size):
            inside = xp.asarray(abs(x - z) < size, dtype=X.dtype)
            return -xp.sign(x - z) * inside / ((size or 1.0) * d)

        return by_columns(slope, 1.0, X, Z, W, self._per_column(d))

    def _per_column(self, d: int) -> np.ndarray:
        """A range for each of d columns, (d,)."""
        if self.ranges is None:
            raise ValueError(
                "Gower takes the ranges of columns from the training rows. Call "
                "Gower().resolve(X), or give ranges=."
            )
        ranges = np.asarray(self.ranges, dtype=float)
        if ranges.shape not in ((), (d,)):
            raise ValueError(
                f"Gower has ranges of shape {ranges.shape}, and the rows have {d} columns. Give "
                "one number, or one for each column."
            )
        return np.broadcast_to(ranges, (d,))


def triangle(x, z, size: float):
    """max(0, 1 - |x - z| / size), or whether x = z where the size is 0."""
    xp, difference = array_namespace(x), abs(x - z)
    if size == 0:
        return xp.asarray(difference == 0, dtype=x.dtype)
    return xp.clip(1 - difference / size, 0, None)


def column_ranges(X) -> np.ndarray:
    """Largest minus least entry of every column, (d,), in float64."""
    if is_sparse(X):
        low, high = (f(axis=0).toarray().ravel().astype(float) for f in (X.min, X.max))
        return high - low
    blocks = (to_numpy(block) for block in blocks_of(X))
    ends = np.array([(block.min(axis=0), block.max(axis=0)) for block in blocks], dtype=float)
    with np.errstate(over="ignore"):  # `check` sees to it
        return ends[:, 1].max(axis=0) - ends[:, 0].min(axis=0)


class MixedTable:
    """Columns of numbers and texts by name, where no library of frames is needed.

    Parameters
    ----------
    columns : dict of str to array of shape (n,)
        Numbers, NaN where they are missing, or objects, None where they are.
    """

    def __init__(self, columns: dict[str, np.ndarray]):
        self._columns, self.columns = columns, list(columns)
        self.shape = (len(next(iter(columns.values()))), len(columns))

    def __getitem__(self, name: str) -> np.ndarray:
        return self._columns[name]

    def __len__(self) -> int:
        return self.shape[0]


@dataclass(frozen=True)
class TableEncoding:
    """How the columns of a data frame become numbers.

    Attributes
    ----------
    names : tuple of str
        Columns.
    labels : tuple
        For each column its categories, or None where it is made of numbers.
    low, size : arrays of shape (d,)
        Least number and range of each column of numbers; 0 and 1 for categories, 0 and the last
        rank for ordered ones.
    usual : array of shape (q, d) or None
        Values of each column, as numbers, that stand for missing ones.
    """

    names: tuple[str, ...]
    labels: tuple[tuple[str, ...] | None, ...]
    low: Annotated[np.ndarray, "d"]
    size: Annotated[np.ndarray, "d"]
    usual: Annotated[np.ndarray | None, "q d or None"] = None

    @classmethod
    def of(cls, X: Any) -> "TableEncoding | None":
        """The encoding of training rows, or None where they are complete numbers or no frame."""
        if not is_frame(X):
            return None
        names = tuple(map(str, X.columns))
        if len(set(names)) < len(names):
            raise ValueError(f"Two columns have the same name in {list(names)}. Give another one.")
        columns = [(X[name], str(name)) for name in X.columns]
        if all(is_number(c) and not np.isnan(numbers_of(c, name)).any() for c, name in columns):
            return None
        rules = [learned(column, name) for column, name in columns]
        usual = np.empty((USUAL, len(names)))
        for j, ((column, name), rule) in enumerate(zip(columns, rules, strict=True)):
            numbers = np.sort(encoded(column, name, *rule))
            numbers = numbers[np.searchsorted(numbers, MISSING, "right") :]
            usual[:, j] = numbers[((np.arange(USUAL) + 0.5) * len(numbers) / USUAL).astype(int)]
        labels, low, size = zip(*rules, strict=True)
        return cls(names, labels, np.array(low), np.array(size), usual)

    def apply(self, frame: Any) -> Any:
        """A frame of the same kind whose columns are numbers, or an array of a `MixedTable`."""
        if not is_frame(frame):
            raise ValueError(
                f"The model was fitted to a data frame with the columns {list(self.names)}, and "
                f"these rows are of type {type(frame).__name__}. Pass a data frame of pandas or "
                "polars with these columns."
            )
        columns = {str(name): frame[name] for name in frame.columns}
        if columns.keys() != set(self.names):
            raise ValueError(
                f"The data frame has the columns {list(columns)}, and the model was fitted to "
                f"{list(self.names)}. Pass the same columns."
            )
        rules = zip(self.names, self.labels, self.low, self.size, strict=True)
        numbers = {name: encoded(columns[name], name, *rule) for name, *rule in rules}
        if isinstance(frame, MixedTable):
            return np.column_stack(list(numbers.values()))
        return type(frame)(numbers)

    def kernel(self, asked: Any) -> Kernel:
        """The kernel of the encoded columns, each of which has the range 1."""
        if isinstance(asked, Gower) and asked.ranges is not None:
            raise ValueError(
                "Gower was given ranges=, and the columns of a data frame with categories or "
                "missing entries have theirs from the training rows. Leave ranges out."
            )
        return Gower(ranges=1.0, usual=self.usual)


def is_frame(X: Any) -> bool:
    """Whether X is a data frame in memory, of pandas, polars or our own."""
    return isinstance(X, MixedTable) or (
        type(X).__name__ == "DataFrame" and type(X).__module__.startswith(("pandas", "polars"))
    )


def learned(column: Any, name: str) -> tuple[tuple[str, ...] | None, float, float]:
    """Categories, or least number and range of a column."""
    if not is_number(column):
        if type(column.dtype).__name__ == "CategoricalDtype" and column.dtype.ordered:
            labels = tuple(map(str, labels_of(column.dtype.categories, name)))
            if any(label is not None for label in labels_of(column, name)):
                return labels, 0.0, float(max(len(labels) - 1, 1))
        labels = tuple(sorted({label for label in labels_of(column, name) if label is not None}))
        if len(labels) == len(column) >= NAMED_ROWS:
            tell(
                f"Column {name!r} has a different category in every row, which makes all rows "
                "equally unlike. If it names the rows, leave it out (in the command: --id).",
                TableWarning,
            )
        if labels:
            return labels, 0.0, 1.0
    elif not np.isnan(numbers := numbers_of(column, name)).all():
        low, high = float(np.nanmin(numbers)), float(np.nanmax(numbers))
        if not np.isfinite(high - low):
            raise ValueError(f"Column {name!r} has a range that float64 does not hold. Scale it.")
        return None, low, high - low
    raise ValueError(f"Column {name!r} is empty. Leave it out.")


def encoded(column: Any, name: str, labels: Any, low: float, size: float) -> np.ndarray:
    """One column as numbers, (n,)."""
    if labels is not None:
        codes = {None: MISSING} | {label: float(code) for code, label in enumerate(labels)}
        codes = {as_number(label): code for label, code in codes.items()} | codes
        pairs = ((label, as_number(label)) for label in labels_of(column, name))
        coded = np.array([codes.get(label, codes.get(same, UNKNOWN)) for label, same in pairs])
        if labels and (coded == UNKNOWN).any() and not (coded >= 0).any():
            tell(
                f"Column {name!r} has no category that the training rows had, such as "
                f"{labels[0]!r}: in this column these rows are like no training row. Pass the "
                "categories as they were in the fit."
            )
        return np.where(coded >= 0, coded / size, coded)
    numbers = numbers_of(column, name)
    with np.errstate(over="ignore"):
        # A column that was constant is compared by equality.
        scaled = (numbers - low) / size if size else np.where(numbers == low, 0.0, HIGHEST)
    return np.where(np.isnan(numbers), MISSING, np.clip(scaled, LOWEST, HIGHEST))


def is_number(column: Any) -> bool:
    """Whether a column is made of numbers: by its type, or by all its entries."""
    if is_polars(column):
        return bool(column.dtype.is_numeric())
    if str(column.dtype) != "object":
        return column.dtype.kind in "iuf"
    present = [value for value in column if not is_missing(value)]
    return bool(present) and all(map(is_real, present))


def numbers_of(column: Any, name: str) -> np.ndarray:
    """A column as float64, NaN where it is missing."""
    try:
        if is_polars(column):
            numbers = column.cast(float, strict=True).to_numpy()
        elif str(column.dtype) == "object":
            numbers = np.array([np.nan if is_missing(v) else float(v) for v in column])
        elif isinstance(column, np.ndarray):
            numbers = column.astype(float)
        else:
            numbers = column.to_numpy(dtype=float, na_value=np.nan)
    except Exception as error:  # each library of frames has errors of its own
        raise ValueError(
            f"Column {name!r} is made of numbers in the training rows and is not here: {error}. "
            "Convert it, or mark what is missing as NaN."
        ) from error
    if np.isinf(numbers).any():
        raise ValueError(f"Column {name!r} contains infinity. Remove or fill those rows first.")
    return np.asarray(numbers, dtype=float)


def labels_of(column: Any, name: str) -> list[str | None]:
    """The categories of a column as text, None where it is missing; 1 and 1.0 are the same."""
    dates = column.dtype.is_temporal() if is_polars(column) else column.dtype.kind in "Mmc"
    if dates or any(
        isinstance(v, date | timedelta) or type(v).__name__ == "Period" for v in column
    ):
        raise ValueError(
            f"Column {name!r} is of type {column.dtype}, which is neither numbers nor categories. "
            "Turn dates into numbers, such as days since one of them."
        )

    def label(value):
        if is_missing(value):
            return None
        return repr(float(value)) if is_real(value) else str(value)

    return [label(value) for value in column]


def as_number(label: str | None) -> str | None:
    """A category that is a number, as `labels_of` writes it; True and False are 1 and 0."""
    with suppress(TypeError, ValueError):
        return repr(float({"True": 1, "False": 0}.get(label, label)))  # type: ignore
    return label


def is_polars(column: Any) -> bool:
    return type(column).__module__.startswith("polars")


def is_real(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def is_missing(value: Any) -> bool:
    """Whether an entry of a frame is missing: None, NaN or the NA of pandas."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, Number | np.generic) and value != value


Gower.encoder = TableEncoding
KERNELS["gower"] = Gower
