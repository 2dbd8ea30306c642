"""Sparse graphs: that of nearest neighbors, known for new rows as well, and the solver for them.

A row is tied with weight 1/2 to each of its k nearest rows, and with 1/2 more to those whose k
nearest it is among: A = (C + C') / 2 with C the 0-1 matrix of neighbors, as scikit-learn has it. A
row counts as its own nearest neighbor.
"""

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors, sort_graph_by_row_values

from ..compute import is_sparse
from ..compute.arrays import Array
from ..operators import NormalizedGram, SymmetricOperator
from ..solvers import Arpack, Dense, Eigenpairs, Solver
from ..solvers.base import Report, qr, rayleigh_ritz, ritz_evidence, silent

# Distances computed at once for new rows.
BLOCK_ENTRIES = 2**22
# Rows up to which the solver decomposes the matrix as a whole.
DENSE_ROWS = 300


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

    matrix: Annotated[Any, "n n sparse"]
    radii: Annotated[np.ndarray, "n"]
    n_neighbors: Annotated[int, "[1, inf)"]
    points: Annotated[Any, "n d sparse or None"] = None

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
        n = self.radii.size
        if self.points is None:
            X, search = sorted_distances(X), NearestNeighbors(metric="precomputed")
            # The search reads no more than the number of training rows: strides of zero.
            search.fit(np.broadcast_to(0.0, (n, n)))
            C = neighbor_matrix(search.kneighbors(X, self.n_neighbors)[1], n)
            if not is_sparse(X):
                return sparse.csr_matrix(0.5 * (C + (self.radii >= X)))
            near = sparse.coo_matrix(X)
            within = near.data <= self.radii[near.col]
            places = near.row[within], near.col[within]
            R = sparse.csr_matrix((np.ones(within.sum()), places), X.shape)
            return sparse.csr_matrix(0.5 * (C + R))
        search = NearestNeighbors(n_neighbors=self.n_neighbors, n_jobs=n_jobs).fit(self.points)
        step = max(1, BLOCK_ENTRIES // n)
        blocks = (X[i : i + step] for i in range(0, X.shape[0], step))
        return sparse.vstack([self._block(block, search) for block in blocks], format="csr")

    def _block(self, X, search):
        index = search.kneighbors(X, return_distance=False)
        C = neighbor_matrix(index, self.radii.size)
        R = sparse.csr_matrix((pairwise_distances(X, self.points) < self.radii).astype(float))
        A = 0.5 * (C + R)
        # Rounding may put a training row on either side of a radius that it defines.
        first = index[:, 0]
        if is_sparse(X) or is_sparse(self.points):
            difference = abs(sparse.csr_matrix(X) - sparse.csr_matrix(self.points[first]))
            same = np.asarray(difference.sum(axis=1)).ravel() == 0
        else:
            same = (self.points[first] == X).all(axis=1)
        training, new = (sparse.diags(part.astype(float)) for part in (same, ~same))
        return training @ self.matrix[first] + new @ A


def neighbor_matrix(index, n: int) -> sparse.csr_matrix:
    """The 0-1 matrix of neighbors, (len(index), n)."""
    rows, k = index.shape
    starts = np.arange(0, rows * k + 1, k)
    return sparse.csr_matrix((np.ones(rows * k), index.ravel(), starts), shape=(rows, n))


def sorted_distances(D):
    """Distances with those of every row in rising order, as the search wants sparse ones."""
    return sort_graph_by_row_values(D, warn_when_not_sorted=False) if is_sparse(D) else D


@dataclass(eq=False, repr=False)
class GraphArpack(Solver):
    """Lanczos on products with a sparse normalized graph.

    Each connected piece of the graph has the eigenvalue 1, with the roots of its degrees as the
    eigenvector. One vector at a time meets copies of a multiple eigenvalue only through rounding,
    and of six pieces it was seen to miss one: so these vectors are given, and only those beyond
    them are searched for. Of more pieces than vectors the largest are taken.

    Parameters
    ----------
    max_iter : int or None
        Restarts; None for ARPACK's own choice.
    """

    _cap_name = "max_iter"

    max_iter: int | None = None

    def solve(
        self,
        operator: Any,
        n_components: int,
        rng: np.random.Generator,
        tol: float = 0.0,
        report: Report = silent,
    ) -> Eigenpairs:
        """The pieces, then ARPACK on what is orthogonal to them."""
        n = operator.shape[0]
        if n <= max(DENSE_ROWS, 2 * n_components):
            return Dense().solve(operator, n_components, rng, tol, report)
        P = piece_vectors(operator)[:, :n_components]
        k, U = P.shape[1], P.toarray()
        values, pairs = np.ones(k), Eigenpairs(np.ones(k), U, np.zeros(k))
        if k < n_components:
            pairs = Arpack(self.max_iter, form=False).solve(
                Deflated(operator, P), n_components - k, rng, tol, report
            )
            V, _ = qr(pairs.vectors - P @ (P.T @ pairs.vectors))
            ritz, V, _ = rayleigh_ritz(V, operator @ V)
            U, values = np.hstack([U, V]), np.concatenate([values, ritz])
        seen = ritz_evidence(values, U, operator @ U, operator.square())
        residuals = np.sqrt(np.diag(seen.RR))
        return replace(pairs, values=values, vectors=U, residuals=residuals, evidence=(seen,))


class Deflated(SymmetricOperator):
    """S - P P' for eigenvectors P of S with the eigenvalue 1."""

    definite = False

    def __init__(self, operator: NormalizedGram, P: sparse.csr_matrix):
        self.S, self.P, self.shape = operator.sparse(), P, operator.shape

    def __matmul__(self, V):
        return self.S @ V - self.P @ (self.P.T @ V)

    def to_dense(self) -> np.ndarray:
        """The matrix."""
        return (self.S - self.P @ self.P.T).toarray()


def piece_vectors(operator: NormalizedGram) -> sparse.csr_matrix:
    """Orthonormal eigenvectors with the eigenvalue 1, one a connected piece, largest pieces first.

    A row without any tie has none: its eigenvalue is zero.
    """
    count, piece = connected_components(operator.sparse(), directed=False)
    sizes = np.bincount(piece, minlength=count)
    volumes = np.bincount(piece, operator.degrees, minlength=count)
    tied = np.flatnonzero(sizes > 1)
    tied = tied[np.argsort(-volumes[tied], kind="stable")]
    place = np.full(count, -1)
    place[tied] = np.arange(tied.size)
    rows = np.flatnonzero(place[piece] >= 0)
    entries = np.sqrt(operator.degrees[rows] / volumes[piece[rows]])
    shape = (operator.shape[0], tied.size)
    return sparse.csr_matrix((entries, (rows, place[piece[rows]])), shape=shape)
