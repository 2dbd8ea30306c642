"""The graph of nearest neighbors as affinities: sparse, and known for new rows as well.

A row is tied with weight 1/2 to each of its k nearest rows, and with 1/2 more to those whose k
nearest it is among: A = (C + C') / 2 with C the 0-1 matrix of neighbors, as scikit-learn has it. A
row counts as its own nearest neighbor.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors, sort_graph_by_row_values

from ..compute import is_sparse
from ..compute.arrays import Array

# Distances made at once for new rows.
BLOCK_ENTRIES = 2**22


@dataclass(frozen=True)
class NeighborGraph:
    """Affinities of n training rows by their nearest neighbors, and of new rows with these.

    Attributes
    ----------
    matrix : sparse matrix of shape (n, n)
        The affinities.
    radii : array of shape (n,)
        Distance of every row to the last of its neighbors.
    n_neighbors : int
    points : array or sparse matrix of shape (n, d), or None
        The rows; None where distances are given.
    """

    matrix: Any
    radii: np.ndarray
    n_neighbors: int
    points: Any = None

    @classmethod
    def of(cls, X: Array, n_neighbors: int, n_jobs: int | None, given: bool) -> "NeighborGraph":
        """The graph of the rows of X, or of the distances X (n, n) where they are `given`."""
        metric = "precomputed" if given else "minkowski"
        X = sorted_distances(X) if given else X
        search = NearestNeighbors(n_neighbors=n_neighbors, metric=metric, n_jobs=n_jobs).fit(X)
        distances, index = search.kneighbors(X)
        C = neighbor_matrix(index, X.shape[0])
        matrix = sparse.csr_matrix(0.5 * (C + C.T))
        return cls(matrix, distances[:, -1].copy(), n_neighbors, None if given else X)

    def rows(self, X: Array, n_jobs: int | None = None) -> sparse.csr_matrix:
        """Affinities of the rows of X with the training rows, (len(X), n).

        X holds rows, or their distances to the training rows. A training row has the affinities
        that it had in the fit.
        """
        return self._of_distances(X) if self.points is None else self._of_points(X, n_jobs)

    def _of_distances(self, X):
        X = sorted_distances(X)
        n = self.radii.size
        search = NearestNeighbors(n_neighbors=self.n_neighbors, metric="precomputed")
        C = neighbor_matrix(search.fit(sparse_zeros(n)).kneighbors(X)[1], n)
        near = sparse.coo_matrix(X) if is_sparse(X) else None
        if near is not None:
            kept = near.data <= self.radii[near.col]
            place = (near.row[kept], near.col[kept])
            R = sparse.csr_matrix((np.ones(kept.sum()), place), shape=X.shape)
        else:
            R = sparse.csr_matrix((self.radii >= X).astype(float))
        return sparse.csr_matrix(0.5 * (C + R))

    def _of_points(self, X, n_jobs):
        search = NearestNeighbors(n_neighbors=self.n_neighbors, n_jobs=n_jobs).fit(self.points)
        step = max(1, BLOCK_ENTRIES // self.radii.size)
        blocks = (X[i : i + step] for i in range(0, X.shape[0], step))
        return sparse.vstack([self._block(block, search) for block in blocks], format="csr")

    def _block(self, X, search):
        index = search.kneighbors(X, return_distance=False)
        C = neighbor_matrix(index, self.radii.size)
        R = sparse.csr_matrix((pairwise_distances(X, self.points) < self.radii).astype(float))
        A = 0.5 * (C + R)
        # Rounding may put a training row on either side of a radius that it defines.
        first = index[:, 0]
        same = equal_rows(X, self.points[first])
        here, elsewhere = (sparse.diags(part.astype(float)) for part in (same, ~same))
        return here @ self.matrix[first] + elsewhere @ A


def neighbor_matrix(index, n: int) -> sparse.csr_matrix:
    """The 0-1 matrix of neighbors, (len(index), n)."""
    rows, k = index.shape
    starts = np.arange(0, rows * k + 1, k)
    return sparse.csr_matrix((np.ones(rows * k), index.ravel(), starts), shape=(rows, n))


def sorted_distances(D):
    """Distances with those of every row in rising order, as the search wants sparse ones."""
    return sort_graph_by_row_values(D, warn_when_not_sorted=False) if is_sparse(D) else D


def sparse_zeros(n: int) -> np.ndarray:
    """Distances that a search takes for those of the training rows, of which it reads the number.

    Strides of zero: one number in memory.
    """
    return np.broadcast_to(0.0, (n, n))


def equal_rows(X, Z) -> np.ndarray:
    """Whether rows are the same, one by one, (n,)."""
    if is_sparse(X) or is_sparse(Z):
        difference = abs(sparse.csr_matrix(X) - sparse.csr_matrix(Z))
        return np.asarray(difference.sum(axis=1)).ravel() == 0
    return (X == Z).all(axis=1)
