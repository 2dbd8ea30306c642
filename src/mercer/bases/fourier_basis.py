"""The features of a frequency grid: moments, scores and gradients by nonuniform transforms."""

from collections.abc import Callable
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np

from ..compute import TiledEngine, array_namespace, format_bytes, is_sparse, on_device_of, to_numpy
from ..compute.arrays import Array, is_on_device
from ..compute.nonuniform import (
    LEAST_PRECISION,
    evaluate,
    frequency_sums,
    measured_error,
    transforms_on_devices,
)
from ..kernels import Kernel
from .base import Basis
from .fourier_grid import (
    Frequencies,
    kernel_profile,
)
from .trigonometric import UNIT, TrigonometricMoments

# Precision of the transforms as a share of the kernel's own.
TRANSFORM_SHARE = 0.01
# Rows of one transform: enough to outweigh its grid, few enough to stay in a small budget.
LEAST_ROWS, MOST_ROWS = 2**15, 2**19
# Bytes that a transform holds for a row (angles, strengths, sorting) and for a frequency (its fine
# grid has 2^d points).
ROW_BYTES = 96
# Share of the budget that grids may take; the rest is for rows.
GRID_SHARE = 0.75
# Columns of scores that one transform makes, two real ones in a complex.
COLUMNS_AT_ONCE = 16
# Rows of a box are compared with it up to this share of its side: rounding of its ends.
BOX_ROUNDING = 1e-12


class FourierBasis(Basis):
    """The features of a frequency grid: G = I.

    Parameters
    ----------
    kernel : Kernel
    frequencies : Frequencies
    engine : TiledEngine
    tol : float
        Precision of the kernel, from which that of the transforms follows.
    """

    noun = "Fourier features"

    def __init__(self, kernel: Kernel, frequencies: Frequencies, engine: TiledEngine, tol: float):
        self.kernel, self.frequencies, self.engine, self.tol = kernel, frequencies, engine, tol
        self.size = frequencies.size

    @cached_property
    def amplitudes(self) -> np.ndarray:
        """sqrt(w_0), then sqrt(2 w_j) of the cosines and of the sines, (m,)."""
        w = self.frequencies.weights
        return np.sqrt(np.concatenate([w[:1], 2 * w[1:], 2 * w[1:]]))

    @property
    def precision_of_transforms(self) -> float:
        """The precision that transforms are asked for."""
        return max(TRANSFORM_SHARE * self.tol, LEAST_PRECISION)

    @cached_property
    def transform_error(self) -> float:
        """Bound on the error of one exponential in the transforms of `moments`."""
        error = measured_error(self.moment_modes, self.precision_of_transforms)
        if self.engine.where != "cpu" and transforms_on_devices():
            place = self.engine.asarray
            there = measured_error(self.moment_modes, self.precision_of_transforms, place)
            error = max(error, there)
        return error

    @property
    def modes(self) -> tuple[int, ...]:
        """Sides of the grid of frequencies."""
        return tuple(int(2 * m + 1) for m in self.frequencies.reach)

    @property
    def moment_modes(self) -> tuple[int, ...]:
        """Sides of the grid of differences of frequencies."""
        return tuple(int(4 * m + 1) for m in self.frequencies.reach)

    def moved(self, engine: TiledEngine) -> "FourierBasis":
        """The same basis where another engine works; what was measured goes with it."""
        _ = self.transform_error
        basis = copy(self)
        basis.engine = engine
        return basis

    def moments(self, X: Array, weights: Array | None = None) -> TrigonometricMoments:
        """The trigonometric moments of the rows of X, weighted or not, in one pass."""
        X, modes = self.engine.place(X), self.moment_modes
        rows = self.transform_rows(X.shape[0], int(np.prod(modes)), 1)

        def of_block(block):
            angles = self.angles(dense_rows(X[block]))
            self.check_angles(angles)
            n, w = angles.shape[0], None if weights is None else weights[block]
            sums = frequency_sums(angles, modes, self.precision_of_transforms, w)
            count = float(n if w is None else w.sum())
            # At worst all rows of a block were added one by one to one number.
            return TrigonometricMoments(count, sums, count * (self.transform_error + UNIT * n))

        return self.engine.sum_rows(of_block, X.shape[0], rows)

    def block_products(
        self, X: Array, W: Array = None, dtype: Any = None
    ) -> Callable[[slice], Array]:
        """psi of a block of rows, times W: by fast transforms of all columns of W."""
        X = self.engine.place(X)
        if W is None:
            return lambda block: self.features(X[block])
        grids = self.coefficients(to_numpy(W))

        def products(block):
            angles, inside = self.placed(X[block])
            # Two real functions at once, as the real and the imaginary part of one.
            parts = [
                evaluate(angles, grids[i : i + COLUMNS_AT_ONCE], self.precision_of_transforms)
                for i in range(0, len(grids), COLUMNS_AT_ONCE)
            ]
            out = split_pairs(parts, W.shape[1])
            return on_device_of(out if inside is None else out * on_device_of(inside, out), X)

        return products

    def project(self, X: Array, W: Array) -> Array:
        """Inner products of phi(X) with the sums W, (n, b)."""
        X = self.engine.place(X)
        n, b = X.shape[0], W.shape[1]
        out = self.engine.empty((n, b))
        rows = self.transform_rows(n, int(np.prod(self.modes)), min(b, COLUMNS_AT_ONCE))
        self.engine.map_rows(self.block_products(X, W), n, rows, out)
        return out

    def coefficients(self, W: Array) -> np.ndarray:
        """Weights over the features as Fourier coefficients on the grid, ((b + 1) // 2, *modes).

        Columns 2 k and 2 k + 1 are the real and the imaginary part of the k-th function.
        """
        J, reach = self.frequencies.index, self.frequencies.reach
        scaled = self.amplitudes[:, None] * np.asarray(W, dtype=float)
        if scaled.shape[1] % 2:
            scaled = np.hstack([scaled, np.zeros((self.size, 1))])
        constant, cosines, sines = np.split(scaled, [1, 1 + len(J)])
        half = ((cosines - 1j * sines) / 2).T
        grid = np.zeros((scaled.shape[1] // 2, *self.modes), complex)
        at = tuple((J + reach).T)
        mirrored = tuple((reach - J).T)
        grid[(slice(None), *at)] = half[::2] + 1j * half[1::2]
        grid[(slice(None), *mirrored)] = half[::2].conj() + 1j * half[1::2].conj()
        grid[(slice(None), *reach)] = constant[0, ::2] + 1j * constant[0, 1::2]
        return grid

    def gradients(self, X: Array, W: Array) -> Any:
        """By one transform for each column of the data."""
        parts = [self.project(X, slopes) for slopes in self.slope_weights(to_numpy(W))]
        return array_namespace(parts[0]).stack(parts, axis=1)

    def slope_weights(self, W: Array) -> list[np.ndarray]:
        """Weights of the derivatives along every column of the functions with weights W."""
        M = len(self.frequencies.index)
        rates = 2 * np.pi * self.frequencies.spacing * self.frequencies.index
        zero, cosines, sines = np.zeros_like(W[:1]), W[1 : 1 + M], W[1 + M :]
        return [
            np.vstack([zero, rate[:, None] * sines, -rate[:, None] * cosines]) for rate in rates.T
        ]

    def features(self, X: Array) -> np.ndarray:
        """psi of rows, (n, m): n m cosines and sines, for few rows."""
        angles, inside = self.placed(X)
        angles = to_numpy(angles) @ self.frequencies.index.T
        Y = np.empty((angles.shape[0], self.size))
        Y[:, 0] = 1.0
        Y[:, 1 : 1 + angles.shape[1]], Y[:, 1 + angles.shape[1] :] = np.cos(angles), np.sin(angles)
        Y *= self.amplitudes
        return on_device_of(Y if inside is None else Y * to_numpy(inside), X)

    def placed(self, X: Array) -> Array:
        """The angles of new rows, and 0 for those too far to have a kernel with the fit's, else 1.

        The second, (n, 1), is None where none are; rows that the grid does not serve are an error.
        """
        X, grid = dense_rows(X), self.frequencies
        if not grid.room:
            angles = self.angles(X)
            self.check_angles(angles)
            return angles, None
        low, high = (on_device_of(grid.box[:, i] + (-1, 1)[i] * grid.room, X) for i in (0, 1))
        inside = ((low <= X) & (high >= X)).all(axis=1)[:, None]
        xp = array_namespace(X)
        clipped = xp.minimum(xp.maximum(xp.asarray(X, dtype=xp.float64), low), high)
        return self.angles(clipped), xp.asarray(inside, dtype=xp.float64)

    def angles(self, X: Array) -> Array:
        """2 pi h (x - c), within (-pi, pi) for rows within the box."""
        grid = self.frequencies
        if not (is_on_device(X) and transforms_on_devices()):
            # The difference is taken in double precision, before anything is rounded. Each column
            # in one piece: that is how transforms take them.
            out = np.empty((len(grid.center), X.shape[0]))
            np.subtract(to_numpy(X).T, grid.center[:, None], out=out)
            out *= (2 * np.pi * grid.spacing)[:, None]
            return out.T
        center, scale = (on_device_of(a, X) for a in (grid.center, 2 * np.pi * grid.spacing))
        return (X.double() - center) * scale

    def check_angles(self, angles: Array) -> None:
        """Raise ValueError for rows outside of the box, where the series is not the kernel."""
        grid, box = self.frequencies, self.frequencies.box
        found = row_range(angles) / (2 * np.pi * grid.spacing)[:, None] + grid.center[:, None]
        slack = BOX_ROUNDING * np.abs(box).max(axis=1)
        bad = (found[:, 0] < box[:, 0] - slack) | (found[:, 1] > box[:, 1] + slack)
        if bad.any():
            a = int(np.argmax(bad))
            raise ValueError(
                f"Column {a} has values from {found[a, 0]:.6g} to {found[a, 1]:.6g}, and the "
                f"Fourier grid of this model was made for {box[a, 0]:.6g} to {box[a, 1]:.6g}: "
                "outside of that it would give wrong scores. Fit with "
                "FourierGrid(box=[(low, high), ...]) or margin='all', or leave those rows out."
            )

    def transform_rows(self, n: int, modes: int, columns: int) -> int:
        """Rows of one transform, within the budget of a thread."""
        need = transform_bytes(modes, len(self.frequencies.spacing), columns)
        rows = int((self.engine.memory / self.engine.threads - need) // (ROW_BYTES + 32 * columns))
        if rows < 1:
            need = int(self.engine.threads * need / GRID_SHARE)
            raise ValueError(
                f"memory={format_bytes(self.engine.memory)} cannot hold a Fourier grid of "
                f"{modes:,} frequencies. Give at least {format_bytes(need)}, or take "
                "basis='landmarks'."
            )
        # Every thread gets some, and none so few that its grid costs more than its rows.
        fair, least = -(-n // (2 * self.engine.threads)), max(LEAST_ROWS, modes)
        return max(1, min(rows, max(least, min(fair, MOST_ROWS))))

    def precision(self, X: Array) -> Any:
        """Double: angles are many times 2 pi."""
        return np.dtype(np.float64)

    def stream_width(self) -> int:
        """Numbers alive for one row."""
        return 4 * self.size

    def whitener(self, dtype: Any) -> Array:
        """The features are orthonormal as they are."""
        return None

    def gram(self, W: Array) -> Array:
        """W itself."""
        return W

    def norms(self, X: Array) -> Array:
        """k(x, x), as the kernel has it."""
        return self.kernel.diag(self.engine.place(X))

    @property
    def top(self) -> float:
        """k(x, x)."""
        return float(kernel_profile(self.kernel, np.zeros(1))[0])


class SummedBasis(FourierBasis):
    """A Fourier basis for rows whose moments are known."""

    def __init__(self, kernel, frequencies, engine, tol, sums: TrigonometricMoments):
        super().__init__(kernel, frequencies, engine, tol)
        self.sums = sums

    def moments(self, X, weights=None):
        """Those known; weighted rows are summed."""
        return self.sums if weights is None else super().moments(X, weights)


def transform_bytes(modes: int, d: int, columns: int) -> int:
    """Bytes of a transform's fine grid, of the coarse ones of all columns, and of a running sum."""
    return 16 * modes * (2**d + columns + 2)


def row_range(X) -> np.ndarray:
    """Least and largest value of every column, in double precision, (d, 2)."""
    if is_sparse(X):
        low, high = X.min(axis=0).toarray().ravel(), X.max(axis=0).toarray().ravel()
        return np.stack([low, high], axis=1).astype(float)
    if not is_on_device(X):
        X = to_numpy(X)
    xp = array_namespace(X)
    if xp is np:
        # Column by column: NumPy's own way across rows is many times slower.
        low, high = (np.array([end(column) for column in X.T]) for end in (np.min, np.max))
        return np.stack([low, high], axis=1).astype(float)
    low, high = (to_numpy(end) for end in (xp.min(X, axis=0), xp.max(X, axis=0)))
    return np.stack([low, high], axis=1).astype(float)


def dense_rows(X):
    """Rows as an array."""
    return X.toarray() if is_sparse(X) else X


def split_pairs(parts, b: int):
    """Real columns from complex ones that hold two each, (n, b)."""
    if isinstance(parts[0], np.ndarray):
        both = np.concatenate(parts, axis=1)
        out = np.empty((both.shape[0], 2 * both.shape[1]))
        out[:, ::2], out[:, 1::2] = both.real, both.imag
        return out[:, :b]
    import torch

    pairs = torch.view_as_real(torch.cat(parts, dim=1).contiguous())
    return pairs.reshape(pairs.shape[0], -1)[:, :b]
