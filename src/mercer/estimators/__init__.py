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

# Written out for type checkers.
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
# The module of each, in their order.
_MODULES = """
mds embedding hebbian cca kernel_pca search novelty nystroem denoise spectral embedding streaming
supervised embedding search
"""
_HOMES = dict(zip(__all__, _MODULES.split(), strict=True))


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = vars(import_module(f".{_HOMES[name]}", __name__))[name]
    return value
