"""The components of a stream, and how far from exact they can be.

Let P be the projection on the span, C the covariance of the rows in it and C~ what the stream
knows: rows that came before point j joined count with a zero along direction j. With e the
energy that rows had lost by then, what they truly have along j sums up to e at most; D is
the diagonal matrix of these, and S the part of C~ that comes from rows before the last point.
For every unit v the two forms differ by a cross term and a square,

    |v'C v - v'C~ v|  <=  2 sqrt(v'S v  v'D v) + v'D v,

so with any c > 0, and L the energy lost in all, squares and what is outside the span included,

    eig_i(C~ - c S - D / c)  <=  exact eigenvalue i  <=  eig_i(C~ + c S + D / c) + L.

In a fixed span D = 0, and the interval is that of landmarks. D is small where it matters: late
points add little to the leading directions. While nothing joins, S and D stay as they are, and
their share in the eigenvalues goes to zero.

A `State` goes along the rows: they join the moments, and at fixed numbers of rows, whatever the
batches, points that have faded leave and the signs of the components get a new reference.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

import numpy as np
from scipy.linalg import eigh

from ..bases import Whitening
from ..compute import TiledEngine, match_sparsity, self_product, to_numpy
from ..compute.linalg import lead_signs
from ..fitting.certificate import Certificate, leading, score_errors, shares
from ..fitting.costs import grid_solver
from ..fitting.expansion import KernelExpansion
from ..fitting.functions import RowSample
from ..fitting.moments import Moments
from ..fitting.problems import FourierProblem, Problem, ReducedProblem, SmallProblem
from ..operators import in_ordinary_units
from ..solvers import Dense, Eigenpairs
from .dictionary import GrowingDictionary
from .moments import FourierStream, Stream, Totals

# Agreement of two directions (a cosine) below which it says nothing of their signs.
LEAST_AGREEMENT = 0.3
# Directions of a reference beyond those wanted: they may be wanted later.
SPARE = 5
# References for the signs while the number of rows doubles: with 2 some were seen to flip.
PER_OCTAVE = 8
# Rows of the first: fewer often have equal eigenvalues, whose directions are arbitrary.
FIRST_REFERENCE = 16
# References while a stream that forgets replaces its rows, and rows between two at least: each is
# a small eigenproblem.
PER_MEMORY, LEAST_STEP = 2, 128
# Rows between two looks for faded points, as a share of the memory of the stream, and its bounds.
LOOKS, LOOK_ROWS = 0.5, (32, 2048)
EPS, TINY = float(np.finfo(float).eps), float(np.finfo(float).tiny)


@dataclass(frozen=True)
class State:
    """What a stream keeps: moments, a sample of rows, and the reference that signs follow."""

    stream: Stream | FourierStream
    sample: RowSample
    reference: KernelExpansion | None

    def learned(self) -> tuple:
        """The part of the state that rows change, for a checkpoint."""
        stream, span, reference = self.stream, self.stream.span, self.reference
        grown = (span.points, span.factor) if isinstance(span, GrowingDictionary) else None
        directions = None if reference is None else (reference.frame, reference.metric)
        values = tuple(vars(stream)[name] for name in stream.learned)
        return grown, values, self.sample, directions

    def resumed(self, learned: Any, engine: TiledEngine) -> "State":
        """What this state, the one before the first row, had become."""
        grown, values, sample, directions = learned
        span: Any = self.stream.span
        if grown is not None:
            span = replace(span, points=grown[0], factor=grown[1])
        facts: dict[str, Any] = dict(zip(self.stream.learned, values, strict=True))
        reference = None if directions is None else KernelExpansion(span.basis(engine), *directions)
        return State(replace(self.stream, span=span, **facts), sample, reference)

    def with_settings(self, novelty: float | None, budget: int, forgetting: float) -> "State":
        """The state with settings that may have changed since the last batch."""
        span: Any = self.stream.span
        if isinstance(span, GrowingDictionary) and (span.novelty, span.budget) != (novelty, budget):
            span = replace(span, novelty=novelty, budget=budget)
        return replace(self, stream=replace(self.stream, span=span, forgetting=forgetting))


class BatchRecord(NamedTuple):
    """What one batch did to the model.

    Attributes
    ----------
    rows : int
    n_samples_seen : int
        With this batch.
    size : int
        Coordinates of the model: points of the dictionary or features.
    joined : int
        Points that joined.
    lost_share : float
        Share of the energy of these rows that lies outside the span: high where the
        dictionary does not know such rows, as after a drift with the budget used up.
    left : int
        Points that left, which they do only where a stream forgets.
    """

    rows: Annotated[int, "[0, inf)"]
    n_samples_seen: Annotated[int, "[0, inf)"]
    size: Annotated[int, "[0, inf)"]
    joined: Annotated[int, "[0, inf)"]
    lost_share: Annotated[float, "(-inf, inf)"]
    left: Annotated[int, "[0, inf)"] = 0


def record(before: Totals, after: Totals, fading: float = 1.0) -> BatchRecord:
    """Record of the rows between two states; weights of older rows fell by `fading`."""
    energy = after.energy - fading * before.energy
    lost = max(after.lost - fading * before.lost, 0.0)
    share = min(lost / energy, 1.0) if energy > 0 else 0.0
    joined = after.joined - before.joined
    left = joined - (after.size - before.size)
    return BatchRecord(after.rows - before.rows, after.rows, after.size, joined, share, left)


def states_along(
    state: State, X, counts, engine, n_components: int, center: bool, start: int = 0
) -> Iterator[tuple[int, State]]:
    """The states of a stream on the way through the rows of X, each with the rows that are done.

    `counts` says how often each row counts; the first `start` rows are known already.
    """
    stream, sample, reference = state.stream, state.sample, state.reference
    forgetting = stream.forgetting
    stream.span.kernel.check(X)
    X = match_sparsity(X, sample.rows)
    n = X.shape[0]
    while start < n:
        to_look, to_reference = rows_to_go(stream.count, forgetting)
        stop = min(n, start + to_look, start + to_reference)
        part = X[start:stop]
        part_counts = None if counts is None else counts[start:stop]
        sample = sample.add(part, stream.count, forgetting, part_counts)
        stream = stream.learn(part, engine, part_counts)
        smaller = stream.without_faded() if stop - start == to_look else None
        if smaller is not None:
            before, (stream, T) = stream.span, smaller
            if reference is not None:
                # Projected on the smaller span: T takes coordinates in the one before to it.
                span, Q = stream.span, T.T @ before.unwhiten(reference.frame)
                frame, metric = span.weights(Q), self_product(Q)
                reference = KernelExpansion(span.basis(engine), frame, metric)
        if stream.span.size and stop - start == to_reference:
            reference = new_reference(stream, engine, n_components, center, reference)
        start = stop
        yield start, State(stream, sample, reference)


def rows_to_go(count: int, forgetting: float) -> tuple[int, int]:
    """Rows until points may leave next, and until the signs get a new reference.

    By the number of rows, whatever the batches.
    """
    to_look = sys.maxsize
    if forgetting < 1:
        step = int(np.clip(LOOKS / (1 - forgetting), *LOOK_ROWS))
        to_look = step - count % step
    if count < FIRST_REFERENCE:
        return to_look, FIRST_REFERENCE - count
    step = 2 ** (count.bit_length() - 1) // PER_OCTAVE
    if forgetting < 1:
        memory = int(max(LEAST_STEP, 1 / (1 - forgetting) / PER_MEMORY))
        step = min(step, 2 ** (memory.bit_length() - 1))
    return to_look, step - count % step


@dataclass(frozen=True, eq=False)
class Aligned(SmallProblem):
    """Kernel PCA of the rows of a stream so far, with signs that agree with an earlier time.

    Attributes
    ----------
    stream : Stream or FourierStream
        Whose moments these are.
    reference : KernelExpansion or None
        Of the stream at an earlier time.
    """

    stream: Any = None
    reference: KernelExpansion | None = None

    def expand(self, pairs: Eigenpairs) -> KernelExpansion:
        """The directions with the sign of that direction of the reference that is nearest.

        The nearest one and not the one of the same number: where eigenvalues cross, the sign goes
        with the direction. The basis of the reference must be the first vectors of this one. A
        direction that is new has a sign of its own, and all have where there is no reference.
        """
        expansion, reference, span = super().expand(pairs), self.reference, self.stream.span
        A = expansion.frame[:, 1:]
        signs = lead_signs(A)
        if reference is not None:
            agreement = span.unwhiten(reference.frame[:, 1:]).T @ span.unwhiten(A)
            nearest = np.argmax(np.abs(agreement), axis=0)
            cosines = agreement[nearest, np.arange(A.shape[1])]
            signs = np.where(np.abs(cosines) > LEAST_AGREEMENT, np.sign(cosines), signs)
        return expansion.stretched(signs)


@dataclass(frozen=True, eq=False)
class StreamProblem(Aligned, ReducedProblem):
    """In the span of a dictionary or of features."""

    def certificate(self, pairs: Eigenpairs) -> Certificate:
        """Certificate of the span, plus the part of early rows along points that joined later.

        Where more is known of what is outside the span than its trace, the squares of what early
        rows missed inside it, at most those of the direction that missed most, come beside that.
        """
        remainder, early = self.remainder, self.stream.early
        certificate = super().certificate(pairs)
        if not early.count:
            return certificate
        moments, r = self.moments, len(pairs.values)
        slack = self.slack + float(np.max(pairs.residuals, initial=0.0))
        mean = moments.mean if self.center else np.zeros(self.size)
        C, S = about(moments, mean), about(early, mean)
        # Losses are differences of energies, with the rounding of those.
        missed = self.stream.missed + EPS * moments.energy
        Q = pairs.vectors * (pairs.values > 0)
        # Any c is sound, and one without bounds would overflow.
        spread = max(np.einsum("ij,ij->", Q, S @ Q), EPS * np.trace(S), TINY)
        unknown = max(missed @ (Q * Q).sum(axis=1), TINY)
        c = np.sqrt(unknown) / np.sqrt(spread)  # the best for all of the components together
        E = c * S + np.diag(missed / c)
        lower = np.maximum(largest(Q.T @ (C - E) @ Q, r) - slack, 0.0)
        upper, lost = largest(C + E, r + 1) + slack, moments.lost_energy
        squares = float(missed.max())
        sure, likely = lost, dict[str, Any]()
        beyond = sure
        if remainder is not None:
            sure = min(lost, squares + remainder.sure)
            beyond = min(lost, squares + remainder.likely)
            likely = {"likely_lower": lower, "likely_upper": upper[:-1] + beyond}
        if certificate.score_error is not None:
            bounds = pairs, S, missed, C + E, lower, upper + beyond
            around, least_ends, most_ends = residuals_of_scores(*bounds)
            around += beyond + slack
            rounding = slack + self.projection(pairs)
            error = score_errors(pairs.values, around, least_ends, most_ends, rounding)
            # The mean that scores are from lacks what early rows missed.
            share = early.count / moments.count if self.center else 0.0
            shift = np.sqrt(share * (missed @ pairs.vectors**2))
            error = error + shift / np.sqrt(np.maximum(least_ends, TINY))
            error = np.where(error < 1, error, np.nan)
            likely.update(score_error=error, n_proven=leading(np.isfinite(error)))
        held, cross = float(pairs.values.sum()), 2 * np.sqrt(spread) * np.sqrt(unknown)
        # The true mean has a part that rows lost. Squares of the largest numbers would overflow.
        scale = max(float(np.abs(mean).max(initial=0.0)), TINY)
        share = float(self.stream.missed @ (mean / scale) ** 2)
        doubt = 2 * scale * np.sqrt(early.count * share)
        least = self.total - doubt - (lost if mean.any() else 0.0)
        part = held - cross - slack, held + cross + unknown + slack
        captured = shares(*part, least - slack, self.total + doubt + slack)
        ends: dict[str, Any] = {"eigenvalue_lower": lower, "eigenvalue_upper": upper[:-1] + sure}
        return replace(certificate, **ends, **likely, captured_variance=captured)


@dataclass(frozen=True, eq=False)
class FourierStreamProblem(Aligned, FourierProblem):
    """On a Fourier grid."""


def stream_problem(stream, engine, center: bool, reference=None, **options) -> Any:
    """The eigenproblem of the moments of a stream; options as of `ReducedProblem`."""
    span, facts = stream.span, {"stream": stream, "reference": reference}
    basis = span.basis(engine)
    if isinstance(stream, FourierStream):
        return FourierStreamProblem(basis, stream.sums, center, **facts)
    whitening = Whitening(basis.size, span.whitener, rounding=span.rounding)
    return StreamProblem(basis, whitening, stream.moments, center, **facts, **options)


def leading_pairs(problem: Problem, r: int) -> Eigenpairs:
    """The r largest eigenpairs, largest first; those that are missing are zero.

    The solver is not chosen by cost: that depends on the number of rows so far, and results must
    not depend on how the rows were cut into batches.
    """
    few = min(r, problem.size)
    is_grid = isinstance(problem, FourierProblem)
    solver = grid_solver(problem.size, few) if is_grid else Dense()
    # The same start for the same rows, so that batches do not matter.
    operator, unit = in_ordinary_units(problem.operator)
    pairs = solver.solve(operator, few, np.random.default_rng(0)).scaled(unit)
    pairs = problem.canonical(replace(pairs, vectors=to_numpy(pairs.vectors)))
    missing = (0, r - len(pairs.values))
    values, residuals = (np.pad(A, missing) for A in (pairs.values, pairs.residuals))
    vectors = np.pad(pairs.vectors, ((0, 0), missing))
    return replace(pairs, values=values, vectors=vectors, residuals=residuals)


def new_reference(stream, engine, n_components: int, center: bool, reference=None):
    """The expansion that later signs follow, with a few directions more than are wanted."""
    r = n_components + SPARE
    with engine.single_blas():
        problem = stream_problem(stream, engine, center, reference)
        if reference is None or problem.size <= 3 * r:
            pairs = leading_pairs(problem, r)
        else:
            Q = stream.span.unwhiten(reference.frame[:, 1:])
            pairs = problem.canonical(ritz_pairs(problem.operator, Q))
        return problem.expand(pairs)


def ritz_pairs(operator, Q) -> Eigenpairs:
    """Eigenpairs in the Krylov space of directions that led a while ago, as many as those.

    A fourth of the time of a decomposition, and for signs near enough.
    """

    def times(V):
        return to_numpy(operator @ operator.vectors(V))

    Y = times(Q)
    # The space is the same in any unit, and powers of a large one would overflow.
    Y /= np.abs(Y).max(initial=0.0) or 1.0
    V, _ = np.linalg.qr(np.hstack([Q, Y, times(Y)]))
    values, U = eigh(V.T @ times(V))
    values, U = values[::-1][: Q.shape[1]], U[:, ::-1][:, : Q.shape[1]]
    return Eigenpairs(np.maximum(values, 0.0), V @ U, np.zeros(len(values)))


def residuals_of_scores(pairs, S, missed, most, lower, upper) -> tuple:
    """Residuals of the scores along each direction as eigenvectors of the rows' matrix in the span.

    Rows have the coordinates Y + M, of which the stream knows Y, with M'M <= D. For a direction q
    that has the eigenvalue l of Y'Y the residual is that of (Y + M) q over its length, and

        ((Y + M)(Y + M)' - l)(Y + M) q  =  (Y + M)(Y'M + M'Y + M'M) q.

    Parameters
    ----------
    pairs : Eigenpairs
    S : array of shape (m, m)
        Second moments of the early rows, the only ones with a part in M.
    missed : array of shape (m,)
        The diagonal of D.
    most : array of shape (m, m)
        No less than (Y + M)'(Y + M) - D.
    lower, upper : arrays of shape (r,) and (r + 1,)
        Ends of the eigenvalues.

    Returns
    -------
    residuals, lower, upper
        With ends that the variance along each direction is within as well.
    """
    Q, squares, top = pairs.vectors, max(float(missed.max()), TINY), max(float(upper[0]), TINY)
    of_early = np.sqrt(np.maximum(np.einsum("ij,ij->j", Q, S @ Q), 0.0))
    of_missed = np.sqrt(missed @ Q**2)
    cross = 2 * of_early * of_missed
    lower = np.minimum(lower, np.maximum(pairs.values - cross, 0.0))
    upper = np.maximum(upper, np.append(pairs.values + cross + of_missed**2, 0.0))
    # |(Y + M) D^{1/2}|, with the roots as shares of the largest: squares of those would overflow.
    roots = np.sqrt(missed / squares)
    late = np.sqrt(largest(np.outer(roots, roots) * (most + np.diag(missed)), 1)[0])
    length = np.sqrt(np.maximum(lower, EPS * top))
    norm = np.sqrt(min(float(np.trace(S)), top))
    parts = np.sqrt(top) / length * norm * of_missed
    parts += late / length * np.sqrt(squares) * (of_early + of_missed)
    # Directions that may be all rounding say nothing.
    return np.where(lower > EPS * top, parts, top), lower, upper


def about(moments: Moments, center) -> np.ndarray:
    """Sum of outer products of the rows' differences from a point, (m, m)."""
    shift = moments.mean - center
    return moments.scatter + moments.count * np.outer(shift, shift)


def largest(A, r: int) -> np.ndarray:
    """The r largest eigenvalues, zeros where there are fewer."""
    # All eigenvalues: LAPACK's routine for a few fails on matrices of equal ones.
    values = np.linalg.eigvalsh((A + A.T) / 2)[::-1][:r]
    return np.pad(values, (0, r - len(values)))
