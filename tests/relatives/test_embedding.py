"""Spectral embedding and diffusion maps: against scikit-learn, a dense oracle and themselves."""

import warnings

import numpy as np
import oracle
import pytest
import sklearn.manifold
from contracts import generator, peak_bytes
from scipy import sparse
from scipy.stats import spearmanr
from sklearn import datasets
from sklearn.base import clone
from sklearn.datasets import make_swiss_roll
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import DiffusionMap, KernelPCA, SpectralEmbedding, embedding_init, load
from mercer.bases import Landmarks
from mercer.kernels import RBF, Matern

# Beside those of estimators as they come.
CHECKED = [
    SpectralEmbedding(affinity="rbf", basis=Landmarks(0.5)),
    DiffusionMap(basis=Landmarks(0.5), density_power=1),
]


@parametrize_with_checks(CHECKED)
def test_estimator(estimator, check):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The affinities fall into")  # blobs without ties
        check(estimator)


def roll(n=300, seed=0):
    return datasets.make_swiss_roll(n, random_state=seed)[0]


def walk(X, alpha, t, r, gamma=0.02, diagonal=1.0):
    """Coordinates of a diffusion map from dense matrices, and the eigenvalues."""
    K = oracle.kernel_matrix("rbf", X, gamma=gamma)
    q = K.sum(axis=1)
    K = K / np.outer(q, q) ** alpha
    d = K.sum(axis=1)
    values, U = oracle.eigenpairs(K / np.sqrt(np.outer(d, d)), r + 1, centered=False)
    psi = U * np.sqrt(d.sum() / d)[:, None]
    return (psi * values**t)[:, 1:], values[1:]


def same(Y, Z, atol):
    """Equal but for the signs of columns."""
    Y, Z = np.asarray(Y), np.asarray(Z)
    signs = np.sign(np.einsum("ij,ij->j", Y, Z))
    np.testing.assert_allclose(Y, Z * signs, atol=atol * np.abs(Z).max())


@pytest.mark.parametrize("affinity", ["nearest_neighbors", "rbf", "precomputed", "callable"])
@pytest.mark.parametrize("seed", range(2))
def test_embedding_of_scikit_learn(affinity, seed):
    """Scale and signs included, on connected graphs."""
    X = roll(200, seed)
    if affinity == "precomputed":
        X = oracle.kernel_matrix("rbf", X, gamma=0.02)
    theirs = affinity
    if affinity == "callable":
        theirs = lambda X: np.exp(-0.02 * ((X[:, None] - X) ** 2).sum(axis=2))  # noqa: E731
        affinity = lambda x, z: np.exp(-0.02 * ((x - z) ** 2).sum())  # noqa: E731
        X = X[:60]
    settings = {"n_components": 3, "gamma": 0.02, "random_state": 0}
    Y = sklearn.manifold.SpectralEmbedding(affinity=theirs, **settings).fit_transform(X)
    graph = {"n_neighbors": None, "neighbor_weights": "uniform"}
    model = SpectralEmbedding(affinity=affinity, **graph, **settings)
    np.testing.assert_allclose(model.fit_transform(X), Y, atol=1e-7 * np.abs(Y).max())


def test_parameters_and_defaults_of_scikit_learn():
    theirs = sklearn.manifold.SpectralEmbedding().get_params()
    ours = SpectralEmbedding().get_params()
    assert theirs.keys() - ours.keys() == {"eigen_tol"}  # `tol` here, as everywhere
    differ = {name for name in theirs.keys() & ours.keys() if theirs[name] != ours[name]}
    assert differ == {"eigen_solver", "affinity", "gamma", "n_neighbors"}


@pytest.mark.parametrize("seed", range(3))
def test_defaults_unroll_the_swiss_roll(seed):
    X, place = make_swiss_roll(generator(seed).integers(600, 1500), noise=0.05, random_state=seed)
    first = SpectralEmbedding(random_state=seed).fit_transform(X)[:, 0]
    assert abs(spearmanr(first, place).statistic) > 0.98


@pytest.mark.parametrize("basis", ["points", "all landmarks"])
@pytest.mark.parametrize("t", [0, 1, 2.5])
@pytest.mark.parametrize("alpha", [0, 0.5, 1])
def test_diffusion_map_of_dense_matrices(alpha, t, basis):
    X = roll(150)
    recipe = Landmarks(indices=np.arange(150)) if basis == "all landmarks" else basis
    model = DiffusionMap(3, density_power=alpha, t=t, gamma=0.02, basis=recipe, random_state=0).fit(
        X
    )
    Y, values = walk(X, alpha, t, 3)
    same(model.embedding_, Y, 1e-6)
    np.testing.assert_allclose(model.eigenvalues_, values, atol=1e-9)


def test_distances_are_those_of_the_walk():
    """With all coordinates: sum_k (p_t(i, k) - p_t(j, k))^2 / pi(k)."""
    X = roll(40)
    K = oracle.kernel_matrix("rbf", X, gamma=0.02)
    P = K / K.sum(axis=1, keepdims=True)
    rest = K.sum(axis=1) / K.sum()
    Pt = np.linalg.matrix_power(P, 3)
    D2 = (((Pt[:, None] - Pt) ** 2) / rest).sum(axis=2)
    Y = DiffusionMap(39, density_power=0, t=3, gamma=0.02).fit_transform(X)
    np.testing.assert_allclose(((Y[:, None] - Y) ** 2).sum(axis=2), D2, atol=1e-8 * D2.max())


def test_alpha_one_forgets_the_density():
    """Points on an interval, ever fewer along it: the first coordinate is a cosine of the place."""
    place = np.linspace(0, 1, 4001)
    mass = np.cumsum(np.exp(-4 * place))
    x = np.interp((np.arange(800) + 0.5) / 800, mass / mass[-1], place)
    wanted = np.cos(np.pi * x)
    settings = {"n_components": 1, "gamma": 400.0, "random_state": 0}
    errors = []
    for alpha in (0, 1):
        Y = DiffusionMap(density_power=alpha, **settings).fit_transform(x[:, None])[:, 0]
        errors.append(1 - abs(np.corrcoef(Y, wanted)[0, 1]))
    assert errors[1] < 0.001 < 0.05 < errors[0]


MODELS = {
    "neighbors": SpectralEmbedding(2, random_state=0),
    "kernel": SpectralEmbedding(2, affinity="rbf", gamma=0.02, random_state=0),
    "matern": SpectralEmbedding(2, affinity=Matern(gamma=0.1), random_state=0),
    "poly": SpectralEmbedding(2, affinity="poly", gamma=0.01, degree=2, coef0=9, random_state=0),
    "landmarks": SpectralEmbedding(
        2, affinity="rbf", gamma=0.02, basis=Landmarks(60), random_state=0
    ),
    "walk": DiffusionMap(2, gamma=0.02, t=2, random_state=0),
    "walk by landmarks": DiffusionMap(
        2, gamma=0.02, density_power=1, basis=Landmarks(60), random_state=0
    ),
    "walk on neighbors": DiffusionMap(2, affinity="nearest_neighbors", random_state=0),
}


@pytest.mark.parametrize("name", MODELS)
def test_training_rows_are_where_they_were(name, tmp_path):
    X = roll(250)
    model = clone(MODELS[name]).fit(X)
    Y, size = model.embedding_, np.abs(model.embedding_).max()
    np.testing.assert_allclose(model.transform(X), Y, atol=1e-6 * size)
    np.testing.assert_allclose(model.transform(X[3:4]), Y[3:4], atol=1e-6 * size)
    model.save(tmp_path / "a.mercer")
    again = load(tmp_path / "a.mercer")
    new = X[:40] + 0.1
    np.testing.assert_allclose(again.transform(new), model.transform(new), atol=1e-9 * size)
    np.testing.assert_array_equal(again.embedding_, Y)
    assert list(model.get_feature_names_out())[1].endswith("1")


@pytest.mark.parametrize("name", MODELS)
def test_new_rows_are_near_their_neighbors(name):
    """Half of the rows placed by the others are about where a fit of all would have them."""
    X = roll(900)
    model = clone(MODELS[name]).fit(X[::2])
    Y, Z = model.embedding_, model.transform(X[1::2])
    nearest = ((X[1::2, None] - X[::2]) ** 2).sum(axis=2).argmin(axis=1)
    error = np.linalg.norm(Z - Y[nearest], axis=1)
    assert np.median(error) <= 0.25 * np.linalg.norm(Y.std(axis=0))


def test_far_rows_stay_within_the_embedding():
    X = roll(200)
    for model in (MODELS["kernel"], MODELS["neighbors"]):
        model = clone(model).fit(X)
        far = model.transform(X[:20] + 60)
        assert np.isfinite(far).all()
        assert np.abs(far).max() <= 1.5 * np.abs(model.embedding_).max()


def test_precomputed_takes_affinities_of_new_rows():
    X = roll(120)
    K = oracle.kernel_matrix("rbf", X, gamma=0.02)
    for make in (np.asarray, sparse.csr_matrix):
        model = SpectralEmbedding(2, affinity="precomputed", random_state=0).fit(make(K))
        np.testing.assert_allclose(model.transform(make(K[:9])), model.embedding_[:9], atol=1e-7)
        model = DiffusionMap(2, affinity="precomputed", random_state=0).fit(make(K))
        same(model.embedding_, walk(X, 0.5, 1, 2)[0], 1e-6)
        np.testing.assert_allclose(model.transform(make(K[:9])), model.embedding_[:9], atol=1e-7)


@pytest.mark.parametrize("model", [SpectralEmbedding(n_neighbors=8), DiffusionMap(gamma=1.0)])
def test_pieces_are_told(model):
    X, _ = datasets.make_blobs(90, centers=[[0, 0], [90, 0], [0, 90]], random_state=0)
    with pytest.warns(UserWarning, match=r"(fall into at least|falls into) 3 pieces"):
        clone(model).fit(X)


@pytest.mark.parametrize("kind", [SpectralEmbedding, DiffusionMap])
@pytest.mark.parametrize("ties", ["uniform", "local"])
@pytest.mark.parametrize("trial", range(3))
def test_no_coordinate_is_spent_on_telling_pieces_apart(kind, ties, trial):
    """Coordinates are those of the pieces alone, the slowest first, and zero on the others."""
    rng = generator(40 + trial)
    sizes = rng.integers(30, 200, rng.integers(2, 6))
    X = np.vstack([rng.standard_normal((n, 4)) + 100 * i for i, n in enumerate(sizes)])
    truth, order = np.repeat(np.arange(sizes.size), sizes), rng.permutation(sizes.sum())
    X, truth = X[order], truth[order]
    options = {"affinity": "nearest_neighbors", "neighbor_weights": ties, "n_neighbors": 12}
    model = kind(6, random_state=0, **options)
    with pytest.warns(UserWarning, match="falls into"):
        model.fit(X)
    # Pieces of a graph of neighbors may be more than the groups, never fewer.
    assert all(np.unique(truth[model.pieces_ == p]).size == 1 for p in np.unique(model.pieces_))
    assert model.eigenvalues_.max() < 1 - 1e-6
    slowest = []
    for p in np.unique(model.pieces_):
        alone = kind(6, random_state=0, **options).fit(X[model.pieces_ == p])
        slowest.extend(alone.eigenvalues_)
    np.testing.assert_allclose(model.eigenvalues_, np.sort(slowest)[::-1][:6], atol=1e-7)
    where = [
        np.unique(model.pieces_[np.abs(y) > 1e-5 * np.abs(y).max()]) for y in model.embedding_.T
    ]
    assert all(len(w) == 1 for w in where)
    np.testing.assert_allclose(model.transform(X), model.embedding_, atol=1e-6)


def test_memory_is_bounded():
    X = roll(3000)
    settings = {"basis": "points", "memory": 16 * 10**6, "n_jobs": 1, "tol": 1e-3}
    model = DiffusionMap(2, gamma=0.02, **settings)
    clone(model).fit(X[:500])
    used = peak_bytes(lambda: model.fit(X))
    assert used <= 17 * 10**6  # and no matrix of 72 MB


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_components": 20}, "must be less than n_samples=20"),
        ({"affinity": "nearest_neighbors", "n_neighbors": 30}, "n_neighbors=30 is more"),
        ({"affinity": "none"}, "'affinity' parameter"),
        ({"affinity": "precomputed"}, "square matrix"),
        ({"affinity": "nearest_neighbors", "basis": "landmarks"}, "needs points"),
        ({"affinity": "linear"}, "must not be negative"),
    ],
)
def test_bad_input(settings, message):
    X = generator(5).standard_normal((20, 3))
    X -= X.mean(axis=0) + 5e-3
    for model in (SpectralEmbedding, DiffusionMap):
        with pytest.raises(ValueError, match=message):
            model(**settings).fit(X)
    with pytest.raises(ValueError, match="'density_power' parameter"):
        DiffusionMap(density_power=-1).fit(X)


def test_kernel_objects_bring_their_width():
    X = roll(80)
    ours = DiffusionMap(2, affinity=RBF(gamma=0.02), random_state=0).fit_transform(X)
    same(ours, walk(X, 0.5, 1, 2)[0], 1e-6)


def test_all_scores_have_the_distances_of_feature_space():
    """So that k-means on them is kernel k-means."""
    X = generator(8).standard_normal((40, 4))
    K = oracle.kernel_matrix("rbf", X, gamma=0.3)
    D2 = np.diag(K)[:, None] + np.diag(K) - 2 * K
    S = KernelPCA(kernel="rbf", gamma=0.3).fit_transform(X)
    np.testing.assert_allclose(((S[:, None] - S) ** 2).sum(axis=2), D2, atol=1e-10)


def test_embedding_init_is_scaled_and_tells_equal_rows_apart():
    S = generator(9).standard_normal((500, 4)) * [9, 3, 1, 1] + 5
    S[1] = S[0]
    start = embedding_init(S, random_state=0)
    assert start.shape == (500, 2) and start.dtype == np.float32
    assert start[:, 0].std() == pytest.approx(1e-4, rel=0.05)
    assert np.abs(start.mean(axis=0)).max() < 1e-5
    assert np.corrcoef(start[:, 1], S[:, 1])[0, 1] > 0.99
    assert 0 < np.linalg.norm(start[0] - start[1]) < 1e-5
    exact = embedding_init(S, 3, scale=5, jitter=0)
    centered = S[:, :3] - S[:, :3].mean(axis=0)
    np.testing.assert_allclose(exact, 5 * centered / S[:, 0].std(), rtol=1e-5, atol=1e-6)
    assert np.isfinite(embedding_init(np.ones((5, 2)), random_state=0)).all()
    for settings in ({"n_components": 5}, {"scale": 0}, {"jitter": -1}):
        with pytest.raises(ValueError, match=r"asked for|must be above zero"):
            embedding_init(S, **settings)


def spanned_walk(X, new, Z, alpha, t, r, gamma):
    """The walk on affinities in the span of points Z, for training and new rows, dense.

    Densities and degrees are at least those of a row that is tied to itself alone.
    """

    def affinities(A):
        return oracle.kernel_matrix("rbf", A, Z, gamma=gamma)

    inverse = np.linalg.pinv(oracle.kernel_matrix("rbf", Z, gamma=gamma), hermitian=True)
    K, L = (affinities(A) @ inverse @ affinities(X).T for A in (X, new))
    thin, thin_new = (np.maximum(A.sum(axis=1), 1) ** -alpha for A in (K, L))
    degrees = thin * np.maximum(K @ thin, thin)
    scale = thin / np.sqrt(degrees)
    values, U = np.linalg.eigh(scale[:, None] * K * scale)
    values, U = values[::-1][1 : r + 1], U[:, ::-1][:, 1 : r + 1]
    functions = U * np.sqrt(degrees.sum() / degrees)[:, None]
    below = np.maximum(L @ thin, thin_new)[:, None]
    return L @ (thin[:, None] * functions) / below * values ** (t - 1), functions * values**t


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_rows_that_landmarks_do_not_see_have_the_degree_of_one_row(seed, alpha):
    """Training rows and new ones: without it they would be thrown about by rounding."""
    rng = generator(seed, 17)
    X, Z = rng.standard_normal((120, 2)), 1.5 * rng.standard_normal((12, 2))
    X[:4] += [8.0, 0.0]
    new = np.vstack([rng.standard_normal((5, 2)), X[:4] + 0.5, [[0.0, 9.0], [0.0, 12.0]]])
    options = {"density_power": alpha, "t": 1, "gamma": 0.3, "basis": Landmarks(points=Z)}
    model = DiffusionMap(3, **options).fit(X)
    wanted, trained = spanned_walk(X, new, Z, alpha, 1, 3, 0.3)
    signs = np.sign(np.sum(trained * model.embedding_, axis=0))
    np.testing.assert_allclose(model.embedding_, signs * trained, atol=1e-8)
    np.testing.assert_allclose(model.transform(new), signs * wanted, atol=1e-8)
    assert np.abs(model.transform(new[-1:])).max() < 1e-3


@pytest.mark.parametrize("draw", range(4))
@pytest.mark.parametrize("name", ["rbf", "neighbors", "given", "walk", "walk on neighbors"])
def test_training_rows_are_where_they_were_along_negative_eigenvalues_too(name, draw):
    """Neighbors that oscillate: many coordinates, affinities of no inner product."""
    rng = generator(19, draw)
    n = int(rng.integers(25, 80))
    X = rng.standard_normal((n, 3))
    A = rng.uniform(size=(n, n))
    A += A.T
    np.fill_diagonal(A, rng.uniform(0, 2))
    model, rows = {
        "rbf": (SpectralEmbedding(n - 2, affinity="rbf", gamma=0.3), X),
        "neighbors": (SpectralEmbedding(n - 2, n_neighbors=7), X),
        "given": (SpectralEmbedding(n - 2, affinity="precomputed"), A),
        "walk": (DiffusionMap(n - 2, affinity="precomputed"), A),
        "walk on neighbors": (DiffusionMap(n - 2, affinity="nearest_neighbors", n_neighbors=7), X),
    }[name]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The affinities fall into")
        Y = model.set_params(random_state=draw).fit(rows).embedding_
    values = np.asarray(model.eigenvalues_)
    assert (values < -0.01).any()
    known = np.abs(values) > 1e-6  # others have no functions of rows
    assert np.abs(Y[:, known]).max(axis=0).min() > 0
    size = np.abs(Y).max()
    np.testing.assert_allclose(model.transform(rows)[:, known], Y[:, known], atol=1e-7 * size)
    near = rows + 1e-9 * rng.standard_normal(rows.shape) if name == "rbf" else rows
    np.testing.assert_allclose(model.transform(near)[:, known], Y[:, known], atol=1e-5 * size)


@pytest.mark.parametrize("n", [8, 60, 90])
@pytest.mark.parametrize("options", [{}, {"basis": Landmarks(0.5)}, {"affinity": Matern(0.1)}])
def test_sparse_rows_are_rows_of_the_kernel(n, options):
    """Also where a matrix has as many columns as rows, and could be one of affinities."""
    A = sparse.random(60, n, 0.3, "csr", rng=generator(n))
    width = {} if isinstance(options.get("affinity"), Matern) else {"gamma": 0.1}
    model = DiffusionMap(2, random_state=0, **width, **options)
    sparse_model, dense_model = clone(model).fit(A), clone(model).fit(A.toarray())
    same(sparse_model.transform(A), dense_model.transform(A.toarray()), 1e-8)
    same(sparse_model.transform(A), sparse_model.embedding_, 1e-8)
