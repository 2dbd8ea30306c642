"""The size of a fit, what a method would cost for it, and the plan made of both."""

from dataclasses import dataclass
from math import isfinite

from .._tables import html_table, text_table
from ..compute import format_bytes
from ..solvers import Solver


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
    """

    evaluate: float
    multiply: float = 1.4e-11
    decompose: float = 7e-11

    @classmethod
    def typical(cls, d: int) -> "Speeds":
        """What a core of a current server does for d columns."""
        return cls(evaluate=6e-10 + 2.6e-11 * d)

    @classmethod
    def of_device(cls, d: int) -> "Speeds":
        """What a current data-center GPU does for d columns with a fused tile."""
        return cls(evaluate=4e-13 + 1.1e-14 * d, multiply=1e-14, decompose=5e-12)


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
    """

    n: int
    d: int
    r: int
    memory: int
    threads: int = 1
    tol: float = 0.0
    device: str = "cpu"
    fused: bool = False


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
    """

    method: str
    solver: Solver | None
    evaluations: float
    bytes: int
    seconds: float
    fits: bool
    note: str = ""


@dataclass(frozen=True)
class Plan:
    """The methods that could do a fit, the one chosen, and why.

    Attributes
    ----------
    workload : Workload
    estimates : tuple of Estimate
    chosen : Estimate
    reason : str
    """

    workload: Workload
    estimates: tuple[Estimate, ...]
    chosen: Estimate
    reason: str

    @property
    def method(self) -> str:
        """Name of the chosen method."""
        return self.chosen.method

    @property
    def solver(self) -> Solver:
        """The chosen solver; methods of other estimators are listed, never chosen."""
        assert self.chosen.solver is not None
        return self.chosen.solver

    def fallback(self) -> Estimate | None:
        """The dense method, where it is left to "auto" and could step in for an iterative one."""
        dense = self.estimates[0]
        left_to_us = self.chosen in self.estimates and self.reason.startswith(self.method)
        return dense if left_to_us and dense.fits and dense is not self.chosen else None

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Headings and rows, the chosen method marked."""
        heads = ["", "method", "kernel evaluations", "memory", "time", "note"]
        rows = []
        for estimate in self.estimates:
            mark = "*" if estimate.method == self.chosen.method else ""
            over = estimate.bytes > self.workload.memory
            note = "over the memory budget" if over else estimate.note
            rows.append(
                [
                    mark,
                    estimate.method,
                    f"{estimate.evaluations:.2g}",
                    format_bytes(estimate.bytes),
                    f"{estimate.seconds:.2g} s" if isfinite(estimate.seconds) else "",
                    note,
                ]
            )
        return heads, rows

    def __repr__(self) -> str:
        w = self.workload
        where = f"{w.threads} threads" if w.device == "cpu" else w.device
        head = (
            f"Plan for {w.n:,} rows, {w.d} columns, {w.r} components "
            f"in {format_bytes(w.memory)} on {where}"
        )
        return "\n".join([head, text_table(*self.table()), f"* {self.reason}"])

    def _repr_html_(self) -> str:
        return html_table(*self.table(), caption=self.reason)
