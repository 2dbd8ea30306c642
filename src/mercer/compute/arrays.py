"""Array libraries: which one an array belongs to, and the way to NumPy and back.

Arrays that live in main memory (NumPy, torch CPU tensors, any array-API library) are
computed on as NumPy views, those on a device stay there, and results go back to the library
they came from.
"""

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import numpy as np
from array_api_compat import array_namespace as _namespace
from array_api_compat import device as _device
from array_api_compat import is_array_api_obj, is_cupy_array, is_torch_array
from scipy import sparse

#: An array of any library, a sparse matrix, or what is sliced like one; shapes are in docstrings.
Array: TypeAlias = Any
#: Input whose result is an array of the same library; type checkers see NumPy's type.
Same = TypeVar("Same", Any, np.ndarray)


# Entries copied at once where no budget is known, and the least number of rows.
BLOCK_ENTRIES, FEWEST_ROWS = 2**17, 16
# Rows read or converted at once where no copy is made.
WIDE_ROWS = 65536
# Entries of sparse rows in a block.
SPARSE_ENTRIES = 2**18


class BlocksOnDemand:
    """Rows whose blocks become arrays of `namespace` when they are indexed.

    Attributes
    ----------
    X : array or sparse matrix
        The rows as they are.
    namespace : array-API namespace
    device : object
        Of the blocks.
    """

    X: Any
    namespace: Any = np
    device: Any = None
    shape: Any
    ndim = 2

    def __len__(self) -> int:
        return int(self.shape[0])


class SomeRows(BlocksOnDemand):
    """Rows of a NumPy array by their numbers, copied in one precision a block at a time."""

    def __init__(self, X: Any, index: Any, dtype: Any = None):
        self.X, self.index, self.dtype = X, index, np.dtype(X.dtype if dtype is None else dtype)
        self.shape = (len(index), X.shape[1])

    def __getitem__(self, rows: Any) -> Any:
        return self.X[self.index[rows]].astype(self.dtype, copy=False)


class SomeColumns(BlocksOnDemand):
    """Columns of any rows by their numbers, dense, copied a block at a time.

    With `scales` in float64, each column less its `center` and multiplied.
    """

    def __init__(self, X: Any, columns: Any = None, scales: Any = None, center: Any = None):
        self.X, self.columns, self.scales, self.center = X, columns, scales, center
        self.shape = (X.shape[0], X.shape[1] if columns is None else len(columns))
        self.namespace = np if is_sparse(X) else array_namespace(X)
        self.device = placement_of(X).get("device")
        self.dtype = X.dtype if scales is None else dtype_in(self.namespace, np.float64)

    def __getitem__(self, rows: Any) -> Any:
        block, xp = self.X[rows], self.namespace
        if self.columns is not None:
            numbers = self.columns if xp is np else self.columns.tolist()
            block = block[:, numbers]
        block = block.toarray() if is_sparse(block) else block
        if self.scales is None:
            return block
        block = xp.asarray(block, dtype=self.dtype)
        block = block if self.center is None else block - self.center
        return block * on_device_of(self.scales, block)


def block_rows(X: Array) -> int:
    """Rows of X whose copy is small compared to any budget; a few if X has many columns."""
    return max(FEWEST_ROWS, BLOCK_ENTRIES // X.shape[-1])


def blocks_of(X: Array) -> Any:
    """The rows of X in blocks that are small where making them is a copy."""
    n, step = X.shape[0], WIDE_ROWS
    if isinstance(X, SomeRows | SomeColumns):
        step = block_rows(X)
    elif is_sparse(X):  # slices of sparse rows are copies
        step = max(1, min(n, SPARSE_ENTRIES * n // max(X.nnz, 1)))
    if step >= n and not isinstance(X, BlocksOnDemand):
        return iter([X])
    return (X[i : i + step] for i in range(0, n, step))


def some_of(X: Array, index: Any) -> Any:
    """Rows of X by a slice or by numbers; large selections are copied only when used."""
    if isinstance(X, SomeRows):
        return SomeRows(X.X, X.index[index], X.dtype)
    few = isinstance(index, slice) or len(index) <= block_rows(X)
    if few or not isinstance(X, np.ndarray):
        return X[index]
    if len(index) == X.shape[0] and np.array_equal(index, np.arange(len(index))):
        return X
    return SomeRows(X, index)


def array_namespace(X: Array) -> Any:
    """The array-API namespace of X, without a look-up for the common case."""
    if isinstance(X, np.ndarray):
        return np
    return X.namespace if isinstance(X, BlocksOnDemand) else _namespace(X)


def running_sums(X: Array) -> Any:
    """Cumulative sums along each row; NumPy 2.0 has another name for them."""
    xp = array_namespace(X)
    return np.cumsum(X, axis=1) if xp is np else xp.cumulative_sum(X, axis=1)


def is_sparse(X: Array) -> bool:
    """Whether X is a SciPy sparse matrix or array."""
    # The common case first: a fit calls this thirty times.
    return not isinstance(X, np.ndarray) and sparse.issparse(X)


def is_dask(X: Array) -> bool:
    """Whether X is a Dask collection; Dask itself is not imported."""
    return type(X).__module__.partition(".")[0] == "dask" and hasattr(X, "__dask_graph__")


def has_columns(X: Any) -> bool:
    """Whether X has named columns, whatever its library."""
    return hasattr(X, "columns")


def is_foreign(X) -> bool:
    """Whether X is an array of a library other than NumPy and SciPy."""
    return not isinstance(X, np.ndarray) and not is_sparse(X) and is_array_api_obj(X)


def is_on_device(X) -> bool:
    """Whether X is an array in the memory of a CUDA device, whatever its library."""
    if isinstance(X, np.ndarray) or is_sparse(X) or not is_array_api_obj(X):
        return False
    device = str(getattr(X, "device", "")).lower()
    return is_cupy_array(X) or "cuda" in device or "gpu" in device


def to_numpy(X: Array) -> Any:
    """X as a NumPy array, a view where the library allows one; streamed rows are there already."""
    if isinstance(X, np.ndarray) or is_sparse(X):
        return X
    if isinstance(X, BlocksOnDemand):
        return to_numpy(X.X)
    if is_torch_array(X):
        return from_torch(X)
    if is_cupy_array(X):
        return X.get()
    try:
        return np.asarray(X)
    except (TypeError, RuntimeError):
        return np.from_dlpack(X)


def from_torch(X: Array) -> np.ndarray:
    """A tensor as a NumPy array; types that NumPy has not, such as bfloat16, in single precision.

    ValueError for one that holds no values, or others than a tensor of numbers has.
    """
    try:
        X = X.detach().cpu().resolve_conj().resolve_neg()
        plain = not X.dtype.is_floating_point or str(X.dtype)[6:] in (
            "float16",
            "float32",
            "float64",
        )
        return X.numpy() if plain else X.float().numpy()
    except (RuntimeError, TypeError) as error:
        raise ValueError(
            f"This tensor of {X.dtype} has no values that NumPy can read ({error}). Pass a dense "
            "tensor, such as X.to_dense() or X.dequantize()."
        ) from error


def restore(result: Array, template: Array) -> Array:
    """The array `result` in the library and on the device of `template`."""
    if template is None or not is_foreign(template):
        return to_numpy(result) if is_torch_array(result) else result
    xp, device = _namespace(template), _device(template)
    if is_on_device(template) and is_on_device(result) and not is_torch_array(template):
        return xp.from_dlpack(result)
    if is_torch_array(result) and is_torch_array(template):
        return result.to(device)
    return xp.asarray(np.ascontiguousarray(to_numpy(result)), device=device)


def on_device_of(A: Array, template: Array) -> Array:
    """A small array in the library and on the device of a large one; keeps its dtype."""
    if isinstance(template, np.ndarray) or is_sparse(template):
        return A if type(A) is np.ndarray else to_numpy(A)
    if isinstance(A, np.ndarray):
        # Other libraries share the memory of contiguous, writable arrays only; NumPy calls any
        # empty array contiguous, even a reversed one.
        A = np.require(A, requirements=["C", "W"]) if A.size else np.zeros(A.shape, A.dtype)
    return array_namespace(template).asarray(A, device=_device(template))


def placement_of(X) -> dict:
    """Keyword arguments that create an array on the device of X: empty for NumPy."""
    if is_sparse(X) or array_namespace(X) is np:
        return {}
    return {"device": X.device if isinstance(X, BlocksOnDemand) else _device(X)}


def dtype_in(xp, dtype):
    """A floating type by its NumPy name in another library."""
    return dtype if xp is np else getattr(xp, dtype_name(dtype))


def dtype_name(dtype: Any) -> str:
    """The NumPy name of a floating type of any library."""
    # By its text: comparing types of two libraries warns, and so would a cache of them.
    text = str(dtype)
    for name in ("float64", "float32", "float16"):
        if name in text:
            return name
    raise TypeError(f"{dtype} is not a floating type that kernels are computed in.")


def stack_rows(pieces: list) -> Array:
    """Blocks of rows under each other, sparse if the first one is; a single one as it is."""
    if len(pieces) == 1:
        return pieces[0]
    if is_sparse(pieces[0]):
        return sparse.vstack(pieces, format="csr")
    return array_namespace(pieces[0]).concat(pieces, axis=0)


def match_sparsity(X: Array, template: Array) -> Array:
    """X as a CSR matrix or as an array, as the template is; X itself where there is none."""
    if template is None or is_sparse(X) == is_sparse(template):
        return X
    return sparse.csr_matrix(X) if is_sparse(template) else X.toarray()


def itemsize(dtype) -> int:
    """Bytes of one number of a floating type of any library."""
    of_numpy = isinstance(dtype, np.dtype | type)
    return np.dtype(dtype if of_numpy else dtype_name(dtype)).itemsize


def inplace(function: Callable[..., Any], T: Array) -> Array:
    """Apply an elementwise function, over T itself where the library can."""
    if isinstance(T, np.ndarray) or is_torch_array(T) or is_cupy_array(T):
        return function(T, out=T)
    return function(T)


def csr_from_parts(data, indices, indptr, columns: int) -> sparse.csr_matrix:
    """The CSR matrix of shape (len(indptr) - 1, columns), or ValueError where parts contradict.

    Compiled code trusts `indptr` and `indices`, so a file with contradictory ones would crash it.
    They are compared in 64 bits: in 32, the differences of a forged `indptr` wrap around and seem
    to rise.
    """
    data, indices, indptr = (np.asarray(part) for part in (data, indices, indptr))
    check_size(columns)
    indptr = whole_numbers(indptr, "indptr")
    if indices.dtype != np.int32 or indices.ndim != 1:  # else used as they are, from disk too
        indices = whole_numbers(indices, "indices")
    if data.ndim != 1 or data.dtype.kind not in "biuf":
        raise ValueError(f"sparse data are a {data.ndim}D array of type {data.dtype}")
    if not indptr.size or indptr[0] != 0 or (np.diff(indptr) < 0).any():
        raise ValueError("the indptr of a sparse matrix does not rise from 0")
    if not len(data) == len(indices) == indptr[-1]:
        raise ValueError(
            f"a sparse matrix has {len(data)} numbers, {len(indices)} indices and an indptr that "
            f"ends at {indptr[-1]}"
        )
    for block in blocks_of(indices):
        check_within(block, columns, "column")
    return sparse.csr_matrix((data, indices, indptr), shape=(len(indptr) - 1, columns))


def csr_of(data, indices, indptr, columns: int, kind: Any = sparse.csr_matrix) -> Any:
    """The CSR matrix of parts that are known to agree: SciPy copies parts of larger arrays."""
    rows = kind((len(indptr) - 1, columns), dtype=data.dtype)
    rows.data, rows.indices, rows.indptr = data, indices, indptr
    return rows


def whole_numbers(values, what: str) -> np.ndarray:
    """A vector of whole numbers in 64 bits."""
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise ValueError(f"the {what} of a sparse matrix are not whole numbers")
    # Unsigned numbers beyond 63 bits become negative, and are refused as such.
    return values.astype(np.int64, copy=False)


def check_within(places, size: int, what: str) -> None:
    """Raise ValueError unless all places are from 0 up to a size."""
    if places.size and (places.min() < 0 or places.max() >= size):
        raise ValueError(f"a sparse matrix has {what} numbers outside of 0 to {size - 1}")


def check_size(size: Any) -> None:
    """Raise ValueError unless this is a number of rows or columns."""
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or not 0 <= size < 2**62:
        raise ValueError(f"a sparse matrix has {size!r:.60} for a number of rows or columns")
