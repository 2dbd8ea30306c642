"""What every experiment here is: a source, a reading of it, and findings beside what was published.

A finding's verdict is computed from the numbers that stand beside it, by a margin that is written
in the code before the run, and with a control: other numbers of the same kind, for which the answer
to the same question is known. Sizes come in three: "smoke" (seconds, for the test suite),
"quick" (all of them within ten minutes) and "full".
"""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

SIZES = ("smoke", "quick", "full")
HOLDS, FAILS, UNTOLD, MEASURED = "holds", "does not hold", "cannot tell", "measured"
# Of checks that test no claim of a source.
AGREES, DISAGREES = "agrees", "disagrees"
VERDICTS = (HOLDS, FAILS, UNTOLD, MEASURED, AGREES, DISAGREES)


@dataclass(frozen=True)
class Finding:
    """A claim, what the source says, what came out here, and the verdict.

    `margin` says what decides the verdict, and `control` what had to come out the other way.
    """

    claim: str
    paper: str
    ours: str
    verdict: str
    values: Any = None
    margin: str = ""
    control: str = ""


@dataclass(frozen=True)
class Experiment:
    """One table or figure of a source.

    Attributes
    ----------
    name : str
        Unique, e.g. ``"schraudolph-figure-1"``.
    source : str
        Key of `SOURCES`.
    title : str
    reading : str
        Which reading of the source is used and why, where it is ambiguous or wrong.
    run : callable
        ``run(size, out)``: findings; figures are written to the folder `out`.
    data : bool
        Whether it needs the data sets that `papers_data` looks for.
    chosen : str
        Settings that the source does not state and that were chosen to match its numbers.
    """

    name: str
    source: str
    title: str
    reading: str
    run: Callable[[str, Path], list[Finding]]
    data: bool = True
    chosen: str = ""


SOURCES = {
    "schraudolph": "Schraudolph, Günter & Vishwanathan (2007), Fast iterative kernel PCA",
    "shi": "Shi, Guo & Xue (2009), Efficient kernel PCA algorithm for large-scale data set",
    "perry": "Perry, Elhabian & Whitaker, Efficient non-linear analysis of large data sets",
    "yuille": "Yuille (2014), Kernel PCA and multidimensional scaling (lecture)",
    "mika": "Mika et al. (1999), denoising",
}


@dataclass
class Record:
    """An experiment's findings as they are written down."""

    name: str
    source: str
    title: str
    reading: str
    seconds: float
    findings: list[dict] = field(default_factory=list)
    figures: list[str] = field(default_factory=list)
    skipped: str | None = None
    chosen: str = ""


def carry_out(experiment: Experiment, size: str, out: Path) -> Record:
    """Run it; data that cannot be found leave it out, with the reason."""
    begun, before = time.perf_counter(), set(out.glob("*.png"))
    head = (experiment.name, experiment.source, experiment.title, experiment.reading)
    chosen = experiment.chosen
    try:
        findings = experiment.run(size, out)
    except FileNotFoundError as error:
        return Record(*head, 0.0, skipped=str(error).splitlines()[0], chosen=chosen)
    seconds = round(time.perf_counter() - begun, 1)
    figures = sorted(path.name for path in set(out.glob("*.png")) - before)
    return Record(*head, seconds, [asdict(finding) for finding in findings], figures, None, chosen)


def pick(size: str, smoke, quick, full):
    """One of three settings."""
    return {"smoke": smoke, "quick": quick, "full": full}[size]


def judged(meets: Callable[[Any], Any], ours: Any, control: Any, expected: bool = False) -> str:
    """The verdict of a question that was fixed before the run.

    The answer for the control is known: where it is another one than `expected`, the question
    tells nothing.
    """
    if bool(meets(control)) != expected:
        return UNTOLD
    return HOLDS if meets(ours) else FAILS


def checked(passed: Any) -> str:
    """The outcome of a check that tests no claim of a source: of mathematics, or beside them."""
    return AGREES if passed else DISAGREES


def numbers(values, form=".2e") -> str:
    """Numbers as text, in a row."""
    return ", ".join(format(float(x), form) for x in values)


def write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def plotting():
    """pyplot without a screen."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot
