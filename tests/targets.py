"""Drawn targets of supervised fits, and the dependence of rows on them in long double."""

import numpy as np

WIDE = np.longdouble


def draw_target(rng, n):
    """Numbers of one or some columns, or labels; never the same for all rows."""
    if rng.random() < 0.4:
        y = rng.permutation(np.arange(n) % int(rng.integers(2, max(3, min(n, 7)))))
        return np.array(list("abcdefg"))[y] if rng.random() < 0.5 else y
    Y = rng.standard_normal((n, int(rng.integers(1, 6))))
    if rng.random() < 0.3:
        Y = Y * 10 ** rng.uniform(-6, 6, Y.shape[1])
    if rng.random() < 0.2:
        Y = Y + 10 ** rng.uniform(1, 6)
    if rng.random() < 0.2:
        Y = Y[:, :1] + 10 ** rng.uniform(-12, -1) * Y
    return Y if rng.random() < 0.8 else Y[:, 0]


def target_features(y, weights=None):
    """P with the target kernel P P', in long double: about its mean, times the weights' roots."""
    Y = np.asarray(y)
    Y = Y[:, None] if Y.ndim == 1 else Y
    if Y.dtype.kind != "f":
        Y = np.hstack([labels[:, None] == np.unique(labels) for labels in Y.T])
    P, w = Y.astype(WIDE), np.ones(len(Y), WIDE)
    if weights is not None:
        P, w = P[weights > 0], weights[weights > 0].astype(WIDE)
    return np.sqrt(w)[:, None] * (P - (w / w.sum()) @ P)


def seen_through(A, P, identity):
    """A matrix with the eigenvalues of A ((1 - a) P P' + a |P|^2 I), but for zeros."""
    if not identity:
        return P.T @ A @ P
    unit = max(np.abs(P).max(), WIDE(np.finfo(float).tiny))
    norm = np.linalg.norm(np.asarray(P / unit, dtype=float), 2) * unit
    F = np.hstack(
        [np.sqrt(WIDE(1 - identity)) * P, np.sqrt(WIDE(identity)) * norm * np.eye(len(P))]
    )
    return F.T @ A @ F
