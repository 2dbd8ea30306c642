"""The README and the addresses of the package, as package indexes show them.

Links in the README are relative, as a checkout wants them, and lead nowhere on a package index.
The public address of the repository stands in one place, ``[tool.mercer] home`` in pyproject.toml:
with it links become absolute; while it is empty they become plain words.
"""

import re
import tomllib
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

# An image or a link whose target is neither an address nor a place on the page.
RELATIVE = re.compile(r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)\s]+)\)")


class CustomMetadataHook(MetadataHookInterface):
    """Fill in the dynamic fields `readme` and `urls`."""

    def update(self, metadata: dict) -> None:
        """Read both files beside this one."""
        root = Path(self.root)
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
        home = project["tool"]["mercer"]["home"]
        text = outside((root / "README.md").read_text(encoding="utf-8"), home)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        metadata["urls"] = addresses(home)


def outside(text: str, home: str) -> str:
    """Markdown whose relative links lead to the repository, or are words where there is none."""

    def absolute(match: re.Match) -> str:
        picture, words, target = match.groups()
        if not home:
            return "" if picture else words
        return f"{picture}[{words}]({home}/{'raw' if picture else 'blob'}/main/{target})"

    return RELATIVE.sub(absolute, text)


def addresses(home: str) -> dict[str, str]:
    """Pages of the repository, none while it has no public address."""
    if not home:
        return {}
    return {
        "Source": home,
        "Documentation": f"{home}/tree/main/docs",
        "Changelog": f"{home}/blob/main/CHANGELOG.md",
        "Issues": f"{home}/issues",
    }
