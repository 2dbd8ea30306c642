"""The contract of rows: where the data are, and the only thing that knows it."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..bases import GramBasis
from ..compute import TiledEngine, stack_rows
from ..compute.arrays import Array
from ..fitting.checkpoint import Checkpoint
from ..fitting.expansion import OfExpansion
from ..fitting.functions import CountOf, PickOf, SurveyOf
from ..fitting.moments import RowFunction
from ..kernels import Kernel


class Rows(ABC):
    """The rows of a fit or of a transform, wherever they are.

    All of it are answers: weights, generator, budget and checkpoint belong to the task of a fit.
    """

    #: Names of the columns, where they have any.
    names: list[str] | None = None
    #: Whether blocks are CSR matrices.
    sparse: bool = False

    @property
    @abstractmethod
    def shape(self) -> tuple[int | None, int]:
        """Number of rows, or None where it is not known yet, and of columns."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype:
        """float32 where all numbers are, else float64."""

    @abstractmethod
    def sum(
        self,
        function: RowFunction,
        title: str = "rows",
        *,
        again: bool = False,
        checkpoint: Checkpoint | None = None,
    ) -> Any:
        """The sum of a function over blocks of all rows, in one pass.

        Parameters
        ----------
        function : RowFunction
        title : str
            What progress says is being done.
        again : bool
            Whether the rows will be read once more; ValueError where they cannot be.
        checkpoint : Checkpoint or None
            Where the sum so far is left, so that a killed pass goes on.
        """

    @abstractmethod
    def map(self, function: OfExpansion, out: Any = None, names: Any = None) -> Any:
        """A function of all rows, as what the rows were: an array, a file, a lazy Dask array.

        Parameters
        ----------
        function : OfExpansion
        out : str, Path or None
            A file to write to, whole or not at all.
        names : list of str or None
            Of the columns of that file.
        """

    @abstractmethod
    def gram(self, kernel: Kernel, engine: TiledEngine, n_components: int | None) -> GramBasis:
        """All rows as a basis, or ValueError that says what to do instead."""

    @abstractmethod
    def as_array(self, who: str, limit: int | None = None) -> Array:
        """All rows in one array; ValueError where they take more than `limit` bytes, or the budget.

        `who` needs them, for the words of the error.
        """

    @abstractmethod
    def blocks(self) -> Iterator:
        """Blocks of rows in their order, for what learns from one after the other."""

    @abstractmethod
    def identity(self) -> list:
        """What tells these rows from others, without reading all: for checkpoints."""

    def sample(self, size: int, seed: int) -> Array:
        """Uniform rows, in their order, the same for any blocks; all where there are no more."""
        return self.sum(SurveyOf(size, seed), "looking at rows").sample.rows

    def take(self, index: Array) -> Array:
        """Some rows as an array, in the order of `index`."""
        pick = PickOf(np.asarray(index))
        places, found = zip(*self.sum(pick, "looking for rows", again=True), strict=True)
        return stack_rows(list(found))[np.argsort(np.concatenate(places), kind="stable")]


def count_rows(rows: Rows) -> int:
    """The number of rows; a pass where it is not known."""
    n = rows.shape[0]
    return rows.sum(CountOf(), "counting rows", again=True) if n is None else n
