"""What each method costs: kernel evaluations, bytes and seconds, counted from its steps.

The counts that depend on the spectrum, and not on the sizes alone, are those that
`benchmarks/calibrate.py` measures.
"""

from collections.abc import Callable
from dataclasses import replace

from ..solvers import Arpack, BlockKrylov, Dense, GramPower
from ..solvers.block_krylov import BASIS_BLOCKS, DRAFT_FLOOR, WIDEST_BLOCK
from ..solvers.dense import finds_all
from .types import Estimate, Speeds, Workload

# Products a block Krylov fit was seen to take on covtype, USPS and MNIST with 16
# components: to residual 1e-6, and the further ones down to 1e-9.
DRAFT_PASSES, CORRECTION_PASSES = 6, 5
# Single products of ARPACK: a few, and so many a component. Spectra that decay take two thirds of
# that where many are wanted, flat ones up to twice.
ARPACK_PRODUCTS, ARPACK_EACH = 36, 4.0
# Times that many before LAPACK takes over.
ARPACK_PATIENCE = 1.5
# Vectors at the peak of a Krylov fit: copies of the basis with its products, and blocks beside
# them. Seen for 4 to 60 components in budgets from 2 MB to 1 GB; the peak is in the corrections.
BASIS_COPIES, BLOCK_COPIES = 2.5, 10
# A tile of the least side in flight, with what kernels need beside it.
LEAST_TILE = 300_000
# Vectors of ARPACK (its own are twice as many as asked for, and 20 at least) and of subspace
# iteration, with copies of the result.
ARPACK_COPIES, SUBSPACE_COPIES = 6, 5
# What block Krylov fits of 1,000 to 4,000 rows took over what is counted.
UNCOUNTED = 1.3
# Double precision tiles and products against single ones.
FULL_COST = 2.3
# Seconds of a fit, of a pass and of a single product that no size explains.
FIT_SECONDS, PASS_SECONDS, PRODUCT_SECONDS = 1e-3, 3e-4, 1.2e-5
# Bytes of a matrix that a core reads from its cache, at twice the speed of memory.
CACHE = 36e6
# Defaults of the methods that are only listed: rows at once, passes.
ROW_BLOCK, HEBBIAN_PASSES, SPARE = 128, 10, 10


def dense(work: Workload, speeds: Speeds, subset: bool | None = None) -> Estimate:
    """The whole matrix and LAPACK, which looks for some components where room for all is short."""
    n, r = work.n, work.r
    size, copies = formed_memory(work), 16 * n * n
    every = r == n or (finds_all(n, r) if subset is None else not subset)
    if every and r < n and subset is None and size <= work.memory < size + copies:
        every, subset = False, True
    size += copies if every else 0
    # LAPACK scales poorly over threads: what they save is not counted.
    steps = all_pairs(n) if every else some_pairs(n, r)
    seconds = FIT_SECONDS + form(work, speeds) + speeds.decompose * steps
    note, fits = "every component at once", size <= work.memory
    vectors = size - beside_matrix(work)
    return Estimate("dense", Dense(subset), n * n / 2, size, seconds, fits, note, vectors=vectors)


def all_pairs(n: int) -> float:
    """Steps of LAPACK for all eigenpairs, by divide and conquer."""
    return 2.3 * n**3 + 750 * n**2


def some_pairs(n: int, r: int) -> float:
    """Steps of LAPACK for r eigenpairs, one after the other and each orthogonal to the last."""
    return n**3 + 200 * n**2 + 6500 * r * n + 6 * r * r * n


def arpack(work: Workload, speeds: Speeds) -> Estimate:
    """The whole matrix and single products with it."""
    n, r = work.n, work.r
    size = formed_memory(work) + 16 * n * r
    read = speeds.read * (0.5 if 8 * n * n < CACHE else 1.0)
    # ARPACK keeps its vectors, twice as many as asked for, orthogonal after every product.
    each = PRODUCT_SECONDS + n * n * read + 2e-9 * n * max(r, 10)
    count = ARPACK_PRODUCTS + ARPACK_EACH * r
    seconds = FIT_SECONDS + form(work, speeds) + count * each
    # Of a matrix of lower rank single vectors find the other components by rounding alone.
    few, note = 4 * r < n and r <= (work.rank or n), "few components of few rows"
    if not few:
        note = "too many components for a Krylov method"
    # What takes longer than LAPACK is left to it: no matrix of low rank has so many components.
    most = max(ARPACK_PATIENCE * count, speeds.decompose * some_pairs(n, r) / each)
    solver = Arpack(restarts(most, r), form=True, to_rounding=True)
    fits = few and size <= work.memory and work.device == "cpu"
    return Estimate(
        "arpack, matrix formed",
        solver,
        n * n / 2,
        size,
        seconds,
        fits,
        note,
        vectors=size - beside_matrix(work),
    )


def restarts(products: float, r: int) -> int:
    """Restarts of ARPACK that so many products make, with the vectors that SciPy gives it."""
    return 1 + int(products / max(r + 1, 20 - r))


def small_problem(work: Workload, speeds: Speeds) -> Estimate:
    """The eigenproblem of a matrix that is there already, such as moments."""
    speeds = replace(speeds, evaluate=0.0)
    return min((dense(work, speeds), arpack(work, speeds)), key=lambda e: (not e.fits, e.seconds))


def form(work: Workload, speeds: Speeds) -> float:
    """Seconds for the matrix in double precision: half of its entries, mirrored and centered."""
    n = work.n
    return (FULL_COST * speeds.evaluate / 2 + 4 * speeds.read) * n * n / work.threads


def formed_memory(work: Workload) -> int:
    """The matrix, the rows prepared for it, and the vectors that are found with their copies."""
    return 8 * work.n * (work.n + 3 * work.r) + beside_matrix(work)


def beside_matrix(work: Workload) -> int:
    """The rows prepared for a matrix that is formed, and a tile of it in flight."""
    return 16 * work.n * (work.d + 2) + LEAST_TILE


def krylov(work: Workload, speeds: Speeds, kept: bool) -> Estimate:
    """Block Krylov, with all tiles kept in single precision or all made anew each pass."""
    n = work.n
    carried = work.r + BlockKrylov().oversampling
    block = min(carried, WIDEST_BLOCK)
    columns = krylov_columns(work, carried, block)
    solver = BlockKrylov(max_columns=columns)
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
    seconds += small_steps(n, block, columns, draft, speeds)
    seconds = FIT_SECONDS + UNCOUNTED * seconds
    tiles_size = tile_memory(work) + ((2 if work.single else 4) * n * n if kept else 0)
    # Prepared rows of both precisions.
    rows = min(24 * n * (work.d + 2), 3 * work.memory // 10)
    vectors = 8 * n * krylov_vectors(carried, block, columns)
    size = tiles_size + rows + vectors
    name = "krylov, tiles kept" if kept else "krylov, matrix-free"
    note = "one pass over the data, the rest in memory" if kept else "memory does not grow with n^2"
    evaluations = n * n / 2 * ((1 if kept else draft) + full)
    few = 4 * carried < n
    if not few:
        note = "too many components for a Krylov method"
    if kept and work.fused:
        note = "tiles are made faster than memory gives them back"
    fits = few and tiles_size + vectors <= work.memory and not (kept and work.fused)
    return Estimate(name, solver, evaluations, int(size), seconds, fits, note, vectors=vectors)


def small_steps(n: int, block: int, columns: int, passes: int, speeds: Speeds) -> float:
    """Seconds of orthogonalisation and of the projected eigenproblems, on one thread."""
    seconds = 0.0
    for done in range(1, passes + 1):
        q = min(done * block, columns)
        orthogonal = 8 * n * q * block * FULL_COST * speeds.multiply
        seconds += PASS_SECONDS + orthogonal + 4 * speeds.decompose * q**3
    return seconds


def krylov_columns(work: Workload, carried: int, block: int) -> int:
    """Basis vectors that half of the budget holds, at least two blocks and the kept ones."""
    fixed = krylov_vectors(carried, block, 0)
    room = (work.memory // 2 // (8 * work.n) - fixed) / BASIS_COPIES
    return int(max(carried + 2 * block, min(carried + BASIS_BLOCKS * block, room)))


def krylov_vectors(carried: int, block: int, columns: int) -> int:
    """Vectors of length n that a Krylov fit holds at its peak, the result among them."""
    return int(BASIS_COPIES * columns + BLOCK_COPIES * max(carried, block))


def tile_memory(work: Workload) -> int:
    """Tiles in flight."""
    side = min(1024, work.n, max(192, -(-work.n // (4 * work.threads))))
    return 4 * work.threads * (side * side + 4 * side * (work.d + 2))


def gram_power(work: Workload, speeds: Speeds) -> Estimate:
    """One pass over whole rows between a product for the means and one for the residuals."""
    n, q = work.n, work.r + SPARE
    steps = n * n * (2 * ROW_BLOCK + 5 * q)
    seconds = FULL_COST * (speeds.evaluate * 2 * n * n + speeds.multiply * steps) / work.threads
    size = 8 * n * (3 * q + 3 * power_block(work, ROW_BLOCK))
    vectors = 8 * n * 3 * q
    note = "near exact in two readings of the kernel where the spectrum decays"
    return Estimate(
        "gram-power",
        GramPower(),
        2 * n * n,
        size,
        seconds,
        size <= work.memory,
        note,
        vectors=vectors,
    )


def power_block(work: Workload, block: int) -> int:
    """Rows at once that half of the budget holds three times; 1 is another algorithm."""
    return 1 if block == 1 else max(2, min(block, work.memory // (2 * 3 * 8 * work.n)))


def hebbian(work: Workload, speeds: Speeds) -> Estimate:
    """Ten passes over whole rows, a start and a read-out."""
    n, q = work.n, work.r + SPARE
    readings = HEBBIAN_PASSES + 1
    seconds = FULL_COST * readings * n * n * (speeds.evaluate + 3 * q * speeds.multiply)
    size = 8 * n * (6 * q + ROW_BLOCK)
    note = "for data that arrive or drift; on fixed data the others are better"
    return Estimate(
        "HebbianKernelPCA",
        None,
        readings * n * n,
        size,
        seconds / work.threads,
        size <= work.memory,
        note,
    )


#: The exact methods that "auto" chooses from.
METHODS: tuple[Callable[[Workload, Speeds], Estimate], ...] = (
    dense,
    arpack,
    lambda work, speeds: krylov(work, speeds, kept=True),
    lambda work, speeds: krylov(work, speeds, kept=False),
)
