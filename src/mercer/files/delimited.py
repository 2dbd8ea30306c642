"""CSV files, read block by block: by pyarrow where it is installed, else by the csv module."""

import csv
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

import numpy as np

from .._packages import has, needed
from .arrow import stacked
from .base import RowSource
from .layout import MARKS, Lines, TextFormat, open_lines, read_layout

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
    name : str or None
        What messages call it; None for the name of the file.
    """

    def __init__(self, path: Path, columns=None, format: TextFormat | None = None, name=None):
        self.path, self.name = path, name or path.name
        self.layout = read_layout(path, format or TextFormat())
        self.format, known = self.layout.format, self.layout.columns
        self._take_columns({name: column.why for name, column in known.items()}, columns)
        self.picked: list[str] = self.columns or []
        self.places = {name: place for place, name in enumerate(known)}
        self.truths = {name for name in self.picked if known[name].is_truth}
        self.columns = self.picked if self.layout.header else None
        told = [known[name].if_used for name in self.picked]
        told += [known[name].if_left for name in self.left_out] if columns is None else []
        told = [*self.layout.notes, *told]
        self.notes = tuple(f"{self.name}: {note}" for note in told if note)

    def chunks(self, rows):
        """Blocks of lines. pyarrow knows no comments, and no thousands apart."""
        plain = self.layout.comment is None and not self.format.thousands
        fast = rows >= LEAST_ROWS and plain and has("pyarrow")
        return self._by_pyarrow(rows) if fast else self._by_csv(rows)

    def others(self, names=None):
        """The columns that are left out: as numbers where all cells are, else as text."""
        wanted = self.left_out if names is None else names
        cells: dict[str, list[str]] = {column: [] for column in wanted}
        with open_lines(self.path, self.format, self.layout.comment) as lines:
            for row in self._rows(lines):
                for column in wanted:
                    cells[column].append(row[self.places[column]])
        return {column: self._as_array(values) for column, values in cells.items()}

    def place_of(self, row):
        """The line that a row is on."""
        with open_lines(self.path, self.format, self.layout.comment) as lines:
            next(islice(self._rows(lines), row, None), None)
            return f"line {lines.number}"

    def _rows(self, lines: Lines) -> Iterator[list[str]]:
        """The cells of every row, which all have the same number of them."""
        width, named = len(self.places), int(bool(self.layout.skipped))
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
        names = list(self.places)
        read = arrow.ReadOptions(
            column_names=names,
            skip_rows=self.layout.skipped,
            block_size=min(max(LEAST_BYTES, CELL_BYTES * rows * len(names)), MOST_BYTES),
            # pyarrow decodes anything that is not called so, which takes twice the time.
            encoding="utf8" if self.format.is_utf8 else self.format.encoding,
        )
        convert = arrow.ConvertOptions(
            column_types={c: pa.bool_() if c in self.truths else pa.float64() for c in self.picked},
            include_columns=self.picked,
            null_values=[*spellings(self.format.missing), "NaN"],
            true_values=spellings({"true"}),
            false_values=spellings({"false"}),
            decimal_point=self.format.decimal,
        )
        parse = arrow.ParseOptions(delimiter=self.layout.delimiter, newlines_in_values=True)
        try:
            with arrow.open_csv(self.path, read, parse, convert) as reader:
                for batch in reader:
                    yield stacked(batch, self.picked, self.dtype)
        except (pa.ArrowInvalid, OSError, UnicodeError) as error:
            for _ in self._by_csv(rows):  # which names the line
                pass
            raise ValueError(f"{self.name} cannot be read as numbers: {error}") from error

    def _by_csv(self, rows) -> Iterator[np.ndarray]:
        places = [self.places[column] for column in self.picked]
        count = 0
        with open_lines(self.path, self.format, self.layout.comment) as lines:
            found = ([row[place] for place in places] for row in self._rows(lines))
            while block := list(islice(found, rows)):
                yield self._numbers(block, count)
                count += len(block)

    def _numbers(self, block: list[list[str]], start: int) -> np.ndarray:
        """Cells as numbers: at once where Python reads them as we do, else one by one."""
        if self.format.decimal == "." and not self.truths:
            with suppress(ValueError):
                if not any("_" in "".join(row) for row in block):
                    return np.array([list(map(float, row)) for row in block])
        format = self.format
        read = [format.truth if column in self.truths else format.number for column in self.picked]
        numbers = np.empty((len(block), len(read)))
        for i, row in enumerate(block):
            for j, cell in enumerate(row):
                number = read[j](cell)
                if number is None:
                    hint = "Correct the line, or leave the column out."
                    if cell.strip() in MARKS:
                        hint = "If that is a missing value, give missing='drop' or missing='mean'."
                    raise ValueError(
                        f"{self.name} cannot be read as numbers: {self.place_of(start + i)} has "
                        f"{cell!r} in column {self.picked[j]!r}. {hint}"
                    )
                numbers[i, j] = number
        return numbers

    def _as_array(self, cells: list[str]) -> np.ndarray:
        """A column as numbers where it can be, whole ones as such, else as text."""
        if all(map(WHOLE.fullmatch, cells)):
            return np.array([int(cell) for cell in cells])
        numbers = list(map(self.format.number, cells))
        coded = None in numbers or any(map(CODE.fullmatch, cells))
        return np.array(cells if coded else numbers)


def spellings(words: set[str]) -> list[str]:
    """Words in small letters, in capitals, or with a capital first."""
    return sorted({form for word in words for form in (word, word.upper(), word.capitalize())})
