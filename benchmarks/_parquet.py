"""A long fit from one Parquet file of generated rows: rows a second, peak memory, and a kill.

Steps, each of which may be run by itself in the same folder (``--scratch``):

- write: n rows of three columns in single precision, row group by row group;
- fit: in a process of its own, with a checkpoint;
- resume: the same, ended by SIGKILL in the middle of what the first one took, and started again.

The model of the resumed fit must be that of the first to the bit.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from _harness import MB, OtherWork, memory_now, memory_peak, print_table, reset_peak, run_isolated

STEPS = ("write", "fit", "resume")
COLUMNS, LANDMARKS, RANK, MEMORY = 3, 100, 5, "500MB"
# Rows generated at a time, which are a row group of the file.
GROUP_ROWS = 1_000_000
# Seconds between two states of the checkpoint: the usual minute is long for a run of a few.
STATE_SECONDS = 10.0


def generate(start: int, count: int) -> np.ndarray:
    """Rows near a curve, from row number `start` on: always the same."""
    rng = np.random.default_rng([7, start])
    t = rng.uniform(-2, 2, count)
    curve = np.column_stack([np.cos(3 * t), np.sin(2 * t), t])
    return (curve + 0.1 * rng.standard_normal(curve.shape)).astype(np.float32)


def write(path: Path, n: int) -> None:
    """A Parquet file of n rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [f"x{i}" for i in range(COLUMNS)]
    free = shutil.disk_usage(path.parent).free
    if free < 2 * 4 * COLUMNS * n:
        raise SystemExit(f"{path.parent} has {free / 1e9:.1f} GB free: twice the file is needed.")
    with pq.ParquetWriter(path, pa.schema([(name, pa.float32()) for name in names])) as file:
        for start in range(0, n, GROUP_ROWS):
            rows = generate(start, min(GROUP_ROWS, n - start))
            file.write_table(pa.table(dict(zip(names, rows.T, strict=True))))


def fit(job: dict) -> dict:
    """The fit of one process: seconds, peak memory and a digest of all numbers of the model."""
    from mercer import KernelPCA
    from mercer.bases import Landmarks
    from mercer.fitting import checkpoint

    checkpoint.EVERY = STATE_SECONDS
    model = KernelPCA(
        RANK, kernel="rbf", gamma="median", basis=Landmarks(LANDMARKS), memory=MEMORY,
        random_state=0, checkpoint=job["checkpoint"], n_jobs=job["threads"],
    )  # fmt: skip
    warm = KernelPCA(RANK, kernel="rbf", basis=Landmarks(LANDMARKS), random_state=0)
    warm.fit(generate(0, 5000))  # what is imported late counts for nobody
    before, others, start = memory_now(), OtherWork(), time.perf_counter()
    cpu = time.process_time()
    reset_peak()
    model.fit(job["data"])
    seconds = time.perf_counter() - start
    low, high = model.certificate_.captured_variance
    return {
        "seconds": seconds,
        "cpu": time.process_time() - cpu,
        "peak_mb": (memory_peak() - before) / MB,
        "others": others.cores(),
        "captured": [float(low), float(high)],
        "digest": digest(model),
    }


def digest(model) -> str:
    """Of eigenvalues, landmarks, directions and bounds, to the bit."""
    certificate, expansion = model.certificate_, model.expansion_
    total = hashlib.sha256()
    for array in (model.eigenvalues_, model.landmarks_, expansion.frame, expansion.metric,
                  certificate.eigenvalue_lower, certificate.eigenvalue_upper):  # fmt: skip
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()


def killed(script: str, job: dict, after: float) -> int:
    """Start the fit, end it by SIGKILL after some seconds; the files of its checkpoint then."""
    command = [sys.executable, script, "--worker", json.dumps(job)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(after)
    if process.poll() is None:
        os.kill(process.pid, signal.SIGKILL)
    process.wait()
    folder = Path(job["checkpoint"])
    return len(list(folder.glob("*.safetensors"))) if folder.is_dir() else 0


def run(script: str, n: int, steps: list[str], folder: Path, threads: Any, limit: float) -> dict:
    """The steps asked for; what a step finds is kept in the folder for the next."""
    data, notes = folder / "rows.parquet", folder / "notes.json"
    known = json.loads(notes.read_text()) if notes.exists() else {"n": n}
    job = {"contender": "parquet", "data": str(data), "threads": threads}
    job["checkpoint"] = str(folder / "run.ckpt")
    if "write" in steps:
        start = time.perf_counter()
        write(data, n)
        known["write"] = {"seconds": time.perf_counter() - start, "mb": data.stat().st_size / MB}
    if "fit" in steps:
        known["fit"] = run_isolated(script, job, limit)
    if "resume" in steps:
        states = killed(script, job, 2 + known["fit"]["seconds"] / 2)
        resumed = run_isolated(script, job, limit)
        same = resumed.get("digest") == known["fit"]["digest"]
        known["resume"] = resumed | {"states": states, "same": same}
    notes.write_text(json.dumps(known))
    show(n, known)
    return known


def show(n: int, known: dict) -> None:
    """One line a step."""
    rows = []
    for step in ("fit", "resume"):
        found = known.get(step, {})
        if "seconds" in found:
            same = {True: "to the bit", False: "NO"}.get(found.get("same"), "")
            seconds, others = found["seconds"], found["others"] or 0
            rows.append([step, f"{seconds:.1f}", f"{n / seconds:,.0f}", f"{found['cpu']:.1f}",
                         f"{found['peak_mb']:.0f}", f"{others:.2f}", same])  # fmt: skip
        elif found:
            rows.append([step, found["error"], *[""] * 5])
    size = known.get("write", {}).get("mb", 0)
    head = ["", "seconds", "rows/s", "cpu", "peak MB", "others", "the same"]
    print_table(f"{n:,} rows, {size:,.0f} MB of Parquet", head, rows)
