"""Print, one a line, the tests that a run skipped, as arguments for another pytest.

usage: python .ci/skipped.py REPORT.xml

The report is one of `pytest --junitxml`. A test that was skipped for lack of a library, a browser
or a data set is run again where these are.
"""

import sys
from pathlib import Path
from xml.etree import ElementTree


def main(report: str) -> None:
    """Print what the report lists as skipped."""
    cases = ElementTree.parse(report).iter("testcase")
    for line in sorted({argument(case) for case in cases if is_skipped(case)}):
        print(line)


def is_skipped(case) -> bool:
    """Whether a test was skipped, and is none that is expected to fail, which counts as such."""
    return any(skip.get("type") != "pytest.xfail" for skip in case.iter("skipped"))


def argument(case) -> str:
    """A test as pytest takes it; of a file that was skipped as a whole, the file."""
    group, name = case.get("classname"), case.get("name")
    file, rest = split(group or name)
    return "::".join([file, *rest, *([name] if group else [])])


def split(dotted: str) -> tuple[str, list[str]]:
    """The file that a dotted name begins with, and the classes within it."""
    parts = dotted.split(".")
    for end in range(len(parts), 0, -1):
        file = Path(*parts[:end]).with_suffix(".py")
        if file.is_file():
            return file.as_posix(), parts[end:]
    raise SystemExit(f"{dotted} is in no file below {Path.cwd()}")


if __name__ == "__main__":
    main(*sys.argv[1:])
