"""Libraries that may be absent: what is missing is named, and how to get it."""

import ast
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from contracts import generator

import mercer
from mercer import KernelPCA
from mercer._packages import has, needed
from mercer.bases import Landmarks
from mercer.cli.outputs import write_columns
from mercer.files import open_source
from mercer.files.sinks import open_sink

ROOT = Path(mercer.__file__).parent
PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
X = generator(1).standard_normal((20, 3))


def opened(name, content=b""):
    def use(folder):
        (folder / name).write_bytes(content)
        open_source(folder / name)

    return use


def write_scores(folder):
    with open_sink(folder / "s.parquet", 2) as sink:
        sink.write(X[:, :2])


def export(folder):
    KernelPCA(2, basis=Landmarks(points=X[:5])).fit(X).to_onnx(folder / "a.onnx")


USES = {
    "parquet": ("pyarrow", "files", opened("x.parquet", b"PAR1")),
    "a table": (
        "pyarrow",
        "files",
        lambda place: write_columns(place / "t.parquet", {"a": X[0]}),
    ),
    "scores": ("pyarrow", "files", write_scores),
    "device": ("torch", "torch", lambda _: KernelPCA(2, device="cuda").fit(X)),
    "plan": ("torch", "torch", lambda _: mercer.plan((9, 3), device="cuda")),
    "onnx": ("onnx", "onnx", export),
}


@pytest.mark.parametrize("use", USES)
def test_a_missing_package_is_named(use, tmp_path, monkeypatch):
    """By its own name, which works wherever mercer came from, and the extra beside it."""
    module, extra, call = USES[use]
    for name in [name for name in sys.modules if name.split(".")[0] == module]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError) as caught:
        call(tmp_path)
    message, package = str(caught.value), module
    assert f"needs {package}, which is not installed" in message
    assert f"pip install {package}" in message and "mercer[" not in message
    assert extra is None or f"mercer's extra {extra!r}" in message


def test_a_package_that_lacks_another_says_so_itself(tmp_path, monkeypatch):
    (tmp_path / "halfhere.py").write_text("import nowhere_to_be_found")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="nowhere_to_be_found"):
        needed("halfhere")


def test_what_is_there_is_imported():
    assert needed("numpy.linalg") is np.linalg
    assert has("numpy") and not has("nowhere_to_be_found")


def asked_for(path):
    """Modules and extras that a source asks `needed` for."""
    for node in ast.walk(ast.parse(path.read_text())):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "needed"
        ):
            yield tuple(value.value for value in node.args[:2] if isinstance(value, ast.Constant))


@pytest.mark.skipif(not PYPROJECT.is_file(), reason="pyproject.toml is not beside the tests")
def test_extras_bring_what_the_messages_say():
    extras = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    asked = {pair for path in ROOT.rglob("*.py") for pair in asked_for(path) if len(pair) == 2}
    assert ("pyarrow.parquet", "files") in asked
    for module, extra in asked:
        package = module.split(".")[0]
        assert any(line.startswith(package) for line in extras[extra]), (module, extra)
