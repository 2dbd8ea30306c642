"""The fixed point of Mika, Schoelkopf, Smola, Mueller, Scholz & Raetsch (1999), safeguarded.

The denominator of the published map is the objective itself, so that the check "did it rise?"
costs nothing: a step that lowers it is halved. In batches: two GEMMs an iteration for all rows.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..bases import Basis, ColumnBasis, FourierBasis, GramBasis
from ..compute import array_namespace, format_bytes, on_device_of, to_numpy
from ..compute.arrays import Array, dtype_name, itemsize, placement_of
from ..fitting.expansion import KernelExpansion
from ..kernels import RBF, Linear, Polynomial
from ..kernels.base import typical_distance
from ..kernels.stationary import StationaryKernel
from .base import (
    FittedPreimage,
    Preimage,
    Preimages,
    all_rows,
    batch_rows,
    some_rows,
    tiny,
    total_std,
    with_mean,
)
from .forms import Form, has_form, make_form

# Widths below this share of the median distance have several optima worth trying.
NARROW = 0.4
# Rounding units by which an objective may fall and still count as level.
SLACK = 4
# Rows from which the median distance is taken, and the data's size.
SCALE_ROWS = 400


class FixedPoint(Preimage):
    """The row whose image is nearest to the reconstruction, by a safeguarded fixed point.

    Points as the basis and a linear (closed form), Gaussian, Matern, rational quadratic, Laplacian
    or polynomial kernel. O(m d) a row and iteration. On a Fourier grid the Gaussian kernel only,
    by fast transforms.

    Parameters
    ----------
    tol : float
        Stop when the next step is below this share of the data's total standard deviation.
    max_iter : int
    """

    def __init__(self, tol: float = 1e-4, max_iter: int = 100):
        self.tol = tol
        self.max_iter = max_iter

    def check(self, basis: Basis) -> None:
        """Points and a gradient are needed; of a Gaussian on a Fourier grid the gradient alone."""
        if isinstance(basis, FourierBasis) and isinstance(basis.kernel, RBF):
            return
        if isinstance(basis, ColumnBasis) and isinstance(basis.kernel, Linear):
            return
        if basis.points is None:
            raise ValueError(
                f"preimage='fixed-point' climbs among the points of the basis, and "
                f"{type(basis).__name__} has none. Use preimage='ridge', which learns from "
                "training rows, or basis='landmarks'."
            )
        if isinstance(basis, GramBasis) and not basis.at_hand:
            raise ValueError(
                f"preimage='fixed-point' climbs among all {basis.size:,} points, which are on a "
                f"cluster and more than memory={format_bytes(basis.engine.memory)} has room for "
                "here. Use preimage='ridge', basis='landmarks', or raise memory."
            )
        if not isinstance(basis.kernel, Linear) and not has_form(basis.kernel):
            raise ValueError(
                f"preimage='fixed-point' needs the gradient of the kernel, which is not known for "
                f"{basis.kernel}. Use preimage='ridge'."
            )

    def fit(self, expansion: KernelExpansion, X: Array, denoising: bool = False) -> FittedPreimage:
        """Bind to an expansion; nothing is learned."""
        basis = expansion.basis
        if isinstance(basis, FourierBasis):
            from .fourier import FittedFourier

            return FittedFourier.of(expansion, X, self.tol, self.max_iter)
        if isinstance(basis, ColumnBasis):
            return LinearPreimage(expansion.frame.T)
        points = all_rows(basis.points)
        expansion = replace(expansion, frame=on_device_of(expansion.frame, points))
        if isinstance(basis.kernel, Linear):
            points = array_namespace(points).asarray(points, dtype=expansion.frame.dtype)
            return LinearPreimage(expansion.frame.T @ points)
        form = make_form(basis.kernel, points, basis.precision(points))
        assert form is not None  # `check` has asked
        size = total_std(some_rows(points, 10 * SCALE_ROWS)) or 1.0
        narrow = isinstance(basis.kernel, StationaryKernel) and is_narrow(basis.kernel, points)
        anchors = None
        if narrow:
            anchors = on_device_of(basis.project(basis.points, expansion.frame), points)
        return FittedFixedPoint(expansion, form, anchors, size, self.tol, self.max_iter)


@dataclass(frozen=True)
class LinearPreimage(FittedPreimage):
    """[1, s] F'Z: for the linear kernel the reconstruction is a row itself.

    Attributes
    ----------
    rows : array of shape (1 + r, d)
        The mean and the directions as rows.
    """

    rows: Any

    def __call__(self, S, near=None):
        """One product."""
        return Preimages.at_once(with_mean(on_device_of(S, self.rows)) @ self.rows)


@dataclass(frozen=True)
class FittedFixedPoint(FittedPreimage):
    """The fixed point for one expansion.

    Attributes
    ----------
    expansion : KernelExpansion
        With its frame where the points of the form are.
    form : Form
    anchors : array of shape (m, 1 + r) or None
        Inner products of the points with the frame, where a second start is worth while.
    size : float
        Total standard deviation of the data.
    tol, max_iter
        As in `FixedPoint`.
    """

    expansion: KernelExpansion
    form: Form
    anchors: Any
    size: float
    tol: float
    max_iter: int

    def __call__(self, S, near=None):
        """Climb from W X, and from the nearest point where the kernel is narrow."""
        engine, points = self.expansion.basis.engine, self.form.points
        xp, (m, d), dtype = array_namespace(points), points.shape, points.dtype
        found = xp.empty((len(S), d), dtype=dtype, **placement_of(points))
        out, S = Preimages.at_once(found), on_device_of(S, points)
        near = near if self._is_even() else None

        def batch(block):
            W = xp.asarray(self.expansion.weights(S[block]), dtype=dtype)
            start = (
                W @ points if near is None else on_device_of(near[block], points) - self.form.origin
            )
            Z, value, done, steps = self._climb(W, xp.asarray(start, dtype=dtype))
            if self.anchors is not None:
                nearest = xp.argmax(with_mean(S[block]) @ self.anchors.T, axis=1)
                again = self._climb(W, points[nearest])
                better = again[1] > value
                Z[better], done[better] = again[0][better], again[2][better]
                steps += again[3]
            out.converged[block], out.n_iter[block] = to_numpy(done), to_numpy(steps)
            return self.form.polish(Z, W) + self.form.origin

        rows = batch_rows(engine, self.form.live * m + 6 * d, itemsize(dtype))
        engine.map_rows(batch, len(S), rows, found)
        return out

    def _climb(self, W, start):
        return climb(self.form, W, start, self.tol * self.size, self.size, self.max_iter)

    def _is_even(self):
        """Even powers without a constant know a row only up to its sign."""
        kernel = self.form.kernel
        return isinstance(kernel, Polynomial) and kernel.coef0 == 0 and kernel.degree % 2 == 0


def climb(form, W, start, tol, reach, max_iter):
    """Ascent of a form from `start` (q, d) for weights W (q, m), all rows at once.

    No step is longer than `reach`, none that lowers the value is taken, and rows leave when
    their next step is below `tol`.

    Returns
    -------
    rows (q, d), values (q,), converged (q,), iterations (q,)
    """
    xp, q, here = array_namespace(start), start.shape[0], placement_of(start)
    found, values = xp.asarray(start, copy=True), xp.empty(q, dtype=start.dtype, **here)
    converged, n_iter = xp.zeros(q, dtype=xp.bool, **here), xp.full(q, max_iter, **here)
    active, Z = xp.arange(q, **here), start
    slack = SLACK * float(np.finfo(dtype_name(start.dtype)).eps)
    value, _, step = form.evaluate(Z, W)
    step = shorten(step, reach)
    t = xp.full(q, form.damping, dtype=start.dtype, **here)
    for i in range(max_iter):
        done = t * xp.linalg.vector_norm(step, axis=1) <= tol
        if done.any():
            rows = active[done]
            found[rows], values[rows], converged[rows], n_iter[rows] = Z[done], value[done], True, i
            kept = ~done
            active, Z, W, value = active[kept], Z[kept], W[kept], value[kept]
            step, t = step[kept], t[kept]
        if not len(active):
            return found, values, converged, n_iter
        trial = Z + t[:, None] * step
        new, size, new_step = form.evaluate(trial, W)
        better = new >= value - slack * size
        Z = xp.where(better[:, None], trial, Z)
        value = xp.where(better, new, value)
        step = xp.where(better[:, None], shorten(new_step, reach), step)
        t = xp.asarray(xp.where(better, form.damping, t / 2), dtype=t.dtype)
    found[active], values[active] = Z, value
    return found, values, converged, n_iter


def shorten(step, reach):
    """Steps (q, d) no longer than `reach`."""
    xp = array_namespace(step)
    length = xp.linalg.vector_norm(step, axis=1, keepdims=True)
    return step * xp.clip(reach / xp.clip(length, tiny(step), None), None, 1.0)


def is_narrow(kernel, X) -> bool:
    """Whether the kernel's sigma is far below the median distance between rows."""
    median = typical_distance(some_rows(X, SCALE_ROWS), "median")
    return kernel.gamma > 0 and 1 / np.sqrt(2 * kernel.gamma) < NARROW * median
