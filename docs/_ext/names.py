"""Which public names the API pages hold: what `.. reference::` lines of `docs/api` stand for.

A line names registries (every part in them), packages (their public names that stand in no registry
and on no other line) or objects. So a part that joins its registry, or a name that joins `__all__`,
is on its page.
"""

import re
from functools import cache
from importlib import import_module
from pathlib import Path

import mercer

API = Path(__file__).parents[1] / "api"
LINE = re.compile(r"^\.\. reference:: (.+)$", re.MULTILINE)


@cache
def arguments() -> list[str]:
    """What the reference lines of all API pages name."""
    lines = [line for path in sorted(API.glob("*.md")) for line in LINE.findall(path.read_text())]
    return [argument for line in lines for argument in line.split()]


def documented() -> list[str]:
    """Full names of everything that has a page."""
    return [name for argument in arguments() for name in expand(argument)]


def expand(argument: str) -> dict[str, list[str]]:
    """Full names behind an argument, each with the strings that ask for it."""
    found = resolve(argument)
    if isinstance(found, dict):
        return parts_of(argument, found)
    if not hasattr(found, "__path__") and not hasattr(found, "__all__"):
        return {argument: []}
    names = [name for name in found.__all__ if not name.startswith("_")]
    registries = [getattr(found, name) for name in names if is_registry(found, name)]
    taken = [part for registry in registries for part in registry.values()]
    free = [
        full_name(argument, name)
        for name in names
        if not is_registry(found, name) and getattr(found, name) not in taken
    ]
    return {name: [] for name in free if name not in arguments()}


def parts_of(argument, registry) -> dict[str, list[str]]:
    """Parts of a registry, each once, with all the words that it answers to."""
    home = resolve(argument.rpartition(".")[0])
    found: dict[str, list[str]] = {}
    for word, part in registry.items():
        module = home.__name__ if part.__name__ in home.__all__ else part.__module__
        words = found.setdefault(full_name(module, part.__name__), [])
        if word != part.__name__:
            words.append(word)
    return found


def is_registry(module, name) -> bool:
    """Whether a public name is a dictionary of parts."""
    return name.isupper() and isinstance(getattr(module, name), dict)


def full_name(module: str, name: str) -> str:
    """Where users import a name from: `mercer` itself where it has it."""
    return f"mercer.{name}" if name in mercer.__all__ else f"{module}.{name}"


def resolve(name: str):
    """The object of a full name."""
    parts = name.split(".")
    found = import_module(parts[0])
    for i, part in enumerate(parts[1:], 2):
        try:
            found = getattr(found, part)
        except AttributeError:
            found = import_module(".".join(parts[:i]))
    return found
