"""Kernels made of something else: a matrix, distances, another kernel without its diagonal."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..compute import ScalarMap
from ..compute.arrays import Array
from .base import SPREAD_SAMPLE, Kernel, Pairs, centering_spread, same_for_all


class Precomputed(Kernel):
    """The data are the kernel matrix itself: (n, n) to fit, (m, n) to transform."""

    definite = False
    seconds = (1e-9, 0.0)  # to read it

    def pairs(self, X: Array, Z: Array = None, dtype: Any = None, store: int = 0) -> Pairs:
        """A matrix has no rows to compare."""
        raise TypeError("A precomputed kernel has no points: its matrix is the data.")

    def diag(self, X: Array) -> Array:
        """Raise ValueError: k(x, x) of new points is not part of a given matrix."""
        raise ValueError(
            "k(x, x) of new points is not part of a precomputed kernel matrix, so their "
            "reconstruction error is unknown. Use a kernel object or name instead."
        )


@dataclass(eq=False, repr=False)
class SquaredDistance(Kernel):
    """``shift - d(x, z)^2 / 2`` as a kernel: conditionally positive definite.

    Centering removes the shift, and with the mean of d^2 / 2 for it the matrix has small
    entries that single precision can hold: distances in many dimensions are all alike.

    Parameters
    ----------
    distance : callable
        ``distance(rows, columns)`` gives the distances, not squared, between two blocks of
        points, (a, b).
    shift : float
    """

    definite = False

    distance: Any
    shift: float = 0.0

    def pairs(self, X: Array, Z: Array = None, dtype: Any = None, store: int = 0) -> Pairs:
        return DistancePairs(self, X, Z, dtype)

    def diag(self, X: Array) -> Array:
        return np.full(X.shape[0], self.shift)

    def resolve(self, X: Array, rng: np.random.Generator | None = None) -> Kernel:
        """With the shift that makes the entries small, from some of the points."""
        plain = SquaredDistance(self.distance)
        rows = X[:: -(-X.shape[0] // SPREAD_SAMPLE)]
        return SquaredDistance(self.distance, -float(plain(rows, dtype=np.float64).mean()))

    def spread(self, X: Array) -> float:
        return centering_spread(self, X)


class DistancePairs(Pairs):
    """Tiles of shift - d^2 / 2. Points go to the function as they are, whatever the precision."""

    def tile(self, i, j, out):
        # Squared and shifted before it is rounded.
        D = np.square(self.kernel.distance(self.X[i], self.Z[j]), dtype=np.float64)
        D *= -0.5
        D += self.kernel.shift
        out[...] = D
        return out

    def tile_bytes(self, side):
        """The tile, the block of distances three times while it is made, and blocks of rows."""
        return (self.itemsize + 24) * side * side + 24 * side * self.X.shape[1]


@dataclass(eq=False, repr=False)
class Hollow(Kernel):
    """k(x_i, x_j) for i != j, and 0 for i = j; between two sets of points just k.

    Spectral clustering is about ties between points. With k(x, x) on the diagonal a point that is
    far from the others is tied to itself above all, and makes a cluster of its own. Taken off a
    sum, the diagonal would leave rounding in its place, which for such a point is all there is; so
    tiles are made without it.

    Parameters
    ----------
    kernel : Kernel
    """

    definite = False

    kernel: Kernel

    def pairs(self, X: Array, Z: Array = None, dtype: Any = None, store: int = 0) -> Pairs:
        pairs = self.kernel.pairs(X, Z, dtype, store)
        return HollowPairs(self, pairs, np.arange(X.shape[0])) if Z is None else pairs

    def diag(self, X: Array) -> Array:
        return same_for_all(X, 0.0)

    def scalar_map(self) -> ScalarMap | None:
        inner = self.kernel.scalar_map()
        return None if inner is None else replace(inner, hollow=True)

    def spread(self, X: Array) -> float:
        return self.kernel.spread(X)

    def growth(self, X: Array) -> float:
        return self.kernel.growth(X)

    def entry_size(self, X: Array) -> float:
        return self.kernel.entry_size(X)

    @property
    def live_tiles(self) -> int:  # type: ignore[override]
        return self.kernel.live_tiles


class HollowPairs(Pairs):
    """Tiles of a matrix whose row i has a zero in column ``own[i]``."""

    def __init__(self, kernel, pairs, own):
        # With the rows, the origin and the prepared rows that a fused tile asks for.
        vars(self).update(vars(pairs))
        self.kernel, self.pairs, self.own = kernel, pairs, own

    def tile(self, i, j, out):
        T, own = self.pairs.tile(i, j, out), self.own[i]
        rows = np.flatnonzero((own >= j.start) & (own < j.stop))
        T[rows, own[rows] - j.start] = 0
        return T

    def tile_bytes(self, side):
        return self.pairs.tile_bytes(side)

    def of_rows(self, index):
        return HollowPairs(self.kernel, self.pairs.of_rows(index), self.own[index])
