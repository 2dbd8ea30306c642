"""A dictionary of pre-images, learned online: points that stand for the leading directions.

The second moment of the rows so far is kept as Phi_D M Phi_D', in the span of the dictionary D. A
block of rows joins it. The leading direction of the sum, v = Phi_B a over B = [D; block], is
replaced by a pre-image z, a point whose phi(z) lies along v as nearly as one can; what phi(z) spans
is taken out, and the leading direction of the rest is the next. In the end the moment is projected
onto the span of these points: T M T' with T = K_ZZ^+ K_ZB.
"""

from itertools import chain

import numpy as np

from ..compute import is_sparse, on_device_of, to_numpy
from ..compute.arrays import Array
from ..kernels import Kernel
from .base import Selector, distinct_rows, last_eigenpairs, rank_tolerance

# Steps of a pre-image, halvings of a step, and the gain below which it has settled: the atoms
# move with every block anyway.
STEPS, HALVINGS, SETTLED = 30, 6, 1e-6
# Share of k(z, z) outside the span of the others below which an atom is no new one.
NEW = 1e-6


class PreimageDictionary(Selector):
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

    def select(self, kernel: Kernel, X: Array, size: int, rng: np.random.Generator) -> Array:
        """The dictionary after one pass in random order, (size, d); O(n (size + block)^2)."""
        first, counts, _ = distinct_rows(X)
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
        R = _joined(self.root, np.sqrt(counts))
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
        enough = rank_tolerance(np.float64) * np.trace(S)
        Z, P, inverse = B[:0], np.empty((len(S), 0)), np.empty((0, 0))
        while len(Z) < self.size:
            left = S - P @ inverse @ P.T
            value, q = last_eigenpairs(left, 1)
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
        return own > 0 and own - k @ inverse @ k > NEW * own


def preimage(kernel, B, a, z):
    """A point along v = Phi_B a, from z: the weighted mean of B, repeated while it comes nearer.

    <phi(z), v>^2 / k(z, z) grows with every step; a step that would lower it is halved.
    """
    value, weights = _along(kernel, B, a, z)
    for _ in range(STEPS):
        total = weights.sum()
        if total == 0:
            break
        target = weights @ B / total
        for halving in range(HALVINGS):
            trial = kernel.within(z + (target - z) * 0.5**halving)
            if not np.isfinite(trial).all():
                continue
            new, new_weights = _along(kernel, B, a, trial)
            if new > value:
                break
        else:
            break
        gain, z, value, weights = new - value, trial, new, new_weights
        if gain <= SETTLED * value:
            break
    return z


def _along(kernel, B, a, z):
    """<phi(z), v>^2 / k(z, z), and the terms of the sum <phi(z), v>."""
    weights = a * to_numpy(kernel(B, z[None]))[:, 0].astype(np.float64)
    own = float(to_numpy(kernel.diag(z[None]))[0])
    return (weights.sum() ** 2 / own if own > 0 else 0.0), weights


def _joined(root, weights):
    """The root of a moment with new points beside it, each with its weight."""
    m, b = root.shape[0], len(weights)
    R = np.zeros((m + b, root.shape[1] + b))
    R[:m, : root.shape[1]] = root
    R[m:, root.shape[1] :] = np.diag(weights)
    return R


def _dense(rows):
    """Rows in main memory, dense."""
    return rows.toarray() if is_sparse(rows) else to_numpy(rows)
