"""Hebbian kernel PCA of data that arrive, grow or drift, in a bounded number of points.

The model is a frame over its own points Z: weights b of the mean and A (q, m) of orthonormal
directions. A block of new rows is centered by the current mean and visited by the Hebbian
rule; with T, D from the sweep (see `hebbian`)

    A <- [T A - (D 1) b' | D],      b <- [(1 - w) b | w / size],

so the new points join. When there are more points than the budget, the least useful leave.
What leaves is projected on what stays: with F = [b | A'] and D the points that leave, R
those that stay,

    F_R <- F_R + G_RR^-1 G_RD F_D,   lost = diag F_D' (G_DD - G_DR G_RR^-1 G_RD) F_D,

and `lost` is exactly the squared norm that the mean and the directions lose.
"""

import numpy as np
from scipy.linalg import eigh

from .hebbian import orthonormalize, sweep, whiten

# The gain is this multiple of 1 / (variance of the direction x samples in memory): large enough
# that directions follow a drift within the memory, small enough not to add noise.
PACE = 2.0
# Of the mean norm, so that repeated points leave the Gram matrix invertible: removing one of two
# equal points cancels 1 / JITTER, and half of the digits should be left.
JITTER = 1e-9
# Share of the largest eigenvalue below which a direction of the first rows is rounding.
RANK = 1e-10


class GrowingHebbian:
    """Kernel PCA of a stream: `partial_fit` learns new rows and forgets old ones.

    Parameters
    ----------
    kernel : callable
        ``kernel(X, Z)`` gives the matrix between rows.
    n_components : int
        r.
    forgetting : float, default=0.0
        Weight of each new sample, at least; 0 gives all samples of the stream the same weight,
        f > 0 a memory of about 1 / f samples.
    budget : int, optional
        Most points the model may hold; by default all are kept.
    oversampling : int, default=10
        Further directions carried.
    block : int, default=128
        Rows learned at once.

    Attributes
    ----------
    points : array (m, d)
    frame : array (m, 1 + q)
        Weights of the mean and, as columns, of orthonormal directions, those of largest
        variance first once they have settled.
    variances : array (q,)
        Mean squared outputs over the memory.
    lost : array (1 + q,)
        Squared norms lost to the budget so far, summed: of the mean, relative to the mean
        variance, and of each unit direction. The rule heals such losses, so the sum is an
        upper estimate of the damage.
    count : int
        Samples seen.

    Notes
    -----
    A block of b rows costs b m kernel evaluations and, when points leave, O(m^3 + b m^2)
    operations. The Gram matrix of the points takes m^2 memory.
    """

    def __init__(
        self, kernel, n_components, forgetting=0.0, budget=None, oversampling=10, block=128
    ):
        self.kernel = kernel
        self.n_components = n_components
        self.forgetting = forgetting
        self.budget = budget
        self.oversampling = oversampling
        self.block = block
        self.count = 0

    def partial_fit(self, X):
        """Learn the rows of X (n, d), in their order."""
        first = 0
        if self.count == 0:
            first = min(len(X), max(self.block, 2 * self._carried))
            self._begin(X[:first])
        for start in range(first, len(X), self.block):
            self._learn(X[start : start + self.block])
        return self

    @property
    def metric(self):
        """Inner products of the frame's vectors, (1 + q, 1 + q)."""
        return self.frame.T @ self.G @ self.frame

    def scores(self, X):
        """Coordinates of phi(X) along the r leading directions, from the mean, (n, r)."""
        return self._outputs(self.kernel(X, self.points))[:, : self.n_components]

    @property
    def _carried(self):
        return self.n_components + self.oversampling

    def _outputs(self, K):
        b, A = self.frame[:, 0], self.frame[:, 1:]
        return np.ascontiguousarray((K - self.G @ b) @ A, dtype=np.float64)

    def _begin(self, X):
        """Exact kernel PCA of the first rows."""
        n, q = len(X), self._carried
        self.points, self.G = X, np.asarray(self.kernel(X, X), dtype=np.float64)
        K = self.G - self.G.mean(axis=0)
        K -= K.mean(axis=1)[:, None]
        values, U = eigh((K + K.T) / 2, subset_by_index=(max(0, n - q), n - 1))
        values, U = values[::-1], U[:, ::-1]
        alive = values > RANK * max(values[0], 0)
        self.frame = np.zeros((n, 1 + q))
        self.frame[:, 0] = 1.0 / n
        A = U[:, alive] / np.sqrt(values[alive])
        self.frame[:, 1 : 1 + A.shape[1]] = A - A.mean(axis=0)
        self.variances = np.zeros(q)
        self.variances[: A.shape[1]] = values[alive] / n
        self.variance = max(float(np.trace(K)), 0.0) / n
        self.count, self.lost = n, np.zeros(1 + q)
        self._prune()

    def _learn(self, X):
        """Visit the rows of one block, let them join, and keep to the budget."""
        K, KX = self.kernel(X, self.points), self.kernel(X, X)
        b, size = self.frame[:, 0], len(X)
        C, means = self._outputs(K), K @ b
        KC = np.ascontiguousarray(KX - means[:, None] - means + b @ self.G @ b, dtype=np.float64)
        (T, D), Y = sweep(C, KC, self._rates(), 0.0, 0, 1.0)
        T, D, _ = orthonormalize(T, D, self._gram(), C, KC, np.float64)
        self._join(X, K, KX, T, D)
        w = self._weight(size)
        self.frame[:, 0] = np.concatenate([(1 - w) * b, np.full(size, w / size)])
        self.variances += w * (np.mean(Y**2, axis=1) - self.variances)
        self.variance += w * (float(np.mean(np.diag(KC))) - self.variance)
        self.count += size
        self._prune()

    def _weight(self, size):
        return max(size / (self.count + size), 1 - (1 - self.forgetting) ** size)

    def _rates(self):
        """Gains (q,): PACE / (variance x memory), none above one over the mean variance."""
        pace = PACE * max(1.0 / self.count, self.forgetting)
        floor = max(self.variance, np.finfo(float).tiny)
        return 1.0 / np.maximum(self.variances / pace, floor)

    def _gram(self):
        alive = (self.frame[:, 1:] != 0).any(axis=0)
        return np.diag(alive.astype(np.float64))

    def _join(self, X, K, KX, T, D):
        b, A = self.frame[:, 0], self.frame[:, 1:]
        self.points = np.concatenate([self.points, X])
        self.G = np.block([[self.G, K.T], [K, KX]])
        A = np.vstack([A @ T.T - np.outer(b, D.sum(axis=1)), D.T])
        self.frame = np.hstack([np.zeros((len(A), 1)), A])

    def _prune(self):
        """Let the point leave that costs least, one after the other, down to the budget."""
        over = 0 if self.budget is None else len(self.points) - self.budget
        if over <= 0:
            return
        F, stay, lost = eliminate(self.frame, self.G, self._shares(), over)
        lost[0] /= max(self.variance, np.finfo(float).tiny)
        self.lost += lost
        self.points, self.G = self.points[stay], self.G[np.ix_(stay, stay)]
        A = F[:, 1:]
        F[:, 1:] = A @ whiten(A.T @ self.G @ A, np.float64).T
        self.frame = F

    def _shares(self):
        """Weight of the mean and of each direction in what a point is worth."""
        total = max(self.variance, np.finfo(float).tiny)
        return np.concatenate([[1.0], np.maximum(self.variances, 0)]) / total


def eliminate(F, G, shares, count):
    """Remove `count` rows of the frame F (m, k), each projected on those that stay.

    With P = G^-1, the distance of point j to the span of the others is 1 / P_jj and its
    projection on them has weights -P_ij / P_jj; both follow a removal by a rank-one change of P.

    Returns
    -------
    F : array (m - count, k)
    stay : array (m - count,)
        Indices kept, ascending.
    lost : array (k,)
        Squared norm lost by each column: exact, as the projections are nested.
    """
    F, P = F.copy(), np.linalg.inv(G + JITTER * np.mean(np.diag(G)) * np.eye(len(G)))
    stay, lost = np.ones(len(F), dtype=bool), np.zeros(F.shape[1])
    for _ in range(count):
        costs = np.where(stay, (F**2 @ shares) / np.where(stay, np.diag(P), 1.0), np.inf)
        j = int(np.argmin(costs))
        p = P[j] / P[j, j]
        lost += F[j] ** 2 / P[j, j]
        F -= np.outer(p, F[j])
        P -= np.outer(p, P[j])
        stay[j] = False
    return F[stay], np.flatnonzero(stay), lost
