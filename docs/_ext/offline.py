"""A site that is read from disk: no page loads from elsewhere, and search makes no requests."""

import json
import re
from pathlib import Path

from docutils import nodes
from sphinx.util import logging

log = logging.getLogger(__name__)

# Whatever a page loads by itself. Links that people click are not among them.
LOADED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio)\b[^>]*\bsrc=["']?(?:https?:)?//[^"'\s>]+"""
    r"""|<link\b[^>]*\bhref=["']?(?:https?:)?//[^"'\s>]+"""
    r"""|@import\s+["'(]*(?:https?:)?//[^"')\s]+"""
    r"""|url\(["']?(?:https?:)?//[^"')\s]+""",
    re.IGNORECASE,
)


def look(app, error):
    """Warn, which fails the build, of everything that would need a network."""
    site = Path(app.outdir)
    for path in sorted(site.rglob("*")) if error is None else ():
        if path.suffix in {".html", ".css"}:
            for found in LOADED.finditer(path.read_text(encoding="utf-8")):
                log.warning("%s loads %s", path.relative_to(site), found[0])


# Search fetches the pages it found for their excerpts, and a page on disk may fetch nothing. So the
# search page loads the texts of all pages, and answers these requests from them.
EXCERPTS = """const TEXTS = %s;
Search.htmlToText = (text) => text;
window.fetch = async (url) => ({ text: async () => TEXTS[url.slice(2, -5)] || "" });
"""


def add_script(app, page, template, context, doctree):
    """Load the texts in the search page, once Sphinx's own scripts are there."""
    if page == "search":
        app.add_js_file("excerpts.js", loading_method="defer")


def write_excerpts(app, error):
    """Write the text of every page as a script."""
    if error is None and app.builder.format == "html":
        texts = {page: visible(app.env.get_doctree(page)) for page in sorted(app.env.found_docs)}
        script = EXCERPTS % json.dumps(texts, ensure_ascii=False)
        (Path(app.outdir) / "_static" / "excerpts.js").write_text(script, encoding="utf-8")


def visible(doctree):
    """The words of a page as a reader sees them."""
    hidden = (nodes.comment, nodes.raw)
    shown = (text for text in doctree.findall(nodes.Text) if not isinstance(text.parent, hidden))
    return " ".join(word for text in shown for word in text.split())


def setup(app):
    """Write the excerpts, and look at the whole site when it is written."""
    app.connect("html-page-context", add_script)
    app.connect("build-finished", write_excerpts)
    app.connect("build-finished", look)
    return {"parallel_read_safe": True}
