"""The estimators: the only part that knows scikit-learn's conventions."""

from .cca import KernelCCA
from .denoise import PatchDenoiser
from .embedding import DiffusionMap, SpectralEmbedding, embedding_init
from .hebbian import HebbianKernelPCA
from .kernel_pca import KernelPCA
from .mds import ClassicalMDS
from .novelty import NoveltyDetector
from .nystroem import Nystroem
from .search import KernelPCASearch, select
from .spectral import SpectralClustering
from .streaming import StreamingKernelPCA
from .supervised import SupervisedKernelPCA

__all__ = [
    "ClassicalMDS",
    "DiffusionMap",
    "HebbianKernelPCA",
    "KernelCCA",
    "KernelPCA",
    "KernelPCASearch",
    "NoveltyDetector",
    "Nystroem",
    "PatchDenoiser",
    "SpectralClustering",
    "SpectralEmbedding",
    "StreamingKernelPCA",
    "SupervisedKernelPCA",
    "embedding_init",
    "select",
]
