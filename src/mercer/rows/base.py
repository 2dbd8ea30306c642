"""The contract of rows: where the data are, and the only thing that knows it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from ..attribution import gradient_sums
from ..bases import Basis, FourierBasis, GramBasis
from ..bases.fourier import row_range
from ..checkpoint import Checkpoint
from ..compute import TiledEngine, make_engine, stack_rows, to_numpy
from ..compute.arrays import Array
from ..expansion import KernelExpansion
from ..kernels import Kernel
from ..kernels.base import wide_row_squares
from ..moments import Moments
from ..problems import row_moments, whitened
from ..remainder import ALL_ROWS, SAMPLE_ROWS
from ..sampling import RowSample

# Rows kept of those that are read for another reason: enough for widths and pre-images.
KEPT_ROWS = 2000
# What makes a second sample of the same rows independent of the first.
WITNESS = 0x5DEECE66D


class RowFunction(ABC):
    """A function of a block of rows, which may be called where the rows are."""

    @abstractmethod
    def __call__(self, rows, first: int) -> Any:
        """Its value for the rows number first, first + 1, ..."""

    def moved(self, engine: TiledEngine) -> "RowFunction":
        """The same function where another engine works."""
        return self


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
    seed: int = 0
    #: How often each row counts, (n,); None for once.
    weights: np.ndarray | None = None
    #: Where passes leave what they have found, or None.
    checkpoint: Checkpoint | None = None

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
    def map(self, function: "OfExpansion", out: Any = None, names: Any = None) -> Any:
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

    def moments(self, basis: Basis, W: Array) -> Moments:
        """Moments of the coordinates of all rows in a basis, for W with W' G W = I."""
        found = self.sum(MomentsOf(basis, W, self.weights), "summing moments")
        return whitened(basis, W, found)

    def witnessed(self, basis: Basis, W: Array, size: int) -> tuple[Moments, Any]:
        """The moments, and in the same pass uniform rows that the basis was not chosen from."""
        # No more than a fixed number, so that memory does not grow with the rows.
        most = SAMPLE_ROWS if (self.shape[0] or 0) > ALL_ROWS else ALL_ROWS
        look = SurveyOf(min(size, most), self.seed ^ WITNESS)
        moments_of = MomentsOf(basis, W, self.weights)
        found = self.sum(Together((moments_of, look)), "summing moments")
        moments, seen = found.parts
        wanted = look.size if seen.count <= ALL_ROWS else min(look.size, SAMPLE_ROWS)
        return whitened(basis, W, moments), seen.sample.leading(wanted).rows

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


@dataclass(frozen=True)
class MomentsOf(RowFunction):
    """Moments of rows against a basis, which add up; `whitened` finishes their sum."""

    basis: Basis
    whitener: Any
    weights: np.ndarray | None = None

    def __call__(self, rows, first):
        """Moments of a block."""
        self.basis.kernel.check(rows)
        weights = weights_of(self.weights, rows, first)
        return row_moments(self.basis, self.whitener, rows, weights)

    def moved(self, engine):
        """Against the same basis elsewhere."""
        return replace(self, basis=self.basis.moved(engine))


def weights_of(weights, rows, first: int):
    """The weights of the rows number first, first + 1, ...; None where there are none."""
    return None if weights is None else weights[first : first + rows.shape[0]]


@dataclass(frozen=True)
class Sums:
    """Sums of several functions, which add up one by one."""

    parts: tuple

    def __sizeof__(self):
        # A scheduler asks for it before it moves one.
        return object.__sizeof__(self) + sum(part.__sizeof__() for part in self.parts)

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(tuple(a + b for a, b in zip(self.parts, other.parts, strict=True)))


@dataclass(frozen=True)
class Together(RowFunction):
    """Several functions in one pass."""

    functions: tuple[RowFunction, ...]

    def __call__(self, rows, first):
        """All of them for a block."""
        return Sums(tuple(function(rows, first) for function in self.functions))

    def moved(self, engine):
        """All of them elsewhere."""
        return Together(tuple(function.moved(engine) for function in self.functions))


@dataclass(frozen=True)
class TrigonometricOf(RowFunction):
    """Trigonometric moments of rows for a Fourier grid."""

    basis: FourierBasis
    weights: np.ndarray | None = None

    def __call__(self, rows, first):
        """Those of a block."""
        return self.basis.moments(rows, weights_of(self.weights, rows, first))

    def moved(self, engine):
        """On the same grid elsewhere."""
        return replace(self, basis=self.basis.moved(engine))


@dataclass(frozen=True)
class OfExpansion(RowFunction):
    """A verb of an expansion, as a function of blocks of rows.

    Attributes
    ----------
    expansion : KernelExpansion
    verb : callable
        ``verb(expansion, rows)``.
    tail : tuple of int
        The shape of one row's result.
    title : str
        What progress says is being made.
    """

    expansion: KernelExpansion
    verb: Callable
    tail: tuple[int, ...]
    title: str

    def __call__(self, rows, first):
        """The verb for a block."""
        self.expansion.basis.kernel.check(rows)
        return self.verb(self.expansion, rows)

    def moved(self, engine: TiledEngine) -> Any:
        """With the basis elsewhere."""
        basis = self.expansion.basis.moved(engine)
        return replace(self, expansion=replace(self.expansion, basis=basis))


@dataclass(frozen=True)
class GradientsOf(RowFunction):
    """Sums of the gradients of scores over rows."""

    expansion: KernelExpansion

    def __call__(self, rows, first):
        """Those of a block."""
        self.expansion.basis.kernel.check(rows)
        return gradient_sums(self.expansion, rows)

    def moved(self, engine: TiledEngine) -> Any:
        """With the basis elsewhere."""
        basis = self.expansion.basis.moved(engine)
        return replace(self, expansion=replace(self.expansion, basis=basis))


def scores_of(expansion: KernelExpansion) -> OfExpansion:
    """Coordinates of rows along the directions."""
    return OfExpansion(expansion, KernelExpansion.scores, (expansion.n_components,), "scores")


def errors_of(expansion: KernelExpansion) -> OfExpansion:
    """Squared distances of rows to their reconstructions."""
    return OfExpansion(expansion, KernelExpansion.squared_errors, (), "errors")


@dataclass(frozen=True)
class Survey:
    """Rows counted and sampled in one pass; two of them add up to one.

    Attributes
    ----------
    sample : RowSample
    count : int
    reach : float
        The largest squared norm of a row.
    farthest : array of shape (<= 1, d)
        That row: a sample alone would miss it.
    """

    sample: RowSample
    count: int
    reach: float
    farthest: Any

    def __sizeof__(self):
        # A scheduler asks for it before it moves one.
        rows = self.sample.rows
        return object.__sizeof__(self) + (0 if rows is None else 8 * rows.shape[0] * rows.shape[1])

    def __add__(self, other: "Survey") -> "Survey":
        far = self if self.reach >= other.reach else other
        return Survey(self.sample + other.sample, self.count + other.count, far.reach, far.farthest)


@dataclass(frozen=True)
class SurveyOf(RowFunction):
    """Counts rows and gives each its chance in a sample."""

    size: int
    seed: int

    def __call__(self, rows, first):
        """The survey of a block."""
        sample = RowSample(self.size, self.seed).add(rows, first)
        squares = to_numpy(wide_row_squares(rows))
        peak = int(np.argmax(squares)) if squares.size else 0
        reach = float(squares[peak]) if squares.size else -1.0
        # A copy: a slice would keep its whole block alive.
        return Survey(sample, rows.shape[0], reach, rows[[peak]] if squares.size else rows[:0])


@dataclass(frozen=True)
class Box:
    """Least and largest value of every column, (d, 2); the sum of two boxes holds both."""

    bounds: np.ndarray

    def __add__(self, other: "Box") -> "Box":
        low = np.minimum(self.bounds[:, 0], other.bounds[:, 0])
        high = np.maximum(self.bounds[:, 1], other.bounds[:, 1])
        return Box(np.stack([low, high], axis=1))


@dataclass(frozen=True)
class RangeOf(RowFunction):
    """The box of rows."""

    def __call__(self, rows, first):
        """Of a block."""
        return Box(row_range(rows))


@dataclass(frozen=True)
class CountOf(RowFunction):
    """How many rows there are."""

    def __call__(self, rows, first):
        """Of a block."""
        return rows.shape[0]


@dataclass(frozen=True)
class PickOf(RowFunction):
    """Rows of given numbers; the parts add up as tuples of what was found where."""

    index: np.ndarray

    def __call__(self, rows, first):
        """The rows of a block that are wanted, with their places in the order asked for."""
        local = self.index - first
        places = np.flatnonzero((local >= 0) & (local < rows.shape[0]))
        return ((places, rows[local[places]]),) if places.size else ()


def in_order(found: tuple) -> Any:
    """The rows of `PickOf` in the order asked for."""
    places = np.concatenate([places for places, _ in found])
    return stack_rows([rows for _, rows in found])[np.argsort(places, kind="stable")]
