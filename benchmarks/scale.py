"""Rows that do not fit the budget: speed and memory of fits and scores from Parquet files.

    python benchmarks/scale.py
    python benchmarks/scale.py --rows 100000 1000000
    python benchmarks/scale.py --cluster
    python benchmarks/scale.py --peer --rows 100000 1000000
    python benchmarks/scale.py --parquet 100000000
    python benchmarks/scale.py --pixels 1000000 100000000

Rows are generated (20 columns that bend along 5 hidden ones, with noise) and written to Parquet
in a temporary folder. A model with 500 landmarks and ten components is fitted to the file within
``memory="500MB"``, and the scores of all rows are written to another Parquet file. Every run has
a process of its own. Time should be a fixed part, the choice of landmarks, and a constant for each
row; memory, the peak of the process beyond what it had after its imports, should not grow at all.
``--cluster`` fits the same landmarks on a Dask LocalCluster of two workers and compares the
components; ``--peer`` lets scikit-learn do it block by block with the same landmarks. "others" is
how many cores other programs kept busy meanwhile: with more than about 0.1 there, read the
processor seconds ("cpu") instead, best with OMP_NUM_THREADS=1. ``--parquet`` is another run, of
three columns and 100 landmarks: it ends a fit by SIGKILL in the middle and goes on from its
checkpoint (`_parquet.py`). ``--pixels`` is one more, of five columns in single precision: kernel
PCA and spectral clustering by 100 landmarks, beside pyarrow that only reads the file.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import _parquet
import numpy as np
from _harness import (
    MB,
    OtherWork,
    machine,
    memory_now,
    memory_peak,
    print_table,
    reset_peak,
    run_isolated,
    wait_for_quiet,
    write_json,
)

ROWS = (100_000, 1_000_000, 10_000_000)
COLUMNS, HIDDEN, LANDMARKS, RANK = 20, 5, 500, 10
MEMORY = "500MB"
# Rows generated at a time, which are a row group of the file.
GROUP_ROWS = 100_000
# Columns of pixels, and rows of theirs that are a row group.
BANDS, PIXEL_GROUP = 5, 1_000_000
# Rows of the peer's blocks: its decompositions are cheaper by the row in large ones.
PEER_ROWS = 10_000
# Rows whose scores are compared between contenders.
COMPARED_ROWS = 20_000
# What is promised: the largest fit against a line through the others, the growth of the peak, the
# cluster's time against that of threads, and the angle between their components.
LINEAR, FLAT, SLOWER, SUBSPACE = 0.15, 1.15, 1.5, 1e-6


def generate(n: int) -> np.ndarray:
    """The group of rows that begins at row n, always the same."""
    rng = np.random.default_rng([0, n])
    hidden = rng.standard_normal((GROUP_ROWS, HIDDEN))
    mixing = np.random.default_rng(1).standard_normal((2, HIDDEN, COLUMNS))
    X = np.sin(hidden @ mixing[0]) + 0.3 * (hidden @ mixing[1])
    return X + 0.1 * rng.standard_normal(X.shape)


def write_rows(path: Path, n: int) -> None:
    """A Parquet file of n generated rows."""
    from mercer.files import open_sink

    names = [f"x{i}" for i in range(COLUMNS)]
    with open_sink(path, COLUMNS, columns=names) as sink:
        for start in range(0, n, GROUP_ROWS):
            sink.write(generate(start)[: n - start])


def recipe(job: dict):
    """The model to fit: with landmarks of its own, or those that another contender chose."""
    from mercer import KernelPCA
    from mercer.bases import Landmarks

    basis, gamma = Landmarks(LANDMARKS), "median"
    if job.get("landmarks"):
        basis, gamma = Landmarks(points=np.load(job["landmarks"])), job["gamma"]
    return KernelPCA(RANK, kernel="rbf", gamma=gamma, basis=basis, memory=MEMORY, random_state=0)


def threads(job: dict) -> dict:
    """Fit to the file and write the scores of all rows, in this process."""
    model, folder = recipe(job), Path(job["folder"])
    model.fit(generate(0)[:2000])  # what is imported late counts for nobody
    before = memory_now()
    reset_peak()
    fitting = Stopwatch()
    model.fit(job["data"])
    fit = fitting.read("fit")
    fit_peak = (memory_peak() - before) / MB
    writing = Stopwatch()
    scores = model.transform(job["data"], out=folder / "scores.parquet")
    score = writing.read("transform") | {"scores_mb": scores.stat().st_size / MB}
    peak = {"fit_peak_mb": fit_peak, "peak_mb": (memory_peak() - before) / MB}
    return fit | score | peak | compared(model, folder, "threads")


def sklearn(job: dict) -> dict:
    """What one does without mercer: a Nystroem map of a sample, then PCA block by block.

    The same landmarks and the same reader. `IncrementalPCA` forgets what its components do not
    hold, so its result depends on the blocks.
    """
    from sklearn.decomposition import IncrementalPCA
    from sklearn.kernel_approximation import Nystroem

    from mercer.files import open_sink, open_source

    def fitted(blocks):
        features = Nystroem(gamma=job["gamma"], n_components=LANDMARKS, random_state=0)
        features.fit(np.load(job["landmarks"]))
        pca = IncrementalPCA(RANK)
        for block in blocks:
            pca.partial_fit(features.transform(block))
        return features, pca

    fitted([generate(0)[:2000]])
    source, folder, before = open_source(job["data"]), Path(job["folder"]), memory_now()
    reset_peak()
    fitting = Stopwatch()
    features, pca = fitted(source.blocks(PEER_ROWS))
    fit = fitting.read("fit")
    writing = Stopwatch()
    with open_sink(folder / "scores.parquet", RANK) as sink:
        for block in source.blocks(PEER_ROWS):
            sink.write(pca.transform(features.transform(block)))
    score = writing.read("transform")
    np.save(folder / "compared-sklearn.npy",
            pca.transform(features.transform(generate(0)[:COMPARED_ROWS])))  # fmt: skip
    peak = {"peak_mb": (memory_peak() - before) / MB}
    return fit | score | peak | {"gamma": job["gamma"]}


def cluster(job: dict) -> dict:
    """The same on two worker processes of one thread, each reading row groups of the file.

    The fit that is timed chooses landmarks of its own; one more, with those of the other
    contender, is compared with it.
    """
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    folder, own = Path(job["folder"]), {**job, "landmarks": None}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as workers,
        Client(workers) as client,
    ):
        rows = dd.read_parquet(job["data"], split_row_groups=1)
        recipe(own).fit(dd.from_pandas(rows.head(2000), npartitions=2))
        before = client.run(memory_now)
        client.run(reset_peak)
        fitting = Stopwatch(lambda: sum(client.run(time.process_time).values()))
        model = recipe(own).fit(rows)
        fit = fitting.read("fit")
        writing = Stopwatch(lambda: sum(client.run(time.process_time).values()))
        model.transform(rows).to_dask_dataframe(
            columns=list(model.get_feature_names_out())
        ).to_parquet(folder / "scores")
        score = writing.read("transform")
        peaks = client.run(memory_peak)
        peak = {"peak_mb": max(peaks[name] - before[name] for name in peaks) / MB}
        return fit | score | peak | compared(recipe(job).fit(rows), folder, "cluster")


def write_pixels(path: Path, n: int) -> None:
    """A Parquet file of n rows of five bands: three kinds of ground, each along a curve."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    mixing = np.random.default_rng(1).standard_normal((2, BANDS))
    schema = pa.schema([(f"b{i}", pa.float32()) for i in range(BANDS)])
    with pq.ParquetWriter(path, schema, use_dictionary=False) as file:
        for start in range(0, n, PIXEL_GROUP):
            rng = np.random.default_rng([0, start])
            hidden = rng.standard_normal((min(PIXEL_GROUP, n - start), 2))
            hidden[:, 0] += 5 * rng.integers(0, 3, len(hidden))
            X = np.sin(hidden @ mixing) + 0.3 * (hidden @ mixing)
            X += 0.1 * rng.standard_normal(X.shape)
            file.write_table(pa.table(list(X.T.astype(np.float32)), schema=schema))


def pixels(job: dict) -> dict:
    """Seconds and peak memory of one way over the pixels: reading alone, or a fit."""
    import pyarrow.parquet as pq

    from mercer import KernelPCA, SpectralClustering
    from mercer.bases import Landmarks

    options = {"gamma": 0.1, "basis": Landmarks(100), "memory": MEMORY, "random_state": 0}
    file = pq.ParquetFile(job["data"])
    first = next(file.iter_batches(2000))
    if job["what"] == "reading":
        file = pq.ParquetFile(job["data"])
        run = lambda: sum(batch.num_rows for batch in file.iter_batches(65536))  # noqa: E731
    else:
        kinds = {"kernel pca": KernelPCA(RANK, kernel="rbf", **options)}
        model = kinds.get(job["what"], SpectralClustering(3, **options))
        model.fit(np.stack([column.to_numpy() for column in first.columns], axis=1))
        run = lambda: model.fit(job["data"])  # noqa: E731
    before = memory_now()
    reset_peak()
    watch = Stopwatch()
    run()
    return watch.read("fit") | {"peak_mb": (memory_peak() - before) / MB}


def pixel_runs(options) -> None:
    """Both fits and the reader on files of several sizes, one after the other."""
    rows, found = [], []
    for n in options.pixels:
        with tempfile.TemporaryDirectory(dir=options.scratch) as name:
            data = Path(name) / "pixels.parquet"
            write_pixels(data, n)
            for what in ("reading", "kernel pca", "spectral clustering"):
                job = {"contender": "pixels", "what": what, "data": str(data)}
                result = run_isolated(__file__, job, options.limit)
                found.append({"n": n, "what": what} | result)
                cpu = result["fit_cpu"]
                cells = [f"{cpu:.1f}", f"{n / cpu:,.0f}", f"{result['peak_mb']:.0f}"]
                rows.append([f"{n:,}", what, *cells])
                print(*rows[-1], flush=True)
    print_table("Pixels", ["rows", "", "cpu s", "rows a cpu s", "peak MB"], rows)
    write_json(options.out / "pixels.json", {"machine": machine(), "runs": found})


#: How a contender fits and scores: ``run(job) -> result``, in a process of its own.
CONTENDERS: dict[str, Callable[[dict], dict]] = {
    "threads": threads,
    "cluster": cluster,
    "sklearn": sklearn,
    "parquet": _parquet.fit,
    "pixels": pixels,
}


class Stopwatch:
    """Wall and processor seconds, those of helping processes too, and how busy others were."""

    def __init__(self, helpers: Callable[[], float] = lambda: 0.0) -> None:
        self.helpers, self.others = helpers, OtherWork()
        self.wall, self.cpu = time.perf_counter(), time.process_time() + helpers()

    def read(self, name: str) -> dict:
        wall, cpu = time.perf_counter() - self.wall, time.process_time() + self.helpers() - self.cpu
        return {f"{name}_seconds": wall, f"{name}_cpu": cpu, f"{name}_others": self.others.cores()}


def compared(model, folder: Path, name: str) -> dict:
    """Keep what another contender needs, and the scores that are compared."""
    np.save(folder / "landmarks.npy", model.landmarks_)
    np.save(folder / f"compared-{name}.npy", model.transform(generate(0)[:COMPARED_ROWS]))
    low, high = model.certificate_.captured_variance
    return {"gamma": float(model.gamma_), "captured": [float(low), float(high)]}


def subspace_gap(folder: Path, one: str, other: str) -> float:
    """Sine of the largest angle between the score spaces of two contenders."""
    Q, R = (np.linalg.qr(np.load(folder / f"compared-{name}.npy"))[0] for name in (one, other))
    return float(np.linalg.norm(R - Q @ (Q.T @ R), 2))


def run_size(n: int, contenders: list[str], options) -> dict:
    """All contenders on n rows, the first choosing the landmarks for the others."""
    report: dict = {"n": n, "results": {}}
    with tempfile.TemporaryDirectory(dir=options.scratch) as name:
        folder = Path(name)
        job = {"n": n, "data": str(folder / "rows.parquet"), "folder": name}
        write_rows(Path(job["data"]), n)
        report["file_mb"] = Path(job["data"]).stat().st_size / MB
        for contender in contenders:
            wait_for_quiet(options.patience)
            result = run_isolated(__file__, job | {"contender": contender}, options.limit)
            report["results"][contender] = result
            if "error" in result:
                break
            if "landmarks" in job:
                result["subspace_gap"] = subspace_gap(folder, contenders[0], contender)
            job |= {"landmarks": str(folder / "landmarks.npy"), "gamma": result["gamma"]}
    return report


def print_size(report: dict) -> None:
    rows = []
    for contender, r in report["results"].items():
        if "error" in r:
            rows.append([contender, r["error"], *[""] * 7])
            continue
        cells = []
        for step in ("fit", "transform"):
            cells += [f"{r[f'{step}_seconds']:.1f}", f"{report['n'] / r[f'{step}_seconds']:,.0f}",
                      f"{r[f'{step}_cpu']:.1f}"]  # fmt: skip
        rows.append([contender, *cells, f"{r['peak_mb']:.0f}", f"{r['fit_others'] or 0:.2f}"])
    steps = ["fit s", "rows/s", "cpu", "scores s", "rows/s", "cpu"]
    header = ["contender", *steps, "peak MB", "others"]
    title = f"{report['n']:,} rows from {report['file_mb']:.0f} MB of Parquet"
    print_table(title, header, rows)


def judge(reports: list[dict]) -> list[tuple[str, bool]]:
    """What is promised, each with whether it was kept."""
    verdicts: list[tuple[str, bool]] = []
    done = [r for r in reports if "error" not in r["results"].get("threads", {"error": 1})]
    runs = [(r["n"], r["results"]["threads"]) for r in done]
    for key in ("fit_seconds", "fit_cpu") if len(runs) > 2 else ():
        ratio = runs[-1][1][key] / predicted(runs, key)
        verdicts.append((f"{key} of the largest: {ratio:.2f} of what a line through the others "
                         f"says (within {LINEAR:.0%})", abs(ratio - 1) <= LINEAR))  # fmt: skip
    if len(runs) > 1:
        growth = runs[-1][1]["peak_mb"] / runs[0][1]["peak_mb"]
        verdicts.append((f"peak grows {growth:.2f} times from {runs[0][0]:,} to {runs[-1][0]:,} "
                         f"rows (at most {FLAT:g})", growth <= FLAT))  # fmt: skip
    for n, result in runs:
        budget = float(MEMORY.removesuffix("MB"))
        verdicts.append((f"{n:,} rows: peak {result['peak_mb']:.0f} MB (at most {budget:.0f})",
                         result["peak_mb"] <= budget))  # fmt: skip
    return verdicts + [verdict for report in done for verdict in judge_cluster(report)]


def predicted(runs: list[tuple[int, dict]], key: str) -> float:
    """The last value by a line through the two before it."""
    (n0, first), (n1, second), (n2, _) = runs[-3:]
    slope = (second[key] - first[key]) / (n1 - n0)
    return second[key] + slope * (n2 - n1)


def judge_cluster(report: dict) -> list[tuple[str, bool]]:
    """The cluster against threads: time and components."""
    ours, theirs = report["results"]["threads"], report["results"].get("cluster", {})
    if "fit_seconds" not in theirs:
        return []
    ratio, gap = theirs["fit_seconds"] / ours["fit_seconds"], theirs["subspace_gap"]
    return [
        (f"{report['n']:,} rows: cluster {ratio:.2f} of the time (at most {SLOWER})",
         ratio <= SLOWER),
        (f"{report['n']:,} rows: cluster's components {gap:.1e} away (below {SUBSPACE:g})",
         gap < SUBSPACE),
    ]  # fmt: skip


def long_fit(options) -> None:
    """One long fit, in the folder given or in one that is removed."""
    with tempfile.TemporaryDirectory() as name:
        folder = options.scratch or Path(name)
        found = _parquet.run(
            __file__, options.parquet, options.steps, folder, options.threads, options.limit
        )
    write_json(options.out / "parquet.json", {"machine": machine(), "memory": MEMORY} | found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", nargs="+", type=int, default=list(ROWS))
    parser.add_argument("--cluster", action="store_true", help="also a Dask LocalCluster")
    parser.add_argument("--parquet", type=int, help="rows of one long fit that is killed")
    parser.add_argument("--pixels", nargs="+", type=int, help="rows of five bands, both fits")
    parser.add_argument("--steps", nargs="+", choices=_parquet.STEPS, default=list(_parquet.STEPS))
    parser.add_argument(
        "--threads", type=int, help="threads of the long fit; all cores if left out"
    )
    parser.add_argument("--peer", action="store_true", help="also scikit-learn, block by block")
    parser.add_argument("--limit", type=float, default=3600, help="seconds for one process")
    parser.add_argument("--patience", type=float, default=10, help="seconds to wait for quiet")
    parser.add_argument("--scratch", type=Path, default=None, help="folder for the generated files")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--worker", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(CONTENDERS[options.worker["contender"]](options.worker)))
        return
    if options.parquet:
        long_fit(options)
        return
    if options.pixels:
        pixel_runs(options)
        return
    contenders = ["threads"] + ["cluster"] * options.cluster + ["sklearn"] * options.peer
    reports: list[dict] = []
    content = {"machine": machine(), "landmarks": LANDMARKS, "memory": MEMORY, "sizes": reports}
    for n in sorted(options.rows):
        reports.append(run_size(n, contenders, options))
        print_size(reports[-1])
        content["targets"] = judge(reports)
        write_json(options.out / "scale.json", content)
    print_table("Targets", ["measured", ""],
                [[text, "met" if met else "MISSED"] for text, met in judge(reports)])  # fmt: skip


if __name__ == "__main__":
    main()
