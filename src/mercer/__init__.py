"""mercer: kernel PCA that scales, with a certificate of its error."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import bases, datasets, kernels, metrics, plot, preimage, selectors, solvers
    from ._versions import show_versions
    from .estimators import (
        ClassicalMDS,
        DiffusionMap,
        HebbianKernelPCA,
        KernelCCA,
        KernelPCA,
        KernelPCASearch,
        NoveltyDetector,
        Nystroem,
        PatchDenoiser,
        SpectralClustering,
        SpectralEmbedding,
        StreamingKernelPCA,
        SupervisedKernelPCA,
        embedding_init,
        select,
    )
    from .estimators.kernel_pca import plan
    from .saving import load

__version__ = "0.1.0"

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
    "__version__",
    "bases",
    "datasets",
    "embedding_init",
    "kernels",
    "load",
    "metrics",
    "plan",
    "plot",
    "preimage",
    "select",
    "selectors",
    "show_versions",
    "solvers",
]

# Public names that are no modules, and the modules they live in. All are imported on first use:
# the command answers `--help` without waiting for scikit-learn.
_HOMES = {
    "ClassicalMDS": "estimators",
    "DiffusionMap": "estimators",
    "HebbianKernelPCA": "estimators",
    "KernelCCA": "estimators",
    "KernelPCA": "estimators",
    "KernelPCASearch": "estimators",
    "NoveltyDetector": "estimators",
    "Nystroem": "estimators",
    "PatchDenoiser": "estimators",
    "SpectralClustering": "estimators",
    "SpectralEmbedding": "estimators",
    "StreamingKernelPCA": "estimators",
    "SupervisedKernelPCA": "estimators",
    "embedding_init": "estimators",
    "load": "saving",
    "plan": "estimators.kernel_pca",
    "select": "estimators",
    "show_versions": "_versions",
}


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(f"module 'mercer' has no attribute {name!r}")
    try:
        home = import_module(f".{_HOMES.get(name, name)}", __name__)
    except ModuleNotFoundError as error:
        if error.name != f"{__name__}.{name}":
            raise
        raise AttributeError(f"module 'mercer' has no attribute {name!r}") from None
    value = getattr(home, name) if name in _HOMES else home
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__})
