"""Sums over rows as plain numbers and arrays, and back, for the state of a pass that was killed."""

from dataclasses import fields
from typing import Any

import numpy as np

from ..bases import TrigonometricMoments
from ..compute import is_sparse
from ..compute.arrays import csr_from_parts
from ..exceptions import CheckpointError
from .functions import Box, Sums, Survey
from .moments import Moments
from .sampling import RowSample

# All that sums are made of: names are looked up here, never imported.
SUMS: dict[str, type] = {
    kind.__name__: kind for kind in (Moments, TrigonometricMoments, Survey, RowSample, Box, Sums)
}


def pack(value: Any, arrays: list) -> Any:
    """The value as JSON; its arrays are appended to `arrays`."""
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple | list):
        return [pack(item, arrays) for item in value]
    if is_sparse(value):
        parts = [pack(part, arrays) for part in (value.data, value.indices, value.indptr)]
        return {"@": "csr", "parts": parts, "columns": value.shape[1]}
    if isinstance(value, np.ndarray):
        is_complex = value.dtype.kind == "c"
        arrays.append(np.ascontiguousarray(value).view(float) if is_complex else value)
        return {"@": "complex" if is_complex else "array", "place": len(arrays) - 1}
    named = {field.name: pack(vars(value)[field.name], arrays) for field in fields(value)}
    return {"@": type(value).__name__, "fields": named}


def unpack(item: Any, arrays: list) -> Any:
    """The value that `pack` made JSON of."""
    if isinstance(item, list):
        return tuple(unpack(one, arrays) for one in item)
    if not isinstance(item, dict):
        return item
    kind = item["@"]
    if kind == "array":
        return arrays[item["place"]]
    if kind == "complex":
        return arrays[item["place"]].view(complex)
    if kind == "csr":
        data, indices, indptr = unpack(item["parts"], arrays)
        return csr_from_parts(data, indices, indptr, item["columns"])
    if kind not in SUMS:
        raise CheckpointError(
            f"A checkpoint names {kind!r:.60}, which mercer does not know. Delete it to start anew."
        )
    return SUMS[kind](**{name: unpack(part, arrays) for name, part in item["fields"].items()})
