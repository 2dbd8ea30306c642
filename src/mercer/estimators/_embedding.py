"""What both embeddings of affinities share: all eigenvectors but the first, which is constant."""

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from ..bases import BasisRecipe
from ..compute import restore
from ..compute.arrays import Array
from ..exceptions import tell
from ._door import all_or_nothing
from ._parameters import Interval, StrOptions
from ._spectral import NEIGHBORS, SpectralInput

# Eigenvalues of the walk this near to 1 are those of pieces without ties between them.
APART = 1e-8


class GraphEmbedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SpectralInput):
    """Coordinates of rows, of which new rows have some too.

    A subclass says what it makes of the eigenvectors (`_set_results`) and of new rows
    (`_coordinates`).
    """

    _parameter_constraints: ClassVar[dict] = SpectralInput._parameter_constraints | {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left"), None],
        "basis": [StrOptions({"auto", "points", "landmarks"}), BasisRecipe],
    }

    n_components: int
    #: Residual that "auto" asks for: vectors to about this over the gap of their eigenvalues.
    tol = 1e-8

    @all_or_nothing
    def fit(self, X: Array, y: Any = None) -> Self:
        """Embed the rows of X.

        Parameters
        ----------
        X : array-like, sparse CSR matrix or memmap of shape (n_samples, n_features)
            With ``affinity="precomputed"`` the affinities, (n_samples, n_samples).
        y : ignored

        Returns
        -------
        self
        """
        original, X = X, self._checked(X)
        problem, pairs, X = self._solved(X)
        map_, V = problem.assemble(pairs, X)
        self._set_results(map_, V, original)
        self.eigenvalues_ = restore(pairs.values[1:], original)
        if problem.basis.spans_data:
            problem.basis.release()
        self._keep_landmarks(original)
        self._warn_pieces(pairs.values)
        return self

    def fit_transform(self, X: Array, y: Any = None) -> Array:
        """Embed the rows of X and return their coordinates, (n_samples, n_components)."""
        return self.fit(X, y).embedding_

    def transform(self, X: Array) -> Array:
        """Coordinates of new rows; those of training rows are `embedding_`.

        Parameters
        ----------
        X : array-like, sparse CSR matrix or memmap of shape (n, n_features)
            With ``affinity="precomputed"`` the affinities of new rows with the training
            rows, (n, n_samples), and with "precomputed_nearest_neighbors" the distances.

        Returns
        -------
        array of shape (n, n_components)
        """
        original, X = X, self._array(X, reset=False)
        return restore(self._coordinates(X), original)

    def _checked(self, X):
        """The rows of X, enough of them for what is asked for."""
        X = self._array(X, reset=True)
        n = X.shape[0]
        if self.n_components >= n:
            raise ValueError(
                f"n_components={self.n_components} must be less than n_samples={n}: the first "
                f"eigenvector is constant and left out. Give at most {n - 1}."
            )
        if self.affinity in NEIGHBORS and self._neighbors_of(n) > n:
            raise ValueError(
                f"n_neighbors={self.n_neighbors} is more than n_samples={n}. Give at most {n}."
            )
        return X

    def _width(self) -> int:
        return self.n_components + 1

    def _grid_or_landmarks(self, X, engine) -> str:
        return "landmarks"

    def _neighbors_of(self, n: int) -> int:
        return max(n // 10, 1) if self.n_neighbors is None else self.n_neighbors

    def _warn_pieces(self, values) -> None:
        pieces = int(np.sum(values > 1 - APART))
        if pieces > 1:
            tell(
                f"The affinities fall into at least {pieces} pieces without ties between them, and "
                "the first coordinates only tell these apart. Use a wider kernel or more "
                "neighbors, or embed each piece alone."
            )

    @property
    def _n_features_out(self) -> int:
        return self.embedding_.shape[1]

    def _set_results(self, map_, V, original) -> None:
        """Set the map of new rows and the coordinates that the eigenvectors V give the rows."""
        raise NotImplementedError

    def _coordinates(self, X) -> np.ndarray:
        """Coordinates of checked rows, (n, n_components)."""
        raise NotImplementedError
