"""Landmarks by novelty: one pass, keeping each row that the earlier ones cannot express.

A row is admitted if ``k(x, x) - k_D(x)' K_DD^-1 k_D(x) > threshold k(x, x)``, D being the rows
admitted before it. Nothing is ever removed, so blocks may arrive one after another.
"""

import numpy as np

from ..compute import array_namespace, on_device_of, stack_rows, to_numpy
from ..compute.arrays import Array, dtype_name
from ..kernels import Kernel
from .base import Selector, as_indices, column_squares, host_gram, row_keys, solve_lower

# Halvings of the log-threshold between rounding and one, which settle it to eight digits.
BISECTIONS = 32
# Rows looked at together.
BLOCK = 1024


class Novelty(Selector):
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

    def work_bytes(self, n: int, size: int) -> int:
        """The kernel between the rows of a block, twice, and that with the landmarks."""
        return 17 * min(n, BLOCK) ** 2 + 24 * min(n, BLOCK) * size + 16 * size**2

    def select(self, kernel: Kernel, X: Array, size: int, rng: np.random.Generator) -> Array:
        """Pass over the rows in the order given; O(n size) kernel values a pass."""
        if self.threshold is not None:
            return novel_rows(kernel, X, self.threshold, size)
        # One more than asked for is enough to know that a threshold is too low.
        chosen = novel_rows(kernel, X, 0.0, size + 1)
        low, high = np.log(least_threshold(np.float64)), 0.0
        for _ in range(BISECTIONS if len(chosen) > size else 0):
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
        chosen.extend(start + rule.admit(X[start : start + BLOCK], size - len(chosen)))
        if len(chosen) >= size:
            break
    return as_indices(chosen)


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
        local, C = self._sequential(X[open_rows], F, floor[open_rows], limit)
        admitted = open_rows[local]
        self._grow(X[admitted], F[:, local], C)
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
        F = solve_lower(self.C, xp.asarray(K, dtype=xp.float64))
        return F, diagonal - column_squares(F)

    def _sequential(self, X, F, floor, limit):
        """Admit rows one by one; indices and the Cholesky factor of their residuals."""
        if not X.shape[0]:
            return as_indices([]), np.empty((0, 0))
        H = np.asarray(host_gram(self.kernel, X), dtype=np.float64) - F.T @ F
        chosen: list[int] = []
        rows: list[np.ndarray] = []
        diagonal, keys = H.diagonal().copy(), row_keys(X)
        for i in range(len(H)):
            if limit is not None and len(chosen) >= limit:
                break
            if diagonal[i] <= floor[i] or keys[i] in self._keys:
                continue
            V = np.array(rows).reshape(len(rows), len(H))
            rows.append((H[i] - V[:, i] @ V) / np.sqrt(diagonal[i]))
            diagonal -= rows[-1] ** 2
            chosen.append(i)
            self._keys.add(keys[i])
        V = np.array(rows).reshape(len(rows), len(H))
        return as_indices(chosen), np.tril(V[:, chosen].T)

    def _grow(self, X, F, C):
        m, b = len(self.C), len(C)
        if not b:
            return
        grown = np.zeros((m + b, m + b))
        grown[:m, :m], grown[m:, :m], grown[m:, m:] = self.C, F.T, C
        self.C = grown
        self.Z = X if self.Z is None else stack_rows([self.Z, X])
