"""LAPACK on the matrix of an operator, and ARPACK on its products."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.blas import dsymm, dsymv, dsyrk, ssyrk
from scipy.linalg.lapack import dpotrf, spotrf
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigsh
from scipy.special import betaincinv

from ..compute import array_namespace, on_device_of, row_blocks, to_numpy
from ..compute.linalg import cholesky, leading_eigh, self_product
from . import base
from .base import silent

# Residuals are measured for up to one in FEW of all components, by one product, which takes 5 % of
# LAPACK's time for a fifth of them. For more, LAPACK's own bound is stated.
FEW = 16
# Vectors up to which products one by one are faster than all at once: 2 of 1,000 rows take 0.10 ms
# in place of 0.44.
FEWEST = 8
# Lanczos steps that search for eigenvalues ARPACK has missed (eight found all of 69 misses), and
# the share of the largest eigenvalue by which they must exceed the last value found.
PROBES, MISSED = 8, 1e-10
# One more of these steps for so many products of ARPACK, where the sum of squares is not known:
# they bound what is left.
PRODUCTS_PER_STEP = 12
# If products exceed this multiple of ARPACK's vectors, eigenvalues are too close for these steps:
# one more component is searched for, which takes about as long as all others did.
SLOW = 5
# Up to MANY_ROWS rows a Cholesky factor shows that none of MANY components or more is missed, and
# of any number up to FEW_ROWS; else it takes too long. From ROWS on a block of SPARE vectors more
# takes less time.
MANY, MANY_ROWS, FEW_ROWS, ROWS, SPARE = 10, 2000, 350, 1500, 16
# Share of the last of r eigenvalues, times r, that all others are first tried to be below it by,
# and that of the first by which they may exceed it where eigenvalues are close.
APART, ALIKE = 0.04, 1e-9
# Restarts after which converged pairs are removed from the matrix and ARPACK starts again.
RESTARTS = 300
# Least residual to reach, as a share of its eigenvalue: a fifth fewer products than to rounding,
# and the error of the eigenvalue is its square.
CLOSE = 1e-12
# Share of the norm of a matrix below which a step of Lanczos is rounding.
ROUNDED = 1e-12


@dataclass(eq=False, repr=False)
class Dense(base.Solver):
    """Form the matrix and decompose it by LAPACK: n^2 memory, n^3 time, all components at once.

    Best when most components of a few thousand rows are wanted. The memory is that of the
    matrix, beside the vectors; all components need LAPACK's copies of it.

    Parameters
    ----------
    subset : bool or None
        True to find the wanted components only, which needs less memory, but is slower than finding
        all from a fourth of them on; None for whichever is faster.
    """

    subset: bool | None = None

    def solve(
        self, operator: Any, n_components: int, rng: Any, tol: float = 0.0, report: Any = silent
    ) -> base.Eigenpairs:
        """LAPACK on the whole matrix; the residuals of some components cost one more product."""
        A, n = operator.to_dense(), operator.shape[0]
        r, definite = min(n_components, n), operator.definite
        if not isinstance(A, np.ndarray):
            # All eigenpairs by the device's own LAPACK.
            xp = array_namespace(A)
            values, U = xp.linalg.eigh((A + A.T) / 2)
            values, U = to_numpy(xp.flip(values)), xp.flip(U, axis=1)[:, :r]
            residuals = base.column_norms(A @ U - U * on_device_of(values[:r], U))
            least, definite = float(values[-1]), False
        else:
            if not np.isfinite(A.sum()) and not np.isfinite(A).all():
                # LAPACK would not return.
                raise ValueError(
                    "The matrix to decompose holds values that are not finite. Scale the data or "
                    "change the kernel's parameters."
                )
            # By columns, as LAPACK reads it: it overwrites the lower triangle only.
            A, diagonal = A.T, A.diagonal().copy()
            every = r >= n - 1 or (finds_all(n, r) if self.subset is None else not self.subset)
            # One more than is wanted, to know how large the next one is.
            values, U = leading_eigh(A, n if every else r + 1)
            least, U = float(values[-1]), U[:, :r]
            # LAPACK's own bound on the residuals, a modest multiple of n eps |A|.
            residuals = np.full(r, n * np.finfo(float).eps * np.max(np.abs(values)))
            if not every:
                A.flat[:: n + 1] = diagonal
                if r <= n // (FEW if definite else 4):
                    residuals = base.column_norms(dsymm(1.0, A, U) - U * values[:r])
                if not definite:
                    least = min(least, negative_bound(A, values[0]))
        # Each value is that of its number, to n eps |A|.
        values = values[: r + 1]
        doubt = n * np.finfo(float).eps * float(np.max(np.abs(values), initial=0.0))
        seen = (base.Evidence(values, rest=float(values[-1]), doubt=doubt),)
        pairs = base.Eigenpairs(values[:r], U, residuals, least=least, searched=not definite)
        return replace(base.reported(pairs, report, tol), converged=True, evidence=seen)


def finds_all(n: int, r: int) -> bool:
    """True if finding all n eigenpairs is faster than finding r of them.

    LAPACK finds all by divide and conquer, and some one after the other: 500 of 1,000 take 325 ms,
    all of them 152. Both take the same time at an eighth of 200 and at a fourth of 1,500.
    """
    return r > n * min(0.25, 0.1 + n / 8000)


def negative_bound(A, top: float) -> float:
    """A negative number if A has an eigenvalue below minus a share of the largest, else 0.

    Tests whether A + shift has a Cholesky factor. Reads the upper triangle of A, and overwrites A.
    """
    shift = base.NEGATIVE_SHARE["d"] * max(top, 0.0)
    A[np.diag_indices_from(A)] += shift
    try:
        cholesky(A, overwrite=True, check_finite=False)
    except LinAlgError:
        return -2 * shift
    return 0.0


@dataclass(eq=False, repr=False)
class Arpack(base.Solver):
    """Implicitly restarted Lanczos (ARPACK), one vector at a time.

    Many single products where `BlockKrylov` needs a few block ones: the fastest for a few
    components of up to a few thousand rows, whose matrix is formed and multiplied from its
    upper half.

    Parameters
    ----------
    max_iter : int or None
        Restarts; None for ARPACK's own choice.
    form : bool or None
        Whether to form the matrix. None: the plan decides, and forms it if the budget allows.
    to_rounding : bool
        Iterate to near rounding whatever the tolerance: that separates close eigenvalues.
    """

    _cap_name = "max_iter"

    max_iter: int | None = None
    form: bool | None = None
    to_rounding: bool = False

    def solve(
        self, operator: Any, n_components: int, rng: Any, tol: float = 0.0, report: Any = silent
    ) -> base.Eigenpairs:
        """eigsh on the operator; the residuals cost one more block product."""
        n = operator.shape[0]
        if n_components >= n:
            raise ValueError(
                f"eigen_solver='arpack' does not find all components: n_components={n_components} "
                f"must be fewer than n_samples={n}. Use eigen_solver='dense'."
            )
        matrix: Any = operator.to_dense() if self.form else None
        formed, count = isinstance(matrix, np.ndarray), 0
        if formed:
            matrix = matrix.T  # by columns, as BLAS reads it
            product = partial(dsymv, 1.0, matrix)

        def counted(v):
            nonlocal count
            count += 1
            if formed:
                return product(v)
            return to_numpy(operator @ operator.vectors(v.reshape(-1, 1))).ravel()

        def block(V):
            if not formed:
                return to_numpy(operator @ operator.vectors(V))
            if V.shape[1] > FEWEST:
                return dsymm(1.0, matrix, V)
            # V may have no columns: where no pair that was found has converged.
            return np.array([dsymv(1.0, matrix, v) for v in V.T]).reshape(V.T.shape).T

        r, goal = n_components, CLOSE if self.to_rounding else max(tol, CLOSE)
        values, U = self._search(counted, np.zeros(0), np.zeros((n, 0)), r, rng, goal)
        total = float(matrix.diagonal().sum()) if formed else 0.0
        square: Any = float(np.vdot(matrix.T, matrix.T)) if formed else operator.square()
        factored = formed and n <= (MANY_ROWS if r >= MANY else FEW_ROWS)
        missed = 0
        for _ in range(r + 2):
            AU, top = block(U), float(np.max(np.abs(values), initial=0.0))
            least, rest = np.min(values, initial=top), np.inf
            if factored and values.size == r:
                rest = rest_bound(matrix, values, U, square**0.5)
            # Among negative eigenvalues, which a factor tells nothing of, others may be missed.
            if rest <= least + max(goal, 2 * ALIKE) * top:
                seen, missed = factored_evidence(values, U, AU, rest), 0
                break
            by_block = formed and n >= ROWS and not factored and values.size == r
            if by_block:
                Q, AQ = widened(block, U, AU, r + SPARE, 3, rng)
            else:
                # Within the vectors that ARPACK holds, as the plan has them.
                more = 0 if square is not None else min(count // PRODUCTS_PER_STEP, 2 * r + 12)
                Q, AQ = widened(lambda V: counted(V[:, 0])[:, None], U, AU, 1, PROBES + more, rng)
            seen = replace(basis_evidence(Q, AQ, square), rest=None if rest == np.inf else rest)
            if square is None:
                likely = likely_rest(Q, AQ, values.size, base.FAILURE / (r + 2))
                seen = replace(seen, likely=likely)
            complete = by_block and leaves_less(seen, n, total, operator.definite, least)
            # A matrix of low rank has fewer than r that ARPACK finds.
            beyond = least + max(goal, MISSED) * top
            larger = int(np.sum(seen.values > beyond) - np.sum(values > beyond))
            missed = r - values.size + max(larger, 0)
            slow = not complete and (factored or count > SLOW * lanczos_size(n, r))
            if not missed and not slow:
                break
            new_values, V = self._search(counted, values, U, min(missed or 1, n - 1), rng, goal)
            if not missed and not np.max(new_values, initial=-np.inf) > beyond:
                break
            # Of few rows the first n columns span everything; pairs found twice are dependent.
            V, _ = base.qr(np.column_stack([Q, V])[:, :n])
            values, U, AU = base.rayleigh_ritz(V, block(V))
            # Those that have not converged yet are searched for beside these.
            near = base.column_norms(AU - U * values) <= max(goal, base.FULL_FLOOR) * top
            index = np.flatnonzero(near)[:r]
            values, U, AU = values[index], U[:, index], AU[:, index]
        else:  # every round found another one
            missed = 1
        if values.size < r:
            raise base.NoConvergence(f"ARPACK found {values.size} of {r} components. Use 'krylov'.")
        residuals = base.column_norms(AU - U * values)
        searched = formed and not operator.definite
        least = negative_bound(matrix, values[0]) if searched else None
        found = values, U, residuals
        pairs = base.Eigenpairs(*found, n_passes=count + 1, least=least, searched=searched)
        pairs = base.reported(pairs, report, tol)
        return replace(pairs, converged=pairs.converged and not missed, evidence=(seen,))

    def _search(self, product, values, U, k: int, rng, goal: float):
        """Up to k leading pairs beside `values` and U, which are moved below all others."""
        # ARPACK counts in 32 bits.
        n, restarts = U.shape[0], min(self.max_iter or RESTARTS, np.iinfo(np.int32).max)
        shift, start = 2 * np.max(np.abs(values), initial=0.0), rng.uniform(-1, 1, n)
        rest = (lambda v: product(v) - shift * (U @ (U.T @ v))) if values.size else product
        A = LinearOperator((n, n), rest, dtype=float)
        A.matvec = rest  # without a check of each product, which takes as long as a small one
        try:
            new_values, V = eigsh(
                A, k, which="LA", tol=goal, maxiter=restarts, v0=start, ncv=lanczos_size(n, k)
            )
        except ArpackNoConvergence as error:
            new_values, V = error.eigenvalues, error.eigenvectors
            # A new start finds copies of these in fewer products.
            if self.max_iter or not new_values.size + values.size:
                raise base.NoConvergence(
                    f"ARPACK found {new_values.size} of {k} components within "
                    f"max_iter={restarts}. Raise max_iter or tol, or use eigen_solver='krylov'."
                ) from error
        except ArpackError:
            # The product with the start was zero: the matrix is taken to be zero.
            return np.zeros(k), np.eye(n, k)
        return new_values[::-1], V[:, ::-1]


def lanczos_size(n: int, k: int) -> int:
    """Vectors that ARPACK keeps for k pairs: SciPy's 20 take more products for few."""
    return min(n, max(24, 2 * k + 1))


def widened(product, Q, AQ, width: int, steps: int, rng) -> tuple[np.ndarray, np.ndarray]:
    """Q and A Q with a few steps of block Lanczos added, orthogonal to Q and from a new start.

    Single-vector Lanczos finds one copy of a multiple eigenvalue, others only through rounding.
    What `Q` lacks is the largest there is beside it, and another start finds it.
    """
    n, k = Q.shape
    size = k + min(n - k, width * steps)
    basis, products = np.empty((n, size), order="F"), np.empty((n, size), order="F")
    basis[:, :k], products[:, :k] = Q, AQ
    V = rng.standard_normal((n, width))
    for first in range(k, size, width):
        before, new = basis[:, :first], slice(first, min(first + width, size))
        V = V[:, : new.stop - new.start]
        V = away_from(before, V, rng) if width == 1 else base.orthonormal_against(V, before)[0]
        basis[:, new] = V
        products[:, new] = V = product(V)
    return basis, products


def likely_rest(Q, AQ, k: int, failure: float) -> float:
    """A bound on the eigenvalues of A orthogonal to the first k columns of Q, `widened` by steps.

    Lanczos from a unit vector v of random direction has orthonormal polynomials p_j, and for an
    eigenvector u with eigenvalue l that is not too nearly orthogonal to v, sum p_j(l)^2 is at most
    1 / (u'v)^2, whose distribution is known. The sum grows beyond the largest Ritz value (van
    Dorsselaer, Hochstenbach & van der Vorst 2000).
    """
    (n, size), V = Q.shape, Q[:, k:]
    if size == n:
        return float(base.small_eigh(V.T @ AQ[:, k:])[0][0]) if size > k else -np.inf
    T = V.T @ AQ[:, k:]
    after = AQ[:, -1] - Q @ (Q.T @ AQ[:, -1])
    steps = np.append(np.diagonal(T, 1), np.linalg.norm(after))
    top = float(np.max(np.abs(T))) + float(np.max(np.abs(AQ[:, :k]), initial=0.0))
    norm = max(top, float(np.sqrt((AQ**2).sum(axis=0).max())))
    # Steps that are rounding end the recurrence.
    last = int(np.argmax(np.append(steps, 0.0) < ROUNDED * norm))
    T, steps = T[: last + 1, : last + 1], np.maximum(steps[: last + 1], ROUNDED * norm)
    least, centers = float(np.linalg.eigvalsh(T)[-1]), np.diagonal(T)
    most = 1 / betaincinv(0.5, (n - k - 1) / 2, failure)

    def likely(mu: float) -> bool:
        before, now, square = 0.0, 1.0, 1.0
        for j, (center, step) in enumerate(zip(centers, steps, strict=False)):
            left = steps[j - 1] * before if j else 0.0
            before, now = now, ((mu - center) * now - left) / step
            square += now * now
            if square > most:
                return False
        return True

    low, high = least, least + norm
    while likely(high):
        low, high = high, least + 2 * (high - least)
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if likely(middle) else (low, middle)
    return high + ROUNDED * norm


def leaves_less(seen: base.Evidence, n: int, total: float, definite: bool, least: float) -> bool:
    """Whether all eigenvalues of a matrix that a basis leaves out are below `least`."""
    values, total = seen.values, total - float(seen.values.sum())
    square = seen.square - values @ values - 2 * np.trace(seen.RR)
    largest = base.largest_of(max(n - values.size, 1), total, square)
    return bool((min(largest, total) if definite else largest) < least)


def rest_bound(A, values, U, norm: float) -> float:
    """A bound on the eigenvalues of A orthogonal to U, near the least of `values`; inf without one.

    If B = I - (A - W W') / sigma with W = U sqrt(values) has a Cholesky factor L in floating point,
    then B >= -delta I, whatever U is: no eigenvalue of A orthogonal to U exceeds sigma (1 + delta).
    L L' differs from what was factored by at most n + 1 units of rounding of M = |L| |L'| (Higham
    2002, theorem 10.3), whose norm is at most its trace, and max (M x) / x for any positive x
    (Collatz and Wielandt). Entries of B are sums of r + 2 rounded numbers.

    Single precision takes half of the time, and does where it leaves half of the distance.
    Reads the upper triangle of A, whose norm of Frobenius is `norm`, and overwrites the lower one.
    """
    n, r = U.shape
    least, top = float(np.min(values)), float(np.max(np.abs(values)))
    W, diagonal = np.asfortranarray(U * np.sqrt(np.maximum(values, 0.0))), A.diagonal().copy()
    size = norm + float(np.vdot(W, W))
    # A unit of rounding is half of eps; some more than are counted above.
    single, double = ((n + 8) / 2 * float(np.finfo(kind).eps) for kind in (np.float32, float))
    tries = [max(least, 0.0) + ALIKE * top]
    if least > ALIKE * top:
        tries.insert(0, (1 - APART / r) * least)
        sigma, left = tries[0], APART / r / 2
        # Entries are rounded as they are formed, and again by what is too small for the format.
        forming = (r + 8) * float(np.finfo(np.float32).eps) * size / sigma
        if 16 * (single + forming) < APART / r and sigma > 1e-15 and size < 1e15:
            delta = single_doubt(A, W.astype(np.float32), sigma, single, forming, left)
            if sigma * (1 + delta) < (1 - left) * least:
                return sigma * (1 + delta)
    for sigma in tries:
        if not np.finfo(float).tiny * 1e8 < sigma < np.inf:
            continue
        for s in row_blocks(n, 128):
            A[s.stop :, s] = A[s, s.stop :].T
            A[s, s] = np.triu(A[s, s]) + np.triu(A[s, s], 1).T
        B = dsyrk(1 / sigma, W, -1 / sigma, A, lower=1, overwrite_c=1)
        B.flat[:: n + 1] += 1.0
        delta = (r + 8) * float(np.finfo(float).eps) * (1 + size / sigma)
        delta += double * float(B.diagonal().sum())
        _, failed = dpotrf(B, lower=1, overwrite_a=1, clean=0)
        A.flat[:: n + 1] = diagonal
        if not failed and delta < 1:
            return sigma * (1 + delta)
    return np.inf


def single_doubt(A, W, sigma: float, rounding: float, forming: float, enough: float) -> float:
    """The delta of `rest_bound` by a factor in single precision; inf where there is none.

    The quotient of Collatz and Wielandt after three steps, or fewer where half of `enough` is left.
    """
    B = ssyrk(1 / sigma, W, -1 / sigma, A.astype(np.float32, order="F"), overwrite_c=1)
    B.flat[:: len(B) + 1] += 1.0
    U, failed = spotrf(B, overwrite_a=1)
    if failed:
        return np.inf
    U, x, delta = np.abs(U, out=U), np.ones(len(U), np.float32), np.inf
    for _ in range(3):
        x, before = (U @ x) @ U, x
        delta = min(delta, rounding * 1.01 * float(np.max(x / before)) + forming)
        if delta < enough / 2:
            break
        x = x / np.max(x) + np.float32(1e-3)
    return delta


def factored_evidence(values, U, AU, rest: float) -> base.Evidence:
    """The record of products A U where `rest` bounds all that is orthogonal to U.

    U is orthonormal, and U'AU diagonal, to within `doubt`.
    """
    R = AU - U * values
    unlike = float(np.linalg.norm(self_product(U) - np.eye(values.size)))
    doubt = 3 * (unlike * float(np.max(np.abs(values))) + float(np.linalg.norm(U.T @ R)))
    return base.Evidence(values, 1.01 * self_product(R), rest=rest, doubt=doubt)


def away_from(Q, v, rng):
    """The unit vector along v, (n, 1), orthogonal to Q; a random one where nothing of v is left.

    `orthonormal_against` for one vector, in a tenth of the time.
    """
    for _ in range(4):
        before, v = float(np.vdot(v, v)), v - Q @ (Q.T @ v)
        after = float(np.vdot(v, v))
        if not after > 1e-20 * before:
            v = rng.uniform(-1, 1, v.shape)
        elif after > base.LEAST_KEPT**2 * before:  # else what is left is rounding in part
            break
    return v / np.linalg.norm(v)


def basis_evidence(Q, AQ, square: float | None) -> base.Evidence:
    """The record of products A Q with an orthonormal Q."""
    values, Y = base.small_eigh(Q.T @ AQ)
    AQ = AQ @ Y
    RR = self_product(AQ) - np.diag(values**2)
    RR = RR + np.eye(len(RR)) * np.finfo(float).eps * np.max(values**2)
    return base.Evidence(values, RR, square)
