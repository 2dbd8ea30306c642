"""Values as JSON and tensors, and back: numbers, texts, arrays, and the parts of a closed list.

Whatever is not JSON itself is an object with the key ``"@"``: ``{"@": "array", "tensor": name}``,
``{"@": "RBF", "gamma": 0.1}``. Names are looked up in the list of parts, never imported.
"""

from inspect import signature
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator

from ..compute import is_sparse, make_engine, to_numpy
from ..compute.arrays import BlocksOnDemand, csr_from_parts, is_foreign
from .archive import DTYPES, Archive, ModelFileError, Pieces, UnavailableDevice
from .kinds import check_fields
from .models import MODELS, Model
from .parts import PARTS, CsrPieces, Part

TAG = "@"
CSR_PARTS = ("data", "indices", "indptr")


class Writer:
    """Turns values into JSON, and collects the arrays among them; each array once."""

    def __init__(self):
        self.tensors: dict[str, Any] = {}
        self._seen: dict[int, tuple[Any, dict]] = {}

    def encode(self, value, name: str):
        """The value as JSON; `name` says where it is, for tensors and errors."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return value if np.isfinite(value) else {TAG: "float", "value": str(value)}
        if isinstance(value, list):
            return [self.encode(item, f"{name}.{i}") for i, item in enumerate(value)]
        if type(value) is tuple:
            return {TAG: "tuple", "items": self.encode(list(value), name)}
        if isinstance(value, dict):
            return {TAG: "dict", "items": self._encode_items(value, name)}
        if isinstance(value, np.dtype) or (
            isinstance(value, type) and issubclass(value, np.generic)
        ):
            return {TAG: "dtype", "name": np.dtype(value).name}
        array = is_sparse(value) or isinstance(value, np.ndarray | BlocksOnDemand | Pieces)
        if array or isinstance(value, CsrPieces) or is_foreign(value):
            if id(value) not in self._seen:
                self._seen[id(value)] = (value, self._encode_array(value, name))
            return self._seen[id(value)][1]
        kind = type(value).__name__
        part = PARTS.get(kind) or MODELS.get(kind)
        if part is not None and part.cls is type(value):
            return {TAG: part.tag or kind} | self._encode_items(part.read(value), name)
        if callable(value) and not isinstance(value, BaseEstimator):
            raise ModelFileError(
                f"{name} is a function, and a model file holds no code. Use a kernel or metric "
                "of mercer, or 'precomputed'; joblib.dump(model, path) keeps a model with its code."
            )
        raise ModelFileError(
            f"{name} is a {kind}, which is none of mercer's own classes, and a model file holds no "
            "code. joblib.dump(model, path) keeps a model with its code."
        )

    def _encode_items(self, items: dict, name: str) -> dict:
        if not all(isinstance(key, str) for key in items):
            raise ModelFileError(f"{name} has keys that are no strings, which no file can hold.")
        return {key: self.encode(value, f"{name}.{key}") for key, value in items.items()}

    def _encode_array(self, value, name: str) -> dict:
        if is_sparse(value) or isinstance(value, CsrPieces):
            A: Any = csr_matrix(value) if is_sparse(value) else value
            parts = zip(CSR_PARTS, (A.data, A.indices, A.indptr), strict=True)
            self.tensors |= {f"{name}.{part}": array for part, array in parts}
            columns = A.columns if isinstance(A, CsrPieces) else A.shape[1]
            return {TAG: "csr", "tensor": name, "columns": columns}
        A = value if isinstance(value, Pieces) else np.asarray(to_numpy(value))
        if A.dtype.kind in "OU" and A.ndim == 1 and all(isinstance(item, str) for item in A):
            return {TAG: "texts", "items": [str(item) for item in A]}
        if A.dtype.name not in DTYPES:
            raise ModelFileError(
                f"{name} is an array of type {A.dtype}, which a model file does not hold. Use "
                "float32, float64 or integers."
            )
        self.tensors[name] = A
        return {TAG: "array", "tensor": name}


class Reader:
    """Turns JSON back into values; what does not fit raises ModelFileError.

    Parameters
    ----------
    archive : Archive
    device : str or None
        Instead of the device that the model was fitted with; "saved" for that.

    Attributes
    ----------
    used : set of str
        Names of the tensors that were read.
    """

    def __init__(self, archive: Archive, device="saved"):
        self.archive, self.device = archive, device
        self.used: set[str] = set()
        self._engine: Any = None  # of the model that is being made, for its basis
        self._arrays: dict[str, Any] = {}

    def decode(self, item):
        """The value that was written as `item`."""
        if isinstance(item, list):
            return [self.decode(one) for one in item]
        if isinstance(item, int) and abs(item) >= 2**63:
            raise ModelFileError(f"the header has a number of {len(str(item))} digits")
        if not isinstance(item, dict):
            return item
        kind = item.get(TAG)
        fields = {name: value for name, value in item.items() if name != TAG}
        if kind in MODELS:
            return self._make_model(MODELS[kind], fields)
        if kind in PARTS and PARTS[kind].tag is None:
            return self._make_part(PARTS[kind], self._decode_items(fields))
        if kind == "float":
            return float(item["value"])
        if kind == "dict":
            return self._decode_items(item["items"])
        if kind == "dtype" and item["name"] in DTYPES:
            return np.dtype(item["name"])
        if kind in ("tuple", "texts") and isinstance(item["items"], list):
            items = self.decode(item["items"])
            if kind == "tuple":
                return tuple(items)
            if all(isinstance(text, str) for text in items):
                return np.array(items, dtype=object)
        if kind in ("array", "csr"):
            return self._array(item["tensor"], item.get("columns"))
        raise ModelFileError(f"the header names {item!r:.60}, which mercer does not know")

    def _decode_items(self, items) -> dict[str, Any]:
        return {name: self.decode(value) for name, value in items.items()}

    def _array(self, name: str, columns: int | None):
        """An array, or a CSR matrix of so many columns; what was one before is one again."""
        if name not in self._arrays:
            if columns is None:
                self._arrays[name] = self._tensor(name)
            else:
                data, indices, indptr = (self._tensor(f"{name}.{part}") for part in CSR_PARTS)
                self._arrays[name] = csr_from_parts(data, indices, indptr, columns)
        return self._arrays[name]

    def _tensor(self, name: str) -> np.ndarray:
        if name not in self.archive.layout:
            raise ModelFileError(f"the tensor {name!r:.60} is missing")
        self.used.add(name)
        return self.archive.tensor(name)

    def _make_part(self, part: Part, given: dict):
        name = part.cls.__name__
        if part.kinds is not None:
            check_fields(name, given, part.kinds, part.optional)
            if "engine" in signature(part.build).parameters:
                given["engine"] = self._engine
        thing = part.build(**given)
        if not part.check(thing):
            raise ModelFileError(f"the fields of {name} do not fit each other")
        return thing

    def _make_model(self, kind: Model, given: dict):
        params = self.decode(given["params"])
        if "device" in params and self.device != "saved":
            params["device"] = self.device
        model = kind.cls(**params)
        model._validate_params()
        outer, self._engine = self._engine, engine_of(model)
        state = self.decode(given["state"])
        self._engine = outer
        if state:  # else it is a parameter of another estimator, and not fitted
            kinds = kind.required | kind.optional
            check_fields(kind.cls.__name__, state, kinds, kind.optional.keys())
            vars(model).update(state)
            kind.finish(model)
        return model


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
