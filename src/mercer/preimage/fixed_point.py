"""The fixed point of Mika, Schoelkopf, Smola, Mueller, Scholz & Raetsch (1999), safeguarded.

For a kernel of the distance the squared distance of phi(z) to the reconstruction sum w_i phi(x_i)
is a constant less 2 f(z), f(z) = sum w_i k(x_i, z), and with the slope c = -dk / d|x - z|^2

    grad f  ~  sum w_i c_i (x_i - z),

so that z + grad f / sum w_i c_i is Mika's fixed-point map. For (gamma x.z + c)^p the norm of
phi(z) moves with z, f(z) = 2 sum w_i k(x_i, z) - k(z, z), and the map is
sum w_i ((gamma x_i.z + c) / (gamma z.z + c))^(p-1) x_i.

The denominator of the map is the objective itself, so that comparing values costs nothing: a step
that lowers it is halved. In batches: two GEMMs an iteration for all rows.

On a Fourier grid, for the Gaussian kernel, the map is z + grad f(z) / (2 gamma f(z)): no points are
needed, only f and its gradient, and both are Fourier series with known coefficients.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..bases import Basis, ColumnBasis, FourierBasis, GramBasis
from ..compute import (
    Array,
    array_namespace,
    dtype_name,
    format_bytes,
    is_sparse,
    on_device_of,
    to_numpy,
)
from ..compute.arrays import BlocksOnDemand, dtype_in, itemsize, placement_of, running_sums
from ..fitting.expansion import KernelExpansion
from ..kernels import RBF, FactoredKernel, Laplacian, Linear, Polynomial
from ..kernels.base import append_columns, row_squares, typical_distance
from ..kernels.dot_product import power
from ..kernels.stationary import StationaryKernel
from . import base

# Below this share of their absolute sum, or of one, weights nearly cancel: steps would be huge.
CANCELLED = 0.05
# Distances are never taken to be below this share of the data's size in a division.
NEAREST = 1e-6


@dataclass(eq=False, repr=False)
class FixedPoint(base.Preimage):
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

    tol: float = 1e-4
    max_iter: int = 100

    def check(self, basis: Basis) -> None:
        """Points and a gradient are needed; of a Gaussian on a Fourier grid the gradient alone."""
        on_grid = isinstance(basis, FourierBasis) and isinstance(basis.kernel, RBF)
        if on_grid or (isinstance(basis, ColumnBasis) and isinstance(basis.kernel, Linear)):
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
        if not isinstance(basis.kernel, Linear) and form_of(basis.kernel) is None:
            raise ValueError(
                f"preimage='fixed-point' needs the gradient of the kernel, which is not known for "
                f"{basis.kernel}. Use preimage='ridge'."
            )

    def fit(
        self, expansion: KernelExpansion, X: Array, denoising: bool = False
    ) -> base.FittedPreimage:
        """Bind to an expansion; nothing is learned."""
        basis, frame, kernel = expansion.basis, expansion.frame, expansion.basis.kernel
        if isinstance(basis, FourierBasis):
            rows = np.asarray(to_numpy(base.some_rows(X, 2000)), dtype=float)
            anchors, size = to_numpy(basis.project(rows, frame)), base.total_std(rows) or 1.0
            limits = self.tol * size, size, self.max_iter
            return partial(climbed_on_grid, FourierForm(basis, frame), rows, anchors, limits)
        if isinstance(basis, ColumnBasis):
            return partial(linear_rows, frame.T)
        # Rows that a device has no room for are in main memory.
        points = basis.points
        if isinstance(points, BlocksOnDemand):
            points = to_numpy(points)
        frame = on_device_of(frame, points)
        if isinstance(kernel, Linear):
            if not is_sparse(points):
                points = array_namespace(points).asarray(points, dtype=frame.dtype)
            return partial(linear_rows, (points.T @ frame).T)
        if is_sparse(points) and 8 * points.shape[0] * points.shape[1] > basis.engine.memory // 4:
            raise ValueError(
                f"preimage='fixed-point' climbs among dense points, and {points.shape[0]:,} of "
                f"{points.shape[1]:,} columns do not fit memory="
                f"{format_bytes(basis.engine.memory)}. Use preimage='ridge' or fewer landmarks."
            )
        points = base.some_rows(points, points.shape[0])
        form = form_of(kernel)(kernel, points, basis.precision(points))
        size, anchors = base.total_std(base.some_rows(points, 4000)) or 1.0, None
        if isinstance(kernel, StationaryKernel) and kernel.gamma > 0:
            # Kernels far narrower than the median distance have several optima worth trying.
            median = typical_distance(base.some_rows(points, 400), "median")
            if 1 / np.sqrt(2 * kernel.gamma) < 0.4 * median:
                anchors = on_device_of(basis.project(basis.points, frame), points)
        expansion = replace(expansion, frame=frame)
        return partial(climbed, expansion, form, anchors, (self.tol * size, size, self.max_iter))


def linear_rows(rows, S, near=None) -> base.Preimages:
    """[1, s] F'Z for the mean and the directions as rows (1 + r, d): of the linear kernel a row."""
    return base.Preimages.at_once(base.with_mean(on_device_of(S, rows)) @ rows)


def climbed(expansion, form, anchors, limits, S, near=None) -> base.Preimages:
    """Rows climbed to from W X, and from the nearest point where the kernel is narrow.

    `anchors` (m, 1 + r) are inner products of the points with the frame, or None where a second
    start is not worth while; the frame of the expansion is where the points of the form are. The
    `limits` are those of `climb`.
    """
    engine, points, kernel = expansion.basis.engine, form.points, form.kernel
    xp, (m, d), dtype = array_namespace(points), points.shape, points.dtype
    rows = xp.empty((len(S), d), dtype=dtype, **placement_of(points))
    out, S = base.Preimages.at_once(rows), on_device_of(S, points)
    # Even powers without a constant know a row only up to its sign.
    even = isinstance(kernel, Polynomial) and kernel.coef0 == 0 and kernel.degree % 2 == 0
    near = near if even else None

    def batch(block):
        W = xp.asarray(expansion.weights(S[block]), dtype=dtype)
        start = W @ points
        if near is not None:
            start = on_device_of(near[block], points) - form.origin
        Z, value, done, steps = climb(form, W, xp.asarray(start, dtype=dtype), *limits)
        if anchors is not None:
            nearest = xp.argmax(base.with_mean(S[block]) @ anchors.T, axis=1)
            again = climb(form, W, points[nearest], *limits)
            better = again[1] > value
            Z[better], done[better] = again[0][better], again[2][better]
            steps += again[3]
        out.converged[block], out.n_iter[block] = to_numpy(done), to_numpy(steps)
        return form.polish(Z, W) + form.origin

    step = base.batch_rows(engine, form.live * m + 6 * d, itemsize(dtype))
    engine.map_rows(batch, len(S), step, rows)
    return out


def climbed_on_grid(form, rows, anchors, limits, S, near=None) -> base.Preimages:
    """Rows climbed to from the training row with the largest value, on a Fourier grid."""
    S = np.asarray(to_numpy(S), dtype=float)
    out = base.Preimages.at_once(np.empty((len(S), rows.shape[1])))
    for start in range(0, len(S), 2**16):
        block = slice(start, start + 2**16)
        T = base.with_mean(S[block])
        parts = (T[i : i + 2048] @ anchors.T for i in range(0, len(T), 2048))
        nearest = np.concatenate([np.argmax(part, axis=1) for part in parts])
        result = climb(form, T, rows[nearest], *limits)
        out.points[block], _, out.converged[block], out.n_iter[block] = result
    return out


def climb(form, W, start, tol, reach, max_iter):
    """Ascent of a form from `start` (q, d) for weights W (q, m), all rows at once.

    No step is longer than `reach`, none that lowers the value is taken, and rows leave when
    their next step is below `tol`.

    Returns
    -------
    rows (q, d), values (q,), converged (q,), iterations (q,)
    """
    xp, q, place = array_namespace(start), start.shape[0], placement_of(start)
    best, values = xp.asarray(start, copy=True), xp.empty(q, dtype=start.dtype, **place)
    converged, n_iter = xp.zeros(q, dtype=xp.bool, **place), xp.full(q, max_iter, **place)
    active, Z = xp.arange(q, **place), start
    # Relative rounding by which a value may fall and still count as equal.
    slack = 4 * float(np.finfo(dtype_name(start.dtype)).eps)
    value, _, step = form.evaluate(Z, W)
    step = shorten(step, reach)
    t = xp.full(q, form.damping, dtype=start.dtype, **place)
    for i in range(max_iter):
        done = t * xp.linalg.vector_norm(step, axis=1) <= tol
        if done.any():
            rows = active[done]
            best[rows], values[rows], converged[rows], n_iter[rows] = Z[done], value[done], True, i
            active, Z, W, value, step, t = (A[~done] for A in (active, Z, W, value, step, t))
        if not len(active):
            break
        trial = Z + t[:, None] * step
        new, size, new_step = form.evaluate(trial, W)
        better = new >= value - slack * size
        Z = xp.where(better[:, None], trial, Z)
        value = xp.where(better, new, value)
        step = xp.where(better[:, None], shorten(new_step, reach), step)
        t = xp.asarray(xp.where(better, form.damping, t / 2), dtype=t.dtype)
    best[active], values[active] = Z, value
    return best, values, converged, n_iter


def shorten(step, reach):
    """Steps (q, d) no longer than `reach`."""
    xp = array_namespace(step)
    length = xp.linalg.vector_norm(step, axis=1, keepdims=True)
    return step * xp.clip(reach / xp.clip(length, base.tiny(step), None), None, 1.0)


class Form(ABC):
    """The function to climb for one kernel and one set of points (m, d), `points` shifted.

    Everything is where the points are and in their library.
    """

    #: Share of the step to try first.
    damping = 1.0
    #: Whether points are taken from their mean, as distances allow.
    about_mean = True
    #: Arrays of the size of the weights that are held at once.
    live = 8

    def __init__(self, kernel, X, dtype):
        xp = array_namespace(X)
        mean = xp.mean(X, axis=0, dtype=xp.float64)
        self.kernel, self.origin = kernel, mean if self.about_mean else xp.zeros_like(mean)
        self.points = xp.asarray(X - self.origin, dtype=dtype_in(xp, dtype))

    def polish(self, Z, W):
        """Move rows Z from where the ascent ended to an optimum; by default they are at one."""
        return Z

    @abstractmethod
    def evaluate(self, Z, W):
        """Values (q,), their size before cancellation (q,) and steps (q, d) at rows Z."""


class DistanceForm(Form):
    """Kernels of |x - z|: any class that gives kernel values and slopes."""

    def __init__(self, kernel, X, dtype):
        super().__init__(kernel, X, dtype)
        # -gamma |x - z|^2 is one product of rows with two more columns, as kernels do it.
        norms = row_squares(self.points)
        one = array_namespace(norms).ones_like(norms)
        self.right = append_columns(self.points, one, -kernel.gamma * norms)

    def evaluate(self, Z, W):
        """f = sum w k; the step goes to the mean of the points with weights w c."""
        xp, (K, C) = array_namespace(Z), self.profile(Z)
        C *= W
        value, size = total, magnitude = C.sum(axis=1), abs(C).sum(axis=1)
        if K is not None:
            K *= W
            value, size = K.sum(axis=1), abs(K).sum(axis=1)
        step = C @ self.points - total[:, None] * Z
        # Few landmarks have large weights of both signs: what counts is then the slope of one.
        one = xp.clip(magnitude, None, 1.0)
        by = xp.where(total > CANCELLED * one, total, one)
        step /= xp.clip(by, base.tiny(Z), None)[:, None]
        return value, size, step

    def profile(self, Z):
        """Kernel values and slopes, (q, m) each; None for the values where the two are equal."""
        kernel, xp, gamma = self.kernel, array_namespace(Z), self.kernel.gamma
        norms = -gamma * row_squares(Z)
        T = append_columns(2 * gamma * Z, norms, xp.ones_like(norms)) @ self.right.T
        T = xp.clip(T, None, 0.0, out=T)
        if type(kernel).slope is type(kernel).finish:
            return None, kernel.finish(T)
        # At a cusp the slope has no bound.
        apart = xp.clip(T, None, NEAREST**2 * xp.min(T, axis=1, keepdims=True) - base.tiny(T))
        return kernel.finish(T), kernel.slope(apart)


class LaplacianForm(DistanceForm):
    """exp(-gamma |x - z|_1): the slope of the Euclidean form with the L1 distance, a heuristic.

    The true gradient needs (q, m, d) numbers; this direction needs a GEMM, and only steps that
    raise the true value are taken. It does not end at an optimum: `polish` continues from there.
    """

    def profile(self, Z):
        xp = array_namespace(Z)
        shape = (Z.shape[0], self.points.shape[0])
        K = xp.empty(shape, dtype=Z.dtype, **placement_of(Z))
        self.kernel.fill(Z, self.points, K)
        distance = -xp.log(xp.clip(K, base.tiny(K), None)) / self.kernel.gamma
        floor = NEAREST * xp.max(distance, axis=1, keepdims=True)
        return K, K / xp.maximum(distance, floor)

    def polish(self, Z, W):
        """Rows Z moved along one column after the other to the best of the points' values there.

        Along a column f is a sum of a_i exp(-gamma |x_i - t|): convex between the values of the
        points where all a_i are positive, so that its maxima are at these values. All of
        them are compared at once by two running sums. A column that gains nothing stays.
        """
        xp, gamma = array_namespace(Z), self.kernel.gamma
        K, _ = self.profile(Z)
        A = W * K
        for _ in range(8):
            moved = False
            for k in range(Z.shape[1]):
                column = self.points[:, k]
                order = xp.argsort(column)
                t = column[order]
                spread = gamma * (t - t[0])
                if float(spread[-1]) > 200.0:  # running sums would lose all digits
                    continue
                B = A * xp.exp(gamma * xp.abs(column[None, :] - Z[:, k][:, None]))
                B = B[:, order]
                up, down = xp.exp(spread), xp.exp(-spread)
                left = running_sums(B * up) * down
                right = xp.flip(running_sums(xp.flip(B * down, axis=1)), axis=1) * up
                values = left + right - B
                best = xp.argmax(values, axis=1)
                now = A.sum(axis=1)
                highest = xp.max(values, axis=1)
                better = highest > now + 1e-9 * xp.abs(now)
                moved = moved or bool(better.any())
                Z[:, k] = xp.where(better, t[best], Z[:, k])
                far = xp.exp(-gamma * xp.abs(column[None, :] - Z[:, k][:, None]))
                A = xp.empty_like(B)
                A[:, order] = B * far[:, order]
            if not moved:
                break
        return Z


class PolynomialForm(Form):
    """(gamma x.z + c)^p, damped: the bare map oscillates from p = 3 on."""

    damping, about_mean = 0.5, False

    def evaluate(self, Z, W):
        """f = 2 sum w k - k(z, z)."""
        gamma, constant, p = self.kernel.gamma, self.kernel.coef0, float(self.kernel.degree)
        xp = array_namespace(Z)
        product = Z @ self.points.T
        product *= gamma
        product += constant
        square = gamma * row_squares(Z) + constant
        C = power(xp.asarray(product, copy=True), p - 1)
        C *= W
        product *= C
        value = 2 * product.sum(axis=1) - square**p
        size = 2 * abs(product).sum(axis=1) + abs(square**p)
        by = xp.clip(square ** (p - 1), base.tiny(Z), None)
        return value, size, C @ self.points / by[:, None] - Z


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
        step = parts[:, 1:].sum(axis=2) / np.maximum(2 * self.gamma * by, base.tiny(Z))[:, None]
        # Values outside the box are not reliable: such a step is halved.
        return np.where((inside == Z).all(axis=1), value, -np.inf), size, step


def form_of(kernel) -> Any:
    """The class of a kernel's form, None where none is known."""
    if isinstance(kernel, Polynomial):
        return PolynomialForm if kernel.definite and kernel.degree >= 1 else None
    if isinstance(kernel, Laplacian):
        return LaplacianForm
    if not isinstance(kernel, StationaryKernel) or type(kernel).slope is FactoredKernel.slope:
        return None
    return DistanceForm
