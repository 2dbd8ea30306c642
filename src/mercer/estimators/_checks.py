"""Checks of rows in memory: matrices of finite numbers, with errors that say where the fault is.

Arrays and CSR matrices go through scikit-learn's checks, unless one look shows that those would
leave them as they are; memmaps are read in blocks, tensors looked at on their device.
"""

from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from ..compute.numbers import check_meaning, reason

# Rows checked at a time when a file on disk is too large to check at once.
CHECK_ROWS = 65536
# Sums of a kernel's values that float64 holds, and the smallest value with all its digits.
LARGEST_SUM, SMALLEST_VALUE = 1e305, 1e-290


def valid_rows(estimator, X, **options):
    """X as an array or CSR matrix of finite floats, its columns noted or compared.

    As `sklearn.utils.validation.validate_data`, whose options it takes, with dates, masked and
    complex values refused, and errors that say where the fault is and what to do.
    """
    if is_plain(X, options) and same_columns(estimator, X, options.get("reset", True)):
        return np.array(X) if options.get("copy") else X
    return converted(partial(validate_data, estimator), X, options)


def checked_array(X, **options):
    """X as `sklearn.utils.check_array` gives it, with our errors."""
    return converted(check_array, X, options)


def converted(check, X, options):
    """What a check of scikit-learn makes of X, or an error that says where the fault is."""
    check_meaning(X, options.get("input_name", "X"))
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            return check(X, **options)
    except (ValueError, TypeError, OverflowError) as error:
        raise reason(X, error, options.get("input_name", "X")) from error


def is_plain(X, options: dict[str, Any]) -> bool:
    """Whether X is a matrix of finite floats and nothing more, as scikit-learn would leave it.

    Its own checks allow for all kinds of data, and take longer than the kernel of a hundred rows.
    """
    types = options.get("dtype")
    types = types if isinstance(types, list) else [types]
    if type(X) is not np.ndarray or X.ndim != 2 or X.dtype.type not in types:
        return False
    if not X.dtype.isnative or X.shape[0] < options.get("ensure_min_samples", 1) or not X.size:
        return False
    with np.errstate(all="ignore"):
        return bool(np.isfinite(X.sum()))  # a sum that overflows is looked at entry by entry


def same_columns(estimator, X: np.ndarray, reset: bool) -> bool:
    """Note the columns of an array without names, or whether they are those of the fit."""
    known = vars(estimator)
    if "feature_names_in_" in known:
        return False
    if reset:
        estimator.n_features_in_ = X.shape[1]
    return known.get("n_features_in_") == X.shape[1]


def check_file(X, least_rows: int = 1) -> None:
    """Raise ValueError unless a memmap is a matrix of finite numbers; read in blocks."""
    check_shape(X, X.dtype.kind in "biuf", least_rows)
    for start in range(0, X.shape[0], CHECK_ROWS):
        if not np.isfinite(X[start : start + CHECK_ROWS]).all():
            raise ValueError(
                f"Input X contains NaN or infinity in rows {start} to {start + CHECK_ROWS}. "
                "Remove or fill those rows first."
            )


def check_tensor(estimator, X, reset: bool, *, least: int = 2, copy: bool = False):
    """A matrix of finite numbers that lives on a device, checked there, as a torch tensor.

    At least `least` rows in a fit; with `copy` in memory of its own.
    """
    import torch

    X = X.detach() if isinstance(X, torch.Tensor) else torch.from_dlpack(X)
    check_shape(X, not X.dtype.is_complex, least if reset else 1)
    if X.dtype not in (torch.float32, torch.float64):
        X = X.to(torch.float64)
    elif copy:
        X = X.clone()
    if not bool(torch.isfinite(X).all()):
        raise ValueError("Input X contains NaN or infinity. Remove or fill those rows first.")
    return validate_data(estimator, X, reset=reset, skip_check_array=True)


def check_shape(X, is_numbers: bool, least_rows: int) -> None:
    """Raise ValueError unless X is a matrix of numbers with that many rows and a column."""
    if X.ndim != 2 or not is_numbers:
        raise ValueError(
            f"Expected a 2D array of numbers, got a {X.ndim}D array of type {X.dtype} instead."
        )
    if X.shape[0] < least_rows or X.shape[1] < 1:
        raise ValueError(
            f"Found array with shape {tuple(X.shape)} while a minimum of {least_rows} rows and 1 "
            "column is required."
        )


def check_gram(K) -> None:
    """Raise ValueError unless K is a square symmetric matrix."""
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"A precomputed kernel must be a square matrix, n_samples x n_samples, and X has "
            f"shape {tuple(K.shape)}. Pass the kernel between all training rows, or name a "
            "kernel to have it computed from the rows."
        )
    n, largest, gap = K.shape[0], 0.0, 0.0
    for start in range(0, K.shape[0], 1024):
        rows = slice(start, start + 1024)
        block, mirror = K[rows], K[:, rows].T
        difference = abs(block - mirror)
        gap = max(gap, difference.max())
        largest = max(largest, abs(block).max())
    if not largest * n < LARGEST_SUM or 0 < largest < SMALLEST_VALUE:
        raise ValueError(
            f"The precomputed kernel holds values of up to {largest:.1e}, and float64 does not "
            f"hold sums of {n:,} of them with all digits. Scale it, K / np.abs(K).max()."
        )
    if gap > 1e-5 * largest:
        raise ValueError(
            f"A precomputed kernel must be symmetric, and entries across the diagonal differ by "
            f"up to {gap:.3g}. Pass (K + K.T) / 2 if that is rounding."
        )
