"""The constants of the cost model, measured: what to write into `mercer.fitting.costs`.

    python benchmarks/calibrate.py

Processor time on one core. Speeds are those of `Speeds.typical`; the seconds of a row in a pass are
those of `features` and `landmarks` there; counts are what iterative solvers took on the cases of
`small.py`, to be compared with what `mercer.fitting.costs` assumes.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from _harness import print_table
from scipy.linalg import eigh
from scipy.linalg.blas import dsymv
from small import CASES, hold_on_one_core


def seconds(work: Callable, least: int = 3, total: float = 0.3) -> float:
    """The least processor time of several runs."""
    work()
    times: list[float] = []
    while len(times) < least or sum(times) < total:
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def evaluation(d: int, dtype) -> float:
    """Seconds of one value of a Gaussian kernel."""
    from mercer.kernels import RBF

    X = np.random.default_rng(0).standard_normal((1024, d))
    pairs = RBF(1.0 / d).pairs(X, dtype=dtype, store=10**9)
    out, whole = np.empty((1024, 1024), dtype), slice(0, 1024)
    return seconds(lambda: pairs.tile(whole, whole, out)) / 1024**2


def speeds() -> list[list[str]]:
    """Name, what is assumed, what was measured."""
    from mercer.fitting.costs import FULL_COST, Speeds, some_pairs

    rng, rows = np.random.default_rng(0), []
    single = {d: evaluation(d, np.float32) for d in (4, 54, 784)}
    for d, found in single.items():
        rows.append([f"evaluate, {d} columns", f"{Speeds.typical(d).evaluate:.2g}", f"{found:.2g}"])
    ratio = evaluation(54, np.float64) / single[54]
    rows.append(["double against single", f"{FULL_COST}", f"{ratio:.2g}"])
    T, V = rng.random((1024, 1024), np.float32), rng.random((1024, 32), np.float32)
    found = seconds(lambda: T @ V) / (1024**2 * 32)
    rows.append(["multiply", f"{Speeds.typical(1).multiply:.2g}", f"{found:.2g}"])
    for n in (300, 1000, 2000):
        A, assumed = rng.random((n, n)), f"{Speeds.typical(1).decompose:.2g}"
        for r in (10, n // 8, n // 4):
            found = seconds(lambda A=A, n=n, r=r: eigh(A, subset_by_index=(n - r, n - 1)))
            rows.append([f"decompose, {r} of {n}", assumed, f"{found / some_pairs(n, r):.2g}"])
        found = seconds(lambda A=A: eigh(A, driver="evd"))
        rows.append([f"decompose, all of {n}", assumed, f"{found / (2.3 * n**3 + 750 * n**2):.2g}"])
        v = rng.random(n)
        found = seconds(lambda A=A, v=v: dsymv(1.0, A.T, v)) / n**2
        rows.append([f"read, {n} (half in cache)", f"{Speeds.typical(1).read:.2g}", f"{found:.2g}"])
    return rows


def counts() -> list[list[str]]:
    """Products that Lanczos and block Krylov took, and what is assumed."""
    from mercer import KernelPCA
    from mercer.fitting.costs import LANCZOS_EACH, LANCZOS_PRODUCTS

    rows = []
    for case in CASES:
        if case.r is not None and 4 * (case.r + 16) < case.n:
            taken = [
                KernelPCA(**case.parameters, eigen_solver=solver, random_state=0)
                .fit(case.data)
                .certificate_.n_passes
                for solver in ("arpack", "krylov")
            ]
            assumed = LANCZOS_PRODUCTS + LANCZOS_EACH * case.r
            rows.append([case.name, f"{assumed:.0f}", *map(str, taken)])
    return rows


def passes() -> list[list[str]]:
    """Seconds of one row in the pass of a small basis: what is assumed, and what was measured."""
    from mercer.bases import PointBasis, RandomFeatures, Whitening
    from mercer.compute import LocalEngine
    from mercer.fitting.costs import Speeds, Workload, features, landmarks
    from mercer.fitting.moments import MomentsOf
    from mercer.kernels import RBF

    rows, n, engine = [], 2**14, LocalEngine(10**9, 1)
    for d in (3, 20, 100):
        X = np.random.default_rng(d).standard_normal((n, d))
        kernel = RBF(1.0 / d)
        for m in (50, 200, 500):
            drawn = RandomFeatures(m).build(kernel, X, engine, np.random.default_rng(0))
            for name, cost, basis, W in (
                ("landmarks", landmarks, PointBasis(kernel, X[:m].copy(), engine), np.eye(m)),
                ("features", features, drawn, None),
            ):
                # What more rows would cost is what the pass costs.
                few, many = (Workload(10**k, d, 10, 10**9) for k in (8, 9))
                speeds = Speeds.typical(d)
                assumed = (cost(many, speeds, m).seconds - cost(few, speeds, m).seconds) / 9e8
                found = (
                    seconds(lambda b=basis, W=W, X=X: MomentsOf(b, Whitening(b.size, W))(X, 0)) / n
                )
                rows.append([f"{name}, {d} columns, {m}", f"{assumed:.2g}", f"{found:.2g}"])
    return rows


def main() -> None:
    hold_on_one_core()
    warnings.simplefilter("ignore")
    print_table("Speeds, seconds a unit", ["speed", "assumed", "measured"], speeds())
    print_table("One row in a pass, seconds", ["basis", "assumed", "measured"], passes())
    print_table("Products", ["case", "Lanczos, assumed", "Lanczos", "block Krylov"], counts())


if __name__ == "__main__":
    main()
