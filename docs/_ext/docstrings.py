"""Docstrings as the site shows them.

Bars are absolute values here, not substitutions, and stars are no emphasis. `KernelPCA` shows the
parameters that scikit-learn has and those that are new as two lists; which are which is read from
scikit-learn itself.
"""

import inspect
import re

from sklearn.decomposition import KernelPCA as Original

import mercer

# Literals and words in stars, then bars and stars of formulas.
PLAIN = re.compile(r"(``.*?``|`[^`]*`|(?<!\w)\*\w[^*]*\w\*(?!\w))|([|*])")
TITLED = ("Parameters", "Other Parameters", "Attributes")
# numpydoc knows one more list of parameters; it gets a title of ours.
TITLES = {
    ":Parameters:": ":Parameters that scikit-learn has:",
    ":Other Parameters:": ":Parameters that are new:",
}


def escape(app, what, name, obj, options, lines):
    """|x| is no substitution, and F* F no emphasis."""
    lines[:] = map(escaped, lines)


def escaped(line: str) -> str:
    """A line whose bars and stars outside of literals are themselves."""
    return PLAIN.sub(lambda match: match[1] or f"\\{match[2]}", line)


def split_parameters(app, what, name, obj, options, lines):
    """Move what is new in KernelPCA into a list of its own."""
    if obj is not mercer.KernelPCA:
        return
    known = set(inspect.signature(Original).parameters)
    start = lines.index("Parameters") + 2
    end = lines.index("Attributes")
    entries = list(entries_of(lines[start:end]))
    old = [line for entry in entries if entry[0].split(" :")[0] in known for line in entry]
    new = [line for entry in entries if entry[0].split(" :")[0] not in known for line in entry]
    lines[start:end] = [*old, "", "Other Parameters", "----------------", *new, ""]


def entries_of(lines):
    """Parameters with the lines that describe them."""
    entry: list[str] = []
    for line in lines:
        if line and not line[0].isspace() and entry:
            yield entry
            entry = []
        entry.append(line)
    yield entry


def title_parameters(app, what, name, obj, options, lines):
    """Names of the two lists, one after the other: numpydoc puts the attributes between."""
    if obj is not mercer.KernelPCA:
        return
    old, new, attributes = (lines.index(f":{title}:") for title in TITLED)
    end = next(i for i in range(new + 1, len(lines)) if re.match(r"[^ ]", lines[i]))
    lines[old:end] = lines[old:attributes] + lines[new:end] + lines[attributes:new]
    lines[:] = [TITLES.get(line, line) for line in lines]


def skip_foreign(app, what, name, obj, skip, options):
    """Methods that scikit-learn brings and documents."""
    home = getattr(obj, "__module__", None) or ""
    return True if home.startswith("sklearn.") else None


def setup(app):
    """The first two before numpydoc, which listens at 500, the third after it."""
    app.connect("autodoc-process-docstring", escape, priority=300)
    app.connect("autodoc-process-docstring", split_parameters, priority=400)
    app.connect("autodoc-process-docstring", title_parameters, priority=600)
    app.connect("autodoc-skip-member", skip_foreign)
    return {"parallel_read_safe": True}
