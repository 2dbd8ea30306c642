"""The contract of a kernel.

A kernel is a recipe: parameters only. `resolve` puts numbers in place of ``None`` and
``"median"``, `pairs` binds it to two sets of rows and a precision.
"""

from abc import ABC, abstractmethod
from copy import copy
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from ..compute import ScalarMap, array_namespace, is_sparse, to_numpy
from ..compute.arrays import Array, placement_of
from .measures import fits_single, typical_distance
from .pairs import DirectPairs, FactoredPairs, Pairs, multiply

# Rows from which the cancellation in a centered matrix is judged.
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
    #: What makes numbers of tables with more than numbers, for a kernel that can compare them: a
    #: class whose ``of(X)`` is an encoding of the training rows, or None where they need none.
    encoder: Any = None
    #: Parameters that may have a number for each column.
    per_column: tuple[str, ...] = ()
    #: Whether parameters follow from the least and largest values of all rows, which no sample has.
    needs_range = False

    def __call__(self, X, Z=None):
        """The kernel matrix between the rows of X (n, d) and of Z (m, d)."""
        pairs = self.pairs(X, Z)
        n, m = pairs.shape
        xp = array_namespace(X) if not is_sparse(X) else np
        out = xp.empty((n, m), dtype=pairs.dtype, **placement_of(X))
        return pairs.tile(slice(0, n), slice(0, m), out)

    @abstractmethod
    def pairs(self, X: Array, Z: Array = None, dtype: Any = None, store: int = 0) -> Pairs:
        """The kernel matrix between X and Z (X itself if None) as tiles of one precision.

        `store` bytes may be spent on prepared rows.
        """

    @abstractmethod
    def diag(self, X: Array) -> Array:
        """k(x, x) for every row, (n,)."""

    def resolve(self, X: Array, rng: np.random.Generator | None = None) -> "Kernel":
        """A copy whose parameters are all numbers, derived from X where they were not."""
        return clone(self)

    def direction(self, Z: Array, W: Array) -> Array:
        """V (d, b) with k(x, Z) W = (x - c) V for the origin c, where the kernel is linear in x.

        None for all others. Rows and weights are NumPy arrays.
        """
        return None

    def scalar_map(self) -> ScalarMap | None:
        """The kernel as a scalar function that a fused tile knows, or None."""
        return None

    def frequencies(self, G: Array, rng: np.random.Generator) -> np.ndarray | None:
        """Draws from the spectral density, made of normal rows G (k, d); None if not known."""
        return None

    def of_differences(self, D: Array) -> Array:
        """k(x, z) for rows D = x - z, (n,), of kernels that depend on no more."""
        return self(D, D[:1] * 0.0)[:, 0]

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

    def within(self, X: Array) -> Array:
        """The nearest dense rows on which this kernel is defined."""
        return X


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

    def squares(self, E: Array) -> bool:
        """Whether `square` is faster for prepared rows than all products."""
        return False

    def square(self, E: Array, out: Array) -> Array:
        """Products of prepared rows with themselves, of which only half are taken, (a, a)."""
        return multiply(E, self.turn(E), out)

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

    def keeps_digits(self, left: Array, right: Array) -> bool:
        """Whether it is known, before they are made, that no products of prepared rows lose any."""
        return True

    def pairs(self, X: Array, Z: Array = None, dtype: Any = None, store: int = 0) -> Pairs:
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

    def keeps_digits(self, left, right):
        """As of the kernel."""
        return self.kernel.keeps_digits(left, right)

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
        """What centering cancels; rows out of its range leave single precision nothing."""
        return super().spread(X) if fits_single(X) else np.inf

    def pairs(self, X: Array, Z: Array = None, dtype: Any = None, store: int = 0) -> Pairs:
        """Tiles by loops over pairs."""
        return DirectPairs(self, X, Z, dtype)


def centering_spread(kernel, X) -> float:
    """|K| / l_1(H K H) on a sample: how much rounding of K grows in what centering leaves.

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
