"""A kernel matrix as the basis: G is given, and there are no points."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..compute import TiledEngine, array_namespace, is_sparse, to_numpy
from ..compute.arrays import Array, is_foreign
from ..kernels import Precomputed
from .base import GramBasis


class PrecomputedBasis(GramBasis):
    """The rows behind a given kernel matrix G, (m, m).

    New rows are given as their inner products with the basis, (n, m).
    """

    noun = "rows of a kernel matrix"

    def __init__(self, G: Array, engine: TiledEngine):
        self.G, self.engine = G, engine
        self.size = G.shape[0]
        self.kernel = Precomputed()

    def block_products(
        self, X: Array, W: Array = None, dtype: Any = None
    ) -> Callable[[slice], Array]:
        """X W: the rows are the inner products already."""
        X = self.engine.place(X)
        W = None if W is None else self.engine.asarray(W)
        return lambda block: wide(X[block]) if W is None else product(X[block], W)

    def stream_width(self) -> int:
        """Nothing but the result."""
        return 1

    def whitener(self, dtype: Any) -> Array:
        """Not used: the Gram matrix is the problem itself."""
        raise NotImplementedError("A precomputed kernel is decomposed as a Gram matrix.")

    def gram(self, W: Array) -> Array:
        """G W."""
        return product(self.G, W)

    def norms(self, X: Array) -> Array:
        """Not known for new rows."""
        return self.kernel.diag(X)

    def diagonal(self) -> Array:
        """The diagonal of G."""
        if is_foreign(self.G):
            return wide(array_namespace(self.G).linalg.diagonal(self.G))
        return np.asarray(self.G.diagonal(), dtype=float)

    def sparse(self) -> Any:
        """G, where it is sparse."""
        return self.G if is_sparse(self.G) else None

    def to_dense(self) -> Array:
        """A copy of G."""
        if is_foreign(self.G):
            xp = array_namespace(self.G)
            return xp.astype(self.G, xp.float64, copy=True)
        return np.array(self.G.toarray() if is_sparse(self.G) else self.G, dtype=float)

    def columns(self, index: Array, W: Array) -> Array:
        """G[:, index] W."""
        return product(self.G[:, index], self.engine.asarray(W))

    def rows(self, index: Array) -> Array:
        """G[index]."""
        return wide(self.G[index])

    def minor(self, index: Array) -> Array:
        """G[index][:, index]."""
        return to_numpy(wide(self.G[index][:, index]))


def product(G, W):
    """G W in float64; only NumPy multiplies arrays of two types."""
    if is_foreign(G):
        return wide(G @ array_namespace(G).astype(W, G.dtype))
    return np.asarray(G @ W, dtype=float)


def wide(G):
    """Some of the matrix as a dense array of float64."""
    if is_foreign(G):
        xp = array_namespace(G)
        return xp.astype(G, xp.float64, copy=False)
    return np.asarray(G.toarray() if is_sparse(G) else G, dtype=float)
