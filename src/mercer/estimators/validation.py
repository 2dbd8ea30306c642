"""Checks of input, and the way results go back to where the input came from."""

import numpy as np
from sklearn.utils.validation import validate_data

from ..compute import array_namespace, restore
from ..compute.arrays import dtype_in

# Rows checked at a time when a file on disk is too large to check at once.
CHECK_ROWS = 65536


def check_file(X, least_rows: int = 1) -> None:
    """Raise ValueError unless a memmap is a matrix of finite numbers; read in blocks."""
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise ValueError(
            f"Expected a 2D array of numbers, got a {X.ndim}D array of type {X.dtype} instead."
        )
    if X.shape[0] < least_rows or X.shape[1] < 1:
        raise ValueError(
            f"Found array with shape {X.shape} while a minimum of {least_rows} rows and 1 column "
            "is required."
        )
    for start in range(0, X.shape[0], CHECK_ROWS):
        if not np.isfinite(X[start : start + CHECK_ROWS]).all():
            raise ValueError(
                f"Input X contains NaN or infinity in rows {start} to {start + CHECK_ROWS}. "
                "Remove or fill those rows first."
            )


def check_gram(K) -> None:
    """Raise ValueError unless K is a square symmetric matrix."""
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"A precomputed kernel must be a square matrix, n_samples x n_samples, and X has "
            f"shape {tuple(K.shape)}. Pass the kernel between all training rows, or name a "
            "kernel to have it computed from the rows."
        )
    largest = gap = 0.0
    for start in range(0, K.shape[0], 1024):
        rows = slice(start, start + 1024)
        block, mirror = K[rows], K[:, rows].T
        difference = abs(block - mirror)
        gap = max(gap, difference.max())
        largest = max(largest, abs(block).max())
    if gap > 1e-5 * largest:
        raise ValueError(
            f"A precomputed kernel must be symmetric, and entries across the diagonal differ by "
            f"up to {gap:.3g}. Pass (K + K.T) / 2 if that is rounding."
        )


def check_tensor(estimator, X, reset: bool):
    """A matrix of finite numbers that lives on a device, checked there, as a torch tensor."""
    import torch

    X = X.detach() if isinstance(X, torch.Tensor) else torch.from_dlpack(X)
    if X.ndim != 2 or X.dtype.is_complex:
        raise ValueError(
            f"Expected a 2D array of numbers, got a {X.ndim}D array of type {X.dtype} instead."
        )
    least = 2 if reset else 1
    if X.shape[0] < least or X.shape[1] < 1:
        raise ValueError(
            f"Found array with shape {tuple(X.shape)} while a minimum of {least} rows and 1 "
            "column is required."
        )
    if X.dtype not in (torch.float32, torch.float64):
        X = X.to(torch.float64)
    elif reset and getattr(estimator, "copy_X", False):
        X = X.clone()
    if not bool(torch.isfinite(X).all()):
        raise ValueError("Input X contains NaN or infinity. Remove or fill those rows first.")
    return validate_data(estimator, X, reset=reset, skip_check_array=True)


def float_type(X):
    """The NumPy type of results for X: float32 stays, all else is float64."""
    return np.float32 if "float32" in str(X.dtype) else np.float64


def restore_like(result, source):
    """A result in the array library and on the device of the input it came from."""
    return restore(result, source)


def in_type(result, dtype):
    """An array of any library in one floating type."""
    xp = array_namespace(result)
    if xp is np:
        return result.astype(dtype, copy=False)
    return xp.astype(result, dtype_in(xp, np.dtype(dtype).name), copy=False)
