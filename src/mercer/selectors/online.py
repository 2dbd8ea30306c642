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
from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag

from ..compute import array_namespace, on_device_of, stack_rows, to_numpy
from ..compute.arrays import Array, dtype_name, some_of
from ..compute.linalg import leading_eigh, self_product
from ..kernels import Kernel
from ..kernels.base import wide_row_squares
from ..kernels.coordinate import contiguous
from . import base
from .cholesky import independent_rows

# Rows worked on at once.
BLOCK = 1024


class Novelty(base.Selector):
    """Rows that are far from the span of the rows kept before them, in one pass.

    The only rule that needs each row once, in any order: for streams. As a choice of `size`
    rows it chooses outliers, like all rules that use R_ii alone.

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

    threshold: float | None = None

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

        def solve(threshold, start):
            # One more than asked for is enough to know that a threshold is too low.
            return Novel(novel_rows(kernel, X, threshold, size + 1), threshold)

        least, nothing = least_threshold(np.float64), Novel(base.as_indices([]), 1.0)
        # So many halvings of the log-threshold settle it to eight digits.
        found = base.solution_of_size(solve, size, nothing, least, least / 2, steps=32)
        return found.active[:size]


class Novel(NamedTuple):
    """Rows that are novel, in order, and the threshold."""

    active: np.ndarray
    threshold: float


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

    def admit(self, X: Array, limit: int | None = None) -> Array:
        """Take in a block of rows; returns the indices of those admitted, in order."""
        F, residual = self._project(X)
        scale = np.asarray(to_numpy(self.kernel.diag(X)), dtype=np.float64)
        floor = max(self.threshold, least_threshold(self.kernel(X[:1], X[:1]).dtype)) * scale
        # Residuals only fall as atoms are added, so all other rows of the block are refused.
        open_rows = np.flatnonzero(to_numpy(residual) > floor)
        if not len(open_rows):
            return open_rows
        F = to_numpy(F[:, open_rows])
        H = np.asarray(base.host_gram(self.kernel, some_of(X, open_rows)), dtype=np.float64)
        local, C = independent_rows(H - self_product(F), floor[open_rows], limit)
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
        return F, diagonal - wide_row_squares(F.T)


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

    block: int = 100

    def work_bytes(self, n: int, size: int, d: int = 0) -> int:
        """The rows that join and the points, in copies of them that every pre-image starts from."""
        return 48 * d * (2 * size + max(self.block, size))

    def select(self, kernel: Kernel, X: Array, size: int, rng: np.random.Generator) -> Array:
        """The dictionary after one pass in random order, (size, d); O(n (size + block)^2)."""
        first, counts, _ = base.distinct_rows(X)
        if size >= len(first):
            return X[first]
        order = rng.permutation(len(first))
        step, rows = max(self.block, size), contiguous(X[:1])
        points, root = np.empty((0, rows.shape[1])), np.empty((0, 0))
        for start in range(0, len(order), step):
            index = order[start : start + step]
            block = contiguous(X[first[index]])
            points, root = with_block(kernel, size, points, root, block, counts[index])
        return on_device_of(points.astype(rows.dtype), X)


def with_block(kernel, size, points, root, rows, counts):
    """At most `size` points and the root of the moment in their span, after rows (b, d) joined."""

    def gram(X, Z):
        return to_numpy(kernel(X, Z)).astype(np.float64)

    B = np.vstack([points, rows.astype(np.float64)])
    R = block_diag(root, np.diag(np.sqrt(counts)))
    G = gram(B, B)
    norms = np.maximum(np.diagonal(G), np.finfo(float).tiny)
    S = R.T @ G @ R
    enough = base.rank_tolerance(np.float64) * np.trace(S)
    Z, P, inverse = B[:0], np.empty((len(S), 0)), np.empty((0, 0))

    def is_new(z):
        """Whether phi(z) has a part outside the span of the points chosen so far."""
        square = float(to_numpy(kernel.diag(z[None]))[0])
        k = gram(Z, z[None])[:, 0] if len(Z) else np.empty(0)
        return square > 0 and square - k @ inverse @ k > 1e-6 * square

    # One pre-image after the other, each of the leading direction that is left.
    while len(Z) < size:
        value, q = leading_eigh(np.asfortranarray(S - P @ inverse @ P.T), 1)
        if not value[0] > enough:
            break
        q, both = q[:, 0], np.vstack([B, Z])
        weights = np.concatenate([R @ q, -inverse @ (P.T @ q)]) / np.sqrt(value[0])
        along = (gram(B, both) @ weights) ** 2 / norms
        starts = B[np.argsort(-along, kind="stable")]
        candidates = chain([preimage(kernel, both, weights, starts[0])], starts)
        atom = next(filter(is_new, candidates), None)
        if atom is None:
            break
        Z = np.vstack([Z, atom])
        P = R.T @ gram(B, Z)
        inverse = np.linalg.pinv(gram(Z, Z), rcond=1e-13, hermitian=True)
    Z = Z if len(Z) else B[:1]
    # Coefficients of the old points in the span of the new, and the root of the moment there.
    T = np.linalg.pinv(gram(Z, Z), rcond=1e-12, hermitian=True) @ gram(Z, B)
    return Z, np.asarray(np.linalg.qr((T @ R).T, mode="r")).T


def preimage(kernel, B, a, z):
    """A point along v = Phi_B a, from z: the weighted mean of B, repeated while it comes nearer.

    <phi(z), v>^2 / k(z, z) grows with every step; a step that would lower it is halved.
    """
    value, weights = _along(kernel, B, a, z)
    # The atoms move with every block anyway: few steps and halvings of a step suffice.
    for _ in range(30):
        total = weights.sum()
        if total == 0:
            break
        target = weights @ B / total
        for halving in range(6):
            trial = kernel.domain.nearest(z + (target - z) * 0.5**halving)
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
    square = float(to_numpy(kernel.diag(z[None]))[0])
    return (weights.sum() ** 2 / square if square > 0 else 0.0), weights
