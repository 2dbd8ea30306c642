"""Rows of a Dask array or dataframe: the work is done where the chunks are.

A first pass checks, counts and samples the rows. Landmarks are chosen from the sample here, and a
second pass sums the moments of the chunks in a tree. With all points as the basis the solver runs
here, on vectors, and its products run on the workers.
"""

from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy import sparse

from ..compute import (
    TiledEngine,
    format_bytes,
    is_sparse,
    match_sparsity,
    parse_bytes,
    stack_rows,
    to_numpy,
)
from ..compute.arrays import Array, has_columns, is_dask
from ..compute.numbers import check_meaning, reason
from ..exceptions import InvalidRowsError
from ..files.base import as_rows, check_finite, float_of
from ..fitting.checkpoint import RowDigest
from ..fitting.costs import SPARE_VECTORS, client_vectors
from ..fitting.functions import CountOf
from ..kernels import Kernel
from . import tasks
from .base import Opening, Rows
from .chunk_gram import ChunkGram

# Small chunks are taken together until they have so many bytes, or so large a part of all rows:
# enough tasks for many cores. The same on any machine, since checkpoints and streams count them.
TOGETHER_BYTES, TOGETHER_PARTS = 2**24, 64
# Tasks that count the rows of more chunks than that.
COUNTING_TASKS = 256
# Groups of chunks after which a sum may be written to a checkpoint, and chunks of one at least.
GROUPS, GROUP_LEAST = 100, 32
# Share of the memory that rows of many small chunks may take to be kept between passes.
KEPT_SHARE = 0.1


class DaskRows(Rows):
    """The rows of a Dask collection.

    Parameters
    ----------
    X : dask array or dataframe
    memory : int, str or None
        Budget of every worker, and of what is done here.
    n_jobs : int or None
        Threads of a task.
    device : str or None
        Where tasks compute.
    """

    dtype: Any = None
    _elsewhere = True
    _collected, _written = "X.compute()", "transform(X).to_zarr('scores.zarr')"

    def __init__(
        self,
        X: Array,
        memory: int | str | None = None,
        n_jobs: int | None = None,
        device: Any = None,
    ):
        self.original, self.memory = X, memory
        self.names = [str(name) for name in X.columns] if has_columns(X) else None
        self._given = one_column(X)
        self._lengths = self._given.chunks[0]
        self.dtype = float_of(self._given.dtype)
        self.sparse = is_sparse(tasks.empty_like(self._given))
        form = sparse.csr_matrix if self.sparse else np.empty
        self._meta = form((0, 0), dtype=self.dtype)
        self.workers = tasks.Workers.of(self._given, memory, n_jobs, device)

    @property
    def shape(self) -> Any:
        """Rows, None where their number is not known, and columns."""
        n = sum(self._lengths)
        return None if np.isnan(n) else int(n), self._given.shape[1]

    def _partial_sums(self, function, title, again, done, checkpoint):
        """The sum of all chunks, added in a tree; where it is written, of groups of chunks."""
        import dask.array as da

        if isinstance(function, CountOf):
            yield self._count(), {}
            return
        array = self._passes if checkpoint is None else self._together
        n, lengths = array.shape[0], array.chunks[0]
        if n < 2:
            raise ValueError(f"Found array with {n} sample(s) while a minimum of 2 is required.")
        # In chunks of the same rows, so that a task gets the weights of its own.
        w = function.weights
        weights = [] if w is None else [da.from_array(w[:, None], (lengths, 1), name=False)]
        chunks = array.map_blocks(
            on_chunk,
            *weights,
            work=tasks.constant(function.weighing(None)),
            firsts=np.cumsum([0, *lengths]).tolist(),
            make=self.workers.engine(sum(map(bool, lengths))),
            dtype=object,
            chunks=((1,) * len(lengths), (1,)),
            meta=np.empty((0, 0), object),
        ).to_delayed()
        parts = [part for part, length in zip(chunks.ravel(), lengths, strict=True) if length]
        whole = checkpoint is None
        smallest = len(parts) if whole else max(GROUP_LEAST, -(-len(parts) // GROUPS))
        group, summed = done.get("group", smallest), done.get("chunks", 0)
        for first in range(summed, len(parts), group):
            part = tasks.run([tasks.tree_sum(parts[first : first + group])])[0]
            yield part, {"group": group, "chunks": first + group}

    def identity(self) -> list:
        """Lengths of the chunks, type, and a hash of each, made where the chunks are."""
        self._count()
        digest = tasks.delayed(lambda rows: RowDigest().add(rows))
        hashed = [digest(rows) for _, rows in tasks.filled(self._together)]
        return ["dask", list(self._lengths), self.shape[1], str(self.dtype), tasks.run(hashed)]

    def blocks(self) -> Any:
        """The chunks one after the other, each brought here in its turn."""
        for block in self._lazy.to_delayed().ravel():
            yield tasks.run([block])[0]

    def take(self, index: Array) -> Array:
        """Rows by number, brought here."""
        return tasks.take_rows(self._passes, index)

    def as_basis(self, kernel: Kernel, engine: TiledEngine, n_components: int | None) -> Any:
        """The Gram matrix by pairs of chunks, which stay on the workers."""
        r = n_components or 0
        vectors = client_vectors(self._count(), r)
        if vectors > engine.memory:
            return (
                f"the exact method keeps vectors of {format_bytes(vectors)} or more on the client, "
                f"and memory allows {format_bytes(engine.memory)}"
            )
        columns = 4 * (r + SPARE_VECTORS)
        return ChunkGram(kernel, self._together, engine, self.workers, self._entries, columns)

    def map(self, function: Any, out: Any = None, names: Any = None) -> Any:
        """A lazy array with the chunks of the rows, many small ones together."""
        self._check_stays(out)
        array, dtype = self._lazy, np.dtype(function.dtype or self.dtype)
        if isinstance(function.expansion.basis, ChunkGram):
            return function.expansion.basis.mapped(function, array)
        return array.map_blocks(
            mapped_chunk,
            function=tasks.constant(function),
            make=self.workers.engine(array.numblocks[0]),
            dtype_=dtype,
            dtype=dtype,
            chunks=(array.chunks[0], *((size,) for size in function.tail)),
            drop_axis=() if function.tail else 1,
            meta=np.empty((0,) * (1 + len(function.tail)), dtype),
        )

    def _count(self) -> int:
        """The lengths of the chunks, counted where they are not known."""
        if self.shape[0] is None:
            many = self._given.numblocks[0]
            meta = np.empty((0, 0), object)
            heights = self._given.map_blocks(height, dtype=object, meta=meta)
            groups = tasks.neighbors((1,) * many, -(-many // COUNTING_TASKS))
            counts = tasks.run(tasks.grouped(heights, groups, lambda lengths, _: lengths))
            self._lengths = tuple(n for part in counts for n in part)
        return self.shape[0]

    @property
    def _promised(self) -> tuple:
        """What chunks must be, see `checked`."""
        return self._meta, self.shape[1], self._lengths

    def _checked(self) -> Any:
        """The rows in floating point; chunks name what is wrong with them."""
        return self._given.map_blocks(
            checked,
            promised=tasks.constant(self._promised),
            dtype=self.dtype,
            chunks=(self._lengths, self._given.chunks[1]),
            meta=self._meta,
        )

    @cached_property
    def _together(self) -> Any:
        """The same, many small neighbors in one chunk: a pass costs a task for each."""
        import dask.array as da

        n, d = self._count(), self.shape[1]
        most = max(1, TOGETHER_BYTES // (self.dtype.itemsize * self._entries))
        groups = tasks.neighbors(self._lengths, min(most, -(-n // TOGETHER_PARTS)))
        if 2 * len(groups) > len(self._lengths):
            return self._checked()
        finish = tasks.constant(partial(stacked, promised=self._promised))
        blocks = tasks.grouped(self._given, groups, finish)
        lengths = [sum(self._lengths[group.start : group.stop]) for group in groups]
        parts = zip(blocks, lengths, strict=True)
        return da.concatenate([da.from_delayed(t, (m, d), meta=self._meta) for t, m in parts])

    @property
    def _lazy(self) -> Any:
        """Small chunks together where lengths are known; nothing is computed to know them."""
        return self._checked() if self.shape[0] is None else self._together

    @cached_property
    def _passes(self) -> Any:
        """Small chunks together, made once where there are many and all take little memory."""
        array = self._together
        size = array.shape[0] * self._entries * self.dtype.itemsize
        room = min(self.workers.cores * self.workers.core_memory, parse_bytes(self.memory))
        fewer = array.numblocks[0] < len(self._lengths)
        return array.persist() if fewer and size <= KEPT_SHARE * room else array

    @cached_property
    def _entries(self) -> int:
        """Numbers of a row: its columns, or for CSR about twice as many as in the first chunk."""
        d = self.shape[1]
        first = next((i for i, length in enumerate(self._lengths) if length), None)
        if not self.sparse or first is None:
            return d
        rows = tasks.run([self._checked().blocks[first]])[0]
        return min(d, 2 * -(-rows.nnz // rows.shape[0]) + 2)


def open_dask(X: Any, how: Opening) -> DaskRows:
    """Rows of a Dask collection, all of whose columns are numbers."""
    if how.names is None and how.all_columns and has_columns(X) and X.ndim == 2:
        how.check_all_read(
            [str(name) for name, kind in X.dtypes.items() if not is_number(kind)],
            "this one is on a cluster, with",
            "X.compute() if it fits into memory, or a sample of it, or its columns of numbers",
        )
    return DaskRows(X, how.memory, how.n_jobs, how.device)


def one_column(X) -> Any:
    """A Dask array or dataframe as an array of numbers whose chunks have all columns."""
    array = frame_rows(X) if has_columns(X) and X.ndim == 2 else X
    if not hasattr(array, "ndim"):
        raise TypeError(
            f"X is a {type(X).__name__} of Dask. Pass a Dask array or dataframe, for example "
            "X.to_dataframe() of a bag."
        )
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise ValueError(
            f"Expected a 2D Dask array of numbers, got a {array.ndim}D one of type "
            f"{array.dtype} instead. Convert or reshape it; of a series pass X.to_frame()."
        )
    return array.rechunk({1: -1}, method="tasks") if array.numblocks[1] > 1 else array


def frame_rows(X) -> Any:
    """A dataframe as an array, its columns checked and in one floating type."""
    names = [str(name) for name, kind in X.dtypes.items() if not is_number(kind)]
    if names:
        raise ValueError(
            f"Columns {names} of the dataframe are no numbers. Leave them out or encode them "
            "before fitting."
        )
    single = all(kind == np.float32 for kind in X.dtypes)
    meta = np.empty((0, len(X.columns)), np.float32 if single else np.float64)
    return X.map_partitions(frame_chunk, list(X.columns), meta.dtype, meta=meta)


def frame_chunk(frame, columns: list, dtype, partition_info=None) -> Any:
    """The rows of a partition, its columns those of the dataframe; a missing entry is NaN."""
    name = f"Chunk {(partition_info or {}).get('number', '?')} of X"
    check_type(frame, name)
    if list(frame) != columns:
        raise InvalidRowsError(
            f"{name} has the columns {list(frame)!s:.200}, and {columns} were promised. Check the "
            f"function that makes it, or pass X.map_partitions(lambda part: part[{columns}])."
        )
    try:
        return frame.to_numpy(dtype=dtype, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise reason(frame, error, name) from error


def height(rows, block_id=(0, 0)) -> int:
    """The number of rows of a chunk."""
    check_type(rows, f"Chunk {block_id[0]} of X")
    return rows.shape[0]


def check_type(chunk: Any, name: str) -> None:
    """Raise InvalidRowsError for a chunk that is no array, or whose values mean other numbers."""
    if not isinstance(getattr(chunk, "shape", None), tuple) or not hasattr(chunk, "ndim"):
        raise InvalidRowsError(
            f"{name} is of type {type(chunk).__name__}, and an array of rows was promised. Check "
            "the function that makes it."
        )
    try:
        check_meaning(chunk)
    except InvalidRowsError as error:
        raise InvalidRowsError(f"{name} is not what was promised: {error}") from error


def is_number(kind: Any) -> bool:
    """Whether a type of a data frame's column is one of numbers."""
    return getattr(kind, "kind", "O") in "biuf"


def checked(rows, promised: tuple, block_id=(0, 0)) -> Any:
    """The rows of a chunk, or an error that names it.

    Promised are the type and form, as a template, the number of columns, and the lengths of all.
    """
    template, width, lengths = promised
    name = f"Chunk {block_id[0]} of X"
    check_type(rows, name)
    rows = as_rows(rows, name)
    if rows.shape[1] != width:
        raise ValueError(
            f"{name} has shape {rows.shape}, and {width} columns were promised. "
            "Check the function that makes it."
        )
    length = lengths[block_id[0]]
    if not np.isnan(length) and rows.shape[0] != length:
        raise InvalidRowsError(
            f"{name} has {rows.shape[0]} rows, and {length} were promised. Check the function that "
            "makes it, or pass X.compute_chunk_sizes()."
        )
    rows = match_sparsity(rows.astype(template.dtype, copy=False), template)
    check_finite(rows, name)
    return rows


def stacked(chunks: list, first: int, promised: tuple) -> Any:
    """Neighbors under each other, checked."""
    return stack_rows([checked(rows, promised, (first + i, 0)) for i, rows in enumerate(chunks)])


def lazy_like(values: Array, X: Any, array: Any) -> Any:
    """Values for every row of a Dask collection X as a lazy array, in chunks of an array's rows.

    None where X is no such collection.
    """
    if not is_dask(X):
        return None
    import dask.array as da

    tail = [(size,) for size in values.shape[1:]]
    return da.from_array(values, chunks=(array.chunks[0], *tail))


def on_chunk(rows, weights=None, *, work, firsts, make, block_id):
    """A row function of a chunk, with the engine of its task."""
    first = firsts[block_id[0]]
    weights = None if weights is None else weights[:, 0]
    return work.moved(make()).weighing(weights, first)(rows, first)


def mapped_chunk(rows, function, make, dtype_):
    """A row function of a chunk, as an array of one type."""
    if not rows.shape[0]:
        return np.empty((0, *function.tail), dtype_)
    # Tiles take rows of one kind, and landmarks may be dense where new rows are not.
    rows = match_sparsity(rows, function.expansion.basis.points)
    return to_numpy(function.moved(make())(rows, 0)).astype(dtype_, copy=False)
