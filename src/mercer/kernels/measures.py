"""What kernels ask of rows, wherever they are: norms, a middle, a typical distance."""

import numpy as np
from scipy import sparse

from ..compute import array_namespace, is_sparse, to_numpy
from ..compute.arrays import placement_of

# Rows on which the median or mean distance is taken: half a million pairs settle
# either to a third digit.
WIDTH_SAMPLE = 1000
# Entries whose squares float64 holds with all digits.
WIDTH_RANGE = (1e-100, 1e100)
# Rows whose median is the origin, found in no time.
ORIGIN_ROWS = 32
# Sizes of the largest entry of rows that single precision has room around.
SINGLE_ENTRIES = (1e-30, 1e30)
# Rows squared at once in double precision.
WIDE_ROWS = 65536


def rows_of(X, block, dtype, origin=None):
    """Rows of X in one precision, shifted by `origin`; sparse rows stay sparse."""
    rows = X[block]
    if is_sparse(rows):
        return rows.astype(dtype)
    xp = array_namespace(rows)
    if origin is not None:
        # The difference is taken in the wider type, before any rounding: that is its use.
        wide = xp.float64 if dtype == xp.float64 else float_dtype(rows)
        rows = xp.asarray(rows, dtype=wide) - origin
    return xp.asarray(rows, dtype=dtype)


def fits_single(X) -> bool:
    """Whether single precision can hold the largest entry of X, or X is zero."""
    blocks = (X[i : i + WIDE_ROWS] for i in range(0, X.shape[0], WIDE_ROWS))
    largest = max(max(float(block.max()), -float(block.min())) for block in blocks)
    return SINGLE_ENTRIES[0] < largest < SINGLE_ENTRIES[1] or largest == 0


def median_row(X):
    """The median of some rows, (d,): where most are, and one far row does not move it.

    None for sparse rows, which would be so no longer.
    """
    if is_sparse(X):
        return None
    xp = array_namespace(X)
    sample = xp.asarray(X[:: -(-X.shape[0] // ORIGIN_ROWS)], dtype=xp.float64)
    half = sample.shape[0] // 2
    ordered = np.partition(sample, half, axis=0) if xp is np else xp.sort(sample, axis=0)
    middle = ordered[half]
    # In the data's own precision the difference is exact enough and keeps its type.
    return xp.asarray(middle, dtype=float_dtype(X))


def same_for_all(X, value: float):
    """One number for every row of X, in float64 and where X is, (n,)."""
    xp = np if is_sparse(X) else array_namespace(X)
    return xp.full(X.shape[0], value, dtype=xp.float64, **placement_of(X))


def row_squares(X):
    """|x|^2 for every row, (n,)."""
    if is_sparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    if isinstance(X, np.ndarray):
        return np.einsum("ij,ij->i", X, X)
    return array_namespace(X).sum(X * X, axis=1)


def wide_row_squares(X):
    """|x|^2 for every row in float64, whatever X holds: integers and halves would overflow."""
    if is_sparse(X):
        return row_squares(X.astype(np.float64))
    if isinstance(X, np.ndarray):
        return np.einsum("ij,ij->i", X, X, dtype=np.float64)
    xp = array_namespace(X)
    blocks = (X[i : i + WIDE_ROWS] for i in range(0, X.shape[0], WIDE_ROWS))
    return xp.concat([row_squares(xp.astype(block, xp.float64)) for block in blocks])


def append_columns(X, *columns):
    """X with further columns, each (n,)."""
    if is_sparse(X):
        return sparse.hstack([X, *(c[:, None] for c in columns)], format="csr", dtype=X.dtype)
    xp = array_namespace(X)
    return xp.concat([X, *(c[:, None] for c in columns)], axis=1)


def float_dtype(X):
    """The floating type to compute X's kernel in: its own, or float64."""
    xp = np if is_sparse(X) else array_namespace(X)
    return X.dtype if X.dtype in (xp.float32, xp.float64) else xp.float64


def typical_distance(X, kind: str, metric: str = "euclidean", rng=None) -> float:
    """The median or mean distance between rows, on a sample of at most 1,000."""
    from scipy.spatial.distance import pdist

    if kind not in ("median", "mean"):
        raise ValueError(f"gamma={kind!r} is unknown. Give a number, None, 'median' or 'mean'.")
    if X.shape[0] < 2:
        return 0.0
    rng = np.random.default_rng(0) if rng is None else rng
    sample = X
    if X.shape[0] > WIDTH_SAMPLE:
        sample = X[np.sort(rng.choice(X.shape[0], WIDTH_SAMPLE, replace=False))]
    # Blocks that come from elsewhere are brought here by indexing.
    sample = sample.toarray() if is_sparse(sample) else to_numpy(sample[:])
    sample = sample.astype(float)
    # Squares of what is huge or tiny would leave the range of float64.
    unit = float(np.abs(sample).max(initial=0))
    unit = 1.0 if unit == 0 or WIDTH_RANGE[0] < unit < WIDTH_RANGE[1] else unit
    distances = pdist(sample / unit, metric)
    if kind == "mean":
        return unit * float(distances.mean())
    return unit * float(np.median(distances, overwrite_input=True))
