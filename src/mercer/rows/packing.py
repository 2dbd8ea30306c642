"""Many small chunks in few tasks: what makes neighbors is run one after the other within one task.

A scheduler spends about a millisecond on a task, which for chunks of a few rows is far more than
the work. So the graph of an array is cut into groups of chunks that follow each other: what only
one group needs is packed into its task, and what several need (a file that was opened, an array
that is cut) stays a task of its own, so that nothing is made twice.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

# What several groups need.
SHARED = -1


class Pack:
    """Chunks that are made within one task.

    Parameters
    ----------
    nodes : list of graph nodes
        In an order in which they can be made.
    keys : list
        Of the chunks.
    inputs : list
        Keys of what is given: made by other tasks.
    each : callable
        ``each(chunk, number)`` is kept of every chunk, in their order.
    finish : callable
        ``finish(kept)`` is the result.
    first : int
        The number of the first chunk.
    """

    def __init__(self, nodes, keys, inputs, each, finish, first):
        self.nodes, self.keys, self.inputs = nodes, keys, inputs
        self.each, self.finish, self.first = each, finish, first

    def __call__(self, *values: Any) -> Any:
        """Make the chunks; what is not needed any more is let go."""
        made = dict(zip(self.inputs, values, strict=True))
        uses = Counter(key for node in self.nodes for key in node.dependencies)
        uses.update(self.keys)
        places = {key: number for number, key in enumerate(self.keys)}
        kept: list[Any] = [None] * len(self.keys)

        def used(key):
            uses[key] -= 1
            if not uses[key]:
                made.pop(key)

        def take(key):
            if key in places:
                kept[places[key]] = self.each(made[key], self.first + places[key])
                used(key)

        for key in self.inputs:
            take(key)
        for node in self.nodes:
            made[node.key] = node(made)
            for key in node.dependencies:
                used(key)
            take(node.key)
        return self.finish(kept)


def packed(
    array: Any, groups: Sequence[range], each: Callable, finish: Callable
) -> tuple[dict, list] | None:
    """Tasks that other tasks need, and for every group of chunks one; None where little is saved.

    Returns
    -------
    shared : dict of key to graph node
    packs : list of tuple
        ``(Pack, *keys)``: a task as Dask's graphs have them.
    """
    from dask._task_spec import convert_legacy_graph

    keys = [(array.name, number, 0) for number in range(array.numblocks[0])]
    given = dict(array.__dask_graph__())
    if any(map(is_future, given.values())):
        return None  # made already, where the scheduler knows of it
    graph = convert_legacy_graph(dict(array.__dask_optimize__(array.__dask_graph__(), keys)))
    parts = [[keys[number] for number in group] for group in groups]
    owners = owners_of(graph, parts)
    shared = {key: node for key, node in graph.items() if owners.get(key) == SHARED}
    if 2 * (len(shared) + len(parts)) > len(owners):
        return None
    packs = []
    for number, (part, group) in enumerate(zip(parts, groups, strict=True)):
        nodes, inputs = made_by(graph, part, owners, number)
        packs.append((Pack(nodes, part, inputs, each, finish, group[0]), *inputs))
    return shared, packs


def owners_of(graph: dict, parts: list[list]) -> dict:
    """For every key that is needed the number of the only part that needs it, or SHARED."""
    owners: dict = {}
    for number, keys in enumerate(parts):
        left = [(key, number) for key in keys]
        while left:
            key, who = left.pop()
            known = owners.get(key)
            if known in (who, SHARED):
                continue
            # What a second part needs is shared, and so is all that makes it.
            owners[key] = who = who if known is None else SHARED
            left += [(other, who) for other in graph[key].dependencies]
    return owners


def made_by(graph: dict, keys: list, owners: dict, number: int) -> tuple[list, list]:
    """The nodes of one part in an order in which they can be made, and the keys it is given."""
    nodes, inputs, seen = [], [], set()
    left = [(key, False) for key in reversed(keys)]
    while left:
        key, ready = left.pop()
        if ready:
            nodes.append(graph[key])
            continue
        if key in seen:
            continue
        seen.add(key)
        if owners[key] != number:
            inputs.append(key)
            continue
        left.append((key, True))
        left += [(other, False) for other in graph[key].dependencies]
    return nodes, inputs


def is_future(value: Any) -> bool:
    """Whether a value of a graph stands for what a cluster holds, of any library."""
    return hasattr(value, "add_done_callback") or getattr(value, "__dask_future__", False) is True
