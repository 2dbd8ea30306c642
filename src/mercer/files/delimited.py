"""CSV files, read block by block: by pyarrow where it is installed, else by the csv module."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from .._packages import has, needed
from .base import RowSource
from .parquet import choose_columns

# Rows from which the delimiter, the header and the columns of numbers are guessed.
HEAD_ROWS = 100
# Bytes of text that pyarrow parses at a time, for each row wanted and at least.
CELL_BYTES, LEAST_BYTES = 12, 2**16
DELIMITERS = ",;\t|"
MISSING = {"", "na", "nan", "null", "none"}


@dataclass(frozen=True)
class Layout:
    """What the head of a CSV file tells.

    Attributes
    ----------
    delimiter : str
    header : bool
        Whether the first line names the columns.
    skipped : int
        Lines of the file before the first row, the header and empty ones.
    kinds : dict of str to bool
        Every column, and whether it is made of numbers; ``"0"``, ``"1"`` ... without a header.
    """

    delimiter: str
    header: bool
    skipped: int
    kinds: dict[str, bool]

    @property
    def names(self) -> list[str]:
        """All columns in the order of the file."""
        return list(self.kinds)


class CSVSource(RowSource):
    """A CSV file with one row a line.

    Parameters
    ----------
    path : Path
    columns : list of str or int or None
        Names, or numbers from 0 where there is no header; None for all columns that are made
        of numbers in the first hundred rows.
    """

    def __init__(self, path: Path, columns=None):
        self.path, self.name = path, path.name
        self.layout = read_layout(path)
        self.picked, self.left_out = choose_columns(self.layout.kinds, columns, path.name)
        self.n_columns = len(self.picked)
        self.columns = self.picked if self.layout.header else None

    def chunks(self, rows):
        """Blocks of lines."""
        return self._by_pyarrow(rows) if has("pyarrow") else self._by_csv(rows)

    def others(self):
        """The columns that are left out: as numbers where all cells are, else as text."""
        places = {column: self.layout.names.index(column) for column in self.left_out}
        cells: dict[str, list[str]] = {column: [] for column in places}
        for line in self._lines():
            for column, place in places.items():
                cells[column].append(line[place])
        return {column: as_array(values) for column, values in cells.items()}

    def _by_pyarrow(self, rows) -> Iterator[np.ndarray]:
        arrow, pa = needed("pyarrow.csv", "files"), needed("pyarrow", "files")
        names = self.layout.names
        size = max(LEAST_BYTES, CELL_BYTES * rows * len(names))
        read = arrow.ReadOptions(column_names=names, skip_rows=self.layout.skipped, block_size=size)
        convert = arrow.ConvertOptions(
            column_types=dict.fromkeys(self.picked, pa.float64()),
            include_columns=self.picked,
            null_values=sorted({*MISSING, "NaN", "NA", "N/A", "NULL", "None"}),
        )
        parse = arrow.ParseOptions(delimiter=self.layout.delimiter, newlines_in_values=True)
        try:
            with arrow.open_csv(self.path, read, parse, convert) as reader:
                for batch in reader:
                    rows_of_batch = [c.to_numpy(zero_copy_only=False) for c in batch.columns]
                    yield np.column_stack(rows_of_batch)
        except (pa.ArrowInvalid, OSError) as error:
            raise ValueError(f"{self.name} cannot be read as numbers: {error}") from error

    def _by_csv(self, rows) -> Iterator[np.ndarray]:
        places = [self.layout.names.index(column) for column in self.picked]
        lines = self._lines()
        while block := list(islice(lines, rows)):
            yield np.array([self._numbers(line, places) for line in block])

    def _lines(self) -> Iterator[list[str]]:
        """The cells of every line below the header."""
        with self.path.open(newline="") as file:
            lines = (line for line in csv.reader(file, delimiter=self.layout.delimiter) if line)
            yield from islice(lines, int(self.layout.header), None)

    def _numbers(self, line, places):
        try:
            return [number(line[place]) for place in places]
        except (ValueError, IndexError):
            raise ValueError(
                f"{self.name} cannot be read as numbers: {line!r} should have "
                f"{len(self.layout.names)} cells, with numbers in {self.picked}."
            ) from None


def as_array(cells: list[str]) -> np.ndarray:
    """A column as numbers where it can be, else as text."""
    return np.array([number(c) for c in cells] if all(map(is_number, cells)) else cells)


def number(cell: str) -> float:
    """A cell as a number; an empty one is NaN."""
    return float("nan") if cell.strip().lower() in MISSING else float(cell)


def is_number(cell: str) -> bool:
    """Whether a cell is a number or empty."""
    try:
        number(cell)
    except ValueError:
        return False
    return True


def read_layout(path: Path) -> Layout:
    """The layout of a CSV file, from its first rows."""
    delimiter = delimiter_of(path)
    lines, first_line = head(path, delimiter)
    first, rest = lines[0], lines[1:]
    header = not all(is_number(cell) for cell in first)
    names = [cell.strip() for cell in first] if header else [str(i) for i in range(len(first))]
    if len(set(names)) < len(names):
        raise ValueError(f"{path.name}: two columns have the same name in {names}.")
    if header and not rest:
        raise ValueError(f"{path.name} has a header and no rows.")
    body = rest if header else lines
    for line in body:
        if len(line) != len(names):
            raise ValueError(
                f"{path.name}: the first line has {len(names)} cells and a later one "
                f"{len(line)}: {line!r}."
            )
    numeric = [all(is_number(line[i]) for line in body) for i in range(len(names))]
    kinds = dict(zip(names, numeric, strict=True))
    return Layout(delimiter, header, first_line if header else 0, kinds)


def head(path: Path, delimiter: str) -> tuple[list[list[str]], int]:
    """The cells of the first lines that are not empty, and the number of the first one's line."""
    try:
        with path.open(newline="") as file:
            reader = csv.reader(file, delimiter=delimiter)
            lines = ((line, reader.line_num) for line in reader if line)
            found = list(islice(lines, HEAD_ROWS + 1))
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path.name} cannot be read as text: {error}") from error
    if not found:
        raise ValueError(f"{path.name} is empty.")
    return [line for line, _ in found], found[0][1]


def delimiter_of(path: Path) -> str:
    """The delimiter that the first line has most of."""
    try:
        with path.open(newline="") as file:
            line = next((line for line in file if line.strip()), "")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path.name} cannot be read as text: {error}") from error
    return max(DELIMITERS, key=line.count)
