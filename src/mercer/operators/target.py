"""L^1/2 A L^1/2: a Gram matrix seen through a target kernel L.

Its eigenvectors U and values l give the directions of feature space that depend most on the target:
those with the weights L^1/2 U l^{-1/2} on the rows.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..compute import array_namespace, on_device_of, to_numpy
from ..compute.arrays import Array
from ..compute.linalg import thin_svd
from .base import SymmetricOperator

# Singular values of target features below this share of the largest are rounding.
RANK_SHARE = 1e-10


@dataclass(frozen=True)
class TargetRoot:
    """The root of L = (1 - a) P P' + a |P|^2 I, for centered target features P = B s V'.

    Attributes
    ----------
    directions : array of shape (n, p)
        B, orthonormal columns.
    scales : array of shape (p,)
        s, largest first.
    identity : float
        a, between 0 and 1.
    """

    directions: np.ndarray
    scales: np.ndarray
    identity: float = 0.0

    @classmethod
    def of(cls, features: np.ndarray, identity: float = 0.0, weights: Any = None) -> "TargetRoot":
        """Of features (n, q), which are centered here; of weighted rows times the weights' roots.

        By the q x q matrix of the features or the n x n one, whichever is smaller.
        """
        P = features - np.average(features, axis=0, weights=weights)
        if weights is not None:
            P = P * np.sqrt(weights)[:, None]
        B, s, _ = thin_svd(P)
        kept = s > RANK_SHARE * max(float(np.max(s, initial=0.0)), np.finfo(float).tiny)
        return cls(B[:, kept], s[kept], identity)

    @property
    def norm(self) -> float:
        """The largest eigenvalue of L, whatever the identity's share."""
        return float(np.max(self.scales, initial=0.0)) ** 2

    @property
    def plain(self) -> float:
        """c in L^1/2 = c + B g B'."""
        return float(np.sqrt(self.identity * self.norm))

    @property
    def gain(self) -> np.ndarray:
        """g, (p,)."""
        return np.sqrt((1 - self.identity) * self.scales**2 + self.plain**2) - self.plain

    @property
    def factor(self) -> np.ndarray:
        """F with L = F F' where there is no identity in it, (n, p)."""
        return self.directions * self.scales

    def __matmul__(self, V: Array) -> Array:
        """L^1/2 V."""
        xp = array_namespace(V)
        B = xp.asarray(on_device_of(self.directions, V), dtype=V.dtype)
        gain = xp.asarray(on_device_of(self.gain, V), dtype=V.dtype)
        return self.plain * V + B @ (gain[:, None] * (B.T @ V))


class TargetGram(SymmetricOperator):
    """L^1/2 A L^1/2.

    Parameters
    ----------
    operator : SymmetricOperator
        A.
    root : TargetRoot
    """

    def __init__(self, operator: SymmetricOperator, root: TargetRoot):
        self.operator, self.root = operator, root
        self.shape, self.definite, self.even = operator.shape, operator.definite, operator.even

    def __matmul__(self, V):
        return self.root @ (self.operator @ (self.root @ V))

    def to_dense(self) -> Array:
        """The matrix itself."""
        A = self.root @ self.operator.to_dense()
        A = self.root @ A.T
        return (A + A.T) / 2

    def vectors(self, V: Array) -> Array:
        """Vectors where those of A are."""
        return self.operator.vectors(V)

    def leave(self, size: int) -> None:
        """As A does."""
        self.operator.leave(size)

    @property
    def draft(self) -> Any:
        """The same of the draft of A."""
        draft = self.operator.draft
        return None if draft is None else TargetGram(draft, self.root)

    def start(self, k: int, rng: np.random.Generator) -> Array:
        """Random vectors where those of A are."""
        return self.vectors(super().start(k, rng))

    def rows(self, index: Array) -> np.ndarray:
        """Some rows, (b, n), from those of A."""
        first, second = self._weights(index)
        K = to_numpy(self.operator.rows(index)) * self.root.plain**2
        K += first @ self.root.directions.T
        K += second @ self._images.T
        return K

    def rows_times(self, index: Array, V: Array) -> Any:
        """Some rows of the product with V, (len(index), b)."""
        first, second = self._weights(index)
        P = to_numpy(self.operator.rows_times(index, V)) * self.root.plain**2
        U = to_numpy(V)
        P = P + first @ (self.root.directions.T @ U) + second @ (self._images.T @ U)
        return on_device_of(P, V)

    @cached_property
    def _images(self) -> np.ndarray:
        """A B, (n, p): one product."""
        B = self.operator.vectors(self.root.directions)
        return to_numpy(self.operator @ B).astype(float)

    def _weights(self, index: Array) -> tuple[np.ndarray, np.ndarray]:
        """What B' and (A B)' are multiplied with in some rows, (b, p) each.

        With L^1/2 = c + B g B' these are ``c^2 A + (c A B g + B g B'AB g) B' + c B g (A B)'``.
        """
        c, g, B, AB = self.root.plain, self.root.gain, self.root.directions, self._images
        seen = B[index] * g
        return c * AB[index] * g + seen @ (B.T @ AB) * g, c * seen

    def visit(self, index: Array, W: Array) -> tuple[Any, Any]:
        """The minor of some rows, (b, b), and their product with W, (b, k)."""
        K = self.rows(index)
        return on_device_of(K[:, index], W), on_device_of(K @ to_numpy(W), W)

    def magnitude(self) -> float:
        """The size of the entries of A, times that of L."""
        return self.root.norm * self.operator.magnitude()
