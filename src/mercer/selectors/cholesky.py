"""Landmarks as the pivots of a partial Cholesky factorization, K ~ L' L.

After k pivots the diagonal of R = K - L'L holds every row's squared distance to their span.
Only n k entries of K are ever formed; memory is the factor, k x n, where the rows are.
"""

import numpy as np

from ..compute import array_namespace, on_device_of, self_product, to_numpy
from ..compute.arrays import Array, placement_of, some_of
from ..kernels import Kernel
from ..kernels.base import wide_row_squares
from . import base


class PivotedCholesky(base.Selector):
    """Pivots proposed by the residual of each row, and added to a partial Cholesky factor."""

    independent = reads_chosen = True
    atom_bytes = 12
    method = "plain"

    def _propose(self, factor, rng):
        """Rows that may be the next pivots."""
        raise NotImplementedError

    def select(self, kernel: Kernel, X: Array, size: int, rng: np.random.Generator) -> Array:
        """Choose `size` pivots; O(n size^2) flops, n size kernel values and as much memory."""
        factor, distinct = PartialCholesky.of_kernel(kernel, X, size), base.Distinct(X)
        pivots: list[int] = []
        while len(pivots) < min(size, X.shape[0]) and factor.residual.any():
            proposals = self._propose(factor, rng)
            fresh = distinct.fresh(proposals)
            factor.residual[proposals[~fresh]] = 0
            chosen, C = self._thin(factor, proposals[fresh], rng)
            b = min(len(chosen), size - len(pivots))
            if b:
                factor.extend(chosen[:b], C[:b, :b])
            pivots.extend(p for p in chosen[:b] if distinct.admit(p))
        return base.as_indices(pivots)

    def _thin(self, factor, proposals, rng):
        """Pivots to add next, (b,), and the Cholesky factor of R among them, (b, b)."""
        if len(proposals) < 2:
            return proposals, np.sqrt(to_numpy(factor.residual[proposals]))[:, None]
        floor, H = to_numpy(factor.floor[proposals]), factor.block(proposals)
        # In single precision R computed afresh can be at rounding where its recurrence is not.
        factor.residual[proposals[H.diagonal() <= floor]] = 0
        share = rng.random(len(proposals)) if self.method == "accelerated" else 0
        thresholds = np.maximum(share * to_numpy(factor.residual[proposals]), floor)
        chosen, C = independent_rows(H, thresholds)
        return proposals[chosen], C


class RPCholesky(PivotedCholesky):
    """Pivots drawn with probability proportional to their residual, R_ii / tr R.

    Needs no pool and no full matrix: the choice when all n rows should be candidates, or when
    more than a third of a pool would be chosen. Between `Uniform` and `FullGreedy` in error.

    Parameters
    ----------
    method : {"accelerated", "block", "plain"}
        "plain" updates after every pivot. "accelerated" proposes a block, thins it by
        rejection so that the survivors have exactly the law of "plain", and adds them by
        GEMM. "block" keeps the whole block, which is a little worse where rows crowd.
    block : int or None
        Proposals in a block; None lets them grow with the number of atoms.

    References
    ----------
    Chen, Epperly, Tropp & Webber (2025), Randomly pivoted Cholesky. Epperly, Tropp & Webber
    (2024), Embrace rejection: kernel matrix approximation by accelerated randomly pivoted Cholesky.
    """

    method: str = "accelerated"
    block: int | None = None

    def _propose(self, factor, rng):
        """One row or a block of them, with probability proportional to R_ii."""
        # Few atoms: large blocks are mostly rejected. Many: GEMM needs at least a few dozen
        # rows, and more than that gains nothing. Prefixes would differ by the size asked for.
        width = min(self.block or max(8, min(factor.rank // 4, 128)), factor.residual.shape[0])
        return draw(factor.residual, 1 if self.method == "plain" else width, rng)


class GreedyCholesky(PivotedCholesky):
    """Pivots of largest residual: complete pivoting, deterministic.

    Chooses outliers: on noisy data worse than random rows. For interpolation of
    smooth kernels in few dimensions, where its bound on the largest residual matters.

    References
    ----------
    Fine & Scheinberg (2001), Efficient SVM training using low-rank kernel representations.
    """

    def _propose(self, factor, rng):
        return np.array([int(factor.residual.argmax())])


def draw(weights, count, rng):
    """`count` independent indices with probability proportional to `weights`."""
    xp, sums = array_namespace(weights), weights.cumsum(0)
    places = xp.searchsorted(sums, on_device_of(rng.random(count), sums) * sums[-1], side="right")
    # A product that rounds up to the total would fall behind the last weight.
    return np.minimum(to_numpy(places), int(xp.nonzero(weights)[0][-1]))


def independent_rows(H, floor, most=None):
    """At most `most` rows outside the span of those before them, and their Cholesky factor.

    H (n, n) is the Gram matrix of the parts of the rows outside a given span. A row is taken if
    more than floor (n,) of its squared norm is also outside the rows taken before it.
    """
    chosen: list[int] = []
    most = len(H) if most is None else min(most, len(H))
    V, left = np.empty((most, len(H))), H.diagonal().copy()
    for i in range(len(H)):
        b = len(chosen)
        if b < most and left[i] > floor[i]:
            V[b] = (H[i] - V[:b, i] @ V[:b]) / np.sqrt(left[i])
            left -= V[b] ** 2
            chosen.append(i)
    return base.as_indices(chosen), np.tril(V[: len(chosen), chosen].T)


class PartialCholesky:
    """A factor L (k, n) grown by pivots, and the diagonal of what it leaves.

    Parameters
    ----------
    columns : callable
        ``columns(pivots, rows)`` gives a fresh K[pivots][:, rows], rows a slice or indices.
    diagonal : array (n,)
        Says where the factor is to be.
    capacity : int
        Most pivots that will be added.
    dtype : dtype
        Of the factor; the residual is kept in double precision.
    """

    def __init__(self, columns, diagonal, capacity, dtype):
        xp, n = array_namespace(diagonal), diagonal.shape[0]
        self.columns = columns
        self.L = xp.empty((min(capacity, n), n), dtype=dtype, **placement_of(diagonal))
        self.rank = 0
        self.residual = xp.clip(xp.asarray(diagonal, dtype=xp.float64), 0, None)
        self.floor = base.residual_floor(self.residual, dtype)

    @classmethod
    def of_kernel(cls, kernel, X, capacity):
        """Columns computed from the rows of X when they are asked for."""
        dtype, diagonal = kernel(X[:1], X[:1]).dtype, on_device_of(kernel.diag(X), X)
        return cls(lambda p, rows: kernel(X[p], some_of(X, rows)), diagonal, capacity, dtype)

    @classmethod
    def of_matrix(cls, K, capacity):
        """Columns of a Gram matrix at hand."""
        return cls(lambda p, rows: K[p][:, rows], K.diagonal(), capacity, K.dtype)

    def block(self, pivots):
        """R among the pivots, (b, b), in double precision and main memory."""
        A = self.L[: self.rank, pivots]
        return to_numpy(self.columns(pivots, pivots)).astype(np.float64) - to_numpy(self_product(A))

    def append(self, pivot):
        """Add one pivot; returns the new row of the factor, (n,)."""
        self.extend(np.array([pivot]), np.sqrt([[float(self.residual[pivot])]]))
        return self.L[self.rank - 1]

    def extend(self, pivots, C):
        """Add several pivots at once, C (b, b) being the lower Cholesky factor of their R."""
        k, b = self.rank, len(pivots)
        A = self.L[:k, pivots].T
        for rows in base.row_tiles(self.L, self.L.shape[1]):
            R = self.columns(pivots, rows)
            R -= A @ self.L[:k, rows]
            V = base.solve_lower(C, R)
            self.L[k : k + b, rows] = V
            left = self.residual[rows] - wide_row_squares(V.T)
            self.residual[rows] = array_namespace(left).where(left > self.floor[rows], left, 0.0)
        self.rank += b
        self.residual[pivots] = 0
