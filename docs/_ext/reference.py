"""The API reference: a table for each `.. reference::` line, and a page for each name in it."""

import inspect
import re

import names
from docstrings import escaped
from docutils.statemachine import StringList
from sklearn.base import BaseEstimator
from sphinx.ext.autosummary import Autosummary

PAGES = names.API / "generated"
EXAMPLES = "".join(path.read_text() for path in names.API.parents[1].glob("examples/*.py"))


class Reference(Autosummary):
    """Names with the first line of their docstrings, in place of a list kept by hand."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self):
        """An autosummary of the names that the arguments stand for."""
        self.words = {}
        for argument in self.arguments[0].split():
            self.words |= names.expand(argument)
        self.content = StringList([f"~{name}" for name in self.words], source="")
        self.options["toctree"] = "generated"
        return super().run()

    def get_items(self, found):
        """Strings that ask for a part stand where its signature would; the summary is whole."""
        return [
            (name, "".join(f' "{word}"' for word in self.words[real]), summary(real), real)
            for name, _, _, real in super().get_items(found)
        ]


def summary(name: str) -> str:
    """The first paragraph of a docstring, bars as they are."""
    found = names.resolve(name)
    first = (inspect.getdoc(found) or "").split("\n\n")[0] if callable(found) else repr(found)
    return escaped(" ".join(first.split()))


def write_pages(app):
    """A page for every name; those of names that are gone are removed."""
    PAGES.mkdir(exist_ok=True)
    wanted = {PAGES / f"{name}.rst": page(name) for name in names.documented()}
    for path in PAGES.glob("*.rst"):
        if path not in wanted:
            path.unlink()
    for path, text in wanted.items():
        # An unchanged file is not read again.
        if not path.is_file() or path.read_text() != text:
            path.write_text(text)


def outdated(app, env, added, changed, removed):
    """Tables of names are read anew in every build: registries change without them."""
    return [name for name in env.found_docs if re.fullmatch(r"api/\w+", name)]


def page(name: str) -> str:
    """The directive that documents one name."""
    module, _, short = name.rpartition(".")
    found = names.resolve(name)
    kind = "class" if inspect.isclass(found) else "function" if callable(found) else "data"
    head = f"{short}\n{'=' * len(short)}\n\n.. currentmodule:: {module}\n\n"
    body = f".. auto{kind}:: {short}\n" + "".join(f"   {o}\n" for o in options(name, found))
    seen = f"\n.. minigallery:: {name}\n   :add-heading: Examples\n" if is_used(name) else ""
    return head + body + seen


def is_used(name: str) -> bool:
    """Whether a script of the gallery uses a name of mercer itself."""
    return name.count(".") == 1 and bool(re.search(rf"\b{name.rpartition('.')[2]}\b", EXAMPLES))


def options(name, found) -> list[str]:
    """Members shown: an estimator's own and inherited ones, none of a recipe."""
    if not inspect.isclass(found):
        return []
    if not issubclass(found, BaseEstimator):
        return [":members:"]
    if not name.startswith("mercer." + found.__name__):
        return [] if not inspect.isabstract(found) else [":members:"]
    return [":members:", ":inherited-members: object"]


def setup(app):
    """Add the directive, and write the pages before Sphinx looks for files."""
    app.add_directive("reference", Reference)
    app.connect("builder-inited", write_pages)
    app.connect("env-get-outdated", outdated)
    return {"parallel_read_safe": True}
