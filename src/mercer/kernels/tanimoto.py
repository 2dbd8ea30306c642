"""Tanimoto's similarity of fingerprints and counts, also called Jaccard's and min-max.

    k(x, z) = sum_k min(x_k, z_k) / sum_k max(x_k, z_k)

Of bits that is x.z / (|x|^2 + |z|^2 - x.z): rows of zeros and ones are packed into words of 64,
and a value is a few instructions that count bits. On a device it is one GEMM, exact in
single precision.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..compute import Array, array_namespace, is_sparse, row_blocks
from ..compute.arrays import blocks_of
from . import base
from .coordinate import by_columns, contiguous

# Seconds of a value and of each column: packed bytes, bits that are packed here, and counts.
PACKED, BITS, COUNTS = (1.4e-9, 9e-12), (1.6e-9, 2e-12), (3e-9, 4e-11)
BYTES = base.Domain("packed (bytes from 0 to 255)", 0.0, 255.0)
# Rows prepared at once.
PACK_ROWS = 512


@dataclass(eq=False, repr=False)
class Tanimoto(base.Kernel):
    """``sum min(x, z) / sum max(x, z)`` for fingerprints and counts; two zero rows have 1.

    Rows of zeros and ones, dense or CSR, are packed into bits; of other rows that are not negative
    minima are added up.

    Parameters
    ----------
    packed : bool
        Whether the columns are bytes of eight bits each, from `numpy.packbits`.

    References
    ----------
    Ralaivola et al. (2005), Graph kernels for chemical informatics.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Tanimoto
    >>> bits = np.array([[1, 1, 0, 0], [1, 1, 1, 0], [0, 0, 0, 1]])
    >>> Tanimoto()(bits).round(3)
    array([[1.   , 0.667, 0.   ],
           [0.667, 1.   , 0.   ],
           [0.   , 0.   , 1.   ]])
    >>> bool((Tanimoto(packed=True)(np.packbits(bits, axis=1)) == Tanimoto()(bits)).all())
    True
    """

    live_tiles = 2

    packed: bool = False

    @property
    def domain(self) -> base.Domain:  # type: ignore[override]
        return BYTES if self.packed else base.NON_NEGATIVE

    def resolve(self, X: Array, rng: Any = None) -> base.Kernel:
        """A copy that knows how long values take for rows such as these."""
        resolved: Any = super().resolve(X, rng)
        sample = X[: base.SPREAD_SAMPLE]
        bits = all_bits(sample.data if is_sparse(sample) else sample)
        resolved.seconds = PACKED if self.packed else BITS if bits else COUNTS
        return resolved

    def check(self, X: Array) -> None:
        """Raise ValueError for rows outside the domain, bytes with fractions, and huge sums."""
        super().check(X)
        if base.largest_entry(X) * X.shape[1] > 1e300:
            raise ValueError("Tanimoto adds up numbers beyond float64. Scale X / X.max().")
        if not self.packed:
            return
        if is_sparse(X):
            raise ValueError(
                "Tanimoto(packed=True) needs dense rows of bytes. Leave packed out for sparse bits."
            )
        for block in blocks_of(X):
            if bool((block % 1 != 0).any()):
                raise ValueError(
                    "Tanimoto(packed=True) needs whole numbers from 0 to 255, as numpy.packbits "
                    "gives them. Leave packed out for counts and for bits in columns of their own."
                )

    def pairs(self, X: Array, Z: Array = None, dtype: Any = None, store: int = 0) -> base.Pairs:
        return TanimotoPairs(self, X, Z, dtype, store)

    def diag(self, X: Array) -> Array:
        return base.same_for_all(X, 1.0)

    def growth(self, X: Array) -> float:
        """Sums of positive numbers, and a difference of at least half of them."""
        return 6.0

    def gradient(self, X: Array, Z: Array, W: Array) -> Array:
        """1 / sum max where x < z and -k / sum max where x > z; zero at the kinks."""
        if self.packed:
            return super().gradient(X, Z, W)
        xp, K = array_namespace(X), self(X, Z)
        both = X.sum(axis=1)[:, None] + Z.sum(axis=1)[None, :]
        over = xp.where(both > 0, (1 + K) / xp.where(both > 0, both, 1.0), 0.0)

        def below(x, z):
            return xp.asarray(x < z, dtype=X.dtype)

        falling = by_columns(lambda x, z: below(z, x), K * over, X, Z, W)
        return by_columns(below, over, X, Z, W) - falling


@dataclass
class Bits:
    """Rows as words of 64 bits (n, w), and how many are set in each (n,)."""

    words: np.ndarray
    counts: np.ndarray

    def of(self, rows: Any) -> "Bits":
        return Bits(self.words[rows], self.counts[rows])


class TanimotoPairs(base.Pairs):
    """Tiles by counting bits where both blocks have bits alone, else by minima and maxima.

    Packed rows are kept while they fit `store`.
    """

    def __init__(self, kernel: Any, X: Array, Z: Array, dtype: Any, store: int):
        super().__init__(kernel, X, Z, dtype)
        d = X.shape[1]
        self.on_host = is_sparse(self.X) or array_namespace(self.X) is np
        self.width = -(-d // (8 if kernel.packed else 64))
        # Blocks of rows, once more in this precision, and their words; bits as floats on a device.
        each = d + self.width * 8 // self.itemsize + 1
        self.row_floats = 2 * (2 * each if self.on_host else each + (9 if kernel.packed else 1) * d)
        #: False once a row was found that has other numbers than 0 and 1.
        self.has_bits = True
        self._left: Bits | None = None
        self._right: Bits | None = None
        size = self.shape[1] * 8 * (self.width + 1)
        if self.on_host and size <= store:
            self._right = self._all_bits(self.Z)
            self._left = self._right if self.symmetric else None
            self.kept_bytes = size if self._right is not None else 0

    def _all_bits(self, A: Array) -> Bits | None:
        n = A.shape[0]
        kept = Bits(np.empty((n, self.width), np.uint64), np.empty(n, np.int64))
        for part in row_blocks(n, PACK_ROWS):
            bits = self._bits(A, part)
            if bits is None:
                return None
            kept.words[part], kept.counts[part] = bits.words, bits.counts
        return kept

    def _bits(self, A: Array, block: Any, kept: Bits | None = None) -> Bits | None:
        """Packed rows, or None where there are other numbers than 0 and 1."""
        if kept is not None:
            return kept.of(block)
        if not self.has_bits:
            return None
        from ..compute import _numba

        rows = A[block]
        words = np.zeros((rows.shape[0], self.width), np.uint64)
        if self.kernel.packed:
            words.view(np.uint8)[:, : rows.shape[1]] = rows
        elif is_sparse(rows):
            rows = canonical(rows)
            self.has_bits = _numba.pack_sparse(rows.data, rows.indices, rows.indptr, words)
        else:
            self.has_bits = all_bits(rows)
            words.view(np.uint8)[:, : -(-rows.shape[1] // 8)] = np.packbits(rows != 0, axis=1)
        counts = np.bitwise_count(words).sum(axis=1, dtype=np.int64)
        return Bits(words, counts) if self.has_bits else None

    def tile(self, i, j, out):
        if not self.on_host:
            return self._tile_on_device(i, j, out)
        from ..compute import _numba

        left = self._bits(self.X, i, self._left)
        right = None if left is None else self._bits(self.Z, j, self._right)
        if left is not None and right is not None:
            _numba.bit_ratios(left.words, left.counts, right.words, right.counts, out)
        elif is_sparse(self.X):
            X, Z = (canonical(A[b].astype(self.dtype)) for A, b in ((self.X, i), (self.Z, j)))
            scratch = np.zeros(X.shape[1], self.dtype)
            parts = (X.data, X.indices, X.indptr, Z.data, Z.indices, Z.indptr)
            _numba.sparse_ratios(*parts, scratch, out)
        else:
            X, Z = (base.rows_of(A, b, self.dtype) for A, b in ((self.X, i), (self.Z, j)))
            _numba.min_max_ratios(contiguous(X), contiguous(Z), out)
        return out

    def _tile_on_device(self, i, j, out):
        xp = array_namespace(out)
        X, Z = (base.rows_of(A, block, self.dtype) for A, block in ((self.X, i), (self.Z, j)))
        if self.kernel.packed:
            X, Z = unpacked(X), unpacked(Z)
        self.has_bits = self.has_bits and (self.kernel.packed or (all_bits(X) and all_bits(Z)))
        if self.has_bits:
            out[...] = X @ Z.T
        else:
            out[...] = 0
            for k in range(X.shape[1]):
                out += xp.minimum(X[:, k][:, None], Z[:, k][None, :])
        union = X.sum(axis=1)[:, None] + Z.sum(axis=1)[None, :]
        union -= out
        # Two zero rows are equal.
        nothing = union <= 0
        out[nothing], union[nothing] = 1, 1
        out /= union
        return out

    def tile_bytes(self, side):
        if not is_sparse(self.X):
            return super().tile_bytes(side)
        # Rows take memory for their nonzero entries and for their words only.
        fullest = max(int(np.diff(A.indptr).max(initial=0)) for A in (self.X, self.Z))
        rows = side * (4 * fullest * (self.itemsize + 8) + 16 * (self.width + 1))
        tiles = self.itemsize * side**2 * self.kernel.live_tiles
        return tiles + rows + self.itemsize * self.X.shape[1]


def canonical(rows):
    """CSR rows with each entry once."""
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def all_bits(A) -> bool:
    """Whether all numbers are 0 or 1."""
    return bool(((A == 0) | (A == 1)).all())


def unpacked(A):
    """Bytes (n, d) of any floating type as their bits (n, 8 d), in any order."""
    xp = array_namespace(A)
    return xp.concat([xp.floor(A * 0.5**k) % 2 for k in range(8)], axis=1)
