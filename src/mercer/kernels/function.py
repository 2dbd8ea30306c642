"""The user's own function of two rows as a kernel; errors say what it returned."""

from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np

from ..compute import Array, is_sparse, on_device_of, to_numpy
from .coordinate import DirectKernel


@dataclass(eq=False, repr=False)
class Callable(DirectKernel):
    """The user's function of two rows, called pair by pair: correct and slow.

    Parameters
    ----------
    function : callable
        ``function(x, z, **params) -> float`` for two rows.
    params : dict or None
    """

    definite = False
    seconds = (2e-6, 0.0)  # a call of Python

    function: Any
    params: dict[str, Any] | None = None

    def fill(self, X: Array, Z: Array, out: Array) -> None:
        out[...] = on_device_of(self._values(single_rows(X), single_rows(Z)), out)

    def spread(self, X: Array) -> float:
        """inf: the function costs the same in any precision, so float32 saves nothing."""
        return np.inf

    def diag(self, X: Array) -> Array:
        values = [self._values([x], [x])[0, 0] for x in single_rows(X)]
        return on_device_of(np.array(values, dtype=float), X)

    def check(self, X: Array) -> None:
        """Raise ValueError unless it takes two rows and is symmetric on eight rows of X."""
        super().check(X)
        check_signature(self.function, self.params)
        rows = single_rows(X[np.linspace(0, X.shape[0] - 1, min(8, X.shape[0])).astype(int)])
        K = self._values(rows, rows)
        gap = np.abs(K - K.T)
        i, j = np.unravel_index(int(np.argmax(gap)), gap.shape)
        if gap[i, j] > 1e-5 * np.abs(K).max():  # less may be rounding
            raise ValueError(
                f"The kernel {name_of(self.function)} is not symmetric: k(x, z) = {K[i, j]:.6g} "
                f"and k(z, x) = {K[j, i]:.6g} for two rows of the data. Take "
                "(k(x, z) + k(z, x)) / 2, or a product such as f(x) * f(z)."
            )

    def _values(self, left, right) -> np.ndarray:
        """k(x, z) for all pairs of rows; raises ValueError unless all are finite numbers."""
        params, name = self.params or {}, f"The kernel {name_of(self.function)}"
        values = [finite_number(self.function(x, z, **params), name) for x in left for z in right]
        return np.array(values, dtype=float).reshape(len(left), len(right))


def single_rows(X) -> list:
    """The rows of X as read-only vectors, or as CSR matrices of one row."""
    if is_sparse(X):
        return [X[i : i + 1] for i in range(X.shape[0])]
    rows = to_numpy(X[:]).view()
    rows.flags.writeable = False
    return list(rows)


def name_of(function) -> str:
    """The name of a function, for messages."""
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
            f"{name_of(function)}{asked} is not one: {error}. Write it as function(x, z, ...)."
        ) from error


def finite_number(value, what: str) -> float:
    """A value as a float; raises ValueError that says what a user's function returned."""
    shape = () if isinstance(value, list | tuple) else np.shape(value)
    returned = f"{value!r:.40} of type {type(value).__name__}"
    if shape:
        returned = f"an array of shape {tuple(shape)}"
    if shape not in ((), (1,), (1, 1)) or isinstance(value, list | tuple):
        raise ValueError(
            f"{what} returned {returned} for two rows, and one number is expected. Write it "
            "for two single rows; blocks are for a class of kernels, or for dissimilarity=."
        )
    try:
        number = float(np.asarray(value).item()) if shape else float(value)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{what} returned {returned} for two rows, and one real number is expected. "
            "See to it that every path of the function returns one."
        ) from error
    if not np.isfinite(number):
        raise ValueError(
            f"{what} returned {number} for two rows, and a finite number is expected. Guard "
            "divisions, roots and logarithms, or scale the data."
        )
    return number
