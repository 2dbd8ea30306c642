"""What the first rows of a text table tell: delimiter, header, and which columns are numbers.

Nothing is decided in silence: a column that is not read as numbers has a reason, and whatever
could have been meant otherwise has a note for the user.
"""

import csv
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice, pairwise
from pathlib import Path

from .cells import MARKS, Cells, like_number
from .columns import COUNTER
from .text import UNREADABLE, Lines, TextFormat, bare_suffix, open_text, undecodable

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

Row = list[str]


@dataclass(frozen=True)
class Layout:
    """What the head of a text table tells.

    Attributes
    ----------
    delimiter : str
    comment : str or None
        What lines that are left out start with; None where there are none.
    header : bool
        Whether columns have names of their own; else they are ``"0"``, ``"1"`` and so on.
    skipped : int
        Lines, comments not counted, before the first row.
    kinds : dict of str to (str or None)
        Every column, and why it is not read as numbers; None for columns of numbers.
    truths : frozenset of str
        Columns of numbers that are written as true and false.
    notes : tuple of str
        What a user should know of the whole table.
    if_used, if_left : dict of str to str
        What a user should know where a column is used, or left out without being asked.
    """

    delimiter: str
    comment: str | None
    header: bool
    skipped: int
    kinds: dict[str, str | None]
    truths: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    if_used: dict[str, str] = field(default_factory=dict)
    if_left: dict[str, str] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """All columns in the order of the file."""
        return list(self.kinds)


@dataclass(frozen=True)
class Head:
    """The first rows of a text table as they stand, each with the number of its last line."""

    rows: list[Row]
    lines: list[int]
    skipped: int
    comments: list[tuple[int, str]]


def read_layout(path: Path, format: TextFormat) -> Layout:
    """The layout of a text table, from its first rows."""
    comment = comment_of(path, format)
    delimiter = delimiter_of(path, format, comment)
    head = read_head(path, format, delimiter, comment)
    cells = Cells(format)
    width = len(head.rows[0])
    written = names_in_comment(head, delimiter, cells)
    named, notes = (False, ()) if written else has_header(head.rows, cells, format.header)
    names = written or (unique(head.rows[0]) if named else [str(i) for i in range(width)])
    if len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise ValueError(
            f"{path.name}: two columns have the same name, {twice!r:.60}. Rename one of them."
        )
    rows, lines = head.rows[int(named) :], head.lines[int(named) :]
    if not rows:
        raise ValueError(f"{path.name} has a header and no rows. Add at least one.")
    check_widths(rows, lines, width, path.name)
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    kinds = {name: cells.why_no_number(column, lines) for name, column in columns.items()}
    if named:
        kinds |= dict.fromkeys(unnamed_counters(columns, head, cells), COUNTER)
    return Layout(
        delimiter,
        comment,
        header=named or bool(written),
        skipped=head.skipped if named else 0,
        kinds=kinds,
        truths=frozenset(name for name, column in columns.items() if cells.are_truths(column)),
        notes=(*notes, *comment_notes(head, comment)),
        if_used=notes_if_used(columns, kinds, cells, head.rows[0] if named else names),
        if_left=notes_if_left(kinds),
    )


def comment_of(path: Path, format: TextFormat) -> str | None:
    """What comment lines start with: as asked for, or # where few lines of the head do so."""
    if format.comment is not None:
        return format.comment
    found = list(islice(text_lines(path, format, None), HEAD_ROWS + 1))
    some = sum(line.startswith(COMMENT) for line in found)
    return COMMENT if 0 < some <= len(found) / 2 else None


def text_lines(path: Path, format: TextFormat, comment: str | None) -> Iterator[str]:
    """The lines that are neither comments nor empty."""
    try:
        with open_text(path, format.encoding) as file:
            yield from (line for line in Lines(file, comment) if line.strip())
    except UNREADABLE as error:
        raise undecodable(path, format.encoding, error) from error


def delimiter_of(path: Path, format: TextFormat, comment: str | None) -> str:
    """The delimiter that the first line has most of."""
    if bare_suffix(path) == ".tsv":
        return "\t"
    line = next(text_lines(path, format, comment), "")
    known = DELIMITERS.replace(format.decimal, "")
    return max(known, key=lambda mark: line.count(mark) if mark != " " else 0.5 * (" " in line))


def read_head(path: Path, format: TextFormat, delimiter: str, comment: str | None) -> Head:
    """The first rows, and the comments among them."""
    rows: list[Row] = []
    numbers: list[int] = []
    first = 0
    try:
        with open_text(path, format.encoding) as file:
            lines = Lines(file, comment, keep=True)
            reader = csv.reader(lines, delimiter=delimiter)
            for row in reader:
                if not row:
                    continue
                first = first or reader.line_num
                rows.append(row)
                numbers.append(lines.number)
                if len(rows) > max(LEAST_ROWS, min(HEAD_ROWS, HEAD_CELLS // len(rows[0]))):
                    break
    except (*UNREADABLE, csv.Error) as error:
        raise undecodable(path, format.encoding, error) from error
    if not rows:
        raise ValueError(f"{path.name} is empty. Write a table with rows to it.")
    return Head(rows, numbers, first, lines.kept)


def names_in_comment(head: Head, delimiter: str, cells: Cells) -> Row | None:
    """Names in the last comment before the first row, as NumPy writes them."""
    above = [line for number, line in head.comments if number < head.lines[0]]
    if not above or not all(map(cells.is_number, head.rows[0])):
        return None
    names = [name.strip() for name in above[-1].lstrip(COMMENT).strip().split(delimiter)]
    good = len(names) == len(head.rows[0]) > 1 and not any(map(cells.is_number, names))
    return names if good else None


def has_header(rows: list[Row], cells: Cells, asked: bool | None) -> tuple[bool, tuple[str, ...]]:
    """Whether the first line names the columns, with a note where it may have been a row."""
    if asked is not None:
        return asked, ()
    first, body = rows[0], rows[1:]
    shown = ", ".join(first[:4]) + (", ..." if len(first) > 4 else "")
    if all(map(cells.is_number, first)):
        if counts_up(first, body, cells):
            return True, (
                f"The first line ({shown}) is taken for names that are numbers. If it is a row, "
                "give header=False.",
            )
        return False, ()
    numeric = [i for i in range(len(first)) if body and numbers_below(body, i, cells)]
    if numeric and all(cells.is_number(first[i]) and first[i].strip() for i in numeric):
        return False, (
            f"The first line ({shown}) is taken for a row, since it has numbers where the other "
            "rows have them. If it names the columns, give header=True.",
        )
    return True, ()


def numbers_below(body: list[Row], i: int, cells: Cells) -> bool:
    """Whether a column is made of numbers below the first line, not counting what is missing."""
    column = [row[i] for row in body if i < len(row) and not cells.is_missing(row[i])]
    return bool(column) and all(map(cells.is_number, column))


def counts_up(first: Row, body: list[Row], cells: Cells) -> bool:
    """Whether a line of numbers is 0, 1, 2, ... or such as 1990, 1991, ..., and the next is not.

    A pandas index before it is passed over. Numbers from another start than 0 are names only
    where the rows hold fractions.
    """
    names = first[1:] if not first[0].strip() else first
    if len(names) < COUNTED_NAMES or any(map(cells.is_missing, names)):
        return False
    if not steps_by_one(names, cells) or (body and steps_by_one(body[0], cells)):
        return False
    numbers = (cells.number(cell) for row in body for cell in row if cells.is_number(cell))
    return cells.number(names[0]) == 0 or any(number % 1 for number in numbers if number == number)


def steps_by_one(row: Row, cells: Cells) -> bool:
    """Whether the cells are whole numbers, each one more than the last."""
    if not all(map(cells.is_number, row)):
        return False
    numbers = [cells.number(cell) for cell in row]
    return numbers[0] % 1 == 0 and all(b - a == 1 for a, b in pairwise(numbers))


def unique(names: Row) -> Row:
    """Names of columns; one without a name is called as pandas would call it."""
    return [name.strip() or f"Unnamed: {i}" for i, name in enumerate(names)]


def check_widths(rows: list[Row], lines: list[int], width: int, name: str) -> None:
    """Raise ValueError that names the first line with another number of cells."""
    for row, line in zip(rows, lines, strict=True):
        if len(row) != width:
            raise ValueError(
                f"{name}: the first line has {width} cells and a later one {len(row)}, line "
                f"{line}: {row!r:.200}. Give all lines the same number, or quote cells that "
                "hold the delimiter."
            )


def unnamed_counters(columns: dict[str, Row], head: Head, cells: Cells) -> list[str]:
    """Columns without a name that count the rows: the index of a data frame."""
    written = dict(zip(columns, head.rows[0], strict=True))
    return [
        name
        for name, column in columns.items()
        if not written[name].strip() and cells.counts(column, 1)
    ]


def notes_if_used(columns, kinds, cells: Cells, written: Row) -> dict[str, str]:
    """Columns of numbers that may be no measurements."""
    notes = {}
    for place, ((name, column), title) in enumerate(zip(columns.items(), written, strict=True), 1):
        if not title.strip():
            notes[name] = (
                f"Column {place} has no name and is called {name!r}. If it "
                "numbers the rows, leave it out."
            )
        elif kinds[name] is None and cells.counts(column, COUNTED_ROWS):
            notes[name] = f"Column {name!r} counts the rows. If it is no measurement, leave it out."
    return notes


def notes_if_left(kinds: dict[str, str | None]) -> dict[str, str]:
    """Columns that are left out for a few cells, or for how their numbers are written."""
    notes = {}
    for name, why in kinds.items():
        if why == COUNTER:
            notes[name] = f"Column {name!r} is left out: it has no name and counts the rows."
        elif why is not None and " in line " in why:
            cell = why.rpartition(" in line ")[0][1:-1]
            notes[name] = f"Column {name!r} is left out: {why}. {advice(cell)}"
    return notes


def advice(cell: str) -> str:
    """What to do about a cell that is no number."""
    if like_number(cell):
        return "If the comma is the decimal point, give decimal=','; else take it out."
    if cell in MARKS:
        return "If that is a missing value, give missing='drop' or 'mean'."
    return "Correct that line to use the column."


def comment_notes(head: Head, comment: str | None) -> tuple[str, ...]:
    """Comments between rows are rare enough to be told of."""
    if not any(number > head.lines[0] for number, _ in head.comments):
        return ()
    return (f"Lines that start with {comment!r} are left out as comments.",)
