"""Lazy Dask arrays of what a row function gives: nothing is computed before it is asked for.

A model that holds its basis goes to every chunk of new rows. Where its basis is the rows of a
cluster, the products with them are summed over pairs of chunks first.
"""

from typing import Any

import numpy as np

from ..compute import match_sparsity, to_numpy
from ..fitting.expansion import KernelExpansion
from .chunks import Chunks, checked
from .tasks import Crew, constant, delayed


def by_chunks(function: Any, chunks: Chunks, crew: Crew) -> Any:
    """One task a chunk, with a model that holds its basis."""
    array, dtype = chunks.array, chunks.dtype
    return array.map_blocks(
        mapped_chunk,
        function=constant(function),
        make=crew.engine(array.numblocks[0]),
        dtype_=dtype,
        dtype=dtype,
        chunks=(array.chunks[0], *((size,) for size in function.tail)),
        drop_axis=() if function.tail else 1,
        meta=np.empty((0,) * (1 + len(function.tail)), dtype),
    )


def by_pairs(function: Any, chunks: Chunks) -> Any:
    """A tree of tasks a chunk, one for each chunk of the rows that the model was fitted to."""
    import dask.array as da

    expansion, dtype = function.expansion, chunks.dtype
    check, finish = delayed(checked), delayed(frame_result)
    blocks = [check(rows, i, chunks.width) for i, rows in enumerate(chunks.blocks)]
    products = expansion.basis.lazy_products(blocks, expansion.frame)
    metric, kernel = expansion.metric, expansion.basis.kernel
    meta = np.empty((0,) * (1 + len(function.tail)), dtype)
    arrays = [
        da.from_delayed(
            finish(function.verb, kernel, metric, rows, P, dtype),
            (length, *function.tail),
            meta=meta,
        )
        for rows, P, length in zip(blocks, products, chunks.array.chunks[0], strict=True)
    ]
    return da.concatenate(arrays, allow_unknown_chunksizes=True)


def lazy_like(values, array):
    """An array with a value for every row as a lazy one, with the chunks of a Dask array's rows."""
    import dask.array as da

    tail = [(size,) for size in values.shape[1:]]
    return da.from_array(values, chunks=(array.chunks[0], *tail))


def mapped_chunk(rows, function, make, dtype_, block_id=None):
    """A row function of a checked chunk, as an array of one type."""
    rows = checked(rows, block_id[0] if block_id else 0, rows.shape[1])
    if not rows.shape[0]:
        return np.empty((0, *function.tail), dtype_)
    # Tiles take rows of one kind, and landmarks may be dense where new rows are not.
    rows = match_sparsity(rows, function.expansion.basis.points)
    return to_numpy(function.moved(make())(rows, 0)).astype(dtype_, copy=False)


def frame_result(verb, kernel, metric, rows, P, dtype):
    """A verb of an expansion for rows whose products P with the frame's vectors are known."""
    basis: Any = FrameBasis(kernel, P)
    expansion = KernelExpansion(basis, np.eye(len(metric)), metric)
    return verb(expansion, rows).astype(dtype, copy=False)


class FrameBasis:
    """The mean and the directions themselves as a basis, for rows whose products P are known."""

    def __init__(self, kernel, P):
        self.kernel, self.P = kernel, P

    def project(self, X, W):
        """P W."""
        return self.P @ W

    def norms(self, X):
        """k(x, x)."""
        return self.kernel.diag(X)
