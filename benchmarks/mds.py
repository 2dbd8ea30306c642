"""Classical MDS against its peers: time, peak memory and accuracy for two dimensions.

    python benchmarks/mds.py --quick
    python benchmarks/mds.py --repeat 3
    python benchmarks/mds.py --cases metric-20000
    python benchmarks/mds.py --quality

Cases: "data-n", Euclidean distances of n rows of 50 columns; "matrix-n", a given matrix of their
Manhattan distances, which are not Euclidean; "metric-n", the same distances computed from the rows,
which have 10 columns where n is large. Each fit runs in its own process, contenders take turns, and
the best of the repeats counts; "others" is how many cores other programs kept busy meanwhile.
Memory is the peak beyond the data. The error is that of the two eigenvalues relative to
scikit-learn's, or to mercer's exact ones where scikit-learn is not run; landmarks show theirs.
``--quality`` times nothing: landmarks on USPS against the exact result, by the leading eigenpairs
(published) and by all, and what an additive constant does to the stress of Manhattan and graph
distances.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from _harness import Race, machine, measure, print_table, race_options, write_json

RANK, COLUMNS = 2, 50
# At 20,000 points fewer columns, so that a pass over the distances takes seconds.
LARGE_COLUMNS = 10
CASES = ["data-5000", "matrix-5000", "metric-20000"]
QUICK_CASES = ["data-1500", "matrix-1500", "metric-1500"]
# What is promised: times faster at 5,000 points, and the share of the n^2 float64 matrix.
SPEED_TARGET, SPEED_ROWS = 10.0, 5000
MEMORY_SHARE, MEMORY_ROWS = 0.25, 20_000
# Beyond this scikit-learn's matrices do not fit a small machine and its time is minutes.
SKLEARN_ROWS = 6000
BUDGET = "300MB"
LARGE = (f"mercer {BUDGET} tol=1e-6", "mercer 100 landmarks")


def kind(case: str) -> str:
    return {"data": "euclidean", "matrix": "precomputed", "metric": "manhattan"}[case.split("-")[0]]


def square(X, case: str):
    """The leading part of a matrix where the harness warms up with a few of its rows."""
    return X[:, : len(X)] if kind(case) == "precomputed" else X


def sklearn_mds(case: str) -> Callable:
    from sklearn.manifold import ClassicalMDS

    model = ClassicalMDS(RANK, metric=kind(case))
    return lambda X: {"values": model.fit(square(X, case)).eigenvalues_.tolist()}


def arpack(case: str) -> Callable:
    """The same matrix as scikit-learn's, but SciPy's eigsh for the two eigenpairs."""
    from scipy.sparse.linalg import eigsh
    from sklearn.metrics import pairwise_distances

    def fit(X):
        X = square(X, case)
        D = X if kind(case) == "precomputed" else pairwise_distances(X, metric=kind(case))
        B = D**2
        B -= B.mean(axis=0)
        B -= B.mean(axis=1)[:, None]
        B *= -0.5
        values, U = eigsh(B, RANK, which="LA")
        return {"values": values[::-1].tolist(), "size": float((U * np.sqrt(values)).size)}

    return fit


def mercer_mds(case: str, **params) -> Callable:
    from mercer import ClassicalMDS

    model = ClassicalMDS(RANK, dissimilarity=kind(case), random_state=0, **params)

    def fit(X):
        model.fit(square(X, case))
        return {"values": model.eigenvalues_.tolist(), "stress": model.stress_}

    return fit


CONTENDERS: dict[str, Callable] = {
    "sklearn": sklearn_mds,
    "scipy eigsh": arpack,
    "mercer": mercer_mds,
    f"mercer {BUDGET}": lambda case: mercer_mds(case, memory=BUDGET),
    f"mercer {BUDGET} tol=1e-6": lambda case: mercer_mds(case, memory=BUDGET, tol=1e-6),
    "mercer 100 landmarks": lambda case: mercer_mds(case, landmarks=100),
}


def why_not(contender: str, n: int, done: dict, limit: float) -> str | None:
    if n > SKLEARN_ROWS and contender not in LARGE:
        return "not run at this size"
    return None


def load_case(case: str) -> np.ndarray:
    n = int(case.split("-")[1])
    rng = np.random.default_rng(0)
    columns = COLUMNS if n <= SKLEARN_ROWS else LARGE_COLUMNS
    X = rng.standard_normal((n, columns)) * np.linspace(3, 0.5, columns)
    if kind(case) != "precomputed":
        return X
    from scipy.spatial.distance import cdist

    return cdist(X, X, "cityblock")


def work(job: dict) -> dict:
    """One measurement, in the process made for it."""
    return measure(CONTENDERS[job["contender"]](job["case"]), np.load(job["data"]))


def run_case(race: Race, case: str) -> dict:
    with race.data(case, lambda X: 0.0) as job:
        results = race.run(job, list(CONTENDERS))
    truth = next(r["values"] for r in results.values() if "values" in r)
    for result in results.values():
        if "values" in result:
            gap = np.subtract(result["values"], truth) / truth
            result["error_rel"] = float(np.max(np.abs(gap)))
    return {"case": case, "n": job["n"], "results": results}


def print_case(report: dict) -> None:
    results = report["results"]
    peer = results["sklearn"].get("seconds", float("nan"))
    rows = []
    for name, r in results.items():
        if "error" in r:
            rows.append([name, r["error"].split(":")[0], *[""] * 5])
            continue
        stress = f"{r['stress']:.4f}" if "stress" in r else ""
        speed = f"{peer / r['seconds']:.1f}x".replace("nanx", "")
        numbers = [
            f"{r['peak_mb']:.0f}",
            f"{r['error_rel']:.1e}",
            stress,
            f"{r['others'] or 0:.1f}",
        ]
        rows.append([name, f"{r['seconds']:.3f}", speed, *numbers])
    header = ["contender", "seconds", "speed-up", "peak MB", "error", "stress-1", "others"]
    print_table(f"{report['case']}; speed-up over sklearn", header, rows)


def judge(report: dict) -> list[tuple[str, bool]]:
    """The targets that apply to a case, each with whether it is met."""
    results, n = report["results"], report["n"]
    verdicts = []
    peer, ours = (results[name].get("seconds") for name in ("sklearn", "mercer"))
    if n == SPEED_ROWS and peer and ours:
        verdicts.append((f"{peer / ours:.1f}x (at least 10x)", peer / ours >= SPEED_TARGET))
    small = results[LARGE[0]]
    if n >= MEMORY_ROWS and "peak_mb" in small:
        share = small["peak_mb"] * 1e6 / (8 * n * n)
        text = f"peak {small['peak_mb']:.0f} MB, {share:.0%} of n^2 (at most 25 %)"
        verdicts.append((text, share <= MEMORY_SHARE))
    return verdicts


def procrustes(Y: np.ndarray, exact: np.ndarray) -> float:
    """Error after the best rotation, as a share of the exact coordinates."""
    from scipy.linalg import orthogonal_procrustes

    R, _ = orthogonal_procrustes(Y, exact)
    return float(np.linalg.norm(Y @ R - exact) / np.linalg.norm(exact))


def triangulated(X: np.ndarray, index: np.ndarray, p: int) -> np.ndarray:
    """The published landmark method: the p leading eigenpairs of the landmarks alone."""
    from scipy.spatial.distance import cdist

    from mercer.mds.scaling import double_centered

    values, U = np.linalg.eigh(double_centered(cdist(X[index], X[index])))
    A = U[:, -p:] / np.sqrt(values[-p:])
    Y = -0.5 * cdist(X, X[index]) ** 2 @ (A - A.mean(axis=0))
    return Y - Y.mean(axis=0)


def landmark_quality(seeds: int = 5) -> None:
    from _papers import papers_data

    from mercer import ClassicalMDS

    X = papers_data.load_usps().data
    rows = []
    for p, m in [(2, 50), (2, 100), (10, 100), (10, 200)]:
        exact = ClassicalMDS(p).fit(X).embedding_
        errors = []
        for seed in range(seeds):
            model = ClassicalMDS(p, landmarks=m, random_state=seed).fit(X)
            old = triangulated(X, model.landmark_indices_, p)
            errors.append([procrustes(old, exact), procrustes(model.embedding_, exact)])
        published, ours = np.mean(errors, axis=0)
        rows.append([f"p = {p}, {m} landmarks", f"{published:.3f}", f"{ours:.3f}"])
    print_table(
        f"USPS, {len(X):,} digits: Procrustes error, mean of {seeds} seeds",
        ["", "p leading pairs", "all pairs, then PCA"],
        rows,
    )


def constant_quality() -> None:
    from sklearn.datasets import make_swiss_roll
    from sklearn.manifold import Isomap

    from mercer import ClassicalMDS

    roll = make_swiss_roll(600, random_state=0)[0]
    cases = {
        "Manhattan, 50 columns": load_case("matrix-600"),
        "geodesics of a swiss roll": Isomap(n_neighbors=8).fit(roll).dist_matrix_,
    }
    rows = []
    for name, D in cases.items():
        D = (D + D.T) / 2
        for p in (2, 10):
            stress = []
            for correction in (None, "lingoes"):
                model = ClassicalMDS(p, dissimilarity="precomputed", correction=correction).fit(D)
                Y = model.embedding_
                gaps = np.sqrt(((Y[:, None] - Y[None]) ** 2).sum(axis=2)) - D
                # Against the distances as given, not those that the constant made.
                stress.append(float(np.sqrt((gaps**2).sum() / (D**2).sum())))
            rows.append([f"{name}, p = {p}", *(f"{value:.3f}" for value in stress)])
    print_table("stress-1 against the given distances", ["", "none", "lingoes"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="1,500 points, once")
    parser.add_argument("--quality", action="store_true", help="errors instead of times")
    parser.add_argument("--cases", help="comma-separated, of the form data-5000")
    parser.add_argument("--repeat", type=int, default=1)
    options = race_options(parser, work)
    if options.quality:
        landmark_quality()
        constant_quality()
        return
    race = Race(
        __file__,
        load_case,
        why_not,
        repeat=options.repeat,
        limit=options.limit,
        patience=options.patience,
    )
    cases = options.cases.split(",") if options.cases else QUICK_CASES if options.quick else CASES
    reports = []
    for case in cases:
        report = run_case(race, case)
        report["targets"] = judge(report)
        reports.append(report)
        print_case(report)
    rows = [[r["case"], t, "met" if met else "MISSED"] for r in reports for t, met in r["targets"]]
    if rows:
        print_table("Targets", ["case", "measured", ""], rows)
    write_json(options.out / "mds.json", {"machine": machine(), "cases": reports})


if __name__ == "__main__":
    main()
