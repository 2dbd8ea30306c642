"""Kernels whose tiles are filled pair by pair: those that are sums over coordinates."""

from abc import abstractmethod
from typing import Any

import numpy as np
from scipy.special import ndtr

from ..compute import Array, array_namespace, inplace, is_sparse, to_numpy
from . import base


class DirectKernel(base.Kernel):
    """A kernel whose tiles are filled pair by pair."""

    seconds = (2.5e-9, 9e-11)

    @abstractmethod
    def fill(self, X: Array, Z: Array, out: Array) -> None:
        """out[i, j] = k(x_i, z_j)."""

    def pairs(self, X: Array, Z: Array = None, dtype: Any = None, store: int = 0) -> base.Pairs:
        return DirectPairs(self, X, Z, dtype)


class DirectPairs(base.Pairs):
    """Tiles filled by loops."""

    def __init__(self, kernel: Any, X: Array, Z: Array, dtype: Any):
        super().__init__(kernel, X, Z, dtype)
        self.origin = kernel.origin(self.Z)
        if is_sparse(self.X) or self.origin is not None:  # then rows are copied more than once
            self.row_floats *= 3

    def tile(self, i, j, out):
        left = base.rows_of(self.X, i, self.dtype, self.origin)
        self.kernel.fill(left, base.rows_of(self.Z, j, self.dtype, self.origin), out)
        return out


class Laplacian(base.DifferenceKernel, DirectKernel):
    """``exp(-gamma |x - z|_1)``.

    Parameters
    ----------
    gamma : float, array of shape (d,), "median", "mean" or None
        A word takes 1 / gamma to be that L1 distance between rows; None is
        1 / number of columns, as in scikit-learn.
    """

    metric = "cityblock"

    def __init__(self, gamma: Any = None):
        self.gamma = gamma

    def gamma_at(self, distance: float) -> float:
        return 1.0 / distance

    def argument(self, X: Array) -> float:
        """gamma |x|_1 of the row farthest from the origin."""
        return self.gamma * base.farthest(X, self.origin(X), lambda rows: abs(rows).sum(axis=1))

    def fill(self, X: Array, Z: Array, out: Array) -> None:
        add_coordinates("l1_distances", lambda x, z: abs(x - z), X, Z, out)
        out *= -self.gamma
        inplace(array_namespace(out).exp, out)

    def gradient(self, X: Array, Z: Array, W: Array) -> Array:
        """-gamma sign(x - z) k, column by column; zero at the kinks."""
        xp = array_namespace(X)
        return by_columns(lambda x, z: xp.sign(x - z), -self.gamma * self(X, Z), X, Z, W)

    def frequencies(self, G: Array, rng: np.random.Generator) -> Array:
        """Independent Cauchy coordinates, as quantiles of Gaussian ones."""
        return self.gamma * np.tan(np.pi * (ndtr(G) - 0.5))

    def spectral_density(self, f: Array, d: int) -> Array:
        """A Cauchy density for one column; of several the L1 distance is not Euclidean."""
        return 2 * self.gamma / (self.gamma**2 + (2 * np.pi * f) ** 2) if d == 1 else None


class AdditiveChi2(DirectKernel):
    """``-sum_k (x_k - z_k)^2 / (x_k + z_k)`` for non-negative rows such as histograms.

    Conditionally positive definite: centered, its matrix is positive semidefinite.
    """

    definite = False
    domain = base.NON_NEGATIVE

    def fill(self, X: Array, Z: Array, out: Array) -> None:
        largest = max(float(X.max()), float(Z.max())) if X.shape[0] and Z.shape[0] else 0.0
        unit = 1.0
        if 0 < largest < np.inf and not 2.0**-40 < largest < 2.0**40:
            # Squares of entries could over- or underflow; distances have the unit of the rows.
            unit = float(2.0 ** np.floor(np.log2(largest)))
            X, Z = X / unit, Z / unit
        add_coordinates("chi2_distances", chi2_term, X, Z, out)
        out *= -unit

    def gradient(self, X: Array, Z: Array, W: Array) -> Array:
        """4 z^2 / (x + z)^2 - 1, column by column."""
        return by_columns(chi2_slope, 1.0, X, Z, W)

    def entry_size(self, X: Array) -> float:
        """Twice the largest sum of a row."""
        return 2 * float(X.sum(axis=1).max())

    def diag(self, X: Array) -> Array:
        return base.same_for_all(X, 0.0)


class Chi2(AdditiveChi2):
    """``exp(-gamma sum_k (x_k - z_k)^2 / (x_k + z_k))`` for non-negative rows.

    Parameters
    ----------
    gamma : float or None
        None is 1, as scikit-learn's `chi2_kernel` has it; `KernelPCA` passes its own.
    """

    definite = True

    def __init__(self, gamma: float | None = None):
        self.gamma = gamma

    def resolve(self, X: Array, rng: np.random.Generator | None = None) -> base.Kernel:
        """A copy with gamma as a number."""
        resolved = super().resolve(X, rng)
        resolved.gamma = 1.0 if self.gamma is None else self.gamma
        return resolved

    def spread(self, X: Array) -> float:
        """As of other kernels; inf where rows that are rounded to float32 change values by more.

        Rounding changes t = gamma (x - z)^2 / (x + z) by 2 sqrt(t gamma (x + z)) eps at most,
        which counts exp(-t) times, and by eps^2 gamma (x + z) where rows are equal but for it.
        """
        total = 2 * self.gamma * base.farthest(X, None, lambda rows: rows.sum(axis=1))
        eps = float(np.finfo(np.float32).eps)
        return super().spread(X) if total**0.5 + eps * total < X.shape[1] else np.inf

    def fill(self, X: Array, Z: Array, out: Array) -> None:
        super().fill(X, Z, out)
        out *= self.gamma
        inplace(array_namespace(out).exp, out)

    def gradient(self, X: Array, Z: Array, W: Array) -> Array:
        """gamma k times that of the additive kernel."""
        return by_columns(chi2_slope, self.gamma * self(X, Z), X, Z, W)

    def entry_size(self, X: Array) -> float:
        return 0.0

    def diag(self, X: Array) -> Array:
        return base.same_for_all(X, 1.0)


def add_coordinates(compiled, term, X, Z, out, *settings):
    """out[i, j] = sum_k term(x_ik, z_jk, ...), compiled in main memory, else over entire tiles.

    `settings` are arrays with a number for each column, which the term takes beside x and z.
    """
    if isinstance(out, np.ndarray):
        from ..compute import _numba

        rounded = (numbers.astype(out.dtype) for numbers in settings)
        vars(_numba)[compiled](contiguous(X), contiguous(Z), *rounded, out)
        return
    out[...] = 0
    for column in columns_of(X, Z, *settings):
        out += term(*column)


def by_columns(slope, K, X, Z, W, *settings):
    """sum_j K_ij slope(x_ik, z_jk, ...) W_jb, (n, d, b), a column k after the other."""
    columns = columns_of(X, Z, *settings)
    return array_namespace(X).stack([(K * slope(*column)) @ W for column in columns], axis=1)


def columns_of(X, Z, *settings):
    """Yield every column of X, (n, 1), that of Z, (1, m), and its settings."""
    for k in range(X.shape[1]):
        yield X[:, k][:, None], Z[:, k][None, :], *(float(numbers[k]) for numbers in settings)


def contiguous(X):
    """Rows as a contiguous NumPy array of a type that compiled loops know."""
    rows = X.toarray() if is_sparse(X) else to_numpy(X)
    half = rows.dtype.kind == "f" and rows.itemsize == 2
    return np.ascontiguousarray(rows, np.float32 if half else rows.dtype.newbyteorder("="))


def chi2_term(x, z):
    """(x - z)^2 / (x + z), zero for empty bins."""
    xp, both = array_namespace(x), x + z
    return (x - z) ** 2 / xp.where(both > 0, both, 1.0)


def chi2_slope(x, z):
    """The derivative of -(x - z)^2 / (x + z) with respect to x; -1 for empty bins of z."""
    xp, both = array_namespace(x), x + z
    share = z / xp.where(both > 0, both, 1.0)
    return xp.where(both > 0, 4 * share**2 - 1, 0.0)
