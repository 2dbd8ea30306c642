"""Novelty detection by the reconstruction error of kernel PCA."""

from dataclasses import KW_ONLY
from functools import partial
from math import isqrt
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state

from ..bases import BasisRecipe, FourierGrid
from ..compute import Array, is_sparse, parse_bytes, to_numpy
from ..exceptions import tell, trials
from ..fitting.expansion import KernelExpansion, OfExpansion
from ..kernels import KERNELS, Kernel
from ..rows import float_type, in_type
from ._checks import AT_LEAST_1, SHARE, Interval, Share
from ._door import Door, Fitted, PointKernel, all_or_nothing, kept
from ._output import certificate_of
from ._sklearn import OutlierMixin
from .kernel_pca import BasisName, KernelPCA

# The most components of normal rows, and the fewest rows for each of them.
COMPONENTS, ROWS_PER_COMPONENT = 40, 4
# Errors below this share of the first variance are rounding.
EXPLAINED = 1e-10
# Share of the rows left out of a fit unless told otherwise. On clean data it costs nothing that
# was measurable, and outliers up to that share do no harm.
TRIMMED = 0.1
# Share of the error of a row infinitely far away from which a row is called novel in any case.
FAR = 0.99
# Rows of the trial that finds the typical ones, bytes for a pair of them, and the most rounds.
TRIAL_ROWS, TRIAL_BYTES, CONCENTRATIONS = 2000, 32, 6
# Copies of its rows that a trial, or a block whose errors are computed, may take of the budget.
ROW_COPIES = 16


class Detector(OutlierMixin, Door):
    """What detectors share: components of normal rows, scores of new ones and a verdict."""

    n_components: Annotated[int | float | None, AT_LEAST_1, SHARE, None] = None
    _: KW_ONLY
    kernel: PointKernel = "rbf"
    gamma: float | str | None = "median"
    degree: float = 3
    coef0: float = 1
    kernel_params: dict[str, Any] | None = None
    basis: BasisName | BasisRecipe = "auto"
    false_alarms: Share = 0.05
    random_state: int | np.random.RandomState | None = None
    memory: int | str | None = None
    n_jobs: int | None = None
    device: Any = None

    def decision_function(self, X: Array) -> Array:
        """Scores from the threshold, (n,), where `score_samples` has them: negative if novel."""
        return self._judged(X, "decision")

    def predict(self, X: Array) -> Array:
        """1 for normal rows and -1 for novel ones, (n,), where `score_samples` has scores."""
        return self._judged(X, "label")

    def _within_reach(self, threshold: float, errors: Array, model: KernelPCA) -> float:
        """The threshold, at most the error of a row far from all others."""
        far = far_error(model)
        if far == np.inf and threshold <= EXPLAINED * float(model.explained_variance_[0]):
            tell(
                "The components explain all held-out rows without an error, and no other row can "
                "be told from them by its error. Give a smaller n_components."
            )
        if threshold > far:
            tell(
                f"{int(np.sum(errors > far))} of {len(errors)} held-out rows are far from all "
                "training rows. Such rows are called novel, so expect more false alarms than "
                f"false_alarms={self.false_alarms:g}. Give a smaller gamma; if the rows are "
                "outliers, leave them out."
            )
        return min(threshold, far)

    def _model(self, n, d, rng, **settings: Any) -> KernelPCA:
        """The components of n rows of d columns, to be fitted."""
        r = self.n_components
        kernel = self.kernel if self._encoding is None else self._encoding.kernel(self.kernel)
        # "median" measures a distance, which only some kernels know.
        named = not isinstance(kernel, Kernel)
        measures = isinstance(kernel, str) and KERNELS[kernel].metric
        changes: dict[str, Any] = {
            "n_components": min(r, n - 1) if isinstance(r, Integral) else r,
            "kernel": kernel,
            "gamma": self.gamma if measures or (named and str(self.gamma) != "median") else None,
            # Novel rows lie where no others do.
            "basis": FourierGrid(margin="all") if self.basis == "fourier" else self.basis,
            "random_state": rng.randint(np.iinfo(np.int32).max),
        }
        params, names = self.get_params(deep=False), KernelPCA().get_params(deep=False).keys()
        shared = {name: params[name] for name in params.keys() & names}
        model = KernelPCA(**shared | changes | settings, copy_X=False)
        if r is None:
            # All components would explain every row there is.
            half = (model._named_kernel(d).rank(d) or n) // 2
            model.n_components = max(1, min(COMPONENTS, n // ROWS_PER_COMPONENT, half))
        return model


class NoveltyDetector(Detector):
    """Rows that the components of normal data do not explain (Hoffmann 2007).

    The score of a row is its squared distance, in feature space, to its reconstruction. The
    threshold comes from rows held out of the fit: the errors of training rows are too small to
    set it. Outliers in the training rows would get components of their own, a single row too, and
    look normal; so the rows that the components of the others explain worst are left out of the
    fit. With kernels of a distance, a row far from all training rows is always novel.

    Parameters
    ----------
    n_components : int, float or None, default=None
        Components that describe normal rows; not sensitive between 20 and 80. None is 40, a
        quarter of the rows, or half of all there can be (half of the columns for a linear kernel),
        whichever is least. A float is the share of variance to keep.

    kernel : str, Kernel or callable, default="rbf"
    gamma : float, "median", "mean" or None, default="median"
        As in `KernelPCA`. Widths between the median distance and twice that do equally well;
        a quarter of it makes this a density estimate, which is worse.

    degree, coef0, kernel_params, basis, memory, n_jobs, device
        As in `KernelPCA`.

    false_alarms : float, default=0.05
        Share of normal rows to be called novel. The threshold is the error number
        ceil((m + 1) (1 - false_alarms)) of m held-out rows, so that this is the expected share
        at most, for any data. Its rounding is added, so that the row that sets the threshold is
        normal in any batch. A warning says if more rows than that are far from all others.

    outliers : float or None, default=None
        Share of the training rows that are outliers themselves: left out of the fit, and of the
        rows that set the threshold. None leaves a tenth out of the fit, and counts all held-out
        rows as normal; 0 leaves none out. Not `contamination`, by which scikit-learn's detectors
        call exactly that share of the training rows novel.

    holdout : float, default=0.2
        Share of the rows that set the threshold; more of them, up to half, where so few could
        not hold `false_alarms`.

    random_state : int, RandomState or None, default=None
        Which rows are held out.

    Attributes
    ----------
    certificate_ : Certificate
        That of `model_`.

    model_ : KernelPCA
        Fitted to the rows neither held out nor left out.

    kept_ : array of int
        The numbers of those rows.

    offset_ : float
        Scores below it are novel.

    n_features_in_ : int
        Columns of X.

    feature_names_in_ : array of str
        Their names, where X has them.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import NoveltyDetector
    >>> angle = np.linspace(0, 6.28, 200)
    >>> ring = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> detector = NoveltyDetector(10, gamma=2.0, random_state=0).fit(ring)
    >>> detector.predict([[1.0, 0.0], [0.0, 0.0]])
    array([ 1, -1])
    """

    _fitted: ClassVar[dict[str, Fitted]] = Door._fitted | {
        "model_": kept("KernelPCA d"),
        "kept_": kept("k int"),
        "offset_": kept("(-inf, inf)"),
    }
    certificate_ = certificate_of("model_")
    _least_rows = 3

    _: KW_ONLY
    outliers: Annotated[float | None, Interval(Real, 0, 0.5, closed="left"), None] = None
    holdout: Share = 0.2

    def fit(self, X: Array, y: Any = None) -> Self:
        """Learn normal rows and the threshold.

        Parameters
        ----------
        X : array-like, sparse CSR matrix, path or other source of (n_samples, n_features)
            Normal rows. Where they are more than the budget holds, or on a cluster, 20,000 of them,
            drawn uniformly, are split and learned from.
        y : ignored

        Returns
        -------
        self
        """
        with all_or_nothing(self) as fresh:
            X, numbers = fresh._array_or_sample(X)
            rng = check_random_state(self.random_state)
            n = X.shape[0]
            needed = (1 - self.false_alarms) / (self.false_alarms * n)
            learned, held = split(n, max(self.holdout, min(needed, 0.5)), rng)
            learned = learned[fresh._typical(X, learned, rng)]
            model = fresh._model(len(learned), X.shape[1], rng).fit(X[learned])
            errors = errors_at(model, X, held)
            normal = len(errors) - int((self.outliers or 0) * len(errors))
            # A new error is equally likely to fall into each of the gaps, one more than errors. Of
            # too few errors the largest is taken, which is exceeded with probability 1 / (m + 1).
            place = int(np.ceil((normal + 1) * (1 - self.false_alarms)))
            if place > normal:
                tell(
                    f"{normal} rows set the threshold, too few for false_alarms="
                    f"{self.false_alarms}: expect a share of {1 / (normal + 1):.2g}. Give more "
                    "rows or a larger holdout."
                )
            place = min(place, normal) - 1
            last = np.argsort(errors, kind="stable")[place : place + 1]
            threshold = float(errors[last[0]] + rounding_at(model.expansion_, X[held[last]]))
            offset = -self._within_reach(threshold, errors, model)
            if numbers is not None:
                learned = numbers[learned]
            fresh._adopt({"kept_": learned, "model_": model, "offset_": offset})
        return self

    def score_samples(self, X: Array) -> Array:
        """Minus the reconstruction error of every row, (n,): lower is more novel.

        Of Dask rows a lazy array, of a table on a cluster the table with a column "score".
        """
        return self._judged(X, "score")

    def _judged(self, X, title: str) -> Any:
        rows, dtype = self._open(X, reset=False), int if title == "label" else None
        verb = partial(judged_rows, title=title, offset=self.offset_)
        return rows.map(OfExpansion(self.model_.expansion_, verb, (), title, dtype))

    def _typical(self, X, rows, rng):
        """Which rows of X to learn from: all but the share that is hardest to explain.

        Concentration as in robust covariances (Rousseeuw & Van Driessen 1999): components of the
        half that is nearest to the mean of feature space, then of the rows that these explain
        best, until the rows stay the same; on a sample, whose components judge the others. Held-out
        rows have no say in it, so that their errors are those of new rows.
        """
        share = TRIMMED if self.outliers is None else self.outliers
        n, memory = len(rows), parse_bytes(self.memory)
        if not int(share * n):
            return np.arange(n)
        affordable = memory // (8 * ROW_COPIES * width_of(X))
        most = max(4, min(TRIAL_ROWS, isqrt(memory // TRIAL_BYTES), affordable))
        sample = X[rows[np.sort(rng.permutation(n)[:most])]]
        # Squared distances to the mean of feature space, less its own squared length.
        kernel = self._model(2, X.shape[1], rng)._make_kernel(sample)
        distances = to_numpy(kernel.diag(sample) - 2 * kernel(sample).mean(axis=1))
        chosen = least(distances, max(2, len(distances) // 2))
        for _ in range(CONCENTRATIONS):
            with trials():
                model = self._model(len(chosen), X.shape[1], rng).fit(sample[chosen])
            errors, far = to_numpy(model.reconstruction_error(sample)), far_error(model)
            # All rows far from the chosen ones have the same error. A group of many of them is
            # normal, and nearer to the mean than a group of few.
            errors = np.where(errors < far, errors, far + distances - distances.min())
            before, chosen = chosen, least(errors, len(errors) - int(share * len(errors)))
            if np.array_equal(before, chosen):
                break
        return least(errors_at(model, X, rows), n - int(share * n))


def judged_rows(expansion: KernelExpansion, rows: Any, title: str, offset: float) -> Array:
    """What is made of scores in the type of the rows."""
    return judged(in_type(-expansion.squared_errors(rows), float_type(rows)), title, offset)


def judged(scores: Array, title: str, offset: float) -> Array:
    """A "score" itself, a "decision" from the threshold, or the "label": 1 from there, else -1."""
    above = scores if title == "score" else scores - offset
    return 2 * (above >= 0) - 1 if title == "label" else above


def split(n, share, rng):
    """Rows to learn from and rows held out, at least two and one."""
    held = int(np.clip(round(share * n), 1, n - 2))
    order = rng.permutation(n)
    return np.sort(order[held:]), np.sort(order[:held])


def errors_at(model, X, index):
    """The errors of some rows of X, which are copied a part of the budget at a time."""
    step = max(64, parse_bytes(model.memory) // (8 * ROW_COPIES * width_of(X)))
    blocks = (X[index[i : i + step]] for i in range(0, len(index), step))
    return np.concatenate([to_numpy(model.reconstruction_error(block)) for block in blocks])


def width_of(X) -> int:
    """Numbers that a row takes: its columns, or those of the mean sparse row with its indices."""
    return 2 * (X.nnz // X.shape[0] + 1) if is_sparse(X) else X.shape[1]


def rounding_at(expansion: KernelExpansion, row: Array) -> float:
    """How far two batches may differ in the error of a row, (1, d), by rounding.

    BLAS adds the terms of a product in an order that depends on the number of rows. If that
    changes P = k(x, Z) F by dP, it changes the error k(x, x) - 2 t.P + t M t' by 2 t.dP at most.
    A kernel value is rounded by `Basis.rounding`, and a sum of m of them by about sqrt(m) eps,
    both relative to the norms of x and z. Roundings of entries are taken as independent, so that
    those of a column of P add up to the norm of the column of F. In 500 drawn fits two batches
    differed by a third of this at most.
    """
    basis, (m, columns) = expansion.basis, expansion.frame.shape
    eps = float(np.finfo(basis.precision(row)).eps)
    square = float(to_numpy(basis.norms(row))[0])
    largest = 1.0 if basis.points is None else float(to_numpy(basis.norms(basis.points)).max())
    t = np.append(1.0, np.abs(to_numpy(expansion.scores(row))[0]))
    lengths = np.linalg.norm(to_numpy(expansion.frame), axis=0)
    values = (max(basis.rounding(), eps) + m**0.5 * eps) * (square * largest) ** 0.5
    return 2 * values * float(t @ lengths) + 2 * (columns + 1) * eps * square


def least(values, count: int):
    """Numbers of the least values, in order, (count,)."""
    return np.sort(np.argsort(to_numpy(values), kind="stable")[:count])


def far_error(model: KernelPCA) -> float:
    """The error from which a row is far from all training rows; inf if the kernel has no distance.

    Of a row whose kernel with all others is zero the projection is P = 0, and the error, in the
    terms of `KernelExpansion.squared_errors`, k(x, x) + t M t' with t = [1, -M[0, 1:]].
    """
    basis, M = model.expansion_.basis, to_numpy(model.expansion_.metric)
    if basis.kernel.metric is None:
        return np.inf
    t = np.append(1.0, -M[0, 1:])
    return FAR * (1.0 + float(t @ M @ t))
