"""Symmetric operators: what a solver sees of a problem.

An operator has `shape`, `dtype`, ``@`` and `to_dense`, and says where to start
(`start`) and whether a cheaper version of it exists (`draft`). Solvers know nothing else:
no kernel, no data. `CenteredGram` is kernel PCA, `NormalizedGram` spectral clustering and
`DoubleCentered` multidimensional scaling: one Gram matrix G between two diagonal or
centering factors, and all three meet G through its products alone.
"""

from .base import DenseOperator, Negated, SymmetricOperator
from .centered import CenteredGram
from .double_centered import DoubleCentered, MatrixDistance
from .normalized import NormalizedGram
from .toeplitz import ToeplitzCovariance
from .weighted import WeightedGram

__all__ = [
    "CenteredGram",
    "DenseOperator",
    "DoubleCentered",
    "MatrixDistance",
    "Negated",
    "NormalizedGram",
    "SymmetricOperator",
    "ToeplitzCovariance",
    "WeightedGram",
]
