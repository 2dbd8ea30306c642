"""Rows in one array: NumPy, a memmap, CSR, or a tensor on a device."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..bases import AllPoints, GramBasis, PrecomputedBasis
from ..compute import TiledEngine, array_namespace, is_sparse, make_engine, restore
from ..compute.arrays import Array, BlocksOnDemand, blocks_of, dtype_in
from ..fitting.checkpoint import RowDigest
from ..fitting.functions import sampled_numbers
from ..kernels import Kernel, Precomputed
from .base import Opening, Rows

#: See `mercer.rows.KINDS`.
KINDS: list = []


class ArrayRows(Rows):
    """The rows of an array that was checked.

    Parameters
    ----------
    array : array, memmap, CSR matrix or tensor of shape (n, d)
    original : object
        What the user passed: results go back to its library and device.
    memory : int, str or None
    engine : TiledEngine or None
        Where the rows go once and for all, if they fit there; passes are then made on them.
    """

    def __init__(
        self,
        array: Array,
        original: Any = None,
        memory: int | str | None = None,
        engine: TiledEngine | None = None,
    ):
        self.array, self.original, self.memory = array, original, memory
        #: The rows where they are computed with.
        self.placed = array
        if engine is not None and engine.device is not None:
            placed = engine.place(array)
            self.placed = array if isinstance(placed, BlocksOnDemand) else placed

    @property
    def shape(self) -> Any:
        return tuple(self.array.shape)

    @property
    def dtype(self) -> Any:
        return float_type(self.array)

    def sum(
        self, function: Any, title: str = "rows", *, again: bool = False, checkpoint: Any = None
    ) -> Any:
        """The function of all rows at once: engines cut them into blocks themselves."""
        return function(self.placed, 0)

    def map(self, function: Any, out: Any = None, names: Any = None) -> Any:
        """The function of the whole, in the library of what the user passed."""
        if out is not None:
            from .blocks import BlockRows

            return BlockRows(self.array, self.memory).map(function, out, names)
        results = in_type(function(self.array, 0), function.dtype or self.dtype)
        return restore(results, self.original)

    def as_basis(self, kernel: Kernel, engine: TiledEngine, n_components: int | None) -> GramBasis:
        """All points, or the matrix itself where it was given."""
        rows = engine.place(self.placed)
        if isinstance(kernel, Precomputed):
            return PrecomputedBasis(rows, engine)
        return AllPoints().build(kernel, rows, engine, np.random.default_rng(0), n_components)

    def as_array(self, who: str, limit: int | None = None, instead: str = "") -> Array:
        return self.array

    def _for_passes(self, resumable: bool) -> Rows:
        """A file on disk, and what is to be resumed, is read in blocks."""
        in_main_memory = isinstance(self.array, np.ndarray) or is_sparse(self.array)
        if isinstance(self.array, np.memmap) or (resumable and in_main_memory):
            from .blocks import BlockRows

            return BlockRows(self.array, self.memory)
        return self

    def blocks(self) -> Any:
        yield self.array

    def identity(self) -> list:
        """Shape, type, and a hash of all rows: a fit is never resumed with others."""
        total, hashed = RowDigest(), ""
        for block in blocks_of(self.array):
            hashed = total.add(block)
        return ["array", self.shape, str(self.dtype), hashed]

    def sample(self, size: int, seed: int) -> Array:
        n = self.shape[0]
        return self.array if n <= size else self.array[sampled_numbers(n, size, seed)]

    def take(self, index: Array) -> Array:
        return self.array[index]


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
    """The array of all rows; None if rows are not one array."""
    return rows.array if isinstance(rows, ArrayRows) else None


def like_of(rows: Rows) -> Any:
    """The user's array, whose type results get; None for NumPy."""
    return rows.original if isinstance(rows, ArrayRows) else None


def engine_for(
    rows: Rows, memory: Any, device: Any, threads: int | None, on_tiles: Any = None
) -> TiledEngine:
    """The engine that works on these rows here; tasks on a cluster make their own."""
    device = None if rows._elsewhere else device
    return make_engine(
        in_memory(rows), memory=memory, device=device, threads=threads, on_tiles=on_tiles
    )


def without_weightless(rows: Rows, weights: np.ndarray, as_points: bool) -> tuple[Rows, np.ndarray]:
    """An array without rows of weight zero; sums over other kinds of rows keep them."""
    if weights.all() or not isinstance(rows, ArrayRows):
        if as_points and not weights.all():
            raise ValueError(
                "sample_weight has zeros, and of all points of a cluster none can be left out. "
                "Leave them out before the fit, or use basis='landmarks'."
            )
        return rows, weights
    counted, array = np.flatnonzero(weights), rows.array
    by_array = is_sparse(array) or isinstance(array, np.ndarray)
    remaining = array[counted] if by_array else array[counted.tolist()]
    return ArrayRows(remaining, rows.original, rows.memory), weights[counted]


def like_rows(result: Array, rows: Rows) -> Any:
    """A result in the type of the rows, and in the library that they came from."""
    return restore(in_type(result, rows.dtype), like_of(rows))


def float_type(X: Array) -> Any:
    """The NumPy type of results for X: float32 stays, all else is float64."""
    return np.dtype(np.float32 if "float32" in str(X.dtype) else np.float64)


def in_type(result: Array, dtype: Any) -> Any:
    """An array of any library in one type; numbers too large for single precision stay."""
    xp = array_namespace(result)
    if xp is np:
        if result.dtype == dtype:
            return result
        with np.errstate(over="ignore"):
            narrow = result.astype(dtype, copy=False)
        lost = dtype == np.float32 and not np.isfinite(narrow).all() and np.isfinite(result).all()
        return result if lost else narrow
    dtype = np.dtype(dtype)
    kind = xp.int64 if dtype.kind == "i" else dtype_in(xp, dtype.name)
    return xp.astype(result, kind, copy=False)
