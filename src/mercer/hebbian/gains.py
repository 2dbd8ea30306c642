"""Gains of the Kernel Hebbian rules: how far each direction moves at time t.

All are rate_i tau / (t + tau), with rates set once a pass from the eigenvalue estimates, or at
every step where ``estimate="running"`` asks for that.
The unit of a gain is that of 1 / k(x, x), so every untuned default is a number over the mean
variance v = tr K' / n or over the norm of K'. The numbers were chosen on sixteen kernels and
checked on nineteen others; there the untuned defaults of ``et`` and ``smd`` are within a factor
1.1 (median) of the best hand-tuned gain.

How to choose: ``auto`` unless the published rules are wanted, since it has nothing to tune and
cannot diverge; ``constant`` for data that drift; ``et`` and ``smd`` as published, in that order
of speed; ``t`` and ``constant`` on fixed data only for comparison.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from ..compute.arrays import Array
from .rule import HebbianRule, MetaDescentRule, OrthonormalRule, RunningEigenvalues


@dataclass(frozen=True)
class GainUnit:
    """What the size of a gain is measured by: n, v = tr K' / n and the Frobenius norm of K'."""

    n: int
    variance: float
    norm: float

    @property
    def floor(self) -> float:
        """Least eigenvalue to divide by: rows that found nothing yet must not get endless gains."""
        return 1e-12 * self.n * self.variance + np.finfo(np.float64).tiny


@dataclass(eq=False, repr=False)
class ConstantGain(BaseEstimator):
    """One gain for all directions and times (Kim, Franz, Schölkopf 2005).

    Parameters
    ----------
    eta0 : float, optional
        The gain; 0.04 / v by default.
    cap : float, default=1.0
        See `mercer.hebbian.rule.HebbianRule`; ``inf`` for the rule as published.
    """

    oversampling = 0
    orthonormal = False
    needs_norm = False
    estimate = "outputs"
    untuned = 0.04

    eta0: float | None = None
    cap: float = 1.0

    def size(self, unit: GainUnit) -> float:
        """eta0, or the untuned default in the unit of the kernel."""
        return self.untuned / unit.variance if self.eta0 is None else self.eta0

    def decay(self, n: int) -> float:
        """1 / tau: gains fall as 1 / (1 + decay t) over the samples t of n rows."""
        return 0.0

    def rates(self, eigenvalues: Array, unit: GainUnit) -> Array:
        """Gains (r,) of the coming pass at time zero."""
        return np.full(len(eigenvalues), self.size(unit))

    def rule(self, A: Array, S: Array, unit: GainUnit) -> HebbianRule:
        """The rule these gains drive, from coefficients A (r, n) with outputs S = A K'."""
        is_running = self.estimate == "running"
        running = RunningEigenvalues(S, self.size(unit), unit.floor) if is_running else None
        return HebbianRule(A, self.cap, running)


@dataclass(eq=False, repr=False)
class DecayingGain(ConstantGain):
    """KHA/t: eta0 tau / (t + tau); untuned eta0 = 0.4 / v.

    Parameters
    ----------
    eta0, cap
        As for `ConstantGain`.
    tau : float, optional
        Samples after which gains have halved; the number of rows by default, as in the paper.
    """

    untuned = 0.4

    tau: float | None = field(default=None, kw_only=True)

    def decay(self, n: int) -> float:
        return 1.0 / (n if self.tau is None else self.tau)


@dataclass(eq=False, repr=False)
class EigenvalueGain(DecayingGain):
    """KHA/et: eta0 (|l| / l_i) tau / (t + tau), equation 12; untuned eta0 = 15 / |K'|.

    Parameters
    ----------
    eta0 : float, optional
        15 / |K'| by default.
    cap, tau
        As for `DecayingGain`.
    estimate : "outputs", "product" or "running", default="outputs"
        Eigenvalues by the sums of squared outputs of a pass; or by equation 13: once a pass, as
        the paper's text says, for one more product with the kernel matrix; or before every step, as
        its Algorithm 1 lists it, for products of kernel rows with each other and memory for A K'.
    """

    estimate: str = field(default="outputs", kw_only=True)

    @property
    def needs_norm(self) -> bool:  # type: ignore[override]
        """Whether the norm of K' is asked for."""
        return self.eta0 is None

    def size(self, unit: GainUnit) -> float:
        return 15.0 / unit.norm if self.eta0 is None else self.eta0

    def rates(self, eigenvalues: Array, unit: GainUnit) -> Array:
        values = np.maximum(eigenvalues, unit.floor)
        return self.size(unit) * np.linalg.norm(values) / values


@dataclass(eq=False, repr=False)
class MetaDescentGain(EigenvalueGain):
    """KHA-SMD: the gains of KHA/et times exp(rho), rho adapted by stochastic meta-descent.

    Parameters
    ----------
    eta0, cap, tau, estimate
        As for `EigenvalueGain`.
    mu : float, optional
        Rate of rho; 0.5 / v by default. Above 1 / v the unclipped rule diverges.
    xi : float, default=0.99
        Memory of the differential B.
    rho0 : float, default=0.0
        Start of rho. The paper says 1, which multiplies every gain by e and diverges on
        the paper's own dot-product kernel; 1 was presumably meant for exp(rho).
    clip : float, default=0.1
        Largest change of rho in a step; inert, or nearly so, for mu up to 0.5 / v.
    bounds : pair of float, default=(-8, 2)
        Range of rho.
    """

    mu: float | None = None
    xi: float = 0.99
    rho0: float = 0.0
    clip: float = 0.1
    bounds: tuple[float, float] = (-8.0, 2.0)

    def rule(self, A: Array, S: Array, unit: GainUnit) -> HebbianRule:
        mu = 0.5 / unit.variance if self.mu is None else self.mu
        settings = tuple(map(float, (mu, self.xi, self.clip, *self.bounds)))
        running = super().rule(A, S, unit).running
        return MetaDescentRule(A, self.cap, A @ S.T, settings, self.rho0, running)


class AutoGain(BaseEstimator):
    """Orthonormalized KHA/et without a parameter: min(5 / l_i, 2 / v) 2n / (t + 2n)."""

    oversampling = 10
    orthonormal = True
    needs_norm = False
    estimate = "outputs"

    def decay(self, n: int) -> float:
        """As of the other gains, with tau = 2 n."""
        return 0.5 / n

    def rates(self, eigenvalues: Array, unit: GainUnit) -> Array:
        """Gains (r,) of the coming pass at time zero."""
        return np.minimum(5.0 / np.maximum(eigenvalues, unit.floor), 2.0 / unit.variance)

    def rule(self, A: Array, S: Array, unit: GainUnit) -> HebbianRule:
        """The rule these gains drive, from coefficients A (r, n) with outputs S = A K'."""
        return OrthonormalRule(A)


GAINS = {
    "constant": ConstantGain,
    "t": DecayingGain,
    "et": EigenvalueGain,
    "smd": MetaDescentGain,
    "auto": AutoGain,
}


def make_gain(gain: Any, **settings: Any) -> Any:
    """A gain from its name in GAINS and the settings that are not None, or a copy of a gain."""
    if not isinstance(gain, str):
        return clone(gain)
    return GAINS[gain](**{name: x for name, x in settings.items() if x is not None})
