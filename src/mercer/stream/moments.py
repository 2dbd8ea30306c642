"""Kernel PCA of a stream: moments of rows in a span that is fixed or grows.

Rows are projected on the span there is when they come. What a row has outside of it is lost:
for the rows since the last point joined it is orthogonal to the span, for those before it may
overlap with points that joined later. So the moments of both are kept apart, and `reading` knows
what each costs.
"""

import sys
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..bases import Basis, FourierBasis
from ..compute import array_namespace, format_bytes, is_sparse, on_device_of, to_numpy
from ..fitting.moments import Moments

# Rows taken in at once: enough for GEMM, few enough that rows that may join, whose kernel with
# each other is needed, stay a small matrix.
BLOCK = 512
# Blocks for each thread that are taken in together where the block before had no news; those
# after a row that joins are done again.
STRETCH = 2
# Arrays of a block by the size of the span that are alive at once.
LIVE_ARRAYS = 5
# A point leaves when it explains less than this share of what the dictionary loses for each of its
# points; at most one in so many at a time.
FADED, MOST_LEAVING = 0.5, 4
# Rows between two looks for such points, as a share of the memory of the stream, and its bounds.
LOOKS, LOOK_ROWS = 0.5, (32, 2048)


@dataclass(frozen=True)
class FixedSpan:
    """The span of given landmarks or of random features, which never grows.

    Attributes
    ----------
    vectors : Basis
    whitener : array of shape (m, k) or None
        W with W' G W = I; None where the vectors are orthonormal.
    """

    vectors: Any
    whitener: np.ndarray | None

    full = True
    #: Points that it may grow to.
    budget = 0

    @classmethod
    def of(cls, basis: Basis) -> "FixedSpan":
        """The span of a basis."""
        return cls(basis, basis.whitener(np.float64))

    @property
    def size(self) -> int:
        """Number of coordinates k."""
        return self.vectors.size if self.whitener is None else self.whitener.shape[1]

    @property
    def exact(self) -> bool:
        """Whether inner products are those of the kernel."""
        return self.vectors.exact_norms

    @property
    def kernel(self):
        """The kernel of the basis."""
        return self.vectors.kernel

    @property
    def rounding(self) -> float:
        """Relative rounding of the coordinates."""
        return float(np.finfo(float).eps) * self.vectors.size

    def basis(self, engine) -> Basis:
        """The basis on another engine."""
        vectors = copy(self.vectors)
        vectors.engine = engine
        return vectors

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
    missed: np.ndarray
    forgetting: float = 1.0
    count: int = 0
    joined: int = 0

    @classmethod
    def start(cls, span, forgetting: float = 1.0) -> "Stream":
        """A stream of no rows yet."""
        none = no_rows(span.size)
        return cls(span, none, none, np.zeros(span.size), forgetting)

    @property
    def moments(self) -> Moments:
        """Of all rows."""
        return self.early + self.since

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
                stop = start + STRETCH * engine.threads * rows
                stream = stream._unless_news(X[start:stop], rows, engine, counts[start:stop])
                quiet = stream.count > before.count
            else:
                with engine.single_blas():
                    some = slice(start, start + rows)
                    stream = stream._grown(as_float(X[some]), counts[some])
                quiet = stream.span is before.span
            start += stream.count - before.count
        return stream._followed(X[start:], rows, engine, counts[start:]) if start < n else stream

    def __add__(self, other: "Stream") -> "Stream":
        """The stream of the rows of both; `other` must have the coordinates of this one."""
        return replace(
            self,
            early=self.early + other.early,
            since=self.since + other.since,
            missed=self.missed + other.missed,
            count=self.count + other.count,
            joined=self.joined + other.joined,
        )

    def mapped(self, T) -> "Stream":
        """The same rows with coordinates y T, for T with orthonormal columns."""
        # Directions mix, and each can have missed as much as the one that missed most.
        missed = np.full(T.shape[1], self.missed.max(initial=0.0))
        early, since = self.early.mapped(T), self.since.mapped(T)
        return replace(self, early=early, since=since, missed=missed)

    def without_faded(self) -> tuple["Stream", np.ndarray] | None:
        """The stream without points that fading has left with little, if there is need and such.

        Rows lose the energy E outside a full span of m points. A point that explains far less
        than E / m, and nothing else does, makes room for one that may explain more. Rows are
        projected on what is left of the span; what they had beyond is lost, and counts as such.

        Returns
        -------
        stream, T : Stream and array of shape (m, m'), or None
            Coordinates y have become y T.
        """
        moments, span = self.moments, self.span
        if not span.full or moments.lost_energy <= span.novelty * moments.energy:
            return None
        M = moments.about_zero()
        share = FADED * moments.lost_energy / span.size
        losses = span.losses(M)
        leaving = np.argsort(losses, kind="stable")[: max(1, span.size // MOST_LEAVING)]
        leaving = leaving[losses[leaving] < share]
        while leaving.size:
            smaller, T = span.without(leaving)
            # Points that explain the same rows lose little one by one, and much together.
            lost = float(np.trace(M) - np.einsum("ij,ik,kj->", T, M, T))
            if lost <= 2 * share * leaving.size and smaller.size:
                return replace(self.mapped(T), span=smaller), T
            leaving = leaving[: leaving.size // 2]
        return None

    def _grown(self, X, counts) -> "Stream":
        """The stream with a block of rows, some of which may join the dictionary."""
        span, Y, joined = self.span.admit(X)
        old = self._faded(X.shape[0], span.size)
        norms = np.asarray(span.kernel.diag(X), dtype=float)
        weights = counts * self._weights(X.shape[0])
        if not joined.size:
            return replace(old, since=old.since + weighted_moments(Y, norms, weights))
        lost = weights * np.maximum(norms - np.einsum("ij,ij->i", Y, Y), 0.0)
        missed = old.early.lost_energy + old.since.lost_energy + np.cumsum(lost)[joined]
        until, after = slice(0, joined[-1] + 1), slice(joined[-1] + 1, None)
        part = weighted_moments(Y[until], norms[until], weights[until])
        return replace(
            old,
            span=span,
            early=old.early + old.since + part,
            since=weighted_moments(Y[after], norms[after], weights[after]),
            missed=np.concatenate([old.missed[: self.span.size], missed]),
            joined=old.joined + joined.size,
        )

    def _unless_news(self, X, rows, engine, counts) -> "Stream":
        """The stream with the blocks of X before the first that has a row to join, in parallel."""
        n, span = X.shape[0], self.span

        def judged(block):
            part = as_float(X[block])
            Y, norms = span.coordinates(part), np.asarray(span.kernel.diag(part), dtype=float)
            news = span.candidates(Y, norms).size
            weights = counts[block] * self._weights(len(Y))
            return [(block, None if news else weighted_moments(Y, norms, weights))]

        stream = self
        for block, moments in sorted(engine.sum_rows(judged, n, rows), key=lambda b: b[0].start):
            if moments is None:
                break
            stream = stream._faded(block.stop - block.start, span.size)
            stream = replace(stream, since=stream.since + moments)
        return stream

    def _followed(self, X, rows, engine, counts) -> "Stream":
        """The stream with rows of which none can join, in parallel."""
        n, span = X.shape[0], self.span
        weights = counts * self._weights(n)

        def moments(block):
            part = as_float(X[block])
            norms = as_float(span.kernel.diag(part))
            return weighted_moments(span.coordinates(part), norms, weights[block])

        old = self._faded(n, span.size)
        return replace(old, since=old.since + engine.sum_rows(moments, n, rows).to_host())

    def _faded(self, n, size) -> "Stream":
        """The rows so far as they weigh after n more, with zeros for new coordinates."""
        factor = self.forgetting**n
        return replace(
            self,
            early=extended(self.early.scaled(factor), size),
            since=extended(self.since.scaled(factor), size),
            missed=factor * self.missed,
            count=self.count + n,
        )

    def _weights(self, n):
        """Weights of n rows relative to the last."""
        return self.forgetting ** np.arange(n - 1, -1, -1, dtype=float)


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
    if 0 in Y.shape:
        empty = no_rows(Y.shape[1])
        energy = float(weights @ to_numpy(norms))
        return replace(empty, count=float(weights.sum()), energy=energy)
    largest = float(norms.max())
    if (weights == 1.0).all():
        return replace(Moments.of_blocks([Y], float(norms.sum())), largest=largest)
    if (
        weights.sum() == 0.0
    ):  # forgotten so long ago that their weights are below the smallest number
        return no_rows(Y.shape[1])
    weights = on_device_of(weights, Y)
    return replace(Moments.weighted(Y, weights, float(weights @ norms)), largest=largest)


def rows_to_look(count: int, forgetting: float) -> int:
    """Rows until points may leave next: a function of the number of rows, not of batches."""
    if forgetting == 1:
        return sys.maxsize
    step = int(np.clip(LOOKS / (1 - forgetting), *LOOK_ROWS))
    return step - count % step


def no_rows(size: int) -> Moments:
    """The moments of no rows."""
    return Moments(0.0, np.zeros(size), np.zeros((size, size)))


def extended(moments: Moments, size: int) -> Moments:
    """The same rows with further coordinates, all zero."""
    more = size - len(moments.mean)
    if not more:
        return moments
    mean, scatter = np.pad(moments.mean, (0, more)), np.pad(moments.scatter, (0, more))
    return replace(moments, mean=mean, scatter=scatter)


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
    basis = mine.basis(engine)
    if not same_vectors(basis, theirs.basis(engine)):
        raise ValueError(
            "The models have different landmarks or features, so their moments do not add up. "
            "Give both the same, for example basis=Landmarks(points=first.landmarks_), or "
            "FourierGrid(box=...) for both."
        )
    W, V = mine.whitener, theirs.whitener
    if W is None or (W.shape == V.shape and np.array_equal(W, V)):
        return None
    return V.T @ to_numpy(basis.gram(W))


def same_vectors(a, b) -> bool:
    """Whether two bases are of the same points or the same features."""
    if type(a) is not type(b):
        return False
    if isinstance(a, FourierBasis):
        mine, theirs = vars(a.frequencies), vars(b.frequencies)
        return all(same(value, theirs[name]) for name, value in mine.items())
    mine, theirs = (
        vars(basis.features) if basis.points is None else {"points": basis.points}
        for basis in (a, b)
    )
    return all(same(value, theirs[name]) for name, value in mine.items())


def same(a, b) -> bool:
    """Whether two arrays, sparse matrices or numbers are equal."""
    if is_sparse(a) and is_sparse(b):
        return a.shape == b.shape and (a != b).nnz == 0
    return not is_sparse(a) and not is_sparse(b) and np.array_equal(to_numpy(a), to_numpy(b))
