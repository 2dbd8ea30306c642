"""Long calls of LAPACK: the numbers of SciPy, and an interrupt that does not wait for them."""

import os
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest
from contracts import generator
from scipy.linalg import LinAlgError
from scipy.linalg import cholesky as plain_cholesky
from scipy.linalg import eigh as plain_eigh
from scipy.linalg import solve as plain_solve

from mercer import KernelCCA, KernelPCA, SupervisedKernelPCA
from mercer.bases import Landmarks
from mercer.compute import lapack
from mercer.selectors import RidgeLeverage


@pytest.fixture
def all_long(monkeypatch):
    monkeypatch.setattr(lapack, "LONG_ROWS", 1)
    monkeypatch.setattr(lapack, "LONG_WORK", 0)


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


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("order", ["C", "F", "strided"])
def test_linear_systems_are_those_of_scipy(seed, order, all_long):
    """In any layout, used up or not, and where only one triangle is right."""
    A, rng = drawn(seed)
    n, unit = len(A), np.abs(A).max()
    A = A @ A / unit + unit * np.eye(n)
    B = rng.standard_normal((n, 3)) if seed % 2 else rng.standard_normal(n)

    def laid_out(M):
        return np.repeat(M, 2, axis=0)[::2] if order == "strided" else np.array(M, order=order)

    for lower in (True, False):
        half = np.tril(A) if lower else np.triu(A)
        for overwrite in (True, False):
            given = laid_out(half)
            L = lapack.cholesky(given, lower=lower, overwrite=overwrite)
            np.testing.assert_allclose(L, plain_cholesky(A, lower=lower), rtol=1e-9, atol=1e-9)
            assert overwrite or (given == half).all()
            for transposed in (True, False):
                X = lapack.solve_triangular(
                    laid_out(L),
                    laid_out(B),
                    lower=lower,
                    transposed=transposed,
                    overwrite=overwrite,
                )
                np.testing.assert_allclose((L.T if transposed else L) @ X, B, rtol=1e-8, atol=1e-8)
    for overwrite in (True, False):
        given, right = laid_out(A), laid_out(B)
        X = lapack.solve_positive(given, right, overwrite=overwrite)
        np.testing.assert_allclose(X, plain_solve(A, B, assume_a="pos"), rtol=1e-8)
        assert (right == B).all() and (overwrite or (given == A).all())


def test_matrices_that_are_not_definite(all_long):
    for work in (lapack.cholesky, lambda A: lapack.solve_positive(A, np.ones(3))):
        with pytest.raises(LinAlgError, match=r"row 2: .*not positive definite"):
            work(np.diag([1.0, -1.0, 1.0]))
        with pytest.raises(ValueError, match="infs or NaNs"):
            work(np.full((3, 3), np.nan))


X = generator(5).standard_normal((60, 3))
FITS = {
    "learned inverse": lambda: KernelPCA(2, kernel="rbf", fit_inverse_transform=True).fit(X),
    "dense": lambda: KernelPCA(2, kernel="sigmoid", eigen_solver="dense").fit(X),
    "ridge": lambda: KernelPCA(2, kernel="rbf", preimage="ridge").fit(X).denoise(X),
    "leverage": lambda: KernelPCA(2, kernel="rbf", basis=Landmarks(9, RidgeLeverage())).fit(X),
    "cca": lambda: KernelCCA(2, kernel="rbf").fit(X, X),
    "target": lambda: SupervisedKernelPCA(2, kernel="rbf", basis="points").fit(X, X),
}


@pytest.mark.parametrize("name", FITS)
def test_fits_wait_for_systems_in_a_thread(name, monkeypatch):
    """Eigenproblems left aside."""
    waited, plain = [], lapack.waited_for

    def waited_for(work):
        waited.append(work)
        return plain(work)

    monkeypatch.setattr(lapack, "waited_for", waited_for)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        FITS[name]()
        assert not waited
        monkeypatch.setattr(lapack, "LONG_WORK", 0)
        FITS[name]()
    assert waited


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
OF_A_SYSTEM = """
n = 6000
A, B = np.ones((n, n)) + n * np.eye(n), np.ones((n, n))
try:
    WORK
except KeyboardInterrupt:
    print(time.time(), flush=True)
    os._exit(7)
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
@pytest.mark.parametrize(
    "work",
    [
        pytest.param("lapack.cholesky(A, overwrite=True)", marks=pytest.mark.slow),
        "lapack.solve_positive(A, B, overwrite=True)",
        pytest.param("lapack.solve_triangular(A, B, overwrite=True)", marks=pytest.mark.slow),
        "lapack.thin_svd(A[:2000])",
    ],
)
def test_an_interrupt_does_not_wait_for_a_system(work, tmp_path):
    """Each takes several seconds."""
    done, _ = ended(OF_A_SYSTEM.replace("WORK", work), tmp_path)
    assert done.returncode == 7, done.stderr
    sent, raised = map(float, done.stdout.split())
    assert raised - sent < 2


@pytest.mark.skipif(os.name != "posix", reason="SIGINT")
def test_an_interrupted_command_ends_at_once(tmp_path):
    done, end = ended(IN_THE_SHELL, tmp_path)
    assert done.returncode == 130 and "SIGINT" in done.stderr, done.stderr
    assert end - float(done.stdout) < 3
    assert [path.name for path in tmp_path.iterdir()] == ["rows.npy"]
