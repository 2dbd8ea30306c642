"""An equispaced grid of Fourier frequencies as the basis, for up to three columns.

A kernel of the distance is a short Fourier series on the box that the rows lie in, to any
precision (Greengard, Rachh & Barnett 2022). Its terms are explicit features

    psi(x) = [sqrt(w_0), sqrt(2 w_j) cos(2 pi h j.(x - c)), sqrt(2 w_j) sin(2 pi h j.(x - c))]

with psi(x) . psi(z) = k(x, z) up to `tol`: the same real features for rows of any number, so the
cost of n rows is one nonuniform fast Fourier transform and all else is independent of n.
"""

from typing import Any

import numpy as np

from ..compute import TiledEngine
from ..compute.arrays import Array
from ..compute.nonuniform import check_available
from ..kernels import Kernel
from .base import Basis, BasisRecipe
from .fourier_basis import GRID_SHARE, FourierBasis, SummedBasis, row_range, transform_bytes
from .fourier_grid import (
    LARGEST_TOL,
    LEAST_TOL,
    check_count,
    choose_frequencies,
    choose_spacing,
    fill_ball,
    predicted_count,
    predicted_radius,
    room_beyond,
)

#: Columns at most: the grid has (extent / width)^d frequencies.
MOST_COLUMNS = 3
# Share of the tolerance that grids of one column are made for, where that takes no more than
# so many times the frequencies.
FINER, FEW_MORE = 1e-2, 1.5

# Frequencies that cost seconds at most, and how many of them one row can be worth: beyond, a few
# rows with large numbers would take hours, and all points are exact.
FREE_FREQUENCIES, ROW_FREQUENCIES = 100_000, 100


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

    def __init__(self, tol: float = 1e-9, margin: Any = 0.1, box: Any = None):
        self.tol = tol
        self.margin = margin
        self.box = box

    @property
    def needs_range(self) -> bool:  # type: ignore[override]
        """Unless a box is given."""
        return self.box is None

    def with_range(self, box: Any) -> "FourierGrid":
        """The grid for these rows and the margin around them."""
        return FourierGrid(self.tol, self.margin, self.widened(box))

    def build(
        self,
        kernel: Kernel,
        X: Array,
        engine: TiledEngine,
        rng: np.random.Generator,
        n_components: int | None = None,
    ) -> Basis:
        """Choose the grid for the box of X."""
        return self.on_box(kernel, self.box_of(X), engine, X.shape[0])

    def on_box(
        self, kernel: Kernel, box: Any, engine: TiledEngine, n: int | None = None
    ) -> "FourierBasis":
        """The basis for n rows, if they are counted, within a box, (d, 2)."""
        self.check(kernel, len(box))
        most = most_frequencies(engine, len(box))
        if n is not None:
            most = min(most, max(FREE_FREQUENCIES, ROW_FREQUENCIES * n))
        tol = self._finer(kernel, box)
        frequencies = choose_frequencies(kernel, box, tol, most, self.margin == "all")
        return FourierBasis(kernel, frequencies, engine, tol)

    def _finer(self, kernel, box) -> float:
        """`tol`, or less in one column, where a smooth kernel has it for a few more frequencies.

        Its eigenvalues fall fastest there, and directions are right to tol n over theirs.
        """
        finer = max(FINER * self.tol, LEAST_TOL)
        if len(box) > 1 or not self.tol > finer:
            return self.tol
        extent = box[:, 1] - box[:, 0]
        asked, taken = (
            predicted_count(predicted_radius(kernel, 1, t), choose_spacing(kernel, extent, t))
            for t in (self.tol, finer)
        )
        return finer if taken <= FEW_MORE * asked else self.tol

    def for_kernels(self, kernels: Any, box: Any, engine: TiledEngine) -> list["FourierBasis"]:
        """A basis for each of several kernels on one spacing: one pass over rows serves all.

        The trigonometric moments of the widest basis, `trimmed`, are those of the others.
        """
        for kernel in kernels:
            self.check(kernel, len(box))
        extent, d, everywhere = box[:, 1] - box[:, 0], len(box), self.margin == "all"
        rooms = [room_beyond(k, extent, self.tol) if everywhere else 0.0 for k in kernels]
        wanted = zip(kernels, rooms, strict=True)
        spacing = np.min([choose_spacing(k, extent + r, self.tol) for k, r in wanted], axis=0)
        most, bases = most_frequencies(engine, d), []
        for kernel, room in zip(kernels, rooms, strict=True):
            radius = predicted_radius(kernel, d, self.tol)
            check_count(kernel, extent, self.tol, predicted_count(radius, spacing), most)
            bases.append(
                FourierBasis(
                    kernel,
                    fill_ball(kernel, box, room, spacing, radius, self.tol),
                    engine,
                    self.tol,
                )
            )
        return bases

    def box_of(self, X: Array) -> np.ndarray:
        """The box given, or that of the rows of X with the margin, (d, 2)."""
        return self.widened(row_range(X)) if self.box is None else self.given_box(X.shape[1])

    def widened(self, box: Any) -> np.ndarray:
        """A range of rows with the margin on both sides."""
        room = (0.0 if self.margin == "all" else self.margin) * (box[:, 1] - box[:, 0])
        return np.stack([box[:, 0] - room, box[:, 1] + room], axis=1)

    def given_box(self, d: int) -> np.ndarray:
        """The box asked for, or an error that says what is wrong with it."""
        box = np.asarray(self.box, dtype=float)
        if box.shape != (d, 2) or not np.isfinite(box).all() or np.any(box[:, 1] < box[:, 0]):
            raise ValueError(
                f"FourierGrid: box={self.box!r} must hold the least and the largest value of each "
                f"of the {d} columns, as [(0.0, 1.0), ...]."
            )
        return box

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
        check_available()


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

    most_columns = MOST_COLUMNS

    def __init__(self, bases, sums):
        self.bases = bases
        self.sums = sums

    @classmethod
    def of(cls, grid: FourierGrid, kernels, X, engine) -> "SharedGrid":
        """One pass over the rows of X."""
        bases = grid.for_kernels(kernels, grid.box_of(X), engine)
        widest = max(bases, key=lambda basis: basis.size)
        return cls(bases, widest.moments(X))

    def build(self, kernel, X, engine, rng, n_components=None):
        """The basis of one of the kernels, with the moments of the rows."""
        found = next(b for b in self.bases if repr(b.kernel) == repr(kernel))
        sums = self.sums.trimmed(found.frequencies.reach)
        return SummedBasis(found.kernel, found.frequencies, engine, found.tol, sums)


def why_not(kernel, d: int) -> str:
    """Why a kernel in d columns has no Fourier grid, in a sentence; empty where it has one."""
    if d > MOST_COLUMNS:
        return f"A Fourier grid serves up to {MOST_COLUMNS} columns, and there are {d}."
    if kernel.gamma == 0:
        return f"{kernel!r} is constant, and a Fourier grid needs one that falls with the distance."
    density = kernel.spectral_density(np.zeros(1), d)
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
    # The share of a box that is its ball.
    return int(GRID_SHARE * engine.memory / bytes_each * (1.0, np.pi / 4, np.pi / 6)[d - 1])
