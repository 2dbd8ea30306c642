"""Dense eigen-decomposition by LAPACK: n^2 memory, n^3 time, all components at once."""

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.blas import dsymm

from ..compute import array_namespace, on_device_of, to_numpy
from ..compute.linalg import cholesky, leading_eigh
from ..operators import SymmetricOperator
from ._linalg import column_norms
from .base import NEGATIVE_SHARE, Eigenpairs, PassState, Report, Solver, silent

# Components whose residuals are measured, as a share of all: one product, which takes 5 % of the
# time of LAPACK for a fifth of them. Of more, LAPACK's own bound is stated.
FEW = 16


class Dense(Solver):
    """Form the matrix and decompose it.

    Best when most components of a few thousand rows are wanted. The memory is that of the
    matrix, beside the vectors; all components need LAPACK's copies of it.

    Parameters
    ----------
    subset : bool or None
        Whether LAPACK looks for the wanted components alone, which needs less memory, and from a
        fourth of them on is slower than to find all; None for whichever is faster.
    """

    def __init__(self, subset: bool | None = None):
        self.subset = subset

    def solve(
        self,
        operator: SymmetricOperator,
        n_components: int,
        rng: np.random.Generator,
        tol: float = 0.0,
        report: Report = silent,
    ) -> Eigenpairs:
        """LAPACK on the whole matrix; the residuals cost one more product."""
        A = operator.to_dense()
        if not isinstance(A, np.ndarray):
            return on_its_device(A, n_components, tol, report)
        # By columns, as LAPACK reads it: it works on the lower triangle and leaves the upper one.
        A, n, r = finite(A.T), A.shape[0], min(n_components, A.shape[0])
        if self._finds_all(n, r):
            values, U = leading_eigh(A, n)
            values, U, least = values[:r], U[:, :r], float(values[-1])
            residuals = backward_error(values, n)
        else:
            values, U, residuals, least = some_pairs(A, r, operator)
        report(PassState(1, values, float(np.max(residuals) / max(values[0], 1e-300)), tol))
        return Eigenpairs(values, U, residuals, least=least, searched=not operator.definite)

    def _finds_all(self, n, r):
        return r == n or (finds_all(n, r) if self.subset is None else not self.subset)


def some_pairs(A, r, operator):
    """The r leading pairs of A, their residuals, and a bound on the least eigenvalue of all."""
    n, diagonal = A.shape[0], A.diagonal().copy()
    values, U = leading_eigh(A, r)
    if values.size < r:
        # LAPACK's choice for a few pairs loses some where all are equal to rounding.
        values, U = leading_eigh(operator.to_dense().T, n)
        values, U = values[:r], U[:, :r]
    # LAPACK has left one triangle alone.
    A.flat[:: n + 1] = diagonal
    few = r <= n // (FEW if operator.definite else 4)
    residuals = column_norms(dsymm(1.0, A, U) - U * values) if few else backward_error(values, n)
    least = float(values[-1])
    if not operator.definite:
        least = min(least, negative_bound(A, NEGATIVE_SHARE["d"] * values[0]))
    return values, U, residuals, least


def finds_all(n: int, r: int) -> bool:
    """Whether to find all of n eigenpairs is faster than to look for r.

    LAPACK finds all by divide and conquer, and some one after the other: 500 of 1,000 take 325 ms,
    all of them 152. The two meet at an eighth of 200 rows and at a fourth of 1,500.
    """
    return r > n * min(0.25, 0.1 + n / 8000)


def finite(A):
    """A itself, or an error: LAPACK does not end on what is not finite."""
    if not np.isfinite(A.sum()) and not np.isfinite(A).all():
        raise ValueError(
            "The matrix to decompose holds values that are not finite. Scale the data or change "
            "the kernel's parameters."
        )
    return A


def on_its_device(A, n_components, tol, report):
    """All eigenpairs by the device's own LAPACK; values and residuals come to the host."""
    xp, n = array_namespace(A), A.shape[0]
    values, U = xp.linalg.eigh((A + A.T) / 2)
    r = min(n_components, n)
    values, U = to_numpy(xp.flip(values)), xp.flip(U, axis=1)[:, :r]
    residuals = column_norms(A @ U - U * on_device_of(values[:r], U))
    report(PassState(1, values[:r], float(np.max(residuals) / max(values[0], 1e-300)), tol))
    return Eigenpairs(values[:r], U, residuals, least=float(values[-1]), searched=True)


def negative_bound(A, shift):
    """-2 shift if A has an eigenvalue below -shift, else 0: whether A + shift has a Cholesky.

    Of A, which is overwritten, only the upper triangle is read.
    """
    A[np.diag_indices_from(A)] += shift
    try:
        cholesky(A, overwrite=True, check_finite=False)
    except LinAlgError:
        return -2 * shift
    return 0.0


def backward_error(values, n):
    """LAPACK's own bound on the residuals, a modest multiple of n eps |A|."""
    return np.full(values.shape[0], n * np.finfo(float).eps * np.max(np.abs(values)))
