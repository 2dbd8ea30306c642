"""Block Krylov: a few eigenpairs from a handful of block products.

Block Lanczos with full reorthogonalization, Rayleigh-Ritz on the whole basis after each
pass and thick restart, run on the cheapest draft of the operator. Each better precision then
costs one product A U: it gives the true residuals, and the directions

    (l_i - A)^{-1} (A u_i - l_i u_i),

solved for on the draft, correct them. Corrections are small, about as large as the residuals,
so that their own products may be the draft's: its rounding counts only as residual times
rounding. That holds if the projected matrix takes its off-diagonal block from (A U)'D and never
from U'(A D).

If the draft is accurate enough for the tolerance, some rows of the product in full precision
measure its rounding, and the residuals allow for it.

References: Golub & Underwood 1977; Wu & Simon 2000 (thick restart); Davidson 1975.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..compute import array_namespace, on_device_of, row_blocks, to_numpy
from ..compute.linalg import self_product
from ..operators.base import padded
from . import base
from .base import silent
from .peers import Dense

# Residuals, as shares of the largest eigenvalue, below which single-precision passes stop gaining.
DRAFT_FLOOR = 1e-6
# ... and below which half-precision passes of a device do.
COARSE_FLOOR = 1e-3
# Share of the tolerance left to the search; rounding was seen to take up to a fourth.
DRAFT_GOAL = 0.7
# Blocks wider than this cost more per pass than they save in passes.
WIDEST_BLOCK = 128
# Blocks in the basis before it is restarted.
BASIS_BLOCKS = 8
# Ritz pairs beyond those asked for that get the product in full precision. The others that are
# carried keep the draft's: no pass more on narrow and wide kernels, and a third fewer columns.
FULL_SPARE = 7
# Corrections at most.
MAX_CORRECTIONS = 12
# Products in all before the solver gives up.
MAX_PASSES = 100
# Rows with the largest entries, on which rounding is measured: outliers have most of it.
LARGEST_ROWS = 64
# Other rows, on which rounding is sampled, and the safety factor on the sampled estimate.
ROUNDING_ROWS, ROUNDING_FACTOR = 1024, 2.0
# Standard deviations by which the sampled shift of an eigenvalue may be wrong.
SHIFT_FACTOR = 6.0
# Rows up to which all of the product is made in full precision in place of a sample.
WHOLE_ROWS = 8192
# How far a Ritz value that is not exact yet is taken to rise, in multiples of its last rise.
CLIMB = 3.0
# Factor by which the draft's rounding of corrections may exceed its rounding of other vectors; 4.6
# was seen once in 30,000 drawn problems, and elsewhere less than 2.
DOUBT_FACTOR = 8.0


@dataclass(eq=False, repr=False)
class BlockKrylov(base.Solver):
    """The leading eigenpairs by block Krylov iteration; the matrix is never formed.

    Cost: one block product a pass, typically 4 to 6 in single precision and one or two
    in double. Memory: at most `max_columns` vectors.

    Parameters
    ----------
    block : int or None
        Vectors a product; None for the number of components plus `oversampling`, at most 128.
        With fewer than components, an eigenvalue of as many copies may have more: the fit has then
        converged only where sums of squares show that it has not.
    oversampling : int
        Vectors carried beyond those asked for. 15 in place of 7 save one pass in six, and with
        the column for the row means 16 components make a block of 32, which GEMM likes.
    max_columns : int or None
        Vectors kept before a restart; None for eight blocks.
    max_passes : int
        Products in all; when they are used up the result says that it has not converged.
    """

    _cap_name = "max_passes"

    block: int | None = None
    oversampling: int = 15
    max_columns: int | None = None
    max_passes: int = MAX_PASSES

    def solve(
        self, operator: Any, n_components: int, rng: Any, tol: float = 0.0, report: Any = silent
    ) -> base.Eigenpairs:
        """A search on the cheapest draft, then one product and corrections a precision."""
        n = operator.shape[0]
        carried = n_components + self.oversampling
        block = self.block or min(carried, WIDEST_BLOCK)
        if 4 * max(block, carried) >= n:
            return Dense().solve(operator, n_components, rng, tol, report)
        columns = max(self.max_columns or carried + BASIS_BLOCKS * block, carried + 2 * block)
        # The block beside a full basis needs room to be orthogonal to it.
        sizes = Sizes(block, carried, min(columns, n - block))
        draft = operator.draft or operator
        # Passes with a draft gain nothing below its floor.
        floor = base.FULL_FLOOR if operator.draft is None else DRAFT_FLOOR
        alike = 2 * max(tol, floor)
        goal = max(tol, base.FULL_FLOOR)
        watch = Watch(n_components, self.max_passes, goal, report, block, alike)
        level = int(operator.draft is not None)
        ritz = search(draft, level, max(watch.tol, floor), sizes, rng, watch)
        enough = ritz.values.size >= n_components
        if watch.spent and enough and operator.draft is None:
            return ritz.pairs(watch)
        rough = n > WHOLE_ROWS and watch.tol >= DRAFT_FLOOR
        if operator.draft and enough and (rough or watch.spent):
            pairs = with_rounding(operator, ritz, rng, watch)
            if pairs.converged or watch.over:
                return pairs
        ritz = refine(operator, 0, ritz, watch.tol, sizes, rng, watch, DOUBT_FACTOR)
        if ritz.doubt and not operator.even:
            return with_rounding(operator, ritz, rng, watch)
        return ritz.pairs(watch)


@dataclass(eq=False, repr=False)
class Randomized(base.Solver):
    """Block Krylov iteration that stops after a fixed number of products.

    scikit-learn's name and parameter for randomized subspace iteration (Halko, Martinsson &
    Tropp 2011). From the same products a Krylov basis gives smaller residuals (Musco & Musco
    2015). The pairs are those of the largest eigenvalues, not of the largest moduli.

    Parameters
    ----------
    iterated_power : int or "auto"
        Products less two; "auto" is 7 for few components and 4 otherwise.
    oversampling : int
        Vectors carried beyond those asked for.
    max_passes : int or None
        Products in all; None for no other limit.
    """

    ends_by_passes = True
    _cap_name = "max_passes"

    iterated_power: int | str = "auto"
    oversampling: int = 10
    max_passes: int | None = None

    def vectors_held(self, n_components: int) -> int:
        """A basis of a block for each product, and what seven more blocks take beside it."""
        return (BASIS_BLOCKS + 8) * (n_components + self.oversampling)

    def solve(
        self, operator: Any, n_components: int, rng: Any, tol: float = 0.0, report: Any = silent
    ) -> base.Eigenpairs:
        """One search, without a draft: so few products would not pay for one."""
        power = self.iterated_power
        if isinstance(power, str):
            power = 7 if n_components < 0.1 * operator.shape[0] else 4
        passes = min(power + 2, self.max_passes or power + 2)
        n, block = operator.shape[0], n_components + self.oversampling
        if 4 * block >= n:
            return Dense().solve(operator, n_components, rng, tol, report)
        sizes = Sizes(block, block, min((BASIS_BLOCKS + 1) * block, n - block))
        # All passes are for the basis: its residuals need no product of their own.
        watch = Watch(n_components, passes + 1, max(tol, base.FULL_FLOOR), report)
        return krylov(operator, 0, operator.start(block, rng), sizes, watch.tol, watch).pairs(watch)


@dataclass(frozen=True)
class Sizes:
    """Vectors a product, Ritz vectors carried along, and columns of the basis at most."""

    block: int
    carried: int
    columns: int

    @property
    def start(self) -> int:
        """Ritz vectors that corrections start from: only those carried where memory is short."""
        return max(self.carried, self.columns // 4)


@dataclass(frozen=True)
class Ritz:
    """Ritz pairs, the wanted ones and a few more, and their residual vectors.

    Attributes
    ----------
    values : array of shape (k,)
    vectors : array of shape (n, k)
    R : array of shape (n, k)
        ``A U - U L``.
    further : tuple of arrays of shape (n, z)
        The next Ritz vectors Z and A Z: not results, but corrections converge faster with them.
    doubt : float
        Estimated error of a column of R, where a part of A U is the draft's.
    """

    values: np.ndarray
    vectors: np.ndarray
    R: np.ndarray
    further: tuple
    doubt: float = 0.0

    def pairs(self, watch) -> base.Eigenpairs:
        """The pairs that were asked for."""
        r = watch.wanted
        residuals = base.column_norms(self.R[:, :r]) + DOUBT_FACTOR * self.doubt
        converged = watch.converged(self.values, residuals)
        parts = self.values[:r], self.vectors[:, :r], residuals, converged
        return base.Eigenpairs(*parts, watch.n_passes, watch.least, evidence=watch.evidence)


class Watch:
    """Counts passes, reports each, and remembers a request to stop."""

    def __init__(self, wanted, max_passes, tol, report, block=None, alike=0.0):
        self.wanted, self.max_passes, self.tol, self.report = wanted, max_passes, tol, report
        self.block, self.alike = block or wanted, alike
        self._seen: dict[tuple[int, bool], base.Evidence] = {}
        self.n_passes = 0
        self.stopped = False
        self.least = 0.0
        # The largest Ritz value that is not exact yet, and the largest sum of such a value and its
        # residual; whether it may become a wanted one.
        self._reach, self.climbs = np.zeros(2), False

    def __call__(self, values, residuals, rounding: float = 0.0) -> float:
        """Count a pass; return the largest wanted residual over the largest eigenvalue.

        `rounding` is that of products by a draft that the values were made of.
        """
        self.n_passes += 1
        self.least = min(self.least, float(values[-1]) + rounding)
        residual = float(np.max(residuals[: self.wanted])) / top(values)
        state = base.PassState(self.n_passes, values[: self.wanted].copy(), residual, self.tol)
        self.stopped |= bool(self.report(state))
        return residual

    def look_beyond(self, values, residuals, goal) -> None:
        """Note whether a Ritz value that is not exact yet may become one of the wanted ones.

        A start may hold exact eigenvectors, as those of groups of rows without ties to others, and
        not the leading ones: what is searched beside these has then to come to rest as well.
        """
        last, near = self.wanted - 1, np.sqrt(goal) * top(values)
        rest, errors = values[self.wanted :], residuals[self.wanted :]
        rough = errors > goal * top(values)
        # Exact ones between others were in the start, and say nothing of what was not; those at the
        # lower end of a spectrum are found as those at the upper end are.
        turns = np.diff(rough.astype(int))
        between = np.flatnonzero(turns > 0)[-1:] > np.flatnonzero(turns < 0)[:1]
        caution = CLIMB if between.any() else 1.0
        places = np.array([rest[rough], rest[rough] + caution * errors[rough]])
        reach = places.max(axis=1, initial=float(values[-1]))
        rise, self._reach = max(0.0, *(reach - self._reach)), reach
        self.climbs = last < len(values) and reach[1] + CLIMB * rise > values[last] + near

    def see(self, A, level, values, RR, refined=False) -> None:
        """Record products with a basis; A is the operator or a draft of it."""
        self._seen[-level, refined] = base.Evidence(values, RR, A.square(), level=level)

    def converged(self, values, residuals) -> bool:
        """True if residuals are below the tolerance, and no copy of an eigenvalue can be missing.

        A Krylov space holds as many copies of an eigenvalue as its block has vectors, at most. With
        so many there may be more, which stand before all smaller ones. Eigenvalues that the search
        could not tell apart, of a distance of `alike`, count as copies.
        """
        if self.climbs or not np.max(residuals[: self.wanted]) <= self.tol * top(values):
            return False
        first, near = values[: self.wanted], self.alike * top(values)
        last = first[self.block - 1 :]
        full = (first[: last.size] - last <= near) & (last > first[-1] + near)
        if not full.any():
            return True
        mu = float(np.min(last[full])) - near
        # Eigenvalues of a draft in single precision may be smaller.
        sums = (seen.most_above(mu - near * seen.level) for seen in self.evidence if seen.level < 2)
        return bool(min(sums, default=np.inf) <= np.sum(first > mu))

    @property
    def evidence(self) -> tuple[base.Evidence, ...]:
        """The last record of each precision, of full bases before those of refined vectors."""
        return tuple(self._seen[key] for key in sorted(self._seen))

    @property
    def spent(self) -> bool:
        """True if no pass is left, not even for the residuals in full precision."""
        return self.n_passes >= self.max_passes

    @property
    def over(self) -> bool:
        """True if it is time to finish. One pass is left for the true residuals."""
        return self.stopped or self.n_passes >= self.max_passes - 1


def top(values) -> float:
    """The largest modulus of the eigenvalues, never zero."""
    return max(float(np.max(np.abs(values))), np.finfo(float).tiny)


def search(A, level, tol, sizes, rng, watch) -> Ritz:
    """Ritz pairs of A to a residual of about `tol`: on its draft first, where it has one."""
    goal = DRAFT_GOAL * tol
    if A.draft is None:
        return krylov(A, level, A.start(sizes.block, rng), sizes, goal, watch)
    ritz = search(A.draft, level + 1, max(tol, COARSE_FLOOR), sizes, rng, watch)
    return refine(A, level, ritz, goal, sizes, rng, watch)


def krylov(A, level, V, sizes, goal, watch) -> Ritz:
    """Ritz pairs of A, as many as are carried, whose wanted residuals are below `goal`.

    Where the spectrum is flat, residuals may be small before the leading pairs are found, so the
    values must also have stopped changing.
    """
    b, before, restarted = V.shape[1], np.zeros(0), False
    Q = base.tall(V, sizes.columns)
    T = np.zeros((sizes.columns, sizes.columns))
    Q[:, :b], _ = base.orthonormal(V)
    q = b
    while True:
        new = slice(q - b, q)
        V, C, B = base.orthonormal_against(A @ Q[:, new], Q[:, :q])
        T[:q, new], T[new, :q] = C, C.T
        values, Y = base.small_eigh(T[:q, :q])
        # Only products with the last block leave the basis.
        residuals = base.column_norms(B @ Y[new])
        residual = watch(values, residuals)
        watch.look_beyond(values, residuals, goal)
        leading = values[: watch.wanted]
        same = before.size == leading.size
        moved = float(np.max(np.abs(leading - before))) / top(leading) if same else np.inf
        before = leading
        rests = max(residual, moved) <= goal and not watch.climbs
        if (q >= sizes.carried and rests) or watch.over:
            outside = B @ Y[new]
            if level < 2:
                watch.see(A, level, values, self_product(outside))
            elif not restarted:
                watch.see(A, level, *unrounded(A, Q[:, :q], T[:q, :q], B))
            return ritz_pairs(
                Q[:, :q], values, Y, base.times(V, outside[:, : sizes.start]), sizes, watch
            )
        if q + b > sizes.columns:
            # Restart from the leading Ritz vectors, on which T is diagonal.
            p, restarted = min(sizes.carried, q), True
            Q[:, :p] = base.times(Q[:, :q], Y[:, :p])
            T[...] = 0.0
            T[np.arange(p), np.arange(p)] = values[:p]
            q = p
        Q[:, q : q + b] = V
        q += b


def unrounded(A, Q, T, B) -> tuple:
    """Ritz values of A in the span of Q, and R'R, where half precision multiplied rounded vectors.

    With these Q - D the products are A Q - A D, and A D is A Q Q'D but for what A makes of D
    outside the span, where A is small. T has above its diagonal what was multiplied.
    """
    q, b = Q.shape[1], B.shape[0]
    parts = (Q[:, s] for s in row_blocks(q, b))
    S = np.hstack([base.inner(Q, V - A.vectors(V, rounded=True)) for V in parts])
    M, place = T + T @ S, np.arange(q) // b
    values, Y = base.small_eigh(np.where(place[:, None] <= place, M, M.T))
    return values, self_product(B @ (Y + S @ Y)[q - b :])


def ritz_pairs(P, values, Y, left, sizes, watch, doubt=0.0) -> Ritz:
    """The pairs asked for with a few to spare, and further ones, from a basis P.

    `left` (n, q) is what A times the q leading Ritz vectors P Y has outside the basis.
    """
    k, q = min(sizes.carried, watch.wanted + FULL_SPARE), left.shape[1]
    Z = base.times(P, Y[:, k:q])
    further = Z, Z * on_device_of(values[k:q], Z) + left[:, k:]
    return Ritz(values[:k], base.times(P, Y[:, :k]), left[:, :k], further, doubt)


def with_rounding(operator, ritz, rng, watch) -> base.Eigenpairs:
    """The draft's pairs, corrected for its rounding, with residuals that allow for it.

    Rows of A U in full precision, less those of the draft, are rows of the vectors E U by which
    rounding changed the product: those where U is largest, and a sample of the others. Rounding
    is mostly bias, so the estimate of u'E u takes the larger part of it out of the eigenvalues
    (on covtype 4e-7 became 5e-8), and the norms of E u are added to the draft's residuals.
    """
    r, U, values = watch.wanted, ritz.vectors, ritz.values
    index, weights = rounding_rows(U[:, :r], rng)
    product = to_numpy(operator.rows_times(index, U))
    rows = to_numpy(U[index])
    change = product - rows * values - to_numpy(ritz.R[index])
    shift = weights @ (rows * change) / (weights @ rows**2)
    trust = np.where(weights > 1, ROUNDING_FACTOR**2, 1.0)
    residuals = base.column_norms(ritz.R) + np.sqrt((trust * weights) @ change**2)
    converged = watch.converged(values, residuals)
    # U'AU is not diagonal: its eigenvalues, not its diagonal, are in the order of A's.
    change -= rows * shift
    turned, Y = base.small_eigh(np.diag(values + shift) + rows.T @ (weights[:, None] * change))
    # The variance of the sampled sum is at most this matrix: (P + P')^2 / 4 <= (PP' + P'P) / 2.
    unseen = (weights * (weights - 1))[:, None]
    variance = rows.T @ (rows * (unseen * (change**2).sum(axis=1, keepdims=True)))
    variance += change.T @ (change * (unseen * (rows**2).sum(axis=1, keepdims=True)))
    doubt = SHIFT_FACTOR * float(np.linalg.norm(variance / 2, 2)) ** 0.5
    # R'R is at most k times the diagonal of it.
    RR = (Y.T * (len(values) * residuals**2)) @ Y
    seen = base.Evidence(turned, RR, doubt=doubt)
    pairs = replace(ritz, values=values + shift).pairs(watch)
    evidence = (*watch.evidence, seen)
    return replace(pairs, residuals=residuals[:r], converged=converged, evidence=evidence)


def rounding_rows(U, rng):
    """Rows on which rounding is measured, (k,), and how many rows each represents."""
    n, size = U.shape[0], to_numpy(array_namespace(U).max(abs(U), axis=1))
    if n <= LARGEST_ROWS + ROUNDING_ROWS:
        return np.arange(n), np.ones(n)
    order = np.argpartition(-size, LARGEST_ROWS)
    rest = rng.choice(order[LARGEST_ROWS:], ROUNDING_ROWS, replace=False)
    index = np.concatenate([order[:LARGEST_ROWS], rest])
    weights = np.ones(index.size)
    weights[LARGEST_ROWS:] = (n - LARGEST_ROWS) / ROUNDING_ROWS
    places = np.argsort(index)
    return index[places], weights[places]


def refine(A, level, ritz, goal, sizes, rng, watch, caution=1.0) -> Ritz:
    """Ritz pairs of A from those of its draft: one product with A, and corrections by the draft.

    Repeated where a correction is too large for `caution` times the draft's rounding of it not to
    matter, and without the draft where it does not help.
    """
    further, r, draft = ritz.further, watch.wanted, A.draft or A
    rounding = previous = np.inf
    # The search may have stopped before it had r vectors.
    U = padded(ritz.vectors, r, rng)
    for _ in range(MAX_CORRECTIONS):
        if rounding == np.inf:
            # U has fewer digits than its rounded form keeps.
            U = A.vectors(U, rounded=True)
            AU, k = A @ U, ritz.R.shape[1]
            # How far the draft is from A on its own Ritz vectors.
            expected = ritz.vectors[:, :k] * on_device_of(ritz.values[:k], AU) + ritz.R
            rounding = float(np.max(base.column_norms(AU[:, :k] - expected))) / top(ritz.values)
        else:
            AU = A @ U
        values, U, AU = base.rayleigh_ritz(U, AU)
        R = AU - U * on_device_of(values, U)
        watch.see(A, level, values, base.inner(R, R), refined=True)
        residual = watch(values, base.column_norms(R[:, :r]))
        stuck = residual > previous / 2
        if residual <= goal or watch.over or (stuck and draft is A):
            break
        if stuck:
            draft, rounding, further = A, 0.0, (U[:, :0], U[:, :0])
        previous = residual
        better = corrected(draft, U, values, R, further, rounding, goal, sizes, watch)
        # Largest wanted residual plus `caution` times its uncertainty.
        largest = float(np.max(base.column_norms(better.R[:, :r]))) + caution * better.doubt
        if largest <= goal * top(better.values) or watch.over:
            return better
        U, further = better.vectors, better.further
    return Ritz(values, U, R, further)


def corrected(draft, U, values, R, further, rounding, goal, sizes, watch) -> Ritz:
    """Ritz pairs in the span of U, `further` vectors and the residuals of all Ritz pairs since.

    The product A U = U L + R is the accurate one; all others are the draft's, but for U'A V of
    vectors V orthogonal to U, which is (A U)'V = R'V. Stops when the wanted residuals are below
    `goal`, or below what the draft's `rounding` does to them.
    """
    (n, k), r = U.shape, watch.wanted
    P, T, outside = joined(U, values, R, further)
    q, b = P.shape[1], min(sizes.block, k)
    # The last block, too, needs room orthogonal to all others, and products are stored beside the
    # basis.
    depth = max(1, min((sizes.columns - q) // b, (n - q) // b) - 1)
    # Memory for the columns to come.
    columns, first = q + depth * b, (P, outside, T)
    P, outside, T = base.tall(P, columns), base.tall(P, columns), np.zeros((columns, columns))
    P[:, :q], outside[:, :q], T[:q, :q] = first
    left = outside[:, :b]
    for _ in range(depth):
        old, new, q = slice(0, q), slice(q, q + b), q + b
        V, _, _ = base.orthonormal_against(left, P[:, old])
        P[:, new], outside[:, new] = V, draft @ V
        T[old, new] = base.inner(outside[:, old], V)
        T[new, old], T[new, new] = T[old, new].T, base.inner(V, outside[:, new])
        # P'A P is T, so that what A P has outside the span of P follows.
        outside[:, old] -= base.times(V, T[new, old])
        outside[:, new] -= base.times(P[:, :q], base.inner(P[:, :q], outside[:, new]))
        values, Y = base.small_eigh(T[:q, :q])
        left = base.times(outside[:, :q], Y[:, :b])
        residuals = base.column_norms(left[:, :r])
        of_draft = rounding * top(values)
        doubt = of_draft * float(np.max(base.column_norms(Y[k:, :r])))
        residual = watch(values, residuals + doubt, of_draft)
        if residual <= goal or watch.over or np.max(residuals) < doubt:
            break
    left = base.times(outside[:, :q], Y[:, : sizes.start])
    return ritz_pairs(P[:, :q], values, Y, left, sizes, watch, doubt)


def joined(U, values, R, further):
    """U and `further` vectors Z as one orthonormal basis P, with P'A P and A P - P (P'A P)."""
    xp, k = array_namespace(U), U.shape[1]
    Z, AZ = further
    if not Z.shape[1]:
        return U, np.diag(values), xp.asarray(R, copy=True)
    C = base.inner(U, Z)
    Z, AZ = Z - base.times(U, C), AZ - base.times(U * on_device_of(values, U) + R, C)
    Z, triangle = base.orthonormal(Z)
    AZ = base.times(AZ, np.linalg.inv(triangle))
    P = xp.concat([U, Z], axis=1)
    T = np.diag(np.r_[values, np.zeros(Z.shape[1])])
    T[:k, k:], T[k:, k:] = base.inner(R, Z), base.inner(Z, AZ)
    T[k:, :k] = T[:k, k:].T
    T[k:, k:] = (T[k:, k:] + T[k:, k:].T) / 2
    AP = xp.concat([U * on_device_of(values, U) + R, AZ], axis=1)
    # The part of A Z along U is taken from A U.
    outside = AP - base.times(P, base.inner(P, AP))
    return P, T, outside
