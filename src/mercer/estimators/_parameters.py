"""Parameters of an estimator, checked when it is fitted, with errors that say what is allowed.

An estimator lists for each parameter what it may be, in scikit-learn's words: an `Interval`,
`StrOptions`, a class, None, ``callable``, ``"boolean"``, ``"verbose"``, ``"array-like"`` or
``"random_state"``. scikit-learn has such checks for its own estimators only: its module is private
and may change with any release, so these are ours.
"""

from dataclasses import dataclass
from functools import cache
from inspect import signature
from numbers import Integral
from typing import Any

import numpy as np

# Threads that no machine has: libraries below us fail on more.
MOST_JOBS = 10_000


@dataclass(frozen=True)
class Interval:
    """Numbers of one type between two bounds; None for no bound.

    Parameters
    ----------
    type : numbers.Integral or numbers.Real
    left, right : number or None
    closed : "left", "right", "both" or "neither"
        Which bounds belong to the interval. An open infinite bound leaves infinity out.
    """

    type: Any
    left: float | None
    right: float | None
    closed: str = "neither"

    def allows(self, value) -> bool:
        """Whether the value is of the type and within the bounds; NaN never is."""
        if not isinstance(value, self.type):
            return False
        left = -np.inf if self.left is None else self.left
        right = np.inf if self.right is None else self.right
        after = value >= left if self.closed in ("left", "both") else value > left
        before = value <= right if self.closed in ("right", "both") else value < right
        return bool(after and before)

    def __str__(self):
        number = int if self.type is Integral else float
        left = "-inf" if self.left is None else number(self.left)
        right = "inf" if self.right is None else number(self.right)
        opening = "[" if self.closed in ("left", "both") else "("
        closing = "]" if self.closed in ("right", "both") else ")"
        name = "an int" if self.type is Integral else "a float"
        return f"{name} in the range {opening}{left}, {right}{closing}"


@dataclass(frozen=True)
class StrOptions:
    """One of a set of strings."""

    options: set[str]

    def allows(self, value) -> bool:
        """Whether the value is one of the strings."""
        return isinstance(value, str) and value in self.options

    def __str__(self):
        return f"a str among {{{', '.join(map(repr, sorted(self.options)))}}}"


@dataclass(frozen=True)
class Instance:
    """An object of one of some classes."""

    classes: tuple[type, ...]
    words: str

    def allows(self, value) -> bool:
        """Whether the value is of one of the classes."""
        return isinstance(value, self.classes)

    def __str__(self):
        return self.words


class Function:
    """Anything that can be called."""

    def allows(self, value) -> bool:
        """Whether the value can be called."""
        return callable(value)

    def __str__(self):
        return "a callable"


class ArrayLike:
    """Anything with a length or a shape that is no scalar and no string."""

    def allows(self, value) -> bool:
        """Whether the value holds several."""
        several = any(hasattr(value, name) for name in ("__len__", "shape", "__array__"))
        return several and not np.isscalar(value)

    def __str__(self):
        return "an array-like"


BOOLEAN = Instance((bool, np.bool_), "a bool")
NONE = Instance((type(None),), "None")
WORDS: dict[str, list] = {
    "array-like": [ArrayLike()],
    "boolean": [BOOLEAN],
    "random_state": [
        Interval(Integral, 0, 2**32 - 1, closed="both"),
        Instance((np.random.RandomState,), "a numpy.random.RandomState"),
        NONE,
    ],
    "verbose": [Interval(Integral, 0, None, closed="left"), BOOLEAN],
}


@cache
def checks_of(kind: Any) -> list[tuple[str, Any, list]]:
    """Name, default and rules of every parameter that is checked.

    Kept for each class: to look them up takes longer than to fit some rows.
    """
    parameters = signature(kind.__init__).parameters
    return [
        (name, parameters[name].default, [rule for one in allowed for rule in rules(one)])
        for name, allowed in kind._parameter_constraints.items()
        if name in parameters
    ]


def rules(constraint) -> list:
    """A constraint as objects that allow values and say which."""
    if constraint is None:
        return [NONE]
    if constraint is callable:
        return [Function()]
    if isinstance(constraint, str):
        return WORDS[constraint]
    if isinstance(constraint, type):
        article = "an" if constraint.__name__[0].lower() in "aeiou" else "a"
        return [Instance((constraint,), f"{article} {constraint.__name__}")]
    return [constraint]


def listed(words: list[str]) -> str:
    """Words with commas, and "or" before the last."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
