"""The closed list of what a model is made of: recipes, results, bases, maps.

Every part declares its fields and what each must be (`kinds`); one writer and one reader are driven
by that. A new recipe that stands in its family's registry is in this list by that alone. Points
are written from wherever they are, rows of a cluster among them; a precomputed training matrix is
not kept at all.

Every estimator declares what it has once it is fitted (`_fitted`), with its kind. Saved is what
transform, errors, pre-images, plots and reports need. Not saved is what only a fit needs or what
follows from the rest: `X_fit_` and `landmarks_` are the points of the basis, `eigenvectors_` the
frame times the roots of the eigenvalues; `callback` and random generators belong to the program
that ran the fit. A model that learns from a stream keeps what it needs to go on.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from inspect import Parameter, signature
from typing import Any, get_type_hints

import numpy as np
from sklearn.base import BaseEstimator

from .. import bases, estimators, kernels, preimage, selectors, solvers
from ..bases import ColumnBasis, FeatureBasis, FourierBasis, PointBasis, PrecomputedBasis
from ..bases.fourier_grid import Frequencies
from ..bases.random_features import Fourier, TensorSketch
from ..compute import is_sparse, to_numpy
from ..estimators._checks import LARGEST_SUM
from ..estimators._door import is_float
from ..estimators.search import Selection
from ..fitting.certificate import Certificate
from ..fitting.choosing import Plan
from ..fitting.costs import Estimate, Workload
from ..fitting.expansion import KernelExpansion
from ..fitting.functions import RowSample
from ..fitting.moments import Moments
from ..hebbian import GAINS, GrowingHebbian, Hebbian, History
from ..kernels import Kernel
from ..kernels.function import Objects
from ..mds.distances import EuclideanDistance, LiftedDistance, MetricDistance
from ..mds.scaling import DistanceMap, LinearMap, Spectrum
from ..relatives.embedding import DiffusionFunctions
from ..relatives.mixed import TableEncoding
from ..rows.chunk_gram import ChunkGram
from ..spectral.assigning import Centers, Pivoted, Rotated
from ..spectral.graph import GraphArpack, NeighborGraph
from ..spectral.problems import PointMap, ReducedMap
from ..stream.components import BatchRecord, State
from ..stream.dictionary import GrowingDictionary
from ..stream.moments import FixedSpan, FourierStream, Stream
from .archive import Pieces
from .kinds import FINITE, SIZES, WHOLE

# Frequencies of a full grid for each one that is kept, at most: a ball in three dimensions, of
# which half is stored, takes a fourth of its box.
FULL_GRID = 50
# Parameters that only the running program can have.
OF_PROGRAM = ("callback", "checkpoint")


@dataclass(frozen=True)
class Part:
    """How objects of one class are written, checked and made again.

    Attributes
    ----------
    cls : type
    kinds : dict or None
        Fields, and what each must be; None for the parameters of a recipe, which checks them.
    optional : set of str
        Fields that may be missing: an earlier version may not have had them.
    check : callable
        ``check(thing)`` says whether what was made is sound as a whole.
    read : callable
        ``read(thing)`` gives the fields.
    build : callable
        ``build(**fields)`` makes the thing, with ``engine=`` where it takes one.
    tag : str or None
        What it is called in a file, where that is the name of another part, which reads it.

    Of an estimator, `kinds` are its fitted attributes that are saved, and `optional` those of them
    that a file may lack.
    """

    cls: type
    kinds: dict[str, Any] | None
    optional: set[str]
    check: Callable[[Any], Any]
    read: Callable[[Any], dict[str, Any]]
    build: Callable[..., Any]
    tag: str | None = None


def part(cls, check=lambda thing: True, read=None, build=None, tag=None, **kinds) -> Part:
    """A part by its fields; those of a dataclass or a named tuple are of their annotation.

    A recipe is its parameters, which it checks itself.
    """
    if issubclass(cls, BaseEstimator):
        return Part(cls, None, set(), check, read or partial(cls.get_params, deep=False), cls)
    optional, names = set(), set()
    if is_dataclass(cls):
        names = {one.name for one in fields(cls)}
    elif issubclass(cls, tuple):
        names = set(cls._fields)
    if names and build is None and not kinds.keys() <= names:
        raise TypeError(f"{cls.__name__} has no fields {kinds.keys() - names}")
    if names and kinds.keys() <= names:
        hints, parameters = get_type_hints(cls, include_extras=True), signature(cls).parameters
        kinds = {name: kinds.get(name, hints[name]) for name in hints if name in names}
        optional = {name for name, p in parameters.items() if p.default is not Parameter.empty}
    if read is None:
        read = lambda thing: {name: getattr(thing, name) for name in kinds}  # noqa: E731
    return Part(cls, kinds, optional, check, read, build or cls, tag)


def model_part(estimator: Any) -> Part:
    """An estimator by its own declaration."""
    saved = {name: one for name, one in estimator._fitted.items() if one.saved}
    optional = {name for name, one in saved.items() if not one.always}

    def read(model) -> dict[str, Any]:
        params, facts = model.get_params(deep=False), vars(model)
        params |= dict.fromkeys(dropped_params(model))
        if params.get("device") is not None:
            params["device"] = str(params["device"])
        names = [name for name in saved if name in facts and model._is_saved(name)]
        state = {name: facts[name] for name in names}
        if isinstance(facts.get("_encoding"), Objects) and state.pop("X_sample_", None) is not None:
            # Of objects only the landmarks go into a file.
            numbers = to_numpy(facts["expansion_"].basis.points)
            state["_encoding"] = Objects.stored(**facts["_encoding"].stored_fields(numbers))
        return {"params": params, "state": state}

    kinds = {name: one.kind for name, one in saved.items()}
    return Part(estimator, kinds, optional, lambda model: True, read, estimator)


def present_params(kind: type, params: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a stored model by their present names and values."""
    params = dict(params)
    tol = params.pop("eigen_tol", "auto")
    if kind is estimators.DiffusionMap and "alpha" in params:
        params["density_power"] = params.pop("alpha")
    if tol != "auto":
        params["tol"] = tol
    spectral = {"SpectralClustering", "SpectralEmbedding", "DiffusionMap"}
    if kind.__name__ in spectral and params.get("eigen_solver", "auto") is None:
        params["eigen_solver"] = "auto"
    return params


def dropped_params(model) -> list[str]:
    """Names of parameters that a file does not keep: callbacks, generators, checkpoints."""
    params = model.get_params(deep=False)
    generator = isinstance(params.get("random_state"), np.random.RandomState)
    names = [name for name in OF_PROGRAM if params.get(name) is not None]
    return ["random_state", *names] if generator else names


def columns_of(basis) -> int:
    """Columns of the rows that a basis takes, or a span."""
    if isinstance(basis, FixedSpan):
        basis = basis.vectors
    if isinstance(basis, PointBasis | GrowingDictionary):
        return basis.points.shape[1]
    if isinstance(basis, FourierBasis):
        return basis.frequencies.spacing.size
    if isinstance(basis, FeatureBasis):
        features = basis.features
        fourier = isinstance(features, Fourier)
        return features.frequencies.shape[1] if fourier else features.columns.shape[1] - 1
    return basis.size


class AbsentMatrix:
    """The training kernel matrix that a model file leaves out: only its size is known."""

    def __init__(self, size: int):
        self.shape = (size, size)

    def _missing(self, *args):
        raise ValueError(
            "This model was loaded from a file, which does not hold the training kernel matrix. "
            "transform needs only the kernel between new and training rows, unless eigenvalues are "
            "negative; for all else fit again."
        )

    T = property(_missing)
    __matmul__ = __getitem__ = diagonal = toarray = __array__ = _missing


def without_matrix(cls, size: int, engine):
    """A basis without points, of which only the size is kept."""
    return cls(AbsentMatrix(size), engine=engine)


def chunk_points(basis: ChunkGram) -> dict:
    """All points of a cluster, which are brought here some at a time while they are written."""
    fields = {"kernel": basis.kernel, "single": basis.single, "dtype": np.float64}
    if not basis.sparse_rows:
        rows = Pieces(basis.points.dtype, basis.points.shape, basis.pieces)
        return fields | {"points": rows}
    # The numbers of CSR chunks are counted first.
    counts = np.concatenate([np.diff(piece.indptr) for piece in basis.pieces()])
    indptr = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    nnz = int(indptr[-1])
    small = max(nnz, basis.points.shape[1]) < np.iinfo(np.int32).max
    index = np.dtype(np.int32 if small else np.int64)
    data = Pieces(basis.points.dtype, (nnz,), lambda: (piece.data for piece in basis.pieces()))
    indices = Pieces(index, (nnz,), lambda: (piece.indices for piece in basis.pieces()))
    return fields | {
        "points": CsrPieces(data, indices, indptr.astype(index), basis.points.shape[1])
    }


@dataclass(frozen=True)
class CsrPieces:
    """The parts of a CSR matrix that is made piece by piece while it is written."""

    data: Pieces
    indices: Pieces
    indptr: np.ndarray
    columns: int


def fits_box(grid: Frequencies) -> bool:
    """Whether a grid of frequencies is not larger than it should be, in few dimensions."""
    J, d = grid.index, grid.spacing.size
    good = grid.box.shape[1] == 2 and grid.weights.size == len(J) + 1 and d <= 3
    if not good or min(grid.spacing) <= 0 or grid.weights.min() < 0:
        return False
    full = np.prod(2.0 * np.abs(J.astype(float)).max(axis=0, initial=0) + 1)
    return bool(np.all(grid.box[:, 0] < grid.box[:, 1]) and full <= FULL_GRID * grid.weights.size)


def works(distance: MetricDistance) -> bool:
    """Whether a metric works with its settings; tried on two rows."""
    sides = [np.shape(value)[-1] for value in distance.params.values() if np.ndim(value)]
    zeros = np.zeros((2, max(sides, default=2)))
    return np.shape(distance(zeros, zeros)) == (2, 2)


def lifted_fields(lifted: LiftedDistance) -> dict:
    """The constant, and the distance where it is not a matrix."""
    fields = dict(vars(lifted))
    if not isinstance(lifted.distance, EuclideanDistance | MetricDistance):
        fields["distance"] = None
    return fields


def pair_fields(moments: bases.TrigonometricMoments) -> dict:
    """Complex sums as pairs of floats."""
    parts = np.stack([moments.sums.real, moments.sums.imag])
    return {"count": moments.count, "parts": parts, "error": moments.error}


def are_pairs(parts) -> bool:
    """Whether these are finite, of a grid with an odd number of frequencies in every direction."""
    good = isinstance(parts, np.ndarray) and parts.dtype == float and parts.ndim > 1
    sides = good and parts.shape[0] == 2 and all(side % 2 for side in parts.shape[1:])
    return bool(sides and np.isfinite(parts).all())


def fits_span(state: State) -> bool:
    """Whether the sample has the columns of the span, and the reference for signs lies in it."""
    span, sample, reference = state.stream.span, state.sample.rows, state.reference
    size = span.vectors.size if isinstance(span, FixedSpan) else span.size
    if sample is not None and sample.shape[1] != columns_of(span):
        return False
    return reference is None or reference.frame.shape[0] <= size


def resumed(**given) -> GrowingHebbian:
    """A Hebbian stream that can go on; the Gram matrix of its points is made again."""
    names = signature(GrowingHebbian).parameters
    stream = GrowingHebbian(**{name: given.pop(name) for name in names})
    vars(stream).update(given)
    return stream


def has_unit_directions(stream: Any) -> bool:
    """Whether no direction is far longer than 1, nor the mean than rows, as in a forged frame."""
    longest = np.abs(stream.metric).diagonal() / LONGEST
    rows = np.max(stream.kernel.diag(stream.points), initial=0.0)
    return bool(longest[1:].max(initial=0.0) < 1 and longest[0] <= rows)


def fits_columns(table: TableEncoding) -> bool:
    """Whether names, labels and ranges that are not negative are of as many columns.

    That of categories is not zero.
    """
    same = len(set(table.names)) == len(table.names) == len(table.labels) == table.size.size
    pairs = zip(table.size, table.labels, strict=same)
    return same and all(size > 0 if labels else size >= 0 for size, labels in pairs)


# Squared length of a direction at most, which learning keeps near 1.
LONGEST = 100.0
ROWS = "n d sparse"
SIZES |= {
    "Certificate": lambda certificate: (certificate.eigenvalue_lower.size,),
    "Centers": lambda centers: (centers.centers.shape[1],),
    "DistanceMap": lambda m: (
        len(m.weights),
        (m.weights if m.rotation is None else m.rotation).shape[1],
    ),
    "KernelExpansion": lambda expansion: (columns_of(expansion.basis), expansion.n_components),
    "KernelPCA": lambda model: (model.n_features_in_,),
    "LinearMap": lambda m: m.rotation.shape,
    "Moments": lambda moments: (moments.mean.size,),
    "NeighborGraph": lambda graph: (graph.radii.size,),
    "State": lambda state: (columns_of(state.stream.span),),
    "Objects": lambda objects: (1, ("object",)),
    "TableEncoding": lambda encoding: (len(encoding.names), tuple(encoding.names)),
}
SIZES |= dict.fromkeys(("DiffusionFunctions", "PointMap", "ReducedMap"), lambda f: f.weights.shape)
SIZES |= dict.fromkeys(("FixedSpan", "GrowingDictionary"), lambda span: (span.size,))
SIZES |= dict.fromkeys(("Pivoted", "Rotated"), lambda rotated: (len(rotated.rotation),))
GRAM = {"kernel": Kernel, "points": ROWS, "single": bool, "dtype": is_float}
BASES = [
    part(PointBasis, kernel=Kernel, points=ROWS, single=bool),
    part(bases.PointGram, **GRAM),
    part(bases.ProductGram, tag="PointGram", **GRAM),
    part(ChunkGram, read=chunk_points, tag="PointGram"),
    part(PrecomputedBasis, build=partial(without_matrix, PrecomputedBasis), size=WHOLE),
    part(bases.HollowMatrix, build=partial(without_matrix, bases.HollowMatrix), size=WHOLE),
    part(FeatureBasis, kernel=Kernel, features=(Fourier, TensorSketch)),
    part(Fourier, frequencies="m d"),
    part(
        TensorSketch,
        # Hashes lie within the size.
        lambda s: len(s.columns) > 0 and s.columns.min() >= 0 and s.columns.max() < s.size,
        columns="p q int",
        signs="p q",
        scale=FINITE,
        constant=FINITE,
        size=WHOLE,
    ),
    part(FourierBasis, kernel=Kernel, frequencies=Frequencies, tol=FINITE),
    part(Frequencies, fits_box),
    part(ColumnBasis, lambda basis: basis.kernel.is_inner_product, kernel=Kernel, size=WHOLE),
]
DISTANCES = [
    part(EuclideanDistance, build=lambda origin: EuclideanDistance(origin[None]), origin="d"),
    part(
        MetricDistance,
        works,
        build=partial(MetricDistance, moments=None),
        metric=lambda name: isinstance(name, str) and name != "precomputed",
        params=dict,
    ),
    part(
        LiftedDistance,
        read=lifted_fields,
        constant=FINITE,
        same=FINITE,
        distance=(EuclideanDistance, MetricDistance, None),
    ),
]
STREAMS = [
    part(
        bases.TrigonometricMoments,
        read=pair_fields,
        build=lambda count, parts, error: bases.TrigonometricMoments(
            count, parts[0] + 1j * parts[1], error
        ),
        count=FINITE,
        parts=are_pairs,
        error=FINITE,
    ),
    # As many keys as rows, and no more than its size.
    part(RowSample, lambda s: s.keys.size == (0 if s.rows is None else s.rows.shape[0]) <= s.size),
    # Rows have no inner products above the sum of their squared norms.
    part(
        Moments,
        lambda m: np.abs(m.scatter).max(initial=0) <= 1.001 * m.projected_energy < LARGEST_SUM,
    ),
    part(FixedSpan, vectors=bases.Basis),
    # The factor is a lower triangle without zeros on its diagonal.
    part(
        GrowingDictionary,
        lambda d: d.factor.diagonal().min() > 0 and not np.triu(d.factor, 1).any(),
        kernel=Kernel,
    ),
    part(
        Stream,
        lambda s: s.missed.min(initial=0) >= 0 and s.missed.max(initial=0) < LARGEST_SUM,
        span="GrowingDictionary|FixedSpan k",
        early="Moments k",
        since="Moments k",
        count=WHOLE,
    ),
    # The span is a grid: no other basis has modes.
    part(FourierStream, lambda s: s.sums.sums.shape == s.span.vectors.moment_modes, count=WHOLE),
    part(State, fits_span),
    part(
        GrowingHebbian,
        lambda stream: (
            stream.variances.size == stream.carried == stream.lost.size - 1
            and has_unit_directions(stream)
        ),
        build=resumed,
        kernel=Kernel,
        count=WHOLE,
    ),
]
RESULTS = [
    part(PointMap, lambda found: found.basis.spans_data),
    # What only a fit needs is left out.
    part(Plan, read=lambda plan: vars(plan) | {"basis": None}),
    part(
        NeighborGraph,
        lambda graph: is_sparse(graph.matrix) and graph.n_neighbors <= graph.radii.size,
    ),
    part(TableEncoding, fits_columns),
    part(
        Objects,
        lambda objects: (
            len(objects.lots[0]) == objects.numbers.size
            and objects.numbers[0] >= 0
            and objects.numbers[-1] < objects.next
            and bool((np.diff(objects.numbers) > 0).all())
        ),
        read=Objects.stored_fields,
        build=Objects.stored,
        items=(list, np.ndarray),
        numbers="c int",
        n=WHOLE,
    ),
    # The function is no part of a file: `load` is given it.
    part(
        kernels.BlockFunction,
        read=lambda kernel: kernel.get_params(deep=False) | {"function": None},
    ),
]
# Dataclasses and named tuples whose fields say all that must hold of them.
RECORDS = (
    BatchRecord,
    *(Certificate, DiffusionFunctions, KernelExpansion, ReducedMap),
    *(Centers, Pivoted, Rotated),
    *(DistanceMap, LinearMap, Spectrum),
    *(Estimate, History, Selection, Workload),
)
RECIPES: tuple[type, ...] = (
    *kernels.KERNELS.values(),
    *kernels.OBJECTS,
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
    for part in [*map(part, (*RECIPES, *RECORDS)), *BASES, *DISTANCES, *STREAMS, *RESULTS]
}
#: Every estimator by the name of its class.
MODELS: dict[str, Part] = {
    name: model_part(estimator)
    for name in estimators.__all__
    if isinstance(estimator := vars(estimators).get(name) or getattr(estimators, name), type)
}
