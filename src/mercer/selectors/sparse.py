"""Sparse kernel PCA: directions that are combinations of a few rows each.

A direction is ``sum_i W_ij phi(x_i)``, and most W_ij are zero. By the lasso, each direction is the
sparse one whose scores come closest to those of kernel PCA (Zou, Hastie & Tibshirani 2006); by
sparse Bayes, all share the rows that have a weight in the model of Tipping (2001).
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, qr

from ..compute.arrays import Array
from ..compute.linalg import peak_signs
from ..kernels import Kernel
from .base import distinct_rows, host_gram, top_eigenpairs
from .bayes import SparseBayes
from .lasso import STEPS_PER_ATOM, lasso_path


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
    K = host_gram(kernel, X).astype(np.float64, copy=False)
    first, counts, group = distinct_rows(X)
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
    values, U = top_eigenpairs(A - A.mean(axis=1)[:, None] if center else K, n_components, rng)
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
    values, V = top_eigenpairs(K[np.ix_(A, A)], len(A), None)
    V = V / np.sqrt(values)
    scores = K[:, A] @ V
    if center:
        scores -= counts @ scores / counts.sum()
    _, Q = eigh(scores.T @ (counts[:, None] * scores))
    W = np.zeros((len(K), n_components))
    r = min(n_components, Q.shape[1])
    W[A, :r] = V @ Q[:, ::-1][:, :r]
    return W
