"""What spectral methods share: affinities by name, their eigenproblem, functions of new rows."""

from collections.abc import Callable
from dataclasses import KW_ONLY, replace
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .. import bases
from ..compute import (
    Array,
    format_bytes,
    is_sparse,
    make_engine,
    parse_bytes,
    restore,
    to_numpy,
    too_little,
)
from ..compute.arrays import is_on_device
from ..exceptions import ModelFileError, tell
from ..fitting.choosing import Plan, warn_of_width, warn_unconverged, width_rows
from ..fitting.expansion import OfExpansion
from ..kernels import KERNELS, Hollow, Kernel, Precomputed
from ..kernels.base import check_range
from ..rows import Rows, in_memory, like_of
from ..solvers import Solver
from ..spectral import problems
from ..spectral.graph import (
    GraphArpack,
    NeighborGraph,
    distance_matrix,
    given_neighbors,
    nearest_given,
)
from ..spectral.neighbors import neighbors_of_all, search_way
from ._checks import AT_LEAST_1, AUTO, SEARCHES, StrOptions, check_gram
from ._door import Door, Fitted, kept, not_saved

#: Affinities that are a graph of nearest neighbors, and whether they take distances.
NEIGHBORS = {"nearest_neighbors": False, "precomputed_nearest_neighbors": True}
NAMES = {distances: name for name, distances in NEIGHBORS.items()}
# Bytes for each neighbor of a row, what finds and solves the graph included: up to 77 were seen,
# where few rows are the neighbors of all others and the graph has twice as many entries.
GRAPH_BYTES = 88
# Rows on a cluster whose coordinates say what is positive.
SIGN_ROWS = 20_000
# What rows take that no graph can be made of.
BY_KERNEL = "use affinity='rbf' with basis='landmarks', which takes rows wherever they are"
# Neighbors of a row unless a number is given. More tie clusters together, and where rows are few
# already a share of them does.
USUAL_NEIGHBORS, NEIGHBOR_SHARE = 10, 4


# What gives affinities: a name, a function or a kernel.
NAMED = StrOptions({"auto", *KERNELS, *NEIGHBORS})
Affinity = Annotated[str | Kernel | Callable[..., Any], NAMED, callable, Kernel]


class SpectralInput(Door):
    """Affinities, their normalized eigenproblem and the functions that solve it.

    With the parameters that all spectral methods have.
    """

    _fitted: ClassVar[dict[str, Fitted]] = Door._fitted | {
        "kernel_": kept(Kernel),
        "map_": kept("PointMap|ReducedMap|DiffusionFunctions m k"),
        "eigenvalues_": kept("k"),
        "certificate_": Fitted("Certificate k"),
        "plan_": Fitted(Plan),
        "graph_": Fitted("NeighborGraph m"),
        **not_saved("affinity_ landmarks_ _rows _searched _search_device"),
    }

    _: KW_ONLY
    affinity: Affinity = "auto"
    n_neighbors: Annotated[int | str | None, AT_LEAST_1, AUTO, None] = "auto"
    neighbor_search: Annotated[str, SEARCHES] = "auto"
    neighbor_weights: Annotated[str, StrOptions({"uniform", "local"})] = "local"
    gamma: float | str | None = "auto"
    degree: float = 3
    coef0: float = 1
    kernel_params: dict[str, Any] | None = None
    basis: str | bases.BasisRecipe = "auto"
    eigen_solver: str | Solver = "auto"
    tol: float = 0.0
    random_state: int | np.random.RandomState | None = None
    memory: int | str | None = None
    n_jobs: int | None = None
    verbose: int = 0
    device: Any = None
    center = False
    #: Whether a row keeps its affinity with itself.
    _rests = False
    # Beyond, landmarks take as long as k-means, and the exact method grows with the square.
    _most_points: ClassVar[int | None] = 20_000
    _points_anywhere: ClassVar[bool] = False
    _candidates: ClassVar[frozenset[str]] = frozenset(("fourier", "landmarks"))

    def _problem(self, task, basis) -> Any:
        basis = self._without_diagonal(basis)
        if basis.spans_data:
            return problems.NormalizedProblem(basis)
        is_grid = isinstance(basis, bases.FourierBasis)
        kind = problems.FourierNormalizedProblem if is_grid else problems.ReducedNormalizedProblem
        return kind.of(basis, task.rows)

    def _without_diagonal(self, basis):
        """All points, with zeros on the diagonal of their affinities if the method asks for it."""
        if not basis.spans_data:
            return basis
        self._check_in_one_place(basis)
        # A walk may stay where it is; and without its diagonal the matrix is not definite.
        solver = self.eigen_solver
        if self._rests or (isinstance(solver, Solver) and solver.needs_definite):
            return basis
        if isinstance(basis, bases.PrecomputedBasis):
            return bases.HollowMatrix(basis.G, basis.engine)
        return bases.PointGram(Hollow(basis.kernel), basis.points, basis.engine, single=None)

    def _attributes(self, result, plan, task) -> dict[str, Any]:
        map_, like = result.map, like_of(task.rows)
        attributes = super()._attributes(result, plan, task) | {
            "affinity_": self._affinity(),
            "kernel_": task.kernel,
            "eigenvalues_": restore(result.pairs.values, like),
            "plan_": plan,
        }
        if not map_.basis.spans_data and map_.basis.points is not None:
            attributes["landmarks_"] = restore(map_.basis.points, like)
        graph = vars(self).get("graph_")
        if graph is None:
            return attributes
        reason = "; ".join(filter(None, [plan.reason, vars(self).get("_searched", "")]))
        if isinstance(plan.solver, GraphArpack):
            # Estimates of the others are for matrices that are not sparse.
            chosen = replace(plan.chosen, method="arpack on the graph")
            plan = replace(plan, chosen=chosen, estimates=(chosen,))
        return attributes | {"graph_": graph, "plan_": replace(plan, reason=reason)}

    def _at_rows(self, result, task) -> np.ndarray:
        """Values of the functions at the training rows, or some of those on a cluster, (n, k)."""
        if result.functions is not None:
            return result.functions
        if task.array is not None:
            return result.map.functions(task.rows.placed)
        if task.rows._elsewhere:
            return result.map.functions(task.rows.sample(SIGN_ROWS, task.seed))
        k = result.pairs.values.size
        return np.asarray(task.rows.map(at_rows(result.map, np.asarray, (k,))))

    def _warn(self, result, plan, task) -> None:
        n = task.rows.shape[0]
        shape = task.pilot.shape
        step = max(1, -(-shape[0] // width_rows(shape[-1], task.engine.memory)))
        warn_of_width(self.kernel_, task.pilot[::step], n)
        warn_unconverged(result.pairs, task.tol)

    def _complete(self) -> None:
        basis, graph, facts = self.map_.basis, vars(self).get("graph_"), vars(self)
        if not basis.spans_data and basis.points is not None:
            facts["landmarks_"] = to_numpy(basis.points)
        if (graph is not None) != (self.affinity in NEIGHBORS) and self.affinity != "auto":
            raise ModelFileError("a graph of neighbors where there should be none, or none")
        facts["affinity_"] = "rbf" if self.affinity == "auto" else self.affinity
        if graph is not None:
            basis.G = graph.matrix
            facts["affinity_"] = NAMES[graph.points is None]
        from ..saving.parts import columns_of

        rows = None if graph is None else graph.points
        if (columns_of(basis) if rows is None else rows.shape[1]) != self.n_features_in_:
            raise ModelFileError(f"a map of other columns than {self.n_features_in_}")

    def _neighbors_of(self, n: int) -> int:
        """Neighbors of a row in a graph of n."""
        if isinstance(self.n_neighbors, int | np.integer):
            return int(self.n_neighbors)
        most = min(USUAL_NEIGHBORS, n // NEIGHBOR_SHARE) if self.n_neighbors else n // 10
        # A row is its own nearest: with one neighbor none would be tied to another.
        return min(n, max(most, 2))

    def _functions(self, X, then: Callable, tail: tuple[int, ...], dtype: Any = float) -> Any:
        """What is made of the functions at the rows of X, ``then(V)``; lazily of Dask rows."""
        if self.affinity_ not in NEIGHBORS:
            return self._open(X, reset=False).map(at_rows(self.map_, then, tail, dtype))
        array = self._array(X, "A graph of neighbors")
        self.kernel_.check(array)
        if self.graph_.points is not None:
            check_range(array, "Neighbors")
        array = self.graph_.rows(array, self._search_engine())
        return restore(then(self.map_.functions(array)), X)

    @property
    def kernel(self) -> Any:
        """The affinity under the name that every kernel method has for it."""
        affinity = self._affinity()
        return "precomputed" if affinity in NEIGHBORS else affinity

    def _affinity(self, rows: Rows | None = None) -> Any:
        """The affinity asked for; in place of "auto" a graph, or a kernel of measured width.

        A graph unless a width or a basis is given, where these `rows` are in one place and it fits
        the budget; without rows, what a fit has chosen, or would choose of few rows.
        """
        if self.affinity != "auto":
            return self.affinity
        if "affinity_" in vars(self):
            return self.affinity_
        needs_definite = isinstance(self.eigen_solver, Solver) and self.eigen_solver.needs_definite
        has_width = not isinstance(self.gamma, str) or self.gamma != "auto"
        if has_width or self.basis != "auto" or needs_definite:
            return "rbf"
        if rows is not None and self.n_neighbors == "auto":
            n = None if in_memory(rows) is None else rows.shape[0]
            room = parse_bytes(self.memory)
            fits = n is not None and GRAPH_BYTES * n * self._neighbors_of(n) <= room
            return "nearest_neighbors" if fits else "rbf"
        return "nearest_neighbors"

    def _open(self, X, *, reset: bool) -> Rows:
        if self.affinity == "precomputed_nearest_neighbors" and isinstance(X, tuple):
            n = None if reset else self.n_features_in_
            X = given_neighbors(*X, n) if len(X) == 2 else X
        if reset and self.affinity in ("auto", "nearest_neighbors") and is_on_device(X):
            self._search_device = X.device
        rows = super()._open(X, reset=reset)
        if reset:
            if in_memory(rows) is None and self._affinity() == "nearest_neighbors":
                who, chosen = "A graph of neighbors", self.affinity == self.n_neighbors == "auto"
                rows = rows._for_points(who, required=False)
                if in_memory(rows) is None and not chosen:
                    rows.as_array(who, instead=BY_KERNEL)
                    rows = rows._for_points(who, required=True)
            self.affinity_, self._rows = self._affinity(rows), rows.shape[0]
        return rows

    def _check(self, X, reset: bool):
        """Rows of a graph are searched where they are, and their graph is in main memory."""
        searched = self.affinity in ("auto", "nearest_neighbors") and self._device() == "cpu"
        return super()._check(to_numpy(X) if searched and is_on_device(X) else X, reset)

    def _search_engine(self):
        """Where neighbors are searched: on the device asked for, or that the rows came from."""
        device = vars(self).get("_search_device") if self.device is None else self.device
        return make_engine(memory=self.memory, device=device, threads=self.n_jobs)

    @property
    def affinity_matrix_(self) -> Array:
        """All affinities, (n_samples, n_samples); those of a kernel are made on demand."""
        check_is_fitted(self)
        basis = self.map_.basis
        if self.affinity_ in NEIGHBORS:
            return self.graph_.matrix
        if isinstance(basis, bases.PrecomputedBasis):
            return basis.G
        if not basis.spans_data:
            raise AttributeError(
                f"With {basis.size} {basis.noun} there is no matrix of all affinities. "
                "Use basis='points' to have one."
            )
        return self.kernel_(basis.points)

    def _is_precomputed(self) -> bool:
        return super()._is_precomputed() and self._affinity() != "nearest_neighbors"

    def _check_precomputed(self, rows, weights) -> None:
        X = rows.as_array("A matrix of affinities")
        if self.affinity not in NEIGHBORS:
            check_gram(X)
        elif X.shape[0] != X.shape[1]:
            raise ValueError(
                "affinity='precomputed_nearest_neighbors' takes a square matrix of distances, "
                f"n_samples x n_samples, and X has shape {tuple(X.shape)}. For rows use "
                "affinity='nearest_neighbors'."
            )

    def _matrix(self, X, engine):
        """The rows, or the graph of neighbors that they give."""
        self._check_count(X, "X")
        self._check_counts(X.shape[0])
        has_points = not isinstance(self._named_kernel(1), Precomputed)
        if not has_points and self.basis not in ("auto", "points"):
            raise ValueError(
                f"basis={self.basis!r} needs points, and precomputed affinities have none. "
                "Use basis='auto', or a kernel that is computed from the data."
            )
        if self.affinity_ not in NEIGHBORS:
            return X
        n, k = X.shape[0], self._neighbors_of(X.shape[0])
        local, given = self.neighbor_weights == "local", NEIGHBORS[self.affinity_]
        if given and X.shape[0] and (X.data if is_sparse(X) else X).min(initial=0) < 0:
            raise ValueError("Distances must not be negative. Pass distances, not similarities.")
        if given and is_sparse(X) and self.n_neighbors == "auto":
            self.graph_ = NeighborGraph.of(nearest_given(X, None), local)
            return self.graph_.matrix
        most, need = engine.memory // (GRAPH_BYTES * n), GRAPH_BYTES * n * k
        if k > most:
            what = f"a graph of {k:,} neighbors of {n:,} rows"
            if k == self.n_neighbors or not most:
                advice = f"Give n_neighbors={max(most, 1)}. "
                raise too_little(engine.memory, need, what, advice)
            tell(
                f"{most:,} neighbors are used: memory={format_bytes(engine.memory)} cannot hold "
                f"{what}. For all of them, raise memory to {need}."
            )
        if given:
            self.graph_ = NeighborGraph.of(nearest_given(X, min(k, most)), local)
        else:
            search = self._search_engine()
            way, self._searched = search_way(X, self.neighbor_search, search)
            D = distance_matrix(*neighbors_of_all(X, min(k, most), search, way), n)
            self.graph_ = NeighborGraph.of(D, local, X)
        return self.graph_.matrix

    def _check_counts(self, n: int) -> None:
        """Raise ValueError where more of something is asked for than there are rows."""
        wanted = {name: vars(self).get(name) for name in ("n_clusters", "n_components")}
        if self.affinity_ in NEIGHBORS:
            wanted["n_neighbors"] = self._neighbors_of(n)
        for name, asked in wanted.items():
            if asked not in (None, "auto") and asked > n:
                raise ValueError(f"{name}={asked} is more than n_samples={n}. Give at most {n}.")

    def _device(self):
        return "cpu" if super()._is_precomputed() else self.device

    def _solver(self, X=None) -> Any:
        is_graph = is_sparse(X) and isinstance(self._named_kernel(1), Precomputed)
        to_arpack = is_graph and self.eigen_solver in ("auto", "arpack")
        return GraphArpack() if to_arpack else super()._solver(X)


def at_rows(map_: Any, then: Callable, tail: tuple[int, ...], dtype: Any = float) -> OfExpansion:
    """What is made of functions, ``then(V)``, as a function of rows."""
    title = "coordinates" if tail else "label"
    return OfExpansion(map_, partial(made_of, then), tail, title, dtype)


def made_of(then: Callable, map_: Any, rows: Any) -> Any:
    """Functions at rows, transformed."""
    return then(map_.functions(rows))
