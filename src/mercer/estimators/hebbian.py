"""Kernel PCA by Hebbian rules, as a scikit-learn estimator."""

from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import validate_data

from ..bases import AllPoints, PointBasis, PrecomputedBasis
from ..certificate import Certificate
from ..compute import to_numpy
from ..compute.arrays import is_foreign
from ..expansion import KernelExpansion
from ..metrics import excess_reconstruction_error, minimal_reconstruction_error
from ..online import GAINS, READOUTS, GrowingHebbian, hebbian_eigenpairs, make_gain
from ..problems import GramProblem
from ..solvers import canonical
from .base import KernelEstimator, tell
from .progress import FitProgress
from .validation import as_source, check_gram, float_type


class HebbianKernelPCA(KernelEstimator):
    """Kernel PCA that learns from one sample at a time: KHA, KHA/t, KHA/et, KHA-SMD.

    The Kernel Hebbian Algorithm of Kim, Franz and Schoelkopf with the gains of Schraudolph,
    Guenter and Vishwanathan, run in exact blocks: the same iterates as the one-sample rule at
    the speed of matrix products. For fixed data `KernelPCA` is more accurate for fewer
    passes; this is for data that arrive or drift (`partial_fit`) and for the papers' methods.

    Parameters
    ----------
    n_components : int, default=10
        Number of components.

    kernel, gamma, degree, coef0, kernel_params
        As in `KernelPCA`.

    gain : "auto", "constant", "t", "et" or "smd", default="auto"
        The rule: "auto" keeps the directions orthonormal, carries a few more than asked for
        and has nothing to tune; the others are as published.

    eta0 : float or None, default=None
        Gain of the published rules; None for a safe one from the size of the kernel.

    mu : float or None, default=None
        Rate of the meta-descent of "smd"; None for a safe one.

    xi : float, default=0.99
        Its memory.

    rho0 : float, default=0.0
        Its start. The paper's 1 diverges on its own data.

    scale : float or None, default=None
        Scale of the random start; 1 is the published one, None makes unit vectors of feature
        space.

    n_passes : int, default=10
        Passes over the data, at most.

    oversampling : int or None, default=None
        Directions carried beyond those asked for; None is 10 for "auto" and 0 otherwise.

    block : int, default=128
        Rows of the kernel matrix made at once.

    readout : "ritz", "nystroem", "carried" or "free", default="ritz"
        How the result is read after the last pass: "free" takes the directions as they are;
        "carried" improves them at no cost; "nystroem" and "ritz" spend one more product,
        and "ritz" certifies the result.

    tol : float, default=0.0
        Stop when the subspace turns by less than this (sine of the angle) in a pass.

    track_excess : bool, default=False
        Record the excess reconstruction error of each pass. Needs the exact eigenvalues, and
        so an exact fit first: for study, not for work.

    forgetting : float, default=0.0
        For `partial_fit`: weight of a new sample, at least; f > 0 is a memory of 1 / f samples.

    budget : int or None, default=None
        For `partial_fit`: points the model may hold.

    random_state, n_jobs, center, memory, verbose, callback
        As in `KernelPCA`.

    Attributes
    ----------
    eigenvalues_, eigenvectors_, explained_variance_, explained_variance_ratio_, certificate_, \
    expansion_, kernel_, gamma_, X_fit_
        As in `KernelPCA`.

    history_ : History
        Per pass: gains, eigenvalue estimates, residual estimates, change of the subspace and,
        where asked for, the excess error.

    budget_loss_ : array of shape (1 + n_components,)
        After `partial_fit`: the squared norm that the mean and each direction lost to the
        budget.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mercer import HebbianKernelPCA
    >>> X, _ = load_digits(return_X_y=True)
    >>> model = HebbianKernelPCA(5, kernel="rbf", gamma="median", n_passes=3, random_state=0)
    >>> model.fit_transform(X).shape
    (1797, 5)
    """

    _parameter_constraints: ClassVar[dict] = {
        **KernelEstimator._parameter_constraints,
        "gain": [StrOptions(set(GAINS))],
        "eta0": [Interval(Real, 0, None, closed="neither"), None],
        "mu": [Interval(Real, 0, None, closed="left"), None],
        "xi": [Interval(Real, 0, 1, closed="both")],
        "rho0": [Interval(Real, None, None, closed="neither")],
        "scale": [Interval(Real, 0, None, closed="neither"), None],
        "n_passes": [Interval(Integral, 1, None, closed="left")],
        "oversampling": [Interval(Integral, 0, None, closed="left"), None],
        "block": [Interval(Integral, 1, None, closed="left")],
        "readout": [StrOptions(set(READOUTS))],
        "tol": [Interval(Real, 0, None, closed="left")],
        "track_excess": ["boolean"],
        "forgetting": [Interval(Real, 0, 1, closed="left")],
        "budget": [Interval(Integral, 2, None, closed="left"), None],
    }

    def __init__(
        self,
        n_components=10,
        *,
        kernel="linear",
        gamma=None,
        degree=3,
        coef0=1,
        kernel_params=None,
        gain="auto",
        eta0=None,
        mu=None,
        xi=0.99,
        rho0=0.0,
        scale=None,
        n_passes=10,
        oversampling=None,
        block=128,
        readout="ritz",
        tol=0.0,
        track_excess=False,
        forgetting=0.0,
        budget=None,
        random_state=None,
        copy_X=True,
        n_jobs=None,
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
        self.gain = gain
        self.eta0 = eta0
        self.mu = mu
        self.xi = xi
        self.rho0 = rho0
        self.scale = scale
        self.n_passes = n_passes
        self.oversampling = oversampling
        self.block = block
        self.readout = readout
        self.tol = tol
        self.track_excess = track_excess
        self.forgetting = forgetting
        self.budget = budget
        self.random_state = random_state
        self.copy_X = copy_X
        self.n_jobs = n_jobs
        self.center = center
        self.memory = memory
        self.verbose = verbose
        self.callback = callback

    def fit(self, X, y=None):
        """Learn the components of X in passes over its rows.

        Parameters
        ----------
        X : array-like, sparse CSR matrix or memmap of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        source, X = X, self._validate(X, reset=True)
        self._check_size(X)
        self.kernel_ = self._make_kernel(X)
        with FitProgress(self.verbose, self.callback) as progress:
            problem = GramProblem(self._build_basis(X), self.center)
            with problem.basis.engine.single_blas():
                pairs, self.history_ = self._learn(problem, progress.report)
        pairs = canonical(pairs, X.dtype.char if X.dtype == np.float32 else "d")
        self.expansion_, self.certificate_ = problem.assemble(pairs)
        problem.basis.release()
        self._set_results(pairs, problem, X, source)
        if self.history_.interrupted:
            tell(
                f"Interrupted after {len(self.history_.changes)} passes: the model is what "
                "they had learned."
            )
        self._stream = None
        return self

    def fit_transform(self, X, y=None):
        """Fit to X and return its scores, (n_samples, n_components)."""
        self.fit(X, y)
        scores = to_numpy(self.eigenvectors_) * np.sqrt(to_numpy(self.eigenvalues_))
        return as_source(scores, X)

    def partial_fit(self, X, y=None):
        """Learn more rows of a stream, in their order.

        The first call starts the stream and must bring more rows than components. New rows
        join the points of the model; beyond `budget` the least useful leave, and what that
        costs is in `budget_loss_`. With `forgetting` the model follows data that drift.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        y : ignored

        Returns
        -------
        self
        """
        first = getattr(self, "_stream", None) is None
        if first and hasattr(self, "expansion_"):
            raise ValueError(
                "This model was fitted with fit, and a stream starts from its own first rows. "
                "Use a new HebbianKernelPCA for partial_fit."
            )
        if first:
            self._validate_params()
        X = validate_data(
            self, to_numpy(X) if is_foreign(X) else X, reset=first, dtype=[np.float64, np.float32]
        )
        if first:
            self._start_stream(X)
        self._stream.partial_fit(X.astype(float))
        self._read_stream(X)
        return self

    def _check_size(self, X):
        if X.shape[0] <= self.n_components:
            raise ValueError(
                f"n_components={self.n_components} needs more than {X.shape[0]} rows. Give more "
                "rows or ask for fewer components."
            )

    def _build_basis(self, X):
        engine = self._make_engine()
        if self._is_precomputed():
            check_gram(X)
            return PrecomputedBasis(X, engine)
        return AllPoints().build(self.kernel_, X, engine, None, self.n_components)

    def _learn(self, problem, report):
        """Passes of the rule over the problem's Gram matrix."""
        operator = problem.operator
        if self._dtype == np.float32 and operator.draft is not None:
            operator = operator.draft
        gain = make_gain(self.gain, **self._gain_settings())
        return hebbian_eigenpairs(
            operator,
            self.n_components,
            gain,
            n_passes=self.n_passes,
            oversampling=self.oversampling,
            block=self.block,
            tol=self.tol,
            scale=self.scale,
            readout=self.readout,
            rng=self._make_rng(),
            report=report,
            measure=self._excess(problem) if self.track_excess else None,
        )

    def _gain_settings(self) -> dict:
        """The settings that the chosen gain has."""
        given = {"eta0": self.eta0, "mu": self.mu, "xi": self.xi, "rho0": self.rho0}
        known = GAINS[self.gain]._get_param_names()
        return {name: value for name, value in given.items() if name in known}

    def _excess(self, problem):
        """The excess error of coefficients; the exact eigenvalues are found once."""
        K = problem.operator.to_dense()
        least = minimal_reconstruction_error(np.linalg.eigvalsh(K), self.n_components)
        return lambda A: excess_reconstruction_error(K, A, least)

    def _start_stream(self, X):
        self._check_size(X)
        if self._is_precomputed():
            raise ValueError("partial_fit needs points, and a precomputed kernel has none.")
        if self.budget is not None and self.budget <= self.n_components:
            raise ValueError(
                f"budget={self.budget} points cannot hold n_components={self.n_components}. "
                "Give a larger budget."
            )
        self.kernel_ = self._make_kernel(X)
        self._set_gamma(X)
        self._dtype = X.dtype
        extra = 10 if self.oversampling is None else self.oversampling
        self._stream = GrowingHebbian(
            self.kernel_, self.n_components, self.forgetting, self.budget, extra, self.block
        )

    def _read_stream(self, X):
        """The expansion and the shares of variance as the stream has them now."""
        stream, r = self._stream, self.n_components
        basis = PointBasis(self.kernel_, stream.points, self._make_engine())
        frame, metric = stream.frame[:, : 1 + r], stream.metric[: 1 + r, : 1 + r]
        self.expansion_ = KernelExpansion(basis, frame, metric)
        values = np.asarray(stream.variances[:r])
        share = float(min(1.0, values.sum() / max(stream.variance, np.finfo(float).tiny)))
        dtype = float_type(X)
        self.eigenvalues_ = (values * stream.count).astype(dtype)
        self.explained_variance_ = values.astype(dtype)
        self.explained_variance_ratio_ = (values / max(stream.variance, 1e-300)).astype(dtype)
        self.budget_loss_ = stream.lost[: 1 + r].copy()
        self.n_samples_seen_ = stream.count
        totals = values * stream.count
        self.certificate_ = Certificate("estimate", totals, totals, None, (share, share), True)
