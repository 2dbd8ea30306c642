"""The estimators: the only part that knows scikit-learn's conventions."""

from .kernel_pca import KernelPCA

__all__ = ["KernelPCA"]
