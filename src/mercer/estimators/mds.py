"""Classical multidimensional scaling as a scikit-learn estimator."""

from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from ..compute import parse_bytes
from ..compute.arrays import Array, Same
from ..exceptions import tell
from ..mds import distances as given
from ..mds import scaling
from ..operators import MatrixDistance
from ..progress import PassBar
from ._checks import check_file, checked_array, valid_rows
from ._door import Door, all_or_nothing, in_one_place
from ._parameters import AT_LEAST_1, Interval, StrOptions
from ._sklearn import ClassNamePrefixFeaturesOutMixin, TransformerMixin

# Negative eigenvalues below this share of the sum of |l| are rounding.
ROUNDING = 1e-9


@dataclass(eq=False, repr=False)
class ClassicalMDS(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Door):
    """Classical multidimensional scaling: points whose distances are those given.

    A drop-in replacement of `sklearn.manifold.ClassicalMDS` that finds only the eigenpairs
    asked for, needs no n x n matrix, places new points, and says how well the distances fit.
    Also known as principal coordinates analysis and Torgerson scaling. For Euclidean
    distances of data it is PCA. **The input is distances, not squared distances.**

    Parameters
    ----------
    n_components : int or float, default=2
        Dimensions. A number in (0, 1) asks for as many as hold more than this share of the sum
        of all squared eigenvalues, so that the rest is what the strain is made of. Of n points
        there are at most n, as in scikit-learn.

    dissimilarity : str or callable, default="euclidean"
        A metric of `sklearn.metrics.pairwise_distances`; "precomputed", where X is a matrix of
        distances; or a function ``distance(rows, columns)`` of two blocks of rows of X that
        returns the matrix of distances between them. For objects known only by number pass
        ``X = np.arange(n)[:, None]``.

    metric : str, callable or None, default=None
        scikit-learn's name for the same, used instead where given; a function here takes two
        single rows and returns a number.

    metric_params : dict or None, default=None
        Further arguments of the metric.

    landmarks : int, float, array of int or None, default=None
        None for the exact result. A number, or a share in (0, 1), of rows drawn at random, or
        the rows themselves: then only the distances of all rows to these are needed. Take 20
        or more a dimension. With "precomputed" and an array, X may be (n_samples, m).

    correction : "lingoes", "cailliez" or None, default=None
        Make distances Euclidean by an additive constant on their squares (Lingoes) or on
        themselves (Cailliez; up to 1,000 points). It inflates all dimensions alike.

    tol : float, default=0
        Largest residual of an eigenpair as a share of the largest eigenvalue; 0 is 1e-9.

    random_state : int, RandomState or None, default=None
        Landmarks, start vectors and the pairs on which the fit is measured.

    memory : int, str or None, default=None
        Bytes that work arrays may take, e.g. "300MB"; None for half of what is free.

    n_jobs : int or None, default=None
        Threads; None for all cores.

    verbose : int, default=0
        1 shows a progress bar, 2 a line each minute for logs.

    Attributes
    ----------
    embedding_ : array of shape (n_samples, n_components)
        The coordinates, centered, in falling order of variance. A dimension without a positive
        eigenvalue is zero.

    eigenvalues_ : array of shape (n_components,)
        Of the double-centered matrix: the squared norms of the columns of `embedding_`, zero
        where there was no positive one left.

    strain_ : float
        Sum over all pairs of the squared error of the inner products, which the embedding
        makes smallest.

    stress_ : float
        Kruskal's stress-1 of the distances, 0 for a perfect fit. Beyond 2,000 points this and
        `strain_` are taken on pairs drawn at random; with landmarks on pairs with these.

    goodness_of_fit_ : tuple of two floats
        Sum of `eigenvalues_` over the sum of all |l|, and over that of the positive ones: the
        two numbers of R's cmdscale.

    least_eigenvalue_ : float
        The smallest eigenvalue; negative where no points have exactly these distances.

    negative_share_ : float
        Share of the sum of |l| that is negative.

    spectrum_ : Spectrum
        The same numbers, and whether they are exact (up to 1,000 points, and for Euclidean
        data) or estimated.

    certificate_ : Certificate
        What is known of the error of eigenvalues and coordinates; with landmarks an estimate.

    correction_constant_ : float
        The constant that was added.

    landmark_indices_ : array of int or None
        Rows that are landmarks.

    n_features_in_ : int
        Columns of X.

    feature_names_in_ : array of str
        Their names, where X has them.

    References
    ----------
    Torgerson (1952); Gower (1966, 1968); de Silva & Tenenbaum (2004); Lingoes (1971);
    Cailliez (1983).

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import ClassicalMDS
    >>> road = np.array([[0.0, 3.0, 4.0], [3.0, 0.0, 5.0], [4.0, 5.0, 0.0]])
    >>> model = ClassicalMDS(n_components=2, dissimilarity="precomputed").fit(road)
    >>> Y = model.embedding_
    >>> float(np.linalg.norm(Y[1] - Y[2]).round(6))
    5.0
    >>> np.allclose(model.transform(road), Y)
    True
    """

    #: Whether X held distances to the landmarks alone; earlier model files do not say.
    _rectangular = False

    _sparse = False
    _parameter_constraints: ClassVar[dict] = Door._parameter_constraints | {
        "n_components": [AT_LEAST_1, Interval(Real, 0, 1)],
        "dissimilarity": [str, callable],
        "metric": [str, callable, None],
        "metric_params": [dict, None],
        "landmarks": [AT_LEAST_1, Interval(Real, 0, 1), "array-like", None],
        "correction": [StrOptions({"lingoes", "cailliez"}), None],
    }

    n_components: float = 2
    _: KW_ONLY
    dissimilarity: Any = "euclidean"
    metric: Any = None
    metric_params: dict[str, Any] | None = None
    landmarks: Any = None
    correction: str | None = None
    tol: float = 0
    random_state: int | np.random.RandomState | None = None
    memory: int | str | None = None
    n_jobs: int | None = None
    verbose: int = 0

    @all_or_nothing
    def fit(self, X: Array, y: Any = None) -> Self:
        """Find the coordinates of the points.

        Parameters
        ----------
        X : array-like or memmap of shape (n_samples, n_features)
            With "precomputed" the distances, (n_samples, n_samples).
        y : ignored

        Returns
        -------
        self
        """
        X = self._validate(in_one_place(X, self.memory, "ClassicalMDS"))
        rng = self._make_rng()
        index = given.choose_landmarks(self.landmarks, X.shape[0], rng)
        distance, points, anchors = self._make_distance(X, index)
        given_number = isinstance(self.n_components, Integral)
        # n points have no more than n eigenvalues.
        p = min(int(self.n_components), X.shape[0]) if given_number else scaling.FIRST_DIMENSIONS
        with PassBar(self.verbose, title="scaling") as progress:
            engine: Any = self._make_engine(on_tiles=progress.tiles)
            settings = (p, self.tol, self.correction, engine, rng, progress)
            task = scaling.Task(distance, points, anchors, index, *settings)
            if not given_number:
                p = scaling.dimensions_for(task, float(self.n_components))
                task = replace(task, n_components=p)
            found = scaling.find_coordinates(task)
        self.map_, self.embedding_, self.eigenvalues_ = found.map, found.embedding, found.values
        self.spectrum_, self.certificate_ = found.spectrum, found.certificate
        self.goodness_of_fit_ = found.spectrum.goodness_of_fit(found.values)
        self.least_eigenvalue_ = found.spectrum.least
        self.negative_share_ = found.spectrum.negative_share
        self.correction_constant_ = found.constant
        misfit = scaling.measure_misfit(task, found.distance, found.embedding)
        self.strain_, self.stress_ = misfit
        self._distance, self._anchors = found.distance, task.anchors
        self.landmark_indices_ = task.index
        missing, asked = int(np.sum(found.values <= 0)), len(found.values)
        if missing and self.negative_share_ > ROUNDING:
            tell(
                f"Only {asked - missing} of {asked} dimensions have a "
                "positive eigenvalue; the others are zero. Ask for fewer, or use "
                "correction='lingoes'."
            )
        return self

    def fit_transform(self, X: Same, y: Any = None) -> Same:
        """Find the coordinates of the points and return them, (n_samples, n_components)."""
        return self.fit(X, y).embedding_

    def transform(self, X: Same) -> Same:
        """Coordinates of new points from their distances to the training points (Gower).

        Nothing is fitted again, and a training point gets its place in `embedding_`.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            With "precomputed" the distances to the training points, (n, n_samples), or with
            landmarks to these alone, (n, m).

        Returns
        -------
        array of shape (n, n_components)
        """
        check_is_fitted(self)
        X = in_one_place(X, self.memory, "ClassicalMDS")
        if not self._is_precomputed():
            X = valid_rows(self, X, reset=False, dtype=self._dtype)
            return self.map_(X) if isinstance(self.map_, scaling.LinearMap) else self._place(X)
        source, X = X, checked_array(X, dtype=np.float64, ensure_all_finite=False)
        index = self.landmark_indices_
        if index is None or X.shape[1] != index.size:
            validate_data(self, source, reset=False, skip_check_array=True)
            X = X if index is None or self._rectangular else X[:, index]
        given.check_entries(X, "X")
        return self.map_(self._distance.lift(X) if self.correction_constant_ > 0 else X)

    def summary(self) -> str:
        """The fit in words: eigenvalues, goodness of fit, what is negative, stress."""
        check_is_fitted(self)
        first, second = self.goodness_of_fit_
        how = "" if self.spectrum_.exact else ", estimated"
        n, p = self.embedding_.shape
        negative = "none, the distances are Euclidean"
        if self.negative_share_ >= ROUNDING:
            share = self.least_eigenvalue_ / max(float(self.eigenvalues_[0]), 1e-300)
            negative = (
                f"{self.negative_share_:.1%} of the sum of |l|, least "
                f"{self.least_eigenvalue_:.4g} or {share:.1%} of the first"
            )
        constant = f"{self.correction}, {self.correction_constant_:.4g}"
        known = vars(self).get("certificate_")  # earlier model files have none
        return "\n".join(
            [
                f"Classical MDS of {n:,} points in {p} dimensions",
                "eigenvalues           " + " ".join(f"{v:.4g}" for v in self.eigenvalues_[:10]),
                f"goodness of fit       {first:.4f} of all |l|, {second:.4f} of the positive{how}",
                f"negative eigenvalues  {negative}{how}",
                f"stress-1              {self.stress_:.4g}",
                f"strain                {self.strain_:.4g}",
                f"additive constant     {constant if self.correction else 'none'}",
                *(f"{name:22}{text}" for name, text in (known.summary() if known else ())),
            ]
        )

    @property
    def dissimilarity_matrix_(self) -> Array:
        """All distances between the training points, (n_samples, n_samples), made on demand."""
        if "_points" not in vars(self):
            raise AttributeError("A model file does not keep the points. Fit again to have them.")
        if self._is_precomputed():
            return self._points
        return np.asarray(self._distance(self._points, self._points))

    def _validate(self, X):
        """X as a matrix of floats, or as it is where a function of the user takes its rows."""
        self._validate_params()
        if self.metric is not None and self.dissimilarity != "euclidean":
            raise ValueError("Give dissimilarity or metric, not both: they mean the same.")
        matrix = self._is_precomputed()
        self._dtype: Any = "numeric" if self._asks_blocks() else np.float64
        if isinstance(X, np.memmap):
            if not matrix:
                check_file(X)
            X = validate_data(self, X, skip_check_array=True)
        else:
            kinds = [np.float64, np.float32] if matrix else self._dtype
            kept: dict[str, bool] = {"ensure_all_finite": False} if matrix else {"copy": True}
            X = valid_rows(self, X, dtype=kinds, ensure_min_samples=2, **kept)
        if not matrix:
            return X
        self._rectangular = np.ndim(self.landmarks) == 1 and X.shape[1] == len(self.landmarks)
        if self.landmarks is None:
            given.check_matrix(X)
        elif not self._rectangular:
            given.check_square(X)
        return X

    def _make_distance(self, X, index):
        """The distance, its points, and those of them that distances are taken to."""
        self._points, points = X, X
        matrix = self._is_precomputed()
        distance: Any
        if matrix:
            # Checked as a whole already, or block by block; its points are row numbers.
            distance, points = MatrixDistance(X), np.arange(X.shape[0], dtype=np.intp)[:, None]
            if self.landmarks is not None:
                distance = given.BlockDistance(distance, "X")
        elif self._asks_blocks():
            distance = given.BlockDistance(self.dissimilarity)
        else:
            distance = given.make_distance(self._metric(), self.metric_params, X)
        if not matrix:
            given.check_distance(distance, X)
        if index is None:
            return distance, points, points
        anchors = points[: index.size] if matrix and self._rectangular else points[index]
        return distance, points, anchors

    def _place(self, X):
        """Coordinates of new rows, in blocks within the budget."""
        out = np.empty((X.shape[0], self.embedding_.shape[1]))
        rows = max(1, parse_bytes(self.memory) // (32 * len(self._anchors)))
        for start in range(0, X.shape[0], rows):
            block = slice(start, start + rows)
            out[block] = self.map_(self._distance(X[block], self._anchors))
        return out

    def _metric(self):
        return self.dissimilarity if self.metric is None else self.metric

    def _asks_blocks(self) -> bool:
        return self.metric is None and callable(self.dissimilarity)

    def _is_precomputed(self) -> bool:
        return isinstance(self._metric(), str) and self._metric() == "precomputed"
