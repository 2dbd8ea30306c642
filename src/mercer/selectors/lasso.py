"""Landmarks as the atoms of a sparse regression on kernel PCA.

``min_{W, S} |K (U L^-1/2 - W S^-1/2)|^2 + lambda sum_i |W_i:|``, with U, L the leading eigenpairs.
With S free the minimum is never attained (shrink W and S together), so S = L; only the order in
which rows of W leave zero is used.
"""

from typing import Any

import numpy as np

from ..compute.arrays import Array
from ..kernels import Kernel
from .base import Selector, as_indices, distinct_rows, host_gram, top_eigenpairs
from .convex import JointProblem, joint_lasso_of_size
from .lars import FeatureAtoms, ScoreAtoms, group_lars, lasso_path

# Corners of a lasso path followed for each atom asked for; drops make more corners than atoms.
STEPS_PER_ATOM = 8


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

    def __init__(
        self,
        n_targets: int | None = None,
        norm: str = "score",
        unit: bool = True,
        solver: str = "lars",
    ):
        self.n_targets = n_targets
        self.norm = norm
        self.unit = unit
        self.solver = solver

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
        order: list[int] = []
        if self.solver == "convex":
            return self._optimal(kernel, X, size, rng)
        for step in self.path(kernel, X, size, rng):
            order.append(step.atom)
            if len(order) == size:
                break
        return as_indices(order)

    def _optimal(self, kernel, X, size, rng):
        """The atoms of the convex problem with `size` of them, longest rows of W first."""
        K = host_gram(kernel, X).astype(np.float64, copy=False)
        values, U = top_eigenpairs(K, self.n_targets or size, rng)
        first = distinct_rows(X)[0]
        found = joint_lasso_of_size(JointProblem(K, first, values, U, self.unit), size)
        return as_indices(first[found.active[:size]])

    def path(self, kernel: Kernel, X: Array, size: int, rng: np.random.Generator) -> Any:
        """The steps of group LARS, each with the correlations that decided it."""
        K = host_gram(kernel, X)
        values, U = top_eigenpairs(K, self.n_targets or size, rng)
        make = ScoreAtoms if self.norm == "score" else FeatureAtoms
        atoms = make(K, size, self.unit)
        gradient = U * (values if self.norm == "score" else np.sqrt(values))
        scale = np.where(atoms.norms > 0, atoms.norms, 1)
        return group_lars(
            np.ascontiguousarray(gradient / scale[:, None]), atoms, distinct_rows(X)[2]
        )


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

    def __init__(self, n_components: int = 10):
        self.n_components = n_components

    def select(self, kernel: Kernel, X: Array, size: int, rng: np.random.Generator) -> Array:
        """Choose `size` of the m rows; eigenpairs of K, then O(m^2 size)."""
        K, (_, _, group) = host_gram(kernel, X).astype(np.float64, copy=False), distinct_rows(X)
        _, U = top_eigenpairs(K, self.n_components, rng)
        paths = [lasso_path(K, u, group, STEPS_PER_ATOM * size) for u in U.T]
        return as_indices(_in_turn(paths, group, size))


def _in_turn(paths, group, size):
    """Atoms in the order in which paths, advanced by one corner each in turn, bring them in."""
    order: list[int] = []
    taken = set()
    while paths:
        for path in list(paths):
            step = next(path, None)
            if step is None:
                paths.remove(path)
                continue
            for atom in step.active:
                if len(order) < size and group[atom] not in taken:
                    taken.add(group[atom])
                    order.append(atom)
        if len(order) == size:
            break
    return order
