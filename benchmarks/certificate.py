"""What the certificate costs, and how many components it proves.

Usage: python benchmarks/certificate.py [rows ...] [--device cuda]

Fits with and without what it needs, in turns in one process; the least time of each counts. Without
it no squares are summed and no products are noted.
"""

import argparse
import time
import warnings
from contextlib import ExitStack
from unittest.mock import patch

import numpy as np

from mercer import KernelPCA
from mercer.bases import PointGram
from mercer.solvers import block_krylov


def drawn_rows(n, device, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 10)) * np.linspace(3, 0.3, 10)
    if device is None:
        return X
    import torch

    return torch.as_tensor(X, dtype=torch.float32, device=device)


def seconds(X, certified):
    model = KernelPCA(16, kernel="rbf", gamma=0.02, tol=1e-6, random_state=0, eigen_solver="krylov")
    with ExitStack() as stack:
        if not certified:
            stack.enter_context(patch.object(PointGram, "summed", property(nothing, nothing)))
            stack.enter_context(patch.object(block_krylov.Watch, "see", nothing))
        start = time.perf_counter()
        model.fit(X)
        return time.perf_counter() - start, model.certificate_


def nothing(*args, **options):
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", type=int, default=[10_000])
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--device", default=None)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for n in options.rows:
        X = drawn_rows(n, options.device)
        times = {True: [], False: []}
        for turn in range(options.rounds + 1):
            for certified in times:
                spent, certificate = seconds(X, certified)
                if turn:
                    times[certified].append(spent)
                if certified:
                    proven = certificate.n_proven
        with_it, without = (min(times[key]) for key in (True, False))
        print(
            f"{n:,} rows: {with_it:.3f} s, without {without:.3f} s, "
            f"{100 * (with_it / without - 1):.1f} % more; {proven} of 16 proven"
        )


if __name__ == "__main__":
    main()
