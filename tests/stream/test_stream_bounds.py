"""Each part of the interval that points which join late widen, where it is what holds the truth.

Rows of a plane and the linear kernel: a first row, rows near it that lose a little, then rows that
show what these had lost.
"""

import numpy as np
import pytest
from contracts import generator

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
