"""The size of a fit, what a method would cost for it, and the plan made of both."""

import math
from dataclasses import dataclass, replace

from .._tables import html_table, text_table
from ..compute import format_bytes
from ..solvers import Dense, Solver

# Seconds from which a faster approximation is named beside an exact method, where it is so
# many times faster.
LONG, WORTH = 60.0, 5.0
# Days that are said as such, and years beyond which no number means anything.
LONGEST_DAYS, MOST_YEARS = 1000, 10_000
# Rows up to which a plan takes single precision for granted: to look costs more than it saves.
ROUNDED_ROWS = 2000


@dataclass(frozen=True)
class Speeds:
    """Seconds on one thread for one unit of work.

    Attributes
    ----------
    evaluate : float
        One kernel value in single precision.
    multiply : float
        One multiply-add of a tile with a block.
    decompose : float
        One unit of n^3 of a dense eigen-decomposition.
    read : float
        One entry of a symmetric matrix in memory, in a product with one vector.
    """

    evaluate: float
    multiply: float = 2e-11
    decompose: float = 5.5e-11
    read: float = 3.2e-10

    @classmethod
    def typical(cls, d: int) -> "Speeds":
        """What a core of a current server does for d columns."""
        return cls(evaluate=1e-9 + 2.1e-11 * d)

    @classmethod
    def of_device(cls, d: int) -> "Speeds":
        """What a current data-center GPU does for d columns with a fused tile."""
        return cls(evaluate=4e-13 + 1.1e-14 * d, multiply=1e-14, decompose=5e-12, read=1e-11)


@dataclass(frozen=True)
class Workload:
    """The size of a fit.

    Attributes
    ----------
    n, d, r : int
        Rows, columns, components.
    memory : int
        Byte budget for work arrays.
    threads : int
    tol : float
    device : str
        "cpu", or the device that computes.
    fused : bool
        Whether tiles of the kernel matrix need no memory, so that none are kept.
    single : bool
        Whether block Krylov may search in single precision.
    rank : int or None
        What the rank of the matrix is known not to exceed.
    """

    n: int
    d: int
    r: int
    memory: int
    threads: int = 1
    tol: float = 0.0
    device: str = "cpu"
    fused: bool = False
    single: bool = True
    rank: int | None = None


@dataclass(frozen=True)
class Estimate:
    """What one method would cost.

    Attributes
    ----------
    method : str
    solver : Solver or None
        The recipe, ready to use; None where another estimator does it.
    evaluations : float
        Kernel values computed in all.
    bytes : int
        Work memory.
    seconds : float
    fits : bool
        Whether the memory is within the budget.
    note : str
    vectors : int
        Of these bytes those of vectors and of a matrix that is formed, which tiles leave alone.
    approximate : bool
        Whether its certificate allows for an error beyond rounding and tolerance.
    """

    method: str
    solver: Solver | None
    evaluations: float
    bytes: int
    seconds: float
    fits: bool
    note: str = ""
    approximate: bool = False
    vectors: int = 0


@dataclass(frozen=True)
class Plan:
    """The methods that could do a fit, the one chosen, and why.

    Attributes
    ----------
    workload : Workload
    estimates : tuple of Estimate
    chosen : Estimate
    reason : str
    left_to_us : bool
        Whether nobody asked for the method that was chosen.
    """

    workload: Workload
    estimates: tuple[Estimate, ...]
    chosen: Estimate
    reason: str
    left_to_us: bool = False

    @property
    def method(self) -> str:
        """Name of the chosen method."""
        return self.chosen.method

    @property
    def solver(self) -> Solver:
        """The chosen solver; methods of other estimators are listed, never chosen."""
        assert self.chosen.solver is not None
        return self.chosen.solver

    def estimate(self, method: str) -> Estimate | None:
        """The estimate of one of the methods, where it was made."""
        return next((e for e in self.estimates if e.method == method), None)

    def capped(self, max_iter: int | None) -> "Plan":
        """The plan with at most `max_iter` passes of its solver, then no other; itself for None."""
        if max_iter is None:
            return self
        chosen = replace(self.chosen, solver=self.solver.cap(max_iter))
        return replace(self, chosen=chosen, left_to_us=False)

    def fallback(self) -> Estimate | None:
        """The dense method, where it is left to "auto" and could step in for an iterative one."""
        if not self.left_to_us:
            return None
        dense = self.estimate("dense") or replace(self.chosen, solver=Dense())
        return dense if dense.fits and dense is not self.chosen else None

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Headings and rows, the chosen method marked."""
        heads = ["", "method", "kernel evaluations", "memory", "time", "note"]
        rows = []
        for estimate in self.estimates:
            mark = "*" if estimate.method == self.chosen.method else ""
            over = estimate.bytes > self.workload.memory and not estimate.fits
            note = "over the memory budget" if over else estimate.note
            rows.append(
                [
                    mark,
                    estimate.method,
                    f"{estimate.evaluations:.2g}",
                    format_bytes(estimate.bytes),
                    format_seconds(estimate.seconds) if math.isfinite(estimate.seconds) else "",
                    note,
                ]
            )
        return heads, rows

    @property
    def advice(self) -> str:
        """The recommendation in a sentence or two."""
        lines = [f"{self.method}, about {format_seconds(self.chosen.seconds)}: {self.reason}."]
        if math.isnan(self.chosen.seconds):
            lines = [f"{self.method}: {self.reason}."]
        quick = [e for e in self.estimates if e.approximate and e.fits]
        if self.chosen.seconds > LONG and quick:
            best = min(quick, key=lambda e: e.seconds)
            if best.seconds * WORTH < self.chosen.seconds:
                lines.append(
                    f"{best.method} would take about {format_seconds(best.seconds)} and says how "
                    "far from exact it is."
                )
        return " ".join(lines)

    def __repr__(self) -> str:
        w = self.workload
        where = w.device
        if where == "cpu":
            where = f"{w.threads} thread" + ("s" if w.threads > 1 else "")
        head = (
            f"Plan for {w.n:,} rows, {w.d} columns, {w.r} components "
            f"in {format_bytes(w.memory)} on {where}"
        )
        return "\n".join([head, f"* {self.advice}", text_table(*self.table())])

    def _repr_html_(self) -> str:
        return html_table(*self.table(), caption=self.advice)


def format_seconds(seconds: float) -> str:
    """A time as people say it: ``"0.4 s"``, ``"3 min"``, ``"2.5 hours"``."""
    if math.isnan(seconds):
        return "unknown"
    if seconds < 0.0995:
        return f"{1e3 * seconds:.2g} ms"
    for unit, name, most in ((1, "s", 100), (60, "min", 90), (3600, "hours", 48)):
        if seconds < most * unit:
            return f"{seconds / unit:.2g} {name}"
    days = seconds / 86400
    if days < LONGEST_DAYS:
        return f"{days:,.0f} days"
    years = min(days / 365, MOST_YEARS)
    return f"{years:,.0f} years" if years < MOST_YEARS else f"over {MOST_YEARS:,} years"
