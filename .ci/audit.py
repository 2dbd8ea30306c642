"""Ask pip-audit what is known against the versions of constraints.txt.

    .venv-audit/bin/python .ci/audit.py

Exits with 0 where nothing is known against any of them, with 1 where something is, and with 3 where
some or all could not be looked up: pip-audit itself calls that a success.
"""

import json
import subprocess
import sys
from pathlib import Path

LOCK = Path(__file__).parents[1] / "constraints.txt"
KNOWN, UNKNOWN = 1, 3


def main() -> None:
    """Audit, and say what came of it."""
    command = [sys.executable, "-m", "pip_audit", "--requirement", str(LOCK), "--format", "json"]
    command += ["--no-deps", "--disable-pip", "--progress-spinner", "off"]
    done = subprocess.run(command, capture_output=True, text=True)
    code, words = verdict(done.stdout, done.stderr)
    print(words)
    sys.exit(code)


def verdict(out: str, err: str) -> tuple[int, str]:
    """What to exit with, and what to say of an answer of pip-audit."""
    try:
        packages = json.loads(out)["dependencies"]
    except (ValueError, KeyError, TypeError):
        reason = (err.strip().splitlines() or ["no answer"])[-1]
        return UNKNOWN, unreached(f"pip-audit ended with: {reason:.200}")
    looked_up = [one for one in packages if "skip_reason" not in one]
    known = [
        f"{one['name']} {one['version']}: {item['id']}, mended in {item['fix_versions'] or 'none'}"
        for one in looked_up
        for item in one["vulns"]
    ]
    if not looked_up:
        return UNKNOWN, unreached(f"none of {len(packages)} packages was found there")
    missing = [one["name"] for one in packages if "skip_reason" in one]
    lines = [f"{len(looked_up)} of {len(packages)} packages looked up, {len(known)} findings."]
    lines += known + ([f"Not looked up: {', '.join(missing)}."] if missing else [])
    return (KNOWN if known else UNKNOWN if missing else 0), "\n".join(lines)


def unreached(reason: str) -> str:
    """That an audit has not taken place."""
    return (
        f"Nothing was audited: no database of vulnerabilities could be reached ({reason}). Run "
        "make audit where pypi.org can be reached."
    )


if __name__ == "__main__":
    main()
