"""The solver and the residual that a fit asks for, and warnings where they were not enough."""

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..exceptions import tell
from ..fitting.certificate import Certificate
from ..fitting.choosing import FIRST_COMPONENTS, Plan, follow, plan_of
from ..fitting.expansion import KernelExpansion
from ..solvers import SOLVERS, Solver, canonical
from ..solvers.block_krylov import DRAFT_FLOOR, FULL_FLOOR

# Residual, as a share of the first eigenvalue, from which the result of a method that ends after
# a number of passes is worth a warning.
ROUGH = 3e-2


class SolverChoice:
    """From ``eigen_solver``, ``tol`` and ``max_iter`` to eigenpairs, with a plan that says why."""

    # Parameters and results of the estimators that this one is mixed with.
    basis: Any
    n_components: Any
    eigen_solver: Any
    tol: float
    max_iter: int | None
    iterated_power: Any
    remove_zero_eig: bool
    callback: Any
    n_features_in_: int
    expansion_: KernelExpansion
    certificate_: Certificate
    plan_: Plan
    _dtype: Any

    def _solve(self, problem, engine, rng, report):
        """Canonical eigenpairs, as many as asked for or as hold the share of variance; the plan."""
        if problem.basis.spans_data and not self._keeps_tiles():
            problem.basis.keep_nothing()
        share = self._share()
        r = FIRST_COMPONENTS if share else self.n_components or problem.size
        while True:
            r = min(r, problem.size)
            pairs, plan = self._solve_for(r, problem, engine, rng, report)
            pairs = canonical(pairs, self._precision(), problem.slack)
            if share is None or r == problem.size or pairs.values.sum() >= share * problem.total:
                break
            r *= 2
        if share:
            pairs = pairs.leading(1 + int(np.sum(np.cumsum(pairs.values) < share * problem.total)))
        if self.remove_zero_eig or self.n_components is None:
            pairs = pairs.leading(int(np.sum(pairs.values > 0)))
        return pairs, plan

    def _solve_for(self, r, problem, engine, rng, report):
        d, solver = self.n_features_in_, self._solver()
        plan = plan_of(problem, r, self._tol(), d, engine, solver, self.basis)
        plan = plan.capped(self.max_iter)
        return follow(plan, problem, engine, rng, report, may_fall_back=self.callback is None)

    def _tol(self) -> float:
        """The residual to reach: single-precision data deserve no more than their own."""
        solver = self._solver()
        if self.tol == 0 and isinstance(solver, Solver) and solver.ends_by_passes:
            return 0.0
        return max(float(self.tol), DRAFT_FLOOR if self._dtype == np.float32 else 0.0)

    def _solver(self):
        """The solver asked for, with this estimator's settings where it is asked for by name."""
        if not isinstance(self.eigen_solver, str) or self.eigen_solver == "auto":
            return self.eigen_solver
        if self.eigen_solver == "randomized":
            return SOLVERS["randomized"](iterated_power=self.iterated_power)
        return SOLVERS[self.eigen_solver]()

    def _keeps_tiles(self) -> bool:
        solver = self._solver()
        return not isinstance(solver, Solver) or solver.keeps_tiles

    def _share(self) -> float | None:
        """The share of variance asked for, if it was one."""
        share = self.n_components
        return None if share is None or isinstance(share, Integral) else float(share)

    def _warn(self, problem, stopped):
        """Say what the user may not expect of the result."""
        r, n = self.expansion_.n_components, problem.size
        if isinstance(self.n_components, Integral) and self.n_components > n:
            what = self._limit(problem)
            tell(f"n_components={self.n_components} is more than {what}={n}: {r} are kept.")
        if not self._is_enough() and not stopped:
            residual = self.certificate_.relative_residual
            share = "not known" if residual is None else f"{residual:.1e} of the first eigenvalue"
            tell(
                f"Not converged after {self.certificate_.n_passes} passes: the largest residual "
                f"is {share}, and {max(self._tol(), FULL_FLOOR):.1e} was asked for. "
                f"{self._advice()}",
                ConvergenceWarning,
            )

    def _limit(self, problem) -> str:
        """What there are no more components than."""
        return "n_samples" if problem.basis.spans_data else "the rank of the basis"

    def _is_enough(self) -> bool:
        """Whether the residuals are as asked for; of a given number of passes not rough will do."""
        known, residual = self.certificate_.converged, self.certificate_.relative_residual
        if known or residual is None or self._tol() > 0:
            return known
        return self.plan_.solver.ends_by_passes and residual <= ROUGH

    def _advice(self) -> str:
        """What helps against residuals that are too large."""
        solver = self.plan_.solver
        if solver.ends_by_passes and self._tol() == 0:
            return "Give a tol, more passes to the solver, or use eigen_solver='krylov'."
        if self.certificate_.n_passes < (solver.most_passes or 0) - 1:
            return "More passes would not make it smaller: raise tol."
        return "Raise max_iter or tol."

    def _precision(self) -> str:
        return "f" if self._dtype == np.float32 else "d"
