"""The study behind ``selectors.py``: every selector on eleven data sets.

Protocol. A uniform subset of m rows is the pool of every selector; the kernel is Gaussian with
the mean distance in the pool as its width. Projection error is tr(K - K_XD K_DD^+ K_DX) / tr K,
quoted as a ratio to the smallest error of any rank-d approximation; held-out error is the same on
other rows; the leading components are those of centered kernel PCA on the pool. BLAS should run on
one thread (OMP_NUM_THREADS=1): selections are short, and threads that meet a busy core cost more
than they bring.

Needs MERCER_DATA for the published sets; those that are missing are left out with a word.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from scipy.linalg import eigh
from scipy.spatial.distance import pdist
from sklearn.datasets import load_digits

from mercer import datasets, selectors
from mercer.kernels import RBF

FULL = {"m": 1500, "sizes": [5, 10, 20, 50, 100, 200], "subsets": 3, "seeds": 4, "held_out": 3000}
QUICK = {"m": 600, "sizes": [10, 50], "subsets": 1, "seeds": 2, "held_out": 500}
LEADING = 10
# Sizes over which a table takes its geometric mean.
SMALL, LARGE = (10, 20, 50), (100, 200)
# Seconds after which a selector is not tried at a larger size.
PATIENCE = 60

DATA = {
    "snr0.1": lambda rng: datasets.make_signal_in_noise(4500, 0.1, rng).data,
    "snr1": lambda rng: datasets.make_signal_in_noise(4500, 1.0, rng).data,
    "snr10": lambda rng: datasets.make_signal_in_noise(4500, 10.0, rng).data,
    "clusters": lambda rng: datasets.make_unbalanced_clusters(4500, rng).data,
    "digits": lambda rng: load_digits().data,
    "usps": lambda rng: datasets.load_usps().data,
    "cloud": lambda rng: datasets.load_cloud().data,
    "covtype": lambda rng: sampled_covtype("mixed", rng),
    "covtype_raw": lambda rng: sampled_covtype("raw", rng),
    "covtype_z54": lambda rng: sampled_covtype("standard", rng),
    "solar_flare": lambda rng: solar_flare(),
}
# The data sets that the slides show.
SLIDES = ("snr0.1", "snr1", "snr10", "cloud", "covtype", "solar_flare")

# Selectors by the name in the tables, and whether they draw at random.
SELECTORS = {
    "KMeans": (selectors.KMeans(), True),
    "SubspaceGreedy": (selectors.SubspaceGreedy(), False),
    "SubspaceGreedy leading": (
        selectors.SubspaceGreedy(n_targets=LEADING, weighted=True, centered=True),
        False,
    ),
    "FullGreedy": (selectors.FullGreedy(), False),
    "SparseGreedy": (selectors.SparseGreedy(), True),
    "SparseGreedy subset": (selectors.SparseGreedy(gain="subset"), True),
    "KMeans snap": (selectors.KMeans(snap=True), True),
    "GroupLasso": (selectors.GroupLasso(), False),
    "GroupLasso rkhs": (selectors.GroupLasso(norm="rkhs"), False),
    "GroupLasso raw": (selectors.GroupLasso(unit=False), False),
    "RPCholesky": (selectors.RPCholesky(), True),
    "RPCholesky block": (selectors.RPCholesky("block"), True),
    "RPCholesky plain": (selectors.RPCholesky("plain"), True),
    "SparseBayes": (selectors.SparseBayes(), False),
    "Novelty": (selectors.Novelty(), False),
    "ComponentLasso": (selectors.ComponentLasso(), False),
    "RidgeLeverage": (selectors.RidgeLeverage(), True),
    "FarthestPoint": (selectors.FarthestPoint(), True),
    "GreedyCholesky": (selectors.GreedyCholesky(), False),
    "Uniform": (selectors.Uniform(), True),
    "Uniform replace": (selectors.Uniform(replace=True), True),
    "NormWeighted": (selectors.NormWeighted(), True),
}
RIVALS = ("Uniform", "RPCholesky", "Novelty", "GreedyCholesky", "SparseBayes", "ComponentLasso",
          "SparseGreedy", "FullGreedy")  # fmt: skip


def sampled_covtype(scaling, rng):
    X = datasets.load_covtype(scaling=scaling, dtype=np.float32).data
    return X[rng.permutation(len(X))[:20000]].astype(np.float64)


def solar_flare():
    """Indicators as they are, the seven values and three counts of flares standardized."""
    bunch = datasets.load_solar_flare(scaling="raw")
    codes = bunch.data.shape[1] - 7
    values = np.hstack([bunch.data[:, codes:], bunch.target])
    deviation = values.std(axis=0)
    values = (values - values.mean(axis=0)) / np.where(deviation > 0, deviation, 1)
    return np.hstack([bunch.data[:, :codes], values])


class CountingKernel:
    """A kernel that counts the values it was asked for."""

    def __init__(self, kernel):
        self.kernel, self.values = kernel, 0

    def __call__(self, X, Z):
        self.values += X.shape[0] * Z.shape[0]
        return self.kernel(X, Z)

    def diag(self, X):
        return self.kernel.diag(X)


class Pool:
    """A subset of a data set, its exact spectrum, and the errors of a dictionary on it."""

    def __init__(self, X, m, held_out, rng):
        order = rng.permutation(len(X))
        m = min(m, 3 * len(X) // 4)
        self.X, self.rest = X[order[:m]], X[order[m : m + held_out]]
        self.kernel = RBF(gamma=1 / (2 * pdist(self.X).mean() ** 2))
        self.K = self.kernel(self.X, self.X)
        self.spectrum = eigh(self.K, eigvals_only=True)[::-1]
        H = self.K - self.K.mean(axis=0)
        self.centered = H - H.mean(axis=1)[:, None]
        values, U = eigh(self.centered, subset_by_index=[m - LEADING, m - 1])
        self.top, self.U = values.sum(), U

    def best(self, d):
        return max(self.spectrum[d:].sum(), 0) / self.spectrum.sum()

    def errors(self, Z):
        """Projection error, that of held-out rows, lost leading variance, sine of the angles."""
        G = self.kernel(Z, Z)
        values, V = eigh(G)
        keep = values > len(G) * np.finfo(float).eps * values[-1]
        W = V[:, keep] / np.sqrt(values[keep])
        Y, rest = self.kernel(self.X, Z) @ W, self.kernel(self.rest, Z) @ W
        Q = np.linalg.svd(Y - Y.mean(axis=0), full_matrices=False)[0][:, :LEADING]
        return {
            "projection": 1 - np.sum(Y**2) / len(Y),
            "held_out": 1 - np.sum(rest**2) / len(rest),
            "lost_variance": 1 - np.trace(Q.T @ self.centered @ Q) / self.top,
            "sine": np.sqrt(max(0, 1 - np.sum((self.U.T @ Q) ** 2) / LEADING)),
        }


def measure(selector, pool, size, seed):
    """Errors, seconds, kernel values and atoms of one selection."""
    counting = CountingKernel(pool.kernel)
    start = time.perf_counter()
    chosen = selector.select(counting, pool.X, size, np.random.default_rng(seed))
    seconds = time.perf_counter() - start
    Z = chosen if selector.returns_points else pool.X[chosen]
    return pool.errors(Z) | {
        "seconds": seconds,
        "kernel_values": counting.values,
        "atoms": len(Z),
        "best": pool.best(size),
    }


def study(plan, names):
    """One record for each data set, subset, selector, size and seed."""
    records = []
    for name in names:
        for subset in range(plan["subsets"]):
            rng = np.random.default_rng([subset, 17])
            try:
                X = DATA[name](rng)
            except (FileNotFoundError, OSError) as missing:
                print(f"{name} left out: {missing}")
                break
            pool = Pool(np.asarray(X, dtype=np.float64), plan["m"], plan["held_out"], rng)
            for label, (selector, random) in SELECTORS.items():
                for size in plan["sizes"]:
                    runs = [measure(selector, pool, size, seed)
                            for seed in range(plan["seeds"] if random else 1)]  # fmt: skip
                    key = {"data": name, "subset": subset, "selector": label, "size": size}
                    records += [key | {"seed": seed} | run for seed, run in enumerate(runs)]
                    if runs[0]["seconds"] > PATIENCE:
                        break
            print(f"{name}, subset {subset}: done", flush=True)
    return records


def cells(records, field):
    """Means over subsets and seeds: {(selector, data, size): value}."""
    sums: dict = {}
    for r in records:
        value = r["projection"] / r["best"] if field == "ratio" else r[field]
        sums.setdefault((r["selector"], r["data"], r["size"]), []).append(value)
    return {key: float(np.mean(values)) for key, values in sums.items()}


def table(records, field, sizes, title):
    """Geometric means over `sizes`, a row for each selector, best first."""
    means = cells(records, field)
    names = list(dict.fromkeys(r["data"] for r in records))
    rows = {}
    # Selectors that ask for no kernel values show as one.
    floor = 1.0 if field == "kernel_values" else 1e-16
    for label in SELECTORS:
        row = [[means.get((label, name, d), np.nan) for d in sizes] for name in names]
        rows[label] = np.exp(np.mean(np.log(np.maximum(row, floor)), axis=1))
    overall = {label: float(np.exp(np.mean(np.log(row)))) for label, row in rows.items()}
    print(f"\n{title}\n{'':24s}" + "".join(f"{name:>12s}" for name in [*names, "all"]))
    for label in sorted(overall, key=lambda k: (np.isnan(overall[k]), overall[k])):
        print(f"{label:24s}" + "".join(f"{v:12.3g}" for v in [*rows[label], overall[label]]))
    return {"sizes": list(sizes), "rows": {k: v.tolist() for k, v in rows.items()}, "all": overall}


def win_rates(records, field, title):
    """Share of (data set, size) cells in which the row has the smaller mean than the column."""
    means = cells(records, field)
    rates: dict = {}
    print(f"\n{title}\n{'':24s}" + "".join(f"{name:>16s}" for name in RIVALS))
    for label in SELECTORS:
        rates[label] = {}
        for rival in RIVALS:
            pairs = [(v, means[rival, name, d]) for (who, name, d), v in means.items()
                     if who == label and (rival, name, d) in means]  # fmt: skip
            rates[label][rival] = float(np.mean([a < b for a, b in pairs])) if pairs else None
        print(f"{label:24s}" + "".join(
            f"{'-' if rival == label else format(100 * rate, '.0f'):>16s}"
            for rival, rate in rates[label].items() if rate is not None))  # fmt: skip
    return rates


def figures(records, folder):
    """Error against dictionary size, a panel for each data set of the slides that is there."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    means, best = cells(records, "projection"), cells(records, "best")
    present = {r["data"] for r in records}
    for file, names in (("slides", SLIDES), ("all", tuple(DATA))):
        names = [name for name in names if name in present]
        columns = 3
        rows = -(-len(names) // columns)
        figure, axes = plt.subplots(
            rows, columns, figsize=(4.2 * columns, 3.4 * rows), squeeze=False
        )
        shown = ("Uniform", "SparseGreedy subset", "Novelty", "SparseBayes", "ComponentLasso",
                 "GroupLasso", "RPCholesky", "FullGreedy", "SubspaceGreedy", "KMeans")  # fmt: skip
        for axis, name in zip(axes.flat, names, strict=False):
            for label in shown:
                sizes = sorted(d for who, data, d in means if (who, data) == (label, name))
                axis.loglog(sizes, [means[label, name, d] for d in sizes], label=label, lw=1.2)
            sizes = sorted({d for _, data, d in best if data == name})
            axis.loglog(
                sizes, [best["Uniform", name, d] for d in sizes], "k--", lw=1, label="best rank"
            )
            axis.set(title=name, xlabel="dictionary size", ylabel="projection error")
        for axis in list(axes.flat)[len(names) :]:
            axis.set_axis_off()
        axes.flat[0].legend(fontsize=6)
        figure.tight_layout()
        figure.savefig(folder / f"error_by_size_{file}.png", dpi=150)
        plt.close(figure)


def speed(quick):
    """The times that are promised, each in this one process."""
    rng = np.random.default_rng(0)
    n, k = (20000, 200) if quick else (100000, 1000)
    X = datasets.make_signal_in_noise(n, 10.0, rng).data
    kernel = RBF(gamma=1 / (2 * pdist(X[:1500]).mean() ** 2))
    jobs = {
        f"RPCholesky accelerated, {n} rows, {k} atoms": (selectors.RPCholesky(), X, k),
        f"RPCholesky plain, {n} rows, {k} atoms": (selectors.RPCholesky("plain"), X, k),
        "FullGreedy, 2,000 rows, 200 atoms": (selectors.FullGreedy(), X[:2000], 200),
        "GroupLasso, 1,500 rows, 200 atoms": (selectors.GroupLasso(), X[:1500], 200),
        "SparseBayes, 1,000 rows, 50 atoms": (selectors.SparseBayes(), X[:1000], 50),
    }
    seconds = {}
    print("\nSeconds")
    for title, (selector, rows, size) in jobs.items():
        start = time.perf_counter()
        selector.select(kernel, rows, size, np.random.default_rng(1))
        seconds[title] = time.perf_counter() - start
        print(f"{title:50s}{seconds[title]:8.2f}", flush=True)
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder for JSON and figures")
    parser.add_argument("--quick", action="store_true", help="small pools, two sizes, one subset")
    parser.add_argument("--data", nargs="+", choices=list(DATA), default=list(DATA))
    parser.add_argument("--no-speed", action="store_true", help="skip the timed cases")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    plan = QUICK if options.quick else FULL
    records = study(plan, options.data)
    (options.out / "records.json").write_text(json.dumps({"plan": plan, "records": records}))
    small, large = ([d for d in group if d in plan["sizes"]] for group in (SMALL, LARGE))
    leading = [d for d in (50,) if d in plan["sizes"]]
    summary = {
        "projection_small": table(records, "ratio", small, f"Projection error / best, d = {small}"),
        "held_out": table(records, "held_out", small, f"Held-out error, d = {small}"),
        "lost_variance": table(records, "lost_variance", leading, "Lost leading variance, d = 50"),
        "sine": table(records, "sine", leading, "Sine of the leading angles, d = 50"),
        "seconds": table(records, "seconds", leading, "Seconds, d = 50"),
        "kernel_values": table(records, "kernel_values", leading, "Kernel values, d = 50"),
        "wins": win_rates(records, "projection", "Cells won, %, projection error"),
        "wins_leading": win_rates(records, "lost_variance", "Cells won, %, leading variance"),
    }
    if large:
        title = f"Projection error / best, d = {large}"
        summary["projection_large"] = table(records, "ratio", large, title)
    if not options.no_speed:
        summary["speed"] = speed(options.quick)
    (options.out / "summary.json").write_text(json.dumps(summary, indent=1))
    figures(records, options.out)
