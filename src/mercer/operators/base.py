"""The contract of a symmetric operator, one held in memory, and starts from a sample."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from scipy.linalg import eigh

from ..compute import array_namespace, on_device_of
from ..compute.arrays import Array
from ..fitting.checkpoint import Progress

# Landmarks for the start block: a few hundred bring the first Ritz values within
# percents, and cost less than a tenth of one product for n above 10,000.
START_LANDMARKS = 300
# For few points a share of them, or the landmarks would cost more than a product.
START_SHARE = 10

# Eigenvalues of the landmarks' matrix below this share of the largest are rounding.
START_RCOND = 1e-7


# Vectors of a start that are random whatever the sample says.
UNGUIDED = 2


class SymmetricOperator(ABC):
    """An n x n symmetric matrix known through its products."""

    shape: tuple[int, int]
    dtype = np.dtype(float)
    #: False where the operator may have negative eigenvalues.
    definite = True
    #: False where a draft may round some vectors far more than others, as rows of very different
    #: weights make it.
    even = True

    @abstractmethod
    def __matmul__(self, V):
        """The product with V, (n, b)."""

    @abstractmethod
    def to_dense(self) -> np.ndarray:
        """The matrix itself, in an array of its own."""

    def vectors(self, V: Array) -> Array:
        """Vectors of the host in the library and on the device of the operator's own."""
        return V

    def rounded(self, V: Array) -> Array:
        """V with as few digits as make the product with it cheaper; any V near it will do."""
        return V

    def progress(self) -> Progress:
        """Where a pass over the rows of the operator leaves how far it has come."""
        return Progress()

    def leave(self, size: int) -> None:
        """Do with so many bytes less of the budget, which the vectors of a solver take.

        Raises ValueError where that is too little to work with.
        """
        return

    @property
    def draft(self) -> "SymmetricOperator | None":
        """The same operator in single precision and cheaper, or None."""
        return None

    def start(self, k: int, rng: np.random.Generator) -> np.ndarray:
        """k vectors to start from, (n, k)."""
        return rng.standard_normal((self.shape[0], k))

    def sparse(self) -> Any:
        """The matrix as CSR, where it has few entries that are not zero; None otherwise."""
        return None

    def rows(self, index: Array) -> np.ndarray:
        """Some rows, (b, n); from products with unit vectors where there is no other way."""
        index = np.arange(self.shape[0])[index]
        E = np.zeros((self.shape[0], len(index)))
        E[index, np.arange(len(index))] = 1.0
        return (self @ self.vectors(E)).T

    def rows_times(self, index: Array, V: Array) -> np.ndarray:
        """Some rows of the product with V, (len(index), b)."""
        return self.rows(index) @ V

    def visit(self, index: Array, W: Array) -> tuple[np.ndarray, np.ndarray]:
        """The minor of some rows, (b, b), and their product with W, (b, k), from one reading."""
        K = self.rows(index)
        return K[:, index], K @ W

    def diagonal(self) -> np.ndarray:
        """The diagonal, (n,); here a row at a time."""
        n = self.shape[0]
        return np.array([float(self.rows(slice(i, i + 1))[0, i]) for i in range(n)])

    def trace(self) -> float:
        """The sum of all eigenvalues."""
        return float(self.diagonal().sum())

    def magnitude(self) -> float:
        """The size of its entries, about; 1 where they are known to be harmless."""
        return 1.0


class DenseOperator(SymmetricOperator):
    """A symmetric matrix held in memory, that of a device included."""

    def __init__(self, A: Array):
        self.A = A
        self.shape = A.shape

    def __matmul__(self, V):
        return self.A @ V

    def to_dense(self) -> Array:
        """A copy."""
        if isinstance(self.A, np.ndarray):
            return np.array(self.A, dtype=float)
        xp = array_namespace(self.A)
        return xp.asarray(self.A, dtype=xp.float64, copy=True)

    def vectors(self, V: Array) -> Array:
        """Vectors beside the matrix."""
        return on_device_of(V, self.A)

    def start(self, k: int, rng: np.random.Generator) -> Array:
        """Random vectors beside the matrix."""
        return self.vectors(super().start(k, rng))

    def rows(self, index: Array) -> Array:
        """Some rows, (b, n)."""
        return self.A[index]

    def diagonal(self) -> Array:
        """The diagonal, (n,)."""
        return self.A.diagonal()

    def magnitude(self) -> float:
        """The largest entry of the diagonal, which no other exceeds in a definite matrix."""
        return float(abs(self.A.diagonal()).max()) if self.shape[0] else 1.0


class Negated(SymmetricOperator):
    """-A: its largest eigenvalues are the smallest of A."""

    definite = False

    def __init__(self, operator: SymmetricOperator):
        self.operator = operator
        self.shape = operator.shape

    def __matmul__(self, V):
        return -(self.operator @ V)

    def to_dense(self) -> Array:
        """-A."""
        return -self.operator.to_dense()

    @property
    def draft(self) -> Any:
        """Minus the draft of A."""
        return None if self.operator.draft is None else Negated(self.operator.draft)

    def vectors(self, V: Array) -> Array:
        """Vectors where those of A are."""
        return self.operator.vectors(V)

    def rounded(self, V: Array) -> Array:
        """As A rounds them."""
        return self.operator.rounded(V)

    def rows(self, index: Array) -> Array:
        """Some rows, (b, n)."""
        return -self.operator.rows(index)

    def rows_times(self, index: Array, V: Array) -> Array:
        """Some rows of the product with V, (len(index), b)."""
        return -self.operator.rows_times(index, V)

    def visit(self, index: Array, W: Array) -> Array:
        """Minus the minor and the product of A."""
        minor, product = self.operator.visit(index, W)
        return -minor, -product

    def diagonal(self) -> Array:
        """The diagonal, (n,)."""
        return -self.operator.diagonal()

    def start(self, k: int, rng: np.random.Generator) -> Array:
        """Random vectors: those that serve A lead to the wrong end of its spectrum."""
        return self.vectors(super().start(k, rng))


def start_sample(n: int, k: int, rng) -> np.ndarray:
    """Points from whose eigenvectors a start of k vectors is made."""
    m = min(n, max(min(START_LANDMARKS, n // START_SHARE), 2 * k))
    return np.sort(rng.choice(n, m, replace=False))


def sample_weights(K, k: int) -> np.ndarray:
    """Leading eigenvectors of a sample's matrix over their values, at most k, (m, <= k).

    Their products with the sample's columns are the Nystroem extension to all points. Of larger
    blocks a few vectors are left to chance, which `padded` adds: with a narrow kernel the others
    may live on the sample alone and never leave it.
    """
    m, k = K.shape[0], k - UNGUIDED if k >= 2 * UNGUIDED else k
    values, U = eigh((K + K.T) / 2, subset_by_index=(max(0, m - k), m - 1))
    # LAPACK's choice for a few pairs loses some, or all, where they are equal to rounding.
    kept = values > START_RCOND * max(np.max(values, initial=0.0), 0)
    return U[:, kept] / values[kept]


def padded(V, k: int, rng) -> np.ndarray:
    """V with random columns where it has fewer than k."""
    short = k - V.shape[1]
    if not short:
        return V
    return array_namespace(V).concat(
        [V, on_device_of(rng.standard_normal((len(V), short)), V)], axis=1
    )
