"""Symmetric operators: what a solver sees of a problem.

An operator has a `shape`, ``@`` and `to_dense`, gives some of its rows and its diagonal, and says
where to start (`start`) and whether a cheaper version of it exists (`draft`). Solvers know nothing
else: no kernel, no data. `CenteredGram` is kernel PCA, `NormalizedGram` spectral clustering and
`DoubleCentered` multidimensional scaling: one Gram matrix G between two diagonal or centering
factors, and all three use G only in products.
"""

from .base import DenseOperator, Multiple, SymmetricOperator, in_ordinary_units
from .centered import CenteredGram, DoubleCentered, MatrixDistance
from .normalized import NormalizedGram
from .toeplitz import ToeplitzCovariance

__all__ = [
    "CenteredGram",
    "DenseOperator",
    "DoubleCentered",
    "MatrixDistance",
    "Multiple",
    "NormalizedGram",
    "SymmetricOperator",
    "ToeplitzCovariance",
    "in_ordinary_units",
]
