"""Rows in one array: NumPy, a memmap, CSR, or a tensor on a device."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..bases import AllPoints, Basis, GramBasis, PrecomputedBasis, Whitening
from ..compute import TiledEngine, array_namespace, is_sparse, make_engine, restore, to_numpy
from ..compute.arrays import Array, BlocksOnDemand, dtype_in
from ..fitting.moments import row_moments
from ..fitting.sampling import sampled_numbers
from ..kernels import Kernel, Precomputed
from .base import WITNESS, Rows, Witnessed
from .functions import MomentsOf

# Share of the budget that coordinates of all rows may take.
KEPT_SHARE = 16
# Rows that tell one array from another.
IDENTITY_ROWS = 256


class ArrayRows(Rows):
    """The rows of an array that was checked.

    Parameters
    ----------
    array : array, memmap, CSR matrix or tensor of shape (n, d)
    original : object
        What the user passed: results go back to its library and device.
    memory : int, str or None
    """

    kind, in_memory = "array", True

    def __init__(self, array: Array, original: Any = None, memory: int | str | None = None):
        self.array, self.original, self.memory = array, original, memory
        #: The rows on the device of the engine, where they fit there; else the array.
        self.placed = array

    @property
    def shape(self) -> Any:
        """Rows and columns."""
        return tuple(self.array.shape)

    @property
    def dtype(self) -> Any:
        """float32 stays, all else is float64."""
        return np.dtype(float_type(self.array))

    def sum(self, function: Any, title: str = "rows") -> Any:
        """The function of the whole: engines cut it into blocks themselves."""
        return function(self.placed, 0)

    def map(self, function: Any, out: Any = None, names: Any = None) -> Any:
        """The function of the whole, in the library of what the user passed."""
        if out is not None:
            return self.in_blocks().map(function, out, names)
        return restore(in_type(function(self.array, 0), self.dtype), self.original)

    def take(self, index: Array) -> Array:
        """Rows by number."""
        return self.array[index]

    def identity(self) -> list:
        """Shape, type, and rows from all over the array."""
        places = np.unique(np.linspace(0, self.shape[0] - 1, IDENTITY_ROWS).astype(int))
        rows = self.array[places]
        rows = rows.toarray() if is_sparse(rows) else np.asarray(to_numpy(rows))
        return ["array", self.shape, str(self.dtype), rows]

    def sample(self, size: int, rng: np.random.Generator | None = None) -> Array:
        """Rows by the keys of their numbers."""
        n = self.shape[0]
        if n <= size:
            return self.array
        seed = self.seed if rng is None else int(rng.integers(2**62))
        return self.array[sampled_numbers(n, size, seed)]

    def witnessed(self, moments_of: MomentsOf, size: int) -> Witnessed:
        """Rows by the keys of their numbers, without a look at the others; all for features.

        Features are judged on pairs of rows, few of which are then looked at. Where all rows judge
        landmarks, their coordinates are made once for the sums and the judgment.
        """
        n, some = self.shape[0], self.placed
        basis, whitening = moments_of.basis, moments_of.whitening
        plain = self.weights is None and type(moments_of) is MomentsOf
        if n > size and basis.exact_norms:
            some = some[sampled_numbers(n, size, self.seed ^ WITNESS)]
        elif plain and may_keep(basis, whitening, n):
            basis.kernel.check(some)
            Y = np.empty((n, whitening.width))
            return Witnessed(row_moments(basis, whitening, some, kept=Y), some, Y)
        return Witnessed(moments_of.over(self), some)

    def whole(self, who: str) -> Any:
        """These."""
        return self

    @property
    def kept(self) -> Any:
        """The array itself."""
        return self.array

    def for_passes(self) -> Any:
        """A file on disk is read in blocks."""
        return self.in_blocks() if isinstance(self.array, np.memmap) else self

    def in_pieces(self) -> Any:
        """In blocks; a tensor stays where it is."""
        here = isinstance(self.array, np.ndarray) or is_sparse(self.array)
        return self.in_blocks() if here else self

    def batches(self) -> Any:
        """All rows as one."""
        yield self.array

    def count_rows(self) -> Any:
        """Known."""
        return self.shape[0]

    def candidates(self, size: int) -> Any:
        """All rows."""
        return self.placed

    def typical(self) -> Any:
        """All rows: kernels sample them as they need."""
        return self.placed

    def gram(
        self,
        kernel: Kernel,
        engine: TiledEngine,
        rng: np.random.Generator,
        n_components: int | None = None,
    ) -> GramBasis:
        """All points, or the matrix itself where it was given."""
        rows = engine.place(self.placed)
        if isinstance(kernel, Precomputed):
            return PrecomputedBasis(rows, engine)
        basis = AllPoints().build(kernel, rows, engine, rng, n_components)
        basis.checkpoint = self.checkpoint
        return basis

    def make_engine(
        self,
        *,
        device: Any = None,
        threads: int | None = None,
        on_tiles: Callable[[int, int], None] | None = None,
    ) -> Any:
        """The engine that computes where the array is, or where it is told to; rows go there."""
        engine = make_engine(
            self.array, memory=self.memory, device=device, threads=threads, on_tiles=on_tiles
        )
        if engine.device is not None:
            placed = engine.place(self.array)
            self.placed = self.array if isinstance(placed, BlocksOnDemand) else placed
        return engine

    def in_blocks(self) -> Rows:
        """The same rows, read in blocks."""
        from .blocks import BlockRows

        return BlockRows(self.array, self.memory)


def may_keep(basis: Basis, whitening: Whitening, n: int) -> bool:
    """Whether the coordinates of n rows are NumPy's, and a small share of the budget."""
    plain = basis.exact_norms and whitening.W is not None and basis.engine.device is None
    return plain and KEPT_SHARE * 8 * n * basis.size <= basis.engine.memory


def float_type(X: Array) -> Any:
    """The NumPy type of results for X: float32 stays, all else is float64."""
    if isinstance(X, np.ndarray):
        return np.float32 if X.dtype == np.float32 else np.float64
    return np.float32 if "float32" in str(X.dtype) else np.float64


def in_type(result: Array, dtype: Any) -> Any:
    """An array of any library in one floating type; numbers too large for it stay as they are."""
    xp = array_namespace(result)
    if xp is np:
        if result.dtype == dtype:
            return result
        with np.errstate(over="ignore"):
            narrow = result.astype(dtype, copy=False)
        lost = dtype == np.float32 and not np.isfinite(narrow).all() and np.isfinite(result).all()
        return result if lost else narrow
    return xp.astype(result, dtype_in(xp, np.dtype(dtype).name), copy=False)
