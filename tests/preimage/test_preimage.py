"""Pre-images: optimal where they claim to be, finite everywhere, after every basis and kernel."""

import os

import numpy as np
import pytest
from contracts import check_recipe, generator, peak_bytes
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer, load_digits, make_swiss_roll
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.preprocessing import StandardScaler

from mercer import HebbianKernelPCA, KernelPCA, kernels
from mercer.bases import Landmarks, RandomFeatures
from mercer.preimage import PREIMAGES, Compensation, DistanceMDS, FixedPoint, KernelRidge
from mercer.preimage.base import with_mean
from mercer.preimage.distance import place, squared_distances
from mercer.preimage.fixed_point import climb, form_of
from mercer.preimage.noise import undo_factors
from mercer.preimage.ridge import centered_ridge, ridge_inverse

needs_data = pytest.mark.skipif("MERCER_DATA" not in os.environ, reason="MERCER_DATA is not set")

CLIMBED = [
    kernels.RBF(0.3),
    kernels.Matern(0.3, nu=0.5),
    kernels.Matern(0.3, nu=1.5),
    kernels.Matern(0.3, nu=2.5),
    kernels.RationalQuadratic(0.3, alpha=0.7),
    kernels.Polynomial(2, gamma=0.4, coef0=1),
    kernels.Polynomial(3, gamma=0.4, coef0=1),
    kernels.Polynomial(5, gamma=0.4, coef0=1),
]
ALL_KERNELS = [
    *CLIMBED,
    kernels.Laplacian(0.2),
    kernels.Linear(),
    kernels.Cosine(),
    kernels.Sigmoid(0.05, 0.1),
    kernels.Chi2(0.5),
]


def ring(n, noise=0.0, d=6, key=0):
    """A closed curve in d dimensions, away from the origin, and its noisy copy."""
    rng = generator(70, key)
    t = rng.uniform(0, 2 * np.pi, n)
    curve = np.column_stack([f(k * t) / k for k in (1, 2, 3) for f in (np.cos, np.sin)])
    Q = np.linalg.qr(generator(71).standard_normal((d, d)))[0][: curve.shape[1]]
    X = curve @ Q + 3
    return X, X + noise * rng.standard_normal(X.shape)


X, NOISY = ring(150, 0.15)


def objective(kernel, Z, points, w):
    """Minus the squared distance of phi(z) to the reconstruction, up to a constant."""
    z = Z.reshape(1, -1)
    return float(2 * (kernel(z, points) @ w)[0] - kernel.diag(z)[0])


@pytest.mark.parametrize("recipe", [kind() for kind in PREIMAGES.values()], ids=repr)
def test_contract(recipe):
    """Recipes are recipes; batches, byte budgets and precisions do not matter."""
    check_recipe(recipe)
    model = KernelPCA(8, kernel="rbf", gamma=0.3, preimage=recipe).fit(X)
    S = model.transform(NOISY[:40])
    found = model.inverse_transform(S)
    assert found.shape == (40, 6) and np.isfinite(found).all()
    singly = np.vstack([model.inverse_transform(s[None]) for s in S])
    np.testing.assert_allclose(found, singly, atol=1e-8)
    tight = KernelPCA(8, kernel="rbf", gamma=0.3, preimage=recipe, memory="2MB", n_jobs=1).fit(X)
    np.testing.assert_allclose(
        np.abs(tight.inverse_transform(tight.transform(X[:9]))),
        np.abs(model.inverse_transform(model.transform(X[:9]))),
        atol=1e-5,
    )
    single = KernelPCA(8, kernel="rbf", gamma=0.3, preimage=recipe).fit(X.astype(np.float32))
    back = single.inverse_transform(single.transform(NOISY[:40].astype(np.float32)))
    assert back.dtype == np.float32
    np.testing.assert_allclose(back, found, atol=0.02)
    # Denoising is worth something, whatever the method.
    assert np.mean((model.denoise(NOISY) - X) ** 2) < 0.7 * np.mean((NOISY - X) ** 2)


def test_linear_is_pca():
    pca = PCA(3).fit(X)
    model = KernelPCA(3, kernel="linear").fit(X)
    expected = pca.inverse_transform(pca.transform(NOISY))
    np.testing.assert_allclose(model.inverse_transform(model.transform(NOISY)), expected, atol=1e-8)
    few = KernelPCA(3, kernel="linear", basis=Landmarks(points=np.eye(6))).fit(X)
    np.testing.assert_allclose(few.inverse_transform(few.transform(NOISY)), expected, atol=1e-8)


@pytest.mark.parametrize("kernel", [*CLIMBED, kernels.Laplacian(0.2)], ids=repr)
def test_steps_ascend_to_a_stationary_point(kernel):
    """Steps point uphill, no value falls, and where it stops the gradient is zero."""
    rng = generator(3)
    Y, W = X - 3, rng.standard_normal((20, 150)) / 150 + 1 / 150
    form = form_of(kernel)(kernel, Y, np.float64)
    Z = rng.standard_normal((20, 6))
    value, size, step = form.evaluate(Z, W)
    assert (size >= np.abs(value) - 1e-12).all()
    if not isinstance(kernel, kernels.Laplacian):
        ahead = form.evaluate(Z + 1e-6 * step, W)[0]
        assert (ahead >= value - 1e-15).all()
    found, values, converged, _ = climb(form, W, Z, 1e-7, 10.0, 3000)
    assert converged.all() and (values >= value - 1e-12).all()
    assert np.allclose(values, form.evaluate(found, W)[0])


@pytest.mark.parametrize("kernel", CLIMBED, ids=repr)
def test_fixed_point_is_optimal(kernel):
    """No worse than L-BFGS from the same place, to five digits of the objective."""
    Y = X - 3
    model = KernelPCA(8, kernel=kernel, preimage=FixedPoint(1e-7, 2000)).fit(Y)
    S = model.transform(NOISY[:12] - 3)
    found = model.inverse_transform(S)
    W = model.expansion_.weights(S)
    for z, w in zip(found, W, strict=True):
        ours = objective(kernel, z, Y, w)
        theirs = -minimize(lambda u, w=w: -objective(kernel, u, Y, w), z).fun
        assert ours >= theirs - 1e-5 * max(1.0, abs(theirs))


@pytest.mark.parametrize("key", range(3))
def test_laplacian_is_optimal_along_every_column(key):
    """No value that a point has in a column is better; the climb alone leaves most rows short."""
    Y = ring(120, key=key)[0] - 3
    kernel = kernels.Laplacian(0.2)
    model = KernelPCA(8, kernel=kernel, preimage="fixed-point").fit(Y)
    S = model.transform(ring(10, 0.15, key=key + 20)[1] - 3)
    found, W = model.inverse_transform(S), model.expansion_.weights(S)
    form = form_of(kernel)(kernel, Y, np.float64)
    improved = 0
    for z, w in zip(found, W, strict=True):
        ours = (kernel(z[None], Y) @ w)[0]
        for k in range(6):
            trial = np.repeat(z[None], len(Y), axis=0)
            trial[:, k] = Y[:, k]
            assert (kernel(trial, Y) @ w).max() <= ours * (1 + 1e-6)
        start = (w @ Y - form.origin)[None]
        short = climb(form, w[None], start, 1e-4, 10.0, 100)[1][0]
        assert ours >= short - 1e-9
        improved += ours > (1 + 1e-5) * short
    assert improved >= 5


def test_a_point_comes_back_from_all_its_components():
    """With every component a training row is its own reconstruction."""
    for kernel in (kernels.RBF(2.0), kernels.Matern(2.0, nu=1.5)):
        model = KernelPCA(kernel=kernel, preimage=FixedPoint(1e-6, 500)).fit(X)
        back = model.inverse_transform(model.transform(X))
        np.testing.assert_allclose(back, X, atol=1e-3)


@pytest.mark.filterwarnings("ignore:.*rows of scores lie outside")
@pytest.mark.parametrize("share", [1 / 8, 1 / 4, 1])
def test_random_scores_are_finite(share):
    """Latent sampling and extrapolation, with kernels far narrower than the data."""
    median = kernels.RBF("median").resolve(X).gamma
    model = KernelPCA(20, kernel="rbf", gamma=median / share**2).fit(X)
    S = generator(4).standard_normal((60, 20)) * np.sqrt(model.explained_variance_) * 3
    for name in PREIMAGES:
        model.set_params(preimage=FixedPoint(max_iter=400) if name == "fixed-point" else name)
        found = model.inverse_transform(S)
        assert np.isfinite(found).all()
        assert np.linalg.norm(found - X.mean(axis=0), axis=1).max() < 100


def test_narrow_kernels_start_at_the_nearest_point_too():
    """The second start never makes the objective worse, and sometimes better."""
    gamma = kernels.RBF("median").resolve(X).gamma * 16
    model = KernelPCA(20, kernel="rbf", gamma=gamma).fit(X)
    fitted = FixedPoint(max_iter=500).fit(model.expansion_, X)
    _, form, anchors, limits = fitted.args
    assert anchors is not None
    S = generator(5).standard_normal((60, 20)) * np.sqrt(model.explained_variance_)
    W = model.expansion_.weights(S)
    both = fitted(S).points - form.origin
    one = climb(form, W, W @ form.points, *limits)[1]
    two = form.evaluate(both, W)[0]
    assert (two >= one - 1e-12).all() and (two > one + 1e-6).any()
    wide = KernelPCA(3, kernel="rbf").fit(X)
    assert FixedPoint().fit(wide.expansion_, X).args[2] is None


def test_even_powers_start_at_the_input():
    """(x.z)^2 knows a row up to its sign; denoise keeps the sign of the input."""
    kernel = kernels.Polynomial(2, gamma=0.5, coef0=0)
    rows = np.vstack([X - 3, 3 - X])
    model = KernelPCA(12, kernel=kernel, preimage=FixedPoint(max_iter=500)).fit(rows)
    back = model.denoise(rows[:40], noise=np.inf)
    assert (np.sum(back * rows[:40], axis=1) > 0).mean() > 0.9


def test_not_settled_warns():
    model = KernelPCA(8, kernel="rbf", gamma=3.0, preimage=FixedPoint(1e-9, 1)).fit(X)
    with pytest.warns(ConvergenceWarning, match=r"pre-images had not converged.*max_iter"):
        model.inverse_transform(model.transform(NOISY))


def test_rows_are_placed_by_their_distances():
    """Exact distances give the exact row, inside the ball of its neighbors."""
    rng = generator(6)
    neighbors = rng.uniform(-1, 1, (5, 20, 4))
    rows = neighbors.mean(axis=1) + 0.1 * rng.standard_normal((5, 4))
    squares = np.sum((neighbors - rows[:, None]) ** 2, axis=2)
    np.testing.assert_allclose(place(neighbors, squares), rows, atol=1e-9)
    far = place(neighbors, squares * np.linspace(1, 80, 20))
    center = neighbors.mean(axis=1, keepdims=True)
    ball = np.linalg.norm(neighbors - center, axis=2).max(axis=1)
    assert (np.linalg.norm(far - center[:, 0], axis=1) <= ball + 1e-9).all()
    assert np.isfinite(place(np.ones((2, 20, 4)), np.ones((2, 20)))).all()


@pytest.mark.parametrize("kernel", CLIMBED[:5], ids=repr)
def test_distances_invert_the_kernel(kernel):
    z = np.zeros((1, 3))
    rows = generator(7).standard_normal((30, 3))
    found = squared_distances(kernel, kernel(z, rows))
    np.testing.assert_allclose(found, np.sum(rows**2, axis=1)[None], rtol=1e-3)


@pytest.mark.filterwarnings("ignore:A ridge of")
@pytest.mark.parametrize("name", PREIMAGES)
def test_batches_stay_within_the_budget(name):
    """The way back takes no more than the budget beside its answer, however many rows ask."""
    rows, noisy = ring(2000, 0.1, key=4)
    model = KernelPCA(8, kernel="rbf", gamma=0.3, preimage=name, memory="7MB", n_jobs=1).fit(rows)
    S = model.transform(noisy)
    model.inverse_transform(S[:2])  # what is prepared once
    assert peak_bytes(lambda: model.inverse_transform(S)) < 7e6 + 4 * noisy.nbytes


def test_ridge_of_centers_is_the_ridge_when_all_are():
    S, kernel = generator(8).standard_normal((60, 3)), kernels.RBF(0.3)
    Y = S @ generator(9).standard_normal((3, 4))
    full, some = ridge_inverse(kernel, S, Y, 0.1), centered_ridge(kernel, S, S, Y, 0.1)
    np.testing.assert_allclose(kernel(S) @ some, kernel(S) @ full, atol=1e-6)


def test_ridge_solves_no_large_system():
    """Fewer centers than rows give nearly the same answer."""
    rows, noisy = ring(900, 0.1, key=3)
    model = KernelPCA(8, kernel="rbf", gamma=0.3).fit(rows)
    full = KernelRidge().fit(model.expansion_, rows)
    few = KernelRidge(size=200).fit(model.expansion_, rows)
    assert [len(fitted.args[2]) for fitted in (few, full)] == [200, 900]  # the centers
    S = model.transform(noisy[:100])
    assert np.mean((full(S).points - few(S).points) ** 2) < 0.1 * np.mean((noisy - rows) ** 2)


def test_ridge_beats_scikit_learns():
    peer = KernelPCA(8, kernel="rbf", gamma=0.3, fit_inverse_transform=True).fit(X)
    ours = KernelPCA(8, kernel="rbf", gamma=0.3, preimage="ridge").fit(X)
    S = ours.transform(X)
    error = np.mean((ours.inverse_transform(S) - X) ** 2)
    assert error < 0.2 * np.mean((peer.inverse_transform(S) - X) ** 2)


@pytest.mark.parametrize("name", ["auto", *PREIMAGES])
@pytest.mark.parametrize("how", ["points", "landmarks", "features", "hebbian", "stream"])
def test_every_basis(name, how):
    """All three after all bases, except the fixed point, which needs points."""
    if how == "hebbian":
        model = HebbianKernelPCA(8, kernel="rbf", gamma=0.3, random_state=0).fit(X)
    elif how == "stream":
        model = HebbianKernelPCA(8, kernel="rbf", gamma=0.3, random_state=0).partial_fit(X)
    else:
        basis = {"features": RandomFeatures(400), "landmarks": Landmarks(30)}.get(how, how)
        model = KernelPCA(8, kernel="rbf", gamma=0.3, basis=basis, random_state=0).fit(X)
    model.preimage = name
    if how == "features" and name == "fixed-point":
        with pytest.raises(ValueError, match=r"FeatureBasis has none.*preimage='ridge'"):
            model.inverse_transform(model.transform(X))
        return
    back = model.inverse_transform(model.transform(X))
    assert np.mean((back - X) ** 2) < 0.2 * X.var(axis=0).mean()
    assert np.mean((model.denoise(NOISY) - X) ** 2) < 0.8 * np.mean((NOISY - X) ** 2)


# Kernels with a cusp settle slowly.
@pytest.mark.filterwarnings("ignore:.*pre-images had not converged")
@pytest.mark.parametrize("name", ["auto", *PREIMAGES])
@pytest.mark.parametrize("kernel", ALL_KERNELS, ids=repr)
def test_every_kernel(kernel, name):
    """What works works; the rest says why and what to use."""
    rows = np.maximum(X - 3, 0.01) if isinstance(kernel, kernels.Chi2) else X - 3
    model = KernelPCA(5, kernel=kernel, preimage=name)
    try:
        back = model.inverse_transform(model.fit_transform(rows))
    except ValueError as error:
        assert "preimage='ridge'" in str(error)
        assert name == "distance" or (name == "fixed-point" and kernel not in CLIMBED)
        return
    assert np.isfinite(back).all()
    assert np.mean((back - rows) ** 2) < rows.var(axis=0).mean()


def test_callable_kernel_has_a_ridge():
    model = KernelPCA(4, kernel=lambda x, z: float(np.exp(-0.3 * np.sum((x - z) ** 2)))).fit(X[:60])
    back = model.inverse_transform(model.transform(X[:60]))
    assert np.mean((back - X[:60]) ** 2) < 0.5 * X.var(axis=0).mean()


class Cauchy(kernels.stationary.StationaryKernel):
    """The example of CONTRIBUTING: a kernel of the distance that the library does not know."""

    def __init__(self, gamma=None):
        self.gamma = gamma

    def finish(self, T):
        """1 / (1 + gamma d^2)."""
        T *= -1
        T += 1
        T **= -1
        return T


class Sloped(Cauchy):
    def slope(self, T):
        """The derivative of 1 / (1 - t)."""
        return self.finish(T) ** 2


def test_own_kernel_with_a_slope_has_a_fixed_point():
    ours, own = (
        KernelPCA(8, kernel=kernel, preimage="fixed-point").fit(X)
        for kernel in (kernels.RationalQuadratic(0.3), Sloped(0.3))
    )
    back = own.inverse_transform(own.transform(X[:40]))
    np.testing.assert_allclose(back, ours.inverse_transform(ours.transform(X[:40])), atol=1e-6)


def test_own_kernel():
    for name in ("auto", "distance", "ridge"):
        model = KernelPCA(8, kernel=Cauchy(0.3), preimage=name).fit(X)
        back = model.inverse_transform(model.transform(X))
        assert np.mean((back - X) ** 2) < 0.2 * X.var(axis=0).mean()
    with pytest.raises(ValueError, match="gradient"):
        KernelPCA(8, kernel=Cauchy(0.3), preimage="fixed-point").fit(X)


def test_the_mean_is_restored():
    """A shift of the data moves the answers by as much; scikit-learn's would fall short."""
    for preimage in PREIMAGES:
        model = KernelPCA(8, kernel="rbf", gamma=0.3, preimage=preimage)
        near = model.fit(X).inverse_transform(np.zeros((1, 8)))
        far = model.fit(X + 1000).inverse_transform(np.zeros((1, 8)))
        np.testing.assert_allclose(far, near + 1000, atol=1e-3)


def test_nothing_to_come_back_to():
    model = KernelPCA(3, kernel="precomputed").fit(X @ X.T)
    with pytest.raises(NotFittedError, match="precomputed kernel has no rows"):
        model.inverse_transform(np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"5 columns.*3 components"):
        KernelPCA(3, kernel="rbf").fit(X).inverse_transform(np.zeros((2, 5)))
    with pytest.raises(NotFittedError):
        KernelPCA().inverse_transform(X)
    with pytest.raises(ValueError, match="preimage"):
        KernelPCA(preimage="magic").fit(X)


def test_state():
    """A refit forgets what was prepared; equal rows, and a pickle, are no trouble."""
    import pickle

    model = KernelPCA(4, kernel="rbf", gamma=0.3)
    first = model.fit(X).denoise(NOISY)
    copy = pickle.loads(pickle.dumps(model))
    assert not hasattr(copy, "_kept")
    again = copy.denoise(NOISY)
    np.testing.assert_allclose(first, again)
    moved = model.fit(X + 7).denoise(NOISY + 7)
    np.testing.assert_allclose(moved, first + 7, atol=1e-4)
    twice = np.repeat(X[:40], 2, axis=0)
    assert np.isfinite(KernelPCA(4, kernel="rbf").fit(twice).denoise(NOISY)).all()


def many_dimensions(n, key):
    """A curve in 200 dimensions: where noise is nearly orthogonal to everything."""
    t = generator(80, key).uniform(0, 2 * np.pi, n)
    Q = np.linalg.qr(generator(81).standard_normal((200, 4)))[0]
    return 4 * np.column_stack([np.cos(t), np.sin(t), np.cos(2 * t), np.sin(2 * t)]) @ Q.T


def test_compensation_restores_the_scores():
    """Scores of noisy rows come back to those of clean ones; the energy is known to a tenth."""
    train, clean = many_dimensions(400, 1), many_dimensions(50, 2)
    noisy = clean + 0.3 * generator(10).standard_normal(clean.shape)
    model = KernelPCA(6, kernel="rbf", gamma=0.05).fit(train)
    engine = model.expansion_.basis.engine
    energies = Compensation.of(train, engine).energies(noisy, engine)
    np.testing.assert_allclose(energies.mean(), 0.09 * 200, rtol=0.1)
    S = model.transform(clean)
    plain = np.mean((model.transform(noisy) - S) ** 2)
    restored = np.mean((model._inverse().denoising_scores(noisy, True) - S) ** 2)
    assert restored < 0.2 * plain
    with_it, without = (
        np.mean((model.denoise(noisy, compensate=c, noise=np.inf) - clean) ** 2)
        for c in (True, False)
    )
    assert with_it < 0.8 * without
    # Clean rows, and the way back from scores, are left alone.
    np.testing.assert_allclose(
        model._inverse().denoising_scores(train, True), model.transform(train), atol=1e-9
    )
    model.preimage = "fixed-point"
    np.testing.assert_allclose(
        model.inverse_transform(model.transform(noisy)),
        model.denoise(noisy, compensate=False, noise=np.inf),
    )


@pytest.mark.parametrize("key", range(4))
def test_auto_inverts_better_than_the_fixed_point(key):
    """Of rows the model has not seen, and more so of those it has; `preimage_` says by what."""
    (train, _), (fresh, _) = ring(200, key=key), ring(100, key=key + 10)
    model = KernelPCA(10, kernel="rbf", gamma=0.3).fit(train)
    assert isinstance(model.preimage_, KernelRidge)

    def lost(rows):
        return np.mean((model.inverse_transform(model.transform(rows)) - rows) ** 2)

    ours = lost(fresh), lost(train)
    model.preimage = "fixed-point"
    assert isinstance(model.preimage_, FixedPoint)
    assert ours[0] < lost(fresh) and ours[1] < lost(train)
    assert isinstance(KernelPCA(2, kernel="linear").fit(train).preimage_, FixedPoint)


FAR_KERNELS = [kernels.RBF(0.3), kernels.Matern(0.3), kernels.Polynomial(3, gamma=0.4)]


@pytest.mark.parametrize("name", [*PREIMAGES, "auto"])
@pytest.mark.parametrize("kernel", FAR_KERNELS, ids=repr)
@pytest.mark.filterwarnings("ignore:.*pre-images had not converged")
def test_scores_far_outside_give_sensible_rows(kernel, name):
    """However far the scores are, rows stay as near to the data as they do at the limit."""
    if name == "distance" and isinstance(kernel, kernels.Polynomial):
        pytest.skip("no kernel of the distance")
    model = KernelPCA(6, kernel=kernel, preimage=name).fit(X)
    S = model.transform(X)
    size = np.abs(X - X.mean(axis=0)).max()
    for factor in (1e2, 1e6, 1e300):
        with pytest.warns(UserWarning, match="rows of scores lie outside"):
            rows = model.inverse_transform(factor * S[:20])
        assert np.isfinite(rows).all()
        assert np.abs(rows - X.mean(axis=0)).max() < 20 * size
    # A linear kernel has a row for every score.
    linear = KernelPCA(3, kernel="linear").fit(X)
    far = 1e6 * linear.transform(X)
    np.testing.assert_allclose(linear.transform(linear.inverse_transform(far)), far, rtol=1e-6)


@pytest.mark.parametrize("how", ["points", "landmarks", "features"])
def test_clipping_keeps_the_range_of_the_data(how):
    pixels = np.clip(X - 3, 0, 1)
    basis = Landmarks(40) if how == "landmarks" else how
    model = KernelPCA(5, kernel="rbf", gamma=0.3, basis=basis, random_state=0).fit(pixels)
    S = 2 * model.transform(pixels)
    plain, clipped = model.inverse_transform(S), model.inverse_transform(S, clip=True)
    assert plain.min() < 0 and clipped.min() >= 0 and clipped.max() <= 1
    inside = (plain >= 0) & (plain <= pixels.max(axis=0))
    np.testing.assert_array_equal(clipped[inside], plain[inside])
    assert model.denoise(pixels + 0.2, clip=True).max() <= 1


def swiss(n, rng):
    return make_swiss_roll(n, random_state=int(rng.integers(2**31)))[0]


def spectra(n, rng):
    """Three peaks each, in 150 columns."""
    t = np.linspace(0, 1, 150)
    place, width, height = (
        rng.uniform(a, b, (3, n, 1)) for a, b in ((0.2, 0.8), (0.02, 0.05), (0, 1))
    )
    return np.sum(height * np.exp(-0.5 * ((t - place) / width) ** 2), axis=0)


def curve(n, rng):
    return ring(n, key=int(rng.integers(2**31)))[0]


def drawn_digits(n, rng):
    return load_digits().data[rng.permutation(1797)[:n]]


def drawn_usps(n, rng):
    from papers_data import load_usps

    return load_usps().data[rng.permutation(7291)[:n]]


def plane(n, rng):
    """Five dimensions in 1,500 columns, and a little in all of them."""
    return rng.standard_normal((n, 5)) @ generator(9).standard_normal(
        (5, 1500)
    ) + 0.05 * rng.standard_normal((n, 1500))


# Clean rows: n rows of which some are for the fit, and their number.
CLEAN_ROWS = {
    "curve": (curve, 400, 300),
    "curve in two columns": (lambda n, rng: curve(n, rng)[:, :2], 400, 300),
    "swiss roll": (swiss, 700, 500),
    "spectra": (spectra, 350, 250),
    "digits": (drawn_digits, 600, 400),
    "usps": pytest.param(drawn_usps, 700, 500, marks=needs_data),
    "pure noise": (lambda n, rng: rng.standard_normal((n, 12)), 300, 200),
    "few noisy rows": (drawn_digits, 403, 400),
    "one noisy row": (drawn_digits, 401, 400),
    "few clean rows": (curve, 60, 14),
    "wide rows": (plane, 90, 60),
    "equal rows": (lambda n, rng: np.ones((n, 9)), 80, 50),
}
CLEAN_ROWS = [
    one if hasattr(one, "marks") else pytest.param(*one, id=name)
    for name, one in CLEAN_ROWS.items()
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("key", range(3))
@pytest.mark.parametrize("draw, n, split", CLEAN_ROWS)
def test_denoising_never_makes_rows_worse(draw, n, split, key):
    """Whatever the rows, the noise, the width, the components and the method; or without noise."""
    rng = generator(74, key, n)
    rows = draw(n, rng)
    train, clean = rows[:split], rows[split:]
    size = np.sqrt(train.var(axis=0).mean()) or 1.0
    median = np.median(np.linalg.norm(train[:-7] - train[7:], axis=1)) or 1.0
    gamma = float(rng.choice([0.05, 0.5, 5.0])) / median**2
    preimage = str(rng.choice(list(PREIMAGES)))
    r = int(min(rng.choice([1, 4, 16, 64]), split // 2))
    model = KernelPCA(r, kernel="rbf", gamma=gamma, preimage=preimage).fit(train)
    # Without noise: where it is estimated, almost nothing may move.
    assert np.mean((model.denoise(clean) - clean) ** 2) <= (0.06 * size) ** 2
    np.testing.assert_array_equal(model.denoise(clean, noise=0.0), clean)
    for noise in size * rng.choice([0.01, 0.03, 0.1, 0.3, 1.0, 2.0], 2, replace=False):
        noisy = clean + noise * rng.standard_normal(clean.shape)
        before = np.mean((noisy - clean) ** 2)
        for given in (None, float(noise)):
            after = np.mean((model.denoise(noisy, noise=given) - clean) ** 2)
            assert after <= (1.05 + 2 / clean.size**0.5) * before, (noise / size, given, preimage)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("key", range(2))
@pytest.mark.parametrize("r", [8, 100])
@pytest.mark.parametrize("draw", [drawn_digits, pytest.param(drawn_usps, marks=needs_data)])
def test_denoising_is_no_worse_than_linear_pca_with_wiener(draw, r, key):
    """Where the noise is not known, against its best: the noise and all training rows known."""
    rng = generator(77, key, r)
    rows = draw(800, rng)
    train, clean = rows[:600], rows[600:]
    model = KernelPCA(r, kernel="rbf", gamma="median").fit(train)
    pca, size = PCA().fit(train), train.std(axis=0).mean()
    for share in rng.uniform([0.05, 0.3, 0.8], [0.3, 0.8, 1.5]):
        noise = share * size
        noisy = clean + noise * rng.standard_normal(clean.shape)
        gains = pca.explained_variance_ / (pca.explained_variance_ + noise**2)
        wiener = pca.inverse_transform(pca.transform(noisy) * gains)
        ours = np.mean((model.denoise(noisy) - clean) ** 2)
        assert ours <= 1.03 * np.mean((wiener - clean) ** 2)


@pytest.mark.filterwarnings("ignore:No noise was found")
@pytest.mark.parametrize("key", range(12))
def test_small_variances_of_a_fit_are_not_taken_for_noise(key):
    """Columns that nearly depend on each other: what is left is large in some rows."""
    rng = generator(key)
    rows = StandardScaler().fit_transform(load_breast_cancer().data)
    clean = rows[rng.permutation(len(rows))[: int(rng.integers(120, 350))]]
    noise = float(rng.choice([0.02, 0.05, 0.1, 0.2]))
    noisy = clean + noise * rng.standard_normal(clean.shape)
    after = KernelPCA(5, kernel="rbf", gamma="median").fit(noisy).denoise(noisy)
    assert np.mean((after - clean) ** 2) <= np.mean((noisy - clean) ** 2)


@pytest.mark.parametrize("d", [30, 100])
def test_rows_of_a_fit_as_noisy_as_they_are_denoised(d):
    """In columns enough white noise shows, in rows of the fit and in others, known or not."""
    errors = []
    for key in range(5):
        clean = many_dimensions(300, key)[:, :d]
        noise = 0.5 * clean.std()
        noisy = clean + noise * generator(78, key).standard_normal(clean.shape)
        model = KernelPCA(8, kernel="rbf", gamma="median").fit(noisy[:220])
        errors += [
            [np.mean((model.denoise(noisy[rows], noise=given) - clean[rows]) ** 2) / noise**2]
            for rows in (slice(220), slice(220, None))
            for given in (None, noise)
        ]
    # One in a hundred samples of rows looks noisier than the fit by chance.
    assert np.median(errors) < 0.3 and np.quantile(errors, 0.8) < 0.4


def test_rows_without_noise_are_told_of():
    clean, train = ring(200, key=5)[0], ring(200, key=6)[0]
    model = KernelPCA(4, kernel="rbf", gamma=0.3).fit(train)
    with pytest.warns(UserWarning, match=r"No noise was found.*noise="):
        np.testing.assert_array_equal(model.denoise(clean), clean)
    with pytest.raises(ValueError, match="standard deviation"):
        model.denoise(clean, noise=-1.0)
    assert np.isfinite(model.denoise(clean, noise=np.inf)).all()


def test_compensation_is_capped():
    train = many_dimensions(100, 1)
    engine = KernelPCA(2).fit(train).expansion_.basis.engine
    energies = Compensation.of(train, engine).energies(train + 50, engine)
    assert undo_factors(energies).max() <= np.exp(3) + 1e-9


def test_other_libraries_get_their_own_back():
    torch = pytest.importorskip("torch")
    model = KernelPCA(4, kernel="rbf").fit(torch.tensor(X))
    assert isinstance(model.denoise(torch.tensor(NOISY)), torch.Tensor)
    assert isinstance(model.inverse_transform(model.transform(torch.tensor(X))), torch.Tensor)


def test_inner_products_from_the_frame():
    """What the distances rest on: [1, s] F' k is the inner product with the reconstruction."""
    model = KernelPCA(5, kernel="rbf", gamma=0.3).fit(X)
    S = model.transform(NOISY[:7])
    anchors = DistanceMDS().fit(model.expansion_, X).args[2]
    inner = with_mean(S) @ anchors.T
    np.testing.assert_allclose(inner, model.expansion_.weights(S) @ model.kernel_(X), atol=1e-8)


@needs_data
def test_usps():
    """Noisy digits: no failures, few iterations, and errors near those of the full study."""
    from papers_data import load_usps

    train = load_usps(dtype=np.float32).data[:1000]
    clean = load_usps(subset="test", dtype=np.float32).data[:200]
    noisy = clean + np.float32(0.5**0.5) * generator(11).standard_normal(clean.shape)
    noisy = noisy.astype(np.float32)
    gamma = 1 / (2 * 256 * train.var(axis=0).mean())
    model = KernelPCA(64, kernel="rbf", gamma=gamma).fit(train)
    plain = model.inverse_transform(model.transform(noisy))
    assert np.mean((plain - clean) ** 2) < 0.165
    assert np.mean((model.denoise(noisy) - clean) ** 2) < 0.135
    for sigma in (8.0, 11.0, 15.3):
        expansion = KernelPCA(64, kernel="rbf", gamma=0.5 / sigma**2).fit(train).expansion_
        found = FixedPoint().fit(expansion, train)(expansion.scores(noisy))
        assert found.converged.all() and np.isfinite(found.points).all()
        assert found.n_iter.mean() <= 12


def test_a_learned_inverse_that_was_asked_for_after_the_fit():
    X = generator(91).standard_normal((30, 3))
    model = KernelPCA(2, kernel="rbf").fit(X).set_params(fit_inverse_transform=True)
    with pytest.raises(NotFittedError, match="set after the fit"):
        model.inverse_transform(model.transform(X))
