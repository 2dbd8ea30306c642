"""Choosing a method: for a fit by stored speeds, for `plan` by measured ones."""

import math
import time
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import lru_cache
from numbers import Integral
from typing import Any

import numpy as np
from scipy.linalg import eigh
from sklearn.base import clone

from ..bases.columns import has_columns
from ..bases.fourier import MOST_COLUMNS
from ..bases.fourier_basis import FourierBasis, row_range
from ..bases.points import DRAFT_SPREAD
from ..compute import TiledEngine, format_bytes, is_sparse, make_engine
from ..compute.arrays import is_dask
from ..compute.thin import times_few
from ..kernels import KERNELS, Kernel, Precomputed
from ..solvers import Arpack, BlockKrylov, Dense, GramPower, Solver
from .cluster import NONE, on_cluster, without_exact
from .columns import columns, rank_bound
from .costs import (
    ARPACK_COPIES,
    METHODS,
    SUBSPACE_COPIES,
    dense,
    gram_power,
    hebbian,
    power_block,
    some_pairs,
    tile_memory,
)
from .fourier import fourier, solver_for, takes_fourier
from .reduced import features, landmarks, reduced
from .types import ROUNDED_ROWS, Estimate, Plan, Speeds, Workload

# Times that the columns must be faster than all points: square data were seen to be slower.
COLUMNS_WORTH = 1.15
# Rows that speeds are measured on.
SHOWN_ROWS = 512
ONLY = "the only exact method for this within the memory budget"
# Methods whose results are near exact at best.
NEARLY = ("gram-power", "HebbianKernelPCA")
#: Methods that a user may ask for, listed by `plan` for comparison.
OTHERS: tuple[Callable[[Workload, Speeds], Estimate], ...] = (
    gram_power,
    hebbian,
    landmarks,
    features,
)


def plan(
    X: Any,
    n_components: int | None = 16,
    *,
    kernel: str | Kernel = "rbf",
    memory: int | str | None = None,
    device: Any = None,
    tol: float = 0.0,
    n_jobs: int | None = None,
) -> Plan:
    """What each method of kernel PCA would cost for given data, the best one marked.

    Measures the speed of this machine for a moment; the data are not decomposed.

    Parameters
    ----------
    X : array of shape (n, d), or the shape itself
        Of a Dask array the first chunks are read. The plan says what serves on a cluster, and what
        can be done with the model afterwards.
    n_components : int or None
        None for all.
    kernel : str or Kernel
    memory : int, str or None
        Byte budget, as in `KernelPCA`.
    device : None, str or torch.device
        Where to compute, as in `KernelPCA`. Speeds of this machine are measured, those of a
        GPU are typical ones.
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
    whole, X = X, shown_rows(X)
    n, d = _shape(whole)
    _check_count(n_components)
    sample = (
        np.random.default_rng(0).random((SHOWN_ROWS, d)) if isinstance(X, tuple) else X[:SHOWN_ROWS]
    )
    if isinstance(kernel, str):
        if kernel not in KERNELS:
            raise ValueError(f"kernel={kernel!r} is unknown. Choose one of {sorted(KERNELS)}.")
        kernel = KERNELS[kernel]()
    if not isinstance(kernel, Kernel):
        raise TypeError(
            f"kernel={kernel!r} is neither a name nor an object of mercer.kernels, and what a "
            "function costs is not known. Plan for a kernel like it."
        )
    kernel = kernel.resolve(sample)
    engine = make_engine(X, memory=memory, device=device, threads=n_jobs)
    r = n if n_components is None else min(n, n_components)
    where, fused = engine.where, engine.fuses(kernel)
    single = n <= ROUNDED_ROWS or where != "cpu" or isinstance(X, tuple)
    single = single or bool(kernel.spread(sample) <= DRAFT_SPREAD)
    rank = rank_bound(kernel, d)
    work = Workload(n, d, r, engine.memory, engine.threads, tol, where, fused, single, rank)
    speeds = calibrate(kernel, sample, engine) if where == "cpu" else Speeds.of_device(d)
    exact = choose(work, speeds=speeds)
    others = tuple(method(work, speeds) for method in OTHERS)
    found = with_columns(replace(exact, estimates=exact.estimates + others), kernel, speeds)
    if is_dask(whole):
        numbers = sample.data if is_sparse(sample) else sample
        return on_cluster(found, numbers.nbytes / sample.shape[0], is_sparse(sample))
    if d <= MOST_COLUMNS:
        found = with_grid(found, kernel, X, engine)
    return told(found if found.chosen.fits else without_exact(found))


def told(plan: Plan) -> Plan:
    """The plan with a reason that names exact methods of the table which would serve as well."""
    rivals = [
        e.method
        for e in plan.estimates
        if e.fits and not e.approximate and e.method not in (*NEARLY, plan.method)
    ]
    if not rivals or plan.reason not in (ONLY, NONE):
        return plan
    but = "beside" if plan.reason == ONLY else "but for"
    return replace(plan, reason=f"{plan.reason}, {but} {' and '.join(rivals)}")


def with_columns(plan: Plan, kernel: Kernel, speeds: Speeds) -> Plan:
    """The plan with the columns as a basis, chosen where "auto" would take them."""
    if not has_columns(kernel) or plan.workload.device != "cpu":
        return plan
    primal = columns(plan.workload, kernel, speeds)
    plan = replace(plan, estimates=(*plan.estimates, primal))
    if not takes_columns(primal, plan.chosen):
        return plan
    return replace(plan, chosen=primal, reason=_why(primal, [plan.chosen, primal]))


def takes_columns(primal: Estimate, exact: Estimate) -> bool:
    """Whether "auto" takes the columns in place of all points."""
    return primal.fits and (COLUMNS_WORTH * primal.seconds < exact.seconds or not exact.fits)


def with_grid(plan: Plan, kernel: Kernel, X: Any, engine: TiledEngine) -> Plan:
    """The plan with a Fourier grid, chosen where "auto" would take it: never of a shape alone."""
    work = plan.workload
    known = not isinstance(X, tuple)
    extent = np.diff(row_range(X), axis=1)[:, 0] if known else np.ones(work.d)
    grid = fourier(work, kernel, extent, engine)
    if not known and grid.fits:
        grid = replace(grid, note=f"{grid.note}; for data in the unit cube")
    plan = replace(plan, estimates=(*plan.estimates, grid))
    if not known or not takes_fourier(grid, plan.chosen):
        return plan
    return replace(plan, chosen=grid, reason=_why(grid, [plan.chosen, grid]))


def fourier_plan(work: Workload, basis: FourierBasis, rows: int, solver, automatic: bool) -> Plan:
    """The plan of a fit on a Fourier grid; its work's n is the number of features."""
    extent = np.diff(basis.frequencies.box, axis=1)[:, 0] + basis.frequencies.room
    features, work = work.n, replace(work, n=rows)
    grid = fourier(work, basis.kernel, extent, basis.engine, basis.tol, everywhere=False)
    if not isinstance(solver, Solver):
        solver = solver_for(features, work.r)
    chosen = replace(grid, solver=solver, fits=True)
    if not automatic:
        reason = f"asked for by basis, with {features:,} {basis.noun}"
        return Plan(work, (chosen,), chosen, reason)
    exact = choose(work)
    reason = _why(chosen, [exact.chosen, chosen])
    return Plan(work, (*exact.estimates, chosen), chosen, reason, left_to_us=True)


def columns_plan(work: Workload, kernel: Kernel, rows: int, solver: Any, automatic: bool) -> Plan:
    """The plan of a fit in the columns; its work's n is their number."""
    speeds, work = Speeds.typical(work.d), replace(work, n=rows)
    chosen = replace(columns(work, kernel, speeds), fits=True)
    if isinstance(solver, Solver):
        chosen = replace(chosen, solver=solver)
    if not automatic:
        reason = f"asked for by basis, with {work.d:,} columns"
        return Plan(work, (chosen,), chosen, reason, left_to_us=not isinstance(solver, Solver))
    exact = choose(work)
    reason = _why(chosen, [exact.chosen, chosen])
    return Plan(work, (*exact.estimates, chosen), chosen, reason, left_to_us=True)


def shown_rows(X: Any) -> Any:
    """Rows to measure on: the first ones of a Dask array, everything else as it is."""
    if not is_dask(X):
        return X
    if X.ndim != 2 or np.isnan(X.shape[0]):
        raise ValueError(
            "plan takes a Dask array of known shape, and its chunks have unknown lengths. Give the "
            "shape, plan((n, d)), or count the rows first with X.compute_chunk_sizes()."
        )
    ends = np.cumsum(X.chunks[0])
    blocks = int(np.searchsorted(ends, min(SHOWN_ROWS, X.shape[0]))) + 1
    rows = X.blocks[:blocks].compute()
    rows = rows.tocsr() if is_sparse(rows) else np.asarray(rows)
    return rows[:SHOWN_ROWS]


def _shape(X) -> tuple[int, int]:
    """Rows and columns of data, or as they are given."""
    shape = X if isinstance(X, tuple) else () if isinstance(X, list) else np.shape(X)
    if len(shape) != 2 or not all(isinstance(k, Integral) for k in shape):
        raise ValueError(
            "plan takes an array of rows or its shape (n, d), and got "
            f"{tuple(shape) or type(X).__name__}."
        )
    n, d = (int(k) for k in shape)
    if n < 1 or d < 1:
        raise ValueError(f"plan needs at least one row and one column, and got {(n, d)}.")
    return n, d


def _check_count(n_components) -> None:
    if n_components is None or (isinstance(n_components, Integral) and int(n_components) > 0):
        return
    raise ValueError(
        f"n_components={n_components!r}: plan needs a number of components, at least 1, or None "
        "for all. How many hold a share of the variance is known after a fit only."
    )


def choose(
    work: Workload,
    solver: Any = "auto",
    basis: str = "points",
    rows: int | None = None,
    speeds: Any = None,
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
    speeds = speeds or (Speeds.typical if work.device == "cpu" else Speeds.of_device)(work.d)
    if (rows is not None and rows != work.n) or basis not in ("auto", "points"):
        return _reduced(work, solver, basis, rows or work.n, speeds)
    if isinstance(solver, Solver):
        return _asked(work, estimates_of(work, speeds), solver)
    plan = fastest(work, speeds)
    if isinstance(plan.solver, Dense):
        return plan  # which has no settings
    # A recipe of its own: what somebody changes in it stays with this fit.
    own = replace(plan.chosen, solver=copy(plan.solver))
    estimates = tuple(own if e is plan.chosen else e for e in plan.estimates)
    return replace(plan, estimates=estimates, chosen=own)


@lru_cache(maxsize=64)
def fastest(work: Workload, speeds: Speeds) -> Plan:
    """The plan with the fastest exact method; made once for all fits of a grid search."""
    estimates = estimates_of(work, speeds)
    possible = [e for e in estimates if e.fits]
    best = min(possible, key=lambda e: e.seconds, default=_last_resort(work, estimates))
    return Plan(work, estimates, best, _why(best, possible), left_to_us=True)


def estimates_of(work: Workload, speeds: Speeds) -> tuple[Estimate, ...]:
    """What every exact method would cost."""
    return tuple(method(work, speeds) for method in METHODS)


def _asked(work, estimates, solver) -> Plan:
    """The solver asked for, with the settings that the budget needs where it has none."""
    if isinstance(solver, BlockKrylov):
        kept = _named(estimates, "krylov, tiles kept")
        nearest = kept if kept.fits else _named(estimates, "krylov, matrix-free")
        if solver.max_columns is None:
            solver = clone(solver).set_params(max_columns=nearest.solver.max_columns)
        chosen = replace(nearest, solver=solver)
    elif isinstance(solver, Dense):
        chosen = dense(work, Speeds.typical(work.d), solver.subset)
    elif isinstance(solver, Arpack):
        chosen = _arpack(work, _named(estimates, "arpack, matrix formed"), solver)
    elif isinstance(solver, GramPower):
        solver = clone(solver).set_params(block=power_block(work, solver.block))
        chosen = replace(gram_power(work, Speeds.typical(work.d)), solver=solver, fits=True)
    else:
        chosen = _by_products(work, type(solver).__name__, solver)
    return Plan(work, estimates, chosen, "asked for by eigen_solver")


def _arpack(work, formed, solver) -> Estimate:
    """ARPACK with the matrix formed, where that was asked for or fits the budget."""
    fits = formed.bytes <= work.memory and work.device == "cpu"
    if solver.form is None:
        solver = clone(solver).set_params(form=fits)
    if solver.form:
        return replace(formed, solver=solver, fits=fits)
    return _by_products(work, "arpack", solver)


def _by_products(work, name, solver) -> Estimate:
    """A method that multiplies with the matrix tile by tile, how often is not known."""
    vectors = 8 * work.n * max(ARPACK_COPIES * work.r + 40, SUBSPACE_COPIES * (work.r + 10))
    size = tile_memory(work) + vectors
    return Estimate(name, solver, math.nan, size, math.nan, True, vectors=vectors)


def _reduced(work, solver, basis, rows, speeds) -> Plan:
    """A small basis: one pass over the rows, then a dense problem of its size."""
    m, work = work.n, replace(work, n=rows)
    chosen = reduced(work, m, solver, basis, speeds)
    reason = f"asked for by basis, with {m} basis vectors"
    return Plan(work, (chosen,), chosen, reason, not isinstance(solver, Solver))


def check_budget(plan: Plan) -> None:
    """Raise ValueError when the chosen method needs more memory than the budget."""
    if isinstance(plan.solver, BlockKrylov):
        # Matrix-free needs no budget of its own, but so many components fall to LAPACK.
        few = 4 * (plan.workload.r + plan.solver.oversampling) < plan.workload.n
        dense = plan.estimate("dense")
        if few or dense is None or dense.fits:
            return
        plan = replace(plan, chosen=dense)
    if plan.chosen.fits:
        return
    raise ValueError(
        f"{plan.method} needs {format_bytes(plan.chosen.bytes)} for "
        f"{plan.workload.n:,} rows and {plan.workload.r:,} components, and memory allows "
        f"{format_bytes(plan.workload.memory)}. Ask for fewer components "
        f"(n_components up to {max(1, plan.workload.n // 4 - 8):,} need no n x n matrix with "
        "eigen_solver='krylov'), or raise memory."
    )


# Steps that LAPACK needs for 16 pairs of 256 rows.
DECOMPOSED = some_pairs(256, 16)


def calibrate(kernel, X, engine: TiledEngine) -> Speeds:
    """Speeds of this machine for this kernel, from a few tiles and a small eigenproblem."""
    if isinstance(kernel, Precomputed):
        return replace(Speeds.typical(X.shape[1]), evaluate=0.0)
    rows = X[: min(512, X.shape[0])]
    rows = rows if is_sparse(rows) else np.asarray(rows)
    pairs = kernel.pairs(rows, dtype=np.float32, store=10**9)
    n = rows.shape[0]
    whole, out = slice(0, n), np.empty((n, n), np.float32)
    V = np.ones((n, 24), np.float32)
    S, few = np.random.default_rng(0).random((256, 256)), (240, 255)
    with engine.single_blas():
        evaluate = _seconds(lambda: pairs.tile(whole, whole, out)) / n**2
        both = _seconds(lambda: (times_few(out, V), times_few(out.T, V)))
        multiply = both / (2 * n**2 * V.shape[1])
        decompose = _seconds(lambda: eigh(S, subset_by_index=few)) / DECOMPOSED
    return Speeds(evaluate, multiply, decompose)


def _seconds(work: Callable) -> float:
    """The best of three runs after a warm-up."""
    work()
    best = np.inf
    for _ in range(3):
        # What other programs take of the processor meanwhile does not count.
        start = time.thread_time()
        work()
        best = min(best, time.thread_time() - start)
    return best


def _named(estimates, name, missing=None):
    return next((e for e in estimates if e.method == name), missing)


def _last_resort(work, estimates):
    """When nothing fits: matrix-free needs the least, if it can give that many components."""
    free = _named(estimates, "krylov, matrix-free")
    few = 4 * (work.r + free.solver.oversampling) < work.n
    return free if few else _named(estimates, "dense")


def _why(best, possible) -> str:
    """Why `best` is taken, of the exact methods that were possible."""
    others = [e for e in possible if e is not best and e.fits]
    if not best.fits:
        return "no exact method fits the memory budget, and this one needs the least"
    if not others:
        return ONLY
    second = min(others, key=lambda e: e.seconds)
    ratio = second.seconds / max(best.seconds, 1e-12)
    return f"predicted {ratio:.2g} times faster than {second.method}"
