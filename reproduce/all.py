"""Everything the sources claim, beside what comes out here, by one command.

    python reproduce/all.py --quick            # within ten minutes on two cores
    python reproduce/all.py                    # as long as it needs
    python reproduce/all.py --quick --only shi-table-1 shi-figure-2
    python reproduce/all.py --page             # docs/reproductions.md again from the results

Prints "paper | ours | verdict" as it goes; writes results.json, figures and the page to --out.
With ``--publish`` (what ``make reproduce`` does) these become reproduce/results.json,
docs/images/reproduce-*.png and docs/reproductions.md; only a full run may. Data: see papers_data;
what cannot be found is left out and said so.
"""

import argparse
import json
import platform
import shutil
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

import mika
import perry
import schraudolph
import shi
import yuille
from _experiment import Record, carry_out, write_json
from page import PAGE, RESULTS, page

EXPERIMENTS = [
    experiment
    for source in (schraudolph, shi, perry, yuille, mika)
    for experiment in source.EXPERIMENTS
]
IMAGES = Path(__file__).parent.parent / "docs" / "images"


def machine():
    """What a reader needs to know of the machine."""
    packages = ("mercer", "numpy", "scipy", "scikit-learn")
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {package: version(package) for package in packages},
    }


def show(record: Record):
    """The table of an experiment on the terminal."""
    print(f"\n{record.title} ({record.name}, {record.seconds:.0f} s)", flush=True)
    if record.skipped:
        print(f"  left out: {record.skipped}")
    for finding in record.findings:
        print(f"  {finding['claim']}")
        print(f"    paper {finding['paper']} | ours {finding['ours']} | {finding['verdict']}")


def merged(results):
    """The results, and those of the experiments that were not asked for this time as they were."""
    if not RESULTS.exists():
        return results
    old = {one["name"]: one for one in json.loads(RESULTS.read_text("utf-8"))["experiments"]}
    new = {one["name"]: one for one in results["experiments"]}
    both = [new.get(e.name) or refreshed(e, old.get(e.name)) for e in EXPERIMENTS]
    return results | {"experiments": [one for one in both if one]}


def refreshed(experiment, record):
    """A record with the words that its experiment has today."""
    words = {name: getattr(experiment, name) for name in ("title", "reading", "chosen")}
    return record and record | words


def publish(results, out):
    """Put results, figures and page where the repository keeps them."""
    write_json(RESULTS, results)
    IMAGES.mkdir(parents=True, exist_ok=True)
    for record in results["experiments"]:
        for figure in record["figures"]:
            if (out / figure).exists():
                shutil.copy(out / figure, IMAGES / f"reproduce-{figure}")
    PAGE.write_text(page(results), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer images, seeds and passes")
    parser.add_argument("--smoke", action="store_true", help="seconds, to see that it runs")
    parser.add_argument("--only", nargs="+", choices=[e.name for e in EXPERIMENTS])
    parser.add_argument("--out", type=Path, help="default: results/reproduce-SIZE")
    parser.add_argument("--publish", action="store_true", help="into docs/ and reproduce/")
    parser.add_argument("--page", action="store_true", help="only make the page again")
    options = parser.parse_args()
    if options.page:
        PAGE.write_text(page(json.loads(RESULTS.read_text(encoding="utf-8"))), encoding="utf-8")
        return
    size = "smoke" if options.smoke else "quick" if options.quick else "full"
    if options.publish and size != "full":
        parser.error(
            f"--publish is for full runs, and this one is --{size}. Leave one of them out."
        )
    out = options.out or Path(f"results/reproduce-{size}")
    out.mkdir(parents=True, exist_ok=True)
    chosen = [e for e in EXPERIMENTS if not options.only or e.name in options.only]
    results = {"size": size, "machine": machine(), "experiments": []}
    for experiment in chosen:
        record = carry_out(experiment, size, out)
        show(record)
        results["experiments"].append(asdict(record))
        write_json(out / "results.json", results)
        (out / "reproductions.md").write_text(page(results, figures=""), encoding="utf-8")
    if options.publish:
        publish(merged(results) if options.only else results, out)


if __name__ == "__main__":
    main()
