"""An equispaced grid of Fourier frequencies as the basis, for up to three columns.

A kernel of the distance is a short Fourier series on the box that the rows lie in, to any
precision (Greengard, Rachh & Barnett 2022). Its terms are explicit features

    psi(x) = [sqrt(w_0), sqrt(2 w_j) cos(2 pi h j.(x - c)), sqrt(2 w_j) sin(2 pi h j.(x - c))]

with psi(x) . psi(z) = k(x, z) up to `tol`: the same real features for rows of any number, so the
cost of n rows is one nonuniform fast Fourier transform and all else is independent of n.

Transforms are made by finufft in main memory and by cufinufft on a GPU (Barnett, Magland & af
Klinteberg 2019). Angles are in radians within [-pi, pi]; grids hold the integer frequencies -k .. k
of every coordinate, in rising order.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._packages import has, needed
from ..compute import TiledEngine, array_namespace, is_sparse, on_device_of, to_numpy
from ..compute.arrays import Array, is_on_device, placement_of
from ..compute.engine import too_little
from ..kernels import Kernel
from ..kernels.base import dense_rows
from . import fourier_grid
from .base import Basis, BasisRecipe
from .fourier_grid import LARGEST_TOL, LEAST_TOL, Frequencies, choose_frequencies, predicted_size

#: Columns at most: the grid has (extent / width)^d frequencies.
MOST_COLUMNS = 3
# Grids of one column are made for this share of the tolerance, if that takes at most FEW_MORE times
# the frequencies.
FINER, FEW_MORE = 1e-2, 1.5
# Most frequencies: so many, which take seconds, or so many for each row if that is more. Without a
# limit a few rows with large numbers would take hours; basis="points" is fast and exact for them.
FREE_FREQUENCIES, ROW_FREQUENCIES = 100_000, 100
# Precision of the transforms as a share of the kernel's own.
TRANSFORM_SHARE = 0.01
# Rows of one transform: enough to outweigh its grid, few enough to stay in a small budget.
LEAST_ROWS, MOST_ROWS = 2**15, 2**19
# Bytes that a transform holds for a row (angles, strengths, sorting) and for a frequency (its fine
# grid has 2^d points).
ROW_BYTES = 96
# Share of the budget that grids may take; the rest is for rows.
GRID_SHARE = 0.75
# Complex columns that one transform makes, each of which holds two columns of scores.
COLUMNS_AT_ONCE = 16
# Rows may lie outside the box by this share of its largest number: rounding of its ends.
BOX_ROUNDING = 1e-12
# Rounding of one sum in double precision.
UNIT = np.finfo(float).eps / 2
# Requests below this gain nothing in double precision.
LEAST_PRECISION = 1e-14
# The oversampling of the fine grid: fixed, so that the error that was measured in one coordinate
# is that of the others.
OVERSAMPLING = 2.0
# Points and frequencies at which the error of a transform is measured.
PROBES, PROBED_MODES = 400, 64
# Safety factor on the measured error: the points are not the worst ones.
PROBE_SAFETY = 2.0


@dataclass(eq=False, repr=False)
class FourierGrid(BasisRecipe):
    """A basis of Fourier frequencies on an equispaced grid: exact to `tol`, up to three columns.

    For maps, time series, colors and point clouds: one to three columns and any number of rows.
    The kernel must be a smooth function of the distance: Gaussian, Matern, rational quadratic, for
    one column also Laplacian. Needs the extra ``fourier``.

    Parameters
    ----------
    tol : float
        Largest error of the kernel, as a share of k(x, x). Eigenvalues over n rows are then right
        to n `tol`, and the certificate says so. Spacing and number of frequencies follow from it.
        Smooth kernels of one column get a hundredth of it, for a few frequencies more.
    margin : float or "all"
        How far beyond the rows of the fit new rows may lie, as a share of the range of each column;
        rows beyond that are an error. "all" serves rows anywhere, with a larger grid: so far beyond
        the rows of the fit that the kernel with each of them is below `tol`, and zeros from there
        on.
    box : array-like of shape (n_features, 2) or None
        Least and largest value of every column, where that is known before the rows are seen, as
        of a stream. None for the range of the rows of the fit, widened by `margin`.
    """

    most_columns = MOST_COLUMNS

    tol: float = 1e-9
    margin: Any = 0.1
    box: Any = None

    @property
    def needs_range(self) -> bool:  # type: ignore[override]
        """True unless a box is given."""
        return self.box is None

    def with_range(self, box: Any) -> "FourierGrid":
        """The grid for these rows and the margin around them."""
        return FourierGrid(self.tol, self.margin, self.widened(box))

    def build(
        self, kernel: Kernel, X: Array, engine: Any, rng: Any, n_components: int | None = None
    ) -> Basis:
        """Choose the grid for the box of X."""
        box, n = self.box_of(X), X.shape[0]
        self.check(kernel, len(box))
        most = most_frequencies(engine, len(box))
        if n is not None:
            most = min(most, max(FREE_FREQUENCIES, ROW_FREQUENCIES * n))
        tol, finer = self.tol, max(FINER * self.tol, LEAST_TOL)
        if len(box) == 1 and tol > finer:
            # Eigenvalues fall fastest in one column, and directions are right to tol n over theirs:
            # less than `tol` if that takes only a few more frequencies.
            extent = box[:, 1] - box[:, 0]
            asked, taken = (predicted_size(kernel, extent, one) for one in (tol, finer))
            tol = finer if taken <= FEW_MORE * asked else tol
        (frequencies,) = choose_frequencies([kernel], box, tol, most, self.margin == "all")
        return FourierBasis(kernel, frequencies, engine, tol)

    def box_of(self, X: Array) -> np.ndarray:
        """The box given, or that of the rows of X with the margin, (d, 2)."""
        if self.box is None:
            return self.widened(row_range(X))
        box, d = np.asarray(self.box, dtype=float), X.shape[1]
        if box.shape != (d, 2) or not np.isfinite(box).all() or np.any(box[:, 1] < box[:, 0]):
            raise ValueError(
                f"FourierGrid: box={self.box!r} must be the least and the largest value of each "
                f"of the {d} columns, as [(0.0, 1.0), ...]."
            )
        return box

    def widened(self, box: Any) -> np.ndarray:
        """A range of rows with the margin on both sides."""
        room = (0.0 if self.margin == "all" else self.margin) * (box[:, 1] - box[:, 0])
        return np.stack([box[:, 0] - room, box[:, 1] + room], axis=1)

    def check(self, kernel: Kernel, d: int) -> None:
        """Raise ValueError or ImportError where no grid can serve, and say what can."""
        if not LEAST_TOL <= self.tol <= LARGEST_TOL:
            raise ValueError(
                f"FourierGrid: tol={self.tol!r} must be between {LEAST_TOL} and {LARGEST_TOL}."
            )
        number = isinstance(self.margin, int | float)
        if self.margin != "all" and not (number and 0 <= self.margin < np.inf):
            raise ValueError(
                f"FourierGrid: margin={self.margin!r} must be a number that is not negative, such "
                "as 0.1, or 'all'."
            )
        reason = why_not(kernel, d)
        if reason:
            raise ValueError(f"{reason} Take basis='landmarks'.")
        needed("finufft", "fourier", "A Fourier grid")


@dataclass(eq=False, repr=False)
class SharedGrid(BasisRecipe):
    """Grids of several kernels for the same rows, whose moments were summed in one pass.

    For searches over widths: every fit after the first pass is independent of the number of rows.

    Parameters
    ----------
    bases : list of FourierBasis
        On one spacing.
    sums : TrigonometricMoments
        Of the rows, for the widest of them.
    """

    bases: Any
    sums: Any

    @classmethod
    def of(cls, grid: FourierGrid, kernels, X, engine) -> "SharedGrid":
        """A basis for each kernel, all on one spacing, and one pass over the rows of X."""
        box = grid.box_of(X)
        for kernel in kernels:
            grid.check(kernel, len(box))
        most, everywhere = most_frequencies(engine, len(box)), grid.margin == "all"
        chosen = choose_frequencies(kernels, box, grid.tol, most, everywhere)
        pairs = zip(kernels, chosen, strict=True)
        bases = [FourierBasis(kernel, one, engine, grid.tol) for kernel, one in pairs]
        return cls(bases, max(bases, key=lambda basis: basis.size).moments(X))

    def build(self, kernel, X, engine, rng, n_components=None):
        """The basis of one of the kernels, with the moments of the rows."""
        basis = next(b for b in self.bases if repr(b.kernel) == repr(kernel))
        sums = self.sums.trimmed(basis.frequencies.reach)
        return FourierBasis(basis.kernel, basis.frequencies, engine, basis.tol, sums)


@dataclass(frozen=True)
class TrigonometricMoments:
    """t_q = sum of exp(-2 pi i h q.(x - c)) over rows x, for |q_a| <= 2 m_a: two of them add up.

    All that the Fourier grid needs to know of the rows, whatever their number.

    Attributes
    ----------
    count : float
        Number of rows, or their weight.
    sums : complex array of shape (4 m_1 + 1, ..., 4 m_d + 1)
        t, with t_0 in the middle.
    error : float
        Bound on the error of any t_q: of the transforms and of the sums over rows.
    """

    count: float
    sums: np.ndarray
    error: float

    def __add__(self, other: "TrigonometricMoments") -> "TrigonometricMoments":
        """Those of both sets of rows together."""
        count = self.count + other.count
        error = self.error + other.error + UNIT * count
        return TrigonometricMoments(count, self.sums + other.sums, error)

    def scaled(self, factor: float) -> "TrigonometricMoments":
        """The same rows with less weight, for data that drift."""
        error = factor * (self.error + UNIT * self.count)
        return TrigonometricMoments(self.count * factor, self.sums * factor, error)

    def __sizeof__(self):
        # Dask's scheduler reads the size before it moves an object.
        return object.__sizeof__(self) + self.sums.nbytes

    def at(self, q: Array) -> np.ndarray:
        """t at frequencies q, (..., d)."""
        middle = (np.array(self.sums.shape) - 1) // 2
        return self.sums[tuple(np.moveaxis(q + middle, -1, 0))]

    def trimmed(self, reach: Any) -> "TrigonometricMoments":
        """The part that a grid of smaller reach m_a needs."""
        middle = (np.array(self.sums.shape) - 1) // 2
        window = tuple(slice(c - 2 * m, c + 2 * m + 1) for c, m in zip(middle, reach, strict=True))
        return TrigonometricMoments(self.count, self.sums[window], self.error)


class FourierBasis(Basis):
    """The features of a frequency grid: G = I.

    Parameters
    ----------
    kernel : Kernel
    frequencies : Frequencies
    engine : TiledEngine
    tol : float
        Precision of the kernel, from which that of the transforms follows.
    sums : TrigonometricMoments or None
        Of the rows of a fit, where they are known.
    """

    noun = "Fourier features"

    def __init__(
        self, kernel: Kernel, frequencies: Frequencies, engine: Any, tol: float, sums: Any = None
    ):
        self.kernel, self.frequencies, self.engine, self.tol = kernel, frequencies, engine, tol
        self.size, self.sums = frequencies.size, sums

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
        there = self.engine.where != "cpu" and has("cufinufft")
        places = [np.asarray, self.engine.asarray] if there else [np.asarray]
        wanted = self.moment_modes, self.precision_of_transforms
        return max(measured_error(*wanted, place) for place in places)

    @property
    def modes(self) -> tuple[int, ...]:
        """Sides of the grid of frequencies."""
        return tuple(int(2 * m + 1) for m in self.frequencies.reach)

    @property
    def moment_modes(self) -> tuple[int, ...]:
        """Sides of the grid of differences of frequencies."""
        return tuple(int(4 * m + 1) for m in self.frequencies.reach)

    def moved(self, engine: TiledEngine) -> Any:
        """The same basis for another engine, with the transform error that was measured here."""
        _ = self.transform_error
        return super().moved(engine)

    def moments(self, X: Array, weights: Array | None = None) -> TrigonometricMoments:
        """The trigonometric moments of the rows of X, weighted or not, in one pass."""
        if self.sums is not None and weights is None:
            return self.sums
        X, modes = self.engine.place(X), self.moment_modes
        rows = self.transform_rows(X.shape[0], int(np.prod(modes)), 1)

        def of_block(block):
            angles = self.angles(dense_rows(X[block]))
            n, w = angles.shape[0], None if weights is None else weights[block]
            sums = frequency_sums(angles, modes, self.precision_of_transforms, w)
            count = float(n if w is None else w.sum())
            # At worst all rows of a block were added one by one to one number.
            return TrigonometricMoments(count, sums, count * (self.transform_error + UNIT * n))

        return self.engine.sum_rows(of_block, X.shape[0], rows)

    def block_products(self, X: Array, W: Array = None, dtype: Any = None) -> Callable:
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

    def product_rows(self, X: Array, columns: int = 1) -> int:
        """See `Basis.product_rows`."""
        modes = int(np.prod(self.modes))
        return self.transform_rows(X.shape[0], modes, min(columns, COLUMNS_AT_ONCE))

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
        """The angles of new rows, and a factor, (n, 1): 0 for rows too far from those of the fit.

        The kernel with such rows is zero; the factor is 1 for all others. It is None if the grid
        has no room beyond its box, and rows outside are an error.
        """
        X, grid = dense_rows(X), self.frequencies
        if not grid.room:
            return self.angles(X), None
        low, high = (on_device_of(grid.box[:, i] + (-1, 1)[i] * grid.room, X) for i in (0, 1))
        inside = ((low <= X) & (high >= X)).all(axis=1)[:, None]
        xp = array_namespace(X)
        clipped = xp.minimum(xp.maximum(xp.asarray(X, dtype=xp.float64), low), high)
        return self.angles(clipped, checked=False), xp.asarray(inside, dtype=xp.float64)

    def angles(self, X: Array, checked: bool = True) -> Array:
        """2 pi h (x - c), within (-pi, pi) for rows within the box.

        Raises ValueError for rows outside of it, where the series is not the kernel.
        """
        grid, box = self.frequencies, self.frequencies.box
        scale = 2 * np.pi * grid.spacing
        if is_on_device(X) and has("cufinufft"):
            out = (X.double() - on_device_of(grid.center, X)) * on_device_of(scale, X)
        else:
            # The difference is taken in double precision, before anything is rounded. Transforms
            # need contiguous columns.
            columns = np.empty((len(grid.center), X.shape[0]))
            np.subtract(to_numpy(X).T, grid.center[:, None], out=columns)
            columns *= scale[:, None]
            out = columns.T
        if not checked:
            return out
        ranges = row_range(out) / scale[:, None] + grid.center[:, None]
        slack = BOX_ROUNDING * np.abs(box).max(axis=1)
        bad = (ranges[:, 0] < box[:, 0] - slack) | (ranges[:, 1] > box[:, 1] + slack)
        if bad.any():
            a = int(np.argmax(bad))
            raise ValueError(
                f"Column {a} has values from {ranges[a, 0]:.6g} to {ranges[a, 1]:.6g}, and the "
                f"Fourier grid of this model was made for {box[a, 0]:.6g} to {box[a, 1]:.6g}: "
                "scores outside that range would be wrong. Fit with "
                "FourierGrid(box=[(low, high), ...]) or margin='all', or leave those rows out."
            )
        return out

    def transform_rows(self, n: int, modes: int, columns: int) -> int:
        """Rows of one transform, within the budget of a thread."""
        need = transform_bytes(modes, len(self.frequencies.spacing), columns)
        rows = int((self.engine.memory / self.engine.threads - need) // (ROW_BYTES + 32 * columns))
        if rows < 1:
            need = int(self.engine.threads * need / GRID_SHARE)
            what = f"a Fourier grid of {modes:,} frequencies"
            raise too_little(self.engine.memory, need, what, "Or take basis='landmarks'. ")
        # Every thread gets rows, and enough of them that they cost more than its grid.
        fair, least = -(-n // (2 * self.engine.threads)), max(LEAST_ROWS, modes)
        return max(1, min(rows, max(least, min(fair, MOST_ROWS))))

    def precision(self, X: Array) -> Any:
        """Double: angles are many times 2 pi."""
        return np.dtype(np.float64)

    @property
    def top(self) -> float:
        """k(x, x)."""
        return float(fourier_grid.kernel_profile(self.kernel, np.zeros(1))[0])


def why_not(kernel, d: int) -> str:
    """A sentence that says why a kernel in d columns has no Fourier grid; empty if it has one."""
    if d > MOST_COLUMNS:
        return f"A Fourier grid serves up to {MOST_COLUMNS} columns, and there are {d}."
    if kernel.gamma == 0:
        return f"{kernel!r} is constant, and a Fourier grid needs one that falls with the distance."
    density = fourier_grid.density_at_zero(kernel, d)
    if density is None:
        return (
            f"{type(kernel).__name__} in {d} column{'s' * (d > 1)} has no known spectral density. "
            "A Fourier grid serves RBF, Matern, RationalQuadratic, Laplacian of one column, and "
            "kernels that define `spectral_density`."
        )
    if not np.isfinite(density).all():
        return (
            f"{kernel!r} falls too slowly for a Fourier grid in {d} columns: the integral of the "
            "kernel is infinite."
        )
    return ""


def most_frequencies(engine, d: int) -> int:
    """Frequencies whose grid of differences every thread can transform within the budget."""
    bytes_each = engine.threads * 2**d * transform_bytes(1, d, 1)
    # The last factor is the volume of a ball over that of its box.
    return int(GRID_SHARE * engine.memory / bytes_each * (1.0, np.pi / 4, np.pi / 6)[d - 1])


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
    else:
        low, high = (to_numpy(end) for end in (xp.min(X, axis=0), xp.max(X, axis=0)))
    return np.stack([low, high], axis=1).astype(float)


def split_pairs(parts, b: int):
    """Real columns from complex ones that hold two each, (n, b)."""
    xp = array_namespace(parts[0])
    whole = xp.concat(parts, axis=1)
    return xp.stack([xp.real(whole), xp.imag(whole)], axis=2).reshape(len(whole), -1)[:, :b]


def frequency_sums(angles, modes: tuple[int, ...], precision: float, weights=None) -> np.ndarray:
    """sum_i w_i exp(-1j q . angles_i) for all q of a grid of that many modes, (*modes)."""
    xp = array_namespace(angles)
    c = xp.ones(angles.shape[0], dtype=xp.complex128, **placement_of(angles))
    if weights is not None:
        c = c * on_device_of(to_numpy(weights), angles)
    return to_numpy(_transform(1, angles, c, modes, precision=precision, isign=-1))


def evaluate(angles, coefficients, precision: float):
    """sum_q c_q exp(1j q . angles_i) for all rows, (n, b), c of shape (b, *modes)."""
    c = on_device_of(np.ascontiguousarray(coefficients), angles)
    values = _transform(2, angles, c, precision=precision, isign=1)
    return values.reshape(coefficients.shape[0], -1).T


def _transform(kind: int, angles, *arguments, precision: float, isign: int):
    """The transform of a kind in as many dimensions as there are angles."""
    on_host = isinstance(angles, np.ndarray)
    name = "cufinufft" if is_on_device(angles) else "finufft"
    library = needed(name, "fourier", "A Fourier grid")
    # Each coordinate in one piece; one thread, since threads share out the blocks of rows.
    columns = [np.ascontiguousarray(x) if on_host else x.contiguous() for x in angles.T]
    options = {"eps": max(precision, LEAST_PRECISION), "isign": isign, "upsampfac": OVERSAMPLING}
    options |= {"nthreads": 1} if on_host else {}
    return vars(library)[f"nufft{len(columns)}d{kind}"](*columns, *arguments, **options)


def measured_error(counts: tuple[int, ...], precision: float, place=np.asarray) -> float:
    """Largest error of one exponential in a transform, over points and frequencies, with a margin.

    Transforms spread every coordinate on its own, so the errors of the coordinates multiply.
    `place` puts angles where the transforms are to be made.
    """
    factor = 1.0
    rng = np.random.default_rng(0)
    for count in counts:
        half = count // 2
        angles = rng.uniform(-np.pi, np.pi, (PROBES, 1))
        # The largest frequencies, which have the largest error, and some of the others.
        modes = np.unique(np.linspace(-half, half, min(count, PROBED_MODES)).round())
        one = np.zeros((modes.size, count), complex)
        one[np.arange(modes.size), (modes + half).astype(int)] = 1.0
        values = to_numpy(evaluate(place(angles), one, precision))
        error = np.abs(values - np.exp(1j * angles * modes)).max()
        factor *= 1.0 + PROBE_SAFETY * float(error)
    return factor - 1.0
