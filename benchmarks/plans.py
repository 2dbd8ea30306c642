"""Plans against what happens: predicted and measured seconds and bytes of fits.

    python benchmarks/plans.py
    python benchmarks/plans.py --what bases --only landmarks
    python benchmarks/plans.py --what sparse
    python benchmarks/plans.py --what drawn --count 20 --seed 1

Standard normal rows with columns of decaying size; `mercer.plan` measures the machine, then the
fit is timed (processor time on one core, the best of three, or one that takes long). Memory is the
peak of what NumPy allocates during the fit beyond the data, by tracemalloc. A plan is good within
a factor of two. `--what` names the fits: the default ones of a fixed list, those of a small basis
(landmarks, features, columns; from arrays and files), those of sparse rows in memory and from
disk, or small bases of drawn shapes. What `mercer.plan` lists has the default number of landmarks
and features, of files that fit as arrays; where another was asked for, and for files, the
prediction is that of `plan_`, by stored speeds.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import tracemalloc
from pathlib import Path

import numpy as np
from _harness import machine, print_table, write_json
from scipy.sparse import save_npz
from small import NARROW, hold_on_one_core
from sparse_rows import drawn_rows

# Kernel, rows, columns, components, and the tolerance.
CONFIGURATIONS = [
    ("rbf", 500, 10, 8, 0),
    ("rbf", 1000, 50, 20, 0),
    ("rbf", 2000, 100, 200, 0),
    ("narrow", 3000, 10, 50, 0),
    ("linear", 3000, 200, 10, 0),
    ("poly", 2000, 20, 10, 0),
    ("rbf", 5000, 20, 16, 0),
    ("rbf", 10_000, 54, 16, 0),
    ("rbf", 10_000, 54, 16, 1e-6),
    ("rbf", 6_000, 300, 16, 1e-6),
    ("rbf", 20_000, 10, 16, 1e-6),
]


# Basis, rows, columns, components, landmarks or features (None for the default), and the source.
BASES = [
    ("landmarks", 600, 10, 5, None, "array"),
    ("landmarks", 2000, 20, 10, None, "array"),
    ("landmarks", 2000, 20, 10, 500, "array"),
    ("landmarks", 20_000, 5, 10, None, "array"),
    ("landmarks", 20_000, 100, 30, None, "array"),
    ("landmarks", 20_000, 20, 10, 1000, "array"),
    ("landmarks", 200_000, 20, 10, None, "array"),
    ("landmarks", 200_000, 3, 5, 100, "npy"),
    ("landmarks", 200_000, 20, 10, None, "npy"),
    ("landmarks", 1_000_000, 3, 5, 100, "parquet"),
    ("features", 600, 10, 5, 100, "array"),
    ("features", 2000, 64, 10, None, "array"),
    ("features", 20_000, 20, 10, 200, "array"),
    ("features", 20_000, 20, 10, 1000, "array"),
    ("features", 200_000, 20, 10, None, "array"),
    ("features", 200_000, 5, 5, 100, "npy"),
    ("features", 200_000, 20, 10, None, "npy"),
    ("columns", 2000, 50, 10, None, "array"),
    ("columns", 20_000, 300, 10, None, "array"),
    ("columns", 500_000, 20, 5, None, "array"),
    ("columns", 500_000, 20, 5, None, "npy"),
]

# Kernel, rows, columns, entries, components, source, and memory over the bytes of the entries.
SPARSE = [
    (kernel, n, d, entries, 8, source, memory)
    for n, d, entries in [(4000, 8000, 400_000), (8000, 20_000, 1_500_000)]
    for kernel in ("linear", "cosine")
    for source, memory in [("array", None), ("npz", 8.0), ("npz", 1.6)]
]


def rows(n: int, d: int) -> np.ndarray:
    rng = np.random.default_rng(n + d)
    return rng.standard_normal((n, d)) / np.sqrt(1 + np.arange(d) / 4)


def drawn(count: int, seed: int) -> list[tuple]:
    """Small bases of drawn shapes."""
    rng, found = np.random.default_rng([3, seed]), []
    for _ in range(count):
        basis = str(rng.choice(["landmarks", "features", "columns"], p=[0.45, 0.4, 0.15]))
        n, d = int(10 ** rng.uniform(2.7, 5.3)), int(10 ** rng.uniform(0.3, 2.3))
        r, size = int(rng.integers(2, 30)), None
        if basis == "columns":
            r = min(r, d)
        elif rng.random() < 0.6:
            size = int(max(r, 10 ** rng.uniform(1.5, 3.0)))
        source = str(rng.choice(["array", "npy", "parquet"], p=[0.6, 0.3, 0.1]))
        found.append((basis, n, d, r, min(size, n) if size else None, source))
    return found


def measure_basis(basis: str, n: int, d: int, r: int, size: int | None, source: str) -> dict:
    """A fit in a small basis, from an array or a file."""
    from mercer import KernelPCA, plan
    from mercer.bases import Landmarks, RandomFeatures
    from mercer.files import open_sink

    X, kernel = rows(n, d), "linear" if basis == "columns" else "rbf"
    recipe = {"landmarks": Landmarks, "features": RandomFeatures}[basis](size) if size else basis
    planned = plan(X, r, kernel=kernel, n_jobs=1).estimate(f'basis="{basis}"')
    model = KernelPCA(r, kernel=kernel, basis=recipe, random_state=0, n_jobs=1, copy_X=False)
    with tempfile.TemporaryDirectory() as folder:
        data = X
        if source != "array":
            data = Path(folder) / f"rows.{source}"
            with open_sink(data, d) as sink:
                for start in range(0, n, 50_000):
                    sink.write(X[start : start + 50_000])
        seconds, peak = timed(lambda: model.fit(data))
    listed = not size and source == "array"
    known = planned if listed and planned is not None else model.plan_.chosen
    return {
        "case": f"{basis} {n:,} x {d}, {r}, {size or 'default'}, {source}",
        "planned": basis,
        "taken": model.plan_.method,
        "predicted_seconds": known.seconds,
        "seconds": seconds,
        "predicted_bytes": known.bytes,
        "bytes": peak,
    }


def measure_sparse(kernel, n, d, entries, r, source, memory) -> dict:
    """All sparse rows by products, in memory, or from disk with a copy of them or without."""
    from mercer import KernelPCA, plan

    X = drawn_rows(n, d, entries)
    budget = {} if memory is None else {"memory": int(memory * 12 * X.nnz + 8 * n * 75)}
    with tempfile.TemporaryDirectory() as folder:
        data = X
        if source == "npz":
            data = Path(folder) / "rows.npz"
            save_npz(data, X, compressed=False)
        planned = plan(data, r, kernel=kernel, n_jobs=1, **budget)
        model = KernelPCA(r, kernel=kernel, random_state=0, n_jobs=1, copy_X=False, **budget)
        seconds, peak = timed(lambda: model.fit(data))
    return {
        "case": f"{kernel} {n:,} x {d:,}, {X.nnz:,} entries, {r}, {source} {memory or ''}",
        "planned": planned.method,
        "taken": model.plan_.method,
        "predicted_seconds": planned.chosen.seconds,
        "seconds": seconds,
        "predicted_bytes": planned.chosen.bytes,
        "bytes": peak,
    }


def timed(fit) -> tuple[float, int]:
    """The least processor time of several fits, and the peak of what they allocate."""
    seconds: list[float] = []
    while len(seconds) < 3 and sum(seconds) < 5:
        start = time.process_time()
        fit()
        seconds.append(time.process_time() - start)
    tracemalloc.start()
    fit()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return min(seconds), peak


def measure(kernel: str, n: int, d: int, r: int, tol: float) -> dict:
    """A default fit."""
    from mercer import KernelPCA, plan
    from mercer.kernels import KERNELS

    X = rows(n, d)
    narrow = kernel == "narrow"
    gamma = NARROW / d if narrow else None
    made = KERNELS["rbf"](gamma) if narrow else KERNELS[kernel]()
    planned = plan(X, r, kernel=made, tol=tol)
    model = KernelPCA(r, kernel=made, tol=tol, random_state=0, copy_X=False)
    seconds, peak = timed(lambda: model.fit(X))
    return {
        "case": f"{kernel} {n:,} x {d}, {r}" + (f", tol={tol:g}" if tol else ""),
        "planned": planned.method,
        "taken": model.plan_.method,
        "predicted_seconds": planned.chosen.seconds,
        "seconds": seconds,
        "predicted_bytes": planned.chosen.bytes,
        "bytes": peak,
    }


def good(result: dict, what: str) -> bool:
    return 0.5 <= result[f"predicted_{what}"] / result[what] <= 2.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--what", choices=["default", "bases", "sparse", "drawn"], default="default"
    )
    parser.add_argument("--count", type=int, default=20, help="drawn fits")
    parser.add_argument("--seed", type=int, default=0, help="of drawn fits")
    parser.add_argument("--only", help="configurations whose name holds this")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args()
    hold_on_one_core()
    results, kinds = [], {"default": measure, "sparse": measure_sparse}
    of_each = kinds.get(options.what, measure_basis)
    fits: dict[str, list[tuple]] = {
        "default": CONFIGURATIONS,
        "bases": BASES,
        "sparse": SPARSE,
    }
    for configuration in fits.get(options.what) or drawn(options.count, options.seed):
        if not options.only or options.only in str(configuration):
            results.append(of_each(*configuration))
    table = [
        [
            r["case"],
            r["taken"],
            f"{r['predicted_seconds']:.3g} / {r['seconds']:.3g} s",
            f"{r['predicted_seconds'] / r['seconds']:.2f}",
            f"{r['predicted_bytes'] / 1e6:.3g} / {r['bytes'] / 1e6:.3g} MB",
            f"{r['predicted_bytes'] / r['bytes']:.2f}",
        ]
        for r in results
    ]
    counts = [sum(good(r, what) for r in results) for what in ("seconds", "bytes")]
    title = f"within a factor 2: {counts[0]} times and {counts[1]} memories of {len(results)}"
    print_table(title, ["fit", "method", "predicted / measured", "", "memory", ""], table)
    write_json(options.out / "plans.json", {"machine": machine(), "results": results})


if __name__ == "__main__":
    main()
