"""Kernel PCA of a stream: moments of rows in a span that is fixed or grows.

Rows are projected on the span there is when they come. What a row has outside of it is lost:
for the rows since the last point joined it is orthogonal to the span, for those before it may
overlap with points that joined later. So the moments of both are kept apart, and `components`
knows what each costs. Of a Fourier grid, trigonometric moments are kept: M numbers and not M^2, and
nothing of a row within its box is lost.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from ..bases import FourierBasis, TrigonometricMoments
from ..compute import array_namespace, format_bytes, is_sparse, on_device_of, to_numpy
from ..fitting.moments import Moments

# Rows taken in at once: enough for GEMM, few enough that rows that may join, whose kernel with
# each other is needed, stay a small matrix.
BLOCK = 512
# Blocks for each thread that are taken in together where the block before had no news; those
# after a row that joins are done again.
STRETCH = 2
# Arrays of block rows times the size of the span that are held at once.
LIVE_ARRAYS = 5
# At most one in this many points is removed at a time.
MOST_LEAVING = 4


class Totals(NamedTuple):
    """What a stream has seen, in numbers.

    Attributes
    ----------
    rows : int
    size : int
        Coordinates of the span.
    joined : int
        Points that have joined, those that left included.
    weight, energy, projected : float
        Sums over the rows of their weights, of k(x, x) and of their squared norms in the span.
    """

    rows: int
    size: int
    joined: int
    weight: float
    energy: float
    projected: float

    @property
    def lost(self) -> float:
        """Energy outside of the span."""
        return max(self.energy - self.projected, 0.0)


@dataclass(frozen=True)
class FixedSpan:
    """The span of given landmarks or of features, which never grows.

    Attributes
    ----------
    vectors : Basis
    whitener : array of shape (m, k) or None
        W with W' G W = I; None where the vectors are orthonormal.
    """

    vectors: Any
    whitener: Annotated[np.ndarray, "m k"] | None

    full, budget = True, 0

    @property
    def size(self) -> int:
        """Number of coordinates k."""
        return self.vectors.size if self.whitener is None else self.whitener.shape[1]

    kernel = property(lambda self: self.vectors.kernel)

    @property
    def rounding(self) -> float:
        """Relative rounding of the coordinates."""
        return float(np.finfo(float).eps) * self.vectors.size

    def basis(self, engine) -> Any:
        """The basis on another engine."""
        return self.vectors.moved(engine)

    def coordinates(self, X) -> np.ndarray:
        """Coordinates of rows, (n, k)."""
        return self.vectors.block_products(X, self.whitener)(slice(0, X.shape[0]))

    def unwhiten(self, A) -> np.ndarray:
        """Coordinates of the sums of basis vectors with weights A = W Q: Q itself, (k, b)."""
        if self.whitener is None:
            return A
        # The columns of W are orthogonal.
        W = self.whitener
        return (W.T @ A) / np.einsum("ij,ij->j", W, W)[:, None]


@dataclass(frozen=True)
class Stream:
    """What is known of the rows so far: O(m^2) numbers, whatever their number.

    Attributes
    ----------
    span : GrowingDictionary or FixedSpan
    early, since : Moments
        Of the rows up to the last point that joined, and of those after it.
    missed : array of shape (m,)
        For each coordinate, the energy that rows lost before its point joined: what they can
        have along it, at most.
    forgetting : float
        Weight of a row relative to the one after it.
    count : int
        Rows seen.
    joined : int
        Points that have joined, those that left included.
    """

    span: Any
    early: Moments
    since: Moments
    missed: Annotated[np.ndarray, "k"]
    forgetting: Annotated[float, "(0, 1]"] = 1.0
    count: Annotated[int, "[0, inf)"] = 0
    joined: Annotated[int, "[0, inf)"] = 0

    #: What rows change, beside the points of a dictionary.
    learned: ClassVar = ("early", "since", "missed", "count", "joined")

    @classmethod
    def start(cls, span, forgetting: float = 1.0) -> "Stream":
        """A stream of no rows yet."""
        m = span.size
        none = Moments(0.0, np.zeros(m), np.zeros((m, m)))
        return cls(span, none, none, np.zeros(m), forgetting)

    @property
    def moments(self) -> Moments:
        """Of all rows."""
        return self.early + self.since

    @property
    def totals(self) -> Totals:
        all_rows = self.moments
        sums = all_rows.count, all_rows.energy, all_rows.projected_energy
        return Totals(self.count, self.span.size, self.joined, *sums)

    def learn(self, X, engine, counts=None) -> "Stream":
        """The stream with the rows of X, in their order.

        `counts` (n,) says how often each of them counts, once for None.
        """
        stream, start, n = self, 0, X.shape[0]
        counts = np.ones(n) if counts is None else counts
        rows, quiet = block_rows(self.span, X.shape[1], engine), False
        while start < n and not stream.span.full:
            before = stream
            if quiet:
                stretch = slice(start, start + STRETCH * engine.threads * rows)
                stream = stream._unless_news(X[stretch], rows, engine, counts[stretch])
                quiet = stream.count > before.count
            else:
                block = slice(start, start + rows)
                with engine.single_blas():
                    stream = stream._grown(as_float(X[block]), counts[block])
                quiet = stream.span is before.span
            start += stream.count - before.count
        if start == n:
            return stream
        weights = counts[start:] * fading(self.forgetting, n - start)
        moments = partial(stream._moments, X[start:] if start else X, weights)
        new = engine.sum_rows(moments, n - start, rows).to_host()
        old = stream._faded(n - start, stream.span.size)
        return replace(old, since=old.since + new)

    def __add__(self, other: "Stream") -> "Stream":
        """The stream of the rows of both; `other` must have the coordinates of this one."""
        both = {name: vars(self)[name] + vars(other)[name] for name in self.learned}
        return replace(self, **both)

    def mapped(self, T) -> "Stream":
        """The same rows with coordinates y T, for T with orthonormal columns."""
        # Directions mix, and each can have missed as much as the one that missed most.
        missed = np.full(T.shape[1], self.missed.max(initial=0.0))
        early, since = self.early.mapped(T), self.since.mapped(T)
        return replace(self, early=early, since=since, missed=missed)

    def without_faded(self) -> tuple["Stream", np.ndarray] | None:
        """The stream without points that fading has left with little, if there is need and such.

        Rows lose the energy E outside a full span of m points. A point that explains less than
        E / m, and nothing else does, makes room for one that may explain more. Rows are
        projected on what is left of the span; what they had beyond is lost, and counts as such.

        Returns
        -------
        stream, T : Stream and array of shape (m, m'), or None
            Coordinates y have become y T.
        """
        span, totals = self.span, self.totals
        if isinstance(span, FixedSpan) or not span.full or span.size < 2:
            return None
        if totals.lost <= span.novelty * totals.energy:
            return None
        values, U = np.linalg.eigh(self.moments.about_zero())
        R = U * np.sqrt(np.maximum(values, 0.0))
        most = max(1, span.size // MOST_LEAVING)
        leaving = span.least_useful(R, most, totals.lost / span.size)
        if not leaving.size:
            return None
        smaller, T = span.without(leaving)
        return replace(self.mapped(T), span=smaller), T

    def _grown(self, X, counts) -> "Stream":
        """The stream with a block of rows, some of which may join the dictionary."""
        n, m = X.shape[0], self.span.size
        span, Y, joined = self.span.admit(X)
        # A row is known by the span there was when it came, itself included.
        Y[:, m:][np.arange(n)[:, None] < joined] = 0.0
        old = self._faded(n, span.size)
        norms = np.asarray(span.kernel.diag(X), dtype=float)
        weights = counts * fading(self.forgetting, n)
        if not joined.size:
            return replace(old, since=old.since + weighted_moments(Y, norms, weights))
        lost = weights * np.maximum(norms - np.einsum("ij,ij->i", Y, Y), 0.0)
        missed = old.early.lost_energy + old.since.lost_energy + np.cumsum(lost)[joined]
        until, after = slice(0, joined[-1] + 1), slice(joined[-1] + 1, None)
        part, rest = (weighted_moments(Y[s], norms[s], weights[s]) for s in (until, after))
        missed = np.concatenate([old.missed[:m], missed])
        early, all_joined = old.early + old.since + part, old.joined + joined.size
        return replace(old, span=span, early=early, since=rest, missed=missed, joined=all_joined)

    def _unless_news(self, X, rows, engine, counts) -> "Stream":
        """The stream with the blocks of X before the first that has a row to join, in parallel."""

        def judged(block):
            weights = counts[block] * fading(self.forgetting, len(counts[block]))
            return [(block, self._moments(X[block], weights, slice(None), unless_news=True))]

        stream, parts = self, engine.sum_rows(judged, X.shape[0], rows)
        for block, moments in sorted(parts, key=lambda part: part[0].start):
            if moments is None:
                break
            stream = stream._faded(block.stop - block.start, self.span.size)
            stream = replace(stream, since=stream.since + moments)
        return stream

    def _moments(self, X, weights, block, unless_news: bool = False) -> Any:
        """The moments of a block of rows in the span as it is.

        With `unless_news` None where one of them would join it.
        """
        X, span = as_float(X[block]), self.span
        Y, norms = span.coordinates(X), as_float(span.kernel.diag(X))
        if unless_news:
            outside = norms - np.einsum("ij,ij->i", Y, Y)
            if (outside > span.least_news(norms)).any():
                return None
        return weighted_moments(Y, norms, weights[block])

    def _faded(self, n, size) -> "Stream":
        """The rows so far as they weigh after n more, with zeros for new coordinates."""
        factor, joining = self.forgetting**n, size - len(self.missed)
        early, since = self.early.scaled(factor), self.since.scaled(factor)
        if joining:
            early, since = (part.padded(joining) for part in (early, since))
        missed = factor * self.missed
        return replace(self, early=early, since=since, missed=missed, count=self.count + n)


@dataclass(frozen=True)
class FourierStream:
    """What is known of the rows so far, on a Fourier grid.

    Attributes
    ----------
    span : FixedSpan
        Of a Fourier basis.
    sums : TrigonometricMoments
    forgetting : float
        Weight of a row relative to the one after it.
    count : int
        Rows seen.
    """

    span: FixedSpan
    sums: TrigonometricMoments
    forgetting: Annotated[float, "(0, 1]"] = 1.0
    count: Annotated[int, "[0, inf)"] = 0

    learned: ClassVar = ("sums", "count")

    @classmethod
    def start(cls, span: FixedSpan, forgetting: float = 1.0) -> "FourierStream":
        """A stream of no rows yet."""
        none = np.zeros(span.vectors.moment_modes, complex)
        return cls(span, TrigonometricMoments(0.0, none, 0.0), forgetting)

    @property
    def totals(self) -> Totals:
        """All energy is in the span, up to the tolerance of the grid."""
        weight = self.sums.count
        energy = weight * self.span.vectors.top
        return Totals(self.count, self.span.size, 0, weight, energy, energy)

    def learn(self, X, engine, counts=None) -> "FourierStream":
        """The stream with the rows of X, in their order, each as often as `counts` says."""
        n, basis = X.shape[0], self.span.basis(engine)
        weights = counts
        if self.forgetting != 1.0:
            weights = (1.0 if counts is None else counts) * fading(self.forgetting, n)
        sums = self.sums.scaled(self.forgetting**n) + basis.moments(X, weights)
        return replace(self, sums=sums, count=self.count + n)

    def __add__(self, other: "FourierStream") -> "FourierStream":
        """The stream of the rows of both."""
        return replace(self, sums=self.sums + other.sums, count=self.count + other.count)

    def without_faded(self) -> None:
        """A grid keeps all of its frequencies."""


def fading(forgetting: float, n: int) -> np.ndarray:
    """Weights of n rows relative to the last one."""
    return forgetting ** np.arange(n - 1, -1, -1, dtype=float)


def block_rows(span, columns: int, engine) -> int:
    """Rows of a block that every thread can hold within the budget."""
    size = max(span.size, span.budget)
    width = 8 * engine.threads * (LIVE_ARRAYS * size + 3 * BLOCK + 4 * columns)
    # The moments of every block in flight and of the stream come out of the same budget.
    room = engine.memory - 8 * size**2 * (STRETCH * engine.threads + LIVE_ARRAYS)
    if room < width:
        raise ValueError(
            f"memory={format_bytes(engine.memory)} cannot hold the moments of {size} coordinates "
            f"and a row. Give at least {format_bytes(engine.memory - room + width)}, or a smaller "
            "budget."
        )
    return int(min(BLOCK if engine.device is None else engine.stream_block, room // width))


def weighted_moments(Y, norms, weights) -> Moments:
    """The moments of rows with weights; Y is overwritten."""
    largest = float(norms.max()) if norms.shape[0] else 0.0
    if norms.shape[0] and (weights == 1.0).all():
        return replace(Moments.of_blocks([Y], float(norms.sum())), largest=largest)
    weights = on_device_of(weights, Y)
    return replace(Moments.weighted(Y, weights, float(weights @ norms)), largest=largest)


def as_float(X):
    """Rows in double precision."""
    if isinstance(X, np.ndarray) or is_sparse(X):
        return X.astype(float, copy=False)
    xp = array_namespace(X)
    return xp.astype(X, xp.float64, copy=False)


def transition(mine, theirs, engine) -> np.ndarray | None:
    """T that takes coordinates y in one span to y T in another with the same vectors.

    None where they are the same.

    Raises
    ------
    ValueError
        If the kernels or the vectors differ.
    """
    a, b = mine.kernel, theirs.kernel
    if type(a) is not type(b) or a.get_params() != b.get_params():
        raise ValueError(f"The models have different kernels, {a} and {b}: they cannot merge.")
    basis, other = mine.basis(engine), theirs.basis(engine)
    one, two = parts_of(basis), parts_of(other)
    if type(basis) is not type(other) or not all(same(one[name], two[name]) for name in one):
        raise ValueError(
            "The models have different landmarks or features, so their moments do not add up. "
            "Give both the same, for example basis=Landmarks(points=first.landmarks_), or "
            "FourierGrid(box=...) for both."
        )
    W, V = mine.whitener, theirs.whitener
    if W is None or (W.shape == V.shape and np.array_equal(W, V)):
        return None
    return V.T @ to_numpy(basis.gram(W))


def parts_of(basis) -> dict[str, Any]:
    """What tells the vectors of one basis from those of another of its kind."""
    if isinstance(basis, FourierBasis):
        return vars(basis.frequencies)
    return vars(basis.features) if basis.points is None else {"points": basis.points}


def same(a, b) -> bool:
    """Whether two arrays, sparse matrices or numbers are equal."""
    if is_sparse(a) and is_sparse(b):
        return a.shape == b.shape and (a != b).nnz == 0
    return not is_sparse(a) and not is_sparse(b) and np.array_equal(to_numpy(a), to_numpy(b))
