"""The solvers that scikit-learn names, on operators: ARPACK, randomized and LOBPCG."""

import warnings
from functools import partial

import numpy as np
from scipy.linalg.blas import dsymm, dsymv
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigsh, lobpcg

from ..compute import to_numpy
from ..operators import SymmetricOperator
from ._linalg import beside, column_norms, descending, inner, qr, small_eigh, times
from .base import (
    FULL_FLOOR,
    NEGATIVE_SHARE,
    Eigenpairs,
    NoConvergence,
    PassState,
    Report,
    Solver,
    silent,
)
from .dense import Dense, negative_bound


class Arpack(Solver):
    """Implicitly restarted Lanczos (ARPACK), one vector at a time.

    Many single products where `BlockKrylov` needs a few block ones: the fastest for a few
    components of up to a few thousand rows, whose matrix is formed and multiplied from its
    upper half.

    Parameters
    ----------
    max_iter : int or None
        Restarts; None for ARPACK's own choice.
    form : bool or None
        Whether to form the matrix. None leaves it to the plan, which does where the budget
        allows it.
    to_rounding : bool
        Go on to rounding whatever the tolerance. One vector at a time meets the copies of a
        multiple eigenvalue only through rounding, one after the other: on points of a circle a
        tolerance of 1e-9 stopped before it had met them all, and none of 0 did.
    """

    _cap_name = "max_iter"

    def __init__(
        self, max_iter: int | None = None, form: bool | None = None, to_rounding: bool = False
    ):
        self.max_iter = max_iter
        self.form = form
        self.to_rounding = to_rounding

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
        matrix = formed(operator) if self.form else None
        product, block_product = products(operator, matrix)
        count = [0]

        def counted(v):
            count[0] += 1
            return product(v)

        A = LinearOperator(operator.shape, matvec=counted, dtype=float)
        start = rng.uniform(-1, 1, n)
        goal = 0.0 if self.to_rounding else tol
        try:
            found = eigsh(A, n_components, which="LA", tol=goal, maxiter=self.max_iter, v0=start)
        except ArpackNoConvergence as error:
            raise NoConvergence(
                f"ARPACK found {len(error.eigenvalues)} of {n_components} components within "
                f"max_iter={self.max_iter}. Raise max_iter or tol, or use eigen_solver='krylov'."
            ) from error
        except ArpackError:
            # The product with the start was zero: as far as it is known the matrix is.
            found = np.zeros(n_components), np.eye(n, n_components)
        values, U = descending(*found)
        residuals = column_norms(block_product(U) - U * values)
        report(PassState(count[0], values, float(residuals.max() / max(values[0], 1e-300)), tol))
        least, searched = None, matrix is not None and not operator.definite
        if searched:
            least = negative_bound(matrix, NEGATIVE_SHARE["d"] * max(values[0], 0.0))
        # ARPACK's own rule is another, relative to each eigenvalue.
        converged = bool(residuals.max() <= max(tol, FULL_FLOOR) * abs(values[0]))
        passes = count[0] + 1
        return Eigenpairs(values, U, residuals, converged, passes, least, searched=searched)


def formed(operator):
    """The matrix by columns, as BLAS reads it; None where it is not in main memory."""
    matrix = operator.to_dense()
    return matrix.T if isinstance(matrix, np.ndarray) else None


def products(operator, matrix):
    """The products with a vector and with a block, by the matrix where there is one."""
    if matrix is not None:
        return partial(dsymv, 1.0, matrix), partial(dsymm, 1.0, matrix)

    def block_product(V):
        return to_numpy(operator @ beside(operator, V))

    return lambda v: block_product(v.reshape(-1, 1)).ravel(), block_product


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

    ends_by_passes = True

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
        least = float(values[-1])
        kept = np.argsort(-np.abs(values), kind="stable")[:n_components]
        kept = kept[np.argsort(-values[kept], kind="stable")]
        values = values[kept]
        U, AU = times(V, Q[:, kept]), times(AV, Q[:, kept])
        residuals = column_norms(AU - times(V, Q[:, kept] * values))
        report(PassState(passes + 2, values, float(residuals.max() / max(values[0], 1e-300)), tol))
        converged = bool(residuals.max() <= max(tol, FULL_FLOOR) * values[0])
        return Eigenpairs(values, U, residuals, converged, passes + 2, least)


class Lobpcg(Solver):
    """Locally optimal block preconditioned conjugate gradients (Knyazev 2001), without any
    preconditioner.

    A block of three times the components, whatever the spectrum, where `BlockKrylov` keeps all
    blocks: less memory, and more products.

    Parameters
    ----------
    max_iter : int
    oversampling : int
        Vectors carried beyond those asked for; the last ones converge last.
    """

    _cap_name = "max_iter"

    def __init__(self, max_iter: int = 300, oversampling: int = 4):
        self.max_iter = max_iter
        self.oversampling = oversampling

    def solve(
        self,
        operator: SymmetricOperator,
        n_components: int,
        rng: np.random.Generator,
        tol: float = 0.0,
        report: Report = silent,
    ) -> Eigenpairs:
        """SciPy's loop on products with the operator, then Rayleigh-Ritz."""
        n, k = operator.shape[0], n_components + self.oversampling
        if 5 * k > n:  # as SciPy does for blocks so wide
            return Dense().solve(operator, n_components, rng, tol, report)
        count = [0]

        def product(V):
            count[0] += 1
            return to_numpy(operator @ beside(operator, np.ascontiguousarray(V)))

        A = LinearOperator(operator.shape, matvec=product, matmat=product, dtype=float)
        start = rng.standard_normal((n, k))
        goal = max(tol, FULL_FLOOR) * float(np.linalg.norm(product(start[:, :1]), 2))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the residuals say it
            _, U = lobpcg(A, start, tol=goal / np.sqrt(n), maxiter=self.max_iter, largest=True)
        pairs = ritz(operator, U, n_components, tol, count[0])
        share = float(pairs.residuals.max() / max(abs(pairs.values[0]), 1e-300))
        report(PassState(pairs.n_passes, pairs.values, share, tol))
        return pairs


def ritz(operator, V, n_components: int, tol: float, n_passes: int) -> Eigenpairs:
    """The best eigenpairs within the span of V, with their residuals: one product."""
    V, _ = qr(beside(operator, V))
    AV = operator @ V
    values, Q = small_eigh(inner(V, AV))
    least, kept = float(values[-1]), slice(0, n_components)
    values, Q = values[kept], Q[:, kept]
    U = times(V, Q)
    residuals = column_norms(times(AV, Q) - times(V, Q * values))
    converged = bool(residuals.max() <= max(tol, FULL_FLOOR) * abs(values[0]))
    return Eigenpairs(values, U, residuals, converged, n_passes + 1, least)
