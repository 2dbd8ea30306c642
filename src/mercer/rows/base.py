"""The contract of rows: where the data are, and the only thing that knows it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from ..bases import GramBasis
from ..compute import TiledEngine, make_engine
from ..compute.arrays import Array
from ..fitting.checkpoint import Checkpoint
from ..fitting.moments import Moments
from ..fitting.remainder import ALL_ROWS, SAMPLE_ROWS
from ..kernels import Kernel
from .functions import MomentsOf, OfExpansion, RowFunction, SurveyOf, Together

# Rows kept of those that are read for another reason: enough for widths and pre-images.
KEPT_ROWS = 2000
# What makes a second sample of the same rows independent of the first.
WITNESS = 0x5DEECE66D


@dataclass(frozen=True)
class Witnessed:
    """What a pass finds for a basis.

    Attributes
    ----------
    moments : Moments
        Of the coordinates of all rows.
    rows : array
        Uniform rows that the basis was not chosen from.
    coordinates : array of shape (n, k) or None
        Of all rows, where they are `rows` and were kept.
    """

    moments: Moments
    rows: Any
    coordinates: Any = None


class Rows(ABC):
    """The rows of a fit or of a transform, wherever they are.

    Attributes
    ----------
    kind : str
        ``"array"``, ``"blocks"`` or ``"dask"``.
    name : str
        What messages call them.
    shape : (int or None, int)
        The number of rows may be unknown until the first pass.
    dtype : dtype
        float32 where all numbers are, else float64.
    names : list of str or None
        Names of the columns, where they have any.
    original : object
        What the user passed, for results in kind.
    memory : int, str or None
        Byte budget of what is read and gathered here.
    seed : int
        What `sample` draws by.
    """

    kind: ClassVar[str]
    #: Whether the rows can be read again.
    repeatable: bool = True
    #: Whether they are one array that is there already.
    in_memory: bool = False
    #: Whether passes over them show progress of their own.
    shows_progress: bool = False
    #: Whether their blocks are CSR matrices.
    sparse: bool = False
    name: str = "X"
    names: list[str] | None = None
    original: Any = None
    memory: Any = None
    #: The generator of the fit.
    rng: np.random.Generator | None = None
    #: How often each row counts, (n,); None for once.
    weights: np.ndarray | None = None
    #: Where passes leave what they have found, or None.
    checkpoint: Checkpoint | None = None

    @cached_property
    def seed(self) -> int:
        """A seed of its own, which does not advance the generator; drawn when it is needed."""
        return 0 if self.rng is None else int(self.rng.spawn(1)[0].integers(2**62))

    @property
    @abstractmethod
    def shape(self) -> tuple[int | None, int]:
        """Number of rows, or None where it is not known yet, and of columns."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype:
        """float32 or float64."""

    @abstractmethod
    def sum(self, function: RowFunction, title: str = "rows") -> Any:
        """The sum of a function over blocks of all rows, in one pass."""

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
    def take(self, index: Array) -> Any:
        """Some rows as an array, in the order of `index`."""

    @abstractmethod
    def gram(
        self,
        kernel: Kernel,
        engine: TiledEngine,
        rng: np.random.Generator,
        n_components: int | None = None,
    ) -> GramBasis:
        """All rows as a basis, or ValueError that says what to do instead."""

    @abstractmethod
    def sample(self, size: int, rng: np.random.Generator | None = None) -> Any:
        """Uniform rows as an array, in their order; all of them where there are no more.

        The same rows for any blocks or chunks. By the seed of these rows, or by `rng`.
        """

    @abstractmethod
    def whole(self, who: str) -> Any:
        """The same rows in one array, for what needs them so; ValueError where they cannot be."""

    @abstractmethod
    def batches(self) -> Iterator:
        """Blocks of rows in their order, for what learns from one after the other."""

    @abstractmethod
    def count_rows(self) -> int:
        """The number of rows; counted in a pass where it is not known."""

    @abstractmethod
    def identity(self) -> list:
        """What tells these rows from others, without reading all: for checkpoints."""

    @property
    def kept(self) -> Any:
        """What a model keeps of the rows where all of them are its basis."""
        return None

    def for_points(self, required: bool, who: str) -> "Rows | None":
        """The rows as a basis of all points can use them.

        None where only a small basis can serve them; an error if they are `required`.
        """
        return self

    def for_passes(self) -> "Rows":
        """The rows as passes over them read them best."""
        return self

    def in_pieces(self) -> "Rows":
        """The rows as passes read them that may be killed and go on."""
        return self

    def blank(self) -> Any:
        """Two rows of zeros of the right width and kind."""
        zeros = np.zeros((2, self.shape[1]), self.dtype)
        return sparse.csr_matrix(zeros) if self.sparse else zeros

    def candidates(self, size: int) -> Any:
        """Rows in memory to choose a basis from: a sample of `size`, or all."""
        return self.sample(size)

    def typical(self) -> Any:
        """Rows to measure the width of a kernel on."""
        return self.sample(KEPT_ROWS)

    def witnessed(self, moments_of: MomentsOf, size: int) -> Witnessed:
        """The moments, and in the same pass uniform rows that the basis was not chosen from."""
        # No more than a fixed number, so that memory does not grow with the rows.
        most = SAMPLE_ROWS if (self.shape[0] or 0) > ALL_ROWS else ALL_ROWS
        look = SurveyOf(min(size, most), self.seed ^ WITNESS)
        found = self.sum(Together((moments_of, look)), "summing moments")
        moments, seen = found.parts
        wanted = look.size if seen.count <= ALL_ROWS else min(look.size, SAMPLE_ROWS)
        return Witnessed(moments_of.finished(moments), seen.sample.leading(wanted).rows)

    def make_engine(
        self,
        *,
        device: Any = None,
        threads: int | None = None,
        on_tiles: Callable[[int, int], None] | None = None,
    ) -> TiledEngine:
        """The engine for what is done with these rows here."""
        return make_engine(memory=self.memory, device=device, threads=threads, on_tiles=on_tiles)

    def explained(self, plan: Any, problem: Any) -> Any:
        """The plan as it was carried out on these rows."""
        return plan
