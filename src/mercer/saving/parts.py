"""The closed list of what a model is made of: recipes, results, bases, maps.

A new recipe that stands in its family's registry is in this list by that alone. Whatever comes
from a file is checked, piece by piece, before it is used; bases are in `bases.py`.
"""

from inspect import Parameter, signature
from typing import get_type_hints

import numpy as np

from ..bases import BASES, TrigonometricMoments
from ..bases.fourier_grid import Frequencies
from ..compute import is_sparse
from ..estimators.search import Selection
from ..fitting.certificate import Certificate
from ..fitting.choosing import Plan
from ..fitting.costs import Estimate, Workload
from ..fitting.expansion import KernelExpansion
from ..fitting.moments import Moments
from ..fitting.sampling import RowSample
from ..hebbian import GAINS, GrowingHebbian, Hebbian, History
from ..kernels import KERNELS, Callable, Hollow
from ..mds.coordinates import DistanceMap, Spectrum
from ..mds.distances import EuclideanDistance, LiftedDistance, MetricDistance
from ..mds.fit import LinearMap
from ..preimage import PREIMAGES
from ..relatives.embedding import DiffusionFunctions
from ..relatives.mixed import TableEncoding
from ..selectors import SELECTORS
from ..solvers import SOLVERS
from ..spectral.assigning import Centers, Pivoted, Rotated
from ..spectral.graph import GraphArpack, NeighborGraph
from ..spectral.problems import PointMap, ReducedMap
from ..stream.dictionary import GrowingDictionary
from ..stream.moments import FixedSpan, FourierStream, Stream
from ..stream.state import BatchRecord, State
from .archive import ModelFileError
from .bases import BASIS_PARTS, BASIS_TYPES
from .checks import matrix, number, resolved, rows, vector, whole
from .state_checks import STATE_CHECKS, forgetting
from .values import Part, Reader, conforms, named


def recipe(cls) -> Part:
    """A part that is its parameters."""
    return Part(cls, lambda thing: thing.get_params(deep=False), lambda reader, f: cls(**f))


def record(cls) -> Part:
    """A dataclass or a named tuple, its fields checked against their annotations and its sizes.

    Fields with a default may be missing: an earlier version may not have had them.
    """
    hints, parameters = get_type_hints(cls), signature(cls).parameters
    check = STATE_CHECKS.get(cls, lambda thing: thing)

    def build(reader, given):
        for name, parameter in parameters.items():
            optional = name not in given and parameter.default is not Parameter.empty
            if not optional and not (name in given and conforms(given[name], hints[name])):
                raise ModelFileError(f"{cls.__name__} lacks a valid {name!r}")
        return check(cls(**given))

    return Part(cls, named(*parameters), build)


def expansion(reader: Reader, given) -> KernelExpansion:
    """An expansion whose frame and metric fit its basis."""
    basis, F, M = given["basis"], matrix(given["frame"]), matrix(given["metric"])
    size, width = F.shape
    if not isinstance(basis, BASIS_TYPES) or size != basis.size or M.shape != (width, width):
        raise ModelFileError(f"a frame of shape {F.shape} does not fit its basis or its metric")
    return KernelExpansion(basis, F, M)


def point_map(reader: Reader, given) -> PointMap:
    """A map whose values and affinities fit its basis of all points."""
    basis, W = given["basis"], matrix(given["weights"])
    values, own = vector(given["values"]), vector(given["own"])
    fit = isinstance(basis, BASIS_TYPES) and W.shape == (basis.size, values.size)
    if not fit or own.size != basis.size or not basis.spans_data:
        raise ModelFileError(f"weights of shape {W.shape} do not fit their basis")
    return PointMap(basis, W, values, own)


def reduced_map(reader: Reader, given) -> ReducedMap:
    """A map whose weights fit its basis."""
    basis, W, total = given["basis"], matrix(given["weights"]), vector(given["total"])
    if not isinstance(basis, BASIS_TYPES) or not W.shape[0] == total.size == basis.size:
        raise ModelFileError(f"weights of shape {W.shape} do not fit their basis")
    return ReducedMap(basis, W, total)


def diffusion_functions(reader: Reader, given) -> DiffusionFunctions:
    """Functions whose weights fit their basis."""
    basis, W, total = given["basis"], matrix(given["weights"]), vector(given["total"])
    values, density = vector(given["values"]), given["density"]
    sums = [total] if density is None else [total, vector(density)]
    fit = isinstance(basis, BASIS_TYPES) and W.shape == (basis.size, values.size)
    if not fit or any(one.size != basis.size for one in sums):
        raise ModelFileError(f"weights of shape {W.shape} do not fit their basis")
    return DiffusionFunctions(basis, W, total, values, density, number(given["alpha"]))


def neighbor_graph(reader: Reader, given) -> NeighborGraph:
    """A square graph, with its rows where it has them."""
    A, radii, points = rows(given["matrix"]), vector(given["radii"]), given["points"]
    n = radii.size
    k, points = whole(given["n_neighbors"]), None if points is None else rows(points)
    if not is_sparse(A) or A.shape != (n, n) or k > n:
        raise ModelFileError("a graph of neighbors is no square sparse matrix")
    if points is not None and points.shape[0] != n:
        raise ModelFileError(f"a graph of {n} rows with {points.shape[0]} points")
    return NeighborGraph(A, radii, k, points)


def sums_fields(moments: TrigonometricMoments) -> dict:
    """Complex sums as pairs of floats."""
    parts = np.stack([moments.sums.real, moments.sums.imag])
    return {"count": moments.count, "parts": parts, "error": moments.error}


def trigonometric_moments(reader: Reader, given) -> TrigonometricMoments:
    """Sums of a grid with an odd number of frequencies in every direction."""
    parts = given["parts"]
    good = isinstance(parts, np.ndarray) and parts.dtype == float and parts.ndim > 1
    if not good or parts.shape[0] != 2 or not np.isfinite(parts).all():
        raise ModelFileError("trigonometric moments are not pairs of finite numbers")
    if not all(side % 2 for side in parts.shape[1:]):
        raise ModelFileError(f"trigonometric moments of shape {parts.shape}")
    count, error = number(given["count"]), number(given["error"])
    return TrigonometricMoments(count, parts[0] + 1j * parts[1], error)


def lifted_distance(reader: Reader, given) -> LiftedDistance:
    """An additive constant, on a distance or on a matrix that is not kept."""
    if given["kind"] not in ("lingoes", "cailliez"):
        raise ModelFileError(f"unknown correction {given['kind']!r:.60}")
    inner = given["distance"]
    if not isinstance(inner, EuclideanDistance | MetricDistance | None):
        raise ModelFileError("unknown distance")
    return LiftedDistance(inner, given["kind"], number(given["constant"]), number(given["same"]))


def lifted_fields(distance: LiftedDistance) -> dict:
    """The constant, and the distance where it is not a matrix."""
    inner = distance.distance
    keep = isinstance(inner, EuclideanDistance | MetricDistance)
    fields = named("kind", "constant", "same")(distance)
    return fields | {"distance": inner if keep else None}


def euclidean_distance(reader: Reader, given) -> EuclideanDistance:
    """An origin of finite numbers."""
    return EuclideanDistance(vector(given["origin"])[None])


def metric_distance(reader: Reader, given) -> MetricDistance:
    """A metric by its name, with the settings that came from the data; tried on two rows."""
    name, settings = given["metric"], given["params"]
    named = isinstance(name, str) and name != "precomputed"
    if not named or not isinstance(settings, dict):
        raise ModelFileError(f"{name!r:.60} is no metric, or lacks its settings")
    distance = MetricDistance(name, settings, None)
    sides = [np.shape(value)[-1] for value in settings.values() if np.ndim(value)]
    zeros = np.zeros((2, max(sides, default=2)))
    if np.shape(distance(zeros, zeros)) != (2, 2):
        raise ModelFileError(f"the metric {name!r} does not work with its settings")
    return distance


def growing_hebbian(reader: Reader, given) -> GrowingHebbian:
    """A stream that can go on; the Gram matrix of its points is made again."""
    settings = {name: given[name] for name in STREAM_SETTINGS}
    check_settings(settings)
    stream = GrowingHebbian(**settings)
    points, frame = rows(given["points"]), matrix(given["frame"])
    variances, losses = (vector(given[name]) for name in ("variances", "lost"))
    missed, q = vector(given["missed"]), frame.shape[1] - 1
    shapes = [variances.size, losses.size - 1, missed.size - 1]
    if shapes != [q, q, q] or frame.shape[0] != points.shape[0] or q != stream.carried:
        raise ModelFileError("the state of the stream does not fit its points")
    vars(stream).update(
        {name: given[name] for name in STREAM_STATE},
        variance=number(given["variance"]),
        count=whole(given["count"]),
    )
    return stream


def check_settings(settings: dict) -> None:
    """The settings of a Hebbian stream, as its estimator allows them."""
    resolved(settings["kernel"])
    for name in ("n_components", "block"):
        whole(settings[name])
    if settings["budget"] is not None:
        whole(settings["budget"])
    whole(settings["oversampling"] + 1)
    forgetting(settings["forgetting"])
    novelty = settings["novelty"]
    if novelty is not None and not 0 <= number(novelty) < 1:
        raise ModelFileError(f"a novelty of {novelty}")


STREAM_SETTINGS = (
    "kernel",
    "n_components",
    "forgetting",
    "budget",
    "oversampling",
    "block",
    "novelty",
    "center",
)
STREAM_STATE = ("points", "frame", "variances", "variance", "count", "lost", "missed")


RECIPES = (
    *KERNELS.values(),
    Callable,
    Hollow,
    *BASES.values(),
    *SELECTORS.values(),
    *SOLVERS.values(),
    Hebbian,
    GraphArpack,
    *PREIMAGES.values(),
    *GAINS.values(),
)
RECORDS = (
    BatchRecord,
    Centers,
    Certificate,
    DistanceMap,
    Estimate,
    FixedSpan,
    FourierStream,
    Frequencies,
    GrowingDictionary,
    History,
    LinearMap,
    Moments,
    Pivoted,
    Plan,
    Rotated,
    RowSample,
    Selection,
    Spectrum,
    State,
    Stream,
    TableEncoding,
    Workload,
)

_LIST = [
    *(recipe(cls) for cls in dict.fromkeys(RECIPES)),
    *(record(cls) for cls in RECORDS),
    Part(KernelExpansion, named("basis", "frame", "metric"), expansion),
    Part(PointMap, named("basis", "weights", "values", "own"), point_map),
    Part(ReducedMap, named("basis", "weights", "total"), reduced_map),
    Part(
        DiffusionFunctions,
        named("basis", "weights", "total", "values", "density", "alpha"),
        diffusion_functions,
    ),
    Part(NeighborGraph, named("matrix", "radii", "n_neighbors", "points"), neighbor_graph),
    *BASIS_PARTS,
    Part(TrigonometricMoments, sums_fields, trigonometric_moments),
    Part(EuclideanDistance, named("origin"), euclidean_distance),
    Part(MetricDistance, named("metric", "params"), metric_distance),
    Part(LiftedDistance, lifted_fields, lifted_distance),
    Part(GrowingHebbian, named(*STREAM_SETTINGS, *STREAM_STATE), growing_hebbian),
]
#: Every part by the name it has in a file.
PARTS: dict[str, Part] = {part.cls.__name__: part for part in _LIST}
