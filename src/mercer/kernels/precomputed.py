"""A kernel given as its matrix."""

from typing import Any

from ..compute.arrays import Array
from .base import Kernel
from .pairs import Pairs


class Precomputed(Kernel):
    """The data are the kernel matrix itself: (n, n) to fit, (m, n) to transform."""

    definite = False

    def pairs(self, X: Array, Z: Array = None, dtype: Any = None, store: int = 0) -> Pairs:
        """A matrix has no rows to compare."""
        raise TypeError("A precomputed kernel has no points: its matrix is the data.")

    def diag(self, X: Array) -> Array:
        """Known only where a point meets itself, which new rows do not show."""
        raise ValueError(
            "k(x, x) of new points is not part of a precomputed kernel matrix, so their "
            "reconstruction error is unknown. Use a kernel object or name instead."
        )
