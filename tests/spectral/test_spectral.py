"""Spectral clustering: eigenvectors against LAPACK, labels against scikit-learn and the truth."""

import os
import re
import warnings

import numpy as np
import oracle
import pytest
import sklearn.cluster
from contracts import generator, peak_bytes
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn import datasets
from sklearn.base import clone
from sklearn.cluster import _spectral as sklearn_spectral
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import DiffusionMap, SpectralClustering, SpectralEmbedding, load
from mercer.bases import Landmarks
from mercer.hebbian import Hebbian
from mercer.kernels import RBF, Matern
from mercer.metrics import variation_of_information
from mercer.spectral.assigning import by_pivots, by_rotation

# Beside those of estimators as they come.
CHECKED = [
    SpectralClustering(basis=Landmarks(0.5), n_init=1),
    SpectralClustering(affinity="nearest_neighbors", n_neighbors=5, n_init=1),
]


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
    from papers_data import load_usps

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
    """Also without the diagonal, which Rayleigh and Ritz take off in the span of everything."""
    X, _ = blobs(120)
    basis = Landmarks(indices=np.arange(120))
    model = SpectralClustering(4, gamma=0.3, basis=basis, random_state=0).fit(X)
    values, U = oracle.eigenpairs(normalized(X, 0.3), 4, centered=False)
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
    """D^{1/2} V, with the degrees of the landmarks' matrix without its diagonal."""
    X, _ = blobs(300)
    model = SpectralClustering(4, gamma=0.3, basis=Landmarks(40), random_state=0).fit(X)
    Y = model.map_.basis.project(X, model.map_.basis.whitener(np.dtype(float)))
    norms = np.einsum("ij,ij->i", Y, Y)
    degrees = np.maximum(Y @ Y.sum(axis=0), 1.0)
    V = model.map_.functions(X)
    np.testing.assert_allclose(V.T @ ((degrees - norms)[:, None] * V), np.eye(4), atol=1e-8)
    assert model.eigenvalues_[0] == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("size", [50, 100, 200, 0.9])
@pytest.mark.parametrize("seed", range(3))
def test_landmarks_make_no_clusters_of_single_points(size, seed):
    """gamma = 1 in five columns: rows whose landmark is themselves had eigenvalues near 1."""
    X, y = datasets.make_blobs(300, 5, centers=5, random_state=seed)
    model = SpectralClustering(5, basis=Landmarks(size), random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) >= 0.97
    assert np.bincount(model.labels_).min() >= 40


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


def test_extension_solves_the_equation_of_the_eigenvectors():
    """sum_j k(x, x_j) v_j = (a + l (s - a)) v(x), a the affinity with the nearest row."""
    X, _ = blobs(200)
    new = X[:20] + 0.05
    model = SpectralClustering(4, gamma=0.3, tol=1e-9, random_state=0).fit(X)
    degrees = oracle.kernel_matrix("rbf", X, gamma=0.3).sum(axis=0) - 1
    values, U = oracle.eigenpairs(normalized(X, 0.3), 4, centered=False)
    V = U / np.sqrt(degrees)[:, None]
    k = oracle.kernel_matrix("rbf", new, X, gamma=0.3)
    own = k.max(axis=1, keepdims=True)
    F = k @ V / (own + values * (k.sum(axis=1, keepdims=True) - own))
    np.testing.assert_allclose(model.map_.functions(new) @ model.map_.weights.T, F @ V.T, atol=1e-7)


@pytest.mark.parametrize("affinity", ["rbf", "laplacian", "poly", "nearest_neighbors"])
@pytest.mark.parametrize("basis", ["points", "landmarks"])
def test_functions_of_training_rows_are_the_eigenvectors(affinity, basis):
    """Also of kernels whose k(x, x) differs from row to row."""
    if basis == "landmarks" and affinity == "nearest_neighbors":
        return
    X, _ = blobs(150)
    basis = Landmarks(6) if basis == "landmarks" else basis
    model = SpectralClustering(4, affinity=affinity, gamma=0.2, basis=basis, degree=2, tol=1e-9)
    model.set_params(random_state=0).fit(X)
    graph = affinity == "nearest_neighbors"
    V = model.map_.functions(model.graph_.rows(X) if graph else X)
    if basis == "points":
        np.testing.assert_allclose(V, model.map_.weights, atol=1e-7 * np.abs(V).max())
    np.testing.assert_allclose(
        V / np.linalg.norm(V, axis=1, keepdims=True), model.embedding_, atol=1e-6
    )
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_far_rows_go_with_the_nearest():
    X, _ = datasets.make_moons(300, noise=0.04, random_state=0)
    model = SpectralClustering(2, gamma=20.0, random_state=0).fit(X)
    far = X[:50] + 3 * (X[:50] - X.mean(axis=0))
    nearest = ((far[:, None] - X) ** 2).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(model.predict(far), model.labels_[nearest])


ASSIGN = ["kmeans", "discretize", "cluster_qr"]


@pytest.mark.parametrize("assign", ASSIGN)
@pytest.mark.parametrize("affinity", ["rbf", "nearest_neighbors"])
@pytest.mark.parametrize("name", ["blobs", "moons", "digits"])
def test_assignments_of_scikit_learn(name, affinity, assign):
    if name == "digits":
        X, k, gamma = datasets.load_digits(return_X_y=True)[0][::3], 10, 1e-3
    else:
        X, _, k, gamma = SEPARATED[name]
    settings = {"gamma": gamma, "affinity": affinity, "assign_labels": assign, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a graph in pieces
        theirs = sklearn.cluster.SpectralClustering(k, **settings).fit(X)
    ours = SpectralClustering(k, n_neighbors=10, **settings, tol=1e-8).fit(X)
    # Theirs do without rows of unit length in k-means, and draw another first row in discretize.
    floor = 0.7 if name == "digits" and assign != "cluster_qr" else 0.95
    assert adjusted_rand_score(theirs.labels_, ours.labels_) >= floor
    np.testing.assert_array_equal(ours.predict(X), ours.labels_)


def test_rules_are_those_of_scikit_learn_on_the_same_vectors():
    V = generator(3).standard_normal((200, 5))
    seed = np.random.RandomState
    theirs = sklearn_spectral.discretize(V, random_state=seed(7))
    np.testing.assert_array_equal(by_rotation(V, 5, 1, seed(7)).labels(V), theirs)
    theirs = sklearn_spectral.cluster_qr(V)
    np.testing.assert_array_equal(by_pivots(V, 5, 1, seed(7)).labels(V), theirs)


def test_neighbors_suit_the_digits():
    X, y = datasets.load_digits(return_X_y=True)
    model = SpectralClustering(10, affinity="nearest_neighbors", random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) >= 0.7
    half = SpectralClustering(10, affinity="nearest_neighbors", random_state=0).fit(X[::2])
    assert adjusted_rand_score(y[1::2], half.predict(X[1::2])) >= 0.65


@pytest.mark.parametrize("make", [np.asarray, "sparse"])
def test_neighbors_of_given_distances(make):
    X, _ = datasets.make_moons(200, noise=0.05, random_state=0)
    D = cdist(X, X)
    if isinstance(make, str):
        make = lambda D: sparse.csr_matrix(kneighbors(D, 30))  # noqa: E731
    settings = {"affinity": "precomputed_nearest_neighbors", "n_neighbors": 8, "random_state": 0}
    ours = settings | {"neighbor_weights": "uniform"}
    model = SpectralClustering(2, **ours).fit(make(D))
    rows = SpectralClustering(2, **ours | {"affinity": "nearest_neighbors"}).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a graph in pieces
        theirs = sklearn.cluster.SpectralClustering(2, **settings).fit(make(D))
    assert adjusted_rand_score(theirs.labels_, model.labels_) == 1
    assert adjusted_rand_score(rows.labels_, model.labels_) == 1
    assert abs(model.affinity_matrix_ - theirs.affinity_matrix_).max() == 0
    assert abs(model.affinity_matrix_ - rows.affinity_matrix_).max() == 0
    np.testing.assert_array_equal(model.predict(make(D)), model.labels_)


def kneighbors(D, k):
    """The k least distances of every row, zeros included, as a sparse matrix."""
    index = np.argsort(D, axis=1)[:, :k]
    rows = np.repeat(np.arange(len(D)), k)
    data = np.take_along_axis(D, index, axis=1).ravel()
    return sparse.coo_matrix((data, (rows, index.ravel())), shape=D.shape)


@pytest.mark.parametrize("affinity", ["rbf", "laplacian", "nearest_neighbors", "precomputed"])
def test_affinity_matrix_is_that_of_scikit_learn(affinity):
    X, _ = blobs(60)
    X = oracle.kernel_matrix("rbf", X, gamma=0.3) if affinity == "precomputed" else X
    settings = {"affinity": affinity, "gamma": 0.3, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = sklearn.cluster.SpectralClustering(4, **settings).fit(X).affinity_matrix_
    ours = SpectralClustering(4, n_neighbors=10, neighbor_weights="uniform", **settings).fit(X)
    ours = ours.affinity_matrix_
    assert abs(ours - theirs).max() <= 1e-12
    with pytest.raises(AttributeError, match="no matrix of all affinities"):
        _ = SpectralClustering(4, basis=Landmarks(9), random_state=0).fit(X).affinity_matrix_


@pytest.mark.parametrize("affinity", ["rbf", "nearest_neighbors"])
@pytest.mark.parametrize("solver", ["arpack", "lobpcg", "dense", "krylov"])
def test_solvers_of_scikit_learn_by_their_names(solver, affinity):
    X, _ = datasets.make_moons(300, noise=0.05, random_state=0)
    settings = {"gamma": 30.0, "affinity": affinity, "n_neighbors": 12, "random_state": 0}
    model = SpectralClustering(2, eigen_solver=solver, tol=1e-6, **settings).fit(X)
    A = sparse.csr_matrix(model.affinity_matrix_).toarray()
    np.fill_diagonal(A, 0)
    d = A.sum(axis=0)
    values = np.linalg.eigvalsh(A / np.sqrt(np.outer(d, d)))[::-1][:2]
    np.testing.assert_allclose(model.eigenvalues_, values, atol=1e-5)
    exact = SpectralClustering(2, eigen_solver="dense", **settings).fit(X)
    assert adjusted_rand_score(exact.labels_, model.labels_) >= 0.95


def test_parameters_and_defaults_of_scikit_learn():
    theirs = sklearn.cluster.SpectralClustering().get_params()
    ours = SpectralClustering().get_params()
    assert theirs.keys() - ours.keys() == {"eigen_tol"}  # `tol` here, as everywhere
    differ = {name for name in theirs.keys() & ours.keys() if theirs[name] != ours[name]}
    assert differ == {"eigen_solver", "affinity", "gamma", "n_neighbors"}


def test_a_graph_in_pieces():
    """One eigenvalue of 1 for each, and clusters that are the pieces."""
    X, y = datasets.make_blobs(600, 3, centers=6, cluster_std=0.2, random_state=1)
    model = SpectralClustering(6, affinity="nearest_neighbors", random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1
    np.testing.assert_allclose(model.eigenvalues_, 1, atol=1e-8)


def test_fewer_eigenvectors_than_clusters_are_told():
    X, _ = blobs(60)
    with pytest.warns(UserWarning, match="finds one cluster per eigenvector, 3 in all"):
        SpectralClustering(4, n_components=3, assign_labels="cluster_qr").fit(X)


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
    width = {} if isinstance(affinity, Matern | RBF) else {"gamma": 0.5}
    model = SpectralClustering(3, affinity=affinity, **width, random_state=0).fit(X)
    assert model.labels_.shape == (90,) and np.isfinite(model.embedding_).all()
    if affinity != "cosine":
        assert adjusted_rand_score(y, model.labels_) >= 0.95


def test_auto_is_exact_for_few_rows():
    X, _ = blobs(600)
    assert not hasattr(SpectralClustering(4, random_state=0).fit(X), "landmarks_")


def test_fit_predict_clone_and_seed():
    X, _ = blobs()
    model = SpectralClustering(4, random_state=3)
    labels = model.fit_predict(X)
    np.testing.assert_array_equal(labels, clone(model).fit(X).labels_)
    assert model.affinity_ == "nearest_neighbors" and model.plan_.method


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("scale", [1e-3, 1, 1e3])
def test_defaults_find_clusters_of_any_shape_and_scale(seed, scale):
    draws = {
        "moons": datasets.make_moons(500, noise=0.05, random_state=seed),
        "circles": datasets.make_circles(500, factor=0.5, noise=0.04, random_state=seed),
    }
    for name, (X, y) in draws.items():
        model = SpectralClustering(2, random_state=seed).fit(scale * X)
        assert adjusted_rand_score(y, model.labels_) >= 0.95, name
        np.testing.assert_array_equal(model.predict(scale * X), model.labels_)


@pytest.mark.parametrize("labels", ["kmeans", "discretize", "cluster_qr"])
@pytest.mark.parametrize("seed", range(3))
def test_the_number_of_clusters_by_eigengap(seed, labels, tmp_path):
    """Drawn groups apart from each other; the model of another number is that of a fit with it."""
    rng = generator(seed, 71)
    k, centers = int(rng.integers(2, 9)), 12 * rng.permutation(9)
    X = np.vstack([rng.standard_normal((rng.integers(40, 90), 3)) + c for c in centers[:k]])
    model = SpectralClustering("auto", assign_labels=labels, random_state=0).fit(X)
    assert model.n_clusters_ == k == len(set(model.labels_))
    assert model.eigengaps_.shape == (20,) and 2 + np.argmax(model.eigengaps_[1:]) == k
    assert model.embedding_.shape == (len(X), k) and model.eigenvalues_.shape == (21,)
    other, fewer = k + 2, SpectralClustering(k + 2, assign_labels=labels, random_state=0).fit(X)
    regrouped = model.with_clusters(other)
    assert model.n_clusters_ == k and regrouped.n_clusters_ == other == regrouped.n_clusters
    assert regrouped.embedding_.shape == fewer.embedding_.shape
    np.testing.assert_array_equal(regrouped.predict(X), regrouped.labels_)
    np.testing.assert_array_equal(regrouped.with_clusters(k).labels_, model.labels_)
    # Each group is one cluster or several.
    assert adjusted_rand_score(fewer.with_clusters(k).labels_, model.labels_) == 1
    with pytest.raises(ValueError, match="max_clusters=22"):
        model.with_clusters(22)
    model.save(tmp_path / "clusters.mercer")
    stored = load(tmp_path / "clusters.mercer")
    assert stored.n_clusters_ == k
    np.testing.assert_array_equal(stored.predict(X), model.labels_)
    with pytest.raises(ValueError, match="model files and fits to more rows"):
        stored.with_clusters(other)


def test_the_number_of_clusters_of_few_rows_and_of_rings():
    ring, _ = datasets.make_circles(400, factor=0.5, noise=0.03, random_state=0)
    assert SpectralClustering("auto", random_state=0).fit(ring).n_clusters_ == 2
    wide = SpectralClustering("auto", max_clusters=3, n_components=6, random_state=0).fit(ring)
    assert wide.embedding_.shape == (400, 6) and wide.eigenvalues_.shape == (6,)
    for n in (3, 4, 9):
        model = SpectralClustering("auto", gamma=1.0).fit(generator(n).standard_normal((n, 2)))
        assert 2 <= model.n_clusters_ <= n and model.eigenvalues_.shape == (n,)


@pytest.mark.parametrize("affinity", ["rbf", "nearest_neighbors"])
def test_a_cluster_of_nearly_all_rows_warns(affinity):
    X = generator(72).standard_normal((1300, 2))
    X[:6], X[6:12] = 1e2 + X[:6] / 10, -1e2 + X[6:12] / 10
    model = SpectralClustering(3, affinity=affinity, gamma=1.0, n_neighbors=6, random_state=0)
    with pytest.warns(UserWarning, match="One cluster has 1,288 of 1,300 rows .sizes 1288, 6, 6."):
        model.fit(X)


@pytest.mark.filterwarnings("ignore:Only .* landmarks were chosen")
def test_auto_affinity_goes_by_what_is_given():
    X, y = datasets.make_blobs(21_000, 3, centers=4, cluster_std=0.4, random_state=1)
    graph = SpectralClustering(4, n_init=1, tol=1e-3, random_state=0)
    assert clone(graph).fit(X[:900]).graph_.n_neighbors == 10
    assert clone(graph).fit(X[:20]).graph_.n_neighbors == 5
    kernels = {
        "width": {"gamma": 1.0},
        "basis": {"basis": Landmarks(50)},
        "memory": {"memory": 16 * 10**6},
    }
    for name, settings in kernels.items():
        model = clone(graph).set_params(**settings).fit(X)
        assert model.affinity_ == "rbf", name
        assert adjusted_rand_score(y, model.labels_) >= 0.9, name
    with pytest.raises(ValueError, match="cannot hold a graph of 15 neighbors of 21,000 rows"):
        clone(graph).set_params(memory=25 * 10**6, n_neighbors=15).fit(X)


def test_memory_is_bounded():
    X, _ = blobs(4000)
    settings = {"n_clusters": 4, "gamma": 1.0, "basis": "points", "n_init": 1, "n_jobs": 1}
    model = SpectralClustering(**settings, memory=11 * 10**6, random_state=0, tol=1e-3)
    clone(model).fit(X[:500])
    used = peak_bytes(lambda: model.fit(X))
    # The budget, and no matrix of 128 MB.
    assert used <= 11 * 10**6 + 10**6


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
        ({"affinity": "precomputed"}, -np.ones((9, 9)), "must not be negative"),
        ({"affinity": "linear"}, data() - data().mean(axis=0) - 5e-3, "must not be negative"),
        ({"affinity": "nearest_neighbors", "n_neighbors": 21}, data(), "n_neighbors=21 is more"),
        ({"affinity": "precomputed_nearest_neighbors"}, data(), "square matrix"),
        ({"affinity": "nearest_neighbors", "basis": "landmarks"}, data(), "needs points"),
        ({"assign_labels": "best"}, data(), "'assign_labels' parameter"),
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


WIDTHS = {
    "clusters": SpectralClustering(3, random_state=0),
    "clusters by landmarks": SpectralClustering(3, basis="landmarks", random_state=0),
    "embedding": SpectralEmbedding(2, affinity="rbf", random_state=0),
    "walk": DiffusionMap(2, random_state=0),
}


@pytest.mark.parametrize("name", WIDTHS)
@pytest.mark.parametrize("draw", range(3))
def test_a_width_that_tells_nothing_is_told_of(name, draw):
    """With the gamma that would do: it is then not told of, and finds the clusters."""
    rng = generator(91, draw)
    d, unit = int(rng.integers(5, 30)), 10 ** rng.uniform(-2, 2)
    centers = 8 * rng.standard_normal((3, d))
    labels = rng.integers(3, size=240)
    X = unit * (centers[labels] + rng.standard_normal((240, d)))
    model = clone(WIDTHS[name])
    for gamma, word in ((20 / d, "too large"), (1e-14, "too small")):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            model.set_params(gamma=gamma / unit**2).fit(X)
        (said,) = [str(one.message) for one in told if "for these data" in str(one.message)]
        assert word in said
    measured = float(re.search(r"gamma='median' \(here (\S+)\)", said).group(1))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.set_params(gamma=measured).fit(X)
    assert not any("for these data" in str(one.message) for one in told)
    if name.startswith("clusters"):
        assert adjusted_rand_score(labels, model.labels_) == 1


@pytest.mark.filterwarnings("ignore:The affinities fall into", "ignore:Not converged")
@pytest.mark.parametrize("solver", ["dense", "arpack", "krylov", "lobpcg", "randomized"])
@pytest.mark.parametrize("seed", range(4))
def test_affinities_with_eigenvalues_of_minus_one(solver, seed):
    """Groups whose halves are tied to each other alone have -1 as often as 1: no solver takes it.

    Nor are the functions of -1 taken, which part the halves of a group.
    """
    rng = generator(353, seed)
    k = int(rng.integers(3, 8))
    sizes = rng.integers(8, 25, (k, 2))
    K = np.zeros((sizes.sum(), sizes.sum()))
    groups = np.repeat(np.arange(k), sizes.sum(axis=1))
    halves = np.repeat(np.arange(2 * k), sizes.ravel())
    for group in range(k):
        rows, columns = (np.flatnonzero(halves == 2 * group + side) for side in (0, 1))
        K[np.ix_(rows, columns)] = rng.uniform(0.2, 1.0, (rows.size, columns.size))
    K = K + K.T
    options = {"affinity": "precomputed", "eigen_solver": solver, "random_state": seed}
    labels = SpectralClustering(k, **options).fit_predict(K)
    assert adjusted_rand_score(groups, labels) == 1.0
    for estimator in (SpectralEmbedding, DiffusionMap):
        model = estimator(k - 1, **options).fit(K)
        np.testing.assert_allclose(model.eigenvalues_, 1.0, atol=1e-8)
        for group in range(k):
            spread = np.ptp(model.embedding_[groups == group], axis=0)
            assert np.all(spread <= 1e-6 * np.abs(model.embedding_).max())


@pytest.mark.filterwarnings("ignore:The affinities fall into", "ignore:Not converged")
@pytest.mark.parametrize("estimator", [SpectralClustering, SpectralEmbedding, DiffusionMap])
def test_pairs_of_points_by_fixed_passes(estimator):
    """A pair has the eigenvalues 1 and -1 where points have no affinity with themselves."""
    rng = generator(354)
    X = np.repeat(20.0 * rng.permutation(60)[:, None] * [1.0, 1.0], 2, axis=0)
    X += 0.1 * rng.normal(size=X.shape)
    options = {"affinity": "rbf", "gamma": 1.0, "eigen_solver": "randomized", "random_state": 0}
    model = estimator(6, **options).fit(X)
    np.testing.assert_allclose(model.eigenvalues_, 1.0, atol=1e-6)
