"""The contract of a selector, and what most of them need: distinct rows, eigenpairs.

With D the atoms chosen so far, ``R = K - K_XD K_DD^+ K_DX`` is the residual of the Gram matrix; its
trace is the projection error that every selector tries to make small.

Rows may be on a device. Arrays with an entry for every row are then computed there; the order of
choice, random numbers and matrices of the size of the choice are in main memory.
"""

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, dataclass_transform

import numpy as np
from scipy.linalg import get_blas_funcs
from sklearn.base import BaseEstimator

from ..compute import array_namespace, is_sparse, on_device_of, to_numpy
from ..compute.arrays import Array, block_rows, dtype_name, some_of
from ..compute.linalg import leading_eigh
from ..kernels import Kernel

# Rows worked on at once: a tile of a hundred columns stays in the cache; a device needs more rows.
TILE, DEVICE_TILE = 4096, 65536
# Bytes of a row from which a digest identifies it.
LONG_ROW = 128
# Up to this size a dense eigensolver beats iterations on a block.
DENSE_EIGENPAIRS = 2500


@dataclass_transform()
class Selector(BaseEstimator):
    """A recipe that chooses landmarks among rows.

    `select` returns row indices in the order of choice, each of equal rows once, and fewer than
    asked for if the data have fewer distinct (or independent) rows. X is an
    array of any library, a sparse matrix, or an object whose blocks of rows are arrays.
    ``kernel(X, Z)`` must be a fresh array each time: it may be overwritten.
    """

    #: The first k atoms are what `select` would return for size k and the same generator.
    nested: bool = True
    #: Coordinates are needed, so a precomputed kernel matrix will not do.
    needs_points: bool = False
    #: `select` returns points instead of row indices.
    returns_points: bool = False
    #: Atoms are linearly independent in feature space, so rank K limits their number.
    independent: bool = False
    #: Asks for k(x, x) and for the columns of K of rows that it chooses, and for nothing else.
    reads_chosen: bool = False
    #: Rows may be drawn more than once, so that fewer than asked for are returned.
    replace: bool = False
    #: Rows that it chooses from, where that is a fixed number.
    pool: int | None = None
    #: Peak bytes for each pair of rows; 0 if it holds no matrix of all pairs.
    pair_bytes: int = 0
    #: Peak bytes for each row and landmark.
    atom_bytes: int = 0

    def __init_subclass__(cls, **settings: Any) -> None:
        """Parameters are fields: every selector is a dataclass, compared by identity."""
        super().__init_subclass__(**settings)
        dataclass(eq=False, repr=False)(cls)

    def work_bytes(self, n: int, size: int, d: int = 0) -> int:
        """Peak bytes when it chooses among n rows of d columns; grows with n."""
        return self.pair_bytes * n**2 + self.atom_bytes * n * size

    def select(self, kernel: Kernel, X: Array, size: int, rng: np.random.Generator) -> Array:
        """Choose at most `size` landmarks among the rows of X."""
        raise NotImplementedError


def row_keys(rows):
    """One hashable value per row, equal where the rows are."""
    if is_sparse(rows):
        rows = rows.tocsr(copy=True)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        cuts = rows.indptr[1:-1]
        parts = zip(np.split(rows.indices, cuts), np.split(rows.data, cuts), strict=True)
        return [(index.tobytes(), value.tobytes()) for index, value in parts]
    # Adding zero turns -0.0 into 0.0, whose bytes differ though the numbers are equal.
    step = block_rows(rows)
    blocks = (to_numpy(rows[i : i + step]) + 0 for i in range(0, rows.shape[0], step))
    keys = (row.tobytes() for block in blocks for row in np.ascontiguousarray(block))
    return [key if len(key) <= LONG_ROW else blake2b(key, digest_size=16).digest() for key in keys]


class Distinct:
    """The rows admitted so far; refuses copies of them."""

    def __init__(self, X):
        self.X = X
        self._keys = set()

    def fresh(self, indices):
        """Which of these rows differ from all admitted ones, as a mask."""
        keys = row_keys(some_of(self.X, indices))
        return np.array([key not in self._keys for key in keys], dtype=bool)

    def admit(self, index):
        """True the first time a row with these values is seen."""
        (key,) = row_keys(self.X[[index]])
        if key in self._keys:
            return False
        self._keys.add(key)
        return True


def first_distinct(X, order, size):
    """The first `size` entries of `order` whose rows differ from each other."""
    chosen: dict = {}
    # Stops early, so that a small sample of many rows does not read all of them.
    for start in range(0, len(order), max(size, 256)):
        block = order[start : start + max(size, 256)]
        for index, key in zip(block, row_keys(some_of(X, block)), strict=True):
            chosen.setdefault(key, index)
        if len(chosen) >= size:
            break
    return as_indices(list(chosen.values())[:size])


def distinct_rows(X):
    """First index and count of every distinct row, and the number of the one each row equals."""
    places: dict = {}
    group = np.array([places.setdefault(key, len(places)) for key in row_keys(X)], dtype=np.intp)
    _, first, counts = np.unique(group, return_index=True, return_counts=True)
    return first, counts, group


def largest_first(sizes):
    """Indices of all sizes that are not zero, the largest first."""
    return np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes)]


def as_indices(chosen):
    """Row indices as an array, (k,)."""
    return np.asarray(chosen, dtype=np.intp)


def rank_tolerance(dtype):
    """Share of k(x, x) below which a residual is rounding: 1e-11, in single precision 1e-5."""
    return 1e-5 if dtype_name(dtype) != "float64" else 1e-11


def residual_floor(diagonal, dtype):
    """Residuals up to this are rounding, (n,); that of large rows also affects small ones."""
    top = max(float(diagonal.max()), 0.0) if len(diagonal) else 0.0
    largest = 100 * np.finfo(dtype_name(dtype)).eps * top
    return array_namespace(diagonal).clip(rank_tolerance(dtype) * diagonal, largest, None)


def row_tiles(X, n):
    """Slices of n rows whose kernel columns are worked on at once, for data such as X."""
    tile = TILE if isinstance(X, np.ndarray) or is_sparse(X) else DEVICE_TILE
    return [slice(start, min(start + tile, n)) for start in range(0, n, tile)]


def solve_lower(C, B):
    """C^-1 B for lower triangular C (b, b) and contiguous B (b, n), which may be overwritten."""
    if isinstance(B, np.ndarray):
        C, trsm = np.asarray(C, dtype=B.dtype), get_blas_funcs("trsm", (B,))
        return trsm(1.0, C, B.T, side=1, lower=1, trans_a=1, overwrite_b=1).T
    xp = array_namespace(B)
    return xp.linalg.solve_triangular(xp.asarray(on_device_of(C, B), dtype=B.dtype), B, upper=False)


def gram(kernel, X):
    """The Gram matrix of a pool of rows, contiguous and on their device, (m, m)."""
    K = kernel(X, X)
    return np.ascontiguousarray(K) if isinstance(K, np.ndarray) else K


def host_gram(kernel, X):
    """The Gram matrix of a pool of rows in main memory, contiguous, (m, m)."""
    return to_numpy(gram(kernel, X))


def top_eigenpairs(K, p, rng):
    """The p largest eigenpairs of a Gram matrix that rise above rounding, largest first."""
    m, eps = len(K), np.finfo(K.dtype).eps
    p = min(p, m)
    K = K.astype(np.float64, copy=False)
    if p == 0:
        return np.zeros(0), np.zeros((m, 0))
    if m <= DENSE_EIGENPAIRS:
        values, U = leading_eigh(np.array(K, order="F"), p)
    else:
        V = rng.standard_normal((m, min(m, p + p // 4 + 16)))
        # Kernel spectra decay, so four passes give the directions to far more digits than the
        # choice of atoms depends on.
        for _ in range(4):
            V, _ = np.linalg.qr(K @ V)
        T = V.T @ (K @ V)
        values, Q = leading_eigh(np.asfortranarray((T + T.T) / 2), p)
        U = V @ Q
    rank = int(np.sum(values > m * eps * max(values[0], 0)))
    return values[:rank], U[:, :rank]


def solution_of_size(solve, size, sparse, factor, least, steps):
    """The first solution with `size` atoms on a path of falling penalties, or the nearest one.

    Solutions are tuples that end with their penalty and have `active` atoms; `sparse` is the first
    of them, and ``solve(penalty, start)`` finds one from another. The penalty falls by a factor, to
    no less than `least`, until there are enough atoms, and is then bisected.
    """
    dense = sparse
    while len(dense.active) < size and dense[-1] * factor > least:
        sparse, dense = dense, solve(dense[-1] * factor, dense)
    for _ in range(steps if len(dense.active) > size else 0):
        trial = solve(np.sqrt(sparse[-1] * dense[-1]), sparse)
        if len(trial.active) < size:
            sparse = trial
        else:
            dense = trial
        if len(dense.active) == size:
            break
    return dense
