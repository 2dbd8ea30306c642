"""Planning: what each method would cost, and which one "auto" takes.

Costs are counted (kernel evaluations, multiply-adds, bytes) and turned into seconds by
three speeds. A fit uses stored speeds, since only their ratios decide; `plan` measures
them first, in a fraction of a second, to predict seconds.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh
from sklearn.base import clone

from ._tables import html_table, text_table
from .compute import LocalEngine, format_bytes, parse_bytes
from .kernels import KERNELS
from .solvers import BlockKrylov, Dense, Solver
from .solvers.block_krylov import BASIS_BLOCKS, DRAFT_FLOOR, WIDEST_BLOCK

# Products a block Krylov fit was seen to take on covtype, USPS and MNIST with 16
# components: to residual 1e-6, and the further ones down to 1e-9.
DRAFT_PASSES, CORRECTION_PASSES = 5, 4
# Double precision tiles and products against single ones.
FULL_COST = 2.3


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
    """

    evaluate: float
    multiply: float = 1.4e-11
    decompose: float = 7e-11

    @classmethod
    def typical(cls, d: int) -> "Speeds":
        """What a core of a current server does for d columns."""
        return cls(evaluate=6e-10 + 2.6e-11 * d)


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
    """

    n: int
    d: int
    r: int
    memory: int
    threads: int = 1
    tol: float = 0.0


@dataclass(frozen=True)
class Estimate:
    """What one method would cost.

    Attributes
    ----------
    method : str
    solver : Solver
        The recipe, ready to use.
    evaluations : float
        Kernel values computed in all.
    bytes : int
        Work memory.
    seconds : float
    fits : bool
        Whether the memory is within the budget.
    note : str
    """

    method: str
    solver: Solver
    evaluations: float
    bytes: int
    seconds: float
    fits: bool
    note: str = ""


@dataclass(frozen=True)
class Plan:
    """The methods that could do a fit, the one chosen, and why.

    Attributes
    ----------
    workload : Workload
    estimates : tuple of Estimate
    chosen : Estimate
    reason : str
    """

    workload: Workload
    estimates: tuple[Estimate, ...]
    chosen: Estimate
    reason: str

    @property
    def method(self) -> str:
        """Name of the chosen method."""
        return self.chosen.method

    @property
    def solver(self) -> Solver:
        """The chosen solver."""
        return self.chosen.solver

    def fallback(self) -> Estimate | None:
        """The dense method, where it is left to "auto" and could step in for an iterative one."""
        dense = self.estimates[0]
        left_to_us = self.chosen in self.estimates and self.reason.startswith(self.method)
        return dense if left_to_us and dense.fits and dense is not self.chosen else None

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Headings and rows, the chosen method marked."""
        heads = ["", "method", "kernel evaluations", "memory", "time", "note"]
        rows = []
        for estimate in self.estimates:
            mark = "*" if estimate.method == self.chosen.method else ""
            over = estimate.bytes > self.workload.memory
            note = "over the memory budget" if over else estimate.note
            rows.append(
                [
                    mark,
                    estimate.method,
                    f"{estimate.evaluations:.2g}",
                    format_bytes(estimate.bytes),
                    f"{estimate.seconds:.2g} s",
                    note,
                ]
            )
        return heads, rows

    def __repr__(self) -> str:
        w = self.workload
        head = (
            f"Plan for {w.n:,} rows, {w.d} columns, {w.r} components "
            f"in {format_bytes(w.memory)} on {w.threads} threads"
        )
        return "\n".join([head, text_table(*self.table()), f"* {self.reason}"])

    def _repr_html_(self) -> str:
        return html_table(*self.table(), caption=self.reason)


def dense(work: Workload, speeds: Speeds) -> Estimate:
    """The whole matrix and LAPACK."""
    n, r = work.n, work.r
    few = r <= n // 4
    size = 8 * n * n * (2 if few else 4 if r == n else 1) + 16 * n * r
    evaluate = FULL_COST * speeds.evaluate * n * n / 2 / work.threads
    # All vectors cost about four times the values alone, and LAPACK scales poorly.
    decompose = speeds.decompose * n**3 * (1 + 3 * r / n)
    note = "every component at once"
    return Estimate(
        "dense", Dense(), n * n / 2, size, evaluate + decompose, size <= work.memory, note
    )


def krylov(work: Workload, speeds: Speeds, kept: bool) -> Estimate:
    """Block Krylov, with all tiles kept in single precision or all made anew each pass."""
    n = work.n
    solver = BlockKrylov()
    carried = work.r + solver.oversampling
    block = min(carried, WIDEST_BLOCK)
    columns = krylov_columns(work, carried, block)
    solver.set_params(max_columns=columns)
    draft, full = DRAFT_PASSES, 0
    if work.tol < DRAFT_FLOOR:
        draft, full = draft + CORRECTION_PASSES, 2
    # Wide problems need more blocks before their last component converges.
    draft += 2 * (carried // WIDEST_BLOCK)
    tiles = n * n / 2 * ((1 if kept else draft) + FULL_COST * full)
    products = n * n * block * (draft + FULL_COST * full)
    seconds = (speeds.evaluate * tiles + speeds.multiply * products) / work.threads
    size = tile_memory(work) + (2 * n * n if kept else 0)
    name = "krylov, tiles kept" if kept else "krylov, matrix-free"
    note = "one pass over the data, the rest in memory" if kept else "memory does not grow with n^2"
    evaluations = n * n / 2 * ((1 if kept else draft) + full)
    few = 4 * carried < n
    if not few:
        note = "too many components for a Krylov method"
    fits = few and size <= work.memory
    return Estimate(name, solver, evaluations, int(size), seconds, fits, note)


def krylov_columns(work: Workload, carried: int, block: int) -> int:
    """Basis vectors that a fourth of the budget holds, at least two blocks and the kept ones."""
    room = work.memory // 4 // (8 * work.n)
    return int(max(carried + 2 * block, min(carried + BASIS_BLOCKS * block, room)))


def tile_memory(work: Workload) -> int:
    """Tiles in flight."""
    side = min(1024, work.n)
    return 4 * work.threads * (side * side + 4 * side * (work.d + 2))


#: Every method that can do a fit with all points: later ones join here.
METHODS: tuple[Callable[[Workload, Speeds], Estimate], ...] = (
    dense,
    lambda work, speeds: krylov(work, speeds, kept=True),
    lambda work, speeds: krylov(work, speeds, kept=False),
)


def plan(X, n_components=16, *, kernel="rbf", memory=None, device=None, tol=0.0, n_jobs=None):
    """What each method of kernel PCA would cost for given data, the best one marked.

    Measures the speed of this machine for a moment; the data are not decomposed.

    Parameters
    ----------
    X : array of shape (n, d), or the shape itself
    n_components : int or None
        None for all.
    kernel : str or Kernel
    memory : int, str or None
        Byte budget, as in `KernelPCA`.
    device : None or "cpu"
        Where to compute.
    tol : float
    n_jobs : int or None
        Threads; None for all cores.

    Returns
    -------
    Plan
        With a table as its repr; ``plan.method`` is the recommended method.

    Examples
    --------
    >>> import mercer
    >>> mercer.plan((100_000, 54), n_components=16, memory="2GB").method
    'krylov, matrix-free'
    """
    if device not in (None, "cpu"):
        raise ValueError(f"device={device!r} is not supported. Give None or 'cpu'.")
    n, d = X if isinstance(X, tuple) else X.shape
    sample = np.random.default_rng(0).random((512, d)) if isinstance(X, tuple) else X[:512]
    if isinstance(kernel, str):
        if kernel not in KERNELS:
            raise ValueError(f"kernel={kernel!r} is unknown. Choose one of {sorted(KERNELS)}.")
        kernel = KERNELS[kernel]()
    engine = LocalEngine(parse_bytes(memory), n_jobs)
    r = n if n_components is None else min(n, n_components)
    work = Workload(n, d, r, engine.memory, engine.threads, tol)
    return choose(work, speeds=calibrate(kernel.resolve(sample), np.asarray(sample), engine))


def choose(
    work: Workload, solver="auto", basis="points", rows: int | None = None, speeds=None
) -> Plan:
    """The plan of a fit: the fastest solver within the budget, or the one asked for.

    Parameters
    ----------
    work : Workload
        Its n is the size of the eigenproblem.
    solver : "auto" or Solver
    basis : str or BasisRecipe
        What was asked for, for the reason given.
    rows : int or None
        Rows of the data, where the eigenproblem is smaller than they are.
    speeds : Speeds or None
    """
    speeds = speeds or Speeds.typical(work.d)
    estimates = tuple(method(work, speeds) for method in METHODS)
    if (rows is not None and rows != work.n) or basis not in ("auto", "points"):
        return _reduced(work, solver, basis, rows or work.n, speeds)
    if isinstance(solver, Solver):
        return _asked(work, estimates, solver)
    possible = [e for e in estimates if e.fits] or [_last_resort(work, estimates)]
    best = min(possible, key=lambda e: e.seconds)
    return Plan(work, estimates, best, f"{best.method}: {_why(best, possible)}")


def _asked(work, estimates, solver) -> Plan:
    """The solver asked for, with the settings that the budget needs where it has none."""
    if isinstance(solver, BlockKrylov):
        kept, free = estimates[1], estimates[2]
        like = kept if kept.fits else free
        if solver.max_columns is None:
            solver = clone(solver).set_params(max_columns=like.solver.max_columns)
        chosen = replace(like, solver=solver)
    elif isinstance(solver, Dense):
        chosen = replace(estimates[0], solver=solver)
    else:
        # What it costs is not known: it meets the matrix through products alone.
        name = type(solver).__name__
        size = tile_memory(work) + 16 * work.n * work.r
        chosen = Estimate(name, solver, math.nan, size, math.nan, True)
    return Plan(work, estimates, chosen, "asked for by eigen_solver")


def _reduced(work, solver, basis, rows, speeds) -> Plan:
    """A small basis: one pass over the rows, then a dense problem of its size."""
    name = basis if isinstance(basis, str) else type(basis).__name__
    m = work.n
    if not isinstance(solver, Solver):
        solver = Dense() if work.r > m // 8 or m <= 2000 else BlockKrylov()
    seconds = rows * m * (speeds.evaluate + 2 * m * speeds.multiply) / work.threads
    chosen = Estimate(
        name, solver, rows * m, 8 * 4 * m * m, seconds, True, "one pass over the rows"
    )
    return Plan(work, (chosen,), chosen, f"asked for by basis, with {m} basis vectors")


def check_budget(plan: Plan) -> None:
    """Raise ValueError when the chosen method needs more memory than the budget."""
    if plan.chosen.fits or plan.method.startswith("krylov"):
        return
    raise ValueError(
        f"{plan.method} needs {format_bytes(plan.chosen.bytes)} for "
        f"{plan.workload.n:,} rows and {plan.workload.r:,} components, and memory allows "
        f"{format_bytes(plan.workload.memory)}. Ask for fewer components "
        f"(n_components up to {max(1, plan.workload.n // 4 - 8):,} need no n x n matrix with "
        "eigen_solver='krylov'), or raise memory."
    )


def calibrate(kernel, X, engine: LocalEngine) -> Speeds:
    """Speeds of this machine for this kernel, from a few tiles and a small eigenproblem."""
    rows = X[: min(512, X.shape[0])]
    pairs = kernel.pairs(rows, dtype=np.float32, store=10**9)
    n = rows.shape[0]
    whole, out = slice(0, n), np.empty((n, n), np.float32)
    V = np.ones((n, 24), np.float32)
    with engine.single_blas():
        evaluate = _seconds(lambda: pairs.tile(whole, whole, out)) / n**2
        multiply = _seconds(lambda: (out @ V, out.T @ V)) / (2 * n**2 * V.shape[1])
        S = np.asarray(out[:256, :256], dtype=float)
        S = S + S.T
        decompose = _seconds(lambda: eigh(S, subset_by_index=(0, 15))) / S.shape[0] ** 3
    return Speeds(evaluate, multiply, decompose)


def _seconds(work: Callable) -> float:
    """The best of three runs after a warm-up."""
    work()
    best = np.inf
    for _ in range(3):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def _named(estimates, name, missing=None):
    return next((e for e in estimates if e.method == name), missing)


def _last_resort(work, estimates):
    """When nothing fits: matrix-free needs the least, if it can give that many components."""
    free = _named(estimates, "krylov, matrix-free")
    few = 4 * (work.r + free.solver.oversampling) < work.n
    return free if few else _named(estimates, "dense")


def _why(best, possible) -> str:
    if len(possible) == 1:
        return "the only method that can do this within the memory budget"
    second = sorted(possible, key=lambda e: e.seconds)[1]
    ratio = second.seconds / max(best.seconds, 1e-12)
    return f"predicted {ratio:.2g} times faster than {second.method}"
