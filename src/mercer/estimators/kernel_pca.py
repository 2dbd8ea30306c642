"""Kernel PCA as a scikit-learn estimator."""

import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, replace
from numbers import Integral
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np

from ..bases import AllPoints, BasisRecipe, Columns
from ..compute import Array, Same, restore, to_numpy, too_little
from ..exceptions import tell
from ..fitting import choosing
from ..fitting.checkpoint import identity_of
from ..fitting.task import components_problem
from ..preimage import Preimage, ridge_inverse
from ..rows import Layout, NextPass, State, Step, SummedRows, lazy_like, like_of, merge, with_extras
from ..solvers import Solver
from ._checks import AT_LEAST_1, AUTO, FROM_0, NOT_NEGATIVE, SHARE, Flag
from ._door import Fitted, become, unfitted
from ._model import KernelModel, score_kernel
from ._output import contained

# Names of the registries as types; a test compares them.
BasisName = Literal["auto", "points", "landmarks", "features", "fourier", "columns"]
SolverName = Literal["auto", "dense", "arpack", "randomized", "lobpcg", "krylov", "gram-power"]
PreimageName = Literal["auto", "fixed-point", "distance", "ridge"]


class KernelPCA(KernelModel):
    """Kernel principal component analysis, exact and within a memory budget.

    A drop-in replacement of `sklearn.decomposition.KernelPCA`: the same parameters,
    attributes and results. The n x n kernel matrix is formed only where that is the
    fastest way and fits the budget; otherwise a block Krylov method multiplies with it tile by
    tile. Every fit ends with a certificate of its error.

    Parameters
    ----------
    n_components : int, float or None, default=None
        Number of components. A float in (0, 1) keeps as many as hold that share of the
        variance; None keeps all with a non-zero eigenvalue, which needs n^2 memory.

    kernel : str, Kernel or callable, default="linear"
        "linear", "poly", "rbf", "sigmoid", "cosine", "precomputed", "laplacian", "matern",
        "rational_quadratic", "chi2", "additive_chi2", "gower" (which also takes data frames with
        categories and missing entries), an object of `mercer.kernels`, or a function of two rows.

    gamma : float, "auto", "median", "mean" or None, default=None
        Width of the kernel; None is 1 / n_features. "median" and "mean" take sigma in
        gamma = 1 / (2 sigma^2) to be that distance between rows; "auto" is "median" for kernels of
        a distance, and None for others.

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
        `preimage` is better and needs no fit.

    eigen_solver : str or Solver, default="auto"
        "auto" takes the fastest within the budget and says why in `plan_`; "dense",
        "krylov", "gram-power", "arpack" and "randomized" ask for one; an object of
        `mercer.solvers` brings its own settings.

    tol : float, default=0
        Largest residual |K'u - l u| as a share of the largest eigenvalue. 0 is 1e-9 for
        float64 data, whose eigenvalues are then right to far more digits, and 1e-6 for
        float32. From 1e-6 upwards all passes are in single precision.

    max_iter : int or None, default=None
        Passes over the kernel matrix at most; None is 100. Of ``"arpack"`` restarts, as in
        scikit-learn. A fit that it ends before `tol` is reached warns; "arpack" raises.

    iterated_power : int or "auto", default="auto"
        Power iterations of ``eigen_solver="randomized"``.

    remove_zero_eig : bool, default=False
        Drop components with a zero eigenvalue even if n_components is given.

    random_state : int, RandomState or None, default=None
        Start vectors of the iterative solvers. Changes results by at most `tol`.

    copy_X : bool, default=True
        Keep a copy of X rather than X itself. A memmap is never copied.

    n_jobs : int or None, default=None
        Threads; None for all cores.

    basis : "auto", "points", "landmarks", "features", "fourier", "columns" or BasisRecipe
        What the directions are written in: "points" is every training row, the exact
        method; "landmarks" a few chosen rows (Nystroem), "features" random features, both
        in one pass over the data; "fourier" a grid of frequencies, for one to three columns and
        kernels of the distance: exact to a tolerance for any number of rows; "columns" the
        columns themselves, for the linear and the cosine kernel: exact, in one pass. "auto", the
        default, takes "points", or "columns" where that is cheaper, or "fourier" where that is
        predicted to be much faster; and "landmarks", with a warning, where no exact method fits
        the memory.

    preimage : "auto", "fixed-point", "distance", "ridge" or Preimage, default="auto"
        How `inverse_transform` and `denoise` come back to rows. "auto" is the closed form for the
        linear kernel; the ridge for all others, but in `denoise` the fixed point for Gaussian
        kernels. `preimage_` shows which; see `mercer.preimage`.

    center : bool, default=True
        Center the data in feature space. False is the uncentered variant of some papers.

    memory : int, str or None, default=None
        Bytes that work arrays may take, e.g. "300MB"; None for half of what is free. The data,
        the fitted model and answers such as scores are not counted. What cannot be done inside
        it is refused before the work, with the amount that would do.

    device : None, str or torch.device, default=None
        Where to compute: None where the data are, so that a torch CUDA tensor stays on its
        device and tensors come out; "cuda" or "cuda:1" to move NumPy data to a GPU, block by
        block where they do not fit, and get NumPy back; "cpu" for the threads of this machine.
        On a device `memory` is a budget of its memory. Needs the extra ``torch``.

    verbose : int, default=0
        1 shows a progress bar, 2 a line each minute for logs.

    callback : callable or None, default=None
        ``callback(state)`` after each pass, with ``n_passes``, ``values``, ``residual`` and
        ``tol``; returning True ends the fit with what there is.

    checkpoint : str, path or None, default=None
        A folder in which a long fit leaves what it has found: every product with the kernel
        matrix of block Krylov, and the sums of passes over rows every minute. A killed fit that is
        started again goes on there, and ends with the same numbers for the same `n_jobs` and
        `memory`. It is removed after success, and refused for other data or parameters. The
        products take 8 n (n_components + 16) bytes each, usually 5 to 8 of them. LAPACK starts
        anew.

    Attributes
    ----------
    eigenvalues_ : array of shape (n_components,)
        Eigenvalues of the centered kernel matrix, largest first.

    eigenvectors_ : array of shape (n_samples, n_components)
        Its eigenvectors; the entry of largest modulus is positive.

    explained_variance_ : array of shape (n_components,)
        Variance along each component: eigenvalues / (n_samples - 1), as in scikit-learn's
        PCA; / n_samples if not centered.

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

    gamma_ : float or array
        Its width, or that of each column; 1 / n_features of kernels without one and of sums.

    dual_coef_, X_transformed_fit_ : arrays
        The learned inverse transform, with ``fit_inverse_transform``.

    X_fit_ : array of shape (n_samples, n_features)
        The training data, where the basis is all points.

    landmarks_ : array of shape (m, n_features)
        The landmarks, where the basis is landmarks; the training data are then not kept,
        and there are no `eigenvectors_`.

    X_sample_ : array of shape (at most 2000, n_features)
        Some training rows, for pre-images, where the basis is not all points.

    n_features_in_ : int
        Columns of X.

    feature_names_in_ : array of str
        Their names, where X has them.

    significance_ : Significance
        What `significance` found last.

    stage : str
        What the next `partial` is for, "survey" or "moments"; "fitted" where none is needed.

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

    _fitted: ClassVar[dict[str, Fitted]] = KernelModel._fitted | {
        "dual_coef_": Fitted("t d"),
        "X_transformed_fit_": Fitted("t r"),
    }

    n_components: Annotated[int | float | None, AT_LEAST_1, SHARE, None] = None
    _: KW_ONLY
    alpha: Annotated[float, NOT_NEGATIVE] = 1.0
    fit_inverse_transform: Flag = False
    eigen_solver: SolverName | Solver = "auto"
    tol: float = 0
    max_iter: Annotated[int | None, AT_LEAST_1, None] = None
    iterated_power: Annotated[int | Literal["auto"], FROM_0, AUTO] = "auto"
    remove_zero_eig: Flag = False
    copy_X: bool = True
    basis: BasisName | BasisRecipe = "auto"
    preimage: PreimageName | Preimage = "auto"
    callback: Callable[..., Any] | None = None

    def fit(self, X: Array, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the components of X.

        Parameters
        ----------
        X : array-like, sparse CSR matrix or memmap of shape (n_samples, n_features)
            With ``kernel="precomputed"`` the kernel matrix, (n_samples, n_samples). Also a path,
            an iterator of blocks or whatever else `mercer.files.open_source` takes, which
            landmarks and random features read in blocks. A Dask array or dataframe is fitted
            where its chunks are.
        y : ignored
        sample_weight : array-like of shape (n_samples,) or None, default=None
            How often each row counts: whole numbers are the same as repeating rows, zero as
            leaving them out. A width that is measured (``gamma="median"``), landmarks and the ridge
            of pre-images are chosen without weights. Also a path, a Dask collection, an iterator of
            blocks, or the name of a column of X, which is then no part of its rows.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)

    def fit_transform(self, X: Same, y: Any = None, sample_weight: Any = None) -> Same:
        """Fit to X and return its scores, (n_samples, n_components).

        With all points as the basis this is cheaper than `fit` and `transform`: the scores
        of the training rows are the scaled eigenvectors.
        """
        read = y if self._needs_target else None
        X, y, sample_weight = with_extras(X, self.memory, y=read, sample_weight=sample_weight)
        self.fit(X, y, sample_weight=sample_weight)
        plain = sample_weight is None and not self._needs_target
        if not self.expansion_.basis.spans_data or not plain:
            return self.transform(X)
        S = self.eigenvectors_ * self.eigenvalues_**0.5
        lazy = lazy_like(S, X, self.X_fit_)
        return contained(self, restore(S, X), X) if lazy is None else lazy

    def partial(
        self, X: Array, y: Any = None, sample_weight: Any = None, *, first_row: int | None = None
    ) -> State:
        """The sums over some rows that the next pass of a fit needs, computed on any engine.

        The model is not changed. Its copies give the same: pickle it to where the rows are.

        Parameters
        ----------
        X : array-like, Arrow table or batch, DataFrame, path or other source of (n, n_features)
            A batch of any length. All batches have the same columns.
        y : array-like of shape (n,) or None, default=None
            As of `fit`, for estimators that need it.
        sample_weight : array-like of shape (n,), str or None, default=None
            As of `fit`.
        first_row : int or None, default=None
            The number of the first row among all rows, for the sample, and with it the landmarks,
            of a fit to one array. None takes a number that follows from what the rows are.

        Returns
        -------
        State
            `mercer.merge` adds it to those of other batches, and `advance` takes the sum.
        """
        if self.stage == "fitted":
            raise ValueError(
                "The model is fitted, and needs no more passes. Use sklearn.base.clone(model) to "
                "begin a new fit, or transform for scores."
            )
        if not isinstance(self.random_state, Integral) or self.checkpoint is not None:
            raise ValueError(
                "partial needs random_state=, a whole number by which all workers draw the same, "
                "and no checkpoint=. Set both."
            )
        if first_row is not None and not (isinstance(first_row, Integral) and first_row >= 0):
            raise ValueError(f"first_row={first_row!r} must be a whole number from 0, or None.")
        read = y if self._needs_target else None
        X, y, sample_weight = with_extras(X, self.memory, y=read, sample_weight=sample_weight)
        given = {"y": y, "sample_weight": sample_weight}
        given = {name: to_numpy(x) for name, x in given.items() if x is not None}
        fresh, step = unfitted(self), vars(self).get("_step")
        fresh._least_rows = 0
        if step is not None:
            fresh.n_features_in_ = step.layout.width
            if step.layout.columns is not None:
                fresh.feature_names_in_ = np.array(step.layout.columns, dtype=object)
        rows = fresh._open(X, reset=step is None)
        if fresh._encoding is not None:
            raise ValueError(
                "partial takes batches of numbers: categories and objects need all rows at once. "
                "Pass codes for categories."
            )
        names = vars(fresh).get("feature_names_in_")
        facts = fresh.n_features_in_, None if names is None else list(names), rows.dtype.name
        layout = Layout(self._digest(), *facts, list(given))
        step = fresh._stopped(SummedRows(layout)) if step is None else step
        step.layout.check(layout)
        return step.state_of(rows.blocks(), given, self._make_engine(), first_row)

    def advance(self, state: State | bytes) -> Self:
        """Go on with the merged state of all rows: choose what the next pass needs, or finish.

        After the survey the width and the landmarks are chosen, and `stage` is "moments"; after
        the moments the model is fitted, with its certificate. Weights and a target take further
        surveys: go on until `stage` is "fitted".

        Parameters
        ----------
        state : State or bytes
            What `mercer.merge` gave for the states of all rows.

        Returns
        -------
        self
        """
        state, step = merge([state]), vars(self).get("_step")
        replace(state.layout, model=self._digest()).check(state.layout)
        states = (state,) if step is None else (*step.states, state)
        fresh = unfitted(self)
        step = fresh._stopped(SummedRows(state.layout, states))
        if step is None:
            become(self, fresh)
        else:
            self._step = step
        return self

    def _digest(self) -> str:
        """A digest of the parameters, by which states are matched."""
        return identity_of(type(self).__name__, self._settings())

    def _stopped(self, rows: SummedRows) -> Step | None:
        """Fit to rows as far as their sums allow; the pass that is missing, None at the end."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                self.fit(rows, **rows.extras)
            except NextPass as missing:
                return missing.step  # its warnings come again
        for warning in caught:
            tell(str(warning.message), warning.category)
        return None

    @property
    def stage(self) -> str:
        """What the next `partial` is for: "survey" or "moments"; "fitted" where none is needed."""
        step = vars(self).get("_step")
        if "expansion_" in vars(self):
            return "fitted"
        return "survey" if step is None else step.stage

    def _problem(self, task, basis):
        self._check_preimage(basis)
        if not self.fit_inverse_transform:
            return components_problem(task, basis)
        if task.kernel.per_column and self._encoder() is not None:
            raise ValueError(
                f"fit_inverse_transform=True takes the kernel between scores, and kernel="
                f"{self.kernel!r} is made for the columns of X. Leave it out: inverse_transform "
                "works without it."
            )
        n, memory = task.rows.shape[0], task.engine.memory
        need = 2 * n**2 * task.rows.dtype.itemsize
        if need > memory:
            what = f"the n x n system of {n:,} rows that fit_inverse_transform=True solves"
            raise too_little(memory, need, what, "Fit without it. ")
        return components_problem(task, basis)

    def _attributes(self, result, plan, task) -> dict[str, Any]:
        attributes = super()._attributes(result, plan, task)
        if not self.fit_inverse_transform:
            return attributes
        # As scikit-learn's: a ridge regression on the scores.
        expansion, engine = attributes["expansion_"], task.engine
        if expansion.basis.spans_data:
            S = attributes["eigenvectors_"] * attributes["eigenvalues_"] ** 0.5
        else:
            S = expansion.scores(task.array)
        # The matrix, its factor and a copy.
        on_host = engine.device is None or 24 * S.shape[0] ** 2 > engine.memory
        S = to_numpy(S) if on_host else engine.asarray(S)
        alpha = self.alpha if task.weights is None else self.alpha / task.weights
        B = ridge_inverse(score_kernel(attributes["kernel_"]), S, task.array, alpha)
        like = like_of(task.rows)
        return attributes | {"dual_coef_": restore(B, like), "X_transformed_fit_": restore(S, like)}

    def _warn(self, result, plan, task) -> None:
        super()._warn(result, plan, task)
        choosing.warn_of_result(result, plan, task, self._limit(result.problem))

    def _limit(self, problem) -> str:
        """Name of the limit on n_components, for messages."""
        return "n_samples" if problem.basis.spans_data else "the rank of the basis"

    def _keeps_copy(self) -> bool:
        """Landmarks, random features and a Fourier grid keep no rows, or copies of some."""
        keeps = self.basis in ("auto", "points") or isinstance(self.basis, AllPoints | Columns)
        return self.copy_X and keeps
