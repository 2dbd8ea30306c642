"""Landmarks, random features and moments: kernel PCA in a small basis."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import subspace_angles
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from mercer import KernelPCA
from mercer.bases import Landmarks, RandomFeatures
from mercer.compute import LocalEngine
from mercer.kernels import RBF, Laplacian, Matern, Polynomial, RationalQuadratic, Sigmoid
from mercer.moments import Moments
from mercer.selectors import SELECTORS, KMeans, Uniform

GAMMA = 5e-4


@pytest.fixture(scope="module")
def digits():
    return load_digits().data[:900]


@pytest.fixture(scope="module")
def exact(digits):
    return KernelPCA(10, kernel="rbf", gamma=GAMMA).fit(digits)


def fit(X, basis, **options):
    return KernelPCA(10, kernel="rbf", gamma=GAMMA, basis=basis, random_state=0, **options).fit(X)


def test_all_rows_as_landmarks_is_exact(digits, exact):
    model = fit(digits, Landmarks(indices=np.arange(len(digits))))
    assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=1e-12)
    angle = subspace_angles(model.transform(digits), exact.transform(digits)).max()
    assert angle < 1e-6
    assert model.certificate_.captured_variance[1] - model.certificate_.captured_variance[0] < 1e-9


def test_all_rows_in_single_precision(digits, exact):
    model = fit(digits.astype(np.float32), Landmarks(indices=np.arange(len(digits))))
    assert model.eigenvalues_.dtype == np.float32
    assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=5e-6)


def test_duplicate_landmarks_do_not_fail(digits, exact):
    twice = np.tile(np.arange(len(digits)), 2)
    model = fit(digits, Landmarks(indices=twice))
    assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=1e-9)


@pytest.mark.parametrize("name", SELECTORS)
def test_certificate_holds_for_every_selector(name, digits, exact):
    model = fit(digits, Landmarks(size=30, selector=SELECTORS[name]()))
    certificate = model.certificate_
    assert certificate.kind == "bound"
    assert np.all(certificate.eigenvalue_lower <= exact.eigenvalues_ * (1 + 1e-9))
    assert np.all(certificate.eigenvalue_upper >= exact.eigenvalues_ * (1 - 1e-9))
    truth = exact.explained_variance_ratio_.sum()
    low, high = certificate.captured_variance
    assert low <= truth * (1 + 1e-9) and low <= high
    assert model.landmarks_.shape == (30, digits.shape[1])


def test_variance_along_the_components_is_what_is_claimed(digits):
    model = fit(digits, Landmarks(size=50))
    S = model.transform(digits)
    assert_allclose(S.mean(axis=0), 0, atol=1e-8)
    assert_allclose(S.T @ S, np.diag(model.eigenvalues_), atol=1e-7 * model.eigenvalues_[0])
    assert_allclose(model.fit_transform(digits), S, atol=1e-12)


def test_uncentred(digits):
    model = fit(digits, Landmarks(size=50), center=False)
    exact = KernelPCA(10, kernel="rbf", gamma=GAMMA, center=False).fit(digits)
    S = model.transform(digits)
    assert_allclose(S.T @ S, np.diag(model.eigenvalues_), atol=1e-7 * model.eigenvalues_[0])
    assert_allclose(model.eigenvalues_[0], exact.eigenvalues_[0], rtol=0.01)


def test_linear_kernel_with_enough_landmarks_is_pca():
    X = np.random.default_rng(0).standard_normal((500, 6)) * np.arange(1, 7) + 5
    model = KernelPCA(5, basis=Landmarks(size=40, selector=Uniform()), random_state=0).fit(X)
    pca = PCA(5, svd_solver="full").fit(X)
    assert_allclose(model.explained_variance_, pca.explained_variance_, rtol=1e-9)
    assert_allclose(model.explained_variance_ratio_, pca.explained_variance_ratio_, rtol=1e-9)


def test_reconstruction_error_falls_with_more_landmarks(digits):
    few, many = (fit(digits, Landmarks(size=size)).score(digits) for size in (15, 200))
    exact = fit(digits, "points").score(digits)
    assert few < many <= exact + 1e-12


def test_error_asked_for_is_certified(digits):
    model = fit(digits, Landmarks(error=0.05))
    assert model.expansion_.basis.lost_share(digits) <= 0.05
    assert len(model.landmarks_) < len(digits)


def test_points_given(digits):
    Z = KMeans().select(RBF(GAMMA), digits, 40, np.random.default_rng(0))
    model = fit(digits, Landmarks(points=Z))
    assert_allclose(model.landmarks_, Z)


def test_share_as_size(digits):
    assert len(fit(digits, Landmarks(size=0.1)).landmarks_) == 90


@pytest.mark.parametrize(
    ("basis", "message"),
    [
        (Landmarks(size=0), "size=0 must be a whole number above 0"),
        (Landmarks(size=10_000), "more than the 900 rows"),
        (Landmarks(error=2), "must be a share in"),
        (Landmarks(size=5, error=0.1), "give one of"),
        (Landmarks(points=np.zeros((4, 3))), r"Give an array of shape \(m, 64\)"),
        (RandomFeatures(size=1), "whole number above 1"),
        (RandomFeatures(kind="magic"), "must be one of"),
    ],
)
def test_bad_bases(digits, basis, message):
    with pytest.raises(ValueError, match=message):
        fit(digits, basis)


def test_precomputed_kernel_has_no_landmarks(digits):
    with pytest.raises(ValueError, match="needs points"):
        KernelPCA(2, kernel="precomputed", basis="landmarks").fit(np.eye(5))


def test_short_rank_gives_fewer_components_and_says_so():
    X = np.random.default_rng(0).standard_normal((200, 3))
    with pytest.warns(UserWarning, match="rank of the basis"):
        model = KernelPCA(10, basis=Landmarks(size=20, selector=Uniform())).fit(X)
    assert model.eigenvalues_.shape == (3,)


def test_all_rows_equal():
    X = np.ones((50, 3))
    with pytest.warns(UserWarning) as caught:
        model = KernelPCA(1, kernel="rbf", basis=Landmarks(size=10)).fit(X)
    texts = [str(w.message) for w in caught]
    assert any("Only 1 of 10 landmarks" in text for text in texts)
    assert any("no variance" in text for text in texts)
    assert model.eigenvalues_[0] == 0


FEATURE_KERNELS = [
    RBF(0.1),
    Laplacian(0.05),
    Matern(0.1, 0.5),
    Matern(0.1, 1.5),
    Matern(0.1, 2.5),
    RationalQuadratic(0.1, 0.7),
    Polynomial(3, 0.02, 0.5),
]


@pytest.mark.parametrize("kind", ["plain", "orthogonal", "qmc"])
@pytest.mark.parametrize("kernel", FEATURE_KERNELS, ids=repr)
def test_random_features_approximate_the_kernel(kernel, kind):
    rng = np.random.default_rng(1)
    X = rng.random((60, 12)) * 2
    basis = RandomFeatures(20_000, kind).build(kernel, X, LocalEngine(10**9), rng)
    Y = basis.features(X)
    K = kernel(X)
    # Entries are means of 10,000 terms of modulus up to one: five standard errors.
    assert_allclose(Y @ Y.T, K, atol=0.05 * np.max(np.abs(K)))


def test_random_features_are_marked_as_estimates(digits, exact):
    model = fit(digits, RandomFeatures(2000))
    assert model.certificate_.kind == "estimate"
    assert_allclose(model.eigenvalues_[:3], exact.eigenvalues_[:3], rtol=0.05)
    S = model.transform(digits)
    assert_allclose(S.T @ S, np.diag(model.eigenvalues_), atol=1e-7 * model.eigenvalues_[0])


def test_random_features_of_other_kernels_are_refused(digits):
    with pytest.raises(ValueError, match="No random features are known for Sigmoid"):
        KernelPCA(2, kernel=Sigmoid(), basis="features").fit(digits)


def test_moments_merge():
    rng = np.random.default_rng(0)
    Y = rng.standard_normal((100, 4)) + 3
    whole = Moments.of(Y.copy(), 7.0)
    parts = Moments.of(Y[:13].copy(), 3.0) + Moments.of(Y[13:].copy(), 4.0)
    assert_allclose(parts.mean, Y.mean(axis=0))
    assert_allclose(parts.scatter, whole.scatter, rtol=1e-12)
    assert_allclose(parts.about_zero(), Y.T @ Y, rtol=1e-12)
    assert parts.count == 100 and parts.energy == 7.0


def test_streaming_stays_in_the_budget():
    import tracemalloc

    X = np.random.default_rng(0).standard_normal((60_000, 8))
    model = KernelPCA(
        4,
        kernel="rbf",
        basis=Landmarks(size=50, selector=Uniform()),
        memory="8MB",
        copy_X=False,
        random_state=0,
    )
    model.fit(X[:2000])
    tracemalloc.start()
    model.fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # 60,000 x 50 doubles would be 24 MB.
    assert peak < 12e6
