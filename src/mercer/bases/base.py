"""The contract of a basis: m vectors of feature space and their inner products."""

from abc import ABC, abstractmethod

import numpy as np
from sklearn.base import BaseEstimator


class BasisRecipe(BaseEstimator, ABC):
    """How to build a basis for given data: parameters only."""

    @abstractmethod
    def build(self, kernel, X, engine, rng) -> "Basis":
        """The basis for the rows of X."""


class Basis(ABC):
    """m vectors of feature space. `W` is always (m, b): b sums of basis vectors."""

    size: int
    #: The same basis in single precision, for passes that need no more; None if there is none.
    draft: "Basis | None" = None

    @abstractmethod
    def project(self, X, W) -> np.ndarray:
        """Inner products of phi(X) with the sums W, (n, b). The n x m matrix is never kept."""

    @abstractmethod
    def gram(self, W) -> np.ndarray:
        """G W, the inner products of the basis with the sums W, (m, b)."""

    @abstractmethod
    def norms(self, X) -> np.ndarray:
        """k(x, x) for every row of X, (n,)."""

    @abstractmethod
    def diagonal(self) -> np.ndarray:
        """The diagonal of G, (m,)."""

    @abstractmethod
    def to_dense(self) -> np.ndarray:
        """G itself, (m, m), in an array of its own."""

    @abstractmethod
    def columns(self, index, W) -> np.ndarray:
        """G[:, index] W, the product with only some of the basis vectors, (m, b)."""

    @abstractmethod
    def rows(self, index) -> np.ndarray:
        """G[index], (b, m)."""

    @abstractmethod
    def minor(self, index) -> np.ndarray:
        """G[index][:, index]."""

    def release(self) -> None:
        """Let go of work arrays; they come back when needed."""
        return
