"""A fit is all or nothing: fitted attributes change together, or not at all."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np

Fit = TypeVar("Fit", bound=Callable[..., Any])

# Private attributes that a fit sets; public ones end in an underscore.
PRIVATE_RESULTS = {
    "_anchors",
    "_distance",
    "_dtype",
    "_encoding",
    "_kept",
    "_points",
    "_rectangular",
    "_state",
    "_stream",
    "_variance",
}


def all_or_nothing(fit: Fit) -> Fit:
    """A fit that leaves the estimator as it was where it fails or is interrupted.

    It works on a copy with the same parameters and nothing fitted, whose attributes become those
    of the estimator at the end.
    """

    @wraps(fit)
    def whole(self, X, y=None, *more, **options):
        fresh = unfitted(self)
        # Overflow is checked for in results, with errors that name the kernel.
        with np.errstate(over="ignore", invalid="ignore"):
            fit(fresh, X, y, *more, **options)
        become(self, fresh)
        return self

    return cast(Fit, whole)


def unfitted(model):
    """An estimator with the same parameter objects and settings, and nothing fitted."""
    fresh = object.__new__(type(model))
    fresh.__dict__ = {name: x for name, x in vars(model).items() if not is_result(name)}
    return fresh


def become(model, fresh) -> None:
    """Give an estimator the results of another one, and those alone, in a single step."""
    kept = {name: value for name, value in vars(model).items() if not is_result(name)}
    # One assignment: an interrupt comes before it or after it.
    model.__dict__ = kept | vars(fresh)


def is_result(name: str) -> bool:
    """Whether an attribute comes from a fit."""
    return name in PRIVATE_RESULTS or (name.endswith("_") and not name.startswith("_"))
