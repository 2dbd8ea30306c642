"""What a Fourier grid would cost, and when "auto" takes it."""

import numpy as np

from ..bases import FourierGrid
from ..bases.fourier import most_frequencies, why_not
from ..bases.fourier_grid import choose_spacing, predicted_count, predicted_radius, room_beyond
from ..compute.nonuniform import is_available
from ..solvers import BlockKrylov, Dense, Solver
from .types import Estimate, Workload

# Seconds of a thread for one row in a transform of one, two and three columns, and for one point
# and level of a fast Fourier transform there and back.
ROW_SECONDS = (8e-8, 2e-7, 9e-7)
POINT_SECONDS = 1.4e-9
# Products that block Krylov was seen to take for 16 components, and columns of each.
PASSES, SPARE = 10, 16
# Seconds that choosing a grid and setting up transforms take.
START_SECONDS = 0.05
# Below this many features LAPACK is faster than block Krylov.
DENSE_FEATURES = 300
# Precision of a grid that "auto" takes: far below that of eigenvalues from the exact methods.
AUTO_TOL = 1e-11
# "auto" takes it where it is this many times faster and saves this many seconds: a model of all
# points has more to offer, such as eigenvectors.
TIMES_FASTER, SECONDS_SAVED = 4.0, 2.0


def fourier(
    work: Workload, kernel, extent, engine, tol: float = AUTO_TOL, everywhere: bool = True
) -> Estimate:
    """One transform of all rows, then products of a Toeplitz matrix that do not depend on n."""
    name, d = 'basis="fourier"', work.d
    reason = why_not(kernel, d) or ("" if is_available() else "finufft is not installed.")
    if reason:
        return Estimate(name, None, 0.0, 0, np.inf, False, reason.rstrip("."))
    extent = np.asarray(extent, dtype=float)
    extent = extent + (room_beyond(kernel, extent, tol) if everywhere else 0.0)
    spacing, radius = choose_spacing(kernel, extent, tol), predicted_radius(kernel, d, tol)
    count, most = predicted_count(radius, spacing), most_frequencies(engine, d)
    if not count <= most:
        note = (
            f"needs {count:.2g} frequencies for tol={tol:.0e}, too many for the memory: the kernel "
            "is narrow for the range of the data or its spectrum falls slowly; landmarks instead"
        )
        return Estimate(name, None, 0.0, 0, np.inf, False, note)
    grid = float(np.prod(4 * np.floor(radius / spacing) + 1))
    carried = work.r + SPARE
    products = POINT_SECONDS * PASSES * carried * grid * np.log2(grid + 1)
    seconds = START_SECONDS + (ROW_SECONDS[d - 1] * work.n + products) / work.threads
    size = int(16 * grid * (2**d + 3) * work.threads + 8 * count * 8 * carried)
    note = f"exact to {tol:.0e} of k(x, x), certified; {count:,.0f} frequencies, one pass"
    fits = size <= work.memory and 4 * carried < count
    return Estimate(name, solver_for(int(count), work.r), 0.0, size, seconds, fits, note)


def solver_for(features: int, r: int) -> Solver:
    """LAPACK for few features or many components, else block Krylov."""
    return Dense() if features <= DENSE_FEATURES or r > features // 8 else BlockKrylov()


def takes_fourier(estimate: Estimate, exact: Estimate) -> bool:
    """Whether "auto" prefers the grid to the best method on all points."""
    gain = exact.seconds - estimate.seconds
    return (
        estimate.fits and gain >= SECONDS_SAVED and exact.seconds >= TIMES_FASTER * estimate.seconds
    )


def automatic_grid() -> FourierGrid:
    """The grid that "auto" takes, for new rows anywhere."""
    return FourierGrid(tol=AUTO_TOL, margin="all")
