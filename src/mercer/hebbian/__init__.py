"""Hebbian kernel PCA: directions that learn from one sample at a time.

The Generalized Hebbian Algorithm moves each direction towards the sample in proportion to its
output and away from what earlier directions explain. With a kernel the directions are
W = A Phi', and only the coefficients A (r, n) move. The parts differ in one thing, the gain:

- ``constant``: Kim, Franz and Schölkopf (2005). Never comes to rest, so it can follow drift.
- ``t``: falls as n / (t + n).
- ``et``: falls likewise, and is inverse to each direction's eigenvalue.
- ``smd``: ``et`` with gains that adapt by stochastic meta-descent.
- ``auto``: ``et`` with orthonormal, oversampled directions; nothing to tune, cannot diverge.

All run in exact blocks: the Gram rows of a block come from one matrix product, the steps happen
in small matrices, and the iterates are those of the one-sample rule. With a linear kernel they
are the Generalized Hebbian Algorithm on plain data.

When not to use them: on fixed data `mercer.solvers.BlockKrylov` and `mercer.solvers.GramPower`
are more accurate for fewer passes over the kernel. Hebbian rules are for data that grow or
drift (`GrowingHebbian`), and for reproducing the papers. `Hebbian` is the solver for estimators
that take one as their ``eigen_solver``.

Streams by moments are the other way to learn from rows as they come (`stream`): a dictionary that
grows by novelty or a fixed span, the moments of the rows in it, and their eigenvectors whenever
they are wanted. No gain, no order of learning, and a certificate; the price is
m x m numbers for m points.
"""

from .gains import (
    GAINS,
    AutoGain,
    ConstantGain,
    DecayingGain,
    EigenvalueGain,
    GainUnit,
    MetaDescentGain,
    make_gain,
)
from .growing import GrowingHebbian
from .passes import READOUTS, Hebbian, History, RowwiseProblem, hebbian_eigenpairs
from .rule import HebbianRule, MetaDescentRule, OrthonormalRule, RunningEigenvalues

__all__ = [
    "GAINS",
    "READOUTS",
    "AutoGain",
    "ConstantGain",
    "DecayingGain",
    "EigenvalueGain",
    "GainUnit",
    "GrowingHebbian",
    "Hebbian",
    "HebbianRule",
    "History",
    "MetaDescentGain",
    "MetaDescentRule",
    "OrthonormalRule",
    "RowwiseProblem",
    "RunningEigenvalues",
    "hebbian_eigenpairs",
    "make_gain",
]
