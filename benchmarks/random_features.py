"""Random features against landmarks at equal size: error of the Gram matrix and of components.

    python benchmarks/random_features.py --out benchmarks/results

On a few thousand rows, where the exact answer is known: the relative error |K - K~| / |K| in
Frobenius norm; the share of the variance of the exact top ten components that the approximate
ones miss, the sine of the angles between them, and the largest relative error of their
eigenvalues. Gaussian kernel, width the mean distance. Both give m numbers a row, so equal size
is equal memory and nearly equal time for new rows.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from _harness import print_table, write_json
from _papers import papers_data
from scipy.linalg import eigh
from scipy.spatial.distance import pdist

from mercer.bases import Landmarks, RandomFeatures
from mercer.compute import LocalEngine
from mercer.kernels import RBF
from mercer.selectors import TwoStage, Uniform

LEADING = 10
DATA = {
    "usps": lambda: papers_data.load_usps().data,
    "cloud": lambda: papers_data.load_cloud().data,
    "covtype": lambda: papers_data.load_covtype(dtype=np.float32).data,
}
BASES = {
    "features plain": lambda size: RandomFeatures(size, "plain"),
    "features orthogonal": lambda size: RandomFeatures(size, "orthogonal"),
    "features qmc": lambda size: RandomFeatures(size, "qmc"),
    "landmarks uniform": lambda size: Landmarks(size, Uniform()),
    "landmarks two stage": lambda size: Landmarks(size, TwoStage()),
}


class Truth:
    """Some rows, their Gram matrix and its leading centered components."""

    def __init__(self, X, rows):
        order = np.random.default_rng(0).permutation(len(X))[:rows]
        self.X = np.ascontiguousarray(X[order], dtype=np.float64)
        self.kernel = RBF(gamma=float(0.5 / pdist(self.X[:1500]).mean() ** 2))
        self.K = self.kernel(self.X)
        self.norm = np.linalg.norm(self.K)
        means = self.K.mean(axis=0)
        self.centered = self.K - means - means[:, None] + means.mean()
        n = len(self.X)
        self.values, self.U = eigh(self.centered, subset_by_index=[n - LEADING, n - 1])

    def errors(self, Y):
        """Errors of the approximation K~ = Y Y', Y of shape (n, m)."""
        difference = Y @ Y.T
        difference -= self.K
        Y = Y - Y.mean(axis=0)
        values, V = eigh(Y.T @ Y, subset_by_index=[Y.shape[1] - LEADING, Y.shape[1] - 1])
        Q = Y @ V / np.sqrt(values)
        held = np.einsum("ij,ij->", Q, self.centered @ Q)
        outside = 1 - np.sum((self.U.T @ Q) ** 2) / LEADING
        return {
            "gram": np.linalg.norm(difference) / self.norm,
            "lost_variance": 1 - held / self.values.sum(),
            "sine": np.sqrt(max(outside, 0.0)),
            "eigenvalues": np.max(np.abs(values - self.values) / self.values),
        }


def coordinates(recipe, truth, seed):
    """Y with K~ = Y Y', and the seconds that choosing the basis took."""
    engine, rng = LocalEngine(10**9), np.random.default_rng(seed)
    start = time.perf_counter()
    basis = recipe.build(truth.kernel, truth.X, engine, rng)
    seconds = time.perf_counter() - start
    return basis.block_products(truth.X, basis.whitener(np.float64))(
        slice(0, len(truth.X))
    ), seconds


def compare(name, options):
    truth = Truth(DATA[name](), options.rows)
    records = []
    for size in options.sizes:
        for label, recipe in BASES.items():
            for seed in range(options.seeds):
                Y, seconds = coordinates(recipe(size), truth, seed)
                key = {"data": name, "rows": len(truth.X), "size": size, "basis": label}
                records.append(key | {"seed": seed, "seconds": seconds} | truth.errors(Y))
    return records


def show(records):
    """Means over seeds, a row for each basis."""
    fields = ("gram", "lost_variance", "sine", "eigenvalues")
    cells: dict = {}
    for r in records:
        cells.setdefault((r["data"], r["size"], r["basis"]), []).append([r[f] for f in fields])
    rows = [
        [f"{name} {size} {basis}", *(f"{v:.2e}" for v in np.mean(values, axis=0))]
        for (name, size, basis), values in cells.items()
    ]
    header = ["data, size, basis", "|K - K~| / |K|", "variance lost", "sine", "eigenvalues"]
    print_table("Means over seeds", header, rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--data", nargs="+", choices=list(DATA), default=list(DATA))
    parser.add_argument("--sizes", nargs="+", type=int, default=[200, 1000])
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    records: list[dict] = []
    for name in options.data:
        try:
            records += compare(name, options)
        except FileNotFoundError as missing:
            print(f"{name} left out: {missing}")
    show(records)
    write_json(options.out / "random_features.json", {"rows": options.rows, "records": records})


if __name__ == "__main__":
    main()
