"""The contract of a basis: m vectors of feature space and their inner products."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..compute import Array, TiledEngine, dtype_name
from ..compute.engine import moment_bytes, too_little
from ..kernels import Kernel
from ..kernels.base import float_dtype


class BasisRecipe(BaseEstimator, ABC):
    """How to build a basis for given data: parameters only."""

    #: Columns of the data that it can serve; None for any number.
    most_columns: int | None = None
    #: Share of energy that the basis may lose, where its size follows from that.
    error: float | None = None
    #: Whether the number of all rows must be known before it is built.
    needs_count = False
    #: Whether the range of all rows must be known before it is built.
    needs_range = False
    #: Rows without which it cannot be built.
    least_rows = 0

    @abstractmethod
    def build(
        self, kernel: Kernel, X: Array, engine: Any, rng: Any, n_components: int | None = None
    ) -> "Basis":
        """The basis for the rows of X; `n_components` helps to choose a size."""

    def rows_wanted(self, n: int | None, n_components: int | None = None) -> int:
        """Rows to choose the basis from, of n or of an unknown number; 0 if it needs none."""
        return 0

    def located(self, n: int | None, take: Callable) -> "BasisRecipe":
        """The same recipe with rows in place of their numbers; ``take(index)`` gives some of n."""
        return self

    def settled(self, n: int | None, n_components: int | None) -> "BasisRecipe":
        """The same recipe with shares of the rows, and defaults, as numbers."""
        return self

    def with_range(self, box: Any) -> "BasisRecipe":
        """The same recipe for rows between the least and largest values of each column, (d, 2)."""
        return self

    def stand_in(self, X: Array) -> Any:
        """Rows in place of those of X, where their values do not matter."""
        return X


class Basis(ABC):
    """m vectors of feature space, orthonormal unless said otherwise.

    `W` is always (m, b): b sums of basis vectors.
    """

    size: int
    engine: Any
    kernel: Kernel
    #: Whether the basis vectors are the data themselves.
    spans_data = False
    #: Whether inner products in the basis are those of the kernel, not approximations.
    exact_norms = True
    #: What its vectors are called in messages.
    noun = "basis vectors"
    #: The rows z whose phi(z) are the basis vectors, (m, d), where they are images of rows.
    points: Any = None

    @abstractmethod
    def block_products(
        self, X: Array, W: Array = None, dtype: Any = None
    ) -> Callable[[slice], np.ndarray]:
        """A function from a block of X's rows to their inner products with the sums W.

        In the precision of X, or in `dtype`.
        """

    def project(self, X: Array, W: Array) -> np.ndarray:
        """Inner products of phi(X) with the sums W, (n, b). The n x m matrix is never kept."""
        X = self.engine.place(X)
        out = self.engine.empty((X.shape[0], W.shape[1]))
        rows = self.product_rows(X, W.shape[1])
        self.engine.map_rows(self.block_products(X, W), X.shape[0], rows, out)
        return out

    def gram(self, W: Array) -> np.ndarray:
        """G W, the inner products of the basis with the sums W, (m, b)."""
        return W

    def norms(self, X: Array) -> np.ndarray:
        """k(x, x) for every row of X, (n,)."""
        return self.kernel.diag(self.engine.place(X))

    def whitener(self, dtype: Any) -> np.ndarray | None:
        """W with W' G W = I, for coordinates in an orthonormal basis; None if G = I."""
        return None

    def product_rows(self, X: Array, columns: int = 1) -> int:
        """Rows a block may have so that every thread stays in the budget, for W of `columns`."""
        width = 8 * (self._row_floats() + 5 * X.shape[1])  # copies that kernels prepare
        memory, each = self.engine.memory, 2 * self.engine.threads * width
        if memory < each:
            what = f"one row of the kernel against {self.size} basis vectors"
            raise too_little(memory, each, what)
        return int(min(memory // each, self.engine.stream_block))

    def _row_floats(self) -> int:
        """Peak floats held per row while `block_products` works on it."""
        return 2 * self.size

    def precision(self, X: Array) -> Any:
        """The NumPy type to compute X's inner products in."""
        return np.dtype(dtype_name(float_dtype(X)))

    def rounding(self) -> float:
        """Rounding of inner products over the norms of both vectors, at most."""
        return float(np.finfo(float).eps)

    def moved(self, engine: TiledEngine) -> "Basis":
        """The same basis where another engine works."""
        basis = copy(self)
        basis.engine = engine
        if self.points is not None:
            basis.points = engine.place(self.points)
        return basis


class GramBasis(Basis):
    """A basis that is the data, so that its Gram matrix is the problem itself."""

    spans_data = True
    #: The same basis in single precision, for passes that need no more; None if there is none.
    draft: "GramBasis | None" = None
    #: Precision of the products.
    dtype: Any = np.float64
    #: Where products are kept for a fit that may be killed, within a session; else None.
    checkpoint: Any = None
    #: Weights of the rows, which `sums` are taken with; None where nobody asks for them.
    weights: np.ndarray | None = None
    #: Holds the sums of the first product of a session.
    store: Any = None

    @contextmanager
    def session(
        self,
        reserve: int = 0,
        checkpoint: Any = None,
        keeps_tiles: bool = True,
        forms_matrix: bool = False,
    ) -> "Iterator[GramBasis]":
        """The basis with room for work, as a copy that is used within the ``with`` block only.

        Parameters
        ----------
        reserve : int
            Bytes of the budget that are left to a solver's vectors.
        checkpoint : Checkpoint or None
            Where products are kept for a fit that may be killed.
        keeps_tiles : bool
            Whether work arrays are kept between products; not worth it for one or two of them.
        forms_matrix : bool
            Whether G is formed where it fits half of the budget, for solvers that read its rows.
        """
        working = self._working(reserve, keeps_tiles, forms_matrix)
        working.checkpoint = checkpoint
        try:
            yield working
        finally:
            working._close()

    def _working(self, reserve: int, keeps_tiles: bool, forms_matrix: bool) -> "GramBasis":
        """The copy for a session."""
        return copy(self)

    def _close(self) -> None:
        """Let go of work arrays at the end of a session."""
        return

    @property
    def at_hand(self) -> bool:
        """Whether the points are in this process, or can be brought here within the budget."""
        return True

    def here(self) -> "GramBasis":
        """The same basis with its points brought into this process, if `at_hand` allows it."""
        return self

    def explained(self, plan: Any) -> Any:
        """The plan of a fit, with what is special about these points."""
        return plan

    def rounded(self, W: Array) -> Array:
        """W with as few digits as make `gram` cheaper; itself where none do."""
        return W

    def sums(self) -> tuple[float, Any] | None:
        """Sums of w_i w_j G_ij^2 and, for every row, of w_j G_ij; None before the first product."""
        return None if self.store is None else self.store.sums

    def is_constant(self) -> bool:
        """Whether all basis vectors are known to be equal."""
        return False

    def entry_size(self) -> float:
        """The largest inner product, where it may be more than the largest k(x, x); else 0."""
        return 0.0

    @abstractmethod
    def diagonal(self) -> np.ndarray:
        """The diagonal of G, (m,)."""

    def own_affinities(self) -> np.ndarray:
        """k(x, x) less the diagonal of G, (m,): zeros, or k(x, x) itself if G has no diagonal."""
        return np.zeros(self.size)

    def sparse(self) -> Any:
        """G as a CSR matrix, where it is held as one; None otherwise."""
        return None

    @abstractmethod
    def to_dense(self) -> np.ndarray:
        """G itself, (m, m), in an array of its own."""

    @abstractmethod
    def columns(self, index: Array, W: Array) -> np.ndarray:
        """G[:, index] W, the product with only some of the basis vectors, (m, b)."""

    @abstractmethod
    def rows(self, index: Array) -> np.ndarray:
        """G[index], (b, m)."""

    def rows_times(self, index: Array, W: Array) -> np.ndarray:
        """G[index] W, (b, c)."""
        return self.rows(index) @ W

    @abstractmethod
    def minor(self, index: Array) -> np.ndarray:
        """G[index][:, index]."""


def check_moments(size: int, noun: str, engine: TiledEngine) -> None:
    """Raise ValueError where the budget cannot hold the m x m matrices of a small basis."""
    need = moment_bytes(size, engine)
    if engine.device is None and need > engine.memory:
        what = f"the moments of {size:,} {noun} with n_jobs={engine.threads}"
        raise too_little(engine.memory, need, what, "Ask for fewer of them, or for more memory. ")
