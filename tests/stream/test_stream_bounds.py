"""Each part of the interval that points which join late widen, where it is what holds the truth.

Rows of a plane and the linear kernel: a first row, rows near it that lose a little, then rows that
show what these had lost. And streams of any rows, whose scores are compared with exact ones.
"""

import numpy as np
import pytest
from contracts import generator
from sklearn.datasets import load_iris, load_wine
from sklearn.preprocessing import StandardScaler

from mercer import StreamingKernelPCA


def late_point(rng, side):
    """Rows of which those after the first lose little, and the last ones join."""
    angle, early = rng.uniform(0.05, 0.2), int(rng.integers(20, 60))
    near = np.array([np.cos(angle), side * np.sin(angle)])
    # As much along the second axis as the others have along the first.
    late = np.array([0.0, np.cos(angle) * rng.uniform(0.98, 1.02)])
    return np.vstack([[1.0, 0.0], np.tile(near, (early, 1)), np.tile(late, (early, 1))])


def fitted(X, r, center):
    model = StreamingKernelPCA(r, kernel="linear", center=center, novelty=0.1, random_state=0)
    model.fit(X)
    assert len(model.landmarks_) == 2
    C = (X - X.mean(axis=0) * center).T @ (X - X.mean(axis=0) * center)
    return model, C, np.linalg.eigvalsh(C)[::-1]


@pytest.mark.parametrize("side", [-1, 1])
@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_cross_terms_that_early_rows_lost(seed, center, side):
    """They are of first order where the loss is of second."""
    X = late_point(generator(seed, 7), side)
    model, _, exact = fitted(X, 2, center)
    certificate = model.certificate_
    assert np.all(certificate.eigenvalue_lower <= exact * (1 + 1e-12))
    assert np.all(exact <= certificate.eigenvalue_upper * (1 + 1e-12))
    assert np.all(certificate.likely_lower <= exact * (1 + 1e-12))
    assert np.all(exact <= certificate.likely_upper * (1 + 1e-12))
    if not center:
        lost = float(np.sum(X[1 : len(X) // 2 + 1, 1] ** 2))
        assert np.abs(model.eigenvalues_ - exact).max() > lost, "the case is one of cross terms"


@pytest.mark.parametrize("side", [-1, 1])
@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("turn", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("seed", range(3))
def test_shares_along_a_direction_of_which_early_rows_lost_a_part(seed, turn, center, side):
    rng = generator(seed, 8)
    X = late_point(rng, side)
    # More rows, which turn the first direction.
    more = rng.uniform(1.0, 1.5) * np.array([np.cos(turn), np.sin(turn)])
    X = np.vstack([X, np.tile(more, (int(rng.integers(20, 60)), 1))])
    model, C, exact = fitted(X, 1, center)
    v = (model.transform(np.eye(2)) - model.transform(np.zeros((2, 2))))[:, 0]
    low, high = model.certificate_.captured_variance
    assert np.linalg.norm(v) == pytest.approx(1.0)
    assert low <= v @ C @ v / exact.sum() + 1e-12 and v @ C @ v / exact.sum() <= high + 1e-12
    assert model.certificate_.eigenvalue_lower[0] <= exact[0] * (1 + 1e-12)
    assert exact[0] <= model.certificate_.eigenvalue_upper[0] * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_outside_the_span_comes_beside_what_was_missed_inside(seed):
    """Rows of a third axis that never joins, along with a point that joined late."""
    rng = generator(seed, 9)
    X = late_point(rng, 1)
    X = np.vstack([np.column_stack([X, np.zeros(len(X))]), np.tile([0.96, 0.0, 0.28], (150, 1))])
    model = StreamingKernelPCA(2, kernel="linear", center=False, novelty=0.1, random_state=0).fit(X)
    assert len(model.landmarks_) == 2
    exact = np.linalg.eigvalsh(X.T @ X)[::-1][:2]
    certificate = model.certificate_
    assert np.all(certificate.eigenvalue_lower <= exact * (1 + 1e-12))
    assert np.all(exact <= certificate.eigenvalue_upper * (1 + 1e-12))
    assert np.all(exact <= certificate.likely_upper * (1 + 1e-12))


def drawn_rows(rng):
    """Rows of a table or of a few clusters, in any order."""
    kind = rng.integers(4)
    if kind == 0:
        X = load_iris().data
    elif kind == 1:
        X = StandardScaler().fit_transform(load_wine().data)
    else:
        n, d = int(rng.integers(20, 200)), int(rng.integers(2, 8))
        X = rng.standard_normal((n, d)) * 0.7 ** np.arange(d)
        if kind == 3:
            X = 0.1 * X + 2 * rng.standard_normal((4, d))[rng.integers(4, size=n)]
    if rng.random() < 0.4:
        X = X[rng.permutation(len(X))]
    return X if rng.random() < 0.5 else X[: int(rng.integers(10, len(X)))]


def false_scores(seed):
    """What the certificate of a drawn stream says of its scores that is not so."""
    rng = generator(seed, 10)
    X, r, center = drawn_rows(rng), int(rng.integers(1, 5)), bool(rng.random() < 0.7)
    kernel = {"kernel": "linear"}
    if rng.random() < 0.3:
        kernel = {"kernel": "rbf", "gamma": float(10 ** rng.uniform(-2, 0)) / X.shape[1]}
    settings = {}
    if rng.random() < 0.6:
        settings["novelty"] = float(10 ** rng.uniform(-8, -1))
    if rng.random() < 0.4:
        settings["budget"] = int(rng.integers(r, 20))
    model = StreamingKernelPCA(r, center=center, random_state=seed, **kernel, **settings)
    step = int(rng.choice([1, 7, 50, len(X)]))
    for start in range(0, len(X), step):
        model.partial_fit(X[start : start + step])
    scores, certificate = model.transform(X), model.certificate_
    K = X @ X.T
    if kernel["kernel"] == "rbf":
        K = np.exp(-kernel["gamma"] * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    if center:
        K = K - K.mean(axis=0)
        K = K - K.mean(axis=1)[:, None]
    values, U = np.linalg.eigh((K + K.T) / 2)
    exact = U[:, ::-1] * np.sqrt(np.maximum(values[::-1], 0.0))
    false, errors = [], certificate.score_error
    for i in np.flatnonzero(np.isfinite(errors)):
        s, true = scores[:, i], exact[:, i]
        error = np.linalg.norm(s - np.sign(s @ true) * true) / np.linalg.norm(true)
        # The exact ones are rounded as well.
        if not error <= errors[i] + 1e-8:
            false.append((i, error, errors[i]))
    if not np.isfinite(errors[: certificate.n_proven]).all():
        false.append(("proven", certificate.n_proven))
    return false


@pytest.mark.parametrize("seed", range(60))
def test_scores_of_any_stream_are_as_near_as_stated(seed):
    assert not false_scores(seed)
