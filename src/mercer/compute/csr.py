"""CSR matrices from parts that nobody has vouched for, as a file gives them.

Compiled code follows `indptr` and `indices` without a look, so parts that contradict each other
end in a crash. They are compared in 64 bits: in 32, the differences of a forged `indptr` wrap
around and seem to rise.
"""

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

#: Most rows or columns: what an index of 64 bits can tell apart.
MOST = 2**62


def csr_from_parts(data, indices, indptr, columns: int) -> csr_matrix:
    """The matrix of shape (len(indptr) - 1, columns), or ValueError where parts contradict."""
    data, indices, indptr = (np.asarray(part) for part in (data, indices, indptr))
    check_size(columns)
    indices, indptr = whole_numbers(indices, "indices"), whole_numbers(indptr, "indptr")
    if data.ndim != 1 or data.dtype.kind not in "biuf":
        raise ValueError(f"sparse data are a {data.ndim}D array of type {data.dtype}")
    if not indptr.size or indptr[0] != 0 or (np.diff(indptr) < 0).any():
        raise ValueError("the indptr of a sparse matrix does not rise from 0")
    if not len(data) == len(indices) == indptr[-1]:
        raise ValueError(
            f"a sparse matrix has {len(data)} numbers, {len(indices)} indices and an indptr that "
            f"ends at {indptr[-1]}"
        )
    check_within(indices, columns, "column")
    return csr_matrix((data, indices, indptr), shape=(len(indptr) - 1, columns))


def whole_numbers(values, what: str) -> np.ndarray:
    """A vector of whole numbers in 64 bits."""
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise ValueError(f"the {what} of a sparse matrix are no whole numbers")
    # Unsigned numbers beyond 63 bits become negative, and are refused as such.
    return values.astype(np.int64, copy=False)


def check_within(places, size: int, what: str) -> None:
    """Raise ValueError unless all places are from 0 up to a size."""
    if places.size and (places.min() < 0 or places.max() >= size):
        raise ValueError(f"a sparse matrix has {what} numbers outside of 0 to {size - 1}")


def check_size(size: Any) -> None:
    """Raise ValueError unless this is a number of rows or columns."""
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or not 0 <= size < MOST:
        raise ValueError(f"a sparse matrix has {size!r:.60} for a number of rows or columns")
