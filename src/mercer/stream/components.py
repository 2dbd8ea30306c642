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
"""

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg import eigh

from ..bases import Whitening
from ..compute import to_numpy
from ..compute.linalg import self_product
from ..fitting.certificate import Certificate, shares
from ..fitting.costs import grid_solver
from ..fitting.expansion import KernelExpansion
from ..fitting.moments import Moments
from ..fitting.problems import FourierProblem, ReducedProblem, Result
from ..operators import in_ordinary_units
from ..solvers import Dense, Eigenpairs, canonical
from .moments import FourierStream, Stream

# Agreement of two directions (a cosine) below which it says nothing of their signs.
LEAST_AGREEMENT = 0.3
# Directions of a reference beyond those wanted: they may be wanted later.
SPARE = 5
EPS, TINY = float(np.finfo(float).eps), float(np.finfo(float).tiny)


def components_of(
    stream: Stream | FourierStream,
    n_components: int,
    center: bool,
    engine,
    reference: KernelExpansion | None,
    rows: Any,
    sample: Any = None,
    seed: int = 0,
) -> tuple[Result, float]:
    """The components of a stream, those that it has too few rows for zero, and its total variance.

    Parameters
    ----------
    reference : KernelExpansion or None
        Of the stream at an earlier time: signs follow its directions.
    rows : array
        Rows of the stream among which negative eigenvalues are looked for.
    sample : array or None
        Uniform rows of the stream, on which the certificate judges what the span leaves out.
    seed : int
        What pairs of these rows are drawn by.
    """
    with engine.single_blas():
        problem: Any = problem_of(stream, center, engine, rows, sample, seed)
        pairs = leading_pairs(problem, n_components)
        found = problem.result(pairs)
        found = replace(found, expansion=aligned(found.expansion, reference, stream.span))
        if isinstance(stream, Stream) and stream.early.count:
            slack = problem.slack + float(np.max(pairs.residuals, initial=0.0))
            known = widened(found.certificate, pairs, stream, center, slack, problem.remainder)
            found = replace(found, certificate=known)
    return found, problem.total


def new_reference(stream, n_components: int, center: bool, engine, reference=None):
    """The expansion that later signs follow, with a few directions more than are wanted."""
    r = n_components + SPARE
    with engine.single_blas():
        problem = problem_of(stream, center, engine)
        if reference is None or problem.size <= 3 * r:
            pairs = leading_pairs(problem, r)
        else:
            Q = stream.span.unwhiten(reference.frame[:, 1:])
            pairs = canonical(ritz_pairs(problem.operator, Q), rounding=problem.slack)
        return aligned(problem.expand(pairs), reference, stream.span)


def projected_reference(reference: KernelExpansion, before, span, T, engine):
    """The reference in a span that points left; T takes coordinates in the one before to it."""
    Q = T.T @ before.unwhiten(reference.frame)
    return KernelExpansion(span.basis(engine), span.weights(Q), self_product(Q))


def ritz_pairs(operator, Q) -> Eigenpairs:
    """Eigenpairs in the Krylov space of directions that led a while ago, as many as those.

    A fourth of the time of a decomposition, and for signs near enough.
    """

    def times(V):
        return to_numpy(operator @ operator.vectors(V))

    Y = times(Q)
    # The space is the same in any unit, and powers of a large one are no numbers.
    Y /= np.abs(Y).max(initial=0.0) or 1.0
    V, _ = np.linalg.qr(np.hstack([Q, Y, times(Y)]))
    values, U = eigh(V.T @ times(V))
    values, U = values[::-1][: Q.shape[1]], U[:, ::-1][:, : Q.shape[1]]
    return Eigenpairs(np.maximum(values, 0.0), V @ U, np.zeros(len(values)))


def problem_of(
    stream, center: bool, engine, rows=None, sample=None, seed: int = 0
) -> ReducedProblem | FourierProblem:
    """The eigenproblem of the moments."""
    span = stream.span
    basis = span.basis(engine)
    if isinstance(stream, FourierStream):
        return FourierProblem(basis, stream.sums, center)
    whitening = Whitening(basis.size, span.whitener, rounding=span.rounding)
    given = basis, whitening, stream.moments, center, sample
    return ReducedProblem(*given, seed=seed, model_rows=rows)


def leading_pairs(problem: ReducedProblem | FourierProblem, r: int) -> Eigenpairs:
    """The r largest eigenpairs, largest first; those that are missing are zero."""
    few = min(r, problem.size)
    grid = isinstance(problem, FourierProblem)
    solver = grid_solver(problem.size, few) if grid else Dense()
    # The same start for the same rows, so that batches do not matter.
    operator, unit = in_ordinary_units(problem.operator)
    pairs = solver.solve(operator, few, np.random.default_rng(0)).scaled(unit)
    pairs = canonical(replace(pairs, vectors=to_numpy(pairs.vectors)), rounding=problem.slack)
    more = (0, r - len(pairs.values))
    return replace(
        pairs,
        values=np.pad(pairs.values, more),
        vectors=np.pad(pairs.vectors, ((0, 0), more)),
        residuals=np.pad(pairs.residuals, more),
    )


def aligned(expansion: KernelExpansion, reference, span) -> KernelExpansion:
    """The directions with the sign of that direction of the reference that is nearest.

    The nearest one and not the one of the same number: where eigenvalues cross, the sign goes
    with the direction. The basis of the reference must be the first vectors of this one. A
    direction that is new has a sign of its own, and all have where there is no reference.
    """
    A = expansion.frame[:, 1:]
    # Of the first large entry, not of the largest: two rows have the weights w and -w, and rounding
    # would decide. 0.7 is no ratio that weights often have.
    large = np.argmax(np.abs(A) >= 0.7 * np.abs(A).max(axis=0), axis=0)
    signs = np.where(A[large, np.arange(A.shape[1])] < 0, -1.0, 1.0)
    if reference is not None:
        agreement = span.unwhiten(reference.frame[:, 1:]).T @ span.unwhiten(A)
        nearest = np.argmax(np.abs(agreement), axis=0)
        cosines = agreement[nearest, np.arange(A.shape[1])]
        signs = np.where(np.abs(cosines) > LEAST_AGREEMENT, np.sign(cosines), signs)
    return expansion.stretched(signs)


def widened(
    certificate: Certificate, pairs, stream: Stream, center: bool, slack: float, remainder=None
) -> Certificate:
    """The certificate with what early rows may have along points that joined after them.

    Where more is known of what is outside the span than its trace, the squares of what early rows
    missed inside it, at most those of the direction that missed most, come beside that.
    """
    moments, r = stream.moments, len(pairs.values)
    mean = moments.mean if center else np.zeros(stream.span.size)
    C, S = about(moments, mean), about(stream.early, mean)
    # Losses are differences of energies, with the rounding of those.
    missed = stream.missed + EPS * moments.energy
    Q = pairs.vectors * (pairs.values > 0)
    spread = max(np.einsum("ij,ij->", Q, S @ Q), TINY)
    unknown = max(missed @ (Q * Q).sum(axis=1), TINY)
    c = np.sqrt(unknown) / np.sqrt(spread)  # the best for all of the components together
    E = c * S + np.diag(missed / c)
    lower = np.maximum(largest(Q.T @ (C - E) @ Q, r) - slack, 0.0)
    upper, lost, squares = largest(C + E, r) + slack, moments.lost_energy, float(missed.max())
    sure, likely = lost, {}
    if remainder is not None:
        sure = min(lost, squares + remainder.sure)
        beyond = min(lost, squares + remainder.likely)
        likely = {"likely_lower": lower, "likely_upper": upper + beyond}
    held, cross = float(pairs.values.sum()), 2 * np.sqrt(spread) * np.sqrt(unknown)
    # The true mean has a part that rows lost. Squares of the largest numbers would overflow.
    size = max(float(np.abs(mean).max(initial=0.0)), TINY)
    doubt = 2 * size * np.sqrt(stream.early.count * float(stream.missed @ (mean / size) ** 2))
    total = moments.energy - moments.count * float(mean @ mean)
    least = total - doubt - (lost if mean.any() else 0.0)
    return replace(
        certificate,
        eigenvalue_lower=lower,
        eigenvalue_upper=upper + sure,
        **likely,
        captured_variance=shares(
            held - cross - slack,
            held + cross + unknown + slack,
            least - slack,
            total + doubt + slack,
        ),
    )


def about(moments: Moments, center) -> np.ndarray:
    """Sum of outer products of the rows' differences from a point, (m, m)."""
    shift = moments.mean - center
    return moments.scatter + moments.count * np.outer(shift, shift)


def largest(A, r: int) -> np.ndarray:
    """The r largest eigenvalues, zeros where there are fewer."""
    # All of them: LAPACK's way to a few fails on matrices of equal eigenvalues.
    values = np.linalg.eigvalsh((A + A.T) / 2)[::-1][:r]
    return np.pad(values, (0, r - len(values)))
