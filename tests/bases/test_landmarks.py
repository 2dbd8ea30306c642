"""Landmarks, random features and moments: kernel PCA in a small basis."""

import re
import warnings

import numpy as np
import pytest
from contracts import generator, peak_bytes
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.linalg import subspace_angles
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from mercer import KernelPCA
from mercer.bases import Landmarks, RandomFeatures
from mercer.bases.landmarks import pool_within
from mercer.bases.whitening import CholeskyWhitening, Whitening, choose_whitening
from mercer.compute import LocalEngine
from mercer.exceptions import MercerWarning
from mercer.fitting.moments import Moments, MomentsOf
from mercer.fitting.problems import ReducedProblem
from mercer.fitting.remainder import ALL_ROWS, SAMPLE_ROWS, block_rows
from mercer.kernels import RBF, Laplacian, Matern, Polynomial, RationalQuadratic, Sigmoid
from mercer.kernels.base import FactoredPairs
from mercer.selectors import SELECTORS, FullGreedy, KMeans, Uniform
from mercer.selectors.sampling import default_selector

GAMMA = 5e-4


@pytest.fixture(scope="module")
def digits():
    return load_digits().data[:900]


@pytest.fixture(scope="module")
def exact(digits):
    return KernelPCA(10, kernel="rbf", gamma=GAMMA).fit(digits)


def fit(X, basis, **options):
    return KernelPCA(10, kernel="rbf", gamma=GAMMA, basis=basis, random_state=0, **options).fit(X)


def test_all_rows_as_landmarks_is_exact(digits, exact):
    model = fit(digits, Landmarks(indices=np.arange(len(digits))))
    assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=1e-12)
    angle = subspace_angles(model.transform(digits), exact.transform(digits)).max()
    assert angle < 1e-6
    # What is left is the rounding of sums, over the small eigenvalues of so many landmarks.
    assert model.certificate_.captured_variance[1] - model.certificate_.captured_variance[0] < 1e-7


def test_all_rows_in_single_precision(digits, exact):
    model = fit(digits.astype(np.float32), Landmarks(indices=np.arange(len(digits))))
    assert model.eigenvalues_.dtype == np.float32
    assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=5e-6)


def test_duplicate_landmarks_do_not_fail(digits, exact):
    twice = np.tile(np.arange(len(digits)), 2)
    model = fit(digits, Landmarks(indices=twice))
    assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=1e-9)


@pytest.mark.parametrize("name", SELECTORS)
def test_certificate_holds_for_every_selector(name, digits, exact):
    model = fit(digits, Landmarks(size=30, selector=SELECTORS[name]()))
    certificate = model.certificate_
    assert certificate.kind == "bound"
    assert np.all(certificate.eigenvalue_lower <= exact.eigenvalues_ * (1 + 1e-9))
    assert np.all(certificate.eigenvalue_upper >= exact.eigenvalues_ * (1 - 1e-9))
    truth = exact.explained_variance_ratio_.sum()
    low, high = certificate.captured_variance
    assert low <= truth * (1 + 1e-9) and low <= high
    assert model.landmarks_.shape == (30, digits.shape[1])


def test_variance_along_the_components_is_what_is_claimed(digits):
    model = fit(digits, Landmarks(size=50))
    S = model.transform(digits)
    assert_allclose(S.mean(axis=0), 0, atol=1e-8)
    assert_allclose(S.T @ S, np.diag(model.eigenvalues_), atol=1e-7 * model.eigenvalues_[0])
    assert_allclose(model.fit_transform(digits), S, atol=1e-12)


def test_uncentered(digits):
    model = fit(digits, Landmarks(size=50), center=False)
    exact = KernelPCA(10, kernel="rbf", gamma=GAMMA, center=False).fit(digits)
    S = model.transform(digits)
    assert_allclose(S.T @ S, np.diag(model.eigenvalues_), atol=1e-7 * model.eigenvalues_[0])
    assert_allclose(model.eigenvalues_[0], exact.eigenvalues_[0], rtol=0.01)


def test_linear_kernel_with_enough_landmarks_is_pca():
    X = np.random.default_rng(0).standard_normal((500, 6)) * np.arange(1, 7) + 5
    model = KernelPCA(5, basis=Landmarks(size=40, selector=Uniform()), random_state=0).fit(X)
    pca = PCA(5, svd_solver="full").fit(X)
    assert_allclose(model.explained_variance_, pca.explained_variance_, rtol=1e-9)
    assert_allclose(model.explained_variance_ratio_, pca.explained_variance_ratio_, rtol=1e-9)


def test_reconstruction_error_falls_with_more_landmarks(digits):
    few, many = (fit(digits, Landmarks(size=size)).score(digits) for size in (15, 200))
    exact = fit(digits, "points").score(digits)
    assert few < many <= exact + 1e-12


def test_error_asked_for_is_certified(digits):
    model = fit(digits, Landmarks(error=0.05))
    assert model.expansion_.basis.lost_share(digits) <= 0.05
    assert len(model.landmarks_) < len(digits)


def test_points_given(digits):
    Z = KMeans().select(RBF(GAMMA), digits, 40, np.random.default_rng(0))
    model = fit(digits, Landmarks(points=Z))
    assert_allclose(model.landmarks_, Z)


def test_share_as_size(digits):
    assert len(fit(digits, Landmarks(size=0.1)).landmarks_) == 90


@pytest.mark.parametrize(
    ("basis", "message"),
    [
        (Landmarks(size=0), "'size' parameter of Landmarks must be an int"),
        (Landmarks(error=2), "must be a share in"),
        (Landmarks(size=5, error=0.1), "give one of"),
        (Landmarks(points=np.zeros((4, 3))), r"Give an array of shape \(m, 64\)"),
        (RandomFeatures(size=1), "whole number above 1"),
        (RandomFeatures(kind="magic"), "must be a str among"),
    ],
)
def test_bad_bases(digits, basis, message):
    with pytest.raises(ValueError, match=message):
        fit(digits, basis)


@pytest.mark.parametrize("size", [-3, 2.5, 0.0])
def test_size_that_is_no_number_of_landmarks(digits, size):
    with pytest.raises(ValueError, match=f"'size' parameter of Landmarks .* Got {size} instead"):
        fit(digits, Landmarks(size=size))


@pytest.mark.parametrize("size", [901, 10_000])
def test_size_beyond_the_rows_takes_all_of_them_and_says_so(size, digits):
    """As n_components does."""
    with pytest.warns(
        MercerWarning, match=r"landmarks were asked for, and there are 900 rows"
    ) as told:
        model = fit(digits, Landmarks(size=size, selector=Uniform()))
    assert len(model.landmarks_) == 900 and told[0].filename == __file__
    exact = fit(digits, "points")
    np.testing.assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=1e-6)


def test_size_beyond_the_rank_gives_fewer_landmarks_and_says_so():
    X = np.random.default_rng(0).standard_normal((200, 3))
    model = KernelPCA(3, basis=Landmarks(size=50), random_state=0)
    with pytest.warns(UserWarning, match="Only 3 of 50 landmarks were chosen"):
        model.fit(X)
    pca = PCA(3, svd_solver="full").fit(X)
    # Uncentered rows of rank 3 are spanned by three of them.
    assert len(model.landmarks_) == 3
    assert_allclose(model.explained_variance_, pca.explained_variance_, rtol=1e-9)


def test_size_beyond_the_distinct_rows_says_so():
    X = np.repeat(np.random.default_rng(0).standard_normal((6, 3)), 20, axis=0)
    model = KernelPCA(2, kernel="rbf", basis=Landmarks(size=30, selector=Uniform()))
    with pytest.warns(UserWarning, match="Only 6 of 30 landmarks were chosen"):
        model.fit(X)
    assert len(model.landmarks_) == 6


@pytest.mark.parametrize("shape", [(4, 3), (0, 64), (64,)])
def test_landmarks_of_another_width(digits, shape):
    text = str(shape).replace("(", r"\(").replace(")", r"\)")
    with pytest.raises(ValueError, match=f"points have shape {text} and the data have 64 columns"):
        fit(digits, Landmarks(points=np.zeros(shape)))


def test_indices_beyond_the_rows(digits):
    with pytest.raises(ValueError, match="indices must be whole numbers from 0 to 899"):
        fit(digits, Landmarks(indices=[3, 900]))


def test_given_points_must_be_numbers(digits):
    Z = digits[:5].copy()
    Z[2, 1] = np.nan
    with pytest.raises(ValueError, match="points contain NaN or infinity"):
        fit(digits, Landmarks(points=Z))


@pytest.mark.parametrize("name", SELECTORS)
def test_no_selector_works_on_a_precomputed_kernel(name):
    basis = Landmarks(size=2, selector=SELECTORS[name]())
    with pytest.raises(ValueError, match="needs points"):
        KernelPCA(2, kernel="precomputed", basis=basis).fit(np.eye(5))


def test_precomputed_kernel_has_no_landmarks(digits):
    with pytest.raises(ValueError, match="needs points"):
        KernelPCA(2, kernel="precomputed", basis="landmarks").fit(np.eye(5))


def test_short_rank_gives_fewer_components_and_says_so():
    X = np.random.default_rng(0).standard_normal((200, 3))
    with pytest.warns(UserWarning, match="rank of the basis"):
        model = KernelPCA(10, basis=Landmarks(size=20, selector=Uniform())).fit(X)
    assert model.eigenvalues_.shape == (3,)


def test_all_rows_equal():
    X = np.ones((50, 3))
    with pytest.warns(UserWarning) as caught:
        model = KernelPCA(1, kernel="rbf", basis=Landmarks(size=10)).fit(X)
    texts = [str(w.message) for w in caught]
    assert any("Only 1 of 10 landmarks" in text for text in texts)
    assert any("no variance" in text for text in texts)
    assert model.eigenvalues_[0] == 0


@pytest.mark.filterwarnings("ignore:Only 1 of", "ignore:.*no variance")
@pytest.mark.parametrize("kernel", ["linear", "cosine", "poly", "laplacian"])
@pytest.mark.parametrize("seed", range(4))
def test_equal_rows_have_no_variance_wherever_they_are(seed, kernel):
    """As with all points; less its mean, a linear kernel would see nothing of them."""
    rng = generator(81, seed)
    X = np.round(rng.uniform(1, 9, 3) * 10 ** rng.uniform(0, 8)) * np.ones((rng.integers(2, 60), 1))
    for basis in ("points", Landmarks(3)):
        model = KernelPCA(1, kernel=kernel, basis=basis, random_state=0).fit(X)
        assert model.eigenvalues_[0] == 0


def test_values_too_large_for_a_selector_are_told_of():
    X = 1e45 * generator(82).uniform(1, 2, (20, 2))
    model = KernelPCA(1, kernel="poly", basis=Landmarks(5, SELECTORS["GroupLasso"]()))
    with pytest.raises(ValueError, match="not finite"):
        model.fit(X)


def as_memmap(X, folder):
    path = folder / "X.npy"
    np.save(path, X)
    return np.load(path, mmap_mode="r")


def as_torch(X, folder):
    return pytest.importorskip("torch").from_numpy(X)


SOURCES = {
    "csr": lambda X, folder: sparse.csr_matrix(X),
    "memmap": as_memmap,
    "torch": as_torch,
}


@pytest.mark.parametrize("selector", [None, Uniform(), KMeans(snap=True)], ids=repr)
@pytest.mark.parametrize("source", SOURCES)
def test_other_sources_give_the_same_model(source, selector, digits, tmp_path):
    X = SOURCES[source](digits, tmp_path)
    basis = Landmarks(size=40, selector=selector)
    expected, model = fit(digits, basis), fit(X, basis)
    # Sparse rows are not shifted by their mean, so that their last digits differ.
    assert_allclose(np.asarray(model.eigenvalues_), expected.eigenvalues_, rtol=1e-9)
    S = model.transform(X)
    assert isinstance(S, np.ndarray if source != "torch" else type(X))
    assert_allclose(np.asarray(S), expected.transform(digits), atol=1e-8)
    Z = model.landmarks_.toarray() if source == "csr" else model.landmarks_
    assert_allclose(Z, expected.landmarks_)


def test_sparse_landmarks_given(digits):
    X, Z = sparse.csr_matrix(digits), digits[:30]
    expected = fit(digits, Landmarks(points=Z))
    for points in (Z, sparse.csr_matrix(Z)):
        model = fit(X, Landmarks(points=points))
        assert_allclose(model.eigenvalues_, expected.eigenvalues_, rtol=1e-9)
        assert_allclose(model.transform(X), expected.transform(digits), atol=1e-8)
    indexed = fit(X, Landmarks(indices=np.arange(30)))
    assert_allclose(indexed.eigenvalues_, expected.eigenvalues_, rtol=1e-9)


@pytest.mark.parametrize("selector", [None, KMeans()], ids=repr)
def test_single_precision_stays_single(selector, digits):
    basis = Landmarks(size=40, selector=selector)
    double, single = fit(digits, basis), fit(digits.astype(np.float32), basis)
    S = single.transform(digits.astype(np.float32))
    assert S.dtype == single.eigenvalues_.dtype == np.float32
    assert single.landmarks_.dtype == np.float32
    if selector is None:
        assert_allclose(single.landmarks_, double.landmarks_)
        assert_allclose(single.eigenvalues_, double.eigenvalues_, rtol=2e-6)
        # Signs and all, since the largest loading is positive in both.
        assert_allclose(S, double.transform(digits), atol=1e-4)
    low, high = single.certificate_.captured_variance
    assert low <= double.certificate_.captured_variance[0] + 1e-5 <= high + 2e-5


def moments_of(basis, whitening, X):
    function = MomentsOf(basis, whitening)
    return function.finished(function(X, 0))


def posed(basis, X):
    whitening = choose_whitening(basis, X, len(X))
    return ReducedProblem(basis, whitening, moments_of(basis, whitening, X))


def test_whitening_after_the_sum_is_whitening_before_it(digits):
    kernel, engine = RBF(GAMMA), LocalEngine(10**9, threads=2)
    Z = digits[FullGreedy().select(kernel, digits, 60, None)]
    basis = Landmarks(points=Z).build(kernel, digits, engine, None)
    way = Whitening(basis.size, basis.whitener(np.float64))
    assert way.late is not None
    late = moments_of(basis, way, digits)
    Y = kernel(digits, Z) @ way.W
    assert_allclose(late.mean, Y.mean(axis=0), atol=1e-10)
    scatter = (Y - Y.mean(axis=0)).T @ (Y - Y.mean(axis=0))
    assert_allclose(late.scatter, scatter, atol=1e-9 * np.trace(scatter))
    assert_allclose(late.lost_energy, len(Y) - np.square(Y).sum(), rtol=1e-9)


def test_certificate_knows_the_rounding_of_late_whitening(digits):
    basis = Landmarks(size=60).build(RBF(GAMMA), digits, LocalEngine(10**9), generator(0))
    problem = posed(basis, digits)
    assert problem.slack >= np.finfo(float).eps * np.linalg.cond(problem.whitening.W) ** 2
    single = posed(basis, digits.astype(np.float32))
    assert problem.rounding < 1e-7 < single.rounding


@pytest.fixture
def values_asked_for(monkeypatch):
    """Kernel values that were computed, as a list of numbers."""
    asked = []

    def counted(self, *where, method=FactoredPairs.tile):
        asked.append(where[-1].size)
        return method(self, *where)

    monkeypatch.setattr(FactoredPairs, "tile", counted)
    return asked


@pytest.mark.parametrize("product", [True, False])
@pytest.mark.parametrize("n", [1500, 2000, 5000])
def test_what_a_fit_evaluates(n, product, values_asked_for, monkeypatch):
    """Rows with landmarks, judges and signs, and all pairs once where they are multiplied."""
    if not product:
        monkeypatch.setattr("mercer.fitting.remainder.LEAST_WORK", 0)
    X, m = generator(n).standard_normal((n, 6)), 100
    KernelPCA(10, kernel="rbf", gamma=0.2, basis=Landmarks(m), random_state=0).fit(X)
    pool = default_selector(n, m).pool
    judges = n if n <= ALL_ROWS else SAMPLE_ROWS * (not product)
    again = judges + (n if n <= ALL_ROWS else m) + n * product
    least = pool**2 + m**2 + (n + again) * m + product * n * (n + 1) // 2
    most = least + judges * block_rows(m) + product * 512 * n  # tiles on the diagonal are whole
    most += 250**2  # of the sample that the precision is chosen by
    assert least <= sum(values_asked_for) <= most


def test_pairs_that_can_tell_nothing(monkeypatch):
    """Few rows that leave much make a sample say no more than the trace."""
    monkeypatch.setattr("mercer.fitting.remainder.LEAST_WORK", 0)
    X = generator(3).standard_normal((3000, 2))
    X[::100] *= 100
    basis = Landmarks(points=X[1:21])
    model = KernelPCA(3, kernel="rbf", gamma=0.1, basis=basis, random_state=0).fit(X)
    assert_allclose(model.certificate_.likely_upper, model.certificate_.eigenvalue_upper)


def test_landmarks_far_from_dependent_need_no_eigenvectors(digits):
    """Eigenvalues and intervals by the Cholesky factor are those by eigenvectors."""
    Z = digits[FullGreedy().select(RBF(GAMMA), digits, 60, None)]
    quick = fit(digits, Landmarks(points=Z))
    problem = posed(Landmarks(points=Z).build(RBF(GAMMA), digits, LocalEngine(10**9), None), digits)
    assert isinstance(problem.whitening, CholeskyWhitening)
    assert problem.whitening.conditions[0] >= np.linalg.cond(RBF(GAMMA)(Z))
    W = problem.whitening.weights
    assert_allclose(W.T @ RBF(GAMMA)(Z) @ W, np.eye(60), atol=1e-9)
    basis = problem.basis
    way = Whitening(basis.size, basis.whitener(np.float64))
    by_vectors = ReducedProblem(basis, way, moments_of(basis, way, digits))
    values = [np.linalg.eigvalsh(p.operator.to_dense()) for p in (problem, by_vectors)]
    assert_allclose(*values, rtol=1e-8, atol=1e-10 * values[0][-1])
    assert_allclose(quick.eigenvalues_, values[1][::-1][: len(quick.eigenvalues_)], rtol=1e-10)


def test_ill_conditioned_landmarks_in_single_precision(digits):
    # Pairs of nearly equal rows: a condition of 1e13, of which single precision sees none.
    Z = np.vstack([digits[:40], digits[:40] + 1e-6])
    exact = fit(digits, Landmarks(points=digits[:40]))
    model = fit(digits.astype(np.float32), Landmarks(points=Z))
    assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=1e-3)


FEATURE_KERNELS = [
    RBF(0.1),
    Laplacian(0.05),
    Matern(0.1, 0.5),
    Matern(0.1, 1.5),
    Matern(0.1, 2.5),
    RationalQuadratic(0.1, 0.7),
    Polynomial(3, 0.02, 0.5),
]


@pytest.mark.parametrize("kind", ["plain", "orthogonal", "qmc"])
@pytest.mark.parametrize("kernel", FEATURE_KERNELS, ids=repr)
def test_random_features_approximate_the_kernel(kernel, kind):
    rng = np.random.default_rng(1)
    X = rng.random((60, 12)) * 2
    basis = RandomFeatures(20_000, kind).build(kernel, X, LocalEngine(10**9), rng)
    Y = basis.features(X)
    K = kernel(X)
    # Entries are means of 10,000 terms of modulus up to one: five standard errors.
    assert_allclose(Y @ Y.T, K, atol=0.05 * np.max(np.abs(K)))


def test_random_features_are_marked_as_estimates(digits, exact):
    model = fit(digits, RandomFeatures(2000))
    assert model.certificate_.kind == "estimate"
    assert_allclose(model.eigenvalues_[:3], exact.eigenvalues_[:3], rtol=0.05)
    S = model.transform(digits)
    assert_allclose(S.T @ S, np.diag(model.eigenvalues_), atol=1e-7 * model.eigenvalues_[0])


def test_random_features_of_other_kernels_are_refused(digits):
    with pytest.raises(ValueError, match="No random features are known for Sigmoid"):
        KernelPCA(2, kernel=Sigmoid(), basis="features").fit(digits)


def test_moments_merge():
    rng = np.random.default_rng(0)
    Y = rng.standard_normal((100, 4)) + 3
    whole = Moments.of_blocks([Y.copy()], 7.0)
    parts = Moments.of_blocks([Y[:13].copy()], 3.0) + Moments.of_blocks([Y[13:].copy()], 4.0)
    assert_allclose(parts.mean, Y.mean(axis=0))
    assert_allclose(parts.scatter, whole.scatter, rtol=1e-12)
    assert_allclose(parts.about_zero(), Y.T @ Y, rtol=1e-12)
    assert parts.count == 100 and parts.energy == 7.0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_moments_of_blocks(dtype):
    rng = np.random.default_rng(0)
    Y = (rng.standard_normal((100, 4)) + 3).astype(dtype)
    whole = Moments.of_blocks((Y[i : i + 30].copy() for i in range(0, 100, 30)), 7.0)
    centered = Y.astype(float) - Y.mean(axis=0, dtype=float)
    tolerance = 1e-12 if dtype == np.float64 else 1e-5
    assert_allclose(whole.mean, Y.mean(axis=0, dtype=float), rtol=tolerance)
    assert_allclose(whole.scatter, centered.T @ centered, rtol=tolerance, atol=100 * tolerance)
    assert whole.count == 100 and whole.energy == 7.0


def test_moments_of_mapped_rows():
    rng = np.random.default_rng(0)
    Y, W = rng.standard_normal((50, 4)) + 2, rng.standard_normal((4, 3))
    mapped, expected = Moments.of_blocks([Y.copy()]).mapped(W), Moments.of_blocks([Y @ W])
    assert_allclose(mapped.mean, expected.mean)
    assert_allclose(mapped.scatter, expected.scatter, atol=1e-10)


def test_streaming_stays_in_the_budget():
    import tracemalloc

    X = np.random.default_rng(0).standard_normal((60_000, 8))
    model = KernelPCA(
        4,
        kernel="rbf",
        basis=Landmarks(size=50, selector=Uniform()),
        memory="8MB",
        copy_X=False,
        random_state=0,
    )
    model.fit(X[:2000])
    tracemalloc.start()
    model.fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # 60,000 x 50 doubles would be 24 MB.
    assert peak < 12e6


def test_indefinite_kernels_are_told_of():
    X = generator(5).standard_normal((200, 5))
    model = KernelPCA(3, kernel="sigmoid", gamma=0.2, basis=Landmarks(50, selector=Uniform()))
    with pytest.warns(UserWarning, match=r"Sigmoid.*indefinite.*basis='points'"):
        model.fit(X)
    assert model.certificate_.kind == "estimate"
    assert (model.explained_variance_ratio_ <= 1).all()


@pytest.mark.parametrize("basis", ["landmarks", "features"])
def test_the_memory_that_is_asked_for_is_enough(basis):
    X = generator(6).standard_normal((200, 5))
    model = KernelPCA(2, kernel="rbf", basis=basis, memory=1, random_state=0)
    with pytest.raises(ValueError, match=r"Give at least .*, for example memory=\d+\.") as caught:
        model.fit(X)
    least = int(str(caught.value).rsplit("=", 1)[1].rstrip("."))
    model.set_params(memory=least).fit(X)
    with pytest.raises(ValueError, match="Give at least"):
        model.set_params(memory=least - 1).fit(X)


WITH_MATRIX = sorted(name for name, kind in SELECTORS.items() if kind.pair_bytes)


def test_which_selectors_hold_a_matrix():
    known = ["ComponentLasso", "FullGreedy", "GroupLasso", "SparseBayes", "SubspaceGreedy"]
    assert known == WITH_MATRIX


@pytest.mark.parametrize("name", WITH_MATRIX)
def test_selectors_keep_to_the_budget(name):
    """Those that hold an n x n matrix choose among as many rows as the budget holds, and say so."""
    X = np.random.default_rng(2).standard_normal((1200, 4))
    memory, selector = 4_000_000, SELECTORS[name]()
    model = KernelPCA(
        3, kernel="rbf", gamma=0.2, basis=Landmarks(20, selector), memory=memory, random_state=0
    )
    model.fit(X[:100])  # what is compiled and imported once is not counted
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        used = peak_bytes(lambda: model.fit(X))
    assert used < 1.3 * memory + 500_000, f"{used / 1e6:.1f} MB"
    assert any("drawn at random" in str(one.message) for one in told)
    with pytest.raises(ValueError, match=f"{name} can choose among 19 rows.*too few for 20"):
        pool_within(selector, X, 20, generator(1), 4 * selector.work_bytes(20, 20) // 3 - 4)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SELECTORS)
def test_selectors_of_every_kernel(name):
    """Points are where the kernel is defined; some selectors refuse indefinite kernels."""
    X = np.abs(generator(77).standard_normal((40, 3)))
    for draw, kernel in enumerate(["chi2", "additive_chi2", "sigmoid", "gower", "cosine", "poly"]):
        shift = generator(78, draw).uniform(-2, 2)
        model = KernelPCA(
            2, kernel=kernel, coef0=shift, basis=Landmarks(9, SELECTORS[name]()), random_state=draw
        )
        try:
            model.fit(X)
        except ValueError as error:
            assert not model._make_kernel(X).definite
            assert re.search("positive semidefinite|No row can be a landmark|negative", str(error))
            continue
        model.kernel_.check(model.landmarks_)
        assert np.isfinite(model.transform(X)).all()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SELECTORS)
def test_selectors_of_rows_that_are_mostly_zero(name):
    """Of these a dot product sees nothing, and a sample may hold no others."""
    for draw in range(8):
        X = np.zeros((24, 2))
        X[draw] = generator(81, draw).standard_normal(2)
        basis = Landmarks(1 + draw % 2, SELECTORS[name]())
        options = {"kernel": "poly", "coef0": 0, "degree": 2, "random_state": draw}
        try:
            assert KernelPCA(1, basis=basis, **options).fit(X).eigenvalues_[0] >= 0
        except ValueError as error:
            assert re.search("No row can be a landmark|positive semidefinite", str(error)), error


def test_points_where_the_kernel_is_not_defined():
    X = np.abs(generator(79).standard_normal((20, 3)))
    with pytest.raises(ValueError, match="non-negative"):
        KernelPCA(2, kernel="chi2", basis=Landmarks(points=-X[:5])).fit(X)


@pytest.mark.parametrize("source", ["array", "file"])
def test_one_landmark_far_from_the_origin(source, tmp_path):
    """It is its own mean: a kernel about that would see nothing of it."""
    X = generator(80).standard_normal((20, 3)) + 5
    np.save(tmp_path / "x.npy", X)
    model = KernelPCA(1, basis=Landmarks(points=X[:1]))
    assert model.fit(X if source == "array" else tmp_path / "x.npy").eigenvalues_[0] > 0
