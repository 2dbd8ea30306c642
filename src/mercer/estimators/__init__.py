"""The estimators: the only part that knows scikit-learn's conventions."""

from .denoise import PatchDenoiser
from .hebbian import HebbianKernelPCA
from .kernel_pca import KernelPCA
from .mds import ClassicalMDS
from .novelty import NoveltyDetector
from .search import KernelPCASearch, select
from .spectral import SpectralClustering
from .streaming import StreamingKernelPCA

__all__ = [
    "ClassicalMDS",
    "HebbianKernelPCA",
    "KernelPCA",
    "KernelPCASearch",
    "NoveltyDetector",
    "PatchDenoiser",
    "SpectralClustering",
    "StreamingKernelPCA",
    "select",
]
