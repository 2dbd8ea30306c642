"""What each method costs: kernel evaluations, bytes and seconds, counted from its steps.

Counts become seconds by a few speeds. Counts that depend on the spectrum, and not on the sizes
alone, and seconds of single steps are those that `benchmarks/calibrate.py` measures on one thread.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from .._packages import has
from ..bases import BASES, RandomFeatures
from ..bases.fourier import most_frequencies, why_not
from ..bases.fourier_grid import choose_spacing, predicted_count, predicted_radius, room_beyond
from ..compute.engine import ALONE
from ..compute.linalg import FEW_ROWS, LONG_ROWS
from ..kernels import Kernel
from ..selectors import FullGreedy
from ..selectors.sampling import default_selector
from ..solvers import Arpack, BlockKrylov, Dense, GramPower, Solver
from ..solvers.block_krylov import BASIS_BLOCKS, DRAFT_FLOOR, WIDEST_BLOCK
from ..solvers.peers import FORMED_SIZE, MANY, MANY_ROWS, finds_all, lanczos_size
from .remainder import BLOCK, PAIR_STEP, PROBES, multiplies, pair_count, sample_size

# Double precision tiles and products against single ones.
FULL_COST = 2.3
# Seconds of a fit, of a pass and of a single product that no size explains.
FIT_SECONDS, PASS_SECONDS, PRODUCT_SECONDS = 1e-3, 3e-4, 1.5e-5
# Single products of Lanczos: a few, and so many a component. Spectra that decay take two thirds of
# that where many are wanted, flat ones up to twice, and those of random sparse rows ten times.
LANCZOS_PRODUCTS, LANCZOS_EACH = 32, 2.1
# Products a block Krylov fit was seen to take on covtype, USPS and MNIST with 16
# components: to residual 1e-6, and the further ones down to 1e-9.
DRAFT_PASSES, CORRECTION_PASSES = 6, 5
# Vectors at the peak of a Krylov fit: copies of the basis with its products, and blocks beside
# them. Seen for 4 to 60 components in budgets from 2 MB to 1 GB; the peak is in the corrections.
BASIS_COPIES, BLOCK_COPIES = 2.5, 10
# Seconds of one entry of sparse rows in a product with one vector, with a copy by columns and
# without, and with each vector of a block.
ENTRY_SECONDS, ROW_ENTRY_SECONDS, BLOCK_ENTRY_SECONDS = 7e-10, 1.5e-9, 3e-10
# Defaults of the methods that are only listed: rows at once, passes, vectors beyond the components.
ROW_BLOCK, HEBBIAN_PASSES, SPARE = 128, 10, 10
# Seconds of one number of a row that is read, looked at and prepared; of one coordinate of a row
# beyond its kernel value, which is written, centered and read; of a feature, all but the products
# of its angle; and of one in single precision.
NUMBER_SECONDS, COORDINATE_SECONDS, FEATURE_SECONDS, ROUGH_SECONDS = 4e-9, 5e-9, 4e-9, 1.5e-9
# Side of the smallest tile.
LEAST_SIDE = 64
# Rows that signs are taken from.
SIGN_ROWS = 2000
# Precision of a Fourier grid that "auto" takes: far below that of eigenvalues from exact methods.
AUTO_TOL = 1e-11
# How plans call the bases that "auto" may take.
LANDMARKS, COLUMNS, FOURIER = 'basis="landmarks"', 'basis="columns"', 'basis="fourier"'
# Blocks of vectors that block Krylov holds at the least on the client of a cluster, and vectors of
# a block beyond the components.
LEAST_BLOCKS, SPARE_VECTORS = 6, 16


@dataclass(frozen=True)
class Workload:
    """The size of a fit.

    Attributes
    ----------
    n, d, r : int
        Rows, columns, components.
    memory : int
        Byte budget for work arrays.
    threads : int
    tol : float
    device : str
        "cpu", or the device that computes.
    fused : bool
        Whether tiles of the kernel matrix need no memory, so that none are kept.
    single : bool
        Whether block Krylov may search in single precision.
    rank : int or None
        An upper bound of the rank of the matrix, if one is known.
    entries : int
        Numbers in sparse rows that products with the matrix are made of; 0 for tiles.
    array : bool
        Whether the rows are one array, and not read in blocks.
    judged : bool
        Whether a product with the kernel matrix may judge a small basis.
    """

    n: int
    d: int
    r: int
    memory: int
    threads: int = 1
    tol: float = 0.0
    device: str = "cpu"
    fused: bool = False
    single: bool = True
    rank: int | None = None
    entries: int = 0
    array: bool = True
    judged: bool = True


@dataclass(frozen=True)
class Estimate:
    """What one method would cost.

    Attributes
    ----------
    method : str
    solver : Solver or None
        The recipe, ready to use; None where another estimator does it.
    evaluations : float
        Kernel values computed in all.
    bytes : int
        Work memory.
    seconds : float
    fits : bool
        Whether the memory is within the budget.
    note : str
    approximate : bool
        Whether its certificate allows for an error beyond rounding and tolerance.
    vectors : int
        Of these bytes those of vectors and of a matrix that is formed, which tiles leave alone.
    certified : str
        How far from exact it was found to be, where it was tried.
    """

    method: str
    solver: Solver | None
    evaluations: float
    bytes: int
    seconds: float
    fits: bool
    note: str = ""
    approximate: bool = False
    vectors: int = 0
    certified: str = ""


@dataclass(frozen=True)
class Speeds:
    """Seconds on one thread for one unit of work.

    Attributes
    ----------
    evaluate : float
        One kernel value in single precision.
    multiply : float
        One multiply-add of a tile with a block.
    decompose : float
        One unit of n^3 of a dense eigen-decomposition.
    read : float
        One entry of a symmetric matrix in memory, in a product with one vector.
    """

    evaluate: float
    multiply: float = 2e-11
    decompose: float = 5e-11
    read: float = 3.2e-10

    @classmethod
    def typical(cls, d: int, device: str = "cpu", kernel: Any = Kernel) -> "Speeds":
        """Speeds for d columns of a core of a current server, or of a data-center GPU."""
        if device == "cpu":
            value, column = kernel.seconds
            return cls(evaluate=value + column * d)
        return cls(evaluate=4e-13 + 1.1e-14 * d, multiply=1e-14, decompose=5e-12, read=1e-11)


def dense(work: Workload, speeds: Speeds, subset: bool | None = None) -> Estimate:
    """The whole matrix and LAPACK, which looks for some components where room for all is short."""
    n, r = work.n, work.r
    size, vectors, seconds = formed(work, speeds)
    # Copies that decompositions make; long ones more, as they leave the interpreter free.
    few_copies = 8 * n * n if n > FEW_ROWS else 0
    all_copies = (32 if n > LONG_ROWS else 16) * n * n
    every = r == n or (finds_all(n, r) if subset is None else not subset)
    if every and r < n and subset is None and size + few_copies <= work.memory < size + all_copies:
        every, subset = False, True
    copies = all_copies if every else few_copies
    size, vectors = size + copies, vectors + copies
    # LAPACK scales poorly over threads: what they save is not counted.
    seconds += speeds.decompose * (2.3 * n**3 + 750 * n**2 if every else some_pairs(n, r))
    note, fits = "computes all components", size <= work.memory
    return Estimate("dense", Dense(subset), n * n / 2, size, seconds, fits, note, vectors=vectors)


def arpack(work: Workload, speeds: Speeds) -> Estimate:
    """The whole matrix and single products with it."""
    n, r = work.n, work.r
    size, vectors, seconds = formed(work, speeds)
    # Vectors with their products and a copy, and a factor in single precision.
    factored = r >= MANY and n <= MANY_ROWS
    room = 24 * n * max(FORMED_SIZE, 3 * r + 24) + 4 * n * n * factored
    size, vectors = size + room, vectors + room
    # A core reads a matrix of up to 36 MB from its cache, at four times the speed of memory.
    read = speeds.read * (0.25 if 8 * n * n < 36e6 else 1.0)
    # Every vector is made orthogonal to all before it; small eigenproblems say when to end.
    count = LANCZOS_PRODUCTS + LANCZOS_EACH * r
    each = PRODUCT_SECONDS + n * n * read + 3e-10 * n * count + 1.5e-9 * count**2
    # Of a matrix of lower rank single vectors find the other components by rounding alone.
    few, note = 4 * r < n and r <= (work.rank or n), "few components of few rows"
    if not few:
        note = "too many components for a Krylov method"
    # What takes longer than LAPACK, and half as many products again as usual, is left to LAPACK: no
    # matrix of low rank has so many components.
    most = max(1.5 * count, speeds.decompose * some_pairs(n, r) / each)
    restarts = 1 + int(most / max(1, lanczos_size(n, r) - r))
    solver = Arpack(restarts, form=True, to_rounding=True)
    fits = few and size <= work.memory and work.device == "cpu"
    name, seconds = "arpack, matrix formed", seconds + count * each + 7e-12 * n**3 * factored
    return Estimate(name, solver, n * n / 2, size, seconds, fits, note, vectors=vectors)


def products(work: Workload, speeds: Speeds) -> Estimate:
    """Single products with sparse rows, there and back; nothing of n^2 is made."""
    n, d, r = work.n, work.d, work.r
    kept = lanczos_size(n, r)
    vectors = 8 * n * Arpack().vectors_held(r)
    # A copy by columns, else at most the numbers alone, and sums over the columns of each thread.
    copied, entry = 24 * work.entries, ENTRY_SECONDS
    if copied + vectors > work.memory:
        copied, entry = min(copied // 3, work.memory // 2), ROW_ENTRY_SECONDS
    size = vectors + copied + 8 * d * (work.threads + 2)
    each = PRODUCT_SECONDS + 2 * work.entries * entry / work.threads + 2e-9 * n * kept / 2
    seconds = FIT_SECONDS + (LANCZOS_PRODUCTS + LANCZOS_EACH * r) * each
    few = 4 * r < n and r <= (work.rank or n)
    note = "no kernel values" if few else "too many components for a Krylov method"
    solver, fits = Arpack(form=False, to_rounding=True), few and size <= work.memory
    return Estimate(
        "arpack, products of rows", solver, 0.0, size, seconds, fits, note, vectors=vectors
    )


def formed(work: Workload, speeds: Speeds) -> tuple[int, int, float]:
    """Bytes of a matrix that is formed, those of them that are not tiles, and seconds of forming.

    Half of the entries are computed in double precision, mirrored and centered. The bytes hold the
    vectors that are found with their copies, the rows prepared for it (a tenth of the budget at
    most), and the smallest tile in flight.
    """
    n, row = work.n, work.d + 2
    vectors = 8 * n * (n + 3 * work.r)
    seconds = (FULL_COST * speeds.evaluate / 2 + 4 * speeds.read) * n * n / work.threads
    prepared = min(16 * n * row, work.memory // 10) + least_tile(work)
    return vectors + prepared + 300_000, vectors, FIT_SECONDS + seconds


def some_pairs(n: int, r: int) -> float:
    """Steps of LAPACK for r eigenpairs, one after the other and each orthogonal to the last."""
    return n**3 + 200 * n**2 + 6500 * r * n + 6 * r * r * n


def small_problem(work: Workload, speeds: Speeds, size: int) -> Estimate:
    """The eigenproblem of a matrix of this size that is there already, such as moments."""
    work, speeds = replace(work, n=size, r=min(work.r, size)), replace(speeds, evaluate=0.0)
    return dense(work, speeds)


def krylov(work: Workload, speeds: Speeds, kept: bool) -> Estimate:
    """Block Krylov, with all tiles kept in single precision or all made anew each pass."""
    n = work.n
    carried = work.r + BlockKrylov().oversampling
    block = min(carried, WIDEST_BLOCK)
    # Basis vectors that half of the budget holds, at least two blocks and the kept ones.
    fixed = BLOCK_COPIES * max(carried, block)
    room = (work.memory // 2 // (8 * n) - fixed) / BASIS_COPIES
    columns = int(max(carried + 2 * block, min(carried + BASIS_BLOCKS * block, room)))
    draft, full = DRAFT_PASSES, 0
    if work.tol < DRAFT_FLOOR:
        draft, full = draft + CORRECTION_PASSES, 2
    # Wide problems need more blocks before their last component converges.
    draft += 2 * (carried // WIDEST_BLOCK)
    # Where rounding would be too large in single precision, all passes are in double.
    unit = 1.0 if work.single else FULL_COST
    tiles = n * n / 2 * (unit * (1 if kept else draft) + FULL_COST * full)
    products = n * n * block * (unit * draft + FULL_COST * full)
    seconds = (speeds.evaluate * tiles + speeds.multiply * products) / work.threads
    if work.entries:
        seconds = 2 * work.entries * block * (draft + full) * BLOCK_ENTRY_SECONDS / work.threads
    # Orthogonalization and the projected eigenproblems, on one thread.
    for done in range(1, draft + 1):
        q = min(done * block, columns)
        orthogonal = 8 * n * q * block * FULL_COST * speeds.multiply
        seconds += PASS_SECONDS + orthogonal + 4 * speeds.decompose * q**3
    # Fits of 1,000 to 4,000 rows took 1.3 times what is counted.
    seconds = FIT_SECONDS + 1.3 * seconds
    tiles_size = tile_memory(work) + ((2 if work.single else 4) * n * n if kept else 0)
    vectors = 8 * n * int(BASIS_COPIES * columns + fixed)
    # Prepared rows of both precisions.
    prepared = min(24 * n * (work.d + 2), 3 * work.memory // 10)
    if work.entries:
        tiles_size, prepared = 8 * work.d * block, min(48 * work.entries, work.memory // 2)
    size = tiles_size + vectors + prepared
    name = "krylov, tiles kept" if kept else "krylov, matrix-free"
    note = "one pass over the data, the rest in memory" if kept else "memory does not grow with n^2"
    few = 4 * carried < n
    if not few:
        note = "too many components for a Krylov method"
    if kept and work.fused:
        note = "tiles are computed faster than they are read from memory"
    # Without tiles to keep the smallest one will do.
    held = vectors + (tiles_size if kept else least_tile(work))
    fits = few and held <= work.memory and not (kept and work.fused)
    evaluations = 0 if work.entries else n * n / 2 * ((1 if kept else draft) + full)
    solver = BlockKrylov(max_columns=columns)
    return Estimate(name, solver, evaluations, int(size), seconds, fits, note, vectors=vectors)


def tile_memory(work: Workload) -> int:
    """Bytes of tiles in flight: a fourth of the budget at most, but for the smallest tile."""
    side = 1024 if work.n**2 <= ALONE else max(192, -(-work.n // (4 * work.threads)))
    side = min(side, 1024, work.n)
    usual = 4 * work.threads * (side * side + 4 * side * (work.d + 2))
    return max(min(usual, work.memory // 4), least_tile(work))


def least_tile(work: Workload) -> int:
    """Bytes of the smallest tile in flight, in double precision."""
    return 8 * LEAST_SIDE * (LEAST_SIDE + 4 * (work.d + 2))


def by_products(work: Workload, name: str, solver: Solver) -> Estimate:
    """A method that multiplies with the matrix tile by tile, how often is not known."""
    vectors = 8 * work.n * solver.vectors_held(work.r)
    size = tile_memory(work) + vectors
    return Estimate(name, solver, math.nan, size, math.nan, True, vectors=vectors)


def gram_power(work: Workload, speeds: Speeds) -> Estimate:
    """One pass over whole rows between a product for the means and one for the residuals."""
    n, q = work.n, work.r + SPARE
    steps = n * n * (2 * ROW_BLOCK + 5 * q)
    seconds = FULL_COST * (speeds.evaluate * 2 * n * n + speeds.multiply * steps) / work.threads
    vectors = 8 * n * 3 * q
    size = vectors + 8 * n * 3 * power_block(work, ROW_BLOCK)
    name, fits = "gram-power", size <= work.memory
    note = "near exact in two passes if the eigenvalues decay fast"
    return Estimate(name, GramPower(), 2 * n * n, size, seconds, fits, note, vectors=vectors)


def power_block(work: Workload, block: int) -> int:
    """Rows at once that half of the budget holds three times; 1 is another algorithm."""
    return 1 if block == 1 else max(2, min(block, work.memory // (2 * 3 * 8 * work.n)))


def hebbian(work: Workload, speeds: Speeds, passes: int = HEBBIAN_PASSES) -> Estimate:
    """Passes over whole rows, a start and a read-out."""
    n, q = work.n, work.r + SPARE
    values = (passes + 1) * n * n
    seconds = FULL_COST * values * (speeds.evaluate + 3 * q * speeds.multiply) / work.threads
    size = 8 * n * (6 * q + ROW_BLOCK)
    name, fits = "HebbianKernelPCA", size <= work.memory
    note = "for data that arrive over time or drift; others are better on fixed data"
    return Estimate(name, None, values, size, seconds, fits, note)


def landmarks(work: Workload, speeds: Speeds, size: int | None = None) -> Estimate:
    """A pool for the selection, then one reading of the rows against the landmarks."""
    n = work.n
    m = min(n, size or max(200, 10 * work.r))
    selector = default_selector(n, m)
    pool, greedy = min(n, selector.pool or n), isinstance(selector.second, FullGreedy)
    width = pool if greedy else m
    value = FULL_COST * speeds.evaluate + COORDINATE_SECONDS
    product = FULL_COST * speeds.multiply
    # A landmark takes 60 microseconds whatever the pool, and products with it: greedy or pivots.
    choice = 6e-5 * m + pool * width * (value + m * product * (1.5 if greedy else 0.5))
    whiten = 1.5 * m**3 * product  # a Cholesky factor, and the sums that it whitens
    values, product_seconds, product_size = judging_product(work, speeds, m)
    judged = 0 if values > 0 and n > sample_size(n) else min(n, sample_size(n))
    judge = product_seconds + judged * (
        m * (value + m * product) + BLOCK * (value + (m + 2 * BLOCK) * product)
    )
    signs = min(n, SIGN_ROWS) * m
    seconds = choice + whiten + judge + signs * value + moments_seconds(work, m, value, speeds)
    # Kernels prepare five copies of the rows.
    most = max(moments_memory(work, m, 5), 8 * pool * width, product_size)
    evaluations = n * m + pool * width + judged * (m + BLOCK) + signs + values
    note = f"approximate, error certified; {m} landmarks, one pass over the data"
    fits = most <= work.memory
    return Estimate(LANDMARKS, Dense(), evaluations, most, seconds, fits, note, approximate=True)


def features(work: Workload, speeds: Speeds, size: int | None = None) -> Estimate:
    """One reading of the rows through the feature map."""
    n, d, m = work.n, work.d, size or 500
    angle = d * speeds.multiply / 2
    values, judge, product_size = judging_product(work, speeds, m)
    pairs, judged = 0 if values else pair_count(n, m, d), 8 * PAIR_STEP * (4 * d + m // 2)
    # A pair of rows that is judged, and each number of it.
    pair = 2e-7 + d * 1e-8 + m * (ROUGH_SECONDS / 2 + angle)
    signs = min(n, SIGN_ROWS) * m * (ROUGH_SECONDS + angle)
    value = FEATURE_SECONDS + FULL_COST * angle
    seconds = signs + judge + pairs * pair + moments_seconds(work, m, value, speeds)
    # Features are made of three copies of the rows.
    most = max(moments_memory(work, m, 3), judged, product_size)
    name, fits = 'basis="features"', most <= work.memory and work.r <= m
    note = f"approximate, error estimated; {m} features; landmarks are closer at equal size"
    if work.r > m:
        note = f"{m} features give at most {m} components"
    return Estimate(
        name, Dense(), n * m + pairs + values, most, seconds, fits, note, approximate=True
    )


def judging_product(work: Workload, speeds: Speeds, m: int) -> tuple[float, float, int]:
    """Kernel values, seconds and bytes of the product that judges m basis vectors, if one is made.

    A product with scores and random vectors, the eigenproblem of the scores, and small products
    that keep vectors orthogonal. Constants are of 45 fits of drawn shapes, 400 to 9,000 rows.
    """
    n, carried = work.n, min(m, work.r + SPARE_VECTORS)
    if not (work.judged and multiplies(n, work.d, m, work.r, work.memory)):
        return 0.0, 0.0, 0
    columns, values = carried + PROBES, n * n / 2
    small = 2e-3 + 0.7 * speeds.decompose * some_pairs(m, carried)
    small += n * (columns * (6e-10 * carried + 2.2e-8) + m * FEATURE_SECONDS)
    product = 1.2 * speeds.evaluate * values + 0.8 * speeds.multiply * columns * n * n
    prepared = min(12 * n * (work.d + 2), work.memory // 10)
    # Copies of the vectors, tiles of the product, or the small matrix and its decomposition.
    size = max(48 * n * columns + tile_memory(work) + prepared, 40 * m * m)
    return values, small + product / work.threads, size


def moments_seconds(work: Workload, m: int, value: float, speeds: Speeds) -> float:
    """Seconds of the moments of all rows, each coordinate of which takes `value`, and after."""
    row = m * (value + m * FULL_COST * speeds.multiply / 2) + work.d * NUMBER_SECONDS
    return FIT_SECONDS + small_problem(work, speeds, m).seconds + work.n * row / work.threads


def moments_memory(work: Workload, m: int, copies: int) -> int:
    """Bytes of the moments with blocks of 2,048 rows in flight, or of the small problem after."""
    block = min(work.n, 2048) * (1.5 * m + copies * work.d)
    return int(8 * max(5 * m * m, work.threads * (m * m + block)))


def reduced(work: Workload, m: int, solver: Any, basis: Any, speeds: Speeds) -> Estimate:
    """A fit in a basis of m vectors that was asked for, by a solver or "auto"."""
    name = next((name for name, kind in BASES.items() if type(basis) is kind), str(basis))
    estimate = (features if isinstance(basis, RandomFeatures) else landmarks)(work, speeds, m)
    if not isinstance(solver, Solver):
        solver = small_problem(work, speeds, m).solver
    note = "one pass over the rows"
    return replace(estimate, method=name, solver=solver, fits=True, note=note)


def columns(work: Workload, kernel: Any, speeds: Speeds) -> Estimate:
    """PCA of the columns: one pass for the d x d scatter, its eigenproblem, scores of all rows."""
    n, d, r = work.n, work.d, min(work.r, work.d)
    small = small_problem(work, speeds, d)
    # Half of the products, which are symmetric, and for scores one with the components.
    products = n * d * (d / 2 + r * work.array) * FULL_COST * speeds.multiply
    # Seconds of one row in a pass, and of one number of it that is read and centered.
    reading = n * (4e-8 + d * 3.2e-9) * (1 + work.array)
    seconds = (products + reading) / work.threads + small.seconds
    # Moments of every thread, three that are made of their sum, and rows that are read at once; for
    # scores all of them, for the model those that it keeps.
    rows = min(n, 2048) * d + 3 * n * r if work.array else 3.5 * min(n, 2048) * d
    size = int(8 * (d * d * (work.threads + 3) + rows))
    serves = kernel.is_inner_product and work.r <= d < n and size <= work.memory
    note = "exact, one pass over the rows, PCA of their columns"
    if not serves:
        note = "for linear and cosine kernels of fewer columns than rows"
    solver = small.solver if serves else Dense()
    return Estimate(COLUMNS, solver, 0.0, size, seconds, serves, note)


def fourier(
    work: Workload, kernel, extent, engine, tol: float = AUTO_TOL, everywhere: bool = True
) -> Estimate:
    """One transform of all rows, then products of a Toeplitz matrix that do not depend on n."""
    name, d = FOURIER, work.d
    reason = why_not(kernel, d) or ("" if has("finufft") else "finufft is not installed.")
    if reason:
        return Estimate(name, None, 0.0, 0, np.inf, False, reason.rstrip("."))
    extent = np.asarray(extent, dtype=float)
    extent = extent + (room_beyond(kernel, extent, tol) if everywhere else 0.0)
    spacing, radius = choose_spacing(kernel, extent, tol), predicted_radius(kernel, d, tol)
    count = predicted_count(radius, spacing)
    if not count <= most_frequencies(engine, d):
        note = (
            f"needs {count:.2g} frequencies for tol={tol:.0e}, too many for the memory: the kernel "
            "is narrow for the range of the data or its spectrum falls slowly; landmarks instead"
        )
        return Estimate(name, None, 0.0, 0, np.inf, False, note)
    grid = float(np.prod(4 * np.floor(radius / spacing) + 1))
    carried = work.r + 16
    # Block Krylov took ten products for 16 components; each point of a transform there and back
    # takes so long a level, and one row so long in one, two and three columns.
    products = 1.4e-9 * 10 * carried * grid * np.log2(grid + 1)
    row = (8e-8, 2e-7, 9e-7)[d - 1]
    # Choosing a grid and setting up transforms take 50 milliseconds.
    seconds = 0.05 + (row * work.n + products) / work.threads
    size = int(16 * grid * (2**d + 3) * work.threads + 8 * count * 8 * carried)
    note = f"exact to {tol:.0e} of k(x, x), certified; {count:,.0f} frequencies, one pass"
    fits = size <= work.memory and work.r <= count
    return Estimate(name, grid_solver(int(count), work.r), 0.0, size, seconds, fits, note)


def grid_solver(features: int, r: int) -> Solver:
    """LAPACK for few features of a Fourier grid or many components, else block Krylov."""
    return Dense() if features <= 300 or r > features // 8 else BlockKrylov()


def client_vectors(n: int, r: int) -> int:
    """Bytes of the vectors of the exact method for rows on a cluster, which the client holds."""
    return 8 * n * LEAST_BLOCKS * (r + SPARE_VECTORS)


#: What a method costs.
Method = Callable[[Workload, Speeds], Estimate]
#: The exact methods that "auto" chooses from.
METHODS: list[Method] = [dense, arpack, partial(krylov, kept=True), partial(krylov, kept=False)]
#: The same for sparse rows that are multiplied with themselves.
ROW_METHODS: list[Method] = [dense, arpack, products, METHODS[-1]]
#: Methods that a user may ask for, listed by `plan` for comparison.
OTHERS: list[Method] = [gram_power, hebbian, landmarks, features]
