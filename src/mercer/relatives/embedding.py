"""Diffusion maps (Coifman & Lafon 2006): a random walk on the rows, and where it leads in t steps.

With affinities K, densities q = K 1 and an exponent alpha that takes the density out,

    K_a = Q^{-alpha} K Q^{-alpha},   d = K_a 1,   P = D^{-1} K_a,   P psi = l psi,

the coordinates of a row are l^t psi. P has the eigenvalues of the symmetric S = s K s with
s = q^{-alpha} d^{-1/2}, and u = sqrt(d) psi are its eigenvectors. Functions are of mean square one
under the distribution where the walk comes to rest, d / sum d, so that distances of coordinates are
diffusion distances. For any row x the factor q(x)^{-alpha} is above and below and drops out:

    psi(x) = sum_j k(x, x_j) q_j^{-alpha} psi_j / (l sum_j k(x, x_j) q_j^{-alpha}),

which is psi_i at x_i. The diagonal of K stays: a walk may rest.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from ..bases import Basis, PrecomputedBasis
from ..compute import array_namespace, is_sparse, on_device_of, self_product, to_numpy
from ..operators import DenseOperator, NormalizedGram
from ..operators.normalized import nonzero_degrees
from ..solvers import Eigenpairs
from ..spectral import problems


@dataclass(frozen=True)
class DiffusionFunctions:
    """Eigenfunctions of the walk as ratios of sums of basis vectors, times l.

    Attributes
    ----------
    basis : Basis
    weights : array of shape (m, k)
        Of l psi times the degree.
    total : array of shape (m,)
        Of the degree.
    values : array of shape (k,)
        Eigenvalues l of the walk.
    density : array of shape (m,) or None
        Weights of q, where degrees need a floor: in a span that may miss a row.
    alpha : float
    """

    basis: Basis
    weights: Annotated[np.ndarray, "m k"]
    total: Annotated[np.ndarray, "m"]
    values: Annotated[np.ndarray, "k"]
    density: Annotated[np.ndarray, "m"] | None = None
    alpha: Annotated[float, "(-inf, inf)"] = 0.0

    def functions(self, X) -> np.ndarray:
        """psi(x) of every row of X, (n, k)."""
        k, density = self.values.size, [] if self.density is None else [self.density]
        W = np.column_stack([self.weights, self.total, *density])
        # Sparse rows are affinities only where affinities were given, or a graph of neighbors.
        are_affinities = is_sparse(X) and isinstance(self.basis, PrecomputedBasis)
        P = to_numpy(X @ W if are_affinities else self.basis.project(X, W))
        below = P[:, k]
        if self.density is not None:
            norms = np.maximum(to_numpy(self.basis.norms(X)), problems.TINY)
            below = np.maximum(below, norms / np.maximum(P[:, k + 1], norms) ** self.alpha)
        good = (below > 0)[:, None]
        stepped = np.divide(P[:, :k], below[:, None], out=np.zeros((len(P), k)), where=good)
        return stepped * problems.inverse(self.values)


@dataclass(frozen=True, eq=False)
class DiffusionProblem(problems.AllAffinities):
    """All points: S = s K s, with the densities and degrees from one product each."""

    alpha: float = 0.0

    rounds = property(lambda self: 1 + 2 * self.alpha)
    least_degree = property(lambda self: self.walk[2])

    @cached_property
    def walk(self) -> tuple[np.ndarray, np.ndarray, float]:
        """q^-alpha and d, (n,) each, and the smallest density, from one product or two."""
        engine = self.basis.engine
        with self.basis.session(keeps_tiles=bool(self.alpha)) as gram:
            sums = to_numpy(gram.gram(engine.zeros((self.basis.size, 1)) + 1.0))[:, 0]
            least, thinned = float(sums.min()), nonzero_degrees(sums) ** -self.alpha
            if self.alpha:
                sums = to_numpy(gram.gram(engine.asarray(thinned[:, None])))[:, 0]
        return thinned, thinned * nonzero_degrees(sums), least

    def _operator(self, basis) -> NormalizedGram:
        """S; of a sparse graph with the densities in its entries, so that its degrees are d."""
        (thinned, degrees, _), G = self.walk, basis.sparse()
        if G is None:
            return NormalizedGram(basis, basis.engine.asarray(degrees / thinned**2))
        G = G.multiply(thinned).multiply(thinned[:, None]).tocsr()
        return NormalizedGram(PrecomputedBasis(G, basis.engine), degrees)

    def row_scale(self) -> np.ndarray:
        _, degrees, _ = self.walk
        return np.sqrt(degrees.sum() / degrees)

    def result(self, pairs: Eigenpairs) -> problems.AffinityResult:
        psi, thinned = to_numpy(pairs.vectors) * self.row_scale()[:, None], self.walk[0]
        functions = DiffusionFunctions(self.basis, thinned[:, None] * psi, thinned, pairs.values)
        return problems.AffinityResult(
            functions, psi, self.all_certificate(pairs, psi), pairs, self
        )


@dataclass(frozen=True)
class WalkSums(problems.Coordinates):
    """Sums over rows of a walk on the span, for `ReducedDiffusionProblem`.

    Attributes
    ----------
    alpha : float
    ones : array of shape (k,) or None
        Weights of the densities.
    """

    alpha: float = 0.0
    ones: Any = None

    def scattered(self, Y, norms, total):
        """The scatter of a block and its volume, (k + 1, k); (k,) before all weights are known."""
        xp = array_namespace(Y)
        Y = xp.asarray(Y, dtype=xp.float64)
        norms = xp.clip(xp.asarray(norms, dtype=xp.float64), problems.TINY, None)
        ones = total if self.ones is None else on_device_of(self.ones, Y)
        thinned = xp.clip(Y @ ones, norms, None) ** -self.alpha
        if self.ones is None:
            return Y.T @ thinned
        degrees = thinned * xp.clip(Y @ total, norms * thinned, None)
        Y = Y * (thinned / xp.sqrt(degrees))[:, None]
        volume = xp.sum(degrees) + xp.zeros_like(Y[:1])
        return xp.concat([self_product(Y), volume], axis=0)


@dataclass(frozen=True, eq=False)
class ReducedDiffusionProblem(problems.AffinityProblem):
    """A span: K~ = Y Y', whose walk has the eigenvalues of an m x m matrix.

    Three passes over the rows, none of them kept. A row that the span misses has at least its
    affinity with itself as density and as degree.
    """

    basis: Basis
    alpha: float
    whitener: Any
    operator: Any
    volume: float
    #: Weights of degrees and of densities, over orthonormal coordinates.
    total_weights: Any
    ones: Any
    weight: float = 0.0

    @classmethod
    def of(cls, basis: Basis, rows: Any, alpha: float) -> "ReducedDiffusionProblem":
        """After passes over the rows."""
        whitener = basis.whitener(basis.precision(np.empty((0, 1), rows.dtype)))
        ones = rows.sum(problems.Coordinates(basis, whitener), "densities", again=True)
        total, walk = ones, WalkSums(basis, whitener, ones, alpha)
        if alpha:
            total = rows.sum(walk, "degrees", again=True)
        sums = rows.sum(replace(walk, total=total, ones=ones), "affinities", again=True)
        operator, volume = DenseOperator(sums[:-1]), float(sums[-1, 0])
        return cls(basis, alpha, whitener, operator, volume, total, ones, float(rows.shape[0]))

    def result(self, pairs: Eigenpairs) -> problems.AffinityResult:
        # psi = Y Q l^{-1/2} / (Y total), and l psi is kept.
        Q = pairs.vectors * np.sqrt(np.maximum(pairs.values, 0) * self.volume)
        weights, total, ones = (
            A if self.whitener is None else self.whitener @ A
            for A in (Q, self.total_weights, self.ones)
        )
        values = pairs.values
        functions = DiffusionFunctions(self.basis, weights, total, values, ones, self.alpha)
        return problems.AffinityResult(functions, None, self.certificate(pairs), pairs, self)
