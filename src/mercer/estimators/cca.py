"""Kernel canonical correlation analysis as a scikit-learn estimator."""

from collections.abc import Callable
from dataclasses import KW_ONLY, replace
from math import isqrt
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from ..bases import BasisRecipe, ColumnBasis, Columns, Landmarks
from ..bases.base import check_moments
from ..compute import Array, is_sparse, restore, to_numpy
from ..compute.engine import moment_bytes
from ..exceptions import tell
from ..fitting.choosing import choose
from ..fitting.moments import ExtraColumn
from ..kernels import Kernel
from ..kernels.base import check_values
from ..relatives.correlation import CorrelationProblem, View
from ..relatives.joint import ViewColumns, joint_problem
from ..rows import ArrayRows, scores_of, with_extras
from ._checks import MEASURES, NOT_NEGATIVE, WIDTHS, checked_array
from ._door import NO_MATRIX, Door, Fitted, PointKernel, kept, unfitted
from ._model import Scores
from ._sklearn import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from .supervised import check_count, refuse_grid, table_of

# Rows up to which "auto" is the exact method: seconds, for moments of 4,000 coordinates.
EXACT_ROWS = 2000
SAME_ROWS = "Pass both views of the same rows, in the same order."


class PairScores(Scores):
    """`transform` for one view or both, outside of scikit-learn's classes as `Scores` is."""

    def transform(self: Any, X: Array, y: Any = None, out: Any = None) -> Any:  # type: ignore[override]
        """Scores of the rows of X along the canonical directions; with y those of both views.

        Parameters
        ----------
        X : array-like, sparse CSR matrix, memmap, path or other source of (n, n_features)
        y : array-like of shape (n, n_features_y) or None, default=None
            The other view of the same rows, or of any.
        out : str, Path or None, default=None
            A file for the scores of X, as in `KernelPCA.transform`; those of y are returned.

        Returns
        -------
        array of shape (n, n_components), or two of them; the Path of the file in place of X's
        """
        X, y = with_extras(X, self.memory, y=y)
        S = super().transform(X, out)
        if y is None:
            return S
        return S, restore(self.expansion_y_.scores(self._other_view(y)), y)


class KernelCCA(PairScores, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Door):
    """Kernel canonical correlation analysis: what two sets of columns of the same rows share.

    Pairs of directions, one in the feature space of each view, along which the rows have the
    largest regularized correlation (Bach & Jordan 2002, Hardoon et al. 2004). With the linear
    kernel and little regularization this is canonical correlation analysis. With other kernels the
    regularization decides: without it any two views of few rows are perfectly correlated. `score`
    gives the correlation on rows that were not in the fit.

    Parameters
    ----------
    n_components : int, default=2
        Pairs of directions.

    kernel : str, Kernel or callable, default="linear"
        Of the rows of X, as in `mercer.KernelPCA`.

    kernel_y : str, Kernel, callable or None, default=None
        Of the rows of y; None for the same as of X, with a width of its own where that is measured.

    regularization : float, default=0.01
        Penalty on the squared norm of a direction, as a share of the total variance of its view in
        feature space. Choose it by `score` on other rows, as `GridSearchCV` does.

    gamma, degree, coef0, kernel_params
        Parameters of both kernels, as in `mercer.KernelPCA`.

    gamma_y : float, "median", "mean" or None, default=None
        The width of the kernel of y, where it is another; None for `gamma`.

    basis : "auto", "points", "landmarks", "features", "columns" or BasisRecipe, default="auto"
        What directions of both views are written in. "auto" takes the columns for linear kernels,
        all points up to 2,000 rows in memory, if both views fit, and landmarks beyond; each in one
        pass over arrays, files or a cluster, while y is in memory or a memmap.

    random_state : int, RandomState or None, default=None
        Landmarks and random features.

    memory, n_jobs, device, verbose
        As in `mercer.KernelPCA`.

    Attributes
    ----------
    correlations_ : array of shape (n_components,)
        Correlations of the training rows along each pair; they grow as regularization falls,
        whatever the views share.

    regularized_correlations_ : array of shape (n_components,)
        What is maximized: covariances over regularized variances, largest first.

    expansion_, expansion_y_ : KernelExpansion
        Means and directions of both views over their bases; scores of the training rows have
        variance 1.

    certificate_ : Certificate
        Intervals of the regularized correlations: those of all functions of the rows, and not of
        the span of a basis alone. Wide where a basis leaves out more than the regularization.

    kernel_, kernel_y_ : Kernel
        The kernels with numbers for their parameters.

    n_features_in_, n_features_y_ : int
        Columns of X and y.

    feature_names_in_ : array of str
        Names of the columns of X, where it has them.

    See Also
    --------
    mercer.SupervisedKernelPCA : Orthonormal directions of X alone, by covariance with a target.

    References
    ----------
    Bach & Jordan (2002), Kernel independent component analysis. Hardoon, Szedmak & Shawe-Taylor
    (2004), Canonical correlation analysis: an overview with application to learning methods.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelCCA
    >>> rng = np.random.default_rng(0)
    >>> angle = rng.uniform(0, 2 * np.pi, 400)
    >>> X = np.column_stack([np.cos(angle), np.sin(angle)]) + 0.1 * rng.standard_normal((400, 2))
    >>> y = np.cos(3 * angle)[:, None] + 0.1 * rng.standard_normal((400, 1))
    >>> model = KernelCCA(1, kernel="rbf", gamma=2.0).fit(X[:300], y[:300])
    >>> bool(model.score(X[300:], y[300:]) > 0.9)
    True
    """

    _fitted: ClassVar[dict[str, Fitted]] = Door._fitted | {
        "n_features_y_": kept("int e"),
        "kernel_": kept(Kernel),
        "kernel_y_": kept(Kernel),
        "expansion_": kept("KernelExpansion d r"),
        "expansion_y_": kept("KernelExpansion e r"),
        "correlations_": kept("r"),
        "regularized_correlations_": kept("r"),
        "certificate_": Fitted("Certificate r"),
    }
    _needs_target = True

    n_components: int = 2
    _: KW_ONLY
    kernel: PointKernel = "linear"
    kernel_y: Annotated[str | Kernel | Callable | None, NO_MATRIX, callable, Kernel, None] = None
    regularization: Annotated[float, NOT_NEGATIVE] = 0.01
    gamma_y: Annotated[float | str | None, NOT_NEGATIVE, MEASURES, None, WIDTHS] = None
    basis: str | BasisRecipe = "auto"
    device: Any = None
    verbose: int = 0

    def fit(self, X: Array, y: Any = None) -> Self:
        """Find the pairs of directions along which X and y vary together.

        Parameters
        ----------
        X : array-like, sparse CSR matrix, memmap, path or other source of (n_samples, n_features)
            One view.
        y : array-like, sparse CSR matrix, memmap, path or other source of (n_samples, n_features_y)
            The other view of the same rows, in their order, which is read into memory. Or the name
            of a column of X, which is then no part of it.

        Returns
        -------
        self
        """
        return self._fit(X, y)

    def _posing(self, y, rows, weights, sample_weight):
        refuse_grid(self.basis, "canonical correlations", "the other view")
        Y = self._other_view(y)
        check_count(rows.shape[0], Y.shape[0], SAME_ROWS)

        def pose(task, basis):
            # By the same rules as the kernel of X.
            rng, like = task.rng, unfitted(self)
            like.kernel = self.kernel if self.kernel_y is None else self.kernel_y
            like.gamma = self.gamma if self.gamma_y is None else self.gamma_y
            named, other_rows = like._make_kernel(Y), ArrayRows(Y, memory=self.memory)
            other = replace(task, rows=other_rows, array=Y, kernel=named, pilot=Y)
            recipe = choose(other).basis.settled(Y.shape[0], task.count_asked)
            other_basis = recipe.build(named, Y, task.engine, rng, task.count_asked)
            basis, other_basis = of_moments(basis, rng), of_moments(other_basis, rng)
            if not isinstance(other_basis, ColumnBasis):
                check_moments(other_basis.size, f"{other_basis.noun} of y", task.engine)
            whitener = other_basis.whitener(np.float64)
            inner = joint_problem(task, basis, ViewColumns(other_basis, whitener, Y))
            check_count(inner.count, Y.shape[0], SAME_ROWS)
            moments = inner.moments.other
            # Those of X are checked where the problem is posed.
            check_values(named, moments.scatter, moments.mean, on="y", what="y")
            energy = float(to_numpy(named.diag(Y)).sum(dtype=float))
            view = View(other_basis, whitener, moments, energy)
            return CorrelationProblem(inner, view, Y.shape[1], float(self.regularization))

        return pose

    @property
    def _most_points(self) -> int:  # type: ignore[override]
        """Rows that both views may be written in: that is soon done, and fits."""
        engine = self._make_engine()
        return min(EXACT_ROWS, isqrt(engine.memory // moment_bytes(2, engine)))

    def _attributes(self, result, plan, task) -> dict[str, Any]:
        return super()._attributes(result, plan, task) | {
            "kernel_": result.expansion.basis.kernel,
            "kernel_y_": result.expansion_y.basis.kernel,
            "n_features_y_": result.problem.other_columns,
        }

    def _warn(self, result, plan, task) -> None:
        if len(result.correlations) < self.n_components:
            tell(
                f"n_components={self.n_components} is more than the {len(result.correlations)} "
                "directions of the smaller view: all of these are kept."
            )
        if not result.correlations.any():
            tell(
                "One of the views has no variance in feature space, for example because its rows "
                "are all equal. Every correlation is zero."
            )

    def correlations(self, X: Array, y: Any) -> np.ndarray:
        """Correlations of given rows along each pair of directions, (n_components,).

        Of rows that were not in the fit they tell what both views share.
        """
        X, y = with_extras(X, self.memory, y=y)
        first = self._open(X, reset=False).map(scores_of(self.expansion_))
        second = self.expansion_y_.scores(self._other_view(y))
        check_count(first.shape[0], second.shape[0], SAME_ROWS)
        S, T = (np.asarray(to_numpy(part), dtype=float) for part in (first, second))
        S, T = S - S.mean(axis=0), T - T.mean(axis=0)
        sizes = np.sqrt(np.sum(S**2, axis=0) * np.sum(T**2, axis=0))
        return np.sum(S * T, axis=0) / np.where(sizes > 0, sizes, 1.0)

    def score(self, X: Array, y: Any) -> float:
        """The mean correlation of given rows over the pairs of directions."""
        return float(self.correlations(X, y).mean())

    def _other_view(self, y: Any) -> Any:
        """The rows of y, checked; those of a fitted model against its columns."""
        if y is None:
            raise ValueError(
                "KernelCCA requires y to be passed, but the target y is None. Pass the other view "
                "of the same rows, (n_samples, n_features_y)."
            )
        if isinstance(y, ExtraColumn):
            raise ValueError(
                "KernelCCA reads the other view of each row into memory, and rows of a table on a "
                "cluster have no order to match it by. Pass X and y as arrays, or use "
                "SupervisedKernelPCA, which takes a column of the table as y."
            )
        Y = y if is_sparse(y) or isinstance(y, np.memmap) else table_of(y)
        Y = Y[:, None] if Y.ndim == 1 else Y
        columns = vars(self).get("n_features_y_")
        checks = {"dtype": self._types, "input_name": "y", "accept_sparse": "csr"}
        Y = checked_array(Y, ensure_min_samples=2 if columns is None else 1, **checks)
        if columns not in (None, Y.shape[1]):
            raise ValueError(
                f"y has {Y.shape[1]} columns, and the model was fitted to {columns}. "
                "Pass the same columns in the same order."
            )
        return Y


def of_moments(basis: Any, rng: Any) -> Any:
    """A basis whose coordinates have moments: all points are landmarks at every row, or columns."""
    if not basis.spans_data:
        return basis
    X, kernel, engine = basis.here().points, basis.kernel, basis.engine
    inner_products = kernel.is_inner_product and X.shape[1] <= X.shape[0]
    recipe = Columns() if inner_products else Landmarks(points=X)
    return recipe.build(kernel, X, engine, rng)
