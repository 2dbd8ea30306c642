"""What the values of a model file must be, declared field by field.

A *kind* is one of

- a type or an annotation: ``int``, ``str | None``, ``tuple[float, float]``, ``list[Record]``;
- the sides of an array of finite floats, such as ``"m k"``: within one part equal names mean equal
  lengths; `Array` says the same of others;
- `Instance`, an object whose sizes have such names;
- a function that says whether a value will do;
- a tuple of kinds, one of which must hold; None for None.

Whatever comes from a file is checked before it is used: what does not fit together is refused when
it is read, and not when the model is used.
"""

import types
from collections.abc import Callable
from numbers import Real
from typing import Any, Union, get_args, get_origin

import numpy as np

from ..compute import is_sparse
from ..exceptions import ModelFileError
from ..kernels import Kernel, Linear

# Sides that are never 0: those that count rows, points, columns or clusters.
FILLED = {"n", "s", "t", "a", "d", "c"}

Sizes = dict[str, int]


class Array:
    """An array whose sides have names.

    Parameters
    ----------
    sides : str
        Such as ``"m k"``.
    kinds : str
        Kinds of NumPy types that it may have, finite where they are floats.
    sparse : bool
        Whether it may be a CSR matrix.
    finite : bool
        Whether it must be finite.
    """

    def __init__(self, sides: str, kinds: str = "f", sparse: bool = False, finite: bool = True):
        self.sides, self.kinds, self.sparse, self.finite = sides.split(), kinds, sparse, finite

    def admits(self, value, sizes: Sizes) -> bool:
        """Whether a value is such an array; sides met for the first time are remembered."""
        known = isinstance(value, np.ndarray) or (self.sparse and is_sparse(value))
        if not known or value.dtype.kind not in self.kinds or value.ndim != len(self.sides):
            return False
        numbers = value.data if is_sparse(value) else value
        if self.finite and value.dtype.kind == "f" and not np.isfinite(numbers).all():
            return False
        pairs = list(zip(self.sides, value.shape, strict=True))
        if any(size == 0 for side, size in pairs if side in FILLED):
            return False
        return all(sizes.setdefault(side, size) == size for side, size in pairs)


class Instance:
    """An object of a class, with its sizes: ``Instance(Moments, m=lambda part: part.mean.size)``.

    A size may be None where an object has none.
    """

    def __init__(self, cls, **sizes: Callable[[Any], int | None]):
        self.cls, self.sizes = cls, sizes

    def admits(self, value, sizes: Sizes) -> bool:
        """Whether a value is such an object; sizes met for the first time are remembered."""
        if not conforms(value, self.cls):
            return False
        own = {name: size for name, of in self.sizes.items() if (size := of(value)) is not None}
        return all(sizes.setdefault(name, size) == size for name, size in own.items())


def check_fields(what: str, given: dict, kinds: dict[str, Any], optional=frozenset()) -> None:
    """Raise ModelFileError unless the fields of a part are there, and what they should be."""
    missing, unknown = kinds.keys() - given.keys() - optional, given.keys() - kinds.keys()
    if missing or unknown:
        raise ModelFileError(f"{what}: wrong fields {sorted(missing | unknown)}")
    sizes: Sizes = {}
    for name, value in given.items():
        if not admits(kinds[name], value, sizes):
            raise ModelFileError(f"{what}.{name} is not what it should be: {value!r:.60}")


def admits(kind, value, sizes: Sizes) -> bool:
    """Whether a value is of a kind."""
    if isinstance(kind, tuple):
        return any(admits(one, value, sizes) for one in kind)
    if isinstance(kind, str):
        kind = Array(kind)
    if isinstance(kind, types.FunctionType):
        return bool(kind(value))
    if isinstance(kind, Array | Instance):
        return kind.admits(value, sizes)
    return conforms(value, kind)


def conforms(value, hint) -> bool:
    """Whether a value is of the type that an annotation names."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(conforms(value, one) for one in arguments)
    if isinstance(hint, tuple):
        return any(conforms(value, one) for one in hint)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if hint is None:
        return value is None
    if not isinstance(value, origin or hint):
        return False
    if origin is list or (origin is tuple and arguments[1:] == (Ellipsis,)):
        return all(conforms(item, arguments[0]) for item in value)
    if origin is tuple:
        same = len(value) == len(arguments)
        return same and all(conforms(*pair) for pair in zip(value, arguments, strict=True))
    return True


def finite(value) -> bool:
    """Whether a value is a finite number."""
    return conforms(value, float) and bool(np.isfinite(value))


def whole(value) -> bool:
    """Whether a value is a positive whole number."""
    return conforms(value, int) and value >= 1


def count(value) -> bool:
    """Whether a value is a whole number that is not negative."""
    return conforms(value, int) and value >= 0


def resolved(kernel) -> bool:
    """Whether a value is a kernel whose parameters are all numbers, and allowed."""
    if not isinstance(kernel, Kernel):
        return False
    for name, value in kernel.get_params(deep=False).items():
        centered = isinstance(kernel, Linear)
        vector = Array("d", kinds="fiu").admits(value, {})
        vector &= centered or name in kernel.per_column
        absent = centered and value is None
        number = isinstance(value, Real) and np.isfinite(float(value))
        if not (vector or absent or number or resolved(value)):
            return False
    if float(kernel.gamma or 0.0) < 0:
        return False
    try:
        kernel.check(np.zeros((1, 1)))
    except ValueError as error:
        raise ModelFileError(f"the kernel {kernel!r:.60} cannot be used: {error}") from error
    return True
