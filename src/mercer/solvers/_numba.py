"""Compiled loops of solvers that visit one row at a time."""

import numpy as np

from ..compute._numba import compiled

# Sums may be taken in any order, which is what lets them use vector instructions.
LOOSE = {"reassoc", "contract"}
# Rows a vector visits in turn: half a megabyte of them for 7,000 points.
NEAR = 8


@compiled(fastmath=LOOSE)
def ccipca_sweep(W, X, count, amnesic, tiny):
    """Equations 11 and 12 for the rows of X (b, n), which are used up; W (k, n) in place.

    A vector needs of a row only what the vectors before it have left, so it can visit several
    rows before the next vector does: it and they then stay in the cache.
    """
    for first in range(0, X.shape[0], NEAR):
        for i in range(W.shape[0]):
            w = W[i]
            for t in range(first, min(first + NEAR, X.shape[0])):
                g = min(1.0, (1.0 + amnesic) / (count + t + 1))
                output, norm = _moments(X[t], w)
                output, norm = _update(w, X[t], 1.0 - g, g * output / max(np.sqrt(norm), tiny))
                if norm > 0.0:
                    _deflate(X[t], w, output / norm)


@compiled(fastmath=LOOSE)
def _moments(x, w):
    output, norm = 0.0, 0.0
    for j in range(x.shape[0]):
        output += x[j] * w[j]
        norm += w[j] * w[j]
    return output, norm


@compiled(fastmath=LOOSE)
def _update(w, x, keep, pull):
    """w <- keep w + pull x; returns x . w and |w|^2 after it."""
    output, norm = 0.0, 0.0
    for j in range(x.shape[0]):
        w[j] = keep * w[j] + pull * x[j]
        output += x[j] * w[j]
        norm += w[j] * w[j]
    return output, norm


@compiled(fastmath=LOOSE)
def _deflate(x, w, share):
    for j in range(x.shape[0]):
        x[j] -= share * w[j]
