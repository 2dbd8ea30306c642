"""Rows: where the data are, and the only thing that knows it.

A fit or a transform meets its data as `Rows`. All kinds answer the same few verbs: `shape`,
`dtype` and `names`; `sample`, uniform rows as an array, the same ones for any cut into blocks;
`sum`, which goes over all rows once; `gram`, all rows as a basis, or a refusal that
says what to do instead; `take`, rows by number; and `map`, a function of all rows that comes back
as what the rows were: an array or tensor, a file written whole, a lazy Dask array. Nothing is set
on them: weights, generator and checkpoint belong to the task of a fit, and what is summed to row
functions (`mercer.fitting.functions`).

- `ArrayRows`: NumPy arrays, memmaps, CSR matrices, tensors on a device.
- `BlockRows`: files, stores, iterators, functions that return one: whatever
  `mercer.files.open_source` takes.
- `DaskRows`: Dask arrays and dataframes, on whichever scheduler is active.

A new kind (Spark, Ray) is one file and one line of `Door._open`.
"""

from ..compute.arrays import is_dask
from ..fitting.expansion import OfExpansion, errors_of, scores_of
from ..fitting.moments import RowFunction
from .array import ArrayRows, float_type, in_type
from .base import Rows
from .blocks import BlockRows, is_source
from .dask import DaskRows

__all__ = [
    "ArrayRows",
    "BlockRows",
    "DaskRows",
    "OfExpansion",
    "RowFunction",
    "Rows",
    "errors_of",
    "float_type",
    "in_type",
    "is_dask",
    "is_source",
    "scores_of",
]
