"""The remainder E = K - K~ that an approximation leaves, and how large it can be.

Eigenvalues of the approximation are within |E| of the exact ones, so |E|, its largest singular
value, is what a certificate needs. It is judged on rows drawn uniformly without replacement, s of
n. `landmark_remainder` is for a span, whose E is positive semidefinite, and holds for certain where
the sample is all rows; `paired_remainder` is for features, whose E has either sign. `narrowed` is
for rows so few that one product with K costs little.
Proofs: docs/certificate.md.

References: Hoeffding (1963) for sampling without replacement and for means of bounded numbers;
Dixon (1983), Estimating extremal eigenvalues and condition numbers of matrices.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import rel_entr

from ..bases import FeatureBasis
from ..compute import array_namespace, dtype_name, is_sparse, on_device_of, row_blocks, to_numpy
from ..kernels.base import row_squares
from ..solvers.base import FAILURE

# Rows of one block: the norm of a block takes time with its cube, and the sum of the norms of many
# small blocks tends to the trace. Few landmarks are fitted in less time than such blocks take.
BLOCK, LEAST_BLOCK = 128, 64
# Rows whose coordinates are computed at once.
PART_ROWS = 2000
# Thresholds between rows that leave little and rows that leave much, each half of the last.
THRESHOLDS, STEP = 16, 2.0
# Up to ALL_ROWS rows all are the sample; above, at least SAMPLE_ROWS and one in SAMPLE_SHARE: a few
# percent of the work of a fit.
ALL_ROWS, SAMPLE_ROWS, SAMPLE_SHARE = 2000, 1000, 40
# Most rows of a sample: more would take too much memory.
MOST_ROWS = 20_000
# Rounding of an entry of E in single precision, over its largest value.
SINGLE_ENTRY = 4e-6
# Features are judged on pairs drawn from all rows: one a row, or so many that they take about an
# eighth of the fit's time, where a pair costs as much as `PAIR_COLUMNS` features of a row and one
# for each column; at least and at most so many; and how many at once.
PAIR_SHARE, PAIR_COLUMNS = 8, 20
LEAST_PAIRS, MOST_PAIRS, PAIR_STEP = 4096, 2**16, 2048
# Share of the budget that rows which the basis is judged on may take, and floats for each of
# them beside its features: its kernel with a block of others, twice.
WITNESS_SHARE, PAIR_WIDTH = 8, 2 * BLOCK
# Components beyond those kept that a product with K takes: where the last ones kept have close
# neighbors, these would else be among what is only bounded. And random vectors, which bound it.
SPARE, PROBES = 16, 32
# Products below this work (about 0.15 s) are always made, larger ones up to this share of the fit's
# work; and the work of an entry of K beside its inner product. All in multiplications.
LEAST_WORK, WORK_SHARE, ENTRY_WORK = 1.2e10, 2, 40
# Share that is lost above which single precision, twice as fast, hides nothing of the error.
SINGLE_LOST = 2e-3


@dataclass(frozen=True)
class Remainder:
    """Bounds on the largest singular value of E.

    Attributes
    ----------
    sure : float
        Always holds.
    likely : float
        Holds with probability `confidence`; at most `sure`.
    definite : bool
        Whether E is positive semidefinite, so that eigenvalues only grow by it.
    confidence : float
        1 where both are the same.
    """

    sure: float
    likely: float
    definite: bool
    confidence: float

    def scaled(self, factor: float) -> "Remainder":
        """Of E times a number."""
        return replace(self, sure=factor * self.sure, likely=factor * self.likely)


def sample_size(count: int | None) -> int:
    """Rows to draw of `count`, or of a number that is not known yet."""
    if count is None or count <= ALL_ROWS:
        return ALL_ROWS
    return min(max(SAMPLE_ROWS, count // SAMPLE_SHARE), MOST_ROWS)


def judge(problem: Any) -> Remainder | None:
    """What the basis of a `ReducedProblem` leaves out of the kernel matrix, judged on its sample.

    None where the sample says nothing.
    """
    basis, rows, count = problem.basis, problem.sample, problem.count
    if not basis.kernel.definite:
        return None  # what is left of an indefinite kernel bounds nothing
    engine, largest, share = basis.engine, problem.moments.largest, WITNESS_SHARE * 8
    if not isinstance(basis, FeatureBasis):
        if rows.shape[0] > (room := max(2, engine.memory // (share * PAIR_WIDTH))):
            chosen = np.random.default_rng(rows.shape[0]).choice(rows.shape[0], room, replace=False)
            rows = rows[chosen]
        rows = rows.astype(float, copy=False) if is_sparse(rows) else engine.asarray(rows)
        coordinates = basis.block_products(rows, problem.whitening.weights, dtype=np.float64)
        trace, block = problem.lost + problem.slack, block_rows(basis.size)
        return landmark_remainder(basis.kernel, rows, coordinates, count, trace, largest, block)
    largest += max(largest, basis.entry_size())
    if not np.isfinite(largest):
        return None  # no sample says anything of what nothing bounds
    # Features are many, and wrong by far more than their rounding.
    dtype, (s, d) = basis.precision(np.empty((0, 1), np.float32)), rows.shape

    def errors(i, j):
        return basis.pair_errors(rows[i], rows[j], dtype)

    step = max(2, engine.memory // (share * (PAIR_WIDTH + basis.features.scratch + 8 * d)))
    pairs = pair_count(s, basis.size, d)
    return paired_remainder(errors, s, count, largest, problem.seed, pairs, min(PAIR_STEP, step))


def multiplies(n: int, d: int, size: int, r: int, memory: int) -> bool:
    """Whether one product with the kernel matrix costs little beside a fit of `size` vectors."""
    columns = r + SPARE + PROBES
    work = n * n * (d + 2 * columns + ENTRY_WORK)
    fit, held = n * size * (2 * d + size + ENTRY_WORK), 8 * columns * 6 * n
    return work <= max(LEAST_WORK, fit / WORK_SHARE) and 4 * held <= memory


def landmark_remainder(kernel, X, coordinates, count, trace, largest, block=BLOCK):
    """Bounds on |E| for E = K - Y Y' positive semidefinite.

    Parameters
    ----------
    kernel : Kernel
    X : array or sparse matrix of shape (s, d)
        Rows drawn uniformly without replacement, in any order that does not depend on them.
    coordinates : callable
        ``coordinates(part)``: those of a slice of these rows in an orthonormal basis of the span.
    count : int
        Rows in all, n.
    trace : float
        Of E, over all rows.
    largest : float
        No k(x, x) is larger.
    block : int
        Rows of one block.
    """
    s, norms, diagonal = X.shape[0], 0.0, [np.zeros(0)]
    for part in row_blocks(s, PART_ROWS):
        Y, rows = coordinates(part), X[part]
        left = np.maximum(to_numpy(on_device_of(kernel.diag(rows), Y) - row_squares(Y)), 0.0)
        # Any blocks will do; rows that leave equally much have the smallest norms together.
        order = on_device_of(np.argsort(-left), Y)
        Y, rows = Y[order], rows[order]
        for each in row_blocks(len(left), block):
            E = kernel(rows[each], dtype=Y.dtype) - Y[each] @ Y[each].T
            norms += spectral_bound(E)
        diagonal.append(left)
    if s == count:
        sure = min(trace, norms)
        return Remainder(sure, sure, True, 1.0)
    likely = sampled_norm(np.concatenate(diagonal), norms, count, trace, largest)
    return Remainder(trace, min(trace, likely), True, 1.0 - FAILURE)


def block_rows(size: int) -> int:
    """Rows of one block for `size` landmarks: a third of them, so that pairs cost less than those.

    On 2,000 rows of covertype and 100 landmarks blocks of 32, 64 and 128 rows bound |E| by 0.11,
    0.09 and 0.08 of its trace; on the digits and 200 landmarks by 0.07, 0.05 and 0.04.
    """
    return min(BLOCK, max(LEAST_BLOCK, size // 3))


def sampled_norm(diagonal, norms: float, count: int, trace: float, largest: float) -> float:
    """A bound on |E| at the stated confidence, for E positive semidefinite.

    Rows that leave more than a threshold count in full, and their sum is what the trace has beyond
    the others. The threshold is the least above all that the sample left.

    Parameters
    ----------
    diagonal : array of shape (s,)
        Of E, for the rows of the sample.
    norms : float
        Sum of the norms of E over blocks that the sample is cut into.
    """
    s, top = len(diagonal), float(diagonal.max(initial=0.0))
    spread, bounds = np.log(2 * THRESHOLDS / FAILURE) / max(s, 1), []
    small = [largest / STEP**k for k in range(THRESHOLDS) if largest / STEP**k >= top]
    for threshold in {largest, small[-1] if small else largest} - {0.0}:
        # Of numbers from 0 to the threshold: no mean is larger, and none is smaller.
        light = likely_share(norms / (s * threshold), spread)
        rest = 1.0 - likely_share(1.0 - float(diagonal.mean()) / threshold, spread)
        others = max(trace - count * threshold * rest, 0.0) if threshold < largest else 0.0
        bounds.append(count * threshold * light + others)
    return min(bounds, default=0.0)


def pair_count(rows: int, features: int, columns: int) -> int:
    """Number of pairs of rows on which features are judged."""
    cheap = rows * features // (PAIR_SHARE * (columns + PAIR_COLUMNS))
    return min(max(LEAST_PAIRS, min(cheap, rows)), MOST_PAIRS)


def paired_remainder(
    errors, rows, count, largest, seed, pairs=LEAST_PAIRS, step=PAIR_STEP, failure=FAILURE
) -> Remainder:
    """A bound on |E| for any symmetric E at the stated confidence, from independent pairs.

    The mean of e_ij^2 over pairs drawn independently and uniformly from all n^2 is at least
    q M with M the largest e_ij^2 and kl(mean / M || q) = log(1 / failure) / pairs, but for a
    probability of `failure` (Hoeffding 1963, theorem 1), and n^2 times it is |E|_F^2.

    Parameters
    ----------
    errors : callable
        ``errors(i, j)``: the entries e_ij for arrays of row numbers i and j.
    rows : int
        Rows at hand: all of them, or some drawn uniformly without replacement.
    count : int
        Rows in all, n.
    largest : float
        No entry of E is larger in modulus.
    seed : int
    pairs : int
        Pairs to draw where all rows are at hand; else one for every two of them.
    step : int
        Pairs at once.
    failure : float
        Chance that the bound is wrong.
    """
    i, j = drawn_pairs(rows, count, pairs, np.random.default_rng(seed))
    squares, rounding = 0.0, 0.0
    for start in range(0, len(i), step):
        E = errors(i[start : start + step], j[start : start + step])
        xp = array_namespace(E)
        squares += float((xp.asarray(E, dtype=xp.float64) ** 2).sum())
        if dtype_name(E.dtype) == "float32":
            rounding = SINGLE_ENTRY * largest
    mean = (np.sqrt(squares / len(i)) + rounding) ** 2
    share = likely_share(mean / largest**2, np.log(1 / failure) / len(i))
    return Remainder(np.inf, float(count * largest * np.sqrt(share)), False, 1.0 - failure)


def drawn_pairs(rows: int, count: int, pairs: int, rng: np.random.Generator) -> np.ndarray:
    """Independent uniform pairs of `count` rows, as places among the rows at hand, (2, pairs).

    Rows drawn without replacement, in random order, take the places of the different values of
    draws with replacement, and so become such draws.
    """
    if rows == count:
        return rng.integers(count, size=(2, pairs))
    _, which = np.unique(rng.integers(count, size=rows // 2 * 2), return_inverse=True)
    return rng.permutation(rows)[which].reshape(2, -1)


def likely_share(seen: float, spread: float) -> float:
    """The largest q in [0, 1] with kl(seen || q) <= spread; 1 where seen is no number below 1."""
    if not seen < 1.0:
        return 1.0
    low, high = seen, 1.0
    for _ in range(60):
        q = (low + high) / 2
        inside = rel_entr(seen, q) + rel_entr(1 - seen, 1 - q) <= spread
        low, high = (q, high) if inside else (low, q)
    return float(high)


def spectral_bound(E) -> float:
    """At least the largest singular value of a symmetric matrix: the eighth root of tr E^8."""
    xp = array_namespace(E)
    size = float(xp.max(xp.abs(E)))
    if not 0 < size < np.inf:
        return size
    E = E / size
    E = E @ E
    E = E @ E
    return size * float(xp.sum(E * E)) ** 0.125
