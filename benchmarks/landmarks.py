"""Landmarks on all of covertype against scikit-learn's Nystroem and PCA: time, error, memory.

    python benchmarks/landmarks.py
    python benchmarks/landmarks.py --quick
    python benchmarks/landmarks.py --worth
    python benchmarks/landmarks.py --moments --sizes 500 2000
    python benchmarks/landmarks.py --grid --rows 2000 8000 --sizes 100 500 1000 2000

Select, fit and scores of the top ten of 581,012 rows: `KernelPCA(basis=Landmarks(m))` against
``Nystroem(m)`` followed by ``PCA(10)``, for the same m, the same Gaussian kernel (width: the mean
distance within 1,000 rows) and the same type of input. Every run has a process and a seed of its
own, contenders take turns, the best time counts and errors are means. The error is
tr(K - K_nys) / tr K over all rows, computed for both by one function from the landmarks alone.
"others" is how many cores other programs kept busy meanwhile: times with more than about 0.1
there prove little, while processor seconds of all threads ("cpu") suffer less, best with
OMP_NUM_THREADS=1. Memory is the peak beyond the data. ``--worth`` asks something else: what
landmarks cost and save on USPS, which the exact method can still do, at three kernel widths.
``--moments`` times fits of uniform landmarks with and without the search for those that are worth
their work, processor seconds on one thread, and says what either leaves of the variance uncertain.
``--grid`` times the default for several numbers of rows and landmarks beside uniform landmarks,
the thorough `TwoStage()` and scikit-learn: processor seconds on one thread, the least of three fits
where they are short, with tr(K - K_nys) / tr K of each.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np
from _harness import Race, best, machine, measure, print_table, race_options, write_json

RANK = 10
SIZES = (200, 1000)
# Rows of the first, untimed fit: more than the landmarks.
WARM_ROWS = 3000
BLOCK = 4096
QUICK_ROWS = 60_000
# Share of scikit-learn's time and of its error, and megabytes, that are promised.
TARGETS = {200: (0.5, 0.8, 500.0), 1000: (1.0, 0.6, None)}


def mercer_landmarks(gamma: float, size: int, seed: int, folder: Path) -> Callable:
    from mercer import KernelPCA
    from mercer.bases import Landmarks

    model = KernelPCA(RANK, kernel="rbf", gamma=gamma, basis=Landmarks(size), random_state=seed)

    def fit(X):
        start = time.process_time()
        S = model.fit_transform(X)
        cpu = time.process_time() - start
        np.save(folder / "landmarks.npy", model.landmarks_)
        low, high = model.certificate_.captured_variance
        return {"cpu": cpu, "variance": _variance(S), "captured": [float(low), float(high)]}

    return fit


def sklearn_nystroem(gamma: float, size: int, seed: int, folder: Path) -> Callable:
    from sklearn.decomposition import PCA
    from sklearn.kernel_approximation import Nystroem
    from sklearn.pipeline import make_pipeline

    features = Nystroem(gamma=gamma, n_components=size, random_state=seed)
    model = make_pipeline(features, PCA(RANK, random_state=seed))

    def fit(X):
        start = time.process_time()
        S = model.fit_transform(X)
        cpu = time.process_time() - start
        np.save(folder / "landmarks.npy", features.components_)
        return {"cpu": cpu, "variance": _variance(S)}

    return fit


def _variance(S: np.ndarray) -> float:
    """Variance that the scores hold, of 1 or less in all."""
    return float(np.var(S, axis=0, dtype=float).sum())


CONTENDERS: dict[str, Callable] = {"mercer": mercer_landmarks, "sklearn": sklearn_nystroem}


def lost_share(X: np.ndarray, Z: np.ndarray, gamma: float) -> float:
    """tr(K - K_XZ K_ZZ^+ K_ZX) / tr K over all rows, in float64."""
    from scipy.linalg import eigh
    from sklearn.metrics.pairwise import rbf_kernel

    Z = Z.astype(float)
    values, V = eigh(rbf_kernel(Z, gamma=gamma))
    kept = values > len(Z) * np.finfo(float).eps * values[-1]
    scatter = np.zeros((len(Z), len(Z)))
    for start in range(0, len(X), BLOCK):
        K = rbf_kernel(X[start : start + BLOCK].astype(float), Z, gamma)
        scatter += K.T @ K
    energies = np.einsum("ij,ij->j", V, scatter @ V)
    return 1 - float(np.sum(energies[kept] / values[kept])) / len(X)


def load_case(case: str) -> np.ndarray:
    """All of covertype, or its first rows in random order: ``covtype-float32-60000``."""
    from _papers import papers_data

    _, dtype, n = case.split("-")
    X = papers_data.load_covtype(dtype=np.dtype(dtype)).data
    if int(n) >= len(X):
        return X
    rows = np.random.default_rng(0).permutation(len(X))[: int(n)]
    return np.ascontiguousarray(X[np.sort(rows)])


def mean_distance_gamma(X: np.ndarray) -> float:
    """1 / (2 s^2) with s the mean distance between 1,000 rows."""
    from scipy.spatial.distance import pdist

    rows = np.random.default_rng(1).permutation(len(X))[:1000]
    return 0.5 / float(pdist(X[rows]).mean()) ** 2


def worth() -> list[dict]:
    """Exact kernel PCA of USPS against landmarks: processor seconds, variance that is missed."""
    from _papers import papers_data

    from mercer import KernelPCA
    from mercer.bases import Landmarks
    from mercer.selectors import TwoStage

    X = papers_data.load_usps().data
    found = []
    for narrower in (1, 2, 4):
        gamma, most = narrower**2 * mean_distance_gamma(X), 0.0
        for name, basis in {
            "exact": "points",
            **{m: Landmarks(m, TwoStage()) for m in SIZES},
        }.items():
            model = KernelPCA(RANK, kernel="rbf", gamma=gamma, basis=basis, random_state=0)
            model.fit(X[:WARM_ROWS])
            start = time.process_time()
            held = _variance(model.fit_transform(X))
            seconds = time.process_time() - start
            most = most or held
            low, high = model.certificate_.captured_variance
            found.append({"narrower": narrower, "basis": name, "seconds": seconds,
                          "missed": 1 - held / most, "unsure": float(high - low)})  # fmt: skip
    rows = [[f"width / {r['narrower']}, {r['basis']}", f"{r['seconds']:.2f}",
             f"{r['missed']:.2e}", f"{r['unsure']:.2e}"] for r in found]  # fmt: skip
    header = ["USPS, 7,291 rows", "cpu seconds", "variance missed", "certificate's width"]
    print_table(f"Landmarks where the exact method is possible, top {RANK}", header, rows)
    return found


def work(job: dict) -> dict:
    """One measurement, in the process made for it."""
    X, folder = np.load(job["data"]), Path(job["data"]).parent
    name, size = job["contender"].split()
    fit = CONTENDERS[name](job["gamma"], int(size), job["seed"], folder)
    result = measure(fit, X, n_warm=WARM_ROWS)
    result["lost"] = lost_share(X, np.load(folder / "landmarks.npy"), job["gamma"])
    return result


def run_case(race: Race, case: str, sizes: list[int], seeds: int) -> dict:
    """Both contenders at every size, each seed once."""
    runs: dict[str, list[dict]] = {f"{name} {m}": [] for m in sizes for name in CONTENDERS}
    with race.data(case, mean_distance_gamma) as job:
        for seed in range(seeds):
            for contender, found in runs.items():
                found.append(race.start(job | {"seed": seed}, contender))
    results = {}
    for contender, found in runs.items():
        results[contender] = best(found)
        lost = [run["lost"] for run in found if "lost" in run]
        if lost:
            results[contender] |= {"lost": float(np.mean(lost)), "all_lost": lost}
    return {key: job[key] for key in ("case", "n", "d", "gamma")} | {"results": results}


def print_case(report: dict) -> None:
    rows = []
    for contender, r in report["results"].items():
        if "error" in r:
            rows.append([contender, r["error"].split(":")[0], *[""] * 5])
        else:
            rows.append([contender, f"{r['seconds']:.2f}", f"{r['cpu']:.2f}", f"{r['lost']:.3e}",
                         f"{r['variance']:.5f}", f"{r['peak_mb']:.0f}",
                         f"{r['others'] or 0:.2f}"])  # fmt: skip
    header = ["contender", "seconds", "cpu", "error", "variance held", "peak MB", "others"]
    print_table(f"{report['case']}, top {RANK}", header, rows)


def judge(report: dict) -> list[tuple[str, bool]]:
    """The promises at each size, each with whether it is kept."""
    verdicts: list[tuple[str, bool]] = []
    for size, (time_share, error_share, megabytes) in TARGETS.items():
        ours, theirs = (report["results"].get(f"{name} {size}", {}) for name in CONTENDERS)
        if "seconds" not in ours or "seconds" not in theirs:
            continue
        ratio = ours["seconds"] / theirs["seconds"]
        verdicts.append((f"{size}: {ratio:.2f} of the time (at most {time_share:g})",
                         ratio <= time_share))  # fmt: skip
        ratio = ours["lost"] / theirs["lost"]
        verdicts.append((f"{size}: {ratio:.2f} of the error (at most {error_share:g})",
                         ratio <= error_share))  # fmt: skip
        if megabytes:
            peak = ours["peak_mb"]
            verdicts.append((f"{size}: {peak:.0f} MB (under {megabytes:.0f})", peak < megabytes))
    return verdicts


MOMENT_ROWS = {"covtype": 50_000, "6 columns": 50_000, "2 columns": 200_000}


def moment_rows(name: str) -> np.ndarray:
    """Rows of decreasing difficulty for a Gaussian kernel of mean width."""
    rng, n = np.random.default_rng(0), MOMENT_ROWS[name]
    if name == "covtype":
        return load_case(f"covtype-float64-{n}")
    return rng.standard_normal((n, int(name.split()[0])))


def moments(sizes: list[int]) -> list[dict]:
    """Fits with and without the search for landmarks that are worth their work."""
    from mercer import KernelPCA
    from mercer.bases import Landmarks, whitening
    from mercer.selectors import Uniform

    results = []
    for name in MOMENT_ROWS:
        X = moment_rows(name)
        for m in sizes:
            basis = Landmarks(m, selector=Uniform())
            model = KernelPCA(
                RANK, kernel="rbf", gamma="mean", basis=basis, random_state=0, n_jobs=1
            )
            row: dict = {"case": f"{name}, {len(X):,} rows", "m": m}
            for way, many in {"all": np.inf, "searched": whitening.MANY_ROWS}.items():
                some = many if many == np.inf else whitening.SOME_ROWS
                with (
                    mock.patch.object(whitening, "MANY_ROWS", many),
                    mock.patch.object(whitening, "SOME_ROWS", some),
                ):
                    start = time.process_time()
                    model.fit(X)
                    row[way] = time.process_time() - start
                low, high = model.certificate_.captured_variance
                row[f"{way} uncertain"] = high - low
            row["used"] = int(model.expansion_.frame.any(axis=1).sum())
            results.append(row)
            print(row, flush=True)
    table = [
        [
            row["case"],
            str(row["m"]),
            str(row["used"]),
            f"{row['all']:.2f} s",
            f"{row['searched']:.2f} s",
            f"{row['all'] / row['searched']:.1f}",
            f"{row['all uncertain']:.3g}",
            f"{row['searched uncertain']:.3g}",
        ]
        for row in results
    ]
    heads = ["rows", "landmarks", "used", "all", "searched", "ratio", "uncertain", "searched"]
    print_table("Moments", heads, table)
    return results


# Kernel values, rows times landmarks, up to which a fit is short enough to be repeated.
SHORT = 10**7


def grid_contenders(gamma: float, m: int) -> dict[str, Callable]:
    """Fits that return their landmarks."""
    from sklearn.decomposition import PCA
    from sklearn.kernel_approximation import Nystroem

    from mercer import KernelPCA
    from mercer.bases import Landmarks
    from mercer.selectors import TwoStage, Uniform

    def theirs(X):
        features = Nystroem(gamma=gamma, n_components=m, random_state=0)
        PCA(RANK, random_state=0).fit(features.fit_transform(X))
        return features.components_

    def ours(selector):
        basis = Landmarks(m, selector)
        model = KernelPCA(RANK, kernel="rbf", gamma=gamma, basis=basis, random_state=0, n_jobs=1)
        return lambda X: model.fit(X).landmarks_

    return {
        "scikit-learn": theirs,
        "default": ours(None),
        "uniform": ours(Uniform()),
        "two stage": ours(TwoStage()),
    }


def grid(counts: list[int], sizes: list[int], thorough: bool) -> list[dict]:
    """The default for several numbers of rows and landmarks, against scikit-learn."""
    from threadpoolctl import threadpool_limits

    results = []
    for n in counts:
        X = load_case(f"covtype-float64-{n}")
        gamma = mean_distance_gamma(X)
        for m in sizes:
            row: dict = {"rows": n, "landmarks": m}
            for name, fit in grid_contenders(gamma, m).items():
                if m > n or (name == "two stage" and not thorough):
                    continue
                with threadpool_limits(1):
                    seconds, Z = least_time(fit, X, 3 if n * m <= SHORT else 1)
                row[name], row[f"{name} lost"] = seconds, lost_share(X, Z, gamma)
            results.append(row)
            print(row, flush=True)
    names = ["scikit-learn", "default", "uniform", "two stage"]
    table = [
        [
            f"{row['rows']:,}",
            f"{row['landmarks']:,}",
            *(f"{row[k]:.3f} s" if k in row else "" for k in names),
            f"{row['scikit-learn'] / row['default']:.2f}" if "default" in row else "",
            *(f"{row[k + ' lost']:.2g}" if k in row else "" for k in names),
        ]
        for row in results
    ]
    print_table(
        "Default", ["rows", "landmarks", *names, "ratio", *(f"{k}, lost" for k in names)], table
    )
    return results


def least_time(fit: Callable, X: np.ndarray, repeat: int) -> tuple[float, np.ndarray]:
    """The least processor time of some fits after a small one, and what the last returned."""
    fit(X[: max(len(X) // 10, 2200)])
    best_time = np.inf
    for _ in range(repeat):
        start = time.process_time()
        found = fit(X)
        best_time = min(best_time, time.process_time() - start)
    return best_time, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROWS:,} rows, one seed")
    parser.add_argument("--worth", action="store_true", help="USPS, exact against landmarks")
    parser.add_argument("--moments", action="store_true", help="what the search saves")
    parser.add_argument("--grid", action="store_true", help="the default by rows and landmarks")
    parser.add_argument("--rows", nargs="+", type=int, default=[2000, 8000, 20_000, 100_000])
    parser.add_argument("--thorough", action="store_true", help="TwoStage() in the grid as well")
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--types", nargs="+", default=["float64", "float32"])
    parser.add_argument("--seeds", type=int, default=3)
    options = race_options(parser, work, patience=10)
    if options.moments:
        write_json(options.out / "landmarks-moments.json", moments(options.sizes))
        return
    if options.grid:
        found = grid(options.rows, options.sizes, options.thorough)
        write_json(options.out / "landmarks-grid.json", found)
        return
    if options.worth:
        write_json(options.out / "landmarks-worth.json", worth())
        return
    n, seeds = (QUICK_ROWS, 1) if options.quick else (581_012, options.seeds)
    race = Race(__file__, load_case, lambda *_: None, repeat=1, limit=options.limit,
                patience=options.patience)  # fmt: skip
    reports: list[dict] = []
    content = {"machine": machine(), "rank": RANK, "seeds": seeds, "cases": reports}
    for dtype in options.types:
        report = run_case(race, f"covtype-{dtype}-{n}", options.sizes, seeds)
        report["targets"] = judge(report)
        reports.append(report)
        print_case(report)
        write_json(options.out / "landmarks.json", content)
    rows = [[report["case"], text, "met" if met else "MISSED"]
            for report in reports for text, met in report["targets"]]  # fmt: skip
    print_table("Targets", ["case", "measured", ""], rows)


if __name__ == "__main__":
    main()
