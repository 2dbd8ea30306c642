"""The Hebbian rules as a solver, for estimators that take one: spectral clustering, patches."""

from dataclasses import replace
from typing import Any

import numpy as np

from ..operators import SymmetricOperator
from ..solvers.base import FULL_FLOOR, Eigenpairs, Report, Solver, silent
from .passes import hebbian_eigenpairs


class Hebbian(Solver):
    """Leading eigenpairs of a positive semidefinite operator by a Kernel Hebbian rule.

    For the experiments of the paper and for comparison: on fixed data `BlockKrylov` is more
    accurate for fewer passes. `mercer.HebbianKernelPCA` is the estimator, with a history of its
    passes; this recipe puts the same rules where an ``eigen_solver`` is asked for.

    Parameters
    ----------
    gain : "auto", "constant", "t", "et", "smd" or a gain of mercer.hebbian, default="auto"
        The rule, as in `mercer.HebbianKernelPCA`.
    n_passes : int, default=10
        Passes over the rows.
    oversampling : int or None, default=None
        Directions carried beyond those asked for; None is 10 for "auto" and 0 otherwise.
    block : int, default=128
        Rows made at once.
    readout : "ritz", "nystroem", "carried" or "free", default="ritz"
        As in `mercer.HebbianKernelPCA`.
    scale : float or None, default=None
        Scale of the random start; 1 is the published one, None makes unit vectors.

    References
    ----------
    Schraudolph, Guenter & Vishwanathan (2007), Fast iterative kernel PCA.
    """

    keeps_tiles, ends_by_passes, needs_definite = False, True, True
    _cap_name = "n_passes"

    def __init__(
        self,
        gain: Any = "auto",
        n_passes: int = 10,
        oversampling: int | None = None,
        block: int = 128,
        readout: str = "ritz",
        scale: float | None = None,
    ):
        self.gain = gain
        self.n_passes = n_passes
        self.oversampling = oversampling
        self.block = block
        self.readout = readout
        self.scale = scale

    def solve(
        self,
        operator: SymmetricOperator,
        n_components: int,
        rng: np.random.Generator,
        tol: float = 0.0,
        report: Report = silent,
    ) -> Eigenpairs:
        """Passes of the rule over the rows, then the read-out; `tol` only judges the result."""
        pairs, _ = hebbian_eigenpairs(
            operator,
            n_components,
            self.gain,
            n_passes=self.n_passes,
            oversampling=self.oversampling,
            block=self.block,
            scale=self.scale,
            readout=self.readout,
            rng=rng,
            report=report,
        )
        share = float(np.max(pairs.residuals)) / max(float(pairs.values[0]), np.finfo(float).tiny)
        return replace(pairs, converged=share <= max(tol, FULL_FLOOR))
