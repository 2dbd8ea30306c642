"""Imports point one way (DESIGN, section 4), and `import mercer` is light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import mercer

ROOT = Path(mercer.__file__).parent
LAYERS = [
    {
        "_packages",
        "_remote",
        "_tables",
        "_whole_file",
        "exceptions",
        "fitting.checkpoint",
        "compute",
    },
    {"kernels"},
    {"bases", "selectors"},
    {"operators", "solvers", "fitting.moments", "fitting.remainder"},
    {"fitting", "preimage"},
    {"hebbian", "stream", "mds", "spectral"},
    {"files", "progress"},
    {"rows"},
    {"relatives"},
    {"estimators"},
    {"saving", "plot", "report", "cli", "accel", "anndata", "demo", "__main__"},
]
# Leaves: only estimators and what follows may import them; they import no estimator.
LEAVES = {"datasets", "metrics"}
# `model.save` and `model.report` are methods, and what they call knows all models: imported when it
# is called. Kernels of relatives join the registry of kernels, which imports them last.
ON_CALL = {
    "kernels/__init__.py": {"relatives"},
    "estimators/_door.py": {"saving", "report"},
    "estimators/_spectral.py": {"saving"},
    "hebbian/passes.py": {"metrics"},
    "estimators/_model.py": {"saving"},
}
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def modules():
    return sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def layer_of(parts):
    """The part of mercer that a module belongs to: some modules have a layer of their own."""
    own = ".".join(parts[:2])
    return own if own in LEVEL else parts[0]


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
            inner = [(*full, alias.name) for alias in node.names]
            yield from {layer_of(parts) for parts in inner} if full else [n[0] for n in inner]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "mercer":
                    yield (alias.name.split(".") + ["mercer"])[1]


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_one_way(path):
    part = layer_of(path.relative_to(ROOT).with_suffix("").parts)
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


SCRIPTS = [
    path
    for folder in ("benchmarks", "reproduce", "examples", "docs")
    for path in sorted((ROOT.parent.parent / folder).rglob("*.py"))
]


def defined(module):
    """Names that a module of mercer has, from its text: some need libraries that are not here."""
    path = ROOT.parent.joinpath(*module.split("."))
    package = path.is_dir()
    tree = ast.parse((path / "__init__.py" if package else path.with_suffix(".py")).read_text())
    names = {part.stem for part in path.iterdir()} if package else set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
    return names


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_scripts_import_what_there_is(path):
    for node in ast.walk(ast.parse(path.read_text())):
        module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
        if module.startswith("mercer."):
            assert {alias.name for alias in node.names} <= defined(module), module
        elif module == "mercer":
            assert all(hasattr(mercer, alias.name) for alias in node.names)


def test_kernel_pca_imports_what_it_uses():
    """Our modules for it, and the array API, beside scikit-learn's and rich; no other estimator."""
    program = (
        "import sys, rich.file_proxy, rich.progress, sklearn.decomposition; "
        "sklearn.decomposition.KernelPCA; before = set(sys.modules); "
        "from mercer import KernelPCA; print(*(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    more = done.stdout.split()
    assert {name.split(".")[0] for name in more} <= {
        "mercer",
        "array_api_compat",
        *sys.stdlib_module_names,
    }, more
    others = {"spectral", "mds", "hebbian", "stream", "report", "plot"}
    assert not others & {name.split(".")[1] for name in more if "." in name}
