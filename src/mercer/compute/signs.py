"""Signs of directions: eigenvectors come with either, and one of them is to be chosen always."""

import numpy as np

from .arrays import Array, array_namespace, to_numpy

# Share of the largest entry from which an entry is large; no ratio that weights often have.
LARGE = 0.7


def peak_signs(A: Array) -> np.ndarray:
    """Signs that make the entry of largest modulus of every column positive, (r,), on the host.

    scikit-learn's rule for eigenvectors. Of scores it is the same rule, since the scores of the
    training rows are scaled eigenvectors: so it holds for every basis.
    """
    if not A.shape[0]:
        return np.ones(A.shape[1])
    if isinstance(A, np.ndarray):
        return np.where(A[np.abs(A).argmax(axis=0), np.arange(A.shape[1])] < 0, -1.0, 1.0)
    xp = array_namespace(A)
    places = xp.argmax(xp.abs(A), axis=0)
    peaks = to_numpy(xp.take_along_axis(A, places[None, :], axis=0))[0]
    return np.where(peaks < 0, -1.0, 1.0)


def first_large_signs(A: np.ndarray) -> np.ndarray:
    """Signs that make the first large entry of every column positive, (r,).

    Not the largest: two rows have the weights w and -w, and rounding would decide.
    """
    large = np.abs(A) >= LARGE * np.abs(A).max(axis=0)
    return np.where(A[np.argmax(large, axis=0), np.arange(A.shape[1])] < 0, -1.0, 1.0)
