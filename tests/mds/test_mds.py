"""Classical MDS: distances recovered, scikit-learn's results and tests, landmarks, constants."""

import importlib
import os
import pickle

import numpy as np
import pytest
import sklearn.manifold
from contracts import generator, peak_bytes
from scipy import sparse
from scipy.linalg import orthogonal_procrustes
from scipy.spatial.distance import cdist
from sklearn.decomposition import PCA
from sklearn.metrics import pairwise_distances
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import ClassicalMDS, KernelPCA
from mercer.exceptions import InvalidParameterError
from mercer.kernels import RBF, Laplacian, Polynomial
from mercer.mds import distances
from mercer.mds.distances import LiftedDistance
from mercer.mds.scaling import double_centered, landmark_map

# scikit-learn's own tests of ClassicalMDS, collected under their names and run against ours.
HAS_PEER = hasattr(sklearn.manifold, "ClassicalMDS")
needs_peer = pytest.mark.skipif(not HAS_PEER, reason="this scikit-learn has no ClassicalMDS")
if HAS_PEER:
    suite = importlib.import_module("sklearn.manifold.tests.test_classical_mds")
    globals().update({name: test for name, test in vars(suite).items() if name.startswith("test_")})


@pytest.fixture(autouse=True)
def drop_in(monkeypatch):
    if HAS_PEER:
        monkeypatch.setattr(suite, "ClassicalMDS", ClassicalMDS)


@needs_peer
def test_suite_is_found():
    assert len([name for name in vars(suite) if name.startswith("test_")]) >= 4


@parametrize_with_checks([ClassicalMDS(dissimilarity="cityblock", landmarks=0.5)])
def test_estimator(estimator, check):
    check(estimator)


def points(n=200, d=5, seed=0):
    return generator(seed, n, d).standard_normal((n, d)) * np.arange(d, 0, -1) + 3


def cityblock(n=200, d=5):
    X = points(n, d)
    return cdist(X, X, "cityblock")


def lifted(D, constant):
    return LiftedDistance(None, constant, 0.0).lift(D)


def spectrum(D):
    return np.linalg.eigvalsh(double_centered(D))[::-1]


def procrustes(Y, Z):
    """Error of Y against Z after the best rotation, as a share of Z."""
    R, _ = orthogonal_procrustes(Y, Z)
    return np.linalg.norm(Y @ R - Z) / np.linalg.norm(Z)


@pytest.fixture(params=["dense", "iterative"])
def way(request):
    """Both ways to the eigenpairs."""
    return request.param


# Points of which all eigenvalues are found, and more.
SIZES = {"dense": 300, "iterative": 1001}


@pytest.mark.parametrize("given", ["euclidean", "precomputed", "function"])
def test_euclidean_distances_come_back(given):
    X = points(80, 4)
    D = cdist(X, X)
    model = ClassicalMDS(4, dissimilarity=cdist if given == "function" else given)
    Y = model.fit_transform(D if given == "precomputed" else X)
    np.testing.assert_allclose(cdist(Y, Y), D, atol=1e-12 * D.max())
    np.testing.assert_allclose(Y.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose((Y**2).sum(axis=0), model.eigenvalues_, rtol=1e-10)
    assert model.stress_ < 1e-12 and model.negative_share_ < 1e-12
    np.testing.assert_allclose(model.goodness_of_fit_, 1, atol=1e-12)


def test_euclidean_distances_have_nothing_negative(way):
    X = points(SIZES[way], 6)
    model = ClassicalMDS(2, dissimilarity="precomputed", random_state=0).fit(cdist(X, X))
    assert model.negative_share_ < 1e-12 and model.least_eigenvalue_ > -1e-9
    first, second = model.goodness_of_fit_
    share = PCA(2).fit(X).explained_variance_ratio_.sum()
    assert first == pytest.approx(share) and second == pytest.approx(share)
    assert "Euclidean" in model.summary()


@pytest.mark.parametrize("shape", [(300, 6), (40, 90), (1300, 3)])
def test_data_is_pca(shape):
    X = points(*shape)
    Y, pca = ClassicalMDS(3).fit_transform(X), PCA(3).fit(X)
    scores = pca.transform(X)
    scores *= np.sign((Y * scores).sum(axis=0))
    np.testing.assert_allclose(Y, scores, atol=1e-10 * np.abs(Y).max())


@needs_peer
def test_the_result_is_that_of_scikit_learn(way):
    D = cityblock(SIZES[way])
    theirs = sklearn.manifold.ClassicalMDS(3, metric="precomputed").fit(D)
    ours = ClassicalMDS(3, dissimilarity="precomputed", random_state=0).fit(D)
    scale = np.abs(theirs.embedding_).max()
    np.testing.assert_allclose(ours.embedding_, theirs.embedding_, atol=1e-7 * scale)
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-10)
    np.testing.assert_array_equal(ours.dissimilarity_matrix_, theirs.dissimilarity_matrix_)


@needs_peer
@pytest.mark.parametrize("metric", ["manhattan", "chebyshev", "cosine", "seuclidean", "minkowski"])
def test_metrics_are_those_of_scikit_learn(metric):
    X = points(150, 4)
    params = {"p": 3} if metric == "minkowski" else None
    theirs = sklearn.manifold.ClassicalMDS(2, metric=metric, metric_params=params).fit(X)
    ours = ClassicalMDS(2, dissimilarity=metric, metric_params=params, memory="1MB").fit(X)
    scale = np.abs(theirs.embedding_).max()
    np.testing.assert_allclose(ours.embedding_, theirs.embedding_, atol=1e-6 * scale)
    np.testing.assert_allclose(ours.dissimilarity_matrix_, theirs.dissimilarity_matrix_)


def test_a_metric_of_two_rows_and_a_function_of_blocks_agree():
    X = points(40, 3)
    rows = ClassicalMDS(2, metric=lambda a, b: np.abs(a - b).sum()).fit(X)
    blocks = ClassicalMDS(2, dissimilarity=lambda a, b: cdist(a, b, "cityblock")).fit(X)
    np.testing.assert_allclose(rows.embedding_, blocks.embedding_, atol=1e-10)


@pytest.mark.parametrize("correction", [None, "lingoes"])
@pytest.mark.parametrize("landmarks", [None, 40])
@pytest.mark.parametrize("given", ["euclidean", "cityblock", "precomputed", "function"])
def test_training_rows_keep_their_place(given, landmarks, correction, n=60):
    """To 1e-12, row by row as in one batch, with copies of a point among the rows."""
    X = points(n, 4)
    X[5] = X[11]
    D = cdist(X, X, "cityblock")
    kind = (lambda a, b: cdist(a, b, "cityblock")) if given == "function" else given
    model = ClassicalMDS(
        3, dissimilarity=kind, landmarks=landmarks, correction=correction, random_state=0
    )
    source = D if given == "precomputed" else X
    Y = model.fit(source).embedding_
    atol = 1e-12 * np.abs(Y).max() * (10 if correction else 1)
    np.testing.assert_allclose(model.transform(source), Y, rtol=0, atol=atol)
    single = np.vstack([model.transform(source[i : i + 1]) for i in (0, 5, 59)])
    np.testing.assert_allclose(single, Y[[0, 5, 59]], rtol=0, atol=atol)
    again = pickle.loads(pickle.dumps(model)) if given != "function" else model
    np.testing.assert_array_equal(again.transform(source[:3]), model.transform(source[:3]))


@pytest.mark.parametrize("given, correction", [("cityblock", None), ("precomputed", "lingoes")])
def test_many_training_rows_keep_their_place(given, correction):
    test_training_rows_keep_their_place(given, None, correction, SIZES["iterative"])


def test_new_points_are_placed_by_gower():
    """Euclidean distances: where the rotation of the data would put them."""
    X, new = points(150, 3), points(20, 3, seed=1)
    model = ClassicalMDS(3, dissimilarity="precomputed").fit(cdist(X, X))
    Y = model.transform(cdist(new, X))
    np.testing.assert_allclose(cdist(Y, model.embedding_), cdist(new, X), atol=1e-11)
    linear = ClassicalMDS(3).fit(X)
    np.testing.assert_allclose(linear.transform(new), Y, atol=1e-10)


def test_negative_eigenvalues_are_reported(way):
    D = cityblock(SIZES[way])
    values = spectrum(D)
    model = ClassicalMDS(2, dissimilarity="precomputed", random_state=0).fit(D)
    assert model.spectrum_.exact == (way == "dense")
    loose = 1e-9 if way == "dense" else 0.1
    absolute, positive = np.abs(values).sum(), values[values > 0].sum()
    exact = values[:2].sum() / absolute, values[:2].sum() / positive
    np.testing.assert_allclose(model.goodness_of_fit_, exact, rtol=loose)
    assert model.negative_share_ == pytest.approx(1 - positive / absolute, rel=loose)
    assert model.least_eigenvalue_ == pytest.approx(values[-1], rel=min(loose, 1e-2))
    assert model.strain_ == pytest.approx((values[2:] ** 2).sum(), rel=1e-8)
    Y = model.embedding_
    stress = np.sqrt(((cdist(Y, Y) - D) ** 2).sum() / (D**2).sum())
    assert model.stress_ == pytest.approx(stress)
    text = model.summary()
    assert f"{len(D):,} points in 2 dimensions" in text and f"{values[0]:.4g}" in text
    assert ("estimated" in text) == (way == "iterative") and "of the sum of |l|" in text


def test_no_dimension_is_nan():
    """More dimensions than positive eigenvalues: zeros and a warning, where roots were NaN."""
    D = np.array([[0, 1, 1, 4.0], [1, 0, 1, 1], [1, 1, 0, 1], [4, 1, 1, 0]])
    positive = int(np.sum(spectrum(D) > 1e-9))
    assert positive < 4
    with pytest.warns(UserWarning, match=f"{positive} of 4 dimensions have a positive"):
        model = ClassicalMDS(4, dissimilarity="precomputed").fit(D)
    assert model.embedding_.shape == (4, 4) and np.isfinite(model.embedding_).all()
    assert not model.embedding_[:, positive:].any()
    np.testing.assert_allclose(model.transform(D), model.embedding_, atol=1e-12)


@pytest.mark.parametrize("given", ["euclidean", "precomputed", "cityblock"])
def test_equal_points_are_all_at_zero(given):
    X = np.ones((6, 2))
    model = ClassicalMDS(2, dissimilarity=given).fit(cdist(X, X) if given == "precomputed" else X)
    np.testing.assert_array_equal(model.embedding_, np.zeros((6, 2)))
    assert np.isfinite([model.stress_, model.strain_, *model.goodness_of_fit_]).all()
    assert ClassicalMDS(5).fit_transform(points(4, 2)).shape == (4, 4)


@pytest.mark.parametrize("n", [60, 1001])
def test_the_constant_is_the_least_that_makes_distances_euclidean(n):
    D, settings = cityblock(n), {"dissimilarity": "precomputed", "correction": "lingoes"}
    model = ClassicalMDS(2, **settings, random_state=0).fit(D)
    c, scale = model.correction_constant_, spectrum(D)[0]
    assert c > 0
    assert spectrum(lifted(D, c))[-1] > -1e-8 * scale
    assert spectrum(lifted(D, 0.98 * c))[-1] < -1e-8 * scale
    assert model.negative_share_ < 1e-6
    if n == 60:
        Y = ClassicalMDS(59, **settings).fit(D).embedding_
        np.testing.assert_allclose(cdist(Y, Y), lifted(D, c), atol=1e-6 * D.max())


def test_euclidean_distances_need_no_constant():
    X = points(40, 3)
    D = cdist(X, X)
    plain = ClassicalMDS(2, dissimilarity="precomputed").fit(D)
    model = ClassicalMDS(2, dissimilarity="precomputed", correction="lingoes").fit(D)
    np.testing.assert_allclose(model.embedding_, plain.embedding_, atol=1e-4)


def test_landmarks_need_only_their_distances():
    X = points(500, 4)
    asked = []

    def distance(rows, columns):
        asked.append(len(rows) * len(columns))
        return cdist(rows, columns, "cityblock")

    ClassicalMDS(2, dissimilarity=distance, landmarks=30, random_state=0).fit(X)
    # Eight rows that show whether the distance is symmetric, landmarks among themselves, all points
    # once, and the sample that measures the fit.
    assert sum(asked) <= 8 * 8 + 30 * 30 + 2 * 500 * 30


@pytest.mark.parametrize("given", ["euclidean", "precomputed"])
def test_one_landmark_more_than_dimensions_is_exact(given):
    X = points(120, 3)
    D = cdist(X, X)
    exact = ClassicalMDS(3).fit(X)
    model = ClassicalMDS(3, dissimilarity=given, landmarks=[3, 50, 70, 119])
    Y = model.fit_transform(D if given == "precomputed" else X)
    assert procrustes(Y, exact.embedding_) < 1e-9
    np.testing.assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=1e-8)


def test_all_points_as_landmarks_drop_what_is_below_the_noise():
    D = cityblock(100)
    values = spectrum(D)
    map_, _ = landmark_map(D, 2)
    assert map_.weights.shape[1] == np.sum(values > -values[-1])


def test_more_landmark_eigenpairs_are_better_than_the_leading_two():
    """Triangulation with p pairs alone is the published method; PCA after all is nearer."""
    X = generator(8).standard_normal((800, 30)) * np.linspace(2, 1, 30)
    exact = ClassicalMDS(2).fit(X).embedding_
    index = np.arange(0, 800, 16)
    Y = ClassicalMDS(2, landmarks=index).fit(X).embedding_
    B, U = np.linalg.eigh(double_centered(cdist(X[index], X[index])))
    A = U[:, -2:] / np.sqrt(B[-2:])
    published = -0.5 * cdist(X, X[index]) ** 2 @ (A - A.mean(axis=0))
    published -= published.mean(axis=0)
    assert procrustes(Y, exact) < 0.5 * procrustes(published, exact)


def test_landmark_columns_alone():
    D = cityblock(150)
    index = np.arange(0, 150, 3)
    square = ClassicalMDS(2, dissimilarity="precomputed", landmarks=index).fit(D)
    narrow = ClassicalMDS(2, dissimilarity="precomputed", landmarks=index).fit(D[:, index])
    np.testing.assert_allclose(narrow.embedding_, square.embedding_, atol=1e-12)
    for rows in (D[:5], D[:5, index]):
        np.testing.assert_allclose(square.transform(rows), square.embedding_[:5], atol=1e-12)
    np.testing.assert_allclose(narrow.transform(D[:5, index]), narrow.embedding_[:5], atol=1e-12)


def test_landmarks_on_usps():
    if "MERCER_DATA" not in os.environ:
        pytest.skip("MERCER_DATA names no folder with the USPS digits")
    from papers_data import load_usps

    X = load_usps().data
    exact = ClassicalMDS(10).fit(X).embedding_
    Y = ClassicalMDS(10, landmarks=100, random_state=0).fit(X).embedding_
    assert procrustes(Y, exact) <= 0.06


def test_few_bytes_give_the_same_landmark_result():
    X = points(600, 6)
    settings = {"n_components": 2, "dissimilarity": "cityblock", "landmarks": 50}
    large = ClassicalMDS(**settings, random_state=0).fit(X)
    small = ClassicalMDS(**settings, random_state=0, memory=100_000, n_jobs=1).fit(X)
    np.testing.assert_allclose(small.embedding_, large.embedding_, atol=1e-10)


def test_memory_stays_well_under_the_matrix(monkeypatch):
    n, memory = 3000, 8 * 10**6
    X = points(n, 3)
    model = ClassicalMDS(
        2, dissimilarity="cityblock", memory=memory, n_jobs=1, tol=1e-5, random_state=0
    )
    ClassicalMDS(2, dissimilarity="cityblock").fit(X[:50])
    used = peak_bytes(lambda: model.fit(X))
    # The budget and the vectors of the solver and of the quadrature; the matrix has 72 MB.
    assert used <= memory + 10**6 < 8 * n * n / 3


def test_a_file_of_distances(tmp_path):
    D = cityblock(200)
    np.save(tmp_path / "D.npy", D)
    file = np.load(tmp_path / "D.npy", mmap_mode="r")
    model = ClassicalMDS(2, dissimilarity="precomputed", random_state=0).fit(file)
    memory = ClassicalMDS(2, dissimilarity="precomputed", random_state=0).fit(D)
    np.testing.assert_array_equal(model.embedding_, memory.embedding_)


def test_frames_in_and_out():
    pandas = pytest.importorskip("pandas")
    names = [f"town {i}" for i in range(30)]
    D = pandas.DataFrame(cityblock(30), columns=names)
    model = ClassicalMDS(2, dissimilarity="precomputed").set_output(transform="pandas").fit(D)
    Y = model.transform(D)
    assert list(Y.columns) == ["classicalmds0", "classicalmds1"]
    np.testing.assert_allclose(Y.to_numpy(), model.embedding_, atol=1e-12)


def changed(i, j, value, mirror=True):
    D = cityblock(12)
    D[i, j] = value
    if mirror:
        D[j, i] = value
    return D


@pytest.mark.parametrize(
    ("settings", "X", "message"),
    [
        ({}, changed(1, 2, -1.0), "negative distances, down to -1"),
        ({}, changed(1, 2, 9.0, mirror=False), "Array must be symmetric"),
        ({}, changed(3, 3, 0.5), "diagonal of a distance matrix must be zero, and holds 0.5"),
        ({}, changed(1, 2, np.inf), "NaN or infinite distances"),
        ({}, changed(1, 2, np.nan), "NaN or infinite distances"),
        ({}, cityblock(12)[:, :5], "2-dimensional and square"),
        ({}, [[0.0]], "minimum of 2 is required"),
        ({"landmarks": [1, 5]}, changed(1, 2, -1.0), "X holds negative distances"),
        ({"landmarks": [1, 2]}, changed(1, 2, 9.0, mirror=False), "Array must be symmetric"),
        ({"landmarks": [1, 99]}, cityblock(12), "row numbers below n_samples=12"),
        ({"landmarks": [0.5, 1.5]}, cityblock(12), "each an int"),
        ({"n_components": 0}, cityblock(12), "'n_components' parameter"),
        ({"correction": "more"}, cityblock(12), "'correction' parameter"),
        ({"metric": "cityblock"}, cityblock(12), "not both"),
    ],
)
def test_bad_distances(settings, X, message):
    with pytest.raises(ValueError, match=message):
        ClassicalMDS(**{"dissimilarity": "precomputed"} | settings).fit(X)


@pytest.mark.parametrize(
    ("settings", "X", "message"),
    [
        ({}, np.ones((1, 3)), "minimum of 2 is required"),
        ({}, np.full((5, 2), np.nan), "contains NaN"),
        ({"dissimilarity": "furlong"}, np.ones((5, 2)), "furlong"),
        ({"dissimilarity": lambda a, b: np.zeros(3)}, points(9), "returned shape"),
        ({"dissimilarity": lambda a, b: -cdist(a, b)}, points(9), "negative distances"),
    ],
)
def test_bad_data(settings, X, message):
    with pytest.raises(ValueError, match=message):
        ClassicalMDS(**settings).fit(X)


def test_the_only_constant_is_that_of_lingoes():
    with pytest.raises(InvalidParameterError, match=r"a str among \{'lingoes'\} or None"):
        ClassicalMDS(2, dissimilarity="precomputed", correction="cailliez").fit(cityblock(12))


def test_transform_checks_its_input():
    model = ClassicalMDS(2, dissimilarity="precomputed").fit(cityblock(12))
    with pytest.raises(ValueError, match="5 features, but ClassicalMDS is expecting 12"):
        model.transform(np.ones((2, 5)))
    with pytest.raises(ValueError, match="negative distances"):
        model.transform(-np.ones((2, 12)))
    with pytest.raises(ValueError, match="NaN or infinite"):
        model.transform(np.full((2, 12), np.nan))


@pytest.mark.parametrize("share", [0.5, 0.9, 0.999])
@pytest.mark.parametrize("way", ["euclidean", "wide", "precomputed", "cityblock", "landmarks"])
def test_dimensions_by_the_share_of_squared_eigenvalues(share, way):
    """The lecture's rule: the fewest d with sum_{a <= d} l_a^2 > share sum_a l_a^2."""
    rng = generator(31)
    X = rng.standard_normal((70, 90 if way == "wide" else 30)) * np.linspace(
        3, 0.1, 90 if way == "wide" else 30
    )
    metric = "cityblock" if way == "cityblock" else "euclidean"
    D = pairwise_distances(X, metric=metric)
    settings = {"landmarks": np.arange(40)} if way == "landmarks" else {}
    kind = "precomputed" if way == "precomputed" else metric
    model = ClassicalMDS(share, dissimilarity=kind, random_state=0, **settings)
    model.fit(D if way == "precomputed" else X)
    some = D[:40, :40] if way == "landmarks" else D
    H = np.eye(len(some)) - 1 / len(some)
    squares = np.sort(np.linalg.eigvalsh(-H @ some**2 @ H / 2))[::-1]
    squares = np.where(squares > 0, squares, 0) ** 2
    total = np.sum((H @ some**2 @ H / 2) ** 2)
    expected = int(np.sum(np.cumsum(squares) <= share * total)) + 1
    assert model.embedding_.shape == (70, min(expected, np.count_nonzero(squares)))


@pytest.mark.parametrize("landmarks", [None, 40])
def test_a_share_is_that_of_the_distances_without_the_constant(landmarks):
    settings = {"dissimilarity": "cityblock", "landmarks": landmarks, "random_state": 0}
    plain = ClassicalMDS(0.95, **settings).fit(points(120, 6))
    model = ClassicalMDS(0.95, correction="lingoes", **settings).fit(points(120, 6))
    assert model.embedding_.shape == plain.embedding_.shape
    assert model.correction_constant_ > 0


@pytest.mark.parametrize(
    "kernel", [RBF(gamma=0.2), Polynomial(degree=2, gamma=0.5, coef0=1.0), Laplacian(gamma=0.3)]
)
def test_kernel_pca_is_scaling_of_kernel_distances(kernel):
    """|phi(x) - phi(y)|^2 = k(x, x) + k(y, y) - 2 k(x, y), classically scaled, are the scores."""
    X = generator(32).standard_normal((60, 4))
    K = kernel(X)
    d2 = np.add.outer(np.diag(K), np.diag(K)) - 2 * K
    scaled = ClassicalMDS(5, dissimilarity="precomputed").fit(np.sqrt(np.maximum(d2, 0)))
    scores = KernelPCA(5, kernel=kernel).fit(X)
    np.testing.assert_allclose(scaled.eigenvalues_, scores.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(scaled.embedding_, scores.transform(X), atol=1e-8)


@needs_peer
@pytest.mark.parametrize("kind", ["euclidean", "cityblock", "precomputed", "landmarks"])
def test_more_components_than_points_are_as_many_as_points(kind):
    """As in scikit-learn, whose columns without an eigenvalue hold the roots of rounding."""
    X = generator(91).standard_normal((6, 9))
    metric = "euclidean" if kind in ("landmarks", "precomputed") else kind
    theirs = sklearn.manifold.ClassicalMDS(20, metric=metric)
    with np.errstate(invalid="ignore"):
        theirs.fit(X)
    data = cdist(X, X) if kind == "precomputed" else X
    settings = {"landmarks": np.arange(6)} if kind == "landmarks" else {}
    metric = "precomputed" if kind == "precomputed" else metric
    model = ClassicalMDS(20, dissimilarity=metric, random_state=0, **settings).fit(data)
    assert model.embedding_.shape == theirs.embedding_.shape == (6, 6)
    np.testing.assert_allclose(
        model.eigenvalues_, np.maximum(theirs.eigenvalues_, 0), atol=1e-8 * theirs.eigenvalues_[0]
    )
    assert model.transform(data).shape == (6, 6) and np.isfinite(model.embedding_).all()
    assert len(model.get_feature_names_out()) == 6


@pytest.mark.parametrize("metric", distances.OF_SCIPY)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_metrics_asked_of_scipy_are_those_of_scikit_learn(metric, dtype):
    X = points(40, 5).astype(dtype)
    D = distances.make_distance(metric, {}, X)(X[:7], X)
    expected = pairwise_distances(X[:7], X, metric=metric)
    np.testing.assert_allclose(D, expected, rtol=1e-12 if dtype is np.float64 else 1e-4)


def test_signs_by_landmarks_do_not_depend_on_the_order_of_rows():
    rng = generator(3, 9)
    X = rng.standard_normal((300, 4)) * [4, 3, 2, 1]
    order = rng.permutation(300)
    marks = rng.choice(300, 25, replace=False)
    here = ClassicalMDS(3, landmarks=marks).fit(X)
    there = ClassicalMDS(3, landmarks=np.argsort(order)[marks]).fit(X[order])
    np.testing.assert_allclose(there.embedding_, here.embedding_[order], atol=1e-9)


@pytest.mark.parametrize("metric", ["seuclidean", "cityblock"])
def test_landmarks_of_sparse_blocks_and_settings_of_all_rows(metric, tmp_path):
    S = sparse.random(
        500, 8, density=0.6, format="csr", random_state=int(generator(6).integers(99))
    )
    here = ClassicalMDS(2, metric=metric, landmarks=20, random_state=0).fit(S.toarray())
    there = ClassicalMDS(2, metric=metric, landmarks=20, random_state=0)
    there.fit(lambda: iter([S[:90], S[90:91], S[91:]]))
    np.testing.assert_allclose(there.eigenvalues_, here.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(there.embedding_, here.embedding_, atol=1e-7)
    assert there.stress_ == pytest.approx(here.stress_)
    with pytest.raises(AttributeError, match="does not keep the points"):
        _ = there.dissimilarity_matrix_
