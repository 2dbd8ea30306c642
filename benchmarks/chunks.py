"""Dask arrays of many small chunks: tasks, transitions of the scheduler, and seconds.

    python benchmarks/chunks.py
    python benchmarks/chunks.py --chunks 1000 100000 --rows 10

Every chunk has a few generated rows of three columns. A model with 20 given landmarks is fitted to
them, one with landmarks of its own is, and the scores of all rows are summed: with Dask's threads,
and on a `LocalCluster` of two workers of one thread each. Tasks are those that threads ran;
transitions are those of the scheduler of the cluster.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from _harness import machine, print_table, run_isolated, write_json

CHUNKS, COLUMNS, LANDMARKS = (1000, 10_000, 100_000), 3, 20
SCHEDULERS = ("threads", "cluster")


def small_chunks(count: int, rows: int):
    """Rows that are made where they are, a few in every chunk."""
    import dask.array as da

    def make(block_id=None):
        return np.random.default_rng(block_id[0]).standard_normal((rows, COLUMNS))

    chunks = ((rows,) * count, (COLUMNS,))
    return da.map_blocks(make, chunks=chunks, dtype=float, meta=np.empty((0, 0)))


def jobs(X):
    """What is measured: a function for each."""
    from mercer import KernelPCA
    from mercer.bases import Landmarks

    points = np.random.default_rng(3).standard_normal((LANDMARKS, COLUMNS))
    given = KernelPCA(3, kernel="rbf", gamma=0.3, basis=Landmarks(points=points), random_state=0)
    own = KernelPCA(3, kernel="rbf", gamma="median", basis=Landmarks(LANDMARKS), random_state=0)
    return {
        "fit, landmarks given": lambda: given.fit(X),
        "fit, landmarks chosen": lambda: own.fit(X),
        "scores": lambda: given.transform(X).sum(axis=0).compute(),
    }


def measure(X, count) -> dict:
    """Seconds of every job, and by how much `count` rose meanwhile."""
    found = {}
    for name, job in jobs(X).items():
        before, start = count(), time.perf_counter()
        job()
        found[name] = {"seconds": time.perf_counter() - start, "count": count() - before}
    return found


def threads(job: dict) -> dict:
    """With Dask's threads, whose tasks are counted."""
    import dask
    from dask.callbacks import Callback

    tasks: list[int] = []
    with dask.config.set(scheduler="threads"), Callback(posttask=lambda *task: tasks.append(1)):
        return measure(small_chunks(job["chunks"], job["rows"]), lambda: len(tasks))


def cluster(job: dict) -> dict:
    """On two workers, whose scheduler's transitions are counted."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as workers,
        Client(workers) as client,
    ):

        def transitions():
            return client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.transition_counter)

        small_chunks(4, job["rows"]).sum().compute()
        return measure(small_chunks(job["chunks"], job["rows"]), transitions)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chunks", nargs="+", type=int, default=list(CHUNKS))
    parser.add_argument("--rows", type=int, default=4, help="rows of a chunk")
    parser.add_argument("--on", nargs="+", choices=SCHEDULERS, default=list(SCHEDULERS))
    parser.add_argument("--limit", type=float, default=300, help="seconds for one process")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--worker", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(
            json.dumps(
                {"threads": threads, "cluster": cluster}[options.worker["on"]](options.worker)
            )
        )
        return
    rows, found = [], []
    for count in options.chunks:
        for on in options.on:
            job = {"chunks": count, "rows": options.rows, "on": on}
            result = run_isolated(__file__, job, options.limit)
            found.append(job | {"result": result})
            if "error" in result:
                rows.append([f"{count:,}", on, result["error"], "", ""])
                continue
            rows += [
                [f"{count:,}", on, name, f"{r['count']:,}", f"{r['seconds']:.2f}"]
                for name, r in result.items()
            ]
    head = ["chunks", "on", "", "tasks or transitions", "seconds"]
    print_table("Many small chunks", head, rows)
    write_json(options.out / "chunks.json", {"machine": machine(), "runs": found})


if __name__ == "__main__":
    main()
