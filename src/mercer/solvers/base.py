"""What solvers share: the result, the report after each pass, order and sign.

Eigenpairs are ordered, clipped and signed here and nowhere else.
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
class Evidence:
    """Products A Q of a matrix A with an orthonormal basis Q, as the certificate needs them.

    Attributes
    ----------
    values : array of shape (k,)
        Ritz values, largest first: T = Q'AQ is diagonal.
    RR : array of shape (k, k) or None
        R'R of the residuals R = A Q - Q T; None where R is zero but for `doubt`.
    square : float or None
        The sum of the squares of all eigenvalues of A.
    rest : float or None
        A bound on the eigenvalues of A orthogonal to Q, where there is one.
    level : int
        0 where A is the operator itself, 1 for its draft, 2 for the draft of that.
    doubt : float
        Largest error of the values, beside rounding.
    unit : float
        All other numbers are multiples of this one; without it squares may overflow.
    """

    values: np.ndarray
    RR: Any = None
    square: float | None = None
    rest: float | None = None
    level: int = 0
    doubt: float = 0.0
    unit: float = 1.0


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
        An upper bound, up to rounding, on the smallest eigenvalue: negative if indefinite.
    bounded : bool
        False if residuals were not computed, and `residuals` only bound the distance of each value
        to the nearest eigenvalue.
    ritz : bool
        True if U'U = I and U'AU = L, as after Rayleigh-Ritz. Without it directions U L^{-1/2} are
        orthonormal only in the limit.
    searched : bool
        True if the matrix was searched for negative eigenvalues.
    evidence : tuple of Evidence
        Records of products, from the coarsest precision to the finest.
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


def ritz_evidence(values, U, AU, square: float | None = None) -> Evidence:
    """The products A U with Ritz vectors U."""
    R = AU - U * on_device_of(values, U)
    return Evidence(values, inner(R, R), square)


class NoConvergence(ValueError):
    """A solver that ended without the eigenpairs it was asked for."""


@dataclass(frozen=True)
class PassState:
    """State of a solver after a pass, for the progress bar and the callback.

    Attributes
    ----------
    n_passes : int
    values : array of shape (r,)
        Current eigenvalue estimates.
    residual : float
        Largest residual of the wanted pairs as a share of the largest eigenvalue.
    tol : float
        Residual to reach.
    """

    n_passes: int
    values: np.ndarray
    residual: float
    tol: float


#: Called after each pass; returns True to stop the solver.
Report = Callable[[PassState], bool]


def silent(state: PassState) -> bool:
    """A report that says nothing and never stops."""
    return False


# Residuals, as shares of the largest eigenvalue, below which float64 passes gain nothing
# for eigenvalues (their error is the square): what tol=0 asks for.
FULL_FLOOR = 1e-9


class Solver(BaseEstimator, ABC):
    """A recipe for eigenpairs: parameters only."""

    #: True if it makes enough products for tiles to be worth keeping between them.
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


def reported(pairs: Eigenpairs, report: Report, tol: float) -> Eigenpairs:
    """The pairs of a solver's last pass, after a report; converged if the residuals say so."""
    share = float(np.max(pairs.residuals) / max(abs(pairs.values[0]), np.finfo(float).tiny))
    report(PassState(pairs.n_passes, pairs.values, share, tol))
    return replace(pairs, converged=share <= max(tol, FULL_FLOOR))


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

    `rounding` is the largest error of the eigenvalues by arithmetic.

    Raises
    ------
    ValueError
        If a wanted eigenvalue is negative beyond rounding: its direction has no
        variance, and the operator is not positive semidefinite.
    """
    values = clip_rounding(pairs.values, precision, rounding)
    # Setting a value to zero adds to its distance from the true one.
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
