"""What the first rows of a text table tell: delimiter, header, and which columns are numbers.

Nothing is decided in silence: a column that is not read as numbers has a reason, and whatever
could have been meant otherwise has a note for the user.
"""

import csv
import gzip
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import IO

from .base import COUNTER

#: Endings of compressed files, and what opens them.
COMPRESSED = {".gz": gzip.open}
# Characters of a line at most, as of ten million columns: a small compressed file can hold a line
# of any length.
MOST_LINE = 2**27
# Rows from which the delimiter, the header and the columns of numbers are guessed; fewer where
# they are so wide that to look at a hundred would take minutes.
HEAD_ROWS, HEAD_CELLS, LEAST_ROWS = 100, 300_000, 3
# The space is the last choice: other delimiters may be followed by one.
DELIMITERS = ",;\t| "
COMMENT = "#"
# Rows that count up by one before a column is taken for row numbers, and not for chance.
COUNTED_ROWS = 5
# Names that count up by one before a line of numbers is taken for names.
COUNTED_NAMES = 3

MISSING = {"", "na", "nan", "null", "none", "n/a", "#n/a"}
MARKS = {"?", "-", "--", ".", "..", "*"}
TRUTH = {"true": 1.0, "false": 0.0}
# Share of cells that are numbers in a column of numbers with a few faults; with less it is text.
MOSTLY = 0.5
# A number with a comma in it, and one whose comma may set thousands apart.
COMMA, GROUPED = re.compile(r"[-+]?\d*,\d+(e[-+]?\d+)?", re.I), re.compile(r"[-+]?\d{1,3}(,\d{3})+")
DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([T ]\d{1,2}:\d{2}.*)?")


@dataclass(frozen=True)
class TextFormat:
    """How the text of a table is written, where it cannot be seen from the text itself.

    Attributes
    ----------
    encoding : str
        As Python names it, such as ``"utf-8"``, ``"latin-1"`` or ``"utf-16"``.
    decimal : str or None
        The decimal point, ``"."`` or ``","``; None to look, where the delimiter is no comma.
    thousands : str
        What may set three digits apart in a number, such as ``"."`` in ``1.234,5``; empty for none.
    comment : str or None
        Lines that start with this are left out; None for ``"#"`` where few lines start so.
    header : bool or None
        Whether the first line names the columns; None to look at it.
    marks : bool
        Whether cells such as ``?`` and ``-`` are missing values, and no text.
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
        """What stands for nothing, in small letters."""
        return MISSING | MARKS if self.marks else MISSING

    def is_missing(self, cell: str) -> bool:
        """Whether a cell holds nothing."""
        return cell.strip().lower() in self.missing

    def number(self, cell: str) -> float | None:
        """A cell as a number: NaN where it holds nothing, None where it is something else."""
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


@dataclass(frozen=True)
class Column:
    """What the head of a text table tells of a column.

    Attributes
    ----------
    why : str or None
        Why it is not read as numbers.
    is_truth : bool
        Whether its numbers are written as true and false.
    if_used, if_left : str or None
        What a user should know where it is used, or left out without being asked.
    """

    why: str | None
    is_truth: bool
    if_used: str | None
    if_left: str | None


@dataclass(frozen=True)
class Layout:
    """What the head of a text table tells.

    Attributes
    ----------
    format : TextFormat
        With its decimal point.
    delimiter : str
    comment : str or None
        What lines that are left out start with; None where there are none.
    header : bool
        Whether columns have names of their own; else they are ``"0"``, ``"1"`` and so on.
    skipped : int
        Lines, comments not counted, before the first row.
    columns : dict of str to Column
        In the order of the file.
    notes : tuple of str
        What a user should know of the whole table.
    """

    format: TextFormat
    delimiter: str
    comment: str | None
    header: bool
    skipped: int
    columns: dict[str, Column]
    notes: tuple[str, ...] = ()


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
            start = raw.read(2)
        marked = start in (b"\xff\xfe", b"\xfe\xff")
        hint = "encoding='utf-16'" if marked else "encoding='latin-1' or encoding='cp1252'"
        raise ValueError(
            f"{path.name} cannot be read as text in {format.encoding}: {error}. If it is text, "
            f"give {hint}."
        ) from error


def bare_suffix(path: Path) -> str:
    """The suffix without that of a compression: ``.csv`` of ``rows.csv.gz``."""
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def read_layout(path: Path, format: TextFormat) -> Layout:
    """The layout of a text table, from its first rows."""
    format, comment, delimiter, notes = look_at_head(path, format)
    rows: list[list[str]] = []
    numbers: list[int] = []  # of the lines that the rows end on
    skipped = 0
    with open_lines(path, format, comment) as lines:
        reader = csv.reader(lines, delimiter=delimiter)
        for row in reader:
            if row:
                skipped = skipped or reader.line_num
                rows.append(row)
                numbers.append(lines.number)
                if len(rows) > max(LEAST_ROWS, min(HEAD_ROWS, HEAD_CELLS // len(rows[0]))):
                    break
    if not rows:
        raise ValueError(f"{path.name} is empty. Write a table with rows to it.")
    width = len(rows[0])
    names = names_in_comment(lines.above, rows[0], delimiter, format)
    titles, named = names, False
    if names is None:
        named, doubt = has_header(rows, format)
        notes += doubt
        titles = rows[0] if named else [str(i) for i in range(width)]
        # A column without a name is called as pandas would call it.
        names = [title.strip() or f"Unnamed: {i}" for i, title in enumerate(titles)]
    if lines.between:
        notes.append(f"Lines that start with {comment!r} are left out as comments.")
    if len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise ValueError(
            f"{path.name}: two columns have the same name, {twice!r:.60}. Rename one of them."
        )
    rows, numbers = rows[named:], numbers[named:]
    if not rows:
        raise ValueError(f"{path.name} has a header and no rows. Add at least one.")
    for row, line in zip(rows, numbers, strict=True):
        if len(row) != width:
            raise ValueError(
                f"{path.name}: the first line has {width} cells and a later one {len(row)}, line "
                f"{line}: {row!r:.200}. Give all lines the same number, or quote cells that "
                "hold the delimiter."
            )
    cells = zip(*rows, strict=True)
    columns = {
        name: look_at(name, column, numbers, format, place if named and not title.strip() else None)
        for place, (name, title, column) in enumerate(zip(names, titles, cells, strict=True), 1)
    }
    has_names = named or titles is names
    return Layout(format, delimiter, comment, has_names, skipped * named, columns, tuple(notes))


def look_at_head(path: Path, format: TextFormat):
    """The format with its decimal point, what comments start with, the delimiter, and notes.

    Without being asked, only # starts comments, and only where few lines of the head do so. The
    decimal point is a comma where cells between other delimiters have commas and none has a point;
    commas that may all set thousands apart prove nothing. The delimiter is what the first line has
    most of.
    """
    with open_lines(path, format, None) as lines:
        filled = (line for line in lines if line.strip())
        head = list(islice(filled, HEAD_ROWS + 1))
        some = sum(line.startswith(COMMENT) for line in head)
        comment = format.comment or (COMMENT if 0 < some <= len(head) / 2 else None)
        others = (line for line in chain(head, filled) if not line.startswith(comment or "\0"))
        rows = list(islice(others, HEAD_ROWS + 1))
    first, notes, by_tabs = rows[0] if rows else "", [], bare_suffix(path) == ".tsv"
    decimal = format.decimal or ("," if format.thousands == "." else ".")
    mark = "\t" if by_tabs else max(";\t|", key=first.count)
    if format.decimal is None and not format.thousands and mark in first:
        cells = [cell.strip(' "') for line in rows for cell in line.strip().split(mark)]
        commas = [cell for cell in cells if COMMA.fullmatch(cell)]
        point = any("." in cell and format.number(cell) is not None for cell in cells)
        if not point and not all(GROUPED.fullmatch(cell) for cell in commas):
            decimal, such = ",", f"Numbers such as {commas[0]} have a decimal comma."
            notes.append(f"{such} If it is none, give decimal='.'.")
    known = DELIMITERS.replace(decimal, "")
    count = {mark: first.count(mark) if mark != " " else 0.5 * (" " in first) for mark in known}
    delimiter = "\t" if by_tabs else max(known, key=count.__getitem__)
    return replace(format, decimal=decimal), comment, delimiter, notes


def names_in_comment(above: str, first: list[str], delimiter: str, format: TextFormat):
    """Names in the last comment before the first row, as NumPy writes them; else None."""
    if not above or None in map(format.number, first):
        return None
    names = [name.strip() for name in above.lstrip(COMMENT).strip().split(delimiter)]
    good = len(names) == len(first) > 1 and not any(format.number(n) is not None for n in names)
    return names if good else None


def has_header(rows: list[list[str]], format: TextFormat) -> tuple[bool, list[str]]:
    """Whether the first line names the columns, with a note where it may have been a row."""
    if format.header is not None:
        return format.header, []
    first, body = rows[0], rows[1:]
    shown = ", ".join(first[:4]) + (", ..." if len(first) > 4 else "")
    below = [[format.number(cell) for cell in row] for row in body]
    if None not in map(format.number, first):
        if not counts_up(first, below, format):
            return False, []
        return True, [
            f"The first line ({shown}) is taken for names that are numbers. If it is a row, "
            "give header=False."
        ]
    numeric = []  # columns that are made of numbers below the first line, if anything is there
    for i in range(len(first)):
        known = [row[i] for row in below if i < len(row) and row[i] == row[i]]
        if known and None not in known:
            numeric.append(first[i])
    if numeric and all(cell.strip() and format.number(cell) is not None for cell in numeric):
        return False, [
            f"The first line ({shown}) is taken for a row, since it has numbers where the other "
            "rows have them. If it names the columns, give header=True."
        ]
    return True, []


def counts_up(first: list[str], below: list, format: TextFormat) -> bool:
    """Whether a line of numbers is 0, 1, 2, ... or such as 1990, 1991, ..., and the next is not.

    A pandas index before it is passed over. Numbers from another start than 0 are names only
    where the rows hold fractions.
    """
    names = [format.number(cell) for cell in (first if first[0].strip() else first[1:])]
    if len(names) < COUNTED_NAMES or not steps_by_one(names):
        return False
    if below and steps_by_one(below[0]):
        return False
    return names[0] == 0 or any(n % 1 for row in below for n in row if n is not None and n == n)


def steps_by_one(numbers: Sequence[float | None]) -> bool:
    """Whether these are whole numbers, each one more than the last."""
    known = [number for number in numbers if number is not None]
    if not known or len(known) < len(numbers):
        return False
    return known[0] % 1 == 0 and all(b - a == 1 for a, b in pairwise(known))


def look_at(
    name: str, cells: Sequence[str], lines: list[int], format: TextFormat, unnamed: int | None
) -> Column:
    """What the head tells of one column; `unnamed` is its place from 1 where it has no name."""
    numbers = [format.number(cell) for cell in cells]
    known = [cell for cell in cells if not format.is_missing(cell)]
    is_truth = bool(known) and {cell.strip().lower() for cell in known} <= set(TRUTH)
    counts = numbers[0] in (0, 1) and steps_by_one(numbers)
    if unnamed is not None and counts:
        left: str | None = f"Column {name!r} is left out: it has no name and counts the rows."
        return Column(COUNTER, is_truth, None, left)
    faults = [i for i, number in enumerate(numbers) if number is None]
    used = left = None
    if unnamed is not None:
        used = (
            f"Column {unnamed} has no name and is called {name!r}. If it numbers the rows, leave "
            "it out."
        )
    elif counts and len(cells) >= COUNTED_ROWS:
        used = f"Column {name!r} counts the rows. If it is no measurement, leave it out."
    if not known:
        why: str | None = "empty"
    elif not faults or is_truth:
        why = None
    elif all(DATE.fullmatch(cell.strip()) for cell in known):
        why = "dates"
    else:
        bad, why = cells[faults[0]].strip(), "text"
        with_comma = "," in bad and TextFormat().number(bad.replace(",", "")) is not None
        # A quantity written otherwise, such as 1,000, is one fault in every cell.
        if with_comma or len(faults) <= MOSTLY * len(known):
            why = f"{bad!r} in line {lines[faults[0]]}"
            advice = "Correct that line to use the column."
            if with_comma:
                advice = "Give decimal=',' if the comma is the decimal point, else thousands=','."
            elif bad in MARKS:
                advice = "If that is a missing value, give missing='drop' or missing='mean'."
            left = f"Column {name!r} is left out: {why}. {advice}"
    return Column(why, is_truth, used, left)
