"""CSV files, read block by block: by pyarrow where it is installed, else by the csv module.

The first rows tell the delimiter, the header, and which columns are numbers. A column that is not
read as numbers has a reason, and a decision that may be wrong has a note for the user.
"""

import csv
import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import IO
from zipfile import ZipFile

import numpy as np

from .._packages import has, needed
from .._remote import temporary_folder
from ..compute import parse_bytes
from .arrow import stacked
from .base import COUNTER, RowSource, check_room, check_unique, chosen_columns, readable

#: Endings of compressed files, and what opens them.
COMPRESSED = {".gz": gzip.open}
# Longest line in characters, as of ten million columns: a small compressed file can hold a line of
# any length.
MOST_LINE = 2**27
# Rows from which the delimiter, the header and the columns of numbers are guessed; fewer if rows
# are so wide that a hundred of them would take minutes.
HEAD_ROWS, HEAD_CELLS, LEAST_HEAD = 100, 300_000, 3
# The space is the last choice: other delimiters may be followed by one.
DELIMITERS = ",;\t| "
COMMENT = "#"
# Rows that count up by one before a column is taken for row numbers, and not for chance.
COUNTED_ROWS = 5
# Names that count up by one before a line of numbers is taken for names.
COUNTED_NAMES = 3
# Cells that are missing values, in lower case; marks only if the user says what to do about them.
MISSING = {"", "na", "nan", "null", "none", "n/a", "#n/a"}
MARKS = {"?", "-", "--", ".", "..", "*"}
MARK_ADVICE = "If that is a missing value, give missing='drop' or missing='mean'."
TRUTH = {"true": 1.0, "false": 0.0}
# Share of cells that are numbers in a column of numbers with a few faults; below it is text.
MOSTLY = 0.5
# A number with a comma in it, and one whose commas may separate thousands.
COMMA, GROUPED = re.compile(r"[-+]?\d*,\d+(e[-+]?\d+)?", re.I), re.compile(r"[-+]?\d{1,3}(,\d{3})+")
DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([T ]\d{1,2}:\d{2}.*)?")
# Bytes of text that pyarrow parses at a time, for each row wanted, at least and at most.
CELL_BYTES, LEAST_BYTES, MOST_BYTES = 12, 2**16, 2**28
# Bytes that a cell of an Excel file takes while it is read, and copies of its texts.
CELL_BYTES_HELD, TEXT_COPIES = 400, 4
# What the marks of a cell or a row take in the file of a sheet: beyond them it is text.
MARK_BYTES = 120
# A cell that holds something, by column and row, and what each place of a table up to it takes.
FILLED_CELL, PLACE_BYTES = re.compile(rb'[<:]c [^<>]*?\br="([A-Z]{1,3})(\d{1,9})"[^<>/]*>'), 24
# Below this many rows per block the csv module is faster than pyarrow, which is slow to begin each
# column of each block.
LEAST_ROWS = 200
# Whole numbers that are written as such; and codes, which would lose their digits as numbers.
WHOLE, CODE = re.compile(r"0|-?[1-9]\d{0,14}"), re.compile(r"[-+]?(0\d.*|\d{16,})")


@dataclass(frozen=True)
class TextFormat:
    """How the text of a table is written, where that cannot be detected.

    Attributes
    ----------
    encoding : str
        As Python names it, such as ``"utf-8"``, ``"latin-1"`` or ``"utf-16"``.
    decimal : str or None
        The decimal point, ``"."`` or ``","``; None to detect it if the delimiter is no comma.
    thousands : str
        Thousands separator, such as ``"."`` in ``1.234,5``; empty for none.
    comment : str or None
        Lines starting with this are ignored; None for ``"#"`` if few lines start with it.
    header : bool or None
        Whether the first line names the columns; None to detect it.
    marks : bool
        Whether cells such as ``?`` and ``-`` are missing values, and not text.
    """

    encoding: str = "utf-8"
    decimal: str | None = None
    thousands: str = ""
    comment: str | None = None
    header: bool | None = None
    marks: bool = False

    @property
    def is_utf8(self) -> bool:
        """Whether the encoding is UTF-8, however it is spelled."""
        return self.encoding.lower().replace("_", "-") in ("utf-8", "utf8", "utf-8-sig")

    @property
    def missing(self) -> set[str]:
        """Cells that are missing values, in lower case."""
        return MISSING | MARKS if self.marks else MISSING

    def is_missing(self, cell: str) -> bool:
        """Whether a cell is a missing value."""
        return cell.strip().lower() in self.missing

    def number(self, cell: str) -> float | None:
        """A cell as a number: NaN if it is missing, None if it is something else."""
        if self.is_missing(cell):
            return float("nan")
        if self.thousands:
            cell = re.sub(rf"(?<=\d){re.escape(self.thousands)}(?=\d{{3}}(?!\d))", "", cell)
        point = self.decimal or "."
        if "_" in cell or (point != "." and "." in cell):
            return None  # Python alone reads 1_000
        try:
            return float(cell.replace(point, "."))
        except ValueError:
            return None

    def truth(self, cell: str) -> float | None:
        """A cell of true or false as 1 or 0, in the same way."""
        return float("nan") if self.is_missing(cell) else TRUTH.get(cell.strip().lower())


class CSVSource(RowSource):
    """A CSV file with one row a line.

    Parameters
    ----------
    path : Path
    columns : list of str or int or None
        Names, or numbers from 0 if there is no header; None for all columns that are made of
        numbers in the first hundred rows.
    format : TextFormat
        What cannot be detected.
    name : str or None
        What messages call it; None for the name of the file.
    """

    def __init__(self, path: Path, columns=None, format: TextFormat | None = None, name=None):
        self.path, self.name = path, name or path.name
        self.format, self.comment, self.delimiter, notes = detect(path, format or TextFormat())
        head = self._read_head(notes)
        kinds = {name: column.why for name, column in head.items()}
        self.picked, self.reasons = chosen_columns(self.name, kinds, columns)
        self.n_columns = len(self.picked)
        self.places = {name: place for place, name in enumerate(head)}
        self.truths = {name for name in self.picked if head[name].is_truth}
        self.columns = self.picked if self.has_names else None
        notes += [head[name].if_used for name in self.picked]
        notes += [head[name].if_left for name in self.left_out] if columns is None else []
        self.notes = tuple(f"{self.name}: {note}" for note in notes if note)

    def _read_head(self, notes: list[str | None]) -> dict[str, "Column"]:
        """What the first rows tell of every column, in the order of the file; may add notes.

        Sets whether columns have names, and how many lines before the first row to skip, comments
        not counted.
        """
        rows: list[list[str]] = []
        numbers: list[int] = []  # of the lines that the rows end on
        skipped = 0
        with open_lines(self.path, self.format, self.comment) as lines:
            reader = csv.reader(lines, delimiter=self.delimiter)
            for row in filter(None, reader):
                skipped = skipped or reader.line_num
                rows.append(row)
                numbers.append(lines.number)
                if len(rows) > max(LEAST_HEAD, min(HEAD_ROWS, HEAD_CELLS // len(rows[0]))):
                    break
        if not rows:
            raise ValueError(f"{self.name} is empty. Give a table with rows.")
        if self.path.suffix.lower() not in COMPRESSED:
            characters = sum(len(cell) + 1 for row in rows for cell in row)
            self.likely_rows = self.path.stat().st_size * len(rows) // characters
        width, is_header = len(rows[0]), False
        titles = names_in_comment(lines.above, rows[0], self.delimiter, self.format)
        self.has_names = titles is not None
        if titles is None:
            self.has_names = is_header = has_header(rows, self.format, notes)
            titles = rows[0] if is_header else [str(i) for i in range(width)]
        # A column without a name is called as pandas would call it.
        names = [title.strip() or f"Unnamed: {i}" for i, title in enumerate(titles)]
        if lines.between:
            notes.append(f"Lines that start with {self.comment!r} are left out as comments.")
        check_unique(names, self.name)
        self.skipped, rows, numbers = skipped * is_header, rows[is_header:], numbers[is_header:]
        if not rows:
            raise ValueError(f"{self.name} has a header and no rows. Add at least one.")
        for row, line in zip(rows, numbers, strict=True):
            self._check_width(row, width, line)
        unnamed = [None if title.strip() else i for i, title in enumerate(titles, 1)]
        cells = zip(names, unnamed, zip(*rows, strict=True), strict=True)
        return {name: Column.of(name, i, column, numbers, self.format) for name, i, column in cells}

    def chunks(self, rows):
        """Blocks of lines. pyarrow knows no comments and no thousands separators."""
        plain = self.comment is None and not self.format.thousands
        fast = rows >= LEAST_ROWS and plain and has("pyarrow")
        return self._by_pyarrow(rows) if fast else self._by_csv(rows)

    def others(self, names=None):
        """The columns that are left out: as numbers if all cells are, else as text."""
        wanted = self.left_out if names is None else names
        cells: dict[str, list[str]] = {column: [] for column in wanted}
        for _, row in self._rows():
            for column in wanted:
                cells[column].append(row[self.places[column]])
        return {column: self._as_array(values) for column, values in cells.items()}

    def place_of(self, row):
        """The line that a row is on."""
        return next((f"line {line}" for line, _ in islice(self._rows(), row, None)), "")

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        """The line and the cells of every row; all rows have the same number of them."""
        with open_lines(self.path, self.format, self.comment) as lines:
            rows = filter(None, csv.reader(lines, delimiter=self.delimiter))
            for row in islice(rows, int(bool(self.skipped)), None):
                self._check_width(row, len(self.places), lines.number)
                yield lines.number, row

    def _check_width(self, row: list[str], width: int, line: int) -> None:
        """Raise ValueError for a row that has another number of cells than the first line."""
        if len(row) != width:
            raise ValueError(
                f"{self.name} cannot be read as numbers: line {line} has {len(row)} cells, and the "
                f"first line has {width}: {row!r:.200}. Give all lines the same number, or quote "
                "cells that hold the delimiter."
            )

    def _by_pyarrow(self, rows) -> Iterator[np.ndarray]:
        arrow, pa = needed("pyarrow.csv", "files"), needed("pyarrow", "files")
        names = list(self.places)
        read = arrow.ReadOptions(
            column_names=names,
            skip_rows=self.skipped,
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
        parse = arrow.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)
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
        picked_cells = ((line, [row[place] for place in places]) for line, row in self._rows())
        while block := list(islice(picked_cells, rows)):
            yield self._numbers(*zip(*block, strict=True))

    def _numbers(self, lines: Sequence[int], block: Sequence[list[str]]) -> np.ndarray:
        """The cells of these lines as numbers: at once if Python reads them as we do."""
        if self.format.decimal == "." and not self.truths:
            with suppress(ValueError):
                if not any("_" in "".join(row) for row in block):
                    return np.array([list(map(float, row)) for row in block])
        format = self.format
        read = [format.truth if column in self.truths else format.number for column in self.picked]
        numbers = np.empty((len(block), len(read)))
        for i, (line, row) in enumerate(zip(lines, block, strict=True)):
            for j, cell in enumerate(row):
                number = read[j](cell)
                if number is None:
                    hint = "Correct the line, or leave the column out."
                    hint = MARK_ADVICE if cell.strip() in MARKS else hint
                    raise ValueError(
                        f"{self.name} cannot be read as numbers: line {line} has {cell!r} in "
                        f"column {self.picked[j]!r}. {hint}"
                    )
                numbers[i, j] = number
        return numbers

    def _as_array(self, cells: list[str]) -> np.ndarray:
        """A column as integers or numbers if it can be, else as text."""
        if all(map(WHOLE.fullmatch, cells)):
            return np.array([int(cell) for cell in cells])
        numbers = list(map(self.format.number, cells))
        coded = None in numbers or any(map(CODE.fullmatch, cells))
        return np.array(cells if coded else numbers)


class SheetSource(CSVSource):
    """A sheet of an Excel file, read as the text table that it would be saved as.

    So the same table has the same columns in either form.

    Parameters
    ----------
    path : Path
    columns : list of str or None
        None for all columns of numbers.
    name : str or None
        Of the sheet; None for the first one.
    format : TextFormat or None
        Of cells that are text.
    memory : int, str or None
        The budget, which all cells must fit.
    """

    def __init__(
        self, path: Path, columns=None, name=None, format: TextFormat | None = None, memory=None
    ):
        pandas = needed("pandas", "excel", path.name)
        if path.suffix.lower() == ".xlsx":
            needed("openpyxl", "excel", path.name)
            check_book(path, parse_bytes(memory))
        with readable(path.name, "an Excel file"):
            sheet = 0 if name is None else name
            frame = pandas.read_excel(path, sheet_name=sheet, header=None, dtype=object)
        text = temporary_folder(self) / f"{path.name}.tsv"
        frame.to_csv(text, sep="\t", index=False, header=False, encoding="utf-8")
        # Cells that hold numbers have points.
        plain = replace(format or TextFormat(), encoding="utf-8", decimal=".")
        super().__init__(text, columns, plain, path.name)
        self.n_rows = len(frame) - self.has_names


def check_book(path: Path, memory: int) -> None:
    """Raise ValueError for an Excel file whose cells do not fit the budget; a fast look at them.

    A few kilobytes can hold any number of cells, or one at the far end of a table that is empty.
    """
    from openpyxl.utils import column_index_from_string

    with readable(path.name, "an Excel file"), ZipFile(path) as book:
        size = cells = marked = 0
        for member in book.infolist():
            in_sheet = "worksheets" in member.filename
            with book.open(member) as file:
                width, length, end = 0, 0, b""
                while part := file.read(2**16):
                    places, end = FILLED_CELL.findall(end + part), part[-256:]
                    names = {column.decode() for column, _ in places}
                    width = max([width, *map(column_index_from_string, names)])
                    length = max([length, *(int(row) for _, row in places)])
                    found = part.count(b"<c") + part.count(b":c ")
                    cells, size = cells + found, size + len(part)
                    marked += MARK_BYTES * in_sheet * (found + part.count(b"row "))
                    need = CELL_BYTES_HELD * cells + TEXT_COPIES * max(0, size - marked)
                    need += PLACE_BYTES * width * length
                    count = max(cells, width * length)
                    what = f"{path.name} has {count:,} cells or more: reading them and their texts"
                    instead = "save the sheet as .csv, which is read in blocks"
                    check_room(what, need, memory, instead)


def spellings(words: set[str]) -> list[str]:
    """Words in lower case, in capitals, or with a capital first."""
    return sorted({form for word in words for form in (word, word.upper(), word.capitalize())})


@dataclass(frozen=True)
class Column:
    """What the first rows of a text table tell of a column.

    Attributes
    ----------
    why : str or None
        Why it is not read as numbers.
    is_truth : bool
        Whether its numbers are written as true and false.
    if_used, if_left : str or None
        What a user should know if it is used, or left out without being asked.
    """

    why: str | None
    is_truth: bool = False
    if_used: str | None = None
    if_left: str | None = None

    @classmethod
    def of(
        cls,
        name: str,
        unnamed: int | None,
        cells: Sequence[str],
        lines: list[int],
        format: TextFormat,
    ) -> "Column":
        """A column by its first cells, on these lines; `unnamed` is its place from 1 if no name."""
        numbers = [format.number(cell) for cell in cells]
        present = [cell for cell in cells if not format.is_missing(cell)]
        is_truth = bool(present) and {cell.strip().lower() for cell in present} <= set(TRUTH)
        counts = numbers[0] in (0, 1) and steps_by_one(numbers)
        if_used = None
        if unnamed is not None and counts:
            note = f"Column {name!r} is left out: it has no name and counts the rows."
            return cls(COUNTER, if_left=note)
        if unnamed is not None:
            if_used = (
                f"Column {unnamed} has no name and is called {name!r}. If it numbers the rows, "
                "leave it out."
            )
        elif counts and len(cells) >= COUNTED_ROWS:
            if_used = f"Column {name!r} counts the rows. If it is no measurement, leave it out."
        faults = [i for i, number in enumerate(numbers) if number is None]
        if not present or not faults or is_truth:
            return cls(None if present else "empty", is_truth, if_used)
        if all(DATE.fullmatch(cell.strip()) for cell in present):
            return cls("dates", False, if_used)
        bad = cells[faults[0]].strip()
        with_comma = "," in bad and TextFormat().number(bad.replace(",", "")) is not None
        # A quantity written otherwise, such as 1,000, is one fault in every cell.
        if not with_comma and len(faults) > MOSTLY * len(present):
            return cls("text", False, if_used)
        advice = MARK_ADVICE if bad in MARKS else "Correct that line to use the column."
        if with_comma:
            advice = "Give decimal=',' if the comma is the decimal point, else thousands=','."
        why = f"{bad!r} in line {lines[faults[0]]}"
        return cls(why, False, if_used, f"Column {name!r} is left out: {why}. {advice}")


class Lines:
    """The lines of a text file that are no comments.

    Attributes
    ----------
    number : int
        Of the last line read.
    above : str
        The last comment before the first of the others, if any.
    between : bool
        Whether a comment came after that.
    """

    def __init__(self, file: IO[str], comment: str | None):
        self.file, self.comment = file, comment
        self.number, self.above, self.between = 0, "", False

    def __iter__(self) -> Iterator[str]:
        begun = False
        while line := self.file.readline(MOST_LINE):
            self.number += 1
            if len(line) == MOST_LINE:
                raise OSError(f"line {self.number} has more than {MOST_LINE:,} characters")
            if self.comment is None or not line.startswith(self.comment):
                begun = begun or bool(line.strip())
                yield line
            elif begun:
                self.between = True
            else:
                self.above = line


@contextmanager
def open_lines(path: Path, format: TextFormat, comment: str | None) -> Iterator[Lines]:
    """The lines of a text file, decompressed; an error says what to do about its encoding."""
    # "utf-8-sig" passes over the mark that some programs write first.
    encoding = "utf-8-sig" if format.is_utf8 else format.encoding
    try:
        opened = COMPRESSED.get(path.suffix.lower(), open)
        with opened(path, "rt", encoding=encoding, newline="") as file:
            yield Lines(file, comment)
    except LookupError as error:
        raise ValueError(
            f"{path.name}: there is no encoding {format.encoding!r}. Give one that Python knows."
        ) from error
    except (UnicodeError, EOFError, OSError, zlib.error, csv.Error) as error:
        with path.open("rb") as raw:
            marked = raw.read(2) in (b"\xff\xfe", b"\xfe\xff")
        hint = "encoding='utf-16'" if marked else "encoding='latin-1' or encoding='cp1252'"
        raise ValueError(
            f"{path.name} cannot be read as text in {format.encoding}: {error}. If it is text, "
            f"give {hint}."
        ) from error


def bare_suffix(path: Path) -> str:
    """The suffix without that of a compression: ``.csv`` of ``rows.csv.gz``."""
    suffix = path.suffix.lower()
    return Path(path.name).with_suffix("").suffix.lower() if suffix in COMPRESSED else suffix


def detect(path: Path, format: TextFormat):
    """The format with its decimal point, what comments start with, the delimiter, and notes.

    Unless asked otherwise, only # starts comments, and only if few of the first lines start with
    it. The decimal point is a comma if cells between other delimiters have commas and none has a
    point; commas that may all separate thousands prove nothing. The delimiter is the one that the
    first line has most of.
    """
    with open_lines(path, format, None) as lines:
        filled = (line for line in lines if line.strip())
        head = list(islice(filled, HEAD_ROWS + 1))
        remarks = sum(line.startswith(COMMENT) for line in head)
        comment = format.comment or (COMMENT if 0 < remarks <= len(head) / 2 else None)
        others = (line for line in chain(head, filled) if not line.startswith(comment or "\0"))
        rows = list(islice(others, HEAD_ROWS + 1))
    first, by_tabs = rows[0] if rows else "", bare_suffix(path) == ".tsv"
    notes: list[str | None] = []
    decimal = format.decimal or ("," if format.thousands == "." else ".")
    mark = "\t" if by_tabs else max(";\t|", key=first.count)
    if format.decimal is None and not format.thousands and mark in first:
        cells = [cell.strip(' "') for line in rows for cell in line.strip().split(mark)]
        commas = [cell for cell in cells if COMMA.fullmatch(cell)]
        point = any("." in cell and format.number(cell) is not None for cell in cells)
        if not point and not all(GROUPED.fullmatch(cell) for cell in commas):
            decimal, example = ",", f"Numbers such as {commas[0]} have a decimal comma."
            notes.append(f"{example} If it is none, give decimal='.'.")
    choices = DELIMITERS.replace(decimal, "")
    count = {mark: first.count(mark) if mark != " " else 0.5 * (" " in first) for mark in choices}
    delimiter = "\t" if by_tabs else max(choices, key=count.__getitem__)
    return replace(format, decimal=decimal), comment, delimiter, notes


def names_in_comment(above: str, first: list[str], delimiter: str, format: TextFormat):
    """Names in the last comment before the first row, as NumPy writes them; else None."""
    if not above or None in map(format.number, first):
        return None
    names = [name.strip() for name in above.lstrip(COMMENT).strip().split(delimiter)]
    good = len(names) == len(first) > 1 and not any(format.number(n) is not None for n in names)
    return names if good else None


def has_header(rows: list[list[str]], format: TextFormat, notes: list[str | None]) -> bool:
    """Whether the first line names the columns; adds a note if that may be wrong."""
    if format.header is not None:
        return format.header
    first = rows[0]
    shown = ", ".join(first[:4]) + (", ..." if len(first) > 4 else "")
    below = [[format.number(cell) for cell in row] for row in rows[1:]]
    if None not in map(format.number, first):
        counted = counts_up(first, below, format)
        if counted:
            notes.append(
                f"The first line ({shown}) is taken for names that are numbers. If it is a row, "
                "give header=False."
            )
        return counted
    numeric = []  # cells of the first line with only numbers below them
    for i, cell in enumerate(first):
        present = [row[i] for row in below if i < len(row) and row[i] == row[i]]
        if present and None not in present:
            numeric.append(cell)
    if numeric and all(cell.strip() and format.number(cell) is not None for cell in numeric):
        notes.append(
            f"The first line ({shown}) is taken for a row, since it has numbers where the other "
            "rows have them. If it names the columns, give header=True."
        )
        return False
    return True


def counts_up(first: list[str], below: list, format: TextFormat) -> bool:
    """Whether a line of numbers is 0, 1, 2, ... or such as 1990, 1991, ..., and the next is not.

    A pandas index before it is passed over. Numbers from another start than 0 are names only if
    the rows hold fractions.
    """
    names = [format.number(cell) for cell in (first if first[0].strip() else first[1:])]
    if len(names) < COUNTED_NAMES or not steps_by_one(names):
        return False
    if below and steps_by_one(below[0]):
        return False
    return names[0] == 0 or any(n % 1 for row in below for n in row if n is not None and n == n)


def steps_by_one(numbers: Sequence[float | None]) -> bool:
    """Whether these are whole numbers, each one more than the last."""
    values = [np.nan if number is None else number for number in numbers]
    return bool(values) and values[0] % 1 == 0 and all(b - a == 1 for a, b in pairwise(values))
