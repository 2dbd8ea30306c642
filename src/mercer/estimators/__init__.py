"""The estimators: the only part that knows scikit-learn's conventions.

Each is imported on first use: one of them needs a fraction of what all need.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_HOMES = {
    "ClassicalMDS": "mds",
    "DiffusionMap": "embedding",
    "HebbianKernelPCA": "hebbian",
    "KernelCCA": "cca",
    "KernelPCA": "kernel_pca",
    "KernelPCASearch": "search",
    "NoveltyDetector": "novelty",
    "Nystroem": "nystroem",
    "PatchDenoiser": "denoise",
    "SpectralClustering": "spectral",
    "SpectralEmbedding": "embedding",
    "StreamingKernelPCA": "streaming",
    "SupervisedKernelPCA": "supervised",
    "embedding_init": "embedding",
    "select": "search",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = vars(import_module(f".{_HOMES[name]}", __name__))[name]
    return value
