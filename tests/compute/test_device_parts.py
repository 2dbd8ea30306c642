"""Parts that meet rows on a torch device: selectors, landmarks, features, moments, pre-images.

Each must do there what it does on NumPy. The device is a GPU where there is one, else the CPU with
the same code.
"""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from contracts import SELECTOR_VARIANTS as VARIANTS
from contracts import generator
from sklearn.base import clone

from mercer import DiffusionMap, KernelPCA, SpectralEmbedding, SupervisedKernelPCA
from mercer.bases import FeatureBasis, Landmarks, PointBasis, RandomFeatures, Whitening
from mercer.compute import LocalEngine, on_device_of, to_numpy
from mercer.estimators import _inverse
from mercer.fitting.expansion import KernelExpansion
from mercer.fitting.moments import Moments
from mercer.kernels import (
    RBF,
    Callable,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
)
from mercer.preimage import Compensation, DistanceMDS, FixedPoint, KernelRidge
from mercer.preimage.noise import undo_factors
from mercer.preimage.ridge import ridge_inverse
from mercer.relatives.joint import GivenColumns, JointMomentsOf
from mercer.selectors import (
    FarthestPoint,
    FullGreedy,
    GreedyCholesky,
    KMeans,
    NormWeighted,
    RidgeLeverage,
    RPCholesky,
    Uniform,
)

torch = pytest.importorskip("torch")
device = pytest.importorskip("mercer.compute.device")

WHERE = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
KERNELS = [RBF(gamma=0.15), Polynomial(degree=3, gamma=0.2, coef0=1.0)]
# Those that are passes over all rows, and so never bring all of them to main memory.
PASSES = [
    Uniform(),
    NormWeighted(),
    RPCholesky(),
    GreedyCholesky(),
    RidgeLeverage(),
    FarthestPoint(),
    KMeans(sample=300),
]


def engine(memory=10**9):
    return device.TorchEngine(memory, WHERE)


def tensor(A, dtype=None):
    return torch.tensor(A, dtype=dtype, device=WHERE)


def close(found, expected, **tolerance):
    np.testing.assert_allclose(to_numpy(found), to_numpy(expected), **tolerance)


def rows(n=500, d=4, key=0):
    return generator(31, key).standard_normal((n, d)) * np.linspace(2, 0.5, d)


def choose(selector, kernel, X, size=24):
    return selector.select(kernel, X, size, np.random.default_rng(3))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("selector", VARIANTS, ids=repr)
def test_selectors_choose_the_same_rows(selector, kernel):
    X = rows(250)
    expected = choose(selector, kernel, X, 12)
    for Y in (tensor(X), device.PagedRows(X, engine())):
        chosen = choose(selector, kernel, Y, 12)
        assert isinstance(chosen, torch.Tensor if selector.returns_points else np.ndarray)
        close(chosen, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("selector", [FullGreedy(), RPCholesky(), FarthestPoint()], ids=repr)
def test_selectors_pass_over_copies(selector):
    X = np.repeat(rows(40), 3, axis=0)
    chosen = choose(selector, KERNELS[0], tensor(X), 60)
    np.testing.assert_array_equal(chosen, choose(selector, KERNELS[0], X, 60))
    assert len(np.unique(X[chosen], axis=0)) == len(chosen) == 40


@pytest.mark.parametrize("selector", [*PASSES, FullGreedy()], ids=repr)
def test_selectors_in_single_precision(selector):
    X = tensor(rows(), dtype=torch.float32)
    chosen = choose(selector, KERNELS[0], X, 16)
    Z = chosen if selector.returns_points else X[chosen]
    assert Z.dtype == torch.float32 and len(torch.unique(Z, dim=0)) == 16


@pytest.mark.parametrize("selector", PASSES, ids=repr)
def test_selectors_never_ask_for_all_rows_at_once(selector):
    """Of many rows, and they choose the same ones as in main memory."""
    X, asked = rows(70_000, 2), []
    expected = choose(selector, KERNELS[0], X, 4)
    X = device.PagedRows(X, engine())

    class Watched(device.PagedRows):
        def __getitem__(self, index):
            block = super().__getitem__(index)
            asked.append(len(block))
            return block

    X.__class__ = Watched
    close(choose(selector, KERNELS[0], X, 4), expected, rtol=0, atol=1e-9)
    assert asked and max(asked) < 70_000


def test_callable_kernels_choose_landmarks_too():
    kernel = Callable(lambda x, z: float(np.exp(-0.1 * np.sum((x - z) ** 2))))
    X = rows(60)
    for selector in (RPCholesky(), FarthestPoint(), RidgeLeverage()):
        chosen = choose(selector, kernel, tensor(X), 8)
        np.testing.assert_array_equal(chosen, choose(selector, kernel, X, 8))


@pytest.mark.parametrize(
    "recipe",
    [
        Landmarks(40, Uniform()),
        Landmarks(40, KMeans()),
        Landmarks(error=0.2, selector=Uniform()),
        Landmarks(indices=[3, 5, 7]),
        Landmarks(points=rows(9, key=1)),
        Landmarks(points=torch.tensor(rows(9, key=1))),
    ],
    ids=lambda recipe: type(recipe.points).__name__ + repr(recipe.size),
)
@pytest.mark.parametrize("memory", [10**9, 50_000])
def test_landmarks_lie_beside_the_rows(recipe, memory):
    if memory < 10**9 and isinstance(recipe.selector, KMeans):
        pytest.skip("it would choose among fewer rows")
    X, kernel = rows(3000), KERNELS[0]
    expected = recipe.build(kernel, X, LocalEngine(10**8, 1), np.random.default_rng(0))
    basis = recipe.build(kernel, X, engine(memory), np.random.default_rng(0))
    assert isinstance(basis.engine.place(X), device.PagedRows) == (memory < 10**9)
    assert isinstance(basis.points, torch.Tensor) and basis.points.dtype == torch.float64
    close(basis.points, expected.points, rtol=0, atol=1e-12)
    W = generator(2).standard_normal((basis.size, 3))
    close(basis.project(X, W), expected.project(X, W), atol=1e-12)


def test_landmarks_of_another_width_are_refused():
    with pytest.raises(ValueError, match=r"points have shape \(5, 3\).*\(m, 4\)"):
        Landmarks(points=torch.ones(5, 3)).build(
            KERNELS[0], tensor(rows()), engine(), np.random.default_rng(0)
        )


FEATURE_KERNELS = [*KERNELS, Matern(0.1), RationalQuadratic(0.1), Laplacian(0.1)]


@pytest.mark.parametrize("memory", [10**9, 50_000])
@pytest.mark.parametrize("kernel", FEATURE_KERNELS, ids=repr)
def test_random_features(kernel, memory):
    X = rows(1500)
    recipe = RandomFeatures(size=30)
    expected = recipe.build(kernel, X, LocalEngine(10**8, 1), np.random.default_rng(0))
    basis = recipe.build(kernel, X, engine(memory), np.random.default_rng(0))
    assert isinstance(basis, FeatureBasis)
    W = generator(2).standard_normal((30, 3))
    P = basis.project(X, W)
    assert isinstance(P, torch.Tensor)
    close(P, expected.project(X, W), rtol=1e-10, atol=1e-10)
    close(basis.norms(X), expected.norms(X), rtol=1e-12)
    single = basis.block_products(tensor(X, dtype=torch.float32))(slice(0, 7))
    assert single.dtype == torch.float32 and single.shape == (7, 30)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_numbers_of_features_move_once_a_pass(kernel, monkeypatch):
    basis = RandomFeatures(size=30).build(kernel, rows(), engine(), np.random.default_rng(0))
    stream = basis.block_products(rows())
    moved = []
    monkeypatch.setattr(
        "mercer.bases.random_features.on_device_of",
        lambda A, X: moved.append(type(A)) or on_device_of(A, X),
    )
    stream(slice(0, 10))
    assert np.ndarray not in moved


def equal_moments(A, B, rtol):
    A, B = A.to_host(), B.to_host()
    assert A.count == B.count
    scale = np.abs(A.scatter).max()
    close(B.mean, A.mean, rtol=rtol, atol=rtol)
    close(B.scatter, A.scatter, rtol=0, atol=rtol * scale)
    close(B.energy, A.energy, rtol=rtol)
    close(B.lost_energy, A.lost_energy, rtol=rtol, atol=rtol * scale)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_moments(dtype):
    Y = (rows(200, 6) + 3).astype(dtype)
    rtol = 1e-12 if dtype == np.float64 else 1e-5

    def blocks(rows):
        return [rows[i : i + 64] + 0 for i in range(0, 200, 64)]

    def both(make):
        return make(Y), make(tensor(Y))

    def energy(rows):
        return rows[0, 0] * 0 + 1e4

    whole, on_device = both(lambda rows: Moments.of_blocks(blocks(rows), energy(rows)))
    assert isinstance(on_device.scatter, torch.Tensor)
    assert on_device.mean.dtype == on_device.scatter.dtype == torch.float64
    W = generator(1).standard_normal((6, 3))
    for change in (
        lambda m: m,
        lambda m: m + m.scaled(0.5),
        lambda m: m.mapped(W),
        lambda m: replace(m, scatter=m.about_zero()),
    ):
        equal_moments(change(whole), change(on_device), rtol)
    equal_moments(*both(lambda rows: Moments.of_blocks([rows + 0], energy(rows))), rtol)
    equal_moments(
        *both(lambda rows: Moments.of_blocks([rows[:50] + 0]) + Moments.of_blocks([rows[50:] + 0])),
        rtol,
    )


def test_moments_leave_the_energy_on_the_device():
    # A float would make every block wait for the device.
    energy = tensor(3.0, dtype=torch.float64)
    moments = Moments.of_blocks([tensor(rows())], energy)
    assert isinstance((moments + moments).energy, torch.Tensor)
    host = moments.to_host()
    assert host.energy == 3.0 and isinstance(host.energy, float)
    assert isinstance(host.mean, np.ndarray) and isinstance(host.scatter, np.ndarray)


CLIMBED = [
    RBF(gamma=0.05),
    RBF(gamma=1.5),  # narrow: a second start
    Matern(0.05, nu=0.5),
    Matern(0.05, nu=1.5),
    RationalQuadratic(0.1),
    Laplacian(0.1),
    Linear(),
    Polynomial(degree=3, gamma=0.1, coef0=1.0),
    Polynomial(degree=2, gamma=0.1, coef0=0.0),
]


def expansions(kernel, X, memory=10**9):
    """One expansion over the rows of X, on NumPy and on the device."""
    K = kernel(X)
    values, U = np.linalg.eigh(K)
    frame = np.hstack([np.full((len(X), 1), 1 / len(X)), U[:, -4:] / np.sqrt(values[-4:])])
    metric = frame.T @ K @ frame
    there = engine(memory)
    points = device.PagedRows(X, there) if memory < 10**9 else tensor(X)
    bases = PointBasis(kernel, X, LocalEngine(10**9, 1)), PointBasis(kernel, points, there)
    frames = frame, tensor(frame)
    return [KernelExpansion(b, F, metric) for b, F in zip(bases, frames, strict=True)]


def check_preimages(recipe, kernel, X, memory=10**9, atol=1e-8):
    here, there = expansions(kernel, X, memory)
    S = here.scores(X[:60])
    near = X[:60] + 0.1
    expected = recipe.fit(here, X)(S, near)
    found = recipe.fit(there, X)(tensor(S), near)
    assert isinstance(found.points, torch.Tensor) == (memory == 10**9)
    close(found.points, expected.points, rtol=0, atol=atol)
    np.testing.assert_array_equal(found.converged, expected.converged)
    np.testing.assert_array_equal(found.n_iter, expected.n_iter)


@pytest.mark.parametrize("kernel", CLIMBED, ids=repr)
def test_fixed_points(kernel):
    check_preimages(FixedPoint(), kernel, rows(150, 5))


@pytest.mark.parametrize("kernel", CLIMBED[::3], ids=repr)
def test_fixed_points_over_streamed_points_are_found_in_main_memory(kernel):
    check_preimages(FixedPoint(), kernel, rows(150, 5), memory=10**7)


@pytest.mark.parametrize("kernel", [RBF(0.05), Matern(0.05, nu=2.5)], ids=repr)
def test_distances(kernel):
    check_preimages(DistanceMDS(), kernel, rows(150, 5))


@pytest.mark.parametrize("size", [3000, 50])
def test_ridge(size):
    check_preimages(KernelRidge(size=size), RBF(0.05), rows(150, 5))


def test_ridge_of_scikit_learn():
    X, S = rows(60), rows(60, 3, key=1)
    expected = ridge_inverse(RBF(0.2), S, X, 0.1)
    found = ridge_inverse(RBF(0.2), tensor(S), tensor(X), 0.1)
    close(found, expected, rtol=0, atol=1e-10)


def test_compensation():
    X, here, there = rows(300), LocalEngine(10**8, 1), engine()
    noisy = X[:50] + generator(5).standard_normal((50, 4))
    expected, found = Compensation.of(X, here), Compensation.of(tensor(X), there)
    assert isinstance(found.rows, torch.Tensor)
    close(found.usual, expected.usual, rtol=1e-10)
    factors = undo_factors(0.3 * found.energies(noisy, there))
    assert isinstance(factors, torch.Tensor)
    close(factors, undo_factors(0.3 * expected.energies(noisy, here)), rtol=1e-10)


@pytest.mark.parametrize("preimage", ["fixed-point", "distance", "ridge"])
@pytest.mark.parametrize("basis", ["points", Landmarks(50)], ids=repr)
def test_models_come_back_from_the_device(basis, preimage):
    X = rows(200, 6)
    settings = {
        "n_components": 3,
        "kernel": RBF(0.05),
        "basis": basis,
        "preimage": preimage,
        "random_state": 0,
    }
    model = KernelPCA(**settings).fit(X)
    other = KernelPCA(**settings, device=WHERE).fit(X)
    assert isinstance(other.expansion_.basis.points, torch.Tensor)
    S, noisy = model.transform(X[:30]), X[:30] + 0.1
    for found, expected in (
        (other.inverse_transform(S), model.inverse_transform(S)),
        (other.denoise(noisy, noise=np.inf), model.denoise(noisy, noise=np.inf)),
        (other.denoise(noisy, noise=0.1), model.denoise(noisy, noise=0.1)),
    ):
        assert isinstance(found, np.ndarray)
        close(found, expected, rtol=0, atol=1e-8)
    single = other.inverse_transform(tensor(S, dtype=torch.float32))
    assert isinstance(single, torch.Tensor) and single.dtype == torch.float32


@pytest.mark.parametrize("preimage", ["fixed-point", "ridge"])
@pytest.mark.parametrize("kernel", [RBF(0.05), Linear(), Matern(0.05), CLIMBED[-2]], ids=repr)
def test_single_precision_stays_single(kernel, preimage):
    # Other libraries refuse products of two types, which NumPy takes.
    X = rows(120, 6).astype(np.float32)
    settings = {"n_components": 3, "kernel": kernel, "preimage": preimage}
    model, other = (KernelPCA(**settings, device=d).fit(X) for d in (None, WHERE))
    found = other.denoise(X[:20], noise=0.3)
    assert found.dtype == np.float32
    close(found, model.denoise(X[:20], noise=0.3), rtol=0, atol=2e-3)


def test_models_of_features_denoise_on_the_device():
    X = rows(200, 6)
    settings = {"n_components": 3, "kernel": RBF(0.05), "basis": RandomFeatures(60)}
    model = KernelPCA(**settings, random_state=0).fit(X)
    other = KernelPCA(**settings, random_state=0, device=WHERE).fit(X)
    close(other.denoise(X[:30], noise=0.3), model.denoise(X[:30], noise=0.3), rtol=0, atol=1e-8)


def test_bad_scores_on_the_device(monkeypatch):
    monkeypatch.setattr(_inverse, "is_on_device", lambda X: isinstance(X, torch.Tensor))
    model = KernelPCA(3, kernel=RBF(0.05), device=WHERE).fit(rows(50))
    S = model.transform(tensor(rows(20)))
    assert model.inverse_transform(S).shape == (20, 4)
    for bad, message in (
        (S[:, :2], "have 2 columns, and the model has 3 components"),
        (S[:0], r"shape \(0, 3\)"),
        (S[0], "got a 1D array"),
        (S * float("nan"), "contains NaN or infinity"),
    ):
        with pytest.raises(ValueError, match=message):
            model.inverse_transform(bad)


def test_learned_inverse_on_the_device():
    X = rows(80)
    settings = {"n_components": 3, "kernel": "rbf", "fit_inverse_transform": True}
    model, other = (KernelPCA(**settings, device=d).fit(X) for d in (None, WHERE))
    S = model.transform(X)
    found = other.inverse_transform(S)
    assert isinstance(found, np.ndarray)
    close(found, model.inverse_transform(S), rtol=0, atol=1e-8)


def test_streamed_model_comes_back():
    X = rows(400, 300) / 4
    settings = {"n_components": 3, "kernel": RBF(0.05), "random_state": 0}
    model = KernelPCA(**settings).fit(X)
    other = KernelPCA(**settings, device=WHERE, memory="3.2MB").fit(X)
    assert isinstance(other.expansion_.basis.points, device.PagedRows)
    S = model.transform(X[:20])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, denoised = other.inverse_transform(S), other.denoise(X[:20], noise=0.3)
    close(found, model.inverse_transform(S), rtol=0, atol=1e-8)
    # How many rows the noise is judged on is a matter of the budget.
    near = KernelPCA(**settings, memory="3.2MB").fit(X)
    close(denoised, near.denoise(X[:20], noise=0.3), rtol=0, atol=1e-8)


def test_streamed_rows_are_in_main_memory_already():
    X = rows()
    assert to_numpy(device.PagedRows(X, engine())) is X


@pytest.mark.parametrize("late", [True, False])
def test_joint_moments(late):
    """Moments with targets are those of main memory, whitened before or after."""
    X, P = rows(), generator(9).standard_normal((500, 3))
    # Landmarks that are nearly the same have too large a condition to be whitened late.
    Z = X[:20] if late else np.vstack([X[:10], X[:10] + 1e-4])
    here = PointBasis(RBF(0.1), Z, LocalEngine(10**9, 1))
    there = PointBasis(RBF(0.1), tensor(Z), engine())
    W = Whitening(20, here.whitener(np.float64))
    assert (W.late is not None) == late
    found, wanted = (
        function.finished(function(given, 0))
        for function, given in (
            (JointMomentsOf(basis, W, GivenColumns(P)), given)
            for basis, given in ((there, tensor(X)), (here, X))
        )
    )
    close(found.scatter, wanted.scatter, atol=1e-8 * float(np.abs(wanted.scatter).max()))
    close(found.cross, wanted.cross, atol=1e-8 * float(np.abs(P).sum()))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize(
    "model",
    [
        DiffusionMap(2, gamma=0.2, density_power=1, random_state=0),
        SpectralEmbedding(2, affinity="rbf", gamma=0.2, random_state=0),
        DiffusionMap(2, gamma=0.2, basis=Landmarks(100), random_state=0),
        SupervisedKernelPCA(2, kernel="rbf", gamma=0.2, random_state=0),
        SupervisedKernelPCA(2, kernel="rbf", gamma=0.2, unsupervised=0.2, random_state=0),
        SupervisedKernelPCA(2, kernel="rbf", gamma=0.2, basis=Landmarks(60), random_state=0),
    ],
    ids=repr,
)
def test_embeddings_and_targets_on_a_gpu(model):
    """Tensors in, tensors out, and the coordinates of main memory, of new rows too."""
    X, new = rows(400), rows(50, key=1)
    y = np.arange(400) % 3
    here = clone(model).fit(X, y)
    there = clone(model).fit(tensor(X), y)
    found = there.transform(tensor(new))
    assert found.device.type == "cuda"
    close(torch.abs(found), np.abs(here.transform(new)), atol=1e-5)
