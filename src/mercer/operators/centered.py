"""H G H: the Gram matrix of a basis, centered, and the same of weighted rows and of distances.

With -d(x, z)^2 / 2 for a kernel it is -H D2 H / 2: classical scaling is kernel PCA with this
conditionally positive definite kernel, and shares its tiles, its single-precision draft and its
start. Vectors are in the array library of the basis; samples and weights are small and on the host.
"""

from functools import cached_property
from typing import Any

import numpy as np

from ..bases import AllPoints, GramBasis
from ..compute import Array, TiledEngine, array_namespace, on_device_of, row_blocks, to_numpy
from ..compute.engine import tile_sums
from ..fitting.checkpoint import Progress
from ..kernels import Linear, SquaredDistance
from ..kernels.base import check_values
from .base import SymmetricOperator, padded, sample_weights, start_sample

# Rounding of the row means of a draft, as a share of the kernel's own size.
DRAFT_ROUNDING = 1e-6


class CenteredGram(SymmetricOperator):
    """H G H for the Gram matrix G of a basis, H = I - 11'/n; G itself if not `center`.

    Of weighted rows it is D^1/2 P' G P D^1/2 with D the weights and P = I - w 1' / sum w. With
    whole weights its eigenvalues are those of the matrix with every row repeated as often as its
    weight says, and its eigenvectors those of that matrix, times the roots of the weights.

    The row means of G, which the result needs and which would cost a pass of their own,
    come as one more column of the first product.

    Parameters
    ----------
    basis : GramBasis
    center : bool
    weights : array of shape (n,) or None
        Positive.

    Attributes
    ----------
    weight : float
        The sum of the weights.
    means_rounding : float
        What the row means are rounded by, as a share of the kernel's own size.
    """

    def __init__(self, basis: GramBasis, center: bool = True, weights: np.ndarray | None = None):
        self.basis, self.center, self.weights = basis, center, weights
        self.shape = (basis.size, basis.size)
        self.weight = float(basis.size) if weights is None else float(weights.sum())
        self.definite, self.even = basis.kernel.definite, weights is None
        self.means_rounding = 0.0
        self._row_means: Any = None
        self._norm = 0.0

    def __matmul__(self, V):
        n, xp, root = self.shape[0], array_namespace(V), self._roots(V)
        counts = np.broadcast_to(1.0, n) if self.weights is None else self.weights
        self.basis.weights = counts
        Y = V if root is None else root[:, None] * V
        if not self.center:
            AV = self.basis.gram(Y)
        else:
            if self._row_means is None:
                # Of the size of V's entries, and a power of two, whose rounding is itself.
                unit = 2.0 ** -np.ceil(np.log2(n) / 2)
                ones = xp.full_like(V[:, :1], unit)
                if root is not None:
                    ones *= (root**2 * (n / self.weight))[:, None]
                AV = self.basis.gram(xp.concat([Y, ones], axis=1))
                self._row_means, AV = AV[:, -1] / (unit * n), AV[:, :-1]
            else:
                AV = self.basis.gram(Y)
            # G (V - 1 mean') without a change to V, which may have been rounded to be cheap, and
            # in main memory a few rows at a time: no second array of its size.
            means, sums = on_device_of(self._row_means, AV), Y.sum(axis=0)
            for block in row_blocks(n, 512 if xp is np else n):
                AV[block] -= means[block, None] * sums
            AV -= self._mean(AV)  # the product is an array of its own
        check_values(self.basis.kernel, AV)
        return AV if root is None else root[:, None] * AV

    def _roots(self, A):
        """The roots of the weights where A is and in its type, or None."""
        if self.weights is None:
            return None
        return array_namespace(A).asarray(on_device_of(self.weights, A), dtype=A.dtype) ** 0.5

    def _mean(self, A):
        """The weighted mean of the rows of A."""
        root = self._roots(A)
        return A.mean(axis=0) if root is None else root**2 @ A / self.weight

    def vectors(self, V: Array, rounded: bool = False) -> Array:
        V = self.basis.engine.asarray(V)
        return self.basis.rounded(V) if rounded else V

    @cached_property
    def draft(self) -> Any:  # type: ignore[override]
        """The operator over the basis's single-precision tiles."""
        tiles = self.basis.draft
        return None if tiles is None else CenteredGram(tiles, self.center, self.weights)

    @property
    def row_means(self) -> np.ndarray:
        """Weighted means of the rows of G, (n,); those of an even draft will do."""
        if self._row_means is None and self.even and self.draft is not None:
            self._row_means = self.draft.row_means
            self.means_rounding = DRAFT_ROUNDING
        if self._row_means is None:
            share = np.ones(self.shape[0]) if self.weights is None else self.weights
            share = self.basis.engine.asarray(share[:, None] / self.weight)
            self._row_means = self.basis.gram(share)[:, 0]
        return self._row_means

    def start(self, k: int, rng: np.random.Generator) -> Array:
        """Eigenvectors of a sample of the points, extended to all of them (Nystroem)."""
        index = start_sample(self.shape[0], k, rng)
        K = to_numpy(self.basis.minor(index)).astype(float)
        check_values(self.basis.kernel, K)
        w = np.ones(index.size) if self.weights is None else self.weights[index]
        if self.center:
            K = K - w @ K / w.sum()
            K = K - (K @ w / w.sum())[:, None]
        root = np.sqrt(w)
        W = root[:, None] * sample_weights(root[:, None] * K * root, k)
        V = padded(self.basis.columns(index, W), k, rng) if W.shape[1] else super().start(k, rng)
        V = V - self._mean(V) if self.center else V
        return V if self.weights is None else self._roots(V)[:, None] * V

    def rows(self, index: Array) -> Array:
        K = self.basis.rows(index)
        if self.center:
            means = on_device_of(self.row_means, K)
            K -= means
            K += (self._mean(means) - means[index])[:, None]
        root = self._roots(K)
        return K if root is None else root[index][:, None] * K * root

    def rows_times(self, index: Array, V: Array) -> Array:
        root = self._roots(V)
        Y = V if root is None else root[:, None] * V
        if self.center:
            total = Y.sum(axis=0) / self.weight
            Y = Y - (total if root is None else root[:, None] ** 2 * total)
        AV = self.basis.rows_times(index, Y)
        if self.center:
            # All rows tell their mean better than a draft does.
            everything = AV.shape[0] == self.shape[0]
            AV -= self._mean(AV) if everything else on_device_of(self.row_means, Y) @ Y
        return AV if root is None else root[index][:, None] * AV

    def diagonal(self) -> Array:
        d = self.basis.diagonal()
        if self.center:
            means = on_device_of(self.row_means, d)
            d = d - 2 * means + self._mean(means)
        return d if self.weights is None else self._roots(d) ** 2 * d

    def square(self) -> float | None:
        """Sum of squares of D^1/2 G D^1/2, less the part along D^1/2 1."""
        both, w = self.basis.sums(), self.weights
        if both is None or not np.isfinite(both[0]):
            return None
        square, sums = both
        if not self.center:
            return square
        sums = self.weight * self._row_means if sums is None else sums
        weighted = sums if w is None else w * sums
        along = float(weighted.sum()) / self.weight
        return square - 2 * float((weighted * sums).sum()) / self.weight + along**2

    @property
    def norm(self) -> float:
        """Frobenius norm of D^1/2 G D^1/2, available after the first product; before it 0.

        The rounding of an indefinite matrix is a share of it, whatever is on its diagonal.
        """
        if not self._norm:
            self.basis.weights = self.weights
            both = self.basis.sums()
            self._norm = 0.0 if both is None else float(both[0]) ** 0.5
        return self._norm

    def magnitude(self) -> float:
        # Before centering.
        d = abs(self.basis.diagonal())
        return float((d if self.weights is None else self._roots(d) ** 2 * d).max())

    def progress(self) -> Progress:
        progress = Progress(self.basis.checkpoint)
        progress.tick = self.basis.engine.on_tiles
        return progress

    def learn_from(self, other: "CenteredGram") -> None:
        """Take over the row means of the same operator in a session."""
        draft = vars(other).get("draft")
        if other._row_means is None and draft is not None and self.even:
            other._row_means = draft._row_means
            other.means_rounding = 0.0 if other._row_means is None else DRAFT_ROUNDING
        self._row_means, self.means_rounding = other._row_means, other.means_rounding
        if not self.definite:
            self._norm = other.norm or (0.0 if draft is None else draft.norm)

    def to_dense(self) -> Array:
        """The matrix; the row means are taken on the way."""
        K = self.basis.to_dense()
        root = self._roots(K)
        if not self.definite:
            w = K[0] * 0 + 1 if root is None else root**2
            self._norm = tile_sums(K, w, w, even=root is None)[0] ** 0.5
        if self.center:
            self._row_means = means = self._mean(K)
            check_values(self.basis.kernel, means)
            K -= means
            K -= (means - self._mean(means))[:, None]
        if root is not None:
            K *= root[:, None]
            K *= root
        return K


class DoubleCentered(CenteredGram):
    """-H D2 H / 2 for squared distances D2.

    That of Euclidean distances is the centered Gram matrix of the data themselves.
    """

    @classmethod
    def of_distance(
        cls, distance: Any, X: Array, engine: TiledEngine, rng: Any, n_components: int | None = None
    ) -> "DoubleCentered":
        """From a function of two blocks of points, asked for tiles on and above the diagonal.

        None is the Euclidean distance of the rows of X, of which inner products will do.
        """
        kernel = Linear() if distance is None else SquaredDistance(distance).resolve(X)
        # Centering removes the mean of Euclidean rows anyway; removed first it does not cancel.
        points = X - X.mean(axis=0) if distance is None else X
        return cls(AllPoints().build(kernel, points, engine, rng, n_components))


class MatrixDistance:
    """Distances from a matrix in memory or in a file; points are row numbers, (n, 1)."""

    def __init__(self, D: Array):
        self.D = D

    def __call__(self, rows, columns):
        """A block of the matrix; a slice of it where the points follow each other."""
        index: list[Any] = [points[:, 0].astype(np.intp) for points in (rows, columns)]
        for k, i in enumerate(index):
            if bool(np.all(np.diff(i) == 1)):
                index[k] = slice(int(i[0]), int(i[0]) + i.size)
        if any(isinstance(i, slice) for i in index):
            return np.asarray(self.D[tuple(index)])
        return np.asarray(self.D[np.ix_(*index)])
