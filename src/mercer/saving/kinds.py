"""What the values of a model file must be, declared field by field.

A *kind* is one of

- a type or an annotation: ``int``, ``str | None``, ``tuple[float, float]``, ``list[Record]``; a
  `Kernel` must have numbers for its parameters, the size of a `Basis` is called m;
- a text for an array of finite floats of single or double precision: the names of its sides,
  ``"m k"``, ``sparse`` where it may be sparse, ``int``, ``text`` or ``real`` where it has other
  entries, ``wide`` where they need not be finite, ``or None`` where it may be missing. Within one
  part equal names mean equal lengths;
- a text for a finite number: an interval, such as ``"[0, 1)"``;
- a text for an object with sizes: the name of its class in `SIZES`, or several with ``|`` between
  them, and the names of its sizes, ``"KernelExpansion d r"``;
- a function that says whether a value will do;
- a tuple of kinds, one of which must hold.

Dataclasses declare their fields in this way themselves: ``Annotated[np.ndarray, "m k"]``. Whatever
comes from a file is checked before it is used: what does not fit together is refused when it is
read, and not when the model is used.
"""

import types
from collections.abc import Callable
from numbers import Real
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import numpy as np

from ..bases import Basis
from ..compute import is_sparse
from ..exceptions import ModelFileError
from ..kernels import BlockFunction, Kernel
from ..kernels.derived import CompositeKernel

FINITE = "(-inf, inf)"
WHOLE = Annotated[int, "[1, inf)"]
# Words beside the sides of an array, and the kinds of NumPy's types that they stand for.
TYPES = {"int": "iu", "text": "O", "real": "biuf"}
WORDS, NONE = {*TYPES, "sparse", "wide"}, " or None"
# Sides that are never 0: those that count rows, points, columns or clusters.
FILLED = {"n", "s", "t", "a", "d", "c"}

# Columns that kernels of some columns may need, on which they are tried.
MOST_COLUMNS = 10**7

Sizes = dict[str, Any]


#: Sizes of objects by the name of their class; an int is its own size.
SIZES: dict[str, Callable[[Any], tuple]] = {"int": lambda value: (value,)}


def check_fields(what: str, given: dict, kinds: dict[str, Any], optional=frozenset()) -> None:
    """Raise ModelFileError unless the fields of a part are there, and what they should be."""
    missing, unknown = kinds.keys() - given.keys() - optional, given.keys() - kinds.keys()
    if missing or unknown:
        raise ModelFileError(f"{what}: wrong fields {sorted(missing | unknown)}")
    sizes: Sizes = {}
    for name, value in given.items():
        if not admits(kinds[name], value, sizes):
            raise ModelFileError(f"{what}.{name} is not what it should be: {value!r:.60}")


def admits(kind, value: Any, sizes: Sizes) -> bool:
    """Whether a value is of a kind; sizes met for the first time are remembered."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return True
    if origin is Literal:
        return isinstance(value, str) and value in arguments
    if isinstance(kind, tuple) or origin in (Union, types.UnionType):
        return any(admits(one, value, sizes) for one in arguments or kind)
    if origin is Annotated:
        return all(admits(one, value, sizes) for one in arguments)
    if isinstance(kind, str):
        if kind.endswith(NONE):
            return value is None or admits(kind.removesuffix(NONE), value, sizes)
        if kind[0] in "[(":
            return is_within(kind, value)
        first = kind.split("|")[0].split()[0]
        return (is_object if first in SIZES else is_array)(kind, value, sizes)
    if isinstance(kind, types.FunctionType):
        return bool(kind(value))
    if kind is Kernel:
        return is_resolved(value)
    if kind is Basis:
        return isinstance(value, Basis) and sizes.setdefault("m", value.size) == value.size
    if kind is None or (kind in (int, float) and isinstance(value, bool)):
        return value is kind
    expected: Any = int | float if kind is float else origin or kind
    if not isinstance(value, expected):
        return False
    if origin is list or (origin is tuple and arguments[1:] == (Ellipsis,)):
        return all(admits(arguments[0], item, sizes) for item in value)
    if origin is tuple:
        pairs = zip(arguments, value, strict=False)
        return len(arguments) == len(value) and all(admits(*pair, sizes) for pair in pairs)
    return True


def is_object(text: str, value, sizes: Sizes) -> bool:
    """Whether a value is an object of the classes that a text names, with its sizes."""
    classes, *names = text.split()
    kind = type(value).__name__
    if kind not in classes.split("|"):
        return False
    pairs = zip(names, SIZES[kind](value), strict=True)
    return all(sizes.setdefault(name, size) == size for name, size in pairs)


def is_array(text: str, value, sizes: Sizes) -> bool:
    """Whether a value is an array of the sides and entries that a text names."""
    words = text.split()
    sides = [word for word in words if word not in WORDS]
    entries = next((TYPES[word] for word in words if word in TYPES), "f")
    dense = isinstance(value, np.ndarray)
    if not dense and not ("sparse" in words and is_sparse(value)):
        return False
    if value.dtype.kind not in entries or value.ndim != len(sides) or value.dtype == np.float16:
        return False
    numbers = value if dense else value.data
    if value.dtype.kind == "f" and "wide" not in words and not np.isfinite(numbers).all():
        return False
    if "text" in words and sizes.setdefault("names", tuple(value)) != tuple(value):
        return False
    pairs = list(zip(sides, value.shape, strict=True))
    if any(size == 0 for side, size in pairs if side in FILLED):
        return False
    return all(sizes.setdefault(side, size) == size for side, size in pairs)


def is_within(interval: str, value) -> bool:
    """Whether a value is a finite number within an interval such as ``"[0, 1)"``."""
    if not admits(float, value, {}) or not np.isfinite(value):
        return False
    low, high = map(float, interval[1:-1].split(","))
    above = value > low if interval[0] == "(" else value >= low
    return above and (value < high if interval[-1] == ")" else value <= high)


def is_resolved(kernel) -> bool:
    """Whether a value is a kernel whose parameters are all numbers, and allowed."""
    if not isinstance(kernel, Kernel):
        return False
    if isinstance(kernel, BlockFunction):
        return isinstance(kernel.definite, bool) and isinstance(kernel.params, dict | None)
    composite = isinstance(kernel, CompositeKernel)
    for name, value in kernel.get_params(deep=False).items():
        vector = value is None or any(is_array(k, value, {}) for k in ("d real", "q d real"))
        number = isinstance(value, Real) and np.isfinite(float(value))
        if number or (vector and name in kernel.per_column):
            continue
        parts = value if isinstance(value, list | tuple) else [value]
        if not (composite and parts and all(map(is_resolved, parts))):
            return False
    check_kernel(kernel)
    return True


def check_kernel(kernel, columns: int = 0) -> None:
    """Raise ModelFileError where a kernel takes no rows, once words for its width are numbers.

    Of as many columns as given, or else as its parameters need.
    """
    if isinstance(kernel, BlockFunction):
        return  # which has no function yet
    composite, params = isinstance(kernel, CompositeKernel), kernel.get_params()
    if composite and any(np.ndim(leaf.gamma) for leaf in kernel.leaves()):
        return  # widths of columns, that other parts do not take
    # Columns that its parts choose, or have a number for.
    chosen = [
        1 + np.max(v, initial=0)
        for k, v in params.items()
        if k.endswith("columns") and v is not None
    ]
    widths = ("gamma", "scales", "usual")
    sizes = [np.atleast_1d(v).shape[-1] for k, v in params.items() if k.endswith(widths)]
    try:
        # A forged file may name any column.
        columns = columns or min(int(max(chosen + sizes, default=1)), MOST_COLUMNS)
        rows = kernel.domain.nearest(np.zeros((2, columns)))
        kernel.resolve(rows).check(rows)
    except ValueError as error:
        raise ModelFileError(f"the kernel {kernel!r:.60} cannot be used: {error}") from error
