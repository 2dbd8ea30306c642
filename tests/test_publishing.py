"""What the package says about itself is the same everywhere, and works outside the repository."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from hashlib import sha256
from pathlib import Path

import pytest

import mercer

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PYTHONS = [
    line.rsplit(" ", 1)[1]
    for line in PROJECT["project"]["classifiers"]
    if re.search(r":: 3\.\d+$", line)
]

pytestmark = pytest.mark.skipif(
    not (ROOT / ".github").is_dir(), reason="only a checkout has the files of the repository"
)


def workflow(name):
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text())


def test_one_version():
    assert PROJECT["project"]["version"] == mercer.__version__
    assert f"\nversion: {mercer.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f'version = "{mercer.__version__}"' in (ROOT / "conda" / "meta.yaml").read_text()
    assert f"## {mercer.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_every_supported_python_is_tested():
    jobs = workflow("tests.yml")["jobs"]
    matrix = jobs["suite"]["strategy"]["matrix"]
    assert matrix["python"] == jobs["lint"]["strategy"]["matrix"]["python"] == PYTHONS
    assert {name.split("-")[0] for name in matrix["system"]} == {"ubuntu", "macos", "windows"}
    assert PROJECT["project"]["requires-python"] == f">={PYTHONS[0]}"
    assert PROJECT["tool"]["ruff"]["target-version"] == f"py{PYTHONS[0].replace('.', '')}"
    assert "python_version" not in PROJECT["tool"]["mypy"], "types of NumPy are for its own Pythons"
    assert f"Python {PYTHONS[0]} or later" in (ROOT / "README.md").read_text()


def test_targets_that_workflows_make_exist():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        assert set(re.findall(r"run: make ([\w-]+)", path.read_text())) <= targets, path.name


def test_release_stores_no_secret():
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    assert "secrets." not in text and "id-token: write" in text


def test_the_conda_recipe_needs_what_the_package_needs():
    recipe = (ROOT / "conda" / "meta.yaml").read_text()
    run = recipe[recipe.index("  run:") : recipe.index("\ntest:")]
    listed = {tuple(line.split()) for line in re.findall(r"- ([\w-]+ >=[\w.]+)", run)}
    lines = [line.replace(">=", " >=") for line in PROJECT["project"]["dependencies"]]
    needed = {tuple(line.replace("matplotlib ", "matplotlib-base ").split()) for line in lines}
    assert listed - {("python", ">=3.11")} == needed


def test_an_audit_says_what_was_not_looked_up(monkeypatch):
    """Packages that no database was reached for do not pass as harmless."""
    monkeypatch.syspath_prepend(ROOT / ".ci")
    from audit import verdict

    good = {"name": "a", "version": "1", "vulns": []}
    bad = {"name": "b", "version": "2", "vulns": [{"id": "CVE-1", "fix_versions": ["3"]}]}
    skipped = {"name": "c", "skip_reason": "not found"}

    def said(*packages):
        return verdict(json.dumps({"dependencies": packages, "fixes": []}), "")

    assert said(good) == (0, "1 of 1 packages looked up, 0 findings.")
    assert said(good, bad)[0] == 1 and "b 2: CVE-1" in said(good, bad)[1]
    assert said(good, skipped)[0] == 3 and "Not looked up: c" in said(good, skipped)[1]
    assert said(skipped)[0] == 3 and "Nothing was audited" in said(skipped)[1]
    code, words = verdict("", "Traceback\n  File\nrequests.exceptions.ConnectionError: no")
    assert code == 3 and "Nothing was audited" in words and "Traceback" not in words


@pytest.fixture
def hook(monkeypatch):
    pytest.importorskip("hatchling", reason="hatchling, which builds the package, is not installed")
    monkeypatch.syspath_prepend(ROOT)
    import hatch_build

    return hatch_build


def test_readme_links_work_outside(hook):
    text = "[a](docs/a.md#b) ![p](docs/p.png) [c](https://x.org/y) [d](#d) [e](mailto:e)"
    there = "https://example.org/m"
    assert hook.outside(text, there) == (
        f"[a]({there}/blob/main/docs/a.md#b) ![p]({there}/raw/main/docs/p.png) "
        "[c](https://x.org/y) [d](#d) [e](mailto:e)"
    )
    assert hook.outside(text, "") == "a  [c](https://x.org/y) [d](#d) [e](mailto:e)"
    readme = (ROOT / "README.md").read_text()
    assert hook.RELATIVE.search(readme) and not hook.RELATIVE.search(hook.outside(readme, ""))


def test_addresses_come_from_one_place(hook):
    home = PROJECT["tool"]["mercer"]["home"]
    assert home == "" or re.fullmatch(r"https://[^\s]*[^/\s]", home)
    assert hook.addresses("") == {}
    assert all(
        page.startswith("https://x.org/m") for page in hook.addresses("https://x.org/m").values()
    )
    assert not (PROJECT["project"].keys() & {"urls", "readme"})


def test_lower_bounds_are_printed_for_all_dependencies(capsys, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / ".ci")
    import oldest

    oldest.main()
    lines = capsys.readouterr().out.splitlines()
    assert {line.replace(">=", "==") for line in PROJECT["project"]["dependencies"]} <= set(lines)
    assert all(re.fullmatch(r"[\w-]+==[\w.]+", line) for line in lines)


def test_skipped_tests_are_read_from_a_report(tmp_path, capsys, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / ".ci")
    monkeypatch.chdir(ROOT)
    import skipped

    report = tmp_path / "report.xml"
    here = 'classname="tests.test_publishing'
    report.write_text(
        "<testsuite>"
        f'<testcase {here}" name="a[1]"><skipped type="pytest.skip"/></testcase>'
        f'<testcase {here}.TestB" name="b"><skipped/></testcase>'
        '<testcase classname="" name="tests.compute.test_device"><skipped/></testcase>'
        f'<testcase {here}" name="c"/>'
        f'<testcase {here}" name="d"><skipped type="pytest.xfail"/></testcase>'
        "</testsuite>"
    )
    skipped.main(report)
    assert capsys.readouterr().out.split() == [
        "tests/compute/test_device.py",
        "tests/test_publishing.py::TestB::b",
        "tests/test_publishing.py::a[1]",
    ]


def test_builds_are_the_same_to_the_bit(tmp_path):
    """Under SOURCE_DATE_EPOCH, whatever the times and modes of the files and the order of sets."""
    pytest.importorskip("hatchling", reason="hatchling, which builds the package, is not installed")
    digests = []
    for number, mask in ((1, 0o022), (2, 0o077)):
        tree, out = tmp_path / f"tree{number}", tmp_path / f"dist{number}"
        shutil.copytree(ROOT / "src", tree / "src", ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("pyproject.toml", "README.md", "LICENSE", "hatch_build.py", "CHANGELOG.md"):
            shutil.copy(ROOT / name, tree / name)
        for path in tree.rglob("*"):
            os.utime(path, (number * 10**8, number * 10**8))
            path.chmod((0o777 if path.is_dir() else 0o666) & ~mask)
        settings = {"SOURCE_DATE_EPOCH": "1700000000", "PYTHONHASHSEED": str(number)}
        command = [sys.executable, "-m", "hatchling", "build", "-d", str(out)]
        subprocess.run(
            command, cwd=tree, env=os.environ | settings, check=True, capture_output=True
        )
        digests.append({path.name: sha256(path.read_bytes()).hexdigest() for path in out.iterdir()})
    assert digests[0] == digests[1] and len(digests[0]) == 2


def test_every_dependency_is_locked():
    """Names and exact versions, nothing about where they come from."""
    checked = subprocess.run(
        [sys.executable, ROOT / ".ci" / "lock.py", "--check"], capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stderr
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert lines[0].startswith("# Written by .ci/lock.py")
    assert len(lines) > 50
    assert all(re.fullmatch(r"[a-z0-9-]+==[\w.+!]+", line) for line in lines[1:])
