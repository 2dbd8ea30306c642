"""Columns that stand beside the rows: targets, or another view of the same things."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..bases import Basis


class Beside(ABC):
    """Further columns of every row, in the order of the rows."""

    @property
    @abstractmethod
    def width(self) -> int:
        """How many columns."""

    @abstractmethod
    def of_rows(self, first: int, count: int) -> Callable[[slice], Any]:
        """A function of blocks among the rows number first, ..., first + count - 1."""


@dataclass(frozen=True)
class GivenColumns(Beside):
    """Columns that are there already, (n, q)."""

    values: np.ndarray

    @property
    def width(self) -> int:
        """Their number."""
        return self.values.shape[1]

    def of_rows(self, first: int, count: int) -> Callable[[slice], Any]:
        """Slices of them."""
        check_length(len(self.values), first + count)
        some = self.values[first : first + count]
        return lambda block: some[block]


@dataclass(frozen=True)
class ViewColumns(Beside):
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
        """The size of the basis, or its rank."""
        return self.basis.size if self.whitener is None else self.whitener.shape[1]

    def of_rows(self, first: int, count: int) -> Callable[[slice], Any]:
        """Their products with the basis."""
        check_length(self.rows.shape[0], first + count)
        return self.basis.block_products(self.rows[first : first + count], self.whitener)


def check_length(known: int, wanted: int) -> None:
    """Raise ValueError where there are more rows than what stands beside them."""
    if wanted > known:
        raise ValueError(
            f"X has at least {wanted:,} rows, and y has {known:,}. Pass one entry of y for every "
            "row of X, in the same order."
        )
