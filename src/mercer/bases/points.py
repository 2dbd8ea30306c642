"""Points as the basis: phi(z) for the rows of Z, so that G = k(Z, Z)."""

import numpy as np

from ..compute import TileStore
from ..kernels.base import float_dtype
from .base import Basis, BasisRecipe

# Largest spread (see `Kernel.spread`) at which single-precision tiles still give
# eigenvalues to 1e-5: rounding is about eps * spread, and eps is 6e-8.
DRAFT_SPREAD = 100.0

# Share of the budget that prepared rows may take. Kept tiles save more per byte.
ROWS_SHARE = 0.25


class AllPoints(BasisRecipe):
    """Every training row is a basis vector: exact kernel PCA."""

    def build(self, kernel, X, engine, rng):
        """The points of X, with a single-precision draft where rounding allows it."""
        return PointBasis(kernel, X, engine, draft=kernel.spread(X) <= DRAFT_SPREAD)


class PointBasis(Basis):
    """phi(z) for the rows of `points`, all products by tiles.

    Parameters
    ----------
    kernel : Kernel
        With numbers for all parameters.
    points : array of shape (m, d)
    engine : LocalEngine
    draft : bool
        Offer the same basis in single precision, whose tiles are kept from one product
        to the next while they fit the budget.
    dtype : dtype
        Precision of the tiles; sums are always in float64.
    """

    def __init__(self, kernel, points, engine, draft=False, dtype=np.float64):
        self.kernel, self.points, self.engine = kernel, points, engine
        self.size = points.shape[0]
        self.dtype = dtype
        self.drafts = draft
        self._pairs = None
        self._store: TileStore | None = None
        if draft:
            self.draft = PointBasis(kernel, points, engine, dtype=np.float32)
            self.draft.keep_tiles()

    def keep_tiles(self):
        """Keep tiles between products, in what the budget leaves beside prepared rows."""
        side, threads = self.engine.tiling(self.pairs)
        flight = threads * self.pairs.tile_bytes(side)
        self._store = TileStore(self.engine.memory - flight - self.pairs.kept_bytes)

    def release(self):
        """Forget the draft, kept tiles and prepared rows."""
        self.draft = None
        self._store = None
        self._pairs = None

    @property
    def pairs(self):
        """The tiles of k(Z, Z)."""
        if self._pairs is None:
            room = int(ROWS_SHARE * self.engine.memory)
            self._pairs = self.kernel.pairs(self.points, dtype=self.dtype, store=room)
        return self._pairs

    def project(self, X, W):
        """k(X, Z) W, in the precision of X where single precision is enough."""
        dtype = float_dtype(X) if self.drafts else self.dtype
        pairs = self.kernel.pairs(X, self.points, dtype=dtype)
        return self.engine.pair_rows(pairs, W)

    def gram(self, W):
        """k(Z, Z) W, each tile above the diagonal used for both sides."""
        return self.engine.pair_rows(self.pairs, W, self._store)

    def norms(self, X):
        """k(x, x)."""
        return self.kernel.diag(X)

    def diagonal(self):
        """k(z, z)."""
        return self.kernel.diag(self.points)

    def to_dense(self):
        """k(Z, Z), tile by tile."""
        return self.engine.fill(self.pairs, np.empty(self.pairs.shape))

    def columns(self, index, W):
        """k(Z, Z[index]) W."""
        some = self.kernel.pairs(self.points, self.points[index], dtype=self.dtype)
        return self.engine.pair_rows(some, W)

    def rows(self, index):
        """k(Z[index], Z)."""
        some = self.pairs.of_rows(index)
        return self.engine.fill(some, np.empty(some.shape))

    def minor(self, index):
        """k(Z[index], Z[index])."""
        return self.kernel(self.points[index])

    def __getstate__(self):
        # Tiles are large and their store has a lock: a copy starts without either.
        return self.__dict__ | {"_store": None, "_pairs": None, "draft": None}
