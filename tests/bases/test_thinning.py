"""Landmarks that are not worth their work, and whitening in stages: cheaper, and still true."""

import warnings

import numpy as np
import pytest
from contracts import SEED, generator
from fuzz import draw, violations
from numpy.testing import assert_allclose

from mercer import KernelPCA
from mercer.bases import Landmarks, points
from mercer.bases.staging import Stages, staged
from mercer.bases.thinning import independent, worthwhile
from mercer.fitting import reduced
from mercer.kernels import RBF, Laplacian
from mercer.selectors import Uniform

DRAWN = 600


@pytest.fixture
def always(monkeypatch):
    """Search for cheaper whiteners however few the rows are."""
    monkeypatch.setattr(reduced, "MANY_ROWS", 0)
    monkeypatch.setattr(points, "LEAST_JUDGES", 2)


def fit(X, m, gamma, **options):
    basis = Landmarks(m, selector=Uniform())
    return KernelPCA(4, kernel="rbf", gamma=gamma, basis=basis, random_state=0, **options).fit(X)


def rows(seed, n, d):
    return generator(seed).standard_normal((n, d))


@pytest.mark.parametrize("d, gamma", [(1, 0.5), (2, 0.3), (5, 0.1), (8, 0.5)])
def test_the_certificate_is_that_of_all_landmarks(always, monkeypatch, d, gamma):
    X = rows(d, 3000, d)
    quick = fit(X, 300, gamma)
    monkeypatch.setattr(reduced, "MANY_ROWS", 10**9)
    full = fit(X, 300, gamma)
    lost = np.diff(full.certificate_.captured_variance)[0]
    more = np.diff(quick.certificate_.captured_variance)[0]
    assert more <= 1.01 * lost + 1e-6  # rounding is part of either
    # What is left out of G is rounding, some 1e-13 of it, and moves results by its root.
    assert_allclose(quick.eigenvalues_, full.eigenvalues_, atol=1e-6 * len(X))
    S, T = quick.transform(X[:50]), full.transform(X[:50])
    assert_allclose(S, T, atol=1e-3)


def test_smooth_kernels_use_few_of_many_landmarks(always):
    model = fit(rows(3, 2000, 1), 300, 0.5)
    used = model.expansion_.frame.any(axis=1).sum()
    assert used < 60 and model.landmarks_.shape == (300, 1)
    narrow = fit(rows(4, 2000, 8), 300, 2.0)
    assert narrow.expansion_.frame.any(axis=1).sum() > 250


@pytest.mark.parametrize("seed", range(5))
def test_stages_whiten(seed):
    rng = generator(seed, SEED)
    Z = rng.standard_normal((120, int(rng.integers(2, 4))))
    G = RBF(gamma=10 ** rng.uniform(-1.5, -0.7))(Z)
    order, L = independent(G)
    stages = staged(G, order, L, 1e-8)
    assert isinstance(stages, Stages)
    W = stages.weights(120)
    assert np.abs(W.T @ G @ W - np.eye(W.shape[1])).max() < 1e-3  # the last directions are rounding
    K = RBF(gamma=0.1)(rng.standard_normal((7, Z.shape[1])), Z)
    assert_allclose(stages.residuals(K[:, order].copy()) @ stages.late, K @ W, atol=1e-3)
    # The parts themselves are orthonormal to many more digits.
    first = stages.blocks[0]
    own = G[np.ix_(order, order)][: len(first), : len(first)]
    assert np.abs(first.T @ own @ first - np.eye(first.shape[1])).max() < 1e-7


def test_no_stages_for_landmarks_that_are_far_from_dependent():
    G = Laplacian(gamma=1.0)(rows(5, 80, 4))
    order, L = independent(G)
    assert len(order) == 80 and staged(G, order, L, 1e-8) is None


def test_equal_landmarks_are_left_out():
    Z = rows(6, 30, 3)
    order, L = independent(RBF(gamma=0.5)(np.vstack([Z, Z])))
    assert len(order) == 30
    assert_allclose(L @ L.T, RBF(gamma=0.5)(np.vstack([Z, Z])[order]), atol=1e-12)
    K = RBF(gamma=0.5)(rows(7, 50, 3), np.vstack([Z, Z])[order])
    assert 1 <= worthwhile(L, K, 50.0) <= 30


@pytest.mark.parametrize("first", range(0, DRAWN, 300))
def test_no_statement_is_false(always, first):
    """Drawn problems whose landmarks are all searched for a cheaper whitener."""
    start, found = 7_000_000 * (1 + SEED) + first, []
    for seed in range(start, start + 300):
        problem = draw(seed)
        if problem.estimator != "landmarks":
            continue
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            wrong = violations(problem)
        if wrong:
            found.append("\n    ".join([str(problem), *wrong]))
    assert not found, "\n".join(found)


def test_landmarks_of_which_the_kernel_sees_nothing(always):
    X = rows(10, 60, 2)
    with pytest.raises(ValueError, match="they span no feature space"):
        KernelPCA(1, kernel="poly", coef0=0, basis=Landmarks(points=np.zeros((2, 2)))).fit(X)


@pytest.mark.parametrize("power", [-40, 0, 40])
def test_rows_in_any_unit(always, power):
    """Sums of squares of kernel values are left to whitened rows where they are no numbers."""
    X = rows(9, 80, 4) * [1, 1, 1e-5, 1e-5] * 10.0**power
    options = {"kernel": "poly", "gamma": 1.0, "coef0": 0.0, "degree": 2}
    model = KernelPCA(3, basis=Landmarks(60, Uniform()), random_state=0, **options).fit(X)
    certificate, exact = model.certificate_, KernelPCA(3, **options).fit(X).eigenvalues_
    assert np.all(certificate.eigenvalue_lower <= exact * (1 + 1e-9))
    assert np.all(certificate.eigenvalue_upper >= exact * (1 - 1e-9))
