"""The documentation: links lead somewhere, names are listed, code blocks and examples run.

Python blocks of a page run as a reader pastes them: one after the other from the top, in one
namespace and an empty folder, with nothing that the page does not show. A block whose first line is
``# skip: reason`` is not run, one with ``# needs: module`` only where that is installed. A ``text``
block right after a Python block is what that prints, and a ``console`` block what the commands
after ``$`` print; ``...`` stands for what differs from run to run. A ``sh`` block with a line that
begins with ``mercer`` runs too.
"""

import contextlib
import doctest
import importlib
import io
import json
import os
import pkgutil
import re
import runpy
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import mercer
from mercer.cli import main

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SITE = sorted(
    {*DOCS.rglob("*.md")} - {*DOCS.glob("gallery/**/*"), *DOCS.glob("api/generated/**/*")}
)
sys.path.append(str(DOCS / "_ext"))
import names  # noqa: E402

PAGES = [*SITE, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))

FENCE = re.compile(r"^```.*?^```[ \t]*$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
CODE = re.compile(r"^```python\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
PRINTED = re.compile(r"\n*```text\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
SHELL = re.compile(r"^```(console|sh)\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
SAME = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
LINK = re.compile(r"\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(([^()\s]+)\)")
REFERENCE = re.compile(r"\]\(#(mercer[\w.]*)\)")
HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
# What the site's gallery makes of examples: a page each, and their pictures by number.
GALLERY_PAGE = re.compile(r"gallery/(\w+)\.rst$")
GALLERY_PICTURE = re.compile(r"gallery/images/sphx_glr_(\w+)_(\d{3})\.png")
TOCTREE = re.compile(r"^```{toctree}\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def name_of(path):
    return str(path.relative_to(ROOT))


def prose(path):
    """The text of a page without its code and comments."""
    return re.sub(r"`[^`\n]*`", "``", COMMENT.sub("", FENCE.sub("", path.read_text())))


def anchors(path):
    """Names of the headings of a page, made as the site makes them."""
    found = []
    for title in HEADING.findall(COMMENT.sub("", FENCE.sub("", path.read_text()))):
        plain = re.sub(r"[`*]|\]\([^)]*\)|\[", "", title)
        slug = re.sub(r"[^\w\- ]", "", plain.strip().lower().replace(" ", "-"))
        found.append(f"{slug}-{found.count(slug)}" if slug in found else slug)
    return found


def public_names():
    """Where every public name of mercer and of its subpackages is to be found."""
    for module in pkgutil.iter_modules(mercer.__path__, "mercer."):
        if not module.name.split(".")[1].startswith("_"):
            for name in getattr(importlib.import_module(module.name), "__all__", ()):
                yield module.name, name


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_links_lead_somewhere(path):
    for link in LINK.findall(prose(path)):
        if re.match(r"[a-z]+:|#mercer\.", link):
            continue
        made = GALLERY_PAGE.search(link) or GALLERY_PICTURE.search(link)
        if made:
            known = {"index", *(example.stem for example in EXAMPLES)}
            assert made[1] in known, f"{name_of(path)} links to {link}: there is no such example"
            continue
        file, _, anchor = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        assert target.is_file(), f"{name_of(path)} links to {link}: there is no such file"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{name_of(path)} links to {link}: no such heading"
        if path in SITE:
            assert target.is_relative_to(DOCS), f"{name_of(path)}: {link} is not on the site"


@pytest.mark.parametrize("path", SITE, ids=name_of)
def test_references_are_documented_names(path):
    for name in REFERENCE.findall(prose(path)):
        assert name in names.documented(), f"{name_of(path)} refers to {name}: no API page has it"
    assert "][mercer." not in prose(path), f"{name_of(path)}: write [text](#mercer.name)"


def test_denoised_digits_are_those_of_the_reproduction():
    records = json.loads((ROOT / "reproduce" / "results.json").read_text())["experiments"]
    (found,) = (one["findings"] for one in records if one["name"] == "mika-digits")
    plain, shrunk = (one["values"] for one in found)
    wanted = {
        "linear PCA, best number": min(plain["linear"].values()),
        "linear PCA, all components, Wiener": shrunk["linear"],
        "kernel PCA, 64 components, fixed point": plain["kernel"],
        "the same, compensated": plain["compensated"],
    }
    page = (DOCS / "denoising.md").read_text()
    told = {name: re.search(rf"^\| {name}.*? \| ([\d.]+) \|", page, re.M)[1] for name in wanted}
    assert told == {name: f"{value:.3f}" for name, value in wanted.items()}


def test_pages_stay_short():
    """A page that is read is worth more than one that is complete."""
    words = sum(len(path.read_text().split()) for path in SITE)
    assert words <= 30_000, f"{words:,} words: say a thing once, and link to it."


def test_every_picture_is_used():
    used = {link for path in SITE for link in LINK.findall(path.read_text())}
    pictures = {picture.name for picture in (DOCS / "images").iterdir()}
    kept = {link for link in used if link.endswith(".png") and not GALLERY_PICTURE.search(link)}
    assert pictures == {Path(link).name for link in kept}


def test_navigation_lists_every_page():
    listed = [DOCS / "index.md"]
    for path in SITE:
        lines = "".join(TOCTREE.findall(path.read_text())).split("\n")
        listed += [path.parent / f"{line}.md" for line in lines if re.match(r"[\w./-]+$", line)]
    listed.remove(DOCS / "gallery" / "index.md")  # made from examples/GALLERY_HEADER.rst
    assert sorted(path.resolve() for path in listed) == [path.resolve() for path in SITE]


def test_every_public_name_has_an_entry():
    # The place a name is listed under may be another module than the one that defines it.
    known = {id(names.resolve(name)) for name in names.documented()}
    missing = [
        f"{module}.{name}"
        for module, name in public_names()
        if id(getattr(importlib.import_module(module), name)) not in known
        and not names.is_registry(importlib.import_module(module), name)
    ]
    assert not missing, f"their package has no line in docs/api: {missing}"
    modules = {name.split(".")[1] for name in names.documented()}
    tops = {name for name in mercer.__all__ if not name.startswith("_")} - modules
    missing = [top for top in tops if id(getattr(mercer, top)) not in known]
    assert not missing, f"add to docs/api/functions.md: {missing}"


@pytest.mark.parametrize(
    "registry",
    ["kernels.KERNELS", "bases.BASES", "selectors.SELECTORS", "solvers.SOLVERS"]
    + ["preimage.PREIMAGES", "hebbian.GAINS"],
)
def test_what_joins_a_registry_joins_its_page(registry, monkeypatch):
    name = f"mercer.{registry}"
    part = type("Newcomer", (), {"__doc__": "A part that came today."})
    monkeypatch.setitem(names.resolve(name), "newcomer", part)
    assert name in names.arguments()
    assert ["newcomer"] in names.expand(name).values()


def test_entries_have_docstrings():
    found = {name: names.resolve(name) for name in names.documented()}
    bare = [name for name, entry in found.items() if callable(entry) and not entry.__doc__]
    assert not bare, f"without a docstring: {bare}"


def test_no_entry_twice():
    assert sorted(set(names.documented())) == sorted(names.documented())


def blocks(path):
    """Code of a page that is to be run, the line it begins in and what the page says it prints."""
    text = path.read_text()
    for match in CODE.finditer(text):
        code = match[1]
        needed = re.match(r"# needs: (\w+)", code)
        if not code.startswith("# skip: ") and (needed is None or find_spec(needed[1])):
            printed = PRINTED.match(text, match.end())
            yield text[: match.start()].count("\n") + 1, code, printed and printed[1]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of its own, the environment of this Python active, and no figure left behind."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    yield tmp_path
    plt.close("all")


@pytest.mark.parametrize("path", [p for p in PAGES if "```python" in p.read_text()], ids=name_of)
@pytest.mark.filterwarnings("ignore::DeprecationWarning:ray.data.context")  # of its own settings
def test_blocks_run(path, folder):
    names: dict = {"__name__": "__docs__"}
    for line, code, expected in blocks(path):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            # Errors name the page and the line in it.
            exec(compile("\n" * line + code, name_of(path), "exec"), names)
        printed = out.getvalue()
        if expected is not None:
            same = doctest.OutputChecker().check_output(expected, printed, SAME)
            assert same, f"{name_of(path)}, line {line} prints:\n{printed}"


def transcripts(path):
    """Commands of a page in order, each with what it prints if the page shows that."""
    for kind, block in SHELL.findall(path.read_text()):
        if kind == "console":
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                yield part.split("\n", 1)
        elif re.search(r"^mercer ", block, re.MULTILINE):
            yield from ([line, None] for line in block.splitlines())


@pytest.mark.parametrize("path", [p for p in PAGES if [*transcripts(p)]], ids=name_of)
@pytest.mark.filterwarnings("default")
def test_commands_print_what_stands_there(path, folder):
    for command, expected in transcripts(path):
        program, *words = shlex.split(command, comments=True)
        if program == "cat":
            (folder / words[0]).write_text(expected)
            continue
        inside = program == "mercer" and "|" not in words
        printed, status = run_command(words) if inside else run_shell(command)
        if expected is None:
            assert status == 0, f"{name_of(path)}: {command}\nprints:\n{printed}"
        else:
            same = doctest.OutputChecker().check_output(expected, printed, SAME)
            assert same, f"{name_of(path)}: {command}\nprints:\n{printed}"


def run_command(words):
    """Both streams of a command of mercer, in the order of writing, and its exit status."""
    out, status = io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            status = main(words)
        except SystemExit as end:
            status = end.code
    # A slow machine shows progress after two seconds: lines with a bar or the time so far.
    lines = out.getvalue().splitlines(True)
    printed = (line for line in lines if not re.search(r"━|\d:\d\d:\d\d", line))
    return "".join(printed), status or 0


def run_shell(line):
    """Both streams of a line of the shell, and 1 as its status if mercer fails within it."""
    mercer = f'mercer() {{ "{sys.executable}" -m mercer "$@" || echo failed >&2; }}\n'
    done = subprocess.run(["bash", "-c", mercer + line], capture_output=True, text=True)
    return done.stdout + done.stderr, int(done.returncode or "failed" in done.stderr)


# `make docs` runs them as well.
@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_run(path, folder, monkeypatch):
    shown: list = []
    monkeypatch.setattr(plt, "show", lambda: shown.append(len(plt.get_fignums())))
    for module in re.findall(r"^# needs: (\w+)", path.read_text(), re.M):
        pytest.importorskip(module)
    runpy.run_path(str(path), run_name="__main__")
    drawn = len(plt.get_fignums())
    assert drawn and shown[-1:] == [drawn], f"{path.name} has drawn nothing, or does not show it"
    for page in SITE:
        for name, number in GALLERY_PICTURE.findall(page.read_text()):
            assert name != path.stem or int(number) <= drawn, f"{name_of(page)}: {name} {number}"
    assert not list(folder.iterdir()), f"{path.name} leaves files behind"


def test_slugs_and_blocks_are_read_as_meant(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# A `b`: c, and d\n\n## Twice\n## Twice\n\n```python\nx = 1\n```\n"
        "\n```text\n1.2...\n```\n"
        "\n```python\ny = 2\n```\n"
        "\n```python\n# skip: no\nz = 3\n```\n\n```python\n# needs: no_such_module\nz = 4\n```\n"
        "\n```sh\n# Not a heading\n```\n"
    )
    assert anchors(page) == ["a-b-c-and-d", "twice", "twice-1"]
    assert [found[1:] for found in blocks(page)] == [("x = 1\n", "1.2...\n"), ("y = 2\n", None)]
