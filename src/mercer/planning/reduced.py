"""What a small basis would cost: landmarks, random features, and any other of one pass over rows.

Constants are those that `benchmarks/calibrate.py` measures, for one thread.
"""

from dataclasses import replace
from typing import Any

from ..bases import RandomFeatures
from ..fitting.remainder import BLOCK, PAIR_STEP, PAIRED_ROWS, pair_count, sample_size
from ..selectors import FullGreedy
from ..selectors.two_stage import default_pool, second_stage
from ..solvers import Dense, Solver
from .costs import FIT_SECONDS, FULL_COST, small_problem
from .types import Estimate, Speeds, Workload

# Defaults of what is only listed: landmarks a component and at least, and features.
LANDMARKS_EACH, LEAST_LANDMARKS, FEATURES = 10, 200, 500
# Seconds of one coordinate of a row beyond its kernel value: it is written, centered and read. Of
# a feature, all of it but the products of its angle; and of one in single precision.
COORDINATE_SECONDS, FEATURE_SECONDS, ROUGH_SECONDS = 5e-9, 6e-9, 1.5e-9
# Seconds of one landmark that is chosen, whatever the pool, and of a pair of rows that is judged,
# with each number of it.
CHOICE_SECONDS, PAIR_SECONDS, PAIR_NUMBER = 6e-5, 2e-7, 1e-8
# Seconds of one number of a row that is read, looked at and prepared.
NUMBER_SECONDS = 4e-9
# Products with the pool for each landmark: greedy choice and pivots.
GREEDY_PRODUCTS, PIVOT_PRODUCTS = 1.5, 0.5
# Products of m x m matrices for a Cholesky factor and the sums that it whitens.
WHITENED = 1.5
# Rows that signs are taken from, rows of a block, and its copies at the peak of a pass.
SIGN_ROWS, BLOCK_ROWS, BLOCK_COPIES = 2000, 2048, 1.5
# Copies of rows that kernels prepare, and that features are made of.
PREPARED, READ = 5, 3
# Matrices of the size of the basis while the small problem is solved.
SMALL_COPIES = 5


def landmarks(work: Workload, speeds: Speeds, size: int | None = None) -> Estimate:
    """A pool for the selection, then one reading of the rows against the landmarks."""
    m = min(work.n, size or max(LEAST_LANDMARKS, LANDMARKS_EACH * work.r))
    pool = min(work.n, default_pool(work.n, m))
    greedy = isinstance(second_stage(m), FullGreedy)
    width = pool if greedy else m
    value = FULL_COST * speeds.evaluate + COORDINATE_SECONDS
    product = FULL_COST * speeds.multiply
    choice = m * CHOICE_SECONDS + pool * width * value
    choice += pool * width * m * product * (GREEDY_PRODUCTS if greedy else PIVOT_PRODUCTS)
    whiten = WHITENED * m**3 * product
    judged = min(work.n, sample_size(work.n))
    judge = judged * (m * (value + m * product) + BLOCK * (value + (m + 2 * BLOCK) * product))
    signs = min(work.n, SIGN_ROWS) * m * value
    seconds = choice + whiten + judge + signs + summed(work, m, value, speeds)
    most = max(summed_memory(work, m, PREPARED), 8 * pool * width)
    evaluations = work.n * m + pool * width + judged * (m + BLOCK) + min(work.n, SIGN_ROWS) * m
    note = f"approximate, error certified; {m} landmarks, one pass over the data"
    return listed('basis="landmarks"', work, evaluations, most, seconds, note)


def features(work: Workload, speeds: Speeds, size: int | None = None) -> Estimate:
    """One reading of the rows through the feature map."""
    n, m = work.n, size or FEATURES
    angle = work.d * speeds.multiply / 2
    all_pairs = n <= PAIRED_ROWS
    pairs = n * n / 2 if all_pairs else pair_count(n, m, work.d)
    pair = speeds.evaluate + m * speeds.multiply
    if not all_pairs:
        pair = PAIR_SECONDS + work.d * PAIR_NUMBER + m * (ROUGH_SECONDS / 2 + angle)
    signs = min(n, SIGN_ROWS) * m * (ROUGH_SECONDS + angle)
    value = FEATURE_SECONDS + FULL_COST * angle
    seconds = signs + pairs * pair + summed(work, m, value, speeds)
    note = f"approximate, error estimated; {m} features; landmarks are closer at equal size"
    enough = work.r <= m
    if not enough:
        note = f"{m} features give {m} components at most"
    judged = 0 if all_pairs else 8 * PAIR_STEP * (4 * work.d + m // 2)
    size_ = max(summed_memory(work, m, READ), judged)
    found = listed('basis="features"', work, n * m + pairs, size_, seconds, note)
    return replace(found, fits=found.fits and enough)


def summed(work: Workload, m: int, value: float, speeds: Speeds) -> float:
    """Seconds of the moments of all rows, each coordinate of which takes `value`, and after."""
    products = m * FULL_COST * speeds.multiply / 2
    small = small_problem(replace(work, n=m, r=min(work.r, m)), speeds).seconds
    row = m * (value + products) + work.d * NUMBER_SECONDS
    return FIT_SECONDS + small + work.n * row / work.threads


def summed_memory(work: Workload, m: int, copies: int) -> int:
    """Bytes of the moments with blocks of rows in flight, or of the small problem after."""
    block = min(work.n, BLOCK_ROWS) * (BLOCK_COPIES * m + copies * work.d)
    return int(8 * max(m * m * SMALL_COPIES, work.threads * (m * m + block)))


def listed(name, work, evaluations, size, seconds, note) -> Estimate:
    """An estimate of an approximate method."""
    fits = size <= work.memory
    return Estimate(name, Dense(), evaluations, size, seconds, fits, note, approximate=True)


def reduced(work: Workload, m: int, solver: Any, basis: Any, speeds: Speeds) -> Estimate:
    """A fit in a basis of m vectors that was asked for.

    Parameters
    ----------
    work : Workload
    m : int
    solver : Solver or "auto"
    basis : str or BasisRecipe
        What was asked for.
    speeds : Speeds
    """
    name = basis if isinstance(basis, str) else type(basis).__name__
    by_features = name == "features" or isinstance(basis, RandomFeatures)
    found = (features if by_features else landmarks)(work, speeds, m)
    if not isinstance(solver, Solver):
        solver = small_problem(replace(work, n=m, r=min(work.r, m)), speeds).solver
    note = "one pass over the rows"
    return replace(found, method=name, solver=solver, fits=True, note=note)
