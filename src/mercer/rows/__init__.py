"""Rows: where the data are, and the only thing that knows it.

A fit or a transform gets its data as `Rows`. All kinds answer the same few verbs: `shape`, `dtype`
and `names`; `sample`, uniform rows as an array, the same ones for any cut into blocks; `sum`, which
goes over all rows once; `as_basis`, all rows as a basis, or the reason why not; `take`, rows by
number; and `map`, a function of all rows that comes back as what the rows were: an array or tensor,
a file written whole, a lazy Dask array. Nothing is set on them: weights, generator and checkpoint
belong to the task of a fit, and what is summed to row functions (`mercer.fitting.functions`).

- `ArrayRows`: NumPy arrays, memmaps, CSR matrices, tensors on a device.
- `BlockRows`: files, stores, iterators, functions that return one: whatever
  `mercer.files.open_source` takes.
- `DaskRows`: Dask arrays and dataframes, on whichever scheduler is active.
- `SparkRows`, `RayRows`: tables on a cluster whose rows have no order (`mercer.rows.frames`).
- `SummedRows`: sums that any other engine has made (`mercer.merge`).

A new kind is one file and one line of `KINDS`; no other folder asks for the kind.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from ..compute.arrays import is_dask
from ..files import is_cluster_table
from ..fitting.expansion import OfExpansion, scores_of
from . import array
from .array import (
    ArrayRows,
    engine_for,
    float_type,
    in_memory,
    in_type,
    like_of,
    like_rows,
    open_rows,
    without_weightless,
)
from .base import Opening, Rows, count_rows
from .blocks import BlockRows, is_source, open_blocks
from .dask import DaskRows, lazy_like, open_dask
from .extras import with_extras
from .ray import RayRows, open_ray
from .spark import SparkRows, open_spark
from .states import Layout, NextPass, State, Step, SummedRows, merge

#: Whether data are of a kind, and how they are opened; all other data are arrays.
KINDS: list[tuple[Callable[[Any], bool], Callable[[Any, Opening], Rows]]] = [
    (is_dask, open_dask),
    (partial(is_cluster_table, libraries=("pyspark",)), open_spark),
    (partial(is_cluster_table, libraries=("ray",)), open_ray),
    (is_source, open_blocks),
    (lambda X: isinstance(X, SummedRows), lambda X, how: X),
]
array.KINDS = KINDS


def is_elsewhere(values: Any) -> bool:
    """Whether rows, or what was made of each, are on a cluster."""
    return is_dask(values) or is_cluster_table(values)


__all__ = [
    "KINDS",
    "ArrayRows",
    "BlockRows",
    "DaskRows",
    "Layout",
    "NextPass",
    "OfExpansion",
    "Opening",
    "RayRows",
    "Rows",
    "SparkRows",
    "State",
    "Step",
    "SummedRows",
    "count_rows",
    "engine_for",
    "float_type",
    "in_memory",
    "in_type",
    "is_elsewhere",
    "lazy_like",
    "like_of",
    "like_rows",
    "merge",
    "open_rows",
    "scores_of",
    "with_extras",
    "without_weightless",
]
