"""Least angle regression on kernel designs, for one response (lasso) and for many (group).

A path is followed by two arrays: c, the inner products of the atoms with the current residual,
and e, those with the residual of the least squares fit on the active atoms. Moving the share g
of the way to that fit turns c into (1 - g) c + g e, and e vanishes on active atoms, so their |c|
stays equal to one common level while the next atom comes up to it.

Kernel designs are far too ill-conditioned for the normal equations that packages use (theirs
leave the path after a dozen steps): everything here is orthogonalized, twice.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import get_blas_funcs, qr_delete, solve_triangular

from .base import rank_tolerance
from .cholesky import PartialCholesky


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
        self._tolerance = rank_tolerance(K.dtype)
        self._symv = get_blas_funcs("symv", (self.K,))

    def orthogonalize(self, a):
        """See `FeatureAtoms`; costs one more product with K."""
        Q = self.Q[: self.rank]
        q = new_direction(Q, self.K[a], self._tolerance)
        if q is None or self.rank == len(self.Q):
            return None
        self.Q[self.rank] = q
        self.rank += 1
        return self._symv(1.0, self.K.T, q)


def new_direction(Q, atom, tolerance):
    """The unit part of an atom (n,) outside the orthonormal rows of Q, or None."""
    q = atom - (Q @ atom) @ Q
    # Once is not enough: what is left may be all rounding from the first time.
    q -= (Q @ q) @ Q
    left = np.linalg.norm(q)
    return q / left if left > tolerance * np.linalg.norm(atom) else None


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
        self.A = A
        self.index = []
        self._tolerance = rank_tolerance(A.dtype)
        self._Q = np.empty((0, len(A)))
        self._R = np.empty((0, 0))

    def add(self, a):
        """Take in column a, unless it depends on the others."""
        column = self.A[:, a]
        q = new_direction(self._Q, column, self._tolerance)
        if q is None:
            return False
        k = len(self._Q)
        Q, R = np.vstack([self._Q, q]), np.zeros((k + 1, k + 1))
        R[:k, :k], R[:, k] = self._R, Q @ column
        self._Q, self._R = Q, R
        self.index.append(a)
        return True

    def drop(self, j):
        """Let go of the j-th active column."""
        Q, R = qr_delete(self._Q.T, self._R, j, which="col")
        self._Q, self._R = np.ascontiguousarray(Q.T), R
        del self.index[j]

    def fit(self, y):
        """Least squares coefficients, (k,), and the residual, (n,)."""
        projections = self._Q @ y
        left = y - projections @ self._Q
        left -= (self._Q @ left) @ self._Q
        return solve_triangular(self._R, projections, check_finite=False), left
