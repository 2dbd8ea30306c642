"""A site that is read from disk must load nothing from elsewhere: looked for after every build."""

import re
from pathlib import Path

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


def setup(app):
    """Look at the whole site when it is written."""
    app.connect("build-finished", look)
    return {"parallel_read_safe": True}
