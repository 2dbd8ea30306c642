"""Products of a large matrix with few columns, the way round in which BLAS is fastest."""

import numpy as np

from .arrays import Array

# Columns from which double precision gains by the other way round.
TURNED_COLUMNS = 10


def times_few(A: Array, V: Array) -> Array:
    """A V for a V of a few columns.

    BLAS packs the large factor again for every few columns of V, and how fast it does that
    depends on the order in memory. As (V'A')' the product of a 1024 x 1024 matrix with 24 columns
    takes 0.7 of the time in double precision, and where A is the transpose of an array 0.5 in
    double and 0.8 in single precision (OpenBLAS 0.3.31, AVX-512).
    """
    if isinstance(A, np.ndarray) and is_turned(A, V.shape[1]):
        return (V.T @ A.T).T
    return A @ V


def is_turned(A: np.ndarray, columns: int) -> bool:
    """Whether the product is faster the other way round."""
    by_columns = A.strides[0] == A.itemsize < A.strides[1]
    return by_columns or (A.dtype == np.float64 and columns >= TURNED_COLUMNS)
