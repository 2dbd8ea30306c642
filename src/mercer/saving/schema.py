"""An estimator in a model file: its parameters, its fitted attributes and what each must be.

What is read is checked before it is used: every attribute must be of its type, arrays finite and
their sides of equal lengths where they mean the same thing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..compute import is_sparse
from ..compute.engine import make_engine
from ..fitting.certificate import Certificate
from ..fitting.expansion import KernelExpansion
from ..kernels import Kernel
from ..relatives.embedding import DiffusionFunctions
from ..relatives.mixed import TableEncoding
from ..spectral.graph import NeighborGraph
from ..spectral.problems import PointMap, ReducedMap
from .archive import ModelFileError, UnavailableDevice
from .checks import resolved, width
from .values import Part, Reader

# Sides of arrays that hold rows, of which there is one at least.
ROWS = ("n", "s", "t", "a")


@dataclass(frozen=True)
class Array:
    """An array whose sides have names: equal names mean equal lengths."""

    sides: tuple[str, ...]

    @classmethod
    def of(cls, *sides: str) -> "Array":
        """``Array.of("r", "d")``."""
        return cls(sides)


@dataclass(frozen=True)
class Model:
    """What is kept of an estimator.

    Attributes
    ----------
    cls : type
    required, optional : dict of str to type, tuple of types or Array
        Its fitted attributes, and what they must be.
    adjust : callable
        ``adjust(model, state)`` gives the attributes to keep where not all of them are.
    finish : callable
        ``finish(model)`` sets what follows from the rest.
    """

    cls: type
    required: dict[str, Any]
    optional: dict[str, Any]
    adjust: Callable[[Any, dict], dict] = lambda model, state: state
    finish: Callable[[Any], None] = lambda model: None

    @property
    def attributes(self) -> dict[str, Any]:
        """All of them."""
        return self.required | self.optional

    def part(self) -> Part:
        """The estimator as a part of a file."""
        return Part(self.cls, self._fields, self._build, raw=True)

    def _fields(self, model):
        facts = vars(model)
        state = {name: facts[name] for name in self.attributes if name in facts}
        state = self.adjust(model, state) if state else {}
        return {"params": kept_params(model), "state": state}

    def _build(self, reader: Reader, given):
        params = reader.decode(given["params"])
        if "device" in params and reader.device != "saved":
            params["device"] = reader.device
        model = self.cls(**params)
        model._validate_params()
        outer, reader.engine = reader.engine, engine_of(model)
        state = reader.decode(given["state"])
        reader.engine = outer
        if state:  # else it is a parameter of another estimator, and not fitted
            self._check(state)
            vars(model).update(state)
            self.finish(model)
        return model

    def _check(self, state):
        missing, unknown = self.required.keys() - state, state.keys() - self.attributes
        if missing or unknown:
            raise ModelFileError(f"{self.cls.__name__}: wrong attributes {missing | unknown}")
        sizes = known_sizes(state)
        for name, value in state.items():
            if not fits(value, self.attributes[name], sizes):
                raise ModelFileError(f"{self.cls.__name__}.{name} is not what it should be")


def kept_params(model: BaseEstimator) -> dict[str, Any]:
    """The parameters, without those that only the running program can have."""
    params = model.get_params(deep=False) | dict.fromkeys(dropped_params(model))
    device = params.get("device")
    return params if device is None else params | {"device": str(device)}


def dropped_params(model: BaseEstimator) -> list[str]:
    """Names of parameters that a file does not keep: callbacks, generators, checkpoints."""
    params = model.get_params(deep=False)
    generator = isinstance(params.get("random_state"), np.random.RandomState)
    names = ["random_state"] if generator else []
    return names + [name for name in ("callback", "checkpoint") if params.get(name) is not None]


def engine_of(model):
    """The engine that an estimator's own parameters ask for."""
    params = model.get_params(deep=False)
    device = params.get("device")
    try:
        return make_engine(memory=params.get("memory"), device=device, threads=params.get("n_jobs"))
    except (ImportError, ValueError, RuntimeError) as error:
        if device is None:
            raise
        raise UnavailableDevice(
            f"The model computes on device={device!r:.60}, which cannot be used here: {error} "
            "Open it with mercer.load(path, device='cpu')."
        ) from error


def known_sizes(state) -> dict[str, int]:
    """Columns d, components r and basis size m, from the attributes that settle them."""
    sizes = {"d": state["n_features_in_"]} if "n_features_in_" in state else {}
    check_encoding(state, sizes.get("d"))
    holder = state.get("expansion_", state.get("map_"))
    if isinstance(holder, KernelExpansion | PointMap | ReducedMap | DiffusionFunctions):
        check_columns(state, holder.basis, sizes.get("d"))
        sizes["m"] = holder.basis.size
    if isinstance(holder, KernelExpansion):
        check_intervals(state, holder.n_components)
        sizes["r"] = holder.n_components
    return sizes


def check_encoding(state, d: int | None) -> None:
    """The encoding of a data frame is that of the columns of the model."""
    encoding = state.get("_encoding")
    if not isinstance(encoding, TableEncoding):
        return
    if len(encoding.names) != d:
        raise ModelFileError(f"an encoding of {len(encoding.names)} columns for {d}")
    names = np.ravel(state.get("feature_names_in_", ())).tolist()
    if names and list(encoding.names) != names:
        raise ModelFileError("an encoding of columns of other names")


def check_columns(state, basis, d: int | None) -> None:
    """The basis, or the graph in its place, has the columns of the model."""
    graph = state.get("graph_")
    rows = graph.points if isinstance(graph, NeighborGraph) else None
    wide = width(basis) if rows is None else rows.shape[1]
    if wide != d:
        raise ModelFileError(f"a basis of {wide} columns for {d}")


def check_intervals(state, r: int) -> None:
    """The certificate has an interval for each component."""
    certificate = state.get("certificate_")
    if isinstance(certificate, Certificate):
        for bound in (certificate.eigenvalue_lower, certificate.eigenvalue_upper):
            if bound.shape != (r,):
                raise ModelFileError("a certificate of another number of components")


def fits(value, kind, sizes: dict[str, int]) -> bool:
    """Whether a value is what it should be; sides met for the first time are remembered."""
    if not isinstance(kind, Array):
        if kind is Kernel:
            return resolved(value) is value
        whole = kind is int or (isinstance(kind, tuple) and int in kind)
        return isinstance(value, kind) and not (whole and isinstance(value, bool))
    if not is_sparse(value) and not isinstance(value, np.ndarray):
        return False
    if value.dtype.kind == "f" and not np.isfinite(value.data if is_sparse(value) else value).all():
        return False
    if len(kind.sides) != value.ndim:
        return False
    pairs = list(zip(kind.sides, value.shape, strict=True))
    if any(size == 0 for side, size in pairs if side in ROWS):
        return False
    return all(sizes.setdefault(side, size) == size for side, size in pairs)
