"""-H D2 H / 2: squared distances, double centered, from a matrix, from data or on demand.

With G = -D2 / 2 this is the centered Gram matrix H G H, so classical scaling is kernel PCA
with the conditionally positive definite kernel -d(x, z)^2 / 2 and shares its tiles, its
single-precision draft and its start.
"""

from typing import Any

import numpy as np

from ..bases import AllPoints
from ..compute import TiledEngine
from ..compute.arrays import Array
from ..kernels import Linear, SquaredDistance
from .centered import CenteredGram


class MatrixDistance:
    """Distances from a matrix in memory or in a file; points are row numbers, (n, 1)."""

    def __init__(self, D: Array):
        self.D = D

    def __call__(self, rows, columns):
        """A block of the matrix; a slice of it where the points follow each other."""
        i, j = (run(points) for points in (rows, columns))
        if isinstance(i, slice) or isinstance(j, slice):
            return np.asarray(self.D[i, j])
        return np.asarray(self.D[np.ix_(i, j)])


class DoubleCentered(CenteredGram):
    """-H D2 H / 2 for squared distances D2.

    `of_matrix`, `of_distance` and `of_data` make one from a distance matrix, from a function
    that is asked for blocks, and from data whose distances are Euclidean; the last is the
    centered Gram matrix of the data themselves.
    """

    @classmethod
    def of_matrix(
        cls,
        D: Array,
        engine: TiledEngine,
        rng: np.random.Generator,
        n_components: int | None = None,
    ) -> "DoubleCentered":
        """From a symmetric matrix of distances, (n, n): an array or a memmap, read in tiles."""
        points = np.arange(D.shape[0], dtype=np.intp)[:, None]
        return cls.of_distance(MatrixDistance(D), points, engine, rng, n_components)

    @classmethod
    def of_distance(
        cls,
        distance: Any,
        X: Array,
        engine: TiledEngine,
        rng: np.random.Generator,
        n_components: int | None = None,
    ) -> "DoubleCentered":
        """From a function of two blocks of points, asked for tiles on and above the diagonal."""
        kernel = SquaredDistance(distance).resolve(X)
        return cls(AllPoints().build(kernel, X, engine, rng, n_components))

    @classmethod
    def of_data(
        cls,
        X: Array,
        engine: TiledEngine,
        rng: np.random.Generator,
        n_components: int | None = None,
    ) -> "DoubleCentered":
        """From the Euclidean distances of the rows of X: their inner products will do."""
        # Centering removes the mean anyway; removed first it does not cancel.
        X = X - X.mean(axis=0)
        return cls(AllPoints().build(Linear(), X, engine, rng, n_components))


def run(points) -> "slice | np.ndarray":
    """Row numbers as a slice where they are consecutive, else as an array."""
    index = points[:, 0].astype(np.intp)
    first = int(index[0])
    consecutive = index[-1] - first + 1 == index.size and bool(np.all(np.diff(index) == 1))
    return slice(first, first + index.size) if consecutive else index
