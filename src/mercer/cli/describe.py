"""``mercer describe``: what a model file holds."""

from argparse import ArgumentParser, Namespace
from dataclasses import asdict

from .results import Result, lines

SUMMARY = "Say what a model file holds, without loading its arrays."
EXAMPLES = """\
  mercer describe demo-output/digits.mercer
  mercer describe demo-output/digits.mercer --json
"""


def configure(parser: ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("model", metavar="MODEL", help="file of mercer fit or of model.save")


def run(args: Namespace) -> Result:
    """Read the header, and compare the checksum."""
    from ..saving import read_extra, read_header

    header, extra = read_header(args.model), read_extra(args.model)
    facts = asdict(header) | {"prepared": extra}
    return Result(facts, lines(summary(header, extra)))


def summary(header, extra: dict) -> list[tuple[str, object]]:
    """The header for people."""
    from ..compute import format_bytes

    known = header.summary
    version = f"format {header.format_version}, mercer {header.library_version}"
    pairs = [
        ("estimator", header.estimator),
        ("file", f"{format_bytes(header.size)}, {version}, checksum right"),
        ("table", prepared(known.get("columns"), extra)),
        ("kernel", known.get("kernel")),
        ("basis", known.get("basis")),
        *((name, text) for name, text in known.get("certificate", [])),
    ]
    return [(name, text) for name, text in pairs if text is not None]


def prepared(width: int | None, extra: dict) -> str | None:
    """What the rows of a table go through before the estimator."""
    if width is None:
        return None
    names = extra.get("columns") or []
    named = f" ({', '.join(names[:6])}{', ...' if len(names) > 6 else ''})" if names else ""
    shape = extra.get("image_shape")
    images = f", images of {' x '.join(map(str, shape))}" if shape else ""
    return f"{width} columns{named}{images}, scaling: {extra.get('scale', 'none')}"
