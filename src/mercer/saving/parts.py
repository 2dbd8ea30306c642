"""The closed list of what a model is made of: recipes, results, bases, maps.

Every part declares its fields and what each must be (`kinds`); one writer and one reader are driven
by that. A new recipe that stands in its family's registry is in this list by that alone. Points
are written from wherever they are, rows of a cluster among them; a precomputed training matrix is
not kept at all.
"""

from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter, signature
from operator import attrgetter
from typing import Any, get_type_hints

import numpy as np

from .. import bases, kernels, preimage, selectors, solvers
from ..bases import ColumnBasis, FeatureBasis, FourierBasis, PointBasis, PrecomputedBasis
from ..bases.columns import has_columns
from ..bases.fourier_grid import Frequencies
from ..bases.random_features import Fourier, TensorSketch
from ..compute import is_sparse
from ..estimators.search import Selection
from ..fitting.certificate import Certificate
from ..fitting.choosing import Plan
from ..fitting.costs import Estimate, Workload
from ..fitting.expansion import KernelExpansion
from ..fitting.moments import Moments
from ..fitting.sampling import RowSample
from ..hebbian import GAINS, GrowingHebbian, Hebbian, History
from ..mds.distances import EuclideanDistance, LiftedDistance, MetricDistance
from ..mds.scaling import DistanceMap, LinearMap, Spectrum
from ..relatives.embedding import DiffusionFunctions
from ..relatives.mixed import TableEncoding
from ..rows.chunk_gram import ChunkGram
from ..spectral.assigning import Centers, Pivoted, Rotated
from ..spectral.graph import GraphArpack, NeighborGraph
from ..spectral.problems import PointMap, ReducedMap
from ..stream.dictionary import GrowingDictionary
from ..stream.moments import FixedSpan, FourierStream, Stream
from ..stream.state import BatchRecord, State
from .archive import Pieces
from .kinds import Array, Instance, conforms, count, finite, resolved, whole

# Frequencies of a full grid for each one that is kept, at most: a ball in three dimensions, of
# which half is stored, takes a fourth of its box.
FULL_GRID = 50


@dataclass(frozen=True)
class Part:
    """How objects of one class are written, checked and made again.

    Attributes
    ----------
    cls : type
    kinds : dict or None
        Fields, and what each must be; None for the parameters of a recipe, which checks them.
    optional : frozenset of str
        Fields that may be missing: an earlier version may not have had them.
    check : callable
        ``check(thing)`` says whether what was made is sound as a whole.
    read : callable or None
        ``read(thing)`` gives the fields; None for the attributes of their names.
    build : callable or None
        ``build(**fields)`` makes the thing, with ``engine=`` where it takes one; None for the
        class itself.
    tag : str or None
        What it is called in a file, where that is the name of another part, which reads it.
    """

    cls: type
    kinds: dict[str, Any] | None = None
    optional: frozenset[str] = frozenset()
    check: Callable[[Any], Any] = lambda thing: True
    read: Callable[[Any], dict[str, Any]] | None = None
    build: Callable[..., Any] | None = None
    tag: str | None = None

    @property
    def needs_engine(self) -> bool:
        """Whether it is made with the engine of its model."""
        return "engine" in signature(self.build or self.cls).parameters

    def fields(self, thing) -> dict[str, Any]:
        """The values that a thing is made of, by name."""
        if self.read is not None:
            return self.read(thing)
        if self.kinds is None:
            return thing.get_params(deep=False)
        return {name: getattr(thing, name) for name in self.kinds}


def record(cls, check: Callable[[Any], Any] = lambda thing: True, **kinds) -> Part:
    """A dataclass or a named tuple; fields whose kind is not given are of their annotation."""
    hints, parameters = get_type_hints(cls), signature(cls).parameters
    optional = {name for name, p in parameters.items() if p.default is not Parameter.empty}
    known = {name: kinds.pop(name, hints[name]) for name in parameters}
    if kinds:
        raise TypeError(f"{cls.__name__} has no fields {list(kinds)}")
    return Part(cls, known, frozenset(optional), check)


def columns_of(basis) -> int:
    """Columns of the rows that a basis takes, or a span."""
    if isinstance(basis, FixedSpan):
        basis = basis.vectors
    if isinstance(basis, PointBasis | GrowingDictionary):
        return basis.points.shape[1]
    if isinstance(basis, FourierBasis):
        return basis.frequencies.spacing.size
    if isinstance(basis, FeatureBasis):
        known = basis.features
        fourier = isinstance(known, Fourier)
        return known.frequencies.shape[1] if fourier else known.columns.shape[1] - 1
    return basis.size


# Bases.


class AbsentMatrix:
    """The training kernel matrix that a model file leaves out: only its size is known."""

    def __init__(self, size: int):
        self.shape = (size, size)

    def _missing(self, *args):
        raise ValueError(
            "This model was loaded from a file, which does not hold the training kernel matrix. "
            "transform needs only the kernel between new and training rows; for all else fit again."
        )

    __matmul__ = __getitem__ = diagonal = toarray = __array__ = _missing


def given_matrix(cls) -> Part:
    """A basis without points, of which only the size is kept."""
    return Part(
        cls, {"size": whole}, build=lambda size, engine: cls(AbsentMatrix(size), engine=engine)
    )


def chunk_points(basis: ChunkGram) -> dict:
    """All points of a cluster, which are brought here some at a time while they are written."""
    kept = {"kernel": basis.kernel, "single": basis.single, "dtype": np.float64}
    if not basis.sparse_rows:
        rows = Pieces(basis.points.dtype, basis.points.shape, basis.pieces)
        return kept | {"points": rows}
    # The numbers of CSR chunks are counted first.
    counts = np.concatenate([np.diff(piece.indptr) for piece in basis.pieces()])
    indptr = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    nnz = int(indptr[-1])
    small = max(nnz, basis.points.shape[1]) < np.iinfo(np.int32).max
    index = np.dtype(np.int32 if small else np.int64)
    data = Pieces(basis.points.dtype, (nnz,), lambda: (piece.data for piece in basis.pieces()))
    indices = Pieces(index, (nnz,), lambda: (piece.indices for piece in basis.pieces()))
    return kept | {"points": CsrPieces(data, indices, indptr.astype(index), basis.points.shape[1])}


@dataclass(frozen=True)
class CsrPieces:
    """The parts of a CSR matrix that is made piece by piece while it is written."""

    data: Pieces
    indices: Pieces
    indptr: np.ndarray
    columns: int


def fits_sketch(sketch: TensorSketch) -> bool:
    """Whether hashes lie within the size."""
    columns = sketch.columns
    return len(columns) > 0 and columns.min() >= 0 and columns.max() < sketch.size


def fits_box(grid: Frequencies) -> bool:
    """Whether a grid of frequencies is not larger than it should be, in few dimensions."""
    J, d = grid.index, grid.spacing.size
    good = grid.box.shape[1] == 2 and grid.weights.size == len(J) + 1 and d <= 3
    if not good or min(grid.spacing) <= 0 or grid.weights.min() < 0:
        return False
    full = np.prod(2.0 * np.abs(J.astype(float)).max(axis=0, initial=0) + 1)
    return bool((grid.box[:, 0] < grid.box[:, 1]).all()) and full <= FULL_GRID * grid.weights.size


ROWS = Array("n d", sparse=True)
POINTS = {"kernel": resolved, "points": ROWS, "single": bool}
BASIS_TYPES = (PointBasis, FeatureBasis, FourierBasis, ColumnBasis, PrecomputedBasis)
BASIS = Instance(BASIS_TYPES, m=attrgetter("size"))
BASES = [
    Part(PointBasis, POINTS),
    Part(
        bases.PointGram,
        POINTS | {"dtype": lambda dtype: dtype in (np.float32, np.float64)},
        build=lambda dtype, engine, **given: bases.PointGram(
            dtype=dtype.type, engine=engine, **given
        ),
    ),
    Part(ChunkGram, read=chunk_points, tag="PointGram"),
    given_matrix(PrecomputedBasis),
    given_matrix(bases.HollowMatrix),
    Part(FeatureBasis, {"kernel": resolved, "features": (Fourier, TensorSketch)}),
    Part(Fourier, {"frequencies": "m d"}),
    Part(
        TensorSketch,
        {
            "columns": Array("p q", kinds="iu"),
            "signs": "p q",
            "scale": finite,
            "constant": finite,
            "size": whole,
        },
        check=fits_sketch,
    ),
    Part(FourierBasis, {"kernel": resolved, "frequencies": Frequencies, "tol": finite}),
    record(
        Frequencies, fits_box, box="d 2", spacing="d", index=Array("M d", kinds="i"), weights="1+M"
    ),
    Part(
        ColumnBasis,
        {"kernel": resolved, "size": whole},
        check=lambda basis: has_columns(basis.kernel),
    ),
]


# Distances and sums that are not their own fields.


def works(distance: MetricDistance) -> bool:
    """Whether a metric works with its settings; tried on two rows."""
    sides = [np.shape(value)[-1] for value in distance.params.values() if np.ndim(value)]
    zeros = np.zeros((2, max(sides, default=2)))
    return np.shape(distance(zeros, zeros)) == (2, 2)


def lifted_fields(lifted: LiftedDistance) -> dict:
    """The constant, and the distance where it is not a matrix."""
    inner = lifted.distance
    kept = inner if isinstance(inner, EuclideanDistance | MetricDistance) else None
    return {"kind": lifted.kind, "constant": lifted.constant, "same": lifted.same, "distance": kept}


def pair_fields(moments: bases.TrigonometricMoments) -> dict:
    """Complex sums as pairs of floats."""
    parts = np.stack([moments.sums.real, moments.sums.imag])
    return {"count": moments.count, "parts": parts, "error": moments.error}


def are_pairs(parts) -> bool:
    """Whether these are finite, of a grid with an odd number of frequencies in every direction."""
    good = isinstance(parts, np.ndarray) and parts.dtype == float and parts.ndim > 1
    sides = good and parts.shape[0] == 2 and all(side % 2 for side in parts.shape[1:])
    return bool(sides and np.isfinite(parts).all())


SUMS = [
    Part(EuclideanDistance, {"origin": "d"}, build=lambda origin: EuclideanDistance(origin[None])),
    Part(
        MetricDistance,
        {"metric": lambda name: isinstance(name, str) and name != "precomputed", "params": dict},
        check=works,
        build=lambda metric, params: MetricDistance(metric, params, None),
    ),
    Part(
        LiftedDistance,
        {
            "kind": lambda kind: kind in ("lingoes", "cailliez"),
            "constant": finite,
            "same": finite,
            "distance": (EuclideanDistance, MetricDistance, None),
        },
        read=lifted_fields,
    ),
    Part(
        bases.TrigonometricMoments,
        {"count": finite, "parts": are_pairs, "error": finite},
        read=pair_fields,
        build=lambda count, parts, error: bases.TrigonometricMoments(
            count, parts[0] + 1j * parts[1], error
        ),
    ),
]


# Streams.


def is_forgetting(value) -> bool:
    """Whether a value is a weight above 0 and up to 1."""
    return finite(value) and 0 < value <= 1


def is_novelty(value) -> bool:
    """Whether a value is a share below 1."""
    return finite(value) and 0 <= value < 1


def is_seed(value) -> bool:
    """Whether a value is a whole number of 63 bits."""
    return conforms(value, int) and 0 <= value < 2**63


def is_factor(dictionary: GrowingDictionary) -> bool:
    """Whether the factor is a lower triangle without zeros on its diagonal."""
    L = dictionary.factor
    return L.diagonal().min() > 0 and not np.triu(L, 1).any()


def has_keys(sample: RowSample) -> bool:
    """Whether a sample has as many keys as rows, and no more than its size."""
    rows = 0 if sample.rows is None else sample.rows.shape[0]
    return sample.keys.size == rows <= sample.size


def fits_grid(stream: FourierStream) -> bool:
    """Whether sums are of the frequencies of the grid."""
    basis = stream.span.vectors
    return isinstance(basis, FourierBasis) and stream.sums.sums.shape == basis.moment_modes


def fits_span(state: State) -> bool:
    """Whether the sample has the columns of the span, and the reference for signs lies in it."""
    span, sample, reference = state.stream.span, state.sample.rows, state.reference
    size = span.vectors.size if isinstance(span, FixedSpan) else span.size
    if sample is not None and sample.shape[1] != columns_of(span):
        return False
    return reference is None or reference.frame.shape[0] <= size


def resumed(**given) -> GrowingHebbian:
    """A Hebbian stream that can go on; the Gram matrix of its points is made again."""
    stream = GrowingHebbian(**{name: given.pop(name) for name in HEBBIAN_SETTINGS})
    vars(stream).update(given)
    return stream


MOMENTS = Instance(Moments, k=lambda moments: moments.mean.size)
HEBBIAN_SETTINGS = {
    "kernel": resolved,
    "n_components": whole,
    "forgetting": is_forgetting,
    "budget": (whole, None),
    "oversampling": count,
    "block": whole,
    "novelty": (is_novelty, None),
    "center": Any,
}
STREAMS = [
    record(
        Moments,
        count=lambda count: finite(count) and count >= 0,
        mean="m",
        scatter="m m",
        energy=finite,
        largest=finite,
    ),
    record(RowSample, has_keys, size=whole, seed=is_seed, rows=(ROWS, None), keys="k"),
    record(FixedSpan, vectors=BASIS, whitener=("m k", None)),
    record(
        GrowingDictionary,
        is_factor,
        kernel=resolved,
        novelty=is_novelty,
        budget=whole,
        points=ROWS,
        factor="n n",
    ),
    record(
        Stream,
        span=Instance((GrowingDictionary, FixedSpan), k=attrgetter("size")),
        early=MOMENTS,
        since=MOMENTS,
        missed="k",
        forgetting=is_forgetting,
        count=whole,
        joined=count,
    ),
    record(FourierStream, fits_grid, forgetting=is_forgetting, count=whole),
    record(State, fits_span),
    record(
        BatchRecord,
        rows=count,
        n_samples_seen=count,
        size=count,
        joined=count,
        lost_share=finite,
        left=count,
    ),
    Part(
        GrowingHebbian,
        HEBBIAN_SETTINGS
        | {
            "points": ROWS,
            "frame": "n 1+q",
            "variances": "q",
            "variance": finite,
            "count": whole,
            "lost": "1+q",
            "missed": "1+q",
        },
        check=lambda stream: stream.variances.size == stream.carried == stream.lost.size - 1,
        build=resumed,
    ),
]


# Results.

RESULTS = [
    record(
        Certificate,
        eigenvalue_lower=Array("r", finite=False),
        eigenvalue_upper=Array("r", finite=False),
    ),
    record(KernelExpansion, basis=BASIS, frame="m 1+r", metric="1+r 1+r"),
    record(
        PointMap,
        lambda found: found.basis.spans_data,
        basis=BASIS,
        weights="m k",
        values="k",
        own="m",
    ),
    record(ReducedMap, basis=BASIS, weights="m k", total="m"),
    record(
        DiffusionFunctions,
        basis=BASIS,
        weights="m k",
        total="m",
        values="k",
        density=("m", None),
        alpha=finite,
    ),
    record(
        NeighborGraph,
        lambda graph: is_sparse(graph.matrix) and graph.n_neighbors <= graph.radii.size,
        matrix=Array("n n", sparse=True),
        radii="n",
        n_neighbors=whole,
        points=(ROWS, None),
    ),
    record(Centers, centers="c k"),
    record(Rotated, scale="k", rotation="k k"),
    record(Pivoted, rotation="k k"),
    record(LinearMap, mean="d", rotation="d p"),
    record(DistanceMap, weights="a k", offset="k", rotation=("k p", None)),
    record(Spectrum, total=finite, absolute=finite, least=finite),
    record(
        TableEncoding,
        lambda table: (
            len(set(table.names)) == len(table.labels) == table.size.size
            and not (table.size < 0).any()
        ),
        low="d",
        size="d",
    ),
    *map(record, (Estimate, History, Plan, Selection, Workload)),
]
RECIPES: tuple[type, ...] = (
    *kernels.KERNELS.values(),
    kernels.Callable,
    kernels.Hollow,
    *bases.BASES.values(),
    *selectors.SELECTORS.values(),
    *solvers.SOLVERS.values(),
    Hebbian,
    GraphArpack,
    *preimage.PREIMAGES.values(),
    *GAINS.values(),
)
#: Every part by the name of its class.
PARTS: dict[str, Part] = {
    part.cls.__name__: part
    for part in [*(Part(cls) for cls in RECIPES), *BASES, *SUMS, *STREAMS, *RESULTS]
}
