"""Bases: the contract over the registry, points and matrices against the oracle."""

import numpy as np
import oracle
import pytest
from contracts import check_basis, check_gram_basis, check_recipe, generator
from scipy import sparse

from mercer.bases import BASES, AllPoints, PrecomputedBasis, RandomFeatures
from mercer.bases.random_features import TensorSketch, half_angles
from mercer.compute import LocalEngine
from mercer.kernels import RBF, Laplacian, Linear, Matern, Polynomial, RationalQuadratic, Sigmoid

ENGINES = [LocalEngine(200_000, 1), LocalEngine(10**8, 4)]
KERNELS = [
    (RBF(gamma=0.3), "rbf"),
    (Linear(), "linear"),
    (Laplacian(gamma=0.2), "laplacian"),
    (Polynomial(degree=2, gamma=0.2, coef0=1), "polynomial"),
    (Sigmoid(gamma=0.1, coef0=0.2), "sigmoid"),
]


def points(m=150, n=20, d=4):
    rng = generator(m, n, d)
    return rng.standard_normal((m, d)), rng.standard_normal((n, d))


@pytest.mark.parametrize("name", BASES)
def test_contract(name):
    recipe = BASES[name]()
    check_recipe(recipe)
    if name == "fourier":
        pytest.importorskip("finufft")
    X, X_new = points(d=4 if recipe.most_columns is None else 2)
    kernel = Linear() if name == "columns" else RBF(gamma=0.3)
    basis = recipe.build(kernel, X, ENGINES[1], generator(1))
    check_basis(basis, np.clip(X_new, X.min(axis=0), X.max(axis=0)))


@pytest.mark.parametrize("engine", ENGINES, ids=["tight", "wide"])
@pytest.mark.parametrize(("kernel", "name"), KERNELS, ids=[name for _, name in KERNELS])
def test_all_points_are_the_kernel(kernel, name, engine):
    X, X_new = points()
    K = oracle.kernel_matrix(name, X, **kernel.get_params())
    K_new = oracle.kernel_matrix(name, X_new, X, **kernel.get_params())
    basis = AllPoints().build(kernel, X, engine, generator(1))
    np.testing.assert_allclose(basis.norms(X_new), kernel.diag(X_new))
    check_gram_basis(basis, K, X_new, K_new)


def test_sparse_points():
    X, X_new = points()
    X[X < 0.3], X_new[X_new < 0.3] = 0, 0
    K = oracle.kernel_matrix("rbf", X, gamma=0.3)
    K_new = oracle.kernel_matrix("rbf", X_new, X, gamma=0.3)
    basis = AllPoints().build(RBF(gamma=0.3), sparse.csr_array(X), ENGINES[0], generator(1))
    check_gram_basis(basis, K, sparse.csr_array(X_new), K_new)


@pytest.mark.parametrize(
    "kind",
    [np.asarray, sparse.csr_array, np.asfortranarray, lambda K: K.astype(np.float32)],
    ids=["dense", "sparse", "fortran", "single"],
)
def test_precomputed(kind):
    X, X_new = points()
    K = oracle.kernel_matrix("rbf", X, gamma=0.3).astype(np.float32).astype(float)
    K_new = oracle.kernel_matrix("rbf", X_new, X, gamma=0.3).astype(np.float32).astype(float)
    basis = PrecomputedBasis(kind(K), LocalEngine(10**8, 2))
    check_gram_basis(basis, K, kind(K_new), K_new)


def test_draft_only_where_single_precision_is_enough():
    """float32 keeps exp(-g|x - z|^2) to eps times the size of the terms that cancel."""
    X, _ = points()
    near = AllPoints().build(RBF(gamma=0.3), X, ENGINES[1], generator(1))
    assert near.draft is not None
    far = AllPoints().build(RBF(gamma=1e5), X, ENGINES[1], generator(1))
    assert far.draft is None


def test_draft_keeps_tiles_inside_its_room():
    X, _ = points(m=700)
    for memory in (2 * 10**5, 10**6, 10**7):
        basis = AllPoints().build(RBF(gamma=0.3), X, LocalEngine(memory, 2), generator(1))
        with basis.session() as working:
            working.draft.gram(np.ones((700, 2)))
            held = sum(T.nbytes for T in working.draft.store.tiles.values())
        assert held <= memory
    assert held > 700 * 700 * 4 / 2, "all of the upper half is kept where it fits"


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_linear_projection_takes_no_kernel_matrix(dtype, offset):
    """k(X, Z) W by way of Z' W, far from the origin too, in blocks of any size."""
    rng = generator(11)
    Z, X = (rng.standard_normal((n, 30)).astype(dtype) + dtype(offset) for n in (1500, 40))
    W = rng.standard_normal((1500, 3))
    W -= W.mean(axis=0)
    kernel = Linear().recentered(Z)
    for memory in (10**9, 10**5):
        basis = AllPoints().build(kernel, Z, LocalEngine(memory, 2), rng)
        found = basis.project(X, W)
        center = 0.0 if kernel.center is None else kernel.center
        expected = (X.astype(float) - center) @ ((Z.astype(float) - center).T @ W)
        np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("size", [1e-8, 1.0, 1e3, 1e7])
def test_cosines_and_sines_of_half_angles(size):
    """To rounding of 1, at the angles where the tangent has its poles too."""
    angles = generator(3).standard_normal((50, 40)) * size
    angles[0, :7] = np.array([0.0, 1, -1, 2, -2, 3, 0.5]) * np.pi
    cosines, sines = np.empty_like(angles), np.empty_like(angles)
    half_angles(angles.copy(), 0.25, cosines, sines)
    np.testing.assert_allclose(cosines, 0.25 * np.cos(angles), rtol=0, atol=2e-15)
    np.testing.assert_allclose(sines, 0.25 * np.sin(angles), rtol=0, atol=2e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [2, 7, 40])
def test_tensor_sketches_are_convolutions(dtype, size):
    """By products of few columns or by sums of many: the convolution of count sketches."""
    rng = generator(size)
    for d in (1, 20, 63, 64, 90):
        X = rng.standard_normal((6, d)).astype(dtype)
        sketch = TensorSketch.draw(Polynomial(3, 0.3, 1.5), d, size, rng)
        expected = np.zeros((6, size))
        expected[:, 0] = 1.0
        rows = np.hstack([X * sketch.scale, np.full((6, 1), sketch.constant)])
        for columns, signs in zip(sketch.columns, sketch.signs, strict=True):
            moved = [np.roll(expected, c, axis=1) for c in columns]
            expected = sum(
                A * (s * x)[:, None] for A, s, x in zip(moved, signs, rows.T, strict=True)
            )
        found = sketch(X)
        assert found.dtype == dtype
        rounding = 100 * np.finfo(dtype).eps * np.linalg.norm(rows, axis=1).max() ** 3
        np.testing.assert_allclose(found, expected, atol=rounding * np.sqrt(d))


FEATURED = [RBF(0.3), Laplacian(0.2), Matern(0.3, 0.5), Matern(0.3, 2.5), RationalQuadratic(0.4)]


@pytest.mark.parametrize("kernel", FEATURED, ids=repr)
@pytest.mark.parametrize("far", [0.0, 1e6])
def test_errors_of_pairs_are_those_of_the_matrix(kernel, far):
    """k(x, z) - psi(x) . psi(z) by differences, also where rows are far from the origin."""
    X, Z = points(30, 30)
    for rows, others in ((X, Z), (sparse.csr_matrix(X), sparse.csr_matrix(Z))):
        basis = RandomFeatures(50).build(kernel, X, ENGINES[1], generator(2))
        Y, V = (basis.block_products(R)(slice(None)) for R in (X, Z))
        expected = (kernel(X, Z) - Y @ V.T).diagonal()
        if isinstance(rows, np.ndarray):
            rows, others = rows + far, others + far
        found = basis.pair_errors(rows, others, np.dtype(np.float64))
        np.testing.assert_allclose(found, expected, atol=1e-12 if far == 0 else 1e-7)
        single = basis.pair_errors(rows, others, np.dtype(np.float32))
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, expected, atol=8e-6)
