"""Rows of whatever speaks the Arrow stream protocol, read batch by batch.

DuckDB relations, polars frames, pyarrow tables, datasets and readers have ``__arrow_c_stream__``
or can be asked for batches. A stream is opened anew for every reading and closed after it: a
database connection may have one open result at a time.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .._packages import needed
from ..compute.arrays import Array
from .base import RowSource
from .columns import COUNTER, choose_columns, reasons_of

# What a stream is called in messages, by the library it comes from.
NAMES = {"duckdb": "the DuckDB relation", "polars": "the polars frame", "pyarrow": "the Arrow data"}


class ArrowSource(RowSource):
    """Record batches of a stream that can be opened.

    Parameters
    ----------
    opened : callable
        ``opened(rows, columns)``, a context manager that gives an iterator of record batches;
        both are wishes, which a stream need not follow.
    schema : pyarrow.Schema
    name : str
    columns : list of str or None
        None for all columns of numbers; the others are then left out.
    n_rows : int or None
    repeatable, threaded : bool
        As of every source.
    """

    def __init__(
        self,
        opened: Callable,
        schema,
        name: str,
        columns=None,
        n_rows: int | None = None,
        repeatable: bool = True,
        threaded: bool = False,
    ):
        self.opened, self.name, self.n_rows = opened, name, n_rows
        kinds = kinds_of(schema)
        self.columns, self.left_out = choose_columns(kinds, columns, name)
        self.reasons = reasons_of(kinds, self.left_out)
        self.n_columns, self.dtype = len(self.columns), dtype_of(schema, self.columns)
        self.repeatable, self.threaded = repeatable, threaded
        self._used = False

    def chunks(self, rows):
        """The batches, cut where they are larger than asked for, columns side by side."""
        if self._used and not self.repeatable:
            raise ValueError(
                f"{self.name} was read already and cannot be read again. Pass the table or the "
                "query that it came from."
            )
        self._used = True
        with readable(self.name), self.opened(rows, self.columns) as batches:
            for batch in batches:
                for start in range(0, batch.num_rows, rows):
                    yield stacked(batch.slice(start, rows), self.columns, self.dtype)

    def others(self, names=None):
        """Columns of any kind."""
        names = list(self.left_out if names is None else names)
        found: dict[str, list] = {name: [] for name in names}
        if not names or not self.repeatable:
            return {}
        with readable(self.name), self.opened(None, names) as batches:
            for batch in batches:
                for name in names:
                    found[name].append(batch.column(name).to_numpy(zero_copy_only=False))
        return {name: np.concatenate(parts) for name, parts in found.items()}


@contextmanager
def readable(name: str) -> Iterator[None]:
    """Errors of pyarrow, which are of many kinds, as one that names what was read."""
    pa = needed("pyarrow", "files")
    try:
        yield
    except pa.ArrowException as error:
        raise ValueError(f"{name} cannot be read: {error}") from error


def is_arrow(X: Array) -> bool:
    """Whether X is read as an Arrow stream; pandas frames are arrays to all of scikit-learn."""
    libraries = {kind.__module__.split(".")[0] for kind in type(X).__mro__}
    if isinstance(X, type) or "pandas" in libraries:
        return False
    return hasattr(X, "__arrow_c_stream__") or is_dataset(X) or is_lazy(X)


def library_of(X) -> str:
    """The library of an object, told without importing any."""
    return type(X).__module__.split(".")[0].lstrip("_")


def is_dataset(X) -> bool:
    """Whether X is a dataset of pyarrow, or a scan of one."""
    return library_of(X) == "pyarrow" and hasattr(X, "to_batches") and hasattr(X, "count_rows")


def is_lazy(X) -> bool:
    """Whether X is a query of polars that has not been run."""
    return library_of(X) == "polars" and type(X).__name__ == "LazyFrame"


def from_arrow(X, columns=None) -> ArrowSource:
    """A source of whatever `is_arrow` says yes to."""
    if is_lazy(X):
        return from_lazy(X, columns)
    if is_dataset(X):
        return from_dataset(X, columns)
    name = NAMES.get(library_of(X), f"the {type(X).__name__}")
    once = library_of(X) == "pyarrow" and type(X).__name__ == "RecordBatchReader"
    count = getattr(X, "num_rows", getattr(X, "height", None))

    @contextmanager
    def opened(rows, columns) -> Iterator:
        with reader_of(X, name) as reader:
            yield reader

    if once:
        return ArrowSource(opened, X.schema, name, columns, repeatable=False)
    with opened(None, None) as reader:
        schema = reader.schema
    return ArrowSource(opened, schema, name, columns, count if isinstance(count, int) else None)


def reader_of(X, name: str):
    """A fresh reader of a stream."""
    pa = needed("pyarrow", "files")
    try:
        return pa.RecordBatchReader.from_stream(X)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise TypeError(f"{name} is no stream of rows with columns: {error}") from error


def from_dataset(X, columns=None) -> ArrowSource:
    """A dataset of pyarrow, or a scan of one, which has its columns already."""
    schema = X.schema if hasattr(X, "scanner") else X.projected_schema

    @contextmanager
    def opened(rows, columns) -> Iterator:
        size = {} if rows is None else {"batch_size": rows}
        scan = X.scanner(columns=columns, **size) if hasattr(X, "scanner") else X
        with scan.to_reader() as reader:
            yield reader

    # A scan of a reader is used up by it, and does not say so: a scan is read once.
    repeatable = hasattr(X, "scanner")
    return ArrowSource(opened, schema, "the dataset", columns, repeatable=repeatable)


def from_lazy(X, columns=None) -> ArrowSource:
    """A query of polars, run in batches for every reading."""
    if not hasattr(X, "collect_batches"):
        raise TypeError(
            "This polars cannot run a LazyFrame in batches. Pass frame.collect(), or write it "
            "with frame.sink_parquet and pass the file."
        )
    name = "the polars query"

    @contextmanager
    def opened(rows, columns) -> Iterator:
        # Several small batches ahead are cheaper than one too large.
        frames = X.select(columns).collect_batches(chunk_size=rows, maintain_order=True)
        yield (batch for frame in frames for batch in reader_of(frame, name))

    with reader_of(X.head(0).collect(), name) as reader:
        schema = reader.schema
    return ArrowSource(opened, schema, name, columns)


def from_feather(path: Path, columns=None) -> ArrowSource:
    """A Feather file of version 2, which is an Arrow file, or an Arrow stream in a file."""
    pa = needed("pyarrow", "files")

    @contextmanager
    def opened(rows, columns) -> Iterator:
        ipc = needed("pyarrow.ipc", "files")
        try:
            with pa.memory_map(str(path)) as file:
                try:
                    reader = ipc.open_file(file)
                except pa.ArrowInvalid:
                    file.seek(0)
                    yield ipc.open_stream(file)
                    return
                yield (reader.get_batch(i) for i in range(reader.num_record_batches))
        except (pa.ArrowException, OSError) as error:
            raise ValueError(
                f"{path.name} cannot be read as a Feather or Arrow file: it is cut short, damaged "
                f"or another kind of file. ({error})"
            ) from error

    return ArrowSource(opened, schema_of(opened, path.name), path.name, columns, threaded=True)


def schema_of(opened, name: str) -> Any:
    """The schema of a file, from its first batch."""
    with opened(None, None) as batches:
        first = next(iter(batches), None)
    if first is None:
        raise ValueError(f"{name} has no rows. Add at least one.")
    return first.schema


def kinds_of(schema) -> dict[str, str | None]:
    """Why each column of a schema is not made of numbers; None for those that are."""
    kinds = {field.name: why_no_number(field.type) for field in schema}
    if len(kinds) < len(schema):
        twice = Counter(schema.names).most_common(1)[0][0]
        raise ValueError(f"Two columns have the same name, {twice!r:.60}. Rename one of them.")
    # As pandas calls an index without a name.
    index = (name for name in kinds if name.startswith("__index_level_"))
    return kinds | {name: kinds[name] or COUNTER for name in index}


def why_no_number(kind) -> str | None:
    """Why a column of an Arrow type is not read as numbers; None if it is."""
    types = needed("pyarrow.types", "files")
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        return None
    if types.is_decimal(kind):
        return None
    if types.is_dictionary(kind):
        return why_no_number(kind.value_type)
    if types.is_temporal(kind):
        return "dates" if types.is_date(kind) or types.is_timestamp(kind) else "times"
    texts = (types.is_string, types.is_large_string, types.is_string_view)
    return "text" if any(is_text(kind) for is_text in texts) else str(kind)


def dtype_of(schema, columns) -> np.dtype:
    """float32 where all columns are, else float64."""
    types = {str(schema.field(name).type) for name in columns}
    return np.dtype(np.float32 if types == {"float"} else np.float64)


def stacked(batch, columns, dtype):
    """The columns of a record batch as one array, missing values as NaN."""
    rows = np.empty((batch.num_rows, len(columns)), dtype)
    for i, column in enumerate(columns):
        rows[:, i] = as_floats(batch.column(column))
    return rows


def as_floats(column) -> np.ndarray:
    """A column of numbers or truth values, what is missing as NaN."""
    pa = needed("pyarrow", "files")
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    elif pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    return column.to_numpy(zero_copy_only=False)


def table_like(S: Array, names: Any, X: Array) -> Any:
    """Scores in the kind of the stream that their rows came from.

    A polars frame or query gets a polars frame; all else an Arrow table, which DuckDB queries by
    the name of its variable.
    """
    pa = needed("pyarrow", "files")
    S = np.asarray(S)
    table = pa.table({str(name): np.ascontiguousarray(S[:, i]) for i, name in enumerate(names)})
    return needed("polars").from_arrow(table) if library_of(X) == "polars" else table
