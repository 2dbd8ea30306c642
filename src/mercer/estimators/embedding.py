"""Laplacian eigenmaps and diffusion maps as scikit-learn estimators, with a place for new rows."""

from dataclasses import KW_ONLY, replace
from functools import partial
from numbers import Real
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from scipy.sparse.csgraph import connected_components
from sklearn.utils import check_array, check_random_state

from ..bases import BasisRecipe
from ..compute import is_sparse, restore, to_numpy
from ..compute.arrays import Array, Same, is_foreign
from ..compute.linalg import peak_signs
from ..exceptions import tell
from ..kernels import Precomputed
from ..relatives.embedding import DiffusionProblem, ReducedDiffusionProblem
from ..rows import like_of
from ..spectral.graph import lasting_ties
from ..spectral.problems import ZERO
from ._checks import NOT_NEGATIVE, Interval, StrOptions
from ._door import NOT_SAVED, OF_POINTS, Fitted
from ._sklearn import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from ._spectral import Affinity, SpectralInput, at_rows

# Eigenvalues of the walk this near to 1 are those of pieces without ties between them.
APART = 1e-8


class GraphEmbedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SpectralInput):
    """Coordinates of rows, new ones too: all functions but the first, which is constant."""

    n_components: int = 2
    _: KW_ONLY
    #: Vectors are then right to about this over the gap of their eigenvalues.
    tol: float = 1e-8
    basis: Annotated[str | BasisRecipe, StrOptions(OF_POINTS), BasisRecipe] = "auto"

    _fitted: ClassVar[dict[str, Fitted]] = SpectralInput._fitted | {
        "embedding_": Fitted("n k"),
        "pieces_": Fitted("n int"),
        "_apart": NOT_SAVED,
    }
    #: How many functions are constant: on the pieces of a graph, or on all rows.
    _apart = 1
    _candidates: ClassVar[frozenset[str]] = frozenset(("landmarks",))

    def fit(self, X: Array, y: Any = None) -> Self:
        """Embed the rows of X.

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

    def _matrix(self, X, engine):
        A = super()._matrix(X, engine)
        if is_sparse(A) and isinstance(self._named_kernel(1), Precomputed):
            own = 0 if self._rests else A.diagonal()
            ties = lasting_ties(A, np.asarray(A.sum(axis=1)).ravel() - own)
            self.pieces_ = connected_components(ties, directed=False)[1]
            # A row without ties has the eigenvalue zero.
            sums = np.asarray(ties.sum(axis=1)).ravel() - own
            self._apart = apart = np.unique(self.pieces_[sums > 0]).size
            n = A.shape[0]
            if self.n_components > n - apart or 8 * n * self._wanted() > engine.memory:
                raise ValueError(
                    f"The graph of {n:,} rows falls into {apart:,} pieces, more than "
                    f"n_components={self.n_components} or memory allow for. Raise n_neighbors."
                )
        return A

    def _wanted(self) -> int:
        return self.n_components + self._apart

    def _check_counts(self, n: int) -> None:
        if self.n_components >= n:
            raise ValueError(
                f"n_components={self.n_components} must be less than n_samples={n}: the first "
                f"eigenvector is constant and left out. Give at most {n - 1}."
            )
        super()._check_counts(n)

    def _attributes(self, result, plan, task) -> dict[str, Any]:
        p, map_, like = self._apart, result.map, like_of(task.rows)
        V = self._at_rows(result, task)[:, p:]
        signs = peak_signs(V)
        later = {"values": map_.values[p:]} if "values" in vars(map_) else {}
        map_ = replace(map_, weights=map_.weights[:, p:] * signs, **later)
        k = V.shape[1]
        scale = np.broadcast_to(self._scale(map_), (k,))
        Y: Any = restore(V * signs * scale, like)
        if task.rows._elsewhere:
            Y = task.rows.map(at_rows(map_, partial(np.multiply, scale), (k,)))
        attributes = {name: x for name, x in vars(self).items() if name == "pieces_"}
        attributes |= super()._attributes(replace(result, map=map_), plan, task)
        return attributes | {
            "eigenvalues_": restore(result.pairs.values[p:], like),
            "certificate_": result.certificate.without_first(p),
            "embedding_": Y,
        }

    def _warn(self, result, plan, task) -> None:
        super()._warn(result, plan, task)
        pieces = int(np.sum(result.pairs.values > 1 - APART))
        if "pieces_" in vars(self):
            sizes = -np.sort(-np.bincount(self.pieces_))
            if sizes.size > 1:
                tell(
                    f"The graph falls into {sizes.size:,} pieces that no edge connects, of "
                    f"{', '.join(f'{size:,}' for size in sizes[:5])}"
                    f"{' ...' if sizes.size > 5 else ''} rows. Each coordinate belongs to one "
                    "piece and is zero on the others. Raise n_neighbors to connect the pieces, or "
                    "embed each piece alone.",
                    python="The attribute pieces_ has the piece of each row.",
                )
        elif pieces > 1:
            tell(
                f"The affinities fall into at least {pieces} pieces without affinity between two "
                "pieces, and the first coordinates only tell the pieces apart. Use a wider kernel "
                "or more neighbors, or embed each piece alone."
            )

    def fit_transform(self, X: Same, y: Any = None) -> Same:
        """Embed the rows of X and return their coordinates, (n_samples, n_components)."""
        return self.fit(X, y).embedding_

    def transform(self, X: Same) -> Same:
        """Coordinates of new rows; those of training rows are `embedding_`.

        Parameters
        ----------
        X : array-like, sparse CSR matrix or memmap of shape (n, n_features)
            With ``affinity="precomputed"`` the affinities of new rows with the training
            rows, (n, n_samples), and with "precomputed_nearest_neighbors" the distances.

        Returns
        -------
        array of shape (n, n_components)
        """
        scale = np.broadcast_to(self._scale(self.map_), self.eigenvalues_.shape)
        return self._functions(X, partial(np.multiply, scale), self.eigenvalues_.shape)

    def _scale(self, map_) -> Any:
        """What the functions are multiplied by."""
        return 1.0


class SpectralEmbedding(GraphEmbedding):
    """Laplacian eigenmaps: coordinates in which tied rows are near each other.

    As `sklearn.manifold.SpectralEmbedding`, with a `transform`, within a memory budget, by
    landmarks where rows are many, and with 10 neighbors in place of a tenth of the rows. The
    eigenvectors of D^{-1/2} K D^{-1/2} after the first, over the roots of the degrees (Belkin &
    Niyogi 2003), K without its diagonal.

    Parameters
    ----------
    n_components : int, default=2
        Coordinates.

    affinity : str, Kernel or callable, default="auto"
        "nearest_neighbors", the graph of nearest rows; "rbf" or any kernel of `mercer.KernelPCA`,
        by name or as an object; a function of two rows; "precomputed", where X holds affinities; or
        "precomputed_nearest_neighbors", where it holds distances. "auto" is a graph or "rbf", as in
        `mercer.SpectralClustering`.

    gamma : float, "auto", "median", "mean" or None, default="auto"
        Width of a kernel given by name, as in `mercer.SpectralClustering`.

    degree, coef0, kernel_params
        Further parameters of the kernel, as in `mercer.KernelPCA`.

    n_neighbors, neighbor_search, neighbor_weights
        Neighbors of a row, as in `mercer.SpectralClustering`.

    basis : "auto", "points", "landmarks" or BasisRecipe, default="auto"
        "points" is the exact method, "landmarks" Nystroem with a few chosen rows; "auto" is exact
        up to 20,000 rows, and always for a graph of neighbors.

    eigen_solver : "auto", str or Solver, default="auto"
        As in `mercer.SpectralClustering`.

    tol : float, default=1e-8
        Largest residual of an eigenpair.

    random_state : int, RandomState or None, default=None
        Start vectors and landmarks.

    device : None, str or torch.device, default=None
        Where to compute: None where the rows are, "cuda" on a GPU. Given affinities and graphs
        are computed on in main memory.

    memory : int, str or None, default=None
        Bytes that work arrays may take, e.g. "300MB"; None for half of what is free.

    n_jobs : int or None, default=None
        Threads; None for all cores.

    verbose : int, default=0
        1 shows a progress bar, 2 a line each minute for logs.

    Attributes
    ----------
    embedding_ : array of shape (n_samples, n_components)
        The coordinates, with the scale and the signs of scikit-learn's.

    eigenvalues_ : array of shape (n_components,)
        Of the normalized affinities, largest first, without the first, which is 1.

    certificate_ : Certificate
        What is known of the error of `eigenvalues_` and `embedding_`. With landmarks an estimate.

    affinity_matrix_ : array or sparse matrix of shape (n_samples, n_samples)
        The affinities; those of a kernel are made when they are asked for.

    affinity_ : str, Kernel or callable
        The affinity that was used.

    map_ : PointMap or ReducedMap
        The functions that place new rows.

    graph_ : NeighborGraph
        The graph of neighbors, where the affinity is one.

    pieces_ : array of int, shape (n_samples,)
        The connected piece of a graph that each row is in. No coordinate is spent on telling them
        apart: each is of one piece, the slowest first, and zero on the others.

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
    mercer.DiffusionMap : Coordinates whose distances are those of a random walk.

    References
    ----------
    Belkin & Niyogi (2003), Laplacian eigenmaps for dimensionality reduction and data
    representation.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SpectralEmbedding
    >>> angle = np.linspace(0, 2 * np.pi, 100, endpoint=False)
    >>> X = np.column_stack([np.cos(angle), np.sin(angle), np.sin(2 * angle)])
    >>> model = SpectralEmbedding(n_components=2, random_state=0).fit(X)
    >>> bool(np.allclose(model.transform(X), model.embedding_))
    True
    """

    _title = "spectral embedding"


class DiffusionMap(GraphEmbedding):
    """Diffusion maps: coordinates whose distances are those of a random walk on the rows.

    A step of the walk goes to near rows; two rows are close when the walks from them lead to the
    same places in `t` steps, by whatever way, so that noise and short cuts matter little.

    Parameters
    ----------
    n_components : int, default=2
        Coordinates.

    density_power : float, default=0.5
        How much of the density of rows is taken out: 0 keeps it (the graph Laplacian), 1/2 is the
        Fokker-Planck operator of a system that drifts and diffuses, 1 the geometry of the rows
        alone (Laplace-Beltrami), however densely they lie. At most 20.

    t : float, default=1
        Steps of the walk. Coordinate i is scaled with eigenvalue i to the power t: the more steps,
        the fewer coordinates count.

    affinity : str, Kernel or callable, default="rbf"
        As in `mercer.SpectralEmbedding`. It must not be negative.

    gamma : float, "auto", "median", "mean" or None, default="auto"
        Width of a kernel given by name, "auto" as in `mercer.SpectralClustering`. The walk should
        reach some rows and not all.

    degree, coef0, kernel_params, n_neighbors, neighbor_search, neighbor_weights, basis
        As in `mercer.SpectralEmbedding`.

    eigen_solver, tol, random_state
        As in `mercer.SpectralEmbedding`.

    device, memory, n_jobs, verbose
        As in `mercer.SpectralEmbedding`.

    Attributes
    ----------
    embedding_ : array of shape (n_samples, n_components)
        The coordinates. Their distances are diffusion distances as far as the coordinates go.

    eigenvalues_ : array of shape (n_components,)
        Of the walk, largest first, without the first, which is 1.

    certificate_, affinity_, affinity_matrix_, map_, graph_, pieces_, landmarks_, plan_
        As in `mercer.SpectralEmbedding`.

    kernel_
        As in `mercer.SpectralEmbedding`.

    n_features_in_, feature_names_in_
        As in `mercer.SpectralEmbedding`.

    References
    ----------
    Coifman & Lafon (2006), Diffusion maps.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import DiffusionMap
    >>> X = np.linspace(0, 1, 50)[:, None] ** 2
    >>> model = DiffusionMap(n_components=1, density_power=1, gamma=50.0, random_state=0).fit(X)
    >>> steps = np.diff(model.embedding_[:, 0])
    >>> bool(np.all(steps > 0) or np.all(steps < 0))
    True
    >>> bool(np.allclose(model.transform(X), model.embedding_))
    True
    """

    _title, _rests = "diffusion map", True

    _: KW_ONLY
    # Beyond 20, powers of the densities leave the range of float64.
    density_power: Annotated[float, Interval(Real, 0, 20, closed="both")] = 0.5
    t: Annotated[float, NOT_NEGATIVE] = 1
    affinity: Affinity = "rbf"

    def _problem(self, task, basis):
        basis, alpha = self._without_diagonal(basis), float(self.density_power)
        if basis.spans_data:
            return DiffusionProblem(basis, float(self.t), alpha)
        return ReducedDiffusionProblem.of(basis, task.rows, alpha)

    def _scale(self, map_):
        sizes = np.abs(map_.values)
        return np.where(sizes > ZERO, sizes**self.t, 0.0)


def embedding_init(
    scores: Array,
    n_components: int = 2,
    *,
    scale: float = 1e-4,
    jitter: float = 0.01,
    random_state: int | np.random.RandomState | None = None,
) -> np.ndarray:
    """The first columns of scores as ``init=`` of t-SNE or UMAP.

    Centered and scaled, all columns alike, so that the first one has the standard deviation
    `scale`; then noise, so that equal rows do not stay together for ever.

    Parameters
    ----------
    scores : array of shape (n, r)
        Of any estimator here, at least `n_components` columns.
    n_components : int, default=2
        Columns to take.
    scale : float, default=1e-4
        Standard deviation of the first column: 1e-4 is what t-SNE wants; UMAP's coordinates
        go from -10 to 10, so that ``scale=5`` suits it.
    jitter : float, default=0.01
        Standard deviation of the noise as a share of `scale`.
    random_state : int, RandomState or None, default=None
        The noise.

    Returns
    -------
    array of float32, shape (n, n_components)

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import embedding_init
    >>> start = embedding_init(np.arange(12.0).reshape(4, 3), random_state=0)
    >>> start.shape, bool(abs(start[:, 0].std() - 1e-4) < 1e-5)
    ((4, 2), True)
    """
    S = check_array(to_numpy(scores) if is_foreign(scores) else scores, dtype=np.float64)
    if S.shape[1] < n_components or n_components < 1:
        raise ValueError(
            f"n_components={n_components} columns were asked for, and the scores have "
            f"{S.shape[1]}. Fit with more components, or ask for fewer columns."
        )
    if not scale > 0 or jitter < 0:
        raise ValueError(f"scale={scale} must be above zero and jitter={jitter} not below it.")
    S = S[:, :n_components] - S[:, :n_components].mean(axis=0)
    spread = S[:, 0].std()
    S = S / spread if spread > 0 else S
    noise = check_random_state(random_state).standard_normal(S.shape)
    return (scale * (S + jitter * noise)).astype(np.float32)
