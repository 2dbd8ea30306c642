"""``mercer demo``: the demonstration, and files for the examples of all commands."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from .results import Result

SUMMARY = "Show kernel PCA of digits, and leave a picture, a report and files to try commands on."
EXAMPLES = """\
  mercer demo
"""


def configure(parser: ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "folder",
        nargs="?",
        type=Path,
        default=Path("demo-output"),
        metavar="FOLDER",
        help="where the files go (default: demo-output)",
    )
    parser.add_argument("--force", action="store_true", help="replace files that exist")


def run(args: Namespace) -> Result:
    """Fit, compare, draw, and say where the results are."""
    from ..demo import demonstrate
    from .outputs import whole_folder

    with whole_folder(args.folder, args.force) as draft:
        said, files = demonstrate(draft)
    found = {name: str(args.folder / file) for name, file in files.items()}
    text = "\n".join(
        [
            *said,
            f"to try commands on: {', '.join(sorted(found.values()))}",
            f"picture: {found['picture']}",
            f"report:  {found['report']}",
        ]
    )
    return Result({"summary": said, "files": found}, text)
