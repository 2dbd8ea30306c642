"""Rows: where the data are, and the only thing that knows it.

A fit or a transform gets its data as `Rows`. All kinds answer the same few verbs: `shape`, `dtype`
and `names`; `sample`, uniform rows as an array, the same ones for any cut into blocks; `sum`, which
goes over all rows once; `as_basis`, all rows as a basis, or the reason why not; `take`, rows by
number; and `map`, a function of all rows that comes back as what the rows were: an array or tensor,
a file written whole, a lazy Dask array. Nothing is set on them: weights, generator and checkpoint
belong to the task of a fit, and what is summed to row functions (`mercer.fitting.functions`).

- `ArrayRows`: NumPy arrays, memmaps, CSR matrices, tensors on a device.
- `BlockRows`: files, stores, iterators, functions that return one: whatever
  `mercer.files.open_source` takes.
- `DaskRows`: Dask arrays and dataframes, on whichever scheduler is active.

A new kind (Spark, Ray) is one file and one line of `KINDS`; no other folder asks for the kind.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..compute import TiledEngine, is_sparse, make_engine
from ..compute.arrays import Array, is_dask
from ..fitting.expansion import OfExpansion, errors_of, scores_of
from ..fitting.moments import RowFunction
from .array import ArrayRows, float_type, in_type
from .base import Opening, Rows, count_rows
from .blocks import BlockRows, is_source, open_blocks
from .dask import DaskRows, lazy_like, open_dask

#: Whether data are of a kind, and how they are opened; all other data are arrays.
KINDS: list[tuple[Callable[[Any], bool], Callable[[Any, Opening], Rows]]] = [
    (is_dask, open_dask),
    (is_source, open_blocks),
]


def open_rows(
    X: Any, how: Opening, check: Callable[[Any], Array] | None = None, original: Any = None
) -> Rows:
    """The rows of X, wherever they are; an array is first checked by ``check(X)``."""
    if type(X) is not np.ndarray:
        for is_kind, opened in KINDS:
            if is_kind(X):
                return opened(X, how)
    return ArrayRows(X if check is None else check(X), original, how.memory)


def in_memory(rows: Rows) -> Array | None:
    """All rows as the one array that they are; None where they are elsewhere."""
    return rows.array if isinstance(rows, ArrayRows) else None


def like_of(rows: Rows) -> Any:
    """What results go back to: the array that the user passed; None for NumPy."""
    return rows.original if isinstance(rows, ArrayRows) else None


def like_rows(values: Array, X: Any, points: Array) -> Any:
    """A result with a value for every row of X: lazy, as X is, or as it is."""
    return lazy_like(values, points) if is_dask(X) else None


def title_of(rows: Rows) -> str:
    """What messages call the rows."""
    return rows.source.name if isinstance(rows, BlockRows) else "X"


def for_points(rows: Rows, who: str, required: bool) -> Rows:
    """The rows as all points can be made of them: a source that fits is read into an array.

    Where they are too many, ValueError if that is `required`, and the rows as they are if not.
    """
    if not isinstance(rows, BlockRows):
        return rows
    try:
        array = rows.as_array(who, None if required else rows.room_at_once)
    except ValueError:
        if required or not rows.source.repeatable:
            raise
        return rows
    return ArrayRows(array, None, rows.memory)


def for_passes(rows: Rows, resumable: bool) -> Rows:
    """The rows as passes are made over them: in blocks, if on disk or to be resumed."""
    array = in_memory(rows)
    blocks = isinstance(array, np.memmap) or (
        resumable and (isinstance(array, np.ndarray) or is_sparse(array))
    )
    return BlockRows(array, rows.memory) if blocks else rows  # type: ignore[attr-defined]


def engine_for(
    rows: Rows, memory: Any, device: Any, threads: int | None, on_tiles: Any = None
) -> TiledEngine:
    """The engine that works on these rows here; tasks on a cluster make their own."""
    device = None if isinstance(rows, DaskRows) else device
    return make_engine(
        in_memory(rows), memory=memory, device=device, threads=threads, on_tiles=on_tiles
    )


def without_weightless(rows: Rows, weights: np.ndarray, as_points: bool) -> tuple[Rows, np.ndarray]:
    """An array without the rows that count nothing; sums over other rows take them as they are."""
    if weights.all():
        return rows, weights
    if not isinstance(rows, ArrayRows):
        if as_points:
            raise ValueError(
                "sample_weight has zeros, and of all points of a cluster none can be left out. "
                "Leave them out before the fit, or use basis='landmarks'."
            )
        return rows, weights
    counted, array = np.flatnonzero(weights), rows.array
    by_array = is_sparse(array) or isinstance(array, np.ndarray)
    remaining = array[counted] if by_array else array[counted.tolist()]
    return ArrayRows(remaining, rows.original, rows.memory), weights[counted]


def shows_progress(rows: Rows) -> bool:
    """Whether passes over the rows draw a bar of their own."""
    return isinstance(rows, BlockRows)


__all__ = [
    "KINDS",
    "ArrayRows",
    "BlockRows",
    "DaskRows",
    "OfExpansion",
    "Opening",
    "RowFunction",
    "Rows",
    "count_rows",
    "engine_for",
    "errors_of",
    "float_type",
    "for_passes",
    "for_points",
    "in_memory",
    "in_type",
    "is_dask",
    "is_source",
    "like_of",
    "like_rows",
    "open_rows",
    "scores_of",
    "shows_progress",
    "title_of",
    "without_weightless",
]
