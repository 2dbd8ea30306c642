"""LAPACK on the matrix of an operator, and Lanczos on its products, one vector at a time."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.blas import dsymm, dsymv, dsyrk, ssyrk
from scipy.linalg.lapack import dpotrf, spotrf
from scipy.special import betaincinv

from ..compute import array_namespace, on_device_of, row_blocks, to_numpy
from ..compute.linalg import cholesky, leading_eigh, self_product
from . import base
from .base import silent

# Residuals are measured for up to one in FEW of all components, by one product, which takes 5 % of
# LAPACK's time for a fifth of them. For more, LAPACK's own bound is stated.
FEW = 16
# Lanczos steps from a new start that search for eigenvalues that were missed (eight found all of
# 69), and bound what is left, and the share of the largest eigenvalue by which they must exceed the
# last value found.
PROBES, MISSED = 12, 1e-10
# If products exceed this multiple of the vectors kept, eigenvalues are too close for these steps:
# one more component is searched for, which takes about as long as all others did.
SLOW = 5
# Where the basis does not show it, a Cholesky factor shows that none of MANY components or more is
# missed up to MANY_ROWS rows, and of any number up to FEW_ROWS; else it takes too long.
MANY, MANY_ROWS, FEW_ROWS = 10, 2000, 350
# Ritz vectors beyond those wanted whose residuals are looked at.
SPARE = 16
# Share of the last of r eigenvalues, times r, that all others are first tried to be below it by,
# and that of the first by which they may exceed it where eigenvalues are close.
APART, ALIKE = 0.04, 1e-9
# Restarts after which Lanczos starts anew beside the converged pairs.
RESTARTS = 300
# Vectors, at the least, that it keeps before it restarts where the matrix is formed.
FORMED_SIZE = 36
# Rounding of a sum of all entries or their squares, as a share of it.
SUM_ROUNDED = 1e-12
TINY = np.finfo(float).tiny
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
    """Restarted Lanczos, one vector at a time, which scikit-learn takes from ARPACK.

    Many single products where `BlockKrylov` needs a few block ones: the fastest for a few
    components of up to a few thousand rows, whose matrix is formed and multiplied from its
    upper half. ARPACK's restarts give the same in exact arithmetic, but keep no products; with
    them residuals cost nothing, and the whole basis bounds what was missed.

    Parameters
    ----------
    max_iter : int or None
        Restarts; None for 300.
    form : bool or None
        Whether to form the matrix. None: the plan decides, and forms it if the budget allows.
    to_rounding : bool
        Iterate to near rounding whatever the tolerance: that separates close eigenvalues.
    """

    _cap_name = "max_iter"

    max_iter: int | None = None
    form: bool | None = None
    to_rounding: bool = False

    def vectors_held(self, n_components: int) -> int:
        """A basis with its products and a copy of it, probes, and the result."""
        return 3 * lanczos_size(10**9, n_components) + 2 * (PROBES + n_components)

    def solve(
        self, operator: Any, n_components: int, rng: Any, tol: float = 0.0, report: Any = silent
    ) -> base.Eigenpairs:
        """Lanczos, and what shows that it missed none: its whole basis, a factor, or probes."""
        n, r, count = operator.shape[0], n_components, 0
        if r >= n:
            raise ValueError(
                f"eigen_solver='arpack' does not find all components: n_components={r} "
                f"must be fewer than n_samples={n}. Use eigen_solver='dense'."
            )
        A: Any = operator.to_dense() if self.form else None
        formed = isinstance(A, np.ndarray)
        A = A.T if formed else None  # by columns, as BLAS reads it

        def product(v):
            nonlocal count
            count += 1
            if formed:
                return dsymv(1.0, A, v)
            return to_numpy(operator @ operator.vectors(v.reshape(-1, 1))).ravel()

        goal = CLOSE if self.to_rounding else max(tol, CLOSE)
        size = max(FORMED_SIZE, 3 * r + 24) if formed else lanczos_size(n, r)
        most = (self.max_iter or RESTARTS) * (lanczos_size(n, r) - r)
        factored = formed and n <= (MANY_ROWS if r >= MANY else FEW_ROWS)
        total = float(A.diagonal().sum()) if formed else np.inf
        U = AU = np.empty((n, 0), order="F")
        missed, before, looked, likely = r, np.inf, False, None
        for _ in range(r + 2):
            fixed, k = U.shape[1], min(missed, n - U.shape[1])
            Q, AQ, T, ritz, Y = lanczos(product, U, AU, k, size, goal, most, rng)
            top, first = float(np.max(np.abs(ritz))), slice(r + SPARE)
            # Of what was searched for last, some may not have converged.
            U, AU = Q @ Y[:, first], AQ @ Y[:, first]
            near = base.column_norms(AU - U * ritz[first]) <= max(goal, base.FULL_FLOOR) * top
            index = np.flatnonzero(near)[:r]
            values, U, AU = ritz[index], U[:, index], AU[:, index]
            least, missed = float(np.min(values, initial=top)), r - values.size
            if missed and (self.max_iter is not None or values.size <= fixed):
                raise base.NoConvergence(
                    f"eigen_solver='arpack' found {values.size} of {r} components within "
                    f"max_iter={self.max_iter or RESTARTS}. Raise max_iter or tol, or use "
                    "eigen_solver='krylov'."
                )
            if missed:
                continue
            others = np.delete(np.arange(ritz.size), index)
            RR = Y[:, others].T @ (self_product(AQ) - T @ T) @ Y[:, others]
            square: Any = float(np.vdot(A.T, A.T)) if formed else operator.square()
            gamma = largest_left(ritz, RR, n, total, square, operator.definite)
            rest = rest_beside(ritz[others], RR, gamma, least)
            alike = least + max(goal, 2 * ALIKE) * top
            if rest > alike and factored:
                # Among negative eigenvalues, which a factor tells nothing of, others may be missed.
                rest = min(rest, rest_bound(A, values, U, square**0.5))
            if rest <= alike or (looked and least <= before):
                break
            V, AV = probes(product, Q, PROBES, rng)
            gamma = likely_rest(Q, V, AV, top, base.FAILURE / (r + 2))
            likely = rest_beside(ritz[others], RR, gamma, least)
            if likely <= alike:
                break
            beyond = least + max(goal, MISSED) * top
            W = V.T @ AQ
            wider = np.linalg.eigvalsh(np.block([[T, W.T], [W, V.T @ AV]]))
            missed = int(np.sum(wider > beyond) - np.sum(values > beyond))
            # Where eigenvalues are too close for probes, one more is searched for.
            looked = missed < 1 and count > SLOW * lanczos_size(n, r)
            if missed < 1 and not looked:
                break
            before, missed = beyond, max(missed, 1)
        else:  # every round found another one
            missed = 1
        if values.size < r:
            raise base.NoConvergence(
                f"eigen_solver='arpack' found {values.size} of {r} components. Use 'krylov'."
            )
        seen = replace(evidence_beside(values, U, AU, rest), likely=likely)
        residuals = base.column_norms(AU - U * values)
        searched = formed and not operator.definite
        negative = negative_bound(A, values[0]) if searched else None
        facts: dict = {
            "n_passes": count,
            "least": negative,
            "searched": searched,
            "evidence": (seen,),
        }
        pairs = base.reported(base.Eigenpairs(values, U, residuals, **facts), report, tol)
        return replace(pairs, converged=pairs.converged and missed < 1)


def lanczos_size(n: int, k: int) -> int:
    """Vectors that Lanczos keeps for k pairs where memory is short, and as many products."""
    return min(n, max(32, 2 * k + 16))


def lanczos(product, Q, AQ, k: int, size: int, goal: float, most: int, rng) -> tuple:
    """Q with vectors added that hold k leading eigenvectors of A orthogonal to it.

    Every vector is kept, and orthogonal to all others, until `size` are added: then the leading
    Ritz vectors of these stay (thick restarts, Wu & Simon 2000). It ends after `most` products, or
    with residuals of `goal` as a share of their eigenvalues. Also gives A Q, Q'AQ, and the
    eigenvalues and vectors of this.
    """
    n, fixed = Q.shape
    size = min(n, fixed + size)
    basis, products = np.empty((n, size), order="F"), np.empty((n, size), order="F")
    basis[:, :fixed], products[:, :fixed], T = Q, AQ, np.zeros((size, size))
    T[:fixed, :fixed] = Q.T @ AQ
    last, check, before, is_first = fixed, min(fixed + 2 * k + 14, size), None, True
    v, beta = away_from(Q, rng.uniform(-1, 1, n), rng), 0.0
    while True:
        Q = basis[:, : last + 1]
        basis[:, last], w = v, product(v)
        products[:, last] = w
        if is_first:
            T[: last + 1, last] = T[last, : last + 1] = h = w @ Q
            w, is_first = w - Q @ h, False
        else:
            # All other entries are zero but for rounding, which is taken off below.
            T[last, last] = alpha = w @ v
            T[last - 1, last] = T[last, last - 1] = beta
            w = w - basis[:, last - 1 : last + 1] @ np.array([beta, alpha])
        last, most = last + 1, most - 1
        if last < n:
            rounding = w @ Q
            w = w - Q @ rounding
            beta = math.sqrt(w @ w)
            v = w / beta if beta > 2 * math.sqrt(rounding @ rounding) else away_from(Q, w, rng)
        if last not in (check, size) and most > 0:
            continue
        values, Y = base.small_eigh(T[fixed:last, fixed:last])
        ends = np.abs(values[:k])
        allowed = np.maximum(goal * ends, np.finfo(float).eps * np.max(np.abs(values)))
        over = float(np.max(beta * np.abs(Y[-1, :k]) / np.maximum(allowed, TINY)))
        if last == n or over <= 1 or most <= 0:
            T = T[:last, :last]
            return Q, products[:, :last], T, *((values, Y) if not fixed else base.small_eigh(T))
        # Residuals fall by about the same share each step, at first by some guess.
        fall = 1.5 if before is None else np.log(before[1] / over) / (last - before[0])
        step = int(np.clip(np.log(over) / max(fall, 1e-3), 1, max(6, last // 8)))
        before = last, over
        if last == size:
            kept, before, is_first = k + (size - fixed - k) // 3, None, True
            new = slice(fixed, fixed + kept)
            basis[:, new] = basis[:, fixed:last] @ Y[:, :kept]
            products[:, new] = products[:, fixed:last] @ Y[:, :kept]
            T[fixed:, fixed:] = 0.0
            T[new, new] = np.diag(values[:kept])
            last = fixed + kept
        check = min(last + step, size)


def probes(product, Q, steps: int, rng) -> tuple[np.ndarray, np.ndarray]:
    """V and A V of a few steps of Lanczos orthogonal to Q, from a new start.

    Single-vector Lanczos finds one copy of a multiple eigenvalue, others only through rounding.
    What `Q` lacks is the largest there is beside it, and another start finds it.
    """
    n, k = Q.shape
    steps = min(steps, n - k)
    basis, products = np.empty((n, k + steps), order="F"), np.empty((n, steps), order="F")
    basis[:, :k], v = Q, rng.standard_normal(n)
    for j in range(steps):
        basis[:, k + j] = v = away_from(basis[:, : k + j], v, rng)
        products[:, j] = v = product(v)
    return basis[:, k:].copy(order="F"), products


def likely_rest(Q, V, AV, norm: float, failure: float) -> float:
    """A bound on the eigenvalues of A orthogonal to Q, from `probes`, and about A's norm.

    Lanczos from a unit vector v of random direction has orthonormal polynomials p_j, and for an
    eigenvector u with eigenvalue l that is not too nearly orthogonal to v, sum p_j(l)^2 is at most
    1 / (u'v)^2, whose distribution is known. The sum grows beyond the largest Ritz value (van
    Dorsselaer, Hochstenbach & van der Vorst 2000).
    """
    (n, k), steps_made = Q.shape, V.shape[1]
    T = V.T @ AV
    if k + steps_made == n:
        return float(base.small_eigh(T)[0][0]) if steps_made else -np.inf
    after = AV[:, -1] - Q @ (AV[:, -1] @ Q) - V @ T[:, -1]
    steps = np.append(np.diagonal(T, 1), np.linalg.norm(after))
    norm = max(norm, float(np.max(np.abs(T))), float(np.max(base.column_norms(AV))))
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

    low, step = least, max(least / 8, norm / 1024)
    while likely(low + step):
        low, step = low + step, 2 * step
    for _ in range(7):
        step = step / 2
        low += step * likely(low + step)
    high = low + step
    return high + ROUNDED * norm


def largest_left(ritz, RR, n: int, total: float, square: float | None, definite: bool) -> float:
    """A bound on the eigenvalues of A that a basis leaves out, by the traces of A and its square.

    Sums of so many numbers are rounded by far less than the share that is allowed for.
    """
    left, slack, most = total - float(ritz.sum()), SUM_ROUNDED * abs(total), np.inf
    if square is not None:
        rest = max(square - ritz @ ritz - 2 * float(np.trace(RR)), 0.0) + SUM_ROUNDED * square
        most = rest**0.5
        if np.isfinite(total):
            most = float(base.largest_of(max(n - ritz.size, 1), left, rest, slack))
    return min(most, left + slack) if definite and left >= -slack else most


def rest_beside(ritz, RR, gamma: float, least: float) -> float:
    """A bound on the eigenvalues of A orthogonal to some Ritz vectors.

    Of the others `ritz` are the values and RR the products of residuals, and gamma bounds what is
    orthogonal to all of them: see `fitting.certificate.upper_ends`.
    """
    low = max(gamma, float(np.max(ritz, initial=gamma)))
    bound = low + max(float(np.trace(RR)), 0.0) ** 0.5
    for share in (0.5, 0.1) if low < least else ():
        mu = low + share * (least - low)
        above = float(np.max(np.linalg.eigvalsh(np.diag(ritz) + RR / (mu - gamma)), initial=gamma))
        bound = min(bound, max(mu, above))
        if above > mu:
            break
    return bound


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


def evidence_beside(values, U, AU, rest: float) -> base.Evidence:
    """The record of products A U where `rest` bounds all that is orthogonal to U.

    U is orthonormal, and U'AU diagonal, to within `doubt`.
    """
    R = AU - U * values
    unlike = float(np.linalg.norm(self_product(U) - np.eye(values.size)))
    doubt = 3 * (unlike * float(np.max(np.abs(values))) + float(np.linalg.norm(U.T @ R)))
    return base.Evidence(values, 1.01 * self_product(R), rest=rest, doubt=doubt)


def away_from(Q, v, rng):
    """The unit vector along v, orthogonal to Q; a random one where nothing of v is left.

    `orthonormal_against` for one vector, in a tenth of the time.
    """
    for _ in range(4):
        before, v = float(np.vdot(v, v)), v - Q @ (v @ Q)
        after = float(np.vdot(v, v))
        if not after > 1e-20 * before:
            v = rng.uniform(-1, 1, v.shape)
        elif after > base.LEAST_KEPT**2 * before:  # else what is left is rounding in part
            break
    return v / np.sqrt(float(np.vdot(v, v)))
