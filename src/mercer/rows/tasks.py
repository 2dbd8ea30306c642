"""Work on a cluster: tasks with an engine of their own, sums in a tree, small chunks in one task.

Dask does the work, so whichever scheduler is active is used: threads, processes, a
`LocalCluster` or any `distributed.Client`. A task runs the local engine on one chunk of rows
or on two. Nothing is scattered: every piece can be made again from the graph, so that a
worker that dies costs a retry.
"""

import sys
import uuid
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial, reduce
from graphlib import TopologicalSorter
from itertools import chain, pairwise
from operator import add
from typing import Any

import numpy as np

from ..compute.engine import (
    FREE_SHARE,
    TiledEngine,
    available_memory,
    count_threads,
    make_engine,
    parse_bytes,
)

# Parts of a sum that one task adds: few enough to hold, many enough that trees stay flat.
FAN_IN = 8


@dataclass(frozen=True)
class Workers:
    """What tasks may take.

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
    def of(cls, collection, memory=None, n_jobs=None, device=None) -> "Workers":
        """The workers of the scheduler that would compute a collection now."""
        from dask.base import get_scheduler

        client: Any = getattr(get_scheduler(collections=[collection]), "__self__", None)
        if not hasattr(client, "scheduler_info"):  # one of Dask's own, in this process
            cores = pool_size()
            return cls(cores, available_memory() // cores, memory, n_jobs, device)
        threads = client.nthreads()
        workers = client.scheduler_info().get("workers", {}).values()
        limits = [worker.get("memory_limit") or available_memory() for worker in workers]
        least = min(limits, default=available_memory())
        most = max(threads.values(), default=1)
        return cls(max(1, sum(threads.values())), least // most, memory, n_jobs, device)

    def engine(self, tasks: int) -> Callable[[], TiledEngine]:
        """A function that makes the engine of each task, called within the task."""
        threads = self.n_jobs or max(1, self.cores // max(tasks, 1))
        return partial(task_engine, self.memory, count_threads(threads), self.device)


def task_engine(memory: Any, threads: int, device: Any = None) -> TiledEngine:
    """The engine of the task that calls this: its share of the worker's budget, or its device."""
    if device not in (None, "cpu"):
        return make_engine(memory=memory, device=device)
    worker = None
    if "distributed" in sys.modules:
        from distributed import get_worker

        with suppress(ValueError):  # where another scheduler runs this task
            worker = get_worker()
    if worker is None:
        slots, budget = pool_size(), parse_bytes(memory)
    else:
        slots = worker.state.nthreads
        limit = worker.memory_manager.memory_limit
        budget = int(FREE_SHARE * limit) if memory is None and limit else parse_bytes(memory)
    at_once = max(1, slots // threads)
    return make_engine(memory=budget // at_once, threads=threads)


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


def run(parts) -> tuple:
    """Compute Dask collections with whichever scheduler is active."""
    import dask

    with warnings.catch_warnings():
        # Landmarks and block vectors are part of the graph on purpose: what is scattered
        # instead is lost with the worker that holds it.
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        return dask.compute(*parts)


def tree_sum(parts):
    """The delayed sum of delayed parts, a few at a time and always in the same order."""
    total = delayed(partial(reduce, add))
    while len(parts) > 1:
        parts = [total(parts[i : i + FAN_IN]) for i in range(0, len(parts), FAN_IN)]
    return parts[0]


def filled(array) -> list[tuple[slice, Any]]:
    """Row numbers and delayed rows of the chunks that are not empty."""
    ends = np.cumsum((0, *array.chunks[0])).tolist()
    parts = zip(pairwise(ends), array.to_delayed().ravel(), strict=True)
    return [(slice(start, stop), block) for (start, stop), block in parts if stop > start]


def empty_like(array) -> Any:
    """No rows of the kind that an array's chunks are of."""
    from dask.array.utils import meta_from_array

    return meta_from_array(array)


def take_rows(array, index) -> Any:
    """Rows by number, brought here, in the order of `index`."""
    index = np.asarray(index)
    order = np.argsort(index, kind="stable")  # neighbors come from few chunks
    return run([array[index[order]]])[0][np.argsort(order)]


def neighbors(lengths: Sequence[int], rows: int) -> list[range]:
    """Neighboring chunks, grouped until they have `rows` rows; none is cut."""
    groups, first, held = [], 0, 0
    for number, length in enumerate(lengths):
        if held and held + length > rows:
            groups.append(range(first, number))
            first, held = number, 0
        held += length
    return [*groups, range(first, len(lengths))] if len(lengths) else []


def grouped(array, groups: Sequence[range], finish: Callable) -> list:
    """One delayed task a group: ``finish(chunks, first)``, `first` the number of the first one.

    A scheduler spends about a millisecond on a task, which for chunks of a few rows is far more
    than the work. So what only one group needs is made within its task. What several need (a file
    that was opened, an array that is cut), and what a cluster holds already, stays a task of its
    own, so that nothing is made twice.
    """
    import dask
    from dask.delayed import Delayed
    from dask.optimization import cull

    held = set()
    if "distributed" in sys.modules:
        from distributed import futures_of

        held = {future.key for future in futures_of(array)}
    if not held:  # else it would drop what a cluster holds
        (array,) = dask.optimize(array)
    chunks = [key for (key,) in array.__dask_keys__()]
    graph, needs = cull(dict(array.__dask_graph__()), chunks)
    needs |= dict.fromkeys(held.intersection(needs), ())  # a future has the name of its result
    parts = [[chunks[number] for number in group] for group in groups]
    # For every key the number of the only part that needs it; None where several do.
    owners: dict = {key: number for number, part in enumerate(parts) for key in part}
    for key in reversed([*TopologicalSorter(needs).static_order()]):
        owner = owners[key] = None if key in held else owners[key]
        for other in needs[key]:
            owners[other] = owner if owners.get(other, owner) == owner else None
    private: list[dict] = [{} for _ in parts]
    shared: dict = {}
    for key, owner in owners.items():
        (shared if owner is None else private[owner])[key] = graph[key]
    tasks = []
    for group, part, made in zip(groups, parts, private, strict=True):
        wanted = dict.fromkeys([*part, *chain.from_iterable(needs[key] for key in made)])
        inputs = [key for key in wanted if key in shared]
        make = delayed(partial(run_group, made, part, inputs))
        tasks.append(make([Delayed(key, shared) for key in inputs], finish, group.start))
    return tasks


def run_group(graph: dict, keys: list, inputs: list, values, finish: Callable, first: int) -> Any:
    """Make the chunks of a group within the task that calls this."""
    import dask

    # As tasks that return them: a value that looks like a task would be run.
    made = {key: ([value].pop,) for key, value in zip(inputs, values, strict=True)}
    return finish(list(dask.get(graph | made, keys)), first)
