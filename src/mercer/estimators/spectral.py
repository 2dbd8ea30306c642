"""Spectral clustering as a scikit-learn estimator."""

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.cluster import KMeans
from sklearn.utils import check_random_state

from ..bases import (
    BASES,
    AllPoints,
    Basis,
    BasisRecipe,
    FourierBasis,
    HollowMatrix,
    PrecomputedBasis,
)
from ..compute import restore
from ..compute.arrays import Array
from ..kernels import KERNELS, Hollow, Kernel
from ..planning import Workload
from ..planning.following import solve_planned, warn_unconverged
from ..planning.fourier import solver_for
from ..progress.passes import PassBar
from ..solvers import SOLVERS, Solver
from ..solvers.block_krylov import DRAFT_FLOOR
from ..spectral.problems import spectral_problem
from ._input import KernelInput, check_gram
from ._parameters import Interval, StrOptions
from ._whole import all_or_nothing

# Rows up to which "auto" is the exact method: seconds on two cores. Beyond, landmarks take as
# long as k-means, and the exact method grows with the square.
AUTO_POINTS = 20_000


class SpectralClustering(ClusterMixin, KernelInput):
    """Clusters from the leading eigenvectors of the normalized affinity matrix.

    Ng, Jordan & Weiss: the k leading eigenvectors of D^{-1/2} K D^{-1/2}, rows scaled to unit
    length, then k-means. The n x n matrix is met tile by tile, so 100,000 points need no 80 GB;
    with landmarks it is not met at all.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.

    affinity : str, Kernel or callable, default="rbf"
        Any kernel of `mercer.KernelPCA`, by name or as an object, a function of two rows, or
        "precomputed". Its row sums must be positive.

    gamma : float, "median", "mean" or None, default=1.0
        Width of a kernel given by name; None is 1 / n_features. The default is scikit-learn's
        and fits no data in particular: try ``"median"`` and larger.

    degree, coef0, kernel_params
        Further parameters of the kernel, as in `mercer.KernelPCA`.

    n_components : int or None, default=None
        Eigenvectors to use; None for n_clusters.

    basis : "auto", "points", "landmarks" or BasisRecipe, default="auto"
        "points" is the exact method, "landmarks" Nystroem with a few chosen rows, for example
        ``mercer.bases.Landmarks(1000)``; "auto" is exact up to 20,000 rows.

    eigen_solver : "auto", str or Solver, default="auto"
        As in `mercer.KernelPCA`. `mercer.hebbian.Hebbian` learns the eigenvectors from one row at
        a time; as it needs a positive semidefinite matrix, the diagonal of K stays.

    n_init : int, default=10
        Starts of k-means.

    random_state : int, RandomState or None, default=None
        Start vectors, landmarks and k-means.

    memory : int, str or None, default=None
        Bytes that work arrays may take, e.g. "300MB"; None for half of what is free.

    n_jobs : int or None, default=None
        Threads; None for all cores.

    tol : float, default=1e-5
        Largest residual of an eigenpair. Clusters rarely ask for more; from 1e-6 upwards all
        passes are in single precision.

    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        The cluster of every row.

    embedding_ : array of shape (n_samples, n_components)
        The rows of unit length that k-means saw.

    eigenvalues_ : array of shape (n_components,)
        Of the normalized affinity matrix, largest first. As many are near 1 as there are
        well-separated clusters.

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
    is otherwise tied to itself above all. Landmarks keep it, since only a positive semidefinite
    matrix has a Nystroem approximation, and suit kernels wide enough for it not to matter.

    References
    ----------
    Ng, Jordan & Weiss (2002), On spectral clustering: analysis and an algorithm.
    Fowlkes, Belongie, Chung & Malik (2004), Spectral grouping using the Nystroem method.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SpectralClustering
    >>> angle = np.linspace(0, 2 * np.pi, 100, endpoint=False)
    >>> ring = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> X = np.vstack([ring, 3 * ring])
    >>> model = SpectralClustering(n_clusters=2, gamma=5.0, random_state=0).fit(X)
    >>> [len(set(model.labels_[:100])), len(set(model.labels_))]
    [1, 2]
    >>> int(np.sum(model.predict(0.9 * ring) == model.labels_[:100]))
    100
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "affinity": [StrOptions(set(KERNELS)), callable, Kernel],
        "gamma": [Interval(Real, 0, None, closed="left"), StrOptions({"median", "mean"}), None],
        "degree": [Interval(Real, 0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "kernel_params": [dict, None],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "basis": [StrOptions({"auto", "points", "landmarks", "fourier"}), BasisRecipe],
        "eigen_solver": [StrOptions({"auto", *SOLVERS}), Solver],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "memory": [Interval(Real, 0, None, closed="neither"), str, None],
        "n_jobs": [None, Integral],
        "tol": [Interval(Real, 0, None, closed="left")],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        affinity: str | Kernel | Callable[..., Any] = "rbf",
        gamma: float | str | None = 1.0,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        n_components: int | None = None,
        basis: str | BasisRecipe = "auto",
        eigen_solver: str | Solver = "auto",
        n_init: int = 10,
        random_state: int | np.random.RandomState | None = None,
        memory: int | str | None = None,
        n_jobs: int | None = None,
        tol: float = 1e-5,
        verbose: int = 0,
    ):
        self.n_clusters = n_clusters
        self.affinity = affinity
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.n_components = n_components
        self.basis = basis
        self.eigen_solver = eigen_solver
        self.n_init = n_init
        self.random_state = random_state
        self.memory = memory
        self.n_jobs = n_jobs
        self.tol = tol
        self.verbose = verbose

    @all_or_nothing
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
        original, X = X, self._array(X, reset=True)
        self._check_clusters(X)
        rng = self._make_rng()
        self.kernel_ = self._make_kernel(X)
        with PassBar(self.verbose, title="spectral clustering") as progress:
            engine = self._make_engine(on_tiles=progress.tiles)
            basis = self._build_basis(X, engine, rng)
            problem = spectral_problem(basis, X)
            pairs = self._solve(problem, X, engine, rng, progress.report)
            self.map_, rows = problem.assemble(pairs, X)
        basis.release()
        self._set_results(pairs, rows, original)
        warn_unconverged(pairs, self.tol)
        return self

    def fit_predict(self, X: Array, y: Any = None) -> Array:
        """Cluster the rows of X and return their labels, (n_samples,)."""
        return self.fit(X, y).labels_

    def predict(self, X: Array) -> Array:
        """The cluster of every row of X, by the Nystroem extension of the eigenvectors.

        Parameters
        ----------
        X : array-like, sparse CSR matrix or memmap of shape (n, n_features)
            With ``affinity="precomputed"`` the affinities of new rows with the training
            rows, (n, n_samples).

        Returns
        -------
        array of int, shape (n,)
            A row too far from all training rows to have any affinity with them tells
            nothing, and gets the cluster whose center is nearest to zero.
        """
        original, X = X, self._array(X, reset=False)
        self.kernel_.check(X)
        return restore(self.kmeans_.predict(self.map_.rows(X)), original)

    @property
    def kernel(self) -> Any:
        """The affinity under the name that every kernel method has for it."""
        return self.affinity

    def _named_kernel(self, d) -> Kernel:
        # A kernel object brings its own width, and gamma has a default here.
        return self.affinity if isinstance(self.affinity, Kernel) else super()._named_kernel(d)

    def _check_clusters(self, X):
        n = X.shape[0]
        wanted = {"n_clusters": self.n_clusters, "n_components": self.n_components}
        for name, asked in wanted.items():
            if asked is not None and asked > n:
                raise ValueError(f"{name}={asked} is more than n_samples={n}. Give at most {n}.")

    def _build_basis(self, X, engine, rng) -> Basis:
        if self._is_precomputed():
            if self.basis not in ("auto", "points"):
                raise ValueError(
                    f"basis={self.basis!r} needs points, and precomputed affinities have none. "
                    "Use basis='auto', or a kernel that is computed from the data."
                )
            check_gram(X)
            return HollowMatrix(X, engine) if self._hollow() else PrecomputedBasis(X, engine)
        recipe = self.basis
        if recipe == "auto":
            recipe = "points" if X.shape[0] <= AUTO_POINTS else "landmarks"
        if isinstance(recipe, str):
            recipe = BASES[recipe]()
        exact = isinstance(recipe, AllPoints)
        kernel = Hollow(self.kernel_) if exact and self._hollow() else self.kernel_
        return recipe.build(kernel, X, engine, rng, self._width())

    def _hollow(self) -> bool:
        """Whether the affinity of a row to itself is taken to be zero."""
        return isinstance(self.eigen_solver, str) or not self.eigen_solver.needs_definite

    def _solve(self, problem, X, engine, rng, report):
        """The leading eigenpairs, once the degrees are known to be positive."""
        r = min(self._width(), problem.size)
        tol = max(float(self.tol), DRAFT_FLOOR if X.dtype == np.float32 else 0.0)
        work = Workload(problem.size, X.shape[1], r, engine.memory, engine.threads, tol)
        rows = None if problem.basis.spans_data else X.shape[0]
        solver = self.eigen_solver
        if isinstance(solver, str) and solver != "auto":
            solver = SOLVERS[solver]()
        if solver == "auto" and isinstance(problem.basis, FourierBasis):
            solver = solver_for(problem.size, r)
        with np.errstate(invalid="ignore"):
            pairs, self.plan_ = solve_planned(problem, work, rng, engine, report, solver, rows)
        if problem.least_degree < 0:
            raise ValueError(
                f"The affinities of a row sum to {problem.least_degree:.3g}, and spectral "
                "clustering needs affinities that are not negative. Use a kernel such as 'rbf', "
                "or add a constant to yours."
            )
        return pairs

    def _set_results(self, pairs, rows, original):
        self.eigenvalues_ = restore(pairs.values, original)
        self.embedding_ = restore(rows, original)
        seed = check_random_state(self.random_state)
        self.kmeans_ = KMeans(self.n_clusters, n_init=self.n_init, random_state=seed).fit(rows)
        self.labels_ = restore(self.kmeans_.labels_, original)
        basis = self.map_.basis
        if not basis.spans_data and basis.points is not None:
            self.landmarks_ = basis.points

    def _width(self) -> int:
        """Number of eigenvectors."""
        return self.n_clusters if self.n_components is None else self.n_components
