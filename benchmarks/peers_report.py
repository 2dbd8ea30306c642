"""docs/results.md, docs/images/peers.png and the README's table, made from benchmarks/peers.json.

    python benchmarks/peers.py --report

No number on these pages is typed by hand; a test makes them again and compares.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "peers.json"
PAGE, README = ROOT / "docs" / "results.md", ROOT / "README.md"
FIGURE = ROOT / "docs" / "images" / "peers.png"
START, END = "<!-- peers: made by benchmarks/peers.py -->", "<!-- end of peers -->"
OURS = "mercer"
# A result no worse than this is taken to be as good as ours for a comparison of speed.
EXACT = 1e-6
MAIN = "kernel PCA"
# Lines of the picture that have a name and a color of their own; all others are gray.
NAMED = {
    "scikit-learn, arpack": ("tab:orange", 1.8),
    "scikit-learn, Nystroem + PCA": ("tab:red", 1.8),
    "mercer, 1,000 landmarks": ("tab:cyan", 3.0),
    "mercer, exact": ("tab:blue", 3.0),
}
# Cores of other programs beyond which the page warns of its own times.
BUSY = 0.3


def write(results: dict) -> None:
    """Everything that is made from the results."""
    draw(results, FIGURE)
    PAGE.write_text(page(results), encoding="utf-8")
    README.write_text(readme(README.read_text(encoding="utf-8"), results), encoding="utf-8")


def readme(text: str, results: dict) -> str:
    """The README with its figure and table made again, between their marks."""
    head, rest = text.split(START)
    _, tail = rest.split(END)
    body = [
        "",
        *short_table(results),
        "",
        _conditions(results) + " [All of it, and where others are better](docs/results.md).",
        "",
    ]
    return head + START + "\n".join(body) + END + tail


def short_table(results: dict) -> list[str]:
    """Seconds of the exact methods, and of our landmarks, by rows."""
    sizes = _sizes(results)
    lines = ["| seconds, 16 components | " + " | ".join(f"{n:,} rows" for n in sizes) + " |"]
    lines.append("|---|" + "--:|" * len(sizes))
    for contender in _contenders(results, MAIN):
        if not approximate(contender) or contender.startswith(OURS):
            cells = [_seconds(_cell(results, MAIN, contender, n)) for n in sizes]
            lines.append(f"| {contender} | " + " | ".join(cells) + " |")
    return lines


SPARSE_ROWS = (
    "- sparse rows, 20,000 x 30,000, linear (`benchmarks/sparse_rows.py`): ARPACK on the same "
    "products takes 0.55 s, scikit-learn's PCA 0.60 s, mercer 0.67 s."
)


def page(results: dict) -> str:
    """docs/results.md."""
    lines = [
        "<!-- made by benchmarks/peers.py from benchmarks/peers.json: do not edit -->",
        "# Speed against other libraries",
        "",
        "Every library that does the same and could be installed, each in a process of its own, on "
        "the same rows. `make peers` measures it again. *MB*: peak memory beyond the data. "
        "*Error*: largest relative error of the 16 eigenvalues.",
        "",
        _conditions(results),
        "",
        "![Seconds and memory against rows](images/peers.png)",
        "",
        "*A line ends with the last size within the limits; dashed lines are approximations.*",
        "",
    ]
    for task in _tasks(results):
        lines += [f"## {task[0].upper()}{task[1:]}", ""]
        lines += tables(results, task)
    lines += ["## Where others are better", "", *losses(results), SPARSE_ROWS, ""]
    lines += [
        "Other methods for the same goals: [by goal](comparison.md#where-others-are-better).",
        "",
    ]
    lines += ["## Not measured", ""]
    absent = [f"- {name}: {why}." for name, why in results["absent"].items()]
    lines += absent or ["Every peer on the list was installed."]
    lines += ["", "## Machine", "", *machine(results)]
    return "\n".join(lines).rstrip() + "\n"


def _conditions(results: dict) -> str:
    settings = results["settings"]
    busy = results["busy_cores"] > BUSY
    caution = " **On so busy a machine times prove little**: measure again on a quiet one."
    return (
        f"Rows of {settings['data']}, {settings['columns']} columns, Gaussian kernel of the mean "
        f"distance, float64, defaults of each library, {results['machine']['cores']} cores. `>` "
        f"marks a run that was stopped at {settings['limit_s']:g} s or failed within "
        f"{settings['memory_gb']:g} GB, and the larger ones after it." + (caution if busy else "")
    )


def tables(results: dict, task: str) -> list[str]:
    """Seconds of a task by rows; memory and error at one size."""
    sizes = _sizes(results)
    middle = sizes[len(sizes) // 2]
    heads = ["seconds", *(f"{n:,}" for n in sizes), f"MB, {middle:,}"]
    heads += [f"error, {middle:,}"] if task == MAIN else []
    out = ["| " + " | ".join(heads) + " |", "|---|" + "--:|" * (len(heads) - 1)]
    for contender in _contenders(results, task):
        cell = _cell(results, task, contender, middle)
        cells = [_seconds(_cell(results, task, contender, n)) for n in sizes] + [_memory(cell)]
        cells += [_accuracy(cell)] if task == MAIN else []
        out.append(f"| {contender} | " + " | ".join(cells) + " |")
    return [*out, ""]


def losses(results: dict) -> list[str]:
    """Cells in which a peer is faster or smaller than ours at no worse an error."""
    found = []
    for task in _tasks(results):
        for n in _sizes(results):
            cells = {c: _cell(results, task, c, n) for c in _contenders(results, task)}
            own = {c: cell for c, cell in cells.items() if c.startswith(OURS) and _good(cell)}
            for name, cell in cells.items():
                if name.startswith(OURS) or not _good(cell):
                    continue
                rivals = {c: x for c, x in own.items() if approximate(c) == approximate(name)}
                for other, ours in rivals.items():
                    if _worse(cell, ours):
                        continue
                    if cell["seconds"] < 0.9 * ours["seconds"]:
                        factor = ours["seconds"] / cell["seconds"]
                        found.append(
                            f"- {task}, {n:,} rows: {name} is {factor:.1f} times as fast as "
                            f"{other} ({_seconds(cell)} against {_seconds(ours)} s)."
                        )
                    if cell["peak_mb"] < 0.5 * ours["peak_mb"]:
                        found.append(
                            f"- {task}, {n:,} rows: {name} takes {cell['peak_mb']:.0f} MB, {other} "
                            f"{ours['peak_mb']:.0f} MB."
                        )
    return found or ["In none of the cells above."]


def _worse(cell, ours) -> bool:
    """Whether a result is less accurate than ours, where that is known."""
    if "accuracy" not in cell or "accuracy" not in ours:
        return False
    return not cell["accuracy"] <= max(EXACT, 1.1 * ours["accuracy"])


def machine(results: dict) -> list[str]:
    """System and versions."""
    own = results["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in own["versions"].items())
    return [
        f"{own['system']}, {own['cores']} cores, Python {own['python']}; {versions}. "
        f"The run took {results['minutes']:g} minutes.",
        "",
    ]


def draw(results: dict, path: Path) -> None:
    """Seconds and memory against rows on logarithmic axes: ours and scikit-learn's with names."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained", sharex=True)
    others = [c for c in _contenders(results, MAIN) if c not in NAMED]
    for contender in [*others, *NAMED]:
        color, width = NAMED.get(contender, ("0.75", 1.2))
        dashes = "--" if approximate(contender) else "-"
        label = contender if contender in NAMED else "others" if contender == others[0] else None
        style = {"color": color, "lw": width, "label": label}
        for ax, field in zip(axes, ("seconds", "peak_mb"), strict=True):
            cells = [(n, _cell(results, MAIN, contender, n)) for n in _sizes(results)]
            good = [(n, cell[field]) for n, cell in cells if _good(cell)]
            ax.loglog(*zip(*good, strict=True), dashes, marker="o", ms=3, **style)
    axes[0].set(xlabel="rows", ylabel="seconds")
    axes[1].set(xlabel="rows", ylabel="peak memory beyond the data, MB")
    axes[1].legend(loc="lower right", frameon=False, reverse=True)
    for ax in axes:
        ax.grid(alpha=0.25)
        ax.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def approximate(contender: str) -> bool:
    """Whether it works in the span of a few rows."""
    return "landmarks" in contender or "Nystroem" in contender


def _sizes(results) -> list[int]:
    return sorted({cell["n"] for cell in results["results"]})


def _tasks(results) -> list[str]:
    return list(dict.fromkeys(cell["task"] for cell in results["results"]))


def _contenders(results, task) -> list[str]:
    return list(
        dict.fromkeys(cell["contender"] for cell in results["results"] if cell["task"] == task)
    )


def _cell(results, task, contender, n) -> dict | None:
    key = (task, contender, n)
    return next((c for c in results["results"] if (c["task"], c["contender"], c["n"]) == key), None)


def _good(cell) -> bool:
    return cell is not None and "seconds" in cell


def _seconds(cell) -> str:
    if cell is None:
        return ""
    if "seconds" in cell:
        return f"{cell['seconds']:.2g}" if cell["seconds"] < 10 else f"{cell['seconds']:.0f}"
    return "> " + re.search(r"[\d.]+ (?:s|GB)\b", cell["error"])[0]


def _memory(cell) -> str:
    return f"{cell['peak_mb']:,.0f}" if _good(cell) else ""


def _accuracy(cell) -> str:
    if not _good(cell):
        return ""
    if cell.get("accuracy") == 0:  # it was its own reference
        return f"certified {cell['certified']:.0e}" if "certified" in cell else ""
    return f"{cell['accuracy']:.0e}" if "accuracy" in cell else ""
