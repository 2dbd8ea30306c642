"""What killed processes leave is removed by the next one, and by nobody while it is written."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from mercer import KernelPCA
from mercer._whole_file import YOUNG, begin_part, whole_file

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
