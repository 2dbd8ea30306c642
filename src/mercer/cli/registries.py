"""Names of the library's registries, for options: a new part is a new choice.

They are read from the registry's source until it is imported, so that ``--help`` does not wait for
numerics; a test compares both.
"""

import ast
import sys
from collections.abc import Iterator, Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path

PACKAGE = Path(__file__).parents[1]


class RegistryNames(Sequence):
    """The names in a registry, known without importing it.

    Parameters
    ----------
    package : str
        The part of mercer that has the registry in its `__init__`.
    registry : str
        The name of the dictionary.
    without : tuple of str
        Names that are no choices.
    """

    def __init__(self, package: str, registry: str, without: tuple[str, ...] = ()):
        self.package, self.registry, self.without = package, registry, without

    @property
    def names(self) -> list[str]:
        """The names in the order of the registry, as it is where it was imported already."""
        if f"mercer.{self.package}" in sys.modules:
            return [name for name in self.load() if name not in self.without]
        return self.written

    @cached_property
    def written(self) -> list[str]:
        """The names that the source has."""
        source = (PACKAGE / self.package / "__init__.py").read_text(encoding="utf-8")
        names = keys_in(source, self.registry)
        for path in sorted((PACKAGE / "relatives").glob("*.py")):
            names += keys_added(path.read_text(encoding="utf-8"), self.registry)
        return [name for name in names if name not in self.without]

    def load(self) -> dict:
        """The registry itself."""
        return vars(import_module(f"mercer.{self.package}"))[self.registry]

    def __getitem__(self, i):
        return self.names[i]

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)


def keys_in(source: str, registry: str) -> list[str]:
    """The keys of a dictionary as its source writes them: texts, or classes under their names."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            if node.target.id == registry and isinstance(node.value, ast.Dict):
                return [str(ast.literal_eval(key)) for key in node.value.keys if key is not None]
            if node.target.id == registry and isinstance(node.value, ast.DictComp):
                return [ast.unparse(item) for item in items_of(node.value)]
    raise LookupError(f"There is no dictionary {registry} to read names from.")


def keys_added(source: str, registry: str) -> list[str]:
    """The keys that a module adds to a registry: ``registry["key"] = ...``."""
    targets = [t for n in ast.parse(source).body if isinstance(n, ast.Assign) for t in n.targets]
    return [
        str(ast.literal_eval(target.slice))
        for target in targets
        if isinstance(target, ast.Subscript) and ast.unparse(target.value) == registry
    ]


def items_of(comprehension: ast.DictComp) -> list[ast.expr]:
    """What a comprehension over a tuple goes over."""
    over = comprehension.generators[0].iter
    return list(over.elts) if isinstance(over, ast.Tuple | ast.List) else []


# "polynomial" is scikit-learn's other name of "poly".
KERNEL_NAMES = RegistryNames("kernels", "KERNELS", without=("polynomial",))
SOLVER_NAMES = RegistryNames("solvers", "SOLVERS")
BASIS_NAMES = RegistryNames("bases", "BASES", without=("points",))
SELECTOR_NAMES = RegistryNames("selectors", "SELECTORS")
