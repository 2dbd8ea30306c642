"""The contract of rows: where the data are, and the only thing that knows it.

A new kind of rows answers these verbs in one file, joins `KINDS` in `mercer.rows` with one line,
and is held by `check_rows` of the tests.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..bases import GramBasis
from ..compute import TiledEngine, stack_rows
from ..compute.arrays import Array
from ..files.base import listed
from ..fitting.checkpoint import Checkpoint, Progress
from ..fitting.expansion import OfExpansion
from ..fitting.functions import CountOf, PickOf, SurveyOf, pack, unpack
from ..fitting.moments import RowFunction
from ..kernels import Kernel

#: What takes rows wherever they are.
BY_LANDMARKS = "use KernelPCA(basis='landmarks')"


@dataclass(frozen=True)
class Opening:
    """What rows are opened with.

    Attributes
    ----------
    memory : int, str or None
        The budget.
    n_jobs : int or None
        Threads.
    device : str or None
        Where tasks of a cluster compute.
    verbose : int
    names : list of str or None
        Columns that the model was fitted to, for new rows.
    all_columns : str
        What needs every column of a table, for messages, such as a kernel of mixed tables; empty
        where only columns of numbers are read.
    """

    memory: Any = None
    n_jobs: int | None = None
    device: Any = None
    verbose: int = 0
    names: list[str] | None = None
    all_columns: str = ""

    def check_all_read(self, left_out: list[str], where: str, instead: str) -> None:
        """Raise ValueError where columns are left out and all are needed."""
        if left_out and self.all_columns:
            raise ValueError(
                f"{self.all_columns} compares categories of tables in memory as well as numbers, "
                f"and {where} {listed(left_out)}. Pass {instead}."
            )


class Rows(ABC):
    """The rows of a fit or of a transform, wherever they are.

    Read-only: nothing is set on rows from outside. Weights, generator, budget and checkpoint belong
    to the task of a fit.
    """

    #: Names of the columns, where they have any.
    names: list[str] | None = None
    #: Whether blocks are CSR matrices.
    sparse: bool = False
    #: What messages call them, whether passes over them draw a bar, whether a cluster has them.
    _title, _draws, _elsewhere = "X", False, False
    #: Advice for rows on a cluster: how all come to one place, and how scores are written.
    _collected, _written = "", ""

    @property
    @abstractmethod
    def shape(self) -> tuple[int | None, int]:
        """Number of rows, or None where it is not known yet, and of columns."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype:
        """float32 where all numbers are, else float64."""

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
            Where the sum so far is written, so that a killed pass goes on.
        """
        stage = Progress(checkpoint, "sum")
        done = stage.header.get("done", {})
        total = unpack(stage.header["total"], stage.arrays) if done else None

        def write(done):
            arrays: list = []
            stage.write({"total": pack(total, arrays), "done": done}, arrays)

        parts = self._partial_sums(function, title, again, done, checkpoint)
        for part, done in parts:
            total = part if total is None else total + part
            if stage.due:
                write(done)
        if checkpoint is not None and not done.get("complete"):
            write(done | {"complete": True})
        return total

    def _partial_sums(
        self,
        function: RowFunction,
        title: str,
        again: bool,
        done: dict,
        checkpoint: Checkpoint | None,
    ) -> Iterator[tuple[Any, dict]]:
        """Sums of a function over parts of the rows, each with how far the pass has come.

        That is a dict of numbers and text. A pass goes on behind the one it is given, and yields
        nothing where that is `complete`. With a checkpoint parts are small enough to be written,
        and rows that were summed before and changed since are refused.
        """
        raise NotImplementedError

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
    def as_basis(
        self, kernel: Kernel, engine: TiledEngine, n_components: int | None
    ) -> GramBasis | str:
        """All rows as a basis, or the reason why they cannot be one; no pass over the rows."""

    def as_array(self, who: str, limit: int | None = None, instead: str = BY_LANDMARKS) -> Array:
        """All rows in one array; ValueError where they take more than `limit` bytes, or the budget.

        Those of a cluster may not fit into the memory of this process. `who` needs them, and what
        to do `instead`, for the words of the error.
        """
        raise ValueError(
            f"{who} needs all rows in one place, and X is on a cluster. Pass {self._collected} if "
            f"they fit into memory, or {instead}."
        )

    @abstractmethod
    def blocks(self) -> Iterator:
        """Blocks of rows in their order, for what learns from one after the other."""

    @abstractmethod
    def identity(self) -> list:
        """A digest of the rows, for checkpoints; passes compare the rest."""

    def _for_points(self, who: str, required: bool) -> "Rows":
        """The rows as all points can be made of them: a source that fits is read into an array.

        Where they are too many, ValueError if that is `required`, and the rows as they are if not.
        """
        return self

    def _for_passes(self, resumable: bool) -> "Rows":
        """The rows as passes are made over them, which are resumed where they were killed."""
        return self

    def _check_stays(self, out: Any) -> None:
        """Raise ValueError for results of rows on a cluster that are to be written from here."""
        if out is not None:
            raise ValueError(
                f"out={str(out)!r} is written from here, and X is on a cluster. Leave it out and "
                f"write from there, for example {self._written}."
            )

    def sample(self, size: int, seed: int) -> Array:
        """Uniform rows, in their order, the same for any blocks; all where there are no more."""
        return self.sum(SurveyOf(size, seed), "reading rows").sample.rows

    def take(self, index: Array) -> Array:
        """Some rows as an array, in the order of `index`."""
        pick = PickOf(np.asarray(index))
        places, found = zip(*self.sum(pick, "looking for rows", again=True), strict=True)
        return stack_rows(list(found))[np.argsort(np.concatenate(places), kind="stable")]


def count_rows(rows: Rows) -> int:
    """The number of rows; a pass where it is not known."""
    n = rows.shape[0]
    return rows.sum(CountOf(), "counting rows", again=True) if n is None else n
