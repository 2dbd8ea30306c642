"""H G H: the Gram matrix of a basis, centered.

Vectors are in the array library of the basis; samples and weights are small and on the host.
"""

from typing import Any

import numpy as np

from ..bases import GramBasis
from ..compute import array_namespace, to_numpy
from ..compute.arrays import Array
from ..fitting.checkpoint import Progress
from .base import SymmetricOperator, padded, sample_weights, start_sample

# Rounding of the row means of a draft, as a share of the kernel's own size.
DRAFT_ROUNDING = 1e-6

# Rows of an outer product made at once.
OUTER_ROWS = 512


class CenteredGram(SymmetricOperator):
    """H G H for the Gram matrix G of a basis, H = I - 11'/n; G itself if not `center`.

    The row means of G, which the result needs and which would cost a pass of their own,
    come as one more column of the first product.
    """

    def __init__(self, basis: GramBasis, center: bool = True):
        self.basis, self.center = basis, center
        self.shape = (basis.size, basis.size)
        self.definite = basis.kernel.definite
        self._draft: CenteredGram | None = None
        self.means_rounding = 0.0
        self._row_means: np.ndarray | None = None

    def __matmul__(self, V):
        if not self.center:
            return self._finite(self.basis.gram(V))
        xp = array_namespace(V)
        if self._row_means is None:
            # Of the size of V's entries, and a power of two, whose rounding is itself.
            unit = 2.0 ** -np.ceil(np.log2(self.shape[0]) / 2)
            ones = xp.full_like(V[:, :1], unit)
            AV = self.basis.gram(xp.concat([V, ones], axis=1))
            self._row_means, AV = AV[:, -1] / (unit * self.shape[0]), AV[:, :-1]
        else:
            AV = self.basis.gram(V)
        # G (V - 1 mean') without a change to V, which may have been rounded to be cheap.
        subtract_outer(AV, self._row_means, self.shape[0] * V.mean(axis=0))
        AV -= AV.mean(axis=0)  # the product is an array of its own
        return self._finite(AV)

    def _finite(self, AV):
        """AV itself, or an error that names the kernel."""
        if not bool(array_namespace(AV).isfinite(AV).all()):
            raise ValueError(
                f"{self.basis.kernel!r} gives values that are not finite on these data. Scale "
                "the data or change the kernel's parameters."
            )
        return AV

    def progress(self) -> Progress:
        """In the checkpoint of the basis, where it has one."""
        kept = self.basis.checkpoint
        return Progress() if kept is None else kept.next_loop()

    def leave(self, size: int) -> None:
        """The tiles do."""
        self.basis.leave(size)

    def vectors(self, V: Array) -> Array:
        """Vectors where the engine of the basis keeps its own."""
        return self.basis.engine.asarray(V)

    def rounded(self, V: Array) -> Array:
        """As the basis rounds them."""
        return self.basis.rounded(V)

    @property
    def draft(self) -> Any:
        """The operator over the basis's single-precision tiles."""
        if self._draft is None and self.basis.draft is not None:
            self._draft = CenteredGram(self.basis.draft, self.center)
        return self._draft

    def rows_times(self, index: Array, V: Array) -> np.ndarray:
        """Some rows of the product with V, (len(index), b)."""
        if self.center:
            V = V - V.mean(axis=0)
        AV = self.basis.rows_times(index, V)
        if not self.center:
            return AV
        # All rows tell their mean better than a draft does.
        return AV - (AV.mean(axis=0) if AV.shape[0] == self.shape[0] else self.row_means @ V)

    @property
    def row_means(self) -> np.ndarray:
        """Means of the rows of G, (n,); those of the draft will do."""
        if self._row_means is None and self.draft is not None:
            self._row_means = self.draft.row_means
            self.means_rounding = DRAFT_ROUNDING
        if self._row_means is None:
            ones = self.basis.engine.zeros((self.shape[0], 1)) + 1 / self.shape[0]
            self._row_means = self.basis.gram(ones)[:, 0]
        return self._row_means

    def magnitude(self) -> float:
        """The largest diagonal entry before centering."""
        return float(abs(self.basis.diagonal()).max())

    def diagonal(self) -> np.ndarray:
        """The diagonal, (n,)."""
        if not self.center:
            return self.basis.diagonal()
        return self.basis.diagonal() - 2 * self.row_means + self.row_means.mean()

    def trace(self) -> float:
        """The sum of all eigenvalues: n times the total variance."""
        total = float(self.basis.diagonal().sum())
        return total - float(self.row_means.sum()) if self.center else total

    def rows(self, index: Array) -> np.ndarray:
        """Some rows, (b, n)."""
        K = self.basis.rows(index)
        if self.center:
            K -= self.row_means
            K += (self.row_means.mean() - self.row_means[index])[:, None]
        return K

    def visit(self, index: Array, W: Array) -> tuple[np.ndarray, np.ndarray]:
        """The minor of some rows, (b, b), and their product with W, (b, k): one reading of them.

        Rows are centered after the product, which leaves the b x n block itself alone.
        """
        K = self.basis.rows(index)
        xp = array_namespace(W)
        # Only NumPy multiplies arrays of two types.
        K = K if xp is np else xp.astype(K, W.dtype)
        minor, product = xp.astype(K[:, index], xp.float64), xp.astype(K @ W, xp.float64)
        if self.center:
            means = self.row_means
            shifts = means.mean() - means[index]
            minor += shifts[:, None] - means[index]
            product += shifts[:, None] * W.sum(axis=0) - means @ W
        return minor, product

    def to_dense(self) -> Array:
        """H G H; the row means are taken on the way."""
        K = self.basis.to_dense()
        if self.center:
            self._row_means = self._finite(K.mean(axis=0))
            K -= self._row_means
            K -= (self._row_means - self._row_means.mean())[:, None]
        return K

    def start(self, k: int, rng: np.random.Generator) -> Array:
        """Eigenvectors of a sample of the points, extended to all of them (Nystroem)."""
        index = start_sample(self.shape[0], k, rng)
        K = self._finite(to_numpy(self.basis.minor(index)).astype(float))
        if self.center:
            K = K - K.mean(axis=0)
            K = K - K.mean(axis=1)[:, None]
        W = sample_weights(K, k)
        V = (
            self.basis.columns(index, W)
            if W.shape[1]
            else self.basis.engine.empty((self.shape[0], 0))
        )
        V = padded(V, k, rng)
        return V - V.mean(axis=0) if self.center else V


def subtract_outer(A: Array, a: Array, b: Array) -> None:
    """A <- A - a b' in place, in main memory a few rows at a time: no second array of its size."""
    rows = OUTER_ROWS if isinstance(A, np.ndarray) else A.shape[0]
    for start in range(0, A.shape[0], rows):
        block = slice(start, start + rows)
        A[block] -= a[block, None] * b
