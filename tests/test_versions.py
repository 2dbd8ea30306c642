"""What bug reports say about a machine."""

import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

import mercer
from mercer import _packages
from mercer.cli import main

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"


def shown(capsys):
    mercer.show_versions()
    lines = capsys.readouterr().out.splitlines()
    return {line.split("  ")[0]: line.split("  ", 1)[1].strip() for line in lines}


def test_versions_of_all_that_matters(capsys):
    facts = shown(capsys)
    assert facts["mercer"] == mercer.__version__
    assert facts["python"].startswith(".".join(map(str, sys.version_info[:3])))
    assert facts["numpy"] == np.__version__ and facts["scikit-learn"] == version("scikit-learn")
    assert "threads" in facts["blas"]
    assert facts["free memory"].endswith("B") and "usable of" in facts["cores"]


@pytest.mark.skipif(not PYPROJECT.is_file(), reason="pyproject.toml is not beside the tests")
def test_every_dependency_is_listed(capsys):
    lines = tomllib.loads(PYPROJECT.read_text())["project"]["dependencies"]
    assert {line.split(">")[0] for line in lines} <= set(shown(capsys))


def test_absent_libraries_are_said_to_be_absent(capsys, monkeypatch):
    monkeypatch.setattr(_packages, "OPTIONAL", ("nowhere-to-be-found",))
    monkeypatch.setattr(_packages, "has", lambda name: False)
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    facts = shown(capsys)
    assert facts["nowhere-to-be-found"] == "not installed" and facts["OMP_NUM_THREADS"] == "7"
    assert "CUDA of torch" not in facts


def test_a_torch_that_does_not_load_is_no_obstacle(capsys, monkeypatch):
    monkeypatch.setattr(_packages, "has", lambda name: True)
    monkeypatch.setitem(sys.modules, "torch", None)
    assert shown(capsys)["torch"].startswith("cannot be imported: ")


@pytest.mark.parametrize("line", [["--version", "--verbose"], ["--verbose", "--version"]])
def test_the_command_shows_the_same(line, capsys):
    assert main(line) == 0
    out = capsys.readouterr().out
    assert out.startswith("mercer ") and "\nnumpy " in out and "\nfree memory " in out


def test_verbose_alone_is_wrong_usage(capsys):
    for line in (["--verbose"], ["--verbose", "demo"]):
        assert main(line) == 2
        assert "--verbose goes with --version" in capsys.readouterr().err


def test_python_can_show_them_from_the_shell():
    line = [sys.executable, "-W", "error", "-c", "import mercer; mercer.show_versions()"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout.startswith("mercer "), done.stderr
