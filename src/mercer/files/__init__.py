"""Reading rows in blocks, and writing results whole or not at all.

Data that do not fit into memory are met as a `RowSource`: something with a number of columns that
yields blocks of rows, as often as asked for or only once. `open_source` makes one of a path, an
array, an iterator or a function; every source gives even blocks of finite numbers and names the
rows where it cannot. `read_table` reads a small file whole, with its names and the columns that
are not numbers. A `Sink` writes blocks of results: beside the target first, and moved into its
place when all is written, so that a full disk or an interrupt leaves nothing half done.

Tables are never read wrongly in silence: a source says which columns it leaves out and why
(`reasons`) and what may have been meant otherwise (`notes`); `DropMissing` and `FillMissing` are
what can be done about missing values.

A new format is a class or function of a path in one line of `opening.TABLES` or `opening.ARRAYS`.
"""

from .arrow import is_arrow, table_like
from .base import DropMissing, FillMissing, RowSource, read_blocks
from .delimited import TextFormat
from .opening import Table, is_store, is_table, open_source, read_image, read_table
from .sinks import Sink, open_sink

__all__ = [
    "DropMissing",
    "FillMissing",
    "RowSource",
    "Sink",
    "Table",
    "TextFormat",
    "is_arrow",
    "is_store",
    "is_table",
    "open_sink",
    "open_source",
    "read_blocks",
    "read_image",
    "read_table",
    "table_like",
]
