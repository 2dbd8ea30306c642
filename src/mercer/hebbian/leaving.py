"""Points that leave a frame: projected on those that stay, at a price that is known exactly.

With F = [b | A'] the frame over points of Gram matrix G, D the points that leave and R those
that stay,

    F_R <- F_R + G_RR^-1 G_RD F_D,   lost = diag F_D' (G_DD - G_DR G_RR^-1 G_RD) F_D,

and `lost` is exactly the squared norm that the mean and the directions lose.
"""

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

# Of the mean norm, so that repeated points leave the Gram matrix invertible: removing one of two
# equal points cancels 1 / JITTER, and half of the digits should be left.
JITTER = 1e-9


def novel(G, known, threshold):
    """Which points to keep: the first `known`, and each later one that those kept cannot express.

    A point is novel if more than `threshold` of its k(x, x) lies outside the span of the points
    kept before it (Ouimet and Bengio 2005).

    Returns
    -------
    stay : array (k,)
        Indices kept, ascending.
    L : array (k, k)
        Cholesky factor of their Gram matrix.

    Notes
    -----
    `mercer.selectors.NoveltyRule` is the same rule for points that never leave.
    """
    ridge = jitter(G)
    L = cholesky(G[:known, :known] + ridge * np.eye(known), lower=True) if known else G[:0, :0]
    F = solve_triangular(L, G[:known, known:], lower=True) if known else G[:0]
    H = G[known:, known:] - F.T @ F
    floor = max(threshold, 10 * JITTER) * np.diag(G)[known:]
    chosen: list[int] = []
    rows = np.zeros((0, len(H)))
    for i in range(len(H)):
        left = H[i, i] - rows[:, i] @ rows[:, i]
        if left > floor[i] or not (known or chosen or i + 1 < len(H)):
            root = np.sqrt(max(left, ridge))
            row = (H[i] - rows[:, i] @ rows) / root
            row[i] = root
            rows, chosen = np.vstack([rows, row]), [*chosen, i]
    new = np.tril(rows[:, chosen].T)
    factor = np.block([[L, np.zeros((known, len(chosen)))], [F[:, chosen].T, new]])
    return np.concatenate([np.arange(known), known + np.array(chosen, dtype=int)]), factor


def project_out(F, G, stay, L):
    """Project the rows of the frame F (m, k) that do not stay on those that do.

    L is the Cholesky factor of the Gram matrix of those that stay.

    Returns
    -------
    F : array (len(stay), k)
    stay : array
    lost : array (k,)
        Squared norm lost by each column.
    """
    leave = np.setdiff1d(np.arange(len(F)), stay)
    cross = G[np.ix_(stay, leave)]
    W = cho_solve((L, True), cross)
    rest = G[np.ix_(leave, leave)] - cross.T @ W
    lost = np.einsum("ij,ik,kj->j", F[leave], rest, F[leave])
    return F[stay] + W @ F[leave], stay, np.maximum(lost, 0.0)


def eliminate(F, G, shares, count):
    """Remove `count` rows of the frame F (m, k), one by one the row that costs least.

    With P = G^-1, the distance of point j to the span of the others is 1 / P_jj and its
    projection on them has weights -P_ij / P_jj; both follow a removal by a rank-one change of P.
    shares (k,) weigh the columns.

    Returns
    -------
    F : array (m - count, k)
    stay : array (m - count,)
        Indices kept, ascending.
    lost : array (k,)
        Squared norm lost by each column: exact, as the projections are nested.
    """
    F, P = F.copy(), np.linalg.inv(G + jitter(G) * np.eye(len(G)))
    stay, lost = np.ones(len(F), dtype=bool), np.zeros(F.shape[1])
    for _ in range(count):
        costs = np.where(stay, (F**2 @ shares) / np.where(stay, np.diag(P), 1.0), np.inf)
        j = int(np.argmin(costs))
        p = P[j] / P[j, j]
        lost += F[j] ** 2 / P[j, j]
        F -= np.outer(p, F[j])
        P -= np.outer(p, P[j])
        stay[j] = False
    return F[stay], np.flatnonzero(stay), lost


def jitter(G):
    """What to add to the diagonal of G."""
    return JITTER * (float(np.mean(np.diag(G))) or 1.0)
