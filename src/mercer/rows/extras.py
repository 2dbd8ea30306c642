"""Columns beside rows, a target or weights: from any source of rows, or a column of X."""

from os import PathLike
from typing import Any

import numpy as np

from ..compute import is_sparse, parse_bytes, stack_rows, to_numpy
from ..compute.arrays import Array, has_columns, is_dask
from ..compute.numbers import check_meaning, check_unmasked, is_single
from ..files import RowSource, is_cluster_table, is_table, open_source
from ..files.arrays import AS_ROWS, called, mapped, read_npz
from ..files.base import COUNTER, NO_COLUMNS, check_room, listed
from ..files.opening import existing
from .blocks import WHOLE_SHARE, is_source
from .frames import extra_columns


def with_extras(X: Array, memory: Any = None, **given: Any) -> tuple[Any, ...]:
    """X, and what was given for each of its rows as arrays, by name: a target, weights.

    Text that names a column of X is that column, which is then no part of X; other text is a path.
    Labels and whole numbers stay what they are. Arrays and lists come back as they are.
    """
    if all(value is None or type(value) is np.ndarray for value in (X, *given.values())):
        return X, *given.values()
    if is_cluster_table(X):
        return extra_columns(X, given)
    picked: dict[str, Any] = {}
    named = {title: value for title, value in given.items() if isinstance(value, str)}
    if named:
        X, picked = without_columns(X, named, memory)
    for title, value in given.items():
        if title not in picked:
            try:
                picked[title] = values_of(value, parse_bytes(memory) // WHOLE_SHARE, title)
            except FileNotFoundError as error:
                names = names_of(X, memory)
                raise ValueError(
                    f"{title}={value!r} is no file, and no column of X"
                    + (f", whose columns are {listed(map(repr, names))}." if names else ".")
                    + f" Pass {title} as an array, a path, or the name of a column of X."
                ) from error
    return X, *(picked[title] for title in given)


def names_of(X: Array, memory: Any = None) -> list[str]:
    """The names of all columns of X; none where it has no names."""
    if isinstance(X, RowSource) or is_table(X):
        opened = isinstance(X, RowSource)
        source = X if opened else open_source(X, columns=NO_COLUMNS, memory=memory)
        return [*(source.columns or ()), *source.reasons]
    return [name for name in X.columns if isinstance(name, str)] if has_columns(X) else []


def without_columns(X: Array, wanted: dict, memory: Any = None) -> tuple[Any, dict[str, Any]]:
    """X without the columns that are asked for by name, and their values by what they are for."""
    names = names_of(X, memory)
    wanted = {title: name for title, name in wanted.items() if name in names}
    if not wanted:
        return X, {}
    taken = list(dict.fromkeys(wanted.values()))
    if not (isinstance(X, RowSource) or is_table(X)):
        values = {title: values_of(X[name], 0, title) for title, name in wanted.items()}
        return X.drop(columns=taken), values
    source = open_source(X, memory=memory)
    source.check_repeatable(
        f"{listed(map(repr, taken))} of its columns are asked for beside the rows"
    )
    columns = source.others(taken)
    rest = [name for name in source.columns or () if name not in taken]
    if len(rest) < len(source.columns or ()):
        if isinstance(X, RowSource):
            raise ValueError(
                f"{listed(map(repr, taken))} is a column of the rows and asked for beside them. "
                f"Open {source.name} with columns= the others."
            )
        X = open_source(X, columns=rest, memory=memory)
    return X, {title: columns[name] for title, name in wanted.items()}


def values_of(value: Any, room: int, title: str) -> Any:
    """The values as one array of any type, read from their source; an array is unchanged.

    ValueError where that takes more than `room` bytes.
    """
    value = value.compute() if is_dask(value) else value
    check_unmasked(value, title)
    if value is None or isinstance(value, np.ndarray):
        return value
    if "__array__" in dir(value):
        is_column = title == "sample_weight" and "columns" in dir(value) and value.shape[1:] == (1,)
        return np.asarray(value)[:, 0] if is_column else value
    if not is_source(value):
        return value
    if isinstance(value, str | PathLike) and not is_table(value):
        path = existing(value)
        if path.suffix.lower() in (".npy", ".npz"):
            return mapped(path) if path.suffix.lower() == ".npy" else read_npz(path, room)
        value = open_source(path, memory=room)  # which says why not
    needed = f"{title}, which is needed as one array,"
    if isinstance(value, RowSource) or is_table(value):
        opened = isinstance(value, RowSource)
        source = value if opened else open_source(value, columns=NO_COLUMNS, memory=room)
        names = [name for name, why in source.reasons.items() if why != COUNTER]
        names = list(source.columns or ()) if opened else names
        check_room(needed, 8 * (source.n_rows or 0) * source.n_columns, room, AS_ROWS)
        columns = [source.read()] if opened and not names else source.others(names).values()
        return np.column_stack(list(columns)) if len(names) > 1 else next(iter(columns))
    blocks, size = [], 0
    for block in called(value, title) if callable(value) else value:
        check_meaning(block, title)
        if is_single(block):
            raise ValueError(f"A block of {title} is of type {type(block).__name__}. Pass arrays.")
        blocks.append(block if is_sparse(block) else np.atleast_1d(to_numpy(block)))
        size += blocks[-1].data.nbytes if is_sparse(block) else blocks[-1].nbytes
        check_room(needed, size, room, AS_ROWS)
    if not blocks:
        raise ValueError(f"{title} gave no rows. Pass one value for each row of X.")
    if len({block.shape[1:] for block in blocks}) > 1:
        shapes = " and ".join(sorted({str(block.shape) for block in blocks})[:2])
        raise ValueError(
            f"Blocks of {title} have the shapes {shapes}. Pass blocks of as many columns."
        )
    return stack_rows(blocks)
