"""What every benchmark here shares: fresh processes, peak memory, tables, JSON and a plot.

A measurement runs in an interpreter of its own (``python script.py --worker '<json>'``), so that
no contender inherits another's threads, caches or heap. Nothing heavy is imported at the top:
what is loaded here would count as a contender's memory.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

MB = 1e6
# Fits shorter than this are repeated within the process and the best is taken.
SHORT_SECONDS, SHORT_FITS = 0.3, 7


def memory_now() -> int:
    """Resident bytes of this process."""
    return _status("VmRSS") or _peak_of_getrusage()


def memory_peak() -> int:
    """Largest resident bytes since :func:`reset_peak`, or since the start where it cannot reset.

    Linux hands the parent's ``ru_maxrss`` on to a child, so the kernel's own mark comes first.
    """
    return _status("VmHWM") or _peak_of_getrusage()


def reset_peak() -> None:
    """Start the high-water mark again (Linux only)."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _status(field: str) -> int:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(field)), 0)


def _peak_of_getrusage() -> int:
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def measure(fit: Callable[[Any], dict], X: Any, n_warm: int = 200) -> dict:
    """Seconds and peak megabytes of ``fit(X)`` beyond the data, with what it returns.

    A fit of a few rows comes first: it loads what the library imports late or compiles, whose
    time is not that of a fit. Its memory counts, since a user pays for it too.
    """
    reset_peak()
    before = memory_now()
    fit(X[:n_warm])
    seconds: list[float] = []
    others = OtherWork()
    while not seconds or (sum(seconds) < SHORT_SECONDS and len(seconds) < SHORT_FITS):
        start = time.perf_counter()
        result = fit(X)
        seconds.append(time.perf_counter() - start)
    own = {
        "seconds": min(seconds),
        "peak_mb": (memory_peak() - before) / MB,
        "process_mb": memory_peak() / MB,
        "others": others.cores(),
    }
    return own | result


class OtherWork:
    """Cores that other processes keep busy, on average since its making (Linux only).

    Threaded BLAS suffers far more from a busy core than its share of the time, so a table
    needs this number beside its times.
    """

    def __init__(self) -> None:
        self.start, self.ticks = time.perf_counter(), self._ticks()

    def cores(self) -> float | None:
        ticks = self._ticks()
        if ticks is None or self.ticks is None:
            return None
        busy = (ticks - self.ticks) / (time.perf_counter() - self.start)
        return max(0.0, round(busy, 2))

    @staticmethod
    def _ticks() -> float | None:
        """Processor seconds of everyone but this process and those it has waited for.

        Idle and waiting are no work.
        """
        try:
            fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
        except OSError:
            return None
        user, nice, system, _idle, _wait, interrupt, soft, steal = map(int, fields[:8])
        total = user + nice + system + interrupt + soft + steal
        own = os.times()
        children = own.children_user + own.children_system
        return total / os.sysconf("SC_CLK_TCK") - time.process_time() - children


def wait_for_quiet(patience: float) -> None:
    """Wait while others keep a tenth of a core busy, but no longer than so many seconds."""
    end = time.perf_counter() + patience
    while time.perf_counter() < end:
        others = OtherWork()
        time.sleep(0.5)
        if (others.cores() or 0) < 0.1:
            return


class Race:
    """Contenders on cases, each fit in its own process.

    Parameters
    ----------
    script : path of the benchmark, which must answer ``--worker '<json>'`` with a line of JSON.
    load : function of a case's name that returns its data.
    why_not : function (contender, n, done, limit) that returns a reason not to start it, or None.
    repeat, limit, patience : runs of each contender, seconds after which one is stopped,
        seconds to wait before each for a quiet machine.
    """

    def __init__(
        self,
        script: str,
        load: Callable,
        why_not: Callable,
        *,
        repeat: int,
        limit: float,
        patience: float,
    ) -> None:
        self.script, self.load, self.why_not = script, load, why_not
        self.repeat, self.limit, self.patience = repeat, limit, patience
        self.done: dict[str, tuple[int, float]] = {}

    @contextmanager
    def data(self, case: str, width: Callable[[Any], float]) -> Iterator[dict]:
        """A job with the case's data in a file, the way into another process."""
        import numpy as np

        X = self.load(case)
        n, d = X.shape
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "X.npy"
            np.save(path, X)
            yield {"case": case, "n": n, "d": d, "gamma": width(X), "data": str(path)}

    def run(self, job: dict, contenders: Sequence[str]) -> dict[str, dict]:
        """The best result of each; they take turns, so that a busy minute hits not only one."""
        rounds: dict[str, list[dict]] = {name: [] for name in contenders}
        for _ in range(self.repeat):
            for name, runs in rounds.items():
                # A failure would fail again, and noise matters little in a long run.
                if not runs or runs[0].get("seconds", self.limit) < self.limit / 5:
                    runs.append(self.start(job, name))
        return {name: best(runs) for name, runs in rounds.items()}

    def start(self, job: dict, contender: str, limit: float | None = None) -> dict:
        """One measurement, or the reason why there is none."""
        limit = limit or self.limit
        reason = self.why_not(contender, job["n"], self.done, limit)
        if reason:
            return {"error": reason}
        wait_for_quiet(self.patience)
        print(f"  {job['case']}: {contender}", file=sys.stderr, flush=True)
        result = run_isolated(self.script, job | {"contender": contender}, limit)
        if "seconds" in result or result["error"].startswith("over"):
            self.done[contender] = job["n"], result.get("seconds", limit)
        return result


def race_options(parser: argparse.ArgumentParser, work: Callable, patience: float = 0):
    """The options that races share, read; a process that was started as a worker ends here."""
    parser.add_argument("--limit", type=float, default=600, help="seconds for one process at most")
    parser.add_argument(
        "--patience", type=float, default=patience, help="seconds to wait for quiet"
    )
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--worker", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(work(options.worker)))
        raise SystemExit
    return options


def run_isolated(script: str, job: dict, limit: float) -> dict:
    """The result of a job in a fresh interpreter; ``{"error": ...}`` where there is none."""
    command = [sys.executable, script, "--worker", json.dumps(job)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return {"error": f"over {limit:.0f} s"}
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        return {"error": lines[-1][:200]}
    return json.loads(done.stdout.splitlines()[-1])


def best(results: Iterable[dict]) -> dict:
    """The fastest of the results without an error, with all times and the largest memory."""
    results = list(results)
    good = [result for result in results if "error" not in result]
    if not good:
        return results[0]
    fastest = min(good, key=lambda result: result["seconds"])
    memory = {key: max(result[key] for result in good) for key in ("peak_mb", "process_mb")}
    return fastest | memory | {"all_seconds": [result["seconds"] for result in good]}


def machine() -> dict:
    """What a reader needs to know of the machine: system, cores, versions."""
    from importlib.metadata import PackageNotFoundError, version

    versions = {}
    for package in ("numpy", "scipy", "scikit-learn", "mercer", "pykeops", "mlpack"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "versions": versions,
    }


def print_table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table on the terminal, the first column to the left and the others to the right."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for i, name in enumerate(header):
        table.add_column(name, justify="left" if i == 0 else "right", no_wrap=i == 0)
    for row in rows:
        table.add_row(*row)
    # A pipe has no width of its own, and a wrapped table cannot be read.
    console = Console()
    Console(width=max(console.width, 110)).print(table)


def write_json(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n")


def plot_times(path: Path, times: dict[str, dict[str, float]], title: str) -> None:
    """Seconds by case and contender as grouped bars on a logarithmic axis."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    contenders = list(dict.fromkeys(name for row in times.values() for name in row))
    width = 0.8 / max(len(contenders), 1)
    figure, axes = plt.subplots(figsize=(2 + 1.6 * len(times), 4.5), layout="constrained")
    colors = plt.get_cmap("tab20")
    for k, name in enumerate(contenders):
        bars = {i + k * width: row[name] for i, row in enumerate(times.values()) if name in row}
        axes.bar(list(bars), list(bars.values()), width, label=name, color=colors(k % 20))
    axes.set_xticks([i + 0.4 - width / 2 for i in range(len(times))], list(times), rotation=20)
    axes.set(yscale="log", ylabel="seconds to fit", title=title)
    axes.grid(axis="y", alpha=0.3)
    axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
    figure.savefig(path, dpi=130)
    plt.close(figure)
