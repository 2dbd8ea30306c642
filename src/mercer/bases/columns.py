"""The columns themselves as the basis: linear kernel PCA as PCA of d x d moments."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..compute import TiledEngine, array_namespace, is_sparse
from ..compute.arrays import Array, dtype_in
from ..kernels import Kernel
from ..kernels.base import rows_of
from .base import Basis, BasisRecipe


class Columns(BasisRecipe):
    """The d unit vectors, for the linear kernel and, on rows of unit length, the cosine.

    Feature space is then the space of the rows, so nothing is left out: the eigenproblem is that
    of the d x d scatter, summed in one pass over any number of rows. ``basis="auto"`` takes it
    where it is cheaper than the n x n problem, whose eigenvalues are the same.

    Notes
    -----
    Time O(n d^2 + d^3), memory O(d^2). Rows are summed about their mean, so that data far from
    the origin lose no digits. `eigenvectors_` are the scores over the roots of the eigenvalues,
    where the rows are in memory; those of an eigenvalue that is zero are zero.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mercer import KernelPCA
    >>> model = KernelPCA(5, basis="columns").fit(load_digits().data)
    >>> model.eigenvectors_.shape
    (1797, 5)
    """

    def build(
        self, kernel: Kernel, X: Array, engine: Any, rng: Any, n_components: int | None = None
    ) -> "ColumnBasis":
        """The columns of X; raises where the kernel is no inner product of rows."""
        if not kernel.is_inner_product:
            raise ValueError(
                "basis='columns' is for the linear and cosine kernels, and the kernel is "
                f"{kernel!r}. Use basis='auto'."
            )
        return ColumnBasis(kernel, X.shape[1], engine)


class ColumnBasis(Basis):
    """The unit vectors of the space of the rows: G = I, and the span is all of it.

    Parameters
    ----------
    kernel : Linear or Cosine
    size : int
        Number of columns.
    engine : TiledEngine
    """

    noun = "columns"

    def __init__(self, kernel: Kernel, size: int, engine: TiledEngine):
        self.kernel, self.size, self.engine = kernel, size, engine

    def precision(self, X: Array) -> Any:
        """Double: rows are summed unchanged."""
        return np.dtype(np.float64)

    def block_products(self, X: Array, W: Array = None, dtype: Any = None) -> Callable:
        """The rows of a block, of unit length for the cosine, times W."""
        X = self.engine.place(X)
        W = None if W is None else self.engine.asarray(W, np.float64)
        double = dtype_in(np if is_sparse(X) else array_namespace(X), "float64")

        def rows(block):
            Y = self.kernel.embed(rows_of(X, block, double))  # type: ignore[attr-defined]
            if W is not None:
                return Y @ W
            # An array of its own, since moments overwrite it.
            return Y.toarray() if is_sparse(Y) else array_namespace(Y).asarray(Y, copy=True)

        return rows
