"""Bases: the finitely many vectors of feature space in which a result is written.

Every direction kernel PCA finds is a weighted sum of basis vectors, so a basis answers
the same few questions whatever the method: inner products with new rows (`project`),
with itself (`gram`), and the squared norms of new rows (`norms`). With all points as the
basis the method is exact; a kernel matrix given as such is a basis without points.
"""

from .base import Basis, BasisRecipe
from .points import AllPoints, PointBasis
from .precomputed import PrecomputedBasis

BASES: dict[str, type[BasisRecipe]] = {"points": AllPoints}

__all__ = [
    "BASES",
    "AllPoints",
    "Basis",
    "BasisRecipe",
    "PointBasis",
    "PrecomputedBasis",
]
