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

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from ..bases import Basis, PrecomputedBasis
from ..compute import array_namespace, is_sparse, to_numpy
from ..compute.linalg import self_product
from ..operators import DenseOperator, NormalizedGram
from ..operators.normalized import nonzero_degrees
from ..solvers import Eigenpairs
from ..spectral.problems import TINY, AffinityProblem, AllAffinities, column_sums, inverse


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
        columns = [self.weights, self.total[:, None]]
        if self.density is not None:
            columns.append(self.density[:, None])
        k = self.values.size
        W = np.hstack(columns)
        P = X @ W if is_sparse(X) and self.density is None else self.basis.project(X, W)
        P = to_numpy(P)
        below = P[:, k]
        if self.density is not None:
            own = np.maximum(to_numpy(self.basis.norms(X)), TINY)
            below = np.maximum(below, own / np.maximum(P[:, k + 1], own) ** self.alpha)
        good = (below > 0)[:, None]
        stepped = np.divide(P[:, :k], below[:, None], out=np.zeros((len(P), k)), where=good)
        return stepped * inverse(self.values)


class DiffusionProblem(AllAffinities):
    """All points: S = s K s, with the densities and degrees from one product each."""

    def __init__(self, basis, alpha: float):
        self.basis, self.alpha = basis, alpha
        n = basis.size
        sums = to_numpy(basis.gram(basis.engine.zeros((n, 1)) + 1.0))[:, 0]
        self.least_degree = float(sums.min())
        self.thinned = nonzero_degrees(sums) ** -alpha
        if alpha:
            sums = to_numpy(basis.gram(basis.engine.asarray(self.thinned[:, None])))[:, 0]
        self.degrees = self.thinned * nonzero_degrees(sums)
        self.operator, self.rounds = self._normalized(), 1 + 2 * alpha

    def row_scale(self) -> np.ndarray:
        return np.sqrt(self.degrees.sum() / self.degrees)

    def _normalized(self) -> NormalizedGram:
        """S; of a sparse graph with the densities in its entries, so that its degrees are d."""
        G = self.basis.sparse()
        if G is None:
            degrees = self.basis.engine.asarray(self.degrees / self.thinned**2)
            return NormalizedGram(self.basis, degrees)
        G = G.multiply(self.thinned).multiply(self.thinned[:, None]).tocsr()
        return NormalizedGram(PrecomputedBasis(G, self.basis.engine), self.degrees)

    def assemble(self, pairs: Eigenpairs, X) -> tuple[DiffusionFunctions, np.ndarray]:
        psi = to_numpy(pairs.vectors) * self.row_scale()[:, None]
        weights = self.thinned[:, None] * psi
        return DiffusionFunctions(self.basis, weights, self.thinned, pairs.values), psi


class ReducedDiffusionProblem(AffinityProblem):
    """A span: K~ = Y Y', whose walk has the eigenvalues of an m x m matrix.

    Four passes over the rows, none of them kept. A row that the span misses has at least its
    affinity with itself as density and as degree.
    """

    def __init__(self, basis, X, alpha: float):
        self.basis, self.alpha = basis, alpha
        self.whitener = basis.whitener(basis.precision(X))
        X = basis.engine.place(X)
        n, rows = X.shape[0], basis.product_rows(X)
        stream = basis.block_products(X, self.whitener)
        ones = basis.engine.sum_rows(lambda block: column_sums(stream(block)), n, rows)

        def coordinates(block):
            """Y, the densities and k(x, x) of a block, in double precision."""
            Y = stream(block)
            xp = array_namespace(Y)
            Y = xp.asarray(Y, dtype=xp.float64)
            own = xp.clip(xp.asarray(basis.norms(X[block]), dtype=xp.float64), TINY, None)
            return Y, xp.clip(Y @ ones, own, None), own

        def thinned(block):
            Y, q, _ = coordinates(block)
            return Y.T @ q**-alpha

        total = basis.engine.sum_rows(thinned, n, rows) if alpha else ones

        def scatter(block):
            Y, q, own = coordinates(block)
            xp = array_namespace(Y)
            degrees = q**-alpha * xp.clip(Y @ total, own * q**-alpha, None)
            Y = Y * (q**-alpha / xp.sqrt(degrees))[:, None]
            volume = xp.sum(degrees) + xp.zeros_like(Y[:1])
            return xp.concat([self_product(Y), volume], axis=0)

        found = to_numpy(basis.engine.sum_rows(scatter, n, rows))
        self.operator, self.volume = DenseOperator(found[:-1]), float(found[-1, 0])
        self.total, self.ones = to_numpy(total), to_numpy(ones)

    def assemble(self, pairs: Eigenpairs, X) -> tuple[DiffusionFunctions, np.ndarray]:
        # psi = Y Q l^{-1/2} / (Y total), and l psi is kept.
        Q = pairs.vectors * np.sqrt(np.maximum(pairs.values, 0) * self.volume)
        W, total, ones = (
            A if self.whitener is None else self.whitener @ A for A in (Q, self.total, self.ones)
        )
        map_ = DiffusionFunctions(self.basis, W, total, pairs.values, ones, self.alpha)
        return map_, map_.functions(X)
