"""Spectral clustering: eigenvectors against LAPACK, labels against scikit-learn and the truth."""

import os

import numpy as np
import oracle
import pytest
import sklearn.cluster
from contracts import generator, peak_bytes
from scipy import sparse
from sklearn import datasets
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import SpectralClustering
from mercer.bases import Landmarks
from mercer.hebbian import Hebbian
from mercer.kernels import RBF, Matern
from mercer.metrics import variation_of_information

CHECKED = [SpectralClustering(n_init=1), SpectralClustering(basis=Landmarks(0.5), n_init=1)]


@parametrize_with_checks(CHECKED)
def test_estimator(estimator, check):
    check(estimator)


def blobs(n=400, k=4, seed=0):
    return datasets.make_blobs(n, centers=k, cluster_std=0.4, random_state=seed)


SEPARATED = {
    "blobs": (*blobs(), 4, 1.0),
    "moons": (*datasets.make_moons(400, noise=0.04, random_state=0), 2, 40.0),
    "circles": (*datasets.make_circles(400, noise=0.04, factor=0.4, random_state=0), 2, 20.0),
}


@pytest.mark.parametrize("basis", ["points", "landmarks"])
@pytest.mark.parametrize("name", SEPARATED)
def test_labels_of_scikit_learn_on_separated_sets(name, basis):
    X, y, k, gamma = SEPARATED[name]
    theirs = sklearn.cluster.SpectralClustering(k, gamma=gamma, random_state=0).fit(X)
    ours = SpectralClustering(k, gamma=gamma, basis=basis, random_state=0).fit(X)
    assert adjusted_rand_score(theirs.labels_, ours.labels_) >= 0.95
    assert adjusted_rand_score(y, ours.labels_) >= 0.95


@pytest.mark.parametrize("gamma", [1e-3, 4e-3])
@pytest.mark.parametrize("basis", ["points", "landmarks"])
def test_no_worse_than_scikit_learn_on_digits(basis, gamma):
    X, y = datasets.load_digits(return_X_y=True)
    X, y = X[::2], y[::2]
    theirs = sklearn.cluster.SpectralClustering(10, gamma=gamma, random_state=0).fit(X)
    ours = SpectralClustering(10, gamma=gamma, basis=basis, random_state=0).fit(X)
    # k-means alone moves either by 0.02.
    floor = adjusted_rand_score(y, theirs.labels_) - 0.03
    assert adjusted_rand_score(y, ours.labels_) >= floor


def test_usps_subset_against_scikit_learn():
    if "MERCER_DATA" not in os.environ:
        pytest.skip("MERCER_DATA names no folder with the USPS digits")
    from mercer.datasets import load_usps

    data = load_usps()
    X, y = data.data[:1000], data.target[:1000]
    gamma = 1 / 128
    theirs = sklearn.cluster.SpectralClustering(10, gamma=gamma, random_state=0).fit(X)
    ours = SpectralClustering(10, gamma=gamma, random_state=0).fit(X)
    worst = variation_of_information(theirs.labels_, y) + 0.1
    assert variation_of_information(ours.labels_, y) <= worst


def normalized(X, gamma, diagonal=0.0):
    K = oracle.kernel_matrix("rbf", X, gamma=gamma)
    np.fill_diagonal(K, diagonal)
    degrees = K.sum(axis=0)
    return K / np.sqrt(np.outer(degrees, degrees))


@pytest.mark.parametrize("solver", ["auto", "dense", "krylov", "arpack"])
def test_embedding_is_the_leading_subspace_by_rows(solver):
    X, _ = blobs(300)
    model = SpectralClustering(4, gamma=0.3, tol=1e-9, eigen_solver=solver, random_state=0).fit(X)
    values, U = oracle.eigenpairs(normalized(X, 0.3), 4, centered=False)
    np.testing.assert_allclose(model.eigenvalues_, values, atol=1e-8)
    rows = U / np.linalg.norm(U, axis=1, keepdims=True)
    # Equal up to a rotation: the inner products of the rows agree.
    np.testing.assert_allclose(model.embedding_ @ model.embedding_.T, rows @ rows.T, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(model.embedding_, axis=1), 1)


def test_all_rows_as_landmarks_are_exact():
    """Those of the matrix with its diagonal, which landmarks keep."""
    X, _ = blobs(120)
    basis = Landmarks(indices=np.arange(120))
    model = SpectralClustering(4, gamma=0.3, basis=basis, random_state=0).fit(X)
    values, U = oracle.eigenpairs(normalized(X, 0.3, diagonal=1.0), 4, centered=False)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-8)
    rows = U / np.linalg.norm(U, axis=1, keepdims=True)
    np.testing.assert_allclose(model.embedding_ @ model.embedding_.T, rows @ rows.T, atol=1e-6)
    assert model.landmarks_.shape == (120, 2)


def test_narrow_kernels_make_no_clusters_of_single_points():
    """The zero diagonal: with k(x, x) in it far points would be tied to themselves alone."""
    X, y = datasets.make_blobs(500, 8, centers=5, cluster_std=2.5, random_state=0)
    model = SpectralClustering(5, gamma=0.15, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) >= 0.95
    values, _ = oracle.eigenpairs(normalized(X, 0.15), 5, centered=False)
    np.testing.assert_allclose(model.eigenvalues_, values, atol=1e-5)


def test_landmark_eigenvectors_are_orthonormal():
    """One-shot orthogonalization: D^{-1/2} Y Q L^{-1/2}, with the degrees of the same matrix."""
    X, _ = blobs(300)
    model = SpectralClustering(4, gamma=0.3, basis=Landmarks(40), random_state=0).fit(X)
    raw = model.map_.basis.project(X, model.map_.weights)
    Y = model.map_.basis.project(X, model.map_.basis.whitener(np.dtype(float)))
    degrees = Y @ Y.sum(axis=0)
    U = raw / np.sqrt(np.maximum(degrees, 1.0))[:, None]
    np.testing.assert_allclose(U.T @ U, np.eye(4), atol=1e-8)
    assert model.eigenvalues_[0] == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("basis", ["points", "landmarks"])
@pytest.mark.parametrize("name", SEPARATED)
def test_training_rows_keep_their_labels(name, basis):
    X, _, k, gamma = SEPARATED[name]
    model = SpectralClustering(k, gamma=gamma, basis=basis, random_state=0).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    one_by_one = [model.predict(X[i : i + 1])[0] for i in range(0, 400, 57)]
    np.testing.assert_array_equal(one_by_one, model.labels_[::57])


@pytest.mark.parametrize("basis", ["points", "landmarks"])
def test_new_points_get_the_cluster_around_them(basis):
    X, y = datasets.make_moons(800, noise=0.04, random_state=1)
    model = SpectralClustering(2, gamma=40.0, basis=basis, random_state=0).fit(X[:500])
    assert adjusted_rand_score(y[500:], model.predict(X[500:])) >= 0.95


def test_extension_is_that_of_nystroem():
    """f(x) = sum_j k(x, x_j) u_j / (l sqrt(d(x) d_j)), row by row up to its length."""
    X, _ = blobs(200)
    new = X[:20] + 0.05
    model = SpectralClustering(4, gamma=0.3, tol=1e-9, random_state=0).fit(X)
    degrees = oracle.kernel_matrix("rbf", X, gamma=0.3).sum(axis=0) - 1
    values, U = oracle.eigenpairs(normalized(X, 0.3), 4, centered=False)
    k = oracle.kernel_matrix("rbf", new, X, gamma=0.3)
    F = k / np.sqrt(np.outer(k.sum(axis=1), degrees)) @ U / values
    F /= np.linalg.norm(F, axis=1, keepdims=True)
    rows = model.map_.rows(new)
    training = U / np.linalg.norm(U, axis=1, keepdims=True)
    np.testing.assert_allclose(rows @ model.embedding_.T, F @ training.T, atol=1e-5)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_precomputed_is_the_same_as_points(make):
    X, _ = blobs(200)
    K = oracle.kernel_matrix("rbf", X, gamma=0.3)
    points = SpectralClustering(4, gamma=0.3, random_state=0).fit(X)
    model = SpectralClustering(4, affinity="precomputed", random_state=0).fit(make(K))
    assert adjusted_rand_score(points.labels_, model.labels_) == 1
    np.testing.assert_allclose(model.eigenvalues_, points.eigenvalues_, atol=1e-5)
    np.testing.assert_array_equal(model.predict(make(K[:50])), model.labels_[:50])


@pytest.mark.parametrize(
    "affinity", ["laplacian", "cosine", Matern(gamma=0.5), RBF(gamma="median"), "callable"]
)
def test_kernels(affinity):
    X, y = blobs(90, 3, seed=3)
    X = X + 20 if affinity == "cosine" else X
    if affinity == "callable":
        affinity = lambda a, b: np.exp(-np.abs(a - b).sum())  # noqa: E731
    model = SpectralClustering(3, affinity=affinity, gamma=0.5, random_state=0).fit(X)
    assert model.labels_.shape == (90,) and np.isfinite(model.embedding_).all()
    if affinity != "cosine":
        assert adjusted_rand_score(y, model.labels_) >= 0.95


def test_auto_is_exact_for_few_rows_and_landmarks_for_many(monkeypatch):
    X, y = blobs(600)
    assert not hasattr(SpectralClustering(4, random_state=0).fit(X), "landmarks_")
    monkeypatch.setattr("mercer.estimators.spectral.AUTO_POINTS", 500)
    model = SpectralClustering(4, random_state=0).fit(X)
    assert model.landmarks_.shape[0] <= 200 and adjusted_rand_score(y, model.labels_) >= 0.95


def test_fit_predict_clone_and_seed():
    X, _ = blobs()
    model = SpectralClustering(4, random_state=3)
    labels = model.fit_predict(X)
    np.testing.assert_array_equal(labels, clone(model).fit(X).labels_)
    assert model.kernel_.gamma == 1.0 and model.plan_.method


def test_memory_is_bounded():
    X, _ = blobs(4000)
    settings = {"n_clusters": 4, "gamma": 1.0, "basis": "points", "n_init": 1, "n_jobs": 1}
    model = SpectralClustering(**settings, memory=4 * 10**6, random_state=0, tol=1e-3)
    clone(model).fit(X[:500])
    used = peak_bytes(lambda: model.fit(X))
    # The budget, the solver's vectors (16 a carried one), and no matrix of 128 MB.
    assert used <= 4 * 10**6 + 8 * 4000 * 16 * 20 + 10**6


def test_far_and_duplicate_rows_stay_finite():
    X = np.vstack([np.zeros((5, 2)), np.ones((5, 2)), [[1e3, 1e3]]])
    for basis in ("points", Landmarks(indices=[0, 5])):
        model = SpectralClustering(2, basis=basis, random_state=0).fit(X)
        assert np.isfinite(model.embedding_).all()
        assert model.predict([[-1e3, 0.0]])[0] in (0, 1)


def data(**changes):
    X = generator(5).standard_normal((20, 3))
    for index, value in changes.get("put", {}).items():
        X[index] = value
    return X[: changes.get("rows", 20)]


@pytest.mark.parametrize(
    ("settings", "X", "message"),
    [
        ({"n_clusters": 21}, data(), "n_clusters=21 is more than n_samples=20"),
        ({"n_components": 30}, data(), "n_components=30 is more than n_samples=20"),
        ({}, data(put={(3, 1): np.nan}), "contains NaN"),
        ({}, data(put={(3, 1): np.inf}), "contains infinity"),
        ({}, data(rows=1), "minimum of 2 is required"),
        ({"n_clusters": 0}, data(), "'n_clusters' parameter"),
        ({"affinity": "none"}, data(), "'affinity' parameter"),
        ({"affinity": "precomputed"}, data(), "square matrix"),
        ({"affinity": "precomputed"}, np.triu(np.ones((9, 9))), "must be symmetric"),
        ({"affinity": "precomputed", "basis": "landmarks"}, np.ones((9, 9)), "needs points"),
        ({"affinity": "precomputed"}, -np.ones((9, 9)), "are not negative"),
        ({"affinity": "linear"}, data() - data().mean(axis=0) - 5e-3, "are not negative"),
        ({"memory": "1 apple"}, data(), "not an amount of memory"),
    ],
)
def test_bad_input(settings, X, message):
    with pytest.raises(ValueError, match=message):
        SpectralClustering(**{"n_clusters": 2} | settings).fit(X)


def test_predict_checks_its_input():
    model = SpectralClustering(2, random_state=0).fit(data())
    with pytest.raises(ValueError, match="2 features, but SpectralClustering is expecting 3"):
        model.predict(data()[:, :2])
    with pytest.raises(ValueError, match="contains NaN"):
        model.predict(data(put={(0, 0): np.nan}))


@pytest.mark.parametrize("gain", ["et", "smd", "auto"])
def test_hebbian_directions_find_the_clusters(gain):
    """Section 5.3 of Schraudolph et al., the diagonal kept as their matrix has it."""
    X, y = datasets.make_blobs(240, 3, centers=4, cluster_std=0.6, random_state=3)
    model = SpectralClustering(
        4, gamma=0.5, eigen_solver=Hebbian(gain, n_passes=15), tol=0.5, random_state=0
    ).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.95
    K = model.kernel_(X)
    d = np.sqrt(K.sum(axis=0))
    exact = np.linalg.eigvalsh(K / d / d[:, None])[::-1][:4]
    np.testing.assert_allclose(model.eigenvalues_, exact, atol=0.02)
    by_matrix = SpectralClustering(
        4,
        affinity="precomputed",
        eigen_solver=Hebbian(gain, n_passes=15),
        tol=0.5,
        random_state=0,
    ).fit(K)
    np.testing.assert_allclose(by_matrix.eigenvalues_, model.eigenvalues_, atol=0.02)
