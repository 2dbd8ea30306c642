"""The Kernel Hebbian rules in exact blocks: rows by GEMM, the recursion in small matrices.

A rule holds the coefficients A (r, n) of the directions W = A Phi' and moves them by one block
of samples at a time, with the same iterates as the rule that visits one sample at a time.
A block takes its b Gram rows, C = A K'[:, P], a sweep in matrices of size r + b (`_numba`), and
A <- T A + D E': 4 r b n operations besides the rows, against 2 d b n for the rows themselves.
A block is accepted whole or not at all, so that an overflow or an interrupt leaves A valid.

References
----------
Schraudolph, Günter, Vishwanathan (2007), Fast iterative kernel PCA, NIPS 19 (equation numbers).
Kim, Franz, Schölkopf (2005), Iterative kernel principal component analysis, IEEE TPAMI 27.
"""

from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, solve_triangular

from ..compute import Array, array_namespace, dtype_name, on_device_of, to_numpy
from ..compute.linalg import cholesky
from ..solvers.base import column_norms

RETRIES = 40  # halvings of the gain: beyond that the rows themselves are not finite
GROWTH = 1e6  # a block that multiplies A by more than this diverges


class RunningEigenvalues:
    """Equation 13 at every step, as Algorithm 1 has it: l_i = |A_i K'| / |A_i|.

    A K' is carried as in equation 18, a block at a time. Within a block the squared lengths are
    diagonals of A K'^2 A' and A A', which follow the steps in matrices of size r + b: the same
    numbers as the listing's, without its O(r n) a sample. Memory r n.

    Parameters
    ----------
    S : array (r, n)
        A K' at the start.
    eta0 : float
        Free parameter of equation 12.
    floor : float
        Least eigenvalue to divide by.
    """

    def __init__(self, S: Array, eta0: float, floor: float):
        self.S, self.eta0, self.floor = S, eta0, floor

    def look(self, A: Array, index: Array, rows: Array) -> None:
        """Take the rows of the coming block, (b, n)."""
        self.rows = rows
        S, R = self.S, rows
        squares = (S @ S.T, S @ R.T, R @ R.T)
        lengths = (A @ A.T, A[:, index], np.eye(len(index)))
        self._forms = tuple(tuple(map(plain, form)) for form in (squares, lengths))

    def forms(self) -> Any:
        """(A H A', A H E, E' H E) for H = K'^2 and H = I, to be overwritten."""
        return tuple(tuple(X.copy() for X in form) for form in self._forms)

    def follow(self, T: Array, D: Array) -> None:
        """A <- T A + D E' was accepted."""
        self.S = in_type_of(T, self.S) @ self.S + in_type_of(D, self.S) @ self.rows

    def values(self, A: Array) -> np.ndarray:
        """Equation 13 for the rows of A, whose outputs are the ones carried."""
        return column_norms(self.S.T) / lengths_of(A)


class HebbianRule:
    """Equations 7 to 11: A <- A + diag(gain) (y e' - lt(y y') A), sample by sample.

    Parameters
    ----------
    A : array (r, n)
        Start.
    cap : float
        Largest effective gain of row i times the sum of y_j^2, j <= i. At 1 it keeps a step from
        overshooting and seldom acts, so that the limit stays the same; infinity turns it off.
    running : RunningEigenvalues or None
        Sets the rates anew before every step, whatever rates are passed.

    Attributes
    ----------
    brake : float
        Factor on the gains, halved each time a block had to be taken back.
    """

    #: Logarithms of the factors that meta-descent puts on the gains.
    rho: Any = 0.0

    #: What changes from block to block.
    memory: tuple[str, ...] = ("A", "cap", "brake")

    def __init__(self, A: Array, cap: float = 1.0, running: RunningEigenvalues | None = None):
        self.A, self.cap, self.brake, self.running = A, cap, 1.0, running

    @property
    def factors(self) -> Array:
        """What the Gram rows of a block are multiplied with, (n, k)."""
        return self.A.T

    def state(self) -> tuple:
        """The state of the rule, as numbers and arrays of the host."""
        state = [vars(self)[name] for name in self.memory]
        state += [] if self.running is None else [self.running.S]
        return tuple(to_numpy(x) if np.ndim(x) else float(x) for x in state)

    def go_on(self, state: tuple) -> None:
        """Continue from a result of `state`."""
        for name, x in zip(self.memory, state, strict=False):
            old = vars(self)[name]
            vars(self)[name] = x if isinstance(x, float) else on_device_of(x, old)
        if self.running is not None:
            self.running.S = on_device_of(state[-1], self.A)

    def step(self, index: Array, rows: Array, rates: Array, decay: float, t: float) -> Array:
        """Visit the points `index`, whose Gram rows are `rows` (b, n); return the outputs (r, b).

        Without an index the rows are coordinates of the points, and those of A the directions
        themselves: the linear rule, with the same outputs. There is no running estimate then.

        rates (r,) are the gains at time zero, which fall as 1 / (1 + decay time); t is the time
        of the first sample.
        """
        if self.running is not None:
            self.running.look(self.A, index, rows)
        K = plain(rows @ rows.T if index is None else rows[:, index])
        C, where = plain(rows @ self.factors), rows if index is None else index
        for _ in range(RETRIES):
            move, Y = self._propose(C, K, self.brake * rates, decay, t)
            if _tame(move):
                self._accept(move, where)
                return Y
            self.brake /= 2
            self.cap = min(self.cap, 1.0)
        return C[:, : len(rates)].T

    def _propose(self, C, K, rates, decay, t):
        return sweep(C, K, rates, decay, t, self.cap, self._estimate())

    def _estimate(self):
        """eta, floor and the two forms of the running estimate; eta is 0 where there is none."""
        if self.running is None:
            return NO_ESTIMATE
        return self.brake * self.running.eta0, self.running.floor, *self.running.forms()

    def _accept(self, move, where):
        self.A = _combine(move[0], self.A, move[1], where)
        if self.running is not None:
            self.running.follow(*move[:2])


class MetaDescentRule(HebbianRule):
    """Equations 15 to 21: the gains are multiplied by exp(rho), and rho follows its own gradient.

    Parameters
    ----------
    A, cap, running
        As for `HebbianRule`.
    N : array (r, r)
        A K' A'.
    settings : tuple
        mu, xi, the largest step of rho, its lowest and its highest value.
    rho0 : float
        Start of rho.

    Notes
    -----
    B holds the derivative of A with respect to the log-gains. Memory 2 r n.
    """

    memory = (*HebbianRule.memory, "B", "N", "S", "rho")

    def __init__(
        self,
        A: Array,
        cap: float,
        N: Array,
        settings: Any,
        rho0: float = 0.0,
        running: RunningEigenvalues | None = None,
    ):
        super().__init__(A, cap, running)
        self.settings = settings
        self.B = array_namespace(A).zeros_like(A)
        self.N, self.S = np.array(to_numpy(N), dtype=np.float64), np.zeros((len(A), len(A)))
        self.rho = np.full(len(A), float(rho0))

    @property
    def factors(self) -> Array:
        """What the Gram rows of a block are multiplied with, (n, 2r)."""
        return array_namespace(self.A).concat([self.A, self.B], axis=0).T

    def _propose(self, C, K, rates, decay, t):
        from ._numba import smd_sweep

        b, r = len(C), len(rates)
        X, Y = np.eye(2 * r, 2 * r + b), np.empty((r, b))
        XA, XB = X[:r], X[r:]
        N, S, rho = self.N.copy(), self.S.copy(), self.rho.copy()
        state = (XA, XB, N, S, rho, Y, *self._estimate())
        smd_sweep(C, K, rates.copy(), decay, t, self.cap, self.settings, *state)
        return (XA, XB, N, S, rho), Y

    def _accept(self, move, where):
        XA, XB, self.N, self.S, self.rho = move
        r = len(self.A)
        B = _combine(XB[:, :r], self.A, XB[:, 2 * r :], where)
        B += in_type_of(XB[:, r : 2 * r], B) @ self.B
        self.A, self.B = _combine(XA[:, :r], self.A, XA[:, 2 * r :], where), B
        if self.running is not None:
            self.running.follow(XA[:, :r], XA[:, 2 * r :])


class OrthonormalRule(HebbianRule):
    """The Hebbian rule with the directions made orthonormal after each block: it cannot diverge.

    G = A K' A' is carried through the block by G <- T G T' + T C' D' + D C T' + D K'_PP D',
    without kernel evaluations, and A <- L^-1 A with G = L L'. The lower triangle keeps the order
    of the components, as the rule itself does. Rows that became dependent start again from the
    point of the block that the others explain least.

    Parameters
    ----------
    A : array (r, n)
        Orthonormal directions; some may be zero.
    cap : float
        As for `HebbianRule`.
    """

    memory = (*HebbianRule.memory, "G")

    def __init__(self, A: Array, cap: float = 1.0):
        super().__init__(A, cap)
        # The rows come orthonormal, or zero where there was nothing to find.
        self.G = np.diag(to_numpy((A != 0).any(axis=1)).astype(np.float64))
        self._dtype = np.dtype(dtype_name(A.dtype))

    def _propose(self, C, K, rates, decay, t):
        (T, D), Y = super()._propose(C, K, rates, decay, t)
        return orthonormalize(T, D, self.G, C, K, self._dtype), Y

    def _accept(self, move, where):
        super()._accept(move, where)
        self.G = move[2]


# eta, floor and forms where no eigenvalues run along.
NO_ESTIMATE = (0.0, 0.0, *2 * (3 * (np.empty((0, 0)),),))


def sweep(C, K, rates, decay, t, cap, estimate=NO_ESTIMATE):
    """The steps of one block as A <- T A + D E': (T (r, r), D (r, b)), outputs Y (r, b)."""
    from ._numba import hebbian_sweep  # numba takes half a second to import

    b, r = C.shape
    T, D, Y = np.eye(r), np.zeros((r, b)), np.empty((r, b))
    hebbian_sweep(C, K, rates.copy(), decay, t, cap, T, D, Y, *estimate)
    return (T, D), Y


def orthonormalize(T, D, G, C, K, dtype):
    """T and D whose directions are orthonormal, and their Gram matrix (1 or 0 on its diagonal).

    G is the Gram matrix of the directions before the block, C (b, r) their outputs. Directions
    that are zero are replaced by the points of the block that the others explain least, in order.
    """
    cross = T @ C.T @ D.T
    G = T @ G @ T.T + cross + cross.T + D @ K @ D.T
    if not _tame((T, D, G)):
        return T, D, G
    L = whiten(G, dtype)
    T, D = L @ T, L @ D
    alive = (T != 0).any(axis=1) | (D != 0).any(axis=1)
    for i in np.flatnonzero(~alive):
        Y = T @ C.T + D @ K
        left = np.diag(K) - np.sum(Y**2, axis=0)
        s = int(np.argmax(left))
        if left[s] <= np.finfo(dtype).eps ** 0.5 * K[s, s]:
            break
        scale = left[s] ** -0.5
        T[i], D[i] = -scale * (Y[:, s] @ T), -scale * (Y[:, s] @ D)
        D[i, s] += scale
        alive[i] = True
    return T, D, np.diag(alive.astype(np.float64))


def whiten(G, dtype):
    """Lower triangular L with L G L' = I; rows of dependent directions are zero.

    By Cholesky where all are independent, else by Gram-Schmidt of the unit vectors, twice.
    """
    # Share of its norm below which what is left of a direction is rounding.
    least = 1e3 * np.finfo(dtype).eps
    try:
        R = cholesky(G, lower=True)
        if (np.diag(R) ** 2 > least * np.diag(G)).all():
            return solve_triangular(R, np.eye(len(G)), lower=True)
    except LinAlgError:
        pass
    L = np.zeros_like(G)
    for i in range(len(G)):
        v = np.eye(len(G))[i]
        for _ in range(2):
            v = v - (L @ (G @ v)) @ L
        norm = v @ G @ v
        if norm > least * abs(G[i, i]):
            L[i] = v / norm**0.5
    return L


def lengths_of(A) -> np.ndarray:
    """Lengths of the rows of A, none of which is zero."""
    return np.maximum(column_norms(A.T), np.finfo(dtype_name(A.dtype)).tiny)


def _combine(T, A, D, where):
    """T A + D E' in the dtype of A, with E' the unit rows of an index, or rows of coordinates."""
    A, D = in_type_of(T, A) @ A, in_type_of(D, A)
    if where.ndim == 2:
        return A + D @ where
    A[:, where] += D
    return A


def in_type_of(T, A):
    """A small matrix of the host beside A and in its type."""
    return on_device_of(np.asarray(T, dtype=dtype_name(A.dtype)), A)


def plain(X):
    """A small matrix on the host, in double precision and one piece."""
    return np.ascontiguousarray(to_numpy(X), dtype=np.float64)


def _tame(move):
    """Whether a proposed block is finite and its first factor, the one on A, not too large."""
    return all(np.isfinite(X).all() for X in move) and np.abs(move[0]).max() <= GROWTH
