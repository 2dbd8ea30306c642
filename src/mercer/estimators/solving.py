"""From an eigenproblem to its pairs: the plan, the budget, and the dense way out."""

from dataclasses import dataclass, replace
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from ..planning import Workload, check_budget, choose
from ..solvers.block_krylov import FULL_FLOOR
from .base import tell
from .kernel_pca import run


@dataclass(frozen=True)
class Eigenproblem:
    """An operator alone."""

    operator: Any

    @property
    def size(self) -> int:
        """Number of eigenpairs there can be."""
        return self.operator.shape[0]


def solve_planned(problem, work: Workload, rng, engine, report, solver="auto", rows=None):
    """Eigenpairs of ``problem.operator`` by the cheapest solver, and the plan that chose it.

    An iterative solver that has not converged gives way to LAPACK where that fits the budget.

    Parameters
    ----------
    problem : object with ``operator`` and ``size``
    work : Workload
        Its n is the size of the eigenproblem.
    rows : int or None
        Rows of the data, where the eigenproblem is smaller.
    """
    basis = "points" if rows is None else "landmarks"
    plan = choose(work, solver, basis, rows)
    check_budget(plan)
    pairs = run(plan.solver, problem, engine, work.r, rng, work.tol, report)
    dense = plan.fallback()
    if pairs.converged or dense is None:
        return pairs, plan
    reason = f"dense: block Krylov had not converged after {pairs.n_passes} passes"
    pairs = run(dense.solver, problem, engine, work.r, rng, work.tol, report)
    return pairs, replace(plan, chosen=dense, reason=reason)


def warn_unconverged(pairs, tol):
    """Say what to change where the residuals have not reached the tolerance."""
    if not pairs.converged:
        share = float(max(pairs.residuals) / max(abs(pairs.values[0]), 1e-300))
        tell(
            f"Not converged after {pairs.n_passes} passes: the largest residual is {share:.1e} "
            f"of the first eigenvalue, and {max(tol, FULL_FLOOR):.1e} was asked for. Raise tol, "
            "or memory so that the whole matrix can be decomposed.",
            ConvergenceWarning,
        )
