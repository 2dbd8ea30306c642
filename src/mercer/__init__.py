"""mercer: kernel PCA that scales, with a certificate of error on every result."""

from . import bases, datasets, kernels, metrics, preimage, selectors, solvers
from .estimators import (
    ClassicalMDS,
    HebbianKernelPCA,
    KernelPCA,
    KernelPCASearch,
    NoveltyDetector,
    PatchDenoiser,
    SpectralClustering,
    select,
)
from .planning import plan

__version__ = "0.1.0"

__all__ = [
    "ClassicalMDS",
    "HebbianKernelPCA",
    "KernelPCA",
    "KernelPCASearch",
    "NoveltyDetector",
    "PatchDenoiser",
    "SpectralClustering",
    "__version__",
    "bases",
    "datasets",
    "kernels",
    "metrics",
    "plan",
    "plot",
    "preimage",
    "select",
    "selectors",
    "solvers",
]


def __getattr__(name):
    # Drawing is not needed to compute, and matplotlib is slow to import.
    if name == "plot":
        from importlib import import_module

        return import_module(".plot", __name__)
    raise AttributeError(f"module 'mercer' has no attribute {name!r}")
