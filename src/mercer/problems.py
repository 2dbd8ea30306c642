"""From a basis to an operator, and from its eigenpairs to the expansion."""

import numpy as np

from .certificate import Certificate, residual_certificate
from .expansion import KernelExpansion
from .operators import CenteredGram
from .solvers import Eigenpairs


class GramProblem:
    """Kernel PCA with all points as the basis: the eigenproblem of H K H.

    With U, L its eigenpairs the directions have weights A = H U L^{-1/2} and the mean
    has weights b = 1/n.
    """

    def __init__(self, basis, center: bool = True):
        self.basis, self.center = basis, center
        self.operator = CenteredGram(basis, center)

    @property
    def size(self) -> int:
        """Number of points n."""
        return self.basis.size

    def total(self) -> float:
        """The trace: the sum of all eigenvalues."""
        return self.operator.trace()

    def assemble(self, pairs: Eigenpairs) -> tuple[KernelExpansion, Certificate]:
        """The expansion and the certificate of canonical eigenpairs."""
        n, r = pairs.vectors.shape
        frame = np.zeros((n, 1 + r))
        some = pairs.values > 0
        A = frame[:, 1:]
        A[:, some] = pairs.vectors[:, some] / np.sqrt(pairs.values[some])
        metric = np.zeros((1 + r, 1 + r))
        metric[1:, 1:] = np.diag(some.astype(float))
        if self.center:
            frame[:, 0] = 1.0 / n
            A -= A.mean(axis=0)
            means = self.operator.row_means
            metric[0, 0] = means.mean()
            metric[0, 1:] = metric[1:, 0] = means @ A
        certificate = residual_certificate(pairs, pairs.values, self.total())
        return KernelExpansion(self.basis, frame, metric), certificate
