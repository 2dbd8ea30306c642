"""Landmarks as the atoms of a sparse regression on kernel PCA.

``min_{W, S} |K (U L^-1/2 - W S^-1/2)|^2 + lambda sum_i |W_i:|``, with U, L the leading eigenpairs.
With S free the minimum is never attained (shrink W and S together), so S = L. Group LARS uses only
the order in which rows of W leave zero. As the convex problem it is, for atoms a_i (columns of K,
scaled or not) and p eigenpairs,

    min_W  1/2 sum_j |K u_j - sum_i a_i W_ij|^2 / l_j + mu sum_i |W_i:|,

row i solves, given the others, a problem of p unknowns with a diagonal quadratic form: it is zero
where its product g with what is left has |g| <= mu, and else W_i = t g / (d t + mu), t = |W_i|, by
one equation in t. Sweeps over the rows that are not zero alternate with a check of all
others, until none has to enter.

Least angle regression, for one response (lasso) and for many (group), follows a path by two
arrays: c, the inner products of the atoms with the current residual,
and e, those with the residual of the least squares fit on the active atoms. Moving the share g
of the way to that fit turns c into (1 - g) c + g e, and e vanishes on active atoms, so their |c|
stays equal to one common level while the next atom comes up to it.

Kernel designs are far too ill-conditioned for the normal equations that packages use (theirs
leave the path after a dozen steps): everything here is orthogonalized, twice.
"""

from itertools import chain, zip_longest
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import get_blas_funcs, qr_delete, qr_insert, solve_triangular

from ..compute.arrays import Array
from ..kernels import Kernel
from . import base
from .cholesky import PartialCholesky

# Corners of a lasso path followed for each atom asked for; drops make more corners than atoms.
STEPS_PER_ATOM = 8


class GroupLasso(base.Selector):
    """One dictionary for all components, by group LARS: exactly `size` steps, an atom each.

    Better than sampling, and than a lasso for each component; not better than `FullGreedy` or
    `SubspaceGreedy`.

    Parameters
    ----------
    n_targets : int or None
        Components regressed on; None is as many as atoms, the best in the projection error.
        The order is nested only for a given number.
    norm : {"score", "rkhs"}
        Measure the misfit of scores, as in the formula above, or of the directions in feature
        space, which gives as good atoms in O(m size^2).
    solver : {"lars", "convex"}
        "lars" takes the atoms in the order in which group LARS brings them in. "convex" solves the
        problem above, with S = L, at the penalty that leaves `size` rows of W; it is what the
        slides state, takes longer, and always measures the misfit of scores.
    unit : bool
        Scale columns to length one. Without it the dense regions come first (2.1 against 1.8
        of the best error).

    References
    ----------
    Perry, Elhabian & Whitaker, Efficient non-linear analysis of large data sets (slides).
    """

    pair_bytes, atom_bytes = 18, 14

    n_targets: int | None = None
    norm: str = "score"
    unit: bool = True
    solver: str = "lars"

    @property
    def independent(self) -> bool:  # type: ignore[override]
        """The path skips atoms that add nothing; the convex problem may share between them."""
        return self.solver == "lars"

    @property
    def nested(self) -> bool:  # type: ignore[override]
        """Targets that depend on the size change the order, and so does the penalty."""
        return self.n_targets is not None and self.solver == "lars"

    def select(self, kernel: Kernel, X: Array, size: int, rng: np.random.Generator) -> Array:
        """Choose `size` of the m rows; eigenpairs of K, then O(m^2 size)."""
        if self.solver == "convex":
            K = base.host_gram(kernel, X).astype(np.float64, copy=False)
            values, U = base.top_eigenpairs(K, self.n_targets or size, rng)
            first = base.distinct_rows(X)[0]
            problem = JointProblem(K, first, values, U, self.unit)
            # The least mu at which every row is zero; each solution starts the next.
            mu = float(np.linalg.norm(problem.C, axis=1).max(initial=0.0))

            def solve(mu, start):
                return joint_lasso(problem, mu, start.W, tol=1e-2)

            nothing = JointLasso(np.zeros_like(problem.C), mu)
            count, least = min(size, len(first)), 0.8 * np.finfo(float).eps * mu
            solution = base.solution_of_size(solve, count, nothing, 0.8, least, steps=30)
            return base.as_indices(first[solution.active[:size]])
        path = self.path(kernel, X, size, rng)
        return base.as_indices([step.atom for _, step in zip(range(size), path, strict=False)])

    def path(self, kernel: Kernel, X: Array, size: int, rng: np.random.Generator) -> Any:
        """The steps of group LARS, each with the inner products that decided it."""
        K = base.host_gram(kernel, X)
        values, U = base.top_eigenpairs(K, self.n_targets or size, rng)
        make = ScoreAtoms if self.norm == "score" else FeatureAtoms
        atoms = make(K, size, self.unit)
        gradient = U * (values if self.norm == "score" else np.sqrt(values))
        return group_lars(gradient, atoms, base.distinct_rows(X)[2])


class ComponentLasso(base.Selector):
    """The atoms of a lasso for each component alone, taken from the paths in turn.

    Components do not agree on their atoms, so the union grows faster than it serves: behind
    `GroupLasso` everywhere. Columns are taken as they are; scaled to length one they do worse
    here, unlike there. For sparse components themselves see `sparse_components`.

    Parameters
    ----------
    n_components : int

    References
    ----------
    Zou, Hastie & Tibshirani (2006), Sparse principal component analysis.
    """

    pair_bytes, atom_bytes = 18, 14

    n_components: int = 10

    def select(self, kernel: Kernel, X: Array, size: int, rng: np.random.Generator) -> Array:
        """Choose `size` of the m rows; eigenpairs of K, then O(m^2 size)."""
        K, group = base.host_gram(kernel, X).astype(float, copy=False), base.distinct_rows(X)[2]
        _, U = base.top_eigenpairs(K, self.n_components, rng)
        paths = [lasso_path(K, u, group, STEPS_PER_ATOM * size) for u in U.T]
        # Atoms in the order in which paths, advanced by one corner each in turn, bring them in.
        order: dict[int, int] = {}
        for corners in zip_longest(*paths):
            for atom in chain.from_iterable(corner[0] for corner in corners if corner):
                order.setdefault(group[atom], atom)
            if len(order) >= size:
                break
        return base.as_indices(list(order.values())[:size])


class JointLasso(NamedTuple):
    """Rows W (m, p) of the solution, and its mu."""

    W: np.ndarray
    mu: float

    @property
    def active(self) -> np.ndarray:
        """Atoms in use, the one of the longest row first."""
        return base.largest_first(np.linalg.norm(self.W, axis=1))


class JointProblem:
    """The quadratic part: C (m, p) = a_i'K u_j / l_j and products a_i'a_k.

    Parameters
    ----------
    K : array (n, n)
    atoms : array of int (m,)
        Columns that may be used.
    values, U : arrays (p,), (n, p)
        Leading eigenpairs of K.
    unit : bool
        Scale the columns to length one.
    """

    def __init__(self, K, atoms, values, U, unit=True):
        self.K, self.atoms, self.values = K, atoms, values
        norms = np.sqrt(np.einsum("ij,ij->i", K, K))[atoms]
        self.scale = 1 / np.where(norms > 0, norms, 1) if unit else np.ones(len(atoms))
        self.C = U[atoms] * values * self.scale[:, None]
        self.lengths = (norms * self.scale) ** 2

    def products(self, chosen):
        """a_i'a_k of chosen atoms with all, (len(chosen), m)."""
        rows = self.K[self.atoms[chosen]] @ self.K[:, self.atoms]
        return self.scale[chosen][:, None] * rows * self.scale


def joint_lasso(problem: JointProblem, mu: float, start=None, tol: float = 1e-4) -> JointLasso:
    """The solution at one mu, optimal to `tol` mu in every row's condition."""
    from ..compute._numba import lasso_sweeps  # numba takes half a second to import

    W = np.zeros_like(problem.C) if start is None else start.copy()
    inverse = 1 / problem.values
    working = np.flatnonzero(W.any(axis=1))
    # Rows that hardly move may still be far from optimal together.
    small = tol / 10
    for _ in range(60):
        H = problem.products(working)
        part = W[working]
        # Products of the working atoms with what is left.
        left = problem.C[working] - (H[:, working] @ part) * inverse
        minor = np.ascontiguousarray(H[:, working])
        lasso_sweeps(minor, part, left, problem.lengths[working], inverse, mu, small * mu, 1000)
        W[working] = part
        residual = problem.C - (H.T @ part) * inverse
        lengths = np.linalg.norm(residual, axis=1)
        outside = np.setdiff1d(np.flatnonzero(lengths > mu * (1 + tol)), working)
        if not len(outside):
            break
        # The largest ones: after them the others may not have to enter.
        most = max(10, len(working) // 4)
        entering = outside[np.argsort(-lengths[outside], kind="stable")[:most]]
        working = np.concatenate([working[W[working].any(axis=1)], entering])
    return JointLasso(W, mu)


class FeatureAtoms:
    """Atoms phi(x_i) with the inner product of the feature space, K.

    `norms` are those of the atoms, or ones where the columns are to be taken as they are.
    """

    def __init__(self, K, capacity, unit=True):
        norms = np.sqrt(np.maximum(K.diagonal(), 0))
        self.norms = norms if unit else np.sign(norms)
        self._factor = PartialCholesky.of_matrix(K, capacity)

    def orthogonalize(self, a):
        """Inner products of all atoms with the new part of atom a, (m,); None if none is new."""
        if self._factor.residual[a] <= 0 or self._factor.rank == len(self._factor.L):
            return None
        return self._factor.append(a)


class ScoreAtoms:
    """Atoms K_:i with the inner product of scores, K^2."""

    def __init__(self, K, capacity, unit=True):
        self.K = K.astype(np.float64, copy=False)
        norms = np.sqrt(np.einsum("ij,ij->i", self.K, self.K))
        self.norms = norms if unit else np.sign(norms)
        self.Q = np.empty((min(capacity, len(K)), len(K)))
        self.rank = 0
        self._tolerance = base.rank_tolerance(K.dtype)
        self._symv = get_blas_funcs("symv", (self.K,))

    def orthogonalize(self, a):
        """See `FeatureAtoms`; costs one more product with K."""
        Q, atom = self.Q[: self.rank], self.K[a]
        q = atom - (Q @ atom) @ Q
        # Once is not enough: what is left may be all rounding from the first time.
        q -= (Q @ q) @ Q
        left = np.linalg.norm(q)
        if self.rank == len(self.Q) or not left > self._tolerance * np.linalg.norm(atom):
            return None
        self.Q[self.rank] = q / left
        self.rank += 1
        return self._symv(1.0, self.K.T, q / left)


class GroupStep(NamedTuple):
    """An atom as it enters: the common |c| of the active atoms, and those of all."""

    atom: int
    level: float
    products: np.ndarray


def group_lars(C, atoms, group):
    """Group LARS path of several responses at once, an atom a step, none ever dropped.

    Parameters
    ----------
    C : ndarray (m, p)
        Inner products of the atoms with the responses.
    atoms : FeatureAtoms or ScoreAtoms
    group : ndarray (m,)
        Equal for equal rows, of which one may enter.

    Yields
    ------
    GroupStep
        With the norms |c_i|, (m,), when the atom enters.

    References
    ----------
    Simila & Tikka (2005), Multiresponse sparse regression; Yuan & Lin (2006), Model selection and
    estimation in regression with grouped variables.
    """
    free, scale = atoms.norms > 0, np.where(atoms.norms > 0, atoms.norms, 1)
    c = np.ascontiguousarray(C / scale[:, None])
    e = c.copy()
    ger = get_blas_funcs("ger", (e,))
    norms = np.where(free, np.linalg.norm(c, axis=1), 0)
    atom, order = int(np.argmax(norms)), []
    level = norms[atom]
    while atom is not None and level > 0:
        free[atom] = False
        f = atoms.orthogonalize(atom)
        if f is not None:
            yield GroupStep(atom, level, np.linalg.norm(c, axis=1))
            order.append(atom)
            free &= group != group[atom]
            f = f / scale
            ger(-1.0, e[atom] / f[atom], f, a=e.T, overwrite_a=1)
            e[order] = 0
        share, atom = next_entry(c, e, level, free)
        c *= 1 - share
        c += share * e
        level *= 1 - share


def next_entry(c, e, level, free):
    """How far to move toward the least squares fit, and the atom that then enters (or None).

    With g = t / (1 + t), atom i reaches the common level where |c_i + t e_i| = level.
    """
    ee, ce = np.einsum("ij,ij->i", e, e), np.einsum("ij,ij->i", c, e)
    gap = np.maximum(level**2 - np.einsum("ij,ij->i", c, c), 0)
    root = np.sqrt(ce**2 + ee * gap)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Two forms of the same root, each free of cancellation on its side.
        t = np.where(ce > 0, gap / (ce + root), (root - ce) / ee)
    t = np.where(free & np.isfinite(t), t, np.inf)
    atom = int(np.argmin(t))
    if t[atom] == np.inf:
        return 1.0, None
    return t[atom] / (1 + t[atom]), atom


def lasso_path(A, y, group, max_steps):
    """Corners of the lasso path of one response y (n,) on the columns of A (n, m).

    LARS with the lasso's rule: an atom whose coefficient comes to zero leaves, and may return.
    Of columns with equal `group` one is active at a time. A corner is its atoms, all with nonzero
    coefficients, and those.
    """
    free = np.any(A, axis=0)
    active, coef = ActiveAtoms(A), np.zeros(0)
    c = y @ A
    atom: int | None = int(np.argmax(np.where(free, np.abs(c), -1)))
    level = abs(c[atom]) if free.any() else 0.0
    for _ in range(max_steps if level > 0 else 0):
        if atom is not None:
            free[atom] = False
            if active.add(atom):
                free &= group != group[atom]
                coef = np.append(coef, 0.0)
        target, left = active.fit(y)
        e = left @ A
        e[active.index] = 0
        share, atom = next_entry(c[:, None], e[:, None], level, free)
        # Shares of the way to the fit at which coefficients come to zero.
        never = np.full(len(coef), np.inf)
        crossing = np.divide(coef, coef - target, out=never, where=coef * target < 0)
        if crossing.min(initial=np.inf) < share:
            share, atom = crossing.min(), None
        coef = coef + share * (target - coef)
        c, level = (1 - share) * c + share * e, (1 - share) * level
        if crossing.min(initial=np.inf) == share:
            j = int(np.argmin(crossing))
            free |= group == group[active.index[j]]
            active.drop(j)
            coef = np.delete(coef, j)
        yield np.array(active.index), coef
        if share >= 1:
            return


class ActiveAtoms:
    """The active columns of a design with their QR factorization, columns in and out."""

    def __init__(self, A):
        self.A, self.index = A, []
        self._Q, self._R = np.empty((len(A), 0)), np.empty((0, 0))

    def add(self, a):
        """Take in column a, unless it depends on the others."""
        k, tolerance = len(self.index), base.rank_tolerance(self.A.dtype)
        if k == len(self.A):
            return False
        try:
            if k:
                self._Q, self._R = qr_insert(self._Q, self._R, self.A[:, a], k, "col", tolerance)
            else:
                self._Q, self._R = np.linalg.qr(self.A[:, [a]])
        except np.linalg.LinAlgError:
            return False
        self.index.append(a)
        return True

    def drop(self, j):
        """Let go of the j-th active column."""
        Q, R = qr_delete(self._Q, self._R, j, which="col")
        del self.index[j]
        # Of a square Q SciPy keeps all columns.
        self._Q, self._R = Q[:, : len(self.index)], R[: len(self.index)]

    def fit(self, y):
        """Least squares coefficients, (k,), and the residual, (n,)."""
        projections = y @ self._Q
        left = y - self._Q @ projections
        left -= self._Q @ (left @ self._Q)
        return solve_triangular(self._R, projections, check_finite=False), left
