"""HebbianKernelPCA: fits, streams and every way they end; Gram power through KernelPCA."""

import pickle

import numpy as np
import oracle
import pytest
from contracts import generator, peak_bytes
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from mercer import HebbianKernelPCA, KernelPCA
from mercer.bases import Landmarks
from mercer.hebbian import GAINS, READOUTS, AutoGain, ConstantGain, MetaDescentGain
from mercer.hebbian.passes import VECTORS
from mercer.kernels import KERNELS
from mercer.selectors import Novelty
from mercer.solvers import GramPower

GAMMA = 1 / 8


@pytest.fixture(autouse=True, scope="module")
def one_blas_thread():
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="module")
def digits():
    X = load_digits().data / 16
    return X[np.random.default_rng(0).permutation(len(X))][:900]


@pytest.fixture(scope="module")
def X(digits):
    return digits[:300]


def hebbian(r=5, **params):
    settings = {"kernel": "rbf", "gamma": GAMMA, "random_state": 0, "n_jobs": 1}
    return HebbianKernelPCA(r, **settings | params)


def captured(model, X):
    """Share of the variance that the best r directions hold which the model's hold."""
    S = np.asarray(model.transform(X), dtype=float)
    K = oracle.center(oracle.rbf(X, X, GAMMA))
    best = np.linalg.eigvalsh(K)[::-1][: S.shape[1]].sum()
    return np.sum((S - S.mean(axis=0)) ** 2) / best


def check_model(model, X):
    """Orthonormal directions, finite scores, errors that are the distances they claim to be."""
    M = model.expansion_.metric
    F = model.expansion_.frame
    Z = model.expansion_.basis.points
    G = model.kernel_(np.asarray(Z, dtype=float))
    np.testing.assert_allclose(F.T @ G @ F, M, atol=1e-6)
    np.testing.assert_allclose(M[1:, 1:], np.eye(len(M) - 1), atol=1e-6)
    S, errors = model.transform(X), model.reconstruction_error(X)
    assert S.shape == (X.shape[0], model.n_components) and np.isfinite(S).all()
    norms = model.kernel_.diag(X) - 2 * model.kernel_(X, Z) @ F[:, 0] + M[0, 0]
    np.testing.assert_allclose(errors, norms - np.sum(S**2, axis=1), atol=1e-5)
    assert (np.diff(model.eigenvalues_) <= 0).all() and (model.eigenvalues_ >= 0).all()
    assert 0 < model.explained_variance_ratio_.sum() <= 1 + 1e-9


# --- fit


@pytest.mark.parametrize("gain", GAINS)
def test_every_gain_comes_near_the_exact_components(X, gain):
    model = hebbian(gain=gain).fit(X)
    check_model(model, X)
    exact = KernelPCA(5, kernel="rbf", gamma=GAMMA).fit(X)
    assert (model.eigenvalues_ <= exact.eigenvalues_ * (1 + 1e-9)).all()
    assert captured(model, X) > 0.99
    low, high = model.certificate_.captured_variance
    true = exact.explained_variance_ratio_.sum()
    assert low <= true <= high + 1e-9 or model.explained_variance_ratio_.sum() <= true + 1e-12
    assert model.history_.gains.shape[0] == 10 and not model.certificate_.converged


@pytest.mark.parametrize("gain", ["auto", "et"])
@pytest.mark.parametrize("readout", READOUTS)
def test_scores_of_the_rows_are_those_of_transform(X, readout, gain):
    model = hebbian(gain=gain, readout=readout, n_passes=4)
    scores = model.fit_transform(X)
    np.testing.assert_allclose(scores, model.transform(X), atol=1e-12)
    M, F = model.expansion_.metric, model.expansion_.frame
    np.testing.assert_allclose(F.T @ model.kernel_(X) @ F, M, atol=1e-8)
    assert captured(model, X) > 0.9 and (model.reconstruction_error(X) < 1).all()


@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_every_kernel(kernel):
    X = generator(1).random((80, 4))
    data = X @ X.T if kernel == "precomputed" else X
    model = HebbianKernelPCA(3, kernel=kernel, random_state=0, n_passes=20).fit(data)
    K = data if kernel == "precomputed" else model.kernel_(data)
    np.testing.assert_allclose(model.eigenvalues_, oracle.eigenpairs(K, 3)[0], rtol=1e-3)
    scores = model.transform(data)
    np.testing.assert_allclose(np.sum(scores**2, axis=0), model.eigenvalues_, rtol=1e-2)


def test_a_function_as_kernel_and_no_centering():
    X = generator(2).random((60, 3))
    model = HebbianKernelPCA(2, kernel=lambda x, z: float(x @ z) ** 2, center=False).fit(X)
    exact = np.linalg.eigvalsh((X @ X.T) ** 2)[::-1][:2]
    np.testing.assert_allclose(model.eigenvalues_, exact, rtol=1e-4)
    np.testing.assert_allclose(model.explained_variance_, exact / 60, rtol=1e-4)


@pytest.mark.parametrize("gain", GAINS)
def test_single_precision(X, gain):
    single = hebbian(gain=gain).fit(X.astype(np.float32))
    double = hebbian(gain=gain).fit(X)
    S = single.transform(X.astype(np.float32))
    assert S.dtype == single.eigenvalues_.dtype == np.float32
    np.testing.assert_allclose(single.eigenvalues_, double.eigenvalues_, rtol=1e-4)


def test_sparse_rows(X):
    A = sparse.csr_array(np.where(X > 0.5, X, 0.0))
    one, two = hebbian().fit(A), hebbian().fit(A.toarray())
    np.testing.assert_allclose(one.eigenvalues_, two.eigenvalues_, rtol=1e-7)
    np.testing.assert_allclose(one.transform(A), two.transform(A.toarray()), atol=1e-5)


def test_precomputed_is_the_kernel(X):
    K = oracle.rbf(X, X, GAMMA)
    given = hebbian(kernel="precomputed", gamma=None).fit(K)
    made = hebbian().fit(X)
    np.testing.assert_allclose(given.eigenvalues_, made.eigenvalues_, rtol=1e-8)
    np.testing.assert_allclose(given.transform(K), made.transform(X), atol=1e-6)


def test_torch_in_torch_out(X):
    torch = pytest.importorskip("torch")
    T = torch.from_numpy(X.astype(np.float32))
    model = hebbian()
    scores = model.fit_transform(T)
    assert isinstance(scores, torch.Tensor) and isinstance(model.eigenvalues_, torch.Tensor)
    assert scores.dtype == torch.float32
    np.testing.assert_allclose(scores.numpy(), hebbian().fit_transform(T.numpy()), atol=1e-6)
    model.partial_fit(T[:50])
    assert isinstance(model.eigenvalues_, torch.Tensor)
    assert isinstance(model.transform(T), torch.Tensor)


def test_rows_on_the_fly_are_the_kept_matrix(X):
    """A budget too small for the matrix changes the memory, not the iterates."""
    kept = hebbian(gain="et", block=16).fit(X)
    made = hebbian(gain="et", block=16, memory=600_000).fit(X)
    np.testing.assert_allclose(made.eigenvalues_, kept.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(made.transform(X), kept.transform(X), atol=1e-6)


@pytest.mark.parametrize(("n", "memory"), [(4000, 8 * 10**6), (1200, 30 * 10**6)])
@pytest.mark.parametrize("gain", ["auto", "smd"])
def test_memory_stays_inside_the_budget(gain, n, memory):
    """O((r + p) n + block n), twelve vectors a direction among them."""
    r, kept = 4, 2 * 8 * n * n <= memory - 8 * n * VECTORS * (4 if gain == "smd" else 14)
    X = generator(3).standard_normal((n, 3))
    settings = {"gain": gain, "n_passes": 2, "gamma": 0.1, "copy_X": False}
    hebbian(r, **settings).fit(X[:400])
    model = hebbian(r, memory=memory, **settings)
    used = peak_bytes(lambda: model.fit(X))
    q = r + model._make_gain().oversampling
    assert VECTORS == 12 and 8 * n * VECTORS * q < memory
    assert used <= memory + 400_000, f"{used / 1e6:.1f} MB"
    assert kept == (used > 8 * n * n) and (kept or 8 * n * n > 10 * used)
    model.transform(X[:9])
    assert peak_bytes(lambda: model.transform(X)) <= memory + 8 * n * 12 * q + 400_000


def test_history_and_excess(X):
    model = hebbian(gain="et", n_passes=6, track_excess=True).fit(X)
    history = model.history_
    assert history.excess.shape == (6,) and history.excess[-1] < history.excess[0]
    assert history.residuals.shape == (6, 5) and history.recoveries == 0
    assert hebbian(n_passes=1).fit(X).history_.excess is None


def test_the_plan_says_what_was_asked_for(X):
    model = hebbian(n_passes=3, block=40).fit(X)
    plan = model.plan_
    assert plan.method == "Hebbian" and "3 passes" in plan.advice and repr(plan)
    assert (plan.solver.n_passes, plan.solver.block, plan.chosen.fits) == (3, 40, True)
    assert hebbian(block=200, memory=600_000).fit(X).plan_.solver.block < 40
    assert not hasattr(model.partial_fit(X[:50]), "plan_") and model.history_ is not None


@pytest.mark.parametrize("memory", [None, 600_000])
def test_progress_of_passes_never_goes_back(X, memory, monkeypatch):
    """The start is shown as the first pass; a block of rows, made or read, is a part of one."""
    shares = []

    def tiles(bar):
        return lambda done, total: shares.append(bar._done + done / total)

    monkeypatch.setattr("mercer.progress.PassBar.tiles", property(tiles))
    hebbian(n_passes=3, memory=memory, block=40).fit(X)
    later = [share for share in shares if share > 1]
    assert later == sorted(later) and len(later) >= 3 * 8 and min(shares) <= 1


def test_the_excess_needs_room(digits):
    with pytest.raises(ValueError, match=r"=4 MB .*900 rows.*track_excess.*least 19\.4 MB"):
        hebbian(track_excess=True, memory="4MB").fit(digits)


def test_callback_sees_passes_and_stops(X):
    seen = []

    def callback(state):
        seen.append(state)
        return len(seen) == 3

    model = hebbian(callback=callback, n_passes=50).fit(X)
    assert [state.n_passes for state in seen] == [2, 3, 4] and len(model.history_.changes) == 3
    assert not model.certificate_.converged and not model.history_.interrupted
    check_model(model, X)


def test_tolerance_ends_the_passes(X):
    model = hebbian(2, n_passes=100, tol=0.02).fit(X)
    assert len(model.history_.changes) < 100 and model.certificate_.converged
    with pytest.warns(ConvergenceWarning, match=r"subspace turned by .* in pass 2.*Raise n_passes"):
        hebbian(2, n_passes=2, tol=1e-9).fit(X)


@pytest.mark.parametrize("when", [1, 2])
def test_interrupt_leaves_a_model(X, when):
    seen = []

    def callback(state):
        seen.append(state)
        if len(seen) == when:
            raise KeyboardInterrupt

    model = hebbian(callback=callback)
    with pytest.warns(UserWarning, match=f"Interrupted after {when} passes"):
        model.fit(X)
    assert model.history_.interrupted and not model.certificate_.converged
    check_model(model, X)
    model.set_params(callback=None).fit(X)
    assert not model.history_.interrupted


def test_progress_goes_to_stderr(X, capsys):
    hebbian(verbose=1, n_passes=3).fit(X)
    said = capsys.readouterr()
    assert "residual" in said.err and "pass 4" in said.err and not said.out


@pytest.mark.parametrize("gain", [ConstantGain(eta0=0.02), MetaDescentGain(cap=np.inf), AutoGain()])
def test_gain_objects(X, gain):
    model = clone(hebbian(gain=gain, n_passes=3))
    model.fit(X)
    check_model(model, X)


def test_published_settings_reach_the_rule(X):
    one = hebbian(gain="smd", eta0=0.2, mu=0.5, xi=0.9, rho0=0.1, scale=1.0, n_passes=2).fit(X)
    two = hebbian(gain="smd", n_passes=2).fit(X)
    assert not np.allclose(one.history_.gains, two.history_.gains)


def test_pickle_and_clone(X):
    model = hebbian(budget=200).fit(X)
    for _ in range(2):
        copy = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(copy.transform(X), model.transform(X))
        copy.partial_fit(X[:40])
        model.partial_fit(X[:40])
        np.testing.assert_array_equal(copy.transform(X), model.transform(X))
    assert not hasattr(clone(model), "expansion_")


def test_linear_kernel_is_pca_of_the_data():
    """GHA in the limit: the Hebbian rule on a linear kernel finds the principal axes."""
    X = load_digits().data[:400] / 16
    pca = PCA(3).fit(X)
    for gain in ("auto", "et"):
        model = HebbianKernelPCA(3, kernel="linear", gain=gain, n_passes=60, random_state=0).fit(X)
        np.testing.assert_allclose(model.explained_variance_, pca.explained_variance_, rtol=1e-5)
        axes = X.T @ model.expansion_.frame[:, 1:]
        np.testing.assert_allclose(np.abs(pca.components_ @ axes), np.eye(3), atol=0.02)


# --- partial_fit


def feed(model, X, size):
    for start in range(0, len(X), size):
        model.partial_fit(X[start : start + size])
    return model


@pytest.mark.parametrize("size", [900, 128, 37])
def test_batches_of_any_size(digits, size):
    model = feed(hebbian(), digits, size)
    check_model(model, digits)
    assert model.n_samples_seen_ == model.landmarks_.shape[0] == 900
    assert captured(model, digits) > 0.98
    assert not model.budget_loss_.any() and not model.novelty_loss_.any()
    assert model.certificate_.kind == "estimate" and repr(model.certificate_)


def test_one_big_batch_is_the_same_as_whole_blocks(digits):
    one, many = feed(hebbian(), digits, 900), feed(hebbian(), digits, 128)
    np.testing.assert_allclose(one.transform(digits), many.transform(digits), atol=1e-10)


def test_the_model_is_valid_after_every_batch(digits):
    model = hebbian(budget=120, novelty=0.02)
    for start in range(0, 600, 60):
        model.partial_fit(digits[start : start + 60])
        check_model(model, digits[:100])
        assert model.n_samples_seen_ == start + 60 and model.landmarks_.shape[0] <= 120


@pytest.mark.parametrize("center", [True, False])
def test_partial_fit_goes_on_from_fit(digits, center):
    model = hebbian(center=center).fit(digits[:500])
    before = model.eigenvalues_
    model.partial_fit(digits[500:510])
    check_model(model, digits)
    assert model.n_samples_seen_ == 510 and model.landmarks_.shape[0] == 510
    np.testing.assert_allclose(model.eigenvalues_, before * 510 / 500, rtol=0.1)
    assert not hasattr(model, "eigenvectors_")
    feed(model, digits[510:], 130)
    if center:
        assert captured(model, digits) > 0.98
    model.fit(digits[:500])
    assert not hasattr(model, "landmarks_") and model.n_samples_seen_ == 500
    np.testing.assert_allclose(model.eigenvalues_, before)


def test_a_published_rule_read_as_it_is_can_go_on(digits):
    model = hebbian(gain="t", readout="free", n_passes=3).fit(digits[:300])
    assert captured(model.partial_fit(digits[300:]), digits) > 0.95
    check_model(model, digits)


def test_budget_is_held_and_its_loss_reported(digits):
    kept, losses = [], []
    for budget in (60, 250):
        model = feed(hebbian(budget=budget), digits, 100)
        check_model(model, digits)
        assert model.landmarks_.shape[0] == budget and model.budget_loss_.shape == (6,)
        kept.append(captured(model, digits))
        losses.append(model.budget_loss_[1:].sum())
    assert losses[0] > losses[1] > 0 and 0.8 < kept[0] < kept[1]


def test_novelty_decides_who_joins(digits):
    """Rows that are no news move the directions, and what that loses is measured."""
    points, losses, kept = [], [], []
    for novelty in (0.3, Novelty(threshold=0.1), 0.03):
        model = feed(hebbian(novelty=novelty), digits, 100)
        check_model(model, digits)
        assert model.n_samples_seen_ == 900 and not model.budget_loss_.any()
        points.append(model.landmarks_.shape[0])
        losses.append(model.novelty_loss_[1:].sum())
        kept.append(captured(model, digits))
    assert points == sorted(points) and points[0] < 200 and points[2] < 900
    assert losses == sorted(losses, reverse=True) and losses[2] > 0
    assert kept[0] > 0.9 and kept[2] > 0.97


def test_rows_that_do_not_join_are_learned_from(digits):
    """The same points, but a mean that moved: the model has seen all rows."""
    first, rest = digits[:200], np.repeat(digits[:1], 300, axis=0)
    model = hebbian(novelty=0.01).partial_fit(first)
    points = model.landmarks_.shape[0]
    before = model.reconstruction_error(digits[:1])[0]
    model.partial_fit(rest)
    assert model.landmarks_.shape[0] == points and model.n_samples_seen_ == 500
    assert model.novelty_loss_.max() < 1e-2
    assert model.reconstruction_error(digits[:1])[0] < 0.5 * before


def test_repeated_rows_never_join_twice(digits):
    model = hebbian(novelty=1e-3)
    for _ in range(4):
        model.partial_fit(digits[:150])
    points = model.landmarks_.shape[0]
    assert points <= 150 and model.n_samples_seen_ == 600


def test_forgetting_follows_drift(digits):
    there = np.ascontiguousarray(digits[:, ::-1])
    stays, follows = (
        captured(feed(hebbian(budget=300, forgetting=f), np.vstack([digits, there]), 128), there)
        for f in (1.0, 0.99)
    )
    assert follows > 0.9 and follows > stays


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_streams(X, dtype):
    A = sparse.csr_array(np.where(X > 0.5, X, 0.0).astype(dtype))
    one, two = hebbian(novelty=0.01, budget=90), hebbian(novelty=0.01, budget=90)
    for start in range(0, 300, 100):
        one.partial_fit(A[start : start + 100])
        two.partial_fit(A[start : start + 100].toarray())
    assert sparse.issparse(one.landmarks_) and one.transform(A).dtype == dtype
    np.testing.assert_allclose(one.transform(A), two.transform(A.toarray()), atol=1e-4)
    one.partial_fit(A[:50].toarray())
    two.partial_fit(A[:50])
    assert sparse.issparse(one.landmarks_) and not sparse.issparse(two.landmarks_)


def test_interrupt_in_a_stream_leaves_the_block_before(digits):
    calls = []

    def kernel(x, z):
        calls.append(1)
        if len(calls) > 3000:
            raise KeyboardInterrupt
        return float(np.exp(-GAMMA * np.sum((x - z) ** 2)))

    model = HebbianKernelPCA(2, kernel=kernel, oversampling=2, block=10)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(digits[:100])
    seen = model.n_samples_seen_
    assert 0 < seen < 100 and seen % 10 == 0 and model.landmarks_.shape[0] == seen
    calls.clear()
    assert np.isfinite(model.transform(digits[:3])).all()


def test_nothing_to_learn_from_equal_rows():
    rows = np.ones((40, 3))
    for novelty in (None, 0.1):
        model = hebbian(2, novelty=novelty, kernel="linear", gamma=None).partial_fit(rows)
        np.testing.assert_allclose(model.transform(rows), 0, atol=1e-6)
    model = hebbian(2, novelty=0.1, budget=5, kernel="linear", gamma=None)
    np.testing.assert_allclose(model.partial_fit(0 * rows).transform(rows), 0, atol=1e-6)


def test_rows_come_back_from_a_stream(digits):
    model = feed(hebbian(8, budget=200), digits, 150)
    back = model.inverse_transform(model.transform(digits[:20]))
    assert back.shape == (20, 64) and np.isfinite(back).all()
    spread = np.linalg.norm(digits[:20] - digits.mean(axis=0), axis=1).mean()
    assert np.linalg.norm(back - digits[:20], axis=1).mean() < spread


# --- bad input


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"eta0": 0.0}, r"'eta0'.*\(0.*Got 0"),
        ({"eta0": -1.0}, r"'eta0'.*-1"),
        ({"gain": ConstantGain(eta0=-1.0)}, "'eta0' parameter of ConstantGain must be"),
        ({"mu": -0.1}, r"'mu'.*-0\.1"),
        ({"xi": 1.5}, r"'xi'.*1\.5"),
        ({"scale": 0}, r"'scale'.*0"),
        ({"n_passes": 0}, r"'n_passes'.*\[1.*Got 0"),
        ({"gain": "adam"}, r"'gain'.*'auto'.*'adam'"),
        ({"readout": "best"}, r"'readout'.*'ritz'.*'best'"),
        ({"oversampling": -1}, r"'oversampling'.*-1"),
        ({"block": 0}, r"'block'.*0"),
        ({"forgetting": 0.0}, r"'forgetting'.*0"),
        ({"novelty": 0.0}, r"'novelty'.*0"),
        ({"budget": 1}, r"'budget'.*1"),
        ({"n_components": 31}, r"n_components=31 needs at least as many rows.*30.*fewer"),
        ({"memory": "1kB"}, r"memory=1 kB cannot hold one tile.*ive at least"),
    ],
    ids=str,
)
def test_bad_parameters(params, match):
    with pytest.raises(ValueError, match=match):
        hebbian(
            **{"r": 2} | {("r" if k == "n_components" else k): v for k, v in params.items()}
        ).fit(generator(4).random((30, 4)))


def test_bad_rows(X):
    bad = X.copy()
    bad[3, 2] = np.nan
    for method in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match="contains NaN"):
            getattr(hebbian(), method)(bad)
        with pytest.raises(ValueError, match=r"n_components=5 needs at least as many rows.*4"):
            getattr(hebbian(), method)(X[:4])
        with pytest.raises(ValueError, match=r"0 sample"):
            getattr(hebbian(), method)(X[:0])
    model = hebbian().partial_fit(X)
    scores = model.transform(X)
    for rows, match in [(bad, "contains NaN"), (X[:, :9], "X has 9 features.*expecting 64")]:
        with pytest.raises(ValueError, match=match):
            model.partial_fit(rows)
    np.testing.assert_array_equal(model.transform(X), scores)
    with pytest.raises(ValueError, match=r"X has 9 features.*expecting 64"):
        hebbian().fit(X).partial_fit(X[:, :9])


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"budget": 5}, r"budget=5 points cannot hold n_components=5.*larger budget"),
        ({"novelty": Novelty()}, r"needs a threshold.*Novelty\(threshold=0\.1\)"),
        ({"kernel": "precomputed", "gamma": None}, r"partial_fit needs rows.*precomputed"),
        ({"memory": "1MB"}, r"=1 MB cannot hold .*300 points.*a budget.*2\.92 MB"),
    ],
    ids=str,
)
def test_bad_streams(X, params, match):
    with pytest.raises(ValueError, match=match):
        hebbian(**params).partial_fit(X)


def test_a_stream_inside_its_memory(X):
    model = hebbian(memory="1MB", budget=80, block=20)
    feed(model, X, 100)
    assert peak_bytes(lambda: model.partial_fit(X)) < 10**6 + 400_000


# --- Gram power through KernelPCA


def power(r=5, **params):
    settings = {"kernel": "rbf", "gamma": GAMMA, "eigen_solver": "gram-power", "random_state": 0}
    return KernelPCA(r, **settings | params)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_gram_power_is_near_exact_in_one_pass(digits, dtype):
    X = digits.astype(dtype)
    model, exact = power().fit(X), power(eigen_solver="dense").fit(X)
    assert model.eigenvalues_.dtype == dtype and model.certificate_.n_passes == 2
    np.testing.assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=1e-4)
    assert captured(model, digits) > 1 - 1e-4
    assert not model.certificate_.converged  # one pass is not that near


def test_gram_power_goes_on_to_a_tolerance(X):
    model = power(tol=1e-8).fit(X)
    exact = power(eigen_solver="dense").fit(X)
    np.testing.assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=1e-12)
    assert model.certificate_.relative_residual <= 1e-8


@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_gram_power_every_kernel(kernel):
    X = generator(5).random((120, 4))
    data = X @ X.T if kernel == "precomputed" else X
    model = KernelPCA(3, kernel=kernel, eigen_solver="gram-power", random_state=0).fit(data)
    K = data if kernel == "precomputed" else model.kernel_(data)
    np.testing.assert_allclose(model.eigenvalues_, oracle.eigenpairs(K, 3)[0], rtol=1e-4)


def test_gram_power_objects(X):
    with pytest.warns(ConvergenceWarning, match="allow more passes"):
        power(12, eigen_solver=GramPower(block=1)).fit(X)
    published = power(eigen_solver=GramPower(block=1, amnesic=2, n_passes=5)).fit(X)
    assert not published.certificate_.converged
    blocks = power(eigen_solver=GramPower(block=50, oversampling=20)).fit(X)
    assert captured(published, X) > 0.9
    assert captured(blocks, X) > 1 - 1e-5
    np.testing.assert_allclose(blocks.fit_transform(X), blocks.transform(X), atol=1e-2)


@pytest.mark.parametrize("memory", [2 * 10**6, 5 * 10**6, 30 * 10**6])
def test_gram_power_memory_stays_inside_the_budget(memory):
    n, r = 4000, 4
    X = generator(6).standard_normal((n, 3))
    settings = {"gamma": 0.1, "copy_X": False, "n_jobs": 1}
    power(r, **settings).fit(X[:400])
    model = power(r, memory=memory, **settings)
    used = peak_bytes(lambda: model.fit(X))
    # Beside the budget: vectors, and a block of the least size where the budget is tiny.
    assert used <= memory + 8 * n * 12 * (r + 10) + 400_000, f"{used / 1e6:.1f} MB"


def test_linear_gram_power_is_ccipca():
    """On centered data with a linear kernel Gram power finds the axes of plain PCA."""
    X = load_digits().data[:400] / 16
    pca = PCA(4).fit(X)
    model = KernelPCA(4, kernel="linear", eigen_solver="gram-power", random_state=0).fit(X)
    np.testing.assert_allclose(model.explained_variance_, pca.explained_variance_, rtol=1e-6)
    axes = X.T @ model.expansion_.frame[:, 1:]
    np.testing.assert_allclose(np.abs(pca.components_ @ axes), np.eye(4), atol=2e-3)


@pytest.mark.parametrize("kind", ["equal", "nearly equal", "zero", "two", "equal then others"])
@pytest.mark.parametrize("draw", range(6))
def test_streams_of_rows_without_variance(draw, kind):
    """Rounding is no variance: nothing overflows, warns or is not a number."""
    rng = generator(51, draw)
    n, d, size = int(rng.integers(5, 200)), int(rng.integers(1, 6)), 10 ** rng.uniform(-3, 4)
    equal = np.tile(size * rng.standard_normal(d), (n, 1))
    rows = {
        "equal": equal,
        "nearly equal": equal * (1 + 1e-15 * rng.standard_normal(equal.shape)),
        "zero": 0 * equal,
        "two": np.repeat(equal[:2] * [[1], [-2]], n, axis=0),
        "equal then others": np.vstack([equal, size * rng.standard_normal((n, d))]),
    }[kind]
    for kernel in ("poly", "linear", "rbf", "laplacian", "cosine"):
        settings = {"kernel": kernel, "degree": int(rng.integers(1, 6)), "coef0": rng.integers(2)}
        settings["gamma"] = None
        options = [{}, {"budget": 4}, {"novelty": 0.01}, {"forgetting": 0.9, "budget": 6}][draw % 4]
        model = HebbianKernelPCA(2, block=int(rng.integers(2, 40)), **settings, **options)
        for start in range(0, len(rows), 50):
            batch = rows[start : start + 50]
            model.partial_fit(batch if start or len(batch) > 1 else rows)
            values = model.eigenvalues_
            norm = float(np.abs(model.kernel_.diag(rows)).mean())
            if not kind.startswith(("two", "equal then")):
                assert (values <= 1e-10 * (norm or 1e-15) * len(rows)).all()
            assert np.isfinite(model.transform(rows)).all() and np.isfinite(values).all()
            assert np.isfinite([model.budget_loss_, model.novelty_loss_]).all()
            assert (model.explained_variance_ratio_ <= 1).all()


def test_landmarks_are_learned_on_row_by_row_and_go_on_as_a_stream():
    rng = generator(8, 1)
    X = rng.standard_normal((700, 3)) * [3, 2, 1]
    given = {"kernel": "rbf", "gamma": 0.05, "basis": Landmarks(points=X[:25])}
    exact = KernelPCA(3, **given).fit(X)
    model = HebbianKernelPCA(3, n_passes=12, random_state=0, **given).fit(X)
    assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=1e-6)
    assert_allclose(np.abs(model.transform(X)), np.abs(exact.transform(X)), atol=1e-3)
    assert model.certificate_.kind == exact.certificate_.kind
    assert model.landmarks_.shape == (25, 3) and len(model.history_.changes) == 12
    assert model.partial_fit(X[:100]).n_samples_seen_ == 800
    for settings in ({"scale": 1.0}, {"track_excess": True}):
        with pytest.raises(ValueError, match="needs a coefficient for each row"):
            HebbianKernelPCA(3, **given, **settings).fit(X)
    with pytest.raises(ValueError, match="eigenvalue_estimate= needs a coefficient"):
        HebbianKernelPCA(3, gain="et", eigenvalue_estimate="running", **given).fit(X)
