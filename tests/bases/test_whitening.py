"""Whitening: by eigenvectors or a Cholesky factor, before or after rows are summed, alike."""

import numpy as np
import pytest
from contracts import SEED, generator
from numpy.testing import assert_allclose

from mercer import KernelPCA
from mercer.bases import Landmarks, PointBasis, choose_whitening
from mercer.bases.whitening import CholeskyWhitening, Whitening, in_parts, worthwhile
from mercer.compute import LocalEngine
from mercer.fitting.moments import MomentsOf
from mercer.kernels import RBF, Laplacian
from mercer.selectors import Uniform


def fit(X, m, gamma, **options):
    basis = Landmarks(m, selector=Uniform())
    return KernelPCA(4, kernel="rbf", gamma=gamma, basis=basis, random_state=0, **options).fit(X)


def rows(seed, n, d):
    return generator(seed).standard_normal((n, d))


@pytest.mark.parametrize("d, gamma", [(1, 0.5), (2, 0.3), (5, 0.1), (8, 0.5)])
def test_nothing_is_lost_with_landmarks_that_are_left_out(d, gamma):
    X = rows(d, 3000, d)
    basis = landmarks(X[:300], RBF(gamma))
    quick = choose_whitening(basis, X, None)  # of rows of unknown number, which may be many
    full = Whitening(basis.size, basis.whitener(np.float64))
    less, all_ = (moments_of(basis, way, X) for way in (quick, full))
    # Rounding is part of either.
    assert less.lost_energy <= 1.1 * all_.lost_energy + 1e-6 * len(X)
    # What is left out of G is rounding, some 1e-13 of it, and moves results by its root.
    values = [np.linalg.eigvalsh(moments.scatter)[-4:] for moments in (less, all_)]
    assert_allclose(*values, atol=1e-6 * len(X))


def test_smooth_kernels_use_few_of_many_landmarks():
    model = fit(rows(3, 2000, 1), 300, 0.5)
    used = model.expansion_.frame.any(axis=1).sum()
    assert used < 60 and model.landmarks_.shape == (300, 1)
    narrow = fit(rows(4, 2000, 8), 300, 2.0)
    assert narrow.expansion_.frame.any(axis=1).sum() > 250


def landmarks(Z, kernel):
    return PointBasis(kernel, Z, LocalEngine(10**9))


def moments_of(basis, whitening, X):
    function = MomentsOf(basis, whitening)
    return function.finished(function(X, 0))


def alike(found, basis, X, atol):
    """Coordinates of rows, W' k, are made of what is summed."""
    _, rows_of = found.summands(basis, X)
    made, last = found.parted(rows_of(slice(0, len(X)))), found.late
    expected = basis.kernel(X, basis.points) @ found.weights
    assert_allclose(made if last is None else made @ last, expected, atol=atol)


@pytest.mark.parametrize("seed", range(5))
def test_parts_whiten(seed):
    rng = generator(seed, SEED)
    Z = rng.standard_normal((120, int(rng.integers(2, 4))))
    basis = landmarks(Z, RBF(gamma=10 ** rng.uniform(-1.5, -0.7)))
    found = choose_whitening(basis, rng.standard_normal((400, Z.shape[1])), None)
    assert isinstance(found, CholeskyWhitening) and len(found.parts) > 1
    G, W = basis.kernel(Z), found.weights
    assert np.abs(W.T @ G @ W - np.eye(W.shape[1])).max() < 1e-3  # the last directions are rounding
    alike(found, basis, rng.standard_normal((7, Z.shape[1])), 1e-3)
    # The parts themselves are orthonormal to many more digits.
    part = found.parts[0]
    own, first = G[np.ix_(found.used, found.used)][part, part], found.W[part, part]
    assert np.abs(first.T @ own @ first - np.eye(len(first))).max() < 1e-7


def test_landmarks_far_from_dependent_are_one_part():
    Z = rows(5, 80, 4)
    found = choose_whitening(landmarks(Z, Laplacian(gamma=1.0)), rows(6, 400, 4), None)
    assert isinstance(found, CholeskyWhitening) and len(found.parts) == 1
    assert found.conditions[0] >= np.linalg.cond(Laplacian(gamma=1.0)(Z[found.used]))


def test_nearly_dependent_landmarks_are_two_parts():
    X = rows(11, 1000, 8)
    basis = landmarks(np.vstack([X[:120], X[:120] + 1e-4]), RBF(gamma=0.3))
    found = choose_whitening(basis, X, len(X))
    assert [part.stop - part.start for part in found.parts] == [120, 120]
    alike(found, basis, X[:9], 1e-4)
    few = choose_whitening(basis, X[:100], 100)
    assert not isinstance(few, CholeskyWhitening), "of few rows eigenvectors are worth their time"


def test_equal_landmarks_are_left_out():
    Z = rows(6, 30, 3)
    basis = landmarks(np.vstack([Z, Z]), RBF(gamma=0.5))
    G = basis.kernel_matrix()
    order, L = worthwhile(basis, G, rows(7, 50, 3))
    assert len(order) == 30
    assert_allclose(L @ L.T, G[np.ix_(order, order)], atol=1e-12)
    assert 1 <= len(worthwhile(basis, G, rows(8, 500, 3))[0]) <= 30


def test_a_factor_of_numbers_out_of_range_has_no_parts():
    G = 1e-120 * RBF(gamma=0.5)(rows(12, 10, 3))
    assert in_parts(G, np.linalg.cholesky(G), np.arange(10)) is None


def test_landmarks_of_which_the_kernel_sees_nothing():
    X = rows(10, 60, 2)
    with pytest.raises(ValueError, match=r"must be positive semidefinite.*0 to 0"):
        KernelPCA(1, kernel="poly", coef0=0, basis=Landmarks(points=np.zeros((2, 2)))).fit(X)


@pytest.mark.parametrize("power", [-40, 0, 40])
def test_rows_in_any_unit(power):
    """Sums of squares of kernel values are left to whitened rows where they are no numbers."""
    X = rows(9, 450, 4) * [1, 1, 1e-5, 1e-5] * 10.0**power
    options = {"kernel": "poly", "gamma": 1.0, "coef0": 0.0, "degree": 2}
    model = KernelPCA(3, basis=Landmarks(200, Uniform()), random_state=0, **options).fit(X)
    certificate, exact = model.certificate_, KernelPCA(3, **options).fit(X).eigenvalues_
    assert np.all(certificate.eigenvalue_lower <= exact * (1 + 1e-9))
    assert np.all(certificate.eigenvalue_upper >= exact * (1 - 1e-9))
