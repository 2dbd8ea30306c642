"""Points as the basis: phi(z) for the rows of Z, so that G = k(Z, Z)."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from ..compute import (
    TiledEngine,
    TileStore,
    array_namespace,
    format_bytes,
    is_sparse,
    on_device_of,
    row_blocks,
    to_numpy,
)
from ..compute.arrays import Array, SomeRows, block_rows, dtype_in, dtype_name, some_of
from ..compute.linalg import times_few
from ..kernels import Hollow, Kernel
from ..kernels.base import check_values, float_dtype, rows_of
from .base import Basis, BasisRecipe, GramBasis

# Largest spread (see `Kernel.spread`) at which single-precision tiles still give
# eigenvalues to 1e-5: rounding is about eps * spread, and eps is 6e-8.
DRAFT_SPREAD = 100.0

# Share of the budget that prepared rows may take. Kept tiles save more per byte.
ROWS_SHARE = 0.1

# Eigenvalues of G below this share of the largest are rounding when rows are in single
# precision; smaller shares were seen to give eigenvalues 36 times too large.
SINGLE_RCOND = 1e-6


class PointBasis(Basis):
    """phi(z) for the rows of `points`.

    Parameters
    ----------
    kernel : Kernel
        With numbers for all parameters.
    points : array of shape (m, d)
    engine : TiledEngine
    single : bool or None
        Whether single-precision rows may be computed in single precision; None to judge it by
        the spread of the points once it matters.
    """

    noun = "landmarks"
    #: Precision of inner products with the basis.
    dtype: Any = np.float64

    def __init__(
        self, kernel: Kernel, points: Array, engine: TiledEngine, single: bool | None = True
    ):
        self.kernel, self.points, self.engine = kernel, engine.place(points), engine
        self._single = single
        self.size = points.shape[0]

    @property
    def single(self) -> bool:
        """Whether single precision keeps enough digits on these points."""
        if self._single is None:
            self._single = bool(self.kernel.spread(self.points) <= DRAFT_SPREAD)
        return self._single

    def precision(self, X: Array) -> Any:
        """The NumPy type to compute X's kernel in: its own where rounding allows."""
        own = np.dtype(dtype_name(float_dtype(X)))
        return own if own == np.float64 or self.single else np.dtype(np.float64)

    def block_products(self, X: Array, W: Array = None, dtype: Any = None) -> Callable:
        """k(rows, Z) W for a block of rows, in the precision of X or another."""
        if isinstance(W, np.ndarray) and type(self) is PointBasis:
            used = np.flatnonzero(W.any(axis=1))
            if 0 < used.size < self.size:
                return self.subset(used).block_products(X, W[used], dtype)
        dtype, X = self.precision(X) if dtype is None else dtype, self.engine.place(X)
        pairs = self.kernel.pairs(X, self.points, dtype=dtype, store=self.engine.memory // 4)
        W = None if W is None else self.engine.asarray(W, dtype)
        # Wide landmarks are prepared a few at a time.
        room = self.engine.memory // (64 * self.engine.threads * 8 * X.shape[1])
        parts = row_blocks(self.size, self.size if is_sparse(X) else max(16, room))

        def coordinates(block):
            K = self.engine.empty((len(range(*block.indices(X.shape[0]))), self.size), dtype)
            if len(parts) == 1:
                K = pairs.tile(block, parts[0], K)
            else:
                for part in parts:
                    K[:, part] = pairs.tile(block, part, K[:, part])
            return K if W is None else times_few(K, W)

        return coordinates

    def _row_floats(self) -> int:
        """The kernel row, what the kernel needs beside it, and the result."""
        return self.size * (1 + self.kernel.live_tiles)

    def gram(self, W: Array) -> Array:
        """k(Z, Z) W."""
        return self.project(self.points, W)

    def kernel_matrix(self) -> Any:
        """k(Z, Z) in double precision, where the work is done."""
        G = self.kernel(self.points, dtype=np.float64)
        check_values(self.kernel, G, on="these landmarks")
        return (G + G.T) / 2

    def whitener(self, dtype: Any, G: Any = None) -> Array:
        """V L^{-1/2} over the eigenvalues of G = k(Z, Z) that are not rounding."""
        values, V = self.engine.eigh(self.kernel_matrix() if G is None else G)
        rcond = SINGLE_RCOND if dtype == np.float32 else self.size * np.finfo(float).eps
        if not values[-1] > -values[0]:
            raise ValueError(
                f"{self.kernel!r} has no positive semidefinite matrix on these landmarks (its "
                f"eigenvalues reach from {values[0]:.3g} to {values[-1]:.3g}), so that they span "
                "no feature space. Choose another kernel, or use basis='points'."
            )
        kept = values > rcond * max(values[-1], 0.0)
        return V[:, kept] / np.sqrt(values[kept])

    def subset(self, index: np.ndarray) -> "PointBasis":
        """Some of the landmarks."""
        index = index if is_sparse(self.points) else on_device_of(index, self.points)
        return PointBasis(self.kernel, self.points[index], self.engine, self._single)

    def rounding(self) -> float:
        """Rounding of an inner product over the columns, times what the kernel makes of it."""
        eps, width = np.finfo(dtype_name(self.dtype)).eps, self.points.shape[1]
        if is_sparse(self.points):
            width = int(np.diff(self.points.indptr).max(initial=0))
        return float(eps * (width + 2) * self.kernel.growth(self.points))

    def lost_share(self, X: Array) -> float:
        """The share of energy outside the span of the basis, tr(K - K_nys) / tr K."""
        products = self.block_products(X, self.whitener(np.float64), dtype=np.float64)
        n, rows = X.shape[0], self.product_rows(X)
        kept = self.engine.sum_rows(lambda block: float((products(block) ** 2).sum()), n, rows)
        return max(0.0, 1.0 - kept / float(self.norms(X).sum()))


class AllPoints(BasisRecipe):
    """Every training row is a basis vector: exact kernel PCA."""

    def build(
        self, kernel: Kernel, X: Array, engine: Any, rng: Any, n_components: int | None = None
    ) -> GramBasis:
        """The points of X, with a single-precision draft where rounding allows it."""
        engine.expect(kernel, X.shape, (n_components or 0) + 16)
        return PointGram(kernel, engine.place(X), engine, single=None)


class PointGram(GramBasis, PointBasis):
    """All points as the basis, products with G by symmetric tiles.

    Parameters
    ----------
    kernel, points, engine, single
        As in `PointBasis`; with `single` there is a draft.
    dtype : dtype
        Precision of the tiles; sums are always in float64.

    Attributes
    ----------
    keeps : bool
        Whether tiles are kept from one product to the next while they fit the budget.
    summed : bool
        Whether the first product sums all entries and their squares.
    """

    noun = "points"
    keeps = summed = True
    #: The engine with all of the budget, while some of it is reserved.
    _whole: TiledEngine | None = None

    def __init__(
        self,
        kernel: Kernel,
        points: Array,
        engine: Any,
        single: Any = True,
        dtype: Any = np.float64,
    ):
        super().__init__(kernel, points, engine, single)
        self.dtype = dtype

    @cached_property
    def draft(self) -> Any:  # type: ignore[override]
        """The same points in a cheaper precision, where rounding allows it."""
        cheaper = self.engine.draft(self.dtype, self.kernel)
        if cheaper is None or not self.single:
            return None
        # Double precision needs the larger tiles: a budget too small for them fails here,
        # with a message that names what is enough for both.
        self.engine.tiling(self.kernel.pairs(self.points, dtype=self.dtype))
        draft = PointGram(self.kernel, self.points, self.engine, dtype=cheaper)
        draft.keeps, draft.checkpoint = self.keeps, self.checkpoint
        # It is read once or twice, and tiles are made as fast as memory for them is found; what
        # all entries sum to is the draft's to say, unless products are few.
        self.summed, self.keeps = not self.keeps, False
        return draft

    @property
    def _few(self) -> Any:
        """Precision of a few entries: only the fused tile brings rows into the range of float16."""
        return np.float32 if self.dtype == np.float16 else self.dtype

    @cached_property
    def pairs(self) -> Any:
        """The tiles of k(Z, Z)."""
        return self.kernel.pairs(self.points, dtype=self.dtype, store=self._room())

    @cached_property
    def store(self) -> Any:
        """Room for kept tiles: what the budget leaves beside everything else."""
        if not self.keeps:
            return TileStore()
        side, threads = self.engine.tiling(self.pairs)
        # The other precision has tiles in flight and prepared rows as well.
        others = 2 * threads * self.pairs.tile_bytes(side) + 3 * self.pairs.kept_bytes
        return TileStore(self.engine.memory - others, self.engine.empty)

    def keep_nothing(self) -> None:
        """Make every tile anew."""
        self.keeps = False
        if vars(self).get("draft") is not None:  # made already
            self.draft.keep_nothing()

    def reserve(self, size: int) -> None:
        """Work with what the solver's vectors leave of the budget, or refuse to."""
        whole = self._whole or self.engine
        if whole.device is not None:
            return  # a device says itself when it is full
        if self.size <= 1024 and 2 * size + 10**8 <= whole.memory:
            return  # nothing is short
        least = size + self.kernel.pairs(self.points, dtype=self.dtype).tile_bytes(whole.sides[-1])
        if least > whole.memory:
            raise ValueError(
                f"memory={format_bytes(whole.memory)} cannot hold one tile of the kernel matrix "
                f"beside the vectors of the solver, which take {format_bytes(size)} for "
                f"{self.size:,} rows. Ask for fewer components, use basis='landmarks', or give at "
                f"least {format_bytes(least)}, for example memory={least}."
            )
        self._whole = whole
        if self.engine.memory != whole.memory - size:
            self._work_by(whole.with_memory(whole.memory - size))

    def _work_by(self, engine: TiledEngine) -> None:
        """Make tiles and prepare rows by another engine, in all precisions."""
        self.engine = engine
        vars(self).pop("pairs", None)
        vars(self).pop("store", None)
        if vars(self).get("draft") is not None:
            self.draft._work_by(engine)

    def release(self) -> None:
        """Forget the draft, kept tiles and prepared rows, and take back what was reserved."""
        engine, self._whole = self._whole or self.engine, None
        self.draft = self.checkpoint = None
        self._work_by(engine)

    def _room(self) -> int:
        """Bytes for prepared rows; a fused tile prepares its own."""
        fused = self.dtype != np.float64 and self.engine.fuses(self.kernel)
        return 0 if fused else int(ROWS_SHARE * self.engine.memory)

    def project(self, X: Array, W: Array) -> Array:
        """k(X, Z) W, tile by tile; of a linear kernel by way of Z' W, which has few columns."""
        X, V = self.engine.place(X), None
        if isinstance(X, np.ndarray) and isinstance(self.points, np.ndarray):
            V = self.kernel.direction(self.points, W)
        if V is None:
            pairs = self.kernel.pairs(X, self.points, dtype=self.precision(X), store=self._room())
            return self.engine.pair_rows(pairs, W)
        n, origin = X.shape[0], self.kernel.origin(X)
        out = self.engine.empty((n, V.shape[1]))
        room = self.engine.memory // (32 * self.engine.threads * X.shape[1])
        rows = min(max(1, room), self.engine.stream_block)
        self.engine.map_rows(lambda block: rows_of(X, block, np.float64, origin) @ V, n, rows, out)
        return out

    def gram(self, W: Array) -> Array:
        """k(Z, Z) W, each tile above the diagonal used for both sides."""
        self.store.weights = self.weights if self.summed else None
        return self.kept_product(W, lambda: self.engine.pair_rows(self.pairs, W, self.store))

    def sums(self) -> tuple[float, Any] | None:
        return self.store.sums

    def rounded(self, W: Array) -> Array:
        """W in the type that the tiles of the engine multiply with."""
        return self.engine.rounded(W, self.dtype, self.kernel)

    def is_constant(self) -> bool:
        """Whether all points are equal."""
        if is_sparse(self.points) or bool((self.points[0] != self.points[-1]).any()):
            return False
        blocks = (self.points[i : i + 1024] for i in range(0, self.size, 1024))
        return all(bool((block == self.points[0:1]).all()) for block in blocks)

    def entry_size(self) -> float:
        return self.kernel.entry_size(self.points)

    def diagonal(self) -> Array:
        """k(z, z)."""
        return self.kernel.diag(self.points)

    def own_affinities(self) -> Array:
        """k(z, z) where the diagonal is zero."""
        hollow = isinstance(self.kernel, Hollow)
        return self.kernel.kernel.diag(self.points) if hollow else super().own_affinities()

    def to_dense(self) -> Array:
        """k(Z, Z), tile by tile."""
        return self.engine.fill(self.pairs, self.engine.empty(self.pairs.shape))

    def columns(self, index: Array, W: Array) -> Array:
        """k(Z, Z[index]) W."""
        some = self.points[index]
        some = self.kernel.pairs(self.points, some, dtype=self._few, store=self._room())
        return self.engine.pair_rows(some, W)

    def rows(self, index: Array) -> Array:
        """k(Z[index], Z)."""
        all_of = self.pairs if self.dtype == self._few else self.kernel.pairs(self.points)
        some = all_of.of_rows(index)
        return self.engine.fill(some, self.engine.empty(some.shape, some.dtype))

    def rows_times(self, index: Array, W: Array) -> Array:
        """k(Z[index], Z) W."""
        some = some_of(self.points, index)
        return self.engine.pair_rows(self.kernel.pairs(some, self.points, self._few), W)

    def minor(self, index: Array) -> Array:
        """k(Z[index], Z[index])."""
        return to_numpy(self.kernel(some_of(self.points, index), dtype=self._few))

    def __getstate__(self):
        # Tiles are large and their store has a lock: a copy starts without either, nor a draft.
        left = ("pairs", "store", "checkpoint", "weights")
        return {k: v for k, v in vars(self).items() if k not in left} | {"draft": None}


def wide_rows(X: Any) -> Any:
    """Rows in double precision; of wide ones blocks that are so."""
    if isinstance(X, np.ndarray) and X.dtype != np.float64 and X.shape[0] > block_rows(X):
        return SomeRows(X, np.arange(X.shape[0]), np.float64)
    return rows_of(X, slice(None), dtype_in(np if is_sparse(X) else array_namespace(X), np.float64))
