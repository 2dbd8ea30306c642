"""Hebbian kernel PCA of data that arrive, grow or drift, in a bounded number of points.

The model is a frame over its own points Z: weights b of the mean and A (q, m) of orthonormal
directions. A block of new rows is centered by the current mean and visited by the Hebbian
rule; with T, D from the sweep (see `hebbian`)

    A <- [T A - (D 1) b' | D],      b <- [(1 - w) b | w / size],

so the new rows join. Those that are no news leave at once, and when there are more points
than the budget, the least useful leave (see `leaving`); what both lose is known exactly.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import eigh

from ..compute import stack_rows
from ..compute.arrays import Array
from .leaving import eliminate, novel, project_out
from .rule import orthonormalize, sweep, whiten

# The gain is this multiple of 1 / (variance of the direction x samples in memory): large enough
# that directions follow a drift within the memory, small enough not to add noise.
PACE = 2.0
# Share of the largest eigenvalue below which a direction of the first rows is rounding.
RANK = 1e-10
# Share of the mean norm below which a variance is rounding, and no scale for a gain.
NOTHING = 1e-14
TINY = np.finfo(float).tiny


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
        variance first once they have settled.
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
    O(m^3 + b m^2) operations. The Gram matrix of the points takes m^2 memory. The state changes
    once a block and as a whole, so that an interrupt leaves the model of the block before.
    """

    points: Any
    frame: np.ndarray
    variances: np.ndarray
    variance: float

    def __init__(
        self,
        kernel: Callable[..., Any],
        n_components: int,
        forgetting: float = 1.0,
        budget: int | None = None,
        oversampling: int = 10,
        block: int = 128,
        novelty: float | None = None,
        center: bool = True,
    ):
        self.kernel = kernel
        self.n_components = n_components
        self.forgetting = forgetting
        self.budget = budget
        self.oversampling = oversampling
        self.block = block
        self.novelty = novelty
        self.center = center
        self.count = 0
        self.lost = self.missed = np.zeros(1 + self.carried)

    def partial_fit(self, X: Array) -> "GrowingHebbian":
        """Learn the rows of X (n, d), in their order."""
        first, n = 0, X.shape[0]
        if self.count == 0:
            first = min(n, max(self.block, 2 * self.carried))
            self._begin(X[:first])
        for start in range(first, n, self.block):
            self._learn(X[start : start + self.block])
        return self

    def resume(
        self, points: Array, frame: Array, variances: Array, variance: float, count: int
    ) -> "GrowingHebbian":
        """Go on from a model of `count` samples instead of the first rows of the stream.

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
        F, known = np.zeros((len(frame), 1 + q)), np.zeros(q)
        F[:, : 1 + k], known[:k] = frame[:, : 1 + k], variances[:k]
        G = np.asarray(self.kernel(points, points), dtype=np.float64)
        self._become(
            points,
            G,
            orthonormal_frame(F, G),
            len(F),
            variances=known,
            variance=float(variance),
            count=int(count),
        )
        return self

    @cached_property
    def G(self) -> np.ndarray:
        """The Gram matrix of the points, (m, m): made when it is first needed after `load`."""
        return np.asarray(self.kernel(self.points, self.points), dtype=np.float64)

    @property
    def metric(self) -> Array:
        """Inner products of the frame's vectors, (1 + q, 1 + q)."""
        return self.frame.T @ self.G @ self.frame

    @property
    def leading(self) -> Array:
        """The r directions of largest variance, (r,), largest first."""
        return np.argsort(-self.variances, kind="stable")[: self.n_components]

    def scores(self, X: Array) -> Array:
        """Coordinates of phi(X) along the r leading directions, from the mean, (n, r)."""
        return self._outputs(self.kernel(X, self.points))[:, self.leading]

    @property
    def carried(self) -> int:
        """Directions q: those asked for and the further ones."""
        return self.n_components + self.oversampling

    def _outputs(self, K):
        b, A = self.frame[:, 0], self.frame[:, 1:]
        return np.ascontiguousarray((K - self.G @ b) @ A, dtype=np.float64)

    def _begin(self, X):
        """Exact kernel PCA of the first rows."""
        n, q = X.shape[0], self.carried
        G = np.asarray(self.kernel(X, X), dtype=np.float64)
        K = G
        if self.center:
            K = G - G.mean(axis=0)
            K -= K.mean(axis=1)[:, None]
        values, U = eigh((K + K.T) / 2, subset_by_index=(max(0, n - q), n - 1))
        values, U = values[::-1], U[:, ::-1]
        alive = values > max(RANK * values[0], NOTHING * float(np.trace(G)))
        A = U[:, alive] / np.sqrt(values[alive])
        frame, variances = np.zeros((n, 1 + q)), np.zeros(q)
        if self.center:
            frame[:, 0] = 1.0 / n
            A = A - A.mean(axis=0)
        frame[:, 1 : 1 + A.shape[1]] = A
        variances[: A.shape[1]] = values[alive] / n
        variance = max(float(np.trace(K)), 0.0) / n
        self._become(X, G, frame, 0, variances=variances, variance=variance, count=n)

    def _learn(self, X):
        """Visit the rows of one block, let them join, and keep to the budget."""
        K, KX = self.kernel(X, self.points), self.kernel(X, X)
        b, A, size = self.frame[:, 0], self.frame[:, 1:], X.shape[0]
        C, means = self._outputs(K), K @ b
        KC = np.ascontiguousarray(KX - means[:, None] - means + b @ self.G @ b, dtype=np.float64)
        (T, D), Y = sweep(C, KC, self._rates(), 0.0, 0, 1.0)
        T, D, _ = orthonormalize(T, D, self._gram(), C, KC, np.float64)
        w = self._weight(size)
        mean = np.concatenate([(1 - w) * b, np.full(size, w / size if self.center else 0.0)])
        A = np.vstack([A @ T.T - np.outer(b, D.sum(axis=1)), D.T])
        self._become(
            stack_rows([self.points, X]),
            np.block([[self.G, K.T], [K, KX]]),
            np.hstack([mean[:, None], A]),
            len(b),
            variances=self.variances + w * (np.mean(Y**2, axis=1) - self.variances),
            variance=self.variance + w * (float(np.mean(np.diag(KC))) - self.variance),
            count=self.count + size,
        )

    def _become(self, points, G, frame, known, **learned):
        """Take a new state, without the rows after the `known` ones that are no news."""
        total, lost, missed = max(learned["variance"], TINY), self.lost, self.missed
        scale = np.concatenate([[1 / total], np.ones(self.carried)])
        if self.novelty is not None and known < len(frame):
            frame, stay, loss = project_out(frame, G, *novel(G, known, self.novelty))
            points, (G, frame) = points[stay], restricted(G, frame, stay)
            missed = missed + scale * loss
        if self.budget is not None and len(frame) > self.budget:
            shares = np.concatenate([[1.0], np.maximum(learned["variances"], 0)]) / total
            frame, stay, loss = eliminate(frame, G, shares, len(frame) - self.budget)
            points, (G, frame) = points[stay], restricted(G, frame, stay)
            lost = lost + scale * loss
        vars(self).update(learned, points=points, G=G, frame=frame, lost=lost, missed=missed)

    def _weight(self, size):
        return max(size / (self.count + size), 1 - self.forgetting**size)

    def _rates(self):
        """Gains (q,): PACE / (variance x memory), none above one over the mean variance."""
        if self.variance <= NOTHING * float(np.mean(np.diag(self.G))):
            return np.zeros(self.carried)
        pace = PACE * max(1.0 / self.count, 1 - self.forgetting)
        return 1.0 / np.maximum(self.variances / pace, self.variance)

    def _gram(self):
        alive = (self.frame[:, 1:] != 0).any(axis=0)
        return np.diag(alive.astype(np.float64))


def restricted(G, frame, stay):
    """The Gram matrix of the rows that stay, and their frame with orthonormal directions."""
    G = G[np.ix_(stay, stay)]
    return G, orthonormal_frame(frame, G)


def orthonormal_frame(F, G):
    """F (m, 1 + q) with its directions orthonormal in the Gram matrix G; zero ones stay zero."""
    F, A = F.copy(), F[:, 1:]
    F[:, 1:] = A @ whiten(A.T @ G @ A, np.float64).T
    return F
