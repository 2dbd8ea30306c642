"""LOBPCG on a graph's Laplacian, preconditioned by algebraic multigrid."""

import warnings

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import lobpcg

from .._packages import needed
from ..operators import SymmetricOperator
from ..solvers import Eigenpairs, PassState, Solver
from ..solvers.peers import Report, ritz, silent

# Added to the Laplacian, which is singular, for the preconditioner alone; scikit-learn's number.
SHIFT = 1e-5


class Amg(Solver):
    """LOBPCG (Knyazev 2001) on I - S, preconditioned by smoothed aggregation (pyamg).

    For sparse graphs of very many rows. S is a normalized graph, whose eigenvalues are at most 1;
    a dense one is formed.

    Parameters
    ----------
    max_iter : int
    """

    _cap_name = "max_iter"

    def __init__(self, max_iter: int = 200):
        self.max_iter = max_iter

    def solve(
        self,
        operator: SymmetricOperator,
        n_components: int,
        rng: np.random.Generator,
        tol: float = 0.0,
        report: Report = silent,
    ) -> Eigenpairs:
        """A few vectors more than asked for: the last ones converge last."""
        pyamg = needed("pyamg", use="eigen_solver='amg'")
        n = operator.shape[0]
        S = operator.sparse()
        S = sparse.csr_matrix(operator.to_dense()) if S is None else S
        L = sparse.csr_matrix(sparse.identity(n) - S)
        shifted = sparse.csr_matrix(L + SHIFT * sparse.identity(n))
        levels = pyamg.smoothed_aggregation_solver(shifted, symmetry="symmetric")
        k = min(n // 5, n_components + 4)
        if k < n_components:
            raise ValueError(
                f"eigen_solver='amg' finds at most a fifth of n_samples={n} eigenvectors, and "
                f"{n_components} were asked for. Use eigen_solver='auto'."
            )
        start = rng.standard_normal((n, k))
        start[:, 0] = 1.0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the residuals say it
            _, U = lobpcg(
                L,
                start,
                M=levels.aspreconditioner(),
                tol=tol or None,
                maxiter=self.max_iter,
                largest=False,
            )
        pairs = ritz(operator, U, n_components, max(tol, 1e-6), self.max_iter)
        share = float(pairs.residuals.max() / max(abs(pairs.values[0]), 1e-300))
        report(PassState(pairs.n_passes, pairs.values, share, tol))
        return pairs
