"""Sparse rows whose inner products are the kernel: G = Y Y', multiplied as Y (Y' W)."""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any

import numpy as np
from scipy import sparse

from ..compute import row_blocks
from ..compute.arrays import Array, csr_of, some_of
from ..kernels.base import rows_of
from .base import GramBasis
from .points import PointGram, column_parts

# Bytes of the number of an entry, and of an entry with its column. Entries at once, after which
# progress is shown and an interrupt is heard, the least ones worth a task, and those of columns
# that a core's cache holds.
NUMBER_BYTES, ENTRY_BYTES, MOST_ENTRIES, CACHED_ENTRIES = 8, 16, 2**22, 2**18
LEAST_ENTRIES = 2**16


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
    #: Within a session whose budget holds them, Y in blocks of columns, or in blocks of rows by the
    #: number of the first.
    _columns: Any = None
    _held: dict[int, Any] | None = None

    @contextmanager
    def session(
        self,
        reserve: int = 0,
        checkpoint: Any = None,
        keeps_tiles: bool = True,
        forms_matrix: bool = False,
    ) -> "Iterator[GramBasis]":
        """The points with Y kept between products, by columns where the budget holds a copy of it.

        A product then reads each block of columns once, where rows are read there and back.
        """
        if forms_matrix:
            with super().session(reserve, checkpoint, keeps_tiles, forms_matrix) as working:
                yield working
            return
        gram = copy(self)
        # Vectors that outgrow the budget leave products a share of it.
        memory = self.engine.memory
        gram.engine = self.engine.with_memory(max(memory - reserve, memory // 8))
        gram.checkpoint = checkpoint
        entries, memory = self.points.nnz, gram.engine.memory
        if (NUMBER_BYTES + ENTRY_BYTES) * entries <= memory:
            gram._columns = column_blocks(self._embedded(slice(0, self.size)).tocsc())
        elif NUMBER_BYTES * entries <= memory // 2:
            blocks = row_blocks(self.size, gram._block_rows())
            gram._held = {block.start: self._embedded(block) for block in blocks}
        yield gram

    def gram(self, W: Array) -> Array:
        """Y Y' W, some columns of W at a time."""

        def make():
            if self._columns is not None:
                return self._by_columns(np.ascontiguousarray(W))
            out = np.empty((self.size, W.shape[1]))
            for part in column_parts(W.shape[1], self.points.shape[1], self.engine):
                self._times(self._sums(W[:, part]), out[:, part])
            return out

        return make() if self.checkpoint is None else self.checkpoint.product(make, W, self.dtype)

    def _by_columns(self, W: Array) -> Array:
        """The sum of A (A' W) over blocks A of columns of Y, some of them for each task."""
        blocks, threads = self._columns, self.engine.threads

        def sums(part):
            out = np.zeros((self.size, W.shape[1]))
            for A in blocks[part]:
                out += A @ (A.T @ W)
            return out

        most = MOST_ENTRIES * len(blocks) // max(self.points.nnz, 1)
        each = max(1, min(-(-len(blocks) // threads), most))
        return self.engine.sum_rows(sums, len(blocks), each)

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


def column_blocks(Y: Any) -> list:
    """A CSC matrix cut into columns that a cache holds, or whose entries outweigh a vector."""
    ends, first, entries = Y.indptr, 0, max(CACHED_ENTRIES, 4 * Y.shape[0])
    blocks = []
    while first < Y.shape[1]:
        last = int(np.searchsorted(ends, int(ends[first]) + entries, side="right")) - 1
        last = min(max(last, first + 1), Y.shape[1])
        inside = slice(ends[first], ends[last])
        parts = Y.data[inside], Y.indices[inside], ends[first : last + 1] - ends[first]
        blocks.append(sparse.csc_matrix(parts, shape=(Y.shape[0], last - first)))
        first = last
    return blocks
