"""Tanimoto's kernel of fingerprints against blocks in NumPy: the same values, and time.

    OMP_NUM_THREADS=1 python benchmarks/fingerprints.py [--rows 20000] [--bits 2048]

Seconds are of processor time, one thread: all entries of the matrix, block by block, then a whole
exact fit of kernel PCA and one by landmarks.
"""

import argparse
import time

import numpy as np

from mercer import KernelPCA
from mercer.kernels import Tanimoto

SIDE = 2000


def fingerprints(n, d):
    """Drawn molecules of 50 families: most bits of the family, and some of their own."""
    rng = np.random.default_rng(0)
    families = rng.random((50, d)) < 0.05
    kept = families[rng.integers(0, 50, n)] & (rng.random((n, d), np.float32) < 0.7)
    return kept | (rng.random((n, d), np.float32) < 0.005)


def by_blocks(rows, tile):
    """Seconds of all tiles above the diagonal, and the sum of their entries."""
    start, total, parts = time.process_time(), 0.0, range(0, len(rows), SIDE)
    for i in parts:
        for j in parts:
            if i <= j:
                total += float(tile(rows[i : i + SIDE], rows[j : j + SIDE]).sum())
    return time.process_time() - start, total


def in_numpy(X, Z):
    """A block by BLAS in single precision."""
    X, Z = X.astype(np.float32), Z.astype(np.float32)
    common = X @ Z.T
    return common / (X.sum(axis=1)[:, None] + Z.sum(axis=1)[None] - common)


def main():
    """Print the comparison."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--bits", type=int, default=2048)
    args = parser.parse_args()
    bits = fingerprints(args.rows, args.bits)
    packed, kernel = np.packbits(bits, axis=1), Tanimoto(packed=True)
    kernel(packed[:9])  # compiles
    theirs, expected = by_blocks(bits, in_numpy)
    ours, found = by_blocks(packed, lambda X, Z: kernel(X, Z, dtype=np.float32))
    print(f"{args.rows} x {args.bits} bits; sums differ by {abs(found / expected - 1):.0e}")
    print(f"  NumPy by blocks       {theirs:7.2f} s")
    print(f"  Tanimoto(packed=True) {ours:7.2f} s")
    for basis in ("points", "landmarks"):
        start = time.process_time()
        KernelPCA(10, kernel=kernel, basis=basis, tol=1e-6, n_jobs=1, random_state=0).fit(packed)
        print(f"  fit, basis={basis!r:12} {time.process_time() - start:6.2f} s")


if __name__ == "__main__":
    main()
