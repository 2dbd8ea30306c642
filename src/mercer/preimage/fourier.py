"""The fixed point on a Fourier grid: the mean shift of a function that transforms evaluate.

For the Gaussian kernel Mika's map is z + grad f(z) / (2 gamma f(z)), with f(z) the inner product of
phi(z) and the reconstruction: no points are needed, only f and its gradient, and both are Fourier
series with known coefficients.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..bases import FourierBasis
from ..compute import to_numpy
from .base import FittedPreimage, Preimages, some_rows, tiny, total_std, with_mean
from .fixed_point import climb
from .forms import CANCELLED

# Training rows among which a climb starts, and rows that climb together.
START_ROWS, TOGETHER = 2000, 2**16


class FourierForm:
    """f and the mean-shift step for rows of weights [1, s] over the frame."""

    damping = 1.0

    def __init__(self, basis: FourierBasis, F):
        self.basis, F = basis, np.asarray(to_numpy(F), dtype=float)
        self.functions = np.hstack([F, *basis.slope_weights(F)])
        self.gamma = basis.kernel.get_params()["gamma"]

    def evaluate(self, Z, T):
        """Values (q,), their size before cancellation (q,) and steps (q, d) at rows Z."""
        grid = self.basis.frequencies
        inside = np.clip(Z, grid.box[:, 0] - grid.room, grid.box[:, 1] + grid.room)
        P = to_numpy(self.basis.project(inside, self.functions))
        parts = P.reshape(len(Z), 1 + Z.shape[1], -1) * T[:, None, :]
        value, size = parts[:, 0].sum(axis=1), np.abs(parts[:, 0]).sum(axis=1)
        by = np.where(value > CANCELLED * np.minimum(size, 1.0), value, np.minimum(size, 1.0))
        step = parts[:, 1:].sum(axis=2) / np.maximum(2 * self.gamma * by, tiny(Z))[:, None]
        # Beyond the box there is no value that could be trusted: such a step is halved.
        return np.where((inside == Z).all(axis=1), value, -np.inf), size, step


@dataclass(frozen=True)
class FittedFourier(FittedPreimage):
    """The fixed point for one expansion on a Fourier grid.

    Attributes
    ----------
    form : FourierForm
    rows : array of shape (n, d)
        Training rows to start from.
    anchors : array of shape (n, 1 + r)
        Their inner products with the frame.
    size : float
        Total standard deviation of the data.
    tol, max_iter
        As in `FixedPoint`.
    """

    form: FourierForm
    rows: Any
    anchors: Any
    size: float
    tol: float
    max_iter: int

    @classmethod
    def of(cls, expansion, X, tol, max_iter) -> "FittedFourier":
        """Bind to an expansion and some rows."""
        rows = np.asarray(to_numpy(some_rows(X, START_ROWS)), dtype=float)
        anchors = to_numpy(expansion.basis.project(rows, expansion.frame))
        return cls(
            FourierForm(expansion.basis, expansion.frame),
            rows,
            anchors,
            total_std(rows) or 1.0,
            tol,
            max_iter,
        )

    def __call__(self, S, near=None):
        """Climb from the training row with the largest value."""
        S = np.asarray(to_numpy(S), dtype=float)
        out = Preimages.at_once(np.empty((len(S), self.rows.shape[1])))
        for start in range(0, len(S), TOGETHER):
            block = slice(start, start + TOGETHER)
            T = with_mean(S[block])
            nearest = self.rows[nearest_anchor(T, self.anchors)]
            tol = self.tol * self.size
            found = climb(self.form, T, nearest, tol, self.size, self.max_iter)
            out.points[block], _, out.converged[block], out.n_iter[block] = found
        return out


def nearest_anchor(T, anchors):
    """The row of `anchors` with the largest inner product, for every row of T."""
    parts = [np.argmax(T[i : i + 2048] @ anchors.T, axis=1) for i in range(0, len(T), 2048)]
    return np.concatenate(parts)
