"""Array libraries: which one an array belongs to, and the way to NumPy and back.

Arrays that live in main memory (NumPy, torch CPU tensors, any array-API library)
are computed on as NumPy views, and results go back to the library they came from.
"""

import numpy as np
from array_api_compat import array_namespace as _namespace
from array_api_compat import device as _device
from array_api_compat import is_array_api_obj, is_cupy_array, is_numpy_array, is_torch_array
from scipy import sparse


def array_namespace(X):
    """The array-API namespace of X, without a look-up for the common case."""
    return np if isinstance(X, np.ndarray) else _namespace(X)


def is_sparse(X) -> bool:
    """Whether X is a SciPy sparse matrix or array."""
    return sparse.issparse(X)


def is_foreign(X) -> bool:
    """Whether X is an array of a library other than NumPy and SciPy."""
    return not isinstance(X, np.ndarray) and not is_sparse(X) and is_array_api_obj(X)


def to_numpy(X):
    """X as a NumPy array, a view where the library allows one."""
    if isinstance(X, np.ndarray) or is_sparse(X):
        return X
    if is_torch_array(X):
        return X.detach().cpu().numpy()
    if is_cupy_array(X):
        return X.get()
    try:
        return np.asarray(X)
    except (TypeError, RuntimeError):
        return np.from_dlpack(X)


def restore(result, template):
    """The NumPy array `result` in the library and on the device of `template`."""
    if template is None or is_numpy_array(template) or not is_foreign(template):
        return result
    xp = _namespace(template)
    return xp.asarray(np.ascontiguousarray(result), device=_device(template))


def inplace(function, T):
    """Apply an elementwise function, over T itself where the library can."""
    if isinstance(T, np.ndarray) or is_torch_array(T) or is_cupy_array(T):
        return function(T, out=T)
    return function(T)
