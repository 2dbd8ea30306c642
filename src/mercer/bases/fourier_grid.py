"""The grid of frequencies on which a kernel is a short Fourier series, and its certified error.

On lags x with |x_a| <= L_a the trapezoidal rule of spacing h_a = 1 / P_a makes two errors,

    sum_j w_j exp(2 pi i h j.x) = k(x) + alias(x) - cut(x),    w_j = prod(h) k^(h j)

    alias(x) = sum over q != 0 of k(x + q P)        Poisson's formula: copies of the kernel
    cut(x)   = the terms with |h j| > F, left out

A kernel that falls with the distance and is nowhere negative has 0 <= alias(x) <= A, the sum over
the nearest each copy can come, and |cut(x)| <= cut(0) = k(0) + alias(0) - sum_j w_j: not an
estimate, but what the weights themselves say. As matrices over n rows, cut is positive semidefinite
with norm at most n cut(0). Alias is not: its eigenvalues lie between -n A / 2 and n A, since it is
A / 2 everywhere, which is positive, and entries of at most A / 2 in size. So an eigenvalue of the
kernel matrix is at most n A below and n (cut(0) + A / 2) above that of the series. Both hold for
every such kernel; the bounds of Greengard, Rachh & Barnett (2022) for Gaussian and Matern kernels
come from the same sums.
"""

from dataclasses import dataclass
from itertools import product
from math import gamma as gamma_function
from math import prod
from typing import Annotated

import numpy as np

from ..kernels.base import DifferenceKernel

# Copies of the kernel that are summed one by one in each direction; the others by shells.
NEAR_COPIES = 2
# Shells that are summed one by one; then INTERVALS intervals, each GROWTH times the one before.
SHELLS, GROWTH, INTERVALS = 64, 2**0.125, 1200
# Steps of the search for the period; factor by which a radius grows that is too small, how often.
STEPS, WIDEN, MOST_WIDENINGS = 40, 1.02, 400
# Points of the integral that predicts the radius, and decades of frequency it covers.
RADII, DECADES = 4000, 14.0
# Rounding of the weights' sum and of the kernel's values, as a share of k(0).
WEIGHT_ROUNDING = 2e-15
# A grid of more frequencies than this is never built: it would take gigabytes.
MOST_FREQUENCIES = 20_000_000
# Tolerances that a grid can be made for.
LEAST_TOL, LARGEST_TOL = 1e-13, 0.1


@dataclass(frozen=True)
class Frequencies:
    """Equispaced frequencies of one half space within a ball, and the kernel's weights there.

    Attributes
    ----------
    box : array of shape (d, 2)
        The rows of a fit: least and largest value of every column.
    room : float
        How far beyond the box new rows may lie: 0, or so far that rows beyond have no kernel with
        any within the box.
    spacing : array of shape (d,)
        h, in cycles per unit.
    index : int array of shape (M, d)
        The frequencies j, without zero and with one of j and -j.
    weights : array of shape (1 + M,)
        w, that of zero first.
    alias, cut : float
        What eigenvalues over n rows are at most too large and too small by, divided by n; the
        error of one value of the kernel is at most their sum.
    """

    box: Annotated[np.ndarray, "d 2"]
    room: float
    spacing: Annotated[np.ndarray, "d"]
    index: Annotated[np.ndarray, "M d int"]
    weights: Annotated[np.ndarray, "1+M"]
    alias: float
    cut: float

    @property
    def center(self) -> np.ndarray:
        """The middle of the box, from which rows are measured, (d,)."""
        return self.box.mean(axis=1)

    @property
    def reach(self) -> np.ndarray:
        """Largest index in every coordinate, (d,)."""
        return np.abs(self.index).max(axis=0, initial=0)

    @property
    def size(self) -> int:
        """Number of real features: a constant, cosines and sines."""
        return 1 + 2 * self.index.shape[0]


def choose_frequencies(
    kernels, box, tol: float, most: int = MOST_FREQUENCIES, everywhere: bool = False
) -> list[Frequencies]:
    """The fewest frequencies that give each kernel to `tol` times k(0) on all lags of the box.

    Those of several kernels have one spacing. With `everywhere` also on all lags from the box to
    rows beyond it that have a kernel with it.

    Raises
    ------
    ValueError
        Where more than `most` would be needed.
    """
    box = np.asarray(box, dtype=float)
    extent, grids = box[:, 1] - box[:, 0], []
    rooms = [room_beyond(kernel, extent, tol) if everywhere else 0.0 for kernel in kernels]
    wanted = list(zip(kernels, rooms, strict=True))
    spacing = np.min([choose_spacing(k, extent + room, tol) for k, room in wanted], axis=0)
    for kernel, room in wanted:
        radius = predicted_radius(kernel, extent.size, tol)
        check_count(kernel, extent + room, tol, predicted_count(radius, spacing), most)
        grids.append(fill_ball(kernel, box, room, spacing, radius, tol))
    return grids


def fill_ball(kernel, box, room: float, spacing, radius: float, tol: float) -> Frequencies:
    """The frequencies of a ball that is widened until what it leaves out is below `tol`."""
    extent = box[:, 1] - box[:, 0] + room
    alias = alias_bound(kernel, extent, 1 / spacing)
    top = kernel_profile(kernel, np.zeros(1))[0]
    total = top + alias_bound(kernel, np.zeros_like(extent), 1 / spacing)
    for _ in range(MOST_WIDENINGS):
        index = half_ball(radius, spacing)
        radii = np.append(0.0, np.sqrt(((index * spacing) ** 2).sum(axis=1)))
        weights = prod(spacing) * kernel.spectral_density(radii, len(spacing))
        cut = total - (weights[0] + 2 * float(np.sum(weights[:0:-1])))
        if cut <= tol * top:
            break
        radius *= WIDEN
    rounding = WEIGHT_ROUNDING * top
    cut = max(cut, 0.0) + rounding
    return Frequencies(box, room, spacing, index, weights, alias + rounding, cut)


def kernel_profile(kernel, r) -> np.ndarray:
    """k at distances r."""
    r = np.asarray(r, dtype=float)
    return kernel(r.reshape(-1, 1), np.zeros((1, 1))).reshape(r.shape)


def alias_bound(kernel, extent, periods) -> float:
    """The most that the copies of the kernel, `periods` apart, add to it on lags up to `extent`.

    Copies next to the kernel are summed one by one. In the shell max |q_a| = s, which has at most
    2 d (2 s + 1)^(d - 1) copies, all are at least min(s P_a - L_a) away; of far shells only every
    few are evaluated, each standing for all up to the next: the kernel falls.
    """
    extent, periods = (np.asarray(a, dtype=float) for a in (extent, periods))
    d = extent.size
    near = [q for q in product(range(-NEAR_COPIES, NEAR_COPIES + 1), repeat=d) if any(q)]
    gaps = np.where(near, np.abs(near) * periods - extent, 0.0)
    total = kernel_profile(kernel, np.sqrt((gaps**2).sum(axis=1))).sum()
    shells = np.arange(NEAR_COPIES + 1, SHELLS + 1)
    far = SHELLS * GROWTH ** np.arange(INTERVALS)
    starts = np.append(shells, far)
    # Shells s with start < s <= next, each no nearer than the start of its interval.
    counts = np.append(np.ones(shells.size), np.diff(np.append(far, far[-1] * GROWTH)) + 1)
    last = np.append(shells, far * GROWTH)
    reach = (starts[:, None] * periods - extent).min(axis=1)
    terms = counts * 2 * d * (2 * last + 1) ** (d - 1) * kernel_profile(kernel, reach)
    return float(total + terms.sum())


def choose_spacing(kernel, extent, tol: float) -> np.ndarray:
    """The widest spacing whose aliasing is below `tol` k(0): 1 / h_a = L_a + one common gap."""
    extent = np.asarray(extent, dtype=float)
    top = kernel_profile(kernel, np.zeros(1))[0]

    def small(gap):
        return alias_bound(kernel, extent, extent + gap) <= tol * top

    low, high = 0.0, half_width(kernel)
    for _ in range(STEPS):
        if small(high):
            break
        low, high = high, 2 * high
    for _ in range(STEPS // 2):
        middle = (low + high) / 2
        low, high = (low, middle) if small(middle) else (middle, high)
    return 1 / (extent + high)


def room_beyond(kernel, extent, tol: float) -> float:
    """Distance from the box beyond which the kernel with rows in it is below `tol`."""
    return float((1 / choose_spacing(kernel, extent, tol) - extent).max())


def half_width(kernel) -> float:
    """The distance at which the kernel is half of k(0)."""
    r = 10.0 ** np.linspace(-DECADES, DECADES, RADII)
    values = kernel_profile(kernel, r)
    below = np.flatnonzero(values <= values[0] / 2)
    return float(r[below[0]]) if below.size else float(r[-1])


def predicted_radius(kernel, d: int, tol: float) -> float:
    """F such that the density beyond it holds `tol` of its whole integral, k(0)."""
    f = 10.0 ** np.linspace(-DECADES / 2, DECADES, RADII) / half_width(kernel)
    sphere = 2 * np.pi ** (d / 2) / gamma_function(d / 2)
    with np.errstate(under="ignore"):
        mass = sphere * f**d * kernel.spectral_density(f, d) * np.log(f[1] / f[0])
    beyond = np.cumsum(mass[::-1])[::-1]
    top = kernel_profile(kernel, np.zeros(1))[0]
    return float(f[np.argmax(beyond <= tol * top)])


def predicted_count(radius: float, spacing) -> float:
    """Frequencies in the ball, about; both half spaces."""
    d = len(spacing)
    ball = np.pi ** (d / 2) / gamma_function(d / 2 + 1)
    return 1 + ball * float(np.prod(radius / np.asarray(spacing)))


def half_ball(radius: float, spacing) -> np.ndarray:
    """Integers j != 0 with |h j| <= radius, one of j and -j: the last that is not 0 is positive."""
    reach = np.floor(radius / np.asarray(spacing)).astype(int)
    sides = [np.arange(-m, m + 1) for m in reach]
    sides[-1] = np.arange(reach[-1] + 1)
    J = np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, len(sides))
    # The sign of the last entry that is not zero, as digits that outweigh those before them.
    order = np.sign(J) @ 3 ** np.arange(len(sides))
    J = J[(order > 0) & (((J * spacing) ** 2).sum(axis=1) <= radius**2)]
    return J[np.argsort(((J * spacing) ** 2).sum(axis=1), kind="stable")]


def check_count(kernel, extent, tol, count, most) -> None:
    """Raise ValueError with what to do where the grid would be too large."""
    if count <= most:
        return
    advice = "basis='landmarks', whose error is certified too"
    for looser in 10.0 ** np.arange(np.ceil(np.log10(tol)) + 1, np.log10(LARGEST_TOL)):
        if predicted_size(kernel, extent, looser) <= most:
            advice = f"FourierGrid(tol={looser:.0e}), or {advice}"
            break
    raise ValueError(
        f"A Fourier grid for {kernel!r} on a box of "
        f"{' x '.join(f'{L:.3g}' for L in extent)} needs about {count:.2g} frequencies for "
        f"tol={tol:.0e}, and this memory and number of rows leave room for {most:,}: the kernel is "
        f"too narrow for the box, or its spectrum falls too slowly. Take {advice}."
    )


def density_at_zero(kernel, d: int):
    """The kernel's largest spectral density in d columns, (1,), or None if it is not known."""
    return kernel.spectral_density(np.zeros(1), d) if isinstance(kernel, DifferenceKernel) else None


def predicted_size(kernel, extent, tol: float) -> float:
    """Frequencies that a grid would have, about; infinite where the kernel has no density."""
    d = len(extent)
    density = density_at_zero(kernel, d)
    if density is None or not np.isfinite(density).all():
        return np.inf
    return predicted_count(predicted_radius(kernel, d, tol), choose_spacing(kernel, extent, tol))
