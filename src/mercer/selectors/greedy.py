"""Landmarks one at a time, each the one that lowers an error most.

Adding row i to the atoms lowers tr R by ``|R_:i|^2 / R_ii`` and the distance of target
directions v_j to their span by ``sum_j <r_i, v_j>^2 / R_ii``, r_i being the part of phi(x_i)
that the atoms leave.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg import get_blas_funcs

from ..compute import array_namespace, on_device_of, steps_on_device, to_numpy
from ..compute.arrays import Array, dtype_name, placement_of, some_of
from ..kernels import Kernel
from ..kernels.base import row_squares
from . import base
from .cholesky import PartialCholesky

# Atoms between updates of the full residual: enough for GEMM to run at full speed, few enough that
# the recurrences in between lose no digits.
PENDING = 32
# One row in this many is on a shortlist. Longer ones cost more for each atom, shorter ones end
# sooner.
SHORTLIST_SHARE = 16
# Gains that differ by less than this share may differ by rounding, near the rank of a kernel; and
# the share of another diagonal below which a row then loses to it.
TIE, FAR_SMALLER = 1e-3, 1e-2
# Rows whose Gram matrix, 200 MB, is kept rather than its columns computed several times.
SMALL_POOL = 5000


class FullGreedy(base.Selector):
    """The row of largest gain ``|R_:i|^2 / R_ii`` over all rows, every time.

    The default second stage: no parameter, no eigenpairs, nested, deterministic. It keeps the
    Gram matrix of the rows it is given, so give it a pool of a few thousand (`TwoStage`).
    """

    independent = True

    pair_bytes = 10

    def select(self, kernel: Kernel, X: Array, size: int, rng: np.random.Generator) -> Array:
        """Choose `size` of the m rows; O(m^2 size) flops, m^2 kernel values and memory."""
        first, counts, _ = base.distinct_rows(X)
        return first[greedy_order(base.gram(kernel, some_of(X, first)), counts, size)]


def greedy_order(K, counts, size):
    """Rows of a Gram matrix (overwritten) in the order of largest gain, counts-fold each.

    Nearly all gains fall as atoms are added. So only the gains of a shortlist are updated until
    the best of them is below the best that was left out; then R is updated by GEMM, and all gains
    are computed again. In 294 of 300 trials the order was that of all gains at each step,
    else the error within 4 % either way; 1,000 of 5,000 rows take a quarter of the time.
    """
    # Gains are sums of squares: scaled entries keep them from over- and underflow.
    K /= max(float(K.diagonal().max()), float(np.finfo(dtype_name(K.dtype)).tiny))
    R, host = K, isinstance(K, np.ndarray)
    floor = base.residual_floor(to_numpy(K.diagonal()), K.dtype)
    counts = array_namespace(R).asarray(on_device_of(counts, R), dtype=R.dtype)
    take = partial(take_listed, counts)
    if steps_on_device(R):
        take = partial(take_on_device, counts, {})
    order: list[int] = []
    free = np.ones(len(R), dtype=bool)
    while len(order) < min(size, len(R)):
        diagonal = to_numpy(R.diagonal())
        free &= diagonal > floor
        if not free.any():
            break
        # Few rows of the residual, squared at once, stay in the cache; a device needs more rows.
        step = 32 if host else 4096
        tiles = (R[start : start + step] for start in range(0, len(R), step))
        power = to_numpy(array_namespace(R).concat([tile**2 @ counts for tile in tiles]))
        left = size - len(order)
        shortlist = Shortlist.of_gains(power, diagonal, free, floor)
        atoms, V = take(R, shortlist, min(PENDING, left))
        if not atoms:
            break
        order.extend(atoms)
        free[atoms] = False
        if len(order) < size and host:
            gemm = get_blas_funcs("gemm", (R,))
            gemm(-1.0, V.T, V, beta=1.0, c=R.T, overwrite_c=True)
        elif len(order) < size:
            R.addmm_(V.T, V, alpha=-1)
    return base.as_indices(order)


@dataclass
class Shortlist:
    """The rows of largest gain, in main memory.

    Attributes
    ----------
    index : array of int, shape (l,)
    power, diagonal, floor : arrays of shape (l,)
        ``sum_n c_n R_in^2``, R_ii and the rounding of R_ii.
    bar : float
        The gain below which the best row may be another one.
    """

    index: np.ndarray
    power: np.ndarray
    diagonal: np.ndarray
    floor: np.ndarray
    bar: float

    @classmethod
    def of_gains(cls, power, diagonal, free, floor) -> "Shortlist":
        """From the numbers of all rows, and which of them are still free."""
        n = len(power)
        gain = np.where(free, power / np.where(free, diagonal, 1), -1)
        length = min(max(n // SHORTLIST_SHARE, 2 * PENDING), int(free.sum()))
        ranked = np.argpartition(-gain, min(length, n - 1))
        index = ranked[:length]
        # Below the best of the rest the best may be elsewhere; far below the start the
        # recurrences have cancelled digits.
        rest = gain[ranked[length]] if length < n else -1
        return cls(index, power[index], diagonal[index], floor[index], max(rest, gain.max() / 4))


def take_listed(counts, R, shortlist: Shortlist, limit: int):
    """Up to `limit` atoms, at least one, as long as the best should be on the list; with their V.

    One by one, whole rows of R being where R is.
    """
    xp, places = array_namespace(R), on_device_of(shortlist.index, R)
    rows, length = R[places], len(shortlist.index)
    V = xp.empty((PENDING, len(R)), dtype=R.dtype, **placement_of(R))
    atoms: list[int] = []
    free = np.ones(length, dtype=bool)
    while len(atoms) < limit:
        i = best(shortlist.power, shortlist.diagonal, free)
        if i is None or (atoms and shortlist.power[i] < shortlist.bar * shortlist.diagonal[i]):
            break
        before = V[: len(atoms)]
        v = (rows[i] - before[:, shortlist.index[i]] @ before) / np.sqrt(shortlist.diagonal[i])
        weighted = counts * v
        Rv = rows @ weighted - (before @ weighted) @ before[:, places]
        # In one piece, since a device is waited for each time.
        parts = to_numpy(xp.concat([v[places], Rv, (weighted @ v).reshape(1)]))
        u, Rv, norm = np.split(parts, [length, 2 * length])
        shortlist.power += u * (u * norm - 2 * Rv)
        shortlist.diagonal = shortlist.diagonal - u * u
        V[len(atoms)] = v
        atoms.append(int(shortlist.index[i]))
        free[i] = False
        free &= shortlist.diagonal > shortlist.floor
    return atoms, V[: len(atoms)]


def take_on_device(counts, made: dict, R, shortlist: Shortlist, limit: int):
    """As `take_listed`, without waiting for the device at every atom.

    `made` keeps arrays on the device from one call to the next, by the length of the shortlist.
    """
    from ..compute.pivots import GreedyPivots

    index, power, diagonal = shortlist.index, shortlist.power, shortlist.diagonal
    length, eps = len(index), np.finfo(power.dtype).eps
    if length not in made:
        made.clear()
        ties = 1 - float(np.sqrt(eps)), 1 - TIE, FAR_SMALLER
        made[length] = GreedyPivots(counts, length, PENDING, ties)
    pivots = made[length]
    taken = pivots.take(R, index, power, diagonal, shortlist.floor, float(shortlist.bar))[:limit]
    return [int(i) for i in index[taken]], pivots.V[: len(taken)]


def best(power, diagonal, free):
    """Index of the largest power / diagonal among the free ones, None if there is none.

    Ties go to the largest diagonal. When one direction is left, all gains are equal up to rounding,
    and rounding is divided by the diagonal: a row that is nearly in the span would magnify it. So a
    row of nearly the same gain is taken instead if its diagonal is far larger.
    """
    index = np.flatnonzero(free)
    gain = power[index] / diagonal[index]
    # Where only rounding is left a square may be negative, or no number.
    gain = np.where(gain > 0, gain, 0.0)
    if not gain.any():
        return None
    exact = index[gain >= (1 - np.sqrt(np.finfo(gain.dtype).eps)) * gain.max()]
    near = index[gain >= (1 - TIE) * gain.max()]
    first, other = (int(tied[np.argmax(diagonal[tied])]) for tied in (exact, near))
    return other if diagonal[first] < FAR_SMALLER * diagonal[other] else first


class SubspaceGreedy(base.Selector):
    """Group forward selection on kernel PCA targets ("kpca-OLS").

    The row that brings the span of the atoms closest to the leading kernel PCA directions.
    Lower error than `FullGreedy` where the spectrum decays fast, and the best rows for the
    leading components themselves, with ``n_targets`` = their number, weighted and centered.

    Parameters
    ----------
    n_targets : int or None
        Directions aimed at; None is as many as atoms, the best for the projection error. The
        order is nested only for a given number.
    weighted : bool
        Weigh each direction by its variance.
    centered : bool
        Directions of centered kernel PCA.
    """

    independent = True

    pair_bytes, atom_bytes = 18, 14

    n_targets: int | None = None
    weighted: bool = False
    centered: bool = False

    @property
    def nested(self) -> bool:  # type: ignore[override]
        """Targets that depend on the size change the order."""
        return self.n_targets is not None

    def select(self, kernel: Kernel, X: Array, size: int, rng: np.random.Generator) -> Array:
        """Choose `size` of the m rows; eigenpairs of K, then O(m size^2)."""
        K, (_, _, group) = base.host_gram(kernel, X), base.distinct_rows(X)
        # Inner products of the rows' features with the (weighted) directions, (m, p).
        p = self.n_targets or size
        if self.centered:
            means = K.mean(axis=0)
            values, U = base.top_eigenpairs(K - means - means[:, None] + means.mean(), p, rng)
            E = (K @ (U - U.mean(axis=0))) / np.sqrt(values)
        else:
            values, U = base.top_eigenpairs(K, p, rng)
            E = U * np.sqrt(values)
        E = np.ascontiguousarray(E * np.sqrt(values) if self.weighted else E)
        factor = PartialCholesky.of_matrix(K, size)
        ger = get_blas_funcs("ger", (E,))
        order: list[int] = []
        free = np.ones(len(K), dtype=bool)
        while len(order) < min(size, len(K)):
            free &= factor.residual > 0
            atom = best(np.einsum("ij,ij->i", E, E), factor.residual, free)
            if atom is None and not order and free.any():
                # All rows are equal to the targets: one atom is better than none.
                atom = int(np.argmax(factor.residual))
            if atom is None:
                break
            root = np.sqrt(factor.residual[atom])
            v = factor.append(atom)
            if E.size:
                ger(-1.0, E[atom] / root, v, a=E.T, overwrite_a=1)
            order.append(atom)
            free &= group != group[atom]
        return base.as_indices(order)


class SparseGreedy(base.Selector):
    """The best of a few candidates at a time.

    59 random ones contain one of the best 5 % with probability 95 %. A cheap stand-in for
    `FullGreedy` that never forms the Gram matrix: kernel columns of the candidates only.

    Parameters
    ----------
    candidates : int
    gain : {"all", "subset"}
        Measure the gain over all rows, or on the candidates alone as some descriptions have
        it, which is cheaper and noticeably worse (1.79 against 1.63 of the best error).
    among : {"random", "farthest"}
        The candidates: random rows, or those farthest from the span of the landmarks, as in the
        greedy kernel PCA of Franc and Hlaváč. Of the farthest, one candidate is `GreedyCholesky`;
        all rows as candidates are `FullGreedy`.

    References
    ----------
    Smola & Schoelkopf (2000), Sparse greedy matrix approximation for machine learning.
    Franc & Hlaváč (2003), Greedy algorithm for a training set reduction in the kernel methods.
    """

    independent = True

    candidates: int = 59
    gain: str = "all"
    among: str = "random"

    def work_bytes(self, n: int, size: int, d: int = 0) -> int:
        """The factor, and the kernel between all rows where they are few or with a tile of them."""
        small = min(n, SMALL_POOL, self.candidates * size)
        return 12 * n * size + 10 * small**2

    def select(self, kernel: Kernel, X: Array, size: int, rng: np.random.Generator) -> Array:
        """Choose `size` rows; candidates x n x size kernel values for gain="all"."""
        if self.gain not in ("all", "subset") or self.among not in ("random", "farthest"):
            raise ValueError(
                f"{self!r}: gain must be 'all' or 'subset', and among 'random' or 'farthest'."
            )
        n, distinct = X.shape[0], base.Distinct(X)
        # Candidates that come back would be computed again, so a small Gram matrix is kept.
        if n <= min(SMALL_POOL, self.candidates * size):
            factor = PartialCholesky.of_matrix(base.gram(kernel, X), size)
        else:
            factor = PartialCholesky.of_kernel(kernel, X, size)
        order: list[int] = []
        free = to_numpy(factor.residual > 0)
        while len(order) < min(size, n) and free.any():
            pool = np.flatnonzero(free)
            if self.among == "farthest":
                residual = to_numpy(factor.residual)[pool]
                shares = np.round(residual / residual.max(), 6)  # what differs by rounding is equal
                pool = pool[np.argsort(-shares, kind="stable")[: self.candidates]]
            else:
                pool = rng.choice(pool, min(self.candidates, len(pool)), replace=False)
            # Squared norms of the candidates' columns of R.
            L = factor.L[: factor.rank]
            tiles = base.row_tiles(L, n) if self.gain == "all" else [pool]
            parts = (factor.columns(pool, rows) - L[:, pool].T @ L[:, rows] for rows in tiles)
            power = to_numpy(sum(row_squares(R) for R in parts))
            residual = to_numpy(factor.residual[pool])
            place = best(power, residual, np.ones(len(pool), dtype=bool))
            if place is None:
                free[pool] = False
                continue
            atom = pool[place]
            if distinct.admit(atom):
                factor.append(atom)
                order.append(atom)
            free[atom] = False
            free &= to_numpy(factor.residual > 0)
        return base.as_indices(order)
