"""Symmetric eigenproblems and linear systems by LAPACK that Ctrl-C does not wait for.

SciPy's wrappers keep the interpreter to themselves while LAPACK works, which is minutes for many
rows: no signal is seen meanwhile. Here the very routines of SciPy are called by their address, in a
thread of their own, which leaves the interpreter free, and the main thread waits where an
interrupt reaches it. It is then raised at once. The thread is left alone until its call returns; a
program that ends before waits for it, since BLAS must not be unloaded while it works. The numbers
are those of SciPy. What NumPy decomposes leaves the interpreter free by itself, and only needs the
thread (`patiently`).
"""

import ctypes
import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg import cholesky as plain_cholesky
from scipy.linalg import eigh as plain_eigh
from scipy.linalg import solve as plain_solve
from scipy.linalg import solve_triangular as plain_solve_triangular

# Rows up to which LAPACK takes about a second for eigenvectors.
LONG_ROWS = 2000
# Operations of other calls that take about a second on one core.
LONG_WORK = 1e10
# Operations for each n^3 of an eigenproblem or a singular value decomposition, about.
EIGENVECTORS = 10
# Seconds after which a waiting thread looks for signals, where the system does not wake it.
GLANCE = 0.1
# Ends of calls whose results nobody waits for any more.
LEFT: list[threading.Event] = []
# Arguments of the routines, all of them pointers.
ARGUMENTS = {"dsyevr": 21, "dsyevd": 11, "dpotrf": 5, "dpotrs": 8, "dtrtrs": 10}


def eigh(
    A: np.ndarray,
    *,
    few: tuple[int, int] | None = None,
    driver: str = "evr",
    overwrite: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Eigenpairs of a symmetric matrix, smallest first: as `scipy.linalg.eigh`.

    Parameters
    ----------
    A : array of shape (n, n)
        The lower triangle is read.
    few : (int, int) or None
        First and last number of those wanted, with ``driver="evr"``; None for all.
    driver : "evr" or "evd"
    overwrite : bool
        Whether A may be used up; by columns it then needs no copy.
    """
    if A.dtype != np.float64 or not is_long(A.shape[0]):
        return plain_eigh(A, overwrite_a=overwrite, subset_by_index=few, driver=driver)
    A = np.asarray_chkfinite(A)
    by_columns = A.flags.f_contiguous and overwrite
    B = A if by_columns else np.array(A, order="F")
    solve = by_evd if driver == "evd" else by_evr
    return waited_for(lambda: solve(B, few))


def is_long(n: int) -> bool:
    """Whether an eigenproblem of n rows is solved in a thread of its own."""
    return n > LONG_ROWS and sees_signals() and all(map(is_known, ARGUMENTS))


def takes_long(work: float) -> bool:
    """Whether so many operations are done in a thread of their own."""
    return work > LONG_WORK and sees_signals() and all(map(is_known, ARGUMENTS))


def sees_signals() -> bool:
    """Only the main thread does."""
    return threading.current_thread() is threading.main_thread()


def patiently(work: float, function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a function of NumPy's that takes about `work` operations."""
    if work > LONG_WORK and sees_signals():
        return waited_for(lambda: function(*arguments))
    return function(*arguments)


def thin_svd(A: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """U, s and V' with A = U s V', of as many columns as the smaller side has."""
    small, large = sorted(A.shape)
    work = float(EIGENVECTORS) * small * small * large
    return patiently(work, lambda: np.linalg.svd(A, full_matrices=False))


def cholesky(
    A: np.ndarray, *, lower: bool = False, overwrite: bool = False, check_finite: bool = True
) -> np.ndarray:
    """The triangular factor of a positive definite matrix: as `scipy.linalg.cholesky`."""
    if A.dtype != np.float64 or not takes_long(A.shape[0] ** 3 / 3):
        return plain_cholesky(A, lower=lower, overwrite_a=overwrite, check_finite=check_finite)
    A = np.asarray_chkfinite(A) if check_finite else A
    if not overwrite or not (A.flags.f_contiguous or A.flags.c_contiguous):
        A = np.array(A, order="F")
    waited_for(lambda: factorize(A, lower))
    # The other triangle in place, as SciPy leaves it.
    for j in range(A.shape[0]):
        A[slice(0, j) if lower else slice(j + 1, None), j] = 0.0
    return A


def solve_positive(A: np.ndarray, B: np.ndarray, *, overwrite: bool = False) -> np.ndarray:
    """X with A X = B for a positive definite A: as `scipy.linalg.solve` with ``assume_a="pos"``.

    With `overwrite` A may be used up.
    """
    n, k = A.shape[0], 1 if B.ndim == 1 else B.shape[1]
    if A.dtype != np.float64 or not takes_long(n**3 / 3 + 2.0 * n * n * k):
        return plain_solve(A, B, assume_a="pos", overwrite_a=overwrite)
    A, X = np.asarray_chkfinite(A), np.array(np.asarray_chkfinite(B), float, order="F")
    if not overwrite or not (A.flags.f_contiguous or A.flags.c_contiguous):
        A = np.array(A, order="F")

    def work():
        letter = factorize(A, lower=False)
        call_once("dpotrs", letter, n, k, A, n, X, n)

    waited_for(work)
    return X


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
    n, k = L.shape[0], 1 if B.ndim == 1 else B.shape[1]
    if L.dtype != np.float64 or B.dtype != np.float64 or not takes_long(float(n) * n * k):
        options = {"lower": lower, "trans": int(transposed), "overwrite_b": overwrite}
        return plain_solve_triangular(L, B, check_finite=check_finite, **options)
    if check_finite:
        L, B = np.asarray_chkfinite(L), np.asarray_chkfinite(B)
    if not (L.flags.f_contiguous or L.flags.c_contiguous):
        L = np.array(L, order="F")
    X = B if overwrite and B.flags.f_contiguous else np.array(B, order="F")
    # By rows it is its transpose by columns.
    flipped = not L.flags.f_contiguous
    triangle = b"L" if lower != flipped else b"U"
    turned = b"T" if transposed != flipped else b"N"
    waited_for(lambda: call_once("dtrtrs", triangle, turned, b"N", n, k, L, n, X, n))
    return X


def factorize(A: np.ndarray, lower: bool) -> bytes:
    """Put the Cholesky factor into a triangle of A; the triangle that LAPACK sees.

    By rows the lower triangle is the upper one of the same matrix by columns.
    """
    letter = b"L" if lower == A.flags.f_contiguous else b"U"
    call_once("dpotrf", letter, A.shape[0], A, A.shape[0])
    return letter


def waited_for(work: Callable[[], Any]) -> Any:
    """The result of a function that runs in a thread of its own; an interrupt does not wait."""
    found: list[Any] = []
    failed: list[BaseException] = []
    context, done = copy_context(), threading.Event()

    def call():
        try:
            found.append(context.run(work))
        except BaseException as error:
            failed.append(error)
        finally:
            done.set()

    threading.Thread(target=call, name="mercer-lapack").start()
    try:
        # Not by `join`: interrupted there, a thread counts as ended (CPython 3.11 and 3.12).
        while not done.wait(GLANCE):
            pass
    except BaseException:
        LEFT[:] = [done, *(other for other in LEFT if not other.is_set())]
        raise
    if failed:
        raise failed[0]
    return found[0]


def still_working() -> bool:
    """Whether a call that was interrupted has not returned yet."""
    return not all(done.is_set() for done in LEFT)


def by_evd(A: np.ndarray, few: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """All eigenpairs by divide and conquer; A, by columns, becomes the vectors."""
    n, w = A.shape[0], np.empty(A.shape[0])
    call("dsyevd", lambda space: (b"V", b"L", n, A, n, w, *space))
    return w, A


def by_evr(A: np.ndarray, few: tuple[int, int] | None) -> tuple[np.ndarray, np.ndarray]:
    """Some or all eigenpairs by relatively robust representations; A, by columns, is used up."""
    n = A.shape[0]
    first, last = (0, n - 1) if few is None else few
    kind, r = b"A" if few is None else b"I", last - first + 1
    w, Z, count = np.empty(n), np.empty((n, r), order="F"), ctypes.c_int()
    support = np.empty(2 * max(1, r), np.intc)
    call(
        "dsyevr",
        lambda space: (
            *(b"V", kind, b"L", n, A, n, 0.0, 0.0, first + 1, last + 1, 0.0),
            *(count, w, Z, n, support, *space),
        ),
    )
    return w[: count.value], Z[:, : count.value]


def call(name: str, arguments: Callable[[tuple], tuple]) -> None:
    """Call a routine with the work space that it asks for; LinAlgError where it fails."""
    asked, whole, info = np.empty(1), np.empty(1, np.intc), ctypes.c_int()
    run = routine(name)
    run(*pointers((*arguments((asked, -1, whole, -1)), info)))
    size, whole_size = int(asked[0]), int(whole[0])
    space = (np.empty(size), size, np.empty(whole_size, np.intc), whole_size)
    run(*pointers((*arguments(space), info)))
    if info.value:
        raise LinAlgError(f"LAPACK's {name} did not find all eigenpairs (info {info.value}).")


def call_once(name: str, *arguments: Any) -> None:
    """Call a routine that needs no work space; LinAlgError where the matrix does not allow it."""
    info = ctypes.c_int()
    routine(name)(*pointers((*arguments, info)))
    if info.value:
        raise LinAlgError(
            f"LAPACK's {name} stopped at row {info.value}: the matrix is singular or not positive "
            "definite."
        )


def pointers(values: tuple) -> list[Any]:
    """What Fortran takes: the addresses of numbers, letters and arrays."""
    found: list[Any] = []
    for value in values:
        if isinstance(value, np.ndarray):
            found.append(ctypes.c_void_p(value.ctypes.data))
        elif isinstance(value, bytes):
            found.append(ctypes.c_char_p(value))
        elif isinstance(value, ctypes.c_int):
            found.append(ctypes.byref(value))
        else:
            kind = ctypes.c_double if isinstance(value, float) else ctypes.c_int
            found.append(ctypes.byref(kind(value)))
    return found


@cache
def is_known(name: str) -> bool:
    """Whether SciPy's routine takes what we give it: whole numbers of the usual size."""
    text = signature(name)
    return text.count(b",") + 1 == ARGUMENTS[name] and b" int *" in text


@cache
def routine(name: str) -> Any:
    """A routine of SciPy's LAPACK, which leaves the interpreter to others while it works."""
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    # No argument types: each pointer says itself what it is.
    return ctypes.CFUNCTYPE(None)(pointer(capsule_of(name), signature(name)))


def signature(name: str) -> bytes:
    """The types of a routine's arguments, as SciPy states them."""
    named = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)
    return named(("PyCapsule_GetName", ctypes.pythonapi))(capsule_of(name)) or b""


def capsule_of(name: str) -> Any:
    """Where SciPy says that a routine is."""
    from scipy.linalg import cython_lapack

    return cython_lapack.__pyx_capi__[name]
