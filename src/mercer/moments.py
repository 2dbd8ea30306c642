"""Moments: count, mean and scatter of rows, which merge.

The moments of two sets of rows give those of their union (Chan, Golub & LeVeque 1983), so
files read in blocks, batches of a stream, threads and clusters are all the same sum.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import dsyrk


@dataclass(frozen=True)
class Moments:
    """Moments of weighted rows.

    Attributes
    ----------
    count : float
        Number of rows, or their weight.
    mean : array of shape (m,)
    scatter : array of shape (m, m)
        Sum of outer products of the rows' differences from the mean.
    energy : float
        Sum of k(x, x) over the rows: the squared norms before they were projected.
    """

    count: float
    mean: np.ndarray
    scatter: np.ndarray
    energy: float = 0.0

    @classmethod
    def of(cls, Y, energy: float = 0.0) -> "Moments":
        """The moments of the rows of Y, (n, m), summed in float64.

        Y is overwritten: its own mean is taken out first, so that single precision loses
        nothing to a large mean.
        """
        mean = Y.mean(axis=0, dtype=float)
        Y -= mean.astype(Y.dtype)
        return cls(float(Y.shape[0]), mean, (Y.T @ Y).astype(float), float(energy))

    @classmethod
    def of_blocks(cls, blocks: Iterable[np.ndarray], energy: float = 0.0) -> "Moments":
        """The moments of rows that come in blocks, which are overwritten.

        All are taken about the mean of the first block, which is close enough to their own,
        so that products add up in one array without a temporary of its size.
        """
        count, shift, total, scatter = 0, np.zeros(0), np.zeros(0), np.zeros((0, 0))
        for Y in blocks:
            if not count:
                # As it is subtracted, so that the mean takes back just that.
                shift = Y.mean(axis=0, dtype=float).astype(Y.dtype)
                total = np.zeros(Y.shape[1])
                scatter = np.zeros((Y.shape[1], Y.shape[1]), order="F")
            Y -= shift
            count, total = count + Y.shape[0], total + Y.sum(axis=0, dtype=float)
            scatter = _add_squares(scatter, Y)
        offset = total / max(count, 1)
        scatter = np.triu(scatter) + np.triu(scatter, 1).T
        scatter -= np.outer(offset, total)
        return cls(float(count), shift + offset, scatter, float(energy))

    def __add__(self, other: "Moments") -> "Moments":
        """The moments of both sets of rows together."""
        count = self.count + other.count
        if count == 0:
            return self
        shift = other.mean - self.mean
        scatter = self.scatter + other.scatter
        scatter += np.outer(shift, shift * (self.count * other.count / count))
        mean = self.mean + shift * (other.count / count)
        return Moments(count, mean, scatter, self.energy + other.energy)

    def scaled(self, factor: float) -> "Moments":
        """The same rows with less weight, for data that drift."""
        return Moments(self.count * factor, self.mean, self.scatter * factor, self.energy * factor)

    def mapped(self, W) -> "Moments":
        """The moments of the rows y W, for W of shape (m, k)."""
        scatter = W.T @ (self.scatter @ W)
        # Rounding leaves the triangles unequal, and eigensolvers read only one.
        return Moments(self.count, self.mean @ W, (scatter + scatter.T) / 2, self.energy)

    def about_zero(self) -> np.ndarray:
        """Sum of outer products of the rows themselves, (m, m)."""
        return self.scatter + self.count * np.outer(self.mean, self.mean)

    @property
    def projected_energy(self) -> float:
        """Sum of the rows' squared norms."""
        return float(np.trace(self.scatter)) + self.count * float(self.mean @ self.mean)

    @property
    def lost_energy(self) -> float:
        """The trace of what the projection left out, never negative."""
        return max(self.energy - self.projected_energy, 0.0)


def _add_squares(scatter, Y):
    """scatter + Y'Y in its upper triangle, summed in float64."""
    if Y.dtype == np.float64 and Y.flags.c_contiguous:
        return dsyrk(1.0, Y.T, beta=1.0, c=scatter, overwrite_c=1)
    scatter += Y.T @ Y
    return scatter
