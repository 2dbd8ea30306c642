"""Landmarks by ridge leverage: how much a row matters to ridge regression on all of them.

``l_i = (K (K + lambda I)^-1)_ii``, estimated from a sample S of rows as
``(k_ii - k_iS (K_SS + lambda W^-2)^-1 k_Si) / lambda``, W the weights that undo the sampling.
"""

import numpy as np
from scipy.linalg import eigvalsh

from ..compute import array_namespace, on_device_of, to_numpy
from ..compute.arrays import Array
from ..compute.linalg import cholesky
from ..kernels import Kernel
from .base import Selector, column_squares, first_distinct, host_gram, row_tiles, solve_lower
from .random import weighted_order

# A ridge that stays a number over squared weights.
NOTHING = 1e16 * float(np.finfo(float).tiny)


class RidgeLeverage(Selector):
    """Rows drawn by approximate ridge leverage scores, recursively.

    Half the rows give a sample, the sample gives the scores of twice as many rows, those a
    better sample, up to all. Guarantees for every kernel; in the comparison of
    `mercer.selectors` behind `RPCholesky`, which costs no more.

    Parameters
    ----------
    oversampling : float
        Rows of the intermediate samples for each atom asked for.

    References
    ----------
    Musco & Musco (2017), Recursive sampling for the Nystroem method.
    """

    nested = False

    #: The kernel with a sample of the size of the choice, and its factor.
    atom_bytes = 30

    def __init__(self, oversampling: float = 1.0):
        self.oversampling = oversampling

    def select(self, kernel: Kernel, X: Array, size: int, rng: np.random.Generator) -> Array:
        """Draw `size` rows; about 2 n size kernel values."""
        order = rng.permutation(X.shape[0])
        width = int(np.ceil(self.oversampling * size))
        starts = _levels(len(order), width)
        sample, weights = order[: starts[0]], np.ones(starts[0])
        for stop in starts[1:]:
            scores = leverage(kernel, X, order[:stop], sample, weights, size)
            sample, weights = _bernoulli(order[:stop], scores, width, rng)
        scores = leverage(kernel, X, order, sample, weights, size)
        return first_distinct(X, order[weighted_order(scores, rng)], size)


def leverage(kernel, X, rows, sample, weights, size):
    """Approximate ridge leverage of `rows` from a weighted sample."""
    sample, keep = np.unique(sample, return_index=True)
    weights, Z = weights[keep], X[sample]
    G = np.asarray(host_gram(kernel, Z), dtype=np.float64)
    ridge = _ridge(weights[:, None] * G * weights, size)
    C = cholesky(G + np.diag(ridge / weights**2), lower=True, check_finite=False)
    scores = []
    for tile in row_tiles(X, len(rows)):
        block = X[rows[tile]]
        K = kernel(Z, block)
        xp = array_namespace(K)
        V = solve_lower(C, xp.asarray(K, dtype=xp.float64))
        scores.append(on_device_of(kernel.diag(block), K) - column_squares(V))
    # Rounding can leave a row of the sample a hair below zero; it still counts.
    return np.clip(to_numpy(xp.concat(scores)) / ridge, np.finfo(float).tiny, 1)


def _levels(n, width):
    """How many rows are known at each level: about `width`, doubling up to half of n."""
    stops = [max(1, n // 2)]
    while stops[0] > 2 * width:
        stops.insert(0, stops[0] // 2)
    return stops


def _bernoulli(rows, scores, width, rng):
    """Rows kept independently, about `width` of them, and 1 / sqrt(probability)."""
    chance = np.minimum(1, width * scores / scores.sum())
    kept = rng.random(len(rows)) < chance
    if not kept.any():
        kept[np.argmax(chance)] = True
    return rows[kept], 1 / np.sqrt(chance[kept])


def _ridge(G, size):
    """Mean size of the eigenvalues that the sample can tell from its own noise.

    `size` rows drawn by leverage resolve about size / (4 log size) directions, so the tail
    starts there; never below rounding, nor twice the negative eigenvalues of an indefinite kernel.
    """
    rank = int(np.ceil(size / (4 * np.log(max(size, 3)))))
    values = eigvalsh(G, check_finite=False)[::-1]
    least, values = values[-1], np.maximum(values, 0)
    smallest = len(G) * np.finfo(float).eps * max(values[0], np.finfo(float).tiny)
    # Where the sample is rows of zeros only, there is no rounding either.
    smallest = max(smallest, -2 * least, NOTHING)
    return max(values[rank:].sum() / rank, smallest)
