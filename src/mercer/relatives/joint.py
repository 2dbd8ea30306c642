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
from ..fitting.functions import SUMS
from ..fitting.moments import Moments, MomentsOf, RowFunction
from ..fitting.task import FitTask, components_problem


@dataclass(frozen=True)
class GivenColumns:
    """Columns that are there already, (n, q)."""

    values: np.ndarray
    start: int = 0

    width = property(lambda self: self.values.shape[1])

    def of_rows(self, first: int, count: int) -> Callable[[slice], Any]:
        """A function of blocks among the rows number first, ..., first + count - 1."""
        first -= self.start
        check_length(len(self.values), first + count)
        return self.values[first : first + count].__getitem__


@dataclass(frozen=True)
class TargetColumn:
    """A column of a table on a cluster as numbers about their mean, or as one column a label.

    Attributes
    ----------
    name : str
    mean : float
    labels : array or None
        All of them, in order.
    """

    name: str
    mean: float = 0.0
    labels: Any = None

    width = property(lambda self: 1 if self.labels is None else len(self.labels))

    def with_columns(self, columns: dict[str, np.ndarray], start: int) -> GivenColumns:
        """The columns of rows number start, start + 1, ..."""
        values = columns[self.name]
        if self.labels is None:
            return GivenColumns(values[:, None].astype(float) - self.mean, start)
        place = np.minimum(np.searchsorted(self.labels, values), len(self.labels) - 1)
        indicators = np.equal(np.arange(len(self.labels)), place[:, None])
        if (self.labels[place] != values).any():
            raise ValueError(
                f"Column {self.name!r} has labels that it did not have when the rows were read "
                "first. The plan of the table must give the same rows each time."
            )
        return GivenColumns(indicators.astype(float), start)


@dataclass(frozen=True)
class Target:
    """Sum, count and labels of a column; two of them add up.

    `labels` is None for numbers.
    """

    total: float
    count: int
    labels: frozenset | None

    def __add__(self, other: "Target") -> "Target":
        labels = None if self.labels is None else self.labels | (other.labels or frozenset())
        return Target(self.total + other.total, self.count + other.count, labels)


SUMS["Target"] = Target


@dataclass(frozen=True)
class TargetOf(RowFunction):
    """What must be known of a column before it is a target: its mean, or its labels.

    `kind` is "delta" for labels, "linear" for numbers, "auto" for what the type of the column says;
    `most` is a number of labels that is refused.
    """

    name: str
    kind: str
    most: int
    values: Any = None

    def with_columns(self, columns, start):
        return replace(self, values=columns[self.name])

    def __call__(self, rows, first):
        kind = self.values.dtype.kind
        if self.kind == "linear" or (self.kind == "auto" and kind == "f"):
            if kind not in "biuf":
                raise ValueError(
                    f"Column {self.name!r} is no column of numbers, and target='linear' needs one. "
                    "Use target='delta' for labels."
                )
            return Target(float(np.sum(self.values, dtype=float)), len(rows), None)
        labels = frozenset(self.values.tolist())
        if len(labels) > self.most:
            raise ValueError(
                f"Column {self.name!r} has more than {self.most:,} labels, each of which takes a "
                "column of the target. Raise memory, or pass numbers of floating type."
            )
        return Target(0.0, len(rows), labels)


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
        rows = self.basis.engine.place(self.rows[first : first + count])
        return self.basis.block_products(rows, self.whitener)


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

    #: `GivenColumns`, `ViewColumns` or `TargetColumn`.
    columns: Any

    def further_columns(self, first, count):
        return self.columns.of_rows(first, count)

    def with_columns(self, columns, start):
        weighted: Any = super().with_columns(columns, start)
        return replace(weighted, columns=self.columns.with_columns(columns, start))

    def finished(self, moments: Moments) -> JointMoments:
        """The joint moments of coordinates and columns from the sum over all blocks."""
        k, late = moments.mean.shape[0] - self.columns.width, self.whitening.late
        mean, scatter, cross = moments.mean[:k], moments.scatter[:k, :k], moments.scatter[:k, k:]
        rows = super().finished(replace(moments, mean=mean, scatter=scatter))
        cross = cross if late is None else late.T @ cross
        other = Moments(moments.count, moments.mean[k:], moments.scatter[k:, k:])
        return JointMoments(**vars(rows), cross=cross, other=other)


def joint_problem(task: FitTask, basis: Basis, columns: Any) -> Any:
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
