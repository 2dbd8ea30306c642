"""Moments: count, mean and scatter of rows, which merge.

The moments of two sets of rows give those of their union (Chan, Golub & LeVeque 1983), so
files read in blocks, batches of a stream, threads and clusters are all the same sum.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Annotated, Any

import numpy as np

from ..bases import Whitening
from ..compute import TiledEngine, array_namespace, on_device_of, self_product, to_numpy
from ..compute.arrays import placement_of
from ..exceptions import InvalidRowsError

# Blocks of rows whose products add up in place before their moments are merged.
MERGED_BLOCKS = 8


@dataclass(frozen=True)
class ExtraColumn:
    """A column beside rows that have no order, such as their weights: known where the rows are.

    Attributes
    ----------
    name : str
    is_weight : bool
    count : int
        Rows, once they are counted.
    """

    name: str
    is_weight: bool = False
    count: int = 0

    def __len__(self) -> int:
        return self.count

    def all(self) -> bool:
        """True: no row is left out, whatever its weight."""
        return True

    def values(self, column: Any, place: str, start: int) -> np.ndarray:
        """The entries of an Arrow column; InvalidRowsError names the row of one that is missing."""
        values = column.to_numpy(zero_copy_only=False)
        what, bad = "null, NaN or infinity", np.asarray(column.is_null())
        if values.dtype.kind == "f":
            bad |= ~np.isfinite(values)
        if self.is_weight and not bad.any():
            if values.dtype.kind not in "biuf":
                raise InvalidRowsError(f"The weights in column {self.name!r} must be numbers.")
            values = values.astype(float)
            what, bad = "a negative weight", values < 0
        if bad.any():
            raise InvalidRowsError(
                f"{place} of X holds {what} in column {self.name!r}, first in its row "
                f"{start + int(bad.argmax()):,} (counted from 0). Leave out such rows first."
            )
        return values


class RowFunction(ABC):
    """A picklable function of a block of rows."""

    #: How often each row counts, (n,), where that matters.
    weights: np.ndarray | None = None

    @abstractmethod
    def __call__(self, rows, first: int) -> Any:
        """Its value for the rows number first, first + 1, ..."""

    def moved(self, engine: TiledEngine) -> "RowFunction":
        """The same function where another engine works."""
        return self

    def weighing(self, weights: np.ndarray | None, start: int = 0) -> "RowFunction":
        """The same with the weights of rows number start, start + 1, ..., where it has any."""
        return self

    def with_columns(self, columns: dict[str, np.ndarray], start: int) -> "RowFunction":
        """The same with the extra columns of the rows from number `start` on."""
        weights = self.weights
        if not isinstance(weights, ExtraColumn):
            return self
        return self.weighing(columns[weights.name], start)


@dataclass(frozen=True)
class WeightedFunction(RowFunction):
    """A function of weighted rows; `weights` are those of rows number start, start + 1, ..."""

    basis: Any
    weights: np.ndarray | None = field(default=None, kw_only=True)
    start: int = field(default=0, kw_only=True)

    def moved(self, engine):
        return replace(self, basis=self.basis.moved(engine))

    def weighing(self, weights, start=0):
        return replace(self, weights=weights, start=start)

    def weights_of(self, rows, first: int):
        """The weights of the rows number first, first + 1, ...; None where there are none."""
        if self.weights is None:
            return None
        return self.weights[first - self.start : first - self.start + rows.shape[0]]


@dataclass(frozen=True)
class Moments:
    """Moments of weighted rows, in float64 and where the rows were.

    Attributes
    ----------
    count : float
        Number of rows, or their weight.
    mean : array of shape (m,)
    scatter : array of shape (m, m)
        Sum of outer products of the rows' differences from the mean.
    energy : float
        Sum of k(x, x) over the rows: the squared norms before they were projected. A number on a
        device stays there, so that nothing waits for it.
    largest : float
        The largest k(x, x).
    """

    count: Annotated[float, "[0, inf)"]
    mean: Annotated[Any, "m"]
    scatter: Annotated[Any, "m m"]
    energy: Annotated[Any, "(-inf, inf)"] = 0.0
    largest: Annotated[Any, "(-inf, inf)"] = 0.0

    @classmethod
    def of_blocks(
        cls, blocks: Iterable, energy: Any = 0.0, weights: Iterable | None = None
    ) -> "Moments":
        """The moments of rows that come in blocks, which are overwritten.

        `weights` has an array (n,) for every block, or is None for rows that all count once.

        Rows that count alike are taken about the mean of the first block, which is close enough
        to their own; a few that count for far more than others may be anywhere, and blocks of
        rows with weights are each taken about their own mean.
        Products are by matmul: it takes half of the work where both factors are the same rows,
        and, unlike SciPy's BLAS, it lets other threads run meanwhile.
        """
        if weights is not None:
            parts = (cls.weighted(Y, w) for Y, w in zip(blocks, weights, strict=True))
            return replace(reduce(add, parts), energy=energy)
        count: Any = 0
        shift = np.zeros(0)
        scatter: Any = np.zeros((0, 0))
        total: Any = np.zeros(0)
        for Y in blocks:
            xp, first = array_namespace(Y), count == 0
            if first:
                # As it is subtracted, so that the mean takes back just that.
                shift = xp.asarray(xp.mean(Y, axis=0, dtype=xp.float64), dtype=Y.dtype)
            Y -= shift
            added = xp.sum(Y, axis=0, dtype=xp.float64)
            count, total = count + Y.shape[0], added if first else total + added
            if first:
                scatter = xp.asarray(self_product(Y), dtype=xp.float64)
            else:
                scatter += self_product(Y)
        offset = total / (count or 1)
        scatter -= outer(offset, total)
        return cls(float(count), shift + offset, scatter, energy)

    @classmethod
    def weighted(cls, Y: Any, w: Any, energy: Any = 0.0) -> "Moments":
        """The moments of rows Y, (n, m), with weights w, (n,); Y is overwritten.

        About their own mean, so that neither a large mean nor a large weight costs digits.
        """
        xp = array_namespace(Y)
        w = xp.asarray(on_device_of(w, Y), dtype=xp.float64)
        count = float(w.sum())
        if not count:
            return cls(0.0, np.zeros(Y.shape[1]), np.zeros((Y.shape[1], Y.shape[1])), energy)
        share = xp.asarray(w / count, dtype=Y.dtype)
        mean = xp.zeros(Y.shape[1], dtype=xp.float64, **placement_of(Y))
        # The second time takes out what rounding left of the mean.
        for _ in range(2):
            shift = share @ Y
            Y -= shift
            mean += shift
        Z = Y * xp.asarray(w, dtype=Y.dtype)[:, None]
        scatter = xp.asarray(Z.T @ Y, dtype=xp.float64)
        # Rounding leaves the triangles unequal, and eigensolvers read only one.
        return cls(count, mean, (scatter + scatter.T) / 2, energy)

    def __sizeof__(self):
        # A cluster's scheduler asks for it before it moves one.
        return object.__sizeof__(self) + 8 * (self.mean.size + self.scatter.size)

    def __add__(self, other: "Moments") -> "Moments":
        """The moments of both sets of rows together."""
        # No rows on one side, as before the first batch of a stream: nothing to be added up.
        if not other.count and not other.energy:
            return self
        if not self.count and not self.energy:
            return other
        count, shift = self.count + other.count, other.mean - self.mean
        share = other.count / (count or 1.0)
        scatter = self.scatter + other.scatter
        scatter += outer(shift, shift * (self.count * share))
        mean = self.mean + shift * share
        largest = max(self.largest, other.largest)
        return Moments(count, mean, scatter, self.energy + other.energy, largest)

    def scaled(self, factor: float) -> "Moments":
        """The same rows with less weight, for data that drift."""
        if factor == 1.0:
            return self
        count, energy = self.count * factor, self.energy * factor
        return replace(self, count=count, scatter=self.scatter * factor, energy=energy)

    def padded(self, more: int) -> "Moments":
        """The same with coordinates that are zero."""
        mean, scatter = (np.pad(A, (0, more)) for A in (self.mean, self.scatter))
        return replace(self, mean=mean, scatter=scatter)

    def mapped(self, W) -> "Moments":
        """The moments of the rows y W, for W of shape (m, k)."""
        W = on_device_of(W, self.scatter)
        scatter = W.T @ (self.scatter @ W)
        # Rounding leaves the triangles unequal, and eigensolvers read only one.
        return replace(self, mean=self.mean @ W, scatter=(scatter + scatter.T) / 2)

    def moved(self, place: Callable) -> "Moments":
        """The same numbers in arrays that `place` makes of them."""
        return replace(self, mean=place(self.mean), scatter=place(self.scatter))

    def to_host(self) -> "Moments":
        """The same numbers as NumPy arrays, for the small problem that they are made for."""
        mean, scatter = to_numpy(self.mean), to_numpy(self.scatter)
        return Moments(self.count, mean, scatter, float(self.energy), float(self.largest))

    def about_zero(self):
        """Sum of outer products of the rows themselves, (m, m)."""
        return self.scatter + self.count * outer(self.mean, self.mean)

    @property
    def projected_energy(self) -> float:
        """Sum of the rows' squared norms."""
        spread = float(array_namespace(self.scatter).linalg.trace(self.scatter))
        return spread + self.count * float(self.mean @ self.mean)

    @property
    def lost_energy(self) -> float:
        """The trace of what the projection left out, never negative."""
        return max(float(self.energy) - self.projected_energy, 0.0)


def outer(a, b):
    """a b', (m, m)."""
    return a[:, None] * b[None, :]


def side_by_side(P, Q):
    """Columns P, and behind them Q in their type and where they are."""
    xp = array_namespace(P)
    return xp.concat([P, xp.asarray(on_device_of(Q, P), dtype=P.dtype)], axis=1)


@dataclass(frozen=True)
class MomentsOf(WeightedFunction):
    """Moments of rows against a basis; `finished` makes those of coordinates of their sum.

    Each row counts as often as its weight says, once where there are none.
    """

    whitening: Whitening

    def further_columns(self, first: int, count: int) -> Callable[[slice], Any] | None:
        """Columns that follow the coordinates of rows number first, ..., first + count - 1.

        A function of blocks among these rows, (b, q); None where there are no such columns.
        """
        return None

    def __call__(self, rows, first):
        self.basis.kernel.check(rows)
        weights = self.weights_of(rows, first)
        columns: Any = self.further_columns(first, rows.shape[0])
        X = self.basis.engine.place(rows)
        basis, products = self.whitening.summands(self.basis, X)
        step, n = basis.product_rows(X), X.shape[0]

        def moments(block):
            starts = range(block.start, block.stop, step)
            parts = [slice(start, min(start + step, block.stop)) for start in starts]
            of_each, norms = None, basis.kernel.diag(X[block])
            largest, energy = norms.max(), norms
            if weights is not None:
                energy = on_device_of(weights[block], norms) * norms
                of_each = map(weights.__getitem__, parts)
            blocks = map(self.whitening.parted, map(products, parts))
            if columns is not None:
                blocks = map(side_by_side, blocks, map(columns, parts))
            return replace(Moments.of_blocks(blocks, energy.sum(), of_each), largest=largest)

        # Tasks small enough that every thread gets some.
        most = max(step, n // (4 * basis.engine.threads))
        return basis.engine.sum_rows(moments, n, min(MERGED_BLOCKS * step, most)).to_host()

    def finished(self, moments: Moments) -> Moments:
        """The moments of coordinates from the sum over all blocks."""
        late = self.whitening.late
        if late is None:
            return moments
        return moments.moved(self.basis.engine.asarray).mapped(late).to_host()
