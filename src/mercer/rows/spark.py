"""Rows of a Spark frame, classic or by Spark Connect: Arrow batches of its partitions."""

import pickle
from collections.abc import Iterable, Iterator
from functools import cached_property, reduce
from operator import add
from typing import Any

from .._packages import needed
from ..files.base import check_unique
from ..files.opening import table_of
from .base import Opening
from .frames import BlocksOf, ColumnsOf, FrameRows, Part, SumOf
from .tasks import FAN_IN

# Binary digits for rows of a partition, in numbers that hold within a pass.
PARTITION_BITS = 40
PART = "place long, part binary"


class SparkRows(FrameRows):
    """The rows of a pyspark DataFrame."""

    _title = "the Spark frame"
    _collected = "X.toPandas()"
    _written = "transform(X).write.parquet('scores')"

    @cached_property
    def _partitions(self) -> int:
        """Partitions of the plan; columns are not read for it."""
        ids = self.frame.selectExpr("spark_partition_id() as place")
        (last,) = ids.groupBy().agg({"place": "max"}).first()
        return 0 if last is None else last + 1

    def _total(self, work: SumOf) -> Part:
        """Partial sums are added on the workers, neighbors first, until a few are left."""
        parts, count = self._made(work), self._partitions
        while count > FAN_IN:
            count = -(-count // FAN_IN)
            groups = parts.selectExpr(f"place div {FAN_IN} as key", "place", "part")
            groups = groups.repartition(count, "key").sortWithinPartitions("place")
            parts = groups.mapInArrow(added, PART)
        rows = sorted(collected(parts), key=lambda row: row.place)
        return reduce(add, (pickle.loads(row.part) for row in rows), Part(0, None))

    def _parts(self, work: BlocksOf) -> Iterator[Part]:
        for row in self._made(work).toLocalIterator():
            yield pickle.loads(row.part)

    def _made(self, work) -> Any:
        """A frame with the results of work on every partition, pickled."""
        places, names = {name: f"c{i}" for i, name in enumerate(self.types)}, work.reader.names

        def made(batches: Iterable) -> Iterator:
            number, results = on_partition(work, batches, names)
            for part in results:
                yield pickled(number, part)

        return self._numbered.select([places[name] for name in names]).mapInArrow(made, PART)

    @property
    def _numbered(self) -> Any:
        """The frame with plain names: Spark takes dots and quotes in them for its own."""
        return self.frame.toDF(*(f"c{i}" for i in range(len(self.types))))

    def _with_columns(self, work: ColumnsOf) -> Any:
        types = needed("pyspark.sql.types", "spark")
        kind = needed("pyspark.sql.pandas.types", "spark").from_arrow_type(
            needed("pyarrow", "files").from_numpy_dtype(work.dtype)
        )
        fields = [types.StructField(name, kind, False) for name in work.names]
        schema = types.StructType([*self.frame.schema.fields, *fields])
        names = list(self.types)

        def scored(batches: Iterable) -> Iterator:
            yield from on_partition(work, batches, names)[1]

        return self._numbered.mapInArrow(scored, schema)

    def _first(self, name: str) -> Any:
        row = self._numbered.select(f"c{list(self.types).index(name)}").na.drop().first()
        return None if row is None else row[0]


def on_partition(work, batches: Iterable, names: list[str]) -> tuple[int, Iterator]:
    """The number of the partition that a task works on, and results of its batches."""
    number, pa = needed("pyspark").TaskContext.get().partitionId(), needed("pyarrow", "files")
    named = (pa.RecordBatch.from_arrays(batch.columns, names=names) for batch in batches)
    return number, work(named, f"Partition {number}", number << PARTITION_BITS)


def pickled(place: int, part: Part) -> Any:
    """A part as a row of a frame."""
    pa = needed("pyarrow", "files")
    columns = [pa.array([place], pa.int64()), pa.array([pickle.dumps(part)], pa.binary())]
    return pa.RecordBatch.from_arrays(columns, names=["place", "part"])


def added(batches: Iterable) -> Iterator:
    """The sums of parts with the same key, which follow each other."""
    totals: dict[int, Part] = {}
    for batch in batches:
        for key, part in zip(batch.column("key"), batch.column("part"), strict=True):
            part, key = pickle.loads(part.as_py()), key.as_py()
            totals[key] = totals[key] + part if key in totals else part
    for key, total in totals.items():
        yield pickled(key, total)


def collected(frame) -> list:
    """The rows of a small frame, brought here."""
    try:
        return frame.collect()
    except Exception as error:
        if "No module named 'mercer'" not in str(error):
            raise
        raise RuntimeError(
            "The Python of Spark's workers has no mercer. Install it there, or send it along with "
            "your session (spark.archives); PYSPARK_PYTHON names their interpreter."
        ) from None


def arrow_type(field) -> Any:
    """The Arrow type of a column, or the name of one that Arrow does not have."""
    try:
        return needed("pyspark.sql.pandas.types", "spark").to_arrow_type(field.dataType)
    except TypeError:
        return needed("pyarrow", "files").null()


def open_spark(X: Any, how: Opening) -> SparkRows:
    """Rows of a frame, or of columns chosen from it."""
    frame = table_of(X)
    if not hasattr(frame, "mapInArrow"):
        kind = type(frame).__name__
        raise TypeError(
            f"X is a {kind} of Spark. Pass a DataFrame of pyspark.sql: spark.createDataFrame(rdd), "
            "or X.to_spark() of pandas on Spark."
        )
    fields = frame.schema.fields
    check_unique((field.name for field in fields), "The Spark frame")
    return SparkRows(X, how, {field.name: arrow_type(field) for field in fields})
