"""Isomap as a scikit-learn estimator: classical scaling of distances along a graph of neighbors."""

from dataclasses import KW_ONLY, replace
from itertools import combinations
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components, dijkstra
from sklearn.utils.validation import check_is_fitted

from ..compute import Same, make_engine, restore, row_blocks, too_little
from ..exceptions import ModelFileError, tell
from ..fitting.choosing import Plan
from ..kernels.base import check_range
from ..mds import distances
from ..spectral.graph import distance_matrix
from ..spectral.neighbors import nearest, neighbors_of_all, search_way
from ._checks import SEARCHES, Count
from ._door import Door, Fitted, kept, not_saved
from .mds import ClassicalMDS

# Bytes for each entry of paths that are found at once.
PATH_BYTES = 24
# Pieces of a graph that are joined pair by pair.
MOST_PIECES = 100


class Isomap(ClassicalMDS):
    """Isomap: coordinates whose distances are those along the rows, from neighbor to neighbor.

    As `sklearn.manifold.Isomap`: the graph of nearest neighbors, its shortest paths, and classical
    scaling of their lengths (Tenenbaum, de Silva & Langford 2000). Only the eigenpairs asked for
    are found, with a certificate; with `landmarks` only paths from these, m x n in place of n x n
    numbers (de Silva & Tenenbaum 2003).

    Parameters
    ----------
    n_components : int or float, default=2
        Dimensions, as of `mercer.ClassicalMDS`.

    n_neighbors : int, default=5
        Neighbors of a row, without itself.

    landmarks : int, float, array of int or None, default=None
        None for all paths, as of `mercer.ClassicalMDS`.

    neighbor_search : "auto", "exact" or "approximate", default="auto"
        As of `mercer.SpectralEmbedding`.

    tol, random_state, memory, n_jobs, verbose
        As of `mercer.ClassicalMDS`. Without landmarks `memory` must hold n x n distances.

    Attributes
    ----------
    embedding_ : array of shape (n_samples, n_components)
        The coordinates.

    eigenvalues_ : array of shape (n_components,)
        Of the double-centered squares of the path lengths.

    plan_ : Plan
        What was chosen and why, the search for neighbors with it.

    graph_ : sparse matrix of shape (n_samples, n_samples)
        Distances between neighbors; where rows fall into pieces, with the shortest tie between
        each two of them, as in scikit-learn.

    strain_, stress_, goodness_of_fit_, least_eigenvalue_, negative_share_, spectrum_
        As of `mercer.ClassicalMDS`, for the path lengths.

    certificate_, correction_constant_, map_, landmark_indices_, n_features_in_, feature_names_in_
        As of `mercer.ClassicalMDS`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Isomap
    >>> angle = np.linspace(0, 4, 60)
    >>> X = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> Y = Isomap(n_components=1, n_neighbors=3).fit_transform(X)
    >>> float(np.abs(Y[-1] - Y[0])[0].round(1))
    4.0
    """

    _fitted: ClassVar[dict[str, Fitted]] = ClassicalMDS._fitted | {
        "graph_": kept("n n sparse"),
        "_rows": kept("n d real sparse"),
        "plan_": Fitted(Plan),
        **not_saved("_distance _anchors _index _searched"),
    }
    _title = "Isomap"
    _instead = "use DiffusionMap(basis='landmarks'), which takes rows wherever they are"
    dissimilarity: ClassVar[Any] = "precomputed"  # type: ignore[misc]
    metric: ClassVar[Any] = None  # type: ignore[misc]
    metric_params: ClassVar[Any] = None  # type: ignore[misc]
    correction: ClassVar[Any] = None  # type: ignore[misc]

    _: KW_ONLY
    n_neighbors: Count = 5
    neighbor_search: Annotated[str, SEARCHES] = "auto"

    def transform(self, X: Same) -> Same:
        """Coordinates of new rows, whose paths begin at their nearest training rows.

        Nothing is fitted again, and a training row gets its place in `embedding_`.

        Parameters
        ----------
        X : array-like of shape (n, n_features)

        Returns
        -------
        array of shape (n, n_components)
        """
        check_is_fitted(self)
        like, X = X, self._array(X, type(self).__name__)
        engine, n = make_engine(memory=self.memory, threads=self.n_jobs), self._rows.shape[0]
        check_range(X, "Neighbors")
        index, lengths = nearest(X, self._rows, min(self.n_neighbors, n), engine)
        Y, goals = np.empty((X.shape[0], self.embedding_.shape[1])), self._goals()
        # Rows with the same neighbors together, since paths are found once for each of these.
        order = np.argsort(index[:, 0], kind="stable")
        block = max(1, engine.memory // (PATH_BYTES * (n + len(goals)) * index.shape[1]))
        for start in range(0, len(Y), block):
            rows = order[start : start + block]
            steps, place = np.unique(index[rows], return_inverse=True)
            if "_points" in vars(self):
                paths = self._points[steps]
            else:  # a model from a file finds them anew
                paths = dijkstra(self.graph_, directed=False, indices=steps)[:, goals]
            paths = paths[place.reshape(index[rows].shape)]
            Y[rows] = self.map_((paths + lengths[rows][:, :, None]).min(axis=1))
        return restore(Y, like)

    def _goals(self) -> np.ndarray:
        """Rows that path lengths are scaled by: the landmarks, or all."""
        index = self.landmark_indices_
        return np.arange(len(self.embedding_)) if index is None else index

    def _complete(self) -> None:
        """Paths of a file must be finite, and end at the points of its map."""
        super()._complete()
        lengths, goals = self.graph_.data, self._goals()
        # Compiled code aborts on ties of negative length.
        if not (np.isfinite(lengths) & (lengths >= 0)).all():
            raise ModelFileError("edges between neighbors whose lengths are negative or not finite")
        if goals.size != len(self.map_.weights) or goals.max(initial=0) >= self.graph_.shape[0]:
            raise ModelFileError("paths to other points than those of the map")

    def _check(self, X, reset: bool):
        return Door._check(self, X, reset)

    def _is_precomputed(self) -> bool:
        return False

    def _matrix(self, X, engine):
        """The points, by number; the lengths of their paths to all, or to the landmarks."""
        n, k = X.shape[0], min(self.n_neighbors, X.shape[0] - 1) + 1
        way, self._searched = search_way(X, self.neighbor_search, engine)
        graph = distance_matrix(*neighbors_of_all(X, k, engine, way), n)
        self.graph_, self._rows = joined(graph, X, engine), X
        self._index = distances.choose_landmarks(self.landmarks, n, self._make_rng())
        goals = np.arange(n) if self._index is None else self._index
        need = (8 + 8 * (self._index is None)) * goals.size * n
        if need > engine.memory:
            what = f"the paths between {goals.size:,} and {n:,} rows"
            advice = f"Give landmarks={max(1, engine.memory // (16 * n))}. "
            raise too_little(engine.memory, need, what, advice)
        D = np.empty((n, goals.size))
        for block in row_blocks(goals.size, max(1, engine.memory // (4 * PATH_BYTES * n))):
            D[:, block] = dijkstra(self.graph_, directed=False, indices=goals[block]).T
        if self._index is None:  # the two ways are added up in different orders
            D = np.minimum(D, D.T)
        return super()._matrix(D, engine)

    def _attributes(self, result, plan, task) -> dict[str, Any]:
        reason = "; ".join(filter(None, [plan.reason, self._searched]))
        shared = super()._attributes(result, plan, task)
        plan = replace(plan, reason=reason)
        return shared | {"graph_": self.graph_, "_rows": self._rows, "plan_": plan}


def joined(graph: sparse.csr_matrix, X, engine) -> sparse.csr_matrix:
    """A graph in one piece: adds the shortest edge between every two pieces, with a warning."""
    count, piece = connected_components(graph, directed=False)
    if count == 1:
        return graph
    if count > MOST_PIECES:
        raise ValueError(f"The graph of neighbors falls into {count:,} pieces. Raise n_neighbors.")
    tell(
        f"The graph of neighbors falls into {count} pieces. Every two pieces were joined by the "
        "shortest edge between them, so distances between pieces are unreliable. Raise "
        "n_neighbors to avoid that."
    )
    members = [np.flatnonzero(piece == number) for number in range(count)]
    ties = []
    for i, j in combinations(members, 2):
        index, d = nearest(X[i], X[j], 1, engine)
        first = int(d[:, 0].argmin())
        ties.append((i[first], j[index[first, 0]], d[first, 0]))
    rows, columns, lengths = zip(*ties, strict=True)
    # Stored side by side: a sum of sparse matrices would drop ties of length zero.
    graph = graph.tocoo()
    places = np.append(graph.row, rows), np.append(graph.col, columns)
    return sparse.csr_matrix((np.append(graph.data, lengths), places), shape=graph.shape)
