"""What "auto" decides of a fit: the basis before it, the solver once the eigenproblem is there."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..bases import AllPoints, BasisRecipe, ColumnBasis, Columns, FourierBasis
from ..bases.columns import has_columns
from ..bases.fourier import MOST_COLUMNS, why_not
from ..bases.fourier_basis import row_range
from ..bases.points import PointGram
from ..compute import TiledEngine, is_sparse
from ..kernels import Kernel
from .choosing import choose, columns_plan, fourier_plan, takes_columns
from .columns import columns, rank_bound
from .fourier import SECONDS_SAVED, automatic_grid, fourier, takes_fourier
from .types import ROUNDED_ROWS, Plan, Speeds, Workload

# Components to try first when a share of variance is asked for.
FIRST_COMPONENTS = 16
# Rows that are not counted yet are taken to be many: so many for each column.
UNCOUNTED = 10


@dataclass(frozen=True)
class Asked:
    """What is asked of a fit whose basis is left open.

    Attributes
    ----------
    shape : (int or None, int)
        Rows and columns.
    n_components : int, float or None
    tol : float
    kernel : Kernel
        As it was named, perhaps without numbers.
    resolved : callable
        ``resolved(X)``: the kernel with numbers from rows X.
    X : array or None
        The rows, where they are in memory.
    preimage : str or Preimage
    """

    shape: tuple[int | None, int]
    n_components: int | float | None
    tol: float
    kernel: Kernel
    resolved: Callable[[Any], Kernel]
    X: Any
    preimage: Any

    def work(self, engine: TiledEngine) -> Workload:
        """Its size."""
        (n, d), r = self.shape, self.n_components
        n = n or UNCOUNTED * d
        r = min(n, d) if r is None else FIRST_COMPONENTS if r < 1 else min(int(r), n)
        rank = rank_bound(self.kernel, d)
        return Workload(n, d, r, engine.memory, engine.threads, self.tol, rank=rank)


def automatic_basis(recipe: BasisRecipe, asked: Asked, engine: TiledEngine) -> BasisRecipe:
    """The recipe, or columns or a Fourier grid where they serve and are faster."""
    if serves_grid(asked, engine):
        return automatic_grid()
    if not has_columns(asked.kernel):
        return recipe
    work = asked.work(engine)
    primal = columns(work, asked.kernel, Speeds.typical(work.d))
    # Rows that are not in memory have no other exact method.
    takes = primal.fits
    if isinstance(recipe, AllPoints):
        takes = takes_columns(primal, choose(work).chosen)
    return Columns() if takes else recipe


def serves_grid(asked: Asked, engine: TiledEngine) -> bool:
    """Whether a Fourier grid gives what is asked for, much faster."""
    X, d = asked.X, asked.shape[1]
    if X is None or d > MOST_COLUMNS or asked.n_components is None or is_sparse(X):
        return False
    work = asked.work(engine)
    exact = choose(work).chosen
    if exact.seconds < SECONDS_SAVED or asked.preimage not in ("auto", "ridge"):
        return False
    kernel = asked.resolved(X)
    if why_not(kernel, d):
        return False
    extent = np.diff(row_range(X), axis=1)[:, 0]
    return takes_fourier(fourier(work, kernel, extent, engine), exact)


def plan_of(
    problem: Any, r: int, tol: float, d: int, engine: TiledEngine, solver: Any, basis: Any
) -> Plan:
    """The plan of an eigenproblem that was posed, with the solver asked for or the fastest.

    Parameters
    ----------
    problem : object with ``basis``, ``size`` and ``count``
    r : int
    tol : float
    d : int
        Columns of the rows.
    engine : TiledEngine
    solver : "auto" or Solver
    basis : str or BasisRecipe
        What was asked for.
    """
    own = problem.basis
    work = Workload(problem.size, d, r, engine.memory, engine.threads, tol)
    fused, rank = engine.fuses(own.kernel), rank_bound(own.kernel, d)
    work = replace(work, device=engine.where, fused=fused, rank=rank)
    if isinstance(own, PointGram) and own.size > ROUNDED_ROWS and engine.where == "cpu":
        work = replace(work, single=own.single)
    if isinstance(own, FourierBasis):
        return fourier_plan(work, own, problem.count, solver, basis == "auto")
    if isinstance(own, ColumnBasis):
        return columns_plan(work, own.kernel, problem.count, solver, basis == "auto")
    return choose(work, solver, basis, problem.count)
