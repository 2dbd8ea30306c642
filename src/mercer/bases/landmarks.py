"""Landmarks as the basis: a few chosen points stand for all (Nystroem)."""

import sys
from bisect import bisect
from collections.abc import Callable
from copy import copy
from dataclasses import KW_ONLY, dataclass, field
from math import isqrt
from numbers import Integral
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from ..compute import array_namespace, format_bytes, is_sparse, on_device_of, to_numpy
from ..compute.arrays import Array, dtype_name, some_of
from ..exceptions import tell
from ..kernels import Kernel
from ..kernels.base import float_dtype
from ..selectors import RPCholesky, Selector
from ..selectors.sampling import MIN_POOL, POOL_PER_ATOM, default_selector
from .base import Basis, BasisRecipe, check_moments
from .points import DRAFT_SPREAD, PointBasis, wide_rows

# Landmarks for each component when no size is given, and the least: at 200 the default
# selector leaves about 1 % of covtype's variance.
PER_COMPONENT, LEAST = 10, 200
# First size tried, and growth of it, when an error is asked for.
FIRST_SIZE, GROWTH = 64, 2
# Bytes of tiles and rows that a selector needs beside its `work_bytes`.
# Values that the check of symmetry of an expensive kernel takes.
CHECKED = 16
TILE_BYTES = 4 * 10**6
# Landmarks that a sample must serve when their number follows from an error.
GROWN = 2000


@dataclass(eq=False, repr=False)
class Landmarks(BasisRecipe):
    """A basis of chosen points: Nystroem kernel PCA.

    With Z the landmarks and K_ZZ = V L V', a row has the coordinates ``L^{-1/2} V' k(Z, x)`` in an
    orthonormal basis of their span. Kernel PCA of the projected rows, correctly centered, is PCA
    of these coordinates: one pass over the data for their mean and m x m scatter, and a model
    that transforms new rows from the m landmarks alone. What the span leaves out, tr(K - K_nys),
    is known exactly and bounds the error of every eigenvalue (`certificate_`).

    Give one of `size`, `error`, `points` and `indices`, or none.

    Parameters
    ----------
    size : int, float or None
        Number of landmarks, or their share of the rows; None for ten a component and at
        least 200. Fewer come back, with a warning, where the data have no more distinct or
        linearly independent rows.
    selector : Selector or None
        How they are chosen, see `mercer.selectors`; None takes less time than the fit: full greedy
        within a uniform pool, from 300 landmarks on random pivots. `TwoStage()` takes longer and
        loses less; `KMeans()` has the lowest error where landmarks need not be rows.
    error : float or None
        Instead of a size: grow until the certified share of energy that is lost,
        ``tr(K - K_nys) / tr K``, is at most this. Each trial is a pass over the data.
    points : array or sparse matrix of shape (m, d), or None
        The landmarks themselves. They need not be rows of the data, nor independent.
    indices : array of int or None
        The landmarks as rows of the training data.

    Notes
    -----
    Time O(n m (d + m)) and memory for the pool of the selector (its Gram matrix, 32 MB for
    2,000 rows), m x m moments and a few blocks of rows; the n x m kernel matrix is never kept.
    Dense and sparse rows, memmaps and arrays of other libraries are taken; eigenvalues of G
    below rounding are dropped, so that equal or dependent landmarks do no harm. For float32 rows
    the moments are summed in double precision. After the fit the landmarks are in `landmarks_`.

    References
    ----------
    Williams & Seeger (2001), Using the Nystroem method to speed up kernel machines.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mercer import KernelPCA
    >>> from mercer.bases import Landmarks
    >>> X = load_digits().data
    >>> model = KernelPCA(10, kernel="rbf", gamma="mean", basis=Landmarks(100), random_state=0)
    >>> model.fit_transform(X).shape
    (1797, 10)
    >>> model.landmarks_.shape
    (100, 64)
    >>> wanted = Landmarks(error=0.05)
    >>> model = KernelPCA(10, kernel="rbf", gamma="mean", basis=wanted, random_state=0).fit(X)
    >>> low, high = model.certificate_.captured_variance
    >>> high - low < 0.1
    True
    """

    #: Number of rows of the data, of which `build` may get a sample; 0 if it gets all of them, None
    #: if they were not counted.
    _rows: int | None = field(default=0, init=False)

    size: int | None = None
    selector: Selector | None = None
    _: KW_ONLY
    error: float | None = None
    points: Array = None
    indices: Array = None

    def build(
        self, kernel: Kernel, X: Array, engine: Any, rng: Any, n_components: int | None = None
    ) -> Basis:
        """Choose the landmarks among the rows of X and make them a basis."""
        self.check()
        X, single = engine.place(X), None
        if self.error is not None:

            def attempt(recipe):
                basis = recipe.build(kernel, X, engine, rng, n_components)
                return basis, basis.size, basis.lost_share(X)

            return self.grow(X.shape[0], attempt)[0]
        if dtype_name(float_dtype(X)) != "float64":
            spread = kernel.spread(X)
            single = bool(spread <= DRAFT_SPREAD)
            if spread == np.inf:  # there may be entries that single precision cannot hold
                X = wide_rows(X)
        if self.points is not None or self.indices is not None:
            points = self._given(X)
            kernel.check(points)
        else:
            points = self._choose(kernel, X, self.count(X.shape[0], n_components), rng, engine)
        return PointBasis(kernel, points, engine, single=single)

    def grow(self, n: int, attempt: Callable[["Landmarks"], tuple[Any, int, float]]) -> Any:
        """Double the size, up to n, until no more than `error` is lost; the result and its loss.

        ``attempt(recipe)`` gives the result, its number of landmarks and the share it loses.
        """
        if self.error is None or not 0 < self.error < 1:
            raise ValueError(f"Landmarks: error={self.error!r} must be a share in (0, 1).")
        size = min(FIRST_SIZE, n)
        while True:
            result, count, lost = attempt(self.of_size(size))
            if lost <= self.error or count < size or size == n:
                return result, lost
            size = min(GROWTH * size, n)

    def of_size(self, size: int) -> "Landmarks":
        """The same recipe for another number of landmarks."""
        recipe = Landmarks(size, self.selector)
        recipe._rows = self._rows
        return recipe

    @property
    def needs_count(self) -> bool:  # type: ignore[override]
        """True if the size is a share of the rows, or landmarks are given by row number."""
        return isinstance(self.size, float) or self.indices is not None

    @property
    def least_rows(self) -> int:  # type: ignore[override]
        """The number of landmarks to choose, if it is given."""
        if self.points is not None or self.indices is not None:
            return 0
        return int(self.size) if isinstance(self.size, Integral) else 0

    def rows_wanted(self, n: int | None, n_components: int | None = None) -> int:
        """Twice the largest pool of `TwoStage`, so that equal rows can be passed over."""
        self.check()
        if self.points is not None or self.indices is not None:
            return 0
        size = GROWN if self.error is not None else self.count(n or sys.maxsize, n_components)
        pool = self.selector.pool if self.selector is not None else None
        return 2 * (pool or max(MIN_POOL, POOL_PER_ATOM * size))

    def located(self, n: int | None, take: Callable[..., Any]) -> Any:
        """The same recipe with points in place of row numbers."""
        self.check()
        if self.indices is None:
            return self
        return Landmarks(points=take(self._checked_indices(n)))

    def settled(self, n: int | None, n_components: int | None) -> Any:
        """The same recipe with a number in place of a share of the rows."""
        self.check()
        recipe = copy(self)
        recipe._rows = n
        if isinstance(self.size, float):
            return recipe.of_size(self.count(n, n_components))
        return recipe

    def stand_in(self, X: Array) -> Any:
        """The points themselves, where they are given."""
        return X if self.points is None else self._given(X)

    def check(self) -> None:
        """Raise ValueError where parameters contradict each other."""
        settings = [self.size, self.error, self.points, self.indices]
        if sum(value is not None for value in settings) > 1:
            raise ValueError("Landmarks: give one of size, error, points and indices, not several.")
        size = self.size
        if size is not None and not 0 < size < 1 and (size < 1 or size != int(size)):
            raise ValueError(
                f"Landmarks: size={size!r} must be a whole number above 0 or a share in (0, 1)."
            )

    def count(self, n: int, n_components: int | None = None) -> int:
        """Number of landmarks for n rows."""
        if self.size is None:
            return min(n, max(LEAST, PER_COMPONENT * (n_components or 0)))
        if isinstance(self.size, float) and 0 < self.size < 1:
            return max(1, round(self.size * n))
        if self.size > n:
            tell(
                f"{self.size:,} landmarks were asked for, and there are {n:,} rows: every row is a "
                "landmark. For the exact method use basis='points'."
            )
        return min(int(self.size), n)

    def _given(self, X):
        """The landmarks that the user chose, checked against X and in its type."""
        if self.indices is not None:
            return X[self._checked_indices(X.shape[0])]
        points: Any = self.points if is_sparse(self.points) else np.asarray(to_numpy(self.points))
        if points.ndim != 2 or points.shape[1] != X.shape[1] or points.shape[0] == 0:
            raise ValueError(
                f"Landmarks: points have shape {points.shape} and the data have "
                f"{X.shape[1]} columns. Give an array of shape (m, {X.shape[1]})."
            )
        if not np.isfinite(points.data if is_sparse(points) else points).all():
            raise ValueError("Landmarks: points contain NaN or infinity. Leave those rows out.")
        if is_sparse(X):
            return csr_matrix(points, dtype=X.dtype)
        points = on_device_of(points.toarray() if is_sparse(points) else points, X)
        return array_namespace(X).asarray(points, dtype=X.dtype)

    def _checked_indices(self, n):
        """Row numbers from 0 to n - 1; negative ones are refused, since most are mistakes."""
        indices = np.asarray(to_numpy(self.indices))
        integers = indices.ndim == 1 and indices.size and indices.dtype.kind in "iu"
        if not integers or indices.min() < 0 or indices.max() >= n:
            raise ValueError(
                f"Landmarks: indices must be whole numbers from 0 to {n - 1}, the rows of the "
                "data, at least one."
            )
        return indices

    def _choose(self, kernel, X, size, rng, engine):
        """The points that the selector picks; warns when fewer are found."""
        n = self._rows or X.shape[0]
        if self._rows is None and X.shape[0] >= self.of_size(size).rows_wanted(None):
            n = None  # a sample smaller than was asked for is all rows there are
        selector = self.selector or (
            RPCholesky() if kernel.expensive else default_selector(n, size)
        )
        check_moments(size, "landmarks", engine)
        X = pool_within(selector, X, size, rng, engine.memory)
        if kernel.expensive:
            X = sparing_pool(selector, X, size, rng, self._rows or X.shape[0])
        try:
            with engine.single_blas():
                chosen = selector.select(kernel, X, size, rng)
        except np.linalg.LinAlgError as error:
            if kernel.definite:
                raise
            raise ValueError(
                f"{selector!r} needs a positive semidefinite matrix, and that of {kernel!r} on "
                "these rows is not. Choose another selector, such as Uniform(), or use "
                "basis='points'."
            ) from error
        count = chosen.shape[0]  # of points, which may be sparse
        if count == 0:
            some = bool((to_numpy(kernel.diag(X)) > 0).any())
            why = "values whose products are not finite" if some else "k(x, x) <= 0 for all rows"
            raise ValueError(
                f"No row can be a landmark: {kernel!r} gives {why}. Choose another kernel, scale "
                "the data, or use basis='points'."
            )
        if count < size and not selector.replace:
            rest = "up to rounding, any other row is a copy or a combination of these."
            if not kernel.definite:
                rest = f"the matrix of {kernel!r} has nothing positive left beside these."
            tell(f"Only {count} of {size} landmarks were chosen: {rest}")
        return chosen if selector.returns_points else X[chosen]


def pool_within(
    selector: Selector, X: Array, size: int, rng: np.random.Generator, memory: int
) -> Array:
    """The rows to choose from: all, or a uniform sample that the budget lets it choose from."""
    (n, d), need = X.shape, selector.work_bytes(X.shape[0], size, X.shape[1])
    # The rest is for a few tiles of the kernel and blocks of rows.
    room = memory - min(memory // 4, TILE_BYTES)
    if need <= room:
        return X
    name = type(selector).__name__
    room = bisect(range(1, n), room, key=lambda rows: selector.work_bytes(rows, size, d))
    if room < size:
        least = selector.work_bytes(size, size, d)
        least += min(least // 3 + 1, TILE_BYTES)
        raise ValueError(
            f"{name} can choose among {room:,} rows in memory={format_bytes(memory)}, too few for "
            f"{size:,} landmarks. Give at least {format_bytes(least)}, ask for fewer, or take "
            "selector=Uniform(), which needs none."
        )
    tell(
        f"{name} needs {format_bytes(need)} to choose among {n:,} rows, more than "
        f"memory={format_bytes(memory)} holds: it chooses among {room:,} rows drawn at random."
    )
    return some_of(X, np.sort(rng.choice(n, room, replace=False)))


def sparing_pool(selector: Selector, X: Array, size: int, rng: Any, n: int) -> Array:
    """The rows to choose from where values are expensive: a fit of n rows takes n m + m^2 of them.

    Those of p rows with each other are p^2, of which p m are columns of landmarks, that are taken
    anyway. The diagonal and the checks of the kernel have theirs too.
    """
    name = type(selector).__name__
    if selector.needs_points:
        raise ValueError(
            f"{name} chooses by the coordinates of rows, and objects have none. Choose another "
            "selector, such as RPCholesky()."
        )
    room = size + isqrt(size**2 + 4 * max(size**2 - n - CHECKED, 0))
    rows = max(room // 2, size)
    if selector.reads_chosen or rows >= X.shape[0]:
        return X
    tell(
        f"{name} chooses {size:,} landmarks among {rows:,} rows drawn at random, so that the fit "
        "takes at most n m + m^2 kernel values.",
        python=f"RPCholesky() chooses among all {n:,}.",
    )
    return some_of(X, np.sort(rng.choice(X.shape[0], rows, replace=False)))
