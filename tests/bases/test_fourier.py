"""The Fourier grid: densities, certified bounds, transforms, the operator, fits against exact."""

from functools import partial
from importlib.util import find_spec
from itertools import pairwise, product

import numpy as np
import oracle
import pytest
from contracts import check_operator, generator
from matplotlib import pyplot as plt
from scipy import sparse
from scipy.integrate import quad
from scipy.special import j0
from sklearn.base import clone

import mercer
from mercer import (
    KernelPCA,
    KernelPCASearch,
    NoveltyDetector,
    SpectralClustering,
    StreamingKernelPCA,
)
from mercer.bases import BASES, FourierBasis, FourierGrid
from mercer.bases.fourier import SharedGrid, frequency_sums
from mercer.bases.fourier_grid import (
    choose_frequencies,
    density_at_zero,
    kernel_profile,
    predicted_size,
)
from mercer.compute import LocalEngine
from mercer.kernels import KERNELS, RBF, Laplacian, Linear, Matern, RationalQuadratic
from mercer.kernels.stationary import StationaryKernel
from mercer.operators import ToeplitzCovariance

pytest.importorskip("finufft", reason="the extra fourier is not installed")

ENGINE = LocalEngine(10**9, 2)
SMOOTH = [
    RBF(gamma=0.4),
    Matern(gamma=0.4, nu=0.5),
    Matern(gamma=0.4, nu=1.5),
    Matern(gamma=0.4, nu=2.5),
    RationalQuadratic(gamma=0.4, alpha=4.0),
    RationalQuadratic(gamma=0.4, alpha=1.7),
    Laplacian(gamma=0.7),
]


def cloud(n, d, key=0, at=100.0):
    """Rows far from the origin, where differences must come before rounding."""
    return generator(n, d, key).standard_normal((n, d)) * (1, 0.7, 0.5)[:d] + at


def profile(kernel, r):
    return float(kernel_profile(kernel, np.array([r]))[0])


WAVES = {
    1: lambda u: 2 * np.cos(u),
    2: lambda u: u * j0(u),
    3: lambda u: u**2 * np.sinc(u / np.pi) / np.pi,
}


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("kernel", SMOOTH, ids=repr)
def test_density_is_the_fourier_transform(kernel, d):
    """By quadrature of the side that falls fast; the other direction is the same formula."""
    at = float(generator(d).uniform(0.2, 1.0))
    if kernel.spectral_density(np.zeros(1), d) is None:
        assert isinstance(kernel, Laplacian) and d > 1
        return

    def density(f):
        return float(kernel.spectral_density(np.array(f), d))

    fast, slow = partial(profile, kernel), density
    if isinstance(kernel, RationalQuadratic):
        fast, slow = slow, fast
    periods = pairwise(np.arange(60) / at)
    # Radial waves of d columns: 2 cos(u), u J0(u), u^2 sinc(u) / pi with u = 2 pi f r.
    found = sum(
        quad(lambda r: fast(r) * WAVES[d](2 * np.pi * at * r), a, b, epsabs=1e-13)[0]
        for a, b in periods
    ) / at ** (d - 1)
    assert slow(at) == pytest.approx(found, rel=1e-7)


def test_other_kernels_have_no_density():
    known = {RBF, Matern, RationalQuadratic, Laplacian}
    for kind in set(KERNELS.values()) - known:
        assert density_at_zero(kind(), 1) is None
    assert np.isinf(RationalQuadratic(gamma=1.0, alpha=1.0).spectral_density(np.zeros(1), 2))


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("kernel", SMOOTH, ids=repr)
def test_error_of_the_series_is_within_its_bounds(kernel, d):
    """Drawn boxes, widths and tolerances; the corners of the box are the worst lags."""
    rng = generator(d, 7)
    for _ in range(4):
        gamma, tol = 10 ** rng.uniform(-1, 1), 10 ** rng.uniform(-9, -2)
        drawn = clone(kernel).set_params(gamma=gamma)
        extent = rng.uniform(0.0, 3.0, d) * rng.integers(0, 2, d)
        if predicted_size(drawn, extent, tol) > 30_000:
            continue
        (grid,) = choose_frequencies([drawn], np.stack([0 * extent, extent], axis=1), tol)
        lags = rng.uniform(-1, 1, (40, d))
        lags[: 3**d] = np.array(list(product((-1, 0, 1), repeat=d)))[:40]
        lags = np.longdouble(lags * extent)
        angles = (lags * (2 * np.longdouble(np.pi) * grid.spacing)) @ grid.index.T
        series = grid.weights[0] + 2 * np.cos(angles) @ grid.weights[1:].astype(np.longdouble)
        error = series - kernel_profile(drawn, np.sqrt((lags**2).sum(axis=1)).astype(float))
        assert grid.alias <= 1.01 * tol + 1e-14 and grid.cut <= 1.01 * tol + 1e-14
        assert np.all(error <= grid.alias + grid.cut) and np.all(error >= -grid.cut)


def test_grid_is_no_larger_than_it_must_be():
    """Twice the tolerance or a smaller box needs fewer frequencies, and the error is used up."""
    box = np.array([[0.0, 4.0], [0.0, 3.0]])
    (grid,) = choose_frequencies([RBF(gamma=1.0)], box, 1e-8)
    assert 1e-9 < grid.alias <= 1e-8 and 1e-10 < grid.cut <= 1e-8
    assert choose_frequencies([RBF(gamma=1.0)], box, 1e-6)[0].size < grid.size
    assert choose_frequencies([RBF(gamma=1.0)], box / 2, 1e-8)[0].size < grid.size
    predicted = predicted_size(RBF(gamma=1.0), box[:, 1], 1e-8)
    assert predicted == pytest.approx(grid.size, rel=0.1)


def basis_for(X, kernel, tol=1e-9, **params):
    return FourierGrid(tol=tol, **params).build(kernel, X, ENGINE, generator(0))


def exact_sums(basis, X):
    """The trigonometric moments in extended precision, one exponential at a time."""
    grid = basis.frequencies
    angles = (np.longdouble(X) - grid.center) * (2 * np.longdouble(np.pi) * grid.spacing)
    q = np.array(list(product(*(range(-2 * m, 2 * m + 1) for m in grid.reach))))
    return np.exp(-1j * (angles @ q.T)).sum(axis=0).reshape(basis.moment_modes)


@pytest.mark.parametrize("d", [1, 2])
def test_moments_are_within_their_error_and_add_up(d):
    X = cloud(700, d)
    basis = basis_for(X, RBF(gamma=0.5), 1e-7)
    whole, exact = basis.moments(X), exact_sums(basis, X)
    assert np.abs(whole.sums - exact).max() <= whole.error <= 700 * 1e-7
    parts = sum(
        (basis.moments(X[i : i + 100]) for i in range(100, 700, 100)), basis.moments(X[:100])
    )
    assert parts.count == whole.count == 700
    assert np.abs(parts.sums - exact).max() <= parts.error
    half = whole.scaled(0.5)
    np.testing.assert_array_equal(half.sums, whole.sums / 2)
    assert half.count == 350


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_operator(d, center):
    X = cloud(200, d)
    basis = basis_for(X, RBF(gamma=0.2), 1e-4 if d == 3 else 1e-6)
    Y = basis.features(X)
    Y = Y - Y.mean(axis=0) if center else Y
    A, sums = Y.T @ Y, basis.moments(X)
    operator = ToeplitzCovariance(basis.frequencies.index, basis.amplitudes, sums, center)
    check_operator(operator, A, atol=sums.error / 200)
    slack = 10 * sums.error
    index = np.array([0, 3, A.shape[0] - 1])
    np.testing.assert_allclose(operator.rows(index), A[index], rtol=0, atol=slack)
    np.testing.assert_allclose(operator.diagonal(), np.diag(A), rtol=0, atol=slack)
    assert np.sum(operator.diagonal()) == pytest.approx(np.trace(A), abs=len(A) * slack)


def exact_values(kernel, X, r):
    """Eigenvalues of the centered matrix of a kernel computed in extended precision."""
    D = np.longdouble(X)[:, None, :] - np.longdouble(X)[None, :, :]
    T = (D**2).sum(axis=2)
    if isinstance(kernel, RBF):
        K = np.exp(-kernel.gamma * T)
    elif isinstance(kernel, RationalQuadratic):
        K = (1 + kernel.gamma * T / kernel.alpha) ** -np.longdouble(kernel.alpha)
    else:
        s = np.sqrt(4 * np.longdouble(kernel.nu) * kernel.gamma * T)
        K = {0.5: 1, 1.5: 1 + s, 2.5: 1 + s + s**2 / 3}[kernel.nu] * np.exp(-s)
    K = K - K.mean(axis=0)
    K = K - K.mean(axis=1)[:, None]
    return np.linalg.eigvalsh(K.astype(float))[::-1][:r]


CASES = [
    (RBF(gamma=0.5), 1, 1e-9),
    (RBF(gamma=8.0), 2, 1e-9),
    (RBF(gamma=0.3), 3, 1e-6),
    (RBF(gamma=1e-3), 2, 1e-11),
    (Matern(gamma=0.5, nu=2.5), 1, 1e-9),
    (Matern(gamma=0.5, nu=1.5), 2, 1e-4),
    (Matern(gamma=0.5, nu=0.5), 1, 1e-3),
    (RationalQuadratic(gamma=0.5, alpha=3.0), 2, 1e-6),
]


@pytest.mark.parametrize(("kernel", "d", "tol"), CASES, ids=lambda v: repr(v))
def test_certificate_holds_the_exact_eigenvalues(kernel, d, tol):
    """A hard bound: of the kernel's series, of the transforms and of the solver together."""
    X = cloud(400, d)
    model = KernelPCA(6, kernel=kernel, basis=FourierGrid(tol=tol)).fit(X)
    exact, certificate = exact_values(kernel, X, 6), model.certificate_
    assert certificate.kind == "bound" and certificate.converged
    assert np.all(certificate.eigenvalue_lower <= exact)
    assert np.all(exact <= certificate.eigenvalue_upper)
    width = certificate.eigenvalue_upper - certificate.eigenvalue_lower
    # Above one that is not proven to be among the largest there may be another: its width is wider.
    assert certificate.n_proven >= 5
    assert np.all(width[: certificate.n_proven] <= 400 * 4 * tol + 2e-9 * exact[0])
    low, high = certificate.captured_variance
    assert low <= exact.sum() / oracle_total(kernel, X) <= high + 1e-12


def oracle_total(kernel, X):
    K = kernel(X - X.mean(axis=0))
    return float(len(X) - K.mean() * len(X))


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize(("d", "gamma"), [(1, 0.5), (2, 0.5), (2, 6.0), (3, 0.2)])
def test_fit_is_exact_kernel_pca(d, gamma, center):
    X, new = cloud(300, d), cloud(50, d, 1)
    new = np.clip(new, X.min(axis=0), X.max(axis=0))
    fourier = KernelPCA(5, kernel="rbf", gamma=gamma, basis="fourier", center=center).fit(X)
    exact = KernelPCA(5, kernel="rbf", gamma=gamma, center=center, eigen_solver="dense").fit(X)
    top = exact.eigenvalues_[0]
    np.testing.assert_allclose(fourier.eigenvalues_, exact.eigenvalues_, rtol=0, atol=1e-9 * top)
    np.testing.assert_allclose(
        fourier.explained_variance_ratio_, exact.explained_variance_ratio_, atol=1e-8
    )
    S, E = fourier.transform(new), exact.transform(new)
    S = S * np.sign((S * E).sum(axis=0))
    np.testing.assert_allclose(S, E, rtol=0, atol=1e-6)
    np.testing.assert_allclose(
        fourier.reconstruction_error(new), exact.reconstruction_error(new), rtol=0, atol=1e-6
    )
    np.testing.assert_allclose(fourier.fit_transform(X), fourier.transform(X), atol=1e-12)
    M = fourier.expansion_.metric
    np.testing.assert_allclose(M[1:, 1:], np.eye(5), atol=1e-12)


def test_rows_outside_of_the_box_are_an_error():
    X = cloud(100, 2)
    model = KernelPCA(2, kernel="rbf", basis="fourier").fit(X)
    far = X[:1].copy()
    far[0, 1] = X[:, 1].max() + 0.2 * np.ptp(X[:, 1])
    for call in (model.transform, model.reconstruction_error):
        with pytest.raises(ValueError, match=r"Column 1 has values from .* to .*made for"):
            call(far)
    near = X[:1].copy()
    near[0, 1] = X[:, 1].max() + 0.04 * np.ptp(X[:, 1])
    exact = KernelPCA(2, kernel="rbf").fit(X)
    np.testing.assert_allclose(
        np.abs(model.transform(near)), np.abs(exact.transform(near)), atol=1e-6
    )
    box = [(90, 110), (90, 110)]
    wide = KernelPCA(2, kernel="rbf", basis=FourierGrid(box=box)).fit(X)
    np.testing.assert_allclose(np.abs(wide.transform(far)), np.abs(exact.transform(far)), atol=1e-6)
    with pytest.raises(ValueError, match="Column 0 has values"):
        KernelPCA(2, kernel="rbf", basis=FourierGrid(box=[(99.9, 100.1), (90, 110)])).fit(X)


@pytest.mark.parametrize(
    ("kernel", "d", "basis", "words"),
    [
        (RBF(gamma=1.0), 4, FourierGrid(), "up to 3 columns, and there are 4"),
        (Linear(), 2, FourierGrid(), "Linear in 2 columns has no known spectral density"),
        (Laplacian(gamma=1.0), 2, FourierGrid(), "Laplacian in 2 columns"),
        (RationalQuadratic(gamma=1.0, alpha=1.0), 2, FourierGrid(), "falls too slowly"),
        (RBF(gamma=0.0), 2, FourierGrid(), "is constant"),
        (RBF(gamma=1e9), 2, FourierGrid(), "needs about .* frequencies .*Take basis='landmarks'"),
        (
            Matern(gamma=1.0, nu=0.5),
            1,
            FourierGrid(),
            r"Take FourierGrid\(tol=1e-\d\d\), or basis=",
        ),
        (RBF(gamma=1.0), 2, FourierGrid(tol=1e-20), "tol=1e-20 must be between"),
        (RBF(gamma=1.0), 2, FourierGrid(margin=-1), "'margin' parameter of FourierGrid must be"),
        (RBF(gamma=1.0), 2, FourierGrid(box=[(0, 1)]), "the least and the largest value of each"),
    ],
)
def test_what_it_cannot_do_is_said(kernel, d, basis, words):
    X = generator(d).standard_normal((50, d))
    with pytest.raises(ValueError, match=words):
        KernelPCA(2, kernel=kernel, basis=basis).fit(X)


def test_rows_anywhere():
    """With margin="all" every row is served: near ones by the series, far ones have no kernel."""
    X = cloud(150, 2)
    model = KernelPCA(4, kernel="rbf", gamma=0.5, basis=FourierGrid(margin="all")).fit(X)
    exact = KernelPCA(4, kernel="rbf", gamma=0.5).fit(X)
    new = generator(5).standard_normal((300, 2)) * 10 ** generator(6).uniform(-1, 3, (300, 1)) + 100
    S, E = model.transform(new), exact.transform(new)
    signs = np.sign((model.transform(X) * exact.transform(X)).sum(axis=0))
    np.testing.assert_allclose(S * signs, E, rtol=0, atol=1e-6)
    np.testing.assert_allclose(
        model.reconstruction_error(new), exact.reconstruction_error(new), rtol=0, atol=1e-6
    )
    with pytest.raises(ValueError, match="Column"):
        model.expansion_.basis.moments(new)


class TwoWidths(StationaryKernel):
    """A user's kernel: two Gaussians, k(x, x) = 3."""

    def __init__(self, gamma=1.0):
        self.gamma = gamma

    def finish(self, T):
        return 2 * np.exp(T) + np.exp(4 * T)

    def diag(self, X):
        return np.full(X.shape[0], 3.0)

    def spectral_density(self, f, d):
        wide, narrow = RBF(self.gamma), RBF(4 * self.gamma)
        return 2 * wide.spectral_density(f, d) + narrow.spectral_density(f, d)


def test_a_kernel_of_ones_own():
    X = cloud(150, 2)
    settings = {"kernel": TwoWidths(0.5), "n_components": 4}
    fourier = KernelPCA(basis="fourier", **settings).fit(X)
    exact = KernelPCA(basis="points", **settings).fit(X)
    np.testing.assert_allclose(fourier.eigenvalues_, exact.eigenvalues_, rtol=1e-7)
    np.testing.assert_allclose(
        fourier.reconstruction_error(X), exact.reconstruction_error(X), atol=1e-6
    )
    width = fourier.certificate_.eigenvalue_upper - fourier.certificate_.eigenvalue_lower
    assert np.all(width <= 150 * 3 * 4e-9)
    assert np.all(fourier.certificate_.eigenvalue_lower <= exact.eigenvalues_)
    assert np.all(exact.eigenvalues_ <= fourier.certificate_.eigenvalue_upper)


def test_rows_of_all_kinds(tmp_path):
    """Sparse rows, a memmap, a single row, equal rows."""
    X = cloud(80, 2, at=0.0)
    X[X < 0.3] = 0.0
    np.save(tmp_path / "X.npy", X)
    model = KernelPCA(3, kernel="rbf", gamma=0.5, basis="fourier").fit(X)
    for kind in (sparse.csr_matrix(X), np.load(tmp_path / "X.npy", mmap_mode="r")):
        again = clone(model).fit(kind)
        np.testing.assert_allclose(again.eigenvalues_, model.eigenvalues_, rtol=1e-9)
        np.testing.assert_allclose(again.transform(kind), model.transform(X), atol=1e-9)
    np.testing.assert_allclose(model.transform(X[:1]), model.transform(X)[:1], atol=1e-9)
    with pytest.warns(UserWarning, match="no variance"):
        flat = clone(model).fit(np.ones((20, 2)))
    assert np.all(flat.eigenvalues_ <= 1e-7)
    assert np.all(flat.certificate_.eigenvalue_upper <= 1e-6)


def test_rows_from_everywhere(tmp_path):
    """A file, a function of blocks, blocks that come once, and Dask: sums of blocks add up."""
    X = cloud(500, 2)
    np.save(tmp_path / "X.npy", X)
    wanted = KernelPCA(3, kernel="rbf", gamma=0.5, basis="fourier").fit(X)

    def blocks():
        return iter(np.split(X, [100, 101, 400]))

    cases = {"file": tmp_path / "X.npy", "blocks": blocks}
    if find_spec("dask") is not None:
        import dask.array as da

        cases["dask"] = da.from_array(X, chunks=(130, 2))
    for name, rows in cases.items():
        model = clone(wanted).fit(rows)
        np.testing.assert_allclose(model.eigenvalues_, wanted.eigenvalues_, rtol=1e-7, err_msg=name)
        np.testing.assert_allclose(
            model.expansion_.basis.frequencies.box, wanted.expansion_.basis.frequencies.box
        )
        S, E = np.asarray(model.transform(X)), wanted.transform(X)
        np.testing.assert_allclose(S * np.sign((S * E).sum(axis=0)), E, atol=1e-6, err_msg=name)
        assert np.asarray(model.transform(rows)).shape == (500, 3)
    with pytest.raises(ValueError, match=r"read only once.*FourierGrid\(box=\.\.\.\)"):
        clone(wanted).fit(blocks())
    box = wanted.expansion_.basis.frequencies.box
    once = clone(wanted).set_params(basis=FourierGrid(box=box)).fit(blocks())
    np.testing.assert_allclose(once.eigenvalues_, wanted.eigenvalues_, rtol=1e-7)


def test_columns_that_do_not_vary():
    X = cloud(60, 2)
    X[:, 1] = 3.0
    fourier = KernelPCA(3, kernel="rbf", gamma=0.5, basis="fourier").fit(X)
    exact = KernelPCA(3, kernel="rbf", gamma=0.5).fit(X)
    np.testing.assert_allclose(fourier.eigenvalues_, exact.eigenvalues_, rtol=1e-7)


def test_several_kernels_on_one_grid():
    """One pass over the rows serves all widths: t depends on gamma through the weights only."""
    X = cloud(300, 2)
    recipe, kernels = FourierGrid(tol=1e-8), [RBF(gamma=g) for g in (0.05, 0.5, 3.0)]
    shared = SharedGrid.of(recipe, kernels, X, ENGINE)
    sums = shared.sums
    for basis, kernel in zip(shared.bases, kernels, strict=True):
        part = sums.trimmed(basis.frequencies.reach)
        assert part.sums.shape == basis.moment_modes
        np.testing.assert_allclose(part.sums, basis.moments(X).sums, atol=2 * sums.error)
        Y = basis.features(X)
        assert np.abs(Y @ Y.T - oracle.kernel_matrix("rbf", X, gamma=kernel.gamma)).max() <= 2e-8


def test_blocks_stay_within_the_budget():
    """The same sums whatever the budget, and an error where not even the grid fits."""
    X = cloud(40_000, 2)
    small = FourierGrid(tol=1e-6).build(RBF(gamma=0.5), X, LocalEngine(3 * 10**6, 2), generator(0))
    large = FourierGrid(tol=1e-6).build(RBF(gamma=0.5), X, ENGINE, generator(0))
    assert small.transform_rows(40_000, 1000, 1) < 40_000
    np.testing.assert_allclose(small.moments(X).sums, large.moments(X).sums, atol=40_000 * 1e-6)
    W = generator(3).standard_normal((small.size, 5))
    np.testing.assert_allclose(small.project(X, W), large.project(X, W), atol=1e-5)
    with pytest.raises(ValueError, match="room for"):
        FourierGrid().build(RBF(gamma=5.0), X, LocalEngine(10**5, 1), generator(0))


def test_tensors_give_what_arrays_give():
    torch = pytest.importorskip("torch")
    from mercer.compute.device import TorchEngine

    X, engine = cloud(300, 2), TorchEngine(10**9, "cpu")
    here = basis_for(X, RBF(gamma=0.5))
    W = generator(2).standard_normal((here.size, 3))
    for rows in (torch.from_numpy(X), X):
        there = FourierGrid().build(RBF(gamma=0.5), engine.place(rows), engine, generator(0))
        np.testing.assert_array_equal(there.moments(rows).sums, here.moments(X).sums)
        P = there.project(rows, W)
        assert isinstance(P, torch.Tensor)
        np.testing.assert_array_equal(P.numpy(), here.project(X, W))


def test_single_precision_rows_keep_their_type():
    X = cloud(200, 2, at=0.0).astype(np.float32)
    model = KernelPCA(3, kernel="rbf", gamma=0.5, basis="fourier").fit(X)
    assert model.transform(X).dtype == np.float32
    exact = KernelPCA(3, kernel="rbf", gamma=0.5).fit(X.astype(float))
    np.testing.assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=1e-5)


def test_registry_has_it():
    assert BASES["fourier"] is FourierGrid


def test_stream_is_a_fit():
    """Batches of any size, one after the other or merged, and a weighted fit where rows fade."""
    X = cloud(500, 2)
    box = np.stack([X.min(axis=0) - 0.1, X.max(axis=0) + 0.1], axis=1)
    settings = {"kernel": "rbf", "gamma": 0.5, "basis": FourierGrid(box=box)}
    once = KernelPCA(4, **settings).fit(X)
    stream = StreamingKernelPCA(4, **settings)
    for part in np.split(X, [3, 200, 201]):
        stream.partial_fit(part)
    np.testing.assert_allclose(stream.eigenvalues_, once.eigenvalues_, rtol=1e-7)
    assert stream.n_samples_seen_ == 500 and stream.lost_share_ == 0
    assert stream.certificate_.kind == "bound"
    exact = exact_values(RBF(gamma=0.5), X, 4)
    assert np.all(stream.certificate_.eigenvalue_lower <= exact)
    assert np.all(exact <= stream.certificate_.eigenvalue_upper)
    S, E = stream.transform(X), once.transform(X)
    np.testing.assert_allclose(S * np.sign((S * E).sum(axis=0)), E, atol=1e-6)
    parts = [StreamingKernelPCA(4, **settings).fit(part) for part in (X[:100], X[100:])]
    np.testing.assert_allclose(parts[0].merge(parts[1]).eigenvalues_, once.eigenvalues_, rtol=1e-7)
    other = StreamingKernelPCA(4, kernel="rbf", gamma=0.5, basis="fourier").fit(X)
    with pytest.raises(ValueError, match="do not add up"):
        parts[0].merge(other)
    with pytest.raises(ValueError, match="Column 0 has values"):
        stream.partial_fit(X + 50)
    np.testing.assert_allclose(stream.eigenvalues_, once.eigenvalues_, rtol=1e-7)


def test_forgetting_weighs_rows_by_their_age(tmp_path):
    X = cloud(120, 1)
    stream = StreamingKernelPCA(3, kernel="rbf", gamma=0.5, basis="fourier", forgetting=0.97)
    stream.set_params(basis=FourierGrid(box=[(X.min(), X.max())]))
    for part in np.array_split(X, 5):
        stream.partial_fit(part)
    w = 0.97 ** np.arange(119, -1, -1)
    K = oracle.kernel_matrix("rbf", X, gamma=0.5)
    J = np.eye(120) - np.outer(np.ones(120), w / w.sum())
    K = np.sqrt(w)[:, None] * (J @ K @ J.T) * np.sqrt(w)
    np.testing.assert_allclose(stream.eigenvalues_, np.linalg.eigvalsh(K)[::-1][:3], rtol=1e-6)
    stream.save(tmp_path / "stream.mercer")
    again = mercer.load(tmp_path / "stream.mercer").partial_fit(X[:10])
    np.testing.assert_allclose(again.eigenvalues_, stream.partial_fit(X[:10]).eigenvalues_)


def test_spectral_clustering_is_that_of_all_points():
    """Three blobs: the eigenvalues of the normalized matrix, and the clusters, new rows as well."""
    rng = generator(11)
    labels = np.repeat([0, 1, 2], 70)
    X = rng.standard_normal((210, 2)) * 0.3 + np.array([(0, 0), (3, 0), (0, 3)])[labels]
    model = SpectralClustering(3, gamma=1.0, basis="fourier", random_state=0).fit(X)
    K = oracle.kernel_matrix("rbf", X, gamma=1.0)
    d = K.sum(axis=0)
    exact = np.linalg.eigvalsh(K / np.sqrt(np.outer(d, d)))[::-1][:3]
    np.testing.assert_allclose(model.eigenvalues_, exact, atol=1e-6)
    assert len(set(zip(labels, model.labels_, strict=True))) == 3
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_spectral_clustering_takes_the_grid_for_many_rows():
    """Beyond the rows that are clustered exactly: a grid for few columns, else landmarks."""
    labels = np.repeat([0, 1, 2], 7000)
    X = generator(12).standard_normal((21_000, 4)) * 0.3
    X[:, :2] += np.array([(0, 0), (3, 0), (0, 3)])[labels]
    model = SpectralClustering(3, gamma=1.0, memory="1.5GB", random_state=0)
    few = model.fit(X[:, :2])
    assert isinstance(few.map_.basis, FourierBasis) and few.plan_.workload.n == len(X)
    assert len(set(zip(labels, few.labels_, strict=True))) == 3
    assert (few.predict([[0.0, 0.0], [90.0, 90.0]]) == few.labels_[0])[0]
    many = model.fit(X)
    assert len(many.landmarks_) <= 1000
    assert len(set(zip(labels, many.labels_, strict=True))) == 3


def test_scores_of_small_eigenvalues_in_one_column():
    """Sixteen components of a wide kernel: the last has 1e-9 of the variance of the first."""
    X = generator(13).standard_normal((1500, 1))
    options = {"kernel": "rbf", "gamma": 0.4}
    grid = KernelPCA(16, basis="fourier", **options).fit(X)
    exact = KernelPCA(16, eigen_solver="dense", **options).fit(X)
    assert exact.eigenvalues_[-1] < 1e-8 * exact.eigenvalues_[0]
    S, T = exact.transform(X), grid.transform(X)
    T = T * np.sign((S * T).sum(axis=0))
    assert np.abs(S - T).max() < 1e-6


def test_novelty_detector_sees_rows_anywhere():
    X = ring()
    fourier = NoveltyDetector(10, gamma=2.0, basis="fourier", random_state=0).fit(X)
    points = NoveltyDetector(10, gamma=2.0, basis="points", random_state=0).fit(X)
    new = np.vstack([X[:50], generator(3).standard_normal((100, 2)) * 5, [[1e6, 0.0]]])
    np.testing.assert_allclose(fourier.score_samples(new), points.score_samples(new), atol=1e-6)
    assert fourier.predict([[0.0, 0.0], [1e6, 0.0]]).tolist() == [-1, -1]


def test_search_makes_one_pass_over_the_rows(monkeypatch):
    """Every width from the same trigonometric moments, with the errors that single fits give."""
    X, rows = ring(300), []

    def counted(angles, *settings):
        rows.append(len(angles))
        return frequency_sums(angles, *settings)

    monkeypatch.setattr("mercer.bases.fourier.frequency_sums", counted)
    search = {"noise": 0.1, "n_components": [4, 8], "widths": [0.5, 1.0, 2.0], "random_state": 0}
    fourier = KernelPCASearch(model=KernelPCA(basis="fourier"), **search).fit(X)
    assert len(rows) == 2, "the rows to learn from, and all rows for the best model"
    points = KernelPCASearch(model=KernelPCA(basis="points"), **search).fit(X)
    assert fourier.best_params_ == points.best_params_
    np.testing.assert_allclose(fourier.selection_.errors, points.selection_.errors, rtol=0.05)


def ring(n=600):
    angle = generator(n).uniform(0, 2 * np.pi, n)
    return np.column_stack([np.cos(angle), np.sin(angle)]) + 0.05 * generator(n, 1).standard_normal(
        (n, 2)
    )


def test_preimages_are_those_of_all_points():
    """The Gaussian's fixed point needs a function and its gradient, not points."""
    X = ring()
    fourier = KernelPCA(8, kernel="rbf", gamma=2.0, basis="fourier").fit(X)
    points = KernelPCA(8, kernel="rbf", gamma=2.0, basis="points").fit(X)
    found, wanted = (m.inverse_transform(m.transform(X[:50])) for m in (fourier, points))
    np.testing.assert_allclose(found, wanted, atol=5e-3)
    noisy = np.clip(X[:50] * 1.1, X.min(axis=0), X.max(axis=0))
    off = np.abs(np.linalg.norm(fourier.denoise(noisy, noise=np.inf), axis=1) - 1).mean()
    assert off < 0.7 * np.abs(np.linalg.norm(noisy, axis=1) - 1).mean()
    for other in ("ridge", "distance"):
        again = clone(fourier).set_params(preimage=other).fit(X)
        assert np.abs(again.inverse_transform(again.transform(X[:50])) - X[:50]).mean() < 0.1
    with pytest.raises(ValueError, match="preimage='ridge'"):
        KernelPCA(3, kernel=Matern(gamma=1.0, nu=2.5), basis="fourier", preimage="fixed-point").fit(
            X[:, :1]
        )


def test_gradients_are_those_of_the_functions():
    X = cloud(30, 2)
    basis = basis_for(X, RBF(gamma=0.3))
    W, step = generator(4).standard_normal((basis.size, 2)), 1e-5
    for a, G in enumerate(basis.slope_weights(W)):
        shift = step * np.eye(2)[a]
        middle = np.clip(X, X.min(axis=0) + step, X.max(axis=0) - step)
        slope = (basis.features(middle + shift) - basis.features(middle - shift)) @ W / (2 * step)
        np.testing.assert_allclose(basis.project(middle, G), slope, atol=1e-6 * np.abs(slope).max())


@pytest.mark.parametrize("margin", [0.1, "all"])
def test_saved_and_exported_models_give_the_same_scores(tmp_path, margin):
    X = cloud(200, 2)
    basis = FourierGrid(margin=margin)
    model = KernelPCA(3, kernel="rbf", gamma=0.5, basis=basis).fit(X)
    model.save(tmp_path / "model.mercer")
    again = mercer.load(tmp_path / "model.mercer")
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    np.testing.assert_allclose(
        again.inverse_transform(X[:4, [0, 0, 0]] * 0), model.inverse_transform(X[:4, [0, 0, 0]] * 0)
    )
    runtime = pytest.importorskip("onnxruntime")
    model.to_onnx(tmp_path / "model.onnx", dtype="float64")
    session = runtime.InferenceSession(tmp_path / "model.onnx")
    far = X[:1] + 1000
    S = session.run(None, {"X": np.vstack([X, far])})[0]
    np.testing.assert_allclose(S[:-1], model.transform(X), atol=1e-7)
    if margin == "all":
        np.testing.assert_allclose(S[-1:], model.transform(far), atol=1e-7)
    else:
        assert np.isnan(S[-1]).all(), "no answer rather than a wrong one"


def test_auto_takes_the_grid_where_it_saves_much():
    X = cloud(60_000, 2)
    model = KernelPCA(4, kernel="rbf", gamma=0.5).fit(X)
    assert model.plan_.method == 'basis="fourier"' and "times faster" in model.plan_.reason
    assert model.expansion_.basis.tol <= 1e-11
    few = KernelPCA(4, kernel="rbf", gamma=0.5).fit(X[:300])
    assert few.expansion_.basis.spans_data
    plan = mercer.plan(X, 4, kernel=RBF(gamma=0.5))
    assert plan.method == 'basis="fourier"'
    rough = mercer.plan(X, 4, kernel=Matern(gamma=0.5, nu=0.5))
    assert rough.method != 'basis="fourier"'
    note = next(e.note for e in rough.estimates if e.method == 'basis="fourier"')
    assert "frequencies" in note and "landmarks instead" in note
    assert "inf" not in repr(rough) and "nan" not in repr(rough)
    shape = mercer.plan((10**6, 2), 4)
    assert shape.method != 'basis="fourier"', "the range of the data is not known"
    assert "unit cube" in repr(shape)
    assert all("fourier" not in e.method for e in mercer.plan((10**4, 9), 4).estimates)


def test_command(tmp_path, capsys):
    from mercer.cli import main

    table = tmp_path / "rows.csv"
    np.savetxt(table, cloud(100, 2), delimiter=",", header="a,b", comments="")
    model = tmp_path / "m.mercer"
    assert main(["fit", str(table), "--method", "fourier", "-o", str(model), "--quiet"]) == 0
    assert mercer.load(model).expansion_.basis.noun == "Fourier features"


def test_pictures_and_report(tmp_path):
    """Contours reach beyond the data, and a report is written."""
    from mercer.report import write_report

    X = cloud(200, 2)
    model = KernelPCA(3, kernel="rbf", gamma=0.5, basis="fourier").fit(X)
    assert len(mercer.plot.contours(model, X)) == 3
    mercer.plot.spectrum(model)
    write_report(model, X, tmp_path / "report.html")
    assert "Fourier features that give the kernel exactly" in (tmp_path / "report.html").read_text()
    plt.close("all")


@pytest.mark.filterwarnings("ignore:The data have no variance")
@pytest.mark.parametrize("seed", range(40))
def test_no_interval_is_false_for_groups_at_the_ends_of_the_box(seed):
    """Rows that only the copies of the kernel bring near each other: aliases have both signs."""
    rng = generator(77, seed)
    d, n = int(rng.integers(1, 3)), int(rng.integers(2, 30))
    kernel = RBF(float(10 ** rng.uniform(-1, 1)))
    ends = 10 ** rng.uniform(-0.5, 0.5) * rng.integers(0, 2, (n, 1)) * np.ones(d)
    X = ends + 10 ** rng.uniform(-6, -1) * rng.random((n, d))
    X[0], X[1] = X.min(axis=0), X.max(axis=0)
    grid, center = FourierGrid(tol=10 ** rng.uniform(-8, -2)), bool(rng.integers(0, 2))
    r = min(n - 1, 4)
    model = KernelPCA(r, kernel=kernel, basis=grid, center=center).fit(X)
    K = kernel(X)
    K = oracle.center(K) if center else K
    true = np.linalg.eigvalsh(K)[::-1][: len(model.eigenvalues_)]
    found, tiny = model.certificate_, 1e-12 * n
    assert np.all(found.eigenvalue_lower <= true + tiny)
    assert np.all(true <= found.eigenvalue_upper + tiny)
