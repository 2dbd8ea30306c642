"""Loops compiled by numba, also where no folder can be written to."""

from collections.abc import Callable


def compiled(**options) -> Callable:
    """A decorator that compiles a function, and keeps the machine code on disk where it can.

    Parameters
    ----------
    **options
        Of `numba.njit`.
    """
    from numba import njit  # takes half a second to import

    def compile_one(function):
        try:
            return njit(nogil=True, cache=True, **options)(function)
        except RuntimeError:
            # Neither the package nor the user's cache can be written to, as in many containers:
            # every process compiles anew.
            return njit(nogil=True, **options)(function)

    return compile_one
