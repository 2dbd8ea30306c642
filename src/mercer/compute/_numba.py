"""Loops compiled by numba: tiles of kernels that are sums over coordinates and have no GEMM form.

Numba takes half a second to import, so this module and others like it are imported where needed.
"""

from collections.abc import Callable

from numba import njit


def compiled(**options) -> Callable:
    """A decorator as `numba.njit`, which keeps the machine code on disk where it can."""

    def compile_one(function):
        try:
            return njit(nogil=True, cache=True, **options)(function)
        except RuntimeError:
            # Neither the package nor the user's cache can be written to, as in many containers:
            # every process compiles anew.
            return njit(nogil=True, **options)(function)

    return compile_one


@compiled(fastmath=True)
def l1_distances(X, Z, out):
    """out[i, j] = sum_k |x_ik - z_jk|, for X (n, d), Z (m, d)."""
    for i in range(X.shape[0]):
        for j in range(Z.shape[0]):
            total = X.dtype.type(0)
            for k in range(X.shape[1]):
                total += abs(X[i, k] - Z[j, k])
            out[i, j] = total


@compiled(fastmath=True)
def chi2_distances(X, Z, out):
    """out[i, j] = sum_k (x_ik - z_jk)^2 / (x_ik + z_jk), empty bins left out."""
    for i in range(X.shape[0]):
        for j in range(Z.shape[0]):
            total = X.dtype.type(0)
            for k in range(X.shape[1]):
                both = X[i, k] + Z[j, k]
                if both > 0:
                    difference = X[i, k] - Z[j, k]
                    total += difference * difference / both
            out[i, j] = total


@compiled(fastmath=True)
def triangle_sums(X, Z, ranges, out):
    """out[i, j] = sum_k max(0, 1 - |x_ik - z_jk| / ranges_k), with range 0 by equality."""
    one = X.dtype.type(1)
    for i in range(X.shape[0]):
        for j in range(Z.shape[0]):
            total = X.dtype.type(0)
            for k in range(X.shape[1]):
                difference = abs(X[i, k] - Z[j, k])
                if difference < ranges[k]:
                    total += one - difference / ranges[k]
                elif difference == 0:
                    total += one
            out[i, j] = total
