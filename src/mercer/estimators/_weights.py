"""Weights of rows: checked once, and rows that count nothing left out."""

from typing import Any

import numpy as np

from ..compute import is_sparse, to_numpy
from ..rows import ArrayRows, Rows, is_dask


def checked_weights(sample_weight: Any, n: int, least: int = 2) -> np.ndarray | None:
    """Weights as numbers (n,), or an error that says what is wrong; None for all alike.

    A number stands for the same weight of every row. At least so many rows must count.
    """
    if sample_weight is None:
        return None
    w = np.asarray(to_numpy(sample_weight))
    if w.ndim == 0:
        w = np.full(n, w)
    if w.dtype.kind not in "biuf" or w.ndim != 1:
        raise ValueError(
            f"sample_weight must be a number for each row, and has shape {w.shape} and type "
            f"{w.dtype}."
        )
    if len(w) != n:
        raise ValueError(
            f"sample_weight.shape == {w.shape}, expected {(n,)}: a number for each of the {n} rows."
        )
    w = w.astype(float)
    if not np.isfinite(w).all():
        raise ValueError("sample_weight contains NaN or infinity. Give those rows a weight, or 0.")
    if (w < 0).any():
        raise ValueError(
            "Negative values in sample_weight: a row cannot count less than not at all. Use 0 to "
            "leave it out."
        )
    if np.count_nonzero(w) < least:
        raise ValueError(
            f"Only {np.count_nonzero(w)} of {n} values of sample_weight are not zero, and a "
            f"minimum of {least} rows that count is required."
        )
    return w


def weighted(rows: Rows, sample_weight: Any, precomputed: bool) -> tuple[Any, np.ndarray | None]:
    """The rows that count, and how often each of them does; only arrays leave others out."""
    if sample_weight is None:
        return rows, None
    brought = sample_weight.compute() if is_dask(sample_weight) else sample_weight
    w = checked_weights(brought, rows.count_rows())
    if precomputed and w is not None and not w.all():
        raise ValueError(
            "sample_weight has zeros, and rows of a precomputed kernel cannot be left out here. "
            "Leave them out before the fit."
        )
    return without_zeros(rows, w, all_points=False)


def without_zeros(
    rows: Rows, w: np.ndarray | None, all_points: bool
) -> tuple[Any, np.ndarray | None]:
    """An array without the rows that count nothing; sums over other rows take them as they are."""
    if w is None or w.all() or not (rows.in_memory or all_points):
        return rows, w
    if not rows.in_memory:
        raise ValueError(
            "sample_weight has zeros, and of all points of a cluster none can be left out. Leave "
            "them out before the fit, or use basis='landmarks'."
        )
    some = np.flatnonzero(w)
    array = rows.array  # type: ignore[attr-defined]
    kept = (
        array[some] if is_sparse(array) or isinstance(array, np.ndarray) else array[some.tolist()]
    )
    return ArrayRows(kept, rows.original, rows.memory), w[some]
