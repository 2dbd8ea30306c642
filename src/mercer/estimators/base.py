"""What the estimators share: checked input, a kernel with numbers, an engine, the expansion.

Every method ends in the same object, so scores, errors and shares of variance are here.
"""

from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ..compute import TiledEngine, make_engine, to_numpy
from ..compute.arrays import is_foreign, is_on_device
from ..compute.cluster import is_dask
from ..exceptions import tell
from ..kernels import KERNELS, Callable, Kernel, Precomputed
from .cluster_scores import lazy_errors, lazy_scores
from .inverse import InverseMixin
from .parameters import CheckedEstimator, Interval, StrOptions
from .portable import Exportable
from .validation import check_file, check_tensor, float_type, in_type, restore_like

# Kernel names whose parameters scikit-learn's KernelPCA ignores in kernel_params; ours
# beyond those take them.
OWN_KERNELS = {"matern", "rational_quadratic"}

# Variance below this share of the kernel's own size is rounding.
ZERO_VARIANCE = 1e-14

# Energy in a span beyond that of the rows themselves, as a share, that spoils results.
OVERSHOOT = 0.1
INDEFINITE = (
    "{} is indefinite on these data: their projections are longer than they are, so eigenvalues, "
    "scores and bounds from a few points are not to be trusted. Use KernelPCA(basis='points'), or "
    "a kernel that is positive semidefinite."
)


class KernelInput(CheckedEstimator):
    """Checked input, the kernel with numbers, the engine and the generator of a fit.

    A subclass has the parameters ``kernel, gamma, degree, coef0, kernel_params, memory, n_jobs,
    random_state``.
    """

    def _validate(self, X, *, reset: bool):
        """X as a NumPy array, memmap or CSR matrix of floats, checked once and for all."""
        if reset:
            self._validate_params()
        else:
            check_is_fitted(self)
        if is_on_device(X) and self._computes_on_devices(reset):
            X = check_tensor(self, X, reset)
        else:
            X = to_numpy(X) if is_foreign(X) else X
            check = self._check_file if isinstance(X, np.memmap) else self._check_array
            X = check(X, reset)
        if reset:
            self._dtype = np.dtype(float_type(X) if is_foreign(X) else X.dtype)
        elif hasattr(self, "kernel_"):
            self.kernel_.check(X)
        return X

    def _check_array(self, X, reset):
        """Check an array in memory; a copy where one was asked for."""
        least = {"ensure_min_samples": 2} if reset else {}
        return validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr" if self._takes_sparse() else False,
            dtype=[np.float64, np.float32],
            copy=reset and getattr(self, "copy_X", False),
            **least,
        )

    def _check_file(self, X, reset):
        """Check a memmap in blocks, without a copy."""
        check_file(X, 2 if reset else 1)
        return validate_data(self, X, reset=reset, skip_check_array=True)

    def _computes_on_devices(self, reset: bool) -> bool:
        """Whether data stay on the device they are on; else they come to main memory."""
        if reset or not hasattr(self, "expansion_"):
            return getattr(self, "device", "cpu") != "cpu"
        return self.expansion_.basis.engine.device is not None

    def _make_engine(self, X=None, on_tiles=None) -> TiledEngine:
        device = getattr(self, "device", "cpu")
        return make_engine(
            X, memory=self.memory, device=device, threads=self.n_jobs, on_tiles=on_tiles
        )

    def _make_rng(self) -> np.random.Generator:
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        return np.random.default_rng(seed)

    def _make_kernel(self, X) -> Kernel:
        """The kernel asked for, with numbers for its parameters, checked against X."""
        kernel = self._named_kernel(X)
        gamma = kernel.gamma
        if gamma is not None and not isinstance(gamma, str) and not 0 <= gamma < np.inf:
            raise ValueError(
                f"gamma={gamma!r} must be a finite number that is not negative, such as 0.1."
            )
        # The same rows always settle a width, so that it does not move with random_state.
        resolved = kernel.resolve(X)
        resolved.check(X)
        return resolved

    def _named_kernel(self, X) -> Kernel:
        if isinstance(self.kernel, Kernel):
            if self.gamma is not None:
                raise ValueError(
                    "gamma was given twice, to the estimator and with a kernel object. "
                    f"Write kernel={type(self.kernel).__name__}(gamma=...) and leave the other out."
                )
            return self.kernel
        if callable(self.kernel):
            return Callable(self.kernel, self.kernel_params)
        kind = KERNELS[self.kernel]
        given = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
        if given["gamma"] is None:
            given["gamma"] = 1.0 / X.shape[1]
        if self.kernel in OWN_KERNELS:
            given |= self.kernel_params or {}
        known = kind().get_params(deep=False)
        return kind(**{name: value for name, value in given.items() if name in known})

    def _is_precomputed(self) -> bool:
        return self.kernel == "precomputed" or isinstance(self.kernel, Precomputed)

    def _takes_sparse(self) -> bool:
        """A learned inverse transform gives dense rows, so it needs dense ones."""
        return not getattr(self, "fit_inverse_transform", False)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse()
        tags.input_tags.pairwise = self._is_precomputed()
        return tags


class KernelEstimator(
    Exportable, InverseMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelInput
):
    """Scores and errors of every method that ends in a kernel expansion."""

    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "kernel": [StrOptions(set(KERNELS)), callable, Kernel],
        "gamma": [Interval(Real, 0, None, closed="left"), StrOptions({"median", "mean"}), None],
        "degree": [Interval(Real, 0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "kernel_params": [dict, None],
        "random_state": ["random_state"],
        "n_jobs": [None, Integral],
        "copy_X": ["boolean"],
        "center": ["boolean"],
        "memory": [Interval(Real, 0, None, closed="neither"), str, None],
        "verbose": ["verbose"],
        "callback": [callable, None],
    }

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
        if is_dask(X):
            return lazy_scores(self, X)
        source, X = X, self._validate(X, reset=False)
        return restore_like(in_type(self.expansion_.scores(X), float_type(X)), source)

    def reconstruction_error(self, X):
        """Squared feature-space distance of every row to its reconstruction, (n,).

        Zero for rows that the components explain, large for rows unlike the training data.
        """
        if is_dask(X):
            return lazy_errors(self, X)
        source, X = X, self._validate(X, reset=False)
        errors = in_type(self.expansion_.squared_errors(X), float_type(X))
        return restore_like(errors, source)

    def score(self, X, y=None):
        """Minus the mean reconstruction error of X in feature space.

        Compares methods at one kernel. It must not be used to choose gamma: the error
        falls without end as the kernel widens, whatever the data.
        """
        return -float(to_numpy(self.reconstruction_error(X)).mean())

    def _set_results(self, pairs, problem, X, source):
        """Set the fitted attributes that follow from canonical eigenpairs."""
        basis = self.expansion_.basis
        degrees = problem.count - 1 if self.center else problem.count
        total = max(problem.total, np.finfo(float).tiny)

        def out(array):
            return restore_like(in_type(array, float_type(X)), source)

        self.eigenvalues_ = out(pairs.values)
        self.explained_variance_ = out(pairs.values / degrees)
        with np.errstate(over="ignore"):  # the total of an indefinite kernel may be nothing
            self.explained_variance_ratio_ = out(np.minimum(pairs.values / total, 1.0))
        if basis.spans_data:
            self.eigenvectors_ = out(pairs.vectors)
            self.X_fit_ = X
        else:
            self._keep_sample(X)
            if basis.points is not None:
                self.landmarks_ = restore_like(basis.points, source)
        self._set_gamma(X)
        moments = getattr(problem, "moments", None)
        if moments is not None and basis.exact_norms and overshoots(moments):
            tell(INDEFINITE.format(self.kernel_))
        elif problem.total <= ZERO_VARIANCE * problem.scale:
            tell(
                "The data have no variance in feature space, as when all rows are equal: "
                "every component is zero."
            )

    def _set_gamma(self, X):
        fallback = self.gamma if isinstance(self.gamma, Real) else 1.0 / X.shape[1]
        self.gamma_ = fallback if self.kernel_.gamma is None else self.kernel_.gamma

    @property
    def _n_features_out(self):
        """Columns of the scores."""
        return self.eigenvalues_.shape[0]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def overshoots(moments) -> bool:
    """Whether rows are longer in a span than they are: only an indefinite kernel makes them so."""
    return moments.projected_energy > (1.0 + OVERSHOOT) * max(float(moments.energy), 0.0)
