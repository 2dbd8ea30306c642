"""Kernels of the inner product x . z: linear, polynomial, sigmoid, cosine."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..compute import (
    ScalarMap,
    array_namespace,
    inplace,
    is_sparse,
    on_device_of,
    row_blocks,
    to_numpy,
)
from ..compute.arrays import Array, block_rows, blocks_of, csr_of
from . import base


class DotProductKernel(base.FactoredKernel):
    """A function of gamma x . z + coef0."""

    def embed(self, X: Array) -> Array:
        """sqrt(gamma) x."""
        scale = float(np.sqrt(self._scale))
        return X if scale == 1.0 else X * scale

    def gradient(self, X: Array, Z: Array, W: Array) -> Array:
        """gamma f'(gamma x . z) z."""
        C = self.slopes(X, Z)
        C *= self._scale
        return base.weighted_sums(C, W, Z)

    @property
    def _scale(self) -> float:
        """What inner products are multiplied by: gamma, where there is one."""
        return 1.0 if self.gamma is None else float(self.gamma)

    def finish(self, T: Array) -> Array:
        return T

    def diag(self, X: Array) -> Array:
        """f(gamma |x|^2)."""
        return self.finish(base.wide_row_squares(X) * self._scale)

    def check(self, X: Array) -> None:
        """Raise ValueError if values overflow float64, or all of them underflow."""
        super().check(X)
        entry = base.largest_entry(X)
        if entry == 0 or 1e-40 < entry < 1e25:  # products of such rows are in range
            return
        with np.errstate(over="ignore", invalid="ignore"):
            top = float(abs(self.diag(X)).max())
        if not top * X.shape[0] < 1e305 or top < 1e-290:
            raise ValueError(
                f"{self!r} gives values that are not finite, or smaller than float64 holds, on "
                f"rows with numbers of {entry:.1e}. Scale the data, X / np.abs(X).max(), or change "
                "the kernel's parameters."
            )

    def spread(self, X: Array) -> float:
        """Magnification by centering; inf if sums over many entries would overflow float32."""
        with np.errstate(over="ignore", invalid="ignore"):
            largest = float(abs(self.diag(X)).max())
            inside = 1e-25 < largest < 1e30 and self.argument(X) < 1e30
            return base.centering_spread(self, X) if inside else np.inf

    def argument(self, X: Array) -> float:
        """The largest gamma |x|^2."""
        return float(base.wide_row_squares(X).max()) * self._scale


@dataclass(eq=False, repr=False)
class Linear(DotProductKernel):
    """``x . z``: kernel PCA with it is ordinary PCA.

    Parameters
    ----------
    center : array of shape (d,) or None
        Taken off every row first, ``(x - c) . (z - c)``: the same components, and no digits lost
        to rows far from the origin. `KernelPCA` sets it where it matters.
    """

    is_inner_product = True
    per_column = ("center",)

    center: Any = None

    def origin(self, X: Array) -> Any:
        return None if self.center is None else on_device_of(self.center, X)

    def diag(self, X: Array) -> Array:
        if self.center is None:
            return super().diag(X)
        xp, origin = array_namespace(X), self.origin(X)
        every = row_blocks(X.shape[0], block_rows(X))
        blocks = (base.rows_of(X, block, xp.float64, origin) for block in every)
        return xp.concat([base.row_squares(rows) for rows in blocks])

    def gradient(self, X: Array, Z: Array, W: Array) -> Array:
        """z, less the center: the same for every x."""
        xp = array_namespace(X)
        Z = Z if self.center is None else Z - self.origin(Z)
        return xp.broadcast_to(Z.T @ W, (X.shape[0], Z.shape[1], W.shape[1]))

    def recentered(self, X: Array) -> base.Kernel:
        """With the mean as its center, where rows are far from the origin and close together."""
        # Less its mean, a single row would be zero.
        if is_sparse(X) or self.center is not None or X.shape[0] < 2:
            return self
        most = min(4096, block_rows(X))
        sample = np.array(to_numpy(X[:: -(-X.shape[0] // most)]), dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            mean = sample.mean(axis=0)
            sample -= mean
            spread = float(np.einsum("ij,ij->", sample, sample)) / len(sample)
            far = float(mean @ mean) > 1e4 * spread  # then digits that matter are lost
        return Linear(mean) if far else self

    def scalar_map(self) -> ScalarMap | None:
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
        """False for a negative constant or a fractional degree, which can make it indefinite."""
        return self.coef0 >= 0 and float(self.degree).is_integer()

    def finish(self, T: Array) -> Array:
        T += self.coef0
        return power(T, self.degree)

    def slope(self, T: Array) -> Array:
        """p (t + c)^(p - 1)."""
        T += self.coef0
        return power(T, self.degree - 1) * float(self.degree) if self.degree else T * 0.0

    def scalar_map(self) -> ScalarMap | None:
        """A power by multiplication: up to degree 16, the others are not fused."""
        if not float(self.degree).is_integer() or not 1 <= self.degree <= 16:
            return None
        scale, constant = float(np.sqrt(self.gamma)), float(self.coef0)
        return ScalarMap("power", scale, (constant,), int(self.degree), bounded=False)

    def growth(self, X: Array) -> float:
        """A power has the relative rounding of its base times the degree, in units of eps / 2."""
        return max(1.0, abs(self.degree) / 2)

    def entry_size(self, X: Array) -> float:
        """With a negative constant, the value for two opposite rows: x . z = -|x|^2."""
        if self.coef0 >= 0:
            return 0.0
        with np.errstate(over="ignore"):
            return float(np.float64(self.argument(X) - self.coef0) ** abs(self.degree))

    def rank(self, d: int) -> int | None:
        """Monomials of d variables."""
        if self.degree < 0 or not float(self.degree).is_integer():
            return None
        return math.comb(d + int(self.degree), d)


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
        """The argument, whose rounding tanh passes on near zero, or magnification by centering."""
        with np.errstate(over="ignore"):
            return max(self.argument(X), super().spread(X))

    def growth(self, X: Array) -> float:
        with np.errstate(over="ignore"):
            return min(1 + self.argument(X), 1 / np.finfo(float).eps)

    def entry_size(self, X: Array) -> float:
        return 1.0

    def finish(self, T: Array) -> Array:
        T += self.coef0
        return inplace(array_namespace(T).tanh, T)

    def slope(self, T: Array) -> Array:
        return 1 - self.finish(T) ** 2

    def scalar_map(self) -> ScalarMap | None:
        """tanh(t + coef0); rows may be of any size, so float16 is not for them."""
        scale, constant = float(np.sqrt(self.gamma)), float(self.coef0)
        return ScalarMap("tanh", scale, (constant,), bounded=False)


class Cosine(DotProductKernel):
    """``x . z / (|x| |z|)``, zero for a zero row."""

    is_inner_product = True

    def embed(self, X: Array) -> Array:
        """Rows of unit length; if squares lose digits, they are divided by their largest entry."""
        norms = base.row_squares(X) ** 0.5
        inside = (norms > 1e-15) & (norms < 1e15)  # in any precision
        if not bool(inside.all()):
            xp, sizes = array_namespace(norms), largest_entries(X)
            sizes = xp.where((sizes > 0) & ~inside, sizes, xp.ones_like(sizes))
            X = over_rows(X, sizes)
            norms = base.row_squares(X) ** 0.5
        norms[norms == 0] = 1
        return over_rows(X, norms)

    def gradient(self, X: Array, Z: Array, W: Array) -> Array:
        """(z / |z| - k x / |x|) / |x|; zero for a zero row."""
        return unit_gradient(X, self.embed(Z).T @ W)

    def scalar_map(self) -> ScalarMap | None:
        return ScalarMap("identity", unit=True)

    def diag(self, X: Array) -> Array:
        """One, or zero for a zero row."""
        sizes = largest_entries(X)
        xp = array_namespace(sizes)
        return xp.asarray(sizes > 0, dtype=xp.float64)


def over_rows(X, sizes):
    """X with every row divided by its size; sparse rows share their places with X."""
    if not is_sparse(X):
        return X / sizes[:, None]
    numbers = X.data / np.repeat(sizes.astype(X.dtype), np.diff(X.indptr))
    return csr_of(numbers, X.indices, X.indptr, X.shape[1], type(X))


def unit_gradient(X, V):
    """Gradients of x . V / |x| with respect to rows X, for V of shape (d, b); (n, d, b)."""
    xp = array_namespace(X)
    norms = base.row_squares(X) ** 0.5
    positive = xp.asarray(norms > 0, dtype=X.dtype)
    over = positive / xp.where(norms > 0, norms, 1.0)
    unit = X * over[:, None]
    along = V[None, :, :] - unit[:, :, None] * (unit @ V)[:, None, :]
    return along * over[:, None, None]


def largest_entries(X):
    """max |x_k| of every row, (n,)."""
    if is_sparse(X):
        return np.concatenate([abs(rows).max(axis=1).toarray().ravel() for rows in blocks_of(X)])
    xp = array_namespace(X)
    ends = ((xp.max(block, axis=1), -xp.min(block, axis=1)) for block in blocks_of(X))
    return xp.concat([xp.maximum(*both) for both in ends])


def power(T, degree):
    """T to a power, by repeated multiplication for whole degrees: far faster than pow."""
    if not (float(degree).is_integer() and 0 <= degree <= 64):
        # A fractional power of a negative number is NaN, which products with the matrix report.
        with np.errstate(invalid="ignore"):
            T[...] = array_namespace(T).pow(T, float(degree))
        return T
    degree, factor = int(degree), array_namespace(T).asarray(T, copy=True)
    T[...] = 1
    while degree:
        if degree & 1:
            T *= factor
        degree >>= 1
        if degree:
            factor *= factor
    return T
