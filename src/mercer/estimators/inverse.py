"""Back to rows: `inverse_transform` and `denoise` of every kernel method."""

import numpy as np
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from ..compute import array_namespace, format_bytes, is_sparse, on_device_of, to_numpy
from ..compute.arrays import is_on_device
from ..compute.cluster import is_dask
from ..exceptions import tell
from ..expansion import KernelExpansion
from ..kernels import RBF, Precomputed
from ..preimage import PREIMAGES, Compensation, Preimage, choose_preimage, ridge_inverse
from ..preimage.base import row_sample
from .validation import float_type, in_type, restore_like

# Training rows kept with a model whose basis is not the data, for neighbours and regressions.
SAMPLE_ROWS = 2000


class InverseMixin:
    """Pre-images of scores, and denoising by projection."""

    expansion_: KernelExpansion

    def inverse_transform(self, X):
        """Rows whose scores are near X, the mean of feature space restored.

        With ``fit_inverse_transform=True`` exactly scikit-learn's, by the regression that fit
        learned; else by the method `preimage` names.

        Parameters
        ----------
        X : array-like of shape (n, n_components)

        Returns
        -------
        array of shape (n, n_features)
        """
        check_is_fitted(self)
        S = checked_scores(X)
        if getattr(self, "fit_inverse_transform", False):
            return restore_like(self._learned_inverse(S), X)
        if S.shape[1] != self.expansion_.n_components:
            raise ValueError(
                f"The scores have {S.shape[1]} columns, and the model has "
                f"{self.expansion_.n_components} components."
            )
        wide = self.expansion_.basis.engine.asarray(S, np.float64)
        found = self._find(wide, denoising=False)
        return restore_like(in_type(found, float_type(S)), X)

    def denoise(self, X, *, compensate=True):
        """Rows of X projected onto the components and brought back.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Noisy rows, for a model that was fitted to clean ones; a model fitted to equally
            noisy rows serves too, and compensation then does nothing.
        compensate : bool, default=True
            Undo the shrinkage that noise causes in the scores of a Gaussian kernel. Other
            kernels are not compensated.

        Returns
        -------
        array of shape (n, n_features)
        """
        source, X = X, self._validate(X, reset=False)
        if is_sparse(X):
            raise ValueError("denoise gives dense rows, and X is sparse. Pass X.toarray().")
        self._rows_to_learn_from()
        S = self._denoising_scores(X, compensate)
        found = self._find(S, denoising=True, near=X)
        return restore_like(in_type(found, float_type(X)), source)

    def _learned_inverse(self, S):
        """scikit-learn's inverse transform of scores S."""
        centers = self.X_transformed_fit_
        K = self.kernel_(on_device_of(S, centers), centers)
        return K @ on_device_of(self.dual_coef_, K)

    def _denoising_scores(self, X, compensate):
        """Scores, with kernel rows scaled back to what they would be without noise."""
        expansion = self.expansion_
        if not compensate or not isinstance(self.kernel_, RBF):
            return expansion.scores(X)
        basis = expansion.basis
        undo = self._remembered(
            "compensation", lambda: Compensation.of(self._rows_to_learn_from(), basis.engine)
        )
        factors = undo.factors(X, self.kernel_.gamma, basis.engine)
        products = basis.project(X, expansion.frame[:, 1:])
        return factors[:, None] * products - on_device_of(expansion.metric[0, 1:], products)

    def _find(self, S, denoising, near=None):
        """Pre-images of scores, with a warning where some were not found to tolerance."""
        rows = self._rows_to_learn_from()
        recipe = self._preimage_recipe(self.expansion_.basis)
        key = f"{recipe} denoising" if denoising else f"{recipe}"
        preimage = self._remembered(key, lambda: recipe.fit(self.expansion_, rows, denoising))
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

    def _preimage_recipe(self, basis) -> Preimage:
        """The method asked for, or an error that says why it cannot serve the basis."""
        preimage = getattr(self, "preimage", "auto")
        if isinstance(preimage, str):
            named = preimage != "auto"
            preimage = PREIMAGES[preimage]() if named else choose_preimage(basis)
        preimage.check(basis)
        return preimage

    def _rows_to_learn_from(self):
        """Training rows that the model has, or an error that says why there are none."""
        if isinstance(self.kernel_, Precomputed):
            raise NotFittedError(
                "A precomputed kernel has no rows to come back to. Fit with a kernel that is "
                "computed from the data."
            )
        basis = self.expansion_.basis
        known = self.X_fit_ if basis.spans_data else getattr(self, "X_sample_", None)
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

    def _keep_sample(self, X):
        """Keep some training rows where the basis is not the data."""
        index = row_sample(X.shape[0], SAMPLE_ROWS)
        rows = X if index is None else X[index]
        if is_sparse(rows):
            self.X_sample_ = rows.copy()
        elif isinstance(rows, np.ndarray):
            self.X_sample_ = np.array(rows)
        else:
            self.X_sample_ = array_namespace(rows).asarray(rows[:], copy=True)

    def _learn_inverse(self, X, engine):
        """scikit-learn's inverse transform: a ridge regression of the rows on their scores."""
        S = self._training_scores() if hasattr(self, "eigenvectors_") else self.transform(X)
        S, X = to_numpy(S), to_numpy(X)
        need = 2 * S.shape[0] ** 2 * S.itemsize
        if need > engine.memory:
            raise ValueError(
                f"fit_inverse_transform=True solves an n x n system, which needs "
                f"{format_bytes(need)} for {S.shape[0]:,} rows, and memory allows "
                f"{format_bytes(engine.memory)}. Raise memory, or fit without it."
            )
        self.dual_coef_ = ridge_inverse(self.kernel_, S, X, self.alpha)
        self.X_transformed_fit_ = S

    def _remembered(self, key, make):
        """What was made for this expansion before, or make it now."""
        kept = getattr(self, "_kept", None)
        if kept is None or kept[0] is not self.expansion_:
            kept = self._kept = (self.expansion_, {})
        if key not in kept[1]:
            kept[1][key] = make()
        return kept[1][key]

    def __getstate__(self):
        # What was made for pre-images is made again when needed.
        state: dict = super().__getstate__()  # type: ignore[assignment]
        return {name: value for name, value in state.items() if name != "_kept"}


def checked_scores(X):
    """Scores (n, r) in their own precision and on their device, or an error that says why not."""
    if not is_on_device(X):
        return check_array(to_numpy(X), dtype=[np.float64, np.float32])
    if X.ndim != 2 or not X.shape[0]:
        raise ValueError(
            f"Expected scores of shape (n, n_components), at least one row, got {tuple(X.shape)}."
        )
    if not bool(array_namespace(X).isfinite(X).all()):
        raise ValueError("Input X contains NaN or infinity. Leave those rows out.")
    return X
