"""The estimators that have model files: for each, the attributes that are kept, and their kinds.

Kept is what transform, errors, pre-images, plots and reports need. Not kept is what only a fit
needs or what follows from the rest: `X_fit_` and `landmarks_` are the points of the basis,
`eigenvectors_` the frame times the roots of the eigenvalues; a precomputed training matrix is not
read again, `callback` and random generators belong to the program that ran the fit. A model that
learns from a stream keeps what it needs to go on.
"""

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Annotated, Any

import numpy as np

from .. import estimators
from ..compute import to_numpy
from ..estimators._spectral import NEIGHBORS
from ..estimators.search import Selection
from ..exceptions import ModelFileError
from ..fitting.certificate import Certificate
from ..fitting.choosing import Plan
from ..fitting.expansion import KernelExpansion
from ..hebbian import GrowingHebbian, History
from ..kernels import Kernel
from ..mds.distances import EuclideanDistance, LiftedDistance, MetricDistance
from ..mds.scaling import DistanceMap, LinearMap, Spectrum
from ..relatives.embedding import DiffusionFunctions
from ..relatives.mixed import TableEncoding
from ..spectral.assigning import Centers, Pivoted, Rotated
from ..spectral.graph import NeighborGraph
from ..spectral.problems import PointMap, ReducedMap
from ..stream.state import BatchRecord, State
from .kinds import COUNT, FINITE, WHOLE, Instance
from .parts import columns_of, is_float

# Entries of unit vectors at most, with a margin for rows of small weights.
LARGEST_ENTRY = 1e9
# Parameters that only the running program can have.
OF_PROGRAM = ("callback", "checkpoint")


@dataclass(frozen=True)
class Model:
    """What is kept of an estimator.

    Attributes
    ----------
    cls : type
    required, optional : dict of str to kind
        Its fitted attributes, and what they must be.
    kept : callable
        ``kept(model, name)`` says whether an attribute goes into the file.
    finish : callable
        ``finish(model)`` sets what follows from the rest, and raises ModelFileError for what does
        not fit together.
    """

    cls: type
    required: dict[str, Any]
    optional: dict[str, Any]
    kept: Callable[[Any, str], bool] = lambda model, name: True
    finish: Callable[[Any], None] = lambda model: None
    tag = None

    def read(self, model) -> dict[str, Any]:
        """Parameters, and attributes of a fitted model."""
        params, facts = model.get_params(deep=False), vars(model)
        params |= dict.fromkeys(dropped_params(model))
        if params.get("device") is not None:
            params["device"] = str(params["device"])
        names = [name for name in self.required | self.optional if name in facts]
        state = {name: facts[name] for name in names if self.kept(model, name)}
        return {"params": params, "state": state}


def dropped_params(model) -> list[str]:
    """Names of parameters that a file does not keep: callbacks, generators, checkpoints."""
    params = model.get_params(deep=False)
    generator = isinstance(params.get("random_state"), np.random.RandomState)
    names = [name for name in OF_PROGRAM if params.get(name) is not None]
    return ["random_state", *names] if generator else names


def restore_points(model) -> None:
    """The attributes that are views of the expansion: its points, and its eigenvectors.

    A = U L^{-1/2}, and U is centered as A is.
    """
    expansion = model.expansion_
    points = expansion.basis.points
    if expansion.basis.spans_data:
        with np.errstate(over="ignore"):  # of a forged file
            U = expansion.frame[:, 1:] * np.sqrt(np.maximum(model.eigenvalues_, 0))
        model.eigenvectors_ = U.astype(model.eigenvalues_.dtype)
    elif points is None and "X_sample_" not in vars(model):
        raise ModelFileError("a basis without points, and no sample of the rows")
    if points is not None:
        name = "X_fit_" if expansion.basis.spans_data else "landmarks_"
        setattr(model, name, to_numpy(points))
    known = vars(model).get("X_fit_" if expansion.basis.spans_data else "X_sample_")
    weights = vars(model).get("_weights")
    fit = known is None or weights is None or weights.shape == known.shape[:1]
    if not fit or (weights is not None and not (weights >= 0).all()):
        raise ModelFileError("weights of other rows than those of the model")


def restore_hebbian(model) -> None:
    """`restore_points`, of directions that learning can go on from."""
    restore_points(model)
    weights = vars(model).get("eigenvectors_", np.zeros(0)), model.expansion_.frame[:, 0]
    if not max(np.abs(part).max(initial=0.0) for part in weights) < LARGEST_ENTRY:
        raise ModelFileError("a frame of directions that are far too long")


def check_patches(model) -> None:
    """Patches have as many entries as the model within has columns."""
    entries = model.patch_size**2 * (model.n_channels_ or 1)
    if model.model_ is not None and model.model_.n_features_in_ != entries:
        raise ModelFileError(f"a model of {model.model_.n_features_in_} columns for {entries}")


def restore_stream(model) -> None:
    """`restore_points`, and the kernel of the stream, which is that of the model."""
    if repr(model._state.stream.span.kernel) != repr(model.kernel_):
        raise ModelFileError("the state of a stream has another kernel than its model")
    restore_points(model)


def restore_map(model) -> None:
    """The points of the basis, where it is a few of the rows.

    There is a graph of neighbors where there is to be one.
    """
    basis, graph = model.map_.basis, vars(model).get("graph_")
    if not basis.spans_data and basis.points is not None:
        model.landmarks_ = to_numpy(basis.points)
    if (graph is not None) != (model.affinity in NEIGHBORS):
        raise ModelFileError("a graph of neighbors where there should be none, or none")
    if graph is not None:
        basis.G = graph.matrix
    rows = None if graph is None else graph.points
    if (columns_of(basis) if rows is None else rows.shape[1]) != model.n_features_in_:
        raise ModelFileError(f"a map of other columns than {model.n_features_in_}")


def keeps_distances(model, name: str) -> bool:
    """Rows of Euclidean data are placed by a rotation, and matrices of distances are given."""
    if name not in ("_anchors", "_distance"):
        return True
    if isinstance(model.map_, LinearMap):
        return False
    known = isinstance(model._distance, EuclideanDistance | MetricDistance | LiftedDistance)
    return known if name == "_distance" else not model._is_precomputed()


def check_anchors(model) -> None:
    """Rows that are placed by their distances need the points of these."""
    placed = isinstance(model.map_, DistanceMap) and not model._is_precomputed()
    if placed and not {"_anchors", "_distance"} <= vars(model).keys():
        raise ModelFileError("a map of distances without its points")


COLUMNS = {"n_features_in_": Instance(int, d=lambda d: d)}
NAMES = {"feature_names_in_": Annotated[Any, "d text", Instance(np.ndarray, names=tuple)]}
# The fit of an estimator within another, which has its columns.
INNER = Instance(estimators.KernelPCA, d=lambda model: model.n_features_in_)
EXPANSION = {
    **COLUMNS,
    "kernel_": Kernel,
    "gamma_": FINITE,
    "expansion_": Instance(
        KernelExpansion, d=lambda found: columns_of(found.basis), r=lambda f: f.n_components
    ),
    "certificate_": Instance(Certificate, r=lambda found: found.eigenvalue_lower.size),
    "eigenvalues_": "r",
    "explained_variance_": "r",
    "explained_variance_ratio_": "r",
}
ENCODING = {"_encoding": Instance(TableEncoding, d=lambda e: len(e.names), names=lambda e: e.names)}
SAMPLE = {
    **NAMES,
    **ENCODING,
    "plan_": Plan,
    "X_sample_": "s d sparse",
    "_weights": "w or None",
    "dual_coef_": "t d",
    "X_transformed_fit_": "t r",
    "_dtype": is_float,
}
TARGET = {"target_": (str, Kernel), "hsic_": FINITE, "dependence_ratio_": "r"}
VIEWS = {
    **COLUMNS,
    "n_features_y_": Instance(int, e=lambda e: e),
    "kernel_": Kernel,
    "kernel_y_": Kernel,
    "expansion_": EXPANSION["expansion_"],
    "expansion_y_": Instance(
        KernelExpansion, e=lambda found: columns_of(found.basis), r=lambda f: f.n_components
    ),
    "correlations_": "r",
    "regularized_correlations_": "r",
}
SEEN = {"n_samples_seen_": COUNT}
PASSES = {
    "history_": History,
    "_variance": FINITE,
    "budget_loss_": "1+r",
    "novelty_loss_": "1+r",
    "_stream": (GrowingHebbian, None),
}
STREAM = {
    **SEEN,
    "X_sample_": SAMPLE["X_sample_"],
    "history_": list[BatchRecord],
    "_variance": FINITE,
    "lost_share_": FINITE,
    "_state": Instance(State, d=lambda state: columns_of(state.stream.span)),
}
MAP = {
    **COLUMNS,
    "kernel_": Kernel,
    "map_": Instance(
        (PointMap, ReducedMap, DiffusionFunctions),
        m=lambda found: found.basis.size,
        k=lambda found: found.weights.shape[1],
    ),
    "eigenvalues_": "k",
}
CLUSTERS = {
    "labels_": "n int",
    "assignment_": (
        Instance(Centers, k=lambda found: found.centers.shape[1]),
        Instance((Rotated, Pivoted), k=lambda found: len(found.rotation)),
    ),
}
GRAPH = {"graph_": Instance(NeighborGraph, m=lambda graph: graph.radii.size)}
SCALING = {
    **COLUMNS,
    "map_": (
        Instance(LinearMap, d=lambda m: m.mean.size, p=lambda m: m.rotation.shape[1]),
        Instance(
            DistanceMap,
            a=lambda m: len(m.weights),
            p=lambda m: (m.weights if m.rotation is None else m.rotation).shape[1],
        ),
    ),
    "embedding_": "n p",
    "eigenvalues_": "p",
    "spectrum_": Spectrum,
    "goodness_of_fit_": tuple[float, float],
    "least_eigenvalue_": Real,
    "negative_share_": Real,
    "correction_constant_": Real,
    "strain_": Real,
    "stress_": Real,
    "landmark_indices_": "l int or None",
    "_dtype": lambda dtype: dtype in ("numeric", np.float64),
}
DISTANCES = {
    **NAMES,
    "_rectangular": bool,
    "_distance": (EuclideanDistance, MetricDistance, LiftedDistance),
    "_anchors": "a d real sparse",
}
DETECTOR = {**COLUMNS, "model_": INNER, "kept_": "k int", "offset_": FINITE}
DENOISER = {"model_": (estimators.KernelPCA, None), "noise_": FINITE, "n_channels_": (WHOLE, None)}
SEARCH = {**COLUMNS, "best_estimator_": INNER, "best_params_": dict, "selection_": Selection}
FEATURES = {name: EXPANSION[name] for name in ("n_features_in_", "kernel_", "expansion_")}
FEATURES |= {"component_indices_": "r int or None"}
EMBEDDING = MAP | {"embedding_": "n k"}
# Earlier files have none.
STATED = {"certificate_": Instance(Certificate, k=lambda found: found.eigenvalue_lower.size)}

SCALED = {"certificate_": Instance(Certificate, p=lambda found: found.eigenvalue_lower.size)}
JOINT = {"certificate_": EXPANSION["certificate_"]}

_LIST = [
    Model(estimators.KernelPCA, EXPANSION, SAMPLE, finish=restore_points),
    Model(estimators.SupervisedKernelPCA, EXPANSION | TARGET, SAMPLE, finish=restore_points),
    Model(estimators.KernelCCA, VIEWS, NAMES | JOINT | {"_dtype": is_float}),
    Model(estimators.HebbianKernelPCA, EXPANSION | SEEN, SAMPLE | PASSES, finish=restore_hebbian),
    Model(estimators.StreamingKernelPCA, EXPANSION | STREAM, SAMPLE, finish=restore_stream),
    Model(estimators.NoveltyDetector, DETECTOR, NAMES | ENCODING),
    Model(estimators.Nystroem, FEATURES, NAMES | {"_dtype": is_float}),
    Model(estimators.PatchDenoiser, DENOISER, {}, finish=check_patches),
    Model(estimators.KernelPCASearch, SEARCH, NAMES),
    Model(
        estimators.SpectralClustering, MAP | CLUSTERS, SAMPLE | GRAPH | STATED, finish=restore_map
    ),
    Model(estimators.SpectralEmbedding, EMBEDDING, SAMPLE | GRAPH | STATED, finish=restore_map),
    Model(estimators.DiffusionMap, EMBEDDING, SAMPLE | GRAPH | STATED, finish=restore_map),
    Model(estimators.ClassicalMDS, SCALING, DISTANCES | SCALED, keeps_distances, check_anchors),
]
MODELS: dict[str, Model] = {model.cls.__name__: model for model in _LIST}
