"""Long eigenproblems: the numbers of SciPy, and an interrupt that does not wait for them."""

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from contracts import generator
from scipy.linalg import LinAlgError
from scipy.linalg import eigh as plain_eigh

from mercer.compute import lapack


@pytest.fixture
def all_long(monkeypatch):
    monkeypatch.setattr(lapack, "LONG_ROWS", 1)


def drawn(seed):
    rng = generator(seed, 9)
    n = int(rng.integers(2, 90))
    A = rng.standard_normal((n, n)) * 10.0 ** rng.integers(-6, 6)
    return (A + A.T) / 2, rng


@pytest.mark.parametrize("seed", range(10))
def test_the_same_bits_as_scipy(seed, all_long):
    A, rng = drawn(seed)
    assert all(map(lapack.is_known, lapack.ARGUMENTS))
    first, last = sorted(rng.integers(0, len(A), 2))
    for options, theirs in [
        ({}, {}),
        ({"driver": "evd"}, {"driver": "evd"}),
        ({"few": (first, last)}, {"subset_by_index": (first, last)}),
    ]:
        before = A.copy()
        for found, known in zip(lapack.eigh(A, **options), plain_eigh(A, **theirs), strict=True):
            np.testing.assert_array_equal(found, known)
        np.testing.assert_array_equal(A, before)


def test_a_matrix_is_used_up_in_place(all_long):
    """The upper triangle stays, as solvers rely on."""
    A, _ = drawn(3)
    B = np.asfortranarray(A)
    lapack.eigh(B, few=(0, 0), overwrite=True)
    upper = np.triu_indices_from(A, 1)
    np.testing.assert_array_equal(B[upper], A[upper])


def test_errors_come_back(all_long, monkeypatch):
    with pytest.raises(ValueError, match="infs or NaNs"):
        lapack.eigh(np.full((3, 3), np.nan))
    with pytest.raises(ZeroDivisionError):
        lapack.waited_for(lambda: 1 / 0)

    def fails(*arguments):
        arguments[-1]._obj.value = 7

    monkeypatch.setattr(lapack, "routine", lambda name: fails)
    monkeypatch.setattr(lapack.np, "empty", np.ones)
    with pytest.raises(LinAlgError, match="info 7"):
        lapack.eigh(np.eye(4), driver="evd")


def test_no_thread_is_left_and_others_use_none(all_long, monkeypatch):
    A, _ = drawn(4)
    before = threading.active_count()
    lapack.eigh(A)
    assert threading.active_count() == before
    monkeypatch.setattr(lapack, "waited_for", None)  # only the main thread sees signals
    found = []
    thread = threading.Thread(target=lambda: found.append(lapack.eigh(A)))
    thread.start()
    thread.join()
    np.testing.assert_array_equal(found[0][0], plain_eigh(A)[0])


INTERRUPTED = """
import os, signal, sys, threading, time
import numpy as np
from mercer import KernelPCA
from mercer.cli import main
from mercer.compute import lapack

plain = lapack.waited_for

def interrupted(work):
    # A signal once LAPACK is at work, long before it is done.
    def send():
        print(time.time(), flush=True)
        os.kill(os.getpid(), signal.SIGINT)
    threading.Timer(0.2, send).start()
    return plain(work)

lapack.waited_for = interrupted
X = np.random.default_rng(0).standard_normal((3000, 5))
"""
IN_PYTHON = """
model = KernelPCA(None, kernel="rbf", eigen_solver="dense", memory="2GB")
try:
    model.fit(X)
except KeyboardInterrupt:
    print(time.time(), "fitted" if hasattr(model, "eigenvalues_") else "not fitted", flush=True)
    sys.exit(7)
"""
IN_THE_SHELL = """
np.save("rows.npy", X)
sys.exit(main("fit rows.npy -r 2900 --method dense --memory 2GB -o m.mercer".split()))
"""


def ended(code, folder):
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED + code],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=folder,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    )
    return done, time.time()


@pytest.mark.skipif(os.name != "posix", reason="SIGINT")
def test_an_interrupt_is_raised_at_once_and_the_program_ends(tmp_path):
    done, _ = ended(IN_PYTHON, tmp_path)
    sent, raised = done.stdout.splitlines()
    assert done.returncode == 7 and raised.endswith("not fitted"), done.stderr
    # LAPACK takes several seconds and more for all pairs of 3,000 rows.
    assert float(raised.split()[0]) - float(sent) < 2


@pytest.mark.skipif(os.name != "posix", reason="SIGINT")
def test_an_interrupted_command_ends_at_once(tmp_path):
    done, end = ended(IN_THE_SHELL, tmp_path)
    assert done.returncode == 130 and "SIGINT" in done.stderr, done.stderr
    assert end - float(done.stdout) < 3
    assert [path.name for path in tmp_path.iterdir()] == ["rows.npy"]
