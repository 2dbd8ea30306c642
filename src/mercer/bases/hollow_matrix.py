"""A given matrix of affinities, with zeros in place of its diagonal."""

import numpy as np

from ..compute import is_sparse
from .precomputed import PrecomputedBasis


class HollowMatrix(PrecomputedBasis):
    """A given matrix without its diagonal, which is never copied."""

    def gram(self, W):
        """(G - diag G) W."""
        return super().gram(W) - super().diagonal()[:, None] * W

    def diagonal(self):
        """Zeros."""
        return np.zeros(self.size)

    def to_dense(self):
        """A copy of G with zeros on its diagonal."""
        G = super().to_dense()
        np.fill_diagonal(G, 0)
        return G

    def columns(self, index, W):
        """(G - diag G)[:, index] W."""
        out = super().columns(index, W)
        out[index] -= super().diagonal()[index, None] * W
        return out

    def rows(self, index):
        """G[index] with zeros where a point meets itself."""
        G = np.array(super().rows(index))
        G[np.arange(len(index)), index] = 0
        return G

    def minor(self, index):
        """G[index][:, index] with zeros on its diagonal."""
        G = self.G[index][:, index]
        G = np.array(G.toarray() if is_sparse(G) else G, dtype=float)
        np.fill_diagonal(G, 0)
        return G
