"""D^1/2 P' G P D^1/2: the Gram matrix of weighted rows, centered at their weighted mean.

With whole weights its eigenvalues are those of the matrix with every row repeated as often as its
weight says, and its eigenvectors those of that matrix, times the roots of the weights.
"""

from typing import Any

import numpy as np

from ..bases import GramBasis
from ..compute import array_namespace, on_device_of, to_numpy
from ..compute.arrays import Array
from .base import SymmetricOperator


class WeightedGram(SymmetricOperator):
    """D^1/2 P' G P D^1/2 with D the weights and P = I - w 1' / sum w; P = I if not `center`.

    Parameters
    ----------
    basis : GramBasis
    weights : array of shape (n,)
        Positive.
    center : bool
    """

    even = False
    #: Row means are always taken in the precision of the products.
    means_rounding = 0.0

    def __init__(self, basis: GramBasis, weights: np.ndarray, center: bool = True):
        self.basis, self.weights, self.center = basis, weights, center
        self.shape = (basis.size, basis.size)
        self.definite = basis.kernel.definite
        self.weight = float(weights.sum())
        self._row_means: Any = None

    def __matmul__(self, V):
        root, w = self._placed(V)
        Y = root[:, None] * V
        if self.center:
            Y = Y - w[:, None] * (Y.sum(axis=0) / self.weight)
        Z = self.basis.gram(Y)
        if not bool(array_namespace(Z).isfinite(Z).all()):
            raise ValueError(
                f"{self.basis.kernel!r} gives values that are not finite on these data. Scale "
                "the data or change the kernel's parameters."
            )
        if self.center:
            Z = Z - (w @ Z) / self.weight
        return root[:, None] * Z

    def _placed(self, V):
        """The roots of the weights, and the weights, where V is and in its type."""
        xp = array_namespace(V)
        w = xp.asarray(on_device_of(self.weights, V), dtype=V.dtype)
        return w**0.5, w

    def vectors(self, V: Array) -> Array:
        """Vectors where the engine of the basis keeps its own."""
        return self.basis.engine.asarray(V)

    @property
    def draft(self) -> Any:
        """The operator over the basis's single-precision tiles."""
        if self.basis.draft is None:
            return None
        return WeightedGram(self.basis.draft, self.weights, self.center)

    @property
    def row_means(self) -> np.ndarray:
        """Weighted means of the rows of G, (n,)."""
        if self._row_means is None:
            w = self.basis.engine.asarray(self.weights[:, None] / self.weight)
            self._row_means = to_numpy(self.basis.gram(w)[:, 0]).astype(float)
        return self._row_means

    def start(self, k: int, rng: np.random.Generator) -> Array:
        """Random vectors, where those of the basis are."""
        return self.vectors(super().start(k, rng))

    def magnitude(self) -> float:
        """The largest diagonal entry before centering."""
        return float(np.max(self.weights * np.abs(to_numpy(self.basis.diagonal()))))

    def diagonal(self) -> np.ndarray:
        """The diagonal, (n,)."""
        own = to_numpy(self.basis.diagonal()).astype(float)
        if self.center:
            own = own - 2 * self.row_means + self.weights @ self.row_means / self.weight
        return self.weights * own

    def rows(self, index: Array) -> np.ndarray:
        """Some rows, (b, n)."""
        K = to_numpy(self.basis.rows(index)).astype(float)
        root = self.weights**0.5
        if self.center:
            means = self.row_means
            K += self.weights @ means / self.weight - means[None, :] - means[index][:, None]
        return root[index][:, None] * K * root

    def rows_times(self, index: Array, V: Array) -> Any:
        """Some rows of the product with V, (len(index), b)."""
        root, w = self._placed(V)
        Y = root[:, None] * V
        if self.center:
            Y = Y - w[:, None] * (Y.sum(axis=0) / self.weight)
        Z = self.basis.rows_times(index, Y)
        if self.center:
            Z = Z - on_device_of(self.row_means, Y) @ Y
        return root[index][:, None] * Z

    def visit(self, index: Array, W: Array) -> tuple[Any, Any]:
        """The minor of some rows, (b, b), and their product with W, (b, k)."""
        K = self.rows(index)
        return on_device_of(K[:, index], W), on_device_of(K @ to_numpy(W), W)

    def to_dense(self) -> Array:
        """The matrix itself."""
        K = self.basis.to_dense()
        root, w = self._placed(K)
        if self.center:
            means = w @ K / self.weight
            self._row_means = to_numpy(means).astype(float)
            K -= means
            K -= (means - w @ means / self.weight)[:, None]
        K *= root[:, None]
        K *= root
        return K
