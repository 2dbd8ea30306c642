"""D^{-1/2} G D^{-1/2}: the Gram matrix of a basis, normalized by its degrees."""

from functools import cached_property
from typing import Any

import numpy as np

from ..bases import GramBasis
from ..compute import Array, array_namespace, to_numpy
from ..kernels import Hollow
from .base import SymmetricOperator, padded, sample_weights, start_sample


class NormalizedGram(SymmetricOperator):
    """D^{-1/2} G D^{-1/2} for the Gram matrix G of a basis, D the diagonal of its row sums.

    The affinities of spectral clustering (Ng, Jordan & Weiss 2002). The degrees take a
    product of their own, and `start` lets its vectors ride along in it: what would be the
    first power step is free. A row without any affinity keeps degree one.

    Parameters
    ----------
    basis : GramBasis
    degrees : array of shape (n,) or None
        Numbers in place of the row sums of G; None to take these from the first product.
    """

    def __init__(self, basis: GramBasis, degrees: Array = None):
        self.basis = basis
        self.shape = (basis.size, basis.size)
        self.definite = basis.kernel.definite
        #: The smallest row sum: negative where the entries of G are no affinities.
        self.least_degree = 0.0
        self._given = degrees is not None
        self._product_weights: Any = None
        self._degrees = None if degrees is None else self._taken(degrees)

    def __matmul__(self, V):
        scale = self.degrees[:, None] ** -0.5
        self.basis.weights = self._product_weights
        return scale * self.basis.gram(scale * V)

    def vectors(self, V: Array, rounded: bool = False) -> Array:
        return self.basis.engine.asarray(V)

    @cached_property
    def draft(self) -> Any:  # type: ignore[override]
        """The operator over the basis's single-precision tiles, with degrees of its own."""
        tiles, degrees = self.basis.draft, self._degrees if self._given else None
        return None if tiles is None else NormalizedGram(tiles, degrees)

    @property
    def degrees(self) -> Array:
        """Row sums of G in the operator's own precision, (n,)."""
        if self._degrees is None:
            ones = self.basis.engine.zeros((self.shape[0], 1)) + 1.0
            self._degrees = self._taken(self.basis.gram(ones)[:, 0])
        return self._degrees

    @property
    def is_coarse(self) -> bool:
        """Whether no product in double precision was made, and degrees are those of the draft."""
        return self._degrees is None and self.draft is not None

    @property
    def known_degrees(self) -> Array:
        """The degrees without a product in double precision: those of the draft will do."""
        if self.is_coarse:
            self.least_degree = self.draft.least_degree
            return self.draft.degrees
        return self.degrees

    @property
    def scale(self) -> Array:
        """D^{-1/2}, (n,)."""
        return self.degrees**-0.5

    def rows_times(self, index: Array, V: Array) -> Array:
        """By the degrees that are known."""
        scale = self.known_degrees**-0.5
        V = scale[:, None] * V
        AV = self.basis.rows_times(index, V)
        if isinstance(self.basis.kernel, Hollow):
            AV -= self.basis.kernel.kernel.diag(self.basis.points[index])[:, None] * V[index]
        return scale[index, None] * AV

    def rows(self, index: Array) -> Array:
        scale = self.scale
        return scale[index, None] * self.basis.rows(index) * scale

    def square(self) -> float | None:
        sums = None if self._degrees is None else self.basis.sums()
        return None if sums is None or not np.isfinite(sums[0]) else sums[0]

    def diagonal(self) -> Array:
        return self.basis.diagonal() / self.degrees

    def to_dense(self) -> Array:
        """The matrix; the degrees are taken on the way."""
        K = self.basis.to_dense()
        if self._degrees is None:
            self._degrees = self._taken(K.sum(axis=0))
        K *= self.scale
        K *= self.scale[:, None]
        return K

    def sparse(self) -> Any:
        """The matrix as CSR, where that of the basis is; None otherwise."""
        S = self.basis.sparse()
        if S is None:
            return None
        # In place: `multiply` goes by way of COO, with several copies of all indices.
        S, scale = S.tocsr(copy=True), self.scale
        S.data *= scale[S.indices]
        S.data *= np.repeat(scale, np.diff(S.indptr))
        return S

    def start(self, k: int, rng: np.random.Generator) -> Array:
        """One product with eigenvectors of a sample of the points, extended to all of them.

        With W the extension over its degrees, D^{-1/2} G W is the operator's product with
        D^{1/2} W: nothing in it needs the degrees before G W and G 1 are there together.
        """
        index = start_sample(self.shape[0], k, rng)
        K = self.basis.minor(index).astype(float)
        scale = nonzero_degrees(K.sum(axis=0)) ** -0.5
        W = scale[:, None] * sample_weights(scale[:, None] * K * scale, k)
        V = self.basis.columns(index, np.hstack([W, np.ones((index.size, 1))]))
        W = padded(V[:, :-1] / nonzero_degrees(V[:, -1])[:, None], k, rng)
        if self._degrees is not None:
            return self.scale[:, None] * self.basis.gram(W)
        ones = self.basis.engine.zeros((self.shape[0], 1)) + 1.0
        GW = self.basis.gram(array_namespace(W).concat([W, ones], axis=1))
        self._degrees = self._taken(array_namespace(GW).asarray(GW[:, -1], copy=True))
        return self.scale[:, None] * GW[:, :-1]

    def _taken(self, sums):
        self.least_degree = float(sums.min())
        degrees = nonzero_degrees(sums)
        self._product_weights = to_numpy(1 / degrees)
        return degrees

    def learn_from(self, other: "NormalizedGram") -> None:
        """Take over the degrees of the same operator in a session."""
        self._degrees, self.least_degree = other._degrees, other.least_degree
        draft = vars(other).get("draft")
        if self._degrees is None and draft is not None and self.draft is not None:
            self.draft.learn_from(draft)


def nonzero_degrees(sums) -> Array:
    """Row sums, with one in place of those that have no root; a zero row stays zero."""
    return array_namespace(sums).where(sums > 0, sums, 1.0)
