"""Joint moments: of the coordinates of rows and of further columns, such as a target.

A row function: its sums over blocks are the moments of both side by side, and what they become when
all rows are added are moments of the coordinates that carry those of the columns along.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..bases import Basis, ColumnBasis
from ..bases.base import check_moments
from ..fitting.moments import Moments, MomentsOf
from ..fitting.task import FitTask, components_problem


@dataclass(frozen=True)
class GivenColumns:
    """Columns that are there already, (n, q)."""

    values: np.ndarray

    @property
    def width(self) -> int:
        return self.values.shape[1]

    def of_rows(self, first: int, count: int) -> Callable[[slice], Any]:
        """A function of blocks among the rows number first, ..., first + count - 1."""
        check_length(len(self.values), first + count)
        return self.values[first : first + count].__getitem__


@dataclass(frozen=True)
class ViewColumns:
    """Coordinates of the rows of another view, made block by block.

    Attributes
    ----------
    basis : Basis
    whitener : array of shape (m, q) or None
    rows : array of shape (n, d)
    """

    basis: Basis
    whitener: Any
    rows: Any

    @property
    def width(self) -> int:
        return self.basis.size if self.whitener is None else self.whitener.shape[1]

    def of_rows(self, first: int, count: int) -> Callable[[slice], Any]:
        """A function of blocks among the rows number first, ..., first + count - 1."""
        check_length(self.rows.shape[0], first + count)
        return self.basis.block_products(self.rows[first : first + count], self.whitener)


@dataclass(frozen=True)
class JointMoments(Moments):
    """Moments of k coordinates, and of q further columns of the same rows.

    Attributes
    ----------
    cross : array of shape (k, q)
        Sum of outer products of both, about their means.
    other : Moments
        Of the q columns.
    """

    cross: Any = None
    other: Any = None


@dataclass(frozen=True)
class JointMomentsOf(MomentsOf):
    """Moments of rows against a basis and of further columns; `finished` completes their sum."""

    columns: GivenColumns | ViewColumns

    def further_columns(self, first, count):
        return self.columns.of_rows(first, count)

    def finished(self, moments: Moments) -> JointMoments:
        """The joint moments of coordinates and columns from the sum over all blocks."""
        k, late = moments.mean.shape[0] - self.columns.width, self.whitening.late
        mean, scatter, cross = moments.mean[:k], moments.scatter[:k, :k], moments.scatter[:k, k:]
        rows = super().finished(replace(moments, mean=mean, scatter=scatter))
        cross = cross if late is None else late.T @ cross
        other = Moments(moments.count, moments.mean[k:], moments.scatter[k:, k:])
        return JointMoments(**vars(rows), cross=cross, other=other)


def joint_problem(task: FitTask, basis: Basis, columns: GivenColumns | ViewColumns) -> Any:
    """The problem of kernel PCA in a small basis, whose moments are joint with these columns."""
    if not isinstance(basis, ColumnBasis):
        check_moments(basis.size + columns.width, basis.noun, basis.engine)
    return components_problem(task, basis, partial(JointMomentsOf, columns=columns))


def check_length(entries: int, wanted: int) -> None:
    """Raise ValueError where there are more rows than entries of y."""
    if wanted > entries:
        raise ValueError(
            f"X has at least {wanted:,} rows, and y has {entries:,}. Pass one entry of y for every "
            "row of X, in the same order."
        )
