"""A kernel matrix as the basis: G is given, with or without its diagonal; there are no points."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import diags

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

    def block_products(self, X: Array, W: Array = None, dtype: Any = None) -> Callable:
        """X W: the rows are the inner products already."""
        X = self.engine.place(X)
        W = None if W is None else self.engine.asarray(W)
        return lambda block: wide(X[block]) if W is None else product(X[block], W)

    def _row_floats(self) -> int:
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


class HollowMatrix(PrecomputedBasis):
    """A given matrix without its diagonal, which is never copied."""

    def gram(self, W: Array) -> Array:
        """(G - diag G) W."""
        return super().gram(W) - super().diagonal()[:, None] * W

    def diagonal(self) -> Array:
        """Zeros."""
        return np.zeros(self.size)

    def own_affinities(self) -> Array:
        """The diagonal of G."""
        return super().diagonal()

    def sparse(self) -> Any:
        """G without its diagonal, where it is sparse."""
        return self.G - diags(super().diagonal(), format="csr") if is_sparse(self.G) else None

    def to_dense(self) -> Array:
        """A copy of G with zeros on its diagonal."""
        G = super().to_dense()
        np.fill_diagonal(G, 0)
        return G

    def columns(self, index: Array, W: Array) -> Array:
        """(G - diag G)[:, index] W."""
        out = super().columns(index, W)
        out[index] -= super().diagonal()[index, None] * W
        return out

    def rows(self, index: Array) -> Array:
        """G[index] with zeros where a point meets itself."""
        G = np.array(super().rows(index))
        index = np.arange(self.size)[index]  # also of a slice
        G[np.arange(len(index)), index] = 0
        return G

    def minor(self, index: Array) -> Array:
        """G[index][:, index] with zeros on its diagonal."""
        G = self.G[index][:, index]
        G = np.array(G.toarray() if is_sparse(G) else G, dtype=float)
        np.fill_diagonal(G, 0)
        return G


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
