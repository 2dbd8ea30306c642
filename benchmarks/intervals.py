"""How wide the intervals of landmarks and random features are against their true error.

    python benchmarks/intervals.py
    python benchmarks/intervals.py --rows 20000 --data covtype fast
    python benchmarks/intervals.py --sampled

For every component: the width of its likely interval (confidence 1 - 1e-6) over the distance of its
eigenvalue from the exact one, where that is more than rounding (1e-9 of the first). The table has
the median and the largest over the components, the widest interval as a share of the first
eigenvalue, and the share of the fit's processor time that the certificate took, one thread.
``--sampled`` judges sampled rows or pairs, as fits of more rows do, in place of a product with the
kernel matrix. Exact eigenvalues come from `KernelPCA` with all points; "false" counts intervals
that miss them. "fast" and "slow" are spectra of 3 and 20 normal columns; f: float32, w: weights, u:
not centered.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from unittest import mock

import numpy as np
from _harness import print_table, write_json
from _papers import papers_data

from mercer import KernelPCA
from mercer.bases import Landmarks, RandomFeatures
from mercer.fitting.problems import ReducedProblem

RANK = 10


def digits() -> np.ndarray:
    from sklearn.datasets import load_digits

    return load_digits().data


def columns(d: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((20_000, d))


DATA = {
    "covtype": lambda: papers_data.load_covtype().data,
    "usps": lambda: papers_data.load_usps().data,
    "mnist": lambda: papers_data.load_mnist().data,
    "digits": digits,
    "fast": lambda: columns(3),
    "slow": lambda: columns(20),
}
BASES = {
    "100 landmarks": Landmarks(100),
    "500 landmarks": Landmarks(500),
    "1000 landmarks": Landmarks(1000),
    "1000 features": RandomFeatures(1000),
}
# Type, centering and weights.
WAYS = {"": ("d", True, False), "f": ("f", True, False), "u": ("d", False, False),
        "w": ("d", True, True)}  # fmt: skip


def judged(X: np.ndarray, way: str, seed: int) -> list[dict]:
    """One row of the table for each basis."""
    dtype, center, weighted = WAYS[way]
    X = np.ascontiguousarray(X, dtype=dtype)
    weights = np.random.default_rng(1).uniform(0.1, 3, len(X)) if weighted else None
    options = {"kernel": "rbf", "gamma": "median", "center": center, "n_jobs": 1}
    exact = KernelPCA(RANK, basis="points", tol=1e-9, random_state=0, **options)
    exact = exact.fit(X.astype(float), sample_weight=weights).eigenvalues_
    certify, rows = ReducedProblem.certificate, []
    spent = [0.0]

    def timed(problem, pairs):
        start = time.process_time()
        found = certify(problem, pairs)
        spent[0] += time.process_time() - start
        return found

    for name, basis in BASES.items():
        if basis.size >= len(X):
            continue
        model, spent[0] = KernelPCA(RANK, basis=basis, random_state=seed, **options), 0.0
        with mock.patch.object(ReducedProblem, "certificate", timed):
            start = time.process_time()
            model.fit(X, sample_weight=weights)
            seconds = time.process_time() - start
        stated = model.certificate_
        row = {"basis": name, "seconds": seconds, "share": spent[0] / seconds}
        if stated.likely_upper is not None:
            slack = 1e-6 * exact[0] if dtype == "f" else 1e-9 * exact[0]
            false = (stated.likely_lower > exact + slack) | (exact > stated.likely_upper + slack)
            error = np.maximum(np.abs(model.eigenvalues_ - exact), slack)
            ratio = (stated.likely_upper - stated.likely_lower) / error
            row |= {"median": float(np.median(ratio)), "largest": float(ratio.max()),
                    "width": stated.likely_widest, "error": float(error.max() / exact[0]),
                    "false": int(false.sum())}  # fmt: skip
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", nargs="+", type=int, default=[2000, 5000])
    parser.add_argument("--data", nargs="+", default=list(DATA), choices=list(DATA))
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS))
    parser.add_argument("--sampled", action="store_true", help="without a product with all rows")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args()
    limits = {"LEAST_WORK": 0.0, "WORK_SHARE": np.inf} if options.sampled else {}
    found = []
    with mock.patch.dict("mercer.fitting.remainder.__dict__", limits):
        for name in options.data:
            everything = DATA[name]()
            order = np.random.default_rng(0).permutation(len(everything))
            for n in sorted({min(n, len(everything)) for n in options.rows}):
                for way in options.ways:
                    case = f"{name} {n:,} {way}"
                    for row in judged(everything[order[:n]], way, options.seed):
                        found.append({"case": case} | row)
                        print(found[-1], flush=True)
    table = [
        [f"{row['case']} {row['basis']}"]
        + [f"{row[key]:.3g}" if key in row else "" for key in ("median", "largest", "width",
                                                              "error", "false", "share")]
        for row in found
    ]  # fmt: skip
    header = ["rows and basis", "median", "largest", "width", "error", "false", "time"]
    print_table("Width of likely intervals over the true error", header, table)
    write_json(options.out / f"intervals{'-sampled' if options.sampled else ''}.json", found)


if __name__ == "__main__":
    main()
