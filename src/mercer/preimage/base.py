"""The contract of a pre-image method, and batches of rows within a byte budget.

Batches are computed where the points or the training rows are; `Preimages` are found there.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator

from ..bases import Basis
from ..compute import array_namespace, is_sparse, to_numpy
from ..compute.arrays import Array, dtype_name, placement_of
from ..fitting.expansion import KernelExpansion


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

    points: Any
    converged: np.ndarray
    n_iter: np.ndarray

    @classmethod
    def at_once(cls, points: Array) -> "Preimages":
        """Rows that need no iteration."""
        q = points.shape[0]
        return cls(points, np.ones(q, bool), np.zeros(q, int))


#: ``f(S, near=None)``: rows for the scores S (q, r); `near` are rows (q, d) that the answers are
#: close to.
FittedPreimage: TypeAlias = Callable[..., Preimages]


class Preimage(BaseEstimator, ABC):
    """A recipe for pre-images: parameters only."""

    def check(self, basis: Basis) -> None:
        """Raise ValueError where this method cannot serve the basis and its kernel."""
        return

    @abstractmethod
    def fit(self, expansion: KernelExpansion, X: Array, denoising: bool = False) -> FittedPreimage:
        """The function from scores to rows.

        Parameters
        ----------
        expansion : KernelExpansion
        X : array of shape (n, d)
            Training rows, or some of them.
        denoising : bool
            Whether the scores will be those of noisy rows.
        """


def batch_rows(engine, width: int, itemsize: int) -> int:
    """Rows that every thread may hold at `width` numbers each."""
    # At most 512 on the cores, where GEMM runs at full speed and converged rows can leave early,
    # and 4096 on a device.
    most = engine.stream_block // 4
    return int(np.clip(engine.memory // (2 * engine.threads * width * itemsize), 1, most))


def some_rows(X, size: int):
    """At most `size` rows of X, dense and where X is; always the same ones."""
    index = row_sample(X.shape[0], size)
    rows = X[:] if index is None else X[index]
    rows = rows.toarray() if is_sparse(rows) else rows
    return np.asarray(rows) if isinstance(rows, np.ndarray) else rows


def row_sample(n: int, size: int) -> np.ndarray | None:
    """Indices of at most `size` of n rows, None for all of them."""
    if n <= size:
        return None
    return np.sort(np.random.default_rng(0).choice(n, size, replace=False))


def with_mean(S):
    """[1 | S]: scores with the weight of the mean in front."""
    xp = array_namespace(S)
    return xp.concat([xp.ones((S.shape[0], 1), dtype=S.dtype, **placement_of(S)), S], axis=1)


def total_std(X) -> float:
    """Root of the total variance of the rows: the size of the data in input space."""
    return float(np.sqrt(np.var(to_numpy(X), axis=0, dtype=float).sum()))


def tiny(A) -> float:
    """The smallest normal number of an array's type."""
    return float(np.finfo(dtype_name(A.dtype)).tiny)
