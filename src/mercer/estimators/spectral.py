"""Spectral clustering as a scikit-learn estimator."""

from copy import copy
from dataclasses import KW_ONLY
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..bases import BasisRecipe
from ..compute import Array, Same, restore, row_blocks, to_numpy
from ..exceptions import ModelFileError, tell
from ..rows import like_of
from ..spectral.assigning import ASSIGNING, directions, eigengaps
from ._checks import AT_LEAST_1, AUTO, FROM_2, Count, StrOptions
from ._door import OF_POINTS, Fitted, kept, not_saved
from ._sklearn import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from ._spectral import NEIGHBORS, SpectralInput, at_rows

# Copies of coordinates that assigning labels takes, and rows for it where these do not fit.
COORDINATE_COPIES, SAMPLED_ROWS = 8, 100_000
# Labels that are turned into whole numbers, or counted, at a time.
TURNED_ROWS = 2**16
# Share of the rows in one cluster from which a fit warns.
NEARLY_ALL = 0.99


class SpectralClustering(
    ClusterMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, SpectralInput
):
    """Clusters from the leading eigenvectors of the normalized affinity matrix.

    Ng, Jordan & Weiss: the k leading eigenvectors of D^{-1/2} K D^{-1/2}, rows scaled to unit
    length, then k-means. K is a sparse graph, or a kernel matrix that is multiplied tile by tile,
    so that 100,000 points need no 80 GB; with landmarks it is never made. Parameters have the names
    of `sklearn.cluster.SpectralClustering` (but `tol` for its eigen_tol), and other defaults.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of clusters. "auto" is the one after which `eigengaps_` is largest, two at least:
        eigenvalues do not tell one cluster from several that touch. `with_clusters` tries others.

    max_clusters : int, default=20
        The most that "auto" looks at.

    affinity : str, Kernel or callable, default="auto"
        "nearest_neighbors" is the graph of the `n_neighbors` nearest rows, which needs no width;
        "precomputed_nearest_neighbors" the same from given distances, (n_samples, n_samples), dense
        or sparse, or from a pair of arrays (indices, distances), both (n_samples, k). Any kernel
        of `mercer.KernelPCA`, by name or as an object, a function of two rows, or "precomputed":
        its row sums must be positive. "auto" is "nearest_neighbors" where rows are not on a
        cluster and they and the graph fit `memory`, and "rbf" elsewhere, or where `gamma`, `basis`
        or a solver for definite matrices is given.

    n_neighbors : int, "auto" or None, default="auto"
        Neighbors of a row in such a graph, itself among them. "auto" is 10, or a quarter of the
        rows where that is less; None a tenth of them, as in scikit-learn's embedding. Both are two
        at least, and with a warning fewer if `memory` holds no more. Of sparse distances "auto" is
        all that are given.

    neighbor_search : "auto", "exact" or "approximate", default="auto"
        How neighbors are found. "approximate" is an HNSW index (the extra ``neighbors``), which
        misses a few; "auto" takes it, where it is installed, for searches that are predicted to
        take more than a minute. `plan_` says which it was, and why.

    neighbor_weights : "local" or "uniform", default="local"
        "local" weighs ties by exp(-d^2 / (r r')), r and r' the distances of both rows to the last
        of their neighbors (Zelnik-Manor & Perona 2004); "uniform" are all one, as in scikit-learn.

    gamma : float, "auto", "median", "mean" or None, default="auto"
        Width of a kernel given by name: "auto" is "median" for kernels of a distance, and for
        others 1 / n_features, as None is.

    degree, coef0, kernel_params
        Further parameters of the kernel, as in `mercer.KernelPCA`.

    n_components : int or None, default=None
        Eigenvectors to use; None for n_clusters.

    basis : "auto", "points", "landmarks", "fourier" or BasisRecipe, default="auto"
        "points" is the exact method, "landmarks" Nystroem with a few chosen rows, for example
        ``mercer.bases.Landmarks(1000)``, "fourier" a grid of frequencies for up to three columns.
        "auto" is exact up to 20,000 rows; beyond, a Fourier grid where one can serve and is
        predicted to be faster than landmarks, else landmarks.

    eigen_solver : "auto", str or Solver, default="auto"
        As in `mercer.KernelPCA`. Sparse graphs are left to Lanczos, on products
        with the graph. `mercer.hebbian.Hebbian` learns the eigenvectors from one row at a time;
        as it needs a positive semidefinite matrix, the diagonal of K stays.

    assign_labels : "kmeans", "discretize" or "cluster_qr", default="kmeans"
        From eigenvectors to labels: k-means; the rotation nearest to one axis a cluster (Yu &
        Shi 2003); or the axes of the rows that a pivoted QR factorization takes first (Damle,
        Minden & Ying 2019), without any iteration. The last two find `n_components` clusters.

    n_init : int, default=10
        Starts of k-means.

    random_state : int, RandomState or None, default=None
        Start vectors, landmarks and k-means.

    memory : int, str or None, default=None
        Bytes that work arrays may take, e.g. "300MB"; None for half of what is free.

    n_jobs : int or None, default=None
        Threads; None for all cores.

    device : None, str or torch.device, default=None
        As in `mercer.KernelPCA`: None to compute where the rows are, "cuda" on a GPU. Given
        affinities, and k-means on the rows of the embedding, are computed on in main memory.

    tol : float, default=1e-5
        Largest residual of an eigenpair. Clusters rarely ask for more; from 1e-6 upwards all
        passes are in single precision.

    verbose : int, default=0
        1 shows a progress bar, 2 a line each minute for logs.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        The cluster of every row; of rows on a cluster what `predict` gives, such as a lazy Dask
        array, which model files leave out.

    n_clusters_ : int
        How many there are.

    eigengaps_ : array
        Entry k - 1 is the evidence for k clusters: the step from eigenvalue k to the next one, as
        `mercer.spectral.assigning.eigengaps` has it. `mercer.plot.eigengaps` draws them.

    embedding_ : array of shape (n_samples, n_components)
        The leading eigenvectors by rows of unit length, lazily of rows on a cluster. Of rows read
        in blocks whose coordinates would not fit `memory` there is none: centers are found on
        100,000 uniform rows, as on a cluster, all get labels, and `transform` gives coordinates.

    affinity_matrix_ : array or sparse matrix of shape (n_samples, n_samples)
        The affinities. Those of a kernel are made when they are asked for, and take n_samples^2
        numbers; with landmarks there are none.

    eigenvalues_ : array
        Of the normalized affinity matrix, largest first. As many are near 1 as there are
        well-separated clusters. With ``n_clusters="auto"`` all that were looked at.

    certificate_ : Certificate
        What is known of the eigenvalues, and `score_error` of the functions behind `embedding_`,
        eigenvectors over the roots of the degrees. With landmarks an estimate.

    assignment_ : Centers, Rotated or Pivoted
        What tells the cluster of a row from its eigenvectors.

    affinity_ : str, Kernel or callable
        The affinity that was used.

    map_ : PointMap or ReducedMap
        The functions that place new rows.

    graph_ : NeighborGraph
        The graph of neighbors, where the affinity is one.

    landmarks_ : array of shape (m, n_features)
        The landmarks, where there are any.

    plan_ : Plan
        What was chosen and why.

    kernel_ : Kernel
        The kernel with numbers for its parameters.

    n_features_in_ : int
        Columns of X.

    feature_names_in_ : array of str
        Their names, where X has them.

    See Also
    --------
    mercer.KernelPCA : The same matrix, centered instead of normalized.

    Notes
    -----
    As in the paper and in scikit-learn, the diagonal of K is zero: a point far from the others
    is otherwise tied to itself above all. With landmarks it is taken off their matrix, and with
    ``basis="fourier"`` it stays.

    References
    ----------
    Ng, Jordan & Weiss (2002), On spectral clustering: analysis and an algorithm. Yu & Shi (2003),
    Multiclass spectral clustering. Damle, Minden & Ying (2019), Simple, direct and efficient
    multi-way spectral clustering.
    Fowlkes, Belongie, Chung & Malik (2004), Spectral grouping using the Nystroem method.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SpectralClustering
    >>> angle = np.linspace(0, 2 * np.pi, 100, endpoint=False)
    >>> ring = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> X = np.vstack([ring, 3 * ring])
    >>> model = SpectralClustering(n_clusters=2, random_state=0).fit(X)
    >>> [len(set(model.labels_[:100])), len(set(model.labels_))]
    [1, 2]
    >>> int(np.sum(model.predict(0.9 * ring) == model.labels_[:100]))
    100
    """

    _fitted: ClassVar[dict[str, Fitted]] = SpectralInput._fitted | {
        "labels_": Fitted("n int"),
        "assignment_": kept("Centers|Rotated|Pivoted q"),
        **not_saved("embedding_ _vectors _seen"),
    }
    _title = "spectral clustering"

    n_clusters: Annotated[Any, AT_LEAST_1, AUTO] = 8
    _: KW_ONLY
    max_clusters: Annotated[int, FROM_2] = 20
    n_components: Annotated[int | None, AT_LEAST_1, None] = None
    assign_labels: Annotated[str, StrOptions(set(ASSIGNING))] = "kmeans"
    n_init: Count = 10
    basis: Annotated[str | BasisRecipe, StrOptions(OF_POINTS | {"fourier"}), BasisRecipe] = "auto"
    tol: float = 1e-5

    def fit(self, X: Array, y: Any = None) -> Self:
        """Cluster the rows of X.

        Parameters
        ----------
        X : array-like, sparse CSR matrix or memmap of shape (n_samples, n_features)
            With ``affinity="precomputed"`` the affinities, (n_samples, n_samples).
        y : ignored

        Returns
        -------
        self
        """
        return self._fit(X, y)

    @property
    def n_clusters_(self) -> int:
        check_is_fitted(self)
        return self.assignment_.n_clusters

    @property
    def eigengaps_(self) -> np.ndarray:
        check_is_fitted(self)
        return eigengaps(to_numpy(self.eigenvalues_))

    def with_clusters(self, n_clusters: int) -> Self:
        """This model with another number of clusters, by the eigenvectors that it has.

        Only the way from eigenvectors to labels is done again. It must be as many as there are
        eigenvectors at most, `max_clusters` + 1 after ``n_clusters="auto"``, unless
        `n_components` says how many are used.

        Parameters
        ----------
        n_clusters : int

        Returns
        -------
        SpectralClustering
            A fitted copy, with labels and centers of its own.
        """
        check_is_fitted(self)
        model = copy(self)
        model.n_clusters = n_clusters
        model._validate_params()
        if "_vectors" not in vars(self):
            raise ValueError(
                "This model has no eigenvectors of the training rows, of which other clusters are "
                "made: model files and fits to more rows than memory holds keep none. Fit again "
                f"with n_clusters={n_clusters!r}."
            )
        rows, found = self._vectors.shape
        if n_clusters != "auto" and n_clusters > (found if self.n_components is None else rows):
            raise ValueError(
                f"{n_clusters} clusters need as many eigenvectors, and this fit has {found} of "
                f"{rows:,} rows. Fit with n_clusters='auto' and max_clusters={n_clusters}."
            )
        model.__dict__.update(model._assigned(self._vectors, self.eigengaps_, self.embedding_))
        model._warn_of_sizes()
        return model

    def _wanted(self) -> int:
        if self.n_clusters != "auto":
            return self.n_clusters if self.n_components is None else self.n_components
        most = max(self.max_clusters + 1, self.n_components or 1)
        rows = vars(self).get("_rows")
        return most if rows is None else min(most, rows)

    def _attributes(self, result, plan, task) -> dict[str, Any]:
        shared, values = super()._attributes(result, plan, task), result.pairs.values
        gaps = eigengaps(to_numpy(values))
        # Coordinates with a copy, and what k-means makes of them.
        room = task.engine.memory // (COORDINATE_COPIES * 8 * values.size)
        lazy = task.rows._elsewhere
        if not lazy and (task.array is not None or task.rows.shape[0] <= room):
            V = self._at_rows(result, task)
            return shared | {"_vectors": V} | self._assigned(V, gaps, like_of(task.rows))
        sample = task.rows.sample(min(room, SAMPLED_ROWS), task.seed)
        found = self._assigned(result.map.functions(sample), gaps, sample)
        rule, seen = found["assignment_"], found["labels_"]
        del sample, found  # the labels may need their room
        labels = task.rows.map(at_rows(result.map, rule.labels, (), np.int32))
        shared |= {"assignment_": rule, "labels_": labels}
        if lazy:
            coordinates = at_rows(result.map, rule.coordinates, (rule.n_columns,))
            shared |= {"embedding_": task.rows.map(coordinates), "_seen": seen}
        return shared

    def _assigned(self, V, gaps, like) -> dict[str, Any]:
        """Fitted attributes of clusters: those of the leading ones of the functions V."""
        count: Any = self.n_clusters
        if count == "auto":
            count = 2 + int(np.argmax(gaps[1:])) if gaps.size > 1 else V.shape[1]
        V = V[:, : count if self.n_components is None else self.n_components]
        seed, assign = check_random_state(self.random_state), ASSIGNING[self.assign_labels]
        assignment = assign(V, count, self.n_init, seed)
        return {
            "assignment_": assignment,
            "embedding_": restore(directions(V), like),
            "labels_": restore(assignment.labels(V), like),
        }

    def _warn(self, result, plan, task) -> None:
        super()._warn(result, plan, task)
        count = self.assignment_.n_columns
        if self.assign_labels != "kmeans" and self.n_clusters not in ("auto", count):
            tell(
                f"assign_labels={self.assign_labels!r} finds one cluster per eigenvector, "
                f"{count} in all, and n_clusters={self.n_clusters} were asked for. Leave "
                "n_components out, or use assign_labels='kmeans'."
            )
        self._warn_of_sizes()

    def _warn_of_sizes(self) -> None:
        """Warn of one cluster that has nearly all rows, on a cluster all of a sample."""
        labels, most = to_numpy(vars(self).get("_seen", self.labels_)), self.n_clusters_
        # NumPy counts copies of 64 bits.
        blocks = (labels[rows] for rows in row_blocks(len(labels), TURNED_ROWS))
        sizes = np.sort(sum(np.bincount(block, minlength=most) for block in blocks))[::-1]
        if sizes.size > 1 and sizes[0] >= NEARLY_ALL * sizes.sum():
            listed = ", ".join(map(str, sizes[:5])) + (", ..." if sizes.size > 5 else "")
            graph = self.affinity_ in NEIGHBORS
            tell(
                f"One cluster has {sizes[0]:,} of {sizes.sum():,} rows (sizes {listed}): the "
                "others are a few rows far from all, or there are no clusters that this affinity "
                "shows. Leave such rows out, or give a "
                + ("larger n_neighbors." if graph else "smaller gamma."),
                python="" if graph else "Or give affinity='auto', a graph of neighbors.",
            )

    def fit_predict(self, X: Array, y: Any = None) -> Array:
        """Cluster the rows of X and return their labels, (n_samples,)."""
        return self.fit(X, y).labels_

    def predict(self, X: Array) -> Array:
        """The cluster of every row of X, by the extension of the eigenvectors.

        Parameters
        ----------
        X : array-like, sparse CSR matrix or memmap of shape (n, n_features)
            With ``affinity="precomputed"`` the affinities of new rows with the training
            rows, (n, n_samples), and with "precomputed_nearest_neighbors" the distances.

        Returns
        -------
        array of int, shape (n,)
            Training rows keep their labels. A row too far from all training rows to have any
            affinity with them tells nothing, and gets the cluster that a row of zeros is in.
        """
        check_is_fitted(self)
        return self._functions(X, self.assignment_.labels, (), np.int32)

    def transform(self, X: Same) -> Same:
        """The leading eigenvectors at the rows of X, of unit length, as in `embedding_`.

        Parameters
        ----------
        X : array-like, sparse CSR matrix or memmap of shape (n, n_features)
            As of `predict`.

        Returns
        -------
        array of shape (n, n_components)
        """
        check_is_fitted(self)
        rule = self.assignment_
        return self._functions(X, rule.coordinates, (rule.n_columns,))

    def _complete(self) -> None:
        super()._complete()
        if self.assignment_.n_columns > self.eigenvalues_.size:
            raise ModelFileError("clusters in more eigenvectors than there are")
