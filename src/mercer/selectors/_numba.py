"""Compiled inner loops of selectors: sweeps of the joint lasso over its rows."""

import numpy as np

from ..compute._numba import compiled


@compiled()
def lasso_sweeps(H, W, left, lengths, inverse, mu, tol, sweeps):
    """Row by row minimization over W (k, p) until no row moves its products by `tol`.

    H (k, k) holds the atoms' products with each other, left (k, p) those with what W leaves.
    """
    k, p = W.shape
    new = np.empty(p)
    for _ in range(sweeps):
        largest = 0.0
        for i in range(k):
            moved = 0.0
            _row(W[i], left[i], lengths[i], inverse, mu, new)
            for j in range(p):
                change = new[j] - W[i, j]
                moved += (change * lengths[i] * inverse[j]) ** 2
                W[i, j] = new[j]
                if change != 0.0:
                    for a in range(k):
                        left[a, j] -= H[a, i] * change * inverse[j]
            largest = max(largest, np.sqrt(moved))
        if largest <= tol:
            break


@compiled()
def _row(w, left, length, inverse, mu, new):
    """argmin over a row: 1/2 sum d_j w_j^2 - g.w + mu |w| with d = length inverse."""
    p = w.shape[0]
    norm = 0.0
    for j in range(p):
        new[j] = left[j] + length * inverse[j] * w[j]
        norm += new[j] * new[j]
    norm = np.sqrt(norm)
    if norm <= mu or length <= 0:
        new[:] = 0.0
        return
    # |w| = t solves sum (g_j / (d_j t + mu))^2 = 1, between what all d_j at their ends would give.
    low = (norm - mu) / (length * inverse.max())
    high = (norm - mu) / (length * inverse.min())
    for _ in range(100):
        t = 0.5 * (low + high)
        total = 0.0
        for j in range(p):
            total += (new[j] / (length * inverse[j] * t + mu)) ** 2
        if total > 1.0:
            low = t
        else:
            high = t
        if high - low <= 1e-14 * high:
            break
    t = 0.5 * (low + high)
    for j in range(p):
        new[j] *= t / (length * inverse[j] * t + mu)
