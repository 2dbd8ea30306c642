"""Charts that do not move, as SVG: the spectrum and the passes.

Colors come from the page's style sheet, so that they follow its light and dark forms; every
mark has a title that a pointer or a screen reader can ask for.
"""

import math
from dataclasses import dataclass
from html import escape

import numpy as np

WIDTH, HEIGHT = 460, 290
LEFT, RIGHT, TOP, BOTTOM = 66, 12, 12, 46
# Shapes of the marks of curves and their dashes, in the same order.
DASHES = ["", "7 4", "2 3", "8 3 2 3", "1 5"]
# Numbers along an axis, about.
TICKS = 5


@dataclass(frozen=True)
class Axis:
    """A straight or logarithmic way from values to pixels."""

    low: float
    high: float
    first: float
    last: float
    log: bool = False

    def place(self, value: float) -> float:
        """The pixel of a value."""
        low, high, at = (self._bend(x) for x in (self.low, self.high, value))
        share = (at - low) / (high - low) if high > low else 0.5
        return self.first + min(1.0, max(0.0, share)) * (self.last - self.first)

    def ticks(self) -> list[float]:
        """Round values between the ends."""
        if self.log:
            return round_powers(self.low, self.high)
        return round_steps(self.low, self.high)

    def _bend(self, value):
        return math.log10(max(value, 1e-300)) if self.log else value


def round_steps(low: float, high: float) -> list[float]:
    """About TICKS multiples of 1, 2 or 5 times a power of ten."""
    if not high > low:
        return [low]
    raw = (high - low) / TICKS
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * k for k in (1, 2, 5, 10) if power * k >= raw)
    return [step * k for k in range(math.ceil(low / step), math.floor(high / step) + 1)]


def round_powers(low: float, high: float) -> list[float]:
    """Powers of ten between positive numbers, with 2 and 5 times them where there are few."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    step = max(1, math.ceil((last - first) / TICKS))
    factors = (1, 2, 5) if last - first <= 2 else (1,)
    found = [k * 10.0**power for power in range(first, last + 1, step) for k in factors]
    return [value for value in found if low <= value <= high]


def spectrum_chart(values, lower, upper) -> str:
    """Eigenvalues as dots, the intervals that hold true ones as bars."""
    values, lower, upper = (np.asarray(a, float) for a in (values, lower, upper))
    log = bool(values.min() > 0)
    floor = values.min() / 3 if log else min(0.0, lower.min())
    y = Axis(floor, max(upper.max(), floor + 1e-300), HEIGHT - BOTTOM, TOP, log)
    x = Axis(0.5, values.size + 0.5, LEFT, WIDTH - RIGHT)
    marks = [_line([(x.place(k + 1), y.place(v)) for k, v in enumerate(values)], "curve", "")]
    for k, (value, low, high) in enumerate(zip(values, lower, upper, strict=True)):
        at = x.place(k + 1)
        title = f"component {k + 1}: {value:.6g}, a true one in [{low:.6g}, {high:.6g}]"
        marks.append(
            f"<g><title>{escape(title)}</title>{_bar(at, y.place(low), y.place(high))}"
            f'<circle class="dot" cx="{at:.1f}" cy="{y.place(value):.1f}" r="3.5"/></g>'
        )
    label = f"Eigenvalues of {values.size} components, from {values[0]:.4g} to {values[-1]:.4g}"
    return _chart(marks, x, y, "component", "eigenvalue", label)


def bar_chart(named: list[tuple[str, float]]) -> str:
    """Values as bars to the right of their names, the longest first."""
    step, left = 22, 150
    most = max((value for _, value in named), default=0.0) or 1.0
    x = Axis(0.0, most, left, WIDTH - 56)
    marks = []
    for k, (name, value) in enumerate(named):
        y, end = 8 + step * k, x.place(value)
        marks.append(
            f"<g><title>{escape(f'{name}: {value:.4g}')}</title>"
            f'<rect class="bar" x="{left}" y="{y}" width="{end - left:.1f}" height="{step - 6}"/>'
            + _text(left - 6, y + 13, name if len(name) <= 20 else name[:19] + "…", "end")
            + _text(end + 5, y + 13, f"{value:.3g}", "start")
            + "</g>"
        )
    label = f"{len(named)} columns that drive the components most"
    height = 16 + step * len(named)
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape(label)}">{"".join(marks)}</svg>'
    )


def convergence_chart(named, ylabel: str) -> str:
    """Error by pass on a logarithmic scale, dashes telling the methods apart."""
    passes = np.concatenate([p for p, _ in named.values()])
    seen = np.concatenate([v[v > 0] for _, v in named.values()])
    if not seen.size:
        seen = np.array([1e-16])
    y = Axis(seen.min() / 2, seen.max() * 2, HEIGHT - BOTTOM, TOP, log=True)
    x = Axis(0.5, passes.max() + 0.5, LEFT, WIDTH - RIGHT)
    marks = []
    for k, (name, (at, values)) in enumerate(named.items()):
        points = [(x.place(p), y.place(v)) for p, v in zip(at, values, strict=True) if v > 0]
        marks.append(f'<g class="method-{k % len(DASHES)}">')
        marks.append(_line(points, "curve", DASHES[k % len(DASHES)]))
        for p, v in zip(at, values, strict=True):
            title = escape(f"{name} pass {p}: {v:.3e}".strip())
            marks.append(
                f'<circle class="dot" cx="{x.place(p):.1f}" cy="{y.place(v):.1f}" r="3">'
                f"<title>{title}</title></circle>"
            )
        if name:
            marks.append(_key(k, name))
        marks.append("</g>")
    label = f"{ylabel} from {seen.max():.2e} to {seen.min():.2e} in {passes.max()} passes"
    return _chart(marks, x, y, "pass over the kernel matrix", ylabel, label)


def _chart(marks, x: Axis, y: Axis, xlabel, ylabel, label) -> str:
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(label)}">{_frame(x, y, xlabel, ylabel)}{"".join(marks)}</svg>'
    )


def _frame(x: Axis, y: Axis, xlabel, ylabel) -> str:
    parts = [_segment(LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM, "axis")]
    parts.append(_segment(LEFT, TOP, LEFT, HEIGHT - BOTTOM, "axis"))
    for value in y.ticks():
        at = y.place(value)
        parts.append(_segment(LEFT, at, WIDTH - RIGHT, at, "grid"))
        parts.append(_text(LEFT - 6, at + 4, number(value), "end"))
    for value in x.ticks():
        if value == round(value) and value >= 1:
            parts.append(_text(x.place(value), HEIGHT - BOTTOM + 17, f"{value:.0f}", "middle"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, xlabel, "middle"))
    middle = (TOP + HEIGHT - BOTTOM) / 2
    turn = f' transform="rotate(-90 14 {middle:.0f})"'
    parts.append(_text(14, middle, ylabel, "middle", turn))
    return "".join(parts)


def number(value: float) -> str:
    """A short form for the side of an axis."""
    far = value != 0 and not 1e-3 <= abs(value) < 1e5
    return f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e") if far else f"{value:.4g}"


def _segment(x1, y1, x2, y2, kind) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _bar(x, low, high) -> str:
    """An interval with short ends."""
    ends = "".join(_segment(x - 4, at, x + 4, at, "interval") for at in (low, high))
    return _segment(x, low, x, high, "interval") + ends


def _line(points, kind, dash) -> str:
    way = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
    return f'<polyline class="{kind}" points="{way}" stroke-dasharray="{dash or "none"}"/>'


def _text(x, y, text, anchor, more="") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(text)}</text>'


def _key(k, name) -> str:
    """A line of the legend, at the upper right."""
    y = TOP + 10 + 18 * k
    line = _line([(WIDTH - 150, y - 4), (WIDTH - 118, y - 4)], "curve", DASHES[k % len(DASHES)])
    return line + _text(WIDTH - 112, y, name[:16], "start")
