"""Try an installed mercer as its first users would, without its sources or extras in reach.

usage: python .ci/smoke.py README.md

Run in an empty folder by the interpreter that mercer was installed for.
"""

import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import mercer
from mercer.cli.parser import COMMANDS

EXTRAS = ("torch", "dask", "pyarrow", "onnx")
MERCER = Path(sys.executable).with_name("mercer")
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHELL = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


def main(readme: str) -> None:
    """Run all of it; the first failure ends it with a traceback."""
    assert "site-packages" in mercer.__file__, f"{mercer.__file__} is not the installed package"
    assert not any(map(find_spec, EXTRAS)), "extras are installed, and this is to do without"
    assert Path(mercer.__file__).with_name("py.typed").is_file()
    fit_save_load()
    absent_library()
    text = Path(readme).read_text()
    commands(text)
    python_blocks(text)
    mercer.show_versions()
    print("smoke test passed")


def fit_save_load() -> None:
    """A model that was saved and loaded gives the same scores."""
    X = np.random.default_rng(0).standard_normal((200, 5))
    model = mercer.KernelPCA(4, kernel="rbf", gamma="median").fit(X)
    assert model.certificate_.converged
    model.save("first.mercer")
    assert np.array_equal(mercer.load("first.mercer").transform(X), model.transform(X))


def absent_library() -> None:
    """A file that needs a library names it."""
    Path("x.parquet").write_bytes(b"PAR1")
    said = "no error"
    try:
        mercer.KernelPCA(2).fit("x.parquet")
    except ImportError as error:
        said = str(error)
    assert "pip install pyarrow" in said, said


def commands(text: str) -> None:
    """Every command's help, and the commands that the README shows, in its order."""
    for line in ["--version", "--help", *(f"{name} --help" for name in COMMANDS)]:
        call(line)
    shown = [line for block in SHELL.findall(text) for line in block.splitlines()]
    shown = [line.partition("#")[0].strip() for line in shown if line.startswith("mercer ")]
    assert "mercer demo" in shown, "the README no longer shows mercer demo"
    for line in shown:
        call(line.removeprefix("mercer "))
    assert Path("demo-output/report.html").stat().st_size > 10_000


def call(line: str) -> None:
    """Run one command and show what it said where it fails."""
    done = subprocess.run([MERCER, *shlex.split(line)], capture_output=True, text=True)
    assert done.returncode == 0, f"mercer {line}: {done.stdout}{done.stderr}"


def python_blocks(text: str) -> None:
    """The README's Python in one namespace."""
    blocks = PYTHON.findall(text)
    assert blocks, "the README has no Python to run"
    exec(compile("\n".join(blocks), "README.md", "exec"), {})


if __name__ == "__main__":
    main(*sys.argv[1:])
