"""The estimators that have model files: for each, the attributes that are kept.

Kept is what transform, errors, pre-images, plots and reports need. Not kept is what only a fit
needs or what follows from the rest: `X_fit_` and `landmarks_` are the points of the basis,
`eigenvectors_` the frame times the roots of the eigenvalues; a precomputed training matrix is not
read again, `callback` and random generators belong to the program that ran the fit. A model that
learns from a stream keeps what it needs to go on.
"""

from numbers import Real
from types import NoneType
from typing import Any

import numpy as np

from ..estimators import (
    ClassicalMDS,
    DiffusionMap,
    HebbianKernelPCA,
    KernelCCA,
    KernelPCA,
    KernelPCASearch,
    NoveltyDetector,
    PatchDenoiser,
    SpectralClustering,
    SpectralEmbedding,
    StreamingKernelPCA,
    SupervisedKernelPCA,
)
from ..estimators._spectral import NEIGHBORS
from ..estimators.search import Selection
from ..fitting.certificate import Certificate
from ..fitting.choosing import Plan
from ..fitting.expansion import KernelExpansion
from ..hebbian import GrowingHebbian, History
from ..kernels import Kernel
from ..mds.coordinates import DistanceMap, Spectrum
from ..mds.distances import EuclideanDistance, LiftedDistance, MetricDistance
from ..mds.fit import LinearMap
from ..relatives.embedding import DiffusionFunctions
from ..relatives.mixed import TableEncoding
from ..spectral.assigning import Centers, Pivoted, Rotated
from ..spectral.graph import NeighborGraph
from ..spectral.problems import PointMap, ReducedMap
from ..stream.dictionary import GrowingDictionary
from ..stream.state import BatchRecord, State
from .archive import ModelFileError
from .bases import host
from .checks import count, matrix, number, vector, width
from .parts import PARTS
from .schema import Array, Model
from .values import Part


def restore_points(model) -> None:
    """The attributes that are views of the expansion: its points, and its eigenvectors.

    A = U L^{-1/2}, and U is centered as A is.
    """
    expansion = model.expansion_
    points = None if expansion.basis.points is None else host(expansion.basis.points)
    if not expansion.basis.spans_data:
        if points is not None:
            model.landmarks_ = points
        return
    U = expansion.frame[:, 1:] * np.sqrt(np.maximum(model.eigenvalues_, 0))
    model.eigenvectors_ = U.astype(model.eigenvalues_.dtype)
    if points is not None:
        model.X_fit_ = points


def check_stream(model) -> None:
    """The rows of the state have the columns of the model."""
    state, d = model._state, model.n_features_in_
    span, sample = state.stream.span, state.sample.rows
    points = span.points if isinstance(span, GrowingDictionary) else None
    wide = width(span.vectors) if points is None else points.shape[1]
    if wide != d or (sample is not None and sample.shape[1] != d):
        raise ModelFileError(f"the state of a stream has other columns than {d}")
    if repr(span.kernel) != repr(model.kernel_):
        raise ModelFileError("the state of a stream has another kernel than its model")
    check_history(vars(model).get("history_", []))
    restore_points(model)


def check_history(history) -> None:
    """What batches did: records of whole numbers and a share."""
    for batch in history:
        if not isinstance(batch, BatchRecord):
            raise ModelFileError("the history of a stream holds something that is no record")
        for value in (batch.rows, batch.n_samples_seen, batch.size, batch.joined, batch.left):
            count(value)
        number(batch.lost_share)


def check_detector(model) -> None:
    """The model within has the columns of the detector."""
    same_columns(model, model.model_)


def check_search(model) -> None:
    """The best model has the columns of the search."""
    same_columns(model, model.best_estimator_)


def same_columns(model, inner) -> None:
    """Raise ModelFileError unless a model within another has its columns."""
    if vars(inner).get("n_features_in_") != model.n_features_in_:
        raise ModelFileError(f"a model of other columns than {model.n_features_in_}")


def without_distances(model, state) -> dict[str, Any]:
    """Rows of Euclidean data are placed by a rotation, and matrices of distances are given."""
    if isinstance(model.map_, LinearMap):
        return without(state, "_distance", "_anchors")
    if model._is_precomputed():
        state = without(state, "_anchors")
    kept = isinstance(model._distance, EuclideanDistance | MetricDistance | LiftedDistance)
    return state if kept else without(state, "_distance")


def without(state, *names) -> dict[str, Any]:
    """A dict without some of its keys."""
    return {name: value for name, value in state.items() if name not in names}


def check_map(model) -> None:
    """The shapes of a map, and the points that distances are taken to."""
    map_, p = model.map_, model.embedding_.shape[1]
    if isinstance(map_, LinearMap):
        fit = vector(map_.mean).size == model.n_features_in_
        fit &= matrix(map_.rotation).shape == (model.n_features_in_, p)
    else:
        m, k = matrix(map_.weights).shape
        last = k if map_.rotation is None else matrix(map_.rotation).shape[1]
        fit = vector(map_.offset).size == k and last == p
        fit &= map_.rotation is None or map_.rotation.shape[0] == k
        fit &= model._is_precomputed() or model._anchors.shape == (m, model.n_features_in_)
    if vars(model).get("_dtype", "numeric") not in ("numeric", np.float64):
        raise ModelFileError(f"rows of type {model._dtype!r:.60}")
    if not fit:
        raise ModelFileError("the map of new points does not fit the embedding")


def restore_clusters(model) -> None:
    """The map, and an assignment of labels that fits it."""
    restore_map(model)
    assignment, k = model.assignment_, model.map_.weights.shape[1]
    if isinstance(assignment, Centers):
        fit = matrix(assignment.centers).shape[1] == k and len(assignment.centers) > 0
    else:
        fit = matrix(assignment.rotation).shape == (k, k)
    if isinstance(assignment, Rotated):
        fit &= vector(assignment.scale).size == k
    if not fit:
        raise ModelFileError("the assignment of labels does not fit the map")


def restore_map(model) -> None:
    """The points of the basis, where it is a few of the rows.

    There is a graph of neighbors where there is to be one, of as many rows as the basis has.
    """
    basis = model.map_.basis
    if not basis.spans_data and basis.points is not None:
        model.landmarks_ = host(basis.points)
    graph = vars(model).get("graph_")
    if (graph is not None) != (model.affinity in NEIGHBORS):
        raise ModelFileError("a graph of neighbors where there should be none, or none")
    if graph is not None and graph.radii.size != basis.size:
        raise ModelFileError("a graph of neighbors of another number of rows")


def restore_embedding(model) -> None:
    """The map, and coordinates that fit it."""
    restore_map(model)
    if model.map_.weights.shape[1] != model.embedding_.shape[1]:
        raise ModelFileError("the map of new rows does not fit the embedding")


def check_views(model) -> None:
    """Both views have as many directions, and each the columns that it should."""
    other = model.expansion_y_
    fit = width(other.basis) == model.n_features_y_
    if not fit or other.n_components != model.expansion_.n_components:
        raise ModelFileError("the two views of the model do not fit each other")


COLUMNS = {"n_features_in_": int}
NAMES = {"feature_names_in_": Array.of("d")}
EXPANSION = {
    **COLUMNS,
    "kernel_": Kernel,
    "gamma_": Real,
    "expansion_": KernelExpansion,
    "certificate_": Certificate,
    "eigenvalues_": Array.of("r"),
    "explained_variance_": Array.of("r"),
    "explained_variance_ratio_": Array.of("r"),
}
SAMPLE = {
    **NAMES,
    "plan_": Plan,
    "X_sample_": Array.of("s", "d"),
    "dual_coef_": Array.of("t", "d"),
    "X_transformed_fit_": Array.of("t", "r"),
    "_dtype": np.dtype,
    "_encoding": TableEncoding,
}
TARGET = {
    "target_": (str, Kernel),
    "hsic_": Real,
    "dependence_ratio_": Array.of("r"),
}
VIEWS = {
    **COLUMNS,
    "n_features_y_": int,
    "kernel_": Kernel,
    "kernel_y_": Kernel,
    "expansion_": KernelExpansion,
    "expansion_y_": KernelExpansion,
    "correlations_": Array.of("r"),
    "regularized_correlations_": Array.of("r"),
}
PASSES = {
    "history_": History,
    "n_samples_seen_": int,
    "budget_loss_": Array.of("1 + r"),
    "novelty_loss_": Array.of("1 + r"),
    "_variance": Real,
    "_stream": (GrowingHebbian, NoneType),
}
STREAM = {
    "history_": list,
    "n_samples_seen_": int,
    "lost_share_": Real,
    "_variance": Real,
    "_state": State,
}
CLUSTERS = {
    **COLUMNS,
    "kernel_": Kernel,
    "map_": (PointMap, ReducedMap),
    "eigenvalues_": Array.of("k"),
    "labels_": Array.of("n"),
    "assignment_": (Centers, Rotated, Pivoted),
}
GRAPH = {"graph_": NeighborGraph}
COORDINATES = {
    **COLUMNS,
    "kernel_": Kernel,
    "map_": (PointMap, ReducedMap, DiffusionFunctions),
    "eigenvalues_": Array.of("k"),
    "embedding_": Array.of("n", "k"),
}
SCALING = {
    **COLUMNS,
    "map_": (LinearMap, DistanceMap),
    "embedding_": Array.of("n", "p"),
    "eigenvalues_": Array.of("p"),
    "spectrum_": Spectrum,
    "goodness_of_fit_": tuple,
    "least_eigenvalue_": Real,
    "negative_share_": Real,
    "correction_constant_": Real,
    "strain_": Real,
    "stress_": Real,
    "landmark_indices_": (np.ndarray, NoneType),
}
DISTANCES = {
    **NAMES,
    "_distance": (EuclideanDistance, MetricDistance, LiftedDistance),
    "_anchors": Array.of("a", "d"),
    "_dtype": (np.dtype, str),
    "_rectangular": bool,
}
DETECTOR = {**COLUMNS, "model_": KernelPCA, "kept_": Array.of("k"), "offset_": Real}
DENOISER = {
    "model_": (KernelPCA, NoneType),
    "noise_": Real,
    "n_channels_": (int, NoneType),
}
SEARCH = {
    **COLUMNS,
    "best_estimator_": KernelPCA,
    "best_params_": dict,
    "selection_": Selection,
}

_LIST = [
    Model(KernelPCA, EXPANSION, SAMPLE, finish=restore_points),
    Model(SupervisedKernelPCA, EXPANSION | TARGET, SAMPLE, finish=restore_points),
    Model(KernelCCA, VIEWS, NAMES | {"_dtype": np.dtype}, finish=check_views),
    Model(HebbianKernelPCA, EXPANSION, SAMPLE | PASSES, finish=restore_points),
    Model(StreamingKernelPCA, EXPANSION, SAMPLE | STREAM, finish=check_stream),
    Model(NoveltyDetector, DETECTOR, NAMES | {"_encoding": TableEncoding}, finish=check_detector),
    Model(PatchDenoiser, DENOISER, {}),
    Model(KernelPCASearch, SEARCH, NAMES, finish=check_search),
    Model(SpectralClustering, CLUSTERS, SAMPLE | GRAPH, finish=restore_clusters),
    Model(SpectralEmbedding, COORDINATES, SAMPLE | GRAPH, finish=restore_embedding),
    Model(DiffusionMap, COORDINATES, SAMPLE | GRAPH, finish=restore_embedding),
    Model(ClassicalMDS, SCALING, DISTANCES, without_distances, check_map),
]
MODELS: dict[str, Model] = {model.cls.__name__: model for model in _LIST}
#: All that may stand in a file.
KNOWN: dict[str, Part] = PARTS | {name: model.part() for name, model in MODELS.items()}
