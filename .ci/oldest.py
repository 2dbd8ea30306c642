"""Print the lower bounds of pyproject.toml as exact versions, for `pip install --constraint`."""

import re
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
# Name, extras that a constraint cannot have, and the bound; `mercer[...]` has none.
BOUND = re.compile(r"([\w-]+)(?:\[[\w,]+\])?>=([\w.]+)")


def main() -> None:
    """One line for every library that mercer, its extras or its tests name."""
    extras = PROJECT["optional-dependencies"]
    lines = PROJECT["dependencies"] + [line for group in extras.values() for line in group]
    for line in sorted({"{}=={}".format(*m.groups()) for m in map(BOUND.fullmatch, lines) if m}):
        print(line)


if __name__ == "__main__":
    main()
