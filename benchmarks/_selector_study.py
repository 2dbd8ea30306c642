"""The study behind ``selectors.py``: every selector on eleven data sets.

Protocol. A uniform subset of m rows is the pool of every selector; the kernel is Gaussian with
the mean distance in the pool as its width. Projection error is tr(K - K_XD K_DD^+ K_DX) / tr K,
quoted as a ratio to the smallest error of any rank-d approximation; held-out error is the same on
other rows; the leading components are those of centered kernel PCA on the pool. BLAS should run on
one thread (OMP_NUM_THREADS=1): selections are short, and threads that meet a busy core cost more
than they bring.

Cells are written as they are measured: a study that was stopped goes on where it was, in the same
folder. Needs MERCER_DATA for the published sets; those that are missing are left out with a word.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from _papers import papers_data
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
    "usps": lambda rng: papers_data.load_usps().data,
    "cloud": lambda rng: papers_data.load_cloud().data,
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
    X = papers_data.load_covtype(scaling=scaling, dtype=np.float32).data
    return X[rng.permutation(len(X))[:20000]].astype(np.float64)


def solar_flare():
    """Indicators as they are, the seven values and three counts of flares standardized."""
    bunch = papers_data.load_solar_flare(scaling="raw")
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

    def coordinates(self, X, Z):
        """Rows of X in an orthonormal basis of the span of Z, (n, rank)."""
        values, V = eigh(self.kernel(Z, Z))
        keep = values > len(Z) * np.finfo(float).eps * values[-1]
        return self.kernel(X, Z) @ (V[:, keep] / np.sqrt(values[keep]))

    def leading(self, Z, r):
        """Variance and coordinates of the top r components within the span of Z."""
        Y = self.coordinates(self.X, Z)
        Y = Y - Y.mean(axis=0)
        # Only the leading directions are wanted, and the covariance gives those to all digits.
        values, V = eigh(Y.T @ Y)
        return values[-r:].sum() / len(Y), Y @ V[:, -r:] / np.sqrt(values[-r:])

    def errors(self, Z):
        """Projection error, that of held-out rows, lost leading variance, sine of the angles."""
        Y, rest = (self.coordinates(X, Z) for X in (self.X, self.rest))
        Q = self.leading(Z, LEADING)[1]
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


class Log:
    """Records in a file of JSON lines, a cell at a time, so that a stopped study goes on."""

    def __init__(self, path, plan):
        self.path = path
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        # What follows the last newline is a line that was never finished.
        lines = [json.loads(line) for line in text.split("\n")[:-1]]
        if lines and lines[0] != plan:
            raise SystemExit(f"{path} holds a study of another plan: choose another folder.")
        self.records = [record for cell in lines[1:] for record in cell]
        self.done = {cell_of(record) for record in self.records}
        path.write_text("".join(json.dumps(line) + "\n" for line in lines or [plan]))

    def write(self, cell):
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(cell) + "\n")
        self.records += cell
        self.done.add(cell_of(cell[0]))


def cell_of(record):
    return tuple(record[key] for key in ("data", "subset", "selector", "size"))


def study(plan, names, log, subsets):
    """One record for each data set, subset, selector, size and seed; cells in the log are kept."""
    names = list(names)
    for subset in range(subsets):
        for name in list(names):
            rng = np.random.default_rng([subset, 17])
            cells = [(name, subset, label, size) for label in SELECTORS for size in plan["sizes"]]
            if log.done.issuperset(cells):
                continue
            try:
                X = DATA[name](rng)
            except (FileNotFoundError, OSError) as missing:
                print(f"{name} left out: {missing}")
                names.remove(name)
                continue
            pool = Pool(np.asarray(X, dtype=np.float64), plan["m"], plan["held_out"], rng)
            compare(pool, name, subset, plan, log)
            print(f"{name}, subset {subset}: done", flush=True)
    return log.records


def finished(records, plan):
    """The records of pools on which every selector has been run at every size."""
    cells = {cell_of(r) for r in records}
    found: dict = {}
    for data, subset, _, _ in cells:
        found[data, subset] = found.get((data, subset), 0) + 1
    whole = len(SELECTORS) * len(plan["sizes"])
    for name in DATA:
        pools = sum(data == name and count == whole for (data, _), count in found.items())
        print(f"{name}: {pools} pools")
    return [r for r in records if found[r["data"], r["subset"]] == whole]


def compare(pool, name, subset, plan, log):
    """Every selector at every size on one pool."""
    for label, (selector, random) in SELECTORS.items():
        for size in plan["sizes"]:
            key = {"data": name, "subset": subset, "selector": label, "size": size}
            if cell_of(key) in log.done:
                continue
            runs = [measure(selector, pool, size, seed)
                    for seed in range(plan["seeds"] if random else 1)]  # fmt: skip
            log.write([key | {"seed": seed} | run for seed, run in enumerate(runs)])
            if runs[0]["seconds"] > PATIENCE:
                break


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


# Lines of the figures: name in the legend, shade and dashes, so that they read in grey.
LINES = {
    "Uniform": ("uniform", "0.55", "-", ""),
    "Novelty": ("Ouimet & Bengio", "tab:brown", ":", "v"),
    "SparseGreedy subset": ("Smola, gain on the subset", "tab:olive", "-.", "s"),
    "SparseBayes": ("Tipping", "tab:pink", "--", "D"),
    "ComponentLasso": ("independent lasso", "tab:purple", ":", "x"),
    "GroupLasso": ("joint lasso", "tab:red", "-", "o"),
    "RPCholesky": ("RPCholesky", "tab:cyan", "-.", ""),
    "FullGreedy": ("full greedy", "tab:blue", "-", "^"),
    "SubspaceGreedy": ("subspace greedy", "black", "-", "P"),
    "KMeans": ("k-means centroids", "tab:green", "--", "*"),
}
TICKS = [step * 10.0**power for power in range(-7, 3) for step in (1, 2, 5)]
TITLES = {
    "snr0.1": "Synthetic Gaussian, SNR 0.1",
    "snr1": "Synthetic Gaussian, SNR 1",
    "snr10": "Synthetic Gaussian, SNR 10",
    "cloud": "Cloud",
    "covtype": "Forest cover type",
    "solar_flare": "Solar flare",
    "clusters": "Unbalanced clusters",
    "digits": "Digits",
    "usps": "USPS",
    "covtype_raw": "Forest cover type, raw",
    "covtype_z54": "Forest cover type, all z-scored",
}


def figures(records, folder):
    """Error against dictionary size as the slides have it, and over the best for all data."""
    import matplotlib

    matplotlib.use("Agg")

    present = [name for name in DATA if any(r["data"] == name for r in records)]
    slides = [name for name in SLIDES if name in present]
    if slides:
        draw(records, slides, "projection", folder / "selectors-error-by-size.png")
    draw(records, present, "ratio", folder / "selectors-ratio-by-size.png")
    dictionaries(folder / "landmarks-over-data.png")


def draw(records, names, field, path):
    """A panel for each data set, a line for each selector."""
    import matplotlib.pyplot as plt

    means, best = cells(records, field), cells(records, "best")
    columns = 3 if len(names) <= 6 else 4
    rows = -(-len(names) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(3.5 * columns, 2.9 * rows + 0.6),
                                squeeze=False, layout="constrained")  # fmt: skip
    for axis, name in zip(axes.flat, names, strict=False):
        for label, (text, color, dashes, marker) in LINES.items():
            sizes = sorted(d for who, data, d in means if (who, data) == (label, name))
            values = [means[label, name, d] for d in sizes]
            axis.plot(sizes, values, color=color, ls=dashes, marker=marker, ms=4, lw=1.2,
                      label=text)  # fmt: skip
        sizes = sorted(d for who, data, d in best if (who, data) == ("Uniform", name))
        lowest = [1.0 if field == "ratio" else best["Uniform", name, d] for d in sizes]
        axis.plot(sizes, lowest, color="black", ls=(0, (1, 1)), lw=1, label="best rank d")
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xticks(sizes, [str(d) for d in sizes])
        ticks = [t for t in TICKS if axis.get_ylim()[0] <= t <= axis.get_ylim()[1]]
        ticks = ticks if len(ticks) < 7 else [t for t in ticks if np.log10(t) % 1 == 0]
        axis.set_yticks(ticks, [f"{t:g}" for t in ticks])
        axis.minorticks_off()
        axis.set_title(TITLES.get(name, name), fontsize="medium")
    for axis in list(axes.flat)[len(names) :]:
        axis.set_axis_off()
    for axis in axes[-1]:
        axis.set_xlabel("dictionary size d")
    label = "projection error" + (" / best of rank d" if field == "ratio" else "")
    for axis in axes[:, 0]:
        axis.set_ylabel(label)
    handles, texts = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, texts, loc="outside lower center", ncols=6, fontsize="small")
    save_small(figure, path)
    plt.close(figure)


def dictionaries(path):
    """Three dictionaries of one size over the same two-dimensional clusters."""
    import matplotlib.pyplot as plt

    from mercer import plot

    X = datasets.make_unbalanced_clusters(2000, 3, n_clusters=12, n_features=2).data
    kernel = RBF(gamma=1 / (2 * pdist(X).mean() ** 2))
    chosen = {"Uniform": selectors.Uniform(), "FullGreedy": selectors.FullGreedy(),
              "GreedyCholesky": selectors.GreedyCholesky()}  # fmt: skip
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), sharey=True, layout="constrained")
    K = kernel(X)
    for axis, (name, selector) in zip(axes, chosen.items(), strict=True):
        Z = X[selector.select(kernel, X, 20, np.random.default_rng(0))]
        plot.landmarks(Z, X, ax=axis)
        inside = np.linalg.lstsq(kernel(Z), kernel(Z, X), rcond=1e-12)[0]
        error = 1 - np.sum(inside * kernel(Z, X)) / np.trace(K)
        axis.set_title(f"{name}: error {error:.1e}", fontsize="medium")
        axis.set_ylabel("column 2" if axis is axes[0] else "")
    save_small(figure, path)
    plt.close(figure)


def save_small(figure, path):
    """A PNG of few colors, a third of the size."""
    import io

    from PIL import Image

    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=80)
    Image.open(buffer).convert("RGB").quantize(128).save(path, optimize=True)


def speed(quick):
    """The times that are promised, in seconds of the processor: others may keep it busy."""
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
    print("\nProcessor seconds")
    for title, (selector, rows, size) in jobs.items():
        start = time.process_time()
        selector.select(kernel, rows, size, np.random.default_rng(1))
        seconds[title] = time.process_time() - start
        print(f"{title:50s}{seconds[title]:8.2f}", flush=True)
    return seconds


def sparse_components(quick):
    """Share of the variance of the exact top components that sparse ones keep."""
    print("\nSparse kernel PCA, top 5: variance kept, rows used, what as many landmarks keep")
    found: dict = {}
    for name in ("digits", "usps", "cloud"):
        try:
            X = np.asarray(DATA[name](np.random.default_rng(0)), dtype=np.float64)
        except (FileNotFoundError, OSError):
            continue
        pool = Pool(X, 300 if quick else 1000, 10, np.random.default_rng(0))
        n = len(pool.X)
        exact = eigh(pool.centered, eigvals_only=True, subset_by_index=[n - 5, n - 1]).sum() / n
        for method, sparsity in (("lasso", 10), ("lasso", 50), ("bayes", 10), ("bayes", 50)):
            start = time.perf_counter()
            sparse = selectors.sparse_components(
                pool.kernel, pool.X, 5, sparsity, np.random.default_rng(0), method=method
            )
            seconds = time.perf_counter() - start
            kept = float(sparse.variance.sum() / exact)
            rows = len(sparse.atoms)
            atoms = selectors.FullGreedy().select(pool.kernel, pool.X, rows, None)
            landmarks = float(pool.leading(pool.X[atoms], 5)[0] / exact)
            found[f"{name} {method} {sparsity}"] = [kept, rows, landmarks, seconds]
            print(f"{name:12s}{method:8s}{sparsity:4d}{kept:8.3f}{rows:6d}{landmarks:8.3f}"
                  f"{seconds:8.2f} s", flush=True)  # fmt: skip
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder for JSON and figures")
    parser.add_argument("--quick", action="store_true", help="small pools, two sizes, one subset")
    parser.add_argument("--data", nargs="+", choices=list(DATA), default=list(DATA))
    parser.add_argument("--subsets", type=int, help="pools of each data set, fewer than planned")
    parser.add_argument("--report", action="store_true", help="of the pools that are finished")
    parser.add_argument("--no-speed", action="store_true", help="skip the timed cases")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    plan = QUICK if options.quick else FULL
    log = Log(options.out / "records.jsonl", plan)
    if options.report:
        records = finished(log.records, plan)
    else:
        records = study(plan, options.data, log, options.subsets or plan["subsets"])
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
        summary["sparse"] = sparse_components(options.quick)
    (options.out / "summary.json").write_text(json.dumps(summary, indent=1))
    figures(records, options.out)
