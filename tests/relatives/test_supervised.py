"""Supervised kernel PCA against its definition, kernel PCA, supervised PCA and repeated rows."""

import warnings

import numpy as np
import oracle
import pytest
import sklearn
from contracts import check_operator, peak_bytes
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import KernelPCA, SupervisedKernelPCA, kernels, load
from mercer.bases import AllPoints, FourierGrid, Landmarks, RandomFeatures
from mercer.cli import main
from mercer.compute import LocalEngine
from mercer.operators import CenteredGram
from mercer.relatives.supervised import TargetGram, TargetRoot

N = 70


def generator(*seed):
    return np.random.default_rng([*seed, 2111])


def rows(seed, n=N, d=4):
    return generator(seed).standard_normal((n, d))


def labels(seed, n=N, classes=3):
    return generator(seed, 1).permutation(np.arange(n) % classes)


def gram(X):
    return oracle.center(kernels.RBF(0.2)(X))


def dense(X, L, a=0.0, w=None):
    """Eigenvalues of H K H L, L with its share of the identity, by the definition."""
    n = len(X)
    w = np.ones(n) if w is None else w
    H = np.eye(n) - np.outer(np.ones(n), w) / w.sum()
    root = np.sqrt(w)
    K = root[:, None] * (H @ kernels.RBF(0.2)(X) @ H.T) * root
    L = root[:, None] * (H @ L @ H.T) * root
    L = (1 - a) * L + a * np.linalg.eigvalsh(L)[-1] * np.eye(n)
    return np.sort(np.linalg.eigvals(K @ L).real)[::-1], np.trace(K @ L)


def equal(y):
    return (y[:, None] == y[None, :]).astype(float)


def fitted(*args, **options):
    return SupervisedKernelPCA(
        *args, **{"kernel": "rbf", "gamma": 0.2, "random_state": 0} | options
    )


def align(S, T):
    """S with the signs of T."""
    return S * np.where(np.sum(S * T, axis=0) < 0, -1.0, 1.0)


@pytest.mark.parametrize("a", [0, 0.3, 1])
@pytest.mark.parametrize("basis", ["points", Landmarks(points=rows(0))])
def test_it_is_its_definition(basis, a):
    X, y = rows(0), labels(0)
    model = fitted(2, basis=basis, unsupervised=a).fit(X, y)
    values, total = dense(X, equal(y), a)
    np.testing.assert_allclose(model.eigenvalues_, values[:2], rtol=1e-8)
    np.testing.assert_allclose(model.dependence_ratio_, values[:2] / total, rtol=1e-6)
    np.testing.assert_allclose(model.hsic_, np.trace(gram(X) @ equal(y)) / (N - 1) ** 2, rtol=1e-7)
    S = model.transform(X)
    np.testing.assert_allclose(model.explained_variance_, S.var(axis=0, ddof=1), rtol=1e-7)
    share = model.explained_variance_ * (N - 1) / np.trace(gram(X))
    np.testing.assert_allclose(model.explained_variance_ratio_, share, rtol=1e-6)
    assert model.certificate_.kind == "bound"
    assert np.all(model.certificate_.eigenvalue_lower <= values[:2] * (1 + 1e-12))
    assert np.all(model.certificate_.eigenvalue_upper >= values[:2] * (1 - 1e-12))


@pytest.mark.parametrize("basis", ["points", "landmarks", "features"])
@pytest.mark.parametrize("a", [0, 0.5])
def test_with_the_identity_it_is_kernel_pca(basis, a):
    """Every row a label of its own: L = I."""
    X = rows(1)
    options = {"kernel": "rbf", "gamma": 0.2, "basis": basis, "random_state": 0}
    ours = SupervisedKernelPCA(3, unsupervised=a, **options).fit(X, np.arange(N))
    theirs = KernelPCA(3, **options).fit(X)
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-6)
    np.testing.assert_allclose(
        ours.explained_variance_ratio_, theirs.explained_variance_ratio_, rtol=1e-6
    )
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), atol=1e-6)
    given = SupervisedKernelPCA(3, target="precomputed", **options).fit(X, np.eye(N))
    np.testing.assert_allclose(given.transform(X), theirs.transform(X), atol=1e-6)


@pytest.mark.parametrize("basis", ["points", "columns", "auto", Landmarks(points=rows(2))])
@pytest.mark.parametrize("target", ["delta", "linear"])
def test_with_the_linear_kernel_it_is_supervised_pca(basis, target):
    """Leading eigenvectors of X' H L H X (Barshan et al., algorithm 1)."""
    X, y = rows(2), labels(2)
    L = equal(y) if target == "delta" else np.outer(y, y).astype(float)
    C = X - X.mean(axis=0)
    values, V = np.linalg.eigh(C.T @ L @ C)
    r = 2 if target == "delta" else 1
    model = SupervisedKernelPCA(target=target, basis=basis).fit(X, y)
    np.testing.assert_allclose(model.eigenvalues_, values[::-1][:r], rtol=1e-8)
    wanted = C @ V[:, ::-1][:, :r]
    np.testing.assert_allclose(align(model.transform(X), wanted), wanted, atol=1e-8)


@pytest.mark.parametrize("a", [0, 0.2])
@pytest.mark.parametrize("basis", ["points", Landmarks(points=rows(3)[:20])])
def test_weights_are_repeated_rows(basis, a):
    X, y = rows(3), labels(3)
    w = generator(3, 3).integers(0, 4, N)
    weighted = fitted(2, basis=basis, unsupervised=a).fit(X, y, sample_weight=w)
    repeated = fitted(2, basis=basis, unsupervised=a).fit(np.repeat(X, w, 0), np.repeat(y, w))
    np.testing.assert_allclose(weighted.eigenvalues_, repeated.eigenvalues_, rtol=1e-7)
    np.testing.assert_allclose(
        weighted.explained_variance_, repeated.explained_variance_, rtol=1e-6
    )
    np.testing.assert_allclose(weighted.hsic_, repeated.hsic_, rtol=1e-7)
    S = repeated.transform(X)
    np.testing.assert_allclose(align(weighted.transform(X), S), S, atol=1e-6)


def test_zeros_among_the_weights_of_a_file():
    """Sums over blocks keep the rows that count nothing, an array leaves them out."""
    X, y, w = rows(31), labels(31), generator(31, 3).integers(0, 3, N)
    basis = Landmarks(points=rows(32, 20))
    here = fitted(2, basis=basis).fit(X, y, sample_weight=w)
    blocks = fitted(2, basis=basis).fit(lambda: iter(np.array_split(X, 4)), y, sample_weight=w)
    np.testing.assert_allclose(blocks.eigenvalues_, here.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(blocks.hsic_, here.hsic_, rtol=1e-9)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("a", [0, 0.4])
def test_the_certificate_holds_for_landmarks(seed, a):
    X, y = rows(seed, d=2), labels(seed, classes=4)
    values, total = dense(X, equal(y), a)
    model = fitted(3, basis=Landmarks(6), unsupervised=a).fit(X, y)
    known = model.certificate_
    assert known.kind == "bound"
    assert np.all(known.eigenvalue_lower <= values[:3] + 1e-9)
    assert np.all(known.eigenvalue_upper >= values[:3] - 1e-9)
    low, high = known.captured_variance
    assert low <= values[:3].sum() / total + 1e-9
    assert model.eigenvalues_.sum() / total <= high + 1e-9


def test_files_and_clusters_are_arrays(tmp_path):
    X, y = rows(4, 300), labels(4, 300)
    np.save(tmp_path / "X.npy", X)
    for options in ({"basis": Landmarks(points=X[:25])}, {"basis": RandomFeatures(30)}):
        known = fitted(2, memory="50MB", **options).fit(X, y)
        read = fitted(2, memory="50MB", **options).fit(str(tmp_path / "X.npy"), y)
        np.testing.assert_allclose(read.eigenvalues_, known.eigenvalues_, rtol=1e-8)
        np.testing.assert_allclose(read.transform(X), known.transform(X), atol=1e-8)
        streamed = fitted(2, **options).fit(iter([X[:100], X[100:]]), y)
        np.testing.assert_allclose(streamed.eigenvalues_, known.eigenvalues_, rtol=1e-8)
    dask = pytest.importorskip("dask.array")
    chunks = dask.from_array(X, chunks=(70, 4))
    exact = fitted(2, basis="points").fit(X, y)
    for basis in ("points", Landmarks(points=X[:25])):
        found = fitted(2, basis=basis).fit(chunks, y)
        wanted = exact if basis == "points" else fitted(2, basis=basis).fit(X, y)
        np.testing.assert_allclose(found.eigenvalues_, wanted.eigenvalues_, rtol=1e-7)
        np.testing.assert_allclose(found.transform(X), wanted.transform(X), atol=1e-7)


def test_labels_of_any_kind_are_the_same():
    X, y = rows(5), labels(5)
    known = fitted().fit(X, y)
    words = np.array(["oak", "ash", "elm"])
    for other in (words[y], words[y].astype(object), list(words[y]), y[:, None], y.astype("int8")):
        assert fitted().fit(X, other).target_ == "delta"
        np.testing.assert_allclose(fitted().fit(X, other).transform(X), known.transform(X))
    two = fitted().fit(X, y > 0)
    assert two.eigenvalues_.shape == (1,)
    # Two classes as numbers differ from the delta kernel by a factor.
    numbers = fitted().fit(X, (y > 0).astype(float))
    assert numbers.target_ == "linear"
    np.testing.assert_allclose(numbers.transform(X), two.transform(X), atol=1e-10)


def test_several_targets_add_up():
    X, Y = rows(6), np.column_stack([labels(6), labels(7, classes=2)])
    model = fitted().fit(X, Y)
    values, _ = dense(X, equal(Y[:, 0]) + equal(Y[:, 1]))
    np.testing.assert_allclose(model.eigenvalues_, values[:3], rtol=1e-8)
    Z = generator(6, 5).standard_normal((N, 2))
    values, _ = dense(X, Z @ Z.T)
    np.testing.assert_allclose(fitted().fit(X, Z).eigenvalues_, values[:2], rtol=1e-8)


def test_kernels_between_targets():
    X, y = rows(8), generator(8).standard_normal(N)
    L = kernels.Laplacian(0.7)(y[:, None])
    values, _ = dense(X, L)
    model = fitted(4, target=kernels.Laplacian(0.7)).fit(X, y)
    np.testing.assert_allclose(model.eigenvalues_, values[:4], rtol=1e-7)
    given = fitted(4, target="precomputed").fit(X, L)
    np.testing.assert_allclose(given.eigenvalues_, values[:4], rtol=1e-7)
    wide = fitted(4, target="rbf").fit(X, y)
    assert isinstance(wide.target_, kernels.RBF)
    assert wide.target_.gamma > 0


def test_targets_whose_kernel_is_cut_say_so():
    rng = generator(9)
    X, y = rng.standard_normal((1200, 3)), 1e3 * rng.standard_normal(1200)
    with pytest.warns(UserWarning, match="of its trace is lost"):
        fitted(2, target=kernels.Laplacian(5.0)).fit(X, y)


def test_single_precision_and_sparse_rows():
    X, y = rows(10), labels(10)
    exact = fitted().fit(X, y).transform(X)
    narrow = fitted().fit(X.astype(np.float32), y).transform(X.astype(np.float32))
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow, exact, atol=1e-4)
    np.testing.assert_allclose(fitted().fit(csr_matrix(X), y).transform(X), exact, atol=1e-8)


def test_krylov_is_dense():
    X, y = rows(11, 400), labels(11, 400)
    a, b = (
        fitted(3, unsupervised=0.1, eigen_solver=solver, basis="points").fit(X, y)
        for solver in ("dense", "krylov")
    )
    np.testing.assert_allclose(a.eigenvalues_, b.eigenvalues_, rtol=1e-8)
    assert b.certificate_.converged


@pytest.mark.parametrize("n", [6, 40])
def test_operator(n):
    X = rows(12, n)
    basis = AllPoints().build(kernels.RBF(0.2), X, LocalEngine(10**6, 2), generator(1))
    root = TargetRoot.of(np.eye(3)[labels(12, n)], 0.25)
    P = np.eye(3)[labels(12, n)]
    P = P - P.mean(axis=0)
    L = 0.75 * P @ P.T + 0.25 * np.linalg.eigvalsh(P @ P.T)[-1] * np.eye(n)
    values, V = np.linalg.eigh(L)
    R = (V * np.sqrt(values)) @ V.T
    np.testing.assert_allclose(root @ np.eye(n), R, atol=1e-10)
    K = oracle.center(kernels.RBF(0.2)(X))
    check_operator(TargetGram(CenteredGram(basis), root), R @ K @ R)


def test_more_components_than_the_target_has():
    with pytest.warns(UserWarning, match="the rank of the target kernel, 2: 2 are kept"):
        model = fitted(5).fit(rows(13), labels(13))
    assert model.eigenvalues_.shape == (2,)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fitted(5, unsupervised=0.1).fit(rows(13), labels(13)).eigenvalues_.shape == (5,)


def test_in_a_pipeline_a_search_and_with_routing():
    X, y = rows(14), labels(14, classes=2)
    X[:, 0] += 4 * y
    pipe = make_pipeline(StandardScaler(), fitted(1), LogisticRegression())
    assert pipe.fit(X, y).score(X, y) > 0.9
    grid = {
        "supervisedkernelpca__gamma": [0.01, 0.1],
        "supervisedkernelpca__unsupervised": [0, 0.1],
    }
    assert GridSearchCV(pipe, grid, cv=3).fit(X, y).best_score_ > 0.9
    w = generator(14).integers(1, 3, N)
    with sklearn.config_context(enable_metadata_routing=True):
        model = fitted(1).set_fit_request(sample_weight=True)
        routed = make_pipeline(model, LogisticRegression().set_fit_request(sample_weight=False))
        routed.fit(X, y, sample_weight=w)
    wanted = fitted(1).fit(X, y, sample_weight=w)
    np.testing.assert_allclose(routed[0].eigenvalues_, wanted.eigenvalues_)


@pytest.mark.parametrize(
    ("options", "y", "words"),
    [
        ({}, None, "requires y"),
        ({}, np.zeros(N), "same target"),
        ({}, ["a"] * N, "same target"),
        ({}, labels(0)[:-1], "inconsistent numbers of samples"),
        ({"basis": "landmarks"}, labels(0)[:-1], "inconsistent numbers of samples"),
        ({}, np.full(N, np.nan), "NaN"),
        ({}, np.array([None, *labels(0)[1:]], dtype=object), "row 0"),
        ({"target": "linear"}, np.array(["a", "b"] * (N // 2)), "y"),
        ({"target": "precomputed"}, -np.eye(N), "negative eigenvalue"),
        ({"target": "precomputed"}, labels(0), "square"),
        ({"basis": FourierGrid()}, labels(0), "no supervised fit"),
        ({"unsupervised": 1.5}, labels(0), "unsupervised"),
        ({"target": "nothing"}, labels(0), "target"),
    ],
)
def test_what_cannot_be_done_is_said(options, y, words):
    with pytest.raises(ValueError, match=words):
        fitted(**options).fit(rows(0)[:, :2], y)


def test_a_file_with_other_rows_than_targets(tmp_path):
    X, y = rows(15), labels(15)
    for count in (N - 5, N + 5):
        blocks = iter([X[:30], X[30:]])
        other = np.resize(y, count)
        with pytest.raises(ValueError, match="rows"):
            fitted(basis=RandomFeatures(20)).fit(blocks, other)


def test_in_the_shell(tmp_path, monkeypatch):
    """`mercer fit --target`: the column is no feature, and the model is that of the estimator."""
    X, y = rows(16), labels(16)
    monkeypatch.chdir(tmp_path)
    words = np.array(["oak", "ash", "elm"])[y]
    lines = [
        ",".join([*map(repr, map(float, row)), word]) for row, word in zip(X, words, strict=True)
    ]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,c,d,tree", *lines]))
    assert main(["fit", "t.csv", "--target", "tree", "-o", "m.mercer", "-q"]) == 0
    model = load("m.mercer")
    known = SupervisedKernelPCA(kernel="rbf", gamma="median").fit(X, y)
    np.testing.assert_allclose(model.eigenvalues_, known.eigenvalues_, rtol=1e-8)
    assert main(["transform", "m.mercer", "t.csv", "-o", "s.npy", "-q"]) == 0
    np.testing.assert_allclose(np.load("s.npy"), known.transform(X), atol=1e-7)
    more = ["--unsupervised", "0.2", "-r", "5", "--landmarks", "30"]
    assert main(["fit", "t.csv", "--target", "tree", *more, "-o", "n.mercer", "-q"]) == 0
    assert load("n.mercer").eigenvalues_.shape == (5,)
    assert main(["fit", "t.csv", "--target", "b", "-r", "1", "-o", "b.mercer", "-q"]) == 0
    assert load("b.mercer").target_ == "linear"
    assert main(["fit", "t.csv", "--target", "shrub", "-o", "x.mercer", "-q"]) == 1
    hebbian = ["fit", "t.csv", "--target", "b", "--method", "hebbian", "-o", "x.mercer", "-q"]
    assert main(hebbian) == 2


def test_what_shuffled_columns_cannot_tell():
    model = fitted(2).fit(rows(40), labels(40))
    with pytest.raises(ValueError, match="permutation_test_score"):
        model.significance(rows(40))


def test_a_fault_of_y_is_not_laid_on_x():
    y = rows(41)[:, 0]
    y[7] = np.nan
    with pytest.raises(ValueError, match="Input y contains NaN in row 7"):
        SupervisedKernelPCA(1).fit(rows(41), y)


@pytest.mark.parametrize(("target", "classes"), [("delta", 400), ("rbf", 400), ("linear", 3)])
def test_targets_stay_in_the_budget_or_are_refused(target, classes):
    n, d, memory = 2000, 3, 4 * 10**6
    X, y = rows(50, n, d), labels(50, n, classes)
    model = fitted(1, target=target, basis=Landmarks(20), memory=memory, n_jobs=1)
    if classes > 100:
        with pytest.raises(ValueError, match="cannot hold the target"):
            model.fit(X, y)
    else:
        fitted(1, target=target, basis=Landmarks(20), memory=memory).fit(X[:100], y[:100])
        assert peak_bytes(lambda: model.fit(X, y)) <= memory
