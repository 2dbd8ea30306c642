"""Kernels: similarity functions k(x, z) that stand for inner products of a feature space.

Most kernels are one scalar function of one inner product,

    k(x, z) = f(left(x) . right(z)),

where ``left`` and ``right`` append at most two columns to the data: the Gaussian is
``exp`` of ``[sqrt(2 g) x, -g|x|^2, 1] . [sqrt(2 g) z, 1, -g|z|^2]``. A tile of the kernel
matrix is then one GEMM and one elementwise map, on any device, and a new kernel of this
kind is written in two short methods (`FactoredKernel`). Kernels that are sums over
coordinates (`Laplacian`, `Chi2`) fill their tiles with compiled loops instead
(`DirectKernel`), and `Callable` calls the user's function pair by pair. Kernels of x - z
share `DifferenceKernel`, kernels made of kernels share `CompositeKernel`: `+`, `*`, `**` and
``columns=`` make them (`Sum`, `Product`, `Power`, `Scaled`, `OnColumns`). The docstring of
`Kernel` lists what every kernel says of itself, and what certificates rest on.

Which to choose: `RBF` with ``gamma="median"`` for continuous data; `Matern` or
`RationalQuadratic` when neighbors matter but the Gaussian forgets far points too fast;
`Laplacian` for heavy-tailed columns; `Polynomial` for products of features; `Chi2` for
histograms; `Tanimoto` for fingerprints; `Cosine` for counts and texts; `Linear` is ordinary
PCA. Kernels of relatives (`mercer.relatives`) join `KERNELS` themselves, and are names of this
package like all others.
"""

from typing import Any

from .algebra import OnColumns, Power, Product, Scaled, Sum
from .base import FactoredKernel, Kernel, Pairs
from .coordinate import AdditiveChi2, Chi2, DirectKernel, Laplacian
from .derived import Hollow, Precomputed, SquaredDistance
from .dot_product import Cosine, Linear, Polynomial, Sigmoid
from .function import BlockFunction, Callable
from .stationary import RBF, Matern, RationalQuadratic
from .tanimoto import Tanimoto

KERNELS: dict[str, type[Kernel]] = {
    "linear": Linear,
    "poly": Polynomial,
    "polynomial": Polynomial,
    "rbf": RBF,
    "sigmoid": Sigmoid,
    "cosine": Cosine,
    "laplacian": Laplacian,
    "matern": Matern,
    "rational_quadratic": RationalQuadratic,
    "chi2": Chi2,
    "additive_chi2": AdditiveChi2,
    "tanimoto": Tanimoto,
    "precomputed": Precomputed,
}

#: Kernels that are made with an argument, and so have no name by which to ask for them.
OBJECTS: tuple[type[Kernel], ...] = (
    *(BlockFunction, Callable, Hollow),
    *(OnColumns, Power, Product, Scaled, Sum),
)

from .. import relatives  # noqa: E402, F401 - which adds kernels of its own


def __getattr__(name: str) -> Any:
    for kind in KERNELS.values():
        if kind.__name__ == name:
            return kind
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["KERNELS", "DirectKernel", "FactoredKernel", "Kernel", "Pairs", "SquaredDistance"]
__all__ += [kind.__name__ for kind in OBJECTS]
__all__ += sorted({kind.__name__ for kind in KERNELS.values()})
