"""What a part can be asked stands in its base class: nobody finds out by probing for it.

Probes, `hasattr` and `getattr` with a default, are for objects that users bring.
"""

import ast
from pathlib import Path

import mercer

ROOT = Path(mercer.__path__[0])
# What our own objects are called wherever they are passed.
PARTS = {"kernel", "basis", "selector", "operator", "solver", "engine", "rows", "span", "stream"}
RESULTS = {"model", "expansion", "certificate", "plan", "history", "moments", "problem"}
OURS = {"self", "estimator"} | PARTS | RESULTS


def probes(text):
    """Lines that ask one of our objects whether it has an attribute."""
    for node in ast.walk(ast.parse(text)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args):
            continue
        asks = node.func.id == "hasattr" or (node.func.id == "getattr" and len(node.args) == 3)
        if asks and isinstance(node.args[0], ast.Name) and node.args[0].id in OURS:
            yield node.lineno


def test_nobody_probes_our_own_objects():
    found = {
        f"{path.relative_to(ROOT)}:{line}"
        for path in ROOT.rglob("*.py")
        for line in probes(path.read_text())
    }
    assert not found, "declare it in the base class, with a default"


def test_the_test_sees_probes():
    text = 'hasattr(model, "a")\ngetattr(basis, "b", None)\ngetattr(model, "c")\nhasattr(X, "d")\n'
    assert list(probes(text)) == [1, 2]
