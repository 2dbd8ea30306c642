"""Rows that are not an array in memory: which way a fit goes, and scores written as they come."""

import math
from collections.abc import Iterator
from contextlib import closing, contextmanager
from os import PathLike
from pathlib import Path
from typing import ClassVar

import numpy as np
from sklearn.utils._set_output import _get_output_config, _wrap_data_with_container
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from ..bases import BASES, AllPoints
from ..compute import format_bytes, is_sparse, parse_bytes, to_numpy
from ..compute.cluster import is_dask
from ..exceptions import TableWarning, tell
from ..files import (
    RowSource,
    is_arrow,
    is_store,
    is_table,
    of_kind,
    open_sink,
    open_source,
    read_blocks,
    table_like,
)
from ..files.base import joined
from ..progress.rows import RowBar
from .out_of_core import SourceFit, block_rows

# Share of the budget that rows read from a file may take when all are needed at once.
ROWS_SHARE = 4


def is_source(X) -> bool:
    """Whether X is read in blocks: a path, a store, an iterator or a function, and no array."""
    if isinstance(X, str | PathLike | RowSource | Iterator) or is_store(X) or is_arrow(X):
        return True
    return callable(X) and not hasattr(X, "shape")


def is_read_in_blocks(model, X) -> bool:
    """Whether a fit of the model to X goes by blocks; a memmap does where the basis is small."""
    return is_source(X) or (isinstance(X, np.memmap) and not wants_points(model))


def wants_points(model) -> bool:
    """Whether all points are, or may be, the basis."""
    return isinstance(model.basis, AllPoints) or model.basis in ("auto", "points")


def fit_source(model, X):
    """Fit the model to whatever `open_source` takes.

    Landmarks and random features read it in blocks. The exact method needs an array: a ``.npy``
    file serves as one; of any other source the rows are read if they take no more than a fourth
    of the budget. Where they take more, ``basis="auto"`` turns to landmarks.
    """
    model._validate_params()
    source = open_source(X)
    for note in source.notes:
        tell(note, TableWarning)
    memory = parse_bytes(model.memory)
    rows = exact_rows(model, source, memory) if wants_points(model) else None
    if rows is not None:
        model.fit(rows)
    else:
        recipe, reason = model.basis, None
        if recipe == "auto":
            recipe, reason = "landmarks", f"the rows do not fit memory={format_bytes(memory)}"
        model._dtype = source.dtype
        model.n_features_in_ = source.n_columns
        recipe = BASES[recipe]() if isinstance(recipe, str) else recipe
        SourceFit(model, source, recipe, reason).run()
    set_names(model, source)
    return model


def exact_rows(model, source: RowSource, memory: int):
    """The rows as one array for the exact method; None where landmarks must do."""
    exact = model.basis != "auto"
    on_disk = isinstance(source.array, np.memmap)
    if source.array is not None and (exact or not on_disk or source.array.nbytes <= memory):
        return source.array
    rows = read_within(source, memory // ROWS_SHARE)
    if rows is not None:
        return rows
    if model._is_precomputed() or exact:
        raise ValueError(
            f"basis={model.basis!r} needs all rows of {source.name} at once, and memory="
            f"{format_bytes(memory)} is too small to read them. Save them as a .npy file, which "
            "is used from disk, raise memory, or use basis='landmarks'."
        )
    if not source.repeatable:
        raise ValueError(
            f"The rows of {source.name} do not fit memory={format_bytes(memory)}, and it can be "
            "read only once. Pass a function that returns a fresh iterator, or a file."
        )
    return None


def read_within(source: RowSource, room: int):
    """All rows if they take no more than `room` bytes, else None."""
    width = source.n_columns * source.dtype.itemsize
    if source.n_rows is not None and source.n_rows * width > room:
        return None
    blocks, count = [], 0
    with closing(source.blocks(max(1, min(65536, room // width)))) as reading:
        for block in reading:
            blocks.append(block)
            count += block.shape[0]
            if count * width > room:
                return None
    return joined(blocks) if blocks else np.empty((0, source.n_columns), source.dtype)


class SourceMixin:
    """Scores and errors of rows that are read in blocks, for an estimator that has them of arrays.

    Its methods are no transformers to scikit-learn's `set_output`, which cannot wrap a path.
    """

    #: Where scores go is no metadata of the rows.
    __metadata_request__transform: ClassVar[dict] = {"out": UNUSED}

    def transform(self, X, out=None):
        """Scores of the rows of X along the components.

        Parameters
        ----------
        X : array-like, sparse CSR matrix, memmap, path or other source of (n, n_features)
            With ``kernel="precomputed"`` the kernel between new and training rows,
            (n, n_samples).
        out : str, Path or None, default=None
            A ``.npy``, ``.parquet`` or ``.csv`` file to write the scores to, block by block. It
            appears when all are written, and not at all if something fails.

        Returns
        -------
        array of shape (n, n_components), or the Path of the file
            Of Arrow data an Arrow table, of a polars frame a polars frame, unless `set_output`
            asks for something else.
        """
        if out is not None:
            return write_scores(self, X, out)
        if not is_source(X):
            return super().transform(X)  # type: ignore[misc]
        with scanned(self, X, "scores", scores_of) as (source, scores):
            S = gather(scores, (self._n_features_out,), source, parse_bytes(self.memory))
        return as_table(self, S, X)

    def reconstruction_error(self, X):
        """Squared feature-space distance of every row to its reconstruction, (n,).

        Zero for rows that the components explain, large for rows unlike the training data.
        """
        if not is_source(X):
            return super().reconstruction_error(X)  # type: ignore[misc]
        with scanned(self, X, "errors", errors_of) as (source, errors):
            return gather(errors, (), source, parse_bytes(self.memory))


def as_table(model, S, X):
    """Scores in the container that `set_output` asks for, else in the kind that the rows had."""
    if is_arrow(X) and _get_output_config("transform", model)["dense"] == "default":
        return table_like(S, model.get_feature_names_out(), X)
    return _wrap_data_with_container("transform", S, X, model)


def write_scores(model, X, out) -> Path:
    """Write the scores of all rows to a file: whole, or not at all."""
    if is_dask(X):
        raise ValueError(
            f"out={str(out)!r} is written from here, and X is on a cluster. Leave it out and write "
            "from there, for example transform(X).to_zarr('scores.zarr')."
        )
    if isinstance(X, str | PathLike) and same_file(X, out):
        raise ValueError(f"out={str(out)!r} is the file that is read. Give another name.")
    rows = X if is_source(X) else model._validate(X, reset=False)
    with scanned(model, rows, "scores", scores_of) as (source, scores):
        names = model.get_feature_names_out()
        with open_sink(out, len(names), source.dtype, names) as sink:
            for S in scores:
                sink.write(S)
    return Path(out)


@contextmanager
def scanned(model, X, title: str, function):
    """A source, and ``function(expansion, block)`` for all its blocks in the type of the rows."""
    check_is_fitted(model)
    source = open_like_training(model, X)
    # Kernel tiles take rows of one kind, and landmarks may be dense where new rows are not.
    as_sparse = is_sparse(model.expansion_.basis.points)

    def results(blocks):
        for block in blocks:
            block = of_kind(block, as_sparse)
            model.kernel_.check(block)
            yield to_numpy(function(model.expansion_, block)).astype(source.dtype, copy=False)

    reading = closing(read_blocks(source, block_rows(source, parse_bytes(model.memory))))
    with RowBar(model.verbose) as progress, reading as blocks:
        yield source, results(progress.over(blocks, title, source.n_rows))


def scores_of(expansion, block):
    """Coordinates along the directions, (k, r)."""
    return expansion.scores(block)


def errors_of(expansion, block):
    """Squared distances to the reconstructions, (k,)."""
    return expansion.squared_errors(block)


def open_like_training(model, X) -> RowSource:
    """The source, with the columns that the model was fitted to where both have names."""
    names = list(getattr(model, "feature_names_in_", []))
    source = open_source(X)
    if names and is_table(X) and source.columns not in (None, names):
        source = open_source(X, columns=names)
    if source.n_columns != model.n_features_in_:
        raise ValueError(
            f"{source.name} has {source.n_columns} columns, and the model was fitted to "
            f"{model.n_features_in_}."
        )
    if names and source.columns not in (None, names):
        raise ValueError(
            f"{source.name} has the columns {source.columns}, and the model was fitted to "
            f"{names}. Open it with columns= these."
        )
    return source


def gather(parts, tail: tuple[int, ...], source: RowSource, memory: int) -> np.ndarray:
    """Results of all rows in one array, (n, *tail), or an error where they outgrow the budget."""
    width = math.prod(tail) * source.dtype.itemsize
    check_room(source.n_rows or 0, width, memory)
    found, count = [np.empty((0, *tail), source.dtype)], 0
    for part in parts:
        found.append(part)
        count += part.shape[0]
        check_room(count, width, memory)
    return np.concatenate(found)


def check_room(rows: int, width: int, memory: int) -> None:
    """Raise ValueError where results of so many bytes a row do not fit."""
    if rows * width > memory:
        raise ValueError(
            f"The results of {rows:,} rows take {format_bytes(rows * width)}, and memory allows "
            f"{format_bytes(memory)}. Raise memory, or write scores to a file: "
            "transform(..., out='scores.npy')."
        )


def set_names(model, source: RowSource) -> None:
    """Names of the columns as scikit-learn keeps them, where the source has names."""
    if source.columns is not None:
        model.feature_names_in_ = np.array(source.columns, dtype=object)
    elif hasattr(model, "feature_names_in_"):
        del model.feature_names_in_


def same_file(source, out) -> bool:
    """Whether a path that is read is the one to be written."""
    return Path(out).exists() and Path(source).exists() and Path(source).samefile(out)
