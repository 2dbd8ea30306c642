"""Imports point one way (DESIGN, section 4), and `import mercer` is light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import mercer

ROOT = Path(mercer.__file__).parent
LAYERS = [
    {"_colors", "_packages", "_tables", "_whole_file", "checkpoint", "exceptions", "compute"},
    {"kernels"},
    {"bases", "selectors"},
    {"operators", "solvers", "moments", "sampling", "remainder"},
    {"expansion", "certificate", "attribution", "significance"},
    {"problems", "planning"},
    {"hebbian", "stream", "mds", "spectral", "preimage"},
    {"files", "progress"},
    {"rows"},
    {"estimators"},
    {"saving", "plot", "report", "cli", "demo", "_versions", "__main__"},
]
# Leaves: only estimators and what follows may import them; they import no estimator.
LEAVES = {"datasets", "metrics"}
# `model.save` is a method, and what it calls knows all models: imported when it is called.
ON_CALL = {"estimators/_summary.py": {"saving"}, "estimators/_estimator.py": {"saving"}}
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def modules():
    return sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def imported(path):
    """Top-level parts of mercer that a file imports, at its head or inside functions."""
    package = path.relative_to(ROOT).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            if node.level:
                base = package[: len(package) - node.level + 1]
                full = (*base, *(node.module or "").split("."))
            elif (node.module or "").split(".")[0] == "mercer":
                full = tuple(node.module.split(".")[1:])
            else:
                continue
            full = tuple(part for part in full if part)
            yield from [full[0]] if full else [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "mercer":
                    yield (alias.name.split(".") + ["mercer"])[1]


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_one_way(path):
    part = path.relative_to(ROOT).parts[0].removesuffix(".py")
    assert part in LEVEL.keys() | LEAVES, f"{part} has no layer: give it one in DESIGN and here"
    on_call = ON_CALL.get(path.relative_to(ROOT).as_posix(), set())
    for other in imported(path):
        if other in on_call:
            continue
        if part in LEAVES:
            assert other not in {"estimators", "cli"}, f"{part} imports {other}"
        elif other in mercer.__all__ and other not in LEVEL.keys() | LEAVES:
            assert LEVEL[part] == len(LAYERS) - 1, f"{part} imports from the package itself"
        elif other not in LEAVES:
            assert LEVEL[other] <= LEVEL[part], f"{part} imports {other}, a later layer"
        else:
            assert LEVEL[part] >= LEVEL["estimators"], f"{part} imports the leaf {other}"


def test_the_test_sees_imports(tmp_path, monkeypatch):
    folder = tmp_path / "kernels"
    folder.mkdir()
    file = folder / "new.py"
    file.write_text(
        "from ..estimators import KernelPCA\nfrom .. import plan\nimport mercer.cli\n"
        "from .base import Kernel\nfrom mercer.solvers.base import x\nimport numpy\n"
        "def f():\n    from ..compute._numba import l1\n"
    )
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    assert sorted(imported(file)) == ["cli", "compute", "estimators", "kernels", "plan", "solvers"]


def test_import_is_light():
    """Heavy and optional libraries come when they are used; scikit-learn brings its own."""
    heavy = ["torch", "dask", "pandas", "numba", "cupy", "triton", "matplotlib"]
    code = (
        "import sys, sklearn.base, sklearn.metrics.pairwise; theirs = set(sys.modules); "
        f"import mercer; print([m for m in {heavy} if m in set(sys.modules) - theirs])"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_public_names_exist():
    for name in mercer.__all__:
        assert getattr(mercer, name) is not None
