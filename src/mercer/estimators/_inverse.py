"""Pre-images of scores and denoising, for one expansion and some of its rows."""

from functools import cached_property
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from ..compute import array_namespace, dtype_name, is_sparse, on_device_of, to_numpy, too_little
from ..compute.arrays import is_foreign, is_on_device
from ..compute.numbers import is_single
from ..exceptions import InvalidRowsError, tell
from ..fitting.expansion import KernelExpansion
from ..fitting.functions import sampled_numbers
from ..kernels import RBF, Linear, Precomputed
from ..kernels.base import check_range
from ..preimage import Compensation, choose_preimage
from ..preimage.base import batch_rows, row_sample, some_rows
from ..preimage.noise import ANCHOR_ROWS, HELD_ROWS, NoiseGauge, best_shares, undo_factors
from ..rows import Opening, in_memory, open_rows
from ..rows.blocks import is_source
from ._checks import checked_array, checked_in_place

# Scores farther from the middle of the training rows' scores than this many times half their range
# are not scores of rows: a pre-image of them would be an unbounded extrapolation.
REACH = 3.0
# Training rows from which the range of scores is measured.
RANGE_ROWS = 2000
# Rows that the error of pre-images is estimated from, and the noise added for that, of the noise.
RISK_ROWS, PROBE = 300, 0.3
# Rows of a cluster that pre-images are learned from where not all fit here, the least of them,
# and the share of the budget that they may take.
CLUSTER_ROWS, LEAST_ROWS, SAMPLE_SHARE = 10_000, 100, 16
NO_NOISE = (
    "No noise was found in these rows beyond that of the rows of the fit: they are returned "
    "unchanged."
)


class Inverse:
    """Rows from scores: an expansion, training rows to learn from, and a method.

    What a method learns is stored, so that later calls are fast.

    Parameters
    ----------
    expansion : KernelExpansion
    rows : array of shape (s, d) or None
        Training rows; None for the points of the basis.
    preimage : str or Preimage
        As the parameter of the estimators.
    """

    def __init__(self, expansion: KernelExpansion, rows: Any, preimage: Any):
        self.given, self.preimage = expansion, preimage
        self.expansion = expansion.here()
        self.are_sparse = is_sparse(rows) or is_sparse(self.expansion.basis.points)
        self.rows = rows_to_learn_from(self.expansion.basis, rows)
        check_range(self.rows, "Pre-images")
        self._fitted: dict[bool, Any] = {}

    def serves(self, expansion: KernelExpansion, preimage: Any) -> bool:
        """Whether it has learned from this expansion by this method."""
        return self.given is expansion and repr(self.preimage) == repr(preimage)

    def find(self, S, denoising: bool, near=None):
        """Pre-images of scores, with a warning where some were not found to tolerance."""
        if near is not None:
            check_range(near, "Pre-images")
        if self.are_sparse:
            memory = self.expansion.basis.engine.memory
            check_dense(S.shape[0], self.rows.shape[1], memory)
        if denoising not in self._fitted:
            recipe = choose_preimage(self.preimage, self.expansion.basis, denoising)
            self._fitted[denoising] = recipe.fit(self.expansion, self.rows, denoising)
        with np.errstate(over="ignore", invalid="ignore"):
            result = self._fitted[denoising](S, near)
        if not bool(array_namespace(result.points).isfinite(result.points).all()):
            raise ValueError(
                "The pre-images of these scores are not finite. Pass scores of the size "
                "that transform gives, or scale the data."
            )
        missed = int(np.sum(~result.converged))
        if missed:
            tell(
                f"{missed} of {len(S)} pre-images had not converged after {result.n_iter.max()} "
                "iterations. Each is the best row found.",
                ConvergenceWarning,
                "Raise max_iter or tol of preimage=FixedPoint(...).",
            )
        return result.points

    def within_reach(self, S):
        """Scores with those far outside the training rows' brought back to the nearest within."""
        if isinstance(self.expansion.basis.kernel, Linear):
            return S  # every score is that of a row
        low, high = self._reach
        xp = array_namespace(S)
        low, high = on_device_of(low, S), on_device_of(high, S)
        outside = int(xp.sum(xp.any((low > S) | (high < S), axis=1)))
        if not outside:
            return S
        tell(
            f"{outside} of {len(S)} rows of scores lie outside {REACH:g} times the range of the "
            "training scores. They were moved to the nearest scores within it."
        )
        return xp.minimum(xp.maximum(S, low), high)

    @cached_property
    def _reach(self):
        """Least and largest scores that are taken as they are, (r,) each."""
        S = to_numpy(self.expansion.scores(some_rows(self.rows, RANGE_ROWS))).astype(float)
        low, high = S.min(axis=0), S.max(axis=0)
        middle, half = (low + high) / 2, (high - low) / 2
        return middle - REACH * half, middle + REACH * half

    def clipped(self, Z):
        """Rows with every entry within the range of its column in the training rows."""
        xp, X = array_namespace(Z), to_numpy(self.rows[:])
        ends = X.min(axis=0), X.max(axis=0)
        low, high = (xp.asarray(on_device_of(end, Z), dtype=Z.dtype) for end in ends)
        return xp.minimum(xp.maximum(Z, low), high)

    def denoised(self, X, compensate: bool, noise: float | None):
        """Noisy rows X, moved as far as pays; all the way to their pre-images for noise=inf."""
        check_range(X, "Pre-images")
        if noise == np.inf:
            return self.find(self.denoising_scores(X, compensate), denoising=True, near=X)
        gauge = self._gauge
        excess = gauge.excess(to_numpy(some_rows(X, HELD_ROWS)))
        # What would show, and does not, is in the rows of the fit too.
        as_noisy = not excess and (noise is None or gauge.limit < noise)
        noise = (excess or gauge.floor) if noise is None else noise
        if not noise:
            tell(NO_NOISE, python="If you know of some, give noise=, its standard deviation.")
            return X
        present = noise if as_noisy else 0.0
        energy = (noise**2 - present**2) * X.shape[1]

        def scores(rows):
            return self.denoising_scores(rows, compensate, energy)

        Z = self.find(scores(X), denoising=True, near=X)
        gains = gauge.gains(noise, present)
        a, b = self._shares(X, Z, scores, gains, noise)
        engine = self.expansion.basis.engine
        out = array_namespace(Z).empty_like(Z)

        def moved(block):
            Y = on_device_of(X[block], Z)
            Y = array_namespace(Z).asarray(Y, dtype=Z.dtype)
            return (1 - a - b) * Y + a * Z[block] + b * gauge.filtered(Y, gains)

        engine.map_rows(moved, len(Z), batch_rows(engine, 6 * X.shape[1], 8), out)
        return out

    def _shares(self, X, Z, scores, gains, noise):
        """How far to move from rows X to their pre-images Z, and to filtered rows: (a, b).

        Least estimated error of a sample of the rows. The divergence of pre-images is that of
        their change with a little more noise, as in Ramani, Blu & Unser (2008).
        """
        sample, gauge = row_sample(len(Z), RISK_ROWS), self._gauge
        index = slice(None) if sample is None else sample
        rows, found = X[index], to_numpy(Z[index]).astype(float)
        Y = to_numpy(rows).astype(float)
        step = PROBE * noise
        drawn = np.random.default_rng(1).standard_normal(Y.shape)
        probe = self.expansion.basis.kernel.domain.nearest(Y + step * drawn)
        near = on_device_of(probe.astype(dtype_name(rows.dtype)), rows)
        drawn = (to_numpy(near).astype(float) - Y) / step
        changed = to_numpy(self._fitted[True](scores(near), near).points) - found
        scale = step * max(float(np.mean(drawn**2)), np.finfo(float).eps)
        divergences = [float(np.sum(drawn * changed)) / scale, len(Y) * gauge.divergence(gains)]
        # What the noise moves out of; two of it are spent on the shares (James & Stein 1961).
        freed = np.clip(Y.size - np.array(divergences) - 2, 0.0, Y.size)
        unit = max(float(np.abs(Y).max()), noise)
        D = [(A - Y) / unit for A in (found, gauge.filtered(Y, gains))]
        H = np.array([[np.vdot(P, Q) for Q in D] for P in D])
        return best_shares(H, (noise / unit) ** 2 * freed)

    @cached_property
    def _gauge(self) -> NoiseGauge:
        rows = to_numpy(some_rows(self.rows, ANCHOR_ROWS + HELD_ROWS))
        return NoiseGauge(rows, self.expansion.basis.engine.memory)

    @cached_property
    def _compensation(self) -> Compensation:
        return Compensation.of(self.rows, self.expansion.basis.engine)

    def denoising_scores(self, X, compensate: bool, energy: float | None = None):
        """Scores, with kernel rows scaled back to what they would be without noise.

        `energy` is the mean squared norm of the noise of a row; estimated for each row if None.
        """
        check_range(X, "Pre-images")
        expansion, kernel = self.expansion, self.expansion.basis.kernel
        if not compensate or not isinstance(kernel, RBF):
            return expansion.scores(X)
        products = expansion.basis.project(X, expansion.frame[:, 1:])
        if energy is None:
            energies = self._compensation.energies(X, expansion.basis.engine)
            factors = undo_factors(kernel.gamma * energies)[:, None]
        else:
            factors = float(undo_factors(kernel.gamma * np.array(energy)))
        return factors * products - on_device_of(expansion.metric[0, 1:], products)


def rows_to_learn_from(basis, rows):
    """Training rows that a model has, or an error that says why there are none.

    Of rows on a cluster a sample, unless they were brought here with the basis.
    """
    if isinstance(basis.kernel, Precomputed):
        raise NotFittedError(
            "A precomputed kernel has no rows, and therefore no pre-images. Fit with a kernel that "
            "is computed from the data."
        )
    rows, memory = basis.points if rows is None or basis.spans_data else rows, basis.engine.memory
    opened = open_rows(rows, Opening(memory))
    room = memory // (SAMPLE_SHARE * 8 * max(rows.shape[1], 1))
    if in_memory(opened) is None:
        rows = opened.sample(max(LEAST_ROWS, min(CLUSTER_ROWS, room)), 0)
    if not is_sparse(rows):
        return rows
    # The linear kernel has its pre-images without them.
    if not isinstance(basis.kernel, Linear):
        check_dense(min(LEAST_ROWS, rows.shape[0]), rows.shape[1], memory, SAMPLE_SHARE)
    return rows[np.sort(sampled_numbers(rows.shape[0], max(1, room), 0))].toarray()


def check_dense(n: int, d: int, memory: Any, share: int = 1) -> None:
    """Raise ValueError where pre-images, which are dense, take more than a share of the budget."""
    if 8 * n * d * share > memory:
        what = f"the dense rows that pre-images are, {n:,} of {d:,} columns"
        advice = "Pass fewer rows at a time, or fit to a reduction of X, as by TruncatedSVD. "
        raise too_little(memory, 8 * n * d * share, what, advice)


def checked_scores(X, r: int | None = None, memory: Any = None):
    """Scores (n, r) in their own precision and on their device, or an error that says why not."""
    if is_source(X) and "__array__" not in dir(X):
        rows = open_rows(X, Opening(memory))
        X = rows.as_array("inverse_transform", instead="pass some of them at a time")
    elif is_single(X):
        raise InvalidRowsError(
            f"Scores are rows of numbers, and X is of type {type(X).__name__}. Pass an array or "
            "data frame of scores as transform gives them."
        )
    if is_on_device(X):
        S = checked_in_place(X, least_rows=1, copy=False)
    else:
        S = checked_array(to_numpy(X) if is_foreign(X) else X, dtype=[np.float64, np.float32])
    if r is not None and S.shape[1] != r:
        raise ValueError(
            f"The scores have {S.shape[1]} columns, and the model has {r} components. Pass scores "
            "as transform gives them."
        )
    return S
