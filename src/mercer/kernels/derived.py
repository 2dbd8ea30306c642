"""Kernels made of something else: a matrix, distances, another kernel without its diagonal."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from typing import Any

import numpy as np

from ..compute import Array, ScalarMap, array_namespace
from . import base

# In place of k(x, x), which new rows may lack.
MISSING = -1.0


@dataclass(eq=False, repr=False)
class Precomputed(base.Kernel):
    """The data are the kernel matrix itself: (n, n) to fit, (m, n) to transform.

    Of a matrix too large to be made, m columns and the diagonal are enough: with `landmarks` a row
    holds its values with these rows and, last, with itself, ``[K[:, landmarks] | diagonal]``, of
    shape (n, m + 1). `KernelPCA.transform` takes new rows without the last column too, errors
    need it.

    Parameters
    ----------
    landmarks : array of int or None
        Numbers of m training rows.
    definite : bool
        Whether the matrix has no negative eigenvalue: certificates of landmarks are bounds only
        then. A whole matrix shows it itself.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelPCA
    >>> from mercer.kernels import RBF, Precomputed
    >>> X, chosen = np.random.default_rng(0).standard_normal((500, 3)), np.arange(40)
    >>> rows = np.column_stack([RBF(gamma=0.1)(X, X[chosen]), np.ones(500)])
    >>> model = KernelPCA(4, kernel=Precomputed(landmarks=chosen, definite=True)).fit(rows)
    >>> model.transform(RBF(gamma=0.1)(X[:2], X[chosen])).shape
    (2, 4)
    """

    seconds = (1e-9, 0.0)  # to read it
    per_column = ("landmarks",)
    #: Numbers of the columns of landmarks, where a basis has only some of them.
    chosen = None

    landmarks: Any = None
    definite: bool = False  # type: ignore[misc]

    @property
    def expensive(self) -> bool:  # type: ignore[override]
        """Values between rows that are no landmarks are not known."""
        return self.landmarks is not None

    def resolve(self, X: Array, rng: Any = None) -> base.Kernel:
        """A copy with the landmarks as an array."""
        kernel = copy(self)
        if self.landmarks is not None:
            kernel.landmarks = np.array(self.landmarks)
        return kernel

    def of_points(self, index: Any) -> Any:
        part: Any = copy(self)
        part.chosen = index if self.chosen is None else self.chosen[index]
        return part

    def pairs(self, X: Array, Z: Array = None, dtype: Any = None, store: int = 0) -> base.Pairs:
        """The columns of landmarks; an error where there are no rows to compare."""
        if self.landmarks is None:
            raise TypeError("A precomputed kernel has no points: its matrix is the data.")
        m = np.size(self.landmarks if self.chosen is None else self.chosen)
        if (X if Z is None else Z).shape[0] != m:
            raise ValueError(
                "A precomputed kernel with landmarks knows no values between other rows. Use "
                "KernelPCA, or a kernel that is computed from the data."
            )
        return GivenPairs(self, X, Z, dtype)

    def diag(self, X: Array) -> Array:
        """The last column; ValueError where it is not part of a given matrix."""
        if self.landmarks is None:
            raise ValueError(
                "k(x, x) of new points is not part of a precomputed kernel matrix, so their "
                "reconstruction error is unknown. Use a kernel object or name instead."
            )
        d = base.dense_rows(X[:, -1:])[:, 0]
        if bool((d < 0).any()):
            raise ValueError(
                "Rows of a precomputed kernel with landmarks end with k(x, x), which is "
                f"missing or negative: {float(d.min()):.3g}. Give [K(x, landmarks) | k(x, x)]."
            )
        xp = array_namespace(d)
        return xp.astype(d, xp.float64)

    def spread(self, X: Array) -> float:
        """inf: values are read in any precision, so float32 saves nothing."""
        return np.inf

    def check(self, X: Array) -> None:
        """Raise ValueError if some k(x, x) is negative, unless all of them are missing."""
        if self.landmarks is not None and bool((base.dense_rows(X[:, -1:]) != MISSING).any()):
            self.diag(X)


class GivenPairs(base.Pairs):
    """Columns of landmarks in rows that hold them."""

    def tile(self, i, j, out):
        chosen = self.kernel.chosen
        K = base.dense_rows(base.rows_of(self.X, i, self.dtype))
        out[...] = K[:, j if chosen is None else chosen[j]]
        return out


@dataclass(eq=False, repr=False)
class SquaredDistance(base.Kernel):
    """``shift - d(x, z)^2 / 2`` as a kernel: conditionally positive definite.

    Centering removes the shift, and with the mean of d^2 / 2 for it the matrix has small
    entries that single precision can hold: distances in many dimensions are all alike.

    Parameters
    ----------
    distance : callable
        ``distance(rows, columns)`` gives the distances, not squared, between two blocks of
        points, (a, b).
    shift : float
    """

    definite = False

    distance: Any
    shift: float = 0.0

    def pairs(self, X: Array, Z: Array = None, dtype: Any = None, store: int = 0) -> base.Pairs:
        return DistancePairs(self, X, Z, dtype)

    def diag(self, X: Array) -> Array:
        return np.full(X.shape[0], self.shift)

    def resolve(self, X: Array, rng: np.random.Generator | None = None) -> base.Kernel:
        """A copy with the shift that makes the entries small, measured on a sample of X."""
        plain = SquaredDistance(self.distance)
        rows = X[:: -(-X.shape[0] // base.SPREAD_SAMPLE)]
        return SquaredDistance(self.distance, -float(plain(rows, dtype=np.float64).mean()))

    def spread(self, X: Array) -> float:
        return base.centering_spread(self, X)


class DistancePairs(base.Pairs):
    """Tiles of shift - d^2 / 2; `distance` gets the points unchanged, in any precision."""

    def tile(self, i, j, out):
        # Squares are shifted before they are rounded.
        D = np.square(self.kernel.distance(self.X[i], self.Z[j]), dtype=np.float64)
        D *= -0.5
        D += self.kernel.shift
        out[...] = D
        return out

    def tile_bytes(self, side):
        """The tile, and the distances three times and three blocks of rows in float64."""
        d = self.X.shape[1]
        return self.itemsize * self.kernel.live_tiles * side * side + 24 * side * (side + d)


class CompositeKernel(base.Kernel):
    """A kernel made of other kernels, its parts: parameters that are kernels or lists of them.

    What follows from the parts is answered here. A subclass writes `pairs`, `diag` and
    `entry_size`.
    """

    #: Whether values are linear in those of the parts: each may then have a center of its own.
    linear = False

    def selected(self, X: Array, Z: Array = None) -> Any:
        """The rows X as the parts see them, beside rows Z."""
        return X

    def parts(self) -> list[base.Kernel]:
        """The kernels among the parameters."""
        values: list[Any] = []
        for value in self.get_params(deep=False).values():
            values += value if isinstance(value, list | tuple) else [value]
        return [value for value in values if isinstance(value, base.Kernel)]

    def leaves(self) -> list[base.Kernel]:
        """The kernels that are not made of others."""
        parts = self.parts()
        nested = (one.leaves() if isinstance(one, CompositeKernel) else [one] for one in parts)
        return [leaf for leaves in nested for leaf in leaves]

    def with_parts(self, change: Callable[[base.Kernel], base.Kernel]) -> Any:
        """A copy with ``change(part)`` in place of every part."""

        def changed(value):
            if isinstance(value, list | tuple):
                return type(value)(map(changed, value))
            return change(value) if isinstance(value, base.Kernel) else value

        params = self.get_params(deep=False)
        return type(self)(**{name: changed(value) for name, value in params.items()})

    @property
    def definite(self) -> bool:  # type: ignore[override]
        return all(part.definite for part in self.parts())

    @property
    def domain(self) -> base.Domain:  # type: ignore[override]
        return reduce(and_, (part.domain for part in self.parts()))

    @property
    def live_tiles(self) -> int:  # type: ignore[override]
        """The sum over the parts: all of their tiles may be alive at once."""
        return sum(part.live_tiles for part in self.parts())

    @property
    def seconds(self) -> tuple[float, float]:  # type: ignore[override]
        value, column = zip(*(part.seconds for part in self.parts()), strict=True)
        return sum(value), sum(column)

    @property
    def _has_widths(self) -> bool:
        return any(part._has_widths for part in self.parts())

    @property
    def needs_range(self) -> bool:  # type: ignore[override]
        return any(part.needs_range for part in self.parts())

    def resolve(self, X: Array, rng: np.random.Generator | None = None) -> base.Kernel:
        """A copy whose parts have numbers for their parameters."""
        rows = self.selected(X)
        return self.with_parts(lambda part: part.resolve(rows, rng))

    def check(self, X: Array) -> None:
        rows = self.selected(X)
        for part in self.parts():
            part.check(rows)

    def spread(self, X: Array) -> float:
        rows = self.selected(X)
        return max(part.spread(rows) for part in self.parts())

    def growth(self, X: Array) -> float:
        rows = self.selected(X)
        return max(part.growth(rows) for part in self.parts())

    def recentered(self, X: Array) -> base.Kernel:
        if not self.linear:
            return self
        rows = self.selected(X)
        return self.with_parts(lambda part: part.recentered(rows))


@dataclass(eq=False, repr=False)
class Hollow(CompositeKernel):
    """k(x_i, x_j) for i != j, and 0 for i = j; between two sets of points just k.

    Spectral clustering is about ties between points. With k(x, x) on the diagonal a point that is
    far from the others is tied to itself above all, and makes a cluster of its own. To
    subtract the diagonal from row sums would leave rounding, larger than the sums of such a point;
    tiles are therefore made without it.

    Parameters
    ----------
    kernel : Kernel
    """

    definite = False

    kernel: base.Kernel

    def pairs(self, X: Array, Z: Array = None, dtype: Any = None, store: int = 0) -> base.Pairs:
        pairs = self.kernel.pairs(X, Z, dtype, store)
        return HollowPairs(self, pairs, np.arange(X.shape[0])) if Z is None else pairs

    def diag(self, X: Array) -> Array:
        return base.same_for_all(X, 0.0)

    def scalar_map(self) -> ScalarMap | None:
        inner = self.kernel.scalar_map()
        return None if inner is None else replace(inner, hollow=True)

    def entry_size(self, X: Array) -> float:
        return max(float(abs(self.kernel.diag(X)).max()), self.kernel.entry_size(X))


class HollowPairs(base.Pairs):
    """Tiles of a matrix whose row i has a zero in column ``zeros[i]``."""

    def __init__(self, kernel, pairs, zeros):
        # Fused tiles read the rows, the origin and the prepared rows from here.
        vars(self).update(vars(pairs))
        self.kernel, self.pairs, self.zeros = kernel, pairs, zeros

    def tile(self, i, j, out):
        T, zeros = self.pairs.tile(i, j, out), self.zeros[i]
        rows = np.flatnonzero((zeros >= j.start) & (zeros < j.stop))
        T[rows, zeros[rows] - j.start] = 0
        return T

    def tile_bytes(self, side):
        return self.pairs.tile_bytes(side)

    def of_rows(self, index):
        return HollowPairs(self.kernel, self.pairs.of_rows(index), self.zeros[index])
