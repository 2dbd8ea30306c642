"""What the estimators share: checked input, a kernel with numbers, an engine."""

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ..compute import LocalEngine, parse_bytes, restore, to_numpy
from ..compute.arrays import is_foreign
from ..kernels import KERNELS, Callable, Kernel, Precomputed

# Kernel names whose parameters scikit-learn's KernelPCA ignores in kernel_params; ours
# beyond those take them.
OWN_KERNELS = {"matern", "rational_quadratic"}

# Rows checked at a time when a file on disk is too large to check at once.
CHECK_ROWS = 65536


class KernelEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Input checks, kernel, engine and random state of every kernel method."""

    def _validate(self, X, *, reset: bool):
        """X as a NumPy array, memmap or CSR matrix of floats, checked once and for all."""
        if reset:
            self._validate_params()
        else:
            check_is_fitted(self)
        if is_foreign(X):
            X = to_numpy(X)
        if isinstance(X, np.memmap):
            return self._validate_file(X, reset)
        least = {"ensure_min_samples": 2} if reset else {}
        X = validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr" if self._takes_sparse() else False,
            dtype=[np.float64, np.float32],
            copy=reset and self.copy_X,
            **least,
        )
        if reset:
            self._dtype = X.dtype
        return X

    def _validate_file(self, X, reset):
        """Check a memmap in blocks, without a copy."""
        if X.ndim != 2 or X.dtype.kind not in "biuf":
            raise ValueError(
                f"Expected a 2D array of numbers, got {X.ndim}D of type {X.dtype} instead."
            )
        X = validate_data(self, X, reset=reset, skip_check_array=True)
        for start in range(0, X.shape[0], CHECK_ROWS):
            if not np.isfinite(X[start : start + CHECK_ROWS]).all():
                raise ValueError("Input X contains NaN or infinity.")
        if reset:
            self._dtype = X.dtype
        return X

    def _make_engine(self, progress=None) -> LocalEngine:
        threads = None if self.n_jobs is None or self.n_jobs < 0 else self.n_jobs
        return LocalEngine(parse_bytes(self.memory), threads, progress)

    def _make_rng(self) -> np.random.Generator:
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        return np.random.default_rng(seed)

    def _make_kernel(self, X) -> Kernel:
        """The kernel asked for, with numbers for its parameters, checked against X."""
        kernel = self._named_kernel(X)
        gamma = getattr(kernel, "gamma", None)
        if gamma is not None and not isinstance(gamma, str) and gamma < 0:
            raise ValueError(f"gamma={gamma!r} must not be negative.")
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
        known = kind._get_param_names()
        return kind(**{name: value for name, value in given.items() if name in known})

    def _is_precomputed(self) -> bool:
        return self.kernel == "precomputed" or isinstance(self.kernel, Precomputed)

    def _takes_sparse(self) -> bool:
        """A learned inverse transform gives dense rows, so it needs dense ones."""
        return not getattr(self, "fit_inverse_transform", False)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.pairwise = self._is_precomputed()
        return tags


def check_gram(K) -> None:
    """Raise ValueError unless K is a square symmetric matrix."""
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"A precomputed kernel must be a square matrix, n_samples x n_samples, and X has "
            f"shape {K.shape}."
        )
    largest = gap = 0.0
    for start in range(0, K.shape[0], 1024):
        rows = slice(start, start + 1024)
        block, mirror = K[rows], K[:, rows].T
        difference = abs(block - mirror)
        gap = max(gap, difference.max())
        largest = max(largest, abs(block).max())
    if gap > 1e-5 * largest:
        raise ValueError(
            f"A precomputed kernel must be symmetric, and entries across the diagonal differ by "
            f"up to {gap:.3g}. Pass (K + K.T) / 2 if that is rounding."
        )


def float_type(X):
    """The type of results for X: float32 stays, all else is float64."""
    return np.float32 if X.dtype == np.float32 else np.float64


def as_source(result, source):
    """A result in the array library of the input it came from."""
    return restore(result, source) if is_foreign(source) else result
