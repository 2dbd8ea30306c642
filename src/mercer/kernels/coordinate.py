"""Kernels that are sums over coordinates, and the user's own function of two rows."""

import numpy as np
from scipy.special import ndtr
from sklearn.base import clone
from sklearn.metrics.pairwise import pairwise_kernels

from ..compute import is_sparse, to_numpy
from .base import DirectKernel, Kernel, WidthMixin


class Laplacian(WidthMixin, DirectKernel):
    """``exp(-gamma |x - z|_1)``.

    Parameters
    ----------
    gamma : float, "median", "mean" or None
        A word takes 1 / gamma to be that L1 distance between rows; None is
        1 / number of columns, as in scikit-learn.
    """

    _metric = "cityblock"

    def __init__(self, gamma=None):
        self.gamma = gamma

    @staticmethod
    def _width(distance):
        return 1.0 / distance if distance > 0 else 1.0

    def fill(self, X, Z, out):
        """L1 distances by a compiled loop, then exp."""
        from ..compute._numba import l1_distances

        l1_distances(dense(X), dense(Z), out)
        out *= -self.gamma
        np.exp(out, out=out)

    def frequencies(self, G, rng):
        """Independent Cauchy coordinates, as quantiles of Gaussian ones."""
        return self.gamma * np.tan(np.pi * (ndtr(G) - 0.5))

    def diag(self, X):
        """Ones."""
        return np.ones(X.shape[0])


class AdditiveChi2(DirectKernel):
    """``-sum_k (x_k - z_k)^2 / (x_k + z_k)`` for non-negative rows such as histograms.

    Conditionally positive definite: centred, its matrix is positive semidefinite.
    """

    definite = False

    def check(self, X):
        """Histograms have no negative entries."""
        least = X.data.min(initial=0) if is_sparse(X) else X.min()
        if least < 0:
            raise ValueError(
                f"{type(self).__name__} needs non-negative data and found {least:.3g}. "
                "Shift or clip the data, or choose another kernel."
            )

    def fill(self, X, Z, out):
        """Minus the chi-squared distances."""
        from ..compute._numba import chi2_distances

        chi2_distances(dense(X), dense(Z), out)
        np.negative(out, out=out)

    def diag(self, X):
        """Zeros."""
        return np.zeros(X.shape[0])


class Chi2(AdditiveChi2):
    """``exp(-gamma sum_k (x_k - z_k)^2 / (x_k + z_k))`` for non-negative rows.

    Parameters
    ----------
    gamma : float or None
        None is 1, as scikit-learn's `chi2_kernel` has it; `KernelPCA` passes its own.
    """

    definite = True

    def __init__(self, gamma=None):
        self.gamma = gamma

    def resolve(self, X, rng=None) -> Kernel:
        """A copy with gamma as a number."""
        resolved = clone(self)
        if isinstance(self.gamma, str):
            raise ValueError(f"gamma={self.gamma!r} is not known to Chi2. Give a number or None.")
        resolved.gamma = 1.0 if self.gamma is None else self.gamma
        return resolved

    def fill(self, X, Z, out):
        """exp of the scaled additive kernel."""
        super().fill(X, Z, out)
        out *= self.gamma
        np.exp(out, out=out)

    def diag(self, X):
        """Ones."""
        return np.ones(X.shape[0])


class Callable(DirectKernel):
    """The user's function of two rows, called pair by pair: correct and slow.

    Parameters
    ----------
    function : callable
        ``function(x, z, **params) -> float`` for two rows.
    params : dict or None
    """

    definite = False

    def __init__(self, function, params=None):
        self.function = function
        self.params = params

    def fill(self, X, Z, out):
        """Call it for every pair."""
        out[...] = pairwise_kernels(X, Z, metric=self.function, **(self.params or {}))

    def spread(self, X):
        """The function costs the same in any precision, so there is no use for a draft."""
        return np.inf

    def diag(self, X):
        """Call it for every row with itself."""
        params = self.params or {}
        rows = (X[i : i + 1] if is_sparse(X) else X[i] for i in range(X.shape[0]))
        return np.array([float(self.function(x, x, **params)) for x in rows])


def dense(X):
    """Rows as a contiguous NumPy array, which compiled loops need."""
    return np.ascontiguousarray(X.toarray() if is_sparse(X) else to_numpy(X))
