"""What spectral methods share: affinities by name, their eigenproblem, functions of new rows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .. import bases
from ..bases.fourier import row_range, why_not
from ..compute import format_bytes, is_sparse, restore
from ..compute.arrays import Array
from ..exceptions import tell
from ..fitting.choosing import (
    WIDTH_ROWS,
    automatic_grid,
    solve_planned,
    warn_of_width,
    warn_unconverged,
)
from ..fitting.costs import Workload, fourier, grid_solver
from ..fitting.problems import thinned
from ..kernels import KERNELS, Hollow, Kernel, Precomputed
from ..progress import PassBar
from ..solvers import SOLVERS, Eigenpairs, Solver
from ..solvers.block_krylov import DRAFT_FLOOR
from ..spectral.graph import GraphArpack, NeighborGraph
from ..spectral.problems import spectral_problem
from ._checks import check_gram
from ._door import Door
from ._parameters import AT_LEAST_1, NOT_NEGATIVE, StrOptions

# Rows up to which "auto" is the exact method: seconds on two cores. Beyond, landmarks take as
# long as k-means, and the exact method grows with the square.
AUTO_POINTS = 20_000
#: Affinities that are a graph of nearest neighbors, and whether they take distances.
NEIGHBORS = {"nearest_neighbors": False, "precomputed_nearest_neighbors": True}
# Transforms of all rows that a grid takes, in units of that of a fit, and seconds of one core that
# landmarks take for a row: three passes of what was measured for 500 of them.
GRID_PASSES, LANDMARK_SECONDS = 3, 5e-5
# Bytes that a graph was seen to take for each neighbor of a row, what finds and solves it included.
GRAPH_BYTES = 88


@dataclass(eq=False, repr=False, kw_only=True)
class SpectralInput(Door):
    """Affinities, their normalized eigenproblem and the functions that solve it.

    With the parameters that all spectral methods have.
    """

    _parameter_constraints: ClassVar[dict] = Door._parameter_constraints | {
        "affinity": [StrOptions({*KERNELS, *NEIGHBORS}), callable, Kernel],
        "n_neighbors": [AT_LEAST_1],
        "eigen_solver": [*Door._parameter_constraints["eigen_solver"], None],
        "eigen_tol": [NOT_NEGATIVE, StrOptions({"auto"})],
    }

    affinity: str | Kernel | Callable[..., Any] = "rbf"
    n_neighbors: int | None = None
    gamma: float | str | None = None
    degree: float = 3
    coef0: float = 1
    kernel_params: dict[str, Any] | None = None
    basis: str | bases.BasisRecipe = "auto"
    eigen_solver: str | Solver | None = "auto"
    eigen_tol: float | str = "auto"
    random_state: int | np.random.RandomState | None = None
    memory: int | str | None = None
    n_jobs: int | None = None
    verbose: int = 0
    device: Any = None
    #: What a progress bar calls the fit.
    _title = "spectral"
    #: Power of the eigenvalue that functions are multiplied by.
    t = 0.0

    def _solved(self, X, r: int) -> tuple[Any, np.ndarray, np.ndarray]:
        """The functions of the leading r eigenpairs, their values at the rows, and eigenvalues.

        Sets `certificate_`.
        """
        rng, tol = self._make_rng(), self.tol if self.eigen_tol == "auto" else self.eigen_tol
        self.kernel_ = self._make_kernel(X)
        with PassBar(self.verbose, title=self._title) as progress:
            engine = self._make_engine(X, on_tiles=progress.tiles)
            X = engine.place(X)
            problem = self._problem(self._build_basis(X, engine, rng, r), X)
            pairs = self._solve(problem, X, r, float(tol), engine, rng, progress)
        warn_of_width(self.kernel_, thinned(X, WIDTH_ROWS), X.shape[0])
        warn_unconverged(pairs, float(tol))
        map_, V = problem.assemble(pairs, X)
        self.certificate_ = problem.certificate(pairs, V, float(self.t))
        if problem.basis.spans_data:
            problem.basis.release()
        return map_, V, pairs.values

    def _problem(self, basis, X) -> Any:
        """The eigenproblem in a basis."""
        return spectral_problem(basis, X)

    def _neighbors_of(self, n: int) -> int:
        """Neighbors of a row in a graph of n."""
        # A row is its own nearest: with one neighbor none would be tied to another.
        return min(n, max(n // 10, 2)) if self.n_neighbors is None else self.n_neighbors

    def _functions(self, X) -> np.ndarray:
        """The functions that solve the eigenproblem, at the rows of X, (n, k)."""
        X = self._array(X, reset=False)
        self.kernel_.check(X)
        if self.affinity in NEIGHBORS:
            X = self.graph_.rows(X, self.n_jobs)
        return self.map_.functions(X)

    def _keep(self, map_, values, original) -> None:
        self.map_, self.eigenvalues_ = map_, restore(values, original)
        if not map_.basis.spans_data and map_.basis.points is not None:
            self.landmarks_ = restore(map_.basis.points, original)

    @property
    def kernel(self) -> Any:
        """The affinity under the name that every kernel method has for it."""
        return "precomputed" if self.affinity in NEIGHBORS else self.affinity

    @property
    def affinity_matrix_(self) -> Array:
        """All affinities, (n_samples, n_samples); those of a kernel are made on demand."""
        check_is_fitted(self)
        basis = self.map_.basis
        if self.affinity in NEIGHBORS:
            return self.graph_.matrix
        if isinstance(basis, bases.PrecomputedBasis):
            return basis.G
        if not basis.spans_data:
            raise AttributeError(
                f"With {basis.size} {basis.noun} there is no matrix of all affinities. "
                "Use basis='points' to have one."
            )
        return self.kernel_(basis.points)

    def _named_kernel(self, d) -> Kernel:
        if self.affinity in NEIGHBORS:
            return Precomputed()
        # A kernel object brings its own width, and gamma has a default here.
        if isinstance(self.affinity, Kernel) and self._encoding is None:
            return self.affinity
        return super()._named_kernel(d)

    def _is_precomputed(self) -> bool:
        return super()._is_precomputed() and self.affinity != "nearest_neighbors"

    def _build_basis(self, X, engine, rng, r: int) -> bases.Basis:
        if self.kernel == "precomputed" or isinstance(self.kernel, Precomputed):
            if self.basis not in ("auto", "points"):
                raise ValueError(
                    f"basis={self.basis!r} needs points, and precomputed affinities have none. "
                    "Use basis='auto', or a kernel that is computed from the data."
                )
            G = self._given_affinities(X, engine)
            kind = bases.HollowMatrix if self._hollow() else bases.PrecomputedBasis
            return kind(G, engine)
        recipe = self.basis
        if recipe == "auto":
            few = X.shape[0] <= AUTO_POINTS
            recipe = "points" if few else self._grid_or_landmarks(X, engine, r)
        if isinstance(recipe, str):
            recipe = bases.BASES[recipe]()
        exact = isinstance(recipe, bases.AllPoints)
        kernel = Hollow(self.kernel_) if exact and self._hollow() else self.kernel_
        return recipe.build(kernel, X, engine, rng, r)

    def _hollow(self) -> bool:
        """Whether the affinity of a row to itself is taken to be zero."""
        return not (isinstance(self.eigen_solver, Solver) and self.eigen_solver.needs_definite)

    def _given_affinities(self, X, engine):
        """The matrix X itself, or the graph of neighbors that X gives."""
        if self.affinity not in NEIGHBORS:
            check_gram(X)
            return X
        given = NEIGHBORS[self.affinity]
        if given and X.shape[0] != X.shape[1]:
            raise ValueError(
                "affinity='precomputed_nearest_neighbors' takes a square matrix of distances, "
                f"n_samples x n_samples, and X has shape {tuple(X.shape)}. For rows use "
                "affinity='nearest_neighbors'."
            )
        n, k = X.shape[0], self._neighbors_of(X.shape[0])
        most, need = engine.memory // (GRAPH_BYTES * n), GRAPH_BYTES * n * k
        if k > most:
            over = (
                f"A graph of {k:,} neighbors of {n:,} rows takes {format_bytes(need)}, and memory "
                f"allows {format_bytes(engine.memory)}"
            )
            if self.n_neighbors is not None or not most:
                raise ValueError(
                    f"{over}. Give n_neighbors={max(most, 1)}, or at least memory={need}."
                )
            tell(f"{over}: {most:,} are taken. Give n_neighbors, or memory={need} for all.")
        self.graph_ = NeighborGraph.of(X, min(k, most), self.n_jobs, given)
        return self.graph_.matrix

    def _grid_or_landmarks(self, X, engine, r: int) -> str | bases.BasisRecipe:
        """What "auto" takes for many rows: a grid has no error, and often takes less time."""
        n, d = X.shape
        served = self._serves_grid and engine.where == "cpu" and not is_sparse(X)
        if not served or why_not(self.kernel_, d):
            return "landmarks"
        work = Workload(n, d, r, engine.memory, engine.threads)
        grid = fourier(work, self.kernel_, np.diff(row_range(X), axis=1)[:, 0], engine)
        faster = GRID_PASSES * grid.seconds <= LANDMARK_SECONDS * n / engine.threads
        return automatic_grid() if grid.fits and faster else "landmarks"

    def _device(self):
        return "cpu" if super()._is_precomputed() else self.device

    def _solve(self, problem, X, r, tol, engine, rng, progress) -> Eigenpairs:
        """The leading eigenpairs, once the degrees are known to be positive."""
        r, basis = min(r, problem.size), problem.basis
        tol = max(tol, DRAFT_FLOOR if self._dtype == np.float32 else 0.0)
        solver = "auto" if self.eigen_solver is None else self.eigen_solver
        sparse_graph = isinstance(basis, bases.PrecomputedBasis) and is_sparse(basis.G)
        if sparse_graph and solver in ("auto", "arpack"):
            solver = GraphArpack()
        elif isinstance(basis, bases.FourierBasis) and solver == "auto":
            solver = grid_solver(problem.size, r)
        elif isinstance(solver, str) and solver != "auto":
            solver = SOLVERS[solver]()
        size, fused = (problem.size, X.shape[1], r), engine.fuses(basis.kernel)
        work = Workload(*size, engine.memory, engine.threads, tol, engine.where, fused)
        rows = None if basis.spans_data else X.shape[0]
        with np.errstate(invalid="ignore"):
            pairs, self.plan_ = solve_planned(problem, work, rng, engine, progress, solver, rows)
        if problem.least_degree < 0:
            raise ValueError(
                f"The affinities of a row sum to {problem.least_degree:.3g}, and they "
                "must not be negative. Use a kernel such as 'rbf', "
                "or add a constant to yours."
            )
        if not np.any(pairs.values > 0):
            raise ValueError(
                "No row has an affinity with another one, so that there is nothing to go by: "
                "the kernel is too narrow for these data. Give a smaller gamma, such as "
                "gamma='median', or scale the data."
            )
        return pairs
