"""Passes of a Hebbian rule over the data: start, loop, stopping, history, result.

    start -> A, V, Z = K' V          one product
    pass: for each block of a random permutation
        rule.step(rows); rows @ V    one product each
    read-out -> eigenpairs           at most one more

Eigenvalues are estimated by the sum of y_i^2 over a pass, which is equation 13 to a few
percent and costs nothing; equation 13 itself, once a pass or at every step, is a choice of the
gain.

The read-out gives the coefficients A as they are, or eigenpairs by Nystroem or by Rayleigh and
Ritz: A is the noisiest thing a run has. Its outputs over a pass are A K', one power
step further, and every pass multiplies the outputs of the pass before by the rows it reads
anyway: V orthonormal (n, q) and Z = K' V, without a kernel evaluation. From these Nystroem gives
the eigenpairs of Z (V'Z)^+ Z', a second power step. K' minus that matrix is positive
semidefinite and vanishes on V, so its norm is at most its trace and

    |K'u - l u| <= (tr K' - sum of all q Nystroem values) |u - P_V u|,

a bound on the residuals that needs no further product. On USPS digits after ten passes of
"auto" (r = 16) the excess error is 2e-4 from A and 3e-6 from Nystroem.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from ..compute import (
    Array,
    array_namespace,
    dtype_name,
    match_sparsity,
    on_device_of,
    row_blocks,
    to_numpy,
)
from ..compute.linalg import self_product
from ..fitting.checkpoint import Progress
from ..fitting.functions import pack, unpack
from ..fitting.problems import ReducedProblem
from ..operators import DenseOperator, SymmetricOperator
from ..solvers import base
from ..solvers.base import Eigenpairs, column_norms, inner, qr, small_eigh, times
from .gains import GainUnit, make_gain
from .rule import lengths_of

SAMPLE = 512  # rows for the norm of K': a few percent of it on every kernel tried
# Vectors of length n that a run holds at its peak for every direction it carries, the result
# and the products with the kernel matrix among them.
VECTORS = 12
SAMPLES_SHARE = 16  # of the budget, for coordinates of rows at a time
RANK = {"f": 1e-5, "d": 1e-13}  # eigenvalues of V'Z below this share of the largest are rounding


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
        gains, values = np.reshape(gains, (p, q)), np.reshape(values, (p, q))
        residuals, changes = np.reshape(residuals, (p, r)), np.array(changes, dtype=float)
        excess = None if None in excess or not p else np.array(excess)
        return cls(gains, values, residuals, changes, excess, recoveries, interrupted)


def hebbian_eigenpairs(
    gram: Any,
    n_components: int,
    gain: Any = "auto",
    *,
    start: Array = None,
    rng: np.random.Generator | None = None,
    report: base.Report = base.silent,
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
        self.eigenvalues = column_norms(S.T if gram.samples is None else gram @ S.T) / lengths_of(A)
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

    def visit(self, rng, measure, progress, begun) -> tuple:
        """Visit all points once; the record of the pass, as in `History`."""
        n, V, rule = self.unit.n, self.outputs, self.rule
        t = 1 + n * len(self.records)
        rates, decay = self.gain.rates(self.eigenvalues, self.unit), self.gain.decay(n)
        values, outputs, Z = self.steps(rates, decay, t, rng, progress, begun)
        if self.gain.estimate == "product":
            values = column_norms(self.gram @ rule.A.T) / lengths_of(rule.A)
        self.eigenvalues, self.outputs, self.V, self.Z = values, outputs, V, Z
        ritz, U, KU = rotate(V, Z)
        residuals = column_norms(KU - U * on_device_of(ritz, U))[: self.r]
        alive = on_device_of(np.flatnonzero(values[: self.r] > 1e-12 * values.max()), V)
        old, new = V[:, : self.r][:, alive], outputs[:, : self.r][:, alive]
        _, turned = qr(new - old @ (old.T @ new))
        gains = rates / (1 + decay * (t + n)) * np.exp(rule.rho) * rule.brake
        excess = None if measure is None else measure(rule.A[: self.r])
        return gains, values, residuals, float(np.linalg.norm(turned, 2)), excess

    def steps(self, rates, decay, t, rng, progress, begun) -> tuple:
        """Eigenvalues by a pass in random order, or by what is left of one; outputs, Z = K'V."""
        n, V, rule = self.unit.n, self.outputs, self.rule
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
        if rule.running is not None:
            values = rule.running.values(rule.A)
        return values, orthonormal(on_device_of(Y, V).T), Z

    def units(self, values) -> Any:
        """The leading directions as vectors that the operator multiplies, of unit length."""
        A = self.rule.A[: self.r].T
        return A * on_device_of(np.sqrt(values), A)

    def note(self, progress: Progress, rng, over: bool, begun: tuple | None = None) -> None:
        """Write the state after a pass, or that of the pass that is `begun`, to the checkpoint."""
        if progress.checkpoint is not None:
            arrays: list = []
            carried = [to_numpy(A) for A in (self.eigenvalues, self.V, self.Z, self.outputs)]
            state = pack((carried, self.rule.state(), self.records, begun), arrays)
            draws = rng.bit_generator.state
            progress.write({"state": state, "over": over, "rng": draws}, arrays)


class _RowRun(_Run):
    """A run of the linear rule, block by block over rows of coordinates in their order.

    The directions A (q, m) are those that coefficients of all rows would give: the iterates are the
    same. The m x m moments of the rows make the products that the n x n matrix makes elsewhere.
    """

    def steps(self, rates, decay, t, rng, progress, begun) -> tuple:
        n, seen, values = self.unit.n, 0, np.zeros(len(rates))
        for rows in self.gram.samples(self.block):
            Y = self.rule.step(None, rows, rates, decay, t + seen)
            values += np.sum(Y**2, axis=1, dtype=np.float64)
            seen += rows.shape[0]
            if progress.tick is not None:
                progress.tick(seen, n)
        return values, orthonormal(self.rule.A.T), self.gram @ self.outputs

    def units(self, values) -> Any:
        return self.rule.A[: self.r].T


@dataclass(frozen=True)
class RowSamples:
    """Coordinates of rows about their mean, in blocks that do not depend on where the rows are.

    Attributes
    ----------
    rows : Rows
    expansion : KernelExpansion
        Whose scores the coordinates are.
    count : int
        Number of rows.
    factor : float
    """

    rows: Any
    expansion: Any
    count: int
    factor: float = 1.0

    def times(self, factor: float) -> "RowSamples":
        """Rows of moments that are so many times as large."""
        return replace(self, factor=self.factor * factor)

    def start(self, q: int, rng: np.random.Generator) -> np.ndarray:
        """Random vectors (k, q): the same ones however coordinates are turned."""
        points, k = self.expansion.basis.points, self.expansion.n_components
        S = np.eye(k) if points is None else to_numpy(self.expansion.scores(points)).astype(float)
        return S.T @ rng.standard_normal((len(S), q))

    def __call__(self, size: int) -> Iterator:
        basis, left = self.expansion.basis, None
        width = 8 * (basis.size + self.rows.shape[1])
        step = max(size, basis.engine.memory // (SAMPLES_SHARE * width))
        for block in self.rows.blocks():
            for part in row_blocks(block.shape[0], step):
                Y = self.expansion.scores(match_sparsity(block[part], basis.points))
                Y = to_numpy(Y).astype(float) * self.factor**0.5
                Y = Y if left is None else np.concatenate([left, Y])
                whole = len(Y) - len(Y) % size
                yield from (Y[i : i + size] for i in range(0, whole, size))
                left = Y[whole:]
        if left is not None and len(left):
            yield left


@dataclass(frozen=True, eq=False)
class RowwiseProblem(ReducedProblem):
    """Kernel PCA in the span of a small basis, learned from one row after the other."""

    rows: Any = None

    @classmethod
    def of(cls, problem: ReducedProblem, rows: Any) -> "RowwiseProblem":
        """The problem with the rows that it was summed from."""
        return cls(**{f.name: getattr(problem, f.name) for f in fields(problem)}, rows=rows)

    @cached_property
    def operator(self) -> DenseOperator:
        operator = DenseOperator(to_numpy(super().operator.A))
        k = operator.shape[0]
        every = self.expand(Eigenpairs(np.ones(k), np.eye(k), np.zeros(k)))
        operator.samples = RowSamples(self.rows, every, self.count)
        return operator


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
    """Coefficients A (q, n), outputs S = A K', and the product Z = K' V (n, q) they came from.

    Of rows of coordinates the directions themselves, for both: one step from chance, as there.
    """
    if gram.samples is not None:
        V = orthonormal(gram.samples.start(q, rng))
        Z = gram @ V
        A = orthonormal(Z).T if gain.orthonormal else V.T
        return A, A, V, Z
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
class Hebbian(base.Solver):
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
        As in `mercer.HebbianKernelPCA`; the module says what each is.
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
        report: base.Report = base.silent,
        start: Array = None,
        measure: Callable[..., Any] | None = None,
    ) -> Eigenpairs:
        """Passes of the rule over the rows, then the read-out, with its history.

        The residual `tol` only judges the result; that of the recipe ends the passes. `start` and
        `measure` are as of `hebbian_eigenpairs`.
        """
        gain, r, size = make_gain(self.gain), n_components, operator.shape[0]
        samples = operator.samples
        n = size if samples is None else samples.count
        if self.track_excess:
            from ..metrics import excess_reconstruction_error, minimal_reconstruction_error

            K = to_numpy(operator.to_dense())
            least = minimal_reconstruction_error(np.linalg.eigvalsh(K), r)
            measure = lambda A: excess_reconstruction_error(K, to_numpy(A), least)  # noqa: E731
        q = min(size, self.vectors_held(r) // VECTORS)  # directions that are carried
        # The start comes before anything else is asked of the operator, which learns its row
        # means from the first product.
        begin = _start(operator, gain, q, self.scale, start, rng)
        variance = float(operator.diagonal().sum()) / n
        if not variance > 0:  # the residuals say whether the matrix is zero
            U, history = operator.vectors(np.eye(size, r)), History.of([], q, r)
            return Eigenpairs(np.zeros(r), U, column_norms(operator @ U), history=history)
        kind, norm = _Run if samples is None else _RowRun, np.nan
        if gain.needs_norm:
            norm = sampled_norm(operator, rng, self.block, SAMPLE if samples is None else size)
        run = kind(operator, gain, GainUnit(n, variance, norm), r, self.block, *begin)
        progress, converged, interrupted = operator.progress(), False, False
        over, begun = run.resume(progress, rng)
        try:
            while not over and len(run.records) < self.n_passes:
                record = run.visit(rng, measure, progress, begun)
                begun = None
                run.records.append(record)
                residual = float(record[2].max() / max(run.eigenvalues.max(), 1e-300))
                values = run.eigenvalues[:r].copy()
                stop = report(base.PassState(1 + len(run.records), values, residual, self.tol))
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
            converged = float(np.max(pairs.residuals)) / largest <= max(tol, base.FULL_FLOOR)
        products = 2 if gain.estimate == "product" else 1
        recoveries = round(-np.log2(run.rule.brake))
        n_passes = 1 + len(run.records) * products + pairs.n_passes
        history = History.of(run.records, len(run.rule.A), r, recoveries, interrupted)
        return replace(pairs, converged=converged, n_passes=n_passes, history=history)


def free(gram, run, r):
    """The first r rows of A, as published (no product); residuals are unknown."""
    values = run.eigenvalues[:r]
    order = np.argsort(-values, kind="stable")
    U = run.units(values)
    U = U[:, on_device_of(order, U)]
    around, least = distances(run.V, run.Z, values[order])
    ritz = run.gain.orthonormal
    return Eigenpairs(values[order], U, around, n_passes=0, least=least, bounded=False, ritz=ritz)


def carried(gram, run, r):
    """Nystroem from the product carried through the last pass (no product), with bounds."""
    return nystroem_pairs(gram, run.V, run.Z, r)


def nystroem(gram, run, r):
    """Nystroem from a product with the outputs of the last pass (1 product), with bounds."""
    return nystroem_pairs(gram, run.outputs, gram @ run.outputs, r, n_passes=1)


def ritz(gram, run, r):
    """Rayleigh-Ritz in the span of the carried Nystroem vectors (1 product), exact residuals."""
    V = orthonormal(scores(run.Z, *nystroem_values(run.V, run.Z)))
    run.V = run.Z = run.outputs = None  # room for the product
    values, U, Z = rotate(V, gram @ V)
    del V
    seen = base.ritz_evidence(values, U, Z, gram.square())
    residuals, least = np.sqrt(np.diag(seen.RR))[:r], float(values[-1])
    return Eigenpairs(values[:r], U[:, :r], residuals, n_passes=1, least=least, evidence=(seen,))


READOUTS = {"free": free, "carried": carried, "nystroem": nystroem, "ritz": ritz}


def nystroem_pairs(gram, V, Z, r, n_passes=0):
    """Eigenpairs of Z (V'Z)^+ Z' for orthonormal V, with bounds on the residuals."""
    values, M = nystroem_values(V, Z)
    U = orthonormal(scores(Z, values, M))[:, :r]
    outside = column_norms(U - V @ (V.T @ U))
    # Both factors are differences: rounding must not make a bound of zero.
    rounding = 10 * np.finfo(dtype_name(Z.dtype)).eps
    rest = float(gram.diagonal().sum()) - float(values.sum())
    # Nor has what Nystroem finds a larger trace than the matrix, but for rounding.
    bounds = max(rest, 0.0) * outside + max(rounding * float(values[0]), -2 * rest, 0.0)
    least = None
    if not gram.definite:  # what Nystroem leaves out of an indefinite matrix bounds nothing
        bounds, least = distances(V, Z, values[:r])
    seen = base.ritz_evidence(*rotate(V, Z), gram.square())
    doubt = float(rounding * np.abs(seen.values).max())
    RR = seen.RR + np.eye(len(seen.values)) * doubt**2
    pairs = Eigenpairs(values[:r], U, bounds, True, n_passes, least, gram.definite, ritz=False)
    return replace(pairs, evidence=(replace(seen, RR=RR, doubt=doubt),))


def distances(V, Z, values):
    """How far the next eigenvalue is at most from each value, and the least quotient in the span.

    V is orthonormal and Z = K'V for any symmetric K', so that its Ritz values have residuals; some
    eigenvalue of K' is no larger than the least of them.
    """
    ritz, U, KU = rotate(V, Z)
    residuals = column_norms(KU - U * on_device_of(ritz, U))
    rounding = 10 * np.finfo(dtype_name(Z.dtype)).eps * float(np.abs(ritz).max())
    r = len(values)
    return np.abs(values - ritz[:r]) + residuals[:r] + rounding, float(ritz[-1])


def nystroem_values(V, Z):
    """Eigenvalues (q,) of Z (V'Z)^+ Z', largest first, and the M (q, q) with M'V'ZM = I.

    The rows of M'V' are the best directions of the feature space within the span of V; their
    outputs are M'Z'. Columns of M beyond the rank are zero.
    """
    w, Q = small_eigh(np.asarray(inner(V, Z), dtype=np.float64))
    above = w > RANK[np.dtype(dtype_name(Z.dtype)).char] * max(w[0], 0)
    B = Q[:, above] / np.sqrt(w[above])
    values, M = np.zeros(len(w)), np.zeros((len(w), len(w)))
    k = int(above.sum())
    if k:
        # From Z'Z, whose rounding is a share of the largest value squared, small ones lose digits.
        P = small_eigh(np.asarray(to_numpy(self_product(times(Z, B))), dtype=np.float64))
        values[:k], M[:, :k] = np.maximum(P[0], 0), B @ P[1]
    return values, M


def scores(Z, values, M):
    """Nystroem eigenvectors Z M / sqrt(values), (n, q); zero beyond the rank."""
    inverse = np.divide(1.0, np.sqrt(values), out=np.zeros_like(values), where=values > 0)
    return times(Z, M * inverse)


def rotate(V, Z) -> tuple[Any, Any, Any]:
    """Ritz values, vectors U = V Q and K'U = Z Q for orthonormal V with Z = K' V."""
    values, Q = small_eigh(np.asarray(inner(V, Z), dtype=np.float64))
    return values, times(V, Q), times(Z, Q)


def orthonormal(V):
    """An orthonormal basis (n, q) whose leading columns span those of V, without sign flips."""
    Q, R = qr(V)
    signs = np.where(np.diag(R) < 0, -1.0, 1.0)
    Q *= on_device_of(signs.astype(dtype_name(Q.dtype)), Q)
    return Q
