"""mercer: kernel PCA that scales, with a certificate of error on every result."""

from . import bases, datasets, kernels, metrics, selectors, solvers
from .estimators import HebbianKernelPCA, KernelPCA
from .planning import plan

__version__ = "0.1.0"

__all__ = [
    "HebbianKernelPCA",
    "KernelPCA",
    "__version__",
    "bases",
    "datasets",
    "kernels",
    "metrics",
    "plan",
    "plot",
    "selectors",
    "solvers",
]


def __getattr__(name):
    # Drawing is not needed to compute, and matplotlib is slow to import.
    if name == "plot":
        from importlib import import_module

        return import_module(".plot", __name__)
    raise AttributeError(f"module 'mercer' has no attribute {name!r}")
