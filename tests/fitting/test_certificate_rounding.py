"""Rounding is part of every bound: rows that round alike, judged in long double.

A few different rows, each of them many times: whatever rounding does to a kernel value it does to
all its copies, so that eigenvalues are off by the sum and not by its root. What is true of them is
known from a matrix of the different rows alone.
"""

import numpy as np
import pytest
from contracts import generator
from fuzz import FORMULAS, WIDE
from numpy.testing import assert_allclose

from mercer import KernelPCA, StreamingKernelPCA
from mercer.bases import Landmarks, RandomFeatures


def jacobi(S):
    """Eigenvalues, largest first, and vectors of a small symmetric matrix in its own precision."""
    S, U = S.copy(), np.eye(len(S), dtype=S.dtype)
    for _ in range(12):
        for i in range(len(S)):
            for j in range(i):
                angle = np.arctan2(2 * S[i, j], S[i, i] - S[j, j]) / 2
                turn = np.eye(len(S), dtype=S.dtype)
                turn[i, i] = turn[j, j] = np.cos(angle)
                turn[i, j], turn[j, i] = -np.sin(angle), np.sin(angle)
                S, U = turn.T @ S @ turn, U @ turn
    order = np.argsort(-np.diag(S))
    return np.diag(S)[order], U[:, order]


def truth(Z, counts, kernel, gamma, center):
    """Eigenvalues and eigenvectors of rows Z, each so many times, and the trace."""
    Z, counts = Z.astype(WIDE), counts.astype(WIDE)
    share = counts / counts.sum()
    if kernel["kernel"] == "linear" and center:
        Z = Z - Z.mean(axis=0)
        Z = Z - share @ Z
    K = FORMULAS[kernel["kernel"]](Z, WIDE(gamma), kernel)
    if center:
        K = K - share @ K
        K = K - (K @ share)[:, None]
    A = np.sqrt(counts)[:, None] * K * np.sqrt(counts)
    values, U = jacobi((A + A.T) / 2)
    return values, U, np.trace(A)


def false_statements(model, Z, counts, kernel, center=True, likely=True):
    """What the certificate of a fit to copies says that is not so; no tolerance is needed."""
    gamma = model.kernel_.get_params().get("gamma", 1.0)
    values, U, total = truth(Z, counts, kernel, gamma, center)
    certificate, found = model.certificate_, []
    r = certificate.eigenvalue_lower.size
    true = np.append(values, np.zeros(r, WIDE))[:r]
    ends = [(certificate.eigenvalue_lower, certificate.eigenvalue_upper)]
    if certificate.kind == "estimate":
        ends = []
    if certificate.confidence is not None:
        ends.append((certificate.likely_lower, certificate.likely_upper))
    for lower, upper in ends:
        off = np.maximum(lower - true, true - upper)
        if np.any(off > 0):
            found.append(f"intervals miss by {float(np.max(off / values[0])):.1e} of the first")
    single = 0.0
    scores = np.asarray(model.transform(Z), WIDE)
    if scores_are_single(model, Z):
        single = float(np.finfo(np.float32).eps)
    for i in np.flatnonzero(np.isfinite(certificate.score_error)):
        if i >= len(values):
            continue
        s, t = np.sqrt(counts) * scores[:, i], np.sqrt(values[i]) * U[:, i]
        off = min(np.linalg.norm((s - t).astype(float)), np.linalg.norm((s + t).astype(float)))
        share = off / float(np.sqrt(values[i]))
        if share > certificate.score_error[i] + single:
            found.append(f"score {i} off by {share:.1e}, not {certificate.score_error[i]:.1e}")
    return found


def scores_are_single(model, Z):
    return model.transform(Z[:1]).dtype == np.float32


KERNELS = {
    "rbf": {"kernel": "rbf"},
    "laplacian": {"kernel": "laplacian"},
    "poly": {"kernel": "poly", "degree": 3, "coef0": 1.0},
    "linear": {"kernel": "linear"},
    "cosine": {"kernel": "cosine"},
}


def copies(rng, groups, most, offset=0.0, far=1.0, dtype=float):
    """A few rows, and how often there is each."""
    Z = rng.standard_normal((groups, 3)) * far + offset
    return Z.astype(dtype), rng.integers(1, most, groups)


def fit(model, Z, counts, weighted):
    if weighted:
        return model.fit(Z, sample_weight=counts.astype(float))
    return model.fit(np.repeat(Z, counts, axis=0))


WAYS = {
    "dense": {"eigen_solver": "dense", "basis": "points"},
    "krylov": {"eigen_solver": "krylov", "basis": "points"},
    "landmarks": {"basis": "landmarks"},
    "features": {"basis": RandomFeatures(40)},
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("way", WAYS)
def test_rows_that_round_alike(way, name, dtype):
    if way == "features" and name not in ("rbf", "laplacian"):
        pytest.skip("no features of this kernel are exact")
    wrong = []
    for seed in range(12):
        rng = generator(seed, len(name), len(way))
        offset = float(rng.choice([0.0, 3.0, 30.0]))
        Z, counts = copies(rng, 5, 200, offset, 10 ** rng.uniform(-1, 1), dtype)
        options = dict(WAYS[way])
        if way == "landmarks":
            options["basis"] = Landmarks(points=Z)
        center = bool(rng.integers(2))
        model = KernelPCA(3, gamma=float(10 ** rng.uniform(-2, 0.5)), center=center, **options)
        model.set_params(random_state=seed, **{k: v for k, v in KERNELS[name].items()})
        fit(model, Z, counts, weighted=bool(rng.integers(2)))
        found = false_statements(model, Z, counts, KERNELS[name], center)
        wrong += [f"seed {seed}: {sentence}" for sentence in found]
    assert not wrong, wrong
