"""What a command found: facts for programs, text for people."""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Result:
    """The outcome of a command.

    Attributes
    ----------
    facts : dict
        One JSON document; arrays and NumPy numbers are allowed.
    text : str
        The same for people.
    """

    facts: dict
    text: str


def to_json(facts: dict) -> str:
    """One JSON document; what is not a number becomes null, since JSON has no NaN."""
    return json.dumps(_plain(facts), allow_nan=False)


def lines(pairs: Iterable[tuple[str, object]]) -> str:
    """Names and values in two columns."""
    pairs = [(name, str(value)) for name, value in pairs]
    width = max(len(name) for name, _ in pairs)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in pairs)


def _plain(value):
    """Containers, strings and numbers of Python only."""
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
