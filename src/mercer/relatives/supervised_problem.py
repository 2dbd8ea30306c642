"""Directions that depend on a target: the eigenproblem of Phi' L Phi, L the target kernel.

Barshan, Ghodsi, Azimifar & Zolghadri Jahromi (2011): the r orthonormal directions of feature space
along which the rows have the largest Hilbert-Schmidt norm of their covariance with the target. L is
P P' for centered target features P, and a share of the identity, with which alone this is kernel
PCA. With all points it takes one product of the kernel matrix with P, if there is no identity; with
landmarks, features or columns the cross moments of coordinates and P.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..compute import on_device_of, to_numpy
from ..compute.linalg import peak_signs
from ..fitting.certificate import Certificate, projection_certificate, residual_certificate, shares
from ..fitting.problems import ColumnProblem, GramProblem, ReducedProblem, Result
from ..operators import DenseOperator, TargetGram, TargetRoot
from ..solvers import Eigenpairs


@dataclass(frozen=True)
class SupervisedResult(Result):
    """A result with the sums of the squared scores of the training rows, (r,)."""

    variances: Any = None


class Supervised:
    """What both problems share: sizes are those of kernel PCA, times the norm of L.

    Parameters
    ----------
    inner : GramProblem or ReducedProblem
        Kernel PCA of the same rows in the same basis.
    norm : float
        The largest eigenvalue of L.
    """

    def __init__(self, inner: Any, norm: float):
        self.inner, self.norm, self.basis = inner, norm, inner.basis
        self.count, self.weight = inner.count, inner.weight

    def overshoots(self, share: float) -> bool:
        """As of kernel PCA."""
        return self.inner.overshoots(share)

    @property
    def scale(self) -> float:
        """The size of the numbers that the trace is a sum of."""
        return self.norm * self.inner.scale

    @property
    def slack(self) -> float:
        """What rounding may change an eigenvalue by."""
        return self.norm * self.inner.slack

    @property
    def variance(self) -> float:
        """Total variance of the rows times n."""
        return self.inner.total


class SupervisedGram(Supervised):
    """With all points as the basis.

    Parameters
    ----------
    inner : GramProblem
    root : TargetRoot
        Of L, rows weighted as those of the problem.
    """

    inner: GramProblem

    def __init__(self, inner: GramProblem, root: TargetRoot):
        super().__init__(inner, root.norm)
        self.root = root
        operator = TargetGram(inner.operator, root)
        self.operator = operator if root.identity else DenseOperator(self._dependence)

    @cached_property
    def _product(self):
        """K' F for the factor F of the target kernel, (n, p): one pass."""
        return self.inner.operator @ self.inner.operator.vectors(self.root.factor)

    @cached_property
    def _dependence(self) -> np.ndarray:
        """F' K' F, (p, p)."""
        S = self.root.factor.T @ to_numpy(self._product).astype(float)
        return (S + S.T) / 2

    @property
    def size(self) -> int:
        """Number of components there can be: the rank of the target kernel."""
        return self.operator.shape[0]

    def is_zero(self) -> bool:
        """Whether all rows are equal; the small problem of features is solved all the same."""
        return bool(self.root.identity) and self.inner.is_zero()

    @cached_property
    def total(self) -> float:
        """The trace."""
        a = self.root.identity
        return (1 - a) * self.dependence + a * self.norm * self.variance

    @property
    def dependence(self) -> float:
        """The trace of K' P P': n^2 times the Hilbert-Schmidt independence criterion."""
        return float(np.trace(self._dependence))

    def result(self, pairs: Eigenpairs) -> SupervisedResult:
        """With vectors that are the weights of the rows, times the roots of the values."""
        U, inner = pairs.vectors, self.inner.operator
        if self.root.identity:
            V = self.root @ U
            products = inner @ V
        else:
            V = inner.vectors(self.root.factor) @ on_device_of(U, self._product)
            products = self._product @ on_device_of(U, self._product)
        some = pairs.values > 0
        over = np.where(some, 1 / np.sqrt(np.where(some, pairs.values, 1.0)), 0.0)
        S = to_numpy(products).astype(float) * over
        variances = np.sum(S**2, axis=0)
        if self.inner.weights is not None:
            S /= np.sqrt(self.inner.weights)[:, None]
            V = V / on_device_of(np.sqrt(self.inner.weights), V)[:, None]
        signs = peak_signs(S)
        pairs = replace(pairs, vectors=V * on_device_of(signs, V))
        uncertain = self.norm * self.inner.uncertain
        definite = self.basis.kernel.definite
        if not definite and not self.root.identity:
            # Some directions of the target are all that a few components were searched in.
            pairs = replace(pairs, least=float(np.linalg.eigvalsh(self._dependence)[0]))
        certificate = residual_certificate(pairs, self.total, self.slack, uncertain, definite)
        expansion = self.inner.expand(pairs)
        return SupervisedResult(
            expansion, certificate, pairs, pairs.vectors, S * signs, variances=variances
        )


class SupervisedReduced(Supervised):
    """With landmarks, random features or columns: from cross moments.

    Parameters
    ----------
    inner : ReducedProblem
        Its moments are joint with those of the target features.
    identity : float
        Share of the identity in the target kernel.
    """

    inner: ReducedProblem

    def __init__(self, inner: ReducedProblem, identity: float = 0.0):
        joint: Any = inner.moments
        scales = np.maximum(np.linalg.eigvalsh(joint.other.scatter), 0.0)
        super().__init__(inner, float(np.max(scales, initial=0.0)))
        self.identity, T = identity, np.asarray(joint.cross)
        #: The trace of K' P P' in the span of the basis.
        self.dependence = float(np.sum(T**2))
        matrix = (1 - identity) * (T @ T.T) + identity * self.norm * inner.moments.scatter
        self.operator = DenseOperator(self.basis.engine.asarray((matrix + matrix.T) / 2))
        rank = int(np.sum(scales > len(scales) * np.finfo(float).eps * self.norm))
        #: Number of components there can be.
        self.size = inner.size if identity else min(inner.size, rank)

    def is_zero(self) -> bool:
        """The small problem is solved all the same."""
        return False

    @property
    def total(self) -> float:
        """The trace, in the span of the basis."""
        a = self.identity
        spread = float(np.trace(self.inner.moments.scatter))
        return (1 - a) * self.dependence + a * self.norm * spread

    def result(self, pairs: Eigenpairs) -> SupervisedResult:
        """The expansion and the certificate of canonical eigenpairs."""
        Q = to_numpy(pairs.vectors)
        variances = np.einsum("ij,ij->j", Q, self.inner.moments.scatter @ Q)
        found = self.inner.expand(pairs), self.certificate(pairs)
        return SupervisedResult(*found, pairs, variances=variances)

    def certificate(self, pairs: Eigenpairs) -> Certificate:
        """What the span leaves out of K is seen through L, and so at most |L| times as large."""
        if isinstance(self.inner, ColumnProblem):
            rounding = self.norm * self.inner.rounding * self.inner.total
            return residual_certificate(pairs, self.total, rounding, definite=True)
        inner, remainder = self.inner, self.inner.remainder
        if remainder is not None:
            remainder = remainder.scaled(self.norm)
        lost = self.norm * inner.lost
        found = projection_certificate(
            pairs, self.total, lost, self.slack, remainder, *inner.judgment()
        )
        # Unlike the energy of rows, what is lost of the dependence is only known up to a bound.
        held = float(pairs.values.sum())
        slack = self.slack + float(np.max(pairs.residuals, initial=0.0))
        around, most = slack * len(pairs.values), self.total + max(lost, 0.0) + slack
        share = shares(held - around, held + around, self.total - slack, most)
        return replace(found, captured_variance=share)
