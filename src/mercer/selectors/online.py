"""Landmarks in one pass over the rows, which may arrive block after block.

By novelty: a row is admitted if ``k(x, x) - k_D(x)' K_DD^-1 k_D(x) > threshold k(x, x)``, D being
the rows admitted before it. Nothing is ever removed.

By pre-images: the second moment of the rows so far is kept as Phi_D M Phi_D', in the span of the
dictionary D. A block of rows joins it. The leading direction of the sum, v = Phi_B a over
B = [D; block], is replaced by a pre-image z, a point whose phi(z) lies along v as nearly as one
can; what phi(z) spans is taken out, and the leading direction of the rest is the next. In the end
the moment is projected onto the span of these points: T M T' with T = K_ZZ^+ K_ZB.
"""

from itertools import chain

import numpy as np
from scipy.linalg import block_diag

from ..compute import array_namespace, is_sparse, on_device_of, stack_rows, to_numpy
from ..compute.arrays import Array, dtype_name, some_of
from ..compute.linalg import self_product
from ..kernels import Kernel
from . import base

# Rows looked at together.
BLOCK = 1024


class Novelty(base.Selector):
    """Rows that are far from the span of the rows kept before them, in one pass.

    The only rule that needs each row once, in any order: for streams. As a choice of `size`
    rows it chases outliers, like all rules that look at R_ii alone.

    Parameters
    ----------
    threshold : float or None
        Share of k(x, x) outside the span from which a row counts as new. None finds, by
        bisection, the largest that gives `size` rows, at one pass for each trial; the order is
        nested only for a given threshold.

    References
    ----------
    Ouimet & Bengio (2005), Greedy spectral embedding.
    """

    independent = True

    def __init__(self, threshold: float | None = None):
        self.threshold = threshold

    @property
    def nested(self) -> bool:  # type: ignore[override]
        """A threshold found for one size is not that of another."""
        return self.threshold is not None

    def work_bytes(self, n: int, size: int, d: int = 0) -> int:
        """The kernel between the rows of a block, twice, that with the landmarks, and these."""
        block = min(n, BLOCK)
        return 17 * block**2 + 24 * block * size + 16 * size**2 + 16 * size * d

    def select(self, kernel: Kernel, X: Array, size: int, rng: np.random.Generator) -> Array:
        """Pass over the rows in the order given; O(n size) kernel values a pass."""
        if self.threshold is not None:
            return novel_rows(kernel, X, self.threshold, size)
        # One more than asked for is enough to know that a threshold is too low.
        chosen = novel_rows(kernel, X, 0.0, size + 1)
        low, high = np.log(least_threshold(np.float64)), 0.0
        # So many halvings of the log-threshold settle it to eight digits.
        for _ in range(32 if len(chosen) > size else 0):
            middle = (low + high) / 2
            trial = novel_rows(kernel, X, np.exp(middle), size + 1)
            if len(trial) < size:
                high = middle
            else:
                low, chosen = middle, trial
            if len(trial) == size:
                break
        return chosen[:size]


def novel_rows(kernel, X, threshold, size):
    """Indices of the first `size` novel rows."""
    rule = NoveltyRule(kernel, threshold)
    chosen: list[int] = []
    for start in range(0, X.shape[0], BLOCK):
        block = some_of(X, slice(start, start + BLOCK))
        chosen.extend(start + rule.admit(block, size - len(chosen)))
        if len(chosen) >= size:
            break
    return base.as_indices(chosen)


def least_threshold(dtype):
    """The share below which novelty is rounding.

    A row admitted with share p magnifies the rounding eps of later ones to eps / sqrt(p), which has
    to stay below p: 1e-10, in single precision 1e-4.
    """
    return 4 * np.finfo(dtype_name(dtype)).eps ** (2 / 3)


class NoveltyRule:
    """The one-pass rule with its memory: atoms Z (m, d) and the Cholesky factor of K_ZZ.

    Parameters
    ----------
    kernel : kernel
    threshold : float
        Smallest share of k(x, x) outside the span of the atoms that is new.
    """

    def __init__(self, kernel: Kernel, threshold: float):
        self.kernel = kernel
        self.threshold = threshold
        self.Z = None
        self.C = np.empty((0, 0))
        self._keys: set = set()

    def admit(self, X: Array, limit: int | None = None) -> Array:
        """Take in a block of rows; returns the indices of those admitted, in order."""
        F, residual = self._project(X)
        scale = np.asarray(to_numpy(self.kernel.diag(X)), dtype=np.float64)
        floor = max(self.threshold, least_threshold(self.kernel(X[:1], X[:1]).dtype)) * scale
        # Residuals only fall as atoms are added, so the rest of the block is settled.
        open_rows = np.flatnonzero(to_numpy(residual) > floor)
        F = to_numpy(F[:, open_rows])
        local, C = self._sequential(some_of(X, open_rows), F, floor[open_rows], limit)
        admitted = open_rows[local]
        if len(admitted):
            m, b, rows = len(self.C), len(C), X[admitted]
            grown = np.zeros((m + b, m + b))
            grown[:m, :m], grown[m:, :m], grown[m:, m:] = self.C, F[:, local].T, C
            self.C = grown
            self.Z = rows if self.Z is None else stack_rows([self.Z, rows])
        return admitted

    def residual(self, X: Array) -> Array:
        """k(x, x) outside the span of the atoms, (n,)."""
        return to_numpy(self._project(X)[1])

    def _project(self, X):
        """Coordinates of the rows on the orthonormalized atoms, (m, n), and what is left."""
        diagonal = on_device_of(self.kernel.diag(X), X)
        if self.Z is None:
            return np.empty((0, X.shape[0])), diagonal
        K = self.kernel(self.Z, X)
        xp = array_namespace(K)
        F = base.solve_lower(self.C, xp.asarray(K, dtype=xp.float64))
        return F, diagonal - base.column_squares(F)

    def _sequential(self, X, F, floor, limit):
        """Admit rows one by one; indices and the Cholesky factor of their residuals."""
        if not X.shape[0]:
            return base.as_indices([]), np.empty((0, 0))
        H = np.asarray(base.host_gram(self.kernel, X), dtype=np.float64) - self_product(F)
        chosen: list[int] = []
        V, diagonal, keys = np.empty((0, len(H))), H.diagonal().copy(), base.row_keys(X)
        for i in range(len(H)):
            if limit is not None and len(chosen) >= limit:
                break
            if diagonal[i] <= floor[i] or keys[i] in self._keys:
                continue
            row = (H[i] - V[:, i] @ V) / np.sqrt(diagonal[i])
            V = np.vstack([V, row])
            diagonal -= row**2
            chosen.append(i)
            self._keys.add(keys[i])
        return base.as_indices(chosen), np.tril(V[:, chosen].T)


class PreimageDictionary(base.Selector):
    """Pre-images of leading directions, in one pass over the rows, a block at a time.

    For streams: no row is kept, only `size` points and a `size` x `size` moment. Behind the
    selectors that see all rows at once, and best for Gaussian kernels, whose pre-images are means.

    Parameters
    ----------
    block : int
        Rows that join at once.

    References
    ----------
    Kimura et al. (2005), as the slides of Perry, Elhabian & Whitaker describe it: "maintain a
    rank-k approximation", "compute pre-image of bases as dictionary".
    """

    nested = False
    needs_points = True
    returns_points = True
    independent = True

    def __init__(self, block: int = 100):
        self.block = block

    def work_bytes(self, n: int, size: int, d: int = 0) -> int:
        """The rows that join and the points, in copies of them that every pre-image starts from."""
        return 48 * d * (2 * size + max(self.block, size))

    def select(self, kernel: Kernel, X: Array, size: int, rng: np.random.Generator) -> Array:
        """The dictionary after one pass in random order, (size, d); O(n (size + block)^2)."""
        first, counts, _ = base.distinct_rows(X)
        if size >= len(first):
            return X[first]
        order = rng.permutation(len(first))
        model = Dictionary(kernel, size)
        step = max(self.block, size)
        for start in range(0, len(order), step):
            some = order[start : start + step]
            model.learn(_dense(X[first[some]]), counts[some])
        return on_device_of(model.points.astype(_dense(X[:1]).dtype), X)


class Dictionary:
    """Points Z and the moment M of the rows so far in their span.

    Parameters
    ----------
    kernel : Kernel
    size : int
        Points at most.
    """

    def __init__(self, kernel, size):
        self.kernel, self.size = kernel, size
        self.points: np.ndarray = np.empty((0, 0))
        self.root: np.ndarray = np.empty((0, 0))

    def learn(self, rows, counts):
        """Let rows (b, d), each as often as `counts` says, join."""
        rows = rows.astype(np.float64)
        B = np.vstack([self.points, rows]) if len(self.points) else rows
        R = block_diag(self.root, np.diag(np.sqrt(counts)))
        self.points = self._atoms(B, R)
        # Coefficients of the old points in the span of the new, and the root of the moment there.
        G = self._gram(self.points, self.points)
        T = np.linalg.pinv(G, rcond=1e-12, hermitian=True) @ self._gram(self.points, B)
        self.root = np.asarray(np.linalg.qr((T @ R).T, mode="r")).T

    def _gram(self, X, Z):
        return to_numpy(self.kernel(X, Z)).astype(np.float64)

    def _atoms(self, B, R):
        """One pre-image after the other, each of the leading direction that is left."""
        G = self._gram(B, B)
        norms = np.maximum(np.diagonal(G), np.finfo(float).tiny)
        S = R.T @ G @ R
        enough = base.rank_tolerance(np.float64) * np.trace(S)
        Z, P, inverse = B[:0], np.empty((len(S), 0)), np.empty((0, 0))
        while len(Z) < self.size:
            left = S - P @ inverse @ P.T
            value, q = base.last_eigenpairs(left, 1)
            if not value[0] > enough:
                break
            q = q[:, 0]
            points = np.vstack([B, Z])
            weights = np.concatenate([R @ q, -inverse @ (P.T @ q)]) / np.sqrt(value[0])
            along = (self._gram(B, points) @ weights) ** 2 / norms
            starts = B[np.argsort(-along, kind="stable")]
            candidates = chain([preimage(self.kernel, points, weights, starts[0])], starts)
            atom = next((z for z in candidates if self._is_new(Z, inverse, z)), None)
            if atom is None:
                break
            Z = np.vstack([Z, atom])
            P = R.T @ self._gram(B, Z)
            inverse = np.linalg.pinv(self._gram(Z, Z), rcond=1e-13, hermitian=True)
        return Z if len(Z) else B[:1]

    def _is_new(self, Z, inverse, z):
        """Whether phi(z) has a part outside the span of the points chosen so far."""
        own = float(to_numpy(self.kernel.diag(z[None]))[0])
        k = self._gram(Z, z[None])[:, 0] if len(Z) else np.empty(0)
        return own > 0 and own - k @ inverse @ k > 1e-6 * own


def preimage(kernel, B, a, z):
    """A point along v = Phi_B a, from z: the weighted mean of B, repeated while it comes nearer.

    <phi(z), v>^2 / k(z, z) grows with every step; a step that would lower it is halved.
    """
    value, weights = _along(kernel, B, a, z)
    # The atoms move with every block anyway: few steps and halvings of a step will do.
    for _ in range(30):
        total = weights.sum()
        if total == 0:
            break
        target = weights @ B / total
        for halving in range(6):
            trial = kernel.within(z + (target - z) * 0.5**halving)
            if not np.isfinite(trial).all():
                continue
            new, new_weights = _along(kernel, B, a, trial)
            if new > value:
                break
        else:
            break
        gain, z, value, weights = new - value, trial, new, new_weights
        if gain <= 1e-6 * value:
            break
    return z


def _along(kernel, B, a, z):
    """<phi(z), v>^2 / k(z, z), and the terms of the sum <phi(z), v>."""
    weights = a * to_numpy(kernel(B, z[None]))[:, 0].astype(np.float64)
    own = float(to_numpy(kernel.diag(z[None]))[0])
    return (weights.sum() ** 2 / own if own > 0 else 0.0), weights


def _dense(rows):
    """Rows in main memory, dense."""
    return rows.toarray() if is_sparse(rows) else to_numpy(rows)
