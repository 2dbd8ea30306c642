"""Checks of parameters: what each may be, and words for it."""

from collections.abc import Callable
from functools import cache
from inspect import signature
from numbers import Integral, Real
from operator import ge, gt, le, lt
from typing import Any

import numpy as np


class Rule:
    """Values that a parameter may have, and words for them.

    An estimator lists for each parameter what it may be, in scikit-learn's words: an `Interval`,
    `StrOptions`, a class, None, ``callable``, ``"boolean"``, ``"verbose"``, ``"array-like"`` or
    ``"random_state"``. scikit-learn has such checks for its own estimators only: its module is
    private and may change with any release, so these are ours.
    """

    def __init__(self, words: str, allows: Callable[[Any], bool]):
        self.words, self.allows = words, allows


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
        super().__init__(
            f"{name} in the range {opening}{', '.join(ends)}{closing}",
            lambda x: isinstance(x, kind) and bool(above(x, low) and below(x, high)),
        )


class StrOptions(Rule):
    """One of a set of strings."""

    def __init__(self, options: set[str]):
        words = f"a str among {{{', '.join(map(repr, sorted(options)))}}}"
        super().__init__(words, lambda value: isinstance(value, str) and value in options)


def instance(kind: Any, words: str) -> Rule:
    """An object of a class, or of one of some."""
    return Rule(words, lambda value: isinstance(value, kind))


def holds_several(value) -> bool:
    """Whether the value has a length or a shape, and is no scalar and no string."""
    several = any(hasattr(value, name) for name in ("__len__", "shape", "__array__"))
    return several and not np.isscalar(value)


BOOLEAN = instance(bool | np.bool_, "a bool")
NONE = instance(type(None), "None")
POSITIVE, AT_LEAST_1 = Interval(Real, 0, None), Interval(Integral, 1, None, closed="left")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
WORDS: dict[Any, list[Rule]] = {
    None: [NONE],
    callable: [Rule("a callable", callable)],
    "array-like": [Rule("an array-like", holds_several)],
    "boolean": [BOOLEAN],
    "random_state": [
        Interval(Integral, 0, 2**32 - 1, closed="both"),
        instance(np.random.RandomState, "a numpy.random.RandomState"),
        NONE,
    ],
    "verbose": [Interval(Integral, 0, None, closed="left"), BOOLEAN],
}


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

    Kept for each class: to look them up takes longer than to fit some rows.
    """
    parameters, constraints = signature(kind.__init__).parameters, kind._parameter_constraints
    return [
        (name, parameters[name].default, [rule for one in constraints[name] for rule in rules(one)])
        for name in constraints
        if name in parameters
    ]


def one_of(words: list[str]) -> str:
    """Words with commas, and "or" before the last."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
