"""Block Krylov: a few eigenpairs from a handful of block products.

Block Lanczos with full reorthogonalisation, Rayleigh-Ritz on the whole basis after each
pass and thick restart, run on the operator's draft where it has one (single precision is
enough to find a subspace to 1e-6). If that is all that was asked for, some rows of the
product in full precision measure what rounding did, and the residuals allow for it.
Otherwise passes in full precision follow: the first measures the true residuals, and where
these are not yet small enough the directions

    (l_i - A)^{-1} (A u_i - l_i u_i),

solved for on the draft, join the subspace: each such pass gains several digits.

References: Golub & Underwood 1977; Wu & Simon 2000 (thick restart); Davidson 1975.
"""

from dataclasses import dataclass

import numpy as np

from ..compute import array_namespace, on_device_of, to_numpy
from ..operators import SymmetricOperator
from ._linalg import (
    column_norms,
    inner,
    orthonormal_against,
    qr,
    random_columns,
    small_eigh,
    tall,
    times,
)
from .base import Eigenpairs, PassState, Report, Solver, silent
from .dense import Dense

# Residuals, as shares of the largest eigenvalue, below which float64 passes gain nothing
# for eigenvalues (their error is the square) ...
FULL_FLOOR = 1e-9
# ... and below which single-precision passes stop gaining.
DRAFT_FLOOR = 1e-6
# ... and below which half-precision passes of a device do.
COARSE_FLOOR = 1e-3
# Share of the tolerance that the search may use up; rounding was seen to take up to a fourth.
DRAFT_GOAL = 0.7
# Blocks wider than this cost more per pass than they save in passes.
WIDEST_BLOCK = 128
# Blocks in the basis before it is restarted.
BASIS_BLOCKS = 8
# Products spent at most on one correction, and corrections at most.
CORRECTION_DEPTH = 10
MAX_CORRECTIONS = 12
# Products in all before the solver gives up.
MAX_PASSES = 100
# Rows on which rounding is measured, and the factor by which the sample is not trusted.
ROUNDING_ROWS, ROUNDING_FACTOR = 256, 2.0


class BlockKrylov(Solver):
    """The leading eigenpairs by block Krylov iteration; the matrix is never formed.

    Cost: one block product a pass, typically 4 to 6 in single precision and one or two
    in double. Memory: at most `max_columns` vectors.

    Parameters
    ----------
    block : int or None
        Vectors a product; None for the number of components plus `oversampling`.
    oversampling : int
        Vectors carried beyond those asked for. 16 in place of 8 save one pass in six, and
        GEMM likes blocks of 32.
    max_columns : int or None
        Vectors kept before a restart; None for eight blocks.
    max_passes : int
        Products in all; when they are used up the result says that it has not converged.
    """

    _cap_name = "max_passes"

    def __init__(
        self,
        block: int | None = None,
        oversampling: int = 16,
        max_columns: int | None = None,
        max_passes: int = MAX_PASSES,
    ):
        self.block = block
        self.oversampling = oversampling
        self.max_columns = max_columns
        self.max_passes = max_passes

    def solve(
        self,
        operator: SymmetricOperator,
        n_components: int,
        rng: np.random.Generator,
        tol: float = 0.0,
        report: Report = silent,
    ) -> Eigenpairs:
        """Subspace on the draft, then Rayleigh-Ritz and corrections in full precision."""
        n = operator.shape[0]
        carried = n_components + self.oversampling
        block = self.block or min(carried, WIDEST_BLOCK)
        if 4 * max(block, carried) >= n:
            return Dense().solve(operator, n_components, rng, tol, report)
        draft = operator.draft or operator
        watch = Watch(n_components, self.max_passes, max(tol, FULL_FLOOR), report)
        columns = max(self.max_columns or carried + BASIS_BLOCKS * block, carried + 2 * block)
        # The block beside a full basis needs room to be orthogonal to it.
        columns = min(columns, n - block)
        goal = DRAFT_GOAL * max(watch.tol, DRAFT_FLOOR if operator.draft else FULL_FLOOR)
        V = warm_start(draft, block, carried, columns, rng, watch)
        ritz = krylov(draft, V, carried, columns, goal, watch)
        U = ritz.vectors
        short = n_components - U.shape[1]
        if operator.draft and watch.tol >= DRAFT_FLOOR and short <= 0:
            pairs = with_rounding(operator, ritz, rng, watch)
            if pairs.converged or watch.over:
                return pairs
        if short > 0:
            # Stopped before the basis was as wide as the result.
            U = array_namespace(U).concat([U, random_columns(U, short, rng)], axis=1)
        return refine(operator, draft, U, columns, watch)


@dataclass(frozen=True)
class Ritz:
    """Ritz pairs, and the residual vectors as factors: A U = U L + V B."""

    values: np.ndarray
    vectors: np.ndarray
    V: np.ndarray
    B: np.ndarray


class Watch:
    """Counts passes, reports each, and remembers that somebody asked to stop."""

    def __init__(self, wanted, max_passes, tol, report):
        self.wanted, self.max_passes, self.tol, self.report = wanted, max_passes, tol, report
        self.n_passes = 0
        self.stopped = False
        self.least = 0.0

    def __call__(self, values, residuals) -> float:
        """Note a pass; the largest wanted residual as a share of the largest eigenvalue."""
        self.n_passes += 1
        self.least = min(self.least, float(values[-1]))
        top = max(float(np.max(np.abs(values))), np.finfo(float).tiny)
        residual = float(np.max(residuals[: self.wanted])) / top
        state = PassState(self.n_passes, values[: self.wanted].copy(), residual, self.tol)
        self.stopped |= bool(self.report(state))
        return residual

    @property
    def over(self) -> bool:
        """Whether to finish with what there is. One pass is left for the true residuals."""
        return self.stopped or self.n_passes >= self.max_passes - 1


def warm_start(A, block, carried, columns, rng, watch):
    """Vectors to start from, improved on a draft of A where there is one: any start will do."""
    V = A.start(block, rng)
    if A.draft is None:
        return V
    goal = DRAFT_GOAL * max(watch.tol, COARSE_FLOOR)
    return krylov(A.draft, V, carried, columns, goal, watch).vectors[:, :block]


def krylov(A, V, carried, columns, goal, watch):
    """Ritz pairs of A, as many as `carried`, whose wanted residuals are below `goal`."""
    b = V.shape[1]
    Q = tall(V, columns)
    T = np.zeros((columns, columns))
    Q[:, :b], _ = qr(V)
    q = b
    while True:
        new = slice(q - b, q)
        V, C, B = orthonormal_against(A @ Q[:, new], Q[:, :q])
        T[:q, new], T[new, :q] = C, C.T
        values, Y = small_eigh(T[:q, :q])
        # What leaves the basis does so through the last block alone.
        residual = watch(values, column_norms(B @ Y[new]))
        if (q >= carried and residual <= goal) or watch.over:
            kept = Y[:, :carried]
            return Ritz(values[:carried], times(Q[:, :q], kept), V, B @ kept[new])
        if q + b > columns:
            q = restart(Q, T, values, Y, q, min(carried, q))
        Q[:, q : q + b] = V
        q += b


def restart(Q, T, values, Y, q, kept):
    """Compress the basis to its leading Ritz vectors, on which T is diagonal."""
    Q[:, :kept] = times(Q[:, :q], Y[:, :kept])
    T[...] = 0.0
    T[np.arange(kept), np.arange(kept)] = values[:kept]
    return kept


def with_rounding(operator, ritz, rng, watch) -> Eigenpairs:
    """The draft's pairs, corrected for its rounding, with residuals that allow for it.

    Rows of A U in full precision, less those of the draft, sample the vectors E U by which
    rounding changed the product. Rounding is mostly bias, so the sample's estimate of u'E u
    takes the larger part of it out of the eigenvalues (on covtype 4e-7 became 5e-8), and the
    norms of E u are added to the draft's residuals.
    """
    r, n = watch.wanted, operator.shape[0]
    index = np.sort(rng.choice(n, min(n, ROUNDING_ROWS), replace=False))
    U, values, B = ritz.vectors[:, :r], ritz.values[:r], ritz.B[:, :r]
    product = to_numpy(operator.rows_times(index, U))
    some, outside = to_numpy(U[index]), to_numpy(ritz.V[index])
    change = product - some * values - outside @ B
    shift = n / index.size * np.einsum("ij,ij->j", some, change)
    rounding = ROUNDING_FACTOR * np.sqrt(n / index.size) * column_norms(change)
    residuals = column_norms(B) + rounding
    converged = bool(np.max(residuals) <= watch.tol * np.max(np.abs(ritz.values)))
    return Eigenpairs(values + shift, U, residuals, converged, watch.n_passes, watch.least)


def refine(operator, draft, U, columns, watch) -> Eigenpairs:
    """Rayleigh-Ritz in full precision, with corrections until the residuals are small."""
    k, r, xp = U.shape[1], watch.wanted, array_namespace(U)
    V, _ = qr(U)
    AV = operator @ V
    previous = np.inf
    for _ in range(MAX_CORRECTIONS):
        values, Y = small_eigh(inner(V, AV))
        U, AU, values = times(V, Y[:, :k]), times(AV, Y[:, :k]), values[:k]
        R = AU - U * on_device_of(values, U)
        residuals = column_norms(R)
        residual = watch(values, residuals)
        if residual <= watch.tol or watch.over or residual > previous / 2:
            break
        previous = residual
        shrink = watch.tol / residual / 4
        D = corrections(draft, U, values[:r], R[:, :r], shrink, columns, watch)
        D, _, _ = orthonormal_against(D, U)
        V, AV = xp.concat([U, D], axis=1), xp.concat([AU, operator @ D], axis=1)
    return Eigenpairs(
        values[:r],
        U[:, :r],
        residuals[:r],
        converged=residual <= watch.tol,
        n_passes=watch.n_passes,
        least=watch.least,
    )


def corrections(A, U, values, R, shrink, columns, watch):
    """Approximate (l_i - A)^{-1} r_i for every residual, orthogonal to U, by block Krylov.

    Stops when the equations' own residuals have shrunk by `shrink`.
    """
    n, r = R.shape
    V, _, size = orthonormal_against(R, U)
    # The last block, too, must find room orthogonal to all the others.
    depth = min(CORRECTION_DEPTH, max(2, columns // r), (n - U.shape[1]) // r - 1)
    Q, xp = tall(R, depth * r), array_namespace(R)
    T = np.zeros((depth * r, depth * r))
    right = np.zeros((depth * r, r))
    right[:r] = size
    for q in range(r, depth * r + 1, r):
        new = slice(q - r, q)
        Q[:, new] = V
        V, C, B = orthonormal_against(A @ V, xp.concat([U, Q[:, :q]], axis=1))
        C = C[U.shape[1] :]
        T[:q, new], T[new, :q] = C, C.T
        watch.n_passes += 1
        Y = shifted_solve(T[:q, :q], values, right[:q])
        if np.max(column_norms(B @ Y[new])) <= shrink * np.max(column_norms(right)) or watch.over:
            break
    return times(Q[:, :q], Y)


def shifted_solve(T, values, right):
    """Solve (l_i - T) y_i = right_i for all i with one decomposition of T."""
    w, P = small_eigh(T)
    gaps = values[None, :] - w[:, None]
    # A shift inside the spectrum of T would blow a direction up that U already holds.
    gaps = np.maximum(gaps, 1e-2 * np.abs(values))
    return P @ ((P.T @ right) / gaps)
