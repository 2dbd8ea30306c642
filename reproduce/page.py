"""docs/reproductions.md, made from reproduce/results.json: no number in it is typed by hand."""

from pathlib import Path

from _experiment import AGREES, DISAGREES, SOURCES

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
PAGE = HERE.parent / "docs" / "reproductions.md"
HEAD = """<!-- made by reproduce/all.py from reproduce/results.json: do not edit -->
# Reproductions

What the papers claim, and what came out here, by one command:

```sh
export MERCER_DATA=...             # see reproduce/papers_data.py
make reproduce                     # QUICK=1: a few minutes, in results/reproduce-quick
python reproduce/all.py --quick --only shi-table-1     # one, by the name below its heading
```

{run} A verdict is computed from the numbers beside it, by the margin in brackets, fixed before the
run. `reproduce/results.json` has the control of each: other numbers whose answer is known.
*Measured*: no one number could settle the claim, or an unstated setting decides it.

{chosen}

Hebbian rules are judged by the directions that the rule itself has found (`readout="free"`): a
Rayleigh-Ritz step, which the library ends with, would hide a bad iteration. *In order*: KHA, KHA/t,
KHA/et, KHA-SMD, each with at most 0.9 of the excess error of the one before.
"""
CHOSEN = """**Settings chosen to match** where the source states none:
"""
CHECKS = """## Checks that test no claim of a source
"""
SIZES = {
    "smoke": "A run of seconds, which only shows that everything works.",
    "quick": "Shown is the quick run (`--quick`).",
    "full": "Shown is the full run.",
}


def page(results: dict, figures: str = "images/reproduce-") -> str:
    """The whole page, figures under names that begin with `figures`."""
    machine = results["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    seconds = sum(record["seconds"] for record in results["experiments"])
    where = f"on {machine['system']} with {versions}"
    run = f"{SIZES[results['size']]} It took {seconds / 60:.0f} minutes {where}."
    settings = [
        f"- {one['title']}: {one['chosen']}" for one in results["experiments"] if one["chosen"]
    ]
    parts = [HEAD.format(run=run, chosen="\n".join([CHOSEN, *settings]))]
    for source, title in SOURCES.items():
        records = [record for record in results["experiments"] if record["source"] == source]
        if records:
            parts.append(f"## {title}\n")
            parts += [section(record, figures) for record in records if has_claims(record)]
    checks = [
        said(one)
        for record in results["experiments"]
        for one in record["findings"]
        if is_check(one)
    ]
    if checks:
        parts.append("\n".join([CHECKS, *checks]))
    return "\n".join(parts).rstrip() + "\n"


def section(record: dict, figures: str) -> str:
    """An experiment: the reading, the findings, the figures."""
    lines = [f"### {record['title']}\n", f"`{record['name']}` {record['reading']}".rstrip() + "\n"]
    if record["skipped"]:
        lines.append(f"Left out: {record['skipped']}\n")
        return "\n".join(lines)
    lines += [said(finding) for finding in record["findings"] if not is_check(finding)]
    lines.append("")
    for figure in record["figures"]:
        lines.append(f"![{record['title'].partition(':')[0]}]({figures}{figure})\n")
    return "\n".join(lines)


def has_claims(record: dict) -> bool:
    """Whether an experiment was left out or has findings beside checks."""
    return bool(record["skipped"]) or not all(map(is_check, record["findings"]))


def is_check(finding: dict) -> bool:
    """Whether a finding tests no claim of a source."""
    return finding["verdict"] in (AGREES, DISAGREES)


def said(finding: dict) -> str:
    """A finding as a point of a list."""
    words = f"- **{finding['verdict']}**: {finding['claim']}."
    if finding["paper"]:
        words += f" Source: {finding['paper']}; here: {finding['ours']}."
    else:
        words += f" {finding['ours']}."
    if finding.get("margin") and finding["paper"] != "in order":
        words += f" (*{finding['margin']}*)"
    return words
