"""Rows that are read in blocks: files, iterators, and memmaps larger than memory."""

import math
import os
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from .._remote import as_path
from ..compute import (
    TiledEngine,
    format_bytes,
    is_sparse,
    match_sparsity,
    parse_bytes,
    to_numpy,
)
from ..compute.arrays import Array, blocks_of
from ..exceptions import TableWarning, tell
from ..files import RowSource, is_arrow, is_store, is_table, open_sink, open_source, read_blocks
from ..files.base import COUNTER, check_room
from ..fitting.checkpoint import RowDigest
from ..kernels import Kernel
from ..progress import RowBar
from .array import ArrayRows
from .base import BY_LANDMARKS, Opening, Rows

# Rows of a block at most: far more give no more speed.
BLOCK_ROWS = 65536
# Share of the budget that one block may take. The one read ahead, the pieces that blocks are made
# of, and the rows prepared for the kernel come beside it.
BLOCK_SHARE = 16
# Share of the budget that rows read from a file may take when all are needed at once.
WHOLE_SHARE = 4
# First rows, hashed to tell other data before a pass over all rows does.
IDENTITY_ROWS = 256
# Seconds after which a file's time of change is older than file systems count, which is in up to 2.
SETTLED = 3.0


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

    def __init__(
        self, X: Array, memory: int | str | None = None, columns: Any = None, verbose: int = 0
    ):
        self.original, self.memory, self.verbose = X, parse_bytes(memory), verbose
        asked = {"columns": columns} if columns else {}
        self.source = open_source(X, memory=memory, **asked)
        self.names, self.sparse = self.source.columns, self.source.sparse
        # Of all rows: their number, and the digest that later passes with a checkpoint must find.
        self.count, self._hashed = self.source.n_rows, ""
        width = 8 * self.source.n_columns
        self._block = int(min(BLOCK_ROWS, max(1, self.memory // (BLOCK_SHARE * width))))

    @property
    def shape(self) -> Any:
        return self.count, self.source.n_columns

    _draws = True

    @property
    def _title(self) -> str:  # type: ignore[override]
        return self.source.name

    def _for_points(self, who: str, required: bool) -> Rows:
        try:
            array = self.as_array(who, None if required else self.memory // WHOLE_SHARE)
        except ValueError:
            if required or not self.source.repeatable:
                raise
            return self
        if array is self.source.array:  # blocks were checked as they were read
            start = 0
            for block in blocks_of(array):
                self.source._check_finite(block, start)
                start += block.shape[0]
        return ArrayRows(array, None, self.memory)

    @property
    def dtype(self) -> Any:
        return self.source.dtype

    def _partial_sums(self, function, title, again, done, checkpoint):
        """The sum over each block, with the number of rows checked after the last."""
        if again:
            self.source.check_repeatable(
                "this fit makes more than one pass (one is enough for KernelPCA without weights, "
                "with a number for gamma and basis='features', Landmarks(points=...) or "
                "FourierGrid(box=...))"
            )
        block, summed = done.get("block", self._block), done.get("rows", 0)
        total, hashed = RowDigest(), done.get("hashed", "")
        stamps = None if checkpoint is None else self._stamps()
        # A file that nobody has written to since need not be read to know that.
        untouched = stamps is not None and stamps == done.get("stamps")
        if summed and not untouched and not hashed:
            checkpoint.check_rows(self.source.name, "known no more", hashed)
        start = count = summed if untouched else 0
        if done.get("complete") and (untouched or self._hashed):
            if not untouched:  # compared with the rows of an earlier pass
                checkpoint.check_rows(self.source.name, hashed, self._hashed)
            count, self._hashed = summed, hashed
        else:
            with self._reading(title, block, start) as blocks:
                for rows in blocks:
                    first, count = count, count + rows.shape[0]
                    hashed = "" if checkpoint is None or start else total.add(rows)
                    if first >= summed and not done.get("complete"):
                        place = {"rows": count, "block": block, "hashed": hashed, "stamps": stamps}
                        yield function(rows, first), place
                    elif count >= summed:
                        checkpoint.check_rows(self.source.name, hashed, done["hashed"])
        if checkpoint is not None and not start:
            enough = count >= summed
            checkpoint.check_rows(self.source.name, hashed, enough and (self._hashed or hashed))
            self._hashed = hashed
        if self.count not in (None, count):
            raise ValueError(
                f"{self.source.name} gave {self.count:,} rows at first and {count:,} when read "
                "again. The rows must not change during a fit, and a function must return a fresh "
                "iterator each time."
            )
        if count < 2:
            raise ValueError(
                f"{self.source.name} has {count} rows, while a minimum of 2 is required."
            )
        self.count = count

    def _files(self) -> list[Any]:
        """The files that the rows are read from, where it is known which."""
        path = getattr(self.original, "filename", self.original)  # that of a memmap
        if not isinstance(path, str | PathLike):
            return []
        path = as_path(path)
        return sorted(f for f in path.rglob("*") if f.is_file()) if path.is_dir() else [path]

    def _stamps(self) -> list | None:
        """Stamps that change with the files; None if there are no reliable ones.

        The time of change of a file, unlike that of its content, is set by the system alone. It is
        coarse, so that a file that was changed just now may be changed once more unseen.
        """
        if os.name == "nt" or getattr(self.original, "mode", "r") != "r":
            return None
        stats = [file.stat() for file in self._files()]
        recent = time.time() - max((one.st_ctime for one in stats), default=np.inf) < SETTLED
        return None if recent else [[s.st_ino, s.st_ctime_ns, s.st_size] for s in stats]

    def map(self, function: Any, out: Any = None, names: Any = None) -> Any:
        """Results of all rows in one array that fits the budget, or in a file."""
        if out is not None and isinstance(self.original, str | PathLike):
            source, target = as_path(self.original), as_path(out)
            here = isinstance(source, Path) and isinstance(target, Path)
            both = here and target.exists() and source.exists()
            if str(source) == str(target) or (both and source.samefile(target)):
                raise ValueError(f"out={str(out)!r} is the file that is read. Give another name.")
        points, tail = function.expansion.basis.points, function.tail
        dtype = np.dtype(function.dtype or self.dtype)

        def results(blocks):
            for block in blocks:
                # Tiles take rows of one kind, and landmarks may be dense where new rows are not.
                part = function(match_sparsity(block, points), 0)
                yield to_numpy(part).astype(dtype, copy=False)

        with self._reading(function.title, self._block) as blocks:
            if out is None:
                return self._one_array(results(blocks), tail, dtype)
            held = self.memory // BLOCK_SHARE
            with open_sink(out, math.prod(tail), dtype, names, held=held) as sink:
                for part in results(blocks):
                    sink.write(part)
            return as_path(out) if isinstance(as_path(out), Path) else str(out)

    def as_basis(self, kernel: Kernel, engine: TiledEngine, n_components: int | None) -> str:
        """Rows that fit the budget were read into an array before; these do not."""
        return f"the rows do not fit memory={format_bytes(self.memory)}"

    def as_array(self, who: str, limit: int | None = None, instead: str = BY_LANDMARKS) -> Array:
        """The rows as one array; a file on disk that is one may be larger than the budget."""
        array = self.source.array
        if array is not None:
            small = not isinstance(array, np.memmap) or array.nbytes <= self.memory
            if limit is None or small:
                return array
        room = self.memory // WHOLE_SHARE if limit is None else limit
        rows = self.source.read(room)
        if rows is not None:
            return rows
        self.source.check_repeatable(f"its rows do not fit memory={format_bytes(self.memory)}")
        raise ValueError(
            f"{who} needs all rows of {self.source.name} at once, and memory="
            f"{format_bytes(self.memory)} is too small to read them. Save them as a .npy file, "
            f"which is used from disk, raise memory, or {instead}."
        )

    def blocks(self) -> Any:
        with self._reading("rows", self._block) as blocks:
            yield from blocks

    def identity(self) -> list:
        """The file with its size and time, or the name; shape, type and the first rows."""
        self.source.check_repeatable("checkpoint= needs rows that can be read again")
        with closing(self.source.blocks(IDENTITY_ROWS)) as blocks:
            first: Any = next(iter(blocks), np.zeros((0, self.shape[1])))
        first = first.toarray() if is_sparse(first) else first
        files = self._files()
        written = [[f.name, f.stat().st_size, f.stat().st_mtime_ns] for f in files]
        return ["blocks", written, self.source.n_rows, self.shape[1], str(self.dtype), first]

    @contextmanager
    def _reading(self, title: str, block: int, start: int = 0) -> Any:
        """The blocks of a pass, with their progress shown, closed whatever happens."""
        total = self.source.likely_rows if self.count is None else self.count
        left = None if total is None else total - start
        with RowBar(self.verbose) as bar, closing(read_blocks(self.source, block, start)) as blocks:
            yield bar.over(blocks, title, left)

    def _one_array(self, parts, tail, dtype) -> np.ndarray:
        """Results of all rows, (n, *tail), or an error where they outgrow the budget."""
        width, count, first = math.prod(tail) * dtype.itemsize, self.count or 0, 0
        results, no_rows = np.empty((0, *tail), dtype), np.empty((0, *tail), dtype)
        for part in chain([no_rows], parts):
            count = max(count, first + len(part))
            check_room(
                f"An array of the results of {count:,} rows",
                count * width,
                self.memory,
                "write scores to a file: transform(..., out='scores.npy')",
            )
            if count > len(results):  # in place: to join blocks takes as much again
                results.resize((count, *tail), refcheck=False)
            results[first : first + len(part)] = part
            first += len(part)
        return results[:first]


def open_blocks(X: Any, how: Opening) -> BlockRows:
    """Rows read in blocks; those of a table that a model was fitted to, by name."""
    rows = BlockRows(X, how.memory, verbose=how.verbose)
    if how.names is not None:
        # A table may hold more columns than those of the fit, in another order.
        reordered = how.names and is_table(X) and rows.names not in (None, how.names)
        return BlockRows(X, how.memory, how.names, how.verbose) if reordered else rows
    if not isinstance(X, RowSource):
        how.check_all_read(
            [f"{name} ({why})" for name, why in rows.source.reasons.items() if why != COUNTER],
            f"{rows.source.name} would be read without",
            "a data frame in memory, such as pandas.read_parquet(path), or "
            "mercer.files.open_source(path, columns=[...]) with the columns of numbers that are "
            "to be used",
        )
    for note in rows.source.notes:
        tell(note, TableWarning)
    return rows


def is_source(X: Array) -> bool:
    """Whether X is read in blocks: a path, a store, an iterator or a function, and no array."""
    if isinstance(X, str | PathLike | RowSource | Iterator) or is_store(X) or is_arrow(X):
        return True
    return callable(X) and not hasattr(X, "shape")
