"""Reading rows in blocks, and writing results to files that are complete or absent.

Data that do not fit into memory are read through a `RowSource`, which yields blocks of rows, any
number of times or only once. `open_source` makes one of a path, an array, an iterator or a
function; every source gives even blocks of finite numbers, or an error that names the rows.
`read_table` reads a small file at once, with its names and the columns that are not numbers. A
`Sink` writes blocks of results to a temporary file, which is renamed when all is written, so that a
full disk or an interrupt leaves nothing half done.

Guesses about tables are never silent: a source says which columns it leaves out and why
(`reasons`) and which guesses may be wrong (`notes`); `DropMissing` and `FillMissing` treat missing
values.

A new format is a class or function of a path in one line of `opening.TABLES` or `opening.ARRAYS`.
"""

from .arrow import is_arrow, table_like
from .base import DropMissing, FillMissing, RowSource, read_blocks
from .delimited import TextFormat
from .opening import (
    ChosenColumns,
    Table,
    is_cluster_table,
    is_store,
    is_table,
    open_source,
    read_image,
    read_table,
)
from .sinks import Sink, open_sink

__all__ = [
    "ChosenColumns",
    "DropMissing",
    "FillMissing",
    "RowSource",
    "Sink",
    "Table",
    "TextFormat",
    "is_arrow",
    "is_cluster_table",
    "is_store",
    "is_table",
    "open_sink",
    "open_source",
    "read_blocks",
    "read_image",
    "read_table",
    "table_like",
]
