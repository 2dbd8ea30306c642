"""CSV files, read block by block: by pyarrow where it is installed, else by the csv module."""

import csv
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from itertools import islice
from pathlib import Path

import numpy as np

from .._packages import has, needed
from .arrow import as_floats
from .base import RowSource
from .cells import MARKS, Cells
from .columns import choose_columns, reasons_of
from .layout import read_layout
from .text import UNREADABLE, LineBytes, Lines, TextFormat, is_utf8, open_text, undecodable

# Bytes of text that pyarrow parses at a time, for each row wanted, at least and at most.
CELL_BYTES, LEAST_BYTES, MOST_BYTES = 12, 2**16, 2**28
# Rows of a block below which pyarrow, which is slow to begin each column of each block, loses
# to the csv module.
LEAST_ROWS = 200
# Whole numbers that are written as such; and codes, which would lose their digits as numbers.
WHOLE, CODE = re.compile(r"0|-?[1-9]\d{0,14}"), re.compile(r"[-+]?(0\d.*|\d{16,})")


class CSVSource(RowSource):
    """A CSV file with one row a line.

    Parameters
    ----------
    path : Path
    columns : list of str or int or None
        Names, or numbers from 0 where there is no header; None for all columns that are made
        of numbers in the first hundred rows.
    format : TextFormat
        What cannot be seen from the text.
    """

    def __init__(self, path: Path, columns=None, format: TextFormat | None = None):
        self.path, self.name = path, path.name
        self.format = format or TextFormat()
        self.cells = Cells(self.format)
        self.layout = read_layout(path, self.format)
        self.picked, self.left_out = choose_columns(self.layout.kinds, columns, path.name)
        self.reasons = reasons_of(self.layout.kinds, self.left_out)
        self.notes = self._notes(columns is None)
        self.n_columns = len(self.picked)
        self.columns = self.picked if self.layout.header else None

    def chunks(self, rows):
        """Blocks of lines."""
        worth = rows >= LEAST_ROWS and has("pyarrow")
        return self._by_pyarrow(rows) if worth else self._by_csv(rows)

    def others(self, names=None):
        """The columns that are left out: as numbers where all cells are, else as text."""
        wanted = self.left_out if names is None else names
        places = {column: self._places[column] for column in wanted}
        cells: dict[str, list[str]] = {column: [] for column in places}
        with self._open() as lines:
            for line in self._rows(lines):
                for column, place in places.items():
                    cells[column].append(line[place])
        return {column: self._as_array(values) for column, values in cells.items()}

    def place_of(self, row):
        """The line that a row is on."""
        with self._open() as lines:
            for _ in islice(self._rows(lines), row + 1):
                pass
            return f"line {lines.number}"

    def _notes(self, chosen_here: bool) -> tuple[str, ...]:
        used = (self.layout.if_used.get(column) for column in self.picked)
        left = (self.layout.if_left.get(column) for column in self.left_out)
        found = (*self.layout.notes, *used, *(left if chosen_here else ()))
        return tuple(f"{self.name}: {note}" for note in found if note is not None)

    @contextmanager
    def _open(self) -> Iterator[Lines]:
        """The lines of the file from its start."""
        try:
            with open_text(self.path, self.format.encoding) as file:
                yield Lines(file, self.layout.comment)
        except (*UNREADABLE, csv.Error) as error:
            raise undecodable(self.path, self.format.encoding, error) from error

    def _rows(self, lines: Lines) -> Iterator[list[str]]:
        """The cells of every row, which all have the same number of them."""
        width, named = len(self.layout.names), int(bool(self.layout.skipped))
        rows = (row for row in csv.reader(lines, delimiter=self.layout.delimiter) if row)
        for row in islice(rows, named, None):
            if len(row) != width:
                raise ValueError(
                    f"{self.name} cannot be read as numbers: line {lines.number} has {len(row)} "
                    f"cells, and the first line has {width}."
                )
            yield row

    def _by_pyarrow(self, rows) -> Iterator[np.ndarray]:
        arrow, pa = needed("pyarrow.csv", "files"), needed("pyarrow", "files")
        names = self.layout.names
        size = min(max(LEAST_BYTES, CELL_BYTES * rows * len(names)), MOST_BYTES)
        read = arrow.ReadOptions(column_names=names, skip_rows=self.layout.skipped, block_size=size)
        truths = self.layout.truths
        convert = arrow.ConvertOptions(
            column_types={c: pa.bool_() if c in truths else pa.float64() for c in self.picked},
            include_columns=self.picked,
            null_values=spellings(self.cells.missing),
            true_values=spellings({"true"}),
            false_values=spellings({"false"}),
            decimal_point=self.format.decimal,
        )
        parse = arrow.ParseOptions(delimiter=self.layout.delimiter, newlines_in_values=True)
        try:
            with (
                self._open() as lines,
                arrow.open_csv(self._for_pyarrow(lines), read, parse, convert) as reader,
            ):
                for batch in reader:
                    yield np.column_stack([as_floats(column) for column in batch.columns])
        except (pa.ArrowInvalid, OSError) as error:
            for _ in self._by_csv(rows):  # which names the line
                pass
            raise ValueError(f"{self.name} cannot be read as numbers: {error}") from error

    def _for_pyarrow(self, lines: Lines):
        """The file itself where pyarrow reads it as we do, else its lines."""
        plain = self.layout.comment is None and is_utf8(self.format.encoding)
        return self.path if plain else LineBytes(lines)

    def _by_csv(self, rows) -> Iterator[np.ndarray]:
        places = {column: self._places[column] for column in self.picked}
        read = self._plain if self._is_plain else self._numbers
        with self._open() as lines:
            found = (read(row, places, lines) for row in self._rows(lines))
            while block := list(islice(found, rows)):
                yield np.array(block)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.layout.names)}

    @property
    def _is_plain(self) -> bool:
        """Whether Python reads most cells as we do, which is ten times faster."""
        return self.format.decimal == "." and not self.layout.truths

    def _plain(self, row, places, lines: Lines) -> list[float]:
        """Cells as numbers where all are, else one by one."""
        cells = [row[place] for place in places.values()]
        try:
            numbers = list(map(float, cells))
        except ValueError:
            return self._numbers(row, places, lines)
        return self._numbers(row, places, lines) if "_" in "".join(cells) else numbers

    def _numbers(self, row, places, lines: Lines) -> list[float]:
        numbers = []
        for column, place in places.items():
            read = self.cells.truth if column in self.layout.truths else self.cells.number
            try:
                numbers.append(read(row[place]))
            except ValueError:
                raise ValueError(
                    f"{self.name} cannot be read as numbers: line {lines.number} has "
                    f"{row[place]!r} in column {column!r}.{self._hint(row[place])}"
                ) from None
        return numbers

    def _hint(self, cell: str) -> str:
        if cell.strip() in MARKS:
            return " If that is a missing value, give missing='drop' or 'mean'."
        return " Correct the line, or leave the column out."

    def _as_array(self, cells: list[str]) -> np.ndarray:
        """A column as numbers where it can be, whole ones as such, else as text."""
        if all(map(WHOLE.fullmatch, cells)):
            return np.array([int(cell) for cell in cells])
        if not any(map(CODE.fullmatch, cells)) and all(map(self.cells.is_number, cells)):
            return np.array([self.cells.number(cell) for cell in cells])
        return np.array(cells)


def spellings(words: set[str]) -> list[str]:
    """Words in small letters, in capitals, or with a capital first; and NaN."""
    forms = {form for word in words for form in (word, word.upper(), word.capitalize())}
    return sorted(forms | ({"NaN"} if "nan" in words else set()))
