"""Dense linear algebra that Ctrl-C does not wait for, and small steps that many parts share.

SciPy holds the interpreter lock while LAPACK works, which is minutes for many rows: no signal is
seen meanwhile. Long factorizations are therefore made here in panels of columns, with SciPy and
BLAS on each of them. NumPy releases the lock, so its decompositions only need a thread of their
own (`waited_for`). Panels also keep every call of BLAS to some thousand rows: OpenBLAS's own
threaded `dsyrk`, and the Cholesky factorization that calls it, crash beyond 8,000 to 16,000.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import copy_context
from functools import cache
from typing import Any
from weakref import WeakSet

import numpy as np
from scipy import linalg
from scipy.linalg.blas import dgemm, dgemv, dsymv
from scipy.linalg.lapack import dsyevd, dsyevd_lwork, dsyevr, dsyevr_lwork
from threadpoolctl import ThreadpoolController

from .arrays import Array, array_namespace, to_numpy

# Rows up to which any decomposition takes about a second, and operations that do.
LONG_ROWS, LONG_WORK = 2000, 1e10
# Rows up to which LAPACK itself finds some eigenpairs: an interrupt waits for that, about five
# seconds on two cores, and panels would take half as long again.
FEW_ROWS = 5000
# Columns of a panel, and rows or columns that a panel is multiplied with at once.
PANEL, STRIP = 1024, 1024
# Columns up to which a product of an array with itself is left to BLAS.
FEW_COLUMNS = 4096
# Columns reduced to tridiagonal form before the rest of the matrix is updated.
REFLECTORS = 64
# What the names of threads in which NumPy works begin with.
WORKER = "mercer-linalg"


def eigh(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All eigenpairs, smallest first, from the lower triangle of a symmetric matrix."""
    try:
        A = np.asarray_chkfinite(A)
        return waited_for(A.shape[0] > LONG_ROWS, np.linalg.eigh, A)
    except ValueError as error:  # LinAlgError is one, of finite numbers whose products are not
        raise linalg.LinAlgError(
            "The matrix to decompose holds values that are not finite, or whose products are not. "
            "Scale the data or change the kernel's parameters."
        ) from error


def leading_eigh(A: np.ndarray, r: int) -> tuple[np.ndarray, np.ndarray]:
    """The r largest eigenpairs of a symmetric A, largest first; its lower triangle is overwritten.

    A is float64, by columns and finite. LAPACK without SciPy's checks, which take longer than the
    work for few rows.
    """
    n, diagonal = A.shape[0], A.diagonal().copy()
    if n > (FEW_ROWS if r < n else LONG_ROWS):
        w, U = few_eigh(A, r) if r < n else eigh(A)
        return w[::-1], U[:, ::-1]
    if r < n:
        w, U, m, _, info = dsyevr(
            A, range="I", il=n - r + 1, iu=n, lower=1, overwrite_a=1, **work_sizes(n, True)
        )
        w, U = w[:m], U[:, :m]
    else:
        w, U, info = dsyevd(A, lower=1, overwrite_a=1, **work_sizes(n, False))
    if r < n and (info or w.size < r):
        # LAPACK fails on some of many equal eigenvalues; all pairs are found another way.
        A = np.triu(A, 1)
        w, U = leading_eigh(np.asfortranarray(A + A.T + np.diag(diagonal)), n)
        return w[:r], U[:, :r]
    if info:
        raise linalg.LinAlgError(f"LAPACK found no eigenpairs of a {n} x {n} matrix (info={info}).")
    return w[::-1], U[:, ::-1]


@cache
def work_sizes(n: int, few: bool) -> dict[str, int]:
    """Room that LAPACK works best in."""
    work, integers, _ = (dsyevr_lwork if few else dsyevd_lwork)(n, lower=1)
    return {"lwork": int(work), "liwork": int(integers)}


def few_eigh(A: np.ndarray, r: int) -> tuple[np.ndarray, np.ndarray]:
    """The r largest eigenpairs, smallest first, by Householder's tridiagonal form, as LAPACK does.

    The reflectors I - v v' take the place of the strict lower triangle of A; a copy of A is reduced
    REFLECTORS columns at a time, and made smaller after each panel of them. All products are
    SciPy's: the threads of its BLAS and those of NumPy's would wait for each other.
    """
    n = A.shape[0]
    d, e = np.empty(n), np.empty(n - 1)
    B, first = A.copy(order="F"), 0
    while first < n - 1:
        m = B.shape[0]
        k = min(REFLECTORS, m - 1)
        # With P = [v_1, w_1, v_2, ...] and S = [w_1, v_1, w_2, ...], B - P S' is left to reduce.
        P = np.zeros((m, 2 * k), order="F")
        for j in range(k):
            x, before = B[:, j].copy(), P[:, : 2 * j]
            if j:
                x = dgemv(-1.0, before, swapped(before[j]), 1.0, x, overwrite_y=1)
            d[first + j] = x[j]
            x[: j + 1] = 0.0
            e[first + j] = -np.copysign(np.sqrt(x @ x), x[j + 1])
            x[j + 1] -= e[first + j]
            x /= np.sqrt(x @ x / 2) or 1.0
            w = dsymv(1.0, B, x, lower=1)
            if j:
                w = dgemv(-1.0, before, swapped(dgemv(1.0, before, x, trans=1)), 1.0, w)
            w -= (w @ x / 2) * x
            w[: j + 1] = 0.0
            P[:, 2 * j], P[:, 2 * j + 1] = x, w
            A[first + j + 1 :, first + j] = x[j + 1 :]
        B, P, first = B[k:, k:].copy(order="F"), P[k:], first + k
        S = P.reshape(m - k, k, 2)[:, :, ::-1].reshape(m - k, 2 * k)
        for s in range(0, m - k, PANEL):
            B[s:, s : s + PANEL] -= dgemm(1.0, P[s:], S[s : s + PANEL], trans_b=1)
    d[-1] = B[0, 0]
    # By bisection (stebz): LAPACK's faster way was seen to fail, and to miss some of a cluster.
    w, Z = linalg.eigh_tridiagonal(d, e, select="i", select_range=(n - r, n - 1))
    for first in reversed(range(0, n - 1, REFLECTORS)):
        k = min(REFLECTORS, n - 1 - first)
        V = np.tril(A[first:, first : first + k], -1)
        # (I - v_1 v_1') ... (I - v_k v_k') = I - V T V'
        inverse = np.triu(V.T @ V, 1) + np.eye(k)
        Z[first:] -= V @ linalg.solve_triangular(inverse, V.T @ Z[first:])
    return w, Z


def swapped(c: np.ndarray) -> np.ndarray:
    """Each two neighbors in the other order."""
    return c.reshape(-1, 2)[:, ::-1].ravel()


def thin_svd(A: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """U, s and V' with A = U s V', of as many columns as the smaller side has."""
    small, large = sorted(A.shape)
    is_long = 10.0 * small * small * large > LONG_WORK
    return waited_for(is_long, np.linalg.svd, A, False)


def cholesky(
    A: np.ndarray, *, lower: bool = False, overwrite: bool = False, check_finite: bool = True
) -> np.ndarray:
    """The triangular factor of a positive definite matrix: as `scipy.linalg.cholesky`.

    Of a tensor, as all of `solve_positive`, by the device that it is on.
    """
    n = A.shape[0]
    if not isinstance(A, np.ndarray):
        return array_namespace(A).linalg.cholesky(A, upper=not lower)
    if n <= LONG_ROWS:
        return linalg.cholesky(A, lower=lower, overwrite_a=overwrite, check_finite=check_finite)
    A = np.asarray_chkfinite(A) if check_finite else A
    A = A if overwrite else A.copy(order="K")
    L = A if lower else A.T
    for j in range(0, n, PANEL):
        k, below = slice(j, j + PANEL), slice(j + PANEL, n)
        for i in range(j, n, STRIP):
            L[i : i + STRIP, k] -= L[i : i + STRIP, :j] @ L[k, :j].T
        L[k, k] = linalg.cholesky(L[k, k], lower=True, check_finite=False)
        L[below, k] = solve_triangular(L[k, k], L[below, k].T, lower=True, check_finite=False).T
        L[k, below] = 0.0
    return A


def solve_triangular(
    L: np.ndarray,
    B: np.ndarray,
    *,
    lower: bool = False,
    transposed: bool = False,
    overwrite: bool = False,
    check_finite: bool = True,
) -> np.ndarray:
    """X with L X = B, or L' X = B if transposed: as `scipy.linalg.solve_triangular`."""
    if not isinstance(L, np.ndarray):
        solve = array_namespace(L).linalg.solve_triangular
        return solve(L.T if transposed else L, B, upper=lower == transposed)
    options = {"lower": lower, "trans": int(transposed), "check_finite": check_finite}
    columns = max(1, int(LONG_WORK / max(1, L.shape[0]) ** 2 / 4))
    if B.ndim == 1 or B.shape[1] <= columns:
        return linalg.solve_triangular(L, B, overwrite_b=overwrite, **options)
    X = B if overwrite else np.empty(B.shape, np.result_type(L, B), order="F")
    for start in range(0, B.shape[1], columns):
        block = slice(start, start + columns)
        X[:, block] = linalg.solve_triangular(L, B[:, block], **options)
    return X


def solve_positive(A: np.ndarray, B: np.ndarray, *, overwrite: bool = False) -> np.ndarray:
    """X with A X = B for a positive definite A, which may be used up with `overwrite`."""
    L = cholesky(A, lower=True, overwrite=overwrite)
    X = solve_triangular(L, B, lower=True)
    return solve_triangular(L, X, lower=True, transposed=True, overwrite=True)


def waited_for(is_long: bool, work: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a function; a long one runs in a thread, so that Ctrl-C is raised at once.

    An interrupted thread works on until its call returns, and a program that ends before that
    waits for it, since BLAS must not be unloaded while it works: so it is not a daemon.
    """
    # Only the main thread sees signals.
    if not is_long or threading.current_thread() is not threading.main_thread():
        return work(*arguments)
    pool = ThreadPoolExecutor(1, WORKER)
    outcome = pool.submit(copy_context().run, work, *arguments)
    pool.shutdown(wait=False)
    # With a limit, for systems that do not wake it for signals.
    while not wait([outcome], 0.1).done:
        pass
    pool.shutdown()
    return outcome.result()


def still_working() -> bool:
    """Whether a call that was interrupted has not returned yet."""
    return any(thread.name.startswith(WORKER) for thread in threading.enumerate())


def self_product(A: Array) -> Array:
    """A'A, of many columns in blocks, and of a NumPy array exactly symmetric.

    NumPy hands a product of an array with itself to `syrk`, which makes one triangle. A general
    product may round the two triangles differently, so blocks of the diagonal are made like that.
    """
    m = A.shape[1]
    if not isinstance(A, np.ndarray) or m <= FEW_COLUMNS:
        return A.T @ A
    out = np.empty((m, m), A.dtype)
    for start in range(0, m, PANEL):
        block = slice(start, start + PANEL)
        np.matmul(A[:, :start].T, A[:, block], out=out[:start, block])
        out[block, :start] = out[:start, block].T
        np.matmul(A[:, block].T, A[:, block], out=out[block, block])
    return out


def times_few(A: Array, V: Array) -> Array:
    """A V for a V of a few columns, the way round in which BLAS is fastest.

    BLAS packs the large factor again for every few columns of V, and how fast it does that
    depends on the order in memory. As (V'A')' the product of a 1024 x 1024 matrix with 24 columns
    takes 0.7 of the time in double precision, and where A is the transpose of an array 0.5 in
    double and 0.8 in single precision (OpenBLAS 0.3.31, AVX-512).
    """
    if not isinstance(A, np.ndarray):
        return A @ V
    by_columns = A.strides[0] == A.itemsize < A.strides[1]
    if by_columns or (A.dtype == np.float64 and V.shape[1] >= 10):
        return (V.T @ A.T).T
    return A @ V


def peak_signs(A: Array) -> np.ndarray:
    """Signs that make the entry of largest modulus of every column positive, (r,), on the host.

    scikit-learn's rule for eigenvectors. Of scores it is the same rule, since the scores of the
    training rows are scaled eigenvectors: so it holds for every basis.
    """
    if not A.shape[0]:
        return np.ones(A.shape[1])
    if isinstance(A, np.ndarray):
        return np.where(A[np.abs(A).argmax(axis=0), np.arange(A.shape[1])] < 0, -1.0, 1.0)
    xp = array_namespace(A)
    places = xp.argmax(xp.abs(A), axis=0)
    peaks = to_numpy(xp.take_along_axis(A, places[None, :], axis=0))[0]
    return np.where(peaks < 0, -1.0, 1.0)


def lead_signs(A: Array) -> np.ndarray:
    """Signs that make the first large entry of every column positive, (r,), on the host.

    The first large one and not the largest: two columns that mirror each other have the weights w
    and -w, and rounding would decide. Few weights have the ratio 0.7.
    """
    A = to_numpy(A)
    large = np.argmax(np.abs(A) >= 0.7 * np.abs(A).max(axis=0), axis=0)
    return np.where(A[large, np.arange(A.shape[1])] < 0, -1.0, 1.0)


# Seconds after which a lock that is held for microseconds is taken to be held by nobody.
PATIENCE = 5.0


class OneThread:
    """Holds BLAS at one thread as long as anybody needs it.

    The number of threads belongs to the process, so the first holder saves it and the last one
    restores it: fits in several threads that each restored what they read would leave it wrong.
    Holders that an interrupt kept from leaving are forgotten, and the next one restores.
    """

    class Holder:
        """Needs BLAS at one thread, for as long as this object is alive."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._holders: WeakSet[OneThread.Holder] = WeakSet()
        #: Libraries that have more than one thread when nobody holds them, and how many.
        self._before: list[tuple[Any, int]] | None = None

    @contextmanager
    def __call__(self) -> Any:
        """One thread within the `with` block; nested blocks cost nothing."""
        holder = self.Holder()
        if self._lock.acquire(timeout=PATIENCE):
            self._lock.release()
        else:
            # An interrupt in just the wrong moment left it locked: work under it takes no time.
            self._lock = threading.RLock()
        try:
            with self._lock:
                self._holders.add(holder)
                if self._before is None:
                    # What threadpoolctl's `limit` does, which describes every library on the way.
                    threads = [(library, library.num_threads) for library in libraries()]
                    self._before = [(library, n) for library, n in threads if n != 1]
                    for library, _ in self._before:
                        library.set_num_threads(1)
            yield
        finally:
            with self._lock:
                self._holders.discard(holder)
                if not self._holders:
                    for library, n in self._before or ():
                        library.set_num_threads(n)
                    self._before = None


@cache
def libraries() -> list:
    """Libraries with threads of their own in this process; the search takes milliseconds."""
    # NumPy and SciPy bring a BLAS each, and only what is loaded is found.
    return ThreadpoolController().lib_controllers


one_thread = OneThread()
