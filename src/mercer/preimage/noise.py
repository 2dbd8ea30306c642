"""Noise of rows: how large it is, what it does to scores, and how far rows should move for it.

It shrinks the scores of a Gaussian kernel. A noisy row y = x + e is farther from every training
row by about the same |e|^2, since noise of many coordinates is nearly orthogonal to differences of
rows. So k(y, x_i) is k(x, x_i) times exp(-gamma |e|^2), and multiplying it back restores the
scores. The energy |e|^2 is estimated from how much farther y is from its nearest training row than
training rows are from theirs.

A denoised row is y + a (z - y) + b (w - y), with its pre-image z and its filtered scores of linear
PCA w. The expected error is quadratic in a and b, and Stein's formula (1981) gives it without the
clean rows: E e.(z - x) is the variance of the noise times the divergence of z.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from math import isqrt

import numpy as np
from scipy.stats import chi2, mannwhitneyu
from sklearn.metrics.pairwise import euclidean_distances

from ..compute import TiledEngine, array_namespace, on_device_of, to_numpy
from ..compute.arrays import Array, placement_of
from ..compute.linalg import solve_positive
from ..kernels.base import row_squares
from .base import batch_rows, some_rows

# Rows among which neighbors are sought, and rows from which the usual distance is taken.
NEIGHBOR_ROWS, USUAL_ROWS = 5000, 1000
# Rows of the fit that the noise of others is measured with, and rows held out of these.
ANCHOR_ROWS, HELD_ROWS = 2000, 500
# Held rows near to the noisy ones, at least, and the levels of the two tests that there is noise.
NEAREST_ROWS, SURE, FAIRLY_SURE = 100, 0.0025, 0.02
# Least noise that is tried, of the largest entry of the rows, and halvings of the range above it.
SMALLEST, STEPS = 1e-7, 14
# Noise in rows of the fit: by how much the variances of its directions may differ, directions and
# rows at least, by how much the largest variance must exceed them, and standard errors that are
# allowed to their slope and to the energies of rows.
FLAT, FLAT_DIRECTIONS, FLAT_ROWS, STANDS_OUT, WHITE = 1.1, 4, 50, 3.0, 3.0


@dataclass(frozen=True)
class Compensation:
    """The factor that undoes shrinkage, from distances to training rows.

    Attributes
    ----------
    rows : array of shape (n, d)
        Where the engine computes.
    usual : float
        Median squared distance of a training row to its nearest other.
    """

    rows: np.ndarray
    usual: float

    @classmethod
    def of(cls, X: Array, engine: TiledEngine) -> "Compensation":
        """From the training rows, or a sample of many."""
        rows = engine.asarray(some_rows(X, NEIGHBOR_ROWS))
        count = min(len(rows), USUAL_ROWS)
        squares = nearest_squares(rows[:: -(-len(rows) // count)], rows, engine, others=True)
        return cls(rows, float(np.median(to_numpy(squares).astype(float))))

    def energies(self, Y: Array, engine: TiledEngine) -> Array:
        """Estimated squared norm of the noise of each row, (q,)."""
        squares = nearest_squares(Y, self.rows, engine)
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


class NoiseGauge:
    """How noisy rows are, measured against rows of the fit, and what linear PCA makes of them.

    Rows are as noisy as rows of the fit look once so much noise is added to them. Rows of the fit
    are halved for this: from `anchors` come directions, their variances and near neighbors, and
    `held` are the rows to compare with, which are as new to the anchors as any other.

    Two things are looked at. The energy in directions of little variance shows noise in many
    columns, a hundredth of the signal and less; the distance to the nearest anchor shows it near a
    curved surface in few. The one that would see less noise is taken, whatever the rows are.

    Parameters
    ----------
    X : array of shape (n, d)
        Rows of the fit, or a sample.
    memory : int
        Bytes that work arrays may take.
    """

    def __init__(self, X: np.ndarray, memory: int):
        rng, (n, d) = np.random.default_rng(0), X.shape
        room = max(4, memory // (256 * d))
        X = X[rng.permutation(n)[:room]].astype(float)
        count = min(HELD_ROWS, len(X) // 3, isqrt(memory // 128))
        anchors = X[count:][: ANCHOR_ROWS if d <= ANCHOR_ROWS // 2 else ANCHOR_ROWS // 2]
        self.mean = anchors.mean(axis=0)
        self.unit = float(np.abs(anchors - self.mean).max()) or 1.0
        self.anchors = (anchors - self.mean) / self.unit
        self.held = (X[:count] - self.mean) / self.unit if count else self.anchors
        self.drawn = rng.standard_normal(self.held.shape)
        _, sizes, Vt = np.linalg.svd(self.anchors, full_matrices=False)
        used = sizes > 1e-5 * max(sizes[0], 1e-100)
        self.directions, self.variances = Vt[used].T, sizes[used] ** 2 / len(anchors)
        self.unseen = d - self.directions.shape[1]
        squares, beyond = self._squares(self.held)
        # Of rows that the directions were not chosen by: those of the anchors are too small.
        self.fresh, self.beyond = squares.mean(axis=0), beyond.mean() / max(self.unseen, 1)
        # Energies of rows in the half of the directions that has the least variance.
        self.least = squares[:, squares.shape[1] // 2 :].sum(axis=1)

    def excess(self, Y: np.ndarray) -> float:
        """Standard deviation of the noise that rows have beyond those of the fit; 0 if not sure.

        They must look noisier than the held rows, and than those of them that are nearest to
        them: rows of one kind may differ more than the mean of all kinds does.
        """
        Y = (some_rows(Y, HELD_ROWS) - self.mean) / self.unit
        each = min(len(self.held), -(-NEAREST_ROWS // len(Y)))
        apart = euclidean_distances(Y, self.held, squared=True)
        near = np.argpartition(apart, each - 1, axis=1)[:, :each].ravel()
        largest, levels = 10 * max(float(np.sqrt(np.mean(Y**2))), SMALLEST), []

        def less(held, drawn, noise):
            # One standard error less than one half, so that few rows are not taken to be too noisy.
            half = 0.5 + ((1 / len(Y) + 1 / len(held)) / 12) ** 0.5
            seen = np.sort(self._energies(held + noise * drawn, noise))
            below = np.searchsorted(seen, self._energies(Y, noise))
            return below.mean() > half * len(seen)

        for among, level in ((slice(None), SURE), (near, FAIRLY_SURE)):
            held = self.held[among]
            noise = bisected(partial(less, held, self.drawn[among]), largest)
            pair = self._energies(Y, noise), self._energies(held, noise)
            if not mannwhitneyu(*pair, alternative="greater").pvalue <= level:
                return 0.0
            levels.append(noise)
        return self.unit * min(levels)

    @cached_property
    def limit(self) -> float:
        """The noise that a single row shows, by the better of the two ways of looking."""
        return self.unit * min(self._limits)

    @cached_property
    def floor(self) -> float:
        """Standard deviation of the noise that the rows of the fit have themselves, or 0.

        That of the directions of least variance, if it is the same in all of these and in most
        rows, as it is with white noise and little else, and larger directions stand out. What is
        left of a signal is large in some rows and small in others.
        """
        quarter = len(self.fresh) // 4
        if quarter < FLAT_DIRECTIONS or len(self.held) < FLAT_ROWS:
            return 0.0
        last, before = self.fresh[-quarter:].mean(), self.fresh[-2 * quarter : -quarter].mean()
        largest = FLAT + 3 * np.sqrt(4 / (quarter * len(self.held)))
        flat = before <= largest * last and self.fresh[0] > STANDS_OUT * last
        half = self.fresh[len(self.fresh) // 2 :]
        place = np.arange(len(half)) - (len(half) - 1) / 2
        error = WHITE * np.sqrt(2 / len(self.held))
        flat = flat and -(place @ half) <= error * half.mean() * np.linalg.norm(place)
        # Of white noise a low quantile of the energies says the same as their median.
        few, most = np.quantile(self.least, (0.1, 0.5)) / chi2.ppf((0.1, 0.5), len(half))
        flat = flat and most <= few * (FLAT + 2 * error / np.sqrt(len(half)))
        if flat and self.unseen:
            flat = last / largest <= self.beyond <= largest * last
        return self.unit * float(np.sqrt(last)) if flat else 0.0

    def gains(self, noise: float, present: float) -> tuple[np.ndarray, float]:
        """Shares of their scores that rows keep, by direction and in all others (Wiener's filter).

        `present` is the noise that rows of the fit have themselves.
        """
        noise, present = noise / self.unit, present / self.unit
        signal = np.clip(np.append(self.fresh, self.beyond) - present**2, 0.0, None)
        gains = signal / (signal + noise**2)
        return gains[:-1], float(gains[-1])

    def divergence(self, gains: tuple[np.ndarray, float]) -> float:
        """Trace of the filter."""
        return float(gains[0].sum() + gains[1] * self.unseen)

    def filtered(self, X: Array, gains: tuple[np.ndarray, float]) -> Array:
        """Rows whose scores are multiplied by gains."""
        xp = array_namespace(X)
        V, inner, mean = (
            xp.asarray(on_device_of(A, X), dtype=X.dtype)
            for A in (self.directions, gains[0] - gains[1], self.mean)
        )
        C = X - mean
        return mean + gains[1] * C + (C @ V * inner) @ V.T

    @cached_property
    def _limits(self) -> list[float]:
        """The noise that moves the median of held rows to their upper quartile, for both ways."""

        def less(by_direction, noise):
            seen = self._energies(self.held + noise * self.drawn, noise, by_direction)
            clean = self._energies(self.held, noise, by_direction)
            return np.median(seen) < np.quantile(clean, 0.75)

        return [bisected(partial(less, way), 10.0) for way in (True, False)]

    def _energies(self, X, noise, by_direction=None):
        """A statistic of rows that grows with their noise, (q,), most precise near this size."""
        if by_direction is None:
            by_direction = self._limits[0] <= self._limits[1]
        if not by_direction:
            return euclidean_distances(X, self.anchors[:HELD_ROWS], squared=True).min(axis=1)
        squares, beyond = self._squares(X)
        # Inverse variances of the squares, as if rows were Gaussian.
        weights = (self.variances + noise**2) ** -2
        rest = (self.beyond + noise**2) ** -2 if self.unseen else 0.0
        total = weights.sum() + rest * self.unseen
        return squares @ (weights / total) + (rest / total) * beyond

    def _squares(self, X):
        """Squared scores (q, k), and what is left of the squared norm of each row."""
        squares = (X @ self.directions) ** 2
        left = np.einsum("ij,ij->i", X, X) - squares.sum(axis=1)
        return squares, np.clip(left, 0.0, None) if self.unseen else np.zeros(len(X))


def bisected(less: Callable[[float], bool], largest: float) -> float:
    """Where a condition on the noise ceases to hold, between SMALLEST and `largest`."""
    low, high = np.log(SMALLEST), np.log(largest)
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if less(float(np.exp(middle))) else (low, middle)
    return float(np.exp((low + high) / 2))


def best_shares(H: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Shares a >= 0 of two corrections, of sum at most 1, with the least a'Ha - 2 g'a."""
    if not np.trace(H) > 0:
        return np.zeros(2)
    square = H + 1e-12 * np.trace(H) * np.eye(2)
    across = square[0, 0] - 2 * square[0, 1] + square[1, 1]
    first = float(np.clip((square[1, 1] - square[0, 1] + g[0] - g[1]) / across, 0.0, 1.0))
    alone = np.clip(g / np.maximum(np.diag(square), np.finfo(float).tiny), 0.0, 1.0)
    choices = [np.zeros(2), alone * [1, 0], alone * [0, 1], np.array([first, 1 - first])]
    inside = solve_positive(square, g[:, None])[:, 0]
    if inside.min() >= 0 and inside.sum() <= 1:
        choices.append(inside)
    return min(choices, key=lambda a: float(a @ square @ a - 2 * g @ a))
