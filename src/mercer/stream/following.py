"""A stream along its rows: they join the moments, faded points leave, and signs keep a reference.

At fixed numbers of rows, whatever the batches, the stream looks for points that have faded, and
the signs of its components get a new reference.
"""

from collections.abc import Iterator
from typing import Any

from ..compute import match_sparsity
from ..compute.arrays import Array
from ..compute.engine import TiledEngine
from .components import moved_reference, new_reference
from .dictionary import GrowingDictionary
from .moments import rows_to_look
from .state import State, to_checkpoint


def follow(
    state: State,
    X: Array,
    counts: Array | None,
    engine: TiledEngine,
    *,
    n_components: int,
    center: bool,
    start: int = 0,
) -> Iterator[tuple[int, State]]:
    """The states of a stream on the way through the rows of X, each with the rows that are done.

    `counts` says how often each row counts; the first `start` rows are known already.
    """
    stream: Any = state.stream
    sample, reference = state.sample, state.reference
    forgetting = stream.forgetting
    stream.span.kernel.check(X)
    X = match_sparsity(X, sample.rows)
    n = X.shape[0]
    while start < n:
        wait = (to_checkpoint, rows_to_look)
        stop = min(n, start + min(rows(stream.count, forgetting) for rows in wait))
        part = X[start:stop]
        sample = sample.add(part, stream.count, forgetting)
        stream = stream.learn(part, engine, None if counts is None else counts[start:stop])
        if rows_to_look(stream.count - 1, forgetting) == 1:
            stream, reference = without_faded(stream, reference, center, engine)
        if stream.span.size and to_checkpoint(stream.count - 1, forgetting) == 1:
            reference = new_reference(stream, n_components, center, engine, reference)
        start = stop
        yield start, State(stream, sample, reference)


def without_faded(stream: Any, reference: Any, center: bool, engine: TiledEngine) -> tuple:
    """The stream and its reference without points that only forgotten rows were like."""
    grows = isinstance(stream.span, GrowingDictionary)
    found = stream.without_faded() if grows else None
    if found is None:
        return stream, reference
    smaller, T = found
    if reference is not None:
        reference = moved_reference(smaller, stream.span, T, reference, center, engine)
    return smaller, reference
