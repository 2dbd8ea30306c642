"""A grid of frequencies: the eigenproblem of the covariance of its features."""

import numpy as np

from ..bases import FourierBasis, TrigonometricMoments
from ..operators import ToeplitzCovariance
from ..solvers import Eigenpairs
from .base import SummedProblem
from .certificate import Certificate, series_certificate
from .expansion import KernelExpansion

# Rounding of one level of a fast Fourier transform, with a margin.
FFT_ROUNDING = 4 * np.finfo(float).eps


class FourierProblem(SummedProblem):
    """Kernel PCA on a grid of frequencies: the eigenproblem of the covariance of its features.

    Parameters
    ----------
    basis : FourierBasis
    sums : TrigonometricMoments
        Of all rows.
    center : bool
    """

    def __init__(self, basis: FourierBasis, sums: TrigonometricMoments, center: bool = True):
        self.basis, self.sums, self.center = basis, sums, center
        self.operator = ToeplitzCovariance(
            basis.frequencies.index, basis.amplitudes, sums, center, basis.engine.threads
        )

    @property
    def weight(self) -> float:
        """Number of rows, each as often as its weight says."""
        return float(self.sums.count)

    def overshoots(self, share: float) -> bool:
        """The features are orthonormal."""
        return False

    @property
    def scale(self) -> float:
        """Sum of k(x, x) over the rows."""
        return self.sums.count * self.basis.top

    @property
    def total(self) -> float:
        """The trace: the sum of all eigenvalues."""
        mean = self.operator.mean
        return self.scale - (self.sums.count * float(mean @ mean) if self.center else 0.0)

    @property
    def slack(self) -> float:
        """What errors of the sums and rounding of the products change in eigenvalues at most.

        An error delta of every t_q changes the matrix by at most delta k(0), the sum of the
        weights, in Frobenius norm, and its mean by twice that.
        """
        steps = np.log2(np.prod(self.sums.sums.shape)) + 1
        return 3 * self.sums.error * self.basis.top + FFT_ROUNDING * steps * self.scale

    def assemble(self, pairs: Eigenpairs) -> tuple[KernelExpansion, Certificate]:
        """The expansion and the certificate of canonical eigenpairs."""
        some = pairs.values > 0
        A = pairs.vectors * some
        mean = self.operator.mean if self.center else np.zeros(len(A))
        metric = np.zeros((1 + A.shape[1], 1 + A.shape[1]))
        metric[0, 0], metric[0, 1:] = mean @ mean, mean @ A
        metric[1:, 0] = metric[0, 1:]
        metric[1:, 1:] = np.diag(some.astype(float))
        grid, n, slack = self.basis.frequencies, self.sums.count, self.slack
        certificate = series_certificate(
            pairs, self.total, n * grid.alias + slack, n * grid.cut + slack
        )
        return KernelExpansion(self.basis, np.hstack([mean[:, None], A]), metric), certificate
