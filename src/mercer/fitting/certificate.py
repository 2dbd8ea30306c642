"""The certificate: how far a result can be from exact kernel PCA."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
from scipy.special import gammaincinv

from .._tables import html_table, text_table
from ..compute import to_numpy
from ..compute.linalg import leading_eigh, self_product
from ..operators import in_ordinary_units
from ..solvers.base import FAILURE, Evidence, largest_of, small_eigh
from .remainder import PROBES, SINGLE_ENTRY, SINGLE_LOST, SPARE, Remainder

# Eigenvalues below minus this share of the largest are not rounding.
INDEFINITE_SHARE = 1e-5
# Width of the interval of an eigenvalue, as a share of the first, from which on it is not proven to
# be the one of its number.
PROVEN_SHARE = 1e-6
# Eigenvalue, in multiples of half of its interval, up to which its vector may be another: with
# three the vectors found hold half of what the leading ones do, at least.
CLEAR = 3.0
# Residual, as a share of the first eigenvalue, below which a lower tol proves no more.
RESOLVED = 1e-9
# Residuals, as a share of the first eigenvalue, that make upper ends narrow enough by themselves.
ROUNDED = 3e-12
# Leading parts of a basis, at most, from each of which upper ends are computed.
PARTS = 4


@dataclass(frozen=True)
class Rounding:
    """Largest change that rounding makes to a matrix and to products with it.

    Attributes
    ----------
    matrix : float
        Of the matrix, in norm.
    product : float
        Of a product with a unit vector.
    root : float
        Root of the change of the sum of the squares of all entries.
    trace : float
        Of the sum of the diagonal, beside the rounding of the matrix.
    """

    matrix: float = 0.0
    product: float = 0.0
    root: float = 0.0
    trace: float = 0.0

    def scaled(self, unit: float) -> "Rounding":
        """The rounding of the matrix times a number."""
        return Rounding(*(unit * part for part in vars(self).values()))


NO_ROUNDING = Rounding()


@dataclass(frozen=True)
class Certificate:
    """What is known about the error of a fit.

    Attributes
    ----------
    kind : "bound" or "estimate"
        Whether the intervals hold for certain, rounding included, or are estimates.
    eigenvalue_lower, eigenvalue_upper : arrays of shape (r,)
        The i-th interval holds the i-th exact eigenvalue; infinite where nothing bounds it.
    residuals : array of shape (r,) or None
        ``|K'u - l u|`` of every pair.
    captured_variance : (float, float) or None
        The share of the total variance that the kept components are known to hold; None where
        eigenvalues are not variances, as those of affinities.
    converged : bool
        Whether the residuals reached the tolerance asked for.
    n_passes : int
        Products with the kernel matrix that the fit took.
    indefinite : bool
        Whether negative eigenvalues were found: the kernel is then not an inner product, and
        shares of variance have no meaning.
    n_proven : int
        How many components are proven to be the leading ones: none was missed before them, and
        their eigenvalues are larger than what rounding may have made. With a `confidence` below
        one, at that confidence.
    score_error : array of shape (r,) or None
        Root mean square error of the scores of the training rows, as a share of their own root
        mean square, at most; nan where a component may be mixed with others.
    confidence : float or None
        Probability at which the likely intervals hold, all of them at once; None where there are
        none.
    likely_lower, likely_upper : arrays of shape (r,) or None
        Narrower intervals for landmarks, random features, streams, and exact fits whose eigenvalues
        fall slowly: from products with random vectors, or judged on a sample of the rows.
        With ``confidence == 1`` they are certain.
    """

    kind: Literal["bound", "estimate"]
    eigenvalue_lower: Annotated[np.ndarray, "r wide"]
    eigenvalue_upper: Annotated[np.ndarray, "r wide"]
    residuals: Annotated[np.ndarray | None, "r wide or None"]
    captured_variance: (
        tuple[Annotated[float, "(-inf, inf)"], Annotated[float, "(-inf, inf)"]] | None
    )
    converged: bool
    n_passes: Annotated[int, "[0, inf)"] = 1
    indefinite: bool = False
    n_proven: Annotated[int, "[0, inf)"] = 0
    score_error: Annotated[np.ndarray | None, "r wide or None"] = None
    confidence: Annotated[float, "[0, 1]"] | None = None
    likely_lower: Annotated[np.ndarray | None, "r wide or None"] = None
    likely_upper: Annotated[np.ndarray | None, "r wide or None"] = None

    @property
    def relative_residual(self) -> float | None:
        """The largest residual as a share of the largest eigenvalue."""
        if self.residuals is None or self.residuals.size == 0:
            return None
        top = float(self.eigenvalue_upper[0])
        return float(self.residuals.max()) / top if top > 0 else 0.0

    @property
    def widest(self) -> float | None:
        """Width of the widest interval of the bound, as a share of the largest eigenvalue."""
        return _widest(self.eigenvalue_lower, self.eigenvalue_upper)

    @property
    def likely_widest(self) -> float | None:
        """Width of the widest likely interval, as a share of the largest eigenvalue."""
        return None if self.confidence is None else _widest(self.likely_lower, self.likely_upper)

    def to_dict(self) -> dict:
        """The certificate as plain numbers and lists, ready for JSON."""
        return {name: plain(value) for name, value in vars(self).items()}

    def summary(self) -> list[tuple[str, str]]:
        """The statements of the certificate, as pairs of a name and a text."""
        words = {"bound": "certified bounds", "estimate": "estimates, not bounds"}
        lines = [("kind", words[self.kind]), ("components", str(self.eigenvalue_lower.size))]
        if self.captured_variance is not None and not self.indefinite:
            low, high = (100 * share for share in self.captured_variance)
            lines.append(("captured variance", _interval(low, high) + " %"))
        if self.residuals is not None and self.residuals.size:
            share = f"{self.relative_residual:.1e} of the first eigenvalue"
            lines.append(("largest residual", share))
        elif self.widest is not None and (self.kind == "bound" or self.confidence == 1):
            lines.append(("widest interval", f"{self.widest:.1e} of the first eigenvalue"))
        if self.confidence is not None and self.confidence < 1 and self.likely_widest is not None:
            share = f"{self.likely_widest:.1e} of the first eigenvalue, "
            share += f"with confidence {confidence_text(self.confidence)}"
            lines.append(("widest likely interval", share))
            lower, upper = np.asarray(self.likely_lower), np.asarray(self.likely_upper)
            if count := int(np.sum(upper > 2 * lower)):
                text = f"{count} of {len(upper)}; the errors are usually far smaller"
                lines.append(("intervals wider than their eigenvalue", text))
        if np.isinf(self.eigenvalue_upper).any():
            lines.append(("upper ends", "unknown for some eigenvalues"))
        lines += self._leading() if self.score_error is not None else []
        lines.append(("converged", "yes" if self.converged else "no"))
        lines.append(("passes over the kernel", str(self.n_passes)))
        if self.indefinite:
            text = "the kernel is indefinite: it has negative eigenvalues, and shares of variance "
            lines.append(("warning", text + "have no meaning"))
        return lines

    def without_first(self, count: int = 1) -> "Certificate":
        """The certificate without the first `count` components."""
        arrays: dict[str, Any] = {
            k: v[count:] for k, v in vars(self).items() if isinstance(v, np.ndarray)
        }
        return replace(self, **arrays, n_proven=max(self.n_proven - count, 0))

    def _leading(self) -> list[tuple[str, str]]:
        """Whether larger components may have been missed, and the error of scores."""
        r, proven, error = self.eigenvalue_lower.size, self.n_proven, np.asarray(self.score_error)
        bounded = np.isfinite(error)
        if not r:
            return []
        sure = "proven"
        if self.confidence is not None and self.confidence < 1:
            sure = f"with confidence {confidence_text(self.confidence)}"
        text = f"no larger component was missed ({sure})"
        if proven < r:
            text = f"the first {proven} of {r} are the largest ({sure})"
            if proven < 2:
                text = f"the first of {r} is the largest ({sure})"
            if not proven:
                text = "larger components may have been missed"
            # What may prove more.
            if self.kind == "bound" and self.captured_variance is not None:
                residual, more = self.relative_residual, "a larger basis may prove more"
                if residual is not None:
                    lower = "" if residual < RESOLVED else "lower tol or "
                    more = f"to prove more, {lower}raise n_components"
                text += f"; {more}"
        lines = [("leading components", text)]
        if bounded.any():
            count = "" if bounded.all() else f" for {int(bounded.sum())} components"
            text = f"relative error at most {float(np.max(error[bounded])):.1e}{count}"
            lines.append(("scores", text))
        for first, last in mixed(bounded[:proven]):
            name, text = "not separated", f"component {first} cannot be told apart from later ones"
            if last > first:
                numbers = f"{first} {'and' if last == first + 1 else 'to'} {last}"
                name, text = "close eigenvalues", f"components {numbers} cannot be told apart"
            lines.append((name, text))
        return lines

    def __repr__(self) -> str:
        rows = [["  " + name, text] for name, text in self.summary()]
        return text_table(["Certificate", ""], rows)

    def _repr_html_(self) -> str:
        rows = [[name, text] for name, text in self.summary()]
        return html_table([], rows, caption="Certificate")


def _widest(lower, upper) -> float | None:
    if not upper.size:
        return None
    top = float(upper[0])
    return float((upper - lower).max()) / top if top > 0 else 0.0


def certify(
    pairs,
    size: int,
    total: float,
    rounding: tuple[Rounding, ...],
    *,
    definite: bool = False,
    above: float = 0.0,
    below: float = 0.0,
    projection: float | None = None,
    errors: Any = None,
) -> Certificate:
    """The certificate of an exact method.

    Parameters
    ----------
    pairs : Eigenpairs
        In order, rounding clipped.
    size : int
        Of the matrix.
    total : float
        The trace.
    rounding : tuple of Rounding
        Of the operator, and of its drafts where these are evidence.
    definite : bool
        Whether only rounding can make an eigenvalue negative.
    above, below : float
        Largest amounts by which eigenvalues of the matrix are too large, and too small.
    projection : float or None
        Rounding of the matrix where scores are computed; None for that of the fit.
    errors : callable or None
        Errors of what the vectors become, in place of `score_errors`.
    """
    values, slack = pairs.values, rounding[0].matrix
    floor = -INDEFINITE_SHARE * float(np.max(values, initial=0.0))
    if definite:
        floor -= slack
    indefinite = bool(pairs.least is not None and pairs.least < floor)
    around = pairs.residuals + slack
    bounded = bool(pairs.evidence) and pairs.bounded
    if bounded:
        lower, upper = proven_ends(pairs, size, total, rounding, definite)
    else:
        lower, upper = values - around, np.append(values + around, np.inf)
    floored = np.append(values, -np.inf)
    lower, upper = np.minimum(lower - above, values), np.maximum(upper + below, floored)
    likely, confidence = upper, None
    if bounded and any(seen.likely is not None for seen in pairs.evidence):
        rests = [np.inf if one.rest is None else one.rest for one in pairs.evidence]
        seen = tuple(
            one if one.likely is None else replace(one, rest=min(one.likely, rest))
            for one, rest in zip(pairs.evidence, rests, strict=True)
        )
        _, likely = proven_ends(replace(pairs, evidence=seen), size, total, rounding, definite)
        likely = np.maximum(np.minimum(likely + below, upper), floored)
        confidence = None if np.array_equal(likely, upper) else 1.0 - FAILURE
    narrow = np.maximum(2 * around, PROVEN_SHARE * np.max(np.abs(values), initial=0.0))
    clear = stand_above(values, np.maximum(likely[:-1] - lower, 2 * (slack + above + below)))
    proven = leading(clear & (likely[:-1] - lower <= narrow + above + below)) if bounded else 0
    if definite and not indefinite:
        lower = np.maximum(lower, 0.0)
    error = slack + rounding[0].trace + above + below
    held_error = float(around.sum()) if bounded else slack * values.size
    held, positive = float(values.sum()), (values > 0) & bounded
    # Along a direction K'u / sqrt(l) rows have the variance |K'u|^2 / l = l + |residual|^2 / l.
    most = held + held_error + float((around[positive] ** 2 / values[positive]).sum())
    share = shares(held - held_error, most, total - error, total + error)
    around = around + above + below
    score_error = (errors or score_errors)(values, around, lower, likely, projection or slack)
    kind: Any = "bound" if bounded else "estimate"
    run = share, pairs.converged, pairs.n_passes, indefinite
    facts: dict = {"n_proven": proven, "score_error": score_error if bounded else None}
    if confidence is not None:
        facts |= {"confidence": confidence, "likely_lower": lower, "likely_upper": likely[:-1]}
    residuals = pairs.residuals if pairs.bounded else None
    return Certificate(kind, lower, upper[:-1], residuals, *run, **facts)


def proven_ends(pairs, size, total, rounding, definite) -> tuple:
    """Lower ends of the first r eigenvalues and upper ends of the first r + 1.

    Every precision narrows the intervals of the one before it.
    """
    r = pairs.values.size
    lower, upper = np.full(r, -np.inf), np.full(r + 1, np.inf)
    coarse = None
    for seen in pairs.evidence:
        slack, k = rounding[seen.level], min(r, seen.values.size)
        least, coarse = interval_ends(seen, size, total, definite, slack, coarse, r + 8)
        lower[:k] = np.maximum(lower[:k], least[:k])
        upper = np.minimum(upper, first(coarse, r + 1))
    return lower, upper


def interval_ends(seen: Evidence, size, total, definite, slack, coarse, wanted: int) -> tuple:
    """Lower ends of the first k eigenvalues of A and upper ends of k + 1.

    The Ritz values are lower ends (Cauchy); for the others see `upper_ends`. `coarse` are upper
    ends of leading eigenvalues from a cheaper precision. With at most m eigenvalues above rho, and
    the first m Ritz values above it, the m leading eigenvalues are at most those of
    T + (T - rho)^{-1/2} R'R (T - rho)^{-1/2} (Lehmann 1949).
    """
    unit, values, k = seen.unit, seen.values, seen.values.size
    around = slack.matrix + unit * seen.doubt
    rests = rest_bounds(seen, size, total / unit, definite, slack.scaled(1 / unit))
    ends, before = upper_ends(seen, rests, wanted), np.full(k + 1, np.inf)
    if coarse is not None:
        before = first(coarse, k + 1)
        rho = (before[1:] + around) / unit
        apart = np.flatnonzero(values > rho)
        for m in part_sizes((rho - values)[: apart[-1] + 1], wanted) if apart.size else ():
            clear = np.sqrt(np.maximum(values[:m] - rho[m - 1], 0.0))
            if seen.RR is not None and clear[-1] > 0:
                above = np.diag(values[:m]) + seen.RR[:m, :m] / np.outer(clear, clear)
                ends[:m] = np.minimum(ends[:m], np.linalg.eigvalsh(above)[::-1])
    upper = np.minimum.accumulate(np.minimum(unit * ends + around, before))
    return unit * values - around, upper


def rest_bounds(
    seen: Evidence, size: int, total: float, definite: bool, slack: Rounding = NO_ROUNDING
) -> np.ndarray:
    """Bounds gamma on the eigenvalues of A orthogonal to the first 1, 2, ... k basis vectors.

    Parameters
    ----------
    seen : Evidence
    size, total : int, float
        Number of all eigenvalues, and their sum.
    definite : bool
        Whether only rounding makes any of them negative.
    slack : Rounding
    """
    values = seen.values
    if seen.RR is None and seen.rest is not None:
        return np.full(values.size, seen.rest)
    k = np.arange(1, values.size + 1)
    rest, rounding = total - np.cumsum(values), (k + 1) * slack.matrix + slack.trace
    bounds = np.full(k.size, np.inf)
    if seen.rest is not None or k.size >= size:
        bounds[-1] = values[-1] if seen.rest is None else seen.rest
    if definite:
        bounds = np.minimum(bounds, np.maximum(rest + rounding, 0.0))
    if seen.square is not None:
        m, norm = np.maximum(size - k, 1), np.sqrt(np.cumsum(values**2))
        RR = np.zeros(k.size) if seen.RR is None else np.diag(seen.RR)
        square = seen.square - norm**2 - 2 * np.cumsum(RR)
        square = square + slack.root**2 + 4 * slack.product * norm
        bounds = np.minimum(bounds, largest_of(m, rest, square, rounding))
    return bounds


def upper_ends(seen: Evidence, rests: np.ndarray, wanted: int) -> np.ndarray:
    """Upper ends of the first k + 1 eigenvalues of A, from `rest_bounds`.

    With no eigenvalue of A orthogonal to Q above gamma, A has at most as many eigenvalues above
    mu > gamma as T + R'R / (mu - gamma) has: by Schur's complement and Sylvester's law of inertia.
    The ends of the first `wanted` are as narrow as may be.
    """
    k, values = seen.values.size, seen.values
    if seen.RR is None:
        return np.append(values, rests[-1:])
    ends, parts = np.full(k + 1, np.inf), part_sizes(rests, wanted)
    for size in parts:
        gamma, theta, RR = float(rests[size - 1]), values[:size], seen.RR[:size, :size]
        ends[size:] = np.minimum(ends[size:], gamma)
        norm, clear = max(float(RR.trace()), 0.0) ** 0.5, theta[:wanted] - gamma
        ends[:size] = np.minimum(ends[:size], np.maximum(theta, gamma) + norm)
        if not (clear[0] > 0 and norm > ROUNDED * theta[0]):
            continue
        # Values of mu - gamma, from that for the first down to that for the last.
        T, top = np.diag(theta), float(clear[0])
        share = max(float(clear[clear > 0].min()) / top, 1 / 256)
        steps = 3 if len(parts) > 1 and size < 100 else 1
        for step in range(steps + 1 if share < 0.5 else 1):
            reach = top / 2 * share ** (step / steps)
            above = np.linalg.eigvalsh(T + RR / reach)[::-1]
            ends[:size] = np.minimum(ends[:size], np.maximum(above, gamma + reach))
    return np.minimum.accumulate(ends)


def part_sizes(left: np.ndarray, wanted: int) -> list[int]:
    """Sizes of a few leading parts of a basis, by what each leaves: the least serves all in it."""
    parts, size = [], 0
    while size < min(wanted, left.size):
        size += 1 + int(np.argmin(left[size:]))
        parts.append(size)
    return parts[:: -(-len(parts) // PARTS) or 1][: PARTS - 1] + parts[-1:]


def score_errors(values, around, lower, upper, slack) -> np.ndarray:
    """Root mean square error of the scores of the training rows, as a share of their own.

    Scores K'u / sqrt(l) are off by the angle, and have the residual over l beside.
    """
    safe = np.maximum(lower, np.maximum(around, np.finfo(float).tiny))
    error = 2**0.5 * sines(values, around, lower, upper)
    error = error + np.sqrt(np.maximum(upper[:-1], 0.0) / safe) - 1 + (around + slack) / safe
    return np.where(error < 1, error, np.nan)


def sines(values, around, lower, upper) -> np.ndarray:
    """Sines of the angles between vectors and the true ones; nan if eigenvalues may be equal.

    At most the residual over the distance to all other eigenvalues (Davis and Kahan).
    """
    least = np.maximum(around, np.finfo(float).tiny)
    gap = values - upper[1:]
    gap[1:] = np.minimum(gap[1:], lower[:-1] - values[1:])
    sine = least / np.maximum(gap, least)
    return np.where(sine < 1, sine, np.nan)


def mixed(known) -> list[tuple[int, int]]:
    """First and last number, from 1, of each run of components that nothing separates."""
    edges = np.flatnonzero(np.diff(np.concatenate([[True], known, [True]]).astype(int)))
    return [(int(a) + 1, int(b)) for a, b in edges.reshape(-1, 2)]


def stand_above(values, width) -> np.ndarray:
    """Whether values are too large to be zeros within intervals of this width."""
    return np.abs(values) > CLEAR / 2 * width


def first(ends, count: int) -> np.ndarray:
    """Upper ends of the first `count` eigenvalues: the last end also bounds all later ones."""
    return np.append(ends, np.full(count, ends[-1]))[:count]


def leading(proven) -> int:
    """Number of leading True values."""
    return int(np.argmin(np.append(proven, False)))


def projection_certificate(
    pairs,
    size: int,
    total: float,
    lost: float,
    slack: float = 0.0,
    remainder: Remainder | None = None,
    certain: bool = True,
    indefinite: bool = False,
    projection: float | np.ndarray = 0.0,
) -> Certificate:
    """The certificate of a method that works in a subspace of feature space.

    What the subspace leaves out of the Gram matrix, E, is positive semidefinite with trace
    `lost`, so each exact eigenvalue is at least the one found and at most |E| larger. The
    directions lie in the subspace, so the variance found along them is exact; the total
    is known up to the share of the mean that the subspace leaves out, which is at most |E|.

    Parameters
    ----------
    pairs : Eigenpairs
    size : int
        Of the small problem.
    total : float
        Trace of the centered Gram matrix, or at most |E| more.
    lost : float
    slack : float
        Rounding of each eigenvalue, at most.
    remainder : Remainder or None
        What is known of |E| beside its trace.
    certain : bool
        False where the subspace's inner products are themselves approximations, as those of
        random features are, or the kernel is indefinite: the same numbers are then estimates.
    indefinite : bool
    projection : float or array of shape (r,)
        Rounding where scores are computed.
    """
    values, lost = pairs.values, max(lost, 0.0)
    sure = lost if remainder is None else min(lost, remainder.sure)
    # Of the small problem: rounding, and values that were set to zero.
    slack = slack + float(np.max(pairs.residuals, initial=0.0))
    ends = np.append(values, np.inf)
    if pairs.evidence:
        _, ends = proven_ends(pairs, size, total - lost, (NO_ROUNDING,), True)
        ends = np.maximum(ends, np.append(values, 0.0))
    lower = np.maximum(values - slack, 0.0)
    upper = raised(ends, sure, lost) + slack
    around, narrow, likely = sure, (lower, upper), dict[str, Any]()
    if remainder is not None and np.isfinite(remainder.likely):
        around = remainder.likely
        low, high = values - around, ends + around
        if remainder.definite:
            low, high = values, raised(ends, min(around, lost), lost)
        narrow = np.maximum(low - slack, 0.0), high + slack
        likely = {"confidence": remainder.confidence}
        likely |= {"likely_lower": narrow[0], "likely_upper": narrow[1][:-1]}
        if not certain:  # nothing better is known
            lower, upper = narrow
    held, most = (lower if certain else values).sum(), values.sum() + slack * values.size
    share = shares(held, most, total - sure - slack, total + slack)
    error, proven = None, 0
    if certain or likely:
        off = np.full(values.size, around + slack)
        error = score_errors(values, off, *narrow, slack + projection)
        proven = leading(np.isfinite(error))
    kind: Any = "bound" if certain else "estimate"
    facts = likely | {"indefinite": indefinite, "n_proven": proven, "score_error": error}
    return Certificate(kind, lower, upper[: values.size], None, share, pairs.converged, **facts)


def narrowed(certificate: Any, problem: Any, pairs: Any) -> Any:
    """The certificate of a `ReducedProblem`, with intervals from a product with the exact matrix A.

    The scores found are the basis Q of the `Evidence`. What is left, C = (I - QQ')A(I - QQ'), is
    bounded for certain, and at a confidence by random vectors: for the top eigenvector w of C and
    G of independent normal numbers, |C|^2 |G'w|^2 is at most the largest eigenvalue of (CG)'CG,
    and |G'w|^2 is chi-squared.
    """
    exact, values, r = problem.exact, pairs.values, len(pairs.values)
    features = not problem.basis.exact_norms
    B = np.asfortranarray(to_numpy(problem.operator.to_dense()))
    leads, U = leading_eigh(B, min(r + SPARE, len(B)))
    S = to_numpy(problem.expand(replace(pairs, values=leads, vectors=U)).scores(exact.basis.points))
    S = S[:, leads > 0]
    if not S.shape[1]:
        return certificate
    with exact.session(keeps_tiles=False) as A:
        slack = 2 * exact.slack
        if A.draft is not None and (features or problem.lost > SINGLE_LOST * problem.scale):
            A, slack = A.draft, slack + 4 * SINGLE_ENTRY * exact.scale
        operator, unit = in_ordinary_units(A)
        Q, _ = np.linalg.qr(S if A.weights is None else np.sqrt(A.weights)[:, None] * S)
        G = np.random.default_rng([problem.seed, 1]).standard_normal((len(Q), PROBES))
        V = operator.vectors(np.hstack([Q, G - Q @ (Q.T @ G)]))
        AV, total, square = to_numpy(operator @ V), float(A.diagonal().sum()), operator.square()
        noise = replace(exact.roundings()[0], matrix=slack, product=slack).scaled(1 / unit)
    QAV, k = Q.T @ AV, Q.shape[1]
    theta, Y = small_eigh(QAV[:, :k])
    R = AV - Q @ QAV
    seen = Evidence(theta, Y.T @ self_product(R[:, :k]) @ Y, square)
    sure = rest_bounds(seen, len(Q), total / unit, True, noise)
    if not features:
        # What the span has beyond these components, and what it leaves out.
        left = problem.lost if problem.remainder is None else problem.remainder.sure
        rest = (leads[-1] if len(leads) < len(B) else 0.0) + problem.slack
        sure[-1] = min(sure[-1], (rest + max(left, 0.0) + slack) / unit)
    likely, probed = sure.copy(), np.linalg.norm(R[:, k:], 2)
    probed = probed / np.sqrt(2 * gammaincinv(PROBES / 2, FAILURE)) + noise.matrix
    likely[-1:] = np.minimum(likely[-1:], probed)
    both = (first(upper_ends(seen, g, r + 8), r + 1) for g in (sure, likely))
    sure, likely = (np.maximum(unit * end + slack, np.append(values, 0.0)) for end in both)
    # What was found stays within its interval.
    lower = np.pad(theta[:r], (0, max(r - k, 0))) * unit - slack
    lower = np.maximum(np.minimum(values, lower), 0.0)
    if certificate.kind == "bound":
        lower = np.maximum(lower, certificate.eigenvalue_lower)
        sure[:-1] = np.minimum(sure[:-1], certificate.eigenvalue_upper)
        likely = np.minimum(likely, sure)
    # The scores found are nearly eigenvectors of A: their residuals.
    lengths = unit * np.linalg.norm(AV[:, : min(r, k)] - Q[:, :r] * (values[:k] / unit), axis=0)
    around = np.append(lengths, np.full(r - lengths.size, np.inf)) + slack
    # Rows are projected by the coordinates that the fit found.
    rounding = slack + problem.slack + problem.projection(pairs)
    error = score_errors(values, around, lower, likely, rounding)
    upper = (sure if certificate.kind == "bound" else likely)[:-1]
    confidence = 1.0 if np.array_equal(sure, likely) else 1.0 - FAILURE
    ends = {"eigenvalue_lower": lower, "eigenvalue_upper": upper, "likely_lower": lower}
    facts = {"n_proven": leading(np.isfinite(error)), "score_error": error}
    return replace(certificate, **ends, **facts, likely_upper=likely[:-1], confidence=confidence)


def raised(values, norm: float, trace: float) -> np.ndarray:
    """Largest eigenvalues that a matrix with these can have after E >= 0 is added to it.

    The k-th eigenvalue of E is at most trace / k, and at most its norm; by Weyl's inequality the
    i-th of the sum is at most the j-th of the matrix plus the (i - j + 1)-th of E, j <= i.
    """
    k = np.arange(1, len(values) + 1)
    steps = np.minimum(norm, trace / k)
    # Row i, column j: value j and step i - j.
    back = k[:, None] - k[None, :]
    sums = np.where(back >= 0, values[None, :] + steps[np.maximum(back, 0)], np.inf)
    return sums.min(axis=1, initial=np.inf)


def shares(low: float, high: float, least: float, most: float) -> tuple[float, float]:
    """Ends of a share whose part is in [low, high] and whose total is in [least, most]."""
    if most <= 0:
        return 0.0, 0.0
    bottom = low / most
    top = high / least if least > 0 else 1.0
    # Plain numbers, as they stand in records and are printed.
    return float(min(max(bottom, 0.0), 1.0)), float(min(max(top, 0.0), 1.0))


def confidence_text(confidence: float) -> str:
    """A probability near one."""
    return f"1 - {1 - confidence:.0e}".replace("e-0", "e-")


def plain(value):
    """A number, text or list in place of arrays."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple):
        return [plain(one) for one in value]
    return value.item() if isinstance(value, np.generic) else value


def _interval(low: float, high: float) -> str:
    """Two numbers to the digits in which they differ."""
    for digits in range(1, 9):
        if f"{low:.{digits}f}" != f"{high:.{digits}f}":
            return f"{low:.{digits}f} to {high:.{digits}f}"
    return f"{low:.4f}"
