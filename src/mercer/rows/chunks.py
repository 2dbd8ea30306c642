"""The rows of a Dask collection, chunk by chunk."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from ..compute.arrays import is_sparse, stack_rows, to_numpy
from .packing import packed
from .tasks import delayed, run

# Chunk pairs for each core: enough that no core waits long for the last one.
PAIRS_PER_CORE = 4
# Share of a core's memory that the two chunks of a pair and their vectors may take.
CHUNK_SHARE = 0.1
# Chunks that a pass is to have at the least, and for each core, when small ones are taken together:
# enough for all cores to end at about the same time.
LEAST_GROUPS, GROUPS_PER_CORE = 64, 8
# Tasks that count the rows of more chunks than that.
COUNTED_GROUPS = 256


@dataclass(frozen=True)
class Chunks:
    """The rows of a Dask array, chunk by chunk.

    Attributes
    ----------
    array : dask.array.Array of shape (n, d)
        One chunk of columns; float32 or float64. n and the lengths of chunks may be unknown. Chunks
        are NumPy arrays or CSR matrices.
    """

    array: Any

    @classmethod
    def of(cls, X) -> "Chunks":
        """The chunks of a Dask array or dataframe, in floating point."""
        array = _frame_rows(X) if hasattr(X, "columns") else X
        if not hasattr(array, "rechunk"):
            raise TypeError(
                f"X is a {type(X).__name__} of Dask. Pass a Dask array or dataframe, for example "
                "X.to_dataframe() of a bag."
            )
        if array.ndim != 2 or array.dtype.kind not in "biuf":
            raise ValueError(
                f"Expected a 2D Dask array of numbers, got a {array.ndim}D one of type "
                f"{array.dtype} instead."
            )
        if is_sparse(array._meta):
            return cls(_sparse_rows(array))
        if not isinstance(array._meta, np.ndarray):
            array = array.map_blocks(to_numpy, dtype=array.dtype, meta=np.empty((0, 0)))
        if array.numblocks[1] > 1:
            array = array.rechunk({1: -1})
        return cls(array if array.dtype in (np.float32, np.float64) else array.astype(float))

    @property
    def sparse(self) -> bool:
        """Whether chunks are CSR matrices."""
        return is_sparse(self.array._meta)

    @cached_property
    def entries(self) -> int:
        """Numbers of a row: its columns, or for CSR about twice as many as in the first chunk."""
        if not self.sparse:
            return self.width
        first = next((block for _, block in self.filled()), None)
        if first is None:
            return 1
        nnz, n = run([delayed(_weight)(first)])[0]
        return min(self.width, 2 * -(-nnz // max(n, 1)) + 2)

    @property
    def dtype(self):
        """The type of the rows."""
        return self.array.dtype

    @property
    def width(self) -> int:
        """Number of columns."""
        return self.array.shape[1]

    @property
    def lengths(self) -> tuple[int, ...] | None:
        """Rows of every chunk, or None where that is not known."""
        lengths = self.array.chunks[0]
        return None if np.isnan(lengths).any() else tuple(int(n) for n in lengths)

    @property
    def count(self) -> int | None:
        """Number of rows, or None where that is not known."""
        return None if self.lengths is None else sum(self.lengths)

    @cached_property
    def blocks(self) -> list:
        """One delayed array of rows for every chunk."""
        return list(self.array.to_delayed().ravel())

    @property
    def slices(self) -> list[slice]:
        """The rows that each chunk holds."""
        ends = np.cumsum((0, *(self.lengths or ())))
        return [slice(int(a), int(b)) for a, b in pairwise(ends)]

    def filled(self) -> list[tuple[slice, Any]]:
        """Slices and blocks of the chunks that are not empty."""
        parts = zip(self.slices, self.blocks, strict=True)
        return [(rows, block) for rows, block in parts if rows.stop > rows.start]

    def map(self, function, weights=None, **arguments) -> list:
        """Delayed ``function(rows, chunk, weights, **arguments)`` of every chunk.

        Where Dask can fuse them, one task with what makes the rows, so that these are not sent
        elsewhere. A task gets the weights of its own rows, None where there are none.
        """
        results = self.array.map_blocks(
            _numbered,
            *([] if weights is None else [self.beside(weights)]),
            function=function,
            arguments=arguments,
            dtype=object,
            chunks=((1,) * self.array.numblocks[0], (1,)),
            meta=np.empty((0, 0), object),
        )
        return list(results.to_delayed().ravel())

    def beside(self, values: np.ndarray) -> Any:
        """A number for every row, (n,), in chunks of the same rows."""
        pieces = [values[rows, None] for rows in self.slices]
        return _array_of(pieces, [], (self.array.chunks[0], (1,)), np.empty((0, 0), values.dtype))

    def counted(self) -> "Chunks":
        """The same chunks with known lengths, which may take a pass."""
        if self.lengths is not None:
            return self
        return self.with_lengths(self._counts())

    def _counts(self) -> list[int]:
        """Rows of every chunk, counted where they are; of many chunks some in one task."""
        many = self.array.numblocks[0]
        step = -(-many // COUNTED_GROUPS)
        groups = [range(i, min(i + step, many)) for i in range(0, many, step)]
        found = packed(self.array, groups, _height, list) if step > 1 else None
        if found is None:
            count = delayed(_height)
            return list(run([count(block) for block in self.blocks]))
        shape = ((1,) * len(groups), (1,))
        counts = _array_of(found[1], [], shape, np.empty((0, 0), object), found[0])
        return [n for part in run(counts.to_delayed().ravel()) for n in part]

    def with_lengths(self, lengths) -> "Chunks":
        """The same chunks with the lengths that were counted."""
        array = self.array.copy()
        array._chunks = (tuple(int(n) for n in lengths), array.chunks[1])
        return Chunks(array)

    def evened(self, cores: int, room: int, columns: int) -> "Chunks":
        """Chunks of about equal length, as many as keep `cores` busy with pairs of them.

        Fewer chunks move fewer bytes; a pair with `columns` numbers a row must fit the room.
        """
        n, longest = self.count or 0, max(self.lengths or (0,))
        most = max(1, int(CHUNK_SHARE * room / (16 * columns)))
        number = max(int(np.ceil(np.sqrt(2 * PAIRS_PER_CORE * cores))), -(-n // most))
        rows = max(1, -(-n // number))
        if len(self.filled()) <= 2 * number and longest <= min(2 * rows, most):
            return self
        return self.cut(rows)

    def cut(self, rows: int) -> "Chunks":
        """Chunks of so many rows, the last one of fewer."""
        if not self.sparse:
            return Chunks(self.array.rechunk({0: rows}))
        return Chunks(_recut(self, rows))

    def fused(self, cores: int, room: int) -> "Chunks":
        """Neighbors in one, where chunks are many and small: a pass costs a task for each.

        Parameters
        ----------
        cores : int
            Tasks at the same time, which all are to have something to do.
        room : int
            Bytes there are for each of them.
        """
        lengths = self.lengths or ()
        wanted = max(LEAST_GROUPS, GROUPS_PER_CORE * cores)
        most = max(1, int(CHUNK_SHARE * room / (self.dtype.itemsize * self.entries)))
        groups = neighbors(lengths, min(most, -(-sum(lengths) // wanted)))
        if len(lengths) <= 2 * wanted or 2 * len(groups) > len(lengths):
            return self
        return Chunks(_stacked(self.array, groups))

    def persisted(self) -> "Chunks":
        """The same chunks, computed and kept where they are; lost ones are made again."""
        return Chunks(self.array.persist())

    def whole(self) -> Any:
        """All rows, brought here."""
        return stack_rows(list(run([block for _, block in self.filled()])))

    def pieces(self, room: int) -> Iterator[Any]:
        """The rows in their order, brought here: as many chunks at a time as take `room` bytes."""
        most = max(1, room // (self.dtype.itemsize * self.entries))
        for group in neighbors(self.lengths or (), most):
            blocks = run([self.blocks[number] for number in group])
            yield _stack(blocks, group[0], self.width)

    def rows(self, index) -> Any:
        """Some rows, brought here, in the order of `index`."""
        index = np.asarray(index)
        take, places = delayed(_take), []
        parts = []
        for rows, block in self.filled():
            here = np.flatnonzero((index >= rows.start) & (index < rows.stop))
            if here.size:
                places.append(here)
                parts.append(take(block, index[here] - rows.start))
        found = stack_rows(list(run(parts)))
        return found[np.argsort(np.concatenate(places), kind="stable")]


def neighbors(lengths, rows: int) -> list[range]:
    """Chunks that follow each other, together until they have so many rows; none is cut."""
    groups, first, held = [], 0, 0
    for number, length in enumerate(lengths):
        if held and held + length > rows:
            groups.append(range(first, number))
            first, held = number, 0
        held += length
    return [*groups, range(first, len(lengths))] if len(lengths) else []


def _stacked(array, groups):
    """A Dask array whose chunks are those of another one under each other, checked on the way."""
    width = array.shape[1]
    lengths = tuple(sum(array.chunks[0][number] for number in group) for group in groups)
    shape = (lengths, array.chunks[1])
    found = packed(array, groups, partial(checked, width=width), stack_rows)
    if found is not None:
        return _array_of(found[1], [], shape, array._meta, found[0])
    tasks = [
        (_stack, [(array.name, number, 0) for number in group], group[0], width) for group in groups
    ]
    return _array_of(tasks, [array], shape, array._meta)


def _array_of(tasks, dependencies, chunks, meta, others=()):
    """A Dask array in one layer: for every chunk of rows a task, of keys of its dependencies.

    `others` are tasks of the same layer that these need.
    """
    import dask.array as da
    from dask.highlevelgraph import HighLevelGraph

    name = f"rows-{uuid.uuid4().hex}"
    layer: dict[Any, Any] = {(name, i, 0): task for i, task in enumerate(tasks)} | dict(others)
    graph = HighLevelGraph.from_collections(name, layer, dependencies=dependencies)
    return da.Array(graph, name, chunks, dtype=meta.dtype, meta=meta)


def _stack(blocks, first, width):
    return stack_rows([checked(rows, first + i, width) for i, rows in enumerate(blocks)])


def checked(rows, chunk: int, width: int) -> Any:
    """The rows of a chunk, or an error that names it."""
    if rows.ndim != 2 or rows.shape[1] != width:
        raise ValueError(
            f"Chunk {chunk} of X has shape {rows.shape}, and {width} columns were promised. Check "
            "the function that makes it."
        )
    bad = _not_finite(rows)
    if bad.size:
        raise ValueError(
            f"Chunk {chunk} of X contains NaN or infinity, first in its row {bad[0]}. Remove or "
            "fill such rows first."
        )
    return rows


def _not_finite(rows) -> np.ndarray:
    """Numbers of the rows with NaN or infinity."""
    if not is_sparse(rows):
        return np.flatnonzero(~np.isfinite(rows).all(axis=1))
    places = np.flatnonzero(~np.isfinite(rows.data))
    return np.searchsorted(rows.indptr, places, side="right") - 1


def _numbered(rows, weights=None, *, function, arguments, block_id):
    weights = None if weights is None else weights[:, 0]
    return function(rows, block_id[0], weights, **arguments)


def _frame_rows(X):
    """A dataframe as an array, its columns checked and in one floating type."""
    names = [str(name) for name, kind in X.dtypes.items() if not is_number(kind)]
    if names:
        raise ValueError(
            f"Columns {names} of the dataframe are no numbers. Leave them out or encode them "
            "before fitting."
        )
    single = all(kind == np.float32 for kind in X.dtypes)
    dtype = np.dtype(np.float32 if single else np.float64)
    parts, meta = X.to_delayed(), np.empty((0, 0), dtype)
    tasks = [(_to_rows, part.key, dtype) for part in parts]
    return _array_of(tasks, parts, ((np.nan,) * len(parts), (len(X.columns),)), meta)


def is_number(kind: Any) -> bool:
    """Whether a type of a data frame's column is one of numbers."""
    return getattr(kind, "kind", "O") in "biuf"


def _to_rows(frame, dtype):
    return frame.to_numpy(dtype=dtype, na_value=np.nan)


def _sparse_rows(array):
    """A Dask array of sparse chunks as one of CSR chunks, one of columns, in floating point."""
    dtype = np.dtype(np.float32 if array.dtype == np.float32 else np.float64)
    beside = range(array.numblocks[1])
    tasks = [
        (_to_csr, [(array.name, i, j) for j in beside], dtype) for i in range(array.numblocks[0])
    ]
    chunks = (array.chunks[0], (sum(array.chunks[1]),))
    return _array_of(tasks, [array], chunks, sparse.csr_matrix((0, 0), dtype=dtype))


def _to_csr(parts, dtype):
    """Sparse blocks of columns beside each other; what says 2D and is none is named later."""
    whole = sparse.hstack(parts, format="csr") if len(parts) > 1 else parts[0]
    return sparse.csr_matrix(whole, dtype=dtype)


def _recut(chunks: Chunks, rows: int):
    """A Dask array of CSR chunks with other lengths."""
    n, array, tasks = chunks.count or 0, chunks.array, []
    held = [(part, number) for number, part in enumerate(chunks.slices) if part.stop > part.start]
    starts = range(0, n, rows)
    for start in starts:
        stop = start + rows
        pieces = [
            (_take, (array.name, i, 0), slice(max(start - part.start, 0), stop - part.start))
            for part, i in held
            if part.start < stop and start < part.stop
        ]
        tasks.append((stack_rows, pieces))
    lengths = tuple(min(rows, n - start) for start in starts)
    return _array_of(tasks, [array], (lengths, array.chunks[1]), array._meta)


def _height(block, number: int = 0) -> int:
    return block.shape[0]


def _weight(block) -> tuple[int, int]:
    """Stored entries and rows of a CSR matrix."""
    return block.nnz, block.shape[0]


def _take(block, index):
    return (block if is_sparse(block) else np.asarray(block))[index]
