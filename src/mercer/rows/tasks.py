"""Work on a cluster: tasks with an engine of their own, and sums in a tree.

Dask does the work, so whichever scheduler is active is used: threads, processes, a
`LocalCluster` or any `distributed.Client`. A task runs the local engine on one chunk of rows
or on two. Nothing is scattered: every piece can be made again from the graph, so that a
worker that dies costs a retry.
"""

import sys
import uuid
import warnings
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

from ..compute.engine import TiledEngine, count_threads, make_engine
from ..compute.memory import FREE_SHARE, available_memory, parse_bytes

# Parts of a sum that one task adds: few enough to hold, many enough that trees stay flat.
FAN_IN = 8


@dataclass(frozen=True)
class Crew:
    """What tasks may take: bytes of every worker and threads of every task.

    Attributes
    ----------
    cores : int
        Tasks that run at the same time.
    core_memory : int
        Bytes there are for each of them.
    memory : int, str or None
        Budget of a worker's work arrays; None for half of what it has.
    n_jobs : int or None
        Threads of a task; None for those that are left when all cores have one.
    device : str, torch.device or None
        Where tasks compute: None for the cores of their worker, "cuda" for its GPU.
    """

    cores: int
    core_memory: int
    memory: Any = None
    n_jobs: int | None = None
    device: Any = None

    @classmethod
    def of(cls, collection, memory=None, n_jobs=None, device=None) -> "Crew":
        """The workers of the scheduler that would compute a collection now."""
        client = active_client(collection)
        if client is None:
            cores = pool_size()
            return cls(cores, available_memory() // cores, memory, n_jobs, device)
        threads = client.nthreads()
        workers = client.scheduler_info().get("workers", {})
        limits = [
            worker.get("memory_limit") or available_memory() for worker in workers.values()
        ] or [available_memory()]
        most = max(threads.values(), default=1)
        return cls(max(1, sum(threads.values())), min(limits) // most, memory, n_jobs, device)

    def engine(self, tasks: int):
        """How each of so many tasks makes its engine, to be called within it."""
        threads = self.n_jobs or max(1, self.cores // max(tasks, 1))
        return EngineRecipe(self.memory, count_threads(threads), self.device)


@dataclass(frozen=True)
class EngineRecipe:
    """Makes the engine of a task where the task runs."""

    memory: Any
    threads: int
    device: Any = None

    def __call__(self) -> TiledEngine:
        """The engine, with this task's share of what its worker has."""
        return _task_engine(self.memory, self.threads, self.device)


def _task_engine(memory, threads, device=None) -> TiledEngine:
    """The engine of the task that calls this: its share of the worker's budget, or its device."""
    if device not in (None, "cpu"):
        return make_engine(memory=memory, device=device)
    worker = _this_worker()
    if worker is None:
        slots, budget = pool_size(), parse_bytes(memory)
    else:
        slots = worker.state.nthreads
        limit = worker.memory_manager.memory_limit
        budget = int(FREE_SHARE * limit) if memory is None and limit else parse_bytes(memory)
    at_once = max(1, slots // threads)
    return make_engine(memory=budget // at_once, threads=threads)


def _this_worker():
    """The distributed worker that runs this task, or None."""
    if "distributed" not in sys.modules:
        return None
    from distributed import get_worker

    try:
        return get_worker()
    except ValueError:
        return None


def active_client(collection):
    """The distributed client that would compute a collection now, or None."""
    from dask.base import get_scheduler

    owner = getattr(get_scheduler(collections=[collection]), "__self__", None)
    return owner if hasattr(owner, "scheduler_info") else None


def pool_size() -> int:
    """Tasks that Dask's own schedulers run at the same time."""
    import dask

    if dask.config.get("scheduler", None) in ("sync", "synchronous", "single-threaded"):
        return 1
    return dask.config.get("num_workers", None) or dask.system.CPU_COUNT


def delayed(function, nout: int | None = None):
    """A function whose calls become tasks of their own, without hashing their arguments."""
    import dask

    return dask.delayed(function, pure=False, nout=nout)


def constant(value):
    """A value that travels once to every worker that needs it, however many tasks do."""
    import dask

    return dask.delayed(value, name=f"{type(value).__name__}-{uuid.uuid4().hex}", traverse=False)


def tree_sum(parts):
    """The delayed sum of delayed parts, a few at a time and always in the same order."""
    total = delayed(_total)
    while len(parts) > 1:
        parts = [total(parts[i : i + FAN_IN]) for i in range(0, len(parts), FAN_IN)]
    return parts[0]


def _total(parts):
    return reduce(add, parts)


def run(parts) -> tuple:
    """Compute delayed values with whichever scheduler is active."""
    import dask

    with warnings.catch_warnings():
        # Landmarks and block vectors are part of the graph on purpose: what is scattered
        # instead is lost with the worker that holds it.
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        return dask.compute(*parts)
