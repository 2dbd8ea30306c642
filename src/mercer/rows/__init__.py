"""Rows: where the data are, and the only thing that knows it.

A fit or a transform meets its data as `Rows`. All kinds answer the same few verbs: `shape`,
`dtype` and `names`; `sample`, uniform rows as an array, the same ones for any cut into blocks;
`sum` and `moments`, which go over all rows once; `gram`, all rows as a basis, or a refusal that
says what to do instead; `take`, rows by number; and `map`, a function of all rows that comes back
as what the rows were: an array or tensor, a file written whole, a lazy Dask array.

- `ArrayRows`: NumPy arrays, memmaps, CSR matrices, tensors on a device.
- `BlockRows`: files, stores, iterators, functions that return one: whatever
  `mercer.files.open_source` takes.
- `DaskRows`: Dask arrays and dataframes, on whichever scheduler is active.

`pose` turns rows and a recipe for a basis into the eigenproblem, and is the only place where
landmarks grow. A new kind (a database, Ray) is one file and one line of
`Door._open`.
"""

from ..compute.arrays import is_dask
from .array import ArrayRows, float_type, in_type
from .base import Rows
from .blocks import BlockRows, is_source
from .dask import DaskRows
from .functions import OfExpansion, RowFunction, errors_of, scores_of
from .posing import Request, pose

__all__ = [
    "ArrayRows",
    "BlockRows",
    "DaskRows",
    "OfExpansion",
    "Request",
    "RowFunction",
    "Rows",
    "errors_of",
    "float_type",
    "in_type",
    "is_dask",
    "is_source",
    "pose",
    "scores_of",
]
