"""The contract of a kernel, and its matrix tile by tile.

A kernel is a recipe: parameters only. `resolve` puts numbers in place of ``None`` and
``"median"``, `pairs` binds it to two sets of rows and a precision.
"""

from abc import ABC, abstractmethod
from copy import copy
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone

from ..compute import ScalarMap, array_namespace, is_sparse, to_numpy
from ..compute.arrays import Array, BlocksOnDemand, dtype_in, itemsize, placement_of

# Rows on which the median or mean distance is taken: half a million pairs settle
# either to a third digit.
WIDTH_SAMPLE = 1000
# Rows prepared at once.
EMBED_ROWS = 512
# Entries whose squares float64 holds with all digits.
WIDTH_RANGE = (1e-100, 1e100)

# Rows whose median is the origin, found in no time.
ORIGIN_ROWS = 128
# Sizes of the largest entry of rows that single precision has room around.
SINGLE_ENTRIES = (1e-30, 1e30)
# Rows squared at once in double precision.
WIDE_ROWS = 65536
# Rows from which the cancellation in a centred matrix is judged.
SPREAD_SAMPLE = 256
# Steps of the power method for the leading eigenvalue of that sample.
POWER_STEPS = 8


class Kernel(BaseEstimator, ABC):
    """A symmetric function k(x, z) of two rows."""

    #: False where some parameter values give negative eigenvalues.
    definite = True
    #: Width, for kernels that have one: a number once the kernel is resolved.
    gamma: Any = None
    #: Tile-sized arrays alive at once while a tile is made, the tile included.
    live_tiles = 1
    #: Whether "median" and "mean" name a distance that its width can be taken from.
    measures_distance = False

    def __call__(self, X, Z=None):
        """The kernel matrix between the rows of X (n, d) and of Z (m, d)."""
        pairs = self.pairs(X, Z)
        n, m = pairs.shape
        xp = array_namespace(X) if not is_sparse(X) else np
        out = xp.empty((n, m), dtype=pairs.dtype, **placement_of(X))
        return pairs.tile(slice(0, n), slice(0, m), out)

    @abstractmethod
    def pairs(self, X: Array, Z: Array = None, dtype: Any = None, store: int = 0) -> "Pairs":
        """The kernel matrix between X and Z (X itself if None) as tiles of one precision.

        `store` bytes may be spent on prepared rows.
        """

    @abstractmethod
    def diag(self, X: Array) -> Array:
        """k(x, x) for every row, (n,)."""

    def resolve(self, X: Array, rng: np.random.Generator | None = None) -> "Kernel":
        """A copy whose parameters are all numbers, derived from X where they were not."""
        return clone(self)

    def scalar_map(self) -> ScalarMap | None:
        """The kernel as a scalar function that a fused tile knows, or None."""
        return None

    def frequencies(self, G: Array, rng: np.random.Generator) -> np.ndarray | None:
        """Draws from the spectral density, made of normal rows G (k, d); None if not known."""
        return None

    def sketch_terms(self) -> tuple[int, float, float] | None:
        """Degree, scale and constant of a polynomial for the tensor sketch, or None."""
        return None

    def spectral_density(self, f: Array, d: int) -> Array:
        """The Fourier transform of k(x, 0) in d columns, at frequencies of modulus f; or None.

        ``integral of k(x, 0) exp(-2 pi i f.x) dx``, f in cycles per unit, an array of any shape;
        infinite where the integral diverges. Only for kernels that fall with the Euclidean distance
        |x - z| alone and are nowhere negative: with it `basis="fourier"` can serve a kernel.
        """
        return None

    def spread(self, X: Array) -> float:
        """How much rounding of a tile grows in the result, by terms that cancel."""
        return centering_spread(self, X)

    def recentered(self, X: Array) -> "Kernel":
        """A kernel with the same centered matrix as this one, and fewer digits to cancel in it."""
        return self

    def entry_size(self, X: Array) -> float:
        """The largest |k(x, z)| where it may be more than any k(x, x), as of no definite kernel."""
        return 0.0

    def growth(self, X: Array) -> float:
        """Rounding of k(x, z) in double precision over d eps sqrt(k(x, x) k(z, z)), about."""
        return 1.0

    def gradient(self, X: Array, Z: Array, W: Array) -> Array:
        """The gradients of sum_j W_jb k(x_i, z_j) with respect to x_i, (n, d, b).

        X (n, d) and Z (m, d) are dense rows of double precision, W is (m, b). ValueError where no
        gradient is known.
        """
        raise ValueError(
            f"No gradient is known for {self!r}, so that its components cannot be attributed to "
            "columns. Use a kernel of the distance or of the inner product, or give the kernel a "
            "method `gradient`."
        )

    def check(self, X: Array) -> None:
        """Raise ValueError if this kernel is not defined on X."""
        return


class WidthMixin:
    """A width ``gamma`` that may be None (1 / number of columns), "median" or "mean"."""

    gamma: Any
    measures_distance = True
    #: What `"median"` and `"mean"` measure; gamma follows from it in `_width`.
    _metric = "euclidean"

    def resolve(self, X: Array, rng: np.random.Generator | None = None) -> Kernel:
        """A copy with gamma as a number."""
        resolved: Any = copy(self)
        if isinstance(self.gamma, str):
            distance = typical_distance(X, self.gamma, self._metric, rng)
            with np.errstate(over="ignore", divide="ignore", under="ignore"):
                resolved.gamma = float(self._width(np.float64(distance)))
            if not 0 < resolved.gamma < np.inf:
                raise ValueError(
                    f"gamma={self.gamma!r} is a distance of {distance:.1e} on these data, and "
                    "float64 does not hold the gamma that follows. Scale the data: "
                    "X / np.abs(X).max()."
                )
        elif self.gamma is None:
            resolved.gamma = 1.0 / X.shape[1]
        return resolved

    @staticmethod
    def _width(distance):
        # sigma = distance in exp(-d^2 / (2 sigma^2)); equal rows have no scale to offer.
        return 1.0 / (2.0 * distance**2) if distance > 0 else 1.0


class FactoredKernel(Kernel):
    """k(x, z) = f(left(x) . right(z)): a tile is one GEMM and an elementwise map."""

    @abstractmethod
    def embed(self, X: Array, origin: Array) -> Array:
        """Rows prepared for the inner product, (n, e)."""

    @abstractmethod
    def finish(self, T: Array) -> Array:
        """The scalar map f, over T itself where possible."""

    def turn(self, E: Array) -> Array:
        """Rows of the right factor from those of the left one."""
        return E

    def origin(self, X: Array) -> Array:
        """What to subtract from every row first, or None."""
        return None

    def extra_columns(self) -> int:
        """Columns that `embed` appends."""
        return 0

    def slope(self, T: Array) -> Array:
        """The derivative of the scalar map f at T, over T itself where possible.

        ValueError where it is not known; with it a kernel has a `gradient`.
        """
        return Kernel.gradient(self, T, T, T)

    def slopes(self, X: Array, Z: Array) -> Array:
        """f' at the inner products of X and Z, (n, m)."""
        xp = array_namespace(X)
        out = xp.empty((X.shape[0], Z.shape[0]), dtype=X.dtype, **placement_of(X))
        pairs = FactoredPairs(Slope(self), X, Z, X.dtype, 0)
        return pairs.tile(slice(0, X.shape[0]), slice(0, Z.shape[0]), out)

    def repair(self, T: Array, left: Array, right: Array, rows: Any, columns: Any) -> Array:
        """The products T of prepared rows, where some lost digits: those from the rows again."""
        return T

    def pairs(self, X: Array, Z: Array = None, dtype: Any = None, store: int = 0) -> "Pairs":
        """Tiles by GEMM."""
        return FactoredPairs(self, X, Z, dtype, store)


class Slope(FactoredKernel):
    """The derivative of another kernel's scalar map, tile by tile."""

    def __init__(self, kernel):
        self.kernel = kernel

    def embed(self, X, origin):
        """As of the kernel."""
        return self.kernel.embed(X, origin)

    def turn(self, E):
        """As of the kernel."""
        return self.kernel.turn(E)

    def origin(self, X):
        """As of the kernel."""
        return self.kernel.origin(X)

    def extra_columns(self):
        """As of the kernel."""
        return self.kernel.extra_columns()

    def repair(self, T, left, right, rows, columns):
        """As of the kernel."""
        return self.kernel.repair(T, left, right, rows, columns)

    def finish(self, T):
        """The derivative."""
        return self.kernel.slope(T)

    def diag(self, X):
        """Of no use to a gradient."""
        raise NotImplementedError


def weighted_sums(C, W, Z):
    """sum_j C_ij W_jb Z_jk, (n, d, b): a GEMM for each column of W."""
    xp = array_namespace(C)
    return xp.stack([(C * W[:, b]) @ Z for b in range(W.shape[1])], axis=-1)


class DirectKernel(Kernel):
    """A kernel whose tiles are filled pair by pair."""

    @abstractmethod
    def fill(self, X: Array, Z: Array, out: Array) -> None:
        """out[i, j] = k(x_i, z_j)."""

    def origin(self, X: Array) -> Any:
        """What to subtract from every row first, or None."""
        return None

    def spread(self, X: Array) -> float:
        """What centring cancels; rows out of its range leave single precision nothing."""
        return super().spread(X) if fits_single(X) else np.inf

    def pairs(self, X: Array, Z: Array = None, dtype: Any = None, store: int = 0) -> "Pairs":
        """Tiles by loops over pairs."""
        return DirectPairs(self, X, Z, dtype)


class Pairs(ABC):
    """The kernel matrix between the rows of X and Z, seen tile by tile.

    `prepared` is where an engine keeps rows in a form of its own.
    """

    #: What is taken off every row first, or None.
    origin = None

    def __init__(self, kernel: Kernel, X: Array, Z: Array, dtype: Any):
        if Z is not None and is_sparse(X) != is_sparse(Z):
            X, Z = (DenseBlocks(A) if is_sparse(A) else A for A in (X, Z))
        self.kernel, self.X = kernel, X
        self.Z = X if Z is None else Z
        self.symmetric = Z is None
        self.shape = (X.shape[0], self.Z.shape[0])
        xp = np if is_sparse(X) else array_namespace(X)
        self.dtype = dtype_in(xp, float_dtype(X) if dtype is None else dtype)
        self.prepared: dict = {}

    @abstractmethod
    def tile(self, i: slice, j: slice, out: Array) -> Array:
        """Fill `out` with rows i and columns j and return it."""

    @abstractmethod
    def tile_bytes(self, side: int) -> int:
        """Bytes in flight while one side x side tile is made."""

    @property
    def kept_bytes(self) -> int:
        """Bytes of prepared rows kept from tile to tile."""
        return 0

    def of_rows(self, index: Array) -> "Pairs":
        """The same matrix for only some of its rows."""
        return self.kernel.pairs(self.X[index], self.Z, self.dtype)

    @property
    def itemsize(self) -> int:
        """Bytes of one number."""
        return itemsize(self.dtype)


class DenseBlocks(BlocksOnDemand):
    """Sparse rows whose blocks are dense, for when they meet dense ones."""

    namespace, ndim = np, 2

    def __init__(self, X):
        self.X, self.shape, self.dtype = X, X.shape, X.dtype

    def __getitem__(self, rows):
        """A block of rows as a NumPy array."""
        return self.X[rows].toarray()


class FactoredPairs(Pairs):
    """Tiles f(left(x) . right(z)), with the prepared rows kept while they fit `store`."""

    def __init__(self, kernel, X, Z, dtype, store):
        super().__init__(kernel, X, Z, dtype)
        self.origin = kernel.origin(self.Z)
        width = X.shape[1] + kernel.extra_columns()
        self._left = self._right = None
        # Every column is met by many rows; the rows of a wide matrix come only once.
        kept = self.itemsize * width * self.shape[1] * (2 if self.symmetric else 1)
        if kept <= store and not is_sparse(self.X):
            rows = self._embed_all(width)
            self._left = rows if self.symmetric else None
            self._right = kernel.turn(rows)

    def tile(self, i, j, out):
        """One GEMM, one map."""
        left = self._embed(self.X, i) if self._left is None else self._left[i]
        if self._right is None:
            right = self._embed(self.Z, j)
            # x . turn(z) is symmetric in x and z: the copy is made of the side with fewer rows.
            if left.shape[0] < right.shape[0]:
                left = self.kernel.turn(left)
            else:
                right = self.kernel.turn(right)
        else:
            right = self._right[j]
        with np.errstate(over="ignore", invalid="ignore"):  # `repair`, or whoever sums, sees to it
            T = multiply(left, right, out)
        rows, columns = (partial(self._exact_rows, A, k) for A, k in ((self.X, i), (self.Z, j)))
        return self.kernel.finish(self.kernel.repair(T, left, right, rows, columns))

    def tile_bytes(self, side):
        """The tile, what `finish` needs beside it, and four blocks of prepared rows."""
        width = self.X.shape[1] + self.kernel.extra_columns()
        if is_sparse(self.X):
            return self._sparse_bytes(side)
        return self.itemsize * (side * side * self.kernel.live_tiles + 4 * side * width)

    def _sparse_bytes(self, side):
        # The product of sparse rows is itself sparse, values and indices, before it fills
        # the tile, and rows take what they hold and not their width.
        fullest = max(int(np.diff(A.indptr).max(initial=0)) for A in (self.X, self.Z))
        rows = 4 * side * (fullest + self.kernel.extra_columns()) * (self.itemsize + 8)
        return side * side * (self.itemsize * (self.kernel.live_tiles + 2) + 8) + rows

    @property
    def kept_bytes(self):
        """Bytes of the prepared rows, if they are kept."""
        kept = {id(E): E for E in (self._left, self._right) if E is not None}
        return sum(self.itemsize * E.shape[0] * E.shape[1] for E in kept.values())

    def of_rows(self, index):
        """The same matrix for only some of its rows; prepared rows are shared."""
        some = copy(self)
        some.X, some.symmetric, some.prepared = self.X[index], False, {}
        some.shape = (some.X.shape[0], self.shape[1])
        some._left = None if self._left is None else self._left[index]
        return some

    def _embed_all(self, width):
        """Every row of Z prepared, a block at a time: temporaries stay in the cache."""
        xp, m = array_namespace(self.Z), self.shape[1]
        rows = xp.empty((m, width), dtype=self.dtype, **placement_of(self.Z))
        for start in range(0, m, EMBED_ROWS):
            block = slice(start, min(start + EMBED_ROWS, m))
            rows[block] = self._embed(self.Z, block)
        return rows

    def _exact_rows(self, X, block):
        wide = np.float64 if is_sparse(X) else array_namespace(X).float64
        return rows_of(X, block, wide)

    def _embed(self, X, block):
        return self.kernel.embed(rows_of(X, block, self.dtype, self.origin), self.origin)


class DirectPairs(Pairs):
    """Tiles filled by loops."""

    def __init__(self, kernel, X, Z, dtype):
        super().__init__(kernel, X, Z, dtype)
        self.origin = kernel.origin(self.Z)

    def tile(self, i, j, out):
        """Hand both blocks of rows to the kernel."""
        blocks = ((self.X, i), (self.Z, j))
        left, right = (rows_of(A, k, self.dtype, self.origin) for A, k in blocks)
        self.kernel.fill(left, right, out)
        return out

    def tile_bytes(self, side):
        """The tile and two blocks of rows; sparse and shifted ones are there more than once."""
        blocks = 6 if is_sparse(self.X) or self.origin is not None else 2
        return self.itemsize * (side * side + blocks * side * self.X.shape[1])


def rows_of(X, block, dtype, origin=None):
    """Rows of X in one precision, shifted by `origin`; sparse rows stay sparse."""
    rows = X[block]
    if is_sparse(rows):
        return rows.astype(dtype)
    xp = array_namespace(rows)
    if origin is not None:
        # The difference is taken in the wider type, before any rounding: that is its use.
        wide = xp.float64 if dtype == xp.float64 else float_dtype(rows)
        rows = xp.asarray(rows, dtype=wide) - origin
    return xp.asarray(rows, dtype=dtype)


def multiply(left, right, out):
    """left @ right' into `out`."""
    if is_sparse(left) or is_sparse(right):
        product = left @ right.T
        out[...] = product.toarray() if is_sparse(product) else product
        return out
    xp = array_namespace(out)
    return xp.matmul(left, right.T, out=out)


def fits_single(X) -> bool:
    """Whether single precision can hold the largest entry of X, or X is zero."""
    blocks = (X[i : i + WIDE_ROWS] for i in range(0, X.shape[0], WIDE_ROWS))
    largest = max(max(float(block.max()), -float(block.min())) for block in blocks)
    return SINGLE_ENTRIES[0] < largest < SINGLE_ENTRIES[1] or largest == 0


def median_row(X):
    """The median of some rows, (d,): where most are, and one far row does not move it.

    None for sparse rows, which would be so no longer.
    """
    if is_sparse(X):
        return None
    xp = array_namespace(X)
    sample = xp.asarray(X[:: -(-X.shape[0] // ORIGIN_ROWS)], dtype=xp.float64)
    middle = xp.sort(sample, axis=0)[sample.shape[0] // 2]
    # In the data's own precision the difference is exact enough and keeps its type.
    return xp.asarray(middle, dtype=float_dtype(X))


def same_for_all(X, value: float):
    """One number for every row of X, in float64 and where X is, (n,)."""
    xp = np if is_sparse(X) else array_namespace(X)
    return xp.full(X.shape[0], value, dtype=xp.float64, **placement_of(X))


def row_squares(X):
    """|x|^2 for every row, (n,)."""
    if is_sparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    if isinstance(X, np.ndarray):
        return np.einsum("ij,ij->i", X, X)
    return array_namespace(X).sum(X * X, axis=1)


def wide_row_squares(X):
    """|x|^2 for every row in float64, whatever X holds: integers and halves would overflow."""
    if is_sparse(X):
        return row_squares(X.astype(np.float64))
    if isinstance(X, np.ndarray):
        return np.einsum("ij,ij->i", X, X, dtype=np.float64)
    xp = array_namespace(X)
    blocks = (X[i : i + WIDE_ROWS] for i in range(0, X.shape[0], WIDE_ROWS))
    return xp.concat([row_squares(xp.astype(block, xp.float64)) for block in blocks])


def centering_spread(kernel, X) -> float:
    """|K| / l_1(H K H) on a sample: how much rounding of K grows in what centring leaves.

    Large where all rows share most of their kernel, as in wide Gaussians and in linear
    kernels far from the origin.
    """
    rows = X[:: -(-X.shape[0] // SPREAD_SAMPLE)]
    rows = rows.astype(float) if is_sparse(rows) else np.asarray(to_numpy(rows), dtype=float)
    K = kernel(rows)
    size = float(np.linalg.norm(K))
    K = K - K.mean(axis=0)
    K -= K.mean(axis=1)[:, None]
    v = K[:, np.argmax(np.abs(np.diag(K)))]
    # The power method never overestimates the first eigenvalue, so the spread errs to the
    # safe side.
    for _ in range(POWER_STEPS):
        length = np.linalg.norm(v)
        if not length > 0:
            return np.inf
        v = K @ (v / length)
    return size / float(np.linalg.norm(v))


def append_columns(X, *columns):
    """X with further columns, each (n,)."""
    if is_sparse(X):
        return sparse.hstack([X, *(c[:, None] for c in columns)], format="csr", dtype=X.dtype)
    xp = array_namespace(X)
    return xp.concat([X, *(c[:, None] for c in columns)], axis=1)


def float_dtype(X):
    """The floating type to compute X's kernel in: its own, or float64."""
    xp = np if is_sparse(X) else array_namespace(X)
    return X.dtype if X.dtype in (xp.float32, xp.float64) else xp.float64


def typical_distance(X, kind: str, metric: str = "euclidean", rng=None) -> float:
    """The median or mean distance between rows, on a sample of at most 1,000."""
    from scipy.spatial.distance import pdist

    if kind not in ("median", "mean"):
        raise ValueError(f"gamma={kind!r} is unknown. Give a number, None, 'median' or 'mean'.")
    if X.shape[0] < 2:
        return 0.0
    rng = np.random.default_rng(0) if rng is None else rng
    sample = X
    if X.shape[0] > WIDTH_SAMPLE:
        sample = X[np.sort(rng.choice(X.shape[0], WIDTH_SAMPLE, replace=False))]
    # Blocks that come from elsewhere are brought here by indexing.
    sample = sample.toarray() if is_sparse(sample) else to_numpy(sample[:])
    sample = sample.astype(float)
    # Squares of what is huge or tiny would leave the range of float64.
    unit = float(np.abs(sample).max(initial=0))
    unit = 1.0 if unit == 0 or WIDTH_RANGE[0] < unit < WIDTH_RANGE[1] else unit
    distances = pdist(sample / unit, metric)
    if kind == "mean":
        return unit * float(distances.mean())
    return unit * float(np.median(distances, overwrite_input=True))
