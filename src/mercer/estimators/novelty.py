"""Novelty detection by the reconstruction error of kernel PCA."""

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ..bases import BasisRecipe, FourierGrid
from ..compute.arrays import Array
from ..kernels import KERNELS, Kernel
from ._input import in_one_place
from ._parameters import CheckedEstimator, Interval, StrOptions
from ._summary import Portable
from ._whole import all_or_nothing
from .kernel_pca import KernelPCA


class NoveltyDetector(Portable, OutlierMixin, CheckedEstimator):
    """Rows that the components of normal data do not explain (Hoffmann 2007).

    The score of a row is its squared distance, in feature space, to its reconstruction. The
    threshold comes from rows held out of the fit: the errors of training rows are too small to
    set it.

    Parameters
    ----------
    n_components : int or float, default=40
        Components that describe normal rows; not sensitive between 20 and 80. A float is the
        share of variance to keep.

    kernel : str, Kernel or callable, default="rbf"
    gamma : float, "median", "mean" or None, default="median"
        As in `KernelPCA`. Widths between the median distance and twice that do equally well;
        a quarter of it makes this a density estimate, which is worse.

    degree, coef0, kernel_params, basis, memory, n_jobs
        As in `KernelPCA`.

    false_alarms : float, default=0.05
        Share of normal rows to be called novel.

    holdout : float, default=0.2
        Share of the rows that set the threshold.

    random_state : int, RandomState or None, default=None
        Which rows are held out.

    Attributes
    ----------
    model_ : KernelPCA
        Fitted to the rows not held out.

    offset_ : float
        Scores below it are novel.

    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import NoveltyDetector
    >>> angle = np.linspace(0, 6.28, 200)
    >>> ring = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> detector = NoveltyDetector(10, gamma=2.0, random_state=0).fit(ring)
    >>> detector.predict([[1.0, 0.0], [0.0, 0.0]])
    array([ 1, -1])
    """

    _parameter_constraints: ClassVar[dict] = {
        **{name: KernelPCA._parameter_constraints[name] for name in ("degree", "coef0")},
        "n_components": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="neither"),
        ],
        "kernel": [StrOptions(set(KERNELS) - {"precomputed"}), callable, Kernel],
        "gamma": KernelPCA._parameter_constraints["gamma"],
        "false_alarms": [Interval(Real, 0, 1, closed="neither")],
        "holdout": [Interval(Real, 0, 1, closed="neither")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components: int | float = 40,
        *,
        kernel: str | Kernel | Callable[..., Any] = "rbf",
        gamma: float | str | None = "median",
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        basis: str | BasisRecipe = "auto",
        false_alarms: float = 0.05,
        holdout: float = 0.2,
        random_state: int | np.random.RandomState | None = None,
        memory: int | str | None = None,
        n_jobs: int | None = None,
    ):
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.basis = basis
        self.false_alarms = false_alarms
        self.holdout = holdout
        self.random_state = random_state
        self.memory = memory
        self.n_jobs = n_jobs

    @all_or_nothing
    def fit(self, X: Array, y: Any = None) -> Self:
        """Learn normal rows and the threshold.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Normal rows.
        y : ignored

        Returns
        -------
        self
        """
        self._validate_params()
        X = self._check(X, reset=True)
        rng = check_random_state(self.random_state)
        kept, held = split(len(X), self.holdout, rng)
        self.model_ = self._model(len(kept), rng).fit(X[kept])
        errors = self.model_.reconstruction_error(X[held])
        self.offset_ = -float(np.quantile(errors, 1 - self.false_alarms))
        return self

    def score_samples(self, X: Array) -> Array:
        """Minus the reconstruction error of every row, (n,): lower is more novel."""
        check_is_fitted(self)
        return -self.model_.reconstruction_error(self._check(X, reset=False))

    def decision_function(self, X: Array) -> Array:
        """Scores from the threshold, (n,): negative for novel rows."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Array) -> Array:
        """1 for normal rows and -1 for novel ones, (n,)."""
        return np.where(self.decision_function(X) < 0, -1, 1)

    def _check(self, X, *, reset):
        X = in_one_place(X, self.memory, "NoveltyDetector")
        least = {"ensure_min_samples": 3} if reset else {}
        return validate_data(self, X, reset=reset, dtype=[np.float64, np.float32], **least)

    def _model(self, n, rng) -> KernelPCA:
        r = self.n_components
        return KernelPCA(
            min(r, n - 1) if isinstance(r, Integral) else r,
            kernel=self.kernel,
            gamma=None if isinstance(self.kernel, Kernel) else self._width(),
            degree=self.degree,
            coef0=self.coef0,
            kernel_params=self.kernel_params,
            # Novel rows lie where no others do.
            basis=FourierGrid(margin="all") if self.basis == "fourier" else self.basis,
            memory=self.memory,
            n_jobs=self.n_jobs,
            random_state=rng.randint(np.iinfo(np.int32).max),
        )

    def _width(self):
        """Words measure a distance, which only some kernels know."""
        measured = {"rbf", "laplacian", "matern", "rational_quadratic"}
        return self.gamma if self.kernel in measured or self.gamma != "median" else None


def split(n, share, rng):
    """Rows to learn from and rows held out, at least two and one."""
    held = int(np.clip(round(share * n), 1, n - 2))
    order = rng.permutation(n)
    return np.sort(order[held:]), np.sort(order[:held])
