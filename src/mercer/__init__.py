"""mercer: kernel PCA that scales, with a certificate of its error."""

from importlib import import_module
from typing import TYPE_CHECKING

from . import estimators

if TYPE_CHECKING:
    from . import bases, datasets, kernels, metrics, plot, preimage, selectors, solvers
    from ._packages import show_versions
    from .estimators import *  # noqa: F403
    from .estimators.planning import plan
    from .rows import merge
    from .saving import load

__version__ = "0.1.0"

__all__ = [
    "__version__",
    "bases",
    "datasets",
    "kernels",
    "load",
    "merge",
    "metrics",
    "plan",
    "plot",
    "preimage",
    "selectors",
    "show_versions",
    "solvers",
]
__all__ += estimators.__all__

# Public names that are no modules, and the modules they live in. All are imported on first use:
# the command answers `--help` without waiting for scikit-learn.
_HOMES = dict.fromkeys(estimators.__all__, "estimators")
_HOMES |= {"load": "saving", "merge": "rows", "plan": "estimators.planning"}
_HOMES |= {"show_versions": "_packages"}


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
