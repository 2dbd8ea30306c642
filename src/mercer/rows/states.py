"""States: what an engine that mercer does not know sums up over rows, wherever they are.

A fit makes a few passes over rows, each the sum of one row function. `KernelPCA.partial` is its
value for some rows, `merge` adds up those of all, and `KernelPCA.advance` goes on with the sum. The
fit is the same as of other rows: those are `SummedRows`, which know nothing but the sums so far,
and end the fit with `NextPass` where it needs another one. The next time it comes as far again, and
a digest of what it made on the way (the landmarks, for one) tells sums of anything else.
"""

import pickle
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from functools import reduce
from hashlib import blake2b
from operator import add
from typing import Any

import numpy as np

from .._packages import needed
from ..compute import is_sparse, to_numpy
from ..fitting.checkpoint import digest, identity_of, sealed, unsealed
from ..fitting.functions import CountOf, pack, unpack
from ..fitting.moments import ExtraColumn, RowFunction
from .base import Rows

#: Changes whenever sums of one release may not be added to those of another.
STATE_VERSION = 1
# Binary digits for the rows of a batch, behind those of a hash that stands for its place.
BATCH_BITS = 26
# What the columns beside the rows are called, and what a fit calls the pass that ends it.
WEIGHTS, MOMENTS = "sample_weight", "summing moments"


@dataclass(frozen=True)
class Layout:
    """What batches must have in common.

    Attributes
    ----------
    model : str
        A digest of the class and the parameters that the result depends on.
    width : int
        Columns.
    columns : list of str or None
        Their names, where they have any.
    dtype : str
        Type of the results.
    extras : list of str
        What stands beside the rows: "y", "sample_weight".
    version : int
    """

    model: str
    width: int
    columns: list[str] | None
    dtype: str
    extras: list[str]
    version: int = STATE_VERSION

    def check(self, other: "Layout") -> None:
        """Raise ValueError that says in what other batches differ."""
        for name, what, advice in DIFFERENCES:
            one, another = getattr(self, name), getattr(other, name)
            if one != another:
                got = "" if name == "model" else f": {one!r:.300} and {another!r:.300}"
                raise ValueError(f"States come from {what}{got}. {advice}")


DIFFERENCES = (
    ("version", "releases of mercer whose sums differ", "Install the same one on all workers."),
    ("model", "models with other parameters", "Make all of them with `partial` of one model."),
    ("columns", "rows with other columns", "Select the same columns of every batch, in one order."),
    ("width", "rows with other numbers of columns", "Pass the same columns of every batch."),
    ("dtype", "rows of other types", "Convert all batches to one of them."),
    ("extras", "batches with other y or sample_weight", "Pass them with every batch or with none."),
)


@dataclass(frozen=True)
class State:
    """The sums of one pass of a fit over some rows; it is pickled, or written by ``bytes``.

    Attributes
    ----------
    stage : str
        "survey" while rows are counted and sampled, "moments" in the pass that ends the fit.
    n_rows : int
    layout : Layout
    made : str
        A digest of the row function that was summed.
    value : object
        Its sum; None where there were no rows.
    """

    stage: str
    n_rows: int
    layout: Layout
    made: str
    value: Any

    def __add__(self, other: "State") -> "State":
        self.layout.check(other.layout)
        if self.made != other.made:
            raise ValueError(
                f"States come from different passes: {self.stage!r} and {other.stage!r}, or from "
                "models that took in other states before. Merge those of one pass of one model."
            )
        values = [value for value in (self.value, other.value) if value is not None]
        total = reduce(add, values) if values else None
        return replace(self, n_rows=self.n_rows + other.n_rows, value=total)

    def __bytes__(self) -> bytes:
        """The state for any place that keeps bytes; `merge` reads it, and executes nothing."""
        arrays: list = []
        facts = {"layout": asdict(self.layout), "value": pack(self.value, arrays)}
        return sealed(vars(self) | facts, arrays)

    @classmethod
    def from_bytes(cls, data: Any) -> "State":
        """The state that ``bytes(state)`` wrote."""
        data = bytes(data)
        try:
            facts, arrays = unsealed(data)
            layout, value = Layout(**facts["layout"]), unpack(facts["value"], arrays)
            return cls(**facts | {"layout": layout, "value": value})
        except Exception as error:  # what damaged bytes raise is not documented
            raise ValueError(
                f"{len(data):,} bytes are no state of mercer, or a damaged one ({error!s:.200}). "
                "Pass what bytes(model.partial(batch)) gave."
            ) from error


def merge(states: Iterable[State | bytes]) -> State:
    """Add states of batches up to the state of all rows; merged states can be merged again.

    Parameters
    ----------
    states : iterable of State or bytes
        What `KernelPCA.partial` gave for every batch, in any order, each batch once; or
        ``bytes`` of it.

    Returns
    -------
    State

    Raises
    ------
    ValueError
        Where states are of other models, passes, columns or releases, or bytes are damaged.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer
    >>> X = np.random.default_rng(0).random((600, 3))
    >>> basis = mercer.bases.Landmarks(50)
    >>> model = mercer.KernelPCA(2, kernel="rbf", basis=basis, random_state=0)
    >>> while model.stage != "fitted":
    ...     states = [model.partial(batch) for batch in np.array_split(X, 7)]
    ...     print(model.advance(mercer.merge(states)).stage)
    moments
    fitted
    """
    total: Any = None
    for state in states:
        if isinstance(state, bytes | bytearray | memoryview):
            state = State.from_bytes(state)
        if not isinstance(state, State):
            raise TypeError(
                f"merge takes what model.partial(batch) gives, and got a {type(state).__name__}."
            )
        total = state if total is None else total + state
    if total is None:
        raise ValueError("There are no states to merge. Pass one for every batch of rows.")
    return total


@dataclass(frozen=True)
class Step:
    """The pass that a fit needs next, for the model to carry to those who make it.

    Attributes
    ----------
    stage : str
    function : RowFunction
    made : str
        Its digest.
    layout : Layout
    states : tuple of State
        Sums of the passes before.
    """

    stage: str
    function: RowFunction
    made: str
    layout: Layout
    states: tuple[State, ...]

    def state_of(self, blocks: Iterable, extras: dict[str, Any], engine: Any, first: Any) -> State:
        """The state of rows that come in blocks, with arrays of what stands beside all of them."""
        function, total, count = self.function.moved(engine), None, 0
        extras = {name: column_of(name, values) for name, values in extras.items()}
        for block in blocks:
            if not block.shape[0]:
                continue
            first = numbered(block) if first is None else int(first)
            last = count + block.shape[0]
            columns = {name: values[count:last] for name, values in extras.items()}
            number = first + count
            value = function.with_columns(columns, number)(block, number)
            total, count = value if total is None else total + value, last
        for name, values in extras.items():
            if len(values) != count:
                raise ValueError(
                    f"{name} has {len(values):,} values for {count:,} rows. Give one for each row."
                )
        return State(self.stage, count, self.layout, self.made, total)


class NextPass(Exception):
    """Ends a fit that needs one more pass.

    Attributes
    ----------
    step : Step
    """

    def __init__(self, step: Step):
        super().__init__(step.stage)
        self.step = step


class SummedRows(Rows):
    """Rows that are known by their sums alone.

    Parameters
    ----------
    layout : Layout
    states : tuple of State
        Sums of the passes that were made, in order.
    """

    _elsewhere = True
    _title = "the merged states"

    def __init__(self, layout: Layout, states: tuple[State, ...] = ()):
        self.layout, self.states, self.names, self._passes = layout, states, layout.columns, 0

    @property
    def shape(self) -> Any:
        # Not known before the first pass, in a fit that comes by again as well.
        return self.states[0].n_rows if self._passes else None, self.layout.width

    @property
    def dtype(self) -> Any:
        return np.dtype(self.layout.dtype)

    @property
    def extras(self) -> dict[str, ExtraColumn]:
        """What stands beside the rows, as parameters of a fit."""
        return {name: named_column(name) for name in self.layout.extras}

    def sum(
        self, function: Any, title: str = "rows", *, again: bool = False, checkpoint: Any = None
    ) -> Any:
        """The sum that is there, or `NextPass`."""
        if isinstance(function, CountOf):  # which each state knows; no fit needs it before
            return self.states[0].n_rows if self.states else 2
        buffers: list = []
        pickle.dumps(function, protocol=5, buffer_callback=buffers.append)
        arrays = [np.frombuffer(buffer.raw(), np.uint8) for buffer in buffers]
        kind = [type(part).__name__ for part in getattr(function, "functions", (function,))]
        made = identity_of(asdict(self.layout), self._passes, kind, digest(arrays))
        place, self._passes = self._passes, self._passes + 1
        if place == len(self.states):
            stage = "moments" if title == MOMENTS else "survey"
            raise NextPass(Step(stage, function, made, self.layout, self.states))
        state, first = self.states[place], self.states[0]
        if state.made != made:
            raise ValueError(
                f"The state does not fit the model as it is now. It is of another pass "
                f"({state.stage!r}), or the models took in other states, or they did so on "
                "machines whose last digits differ. Make states with `partial` of "
                "this model, and call `advance` on one machine with the same memory."
            )
        if state.n_rows != first.n_rows or state.n_rows < 2:
            raise ValueError(
                f"States of {state.n_rows:,} rows were merged for this pass, and of "
                f"{first.n_rows:,} for the first one. Each pass needs the states of all rows, two "
                "at least, each once."
            )
        return state.value

    def _refuse(self, who: str) -> Any:
        raise ValueError(
            f"{who} needs the rows themselves, and of merged states only sums are known. Use "
            "landmarks or random features, and leave out what needs more, such as a checkpoint."
        )

    def _for_points(self, who: str, required: bool) -> Rows:
        return self._refuse(who) if required else self

    def map(self, function: Any, out: Any = None, names: Any = None) -> Any:
        return self._refuse("transform")

    def as_basis(self, kernel: Any, engine: Any, n_components: int | None) -> str:
        return "of merged states only sums are known"

    def as_array(self, who: str, limit: int | None = None, instead: str = "") -> Any:
        return self._refuse(who)

    def take(self, index: Any) -> Any:
        return self._refuse("A choice of rows by number")

    def blocks(self) -> Any:
        return self._refuse("A fit from row to row")

    def identity(self) -> Any:
        return self._refuse("checkpoint=")


def named_column(name: str) -> ExtraColumn:
    """Placeholder for a column beside rows that are elsewhere."""
    return ExtraColumn(name, is_weight=name == WEIGHTS)


def column_of(name: str, values: Any) -> np.ndarray:
    """The values of such a column for a batch, checked."""
    pa = needed("pyarrow", "files")
    try:
        column = pa.array(np.asarray(values))
    except ValueError as error:  # of values in two dimensions, or of several types
        raise ValueError(
            f"{name} of a batch must be one label or number for each row ({error})."
        ) from error
    return named_column(name).values(column, "A batch", 0)


def numbered(rows: Any) -> int:
    """A number for the first of some rows, derived from their values."""
    array = rows.data if is_sparse(rows) else to_numpy(rows)
    hashed = blake2b(np.ascontiguousarray(array).data, digest_size=4).digest()
    return int.from_bytes(hashed, "big") << BATCH_BITS
