"""Rows that are read in blocks: files, stores, iterators, and memmaps larger than memory."""

import math
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..compute import (
    TiledEngine,
    format_bytes,
    is_sparse,
    match_sparsity,
    parse_bytes,
    stack_rows,
    to_numpy,
)
from ..compute.arrays import Array
from ..exceptions import CheckpointError
from ..files import RowSource, is_arrow, is_store, open_sink, open_source, read_blocks
from ..fitting.checkpoint import Stage
from ..kernels import Kernel
from ..progress import RowBar
from .array import ArrayRows
from .base import KEPT_ROWS, Rows
from .functions import CountOf, PickOf, Survey, SurveyOf, in_order
from .partial_sums import pack, unpack

# Rows of a block at most: far more give no more speed.
BLOCK_ROWS = 65536
# Share of the budget that one block may take. The one read ahead, the pieces that blocks are made
# of, and the rows prepared for the kernel come beside it.
BLOCK_SHARE = 16
# Share of the budget that rows read from a file may take when all are needed at once.
WHOLE_SHARE = 4
# First rows that tell one source from another.
IDENTITY_ROWS = 256


class BlockRows(Rows):
    """The rows of a source, in passes over its blocks.

    Parameters
    ----------
    X : object that `mercer.files.open_source` takes
    memory : int, str or None
        Blocks take a small share of it, whatever the engine's own budget is.
    columns : list of str or None
        Columns of a table to take.
    verbose : int
        1 shows a bar for every pass.
    """

    kind = "blocks"
    shows_progress = True

    def __init__(
        self, X: Array, memory: int | str | None = None, columns: Any = None, verbose: int = 0
    ):
        self.original, self.memory, self.verbose = X, memory, verbose
        self.source = open_source(X, columns=columns) if columns else open_source(X)
        self.count = self.source.n_rows
        #: Why a small basis was taken, where that was left to us.
        self.reason: str | None = None
        self._seen: Survey | None = None

    @property
    def name(self) -> Any:  # type: ignore[override]
        """The file, or what was passed."""
        return self.source.name

    @property
    def names(self) -> Any:  # type: ignore[override]
        """Names of the columns."""
        return self.source.columns

    @property
    def repeatable(self) -> Any:  # type: ignore[override]
        """Whether the source can be read again."""
        return self.source.repeatable

    @property
    def shape(self) -> Any:
        """Rows, None before the first pass where only reading tells, and columns."""
        return self.count, self.source.n_columns

    @property
    def dtype(self) -> Any:
        """The type that the source is read in."""
        return self.source.dtype

    @property
    def sparse(self) -> bool:  # type: ignore[override]
        """Whether blocks are CSR matrices."""
        return self.source.sparse

    def sum(self, function: Any, title: str = "rows") -> Any:
        """One pass; the first one also keeps a sample of the rows."""
        if self._seen is not None:
            return self._scan((function,), title)[0]
        total, self._seen = self._scan((function, SurveyOf(KEPT_ROWS, self.seed)), title)
        return total

    def survey(self, size: int) -> Survey:
        """Count and a sample of at least `size` rows, from the first pass or one of their own."""
        if self._seen is None or self._seen.sample.size < min(size, self._seen.count):
            (self._seen,) = self._scan((SurveyOf(size, self.seed),), "looking at rows")
        return self._seen

    def sample(self, size: int, rng: np.random.Generator | None = None) -> Array:
        """Rows by the keys of their numbers; by another generator in a pass of their own."""
        if rng is None:
            return self.survey(size).sample.leading(size).rows
        look = SurveyOf(size, int(rng.integers(2**62)))
        return self._scan((look,), "looking at rows")[0].sample.rows

    def candidates(self, size: int) -> Any:
        """The sample, and the row of largest norm where rows were left out of it."""
        seen, rows = self.survey(size), self.sample(size)
        return rows if rows.shape[0] == seen.count else stack_rows([rows, seen.farthest])

    def take(self, index: Array) -> Array:
        """Rows by number, in one pass."""
        index = np.asarray(index)
        return in_order(self.sum(PickOf(index), "looking for rows"))

    def gram(
        self,
        kernel: Kernel,
        engine: TiledEngine,
        rng: np.random.Generator,
        n_components: int | None = None,
    ) -> Any:
        """Only of rows that can be in memory."""
        return self.whole("A basis of all points").gram(kernel, engine, rng, n_components)

    def map(self, function: Any, out: Any = None, names: Any = None) -> Any:
        """Results of all rows in one array that fits the budget, or in a file."""
        if out is not None and isinstance(self.original, str | PathLike):
            check_other_file(self.original, out)
        points = function.expansion.basis.points

        def results(blocks):
            for block in blocks:
                # Tiles take rows of one kind, and landmarks may be dense where new rows are not.
                part = function(match_sparsity(block, points), 0)
                yield to_numpy(part).astype(self.dtype, copy=False)

        with self.blocks(function.title) as blocks:
            if out is None:
                return self._one_array(results(blocks), function.tail)
            return write(results(blocks), out, function.tail, self.dtype, names)

    @contextmanager
    def blocks(self, title: str = "rows", rows: int | None = None) -> Any:
        """The blocks of a pass, with their progress shown, closed whatever happens."""
        rows = rows or block_rows(self.source, self._budget)
        reading = closing(read_blocks(self.source, rows))
        with RowBar(self.verbose) as bar, reading as blocks:
            yield bar.over(blocks, title, self.count)

    def batches(self) -> Any:
        """The blocks one after the other, as a stream meets them."""
        with self.blocks("rows") as blocks:
            yield from blocks

    def count_rows(self) -> Any:
        """Known of most sources, else counted."""
        return self.sum(CountOf(), "counting rows") if self.count is None else self.count

    def whole(self, who: str) -> Any:
        """The rows as one array, or ValueError where the budget has no room for them."""
        found = self.whole_or_none(at_any_size=True)
        if found is not None:
            return found
        raise ValueError(
            f"{who} needs all rows of {self.name} at once, and memory="
            f"{format_bytes(self._budget)} is too small to read them. Save them as a .npy file, "
            "which is used from disk, raise memory, or use KernelPCA(basis='landmarks')."
        )

    def for_points(self, required: Any, who: str) -> Any:
        """An array, where they are one or fit; else None, unless they are required."""
        found = self.whole(who) if required else self.whole_or_none()
        if found is None and not self.repeatable:
            raise ValueError(
                f"The rows of {self.name} do not fit memory={format_bytes(self._budget)}, and it "
                "can be read only once. Pass a function that returns a fresh iterator, or a file."
            )
        if found is None:
            self.reason = f"the rows do not fit memory={format_bytes(self._budget)}"
        return found

    def explained(self, plan: Any, problem: Any) -> Any:
        """With the reason why landmarks were taken, where they were not asked for."""
        if self.reason is None:
            return plan
        chosen = replace(plan.chosen, method="landmarks")
        return replace(plan, estimates=(chosen,), chosen=chosen, reason=f"landmarks: {self.reason}")

    def whole_or_none(self, at_any_size: bool = False) -> ArrayRows | None:
        """The rows as one array where they are one, or where they take little of the budget.

        `at_any_size` also takes a file on disk that is larger than the budget as an array.
        """
        array = self.source.array
        if array is not None:
            on_disk = isinstance(array, np.memmap)
            if at_any_size or not on_disk or array.nbytes <= self._budget:
                return self._as_array(array)
        rows = read_within(self.source, self._budget // WHOLE_SHARE)
        return None if rows is None else self._as_array(rows)

    def _as_array(self, array) -> ArrayRows:
        rows = ArrayRows(array, None, self.memory)
        rows.names, rows.name = self.names, self.name
        return rows

    @property
    def _budget(self) -> int:
        return parse_bytes(self.memory)

    def _scan(self, functions, title) -> list:
        """Sums of functions over the blocks, in one pass, with the number of rows checked."""
        kept = BlockPass.of(self.checkpoint, len(functions), block_rows(self.source, self._budget))
        totals, count = kept.totals, 0
        if not kept.complete:
            with self.blocks(title, kept.block) as blocks:
                for block in blocks:
                    count += block.shape[0]
                    if count <= kept.count:
                        continue  # summed before the fit was killed
                    parts = [function(block, count - block.shape[0]) for function in functions]
                    pairs = zip(totals, parts, strict=True)
                    totals = [part if total is None else total + part for total, part in pairs]
                    kept.note(totals, count)
            kept.note(totals, count, complete=True)
        count = count or kept.count
        self._check_count(count)
        return totals

    def identity(self) -> list:
        """The file with its size and time, or the name; shape, type and the first rows."""
        if not self.repeatable:
            raise ValueError(
                f"checkpoint= needs rows that can be read again, and {self.name} can be read only "
                "once. Pass a function that returns a fresh iterator, or a file."
            )
        if self.source.array is not None:
            return ArrayRows(self.source.array).identity()
        with closing(self.source.blocks(IDENTITY_ROWS)) as blocks:
            first = next(iter(blocks), self.blank()[:0])
        first = first.toarray() if is_sparse(first) else first
        return ["blocks", written_when(self.original), self.shape[1], str(self.dtype), first]

    def _check_count(self, count: int) -> None:
        """The same number of rows in every pass, and two at least."""
        if self.count not in (None, count):
            raise ValueError(
                f"{self.name} gave {self.count:,} rows at first and {count:,} when read again. The "
                "rows must not change during a fit, and a function must return a fresh iterator "
                "each time."
            )
        if count < 2:
            raise ValueError(f"{self.name} has {count} rows, while a minimum of 2 is required.")
        self.count = count

    def _one_array(self, parts, tail) -> np.ndarray:
        """Results of all rows, (n, *tail), or an error where they outgrow the budget."""
        width = math.prod(tail) * self.dtype.itemsize
        check_room(self.count or 0, width, self._budget)
        found, count = [np.empty((0, *tail), self.dtype)], 0
        for part in parts:
            found.append(part)
            count += part.shape[0]
            check_room(count, width, self._budget)
        return np.concatenate(found)


class BlockPass:
    """How far a pass over blocks has come: sums, rows and the length of its blocks.

    Without a checkpoint it begins at the start, and notes nothing.
    """

    def __init__(
        self,
        totals: list,
        block: int,
        count: int = 0,
        complete: bool = False,
        partial: Stage | None = None,
    ):
        self.totals, self.block, self.count = totals, block, count
        self.complete, self.partial = complete, partial

    @classmethod
    def of(cls, checkpoint: Any, n_sums: int, block: int) -> "BlockPass":
        """The state that a checkpoint holds of its next pass."""
        if checkpoint is None:
            return cls([None] * n_sums, block)
        partial = checkpoint.next_sum()
        known = partial.header
        if not known:
            return cls([None] * n_sums, block, partial=partial)
        totals = list(unpack(known["totals"], partial.arrays))
        if len(totals) != n_sums:
            raise CheckpointError("The checkpoint is of other passes. Delete it to start anew.")
        return cls(totals, known["block"], known["count"], known["complete"], partial)

    def note(self, totals: list, count: int, complete: bool = False) -> None:
        """Write the sums of so many rows, where it is time for that."""
        if self.partial is None or not (complete or self.partial.due):
            return
        arrays: list = []
        packed = pack(totals, arrays)
        facts = {"totals": packed, "count": count, "block": self.block, "complete": complete}
        self.partial.write(facts, arrays)


def written_when(original: Any) -> list:
    """Name, size and time of a file, or of those below a folder; nothing for other sources."""
    if not isinstance(original, str | PathLike):
        return []
    path = Path(original)
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    return [[file.name, file.stat().st_size, file.stat().st_mtime_ns] for file in files]


def is_source(X: Array) -> bool:
    """Whether X is read in blocks: a path, a store, an iterator or a function, and no array."""
    if isinstance(X, str | PathLike | RowSource | Iterator) or is_store(X) or is_arrow(X):
        return True
    return callable(X) and not hasattr(X, "shape")


def block_rows(source: RowSource, memory: int) -> int:
    """Rows of a block that take a small share of the budget."""
    return int(min(BLOCK_ROWS, max(1, memory // (BLOCK_SHARE * 8 * source.n_columns))))


def read_within(source: RowSource, room: int):
    """All rows if they take no more than `room` bytes, else None."""
    width = source.n_columns * source.dtype.itemsize
    if source.n_rows is not None and source.n_rows * width > room:
        return None
    blocks, count = [], 0
    with closing(source.blocks(max(1, min(BLOCK_ROWS, room // width)))) as reading:
        for block in reading:
            blocks.append(block)
            count += block.shape[0]
            if count * width > room:
                return None
    return stack_rows(blocks) if blocks else np.empty((0, source.n_columns), source.dtype)


def write(parts, out, tail, dtype, names) -> Path:
    """Write results block by block: whole, or not at all."""
    with open_sink(out, math.prod(tail), dtype, names) as sink:
        for part in parts:
            sink.write(part)
    return Path(out)


def check_room(rows: int, width: int, memory: int) -> None:
    """Raise ValueError where results of so many bytes a row do not fit."""
    if rows * width > memory:
        raise ValueError(
            f"The results of {rows:,} rows take {format_bytes(rows * width)}, and memory allows "
            f"{format_bytes(memory)}. Raise memory, or write scores to a file: "
            "transform(..., out='scores.npy')."
        )


def check_other_file(source, out) -> None:
    """Raise ValueError where the path that is read is the one to be written."""
    if Path(out).exists() and Path(source).exists() and Path(source).samefile(out):
        raise ValueError(f"out={str(out)!r} is the file that is read. Give another name.")
