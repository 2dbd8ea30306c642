"""Kernels: the contract over the registry against the oracle, then gamma, flags and traps."""

from copy import copy

import numpy as np
import oracle
import pytest
from contracts import check_kernel, check_tile_bytes, generator
from scipy import sparse
from scipy.spatial.distance import cdist, pdist

import mercer
from mercer import KernelPCA
from mercer.bases.points import DRAFT_SPREAD
from mercer.kernels import (
    KERNELS,
    RBF,
    AdditiveChi2,
    Callable,
    Chi2,
    Cosine,
    DirectKernel,
    Gower,
    Hollow,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    RationalQuadratic,
    Sigmoid,
    SquaredDistance,
    Sum,
)
from mercer.kernels.base import ANY

# Kernel, name in the oracle. The oracle takes the kernel's own parameters.
CASES = [
    (Linear(), "linear"),
    (Polynomial(degree=3, gamma=0.4, coef0=0.7), "polynomial"),
    (Polynomial(degree=0, gamma=0.4, coef0=1), "polynomial"),
    (Polynomial(degree=1, gamma=0.4, coef0=-1), "polynomial"),
    (Polynomial(degree=6, gamma=0.2, coef0=0), "polynomial"),
    (Polynomial(degree=2.5, gamma=0.1, coef0=3), "polynomial"),
    (RBF(gamma=0.3), "rbf"),
    (RBF(gamma=0.0), "rbf"),
    (Sigmoid(gamma=0.2, coef0=-0.5), "sigmoid"),
    (Cosine(), "cosine"),
    (Laplacian(gamma=0.3), "laplacian"),
    (Matern(gamma=0.3, nu=0.5), "matern"),
    (Matern(gamma=0.3, nu=1.5), "matern"),
    (Matern(gamma=0.3, nu=2.5), "matern"),
    (RationalQuadratic(gamma=0.3, alpha=0.7), "rational_quadratic"),
    (Chi2(gamma=0.3), "chi2"),
    (AdditiveChi2(), "additive_chi2"),
    (Gower(ranges=0.6), "gower"),
    (Gower(ranges=0), "gower"),
]
# A kernel that joins the registry is tested as it is, with its formula if the oracle has one.
COVERED = {type(kernel) for kernel, _ in CASES} | {Precomputed}
CASES += [
    (cls(**({"gamma": 0.3} if "gamma" in cls._get_param_names() else {})), name)
    for name, cls in KERNELS.items()
    if cls not in COVERED
]
IDS = [f"{kernel}" for kernel, _ in CASES]
WIDTHS = [RBF, Matern, RationalQuadratic, Laplacian]
cases = pytest.mark.parametrize(("kernel", "name"), CASES, ids=IDS)


def formula(kernel, name):
    if name not in oracle.KERNELS:  # then tiles must be what single pairs are
        return lambda X, Z: np.array(
            [[kernel(x[None], z[None])[0, 0] for z in Z] for x in X], float
        )
    return lambda X, Z: oracle.kernel_matrix(name, X, Z, **kernel.get_params())


def data(kernel, n=40, m=17, d=5, dtype=np.float64, *, holes=False):
    rng = generator(n, m, d)
    X, Z = rng.random((n, d)) - 0.3, rng.random((m, d)) - 0.3
    if kernel is not None and kernel.domain.low == 0:
        X, Z = np.abs(X), np.abs(Z)
    if holes:
        X, Z = (np.where(rng.random(A.shape) < 0.6, 0, A) for A in (X, Z))
        X[3] = 0
    return X.astype(dtype), Z.astype(dtype)


def test_every_kernel_has_a_case():
    assert {type(kernel) for kernel, _ in CASES} == set(KERNELS.values()) - {Precomputed}
    assert set(KERNELS) - {"poly", "precomputed"} <= set(oracle.KERNELS), "ours have their formula"


@cases
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_formula(kernel, name, dtype):
    X, Z = data(kernel, dtype=dtype)
    # sqrt of a rounded zero distance is the root of eps: the price of distances by GEMM.
    rough = isinstance(kernel, Matern) and kernel.nu == 0.5
    rtol = 5 * np.sqrt(np.finfo(dtype).eps) if rough else None
    check_kernel(kernel, formula(kernel, name), X, Z, rtol)


@cases
@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array])
def test_sparse(kernel, name, kind):
    X, Z = data(kernel, holes=True)
    rough = isinstance(kernel, Matern)
    check_kernel(kernel, formula(kernel, name), kind(X), kind(Z), 1e-7 if rough else None)


@cases
def test_zero_rows_and_equal_rows(kernel, name):
    X, _ = data(kernel, holes=True)
    X[5] = X[6]
    K = kernel(X)
    np.testing.assert_allclose(K, formula(kernel, name)(X, X), atol=1e-7)
    assert np.isfinite(K).all()


@cases
def test_one_column_and_one_row(kernel, name):
    X, Z = data(kernel, n=3, m=1, d=1)
    np.testing.assert_allclose(kernel(X, Z), formula(kernel, name)(X, Z), atol=1e-7)


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        c
        for c in CASES
        if c[1]
        in {"linear", "polynomial", "rbf", "matern", "rational_quadratic", "sigmoid", "cosine"}
    ],
    ids=str,
)
def test_torch_namespace(kernel, name):
    torch = pytest.importorskip("torch")
    X, Z = data(kernel)
    K = kernel(torch.asarray(X), torch.asarray(Z))
    assert isinstance(K, torch.Tensor)
    np.testing.assert_allclose(K.numpy(), formula(kernel, name)(X, Z), atol=1e-7)
    diagonal = kernel.diag(torch.asarray(X))
    np.testing.assert_allclose(diagonal.numpy(), np.diag(formula(kernel, name)(X, X)), atol=1e-7)


@cases
def test_inputs_stay_as_they_are(kernel, name):
    X, Z = data(kernel)
    before = X.copy(), Z.copy()
    X.flags.writeable = Z.flags.writeable = False
    kernel(X, Z)
    kernel.diag(X)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(Z, before[1])


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.int8])
@cases
def test_integers_are_computed_in_float64(kernel, name, dtype):
    X = generator(3).integers(0, 100, (12, 4)).astype(dtype)
    if isinstance(kernel, Polynomial | Sigmoid):
        kernel = type(kernel)(**kernel.get_params() | {"gamma": 1e-4})
    K = formula(kernel, name)(X, X)
    tolerance = 1e-6 * np.abs(K).max()
    assert kernel(X).dtype == np.float64
    np.testing.assert_allclose(kernel(X), K, rtol=0, atol=tolerance)
    np.testing.assert_allclose(kernel.diag(X), np.diag(K), rtol=0, atol=tolerance)


def test_large_offset_in_float32_keeps_stationary_kernels_exact():
    """Rows 1e3 sigma from the origin: |x|^2 + |z|^2 - 2 x.z would lose all digits."""
    rng = generator(5)
    X = (rng.standard_normal((60, 4)) + 1e3).astype(np.float32)
    for kernel, name in [
        (RBF(gamma=0.2), "rbf"),
        (Matern(gamma=0.2, nu=2.5), "matern"),
        (RationalQuadratic(gamma=0.2), "rational_quadratic"),
    ]:
        np.testing.assert_allclose(kernel(X), formula(kernel, name)(X, X), atol=3e-6)
        assert kernel.spread(X) < 100


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("kernel", [kernel for kernel, _ in CASES], ids=repr)
def test_drafts_are_rounded_as_stated(kernel, seed):
    """Where rows may be taken in single precision, near copies in large units among them."""
    rng = generator(58, seed)
    X = np.abs(rng.standard_normal((20, rng.integers(1, 6)))) * 10.0 ** rng.uniform(-3, 8)
    X = np.vstack([X, X * (1 + 10.0 ** rng.uniform(-9, -6) * rng.standard_normal(X.shape))])
    kernel = kernel.resolve(X)
    if kernel.spread(X) > DRAFT_SPREAD:
        return
    K = kernel(X)
    size = max(float(np.abs(np.diag(K)).max()), kernel.entry_size(X))
    rounding = np.finfo(np.float32).eps * ((X.shape[1] + 2) * kernel.growth(X) + 8)
    assert np.abs(kernel(X, dtype=np.float32) - K).max() <= rounding * size


def test_spread_sees_what_cancels():
    X = generator(6).standard_normal((50, 3))
    assert RBF(gamma=2e3).spread(X) == pytest.approx(2 * RBF(gamma=1e3).spread(X))
    assert RBF(gamma=1e-5).spread(X) > 1e3 > 100 > RBF(gamma=0.3).spread(X)  # centering
    far = np.vstack([X, [[1e4, 0, 0]]])
    assert RBF(gamma=1.0).spread(far) > 1e7
    offset = sparse.csr_array(X + 100)  # sparse rows cannot be shifted
    assert RBF(gamma=1.0).spread(offset) > 1e4 > RBF(gamma=1.0).spread(X + 100)
    # Centering cancels the offset of a linear kernel; entries beyond float32 have no draft.
    assert Linear().spread(X + 1e3) > 1e4 > 50 > Linear().spread(X)
    assert Polynomial(degree=12, gamma=1.0).spread(1e4 * X) == np.inf
    assert Linear().spread(sparse.csr_array(X)) == pytest.approx(Linear().spread(X))


@pytest.mark.parametrize("kind", WIDTHS)
@pytest.mark.parametrize("word", ["median", "mean"])
def test_gamma_from_distances(kind, word):
    X = generator(7).standard_normal((80, 3))
    kernel = kind(gamma=word)
    metric = "cityblock" if kind is Laplacian else "euclidean"
    distance = {"median": np.median, "mean": np.mean}[word](pdist(X, metric))
    expected = 1 / distance if kind is Laplacian else 1 / (2 * distance**2)
    assert kernel.resolve(X).gamma == pytest.approx(expected)
    assert kernel.resolve(sparse.csr_array(X)).gamma == pytest.approx(expected)
    assert kernel.gamma == word, "the recipe stays"
    # A sample of a large set is near the whole.
    big = generator(8).standard_normal((3000, 3))
    near = kernel.resolve(big, np.random.default_rng(1)).gamma
    assert near == pytest.approx(kernel.resolve(big[:1000]).gamma, rel=0.15)


@pytest.mark.parametrize("kind", [*WIDTHS, Polynomial, Sigmoid])
def test_gamma_none_is_one_over_columns(kind):
    kernel = kind()
    assert kernel.resolve(np.ones((4, 8))).gamma == 1 / 8
    assert kernel.gamma is None


def test_equal_rows_have_no_scale():
    kernel = RBF(gamma="median").resolve(np.ones((5, 3)))
    assert np.isfinite(kernel.gamma) and kernel.gamma > 0


def test_chi2_gamma_none_is_one():
    assert Chi2().resolve(np.ones((4, 8))).gamma == 1


@pytest.mark.parametrize(
    "kernel",
    [Polynomial(gamma="median"), Sigmoid(gamma="mean"), Chi2(gamma="median"), RBF(gamma="mode")],
)
def test_words_a_kernel_does_not_know(kernel):
    with pytest.raises(ValueError, match=r"gamma='\w+'.*Give a number"):
        kernel.resolve(np.ones((4, 2)))


def test_bad_parameters_of_kernels():
    X = np.ones((4, 2))
    with pytest.raises(ValueError, match=r"nu=1.*Give 0.5, 1.5 or 2.5"):
        Matern(nu=1).check(X)
    with pytest.raises(ValueError, match=r"alpha=0.* positive"):
        RationalQuadratic(alpha=0).check(X)
    with pytest.raises(ValueError, match=r"non-negative.*-1.*Shift or clip"):
        Chi2().check(-X)
    with pytest.raises(ValueError, match=r"non-negative.*-1"):
        AdditiveChi2().check(sparse.csr_array(-X))
    AdditiveChi2().check(sparse.csr_array((3, 2)))


def test_definite_flags():
    flags = {type(kernel): kernel.definite for kernel, _ in CASES}
    assert not flags[Sigmoid] and not flags[AdditiveChi2] and flags[Chi2] and flags[RBF]
    assert Polynomial(degree=3, coef0=1).definite
    assert not Polynomial(degree=3, coef0=-1).definite
    assert not Polynomial(degree=2.5).definite
    assert not Precomputed.definite and not Callable(min).definite
    # and the flag is needed: these do have negative eigenvalues
    X = generator(9).standard_normal((30, 2))
    for kernel in (Sigmoid(gamma=1.0, coef0=-1.0), Polynomial(degree=3, gamma=1.0, coef0=-1.0)):
        assert np.linalg.eigvalsh(kernel(X))[0] < -1e-3


def test_additive_chi2_is_definite_once_centered():
    X = generator(10).random((30, 4))
    K = oracle.center(AdditiveChi2()(X))
    assert np.linalg.eigvalsh(K)[0] > -1e-12 * np.trace(K)


def test_shape_parameters_tend_to_the_gaussian():
    """One width for all: each kernel tends to exp(-gamma d^2) as its shape grows."""
    X, _ = data(None)
    gaussian = RBF(gamma=0.5)(X)
    gaps = [np.abs(Matern(gamma=0.5, nu=nu)(X) - gaussian).max() for nu in (0.5, 1.5, 2.5)]
    assert gaps[0] > gaps[1] > gaps[2]
    np.testing.assert_allclose(RationalQuadratic(gamma=0.5, alpha=1e6)(X), gaussian, atol=1e-5)


@pytest.mark.parametrize("shape", [np.asarray, sparse.csr_array])
def test_callable(shape):
    X, Z = data(None, n=9, m=4)

    def function(x, z, scale=1.0):
        x, z = (v.toarray().ravel() if sparse.issparse(v) else v for v in (x, z))
        return scale * np.minimum(x, z).sum()

    K = 2 * np.minimum(X[:, None], Z[None]).sum(axis=2)
    kernel = Callable(function, {"scale": 2.0})
    np.testing.assert_allclose(kernel(shape(X), shape(Z)), K)
    np.testing.assert_allclose(kernel.diag(shape(X)), 2 * X.sum(axis=1))


def test_precomputed_has_no_points():
    with pytest.raises(TypeError, match="no points"):
        Precomputed().pairs(np.eye(3))
    with pytest.raises(ValueError, match=r"k\(x, x\).*Use a kernel object"):
        Precomputed().diag(np.eye(3))


def hollow_formula(X, Z):
    same = X.shape == Z.shape and (X == Z).all()
    return oracle.kernel_matrix("rbf", X, Z, gamma=0.3) * (1 - np.eye(len(X), len(Z)) * same)


def sum_formula(X, Z):
    return oracle.rbf(X, Z, 0.3) + oracle.linear(X, Z) + oracle.sigmoid(X, Z, 0.2, 1.0)


COMPOSITES = [
    (Hollow(RBF(gamma=0.3)), hollow_formula),
    (Sum([RBF(gamma=0.3), Linear(), Sigmoid(gamma=0.2)]), sum_formula),
]


@pytest.mark.parametrize(("kernel", "formula"), COMPOSITES, ids=["hollow", "sum"])
def test_kernels_made_of_kernels(kernel, formula):
    check_kernel(kernel, formula)
    check_tile_bytes(kernel, generator(11).random((600, 20)))


def test_what_follows_from_parts():
    X = generator(14).random((30, 4))
    kernel = Sum([RBF("median"), Hollow(Chi2()), Gower()])
    assert kernel.needs_range and kernel.domain == Chi2.domain and not kernel.definite
    assert kernel.live_tiles == 3
    resolved = kernel.resolve(X)
    assert [part.get_params() for part in resolved.kernels[::2]] == [
        {"gamma": RBF("median").resolve(X).gamma},
        {"ranges": pytest.approx(np.ptp(X, axis=0)), "usual": None},
    ]
    assert resolved.kernels[1].kernel.gamma == 1.0 and kernel.kernels[0].gamma == "median"
    resolved.check(X)
    with pytest.raises(ValueError, match="Chi2 needs non-negative data"):
        resolved.check(-X)


@pytest.mark.parametrize("nested", [False, True])
def test_a_kernel_made_of_kernels_is_saved_and_recentered(tmp_path, nested):
    X = generator(15).standard_normal((60, 3)) + 1e5
    kernel = Sum([RBF("median"), Linear()])
    model = KernelPCA(3, kernel=Sum((kernel, Linear())) if nested else kernel).fit(X)
    part = model.expansion_.basis.kernel.kernels[-1]
    np.testing.assert_allclose(part.center, X.mean(axis=0))
    K = centered_sum(X, model.kernel_)
    values, _ = oracle.eigenpairs(K.astype(float), 3)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-9)
    model.save(tmp_path / "model.mercer")
    loaded = mercer.load(tmp_path / "model.mercer")
    assert repr(loaded.kernel_) == repr(model.kernel_) and repr(loaded.kernel) == repr(model.kernel)
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))


def centered_sum(X, kernel):
    """The centered matrix of a sum of Gaussian and linear kernels, in extended precision."""
    rows = X.astype(np.longdouble) - X.mean(axis=0)
    if isinstance(kernel, Sum):
        return sum(centered_sum(X, part) for part in kernel.kernels)
    return oracle.linear(rows, rows) if isinstance(kernel, Linear) else kernel(X)


class SureRBF(RBF):
    def growth(self, X):
        return 1.0


class SureSigmoid(Sigmoid):
    definite = True


class ThinRBF(RBF):
    def rank(self, d):
        return d


class SmallChi2(AdditiveChi2):
    def entry_size(self, X):
        return 0.0


class AnyChi2(Chi2):
    domain = ANY


class NearCosine(Cosine):
    metric = "euclidean"


class ColumnPolynomial(Polynomial):
    is_inner_product = True


class ShiftedPolynomial(Polynomial):
    def recentered(self, X):
        return Linear(X.mean(axis=0))


class LongRBF(RBF):
    def diag(self, X):
        return np.full(X.shape[0], 1.01)


LIARS = [
    (SureRBF(gamma=0.3), "rbf", "rounding is"),
    (SureSigmoid(gamma=1.0, coef0=-1.0), "sigmoid", "definite"),
    (ThinRBF(gamma=0.3), "rbf", "rank is higher"),
    (SmallChi2(), "additive_chi2", "entries are larger"),
    (AnyChi2(gamma=0.3), "chi2", "."),
    (NearCosine(), "cosine", "nowhere negative"),
    (ColumnPolynomial(gamma=0.3), "polynomial", "Not equal"),
    (ShiftedPolynomial(degree=2, gamma=0.3), "polynomial", "Not equal"),
    (LongRBF(gamma=0.3), "rbf", "Not equal"),
]


@pytest.mark.parametrize(("kernel", "name", "fault"), LIARS, ids=[f"{case[0]}" for case in LIARS])
def test_a_kernel_that_lies_fails_its_contract(kernel, name, fault):
    with np.errstate(all="ignore"), pytest.raises(AssertionError, match=fault):
        check_kernel(kernel, formula(kernel, name))


@cases
def test_tile_bytes_hold(kernel, name):
    X = generator(11).random((600, 20))
    check_tile_bytes(kernel, X)


class Hungry(DirectKernel):
    """A kernel that needs three tiles beside its own."""

    live_tiles = 4

    def fill(self, X, Z, out):
        arrays = [np.ones_like(out) for _ in range(3)]
        out[...] = sum(array[0, 0] for array in arrays) / 3

    def diag(self, X):
        return np.ones(X.shape[0])


class Greedy(Hungry):
    live_tiles = 1


def test_tile_bytes_of_a_kernel_that_needs_many_tiles():
    X = generator(11).random((600, 20))
    check_tile_bytes(Hungry(), X)
    with pytest.raises(AssertionError, match="bytes used"):
        check_tile_bytes(Greedy(), X)


@pytest.mark.parametrize(
    "kernel",
    [*(kernel for kernel, _ in CASES), SquaredDistance(cdist), *(k for k, _ in COMPOSITES)],
    ids=lambda kernel: type(kernel).__name__,
)
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_tile_bytes_count_live_tiles(kernel, kind):
    """Every kind of pairs counts each tile that its kernel says it needs."""
    X, side = kind(generator(11).random((90, 20))), 64

    def stated(kernel):
        return kernel.pairs(X, dtype=np.float64).tile_bytes(side)

    if isinstance(kernel, Hollow):
        heavier = Hollow(heavier_kernel(kernel.kernel))
    else:
        heavier = heavier_kernel(kernel)
    assert stated(heavier) - stated(kernel) == 2 * 8 * side**2


def heavier_kernel(kernel):
    """The same kernel, which says that it needs two tiles more."""
    heavier = copy(kernel)
    settings = {"live_tiles": kernel.live_tiles + 2}
    heavier.__class__ = type("Heavier", (type(kernel),), settings)
    return heavier


def test_tile_bytes_hold_for_many_columns():
    """With d far above the tile side, rows and not tiles are the cost."""
    X = generator(11).random((600, 2000))
    for kernel in (
        RBF(gamma=1e-3),
        Linear(),
        Polynomial(gamma=1e-3),
        Cosine(),
        Laplacian(gamma=1e-3),
    ):
        check_tile_bytes(kernel, X, side=64)


def test_tile_bytes_hold_for_sparse_rows():
    X = sparse.random_array((600, 50), density=0.3, format="csr", rng=generator(12))
    for kernel in (RBF(gamma=0.1), Linear(), Laplacian(gamma=0.1)):
        check_tile_bytes(kernel, X)


def test_kernel_objects_are_checked_by_the_estimator():
    X = generator(13).standard_normal((20, 3))
    with pytest.raises(ValueError, match=r"gamma=-1.* negative"):
        KernelPCA(2, kernel=RBF(gamma=-1.0)).fit(X)
    with pytest.raises(ValueError, match="nu=3"):
        KernelPCA(2, kernel=Matern(nu=3)).fit(X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("power", [-30, -12, 0, 12, 30])
def test_chi2_of_counts_in_any_unit(power, dtype):
    """The distance has the unit of the rows, and squares on the way do not leave the numbers."""
    X, unit = generator(31).random((9, 4)).astype(dtype), dtype(10.0**power)
    K = AdditiveChi2()(X * unit) / unit
    np.testing.assert_allclose(K, AdditiveChi2()(X), rtol=0, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [2, 189, 190, 300])
@pytest.mark.parametrize("cls", [RBF, Matern, RationalQuadratic])
def test_a_tile_of_rows_with_themselves_is_any_tile(cls, d, dtype):
    """Of many columns only half of the products are taken."""
    X = generator(d).standard_normal((90, d)).astype(dtype)
    pairs, whole = cls(gamma=1 / d).pairs(X, dtype=dtype, store=10**8), slice(0, 90)
    own = pairs.tile(whole, whole, np.empty((90, 90), dtype))
    other = cls(gamma=1 / d).pairs(X, X.copy(), dtype=dtype, store=10**8)
    np.testing.assert_allclose(
        own, other.tile(whole, whole, np.empty_like(own)), atol=300 * np.finfo(dtype).eps
    )


@pytest.mark.parametrize("value", [0.00020912345678, 1 / 3, 12345.678901, 2.0, 1e-17])
def test_numbers_are_short_for_people_and_whole_for_programs(value):
    kernel = RBF(gamma=value)
    assert str(kernel) == f"{kernel}" == f"RBF(gamma={value:.3g})"
    assert eval(repr(kernel), {"RBF": RBF}).gamma == value
