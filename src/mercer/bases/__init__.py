"""Bases: the finitely many vectors of feature space in which a result is written.

Every direction kernel PCA finds is a weighted sum of basis vectors, so a basis answers
the same few questions whatever the method: inner products with new rows (`project`),
with itself (`gram`), and the squared norms of new rows (`norms`). With all points as the
basis the method is exact; a kernel matrix given as such is a basis without points.
`Landmarks` are a few chosen points, and the error they cause is certified. `RandomFeatures`
need no points at all, which is their only merit: at equal size landmarks are closer. Up to three
columns `FourierGrid` is exact to any precision asked for, in one transform of any number of rows.
For the linear and the cosine kernel `Columns` are exact: PCA of d x d moments.
"""

from ..kernels.base import multiplies_rows
from .base import Basis, BasisRecipe, GramBasis
from .columns import ColumnBasis, Columns
from .fourier import FourierBasis, FourierGrid, TrigonometricMoments
from .landmarks import Landmarks
from .points import AllPoints, PointBasis, PointGram
from .precomputed import HollowMatrix, PrecomputedBasis
from .products import ProductGram
from .random_features import FeatureBasis, RandomFeatures
from .whitening import Whitening, choose_whitening

BASES: dict[str, type[BasisRecipe]] = {
    "points": AllPoints,
    "landmarks": Landmarks,
    "features": RandomFeatures,
    "fourier": FourierGrid,
    "columns": Columns,
}

__all__ = [
    "BASES",
    "AllPoints",
    "Basis",
    "BasisRecipe",
    "ColumnBasis",
    "Columns",
    "FeatureBasis",
    "FourierBasis",
    "FourierGrid",
    "GramBasis",
    "HollowMatrix",
    "Landmarks",
    "PointBasis",
    "PointGram",
    "PrecomputedBasis",
    "ProductGram",
    "RandomFeatures",
    "TrigonometricMoments",
    "Whitening",
    "choose_whitening",
    "multiplies_rows",
]
