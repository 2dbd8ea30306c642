"""Arithmetic on kernels, and kernels of some columns.

    RBF() + 0.1 * Linear()        RBF(columns=[0, 1]) * Cosine()        RBF() ** 2

Every part is resolved, shifted and bounded by itself. Sums, products and whole powers of definite
kernels are definite (Schur); only what is linear in its parts may be recentered.
"""

import math
from dataclasses import dataclass
from functools import reduce
from numbers import Real
from operator import iadd, imul
from typing import Any

import numpy as np

from ..compute import Array, array_namespace
from ..compute.arrays import BLOCK_ENTRIES, SomeColumns
from . import base
from .derived import CompositeKernel
from .dot_product import power

# Rounding of a value beside that of its argument, `ENTRY_ROUNDING` of certificates, in units of
# (d + 2) eps with one column or more.
ENTRY = 3.0


class Combination(CompositeKernel):
    """A kernel whose values are arithmetic on those of its parts."""

    def combined(self, values: list[Any]) -> Any:
        """The values of this kernel from the parts', over the first of them where possible."""
        raise NotImplementedError

    def pairs(self, X: Array, Z: Array = None, dtype: Any = None, store: int = 0) -> base.Pairs:
        return CombinedPairs(self, X, Z, dtype, store)

    def diag(self, X: Array) -> Array:
        rows = self.selected(X)
        return self.combined([part.diag(rows) for part in self.parts()])

    def entry_size(self, X: Array) -> float:
        """The same arithmetic on bounds of the parts' values."""
        return 0.0 if self.definite else self._bound(X)

    def _bound(self, X: Array) -> float:
        rows = self.selected(X)
        with np.errstate(over="ignore"):
            bounds = [
                np.array([max(float(abs(part.diag(rows)).max()), part.entry_size(rows))])
                for part in self.parts()
            ]
            return float(self.combined(bounds)[0])

    def spread(self, X: Array) -> float:
        """Spread of the worst part or of all together; inf if values overflow single precision."""
        parts = super().spread(X)
        if parts == np.inf or not 1e-25 < self._bound(X) < 1e30:
            return np.inf
        return max(parts, base.centering_spread(self, X))

    def check(self, X: Array) -> None:
        """Raise ValueError if a part or a parameter cannot be used, or values overflow float64."""
        super().check(X)
        if not self._bound(X) * X.shape[0] < 1e305:
            raise ValueError(
                f"{self!r} gives values that are not finite on these data. Scale the data, "
                "X / np.abs(X).max(), or change the kernel's parameters."
            )


class CombinedPairs(base.Pairs):
    """Tiles made of the tiles of the parts."""

    def __init__(self, kernel: Any, X: Array, Z: Array, dtype: Any, store: int):
        super().__init__(kernel, X, Z, dtype)
        parts, left = kernel.parts(), kernel.selected(X, Z)
        right = None if Z is None else kernel.selected(Z)
        self.terms = [part.pairs(left, right, self.dtype, store // len(parts)) for part in parts]
        self.kept_bytes = sum(term.kept_bytes for term in self.terms)

    def tile(self, i, j, out):
        xp, first, *others = array_namespace(out), *self.terms
        T = first.tile(i, j, out)
        return self.kernel.combined([T, *(one.tile(i, j, xp.empty_like(out)) for one in others)])

    def tile_bytes(self, side):
        """Of all parts, the tiles that the arithmetic needs, and copies of columns of the rows."""
        own = self.kernel.live_tiles - sum(term.kernel.live_tiles for term in self.terms)
        # Two blocks of rows, which are indexed, shifted and multiplied in float64.
        d = sum(term.X.shape[1] for term in self.terms if term.X is not self.X)
        copied = 16 * side * (self.X.shape[1] + 3 * d) if d else 0
        tiles = sum(term.tile_bytes(side) for term in self.terms)
        return tiles + own * self.itemsize * side**2 + copied

    def of_rows(self, index):
        subset: Any = super().of_rows(index)
        subset.terms = [term.of_rows(index) for term in self.terms]
        return subset


class Several(Combination):
    """A combination of any number of kernels; ``kernels__0__gamma`` is a parameter of the first.

    Parameters
    ----------
    kernels : list of Kernel
    """

    def __init__(self, kernels: Any):
        self.kernels = kernels

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The kernels, and with `deep` each of them and its parameters by its number."""
        params: dict[str, Any] = {"kernels": self.kernels}
        for number, kernel in enumerate(self.kernels if deep else ()):
            params[name := f"kernels__{number}"] = kernel
            params |= {f"{name}__{key}": value for key, value in kernel.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Any:
        """Set the kernels, one of them (``kernels__0``) or a parameter of one."""
        self.kernels = params.pop("kernels", self.kernels)
        for name, value in sorted(params.items()):  # a kernel before its parameters
            if name not in (known := self.get_params()):
                raise ValueError(
                    f"Invalid parameter {name!r} for {type(self).__name__}. Valid parameters are "
                    f"{sorted(known)}."
                )
            _, place, *inner = name.split("__", 2)
            if inner:
                self.kernels[int(place)].set_params(**{inner[0]: value})
            else:
                self.kernels = list(self.kernels)
                self.kernels[int(place)] = value
        return self


class Sum(Several):
    """``k_1(x, z) + k_2(x, z) + ...``, as ``RBF() + 0.1 * Linear()`` writes it.

    Parameters
    ----------
    kernels : list of Kernel

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF, Linear
    >>> kernel = RBF(gamma=0.5) + 0.1 * Linear()
    >>> kernel(np.array([[0.0, 1.0], [2.0, 1.0]])).round(3)
    array([[1.1  , 0.235],
           [0.235, 1.5  ]])
    """

    linear = True

    def combined(self, values: list[Any]) -> Any:
        return reduce(iadd, values)

    def growth(self, X: Array) -> float:
        """Growth of the worst part, whose values are no larger; each sum rounds once."""
        return super().growth(X) + len(self.parts()) / ENTRY

    def rank(self, d: int) -> int | None:
        ranks = [part.rank(d) for part in self.parts()]
        return None if None in ranks else sum(ranks)  # type: ignore[arg-type]

    def gradient(self, X: Array, Z: Array, W: Array) -> Array:
        return sum(part.gradient(X, Z, W) for part in self.parts())


class Product(Several):
    """``k_1(x, z) k_2(x, z) ...``, as ``RBF() * Cosine()`` writes it.

    Parameters
    ----------
    kernels : list of Kernel
    """

    def combined(self, values: list[Any]) -> Any:
        return reduce(imul, values)

    def growth(self, X: Array) -> float:
        """The sum of the parts': relative errors of factors add up."""
        return sum(part.growth(X) + ENTRY for part in self.parts())

    def rank(self, d: int) -> int | None:
        ranks = [part.rank(d) for part in self.parts()]
        return None if None in ranks else math.prod(ranks)  # type: ignore[arg-type]

    def gradient(self, X: Array, Z: Array, W: Array) -> Array:
        """The product rule, row by row: weights of one factor are values of the others."""
        parts, total = self.parts(), 0.0
        values = [part(X, Z) for part in parts]
        for number, part in enumerate(parts):
            others = values[:number] + values[number + 1 :]
            total = total + by_rows(part, X, Z, math.prod(others, start=1.0 + 0 * values[0]), W)
        return total


@dataclass(eq=False, repr=False)
class Power(Combination):
    """``k(x, z)^degree`` for a whole degree, as ``RBF() ** 2`` writes it.

    Parameters
    ----------
    kernel : Kernel
    degree : int
        From 1 to 64.
    """

    kernel: base.Kernel
    degree: int = 2

    @property
    def live_tiles(self) -> int:  # type: ignore[override]
        return self.kernel.live_tiles + 1

    def combined(self, values: list[Any]) -> Any:
        return power(values[0], self.degree)

    def check(self, X: Array) -> None:
        if not (float(self.degree).is_integer() and 1 <= self.degree <= 64):
            raise ValueError(f"Power: degree={self.degree!r} must be a whole number from 1 to 64.")
        super().check(X)

    def growth(self, X: Array) -> float:
        return self.degree * (self.kernel.growth(X) + ENTRY)

    def rank(self, d: int) -> int | None:
        """Monomials of the part's features."""
        rank, p = self.kernel.rank(d), int(self.degree)
        return None if rank is None else math.comb(rank + p - 1, p)

    def gradient(self, X: Array, Z: Array, W: Array) -> Array:
        """p k^(p - 1) times that of the part."""
        slopes = power(self.kernel(X, Z), self.degree - 1) * float(self.degree)
        return by_rows(self.kernel, X, Z, slopes, W)


@dataclass(eq=False, repr=False)
class Scaled(Combination):
    """``factor k(x, z)``, as ``0.1 * Linear()`` writes it.

    Parameters
    ----------
    kernel : Kernel
    factor : float
        Not negative.
    """

    linear = True

    kernel: base.Kernel
    factor: float = 1.0

    def combined(self, values: list[Any]) -> Any:
        return imul(values[0], self.factor)

    def check(self, X: Array) -> None:
        if not isinstance(self.factor, Real) or not 0 <= float(self.factor) < np.inf:
            raise ValueError(
                f"A kernel is multiplied by factor={self.factor!r}, which must be a finite number "
                "that is not negative: a negative one has no feature space."
            )
        super().check(X)

    def growth(self, X: Array) -> float:
        return super().growth(X) + 1 / ENTRY

    def rank(self, d: int) -> int | None:
        return self.kernel.rank(d)

    def gradient(self, X: Array, Z: Array, W: Array) -> Array:
        return self.kernel.gradient(X, Z, W) * self.factor


class OnColumns(Combination):
    """``k(s * x[columns], s * z[columns])``: a kernel of some columns, with a scale for each.

    ``RBF(columns=[0, 1])`` is short for ``OnColumns(RBF(), columns=[0, 1])``, and a resolved
    ``RBF(gamma=[0.1, 2.0])`` is one with scales. Columns are copied block by block.

    Parameters
    ----------
    kernel : Kernel
    columns : array of int or None
        Numbers of the columns, each once; None for all.
    scales : array of float or None
        What each of these columns is multiplied by, for kernels of a distance; None for 1.
    """

    per_column = ("columns", "scales")
    linear = True

    def __new__(cls, *args: Any, **params: Any) -> Any:
        return object.__new__(cls)  # `columns` is a parameter like any other here

    def __init__(self, kernel: Any, columns: Any = None, scales: Any = None):
        self.kernel = kernel
        self.columns = columns
        self.scales = scales

    def combined(self, values: list[Any]) -> Any:
        return values[0]

    @property
    def widths(self) -> Any:
        """gamma for each of the columns, or for all of them."""
        if self.scales is None:
            return self.kernel.widths if isinstance(self.kernel, OnColumns) else self.kernel.gamma
        power = 1 if self.kernel.metric == "cityblock" else 2
        return self.kernel.gamma * np.asarray(self.scales, dtype=float) ** power

    def selected(self, X: Array, Z: Array = None) -> Any:
        """The columns of X, scaled about the middle of Z; checked."""
        d, index = X.shape[1], None if self.columns is None else np.asarray(self.columns)
        if index is not None:
            sound = index.ndim == 1 and index.size and index.dtype.kind in "iu"
            if not sound or index.min() < 0 or index.max() >= d or len(set(index)) < len(index):
                raise ValueError(
                    f"{self.kernel!r} has columns={self.columns!r}, and the data have {d} columns. "
                    f"Give different whole numbers from 0 to {d - 1}, at least one."
                )
        rows = SomeColumns(X, index)
        if self.scales is None:
            return small(rows)
        scales = np.asarray(self.scales, dtype=float)
        name = type(self.kernel).__name__
        if not isinstance(self.kernel, base.DifferenceKernel) or self.kernel.metric is None:
            raise ValueError(f"{name} takes no gamma for each column. Give one number, or use RBF.")
        if scales.shape != rows.shape[1:] or not (np.isfinite(scales) & (scales >= 0)).all():
            raise ValueError(
                f"{name} was given widths of columns of shape {scales.shape}, and has "
                f"{rows.shape[1]} columns. Give each column a finite gamma that is not negative."
            )
        # Digits are lost if rows far from the origin are multiplied before they are shifted.
        center = self.kernel.origin(rows if Z is None else SomeColumns(Z, index))
        return small(SomeColumns(X, index, scales, center))

    def resolve(self, X: Array, rng: np.random.Generator | None = None) -> base.Kernel:
        """A copy whose kernel is resolved on the columns, these as arrays."""
        resolved: Any = super().resolve(X, rng)
        for name in self.per_column:
            value = getattr(self, name)
            setattr(resolved, name, None if value is None else np.array(value))
        return resolved

    def growth(self, X: Array) -> float:
        return super().growth(X) + ENTRY * (self.scales is not None)

    def rank(self, d: int) -> int | None:
        return self.kernel.rank(d if self.columns is None else np.size(self.columns))

    def gradient(self, X: Array, Z: Array, W: Array) -> Array:
        """Gradient in the columns used; zero for the others."""
        xp, index = array_namespace(X), self.columns
        G = self.kernel.gradient(self.selected(X, Z)[:], self.selected(Z)[:], W)
        if self.scales is not None:
            G = G * xp.asarray(self.scales, dtype=G.dtype)[None, :, None]
        if index is None:
            return G
        full = xp.zeros((X.shape[0], X.shape[1], W.shape[1]), dtype=G.dtype)
        full[:, np.asarray(index).tolist()] = G
        return full


def small(rows: SomeColumns) -> Any:
    """The columns as an array of their own where they are few numbers."""
    return rows[:] if rows.shape[0] * rows.shape[1] <= BLOCK_ENTRIES else rows


def by_rows(part: base.Kernel, X: Array, Z: Array, C: Array, W: Array) -> Array:
    """sum_j C_ij W_jb times the gradient of part(x_i, z_j), (n, d, b): a row at a time."""
    rows = [part.gradient(X[i : i + 1], Z, C[i][:, None] * W) for i in range(X.shape[0])]
    return array_namespace(X).concat(rows, axis=0)
