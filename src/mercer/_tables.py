"""Tables as text and as HTML, for reprs; and numbers with the digits that people read."""

import re
from abc import ABC, abstractmethod
from html import escape

# Notebooks align cells to the right, which suits no text. No colors: those of the page are
# readable, light or dark.
LEFT = "style='text-align:left;padding-right:1em'"


def short(text: str) -> str:
    """A text on one line, its fractions to three digits: ``RBF(gamma=0.000209)``."""
    fraction = r"(?<![\w.])\d+\.\d+(e[-+]?\d+)?"
    return re.sub(fraction, lambda number: f"{float(number[0]):.3g}", " ".join(text.split()))


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number and its noun: ``1 row``, ``1,200 rows``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def text_table(heads: list[str], rows: list[list[str]]) -> str:
    """Columns aligned with spaces."""
    table = [heads, *rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(heads))]
    lines = ("  ".join(f"{c:<{w}}" for c, w in zip(row, widths, strict=True)) for row in table)
    return "\n".join(line.rstrip() for line in lines)


def html_table(heads: list[str], rows: list[list[str]], caption: str = "") -> str:
    """A table element; every text escaped."""
    head = "".join(f"<th {LEFT}>{escape(h)}</th>" for h in heads)
    cells = ("".join(f"<td {LEFT}>{escape(c)}</td>" for c in row) for row in rows)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    title = f"<caption {LEFT}><b>{escape(caption)}</b></caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


class Shown(ABC):
    """A result that is shown as a table with a title, in terminals and in notebooks."""

    @abstractmethod
    def sentence(self) -> str:
        """The outcome in words."""

    @abstractmethod
    def table(self) -> tuple[list[str], list[list[str]]]:
        """Head and rows."""

    def __repr__(self) -> str:
        return f"{self.sentence()}\n{text_table(*self.table())}"

    def _repr_html_(self) -> str:
        return html_table(*self.table(), caption=self.sentence())
