"""Rows of a Dask array or dataframe: the work is done where the chunks are.

A first pass checks, counts and samples the rows. Landmarks are chosen from the sample here, and a
second pass sums the moments of the chunks in a tree. With all points as the basis the solver runs
here, on vectors, and its products run on the workers.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np

from ..bases.points import DRAFT_SPREAD
from ..compute import (
    TiledEngine,
    format_bytes,
    is_sparse,
    make_engine,
    parse_bytes,
    stack_rows,
)
from ..compute.arrays import Array
from ..fitting.checkpoint import Progress
from ..fitting.choosing import after_words
from ..fitting.costs import SPARE_VECTORS, client_vectors
from ..kernels import Kernel
from ..kernels.measures import WIDTH_SAMPLE
from .base import KEPT_ROWS, Rows
from .chunk_gram import ChunkGram
from .chunks import Chunks, checked
from .functions import Survey, SurveyOf
from .lazy import by_chunks, by_pairs
from .partial_sums import pack, unpack
from .tasks import Crew, constant, delayed, run, tree_sum

# Tiles between two chunks are centered on one of them and not on all rows, so that squared
# norms in them are up to four times those that the spread is judged by.
PAIR_SPREAD = DRAFT_SPREAD / 4
# Groups of chunks after which a sum may be written to a checkpoint, and chunks of one at least.
GROUPS, GROUP_LEAST = 100, 32
# Cores, and bytes of each, for which small chunks are taken together under a checkpoint.
KEPT_CORES, KEPT_ROOM = 128, 2**30
# Rows that tell one collection from another.
IDENTITY_ROWS = 16
# Share of the memory that rows of many small chunks may take to be kept between passes.
KEPT_SHARE = 0.1


class DaskRows(Rows):
    """The rows of a Dask collection.

    Parameters
    ----------
    X : dask array or dataframe
    memory : int, str or None
        Budget of every worker, and of what is done here.
    n_jobs : int or None
        Threads of a task.
    device : str or None
        Where tasks compute.
    """

    kind = "dask"

    def __init__(
        self,
        X: Array,
        memory: int | str | None = None,
        n_jobs: int | None = None,
        device: Any = None,
    ):
        self.original, self.memory = X, memory
        self._chunks = Chunks.of(X)
        self.names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
        self.crew = Crew.of(self._chunks.array, memory, n_jobs, device)
        #: Why a small basis was taken, where that was left to us.
        self.reason: str | None = None
        self._seen: Survey | None = None

    @property
    def shape(self) -> Any:
        """Rows, None where their number is not known, and columns."""
        return self._chunks.count, self._chunks.width

    @property
    def dtype(self) -> Any:
        """The type of the rows."""
        return self._chunks.dtype

    @property
    def sparse(self) -> bool:  # type: ignore[override]
        """Whether chunks are CSR matrices."""
        return self._chunks.sparse

    @property
    def head(self) -> Any:
        """No rows of the same columns, for checks of names and numbers."""
        if self.names is None:
            return np.empty((0, self._chunks.width))
        return self.original._meta

    @property
    def chunks(self) -> Chunks:
        """The chunks with their lengths, which may take a pass to count."""
        if self._chunks.lengths is None:
            self._chunks = self._chunks.counted()
        return self._chunks

    def sum(self, function: Any, title: str = "rows") -> Any:
        """The sums of the chunks, added in a tree."""
        chunks = self._passes if self.checkpoint is None else self._kept_chunks
        if (chunks.count or 0) < 2:
            raise ValueError(
                f"Found array with {chunks.count} sample(s) while a minimum of 2 is required."
            )
        lengths = chunks.lengths or ()
        parts = chunks.map(
            on_chunk,
            self.weights,
            work=constant(function.weighing(None)),
            firsts=[0, *accumulate(lengths)],
            width=chunks.width,
            make=self.crew.engine(len(chunks.filled())),
        )
        some = [part for part, length in zip(parts, lengths, strict=True) if length]
        return self._added(some) if self.checkpoint is None else self._kept_sum(some)

    def _added(self, parts: list) -> Any:
        return run([tree_sum(parts)])[0]

    def _kept_sum(self, parts: list) -> Any:
        """The same in groups of chunks, after each of which the sum so far may be written."""
        stage = self.checkpoint.next_sum() if self.checkpoint is not None else Progress()
        known = stage.header
        group, done = known.get("group", self._group(len(parts))), known.get("chunks", 0)
        total = unpack(known["total"], stage.arrays) if done else None
        while done < len(parts):
            part = self._added(parts[done : done + group])
            total, done = part if total is None else total + part, done + group
            if stage.due or done >= len(parts):
                arrays: list = []
                packed = pack(total, arrays)
                stage.write({"group": group, "chunks": done, "total": packed}, arrays)
        return total

    def _group(self, chunks: int) -> int:
        """Chunks of a group: enough for all workers, and no more than a share of all."""
        return max(GROUP_LEAST, -(-chunks // GROUPS))

    def identity(self) -> list:
        """Lengths of the chunks, type, and some rows of all over."""
        chunks = self.chunks
        places = np.unique(np.linspace(0, (chunks.count or 1) - 1, IDENTITY_ROWS).astype(int))
        rows = self.take(places)
        rows = rows.toarray() if is_sparse(rows) else np.asarray(rows)
        return ["dask", list(chunks.lengths or ()), str(self.dtype), rows]

    def survey(self, size: int) -> Survey:
        """Rows checked, counted and sampled in one pass."""
        if self._seen is None or self._seen.sample.size < min(size, self._seen.count):
            self._seen = self.sum(SurveyOf(size, self.seed))
        return self._seen

    @property
    def kept(self) -> Any:
        """The Dask array."""
        return self._chunks.array

    def batches(self) -> Any:
        """The chunks one after the other, each brought here in its turn."""
        chunks = self._chunks if self._chunks.lengths is None else self._kept_chunks
        for number, block in enumerate(chunks.blocks):
            yield checked(run([block])[0], number, chunks.width)

    def count_rows(self) -> Any:
        """The lengths of the chunks, counted where they are not known."""
        return self.chunks.count or 0

    def whole(self, who: str) -> Any:
        """Not brought here: they may be more than fit."""
        raise ValueError(
            f"{who} needs all rows in one place, and X is a Dask collection. Pass X.compute() if "
            "they fit into memory, or use KernelPCA(basis='landmarks'), which works where the "
            "chunks are."
        )

    def sample(self, size: int, rng: np.random.Generator | None = None) -> Array:
        """Rows by the keys of their numbers."""
        if rng is None:
            return self.survey(size).sample.leading(size).rows
        return self.sum(SurveyOf(size, int(rng.integers(2**62)))).sample.rows

    def candidates(self, size: int) -> Any:
        """The sample, and the row of largest norm where rows were left out of it."""
        seen, rows = self.survey(size), self.sample(size)
        return rows if rows.shape[0] == seen.count else stack_rows([rows, seen.farthest])

    def take(self, index: Array) -> Array:
        """Rows by number, brought here."""
        return self._passes.rows(index)

    def gram(
        self,
        kernel: Kernel,
        engine: TiledEngine,
        rng: np.random.Generator,
        n_components: int | None = None,
    ) -> Any:
        """The Gram matrix by pairs of chunks, which stay on the workers."""
        chunks, held = self._fused, self._held(n_components or 0)
        check_vectors(chunks.count or 0, n_components or 0, engine)
        check = delayed(kernel.check)
        run([check(rows) for _, rows in held.filled()])
        single = kernel.spread(self.candidates(KEPT_ROWS)) <= PAIR_SPREAD
        basis = ChunkGram(kernel, chunks, engine, self.crew, single)
        basis.hold(held)
        basis.keep_in(self.checkpoint)
        return basis

    def for_points(self, required: bool, who: str) -> Any:
        """These, unless the vectors of the exact method do not fit here and nobody asks for it."""
        memory = parse_bytes(self.memory)
        need = client_vectors(self.chunks.count or 0, 0)
        if required or need <= memory:
            return self
        self.reason = (
            f"the exact method keeps {format_bytes(need)} or more of vectors here, and memory "
            f"allows {format_bytes(memory)}"
        )
        return None

    def typical(self) -> Any:
        """The rows on which widths are measured when all are in one place, so that they agree."""
        n = self.chunks.count or 0
        if n <= WIDTH_SAMPLE:
            return self.sample(WIDTH_SAMPLE)
        return self.take(np.sort(np.random.default_rng(0).choice(n, WIDTH_SAMPLE, replace=False)))

    def make_engine(
        self,
        *,
        device: Any = None,
        threads: int | None = None,
        on_tiles: Callable[[int, int], None] | None = None,
    ) -> Any:
        """Threads here: devices are those of the workers."""
        return make_engine(memory=self.memory, threads=threads, on_tiles=on_tiles)

    def map(self, function: Any, out: Any = None, names: Any = None) -> Any:
        """A lazy array with the chunks of the rows, many small ones together."""
        if out is not None:
            raise ValueError(
                f"out={str(out)!r} is written from here, and X is on a cluster. Leave it out and "
                "write from there, for example transform(X).to_zarr('scores.zarr')."
            )
        if isinstance(function.expansion.basis, ChunkGram):
            return by_pairs(function, self._lazy)
        return by_chunks(function, self._lazy, self.crew)

    def explained(self, plan: Any, problem: Any) -> Any:
        """Nothing is kept between products of chunk pairs."""
        tasks = f"by Dask, {self.crew.cores} tasks at a time"
        if self.reason is not None:
            chosen = replace(plan.chosen, method="landmarks")
            reason = f"landmarks: {self.reason}; {tasks}"
            return replace(plan, estimates=(chosen,), chosen=chosen, reason=reason)
        if problem.basis.spans_data:
            basis = problem.basis
            tasks += f"; {after_words(basis.bytes, basis.engine.memory, self.sparse)}"
        if not problem.basis.spans_data or "kept" not in plan.method:
            return replace(plan, reason=f"{plan.reason}; {tasks}")
        free = next(e for e in plan.estimates if e.method == "krylov, matrix-free")
        reason = f"{free.method}: rows stay on the workers, tiles are not kept; {tasks}"
        return replace(plan, chosen=replace(free, solver=plan.solver), reason=reason)

    @cached_property
    def _fused(self) -> Chunks:
        """The chunks, small neighbors in one."""
        return self.chunks.fused(self.crew.cores, self.crew.core_memory)

    @property
    def _lazy(self) -> Chunks:
        """The same where lengths are known; nothing is computed to know them."""
        return self._chunks if self._chunks.lengths is None else self._fused

    @cached_property
    def _kept_chunks(self) -> Chunks:
        """The same on any machine: checkpoints and streams count chunks."""
        return self.chunks.fused(KEPT_CORES, KEPT_ROOM)

    @cached_property
    def _passes(self) -> Chunks:
        """The chunks as passes read them: small ones together, and made once if all are small."""
        chunks = self._fused
        if chunks is self.chunks:
            return chunks
        size = (chunks.count or 0) * chunks.entries * chunks.dtype.itemsize
        room = min(self.crew.cores * self.crew.core_memory, parse_bytes(self.memory))
        return chunks.persisted() if size <= KEPT_SHARE * room else chunks

    @cached_property
    def _persisted(self) -> Chunks:
        """The chunks, computed once and kept where they are."""
        return self._fused.persisted()

    def _held(self, r: int) -> Chunks:
        """Persisted chunks of about equal length."""
        held = self._persisted
        even = held.evened(
            self.crew.cores, self.crew.core_memory, held.entries + 4 * (r + SPARE_VECTORS)
        )
        return held if even is held else even.persisted()


def on_chunk(rows, chunk, weights, work, firsts, width, make):
    """A row function of a checked chunk, with the engine of its task."""
    first = firsts[chunk]
    work = work.moved(make()).weighing(weights, first)
    return work(checked(rows, chunk, width), first)


def check_vectors(n: int, r: int, engine) -> None:
    """Raise ValueError where the vectors of the exact method do not fit here."""
    need = client_vectors(n, r)
    if need > engine.memory:
        raise ValueError(
            f"Exact kernel PCA of {n:,} rows keeps vectors of {format_bytes(need)} on the client, "
            f"and memory allows {format_bytes(engine.memory)}. Use basis='landmarks', or raise "
            "memory."
        )
