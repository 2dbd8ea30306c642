"""Bases: the finitely many vectors of feature space in which a result is written.

Every direction kernel PCA finds is a weighted sum of basis vectors, so a basis answers
the same few questions whatever the method: inner products with new rows (`project`),
with itself (`gram`), and the squared norms of new rows (`norms`). With all points as the
basis the method is exact; a kernel matrix given as such is a basis without points.
`Landmarks` are a few chosen points, and the error they cause is certified. `RandomFeatures`
need no points at all, which is their only merit: at equal size landmarks are closer.
"""

from .base import Basis, BasisRecipe, GramBasis
from .hollow_matrix import HollowMatrix
from .landmarks import Landmarks
from .points import AllPoints, PointBasis, PointGram
from .precomputed import PrecomputedBasis
from .random_features import FeatureBasis, RandomFeatures

BASES: dict[str, type[BasisRecipe]] = {
    "points": AllPoints,
    "landmarks": Landmarks,
    "features": RandomFeatures,
}

__all__ = [
    "BASES",
    "AllPoints",
    "Basis",
    "BasisRecipe",
    "FeatureBasis",
    "GramBasis",
    "HollowMatrix",
    "Landmarks",
    "PointBasis",
    "PointGram",
    "PrecomputedBasis",
    "RandomFeatures",
]
