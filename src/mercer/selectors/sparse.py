"""Sparse kernel PCA: landmarks and directions that are combinations of a few rows each.

The sparse Bayes of Tipping (2001) is a Gaussian model with one weight for each row. The covariance
of phi(x) is modeled as ``C = sigma^2 I + sum_i w_i phi_i phi_i'``; most w_i are zero where the
likelihood is largest. With S the sample covariance and N rows,

    2 log p / N = -log |C / sigma^2| - tr C^-1 S + const,   phi_i' C^-1 phi_j = R_ij / sigma^2,

R being what the atoms leave of K under a ridge sigma^2 / w. Rows that occur c times count c-fold.

A direction is ``sum_i W_ij phi(x_i)``, and most W_ij are zero. By the lasso, each direction is the
sparse one whose scores come closest to those of kernel PCA (Zou, Hastie & Tibshirani 2006); by
sparse Bayes, all share the rows that have a weight.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_solve, eigh, get_blas_funcs, qr, solve_triangular

from ..compute.arrays import Array, some_of
from ..compute.linalg import cholesky, peak_signs, self_product
from ..kernels import Kernel
from . import base
from .greedy import PENDING
from .lasso import STEPS_PER_ATOM, lasso_path

# sigma^2 falls by this factor from the largest that has an atom, each model starting the next.
ANNEAL = 0.7


class SparseBayes(base.Selector):
    """The rows with nonzero weight in Tipping's sparse kernel PCA.

    A thresholded, shrunken greedy choice: between `Uniform` and `FullGreedy` in error, poor where
    the spectrum decays fast. For fidelity to the literature.

    Parameters
    ----------
    noise : float or None
        sigma^2; larger is sparser. None anneals it until `size` weights are left (the others: take
        the eigenvalue after the first `size`, and keep the `size` largest weights).
    solver : {"sequential", "em", "fixed-point"}
        "sequential" changes the one weight that gains most, exactly, each time. "em" is the
        published iteration; it needs thousands of passes and prunes next to nothing.
        "fixed-point" is the published faster update of all weights at once, which does prune.
    max_iter : int
        Passes of EM (100) or of the fixed point (1,000), or changes of weight at one sigma^2.

    References
    ----------
    Tipping (2001), Sparse kernel principal component analysis; Tipping & Faul (2003), Fast marginal
    likelihood maximisation for sparse Bayesian models.
    """

    nested = False

    pair_bytes, atom_bytes = 26, 14

    noise: float | None = None
    solver: str = "sequential"
    max_iter: int | None = None

    def select(self, kernel: Kernel, X: Array, size: int, rng: np.random.Generator) -> Array:
        """Choose `size` of the m rows, largest weight first; O(m^2) for each change of weight."""
        first, counts, _ = base.distinct_rows(X)
        model = self.fit(base.host_gram(kernel, some_of(X, first)), counts, size)
        return first[model.active[:size]]

    def fit(self, K: Array, counts: Array, size: int, center: bool = False) -> Any:
        """The model of a Gram matrix, with about `size` weights where `noise` is None."""
        least, total = base.rank_tolerance(K.dtype), counts.sum()
        K, size = K.astype(np.float64, copy=False), min(size, len(K))
        if self.solver != "sequential":
            noise, pruning = self.noise, self.solver == "fixed-point"
            if noise is None:
                # The first eigenvalue of the sample covariance that `size` directions leave out.
                root = np.sqrt(counts)
                values = np.linalg.eigvalsh(root[:, None] * K * root)[::-1]
                noise = max(values[min(size, len(K) - 1)], least * values[0]) / total
            passes = self.max_iter or (1000 if pruning else 100)
            return all_at_once(K, counts, noise, passes, center, pruning)
        steps, empty = self.max_iter or 50 * size + 1000, np.zeros(len(K))
        if self.noise is not None:
            return sequential(K, counts, SparseModel(empty, self.noise), steps, center)

        def solve(noise, start):
            return sequential(K, counts, start._replace(noise=noise), steps, center)

        # From the largest noise that has an atom; below the share `least` of it, the model would be
        # one of the rounding of K.
        mean, norm = K @ counts / total if center else 0, K.diagonal()
        power, good = K**2 @ counts - total * np.square(mean), norm > 0
        noise = (power[good] / norm[good]).max(initial=0) / total
        first = SparseModel(empty, noise)
        model = base.solution_of_size(solve, size, first, ANNEAL, least * noise, steps=24)
        # Two weights can appear at one sigma^2: the smaller goes.
        model.weights[model.active[size:]] = 0
        return model


class SparseModel(NamedTuple):
    """Weights w (m,) and sigma^2."""

    weights: np.ndarray
    noise: float

    @property
    def active(self) -> np.ndarray:
        """Atoms with a weight, the largest first."""
        return base.largest_first(self.weights)


def sequential(K, counts, model, max_iter, center=False):
    """Maximize the likelihood one weight at a time, always the one that gains most.

    With s and q the leave-one-out values of phi' C^-1 phi and phi' C^-1 S C^-1 phi, the best weight
    is (q - s) / s^2 if q > s and else zero, and gains are known without trying.
    """
    w, noise, total = model.weights.copy(), model.noise, counts.sum()
    # R = K - K_A (sigma^2 W^-1 + K_AA)^-1 K_A' of the atoms with a weight.
    A, root, C = weighted_factor(K, w, noise)
    V = solve_triangular(C, root[:, None] * K[A], lower=True)
    residual = ResidualGram(np.ascontiguousarray(K - self_product(V)), counts, center)
    usable = K.diagonal() > 0
    # Rounding may leave an atom's own residual at or below zero.
    floor = np.finfo(float).eps * np.where(usable, K.diagonal(), 1)
    for _ in range(max_iter):
        S = np.maximum(residual.diagonal, floor) / noise
        Q = residual.power / (total * noise**2)
        # The share of the model's variance along phi_i that other atoms have.
        others = np.maximum(1 - w * S, np.finfo(float).eps)
        s, q = S / others, Q / others**2
        new = np.where((q > s) & usable, (q - s) / s**2, 0)
        # What a weight adds to the mean log-likelihood.
        gain, old = (0.5 * (v * q / (1 + v * s) - np.log1p(v * s)) for v in (new, w))
        gain -= old
        i = int(np.argmax(gain))
        if gain[i] <= 1e-6:  # not worth its pass
            break
        change = new[i] - w[i]
        residual.subtract(change / (noise + change * residual.diagonal[i]), residual.column(i))
        w[i] = new[i]
    return SparseModel(w, noise)


class ResidualGram:
    """R = K - sum_j kappa_j r_j r_j' under rank-one changes, one pass over R for each.

    Keeps the diagonal and, for every column i, its power ``sum_n c_n (R_ni - center_i)^2`` with
    c the multiplicities of the rows and the mean over them, or zero, as the center.

    Parameters
    ----------
    K : ndarray (m, m)
        Overwritten.
    counts : ndarray (m,)
        Multiplicity of each row.
    center : bool
    """

    def __init__(self, K, counts, center=False):
        m = len(K)
        self.R = K
        self.counts = counts.astype(K.dtype)
        self.center = center
        self._V = np.empty((PENDING, m), dtype=K.dtype)
        self._kappa = np.zeros(PENDING, dtype=K.dtype)
        self._pending = 0
        self._symv, self._gemm = get_blas_funcs(("symv", "gemm"), (K,))
        self._measure()

    def column(self, i):
        """R_:i, (m,)."""
        j = self._pending
        return self.R[i] - (self._kappa[:j] * self._V[:j, i]) @ self._V[:j]

    def subtract(self, kappa, r):
        """R <- R - kappa r r', with r a column of R."""
        weighted, j, V = self.counts * r, self._pending, self._V
        norm, total = weighted @ r, self.counts.sum()
        Rr = self._symv(1.0, self.R.T, weighted)
        Rr -= (self._kappa[:j] * (V[:j] @ weighted)) @ V[:j]
        if self.center:
            mean = weighted.sum() / total
            Rr -= (mean * total) * self.mean
            norm -= total * mean**2
            self.mean -= (kappa * mean) * r
        self.power += (kappa * r) * (kappa * norm * r - 2 * Rr)
        self.diagonal -= kappa * r * r
        V[j], self._kappa[j] = r, kappa
        self._pending += 1
        if self._pending == PENDING:
            self._gemm(-1.0, V.T, self._kappa[:, None] * V, beta=1.0, c=self.R.T, overwrite_c=True)
            self._pending = 0
            self._measure()

    def _measure(self):
        self.diagonal = self.R.diagonal().copy()
        self.power = self.R**2 @ self.counts
        if self.center:
            total = self.counts.sum()
            self.mean = (self.counts @ self.R) / total
            self.power -= total * self.mean**2


def all_at_once(K, counts, noise, max_iter, center=False, pruning=False):
    """The published iterations of all weights at once, from the posterior of their factors.

    EM, or with `pruning` Tipping's other update, w = sum of mu^2 / (N (1 - variance / w)): where
    the derivative of the likelihood vanishes it does, it climbs faster, and weights that ought to
    be zero fall geometrically. Weights below 1e-6 of the largest count as zero.
    """
    m, total = len(K), counts.sum()
    D = (K - (K @ counts / total)[:, None] if center else K) * np.sqrt(counts)
    # All weights equal, the model's total variance that of the data.
    w = np.full(m, 1 / m if K.diagonal().sum() > 0 else 0.0)
    for _ in range(max_iter):
        A, root, C = weighted_factor(K, w, noise)
        if not len(A):
            break
        inverse = cho_solve((C, True), np.eye(len(A)), check_finite=False)
        means = root[:, None] * (inverse @ (root[:, None] * D[A]))
        new, left = np.einsum("ij,ij->i", means, means) / total, noise * inverse.diagonal()
        if not pruning:
            w[A] = new + left * w[A]
            continue
        # The share of a weight that the data determine; rounding may leave none.
        new /= np.maximum(1 - left, np.finfo(float).eps)
        new[new <= 1e-6 * new.max()] = 0
        change = np.abs(new - w[A]).max() / new.max()
        w[A] = new
        if change <= 1e-7:
            break
    return SparseModel(np.where(w > 1e-6 * w.max(initial=0), w, 0), noise)


def weighted_factor(K, weights, noise):
    """Atoms A with a weight, W^1/2, and the Cholesky factor of sigma^2 I + W^1/2 K_AA W^1/2."""
    A = np.flatnonzero(weights)
    root = np.sqrt(weights[A])
    B = root[:, None] * K[np.ix_(A, A)] * root
    B[np.diag_indices(len(A))] += noise
    if not np.isfinite(B).all():  # as indefinite kernels may leave it
        raise np.linalg.LinAlgError("not finite")
    return A, root, cholesky(B, lower=True, check_finite=False) if len(A) else B


@dataclass(frozen=True)
class SparseComponents:
    """Directions of feature space with few nonzero loadings.

    Attributes
    ----------
    loadings : ndarray (n, r)
        Weights W of the rows' features; each direction has unit norm.
    variance : ndarray (r,)
        Variance of the data along each direction beyond what the earlier ones hold, since
        sparse directions are not orthogonal.
    total_variance : float
        Of the data in feature space.
    """

    loadings: np.ndarray
    variance: np.ndarray
    total_variance: float

    @property
    def support(self) -> Array:
        """The nonzero pattern, (n, r)."""
        return self.loadings != 0

    @property
    def atoms(self) -> Array:
        """Rows that some direction uses, all that transforming new points needs."""
        return np.flatnonzero(self.support.any(axis=1))


def sparse_components(
    kernel: Kernel,
    X: Array,
    n_components: int,
    sparsity: int,
    rng: np.random.Generator,
    *,
    method: str = "lasso",
    center: bool = True,
) -> SparseComponents:
    """Kernel PCA directions of a pool of rows with a given number of nonzero loadings.

    Parameters
    ----------
    kernel : kernel
    X : array (n, d)
        A few thousand rows: the Gram matrix is formed.
    n_components : int
    sparsity : int
        Rows that each direction uses ("lasso"), or all of them together ("bayes").
    rng : Generator
    method : {"lasso", "bayes"}
    center : bool
        Measure variance about the mean. The rows' features themselves stay as they are: a
        direction of centered ones would use every row through the mean.

    Returns
    -------
    SparseComponents
        With fewer directions where the rank is short.
    """
    K = base.host_gram(kernel, X).astype(np.float64, copy=False)
    first, counts, group = base.distinct_rows(X)
    if method == "lasso":
        W = _lasso_loadings(K, group, n_components, sparsity, rng, center)
    else:
        W = np.zeros((len(K), min(n_components, sparsity)))
        W[first] = _bayes_loadings(K[np.ix_(first, first)], counts, W.shape[1], sparsity, center)
    # Directions of unit norm, signed so that the largest loading is positive.
    norms = np.sqrt(np.maximum(np.einsum("ij,ij->j", W, K @ W), 0))
    W = W[:, norms > 0] / norms[norms > 0]
    W = W * peak_signs(W)
    scores, total = K @ W, np.trace(K) / len(K)
    if center:
        scores, total = scores - scores.mean(axis=0), total - K.mean()
    # The triangular factor takes from each direction what the earlier ones explain.
    T = qr(scores, mode="r")[0]
    return SparseComponents(W, np.diag(T) ** 2 / len(K), float(total))


def _lasso_loadings(K, group, n_components, sparsity, rng, center):
    """Loadings at the last corner of each lasso path with `sparsity` atoms, (n, r)."""
    A = K - K.mean(axis=0) if center else K
    values, U = base.top_eigenpairs(A - A.mean(axis=1)[:, None] if center else K, n_components, rng)
    W = np.zeros_like(U)
    for j, scores in enumerate((U * np.sqrt(values)).T):
        for active, coefficients in lasso_path(A, scores, group, STEPS_PER_ATOM * sparsity):
            W[:, j] = 0
            W[active, j] = coefficients
            if len(active) >= sparsity:
                break
    return W


def _bayes_loadings(K, counts, n_components, sparsity, center):
    """Kernel PCA within the span of the rows that have a weight, (m, r).

    Tipping reads the axes off the model, ``sum_i w_i phi_i phi_i'``. Its shrinkage costs variance,
    and it holds no mean to take out, so here the rows are the model's and the axes the data's.
    """
    model = SparseBayes().fit(K, counts, sparsity, center)
    A = np.sort(model.active)
    values, V = base.top_eigenpairs(K[np.ix_(A, A)], len(A), None)
    V = V / np.sqrt(values)
    scores = K[:, A] @ V
    if center:
        scores -= counts @ scores / counts.sum()
    _, Q = eigh(scores.T @ (counts[:, None] * scores))
    W = np.zeros((len(K), n_components))
    r = min(n_components, Q.shape[1])
    W[A, :r] = V @ Q[:, ::-1][:, :r]
    return W
