"""Uniform samples of rows, the same however the rows are cut into blocks, chunks or batches."""

from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np

from ..compute import on_device_of, stack_rows

# Numbers whose keys are made at once: what stays in the cache is made ten times faster.
BLOCK = 2**14
# Rows beyond the size of a sample among which it surely is, and rounding of logarithms.
SPARE, ROUNDING = 2.0, 1e-12


@dataclass(frozen=True)
class RowSample:
    """The rows with the smallest keys; a row's key follows from its number.

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
    weights : array or None
        How often each of the rows counts, where some count more than others: they are drawn alike.
    """

    size: Annotated[int, "[1, inf)"]
    seed: Annotated[int, "[0, inf)"]
    rows: Annotated[Any, "n d sparse or None"] = None
    keys: Annotated[np.ndarray, "k"] = field(default_factory=lambda: np.zeros(0))
    weights: Annotated[np.ndarray | None, "k or None"] = None

    def add(self, X, first: int, forgetting: float = 1.0, weights: Any = None) -> "RowSample":
        """The sample with the chance given to rows number first, first + 1, ..."""
        stop, full = first + X.shape[0], len(self.keys) == self.size
        if full and forgetting == 1.0:
            # Keys fall as u grows: rows without a chance, most of them, cost no logarithm.
            number = likely(first, stop, self.seed, float(np.exp(-np.exp(self.keys.max()))))
        else:
            number = np.arange(first, stop)
        keys = np.log(-np.log(uniforms(number, self.seed))) + number * np.log(forgetting)
        if full:
            hopeful = keys < self.keys.max()
            number, keys = number[hopeful], keys[hopeful]
        weights = None if weights is None else np.asarray(weights, dtype=float)[number - first]
        return self._smallest(X if len(number) == X.shape[0] else X[number - first], keys, weights)

    def __add__(self, other: "RowSample") -> "RowSample":
        """A sample of both sets of rows, those of `other` after these."""
        if other.rows is None:
            return self
        return self._smallest(other.rows, other.keys, other.weights)

    def leading(self, size: int) -> "RowSample":
        """The sample of fewer rows: it lies within this one."""
        kept = smallest(self.keys, size)
        w = None if self.weights is None else self.weights[kept]
        return replace(self, size=size, rows=self.rows[kept], keys=self.keys[kept], weights=w)

    def _smallest(self, X, keys, weights) -> "RowSample":
        w = None
        if weights is not None or self.weights is not None:
            old, new = np.ones(self.keys.size), np.ones(len(keys))
            old, new = (a if b is None else b for a, b in ((old, self.weights), (new, weights)))
            w = np.concatenate([old, new])
        keys = np.concatenate([self.keys, keys])
        kept = smallest(keys, self.size)
        rows = X if self.rows is None else stack_rows([self.rows, on_device_of(X, self.rows)])
        w = w if w is None else w[kept]
        return replace(self, rows=rows[kept], keys=keys[kept], weights=w)


def sampled_numbers(n: int, size: int, seed: int) -> np.ndarray:
    """The numbers of the rows that a `RowSample` of n rows keeps, in order."""
    least = 1.0 - SPARE * size / max(n, 1)
    number = likely(0, n, seed, least) if least > 0 else np.arange(n)
    if len(number) < size:
        number = np.arange(n)
    return number[smallest(np.log(-np.log(uniforms(number, seed))), size)]


def likely(first: int, stop: int, seed: int, least: float) -> np.ndarray:
    """The numbers from `first` on whose uniforms are at least `least`, up to rounding."""
    bound = least * (1.0 - ROUNDING) - ROUNDING
    blocks = (np.arange(i, min(i + BLOCK, stop)) for i in range(first, stop, BLOCK))
    return np.concatenate(
        [number[uniforms(number, seed) >= bound] for number in blocks] or [np.arange(0)]
    )


def smallest(keys, size: int) -> np.ndarray:
    """Where the `size` smallest keys are, in order of place."""
    if len(keys) <= size:
        return np.arange(len(keys))
    return np.sort(np.argpartition(keys, size)[:size])


def uniforms(number, seed: int) -> np.ndarray:
    """A fixed random number in (0, 1) for every whole number."""
    # The seed is mixed first: else seeds that follow each other would only shift the numbers.
    start = mixed(np.array([seed], dtype=np.uint64))
    z = mixed(number.astype(np.uint64) + start)
    # 52 bits and a half: neither 0 nor, by rounding, 1.
    return ((z >> np.uint64(12)).astype(float) + 0.5) * 2.0**-52


def mixed(z) -> np.ndarray:
    """64 bits that depend on all of those given (splitmix64)."""
    with np.errstate(over="ignore"):
        z = z * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
