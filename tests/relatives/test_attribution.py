"""What drives a component: gradients in closed form, for all kernels, bases and kinds of rows."""

import numpy as np
import pytest
from contracts import generator, peak_bytes
from scipy import sparse
from sklearn.decomposition import PCA

from mercer import HebbianKernelPCA, KernelPCA, StreamingKernelPCA, kernels
from mercer.bases import BASES, Landmarks
from mercer.kernels import KERNELS
from mercer.relatives.explaining import gradients
from mercer.selectors import Uniform

# Every registered kernel at parameters of its own, and what has several shapes at all of them.
PARAMETERS = {
    "matern": [{"gamma": 0.5, "nu": nu} for nu in (0.5, 1.5, 2.5)],
    "rational_quadratic": [{"gamma": 0.5, "alpha": 0.6}, {"gamma": 0.5, "alpha": 2.0}],
    "poly": [{"degree": p, "gamma": 0.4, "coef0": 1.0} for p in (1, 2, 3, 2.5)],
    "sigmoid": [{"gamma": 0.2, "coef0": 0.1}],
    "linear": [{}, {"center": np.full(3, 0.7)}],
    "cosine": [{}],
    "additive_chi2": [{}],
    "tanimoto": [],
    "gower": [{}, {"ranges": 0.7}],
    "precomputed": [],
    "polynomial": [],
}
ALL = [KERNELS[name](**how) for name in KERNELS for how in PARAMETERS.get(name, [{"gamma": 0.5}])]


def rows(n, d=3, key=0):
    """Positive rows, as some kernels need them."""
    return generator(300, key).uniform(0.2, 1.8, (n, d))


def differences(scores, X, h=1e-5):
    """Central differences of scores with respect to every entry, (n, d, r)."""
    steps = h * np.eye(X.shape[1])
    return np.stack([(scores(X + e) - scores(X - e)) / (2 * h) for e in steps], axis=1)


# Kernels of low rank have no twelve landmarks, and indefinite ones no certificate.
@pytest.mark.filterwarnings("ignore::mercer.exceptions.MercerWarning")
@pytest.mark.parametrize("how", [*BASES, "stream"])
@pytest.mark.parametrize("kernel", ALL, ids=lambda k: " ".join(repr(k).split()))
def test_gradients_are_those_of_the_scores(kernel, how):
    """Against finite differences, for every kernel and every basis that takes it."""
    X, Y = rows(40), rows(6, key=1)
    basis = Landmarks(12) if how == "landmarks" else how
    try:
        if how == "stream":
            model = StreamingKernelPCA(3, kernel=kernel, random_state=0).partial_fit(X)
        else:
            model = KernelPCA(3, kernel=kernel, basis=basis, random_state=0).fit(X)
    except ValueError:
        pytest.skip("not for this basis")
    expansion = model.expansion_
    found = gradients(expansion.basis, Y, expansion.frame[:, 1:])
    wanted = differences(expansion.scores, Y)
    # Frequencies with heavy tails leave less of the differences themselves.
    tol = 1e-4 if how in ("features", "fourier") else 1e-6
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tol * np.abs(wanted).max())


@pytest.mark.parametrize("name", sorted(set(KERNELS) - {"precomputed"}))
def test_every_registered_kernel_has_a_gradient(name):
    model = KernelPCA(2, kernel=name, gamma=None).fit(rows(30))
    assert model.attribute().size.shape == (3, 2)


def test_averages_are_those_of_the_rows():
    X = rows(50, key=2)
    model = KernelPCA(4, kernel="rbf", gamma=0.5).fit(X)
    G = differences(model.transform, X)
    found, std = model.attribute(X), X.std(axis=0)
    np.testing.assert_allclose(found.size, np.abs(G).mean(axis=0) * std[:, None], rtol=1e-6)
    np.testing.assert_allclose(found.direction * found.size, G.mean(axis=0) * std[:, None], 1e-5)
    lengths = np.linalg.norm(G, axis=2).mean(axis=0) * std
    np.testing.assert_allclose(found.overall, lengths, rtol=1e-6)
    assert found.n_rows == 50 and found.columns == ("x0", "x1", "x2")
    same = model.attribute()
    np.testing.assert_allclose(same.size, found.size)


def test_linear_components_are_loadings():
    """With the linear kernel gradients are the loadings of PCA, everywhere."""
    X = generator(301).standard_normal((60, 5)) * [3, 2, 1, 1, 1]
    loadings = PCA(3).fit(X).components_.T
    for basis in ("points", "columns"):
        found = KernelPCA(3, basis=basis).fit(X).attribute()
        np.testing.assert_allclose(found.size, np.abs(loadings) * X.std(axis=0)[:, None], rtol=1e-6)
        np.testing.assert_allclose(np.abs(found.direction), 1.0, rtol=1e-9)


@pytest.mark.parametrize("key", range(3))
@pytest.mark.parametrize("basis", ["points", "landmarks", "features"])
def test_columns_that_matter_are_found(basis, key):
    """A circle in two of eight columns, with noise in the others: it drives the components."""
    rng = generator(302, key)
    t, place = rng.uniform(0, 2 * np.pi, 400), rng.choice(8, 2, replace=False)
    X = 0.1 * rng.standard_normal((400, 8))
    X[:, place] += np.column_stack([np.cos(t), np.sin(t)])
    found = KernelPCA(4, kernel="rbf", gamma=1.0, basis=basis, random_state=0).fit(X).attribute()
    assert set(found.order()[:2]) == set(place)
    assert found.overall[place].min() > 3 * np.delete(found.overall, place).max()
    for j in range(4):
        assert set(found.order(j)[:2]) == set(place)


def test_units_do_not_matter():
    """Gradients are for a standard deviation: the unit of a column changes nothing."""
    X = generator(303).standard_normal((80, 4))
    units = np.array([1.0, 1000.0, 0.01, 5.0])
    plain = KernelPCA(3, kernel="linear").fit(X / units)
    inner = kernels.Callable(lambda x, z: float(np.sum(x * z / units**2)))
    with pytest.raises(ValueError, match="No gradient is known for Callable"):
        KernelPCA(3, kernel=inner).fit(X).attribute()
    assert np.isfinite(plain.attribute().size).all()
    rescaled = plain.attribute((X / units)[:40]).scale * units
    np.testing.assert_allclose(rescaled, X.std(axis=0))


@pytest.mark.parametrize("basis", ["points", "landmarks", "features", "columns"])
def test_one_row_has_the_units_of_the_training_rows(basis):
    X = generator(304).standard_normal((90, 4)) * [1, 5, 0.1, 2]
    w = generator(305).integers(1, 5, 90)
    kernel = {"kernel": "linear"} if basis == "columns" else {"kernel": "rbf", "gamma": 0.1}
    model = KernelPCA(2, basis=basis, random_state=0, **kernel).fit(X)
    single = [model.attribute(X[i : i + 1]) for i in range(90)]
    together = model.attribute(X)
    np.testing.assert_allclose(np.mean([one.size for one in single], axis=0), together.size)
    np.testing.assert_allclose(single[0].scale, X.std(axis=0))
    np.testing.assert_array_equal(model.attribute(X[:3] * 0 + 7).scale, together.scale)
    if basis != "columns":
        weighted = model.fit(X, sample_weight=w).attribute(X[:1])
        np.testing.assert_allclose(weighted.scale, np.repeat(X, w, axis=0).std(axis=0))


def test_blocks_files_dask_and_sparse_rows_agree(tmp_path):
    X = rows(300, 4, key=3)
    model = KernelPCA(3, kernel="rbf", gamma=0.5, basis=Landmarks(20), random_state=0).fit(X)
    wanted = model.attribute(X)
    np.save(tmp_path / "rows.npy", X)
    others = [str(tmp_path / "rows.npy"), sparse.csr_matrix(X)]
    try:
        import dask.array as da

        others.append(da.from_array(X, chunks=(70, 4)))
    except ImportError:
        pass
    for source in others:
        found = model.attribute(source)
        np.testing.assert_allclose(found.size, wanted.size, rtol=1e-9)
        np.testing.assert_allclose(found.scale, wanted.scale, rtol=1e-9)
        assert found.n_rows == 300
    thin = sparse.csr_matrix(np.where(X > 1, X, 0))
    ours = KernelPCA(3, kernel="rbf", gamma=0.5).fit(thin).attribute()
    dense = KernelPCA(3, kernel="rbf", gamma=0.5).fit(thin.toarray()).attribute()
    np.testing.assert_allclose(ours.size, dense.size, rtol=1e-6)


def test_memory_stays_within_the_budget():
    X = rows(3000, 40, key=4)
    basis = Landmarks(200, selector=Uniform())
    model = KernelPCA(8, kernel="rbf", gamma=0.1, basis=basis, memory="8MB", n_jobs=1).fit(X)
    assert peak_bytes(lambda: model.attribute(X)) <= 8e6


def test_other_estimators_and_names():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(rows(60), columns=["height", "weight", "age"])
    for model in (
        KernelPCA(2, kernel="rbf"),
        HebbianKernelPCA(2, kernel="rbf", n_passes=3, random_state=0),
        StreamingKernelPCA(2, kernel="rbf", random_state=0),
    ):
        found = model.fit(X).attribute(X)
        assert found.columns == ("height", "weight", "age")
        assert found.components == tuple(model.get_feature_names_out())
        assert found.top(0, 1)[0][0] in found.columns
        text = repr(found)
        assert "height" in text and "all" in text and "<table>" in found._repr_html_()
        assert set(found.as_dict()) >= {"columns", "components", "size", "overall"}


def test_what_has_no_gradient_says_so():
    X = rows(20)
    with pytest.raises(ValueError, match="precomputed kernel has none"):
        KernelPCA(2, kernel="precomputed").fit(X @ X.T).attribute()
    with pytest.raises(ValueError, match="No gradient is known"):
        KernelPCA(2, kernel=lambda x, z: float(x @ z)).fit(X).attribute()
    with pytest.raises(ValueError, match="features"):
        KernelPCA(2).fit(X).attribute(X[:, :2])


def test_on_a_device_library():
    torch = pytest.importorskip("torch")
    X = rows(40, key=5)
    for kernel in (kernels.RBF(0.5), kernels.Laplacian(0.5), kernels.Polynomial(3, 0.4)):
        ours = KernelPCA(2, kernel=kernel).fit(torch.tensor(X)).attribute()
        np.testing.assert_allclose(
            ours.size, KernelPCA(2, kernel=kernel).fit(X).attribute().size, rtol=1e-6
        )


def test_bars():
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    from mercer import plot

    X = rows(60, 5, key=6)
    model = KernelPCA(3, kernel="rbf", gamma=0.5).fit(X)
    found = model.attribute(X)
    ax = plot.attribution(found, 1, count=4)
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == [found.columns[i] for i in found.order(1)[:4]]
    widths = sorted(bar.get_width() for bar in ax.patches)[::-1]
    np.testing.assert_allclose(widths, np.sort(found.size[:, 1])[::-1][:4])
    plt.close(ax.figure)
    ax = plot.attribution(model)
    assert len(ax.patches) == 5 and ax.get_legend() is None
    plt.close(ax.figure)
    with pytest.raises(ValueError, match="component 3 does not exist"):
        plot.attribution(found, 3)


def test_the_report_has_a_panel(tmp_path):
    pd = pytest.importorskip("pandas")
    from mercer.report import write_report

    X = pd.DataFrame(rows(80), columns=["<tall>", "wide", "old"])
    model = KernelPCA(3, kernel="rbf", gamma=0.5).fit(X)
    real = model.significance(X, random_state=0)
    page = write_report(model, X, tmp_path / "r.html", significance=real).read_text()
    assert "Columns that drive the components" in page and "&lt;tall&gt;" in page
    assert "<tall>" not in page.split('id="data"')[0]
    assert "stand above noise" in page
    own = KernelPCA(2, kernel=lambda x, z: float(x @ z)).fit(X.to_numpy())
    page = write_report(own, X.to_numpy(), tmp_path / "own.html").read_text()
    assert "No gradient is known" in page


def test_a_model_of_named_columns_explains_its_own_rows():
    pd = pytest.importorskip("pandas")
    model = KernelPCA(2, kernel="rbf").fit(pd.DataFrame(rows(30), columns=list("abc")))
    assert model.attribute().columns == ("a", "b", "c")
    assert model.attribute(max_rows=10).n_rows == 10
    with pytest.raises(ValueError, match="max_rows=0"):
        model.attribute(max_rows=0)
