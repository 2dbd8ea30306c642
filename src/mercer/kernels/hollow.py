"""Affinities without those of points with themselves: a zero diagonal, wherever it comes from.

Spectral clustering is about ties between points. With k(x, x) on the diagonal a point that is far
from the others is tied to itself above all, and makes a cluster of its own. Taken off a sum, the
diagonal would leave rounding in its place, which for such a point is all there is; so tiles are
made without it.
"""

from typing import Any

import numpy as np

from ..compute.arrays import Array
from .base import Kernel


class Hollow(Kernel):
    """k(x_i, x_j) for i != j, and 0 for i = j; between two sets of points just k.

    Parameters
    ----------
    kernel : Kernel
    """

    definite = False

    def __init__(self, kernel: Kernel):
        self.kernel = kernel

    def pairs(self, X: Array, Z: Array = None, dtype: Any = None, store: int = 0) -> Any:
        """Tiles of the kernel, with zeros where a point meets itself."""
        pairs = self.kernel.pairs(X, Z, dtype, store)
        return HollowPairs(pairs, np.arange(X.shape[0])) if Z is None else pairs

    def diag(self, X: Array) -> Array:
        """Zeros."""
        return np.zeros(X.shape[0])

    def own(self, X: Array) -> Array:
        """k(x, x), which products between two sets of points contain, (n,)."""
        return np.asarray(self.kernel.diag(X))

    def spread(self, X: Array) -> float:
        """As without the zeros."""
        return self.kernel.spread(X)

    @property
    def live_tiles(self) -> int:  # type: ignore[override]
        """As of the kernel."""
        return self.kernel.live_tiles


class HollowPairs:
    """Tiles of a matrix whose row i has a zero in column ``own[i]``."""

    def __init__(self, pairs, own):
        self.pairs, self.own = pairs, own
        self.shape, self.dtype, self.symmetric = pairs.shape, pairs.dtype, pairs.symmetric

    def tile(self, i, j, out):
        """The tile, then its zeros."""
        T = self.pairs.tile(i, j, out)
        own = self.own[i]
        rows = np.flatnonzero((own >= j.start) & (own < j.stop))
        T[rows, own[rows] - j.start] = 0
        return T

    def tile_bytes(self, side):
        """As without the zeros."""
        return self.pairs.tile_bytes(side)

    @property
    def kept_bytes(self) -> int:
        """As without the zeros."""
        return self.pairs.kept_bytes

    def of_rows(self, index):
        """The same matrix for only some of its rows."""
        return HollowPairs(self.pairs.of_rows(index), self.own[index])
