"""Rows of whatever speaks the Arrow stream protocol, and of Parquet and Arrow files, by batches.

DuckDB relations, polars frames, pyarrow tables, datasets and readers have ``__arrow_c_stream__``
or can be asked for batches. A stream is opened anew for every reading and closed after it: a
database connection may have one open result at a time.
"""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import dropwhile
from pathlib import Path
from typing import Any

import numpy as np

from .._packages import needed
from ..compute import parse_bytes
from ..compute.arrays import Array
from .base import COUNTER, RowSource, check_unique, chosen_columns, readable

# What a stream is called in messages, by the library it comes from.
NAMES = {"duckdb": "the DuckDB relation", "polars": "the polars frame", "pyarrow": "the Arrow data"}
# Bytes of a column that are read at a time, and rows decoded at once: row groups may be larger than
# the budget. Reading a million rows of 20 columns took 40 MB so, and 260 MB as pyarrow would read.
BUFFER_BYTES, BATCH_ROWS = 2**16, 2**14
# Share of the budget that pages of Parquet may take while they are decoded. A column holds a page
# of values and one of its dictionary, packed and unpacked: 2.2 MB of 1 MiB pages were measured.
PAGE_SHARE, PAGE_BYTES, PAGES_HELD = 8, 2**20, 3
# Files and folders whose names begin so are not data.
HIDDEN = re.compile(r"(^|/)[._]")


class ArrowSource(RowSource):
    """Record batches of a stream or a file that can be opened.

    Parameters
    ----------
    batches : callable
        ``batches(rows, columns, skip)``, a generator of record batches. All are wishes, which a
        stream need not follow: one that can seek takes the rows that it passes over from ``skip``,
        a list with the number of those that nobody wants.
    schema : pyarrow.Schema
    name : str
    columns : list of str or None
        None for all columns of numbers; the others are then left out.
    repeatable : bool
        Whether the stream can be opened again.
    """

    threaded = False  # a connection to a database may be tied to its thread
    again = "Pass the table or the query that it came from."

    def __init__(self, batches: Callable, schema, name: str, columns=None, repeatable: bool = True):
        self.batches, self.name, self.repeatable = batches, name, repeatable
        self.columns, self.reasons = chosen_columns(name, kinds_of(schema, name), columns)
        self.n_columns = len(self.columns)
        types = {str(schema.field(column).type) for column in self.columns}
        self.dtype = np.dtype(np.float32 if types == {"float"} else np.float64)

    def chunks(self, rows):
        """The batches, cut where they are larger than asked for, columns side by side."""
        return self.chunks_from(0, rows)

    def chunks_from(self, start, rows):
        """The same behind the first rows; whole row groups and batches of files are not read."""
        skip = [start]
        with readable(self.name), closing(self.batches(rows, self.columns, skip)) as batches:
            for batch in batches:
                first = min(skip[0], batch.num_rows)
                skip[0] -= first
                for place in range(first, batch.num_rows, rows):
                    yield stacked(batch.slice(place, rows), self.columns, self.dtype)

    def others(self, names=None):
        """Columns of any kind."""
        names = list(self.left_out if names is None else names)
        if not names or (self.columns and not self.repeatable):
            return {}
        with readable(self.name), closing(self.batches(BATCH_ROWS, names, [0])) as batches:
            rows = [
                [batch.column(name).to_numpy(zero_copy_only=False) for name in names]
                for batch in batches
            ]
        columns = zip(*rows, strict=True) if rows else [[np.empty(0)] for _ in names]
        return {name: np.concatenate(parts) for name, parts in zip(names, columns, strict=True)}


def library_of(X) -> str:
    """The library of an object, without importing any."""
    return type(X).__module__.split(".")[0].lstrip("_")


def is_arrow(X: Array) -> bool:
    """Whether X is read as an Arrow stream.

    Not pandas frames, which are arrays to all of scikit-learn, nor those of Spark and Ray: their
    stream would bring all rows of the cluster here.
    """
    libraries = {kind.__module__.split(".")[0] for kind in type(X).__mro__}
    if isinstance(X, type) or libraries & {"pandas", "pyspark", "ray"}:
        return False
    return hasattr(X, "__arrow_c_stream__") or is_dataset(X) or is_query(X)


def is_dataset(X) -> bool:
    """Whether X is a dataset of pyarrow, or a scan of one."""
    dataset = sys.modules.get("pyarrow._dataset")
    return dataset is not None and isinstance(X, dataset.Dataset | dataset.Scanner)


def is_query(X) -> bool:
    """Whether X is a query of polars that has not been run."""
    return library_of(X) == "polars" and type(X).__name__ == "LazyFrame"


def from_arrow(X, columns=None) -> ArrowSource:
    """A source for any object that `is_arrow` accepts."""
    pa, library = needed("pyarrow", "files"), library_of(X)
    if is_query(X):
        return from_query(X, columns)
    if is_dataset(X):
        return from_dataset(X, columns)
    name = NAMES.get(library, f"the {type(X).__name__}")

    def batches(rows, columns, skip) -> Iterator:
        with reader_of(X, name) as reader:
            yield from reader

    if isinstance(X, pa.RecordBatchReader):
        return ArrowSource(batches, X.schema, name, columns, repeatable=False)
    with reader_of(X, name) as reader:
        source = ArrowSource(batches, reader.schema, name, columns)
    if isinstance(X, pa.Table | pa.RecordBatch):
        source.n_rows = X.num_rows
    elif library == "polars":
        source.n_rows = X.height
    return source


def reader_of(X, name: str):
    """A fresh reader of a stream."""
    pa = needed("pyarrow", "files")
    try:
        return pa.RecordBatchReader.from_stream(X)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        said = f"{name} is no stream of rows with columns: {error}."
        raise TypeError(f"{said} Pass a table of numbers, such as X.to_frame().") from error


def from_dataset(X, columns=None) -> ArrowSource:
    """A dataset of pyarrow, or a scan of one, which has its columns already."""
    # A scan of a reader is used up by it, and does not say so: a scan is read once.
    scanned = isinstance(X, needed("pyarrow.dataset", "files").Scanner)

    def batches(rows, columns, skip) -> Iterator:
        scan = X if scanned else X.scanner(columns=columns, batch_size=rows)
        with scan.to_reader() as reader:
            yield from reader

    schema = X.projected_schema if scanned else X.schema
    return ArrowSource(batches, schema, "the dataset", columns, repeatable=not scanned)


def from_query(X, columns=None) -> ArrowSource:
    """A query of polars, run in batches for every reading."""
    if not hasattr(X, "collect_batches"):
        raise TypeError(
            "This polars cannot run a LazyFrame in batches. Pass frame.collect(), or write it "
            "with frame.sink_parquet and pass the file."
        )
    name = "the polars query"

    def batches(rows, columns, skip) -> Iterator:
        # Several small batches ahead are cheaper than one too large.
        for frame in X.select(columns).collect_batches(chunk_size=rows, maintain_order=True):
            yield from reader_of(frame, name)

    with reader_of(X.head(0).collect(), name) as reader:
        return ArrowSource(batches, reader.schema, name, columns)


def from_feather(path: Path, columns=None, memory=None) -> ArrowSource:
    """A Feather file of version 2, which is an Arrow file, or an Arrow stream in a file."""
    pa, ipc = needed("pyarrow", "files"), needed("pyarrow.ipc", "files")

    def batches(rows, columns, skip) -> Iterator:
        with readable(path.name, "a Feather or Arrow file"), pa.memory_map(str(path)) as file:
            try:
                reader = ipc.open_file(file)
            except pa.ArrowInvalid:
                file.seek(0)
                yield from ipc.open_stream(file)
                return
            for i in range(reader.num_record_batches):
                batch = reader.get_batch(i)
                if not passed_over(batch.num_rows, skip):
                    yield batch

    first = next(batches(None, None, [0]), None)
    if first is None:
        raise ValueError(f"{path.name} has no rows. Add at least one.")
    source = ArrowSource(batches, first.schema, path.name, columns)
    source.threaded = True
    return source


def passed_over(count: int, skip: list[int]) -> bool:
    """Whether `count` rows are to be skipped; if so, lowers the number left to skip."""
    over = 0 < skip[0] >= count
    skip[0] -= count * over
    return over


def from_parquet(path: Any, columns=None, memory=None) -> ArrowSource:
    """A Parquet file, or all files of a folder in the order of their names."""
    pa, room = needed("pyarrow", "files"), parse_bytes(memory) // PAGE_SHARE
    parquet = needed("pyarrow.parquet", "files")
    files = [path]
    if path.is_dir():
        inside = sorted(path.rglob("*.parquet"))
        files = [file for file in inside if not HIDDEN.search(file.relative_to(path).as_posix())]
    if not files:
        raise ValueError(
            f"{path} is a folder without Parquet files (*.parquet). Name one that has some."
        )

    def open_file(file):
        with readable(file.name, "Parquet"):
            opened = file if isinstance(file, Path) else file.open("rb")
            return parquet.ParquetFile(opened, buffer_size=BUFFER_BYTES, pre_buffer=False)

    def batches(rows, columns, skip) -> Iterator:
        try:
            for file in files:
                with readable(file.name, "Parquet"):
                    opened = open_file(file)
                    meta = opened.metadata
                    counts = [meta.row_group(i).num_rows for i in range(meta.num_row_groups)]
                    later = list(dropwhile(lambda n: passed_over(n, skip), counts))
                    groups = list(range(len(counts) - len(later), len(counts)))
                    parts = column_parts(opened, columns, room)
                    if len(parts) < 2:
                        yield from opened.iter_batches(min(rows, BATCH_ROWS), groups, columns)
                        continue
                    for group in groups:
                        yield from group_by_parts(opened, group, parts, room)
        finally:
            # Arrow keeps what it has freed, which is no part of any budget.
            pa.default_memory_pool().release_unused()

    source = ArrowSource(batches, open_file(files[0]).schema_arrow, path.name, columns)
    source.threaded, source.n_rows = True, 0
    for file in files:
        opened_file = open_file(file)
        meta, kinds = opened_file.metadata, kinds_of(opened_file.schema_arrow, file.name)
        strange = [
            c for c in source.columns or () if kinds.get(c, "missing") not in (None, COUNTER)
        ]
        if strange:
            raise ValueError(
                f"{file.name} has no column of numbers called {strange[0]!r}, which "
                f"{files[0].name} has. All files of a folder need the same columns."
            )
        groups = [meta.row_group(i).num_rows for i in range(meta.num_row_groups)]
        if min(groups, default=0) < 0 or sum(groups) != meta.num_rows:
            raise ValueError(
                f"{file.name} claims {meta.num_rows:,} rows, and its groups have {groups!r:.60}: "
                "it is damaged. Write it again."
            )
        source.n_rows += meta.num_rows
    return source


def column_parts(opened, columns: list[str], room: int) -> list[list[str]]:
    """The columns, in as many parts as keep the pages that are decoded at a time within `room`."""
    meta, held = opened.metadata, dict[str, int]()
    groups = [meta.row_group(i) for i in range(meta.num_row_groups)]
    largest: Any = max(groups, key=lambda group: group.num_rows, default=None)
    for field in opened.schema_arrow if groups else ():
        # By its type: Arrow ends the process where what is said of a column is damaged.
        nested = bool(field.type.num_fields)
        size = largest.total_byte_size if nested else 8 * largest.num_rows
        held[field.name] = PAGES_HELD * min(size, PAGE_BYTES)
    parts: list[list[str]] = [[]]
    taken = 0
    for name in columns:
        size = held.get(name, 0)
        if parts[-1] and taken + size > room:
            parts.append([])
            taken = 0
        parts[-1].append(name)
        taken += size
    return parts


def group_by_parts(opened, group: int, parts: list[list[str]], room: int) -> Iterator:
    """Batches of a row group, of which some columns are decoded at a time, from its start.

    Every batch decodes the rows before it again: what holds all columns at once needs no budget.
    """
    pa, n = needed("pyarrow", "files"), opened.metadata.row_group(group).num_rows
    rows = max(1, room // (16 * sum(map(len, parts))))
    for start in range(0, n, rows):
        stop = min(n, start + rows)
        columns: dict[str, Any] = {}
        for part in parts:
            first, pieces = 0, []
            options = {"row_groups": [group], "columns": part, "use_threads": False}
            with closing(opened.iter_batches(min(stop, BATCH_ROWS), **options)) as batches:
                for batch in batches:
                    cut = max(start - first, 0)
                    pieces.append(batch.slice(cut, max(stop - first - cut, 0)))
                    first += batch.num_rows
                    if first <= start:
                        pieces.clear()
                    if first >= stop:
                        break
            table = pa.Table.from_batches(pieces)
            columns |= {name: table.column(name).combine_chunks() for name in part}
            del pieces, batch, table
            pa.default_memory_pool().release_unused()
        yield pa.RecordBatch.from_pydict(columns)


def kinds_of(schema, source: str) -> dict[str, str | None]:
    """Why each column of a schema is not made of numbers; None for those that are."""
    with readable(source):
        kinds = {field.name: why_no_number(field.type) for field in schema}
    check_unique(schema.names, source)
    # As pandas calls an index without a name.
    index = (name for name in kinds if name.startswith("__index_level_"))
    return kinds | {name: kinds[name] or COUNTER for name in index}


def why_no_number(kind) -> str | None:
    """Why a column of an Arrow type is not read as numbers; None if it is."""
    types = needed("pyarrow.types", "files")
    if types.is_dictionary(kind):
        return why_no_number(kind.value_type)
    numbers = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    if any(is_number(kind) for is_number in numbers):
        return None
    if types.is_temporal(kind):
        return "dates" if types.is_date(kind) or types.is_timestamp(kind) else "times"
    texts = (types.is_string, types.is_large_string, types.is_string_view)
    return "text" if any(is_text(kind) for is_text in texts) else str(kind)


def stacked(batch, columns, dtype) -> np.ndarray:
    """Columns of a record batch as one array, missing values as NaN."""
    pa = needed("pyarrow", "files")
    rows = np.empty((batch.num_rows, len(columns)), dtype)
    for i, name in enumerate(columns):
        column = batch.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if pa.types.is_boolean(column.type):
            column = column.cast(pa.int8())
        elif pa.types.is_decimal(column.type):
            column = column.cast(pa.float64())
        rows[:, i] = column.to_numpy(zero_copy_only=False)
    return rows


def table_like(S: Array, names: Any, X: Array) -> Any:
    """Scores in the kind of the stream that their rows came from.

    A polars frame or query gets a polars frame; all else an Arrow table, which DuckDB queries by
    the name of its variable.
    """
    pa = needed("pyarrow", "files")
    S = np.asarray(S)
    table = pa.table({str(name): np.ascontiguousarray(S[:, i]) for i, name in enumerate(names)})
    return needed("polars").from_arrow(table) if library_of(X) == "polars" else table
