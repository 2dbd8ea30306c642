"""Landmarks by sampling: each row with a probability known beforehand.

Nothing is looked at but the diagonal of K, so the cost does not depend on the kernel. Rows that
equal an earlier one are passed over, which leaves the draw what it is among distinct values.
"""

import numpy as np

from ..compute import to_numpy
from ..compute.arrays import Array
from ..kernels import Kernel
from .base import Selector, first_distinct


class Uniform(Selector):
    """Rows drawn uniformly: the baseline, and the first stage of a better choice.

    Parameters
    ----------
    replace : bool
        Draw with replacement. A row drawn again is not repeated, so that `size` draws give
        fewer atoms: about 0.63 n of n.

    References
    ----------
    Williams & Seeger (2001), Using the Nystroem method to speed up kernel machines.
    """

    def __init__(self, replace: bool = False):
        self.replace = replace

    def select(self, kernel: Kernel, X: Array, size: int, rng: np.random.Generator) -> Array:
        """Draw `size` of the rows of X; O(n)."""
        n = X.shape[0]
        order = rng.integers(n, size=size) if self.replace else rng.permutation(n)
        return first_distinct(X, order, size)


class NormWeighted(Selector):
    """Rows drawn with probability proportional to k(x, x)^2.

    Equal to `Uniform` for stationary kernels, whose norms are all one. For polynomial kernels
    of degree 2 and 3 its error was 0.85 to 2.7 of that of `Uniform`: large norms may matter, or
    be outliers.

    Parameters
    ----------
    replace : bool
        Draw with replacement, as in the paper. A row drawn again is not repeated, so that
        fewer than `size` atoms come back.

    References
    ----------
    Drineas & Mahoney (2005), On the Nystroem method for approximating a Gram matrix.
    """

    def __init__(self, replace: bool = False):
        self.replace = replace

    def select(self, kernel: Kernel, X: Array, size: int, rng: np.random.Generator) -> Array:
        """Draw `size` of the rows of X; O(n) and the diagonal of K."""
        weights = np.square(to_numpy(kernel.diag(X)).astype(np.float64))
        total = weights.sum()
        if self.replace and total > 0:
            return first_distinct(X, rng.choice(len(weights), size, p=weights / total), size)
        return first_distinct(X, weighted_order(weights, rng), size)


def weighted_order(weights, rng):
    """All indices with a weight, as successive draws without replacement would list them.

    Sorting log-weights plus Gumbel noise is that draw, in one go.
    """
    with np.errstate(divide="ignore"):
        keys = np.log(np.maximum(weights, 0).astype(np.float64))
    keys = keys + rng.gumbel(size=len(keys))
    order = np.argsort(-keys, kind="stable")
    return order[np.isfinite(keys[order])]
