"""What a stream leaves behind, and what every batch did to it."""

from dataclasses import fields, replace
from typing import Any, NamedTuple

from ..fitting.expansion import KernelExpansion
from ..fitting.sampling import RowSample
from .dictionary import GrowingDictionary
from .fourier import FourierStream
from .moments import Stream

# References for the signs while the number of rows doubles: with 2 some were seen to flip.
PER_OCTAVE = 8
# Rows of the first: fewer often have equal eigenvalues, whose directions are anyone's guess.
FIRST_REFERENCE = 16
# References while a stream that forgets replaces its rows, and rows between two at least: each is
# a small eigenproblem.
PER_MEMORY, LEAST_STEP = 2, 128


class State(NamedTuple):
    """What a stream leaves behind: moments, a sample of rows, and what signs follow."""

    stream: Stream | FourierStream
    sample: RowSample
    reference: KernelExpansion | None


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

    rows: int
    n_samples_seen: int
    size: int
    joined: int
    lost_share: float
    left: int = 0


def record(
    before: Stream | FourierStream, after: Stream | FourierStream, kept: float
) -> BatchRecord:
    """What the rows between two states of a stream did; the older ones weigh `kept` now."""
    rows, old, new = after.count - before.count, before.moments, after.moments
    energy = new.energy - kept * old.energy
    lost = max(new.lost_energy - kept * old.lost_energy, 0.0)
    share = min(lost / energy, 1.0) if energy > 0 else 0.0
    grown = after.span.size - before.span.size
    joined = after.joined - before.joined
    return BatchRecord(rows, after.count, after.span.size, joined, share, joined - grown)


def to_checkpoint(count: int, forgetting: float = 1.0) -> int:
    """Rows until the signs get a new reference.

    A function of the number of rows alone, so that signs do not depend on batches.
    """
    if count < FIRST_REFERENCE:
        return FIRST_REFERENCE - count
    step = 2 ** (count.bit_length() - 1) // PER_OCTAVE
    if forgetting < 1:
        memory = int(max(LEAST_STEP, 1 / (1 - forgetting) / PER_MEMORY))
        step = min(step, 2 ** (memory.bit_length() - 1))
    return step - count % step


def facts_of(stream: Stream | FourierStream) -> tuple:
    """What of a stream its rows have changed; the rest follows from the first of them."""
    span = stream.span
    grown = (span.points, span.factor) if isinstance(span, GrowingDictionary) else None
    return grown, *(getattr(stream, name) for name in learned_names(stream))


def with_facts(stream: Stream | FourierStream, facts: Any) -> Any:
    """The stream that a stream at its start had become."""
    (grown, *learned), span = facts, stream.span
    if grown is not None:
        span = replace(span, points=grown[0], factor=grown[1])
    named: dict[str, Any] = dict(zip(learned_names(stream), learned, strict=True))
    return replace(stream, span=span, **named)


def learned_names(stream: Stream | FourierStream) -> list[str]:
    """The attributes that rows change, but for the span."""
    return [one.name for one in fields(stream) if one.name not in ("span", "forgetting")]


def facts_of_state(state: State) -> tuple:
    """The same of all that a stream leaves behind."""
    seen = None if state.reference is None else (state.reference.frame, state.reference.metric)
    return facts_of(state.stream), state.sample, seen


def state_with(state: State, facts: Any, engine: Any) -> State:
    """The state that the one before the first row had become."""
    stream, sample, seen = facts
    stream = with_facts(state.stream, stream)
    reference = None
    if seen is not None:
        reference = KernelExpansion(stream.span.basis(engine), *seen)
    return State(stream, sample, reference)
