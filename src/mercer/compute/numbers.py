"""Input that is not a numeric 2-D array: error messages that say what is wrong with it.

Most input is right, so reasons are looked for only after something failed. Values that NumPy would
silently turn into other numbers are refused before.
"""

from datetime import date, timedelta
from itertools import chain
from typing import Any

import numpy as np
from scipy import sparse

from ..exceptions import InvalidRowsError
from .arrays import has_columns, is_sparse

# Kinds of values that NumPy turns into numbers that the user did not mean.
KINDS = {"M": "dates", "m": "times", "c": "complex numbers", "V": "records"}
ADVICE = {
    "M": "Say what a number is to mean, such as seconds: (X - X.min()) / np.timedelta64(1, 's').",
    "m": "Say what a number is to mean, such as seconds: X / np.timedelta64(1, 's').",
    "c": "Pass real and imaginary parts as columns: np.hstack([X.real, X.imag]).",
    "V": "Pass a column a field: np.column_stack([X[name] for name in X.dtype.names]).",
}
TOO_LARGE = "infinity or a value too large for float64"
FILL = "Fill such values (sklearn.impute.SimpleImputer), or leave out their rows."


def check_meaning(X: Any, name: str = "X") -> None:
    """Raise InvalidRowsError for masked values, dates, complex numbers and records.

    NumPy would turn them into floats that the user did not mean. X is anything that a user passes.
    """
    check_unmasked(X, name)
    dtypes = getattr(X, "dtype", None)
    if not isinstance(dtypes, np.dtype):
        # The columns of a data frame, as far as they have NumPy types.
        dtypes = getattr(X, "dtypes", None)
        dtypes = dtypes if isinstance(dtypes, list | tuple) else getattr(dtypes, "array", ())
    if isinstance(X, np.ndarray) and X.dtype == object:
        for place, cell in np.ndenumerate(X):
            if isinstance(cell, np.datetime64 | np.timedelta64 | date | timedelta):
                kind = "m" if isinstance(cell, np.timedelta64 | timedelta) else "M"
                raise InvalidRowsError(
                    f"{name} holds {cell!r} at {place}, and real numbers are needed. "
                    f"{ADVICE[kind].replace('X', name)}"
                )
    for dtype in [dtypes] if isinstance(dtypes, np.dtype) else dtypes:
        if isinstance(dtype, np.dtype) and dtype.kind in KINDS:
            # The words that scikit-learn's estimator checks look for.
            prefix = "Complex data not supported: " if dtype.kind == "c" else ""
            raise InvalidRowsError(
                f"{prefix}{name} holds {KINDS[dtype.kind]} ({dtype}), and real numbers are needed. "
                f"{ADVICE[dtype.kind].replace('X', name)}"
            )


def check_unmasked(X: Any, name: str = "X") -> None:
    """Raise InvalidRowsError for an array whose masked values would come back from behind it."""
    parts = X if isinstance(X, list | tuple) else [X]
    hidden = [np.ma.getmaskarray(one).sum() for one in parts if isinstance(one, np.ma.MaskedArray)]
    if masked := int(sum(hidden)):
        raise InvalidRowsError(
            f"{name} is a masked array with {masked:,} masked values, and every value is needed. "
            f"Fill them, {name}.filled(0.0), or leave out their rows, np.ma.compress_rows({name})."
        )


def sound_sparse(X: Any, name: str = "X") -> Any:
    """A sparse matrix with one entry a cell, or InvalidRowsError where its parts contradict.

    Compiled code trusts `indptr` and `indices`, and would read beyond the matrix. Entries of the
    same cell are added up, as SciPy means them, on a copy: X itself stays as it is.
    """
    try:
        if X.format == "lil":  # made anew from its lists, whose lengths SciPy does not compare
            lengths = [len(one) for one in X.rows]
            if lengths != [len(one) for one in X.data]:
                raise ValueError("rows and data have lists of different lengths")
            places = np.repeat(np.arange(len(lengths)), lengths), np.array([*chain(*X.rows)], int)
            X = sparse.coo_array((np.array([*chain(*X.data)], X.dtype), places), shape=X.shape)
        if X.format == "dia":
            X = type(X)((X.data, X.offsets), shape=X.shape).tocoo()
        X = X.tocoo() if X.format == "dok" else X
        check_unmasked(X.data, name)
        if X.dtype == object:  # whose entries are numbers, or no parts of a matrix
            X = X.astype(float)
        if X.format == "coo":
            return type(X)((X.data, X.coords), shape=X.shape)  # checked when it is made
        # SciPy compares in 32 bits, and leaves out a matrix whose indptr ends at 0.
        if (np.diff(np.asarray(X.indptr, np.int64)) < 0).any():
            raise ValueError("indptr falls")
        sound = type(X)((X.data, X.indices, X.indptr), shape=X.shape)
        sound.check_format(full_check=True)
    except InvalidRowsError:
        raise
    except (ValueError, TypeError) as error:
        raise InvalidRowsError(
            f"{name} is a sparse matrix whose parts contradict each other: {error}. Every column "
            "index must be in the matrix, and indptr must rise from 0 to the number of entries. "
            "Pass scipy.sparse.csr_matrix((values, (rows, columns)), shape=...), which checks them."
        ) from error
    if not sound.has_canonical_format:
        sound = sound.copy()
        sound.sum_duplicates()
    return sound


def reason(X: Any, error: Exception, name: str = "X") -> Exception:
    """Why X cannot be taken for rows of numbers, in place of the error that came of it."""
    if isinstance(error, InvalidRowsError):  # a broken sparse matrix may not be looked into
        return error
    message = _wrong_shape(X, name) or _wrong_cell(X, name)
    return InvalidRowsError(message) if message else error


def is_single(X: Any) -> bool:
    """Whether X is one object to NumPy: None, a text, a set, a generator, a query."""
    if is_sparse(X):
        return False
    try:
        cells = np.asarray(X)
    except Exception:  # whatever an unknown container raises
        return False
    return cells.ndim == 0 and cells.dtype.kind not in "biufc"


def _wrong_shape(X, name) -> str:
    """A message for input without rows, with rows of different lengths or of more dimensions."""
    if is_single(X):
        return (
            f"{name} is of type {type(X).__name__}, and rows of numbers are needed. Pass an array "
            "or data frame of shape (n_samples, n_features), a sparse matrix, or a file's path."
        )
    if isinstance(X, list | tuple):
        if any(map(is_sparse, X)):
            return f"{name} is a list of sparse matrices. Pass scipy.sparse.vstack({name})."
        lengths = {len(row) if isinstance(row, list | tuple | np.ndarray) else 0 for row in X}
        if len(lengths) > 1:
            return (
                f"The rows of {name} have between {min(lengths)} and {max(lengths)} values, and "
                "all need the same number. Fill the short ones, or leave them out."
            )
        if lengths == {0} and any(isinstance(row, str | bytes) for row in X):
            return (
                f"{name} is a list of texts, and rows of numbers are needed. Make numbers of them "
                "(sklearn.feature_extraction.text), or pass a kernel that compares texts, "
                "mercer.kernels.BlockFunction(function); a file's path is passed alone."
            )
        X = np.array(X, dtype=object)
    names = list(X.columns) if has_columns(X) else ["?"]
    kinds = np.atleast_1d(X.dtypes) if hasattr(X, "sparse") else ()
    if any(getattr(kind, "fill_value", 0) != 0 for kind in kinds):
        return (
            f"{name} has sparse columns whose fill value is not 0. Pass {name}.sparse.to_dense()."
        )
    if not names:
        return f"{name} has no columns, while a minimum of 1 is required."
    if len(set(names)) < len(names):
        twice = next(one for i, one in enumerate(names) if one in names[:i])
        return f"{name} has two columns of the same name, {twice!r}. Give one another name."
    ndim = getattr(X, "ndim", 2)
    if isinstance(ndim, int) and ndim > 2:
        return (
            f"Found array with dim {ndim}, while dim <= 2 is required. Pass one row a sample, "
            f"{name}.reshape({name}.shape[0], -1)."
        )
    return ""


def _wrong_cell(X, name) -> str:
    """A message about the first value that is not a finite number."""
    try:
        listed = isinstance(X, list | tuple)  # which may hold lists that are no array
        cells = np.array(X, object) if listed else np.asarray(X.toarray() if is_sparse(X) else X)
    except Exception:  # whatever an unknown container raises
        return ""
    if cells.ndim != 2:
        return ""
    numbers = cells
    if cells.dtype.kind not in "biuf":
        numbers = np.empty(cells.shape)
        for (i, j), cell in np.ndenumerate(cells):
            cell = cell.item() if isinstance(cell, np.generic) else cell
            try:
                numbers[i, j] = float("nan") if cell is None else float(cell)
            except (TypeError, ValueError, OverflowError):
                return (
                    f"Row {i}, column {j} of {name} (counted from 0) holds {cell!r:.60} of type "
                    f"{type(cell).__name__}, and every cell of the argument must be a number, or a "
                    "string that reads as a number. Convert such columns, or leave them out."
                )
    with np.errstate(over="ignore"):
        bad = ~np.isfinite(numbers.astype(float, copy=False))
    if not bad.any():
        return ""
    missing = np.isnan(numbers)
    i, j = np.unravel_index(int(np.argmax(missing if missing.any() else bad)), cells.shape)
    what, values = ("NaN", "missing") if missing[i, j] else (TOO_LARGE, "such")
    none = " (None is a missing value)" if cells[i, j] is None else ""
    return (
        f"Input {name} contains {what} in row {i}, column {j}, counted from 0{none}; "
        f"{int(bad.any(axis=1).sum()):,} of {len(cells):,} rows have {values} values. {FILL}"
    )
