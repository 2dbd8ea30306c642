"""Classical multidimensional scaling as a scikit-learn estimator."""

from dataclasses import KW_ONLY, replace
from functools import partial
from math import prod
from numbers import Real
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from ..bases import BasisRecipe
from ..compute import Array, Same, is_sparse, make_engine, parse_bytes, too_little
from ..exceptions import ModelFileError, tell
from ..files import is_arrow, table_like
from ..fitting.choosing import warn_unconverged
from ..kernels import Kernel
from ..mds import distances, scaling
from ..operators import MatrixDistance
from ..rows import Opening, Rows, in_memory, open_rows
from ..rows.blocks import WHOLE_SHARE
from . import _checks
from ._door import NOT_SAVED, Door, Fitted, kept
from ._sklearn import ClassNamePrefixFeaturesOutMixin, TransformerMixin

# Negative eigenvalues below this share of the sum of |l| are rounding.
ROUNDING = 1e-9
# Coordinates of all rows are kept where the budget holds so many copies.
COORDINATE_COPIES = 8
# Distances that model files hold; matrices and functions of the user are given again.
SAVED = (distances.EuclideanDistance, distances.MetricDistance, distances.LiftedDistance)


class Chosen(BasisRecipe):
    """Stands for landmarks until the problem chooses them, which needs no kernel."""

    def build(self, kernel, X, engine, rng, n_components=None) -> Any:
        return None


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
        of all squared eigenvalues, and the rest is the strain. Of n points
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

    correction : "lingoes" or None, default=None
        Make distances Euclidean by the least additive constant on their squares. It inflates all
        dimensions alike.

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
        eigenvalue is zero. Of rows that are not in memory as what they were, such as a lazy Dask
        array; none of files where it would not fit `memory`: `transform` gives coordinates.

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
        What is known of the error of eigenvalues and coordinates; with landmarks nothing bounds
        it, and the intervals are infinite.

    correction_constant_ : float
        The constant that was added.

    map_ : LinearMap or DistanceMap
        What places new points.

    landmark_indices_ : array of int or None
        Rows that are landmarks.

    n_features_in_ : int
        Columns of X.

    feature_names_in_ : array of str
        Their names, where X has them.

    References
    ----------
    Torgerson (1952); Gower (1966, 1968); de Silva & Tenenbaum (2004); Lingoes (1971).

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

    _title = "classical scaling"
    #: What takes rows that are not in one place, unless it is landmarks.
    _instead = ""
    copy_X = True
    _fitted: ClassVar[dict[str, Fitted]] = Door._fitted | {
        "map_": kept(("LinearMap d p", "DistanceMap a p")),
        "embedding_": Fitted("n p"),
        "eigenvalues_": kept("p"),
        "spectrum_": kept(scaling.Spectrum),
        "goodness_of_fit_": kept(tuple[float, float]),
        "least_eigenvalue_": kept(Real),
        "negative_share_": kept(Real),
        "correction_constant_": kept(Real),
        "strain_": kept(Real),
        "stress_": kept(Real),
        "landmark_indices_": kept("l int or None"),
        "certificate_": Fitted("Certificate p"),
        "_distance": Fitted(SAVED),
        "_anchors": Fitted("a d real sparse"),
        "_points": NOT_SAVED,
    }

    n_components: Annotated[float, _checks.AT_LEAST_1, _checks.SHARE] = 2
    _: KW_ONLY
    dissimilarity: Annotated[Any, str, callable] = "euclidean"
    metric: Annotated[Any, str, callable, None] = None
    metric_params: Annotated[dict[str, Any] | None, dict, None] = None
    landmarks: Annotated[Any, _checks.AT_LEAST_1, _checks.SHARE, _checks.ROW_NUMBERS, None] = None
    correction: Annotated[str | None, _checks.StrOptions({"lingoes"}), None] = None
    tol: float = 0
    random_state: int | np.random.RandomState | None = None
    memory: int | str | None = None
    n_jobs: int | None = None
    verbose: int = 0

    def fit(self, X: Array, y: Any = None) -> Self:
        """Find the coordinates of the points.

        Parameters
        ----------
        X : array-like, memmap or sparse matrix of shape (n_samples, n_features)
            With "precomputed" the distances, (n_samples, n_samples). With `landmarks` rows may be
            anywhere: files larger than `memory`, iterators, Dask, tables on a cluster.
        y : ignored

        Returns
        -------
        self
        """
        return self._fit(X, y)

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
        if self._is_precomputed():
            X = self._array(X, type(self).__name__)
            distances.check_entries(X, "X")
            return self.map_(self._distance.lift(X) if self.correction_constant_ > 0 else X)
        rows, linear = self._open(X, reset=False), isinstance(self.map_, scaling.LinearMap)
        anchors = self.map_.mean[None] if linear else self._anchors
        distance = None if linear else self._distance
        engine = make_engine(memory=self.memory, threads=self.n_jobs)
        return rows.map(scaling.Placing.of(self.map_, distance, anchors, engine).of_rows())

    def summary(self) -> str:
        """The fit in words: eigenvalues, goodness of fit, what is negative, stress."""
        check_is_fitted(self)
        first, second = self.goodness_of_fit_
        how = "" if self.spectrum_.exact else ", estimated"
        p, Y = len(self.eigenvalues_), vars(self).get("embedding_")
        of = f"{len(Y):,} points" if isinstance(Y, np.ndarray) else "points"
        negative = "none, the distances are Euclidean"
        if self.negative_share_ >= ROUNDING:
            share = self.least_eigenvalue_ / max(float(self.eigenvalues_[0]), 1e-300)
            negative = (
                f"{self.negative_share_:.1%} of the sum of |l|, least "
                f"{self.least_eigenvalue_:.4g} or {share:.1%} of the first"
            )
        constant = f"{self.correction}, {self.correction_constant_:.4g}"
        # Earlier model files have no certificate.
        statements = self.certificate_.summary() if "certificate_" in vars(self) else ()
        return "\n".join(
            [
                f"Classical MDS of {of} in {p} dimensions",
                "eigenvalues           " + " ".join(f"{v:.4g}" for v in self.eigenvalues_[:10]),
                f"goodness of fit       {first:.4f} of all |l|, {second:.4f} of the positive{how}",
                f"negative eigenvalues  {negative}{how}",
                f"stress-1              {self.stress_:.4g}",
                f"strain                {self.strain_:.4g}",
                f"additive constant     {constant if self.correction else 'none'}",
                *(f"{name:22}{text}" for name, text in statements),
            ]
        )

    @property
    def dissimilarity_matrix_(self) -> Array:
        """All distances between the training points, (n_samples, n_samples), made on demand."""
        if "_points" not in vars(self):
            raise AttributeError(
                "The model does not keep the points: it is from a file, or they were not in memory."
            )
        if self._has_matrix():
            return self._points
        return np.asarray(self._distance(self._points, self._points))

    def _open(self, X, *, reset: bool) -> Rows:
        """Rows, in one place unless there are landmarks: files that fit are read."""
        if reset and self.metric is not None and self.dissimilarity != "euclidean":
            raise ValueError("Give dissimilarity or metric, not both: they mean the same.")
        if self._has_matrix() or (reset and self.landmarks is None):
            rows: Any = open_rows(X, Opening(self.memory))
            if in_memory(rows) is None:
                instead = "give landmarks=500" + " and rows, not distances" * self._has_matrix()
                array = rows.as_array(type(self).__name__, instead=self._instead or instead)
                named = rows.names is not None and is_arrow(X)
                X = table_like(array, rows.names, X) if named else array
        rows = super()._open(X, reset=reset)
        if reset:
            # Coordinates are in double precision, also of distances in single precision.
            self._dtype = np.dtype(float)
        return rows

    def _check(self, X, reset: bool):
        """X as a matrix of floats; NaN among distances is left to `check_entries`, which says more.

        Where a function of the user takes rows they are left as they are.
        """
        if is_sparse(X):
            X = self._dense(X)
        if not self._is_precomputed():
            X = super()._check(X, reset)
            return self._dense(X) if is_sparse(X) else X  # a frame of sparse columns
        source = X = _checks.in_main_memory(X, type(self).__name__)
        if not (reset and isinstance(X, np.memmap)):  # a file is checked block by block
            options: Any = {"ensure_min_samples": 2, "dtype": [np.float64, np.float32]}
            options = options if reset else {"dtype": np.float64}
            X = _checks.checked_array(X, ensure_all_finite=False, **options)
        index = None if reset else self.landmark_indices_
        if index is not None and X.shape[1] == index.size:
            return X
        validate_data(self, source, reset=reset, skip_check_array=True)
        return X if index is None else X[:, index]

    def _dense(self, X) -> np.ndarray:
        """Sparse rows as dense ones: distances are taken between these."""
        if self._is_precomputed():
            raise ValueError(
                "A sparse matrix of distances does not say whether an entry that it leaves out is "
                "a distance of 0 or unknown. Pass X.toarray() if all of them are 0."
            )
        memory, need = parse_bytes(self.memory), WHOLE_SHARE * 8 * prod(X.shape)
        if need > memory:
            what = f"{X.shape[0]:,} dense rows, between which ClassicalMDS takes distances"
            raise too_little(
                memory,
                need,
                what,
                "Or use KernelPCA(kernel='linear'), which gives the coordinates of Euclidean "
                "distances and multiplies sparse rows as they are. ",
            )
        return _checks.checked_array(X, accept_sparse="csr", dtype=np.float64).toarray()

    @property
    def _types(self) -> Any:  # type: ignore[override]
        return "numeric" if self._asks_blocks() else np.float64

    def _check_precomputed(self, rows, weights) -> None:
        X: Any = rows.as_array("A matrix of distances")
        if self.landmarks is None:
            distances.check_matrix(X)
        elif np.ndim(self.landmarks) == 0 or X.shape[1] != len(self.landmarks):
            distances.check_square(X)

    def _matrix(self, X, engine):
        """The points: the rows, or the row numbers of a matrix of distances."""
        self._points = X
        return np.arange(X.shape[0], dtype=np.intp)[:, None] if self._has_matrix() else X

    def _named_kernel(self, d: int) -> Kernel:
        return scaling.Distances()

    def _problem(self, task, basis) -> scaling.ScalingProblem:
        """The problem of the points, their distance, and the landmarks that it is taken to."""
        rows, matrix, given = task.rows, self._has_matrix(), np.ndim(self.landmarks) > 0
        X: Any = vars(self).get("_points")
        index, marks = None, None
        if "_index" in vars(self):
            index = self._index
        elif matrix or given:
            index = distances.choose_landmarks(self.landmarks, scaling.count_of(rows), task.rng)
        if matrix and index is not None:
            # The columns of a matrix may be the landmarks alone.
            points, judges = task.array, scaling.marks_of(task, None, index).judges
            anchors = points[: index.size] if X.shape[1] == index.size else points[index]
            marks = scaling.Marks(points[index], anchors, index, judges)
        elif self.landmarks is not None:
            marks = scaling.marks_of(task, self.landmarks, index)
        distance: Any
        if matrix:
            distance = MatrixDistance(X)
            # A matrix is checked block by block where it was not checked before.
            distance = distance if marks is None else distances.BlockDistance(distance, "X")
        elif self._asks_blocks():
            distance = distances.BlockDistance(self.dissimilarity)
        else:
            sample = X if marks is None else marks.chosen
            summed = scaling.moments_of_rows(rows.shape[1], task.engine)
            moments = partial(rows.sum, summed, "summing moments", again=True)
            distance = distances.make_distance(self._metric(), self.metric_params, sample, moments)
        if not matrix:
            distances.check_distance(distance, X if marks is None else marks.chosen)
        if marks is None:
            return scaling.scaling_problem(task, distance, self.correction)
        return scaling.landmark_problem(task, distance, self.correction, marks)

    def _attributes(self, result, plan, task) -> dict[str, Any]:
        spectrum, problem, rows, Y = result.spectrum, result.problem, task.rows, result.embedding
        room = task.engine.memory // COORDINATE_COPIES
        fits = rows._elsewhere or 8 * problem.n_rows * len(result.eigenvalues) <= room
        if Y is None and fits:
            Y = rows.map(replace(problem.first, map=result.map).of_rows())
        attributes = super()._attributes(result, plan, task)
        attributes |= {"embedding_": Y, "_points": vars(self).get("_points")}
        return {name: value for name, value in attributes.items() if value is not None} | {
            "goodness_of_fit_": spectrum.goodness_of_fit(result.eigenvalues),
            "least_eigenvalue_": spectrum.least,
            "negative_share_": spectrum.negative_share,
            "correction_constant_": problem.constant,
            "landmark_indices_": problem.marks.index,
            "_anchors": problem.marks.anchors,
            "_distance": problem.distance,
        }

    def _warn(self, result, plan, task) -> None:
        warn_unconverged(result.pairs, task.tol)
        missing, asked = int(np.sum(result.eigenvalues <= 0)), len(result.eigenvalues)
        if missing and result.spectrum.negative_share > ROUNDING:
            tell(
                f"{asked - missing} of {asked} dimensions have a positive eigenvalue; the others "
                "are zero. Ask for fewer dimensions, or use correction='lingoes'."
            )

    def _is_saved(self, name: str) -> bool:
        """Rows of Euclidean data are placed by a rotation, and matrices of distances are given."""
        if isinstance(self.map_, scaling.LinearMap) and name in ("_anchors", "_distance"):
            return False
        if name == "_distance":
            return isinstance(self._distance, SAVED)
        return super()._is_saved(name) and not (name == "_anchors" and self._has_matrix())

    def _complete(self) -> None:
        """Rows that are placed by their distances need the points of these."""
        placed = isinstance(self.map_, scaling.DistanceMap) and not self._has_matrix()
        if placed and not {"_anchors", "_distance"} <= vars(self).keys():
            raise ModelFileError("a map of distances without its points")

    @property
    def basis(self) -> Any:
        """All points, or landmarks, which the rows may be anywhere for."""
        return "points" if self.landmarks is None or self._has_matrix() else Chosen()

    def _has_matrix(self) -> bool:
        """Whether the points are numbers of the rows of a matrix of distances."""
        return self._metric() == "precomputed"

    def _metric(self):
        return self.dissimilarity if self.metric is None else self.metric

    def _asks_blocks(self) -> bool:
        return self.metric is None and callable(self.dissimilarity)

    def _is_precomputed(self) -> bool:
        return self._has_matrix()
