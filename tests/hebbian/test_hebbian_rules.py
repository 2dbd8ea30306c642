"""Hebbian kernel PCA: equal to the one-sample rules, robust, ranked as published."""

import os
import tracemalloc

import numpy as np
import pytest
from contracts import generator
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_digits

from mercer.bases import AllPoints
from mercer.compute import LocalEngine
from mercer.hebbian import (
    GAINS,
    READOUTS,
    GainUnit,
    GrowingHebbian,
    HebbianRule,
    MetaDescentRule,
    OrthonormalRule,
    RunningEigenvalues,
    hebbian_eigenpairs,
    make_gain,
)
from mercer.hebbian.rule import whiten
from mercer.kernels import RBF
from mercer.operators import CenteredGram, SymmetricOperator
from mercer.selectors import NoveltyRule
from mercer.stream.dictionary import GrowingDictionary


class Gram(SymmetricOperator):
    """A centered Gram matrix in memory, with the verbs of the library's operator."""

    def __init__(self, K):
        means = K.mean(axis=0)
        self.K = K - means - means[:, None] + means.mean()
        self.shape, self.dtype = K.shape, K.dtype

    def rows(self, index):
        return self.K[index]

    def __matmul__(self, V):
        return self.K @ V

    def to_dense(self):
        return self.K.copy()

    def diagonal(self):
        return np.diag(self.K)

    def start(self, k, rng):
        index = rng.permutation(len(self.K))[: max(2 * k, 40)]
        _, U = np.linalg.eigh(self.K[np.ix_(index, index)].astype(float))
        return self.K[:, index] @ U[:, -k:][:, ::-1]

    def excess(self, r):
        best = np.linalg.norm(np.linalg.eigvalsh(self.K)[:-r])

        def measure(A):
            S = self.K @ A.T
            return np.linalg.norm(self.K - S @ S.T) / best - 1

        return measure


def gaussian(X, width):
    norms = np.sum(X**2, axis=1)
    return np.exp(-np.maximum(norms[:, None] + norms - 2 * X @ X.T, 0) / width)


def coefficients(pairs):
    return (pairs.vectors / np.sqrt(pairs.values)).T


@pytest.fixture(scope="module")
def gram():
    return Gram(gaussian(load_digits().data[:300] / 16, 8.0))


@pytest.fixture
def start(gram):
    A = np.random.default_rng(0).standard_normal((6, 300))
    return A / np.sqrt(np.einsum("ij,ij->i", A @ gram.K, A))[:, None]


def visit(rule, gram, order, rates, decay, block):
    for first in range(0, len(order), block):
        index = order[first : first + block]
        rule.step(index, gram.rows(index), rates, decay, 1 + first)


def hebbian_reference(K, A, order, rates, n, cap):
    for t, p in enumerate(order, 1):
        y = A @ K[p]
        g = np.minimum(rates * n / (t + n), cap / np.cumsum(y**2))
        A = A - g[:, None] * (np.tril(np.outer(y, y)) @ A)
        A[:, p] += g * y
    return A


def smd_reference(K, A, order, rates, n, mu, xi):
    B, rho = np.zeros_like(A), np.zeros(len(A))
    for t, p in enumerate(order, 1):
        e, y, z = np.eye(len(K))[p], A @ K[p], B @ K[p]
        lt = np.tril(np.outer(y, y))
        gradient = np.outer(y, e) - lt @ A
        change = np.outer(z, e) - lt @ B - np.tril(np.outer(z, y) + np.outer(y, z)) @ A
        rho = rho + mu * np.diag(gradient @ K @ B.T)
        g = (np.exp(rho) * rates * n / (t + n))[:, None]
        A, B = A + g * gradient, xi * B + g * (gradient + xi * change)
    return A, B, rho


@pytest.mark.parametrize("block", [1, 7, 64, 300])
@pytest.mark.parametrize("cap", [np.inf, 0.01])
def test_blocks_are_the_one_sample_rule(gram, start, block, cap):
    rates = np.linspace(0.02, 0.1, 6) * 300 / np.sum(gram.diagonal())
    order = np.random.default_rng(1).permutation(300)
    rule = HebbianRule(start.copy(), cap)
    visit(rule, gram, order, rates, 1 / 300, block)
    expected = hebbian_reference(gram.K, start, order, rates, 300, cap)
    assert np.abs(rule.A - expected).max() < 1e-12 * np.abs(expected).max()
    assert rule.brake == 1.0


@pytest.mark.parametrize("block", [1, 7, 64, 300])
def test_blocks_are_the_one_sample_meta_descent(gram, start, block):
    variance = np.sum(gram.diagonal()) / 300
    rates, mu = np.linspace(0.02, 0.1, 6) / variance, 0.5 / variance
    order = np.random.default_rng(1).permutation(300)
    free = (mu, 0.99, np.inf, -np.inf, np.inf)
    rule = MetaDescentRule(start.copy(), np.inf, start @ gram.K @ start.T, free)
    visit(rule, gram, order, rates, 1 / 300, block)
    A, B, rho = smd_reference(gram.K, start, order, rates, 300, mu, 0.99)
    assert np.abs(rho).max() > 0.01
    assert np.abs(rule.A - A).max() < 1e-12 * np.abs(A).max()
    assert np.abs(rule.B - B).max() < 1e-12 * np.abs(B).max()
    np.testing.assert_allclose(rule.rho, rho, atol=1e-11)


def test_clip_and_bounds_are_inert_in_normal_runs(gram):
    settings = {"n_passes": 3, "readout": "free"}
    mu = 0.1 * 300 / np.sum(gram.diagonal())
    tight = make_gain("smd", mu=mu)
    tight, _ = hebbian_eigenpairs(gram, 5, tight, rng=np.random.default_rng(2), **settings)
    loose = make_gain("smd", mu=mu, clip=np.inf, bounds=(-np.inf, np.inf))
    free, _ = hebbian_eigenpairs(gram, 5, loose, rng=np.random.default_rng(2), **settings)
    np.testing.assert_array_equal(tight.vectors, free.vectors)


@pytest.mark.parametrize("block", [1, 32, 300])
def test_orthonormal_rule_stays_orthonormal(gram, start, block):
    L = whiten(start @ gram.K @ start.T, np.float64)
    rule = OrthonormalRule(L @ start)
    visit(rule, gram, np.arange(300), np.full(6, 1e3), 0.0, block)
    np.testing.assert_allclose(rule.A @ gram.K @ rule.A.T, np.eye(6), atol=1e-9)


def test_dependent_directions_start_again(gram, start):
    A = start.copy()
    A[3] = A[1]
    A[5] = 0
    A = whiten(A @ gram.K @ A.T, np.float64) @ A
    assert not A[3].any() and not A[5].any()
    rule = OrthonormalRule(A)
    visit(rule, gram, np.arange(300), np.full(6, 0.01), 0.0, 64)
    np.testing.assert_allclose(rule.A @ gram.K @ rule.A.T, np.eye(6), atol=1e-9)


@pytest.mark.parametrize("gain", GAINS)
@pytest.mark.parametrize("readout", READOUTS)
def test_every_gain_and_readout(gram, gain, readout):
    pairs, history = hebbian_eigenpairs(
        gram, 5, gain, n_passes=4, readout=readout, rng=np.random.default_rng(3)
    )
    U = pairs.vectors
    assert U.shape == (300, 5) and pairs.values.shape == (5,)
    assert (np.diff(pairs.values) <= 0).all()
    true = np.linalg.norm(gram.K @ U - U * pairs.values, axis=0)
    nearest = np.abs(np.linalg.eigvalsh(gram.K) - pairs.values[:, None]).min(axis=1)
    known = true if pairs.bounded else nearest
    assert (known <= pairs.residuals * (1 + 1e-6) + 1e-9).all()
    if readout != "free":
        assert pairs.bounded
        np.testing.assert_allclose(U.T @ U, np.eye(5), atol=1e-10)
    if readout == "ritz":
        np.testing.assert_allclose(pairs.residuals, true, rtol=1e-6)
    assert pairs.n_passes == 5 + (readout in ("ritz", "nystroem"))
    assert history.recoveries == 0 and not history.interrupted


def test_published_ranking():
    """Excess error of constant > t > et > smd > auto at pass 10, geometric mean of three seeds."""
    gram = Gram(gaussian(load_digits().data[:600] / 16, 8.0))
    measure = gram.excess(8)
    means = []
    for gain in ["constant", "t", "et", "smd", "auto"]:
        runs = [
            hebbian_eigenpairs(gram, 8, gain, rng=np.random.default_rng(seed), measure=measure)[1]
            for seed in range(3)
        ]
        means.append(np.mean(np.log([history.excess[-1] for history in runs])))
    assert (np.diff(means) < 0).all()


def test_auto_approaches_the_exact_eigenpairs(gram):
    measure = gram.excess(5)
    pairs, history = hebbian_eigenpairs(gram, 5, rng=np.random.default_rng(4), measure=measure)
    assert measure(coefficients(pairs)) < 1e-5 < history.excess[0] < 0.1
    exact = np.linalg.eigvalsh(gram.K)[::-1][:5]
    np.testing.assert_allclose(pairs.values, exact, rtol=1e-4)
    assert (pairs.values <= exact * (1 + 1e-12)).all()


def test_history_holds_one_row_a_pass(gram):
    seen = []
    pairs, history = hebbian_eigenpairs(
        gram,
        4,
        "smd",
        n_passes=3,
        oversampling=2,
        rng=np.random.default_rng(5),
        report=seen.append,
        measure=gram.excess(4),
    )
    assert history.gains.shape == history.eigenvalues.shape == (3, 6)
    assert history.residuals.shape == (3, 4) and history.changes.shape == history.excess.shape
    assert (history.gains > 0).all() and (np.diff(history.changes) < 0).all()
    assert [state.n_passes for state in seen] == [2, 3, 4] and pairs.n_passes == 5
    np.testing.assert_allclose(seen[-1].values, history.eigenvalues[-1, :4])
    top = history.eigenvalues[-1].max()
    assert seen[-1].residual == pytest.approx(history.residuals[-1].max() / top)
    _, silent = hebbian_eigenpairs(gram, 4, "smd", n_passes=1)
    assert silent.excess is None


def test_stops_by_tolerance_report_and_interrupt(gram):
    pairs, history = hebbian_eigenpairs(gram, 3, n_passes=60, tol=0.02, rng=default())
    assert pairs.converged and len(history.changes) < 60 and history.changes[-1] <= 0.02
    pairs, history = hebbian_eigenpairs(gram, 3, report=lambda state: True, rng=default())
    assert len(history.changes) == 1 and not pairs.converged

    def interrupt(state):
        raise KeyboardInterrupt

    pairs, history = hebbian_eigenpairs(gram, 3, report=interrupt, rng=default())
    assert history.interrupted and np.isfinite(pairs.vectors).all()


def default():
    return np.random.default_rng(6)


@pytest.mark.parametrize("after", [0, 1, 2, 5])
@pytest.mark.parametrize("readout", READOUTS)
def test_interrupt_within_a_pass_leaves_a_model(gram, after, readout):
    class Impatient(Gram):
        calls = 0

        def rows(self, index):
            self.calls += 1
            if self.calls == after + 1:
                raise KeyboardInterrupt
            return super().rows(index)

    impatient = Impatient(gram.K)
    pairs, history = hebbian_eigenpairs(impatient, 3, readout=readout, rng=default())
    assert history.interrupted
    assert np.isfinite(pairs.vectors).all() and np.isfinite(pairs.values).all()


def test_published_start_and_settings_are_reachable(gram):
    gain = make_gain("smd", eta0=0.05, mu=0.1, xi=0.9, rho0=1.0, cap=np.inf)
    assert clone(gain).get_params() == gain.get_params()
    one, _ = hebbian_eigenpairs(gram, 3, gain, scale=1.0, n_passes=1, readout="free", rng=default())
    two, _ = hebbian_eigenpairs(gram, 3, gain, n_passes=1, readout="free", rng=default())
    assert np.isfinite(one.vectors).all() and not np.allclose(one.vectors, two.vectors)
    B = default().standard_normal((300, 3)) / 30
    order = np.random.default_rng(7)
    pairs, _ = hebbian_eigenpairs(
        gram,
        3,
        make_gain("t", eta0=0.1, cap=np.inf),
        start=B,
        n_passes=1,
        readout="free",
        rng=order,
    )
    expected = hebbian_reference(
        gram.K, B.T, np.random.default_rng(7).permutation(300), 0.1, 300, np.inf
    )
    directions = coefficients(pairs)
    order = [np.argmin(np.abs(expected - a).sum(axis=1)) for a in directions]
    np.testing.assert_allclose(directions, expected[order], atol=1e-12)


def test_a_runaway_gain_recovers(gram):
    gain = make_gain("constant", eta0=1e6, cap=np.inf)
    pairs, history = hebbian_eigenpairs(gram, 5, gain, n_passes=2, readout="free", rng=default())
    assert history.recoveries > 0
    assert np.isfinite(pairs.vectors).all() and np.isfinite(history.eigenvalues).all()


@pytest.mark.parametrize("gain", GAINS)
def test_nothing_to_find(gain):
    pairs, history = hebbian_eigenpairs(Gram(np.ones((20, 20))), 3, gain, rng=default())
    assert not pairs.values.any() and len(history.changes) == 0


def problem(seed):
    """A small random problem: any scale, rank, tails, kernel and number of components."""
    rng = np.random.default_rng(seed)
    n, d = rng.integers(4, 60), rng.integers(1, 8)
    X = rng.standard_normal((n, d)) * rng.choice([1e-4, 1.0, 1e4])
    if rng.random() < 0.3:
        X *= rng.standard_t(1.5, (n, 1))
    if rng.random() < 0.3:
        X[: n // 2] = X[0]
    K = X @ X.T
    kind = rng.integers(3)
    if kind == 1:
        K = (K / np.mean(np.diag(K)) + 1) ** rng.integers(2, 7)
    elif kind == 2:
        K = gaussian(X, 2 * np.mean(np.sum(X**2, axis=1)))
    return Gram(K), int(rng.integers(1, min(n, 12) + 1)), rng


@pytest.mark.parametrize("gain", GAINS)
@pytest.mark.parametrize("seed", range(30))
def test_random_problems_stay_finite(gain, seed):
    gram, r, rng = problem(seed)
    pairs, history = hebbian_eigenpairs(gram, r, gain, rng=rng, block=16)
    assert np.isfinite(pairs.values).all() and np.isfinite(pairs.vectors).all()
    assert np.isfinite(pairs.residuals).all() and np.isfinite(history.eigenvalues).all()
    if gain == "auto":
        S = gram.K @ pairs.vectors
        error = np.linalg.norm(gram.K - pairs.vectors * pairs.values @ pairs.vectors.T)
        best = np.linalg.norm(np.linalg.eigvalsh(gram.K)[:-r]) if r < len(S) else 0.0
        assert error <= 1.3 * best + 1e-8 * np.linalg.norm(gram.K)


def test_linear_kernel_is_the_generalized_hebbian_algorithm():
    """GHA on the data, W <- W + g (y x' - lt(y y') W), equals the rule on X X'."""
    X = load_digits().data[:200, :20] / 16
    X = X - X.mean(axis=0)
    A = default().standard_normal((4, 200)) / 20
    rates = np.full(4, 0.02)
    order = default().permutation(200)
    rule = HebbianRule(A.copy(), np.inf)
    visit(rule, Gram(X @ X.T), order, rates, 1 / 200, 32)
    W = A @ X
    for t, p in enumerate(order, 1):
        y = W @ X[p]
        W = W + 200 / (t + 200) * rates[:, None] * (np.outer(y, X[p]) - np.tril(np.outer(y, y)) @ W)
    np.testing.assert_allclose(rule.A @ X, W, atol=1e-12)


@pytest.mark.parametrize("gain", GAINS)
def test_single_precision(gain):
    K = gaussian(load_digits().data[:200] / 16, 8.0).astype(np.float32)
    single, double = Gram(K), Gram(K.astype(np.float64))
    one, _ = hebbian_eigenpairs(single, 4, gain, n_passes=5, rng=default())
    two, _ = hebbian_eigenpairs(double, 4, gain, n_passes=5, rng=default())
    np.testing.assert_allclose(one.values, two.values, rtol=1e-3)


@pytest.mark.parametrize("gain", GAINS)
def test_rows_made_on_the_fly(gram, gain):
    """The library's operator, which stores no matrix, gives what the stored matrix gives."""
    X = load_digits().data[:300] / 16
    engine = LocalEngine(memory=10**8, threads=1)
    streamed = CenteredGram(AllPoints().build(RBF(gamma=1 / 8), X, engine, default()))
    start = default().standard_normal((300, 5)) / 30
    one, _ = hebbian_eigenpairs(streamed, 5, gain, n_passes=3, start=start, rng=default())
    two, _ = hebbian_eigenpairs(gram, 5, gain, n_passes=3, start=start, rng=default())
    np.testing.assert_allclose(one.values, two.values, rtol=1e-9)
    np.testing.assert_allclose(one.residuals, two.residuals, rtol=1e-4)


@pytest.mark.parametrize("gain", ["smd", "auto"])
def test_memory_is_linear_in_the_rows(gain):
    n, r, p, b = 6000, 4, 4, 64
    x = default().uniform(0, 3, n)

    class Streamed(SymmetricOperator):
        shape, dtype = (n, n), np.dtype(float)

        def to_dense(self):
            raise AssertionError("the matrix does not fit")

        def rows(self, index):
            return np.exp(-((x[index, None] - x) ** 2))

        def __matmul__(self, V):
            parts = [self.rows(np.arange(i, min(n, i + b))) @ V for i in range(0, n, b)]
            return np.concatenate(parts)

        def diagonal(self):
            return np.ones(n)

        def start(self, k, rng):
            return rng.standard_normal((n, k))

    tracemalloc.start()
    hebbian_eigenpairs(
        Streamed(), r, gain, n_passes=2, oversampling=p, block=b, readout="ritz", rng=default()
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Rows and their temporaries, the sample for the norm of K', ten vectors a direction.
    assert peak < 8 * n * (4 * max(b, 128) + 10 * (r + p))


class Rbf:
    """k(x, z) = exp(-|x - z|^2 / width)."""

    def __init__(self, width):
        self.width = width

    def __call__(self, X, Z):
        return np.exp(-np.sum((X[:, None] - Z[None]) ** 2, axis=2) / self.width)


def captured(model, X):
    """Share of the variance of X along the model's directions."""
    S = model.scores(X)
    K = Gram(model.kernel(X, X))
    best = np.linalg.eigvalsh(K.K)[::-1][: S.shape[1]].sum()
    return np.sum((S - S.mean(axis=0)) ** 2) / best


@pytest.fixture(scope="module")
def stream():
    X = load_digits().data / 16
    return X[np.random.default_rng(8).permutation(len(X))][:900]


def test_growing_model_is_orthonormal_and_good(stream):
    model = GrowingHebbian(Rbf(8.0), 5).partial_fit(stream)
    np.testing.assert_allclose(model.metric[1:, 1:], np.eye(15), atol=1e-9)
    assert model.count == len(model.points) == 900 and not model.lost.any()
    assert captured(model, stream) > 0.98
    np.testing.assert_allclose(model.frame[:, 0], 1 / 900)


@pytest.mark.parametrize("sizes", [[900], [1, 2, 50, 847], [300] * 3])
def test_batches_of_any_size_join(stream, sizes):
    model = GrowingHebbian(Rbf(8.0), 5)
    first = 0
    for size in sizes:
        model.partial_fit(stream[first : first + size])
        first += size
    np.testing.assert_allclose(model.metric[1:, 1:], np.eye(15), atol=1e-9)
    assert captured(model, stream) > 0.97


def test_budget_bounds_the_points_and_the_loss_is_measured(stream):
    free = captured(GrowingHebbian(Rbf(8.0), 5).partial_fit(stream), stream)
    losses, kept = [], []
    for budget in [100, 300]:
        model = GrowingHebbian(Rbf(8.0), 5, budget=budget).partial_fit(stream)
        assert len(model.points) == len(model.frame) == budget
        np.testing.assert_allclose(model.metric[1:, 1:], np.eye(15), atol=1e-8)
        losses.append(model.lost[1:6].sum())
        kept.append(captured(model, stream))
    assert losses[0] > losses[1] > 0
    assert 0.85 < kept[0] < kept[1] <= free + 0.01


def test_repeated_points_leave_for_free(stream):
    model = GrowingHebbian(Rbf(8.0), 5, budget=130).partial_fit(np.repeat(stream[:120], 5, axis=0))
    assert model.lost.max() < 1e-6 and len(model.points) == 130


def test_forgetting_follows_a_change(stream):
    """After a jump of the data a forgetting model describes the new data better."""
    there = stream[:, ::-1].copy()
    data = np.concatenate([stream, there])
    models = [
        GrowingHebbian(Rbf(8.0), 5, forgetting=f, budget=400).partial_fit(data) for f in (1.0, 0.99)
    ]
    stays, follows = (captured(model, there) for model in models)
    assert follows > stays and follows > 0.9


def test_novel_points_are_those_of_the_selector(stream):
    X = stream[:300]
    kernel = RBF(gamma=1 / 8)
    for threshold in (0.3, 0.05):
        rule = NoveltyRule(kernel, threshold)
        first, second = rule.admit(X[:100]), rule.admit(X[100:])
        nobody = GrowingDictionary(kernel, threshold, 300, X[:0])
        grown, _, joined = nobody.admit(X)
        np.testing.assert_array_equal(joined, np.concatenate([first, 100 + second]))
        np.testing.assert_allclose(grown.factor @ grown.factor.T, kernel(X[joined]), atol=1e-7)
        known = nobody.with_all(X[first])
        np.testing.assert_array_equal(known.admit(X[100:], kernel(X[100:]))[2], second)


@pytest.mark.parametrize("settings", [{"novelty": 0.2}, {"budget": 60}])
def test_what_points_that_are_not_kept_cost_is_known_exactly(stream, settings):
    """The squared distance of each column to its projection, by least squares."""
    X, kernel = stream[:120], Rbf(8.0)
    whole = GrowingHebbian(kernel, 5).partial_fit(X)
    few = GrowingHebbian(kernel, 5, **settings).partial_fit(X)
    Z = few.points
    F = np.linalg.solve(kernel(Z, Z), kernel(Z, X) @ whole.frame)
    cross = np.einsum("ij,ij->j", whole.frame, kernel(X, Z) @ F)
    lost = np.diag(whole.metric) - cross
    lost[0] /= whole.variance
    np.testing.assert_allclose(few.missed + few.lost, lost, rtol=1e-5, atol=1e-9)
    assert lost[1:].min() > 0 and len(Z) < 120


@pytest.mark.parametrize("center", [True, False])
def test_resume_goes_on_from_a_model(stream, center):
    """A model handed over is the model itself: the same state after the same rows."""
    one = GrowingHebbian(Rbf(8.0), 5, center=center).partial_fit(stream[:400])
    two = GrowingHebbian(Rbf(8.0), 5, center=center)
    two.resume(one.points, one.frame, one.variances, one.variance, one.count)
    for model in (one, two):
        model.partial_fit(stream[400:600])
    np.testing.assert_allclose(two.scores(stream[:50]), one.scores(stream[:50]), atol=1e-8)
    assert two.count == 600 and bool(one.frame[:, 0].any()) == center


def usps():
    root = os.environ.get("MERCER_DATA")
    if not root:
        pytest.skip("MERCER_DATA does not name a folder with usps.npz")
    stored = np.load(os.path.join(root, "usps.npz"))
    X, y = stored["X_train"] / stored["scale"], stored["y_train"]
    return X[np.concatenate([np.flatnonzero(y == digit)[:100] for digit in range(10)])]


@pytest.mark.parametrize("kernel", ["dot", "gaussian"])
def test_usps(kernel):
    """First 100 of each digit, 16 components: limits of the published experiment, few seeds."""
    X = usps()
    gram = Gram(X @ X.T if kernel == "dot" else gaussian(X, 128.0))
    measure = gram.excess(16)
    excess = {}
    for gain in GAINS:
        settings = {"n_passes": 20, "oversampling": 8 if gain == "auto" else 0}
        runs = [
            hebbian_eigenpairs(
                gram, 16, gain, readout="carried", rng=rng, measure=measure, **settings
            )
            for rng in map(np.random.default_rng, range(2))
        ]
        assert all(history.recoveries == 0 for _, history in runs)
        excess[gain] = np.exp(np.mean([np.log(history.excess) for _, history in runs], axis=0))
    for late in (9, 19):
        marks = [excess[gain][late] for gain in ["constant", "t", "et", "smd", "auto"]]
        assert marks == sorted(marks, reverse=True)
    assert excess["et"][9] < 0.03 and excess["smd"][9] < 0.012 and excess["auto"][9] < 1e-3
    assert measure(coefficients(runs[0][0])) < 1e-5


def running_rates(A, K, eta0):
    """Equations 12 and 13 as printed, without the decay."""
    values = np.linalg.norm(A @ K, axis=1) / np.linalg.norm(A, axis=1)
    return eta0 * np.linalg.norm(values) / values


@pytest.mark.parametrize("block", [1, 7, 64, 300])
def test_running_eigenvalues_are_those_of_algorithm_1(gram, start, block):
    order, eta0 = np.random.default_rng(1).permutation(300), 2.0 / np.linalg.norm(gram.K)
    A = start
    for t, p in enumerate(order, 1):
        y, g = A @ gram.K[p], running_rates(A, gram.K, eta0) * 300 / (t + 300)
        A = A - g[:, None] * (np.tril(np.outer(y, y)) @ A)
        A[:, p] += g * y
    rule = HebbianRule(start.copy(), np.inf, RunningEigenvalues(start @ gram.K, eta0, 1e-12))
    visit(rule, gram, order, np.ones(6), 1 / 300, block)
    assert np.abs(rule.A - A).max() < 1e-11 * np.abs(A).max()
    values = np.linalg.norm(A @ gram.K, axis=1) / np.linalg.norm(A, axis=1)
    np.testing.assert_allclose(rule.running.values(rule.A), values, rtol=1e-9)


@pytest.mark.parametrize("block", [1, 64])
def test_running_eigenvalues_of_meta_descent(gram, start, block):
    order, eta0 = np.random.default_rng(1).permutation(300), 2.0 / np.linalg.norm(gram.K)
    mu, xi, K = 0.5 * 300 / np.sum(gram.diagonal()), 0.99, gram.K
    A, B, rho = start, np.zeros_like(start), np.zeros(6)
    for t, p in enumerate(order, 1):
        e, y, z = np.eye(300)[p], A @ K[p], B @ K[p]
        lt = np.tril(np.outer(y, y))
        gradient = np.outer(y, e) - lt @ A
        change = np.outer(z, e) - lt @ B - np.tril(np.outer(z, y) + np.outer(y, z)) @ A
        rho = rho + mu * np.diag(gradient @ K @ B.T)
        g = (np.exp(rho) * running_rates(A, K, eta0) * 300 / (t + 300))[:, None]
        A, B = A + g * gradient, xi * B + g * (gradient + xi * change)
    running = RunningEigenvalues(start @ K, eta0, 1e-12)
    free = (mu, xi, np.inf, -np.inf, np.inf)
    rule = MetaDescentRule(start.copy(), np.inf, start @ K @ start.T, free, 0.0, running)
    visit(rule, gram, order, np.ones(6), 1 / 300, block)
    assert np.abs(rho).max() > 0.01
    assert np.abs(rule.A - A).max() < 1e-10 * np.abs(A).max()
    np.testing.assert_allclose(rule.rho, rho, atol=1e-10)


@pytest.mark.parametrize("gain", ["et", "smd"])
def test_running_eigenvalues_in_passes(gram, gain):
    found, products = {}, {}
    for estimate in ("outputs", "product", "running"):
        rule = make_gain(gain, estimate=estimate)
        pairs, history = hebbian_eigenpairs(
            gram,
            5,
            rule,
            n_passes=8,
            readout="free",
            rng=np.random.default_rng(3),
            measure=gram.excess(5),
        )
        found[estimate], products[estimate] = history, pairs.n_passes
        exact = np.linalg.eigvalsh(gram.K)[::-1][:5]
        np.testing.assert_allclose(history.eigenvalues[-1], exact, rtol=0.1)
        assert history.excess[-1] < 0.05 and history.recoveries == 0
    assert not np.array_equal(found["running"].gains, found["outputs"].gains)
    assert products["product"] == products["outputs"] + 8 == products["running"] + 8


@pytest.mark.parametrize("gain", ["et", "smd"])
def test_equation_13_once_a_pass(gram, gain):
    """The estimates after a pass are |A_i K'| / |A_i| of the directions that it ended with."""
    ends: list = []
    _, history = hebbian_eigenpairs(
        gram,
        5,
        make_gain(gain, estimate="product"),
        n_passes=4,
        readout="free",
        rng=generator(3),
        measure=lambda A: ends.append(A.copy()) or 0.0,
    )
    wanted = [np.linalg.norm(A @ gram.K, axis=1) / np.linalg.norm(A, axis=1) for A in ends]
    np.testing.assert_allclose(history.eigenvalues, wanted, rtol=1e-10)


@pytest.mark.parametrize("gain", ["t", "et", "smd"])
@pytest.mark.parametrize("tau", [None, 50, 4000.0])
def test_gains_halve_after_tau_samples(gram, gain, tau):
    """eta0 tau / (t + tau), with the number of rows where no tau is given."""
    rule = make_gain(gain, eta0=0.01, tau=tau)
    horizon = 300 if tau is None else tau
    for t in (1, horizon, 3 * horizon):
        share = 1 / (1 + rule.decay(300) * t)
        assert share == pytest.approx(horizon / (t + horizon))
    if gain == "t":
        _, history = hebbian_eigenpairs(gram, 3, rule, n_passes=2, rng=generator(0))
        ends = np.array([1 + 300, 1 + 600])
        np.testing.assert_allclose(history.gains[:, 0], 0.01 * horizon / (ends + horizon))


@pytest.mark.parametrize("gain", ["constant", "et", "smd", "auto"])
def test_directions_of_rows_move_as_coefficients_of_all_of_them(gain):
    """The linear rule on coordinates Y: outputs of the rule on K = YY', and W = AY throughout."""
    rng = generator(2, 4)
    n, m, q, b = 60, 7, 3, int(rng.integers(1, 20))
    Y = rng.standard_normal((n, m)) * np.geomspace(1, 0.2, m)
    K, A = Y @ Y.T, rng.standard_normal((q, n)) / n
    if gain == "auto":
        A = np.linalg.solve(np.linalg.cholesky(A @ K @ A.T), A)
    unit, recipe = GainUnit(n, float(np.trace(K)) / n, float(np.linalg.norm(K))), make_gain(gain)
    here, there = recipe.rule(A, A @ K, unit), recipe.rule(A @ Y, A @ Y, unit)
    rates = recipe.rates(np.linalg.eigvalsh(K)[::-1][:q], unit)
    for start in range(0, n, b):
        index = np.arange(start, min(start + b, n))
        wanted = here.step(index, K[index], rates, recipe.decay(n), 1 + start)
        found = there.step(None, Y[index], rates, recipe.decay(n), 1 + start)
        assert_allclose(found, wanted, atol=1e-9 * np.abs(wanted).max())
        assert_allclose(there.A, here.A @ Y, atol=1e-9 * np.abs(there.A).max())
