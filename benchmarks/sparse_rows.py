"""Sparse rows against ARPACK on the same products, and scikit-learn's PCA.

    python benchmarks/sparse_rows.py
    python benchmarks/sparse_rows.py --rows 50000 --columns 100000 --entries 10000000

Rows such as texts or cells have: columns of decaying frequency and twenty groups of rows. One core.
The first peer multiplies centered rows, X (X'v), by SciPy's `eigsh` to 1e-12 and has no
certificate. Times are of the processor. The memory is what the process grows by at its peak, in a
process for each contender.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from _harness import machine, print_table, write_json
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh


def drawn_rows(n: int, d: int, entries: int) -> sparse.csr_matrix:
    """Logarithms of counts in groups of rows that prefer columns of their own."""
    rng = np.random.default_rng(0)
    rate = 1 / np.arange(1, d + 1) ** 0.8
    rows, columns = rng.integers(0, n, entries), rng.choice(d, entries, p=rate / rate.sum())
    group = rng.integers(0, 20, n)
    moved = rng.random(entries) < 0.3
    columns[moved] = (columns[moved] + group[rows[moved]] * (d // 25)) % d
    X = sparse.csr_matrix((np.ones(entries), (rows, columns)), shape=(n, d))
    X.sum_duplicates()
    X.data = np.log1p(X.data)
    return X


def arpack(X, kernel, r):
    """Eigenvalues by single products with centered rows."""
    if kernel == "cosine":
        X = sparse.diags(1 / np.sqrt(np.maximum(X.multiply(X).sum(axis=1).A1, 1e-300))) @ X

    def product(v):
        v = X @ (X.T @ (v - v.mean()))
        return v - v.mean()

    A = LinearOperator((X.shape[0],) * 2, product, dtype=float)
    return eigsh(A, r, tol=1e-12, return_eigenvectors=True)[0][::-1]


def scikit_learn(X, kernel, r):
    """PCA, which is the linear kernel's."""
    from sklearn.decomposition import PCA

    model = PCA(r, svd_solver="arpack").fit(X)
    return model.explained_variance_ * (X.shape[0] - 1)


def mercer(X, kernel, r):
    """KernelPCA with its certificate."""
    from mercer import KernelPCA

    return KernelPCA(r, kernel=kernel, n_jobs=1).fit(X).eigenvalues_


def timed(contender, sizes, kernel, r, queue):
    """The best of three fits after a small one, and the growth of the peak."""
    X = drawn_rows(*sizes)
    contender(X[:200], kernel, 2)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = []
    for _ in range(3):
        start = time.process_time()
        values = contender(X, kernel, r)
        seconds.append(time.process_time() - start)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    queue.put((min(seconds), grown / 1024, np.asarray(values)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--columns", type=int, default=30_000)
    parser.add_argument("--entries", type=int, default=3_000_000)
    parser.add_argument("--components", type=int, default=16)
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    args = parser.parse_args()
    sizes, rows, results = (args.rows, args.columns, args.entries), [], []
    for kernel in ("linear", "cosine"):
        reference = None
        for contender in (arpack, scikit_learn, mercer):
            if kernel == "cosine" and contender is scikit_learn:
                continue
            queue = multiprocessing.get_context("spawn").Queue()
            job = (contender, sizes, kernel, args.components, queue)
            process = multiprocessing.get_context("spawn").Process(target=timed, args=job)
            process.start()
            seconds, grown, values = queue.get()
            process.join()
            reference = values if reference is None else reference
            off = float(np.abs(values / reference - 1).max())
            name = contender.__name__.replace("_", "-")
            rows.append([kernel, name, f"{seconds:.2f}", f"{grown:.0f}", f"{off:.0e}"])
            result = {"kernel": kernel, "by": name, "seconds": seconds, "mb": grown, "off": off}
            results.append(result)
    title = (
        f"{args.rows:,} x {args.columns:,}, {args.entries:,} entries, {args.components} components"
    )
    print_table(title, ["kernel", "by", "seconds", "MB", "off by"], rows)
    if args.json:
        write_json(args.json, {"machine": machine(), "sizes": sizes, "results": results})


if __name__ == "__main__":
    main()
