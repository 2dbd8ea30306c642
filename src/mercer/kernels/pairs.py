"""The matrix of a kernel between two sets of rows, tile by tile."""

import threading
from abc import ABC, abstractmethod
from copy import copy
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..compute import array_namespace, is_sparse
from ..compute.arrays import Array, BlocksOnDemand, dtype_in, itemsize, placement_of
from .measures import float_dtype, rows_of

# Rows prepared at once.
EMBED_ROWS = 512


class Pairs(ABC):
    """The kernel matrix between the rows of X and Z, seen tile by tile.

    `prepared` is where an engine keeps rows in a form of its own.
    """

    #: What is taken off every row first, or None.
    origin = None

    def __init__(self, kernel: Any, X: Array, Z: Array, dtype: Any):
        if Z is not None and is_sparse(X) != is_sparse(Z):
            X, Z = (DenseBlocks(A) if is_sparse(A) else A for A in (X, Z))
        self.kernel, self.X = kernel, X
        self.Z = X if Z is None else Z
        self.symmetric = Z is None
        self.shape = (X.shape[0], self.Z.shape[0])
        xp = np if is_sparse(X) else array_namespace(X)
        self.dtype = dtype_in(xp, float_dtype(X) if dtype is None else dtype)
        self.prepared: dict = {}

    @abstractmethod
    def tile(self, i: slice, j: slice, out: Array) -> Array:
        """Fill `out` with rows i and columns j and return it."""

    def diagonal_tiles(self, start: int, out: Array) -> Array:
        """Tiles of k blocks of b rows along the diagonal, from a row on; into `out`, (k, b, b)."""
        for k in range(out.shape[0]):
            own = slice(start + k * out.shape[1], start + (k + 1) * out.shape[1])
            out[k] = self.tile(own, own, out[k])
        return out

    @abstractmethod
    def tile_bytes(self, side: int) -> int:
        """Bytes in flight while one side x side tile is made."""

    @property
    def kept_bytes(self) -> int:
        """Bytes of prepared rows kept from tile to tile."""
        return 0

    def of_rows(self, index: Array) -> "Pairs":
        """The same matrix for only some of its rows."""
        return self.kernel.pairs(self.X[index], self.Z, self.dtype)

    @property
    def itemsize(self) -> int:
        """Bytes of one number."""
        return itemsize(self.dtype)


class DenseBlocks(BlocksOnDemand):
    """Sparse rows whose blocks are dense, for when they meet dense ones."""

    namespace, ndim = np, 2

    def __init__(self, X):
        self.X, self.shape, self.dtype = X, X.shape, X.dtype

    def __getitem__(self, rows):
        """A block of rows as a NumPy array."""
        return self.X[rows].toarray()


class FactoredPairs(Pairs):
    """Tiles f(left(x) . right(z)), with the prepared rows kept while they fit `store`."""

    def __init__(self, kernel, X, Z, dtype, store):
        super().__init__(kernel, X, Z, dtype)
        width = X.shape[1] + kernel.extra_columns()
        self._left = self._right = None
        self._keeps, self._turning = False, threading.Lock()
        # Every column is met by many rows; the rows of a wide matrix come only once.
        kept = self.itemsize * width * self.shape[1] * (2 if self.symmetric else 1)
        if kept <= store and not is_sparse(self.X):
            rows = self._embed_all(width)
            self._left, self._right = (rows, None) if self.symmetric else (None, kernel.turn(rows))
            self._keeps = True

    @cached_property
    def origin(self) -> Any:  # type: ignore[override]
        """As the kernel finds it among the columns; who asks for sizes alone needs none."""
        return self.kernel.origin(self.Z)

    def tile(self, i, j, out):
        """One GEMM, one map."""
        left = self._embed(self.X, i) if self._left is None else self._left[i]
        with np.errstate(over="ignore", invalid="ignore"):  # `repair`, or whoever sums, sees to it
            if self.symmetric and i == j and self.kernel.squares(left):
                right, T = left, self.kernel.square(left, out)
            else:
                left, right = self._factors(left, j)
                T = multiply(left, right, out)
        rows, columns = (partial(self._exact_rows, A, k) for A, k in ((self.X, i), (self.Z, j)))
        return self.kernel.finish(self.kernel.repair(T, left, right, rows, columns))

    def diagonal_tiles(self, start, out):
        """All of them in one call, where rows are prepared and no product needs repair."""
        k, b, _ = out.shape
        rows, stack = slice(start, start + k * b), (k, b, -1)
        if self._left is None or not isinstance(out, np.ndarray):
            return super().diagonal_tiles(start, out)
        left, right = self._left[rows], self._turned()[rows]
        if not self.kernel.keeps_digits(left, right):
            return super().diagonal_tiles(start, out)
        with np.errstate(over="ignore", invalid="ignore"):
            T = np.matmul(left.reshape(stack), right.reshape(stack).swapaxes(1, 2), out=out)
        return self.kernel.finish(T.reshape(k * b, b)).reshape(k, b, b)

    def _factors(self, left, j):
        """Both factors of a tile with columns j."""
        if self._keeps:
            return left, self._turned()[j]
        right = self._embed(self.Z, j)
        # x . turn(z) is symmetric in x and z: the copy is made of the side with fewer rows.
        if left.shape[0] < right.shape[0]:
            return self.kernel.turn(left), right
        return left, self.kernel.turn(right)

    def _turned(self):
        """The right factor, made when a first tile needs it: a single one may not."""
        with self._turning:
            if self._right is None:
                self._right = self.kernel.turn(self._left)
        return self._right

    def tile_bytes(self, side):
        """The tile, what `finish` needs beside it, and four blocks of prepared rows."""
        width = self.X.shape[1] + self.kernel.extra_columns()
        if is_sparse(self.X):
            return self._sparse_bytes(side)
        return self.itemsize * (side * side * self.kernel.live_tiles + 4 * side * width)

    def _sparse_bytes(self, side):
        # The product of sparse rows is itself sparse, values and indices, before it fills
        # the tile, and rows take what they hold and not their width.
        fullest = max(int(np.diff(A.indptr).max(initial=0)) for A in (self.X, self.Z))
        rows = 4 * side * (fullest + self.kernel.extra_columns()) * (self.itemsize + 8)
        return side * side * (self.itemsize * (self.kernel.live_tiles + 2) + 8) + rows

    @property
    def kept_bytes(self):
        """Bytes of the prepared rows, if they are kept."""
        if not self._keeps:
            return 0
        copies = 2 if self.symmetric and self._turned() is not self._left else 1
        return copies * self.itemsize * self._turned().shape[0] * self._turned().shape[1]

    def of_rows(self, index):
        """The same matrix for only some of its rows; prepared rows are shared."""
        some = copy(self)
        some.X, some.symmetric, some.prepared = self.X[index], False, {}
        some.shape = (some.X.shape[0], self.shape[1])
        if self._keeps:
            some._right = self._turned()
        some._left = None if self._left is None else self._left[index]
        return some

    def _embed_all(self, width):
        """Every row of Z prepared, a block at a time: temporaries stay in the cache."""
        xp, m = array_namespace(self.Z), self.shape[1]
        if m <= EMBED_ROWS:
            return self._embed(self.Z, slice(0, m))
        rows = xp.empty((m, width), dtype=self.dtype, **placement_of(self.Z))
        for start in range(0, m, EMBED_ROWS):
            block = slice(start, min(start + EMBED_ROWS, m))
            rows[block] = self._embed(self.Z, block)
        return rows

    def _exact_rows(self, X, block):
        wide = np.float64 if is_sparse(X) else array_namespace(X).float64
        return rows_of(X, block, wide)

    def _embed(self, X, block):
        return self.kernel.embed(rows_of(X, block, self.dtype, self.origin), self.origin)


class DirectPairs(Pairs):
    """Tiles filled by loops."""

    def __init__(self, kernel, X, Z, dtype):
        super().__init__(kernel, X, Z, dtype)
        self.origin = kernel.origin(self.Z)

    def tile(self, i, j, out):
        """Hand both blocks of rows to the kernel."""
        blocks = ((self.X, i), (self.Z, j))
        left, right = (rows_of(A, k, self.dtype, self.origin) for A, k in blocks)
        self.kernel.fill(left, right, out)
        return out

    def tile_bytes(self, side):
        """The tile and two blocks of rows; sparse and shifted ones are there more than once."""
        blocks = 6 if is_sparse(self.X) or self.origin is not None else 2
        return self.itemsize * (side * side + blocks * side * self.X.shape[1])


def multiply(left, right, out):
    """left @ right' into `out`."""
    if is_sparse(left) or is_sparse(right):
        product = left @ right.T
        out[...] = product.toarray() if is_sparse(product) else product
        return out
    xp = array_namespace(out)
    return xp.matmul(left, right.T, out=out)
