"""Charts that do not move, as SVG: the spectrum, the passes, the columns that drive components.

Matplotlib's SVG is full of inline styles, which the page's security policy forbids. Here colors
come from the page's style sheet, so that they follow its light and dark forms, and every mark has
a title that a pointer or a screen reader can ask for.
"""

import math
from collections.abc import Callable
from html import escape

import numpy as np
from matplotlib.ticker import Locator, LogLocator, MaxNLocator

WIDTH, HEIGHT = 460, 290
LEFT, RIGHT, TOP, BOTTOM = 66, 12, 12, 46
# Dashes that tell the curves of methods apart.
DASHES = ["none", "7 4", "2 3", "8 3 2 3", "1 5"]
# Numbers along an axis, about.
TICKS = 5


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


def convergence_chart(named, ylabel: str) -> str:
    """Error by pass on a logarithmic scale, dashes telling the methods apart."""
    last = max(int(passes.max()) for passes, _ in named.values())
    seen = np.concatenate([values[values > 0] for _, values in named.values()])
    seen = seen if seen.size else np.array([1e-16])
    low, high = seen.min() / 2, seen.max() * 2
    x = axis(0.5, last + 0.5, LEFT, WIDTH - RIGHT)
    y = axis(low, high, HEIGHT - BOTTOM, TOP, log=True)
    marks = []
    for k, (name, (passes, values)) in enumerate(named.items()):
        dash, places = DASHES[k % len(DASHES)], list(zip(passes, values, strict=True))
        parts = [curve([(x(p), y(value)) for p, value in places if value > 0], dash)]
        for p, value in places:
            title = f"{name} pass {p}: {value:.3e}".strip()
            parts.append(group(title, element("circle", "dot", cx=x(p), cy=y(value), r=3)))
        if name:  # a line of the legend, at the upper right
            at = TOP + 10 + 18 * k
            parts.append(curve([(WIDTH - 150, at - 4), (WIDTH - 118, at - 4)], dash))
            parts.append(text(WIDTH - 112, at, name[:16], "start"))
        marks.append(element("g", f"method-{k % len(DASHES)}", "".join(parts)))
    label = f"{ylabel} from {seen.max():.2e} to {seen.min():.2e} in {last} passes"
    yticks = ticks(low, high, log=True)
    return with_axes(marks, x, y, last, yticks, "pass over the kernel matrix", ylabel, label)


def bar_chart(named: list[tuple[str, float]]) -> str:
    """Values as bars to the right of their names."""
    step, left = 22, 150
    x = axis(0.0, max((value for _, value in named), default=0.0) or 1.0, left, WIDTH - 56)
    marks = []
    for k, (name, value) in enumerate(named):
        y, end = 8 + step * k, x(value)
        bar = element("rect", "bar", x=left, y=y, width=end - left, height=step - 6)
        short = name if len(name) <= 20 else name[:19] + "…"
        texts = text(left - 6, y + 13, short, "end"), text(end + 5, y + 13, f"{value:.3g}", "start")
        marks.append(group(f"{name}: {value:.4g}", bar, *texts))
    label = f"{len(named)} columns that drive the components most"
    return svg(marks, 16 + step * len(named), label)


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
        far = value != 0 and not 1e-3 <= abs(value) < 1e5
        short = f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e") if far else f"{value:.4g}"
        parts.append(text(LEFT - 6, y(value) + 4, short, "end"))
    for value in ticks(0.5, count + 0.5):
        if value == round(value):
            parts.append(text(x(value), bottom + 17, f"{value:.0f}", "middle"))
    parts.append(text((LEFT + right) / 2, HEIGHT - 8, xlabel, "middle"))
    parts.append(text(14, middle, ylabel, "middle", transform=f"rotate(-90 14 {middle:.0f})"))
    return svg([*parts, *marks], HEIGHT, label)


def svg(marks, height: int, label: str) -> str:
    box = {"viewBox": f"0 0 {WIDTH} {height}", "role": "img", "aria-label": label}
    return element("svg", "chart", "".join(marks), **box)


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
    known = {"class": kind} | attributes if kind else attributes
    pairs = (
        f'{key}="{escape(value) if isinstance(value, str) else f"{value:.1f}"}"'
        for key, value in known.items()
    )
    return f"<{name} {' '.join(pairs)}>{content}</{name}>"
