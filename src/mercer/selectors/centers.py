"""Landmarks by the geometry of the rows: cluster centers, or points far from each other."""

from dataclasses import dataclass

import numpy as np

from ..compute import array_namespace, on_device_of, to_numpy
from ..compute.arrays import Array, some_of
from ..kernels import Kernel
from .base import Distinct, Selector, as_indices, distinct_rows, row_tiles


@dataclass(eq=False, repr=False)
class KMeans(Selector):
    """Centers of k-means, which need not be rows.

    For Gaussian kernels on continuous data usually the lowest error up to 50 atoms, and by
    far the best leading components; poor where clusters are very unequal.

    Parameters
    ----------
    snap : bool
        Replace each center by the nearest row not yet taken.
    sample : int
        Rows, drawn uniformly, that the centers are fitted to.

    References
    ----------
    Zhang, Tsang & Kwok (2008), Improved Nystroem low-rank approximation and error analysis.
    """

    nested = False
    needs_points = True

    snap: bool = False
    sample: int = 20000

    def work_bytes(self, n: int, size: int, d: int = 0) -> int:
        """The sample, its distinct rows, and the copy and the distances of Lloyd's algorithm."""
        return min(n, max(self.sample, size)) * (32 * d + 16 * size)

    @property
    def returns_points(self) -> bool:  # type: ignore[override]
        """Centers are points; snapped ones are rows."""
        return not self.snap

    def select(self, kernel: Kernel, X: Array, size: int, rng: np.random.Generator) -> Array:
        """Fit `size` centers, (size, d), or their nearest rows, (size,)."""
        # Late, since it is a heavy import that few selections need.
        from sklearn.cluster import KMeans as Lloyd

        rows = rng.permutation(X.shape[0])[: max(self.sample, size)]
        sample = to_numpy(X[rows])
        first, counts, _ = distinct_rows(sample)
        rows, sample = rows[first], sample[first]
        if size >= len(rows):
            return X[rows] if self.returns_points else rows
        # 300 steps gained no more than a tenth of a percent in the projection error.
        model = Lloyd(size, n_init=1, max_iter=30, random_state=int(rng.integers(2**31)))
        model.fit(sample, sample_weight=counts)
        if self.returns_points:
            return on_device_of(model.cluster_centers_, X)
        # For each center the closest row that no earlier one has taken, largest cluster first.
        D, nearest = model.transform(sample), np.empty(size, dtype=np.intp)
        for j in np.argsort(-np.bincount(model.labels_, minlength=size), kind="stable"):
            nearest[j] = np.argmin(D[:, j])
            D[nearest[j]] = np.inf
        return rows[nearest]


class FarthestPoint(Selector):
    """Each row the farthest, in feature space, from those before it; the first at random.

    ``|phi(x) - phi(z)|^2 = k(x, x) + k(z, z) - 2 k(x, z)``. Covers the data evenly whatever
    their density, and so spends atoms on outliers.

    References
    ----------
    Gonzalez (1985), Clustering to minimize the maximum intercluster distance.
    """

    def select(self, kernel: Kernel, X: Array, size: int, rng: np.random.Generator) -> Array:
        """Choose `size` rows; n size kernel values, O(n) memory."""
        diagonal, distinct = on_device_of(kernel.diag(X), X), Distinct(X)
        xp = array_namespace(diagonal)
        diagonal = xp.asarray(diagonal, dtype=xp.float64)
        order: list[int] = []
        gap = xp.full_like(diagonal, np.inf)
        z = int(rng.integers(X.shape[0]))
        while len(order) < size and gap[z] > 0:
            gap[z] = 0
            if distinct.admit(z):
                tiles, row = row_tiles(X, X.shape[0]), X[[z]]
                column = xp.concat([kernel(some_of(X, tile), row)[:, 0] for tile in tiles])
                gap = xp.clip(diagonal + diagonal[z] - 2 * column, 0, gap)
                order.append(z)
            z = int(xp.argmax(gap))
        return as_indices(order)
