"""The estimators: the only part that knows scikit-learn's conventions.

Each is imported on first use: one of them needs a fraction of what all need. What type checkers
see is in `__init__.pyi`.
"""

from importlib import import_module
from typing import Any

# The module of each.
_HOMES = {
    "ClassicalMDS": "mds",
    "DiffusionMap": "embedding",
    "HebbianKernelPCA": "hebbian",
    "Isomap": "isomap",
    "KernelCCA": "cca",
    "KernelPCA": "kernel_pca",
    "KernelPCASearch": "search",
    "NoveltyDetector": "novelty",
    "Nystroem": "nystroem",
    "PatchDenoiser": "denoise",
    "ProcessMonitor": "monitor",
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
