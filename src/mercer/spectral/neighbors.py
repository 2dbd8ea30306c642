"""The nearest rows of every row: exact ones by tiles or a k-d tree, or nearly all by an index.

A tile is one product in single precision, s = |z|^2 - 2 x'z, of which each row keeps its k and
SPARE more smallest entries. These are measured again in double precision, from differences. The
rounding of s is at most e, so that all others are farther than the k-th found if the last one kept
is, less e; rows of which this cannot be said are screened again in double precision, and compared
with all others where even that loses the digits that matter.
"""

from importlib.util import find_spec

import numpy as np
from sklearn.neighbors import NearestNeighbors

from .._packages import needed
from ..compute import TiledEngine, array_namespace, is_sparse, match_sparsity, row_blocks, to_numpy
from ..compute.arrays import Array
from ..kernels.base import check_range, row_squares

# Entries kept beyond k: fewer leave rows to double precision, more are measured for nothing.
SPARE = 8
# Columns up to which a k-d tree is faster, if the rows are at least so many.
TREE_COLUMNS, TREE_ROWS = 5, 2000
# Seconds of an exact search beyond which "auto" takes an index, and what a pair costs one core: its
# entry and each of its columns.
LONG, PAIR_SECONDS, COLUMN_SECONDS = 60.0, 4e-10, 3e-11
# Share of a squared distance by which two of them are told apart.
TIE = 1e-9
# Links of a row in the index, and rows looked at on the way to its neighbors.
LINKS, BREADTH = 16, 80
# Bytes for an entry of a tile: itself, and what a device sorts it with.
ENTRY_BYTES = 24


def search_way(X: Array, asked: str, engine: TiledEngine) -> tuple[str, str]:
    """How the neighbors of the rows of X are found, and why: "tree", "exact" or "approximate"."""
    n, d = X.shape
    local = engine.device is None and not is_sparse(X)
    if asked == "approximate":
        needed("faiss", "neighbors", "neighbor_search='approximate'")
        if not local:
            raise ValueError(
                "neighbor_search='approximate' takes dense rows in main memory. Use "
                "neighbor_search='exact', or pass X as a dense NumPy array."
            )
        return asked, "nearly all nearest neighbors, by an HNSW index as asked for"
    if local and d <= TREE_COLUMNS and n >= TREE_ROWS:
        return "tree", "exact nearest neighbors, by a k-d tree"
    seconds = n**2 * (PAIR_SECONDS + d * COLUMN_SECONDS) / engine.threads
    if asked == "auto" and local and seconds > LONG and find_spec("faiss") is not None:
        return "approximate", (
            f"nearly all nearest neighbors, by an HNSW index: exact ones take about {seconds:,.0f} "
            "s (neighbor_search='exact')"
        )
    return "exact", "exact nearest neighbors, by tiles of all pairs"


def neighbors_of_all(
    X: Array, k: int, engine: TiledEngine, way: str
) -> tuple[np.ndarray, np.ndarray]:
    """The k nearest rows of every row, itself among them, and their distances: two (n, k)."""
    check_range(X, "Neighbors")
    if way == "exact":
        return nearest(X, X, k, engine)
    if way == "tree":
        search = NearestNeighbors(n_neighbors=k, algorithm="kd_tree", n_jobs=engine.threads)
        distances, index = search.fit(X).kneighbors(X)
        return index, distances
    import faiss

    screen, (n, d) = Screen(X, engine), X.shape
    keep, missed, found = min(k + SPARE, n), [], []
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(engine.threads)
    try:
        graph = faiss.IndexHNSWFlat(d, LINKS)
        graph.hnsw.efConstruction, graph.hnsw.efSearch = BREADTH, max(BREADTH, 2 * keep)
        blocks = row_blocks(n, screen.side(keep))
        for block in blocks:
            graph.add(screen.scaled(X[block]).astype(np.float32))
        for block in blocks:
            kept = graph.search(screen.scaled(X[block]).astype(np.float32), keep)[1]
            itself = np.arange(block.start, block.stop)[:, None]
            odd = (kept < 0).any(axis=1) | (kept != itself).all(axis=1)
            missed.append(itself[odd, 0])
            found.append(screen.ordered(X[block], np.maximum(kept, 0), k))
    finally:
        faiss.omp_set_num_threads(threads)
    index, distances = (np.concatenate(part) for part in zip(*found, strict=True))
    rows = np.concatenate(missed)
    if rows.size:
        index[rows], distances[rows] = nearest(X[rows], X, k, engine)
    return index, distances


def nearest(X: Array, Z: Array, k: int, engine: TiledEngine) -> tuple[np.ndarray, np.ndarray]:
    """The k rows of Z nearest to every row of X and their distances, exactly: two (n, k)."""
    screen = Screen(Z, engine)
    index, distances, sure = screen.nearest(X, k, screen.first_precision)
    rows = np.flatnonzero(~sure)
    if rows.size:
        index[rows], distances[rows], sure = screen.nearest(X[rows], k, np.float64)
        everyone = np.arange(Z.shape[0])[None]
        for row in rows[~sure]:  # all digits cancel: differences to all rows
            index[row], distances[row] = screen.ordered(X[row : row + 1], everyone, k)
    return index, distances


class Screen:
    """Rows Z whose distances to others are screened by tiles: see the module."""

    def __init__(self, Z: Array, engine: TiledEngine):
        self.engine, self.sparse = engine, is_sparse(Z)
        self.Z = Z if self.sparse else engine.place(Z)
        self.first_precision = np.float64 if self.sparse else np.float32
        self.origin, self.unit, m = 0.0, 1.0, Z.shape[0]
        blocks = row_blocks(m, engine.stream_block)
        if not self.sparse:
            xp = array_namespace(self.Z[:1])
            self.origin = sum(xp.sum(wide(self.Z[block]), axis=0) / m for block in blocks)
        #: The largest norm; tiles are of rows in its units, so that their squares are in range.
        squares = (float(row_squares(self.scaled(self.Z[block])).max()) for block in blocks)
        self.unit = max(squares) ** 0.5 or 1.0

    def nearest(self, X: Array, k: int, dtype):
        """`nearest` of the module, and a mask of the rows whose neighbors are certain."""
        n, keep = X.shape[0], min(k + SPARE, self.Z.shape[0])
        distances, sure = np.empty((n, k)), np.empty(n, bool)
        index, side = np.empty((n, k), np.int64), self.side(keep)

        def found(block):
            part = self._placed(X[block])
            rows = self.scaled(part)
            values, kept = self._smallest(rows, keep, side, dtype)
            kept, distances[block] = self.ordered(part, kept, k)
            norms = to_numpy(row_squares(rows))
            rounding = self._rounding(norms, dtype)
            farthest = (distances[block][:, -1] / self.unit) ** 2
            beyond = to_numpy(values[:, -1]) + norms - rounding >= farthest
            # Nothing is nearer than equal rows, and what rounding does not tell apart is a tie.
            sure[block] = beyond | (keep == self.Z.shape[0]) | (rounding <= TIE * farthest)
            sure[block] |= farthest == 0
            return kept

        self.engine.map_rows(found, n, side, index)
        return index, distances, sure

    def within(self, X: Array, radii: np.ndarray) -> tuple[np.ndarray, ...]:
        """Pairs of a row of X and a row of Z nearer than the latter's radius, and distances."""
        parts, side, limits = [], self.side(0), np.square(radii / self.unit)
        for block in row_blocks(X.shape[0], side):
            part = self._placed(X[block])
            rows = self.scaled(part)
            norms = to_numpy(row_squares(rows))
            slack = self._rounding(norms, self.first_precision) - norms
            for tile, columns in self._tiles(rows, side, self.first_precision):
                close = np.nonzero(to_numpy(tile) < limits[columns] + slack[:, None])
                i, j = close[0], close[1] + columns.start
                exact = self._measured(part[i], j[:, None])[:, 0] if i.size else np.empty(0)
                inside = exact < radii[j]
                parts.append((i[inside] + block.start, j[inside], exact[inside]))
        return tuple(np.concatenate(part) for part in zip(*parts, strict=True))

    def side(self, keep: int) -> int:
        """Rows and columns of a tile, with what is measured again, within the budget."""
        engine, d = self.engine, self.Z.shape[1]
        side, room = engine.stream_block, engine.memory // (2 * engine.threads)
        while side > 64 and side * (ENTRY_BYTES * side + 16 * (keep + d) + 24 * keep * d) > room:
            side //= 2
        return side

    def scaled(self, X) -> Array:
        """Rows in units, about the origin that keeps rounding small."""
        return (wide(X) if self.sparse else wide(X) - self.origin) / self.unit

    def ordered(self, X, kept, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The k nearest of the rows of Z numbered `kept`, and their distances, nearest first."""
        exact = self._measured(X, kept)
        order = np.lexsort((kept, exact), axis=1)[:, :k]
        return np.take_along_axis(kept, order, axis=1), np.take_along_axis(exact, order, axis=1)

    def _placed(self, X) -> Array:
        """Rows sparse or dense as those of Z are, and where these are."""
        X = match_sparsity(X, self.Z)
        return X if self.sparse else self.engine.place(X)

    def _rounding(self, norms, dtype):
        """At most by how much screened entries are off, (b,)."""
        terms = (self.Z.shape[1] + 8) * np.finfo(dtype).eps / 2
        return terms * (2 * np.sqrt(norms) + 1)

    def _tiles(self, rows, side, dtype):
        """|z|^2 - 2 x'z of rows in units, with the slice of Z that each tile is of."""
        Z = self.Z
        if self.sparse:
            for columns in row_blocks(Z.shape[0], side):
                scaled = self.scaled(Z[columns])
                yield (rows @ scaled.T).toarray() * -2.0 + row_squares(scaled), columns
            return
        xp = array_namespace(rows)
        kind = xp.float32 if dtype == np.float32 else xp.float64
        left = xp.asarray(xp.concat([-2.0 * rows, xp.ones_like(rows[:, :1])], axis=1), dtype=kind)
        for columns in row_blocks(Z.shape[0], side):
            scaled = self.scaled(Z[columns])
            right = xp.concat([scaled, row_squares(scaled)[:, None]], axis=1)
            yield left @ xp.asarray(right, dtype=kind).T, columns

    def _smallest(self, rows, keep, side, dtype):
        """The `keep` smallest entries of every row, rising, and their columns, (b, keep)."""
        shape, tiles = (rows.shape[0], keep), self._tiles(rows, side, dtype)
        values = self.engine.asarray(np.full(shape, np.inf, dtype))
        kept = self.engine.asarray(np.zeros(shape, np.int64))
        if self.engine.device is None:
            from ..compute._numba import keep_smallest  # numba takes half a second to import

            for tile, columns in tiles:
                keep_smallest(tile, columns.start, values, kept)
            return values, kept
        for tile, columns in tiles:
            xp = array_namespace(tile)
            index = xp.arange(columns.start, columns.stop, device=tile.device)
            index = xp.concat([kept, xp.broadcast_to(index, tile.shape)], axis=1)
            values, place = xp.concat([values, tile], axis=1).topk(keep, dim=1, largest=False)
            kept = index.gather(1, place)
        return values, to_numpy(kept)

    def _measured(self, X, kept) -> np.ndarray:
        """Distances of rows of X to the rows of Z numbered `kept`, in double precision."""
        D = wide(self._placed(X))[np.repeat(np.arange(X.shape[0]), kept.shape[1])]
        D -= wide(self.Z[kept.ravel()])
        D /= self.unit
        return to_numpy(row_squares(D)).reshape(kept.shape) ** 0.5 * self.unit


def wide(X) -> Array:
    """Rows in double precision."""
    if is_sparse(X):
        return X.astype(np.float64, copy=False)
    xp = array_namespace(X)
    return xp.astype(X, xp.float64, copy=False)
