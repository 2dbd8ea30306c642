"""The task of a fit, and the problem that is built for it, for all kinds of rows."""

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
from ..bases.points import DRAFT_SPREAD
from ..compute import TiledEngine, format_bytes, is_sparse, to_numpy
from ..exceptions import tell
from ..kernels import Kernel, Precomputed
from .checkpoint import Checkpoint
from .choosing import FIRST_COMPONENTS, Plan, choose, format_seconds, measured, solve
from .costs import Speeds, Workload, landmarks, reduced
from .functions import RangeOf, SurveyOf, Together, TrigonometricOf, sampled_numbers
from .moments import MomentsOf
from .problems import ColumnProblem, FourierProblem, GramProblem, Problem, ReducedProblem
from .remainder import ALL_ROWS, SAMPLE_ROWS, multiplies, sample_size

# Rows kept with a model whose basis is not the data, for signs, neighbors and regressions.
MODEL_ROWS = 2000
# Bytes for each entry of the pilot's Gram matrix that selectors were seen to hold: from none at
# all to 25, which is `SparseBayes`; the default holds 10.
ENTRY_BYTES = 26
# Below this size, assume float32 is safe without checking.
ROUNDED_ROWS = 2000
# Entries that sparse rows are taken to have before any was seen.
ROW_ENTRIES = 100
# Share of the budget that sampled rows may take.
ROWS_SHARE = 16
# Fits longer than this many seconds are announced; rows on which the machine's speed is measured.
LONG, MEASURED_ROWS = 60, 512
# What makes a second sample of the same rows independent of the first.
WITNESS = 0x5DEECE66D


@dataclass(frozen=True)
class FitTask:
    """The task of a fit, made by the door of an estimator and never changed.

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
    pose : callable
        ``pose(task, basis)`` is the `Problem` of these rows in a basis: what is asked of them.
    weights : array of shape (n,) or None
        How often each row counts.
    center : bool
    tol : float
        Residual to reach, as a share of the first eigenvalue.
    max_iter : int or None
        Passes of an iterative solver at most.
    drops_zeros : bool
        Whether components with an eigenvalue of zero are dropped.
    checkpoint : Checkpoint or None
    candidates : set of str
        Bases beside all points that "auto" may take: "columns", "fourier", "landmarks".
    most_points : int or None
        Rows up to which "auto" takes all points, for methods that have no use for more precision.
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
    pose: Callable[["FitTask", Any], Any]
    weights: np.ndarray | None = None
    center: bool = True
    tol: float = 0.0
    max_iter: int | None = None
    drops_zeros: bool = False
    checkpoint: Checkpoint | None = None
    candidates: frozenset[str] = frozenset(("columns", "fourier", "landmarks"))
    most_points: int | None = None
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
    def work(self) -> Workload:
        """The size of a fit to all points."""
        (n, d), asked, kernel, engine = self.rows.shape, self.n_components, self.kernel, self.engine
        n = n or 10 * d  # rows that are not counted yet are many
        r = n if asked is None else FIRST_COMPONENTS if asked < 1 else min(int(asked), n)
        by_rows = self.array is not None and bases.multiplies_rows(kernel, self.array, engine)
        in_place = self.array is None or isinstance(kernel, Precomputed) or self.pilot is None
        single = by_rows or in_place or n <= ROUNDED_ROWS or engine.where != "cpu"
        if not single:
            centered = kernel.recentered(self.pilot) if self.center else kernel
            single = bool(centered.spread(self.pilot) <= DRAFT_SPREAD)
        fused, rank = engine.fuses(kernel), kernel.rank(d)
        sizes = n, d, r, engine.memory, engine.threads, self.tol, engine.where, fused, single, rank
        entries = self.array.nnz if by_rows else 0
        if self.array is None and self.rows.sparse and kernel.is_inner_product:
            seen = self.pilot
            each = ROW_ENTRIES if seen is None else seen.nnz / max(seen.shape[0], 1)
            entries = max(1, int(n * each))
        array = self.array is not None
        judged = array and kernel.definite and not kernel.expensive
        return Workload(*sizes, entries=entries, array=array, judged=judged)

    @property
    def is_single(self) -> bool:
        """Whether results are of single precision."""
        return self.rows.dtype == np.float32

    @property
    def count_asked(self) -> int | None:
        """The number of components, where it is asked for as such."""
        return int(self.n_components) if isinstance(self.n_components, Integral) else None

    def with_pilot(self, make_kernel: Callable[[Any], Kernel]) -> "FitTask":
        """With its pilot, and the kernel with the numbers that ``make_kernel(X)`` gives it."""
        rows, (n, d) = self.rows, self.rows.shape
        if self.array is not None:
            return replace(self, pilot=rows.placed, kernel=make_kernel(rows.placed))
        basis = choose(self).basis
        looking: dict = {"title": "reading rows", "again": True, "checkpoint": self.checkpoint}
        sampled, wanted = None, basis.rows_wanted(n, self.count_asked)
        # A cluster checks its rows in this pass.
        if wanted or isinstance(basis, bases.AllPoints) or isinstance(self.kernel.gamma, str):
            # Rows whose Gram matrix fits the budget.
            memory, least = self.engine.memory, max(basis.least_rows, 2)
            room = min(isqrt(memory // ENTRY_BYTES), memory // (ROWS_SHARE * 8 * d))
            if room < least:
                need = max(ENTRY_BYTES * least**2, ROWS_SHARE * 8 * d * least)
                raise ValueError(
                    f"memory={format_bytes(memory)} holds a sample of {room:,} rows of {d:,} "
                    f"columns, and {least:,} landmarks are to be chosen from it. Give at least "
                    f"{format_bytes(need)}, or ask for fewer."
                )
            size = min(max(wanted, MODEL_ROWS), room)
            seen = rows.sum(SurveyOf(size, self.seed), **looking)
            pilot = seen.pilot
            most = model_rows(pilot, self.engine.memory)
            sampled = seen.sample.leading(most).rows if size >= most else None
        else:
            blank = np.zeros((2, d), rows.dtype)
            pilot = basis.stand_in(sparse.csr_matrix(blank) if rows.sparse else blank)
        measured = rows.sum(RangeOf(), **looking).bounds.T if self.kernel.needs_range else pilot
        kernel = make_kernel(measured)
        return replace(self, kernel=kernel, pilot=pilot, model_rows=sampled, pilot_seed=self.seed)


def model_rows(X: Any, memory: int) -> int:
    """Rows such as X for a model to keep: an eighth of the budget at most, where they are wide."""
    room = memory // (8 * 8 * X.shape[1])
    return MODEL_ROWS if is_sparse(X) else min(MODEL_ROWS, max(64, room))


def build_problem(task: FitTask, plan: Plan) -> Problem:
    """The problem of all points, or of a small basis after a pass over all rows."""
    kernel, r, recipe = task.kernel, task.count_asked, plan.basis
    if task.center and isinstance(recipe, bases.AllPoints | bases.Landmarks):
        centered = kernel.recentered(task.pilot)
        # Less their mean, equal rows would be zero, and no landmarks.
        if centered is not kernel and to_numpy(centered.diag(task.pilot)).any():
            kernel = centered
    if isinstance(recipe, bases.AllPoints):
        points = task.rows.as_basis(kernel, task.engine, r)
        if isinstance(points, str):
            raise ValueError(
                f"basis='points' cannot be used: {points}. Raise memory, or use basis='landmarks'."
            )
        return task.pose(task, points)
    if plan.warning:
        tell(plan.warning)
    recipe = recipe.settled(task.rows.shape[0], r)
    if recipe.needs_range and task.array is None:
        box = task.rows.sum(RangeOf(), "reading rows", again=True, checkpoint=task.checkpoint)
        recipe = recipe.with_range(box.bounds)

    parts = kernel, task.engine.place(task.pilot), task.engine, task.rng, r
    if recipe.error is None:
        return task.pose(task, recipe.build(*parts))

    def attempt(sized):
        problem: Any = task.pose(task, sized.build(*parts))
        lost = problem.moments.lost_energy / max(problem.moments.energy, np.finfo(float).tiny)
        return problem, problem.basis.size, lost

    # The first of doubling sizes that loses no more than asked, one pass over all rows each.
    most = task.pilot.shape[0]
    problem, lost = recipe.grow(most, attempt)
    if lost > recipe.error and most < (task.rows.shape[0] or 0):
        tell(
            f"{problem.basis.size} landmarks lose {lost:.2g} of the energy, more than the error of "
            f"{recipe.error} asked for. Raise memory: landmarks are then chosen from a larger "
            "sample."
        )
    return problem


def components_problem(
    task: FitTask, basis: bases.Basis, moments_of: Callable[..., MomentsOf] = MomentsOf
) -> Problem:
    """Kernel PCA in a basis; of a small one after a pass over all rows.

    ``moments_of(basis, whitening, weights=...)`` is the row function whose sum are the moments.
    """
    if isinstance(basis, bases.GramBasis):
        return GramProblem(basis, task.center, task.weights)
    engine, weights, n_rows = task.engine, task.weights, task.rows.shape[0]
    n_weights = None if weights is None else len(weights)
    if isinstance(basis, bases.FourierBasis):
        (sums,), sample = one_pass(task, TrigonometricOf(basis, weights=weights))
        return FourierProblem(basis, sums, task.center, n_weights, sample)
    check_moments(basis.size, basis.noun, engine)
    if isinstance(basis, bases.ColumnBasis):
        function = moments_of(basis, bases.Whitening(basis.size), weights=weights)
        (sums,), sample = one_pass(task, function)
        X = task.array if type(function) is MomentsOf else None
        moments, whitening = function.finished(sums), function.whitening
        numbers = {"n_rows": n_weights, "model_rows": sample, "X": X}
        return ColumnProblem(basis, whitening, moments, task.center, **numbers)
    if n_rows is not None:
        speeds = Speeds.typical(task.work.d, task.work.device, basis.kernel)
        seconds = reduced(task.work, basis.size, task.solver, task.basis, speeds).seconds
        about = f"about {format_seconds(seconds)} for {n_rows:,} rows."
        task.progress.foresee(seconds, f"{basis.size:,} {basis.noun}, {about}")
    function = moments_of(basis, bases.choose_whitening(basis, task.pilot, n_rows), weights=weights)
    exact, (n, d) = None, task.rows.shape
    # Rows that judge the basis: of the same pass, or of the array. No more of them than a fixed
    # number, so that memory does not grow with the rows.
    size = max(2, min(sample_size(n), engine.memory // (ROWS_SHARE * 8 * d)))
    if task.array is None:
        size = min(size, SAMPLE_ROWS if (n or 0) > ALL_ROWS else ALL_ROWS)
        (sums, seen), sample = one_pass(task, function, SurveyOf(size, task.seed ^ WITNESS))
        wanted = size if seen.count <= ALL_ROWS else min(size, SAMPLE_ROWS)
        judges = seen.sample.leading(wanted).rows
    else:
        judges = task.rows.placed
        if n > size and basis.exact_norms:
            judges = judges[sampled_numbers(n, size, task.seed ^ WITNESS)]
        # Features are judged on pairs of rows, few of which are then looked at.
        (sums,), sample = one_pass(task, function)
    moments = function.finished(sums)
    spared = task.kernel.expensive
    if task.work.judged and basis.kernel.definite and type(function) is MomentsOf:
        r = min(task.count_asked or basis.size, basis.size)
        if multiplies(n, d, basis.size, r, engine.memory):
            exact = GramProblem(task.rows.as_basis(basis.kernel, engine, r), task.center, weights)
    # What a uniform sample says holds for rows that count alike; a product with all says more.
    few = exact is None or (basis.exact_norms and n <= ALL_ROWS)
    if weights is not None or not few or spared:
        judges = None
    judged = judges, task.seed, n_weights, sample, exact
    return ReducedProblem(basis, function.whitening, moments, task.center, *judged)


def announced(plan: Plan, task: FitTask) -> Plan:
    """The plan of a fit; that of a long one with seconds of this machine and a quicker way.

    Landmarks that would take a hundredth of the time are tried, to say how close they come.
    """
    may_try = task.array is not None and "landmarks" in task.candidates
    if not may_try or not plan.chosen.seconds > LONG:
        return plan
    where, engine = task.engine.where, task.engine
    quick = landmarks(plan.workload, Speeds.typical(task.rows.shape[1], where, task.kernel))
    if where == "cpu":
        plan = measured(plan, task.kernel, task.pilot[:MEASURED_ROWS], engine)
    if quick.fits and quick.seconds < plan.chosen.seconds / 100:
        rng, quiet = np.random.default_rng(0), type(task.progress)(verbose=-1)
        trial = replace(task, basis=bases.Landmarks(), solver="auto", rng=rng, progress=quiet)
        trial = replace(trial, checkpoint=None, max_iter=None)
        start = time.perf_counter()
        chosen = choose(trial)
        problem = build_problem(trial, chosen)
        certificate = problem.result(solve(problem, chosen, trial)[0]).certificate
        likely = certificate.confidence is not None
        width = certificate.likely_widest if likely else certificate.widest
        words = f"with eigenvalues certified to {width:.1e} of the first one"
        quick = replace(quick, seconds=time.perf_counter() - start, certified=words)
    return replace(plan, estimates=(*plan.estimates, quick))


def one_pass(task: FitTask, *functions: Any) -> tuple[tuple, Any]:
    """The sums of row functions over all rows, and rows for the model to keep."""
    sample, size = task.model_rows, model_rows(task.pilot, task.engine.memory)
    if task.array is not None:
        sample = task.rows.sample(size, task.seed)
    if sample is None:
        functions = (*functions, SurveyOf(size, task.seed))
    sums = task.rows.sum(Together(functions), "summing moments", checkpoint=task.checkpoint)
    parts = sums.parts
    if sample is None:
        *parts, seen = parts
        sample = seen.sample.rows
    return tuple(parts), sample
