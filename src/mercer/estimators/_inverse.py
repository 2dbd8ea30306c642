"""Back to rows: pre-images of scores and denoising, for one expansion and some of its rows."""

from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import check_array

from ..compute import array_namespace, is_sparse, on_device_of, to_numpy
from ..compute.arrays import is_on_device
from ..exceptions import tell
from ..expansion import KernelExpansion
from ..kernels import RBF, Precomputed
from ..preimage import PREIMAGES, Compensation, Preimage, choose_preimage
from ..rows import is_dask


class Inverse:
    """Rows from scores: an expansion, training rows to learn from, and a method.

    What a method learns is kept, so that later calls are quick.

    Parameters
    ----------
    expansion : KernelExpansion
    rows : array of shape (s, d)
    recipe : Preimage
    """

    def __init__(self, expansion: KernelExpansion, rows, recipe: Preimage):
        self.expansion, self.rows, self.recipe = expansion, rows, recipe
        self._learned: dict[str, Any] = {}

    def same_as(self, other: "Inverse | None") -> bool:
        """Whether another one has learned from the same expansion by the same method."""
        return (
            other is not None
            and other.expansion is self.expansion
            and repr(other.recipe) == repr(self.recipe)
        )

    def find(self, S, denoising: bool, near=None):
        """Pre-images of scores, with a warning where some were not found to tolerance."""
        preimage = self._remembered(
            "denoising" if denoising else "inverse",
            lambda: self.recipe.fit(self.expansion, self.rows, denoising),
        )
        found = preimage(S, near)
        missed = int(np.sum(~found.converged))
        if missed:
            tell(
                f"{missed} of {len(S)} pre-images had not settled after {found.n_iter.max()} "
                "iterations; they are the best rows found. Raise max_iter or tol of "
                "preimage=FixedPoint(...).",
                ConvergenceWarning,
            )
        return found.points

    def denoising_scores(self, X, compensate: bool):
        """Scores, with kernel rows scaled back to what they would be without noise."""
        expansion, kernel = self.expansion, self.expansion.basis.kernel
        if not compensate or not isinstance(kernel, RBF):
            return expansion.scores(X)
        basis = expansion.basis
        undo = self._remembered("compensation", lambda: Compensation.of(self.rows, basis.engine))
        factors = undo.factors(X, kernel.gamma, basis.engine)
        products = basis.project(X, expansion.frame[:, 1:])
        return factors[:, None] * products - on_device_of(expansion.metric[0, 1:], products)

    def _remembered(self, key: str, make):
        if key not in self._learned:
            self._learned[key] = make()
        return self._learned[key]


def preimage_recipe(preimage, basis) -> Preimage:
    """The method asked for, or an error that says why it cannot serve the basis."""
    if isinstance(preimage, str):
        named = preimage != "auto"
        preimage = PREIMAGES[preimage]() if named else choose_preimage(basis)
    preimage.check(basis)
    return preimage


def rows_to_learn_from(basis, known):
    """Training rows that a model has, or an error that says why there are none."""
    if isinstance(basis.kernel, Precomputed):
        raise NotFittedError(
            "A precomputed kernel has no rows to come back to. Fit with a kernel that is "
            "computed from the data."
        )
    rows = basis.points if known is None else known
    if is_dask(rows):
        raise NotFittedError(
            "The training rows of this model are on a cluster, and pre-images need them here. "
            "Fit with basis='landmarks', whose model holds all it needs."
        )
    if is_sparse(rows):
        raise NotFittedError(
            "Pre-images are dense rows, and this model was fitted to sparse ones. Fit to "
            "X.toarray(), or to a dense reduction of X."
        )
    return rows


def checked_scores(X, r: int | None = None):
    """Scores (n, r) in their own precision and on their device, or an error that says why not."""
    if not is_on_device(X):
        S = check_array(to_numpy(X), dtype=[np.float64, np.float32])
    elif X.ndim != 2 or not X.shape[0]:
        raise ValueError(
            f"Expected scores of shape (n, n_components), at least one row, got {tuple(X.shape)}."
        )
    elif not bool(array_namespace(X).isfinite(X).all()):
        raise ValueError("Input X contains NaN or infinity. Leave those rows out.")
    else:
        S = X
    if r is not None and S.shape[1] != r:
        raise ValueError(f"The scores have {S.shape[1]} columns, and the model has {r} components.")
    return S
