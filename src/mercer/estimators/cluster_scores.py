"""Scores and errors of rows on a cluster: lazy Dask arrays with the chunks of the rows."""

from dataclasses import replace

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..bases.chunk_gram import ChunkGram
from ..compute import to_numpy
from ..compute.chunks import Chunks
from ..compute.cluster import Crew, constant, delayed
from ..compute.survey import checked
from ..expansion import KernelExpansion
from .cluster_fit import check_columns, make_crew, moved
from .validation import float_type


def lazy_scores(model, X):
    """Scores of a Dask array or dataframe, (n, r)."""
    check_is_fitted(model)
    return lazy_rows(model, X, KernelExpansion.scores, (model.expansion_.n_components,))


def lazy_errors(model, X):
    """Squared errors of a Dask array or dataframe, (n,)."""
    check_is_fitted(model)
    return lazy_rows(model, X, KernelExpansion.squared_errors, ())


def lazy_training_scores(model):
    """Scores of the rows that a model with all points as its basis was fitted to, (n, r)."""
    import dask.array as da

    scores = model._training_scores()
    return da.from_array(scores, chunks=(model.X_fit_.chunks[0], scores.shape[1]))


def lazy_rows(model, X, function, columns):
    """``function(expansion, rows)`` of every chunk, `columns` the shape of one row's result."""
    chunks = Chunks.of(X)
    check_columns(model, X, chunks, reset=False)
    dtype = np.dtype(float_type(chunks))
    crew = make_crew(model, chunks)
    clustered = isinstance(model.expansion_.basis, ChunkGram)
    return (by_pairs if clustered else by_chunks)(model, chunks, crew, function, columns, dtype)


def by_chunks(model, chunks: Chunks, crew: Crew, function, columns, dtype):
    """One task a chunk, with a model that holds its basis."""
    array = chunks.array
    return array.map_blocks(
        rows_result,
        both=constant((model.expansion_, function)),
        make=crew.engine(array.numblocks[0]),
        result=((*columns,), dtype),
        dtype=dtype,
        chunks=(array.chunks[0], *((size,) for size in columns)),
        drop_axis=() if columns else 1,
        meta=np.empty((0,) * (1 + len(columns)), dtype),
    )


def rows_result(rows, both, make, result, block_id=None):
    """The function of an expansion and the checked rows of a chunk."""
    (expansion, function), (columns, dtype) = both, result
    basis = expansion.basis
    rows = checked(rows, block_id[0] if block_id else 0, rows.shape[1])
    if not len(rows):
        return np.empty((0, *columns), dtype)
    basis.kernel.check(rows)
    there = replace(expansion, basis=moved(basis, make()))
    return to_numpy(function(there, rows)).astype(dtype, copy=False)


def by_pairs(model, chunks: Chunks, crew: Crew, function, columns, dtype):
    """A tree of tasks a chunk, one for each chunk of the rows that the model was fitted to."""
    import dask.array as da

    expansion, check, finish = model.expansion_, delayed(checked), delayed(frame_result)
    blocks = [check(rows, i, chunks.width) for i, rows in enumerate(chunks.blocks)]
    products = expansion.basis.lazy_products(blocks, expansion.frame)
    metric, kernel = expansion.metric, expansion.basis.kernel
    meta = np.empty((0,) * (1 + len(columns)), dtype)
    arrays = [
        da.from_delayed(
            finish(function, kernel, metric, rows, P, dtype), (length, *columns), meta=meta
        )
        for rows, P, length in zip(blocks, products, chunks.array.chunks[0], strict=True)
    ]
    return da.concatenate(arrays, allow_unknown_chunksizes=True)


def frame_result(function, kernel, metric, rows, P, dtype):
    """The function of rows whose products P with the frame's vectors are known."""
    expansion = KernelExpansion(FrameBasis(kernel, P), np.eye(len(metric)), metric)
    return function(expansion, rows).astype(dtype, copy=False)


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
