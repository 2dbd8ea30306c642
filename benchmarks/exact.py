"""Exact kernel PCA against its peers: time, peak memory and accuracy of the top 16.

    python benchmarks/exact.py --quick
    python benchmarks/exact.py --repeat 3
    python benchmarks/exact.py --large

Gaussian kernel exp(-|x - y|^2 / (2 s^2)), s the mean distance within 1,000 rows; float64 input;
everyone gets the same number. Each fit runs in its own process, contenders take turns, and the
best of the repeats counts; "others" is how many cores other programs kept busy meanwhile, and
times with more than about 0.1 there prove little. Errors are those of the 16 eigenvalues relative
to ARPACK with tol=0 on the float64 matrix. Covertype, MNIST and USPS come from `papers_data`;
a case whose data cannot be found is left out.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from _harness import Race, machine, measure, plot_times, print_table, write_json

RANK = 16
ACCURACY = 1e-6
# What the floor assumes of a solver: a block of RANK + 16 vectors, and passes over the kernel.
FLOOR_BLOCK, FLOOR_PASSES, FLOOR_TILE, FLOOR_THREADS = RANK + 16, 5, 1024, 2
LARGE_MEMORY = "1.5GB"
REFERENCE_LIMIT = 1800.0
SPEED_TARGETS = {"covtype": 5.0, "mnist": 3.0, "usps": 3.0}
SMALL_ROWS, SMALL_DELAY = 2000, 0.020
CASES = [
    "generated-500",
    "generated-1000",
    "generated-2000",
    "usps-7291",
    "covtype-10000",
    "mnist-10000",
    "covtype-20000",
]
QUICK_CASES = CASES[:5]
LARGE_CASES = ["covtype-25000", "covtype-50000", "covtype-100000"]


def sklearn_pca(gamma: float, **params) -> Callable:
    from sklearn.decomposition import KernelPCA

    model = KernelPCA(RANK, kernel="rbf", gamma=gamma, random_state=0, **params)
    return lambda X: {"values": model.fit(X).eigenvalues_.tolist()}


def mercer_pca(gamma: float, **params) -> Callable:
    from mercer import KernelPCA

    model = KernelPCA(RANK, kernel="rbf", gamma=gamma, random_state=0, **params)

    def fit(X):
        model.fit(X)
        residuals = getattr(model.certificate_, "residuals", None)
        values = model.eigenvalues_
        residual = None if residuals is None else float(np.max(residuals) / values[0])
        return {"values": values.tolist(), "residual": residual}

    return fit


def keops_eigsh(gamma: float) -> Callable:
    """KeOps' matrix-free products, centered, under SciPy's eigsh to the accuracy asked for."""
    from pykeops.numpy import LazyTensor
    from scipy.sparse.linalg import LinearOperator, eigsh

    def fit(X):
        Y = np.ascontiguousarray(X * math.sqrt(gamma))
        K = (-((LazyTensor(Y[:, None, :]) - LazyTensor(Y[None, :, :])) ** 2).sum(-1)).exp()

        def centered(v):
            w = K @ (v - v.mean())
            return w - w.mean()

        operator = LinearOperator((len(X), len(X)), matvec=centered, dtype=X.dtype)
        values = eigsh(operator, RANK, which="LA", tol=ACCURACY, return_eigenvectors=True)[0]
        return {"values": values[::-1].tolist()}

    return fit


def mlpack_pca(gamma: float) -> Callable:
    from mlpack import kernel_pca

    bandwidth = math.sqrt(0.5 / gamma)

    def fit(X):
        out = kernel_pca(
            input_=X, kernel="gaussian", bandwidth=bandwidth, new_dimensionality=RANK, center=False
        )
        # It returns scores only: the squared length of a column is its eigenvalue.
        return {"values": (out["output"] ** 2).sum(axis=0).tolist()}

    return fit


KERNLAB = """
suppressMessages(library(kernlab)); a <- commandArgs(TRUE); n <- as.integer(a[2])
X <- matrix(readBin(a[1], "double", n * as.integer(a[3])), nrow = n, byrow = TRUE)
status <- function(key) { s <- tryCatch(readLines("/proc/self/status"), error = function(e) "")
  s <- grep(key, s, value = TRUE); if (length(s)) as.numeric(gsub("[^0-9]", "", s)) else NA }
rss <- status("VmRSS"); start <- proc.time()[["elapsed"]]
model <- kpca(X, kernel = "rbfdot", kpar = list(sigma = as.numeric(a[4])), features = %d)
cat(proc.time()[["elapsed"]] - start, (status("VmHWM") - rss) * 1.024e-3,
    status("VmHWM") * 1.024e-3, format(eig(model) * n, digits = 17))
"""


def kernlab_pca(gamma: float) -> Callable:
    """R's kernlab, which times itself: reading the data is no part of a fit."""

    def fit(X):
        with tempfile.NamedTemporaryFile() as file:
            X.tofile(file.name)
            arguments = [file.name, *map(str, X.shape), repr(gamma)]
            command = ["Rscript", "-e", KERNLAB % RANK, *arguments]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
        seconds, peak, process, *values = map(float, done.stdout.split())
        return {"seconds": seconds, "peak_mb": peak, "process_mb": process, "values": values}

    return fit


def reference(gamma: float) -> Callable:
    """The float64 matrix, centered, under ARPACK with tol=0."""
    from scipy.sparse.linalg import eigsh
    from sklearn.metrics.pairwise import rbf_kernel

    def fit(X):
        K = rbf_kernel(X - X.mean(axis=0), gamma=gamma)
        means = K.mean(axis=0)
        K -= means
        K -= means[:, None] - means.mean()
        start = np.random.default_rng(0).standard_normal(len(X))
        return {"values": eigsh(K, RANK, which="LA", tol=0, v0=start)[0][::-1].tolist()}

    return fit


def floor(gamma: float) -> Callable:
    """What no tiled float32 method can go below: half the tiles' GEMM and exp, then the passes."""
    from concurrent.futures import ThreadPoolExecutor

    from threadpoolctl import threadpool_limits

    def fit(X):
        Y = np.asarray((X - X.mean(axis=0)) * math.sqrt(gamma), dtype=np.float32)
        V = np.ones((len(X), FLOOR_BLOCK), dtype=np.float32)
        rows = [slice(i, i + FLOOR_TILE) for i in range(0, len(X), FLOOR_TILE)]
        pairs = [(a, b) for k, a in enumerate(rows) for b in rows[k:]]
        with threadpool_limits(1), ThreadPoolExecutor(FLOOR_THREADS) as pool:
            start = time.perf_counter()
            tiles = list(pool.map(lambda pair: _exp_tile(Y[pair[0]], Y[pair[1]]), pairs))
            middle = time.perf_counter()
            list(pool.map(lambda K, pair: _both_sides(K, V, *pair), tiles, pairs))
            one_pass = time.perf_counter() - middle
        return {"seconds": middle - start + FLOOR_PASSES * one_pass, "pass_seconds": one_pass}

    return fit


def _exp_tile(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    K = A @ B.T
    return np.exp(K, out=K)


def _both_sides(K: np.ndarray, V: np.ndarray, a: slice, b: slice) -> None:
    K @ V[b]
    if a != b:
        K.T @ V[a]


CONTENDERS: dict[str, Callable] = {
    "sklearn dense": partial(sklearn_pca, eigen_solver="dense"),
    "sklearn arpack": partial(sklearn_pca, eigen_solver="arpack"),
    "sklearn arpack tol=1e-6": partial(sklearn_pca, eigen_solver="arpack", tol=ACCURACY),
    "sklearn randomized": partial(sklearn_pca, eigen_solver="randomized"),
    "mercer": mercer_pca,
    "mercer tol=1e-6": partial(mercer_pca, tol=ACCURACY),
    "mercer 200MB": partial(mercer_pca, memory="200MB"),
    "mercer 200MB tol=1e-6": partial(mercer_pca, memory="200MB", tol=ACCURACY),
    "keops eigsh tol=1e-6": keops_eigsh,
    "mlpack": mlpack_pca,
    "kernlab": kernlab_pca,
}
YARDSTICKS: dict[str, Callable] = {"reference": reference, "floor": floor}
LARGE: dict[str, Callable] = {
    "mercer large": partial(mercer_pca, memory=LARGE_MEMORY, tol=ACCURACY)
}
# Full eigendecompositions: their time at n rows follows from that of fewer.
CUBIC = ("sklearn dense", "mlpack", "kernlab")


@cache
def missing(library: str) -> bool:
    """Whether a contender's library is not installed here."""
    if library == "kernlab":
        probe = ["Rscript", "-e", 'quit(status = !requireNamespace("kernlab", quietly = TRUE))']
        found = shutil.which("Rscript") and subprocess.run(probe).returncode == 0
    else:
        found = find_spec({"keops": "pykeops"}.get(library, library)) is not None
    return not found


def why_not(contender: str, n: int, done: dict[str, tuple[int, float]], limit: float) -> str | None:
    """The reason not to start a contender on n rows; `done` has its last (rows, seconds)."""
    if contender in CONTENDERS and missing(contender.split()[0]):
        return "not installed"
    rows, seconds = done.get(contender, (1, 0.0))
    expected = seconds * (n / rows) ** 3
    too_slow = contender in CUBIC and rows >= SMALL_ROWS and expected >= limit
    return f"not run, {expected:.0f} s or more" if too_slow else None


def load_case(case: str) -> np.ndarray:
    """The rows of a case: a random subset with a fixed seed, in float64."""
    from _papers import papers_data

    from mercer import datasets

    name, n = case.split("-")
    if name == "generated":
        return datasets.make_signal_in_noise(int(n), snr=1.0, rng=0).data
    X = getattr(papers_data, f"load_{name}")().data
    rows = np.random.default_rng(0).permutation(len(X))[: int(n)]
    return np.ascontiguousarray(X[np.sort(rows)])


def mean_distance_gamma(X: np.ndarray) -> float:
    """1 / (2 s^2) with s the mean distance between 1,000 rows."""
    from scipy.spatial.distance import pdist

    rows = np.random.default_rng(1).permutation(len(X))[:1000]
    return 0.5 / float(pdist(X[rows]).mean()) ** 2


def work(job: dict) -> dict:
    """One measurement, in the process made for it."""
    X = np.load(job["data"])
    contender = (CONTENDERS | YARDSTICKS | LARGE)[job["contender"]]
    return measure(contender(gamma=job["gamma"]), X)


def run_case(race: Race, case: str, options: argparse.Namespace) -> dict:
    """All contenders on a case, with the errors of their eigenvalues."""
    yardsticks = [] if options.large else ["floor"]
    with race.data(case, mean_distance_gamma) as job:
        truth = None if options.large else true_values(race, case, job, options.out)
        results = race.run(job, chosen_contenders(options) + yardsticks)
    for result in results.values():
        result["error_rel"] = relative_error(result.pop("values", None), truth)
    return {key: job[key] for key in ("case", "n", "d", "gamma")} | {"results": results}


def true_values(race: Race, case: str, job: dict, out: Path) -> list[float] | None:
    """The reference eigenvalues, from an earlier run where the data were the same."""
    path = out / f"reference-{case}.json"
    stored: dict = json.loads(path.read_text()) if path.is_file() else {"gamma": 0.0}
    if not math.isclose(stored["gamma"], job["gamma"], rel_tol=1e-12):
        result = race.start(job, "reference", limit=REFERENCE_LIMIT)
        if "error" in result:
            print(f"{case} has no reference: {result['error']}")
            return None
        stored = {"gamma": job["gamma"], "values": result["values"]}
        write_json(path, stored)
    return stored["values"]


def relative_error(values: list[float] | None, truth: list[float] | None) -> float | None:
    if not values or not truth or len(values) != len(truth):
        return None
    return float(np.max(np.abs(np.subtract(values, truth)) / np.abs(truth)))


def best_peer(results: dict, accurate: bool) -> float:
    """Seconds of scikit-learn's fastest solver, of those that are accurate if so asked."""
    good = [
        result["seconds"]
        for name, result in results.items()
        if name.startswith("sklearn") and "seconds" in result
        if not accurate or (result["error_rel"] or 0) <= ACCURACY
    ]
    return min(good, default=math.nan)


def print_case(report: dict) -> None:
    results = report["results"]
    peer = best_peer(results, accurate=False)
    floor_seconds = results.get("floor", {}).get("seconds", math.nan)
    rows = [_row(name, result, peer, floor_seconds) for name, result in results.items()]
    header = [
        "contender",
        "seconds",
        "speed-up",
        "floors",
        "peak MB",
        "error",
        "residual",
        "others",
    ]
    print_table(
        f"{report['case']}, d = {report['d']}; speed-up over the best sklearn", header, rows
    )


def _row(name: str, result: dict, peer: float, floor_seconds: float) -> list[str]:
    if "error" in result:
        return [name, result["error"].split(":")[0], *[""] * 6]
    seconds = result["seconds"]
    if name == "floor":
        others = "" if result["others"] is None else f"{result['others']:.1f}"
        return [f"floor ({FLOOR_PASSES} passes)", f"{seconds:.3f}", *[""] * 5, others]
    ratios = [f"{peer / seconds:.1f}x", f"{seconds / floor_seconds:.1f}x"]
    numbers = [result.get(key) for key in ("peak_mb", "error_rel", "residual", "others")]
    forms = [".0f", ".1e", ".1e", ".1f"]
    texts = ["" if v is None else f"{v:{form}}" for v, form in zip(numbers, forms, strict=True)]
    return [name, f"{seconds:.3f}", *(r.replace("nanx", "") for r in ratios), *texts]


def judge(report: dict) -> list[tuple[str, bool]]:
    """The targets that apply to a case, each with whether it is met."""
    results, family = report["results"], report["case"].split("-")[0]
    ours = {name: result for name, result in results.items() if name.startswith("mercer")}
    peer = best_peer(results, accurate=True)
    failed = [(f"{name}: {r['error']}", False) for name, r in ours.items() if "error" in r]
    if failed or not ours or math.isnan(peer):
        return failed
    if report["n"] <= SMALL_ROWS:
        delay = next(iter(ours.values()))["seconds"] - best_peer(results, accurate=False)
        return [(f"{1e3 * delay:+.1f} ms beside scikit-learn (at most 20)", delay <= SMALL_DELAY)]
    verdicts = []
    for name, result in ours.items():
        ratio, error = peer / result["seconds"], result["error_rel"] or 0
        wanted = 1.0 if "200MB" in name else SPEED_TARGETS.get(family, 1.0)
        text = f"{name}: {ratio:.1f}x (at least {wanted:g}x), error {error:.1e}"
        verdicts.append((text, ratio >= wanted and error <= ACCURACY))
        if "200MB" in name:
            peak = result["peak_mb"]
            verdicts.append((f"{name}: peak {peak:.0f} MB (under 300)", peak < 300))
        elif family != "covtype" and "seconds" in results.get("floor", {}):
            share = result["seconds"] / results["floor"]["seconds"]
            verdicts.append((f"{name}: {share:.1f} floors (at most 2)", share <= 2))
    return verdicts


def judge_large(reports: list[dict]) -> list[tuple[str, bool]]:
    """Memory and residual of the largest case, growth from the smallest to it."""
    runs = [(r["n"], r["results"]["mercer large"]) for r in reports]
    runs = [(n, run) for n, run in runs if "seconds" in run]
    if not runs:
        return []
    (n0, first), (n1, last) = runs[0], runs[-1]
    verdicts = [
        (f"n = {n1}: process {last['process_mb']:.0f} MB (under 2000)", last["process_mb"] < 2000),
        (f"n = {n1}: residual / l_1 {last['residual']:.1e} (below 1e-5)", last["residual"] < 1e-5),
    ]
    if n1 > n0:
        power = math.log(last["seconds"] / first["seconds"]) / math.log(n1 / n0)
        verdicts.append((f"time grows as n^{power:.2f} (at most 2.1)", power <= 2.1))
    return verdicts


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="five cases, once, 20 s a fit at most")
    parser.add_argument("--large", action="store_true", help="25,000 to 100,000 rows, ours only")
    parser.add_argument("--cases", help=f"comma-separated, of the form {CASES[3]}")
    parser.add_argument("--contenders", help="comma-separated beginnings of names")
    parser.add_argument("--repeat", type=int, help="runs of each contender (3; 1 with --quick)")
    parser.add_argument("--limit", type=float, help="seconds after which a process is stopped")
    parser.add_argument("--patience", type=float, help="seconds to wait for a quiet machine")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--worker", type=json.loads, help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def chosen_cases(options: argparse.Namespace) -> list[str]:
    if options.cases:
        return options.cases.split(",")
    return LARGE_CASES if options.large else QUICK_CASES if options.quick else CASES


def chosen_contenders(options: argparse.Namespace) -> list[str]:
    if options.large:
        return list(LARGE)
    starts = tuple(options.contenders.split(",")) if options.contenders else ("",)
    return [name for name in CONTENDERS if name.startswith(starts)]


def main() -> None:
    options = parse()
    if options.worker:
        print(json.dumps(work(options.worker)))
        return
    repeat = options.repeat or (1 if options.quick or options.large else 3)
    limit = options.limit or (20 if options.quick else 1800 if options.large else 300)
    patience = options.patience if options.patience is not None else 0 if options.quick else 10
    race = Race(__file__, load_case, why_not, repeat=repeat, limit=limit, patience=patience)
    reports: list[dict] = []
    content = {"machine": machine(), "rank": RANK, "repeat": repeat, "cases": reports}
    name = "exact-large" if options.large else "exact"
    for case in chosen_cases(options):
        try:
            report = run_case(race, case, options)
        except FileNotFoundError as error:
            print(f"{case} left out: {error}")
            continue
        report["targets"] = [] if options.large else judge(report)
        reports.append(report)
        print_case(report)
        write_json(options.out / f"{name}.json", content)
    finish(reports, content, options.out / name, options.large)


def finish(reports: list[dict], content: dict, path: Path, large: bool) -> None:
    """The verdicts on all cases, the JSON and the plot."""
    if not reports:
        raise SystemExit("no case could be run")
    verdicts = {report["case"]: report["targets"] for report in reports}
    if large:
        verdicts["growth"] = content["targets"] = judge_large(reports)
    rows = [
        [case, text, "met" if met else "MISSED"]
        for case, found in verdicts.items()
        for text, met in found
    ]
    if rows:
        found = [run.get("others") or 0 for r in reports for run in r["results"].values()]
        print_table(
            f"Targets (others kept up to {max(found):.1f} cores busy)",
            ["case", "measured", ""],
            rows,
        )
    write_json(path.with_suffix(".json"), content)
    times = {
        r["case"]: {k: v["seconds"] for k, v in r["results"].items() if "seconds" in v}
        for r in reports
    }
    plot_times(path.with_suffix(".png"), times, f"Exact kernel PCA, top {RANK}, Gaussian kernel")
    print(f"Written: {path.with_suffix('.json')}, {path.with_suffix('.png')}")


if __name__ == "__main__":
    main()
