"""Affinities without those of points with themselves: a zero diagonal, wherever it comes from.

Spectral clustering is about ties between points. With k(x, x) on the diagonal a point that is far
from the others is tied to itself above all, and makes a cluster of its own. Taken off a sum, the
diagonal would leave rounding in its place, which for such a point is all there is; so tiles are
made without it.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from ..compute import ScalarMap, array_namespace, is_sparse
from ..compute.arrays import Array, placement_of
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
        return HollowPairs(self, pairs, np.arange(X.shape[0])) if Z is None else pairs

    def diag(self, X: Array) -> Array:
        """Zeros."""
        xp = np if is_sparse(X) else array_namespace(X)
        return xp.zeros(X.shape[0], dtype=xp.float64, **placement_of(X))

    def own(self, X: Array) -> Array:
        """k(x, x), which products between two sets of points contain, (n,)."""
        return self.kernel.diag(X)

    def scalar_map(self) -> ScalarMap | None:
        """That of the kernel, with zeros on the diagonal."""
        inner = self.kernel.scalar_map()
        return None if inner is None else replace(inner, hollow=True)

    def spread(self, X: Array) -> float:
        """As without the zeros."""
        return self.kernel.spread(X)

    @property
    def live_tiles(self) -> int:  # type: ignore[override]
        """As of the kernel."""
        return self.kernel.live_tiles


class HollowPairs:
    """Tiles of a matrix whose row i has a zero in column ``own[i]``."""

    def __init__(self, kernel, pairs, own):
        self.kernel, self.pairs, self.own = kernel, pairs, own
        self.shape, self.dtype, self.symmetric = pairs.shape, pairs.dtype, pairs.symmetric
        # What a fused tile asks for.
        self.X, self.Z, self.origin = pairs.X, pairs.Z, pairs.origin
        self.prepared, self.itemsize = pairs.prepared, pairs.itemsize

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
        return HollowPairs(self.kernel, self.pairs.of_rows(index), self.own[index])
