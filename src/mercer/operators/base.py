"""The contract of a symmetric operator, one held in memory, multiples, and starts from a sample."""

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import eigh

from ..compute import Array, array_namespace, on_device_of
from ..fitting.checkpoint import Progress

# Landmarks for the start block: a few hundred bring the first Ritz values within percents, and cost
# less than a tenth of one product for n above 10,000. Of few points a share, or the landmarks would
# cost more than a product.
START_LANDMARKS, START_SHARE = 300, 10
# Eigenvalues of the landmarks' matrix below this share of the largest are rounding.
START_RCOND = 1e-7
# Vectors of a start that are random whatever the sample says.
UNGUIDED = 2
# Sizes of entries whose squares, and sums of them over any number of rows, are ordinary numbers.
ORDINARY = (1e-100, 1e100)


class SymmetricOperator(ABC):
    """An n x n symmetric matrix known through its products."""

    shape: tuple[int, int]
    #: False where the operator may have negative eigenvalues.
    definite = True
    #: False where a draft may round some vectors far more than others, as rows of very different
    #: weights make it.
    even = True
    #: The rows whose second moments it is, where they can be read again: ``samples(size)`` gives
    #: blocks of so many; with their `count`, and ``times(factor)`` for those of a multiple.
    samples: Any = None

    @abstractmethod
    def __matmul__(self, V):
        """The product with V, (n, b), as an array of its own."""

    @abstractmethod
    def to_dense(self) -> np.ndarray:
        """The matrix itself, in an array of its own."""

    def vectors(self, V: Array, rounded: bool = False) -> Array:
        """Vectors in the library and on the device of the operator's own.

        With `rounded` in as few digits as make the product with them cheaper.
        """
        return V

    @property
    def draft(self) -> "SymmetricOperator | None":
        """The same operator in single precision and cheaper, or None."""
        return None

    def start(self, k: int, rng: np.random.Generator) -> np.ndarray:
        """k vectors to start from, (n, k)."""
        return self.vectors(rng.standard_normal((self.shape[0], k)))

    def rows(self, index: Array) -> np.ndarray:
        """Some rows, (b, n); from products with unit vectors where there is no other way."""
        index = np.arange(self.shape[0])[index]
        E = np.zeros((self.shape[0], len(index)))
        E[index, np.arange(len(index))] = 1.0
        return (self @ self.vectors(E)).T

    def rows_times(self, index: Array, V: Array) -> np.ndarray:
        """Some rows of the product with V, (len(index), b)."""
        return self.rows(index) @ V

    def diagonal(self) -> np.ndarray:
        """The diagonal, (n,); here a row at a time."""
        n = self.shape[0]
        return np.array([float(self.rows(slice(i, i + 1))[0, i]) for i in range(n)])

    def square(self) -> float | None:
        """The sum of the squares of all eigenvalues; None before the first product."""
        return None

    def magnitude(self) -> float:
        """The size of its entries, about; 1 where they are known to be harmless."""
        return 1.0

    def progress(self) -> Progress:
        """Where a pass over the rows of the operator writes how far it has come."""
        return Progress()


class DenseOperator(SymmetricOperator):
    """A symmetric matrix held in memory, that of a device included."""

    def __init__(self, A: Array):
        self.A = A
        self.shape = A.shape

    def __matmul__(self, V):
        return self.A @ V

    def to_dense(self) -> Array:
        xp = array_namespace(self.A)
        return xp.asarray(self.A, dtype=xp.float64, copy=True)

    def vectors(self, V: Array, rounded: bool = False) -> Array:
        return on_device_of(V, self.A)

    def rows(self, index: Array) -> Array:
        return self.A[index]

    def diagonal(self) -> Array:
        return self.A.diagonal()

    def square(self) -> float | None:
        return float((self.A * self.A).sum())

    def magnitude(self) -> float:
        # No entry of a definite matrix exceeds the largest of its diagonal.
        return float(abs(self.A.diagonal()).max()) if self.shape[0] else 1.0


class Multiple(SymmetricOperator):
    """A times a number: of entries of ordinary size, or with the smallest eigenvalues largest."""

    def __init__(self, operator: SymmetricOperator, factor: float):
        self.operator, self.factor = operator, factor
        self.shape, self.even = operator.shape, operator.even
        self.definite = operator.definite and factor > 0
        if operator.samples is not None:
            self.samples = operator.samples.times(factor)

    def __matmul__(self, V):
        return (self.operator @ V) * self.factor

    def to_dense(self) -> Array:
        A = self.operator.to_dense()
        A *= self.factor
        return A

    def vectors(self, V: Array, rounded: bool = False) -> Array:
        return self.operator.vectors(V, rounded)

    # The start is random: that of A may overflow, or leads to the wrong end of its spectrum.

    @cached_property
    def draft(self) -> Any:  # type: ignore[override]
        draft = self.operator.draft
        return None if draft is None else Multiple(draft, self.factor)

    def rows(self, index: Array) -> Array:
        return self.operator.rows(index) * self.factor

    def rows_times(self, index: Array, V: Array) -> Array:
        return self.operator.rows_times(index, V) * self.factor

    def diagonal(self) -> Array:
        return self.operator.diagonal() * self.factor

    def progress(self) -> Progress:
        return self.operator.progress()


def in_ordinary_units(operator: SymmetricOperator) -> tuple[SymmetricOperator, float]:
    """The operator and 1, or A / unit and the unit where squares of its entries leave the range."""
    unit = operator.magnitude()
    if not unit > 0 or unit == float("inf") or ORDINARY[0] < unit < ORDINARY[1]:
        return operator, 1.0
    unit = max(unit, 1e-300)  # what has no reciprocal
    return Multiple(operator, 1 / unit), unit


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
    # The weights are multiplied in single precision, which holds no more than 1e38.
    large = values > max(START_RCOND * np.max(values, initial=0.0), 1e-30)
    return U[:, large] / values[large]


def padded(V, k: int, rng) -> np.ndarray:
    """V with random columns where it has fewer than k."""
    short = k - V.shape[1]
    if short <= 0:
        return V
    new = on_device_of(rng.standard_normal((V.shape[0], short)), V)
    return array_namespace(V).concat([V, new], axis=1)
