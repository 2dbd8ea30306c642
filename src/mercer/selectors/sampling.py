"""Landmarks by sampling, in two stages, and by the geometry of the rows.

Samples draw each row with a probability known beforehand; cluster centers and points far from each
other follow the geometry. Uniform draws look at nothing, weighted ones at the diagonal of K. Ridge
leverage is how much a row matters to ridge regression on all of them,
``l_i = (K (K + lambda I)^-1)_ii``, estimated from a sample S of rows as
``(k_ii - k_iS (K_SS + lambda W^-2)^-1 k_Si) / lambda``, W the weights that undo the sampling. Rows
that equal an earlier one are skipped, which does not change the distribution among distinct rows.
"""

from math import isqrt

import numpy as np
from scipy.linalg import eigvalsh

from ..compute import array_namespace, on_device_of, to_numpy
from ..compute.arrays import Array, some_of
from ..compute.linalg import cholesky
from ..kernels import Kernel
from ..kernels.base import wide_row_squares
from . import base
from .cholesky import RPCholesky
from .greedy import FullGreedy

# Rows of the pool for each atom, and at least. On covertype, 200 rows that full greedy chose of
# 2,000 have 0.77 of the error of random ones, of 4,000 0.71 for four times the work; 1,000 rows
# of 3,000 have 0.62, of 5,000 0.56 for two and a half times the work.
POOL_PER_ATOM, MIN_POOL = 8, 2000
# Landmarks from which random pivots are the default, and rows that they are drawn from for each:
# greedy choice takes time with the square of its pool. Of 8,000 rows of covertype 1,000 pivots lose
# 0.17 of what random rows do, after 0.4 s; greedy ones of 4,000 lose 0.22 after 2 s.
MANY, PIVOT_POOL = 300, 4
# Rows that full greedy chooses among in some milliseconds.
LEAST_POOL = 300


class TwoStage(base.Selector):
    """`first` picks a pool, `second` selects within it.

    Careful selectors need the Gram matrix of all their candidates. A uniform pool a few times
    the size asked for gives most of what they could reach on all rows.

    Parameters
    ----------
    first : selector or None
        None is `Uniform()`.
    second : selector or None
        None is `FullGreedy()`.
    pool : int or None
        Rows that the first stage picks; None is the larger of 2,000 and 8 times the size.

    References
    ----------
    Perry, Elhabian & Whitaker, Efficient non-linear analysis of large data sets (slides).
    """

    first: base.Selector | None = None
    second: base.Selector | None = None
    pool: int | None = None

    @property
    def stages(self) -> tuple[base.Selector, base.Selector]:
        """Both selectors, with the defaults in place."""
        return self.first or Uniform(), self.second or FullGreedy()

    @property
    def nested(self) -> bool:  # type: ignore[override]
        """A pool of fixed size, and a nested choice in it."""
        return self.pool is not None and self.stages[1].nested

    @property
    def needs_points(self) -> bool:  # type: ignore[override]
        return any(stage.needs_points for stage in self.stages)

    @property
    def returns_points(self) -> bool:  # type: ignore[override]
        return any(stage.returns_points for stage in self.stages)

    @property
    def independent(self) -> bool:  # type: ignore[override]
        return self.stages[1].independent

    def work_bytes(self, n: int, size: int, d: int = 0) -> int:
        (first, second), pool = self.stages, min(n, self._pool(size))
        return max(first.work_bytes(n, pool, d), second.work_bytes(pool, size, d))

    def select(self, kernel: Kernel, X: Array, size: int, rng: np.random.Generator) -> Array:
        """Choose at most `size` landmarks among a pool of the rows of X."""
        first, second = self.stages
        pool = first.select(kernel, X, self._pool(size), rng)
        candidates = pool if first.returns_points else some_of(X, pool)
        chosen = second.select(kernel, candidates, size, rng)
        return chosen if second.returns_points else pool[chosen]

    def _pool(self, size: int) -> int:
        return self.pool or max(MIN_POOL, POOL_PER_ATOM * size)


def default_selector(n: int | None, size: int) -> TwoStage:
    """How `size` landmarks of n rows are chosen by default; n is None for many rows.

    In less time than the fit takes that follows, which grows with n size^2. Full greedy within a
    pool of sqrt(n size) / 3 rows, from 300 to 2,000 and at least twice the size; from 300
    landmarks on random pivots among four times as many rows, and at least 2,000.
    """
    if size >= MANY:
        return TwoStage(second=RPCholesky(), pool=max(MIN_POOL, PIVOT_POOL * size))
    most = MIN_POOL if n is None else isqrt(n * size) // 3
    return TwoStage(second=FullGreedy(), pool=max(2 * size, LEAST_POOL, min(MIN_POOL, most)))


class Uniform(base.Selector):
    """Rows drawn uniformly: the baseline, and the first stage of a better choice.

    Parameters
    ----------
    replace : bool
        Draw with replacement. A row drawn again is not repeated, so that `size` draws give
        fewer atoms: about 0.63 n of n.

    References
    ----------
    Williams & Seeger (2001), Using the Nystroem method to speed up kernel machines.
    """

    reads_chosen = True

    replace: bool = False

    def select(self, kernel: Kernel, X: Array, size: int, rng: np.random.Generator) -> Array:
        """Draw `size` of the rows of X; O(n)."""
        n = X.shape[0]
        order = rng.integers(n, size=size) if self.replace else rng.permutation(n)
        return base.first_distinct(X, order, size)


class NormWeighted(base.Selector):
    """Rows drawn with probability proportional to k(x, x)^2.

    Equal to `Uniform` for stationary kernels, whose norms are all one. For polynomial kernels
    of degree 2 and 3 its error was 0.85 to 2.7 of that of `Uniform`: large norms may matter, or
    be outliers.

    Parameters
    ----------
    replace : bool
        Draw with replacement, as in the paper. A row drawn again is not repeated, so that
        fewer than `size` atoms come back.

    References
    ----------
    Drineas & Mahoney (2005), On the Nystroem method for approximating a Gram matrix.
    """

    reads_chosen = True

    replace: bool = False

    def select(self, kernel: Kernel, X: Array, size: int, rng: np.random.Generator) -> Array:
        """Draw `size` of the rows of X; O(n) and the diagonal of K."""
        weights = np.square(to_numpy(kernel.diag(X)).astype(np.float64))
        total = weights.sum()
        if self.replace and total > 0:
            return base.first_distinct(X, rng.choice(len(weights), size, p=weights / total), size)
        return base.first_distinct(X, weighted_order(weights, rng), size)


class RidgeLeverage(base.Selector):
    """Rows drawn by approximate ridge leverage scores, recursively.

    Half the rows give a sample, the sample gives the scores of twice as many rows, those a
    better sample, up to all. Guarantees for every kernel; in the comparison of
    `mercer.selectors` behind `RPCholesky`, which costs no more.

    Parameters
    ----------
    oversampling : float
        Rows of the intermediate samples for each atom asked for.

    References
    ----------
    Musco & Musco (2017), Recursive sampling for the Nystroem method.
    """

    nested = False

    #: The kernel with a sample of the size of the choice, and its factor.
    atom_bytes = 30

    oversampling: float = 1.0

    def select(self, kernel: Kernel, X: Array, size: int, rng: np.random.Generator) -> Array:
        """Draw `size` rows; about 2 n size kernel values."""
        order = rng.permutation(X.shape[0])
        width = int(np.ceil(self.oversampling * size))
        # Rows that are known at each level: about `width`, doubling up to half of them.
        stops = [max(1, len(order) // 2)]
        while stops[0] > 2 * width:
            stops.insert(0, stops[0] // 2)
        sample, weights = order[: stops[0]], np.ones(stops[0])
        for stop in stops[1:]:
            scores = leverage(kernel, X, order[:stop], sample, weights, size)
            chance = np.minimum(1, width * scores / scores.sum())
            drawn = rng.random(stop) < chance
            if not drawn.any():
                drawn[np.argmax(chance)] = True
            sample, weights = order[:stop][drawn], 1 / np.sqrt(chance[drawn])
        scores = leverage(kernel, X, order, sample, weights, size)
        return base.first_distinct(X, order[weighted_order(scores, rng)], size)


class KMeans(base.Selector):
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
        first, counts, _ = base.distinct_rows(sample)
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


class FarthestPoint(base.Selector):
    """Each row the farthest, in feature space, from those before it; the first at random.

    ``|phi(x) - phi(z)|^2 = k(x, x) + k(z, z) - 2 k(x, z)``. Covers the data evenly whatever
    their density, and so spends atoms on outliers.

    References
    ----------
    Gonzalez (1985), Clustering to minimize the maximum intercluster distance.
    """

    reads_chosen = True

    def select(self, kernel: Kernel, X: Array, size: int, rng: np.random.Generator) -> Array:
        """Choose `size` rows; n size kernel values, O(n) memory."""
        diagonal, distinct = on_device_of(kernel.diag(X), X), base.Distinct(X)
        xp = array_namespace(diagonal)
        diagonal = xp.asarray(diagonal, dtype=xp.float64)
        order: list[int] = []
        gap = xp.full_like(diagonal, np.inf)
        z = int(rng.integers(X.shape[0]))
        while len(order) < size and gap[z] > 0:
            gap[z] = 0
            if distinct.admit(z):
                tiles, row = base.row_tiles(X, X.shape[0]), X[[z]]
                column = xp.concat([kernel(some_of(X, tile), row)[:, 0] for tile in tiles])
                gap = xp.clip(diagonal + diagonal[z] - 2 * column, 0, gap)
                order.append(z)
            z = int(xp.argmax(gap))
        return base.as_indices(order)


def leverage(kernel, X, rows, sample, weights, size):
    """Approximate ridge leverage of `rows` from a weighted sample."""
    sample, keep = np.unique(sample, return_index=True)
    weights, Z = weights[keep], some_of(X, sample)
    G = np.asarray(base.host_gram(kernel, Z), dtype=np.float64)
    # The ridge is the mean size of the eigenvalues that the sample can tell from its own noise:
    # `size` rows drawn by leverage resolve about size / (4 log size) directions, so the tail starts
    # there. Never below rounding, nor twice the negative eigenvalues of an indefinite kernel.
    rank = int(np.ceil(size / (4 * np.log(max(size, 3)))))
    values = eigvalsh(weights[:, None] * G * weights, check_finite=False)[::-1]
    least, values = values[-1], np.maximum(values, 0)
    tiny = float(np.finfo(float).tiny)
    smallest = len(G) * np.finfo(float).eps * max(values[0], tiny)
    # Rows of zeros have no rounding either: the ridge over squared weights must not underflow.
    ridge = max(values[rank:].sum() / rank, smallest, -2 * least, 1e16 * tiny)
    C = cholesky(G + np.diag(ridge / weights**2), lower=True, check_finite=False)
    scores = []
    for tile in base.row_tiles(X, len(rows)):
        block = some_of(X, rows[tile])
        K = kernel(Z, block)
        xp = array_namespace(K)
        V = base.solve_lower(C, xp.asarray(K, dtype=xp.float64))
        scores.append(on_device_of(kernel.diag(block), K) - wide_row_squares(V.T))
    # Rounding can leave a row of the sample slightly below zero; it still counts.
    return np.clip(to_numpy(xp.concat(scores)) / ridge, tiny, 1)


def weighted_order(weights, rng):
    """All indices with a weight, as successive draws without replacement would list them.

    Sorting log-weights plus Gumbel noise is that draw, in one go.
    """
    with np.errstate(divide="ignore"):
        keys = np.log(np.maximum(weights, 0).astype(np.float64))
    keys = keys + rng.gumbel(size=len(keys))
    order = np.argsort(-keys, kind="stable")
    return order[np.isfinite(keys[order])]
