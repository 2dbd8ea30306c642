"""Compiled loops of Tanimoto's kernel: bits in words of 64, counts, and sparse counts."""

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from ._numba import compiled


@intrinsic
def bit_count(context: Any, word: Any = None) -> Any:
    """How many bits of a word are set, by the instruction of the processor."""

    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@compiled()
def pack_rows(X, words):
    """Set the bits of words (n, w) where X (n, d) has ones; False at another number."""
    for i in range(X.shape[0]):
        for w in range(words.shape[1]):
            word = np.uint64(0)
            for k in range(64 * w, min(64 * w + 64, X.shape[1])):
                if X[i, k] == 1:
                    word |= np.uint64(1) << np.uint64(k - 64 * w)
                elif X[i, k] != 0:
                    return False
            words[i, w] = word
    return True


@compiled()
def pack_sparse(data, indices, indptr, words):
    """As `pack_rows`, of CSR rows with each entry once."""
    for i in range(words.shape[0]):
        for p in range(indptr[i], indptr[i + 1]):
            if data[p] == 1:
                k = indices[p]
                words[i, k // 64] |= np.uint64(1) << np.uint64(k % 64)
            elif data[p] != 0:
                return False
    return True


@compiled()
def counts(words):
    """Bits set in every row, (n,)."""
    out = np.empty(words.shape[0], np.int64)
    for i in range(words.shape[0]):
        total = np.uint64(0)
        for w in range(words.shape[1]):
            total += bit_count(words[i, w])
        out[i] = total
    return out


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
