"""Scaling of columns, so that none rules the distances by its unit."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from ..compute import is_sparse
from .failures import UsageError


@dataclass(frozen=True)
class Standardization:
    """What is taken from each column, and what the rest is divided by.

    Attributes
    ----------
    kind : "none", "standard" or "minmax"
    shift, size : arrays of shape (d,), or None
        None where nothing is scaled.
    """

    kind: str = "none"
    shift: np.ndarray | None = None
    size: np.ndarray | None = None

    @classmethod
    def of(cls, blocks: Iterable, kind: str) -> "Standardization":
        """The scaling of all rows, met in blocks."""
        if kind == "none":
            return cls()
        shift, size = SCALES[kind](dense(block) for block in blocks)
        # A column that is constant stays so, at zero.
        return cls(kind, shift, np.where(size > 0, size, 1.0))

    def apply(self, X):
        """Rows as the model knows them, in their own floating type."""
        if self.shift is None:
            return X
        return ((dense(X) - self.shift) / self.size).astype(X.dtype, copy=False)

    def undo(self, X):
        """Rows as the table had them."""
        return X if self.shift is None else (X * self.size + self.shift).astype(X.dtype, copy=False)


def standard(blocks) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations."""
    scaler = StandardScaler()
    for block in blocks:
        scaler.partial_fit(block)
    return scaler.mean_, scaler.scale_


def minmax(blocks) -> tuple[np.ndarray, np.ndarray]:
    """Least values and ranges."""
    scaler = MinMaxScaler()
    for block in blocks:
        scaler.partial_fit(block)
    return scaler.data_min_, scaler.data_range_


SCALES = {"standard": standard, "minmax": minmax}


def dense(X) -> np.ndarray:
    """Rows that a shift may be taken from."""
    if is_sparse(X):
        raise UsageError("--scale would make sparse rows dense. Leave it out.")
    return np.asarray(X)
