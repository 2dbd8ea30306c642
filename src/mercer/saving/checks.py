"""Checks of what comes out of a file, before anything is done with it."""

from numbers import Real

import numpy as np

from ..bases import FeatureBasis, FourierBasis, PointBasis
from ..bases.random_features import Fourier
from ..compute import is_sparse
from ..kernels import Hollow, Kernel, Linear
from .archive import ModelFileError
from .values import conforms


def whole(value) -> int:
    """A positive whole number."""
    if not conforms(value, int) or value < 1:
        raise ModelFileError(f"{value!r:.60} is no positive whole number")
    return value


def count(value) -> int:
    """A whole number that is not negative."""
    return 0 if value == 0 and type(value) is int else whole(value)


def number(value) -> float:
    """A finite number."""
    if not conforms(value, float) or not np.isfinite(value):
        raise ModelFileError(f"{value!r:.60} is no finite number")
    return value


def vector(value) -> np.ndarray:
    """A vector of finite numbers."""
    return _finite(value, 1)


def matrix(value) -> np.ndarray:
    """A matrix of finite floats."""
    return _finite(value, 2)


def rows(value):
    """A dense or sparse matrix of finite floats with at least one row and column."""
    if is_sparse(value):
        _finite(value.data, 1)
    else:
        matrix(value)
    if 0 in value.shape:
        raise ModelFileError(f"points of shape {value.shape}")
    return value


def centered(value) -> None:
    """The center of a linear kernel: finite numbers, or none."""
    if value is not None and (
        not isinstance(value, np.ndarray) or value.ndim != 1 or not np.isfinite(value).all()
    ):
        raise ModelFileError(f"a linear kernel has a center that is no vector: {value!r:.60}")


def resolved(kernel) -> Kernel:
    """A kernel whose parameters are all numbers, and allowed."""
    if not isinstance(kernel, Kernel):
        raise ModelFileError(f"{kernel!r:.60} is no kernel")
    for name, value in kernel.get_params(deep=False).items():
        if isinstance(kernel, Hollow):
            resolved(value)
        elif isinstance(kernel, Linear):
            centered(value)
        elif name in kernel.per_column and isinstance(value, np.ndarray):
            vector(value)
        elif not isinstance(value, Real) or not np.isfinite(float(value)):
            raise ModelFileError(f"the kernel {kernel!r:.60} has parameters that are no numbers")
    if float(kernel.gamma or 0.0) < 0:
        raise ModelFileError(f"the kernel {kernel!r:.60} has a negative width")
    try:
        kernel.check(np.zeros((1, 1)))
    except ValueError as error:
        raise ModelFileError(f"the kernel {kernel!r:.60} cannot be used: {error}") from error
    return kernel


def width(basis) -> int:
    """Columns of the rows that a basis takes."""
    if isinstance(basis, PointBasis):
        return basis.points.shape[1]
    if isinstance(basis, FeatureBasis):
        features = basis.features
        fourier = isinstance(features, Fourier)
        return features.frequencies.shape[1] if fourier else features.columns.shape[1] - 1
    if isinstance(basis, FourierBasis):
        return basis.frequencies.spacing.size
    return basis.size


def _finite(value, ndim):
    good = isinstance(value, np.ndarray) and value.ndim == ndim and value.dtype.kind == "f"
    if not good or not np.isfinite(value).all():
        raise ModelFileError(f"an array is not a {ndim}D array of finite floating-point numbers")
    return value
