"""The joint lasso as the convex problem it is, solved row by row.

With S = L the slides' problem, for atoms a_i (columns of K, scaled or not) and p eigenpairs, is

    min_W  1/2 sum_j |K u_j - sum_i a_i W_ij|^2 / l_j + mu sum_i |W_i:|.

Given the others, row i solves a problem of p unknowns with a diagonal quadratic form: it is zero
where its correlation g has |g| <= mu, and else W_i = t g / (d t + mu), t = |W_i|, by one equation
in t. Sweeps over the atoms that are not zero, then a look at all others, until none wants to enter.
"""

from typing import NamedTuple

import numpy as np

# mu falls by this factor from the largest that has an atom, each solution starting the next.
FALL, BISECTIONS = 0.8, 30
# Sweeps over the active atoms at one mu, and rounds of new ones, at most.
SWEEPS, ROUNDS = 1000, 60
# How much less a row must move in a sweep than it may be from optimal.
STRICTER = 10


class JointLasso(NamedTuple):
    """Rows W (m, p) of the solution, its mu, and how far from optimal it is, relative to mu."""

    W: np.ndarray
    mu: float
    violation: float

    @property
    def active(self) -> np.ndarray:
        """Atoms in use, the one of the longest row first."""
        lengths = np.linalg.norm(self.W, axis=1)
        order = np.argsort(-lengths, kind="stable")
        return order[: int(np.count_nonzero(lengths))]


class JointProblem:
    """The quadratic part: correlations C (m, p) = a_i'K u_j / l_j and products a_i'a_k.

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
        some = norms > 0
        self.scale = (
            np.where(some, 1 / np.where(some, norms, 1), 0.0) if unit else np.ones(len(atoms))
        )
        self.C = U[atoms] * values * self.scale[:, None]
        self.lengths = (norms * self.scale) ** 2

    def products(self, chosen):
        """a_i'a_k of chosen atoms with all, (len(chosen), m)."""
        rows = self.K[self.atoms[chosen]] @ self.K[:, self.atoms]
        return self.scale[chosen][:, None] * rows * self.scale

    def largest(self) -> float:
        """The least mu at which every row is zero."""
        return float(np.linalg.norm(self.C, axis=1).max(initial=0.0))


def joint_lasso(problem: JointProblem, mu: float, start=None, tol: float = 1e-4) -> JointLasso:
    """The solution at one mu, optimal to `tol` mu in every row's condition."""
    from ._numba import lasso_sweeps  # numba takes half a second to import

    W = np.zeros_like(problem.C) if start is None else start.copy()
    inverse = 1 / problem.values
    working = np.flatnonzero(W.any(axis=1))
    # Rows that hardly move may still be far from optimal together.
    small = tol / STRICTER
    violation = np.inf
    for _ in range(ROUNDS):
        H = problem.products(working)
        part = W[working]
        # Correlations of the working atoms with what is left.
        left = problem.C[working] - (H[:, working] @ part) * inverse
        minor = np.ascontiguousarray(H[:, working])
        lasso_sweeps(minor, part, left, problem.lengths[working], inverse, mu, small * mu, SWEEPS)
        W[working] = part
        residual = problem.C - (H.T @ part) * inverse
        violation = float(_violations(W, residual, mu).max(initial=0.0)) / mu
        lengths = np.linalg.norm(residual, axis=1)
        outside = np.setdiff1d(np.flatnonzero(lengths > mu * (1 + tol)), working)
        if not len(outside):
            break
        # The most correlated ones: the others may no longer want in after them.
        most = max(10, len(working) // 4)
        entering = outside[np.argsort(-lengths[outside], kind="stable")[:most]]
        working = np.concatenate([working[W[working].any(axis=1)], entering])
    return JointLasso(W, mu, violation)


def _violations(W, residual, mu):
    """How far every row is from its condition: |g - mu W/|W||, or |g| - mu where W is zero."""
    lengths = np.linalg.norm(W, axis=1)
    some = lengths > 0
    out = np.maximum(np.linalg.norm(residual, axis=1) - mu, 0)
    direction = W[some] / lengths[some][:, None]
    out[some] = np.linalg.norm(residual[some] - mu * direction, axis=1)
    return out


def joint_lasso_of_size(problem: JointProblem, size: int, tol: float = 1e-2) -> JointLasso:
    """The first solution on the path of falling mu that uses `size` atoms, or the nearest above."""
    mu = problem.largest()
    sparse = JointLasso(np.zeros_like(problem.C), mu, 0.0)
    if mu <= 0:
        return sparse
    size = min(size, len(problem.C))
    floor = np.finfo(float).eps * mu
    while mu > floor:
        mu *= FALL
        dense = joint_lasso(problem, mu, sparse.W, tol)
        if len(dense.active) >= size:
            return _bisect(problem, size, sparse, dense, tol)
        sparse = dense
    return sparse


def _bisect(problem, size, sparse, dense, tol):
    """Between a solution of too few atoms and one of enough, the first with `size`."""
    for _ in range(BISECTIONS):
        if len(dense.active) == size:
            break
        trial = joint_lasso(problem, np.sqrt(sparse.mu * dense.mu), sparse.W, tol)
        if len(trial.active) < size:
            sparse = trial
        else:
            dense = trial
    return dense
