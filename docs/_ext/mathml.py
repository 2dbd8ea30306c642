"""Formulas as MathML at build time: browsers draw it without scripts or fonts of ours."""

from docutils import nodes
from latex2mathml.converter import convert


def inline(self, node):
    """A formula in a line."""
    self.body.append(convert(node.astext()))
    raise nodes.SkipNode


def display(self, node):
    """A formula on a line of its own."""
    drawn = convert(node.astext(), display="block")
    self.body.append(f'<div class="formula">{drawn}</div>')
    raise nodes.SkipNode


def setup(app):
    """Add the renderer under the name `mathml`."""
    app.add_html_math_renderer(
        "mathml", inline_renderers=(inline, None), block_renderers=(display, None)
    )
    return {"parallel_read_safe": True}
