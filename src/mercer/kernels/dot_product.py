"""Kernels of the inner product x . z: linear, polynomial, sigmoid, cosine."""

from copy import copy
from typing import Any

import numpy as np

from ..compute import ScalarMap, array_namespace, inplace, is_sparse, on_device_of, to_numpy
from ..compute.arrays import Array, BlocksOnDemand
from .base import FactoredKernel, Kernel, centering_spread, weighted_sums
from .measures import row_squares, rows_of, wide_row_squares

# Entries for which single-precision sums over many rows neither overflow nor vanish.
SINGLE_RANGE = (1e-25, 1e30)
# Squared distance of the mean to the origin, over the variance, from which a linear kernel loses
# digits that matter; and rows that tell.
OFFSET, MEAN_ROWS = 1e4, 4096
# Rows that are added up at once.
SUMMED_ROWS = 1024
# Squared norms of rows that are known to all digits, in any precision.
SQUARES_RANGE = (1e-30, 1e30)

# Entries of rows whose products are in no danger, and values k(x, x) with all their digits.
ENTRIES_RANGE = (1e-40, 1e25)
VALUES_RANGE = (1e-290, 1e305)

# Largest degree of a fused polynomial: the tile multiplies that often.
FUSED_DEGREE = 16


class DotProductKernel(FactoredKernel):
    """A function of gamma x . z + coef0."""

    def resolve(self, X: Array, rng: np.random.Generator | None = None) -> Kernel:
        """A copy with gamma as a number, 1 / number of columns for None."""
        resolved = copy(self)
        if isinstance(self.gamma, str):
            raise ValueError(
                f"gamma={self.gamma!r} measures a distance, and {type(self).__name__} is no "
                "kernel of a distance. Give a number or None."
            )
        if self.gamma is None and "gamma" in vars(self):
            resolved.gamma = 1.0 / X.shape[1]
        return resolved

    def embed(self, X: Array, origin: Array) -> Array:
        """sqrt(gamma) x."""
        scale = float(np.sqrt(self._scale))
        return X if scale == 1.0 else X * scale

    def gradient(self, X: Array, Z: Array, W: Array) -> Array:
        """gamma f'(gamma x . z) z."""
        C = self.slopes(X, Z)
        C *= self._scale
        return weighted_sums(C, W, Z)

    @property
    def _scale(self) -> float:
        """What inner products are multiplied by: gamma, where there is one."""
        return 1.0 if self.gamma is None else float(self.gamma)

    def finish(self, T: Array) -> Array:
        """The inner product itself."""
        return T

    def diag(self, X: Array) -> Array:
        """f(gamma |x|^2)."""
        return self.finish(wide_row_squares(X) * self._scale)

    def check(self, X: Array) -> None:
        """Raise ValueError where values are more, or all of them less, than float64 holds."""
        entry = largest_entry(X)
        low, high = ENTRIES_RANGE
        if entry == 0 or low < entry < high:
            return
        with np.errstate(over="ignore", invalid="ignore"):
            top = float(abs(self.diag(X)).max())
        if not top * X.shape[0] < VALUES_RANGE[1] or top < VALUES_RANGE[0]:
            raise ValueError(
                f"{self!r} gives values that are not finite, or smaller than float64 holds, on "
                f"rows with numbers of {entry:.1e}. Scale the data, X / np.abs(X).max(), or change "
                "the kernel's parameters."
            )

    def spread(self, X: Array) -> float:
        """What centering cancels; entries beyond its range leave single precision nothing."""
        with np.errstate(over="ignore", invalid="ignore"):
            largest, (low, high) = float(abs(self.diag(X)).max()), SINGLE_RANGE
            inside = low < largest < high and self._argument(X) < high
            return centering_spread(self, X) if inside else np.inf

    def _argument(self, X) -> float:
        """The largest gamma |x|^2."""
        return float(wide_row_squares(X).max()) * self._scale**2


class Linear(DotProductKernel):
    """``x . z``: kernel PCA with it is ordinary PCA.

    Parameters
    ----------
    center : array of shape (d,) or None
        Taken off every row first, ``(x - c) . (z - c)``: the same components, and no digits lost
        to rows far from the origin. `KernelPCA` sets it where it matters.
    """

    def __init__(self, center: Any = None):
        self.center = center

    def origin(self, X: Array) -> Any:
        """The center that was given."""
        return None if self.center is None else on_device_of(self.center, X)

    def diag(self, X: Array) -> Array:
        """|x - c|^2."""
        if self.center is None:
            return super().diag(X)
        xp = array_namespace(X)
        return wide_row_squares(xp.asarray(X, dtype=xp.float64) - self.origin(X))

    def gradient(self, X: Array, Z: Array, W: Array) -> Array:
        """z, less the center: the same for every x."""
        xp = array_namespace(X)
        Z = Z if self.center is None else Z - self.origin(Z)
        return xp.broadcast_to(Z.T @ W, (X.shape[0], Z.shape[1], W.shape[1]))

    def direction(self, Z: Array, W: Array) -> Array:
        """The sum of w_i (z_i - c), some rows at a time, (d, b)."""
        V = np.zeros((Z.shape[1], W.shape[1]))
        for start in range(0, Z.shape[0], SUMMED_ROWS):
            block = slice(start, start + SUMMED_ROWS)
            V += rows_of(Z, block, np.float64, self.origin(Z)).T @ W[block]
        return V

    def recentered(self, X: Array) -> Kernel:
        """With the mean as its center, where rows are far from the origin and close together."""
        # A single row is its own mean, from which nothing is seen of it.
        if is_sparse(X) or self.center is not None or X.shape[0] < 2:
            return self
        sample = np.asarray(to_numpy(X[:: -(-X.shape[0] // MEAN_ROWS)]), dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            mean = sample.mean(axis=0)
            spread = float(np.square(sample - mean).sum(axis=1).mean())
            far = float(mean @ mean) > OFFSET * spread
        return Linear(mean) if far else self

    def scalar_map(self) -> ScalarMap | None:
        """The inner product itself."""
        return ScalarMap("identity", bounded=False)


class Polynomial(DotProductKernel):
    """``(gamma x . z + coef0)^degree``.

    Parameters
    ----------
    degree : float
        Whole numbers are fast; others need a positive base.
    gamma : float or None
        None is 1 / number of columns.
    coef0 : float
        Weight of the lower degrees.
    """

    live_tiles = 3

    def __init__(self, degree: float = 3, gamma: float | None = None, coef0: float = 1):
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0

    @property
    def definite(self) -> bool:  # type: ignore[override]
        """A negative constant, or a broken power, can make it indefinite."""
        return self.coef0 >= 0 and float(self.degree).is_integer()

    def finish(self, T: Array) -> Array:
        """Add the constant, take the power."""
        T += self.coef0
        return power(T, self.degree)

    def slope(self, T: Array) -> Array:
        """p (t + c)^(p - 1)."""
        T += self.coef0
        return power(T, self.degree - 1) * float(self.degree) if self.degree else T * 0.0

    def scalar_map(self) -> ScalarMap | None:
        """A power by multiplication; others are not fused."""
        if not float(self.degree).is_integer() or not 1 <= self.degree <= FUSED_DEGREE:
            return None
        scale, constant = float(np.sqrt(self.gamma)), float(self.coef0)
        return ScalarMap("power", scale, (constant,), int(self.degree), bounded=False)

    def sketch_terms(self) -> tuple[int, float, float] | None:
        """Degree, scale and constant for a tensor sketch."""
        if not self.definite or self.degree < 1:
            raise ValueError(
                f"A tensor sketch needs a whole degree above 0 and coef0 >= 0, not "
                f"degree={self.degree!r} and coef0={self.coef0!r}."
            )
        return int(self.degree), self.gamma, self.coef0


class Sigmoid(DotProductKernel):
    """``tanh(gamma x . z + coef0)``: not positive semidefinite in general.

    Parameters
    ----------
    gamma : float or None
        None is 1 / number of columns.
    coef0 : float
    """

    definite = False

    def __init__(self, gamma: float | None = None, coef0: float = 1):
        self.gamma = gamma
        self.coef0 = coef0

    def spread(self, X: Array) -> float:
        """Size of the argument, which tanh does not shrink near zero, or what centering does."""
        with np.errstate(over="ignore"):
            return max(self._argument(X), super().spread(X))

    def growth(self, X: Array) -> float:
        """That of the argument."""
        with np.errstate(over="ignore"):
            return min(1 + self._argument(X), 1 / np.finfo(float).eps)

    def entry_size(self, X: Array) -> float:
        """One."""
        return 1.0

    def finish(self, T: Array) -> Array:
        """Add the constant, take tanh."""
        T += self.coef0
        return inplace(array_namespace(T).tanh, T)

    def slope(self, T: Array) -> Array:
        """1 - tanh^2."""
        return 1 - self.finish(T) ** 2

    def scalar_map(self) -> ScalarMap | None:
        """tanh(t + coef0); rows may be of any size, so float16 is not for them."""
        scale, constant = float(np.sqrt(self.gamma)), float(self.coef0)
        return ScalarMap("tanh", scale, (constant,), bounded=False)


class Cosine(DotProductKernel):
    """``x . z / (|x| |z|)``, zero for a zero row."""

    def embed(self, X: Array, origin: Array) -> Array:
        """Rows of unit length."""
        norms = row_squares(X) ** 0.5
        norms, X = in_range(norms, X)
        norms[norms == 0] = 1
        if is_sparse(X):
            return X.multiply((1 / norms)[:, None]).tocsr().astype(X.dtype)
        return X / norms[:, None]

    def gradient(self, X: Array, Z: Array, W: Array) -> Array:
        """(z / |z| - k x / |x|) / |x|; zero for a zero row."""
        return unit_gradient(X, self.embed(Z, None).T @ W)

    def scalar_map(self) -> ScalarMap | None:
        """The inner product of unit rows."""
        return ScalarMap("identity", unit=True)

    def diag(self, X: Array) -> Array:
        """One, or zero for a zero row."""
        sizes = largest_entries(X)
        xp = array_namespace(sizes)
        return xp.asarray(sizes > 0, dtype=xp.float64)


def unit_gradient(X, V):
    """Gradients of x . V / |x| with respect to rows X, for V of shape (d, b); (n, d, b)."""
    xp = array_namespace(X)
    norms = row_squares(X) ** 0.5
    some = xp.asarray(norms > 0, dtype=X.dtype)
    over = some / xp.where(norms > 0, norms, 1.0)
    unit = X * over[:, None]
    along = V[None, :, :] - unit[:, :, None] * (unit @ V)[:, None, :]
    return along * over[:, None, None]


def in_range(norms, X):
    """Norms of rows, and the rows, over their largest entries where squares leave the range."""
    low, high = (bound**0.5 for bound in SQUARES_RANGE)
    xp = array_namespace(norms)
    if bool(((norms > low) & (norms < high)).all()):
        return norms, X
    sizes = largest_entries(X)
    sizes = xp.where((sizes > 0) & ~((norms > low) & (norms < high)), sizes, xp.ones_like(sizes))
    if is_sparse(X):
        # The reciprocal of a small number may overflow, so twice by its root.
        roots = (sizes**-0.5)[:, None]
        X = X.multiply(roots).multiply(roots).tocsr().astype(X.dtype)
    else:
        X = X / sizes[:, None]
    return row_squares(X) ** 0.5, X


def largest_entry(X) -> float:
    """max |x_k| over all rows."""
    if is_sparse(X):
        return float(abs(X.data).max(initial=0))
    X = to_numpy(X) if isinstance(X, BlocksOnDemand) else X
    return max(float(X.max()), -float(X.min())) if X.shape[0] else 0.0


def largest_entries(X):
    """max |x_k| of every row, (n,)."""
    if is_sparse(X):
        return abs(X).max(axis=1).toarray().ravel()
    xp = array_namespace(X)
    return xp.max(xp.abs(X), axis=1)


def power(T, degree):
    """T to a power, by repeated multiplication for whole degrees: far faster than pow."""
    if float(degree).is_integer() and 0 <= degree <= 64:
        return _whole_power(T, int(degree))
    # A broken power of a negative number has no value: the product that meets it says so.
    with np.errstate(invalid="ignore"):
        T[...] = array_namespace(T).pow(T, float(degree))
    return T


def _whole_power(T, degree):
    base = array_namespace(T).asarray(T, copy=True)
    T[...] = 1
    while degree:
        if degree & 1:
            T *= base
        degree >>= 1
        if degree:
            base *= base
    return T
