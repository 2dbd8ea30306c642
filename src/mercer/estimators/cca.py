"""Kernel canonical correlation analysis as a scikit-learn estimator."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..bases import BASES, Basis, BasisRecipe, ColumnBasis, Columns, Landmarks
from ..bases.base import check_moments, moment_bytes
from ..compute import TiledEngine, is_sparse, make_engine, restore, to_numpy
from ..compute.arrays import Array
from ..compute.linalg import peak_signs
from ..exceptions import tell
from ..fitting.moments import Moments
from ..fitting.task import FitTask, build_problem
from ..kernels import KERNELS, Kernel
from ..kernels.base import check_values
from ..progress import PassBar
from ..relatives.correlation import canonical_pairs, certified, expansion_of
from ..relatives.joint import ViewColumns, with_columns
from ..rows import ArrayRows, BlockRows, scores_of
from ._door import NOT_NEGATIVE, Door, StrOptions, all_or_nothing, checked_array
from ._model import Scores
from ._output import contained
from ._sklearn import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from .supervised import check_count, refuse_grid, table_of

# Rows up to which "auto" is the exact method: seconds, for moments of 4,000 coordinates.
EXACT_ROWS = 2000
# Safety factor on the rounding of kernel values.
ROUNDING = 4.0
SAME_ROWS = "Pass both views of the same rows, in the same order."


class PairScores(Scores):
    """`transform` for one view or both, outside of scikit-learn's classes as `Scores` is."""

    def transform(self: Any, X: Array, y: Any = None) -> Any:  # type: ignore[override]
        """Scores of the rows of X along the canonical directions; with y those of both views.

        Parameters
        ----------
        X : array-like, sparse CSR matrix, memmap, path or other source of (n, n_features)
        y : array-like of shape (n, n_features_y) or None, default=None
            The other view of the same rows, or of any.

        Returns
        -------
        array of shape (n, n_components), or two of them
        """
        rows = self._open(X, reset=False)
        S = contained(self, rows.map(scores_of(self.expansion_)), X)
        if y is None:
            return S
        return S, restore(self.expansion_y_.scores(self._other_view(y, reset=False)), y)


@dataclass(eq=False, repr=False)
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
        What a squared norm of a direction costs, as a share of the total variance of its view in
        feature space. To be chosen by `score` on other rows: `GridSearchCV` does.

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

    memory, n_jobs, verbose
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

    _parameter_constraints: ClassVar[dict] = Door._parameter_constraints | {
        "kernel": [StrOptions(set(KERNELS) - {"precomputed"}), callable, Kernel],
        "kernel_y": [StrOptions(set(KERNELS) - {"precomputed"}), callable, Kernel, None],
        "regularization": [NOT_NEGATIVE],
        "gamma_y": Door._parameter_constraints["gamma"],
    }
    _needs_target = True

    n_components: int = 2
    _: KW_ONLY
    kernel_y: str | Kernel | Callable[..., Any] | None = None
    regularization: float = 0.01
    gamma_y: float | str | None = None
    basis: str | BasisRecipe = "auto"
    verbose: int = 0

    @all_or_nothing
    def fit(self, X: Array, y: Any = None) -> Self:
        """Find the pairs of directions along which X and y vary together.

        Parameters
        ----------
        X : array-like, sparse CSR matrix, memmap, path or other source of (n_samples, n_features)
            One view.
        y : array-like, sparse CSR matrix or memmap of shape (n_samples, n_features_y)
            The other view of the same rows, in their order.

        Returns
        -------
        self
        """
        rows = self._for_passes(self._open(X, reset=True))
        array = rows.array if isinstance(rows, ArrayRows) else None
        Y = self._other_view(y, reset=True)
        rng = self._make_rng()
        with PassBar(self.verbose, drawn=not isinstance(rows, BlockRows)) as progress:
            engine = make_engine(memory=self.memory, threads=self.n_jobs, on_tiles=progress.tiles)
            basis, whitener = self._basis_of(Y, engine, rng)
            named = self._named_kernel(rows.shape[1])
            few = array is not None and are_few(array.shape[0], engine)
            recipe = self._recipe(named, rows.shape, lambda: rows.as_array("basis='points'"), few)
            task = FitTask(
                rows, array, named, recipe, "auto", self.n_components, engine, rng, progress
            ).with_pilot(self._make_kernel)
            columns = ViewColumns(basis, whitener, Y)
            problem: Any = build_problem(with_columns(task, columns), recipe)
        self.kernel_ = problem.basis.kernel
        joint = problem.moments
        check_count(problem.count, Y.shape[0], SAME_ROWS)
        # Those of X are checked where the problem is posed.
        check_values(self.kernel_y_, joint.other.scatter, joint.other.mean, on="y", what="y")
        noises = rounding_of(joint, problem.basis), rounding_of(joint.other, basis)
        pairs = canonical_pairs(joint, self.n_components, float(self.regularization), noises)
        energy = float(to_numpy(self.kernel_y_.diag(Y)).sum(dtype=float))
        views = ((joint, problem.basis, joint.energy), (joint.other, basis, energy))
        penalties = [self.regularization * float(np.trace(view[0].scatter)) for view in views]
        known = all(b.kernel.definite and b.exact_norms for _, b, _ in views)
        left_out = [outside(*view, n) for view, n in zip(views, noises, strict=True)]
        self.certificate_ = certified(pairs, left_out, penalties, known and min(penalties) > 0)
        first = expansion_of(problem.basis, problem.whitening.weights, joint, pairs.first)
        second = expansion_of(basis, whitener, joint.other, pairs.second)
        # As of kernel PCA: the largest score of a training row is positive.
        signs = peak_signs(to_numpy(first.scores(problem.model_rows)))
        self.expansion_, self.expansion_y_ = first.stretched(signs), second.stretched(signs)
        self.correlations_, self.regularized_correlations_ = pairs.correlations, pairs.regularized
        if len(pairs.correlations) < self.n_components:
            tell(
                f"n_components={self.n_components} is more than the smaller view has directions: "
                f"{len(pairs.correlations)} are kept."
            )
        if not pairs.correlations.any():
            tell(
                "One of the views has no variance in feature space, as when all of its rows are "
                "equal: every correlation is zero."
            )
        return self

    def correlations(self, X: Array, y: Any) -> np.ndarray:
        """Correlations of given rows along each pair of directions, (n_components,).

        Of rows that were not in the fit they tell what both views share.
        """
        check_is_fitted(self)
        first = self._open(X, reset=False).map(scores_of(self.expansion_))
        second = self.expansion_y_.scores(self._other_view(y, reset=False))
        check_count(first.shape[0], second.shape[0], SAME_ROWS)
        S, T = (np.asarray(to_numpy(part), dtype=float) for part in (first, second))
        S, T = S - S.mean(axis=0), T - T.mean(axis=0)
        sizes = np.sqrt(np.sum(S**2, axis=0) * np.sum(T**2, axis=0))
        return np.sum(S * T, axis=0) / np.where(sizes > 0, sizes, 1.0)

    def score(self, X: Array, y: Any) -> float:
        """The mean correlation of given rows over the pairs of directions."""
        return float(self.correlations(X, y).mean())

    def _other_view(self, y: Any, *, reset: bool) -> Any:
        """The rows of y, checked."""
        if y is None:
            raise ValueError(
                "KernelCCA requires y to be passed, but the target y is None. Pass the other view "
                "of the same rows, (n_samples, n_features_y)."
            )
        Y = y if is_sparse(y) or isinstance(y, np.memmap) else table_of(y)
        Y = Y[:, None] if Y.ndim == 1 else Y
        least = 2 if reset else 1
        Y = checked_array(
            Y,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            input_name="y",
            ensure_min_samples=least,
        )
        if reset:
            self.n_features_y_ = int(Y.shape[1])
        elif Y.shape[1] != self.n_features_y_:
            raise ValueError(
                f"y has {Y.shape[1]} columns, and the model was fitted to {self.n_features_y_}. "
                "Pass the same columns in the same order."
            )
        return Y

    def _basis_of(self, Y, engine: TiledEngine, rng) -> tuple[Any, Any]:
        """A basis of the other view, and its whitener."""
        # By the same rules as that of X.
        own = {
            "kernel": self.kernel if self.kernel_y is None else self.kernel_y,
            "gamma": self.gamma if self.gamma_y is None else self.gamma_y,
        }
        self.kernel_y_ = KernelCCA(**self.get_params(deep=False) | own)._make_kernel(Y)
        recipe = self._recipe(self.kernel_y_, Y.shape, lambda: Y, are_few(Y.shape[0], engine))
        basis = recipe.build(self.kernel_y_, Y, engine, rng, self.n_components)
        if not isinstance(basis, ColumnBasis):
            check_moments(basis.size, f"{basis.noun} of y", engine)
        return basis, basis.whitener(np.float64)

    def _recipe(self, kernel: Kernel, shape, whole: Callable[[], Any], few: bool) -> BasisRecipe:
        """The basis asked for; all points are landmarks too, of which there are none between."""
        recipe, (n, d) = self.basis, shape
        refuse_grid(recipe, "canonical correlations", "other view")
        if isinstance(recipe, BasisRecipe):
            return recipe
        if recipe == "auto" and kernel.is_inner_product and (n is None or d <= n):
            return Columns()
        if recipe == "points" or (recipe == "auto" and few):
            return Landmarks(points=whole())
        return BASES["landmarks" if recipe == "auto" else recipe]()


def are_few(n: int, engine: TiledEngine) -> bool:
    """Whether both views may be written in all of their rows: that is soon done, and fits."""
    return n <= EXACT_ROWS and moment_bytes(2 * n, engine) <= engine.memory


def rounding_of(moments: Moments, basis: Basis) -> float:
    """Variance that rounding alone gives a direction: of kernel values, or of columns."""
    eps, mean = ROUNDING * np.finfo(float).eps, float(np.sum(moments.mean**2))
    if isinstance(basis, ColumnBasis):
        return eps**2 * mean
    return eps * (mean + float(np.trace(moments.scatter)) / moments.count)


def outside(moments: Moments, basis: Basis, energy: float, noise: float) -> float:
    """The trace of what a basis leaves out of the kernel matrix of a view, and twice the rounding.

    Rounding changes the matrix, and by its trace the regularization.
    """
    n, size = moments.count, moments.mean.size
    held = float(np.trace(moments.scatter)) + n * float(np.sum(moments.mean**2))
    lost = 0.0 if isinstance(basis, ColumnBasis) else abs(energy - held)
    rounding = max(basis.rounding(), np.finfo(float).eps) * (size + n**0.5)
    return lost + 2 * (n * noise + rounding * max(energy, held))
