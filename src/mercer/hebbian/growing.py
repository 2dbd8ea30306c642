"""Hebbian kernel PCA of data that arrive, grow or drift, in a bounded number of points.

The model is a frame over the points Z of a dictionary: weights b of the mean and A (q, m) of
orthonormal directions. A block of new rows is centered by the current mean and visited by the
Hebbian rule; with T, D from the sweep (see `hebbian`)

    A <- [T A - (D 1) b' | D],      b <- [(1 - w) b | w / size].

If rows are not novel, or there are more points than the budget, the frame is written in coordinates
of a dictionary of the points: rows that do not join count by their projection, the least useful
points are removed, and the loss by both is known exactly.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy.linalg import eigh

from ..compute import Array, self_product, stack_rows
from ..stream.dictionary import GrowingDictionary
from .rule import orthonormalize, sweep, whiten

# The gain is this multiple of 1 / (variance of the direction x samples in memory): large enough
# that directions follow a drift within the memory, small enough not to add noise.
PACE = 2.0
# Share of the largest eigenvalue below which a direction of the first rows is rounding.
RANK = 1e-10
# Share of the mean norm below which a variance is rounding, and no scale for a gain.
NOTHING = 1e-14


@dataclass(eq=False, repr=False)
class GrowingHebbian:
    """Kernel PCA of a stream: `partial_fit` learns new rows and forgets old ones.

    Parameters
    ----------
    kernel : callable
        ``kernel(X, Z)`` gives the matrix between rows.
    n_components : int
        r.
    forgetting : float, default=1.0
        Weight of a row relative to the one after it: 1 gives all samples of the stream the same
        weight, f < 1 a memory of about 1 / (1 - f) samples.
    budget : int, optional
        Most points the model may hold; by default all are kept.
    oversampling : int, default=10
        Further directions carried.
    block : int, default=128
        Rows learned at once.
    novelty : float, optional
        A row joins if more than this share of k(x, x) lies outside the span of the points
        (Ouimet and Bengio 2005). The others are learned from as well: their part in the mean and
        the directions is projected on the points. By default all rows join.
    center : bool, default=True
        Whether to subtract the mean.

    Attributes
    ----------
    points : array (m, d)
    frame : array (m, 1 + q)
        Weights of the mean and, as columns, of orthonormal directions, those of largest
        variance first once they have converged.
    variances : array (q,)
        Mean squared outputs over the memory.
    variance : float
        Mean squared distance to the mean over the memory.
    lost, missed : arrays (1 + q,)
        Squared norms lost so far, to the budget and to rows that did not join, summed: of
        the mean, relative to `variance`, and of each unit direction. The rule heals such losses,
        so the sums are an upper estimate of the damage.
    count : int
        Samples seen.

    Notes
    -----
    A block of b rows costs b m kernel evaluations and, with `novelty` or when points leave,
    O(m^3 + b m^2) operations and m^2 memory. The state changes once a block and as a whole, so that
    an interrupt leaves the model of the block before.
    """

    kernel: Callable[..., Any]
    n_components: Annotated[int, "[1, inf)"]
    forgetting: Annotated[float, "(0, 1]"] = 1.0
    budget: Annotated[int, "[1, inf)"] | None = None
    oversampling: Annotated[int, "[0, inf)"] = 10
    block: Annotated[int, "[1, inf)"] = 128
    novelty: Annotated[float, "[0, 1)"] | None = None
    center: bool = True

    points: Annotated[Any, "n d sparse"] = field(init=False)
    frame: Annotated[np.ndarray, "n 1+q"] = field(init=False)
    variances: Annotated[np.ndarray, "q"] = field(init=False)
    variance: Annotated[float, "(-inf, inf)"] = field(init=False)
    count: Annotated[int, "[0, inf)"] = field(init=False, default=0)
    lost: Annotated[np.ndarray, "1+q"] = field(init=False)
    missed: Annotated[np.ndarray, "1+q"] = field(init=False)
    #: The dictionary of the points, where one was needed.
    span: ClassVar[GrowingDictionary | None] = None

    def __post_init__(self):
        self.lost = self.missed = np.zeros(1 + self.carried)

    def partial_fit(self, X: Array, tiles: Any = None) -> "GrowingHebbian":
        """Learn the rows of X (n, d), in their order; ``tiles(done, n)`` is told of every block."""
        first, n = 0, X.shape[0]
        if self.count == 0:
            first = min(n, max(self.block, 2 * self.carried))
            self._begin(X[:first])
        for start in range(first, n, self.block):
            if tiles is not None:
                tiles(start, n)
            self._learn(X[start : start + self.block])
        return self

    def resume(
        self, points: Array, frame: Array, variances: Array, variance: float, count: int
    ) -> "GrowingHebbian":
        """Continue from a model of `count` samples instead of the first rows of the stream.

        Parameters
        ----------
        points : array (m, d)
        frame : array (m, 1 + k)
            Weights of its mean (zero if not `center`) and, as columns, of its directions.
        variances : array (k,)
            Variances along the directions.
        variance : float
            The total variance.
        count : int
        """
        q = self.carried
        k = min(q, frame.shape[1] - 1)
        F, padded = np.zeros((len(frame), 1 + q)), np.zeros(q)
        F[:, : 1 + k], padded[:k] = frame[:, : 1 + k], variances[:k]
        G = np.asarray(self.kernel(points, points), dtype=float)
        F = with_orthonormal(F, F.T @ G @ F)
        facts = {"variances": padded, "variance": float(variance), "count": int(count)}
        vars(self).update(facts, points=points, frame=F, metric=F.T @ G @ F, span=None)
        return self

    @cached_property
    def metric(self) -> Array:
        """Inner products of the frame's vectors, (1 + q, 1 + q): learned anew after `load`."""
        G = np.asarray(self.kernel(self.points, self.points), dtype=float)
        return self.frame.T @ G @ self.frame

    @property
    def leading(self) -> Array:
        """The r directions of largest variance, (r,), largest first."""
        return np.argsort(-self.variances, kind="stable")[: self.n_components]

    def scores(self, X: Array) -> Array:
        """Coordinates of phi(X) along the r leading directions, from the mean, (n, r)."""
        S = self.kernel(X, self.points) @ self.frame[:, 1:] - self.metric[0, 1:]
        return S[:, self.leading]

    @property
    def carried(self) -> int:
        """Directions q: those asked for and the further ones."""
        return self.n_components + self.oversampling

    def _begin(self, X):
        """Exact kernel PCA of the first rows."""
        n, q = X.shape[0], self.carried
        G = np.asarray(self.kernel(X, X), dtype=float)
        K = G
        if self.center:
            K = G - G.mean(axis=0)
            K -= K.mean(axis=1)[:, None]
        values, U = eigh((K + K.T) / 2, subset_by_index=(max(0, n - q), n - 1))
        values, U = values[::-1], U[:, ::-1]
        alive = values > max(RANK * values[0], NOTHING * float(np.trace(G)))
        A = U[:, alive] / np.sqrt(values[alive])
        W, variances = np.zeros((n, 1 + q)), np.zeros(q)
        if self.center:
            W[:, 0] = 1.0 / n
            A = A - A.mean(axis=0)
        W[:, 1 : 1 + A.shape[1]] = A
        variances[: A.shape[1]] = values[alive] / n
        facts = {"variances": variances, "variance": max(float(np.trace(K)), 0.0) / n, "count": n}
        self._join(X[:0], X, G, np.zeros((n, 0)), np.zeros((0, 1 + q)), W, W.T @ G @ W, facts)

    def _learn(self, X):
        """Learn the rows of one block, add points, and keep to the budget."""
        K, KX = (np.asarray(self.kernel(X, Z), dtype=float) for Z in (self.points, X))
        size, q, F, M = X.shape[0], self.carried, self.frame, self.metric
        P = K @ F
        C, means = np.ascontiguousarray(P[:, 1:] - M[0, 1:]), P[:, 0]
        KC = np.ascontiguousarray(KX - means[:, None] - means + M[0, 0])
        # Gains PACE / (variance x memory), none above one over the mean variance.
        rates = np.zeros(q)
        if self.variance > NOTHING * float(np.mean(np.diag(KX))):
            pace = PACE * max(1.0 / self.count, 1 - self.forgetting)
            rates = 1.0 / np.maximum(self.variances / pace, self.variance)
        (T, D), outputs = sweep(C, KC, rates, 0.0, 0, 1.0)
        alive = np.diag((F[:, 1:] != 0).any(axis=0).astype(float))
        T, D, _ = orthonormalize(T, D, alive, C, KC, np.float64)
        w = max(size / (self.count + size), 1 - self.forgetting**size)
        # The frame becomes F B over the points and W over the new rows.
        B = np.vstack([np.r_[1 - w, -D.sum(axis=1)], np.hstack([np.zeros((q, 1)), T.T])])
        W = np.hstack([np.full((size, 1), w / size if self.center else 0.0), D.T])
        cross = B.T @ (P.T @ W)
        M = B.T @ M @ B + cross + cross.T + W.T @ (KX @ W)
        facts = {
            "variances": self.variances + w * (np.mean(outputs**2, axis=1) - self.variances),
            "variance": self.variance + w * (float(np.mean(np.diag(KC))) - self.variance),
            "count": self.count + size,
        }
        self._join(self.points, X, KX, K, F @ B, W, M, facts)

    def _join(self, points, X, KX, K, F, W, M, facts):
        """Take a new state: weights F over the points and W over rows X, as far as these join."""
        if facts["variance"] <= NOTHING * abs(float(np.mean(np.diag(KX)))):
            facts |= {"variance": 0.0, "variances": np.zeros(self.carried)}
        if self.novelty is None and len(F) + len(W) <= (self.budget or sys.maxsize):
            facts |= {"points": stack_rows([points, X]), "frame": np.vstack([F, W])}
            vars(self).update(facts, metric=M, span=None)
            return
        span = self.span
        if span is None:
            span = GrowingDictionary(self.kernel, self.novelty, sys.maxsize, points[:0])
            span = span.with_all(points) if len(F) else span
        Q = span.unwhiten(F)
        span, Y, joined = span.admit(X, KX, K)
        if not span.size:  # all rows have k(x, x) = 0: one of them is kept
            span, Y = span.with_all(X[:1]), np.zeros((len(W), 1))
        Q = np.pad(Q, ((0, span.size - len(Q)), (0, 0))) + Y.T @ W
        lost, missed = self.lost, self.missed
        # Relative to the variance, where there is any.
        per_variance = 1 / facts["variance"] if facts["variance"] else 1.0
        scale = np.concatenate([[per_variance], np.ones(self.carried)])
        if joined.size < len(W):
            loss = np.einsum("ij,ij->j", W, (KX - self_product(Y.T)) @ W)
            missed, Q = missed + scale * np.maximum(loss, 0.0), with_orthonormal(Q, self_product(Q))
        if self.budget is not None and span.size > self.budget:
            shares = np.concatenate([[1.0], np.maximum(facts["variances"], 0)]) * scale[0]
            leaving = span.least_useful(Q * np.sqrt(shares), span.size - self.budget)
            span, T = span.without(leaving)
            norms, Q = np.einsum("ij,ij->j", Q, Q), T.T @ Q
            loss = norms - np.einsum("ij,ij->j", Q, Q)
            lost, Q = lost + scale * np.maximum(loss, 0.0), with_orthonormal(Q, self_product(Q))
        facts |= {"points": span.points, "frame": span.weights(Q), "metric": self_product(Q)}
        vars(self).update(facts, span=span, lost=lost, missed=missed)


def with_orthonormal(F, M):
    """F, of vectors with inner products M, with all but the first orthonormal; zero ones stay."""
    return np.column_stack([F[:, 0], F[:, 1:] @ whiten(M[1:, 1:], np.float64).T])
