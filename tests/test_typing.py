"""Types: a user's script is checked against ours, and everything public says what it takes."""

import ast
import importlib
import inspect
import os
import pkgutil
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import mercer
from mercer import KernelPCA, estimators
from mercer.bases import BASES
from mercer.preimage import PREIMAGES
from mercer.solvers import SOLVERS

SOURCES = Path(mercer.__file__).parents[1]

RIGHT = """
import numpy as np
from mercer import KernelPCA, SpectralClustering, SpectralEmbedding, load, plan
from mercer.bases import Landmarks
from mercer.kernels import RBF
from mercer.solvers import BlockKrylov

X = np.zeros((30, 4))
model = KernelPCA(3, kernel=RBF(gamma=0.5), basis=Landmarks(10), memory="1GB").fit(X)
scores = model.transform(X)
model.save("model.mercer")
labels = SpectralClustering(n_clusters=2).fit_predict(X)
print(plan(X).method, load("model.mercer"), scores.shape, model.score(X) + 1.0)
reveal_type(model)
reveal_type((scores, model.inverse_transform(scores), SpectralEmbedding().fit_transform(X)))
"""

WRONG = """
KernelPCA(n_components="many")
KernelPCA(kernal="rbf")
KernelPCA(basis="landmark")
KernelPCA(eigen_solver="lanczos")
RBF(gama=1.0)
BlockKrylov(oversampling="few")
plan(X).mehtod
"""


@pytest.fixture
def check(tmp_path):
    """Run mypy on a script; in the project's folder, where `make test` has left its cache."""
    pytest.importorskip("mypy")

    def run(text):
        script = tmp_path / "script.py"
        script.write_text(text)
        return subprocess.run(
            [sys.executable, "-m", "mypy", script],
            capture_output=True,
            text=True,
            cwd=SOURCES.parent,
            env=os.environ | {"MYPYPATH": SOURCES.name},
        ).stdout

    return run


def test_mypy_finds_our_types_in_a_users_script(check):
    said = check(RIGHT + WRONG)
    assert 'Revealed type is "mercer.estimators.kernel_pca.KernelPCA"' in said
    # NumPy in, NumPy out: three arrays.
    assert said.count("numpy.ndarray[") == 3, said
    first = RIGHT.count("\n") + 2
    errors = [int(line.split(":")[1]) for line in said.splitlines() if ": error:" in line]
    assert errors == [*range(first, first + WRONG.count("\n") - 1)], said


@pytest.mark.parametrize("name", ["basis", "eigen_solver", "preimage"])
def test_types_of_options_are_those_that_are_allowed(name):
    """A name that joins a registry joins its type."""
    kind = typing.get_type_hints(KernelPCA)[name]
    (known,) = (part for part in typing.get_args(kind) if typing.get_origin(part) is typing.Literal)
    registries = {"basis": BASES, "eigen_solver": SOLVERS, "preimage": PREIMAGES}
    assert set(typing.get_args(known)) == {"auto", *registries[name]}


def test_the_package_says_that_it_is_typed():
    assert (SOURCES / "mercer" / "py.typed").is_file()


def public():
    """Classes and functions in `__all__` of mercer and of its public modules."""
    found = pkgutil.iter_modules(mercer.__path__, "mercer.")
    names = [module.name for module in found if not module.name.split(".")[1].startswith("_")]
    for module in map(importlib.import_module, ["mercer", *names]):
        for name in vars(module).get("__all__", ()):
            thing = getattr(module, name)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                yield thing


def functions(thing):
    """A function, or the constructor and public methods that a class has from us."""
    if inspect.isfunction(thing):
        yield thing
        return
    for kind in thing.__mro__:
        for name, value in vars(kind).items() if kind.__module__.startswith("mercer") else ():
            value = value.fget if isinstance(value, property) else value
            value = inspect.unwrap(getattr(value, "__func__", value))
            if inspect.isfunction(value) and (name == "__init__" or not name.startswith("_")):
                yield value


def unannotated(function):
    signature = inspect.signature(function)
    parameters = [p for p in signature.parameters.values() if p.name not in ("self", "cls")]
    bare = [p.name for p in parameters if p.annotation is p.empty]
    if signature.return_annotation is signature.empty and function.__name__ != "__init__":
        bare.append("return")
    return bare


def test_everything_public_is_annotated():
    missing = {
        f"{function.__module__}.{function.__qualname__}": bare
        for thing in public()
        for function in functions(thing)
        if function.__module__.startswith("mercer") and function.__name__ != "<lambda>"
        if (bare := unannotated(function))
    }
    assert missing == {}


def test_type_checkers_see_the_estimators_that_there_are():
    """`__init__.pyi` names the estimators and their modules as `__init__.py` does."""
    stub = ast.parse((SOURCES / "mercer/estimators/__init__.pyi").read_text())
    homes = {n.names[0].name: n.module for n in stub.body if isinstance(n, ast.ImportFrom)}
    assert homes == estimators._HOMES
    (listed,) = [n.value for n in stub.body if isinstance(n, ast.Assign)]
    assert sorted(ast.literal_eval(listed)) == sorted(estimators.__all__)
