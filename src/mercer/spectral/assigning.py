"""From the embedding to labels: three ways, each a rule that new rows can follow.

All start from V, the rows of D^{-1/2} U for the leading eigenvectors U of the affinities.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.linalg import qr, svd
from sklearn.cluster import KMeans

from ..compute.arrays import Array

# The most turns of the rotation; about ten are enough.
MOST_TURNS = 20


class Assignment:
    """A rule from rows of V to labels; columns of V beyond those that count are left out."""

    n_columns: int

    def coordinates(self, V: Array) -> np.ndarray:
        """The columns of V that count, by rows of unit length, (n, n_columns)."""
        return directions(V[:, : self.n_columns])


@dataclass(frozen=True)
class Centers(Assignment):
    """k-means on rows of unit length (Ng, Jordan & Weiss 2002): the nearest center.

    Attributes
    ----------
    centers : array of shape (c, k)
    """

    centers: Annotated[np.ndarray, "c k"]

    n_clusters = property(lambda self: self.centers.shape[0])
    n_columns = property(lambda self: self.centers.shape[1])

    def labels(self, V: Array) -> np.ndarray:
        """The cluster of every row of V, (n,)."""
        distances = (self.centers**2).sum(axis=1) - 2 * self.coordinates(V) @ self.centers.T
        return distances.argmin(axis=1).astype(np.int32)


class OfRotation(Assignment):
    """As many clusters as columns."""

    rotation: np.ndarray

    n_clusters = property(lambda self: len(self.rotation))

    n_columns = n_clusters  # type: ignore[assignment]


@dataclass(frozen=True)
class Rotated(OfRotation):
    """Rows of unit length in rotated axes, one a cluster: the largest coordinate.

    Attributes
    ----------
    scale : array of shape (k,)
        Of the columns, before rows get their length.
    rotation : array of shape (k, k)
    """

    scale: Annotated[np.ndarray, "k"]
    rotation: Annotated[np.ndarray, "k k"]

    def labels(self, V: Array) -> np.ndarray:
        """The cluster of every row of V, (n,)."""
        rows = unit_rows(V[:, : self.n_columns] * self.scale)
        return (rows @ self.rotation).argmax(axis=1).astype(np.int32)


@dataclass(frozen=True)
class Pivoted(OfRotation):
    """Coordinates in the axes of k chosen rows: the largest in modulus.

    Attributes
    ----------
    rotation : array of shape (k, k)
    """

    rotation: Annotated[np.ndarray, "k k"]

    def labels(self, V: Array) -> np.ndarray:
        """The cluster of every row of V, (n,)."""
        return np.abs(V[:, : self.n_columns] @ self.rotation).argmax(axis=1).astype(np.int32)


def by_kmeans(V: Array, n_clusters: int, n_init: int, seed: np.random.RandomState) -> Centers:
    """The best of `n_init` starts of k-means."""
    means = KMeans(n_clusters, n_init=n_init, random_state=seed).fit(directions(V))
    return Centers(means.cluster_centers_.astype(float))


def by_rotation(V: Array, n_clusters: int, n_init: int, seed: np.random.RandomState) -> Rotated:
    """The rotation that brings rows nearest to one axis each (Yu & Shi 2003).

    In turns: the labels by the largest coordinate, then the best rotation for these labels. The
    start is a row drawn at random, then always the row most orthogonal to those before.
    """
    n, k = V.shape
    # As scikit-learn has it: columns of equal length, the first row nowhere positive.
    lengths = np.maximum(np.linalg.norm(V, axis=0), np.finfo(float).tiny)
    scale = np.sqrt(n) / lengths * np.where(V[0] > 0, -1.0, 1.0)
    rows = unit_rows(V * scale)
    R = np.empty((k, k))
    R[:, 0] = rows[seed.randint(n)]
    overlap = np.zeros(n)
    for j in range(1, k):
        overlap += np.abs(rows @ R[:, j - 1])
        R[:, j] = rows[overlap.argmin()]
    before = 0.0
    for _ in range(MOST_TURNS + 1):
        labels = (rows @ R).argmax(axis=1)
        U, lengths, Vt = svd(np.eye(k)[:, labels] @ rows)
        cut = 2.0 * (n - lengths.sum())
        if abs(cut - before) < np.finfo(float).eps:
            break
        before, R = cut, Vt.T @ U.T
    return Rotated(scale, R)


def by_pivots(V: Array, n_clusters: int, n_init: int, seed: np.random.RandomState) -> Pivoted:
    """The axes of the k rows that a pivoted QR factorization takes first (Damle et al. 2019)."""
    k = V.shape[1]
    pivots = qr(V.T, mode="r", pivoting=True)[1][:k]
    U, _, Vt = svd(V[pivots].T)
    return Pivoted(U @ Vt)


#: Ways to labels by the names that scikit-learn has for them.
ASSIGNING: dict[str, Callable] = {
    "kmeans": by_kmeans,
    "discretize": by_rotation,
    "cluster_qr": by_pivots,
}


def eigengaps(values: Array) -> np.ndarray:
    """The steps between k eigenvalues of a normalized affinity matrix, largest first, (k - 1,).

    Of f = sqrt(1 - value), (f[i+1] - f[i]) / f[i+1]^(1/4). Along a curve without a gap f rises
    evenly, and ever more slowly within a cluster of more dimensions (Weyl), so that of f a large
    step is one between clusters; steps of the values themselves grow with their number, and moons
    had 18 clusters. The fourth root decides between steps of about the same size for fewer
    clusters: over 20 kinds of data the number found was off by a factor of exp(0.23), and
    exp(0.34) without it.
    """
    f = np.sqrt(np.maximum(1 - values, 0.0))
    return np.diff(f) / np.maximum(f[1:], np.finfo(float).tiny) ** 0.25


def directions(V) -> np.ndarray:
    """Rows scaled to unit length; a single column stays as it is."""
    return V if V.shape[1] == 1 else unit_rows(V)


def unit_rows(V) -> np.ndarray:
    """Rows scaled to unit length; zero rows stay zero."""
    # Rows of points far from everything are tiny, and their squares would vanish.
    largest = np.abs(V).max(axis=1, keepdims=True)
    V = np.divide(V, largest, out=np.zeros(V.shape), where=largest > 0)
    return V / np.maximum(np.sqrt(np.einsum("ij,ij->i", V, V)), 1e-300)[:, None]
