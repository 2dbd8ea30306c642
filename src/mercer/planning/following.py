"""From an eigenproblem to its pairs: the plan, the budget, and the dense way out."""

from dataclasses import dataclass, replace
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from ..exceptions import tell
from ..operators.scaled import ordinary
from ..solvers import Dense, no_variance
from ..solvers.base import NoConvergence
from ..solvers.block_krylov import FULL_FLOOR
from .choosing import check_budget, choose
from .types import Plan, Workload, format_seconds

# LAPACK on matrices up to this size is faster with one BLAS thread: several wait for
# each other, for seconds when another process holds a core.
SINGLE_BLAS_ROWS = 1500
# A residual, as a share of the first eigenvalue, that is near enough to what was asked for to
# be kept with a warning: eigenvalues are then right to about 12 digits.
NEAR = 1e-6
# Seconds that LAPACK may take in place of another solver without a word.
SOON = 2.0


@dataclass(frozen=True)
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


def solve_planned(problem, work: Workload, rng, engine, report, solver="auto", rows=None):
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
    return follow(choose(work, solver, basis, rows), problem, engine, rng, report)


def follow(plan: Plan, problem, engine, rng, report, may_fall_back=True):
    """Eigenpairs by the plan's solver, and the plan as it was carried out.

    An iterative solver that has not converged gives way to LAPACK where that was left to us
    and fits the budget. Where that takes long it says so before, or keeps what is near enough
    to what was asked for. Without `may_fall_back`, since somebody may have stopped it, what it
    has found is the result; a solver that has found too little gives way all the same.
    """
    check_budget(plan)
    if problem.is_zero():
        return no_variance(problem.size, plan.workload.r), plan
    dense = plan.fallback()
    try:
        pairs = run(plan, problem, engine, rng, report)
    except NoConvergence:
        if dense is None:
            raise
        reached = "had not converged"
    else:
        share = residual_share(pairs)
        near = share <= NEAR and dense is not None and dense.seconds > SOON
        if pairs.converged or dense is None or near or not may_fall_back:
            return pairs, plan
        reached = f"had reached a residual of {share:.1e} after {pairs.n_passes} passes"
    if dense.seconds > SOON:
        tell(
            f"{plan.method} {reached}, and LAPACK on the whole matrix follows, which may take "
            f"{format_seconds(dense.seconds)}. A larger tol, or basis='landmarks', avoids it."
        )
    plan = replace(plan, chosen=dense, reason=f"dense: {plan.method} {reached}")
    return run(plan, problem, engine, rng, report), plan


def residual_share(pairs) -> float:
    """The largest residual as a share of the first eigenvalue."""
    return float(max(pairs.residuals) / max(abs(pairs.values[0]), 1e-300))


def run(plan: Plan, problem, engine, rng, report):
    """Solve with BLAS held at one thread, except for large dense matrices."""
    solver, work = plan.solver, plan.workload
    problem.operator.leave(plan.chosen.vectors)
    operator, unit = ordinary(problem.operator)
    if isinstance(solver, Dense) and problem.size > SINGLE_BLAS_ROWS:
        return solver.solve(operator, work.r, rng, work.tol, report).scaled(unit)
    with engine.single_blas():
        return solver.solve(operator, work.r, rng, work.tol, report).scaled(unit)


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
