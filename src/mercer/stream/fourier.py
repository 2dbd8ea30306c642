"""Kernel PCA of a stream on a Fourier grid: trigonometric moments over time.

The grid is fixed, and nothing of a row within its box is lost: the certificate of a stream is that
of a fit. What is kept does not grow with the rows, and takes M numbers and not M^2.
"""

from dataclasses import dataclass, replace

import numpy as np

from ..bases import TrigonometricMoments
from ..fitting.problems import FourierProblem
from .moments import FixedSpan


@dataclass(frozen=True)
class FourierSums(TrigonometricMoments):
    """Trigonometric moments that say what other moments say of their energy.

    Attributes
    ----------
    energy : float
        Sum of k(x, x) over the rows: all of it is in the span, up to the tolerance of the grid.
    """

    energy: float = 0.0

    @property
    def lost_energy(self) -> float:
        """Nothing is outside of the span."""
        return 0.0

    @property
    def projected_energy(self) -> float:
        """All of it."""
        return self.energy

    def overshoots(self, share: float) -> bool:
        """Never: the features are orthonormal."""
        return False


@dataclass(frozen=True)
class FourierStream:
    """What is known of the rows so far.

    Attributes
    ----------
    span : FixedSpan
        Of a Fourier basis.
    sums : TrigonometricMoments
    forgetting : float
        Weight of a row relative to the one after it.
    count : int
        Rows seen.
    """

    span: FixedSpan
    sums: TrigonometricMoments
    forgetting: float = 1.0
    count: int = 0

    #: Nothing joins a grid.
    joined = 0

    @classmethod
    def start(cls, span: FixedSpan, forgetting: float = 1.0) -> "FourierStream":
        """A stream of no rows yet."""
        none = np.zeros(span.vectors.moment_modes, complex)
        return cls(span, TrigonometricMoments(0.0, none, 0.0), forgetting)

    @property
    def missed(self) -> np.ndarray:
        """Nothing: all directions were there from the start."""
        return np.zeros(0)

    @property
    def moments(self) -> FourierSums:
        """Of all rows."""
        sums = self.sums
        return FourierSums(sums.count, sums.sums, sums.error, sums.count * self.span.vectors.top)

    def learn(self, X, engine, counts=None) -> "FourierStream":
        """The stream with the rows of X, in their order, each as often as `counts` says."""
        n, basis = X.shape[0], self.span.vectors.moved(engine)
        weights = counts
        if self.forgetting != 1.0:
            fading = self.forgetting ** np.arange(n - 1, -1, -1, dtype=float)
            weights = fading if counts is None else counts * fading
        sums = self.sums.scaled(self.forgetting**n) + basis.moments(X, weights)
        return replace(self, sums=sums, count=self.count + n)

    def __add__(self, other: "FourierStream") -> "FourierStream":
        """The stream of the rows of both."""
        return replace(self, sums=self.sums + other.sums, count=self.count + other.count)

    def problem(self, center: bool, engine) -> FourierProblem:
        """The eigenproblem of the rows so far."""
        return FourierProblem(self.span.vectors.moved(engine), self.sums, center)
