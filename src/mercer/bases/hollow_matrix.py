"""A given matrix of affinities, with zeros in place of its diagonal."""

from typing import Any

import numpy as np
from scipy.sparse import diags

from ..compute import is_sparse
from ..compute.arrays import Array
from .precomputed import PrecomputedBasis


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
