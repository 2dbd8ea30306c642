"""A kernel matrix as the basis: G is given, and there are no points."""

import numpy as np

from ..compute import is_sparse
from ..kernels import Precomputed
from .base import GramBasis


class PrecomputedBasis(GramBasis):
    """The rows behind a given kernel matrix G, (m, m).

    New rows are given as their inner products with the basis, (n, m).
    """

    def __init__(self, G, engine):
        self.G, self.engine = G, engine
        self.size = G.shape[0]
        self.kernel = Precomputed()

    def stream(self, X, W=None):
        """X W: the rows are the inner products already."""
        return lambda block: X[block] if W is None else X[block] @ W

    def stream_width(self):
        """Nothing but the result."""
        return 1

    def whitener(self, dtype):
        """Not used: the Gram matrix is the problem itself."""
        raise NotImplementedError("A precomputed kernel is decomposed as a Gram matrix.")

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
        return dense(self.G[index])

    def minor(self, index):
        """G[index][:, index]."""
        return dense(self.G[index][:, index])


def dense(G) -> np.ndarray:
    """Some of the matrix as an array of float64."""
    return np.asarray(G.toarray() if is_sparse(G) else G, dtype=float)
