"""Cells of a text table: which are numbers, which hold nothing, and what the others are."""

import re
from collections.abc import Sequence

from .text import TextFormat

MISSING = {"", "na", "nan", "null", "none", "n/a", "#n/a"}
MARKS = {"?", "-", "--", ".", "..", "*"}
TRUTH = {"true": 1.0, "false": 0.0}
# Share of cells that are numbers in a column of numbers with a few faults; with less it is text.
MOSTLY = 0.5
DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([T ]\d{1,2}:\d{2}.*)?")


class Cells:
    """Cells as numbers, in the format of a file."""

    def __init__(self, format: TextFormat):
        self.decimal = format.decimal
        self.missing = MISSING | MARKS if format.marks else MISSING

    def is_missing(self, cell: str) -> bool:
        """Whether a cell holds nothing."""
        return cell.strip().lower() in self.missing

    def number(self, cell: str) -> float:
        """A cell as a number; NaN where it holds nothing."""
        if self.is_missing(cell):
            return float("nan")
        if "_" in cell or (self.decimal != "." and "." in cell):
            raise ValueError(cell)  # Python alone reads 1_000
        return float(cell.replace(self.decimal, "."))

    def is_number(self, cell: str) -> bool:
        """Whether a cell is a number or holds nothing."""
        try:
            self.number(cell)
        except ValueError:
            return False
        return True

    def truth(self, cell: str) -> float:
        """A cell of true or false as 1 or 0; NaN where it holds nothing."""
        if self.is_missing(cell):
            return float("nan")
        if cell.strip().lower() not in TRUTH:
            raise ValueError(cell)
        return TRUTH[cell.strip().lower()]

    def are_truths(self, cells: Sequence[str]) -> bool:
        """Whether a column is made of true and false."""
        known = {cell.strip().lower() for cell in cells if not self.is_missing(cell)}
        return bool(known) and known <= set(TRUTH)

    def counts(self, cells: Sequence[str], least: int) -> bool:
        """Whether a column counts its rows from 0 or 1, and has `least` of them or more."""
        if len(cells) < least or any(map(self.is_missing, cells)):
            return False
        if not all(map(self.is_number, cells)):
            return False
        first = self.number(cells[0])
        return first in (0, 1) and all(self.number(c) == first + i for i, c in enumerate(cells))

    def why_no_number(self, cells: Sequence[str], lines: Sequence[int]) -> str | None:
        """Why a column is not read as numbers, with the line of the first fault; None if it is."""
        known = [cell for cell in cells if not self.is_missing(cell)]
        if not known:
            return "empty"
        faults = [i for i, cell in enumerate(cells) if not self.is_number(cell)]
        if not faults or self.are_truths(cells):
            return None
        if all(DATE.fullmatch(cell.strip()) for cell in known):
            return "dates"
        bad = cells[faults[0]].strip()
        # A quantity written otherwise, such as 1,000, is one fault in every cell.
        if len(faults) <= MOSTLY * len(known) or like_number(bad):
            return f"{bad!r} in line {lines[faults[0]]}"
        return "text"


def like_number(cell: str) -> bool:
    """Whether a cell is a number with a comma in it."""
    return "," in cell and Cells(TextFormat()).is_number(cell.replace(",", ""))
