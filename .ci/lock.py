"""Write constraints.txt: the exact versions that `pip install .[dev]` takes today.

    python .ci/lock.py          # resolve anew
    python .ci/lock.py --check  # say whether every name that pyproject.toml asks for is locked

A lock for development: `make test LOCKED=1` installs these and nothing newer. It holds names and
versions alone, so that it is the same whatever index they come from. The package itself has lower
bounds only.
"""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "constraints.txt"
HEAD = "# Written by .ci/lock.py with Python {}.{}; run it again to renew.\n"


def normal(name: str) -> str:
    """A project's name as indexes compare them."""
    return re.sub(r"[-_.]+", "-", name).lower()


def resolved() -> list[str]:
    """Names and versions that pip would install for development."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
    command += ["--report", "-", f"{ROOT}[dev]"]
    report = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    found = [item["metadata"] for item in json.loads(report)["install"]]
    return sorted(
        f"{normal(item['name'])}=={item['version']}" for item in found if item["name"] != "mercer"
    )


def asked() -> set[str]:
    """Names that pyproject.toml asks for, but for those that no development environment holds.

    Builds of torch differ by device, and engines of clusters want older releases of others.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    lines = project["dependencies"] + [line for group in extras.values() for line in group]
    names = {normal(re.match(r"[\w.-]+", line).group()) for line in lines}
    return names - {"mercer", "torch", "pyspark", "ray"}


def main() -> None:
    """Write the lock, or check it."""
    if "--check" in sys.argv:
        locked = {line.split("==")[0] for line in LOCK.read_text().splitlines() if "==" in line}
        missing = asked() - locked
        sys.exit(f"Not locked: {sorted(missing)}. Run python .ci/lock.py." if missing else 0)
    LOCK.write_text(HEAD.format(*sys.version_info) + "\n".join(resolved()) + "\n")


if __name__ == "__main__":
    main()
