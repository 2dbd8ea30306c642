"""Points as the basis: phi(z) for the rows of Z, so that G = k(Z, Z)."""

from collections.abc import Callable
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np

from ..compute import (
    TileStore,
    array_namespace,
    format_bytes,
    is_sparse,
    on_device_of,
    row_blocks,
    to_numpy,
)
from ..compute.arrays import Array, SomeRows, block_rows, dtype_in, dtype_name, some_of
from ..compute.engine import too_little
from ..compute.linalg import times_few
from ..kernels import Hollow, Kernel
from ..kernels.base import check_values, float_dtype, multiplies_rows, rows_of
from ..kernels.coordinate import DirectPairs
from .base import Basis, BasisRecipe, GramBasis
from .precomputed import PrecomputedBasis

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
    dtype : dtype
        Precision of inner products with the basis.
    """

    noun = "landmarks"

    def __init__(
        self, kernel: Kernel, points: Array, engine: Any, single: Any = True, dtype: Any = float
    ):
        self.kernel, self.points, self.engine = kernel, engine.place(points), engine
        self._single, self.dtype = single, np.dtype(dtype)
        self.size = points.shape[0]

    @property
    def single(self) -> bool:
        """Whether single precision keeps enough digits on these points."""
        if self._single is None:
            self._single = bool(self.kernel.spread(self.points) <= DRAFT_SPREAD)
        return self._single

    def precision(self, X: Array) -> Any:
        """The NumPy type to compute X's kernel in: its own where rounding allows."""
        dtype = np.dtype(dtype_name(float_dtype(X)))
        return dtype if dtype == np.float64 or self.single else np.dtype(np.float64)

    def block_products(self, X: Array, W: Array = None, dtype: Any = None) -> Callable:
        """k(rows, Z) W for a block of rows, in the precision of X or another."""
        if isinstance(W, np.ndarray) and type(self) is PointBasis:
            used = np.flatnonzero(W.any(axis=1))
            if 0 < used.size < self.size:
                return self.subset(used).block_products(X, W[used], dtype)
        dtype, X = self.precision(X) if dtype is None else dtype, self.engine.place(X)
        pairs = self.kernel.pairs(X, self.points, dtype=dtype, store=self.engine.memory // 4)
        W = None if W is None else self.engine.asarray(W, dtype)
        # Wide landmarks are prepared a few at a time; sums over coordinates make dense rows of
        # sparse ones, and factors do not.
        few = max(16, self.engine.memory // (64 * self.engine.threads * 8 * X.shape[1]))
        direct = isinstance(pairs, DirectPairs)
        parts = row_blocks(self.size, few if direct or not is_sparse(X) else self.size)

        def coordinates(block):
            first, last, _ = block.indices(X.shape[0])
            K = self.engine.empty((last - first, self.size), dtype)
            for rows in row_blocks(last - first, few if direct and is_sparse(X) else len(K)):
                for part in parts:
                    target = K[rows, part]
                    tile = pairs.tile(slice(first + rows.start, first + rows.stop), part, target)
                    if tile is not target:
                        K[rows, part] = tile
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
                f"The matrix of {self.kernel!r} on these landmarks must be positive semidefinite "
                f"and not zero: its eigenvalues reach from {values[0]:.3g} to {values[-1]:.3g}. "
                "Choose another kernel, or use basis='points'."
            )
        large = values > rcond * max(values[-1], 0.0)
        return V[:, large] / np.sqrt(values[large])

    def subset(self, index: np.ndarray) -> "PointBasis":
        """Some of the landmarks."""
        kernel = self.kernel.of_points(index)
        index = index if is_sparse(self.points) else on_device_of(index, self.points)
        return PointBasis(kernel, self.points[index], self.engine, self._single)

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
        energy = self.engine.sum_rows(lambda block: float((products(block) ** 2).sum()), n, rows)
        return max(0.0, 1.0 - energy / float(self.norms(X).sum()))


class AllPoints(BasisRecipe):
    """Every training row is a basis vector: exact kernel PCA."""

    def build(
        self, kernel: Kernel, X: Array, engine: Any, rng: Any, n_components: int | None = None
    ) -> GramBasis:
        """The points of X, with a single-precision draft where rounding allows it."""
        from .products import ProductGram

        engine.expect(kernel, X.shape, (n_components or 0) + 16)
        if multiplies_rows(kernel, X, engine):
            return ProductGram(kernel, X, engine, single=False)
        return PointGram(kernel, engine.place(X), engine, single=None)


class PointGram(GramBasis, PointBasis):
    """All points as the basis, products with G by symmetric tiles.

    Tiles, prepared rows and drafts are kept from one product to the next in a `session` only.

    Parameters
    ----------
    kernel, points, engine, single, dtype
        As in `PointBasis`; with `single` there is a draft. Sums are always in float64.
    """

    noun = "points"

    def _working(self, reserve: int, keeps_tiles: bool, forms_matrix: bool) -> GramBasis:
        """The points with tiles that are kept between products while they fit the budget."""
        engine, working = self.engine, WorkingGram.__new__(WorkingGram)
        # A device says itself when it is full; nothing is short for few points.
        ample = self.size <= 1024 and 2 * reserve + 10**8 <= engine.memory
        if engine.device is None and not ample:
            tile = self.kernel.pairs(self.points, dtype=self.dtype).tile_bytes(engine.sides[-1])
            if reserve + tile > engine.memory:
                what = "one tile of the kernel matrix beside the vectors of the solver, which take "
                what += f"{format_bytes(reserve)} for {self.size:,} rows"
                advice = "Ask for fewer components, or use basis='landmarks'. "
                raise too_little(engine.memory, reserve + tile, what, advice)
            engine = engine.with_memory(engine.memory - reserve)
        vars(working).update(vars(self) | {"engine": engine, "keeps": keeps_tiles})
        return working.formed() if forms_matrix else working

    @property
    def draft(self) -> Any:  # type: ignore[override]
        """The same points in a cheaper precision, where rounding allows it."""
        cheaper = self.engine.draft(self.dtype, self.kernel)
        if cheaper is None or not self.single:
            return None
        # Double precision needs the larger tiles: a budget too small for them fails here,
        # with a message that names what is enough for both.
        self.engine.tiling(self.kernel.pairs(self.points, dtype=self.dtype))
        return type(self)(self.kernel, self.points, self.engine, dtype=cheaper)

    @property
    def _few(self) -> Any:
        """Precision of a few entries: only the fused tile brings rows into the range of float16."""
        return np.float32 if self.dtype == np.float16 else self.dtype

    @property
    def pairs(self) -> Any:
        """The tiles of k(Z, Z)."""
        return self.kernel.pairs(self.points, dtype=self.dtype, store=self._room())

    def _room(self) -> int:
        """Bytes for prepared rows; a fused tile prepares its own."""
        fused = self.dtype != np.float64 and self.engine.fuses(self.kernel)
        return 0 if fused else int(ROWS_SHARE * self.engine.memory)

    def project(self, X: Array, W: Array) -> Array:
        """k(X, Z) W, tile by tile; of inner products by way of Z' W, which has few columns."""
        X, Z = self.engine.place(X), self.points
        on_host = all(isinstance(rows, np.ndarray) or is_sparse(rows) for rows in (X, Z))
        if not (self.kernel.is_inner_product and on_host):
            pairs = self.kernel.pairs(X, Z, dtype=self.precision(X), store=self._room())
            return self.engine.pair_rows(pairs, W)
        engine, d = self.engine, X.shape[1]
        rows = min(max(1, engine.memory // (32 * engine.threads * d)), engine.stream_block)
        out = engine.empty((X.shape[0], W.shape[1]))

        def vectors(A, block):
            return self.kernel.embed(rows_of(A, block, np.float64, self.kernel.origin(A)))

        for part in column_parts(W.shape[1], d, engine):
            V = engine.sum_rows(lambda b, W=W[:, part]: vectors(Z, b).T @ W[b], Z.shape[0], rows)
            engine.map_rows(lambda b, V=V: vectors(X, b) @ V, X.shape[0], rows, out[:, part])
        return out

    def gram(self, W: Array) -> Array:
        """k(Z, Z) W, each tile above the diagonal used for both sides."""
        return self.engine.pair_rows(self.pairs, W, TileStore())

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
        few, store = self.points[index], self._room()
        pairs = self.kernel.pairs(self.points, few, dtype=self._few, store=store)
        return self.engine.pair_rows(pairs, W)

    def rows(self, index: Array) -> Array:
        """k(Z[index], Z)."""
        all_of = self.pairs if self.dtype == self._few else self.kernel.pairs(self.points)
        pairs = all_of.of_rows(index)
        # By a copy of the engine, which shows no progress: some rows are not a pass.
        return copy(self.engine).fill(pairs, self.engine.empty(pairs.shape, pairs.dtype))

    def rows_times(self, index: Array, W: Array) -> Array:
        """k(Z[index], Z) W."""
        pairs = self.kernel.pairs(some_of(self.points, index), self.points, self._few)
        return self.engine.pair_rows(pairs, W)

    def minor(self, index: Array) -> Array:
        """k(Z[index], Z[index])."""
        return to_numpy(self.kernel(some_of(self.points, index), dtype=self._few))


class WorkingGram(PointGram):
    """All points within a session: prepared rows and tiles are kept from product to product.

    Attributes
    ----------
    keeps : bool
        Whether tiles are kept from one product to the next while they fit the budget.
    summed : bool
        Whether the first product sums all entries and their squares.
    """

    keeps = summed = True

    @cached_property
    def draft(self) -> Any:  # type: ignore[override]
        draft = super().draft
        if draft is not None:
            draft.keeps, draft.checkpoint = self.keeps, self.checkpoint
            # Tiles of this precision are read once or twice, and made as fast as memory for them
            # is found. All entries are summed by the draft, unless products are few.
            self.summed, self.keeps = not self.keeps, False
        return draft

    pairs = cached_property(PointGram.pairs.fget)  # type: ignore[assignment, attr-defined]

    @cached_property
    def store(self) -> TileStore:  # type: ignore[override]
        """Room for kept tiles: what the budget leaves beside everything else."""
        if not self.keeps:
            return TileStore()
        side, threads = self.engine.tiling(self.pairs)
        # The other precision has tiles in flight and prepared rows as well.
        others = 2 * threads * self.pairs.tile_bytes(side) + 3 * self.pairs.kept_bytes
        return TileStore(self.engine.memory - others, self.engine.empty)

    def gram(self, W: Array) -> Array:
        self.store.weights = self.weights if self.summed else None

        def make():
            return self.engine.pair_rows(self.pairs, W, self.store)

        if self.checkpoint is None:
            return make()
        return self.engine.asarray(self.checkpoint.product(make, W, self.dtype, self.store))

    def formed(self) -> GramBasis:
        """G as a matrix where it fits half of the budget, else the same by tiles.

        A device makes rows about as fast as it reads them.
        """
        n, memory = self.size, self.engine.memory
        # Products of a single-precision matrix need a copy in double precision.
        held, tile = 8 * n**2, self.pairs.tile_bytes(self.engine.sides[-1])
        if self.engine.device is not None or held > min(memory // 2, memory - tile):
            return self
        K = self.engine.with_memory(memory - held).fill(self.pairs, np.empty((n, n), self.dtype))
        return PrecomputedBasis(K, self.engine)

    def _close(self) -> None:
        """Let go of tiles and prepared rows, those of drafts too."""
        for name in ("pairs", "store"):
            vars(self).pop(name, None)
        draft = vars(self).pop("draft", None)
        if draft is not None:
            draft._close()


def column_parts(columns: int, d: int, engine: Any) -> list[slice]:
    """Parts of a number of columns whose sums over all rows, (d, b) for each thread, fit memory."""
    return row_blocks(columns, max(1, engine.memory // (4 * 8 * d * (engine.threads + 2))))


def wide_rows(X: Any) -> Any:
    """Rows in double precision; of wide ones blocks that are so."""
    if isinstance(X, np.ndarray) and X.dtype != np.float64 and X.shape[0] > block_rows(X):
        return SomeRows(X, np.arange(X.shape[0]), np.float64)
    return rows_of(X, slice(None), dtype_in(np if is_sparse(X) else array_namespace(X), np.float64))
