"""A kernel matrix as the basis: G is given, with or without its diagonal; there are no points."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import diags

from ..compute import TiledEngine, array_namespace, is_sparse, to_numpy
from ..compute.arrays import Array, is_foreign
from ..compute.engine import row_blocks, tile_sums
from ..kernels import Precomputed
from .base import GramBasis


class PrecomputedBasis(GramBasis):
    """The rows behind a given kernel matrix G, (m, m), which is never copied.

    New rows are given as their inner products with the basis, (n, m).
    """

    noun = "rows of a kernel matrix"
    #: Whether there are zeros in place of the diagonal.
    hollow = False

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
        """One number a row: only the result is held."""
        return 1

    def whitener(self, dtype: Any) -> Array:
        """Not used: the Gram matrix is the problem itself."""
        raise NotImplementedError("A precomputed kernel is decomposed as a Gram matrix.")

    def gram(self, W: Array) -> Array:
        GW = product(self.G, W)
        return GW - self._given_diagonal()[:, None] * W if self.hollow else GW

    def _given_diagonal(self) -> Array:
        """The diagonal of the matrix that was given."""
        if is_foreign(self.G):
            return wide(array_namespace(self.G).linalg.diagonal(self.G))
        return np.asarray(self.G.diagonal(), dtype=float)

    def diagonal(self) -> Array:
        return np.zeros(self.size) if self.hollow else self._given_diagonal()

    def sums(self) -> tuple[float, Any]:
        w = np.ones(self.size) if self.weights is None else self.weights
        if is_sparse(self.G):
            square, rows = w @ (self.G.multiply(self.G) @ w), self.G @ w
        else:
            there, blocks = self.engine.asarray(w), row_blocks(self.size, self.engine.stream_block)
            parts = [tile_sums(self.G[block], there[block], there) for block in blocks]
            square = sum(part[0] for part in parts)
            rows = np.concatenate([to_numpy(part[1]) for part in parts])
        removed = w * to_numpy(self._given_diagonal()) * self.hollow
        return float(square - removed @ removed), rows - removed

    def own_affinities(self) -> Array:
        return self._given_diagonal() if self.hollow else np.zeros(self.size)

    def sparse(self) -> Any:
        if not is_sparse(self.G):
            return None
        return self.G - diags(self._given_diagonal(), format="csr") if self.hollow else self.G

    def to_dense(self) -> Array:
        if is_foreign(self.G):
            xp = array_namespace(self.G)
            G = xp.astype(self.G, xp.float64, copy=True)
        else:
            G = np.array(self.G.toarray() if is_sparse(self.G) else self.G, dtype=float)
        if self.hollow:
            G[range(self.size), range(self.size)] = 0
        return G

    def columns(self, index: Array, W: Array) -> Array:
        out = product(self.G[:, index], self.engine.asarray(W))
        if self.hollow:
            out[index] -= self._given_diagonal()[index, None] * W
        return out

    def rows(self, index: Array) -> Array:
        G = wide(self.G[index])
        if not self.hollow:
            return G
        G, index = np.array(G), np.arange(self.size)[index]  # also of a slice
        G[np.arange(len(index)), index] = 0
        return G

    def minor(self, index: Array) -> Array:
        G = to_numpy(wide(self.G[index][:, index]))
        if self.hollow:
            G = np.array(G)
            np.fill_diagonal(G, 0)
        return G


class HollowMatrix(PrecomputedBasis):
    """A given matrix of affinities without its diagonal."""

    hollow = True


def product(G, W):
    """G W in float64; only NumPy multiplies arrays of two types."""
    if is_foreign(G):
        return wide(G @ array_namespace(G).astype(W, G.dtype))
    return np.asarray(G @ W, dtype=float)


def wide(G):
    """Rows of the matrix as a dense array of float64."""
    if is_foreign(G):
        xp = array_namespace(G)
        return xp.astype(G, xp.float64, copy=False)
    return np.asarray(G.toarray() if is_sparse(G) else G, dtype=float)
