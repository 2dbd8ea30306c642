"""Landmarks by the geometry of the rows: cluster centers, or points far from each other."""

import numpy as np

from ..compute import array_namespace, on_device_of, to_numpy
from ..compute.arrays import Array
from ..kernels import Kernel
from .base import Distinct, Selector, as_indices, distinct_rows

# Lloyd steps: 300 gained no more than a tenth of a percent in the projection error.
LLOYD_STEPS = 30
# Rows whose kernel with one row is computed at once.
COLUMN_ROWS = 65536


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

    def __init__(self, snap: bool = False, sample: int = 20000):
        self.snap = snap
        self.sample = sample

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
        model = Lloyd(size, n_init=1, max_iter=LLOYD_STEPS, random_state=int(rng.integers(2**31)))
        model.fit(sample, sample_weight=counts)
        if self.returns_points:
            return on_device_of(model.cluster_centers_, X)
        return rows[nearest(sample, model)]


def nearest(X, model):
    """For each center the closest row that no earlier center has taken, largest cluster first."""
    D = model.transform(X)
    chosen = np.empty(D.shape[1], dtype=np.intp)
    for j in np.argsort(-np.bincount(model.labels_, minlength=D.shape[1]), kind="stable"):
        chosen[j] = np.argmin(D[:, j])
        D[chosen[j]] = np.inf
    return chosen


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
                squares = diagonal + diagonal[z] - 2 * kernel_column(kernel, X, z)
                gap = xp.clip(squares, 0, gap)
                order.append(z)
            z = int(xp.argmax(gap))
        return as_indices(order)


def kernel_column(kernel, X, z):
    """k(x, x_z) for every row, (n,), in blocks of rows."""
    z = X[[z]]
    parts = [kernel(X[i : i + COLUMN_ROWS], z)[:, 0] for i in range(0, X.shape[0], COLUMN_ROWS)]
    return array_namespace(parts[0]).concat(parts)
