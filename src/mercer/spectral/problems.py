"""Spectral clustering: from a basis to the rows that k-means sees, for all points and new ones.

With S = D^{-1/2} K D^{-1/2} and its leading eigenpairs U, L, a row of the embedding is a row of U
scaled to unit length (Ng, Jordan & Weiss 2002). Extended to any x by Nystroem it is

    k(x, X) D^{-1/2} U L^{-1} / sqrt(d(x)),

and since the degree d(x) only scales the row, it drops out with the length.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..bases import FourierBasis
from ..compute import to_numpy
from ..operators import DenseOperator, NormalizedGram, SymmetricOperator, ToeplitzCovariance
from ..solvers import Eigenpairs

# Eigenvalues of S, whose largest is 1, that say nothing more about any cluster.
ZERO = 1e-12


def spectral_problem(basis, X):
    """The normalized eigenproblem in a basis: n x n for all points, else m x m."""
    if isinstance(basis, FourierBasis):
        return FourierNormalizedProblem(basis, X)
    return NormalizedProblem(basis) if basis.spans_data else ReducedNormalizedProblem(basis, X)


@dataclass(frozen=True)
class SpectralMap:
    """The embedding as sums of basis vectors.

    Attributes
    ----------
    basis : Basis
    weights : array of shape (m, k)
    """

    basis: Any
    weights: np.ndarray

    def rows(self, X) -> np.ndarray:
        """Rows of unit length for the rows of X, (n, k)."""
        return directions(self.basis.project(X, self.weights))


class NormalizedProblem:
    """All points: the eigenproblem of D^{-1/2} K D^{-1/2} itself."""

    def __init__(self, basis):
        self.basis = basis
        self.operator = NormalizedGram(basis)

    @property
    def size(self) -> int:
        """Number of eigenpairs there can be."""
        return self.basis.size

    def is_zero(self) -> bool:
        """Never: equal rows have affinities too."""
        return False

    @property
    def least_degree(self) -> float:
        """The smallest row sum of K."""
        return self.operator.least_degree

    def assemble(self, pairs: Eigenpairs, X) -> tuple[SpectralMap, np.ndarray]:
        """The map, and the rows of the training points, (n, k)."""
        roots = np.sqrt(self.operator.known_degrees)[:, None]
        weights = pairs.vectors / roots * inverse(pairs.values)
        return SpectralMap(self.basis, weights), directions(pairs.vectors * roots)


class ReducedNormalizedProblem:
    """Landmarks: the same eigenproblem for K~ = Y Y', Y the rows' coordinates in the basis.

    Its degrees are d = Y (Y' 1), and the m x m matrix Y' D^{-1} Y = Q L Q' has the
    eigenvalues of D^{-1/2} K~ D^{-1/2}, whose eigenvectors D^{-1/2} Y Q L^{-1/2} are orthonormal
    as they come. Three passes over the rows, none of them kept. K~ may miss a row that is
    far from all landmarks; the degree of a row is therefore at least k(x, x).
    """

    least_degree = 0.0

    def __init__(self, basis, X):
        self.basis = basis
        self.whitener = basis.whitener(basis.precision(X))
        scatter = normalized_scatter(basis, self.whitener, X)
        self.operator: SymmetricOperator = DenseOperator(scatter)

    @property
    def size(self) -> int:
        """Number of eigenpairs there can be: the rank of the basis."""
        return self.operator.shape[0]

    def is_zero(self) -> bool:
        """Never: equal rows have affinities too."""
        return False

    def assemble(self, pairs: Eigenpairs, X) -> tuple[SpectralMap, np.ndarray]:
        """The map, and the rows of the training points, (n, k)."""
        Q = pairs.vectors * np.sqrt(inverse(pairs.values))
        map_ = SpectralMap(self.basis, Q if self.whitener is None else self.whitener @ Q)
        return map_, map_.rows(X)


class FourierNormalizedProblem(ReducedNormalizedProblem):
    """A Fourier grid: the degrees are one more function of the rows, and the matrix is Toeplitz.

    Two transforms of all rows and the evaluation of one function between them, whatever the number
    of frequencies.
    """

    def __init__(self, basis: FourierBasis, X):
        self.basis, self.whitener = basis, None
        grid = basis.frequencies
        sums = basis.moments(X)
        total = sums.count * ToeplitzCovariance(grid.index, basis.amplitudes, sums).mean
        degrees = to_numpy(basis.project(X, total[:, None]))[:, 0]
        # A row has its own affinity; what is less is the rounding of the transforms.
        weighted = basis.moments(X, 1 / np.maximum(degrees, basis.top))
        threads = basis.engine.threads
        self.operator = ToeplitzCovariance(grid.index, basis.amplitudes, weighted, False, threads)


def normalized_scatter(basis, whitener, X) -> np.ndarray:
    """Y' D^{-1} Y for the coordinates Y of the rows of X, d = max(Y Y' 1, k(x, x)), (m, m)."""
    n, rows, stream = X.shape[0], basis.product_rows(X), basis.block_products(X, whitener)
    total = basis.engine.sum_rows(lambda block: stream(block).sum(axis=0, dtype=float), n, rows)

    def scatter(block):
        Y = stream(block)
        own = np.maximum(np.asarray(basis.norms(X[block])), np.finfo(float).tiny)
        Y /= np.sqrt(np.maximum(Y @ total, own)).astype(Y.dtype)[:, None]
        return (Y.T @ Y).astype(float)

    return basis.engine.sum_rows(scatter, n, rows)


def inverse(values) -> np.ndarray:
    """1 / l for the eigenvalues above zero, and 0 for the others, (k,)."""
    return np.divide(1.0, values, out=np.zeros(values.shape), where=values > ZERO)


def directions(V) -> np.ndarray:
    """Rows scaled to unit length; zero rows stay zero, and a single column stays as it is."""
    if V.shape[1] == 1:
        return V
    # Rows of points far from everything are tiny, and their squares would vanish.
    largest = np.abs(V).max(axis=1, keepdims=True)
    V = np.divide(V, largest, out=np.zeros(V.shape), where=largest > 0)
    return V / np.maximum(np.sqrt(np.einsum("ij,ij->i", V, V)), 1e-300)[:, None]
