"""The task of a fit, and the eigenproblem that is built for it, for all kinds of rows."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import isqrt
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse

from .. import bases
from ..bases.base import check_moments
from ..compute import TiledEngine, format_bytes, is_sparse
from ..exceptions import tell
from ..kernels import Kernel
from .checkpoint import Checkpoint
from .choosing import Plan, decide, format_seconds, measured, recipe_of, solve, work_of
from .costs import Speeds, landmarks, reduced
from .functions import RangeOf, SurveyOf, Together, TrigonometricOf
from .moments import MomentsOf
from .problems import ColumnProblem, FourierProblem, GramProblem, Problem, ReducedProblem
from .remainder import ALL_ROWS, SAMPLE_ROWS, multiplies, sample_size
from .sampling import sampled_numbers

# Rows kept with a model whose basis is not the data, for signs, neighbors and regressions.
MODEL_ROWS = 2000
# Bytes for each entry of the pilot's Gram matrix that selectors were seen to hold: from none at
# all to 25, which is `SparseBayes`; the default holds 10.
ENTRY_BYTES = 26
# Share of the budget that sampled rows may take.
ROWS_SHARE = 16
# Seconds of a fit from which on it is foretold; rows that the speed of this machine is measured on.
LONG, MEASURED_ROWS = 60, 512
# What makes a second sample of the same rows independent of the first.
WITNESS = 0x5DEECE66D


@dataclass(frozen=True)
class FitTask:
    """What a fit is to do; made at the door of an estimator, and never changed.

    Attributes
    ----------
    rows : Rows
    array : array or None
        All rows, where they are in memory.
    kernel : Kernel
        With numbers for its parameters once there is a pilot.
    basis : "auto" or BasisRecipe
    solver : "auto" or Solver
    n_components : int, float or None
        A number, a share of the variance, or all.
    engine : TiledEngine
    rng : numpy.random.Generator
    progress : PassBar
    weights : array of shape (n,) or None
        How often each row counts.
    center : bool
    tol : float
        Residual to reach, as a share of the first eigenvalue.
    max_iter : int or None
        Passes of an iterative solver at most.
    single : bool
        Whether results are of single precision.
    drops_zeros : bool
        Whether components with an eigenvalue of zero are dropped.
    checkpoint : Checkpoint or None
    check_basis : callable
        ``check_basis(basis)`` raises before the work where what follows the fit could not be done.
    moments_of : callable
        ``moments_of(basis, whitening, weights=...)``: the row function whose sum are the moments.
    asked_basis : str or BasisRecipe
        What `basis` was asked for, for the words of the plan.
    only_points : bool
        Whether "auto" takes nothing but all points.
    grid_serves : bool
        Whether "auto" may take a Fourier grid, which has pre-images by regression only.
    refusal : str
        Why all points cannot be the basis, where they cannot.
    pilot : array
        Rows in memory that the basis and the width of the kernel are chosen from: all of them, or
        a sample and the row of largest norm. Two rows of zeros where nothing depends on them.
    model_rows : array or None
        Uniform rows for the model to keep, where the pilot was sampled.
    pilot_seed : int or None
        What the pilot was sampled by.
    """

    rows: Any
    array: Any
    kernel: Kernel
    basis: Any
    solver: Any
    n_components: int | float | None
    engine: TiledEngine
    rng: np.random.Generator
    progress: Any
    weights: np.ndarray | None = None
    center: bool = True
    tol: float = 0.0
    max_iter: int | None = None
    single: bool = False
    drops_zeros: bool = False
    checkpoint: Checkpoint | None = None
    check_basis: Callable[[Any], Any] = lambda basis: None
    moments_of: Callable[..., MomentsOf] = MomentsOf
    asked_basis: Any = "auto"
    only_points: bool = False
    grid_serves: bool = True
    refusal: str = ""
    pilot: Any = None
    model_rows: Any = None
    pilot_seed: int | None = None

    @cached_property
    def seed(self) -> int:
        """What rows are sampled by; drawing it does not advance the generator."""
        if self.pilot_seed is not None:
            return self.pilot_seed
        return int(self.rng.spawn(1)[0].integers(2**62))

    @cached_property
    def decision(self) -> Plan:
        """What "auto" takes."""
        return decide(self)

    @property
    def count_asked(self) -> int | None:
        """The number of components, where it is asked for as such."""
        return int(self.n_components) if isinstance(self.n_components, Integral) else None

    def advised(self, plan: Plan) -> Plan:
        """The plan; that of a long fit with seconds of this machine and with landmarks beside it.

        Landmarks that would take a hundredth of the time are tried, to say how close they come.
        """
        if self.array is None or self.only_points or not plan.chosen.seconds > LONG:
            return plan
        here, engine = self.engine.where, self.engine
        quick = landmarks(plan.workload, Speeds.typical(self.rows.shape[1], here, self.kernel))
        if here == "cpu":
            plan = measured(plan, self.kernel, self.pilot[:MEASURED_ROWS], engine)
        if quick.fits and quick.seconds < plan.chosen.seconds / 100:
            own = {"rng": np.random.default_rng(0), "progress": type(self.progress)()}
            own |= {"basis": bases.Landmarks(), "solver": "auto", "asked_basis": "landmarks"}
            task = replace(self, checkpoint=None, max_iter=None, **own)
            start = time.perf_counter()
            problem = build_problem(task, task.basis)
            found = problem.result(solve(problem, task)[0]).certificate
            width = found.widest if found.confidence is None else found.likely_widest
            words = f"with eigenvalues certified to {width:.1e} of the first one"
            quick = replace(quick, seconds=time.perf_counter() - start, certified=words)
        return replace(plan, estimates=(*plan.estimates, quick))

    def with_pilot(self, make_kernel: Callable[[Any], Kernel]) -> "FitTask":
        """With its pilot, and the kernel with the numbers that ``make_kernel(X)`` gives it."""
        rows, (n, d), basis = self.rows, self.rows.shape, self.basis
        if self.array is not None:
            return replace(self, pilot=rows.placed, kernel=make_kernel(rows.placed))
        if isinstance(basis, str):
            basis = recipe_of(self.decision)
        looking: dict = {"title": "looking at rows", "again": True, "checkpoint": self.checkpoint}
        kept, wanted = None, basis.rows_wanted(n, self.count_asked)
        # A cluster checks its rows in this pass.
        if wanted or isinstance(basis, bases.AllPoints) or isinstance(self.kernel.gamma, str):
            size = min(max(wanted, MODEL_ROWS), self._pilot_room(basis, d))
            seen = rows.sum(SurveyOf(size, self.seed), **looking)
            pilot = seen.pilot
            most = model_rows(pilot, self.engine.memory)
            kept = seen.sample.leading(most).rows if size >= most else None
        else:
            blank = np.zeros((2, d), rows.dtype)
            pilot = basis.stand_in(sparse.csr_matrix(blank) if rows.sparse else blank)
        measured = rows.sum(RangeOf(), **looking).bounds.T if self.kernel.needs_range else pilot
        kernel = make_kernel(measured)
        return replace(
            self, basis=basis, kernel=kernel, pilot=pilot, model_rows=kept, pilot_seed=self.seed
        )

    def _pilot_room(self, recipe: bases.BasisRecipe, d: int) -> int:
        """Rows whose Gram matrix fits the budget."""
        memory = self.engine.memory
        room = min(isqrt(memory // ENTRY_BYTES), memory // (ROWS_SHARE * 8 * d))
        least = max(recipe.least_rows, 2)
        if room < least:
            need = max(ENTRY_BYTES * least**2, ROWS_SHARE * 8 * d * least)
            raise ValueError(
                f"memory={format_bytes(memory)} holds a sample of {room:,} rows of {d:,} columns, "
                f"and {least:,} landmarks are to be chosen from it. Give at least "
                f"{format_bytes(need)}, or ask for fewer."
            )
        return room


def model_rows(X: Any, memory: int) -> int:
    """Rows such as X for a model to keep: an eighth of the budget at most, where they are wide."""
    room = memory // (8 * 8 * X.shape[1])
    return MODEL_ROWS if is_sparse(X) else min(MODEL_ROWS, max(64, room))


def build_problem(task: FitTask, recipe: bases.BasisRecipe) -> Problem:
    """The n x n problem of all points, or the m x m problem of a small basis."""
    kernel, r = task.kernel, task.count_asked
    if task.center and isinstance(recipe, bases.AllPoints | bases.Landmarks):
        kernel = kernel.recentered(task.pilot)
    if isinstance(recipe, bases.AllPoints):
        basis = task.rows.gram(kernel, task.engine, r)
        basis.keep_in(task.checkpoint)
        task.check_basis(basis)
        return GramProblem(basis, task.center, task.weights)
    recipe = recipe.settled(task.rows.shape[0], r)
    if recipe.needs_range and task.array is None:
        box = task.rows.sum(RangeOf(), "looking at rows", again=True, checkpoint=task.checkpoint)
        recipe = recipe.with_range(box.bounds)
    if recipe.error is None:
        return small_problem(task, recipe, kernel)

    def attempt(sized):
        problem: Any = small_problem(task, sized, kernel)
        lost = problem.moments.lost_energy / max(problem.moments.energy, np.finfo(float).tiny)
        return problem, problem.basis.size, lost

    # The first of doubling sizes that loses no more than asked, one pass over all rows each.
    most = task.pilot.shape[0]
    problem, lost = recipe.grow(most, attempt)
    if lost > recipe.error and most < (task.rows.shape[0] or 0):
        tell(
            f"{problem.basis.size} landmarks lose {lost:.2g} of the energy, and "
            f"error={recipe.error} was asked for. Raise memory, for a larger sample to choose them "
            "from."
        )
    return problem


def small_problem(task: FitTask, recipe: bases.BasisRecipe, kernel: Kernel) -> Problem:
    """The m x m problem of a basis that is built from the pilot, after one pass over all rows."""
    engine, weights = task.engine, task.weights
    basis = recipe.build(kernel, engine.place(task.pilot), engine, task.rng, task.count_asked)
    task.check_basis(basis)
    n_rows = None if weights is None else len(weights)
    if isinstance(basis, bases.FourierBasis):
        (sums,), kept = one_pass(task, TrigonometricOf(basis, weights=weights))
        return FourierProblem(basis, sums, task.center, n_rows, kept)
    check_moments(basis.size, basis.noun, engine)
    if isinstance(basis, bases.ColumnBasis):
        function = task.moments_of(basis, bases.Whitening(basis.size), weights=weights)
        (sums,), kept = one_pass(task, function)
        moments, X = function.finished(sums), task.array if type(function) is MomentsOf else None
        given = basis, function.whitening, moments, task.center
        return ColumnProblem(*given, n_rows=n_rows, model_rows=kept, X=X)
    if task.rows.shape[0] is not None:
        work = work_of(task)
        speeds = Speeds.typical(work.d, work.device, kernel)
        seconds = reduced(work, basis.size, task.solver, recipe, speeds).seconds
        words = f"{basis.size:,} {basis.noun}, about {format_seconds(seconds)} for {work.n:,} rows."
        task.progress.foresee(seconds, words)
    whitening = bases.choose_whitening(basis, task.pilot, task.rows.shape[0])
    function = task.moments_of(basis, whitening, weights=weights)
    moments, judges, kept = witnessed(task, function)
    exact, (n, d) = None, task.rows.shape
    if task.array is not None and type(function) is MomentsOf and kernel.definite:
        r = min(task.count_asked or basis.size, basis.size)
        if multiplies(n, d, basis.size, r, engine.memory):
            gram = task.rows.gram(basis.kernel, engine, r)
            gram.keep_nothing()
            exact = GramProblem(gram, task.center, weights)
    # What a uniform sample says holds for rows that count alike; a product with all says more.
    few = exact is None or (basis.exact_norms and n <= ALL_ROWS)
    if weights is not None or not few:
        judges = None
    found = basis, whitening, moments, task.center, judges
    return ReducedProblem(*found, task.seed, n_rows, kept, exact)


def witnessed(task: FitTask, function: MomentsOf) -> tuple[Any, Any, Any]:
    """Moments, rows of the same pass that judge the basis, rows to keep."""
    rows, (n, d), memory = task.rows, task.rows.shape, task.engine.memory
    size = max(2, min(sample_size(n), memory // (ROWS_SHARE * 8 * d)))
    if task.array is None:
        # No more than a fixed number, so that memory does not grow with the rows.
        size = min(size, SAMPLE_ROWS if (n or 0) > ALL_ROWS else ALL_ROWS)
        (sums, seen), kept = one_pass(task, function, SurveyOf(size, task.seed ^ WITNESS))
        wanted = size if seen.count <= ALL_ROWS else min(size, SAMPLE_ROWS)
        return function.finished(sums), seen.sample.leading(wanted).rows, kept
    some = rows.placed
    if n > size and function.basis.exact_norms:
        some = some[sampled_numbers(n, size, task.seed ^ WITNESS)]
    # Features are judged on pairs of rows, few of which are then looked at.
    (sums,), kept = one_pass(task, function)
    return function.finished(sums), some, kept


def one_pass(task: FitTask, *functions: Any) -> tuple[tuple, Any]:
    """The sums of row functions over all rows, and rows for the model to keep."""
    kept, size = task.model_rows, model_rows(task.pilot, task.engine.memory)
    if task.array is not None:
        kept = task.rows.sample(size, task.seed)
    if kept is None:
        functions = (*functions, SurveyOf(size, task.seed))
    function = functions[0] if len(functions) == 1 else Together(functions)
    found = task.rows.sum(function, "summing moments", checkpoint=task.checkpoint)
    parts = (found,) if len(functions) == 1 else found.parts
    if kept is None:
        *parts, seen = parts
        kept = seen.sample.rows
    return tuple(parts), kept
