"""Rows of a Ray dataset: `map_batches` on its blocks, whose parts are added where they are."""

import pickle
from collections.abc import Iterator
from functools import partial, reduce
from hashlib import blake2b
from operator import add
from typing import Any

from .._packages import needed
from ..files.opening import table_of
from .base import Opening
from .frames import BlocksOf, ColumnsOf, FrameRows, Part, SumOf
from .tasks import FAN_IN

# Binary digits for rows of a block, in numbers that hold within a pass, and rows that are hashed.
BLOCK_BITS, HASHED_ROWS = 26, 16
WHOLE_BLOCKS: dict[str, Any] = {"batch_format": "pyarrow", "batch_size": None}


class RayRows(FrameRows):
    """The rows of a `ray.data.Dataset`."""

    _title = "the Ray dataset"
    _collected = "X.to_pandas()"
    _written = "transform(X).write_parquet('scores')"

    def _total(self, work: SumOf) -> Part:
        """Parts are added by tasks, a few at a time, until a few are left."""
        parts = self._made(work).materialize()
        while parts.count() > FAN_IN:
            parts = parts.map_batches(added, batch_format="pyarrow", batch_size=FAN_IN)
            parts = parts.materialize()
        return reduce(add, (pickle.loads(row["part"]) for row in parts.iter_rows()), Part(0, None))

    def _parts(self, work: BlocksOf) -> Iterator[Part]:
        for row in self._made(work).iter_rows():
            yield pickle.loads(row["part"])

    def _made(self, work) -> Any:
        """A dataset with the results of work on every block, pickled."""
        columns = self.frame.select_columns(work.reader.names)
        return columns.map_batches(lambda table: pickled(on_block(table, work)), **WHOLE_BLOCKS)

    def _with_columns(self, work: ColumnsOf) -> Any:
        return self.frame.map_batches(partial(scored, work=work), **WHOLE_BLOCKS)

    def _first(self, name: str) -> Any:
        return next((row[name] for row in self.frame.select_columns([name]).take(1)), None)


def on_block(table, work) -> Iterator:
    """Results of work on a block; its number follows from its first rows."""
    first = pickle.dumps(table.slice(0, HASHED_ROWS).to_pydict())
    number = int.from_bytes(blake2b(first, digest_size=4).digest(), "big")
    batches = table.combine_chunks().to_batches()
    return work(batches, f"A block of {table.num_rows:,} rows", number << BLOCK_BITS)


def scored(table, work) -> Any:
    """A block with further columns."""
    pa = needed("pyarrow", "files")
    batches = list(on_block(table, work))
    if batches:
        return pa.Table.from_batches(batches)
    for name in work.names:
        table = table.append_column(name, pa.array([], pa.from_numpy_dtype(work.dtype)))
    return table


def added(table) -> Any:
    """The sum of some parts."""
    parts = (pickle.loads(part.as_py()) for part in table.column("part"))
    return pickled([reduce(add, parts)])


def pickled(parts) -> Any:
    """Parts as rows of a block."""
    pa = needed("pyarrow", "files")
    return pa.table({"part": pa.array([pickle.dumps(part) for part in parts], pa.large_binary())})


def open_ray(X: Any, how: Opening) -> RayRows:
    """Rows of a dataset, or of columns chosen from it."""
    dataset = table_of(X)
    if not hasattr(dataset, "map_batches"):
        raise TypeError(f"X is a {type(dataset).__name__} of Ray. Pass a ray.data.Dataset.")
    schema = dataset.schema()
    if schema is None:
        raise ValueError(
            "The Ray dataset has no rows and no columns. Pass one with at least two rows."
        )
    return RayRows(X, how, dict(zip(schema.names, schema.types, strict=True)))
