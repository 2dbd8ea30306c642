"""A site that is read from disk must load nothing from elsewhere: looked for after every build."""

import logging
import re
from pathlib import Path

log = logging.getLogger("mkdocs.plugins.offline")

# Whatever a page loads by itself. Links that people click are not among them.
LOADED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio)\b[^>]*\bsrc=["']?(?:https?:)?//[^"'\s>]+"""
    r"""|<link\b[^>]*\bhref=["']?(?:https?:)?//[^"'\s>]+"""
    r"""|@import\s+["'(]*(?:https?:)?//[^"')\s]+"""
    r"""|url\(["']?(?:https?:)?//[^"')\s]+""",
    re.IGNORECASE,
)


def on_post_build(config, **_):
    """Warn, which fails a strict build, of everything that would need a network."""
    site = Path(config["site_dir"])
    for path in sorted(site.rglob("*")):
        if path.suffix in {".html", ".css"}:
            for found in LOADED.finditer(path.read_text(encoding="utf-8")):
                log.warning("%s loads %s", path.relative_to(site), found[0])
