"""Passes of a Hebbian rule over the data: start, loop, stopping, history, result.

    start -> A, V, Z = K' V          one product
    pass: for each block of a random permutation
        rule.step(rows); rows @ V    one product each
    read-out -> eigenpairs           at most one more

Eigenvalues are estimated by the sum of y_i^2 over a pass, which is equation 13 to a few
percent and costs nothing; equation 13 itself, at every step, is a choice of the gain.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from ..compute import array_namespace, on_device_of, to_numpy
from ..compute.arrays import Array, dtype_name
from ..fitting.checkpoint import Progress, Stage
from ..fitting.functions import pack, unpack
from ..operators import SymmetricOperator
from ..solvers.base import (
    FULL_FLOOR,
    Eigenpairs,
    PassState,
    Report,
    Solver,
    column_norms,
    inner,
    qr,
    silent,
)
from .gains import GainUnit, make_gain
from .readout import READOUTS, nystroem_values, orthonormal, rotate
from .rule import lengths_of

SAMPLE = 512  # rows for the norm of K': a few percent of it on every kernel tried
# Vectors of length n that a run holds at its peak for every direction it carries, the result
# and the products with the kernel matrix among them.
VECTORS = 12


@dataclass(frozen=True)
class History:
    """What was seen pass by pass; arrays have one row a pass.

    Attributes
    ----------
    gains : array (p, q)
        Effective gains at the end of the pass, adaptation included.
    eigenvalues : array (p, q)
        Sum of squared outputs, or equation 13 where the gain asks for it.
    residuals : array (p, r)
        |K'u - l u| of the Ritz pairs in the span of the outputs with which the pass began.
    changes : array (p,)
        Sine of the largest angle between the spans of the r leading outputs before and after.
    excess : array (p,) or None
        What `measure` returned.
    recoveries : int
        Blocks taken back because a value overflowed; 0 in normal runs.
    interrupted : bool
    """

    gains: Annotated[np.ndarray, "p q wide"]
    eigenvalues: Annotated[np.ndarray, "p q wide"]
    residuals: Annotated[np.ndarray, "p r wide"]
    changes: Annotated[np.ndarray, "p wide"]
    excess: Annotated[np.ndarray | None, "p wide or None"] = None
    recoveries: Annotated[int, "[0, inf)"] = 0
    interrupted: bool = False

    @classmethod
    def of(
        cls, records: list, q: int, r: int, recoveries: int = 0, interrupted: bool = False
    ) -> "History":
        """From gains, eigenvalues, residuals, change and excess of each pass."""
        columns: Any = zip(*records, strict=True) if records else 5 * [()]
        gains, values, residuals, changes, excess = columns
        p = len(records)
        return cls(
            np.reshape(gains, (p, q)),
            np.reshape(values, (p, q)),
            np.reshape(residuals, (p, r)),
            np.array(changes, dtype=float),
            None if None in excess or not p else np.array(excess),
            recoveries,
            interrupted,
        )


def hebbian_eigenpairs(
    gram: Any,
    n_components: int,
    gain: Any = "auto",
    *,
    start: Array = None,
    rng: np.random.Generator | None = None,
    report: Report = silent,
    measure: Callable[..., Any] | None = None,
    **settings: Any,
) -> Any:
    """Leading eigenpairs of a centered Gram operator by a Kernel Hebbian rule.

    Parameters
    ----------
    gram : operator (n, n)
        With ``rows``, ``@``, ``diagonal`` and, for gain "auto", ``start``.
    n_components : int
        r.
    gain : str or gain, default="auto"
        One of `GAINS` or an instance, see `mercer.hebbian.gains`.
    start : array (n, q), optional
        Start from these coefficients as they are, for "auto" from their span.
    rng : numpy.random.Generator, optional
    report : callable
        Called with a `PassState` after each pass; True stops.
    measure : callable, optional
        Called with the r leading rows of A after each pass, e.g. the excess error.
    **settings
        Passes, oversampling, block, read-out, scale and tolerance, as of `Hebbian`.

    Returns
    -------
    pairs : Eigenpairs
        `n_passes` counts all products with the operator; `converged` says that `tol` was met
        or that the residuals are as small as those of an exact method.
    history : History

    Notes
    -----
    A pass costs n^2 kernel evaluations. Memory 6 q n (7 q n for "smd") + block n, with
    q = r + oversampling. An interrupt (Ctrl-C) ends the passes, not the call.
    """
    rng, recipe = np.random.default_rng() if rng is None else rng, Hebbian(gain, **settings)
    pairs = recipe.solve(gram, n_components, rng, report=report, start=start, measure=measure)
    return pairs, pairs.history


class _Run:
    """The state of a run: always a valid model, whatever stopped it.

    It begins with coefficients A (q, n), their outputs S = A K' and a product Z = K' V to carry.
    """

    def __init__(self, gram, gain, unit, r, block, A, S, V, Z):
        self.gram, self.gain, self.unit, self.r, self.block = gram, gain, unit, r, block
        self.rule = gain.rule(A, S, unit)
        self.eigenvalues = column_norms(S.T) / lengths_of(A)
        self.V, self.Z, self.outputs = V, Z, orthonormal(S.T)
        # Of each pass: gains, eigenvalues, residuals, change and excess, as in `History`.
        self.records: list[tuple] = []

    def resume(self, progress: Progress, rng) -> tuple[bool, tuple | None]:
        """Go on from a checkpoint; whether the passes are over, and the pass that was begun."""
        if not progress.header:
            return False, None
        carried, rule, records, begun = unpack(progress.header["state"], progress.arrays)
        self.eigenvalues, *products = carried
        self.V, self.Z, self.outputs = (on_device_of(A, self.V) for A in products)
        self.rule.go_on(rule)
        self.records, rng.bit_generator.state = list(records), progress.header["rng"]
        return progress.header["over"], begun

    def visit(self, rng, measure, progress, begun):
        """Visit all points once in random order, or those left of a pass that was begun."""
        n, V, rule = self.unit.n, self.outputs, self.rule
        t = 1 + n * len(self.records)
        rates, decay = self.gain.rates(self.eigenvalues, self.unit), self.gain.decay / n
        # Outputs are small block by block and come from the host; the rows' products do not.
        Y = np.empty(rule.A.shape, dtype_name(rule.A.dtype))
        Z = array_namespace(V).empty_like(V)
        if begun is None:
            start, order = 0, rng.permutation(n)
        else:
            start, order, Y[...], before = begun
            Z[...] = on_device_of(before, Z)
        for first in range(start, n, self.block):
            stop = min(n, first + self.block)
            index = order[first:stop]
            rows = self.gram.rows(index)
            if not isinstance(rows, np.ndarray):  # only NumPy multiplies arrays of two types
                rows = array_namespace(V).astype(rows, V.dtype)
            Z[index], Y[:, index] = rows @ V, rule.step(index, rows, rates, decay, t + first)
            if progress.tick is not None:  # the product of the start is shown as a pass
                progress.tick(stop if self.records else n + stop, n)
            if progress.due:
                self.note(progress, rng, False, (stop, order, Y, to_numpy(Z)))
        values: Any = np.sum(Y**2, axis=1, dtype=np.float64)
        outputs = orthonormal(on_device_of(Y, V).T)
        if rule.running is not None:
            values = rule.running.values(rule.A)
        self.eigenvalues, self.outputs, self.V, self.Z = values, outputs, V, Z
        ritz, U, KU = rotate(V, Z)
        residuals = column_norms(KU - U * on_device_of(ritz, U))[: self.r]
        alive = on_device_of(np.flatnonzero(values[: self.r] > 1e-12 * values.max()), V)
        old, new = V[:, : self.r][:, alive], outputs[:, : self.r][:, alive]
        _, turned = qr(new - old @ (old.T @ new))
        gains = rates / (1 + decay * (t + n)) * np.exp(rule.rho) * rule.brake
        excess = None if measure is None else measure(rule.A[: self.r])
        return gains, values, residuals, float(np.linalg.norm(turned, 2)), excess

    def note(self, progress: Progress, rng, over: bool, begun: tuple | None = None) -> None:
        """Write the state after a pass, or that of the pass that is `begun`, to the checkpoint."""
        if isinstance(progress, Stage):
            arrays: list = []
            carried = [to_numpy(A) for A in (self.eigenvalues, self.V, self.Z, self.outputs)]
            state = pack((carried, self.rule.state(), self.records, begun), arrays)
            draws = rng.bit_generator.state
            progress.write({"state": state, "over": over, "rng": draws}, arrays)


def sampled_norm(gram, rng, block=128, size=SAMPLE):
    """Frobenius norm of K' from a sample of its rows; exact for n <= size."""
    n = gram.shape[0]
    total = 0.0
    index = rng.permutation(n)[:size]
    for first in range(0, len(index), block):
        K = to_numpy(gram.rows(index[first : first + block]))
        total += float(np.vdot(K, K))
    return np.sqrt(total * n / len(index))


def _start(gram, gain, q, scale, start, rng):
    """Coefficients A (q, n), outputs S = A K', and the product Z = K' V (n, q) they came from."""
    if start is not None:
        B = start[:, :q]
    elif gain.orthonormal:
        B = gram.start(q, rng)
    else:  # as published
        B = gram.vectors(rng.standard_normal((gram.shape[0], q)) / np.sqrt(q * gram.shape[0]))
    V = orthonormal(B)
    Z = gram @ V
    if gain.orthonormal:
        _, M = nystroem_values(V, Z)
    else:
        M = inner(V, B)
        if scale is not None:
            M = M * scale
        elif start is None:  # unit vectors of the feature space
            norms = np.einsum("ij,ij->j", M, inner(V, Z) @ M)
            M = M / np.sqrt(np.where(norms > 0, norms, np.inf))
    M = on_device_of(M.T, V)
    return M @ V.T, M @ Z.T, V, Z


@dataclass(eq=False, repr=False)
class Hebbian(Solver):
    """Leading eigenpairs of a positive semidefinite operator by a Kernel Hebbian rule.

    For the experiments of the paper and for comparison: on fixed data `BlockKrylov` is more
    accurate for fewer passes. `mercer.HebbianKernelPCA` fits by it; this recipe puts the same rules
    where an ``eigen_solver`` is asked for.

    Parameters
    ----------
    gain : "auto", "constant", "t", "et", "smd" or a gain of mercer.hebbian, default="auto"
        The rule, as in `mercer.HebbianKernelPCA`.
    n_passes : int, default=10
        Passes over the rows.
    oversampling : int or None, default=None
        Directions carried beyond those asked for; None is 10 for "auto" and 0 otherwise.
    block : int, default=128
        Rows made at once. Changes the rounding of the result, and for "auto" how often the
        directions are made orthonormal.
    readout : "ritz", "nystroem", "carried" or "free", default="ritz"
        As in `mercer.HebbianKernelPCA`; see `mercer.hebbian.readout`.
    scale : float or None, default=None
        Start from A ~ scale N(0, 1 / (r n)), as published for scale 1. None scales the rows of A to
        unit norm in the feature space, without which polynomial kernels diverge.
    tol : float, default=0.0
        Stop when the subspace turns by less than this (sine of the angle) in a pass.
    track_excess : bool, default=False
        Record the excess reconstruction error of each pass, for which the whole matrix is formed.

    References
    ----------
    Schraudolph, Guenter & Vishwanathan (2007), Fast iterative kernel PCA.
    """

    ends_by_passes = needs_definite = reads_rows = True
    _cap_name = "n_passes"

    gain: Any = "auto"
    n_passes: int = 10
    oversampling: int | None = None
    block: int = 128
    readout: str = "ritz"
    scale: float | None = None
    tol: float = 0.0
    track_excess: bool = False

    def vectors_held(self, n_components: int) -> int:
        gain, spare = make_gain(self.gain), self.oversampling
        spare = gain.oversampling if spare is None else spare
        return VECTORS * (n_components + spare)

    def solve(
        self,
        operator: SymmetricOperator,
        n_components: int,
        rng: np.random.Generator,
        tol: float = 0.0,
        report: Report = silent,
        start: Array = None,
        measure: Callable[..., Any] | None = None,
    ) -> Eigenpairs:
        """Passes of the rule over the rows, then the read-out, with its history.

        The residual `tol` only judges the result; that of the recipe ends the passes. `start` and
        `measure` are as of `hebbian_eigenpairs`.
        """
        gain, r, n = make_gain(self.gain), n_components, operator.shape[0]
        if self.track_excess:
            from ..metrics import excess_reconstruction_error, minimal_reconstruction_error

            K = to_numpy(operator.to_dense())
            least = minimal_reconstruction_error(np.linalg.eigvalsh(K), r)
            measure = lambda A: excess_reconstruction_error(K, to_numpy(A), least)  # noqa: E731
        q = min(n, self.vectors_held(r) // VECTORS)  # directions that are carried
        # The start comes before anything else is asked of the operator, which learns its row
        # means from the first product.
        begin = _start(operator, gain, q, self.scale, start, rng)
        variance = float(operator.diagonal().sum()) / n
        if not variance > 0:  # the residuals say whether the matrix is zero
            U, history = operator.vectors(np.eye(n, r)), History.of([], q, r)
            return Eigenpairs(np.zeros(r), U, column_norms(operator @ U), history=history)
        norm = sampled_norm(operator, rng, self.block) if gain.needs_norm else np.nan
        run = _Run(operator, gain, GainUnit(n, variance, norm), r, self.block, *begin)
        progress, converged, interrupted = operator.progress(), False, False
        over, begun = run.resume(progress, rng)
        try:
            while not over and len(run.records) < self.n_passes:
                record = run.visit(rng, measure, progress, begun)
                begun = None
                run.records.append(record)
                residual = float(record[2].max() / max(run.eigenvalues.max(), 1e-300))
                values = run.eigenvalues[:r].copy()
                stop = report(PassState(1 + len(run.records), values, residual, self.tol))
                over = bool(record[3] <= self.tol or stop)
                run.note(progress, rng, over)
            converged = bool(run.records and run.records[-1][3] <= self.tol)
        except KeyboardInterrupt:
            interrupted = True
            progress.keep()
        pairs = READOUTS[self.readout](operator, run, r)
        if pairs.bounded and not converged:
            # Also if the residuals are known, and as small as those of an exact method.
            largest = max(float(pairs.values[0]), np.finfo(float).tiny)
            converged = float(np.max(pairs.residuals)) / largest <= max(tol, FULL_FLOOR)
        recoveries = round(-np.log2(run.rule.brake))
        return replace(
            pairs,
            converged=converged,
            n_passes=1 + len(run.records) + pairs.n_passes,
            history=History.of(run.records, len(run.rule.A), r, recoveries, interrupted),
        )
