"""The covariance of Fourier features: diagonal times Toeplitz times diagonal.

With t the trigonometric moments of n rows, the sum over rows of the product of two features, of
frequencies j and k, depends on t at j - k and j + k only. A product with a vector is a convolution
with t: a fast Fourier transform, a multiplication with the rows' density, and back, whatever n is.
"""

from functools import cached_property
from typing import Any

import numpy as np
from scipy.fft import irfftn, next_fast_len, rfftn
from scipy.linalg import eigh

from ..compute.arrays import Array
from .base import SymmetricOperator, padded

# Features from whose matrix a start is made: those of the lowest frequencies hold most variance.
START_FEATURES = 300
START_NOISE = 1e-3
# Entries of the matrix that are looked up at once.
LOOKUP_ENTRIES = 2**20
# Bytes of the grids that are transformed at once: larger ones leave the cache.
BATCH_BYTES = 32 * 2**20


class ToeplitzCovariance(SymmetricOperator):
    """C = sum over rows of psi psi', about their mean if `center`, (m, m).

    Parameters
    ----------
    index : int array of shape (M, d)
        Frequencies of one half space.
    amplitudes : array of shape (1 + 2 M,)
        Of the constant, the cosines and the sines.
    moments : TrigonometricMoments
    center : bool
    workers : int
        Threads of the transforms.
    """

    def __init__(
        self, index: Array, amplitudes: Array, moments: Any, center: bool = True, workers: int = 1
    ):
        self.index, self.amplitudes, self.moments = index, amplitudes, moments
        self.center, self.workers = center, workers
        self.shape = (amplitudes.size, amplitudes.size)
        self._grid = tuple(next_fast_len(side, real=True) for side in moments.sums.shape)
        # The rows' density on the grid of the box, so that products with it are those with T.
        half = np.zeros((*self._grid[:-1], self._grid[-1] // 2 + 1), complex)
        middle = (np.array(moments.sums.shape) - 1) // 2
        sums = moments.sums[..., middle[-1] :]
        sides = [np.arange(-c, c + 1) % size for c, size in zip(middle, self._grid, strict=True)]
        half[np.ix_(*sides[:-1], np.arange(sums.shape[-1]))] = sums
        self._density = irfftn(half, s=self._grid) * np.prod(self._grid)
        # Where frequencies stand on the half grid, their mirrors in its first plane, and whose.
        self._low = np.flatnonzero(index[:, -1] == 0)
        self._at, self._mirrored = (
            np.ravel_multi_index(tuple((J % self._grid).T), half.shape)
            for J in (index, -index[self._low])
        )

    def __matmul__(self, V):
        out = np.empty((V.shape[1], self.shape[0]))
        batch = max(1, BATCH_BYTES // (24 * int(np.prod(self._grid))))
        for start in range(0, V.shape[1], batch):
            columns = slice(start, start + batch)
            out[columns] = self._convolve(V.T[columns])
        if self.center:
            out -= self.moments.count * np.outer(V.T @ self.mean, self.mean)
        return out.T

    def _convolve(self, V):
        """V (b, m) through T, as functions on the grid of the box and back."""
        M, b = len(self.index), len(V)
        V = V * self.amplitudes
        half = (V[:, 1 : 1 + M] - 1j * V[:, 1 + M :]) / 2
        g = np.zeros((b, *self._grid[:-1], self._grid[-1] // 2 + 1), complex)
        flat = g.reshape(b, -1)
        flat[:, self._at] = half
        flat[:, self._mirrored] = half[:, self._low].conj()
        flat[:, 0] = V[:, 0]
        axes = tuple(range(1, g.ndim))
        f = irfftn(g, s=self._grid, axes=axes, workers=self.workers, overwrite_x=True)
        f *= self._density
        flat = rfftn(f, axes=axes, workers=self.workers, overwrite_x=True).reshape(b, -1)
        out, half = np.empty_like(V), flat[:, self._at]
        out[:, 0], out[:, 1 : 1 + M], out[:, 1 + M :] = flat[:, 0].real, half.real, -half.imag
        return out * self.amplitudes

    @cached_property
    def mean(self) -> np.ndarray:
        """The mean of the features, (m,)."""
        t = self.moments.at(self.index) / self.moments.count
        return self.amplitudes * np.concatenate([[1.0], t.real, -t.imag])

    def to_dense(self) -> Array:
        """The matrix by its formula."""
        A = self.rows(np.arange(self.shape[0]))
        return (A + A.T) / 2

    def rows(self, index: Array) -> np.ndarray:
        m = self.shape[0]
        index = np.arange(m)[index]
        out, step = np.empty((index.size, m)), max(1, LOOKUP_ENTRIES // m)
        for i in range(0, index.size, step):
            out[i : i + step] = self._entries(index[i : i + step], np.arange(m))
        return out

    def _entries(self, rows, columns):
        """Products of cosines and sines are sums of those of j - k and j + k."""
        J = np.vstack([np.zeros((1, self.index.shape[1]), int), self.index, self.index])
        sine = np.arange(self.shape[0]) > len(self.index)
        j, k = J[rows][:, None, :], J[columns][None, :, :]
        a, b = sine[rows][:, None], sine[columns][None, :]
        minus, plus = self.moments.at(j - k), self.moments.at(j + k)
        cosines = (minus.real + np.where(a & b, -plus.real, plus.real)) / 2
        # sum sin(q) = -Im t_q, and t_(k - j) is the conjugate of t_(j - k).
        sines = (np.where(a, -minus.imag, minus.imag) - plus.imag) / 2
        out = np.where(a == b, cosines, sines)
        out *= np.outer(self.amplitudes[rows], self.amplitudes[columns])
        if self.center:
            out -= self.moments.count * np.outer(self.mean[rows], self.mean[columns])
        return out

    def diagonal(self) -> np.ndarray:
        twice = self.moments.at(2 * self.index).real
        n = self.moments.count
        squares = self.amplitudes**2 * np.concatenate([[n], (n + twice) / 2, (n - twice) / 2])
        return squares - n * self.mean**2 if self.center else squares

    def square(self) -> float:
        """Before centering the sum of the squared kernel over all pairs of rows: by its series."""
        M, middle = len(self.index), (np.array(self.moments.sums.shape) - 1) // 4
        weights = np.zeros(2 * middle + 1)
        weights[tuple(middle)] = self.amplitudes[0] ** 2
        for J in (self.index, -self.index):
            weights[tuple((middle + J).T)] = self.amplitudes[1 : 1 + M] ** 2 / 2
        shape = self.moments.sums.shape
        squared = irfftn(rfftn(weights, s=shape) ** 2, s=shape)
        total = float((squared * np.abs(self.moments.sums) ** 2).sum())
        if not self.center:
            return total
        n, m = self.moments.count, self.mean
        return total - 2 * n * float(m @ (self @ m[:, None])[:, 0]) - n**2 * float(m @ m) ** 2

    def start(self, k: int, rng: np.random.Generator) -> Array:
        """Eigenvectors of the matrix of the first features, zero elsewhere."""
        M = len(self.index)
        few = np.arange(min(M, max(START_FEATURES, k) // 2))
        first = np.concatenate([[0], 1 + few, 1 + M + few])
        K = self._entries(first, first)
        count = min(k, first.size)
        _, U = eigh((K + K.T) / 2, subset_by_index=(first.size - count, first.size - 1))
        # A trace of noise, or features beyond the first would be missed where they do not mix.
        V = rng.standard_normal((self.shape[0], count)) * self.amplitudes[:, None]
        V *= START_NOISE / np.linalg.norm(self.amplitudes)
        V[first] += U[:, ::-1]
        return padded(V, k, rng)
