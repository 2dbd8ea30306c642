"""Choosing a method by cost, saying why, and carrying it out.

`decide` is the one decision of fits and of `mercer.plan`, by stored speeds, since only their ratios
matter; `plan` measures this machine after it, in a fraction of a second, to predict seconds.
"""

import math
from collections.abc import Callable
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from .. import bases, solvers
from .._tables import html_table, text_table
from ..bases.fourier import MOST_COLUMNS, row_range
from ..bases.points import DRAFT_SPREAD
from ..compute import TiledEngine, format_bytes, is_sparse, to_numpy
from ..exceptions import tell
from ..kernels import Kernel, Precomputed
from ..operators import in_ordinary_units
from ..solvers.base import NoConvergence
from ..solvers.block_krylov import FULL_FLOOR
from . import costs

if TYPE_CHECKING:
    from .task import FitTask

# Rows up to which a plan takes single precision for granted: to look costs more than it saves.
ROUNDED_ROWS = 2000
# Components to try first when a share of variance is asked for.
FIRST_COMPONENTS = 16
# "auto" takes a Fourier grid where it is this many times faster than all points and saves this many
# seconds: a model of all points has more to offer, such as eigenvectors.
TIMES_FASTER, SECONDS_SAVED = 2.5, 2.0
# Seconds that LAPACK may take in place of another solver without a word.
SOON = 2.0
# Rows on which the width of a kernel is judged, the affinity with all others below which most rows
# are alone, and the affinity above which two rows are alike.
WIDTH_ROWS, ALONE, ALIKE = 500, 1e-2, 1 - 1e-7
ONLY = "the only exact method for this within the memory budget"
NONE = "no exact method fits the memory budget"
# Methods whose results are near exact at best.
NEARLY = ("gram-power", "HebbianKernelPCA")
# Methods that need all rows, or tiles made of them, in one place.
IN_ONE_PLACE = ("krylov, tiles kept", "HebbianKernelPCA")


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
        Whether nobody asked for the method that was chosen.
    """

    workload: costs.Workload
    estimates: tuple[costs.Estimate, ...]
    chosen: costs.Estimate
    reason: str
    left_to_us: bool = False

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
            # Cut short, ARPACK has no components to show.
            chosen = self.estimate("krylov, tiles kept") or replace(chosen, solver=solvers.Dense())
        plan = replace(self, chosen=chosen, left_to_us=False)
        return replace(plan, chosen=replace(chosen, solver=plan.solver.cap(max_iter)))

    def fallback(self) -> costs.Estimate | None:
        """The dense method, where it is left to "auto" and could step in for an iterative one."""
        if not self.left_to_us:
            return None
        dense = self.estimate("dense") or replace(self.chosen, solver=solvers.Dense())
        return dense if dense.fits and dense is not self.chosen else None

    def with_estimate(self, estimate: costs.Estimate, taken: bool) -> "Plan":
        """The plan with one more estimate, in place of the chosen one where ``takes`` says so."""
        plan = replace(self, estimates=(*self.estimates, estimate))
        if not taken:
            return plan
        return replace(plan, chosen=estimate, reason=_why(estimate, [self.chosen, estimate]))

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Headings and rows, the chosen method marked."""
        heads = ["", "method", "kernel evaluations", "memory", "time", "note"]
        rows = []
        for e in self.estimates:
            mark = "*" if e.method == self.method else ""
            over = e.bytes > self.workload.memory and not e.fits
            time = format_seconds(e.seconds) if math.isfinite(e.seconds) else ""
            note = "over the memory budget" if over else e.note
            rows.append([mark, e.method, f"{e.evaluations:.2g}", format_bytes(e.bytes), time, note])
        return heads, rows

    @property
    def advice(self) -> str:
        """The recommendation in a sentence or two."""
        seconds = self.chosen.seconds
        about = "" if math.isnan(seconds) else f", about {format_seconds(seconds)}"
        told = f"{self.method}{about}: {self.reason}."
        quick = [e for e in self.estimates if e.approximate and e.fits]
        best = min(quick, key=lambda e: e.seconds, default=None)
        # From a minute on, an approximation that is five times faster is worth a word.
        if best is not None and seconds > 60 and best.seconds * 5 < seconds:
            error = best.certified or "and says how far from exact it is"
            told += f" {best.method} would take about {format_seconds(best.seconds)} {error}."
        return told

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


def _on_cluster(plan: Plan) -> Plan:
    """The plan for rows of a Dask collection, the best method for it marked."""
    work = plan.workload
    held = costs.client_vectors(work.n, work.r)
    note = "by pairs of chunks on the workers; the memory is that of the client"
    estimates = tuple(
        replace(e, bytes=held, fits=e.fits and held <= work.memory, note=note)
        if e.method == "krylov, matrix-free"
        else e
        for e in plan.estimates
        if e.method not in IN_ONE_PLACE
    )
    exact = [e for e in estimates if e.fits and not e.approximate and e.method not in NEARLY]
    best = min(exact, key=lambda e: e.seconds, default=plan.chosen)
    return replace(plan, estimates=estimates, chosen=best, reason="by Dask" if exact else NONE)


def after_words(size: int, memory: int, sparse: bool) -> str:
    """What can be done with an exact model whose rows, of so many bytes, are on a cluster."""
    learned = (
        "learn from all of them" if costs.fits_client(size, memory) else "from a sample, by a ridge"
    )
    learned = "need dense rows" if sparse else learned
    return (
        f"the rows stay there: transform works there, saving writes {format_bytes(size)} of them "
        f"chunk by chunk, pre-images {learned}"
    )


def workload(n, d, r, tol, kernel, engine: TiledEngine, single=True) -> costs.Workload:
    """The size of a fit, with what engine and kernel say of it."""
    fused, rank = engine.fuses(kernel), kernel.rank(d)
    return costs.Workload(
        n, d, r, engine.memory, engine.threads, tol, engine.where, fused, single, rank
    )


def decide(task: "FitTask", listing: bool = False) -> Plan:
    """What "auto" takes for a task: the one decision, of a fit and of `mercer.plan` alike.

    By stored speeds: measured ones differ from one moment to the next. With `listing` the methods
    that were not possible are estimated as well.
    """
    X, work, kernel, extent = task.array, work_of(task), task.kernel, None
    every = task.n_components is None
    if task.grid_serves and work.d <= MOST_COLUMNS and not (X is None or is_sparse(X) or every):
        extent = lambda: np.diff(row_range(X), axis=1)[:, 0]  # noqa: E731
    found = decided(work, kernel, task.engine, extent, every, task.only_points, listing)
    if X is None and not task.refusal:
        return _on_cluster(found)
    if not task.refusal or found.method == costs.COLUMNS:
        return found
    chosen = replace(
        costs.landmarks(work, costs.Speeds.typical(work.d, work.device, kernel)), fits=True
    )
    return Plan(work, (chosen,), chosen, f"landmarks: {task.refusal}", left_to_us=True)


def work_of(task: "FitTask") -> costs.Workload:
    """The size of a fit to all points."""
    (n, d), r, kernel, engine = task.rows.shape, task.n_components, task.kernel, task.engine
    n, here = n or 10 * d, engine.where == "cpu"  # rows that are not counted yet are many
    r = n if r is None else FIRST_COMPONENTS if r < 1 else min(int(r), n)
    if task.array is None or isinstance(kernel, Precomputed):
        rank = kernel.rank(d)
        return costs.Workload(
            n, d, r, engine.memory, engine.threads, task.tol, engine.where, rank=rank
        )
    single = n <= ROUNDED_ROWS or not here
    if not single:
        centered = kernel.recentered(task.pilot) if task.center else kernel
        single = bool(centered.spread(task.pilot) <= DRAFT_SPREAD)
    return workload(n, d, r, task.tol, kernel, engine, single)


def decided(
    work: costs.Workload,
    kernel: Kernel,
    engine: TiledEngine,
    extent: Callable[[], np.ndarray] | None = None,
    every: bool = False,
    only_points: bool = False,
    listing: bool = False,
) -> Plan:
    """What "auto" takes for a workload.

    Parameters
    ----------
    extent : callable or None
        Gives the range of every column, where a Fourier grid may be taken.
    every : bool
        Whether all components are wanted, and not a number of them.
    only_points : bool
        Whether nothing but all points serves.
    listing : bool
        Whether to estimate what cannot be taken.
    """
    speeds = costs.Speeds.typical(work.d, work.device, kernel)
    found, here = choose(work, speeds=speeds), work.device == "cpu" and not only_points
    if listing:
        found = replace(
            found, estimates=found.estimates + tuple(e(work, speeds) for e in costs.OTHERS)
        )
    if kernel.is_inner_product and here:
        wanted = replace(work, r=min(work.r, work.d)) if every else work
        exact, primal = found.chosen, costs.columns(wanted, kernel, speeds)
        # A little faster is not enough: square data were seen to be slower.
        faster = 1.15 * primal.seconds < exact.seconds or not exact.fits
        found = found.with_estimate(primal, primal.fits and faster)
    exact = found.chosen
    slow = exact.seconds >= SECONDS_SAVED or not exact.fits
    if extent is not None and here and (slow or listing):
        grid = costs.fourier(work, kernel, extent(), engine)
        enough = exact.seconds >= max(TIMES_FASTER * grid.seconds, SECONDS_SAVED + grid.seconds)
        found = found.with_estimate(grid, grid.fits and (enough or not exact.fits))
    if found.chosen.fits or only_points:
        return found
    # No exact method fits. At equal size landmarks are closer than features, and say how close.
    small = costs.landmarks(work, speeds)
    return replace(found, chosen=small, reason=NONE) if small.fits else found


def choose_basis(task: "FitTask") -> bases.BasisRecipe:
    """The basis asked for; "auto" is all points, or columns or a Fourier grid where faster."""
    if isinstance(task.basis, bases.BasisRecipe):
        return task.basis
    recipe = recipe_of(task.decision)
    if isinstance(recipe, bases.Landmarks):
        work = task.decision.workload
        tell(
            f"No exact method fits memory={format_bytes(work.memory)} for {work.n:,} rows and "
            f"{work.r:,} components. Landmarks are taken, and `certificate_` says how far from "
            "exact they are: raise memory, or ask for them with basis='landmarks'."
        )
    return recipe


def recipe_of(decision: Plan) -> bases.BasisRecipe:
    """The basis that a decision of "auto" is for."""
    kinds = {
        costs.COLUMNS: bases.Columns,
        costs.FOURIER: automatic_grid,
        costs.LANDMARKS: bases.Landmarks,
    }
    return kinds.get(decision.method, bases.AllPoints)()


def measured(plan: Plan, kernel: Kernel, X: Any, engine: TiledEngine) -> Plan:
    """The plan with the seconds of this machine in place of those of a typical one.

    All in the ratio of the best method on all points, so that they say what was decided by.
    """
    best = choose(plan.workload, speeds=costs.Speeds.typical(plan.workload.d, kernel=kernel)).chosen
    here = exact_estimates(plan.workload, costs.Speeds.measured(kernel, X, engine))
    pace = _named(here, best.method).seconds / best.seconds
    estimates = tuple(replace(e, seconds=pace * e.seconds) for e in plan.estimates)
    chosen = replace(plan.chosen, seconds=pace * plan.chosen.seconds)
    return replace(plan, estimates=estimates, chosen=chosen)


def automatic_grid() -> bases.FourierGrid:
    """The grid that "auto" takes, for new rows anywhere."""
    return bases.FourierGrid(tol=costs.AUTO_TOL, margin="all")


def solve(problem: Any, task: "FitTask") -> tuple[solvers.Eigenpairs, Plan]:
    """Canonical eigenpairs, as many as asked for or as hold the share of variance; the plan."""
    asked, solver = task.n_components, task.solver
    share = None if asked is None or isinstance(asked, Integral) else float(asked)
    if problem.basis.spans_data and isinstance(solver, solvers.Solver) and not solver.keeps_tiles:
        problem.basis.keep_nothing()
    r: int = FIRST_COMPONENTS if share else asked or problem.size  # type: ignore[assignment]
    while True:
        r = min(r, problem.size)
        plan = task.advised(plan_of(problem, r, task).capped(task.max_iter))
        stoppable = task.progress.callback is not None
        pairs, plan = follow(plan, problem, task.engine, task.rng, task.progress, not stoppable)
        pairs = solvers.canonical(pairs, "f" if task.single else "d", problem.slack)
        if share is None or r == problem.size or pairs.values.sum() >= share * problem.total:
            break
        r *= 2
    if share:
        pairs = pairs.leading(1 + int(np.sum(np.cumsum(pairs.values) < share * problem.total)))
    if task.drops_zeros or asked is None:
        pairs = pairs.leading(int(np.sum(pairs.values > 0)))
    return pairs, problem.basis.explained(plan) if problem.basis.spans_data else plan


def plan_of(problem: Any, r: int, task: "FitTask") -> Plan:
    """The plan of an eigenproblem that was built, with the solver asked for or the fastest."""
    solver, d, own, size = task.solver, task.rows.shape[1], problem.basis, problem.size
    given, auto = isinstance(solver, solvers.Solver), task.asked_basis == "auto"
    speeds = costs.Speeds.typical(d, task.engine.where, own.kernel)
    if own.spans_data and size == problem.count:
        if auto and not given and r == task.decision.workload.r:
            return task.decision
        return choose(replace(work_of(task), r=r), solver, speeds=speeds)
    work = workload(problem.count, d, r, task.tol, own.kernel, task.engine)
    is_grid = isinstance(own, bases.FourierBasis)
    if not given:
        solver = (
            costs.grid_solver(size, r)
            if is_grid
            else costs.small_problem(work, speeds, size).solver
        )
    if auto and not own.spans_data:
        plan = replace(task.decision, workload=work, left_to_us=not given and not is_grid)
        return replace(plan, chosen=replace(plan.chosen, solver=solver, fits=True))
    if is_grid:
        extent = np.diff(own.frequencies.box, axis=1)[:, 0] + own.frequencies.room
        chosen = costs.fourier(work, own.kernel, extent, own.engine, own.tol, everywhere=False)
    elif isinstance(own, bases.ColumnBasis):
        chosen = costs.columns(work, own.kernel, speeds)
    else:
        return choose(replace(work, n=size), solver, task.asked_basis, problem.count, speeds)
    reason = f"asked for by basis, with {size:,} {own.noun}"
    chosen = replace(chosen, solver=solver, fits=True)
    return Plan(work, (chosen,), chosen, reason, left_to_us=not given and not is_grid)


def choose(
    work: costs.Workload,
    solver: Any = "auto",
    basis: Any = "points",
    rows: int | None = None,
    speeds: costs.Speeds | None = None,
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
    speeds = speeds or costs.Speeds.typical(work.d, work.device)
    given = isinstance(solver, solvers.Solver)
    if (rows is not None and rows != work.n) or basis not in ("auto", "points"):
        m, work = work.n, replace(work, n=rows or work.n)
        chosen = costs.reduced(work, m, solver, basis, speeds)
        reason = f"asked for by basis, with {m} basis vectors"
        return Plan(work, (chosen,), chosen, reason, left_to_us=not given)
    estimates = exact_estimates(work, speeds)
    if given:
        chosen = _with_settings(work, estimates, solver, speeds)
        return Plan(work, estimates, chosen, "asked for by eigen_solver")
    possible = [e for e in estimates if e.fits]
    best = min(possible, key=lambda e: e.seconds, default=None)
    if best is None:
        # Matrix-free needs the least, if it can give that many components.
        free = _named(estimates, "krylov, matrix-free")
        few = 4 * (work.r + free.solver.oversampling) < work.n
        best = free if few else _named(estimates, "dense")
    reason = _why(best, possible)
    if not isinstance(best.solver, solvers.Dense):
        # A recipe of its own: what somebody changes in it stays with this fit.
        own = replace(best, solver=copy(best.solver))
        estimates, best = tuple(own if e is best else e for e in estimates), own
    return Plan(work, estimates, best, reason, left_to_us=True)


@lru_cache(maxsize=64)
def exact_estimates(work: costs.Workload, speeds: costs.Speeds) -> tuple[costs.Estimate, ...]:
    """What each exact method would cost; kept, since all fits of a grid search ask for the same."""
    return tuple(method(work, speeds) for method in costs.METHODS)


def _with_settings(work, estimates, solver, speeds) -> costs.Estimate:
    """The solver asked for, with the settings that the budget needs where it has none."""
    if isinstance(solver, solvers.BlockKrylov):
        kept = _named(estimates, "krylov, tiles kept")
        nearest = kept if kept.fits else _named(estimates, "krylov, matrix-free")
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
    formed = _named(estimates, "arpack, matrix formed")
    fits = formed.bytes <= work.memory and work.device == "cpu"
    if solver.form is None:
        solver = clone(solver).set_params(form=fits)
    if solver.form:
        return replace(formed, solver=solver, fits=fits)
    return costs.by_products(work, "arpack", solver)


def _named(estimates, name):
    return next(e for e in estimates if e.method == name)


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


def check_budget(plan: Plan) -> None:
    """Raise ValueError when the chosen method needs more memory than the budget."""
    chosen, work = plan.chosen, plan.workload
    if isinstance(plan.solver, solvers.BlockKrylov):
        # Matrix-free needs no budget of its own, but so many components fall to LAPACK.
        few = 4 * (work.r + plan.solver.oversampling) < work.n
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
        "eigen_solver='krylov'), or raise memory."
    )


@dataclass
class Eigenproblem:
    """An operator alone."""

    operator: Any

    @property
    def size(self) -> int:
        """Number of eigenpairs there can be."""
        return self.operator.shape[0]

    def is_zero(self) -> bool:
        """Not known of an operator alone."""
        return False


def solve_planned(problem, work: costs.Workload, rng, engine, progress, solver="auto", rows=None):
    """Eigenpairs of ``problem.operator`` by the cheapest solver, and the plan that chose it.

    Parameters
    ----------
    problem : object with ``operator``, ``size`` and ``is_zero()``
    work : Workload
        Its n is the size of the eigenproblem.
    rows : int or None
        Rows of the data, where the eigenproblem is smaller.
    """
    basis = "points" if rows is None else "landmarks"
    return follow(choose(work, solver, basis, rows), problem, engine, rng, progress)


def follow(plan: Plan, problem, engine, rng, progress, may_fall_back=True):
    """Eigenpairs by the plan's solver, and the plan as it was carried out.

    An iterative solver that has not converged gives way to LAPACK where that was left to us
    and fits the budget. Where that takes long it says so before, or keeps what is near enough
    to what was asked for. Without `may_fall_back`, since somebody may have stopped it, what it
    has found is the result; a solver that has found too little gives way all the same.
    """
    check_budget(plan)
    solver, work, lapack = plan.solver, plan.workload, plan.fallback()
    if problem.is_zero():
        return solvers.no_variance(problem.size, work.r), plan
    progress.foresee(plan.chosen.seconds, plan.advice)
    problem.operator.reserve(plan.chosen.vectors)
    operator, unit = in_ordinary_units(problem.operator)
    # LAPACK on matrices up to this size is faster with one BLAS thread: several wait for
    # each other, for seconds when another process holds a core.
    many = isinstance(solver, solvers.Dense) and problem.size > 1500
    try:
        with nullcontext() if many else engine.single_blas():
            pairs = solver.solve(operator, work.r, rng, work.tol, progress.report).scaled(unit)
    except NoConvergence:
        if lapack is None:
            raise
        reached = "had not converged"
    else:
        share = residual_share(pairs)
        # Near enough to be kept with a warning: eigenvalues are then right to about 12 digits.
        near = share <= 1e-6 and lapack is not None and lapack.seconds > SOON
        if pairs.converged or lapack is None or near or not may_fall_back:
            return pairs, plan
        reached = f"had reached a residual of {share:.1e} after {pairs.n_passes} passes"
    if lapack.seconds > SOON:
        tell(
            f"{plan.method} {reached}, and LAPACK on the whole matrix follows, which may take "
            f"{format_seconds(lapack.seconds)}. A larger tol, or basis='landmarks', avoids it."
        )
    reason = f"dense: {plan.method} {reached}"
    plan = replace(plan, chosen=lapack, reason=reason, left_to_us=False)
    return follow(plan, problem, engine, rng, progress)


def residual_share(pairs) -> float:
    """The largest residual as a share of the first eigenvalue."""
    return float(max(pairs.residuals) / max(abs(pairs.values[0]), 1e-300))


def warn_of_width(kernel: Kernel, rows: Any, n: int, alike: bool = True) -> None:
    """Say so where affinities tell nothing: most rows are near themselves alone, or all are alike.

    Some of n rows are looked at, whose affinities stand for those with all.
    """
    if kernel.metric is None:
        return
    K = to_numpy(kernel(rows, dtype=np.float64))
    others = float(np.median(K.sum(axis=1) - K.diagonal())) * (n - 1) / max(rows.shape[0] - 1, 1)
    narrow, alike = others < ALONE, alike and ALIKE < float(K.min(initial=1.0)) < 1
    if narrow or alike:
        measured = copy(kernel)
        measured.gamma = "median"
        size, what = ("large", "most have no") if narrow else ("small", "all have the same")
        tell(
            f"gamma={kernel.gamma:g} is too {size} for these data: of their rows {what} affinity "
            "with others, or nearly so, and nothing tells them apart. Give gamma='median', "
            f"{measured.resolve(rows).gamma:.2g} here, or one near it, or scale the data."
        )


def warn_unconverged(pairs, tol):
    """Say what to change where the residuals have not reached the tolerance."""
    if not pairs.converged:
        tell(
            f"Not converged after {pairs.n_passes} passes: the largest residual is "
            f"{residual_share(pairs):.1e} of the first eigenvalue, and "
            f"{max(tol, FULL_FLOOR):.1e} was asked for. Raise tol, or memory so that the whole "
            "matrix can be decomposed.",
            ConvergenceWarning,
        )


def warn_of_result(problem, result, plan: Plan, task: "FitTask", limit: str) -> None:
    """Say what the user may not expect of the result; `limit` is what bounds the components."""
    asked, size, certificate = task.n_components, problem.size, result.certificate
    if isinstance(asked, Integral) and asked > size:
        kept = result.expansion.n_components
        tell(f"n_components={asked} is more than {limit}={size}: {kept} are kept.")
    residual, solver, passes = certificate.relative_residual, plan.solver, certificate.n_passes
    by_passes = solver.ends_by_passes and task.tol == 0
    cut = task.max_iter is not None and passes >= task.max_iter
    # Of a given number of passes a result that is not rough will do.
    enough = by_passes and residual is not None and residual <= 3e-2 and not cut
    if certificate.converged or enough or task.progress.stopped:
        return
    advice = "Raise max_iter or tol."
    if by_passes and not cut:
        advice = "Give a tol, more passes to the solver, or use eigen_solver='krylov'."
    elif passes < (solver.most_passes or 0) - 1:
        advice = "More passes would not make it smaller: raise tol."
    share = "not known" if residual is None else f"{residual:.1e} of the first eigenvalue"
    tell(
        f"Not converged after {passes} passes: the largest residual is {share}, and "
        f"{max(task.tol, FULL_FLOOR):.1e} was asked for. {advice}",
        ConvergenceWarning,
    )
