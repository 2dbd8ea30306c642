"""The estimators: the only part that knows scikit-learn's conventions.

Each is imported on first use: one of them needs a fraction of what all need.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .cca import KernelCCA as KernelCCA
    from .denoise import PatchDenoiser as PatchDenoiser
    from .embedding import DiffusionMap as DiffusionMap
    from .embedding import SpectralEmbedding as SpectralEmbedding
    from .embedding import embedding_init as embedding_init
    from .hebbian import HebbianKernelPCA as HebbianKernelPCA
    from .kernel_pca import KernelPCA as KernelPCA
    from .mds import ClassicalMDS as ClassicalMDS
    from .novelty import NoveltyDetector as NoveltyDetector
    from .nystroem import Nystroem as Nystroem
    from .search import KernelPCASearch as KernelPCASearch
    from .search import select as select
    from .spectral import SpectralClustering as SpectralClustering
    from .streaming import StreamingKernelPCA as StreamingKernelPCA
    from .supervised import SupervisedKernelPCA as SupervisedKernelPCA

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
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = vars(import_module(f".{_HOMES[name]}", __name__))[name]
    return value
