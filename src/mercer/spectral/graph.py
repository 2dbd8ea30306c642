"""Sparse graphs: that of nearest neighbors, known for new rows as well, and the solver for them.

A row is tied with weight w/2 to each of its k nearest rows, and with w/2 more to those whose k
nearest it is among: A = (W + W') / 2, as scikit-learn has it with w = 1. A row counts as its own
nearest neighbor. With local widths w = exp(-d^2 / (r r')) for the distances r of both rows to the
last of their neighbors, whatever the density around them (Zelnik-Manor & Perona 2004).
"""

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from ..compute import TiledEngine, is_sparse, make_engine, row_blocks
from ..compute.arrays import Array
from ..fitting.problems import EPS
from ..operators import NormalizedGram, SymmetricOperator
from ..solvers import Arpack, Dense, Eigenpairs, Solver
from ..solvers.base import qr, rayleigh_ritz, ritz_evidence, silent
from .neighbors import Screen, nearest

# Rows of given distances that are sorted at once.
BLOCK_ROWS = 1024
# Weights below this would not be stored, and a tie lost with them.
LEAST_WEIGHT = 1e-300
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
    local : bool
        Whether weights go by local widths; else they are one.
    """

    matrix: Annotated[Any, "n n sparse"]
    radii: Annotated[np.ndarray, "n"]
    n_neighbors: Annotated[int, "[1, inf)"]
    points: Annotated[Any, "n d sparse or None"] = None
    local: bool = False

    @classmethod
    def of(cls, D: sparse.csr_matrix, local: bool, points: Array = None) -> "NeighborGraph":
        """The graph of the distances of every row to its neighbors, which are overwritten."""
        radii, counts = D.max(axis=1).toarray().ravel(), np.diff(D.indptr)
        D.data = weights(D.data, np.repeat(radii, counts), radii[D.indices], local)
        matrix = sparse.csr_matrix(D + D.T)
        matrix.data *= 0.5
        return cls(matrix, radii, int(counts.max()), points, local)

    def rows(self, X: Array, engine: TiledEngine | None = None) -> sparse.csr_matrix:
        """Affinities of the rows of X with the training rows, (len(X), n).

        X holds rows, or their distances to the training rows. A training row has the affinities
        that it had in the fit.
        """
        n, Z, shape = self.radii.size, self.points, (X.shape[0], self.radii.size)
        if Z is None:
            near = nearest_given(X, self.n_neighbors, strict=False)
            all_given = sparse.coo_matrix(X) if is_sparse(X) else None
            i, j = np.nonzero(self.radii >= X) if all_given is None else all_given.coords
            d = X[i, j] if all_given is None else all_given.data
            inside = d <= self.radii[j]
            i, j, d = i[inside], j[inside], d[inside]
        else:
            engine = make_engine() if engine is None else engine
            near = distance_matrix(*nearest(X, Z, self.n_neighbors, engine), n)
            i, j, d = Screen(Z, engine).within(X, self.radii)
        # The nearest row of each, if it has any.
        starts, counts = near.indptr[:-1], np.diff(near.indptr)
        first = np.append(near.indices, 0)[starts]
        at_zero = (np.append(near.data, np.inf)[starts] == 0) & (counts > 0)
        own = near.max(axis=1).toarray().ravel()
        ties = np.repeat(own, counts), self.radii[near.indices]
        near.data = weights(near.data, *ties, self.local)
        back = weights(d, own[i], self.radii[j], self.local)
        A = sparse.csr_matrix(0.5 * (near + sparse.csr_matrix((back, (i, j)), shape)))
        # Rounding may put a training row on either side of a radius that it defines; and its own
        # neighbors do not say whose neighbor it is.
        same = at_zero & (Z is not None or is_sparse(X))
        training, new = (sparse.diags(part.astype(float)) for part in (same, ~same))
        return training @ self.matrix[first] + new @ A


def weights(distances, left, right, local: bool) -> np.ndarray:
    """exp(-d^2 / (r r')), and next to nothing where a width is zero and the distance is not.

    Ones unless weights go by these `local` widths.
    """
    if not local:
        return np.ones(distances.size)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.where(distances > 0, (distances / left) * (distances / right), 0.0)
    return np.maximum(np.exp(-ratio), LEAST_WEIGHT)


def distance_matrix(index, distances, n: int) -> sparse.csr_matrix:
    """Neighbors and their distances, both (b, k), as a matrix (b, n); zeros are stored."""
    rows, k = index.shape
    parts = distances.ravel(), index.ravel(), np.arange(0, rows * k + 1, k)
    return sparse.csr_matrix(parts, shape=(rows, n))


def given_neighbors(index: Any, distances: Any, n: int | None = None) -> sparse.csr_matrix:
    """Distances to given neighbors among n rows, two arrays (b, k), as a sparse matrix (b, n)."""
    index, distances = np.asarray(index), np.asarray(distances, dtype=float)
    n = len(index) if n is None else n
    numbers = index.ndim == 2 and index.size and index.dtype.kind in "iu"
    if not numbers or index.shape != distances.shape or index.min() < 0 or index.max() >= n:
        types = f"{index.shape} of type {index.dtype} and {distances.shape}"
        numbers = f", with indices from {index.min()} to {index.max()}" if numbers else ""
        raise ValueError(
            "Given neighbors must be a pair (indices, distances), in this order, of arrays of one "
            f"shape, (n_samples, n_neighbors), with whole row numbers below {n:,}. Got shapes "
            f"{types}{numbers}."
        )
    twice = np.flatnonzero((np.diff(np.sort(index, axis=1), axis=1) == 0).any(axis=1))
    if twice.size:
        raise ValueError(
            f"Row {twice[0]} of the given neighbors has one of them twice. Give each row once, "
            "with one distance."
        )
    return distance_matrix(index, distances, n)


def nearest_given(D, k: int | None, strict: bool = True) -> sparse.csr_matrix:
    """The k nearest of given distances, nearest first; all of a sparse matrix for None.

    Unless it is `strict`, as many of a sparse matrix as there are.
    """
    if not is_sparse(D):
        blocks = row_blocks(D.shape[0], BLOCK_ROWS)
        near = [np.argpartition(D[block], (k or 1) - 1, axis=1)[:, :k] for block in blocks]
        index = np.concatenate(near)
        D = distance_matrix(index, np.take_along_axis(D, index, axis=1), D.shape[1])
    counts = np.diff(D.indptr)
    if strict and counts.min() < (k or 1):
        row = int(counts.argmin())
        raise ValueError(
            f"Row {row} has {counts[row]} given neighbors, and {k or 1} are asked for by "
            "n_neighbors. Give more distances, or n_neighbors='auto' for all that are given."
        )
    rows = np.repeat(np.arange(counts.size), counts)
    order = np.lexsort((D.indices, D.data, rows))
    if k is not None:
        order = order[np.arange(rows.size) - np.repeat(D.indptr[:-1], counts) < k]
        counts = np.minimum(counts, k)
    parts = D.data[order].astype(float), D.indices[order], np.append(0, np.cumsum(counts))
    return sparse.csr_matrix(parts, shape=D.shape)


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
        Restarts; None for 300.
    """

    reason = "the solver for sparse graphs of neighbors"

    _cap_name = "max_iter"

    max_iter: int | None = None

    vectors_held = Arpack.vectors_held

    def solve(self, operator, n_components, rng, tol=0.0, report=silent) -> Eigenpairs:
        """The pieces, then Lanczos on what is orthogonal to them; Lanczos alone without a graph."""
        if not isinstance(operator, NormalizedGram) or operator.basis.sparse() is None:
            return Arpack(self.max_iter).solve(operator, n_components, rng, tol, report)
        n, P = operator.shape[0], piece_vectors(operator)[:, :n_components]
        k, U = P.shape[1], P.toarray()
        # Of more pieces than vectors rounding would give each row some of all.
        if k < n_components and n <= max(DENSE_ROWS, 2 * n_components):
            return Dense().solve(operator, n_components, rng, tol, report)
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
    """S + I - 2 P P' for eigenvectors P of S with the eigenvalue 1, which become the least.

    Lanczos stops at a share of each eigenvalue, which those of S near zero would never reach.
    """

    definite = True

    def __init__(self, operator: NormalizedGram, P: sparse.csr_matrix):
        self.S, self.P, self.shape = operator.sparse(), P, operator.shape

    def __matmul__(self, V):
        return self.S @ V + V - 2 * (self.P @ (self.P.T @ V))

    def to_dense(self) -> np.ndarray:
        """The matrix."""
        return (self.S - 2 * self.P @ self.P.T).toarray() + np.eye(self.shape[0])


def piece_vectors(operator: NormalizedGram) -> sparse.csr_matrix:
    """Orthonormal eigenvectors with the eigenvalue 1, one a connected piece, largest pieces first.

    A row without any tie has none: its eigenvalue is zero.
    """
    G = lasting_ties(operator.basis.sparse(), operator.degrees)
    count, piece = connected_components(G, directed=False)
    ties = np.bincount(piece, np.diff(G.indptr), minlength=count)
    volumes = np.bincount(piece, operator.degrees, minlength=count)
    largest_first = np.argsort(-volumes, kind="stable")
    entries = np.sqrt(operator.degrees / volumes[piece]), (np.arange(piece.size), piece)
    P = sparse.csc_matrix(entries, shape=(piece.size, count))
    return P[:, largest_first[ties[largest_first] > 0]].tocsr()


def lasting_ties(G: Any, degrees: np.ndarray) -> Any:
    """A graph without the ties that products with it lose to rounding.

    Rows far from all others are tied to them by next to nothing: pieces that only such ties join
    have the eigenvalue 1 each, as if there were none.
    """
    if not G.nnz or G.data.min() > EPS * degrees.max():
        return G
    G, root = sparse.csr_matrix(G, copy=True), np.sqrt(degrees)
    for block in row_blocks(G.shape[0], BLOCK_ROWS):
        ends = G.indptr[block.start : block.stop + 1]
        rows, inside = np.repeat(root[block], np.diff(ends)), slice(ends[0], ends[-1])
        G.data[inside] *= G.data[inside] > EPS * rows * root[G.indices[inside]]
    G.eliminate_zeros()
    return G
