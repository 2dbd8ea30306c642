"""All points of a cluster as the basis: products with k(Z, Z) by pairs of chunks.

For chunks i < j one task makes the tiles of k(Z_i, Z_j) once and uses them for both sides,
``K V_j`` and ``K' V_i``; the parts of every chunk are added where they are, and (n_i, b) comes
back. Rows never leave the workers, vectors live with the caller.
"""

import numpy as np

from ..bases.base import GramBasis
from ..bases.points import PointGram
from ..compute import is_sparse, match_sparsity, to_numpy
from ..compute.engine import row_blocks
from ..compute.linalg import times_few
from ..fitting.costs import fits_client
from .chunks import Chunks
from .tasks import Crew, constant, delayed, run, tree_sum

# New rows that are sent to all chunks at a time.
SENT_ROWS = 65536
# Share of the budget that a block of rows brought here may take.
BLOCK_SHARE = 64


class ChunkGram(GramBasis):
    """phi(z) for the rows of a Dask array.

    Parameters
    ----------
    kernel : Kernel
        With numbers for all parameters.
    chunks : Chunks
        Of known lengths.
    engine : LocalEngine
        Of the caller, for what is small.
    crew : Crew
        What tasks may take.
    single : bool
        Whether there is a draft.
    dtype : dtype
        Precision of the tiles; sums are always in float64.
    """

    draft: "ChunkGram | None" = None

    def __init__(self, kernel, chunks: Chunks, engine, crew: Crew, single=True, dtype=np.float64):
        self.kernel, self.engine, self.crew = kernel, engine, crew
        self.chunks = self._given = chunks
        self.single, self.dtype = single, dtype
        self.size = int(chunks.count or 0)
        if single and dtype == np.float64:
            self.draft = ChunkGram(kernel, chunks, engine, crew, dtype=np.float32)

    @property
    def points(self):
        """The rows as a Dask array, (n, d)."""
        return self.chunks.array

    @property
    def at_hand(self) -> bool:
        """Whether all rows would take little of the budget here."""
        return fits_client(self.bytes, self.engine.memory)

    @property
    def bytes(self) -> int:
        """Bytes of all rows, about."""
        return self.size * self._given.entries * self._given.dtype.itemsize

    @property
    def rows_dtype(self):
        """The type of the rows."""
        return self._given.dtype

    @property
    def width(self) -> int:
        """Columns of the rows."""
        return self._given.width

    @property
    def sparse_rows(self) -> bool:
        """Whether the rows are sparse."""
        return self._given.sparse

    def here(self):
        """The points brought here where they fit; the products then need no cluster."""
        if not self.at_hand:
            return self
        return PointGram(self.kernel, self._given.whole(), self.engine, single=self.single)

    def pieces(self):
        """The rows in their order, some at a time, brought here."""
        return self._given.pieces(self.engine.memory // BLOCK_SHARE)

    def gradients(self, X, W):
        """Points are brought here some at a time."""
        total, start = 0.0, 0
        for Z in self.pieces():
            stop = start + Z.shape[0]
            Z = (Z.toarray() if is_sparse(Z) else Z).astype(float)
            total, start = total + self.kernel.gradient(X, Z, W[start:stop]), stop
        return total

    def hold(self, chunks: Chunks) -> None:
        """Take the same rows from persisted chunks, of any lengths, until `release`."""
        self.chunks = chunks
        if self.draft is not None:
            self.draft.chunks = chunks

    def keep_in(self, checkpoint):
        """Leave products in a checkpoint, where there is one."""
        self.checkpoint = checkpoint
        if self.draft is not None:
            self.draft.checkpoint = checkpoint

    def release(self):
        """Forget the draft, the persisted chunks and the checkpoint."""
        self.draft, self.chunks, self.checkpoint = None, self._given, None

    def gram(self, W):
        """k(Z, Z) W, each pair of chunks used for both sides."""
        return self.kept_product(W, lambda: self._product(W))

    def _product(self, W):
        parts = self.chunks.filled()
        make = self.crew.engine(len(parts) * (len(parts) + 1) // 2)
        own, cross = delayed(own_product), delayed(cross_products, nout=2)
        V = self._pieces(W, parts)
        sums: list[list] = [[] for _ in parts]
        for i, (_, Z) in enumerate(parts):
            sums[i].append(own(self.kernel, Z, V[i], self.dtype, make))
            for j in range(i + 1, len(parts)):
                both = cross(self.kernel, Z, parts[j][1], V[i], V[j], self.dtype, make)
                for k, part in zip((i, j), both, strict=True):
                    sums[k].append(part)
        return np.vstack(run([tree_sum(part) for part in sums]))

    def columns(self, index, W):
        """k(Z, Z[index]) W."""
        parts, some = self.chunks.filled(), constant(self.chunks.rows(index))
        product, make = delayed(row_products), self.crew.engine(len(parts))
        weights = constant(W)
        return np.vstack(
            run([product(self.kernel, Z, some, weights, self.dtype, make) for _, Z in parts])
        )

    def rows_times(self, index, W):
        """k(Z[index], Z) W."""
        some = constant(self.chunks.rows(index))
        return run(self._lazy([some], W, self.dtype))[0]

    def project(self, X, W):
        """k(X, Z) W: the rows go to the chunks, some at a time."""
        blocks = [X[rows] for rows in row_blocks(X.shape[0], SENT_ROWS)]
        return np.vstack([run(self.lazy_products([constant(rows)], W))[0] for rows in blocks])

    def lazy_products(self, blocks, W) -> list:
        """k(X, Z) W for every delayed block of rows X, themselves delayed."""
        single = self.single and self.chunks.dtype == np.float32
        return self._lazy(blocks, W, np.float32 if single else np.float64)

    def rows(self, index):
        """k(Z[index], Z)."""
        parts, some = self.chunks.filled(), constant(self.chunks.rows(index))
        tile, make = delayed(kernel_rows), self.crew.engine(len(parts))
        return np.hstack(run([tile(self.kernel, some, Z, self.dtype, make) for _, Z in parts]))

    def minor(self, index):
        """k(Z[index], Z[index])."""
        return self.kernel(self.chunks.rows(index))

    def to_dense(self):
        """k(Z, Z), for the few rows where that is wanted: they are brought here."""
        rows = self.chunks.whole()
        return PointGram(self.kernel, rows, self.engine, single=False).to_dense()

    def diagonal(self):
        """k(z, z)."""
        diag = delayed(self.kernel.diag)
        return np.concatenate(run([diag(Z) for _, Z in self.chunks.filled()])).astype(float)

    def is_constant(self):
        """Whether all points are equal."""
        if self.sparse_rows:
            return False  # as of an array: not known
        first, same = constant(self.chunks.rows([0])), delayed(all_equal)
        return all(run([same(Z, first) for _, Z in self.chunks.filled()]))

    def norms(self, X):
        """k(x, x)."""
        return self.kernel.diag(X)

    def block_products(self, X, W=None, dtype=None):
        """k(rows, Z) W for a block of rows, W (m, b)."""
        if W is None:
            raise ValueError("Rows of the kernel matrix against a cluster are products: give W.")
        return lambda block: self.project(X[block], W)

    def stream_width(self):
        """Nothing is kept here but the result."""
        return 1

    def whitener(self, dtype):
        """Not used: the Gram matrix is the problem itself."""
        raise NotImplementedError("All points of a cluster are decomposed as a Gram matrix.")

    def _lazy(self, blocks, W, dtype):
        """Sums over chunks of k(X, Z_i) W_i for delayed blocks X, delayed."""
        parts = self.chunks.filled()
        product, make = delayed(row_products), self.crew.engine(len(parts) * len(blocks))
        pieces = self._pieces(W, parts)

        def terms(rows):
            for (_, Z), V in zip(parts, pieces, strict=True):
                yield product(self.kernel, rows, Z, V, dtype, make)

        return [tree_sum(list(terms(rows))) for rows in blocks]

    def _pieces(self, W, parts):
        """The rows of W that belong to each chunk, in the precision of the tiles."""
        return [constant(np.ascontiguousarray(W[rows], dtype=self.dtype)) for rows, _ in parts]


def own_product(kernel, Z, V, dtype, make):
    """k(Z, Z) V within a chunk."""
    engine = make()
    return to_numpy(engine.pair_rows(kernel.pairs(engine.place(Z), dtype=dtype), V))


def cross_products(kernel, X, Z, U, V, dtype, make):
    """k(X, Z) V and k(X, Z)' U between two chunks, every tile made once."""
    engine = make()
    if engine.fuses(kernel):
        # A fused tile is not kept for the other side, and still faster made twice.
        left = row_products(kernel, X, Z, V, dtype, make)
        return left, row_products(kernel, Z, X, U, dtype, make)
    pairs = kernel.pairs(engine.place(X), engine.place(Z), dtype=dtype)
    side, _ = engine.tiling(pairs)
    columns = row_blocks(pairs.shape[1], side)
    U, V = (engine.asarray(A, pairs.dtype) for A in (U, V))
    left = engine.zeros((pairs.shape[0], V.shape[1]))

    def strip(rows):
        scratch = engine.empty((side, side), pairs.dtype)
        right = engine.zeros((pairs.shape[1], U.shape[1]))
        for j in columns:
            T = pairs.tile(rows, j, scratch[: rows.stop - rows.start, : j.stop - j.start])
            left[rows] += times_few(T, V[j])
            right[j] += times_few(T.T, U[rows])
        return right

    right = engine.sum_rows(strip, pairs.shape[0], side)
    return to_numpy(left), to_numpy(right)


def row_products(kernel, X, Z, W, dtype, make):
    """k(X, Z) W."""
    engine = make()
    # New rows may be dense where those of the fit are not.
    X = match_sparsity(X, Z)
    pairs = kernel.pairs(engine.place(X), engine.place(Z), dtype=dtype)
    return to_numpy(engine.pair_rows(pairs, W))


def kernel_rows(kernel, X, Z, dtype, make):
    """k(X, Z)."""
    engine = make()
    pairs = kernel.pairs(engine.place(X), engine.place(Z), dtype=dtype)
    return to_numpy(engine.fill(pairs, engine.empty(pairs.shape, pairs.dtype)))


def all_equal(rows, first) -> bool:
    """Whether all rows equal one."""
    return bool((rows == first).all())
