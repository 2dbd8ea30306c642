"""The contract of a pre-image method, and batches of rows within a byte budget."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator

# Rows of a batch at most: GEMM runs at full speed, and rows can leave early in good company.
BATCH_ROWS = 512


@dataclass(frozen=True)
class Preimages:
    """Rows found for given scores.

    Attributes
    ----------
    points : array of shape (q, d)
    converged : array of bool of shape (q,)
    n_iter : array of int of shape (q,)
        Zero where nothing was iterated.
    """

    points: np.ndarray
    converged: np.ndarray
    n_iter: np.ndarray

    @classmethod
    def empty(cls, q: int, d: int, dtype) -> "Preimages":
        """Room for q rows, all of them converged in no step."""
        return cls(np.empty((q, d), dtype), np.ones(q, bool), np.zeros(q, int))


class Preimage(BaseEstimator, ABC):
    """How to come back from feature space: parameters only."""

    def check(self, basis) -> None:
        """Raise ValueError where this method cannot serve the basis and its kernel."""
        return

    @abstractmethod
    def fit(self, expansion, X, denoising: bool = False) -> "FittedPreimage":
        """The function from scores to rows.

        Parameters
        ----------
        expansion : KernelExpansion
        X : array of shape (n, d)
            Training rows, or some of them.
        denoising : bool
            Whether the scores will be those of noisy rows.
        """


class FittedPreimage(ABC):
    """A function from scores to rows."""

    @abstractmethod
    def __call__(self, S, near=None) -> Preimages:
        """Rows for the scores S (q, r); `near` are rows (q, d) that the answers are close to."""


def batch_rows(engine, width: int, itemsize: int) -> int:
    """Rows that every thread may hold at `width` numbers a row."""
    return int(np.clip(engine.memory // (2 * engine.threads * width * itemsize), 1, BATCH_ROWS))


def some_rows(X, size: int) -> np.ndarray:
    """At most `size` rows of X, dense; always the same ones."""
    index = row_sample(X.shape[0], size)
    rows = X if index is None else X[index]
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows)


def row_sample(n: int, size: int) -> np.ndarray | None:
    """Indices of at most `size` of n rows, None for all of them."""
    if n <= size:
        return None
    return np.sort(np.random.default_rng(0).choice(n, size, replace=False))


def with_mean(S) -> np.ndarray:
    """[1 | S]: scores with the weight of the mean in front."""
    return np.hstack([np.ones((S.shape[0], 1), S.dtype), S])


def total_std(X) -> float:
    """Root of the total variance of the rows: the size of the data in input space."""
    return float(np.sqrt(np.var(X, axis=0, dtype=float).sum()))
