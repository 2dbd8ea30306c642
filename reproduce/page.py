"""docs/reproductions.md, made from reproduce/results.json: no number in it is typed by hand."""

from pathlib import Path

from _experiment import SOURCES

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
PAGE = HERE.parent / "docs" / "reproductions.md"
HEAD = """<!-- made by reproduce/all.py from reproduce/results.json: do not edit -->
# Reproductions

What the papers claim, and what came out here, by one command:

```sh
export MERCER_DATA=...             # see reproduce/papers_data.py
make reproduce                     # QUICK=1 for a run of a few minutes
python reproduce/all.py --quick --only shi-table-1
```

{run} Numbers, figures and verdicts come from that run; a verdict is computed from the
numbers that stand beside it, and *measured* says that the source makes no claim that one number
could settle. Nothing is tuned on what is reported. Longer tables of the same experiments, with
their limits: [iterative methods](iterative.md), [choosing landmarks](choosing-landmarks.md),
[denoising](denoising.md), [pre-images](preimages.md), [clustering](clustering.md).
"""
SIZES = {
    "smoke": "A run of seconds, which only shows that everything works.",
    "quick": "The run shown here is the quick one (`--quick`).",
    "full": "The run shown here is the full one.",
}


def page(results: dict) -> str:
    """The whole page."""
    machine = results["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    seconds = sum(record["seconds"] for record in results["experiments"])
    where = f"on {machine['system']} with {versions}"
    run = f"{SIZES[results['size']]} It took {seconds / 60:.0f} minutes {where}."
    parts = [HEAD.format(run=run)]
    for source, title in SOURCES.items():
        records = [record for record in results["experiments"] if record["source"] == source]
        if records:
            parts.append(f"## {title}\n")
            parts += [section(record) for record in records]
    return "\n".join(parts).rstrip() + "\n"


def section(record: dict) -> str:
    """An experiment: the reading, the table, the figures."""
    lines = [f"### {record['title']}\n"]
    if record["reading"]:
        lines.append(f"*Reading.* {record['reading']}\n")
    if record["skipped"]:
        lines.append(f"Left out: {record['skipped']}\n")
        return "\n".join(lines)
    lines += ["| the claim | the source | here | verdict |", "|---|---|---|---|"]
    for finding in record["findings"]:
        cells = (
            finding[name].replace("|", "\\|") for name in ("claim", "paper", "ours", "verdict")
        )
        lines.append("| " + " | ".join(cells) + " |")
    lines.append("")
    for figure in record["figures"]:
        lines.append(f"![{record['title']}](images/reproduce-{figure})\n")
    lines.append(f"`python reproduce/all.py --only {record['name']}`\n")
    return "\n".join(lines)
