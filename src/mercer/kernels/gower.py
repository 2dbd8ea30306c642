"""Gower's similarity: columns of any unit and kind, each counting the same.

    k(x, z) = mean over columns of max(0, 1 - |x_j - z_j| / range_j)

A column whose range is 0 is compared by equality: a category by its code. Within the range this is
Gower (1971). Beyond it, where 1 - |x - z| / range would be negative, it is 0: the triangle is a
positive definite function on the whole line, so that new rows may lie anywhere.
"""

from typing import Any

import numpy as np
from sklearn.base import clone

from ..compute import array_namespace, is_sparse, to_numpy
from ..compute.arrays import Array
from .base import DirectKernel, Kernel, centering_spread
from .coordinate import dense
from .measures import WIDE_ROWS, fits_single, median_row, same_for_all
from .pairs import Pairs


class Gower(DirectKernel):
    """``mean_j max(0, 1 - |x_j - z_j| / range_j)``: the share of what two rows have in common.

    For tables of numbers in different units, categories and booleans. The estimators recognize the
    categories of data frames; of arrays all columns are numbers unless their range is given as 0.

    Parameters
    ----------
    ranges : float, array of shape (d,) or None
        Range of each column, or one for all; None takes them from the training rows. With 0 two
        entries are either equal or have nothing in common, as codes of categories.

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

    def __init__(self, ranges: Any = None):
        self.ranges = ranges

    def resolve(self, X: Array, rng: np.random.Generator | None = None) -> Kernel:
        """A copy with the ranges as numbers: those given, or those of X."""
        resolved = clone(self)
        if self.ranges is None:
            resolved.ranges = column_ranges(X)
        elif not np.isscalar(self.ranges):
            resolved.ranges = np.array(self.ranges, dtype=float)
        return resolved

    def check(self, X: Array) -> None:
        """Ranges are finite numbers that are not negative."""
        ranges = np.asarray(self.ranges, dtype=float)
        if ranges.ndim > 1 or not np.isfinite(ranges).all() or (ranges < 0).any():
            raise ValueError(
                f"ranges={self.ranges!r} must be a finite number that is not negative, or one for "
                "each column. If they were taken from the data, scale these: X / np.abs(X).max()."
            )

    def pairs(self, X: Array, Z: Array = None, dtype: Any = None, store: int = 0) -> Pairs:
        """Tiles by loops over pairs, with a range for every column."""
        self._per_column(X.shape[1])
        return super().pairs(X, Z, dtype, store)

    def origin(self, X: Array) -> Any:
        """The median of some rows: differences stay, and single precision has less to hold."""
        return median_row(X)

    def spread(self, X: Array) -> float:
        """Mean of |x| / range of the row farthest from the origin, or what centering cancels."""
        if not fits_single(X):
            return np.inf
        ranges = self._per_column(X.shape[1])
        origin = None if is_sparse(X) else to_numpy(self.origin(X))
        # Codes of categories, which have no range, are small whole numbers.
        units, far = np.where(ranges > 0, ranges, 1.0), 0.0
        for start in range(0, X.shape[0], WIDE_ROWS):
            rows = dense(X[start : start + WIDE_ROWS])
            rows = np.abs(rows if origin is None else rows - origin) / units
            far = max(far, float(rows.mean(axis=1).max()))
        return max(far, centering_spread(self, X))

    def fill(self, X: Array, Z: Array, out: Array) -> None:
        """Sums of triangles over columns, then their mean."""
        ranges = self._per_column(X.shape[1])
        if isinstance(out, np.ndarray):
            from ..compute import _numba

            _numba.triangle_sums(dense(X), dense(Z), ranges.astype(out.dtype), out)
        else:
            out[...] = 0
            for k, size in enumerate(ranges.tolist()):
                out += triangle(X[:, k][:, None], Z[:, k][None, :], size)
        out *= 1.0 / X.shape[1]

    def gradient(self, X: Array, Z: Array, W: Array) -> Array:
        """-sign(x - z) / (range d) within the range; zero at the kinks and for range 0."""
        xp, ranges = array_namespace(X), self._per_column(X.shape[1])
        parts = []
        for k, size in enumerate(ranges.tolist()):
            difference = X[:, k][:, None] - Z[:, k][None, :]
            inside = xp.asarray(abs(difference) < size, dtype=X.dtype)
            slope = -xp.sign(difference) * inside / ((size or 1.0) * X.shape[1])
            parts.append(slope @ W)
        return xp.stack(parts, axis=1)

    def diag(self, X: Array) -> Array:
        """Ones."""
        return same_for_all(X, 1.0)

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
    """Largest less least entry of every column, (d,), in float64."""
    if is_sparse(X):
        low, high = (np.asarray(f(axis=0).toarray(), dtype=float)[0] for f in (X.min, X.max))
        return high - low
    blocks = (to_numpy(X[i : i + WIDE_ROWS]) for i in range(0, X.shape[0], WIDE_ROWS))
    ends = np.array([(block.min(axis=0), block.max(axis=0)) for block in blocks], dtype=float)
    with np.errstate(over="ignore"):  # `check` sees to it
        return ends[:, 1].max(axis=0) - ends[:, 0].min(axis=0)
