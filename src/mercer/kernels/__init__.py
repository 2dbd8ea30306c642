"""Kernels: similarity functions k(x, z) that stand for inner products of a feature space.

Most kernels are one scalar function of one inner product,

    k(x, z) = f(left(x) . right(z)),

where ``left`` and ``right`` append at most two columns to the data: the Gaussian is
``exp`` of ``[sqrt(2 g) x, -g|x|^2, 1] . [sqrt(2 g) z, 1, -g|z|^2]``. A tile of the kernel
matrix is then one GEMM and one elementwise map, on any device, and a new kernel of this
kind is written in two short methods (`FactoredKernel`). Kernels that are sums over
coordinates (`Laplacian`, `Chi2`, `Gower`) fill their tiles with compiled loops instead
(`DirectKernel`), and `Callable` calls the user's function pair by pair.

Which to choose: `RBF` with ``gamma="median"`` for continuous data; `Matern` or
`RationalQuadratic` when neighbors matter but the Gaussian forgets far points too fast;
`Laplacian` for heavy-tailed columns; `Polynomial` for products of features; `Chi2` for
histograms; `Cosine` for counts and texts; `Gower` for numbers, categories and booleans
together; `Linear` is ordinary PCA.
"""

from .base import DirectKernel, FactoredKernel, Kernel
from .coordinate import AdditiveChi2, Callable, Chi2, Laplacian
from .distance import SquaredDistance
from .dot_product import Cosine, Linear, Polynomial, Sigmoid
from .gower import Gower
from .hollow import Hollow
from .pairs import Pairs
from .precomputed import Precomputed
from .stationary import RBF, Matern, RationalQuadratic

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
    "gower": Gower,
    "precomputed": Precomputed,
}

__all__ = [
    "KERNELS",
    "RBF",
    "AdditiveChi2",
    "Callable",
    "Chi2",
    "Cosine",
    "DirectKernel",
    "FactoredKernel",
    "Gower",
    "Hollow",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matern",
    "Pairs",
    "Polynomial",
    "Precomputed",
    "RationalQuadratic",
    "Sigmoid",
    "SquaredDistance",
]
