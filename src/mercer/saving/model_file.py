"""Saving and loading: an estimator as a header and tensors, and back.

Whatever is not JSON itself is an object with the key ``"@"``: ``{"@": "array", "tensor": name}``,
``{"@": "RBF", "gamma": 0.1}``. Names are looked up in the list of parts, never imported.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import signature
from os import PathLike
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..bases import Landmarks
from ..compute import is_sparse, make_engine, to_numpy
from ..compute.arrays import BlocksOnDemand, csr_from_parts, is_foreign
from ..estimators._output import basis_text, kernel_text
from ..exceptions import ModelFileError
from ..kernels import BlockFunction, Kernel
from ..kernels.function import Objects
from .archive import DTYPES, FORMAT_VERSION, Archive, Pieces, open_archive, write_archive
from .kinds import check_fields, check_kernel
from .parts import MODELS, OF_PROGRAM, PARTS, CsrPieces, Part, dropped_params, present_params

# Errors that decoding a forged header can raise.
MEANINGLESS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
INCONSISTENT = (*MEANINGLESS, MemoryError, RecursionError)
# Shares of variance that the summary of a header lists.
LISTED = 20

TAG = "@"
CSR_PARTS = ("data", "indices", "indptr")


@dataclass(frozen=True)
class ModelHeader:
    """What a model file says about itself.

    Attributes
    ----------
    estimator : str
        Name of the class.
    format_version : int
    library_version : str
        Of the mercer that wrote the file.
    checksum : str
    params : dict
        Parameters as they stand in the file; what is not JSON has the key ``"@"``.
    summary : dict
        ``kernel``, ``basis``, ``components``, ``columns``, ``explained_variance_ratio``,
        ``certificate`` (pairs of texts), ``plan`` and others.
    tensors : dict of str to (str, tuple of int)
        Type and shape of each.
    size : int
        Bytes of the file.
    """

    estimator: str
    format_version: int
    library_version: str
    checksum: str
    params: dict[str, Any]
    summary: dict[str, Any]
    tensors: dict[str, tuple[str, tuple[int, ...]]]
    size: int


def save(
    model: Any,
    path: str | PathLike[str],
    *,
    overwrite: bool = True,
    extra: dict[str, Any] | None = None,
) -> None:
    """Write a fitted model to one file, without any code in it.

    The file is written whole or not at all: an error or an interrupt leaves what was there
    before. By convention its name ends in ``.mercer``.

    Parameters
    ----------
    model : estimator
        Any fitted estimator of mercer.
    path : str or path
    overwrite : bool, default=True
        False raises FileExistsError where there is a file already.
    extra : dict or None, default=None
        Plain values and arrays that belong to the model but not to the estimator, such as how
        columns were scaled before it; `read_extra` gives them back.
    """
    from .. import __version__

    kind = type(model)
    name = kind.__name__
    if name not in MODELS or MODELS[name].cls is not kind:
        raise ModelFileError(
            f"{name} has no model file. Those that have one: {', '.join(MODELS)}. "
            "joblib.dump(model, path) keeps any estimator."
        )
    check_is_fitted(model)
    model._validate_params()
    writer = Writer()
    content = writer.encode(model, name)
    header = {
        "format_version": FORMAT_VERSION,
        "library_version": __version__,
        "estimator": name,
        "summary": summarize(model),
        "model": content,
        "extra": writer.encode(extra or {}, "extra"),
    }
    write_archive(path, header, writer.tensors, overwrite)


def load(path: str | PathLike[str], *, device: Any = "saved", kernel_function: Any = None) -> Any:
    """The model that was saved to a file.

    Its results agree with those of the model that was saved to the rounding of a sum. Opening
    a file executes nothing of it; a file that is damaged, foreign or of a later format is refused.

    Parameters
    ----------
    path : str or path
    device : str or None, default="saved"
        Where the model is to compute; "saved" for where it did, None or "cpu" for a machine
        that has no such device.
    kernel_function : callable or None, default=None
        The function of a `mercer.kernels.BlockFunction`, which no file holds.

    Returns
    -------
    estimator

    Raises
    ------
    ModelFileError
        A ValueError that says what is wrong with the file.
    OSError
        If the file cannot be opened.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import mercer
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().data
    >>> model = mercer.KernelPCA(5, kernel="rbf", gamma="median", basis="landmarks").fit(X)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "digits.mercer"
    >>> model.save(path)
    >>> bool((mercer.load(path).transform(X) == model.transform(X)).all())
    True
    """
    # Numbers of a forged file overflow in its checks.
    with _opened(path) as archive, np.errstate(over="ignore", invalid="ignore"):
        reader = Reader(archive, device, kernel_function)
        model = reader.decode(archive.header["model"])
        check_is_fitted(model)
        summarize(model)  # fails now where showing the model would fail later
        reader.decode(archive.header.get("extra"))
        left = archive.layout.keys() - reader.used
        if left:
            raise ModelFileError(f"there are tensors without a use: {sorted(left)[:3]}")
    if kernel_function is not None and not reader.functions:
        raise ValueError(f"The kernel of {path} has no function. Leave kernel_function out.")
    return model


def read_header(path: str | PathLike[str], *, verify: bool = True) -> ModelHeader:
    """What a model file says about itself, without reading its tensors into memory.

    Parameters
    ----------
    path : str or path
    verify : bool, default=True
        Read the file once to compare the checksum.
    """
    with _opened(path, verify) as archive:
        header = archive.header
        versions = header["format_version"], str(header["library_version"]), header["checksum"]
        facts = dict(header["model"]["params"]["items"]), dict(header["summary"])
        return ModelHeader(header["estimator"], *versions, *facts, archive.layout, archive.size)


def read_extra(path: str | PathLike[str]) -> dict[str, Any]:
    """What was saved with a model as `extra`; an empty dict where nothing was.

    Parameters
    ----------
    path : str or path
    """
    with _opened(path) as archive:
        return dict(Reader(archive).decode(archive.header.get("extra")) or {})


@contextmanager
def _opened(path, verify: bool = True) -> Iterator[Archive]:
    """The contents of a model file; whatever is wrong with them is a ModelFileError."""
    with open_archive(path, verify) as archive:
        header = archive.header
        try:
            name, content = header["estimator"], header["model"]
            if name not in MODELS or content[TAG] != name or type(header["summary"]) is not dict:
                raise ModelFileError(f"the header does not describe an estimator {name!r:.60}")
            yield archive
        except UnavailableDevice:
            raise
        except INCONSISTENT as error:
            is_ours = isinstance(error, ModelFileError)
            reason = str(error) if is_ours else f"{type(error).__name__}: {error}"
            raise ModelFileError(
                f"{path} is not a valid model file: {reason:.200}. It was not written by "
                "model.save, or by a version of mercer that had a defect; save the model again."
            ) from error


def summarize(model) -> dict[str, Any]:
    """The facts about a model that a reader of the file wants first, as plain JSON."""
    summary: dict[str, Any] = {}
    inner = next((m for m in map(model.__dict__.get, ("model_", "best_estimator_")) if m), model)
    facts = vars(inner)
    if "n_features_in_" in facts:
        summary["columns"] = int(inner.n_features_in_)
    if isinstance(facts.get("kernel_"), Kernel):
        summary["kernel"] = kernel_text(inner, repr)
    if "expansion_" in facts:
        summary["basis"] = basis_text(inner.expansion_.basis)
        summary["components"] = int(inner.expansion_.n_components)
    for name in ("explained_variance_ratio_", "correlations_"):
        if name in facts:
            summary[name[:-1]] = [float(value) for value in facts[name][:LISTED]]
    if "certificate_" in facts:
        share = inner.certificate_.captured_variance
        if share is not None:
            summary["captured_variance"] = [float(end) for end in share]
        summary["certificate"] = [list(pair) for pair in inner.certificate_.summary()]
    if "plan_" in facts:
        summary["plan"] = repr(inner.plan_)
    if dropped_params(model):
        summary["not_kept"] = dropped_params(model)
    return summary


class UnavailableDevice(ModelFileError):
    """The model computes on a device that this machine does not have."""


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
        is_code = callable(value) and not isinstance(value, BaseEstimator)
        what = "a function" if is_code else f"a {kind}, which is none of mercer's own classes"
        raise ModelFileError(
            f"{name} is {what}, and a model file holds no code. Use a kernel or metric of mercer, "
            "or 'precomputed'; joblib.dump(model, path) keeps a model with its code."
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
    function : callable or None
        Of a `BlockFunction`.

    Attributes
    ----------
    used : set of str
        Names of the tensors that were read.
    functions : list of BlockFunction
        All that were read.
    """

    def __init__(self, archive: Archive, device="saved", function: Any = None):
        self.archive, self.device, self.function = archive, device, function
        self.functions: list[Any] = []
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
        if isinstance(thing, BlockFunction):
            thing.function = self.function
            self.functions.append(thing)
        return thing

    def _make_model(self, kind: Part, given: dict):
        params = present_params(kind.cls, self.decode(given["params"]))
        foreign = [name for name in OF_PROGRAM if params.get(name) is not None]
        if foreign:
            raise ModelFileError(f"parameters of a program that no file holds: {foreign}")
        for value in params.values():
            if isinstance(value, Kernel):
                check_kernel(value)
            if isinstance(value, Landmarks):
                value.check()
        if not isinstance(params.get("device"), str | None):
            raise ModelFileError(f"device is {params['device']!r:.60}")
        if "device" in params and self.device != "saved":
            params["device"] = self.device
        model = kind.cls(**params)
        model._validate_params()
        outer, self._engine = self._engine, engine_of(model)
        asked = len(self.functions)
        state = self.decode(given["state"])
        if isinstance(objects := state.get("_encoding"), Objects):
            for kernel in self.functions[asked:]:
                kernel.objects = objects
        self._engine = outer
        if state:  # else it is a parameter of another estimator, and not fitted
            check_fields(kind.cls.__name__, state, kind.kinds or {}, kind.optional)
            vars(model).update(state)
            if isinstance(kernel := state.get("kernel_"), Kernel):
                check_kernel(kernel, state["n_features_in_"])
            model._complete()
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
