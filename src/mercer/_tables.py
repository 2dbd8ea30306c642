"""Tables as text and as HTML, for reprs."""

from html import escape


def text_table(heads: list[str], rows: list[list[str]]) -> str:
    """Columns aligned with spaces."""
    table = [heads, *rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(heads))]
    lines = ("  ".join(f"{c:<{w}}" for c, w in zip(row, widths, strict=True)) for row in table)
    return "\n".join(line.rstrip() for line in lines)


def html_table(heads: list[str], rows: list[list[str]], caption: str = "") -> str:
    """A table element; every text escaped."""
    head = "".join(f"<th style='text-align:left'>{escape(h)}</th>" for h in heads)
    body = "".join("<tr>" + "".join(f"<td>{escape(c)}</td>" for c in row) + "</tr>" for row in rows)
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
