"""Supervised kernel PCA as a scikit-learn estimator."""

from dataclasses import KW_ONLY
from math import isqrt
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..bases import FourierGrid, GramBasis
from ..compute import Array, is_sparse, parse_bytes, to_numpy, too_little
from ..compute.arrays import is_foreign
from ..compute.numbers import check_meaning, check_unmasked, reason
from ..exceptions import tell
from ..fitting.moments import ExtraColumn
from ..fitting.task import components_problem
from ..kernels import KERNELS, Kernel
from ..relatives import supervised
from ..relatives.explaining import Significance
from ..relatives.joint import GivenColumns, TargetColumn, TargetOf, joint_problem
from ..relatives.mixed import is_missing
from ..rows import like_rows
from ._checks import LARGEST_SUM, SMALLEST_VALUE, UNIT, StrOptions, check_gram, checked_array
from ._door import Fitted, kept
from ._model import KernelModel
from .kernel_pca import KernelPCA

# Copies of target features while they are made, and the share of the budget that they may take.
COPIES, SHARE = 4, 2
# Share of a target kernel that may be left out without a warning.
LEFT_OUT = 1e-6
ONE_TARGET = (
    "All rows have the same target, 1 class or value, so that nothing can depend on it. Pass a y "
    "with two different values or more, or use KernelPCA."
)


# Target kernels by name.
TARGETS = StrOptions({"auto", "delta", *KERNELS})


class SupervisedKernelPCA(KernelPCA):
    """Kernel PCA towards a target: the directions that depend most on y.

    Finds the orthonormal directions of feature space along which rows have the largest covariance
    with the target, in the Hilbert-Schmidt norm of HSIC (Barshan et al. 2011): the eigenvectors of
    ``Phi' H L H Phi`` with L the target kernel. Their number is at most
    the rank of L: one less than classes, or the columns of a numeric y; `unsupervised` adds
    others by variance. With L the identity this is kernel PCA.

    Parameters
    ----------
    n_components : int, float or None, default=None
        Number of components. A float in (0, 1) keeps as many as hold that share of the
        dependence; None keeps all with a non-zero eigenvalue.

    kernel : str, Kernel or callable, default="linear"
        As in `mercer.KernelPCA`.

    target : "auto", "delta", "linear", "precomputed", a kernel's name or Kernel, default="auto"
        The kernel between targets. "delta": 1 for equal labels, else 0, summed over columns of y;
        "linear": inner products of the columns of y, which should have comparable scales;
        "precomputed": y is the n x n kernel itself; or a kernel of `mercer.kernels`, by name with
        the median distance of targets as its width. "auto" is "linear" for floating-point numbers
        and "delta" for all else: whole numbers, text, booleans.

    unsupervised : float, default=0
        Share of the identity in the target kernel, ``(1 - a) L + a |L| I``: from 0, the target
        alone, to 1, kernel PCA. Above 0 there can be as many components as rows.

    gamma, degree, coef0, kernel_params
        Parameters of the kernel between rows, as in `mercer.KernelPCA`.

    eigen_solver, tol, max_iter
        As in `mercer.KernelPCA`; of use where `unsupervised` is not 0. Else the exact method takes
        one product with the kernel matrix.

    random_state : int, RandomState or None, default=None
        Start vectors, landmarks and random features.

    copy_X, n_jobs, memory, device, verbose
        As in `mercer.KernelPCA`.

    basis : "auto", "points", "landmarks", "features", "columns" or BasisRecipe, default="auto"
        As in `mercer.KernelPCA`, without the Fourier grid. Rows in files and on clusters take
        landmarks, random features or columns, in one pass; y is in memory.

    preimage : "auto", "fixed-point", "distance", "ridge" or Preimage, default="auto"
        As in `mercer.KernelPCA`.

    Attributes
    ----------
    eigenvalues_ : array of shape (n_components,)
        Squared Hilbert-Schmidt norms of the covariance with the target along each direction, times
        n^2: eigenvalues of ``H K H L``, largest first.

    hsic_ : float
        The empirical criterion of all directions, ``trace(H K H L) / (n - 1)^2``, in the span of
        the basis. Zero for independent targets and growing rows.

    dependence_ratio_ : array of shape (n_components,)
        Shares of the trace that the components hold.

    explained_variance_, explained_variance_ratio_ : arrays of shape (n_components,)
        Variance of the training rows along the components, and its share of the total.

    eigenvectors_ : array of shape (n_samples, n_components)
        Weights of the rows in the directions times the roots of the eigenvalues, where the basis is
        all points. Unlike those of kernel PCA they are not orthonormal.

    target_ : str or Kernel
        The target kernel that was taken.

    certificate_ : Certificate
        Intervals that hold the true eigenvalues of ``H K H L`` for this y; its captured variance is
        the share of the trace. How well y depends on other rows is not certified.

    plan_, expansion_, kernel_, gamma_, X_fit_, landmarks_, X_sample_
        As in `mercer.KernelPCA`.

    n_features_in_, feature_names_in_
        As in `mercer.KernelPCA`.

    See Also
    --------
    mercer.KernelCCA : Directions of two sets of columns that vary together.

    References
    ----------
    Barshan, Ghodsi, Azimifar & Zolghadri Jahromi (2011), Supervised principal component analysis:
    visualization, classification and regression on subspaces and submanifolds.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from mercer import SupervisedKernelPCA
    >>> X, y = load_wine(return_X_y=True)
    >>> model = SupervisedKernelPCA(kernel="rbf", gamma="median").fit(scale(X), y)
    >>> model.transform(scale(X)).shape
    (178, 2)
    """

    _needs_target = True

    # Parameters of `KernelPCA` that are not for a target.
    alpha: ClassVar = 1.0  # type: ignore[misc]
    fit_inverse_transform: ClassVar = False  # type: ignore[misc]
    iterated_power: ClassVar = "auto"  # type: ignore[misc]
    remove_zero_eig: ClassVar = False  # type: ignore[misc]
    center: ClassVar = True  # type: ignore[misc]
    callback: ClassVar = None  # type: ignore[misc]
    checkpoint: ClassVar = None  # type: ignore[misc]

    _fitted: ClassVar[dict[str, Fitted]] = KernelModel._fitted | {
        "target_": kept((str, Kernel)),
        "hsic_": kept("(-inf, inf)"),
        "dependence_ratio_": kept("r"),
    }

    _: KW_ONLY
    target: Annotated[str | Kernel, TARGETS, Kernel] = "auto"
    unsupervised: Annotated[float, UNIT] = 0

    def fit(self, X: Array, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the directions of X that depend most on y.

        Parameters
        ----------
        X : array-like, sparse CSR matrix, path or other source of (n_samples, n_features)
            As in `mercer.KernelPCA.fit`.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Labels or numbers; with ``target="precomputed"`` their kernel. Also a path, a Dask
            collection, an iterator of blocks, or the name of a column of X, which is then no part
            of its rows.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            How often each row counts, with its target. From wherever y may come.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)

    def significance(self, X: Array = None, **settings: Any) -> Significance:
        """Not for components that a target chose.

        Raises
        ------
        ValueError
            Shuffled columns show how much variance is noise, and nothing about dependence on y.
        """
        raise ValueError(
            "significance tests variance, and these components were chosen by their dependence on "
            "y. Use sklearn.model_selection.permutation_test_score with a model of y, or "
            "KernelPCA(...).fit(X).significance()."
        )

    @property
    def n_iter_(self) -> int:
        """Passes over the kernel matrix that the fit took."""
        check_is_fitted(self)
        return max(self.certificate_.n_passes, 1)

    def _posing(self, y, rows, weights, sample_weight):
        refuse_grid(self.basis, "supervised fit", "the target")
        if isinstance(y, ExtraColumn):
            return self._posing_column(y, rows)
        kernel, P = target_of(self.target, y, self.memory)
        if weights is not None and len(weights) < len(P) == np.size(sample_weight):
            # Rows of weight zero were left out of an array.
            P = P[np.asarray(to_numpy(sample_weight)) != 0]
        share, advice = float(self.unsupervised), "Give one value of y for each row."
        check_count(rows.shape[0], len(P), advice)

        def pose(task, basis):
            self._check_preimage(basis)
            if isinstance(basis, GramBasis):
                root = supervised.TargetRoot.of(P, share, task.weights)
                inner: Any = components_problem(task, basis)
                return supervised.SupervisedGram(inner, root)
            inner = joint_problem(task, basis, GivenColumns(P))
            if task.weights is None:
                check_count(inner.moments.count, len(P), advice)
            return supervised.SupervisedReduced(inner, share)

        self.target_ = kernel
        return pose

    def _posing_column(self, y, rows):
        """The same for a target in a column of a table on a cluster, where it stays."""
        if self.target not in ("auto", "delta", "linear"):
            raise ValueError(
                f"target={self.target!r} compares all values of y, and those of column {y.name!r} "
                "stay on the cluster. Use 'delta' for labels or 'linear' for numbers."
            )
        most = isqrt(parse_bytes(self.memory) // (8 * SHARE))
        sums = rows.sum(TargetOf(y.name, self.target, most), "reading the target", again=True)
        if sums.labels is None:
            columns = TargetColumn(y.name, sums.total / sums.count)
        else:
            columns = TargetColumn(y.name, labels=np.array(sorted(sums.labels)))

        def pose(task, basis):
            self._check_preimage(basis)
            inner = joint_problem(task, basis, columns)
            if not np.trace(inner.moments.other.scatter) > 0:
                raise ValueError(ONE_TARGET)
            return supervised.SupervisedReduced(inner, float(self.unsupervised))

        self.target_ = "linear" if sums.labels is None else "delta"
        return pose

    def _attributes(self, result, plan, task) -> dict[str, Any]:
        problem, values, rows = result.problem, result.pairs.values, task.rows
        degrees, tiny = max(problem.weight - 1, 1.0), np.finfo(float).tiny
        dependence = np.minimum(values / max(problem.total, tiny), 1.0)
        ratio = np.minimum(result.variances / max(problem.inner.total, tiny), 1.0)
        return super()._attributes(result, plan, task) | {
            "target_": self.target_,
            "hsic_": float(problem.dependence / degrees**2),
            "dependence_ratio_": like_rows(dependence, rows),
            "explained_variance_": like_rows(result.variances / degrees, rows),
            "explained_variance_ratio_": like_rows(ratio, rows),
        }

    def _limit(self, problem) -> str:
        return super()._limit(problem) if self.unsupervised else "the rank of the target kernel"


def target_of(kernel: Any, y: Any, memory: Any = None) -> tuple[Any, np.ndarray]:
    """The target kernel of y and its features P, (n, q), about their mean: the kernel is P P'.

    y holds numbers or labels, (n,) or (n, q), or the kernel itself. The kernel is "delta",
    "linear", "precomputed" or one with numbers for its parameters. ValueError where P would take
    more than half of the `memory` of the fit.
    """
    Y = columns_of(y)
    check_room(Y.shape[0], Y.shape[1], memory)
    if isinstance(kernel, str) and kernel == "auto":
        kernel = "linear" if Y.dtype.kind == "f" else "delta"
    if isinstance(kernel, str) and kernel == "delta":
        columns = [np.unique(labels_of(column), return_inverse=True) for column in Y.T]
        check_room(len(Y), sum(len(labels) for labels, _ in columns), memory)
        return kernel, centered(supervised.indicators(columns))
    Y = checked_array(Y, dtype=np.float64, input_name="y")
    if isinstance(kernel, str) and kernel == "linear":
        return kernel, centered(Y)
    if isinstance(kernel, str) and kernel == "precomputed":
        check_gram(Y)
        return kernel, centered(supervised.root_of(Y))
    if isinstance(kernel, str):
        measured = {"gamma": "median"} if KERNELS[kernel].metric else {}
        kernel = KERNELS[kernel](**measured)
    kernel, points = kernel.resolve(Y), np.unique(Y, axis=0)
    kernel.check(Y)
    check_room(len(Y), min(len(points), supervised.MOST_POINTS), memory)
    P, lost = supervised.expanded(kernel, Y, points, parse_bytes(memory) // SHARE)
    if lost > LEFT_OUT:
        tell(
            f"The target kernel was approximated by {P.shape[1]} of the targets: {lost:.1e} of its "
            "trace is lost. Use a wider target kernel."
        )
    return kernel, centered(P)


def refuse_grid(basis: Any, what: str, unknown: str) -> None:
    """Raise ValueError for a Fourier grid, which knows no more than the rows."""
    if basis == "fourier" or isinstance(basis, FourierGrid):
        raise ValueError(
            f"basis='fourier' has no {what}: its sums over rows leave out {unknown}. Use 'auto', "
            "'points', 'landmarks', 'features' or 'columns'."
        )


def check_count(n: float | None, other: int, advice: str) -> None:
    """Raise ValueError unless X, where its rows are counted, and y have as many."""
    if n is not None and round(n) != other:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {round(n):,} rows "
            f"and y has {other:,}. {advice}"
        )


def columns_of(y: Any) -> np.ndarray:
    """y as a table (n, q) of numbers or labels, or an error that says what is wrong."""
    if y is None:
        raise ValueError(
            "SupervisedKernelPCA requires y to be passed, but the target y is None. Pass labels or "
            "numbers, one for each row; KernelPCA needs none."
        )
    Y = table_of(y)
    if Y.ndim != 2 or 0 in Y.shape:
        raise ValueError(
            f"y has shape {Y.shape}, and must hold a label or some numbers for each row. Pass an "
            "array of shape (n,) or (n, q)."
        )
    check_meaning(Y, "y")
    return checked_array(Y, dtype=np.float64, input_name="y") if Y.dtype.kind == "f" else Y


def table_of(y: Any) -> np.ndarray:
    """Anything that a user may pass as a dense array, one column where it has one dimension."""
    check_unmasked(y, "y")
    if is_sparse(y):
        raise ValueError("y is a sparse matrix, and a dense one is needed. Pass y.toarray().")
    try:
        Y = np.asarray(to_numpy(y) if is_foreign(y) else y)
    except ValueError as error:
        raise reason(y, error, "y") from error
    return Y[:, None] if Y.ndim == 1 else Y


def labels_of(column: np.ndarray) -> np.ndarray:
    """Labels that can be compared, none of them missing."""
    if column.dtype.kind != "O":
        return column
    if any(isinstance(label, np.ndarray) for label in column):
        raise ValueError("y holds arrays, and must hold labels. Pass a column for each part.")
    missing = [is_missing(label) for label in column]
    if any(missing):
        raise ValueError(
            f"Input y contains NaN or None, first in row {missing.index(True)}. Leave such rows "
            "out, or give them a label."
        )
    return column.astype(str)


def check_room(n: int, q: int, memory: Any) -> None:
    """Raise ValueError where a target of q columns would take more than its share of the budget."""
    budget, need = parse_bytes(memory), COPIES * SHARE * 8 * n * q
    if need > budget:
        what = f"the target of {n:,} rows in {q:,} columns, one for each class or number"
        raise too_little(budget, need, what, "Give a y of fewer classes. ")


def centered(features: np.ndarray) -> np.ndarray:
    """Target features about their mean, unless they are the same for all rows or too large."""
    P = features - features.mean(axis=0)
    if not np.any(np.abs(P) > 1e-12 * np.max(np.abs(features), initial=0.0)):
        raise ValueError(ONE_TARGET)
    largest = float(np.max(np.abs(P)))
    if not largest * largest * P.size < LARGEST_SUM or largest * largest < SMALLEST_VALUE:
        raise ValueError(
            f"The targets differ by up to {largest:.1e}, and float64 does not hold the sum of "
            "their squares with all digits. Scale y, such as y / np.abs(y).max()."
        )
    return P
