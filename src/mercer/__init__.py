"""mercer: kernel PCA that scales, with a certificate of error on every result."""

from . import datasets
from .estimators import KernelPCA
from .planning import plan

__version__ = "0.1.0"

__all__ = ["KernelPCA", "__version__", "datasets", "plan"]
