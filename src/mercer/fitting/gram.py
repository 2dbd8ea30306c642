"""All points as the basis: the n x n eigenproblem, and what it leaves."""

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from ..bases import GramBasis
from ..compute import on_device_of, to_numpy
from ..compute.arrays import Array
from ..operators import CenteredGram, WeightedGram
from ..solvers import Eigenpairs
from ..solvers.base import peak_signs
from .certificate import Certificate, residual_certificate
from .expansion import KernelExpansion
from .remainder import SINGLE_ENTRY

# Rounding of an entry of the kernel matrix beside that of its inner product, and of sums over n
# rows over sqrt(n), in units of eps.
ENTRY_ROUNDING, SUM_ROUNDING = 8.0, 4.0
# Times that where rows have weights: far rows of little weight round the mean of the others.
WEIGHTED_ROUNDING = 16.0

# Rows among which negative eigenvalues are looked for.
LEAST_ROWS = 256

EPS = float(np.finfo(np.float64).eps)


class GramProblem:
    """Kernel PCA with all points as the basis: the eigenproblem of H K H.

    With U, L its eigenpairs the directions have weights A = H U L^{-1/2} and the mean
    has weights b = 1/n.
    """

    def __init__(self, basis: GramBasis, center: bool = True, weights: Array | None = None):
        self.basis, self.center, self.weights = basis, center, weights
        self.operator: Any = (
            CenteredGram(basis, center)
            if weights is None
            else WeightedGram(basis, np.asarray(weights, dtype=float), center)
        )

    @property
    def count(self) -> int:
        """Number of rows."""
        return self.basis.size

    @property
    def weight(self) -> float:
        """Number of rows, each as often as its weight says."""
        return float(self.count) if self.weights is None else self.operator.weight

    def of_rows(self, pairs: Eigenpairs) -> Eigenpairs:
        """Pairs whose vectors have an entry a row, as if rows were repeated by their weights."""
        if self.weights is None:
            return pairs
        V = pairs.vectors / on_device_of(self.operator.weights**0.5, pairs.vectors)[:, None]
        return replace(pairs, vectors=V * on_device_of(peak_signs(to_numpy(V)), V))

    @property
    def size(self) -> int:
        """Number of components there can be."""
        return self.basis.size

    def keep_in(self, checkpoint: Any) -> None:
        """Leave products and passes in a checkpoint, where there is one."""
        self.basis.checkpoint = self.operator.basis.checkpoint = checkpoint

    def overshoots(self, share: float) -> bool:
        """Nothing is projected."""
        return False

    def is_zero(self) -> bool:
        """Whether there is nothing to decompose, since all rows are equal."""
        return self.center and self.basis.is_constant()

    @cached_property
    def total(self) -> float:
        """The trace: the sum of all eigenvalues."""
        return self.operator.trace()

    @property
    def scale(self) -> float:
        """The size of the numbers that the trace is a sum of, for what counts as zero."""
        own = abs(self.basis.diagonal())
        return float((own if self.weights is None else to_numpy(own) * self.weights).sum())

    def assemble(self, pairs: Eigenpairs) -> tuple[KernelExpansion, Certificate]:
        """The expansion and the certificate of canonical eigenpairs of the rows (`of_rows`)."""
        pairs = self._with_least(pairs)
        n, r = pairs.vectors.shape
        frame = self.basis.engine.zeros((n, 1 + r))
        some = pairs.values > 0
        frame[:, 1:] = self.basis.engine.asarray(pairs.vectors)
        A = frame[:, 1:]
        A *= on_device_of(
            np.where(some, 1 / np.sqrt(np.where(some, pairs.values, 1.0)), 0.0), frame
        )
        metric = np.zeros((1 + r, 1 + r))
        metric[1:, 1:] = np.diag(some.astype(float))
        if not pairs.ritz:
            M = to_numpy(A.T @ (self.operator @ A))
            metric[1:, 1:] = (M + M.T) / 2
        if self.weights is None:
            share: Any = 1.0 / n
        else:
            share = on_device_of(self.operator.weights / self.weight, frame)
            A *= self.weight * share[:, None]
        if self.center:
            frame[:, 0] = share
            A -= A.mean(axis=0) if self.weights is None else share[:, None] * A.sum(axis=0)
            means = self.operator.row_means
            means = on_device_of(means, A)
            metric[0, 0] = float((means * frame[:, 0]).sum())
            metric[0, 1:] = metric[1:, 0] = to_numpy(means @ A)
        certificate = residual_certificate(
            pairs, self.total, self.slack, self.uncertain, self.basis.kernel.definite
        )
        return KernelExpansion(self.basis, frame, metric), certificate

    def _with_least(self, pairs: Eigenpairs) -> Eigenpairs:
        """The pairs with a negative eigenvalue, where a kernel may have one and some rows show it.

        For w that sums to zero and lives on these rows, w'Kw is w'HKHw: no eigenvalue of the
        centered matrix of the rows alone is below the least of all.
        """
        if self.basis.kernel.definite:
            # Passes in single precision leave rounding of either sign: a row of large weight,
            # which centering takes out, has much of it.
            rounded = pairs.least is not None and pairs.least > -SINGLE_ENTRY * self._size()
            return replace(pairs, least=0.0) if rounded else pairs
        if pairs.searched:
            return pairs
        n = self.count
        some = np.arange(n)[:: -(-n // LEAST_ROWS)]
        K = to_numpy(self.basis.minor(some)).astype(float)
        w = np.ones(len(some)) if self.weights is None else self.operator.weights[some]
        if self.center:
            K = K - w @ K / w.sum()
            K = K - (K @ w / w.sum())[:, None]
        K = w**0.5 * K * w[:, None] ** 0.5
        least = float(np.linalg.eigvalsh((K + K.T) / 2)[0])
        return replace(pairs, least=least if pairs.least is None else min(least, pairs.least))

    @cached_property
    def slack(self) -> float:
        """What rounding may change H K H by, in norm.

        Entries of a definite kernel have a rounding of at most c sqrt(k_ii k_jj), so that the
        matrix of all of them has a norm of at most c tr K.
        """
        sums = EPS * (SUM_ROUNDING * np.sqrt(self.count) + ENTRY_ROUNDING)
        weighted = 1 if self.weights is None else WEIGHTED_ROUNDING
        return weighted * (self.basis.rounding() + sums) * self._size()

    def _size(self) -> float:
        """The sum of k(x, x), or of typical entries where these may be larger."""
        return max(self.scale, self.weight * self.basis.entry_size())

    @property
    def uncertain(self) -> float:
        """What row means in single precision leave unknown of the trace."""
        return self.operator.means_rounding * self._size() if self.center else 0.0
