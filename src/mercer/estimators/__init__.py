"""The estimators: the only part that knows scikit-learn's conventions."""

from .hebbian import HebbianKernelPCA
from .kernel_pca import KernelPCA

__all__ = ["HebbianKernelPCA", "KernelPCA"]
