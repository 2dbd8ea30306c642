"""The Gram matrix that the passes of a rule read: kept where it fits, else made row by row."""

import numpy as np

from ..bases import PointGram, PrecomputedBasis
from ..bases.points import DRAFT_SPREAD
from ..fitting.problems import GramProblem
from ..kernels import Precomputed

# Vectors of length n that a run holds at its peak for every direction it carries, the result
# and the products with the kernel matrix among them.
VECTORS = 12


def gram_problem(
    kernel, X, engine, single: bool, center: bool, width: int = 0, checkpoint=None
) -> GramProblem:
    """The Gram matrix of the rows: kept where it fits half of the budget, else row by row.

    Parameters
    ----------
    kernel : Kernel
    X : array of shape (n, d)
        The matrix itself where the kernel is precomputed.
    engine : TiledEngine
    single : bool
        Compute in single precision where rounding allows.
    center : bool
    width : int
        Directions that are carried: their vectors come out of the same budget.
    checkpoint : Checkpoint or None
        Where products and passes are left.
    """
    if isinstance(kernel, Precomputed):
        given = PrecomputedBasis(X, engine)
        given.checkpoint = checkpoint
        return GramProblem(given, center)
    allowed = kernel.spread(X) <= DRAFT_SPREAD
    dtype = np.float32 if single and allowed else np.float64
    basis = PointGram(kernel, X, engine, allowed, dtype)
    basis.release()
    basis.checkpoint = checkpoint
    n, kept = X.shape[0], None
    basis.reserve(8 * n * VECTORS * width)
    # Products of a single-precision matrix need a copy in double precision.
    # A device makes rows about as fast as it reads them.
    if engine.device is None and 8 * n**2 <= basis.engine.memory // 2:
        K = basis.engine.fill(basis.pairs, np.empty((n, n), dtype))
        kept = PrecomputedBasis(K, engine)
        kept.checkpoint = checkpoint
    return GramProblem(basis, center, kept=kept)


def rows_at_once(block: int, n: int, memory: int) -> int:
    """Rows of length n that a fourth of the budget holds with a copy, at most `block`."""
    return max(1, min(block, memory // (4 * 2 * 8 * n)))
