"""What the columns themselves as a basis would cost: linear kernel PCA as PCA of moments."""

import math
from dataclasses import replace
from typing import Any

from ..bases.columns import has_columns
from ..kernels import Polynomial
from ..solvers import Dense
from .costs import FULL_COST, small_problem
from .types import Estimate, Speeds, Workload

# Moments that every thread sums up for itself, and what is made of their sum.
MOMENTS = 3
# Seconds of one row, and of one number of it that is read, centered and read again.
ROW_SECONDS, NUMBER_SECONDS = 1.2e-7, 7e-9
# Rows that are read at once.
BLOCK = 2048


def rank_bound(kernel: Any, d: int) -> int | None:
    """What the rank of a kernel's matrix of rows with d columns does not exceed, where known."""
    if isinstance(kernel, Polynomial) and kernel.degree >= 0 and float(kernel.degree).is_integer():
        # Monomials of so many variables.
        return math.comb(d + int(kernel.degree), d)
    return d if has_columns(kernel) else None


def columns(work: Workload, kernel: Any, speeds: Speeds) -> Estimate:
    """One pass for the d x d scatter, its eigenproblem, and the scores of all rows."""
    n, d, r = work.n, work.d, min(work.r, work.d)
    small = small_problem(replace(work, n=d, r=r), speeds)
    # Half of the products, which are symmetric, and a product with the components.
    products = n * d * (d / 2 + r) * FULL_COST * speeds.multiply
    reading = n * (ROW_SECONDS + d * NUMBER_SECONDS)
    seconds = (products + reading) / work.threads + small.seconds
    size = 8 * (d * d * (work.threads + MOMENTS) + min(n, BLOCK) * d + 3 * n * r)
    serves = has_columns(kernel) and work.r <= d < n and size <= work.memory
    note = "exact, one pass over the rows, PCA of their columns"
    if not serves:
        note = "for linear and cosine kernels of fewer columns than rows"
    solver = small.solver if serves else Dense()
    return Estimate('basis="columns"', solver, 0.0, size, seconds, serves, note)
