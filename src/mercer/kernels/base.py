"""The contract of a kernel and of its matrix, and kernels whose tiles are a GEMM and a map.

A kernel is a recipe: parameters only. `resolve` puts numbers in place of ``None`` and
``"median"``, `pairs` binds it to two sets of rows and a precision.
"""

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.utils.extmath import row_norms

from .._tables import short
from ..compute import Array, ScalarMap, array_namespace, arrays, is_sparse, to_numpy

# Rows on which the median or mean distance is measured: half a million pairs give three digits.
WIDTH_SAMPLE = 1000
# Rows of the sample on which `centering_spread` is measured.
SPREAD_SAMPLE = 256
# Rows prepared at once, which stay in the cache.
EMBED_ROWS = 512
# Largest entry of rows whose squared distances cannot overflow.
LARGEST_ENTRY = 1e140
# Entries of one tile in `Kernel.__call__`, which has no budget, and of the rows on which a distance
# is measured.
TILE_ENTRIES, WIDTH_ENTRIES = 2**18, 2**22


@dataclass(frozen=True)
class Domain:
    """The interval that all numbers of the rows must lie in.

    Attributes
    ----------
    name : str
        In messages: "non-negative".
    low, high : float
    """

    name: str
    low: float = -np.inf
    high: float = np.inf

    def __and__(self, other: "Domain") -> "Domain":
        """The rows that lie in both."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        narrower = (one for one in (self, other) if (one.low, one.high) == (low, high))
        return next(narrower, Domain(f"{self.name} and {other.name}", low, high))

    def check(self, X: Array, kernel: str) -> None:
        """Raise ValueError if rows lie outside; `kernel` is named in the message."""
        if self == ANY:
            return
        for block in arrays.blocks_of(X):
            for value in (float(block.min()), float(block.max())):
                if value < self.low or value > self.high:
                    raise ValueError(
                        f"{kernel} needs {self.name} data and found {value:.3g}. Shift or clip the "
                        "data, or choose another kernel."
                    )

    def nearest(self, X: Array) -> Array:
        """The nearest rows of the domain to dense rows X."""
        return X if self == ANY else array_namespace(X).clip(X, self.low, self.high)


ANY = Domain("real")
NON_NEGATIVE = Domain("non-negative", low=0.0)


class Kernel(BaseEstimator, ABC):
    """A symmetric function k(x, z) of two rows.

    Every member has a general answer here, and `check_kernel` in the tests asks for each of them.

    **Certificates rest on these: a wrong answer makes a false bound.**

    - `pairs`, `diag` and `scalar_map` are the values; `origin` gives them too.
    - `definite`: no kernel matrix has a negative eigenvalue.
    - `growth` and `entry_size`: how large the rounding of a value, and a value, can be.
    - `spread`: whether single precision keeps enough digits.
    - `recentered` has the same centered matrix.
    - `is_inner_product`: directions can be written in the columns.
    - `metric`: unless it is None, no value is negative.
    - `domain` and `check`: the rows and parameters for which all this is true.

    **Only time, memory and ease of use depend on these.**

    - `seconds`, `live_tiles`, `rank`: what planning and tiling expect.
    - `gamma`, `resolve`, `per_column`, `needs_range`, `encoder`: how parameters get their numbers.
    - `gradient`: how values change with the columns.
    """

    #: False where some parameter values give negative eigenvalues.
    definite = True
    #: The numbers that rows may hold: `check` refuses all others.
    domain = ANY
    #: Width, for kernels that have one: a number once the kernel is resolved.
    gamma: Any = None
    #: Tile-sized arrays alive at once while a tile is made, the tile included.
    live_tiles = 1
    #: Seconds of one value in single precision on a core, and of each column of the rows.
    seconds: tuple[float, float] = (1e-9, 2.1e-11)
    #: The distance that the kernel falls with, by its name in SciPy; None for all other kernels.
    metric: str | None = None
    #: Whether it is an inner product of rows, or of rows of unit length: `Columns` serve it.
    is_inner_product = False
    #: For kernels that compare tables with categories: a class whose ``of(X)`` gives the encoding
    #: of the training rows as numbers, or None if X holds only numbers.
    encoder: Any = None
    #: Parameters that may have a number for each column.
    per_column: tuple[str, ...] = ()
    #: Whether values cost more than all that is done with them: those that can be are spared.
    expensive = False
    #: Whether `resolve` needs the least and largest values of all rows, not only of a sample.
    needs_range = False
    # NumPy's numbers leave multiplication with a kernel to the kernel.
    __array_ufunc__ = None

    def __new__(cls, *args: Any, columns: Any = None, **params: Any) -> Any:
        """A kernel, or with `columns` one of these columns alone."""
        from .algebra import OnColumns

        return super().__new__(cls) if columns is None else OnColumns(cls(*args, **params), columns)

    def __init__(self) -> None:
        """Parameters only; without any, none may be given."""

    def __add__(self, other: Any) -> Any:
        from .algebra import Sum

        if not isinstance(other, Kernel):
            return NotImplemented
        terms = [list(one.kernels) if type(one) is Sum else [one] for one in (self, other)]
        return Sum(terms[0] + terms[1])

    def __radd__(self, other: Any) -> Any:
        """So that `sum` adds kernels up, which starts with 0."""
        return self if isinstance(other, Real) and other == 0 else NotImplemented

    def __mul__(self, other: Any) -> Any:
        from .algebra import Product, Scaled

        if isinstance(other, Real):
            return Scaled(self, float(other))
        if not isinstance(other, Kernel):
            return NotImplemented
        factors = [list(one.kernels) if type(one) is Product else [one] for one in (self, other)]
        return Product(factors[0] + factors[1])

    __rmul__ = __mul__

    def __pow__(self, degree: Any) -> Any:
        from .algebra import Power

        return Power(self, degree)

    def __str__(self) -> str:
        """Numbers with three digits; `repr` has all of them."""
        return short(repr(self))

    def __call__(self, X, Z=None, dtype=None):
        """The kernel matrix between the rows of X (n, d) and of Z (m, d), in their precision."""
        kernel = self.resolve(X) if self._has_widths else self
        pairs = kernel.pairs(X, Z, dtype)
        n, m = pairs.shape
        xp = array_namespace(X) if not is_sparse(X) else np
        out = xp.empty((n, m), dtype=pairs.dtype, **arrays.placement_of(X))
        # Rows are copied when they are prepared, so wide ones are taken a few at a time.
        lean = is_sparse(X) and isinstance(self, FactoredKernel)
        most = EMBED_ROWS if lean else arrays.block_rows(X)
        height = max(1, min(n, most, max(EMBED_ROWS, TILE_ENTRIES // max(m, 1))))
        width = max(1, min(m, most, TILE_ENTRIES // height))
        if height >= n and width >= m:
            return pairs.tile(slice(0, n), slice(0, m), out)
        for i in range(0, n, height):
            for j in range(0, m, width):
                rows, columns = slice(i, min(i + height, n)), slice(j, min(j + width, m))
                out[rows, columns] = pairs.tile(rows, columns, out[rows, columns])
        return out

    @abstractmethod
    def pairs(self, X: Array, Z: Array = None, dtype: Any = None, store: int = 0) -> "Pairs":
        """The kernel matrix between X and Z (X itself if None) as tiles of one precision.

        `store` bytes may be spent on prepared rows.
        """

    @abstractmethod
    def diag(self, X: Array) -> Array:
        """k(x, x) for every row, (n,)."""

    def resolve(self, X: Array, rng: np.random.Generator | None = None) -> "Kernel":
        """A copy whose parameters are all numbers: gamma=None is 1 / number of columns."""
        if "gamma" not in vars(self):
            return clone(self)
        if isinstance(self.gamma, str) or self._has_widths:
            does = "gives each column a width" if self._has_widths else "measures a distance"
            raise ValueError(
                f"gamma={self.gamma!r} {does}, and {type(self).__name__} is no kernel of a "
                "distance. Give a number or None."
            )
        resolved = copy(self)
        if self.gamma is None:
            resolved.gamma = 1.0 / X.shape[1]
        return resolved

    @property
    def _has_widths(self) -> bool:
        """Whether gamma has a width for each column; `resolve` then returns another kernel."""
        return not (self.gamma is None or isinstance(self.gamma, Real | str))

    def origin(self, X: Array) -> Array:
        """The point that is subtracted from every row before a tile is made, (d,), or None."""
        return None

    def check(self, X: Array) -> None:
        """Raise ValueError if a parameter cannot be used, or rows lie outside the domain."""
        gamma = self.gamma
        if isinstance(gamma, Real) and not 0 <= float(gamma) < np.inf:
            raise ValueError(
                f"gamma={gamma!r} must be a finite number that is not negative, such as 0.1."
            )
        self.domain.check(X, type(self).__name__)

    def rank(self, d: int) -> int | None:
        """An upper bound of the rank of any matrix of rows with d columns, if one is known."""
        return d if self.is_inner_product else None

    def spread(self, X: Array) -> float:
        """Factor by which canceling terms magnify rounding in float32; inf if X overflows it."""
        return centering_spread(self, X) if fits_single(X) else np.inf

    def growth(self, X: Array) -> float:
        """Rounding of k(x, z) in double precision, in units of d eps sqrt(k(x, x) k(z, z))."""
        return 1.0

    def entry_size(self, X: Array) -> float:
        """A bound on |k(x, z)|; 0 for definite kernels, where the largest k(x, x) is one."""
        return 0.0

    def recentered(self, X: Array) -> "Kernel":
        """A kernel with the same centered matrix on X in which fewer digits cancel, or itself."""
        return self

    def of_points(self, index: Array) -> "Kernel":
        """The kernel for a basis of only some of its points."""
        return self

    def scalar_map(self) -> ScalarMap | None:
        """The kernel as one of the functions that fused tiles are compiled for, or None."""
        return None

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


class DifferenceKernel(Kernel):
    """A function of x - z with k(x, x) = 1, computed about the middle of the rows.

    With a `metric`, gamma may be "median" or "mean": the kernel's length scale is that distance.
    """

    @abstractmethod
    def argument(self, X: Array) -> float:
        """The largest number that is rounded before the kernel's scalar map."""

    def spread(self, X: Array) -> float:
        return max(self.argument(X), centering_spread(self, X)) if fits_single(X) else np.inf

    def growth(self, X: Array) -> float:
        """The argument: differences from the origin are rounded before those of rows.

        At most what takes all digits of k(x, x) = 1.
        """
        return min(max(1.0, self.argument(X)), 1 / np.finfo(float).eps)

    def origin(self, X: Array) -> Any:
        """The median of 32 rows, (d,): the middle of most rows, whatever a few far ones are.

        Distances are the same about it, and fewer digits cancel. None for sparse rows, which it
        would make dense.
        """
        if is_sparse(X):
            return None
        xp = array_namespace(X)
        sample = xp.asarray(X[:: -(-X.shape[0] // 32)], dtype=xp.float64)
        half = sample.shape[0] // 2
        ordered = np.partition(sample, half, axis=0) if xp is np else xp.sort(sample, axis=0)
        # In the precision of X, so that X - origin has the type of X.
        dtype = xp.float32 if X.dtype == xp.float32 else xp.float64
        return xp.asarray(ordered[half, :], dtype=dtype)

    def diag(self, X: Array) -> Array:
        return same_for_all(X, 1.0)

    def gamma_at(self, distance: float) -> float:
        """The gamma of this length scale: sigma in exp(-d^2 / (2 sigma^2))."""
        return 1.0 / (2.0 * distance**2)

    def resolve(self, X: Array, rng: np.random.Generator | None = None) -> Kernel:
        """A copy with gamma as a number: "median" and "mean" measure a distance on rows of X."""
        if self.metric is not None and self._has_widths:
            from .algebra import OnColumns

            with np.errstate(invalid="ignore"):
                scales = np.asarray(self.gamma, dtype=float)
                scales = scales if self.metric == "cityblock" else scales**0.5
            return OnColumns(clone(self).set_params(gamma=1.0), scales=scales)
        if self.metric is None or not isinstance(self.gamma, str):
            return super().resolve(X, rng)
        resolved, distance = copy(self), typical_distance(X, self.gamma, self.metric, rng)
        with np.errstate(over="ignore", divide="ignore", under="ignore"):
            # Equal rows have no scale to offer.
            resolved.gamma = float(self.gamma_at(np.float64(distance))) if distance else 1.0
        if not 0 < resolved.gamma < np.inf:
            raise ValueError(
                f"The {self.gamma} distance of these data is {distance:.1e}, and the gamma for it "
                "is out of the range of float64. Scale the data: X / np.abs(X).max()."
            )
        return resolved

    def of_differences(self, D: Array) -> Array:
        """k(x, z) for rows D = x - z, (n,)."""
        return self(D, D[:1] * 0.0)[:, 0]

    def frequencies(self, G: Array, rng: np.random.Generator) -> np.ndarray | None:
        """Draws from the spectral density, made of normal rows G (k, d); None if not known."""
        return None

    def spectral_density(self, f: Array, d: int) -> Array:
        """The Fourier transform of k(x, 0) in d columns, at frequencies of modulus f; or None.

        ``integral of k(x, 0) exp(-2 pi i f.x) dx``, f in cycles per unit, an array of any shape;
        infinite where the integral diverges. Only for kernels that fall with the Euclidean distance
        |x - z| alone and are nowhere negative: with it `basis="fourier"` can serve a kernel.
        """
        return None


class Pairs(ABC):
    """The kernel matrix between the rows of X and Z, computed tile by tile.

    `prepared` is where an engine keeps rows in a form of its own.
    """

    #: Bytes of prepared rows kept from tile to tile.
    kept_bytes = 0

    def __init__(self, kernel: Any, X: Array, Z: Array, dtype: Any):
        if Z is not None and is_sparse(X) != is_sparse(Z):
            # Blocks of sparse rows are made dense for products with dense ones.
            X, Z = (arrays.SomeColumns(A) if is_sparse(A) else A for A in (X, Z))
        self.kernel, self.X = kernel, X
        self.Z = X if Z is None else Z
        self.symmetric = Z is None
        self.shape = (X.shape[0], self.Z.shape[0])
        xp = np if is_sparse(X) else array_namespace(X)
        self.dtype = arrays.dtype_in(xp, float_dtype(X) if dtype is None else dtype)
        self.itemsize = arrays.itemsize(self.dtype)
        # Numbers of prepared rows alive for each row of a tile: one block of X and one of Z.
        self.row_floats = 2 * X.shape[1]
        self.prepared: dict = {}

    @abstractmethod
    def tile(self, i: slice, j: slice, out: Array) -> Array:
        """Fill `out` with rows i and columns j and return it."""

    def tile_bytes(self, side: int) -> int:
        """Bytes in use while one side x side tile is made: `live_tiles`, and prepared rows."""
        return self.itemsize * side * (side * self.kernel.live_tiles + self.row_floats)

    def of_rows(self, index: Array) -> "Pairs":
        """The same matrix for only some of its rows."""
        return self.kernel.pairs(self.X[index], self.Z, self.dtype)


class FactoredKernel(Kernel):
    """k(x, z) = f(left(x) . right(z)): a tile is one GEMM and an elementwise map."""

    #: Columns that `embed` appends.
    extra_columns = 0

    @abstractmethod
    def embed(self, X: Array) -> Array:
        """Rows, less the origin, prepared for the inner product, (n, e)."""

    @abstractmethod
    def finish(self, T: Array) -> Array:
        """The scalar map f, over T itself where possible."""

    def slope(self, T: Array) -> Array:
        """The derivative of the scalar map f at T, over T itself where possible.

        ValueError where it is not known; with it a kernel has a `gradient`.
        """
        return Kernel.gradient(self, T, T, T)

    def turn(self, E: Array) -> Array:
        """Rows of the right factor from those of the left one."""
        return E

    def repair(self, T: Array, left: Array, right: Array, pairs: Pairs, i: Any, j: Any) -> Array:
        """The products T of prepared rows i and j; those that lost digits are made anew."""
        return T

    def pairs(self, X: Array, Z: Array = None, dtype: Any = None, store: int = 0) -> Pairs:
        return FactoredPairs(self, X, Z, dtype, store)

    def slopes(self, X: Array, Z: Array) -> Array:
        """f' at the inner products of X and Z, (n, m)."""
        pairs = FactoredPairs(self, X, Z, X.dtype, 0, self.slope)
        out = array_namespace(X).empty(pairs.shape, dtype=X.dtype, **arrays.placement_of(X))
        return pairs.tile(slice(0, pairs.shape[0]), slice(0, pairs.shape[1]), out)


class FactoredPairs(Pairs):
    """Tiles f(left(x) . right(z)), with the prepared rows kept while they fit `store`."""

    def __init__(self, kernel, X, Z, dtype, store, finish=None):
        super().__init__(kernel, X, Z, dtype)
        self.finish, self.origin = finish or kernel.finish, kernel.origin(self.Z)
        self._left: Any = None
        self._right: Any = None
        m, width = self.shape[1], X.shape[1] + kernel.extra_columns
        self.row_floats = 4 * width
        # Columns of the matrix are used with many rows each; rows of a wide matrix only once.
        largest = self.itemsize * width * m * (2 if self.symmetric else 1)
        if largest <= store and not is_sparse(self.X):
            xp = array_namespace(self.Z)
            rows = xp.empty((m, width), dtype=self.dtype, **arrays.placement_of(self.Z))
            for start in range(0, m, EMBED_ROWS):
                block = slice(start, min(start + EMBED_ROWS, m))
                rows[block] = kernel.embed(rows_of(self.Z, block, self.dtype, self.origin))
            self._left, self._right = rows if self.symmetric else None, kernel.turn(rows)
            copies = 2 if self.symmetric and self._right is not rows else 1
            self.kept_bytes = copies * self.itemsize * width * m

    def tile(self, i, j, out):
        kernel = self.kernel
        if self._left is None:
            left = kernel.embed(rows_of(self.X, i, self.dtype, self.origin))
        else:
            left = self._left[i]
        with np.errstate(over="ignore", invalid="ignore"):  # `repair`, or whoever sums, sees to it
            if self._right is not None:
                right = self._right[j]
            else:
                right = kernel.embed(rows_of(self.Z, j, self.dtype, self.origin))
                # x . turn(z) is symmetric in x and z: the side with fewer rows is copied.
                if left.shape[0] < right.shape[0]:
                    left = kernel.turn(left)
                else:
                    right = kernel.turn(right)
            if is_sparse(left):
                T = out
                T[...] = (left @ right.T).toarray()
            else:
                T = array_namespace(out).matmul(left, right.T, out=out)
        return self.finish(kernel.repair(T, left, right, self, i, j))

    def tile_bytes(self, side):
        if not is_sparse(self.X):
            return super().tile_bytes(side)
        # The product of sparse rows is sparse, with values and indices, before it fills the tile.
        # Rows take memory for their nonzero entries only.
        fullest = max(int(np.diff(A.indptr).max(initial=0)) for A in (self.X, self.Z))
        rows = 4 * side * (fullest + self.kernel.extra_columns) * (self.itemsize + 8)
        return side * side * (self.itemsize * (self.kernel.live_tiles + 2) + 8) + rows

    def of_rows(self, index):
        """The same matrix for only some of its rows; prepared rows are shared."""
        subset = copy(self)
        subset.X, subset.symmetric, subset.prepared = self.X[index], False, {}
        subset.shape = (subset.X.shape[0], self.shape[1])
        subset._left = None if self._left is None else self._left[index]
        return subset


def rows_of(X, block, dtype, origin=None):
    """Rows of X in one precision, shifted by `origin`; sparse rows stay sparse."""
    rows = X[block]
    if is_sparse(rows):
        return rows.astype(dtype)
    xp = array_namespace(rows)
    if origin is not None:
        # The difference is taken before the rows are rounded to `dtype`, else it would be useless.
        single = dtype != xp.float64 and rows.dtype == xp.float32
        rows = xp.asarray(rows, dtype=xp.float32 if single else xp.float64) - origin
    return xp.asarray(rows, dtype=dtype)


def float_dtype(X):
    """The floating type to compute X's kernel in: its own, or float64."""
    xp = np if is_sparse(X) else array_namespace(X)
    return X.dtype if X.dtype in (xp.float32, xp.float64) else xp.float64


def dense_rows(X):
    """Rows as an array."""
    return X.toarray() if is_sparse(X) else X


def on_host(rows: Any, dense: bool = False) -> Any:
    """Rows in main memory and double precision."""
    if is_sparse(rows):
        return rows.toarray().astype(float) if dense else rows.astype(float)
    return to_numpy(rows[:]).astype(float)


def row_squares(X):
    """|x|^2 for every row, (n,)."""
    if isinstance(X, np.ndarray):
        return np.einsum("ij,ij->i", X, X)
    if is_sparse(X):
        return row_norms(X, squared=True)
    return array_namespace(X).sum(X * X, axis=1)


def wide_row_squares(X):
    """|x|^2 for every row in float64: squares of integers and float16 would overflow."""
    if is_sparse(X):
        blocks = (rows.astype(np.float64, copy=False) for rows in arrays.blocks_of(X))
        return np.concatenate([row_squares(rows) for rows in blocks])
    if isinstance(X, np.ndarray):
        return np.einsum("ij,ij->i", X, X, dtype=np.float64)
    xp = array_namespace(X)
    return xp.concat([row_squares(xp.astype(block, xp.float64)) for block in arrays.blocks_of(X)])


def append_columns(X, *columns):
    """X with further columns, each (n,)."""
    if isinstance(X, np.ndarray):
        return np.column_stack([X, *columns])
    if is_sparse(X):
        return sparse.hstack([X, *(c[:, None] for c in columns)], format="csr", dtype=X.dtype)
    return array_namespace(X).concat([X, *(c[:, None] for c in columns)], axis=1)


def same_for_all(X, value: float):
    """One number for every row of X, in float64 and where X is, (n,)."""
    xp = np if is_sparse(X) else array_namespace(X)
    return xp.full(X.shape[0], value, dtype=xp.float64, **arrays.placement_of(X))


def farthest(X, origin, sizes) -> float:
    """The largest of ``sizes(rows - origin)``, (n,), over all rows."""
    far, step = 0.0, EMBED_ROWS if is_sparse(X) or isinstance(X, np.ndarray) else arrays.WIDE_ROWS
    step = step if is_sparse(X) else min(step, arrays.block_rows(X))
    with np.errstate(over="ignore"):
        for start in range(0, X.shape[0], step):
            rows = X[start : start + step]
            far = max(far, float(sizes(rows if origin is None else rows - origin).max()))
    return far


def largest_entry(X) -> float:
    """max |x_k| over all rows."""
    ends = (max(float(block.max()), -float(block.min())) for block in arrays.blocks_of(X))
    return max(ends, default=0.0)


def check_range(rows, who: str) -> None:
    """Raise ValueError for rows whose squares float64 does not hold."""
    entry = largest_entry(rows)
    if entry > LARGEST_ENTRY or 0 < entry < 1 / LARGEST_ENTRY:
        raise ValueError(
            f"{who} take distances between rows, whose numbers are of up to {entry:.1e} here: "
            "float64 does not hold their squares. Scale the data, X / np.abs(X).max()."
        )


def fits_single(X) -> bool:
    """Whether single precision has room around the largest entry of X, or X is zero."""
    largest = largest_entry(X)
    return 1e-30 < largest < 1e30 or largest == 0


# Distances of so many roundings of the largest entry are none.
ROUNDINGS = 16


def typical_distance(X, kind: str, metric: str = "euclidean", rng=None) -> float:
    """The median or mean distance between at most 1,000 rows; fewer if they are very wide."""
    from scipy.spatial.distance import cdist, pdist

    if kind not in ("median", "mean"):
        raise ValueError(f"gamma={kind!r} is unknown. Give a number, None, 'median' or 'mean'.")
    if X.shape[0] < 2:
        return 0.0
    rng = np.random.default_rng(0) if rng is None else rng
    sample, most = X, min(WIDTH_SAMPLE, max(64, WIDTH_ENTRIES // X.shape[1]))
    if X.shape[0] > most:
        sample = arrays.some_of(X, np.sort(rng.choice(X.shape[0], most, replace=False)))
    n, step = sample.shape[0], min(128, arrays.block_rows(X))
    # Squares of huge or tiny numbers would overflow or underflow.
    largest = max(float(abs(sample[i : i + step]).max()) for i in range(0, n, step))
    unit = 1.0 if largest == 0 or 1e-100 < largest < 1e100 else largest

    def scaled(i):
        # Indexing loads blocks that are not in memory.
        rows = sample[i : i + step]
        return np.array(rows.toarray() if is_sparse(rows) else to_numpy(rows), dtype=float) / unit

    distances, done = np.empty(n * (n - 1) // 2), 0
    for i in range(0, n, step):
        rows = scaled(i)
        for j in range(i, n, step):
            part = pdist(rows, metric) if i == j else cdist(rows, scaled(j), metric).ravel()
            distances[done : done + part.size] = part
            done += part.size
    # Sorted in place: a copy would take as much again.
    middle = distances.mean() if kind == "mean" else np.median(distances, overwrite_input=True)
    typical = float(middle)
    # Rows that differ by their rounding are equal.
    # The type may have another byte order, or be one of torch.
    eps = np.finfo("float32" if str(X.dtype).endswith(("f4", "float32")) else "float64").eps
    rounding = ROUNDINGS * float(eps) * largest / unit * X.shape[1] ** 0.5
    return unit * typical if typical > rounding else 0.0


def centering_spread(kernel, X) -> float:
    """|K| / l_1(H K H) on a sample: the factor by which centering magnifies rounding of K.

    Large where all rows share most of their kernel, as in wide Gaussians and in linear
    kernels far from the origin.
    """
    K = to_numpy(kernel(X[:: -(-X.shape[0] // SPREAD_SAMPLE)], dtype=np.float64))
    size = float(np.linalg.norm(K))
    K = K - K.mean(axis=0)
    K -= K.mean(axis=1)[:, None]
    v = K[:, np.argmax(np.abs(np.diag(K)))]
    # The power method never overestimates the first eigenvalue, so the spread errs to the
    # safe side.
    for _ in range(8):
        length = np.linalg.norm(v)
        if not length > 0:
            return np.inf
        v = K @ (v / length)
    return size / float(np.linalg.norm(v))


def multiplies_rows(kernel: Any, X: Any, engine: Any) -> bool:
    """Whether products with the kernel matrix are made of products with the rows themselves."""
    if not (is_sparse(X) and kernel.is_inner_product and engine.device is None):
        return False
    return 4 * 8 * X.shape[1] * (engine.threads + 2) <= engine.memory


def weighted_sums(C, W, Z):
    """sum_j C_ij W_jb Z_jk, (n, d, b): a GEMM for each column of W."""
    return array_namespace(C).stack([(C * W[:, b]) @ Z for b in range(W.shape[1])], axis=-1)


def check_values(kernel: Kernel, *values: Array, on: str = "these data", what="the data") -> None:
    """Raise ValueError unless these sums or products of a kernel's values are finite."""
    if not all(bool(array_namespace(A).isfinite(A).all()) for A in values):
        raise ValueError(
            f"{kernel!r} gives values that are not finite on {on}. Scale {what} or change the "
            "kernel's parameters."
        )
