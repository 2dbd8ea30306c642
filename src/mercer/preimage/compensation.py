"""Undo the shrinkage that noise causes in the scores of a Gaussian kernel.

A noisy row y = x + e is farther from every training row by about the same |e|^2, since noise of
many coordinates is nearly orthogonal to differences of rows. So k(y, x_i) is k(x, x_i) times
exp(-gamma |e|^2), and multiplying it back restores the scores. The energy |e|^2 is estimated
from how much farther y is from its nearest training row than training rows are from theirs.
"""

from dataclasses import dataclass

import numpy as np

from ..compute import TiledEngine, array_namespace, to_numpy
from ..compute.arrays import Array, placement_of
from ..kernels.base import row_squares
from .base import batch_rows, some_rows

# Rows among which neighbors are sought, and rows from which the usual distance is taken.
NEIGHBOR_ROWS, USUAL_ROWS = 5000, 1000


@dataclass(frozen=True)
class Compensation:
    """The factor that undoes shrinkage, from distances to training rows.

    Attributes
    ----------
    rows : array of shape (n, d)
        Where the engine computes.
    usual : float
        Median squared distance of a training row to its nearest other.
    spread : float
        Standard deviation of these squared distances.
    """

    rows: np.ndarray
    usual: float
    spread: float = 0.0

    @classmethod
    def of(cls, X: Array, engine: TiledEngine) -> "Compensation":
        """From the training rows, or a sample of many."""
        rows = engine.asarray(some_rows(X, NEIGHBOR_ROWS))
        count = min(len(rows), USUAL_ROWS)
        squares = nearest_squares(rows[:: -(-len(rows) // count)], rows, engine, others=True)
        squares = to_numpy(squares).astype(float)
        # In a unit of their own: squares of what is a square already may overflow.
        unit = float(squares.max()) or 1.0
        return cls(rows, float(np.median(squares)), unit * float(np.std(squares / unit)))

    def energies(self, Y: Array, engine: TiledEngine, others: bool = False) -> Array:
        """Estimated squared norm of the noise of each row, (q,); `others` as of training rows."""
        squares = nearest_squares(Y, self.rows, engine, others)
        return array_namespace(squares).clip(squares - self.usual, 0.0, None)


def undo_factors(exponents: Array) -> Array:
    """exp(gamma |e|^2) for each row, at most exp(3).

    Larger factors amplify what is left of the signal and its noise alike: with a narrow kernel,
    errors of ten times the noise were seen without this cap.
    """
    xp = array_namespace(exponents)
    return xp.exp(xp.clip(exponents, None, 3.0))


def nearest_squares(Y, X, engine, others=False):
    """Squared distance of each row of Y to the nearest of X, to the second with `others`."""
    xp, Y = array_namespace(X), engine.place(Y)
    origin = xp.mean(X, axis=0, dtype=xp.float64)
    X = X - origin
    norms = row_squares(X)
    out = engine.empty((len(Y),))

    def batch(block):
        Z = Y[block] - origin
        squares = norms - 2 * (Z @ X.T)
        squares += row_squares(Z)[:, None]
        if others:
            each = xp.arange(len(Z), **placement_of(Z))
            squares[each, xp.argmin(squares, axis=1)] = np.inf
        return xp.clip(xp.min(squares, axis=1), 0.0, None)

    engine.map_rows(batch, len(Y), batch_rows(engine, 3 * len(X) + Y.shape[1], 8), out)
    return out
