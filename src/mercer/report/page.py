"""The page: a template filled with escaped texts, its own scripts and styles, and the data.

Everything that a user supplied reaches the page either through `html.escape` or as JSON that
the scripts put in place as text, never as markup. The policy allows the page's own script and
style by their hashes, and no other, no request and no form.
"""

import base64
import hashlib
from dataclasses import replace
from html import escape
from importlib.resources import files
from string import Template
from textwrap import shorten

import numpy as np

from ..fitting.certificate import confidence_text
from ..plot.axes import dense
from .charts import bar_chart, convergence_chart, spectrum_chart
from .content import Content
from .packing import pack, script_json
from .thumbnails import gray_range, thumbnails, to_bytes
from .walks import Walks

SCRIPTS = (
    "arrays",
    "paint",
    "density",
    "view",
    "grid",
    "selecting",
    "scatter",
    "gestures",
    "rows",
    "walk",
    "exporting",
    "main",
)
# Columns drawn as bars, and components whose columns are listed.
BARS, COMPONENTS_EXPLAINED = 12, 32
# Components drawn and listed in the spectrum.
SPECTRUM = 60


def render(content: Content) -> str:
    """The whole file as a text."""
    style = asset("page.css")
    script = "(() => {\n'use strict';\n" + "\n".join(asset(f"{s}.js") for s in SCRIPTS) + "})();\n"
    return Template(asset("page.html")).substitute(
        policy=policy(script, style),
        style=style,
        script=script,
        data=script_json(page_data(content)),
        title=escape(content.title),
        lead=f"<p>{escape(content.lead)}</p>",
        search=escape(search_example(content)),
        summary="".join(f"<p>{escape(text)}</p>" for text in content.sentences),
        spectrum=spectrum_section(content.model) + significance_section(content),
        convergence=convergence_section(content),
        walk=walk_note(content),
        outliers=outlier_table(content),
        attribution=attribution_section(content),
        certificate=certificate_tables(content.model),
        plan=plan_section(content.model),
    )


def asset(name: str) -> str:
    """The text of one of the page's own files."""
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def policy(script: str, style: str) -> str:
    """A content security policy that allows this script and this style and nothing else."""
    return (
        f"default-src 'none'; script-src {digest(script)}; style-src {digest(style)}; "
        "base-uri 'none'; form-action 'none'"
    )


def digest(text: str) -> str:
    """The hash of an inline element, as a policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def search_example(content: Content) -> str:
    """What one may search for, in a few words."""
    if content.columns:
        return f"7, a group, {content.columns[0]} > 1"
    return "7, a group, component 1 > 0.2"


def page_data(content: Content) -> dict:
    """What the scripts need, arrays packed."""
    low, high = gray_range(content.rows) if content.rows is not None else (0.0, 1.0)
    return {
        "count": int(content.index.size),
        "components": content.scores.shape[1],
        "index": pack(content.index, "i4"),
        # One component after the other: an axis is then one stretch of memory.
        "scores": pack(content.scores.T, "f4"),
        "errors": None if content.errors is None else pack(content.errors, "f4"),
        "names": content.row_names,
        "columns": content.columns,
        "values": pack(content.values, "f4"),
        "coloring": _coloring(content.coloring),
        "images": _images(content, low, high),
        "walk": _walk(content, low, high),
    }


def _coloring(coloring):
    if coloring is None:
        return None
    kind = "f4" if coloring.groups is None else "u2"
    return {
        "name": coloring.name,
        "groups": coloring.groups,
        "values": pack(coloring.values, kind),
    }


def _images(content, low, high):
    if content.rows is None or content.shape is None:
        return None
    pixels, shape = thumbnails(content.rows, content.shape, low, high)
    return {"shape": [int(side) for side in shape], "pixels": pack(pixels, "u1")}


def _walk(content, low, high):
    walks = content.walks
    if not isinstance(walks, Walks):
        return None
    shape = content.shape
    rows = pack(to_bytes(walks.rows, low, high), "u1") if shape else pack(walks.rows, "f4")
    return {
        "steps": [float(step) for step in walks.steps],
        "deviations": [float(deviation) for deviation in walks.deviations],
        "names": [] if shape else content.names,
        "shape": [*shape, 1][:3] if shape else None,
        "rows": rows,
    }


def spectrum_section(model) -> str:
    """The chart of the eigenvalues, and the same numbers as a table."""
    values, certificate = dense(model.eigenvalues_)[:SPECTRUM], model.certificate_
    if not values.size:
        return "<p>No component was kept.</p>"
    lower = dense(certificate.eigenvalue_lower)[:SPECTRUM]
    upper = dense(certificate.eigenvalue_upper)[:SPECTRUM]
    shares = 100 * dense(model.explained_variance_ratio_)[:SPECTRUM]
    rows = [
        [str(k + 1), f"{value:.6g}", f"{low:.6g}", f"{high:.6g}", f"{share:.3g} %"]
        for k, (value, low, high, share) in enumerate(
            zip(values, lower, upper, shares, strict=True)
        )
    ]
    heads = ["component", "eigenvalue", "at least", "at most", "share of variance"]
    if certificate.confidence is not None and certificate.confidence < 1:
        heads.append(f"at most, with confidence {confidence_text(certificate.confidence)}")
        for row, high in zip(rows, dense(certificate.likely_upper)[:SPECTRUM], strict=True):
            row.append(f"{high:.6g}")
    count = dense(model.eigenvalues_).size
    more = f"<p>The first {SPECTRUM} of {count}.</p>" if count > SPECTRUM else ""
    bars = "hold the true ones" if certificate.kind == "bound" else "are estimates of their error"
    return (
        f"<p>Eigenvalues as dots; the bars, where they are wide enough to see, {bars}.</p>"
        f"{spectrum_chart(values, lower, upper)}{more}"
        f"<details><summary>The numbers</summary>{table(heads, rows)}</details>"
    )


def significance_section(content: Content) -> str:
    """How many components stand above noise, where it was found out."""
    found = content.significance
    if found is None:
        return ""
    return (
        f"<p>{escape(found.sentence())}</p><details><summary>Component by component</summary>"
        f"{table(*found.table())}</details>"
    )


def convergence_section(content: Content) -> str:
    """The chart of the passes, where they were recorded."""
    if content.history is None:
        return ""
    label, named = content.history
    return (
        '<section aria-labelledby="convergence-title"><h2 id="convergence-title">Convergence</h2>'
        f"<p>The {escape(label)} after each pass.</p>{convergence_chart(named, label)}</section>"
    )


def walk_note(content: Content) -> str:
    """What there is to say of the pre-images."""
    if isinstance(content.walks, str):
        return f"<p>There is no walk: {escape(content.walks)}</p>"
    note = escape(content.walks.note)
    return f'<p class="help">{note}</p>' if note else ""


def outlier_table(content: Content) -> str:
    """Rows with the largest errors, each with a button that the scripts listen to."""
    if content.errors is None:
        return "<p>A precomputed kernel does not say k(x, x), so that errors are not known.</p>"
    heads = ["row", "error", "over the median", content.coloring.name if content.coloring else ""]
    median = max(float(np.median(content.errors)), np.finfo(float).tiny)
    body = []
    for place in content.outliers:
        error = float(content.errors[place])
        group = content.coloring.text(int(place)) if content.coloring else ""
        name = int(content.index[place])
        body.append(
            f'<tr data-place="{int(place)}"><td><button type="button" aria-pressed="false" '
            f'aria-label="Show row {name}">{name}</button></td>'
            f"<td>{error:.4g}</td><td>{error / median:.3g} x</td><td>{escape(group)}</td></tr>"
        )
    return _table_of(heads, "".join(body))


def attribution_section(content: Content) -> str:
    """Bars of the columns that drive all components, and a table for each of them."""
    found = content.attribution
    if isinstance(found, str):
        return f"<p>It is not known: {escape(found)}</p>"
    if content.shape is not None:
        # Pixels have no names to read; their picture is the walk.
        return "<p>The columns are pixels; the walk shows what they do.</p>"
    shown = replace(found, components=found.components[:COMPONENTS_EXPLAINED])
    return (
        "<p>How much scores change when a column does by one standard deviation, on average over "
        f"{found.n_rows:,} rows.</p>{bar_chart(found.top(None, BARS))}"
        "<details><summary>By component (+ it rises with the column, - it falls, ± it does "
        f"both)</summary>{table(*shown.table())}</details>"
    )


def certificate_tables(model) -> str:
    """The certificate, and the parameters of the fit."""
    lines = table(["", ""], [list(line) for line in model.certificate_.summary()])
    rows = [[name, shorten(repr(value), 200)] for name, value in changed_parameters(model)]
    if not rows:
        return lines
    return f"{lines}<h3>Parameters that are not defaults</h3>{table(['parameter', 'value'], rows)}"


def plan_section(model) -> str:
    """The methods that were weighed, where there is a plan."""
    plan = model._recorded().plan
    if plan is None:
        return ""
    return (
        '<section aria-labelledby="plan-title" class="whole"><h2 id="plan-title">Plan</h2>'
        f"<p>{escape(plan.reason)}</p>{table(*plan.table())}</section>"
    )


def changed_parameters(model):
    """Names and values of the parameters whose text differs from the default's."""
    defaults = model.__class__().get_params(deep=False)  # also of a proxy
    given = model.get_params(deep=False)
    return [(name, value) for name, value in given.items() if repr(value) != repr(defaults[name])]


def table(heads, rows) -> str:
    """A table of texts, escaped."""
    cells = ("".join(f"<td>{escape(text)}</td>" for text in row) for row in rows)
    return _table_of(heads, "".join(f"<tr>{row}</tr>" for row in cells))


def _table_of(heads, body) -> str:
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in heads) if any(heads) else ""
    return (
        '<div class="wide" tabindex="0" role="region" aria-label="Table, scrolls sideways">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
