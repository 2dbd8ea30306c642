"""What a fitted model says of its components: the columns that drive them, how many are real."""

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..compute import is_sparse, to_numpy
from ..compute.arrays import Array
from ..fitting.expansion import KernelExpansion
from ..kernels import Kernel
from ..relatives.explaining import (
    Attribution,
    Significance,
    gradient_sums,
    sample_rows,
    significance_of,
)
from ..rows import ArrayRows, DaskRows, OfExpansion, Rows, is_dask
from ._door import Door


class Explained(Door):
    """`attribute` and `significance` of every model that ends in a kernel expansion."""

    center: bool
    #: The outcome of the last `significance`, which summaries and reports show.
    significance_: Significance
    expansion_: KernelExpansion
    kernel_: Kernel

    def attribute(self, X: Array = None, *, max_rows: int | None = 2000) -> Attribution:
        """Which columns drive which component: gradients of the scores, averaged over rows.

        In closed form, for every kernel that has a gradient and every basis (KPCA-IG; Briscik,
        Dillies & Dejean 2023), in one pass and within the budget.

        Parameters
        ----------
        X : array-like, path or other source of (n, n_features), or None
            Rows where the gradients are taken; None for the training rows that the model has.
        max_rows : int or None, default=2000
            Rows at most, drawn uniformly: a mean over 2,000 is good to two digits. None for all.

        Returns
        -------
        Attribution
            A table by column and component, with the names of both; `mercer.plot.attribution`
            draws it.
        """
        check_is_fitted(self)
        if self._is_precomputed():
            raise ValueError(
                "A precomputed kernel knows no columns, so that none can drive its components. "
                "Fit with a kernel that is computed from the data."
            )
        self._check_numbers("there is no gradient with respect to a category")
        if max_rows is not None and not (isinstance(max_rows, Integral) and max_rows > 0):
            raise ValueError(f"max_rows={max_rows!r} must be a whole number above 0, or None.")
        rows = self._rows_or_own(X)
        if max_rows is not None:
            rows = ArrayRows(rows.sample(int(max_rows), 0), memory=self.memory)
        gradients = OfExpansion(self.expansion_.here(), gradient_sums, (), "gradients")
        sums = rows.sum(gradients, "gradients")
        named = vars(self).get("feature_names_in_")
        names = [f"x{i}" for i in range(self.n_features_in_)] if named is None else named
        return Attribution.of(sums, names, self.get_feature_names_out())

    def significance(
        self,
        X: Array = None,
        *,
        alpha: float = 0.05,
        n_permutations: int = 39,
        n_bootstrap: int = 50,
        max_rows: int = 1000,
        random_state: int | np.random.RandomState | None = None,
    ) -> Significance:
        """How many components stand above noise, and how stable they are.

        Eigenvalues of this model's kernel are compared with those of rows whose columns were
        shuffled one by one (parallel analysis), and components with those of rows drawn with
        replacement (the bootstrap). For any basis: the kernel matrix of a sample is taken.

        Parameters
        ----------
        X : array-like, path or other source of (n, n_features), or None
            None for the training rows that the model has.
        alpha : float, default=0.05
            Probability at most that a component of independent columns is called real.
        n_permutations : int, default=39
            Shuffles, 1 / alpha - 1 at least.
        n_bootstrap : int, default=50
            Draws.
        max_rows : int, default=1000
            Rows looked at, drawn uniformly; fewer where `memory` holds no more. More of them tell
            smaller components from noise, at the cost of a cubic eigenproblem for each shuffle.
        random_state : int, RandomState or None, default=None

        Returns
        -------
        Significance
            `mercer.plot.spectrum` takes it as ``significance=``. The model keeps it until the next
            fit (`significance_`), for its summary in a notebook and for reports.
        """
        check_is_fitted(self)
        check_significance(alpha, n_permutations, n_bootstrap, max_rows)
        if self._is_precomputed() or self.n_features_in_ < 2:
            raise ValueError(
                "Noise is what is left when columns are shuffled one by one, which needs two "
                "columns or more, and rows that the kernel is computed from."
            )
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
        rows, engine = self._rows_or_own(X), self.expansion_.basis.engine
        size = sample_rows(engine.memory, self.n_features_in_, max_rows)
        some = rows.sample(size, int(rng.integers(2**62)))
        some = some.toarray() if is_sparse(some) else to_numpy(some)
        kernel = self.kernel_
        kernel.check(some)
        with engine.single_blas():
            self.significance_ = significance_of(
                kernel,
                np.asarray(some, dtype=np.float64),
                self.expansion_.n_components,
                self.center,
                rng,
                alpha=alpha,
                n_permutations=n_permutations,
                n_bootstrap=n_bootstrap,
            )
        return self.significance_

    def _rows_or_own(self, X) -> Rows:
        """The rows of X, or those of the fit that the model has kept: all, or a sample."""
        if X is not None:
            return self._open(X, reset=False)
        facts, basis = vars(self), self.expansion_.basis
        known = facts.get("X_fit_" if basis.spans_data else "X_sample_")
        known = basis.points if known is None else known
        # Its own rows need no check, and have no names that could be other ones.
        return DaskRows(known) if is_dask(known) else ArrayRows(known, memory=self.memory)


def check_significance(alpha: Any, n_permutations: Any, n_bootstrap: Any, max_rows: Any) -> None:
    """Raise ValueError unless the settings of `significance` can hold its level."""
    if not isinstance(alpha, float | int) or not 0 < alpha < 1:
        raise ValueError(f"alpha={alpha!r} must be a number between 0 and 1.")
    least = int(np.ceil(1 / alpha - 1 - 1e-9))
    for name, value, low in (
        ("n_permutations", n_permutations, least),
        ("n_bootstrap", n_bootstrap, 0),
        ("max_rows", max_rows, 2),
    ):
        if not isinstance(value, Integral) or value < low:
            raise ValueError(f"{name}={value!r} must be a whole number of at least {low}.")
