"""The kinds of problem on which certificates were once false, each drawn anew."""

import warnings

import numpy as np
import pytest
from contracts import generator
from fuzz import Problem, truth, violations
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from mercer import HebbianKernelPCA, KernelPCA, StreamingKernelPCA, load
from mercer.bases import Landmarks, RandomFeatures
from mercer.hebbian import make_gain
from mercer.kernels import Linear, Polynomial
from mercer.selectors import FullGreedy, Uniform
from mercer.solvers import BlockKrylov, GramPower

DRAWS = 6


def rows(key, n, d):
    return generator(14, key, n, d).standard_normal((n, d))


def holds(X, kernel, estimator="exact", r=4, **options):
    """Fit, and compare every statement with long double."""
    if sparse.issparse(X):
        problem = Problem(0, X.toarray(), kernel, estimator, options, r, sparse=True)
    else:
        problem = Problem(0, X, kernel, estimator, options, r)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = violations(problem)
    assert not found, found


# 1: kernels of finite rank.


@pytest.mark.parametrize("draw", range(DRAWS))
@pytest.mark.parametrize("degree", [1, 2])
def test_landmarks_of_kernels_of_finite_rank(draw, degree):
    X = rows(draw, 120, 3) * 10 ** generator(draw).uniform(-1, 1, 3)
    kernel = {"kernel": "poly", "degree": degree, "coef0": 1.0}
    holds(X, kernel, "landmarks", basis=Landmarks(40))


@pytest.mark.parametrize("draw", range(DRAWS))
def test_greedy_landmarks_are_well_conditioned(draw):
    X = rows(draw, 150, 3)
    kernel = Polynomial(2, 1.0, 1.0)
    atoms = FullGreedy().select(kernel, X, 10, generator(draw))
    values = np.linalg.eigvalsh(kernel(X[atoms]))
    assert values[0] > 1e-7 * values[-1]


# 2: single precision and a few rows of large norm.


@pytest.mark.parametrize("draw", range(DRAWS))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_of_outliers_in_single_precision(draw, dtype):
    X = rows(draw, 600, 5)
    X[generator(draw).integers(0, 600, 3)] *= 4.0
    X = X.astype(dtype)
    kernel = {"kernel": "poly", "degree": 3, "coef0": 1.0, "gamma": 0.2}
    holds(X, kernel, eigen_solver="krylov", tol=1e-5)


# 3: distances near far outliers.


def far_rows(draw):
    X = rows(draw, 40, 2)
    X[generator(draw).integers(0, 40, 2)] *= 10.0 ** generator(draw).uniform(3, 12)
    return X


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("kernel", ["rbf", "matern", "rational_quadratic", "laplacian"])
@pytest.mark.parametrize("draw", range(3))
def test_distances_near_far_rows(draw, kernel, form):
    name = {"kernel": kernel, "gamma": 1.0}
    if kernel == "matern":
        name["kernel_params"] = {"nu": 0.5}
    holds(form(far_rows(draw)), name, eigen_solver="dense")
    holds(form(far_rows(draw)), name, "landmarks", basis=Landmarks(10))


@pytest.mark.parametrize("far", [1e5, 1e9, 1e150, 1e200])
def test_far_rows_leave_the_others_alone(far):
    line = np.arange(6.0)[:, None]
    alone = KernelPCA(2, kernel="rbf", gamma=1.0, center=False).fit(line)
    for X in (np.vstack([line, [[far]]]), sparse.csr_matrix(np.vstack([line, [[far]]]))):
        model = KernelPCA(2, kernel="rbf", gamma=1.0, center=False).fit(X)
        np.testing.assert_allclose(model.eigenvalues_, alone.eigenvalues_, rtol=1e-12)


@pytest.mark.parametrize("kernel", ["rbf", "matern", "rational_quadratic", "laplacian"])
def test_an_offset_changes_nothing(kernel):
    X = np.round(rows(1, 60, 3), 3)
    here, there = (KernelPCA(3, kernel=kernel, gamma=0.5).fit(X + a) for a in (0.0, 1e9))
    # What is left is the rounding of the rows themselves.
    np.testing.assert_allclose(there.eigenvalues_, here.eigenvalues_, rtol=1e-5)


# 4: offsets, scales, overflow.


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e8])
@pytest.mark.parametrize("solver", ["dense", "krylov", "randomized", "gram-power", "arpack"])
def test_linear_kernel_far_from_the_origin(solver, offset):
    X = rows(2, 50, 4) + offset
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KernelPCA(3, eigen_solver=solver, random_state=0).fit(X)
    centered = X - X.mean(axis=0)
    exact = np.linalg.svd(centered, compute_uv=False)[:3] ** 2
    np.testing.assert_allclose(model.eigenvalues_, exact, rtol=1e-9)
    holds(X, {"kernel": "linear"}, eigen_solver=solver)
    np.testing.assert_allclose(
        np.abs(model.transform(X).T @ model.transform(X)), np.diag(exact), atol=1e-5 * exact[0]
    )
    assert model.reconstruction_error(X).max() < 1.1 * (centered**2).sum(axis=1).max()


def test_linear_kernel_with_a_center():
    X, Z = rows(3, 20, 4), rows(4, 7, 4)
    kernel = Linear(center=np.arange(4.0))
    np.testing.assert_allclose(kernel(X, Z), (X - np.arange(4)) @ (Z - np.arange(4)).T)
    np.testing.assert_allclose(kernel.diag(X), np.diag(kernel(X)))
    assert Linear().recentered(X).center is None
    assert Linear().recentered(X + 1e4).center is not None


@pytest.mark.parametrize("scale", [1e-200, 1e-160, 1e-30, 1e30, 1e160, 1e200])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_cosine_of_rows_of_any_size(scale, form):
    X = rows(5, 30, 3)
    one, other = (KernelPCA(3, kernel="cosine").fit(form(a * X)) for a in (1.0, scale))
    np.testing.assert_allclose(other.eigenvalues_, one.eigenvalues_, rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-60, 1e-30, 1e30, 1e80])
@pytest.mark.parametrize("solver", ["gram-power", "krylov", "dense", "arpack", "randomized"])
def test_data_of_any_scale(solver, scale):
    X = rows(6, 60, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KernelPCA(2, eigen_solver=solver, tol=1e-9, random_state=0).fit(scale * X)
    exact = np.linalg.eigvalsh((X - X.mean(axis=0)).T @ (X - X.mean(axis=0)))[::-1][:2]
    np.testing.assert_allclose(model.eigenvalues_ / scale / scale, exact, rtol=1e-7)


@pytest.mark.parametrize("basis", ["points", Landmarks(10), RandomFeatures(50)])
def test_single_precision_that_overflows(basis):
    X = (1e15 * rows(7, 40, 3)).astype(np.float32)
    model = KernelPCA(2, kernel="poly", degree=3, gamma=1.0, basis=basis, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    assert np.isfinite(model.eigenvalues_).all() and model.eigenvalues_[0] > 1e60


def batches(model, X):
    for start in range(0, len(X), 50):
        model.partial_fit(X[start : start + 50])
    return model


def chunks(model, X):
    return model.fit(pytest.importorskip("dask.array").from_array(X, chunks=(60, -1)))


def blocks(model, X):
    return model.fit(lambda: (X[start : start + 60] for start in range(0, len(X), 60)))


# Ways to fit a few points to rows.
SMALL = {
    "landmarks": (KernelPCA, {"basis": Landmarks(20)}, KernelPCA.fit),
    "landmarks at random": (KernelPCA, {"basis": Landmarks(20, Uniform())}, KernelPCA.fit),
    "landmarks of blocks": (KernelPCA, {"basis": Landmarks(20)}, blocks),
    "landmarks of chunks": (KernelPCA, {"basis": Landmarks(20)}, chunks),
    "dictionary": (StreamingKernelPCA, {"budget": 60}, StreamingKernelPCA.fit),
    "dictionary in batches": (StreamingKernelPCA, {"budget": 60}, batches),
    "stream on landmarks": (StreamingKernelPCA, {"basis": Landmarks(20)}, batches),
    "Hebbian": (HebbianKernelPCA, {}, batches),
    "Hebbian with a budget": (HebbianKernelPCA, {"budget": 30}, batches),
    "Hebbian with novelty": (HebbianKernelPCA, {"novelty": 0.01}, batches),
}


@pytest.mark.parametrize("way", SMALL)
@pytest.mark.parametrize("draw", range(DRAWS))
def test_indefinite_kernels_are_told_of_by_a_few_points(draw, way):
    """Whoever takes negative eigenvalues for rounding gives eigenvalues a thousand times too large.

    A share of 1e-5 of the largest is what exact fits tell of; rounding is far below.
    """
    rng = generator(77, draw)
    X = rows(draw, 240, int(rng.integers(2, 7))) * 10 ** rng.uniform(-0.5, 0.7)
    gamma, coef0 = 10 ** rng.uniform(-1.5, 0.5) / X.shape[1], float(rng.choice([0.0, 1.0, 0.3]))
    center = bool(rng.integers(2))
    K = np.tanh(gamma * X @ X.T + coef0)
    values = np.linalg.eigvalsh(K - K.mean(0) - K.mean(1)[:, None] + K.mean() if center else K)
    method, options, fit = SMALL[way]
    model = method(2, kernel="sigmoid", gamma=gamma, coef0=coef0, center=center, **options)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        certificate = fit(model.set_params(random_state=0), X).certificate_
    if values[0] < -1e-5 * values[-1]:
        assert certificate.indefinite
    if model.eigenvalues_[0] > 1.5 * values[-1]:
        assert certificate.indefinite
    assert certificate.kind == "estimate"
    if certificate.indefinite:
        assert np.linalg.eigvalsh(K)[0] < -1e-12 * len(K)
        assert any("is indefinite on these data" in str(one.message) for one in told)


EXACT = ("auto", "dense", "arpack", "krylov", "lobpcg", "randomized", "gram-power")
PARTIAL = (GramPower(block=1), GramPower(rotate=False), BlockKrylov(max_passes=1))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("solver", [*EXACT, *PARTIAL], ids=str)
def test_indefinite_kernels_are_told_of_by_every_solver(solver):
    """From 1e-4 of the first eigenvalue on, also where rows repeat, at any distance."""
    told = 0
    for seed in range(12):
        rng = generator(355, seed)
        n, d, levels = (int(rng.integers(*ends)) for ends in ((60, 600), (2, 7), (2, 8)))
        X = rng.normal(size=(n, d)) * 10 ** rng.uniform(-0.5, 0.7)
        if rng.random() < 0.3:
            X = X[rng.integers(0, 8 * levels, n)]
        elif rng.random() < 0.5:
            X = np.tile(X[:levels], (-(-n // levels), 1))[:n]
        gamma, coef0 = 10 ** rng.uniform(-3, 0.5) / d, float(rng.choice([0.0, 1.0, 0.3, -1.0]))
        center, r = bool(rng.integers(2)), int(rng.integers(1, 8))
        K = np.tanh(gamma * X @ X.T + coef0)
        values = np.linalg.eigvalsh(K - K.mean(0) - K.mean(1)[:, None] + K.mean() if center else K)
        precomputed = bool(rng.integers(2))
        kernel = {"kernel": "sigmoid", "gamma": gamma, "coef0": coef0, "center": center}
        kernel["kernel"] = "precomputed" if precomputed else "sigmoid"
        model = KernelPCA(r, eigen_solver=solver, basis="points", random_state=seed, **kernel)
        try:
            model.fit(K if precomputed else X)
        except ValueError as error:
            assert "negative eigenvalues" in str(error) or "arpack" in str(error)
            continue
        if values[0] < -1e-4 * values[-1]:
            assert model.certificate_.indefinite, (seed, values[0] / values[-1])
            told += 1
        if model.certificate_.indefinite:
            assert values[0] < -1e-9 * values[-1], seed
    assert told >= 3


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("solver", [*EXACT, *PARTIAL], ids=str)
def test_a_few_negative_eigenvalues_among_many_are_told_of(solver):
    """Of a matrix of up to a thousand rows: a part of them, or a few products, would not do."""
    told = 0
    for seed in range(6):
        rng = generator(360, seed)
        n, few = int(rng.integers(80, 500)), int(rng.integers(1, 6))
        values = np.sort(rng.uniform(0.0, 0.1, n))
        values[-8:] = rng.uniform(0.1, 1.0, 8)
        values[:few] = -(10 ** rng.uniform(-3.5, -1.5))
        Q, _ = np.linalg.qr(rng.normal(size=(n, n)))
        K, center = (Q * values) @ Q.T, bool(rng.integers(2))
        single, r = rng.random() < 0.3, int(rng.integers(1, 12))
        model = KernelPCA(r, kernel="precomputed", eigen_solver=solver, center=center)
        try:
            model.set_params(random_state=seed).fit(K.astype(np.float32) if single else K)
        except ValueError as error:
            assert "negative eigenvalues" in str(error) or "arpack" in str(error)
            continue
        assert model.certificate_.indefinite, (seed, few, values[0])
        told += 1
    assert told >= 3


def gaussian(x, z):
    return np.exp(-0.1 * np.sum((x - z) ** 2))


@pytest.mark.parametrize("way", SMALL)
@pytest.mark.parametrize("draw", range(2))
def test_no_rounding_is_called_indefinite(draw, way):
    """Of kernels that do not say whether they are definite, with rows far from the origin."""
    method, options, fit = SMALL[way]
    X = rows(draw, 120, 2) + 30
    model = method(2, kernel=[gaussian, np.inner][draw], **options).set_params(random_state=0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Only .* landmarks were chosen")
        assert not fit(model, X).certificate_.indefinite


def test_randomized_says_where_it_is_rough():
    X = rows(8, 400, 30)
    model = KernelPCA(5, kernel="rbf", gamma=0.02, eigen_solver="randomized", iterated_power=0)
    with pytest.warns(ConvergenceWarning, match="Not converged"):
        model.fit(X)
    assert not model.certificate_.converged


# 5: Hebbian fits.


@pytest.mark.parametrize("readout", ["ritz", "nystroem", "carried", "free"])
@pytest.mark.parametrize("draw", range(3))
def test_hebbian_in_single_precision(draw, readout):
    X = rows(draw, 60, 3).astype(np.float32)
    holds(X, {"kernel": "rbf", "gamma": 0.3}, "hebbian", r=3, readout=readout, n_passes=3)


@pytest.mark.parametrize("readout", ["ritz", "nystroem", "carried", "free"])
@pytest.mark.parametrize("draw", range(8))
def test_hebbian_intervals_hold_whatever_the_memory(draw, readout):
    """Each holds a true eigenvalue, of estimates too, and the budget changes no statement."""
    rng = generator(81, draw)
    X = rows(draw, int(rng.integers(150, 250)), 3) * 10 ** rng.uniform(-0.5, 0.5, 3)
    X = X.astype([np.float64, np.float32][draw % 2])
    kernel = ["rbf", "poly", "laplacian", "sigmoid"][int(rng.integers(4))]
    gain = ["auto", "constant", "t", "et", "smd"][int(rng.integers(5))]
    settings = {"kernel": kernel, "gain": gain, "readout": readout, "n_passes": 1 + draw % 3}
    model = HebbianKernelPCA(2, random_state=draw, gamma=0.2, **settings)
    stated = []
    for memory in ("100MB", f"{2 * len(X)}kB"):  # the kernel matrix fits, or does not
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            try:
                certificate = model.set_params(memory=memory).fit(X).certificate_
            except ValueError as error:
                assert kernel == "sigmoid" and "negative eigenvalues" in str(error)
                stated.append("refused")
                continue
        stated.append((certificate.kind, certificate.indefinite, certificate.residuals is None))
        K = model.kernel_(X.astype(float))
        true = np.linalg.eigvalsh(K - K.mean(0) - K.mean(1)[:, None] + K.mean())
        ends = zip(certificate.eigenvalue_lower, certificate.eigenvalue_upper, strict=True)
        for low, high in ends:
            rounding = 1e-13 * true[-1]
            assert ((true >= low - rounding) & (true <= high + rounding)).any()
    assert stated[0] == stated[1]


@pytest.mark.parametrize("draw", range(DRAWS))
def test_intervals_of_hebbian_streams_hold(draw):
    X = rows(draw, 300, 4) + 3 * generator(draw).standard_normal(4)
    options = [{}, {"budget": 60}, {"novelty": 0.05}][draw % 3]
    model = HebbianKernelPCA(3, kernel="rbf", gamma=0.1, **options)
    certificate = batches(model, X).certificate_
    K = model.kernel_(X)
    true = np.linalg.eigvalsh(K - K.mean(0) - K.mean(1)[:, None] + K.mean())[:-4:-1]
    assert (certificate.eigenvalue_lower <= true).all()
    assert (true <= certificate.eigenvalue_upper).all()


@pytest.mark.parametrize("readout", ["nystroem", "carried", "free"])
def test_hebbian_readouts_of_indefinite_kernels_are_estimates(readout):
    X = rows(9, 60, 3)
    model = HebbianKernelPCA(
        2, kernel="sigmoid", gamma=0.5, coef0=-1.0, readout=readout, n_passes=3, random_state=0
    ).fit(X)
    certificate = model.certificate_
    assert certificate.kind == "estimate" and "nan" not in repr(certificate)
    assert np.isfinite(certificate.eigenvalue_lower).all()
    assert certificate.indefinite


def test_free_readout_is_an_estimate():
    model = HebbianKernelPCA(2, kernel="rbf", readout="free", random_state=0).fit(rows(1, 50, 3))
    certificate = model.certificate_
    assert certificate.kind == "estimate" and certificate.residuals is None
    assert not certificate.converged and "nan" not in repr(certificate)


# 6: indefinite kernels.


@pytest.mark.parametrize("solver", ["dense", "krylov", "arpack", "randomized", "gram-power"])
@pytest.mark.parametrize("r", [2, 20])
def test_indefinite_is_noted_by_all_solvers(solver, r):
    n = 60
    Q, _ = np.linalg.qr(rows(10, n, n))
    values = np.r_[np.linspace(10, 1, 40), np.zeros(19), -3.0]
    K = (Q * values) @ Q.T
    model = KernelPCA(r, kernel="precomputed", eigen_solver=solver, center=False, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit((K + K.T) / 2)
    assert model.certificate_.indefinite


# 7: captured variance.


def test_captured_variance_of_landmarks_that_see_nothing():
    X = 100 * rows(11, 50, 5)
    model = KernelPCA(2, kernel="rbf", gamma=1.0, basis=Landmarks(indices=[0, 1])).fit(X)
    low, high = model.certificate_.captured_variance
    assert 0 <= low <= 2 / 50 <= high


@pytest.mark.parametrize("passes", [2, 3])
def test_captured_variance_of_rough_results(passes):
    X = rows(12, 200, 8)
    solver = BlockKrylov(block=2, oversampling=1, max_passes=passes)
    holds(X, {"kernel": "rbf", "gamma": 0.5}, eigen_solver=solver, tol=1e-9)


# 8: convergence.


def test_passes_alone_do_not_make_convergence():
    X = rows(13, 300, 20)
    kernel = {"kernel": "rbf", "gamma": 0.05}
    power = KernelPCA(10, eigen_solver=GramPower(block=1), **kernel)
    hebbian = HebbianKernelPCA(10, gain="et", n_passes=1, random_state=0, **kernel)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for model in (power.fit(X), hebbian.fit(X)):
            assert not model.certificate_.converged


def test_braked_gains_warn():
    X = rows(14, 100, 3)
    gain = make_gain("constant", eta0=1e6, cap=np.inf)
    model = HebbianKernelPCA(3, kernel="rbf", gain=gain, n_passes=2, random_state=0)
    with pytest.warns(ConvergenceWarning, match="learned again"):
        model.fit(X)
    assert model.history_.recoveries > 0


def test_flat_spectra_do_not_hide_leading_pairs():
    """A pair of near copies has the only eigenvalue that stands out, on two rows of many."""
    for draw in range(DRAWS):
        X = 5 * rows(draw, 400, 12)
        X[7] = X[300] + 1e-3
        model = KernelPCA(1, kernel="rbf", gamma=1.0, eigen_solver="krylov", tol=1e-2)
        model.set_params(random_state=draw).fit(X)
        top = truth(Problem(0, X, {"kernel": "rbf"}, "exact", {}, 1), 1.0).values[0]
        assert not model.certificate_.converged or model.eigenvalues_[0] > 0.95 * top


# The likely intervals.


def test_digits_interval_is_narrow():
    from sklearn.datasets import load_digits

    X = load_digits().data
    model = KernelPCA(16, kernel="rbf", gamma="median", basis=Landmarks(200), random_state=0).fit(X)
    certificate = model.certificate_
    width = certificate.eigenvalue_upper[15] - certificate.eigenvalue_lower[15]
    assert width <= 0.4 * model.eigenvalues_[15]
    exact = KernelPCA(16, kernel="rbf", gamma="median").fit(X).eigenvalues_
    assert np.all(certificate.eigenvalue_lower <= exact)
    assert np.all(exact <= certificate.eigenvalue_upper)
    for some in (X[:500], X):
        exact = KernelPCA(16, kernel="rbf", gamma="median").fit(some).eigenvalues_
        model = KernelPCA(16, kernel="rbf", gamma="median", basis=RandomFeatures(1000)).fit(some)
        certificate = model.certificate_
        assert certificate.confidence == 1 - 1e-6 and certificate.kind == "estimate"
        assert np.all(certificate.likely_lower <= exact)
        assert np.all(exact <= certificate.likely_upper)
        width = certificate.likely_upper - certificate.likely_lower
        assert np.median(width / np.abs(model.eigenvalues_ - exact)) <= 20
        assert width[15] <= 0.5 * exact[15]


def test_likely_intervals_of_more_rows():
    X = rows(15, 5000, 3)
    exact = KernelPCA(5, kernel="rbf", gamma=0.3, tol=1e-6).fit(X)
    model = KernelPCA(5, kernel="rbf", gamma=0.3, basis=Landmarks(30), random_state=0).fit(X)
    certificate = model.certificate_
    assert certificate.confidence == 1 - 1e-6
    assert np.all(certificate.likely_lower <= exact.certificate_.eigenvalue_upper)
    assert np.all(exact.certificate_.eigenvalue_lower <= certificate.likely_upper)
    assert np.all(certificate.likely_upper <= certificate.eigenvalue_upper)
    assert certificate.likely_widest < certificate.widest
    text = repr(certificate)
    assert "confidence 1 - 1e-6" in text and "widest interval" in text
    given = certificate.to_dict()
    assert given["likely_upper"] == certificate.likely_upper.tolist()
    assert given["captured_variance"] == list(certificate.captured_variance)


def test_a_centered_linear_kernel_is_saved(tmp_path):
    X = rows(16, 40, 3) + 1e5
    model = KernelPCA(2, basis="points").fit(X)
    assert model.kernel_.center is not None
    model.save(tmp_path / "a.mercer")
    np.testing.assert_array_equal(load(tmp_path / "a.mercer").transform(X), model.transform(X))


@pytest.mark.parametrize("draw", range(DRAWS))
def test_landmarks_of_rows_that_differ_by_rounding(draw):
    X = (np.round(rows(draw, 30, 7)) + 5e4).astype(np.float32)
    holds(X, {"kernel": "cosine"}, "landmarks", basis=Landmarks(18))
