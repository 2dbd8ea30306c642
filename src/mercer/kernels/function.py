"""The user's own function as a kernel, of two rows or of two lists of objects; errors say what it
returned.
"""

from collections.abc import Mapping, Set, Sized
from copy import copy
from dataclasses import dataclass
from inspect import signature
from operator import is_
from typing import Any

import numpy as np

from ..compute import Array, is_sparse, on_device_of, to_numpy
from ..compute.arrays import has_columns
from ..compute.numbers import sound_sparse
from . import base
from .coordinate import DirectKernel, DirectPairs

# Lots of new objects that are kept: those of calls that run at once.
RECENT = 16
MISPLACED = (
    "A BlockFunction compares objects, and there are only rows of numbers here. Give it alone as "
    "kernel= with a list or array of objects; for a sum or product write one function, "
    "f(A, B) + g(A, B)."
)


NO_BATCHES = (
    "A model that learns batch by batch does not keep objects of earlier batches, with which a "
    "BlockFunction compares new ones. Use KernelPCA(basis='landmarks') on all of them."
)


@dataclass(eq=False, repr=False)
class Callable(DirectKernel):
    """The user's function of two rows, called pair by pair: correct and slow.

    Parameters
    ----------
    function : callable
        ``function(x, z, **params) -> float`` for two rows.
    params : dict or None
    """

    definite = False
    seconds = (2e-6, 0.0)  # a call of Python

    function: Any
    params: dict[str, Any] | None = None

    def fill(self, X: Array, Z: Array, out: Array) -> None:
        out[...] = on_device_of(self._values(single_rows(X), single_rows(Z)), out)

    def spread(self, X: Array) -> float:
        """inf: the function costs the same in any precision, so float32 saves nothing."""
        return np.inf

    def diag(self, X: Array) -> Array:
        values = [self._values([x], [x])[0, 0] for x in single_rows(X)]
        return on_device_of(np.array(values, dtype=float), X)

    def check(self, X: Array) -> None:
        """Raise ValueError unless it takes two rows and is symmetric on eight rows of X."""
        super().check(X)
        check_signature(self.function, self.params)
        rows = single_rows(X[np.linspace(0, X.shape[0] - 1, min(8, X.shape[0])).astype(int)])
        K = self._values(rows, rows)
        gap = np.abs(K - K.T)
        i, j = np.unravel_index(int(np.argmax(gap)), gap.shape)
        if gap[i, j] > 1e-5 * np.abs(K).max():  # less may be rounding
            raise ValueError(
                f"The kernel {name_of(self.function)} is not symmetric: k(x, z) = {K[i, j]:.6g} "
                f"and k(z, x) = {K[j, i]:.6g} for two rows of the data. Take "
                "(k(x, z) + k(z, x)) / 2, or a product such as f(x) * f(z)."
            )

    def _values(self, left, right) -> np.ndarray:
        """k(x, z) for all pairs of rows; raises ValueError unless all are finite numbers."""
        params, name = self.params or {}, f"The kernel {name_of(self.function)}"
        values = [finite_number(self.function(x, z, **params), name) for x in left for z in right]
        return np.array(values, dtype=float).reshape(len(left), len(right))


class BlockPairs(DirectPairs):
    """Tiles between numbers of objects, which single precision might not hold."""

    def tile(self, i, j, out):
        self.kernel.fill(self.X[i], self.Z[j], out)
        return out


class Objects:
    """The objects behind rows that hold their numbers, (n, 1), and kernel values that are known.

    Objects of the fit stay; of those that came later the last `RECENT` lots do, so that a model
    that transforms for days does not grow.
    """

    names = ("object",)

    def __init__(self, X: Any):
        self.n = self.count = len(X)
        self.room = 0
        # Copies, since a list may change. Lots by the number of their first object.
        self.lots: dict[int, Any] = {0: copy(X)}
        self.next, self.columns = len(X), dict[int, np.ndarray]()
        self.diagonal = np.full(self.n, np.nan)
        self.first: Any = X
        #: Numbers of the objects of the fit, where a file has only some of them.
        self.numbers: Any = None

    def __deepcopy__(self, memo: dict) -> "Objects":
        return self

    @classmethod
    def of(cls, X: Any) -> "Objects":
        """The objects of a fit; ValueError where X is no list of them."""
        return cls(sequence(X))

    @classmethod
    def stored(cls, items: Any, numbers: np.ndarray, n: int) -> "Objects":
        """Some of n objects of a fit, as a model file has them."""
        objects = cls(items[:0])
        objects.lots, objects.numbers = {0: items}, numbers
        objects.count = objects.next = n
        return objects

    def stored_fields(self, numbers: Any = None) -> dict[str, Any]:
        """Fields that restore the objects, all or those of some numbers."""
        if numbers is None:
            numbers = range(len(self.lots[0])) if self.numbers is None else self.numbers
        numbers = np.unique(np.asarray(numbers, dtype=np.int64))
        return {"items": self.taken(numbers), "numbers": numbers, "n": self.count}

    def apply(self, X: Any) -> np.ndarray:
        """Numbers for objects, (n, 1); those of the fit keep theirs."""
        first, self.first = self.first, None
        X, start = sequence(X), 0
        same = isinstance(X, list | tuple) and len(X) == self.n
        if X is not first and not (same and all(map(is_, X, self.lots[0]))):
            start, self.next = self.next, self.next + len(X)
            self.lots[start] = X
        for old in list(self.lots)[1:-RECENT]:
            self.lots.pop(old, None)
        return np.arange(start, start + len(X), dtype=float)[:, None]

    def kernel(self, asked: Any) -> base.Kernel:
        """The kernel of these objects."""
        bound = copy(asked)
        bound.objects = self
        return bound

    def taken(self, numbers: np.ndarray) -> Any:
        """Objects by their numbers: an array where they came as one, else a list."""
        starts = np.array(list(self.lots))
        lot = starts[np.searchsorted(starts, numbers, side="right") - 1]
        places = numbers - lot
        if self.numbers is not None:
            places[lot == 0] = np.searchsorted(self.numbers, places[lot == 0])
        X = self.lots[int(lot[0])]
        if (lot == lot[0]).all() and isinstance(X, np.ndarray):
            return X[places]
        return [self.lots[int(a)][int(b)] for a, b in zip(lot, places, strict=True)]

    def known(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """The values that were asked for before, NaN elsewhere."""
        K = np.full((left.size, right.size), np.nan)
        for values, one, other in ((K, left, right), (K.T, right, left)):
            inside = np.flatnonzero(one < self.n)
            for place, number in enumerate(other):
                if int(number) in self.columns:  # fmax prefers numbers to NaN
                    column = self.columns[int(number)][one[inside]]
                    values[inside, place] = np.fmax(values[inside, place], column)
        i, j = np.nonzero((left[:, None] == right) & (left < self.n)[:, None] & np.isnan(K))
        K[i, j] = self.diagonal[left[i]]
        return K

    def remember(self, K: np.ndarray, left: np.ndarray, right: np.ndarray) -> None:
        """Keep values between objects of the fit while there is room for their columns."""
        if left.size == right.size == 1 and left[0] == right[0] < self.n:
            self.diagonal[left[0]] = K[0, 0]
            return
        if left.size < right.size:
            K, left, right = K.T, right, left
        inside = np.flatnonzero(left < self.n)
        for place, number in enumerate(right):
            full = 8 * self.n * (len(self.columns) + 1) > self.room
            if number >= self.n or (full and int(number) not in self.columns):
                continue
            column = self.columns.setdefault(int(number), np.full(self.n, np.nan))
            column[left[inside]] = K[inside, place]


@dataclass(eq=False, repr=False)
class BlockFunction(DirectKernel):
    """The user's function of two lists or arrays of objects: strings, molecules, series, graphs.

    ``KernelPCA(kernel=BlockFunction(f)).fit(strings)``; ``transform`` takes objects too. Values
    between objects of the fit that were asked for are kept in an eighth of `memory`, and not asked
    for again: m landmarks of n objects cost at most n m + m^2, or n (m + 1) and a few if n > m^2.

    Parameters
    ----------
    function : callable
        ``function(A, B, **params)`` gives the values between all objects of A and B, of shape
        (len(A), len(B)): slices of what was passed if that is an array, else lists.
    definite : bool
        Whether no matrix of it has a negative eigenvalue: certificates rest on it.
    params : dict or None

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelPCA
    >>> from mercer.kernels import BlockFunction
    >>> def common(A, B):
    ...     return np.array([[float(len(set(a) & set(b))) for b in B] for a in A])
    >>> words = ["kernel", "colonel", "matrix", "metric", "eigen"]
    >>> model = KernelPCA(2, kernel=BlockFunction(common, definite=True)).fit(words)
    >>> model.transform(["kernels"]).shape
    (1, 2)
    """

    expensive = True
    seconds = (2e-6, 0.0)
    live_tiles = 4  # with the values that are known, those that are not, and where
    #: The objects of a fit, once there are some.
    objects = None

    function: Any
    definite: bool = False  # type: ignore[misc]
    params: dict[str, Any] | None = None

    def __call__(self, X, Z=None, dtype=None):
        """The kernel matrix between objects, or between numbers of those of a fit."""
        if self.objects is not None:
            return super().__call__(X, Z, dtype)
        return self._block(X, X if Z is None else Z)

    @property
    def encoder(self) -> Any:  # type: ignore[override]
        """`Objects`, unless they have their numbers already."""
        return Objects if self.objects is None else None

    def resolve(self, X: Array, rng: Any = None) -> base.Kernel:
        """The kernel itself, of the same objects."""
        if self.objects is None:
            raise ValueError(MISPLACED)
        return copy(self)

    def pairs(self, X: Array, Z: Array = None, dtype: Any = None, store: int = 0) -> base.Pairs:
        return BlockPairs(self, X, Z, dtype)

    def fill(self, X: Array, Z: Array, out: Array) -> None:
        objects: Any = self.objects
        left, right = (to_numpy(A)[:, 0].astype(np.int64) for A in (X, Z))
        K = objects.known(left, right)
        missing = np.isnan(K)
        if missing.any():
            i, j = (np.flatnonzero(missing.any(axis=axis)) for axis in (1, 0))
            K[np.ix_(i, j)] = self._block(objects.taken(left[i]), objects.taken(right[j]))
            objects.remember(K, left, right)
        out[...] = on_device_of(K, out)

    def diag(self, X: Array) -> Array:
        values = np.empty((X.shape[0], 1))
        for i in range(X.shape[0]):
            self.fill(X[i : i + 1], X[i : i + 1], values[i : i + 1])
        return on_device_of(values[:, 0], X)

    def spread(self, X: Array) -> float:
        """inf: the function costs the same in any precision."""
        return np.inf

    def check(self, X: Array) -> None:
        """Raise ValueError unless a block of some objects of X is symmetric."""
        X = X[np.linspace(0, X.shape[0] - 1, min(4, X.shape[0])).astype(int)]
        K = self(X)
        if np.abs(K - K.T).max() > 1e-5 * np.abs(K).max():
            raise ValueError(
                f"The kernel {name_of(self.function)} is not symmetric on objects of the data. "
                "Take (k(A, B) + k(B, A).T) / 2."
            )

    def _block(self, A: Any, B: Any) -> np.ndarray:
        """The function's values; ValueError unless they are finite numbers of the right shape."""
        if self.function is None:
            raise ValueError(
                "The model was loaded from a file, which does not hold the function of its kernel. "
                "Open it with mercer.load(path, kernel_function=f)."
            )
        name, shape = f"The kernel {name_of(self.function)}", (len(A), len(B))
        K = self.function(A, B, **(self.params or {}))
        try:
            K = np.array(to_numpy(K), dtype=float)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{name} returned {K!r:.40} for two blocks of objects, and numbers of shape "
                f"{shape} are expected."
            ) from error
        if K.shape != shape:
            raise ValueError(
                f"{name} returned an array of shape {K.shape} for blocks of {shape[0]} and "
                f"{shape[1]} objects, and {shape} is expected. A function of two single rows is "
                "passed as it is, kernel=function."
            )
        if not np.isfinite(K).all():
            raise ValueError(f"{name} returned values that are not finite. Guard its divisions.")
        return K


def sequence(X: Any) -> Any:
    """Objects as they are if they can be taken by number, or as a list."""
    if is_sparse(X):
        return list(sound_sparse(X).tocsr())
    if isinstance(X, list | tuple) or (isinstance(X, np.ndarray) and X.ndim):
        return X
    # Going through a table or a dictionary gives names, and sets have no order.
    table = has_columns(X) or isinstance(X, Mapping | Set)
    if table or isinstance(X, str | bytes | np.ndarray) or not isinstance(X, Sized):
        kind, column = type(X).__name__, "list(X[name]) of one column" if table else "list(X)"
        raise ValueError(
            f"A list or array of objects is expected, and X is of type {kind}. Pass {column}."
        )
    objects: Any = X
    return list(objects)


def single_rows(X) -> list:
    """The rows of X as read-only vectors, or as CSR matrices of one row."""
    if is_sparse(X):
        return [X[i : i + 1] for i in range(X.shape[0])]
    rows = to_numpy(X[:]).view()
    rows.flags.writeable = False
    return list(rows)


def name_of(function) -> str:
    """The name of a function, for messages."""
    return str(getattr(function, "__name__", type(function).__name__))


def check_signature(function, params) -> None:
    """Raise ValueError unless a function can be called with two rows and its parameters."""
    try:
        asked = signature(function)
    except (TypeError, ValueError):  # some functions in C have none
        return
    try:
        asked.bind(None, None, **(params or {}))
    except TypeError as error:
        raise ValueError(
            f"A function of two rows with the settings {params!r} is needed, and "
            f"{name_of(function)}{asked} is not one: {error}. Write it as function(x, z, ...)."
        ) from error


def finite_number(value, what: str) -> float:
    """A value as a float; raises ValueError that says what a user's function returned."""
    shape = () if isinstance(value, list | tuple) else np.shape(value)
    returned = f"{value!r:.40} of type {type(value).__name__}"
    if shape:
        returned = f"an array of shape {tuple(shape)}"
    if shape not in ((), (1,), (1, 1)) or isinstance(value, list | tuple):
        raise ValueError(
            f"{what} returned {returned} for two rows, and one number is expected. Write it "
            "for two single rows; blocks are for a class of kernels, or for dissimilarity=."
        )
    try:
        number = float(np.asarray(value).item()) if shape else float(value)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{what} returned {returned} for two rows, and one real number is expected. "
            "Write the function such that every path returns one."
        ) from error
    if not np.isfinite(number):
        raise ValueError(
            f"{what} returned {number} for two rows, and a finite number is expected. Guard "
            "divisions, roots and logarithms, or scale the data."
        )
    return number
