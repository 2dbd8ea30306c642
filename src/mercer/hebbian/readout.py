"""From a Hebbian run to eigenpairs: the coefficients as they are, Nystroem, or Rayleigh-Ritz.

The coefficients A are the noisiest thing a run has. Its outputs over a pass are A K', one power
step further, and every pass multiplies the outputs of the pass before by the rows it reads
anyway: V orthonormal (n, q) and Z = K' V, without a kernel evaluation. From these Nystroem gives
the eigenpairs of Z (V'Z)^+ Z', a second power step. K' minus that matrix is positive
semidefinite and vanishes on V, so its norm is at most its trace and

    |K'u - l u| <= (tr K' - sum of all q Nystroem values) |u - P_V u|,

a bound on the residuals that needs no further product. On USPS digits after ten passes of
"auto" (r = 16) the excess error is 2e-4 from A and 3e-6 from Nystroem.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from ..compute import on_device_of
from ..compute.arrays import dtype_name
from ..solvers.base import Eigenpairs, column_norms, inner, qr, ritz_evidence, small_eigh, times

RANK = {"f": 1e-5, "d": 1e-13}  # eigenvalues of V'Z below this share of the largest are rounding


def free(gram, run, r):
    """The first r rows of A, as published (no product); residuals are unknown."""
    values = run.eigenvalues[:r]
    order = np.argsort(-values, kind="stable")
    A = run.rule.A[:r].T
    U = (A * on_device_of(np.sqrt(values), A))[:, on_device_of(order, A)]
    around, least = distances(run.V, run.Z, values[order])
    ritz = run.gain.orthonormal
    return Eigenpairs(values[order], U, around, n_passes=0, least=least, bounded=False, ritz=ritz)


def carried(gram, run, r):
    """Nystroem from the product carried through the last pass (no product), with bounds."""
    return nystroem_pairs(gram, run.V, run.Z, r)


def nystroem(gram, run, r):
    """Nystroem from a product with the outputs of the last pass (1 product), with bounds."""
    return nystroem_pairs(gram, run.outputs, gram @ run.outputs, r, n_passes=1)


def ritz(gram, run, r):
    """Rayleigh-Ritz in the span of the carried Nystroem vectors (1 product), exact residuals."""
    V = orthonormal(scores(run.Z, *nystroem_values(run.V, run.Z)))
    run.V = run.Z = run.outputs = None  # room for the product
    values, U, Z = rotate(V, gram @ V)
    del V
    seen = ritz_evidence(values, U, Z, gram.square())
    residuals, least = np.sqrt(np.diag(seen.RR))[:r], float(values[-1])
    return Eigenpairs(values[:r], U[:, :r], residuals, n_passes=1, least=least, evidence=(seen,))


READOUTS = {"free": free, "carried": carried, "nystroem": nystroem, "ritz": ritz}


def nystroem_pairs(gram, V, Z, r, n_passes=0):
    """Eigenpairs of Z (V'Z)^+ Z' for orthonormal V, with bounds on the residuals."""
    values, M = nystroem_values(V, Z)
    U = orthonormal(scores(Z, values, M))[:, :r]
    outside = column_norms(U - V @ (V.T @ U))
    # Both factors are differences: rounding must not make a bound of zero.
    rounding = 10 * np.finfo(dtype_name(Z.dtype)).eps
    rest = float(gram.diagonal().sum()) - float(values.sum())
    # Nor has what Nystroem finds a larger trace than the matrix, but for rounding.
    bounds = max(rest, 0.0) * outside + max(rounding * float(values[0]), -2 * rest, 0.0)
    least = None
    if not gram.definite:  # what Nystroem leaves out of an indefinite matrix bounds nothing
        bounds, least = distances(V, Z, values[:r])
    seen = ritz_evidence(*rotate(V, Z), gram.square())
    doubt = float(rounding * np.abs(seen.values).max())
    RR = seen.RR + np.eye(len(seen.values)) * doubt**2
    pairs = Eigenpairs(values[:r], U, bounds, True, n_passes, least, gram.definite, ritz=False)
    return replace(pairs, evidence=(replace(seen, RR=RR, doubt=doubt),))


def distances(V, Z, values):
    """How far the next eigenvalue is at most from each value, and the least quotient in the span.

    V is orthonormal and Z = K'V for any symmetric K', so that its Ritz values have residuals; some
    eigenvalue of K' is no larger than the least of them.
    """
    ritz, U, KU = rotate(V, Z)
    residuals = column_norms(KU - U * on_device_of(ritz, U))
    rounding = 10 * np.finfo(dtype_name(Z.dtype)).eps * float(np.abs(ritz).max())
    r = len(values)
    return np.abs(values - ritz[:r]) + residuals[:r] + rounding, float(ritz[-1])


def nystroem_values(V, Z):
    """Eigenvalues (q,) of Z (V'Z)^+ Z', largest first, and the M (q, q) with M'V'ZM = I.

    The rows of M'V' are the best directions of the feature space within the span of V; their
    outputs are M'Z'. Columns of M beyond the rank are zero.
    """
    w, Q = small_eigh(np.asarray(inner(V, Z), dtype=np.float64))
    above = w > RANK[np.dtype(dtype_name(Z.dtype)).char] * max(w[0], 0)
    B = Q[:, above] / np.sqrt(w[above])
    values, M = np.zeros(len(w)), np.zeros((len(w), len(w)))
    k = int(above.sum())
    if k:
        P = small_eigh(B.T @ np.asarray(inner(Z, Z), dtype=np.float64) @ B)
        values[:k], M[:, :k] = np.maximum(P[0], 0), B @ P[1]
    return values, M


def scores(Z, values, M):
    """Nystroem eigenvectors Z M / sqrt(values), (n, q); zero beyond the rank."""
    inverse = np.divide(1.0, np.sqrt(values), out=np.zeros_like(values), where=values > 0)
    return times(Z, M * inverse)


def rotate(V, Z) -> tuple[Any, Any, Any]:
    """Ritz values, vectors U = V Q and K'U = Z Q for orthonormal V with Z = K' V."""
    values, Q = small_eigh(np.asarray(inner(V, Z), dtype=np.float64))
    return values, times(V, Q), times(Z, Q)


def orthonormal(V):
    """An orthonormal basis (n, q) whose leading columns span those of V, without sign flips."""
    Q, R = qr(V)
    signs = np.where(np.diag(R) < 0, -1.0, 1.0)
    Q *= on_device_of(signs.astype(dtype_name(Q.dtype)), Q)
    return Q
