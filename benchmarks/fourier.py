"""The Fourier grid against landmarks, the exact method and scikit-learn, in one to three columns.

    python benchmarks/fourier.py --out benchmarks/results
    python benchmarks/fourier.py --rows 1000000000 --stream     # generated block by block

Normal rows of spread 1, 0.7 and 0.5; a Gaussian kernel whose sigma is the mean distance between
rows (wide) or a fifth of it (narrow); sixteen components. Contenders: `KernelPCA(basis="fourier")`,
exact to 1e-9 of k(x, x); `KernelPCA` with 500 landmarks; `KernelPCA(basis="points")`; PCA of
scikit-learn on 500 Nystroem features. Each fit in its own process, data made before the clock
starts. The error is the largest of the sixteen eigenvalues, as a share of the first: against LAPACK
on 3,000 rows, above that against the Fourier grid, whose own certificate is printed beside it.
Processor seconds are those of all threads: on a busy machine they say more than the clock.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from _harness import (
    machine,
    measure,
    memory_now,
    memory_peak,
    print_table,
    race_options,
    reset_peak,
    run_isolated,
    write_json,
)

SPREAD = np.array([1.0, 0.7, 0.5])
WIDTHS = {"wide": 1.0, "narrow": 0.2}
COMPONENTS, LANDMARKS, TRUTH = 16, 500, 3000
# Rows beyond which a contender is not started: quadratic time, or an n x 500 matrix in memory.
MOST = {"fourier": 10**9, "landmarks": 10**7, "exact": 20_000, "sklearn": 10**6, "lapack": TRUTH}
# Rows of one block of a stream, and the box that normal rows of any number stay in.
BLOCK, BOX = 2**21, 8.0


def rows(n: int, d: int, seed: int = 0):
    """Normal rows, n x d."""
    return np.random.default_rng(seed).standard_normal((n, d)) * SPREAD[:d]


def gamma(d: int, width: str) -> float:
    """1 / (2 sigma^2), sigma in units of the mean distance between rows."""
    from scipy.spatial.distance import pdist

    return float(0.5 / (WIDTHS[width] * pdist(rows(1500, d)).mean()) ** 2)


def fit_sklearn(X, g):
    from sklearn.decomposition import PCA
    from sklearn.kernel_approximation import Nystroem

    features = Nystroem(gamma=g, n_components=min(LANDMARKS, len(X)), random_state=0)
    pca = PCA(COMPONENTS, svd_solver="covariance_eigh").fit(features.fit_transform(X))
    return {"values": (pca.explained_variance_ * (len(X) - 1)).tolist()}


def fit_mercer(X, g, **settings):
    from mercer import KernelPCA

    model = KernelPCA(COMPONENTS, kernel="rbf", gamma=g, random_state=0, copy_X=False, **settings)
    model.fit(X)
    bound = model.certificate_.eigenvalue_upper - model.certificate_.eigenvalue_lower
    return {
        "values": model.eigenvalues_.tolist(),
        "bound": float(bound.max() / model.eigenvalues_[0]),
        "size": int(model.expansion_.basis.size),
    }


def work(job: dict) -> dict:
    """One measurement."""
    if job["contender"] == "stream":
        return stream(job)
    from mercer.bases import Landmarks

    fits = {
        "fourier": lambda X: fit_mercer(X, job["gamma"], basis="fourier"),
        "landmarks": lambda X: fit_mercer(X, job["gamma"], basis=Landmarks(LANDMARKS)),
        "exact": lambda X: fit_mercer(X, job["gamma"], basis="points"),
        "lapack": lambda X: fit_mercer(X, job["gamma"], basis="points", eigen_solver="dense"),
        "sklearn": lambda X: fit_sklearn(X, job["gamma"]),
    }

    def timed(X):
        start = time.process_time()
        return fits[job["contender"]](X) | {"processor": time.process_time() - start}

    return measure(timed, rows(job["n"], job["d"]), n_warm=1000)


def stream(job: dict) -> dict:
    """A fit to rows that are made block by block, with the time to make them apart."""
    from mercer import StreamingKernelPCA
    from mercer.bases import FourierGrid

    d, making = job["d"], np.zeros(2)

    def blocks():
        for k, first in enumerate(range(0, job["n"], BLOCK)):
            start = np.array([time.perf_counter(), time.process_time()])
            X = rows(min(BLOCK, job["n"] - first), d, seed=k)
            making[:] += np.array([time.perf_counter(), time.process_time()]) - start
            yield X

    box = np.outer(SPREAD[:d], [-BOX, BOX])
    model = StreamingKernelPCA(
        COMPONENTS, kernel="rbf", gamma=job["gamma"], basis=FourierGrid(box=box)
    )
    reset_peak()
    before, start = memory_now(), time.perf_counter()
    used = time.process_time()
    model.fit(blocks())
    seconds, used = time.perf_counter() - start, time.process_time() - used
    bound = model.certificate_.eigenvalue_upper - model.certificate_.eigenvalue_lower
    return {
        "seconds": seconds - making[0],
        "processor": used - making[1],
        "making": making[0],
        "peak_mb": (memory_peak() - before) / 1e6,
        "values": model.eigenvalues_.tolist(),
        "bound": float(bound.max() / model.eigenvalues_[0]),
        "size": int(model.expansion_.basis.size),
    }


def error(record: dict, truth: dict | None) -> float | None:
    """Largest error of the eigenvalues as a share of the first."""
    if truth is None or "values" not in record or "values" not in truth:
        return None
    a, b = np.array(record["values"]), np.array(truth["values"])
    return float(np.abs(a - b).max() / b[0])


def race(script: str, options, keep) -> list[dict]:
    """All measurements; `keep(records)` after every case, for those who cannot wait."""
    records: list[dict] = []
    for d in options.columns:
        for width in options.widths:
            for n in options.rows:
                found = {}
                names = ["stream"] if options.stream else options.contenders
                names = [*names, "lapack"] if n <= TRUTH else names
                for name in names:
                    if n > MOST.get(name, 10**12):
                        continue
                    job = {"contender": name, "n": n, "d": d, "gamma": gamma(d, width)}
                    print(f"  {n:,} x {d} {width}: {name}", flush=True)
                    found[name] = run_isolated(script, job, options.limit)
                truth = found.get("lapack", found.get("fourier"))
                for name, result in found.items():
                    own = truth if result is not truth else None
                    key = {"n": n, "d": d, "width": width, "contender": name}
                    records.append(key | result | {"error_share": error(result, own)})
                keep(records)
    return records


def show(records: list[dict]) -> None:
    def text(r, field, form):
        return format(r[field], form) if r.get(field) is not None else ""

    table = [
        [
            f"{r['n']:,} x {r['d']} {r['width']} {r['contender']}",
            text(r, "size", ",d"),
            text(r, "seconds", ".3g") or r.get("error", ""),
            text(r, "processor", ".3g"),
            text(r, "making", ".3g"),
            text(r, "peak_mb", ".0f"),
            text(r, "error_share", ".1e"),
            text(r, "bound", ".1e"),
        ]
        for r in records
    ]
    header = ["", "basis", "seconds", "processor", "making rows", "MB", "error", "certified"]
    print_table("Sixteen components", header, table)


def draw(path, records: list[dict]) -> None:
    """Seconds over rows, a panel for each number of columns, landmarks and exact beside."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    columns = sorted({r["d"] for r in records})
    figure, axes = plt.subplots(
        1, len(columns), figsize=(1 + 3.4 * len(columns), 3.6), sharey=True, layout="constrained"
    )
    styles = {"wide": "-o", "narrow": "--s"}
    names = [n for n in dict.fromkeys(r["contender"] for r in records) if n != "lapack"]
    for ax, d in zip(np.atleast_1d(axes), columns, strict=True):
        for k, name in enumerate(names):
            for width, style in styles.items():
                line = [
                    (r["n"], r["seconds"])
                    for r in records
                    if (r["d"], r["contender"], r["width"]) == (d, name, width) and "seconds" in r
                ]
                if line:
                    label = f"{name}, {width}"
                    ax.plot(*zip(*line, strict=True), style, color=f"C{k}", ms=4, label=label)
        ax.set(xscale="log", yscale="log", xlabel="rows", title=f"{d} column{'s' * (d > 1)}")
        ax.grid(alpha=0.3)
    np.atleast_1d(axes)[0].set_ylabel("seconds to fit")
    lines = {line.get_label(): line for ax in figure.axes for line in ax.get_lines()}
    figure.legend(lines.values(), lines.keys(), fontsize="x-small", loc="outside right center")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--columns", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--widths", nargs="+", choices=list(WIDTHS), default=list(WIDTHS))
    parser.add_argument(
        "--rows", nargs="+", type=int, default=[TRUTH, 10**4, 10**5, 10**6, 10**7, 10**8]
    )
    parser.add_argument(
        "--contenders", nargs="+", default=["fourier", "landmarks", "exact", "sklearn"]
    )
    parser.add_argument("--stream", action="store_true", help="rows made block by block")
    parser.add_argument("--name", help="of the files written; fourier, or fourier-stream")
    options = race_options(parser, work)
    options.name = options.name or ("fourier-stream" if options.stream else "fourier")
    file, about = options.out / f"{options.name}.json", machine()
    records = race(
        __file__, options, lambda found: write_json(file, {"machine": about, "records": found})
    )
    show(records)
    draw(options.out / f"{options.name}.png", records)


if __name__ == "__main__":
    main()
