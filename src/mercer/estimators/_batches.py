"""Batches of a stream: those of whatever X is, and how far a fit has come with them."""

from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

import numpy as np

from ..compute import is_sparse, to_numpy
from ..files import is_arrow
from ..fitting.checkpoint import Checkpoint, Progress
from ..fitting.partial_sums import pack, unpack
from ..rows import BlockRows, DaskRows, is_dask, is_source
from ..rows.array import ArrayRows
from ..selectors import Novelty
from ..stream.moments import Totals
from ..stream.state import BatchRecord, State
from ._door import checked_weights, in_main_memory, named_rows

# Batches that `history_` remembers: an endless stream must not fill the memory.
HISTORY = 1000


def batches_of(X, memory, n_jobs, verbose) -> Any:
    """The batches of an iterator, of a list of 2D arrays, a file or Dask; an array is one."""
    if is_several(X) or (isinstance(X, Iterator) and not is_arrow(X)):
        return filter(has_rows, X)
    if is_dask(X):
        return DaskRows(X, memory, n_jobs).blocks()
    if is_source(X):
        rows = BlockRows(X, memory, verbose=verbose)
        return (named_rows(batch, rows.names, X) for batch in rows.blocks())
    return [X]


def identified(X, who: str, memory, n_jobs) -> Any:
    """The rows of a fit that may be killed and go on, which says what they are."""
    if is_several(X):
        return Several([ArrayRows(in_main_memory(b, who)) for b in X])
    if isinstance(X, Iterator) and not is_arrow(X):
        raise ValueError(
            "checkpoint= needs batches that can be read again, and an iterator can be read "
            "only once. Pass a list of batches, a file or a function that returns an iterator."
        )
    if is_dask(X):
        return DaskRows(X, memory, n_jobs)
    if is_source(X):
        return BlockRows(X, memory)
    return ArrayRows(np.asarray(X) if isinstance(X, list | tuple) else as_rows(X))


def counted(X, sample_weight) -> tuple[Any, Any]:
    """Rows that count and how often each does, None where all count alike."""
    counts = checked_weights(sample_weight, X.shape[0], least=0)
    if counts is None or counts.all():
        return X, counts
    some = np.flatnonzero(counts)
    return X[some], counts[some]


def novelty_threshold(novelty: Any, example: float) -> float | None:
    """The share of k(x, x) from which a row is new, as a number or a `Novelty` gives it."""
    if not isinstance(novelty, Novelty):
        return novelty
    if novelty.threshold is None:
        raise ValueError(
            "novelty=Novelty() has no threshold to tell new rows by. Give one, for example "
            f"Novelty(threshold={example})."
        )
    return novelty.threshold


def ahead(batches):
    """The first batch, or None, and all of them."""
    waiting = iter(batches)
    some = list(islice(waiting, 1))
    return (some[0] if some else None), chain(some, waiting)


class StreamLog:
    """Where a stream leaves how far it has come, every minute, and finds what it has left.

    Attributes
    ----------
    batch : int
        The batch to go on with.
    """

    def __init__(self, checkpoint: Checkpoint | None):
        self.progress = Progress() if checkpoint is None else checkpoint.next_loop()
        self.batch, self._row = (self.progress.header.get(key, 0) for key in ("batch", "row"))
        self._before: Any = None

    def resume(self, state: State, history: list, engine) -> tuple[State, list]:
        """The state and the history as they were left."""
        if not self.progress.header:
            return state, history
        known = unpack(self.progress.header["state"], self.progress.arrays)
        learned, before, lines = known
        self._before = Totals(*before)
        return state.resumed(learned, engine), [BatchRecord(*line) for line in lines]

    def begun(self, number: int, stream) -> tuple[Totals, int]:
        """What the stream had seen before a batch, and the rows of the batch that are done."""
        if self._before is not None and number == self.batch:
            return self._before, self._row
        return stream.totals, 0

    def note(self, number: int, before, history: list, row: int, state: State) -> None:
        """Write the state, where it is time for that."""
        if self.progress.due:
            arrays: list = []
            lines = [tuple(line) for line in history[-HISTORY:]]
            packed = pack((state.learned(), before, lines), arrays)
            self.progress.write({"batch": number, "row": row, "state": packed}, arrays)


class Several:
    """A list of batches, as far as it tells one from another."""

    weights: Any = None

    def __init__(self, batches: list[ArrayRows]):
        self.batches = batches

    def identity(self) -> list:
        """That of all of them."""
        return [batch.identity() for batch in self.batches]


def is_several(X) -> bool:
    """Whether X is a list of 2D arrays."""
    return bool(isinstance(X, list | tuple) and X and all(np.ndim(batch) == 2 for batch in X))


def as_rows(X):
    """An array or a CSR matrix of whatever has rows."""
    return X.tocsr() if is_sparse(X) else np.asarray(to_numpy(X))


def has_rows(batch) -> bool:
    """Whether a batch is not plainly empty; what has no shape is for the checks to judge."""
    return np.shape(batch)[:1] != (0,)
