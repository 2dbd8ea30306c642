"""Kernels that are sums over coordinates, and the user's own function of two rows."""

from inspect import signature
from typing import Any

import numpy as np
from scipy.special import ndtr
from sklearn.base import clone

from ..compute import array_namespace, inplace, is_sparse, on_device_of, to_numpy
from ..compute.arrays import Array
from .base import DirectKernel, Kernel, WidthMixin, centering_spread
from .measures import WIDE_ROWS, fits_single, median_row, same_for_all

# Rows on which a user's function is tried both ways, and what may be rounding between the two.
CHECKED_ROWS = 8
ASYMMETRY = 1e-5
# Entries whose squares single precision holds, and their reciprocals.
SQUARED = 2.0**40


class Laplacian(WidthMixin, DirectKernel):
    """``exp(-gamma |x - z|_1)``.

    Parameters
    ----------
    gamma : float, "median", "mean" or None
        A word takes 1 / gamma to be that L1 distance between rows; None is
        1 / number of columns, as in scikit-learn.
    """

    _metric = "cityblock"

    def __init__(self, gamma: float | str | None = None):
        self.gamma = gamma

    @staticmethod
    def _width(distance):
        return 1.0 / distance if distance > 0 else 1.0

    def origin(self, X: Array) -> Any:
        """The median of some rows: distances stay, and single precision has less to hold."""
        return median_row(X)

    def spread(self, X: Array) -> float:
        """gamma |x|_1 of the row farthest from the origin, or what centering cancels."""
        if not fits_single(X):
            return np.inf
        return max(self._farthest(X), centering_spread(self, X))

    def growth(self, X: Array) -> float:
        """The largest gamma |x|_1: differences from the origin are rounded before distances.

        At most what takes all digits of k(x, x) = 1.
        """
        return min(max(1.0, self._farthest(X)), 1 / np.finfo(float).eps)

    def _farthest(self, X) -> float:
        """gamma |x|_1 of the row farthest from the origin."""
        origin, far = self.origin(X), 0.0
        step = 512 if is_sparse(X) or isinstance(X, np.ndarray) else WIDE_ROWS
        for start in range(0, X.shape[0], step):
            rows = X[start : start + step]
            rows = abs(rows if origin is None else rows - origin)
            far = max(far, float(rows.sum(axis=1).max()))
        return self.gamma * far

    def fill(self, X: Array, Z: Array, out: Array) -> None:
        """L1 distances, then exp."""
        add_coordinates("l1_distances", abs_difference, X, Z, out)
        out *= -self.gamma
        inplace(array_namespace(out).exp, out)

    def gradient(self, X: Array, Z: Array, W: Array) -> Array:
        """-gamma sign(x - z) k, column by column; zero at the kinks."""
        xp, K = array_namespace(X), self(X, Z)
        K *= -self.gamma
        parts = [(K * xp.sign(X[:, k][:, None] - Z[:, k][None, :])) @ W for k in range(X.shape[1])]
        return xp.stack(parts, axis=1)

    def frequencies(self, G: Array, rng: np.random.Generator) -> Array:
        """Independent Cauchy coordinates, as quantiles of Gaussian ones."""
        return self.gamma * np.tan(np.pi * (ndtr(G) - 0.5))

    def spectral_density(self, f: Array, d: int) -> Array:
        """A Cauchy density for one column; of several the L1 distance is not Euclidean."""
        return 2 * self.gamma / (self.gamma**2 + (2 * np.pi * f) ** 2) if d == 1 else None

    def diag(self, X: Array) -> Array:
        """Ones."""
        return same_for_all(X, 1.0)


class AdditiveChi2(DirectKernel):
    """``-sum_k (x_k - z_k)^2 / (x_k + z_k)`` for non-negative rows such as histograms.

    Conditionally positive definite: centered, its matrix is positive semidefinite.
    """

    definite = False

    def check(self, X: Array) -> None:
        """Histograms have no negative entries."""
        least = float(X.data.min(initial=0) if is_sparse(X) else X.min())
        if least < 0:
            raise ValueError(
                f"{type(self).__name__} needs non-negative data and found {least:.3g}. "
                "Shift or clip the data, or choose another kernel."
            )

    def within(self, X: Array) -> Array:
        """Zero in place of negative entries."""
        return array_namespace(X).clip(X, 0, None)

    def fill(self, X: Array, Z: Array, out: Array) -> None:
        """Minus the chi-squared distances; the unit of the rows is theirs."""
        unit = unit_of(X, Z)
        if unit != 1:
            X, Z = X / unit, Z / unit
        add_coordinates("chi2_distances", chi2_term, X, Z, out)
        out *= -unit

    def gradient(self, X: Array, Z: Array, W: Array) -> Array:
        """4 z^2 / (x + z)^2 - 1, column by column."""
        xp = array_namespace(X)
        return xp.stack([chi2_slope(X[:, k], Z[:, k]) @ W for k in range(X.shape[1])], axis=1)

    def entry_size(self, X: Array) -> float:
        """Twice the largest sum of a row."""
        return 2 * float(X.sum(axis=1).max())

    def diag(self, X: Array) -> Array:
        """Zeros."""
        return same_for_all(X, 0.0)


class Chi2(AdditiveChi2):
    """``exp(-gamma sum_k (x_k - z_k)^2 / (x_k + z_k))`` for non-negative rows.

    Parameters
    ----------
    gamma : float or None
        None is 1, as scikit-learn's `chi2_kernel` has it; `KernelPCA` passes its own.
    """

    definite = True

    def __init__(self, gamma: float | None = None):
        self.gamma = gamma

    def resolve(self, X: Array, rng: np.random.Generator | None = None) -> Kernel:
        """A copy with gamma as a number."""
        resolved = clone(self)
        if isinstance(self.gamma, str):
            raise ValueError(f"gamma={self.gamma!r} is not known to Chi2. Give a number or None.")
        resolved.gamma = 1.0 if self.gamma is None else self.gamma
        return resolved

    def fill(self, X: Array, Z: Array, out: Array) -> None:
        """exp of the scaled additive kernel."""
        super().fill(X, Z, out)
        out *= self.gamma
        inplace(array_namespace(out).exp, out)

    def gradient(self, X: Array, Z: Array, W: Array) -> Array:
        """gamma k times that of the additive kernel."""
        xp, K = array_namespace(X), self(X, Z)
        K *= self.gamma
        parts = [(K * chi2_slope(X[:, k], Z[:, k])) @ W for k in range(X.shape[1])]
        return xp.stack(parts, axis=1)

    def entry_size(self, X: Array) -> float:
        """None is larger than k(x, x)."""
        return 0.0

    def diag(self, X: Array) -> Array:
        """Ones."""
        return same_for_all(X, 1.0)


class Callable(DirectKernel):
    """The user's function of two rows, called pair by pair: correct and slow.

    Parameters
    ----------
    function : callable
        ``function(x, z, **params) -> float`` for two rows.
    params : dict or None
    """

    definite = False

    def __init__(self, function: Any, params: dict[str, Any] | None = None):
        self.function = function
        self.params = params

    def fill(self, X: Array, Z: Array, out: Array) -> None:
        """Call it for every pair."""
        right = rows_of(Z)
        K = np.array([[self._value(x, z) for z in right] for x in rows_of(X)])
        out[...] = on_device_of(K.reshape(len(K), len(right)), out)

    def spread(self, X: Array) -> float:
        """The function costs the same in any precision, so there is no use for a draft."""
        return np.inf

    def diag(self, X: Array) -> Array:
        """Call it for every row with itself."""
        return on_device_of(np.array([self._value(x, x) for x in rows_of(X)], dtype=float), X)

    def check(self, X: Array) -> None:
        """Raise ValueError unless it takes two rows and is the same both ways on some of X."""
        check_signature(self.function, self.params)
        some = rows_of(X[np.linspace(0, X.shape[0] - 1, min(CHECKED_ROWS, X.shape[0])).astype(int)])
        K = np.array([[self._value(x, z) for z in some] for x in some])
        gap = np.abs(K - K.T)
        i, j = np.unravel_index(int(np.argmax(gap)), gap.shape)
        if gap[i, j] > ASYMMETRY * np.abs(K).max():
            raise ValueError(
                f"The kernel {name_of(self.function)} is not symmetric: k(x, z) = {K[i, j]:.6g} "
                f"and k(z, x) = {K[j, i]:.6g} for two rows of the data. Take "
                "(k(x, z) + k(z, x)) / 2, or a product such as f(x) * f(z)."
            )

    def _value(self, x, z) -> float:
        """k(x, z) as a finite number, or an error that says what came instead."""
        value = self.function(x, z, **(self.params or {}))
        return finite_number(value, f"The kernel {name_of(self.function)}")


def add_coordinates(compiled, term, X, Z, out):
    """out[i, j] = sum_k term(x_ik, z_jk), compiled in main memory, over whole tiles elsewhere."""
    if isinstance(out, np.ndarray):
        from ..compute import _numba

        vars(_numba)[compiled](dense(X), dense(Z), out)
        return
    out[...] = 0
    for k in range(X.shape[1]):
        out += term(X[:, k][:, None], Z[:, k][None, :])


def abs_difference(x, z):
    """|x - z|."""
    return abs(x - z)


def chi2_term(x, z):
    """(x - z)^2 / (x + z), zero for empty bins."""
    xp, both = array_namespace(x), x + z
    return (x - z) ** 2 / xp.where(both > 0, both, 1.0)


def unit_of(X, Z) -> float:
    """A power of two near the largest entry where squares of entries could over- or underflow."""
    largest = max(float(X.max()), float(Z.max())) if X.shape[0] and Z.shape[0] else 0.0
    if not 0 < largest < np.inf or 1 / SQUARED < largest < SQUARED:
        return 1.0
    return float(2.0 ** np.floor(np.log2(largest)))


def chi2_slope(x, z):
    """The derivative of -(x - z)^2 / (x + z) with respect to x, (n, m); -1 for empty bins of z."""
    xp, both = array_namespace(x), x[:, None] + z[None, :]
    share = z[None, :] / xp.where(both > 0, both, 1.0)
    return xp.where(both > 0, 4 * share**2 - 1, 0.0)


def rows_of(X) -> list:
    """The rows of X, one by one: vectors that cannot be written to, or CSR matrices of one row."""
    if is_sparse(X):
        return [X[i : i + 1] for i in range(X.shape[0])]
    rows = to_numpy(X[:]).view()
    rows.flags.writeable = False
    return list(rows)


def name_of(function) -> str:
    """What a user would call a function."""
    return str(getattr(function, "__name__", type(function).__name__))


def check_signature(function, params) -> None:
    """Raise ValueError unless a function can be called with two rows and its parameters."""
    try:
        asked = signature(function)
    except (TypeError, ValueError):  # some functions in C have none
        return
    try:
        asked.bind(None, None, **(params or {}))
    except TypeError as error:
        raise ValueError(
            f"A function of two rows with the settings {params!r} is needed, and "
            f"{name_of(function)}{asked} is none: {error}. Write it as function(x, z, ...)."
        ) from error


def finite_number(value, what: str) -> float:
    """A value as a float, or an error that says what a user's function gave in its place."""
    shape = getattr(value, "shape", ())
    if shape not in ((), (1,), (1, 1)) or isinstance(value, list | tuple):
        raise ValueError(
            f"{what} returned {describe(value)} for two rows, and one number is expected. Write it "
            "for two single rows; blocks are for a class of kernels, or for dissimilarity=."
        )
    try:
        number = float(np.asarray(value).item()) if shape else float(value)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{what} returned {describe(value)} for two rows, and one real number is expected. "
            "See to it that every path of the function returns one."
        ) from error
    if not np.isfinite(number):
        raise ValueError(
            f"{what} returned {number} for two rows, and a finite number is expected. Guard "
            "divisions, roots and logarithms, or scale the data."
        )
    return number


def describe(value) -> str:
    """A value in a few words."""
    shape = getattr(value, "shape", None)
    if shape:
        return f"an array of shape {tuple(shape)}"
    return f"{value!r:.40} of type {type(value).__name__}"


def dense(X):
    """Rows as a contiguous NumPy array, which compiled loops need."""
    return np.ascontiguousarray(X.toarray() if is_sparse(X) else to_numpy(X))
