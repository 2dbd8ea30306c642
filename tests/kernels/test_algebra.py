"""Sums, products, powers and columns of kernels: drawn expressions against extended precision."""

import math
import warnings

import numpy as np
import oracle
import pytest
from contracts import check_kernel, check_tile_bytes, generator
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

import mercer
from mercer import KernelPCA
from mercer.bases import Landmarks
from mercer.exceptions import MercerWarning
from mercer.kernels import (
    RBF,
    AdditiveChi2,
    Cosine,
    Gower,
    Hollow,
    Laplacian,
    Linear,
    Matern,
    OnColumns,
    Polynomial,
    Power,
    Product,
    RationalQuadratic,
    Scaled,
    Sigmoid,
    Sum,
)

WIDTHS = [RBF, Laplacian, Matern, RationalQuadratic]
NAMES = {
    RBF: "rbf",
    Linear: "linear",
    Cosine: "cosine",
    Laplacian: "laplacian",
    Matern: "matern",
    RationalQuadratic: "rational_quadratic",
    Polynomial: "polynomial",
    Sigmoid: "sigmoid",
    AdditiveChi2: "additive_chi2",
    Gower: "gower",
}


def value(kernel, X, Z):
    """The kernel of a resolved expression, by the formulas of the oracle."""
    if isinstance(kernel, Sum):
        return sum(value(part, X, Z) for part in kernel.kernels)
    if isinstance(kernel, Product):
        return math.prod(value(part, X, Z) for part in kernel.kernels)
    if isinstance(kernel, Power):
        return value(kernel.kernel, X, Z) ** kernel.degree
    if isinstance(kernel, Scaled):
        return kernel.factor * value(kernel.kernel, X, Z)
    if isinstance(kernel, OnColumns):
        index = slice(None) if kernel.columns is None else np.asarray(kernel.columns)
        scales = 1.0 if kernel.scales is None else np.asarray(kernel.scales)
        return value(kernel.kernel, X[:, index] * scales, Z[:, index] * scales)
    return oracle.kernel_matrix(NAMES[type(kernel)], X, Z, **kernel.get_params())


def drawn(rng, depth, d, definite=True):
    """A random expression of kernels with numbers for their parameters."""
    if depth == 0:
        leaves = [
            RBF(gamma=rng.uniform(0.1, 1)),
            Linear(),
            Cosine(),
            Laplacian(gamma=rng.uniform(0.1, 1)),
            Matern(gamma=rng.uniform(0.1, 1), nu=2.5),
            Polynomial(degree=2, gamma=0.3, coef0=0.5),
            OnColumns(RBF(gamma=1.0), scales=rng.uniform(0.1, 2, d)),
        ]
        leaves += [] if definite else [Sigmoid(gamma=0.2, coef0=-0.3), Gower(ranges=0.7)]
        leaf = leaves[rng.integers(len(leaves))]
        few = leaf if isinstance(leaf, OnColumns) or rng.random() < 0.7 else None
        return few or OnColumns(leaf, rng.permutation(d)[: rng.integers(1, d + 1)])
    left, right = (drawn(rng, depth - 1, d, definite) for _ in range(2))
    return [left + right, left * right, 0.3 * left + right, left**2][rng.integers(4)]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("definite", [True, False])
def test_drawn_expressions_are_kernels(seed, definite):
    """Two columns, so that rows of all contracts fit; every member against extended precision."""
    kernel = drawn(generator(seed, definite), 2, 2, definite)
    rng = generator(seed)
    X, Z = rng.uniform(-1, 1, (40, 2)), rng.uniform(-1, 1, (17, 2))

    def formula(X, Z):
        return value(kernel, X, Z)

    if any(np.size(vars(leaf).get("scales")) > 1 for leaf in leaves(kernel)):
        # Widths are of two columns, and a contract draws rows of others.
        np.testing.assert_allclose(kernel(X, Z), formula(X, Z), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(kernel.diag(X), np.diag(formula(X, X)), rtol=1e-9)
        return
    with np.errstate(over="ignore"):
        check_kernel(kernel, formula, X, Z, rtol=1e-5)


def leaves(kernel):
    parts = kernel.parts() if hasattr(kernel, "parts") else []
    return [kernel, *(leaf for part in parts for leaf in leaves(part))]


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(4))
def test_drawn_expressions_of_any_rows(seed, dtype, kind):
    rng = generator(seed, 5)
    X = np.where(rng.random((60, 5)) < 0.4, 0, rng.standard_normal((60, 5))).astype(dtype)
    kernel = drawn(rng, 2, 5)
    expected = value(kernel, X.astype(float), X[:7].astype(float))
    found = kernel(kind(X), kind(X[:7]))
    scale = np.abs(expected).max()
    assert found.dtype == dtype
    np.testing.assert_allclose(
        found, expected, atol=scale * (1e-4 if dtype == np.float32 else 1e-9)
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("basis", ["points", "landmarks"])
def test_certificates_of_drawn_expressions_are_true(seed, basis):
    rng = generator(seed, 6)
    X = rng.standard_normal((120, 3)) + 10.0 * rng.integers(0, 2)
    kernel = drawn(rng, 2, 3)
    recipe = Landmarks(30) if basis == "landmarks" else basis
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)  # of few independent landmarks
        model = KernelPCA(3, kernel=kernel, basis=recipe, random_state=0).fit(X)
    rows = X.astype(np.longdouble)
    K = oracle.center(value(model.kernel_, rows, rows)).astype(float)
    values = np.linalg.eigvalsh((K + K.T) / 2)[::-1][:3]
    certificate = model.certificate_
    slack = 1e-9 * values[0]
    assert (certificate.eigenvalue_lower <= values + slack).all()
    assert (certificate.eigenvalue_upper >= values - slack).all()


@pytest.mark.parametrize("offset", [1e5, 1e6, 1e7])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_each_part_shifts_its_own_rows(offset, dtype):
    """Rows far from the origin: a sum keeps the digits that each of its parts would."""
    rng = generator(8)
    X = (rng.standard_normal((80, 3)) + offset).astype(dtype)
    widths = [0.5, 1.0, 2.0]
    kernel = RBF(gamma=0.3) + 0.1 * Linear() + Laplacian(gamma=widths) + Linear(columns=[1, 2])
    rows = X.astype(np.longdouble) - X.astype(np.longdouble).mean(axis=0)
    scaled = rows * np.array(widths)
    K = oracle.rbf(rows, rows, 0.3) + 0.1 * rows @ rows.T + oracle.laplacian(scaled, scaled, 1.0)
    K = (K + rows[:, 1:] @ rows[:, 1:].T).astype(float)
    expected, _ = oracle.eigenpairs(K, 4)
    model = KernelPCA(4, kernel=kernel).fit(X)
    np.testing.assert_allclose(
        model.eigenvalues_, expected, rtol=1e-6 if dtype == np.float32 else 1e-8
    )


@pytest.mark.parametrize("kind", WIDTHS)
def test_a_width_for_each_column(kind):
    X = generator(9).standard_normal((30, 3))
    widths = [0.2, 0.0, 3.0]
    scales = np.array(widths) if kind is Laplacian else np.sqrt(widths)
    expected = kind(gamma=1.0)(X * scales)
    np.testing.assert_allclose(kind(gamma=widths)(X), expected, atol=1e-14)
    model = KernelPCA(2, kernel=kind(gamma=np.array(widths))).fit(X)
    np.testing.assert_allclose(model.kernel_(X), expected, atol=1e-14)
    values, _ = oracle.eigenpairs(expected, 2)
    np.testing.assert_allclose(model.eigenvalues_, values)
    # As a part, too, which nobody has resolved.
    np.testing.assert_allclose((kind(gamma=widths) + Linear())(X), expected + X @ X.T, atol=1e-12)


@pytest.mark.parametrize("kind", ["rbf", "laplacian"])
def test_widths_of_columns_by_name(kind):
    X, gamma = generator(9).standard_normal((30, 3)), np.array([0.2, 0.1, 3.0])
    named = KernelPCA(2, kernel=kind, gamma=gamma).fit(X)
    cls = RBF if kind == "rbf" else Laplacian
    np.testing.assert_allclose(
        named.eigenvalues_, KernelPCA(2, kernel=cls(gamma=gamma)).fit(X).eigenvalues_
    )
    np.testing.assert_allclose(named.gamma_, gamma)
    again = KernelPCA(2, kernel=kind, gamma=named.gamma_).fit(X)
    np.testing.assert_allclose(again.eigenvalues_, named.eigenvalues_)


@pytest.mark.parametrize("kind", WIDTHS)
@pytest.mark.parametrize("seed", range(3))
def test_widths_that_a_model_has(kind, seed, tmp_path):
    """gamma_ is what the kernel was given, of some columns, times a factor, saved and loaded."""
    rng = generator(seed, 31)
    X, widths = rng.standard_normal((30, 4)), rng.uniform(0.1, 2, 3)
    for kernel, gamma in (
        (kind(gamma=widths, columns=[3, 0, 1]), widths),
        (0.3 * kind(gamma=widths[0], columns=[2]), widths[0]),
        (2 * kind(gamma=widths[1]), widths[1]),
        (Linear(columns=[1]), 1 / 4),
    ):
        for stream in (KernelPCA(2, kernel=kernel), mercer.StreamingKernelPCA(2, kernel=kernel)):
            model = stream.fit(X)
            np.testing.assert_allclose(model.gamma_, gamma)
            model.save(tmp_path / "model.mercer")
            np.testing.assert_allclose(mercer.load(tmp_path / "model.mercer").gamma_, gamma)


@pytest.mark.parametrize("degree", [np.int8(3), np.int64(3), np.float32(3), 3.0])
def test_degrees_of_any_type(degree):
    X = generator(32).standard_normal((30, 3))
    expected = KernelPCA(3, kernel=Linear() ** 3).fit(X)
    model = KernelPCA(3, kernel=Linear() ** degree).fit(X)
    np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues_)


def test_columns_gradients_and_products():
    """Gradients are in `check_kernel` too; here of columns and of widths."""
    rng = generator(10)
    X, W = rng.standard_normal((12, 4)), rng.standard_normal((7, 2))
    kernel = RBF(gamma=[0.5, 1.0], columns=[3, 1]).resolve(X) * Linear() + Cosine() ** 3
    G = kernel.gradient(X[:5], X[5:], W)
    for k in range(4):
        step = 1e-6 * np.eye(4)[k]
        slope = (kernel(X[:5] + step, X[5:]) - kernel(X[:5] - step, X[5:])) @ W / 2e-6
        np.testing.assert_allclose(G[:, k], slope, atol=1e-6)


def test_large_rows_are_copied_in_blocks():
    """Columns are never copied as a whole, and work memory is what it is said to be."""
    X = generator(11).standard_normal((20_000, 40))
    kernel = RBF(gamma=0.1, columns=list(range(30))) + Laplacian(gamma=np.full(40, 0.1)).resolve(X)
    check_tile_bytes(kernel, X)
    part = RBF(gamma=0.1, columns=[1, 2]).selected(np.ones((500_000, 3)))
    assert not isinstance(part, np.ndarray) and part[:4].shape == (4, 2)


def test_operators_make_flat_expressions():
    a, b, c = RBF(gamma=1.0), Linear(), Cosine()
    assert repr(a + b + c) == repr(Sum([a, b, c])) == repr(sum([a, b, c]))
    assert repr(a * b * c) == repr(Product([a, b, c]))
    assert repr(np.float32(0.5) * a) == repr(a * 0.5) == repr(Scaled(a, 0.5))
    assert repr(a**3) == repr(Power(a, 3))
    assert repr(RBF(gamma=1.0, columns=[0])) == repr(OnColumns(a, [0]))
    for wrong in (lambda: a + 1, lambda: a * "b", lambda: Cosine(3), lambda: 1 + a):
        with pytest.raises(TypeError):
            wrong()


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (-0.5 * RBF(), "factor=-0.5.*not negative"),
        (RBF() ** 0.5, "degree=0.5 must be a whole number"),
        (RBF() ** 0, "degree=0 must be"),
        (RBF(columns=[0, 3]), r"columns=\[0, 3\].*3 columns.*from 0 to 2"),
        (RBF(columns=[1, 1]), "different whole numbers"),
        (RBF(columns=[]), "at least one"),
        (RBF(columns=[0.5]), "whole numbers"),
        (RBF(gamma=[1.0, 2.0]), r"shape \(2,\).*3 columns"),
        (RBF(gamma=[1.0, 2.0, -1.0]), "not negative"),
        (RBF(gamma=-1.0) + Linear(), "gamma=-1.* not negative"),
        (Polynomial(gamma=[1.0, 2.0, 1.0]), "no kernel of a distance"),
        (OnColumns(Linear(), scales=[1.0, 2.0, 1.0]), "no gamma for each column"),
        (Polynomial(degree=60, gamma=1e4) ** 4, "not finite"),
    ],
    ids=str,
)
def test_bad_expressions(kernel, words):
    with pytest.raises(ValueError, match=words):
        KernelPCA(2, kernel=kernel).fit(generator(12).standard_normal((20, 3)))


def test_parts_are_searched_and_cloned():
    X = generator(13).standard_normal((40, 3))
    kernel = RBF(gamma=1.0) * Cosine() + 0.1 * Linear()
    copy = clone(kernel).set_params(
        kernels__0__kernels__0__gamma=2.0, kernels__1=Scaled(Linear(), 3.0)
    )
    assert repr(copy) == repr(RBF(gamma=2.0) * Cosine() + 3.0 * Linear())
    assert repr(kernel) == repr(RBF(gamma=1.0) * Cosine() + 0.1 * Linear())
    with pytest.raises(ValueError, match="Invalid parameter 'kernels__7'"):
        kernel.set_params(kernels__7=Linear())
    pipeline = Pipeline([("kpca", KernelPCA(2, kernel=kernel, random_state=0))])
    grid = {"kpca__kernel__kernels__0__kernels__0__gamma": [0.01, 1.0]}
    search = GridSearchCV(pipeline, grid, scoring=lambda m, X, y=None: -m[0].score(X), cv=2).fit(X)
    assert len(search.cv_results_["mean_test_score"]) == 2
    assert np.ptp(search.cv_results_["mean_test_score"]) > 0


def test_expressions_are_saved_planned_and_reported(tmp_path):
    X = generator(14).standard_normal((60, 3))
    kernel = RBF(columns=[0, 2]) * Cosine() + 0.1 * Linear() + Matern(gamma=[1, 2, 3]) ** 2
    model = KernelPCA(3, kernel=kernel, basis="landmarks", random_state=0).fit(X)
    model.save(tmp_path / "model.mercer")
    loaded = mercer.load(tmp_path / "model.mercer")
    assert repr(loaded.kernel_) == repr(model.kernel_) and repr(loaded.kernel) == repr(kernel)
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))
    assert "landmarks" in str(mercer.plan(X, kernel=kernel))
    assert "Sum" in str(model.kernel_)
    page = model.report(X, tmp_path / "page.html")
    assert page is not None


def test_hollow_parts_and_torch():
    X = generator(15).standard_normal((30, 3))
    kernel = Hollow(RBF(gamma=0.5)) + 0.5 * Linear()
    expected = (1 - np.eye(30)) * RBF(gamma=0.5)(X) + 0.5 * X @ X.T
    np.testing.assert_allclose(kernel(X), expected, atol=1e-12)
    torch = pytest.importorskip("torch")
    kernel = drawn(generator(16), 2, 3) + RBF(gamma=[1, 2, 3.0], columns=[0, 2, 1])
    kernel = kernel.resolve(X)
    found = kernel(torch.asarray(X))
    np.testing.assert_allclose(found.numpy(), value(kernel, X, X), atol=1e-9)
    np.testing.assert_allclose(kernel.diag(torch.asarray(X)).numpy(), kernel.diag(X), atol=1e-9)
