"""Certificates of spectral methods, scaling, correlations and models within models: never false.

Drawn problems against LAPACK on the matrix whose eigenvalues are stated.
"""

import numpy as np
import pytest
from sklearn.datasets import load_digits

import mercer
from mercer import (
    ClassicalMDS,
    DiffusionMap,
    KernelCCA,
    KernelPCASearch,
    NoveltyDetector,
    SpectralClustering,
    SpectralEmbedding,
)
from mercer.bases import Landmarks
from mercer.kernels import KERNELS

ROUNDING = 1e-12
# What LAPACK's own vectors may be off by.
LAPACK = 1e-10


def drawn_rows(rng, most=500):
    """Rows of any shape and spread, some of them in clusters far apart."""
    n, d = int(rng.integers(20, most)), int(rng.integers(1, 8))
    X = rng.standard_normal((n, d)) * rng.choice([0.3, 1.0, 3.0])
    if rng.random() < 0.4:
        X += 8.0 * rng.integers(0, 4, (n, 1))
    if rng.random() < 0.2:
        X[: n // 2] = X[0]
    return X.astype(rng.choice([np.float64, np.float32]))


def normalized(K, hollow, alpha=0.0):
    """Eigenvalues of normalized affinities, largest first, and the functions at the rows."""
    K = np.array(K, dtype=float)
    if hollow:
        np.fill_diagonal(K, 0)
    sums = np.where(K.sum(axis=1) > 0, K.sum(axis=1), 1.0)
    K *= np.outer(sums**-alpha, sums**-alpha) if alpha else 1.0
    degrees = np.where(K.sum(axis=1) > 0, K.sum(axis=1), 1.0)
    values, U = np.linalg.eigh(K / np.sqrt(np.outer(degrees, degrees)))
    return values[::-1], U[:, ::-1] / np.sqrt(degrees)[:, None]


def assert_holds(certificate, values):
    """The intervals hold the true eigenvalues, or nothing is claimed."""
    r = certificate.eigenvalue_lower.size
    values = np.append(values, np.zeros(max(r - len(values), 0)))[:r]
    size = ROUNDING * max(np.max(np.abs(values), initial=0.0), 1e-300)
    if certificate.kind == "bound":
        assert np.all(certificate.eigenvalue_lower <= values + size)
        assert np.all(values <= certificate.eigenvalue_upper + size)
    else:
        assert certificate.n_proven == 0
    assert "Certificate" in repr(certificate)


def assert_scores_hold(certificate, found, true):
    """Coordinates are as near to the true ones, whatever their length and sign, as is stated."""
    for error, s, t in zip(certificate.score_error, found.T, true.T, strict=False):
        if np.isfinite(error):
            s = np.asarray(s, dtype=float)
            t = t * (t @ s) / (t @ t)
            single = 1e-6 if found.dtype == np.float32 else 0.0
            assert np.linalg.norm(s - t) / np.linalg.norm(s) <= error + single + LAPACK


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("solver", ["auto", "dense", "krylov", "arpack", "randomized"])
@pytest.mark.parametrize("which", ["clustering", "embedding", "diffusion"])
@pytest.mark.parametrize("seed", range(4))
def test_affinities_of_kernels(which, solver, seed):
    rng = np.random.default_rng([seed, len(which), len(solver)])
    X = drawn_rows(rng)
    r, gamma = int(rng.integers(1, 9)), float(rng.choice([0.01, 0.1, 0.5, 3.0]))
    name = str(rng.choice(["rbf", "laplacian", "cosine"] if which != "diffusion" else ["rbf"]))
    X = np.abs(X) + 0.1 if name == "cosine" else X
    given = {"affinity": name, "gamma": gamma, "eigen_solver": solver, "random_state": seed}
    alpha, t = float(rng.choice([0.0, 0.5, 1.0])), float(rng.choice([0.0, 1.0, 2.5]))
    kernel = KERNELS[name]() if name == "cosine" else KERNELS[name](gamma=gamma)
    K = kernel(X.astype(float))
    if which == "clustering":
        model, (values, V) = SpectralClustering(r, n_init=1, **given), normalized(K, True)
    elif which == "embedding":
        model, (values, V) = SpectralEmbedding(r, **given), normalized(K, True)
    else:
        model = DiffusionMap(r, density_power=alpha, t=t, **given)
        values, V = normalized(K, False, alpha)
    try:
        model.fit(X)
    except ValueError as error:
        assert "affinit" in str(error) or "converge" in str(error) or "arpack" in str(error)
        return
    first = int(which != "clustering")
    assert_holds(model.certificate_, values[first:])
    functions = model.embedding_ if first else model.map_.weights
    if model.certificate_.kind == "bound":
        assert_scores_hold(model.certificate_, functions, V[:, first:])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(8))
def test_graphs_and_given_affinities(seed):
    rng = np.random.default_rng(seed)
    X = drawn_rows(rng, 900)
    r, k = int(rng.integers(1, 9)), int(rng.integers(3, 12))
    model = SpectralEmbedding(r, n_neighbors=k, random_state=seed).fit(X)
    G = model.affinity_matrix_.toarray()
    values, V = normalized(G, True)
    assert_holds(model.certificate_, values[1:])
    assert_scores_hold(model.certificate_, model.embedding_, V[:, 1:])
    for given in (G, G - 0.01 * G.max()):
        try:
            model = SpectralClustering(r, affinity="precomputed", n_init=1, random_state=seed)
            model.fit(given)
        except ValueError:
            continue
        assert_holds(model.certificate_, normalized(given, True)[0])


def test_what_is_proven_of_well_separated_clusters():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 3)) + 12.0 * rng.integers(0, 3, (1500, 1))
    for solver in ("dense", "krylov"):
        model = SpectralClustering(3, gamma=0.05, eigen_solver=solver, random_state=0).fit(X)
        assert model.certificate_.n_proven == 3
        assert model.certificate_.captured_variance is None
        assert "no larger component was missed" in repr(model.certificate_)


@pytest.mark.parametrize("basis", [Landmarks(60), "landmarks"])
def test_landmarks_state_no_bound(basis):
    X = np.random.default_rng(0).standard_normal((400, 3))
    for model in (SpectralClustering(3, gamma=0.3), DiffusionMap(3), SpectralEmbedding(3)):
        affinity = {"affinity": "rbf"} if isinstance(model, SpectralEmbedding) else {}
        model.set_params(basis=basis, random_state=0, **affinity).fit(X)
        assert model.certificate_.kind == "estimate"
        assert model.certificate_.n_proven == 0


@pytest.mark.parametrize("seed", range(4))
def test_affinities_on_a_grid(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((int(rng.integers(50, 400)), int(rng.integers(1, 3))))
    gamma = float(rng.choice([0.3, 1.0, 3.0]))
    model = SpectralClustering(4, gamma=gamma, basis="fourier", n_init=1, random_state=seed).fit(X)
    assert_holds(model.certificate_, normalized(KERNELS["rbf"](gamma=gamma)(X), False)[0])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(16))
def test_scaling(seed):
    rng = np.random.default_rng(seed)
    X = drawn_rows(rng).astype(float) + float(rng.choice([0.0, 1e3, 1e6]))
    metric = str(rng.choice(["euclidean", "cityblock", "cosine", "precomputed", "sqeuclidean"]))
    D2 = np.square(X[:, None, :] - X[None]).sum(axis=-1)
    if metric == "cosine":
        X = X + 0.1 * np.abs(X).max()
    D = {
        "euclidean": lambda: np.sqrt(D2),
        "precomputed": lambda: np.sqrt(D2) ** 0.8,
        "sqeuclidean": lambda: D2,
        "cityblock": lambda: np.abs(X[:, None, :] - X[None]).sum(axis=-1),
        "cosine": lambda: np.maximum(1 - unit(X) @ unit(X).T, 0.0),
    }[metric]()
    np.fill_diagonal(D, 0.0)
    D = (D + D.T) / 2
    given = D if metric == "precomputed" else X
    r = int(rng.integers(1, 6))
    model = ClassicalMDS(r, dissimilarity=metric, random_state=seed).fit(given)
    if metric == "cosine":
        D = model.dissimilarity_matrix_
    H = np.eye(len(D)) - 1 / len(D)
    values, U = np.linalg.eigh(-H @ D**2 @ H / 2)
    values, U = values[::-1], U[:, ::-1]
    assert_holds(model.certificate_, values)
    if model.certificate_.score_error is not None:
        assert_scores_hold(model.certificate_, model.embedding_, U)
    assert "leading components" in model.summary()
    few = ClassicalMDS(r, dissimilarity=metric, landmarks=15, random_state=seed).fit(given)
    assert few.certificate_.kind == "estimate"


def unit(X):
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-300)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(10))
def test_correlations(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(40, 250))
    X = rng.standard_normal((n, 3))
    Y = np.column_stack([X[:, 0] ** 2, rng.standard_normal(n)]) + rng.choice([0.0, 30.0])
    name, c = str(rng.choice(["rbf", "linear", "poly"])), float(rng.choice([0.001, 0.01, 0.1]))
    basis = str(rng.choice(["auto", "points", "landmarks"]))
    basis = Landmarks(30) if basis == "landmarks" else basis
    model = KernelCCA(3, kernel=name, gamma=0.2, regularization=c, basis=basis, random_state=seed)
    model.fit(X, Y)
    H = np.eye(n) - 1 / n
    roots = []
    for kernel, rows in ((model.kernel_, X), (model.kernel_y_, Y)):
        values, U = np.linalg.eigh(H @ kernel(rows) @ H)
        values = np.maximum(values, 0.0)
        roots.append((U * np.sqrt(values / (values + c * values.sum()))) @ U.T)
    true = np.linalg.svd(roots[0] @ roots[1], compute_uv=False)
    known = model.certificate_
    assert known.kind == "bound"
    assert np.all(known.eigenvalue_lower <= true[: known.eigenvalue_lower.size] + 1e-9)
    assert np.all(known.eigenvalue_upper >= true[: known.eigenvalue_upper.size] - 1e-9)
    if basis != "landmarks" and not isinstance(basis, Landmarks):
        assert known.eigenvalue_upper[0] - known.eigenvalue_lower[0] < 1e-6
    features = KernelCCA(2, kernel="rbf", basis="features", random_state=seed).fit(X, Y)
    assert features.certificate_.kind == "estimate"


def test_models_within_have_their_certificate(tmp_path):
    X = load_digits().data[:300]
    detector = NoveltyDetector(8, random_state=0).fit(X)
    assert detector.certificate_ is detector.model_.certificate_
    search = KernelPCASearch(widths=[1.0], n_components=[30], noise=9.0, random_state=0).fit(X)
    assert search.certificate_ is search.best_estimator_.certificate_
    for model in (NoveltyDetector(), KernelPCASearch(), SpectralClustering()):
        assert not hasattr(model, "certificate_")
    for model in (detector, search):
        assert "certified bounds" in model._repr_html_()
        model.save(tmp_path / "model.mercer", overwrite=True)
        again = mercer.load(tmp_path / "model.mercer")
        assert repr(again.certificate_) == repr(model.certificate_)


def test_certificates_are_saved(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3))
    models = [
        SpectralClustering(3, gamma=0.3, random_state=0).fit(X),
        SpectralEmbedding(2, random_state=0).fit(X),
        DiffusionMap(2, random_state=0).fit(X),
        ClassicalMDS(2).fit(X),
        KernelCCA(1, kernel="rbf").fit(X, X[:, :1] ** 2),
    ]
    for model in models:
        model.save(tmp_path / "model.mercer", overwrite=True)
        again = mercer.load(tmp_path / "model.mercer")
        assert again.certificate_.to_dict() == model.certificate_.to_dict()
        assert again.certificate_.eigenvalue_lower.size == model.certificate_.eigenvalue_upper.size
        assert "certificate" in again._repr_html_()
