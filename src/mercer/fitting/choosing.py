"""Choosing a method by cost, saying why, and carrying it out.

`choose` is the one decision of all fits and of `mercer.plan`, by stored speeds, since only their
ratios matter; `plan` measures this machine after it, in a fraction of a second, to predict seconds.
"""

import math
import time
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass, replace
from numbers import Integral
from timeit import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import eigh
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from .. import bases, solvers
from .._tables import counted, html_table, text_table
from ..bases.fourier import MOST_COLUMNS, row_range
from ..compute import TiledEngine, format_bytes, is_sparse, on_device_of, to_numpy
from ..compute.linalg import times_few
from ..exceptions import tell
from ..kernels import Kernel, Precomputed
from ..operators import in_ordinary_units
from ..solvers.base import FULL_FLOOR, NoConvergence
from . import costs

if TYPE_CHECKING:
    from .task import FitTask

# Components to try first when a share of variance is asked for.
FIRST_COMPONENTS = 16
# "auto" takes a Fourier grid where it is this many times faster than all points and saves this many
# seconds: a model of all points has more to offer, such as eigenvectors.
TIMES_FASTER, SECONDS_SAVED = 2.5, 2.0
# Where landmarks would do, a Fourier grid, which has no error, may take so many times as long.
GRID_WORTH = 4.0
# LAPACK takes the place of another solver without a warning if it needs fewer seconds than SOON; a
# fit of more than LONG seconds is a long one.
SOON, LONG = 2.0, 60.0
# Rows on which the width of a kernel is judged, the affinity with all others below which most rows
# are alone, and the affinity above which two rows are alike.
WIDTH_ROWS, ALONE, ALIKE = 500, 1e-2, 1 - 1e-7
# Rows up to which LAPACK, which takes under two seconds for them, is held at one thread of BLAS.
ONE_THREAD_ROWS = 3000
ONLY = "the only exact method for this size and memory budget"
NONE = "no exact method fits the memory budget"
# Methods whose results are near exact at best.
NEARLY = ("gram-power", "HebbianKernelPCA")


@dataclass(frozen=True)
class Plan:
    """The methods that could do a fit, the one chosen, and why.

    Attributes
    ----------
    workload : Workload
    estimates : tuple of Estimate
    chosen : Estimate
    reason : str
    left_to_us : bool
        True if the method was chosen by "auto".
    basis : BasisRecipe or None
        What the fit is written in; model files do not keep it.
    warning : str
        What the user is told before the fit; model files do not keep it.
    """

    workload: costs.Workload
    estimates: tuple[costs.Estimate, ...]
    chosen: costs.Estimate
    reason: str
    left_to_us: bool = False
    basis: Any = None
    warning: str = ""

    @property
    def method(self) -> str:
        """Name of the chosen method."""
        return self.chosen.method

    @property
    def solver(self) -> solvers.Solver:
        """The chosen solver; methods of other estimators are listed, never chosen."""
        assert self.chosen.solver is not None
        return self.chosen.solver

    def estimate(self, method: str) -> costs.Estimate | None:
        """The estimate of one of the methods, where it was made."""
        return next((e for e in self.estimates if e.method == method), None)

    def capped(self, max_iter: int | None) -> "Plan":
        """The plan with at most `max_iter` passes of its solver, then no other; itself for None."""
        if max_iter is None:
            return self
        chosen = self.chosen
        if self.left_to_us and isinstance(self.solver, solvers.Arpack):
            # Cut short, Lanczos has no components to show.
            krylov = [e for e in self.estimates if e.method.startswith("krylov")]
            chosen = krylov[0] if krylov else replace(chosen, solver=solvers.Dense())
        plan = replace(self, chosen=chosen, left_to_us=False)
        return replace(plan, chosen=replace(chosen, solver=plan.solver.cap(max_iter)))

    def fallback(self) -> costs.Estimate | None:
        """The method that is left to "auto" and could step in for one that did not converge.

        LAPACK, or block Krylov where rows are multiplied with themselves.
        """
        if not self.left_to_us:
            return None
        if self.workload.entries and isinstance(self.solver, solvers.Arpack):
            return self.estimate("krylov, matrix-free")
        dense = self.estimate("dense") or replace(self.chosen, solver=solvers.Dense())
        return dense if dense.fits and dense is not self.chosen else None

    def with_estimate(self, estimate: costs.Estimate, basis: Any = None, taken: bool = False):
        """The plan with one more estimate, that of another basis, which is chosen if `taken`."""
        plan = replace(self, estimates=(*self.estimates, estimate))
        if not taken:
            return plan
        reason = _why(estimate, [self.chosen, estimate])
        return replace(plan, chosen=estimate, reason=reason, basis=basis)

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Headings and rows, the chosen method marked."""
        heads = ["", "method", "kernel evaluations", "memory", "time", "note"]
        rows = []
        for e in self.estimates:
            mark = "*" if e.method == self.method else ""
            over = e.bytes > self.workload.memory and not e.fits
            time = format_seconds(e.seconds) if math.isfinite(e.seconds) else ""
            note = "over the memory budget" if over else e.note
            values = f"{e.evaluations:.2g}" if math.isfinite(e.evaluations) else ""
            rows.append([mark, e.method, values, format_bytes(e.bytes), time, note])
        return heads, rows

    @property
    def advice(self) -> str:
        """The recommendation in a sentence or two."""
        seconds = self.chosen.seconds
        about = "" if math.isnan(seconds) else f", about {format_seconds(seconds)}"
        advice = f"{self.method}{about}: {self.reason}."
        quick = [e for e in self.estimates if e.approximate and e.fits]
        best = min(quick, key=lambda e: e.seconds, default=None)
        # From a minute on, an approximation that is five times faster is worth a word.
        if best is not None and seconds > LONG and best.seconds * 5 < seconds:
            error = best.certified or "and states a bound on its error"
            advice += f" {best.method} would take about {format_seconds(best.seconds)} {error}."
        return advice

    def __repr__(self) -> str:
        w = self.workload
        threads = f"{w.threads} thread" + ("s" if w.threads > 1 else "")
        head = (
            f"Plan for {w.n:,} rows, {w.d} columns, {w.r} components "
            f"in {format_bytes(w.memory)} on {threads if w.device == 'cpu' else w.device}"
        )
        return "\n".join([head, f"* {self.advice}", text_table(*self.table())])

    def _repr_html_(self) -> str:
        return html_table(*self.table(), caption=self.advice)


def format_seconds(seconds: float) -> str:
    """A time as people say it: ``"0.4 s"``, ``"3 min"``, ``"2.5 hours"``."""
    if math.isnan(seconds):
        return "unknown"
    if seconds < 0.0995:
        return f"{1e3 * seconds:.2g} ms"
    for unit, name, most in ((1, "s", 100), (60, "min", 90), (3600, "hours", 48)):
        if seconds < most * unit:
            return f"{seconds / unit:.2g} {name}"
    days = seconds / 86400
    if days < 1000:
        return f"{days:,.0f} days"
    # Beyond that no number means anything.
    return f"{days / 365:,.0f} years" if days < 365 * 10_000 else "over 10,000 years"


def choose(
    task: "FitTask", r: int | None = None, problem: Any = None, listing: bool = False
) -> Plan:
    """Basis and solver of a fit, what they cost and why: the one decision of all estimators.

    By stored speeds: measured ones differ from one moment to the next. Nothing is fitted.

    Parameters
    ----------
    task : FitTask
    r : int or None
        Components, where that is not the task's number: while a share of the variance is looked
        for.
    problem : Problem or None
        The problem once it is built, whose basis then stands.
    listing : bool
        Whether methods that cannot be taken are estimated as well.
    """
    if problem is not None and not (problem.basis.spans_data and problem.size == problem.count):
        return _of_built(task, problem, task.count_asked if r is None else r)
    basis, solver, work = task.basis, task.solver, task.work
    work = work if r is None else replace(work, r=min(r, work.n))
    if problem is not None:
        work = replace(work, n=problem.size)
    speeds = costs.Speeds.typical(work.d, work.device, task.kernel)
    if isinstance(basis, bases.BasisRecipe) and not isinstance(basis, bases.AllPoints):
        unbuilt = costs.Estimate(type(basis).__name__, None, math.nan, 0, math.nan, True)
        return Plan(work, (unbuilt,), unbuilt, "asked for by basis", basis=basis)
    plan = exact_plan(work, solver, speeds)
    if listing:
        others = tuple(method(work, speeds) for method in costs.OTHERS)
        plan = replace(plan, estimates=plan.estimates + others)
    refusal = ""
    if task.array is None:
        points = task.rows.as_basis(task.kernel, task.engine, task.count_asked)
        if isinstance(points, str):
            refusal = points
        else:
            plan = points.explained(plan)
    if problem is not None:
        # More components of a problem on all points: another basis would be another problem.
        return plan
    may_take = task.candidates if basis == "auto" and work.device == "cpu" else frozenset()
    if "columns" in may_take and task.kernel.is_inner_product:
        wanted = replace(work, r=min(work.r, work.d)) if task.n_components is None else work
        exact, primal = plan.chosen, costs.columns(wanted, task.kernel, speeds)
        # A little faster is not enough: square data were seen to be slower.
        faster = 1.15 * primal.seconds < exact.seconds or not exact.fits
        plan = plan.with_estimate(primal, bases.Columns(), primal.fits and faster)
    if plan.method == costs.COLUMNS or basis != "auto":
        return plan
    many = task.most_points is not None and work.n > task.most_points
    unfit = bool(refusal) or many or not plan.chosen.fits
    if not unfit and not listing and plan.chosen.seconds < SECONDS_SAVED:
        return plan
    small = costs.landmarks(work, speeds)
    # A grid needs the range of all rows.
    array, asked = task.array, task.n_components
    has_range = array is not None and work.d <= MOST_COLUMNS and not is_sparse(array)
    if "fourier" in may_take and has_range and asked is not None:
        ranges = np.diff(row_range(array), axis=1)[:, 0]
        grid = costs.fourier(work, task.kernel, ranges, task.engine)
        seconds = plan.chosen.seconds
        enough = seconds >= max(TIMES_FASTER * grid.seconds, SECONDS_SAVED + grid.seconds)
        if many:
            enough = grid.seconds <= GRID_WORTH * small.seconds
        taken = grid.fits and (enough or (unfit and not many))
        # For new rows anywhere.
        recipe = bases.FourierGrid(tol=costs.AUTO_TOL, margin="all")
        plan = plan.with_estimate(grid, recipe, taken)
    if plan.method == costs.FOURIER or not unfit:
        return plan
    if not ("landmarks" in task.candidates and (small.fits or refusal or many)):
        return plan
    # At equal size landmarks are closer than features, and say how close.
    reason, warning = NONE, ""
    if refusal:
        reason, plan = f"landmarks: {refusal}", replace(plan, estimates=())
    elif many:
        reason = f"more than {task.most_points:,} rows: landmarks are accurate enough"
        reason = reason if task.most_points else "landmarks: the rows are not one array in memory"
    else:
        warning = (
            f"No exact method fits memory={format_bytes(work.memory)} for {work.n:,} rows and "
            f"{work.r:,} components. Landmarks are used instead; the certificate bounds their "
            "error. Raise memory for an exact method. Give basis='landmarks' to silence this."
        )
    small, basis = replace(small, fits=True), bases.Landmarks()
    plan = replace(plan, estimates=plan.estimates or (small,), chosen=small, basis=basis)
    return replace(plan, reason=reason, warning=warning, left_to_us=True)


def _of_built(task: "FitTask", problem: Any, r: int | None) -> Plan:
    """The plan of a small problem, whose size is known."""
    solver, basis, size = task.solver, problem.basis, problem.size
    r, noun, kernel = r or size, problem.basis.noun, problem.basis.kernel
    is_asked, is_grid = isinstance(solver, solvers.Solver), isinstance(basis, bases.FourierBasis)
    work = replace(task.work, n=problem.count, r=r, single=True)
    speeds = costs.Speeds.typical(work.d, work.device, kernel)
    if not is_asked:
        small = costs.small_problem(work, speeds, size).solver
        solver = costs.grid_solver(size, r) if is_grid else small
    left_to_us = not is_asked and not is_grid
    if task.basis == "auto" and not basis.spans_data:
        plan = replace(choose(task), workload=work, left_to_us=left_to_us)
        return replace(plan, chosen=replace(plan.chosen, solver=solver, fits=True))
    if is_grid:
        grid = basis.frequencies
        extent = np.diff(grid.box, axis=1)[:, 0] + grid.room
        chosen = costs.fourier(work, kernel, extent, basis.engine, basis.tol, everywhere=False)
    elif isinstance(basis, bases.ColumnBasis):
        chosen = costs.columns(work, kernel, speeds)
    else:
        chosen, noun = costs.reduced(work, size, solver, task.basis, speeds), "basis vectors"
    reason = f"asked for as basis, with {size:,} {noun}"
    chosen = replace(chosen, solver=solver, fits=True)
    return Plan(work, (chosen,), chosen, reason, left_to_us, task.basis)


def measured(plan: Plan, kernel: Kernel, X: Any, engine: TiledEngine) -> Plan:
    """The plan with the seconds of this machine in place of those of a typical one.

    All times are scaled by one factor, so the ranking does not change: what a tile of the kernel
    matrix, a product with it and a small eigenproblem take here, over what they usually take.
    """
    if isinstance(kernel, Precomputed):
        return plan
    n, size, columns = X.shape[0], 128, 24
    typical = costs.Speeds.typical(X.shape[1], kernel=kernel)
    V, S = np.ones((n, columns), np.float32), np.random.default_rng(0).random((size, size))

    def work():
        K = kernel(X, dtype=np.float32)
        times_few(K, on_device_of(V, K))
        eigh(S, subset_by_index=(size - 1, size - 1))

    with engine.single_blas():
        # What other programs take of the processor meanwhile does not count.
        seconds = min(repeat(work, timer=time.thread_time, number=1, repeat=4))
    usual = n * n * (typical.evaluate + columns * typical.multiply)
    pace = seconds / (usual + typical.decompose * costs.some_pairs(size, 1))
    estimates = tuple(replace(e, seconds=pace * e.seconds) for e in plan.estimates)
    chosen = replace(plan.chosen, seconds=pace * plan.chosen.seconds)
    return replace(plan, estimates=estimates, chosen=chosen)


def solve(problem: Any, plan: Plan, task: "FitTask") -> tuple[solvers.Eigenpairs, Plan]:
    """Canonical eigenpairs, as many as asked for or as hold the share of variance; the plan."""
    asked = task.n_components
    share = None if asked is None or isinstance(asked, Integral) else float(asked)
    r: int = FIRST_COMPONENTS if share else asked or problem.size  # type: ignore[assignment]
    while True:
        r = min(r, problem.size)
        count, work = problem.count_to_find(r), plan.workload
        if plan.chosen.solver is None or (count, problem.size) != (work.r, work.n):
            plan = choose(task, count, problem)
        pairs, plan = follow(plan.capped(task.max_iter), problem, task)
        pairs = problem.canonical(pairs, "f" if task.is_single else "d")
        wanted = r if share is None else problem.count_holding(pairs.values, share)
        if wanted <= len(pairs.values) or count == problem.size:
            break
        r *= 2
    pairs = pairs.leading(wanted)
    if task.drops_zeros or asked is None:
        pairs = pairs.leading(int(np.sum(pairs.values > 0)))
    return pairs, plan


def exact_plan(
    work: costs.Workload, solver: Any = "auto", speeds: costs.Speeds | None = None
) -> Plan:
    """The fastest solver for all points within the budget, or the one asked for."""
    speeds = speeds or costs.Speeds.typical(work.d, work.device)
    methods = costs.ROW_METHODS if work.entries else costs.METHODS
    estimates = tuple(method(work, speeds) for method in methods)
    by_name = {e.method: e for e in estimates}
    if isinstance(solver, solvers.Solver):
        chosen, reason = _with_settings(work, by_name, solver, speeds), solver.reason
        if solver.reads_rows:
            estimates, reason = (chosen,), f"{reason}, with {solver.n_passes} passes over all rows"
            if chosen.seconds > LONG:
                reason += f"; KernelPCA({costs.LANDMARKS}) is far faster"
        return Plan(work, estimates, chosen, reason, basis=bases.AllPoints())
    possible = [e for e in estimates if e.fits]
    best = min(possible, key=lambda e: e.seconds, default=None)
    if best is None:
        # Matrix-free needs the least, if it can give that many components.
        few = 4 * (work.r + solvers.BlockKrylov().oversampling) < work.n
        free = "arpack, products of rows" if work.entries else "krylov, matrix-free"
        best = by_name[free if few else "dense"]
    reason = _why(best, possible)
    return Plan(work, estimates, best, reason, left_to_us=True, basis=bases.AllPoints())


def _with_settings(work, by_name, solver, speeds) -> costs.Estimate:
    """The solver asked for, with the settings that the budget needs where it has none."""
    if solver.reads_rows:
        vectors = 8 * work.n * solver.vectors_held(work.r)
        free = work.memory - vectors if work.memory > vectors else work.memory
        # Rows that a fourth of that holds with a copy.
        block = max(1, min(solver.block, free // (4 * 2 * 8 * work.n)))
        estimate = costs.hebbian(work, speeds, solver.n_passes)
        estimate = replace(estimate, bytes=vectors + 2 * 8 * work.n * block, vectors=vectors)
        name, solver = type(solver).__name__, clone(solver).set_params(block=block)
        return replace(estimate, method=name, solver=solver, fits=True)
    if isinstance(solver, solvers.BlockKrylov):
        krylov = [e for name, e in by_name.items() if name.startswith("krylov")]
        nearest = krylov[0] if krylov[0].fits else krylov[-1]
        if solver.max_columns is None:
            solver = clone(solver).set_params(max_columns=nearest.solver.max_columns)
        return replace(nearest, solver=solver)
    if isinstance(solver, solvers.Dense):
        return costs.dense(work, speeds, solver.subset)
    if isinstance(solver, solvers.GramPower):
        solver = clone(solver).set_params(block=costs.power_block(work, solver.block))
        return replace(costs.gram_power(work, speeds), solver=solver, fits=True)
    if not isinstance(solver, solvers.Arpack):
        return costs.by_products(work, type(solver).__name__, solver)
    formed = by_name["arpack, matrix formed"]
    if work.entries and not solver.form:
        of_rows = by_name["arpack, products of rows"]
        if solver.form is False or of_rows.seconds < formed.seconds or not formed.fits:
            return replace(of_rows, solver=clone(solver).set_params(form=False), fits=True)
    fits = formed.bytes <= work.memory and work.device == "cpu"
    if solver.form is None:
        solver = clone(solver).set_params(form=fits)
    if solver.form:
        return replace(formed, solver=solver, fits=fits)
    return costs.by_products(work, "arpack", solver)


def _why(best, possible) -> str:
    """Why `best` is taken, of the exact methods that were possible."""
    others = [e for e in possible if e is not best and e.fits]
    if not best.fits:
        return "no exact method fits the memory budget; this one needs the least memory"
    if not others:
        return ONLY
    second = min(others, key=lambda e: e.seconds)
    ratio = second.seconds / max(best.seconds, 1e-12)
    return f"predicted {ratio:.2g} times faster than {second.method}"


def check_budget(plan: Plan) -> None:
    """Raise ValueError when the chosen method needs more memory than the budget."""
    chosen, work = plan.chosen, plan.workload
    by_rows = bool(work.entries) and isinstance(plan.solver, solvers.Arpack)
    if by_rows or isinstance(plan.solver, solvers.BlockKrylov):
        # Products need no budget of their own, but so many components fall to LAPACK.
        few = 4 * (work.r + solvers.BlockKrylov().oversampling) < work.n
        lapack = plan.estimate("dense")
        if few or lapack is None:
            return
        chosen = lapack
    if chosen.fits:
        return
    raise ValueError(
        f"{chosen.method} needs {format_bytes(chosen.bytes)} for "
        f"{work.n:,} rows and {work.r:,} components, and memory allows "
        f"{format_bytes(work.memory)}. Ask for fewer components "
        f"(n_components up to {max(1, work.n // 4 - 8):,} need no n x n matrix with "
        "eigen_solver='krylov'), raise memory, or take basis='landmarks'."
    )


def follow(plan: Plan, problem: Any, task: "FitTask") -> tuple[solvers.Eigenpairs, Plan]:
    """Eigenpairs by the plan's solver, and the plan as it was carried out.

    An iterative solver that has not converged gives way to LAPACK where that was left to us
    and fits the budget. Where that takes long it says so before, or keeps what is near enough
    to what was asked for. With a callback, which may have stopped it, its pairs are the result; a
    solver that has found too little gives way all the same.
    """
    check_budget(plan)
    solver, work, lapack, progress = plan.solver, plan.workload, plan.fallback(), task.progress
    if problem.is_zero():
        return solvers.no_variance(problem.size, work.r), plan
    progress.foresee(plan.chosen.seconds, plan.advice)
    # Threads of BLAS wait for each other in LAPACK: where other processes held the cores, two took
    # 6.8 s of processor time for 1,797 rows that took one 0.3 s. Beyond this they may save more.
    many = isinstance(solver, solvers.Dense) and problem.size > ONE_THREAD_ROWS
    settings = {"keeps_tiles": solver.keeps_tiles, "forms_matrix": solver.reads_rows}
    try:
        with (
            problem.session(plan.chosen.vectors, task.checkpoint, **settings) as operator,
            nullcontext() if many else task.engine.single_blas(),
        ):
            scaled, unit = in_ordinary_units(operator)
            pairs = solver.solve(scaled, work.r, task.rng, work.tol, progress.report)
            pairs = problem.completed(pairs.scaled(unit), operator, task.rng)
    except NoConvergence:
        if lapack is None:
            raise
        reached = "had not converged"
    else:
        share = residual_share(pairs)
        # Near enough to be kept with a warning: eigenvalues are then right to about 12 digits.
        near = share <= 1e-6 and lapack is not None and lapack.seconds > SOON
        if pairs.converged or lapack is None or near or progress.callback is not None:
            return pairs, plan
        reached = f"had reached a residual of {share:.1e} after {pairs.n_passes} passes"
    if lapack.seconds > SOON:
        dense = isinstance(lapack.solver, solvers.Dense)
        tell(
            f"{plan.method} {reached}. The fit goes on with "
            f"{'LAPACK on the whole matrix' if dense else lapack.method}, which may take "
            f"{format_seconds(lapack.seconds)}. A larger tol or basis='landmarks' avoids this."
        )
    reason = f"{lapack.method}: {plan.method} {reached}"
    return follow(replace(plan, chosen=lapack, reason=reason, left_to_us=False), problem, task)


def residual_share(pairs) -> float:
    """The largest residual as a share of the first eigenvalue."""
    return float(max(pairs.residuals) / max(abs(pairs.values[0]), 1e-300))


def width_rows(d: int, memory: int) -> int:
    """How many rows of d columns judge a width, so that they and their kernel keep to memory."""
    return max(2, min(WIDTH_ROWS, memory // (64 * max(d, 1)), math.isqrt(memory // 64)))


def warn_of_width(kernel: Kernel, rows: Any, n: int, alike: bool = True) -> None:
    """Warn of a width with which most rows are similar to no other, or all are alike.

    `rows` are a sample of the n rows; the affinities within it stand for those with all.
    """
    if kernel.metric is None:
        return
    K = to_numpy(kernel(rows, dtype=np.float64))
    others = float(np.median(K.sum(axis=1) - K.diagonal())) * (n - 1) / max(rows.shape[0] - 1, 1)
    narrow, alike = others < ALONE, alike and ALIKE < float(K.min(initial=1.0)) < 1
    if narrow or alike:
        measured = copy(kernel)
        measured.gamma = "median"
        size, what = ("small", "all rows look equal")
        if narrow:
            size, what = ("large", "most rows look unlike all others")
        tell(
            f"gamma={kernel.gamma:g} is too {size} for these data: to the kernel {what}. Give "
            f"gamma='median' (here {measured.resolve(rows).gamma:.2g}) or a gamma near that, or "
            "scale the data."
        )


def warn_unconverged(pairs, tol: float) -> None:
    """Say what to change where the residuals have not reached the tolerance."""
    if not pairs.converged:
        advice = "Raise tol, or raise memory so that the whole matrix fits."
        _tell_residual(residual_share(pairs), pairs.n_passes, tol, advice)


def _tell_residual(residual: float | None, passes: int, tol: float, advice: str) -> None:
    share = "not known" if residual is None else f"{residual:.1e} of the first eigenvalue"
    tell(
        f"Not converged after {counted(passes, 'pass', 'passes')}: the largest residual is "
        f"{share}, and {max(tol, FULL_FLOOR):.1e} was asked for. {advice}",
        ConvergenceWarning,
    )


def warn_of_result(result, plan: Plan, task: "FitTask", limit: str) -> None:
    """Warn of fewer components than asked for, by the name of the limit, and of no convergence."""
    asked, size, certificate = task.n_components, result.problem.size, result.certificate
    if isinstance(asked, Integral) and asked > size:
        count = result.expansion.n_components
        limit += "=" if limit.isidentifier() else ", "
        tell(f"n_components={asked} is more than {limit}{size}: {count} are kept.")
    residual, solver, passes = certificate.relative_residual, plan.solver, certificate.n_passes
    by_passes = solver.ends_by_passes and task.tol == 0
    cut = task.max_iter is not None and passes >= task.max_iter
    # With a fixed number of passes, accept residuals up to 3e-2.
    enough = by_passes and residual is not None and residual <= 3e-2 and not cut
    if certificate.converged or enough or task.progress.stopped:
        return
    advice = "Raise max_iter or tol."
    if by_passes and not cut:
        advice = "Give a tol, allow more passes, or use eigen_solver='krylov'."
    elif residual is not None and residual <= max(task.tol, FULL_FLOOR):
        advice = "An eigenvalue may have more copies than the block of the solver: widen the block."
    elif passes < (solver.most_passes or 0) - 1:
        advice = "More passes would not help: raise tol."
    _tell_residual(residual, passes, task.tol, advice)
