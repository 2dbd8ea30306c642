"""Kernel PCA as a scikit-learn estimator."""

import warnings
from dataclasses import replace
from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from scipy import linalg
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils._param_validation import Interval, StrOptions

from ..bases import BASES, Basis, BasisRecipe, PrecomputedBasis
from ..compute import format_bytes, is_sparse, restore
from ..compute.arrays import is_foreign
from ..kernels import KERNELS, Kernel
from ..planning import Workload, check_budget, choose
from ..problems import GramProblem
from ..solvers import SOLVERS, Arpack, BlockKrylov, Dense, Randomized, Solver, canonical
from .base import KernelEstimator, check_gram
from .progress import FitProgress

# Components to try first when a share of variance is asked for.
FIRST_COMPONENTS = 16
# LAPACK on matrices up to this size is faster with one BLAS thread: several wait for
# each other, for seconds when another process holds a core.
SINGLE_BLAS_ROWS = 1500


class KernelPCA(KernelEstimator):
    """Kernel principal component analysis, exact and within a memory budget.

    A drop-in replacement of `sklearn.decomposition.KernelPCA`: the same parameters,
    attributes and results. The n x n kernel matrix is formed only where that is the
    fastest way and fits the budget; otherwise a block Krylov method meets it tile by tile.
    Every fit ends with a certificate of its error.

    Parameters
    ----------
    n_components : int, float or None, default=None
        Number of components. A float in (0, 1) keeps as many as hold that share of the
        variance; None keeps all with a non-zero eigenvalue, which needs n^2 memory.

    kernel : str, Kernel or callable, default="linear"
        "linear", "poly", "rbf", "sigmoid", "cosine", "precomputed", "laplacian", "matern",
        "rational_quadratic", "chi2", "additive_chi2", an object of `mercer.kernels`, or a
        function of two rows.

    gamma : float, "median", "mean" or None, default=None
        Width of the kernel; None is 1 / n_features. "median" and "mean" take sigma in
        gamma = 1 / (2 sigma^2) to be that distance between rows.

    degree : float, default=3
        Degree of the polynomial kernel.

    coef0 : float, default=1
        Constant of the polynomial and sigmoid kernels.

    kernel_params : dict or None, default=None
        Arguments of a callable kernel, and of "matern" (``nu``) and "rational_quadratic"
        (``alpha``).

    alpha : float, default=1.0
        Ridge of the inverse transform learned by ``fit_inverse_transform``.

    fit_inverse_transform : bool, default=False
        Learn the inverse transform by kernel ridge regression, exactly as scikit-learn.

    eigen_solver : str or Solver, default="auto"
        "auto" takes the fastest within the budget and says why in `plan_`; "dense",
        "krylov", "arpack" and "randomized" ask for one; an object of `mercer.solvers`
        brings its own settings.

    tol : float, default=0
        Largest residual |K'u - l u| as a share of the largest eigenvalue; 0 is 1e-9, where
        float64 arithmetic has nothing more to give for eigenvalues.

    max_iter : int or None, default=None
        Passes over the kernel matrix at most; None is 100.

    iterated_power : int or "auto", default="auto"
        Power iterations of ``eigen_solver="randomized"``.

    remove_zero_eig : bool, default=False
        Drop components with a zero eigenvalue even if n_components is given.

    random_state : int, RandomState or None, default=None
        Start vectors of the iterative solvers. It moves results within `tol`.

    copy_X : bool, default=True
        Keep a copy of X rather than X itself. A memmap is never copied.

    n_jobs : int or None, default=None
        Threads; None for all cores.

    basis : "auto", "points" or BasisRecipe, default="auto"
        What the directions are written in: "points" is every training row, the exact
        method, and what "auto" takes.

    center : bool, default=True
        Centre the data in feature space. False is the uncentred variant of some papers.

    memory : int, str or None, default=None
        Bytes that work arrays may take, e.g. "300MB"; None for half of what is free. The
        data, the result and a few vectors per component are not counted.

    verbose : int, default=0
        1 shows a progress bar.

    callback : callable or None, default=None
        ``callback(state)`` after each pass, with ``n_passes``, ``values``, ``residual`` and
        ``tol``; returning True ends the fit with what there is.

    Attributes
    ----------
    eigenvalues_ : array of shape (n_components,)
        Eigenvalues of the centred kernel matrix, largest first.

    eigenvectors_ : array of shape (n_samples, n_components)
        Its eigenvectors; the entry of largest modulus is positive.

    explained_variance_ : array of shape (n_components,)
        Variance along each component: eigenvalues / (n_samples - 1), as in scikit-learn's
        PCA; / n_samples if not centred.

    explained_variance_ratio_ : array of shape (n_components,)
        Shares of the total variance, which is the trace and not the sum of what was kept.

    certificate_ : Certificate
        Intervals that hold the true eigenvalues, residuals and captured variance.

    plan_ : Plan
        What was chosen and why.

    expansion_ : KernelExpansion
        The mean and the directions over the basis.

    kernel_ : Kernel
        The kernel with numbers for its parameters.

    gamma_ : float
        Its width.

    dual_coef_, X_transformed_fit_ : arrays
        The learned inverse transform, with ``fit_inverse_transform``.

    X_fit_ : array of shape (n_samples, n_features)
        The training data.

    n_features_in_ : int
        Columns of X.

    feature_names_in_ : array of str
        Their names, where X has them.

    See Also
    --------
    mercer.plan : What each method would cost for given data.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mercer import KernelPCA
    >>> X, _ = load_digits(return_X_y=True)
    >>> model = KernelPCA(n_components=8, kernel="rbf", gamma="median").fit(X)
    >>> model.transform(X).shape
    (1797, 8)
    >>> model.certificate_.converged
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_components": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="neither"),
            None,
        ],
        "kernel": [StrOptions(set(KERNELS)), callable, Kernel],
        "gamma": [Interval(Real, 0, None, closed="left"), StrOptions({"median", "mean"}), None],
        "degree": [Interval(Real, 0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "kernel_params": [dict, None],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "fit_inverse_transform": ["boolean"],
        "eigen_solver": [StrOptions({"auto", *SOLVERS}), Solver],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "iterated_power": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "remove_zero_eig": ["boolean"],
        "random_state": ["random_state"],
        "copy_X": ["boolean"],
        "n_jobs": [None, Integral],
        "basis": [StrOptions({"auto", *BASES}), BasisRecipe],
        "center": ["boolean"],
        "memory": [Interval(Real, 0, None, closed="neither"), str, None],
        "verbose": ["verbose"],
        "callback": [callable, None],
    }

    def __init__(
        self,
        n_components=None,
        *,
        kernel="linear",
        gamma=None,
        degree=3,
        coef0=1,
        kernel_params=None,
        alpha=1.0,
        fit_inverse_transform=False,
        eigen_solver="auto",
        tol=0,
        max_iter=None,
        iterated_power="auto",
        remove_zero_eig=False,
        random_state=None,
        copy_X=True,
        n_jobs=None,
        basis="auto",
        center=True,
        memory=None,
        verbose=0,
        callback=None,
    ):
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.alpha = alpha
        self.fit_inverse_transform = fit_inverse_transform
        self.eigen_solver = eigen_solver
        self.tol = tol
        self.max_iter = max_iter
        self.iterated_power = iterated_power
        self.remove_zero_eig = remove_zero_eig
        self.random_state = random_state
        self.copy_X = copy_X
        self.n_jobs = n_jobs
        self.basis = basis
        self.center = center
        self.memory = memory
        self.verbose = verbose
        self.callback = callback

    def fit(self, X, y=None):
        """Find the components of X.

        Parameters
        ----------
        X : array-like, sparse CSR matrix or memmap of shape (n_samples, n_features)
            With ``kernel="precomputed"`` the kernel matrix, (n_samples, n_samples).
        y : ignored

        Returns
        -------
        self
        """
        source, X = X, self._validate(X, reset=True)
        rng = self._make_rng()
        self.kernel_ = self._make_kernel(X, rng)
        with FitProgress(self.verbose, self.callback) as progress:
            engine = self._make_engine(progress.tiles)
            basis = self._build_basis(X, engine, rng)
            problem = GramProblem(basis, self.center)
            pairs = self._solve(problem, engine, rng, progress.report)
        pairs = self._select(
            canonical(pairs, X.dtype.char if X.dtype.kind == "f" else "d"), problem
        )
        self.expansion_, self.certificate_ = problem.assemble(pairs)
        basis.release()
        self._warn()
        self._set_results(pairs, problem, X, source)
        if self.fit_inverse_transform:
            self._learn_inverse(X)
        return self

    def fit_transform(self, X, y=None):
        """Fit to X and return its scores, (n_samples, n_components).

        Cheaper than `fit` and `transform`: the scores of the training rows are the scaled
        eigenvectors.
        """
        self.fit(X, y)
        scores = self._training_scores()
        return restore(scores, X) if is_foreign(X) else scores

    def transform(self, X):
        """Scores of the rows of X along the components.

        Parameters
        ----------
        X : array-like, sparse CSR matrix or memmap of shape (n, n_features)
            With ``kernel="precomputed"`` the kernel between new and training rows,
            (n, n_samples).

        Returns
        -------
        array of shape (n, n_components)
        """
        source, X = X, self._validate(X, reset=False)
        scores = self.expansion_.scores(X).astype(self._output_dtype(X), copy=False)
        return restore(scores, source) if is_foreign(source) else scores

    def inverse_transform(self, X):
        """Rows whose scores are near X, by the ridge regression that fit learned.

        Parameters
        ----------
        X : array-like of shape (n, n_components)

        Returns
        -------
        array of shape (n, n_features)
        """
        if not self.fit_inverse_transform:
            raise NotFittedError(
                "inverse_transform needs KernelPCA(fit_inverse_transform=True), which learns it "
                "during fit."
            )
        return self.kernel_(np.asarray(X), self.X_transformed_fit_) @ self.dual_coef_

    def reconstruction_error(self, X):
        """Squared feature-space distance of every row to its reconstruction, (n,).

        Rows unlike the training data have large errors. It is at most k(x, x) for a
        centred kernel near its mean and zero for rows that the components explain.
        """
        X = self._validate(X, reset=False)
        return self.expansion_.squared_errors(X).astype(self._output_dtype(X), copy=False)

    def score(self, X, y=None):
        """Minus the mean reconstruction error of X in feature space.

        Compares methods at one kernel. It must not be used to choose gamma: the error
        falls without end as the kernel widens, whatever the data.
        """
        return -float(np.mean(self.reconstruction_error(X)))

    def _build_basis(self, X, engine, rng) -> Basis:
        if self._is_precomputed():
            if self.fit_inverse_transform:
                raise ValueError("Cannot fit_inverse_transform with a precomputed kernel.")
            check_gram(X)
            return PrecomputedBasis(X, engine)
        recipe = (
            BASES["points" if self.basis == "auto" else self.basis]()
            if isinstance(self.basis, str)
            else self.basis
        )
        return recipe.build(self.kernel_, X, engine, rng)

    def _solve(self, problem, engine, rng, report):
        """Eigenpairs of the problem: as many as asked for, or as the share of variance needs."""
        if not isinstance(self.n_components, Real) or isinstance(self.n_components, Integral):
            r = problem.size if self.n_components is None else self.n_components
            return self._solve_for(min(r, problem.size), problem, engine, rng, report)
        r = FIRST_COMPONENTS
        while True:
            r = min(r, problem.size)
            pairs = self._solve_for(r, problem, engine, rng, report)
            if r == problem.size or pairs.values.sum() >= self.n_components * problem.total():
                return pairs
            r *= 2

    def _solve_for(self, r, problem, engine, rng, report):
        work = Workload(
            problem.size, self.n_features_in_, r, engine.memory, engine.threads, float(self.tol)
        )
        plan = self.plan_ = self._with_options(choose(work, self.eigen_solver))
        check_budget(plan)
        pairs = run(plan.solver, problem, engine, r, rng, self.tol, report)
        if pairs.converged or self.eigen_solver != "auto" or self.callback is not None:
            return pairs
        dense = next(e for e in plan.estimates if e.method == "dense")
        if not dense.fits:
            return pairs
        reason = f"dense: block Krylov had not converged after {pairs.n_passes} passes"
        self.plan_ = replace(plan, chosen=dense, reason=reason)
        return run(dense.solver, problem, engine, r, rng, self.tol, report)

    def _with_options(self, plan):
        """The plan with this estimator's settings in its solver."""
        solver = plan.solver
        if solver is self.eigen_solver:
            return plan
        if isinstance(solver, BlockKrylov) and self.max_iter is not None:
            solver.set_params(max_passes=self.max_iter)
        elif isinstance(solver, Arpack):
            solver.set_params(max_iter=self.max_iter)
        elif isinstance(solver, Randomized):
            solver.set_params(iterated_power=self.iterated_power)
        return plan

    def _select(self, pairs, problem):
        """The pairs to keep: those with variance, or up to the share asked for."""
        kept = pairs.values.size
        if isinstance(self.n_components, Real) and not isinstance(self.n_components, Integral):
            share = np.cumsum(pairs.values) / max(problem.total(), np.finfo(float).tiny)
            kept = min(kept, int(np.searchsorted(share, self.n_components)) + 1)
        if self.remove_zero_eig or self.n_components is None:
            kept = min(kept, int(np.sum(pairs.values > 0)))
        return replace(
            pairs,
            values=pairs.values[:kept],
            vectors=pairs.vectors[:, :kept],
            residuals=pairs.residuals[:kept],
        )

    def _warn(self):
        n = self.expansion_.basis.size
        if isinstance(self.n_components, Integral) and self.n_components > n:
            warnings.warn(
                f"n_components={self.n_components} is more than n_samples={n}: "
                f"{n} components are kept.",
                UserWarning,
                stacklevel=3,
            )
        if not self.certificate_.converged and self.callback is None:
            warnings.warn(
                f"Not converged after {self.certificate_.n_passes} passes: the largest residual "
                f"is {self.certificate_.relative_residual:.1e} of the first eigenvalue, and "
                f"{max(self.tol, 1e-9):.1e} was asked for. Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _set_results(self, pairs, problem, X, source):
        n = problem.size
        dtype = self._output_dtype(X)
        total = problem.total()
        degrees = n - 1 if self.center else n
        if total <= np.finfo(float).eps * n * max(problem.operator.basis.diagonal().max(), 0):
            total = 0.0
            warnings.warn(
                "The data have no variance in feature space, as when all rows are equal: "
                "every component is zero.",
                UserWarning,
                stacklevel=3,
            )

        def out(array):
            array = np.asarray(array, dtype=dtype)
            return restore(array, source) if is_foreign(source) else array

        self.eigenvalues_ = out(pairs.values)
        self.eigenvectors_ = out(pairs.vectors)
        self.explained_variance_ = out(pairs.values / degrees)
        self.explained_variance_ratio_ = out(pairs.values / total if total else 0 * pairs.values)
        self.gamma_ = getattr(self.kernel_, "gamma", None)
        if self.gamma_ is None:
            unset = self.gamma is None or isinstance(self.gamma, str)
            self.gamma_ = 1.0 / X.shape[1] if unset else self.gamma
        self.X_fit_ = X

    def _training_scores(self):
        from ..compute import to_numpy

        return to_numpy(self.eigenvectors_) * np.sqrt(to_numpy(self.eigenvalues_))

    def _learn_inverse(self, X):
        """Kernel ridge regression of the rows on their scores (Bakir, Weston & Schoelkopf)."""
        if is_sparse(X):
            raise NotImplementedError("Inverse transform not implemented for sparse matrices!")
        scores = self._training_scores()
        n, budget = scores.shape[0], self._make_engine().memory
        if 2 * n * n * scores.itemsize > budget:
            raise ValueError(
                f"fit_inverse_transform=True solves an n x n system, which needs "
                f"{format_bytes(2 * n * n * scores.itemsize)} for {n:,} rows, and memory allows "
                f"{format_bytes(budget)}. Raise memory or leave it out."
            )
        K = self.kernel_(scores)
        K.flat[:: n + 1] += self.alpha
        self.dual_coef_ = linalg.solve(K, X, assume_a="pos", overwrite_a=True)
        self.X_transformed_fit_ = scores

    @staticmethod
    def _output_dtype(X):
        return np.float32 if X.dtype == np.float32 else np.float64

    @property
    def _n_features_out(self):
        """Columns of the scores."""
        return self.eigenvalues_.shape[0]


def run(solver, problem, engine, r, rng, tol, report):
    """Solve with BLAS held at one thread, except for large dense matrices."""
    if isinstance(solver, Dense) and problem.size > SINGLE_BLAS_ROWS:
        return solver.solve(problem.operator, r, rng, tol, report)
    with engine.single_blas():
        return solver.solve(problem.operator, r, rng, tol, report)
