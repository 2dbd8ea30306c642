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
"""

from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any, NamedTuple

import numpy as np

from ..compute.arrays import Array
from ..kernels import Kernel
from .base import Selector, as_indices, distinct_rows, host_gram, solution_of_size, top_eigenpairs
from .lars import FeatureAtoms, ScoreAtoms, group_lars, lasso_path

# Corners of a lasso path followed for each atom asked for; drops make more corners than atoms.
STEPS_PER_ATOM = 8


@dataclass(eq=False, repr=False)
class GroupLasso(Selector):
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
            K = host_gram(kernel, X).astype(np.float64, copy=False)
            values, U = top_eigenpairs(K, self.n_targets or size, rng)
            first = distinct_rows(X)[0]
            problem = JointProblem(K, first, values, U, self.unit)
            # The least mu at which every row is zero; each solution starts the next.
            mu = float(np.linalg.norm(problem.C, axis=1).max(initial=0.0))
            solution = solution_of_size(
                lambda mu, start: joint_lasso(problem, mu, start.W, tol=1e-2),
                min(size, len(first)),
                JointLasso(np.zeros_like(problem.C), mu),
                factor=0.8,
                least=0.8 * np.finfo(float).eps * mu,
                steps=30,
            )
            return as_indices(first[solution.active[:size]])
        path = self.path(kernel, X, size, rng)
        return as_indices([step.atom for _, step in zip(range(size), path, strict=False)])

    def path(self, kernel: Kernel, X: Array, size: int, rng: np.random.Generator) -> Any:
        """The steps of group LARS, each with the inner products that decided it."""
        K = host_gram(kernel, X)
        values, U = top_eigenpairs(K, self.n_targets or size, rng)
        make = ScoreAtoms if self.norm == "score" else FeatureAtoms
        atoms = make(K, size, self.unit)
        gradient = U * (values if self.norm == "score" else np.sqrt(values))
        return group_lars(gradient, atoms, distinct_rows(X)[2])


@dataclass(eq=False, repr=False)
class ComponentLasso(Selector):
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
        K, (_, _, group) = host_gram(kernel, X).astype(np.float64, copy=False), distinct_rows(X)
        _, U = top_eigenpairs(K, self.n_components, rng)
        paths = [lasso_path(K, u, group, STEPS_PER_ATOM * size) for u in U.T]
        # Atoms in the order in which paths, advanced by one corner each in turn, bring them in.
        order: dict[int, int] = {}
        for corners in zip_longest(*paths):
            for atom in chain.from_iterable(corner[0] for corner in corners if corner):
                order.setdefault(group[atom], atom)
            if len(order) >= size:
                break
        return as_indices(list(order.values())[:size])


class JointLasso(NamedTuple):
    """Rows W (m, p) of the solution, and its mu."""

    W: np.ndarray
    mu: float

    @property
    def active(self) -> np.ndarray:
        """Atoms in use, the one of the longest row first."""
        lengths = np.linalg.norm(self.W, axis=1)
        order = np.argsort(-lengths, kind="stable")
        return order[: int(np.count_nonzero(lengths))]


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
