"""Symmetric eigenproblems by LAPACK that Ctrl-C does not wait for.

SciPy's wrappers keep the interpreter to themselves while LAPACK works, which is minutes for many
rows: no signal is seen meanwhile. Here the very routines of SciPy are called by their address, in a
thread of their own, which leaves the interpreter free, and the main thread waits where an
interrupt reaches it. It is then raised at once. The thread is left alone until its call returns; a
program that ends before waits for it, since BLAS must not be unloaded while it works. The numbers
are those of `scipy.linalg.eigh`.
"""

import ctypes
import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg import eigh as plain_eigh

# Rows up to which LAPACK takes about a second.
LONG_ROWS = 2000
# Seconds after which a waiting thread looks for signals, where the system does not wake it.
GLANCE = 0.1
# Ends of calls whose results nobody waits for any more.
LEFT: list[threading.Event] = []
# Arguments of the routines, all of them pointers.
ARGUMENTS = {"dsyevr": 21, "dsyevd": 11}


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
    """Whether a problem of n rows is solved in a thread of its own."""
    if n <= LONG_ROWS or threading.current_thread() is not threading.main_thread():
        return False  # only the main thread sees signals
    return all(map(is_known, ARGUMENTS))


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
