"""A kernel matrix as the basis: G is given, and there are no points."""

import numpy as np

from ..kernels import Precomputed
from .base import Basis


class PrecomputedBasis(Basis):
    """The rows behind a given kernel matrix G, (m, m).

    New rows are given as their inner products with the basis, (n, m).
    """

    def __init__(self, G, engine):
        self.G, self.engine = G, engine
        self.size = G.shape[0]
        self.kernel = Precomputed()

    def project(self, X, W):
        """X W: the rows are the inner products already."""
        return np.asarray(X @ W, dtype=float)

    def gram(self, W):
        """G W."""
        return np.asarray(self.G @ W, dtype=float)

    def norms(self, X):
        """Not known for new rows."""
        return self.kernel.diag(X)

    def diagonal(self):
        """The diagonal of G."""
        return np.asarray(self.G.diagonal(), dtype=float)

    def to_dense(self):
        """A copy of G."""
        return np.array(self.G.toarray() if hasattr(self.G, "toarray") else self.G, dtype=float)

    def columns(self, index, W):
        """G[:, index] W."""
        return np.asarray(self.G[:, index] @ W, dtype=float)

    def rows(self, index):
        """G[index]."""
        return np.asarray(self.G[index], dtype=float)

    def minor(self, index):
        """G[index][:, index]."""
        return np.asarray(self.G[np.ix_(index, index)], dtype=float)
