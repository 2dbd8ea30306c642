"""Trigonometric moments: the sums over rows of the exponentials of a frequency grid."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..compute.arrays import Array

# Rounding of one sum in double precision.
UNIT = np.finfo(float).eps / 2


@dataclass(frozen=True)
class TrigonometricMoments:
    """t_q = sum of exp(-2 pi i h q.(x - c)) over rows x, for |q_a| <= 2 m_a: two of them add up.

    All that the Fourier grid needs to know of the rows, whatever their number.

    Attributes
    ----------
    count : float
        Number of rows, or their weight.
    sums : complex array of shape (4 m_1 + 1, ..., 4 m_d + 1)
        t, with t_0 in the middle.
    error : float
        Bound on the error of any t_q: of the transforms and of the sums over rows.
    """

    count: float
    sums: np.ndarray
    error: float

    def __add__(self, other: "TrigonometricMoments") -> "TrigonometricMoments":
        """Those of both sets of rows together."""
        count = self.count + other.count
        error = self.error + other.error + UNIT * count
        return TrigonometricMoments(count, self.sums + other.sums, error)

    def scaled(self, factor: float) -> "TrigonometricMoments":
        """The same rows with less weight, for data that drift."""
        error = factor * (self.error + UNIT * self.count)
        return TrigonometricMoments(self.count * factor, self.sums * factor, error)

    def __sizeof__(self):
        # A cluster's scheduler asks for it before it moves one.
        return object.__sizeof__(self) + self.sums.nbytes

    def at(self, q: Array) -> np.ndarray:
        """t at frequencies q, (..., d)."""
        middle = (np.array(self.sums.shape) - 1) // 2
        return self.sums[tuple(np.moveaxis(q + middle, -1, 0))]

    def trimmed(self, reach: Any) -> "TrigonometricMoments":
        """Only what a grid of smaller reach m_a needs."""
        middle = (np.array(self.sums.shape) - 1) // 2
        window = tuple(slice(c - 2 * m, c + 2 * m + 1) for c, m in zip(middle, reach, strict=True))
        return TrigonometricMoments(self.count, self.sums[window], self.error)
