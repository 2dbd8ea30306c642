"""The page: a template filled with escaped texts, its own scripts and styles, and the data.

Everything that a user supplied reaches the page either through `html.escape` or as JSON that
the scripts put in place as text, never as markup. The policy allows the page's own script and
style by their hashes, and no other, no request and no form.

Charts that do not move are SVG: matplotlib's is full of inline styles, which the policy forbids.
Here colors come from the style sheet of the page, light or dark, and every mark has a title for
pointers and screen readers.
"""

import base64
import hashlib
import json
import math
import zlib
from collections.abc import Callable
from dataclasses import replace
from html import escape
from importlib.resources import files
from string import Template

import numpy as np
from matplotlib.ticker import Locator, LogLocator, MaxNLocator

from ..estimators._output import summary_rows
from ..fitting.certificate import confidence_text
from ..plot.axes import dense
from .content import Column, Report, Walks

# In the order in which they need each other.
SCRIPTS = (
    "arrays fields paint density view grid selecting scatter gestures rows walk histograms "
    "exporting main"
)
# Columns drawn as bars, and components whose columns are listed.
BARS, COMPONENTS_EXPLAINED = 12, 32
# Components drawn and listed in the spectrum.
SPECTRUM = 60
# Points of a control chart.
DRAWN = 400
# Share of a limit below which a curve may leave its chart.
FLAT = 1e-3
# Longest side of a thumbnail, and bytes of all of them before compression.
SIDE = 64
BYTES = 16_000_000
# Whole numbers up to this are exact in single precision.
EXACT = 2**24
# Of zlib: more takes several times as long for a few percent less.
LEVEL = 2
# What a text must not contain inside a script element, written as JSON allows it.
HARMLESS = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}

# Charts in pixels.
WIDTH, HEIGHT = 460, 290
LEFT, RIGHT, TOP, BOTTOM = 66, 12, 12, 46
# Dashes that tell the curves of methods apart.
DASHES = ["none", "7 4", "2 3", "8 3 2 3", "1 5"]
# Numbers along an axis, about.
TICKS = 5


def render(content: Report) -> str:
    """The whole file as a text."""
    style = asset("page.css")
    scripts = "\n".join(asset(f"{name}.js") for name in SCRIPTS.split())
    script = "(() => {\n'use strict';\n" + scripts + "})();\n"
    certified = "certificate_" in vars(content.inner)
    sections = [
        section("Control chart", control_chart(content), "whole"),
        section("Rows unlike the others", outliers(content)),
        section("Columns that drive the components", attribution(content)),
        section("Spectrum", spectrum(content)),
        section("Certificate" if certified else "The fit", facts(content)),
    ]
    if content.history is not None:
        label, named = content.history
        chart = curve_chart(named, label, "pass over the kernel matrix")
        passes = f"<p>The {escape(label)} after each pass.</p>{chart}"
        sections.append(section("Convergence", passes))
    if plan := vars(content.inner).get("plan_"):
        methods = f"<p>{escape(plan.advice)}</p>{table(*plan.table())}"
        sections.append(section("Plan", methods, "whole"))
    note, walk = content.walks.note if isinstance(content.walks, Walks) else "", ""
    if isinstance(content.walks, str):
        walk = f"<h2>What a component means</h2><p>There is no walk: {escape(content.walks)}</p>"
    elif note:
        walk = f'<p class="help">{escape(note)}</p>'
    return Template(asset("page.html")).substitute(
        policy=policy(script, style),
        style=style,
        script=script,
        data=script_json(page_data(content)),
        title=escape(content.title),
        lead=f"<p>{escape(content.lead)}</p>",
        search=escape(content.examples[0]),
        help=help_list(content),
        summary="".join(f"<p>{escape(text)}</p>" for text in content.sentences),
        walk=walk,
        sections="\n".join(sections),
    )


def help_list(content: Report) -> str:
    """What hands and keys do, and what the marks of the scatter mean, as list items."""
    examples = ", ".join(f"<code>{escape(text)}</code>" for text in content.examples)
    items = [
        "<b>Hover</b> over a point to see its row; <b>click</b> to keep the row in view.",
        "<b>Drag</b> to move the picture, or to turn it in three dimensions. Click the picture, "
        "then use the <b>wheel</b> to zoom.",
        "<b>Lasso</b>, or Shift and drag: select rows.",
        "<b>Keys</b>, once the picture has the focus: arrows go from point to point, + and &minus; "
        "zoom, 0 shows everything, Escape clears the selection.",
        f"<b>Find rows</b> by a number, words or conditions: {examples}.",
    ]
    if content.n_unlike:
        items.append(
            "A <b>ring</b> marks a row unlike the others. A number beside a ring says how many "
            "such rows lie there."
        )
    if content.score_errors is not None and np.any(content.score_errors > 0):
        items.append("<b>Whiskers</b> in the corners show how large the errors of scores can be.")
    return "".join(f"<li>{item}</li>" for item in items)


def section(title: str, body: str, kind: str = "") -> str:
    """A section of the page with a heading; empty without a body."""
    if not body:
        return ""
    return f'<section aria-label="{title}" class="{kind}"><h2>{title}</h2>{body}</section>'


def asset(name: str) -> str:
    """The text of one of the page's own files."""
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def policy(script: str, style: str) -> str:
    """A content security policy that allows this script and this style and nothing else."""
    digests = (hashlib.sha256(text.encode()).digest() for text in (script, style))
    of_script, of_style = (f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {of_script}; style-src {of_style}; "
        "base-uri 'none'; form-action 'none'"
    )


def page_data(content: Report) -> dict:
    """What the scripts need, arrays packed."""
    shape, walks = content.shape, content.walks
    score_errors = [] if content.score_errors is None else content.score_errors.tolist()
    data: dict = {
        "count": int(content.index.size),
        "components": content.scores.shape[1],
        "index": pack(content.index, "i4"),
        # One component after the other: an axis is then one stretch of memory.
        "scores": pack(content.scores.T, "f4"),
        "scoreErrors": [value if math.isfinite(value) else None for value in score_errors],
        "errors": None if content.errors is None else pack(content.errors, "f4"),
        "names": content.row_names,
        "unlike": content.outliers[: content.n_unlike].tolist(),
        "columns": [
            {"name": one.name, "kind": one.kind, "groups": one.groups, "values": pack_column(one)}
            for one in content.columns
        ],
        "colored": None if content.colored is None else content.columns.index(content.colored),
        "images": None,
        "walk": None,
    }
    low, high = 0.0, 1.0
    if content.rows is not None and shape is not None:
        # The values that become black and white.
        low, high = float(np.min(content.rows)), float(np.max(content.rows))
        high = high if high > low else low + 1.0
        pixels = thumbnails(content.rows, shape, low, high)
        data["images"] = {"shape": list(pixels.shape[1:]), "pixels": pack(pixels, "u1")}
    if isinstance(walks, Walks):
        rows = pack(to_bytes(walks.rows, low, high), "u1") if shape else pack(walks.rows, "f4")
        data["walk"] = {
            "steps": walks.steps.tolist(),
            "deviations": walks.deviations.tolist(),
            "names": [] if shape else content.names,
            "shape": [*shape, 1][:3] if shape else None,
            "rows": rows,
        }
    return data


def pack_column(column: Column) -> dict:
    """The values of a column, in the fewest bytes that tell them apart."""
    if column.kind == "group":
        return pack(column.values, "i4")
    # Single precision has no digits for dates, nor for large whole numbers such as those of orders.
    values = column.values[np.isfinite(column.values)]
    exact = column.kind == "date" or bool(
        np.any((abs(values) > EXACT) & (values == values.round()))
    )
    return pack(column.values, "f8" if exact else "f4")


def pack(array, kind: str) -> dict:
    """An array as base64 of a zlib stream of little-endian numbers.

    Parameters
    ----------
    array : array
    kind : "f8", "f4", "i4" or "u1"
        Type of the numbers in the page.
    """
    flat = np.ascontiguousarray(array, dtype=f"<{kind}")
    return {"kind": kind, "data": base64.b64encode(zlib.compress(flat.data, LEVEL)).decode()}


def script_json(value) -> str:
    """JSON that can stand in a script element: nothing in it ends the element or begins one."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for character, harmless in HARMLESS.items():
        text = text.replace(character, harmless)
    return text


def to_bytes(rows, low: float, high: float) -> np.ndarray:
    """Values as bytes, those beyond the range at its ends."""
    shares = (np.asarray(rows, float) - low) / (high - low)
    return np.clip(np.round(255 * shares), 0, 255).astype(np.uint8)


def thumbnails(rows, shape, low: float, high: float) -> np.ndarray:
    """Bytes (n, h, w, channels), averaged over squares of pixels until all fit."""
    h, w, channels = (*shape, 1)[:3]
    pixels = rows.reshape(len(rows), h, w, channels)
    side = max(math.ceil(max(h, w) / SIDE), math.ceil(math.sqrt(pixels.size / BYTES)))
    # Small sides must not vanish.
    side = min(side, h, w)
    if side > 1:
        # Pixels beyond the last whole square are cut off.
        pixels = pixels[:, : h // side * side, : w // side * side]
        pixels = pixels.reshape(len(rows), h // side, side, w // side, side, channels)
        pixels = pixels.mean(axis=(2, 4))
    return to_bytes(pixels, low, high)


def spectrum(content: Report) -> str:
    """The chart of the eigenvalues, the same numbers as a table, and which stand above noise."""
    fitted, significance = vars(content.inner), content.significance
    if "eigenvalues_" not in fitted:
        return ""
    values, certificate = dense(fitted["eigenvalues_"]), fitted.get("certificate_")
    columns = {"eigenvalue": [f"{value:.6g}" for value in values]}
    text, lower, upper = "<p>Dots are the eigenvalues.</p>", values, values
    if certificate is not None:
        lower, upper = dense(certificate.eigenvalue_lower), dense(certificate.eigenvalue_upper)
        columns["at least"] = [f"{end:.6g}" for end in lower]
        columns["at most"] = [f"{end:.6g}" for end in upper]
        bound, known = certificate.kind == "bound", np.isfinite(lower) & np.isfinite(upper)
        bars = "the exact ones are certified to lie" if bound else "the exact ones are estimated"
        bars = f"Bars show where {bars}; a bar may be shorter than its dot."
        if not known.all():
            bars = "Where there is no bar, no limit is known."
        text = f"<p>Dots are the eigenvalues found. {bars}</p>"
        lower, upper = np.where(known, lower, values), np.where(known, upper, values)
    if "explained_variance_ratio_" in fitted:
        ratios = dense(fitted["explained_variance_ratio_"])
        columns["share of variance"] = [f"{100 * share:.3g} %" for share in ratios]
    if certificate is not None and (certificate.confidence or 1) < 1:
        name = f"at most, with confidence {confidence_text(certificate.confidence)}"
        columns[name] = [f"{high:.6g}" for high in dense(certificate.likely_upper)]
    pairs = enumerate(zip(*columns.values(), strict=True), 1)
    rows = [[str(k), *row] for k, row in pairs][:SPECTRUM]
    shown = f"<p>The first {SPECTRUM} of {values.size}.</p>" if values.size > SPECTRUM else ""
    text += (
        f"{spectrum_chart(values[:SPECTRUM], lower[:SPECTRUM], upper[:SPECTRUM])}{shown}"
        f"<details><summary>The numbers</summary>{table(['component', *columns], rows)}</details>"
    )
    if significance is not None:
        text += (
            f"<p>{escape(significance.sentence())}</p><details><summary>Component by component"
            f"</summary>{table(*significance.table())}</details>"
        )
    return text


def outliers(content: Report) -> str:
    """Rows with the largest errors, each with a button that the scripts listen to."""
    if content.errors is None:
        if content.walks is None:
            return ""
        return "<p>A precomputed kernel has no k(x, x) of new rows: errors are not known.</p>"
    names = content.row_names
    heads = ["row", *(["name"] if names else []), "error", "times the median"]
    median = max(float(np.median(content.errors)), np.finfo(float).tiny)
    body = []
    for place in content.outliers:
        error = float(content.errors[place])
        name = int(content.index[place])
        body.append(
            f'<tr data-place="{int(place)}"><td><button type="button" aria-pressed="false" '
            f'aria-label="Show row {name}">{name}</button></td>'
            + (f"<td>{escape(names[place])}</td>" if names else "")
            + f"<td>{error:.4g}</td><td>{error / median:.3g}</td></tr>"
        )
    count = content.n_unlike
    ringed = "No error is far beyond the others."
    if count:
        first = "The first row is" if count == 1 else f"The first {count} rows are"
        ringed = f"{first} far beyond the others and ringed in the scatter."
    return (
        "<p>The components describe these rows worst: the error is the squared distance of a row "
        f"from what the components can rebuild. {ringed} Choose a row to see it.</p>"
        f'<div id="outliers">{table(heads, [], "".join(body))}</div>'
    )


def attribution(content: Report) -> str:
    """Bars of the columns that drive all components, and a table for each of them."""
    attributed = content.attribution
    # Pixels have no names to read; their picture is the walk.
    if attributed is None or content.shape is not None:
        return ""
    if isinstance(attributed, str):
        return f"<p>Not computed: {escape(attributed)}</p>"
    top = attributed.top(None, BARS)
    shown = replace(attributed, components=attributed.components[:COMPONENTS_EXPLAINED])
    most = max((value for _, value in top), default=0.0) or 1.0
    bars = "".join(
        f'<tr title="{escape(name)}"><th scope="row">{escape(name)}</th><td>'
        f'<meter max="{most:.6g}" value="{value:.6g}"></meter></td><td>{value:.3g}</td></tr>'
        for name, value in top
    )
    return (
        "<p>Change of the scores when a column changes by one standard deviation, averaged over "
        f'{attributed.n_rows:,} rows.</p><table class="bars"><tbody>{bars}</tbody></table>'
        "<details><summary>By component (+ the score rises with the column, - it falls, ± it "
        f"does both)</summary>{table(*shown.table())}</details>"
    )


def control_chart(content: Report) -> str:
    """T-squared and SPE of all rows over their limits, and the alarms with the sensors behind."""
    chart = content.chart
    if chart is None:
        return ""
    # Beyond so many rows the highest of each stretch is drawn.
    starts = np.arange(0, len(chart.rows), -(-len(chart.rows) // DRAWN))
    drawn = []
    for name, ratios in zip(("T-squared", "SPE"), chart.ratios.T, strict=True):
        curves = {"": (starts, np.maximum.reduceat(ratios, starts))}
        drawn.append(f"<h3>{name}</h3>{curve_chart(curves, f'{name} / limit', 'row', 1.0)}")
    heads, episodes = chart.table()
    text = f"{chart.sentence()}. The curves are divided by their limits: rows above 1 are in alarm."
    alarms = table(heads, episodes) if episodes else ""
    return f"<p>{escape(text)}</p>{''.join(drawn)}{alarms}"


def facts(content: Report) -> str:
    """The model, its certificate and its settings."""
    model, inner = content.model, content.inner
    rows = summary_rows(model)
    rows += [row for row in summary_rows(inner) if row not in rows]
    if content.left_out:
        rows.append(["columns not shown", f"{content.left_out:,}, the last ones"])
    lines = table(["", ""], rows) if rows else ""
    if not content.settings:
        return lines
    return f"{lines}<h3>Settings</h3>{table(['', ''], content.settings.items())}"


def table(heads, rows, body: str = "") -> str:
    """A table of texts, escaped, with further rows of HTML."""
    for row in rows:
        body += "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>"
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in heads) if any(heads) else ""
    return (
        '<div class="wide" tabindex="0" role="region" aria-label="Table, scrolls sideways">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def spectrum_chart(values, lower, upper) -> str:
    """Eigenvalues as dots, the intervals that hold true ones as bars."""
    values, lower, upper = (np.asarray(a, float) for a in (values, lower, upper))
    log = bool(values.min() > 0)
    floor = values.min() / 3 if log else min(0.0, lower.min())
    x = axis(0.5, values.size + 0.5, LEFT, WIDTH - RIGHT)
    y = axis(floor, max(upper.max(), floor + 1e-300), HEIGHT - BOTTOM, TOP, log)
    marks = [curve([(x(k + 1), y(value)) for k, value in enumerate(values)])]
    for k, (value, low, high) in enumerate(zip(values, lower, upper, strict=True)):
        at = x(k + 1)
        ends = [line(at - 4, y(end), at + 4, y(end), "interval") for end in (low, high)]
        title = f"component {k + 1}: {value:.6g}, a true one in [{low:.6g}, {high:.6g}]"
        bar = line(at, y(low), at, y(high), "interval")
        marks.append(group(title, bar, *ends, element("circle", "dot", cx=at, cy=y(value), r=3.5)))
    label = f"Eigenvalues of {values.size} components, from {values[0]:.4g} to {values[-1]:.4g}"
    yticks = ticks(floor, upper.max(), log)
    return with_axes(marks, x, y, values.size, yticks, "component", "eigenvalue", label)


def curve_chart(named, ylabel: str, xlabel: str, limit: float | None = None) -> str:
    """Values by pass or row on a logarithmic scale, dashes telling the curves apart.

    With a limit a line is drawn there, and dots only above it.
    """
    last, what = max(int(places.max()) for places, _ in named.values()), xlabel.split()[0]
    seen = np.concatenate([values[values > 0] for _, values in named.values()])
    seen = np.append(seen, ([] if seen.size else 1e-16) if limit is None else limit)
    low, high = max(seen.min(), FLAT * (limit or 0)) / 2, seen.max() * 2
    x = axis(0.5, last + 0.5, LEFT, WIDTH - RIGHT)
    y = axis(low, high, HEIGHT - BOTTOM, TOP, log=True)
    marks = [] if limit is None else [line(LEFT, y(limit), WIDTH - RIGHT, y(limit), "interval")]
    for k, (name, (places, values)) in enumerate(named.items()):
        dash, points = DASHES[k % len(DASHES)], list(zip(places, values, strict=True))
        parts = [curve([(x(p), y(value)) for p, value in points if value > 0], dash)]
        for p, value in points:
            if limit is None or value > limit:
                title = f"{name} {what} {p}: {value:.4g}".strip()
                parts.append(group(title, element("circle", "dot", cx=x(p), cy=y(value), r=3)))
        if name:  # a line of the legend, at the upper right
            at = TOP + 10 + 18 * k
            parts.append(curve([(WIDTH - 150, at - 4), (WIDTH - 118, at - 4)], dash))
            parts.append(text(WIDTH - 112, at, name[:16], "start"))
        marks.append(element("g", f"method-{k % len(DASHES)}", "".join(parts)))
    label = f"{ylabel} from {seen.max():.2e} to {seen.min():.2e}, up to {what} {last}"
    return with_axes(marks, x, y, last, ticks(low, high, log=True), xlabel, ylabel, label)


def axis(low: float, high: float, first: float, last: float, log: bool = False) -> Callable:
    """The pixel of a value between `low` and `high`; values beyond are at the ends."""
    bend = (lambda value: math.log10(max(value, 1e-300))) if log else float
    start, stop = bend(low), bend(high)

    def place(value: float) -> float:
        share = (bend(value) - start) / (stop - start) if stop > start else 0.5
        return first + min(1.0, max(0.0, share)) * (last - first)

    return place


def ticks(low: float, high: float, log: bool = False) -> list[float]:
    """Round values between the ends."""
    if not low < high < math.inf:
        return [low]
    locator: Locator = MaxNLocator(TICKS, steps=[1, 2, 5, 10])
    if log:
        few = math.log10(high / low) < 2
        locator = LogLocator(subs=(1, 2, 5) if few else (1,), numticks=TICKS + 1)
    return [float(value) for value in locator.tick_values(low, high) if low <= value <= high]


def with_axes(marks, x, y, count: int, yticks, xlabel: str, ylabel: str, label: str) -> str:
    """Marks over a grid, with the whole numbers up to `count` below."""
    bottom, right, middle = HEIGHT - BOTTOM, WIDTH - RIGHT, (TOP + HEIGHT - BOTTOM) / 2
    parts = [line(LEFT, bottom, right, bottom, "axis"), line(LEFT, TOP, LEFT, bottom, "axis")]
    for value in yticks:
        parts.append(line(LEFT, y(value), right, y(value), "grid"))
        far = value != 0 and not 1e-3 <= abs(value) < 1e4
        short = f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e") if far else f"{value:.4g}"
        parts.append(text(LEFT - 6, y(value) + 4, short, "end"))
    for value in ticks(0.5, count + 0.5):
        if value == round(value):
            parts.append(text(x(value), bottom + 17, f"{value:.0f}", "middle"))
    parts.append(text((LEFT + right) / 2, HEIGHT - 8, xlabel, "middle"))
    parts.append(text(14, middle, ylabel, "middle", transform=f"rotate(-90 14 {middle:.0f})"))
    box = {"viewBox": f"0 0 {WIDTH} {HEIGHT}", "role": "img", "aria-label": label}
    return element("svg", "chart", "".join([*parts, *marks]), **box)


def group(title: str, *marks: str) -> str:
    """Marks that a pointer can ask for their title."""
    return f"<g><title>{escape(title)}</title>{''.join(marks)}</g>"


def line(x1, y1, x2, y2, kind: str) -> str:
    return element("line", kind, x1=x1, y1=y1, x2=x2, y2=y2)


def curve(points, dash: str = "none") -> str:
    way = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return element("polyline", "curve", points=way, **{"stroke-dasharray": dash})


def text(x, y, words: str, anchor: str, **more) -> str:
    return element("text", "", escape(words), x=x, y=y, **{"text-anchor": anchor}, **more)


def element(name: str, kind: str = "", content: str = "", **attributes) -> str:
    """An element of some class; numbers have one decimal, texts are escaped."""
    attributes_of = {"class": kind} | attributes if kind else attributes
    pairs = (
        f'{key}="{escape(value) if isinstance(value, str) else f"{value:.1f}"}"'
        for key, value in attributes_of.items()
    )
    return f"<{name} {' '.join(pairs)}>{content}</{name}>"
