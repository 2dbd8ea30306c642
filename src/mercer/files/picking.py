"""Rows of given numbers out of rows that come in blocks."""

from typing import Any

import numpy as np

from ..compute import stack_rows
from ..compute.arrays import Array


class RowPick:
    """Rows of given numbers, from blocks as they come.

    Parameters
    ----------
    indices : array of int
        Row numbers from 0, in the order wanted.
    """

    def __init__(self, indices: Any):
        self.indices = np.asarray(indices)
        self.count = 0
        self._found: list = []
        self._order: list[np.ndarray] = []

    def add(self, block: Array) -> None:
        """Take the rows that are in this block."""
        local = self.indices - self.count
        wanted = np.flatnonzero((local >= 0) & (local < block.shape[0]))
        if wanted.size:
            self._found.append(block[local[wanted]])
            self._order.append(wanted)
        self.count += block.shape[0]

    @property
    def rows(self) -> Array:
        """The rows in the order asked for, (k, d)."""
        return stack_rows(self._found)[np.argsort(np.concatenate(self._order))]
