"""What killed processes leave is removed by the next one, and by nobody while it is written."""

import errno
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from mercer import HebbianKernelPCA, KernelPCA, StreamingKernelPCA
from mercer._whole_file import YOUNG, begin_part, whole_file
from mercer.bases import Landmarks
from mercer.report import write_report
from mercer.saving import export_onnx

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and locks of POSIX")

PROGRAM = """
import sys, time
import numpy as np
from mercer.files import open_sink
from mercer._whole_file import whole_file
if sys.argv[1] == "sink":
    with open_sink(sys.argv[2], 2) as sink:
        sink.write(np.zeros((9, 2)))
        print("writing", flush=True)
        time.sleep(60)
else:
    with whole_file(sys.argv[2]) as file:
        file.write(b"some")
        print("writing", flush=True)
        time.sleep(60)
"""


def writing(kind, path):
    """A process that is in the middle of writing a file."""
    line = [sys.executable, "-c", PROGRAM, kind, str(path)]
    child = subprocess.Popen(line, stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"writing\n"
    return child


def end(child, number):
    child.send_signal(number)
    code = child.wait(30)
    child.stdout.close()
    return code


def parts(folder):
    return sorted(file.name for file in folder.iterdir() if file.name.endswith(".part"))


def make_old(folder):
    for file in folder.iterdir():
        os.utime(file, times=(time.time() - 2 * YOUNG,) * 2)


@pytest.mark.parametrize("kind", ["sink", "file"])
def test_a_left_over_goes_with_the_next_run_of_its_own_output(kind, tmp_path):
    path, other = tmp_path / "s.npy", tmp_path / "other.npy"
    assert end(writing(kind, path), signal.SIGKILL) == -signal.SIGKILL
    assert end(writing(kind, other), signal.SIGKILL) == -signal.SIGKILL
    mine = tmp_path / ".s.npy.mine.part"
    mine.write_bytes(b"no part of ours")
    make_old(tmp_path)
    X = np.random.default_rng(0).standard_normal((30, 3))
    KernelPCA(2).fit(X).transform(X, out=path)
    left = parts(tmp_path)
    assert mine.name in left and len(left) == 2 and any("other" in name for name in left)
    assert np.load(path).shape == (30, 2)


@pytest.mark.parametrize("kind", ["sink", "file"])
def test_what_is_written_now_stays(kind, tmp_path):
    path = tmp_path / "s.npy"
    child = writing(kind, path)
    try:
        make_old(tmp_path)
        with whole_file(path) as file:
            file.write(b"mine")
        assert len(parts(tmp_path)) == 1 and path.read_bytes() == b"mine"
    finally:
        end(child, signal.SIGKILL)


def test_a_part_that_was_just_made_stays(tmp_path):
    part, file = begin_part(tmp_path / "a.npy")
    file.close()  # as between the moments when it is made and held
    begin_part(tmp_path / "a.npy")[1].close()
    assert part.exists()


@pytest.mark.parametrize("kind", ["sink", "file"])
def test_sigterm_cleans_up(kind, tmp_path):
    code = end(writing(kind, tmp_path / "s.npy"), signal.SIGTERM)
    assert code == 128 + signal.SIGTERM and not list(tmp_path.iterdir())


def test_a_handler_of_the_user_stays(tmp_path):
    heard = []
    before = signal.signal(signal.SIGTERM, lambda *_: heard.append(1))
    try:
        with whole_file(tmp_path / "a") as file:
            os.kill(os.getpid(), signal.SIGTERM)
            file.write(b"all")
        assert heard == [1] and (tmp_path / "a").read_bytes() == b"all"
    finally:
        signal.signal(signal.SIGTERM, before)
    with whole_file(tmp_path / "b") as file:
        file.write(b"all")
    assert signal.getsignal(signal.SIGTERM) is before


# What the library writes, by the parameter that says where.
WRITERS = {
    "save path": lambda model, X, path: model.save(path),
    "report path": lambda model, X, path: write_report(model, X, path),
    "onnx path": lambda model, X, path: export_onnx(model, path),
    "npy out": lambda model, X, path: model.transform(X, out=path.with_suffix(".npy")),
    "csv out": lambda model, X, path: model.transform(X, out=path.with_suffix(".csv")),
    "parquet out": lambda model, X, path: model.transform(X, out=path.with_suffix(".parquet")),
    "fit checkpoint": lambda model, X, path: clone(model).set_params(checkpoint=path).fit(X),
    "passes checkpoint": lambda model, X, path: HebbianKernelPCA(
        2, kernel="rbf", n_passes=2, checkpoint=path
    ).fit(X),
    "batches checkpoint": lambda model, X, path: StreamingKernelPCA(
        2, kernel="rbf", budget=20, checkpoint=path
    ).fit(X),
}


@contextmanager
def little_room(size):
    """The limit of a file's size stands for a full disk, also where tests are run by root."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize("what", WRITERS)
def test_writers_that_cannot_write_say_where_and_what_to_do(what, tmp_path):
    """A full disk, and a folder where nobody can make files."""
    if what.startswith(("onnx", "parquet")):
        pytest.importorskip("onnx" if what.startswith("onnx") else "pyarrow")
    X = np.random.default_rng(1).standard_normal((300, 4))
    model = KernelPCA(2, kernel="rbf", basis=Landmarks(20), random_state=0).fit(X)
    parameter = what.split()[1]
    write, told = WRITERS[what], parameter + "='{}.*' cannot be written: "
    full = told.format(tmp_path) + "File too large. Make room, or give a place on another disk"
    with little_room(20), pytest.raises(OSError, match=full):
        write(model, X, tmp_path / "a")
    left = {file.name for file in tmp_path.rglob("*") if file.is_file()}
    assert left <= {"lock"}, "half of a file is left"
    if sys.platform == "linux":
        wrong = told.format("/proc/a") + ".*Give a file name in a folder that you may write to"
        with pytest.raises(OSError, match=wrong):
            write(model, X, Path("/proc/a"))
    with pytest.raises(FileNotFoundError, match=f"no folder .*{parameter}=.* Make it first"):
        write(model, X, tmp_path / "none" / "a")


def test_a_disk_that_fills_is_not_blamed_on_what_is_read(tmp_path):
    with pytest.raises(OSError, match="the source is gone"), whole_file(tmp_path / "a"):
        raise OSError(errno.EIO, "the source is gone")


def test_an_interrupt_while_the_command_is_imported_shows_no_traceback(tmp_path):
    late = """
import sys
class Late:
    def find_spec(self, name, *rest):
        if name == "mercer.cli.parser":
            raise KeyboardInterrupt
from mercer.cli import main
sys.meta_path.insert(0, Late())
sys.exit(main(["--version"]))
"""
    done = subprocess.run([sys.executable, "-c", late], capture_output=True, timeout=60)
    assert done.returncode == 130 and done.stderr == b""
