"""Gram power: the columns of the Gram matrix as samples of a covariance-free PCA.

K and K^2 = sum of K(x_t) K(x_t)' have the same eigenvectors, so the rows of K, each made when
its turn comes, can be fed to an incremental PCA of plain vectors. One row at a time this is
the published algorithm, equations 11 and 12,

    w_i <- (n - 1 - a)/n w_i + (1 + a)/n K_i (K_i . w_i/|w_i|),   K_{i+1} = K_i - (K_i . u_i) u_i,

with u_i = w_i/|w_i| after its update and a the amnesic parameter of Weng, Zhang and Hwang.
A block P of rows at a time, the update is a truncated singular value decomposition of

    [ sqrt((1 - g) L) U' ; sqrt(g / b) K_P ]

with g = b/n: all rows weigh the same, and one pass is nearly the exact K^2.

Reference: Shi, Guo, Xue (2009), Efficient kernel principal component analysis algorithm for
large-scale data set, Journal of Software 20(8).
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ..compute import array_namespace, dtype_name, on_device_of, self_product, to_numpy
from ..operators.base import padded
from . import base
from .base import Eigenpairs, column_norms, inner, qr, silent, small_eigh, times

FETCH = 128  # rows read at once where they are used one at a time
# Residuals, as shares of the largest eigenvalue, of vectors from which no product leads elsewhere.
EXACT = 1e-6
MOST_PRODUCTS = 100  # a spectrum that needs more is one for block Krylov
TINY = np.finfo(float).tiny


@dataclass(eq=False, repr=False)
class GramPower(base.Solver):
    """Leading eigenpairs from one pass over the rows, and a product for the residuals.

    A pass costs n^2 kernel evaluations (rows are read whole, so symmetry saves nothing), the
    Rayleigh-Ritz product after it n^2 again, or n^2 / 2 where the operator uses symmetry, and
    centering, which rows need first, as much. Rows are in single precision where the operator
    has a draft. Memory: 3 (r + oversampling) n + 3 block n.
    Choose it when the spectrum decays and two readings of the kernel are all one can afford:
    on USPS digits it is 10^-7 from the best reconstruction. For flat spectra use `BlockKrylov`.

    Parameters
    ----------
    block : int, default=128
        Rows an update. 1 is the published algorithm: rows in their order, no oversampling.
    amnesic : float, optional
        Extra weight of new rows; 0 by default. The published form converges only slowly for
        close eigenvalues, and 2 to 4 cures that; blocks do not need it.
    oversampling : int, default=10
        Vectors carried beyond those asked for, with blocks.
    n_passes : int, default=1
        Passes over the rows. If they do not reach the tolerance asked for, at most a hundred
        products follow until it is reached (orthogonal iteration).
    rotate : bool, default=True
        Rayleigh-Ritz in the span found. False gives what the recursion itself has, as published:
        vectors w / |w| and values sqrt(n |w|), orthonormal and in order only in the limit. The
        product is then for the residuals alone.
    max_passes : int or None, default=None
        Readings of the kernel matrix in all; None for no limit but those above. One is a pass
        without the product after it, so that no residuals are known.
    """

    keeps_tiles, ends_by_passes = False, True
    _cap_name = "max_passes"

    block: int = 128
    amnesic: Any = None
    oversampling: int = 10
    n_passes: int = 1
    rotate: bool = True
    max_passes: int | None = None

    def solve(
        self, operator: Any, n_components: int, rng: Any, tol: float = 0.0, report: Any = silent
    ) -> Eigenpairs:
        """Passes over the rows, each followed by Rayleigh-Ritz in the span found."""
        if not self.rotate or self.max_passes == 1:
            return self._recursion(operator, n_components, rng, tol, report)
        n, r = operator.shape[0], n_components
        U, L, done = operator.vectors(np.zeros((n, 0))), np.zeros(0), 0
        for step in range(self.n_passes + (MOST_PRODUCTS if tol > 0 else 0)):
            if step < self.n_passes:
                U, L = self._pass(operator, U, L, step * n, r, rng.permutation(n))
                done += 1
            V, _ = qr(padded(U, r, rng))
            Z = operator @ V
            values, Q = small_eigh(inner(V, Z))
            V, Z, done = times(V, Q), times(Z, Q), done + 1
            seen = base.ritz_evidence(values, V, Z, operator.square())
            residuals = np.sqrt(np.diag(seen.RR))
            share = float(residuals[:r].max()) / max(float(values[0]), TINY)
            stop = report(base.PassState(done, values[:r].copy(), share, tol))
            if share <= tol or stop or done >= (self.max_passes or np.inf):
                break
            if self.block > 1 or step + 1 >= self.n_passes:
                # The product is a power step: what follows starts from it.
                U, L = qr(Z)[0], values**2 / n
        # Exact vectors, as of groups of rows without ties to others, lead to no others that the
        # pass may have dropped for them.
        near = min(max(tol, base.FULL_FLOOR), EXACT) * max(float(values[0]), TINY)
        closed = self.block < n and residuals.max() <= near
        closed = closed and seen.most_above(values[r - 1] + 2 * near) > r
        converged = share <= max(tol, base.FULL_FLOOR) and not closed
        parts = values[:r], V[:, :r], residuals[:r], converged, done, float(values[-1])
        return Eigenpairs(*parts, evidence=(seen,))

    def _recursion(self, operator, r, rng, tol, report):
        """Passes over the rows, and the recursion's own vectors after the last of them."""
        n = operator.shape[0]
        passes = min(self.n_passes, (self.max_passes or self.n_passes + 1) - 1)
        U, L, values = operator.vectors(np.zeros((n, 0))), np.zeros(0), np.zeros(0)
        for step in range(max(1, passes)):
            before = values
            U, L = self._pass(operator, U, L, step * n, r, rng.permutation(n))
            values = np.sqrt(n * L[:r])
            # Residuals follow after the last pass: until then the change of the values is reported.
            change = np.abs(values - before).max() / max(values.max(), TINY) if step else 1.0
            if report(base.PassState(step + 1, values.copy(), float(change), tol)):
                break
        U, done = padded(U, r, rng)[:, :r], step + 1
        values = np.concatenate([values, np.zeros(r - len(values))])
        order = np.argsort(-values, kind="stable")
        values, U = values[order], U[:, on_device_of(order, U)]
        if done == self.max_passes:
            unknown = np.zeros(r)
            return Eigenpairs(values, U, unknown, False, done, bounded=False, ritz=False)
        AU = operator @ U
        residuals = column_norms(AU - U * on_device_of(values, U))
        share = float(residuals.max()) / max(float(values[0]), TINY)
        ritz, Q, AQ = base.rayleigh_ritz(U, AU)
        seen = base.ritz_evidence(ritz, Q, AQ, operator.square())
        converged = share <= max(tol, base.FULL_FLOOR)
        return Eigenpairs(values, U, residuals, converged, done + 1, ritz=False, evidence=(seen,))

    def _pass(self, operator, U, L, seen, r, order):
        n, amnesic, progress = operator.shape[0], self.amnesic or 0.0, operator.progress()
        start = progress.header.get("rows", 0)
        if start:
            U, L = operator.vectors(progress.arrays[0]), progress.arrays[1]
            # Reading rows sets the operator's row means, which its products need.
            read_rows(operator.draft or operator, order[:1])
        # Rayleigh-Ritz corrects the vectors after the pass: rows in single precision suffice.
        operator = operator.draft or operator
        if self.block == 1:
            U, L = sequential_pass(operator, to_numpy(U), L, seen, r, amnesic)
            return operator.vectors(U), L
        q = min(n, r + self.oversampling)
        for first in range(start, n, self.block):
            index = order[first : first + self.block]
            g = min(1.0, (1 + amnesic) * len(index) / (seen + first + len(index)))
            U, L = ipca_update(U, L, read_rows(operator, index), g, q)
            if progress.due or first + self.block >= n:
                progress.write({"rows": first + self.block}, [to_numpy(U), L])
        return U, L


def ipca_update(U, L, K, g, q):
    """Best q pairs of (1 - g) U L U' + (g / b) K'K, given K (b, n) and orthonormal U (n, k).

    The part of K outside U is decomposed through its b x b Gram matrix. That squares its
    condition number, but not that of the part in U.
    """
    b, k = len(K), U.shape[1]
    C, E = split(K, U)
    w, P = small_eigh(np.asarray(to_numpy(self_product(E.T)), dtype=np.float64))
    # The Gram matrix of E gives singular values to sqrt(eps) of the largest; rounding of K adds
    # eps of its norm to E.
    eps = 10 * np.finfo(dtype_name(E.dtype)).eps
    above = w > max(eps * w[0], eps**2 * float((K * K).sum()), TINY)
    s, P = np.sqrt(w[above]), P[:, above]
    core = np.zeros((k + b, k + len(s)))
    core[:k, :k] = np.diag(np.sqrt((1 - g) * L))
    core[k:, :k] = np.sqrt(g / b) * C
    core[k:, k:] = np.sqrt(g / b) * P * s
    _, w, Vt = np.linalg.svd(core, full_matrices=False)
    V = Vt[:q].T
    return times(U, V[:k]) + times(E.T, (P / s) @ V[k:]), w[:q] ** 2


def split(K, U):
    """K = C U' + E with E orthogonal to U; twice, since E is often small against K."""
    C = K @ U
    E = K - C @ U.T
    E -= (E @ U) @ U.T
    return to_numpy(C), E


def sequential_pass(operator, U, L, seen, r, amnesic):
    """One pass of equations 11 and 12 over the rows in order; the first r rows start it."""
    n = operator.shape[0]
    if seen:
        W = np.ascontiguousarray((U * L).T)
    else:
        # The first rows, each less its projections on those before it.
        W = np.array(to_numpy(read_rows(operator, np.arange(min(r, n)))), dtype=np.float64)
        for i, x in enumerate(W):
            for w in W[:i]:
                x -= (x @ w) / max(w @ w, TINY) * w
    sweep, count = ccipca_sweep(), seen + len(W)
    for first in range(0, n, FETCH):
        rows = to_numpy(read_rows(operator, np.arange(first, min(n, first + FETCH))))
        sweep(W, np.array(rows, dtype=np.float64), count + first, amnesic, TINY)
    L = column_norms(W.T)
    return (W / np.maximum(L, TINY)[:, None]).T, L


@cache
def ccipca_sweep():
    """Equations 11 and 12 for the rows of X (b, n), which are used up; W (k, n) in place.

    A vector needs of a row only what the vectors before it have left, so it can visit several
    rows before the next vector does: it and they then stay in the cache.
    """
    from ..compute._numba import compiled  # numba takes half a second to import

    # Sums may be taken in any order, which is what lets them use vector instructions.
    @compiled(fastmath={"reassoc", "contract"})
    def sweep(W, X, count, amnesic, tiny):
        near = 8  # rows a vector visits in turn: half a megabyte of them for 7,000 points
        for first in range(0, X.shape[0], near):
            for i in range(W.shape[0]):
                w = W[i]
                for t in range(first, min(first + near, X.shape[0])):
                    x = X[t]
                    output, norm = 0.0, 0.0
                    for j in range(x.shape[0]):
                        output += x[j] * w[j]
                        norm += w[j] * w[j]
                    g = min(1.0, (1.0 + amnesic) / (count + t + 1))
                    pull = g * output / max(np.sqrt(norm), tiny)
                    output, norm = 0.0, 0.0
                    for j in range(x.shape[0]):
                        w[j] = (1.0 - g) * w[j] + pull * x[j]
                        output += x[j] * w[j]
                        norm += w[j] * w[j]
                    if norm > 0.0:
                        share = output / norm
                        for j in range(x.shape[0]):
                            x[j] -= share * w[j]

    return sweep


def read_rows(operator, index):
    """Rows of the operator; only NumPy multiplies arrays of two types."""
    K = operator.rows(index)
    xp = array_namespace(K)
    return K if xp is np else xp.astype(K, xp.float64)
