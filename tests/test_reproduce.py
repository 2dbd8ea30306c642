"""The reproductions run, at the size of seconds, and the page is what their results say."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "reproduce"
pytest.importorskip("matplotlib")


@pytest.fixture(scope="module", autouse=True)
def scripts():
    """The folder of the scripts on the path, as it is when they are run; their names are short."""
    before = list(sys.path), set(sys.modules)
    sys.path.insert(0, str(FOLDER))
    yield
    sys.path[:] = before[0]
    for name in set(sys.modules) - before[1]:
        if (FOLDER / f"{name}.py").exists():
            del sys.modules[name]


def experiments():
    sys.path.insert(0, str(FOLDER))
    try:
        import all as driver
    finally:
        sys.path.remove(str(FOLDER))
    return driver.EXPERIMENTS


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("experiment", experiments(), ids=lambda e: e.name)
def test_experiment_runs(experiment, tmp_path):
    if experiment.data and "MERCER_DATA" not in os.environ:
        pytest.skip("set MERCER_DATA to the folder of the data sets")
    from _experiment import FAILS, HOLDS, VERDICTS, carry_out

    record = carry_out(experiment, "smoke", tmp_path)
    assert record.skipped is None and record.findings
    for finding in record.findings:
        assert finding["verdict"] in VERDICTS
        assert finding["claim"] and finding["ours"]
        if finding["verdict"] in (HOLDS, FAILS):
            assert finding["paper"] and finding["margin"] and finding["control"]
        assert "nan" not in finding["ours"].lower().split()
        json.dumps(finding)
    assert all((tmp_path / figure).stat().st_size > 1000 for figure in record.figures)


def test_names_are_unique():
    names = [experiment.name for experiment in experiments()]
    assert len(set(names)) == len(names)


def test_page_is_what_the_results_say():
    from page import PAGE, RESULTS, page

    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    assert PAGE.read_text(encoding="utf-8") == page(results)
    names = [record["name"] for record in results["experiments"]]
    assert names == [experiment.name for experiment in experiments()]
    for record in results["experiments"]:
        for figure in record["figures"]:
            assert (ROOT / "docs" / "images" / f"reproduce-{figure}").exists()


def test_known_exact_identities_hold(tmp_path):
    """What is mathematics must come out so at any size."""
    from _experiment import AGREES
    from yuille import identities

    assert all(finding.verdict == AGREES for finding in identities("smoke", tmp_path))


def test_a_verdict_needs_a_control_of_the_known_answer():
    from _experiment import FAILS, HOLDS, UNTOLD, judged

    above = (0.5).__lt__
    assert judged(above, 0.9, 0.1) == HOLDS and judged(above, 0.1, 0.2) == FAILS
    assert judged(above, 0.9, 0.8) == judged(above, 0.1, 0.2, expected=True) == UNTOLD


def command(*options):
    return subprocess.run(
        [sys.executable, "reproduce/all.py", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_command(tmp_path):
    """A short run has a folder of its own, page included, and leaves the published page alone."""
    published = [FOLDER / "results.json", ROOT / "docs" / "reproductions.md"]
    before = [path.read_bytes() for path in published]
    done = command("--smoke", "--only", "shi-table-1", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "paper 22.558" in done.stdout and (tmp_path / "results.json").exists()
    assert "A run of seconds" in (tmp_path / "reproductions.md").read_text(encoding="utf-8")
    refused = command("--quick", "--publish", "--only", "shi-table-1", "--out", tmp_path)
    assert refused.returncode == 2 and "--publish is for full runs" in refused.stderr
    assert [path.read_bytes() for path in published] == before
