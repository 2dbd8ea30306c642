"""What solvers share: the result, the report after each pass, order and sign, small dense steps.

Eigenpairs are ordered, clipped and signed here and nowhere else. In the small steps big arrays are
(n, b) and stay in their library and on their device; small ones are on the host, in NumPy: a device
gains nothing on them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dtrtri
from sklearn.base import BaseEstimator, clone

from ..compute import array_namespace, on_device_of, to_numpy
from ..compute.arrays import placement_of
from ..compute.linalg import cholesky, eigh, peak_signs, times_few
from ..operators import SymmetricOperator
from ..operators.base import padded

# Least pivot of the scaled Gram matrix of a block: below, its condition number squared
# leaves fewer than half of the digits.
CHOLESKY_LEAST = 1e-4
# Chance that a likely interval is wrong.
FAILURE = 1e-6
# Length that a unit vector keeps when it is projected a second time, unless it was rounding.
LEAST_KEPT = 0.5
# Length, as a share of the longest column of a block, below which what is left of one is rounding.
LEAST_LENGTH = 8 * np.finfo(float).eps


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
    likely : float or None
        Such a bound that fails with probability `FAILURE` at most.
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
    likely: float | None = None
    level: int = 0
    doubt: float = 0.0
    unit: float = 1.0

    def most_above(self, mu: float) -> float:
        """Largest possible number of eigenvalues above mu, by sums of squares; inf without them.

        See `fitting.certificate.upper_ends`.
        """
        if self.square is None or self.RR is None:
            return np.inf
        left = self.square - self.values @ self.values - 2 * float(np.trace(self.RR))
        clear = mu - np.sqrt(max(left, 0.0) + 1e-14 * self.square)
        if not clear > 0:
            return np.inf
        return int(np.sum(np.linalg.eigvalsh(np.diag(self.values) + self.RR / clear) > mu))


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
        values, residuals = self.values[:count], self.residuals[:count]
        return replace(self, values=values, vectors=self.vectors[:, :count], residuals=residuals)


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

    #: Why a plan has it.
    reason = "asked for as eigen_solver"
    #: The parameter that limits its passes, or None.
    _cap_name: ClassVar[str | None] = None

    @property
    def most_passes(self) -> int | None:
        """The limit on its passes, or None."""
        return None if self._cap_name is None else self.get_params(deep=False)[self._cap_name]

    def vectors_held(self, n_components: int) -> int:
        """Vectors of length n that it holds at its peak, the result among them."""
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


def small_eigh(T):
    """All eigenpairs of a small symmetric matrix, largest first."""
    # Rounding leaves the triangles of T unequal, and LAPACK reads only one.
    values, V = eigh((T + T.T) / 2)
    return values[::-1], V[:, ::-1]


def column_norms(V):
    """Euclidean norms of the columns, (b,), on the host."""
    if isinstance(V, np.ndarray):
        return np.sqrt(np.einsum("ij,ij->j", V, V))
    xp = array_namespace(V)
    return to_numpy(xp.sqrt(xp.sum(V * V, axis=0)))


def inner(V, W):
    """V'W on the host, for tall V and W."""
    return to_numpy(V.T @ W)


def times(V, Y):
    """V Y for a tall V and a small Y of the host."""
    return times_few(V, on_device_of(Y, V))


def tall(V, k: int):
    """An array for k columns beside V, each column in one piece."""
    xp = array_namespace(V)
    return xp.empty((k, V.shape[0]), dtype=V.dtype, **placement_of(V)).T


def qr(V):
    """Householder QR of a tall V: Q beside V, R on the host."""
    Q, R = array_namespace(V).linalg.qr(V)
    return Q, to_numpy(R)


def largest_of(m, total, square, slack=0.0):
    """Bound on the largest of m numbers by their sum and sum of squares.

    Wolkowicz & Styan (1980); the sum is known to within `slack`.
    """
    spread = square - m * np.maximum(np.abs(total) - slack, 0.0) ** 2 / m**2
    return (total + slack) / m + np.sqrt(np.maximum(spread, 0.0) * (m - 1) / m)


def rayleigh_ritz(V, AV):
    """Ritz values in the span of V, Ritz vectors U and A U, from A V."""
    V, R = orthonormal(V)
    AV = times(AV, np.linalg.inv(R))
    values, Y = small_eigh(inner(V, AV))
    return values, times(V, Y), times(AV, Y)


def orthonormal(W):
    """An orthonormal basis V of W's columns to rounding, with W = V R, R on the host."""
    V, R = orthonormalize(W)
    V, again = orthonormalize(V)
    return V, again @ R


def orthonormal_against(W, Q):
    """An orthonormal basis V of W's columns orthogonal to Q's, with W = Q C + V B.

    Twice is enough: the second projection repairs columns that were almost in the span of
    Q and so are mostly rounding.

    Returns
    -------
    V : array of shape (n, b)
    C : array of shape (q, b), Q'W
    B : array of shape (b, b)
    """
    C = inner(Q, W)
    V, B = orthonormalize(W - times(Q, C))
    again = inner(Q, V)
    V, R = orthonormalize(V - times(Q, again))
    C, sound = C + again @ B, np.abs(np.diag(R)) >= LEAST_KEPT
    if sound.all() or not np.isfinite(C).all():
        return V, C, R @ B
    # A column that is rounding may have turned the others into it. Where Q spans all that a matrix
    # of low rank reaches, random columns take the place of such.
    X = W - times(Q, C)
    V, lengths, _ = array_namespace(X).linalg.svd(X - times(Q, inner(Q, X)), full_matrices=False)
    most = float(np.max(column_norms(W), initial=0.0))
    V = V[:, : int(np.sum(to_numpy(lengths) > LEAST_LENGTH * most))]
    V = padded(V, W.shape[1], np.random.default_rng(Q.shape[1]))
    for _ in range(3):
        V, _ = qr(V - times(Q, inner(Q, V)))
    return V, C, inner(V, W)


def orthonormalize(W):
    """An orthonormal basis V of the columns of W, (n, b), with W = V R.

    By the Cholesky factor of W'W, which is all GEMM, where W is well enough conditioned for
    it, else by Householder reflections. Call it twice for orthogonality to rounding.
    """
    G = inner(W, W)
    scale = np.sqrt(np.diag(G))
    scale = np.where(scale == 0, 1.0, scale)
    try:
        R = cholesky(G / np.outer(scale, scale), check_finite=False)
    except LinAlgError:
        return qr(W)
    if np.min(np.diag(R)) < CHOLESKY_LEAST:
        return qr(W)
    R *= scale
    inverse, _ = dtrtri(R)
    return times(W, inverse), R
