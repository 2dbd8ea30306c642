"""Sparse rows whose inner products are the kernel: G = Y Y', multiplied as Y (Y' W)."""

from copy import copy
from typing import Any

import numpy as np

from ..compute import row_blocks
from ..compute.arrays import Array, csr_of, some_of
from ..kernels.base import rows_of
from .base import GramBasis
from .points import PointGram, column_parts

# Bytes of the number of an entry, and of an entry with its column. Entries at once, after which
# progress is shown and an interrupt is heard, and the least ones worth a task.
NUMBER_BYTES, ENTRY_BYTES, MOST_ENTRIES, LEAST_ENTRIES = 8, 16, 2**22, 2**16


class ProductGram(PointGram):
    """All points of a linear or cosine kernel as sparse rows Y, of unit length for the latter.

    A product takes two multiply-adds for each entry of the rows and column of W, however many
    rows and columns there are. No tile of G is made, but where the whole of it is asked for.

    Parameters
    ----------
    kernel, points, engine, single
        As in `PointGram`; the points are a CSR matrix.
    """

    draft = None
    #: Within a session whose budget holds them, blocks of Y by the number of their first row.
    _held: dict[int, Any] | None = None

    def _working(self, reserve: int, keeps_tiles: bool, forms_matrix: bool) -> GramBasis:
        """The points with Y kept between products, where the budget holds its numbers."""
        if forms_matrix:
            return super()._working(reserve, keeps_tiles, forms_matrix)
        gram = copy(self)
        # Vectors that outgrow the budget leave products a share of it.
        memory = max(self.engine.memory - reserve, self.engine.memory // 8)
        gram.engine = self.engine.with_memory(memory)
        if NUMBER_BYTES * self.points.nnz <= memory // 2:
            blocks = row_blocks(self.size, gram._block_rows())
            gram._held = {block.start: self._embedded(block) for block in blocks}
        return gram

    def gram(self, W: Array) -> Array:
        """Y Y' W, some columns of W at a time."""

        def make():
            out = np.empty((self.size, W.shape[1]))
            for part in column_parts(W.shape[1], self.points.shape[1], self.engine):
                self._times(self._sums(W[:, part]), out[:, part])
            return out

        return make() if self.checkpoint is None else self.checkpoint.product(make, W, self.dtype)

    def columns(self, index: Array, W: Array) -> Array:
        return self._times(self._rows_at(index).T @ W, np.empty((self.size, W.shape[1])))

    def rows_times(self, index: Array, W: Array) -> Array:
        some = self._rows_at(index)
        parts = column_parts(W.shape[1], self.points.shape[1], self.engine)
        return np.hstack([some @ self._sums(W[:, part]) for part in parts])

    def _sums(self, W: Array) -> Array:
        """Y' W, (d, b)."""
        W = np.ascontiguousarray(W)
        return self.engine.sum_rows(
            lambda block: self._block(block).T @ W[block], self.size, self._block_rows()
        )

    def _times(self, V: Array, out: Array) -> Array:
        """Y V, (n, b)."""
        rows = self._block_rows()
        self.engine.map_rows(lambda block: self._block(block) @ V, self.size, rows, out)
        return out

    def _block_rows(self) -> int:
        """Rows at once: a share of each thread, of no more entries than the budget has room for."""
        each, threads = max(1.0, self.points.nnz / self.size), self.engine.threads
        room = max(self.engine.memory / (16 * threads * ENTRY_BYTES), LEAST_ENTRIES)
        return max(1, min(-(-self.size // threads), int(min(room, MOST_ENTRIES) / each)))

    def _block(self, block: slice) -> Any:
        return self._embedded(block) if self._held is None else self._held[block.start]

    def _embedded(self, block: slice) -> Any:
        """Rows of Y, which share the numbers of the points where these are the same."""
        X, stop = self.points, min(block.stop, self.size)
        first, last = X.indptr[block.start], X.indptr[stop]
        numbers = X.data[first:last].astype(np.float64, copy=False), X.indices[first:last]
        places = X.indptr[block.start : stop + 1] - first
        return self.kernel.embed(csr_of(*numbers, places, X.shape[1]))

    def _rows_at(self, index: Array) -> Any:
        return self.kernel.embed(rows_of(some_of(self.points, index), slice(None), np.float64))
