"""Checks of parameters and of data, with errors that say what was expected and what to do."""

import re
from collections.abc import Callable
from copy import copy
from dataclasses import fields, is_dataclass, replace
from functools import cache, lru_cache, partial
from inspect import signature
from numbers import Integral, Real
from operator import ge, gt, is_, le, lt
from typing import Annotated, Any, get_args, get_origin

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import validate_data

from ..compute import array_namespace, to_numpy
from ..compute.arrays import is_foreign, is_on_device, is_sparse
from ..compute.numbers import check_meaning, check_unmasked, reason, sound_sparse
from ..exceptions import InvalidParameterError, InvalidRowsError, tell
from ..fitting.moments import ExtraColumn
from ..kernels.base import append_columns, same_for_all
from ..kernels.derived import MISSING
from ..selectors import Selector

# Rows checked at a time when a file on disk is too large to check at once.
CHECK_ROWS = 65536
# Whole numbers below are the same as floats.
EXACT = 2**53
# Sums of a kernel's values that float64 holds, and the smallest value with all its digits.
LARGEST_SUM, SMALLEST_VALUE = 1e305, 1e-290


class Rule:
    """Values that a parameter may have, and words for them.

    An estimator lists for each parameter what it may be, in scikit-learn's words: an `Interval`,
    `StrOptions`, a class, None, ``callable``, ``"boolean"``, ``"verbose"`` or ``"random_state"``;
    or `Several` numbers. scikit-learn has such checks for its own estimators only: its module is
    private and may change with any release, so these are ours.
    """

    def __init__(self, words: str, allows: Callable[[Any], bool]):
        self.words, self.allows = words, allows

    def __repr__(self) -> str:
        return self.words


class Interval(Rule):
    """Numbers of one type between two bounds; None for no bound, and NaN is never between them.

    Parameters
    ----------
    kind : numbers.Integral or numbers.Real
    left, right : number or None
    closed : "left", "right", "both" or "neither"
        Which bounds belong to the interval. An open infinite bound leaves infinity out.
    """

    def __init__(self, kind: Any, left: Any, right: Any, closed: str = "neither"):
        above = ge if closed in ("left", "both") else gt
        below = le if closed in ("right", "both") else lt
        low, high = -np.inf if left is None else left, np.inf if right is None else right
        number, name = (int, "an int") if kind is Integral else (float, "a float")
        ends = [str(end if np.isinf(end) else number(end)) for end in (low, high)]
        opening, closing = "[" if above is ge else "(", "]" if below is le else ")"
        self.kind = kind

        def allows(x) -> bool:
            try:
                number = float(x) if isinstance(x, kind) else np.nan
            except OverflowError:  # a whole number beyond float64
                return False
            return bool(above(number, low) and below(number, high))

        super().__init__(f"{name} in the range {opening}{', '.join(ends)}{closing}", allows)


class StrOptions(Rule):
    """One of a set of strings."""

    def __init__(self, options: set[str]):
        words = f"a str among {{{', '.join(map(repr, sorted(options)))}}}"
        super().__init__(words, lambda value: isinstance(value, str) and value in options)


def instance(kind: Any, words: str) -> Rule:
    """An object of a class, or of one of some."""
    return Rule(words, lambda value: isinstance(value, kind))


class Several(Rule):
    """A list or array of numbers of an interval, one or more."""

    def __init__(self, each: Interval):
        def allows(value) -> bool:
            numbers = as_numbers(value)
            listed = numbers.ndim == 1 and numbers.size > 0 and numbers.dtype.kind in "iuf"
            return listed and all(map(each.allows, numbers.tolist()))

        super().__init__(f"a list or array, each {each.words}", allows)


def as_numbers(value: Any) -> np.ndarray:
    """A value as an array; of what is none, such as lists of several lengths, one of no numbers."""
    try:
        return np.asarray(to_numpy(value))
    except (ValueError, TypeError):
        return np.array(None)


BOOLEAN = instance(bool | np.bool_, "a bool")
NONE = instance(type(None), "None")
POSITIVE, NOT_NEGATIVE = Interval(Real, 0, None), Interval(Real, 0, None, closed="left")
FROM_0, AT_LEAST_1, FROM_2 = (Interval(Integral, k, None, closed="left") for k in range(3))
SHARE, UNIT = Interval(Real, 0, 1), Interval(Real, 0, 1, closed="both")
FADING, FINITE = Interval(Real, 0, 1, closed="right"), Interval(Real, None, None)
# Noise whose square float64 holds.
NOISE, NOISE_OR_0 = (Interval(Real, 0, 1e150, closed=ends) for ends in ("neither", "left"))
AUTO, MEASURES = StrOptions({"auto"}), StrOptions({"auto", "median", "mean"})
SEARCHES = StrOptions({"auto", "exact", "approximate"})
#: A gamma for each column, numbers of rows.
WIDTHS, ROW_NUMBERS = Several(NOT_NEGATIVE), Several(Interval(Integral, None, None))
#: Types of parameters, with the rules for them.
Count = Annotated[int, AT_LEAST_1]
Flag = Annotated[bool, BOOLEAN]
Share = Annotated[float, SHARE]
WORDS: dict[Any, list[Rule]] = {
    None: [NONE],
    callable: [Rule("a callable", lambda value: callable(value) and not isinstance(value, type))],
    "boolean": [BOOLEAN],
    "random_state": [
        Interval(Integral, 0, 2**32 - 1, closed="both"),
        instance(np.random.RandomState, "a numpy.random.RandomState"),
        NONE,
    ],
    "verbose": [FROM_0, BOOLEAN],
}


DEVICE = Rule(
    "'cpu', 'cuda', 'cuda:1' or a torch.device",
    lambda value: (
        bool(re.fullmatch(r"(cpu|cuda)(:\d{1,3})?", value))
        if isinstance(value, str)
        else type(value).__module__ == "torch"
    ),
)


def rules(constraint) -> list[Rule]:
    """What a constraint allows."""
    if isinstance(constraint, Rule):
        return [constraint]
    if isinstance(constraint, type):
        article = "an" if constraint.__name__[0].lower() in "aeiou" else "a"
        return [instance(constraint, f"{article} {constraint.__name__}")]
    return WORDS[constraint]


@cache
def checks_of(kind: Any) -> list[tuple[str, Any, list[Rule]]]:
    """Name, default and rules of every parameter that is checked.

    Cached for each class: looking them up takes longer than a fit to a few rows.
    """
    parameters, constraints = signature(kind.__init__).parameters, dict(kind._parameter_constraints)
    for field in fields(kind) if is_dataclass(kind) else ():
        if get_origin(field.type) is Annotated:
            constraints[field.name] = get_args(field.type)[1:]
    return [
        (name, parameters[name].default, [rule for one in constraints[name] for rule in rules(one)])
        for name in constraints
        if name in parameters
    ]


TABLE = Rule("an array of numbers", lambda value: as_numbers(value).dtype.kind in "iuf")
# What parameters of parts (kernels, bases, selectors, solvers, pre-images) may be, by name, and
# where a class has another use for a name by both. One that is not listed is checked by its part.
OF_PARTS: dict[str, list[Any]] = {
    name: allowed
    for names, allowed in (
        ("alpha eta0 tau", [POSITIVE, None]),
        ("RationalQuadratic.alpha clip nu", [POSITIVE]),
        ("amnesic error mu threshold", [NOT_NEGATIVE, None]),
        ("among", [StrOptions({"random", "farthest"})]),
        ("block max_columns max_iter max_passes n_targets pool", [AT_LEAST_1, None]),
        ("candidates n_components n_neighbors n_passes sample size", [AT_LEAST_1]),
        ("GramPower.block PreimageDictionary.block FixedPoint.max_iter", [AT_LEAST_1]),
        ("box center columns ranges", [TABLE, None]),
        ("bounds", [TABLE]),
        ("cap", [Interval(Real, 0, None, closed="right")]),
        ("centered definite packed replace rotate snap", ["boolean"]),
        ("to_rounding track_excess unit weighted", ["boolean"]),
        ("coef0 rho0", [FINITE]),
        ("degree tol", [NOT_NEGATIVE]),
        ("estimate", [StrOptions({"outputs", "product", "running"})]),
        ("first second selector", [Selector, None]),
        ("Arpack.form subset", ["boolean", None]),
        ("function", [callable, None]),
        # Its sign is for the `check` of the kernel.
        ("gamma", [FINITE, StrOptions({"median", "mean"}), None, Several(FINITE)]),
        ("indices landmarks", [ROW_NUMBERS, None]),
        ("iterated_power", [FROM_0, AUTO]),
        ("kind", [StrOptions({"orthogonal", "plain", "qmc"})]),
        ("margin", [NOT_NEGATIVE, StrOptions({"all"})]),
        ("method", [StrOptions({"accelerated", "block", "plain"})]),
        ("noise", [NOISE, None]),
        ("norm", [StrOptions({"score", "rkhs"})]),
        ("oversampling", [FROM_0]),
        ("Hebbian.oversampling", [FROM_0, None]),
        ("RidgeLeverage.oversampling", [Interval(Real, 0, 1e6)]),
        ("readout", [StrOptions({"ritz", "nystroem", "carried", "free"})]),
        ("Landmarks.size", [AT_LEAST_1, SHARE, None]),
        ("xi", [UNIT]),
    )
    for name in names.split()
}


@cache
def rules_of_part(kind: type, name: str) -> list[Rule]:
    """What a parameter of a class of parts may be; none for one that its part checks.

    A part that users wrote may mean something else by such a name.
    """
    if not kind.__module__.startswith("mercer."):
        return []
    allowed = OF_PARTS.get(f"{kind.__name__}.{name}", OF_PARTS.get(name, []))
    return [rule for one in allowed for rule in rules(one)]


def check_parameter(owner: Any, name: str, value: Any, allowed: list[Rule]) -> None:
    """Raise InvalidParameterError for a value that no rule allows."""
    # A bool counts as a number in Python, and is never meant as one.
    is_switch = isinstance(value, bool) and BOOLEAN not in allowed
    if is_switch or not any(rule.allows(value) for rule in allowed):
        raise InvalidParameterError(
            f"The {name!r} parameter of {type(owner).__name__} must be "
            f"{one_of([rule.words for rule in allowed])}. Got {value!r:.99} instead.",
            parameter=name,
        )


def is_part(value: Any) -> bool:
    """Whether a parameter is a kernel, basis, selector, solver, pre-image or gain."""
    return isinstance(value, BaseEstimator) and not isinstance(value, TransformerMixin)


def check_parts(value: Any) -> None:
    """Raise InvalidParameterError for what a part, or a part of it, cannot take."""
    if isinstance(value, list | tuple):
        for one in value:
            check_parts(one)
    if is_part(value):
        kind: Any = type(value)
        for name, one in vars(value).items():
            allowed = rules_of_part(kind, name)
            if allowed:
                check_parameter(value, name, one, allowed)
            check_parts(one)


def plain(value: Any, allowed: list[Rule] | None = None) -> Any:
    """A parameter in Python's numbers: NumPy's overflow, and fractions have no roots."""
    if isinstance(value, Real) and not isinstance(value, bool):
        if type(value) is float or (type(value) is int and abs(value) < EXACT):
            return value
        allowed = allowed or []
        kinds = [rule.kind for rule in allowed if isinstance(rule, Interval)]
        if isinstance(value, Integral) and (Integral in kinds or not kinds):
            return int(value)
        return float(value) if Real in kinds and any(r.allows(value) for r in allowed) else value
    if isinstance(value, list | tuple):
        items = [plain(one) for one in value]
        return value if all(map(is_, items, value)) else type(value)(items)
    if not is_part(value):
        return value
    kind: Any = type(value)
    own = {name: plain(one, rules_of_part(kind, name)) for name, one in vars(value).items()}
    if all(own[name] is one for name, one in vars(value).items()):
        return value
    part = copy(value)
    vars(part).update(own)
    return part


def one_of(words: list[str]) -> str:
    """Words with commas, and "or" before the last."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def valid_rows(estimator, X, **options):
    """X as an array or CSR matrix of finite floats, its columns noted or compared.

    As `sklearn.utils.validation.validate_data`, whose options it takes, with dates, masked and
    complex values refused, and errors that say where the fault is and what to do. Those checks
    allow for all kinds of data and take longer than the kernel of a hundred rows, so a matrix of
    finite floats without names is taken as it is.
    """
    types = options["dtype"] if isinstance(options["dtype"], list) else [options["dtype"]]
    plain = (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.dtype.type in types
        and X.dtype.isnative
        and X.size
        and X.shape[0] >= options.get("ensure_min_samples", 1)
        and "feature_names_in_" not in vars(estimator)
    )
    if plain:
        with np.errstate(all="ignore"):
            plain = np.isfinite(X.sum())  # a sum that overflows is looked at entry by entry
    if plain and options.get("reset", True):
        estimator.n_features_in_ = X.shape[1]
    if plain and vars(estimator).get("n_features_in_") == X.shape[1]:
        return np.array(X) if options.get("copy") else X
    return checked_array(X, partial(validate_data, estimator), **options)


def checked_array(X, check: Callable = check_array, **options):
    """X as a check of scikit-learn gives it, or an error that says where the fault is."""
    name = options.get("input_name", "X")
    check_meaning(X, name)
    if is_sparse(X) and not options.get("accept_sparse"):
        # In the words of scikit-learn, which its estimator checks look for.
        raise InvalidRowsError(
            f"Sparse data was passed for {name}, but dense data is required. Use '.toarray()' to "
            "convert to a dense numpy array."
        )
    X = sound_sparse(X, name) if is_sparse(X) else X
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            return check(X, **options)
    except (ValueError, TypeError, OverflowError) as error:
        raise reason(X, error, name) from error


def checked_in_place(X, least_rows: int, copy: bool):
    """A memmap, or a matrix on a device as a torch tensor of floats, read in blocks.

    ValueError unless its numbers are finite; with `copy` a tensor has memory of its own.
    """
    is_file = isinstance(X, np.memmap)
    if not is_file:
        import torch

        X = X.detach() if isinstance(X, torch.Tensor) else torch.from_dlpack(X)
    xp = array_namespace(X)
    if X.ndim != 2 or not xp.isdtype(X.dtype, ("bool", "integral", "real floating")):
        raise ValueError(
            f"Expected a 2D array of numbers, got a {X.ndim}D array of type {X.dtype} instead."
        )
    if X.shape[0] < least_rows or X.shape[1] < 1:
        raise ValueError(
            f"Found array with shape {tuple(X.shape)} while a minimum of {least_rows} rows and 1 "
            "column is required."
        )
    for start in range(0, X.shape[0], CHECK_ROWS):
        if not bool(xp.isfinite(X[start : start + CHECK_ROWS]).all()):
            raise ValueError(
                f"Input X contains NaN or infinity in rows {start} to {start + CHECK_ROWS}. "
                "Remove or fill those rows first."
            )
    if is_file:
        return X
    dtype = X.dtype if X.dtype in (xp.float32, xp.float64) else xp.float64
    return xp.asarray(X, dtype=dtype, copy=copy or None)


def check_gram(K) -> None:
    """Raise ValueError unless K is a square symmetric matrix."""
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"A precomputed kernel must be a square matrix, n_samples x n_samples, and X has "
            f"shape {tuple(K.shape)}. Pass the kernel between all training rows, or name a "
            "kernel to have it computed from the rows."
        )
    n, largest, gap = K.shape[0], 0.0, 0.0
    for start in range(0, n, 1024):
        rows = slice(start, start + 1024)
        gap = max(gap, abs(K[rows] - K[:, rows].T).max())
        largest = max(largest, abs(K[rows]).max())
    if not largest * n < LARGEST_SUM or 0 < largest < SMALLEST_VALUE:
        raise ValueError(
            f"The precomputed kernel holds values of up to {largest:.1e}, and float64 does not "
            f"hold sums of {n:,} of them with all digits. Scale it, K / np.abs(K).max()."
        )
    if gap > 1e-5 * largest:
        raise ValueError(
            f"A precomputed kernel must be symmetric, and entries across the diagonal differ by "
            f"up to {gap:.3g}. Pass (K + K.T) / 2 if that is rounding."
        )


def check_columns(rows) -> None:
    """Raise ValueError unless rows of m landmarks have m values with them, and then k(z, z)."""
    rows = rows.toarray() if is_sparse(rows) else to_numpy(rows)
    m = rows.shape[0]
    if rows.shape[1] != m + 1:
        raise ValueError(
            f"A precomputed kernel with {m} landmarks has rows of {m + 1} columns, its values with "
            f"these and k(x, x), and X has {rows.shape[1]} columns. Pass "
            "numpy.column_stack([K[:, landmarks], diagonal])."
        )
    check_gram(rows[:, :m])
    gap = abs(rows.diagonal() - rows[:, m])
    if gap.max() > 1e-5 * abs(rows).max():
        at = int(gap.argmax())
        raise ValueError(
            f"Landmark {at} has k(z, z) = {rows[at, m]:.6g} in the last column and "
            f"{rows[at, at]:.6g} among its values with landmarks. Pass the diagonal of the same "
            "kernel, and columns in the order of landmarks."
        )


def with_diagonal(X, d: int):
    """Rows of d columns, with `MISSING` where the last one, k(x, x), is."""
    is_array = is_sparse(X) or is_foreign(X) or isinstance(X, np.ndarray)
    misses_one = is_array and X.ndim == 2 and X.shape[1] == d - 1
    return append_columns(X, same_for_all(X, MISSING)) if misses_one else X


def checked_weights(sample_weight: Any, n: int, least: int = 2) -> Any:
    """Weights as numbers (n,), or an error that says what is wrong; None for all alike.

    A number stands for the same weight of every row. At least `least` rows must count.
    """
    w = as_weights(sample_weight)
    if w is None or isinstance(w, ExtraColumn):  # whose entries are checked where they are
        return None if w is None else replace(w, count=n)
    if w.ndim == 0:
        w = np.full(n, w)
    if w.dtype.kind not in "biuf" or w.shape != (n,):
        raise ValueError(
            f"sample_weight.shape == {w.shape}, and its type {w.dtype}; expected {(n,)}, a number "
            f"for each of the {n} rows."
        )
    w = w.astype(float)
    if not np.abs(w).sum() < LARGEST_SUM:
        raise ValueError(
            "sample_weight contains NaN or infinity, or numbers whose sum float64 does not hold. "
            "Give those rows a weight, or 0, or scale all, w / w.max()."
        )
    if (w < 0).any():
        raise ValueError(
            "Negative values in sample_weight. Give weights of 0 or more; 0 leaves a row out."
        )
    if np.count_nonzero(w) < least:
        raise ValueError(
            f"Only {np.count_nonzero(w)} of {n} values of sample_weight are not zero, and a "
            f"minimum of {least} rows that count is required."
        )
    return w


def as_weights(sample_weight: Any) -> Any:
    """Weights as an array, brought here; None and columns of a table on a cluster as they are."""
    if sample_weight is None or isinstance(sample_weight, ExtraColumn):
        return sample_weight
    check_unmasked(sample_weight, "sample_weight")
    try:
        return np.asarray(to_numpy(sample_weight))
    except ValueError as error:
        raise reason(sample_weight, error, "sample_weight") from error


@lru_cache
def _seed_of(random_state: int) -> int:
    # Cached: to make a generator takes longer than LAPACK needs for a few rows.
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def seed_from(random_state: Any) -> int:
    """A seed from any random state that scikit-learn takes; a generator is advanced."""
    if isinstance(random_state, Integral):
        return _seed_of(int(random_state))
    return _seed_of.__wrapped__(random_state)


def in_main_memory(X, who: str):
    """Rows of any library as NumPy's, with a warning where they were on a device."""
    if is_on_device(X):
        tell(
            f"{who} computes in main memory, and these rows are on a device: they are copied. "
            "The page 'On a GPU' of the documentation lists the methods that compute on a device."
        )
    return to_numpy(X) if is_foreign(X) else X
