"""Loops compiled by numba: tiles of kernels that have no GEMM form, and steps of other methods.

Numba takes half a second to import, so this module and others like it are imported where needed.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic


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


@compiled()
def lasso_sweeps(H, W, left, lengths, inverse, mu, tol, sweeps):
    """Row by row minimization over W (k, p) until no row moves its products by `tol`.

    H (k, k) holds the atoms' products with each other, left (k, p) those with what W leaves.
    """
    k, p = W.shape
    new = np.empty(p)
    for _ in range(sweeps):
        largest = 0.0
        for i in range(k):
            moved = 0.0
            minimize_row(W[i], left[i], lengths[i], inverse, mu, new)
            for j in range(p):
                change = new[j] - W[i, j]
                moved += (change * lengths[i] * inverse[j]) ** 2
                W[i, j] = new[j]
                if change != 0.0:
                    for a in range(k):
                        left[a, j] -= H[a, i] * change * inverse[j]
            largest = max(largest, np.sqrt(moved))
        if largest <= tol:
            break


@compiled()
def minimize_row(w, left, length, inverse, mu, new):
    """argmin over a row: 1/2 sum d_j w_j^2 - g.w + mu |w| with d = length inverse."""
    p = w.shape[0]
    norm = 0.0
    for j in range(p):
        new[j] = left[j] + length * inverse[j] * w[j]
        norm += new[j] * new[j]
    norm = np.sqrt(norm)
    if norm <= mu or length <= 0:
        new[:] = 0.0
        return
    # |w| = t solves sum (g_j / (d_j t + mu))^2 = 1, between what all d_j at their ends would give.
    low = (norm - mu) / (length * inverse.max())
    high = (norm - mu) / (length * inverse.min())
    for _ in range(100):
        t = 0.5 * (low + high)
        total = 0.0
        for j in range(p):
            total += (new[j] / (length * inverse[j] * t + mu)) ** 2
        if total > 1.0:
            low = t
        else:
            high = t
        if high - low <= 1e-14 * high:
            break
    t = 0.5 * (low + high)
    for j in range(p):
        new[j] *= t / (length * inverse[j] * t + mu)


# Entries are finite or inf, never NaN: then the least of a group is found without branches.
@compiled(fastmath={"nnan", "nsz"})
def keep_smallest(T, start, values, index):
    """Merge the entries of T, of columns from `start`, into the smallest of each row, rising."""
    k = values.shape[1]
    for i in range(T.shape[0]):
        worst, row = values[i, k - 1], T[i]
        for first in range(0, T.shape[1], 16):
            last = min(first + 16, T.shape[1])
            least = row[first]
            for j in range(first, last):
                least = min(least, row[j])
            if least >= worst:
                continue
            for j in range(first, last):
                if row[j] < worst:
                    place = k - 1
                    while place > 0 and values[i, place - 1] > row[j]:
                        values[i, place] = values[i, place - 1]
                        index[i, place] = index[i, place - 1]
                        place -= 1
                    values[i, place], index[i, place] = row[j], start + j
                    worst = values[i, k - 1]


@intrinsic
def bit_count(context: Any, word: Any = None) -> Any:
    """How many bits of a word are set, by the instruction of the processor."""

    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@compiled()
def pack_sparse(data, indices, indptr, words):
    """Set the bits of words (n, w) where CSR rows have ones; False at another number."""
    for i in range(words.shape[0]):
        for p in range(indptr[i], indptr[i + 1]):
            if data[p] == 1:
                k = indices[p]
                words[i, k // 64] |= np.uint64(1) << np.uint64(k % 64)
            elif data[p] != 0:
                return False
    return True


@compiled()
def bit_ratios(X, x_counts, Z, z_counts, out):
    """out[i, j] = bits in common / bits in any; 1 where neither row has any."""
    for i in range(X.shape[0]):
        for j in range(Z.shape[0]):
            common = np.uint64(0)
            for w in range(X.shape[1]):
                common += bit_count(X[i, w] & Z[j, w])
            union = x_counts[i] + z_counts[j] - np.int64(common)
            out[i, j] = common / union if union > 0 else 1.0


@compiled(fastmath=True)
def min_max_ratios(X, Z, out):
    """out[i, j] = sum_k min(x_ik, z_jk) / sum_k max(x_ik, z_jk); 1 where all are zero."""
    for i in range(X.shape[0]):
        for j in range(Z.shape[0]):
            least, most = X.dtype.type(0), X.dtype.type(0)
            for k in range(X.shape[1]):
                least += min(X[i, k], Z[j, k])
                most += max(X[i, k], Z[j, k])
            out[i, j] = least / most if most > 0 else 1.0


@compiled()
def sparse_ratios(data, indices, indptr, z_data, z_indices, z_indptr, scratch, out):
    """As `min_max_ratios`, of CSR rows; scratch (d,) holds zeros."""
    for i in range(out.shape[0]):
        total = scratch.dtype.type(0)
        for p in range(indptr[i], indptr[i + 1]):
            scratch[indices[p]] = data[p]
            total += data[p]
        for j in range(out.shape[1]):
            least, most = scratch.dtype.type(0), total
            for p in range(z_indptr[j], z_indptr[j + 1]):
                x = scratch[z_indices[p]]
                least += min(x, z_data[p])
                most += max(z_data[p] - x, scratch.dtype.type(0))
            out[i, j] = least / most if most > 0 else 1.0
        for p in range(indptr[i], indptr[i + 1]):
            scratch[indices[p]] = 0
