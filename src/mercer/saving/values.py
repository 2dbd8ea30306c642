"""Values as JSON and tensors, and back: numbers, texts, arrays, and the parts of a closed list.

Whatever is not JSON itself is an object with the key ``"@"``: ``{"@": "array", "tensor": name}``,
``{"@": "RBF", "gamma": 0.1}``. Names are looked up in the list of parts, never imported.
"""

import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Union, get_args, get_origin

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator

from ..compute import is_sparse, to_numpy
from ..compute.arrays import csr_from_parts, is_foreign
from .archive import DTYPES, ModelFileError, Pieces

TAG = "@"


@dataclass(frozen=True)
class Part:
    """How objects of one class are written and made again.

    Attributes
    ----------
    cls : type
    fields : callable
        ``fields(thing)`` gives the values that make it up, by name.
    build : callable
        ``build(reader, fields)`` makes the thing from them.
    raw : bool
        Whether `build` gets the fields as they are in the file, to decode them in its own order.
    """

    cls: type
    fields: Callable[[Any], dict[str, Any]]
    build: Callable[["Reader", dict[str, Any]], Any]
    raw: bool = False
    #: What it is called in a file; None for the name of its class.
    tag: str | None = None


def named(*names: str) -> Callable[[Any], dict[str, Any]]:
    """The attributes of a thing by these names."""
    return lambda thing: {name: getattr(thing, name) for name in names}


@dataclass(frozen=True)
class CsrPieces:
    """A CSR matrix that is made piece by piece while it is written.

    Attributes
    ----------
    data, indices : Pieces
    indptr : array of int
    columns : int
    """

    data: Pieces
    indices: Pieces
    indptr: np.ndarray
    columns: int


class Writer:
    """Turns values into JSON, and collects the arrays among them; each array once."""

    def __init__(self, parts: dict[str, Part]):
        self.parts = parts
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
        if isinstance(value, np.dtype) or _is_scalar_type(value):
            return {TAG: "dtype", "name": np.dtype(value).name}
        if is_sparse(value) or isinstance(value, np.ndarray) or is_foreign(value):
            return self._encode_once(value, name)
        if isinstance(value, Pieces):
            self.tensors[name] = value
            return {TAG: "array", "tensor": name}
        if isinstance(value, CsrPieces):
            return self._encode_csr(value, name, value.columns)
        return self._encode_part(value, name)

    def _encode_items(self, items: dict, name):
        if not all(isinstance(key, str) for key in items):
            raise ModelFileError(f"{name} has keys that are no strings, which no file can hold.")
        return {key: self.encode(value, f"{name}.{key}") for key, value in items.items()}

    def _encode_once(self, value, name):
        """An array, or a reference to where it already is: X_fit_ and the basis share theirs."""
        if id(value) not in self._seen:
            encode = self._encode_sparse if is_sparse(value) else self._encode_array
            self._seen[id(value)] = (value, encode(value, name))
        return self._seen[id(value)][1]

    def _encode_array(self, value, name):
        A = np.asarray(to_numpy(value))
        if A.dtype.kind in "OU" and all(isinstance(item, str) for item in A.flat) and A.ndim == 1:
            return {TAG: "texts", "items": [str(item) for item in A]}
        if A.dtype.name not in DTYPES:
            raise ModelFileError(
                f"{name} is an array of type {A.dtype}, which a model file does not hold. Use "
                "float32, float64 or integers."
            )
        self.tensors[name] = A
        return {TAG: "array", "tensor": name}

    def _encode_sparse(self, value, name):
        A = csr_matrix(value)
        return self._encode_csr(A, name, A.shape[1])

    def _encode_csr(self, A, name, columns: int):
        for part in ("data", "indices", "indptr"):
            self.tensors[f"{name}.{part}"] = getattr(A, part)
        return {TAG: "csr", "tensor": name, "columns": columns}

    def _encode_part(self, value, name):
        kind = type(value).__name__
        part = self.parts.get(kind)
        if part is not None and part.cls is type(value):
            return {TAG: part.tag or kind} | self._encode_items(part.fields(value), name)
        if callable(value) and not isinstance(value, BaseEstimator):
            raise ModelFileError(
                f"{name} is a function, and a model file holds no code. Use a kernel or metric "
                "of mercer, or 'precomputed'; joblib.dump(model, path) keeps a model with its code."
            )
        raise ModelFileError(
            f"{name} is a {kind}, which is none of mercer's own classes, and a model file holds no "
            "code. joblib.dump(model, path) keeps a model with its code."
        )


class Reader:
    """Turns JSON back into values; what does not fit raises ModelFileError.

    Parameters
    ----------
    parts : dict of str to Part
    archive : Archive
    device : str or None
        Instead of the device that the model was fitted with; "saved" for that.

    Attributes
    ----------
    engine : engine or None
        Of the model that is being made, for its basis.
    """

    def __init__(self, parts: dict[str, Part], archive, device="saved"):
        self.parts, self.archive, self.device = parts, archive, device
        self.engine: Any = None
        self.used: set[str] = set()
        self._arrays: dict[str, Any] = {}
        self._plain: dict[str, Callable[[dict], Any]] = {
            "float": lambda item: float(item["value"]),
            "tuple": lambda item: tuple(self._items(item, list)),
            "dict": lambda item: self._items(item, dict),
            "texts": self._decode_texts,
            "dtype": self._decode_dtype,
            "array": lambda item: self._once(item, self._tensor),
            "csr": lambda item: self._once(item, lambda name: self._decode_sparse(name, item)),
        }

    def decode(self, item):
        """The value that was written as `item`."""
        if isinstance(item, list):
            return [self.decode(one) for one in item]
        if isinstance(item, int) and abs(item) >= 2**63:
            raise ModelFileError(f"the header has a number of {len(str(item))} digits")
        if not isinstance(item, dict):
            return item
        kind = item.get(TAG)
        if kind in self._plain:
            return self._plain[kind](item)
        if kind not in self.parts:
            raise ModelFileError(f"the header names {kind!r:.60}, which mercer does not know")
        part = self.parts[kind]
        fields = {name: value for name, value in item.items() if name != TAG}
        if not part.raw:
            fields = {name: self.decode(value) for name, value in fields.items()}
        return part.build(self, fields)

    def _items(self, item, kind):
        items = item["items"]
        if not isinstance(items, kind):
            raise ModelFileError(f"the header has {items!r:.60} where a {kind.__name__} belongs")
        if kind is list:
            return self.decode(items)
        return {name: self.decode(value) for name, value in items.items()}

    def _decode_texts(self, item):
        texts = self._items(item, list)
        if not all(isinstance(text, str) for text in texts):
            raise ModelFileError("the header has something else where texts belong")
        return np.array(texts, dtype=object)

    def _decode_dtype(self, item):
        if item["name"] not in DTYPES:
            raise ModelFileError(f"the header names the type {item['name']!r:.60}")
        return np.dtype(item["name"])

    def _once(self, item, read):
        """What was one array before is one array again."""
        name = item["tensor"]
        if name not in self._arrays:
            self._arrays[name] = read(name)
        return self._arrays[name]

    def _tensor(self, name):
        if name not in self.archive.layout:
            raise ModelFileError(f"the tensor {name!r:.60} is missing")
        self.used.add(name)
        return self.archive.tensor(name)

    def _decode_sparse(self, name, item):
        data, indices, indptr = (
            self._tensor(f"{name}.{part}") for part in ("data", "indices", "indptr")
        )
        return csr_from_parts(data, indices, indptr, item["columns"])


def conforms(value, hint) -> bool:
    """Whether a value is of the type that an annotation names."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(conforms(value, one) for one in arguments)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return all(conforms(item, arguments[0]) for item in value)
        same = len(value) == len(arguments)
        return same and all(conforms(*pair) for pair in zip(value, arguments, strict=True))
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if hint is None:
        return value is None
    return isinstance(value, origin or hint)


def _is_scalar_type(value) -> bool:
    return isinstance(value, type) and issubclass(value, np.generic)
