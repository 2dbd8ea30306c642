"""Directions that depend on a target: the eigenproblem of Phi' L Phi, L the target kernel.

Barshan, Ghodsi, Azimifar & Zolghadri Jahromi (2011): the r orthonormal directions of feature space
along which the rows have the largest Hilbert-Schmidt norm of their covariance with the target. L is
P P' for centered target features P, and a share of the identity, with which alone this is kernel
PCA. With all points it takes one product of the kernel matrix with P, if there is no identity, and
else the eigenpairs U, l of L^1/2 K' L^1/2, whose directions have weights L^1/2 U l^{-1/2} on the
rows; with landmarks, features or columns the cross moments of coordinates and P.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..bases import Landmarks
from ..compute import Array, array_namespace, make_engine, on_device_of, to_numpy
from ..compute.linalg import eigh, peak_signs, self_product, thin_svd
from ..fitting.certificate import Certificate, Rounding, certify, projection_certificate, shares
from ..fitting.problems import ColumnProblem, GramProblem, Problem, ReducedProblem, Result
from ..kernels import Kernel
from ..operators import DenseOperator, SymmetricOperator
from ..selectors import GreedyCholesky
from ..solvers import Eigenpairs

# Singular values of target features below this share of the largest are rounding.
RANK_SHARE = 1e-10
# Distinct targets that a kernel between them is expanded in, chosen by pivots where there are more.
MOST_POINTS = 1000


def indicators(columns: list) -> np.ndarray:
    """A column of zeros and ones for every label of every column, (n, q).

    `columns` holds the labels of each column and the number of that of each row, by `np.unique`.
    """
    parts = [codes.reshape(-1, 1) == np.arange(len(labels)) for labels, codes in columns]
    return np.hstack(parts).astype(float)


def root_of(L: np.ndarray) -> np.ndarray:
    """P with P P' = L, for a symmetric kernel matrix of targets."""
    values, V = eigh((L + L.T) / 2)
    top = max(float(values[-1]), np.finfo(float).tiny)
    if values[0] < -1e-8 * top:
        raise ValueError(
            f"The target kernel has a negative eigenvalue, {values[0]:.3g} against a largest of "
            f"{top:.3g}. Pass one that is positive semidefinite."
        )
    above = values > len(L) * np.finfo(float).eps * top
    return V[:, above] * np.sqrt(values[above])


def expanded(kernel: Kernel, Y: np.ndarray, points: np.ndarray, memory: int) -> tuple[Any, float]:
    """Coordinates of all targets in the span of some, (n, q), and the share of energy left out.

    `points` are the distinct targets: all of them, unless they are too many, make the span exact.
    """
    recipe = Landmarks(points=points)
    if len(points) > MOST_POINTS:
        recipe = Landmarks(MOST_POINTS, GreedyCholesky())
    basis = recipe.build(kernel, points, make_engine(Y, memory=memory), np.random.default_rng(0))
    P = basis.project(Y, basis.whitener(np.float64))
    energy = float(np.sum(kernel.diag(Y)))
    return P, max(energy - float(np.sum(P**2)), 0.0) / max(energy, np.finfo(float).tiny)


@dataclass(frozen=True)
class TargetRoot:
    """The root of L = (1 - a) P P' + a |P|^2 I, for centered target features P = B s V'.

    It is c + B g B' with a number c (`plain`) and p numbers g (`gain`).

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
        above = s > RANK_SHARE * max(float(np.max(s, initial=0.0)), np.finfo(float).tiny)
        return cls(B[:, above], s[above], identity)

    @property
    def norm(self) -> float:
        """The largest eigenvalue of L, whatever the identity's share."""
        return float(np.max(self.scales, initial=0.0)) ** 2

    plain = property(lambda self: float(np.sqrt(self.identity * self.norm)))

    @property
    def gain(self) -> np.ndarray:
        return np.sqrt((1 - self.identity) * self.scales**2 + self.plain**2) - self.plain

    @property
    def factor(self) -> np.ndarray:
        """F with L = F F' where there is no identity in it, (n, p)."""
        return self.directions * self.scales

    def __matmul__(self, V: Array) -> Array:
        """L^1/2 V."""
        B, gain = (like(part, V) for part in (self.directions, self.gain))
        return self.plain * V + B @ (gain[:, None] * (B.T @ V))


class TargetGram(SymmetricOperator):
    """L^1/2 A L^1/2: an operator A seen through a target kernel."""

    def __init__(self, operator: SymmetricOperator, root: TargetRoot):
        self.operator, self.root = operator, root
        self.shape, self.definite, self.even = operator.shape, operator.definite, operator.even

    def __matmul__(self, V):
        return self.root @ (self.operator @ (self.root @ V))

    def to_dense(self) -> Array:
        A = self.root @ self.operator.to_dense()
        A = self.root @ A.T
        return (A + A.T) / 2

    def vectors(self, V: Array, rounded: bool = False) -> Array:
        return self.operator.vectors(V)

    @property
    def draft(self) -> Any:
        draft = self.operator.draft
        return None if draft is None else TargetGram(draft, self.root)

    def rows(self, index: Array) -> Any:
        K = self.operator.rows(index)
        K = self.root.plain * K + like(self._seen(index) @ self._images.T, K)
        return (self.root @ K.T).T

    def rows_times(self, index: Array, V: Array) -> Any:
        V = self.root @ V
        P = self.root.plain * self.operator.rows_times(index, V)
        return P + like(self._seen(index) @ (self._images.T @ to_numpy(V)), P)

    def _seen(self, index) -> np.ndarray:
        """Some rows of B g, (b, p)."""
        return self.root.directions[index] * self.root.gain

    @cached_property
    def _images(self) -> np.ndarray:
        """A B, (n, p): one product."""
        B = self.operator.vectors(self.root.directions)
        return to_numpy(self.operator @ B).astype(float)

    def magnitude(self) -> float:
        return self.root.norm * self.operator.magnitude()


def like(A: np.ndarray, V: Array) -> Any:
    """An array of the host in the library, on the device and in the type of V."""
    return array_namespace(V).asarray(on_device_of(A, V), dtype=V.dtype)


@dataclass(frozen=True)
class SupervisedResult(Result):
    """A result with the sums of the squared scores of the training rows, (r,)."""

    variances: Any = None


class Supervised(Problem):
    """What both problems share: sizes are those of kernel PCA, times the norm of L.

    Attributes
    ----------
    inner : GramProblem or ReducedProblem
        Kernel PCA of the same rows in the same basis.
    norm : float
        The largest eigenvalue of L.
    identity : float
        Share of the identity in it.
    dependence : float
        The trace of K' P P': n^2 times the Hilbert-Schmidt independence criterion.
    spread : float
        The trace of K'.
    """

    inner: Any
    norm: float
    identity: float
    dependence: float
    spread: float

    basis = property(lambda self: self.inner.basis)
    center = property(lambda self: self.inner.center)
    weight = property(lambda self: self.inner.weight)
    n_rows = property(lambda self: self.inner.n_rows)
    model_rows = property(lambda self: self.inner.model_rows)
    moments = property(lambda self: self.inner.moments)

    @property
    def total(self) -> float:  # type: ignore[override]
        return (1 - self.identity) * self.dependence + self.identity * self.norm * self.spread

    scale = property(lambda self: self.norm * self.inner.scale)
    slack = property(lambda self: self.norm * self.inner.slack)


@dataclass(frozen=True, eq=False)
class SupervisedGram(Supervised):
    """With all points as the basis, from the root of L; rows weighted as those of the problem."""

    inner: GramProblem
    root: TargetRoot

    @cached_property
    def product(self) -> Any:
        """K' F for the factor F of the target kernel, (n, p): the only pass without an identity."""
        with self.inner.session(keeps_tiles=False) as gram:
            return gram @ gram.vectors(self.root.factor)

    @cached_property
    def small(self) -> np.ndarray:
        """F' K' F, (p, p)."""
        S = self.root.factor.T @ to_numpy(self.product).astype(float)
        return (S + S.T) / 2

    norm = property(lambda self: self.root.norm)
    identity = property(lambda self: self.root.identity)
    dependence = property(lambda self: float(np.trace(self.small)))
    spread = property(lambda self: self.inner.total)

    @cached_property
    def operator(self) -> Any:
        if not self.identity:
            return DenseOperator(self.small)
        return TargetGram(self.inner.operator, self.root)

    @contextmanager
    def session(self, reserve: int = 0, checkpoint: Any = None, **settings: bool) -> Iterator[Any]:
        if not self.identity:
            yield self.operator
            return
        self.product  # noqa: B018, made before the room for it is taken by tiles
        with self.inner.session(reserve, checkpoint, **settings) as gram:
            yield TargetGram(gram, self.root)

    def is_zero(self) -> bool:
        """Whether all rows are equal; the small problem of features is solved all the same."""
        return bool(self.identity) and self.inner.is_zero()

    def result(self, pairs: Eigenpairs) -> SupervisedResult:
        """With vectors that are the weights of the rows, times the roots of the values."""
        inner = self.inner.operator
        if self.identity:
            V = inner.vectors(self.root @ pairs.vectors)
            with self.inner.session(keeps_tiles=False) as gram:
                products = gram @ V
        else:
            U = on_device_of(pairs.vectors, self.product)
            V, products = inner.vectors(self.root.factor) @ U, self.product @ U
        roots = np.sqrt(np.maximum(pairs.values, 0.0))
        S = to_numpy(products).astype(float)
        S = np.divide(S, roots, out=np.zeros(S.shape), where=roots > 0)
        variances = np.sum(S**2, axis=0)
        if self.inner.weights is not None:
            roots = np.sqrt(self.inner.weights)[:, None]
            S, V = S / roots, V / on_device_of(roots, V)
        signs = peak_signs(S)
        pairs = replace(pairs, vectors=V * on_device_of(signs, V))
        definite = self.basis.kernel.definite
        if not definite and not self.identity:
            # Components were searched for in the directions of the target alone.
            pairs = replace(pairs, least=float(np.linalg.eigvalsh(self.small)[0]))
        elif not definite and not pairs.searched:
            # No eigenvalue of L is below its share of the identity (Ostrowski 1959).
            seen = self.inner.with_least(replace(pairs, least=0.0)).least or 0.0
            least = min(self.identity * self.norm * seen, pairs.least or 0.0)
            pairs = replace(pairs, least=least)
        rounding = tuple(part.scaled(self.norm) for part in self.inner.roundings(pairs))
        certificate = certify(pairs, self.size, self.total, rounding, definite=definite)
        expansion, vectors = self.inner.expand(pairs), pairs.vectors
        return SupervisedResult(expansion, certificate, pairs, self, vectors, variances)


@dataclass(frozen=True, eq=False)
class SupervisedReduced(Supervised):
    """With landmarks, random features or columns, whose moments are joint with the target's."""

    inner: ReducedProblem
    identity: float = 0.0

    @cached_property
    def scales(self) -> np.ndarray:
        """Eigenvalues of the scatter of the target, (q,)."""
        joint: Any = self.inner.moments
        return np.maximum(np.linalg.eigvalsh(joint.other.scatter), 0.0)

    norm = property(lambda self: float(np.max(self.scales, initial=0.0)))
    dependence = property(lambda self: float(np.sum(self.inner.moments.cross**2)))
    spread = property(lambda self: float(np.trace(self.inner.moments.scatter)))

    @cached_property
    def operator(self) -> Any:
        joint: Any = self.inner.moments
        matrix = (1 - self.identity) * self_product(joint.cross.T)
        matrix += self.identity * self.norm * joint.scatter
        return DenseOperator(self.basis.engine.asarray((matrix + matrix.T) / 2))

    @property
    def size(self) -> int:
        rank = int(np.sum(self.scales > len(self.scales) * np.finfo(float).eps * self.norm))
        return self.inner.size if self.identity else min(self.inner.size, rank)

    def result(self, pairs: Eigenpairs) -> SupervisedResult:
        Q = to_numpy(pairs.vectors)
        variances = np.einsum("ij,ij->j", Q, self.inner.moments.scatter @ Q)
        expansion, certificate = self.inner.expand(pairs), self.certificate(pairs)
        return SupervisedResult(expansion, certificate, pairs, self, variances=variances)

    def certificate(self, pairs: Eigenpairs) -> Certificate:
        """What the span leaves out of K changes eigenvalues by up to |L| times as much."""
        inner = self.inner
        if isinstance(inner, ColumnProblem):
            rounding = self.norm * inner.rounding * inner.total
            roundings = (Rounding(rounding, rounding, (rounding * self.total) ** 0.5),)
            return certify(pairs, self.size, self.total, roundings, definite=True)
        remainder = None if inner.remainder is None else inner.remainder.scaled(self.norm)
        lost = self.norm * inner.lost
        certificate = projection_certificate(
            pairs, self.size, self.total, lost, self.slack, remainder, *inner.judgment()
        )
        # Unlike the energy of rows, what is lost of the dependence is only known up to a bound.
        held = float(pairs.values.sum())
        slack = self.slack + float(np.max(pairs.residuals, initial=0.0))
        around, most = slack * len(pairs.values), self.total + max(lost, 0.0) + slack
        share = shares(held - around, held + around, self.total - slack, most)
        return replace(certificate, captured_variance=share)
