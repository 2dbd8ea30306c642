"""Spectral clustering with a dense Gaussian affinity against scikit-learn: time, memory, labels.

    python benchmarks/spectral.py --quick
    python benchmarks/spectral.py
    python benchmarks/spectral.py --large

Cases: "blobs-n", ten Gaussian clusters in eight dimensions that touch; "moons-n", two half moons;
"usps-n", digits; scikit-learn's digits, iris and wine (columns of unit variance). scikit-learn
keeps the n x n matrix and runs up to 8,000 rows here; ``--large`` is 100,000 rows within 1.5 GB,
for which its matrix alone would need 80 GB. Each fit runs in its own process; "others" is how many
cores other programs kept busy meanwhile. Memory is the peak beyond the data. ARI is the adjusted
Rand index against the true labels.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from _harness import Race, machine, measure, print_table, race_options, write_json

CASES = ["iris-150", "wine-178", "digits-1797", "moons-3000", "blobs-5000", "usps-7291"]
QUICK_CASES = ["blobs-1500", "moons-1000"]
LARGE_CASES = ["blobs-100000"]
CLUSTERS = {"blobs": 10, "moons": 2, "usps": 10, "digits": 10, "iris": 3, "wine": 3}
GAMMAS = {
    "blobs": 0.05,
    "moons": 40.0,
    "usps": 0.5 / 8.0**2,
    "digits": 1e-3,
    "iris": 1.0,
    "wine": 0.1,
}
SKLEARN_ROWS = 8000
LARGE_MEMORY = "1.5GB"
LARGE_LIMIT_MB = 2000


def settings(case: str) -> dict:
    name = case.split("-")[0]
    return {"n_clusters": CLUSTERS[name], "gamma": GAMMAS[name], "random_state": 0}


def sklearn_clustering(case: str) -> Callable:
    from sklearn.cluster import SpectralClustering

    model = SpectralClustering(**settings(case))
    return lambda X: {"labels": model.fit(X).labels_}


def mercer_clustering(case: str, **params) -> Callable:
    from mercer import SpectralClustering

    model = SpectralClustering(**settings(case), **params)

    def fit(X):
        model.fit(X)
        return {"labels": model.labels_, "gap": float(model.eigenvalues_[-1])}

    return fit


CONTENDERS: dict[str, Callable] = {
    "sklearn": sklearn_clustering,
    "mercer": lambda case: mercer_clustering(case, basis="points"),
    "mercer 100MB": lambda case: mercer_clustering(case, basis="points", memory="100MB"),
    "mercer landmarks": lambda case: mercer_clustering(case, basis="landmarks"),
}
LARGE: dict[str, Callable] = {
    "mercer large": lambda case: mercer_clustering(case, basis="points", memory=LARGE_MEMORY),
    "mercer landmarks": CONTENDERS["mercer landmarks"],
}


def why_not(contender: str, n: int, done: dict, limit: float) -> str | None:
    too_large = contender == "sklearn" and n > SKLEARN_ROWS
    return f"matrix of {8 * n * n / 1e9:.0f} GB" if too_large else None


def labelled(case: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows and true labels of a case."""
    from sklearn import datasets

    name, n = case.split("-")
    if name == "blobs":
        return datasets.make_blobs(int(n), 8, centers=10, cluster_std=2.5, random_state=0)
    if name == "moons":
        return datasets.make_moons(int(n), noise=0.06, random_state=0)
    if name in ("digits", "iris", "wine"):
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        return ((X - X.mean(axis=0)) / X.std(axis=0) if name == "wine" else X), y
    from _papers import papers_data

    data = papers_data.load_usps()
    return data.data[: int(n)], data.target[: int(n)]


def work(job: dict) -> dict:
    """One measurement, in the process made for it."""
    from sklearn.metrics import adjusted_rand_score

    _, y = labelled(job["case"])
    fit = (CONTENDERS | LARGE)[job["contender"]](job["case"])
    result = measure(fit, np.load(job["data"]))
    result["ari"] = float(adjusted_rand_score(y, result.pop("labels")))
    return result


def print_case(report: dict) -> None:
    peer = report["results"].get("sklearn", {}).get("seconds", float("nan"))
    rows = []
    for name, r in report["results"].items():
        if "error" in r:
            rows.append([name, r["error"].split(":")[0], *[""] * 4])
            continue
        speed = f"{peer / r['seconds']:.1f}x".replace("nanx", "")
        numbers = [f"{r['peak_mb']:.0f}", f"{r['ari']:.3f}", f"{r['others'] or 0:.1f}"]
        rows.append([name, f"{r['seconds']:.2f}", speed, *numbers])
    header = ["contender", "seconds", "speed-up", "peak MB", "ARI", "others"]
    print_table(f"{report['case']}; speed-up over sklearn", header, rows)


def judge(report: dict) -> list[tuple[str, bool]]:
    """ARI no worse than scikit-learn's by more than k-means moves it; memory of the large case."""
    results = report["results"]
    verdicts = []
    peer = results.get("sklearn", {}).get("ari")
    for name, r in results.items():
        if peer is not None and name != "sklearn" and "ari" in r:
            text = f"{name}: ARI {r['ari']:.3f} against {peer:.3f}"
            verdicts.append((text, r["ari"] >= peer - 0.02))
        if name == "mercer large" and "process_mb" in r:
            text = f"process {r['process_mb']:.0f} MB (under {LARGE_LIMIT_MB})"
            verdicts.append((text, r["process_mb"] < LARGE_LIMIT_MB))
    return verdicts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="1,500 points at most")
    parser.add_argument("--large", action="store_true", help="100,000 points, ours only")
    parser.add_argument("--cases", help="comma-separated, of the form blobs-5000")
    parser.add_argument("--repeat", type=int, default=1)
    options = race_options(parser, work)
    race = Race(
        __file__,
        lambda case: labelled(case)[0],
        why_not,
        repeat=options.repeat,
        limit=options.limit,
        patience=options.patience,
    )
    cases = LARGE_CASES if options.large else QUICK_CASES if options.quick else CASES
    reports = []
    for case in options.cases.split(",") if options.cases else cases:
        with race.data(case, lambda X, name=case: GAMMAS[name.split("-")[0]]) as job:
            results = race.run(job, list(LARGE if options.large else CONTENDERS))
        reports.append({"case": case, "n": job["n"], "results": results})
        reports[-1]["targets"] = judge(reports[-1])
        print_case(reports[-1])
    rows = [[r["case"], t, "met" if met else "MISSED"] for r in reports for t, met in r["targets"]]
    if rows:
        print_table("Targets", ["case", "measured", ""], rows)
    name = "spectral-large.json" if options.large else "spectral.json"
    write_json(options.out / name, {"machine": machine(), "cases": reports})


if __name__ == "__main__":
    main()
