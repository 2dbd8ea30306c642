"""The other two solvers of scikit-learn's KernelPCA, on operators: ARPACK and randomized."""

import numpy as np
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from ..compute import to_numpy
from ..operators import SymmetricOperator
from ._linalg import beside, column_norms, descending, inner, qr, small_eigh, times
from .base import Eigenpairs, PassState, Report, Solver, silent


class Arpack(Solver):
    """Implicitly restarted Lanczos (ARPACK), one vector at a time.

    Many single products where `BlockKrylov` needs a few block ones: choose it only to
    compare, or when the matrix is in memory and small.

    Parameters
    ----------
    max_iter : int or None
        Restarts; None for ARPACK's own choice.
    """

    _cap_name = "max_iter"

    def __init__(self, max_iter: int | None = None):
        self.max_iter = max_iter

    def solve(
        self,
        operator: SymmetricOperator,
        n_components: int,
        rng: np.random.Generator,
        tol: float = 0.0,
        report: Report = silent,
    ) -> Eigenpairs:
        """eigsh on the operator; the residuals cost one more block product."""
        n = operator.shape[0]
        if n_components >= n:
            raise ValueError(
                f"eigen_solver='arpack' finds fewer than n_samples={n} components and "
                f"n_components={n_components} were asked for. Use eigen_solver='dense'."
            )
        count = [0]

        def product(v):
            count[0] += 1
            return to_numpy(operator @ beside(operator, v.reshape(-1, 1))).ravel()

        A = LinearOperator(operator.shape, matvec=product, dtype=float)
        start = rng.uniform(-1, 1, n)
        try:
            found = eigsh(A, n_components, which="LA", tol=tol, maxiter=self.max_iter, v0=start)
        except ArpackNoConvergence as error:
            raise ValueError(
                f"ARPACK found {len(error.eigenvalues)} of {n_components} components within "
                f"max_iter={self.max_iter}. Raise max_iter or tol, or use eigen_solver='krylov'."
            ) from error
        values, U = descending(*found)
        residuals = column_norms(to_numpy(operator @ beside(operator, U)) - U * values)
        report(PassState(count[0], values, float(residuals.max() / max(values[0], 1e-300)), tol))
        return Eigenpairs(values, U, residuals, n_passes=count[0] + 1)


class Randomized(Solver):
    """Randomized subspace iteration (Halko, Martinsson & Tropp 2011).

    A fixed number of power iterations and no stopping rule: the residuals say how far it
    got. Ritz values are chosen by modulus, as scikit-learn does.

    Parameters
    ----------
    iterated_power : int or "auto"
        Power iterations; "auto" is 7 for few components and 4 otherwise.
    oversampling : int
    """

    def __init__(self, iterated_power: int | str = "auto", oversampling: int = 10):
        self.iterated_power = iterated_power
        self.oversampling = oversampling

    def solve(
        self,
        operator: SymmetricOperator,
        n_components: int,
        rng: np.random.Generator,
        tol: float = 0.0,
        report: Report = silent,
    ) -> Eigenpairs:
        """Orthonormalize after every product, then Rayleigh-Ritz."""
        n = operator.shape[0]
        auto = 7 if n_components < 0.1 * n else 4
        passes = auto if isinstance(self.iterated_power, str) else self.iterated_power
        V = beside(operator, rng.standard_normal((n, min(n, n_components + self.oversampling))))
        for _ in range(passes + 1):
            V, _ = qr(operator @ V)
        AV = operator @ V
        values, Q = small_eigh(inner(V, AV))
        kept = np.argsort(-np.abs(values), kind="stable")[:n_components]
        kept = kept[np.argsort(-values[kept], kind="stable")]
        values = values[kept]
        U, AU = times(V, Q[:, kept]), times(AV, Q[:, kept])
        residuals = column_norms(AU - times(V, Q[:, kept] * values))
        report(PassState(passes + 2, values, float(residuals.max() / max(values[0], 1e-300)), tol))
        # Without a tolerance there is nothing to reach: the residuals say how far it got.
        converged = tol == 0 or bool(residuals.max() <= tol * values[0])
        return Eigenpairs(values, U, residuals, converged, passes + 2, float(values[-1]))
