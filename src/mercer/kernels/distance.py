"""Squared distances as a kernel: conditionally positive definite, and definite once centered."""

from typing import Any

import numpy as np

from ..compute.arrays import Array
from .base import SPREAD_SAMPLE, Kernel, centering_spread
from .pairs import Pairs


class SquaredDistance(Kernel):
    """``shift - d(x, z)^2 / 2`` as a kernel.

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

    def __init__(self, distance: Any, shift: float = 0.0):
        self.distance = distance
        self.shift = shift

    def pairs(self, X: Array, Z: Array = None, dtype: Any = None, store: int = 0) -> Pairs:
        """Tiles from blocks of distances."""
        return DistancePairs(self, X, Z, dtype)

    def diag(self, X: Array) -> Array:
        """The shift."""
        return np.full(X.shape[0], self.shift)

    def resolve(self, X: Array, rng: np.random.Generator | None = None) -> Kernel:
        """The shift that makes the entries small, from some of the points."""
        rows = X[:: -(-X.shape[0] // SPREAD_SAMPLE)]
        return SquaredDistance(
            self.distance, float(np.square(self.distance(rows, rows)).mean()) / 2
        )

    def spread(self, X: Array) -> float:
        """What centering cancels."""
        K = np.asarray(self(X[:: -(-X.shape[0] // SPREAD_SAMPLE)]), dtype=float)
        return centering_spread(lambda rows: K, K)


class DistancePairs(Pairs):
    """Tiles of shift - d^2 / 2. Points go to the function as they are, whatever the precision."""

    def tile(self, i, j, out):
        """Ask for a block, square and shift it before it is rounded."""
        D = np.square(self.kernel.distance(self.X[i], self.Z[j]), dtype=np.float64)
        D *= -0.5
        D += self.kernel.shift
        out[...] = D
        return out

    def tile_bytes(self, side):
        """The tile, the block of distances twice while it is made, and two blocks of rows."""
        return (self.itemsize + 16) * side * side + 16 * side * self.X.shape[1]
