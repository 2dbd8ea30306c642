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
from typing import Any

import numpy as np

from ..compute import array_namespace, on_device_of, to_numpy
from ..compute.arrays import Array, dtype_name
from ..fitting.checkpoint import Progress, Stage
from ..solvers._linalg import column_norms, inner, times
from ..solvers.base import FULL_FLOOR, Eigenpairs, PassState, Report, silent
from .gains import GainUnit, make_gain
from .readout import READOUTS, nystroem_values, orthonormal, rotate

SAMPLE = 512  # rows for the norm of K': a few percent of it on every kernel tried


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

    gains: np.ndarray
    eigenvalues: np.ndarray
    residuals: np.ndarray
    changes: np.ndarray
    excess: np.ndarray | None = None
    recoveries: int = 0
    interrupted: bool = False


def hebbian_eigenpairs(
    gram: Any,
    n_components: int,
    gain: Any = "auto",
    *,
    n_passes: int = 10,
    oversampling: int | None = None,
    block: int = 128,
    tol: float = 0.0,
    scale: Any = None,
    start: Array = None,
    readout: str = "ritz",
    rng: np.random.Generator | None = None,
    report: Report = silent,
    tick: Callable[..., Any] | None = None,
    measure: Callable[..., Any] | None = None,
) -> Any:
    """Leading eigenpairs of a centered Gram operator by a Kernel Hebbian rule.

    Parameters
    ----------
    gram : operator (n, n)
        With ``rows``, ``@``, ``trace`` and, for gain "auto", ``start``; a ``visit`` of its own
        where that is faster than rows and their product.
    n_components : int
        r.
    gain : str or gain, default="auto"
        One of `GAINS` or an instance, see `mercer.hebbian.gains`.
    n_passes : int, default=10
        Most passes over the data.
    oversampling : int, optional
        Further directions carried and dropped at the end; 10 for "auto", else 0.
    block : int, default=128
        Rows fetched at once. Changes the rounding of the result, and for "auto" how often the
        directions are made orthonormal.
    tol : float, default=0.0
        Stop when the span of the outputs turns by less than this (sine) in a pass.
    scale : float, optional
        Start from A ~ scale N(0, 1 / (r n)), as published for scale 1. By default the rows
        are scaled to unit norm in the feature space, without which polynomial kernels diverge.
    start : array (n, q), optional
        Start from these coefficients as they are, for "auto" from their span.
    readout : {"ritz", "nystroem", "carried", "free"}
        See `mercer.hebbian.readout`.
    rng : numpy.random.Generator, optional
    report : callable
        Called with a `PassState` after each pass; True stops.
    tick : callable, optional
        ``tick(done, n)`` after each block of a pass.
    measure : callable, optional
        Called with the r leading rows of A after each pass, e.g. the excess error.

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
    gain = make_gain(gain)
    rng = np.random.default_rng() if rng is None else rng
    n = gram.shape[0]
    q = min(n, n_components + (gain.oversampling if oversampling is None else oversampling))
    # The start comes before anything else is asked of the operator, which learns its row
    # means from the first product.
    begin = _start(gram, gain, q, scale, start, rng)
    variance = gram.trace() / n
    if not variance > 0:
        return _nothing(gram, n_components), _no_history(q, n_components)
    size = GainUnit(n, variance, sampled_norm(gram, rng, block) if gain.needs_norm else np.nan)
    run = _Run(gram, gain, size, n_components, block, tick)
    run.begin(*begin)
    converged = run.passes(n_passes, tol, rng, report, measure, gram.progress())
    pairs = READOUTS[readout](gram, run, n_components)
    products = 1 + len(run.records) + pairs.n_passes
    share = float(np.max(pairs.residuals)) / max(float(pairs.values[0]), np.finfo(float).tiny)
    converged = converged or share <= FULL_FLOOR
    return replace(pairs, converged=converged, n_passes=products), run.history()


class _Run:
    """The state of a run: always a valid model, whatever stopped it."""

    def __init__(self, gram, gain, size, r, block, tick):
        self.gram, self.gain, self.tick = gram, gain, tick or (lambda done, n: None)
        self.size, self.r, self.block = size, r, block
        self.records = []
        self.interrupted = False

    def begin(self, A, S, V, Z):
        """Coefficients A (q, n) with outputs S = A K', and a product Z = K' V to carry."""
        self.rule = self.gain.rule(A, S, self.size)
        lengths = np.maximum(column_norms(A.T), np.finfo(dtype_name(A.dtype)).tiny)
        self.eigenvalues = column_norms(S.T) / lengths
        self.V, self.Z, self.outputs = V, Z, orthonormal(S.T)

    def passes(self, n_passes, tol, rng, report, measure, progress):
        """Up to n_passes passes; True if the subspace came to rest."""
        log = PassLog(progress, rng)
        begun = log.resume(self)
        try:
            while not log.over and len(self.records) < n_passes:
                record = self._pass(rng, measure, log, begun)
                begun = None
                self.records.append(record)
                stop = report(self._state(record, tol))
                log.over = bool(record["changes"] <= tol or stop)
                log.note(self)
            return bool(self.records and self.records[-1]["changes"] <= tol)
        except KeyboardInterrupt:
            self.interrupted = True
        return False

    def _pass(self, rng, measure, log, begun):
        """Visit all points once in random order, or those left of a pass that was begun."""
        n, V = self.size.n, self.outputs
        t = 1 + n * len(self.records)
        rates, decay = self.gain.rates(self.eigenvalues, self.size), self.gain.decay(n)
        # Outputs are small block by block and come from the host; the rows' products do not.
        Y = np.empty(self.rule.A.shape, dtype_name(self.rule.A.dtype))
        Z = array_namespace(V).empty_like(V)
        if begun is None:
            start, order = 0, rng.permutation(n)
        else:
            start, order, Y[...], before = begun
            Z[...] = on_device_of(before, Z)
        for first in range(start, n, self.block):
            index = order[first : first + self.block]
            Z[index], Y[:, index] = self._visit(index, V, rates, decay, t + first)
            self.tick(min(n, first + self.block), n)
            if log.due:
                log.note(self, (first + self.block, order, Y, to_numpy(Z)))
        eigenvalues, outputs = (
            np.sum(Y**2, axis=1, dtype=np.float64),
            orthonormal(on_device_of(Y, V).T),
        )
        if self.rule.running is not None:
            eigenvalues = self.rule.running.values(self.rule.A)
        self.eigenvalues, self.outputs, self.V, self.Z = eigenvalues, outputs, V, Z
        return self._record(rates / (1 + decay * (t + n)), measure)

    def _visit(self, index, V, rates, decay, t):
        """A block of steps: the rows' products with V, (b, q), and their outputs, (q, b)."""
        if self.rule.running is not None:
            rows = self.gram.rows(index)
            return rows @ V, self.rule.step(index, rows, rates, decay, t)
        K, C, Z = visit(self.gram, index, self.rule.factors, V)
        return Z, self.rule.advance(index, K, C, rates, decay, t)

    def _record(self, gains, measure):
        """One line of the history."""
        values, U, Z = rotate(self.V, self.Z)
        alive = self.eigenvalues[: self.r] > 1e-12 * self.eigenvalues.max()
        kept = on_device_of(np.flatnonzero(alive), self.V)
        before, after = self.V[:, : self.r][:, kept], self.outputs[:, : self.r][:, kept]
        turned = after - before @ (before.T @ after)
        boost = np.exp(self.rule.rho) * self.rule.brake
        return {
            "gains": gains * boost,
            "eigenvalues": self.eigenvalues,
            "residuals": column_norms(Z - U * on_device_of(values, U))[: self.r],
            "changes": spectral_norm(turned),
            "excess": None if measure is None else measure(self.rule.A[: self.r]),
        }

    def _state(self, record, tol):
        share = record["residuals"].max() / max(self.eigenvalues.max(), 1e-300)
        done = 1 + len(self.records)
        return PassState(done, self.eigenvalues[: self.r].copy(), float(share), tol)

    def let_go(self):
        """Forget the vectors carried, once they are read."""
        self.V = self.Z = self.outputs = None

    def history(self):
        """The records as arrays."""
        if not self.records:
            return _no_history(len(self.rule.A), self.r, self.interrupted)
        columns: dict[str, Any] = {
            name: np.array([x[name] for x in self.records]) for name in self.records[0]
        }
        if self.records[0]["excess"] is None:
            columns["excess"] = None
        recoveries = round(-np.log2(self.rule.brake))
        return History(**columns, recoveries=recoveries, interrupted=self.interrupted)


class PassLog:
    """Where a run leaves how far it has come: after each pass, and every minute on the way."""

    def __init__(self, progress: Progress, rng: np.random.Generator):
        self.progress, self.rng, self.over = progress, rng, False

    @property
    def due(self) -> bool:
        """Whether it is time for a state in the middle of a pass."""
        return self.progress.due

    def note(self, run: _Run, begun: tuple | None = None) -> None:
        """Write the state after a pass, or that of the pass that is `begun`."""
        if not isinstance(self.progress, Stage):
            return
        carried = [to_numpy(A) for A in (run.eigenvalues, run.V, run.Z, run.outputs)]
        rule, records = run.rule.state(), [record_arrays(record) for record in run.records]
        header = {
            "rule": len(rule),
            "records": [list(record) for record in records],
            "rows": 0 if begun is None else begun[0],
            "over": self.over,
            "rng": self.rng.bit_generator.state,
        }
        tail = [] if begun is None else list(begun[1:])
        lines = [value for record in records for value in record.values()]
        self.progress.write(header, [*carried, *rule, *lines, *tail])

    def resume(self, run: _Run) -> tuple | None:
        """Put the run where it was; what is known of a pass that was begun."""
        header, arrays = self.progress.header, iter(self.progress.arrays)
        if not header:
            return None
        run.eigenvalues, *carried = (next(arrays) for _ in range(4))
        run.V, run.Z, run.outputs = (on_device_of(A, run.V) for A in carried)
        run.rule.go_on([next(arrays) for _ in range(header["rule"])])
        run.records = [
            {"excess": None} | {name: next(arrays)[()] for name in names}
            for names in header["records"]
        ]
        self.rng.bit_generator.state, self.over = header["rng"], header["over"]
        return (header["rows"], *arrays) if header["rows"] else None


def record_arrays(record: dict) -> dict:
    """One line of the history as arrays, without what was not measured."""
    return {name: np.asarray(value) for name, value in record.items() if value is not None}


def visit(gram, index, A, V):
    """The minor of some rows, (b, b), and their products with A and V, in one reading of them."""
    xp, K = array_namespace(A), gram.rows(index)
    # Only NumPy multiplies arrays of two types.
    P = (K if xp is np else xp.astype(K, A.dtype)) @ xp.concat([A, V], axis=1)
    K = to_numpy(K[:, index]).astype(float)
    return K, to_numpy(P[:, : A.shape[1]]), P[:, A.shape[1] :]


def spectral_norm(A) -> float:
    """The largest singular value of a tall matrix."""
    if isinstance(A, np.ndarray):
        return float(np.linalg.norm(A, 2))
    return float(np.sqrt(max(np.linalg.eigvalsh(inner(A, A)).max(initial=0.0), 0.0)))


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
    B = _first_block(gram, gain, q, rng) if start is None else start[:, :q]
    V = orthonormal(B)
    Z = gram @ V
    if gain.orthonormal:
        _, M = nystroem_values(V, Z)
    else:
        M = inner(V, B)
        if scale is not None:
            M = M * scale
        elif start is None:
            M = M * unit_norms(M, V, Z)
    return rows_of_columns(times(V, M)), rows_of_columns(times(Z, M)), V, Z


def _first_block(gram, gain, q, rng):
    """The operator's own start, or a normal one of variance 1 / (q n) as published."""
    if gain.orthonormal:
        return gram.start(q, rng)
    return gram.vectors(rng.standard_normal((gram.shape[0], q)) / np.sqrt(q * gram.shape[0]))


def rows_of_columns(V):
    """V' with each row in one piece."""
    if isinstance(V, np.ndarray):
        return np.ascontiguousarray(V.T)
    return array_namespace(V).asarray(V.T, copy=True)


def unit_norms(M, V, Z):
    """Factors (q,) that make the columns of V M unit vectors of the feature space."""
    norms = np.einsum("ij,ij->j", M, inner(V, Z) @ M)
    return 1.0 / np.sqrt(np.where(norms > 0, norms, np.inf))


def _nothing(gram, r):
    """Eigenpairs of a matrix without variance; the residuals say whether it is zero."""
    U = gram.vectors(np.eye(gram.shape[0], r))
    return Eigenpairs(np.zeros(r), U, column_norms(gram @ U))


def _no_history(q, r, interrupted=False):
    empty = np.empty((0, q))
    residuals, changes = np.empty((0, r)), np.empty(0)
    return History(empty, empty, residuals, changes, interrupted=interrupted)
