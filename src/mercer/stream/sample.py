"""A uniform sample of the rows of a stream, the same however the stream is cut into batches."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..hebbian.growing import stacked


@dataclass(frozen=True)
class RowSample:
    """The rows with the smallest keys; a row's key follows from its number in the stream.

    With u uniform in (0, 1) a row of weight w gets the key ``-log(u) / w`` (Efraimidis and
    Spirakis 2006), here its logarithm: weights that grow as ``forgetting^-t`` only add
    ``t log(forgetting)``. Without forgetting the sample is uniform, else it follows the memory.

    Attributes
    ----------
    size : int
        Most rows to keep.
    seed : int
    rows : array or sparse matrix of shape (at most size, d), or None
        In the order they came.
    keys : array
    """

    size: int
    seed: int
    rows: Any = None
    keys: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def add(self, X, first: int, forgetting: float = 1.0) -> "RowSample":
        """The sample with the chance given to rows number first, first + 1, ..."""
        number = np.arange(first, first + X.shape[0])
        keys = np.log(-np.log(uniforms(number, self.seed))) + number * np.log(forgetting)
        if len(self.keys) == self.size:
            # Most rows of a long stream have no chance, and are not copied.
            hopeful = np.flatnonzero(keys < self.keys.max())
            X, keys = X[hopeful], keys[hopeful]
        return self._smallest(X, keys)

    def __add__(self, other: "RowSample") -> "RowSample":
        """A sample of both streams."""
        return self._smallest(other.rows, other.keys)

    def _smallest(self, X, keys) -> "RowSample":
        keys = np.concatenate([self.keys, keys])
        kept = np.sort(np.argsort(keys, kind="stable")[: self.size])
        rows = X if self.rows is None else stacked(self.rows, X)
        return replace(self, rows=rows[kept], keys=keys[kept])


def uniforms(number, seed: int) -> np.ndarray:
    """A fixed random number in (0, 1) for every whole number (splitmix64)."""
    with np.errstate(over="ignore"):
        z = (number.astype(np.uint64) + np.uint64(seed)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    # 52 bits and a half: neither 0 nor, by rounding, 1.
    return ((z >> np.uint64(12)).astype(float) + 0.5) * 2.0**-52
