"""What solvers share: the result, the report after each pass, order and sign.

Ordering, clipping and signing happen here and nowhere else.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone

from ..compute import on_device_of
from ..compute.linalg import peak_signs
from ..operators import SymmetricOperator
from ._linalg import inner


@dataclass(frozen=True)
class Rounding:
    """What rounding may change in a matrix and in products with it.

    Attributes
    ----------
    matrix : float
        The matrix, in norm.
    product : float
        A product with a unit vector.
    root : float
        The sum of the squares of all entries: the root of that.
    trace : float
        The sum of the diagonal, beside the rounding of the matrix.
    """

    matrix: float = 0.0
    product: float = 0.0
    root: float = 0.0
    trace: float = 0.0

    def scaled(self, unit: float) -> "Rounding":
        """The same of the matrix times a number."""
        return Rounding(*(unit * part for part in vars(self).values()))


NO_ROUNDING = Rounding()


@dataclass(frozen=True)
class Evidence:
    """What the products with an orthonormal basis Q say about all eigenvalues of a matrix A.

    With T = Q'AQ, R = A Q - Q T, and no eigenvalue of A orthogonal to Q above gamma, A has at most
    as many eigenvalues above mu > gamma as T + R'R / (mu - gamma) has: by Schur's complement and
    Sylvester's law of inertia. Those of T are lower ends (Cauchy).

    Attributes
    ----------
    values : array of shape (k,)
        Ritz values, largest first: T is diagonal.
    RR : array of shape (k, k) or None
        R'R; None where it is zero but for the doubt.
    square : float or None
        The sum of the squares of all eigenvalues of A.
    rest : float or None
        A value for gamma, where it is known.
    level : int
        0 where A is the operator itself, 1 for its draft, 2 for the draft of that.
    doubt : float
        What the values may be off by, beside rounding.
    unit : float
        What all these are shares of; squares may be no ordinary numbers otherwise.
    """

    values: np.ndarray
    RR: Any = None
    square: float | None = None
    rest: float | None = None
    level: int = 0
    doubt: float = 0.0
    unit: float = 1.0

    def between(
        self,
        size: int,
        total: float,
        definite: bool,
        slack: Rounding,
        coarse: np.ndarray | None,
        wanted: int,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Lower ends of the first k eigenvalues of A and upper ends of k + 1; see `rests`.

        `coarse` are upper ends of leading eigenvalues that are known already. With at most m
        eigenvalues above rho, and the first m Ritz values above it, the m leading eigenvalues are
        at most those of T + (T - rho)^{-1/2} R'R (T - rho)^{-1/2} (Lehmann 1949).
        """
        unit, values, k = self.unit, self.values, self.values.size
        around = slack.matrix + unit * self.doubt
        rests = self.rests(size, total / unit, definite, slack.scaled(1 / unit))
        ends, known = self.ends(rests, wanted), np.full(k + 1, np.inf)
        if coarse is not None:
            known = np.append(coarse, np.full(k + 1, coarse[-1]))[: k + 1]
            rho = (known[1:] + around) / unit
            apart = np.flatnonzero(values > rho)
            for m in serving((rho - values)[: apart[-1] + 1], wanted) if apart.size else ():
                clear = np.sqrt(np.maximum(values[:m] - rho[m - 1], 0.0))
                if self.RR is not None and clear[-1] > 0:
                    raised = np.diag(values[:m]) + self.RR[:m, :m] / np.outer(clear, clear)
                    ends[:m] = np.minimum(ends[:m], np.linalg.eigvalsh(raised)[::-1])
        upper = np.minimum.accumulate(np.minimum(unit * ends + around, known))
        return unit * values - around, upper

    def rests(
        self,
        size: int,
        total: float,
        definite: bool,
        slack: Rounding = NO_ROUNDING,
    ) -> np.ndarray:
        """Gamma for the first 1, 2, ... k vectors of the basis alone: the least of some bounds.

        Parameters
        ----------
        size, total : int, float
            Number of all eigenvalues, and their sum.
        definite : bool
            Whether only rounding makes any of them negative.
        slack : Rounding
        """
        if self.RR is None and self.rest is not None:
            return np.full(self.values.size, self.rest)
        k = np.arange(1, self.values.size + 1)
        rest, off = total - np.cumsum(self.values), (k + 1) * slack.matrix + slack.trace
        found = np.full(k.size, np.inf)
        if self.rest is not None or k.size >= size:
            found[-1] = self.values[-1] if self.rest is None else self.rest
        if definite:
            found = np.minimum(found, np.maximum(rest + off, 0.0))
        if self.square is not None:
            # Of m numbers with this sum and sum of squares (Wolkowicz and Styan 1980).
            m, norm = np.maximum(size - k, 1), np.sqrt(np.cumsum(self.values**2))
            RR = np.zeros(k.size) if self.RR is None else np.diag(self.RR)
            square = self.square - norm**2 - 2 * np.cumsum(RR)
            square = square + slack.root**2 + 4 * slack.product * norm
            spread = square - m * np.maximum(np.abs(rest) - off, 0.0) ** 2 / m**2
            spread = np.sqrt(np.maximum(spread, 0.0) * (m - 1) / m)
            found = np.minimum(found, (rest + off) / m + spread)
        return found

    def ends(self, rests: np.ndarray, wanted: int) -> np.ndarray:
        """Upper ends of the first k + 1 eigenvalues of A, by gamma for each part of the basis.

        Those of the first `wanted` are as narrow as may be.
        """
        k, values = self.values.size, self.values
        if self.RR is None:
            return np.append(values, rests[-1:])
        ends, parts = np.full(k + 1, np.inf), serving(rests, wanted)
        for size in parts:
            gamma, theta, RR = float(rests[size - 1]), values[:size], self.RR[:size, :size]
            ends[size:] = np.minimum(ends[size:], gamma)
            norm, clear = max(float(RR.trace()), 0.0) ** 0.5, theta[:wanted] - gamma
            ends[:size] = np.minimum(ends[:size], np.maximum(theta, gamma) + norm)
            if not (clear[0] > 0 and norm > 0):
                continue
            # Values of mu - gamma, from that for the first down to that for the last.
            T, top = np.diag(theta), float(clear[0])
            share = max(float(clear[clear > 0].min()) / top, 1 / 256)
            steps = 3 if len(parts) > 1 and size < 100 else 1
            for step in range(steps + 1 if share < 0.5 else 1):
                reach = top / 2 * share ** (step / steps)
                raised = np.linalg.eigvalsh(T + RR / reach)[::-1]
                ends[:size] = np.minimum(ends[:size], np.maximum(raised, gamma + reach))
        return np.minimum.accumulate(ends)


def serving(left: np.ndarray, wanted: int) -> list[int]:
    """Sizes of a few parts of a basis: one that leaves the least serves all that it has."""
    parts, size = [], 0
    while size < min(wanted, left.size):
        size += 1 + int(np.argmin(left[size:]))
        parts.append(size)
    return parts[:: -(-len(parts) // PARTS) or 1][: PARTS - 1] + parts[-1:]


@dataclass(frozen=True)
class Eigenpairs:
    """Leading eigenpairs of a symmetric operator, largest first.

    Attributes
    ----------
    values : array of shape (r,)
    vectors : array of shape (n, r)
        Orthonormal columns.
    residuals : array of shape (r,)
        ``|A u - l u|``: a true eigenvalue lies within it of each value.
    converged : bool
    n_passes : int
        Products with the operator, drafts included.
    least : float or None
        Some eigenvalue is at most about this: negative for an indefinite operator.
    bounded : bool
        False where the residuals are not known, and `residuals` only say how far the next
        eigenvalue is at most from each value.
    ritz : bool
        Whether U'U = I and U'AU = L, as Rayleigh-Ritz makes them. Estimates that are read without
        it have directions U L^{-1/2} that are orthonormal only in the limit.
    searched : bool
        Whether `least` comes from a search of the whole matrix for negative eigenvalues.
    evidence : tuple of Evidence
        What is known of all eigenvalues, from the coarsest precision to the finest.
    history : History or None
        Of Hebbian rules: what was seen pass by pass.
    """

    values: np.ndarray
    vectors: np.ndarray
    residuals: np.ndarray
    converged: bool = True
    n_passes: int = 1
    least: float | None = None
    bounded: bool = True
    ritz: bool = True
    searched: bool = False
    evidence: tuple[Evidence, ...] = ()
    history: Any = None

    def scaled(self, unit: float) -> "Eigenpairs":
        """The pairs of the operator times a number."""
        if unit == 1.0:
            return self
        least = None if self.least is None else self.least * unit
        values, residuals = self.values * unit, self.residuals * unit
        seen = tuple(replace(e, unit=e.unit * unit) for e in self.evidence)
        return replace(self, values=values, residuals=residuals, least=least, evidence=seen)

    def leading(self, count: int) -> "Eigenpairs":
        """The first `count` pairs."""
        return replace(
            self,
            values=self.values[:count],
            vectors=self.vectors[:, :count],
            residuals=self.residuals[:count],
        )


def ritz_evidence(values, U, AU, square: float | None = None, level: int = 0) -> Evidence:
    """What Ritz pairs and the products A U say."""
    R = AU - U * on_device_of(values, U)
    return Evidence(values, inner(R, R), square, level=level)


class NoConvergence(ValueError):
    """A solver that ended without the eigenpairs it was asked for."""


@dataclass(frozen=True)
class PassState:
    """What a solver knows after a pass; handed to the progress bar and to the callback.

    Attributes
    ----------
    n_passes : int
    values : array of shape (r,)
        Current eigenvalue estimates.
    residual : float
        Largest residual of the wanted pairs as a share of the largest eigenvalue.
    tol : float
        What the residual is to fall below.
    """

    n_passes: int
    values: np.ndarray
    residual: float
    tol: float


#: Called after each pass; True asks the solver to stop.
Report = Callable[[PassState], bool]


def silent(state: PassState) -> bool:
    """A report that says nothing and never stops."""
    return False


# Residuals, as shares of the largest eigenvalue, below which float64 passes gain nothing
# for eigenvalues (their error is the square): what tol=0 asks for.
FULL_FLOOR = 1e-9
# Parts of a basis at most that upper ends are looked for with.
PARTS = 4


class Solver(BaseEstimator, ABC):
    """A recipe for eigenpairs: parameters only."""

    #: Whether it makes so many products that tiles are worth keeping between them.
    keeps_tiles = True
    #: With tol=0, stops after a fixed number of passes.
    ends_by_passes = False
    #: Whether it reads rows of the matrix, `block` at a time, rather than making products with it.
    reads_rows = False
    #: For positive semidefinite operators only.
    needs_definite = False

    def cap(self, max_iter: int | None) -> "Solver":
        """The same recipe with at most `max_iter` passes; itself for None or where it has none."""
        name = self._cap_name
        if max_iter is None or name is None:
            return self
        return clone(self).set_params(**{name: max_iter})

    #: The parameter that limits its passes, or None.
    _cap_name: ClassVar[str | None] = None

    @property
    def most_passes(self) -> int | None:
        """The limit on its passes, or None."""
        return None if self._cap_name is None else self.get_params(deep=False)[self._cap_name]

    def vectors_held(self, n_components: int) -> int:
        """Vectors of length n that it holds at its peak, the result among them.

        ARPACK holds twice as many as asked for, and 20 at least; subspace iteration fewer.
        """
        return max(6 * n_components + 40, 5 * (n_components + 10))

    @abstractmethod
    def solve(
        self,
        operator: SymmetricOperator,
        n_components: int,
        rng: np.random.Generator,
        tol: float = 0.0,
        report: Report = silent,
    ) -> Eigenpairs:
        """The `n_components` largest eigenpairs of a symmetric operator.

        Parameters
        ----------
        operator : SymmetricOperator
        n_components : int
        rng : numpy.random.Generator
        tol : float
            Residual to reach as a share of the largest eigenvalue; 0 for what the
            arithmetic allows.
        report : callable

        Returns
        -------
        Eigenpairs
        """


def reported(
    report: Report,
    tol: float,
    values: np.ndarray,
    vectors: np.ndarray,
    residuals: np.ndarray,
    n_passes: int,
    **found,
) -> Eigenpairs:
    """The pairs of a solver's last pass, reported; converged where the residuals say so."""
    share = float(np.max(residuals) / max(abs(values[0]), np.finfo(float).tiny))
    report(PassState(n_passes, values, share, tol))
    found.setdefault("converged", share <= max(tol, FULL_FLOOR))
    return Eigenpairs(values, vectors, residuals, n_passes=n_passes, **found)


def no_variance(n: int, r: int) -> Eigenpairs:
    """The pairs of a zero operator."""
    nothing = Evidence(np.zeros(r), rest=0.0)
    return Eigenpairs(np.zeros(r), np.eye(n, r), np.zeros(r), n_passes=0, evidence=(nothing,))


# Negative eigenvalues above this share of the largest are rounding of a zero, smaller
# ones a property of the matrix. The shares are scikit-learn's.
NEGATIVE_SHARE = {"f": 5e-3, "d": 1e-5}
# Positive ones below this share are zeros as well.
ZERO_SHARE = {"f": 2e-7, "d": 1e-12}


def canonical(pairs: Eigenpairs, precision: str = "d", rounding: float = 0.0) -> Eigenpairs:
    """Sorted, rounding clipped to zero, each vector's largest entry positive.

    `rounding` is what the arithmetic may have changed eigenvalues by.

    Raises
    ------
    ValueError
        If a wanted eigenvalue is negative beyond rounding: its direction has no
        variance, and the operator is not positive semidefinite.
    """
    values = clip_rounding(pairs.values, precision, rounding)
    # A value set to zero moves away from the true one it was near.
    residuals = pairs.residuals + np.abs(values - pairs.values)
    vectors = pairs.vectors
    if (values[1:] > values[:-1]).any():
        order = np.argsort(-values, kind="stable")
        vectors = vectors[:, on_device_of(order, vectors)]
        values, residuals = values[order], residuals[order]
    vectors = vectors * on_device_of(peak_signs(vectors), vectors)
    return replace(pairs, values=values, vectors=vectors, residuals=residuals)


def clip_rounding(values, precision: str = "d", rounding: float = 0.0) -> np.ndarray:
    """Eigenvalues with rounding set to zero; negative ones beyond rounding are an error."""
    top = float(np.max(values, initial=0.0))
    least = float(np.min(values, initial=0.0))
    if least < -NEGATIVE_SHARE[precision] * max(top, np.finfo(float).tiny) - rounding:
        raise ValueError(
            f"There are significant negative eigenvalues ({least:.3g} against a largest of "
            f"{top:.3g}): the kernel matrix is not positive semidefinite. Ask for fewer "
            "components, or use a positive semidefinite kernel."
        )
    return np.where(values > ZERO_SHARE[precision] * top, values, 0.0)
