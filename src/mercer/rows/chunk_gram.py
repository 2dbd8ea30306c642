"""All points of a cluster as the basis: products with k(Z, Z) by pairs of chunks.

For chunks i < j one task makes the tiles of k(Z_i, Z_j) once and uses them for both sides,
``K V_j`` and ``K' V_i``; the parts of every chunk are added where they are, and (n_i, b) comes
back. Sparse rows Y_i of linear and cosine kernels multiply vectors themselves, ``Y_i (sum_j Y_j'
V_j)``. Rows never leave the workers, vectors live with the caller.
"""

from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from functools import cached_property, partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..bases.base import GramBasis
from ..bases.points import DRAFT_SPREAD, AllPoints, PointGram
from ..compute import format_bytes, is_sparse, match_sparsity, stack_rows, to_numpy
from ..compute.engine import TileStore, row_blocks, tile_sums
from ..compute.linalg import times_few
from ..fitting.costs import client_vectors
from ..fitting.expansion import KernelExpansion
from ..kernels.base import rows_of
from .tasks import constant, delayed, empty_like, filled, run, take_rows, tree_sum

# New rows that are sent to all chunks at a time.
SENT_ROWS = 65536
# Rows of all chunks beside which rounding within one is judged; squared distances between rows of
# two chunks are at most four times those from the middle of one.
SEEN_ROWS, GROWTH_MARGIN = 256, 4.0
# Tiles between two chunks are centered on one of them and not on all rows, so that squared
# norms in them are up to four times those that the spread is judged by, on so many rows.
PAIR_SPREAD, SPREAD_ROWS = DRAFT_SPREAD / 4, 2000
# Chunk pairs for each core: enough that no core waits long for the last one.
PAIRS_PER_CORE = 4
# Share of a core's memory that the two chunks of a pair and their vectors may take.
PAIR_SHARE = 0.1
# Methods that need all rows, or tiles made of them, in one place.
IN_ONE_PLACE = ("krylov, tiles kept", "HebbianKernelPCA", "arpack, products of rows")


class ChunkGram(GramBasis):
    """phi(z) for the rows of a Dask array.

    Parameters
    ----------
    kernel : Kernel
        With numbers for all parameters.
    points : dask.array.Array of shape (n, d)
        Of known lengths, one column of chunks.
    engine : LocalEngine
        Of the caller, for what is small.
    workers : Workers
        What tasks may take.
    entries : int or None
        Numbers of a row, about; None for dense rows.
    columns : int
        Columns of vectors that a product has, about.
    """

    def __init__(self, kernel, points, engine, workers, entries=None, columns=64):
        self.kernel, self.engine, self.workers = kernel, engine, workers
        self.points = self._held = points
        entries = points.shape[1] if entries is None else entries
        self.size, self.bytes = points.shape[0], points.shape[0] * entries * points.dtype.itemsize
        self._columns = entries + columns
        self.sparse_rows = is_sparse(empty_like(points))
        fits = 8 * points.shape[1] * columns <= workers.core_memory
        #: Whether products are those of rows, and no tile is made.
        self.multiplies = self.sparse_rows and kernel.is_inner_product and fits
        #: What was found out of the rows, shared by copies.
        self._facts: dict[str, Any] = {}
        self.store = SimpleNamespace(sums=None)

    @cached_property
    def single(self) -> bool:
        """Whether single precision keeps enough digits on these points."""
        rows = take_rows(self._held, np.arange(0, self.size, -(-self.size // SPREAD_ROWS)))
        return bool(self.kernel.spread(rows) <= PAIR_SPREAD)

    @property
    def draft(self) -> Any:  # type: ignore[override]
        """The same points in single precision, where rounding allows it."""
        if self.multiplies or self.dtype == np.float32 or not self.single:
            return None
        draft = copy(self)
        draft.dtype, draft.store = np.float32, SimpleNamespace(sums=None)
        return draft

    @contextmanager
    def session(self, reserve=0, checkpoint=None, keeps_tiles=True, forms_matrix=False):
        """The points in chunks of even lengths, which the workers hold until the end."""
        working = copy(self)
        if not self.multiplies:
            self.single  # noqa: B018
        cores, room = self.workers.cores, self.workers.core_memory
        working._held = evened(self.points, cores, room, self._columns).persist()
        working.checkpoint, working.store = checkpoint, SimpleNamespace(sums=None)
        check = delayed(self.kernel.check)
        run([check(rows) for _, rows in filled(working._held)])
        yield working
        # What the result needs, while the chunks are held.
        working.diagonal()
        working.rounding()

    @property
    def at_hand(self) -> bool:
        """Whether all rows would take no more than a quarter of the budget here."""
        return self.bytes <= self.engine.memory // 4

    def here(self):
        """The points brought here where they fit; the products then need no cluster."""
        if not self.at_hand:
            return self
        points = run([self.points])[0]
        return AllPoints().build(self.kernel, points, self.engine, np.random.default_rng(0))

    def pieces(self):
        """The rows in their order, a chunk at a time, brought here."""
        for _, block in filled(self.points):
            yield run([block])[0]

    def explained(self, plan: Any) -> Any:
        """The plan for rows that stay on the workers, without methods that need them here."""
        work, memory = plan.workload, self.engine.memory
        vectors = client_vectors(work.n, work.r)
        how = "products of chunks" if self.multiplies else "pairs of chunks"
        note = f"by {how} on the workers; the memory is that of the client"
        estimates = tuple(
            replace(e, bytes=vectors, fits=e.fits and vectors <= work.memory, note=note)
            if e.method == "krylov, matrix-free"
            else e
            for e in plan.estimates
            if e.method not in IN_ONE_PLACE
        )
        learned = "learn from all of them" if self.at_hand else "from a sample, by a ridge"
        learned = "need dense rows" if self.sparse_rows else learned
        size = format_bytes(self.bytes)
        after = (
            f"by Dask, {self.workers.cores} tasks at a time; the rows stay there: transform works "
            f"there, saving writes {size} of them chunk by chunk, pre-images {learned}"
        )
        chosen, reason = plan.chosen, plan.reason
        if chosen.method in IN_ONE_PLACE:
            free = next(e for e in estimates if e.method == "krylov, matrix-free")
            solver = free.solver if plan.left_to_us else plan.solver
            chosen = replace(free, solver=solver, fits=free.fits or memory >= vectors)
            reason = f"{free.method}: rows stay on the workers, tiles are not kept"
        return replace(plan, estimates=estimates, chosen=chosen, reason=f"{reason}; {after}")

    def gram(self, W):
        """k(Z, Z) W, each pair of chunks used for both sides."""
        if self.checkpoint is None:
            return self._product(W)
        return self.checkpoint.product(partial(self._product, W), W, self.dtype, self.store)

    def _product(self, W):
        Z, V = self._with(W)
        if self.multiplies:
            return np.vstack(run(self._lazy(Z, Z, V, self.dtype)))
        make = self.workers.engine(len(Z) * (len(Z) + 1) // 2)
        within, cross = delayed(own_product), delayed(cross_products, nout=2)
        weights = self.weights if self.store.sums is None else None
        parts = filled(self._held)
        w = [constant(None if weights is None else weights[rows]) for rows, _ in parts]
        sums: list[list] = [[] for _ in Z]
        for i in range(len(Z)):
            sums[i].append(within(self.kernel, Z[i], V[i], w[i], self.dtype, make))
            for j in range(i + 1, len(Z)):
                both = cross(self.kernel, Z[i], Z[j], V[i], V[j], w[i], w[j], self.dtype, make)
                for k, part in zip((i, j), both, strict=True):
                    sums[k].append(part)
        total = np.vstack(run([tree_sum(part) for part in sums]))
        if weights is None:
            return total
        self.store.sums = float(weights @ total[:, -1]), total[:, -2].copy()
        return total[:, :-2]

    def columns(self, index, W):
        """k(Z, Z[index]) W."""
        few, chunks = constant(take_rows(self._held, index)), [Z for _, Z in filled(self._held)]
        return np.vstack(run(self._lazy(chunks, [few], [constant(W)], self.dtype)))

    def rows_times(self, index, W):
        """k(Z[index], Z) W."""
        few = constant(take_rows(self._held, index))
        return run(self._lazy([few], *self._with(W), self.dtype))[0]

    def project(self, X, W):
        """k(X, Z) W: the rows go to the chunks, some at a time."""
        blocks = [constant(X[rows]) for rows in row_blocks(X.shape[0], SENT_ROWS)]
        Z, V = self._with(W)
        return np.vstack([run(self._lazy([rows], Z, V, self._new_dtype))[0] for rows in blocks])

    def mapped(self, function, array):
        """A verb of an expansion for the rows of another array, lazy; a tree of tasks a chunk."""
        import dask.array as da

        expansion, blocks = function.expansion, array.to_delayed().ravel()
        products = self._lazy(blocks, *self._with(expansion.frame), self._new_dtype)
        finish, meta = delayed(frame_result), np.empty((0,) * (1 + len(function.tail)), array.dtype)
        results = [
            finish(function.verb, self.kernel, expansion.metric, rows, P, array.dtype)
            for rows, P in zip(blocks, products, strict=True)
        ]
        arrays = [
            da.from_delayed(result, (length, *function.tail), meta=meta)
            for result, length in zip(results, array.chunks[0], strict=True)
        ]
        return da.concatenate(arrays, allow_unknown_chunksizes=True)

    @property
    def _new_dtype(self):
        """Precision of the products with new rows."""
        return np.float32 if self.single and self.points.dtype == np.float32 else np.float64

    def _with(self, W) -> tuple[Any, Any]:
        """The chunks, and the rows of W that belong to each, in the precision of the tiles."""
        places, chunks = zip(*filled(self._held), strict=True)
        pieces = (np.ascontiguousarray(W[rows], dtype=self.dtype) for rows in places)
        return chunks, list(map(constant, pieces))

    def _lazy(self, blocks, points, pieces, dtype):
        """Sums of k(X, Z_i) W_i over delayed points Z_i and pieces W_i, for delayed blocks X."""
        if self.multiplies:
            sums, times = delayed(row_sums), delayed(row_times)
            V = tree_sum([sums(self.kernel, *each) for each in zip(points, pieces, strict=True)])
            return [times(self.kernel, rows, V) for rows in blocks]
        product, make = delayed(row_products), self.workers.engine(len(points) * len(blocks))
        return [
            tree_sum(
                [
                    product(self.kernel, rows, Z, W, dtype, make)
                    for Z, W in zip(points, pieces, strict=True)
                ]
            )
            for rows in blocks
        ]

    def rows(self, index):
        """k(Z[index], Z)."""
        return self.columns(index, np.eye(len(index))).T

    def minor(self, index):
        """k(Z[index], Z[index])."""
        return self.kernel(take_rows(self._held, index))

    def to_dense(self):
        """k(Z, Z), for the few rows where that is wanted: they are brought here."""
        return PointGram(self.kernel, run([self._held])[0], self.engine, single=False).to_dense()

    def diagonal(self):
        """k(z, z)."""
        if "diagonal" not in self._facts:
            diag = delayed(self.kernel.diag)
            parts = run([diag(Z) for _, Z in filled(self._held)])
            self._facts["diagonal"] = np.concatenate(parts).astype(float)
        return self._facts["diagonal"].copy()

    def is_constant(self):
        """Whether all points are equal."""
        if self.sparse_rows:
            return False  # as of an array: not known
        first, same = constant(take_rows(self._held, [0])), delayed(np.array_equiv)
        return all(run([same(Z, first) for _, Z in filled(self._held)]))

    def rounding(self):
        """As of `PointBasis`, for any two chunks: each with some rows of all, and a margin."""
        if "growth" not in self._facts:
            index = np.arange(0, self.size, -(-self.size // SEEN_ROWS))
            seen, growth = constant(take_rows(self._held, index)), delayed(self.kernel.growth)
            stack, chunks = delayed(stack_rows), filled(self._held)
            self._facts["growth"] = max(run([growth(stack([Z, seen])) for _, Z in chunks]))
        eps = float(np.finfo(self.dtype).eps)
        return eps * (self.points.shape[1] + 2) * GROWTH_MARGIN * self._facts["growth"]

    def block_products(self, X, W=None, dtype=None):
        """k(rows, Z) W for a block of rows, W (m, b)."""
        if W is None:
            raise ValueError("Rows of the kernel matrix against a cluster are products: give W.")
        return lambda block: self.project(X[block], W)

    def _row_floats(self):
        """Nothing is kept here but the result."""
        return 1

    def whitener(self, dtype):
        """Not used: the Gram matrix is the problem itself."""
        raise NotImplementedError("All points of a cluster are decomposed as a Gram matrix.")


def evened(array, cores: int, room: int, columns: int) -> Any:
    """Chunks of about equal length, as many as keep `cores` busy with pairs of them.

    Fewer chunks move fewer bytes; a pair with `columns` numbers a row must fit the room.
    """
    n, lengths = array.shape[0], array.chunks[0]
    most = max(1, int(PAIR_SHARE * room / (16 * columns)))
    number = max(int(np.ceil(np.sqrt(2 * PAIRS_PER_CORE * cores))), -(-n // most))
    rows = max(1, -(-n // number))
    few = np.count_nonzero(lengths) <= 2 * number
    if few and max(lengths, default=0) <= min(2 * rows, most):
        return array
    return array.rechunk({0: rows}, method="tasks")


def own_product(kernel, Z, V, w, dtype, make):
    """k(Z, Z) V within a chunk.

    With weights w there are two more columns: sums of w_j K_ij over j, and numbers that sum, times
    w, to all w_i w_j K_ij^2.
    """
    engine, store = make(), TileStore(weights=w)
    KV = to_numpy(engine.pair_rows(kernel.pairs(engine.place(Z), dtype=dtype), V, store))
    if w is None or store.sums is None or store.sums[1] is None:
        return KV if w is None else unsummed(KV)
    square, rows = store.sums
    return np.column_stack([KV, rows, np.full(len(w), square / w.sum())])


def unsummed(KV):
    """A product by a fused tile, which leaves the sums of a cluster unknown."""
    return np.pad(KV, ((0, 0), (0, 2)), constant_values=np.nan)


def cross_products(kernel, X, Z, U, V, u, v, dtype, make):
    """k(X, Z) V and k(X, Z)' U between two chunks, every tile made once; see `own_product`."""
    engine = make()
    if engine.fuses(kernel):
        # A fused tile is not kept for the other side, and still faster made twice.
        left = row_products(kernel, X, Z, V, dtype, make)
        right = row_products(kernel, Z, X, U, dtype, make)
        return (left, right) if u is None else (unsummed(left), unsummed(right))
    pairs = kernel.pairs(engine.place(X), engine.place(Z), dtype=dtype)
    side, _ = engine.tiling(pairs)
    columns = row_blocks(pairs.shape[1], side)
    (U, V), b = (engine.asarray(A, pairs.dtype) for A in (U, V)), U.shape[1]
    u, v = (None if w is None else engine.asarray(w) for w in (u, v))
    further = 0 if u is None else 2
    left = engine.zeros((pairs.shape[0], b + further))

    def strip(rows):
        scratch = engine.empty((side, side), pairs.dtype)
        right = engine.zeros((pairs.shape[1], b + further))
        for j in columns:
            T = pairs.tile(rows, j, scratch[: rows.stop - rows.start, : j.stop - j.start])
            left[rows, :b] += times_few(T, V[j])
            right[j, :b] += times_few(T.T, U[rows])
            if further:
                square, across, down = tile_sums(T, u[rows], v[j])
                left[rows, b] += across
                left[rows, b + 1] += square / u[rows].sum()
                right[j, b] += down
                right[j, b + 1] += square / v[j].sum()
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


def row_sums(kernel, Y, W):
    """Y' W for the rows of a kernel that is an inner product, (d, b)."""
    return kernel.embed(rows_of(Y, slice(None), np.float64)).T @ W


def row_times(kernel, Y, V):
    """Y V, (n, b)."""
    return kernel.embed(rows_of(Y, slice(None), np.float64)) @ V


def frame_result(verb, kernel, metric, rows, P, dtype):
    """A verb of an expansion for rows whose products P with the frame's vectors are known."""
    # The mean and the directions themselves, whose products with the rows are known.
    basis: Any = SimpleNamespace(kernel=kernel, project=lambda X, W: P @ W, norms=kernel.diag)
    expansion = KernelExpansion(basis, np.eye(len(metric)), metric)
    return verb(expansion, rows).astype(dtype, copy=False)
