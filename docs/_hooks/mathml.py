r"""Formulas as MathML at build time: browsers draw it themselves, without scripts or fonts of ours.

`pymdownx.arithmatex` marks what stands between dollars; here its TeX becomes MathML.
"""

import html
import re

from latex2mathml.converter import convert

FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<tex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL
)


def on_page_content(content, **_):
    """Replace every formula of a page."""
    return FORMULA.sub(mathml, content)


def mathml(match):
    """The MathML of one formula; a block of its own where it was one."""
    block = match["tag"] == "div"
    drawn = convert(html.unescape(match["tex"].strip()), display="block" if block else "inline")
    return f'<div class="formula">{drawn}</div>' if block else drawn
