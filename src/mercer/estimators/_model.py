"""A fitted model: scores, errors and pre-images of every method that ends in an expansion."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, cast

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from ..compute import array_namespace, is_sparse, on_device_of, parse_bytes, restore, to_numpy
from ..compute.arrays import Array, Same, is_on_device
from ..exceptions import ModelFileError, tell
from ..fitting.choosing import Plan, warn_of_width, width_rows
from ..fitting.expansion import errors_of, scores_of
from ..fitting.functions import SurveyOf, sampled_numbers
from ..fitting.moments import ExtraColumn
from ..fitting.task import MODEL_ROWS
from ..kernels import Kernel, Linear, OnColumns, Precomputed, Scaled
from ..kernels.base import on_host
from ..kernels.function import Objects
from ..preimage import Preimage, choose_preimage
from ..progress import PassBar
from ..relatives import explaining
from ..rows import (
    ArrayRows,
    OfExpansion,
    Opening,
    Rows,
    float_type,
    in_type,
    like_of,
    like_rows,
    open_rows,
)
from ._checks import LARGEST_SUM, plain
from ._door import Door, Fitted, kept, not_saved
from ._inverse import Inverse, check_dense, checked_scores
from ._output import contained
from ._sklearn import ClassNamePrefixFeaturesOutMixin, TransformerMixin

# Rows on which the spread of columns is measured.
SCALE_ROWS = 2000
# Share of the budget that sparse rows may take when they are made dense to be denoised.
DENSE_SHARE = 4
# The width of the kernel is checked if the first eigenvalue is at most FLAT times the mean of all,
# and there are FEWEST rows or more.
FLAT, FEWEST = 4, 10
# Variance below this share of the kernel's own size is rounding.
ZERO_VARIANCE = 1e-14
# Largest inner products of directions, whose squares and sums are numbers.
LONGEST_DIRECTION = 1e100
NO_VARIANCE = (
    "The data have no variance in feature space, for example because all rows are equal. Every "
    "component is zero."
)
INDEFINITE = (
    "{} is indefinite on these data: its matrix has negative eigenvalues. Eigenvalues and scores "
    "that are computed from a part of the rows may then be far too large. Use basis='points' in "
    "kernel PCA, or a kernel that is positive semidefinite."
)


@dataclass(eq=False, repr=False, kw_only=True)
class Scores:
    """`transform`, for rows of any kind, by a kernel and within a budget.

    Outside of scikit-learn's classes: those would wrap a path or a lazy array in a data frame.
    """

    #: Where scores go is no metadata of the rows.
    __metadata_request__transform: ClassVar[dict] = {"out": UNUSED}

    kernel: str | Kernel | Callable[..., Any] = "linear"
    gamma: float | str | None = None
    degree: float = 3
    coef0: float = 1
    kernel_params: dict[str, Any] | None = None
    random_state: int | np.random.RandomState | None = None
    memory: int | str | None = None
    n_jobs: int | None = None

    # self is Any: the classes that this one is mixed with are not known here.
    def transform(self: Any, X: Same, out: Any = None) -> Same:
        """Scores of the rows of X along the components.

        Parameters
        ----------
        X : array-like, sparse CSR matrix, memmap, path or other source of (n, n_features)
            With ``kernel="precomputed"`` the kernel between new and training rows,
            (n, n_samples). A Dask array or dataframe is scored where its chunks are.
        out : str, Path or None, default=None
            A ``.npy``, ``.parquet`` or ``.csv`` file to write the scores to, block by block. It
            appears when all are written, and not at all if something fails.

        Returns
        -------
        array of shape (n, n_components), or the Path of the file
            In the array library of X. Of Dask rows a lazy Dask array, of Arrow data an Arrow
            table, of a polars frame a polars frame, unless `set_output` asks for something else.
        """
        rows = self._open(X, reset=False)
        function = scores_of(self.expansion_)
        scores = rows.map(function, out, self.get_feature_names_out())
        return scores if out is not None else contained(self, scores, X)


class KernelModel(Scores, TransformerMixin, Door):
    """Scores, errors and pre-images of every method that ends in a kernel expansion."""

    _fitted: ClassVar[dict[str, Fitted]] = Door._fitted | {
        "kernel_": kept(Kernel),
        "gamma_": kept(("(-inf, inf)", "g")),
        "expansion_": kept("KernelExpansion d r"),
        "certificate_": kept("Certificate r"),
        "eigenvalues_": kept("r"),
        "explained_variance_": kept("r"),
        "explained_variance_ratio_": kept("r"),
        "plan_": Fitted(Plan),
        "X_sample_": Fitted("s d sparse"),
        "_weights": Fitted("w or None"),
        **not_saved("eigenvectors_ X_fit_ landmarks_ significance_ _way_back _step"),
    }

    _: KW_ONLY
    center: bool = True
    device: Any = None
    verbose: int = 0
    checkpoint: str | PathLike[str] | None = None

    def reconstruction_error(self, X: Array) -> Array:
        """Squared feature-space distance of every row to its reconstruction, (n,).

        Zero for rows that the components explain, large for rows unlike the training data.
        """
        return self._open(X, reset=False).map(errors_of(self.expansion_))

    def unit_features(self, X: Array) -> Array:
        """Projections by coefficient vectors of unit length, U'k'(x), as some papers define them.

        The scores times the roots of the eigenvalues: leading components weigh more than their
        variance. Equation 6 of Shi, Guo & Xue (2009); proper scores, `transform`, classify better.
        """
        roots = np.sqrt(np.maximum(to_numpy(self.eigenvalues_).astype(float), 0.0))
        rows = self._open(X, reset=False)
        function = scores_of(self.expansion_.stretched(roots))
        return contained(self, rows.map(function, names=self.get_feature_names_out()), X)

    def score(self, X: Array, y: Any = None) -> float:
        """Minus the mean reconstruction error of X in feature space.

        Compares methods at one kernel. It must not be used to choose gamma: the error
        falls without end as the kernel widens, whatever the data.
        """
        rows = self._open(X, reset=False)
        total, count = rows.sum(OfExpansion(self.expansion_, error_sums, (), "errors"), "errors")
        return -float(total / count)

    def inverse_transform(self, X: Same, *, clip: bool = False) -> Same:
        """Rows whose scores are near X, the mean of feature space restored.

        With ``fit_inverse_transform=True`` exactly scikit-learn's, by the regression that fit
        learned; else by the method `preimage` names, which `preimage_` shows. Scores far outside
        those of the training rows are taken as the nearest that are not, with a warning.

        Parameters
        ----------
        X : array-like of shape (n, n_components)
        clip : bool, default=False
            Keep every entry within the range of its column in the training rows (of those that
            the model has kept).

        Returns
        -------
        array of shape (n, n_features)
        """
        check_is_fitted(self)
        if self.fit_inverse_transform:
            S, facts = checked_scores(X, memory=self.memory), vars(self)
            if "X_transformed_fit_" not in facts:
                raise NotFittedError(
                    "fit_inverse_transform=True was set after the fit, and nothing was learned for "
                    "it. Fit again, or set it to False: preimage= needs no fit."
                )
            centers = facts["X_transformed_fit_"]
            centers = centers if is_on_device(centers) else to_numpy(centers)
            K = score_kernel(self.kernel_)(on_device_of(S, centers), centers)
            return restore(K @ on_device_of(facts["dual_coef_"], K), X)
        S = checked_scores(X, self.expansion_.n_components, self.memory)
        inverse, engine = self._inverse(), self.expansion_.basis.engine
        reached = inverse.within_reach(engine.asarray(S, np.float64))
        Z = inverse.find(reached, denoising=False)
        Z = inverse.clipped(Z) if clip else Z
        return restore(in_type(Z, float_type(S)), X)

    @property
    def preimage_(self) -> Preimage:
        """The method of `inverse_transform`, with what "auto" has chosen."""
        check_is_fitted(self)
        return choose_preimage(self.preimage, self.expansion_.basis)

    def denoise(
        self, X: Same, *, compensate: bool = True, noise: float | None = None, clip: bool = False
    ) -> Same:
        """Rows of X moved towards their pre-images, as far as pays.

        Projected on the components a row loses noise, and also what the components leave out. So
        it moves only a share of the way to its pre-image, and another to what linear PCA makes of
        it whose scores are shrunk by the noise (Wiener); the two shares have the least estimated
        error, by Stein's formula. It is in expectation no larger than that of the rows themselves.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Noisy rows, for a model that was fitted to clean ones, or to equally noisy ones.
        compensate : bool, default=True
            Undo the shrinkage that noise causes in the scores of a Gaussian kernel. Other
            kernels are not compensated.
        noise : float or None, default=None
            Standard deviation of the noise of each entry. None to estimate it: by how much the rows
            differ from those of the fit, or, if they do not, by what these have in directions where
            nothing but noise seems to be; rows without noise are returned as they are, with a
            warning. ``np.inf`` for the pre-images themselves, as published: also worse than the
            rows with little noise.
        clip : bool, default=False
            As of `inverse_transform`.

        Returns
        -------
        array of shape (n, n_features)
        """
        if noise is not None and not (isinstance(noise, Real) and noise >= 0):
            raise ValueError(
                f"noise={noise!r} must be a standard deviation: a number that is not negative, "
                "np.inf for pre-images as published, or None where it is not known."
            )
        original, X = X, self._array(X, "denoise")
        if is_sparse(X):
            check_dense(X.shape[0], X.shape[1], self.expansion_.basis.engine.memory, DENSE_SHARE)
            original = X = cast(Any, X).toarray()
        self.kernel_.check(X)
        inverse = self._inverse()
        Z = inverse.denoised(X, compensate, None if noise is None else float(noise))
        Z = inverse.clipped(Z) if clip else Z
        return restore(in_type(Z, float_type(X)), original)

    def attribute(self, X: Array = None, *, max_rows: int | None = 2000) -> explaining.Attribution:
        """Which columns drive which component: gradients of the scores, averaged over rows.

        In closed form, for every kernel that has a gradient and every basis (KPCA-IG; Briscik,
        Dillies & Dejean 2023), in one pass and within the budget. Columns of a table with
        categories are exchanged between rows instead, one after the other.

        Parameters
        ----------
        X : array-like, path or other source of (n, n_features), or None
            Rows where the gradients are taken; None for the training rows that the model has. Units
            are the standard deviations of these in any case.
        max_rows : int or None, default=2000
            Rows at most, drawn uniformly: a mean over 2,000 is good to two digits. None for all.

        Returns
        -------
        Attribution
            A table by column and component, with the names of both; `mercer.plot.attribution`
            draws it.
        """
        check_is_fitted(self)
        self._check_has_rows("attribute")
        if isinstance(self._encoding, Objects):
            raise ValueError(
                "Objects have no columns to explain components by. Fit to numbers that describe "
                "the objects, in columns."
            )
        if max_rows is not None and not (isinstance(max_rows, Integral) and max_rows > 0):
            raise ValueError(f"max_rows={max_rows!r} must be a whole number above 0, or None.")
        rows = self._rows_or_own(X)
        if max_rows is not None:
            rows = ArrayRows(rows.sample(int(max_rows), 0), memory=self.memory)
        if self._encoding is not None:
            sums = explaining.permuted_sums(self.expansion_, rows.as_array("attribute"))
            names, units = self._encoding.names, np.ones(self.n_features_in_)
            return explaining.Attribution.of(sums, units, names, self.get_feature_names_out())
        room = self.expansion_.basis.engine.memory // (32 * self.n_features_in_)
        sample, w = self._sampled(None, max(2, min(SCALE_ROWS, room)), 0)
        mean = np.average(sample, axis=0, weights=w)
        scale = np.sqrt(np.average((sample - mean) ** 2, axis=0, weights=w))
        gradients = OfExpansion(self.expansion_.here(), explaining.gradient_sums, (), "gradients")
        sums = rows.sum(gradients, "gradients")
        names = vars(self).get("feature_names_in_", [f"x{i}" for i in range(self.n_features_in_)])
        return explaining.Attribution.of(sums, scale, names, self.get_feature_names_out())

    def significance(
        self,
        X: Array = None,
        *,
        level: float = 0.05,
        n_permutations: int = 39,
        n_bootstrap: int = 50,
        max_rows: int = 1000,
        random_state: int | np.random.RandomState | None = None,
    ) -> explaining.Significance:
        """How many components stand above noise, and how stable they are.

        Eigenvalues of this model's kernel are compared with those of rows whose columns were
        shuffled one by one (parallel analysis), and components with those of rows drawn with
        replacement (the bootstrap). For any basis: the kernel matrix of a sample is taken.

        Parameters
        ----------
        X : array-like, path or other source of (n, n_features), or None
            None for the training rows that the model has, with the weights of the fit.
        level : float, default=0.05
            Probability at most that a component of independent columns is called real.
        n_permutations : int, default=39
            Shuffles, 1 / level - 1 at least.
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
        if self._is_precomputed() or self.n_features_in_ < 2:
            raise ValueError(
                "significance shuffles the columns one by one. It needs two columns or more, and "
                "a kernel that is computed from them."
            )
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
        engine = self.expansion_.basis.engine
        explaining.check_significance(level, n_permutations, n_bootstrap, max_rows)
        size = explaining.sample_rows(engine.memory, self.n_features_in_, max_rows)
        seed = int(rng.integers(2**62))
        sample, w = self._sampled(X, size, seed)
        self.kernel_.check(sample)
        draws: dict[str, Any] = {"n_permutations": n_permutations, "n_bootstrap": n_bootstrap}
        model = self.kernel_, sample, self.expansion_.n_components, self.center
        with engine.single_blas():
            self.significance_ = explaining.significance_of(*model, rng, w, level=level, **draws)
        return self.significance_

    def _rows_or_own(self, X) -> Rows:
        """The rows of X, or those of the fit that the model has kept: all, or a sample."""
        if X is not None:
            return self._open(X, reset=False)
        rows = vars(self).get("X_fit_" if self.expansion_.basis.spans_data else "X_sample_")
        rows = self.expansion_.basis.points if rows is None else rows
        # Rows of the fit were checked then, and have no names to compare.
        return open_rows(rows, Opening(self.memory))

    def _sampled(self, X, size: int, seed: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Uniform rows of X, or of the fit for None, and how often each counts; None if alike."""
        sample = on_host(self._rows_or_own(X).sample(size, seed), dense=True)
        w = vars(self).get("_weights") if X is None else None
        if w is None:
            return sample, None
        w = w[sampled_numbers(len(w), size, seed)]
        return sample[w > 0], w[w > 0]

    def to_onnx(self, path: str | PathLike[str], *, dtype: str = "float32") -> None:
        """Write the transform as an ONNX graph; see `mercer.saving.export_onnx`.

        For landmarks and random features, with the package ``onnx``.

        Parameters
        ----------
        path : str or path
        dtype : "float32" or "float64", default="float32"
            Type of the rows that the graph takes and of the scores that it gives.
        """
        from ..relatives.onnx import export_onnx

        export_onnx(self, path, dtype=dtype)

    get_feature_names_out: ClassVar[Any] = ClassNamePrefixFeaturesOutMixin.get_feature_names_out

    def _attributes(self, result, plan, task) -> dict[str, Any]:
        expansion, pairs, problem = result.expansion, result.pairs, result.problem
        basis, weight, values = expansion.basis, problem.weight, pairs.values
        rows, certificate = task.rows, result.certificate
        if (error := certificate.score_error) is not None:
            # Scores that underflow in the type of the rows are worth nothing.
            info = np.finfo(rows.dtype)
            least = weight**0.5 * float(info.tiny / info.eps)
            error = np.where(np.sqrt(values) > least, error, np.nan)
            certificate = replace(certificate, score_error=error)
        degrees = weight - 1 if self.center and weight > 1 else weight
        attributes = variances_along(values, degrees, problem.total, rows) | {
            "kernel_": basis.kernel,
            "gamma_": self._gamma_of(basis.kernel, rows.shape[1]),
            "certificate_": certificate,
            "plan_": plan,
        }
        if result.vectors is not None:
            attributes["eigenvectors_"] = like_rows(result.vectors, rows)
            attributes["X_fit_"] = basis.points if task.array is None else task.array
        if not basis.spans_data:
            sample = problem.model_rows
            # A sample of all rows is the caller's array.
            sample = copied(sample) if sample.shape[0] >= problem.count else sample
            attributes["X_sample_"] = sample
            if result.vectors is None:
                expansion = expansion.stretched(expansion.signs(sample, problem.count))
            if basis.points is not None:
                attributes["landmarks_"] = restore(basis.points, like_of(rows))
        if isinstance(task.weights, ExtraColumn):
            function = SurveyOf(MODEL_ROWS, task.seed, task.weights)
            survey = rows.sum(function, "weights of sampled rows").sample
            attributes |= {"X_sample_": survey.rows, "_weights": survey.weights}
        elif task.weights is not None:
            n = len(task.weights)  # all rows, or those that the model keeps
            most = n if basis.spans_data else MODEL_ROWS
            attributes["_weights"] = task.weights[sampled_numbers(n, most, task.seed)]
        return attributes | {"expansion_": expansion}

    def _warn(self, result, plan, task) -> None:
        problem = result.problem
        if self.certificate_.indefinite and not problem.basis.spans_data:
            tell(INDEFINITE.format(self.kernel_))
        elif problem.total <= ZERO_VARIANCE * problem.scale:
            tell(NO_VARIANCE)
        self._warn_of_width(problem.count)

    def _warn_of_width(self, count: int) -> None:
        """Warn where the kernel matrix of so many rows is the identity, or nearly so."""
        shares = to_numpy(self.explained_variance_ratio_)[:1]
        flat = count >= FEWEST and shares.size and 0 < shares[0] * count <= FLAT
        if flat and self.kernel_.metric is not None:
            rows = self._rows_or_own(None)
            most = width_rows(rows.shape[1], parse_bytes(self.memory))
            warn_of_width(self.kernel_, on_host(rows.sample(most, 0)), count, alike=False)

    def _gamma_of(self, kernel: Kernel, d: int) -> Any:
        """The width of a kernel, or those of its columns; without any the parameter or 1 / d."""
        kernel = kernel.kernel if isinstance(kernel, Scaled) else kernel
        gamma = kernel.widths if isinstance(kernel, OnColumns) else kernel.gamma
        fallback = self.gamma if isinstance(self.gamma, Real) else 1.0 / d
        return fallback if gamma is None else gamma

    def _bar_unasked(self) -> PassBar:
        """Lines in a terminal while a batch is learned that takes more than ten seconds."""
        return PassBar(-1 if self.verbose else 0, passes=1, title="learning rows")

    def _complete(self) -> None:
        """Set what follows from the expansion: its points, and its eigenvectors.

        A = U L^{-1/2}, and U is centered as A is.
        """
        expansion, facts = self.expansion_, vars(self)
        basis, frame = expansion.basis, expansion.frame
        points = basis.points
        parts = frame, expansion.metric
        if max(float(abs(to_numpy(part)).max(initial=0.0)) for part in parts) > LARGEST_SUM:
            raise ModelFileError("directions or inner products that are far too large")
        if float(abs(to_numpy(expansion.metric)[1:, 1:]).max(initial=0.0)) > LONGEST_DIRECTION:
            raise ModelFileError("directions that are far from unit length")
        if self._is_precomputed() != isinstance(self.kernel_, Precomputed):
            raise ModelFileError("a kernel of another kind than its parameter")
        if basis.spans_data:
            U = frame[:, 1:] * np.sqrt(np.maximum(self.eigenvalues_, 0))
            facts["eigenvectors_"] = U.astype(self.eigenvalues_.dtype)
        elif points is None and "X_sample_" not in facts:
            raise ModelFileError("a basis without points, and no sample of the rows")
        if points is not None:
            facts["X_fit_" if basis.spans_data else "landmarks_"] = to_numpy(points)
        rows = facts.get("X_fit_" if basis.spans_data else "X_sample_")
        weights = facts.get("_weights")
        fit = rows is None or weights is None or weights.shape == rows.shape[:1]
        if not fit or (weights is not None and not (weights >= 0).all()):
            raise ModelFileError("weights of other rows than those of the model")

    def _inverse(self) -> Inverse:
        """The way back to rows, made once for an expansion."""
        if self._encoding is not None:
            raise ValueError(
                "The model was fitted to objects or to a data frame of more than numbers, and "
                "these have no pre-images. Fit to columns of numbers without missing entries."
            )
        basis, facts = self.expansion_.basis, vars(self)
        self._check_preimage(basis)
        inverse: Inverse | None = facts.get("_way_back")
        if inverse is None or not inverse.serves(self.expansion_, plain(self.preimage)):
            rows = facts.get("X_fit_" if basis.spans_data else "X_sample_")
            inverse = facts["_way_back"] = Inverse(self.expansion_, rows, plain(self.preimage))
        return inverse

    def __getstate__(self):
        # What was made for pre-images is made again when needed.
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_way_back"}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def variances_along(values, degrees: float, total: float, rows: Rows) -> dict[str, Any]:
    """Eigenvalues, variances and their shares of the total, in the type of the rows."""
    with np.errstate(over="ignore"):  # the total of an indefinite kernel may be nothing
        ratio = np.minimum(values / max(total, np.finfo(float).tiny), 1.0)
    return {
        "eigenvalues_": like_rows(values, rows),
        "explained_variance_": like_rows(values / degrees, rows),
        "explained_variance_ratio_": like_rows(ratio, rows),
    }


def error_sums(expansion: Any, rows: Any) -> np.ndarray:
    """The sum of the squared errors of rows, and their number."""
    errors = to_numpy(expansion.squared_errors(rows))
    return np.array([errors.sum(dtype=float), len(errors)])


def copied(rows):
    """Rows of any library in memory of their own."""
    return rows.copy() if is_sparse(rows) else array_namespace(rows).asarray(rows[:], copy=True)


def score_kernel(kernel: Kernel) -> Kernel:
    """The kernel between scores, to which the center of the rows does not belong."""
    return Linear() if isinstance(kernel, Linear) else kernel
