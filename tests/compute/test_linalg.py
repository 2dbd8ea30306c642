"""Long linear algebra: the numbers of SciPy, and an interrupt that does not wait for them."""

import ast
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from contracts import generator
from scipy import linalg as scipy_linalg
from scipy.linalg import LinAlgError

import mercer
from mercer.compute import linalg
from mercer.compute.linalg import self_product

# More rows than a factorization in one piece takes.
MANY = 2050


def drawn(seed):
    rng = generator(seed, 9)
    n = int(rng.integers(2, 90))
    A = rng.standard_normal((n, n)) * 10.0 ** rng.integers(-6, 6)
    return (A + A.T) / 2, rng


@pytest.mark.parametrize("seed", range(10))
def test_eigenpairs_are_those_of_scipy(seed):
    A, rng = drawn(seed)
    n, size = len(A), np.abs(A).max()
    values = scipy_linalg.eigvalsh(A)
    for r in (int(rng.integers(1, n + 1)), n):
        # The upper triangle stays, as solvers rely on.
        B = np.array(A, order="F")
        w, U = linalg.leading_eigh(B, r)
        np.testing.assert_allclose(w, values[::-1][:r], atol=1e-12 * n * size)
        np.testing.assert_allclose(A @ U, U * w, atol=1e-12 * n * size)
        np.testing.assert_allclose(U.T @ U, np.eye(r), atol=1e-12 * n)
        upper = np.triu_indices(n, 1)
        assert r == n or (B[upper] == A[upper]).all()
    w, U = linalg.eigh(A)
    np.testing.assert_allclose(w, values, atol=1e-12 * n * size)
    np.testing.assert_allclose(A @ U, U * w, atol=1e-12 * n * size)


@pytest.mark.parametrize("n", [2, 65, 700])
def test_some_eigenpairs_by_our_own_reduction(n):
    A = generator(n, 4).standard_normal((n, n))
    A = A + A.T
    B = np.array(A, order="F")
    w, U = linalg.few_eigh(B, 2)
    size = np.linalg.norm(A, 2)
    np.testing.assert_allclose(w, np.linalg.eigvalsh(A)[-2:], atol=1e-12 * size)
    np.testing.assert_allclose(A @ U, U * w, atol=1e-12 * size)
    # The upper triangle stays, as solvers rely on.
    assert (np.triu(B, 1) == np.triu(A, 1)).all()


@pytest.mark.parametrize("r", [1, 3, 40])
def test_some_eigenpairs_of_matrices_with_equal_values(r):
    rng = generator(r, 2)
    X, n = rng.standard_normal((150, 3)), 150
    angles = np.linspace(0, 2 * np.pi, n, endpoint=False)
    circle = np.exp(2 * np.cos(angles[:, None] - angles))
    narrow = np.exp(-100 * ((X[:, None] - X) ** 2).sum(axis=2))
    for A in (np.eye(n), np.ones((n, n)), X @ X.T, circle, narrow):
        w, U = linalg.few_eigh(np.array(A, order="F"), r)
        size = np.linalg.norm(A, 2)
        np.testing.assert_allclose(w, np.linalg.eigvalsh(A)[n - r :], atol=1e-12 * size)
        np.testing.assert_allclose(A @ U, U * w, atol=1e-12 * size)
        np.testing.assert_allclose(U.T @ U, np.eye(r), atol=1e-11)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("order", ["C", "F", "strided"])
def test_linear_systems_are_those_of_scipy(seed, order):
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
            L = linalg.cholesky(given, lower=lower, overwrite=overwrite)
            np.testing.assert_allclose(
                L, scipy_linalg.cholesky(A, lower=lower), rtol=1e-9, atol=1e-9
            )
            assert overwrite or (given == half).all()
            for transposed in (True, False):
                X = linalg.solve_triangular(
                    laid_out(L),
                    laid_out(B),
                    lower=lower,
                    transposed=transposed,
                    overwrite=overwrite,
                )
                np.testing.assert_allclose((L.T if transposed else L) @ X, B, rtol=1e-8, atol=1e-8)
    for overwrite in (True, False):
        given, right = laid_out(A), laid_out(B)
        X = linalg.solve_positive(given, right, overwrite=overwrite)
        np.testing.assert_allclose(X, scipy_linalg.solve(A, B, assume_a="pos"), rtol=1e-8)
        assert (right == B).all() and (overwrite or (given == A).all())


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("order", ["C", "F"])
def test_factors_of_many_rows(order, lower):
    """In panels: in either layout, used up or not, and where only one triangle is right."""
    rng = generator(MANY, 1)
    v, w = rng.standard_normal((2, MANY))
    A = np.add.outer(v, v) ** 2 / MANY
    A.flat[:: MANY + 1] += 10
    half = np.array(np.tril(A) if lower else np.triu(A), order=order)
    given = half.copy(order="K")
    L = linalg.cholesky(given, lower=lower)
    assert (given == half).all() and ((np.tril(L) if lower else np.triu(L)) == L).all()
    product = L @ (L.T @ w) if lower else L.T @ (L @ w)
    np.testing.assert_allclose(product, A @ w, atol=1e-9)
    np.testing.assert_array_equal(linalg.cholesky(given, lower=lower, overwrite=True), L)
    B = rng.standard_normal((MANY, 700))
    X = linalg.solve_triangular(L, B, lower=lower, transposed=order == "C")
    np.testing.assert_allclose((L.T if order == "C" else L) @ (X @ B[0]), B @ B[0], atol=1e-7)


@pytest.mark.parametrize("n", [40, MANY])
def test_matrices_that_are_not_definite(n):
    for work in (linalg.cholesky, lambda A: linalg.solve_positive(A, np.ones(n))):
        for place in (3, n - 3):
            A = np.eye(n)
            A[place, place] = -1.0
            with pytest.raises(LinAlgError):  # in the words of SciPy, which change
                work(A)
        with pytest.raises(ValueError, match="infs or NaNs"):
            work(np.full((n, n), np.nan))


@pytest.mark.slow
def test_more_rows_than_threaded_lapack_takes():
    """OpenBLAS's own factorization ends the process there."""
    n = 9000
    A = np.full((n, n), 1.0)
    A.flat[:: n + 1] = n
    v = generator(0).standard_normal(n)
    L = linalg.cholesky(A, lower=True, overwrite=True)
    np.testing.assert_allclose(L @ (L.T @ v), v.sum() + (n - 1) * v, rtol=1e-9, atol=1e-9 * n)


def test_errors_come_back():
    with pytest.raises(ValueError, match="not finite"):
        linalg.eigh(np.full((3, 3), np.nan))
    with pytest.raises(ZeroDivisionError):
        linalg.waited_for(True, lambda: 1 / 0)


def test_no_thread_is_left_and_others_use_none():
    A, _ = drawn(4)
    before = threading.active_count()
    linalg.waited_for(True, linalg.eigh, A)
    assert threading.active_count() == before and not linalg.still_working()
    # Only the main thread sees signals.
    found = []
    others = threading.Thread(
        target=lambda: found.append(linalg.waited_for(True, threading.current_thread))
    )
    others.start()
    others.join()
    assert found == [others]


INTERRUPTED = """
import os, signal, sys, threading, time
import numpy as np
from mercer import KernelPCA
from mercer.cli import main
from mercer.compute import linalg

def interrupt(ready):
    def send():
        while not ready():
            time.sleep(0.01)
        # Long before LAPACK is done.
        time.sleep(0.2)
        print(time.time(), flush=True)
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=send, daemon=True).start()

X = np.random.default_rng(0).standard_normal((3000, 5))
"""
IN_PYTHON = """
interrupt(linalg.still_working)
model = KernelPCA(None, kernel="rbf", eigen_solver="dense", memory="2GB")
try:
    model.fit(X)
except KeyboardInterrupt:
    print(time.time(), "fitted" if hasattr(model, "eigenvalues_") else "not fitted", flush=True)
    sys.exit(7)
"""
OF_A_SYSTEM = """
n = 6000
A, B = np.ones((n, n), order="F") + n * np.eye(n), np.ones((n, n))
interrupt(lambda: True)
try:
    WORK
except KeyboardInterrupt:
    print(time.time(), flush=True)
    os._exit(7)
"""
IN_THE_SHELL = """
np.save("rows.npy", X)
interrupt(linalg.still_working)
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
    assert float(raised.split()[0]) - float(sent) < 4


@pytest.mark.skipif(os.name != "posix", reason="SIGINT")
@pytest.mark.parametrize(
    "work",
    [
        pytest.param("linalg.cholesky(A, overwrite=True)", marks=pytest.mark.slow),
        "linalg.solve_positive(A, B, overwrite=True)",
        pytest.param("linalg.solve_triangular(A, B, overwrite=True)", marks=pytest.mark.slow),
        "linalg.thin_svd(A[:2000])",
        "linalg.leading_eigh(A, 5)",
    ],
)
def test_an_interrupt_does_not_wait_for_a_system(work, tmp_path):
    """Each takes several seconds."""
    done, _ = ended(OF_A_SYSTEM.replace("WORK", work), tmp_path)
    assert done.returncode == 7, done.stderr
    sent, raised = map(float, done.stdout.split())
    assert raised - sent < 4


@pytest.mark.skipif(os.name != "posix", reason="SIGINT")
def test_an_interrupted_command_ends_at_once(tmp_path):
    done, end = ended(IN_THE_SHELL, tmp_path)
    assert done.returncode == 130 and "SIGINT" in done.stderr, done.stderr
    assert end - float(done.stdout) < 3
    assert [path.name for path in tmp_path.iterdir()] == ["rows.npy"]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("columns", [1, 700, 4200])
def test_self_products(columns, dtype):
    A = generator(columns).standard_normal((30, columns)).astype(dtype)
    for B in (A, np.asfortranarray(A)):
        found = self_product(B)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, B.T @ B.copy(), rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(found, found.T)


# OpenBLAS's threaded `dsyrk` crashes for many rows. NumPy calls it for A @ A.T and A.T @ A of one
# array, LAPACK in Cholesky factors and what needs them.
WITH_FACTORS = {"cholesky", "cho_factor", "solve", "solveh_banded", "cov", "corrcoef", "ldl"}
BY_LAPACK = {f"{home}.{name}" for home in ("np", "np.linalg", "linalg") for name in WITH_FACTORS}
# Products of a block of a remainder, and of a batch of a Hebbian rule: some hundred rows.
HARMLESS = {"fitting/remainder.py": 1, "hebbian/rule.py": 4}


def own_products(tree):
    """Products of an array with its own transpose."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            sides = [ast.unparse(side) for side in (node.left, node.right)]
            if sides[0] == f"{sides[1]}.T" or sides[1] == f"{sides[0]}.T":
                yield ast.unparse(node)


def factorizations(tree):
    """Calls and imports of functions that factor a positive definite matrix by LAPACK."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and "scipy.linalg" in (node.module or ""):
            yield from (name.name for name in node.names if name.name in WITH_FACTORS)
        elif isinstance(node, ast.Attribute) and ast.unparse(node) in BY_LAPACK:
            yield ast.unparse(node)


def test_nothing_large_is_left_to_the_threads_of_dsyrk():
    """One module calls it, in panels; all others call that one (`self_product`, `cholesky`)."""
    root = Path(mercer.__file__).parent
    for path in root.rglob("*.py"):
        name, tree = path.relative_to(root).as_posix(), ast.parse(path.read_text())
        if name == "compute/linalg.py":
            assert list(own_products(tree)) and list(factorizations(tree)), "the test sees them"
            continue
        found = list(own_products(tree))
        assert len(found) == HARMLESS.get(name, 0), f"{name}: {found}: use self_product"
        assert not list(factorizations(tree)), f"{name}: use mercer.compute.linalg"


@pytest.mark.slow
def test_many_rows_with_two_threads():
    """As in a process of its own, since it would end with a segmentation fault."""
    code = (
        "import numpy as np; from mercer.compute.linalg import self_product, solve_positive\n"
        "A = np.random.default_rng(0).random((200, 17_000))\n"
        "G = self_product(A); G.flat[::17_001] += 1e3\n"
        "B = np.ones((17_000, 2)); X = solve_positive(G, B, overwrite=True)\n"
        "assert abs(A.T @ (A @ X) + 1e3 * X - B).max() < 1e-6"
    )
    subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"OPENBLAS_NUM_THREADS": "2"}, check=True
    )


def test_some_of_many_equal_eigenvalues():
    """LAPACK's way to find some of them fails on a few of these matrices."""
    for seed in range(200):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(8, 40))
        Q, _ = np.linalg.qr(np.sign(rng.normal(size=(n, n))))
        levels = rng.choice([1 / 36, 2 / 27, 0.5], n)
        A = (Q * levels) @ Q.T
        A, r = (A + A.T) / 2, int(rng.integers(1, n))
        values, U = linalg.leading_eigh(np.asfortranarray(A), r)
        np.testing.assert_allclose(values, np.sort(levels)[::-1][:r], atol=1e-13)
        np.testing.assert_allclose(A @ U, U * values, atol=1e-13)
    K = np.zeros((26, 26))
    K[0, 0] = 1.0
    with patch.object(linalg, "dsyevr", lambda A, **options: (*broken(A), 0, None, 1)):
        values, U = linalg.leading_eigh(np.asfortranarray(K), 3)
    np.testing.assert_allclose(values, [1.0, 0.0, 0.0])
    np.testing.assert_allclose(np.abs(U[0]), [1.0, 0.0, 0.0])


def broken(A):
    """What a failure leaves: a lower triangle of other numbers."""
    A[np.tril_indices(len(A))] = 7.0
    return np.zeros(len(A)), np.zeros((len(A), len(A)))


def test_a_lock_that_an_interrupt_left_blocks_nobody(monkeypatch):
    """As where it comes between taking the lock and the block that gives it back."""
    monkeypatch.setattr(linalg, "PATIENCE", 0.01)
    holder = linalg.OneThread()
    thread = threading.Thread(target=holder._lock.acquire)
    thread.start()
    thread.join()
    with holder():
        assert len(holder._holders) == 1
    assert not holder._holders
