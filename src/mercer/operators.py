"""Symmetric operators: what a solver sees of a problem.

An operator has `shape`, `dtype`, ``@`` and `to_dense`, and says where to start
(`start`) and whether a cheaper version of it exists (`draft`). Solvers know nothing else:
no kernel, no data.
"""

from abc import ABC, abstractmethod

import numpy as np
from scipy.linalg import eigh

# Landmarks for the start block: a few hundred bring the first Ritz values within
# percents, and cost less than a tenth of one product for n above 10,000.
START_LANDMARKS = 300
# For few points a share of them, or the landmarks would cost more than a product.
START_SHARE = 10

# Eigenvalues of the landmarks' matrix below this share of the largest are rounding.
START_RCOND = 1e-7


class SymmetricOperator(ABC):
    """An n x n symmetric matrix known through its products."""

    shape: tuple[int, int]
    dtype = np.dtype(float)

    @abstractmethod
    def __matmul__(self, V):
        """The product with V, (n, b)."""

    @abstractmethod
    def to_dense(self) -> np.ndarray:
        """The matrix itself, in an array of its own."""

    @property
    def draft(self) -> "SymmetricOperator | None":
        """The same operator in single precision and cheaper, or None."""
        return None

    def start(self, k: int, rng) -> np.ndarray:
        """k vectors to start from, (n, k)."""
        return rng.standard_normal((self.shape[0], k))


class DenseOperator(SymmetricOperator):
    """A symmetric matrix held in memory."""

    def __init__(self, A):
        self.A = A
        self.shape = A.shape

    def __matmul__(self, V):
        return self.A @ V

    def to_dense(self):
        """A copy."""
        return np.array(self.A, dtype=float)


class CenteredGram(SymmetricOperator):
    """H G H for the Gram matrix G of a basis, H = I - 11'/n; G itself if not `center`.

    The row means of G, which the result needs and which would cost a pass of their own,
    come as one more column of the first product.
    """

    def __init__(self, basis, center: bool = True):
        self.basis, self.center = basis, center
        self.shape = (basis.size, basis.size)
        self._draft = None
        self._row_means: np.ndarray | None = None

    def __matmul__(self, V):
        if not self.center:
            return self.basis.gram(V)
        V = V - V.mean(axis=0)
        if self._row_means is None:
            ones = np.full((self.shape[0], 1), 1.0 / self.shape[0])
            AV = self.basis.gram(np.hstack([V, ones]))
            self._row_means, AV = AV[:, -1].copy(), AV[:, :-1]
        else:
            AV = self.basis.gram(V)
        return AV - AV.mean(axis=0)

    @property
    def draft(self):
        """The operator over the basis's single-precision tiles."""
        if self._draft is None and self.basis.draft is not None:
            self._draft = CenteredGram(self.basis.draft, self.center)
        return self._draft

    def rows_times(self, index, V) -> np.ndarray:
        """Some rows of the product with V, (len(index), b)."""
        if self.center:
            V = V - V.mean(axis=0)
        AV = self.basis.rows_times(index, V)
        return AV - self.row_means @ V if self.center else AV

    @property
    def row_means(self) -> np.ndarray:
        """Means of the rows of G, (n,); those of the draft will do."""
        if self._row_means is None and self.draft is not None:
            self._row_means = self.draft.row_means
        if self._row_means is None:
            self._row_means = self.basis.gram(np.full((self.shape[0], 1), 1 / self.shape[0]))[:, 0]
        return self._row_means

    def diagonal(self) -> np.ndarray:
        """The diagonal, (n,)."""
        if not self.center:
            return self.basis.diagonal()
        return self.basis.diagonal() - 2 * self.row_means + self.row_means.mean()

    def trace(self) -> float:
        """The sum of all eigenvalues: n times the total variance."""
        total = float(self.basis.diagonal().sum())
        return total - float(self.row_means.sum()) if self.center else total

    def rows(self, index) -> np.ndarray:
        """Some rows, (b, n)."""
        K = self.basis.rows(index)
        if self.center:
            K -= self.row_means
            K += (self.row_means.mean() - self.row_means[index])[:, None]
        return K

    def to_dense(self):
        """H G H; the row means are taken on the way."""
        K = self.basis.to_dense()
        if self.center:
            self._row_means = K.mean(axis=0)
            K -= self._row_means
            K -= (self._row_means - self._row_means.mean())[:, None]
        return K

    def start(self, k, rng):
        """Eigenvectors of a sample of the points, extended to all of them (Nystroem)."""
        n = self.shape[0]
        m = min(n, max(min(START_LANDMARKS, n // START_SHARE), 2 * k))
        index = np.sort(rng.choice(n, m, replace=False))
        K = self.basis.minor(index).astype(float)
        if self.center:
            K = K - K.mean(axis=0)
            K = K - K.mean(axis=1)[:, None]
        values, U = eigh((K + K.T) / 2, subset_by_index=(max(0, m - k), m - 1))
        kept = values > START_RCOND * max(values[-1], 0)
        V = self.basis.columns(index, U[:, kept] / values[kept]) if kept.any() else U[:0, :0]
        short = k - int(kept.sum())
        if short:
            noise = rng.standard_normal((n, short))
            V = np.hstack([V, noise]) if kept.any() else noise
        return V - V.mean(axis=0) if self.center else V
