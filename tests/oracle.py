"""Dense float64 kernel PCA in plain NumPy: what everything else is compared with.

Kernels by their formulas over an (n, m, d) array of differences, so sizes must stay small.
Imports nothing of the library.
"""

import numpy as np


def _differences(X, Y):
    return X[:, None, :] - Y[None, :, :]


def _distance(X, Y):
    return np.sqrt((_differences(X, Y) ** 2).sum(axis=2))


def rbf(X, Y, gamma):
    return np.exp(-gamma * _distance(X, Y) ** 2)


def laplacian(X, Y, gamma):
    return np.exp(-gamma * np.abs(_differences(X, Y)).sum(axis=2))


def matern(X, Y, gamma, nu):
    rho = np.sqrt(2 * nu) * np.sqrt(2 * gamma) * _distance(X, Y)
    factor = {0.5: 1, 1.5: 1 + rho, 2.5: 1 + rho + rho**2 / 3}[nu]
    return factor * np.exp(-rho)


def rational_quadratic(X, Y, gamma, alpha):
    return (1 + gamma * _distance(X, Y) ** 2 / alpha) ** -alpha


def linear(X, Y, center=None):
    center = 0.0 if center is None else center
    return (X - center) @ (Y - center).T


def polynomial(X, Y, gamma, coef0, degree):
    return (gamma * X @ Y.T + coef0) ** degree


def sigmoid(X, Y, gamma, coef0):
    return np.tanh(gamma * X @ Y.T + coef0)


def cosine(X, Y):
    norms = np.outer(np.linalg.norm(X, axis=1), np.linalg.norm(Y, axis=1))
    return np.divide(X @ Y.T, norms, out=np.zeros_like(norms), where=norms > 0)


def additive_chi2(X, Y):
    total = X[:, None, :] + Y[None, :, :]
    terms = np.divide(_differences(X, Y) ** 2, total, out=np.zeros_like(total), where=total != 0)
    return -terms.sum(axis=2)


def chi2(X, Y, gamma):
    return np.exp(gamma * additive_chi2(X, Y))


def gower(X, Y, ranges, usual=None):
    def shares(A, B):
        gaps = np.abs(_differences(A, B))
        sizes = np.broadcast_to(np.asarray(ranges, dtype=X.dtype), X.shape[1:])
        whole = np.divide(gaps, sizes, out=np.where(gaps > 0, np.inf, 0 * gaps), where=sizes > 0)
        return np.maximum(0, 1 - whole)

    if usual is None:
        return shares(X, Y).mean(axis=2)
    usual = np.asarray(usual, dtype=X.dtype)
    x, y = (X == -3)[:, None], (Y == -3)[None]
    total = np.where(x, shares(usual, Y).mean(axis=0)[None], shares(X, Y))
    total = np.where(y, shares(X, usual).mean(axis=1)[:, None], total)
    return np.where(x & y, shares(usual, usual).mean(axis=(0, 1)), total).mean(axis=2)


def tanimoto(X, Y, packed=False):
    least, most = (f(X[:, None], Y[None]).sum(axis=2) for f in (np.minimum, np.maximum))
    return np.where(most > 0, least, 1) / np.where(most > 0, most, 1)


KERNELS = {
    "rbf": rbf,
    "laplacian": laplacian,
    "matern": matern,
    "rational_quadratic": rational_quadratic,
    "linear": linear,
    "polynomial": polynomial,
    "sigmoid": sigmoid,
    "cosine": cosine,
    "chi2": chi2,
    "additive_chi2": additive_chi2,
    "gower": gower,
    "tanimoto": tanimoto,
}


def kernel_matrix(name, X, Y=None, **params):
    """k(X, Y) in float64, or in the wider type of X; Y = X by default."""
    X = np.asarray(X, dtype=np.result_type(X, np.float64))
    return KERNELS[name](X, X if Y is None else np.asarray(Y, dtype=X.dtype), **params)


def center(K, K_fit=None):
    """Inner products of the points of K minus the mean of the fitted points, whose Gram matrix
    is K_fit (K itself by default); rows of K are the points, columns the fitted ones."""
    K_fit = K if K_fit is None else K_fit
    return K - K.mean(axis=1, keepdims=True) - K_fit.mean(axis=0) + K_fit.mean()


def eigenpairs(K, r=None, centered=True):
    """Top r eigenvalues (descending) and unit eigenvectors (n, r) of the (centered) Gram matrix."""
    values, vectors = np.linalg.eigh(center(K) if centered else K)
    return values[::-1][:r], vectors[:, ::-1][:, :r]


def scores(K_new, K_fit, r, centered=True):
    """Scores (n, r) of points with kernel values K_new (n, m) to the m fitted ones."""
    values, vectors = eigenpairs(K_fit, r, centered)
    return (center(K_new, K_fit) if centered else K_new) @ vectors / np.sqrt(values)


def squared_norms(diagonal, K_new, K_fit, centered=True):
    """Squared distances (n,) of phi(x) to the mean (or the origin); diagonal holds k(x, x)."""
    return diagonal - 2 * K_new.mean(axis=1) + K_fit.mean() if centered else diagonal


def total_variance(K, centered=True):
    """Trace of the (centered) Gram matrix: the sum of all eigenvalues."""
    return np.trace(center(K) if centered else K)


def reconstruction_error(diagonal, K_new, K_fit, r, centered=True):
    """Squared feature-space distances (n,) of points to the mean plus the top r directions."""
    S = scores(K_new, K_fit, r, centered)
    return squared_norms(diagonal, K_new, K_fit, centered) - (S**2).sum(axis=1)


def projection_error(K, landmarks, rcond=1e-12):
    """tr(K - K_XZ K_ZZ^+ K_ZX) / tr K: the share of the (uncentered) trace that landmarks miss."""
    B = K[:, landmarks]
    inverse = np.linalg.pinv(K[np.ix_(landmarks, landmarks)], rcond=rcond, hermitian=True)
    return 1 - np.einsum("ij,jk,ik->", B, inverse, B) / np.trace(K)


def subspace_error(U, V):
    """Sine of the largest principal angle between the spans of U and V, of equal width."""
    Q, P = np.linalg.qr(U)[0], np.linalg.qr(V)[0]
    return np.linalg.norm(P - Q @ (Q.T @ P), ord=2)
