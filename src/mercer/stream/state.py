"""A stream along its rows: they join the moments, faded points leave, and signs keep a reference.

At fixed numbers of rows, whatever the batches, the stream looks for points that have faded, and
the signs of its components get a new reference.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

import numpy as np

from ..compute import match_sparsity
from ..compute.engine import TiledEngine
from ..compute.linalg import self_product
from ..fitting.expansion import KernelExpansion
from ..fitting.functions import RowSample
from .components import new_reference
from .dictionary import GrowingDictionary
from .moments import FourierStream, Stream, Totals

# References for the signs while the number of rows doubles: with 2 some were seen to flip.
PER_OCTAVE = 8
# Rows of the first: fewer often have equal eigenvalues, whose directions are arbitrary.
FIRST_REFERENCE = 16
# References while a stream that forgets replaces its rows, and rows between two at least: each is
# a small eigenproblem.
PER_MEMORY, LEAST_STEP = 2, 128
# Rows between two looks for faded points, as a share of the memory of the stream, and its bounds.
LOOKS, LOOK_ROWS = 0.5, (32, 2048)


@dataclass(frozen=True)
class State:
    """What a stream keeps: moments, a sample of rows, and the reference that signs follow."""

    stream: Stream | FourierStream
    sample: RowSample
    reference: KernelExpansion | None

    def learned(self) -> tuple:
        """What rows have changed, for a checkpoint; the rest follows from the first of them."""
        stream, span, reference = self.stream, self.stream.span, self.reference
        return (
            (span.points, span.factor) if isinstance(span, GrowingDictionary) else None,
            tuple(vars(stream)[name] for name in stream.learned),
            self.sample,
            None if reference is None else (reference.frame, reference.metric),
        )

    def resumed(self, learned: Any, engine: TiledEngine) -> "State":
        """What this state, the one before the first row, had become."""
        grown, values, sample, directions = learned
        span: Any = self.stream.span
        if grown is not None:
            span = replace(span, points=grown[0], factor=grown[1])
        facts: dict[str, Any] = dict(zip(self.stream.learned, values, strict=True))
        reference = None if directions is None else KernelExpansion(span.basis(engine), *directions)
        return State(replace(self.stream, span=span, **facts), sample, reference)

    def with_settings(self, novelty: float | None, budget: int, forgetting: float) -> "State":
        """The state with settings that may have changed since the last batch."""
        span: Any = self.stream.span
        if isinstance(span, GrowingDictionary) and (span.novelty, span.budget) != (novelty, budget):
            span = replace(span, novelty=novelty, budget=budget)
        return replace(self, stream=replace(self.stream, span=span, forgetting=forgetting))


class BatchRecord(NamedTuple):
    """What one batch did to the model.

    Attributes
    ----------
    rows : int
    n_samples_seen : int
        With this batch.
    size : int
        Coordinates of the model: points of the dictionary or features.
    joined : int
        Points that joined.
    lost_share : float
        Share of the energy of these rows that lies outside the span: high where the
        dictionary does not know such rows, as after a drift with the budget used up.
    left : int
        Points that left, which they do only where a stream forgets.
    """

    rows: Annotated[int, "[0, inf)"]
    n_samples_seen: Annotated[int, "[0, inf)"]
    size: Annotated[int, "[0, inf)"]
    joined: Annotated[int, "[0, inf)"]
    lost_share: Annotated[float, "(-inf, inf)"]
    left: Annotated[int, "[0, inf)"] = 0


def record(before: Totals, after: Totals, fading: float = 1.0) -> BatchRecord:
    """What the rows between two states of a stream did; weights of older rows fell by `fading`."""
    energy = after.energy - fading * before.energy
    lost = max(after.lost - fading * before.lost, 0.0)
    share = min(lost / energy, 1.0) if energy > 0 else 0.0
    joined = after.joined - before.joined
    left = joined - (after.size - before.size)
    return BatchRecord(after.rows - before.rows, after.rows, after.size, joined, share, left)


def states_along(
    state: State, X, counts, engine, n_components: int, center: bool, start: int = 0
) -> Iterator[tuple[int, State]]:
    """The states of a stream on the way through the rows of X, each with the rows that are done.

    `counts` says how often each row counts; the first `start` rows are known already.
    """
    stream, sample, reference = state.stream, state.sample, state.reference
    forgetting = stream.forgetting
    stream.span.kernel.check(X)
    X = match_sparsity(X, sample.rows)
    n = X.shape[0]
    while start < n:
        to_look = rows_to_look(stream.count, forgetting)
        to_reference = rows_to_reference(stream.count, forgetting)
        stop = min(n, start + to_look, start + to_reference)
        part = X[start:stop]
        part_counts = None if counts is None else counts[start:stop]
        sample = sample.add(part, stream.count, forgetting, part_counts)
        stream = stream.learn(part, engine, part_counts)
        smaller = stream.without_faded() if stop - start == to_look else None
        if smaller is not None:
            before, (stream, T) = stream.span, smaller
            if reference is not None:
                # Projected on the smaller span: T takes coordinates in the one before to it.
                span, Q = stream.span, T.T @ before.unwhiten(reference.frame)
                frame, metric = span.weights(Q), self_product(Q)
                reference = KernelExpansion(span.basis(engine), frame, metric)
        if stream.span.size and stop - start == to_reference:
            reference = new_reference(stream, engine, n_components, center, reference)
        start = stop
        yield start, State(stream, sample, reference)


def rows_to_look(count: int, forgetting: float) -> int:
    """Rows until points may leave next: a function of the number of rows, not of batches."""
    if forgetting == 1:
        return sys.maxsize
    step = int(np.clip(LOOKS / (1 - forgetting), *LOOK_ROWS))
    return step - count % step


def rows_to_reference(count: int, forgetting: float) -> int:
    """Rows until the signs get a new reference: of the number of rows, not of batches."""
    if count < FIRST_REFERENCE:
        return FIRST_REFERENCE - count
    step = 2 ** (count.bit_length() - 1) // PER_OCTAVE
    if forgetting < 1:
        memory = int(max(LEAST_STEP, 1 / (1 - forgetting) / PER_MEMORY))
        step = min(step, 2 ** (memory.bit_length() - 1))
    return step - count % step
