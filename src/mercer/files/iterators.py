"""Blocks that a program makes: an iterator, or a function that returns a fresh one."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

import numpy as np

from ..compute import is_sparse
from .base import RowSource, as_rows, float_of


class IteratorSource(RowSource):
    """An iterator of blocks of rows. Reading uses it up, so it can be read only once.

    Parameters
    ----------
    blocks : iterator of arrays, data frames or sparse matrices of shape (rows, n_columns)
        Blocks may be of any length, also empty.
    """

    repeatable = False
    threaded = False  # a program's own iterator may be tied to its thread

    def __init__(self, blocks: Iterator):
        self.name = f"the {type(blocks).__name__}"
        first, self._blocks = first_of(blocks, self.name)
        self.n_columns, self.dtype = first.shape[1], float_of(first.dtype)
        self.sparse = is_sparse(first)
        self._used = False

    def chunks(self, rows):
        """The blocks as they come."""
        if self._used:
            raise ValueError(
                f"{self.name} was read already and cannot be read again. Pass a function that "
                "returns a fresh iterator, or a file."
            )
        self._used = True
        yield from located(self._blocks, self.name)


class CallSource(RowSource):
    """A function without arguments that returns a fresh iterator of blocks for each reading."""

    threaded = False

    def __init__(self, function: Callable[[], Iterable]):
        self.function = function
        self.name = f"the blocks of {getattr(function, '__name__', type(function).__name__)}()"
        first, _ = first_of(self._fresh(), self.name)
        self.n_columns, self.dtype = first.shape[1], float_of(first.dtype)
        self.sparse = is_sparse(first)

    def chunks(self, rows):
        """The blocks of a fresh iterator."""
        yield from located(self._fresh(), self.name)

    def _fresh(self) -> Iterator:
        blocks = self.function()
        if not isinstance(blocks, Iterable):
            raise TypeError(
                f"{self.name}: the function returned {type(blocks).__name__}, and an iterator of "
                "blocks of rows is needed."
            )
        return iter(blocks)


def first_of(blocks: Iterator, name: str):
    """The first block with rows in it, and an iterator that still has it."""
    for block in located(blocks, name):
        rows = as_rows(block, name)
        if rows.shape[0]:
            return rows, chain([rows], blocks)
    raise ValueError(
        f"{name} gave no rows. An iterator that was read before is empty: pass a function that "
        "returns a fresh one."
    )


def located(blocks: Iterator, name: str) -> Iterator:
    """The same blocks; an error of the program that makes them says how far it came."""
    count = 0
    try:
        for block in blocks:
            yield block
            count += np.shape(block)[0]
    except Exception as error:
        error.add_note(f"This came from {name}, after {count:,} rows.")
        raise
