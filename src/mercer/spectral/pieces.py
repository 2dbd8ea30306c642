"""ARPACK on a sparse graph, whose connected pieces are known before."""

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from ..operators import NormalizedGram, SymmetricOperator
from ..solvers import Arpack, Dense, Eigenpairs, Solver
from ..solvers._linalg import column_norms
from ..solvers.base import Report, silent

# Rows up to which the matrix is decomposed as a whole.
DENSE_ROWS = 300


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

    def __init__(self, max_iter: int | None = None):
        self.max_iter = max_iter

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
        k = P.shape[1]
        if k == n_components:
            zeros = column_norms(operator @ P.toarray() - P.toarray())
            return Eigenpairs(np.ones(k), P.toarray(), zeros)
        pairs = Arpack(self.max_iter, form=False).solve(
            Deflated(operator, P), n_components - k, rng, tol, report
        )
        U = np.hstack([P.toarray(), pairs.vectors])
        values = np.concatenate([np.ones(k), pairs.values])
        residuals = column_norms(operator @ U - U * values)
        return replace(pairs, values=values, vectors=U, residuals=residuals)


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
    kept = np.flatnonzero(sizes > 1)
    kept = kept[np.argsort(-volumes[kept], kind="stable")]
    place = np.full(count, -1)
    place[kept] = np.arange(kept.size)
    rows = np.flatnonzero(place[piece] >= 0)
    entries = np.sqrt(operator.degrees[rows] / volumes[piece[rows]])
    shape = (operator.shape[0], kept.size)
    return sparse.csr_matrix((entries, (rows, place[piece[rows]])), shape=shape)
