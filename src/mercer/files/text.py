"""Text files line by line: compressed or not, in any encoding, without comment lines."""

import gzip
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

#: Endings of compressed files, and what opens them.
COMPRESSED = {".gz": gzip.open}
UTF8 = "utf-8"
#: What reading raises where a file is damaged, or in another encoding.
UNREADABLE = (UnicodeError, LookupError, EOFError, OSError, zlib.error)
# Characters of a line at most, as of ten million columns: a small compressed file can hold a line
# of any length.
MOST_LINE = 2**27


@dataclass(frozen=True)
class TextFormat:
    """How the text of a table is written, where it cannot be seen from the text itself.

    Attributes
    ----------
    encoding : str
        As Python names it, such as ``"utf-8"``, ``"latin-1"`` or ``"utf-16"``.
    decimal : str
        The decimal point, ``"."`` or ``","``.
    comment : str or None
        Lines that start with this are left out; None for ``"#"`` where few lines start so.
    header : bool or None
        Whether the first line names the columns; None to look at it.
    marks : bool
        Whether cells such as ``?`` and ``-`` are missing values, and no text.
    """

    encoding: str = UTF8
    decimal: str = "."
    comment: str | None = None
    header: bool | None = None
    marks: bool = False


class Lines:
    """The lines of a text file that are no comments, and the number of the last one read.

    Parameters
    ----------
    file : text file
    comment : str or None
        What comment lines start with.
    keep : bool
        Whether comments are kept in `kept`, with the numbers of their lines.
    """

    def __init__(self, file: IO[str], comment: str | None, keep: bool = False):
        self.file, self.comment, self.keep = file, comment, keep
        self.number = 0
        self.kept: list[tuple[int, str]] = []

    def __iter__(self) -> Iterator[str]:
        while line := self.file.readline(MOST_LINE):
            self.number += 1
            if len(line) == MOST_LINE:
                raise OSError(f"line {self.number} has more than {MOST_LINE:,} characters")
            if self.comment is None or not line.startswith(self.comment):
                yield line
            elif self.keep:
                self.kept.append((self.number, line))


class LineBytes(io.RawIOBase):
    """Lines as a file of UTF-8 bytes, for a reader that knows neither comments nor encodings."""

    def __init__(self, lines: Lines):
        super().__init__()
        self.lines, self.rest = iter(lines), b""

    def readable(self) -> bool:
        """It can be read."""
        return True

    def readinto(self, buffer) -> int:
        """Fill a buffer with the next lines."""
        pieces, size = [self.rest], len(self.rest)
        while size < len(buffer) and (line := next(self.lines, None)) is not None:
            pieces.append(line.encode(UTF8))
            size += len(pieces[-1])
        held = b"".join(pieces)
        size = min(len(buffer), len(held))
        buffer[:size], self.rest = held[:size], held[size:]
        return size


def open_text(path: Path, encoding: str = UTF8) -> IO[str]:
    """A text file, decompressed; the mark that some programs write before UTF-8 is passed over."""
    opened = COMPRESSED.get(path.suffix.lower(), open)
    encoding = "utf-8-sig" if is_utf8(encoding) else encoding
    return opened(path, "rt", encoding=encoding, newline="")


def is_utf8(encoding: str) -> bool:
    """Whether an encoding is UTF-8, however it is spelled."""
    return encoding.lower().replace("_", "-") in ("utf-8", "utf8", "utf-8-sig")


def bare_suffix(path: Path) -> str:
    """The suffix without that of a compression: ``.csv`` of ``rows.csv.gz``."""
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def undecodable(path: Path, encoding: str, error: Exception) -> ValueError:
    """What to say of a file that is not text, or text of another encoding."""
    if isinstance(error, LookupError):
        return ValueError(f"{path.name}: there is no encoding {encoding!r}.")
    with path.open("rb") as file:
        start = file.read(2)
    hint = "utf-16" if start in (b"\xff\xfe", b"\xfe\xff") else "latin-1 or cp1252"
    return ValueError(
        f"{path.name} cannot be read as text in {encoding}: {error}. If it is text, give its "
        f"encoding, such as {hint}."
    )
