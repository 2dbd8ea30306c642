"""The comparison with peers runs, and its pages are what the results file says."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "benchmarks"


@pytest.fixture(scope="module")
def report():
    sys.path.insert(0, str(FOLDER))
    try:
        import peers_report
    finally:
        sys.path.remove(str(FOLDER))
    return peers_report


def test_pages_are_what_the_results_say(report):
    results = json.loads((FOLDER / "peers.json").read_text(encoding="utf-8"))
    assert report.PAGE.read_text(encoding="utf-8") == report.page(results)
    text = report.README.read_text(encoding="utf-8")
    assert report.readme(text, results) == text
    assert report.FIGURE.exists()


def test_losses_are_found(report):
    """A faster peer is named; a faster one that is less accurate is not."""
    ours = {"task": "kernel PCA", "contender": "mercer, exact", "n": 500, "seconds": 1.0}
    ours |= {"peak_mb": 100.0, "accuracy": 1e-12}
    faster = ours | {"contender": "dense", "seconds": 0.25}
    wrong = faster | {"contender": "sloppy", "accuracy": 1e-2}
    small = ours | {"contender": "lean", "peak_mb": 10.0}
    lines = report.losses({"results": [ours, faster, wrong, small]})
    assert len(lines) == 2
    assert "dense is 4.0 times as fast" in lines[0] and "lean takes 10 MB" in lines[1]


def test_command(tmp_path):
    """A few rows, one size; a peer that is not installed is said to be absent."""
    done = subprocess.run(
        [
            sys.executable,
            "benchmarks/peers.py",
            *("--sizes", "120", "--limit", "60", "--out", str(tmp_path / "peers.json")),
            *("--only", "mercer, exact", "kernlab (R)"),
        ],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "peers.json").read_text())
    found = {cell["contender"]: cell for cell in results["results"]}
    assert found["mercer, exact"]["accuracy"] < 1e-9
    assert "kernlab (R)" in found or "not installed" in results["absent"]["kernlab (R)"]
    assert results["machine"]["versions"]["scikit-learn"]
