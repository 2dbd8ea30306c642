"""Plans against what happens: predicted and measured seconds and bytes of eleven fits.

    python benchmarks/plans.py

Standard normal rows with columns of decaying size; `mercer.plan` measures the machine, then the
default fit is timed (processor time on one core, the best of three, or one that takes long).
Memory is the peak of what NumPy allocates during the fit beyond the data, by tracemalloc. A plan
is good within a factor of two.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from pathlib import Path

import numpy as np
from _harness import machine, print_table, write_json
from small import NARROW, hold_on_one_core

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


def measure(kernel: str, n: int, d: int, r: int, tol: float) -> dict:
    from mercer import KernelPCA, plan
    from mercer.kernels import KERNELS

    rng = np.random.default_rng(n + d)
    X = rng.standard_normal((n, d)) / np.sqrt(1 + np.arange(d) / 4)
    narrow = kernel == "narrow"
    gamma = NARROW / d if narrow else None
    made = KERNELS["rbf"](gamma) if narrow else KERNELS[kernel]()
    planned = plan(X, r, kernel=made, tol=tol)
    model = KernelPCA(r, kernel=made, tol=tol, random_state=0, copy_X=False)
    seconds = []
    while len(seconds) < 3 and sum(seconds) < 5:
        start = time.process_time()
        model.fit(X)
        seconds.append(time.process_time() - start)
    tracemalloc.start()
    model.fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {
        "case": f"{kernel} {n:,} x {d}, {r}" + (f", tol={tol:g}" if tol else ""),
        "planned": planned.method,
        "taken": model.plan_.method,
        "predicted_seconds": planned.chosen.seconds,
        "seconds": min(seconds),
        "predicted_bytes": planned.chosen.bytes,
        "bytes": peak,
    }


def good(result: dict, what: str) -> bool:
    return 0.5 <= result[f"predicted_{what}"] / result[what] <= 2.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="configurations whose name holds this")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args()
    hold_on_one_core()
    results = []
    for configuration in CONFIGURATIONS:
        if not options.only or options.only in str(configuration):
            results.append(measure(*configuration))
    rows = [
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
    print_table(title, ["fit", "method", "predicted / measured", "", "memory", ""], rows)
    write_json(options.out / "plans.json", {"machine": machine(), "results": results})


if __name__ == "__main__":
    main()
