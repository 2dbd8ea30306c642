"""The command as a process: signals, pipes, exit codes and start-up."""

import os
import runpy
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from contracts import generator

from mercer import KernelPCA, demo

needs_posix = pytest.mark.skipif(os.name != "posix", reason="signals and pipes of POSIX")
needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="/dev/full")

MERCER = [sys.executable, "-W", "error", "-m", "mercer"]


def mercer(*arguments, **options):
    options = {"stderr": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True} | options
    return subprocess.Popen([*MERCER, *map(str, arguments)], **options)


def wait_for(condition, seconds=180):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


@needs_posix
@pytest.mark.parametrize(
    ("method", "number", "code"),
    [("hebbian", signal.SIGINT, 130), ("exact", signal.SIGTERM, 143)],
)
def test_a_stopped_fit_leaves_nothing(method, number, code, tmp_path):
    np.save(tmp_path / "rows.npy", generator(21).standard_normal((40_000, 10)))
    out = tmp_path / "out"
    out.mkdir()
    line = ("fit", "rows.npy", "--method", method, "--tol", "1e-9", "-o", "out/m.mercer")
    with mercer(*line, cwd=tmp_path) as job:
        wait_for(lambda: any(out.iterdir()) or job.poll() is not None)
        time.sleep(0.5)  # into the fit
        job.send_signal(number)
        said, err = job.communicate(timeout=180)
    assert job.returncode == code, err
    assert said == "" and err.count("\n") == 1 and number.name in err
    assert list(out.iterdir()) == []


@needs_posix
def test_a_reader_that_leaves_is_no_failure(tmp_path):
    X = generator(22).standard_normal((5000, 3))
    np.save(tmp_path / "rows.npy", X)
    KernelPCA(2, kernel="linear").fit(X[:100]).save(tmp_path / "m.mercer")
    with mercer("transform", "m.mercer", "rows.npy", "--quiet", cwd=tmp_path) as job:
        first = job.stdout.readline()
        job.stdout.close()
        err = job.stderr.read()
    assert err == "" and job.returncode == 0
    assert first == "component1,component2\n"


@needs_posix
@pytest.mark.parametrize("line", [["--help"], ["fit", "--help"], ["--version"]])
def test_a_reader_that_never_came(line):
    reading, writing = os.pipe()
    os.close(reading)
    job = mercer(*line, stdout=writing)
    os.close(writing)
    assert job.communicate(timeout=180)[1] == "" and job.returncode == 0


@pytest.mark.parametrize(
    ("line", "code"), [(["demo", "."], 1), (["fit", "--bogus"], 2), (["--version"], 0)]
)
def test_exit_codes(line, code, tmp_path):
    (tmp_path / "file").touch()
    job = mercer(*line, cwd=tmp_path)
    out, err = job.communicate(timeout=180)
    assert job.returncode == code
    assert (out + err).count("\n") == 1 and (err == "") == (code == 0)


@needs_linux
@pytest.mark.parametrize(("target", "code"), [("&-", 0), ("/dev/full", 1)])
def test_output_that_cannot_leave(target, code):
    """A closed stdout is the user's wish, a full disk a failure."""
    line = " ".join([*MERCER, "--version"])
    done = subprocess.run(f"{line} >{target}", shell=True, stderr=subprocess.PIPE, text=True)
    assert done.returncode == code and done.stderr.count("\n") == code, done.stderr


def test_a_name_that_the_terminal_cannot_show_is_spelled_out(tmp_path):
    X = generator(23).standard_normal((6, 2))
    table = "\n".join(["größe,b", *(f"{a},{b}" for a, b in X)])
    (tmp_path / "rows.csv").write_text(table, encoding="utf-8")
    for line in (["fit", "rows.csv", "-r", "2", "-o", "m.mercer"], ["describe", "m.mercer"]):
        job = mercer(*line, cwd=tmp_path, env=os.environ | {"PYTHONIOENCODING": "ascii"})
        out, err = job.communicate(timeout=180)
        assert job.returncode == 0, err
    assert r"gr\xf6\xdfe" in out


def test_help_waits_for_no_numerics():
    code = (
        "import sys, time; start = time.process_time(); from mercer.cli import main; "
        "main(['--help']); main(['fit', '--help']); seconds = time.process_time() - start; "
        "heavy = {'numpy', 'scipy', 'sklearn', 'rich', 'mercer.cli.fit'} & set(sys.modules); "
        "print(heavy, file=sys.stderr); sys.exit(bool(heavy) or seconds > 0.3)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_demo_module_replaces_an_earlier_run(tmp_path, monkeypatch, capsys):
    """``make demo`` runs this, and ends with the paths of the picture and the report."""

    def write_pages(folder):
        (folder / "report.html").write_text("new")
        return ["said"], {"picture": "digits.png", "report": "report.html"}

    (tmp_path / "report.html").write_text("old")
    monkeypatch.setattr("mercer.demo.demonstrate", write_pages)
    monkeypatch.setattr(sys, "argv", ["demo.py", str(tmp_path)])
    with pytest.raises(SystemExit) as stop:
        runpy.run_path(demo.__file__, run_name="__main__")
    assert stop.value.code == 0
    last = [f"picture: {tmp_path}/digits.png", f"report:  {tmp_path}/report.html"]
    assert capsys.readouterr().out.splitlines()[-2:] == last
    assert (tmp_path / "report.html").read_text() == "new"
