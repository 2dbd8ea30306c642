"""Streams: batches do not matter, what is lost is counted, bad batches leave no trace."""

import itertools
import pickle
from concurrent.futures import ThreadPoolExecutor
from copy import copy, deepcopy
from dataclasses import replace

import numpy as np
import oracle
import pytest
from contracts import generator, peak_bytes
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits

from mercer import HebbianKernelPCA, KernelPCA, StreamingKernelPCA, load
from mercer.bases import AllPoints, FourierGrid, Landmarks, RandomFeatures
from mercer.compute import LocalEngine
from mercer.exceptions import MercerWarning
from mercer.fitting.functions import RowSample, uniforms
from mercer.kernels import RBF
from mercer.selectors import Novelty
from mercer.stream.components import leading_pairs, stream_problem
from mercer.stream.dictionary import GrowingDictionary
from mercer.stream.moments import Stream

R = 4
RBF_SETTINGS = {"kernel": "rbf", "gamma": 0.1}


def rows(n=300, d=5, key=0):
    """Rows on a curve with some noise: a smooth spectrum, and news that become rarer."""
    rng = generator(n, d, key)
    t = rng.uniform(0, 4, n)
    curve = np.column_stack([np.cos((k + 1) * t) * 2 / (k + 1) for k in range(d)])
    return curve + 0.15 * rng.standard_normal((n, d))


def model(**params):
    settings = {"n_components": R, "budget": 60, "novelty": 0.05, "random_state": 0, "n_jobs": 1}
    return StreamingKernelPCA(**settings | RBF_SETTINGS | params)


def learned(X, cuts, **params):
    """The model after batches that end at `cuts`."""
    one = model(**params)
    for start, stop in zip([0, *cuts], [*cuts, X.shape[0]], strict=True):
        if stop > start:
            one.partial_fit(X[start:stop])
    return one


def cuts_of(n, batches, key=0):
    return np.sort(generator(key, batches).choice(np.arange(1, n), batches - 1, replace=False))


BASES = {
    "dictionary": {},
    "full dictionary": {"budget": 12},
    "every row": {"novelty": 0.0, "budget": 200, "gamma": 2.0},
    "polynomial": {"kernel": "poly", "degree": 2, "gamma": 0.5},
    "laplacian": {"kernel": "laplacian", "novelty": 0.2},
    "linear": {"kernel": "linear", "gamma": None},
    "not centered": {"center": False},
    "features": {"basis": "features"},
    "landmarks": {"basis": Landmarks(points=rows(40, key=1))},
}


@pytest.mark.parametrize("name", BASES)
def test_one_batch_or_many(name):
    X = rows()
    once, many = (learned(X, cuts, **BASES[name]) for cuts in ([], cuts_of(300, 15)))
    assert many.n_samples_seen_ == once.n_samples_seen_ == 300
    if hasattr(once, "landmarks_"):
        np.testing.assert_array_equal(once.landmarks_, many.landmarks_)
    np.testing.assert_array_equal(once.X_sample_, many.X_sample_)
    scale = once.eigenvalues_[0]
    np.testing.assert_allclose(many.eigenvalues_, once.eigenvalues_, rtol=0, atol=1e-9 * scale)
    for end in ("eigenvalue_lower", "eigenvalue_upper"):
        bounds = (getattr(one.certificate_, end) for one in (once, many))
        np.testing.assert_allclose(*bounds, rtol=0, atol=1e-7 * scale)
    # The signs too: a linear kernel has as many directions as columns, the last ones noise.
    S, T = once.transform(X), many.transform(X)
    np.testing.assert_allclose(S, T, rtol=0, atol=1e-9 * np.abs(S).max())


def test_a_batch_for_every_row():
    X = rows(120, 3)
    once, many = learned(X, []), learned(X, range(1, 120))
    S, T = once.transform(X), many.transform(X)
    np.testing.assert_allclose(S, T, rtol=0, atol=1e-9 * np.abs(S).max())
    assert len(many.history_) == 120


def test_fit_takes_batches():
    X = rows()
    S = model().fit(X).transform(X)
    parts = np.array_split(X, 9)
    for batches in (parts, tuple(parts), (part for part in [*parts, X[:0]])):
        np.testing.assert_allclose(model().fit(batches).transform(X), S, atol=1e-12)
    again = model().fit(rows(key=5))
    np.testing.assert_allclose(again.fit(X).transform(X), S, atol=1e-12)


def replay(K, novelty, budget):
    """The rule row by row, in the coordinates of an orthonormal basis of all rows."""
    values, U = np.linalg.eigh(K)
    Phi = U * np.sqrt(np.maximum(values, 0))
    Q, projected, joined = np.zeros((len(K), 0)), [], []
    for t, phi in enumerate(Phi):
        rest = phi - Q @ (Q.T @ phi)
        if rest @ rest > novelty * (phi @ phi) and len(joined) < budget:
            Q, joined = np.column_stack([Q, rest / np.linalg.norm(rest)]), [*joined, t]
        projected.append(Q @ (Q.T @ phi))
    return np.array(projected), joined


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize(("novelty", "budget"), [(0.05, 60), (0.3, 60), (0.02, 10)])
def test_equals_the_rule_row_by_row(novelty, budget, center):
    X = rows(150)
    K = oracle.kernel_matrix("rbf", X, gamma=0.1)
    P, joined = replay(K, novelty, budget)
    one = learned(X, [3, 50, 51], novelty=novelty, budget=budget, center=center)
    np.testing.assert_array_equal(one.landmarks_, X[joined])
    values, _ = oracle.eigenpairs(P @ P.T, R, center)
    np.testing.assert_allclose(one.eigenvalues_, values, rtol=1e-8)
    lost = np.trace(K) - np.sum(P**2)
    assert one.lost_share_ == pytest.approx(lost / np.trace(K), rel=1e-6)
    early = np.arange(150) <= joined[-1]
    missed = np.trace(K[np.ix_(early, early)]) - np.sum(P[early] ** 2)
    assert one._state.stream.missed[-1] == pytest.approx(missed, rel=1e-6)


def test_all_rows_in_the_dictionary_is_exact():
    X = rows(120)
    one = model(novelty=0.0, budget=200, gamma=0.5).fit(X)
    K = oracle.kernel_matrix("rbf", X, gamma=0.5)
    values, _ = oracle.eigenpairs(K, R)
    np.testing.assert_allclose(one.eigenvalues_, values, rtol=1e-7)
    np.testing.assert_allclose(np.abs(one.transform(X)), np.abs(oracle.scores(K, K, R)), atol=1e-5)
    low, high = one.certificate_.captured_variance
    assert high - low < 1e-5


def weighted(K, w, center):
    """The Gram matrix of weighted rows about their weighted mean."""
    if center:
        H = np.eye(len(K)) - np.outer(np.ones(len(K)), w / w.sum())
        K = H @ K @ H.T
    return np.sqrt(w)[:, None] * K * np.sqrt(w)


def held_share(one, K, X, w, center):
    """The share of the true weighted variance along the directions of the model."""
    P = one.expansion_.basis.project(X, one.expansion_.frame[:, 1:])
    P = P - (w @ P / w.sum() if center else 0.0)
    return np.sum(w[:, None] * P**2) / np.trace(weighted(K, w, center))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("forgetting", [1.0, 0.98])
@pytest.mark.parametrize(("novelty", "budget"), [(0.3, 60), (0.05, 60), (0.02, 8)])
def test_the_certificate_holds(novelty, budget, forgetting, center, seed):
    X = rows(160, 3, seed)
    if seed % 2:
        X = X[np.argsort(X[:, 0])]  # a drift: points join until the end
    one = learned(X, [20, 90], novelty=novelty, budget=budget, forgetting=forgetting, center=center)
    K = oracle.kernel_matrix("rbf", X, gamma=0.1)
    w = forgetting ** np.arange(len(X) - 1, -1, -1)
    exact = np.linalg.eigvalsh(weighted(K, w, center))[::-1][:R]
    certificate = one.certificate_
    assert certificate.kind == "bound"
    assert (certificate.eigenvalue_lower <= exact).all()
    assert (exact <= certificate.eigenvalue_upper).all()
    low, high = certificate.captured_variance
    assert low <= held_share(one, K, X, w, center) <= high
    assert (one.eigenvalues_ <= certificate.eigenvalue_upper).all()
    assert (one.eigenvalues_ >= certificate.eigenvalue_lower).all()


def test_a_point_that_joins_late_widens_the_interval_downwards():
    """Early rows are known without what they had along the new point: here that is too much."""
    X = np.vstack([[1.0, 0.0], np.tile([1.0, 0.2], (50, 1)), np.tile([1.0, -1.0], (50, 1))])
    one = StreamingKernelPCA(1, kernel="linear", center=False, novelty=0.1).fit(X)
    exact = np.linalg.eigvalsh(X.T @ X)[-1]
    assert len(one.landmarks_) == 2
    assert one.eigenvalues_[0] > exact + 1
    assert one.certificate_.eigenvalue_lower[0] <= exact <= one.certificate_.eigenvalue_upper[0]


def test_the_interval_closes_while_nothing_joins():
    """Rows seen before are no news, and what they missed at first is missed no more."""
    X, gaps = rows(), []
    one = model(novelty=0.2)
    for _ in range(6):
        one.partial_fit(X)
        gaps.append(1 - one.certificate_.eigenvalue_lower[0] / one.eigenvalues_[0])
    assert [record.joined for record in one.history_[1:]] == [0] * 5
    assert [record.size for record in one.history_] == [len(one.landmarks_)] * 6
    # Against the second pass: the first turns the components to the points that joined.
    assert gaps[1] > 1e-4 and gaps[-1] < 0.6 * gaps[1]
    lost = [record.lost_share for record in one.history_]
    assert 0 < lost[1] < lost[0], "the points that joined serve the rows before them now"
    assert lost[1] == pytest.approx(lost[-1])


def test_a_full_dictionary_measures_what_it_loses():
    X = rows()
    one = learned(X, [100], budget=10)
    assert len(one.landmarks_) == 10
    chosen = [int(np.flatnonzero((z == X).all(axis=1))[0]) for z in one.landmarks_]
    K = oracle.kernel_matrix("rbf", X, gamma=0.1)
    least = oracle.projection_error(K, chosen)
    # Rows before the tenth point lost a little more than the final span leaves.
    assert least <= one.lost_share_ <= least + 0.05 * (chosen[-1] + 1) / len(X)
    assert all(record.size <= 10 for record in one.history_)


@pytest.mark.parametrize("center", [True, False])
def test_fixed_landmarks_equal_kernel_pca(center):
    X, Z = rows(), rows(40, key=1)
    one = learned(X, cuts_of(300, 5), basis=Landmarks(points=Z), center=center)
    other = KernelPCA(R, basis=Landmarks(points=Z), center=center, **RBF_SETTINGS).fit(X)
    np.testing.assert_allclose(one.eigenvalues_, other.eigenvalues_, rtol=1e-8)
    # All rows at once are judged as well by what they leave outside the span, and an array by a
    # product with its kernel matrix.
    uppers = [m.certificate_.eigenvalue_upper for m in (other, clone(one).fit(X), one)]
    assert np.all(np.diff(uppers, axis=0) >= -1e-6)
    np.testing.assert_allclose(
        one.reconstruction_error(X), other.reconstruction_error(X), atol=1e-7
    )
    np.testing.assert_allclose(one.explained_variance_, other.explained_variance_, rtol=1e-8)
    np.testing.assert_allclose(
        one.explained_variance_ratio_, other.explained_variance_ratio_, rtol=1e-8
    )


def test_features_are_estimates():
    one = model(basis="features").fit(rows())
    assert one.certificate_.kind == "estimate"
    assert not hasattr(one, "landmarks_")
    with pytest.warns(UserWarning, match="indefinite on these data"):
        assert model(kernel="sigmoid").fit(rows()).certificate_.kind == "estimate"


@pytest.mark.parametrize("basis", ["dictionary", "features"])
def test_forgetting_weighs_rows_not_batches(basis):
    X = rows()
    params = {"forgetting": 0.97, "basis": basis}
    once, many = (learned(X, cuts, **params) for cuts in ([], cuts_of(300, 20)))
    np.testing.assert_allclose(many.eigenvalues_, once.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(once.transform(X), many.transform(X), atol=1e-8)
    assert once._state.stream.moments.count == pytest.approx((1 - 0.97**300) / 0.03)


@pytest.mark.filterwarnings("ignore:The dictionary is full")
@pytest.mark.parametrize("draw", range(6))
def test_signs_of_a_stream_that_forgets_do_not_depend_on_batches(draw):
    rng = np.random.default_rng()
    n = int(rng.integers(150, 700))
    X = rng.standard_normal((n, 3)) * [1, 2, 3] + np.linspace(0, rng.uniform(0, 3), n)[:, None]
    params = {"forgetting": 1 - 10 ** rng.uniform(-3, -1), "budget": 40, "gamma": 0.05}
    cuts = np.sort(rng.choice(np.arange(1, n), int(rng.integers(1, 12)), replace=False))
    once, many = learned(X, [], **params), learned(X, cuts, **params)
    np.testing.assert_allclose(once.transform(X[:20]), many.transform(X[:20]), atol=1e-7)


def test_forgetting_follows_a_drift():
    """After a change of the data the old ones no longer count."""
    old, new = rows(400, 3, 1), rows(400, 3, 2) @ np.diag([0.2, 1, 3]) + 4.0
    params = {"novelty": 0.01, "budget": 200}
    fresh = model(**params).fit(new)
    follower = model(**params, forgetting=0.98).fit([old, new])
    keeper = model(**params).fit([old, new])
    assert follower.score(new) > keeper.score(new)
    assert follower.score(new) > 1.2 * fresh.score(new)  # scores are negative


def test_merge_adds_rows():
    X, Z = rows(400), rows(40, key=1)
    parts = [model(basis=Landmarks(points=Z)).fit(part) for part in (X[:150], X[150:])]
    merged = parts[0].merge(parts[1])
    whole = model(basis=Landmarks(points=Z)).fit(X)
    assert merged is parts[0] and merged.n_samples_seen_ == 400
    np.testing.assert_allclose(merged.eigenvalues_, whole.eigenvalues_, rtol=1e-10)
    np.testing.assert_allclose(np.abs(merged.transform(X)), np.abs(whole.transform(X)), atol=1e-8)
    assert parts[1].n_samples_seen_ == 250, "the other model is left as it is"
    merged.partial_fit(rows(10, key=9))
    assert merged.n_samples_seen_ == 410


def test_merge_random_features():
    X = rows(400)
    parts = [model(basis="features").fit(part) for part in (X[:150], X[150:])]
    whole = model(basis="features").fit(X)
    np.testing.assert_allclose(
        parts[0].merge(parts[1]).eigenvalues_, whole.eigenvalues_, rtol=1e-10
    )


@pytest.mark.parametrize("grown_first", [True, False])
def test_merge_a_grown_dictionary_with_its_copies(grown_first):
    X = rows(400)
    grown = model(budget=8).fit(X[:200])
    fixed = model(basis=Landmarks(points=grown.landmarks_)).fit(X[200:])
    merged = grown.merge(fixed) if grown_first else fixed.merge(grown)
    whole = model(budget=8).fit(X)
    np.testing.assert_allclose(merged.eigenvalues_, whole.eigenvalues_, rtol=1e-7)
    exact, _ = oracle.eigenpairs(oracle.kernel_matrix("rbf", X, gamma=0.1), R)
    assert (merged.certificate_.eigenvalue_lower <= exact).all()
    assert (merged.certificate_.eigenvalue_upper >= exact).all()
    merged.partial_fit(X)
    assert merged.n_samples_seen_ == 800


def test_merge_refuses_what_does_not_add_up():
    X = rows()
    one = model().fit(X)
    with pytest.raises(ValueError, match="different landmarks or features"):
        one.merge(model().fit(X[::-1]))
    with pytest.raises(ValueError, match="different landmarks or features"):
        one.merge(model(basis="features").fit(X))
    with pytest.raises(ValueError, match="different landmarks or features"):
        model(basis="features").fit(X).merge(model(basis="features", random_state=1).fit(X))
    with pytest.raises(ValueError, match=r"different kernels, RBF\(gamma=0.1\)"):
        one.merge(model(gamma=0.2).fit(X))
    with pytest.raises(TypeError, match="StreamingKernelPCA, and got KernelPCA"):
        one.merge(KernelPCA(2).fit(X))
    with pytest.raises(ValueError, match="not fitted"):
        one.merge(model())
    assert one.n_samples_seen_ == 300


def cosines(before, after):
    """Inner products of the directions of two times, (r, r)."""
    A, B = before.expansion_.frame[:, 1:], after.expansion_.frame[:, 1:]
    return A.T @ after.expansion_.basis.gram(B)[: len(A)]


@pytest.mark.parametrize("forgetting", [1.0, 0.995])
def test_signs_stay_from_batch_to_batch(forgetting):
    rng = generator(3)
    X = rng.standard_normal((3000, 6)) * [5, 4, 3, 2, 1.5, 0.5]
    one = StreamingKernelPCA(4, kernel="linear", forgetting=forgetting).fit(X[:200])
    for start in range(200, 3000, 50):
        before = pickle.loads(pickle.dumps(one))
        one.partial_fit(X[start : start + 50])
        C = cosines(before, one)
        nearest = C[np.argmax(np.abs(C), axis=0), np.arange(4)]
        assert (nearest > 0).all()


def test_signs_go_with_directions_where_eigenvalues_cross():
    rng = generator(4)
    first = rng.standard_normal((500, 3)) * [3, 1, 0.1]
    second = rng.standard_normal((3000, 3)) * [0.5, 4, 0.1]
    one = StreamingKernelPCA(2, kernel="linear", novelty=0.0).fit(first)
    before, probe = pickle.loads(pickle.dumps(one)), np.eye(3)[:2]
    start = probe @ before.expansion_.basis.points.T @ before.expansion_.frame[:, 1:]
    for part in np.array_split(second, 40):
        one.partial_fit(part)
        assert (np.diff(one.eigenvalues_) <= 0).all()
    end = probe @ one.expansion_.basis.points.T @ one.expansion_.frame[:, 1:]
    assert abs(start[0, 0]) > 0.9 and abs(end[0, 1]) > 0.9, "the eigenvalues have crossed"
    assert start[0, 0] * end[0, 1] > 0 and start[1, 1] * end[1, 0] > 0


def test_fewer_rows_than_components():
    X = rows(20)
    one = model(n_components=6).partial_fit(X[:1])
    assert one.transform(X).shape == (20, 6) and not one.transform(X).any()
    one.partial_fit(X[1:4])
    assert np.sum(one.eigenvalues_ > 0) <= 3
    S = one.transform(X)
    assert S.shape == (20, 6) and S[:, 0].any() and not S[:, 3:].any()
    assert np.isfinite(one.reconstruction_error(X)).all()
    one.partial_fit(X[4:])
    assert (one.eigenvalues_[:6] > 0).all()


def state(one):
    return one.n_samples_seen_, one.transform(rows(7)), len(one.landmarks_), len(one.history_)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda X: np.where(X[3, 2] == X, np.nan, X), "contains NaN"),
        (lambda X: np.where(X[3, 2] == X, np.inf, X), "contains infinity"),
        (lambda X: X[:, :3], "3 features.*expecting 5"),
        (lambda X: X[0], "1D array"),
        (lambda X: [["a"] * 5], "Row 0, column 0.*'a'"),
    ],
)
def test_a_bad_batch_leaves_the_model_as_it_was(spoil, message):
    X = rows()
    one = model().fit(X)
    before = state(one)
    with pytest.raises(ValueError, match=message):
        one.partial_fit(spoil(rows(50, key=1)))
    with pytest.raises(ValueError, match=message):
        model().fit(iter([X, spoil(rows(50, key=1))]))
    for old, new in zip(before, state(one), strict=True):
        np.testing.assert_array_equal(old, new)


def test_a_source_that_fails_leaves_the_model_as_it_was():
    def source():
        yield rows(30, key=3)
        raise OSError("the disk is gone")

    one = model().fit(rows())
    before = state(one)
    with pytest.raises(OSError, match="the disk is gone"):
        one.fit(source())
    for old, new in zip(before, state(one), strict=True):
        np.testing.assert_array_equal(old, new)


def test_empty_batches():
    X = rows()
    one = model().fit(X)
    before = state(one)
    one.partial_fit(X[:0])
    for old, new in zip(before, state(one), strict=True):
        np.testing.assert_array_equal(old, new)
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        model().partial_fit(X[:0])
    with pytest.raises(ValueError, match="no batches"):
        model().fit(iter([]))
    assert model().fit(iter([X[:5], X[:0], X[5:]])).n_samples_seen_ == 300
    assert model().fit([X[:0], X]).n_samples_seen_ == 300
    with pytest.raises(ValueError, match="no batches"):
        model().fit([X[:0], X[:0]])


@pytest.mark.parametrize("basis", ["dictionary", "features"])
def test_weights_below_the_smallest_number(basis):
    """Rows whose weights underflow are forgotten, and the rest is as with smaller batches."""
    X = rows(3000)
    params = {"basis": basis, "budget": 20, "forgetting": 0.5, "random_state": 0}
    whole, parts = learned(X, [], **params), learned(X, range(200, 3000, 200), **params)
    np.testing.assert_allclose(whole.eigenvalues_, parts.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(whole.lost_share_, parts.lost_share_, atol=1e-9)


def test_indefinite_kernels_are_told_of():
    with pytest.warns(UserWarning, match=r"Sigmoid.*indefinite.*basis='points'"):
        model(kernel="sigmoid", gamma=0.2, novelty=0.001).fit(rows())


def test_bad_settings():
    X = rows()
    for params, message in [
        ({"kernel": "precomputed", "gamma": None}, "precomputed kernel has none"),
        ({"budget": 3}, "budget=3 cannot give n_components=4"),
        ({"novelty": Novelty()}, "needs a threshold"),
        ({"novelty": 1.0}, "'novelty' parameter"),
        ({"forgetting": 0.0}, "'forgetting' parameter"),
        ({"forgetting": 1.1}, "'forgetting' parameter"),
        ({"basis": "points"}, "'basis' parameter"),
        ({"basis": AllPoints()}, "keeps every row"),
        ({"basis": RandomFeatures(10), "kernel": "cosine", "gamma": None}, "No random features"),
        ({"memory": 10_000}, "cannot hold the moments of 60"),
        ({"basis": Landmarks(points=np.ones((3, 2)))}, r"shape \(m, 5\)"),
    ]:
        with pytest.raises(ValueError, match=message):
            model(**params).partial_fit(X)
    with pytest.raises(ValueError, match=r"k\(x, x\) = 0"):
        StreamingKernelPCA(2, kernel="linear").partial_fit(np.zeros((5, 3)))
    with pytest.raises(ValueError, match="negative"):
        model(kernel="chi2").partial_fit(-np.abs(X))
    with pytest.raises(ValueError, match="not fitted"):
        model().transform(X)


def test_rows_that_are_all_equal():
    with pytest.warns(UserWarning, match="no variance"):
        one = model().fit(np.ones((30, 3)))
    assert len(one.landmarks_) == 1 and not one.eigenvalues_.any()
    assert not one.transform(np.ones((2, 3))).any()


def test_copies_join_once():
    X = np.tile(rows(10), (40, 1))
    one = model(novelty=0.0, budget=60).fit(X)
    assert len(one.landmarks_) == 10


@pytest.mark.parametrize("draw", range(5))
@pytest.mark.parametrize("basis", ["dictionary", "features", "fourier"])
def test_signs_of_a_fit_do_not_depend_on_the_order_of_rows(basis, draw):
    """Batches that follow keep them."""
    rng = generator(31, draw)
    X = rng.standard_normal((int(rng.integers(8, 300)), 2)) * [3, 1]
    settings = {"basis": FourierGrid(box=[(-15, 15)] * 2) if basis == "fourier" else basis}
    settings |= {"kernel": "rbf", "gamma": 0.02, "novelty": 0.0, "budget": 400}
    one = StreamingKernelPCA(2, random_state=draw, **settings)
    scores = one.fit(X).transform(X)
    for _ in range(3):
        order = rng.permutation(len(X))
        assert (np.sum(one.fit(X[order]).transform(X) * scores, axis=0) > 0).all()
        one.partial_fit(X[order])
        assert (np.sum(one.transform(X) * scores, axis=0) > 0).all()


@pytest.mark.parametrize("basis", ["dictionary", "features"])
def test_sparse_batches(basis):
    X = np.where(generator(8).uniform(size=(100, 12)) < 0.3, 1.0, 0.0)
    X[:, 0] += np.arange(100) / 50
    dense = model(basis=basis).partial_fit(X)
    for batches in (
        [sparse.csr_matrix(X)],
        [sparse.csr_array(X[:40]), X[40:]],
        [X[:40], sparse.csr_matrix(X[40:])],
    ):
        one = model(basis=basis)
        for batch in batches:
            one.partial_fit(batch)
        np.testing.assert_allclose(one.transform(X), dense.transform(X), atol=1e-9)
        sparse_scores = one.transform(sparse.csr_matrix(X))
        np.testing.assert_allclose(sparse_scores, dense.transform(X), atol=1e-9)


def test_single_precision():
    X = rows()
    double, single = model().fit(X), model().fit(X.astype(np.float32))
    assert single.transform(X.astype(np.float32)).dtype == np.float32
    assert single.eigenvalues_.dtype == np.float32
    np.testing.assert_allclose(single.eigenvalues_, double.eigenvalues_, rtol=1e-5)
    np.testing.assert_array_equal(
        single.landmarks_,
        X.astype(np.float32)[
            [int(np.flatnonzero((z == X).all(axis=1))[0]) for z in double.landmarks_]
        ],
    )


def test_files(tmp_path):
    X = rows()
    file = np.memmap(tmp_path / "rows", np.float64, "w+", shape=X.shape)
    file[...] = X
    np.save(tmp_path / "rows.npy", X)
    S = model().fit(X).transform(X)
    for source in (file, tmp_path / "rows.npy", str(tmp_path / "rows.npy")):
        np.testing.assert_allclose(model().fit(source).transform(X), S, atol=1e-12)
    model().fit(X).transform(tmp_path / "rows.npy", out=tmp_path / "scores.npy")
    np.testing.assert_allclose(np.load(tmp_path / "scores.npy"), S, atol=1e-12)
    with pytest.raises(FileNotFoundError):
        model().fit("no such file.npy")


def test_back_to_rows():
    X = load_digits().data[:600] / 16
    one = StreamingKernelPCA(20, kernel="rbf", gamma=0.05, budget=150, n_jobs=1).fit(X)
    back = one.inverse_transform(one.transform(X[:20]))
    assert np.mean((back - X[:20]) ** 2) < 0.5 * np.mean((X.mean(axis=0) - X[:20]) ** 2)
    noisy = X[:20] + 0.3 * generator(6).standard_normal((20, 64))
    assert np.mean((one.denoise(noisy) - X[:20]) ** 2) < 0.5 * np.mean((noisy - X[:20]) ** 2)
    features = clone(one).set_params(basis="features", preimage="ridge").fit(X)
    assert features.inverse_transform(features.transform(X[:3])).shape == (3, 64)
    assert one.score(X) == pytest.approx(-one.reconstruction_error(X).mean())


def test_settings_may_change_between_batches():
    X = rows()
    one = model(budget=6).fit(X[:100])
    assert len(one.landmarks_) == 6
    one.set_params(budget=9, n_components=7).partial_fit(X[100:])
    assert len(one.landmarks_) == 9 and one.transform(X).shape == (300, 7)


@pytest.mark.parametrize("basis", ["dictionary", "features"])
def test_memory_does_not_grow(basis):
    """O(m^2 + m d) and a block, whatever the number of rows, and within the budget."""
    m, memory = 60, 2 * 10**6
    X = generator(7).standard_normal((6000, 8))
    one = model(basis=basis, budget=m, memory=memory, n_jobs=2, gamma=0.05).fit(X[:1500])
    sample = 2 * 8 * 2000 * (8 + 4)  # the rows kept for pre-images, old and new
    assert peak_bytes(lambda: clone(one).fit(X)) <= memory + sample + 400_000
    # With two threads the peak depends on which blocks meet; with one it is the same every time.
    one.set_params(n_jobs=1)
    small, large = (peak_bytes(lambda n=n: clone(one).fit(X[:n])) for n in (2500, 6000))
    assert large <= small + 10 * 8 * 3500, "a few numbers a row for weights and keys at most"
    assert 8 * 6000 * m > large or basis == "features"


def test_models_travel():
    X = rows()
    one = model().fit(X[:200])
    other = pickle.loads(pickle.dumps(one)).partial_fit(X[200:])
    one.partial_fit(X[200:])
    np.testing.assert_array_equal(one.transform(X), other.transform(X))


def refused(one):
    with pytest.raises(ValueError, match="NaN"):
        one.partial_fit(np.full((3, one.n_features_in_), np.nan))
    return one


def stored(one, path):
    one.save(path)
    return load(path)


#: What may come between a batch and the first look at the components.
BEFORE_A_LOOK = {
    "nothing": lambda one, path: one,
    "pickle": lambda one, path: pickle.loads(pickle.dumps(one)),
    "copies": lambda one, path: copy(deepcopy(one)),
    "a file": stored,
    "a merge": lambda one, path: one.merge(deepcopy(one)),
    "a bad batch": lambda one, path: refused(one),
    "an empty batch": lambda one, path: one.partial_fit(one.X_sample_[:0]),
    "a page": lambda one, path: [one, one._repr_html_(), one.report(one.X_sample_).save(path)][0],
    "parameters": lambda one, path: one.set_params(n_components=2, center=False, gamma=3.0),
}


@pytest.mark.parametrize("way", BEFORE_A_LOOK)
@pytest.mark.parametrize("draw", range(3))
def test_components_made_when_asked_for_are_those_made_after_every_batch(way, draw, tmp_path):
    rng = generator(draw, 71)
    X = rows(int(rng.integers(100, 300)), 5, key=draw)
    params = BASES[str(rng.choice(sorted(BASES)))] | {"forgetting": rng.choice([1.0, 0.99])}
    lazy, eager = (model(**params).partial_fit(X[:60]) for _ in range(2))
    for batch in np.array_split(X[60:], rng.integers(2, 9)):
        lazy.partial_fit(batch)
        eager.partial_fit(batch).transform(batch)
        assert "eigenvalues_" not in vars(lazy) and "eigenvalues_" in vars(eager)
    path = tmp_path / ("model.html" if way == "a page" else "model.mercer")
    made, expected = (BEFORE_A_LOOK[way](one, path) for one in (lazy, eager))
    for name in ("eigenvalues_", "explained_variance_ratio_", "lost_share_", "gamma_"):
        np.testing.assert_array_equal(getattr(made, name), getattr(expected, name))
    np.testing.assert_array_equal(*(one.certificate_.eigenvalue_upper for one in (made, expected)))
    np.testing.assert_array_equal(made.transform(X), expected.transform(X))
    assert vars(made).keys() == vars(expected).keys()


def test_threads_may_look_at_components_at_once():
    X = rows()
    one = model().fit(X[:100]).partial_fit(X[100:])
    expected = deepcopy(one).transform(X)
    with ThreadPoolExecutor(4) as pool:
        for S in pool.map(one.transform, [X] * 8):
            np.testing.assert_array_equal(S, expected)


def test_dictionary_coordinates_are_orthonormal():
    X, kernel = rows(), RBF(gamma=0.1)
    grown, Y, joined = GrowingDictionary(kernel, 0.05, 40, X[:0]).admit(X)
    np.testing.assert_allclose(grown.factor @ grown.factor.T, kernel(X[joined]), atol=1e-12)
    np.testing.assert_allclose(Y[joined], grown.factor, atol=1e-12)
    np.testing.assert_allclose(
        kernel(X, X[joined]) @ grown.whitener, grown.coordinates(X), atol=1e-9
    )
    np.testing.assert_allclose(Y, grown.coordinates(X), atol=1e-9)
    same, again, nobody = grown.admit(X)
    assert same is grown and not nobody.size
    np.testing.assert_allclose(again, grown.coordinates(X))


@pytest.mark.parametrize("budget", [8, 100])
def test_a_stream_of_blocks_is_one_stream(budget):
    """Full or not, threads take in rows of which none joins; one that does is met in its turn."""
    X = rows(6000, 3)
    X[[900, 2500, 2501, 5900]] += 9.0  # news after a quiet time
    one, several = LocalEngine(10**8, 1), LocalEngine(10**8, 2)
    start = Stream.start(GrowingDictionary(RBF(gamma=0.1), 0.05, budget, X[:0]), 0.9999)
    blocks = start
    for block in np.array_split(X, 50):
        blocks = blocks.learn(block, one)
    for engine in (one, several):
        stream = start.learn(X, engine)
        np.testing.assert_array_equal(stream.span.points, blocks.span.points)
        np.testing.assert_allclose(stream.moments.scatter, blocks.moments.scatter, atol=1e-9)
        np.testing.assert_allclose(stream.missed, blocks.missed, atol=1e-9)
        assert stream.count == 6000
    assert (budget == 8) == blocks.span.full


def test_samples_are_uniform_and_follow_the_memory():
    u = uniforms(np.arange(100_000), 3)
    assert u.min() > 0 and u.max() < 1 and abs(u.mean() - 0.5) < 0.01
    assert abs(np.corrcoef(u[1:], u[:-1])[0, 1]) < 0.02
    number = np.arange(20_000.0)[:, None]
    sample = RowSample(500, 1).add(number[:7000], 0).add(number[7000:], 7000)
    np.testing.assert_array_equal(sample.rows, RowSample(500, 1).add(number, 0).rows)
    assert sample.rows.shape == (500, 1) and abs(sample.rows.mean() - 10_000) < 1500
    recent = RowSample(500, 1).add(number, 0, 0.999).rows
    assert (np.diff(recent.ravel()) > 0).all() and recent.mean() > 17_500


def test_a_full_dictionary_that_is_left_behind_warns():
    """Rows of many places at once, for which there are too few points."""
    rng = np.random.default_rng(0)
    here, wide = 0.1 * rng.standard_normal((300, 3)), 9.0 * rng.standard_normal((300, 3))
    for forgetting in (0.99, 1.0):
        model = StreamingKernelPCA(
            3, kernel="rbf", gamma=0.2, budget=5, novelty=1e-4, forgetting=forgetting
        )
        model.partial_fit(here[:150]).partial_fit(here[150:])
        if forgetting == 1.0:
            model.partial_fit(wide)
        else:
            with pytest.warns(MercerWarning, match="dictionary is full.*Raise budget"):
                model.partial_fit(wide)
        assert model.history_[-1].lost_share > 0.5


def drifting(rng, n, d):
    """Rows about a place that jumps, turns or walks away for good, and the memory to follow it."""
    kind = str(rng.choice(["jumps", "walks", "turns"]))
    steps = rng.standard_normal(d)
    t = np.arange(n)[:, None] / n
    size = 10 ** rng.uniform(0.5, 1.2)
    place = {
        "jumps": size * np.floor(4 * t) * steps,
        "walks": size * t * steps,
        "turns": size * np.hstack([np.sin(6 * t + i) for i in range(d)]),
    }[kind]
    return place + 0.7 * rng.standard_normal((n, d)), kind


@pytest.mark.filterwarnings("ignore:The dictionary is full")  # while a jump is being followed
@pytest.mark.parametrize("seed", range(6))
def test_a_forgetting_stream_follows_any_drift(seed):
    """Its components of the last rows are near the best, and its certificate is true."""
    rng = generator(77, seed)
    n, d, f, r = 1600, int(rng.integers(2, 5)), 0.99, 3
    X, kind = drifting(rng, n, d)
    one = StreamingKernelPCA(
        r, kernel="rbf", gamma=0.2, budget=60, novelty=0.01, forgetting=f, center=False
    )
    cuts = np.sort(rng.choice(np.arange(1, n), 12, replace=False))
    for batch in np.split(X, cuts):
        one.partial_fit(batch)
    left = sum(batch.left for batch in one.history_)
    # Unless those that there are still hold what the rows have.
    assert left > 0 or one.history_[-1].lost_share <= one.novelty, kind
    assert len(one.landmarks_) <= 60
    K = oracle.kernel_matrix("rbf", X[-300:], gamma=0.2)
    w = f ** np.arange(299, -1, -1)
    exact = np.linalg.eigvalsh(weighted(K, w, False))[::-1][:r]
    P = one.transform(X[-300:])
    held = np.sum(w[:, None] * P**2) / exact.sum()
    assert held > 0.9, (kind, held)
    K = oracle.kernel_matrix("rbf", X, gamma=0.2)
    exact = np.linalg.eigvalsh(weighted(K, f ** np.arange(n - 1, -1, -1), False))[::-1][:r]
    assert (one.certificate_.eigenvalue_lower <= exact + 1e-9).all()
    assert (exact <= one.certificate_.eigenvalue_upper + 1e-9).all()


@pytest.mark.filterwarnings("ignore:The dictionary is full")
def test_points_that_leave_do_not_depend_on_batches():
    X, _ = drifting(generator(5), 900, 3)
    params = {"kernel": "rbf", "gamma": 0.3, "budget": 25, "novelty": 0.01, "forgetting": 0.98}
    once = StreamingKernelPCA(3, **params).fit(X)
    many = StreamingKernelPCA(3, **params).fit(np.split(X, [7, 100, 101, 433, 800]))
    np.testing.assert_allclose(many.eigenvalues_, once.eigenvalues_, rtol=1e-8)
    np.testing.assert_array_equal(many.landmarks_, once.landmarks_)
    assert sum(batch.left for batch in many.history_) == once.history_[0].left > 0


def test_the_points_that_leave_explain_least():
    """Of rows projected on all but one point, those without the first to leave keep most."""
    rng = generator(12)
    Z, X = rng.standard_normal((9, 3)), rng.standard_normal((200, 3))
    one = StreamingKernelPCA(2, kernel="rbf", gamma=0.3, novelty=1e-6, center=False)
    stream = one.fit(np.vstack([Z, X]))._state.stream
    span = replace(stream.span, points=Z, factor=stream.span.factor[:9, :9], budget=9)
    Y = span.coordinates(X)
    leaving = span.least_useful(Y.T, 3)
    for number, chosen in enumerate(leaving):
        losses = np.full(9, np.inf)
        for j in set(range(9)) - set(leaving[:number]):
            gone = [*leaving[:number], j]
            smaller, T = span.without(gone)
            np.testing.assert_allclose(T.T @ T, np.eye(8 - number), atol=1e-12)
            np.testing.assert_allclose(smaller.coordinates(X), Y @ T, atol=1e-9)
            losses[j] = np.sum(Y**2) - np.sum((Y @ T) ** 2)
        assert np.argmin(losses) == chosen
    steps = np.diff(
        [0.0, *(np.sum(Y**2) - np.sum((Y @ span.without(leaving[:k])[1]) ** 2) for k in (1, 2, 3))]
    )
    assert len(span.least_useful(Y.T, 3, below=(steps[0] + steps[1]) / 2)) == 1


def test_merged_streams_have_likely_intervals():
    """Even with equal random_state, since kept rows are drawn by what the rows are."""
    X, Z = rows(900), rows(12, key=1)
    params = {"basis": Landmarks(points=Z), "random_state": 0}
    parts = [model(**params).fit(part) for part in (X[:400], X[400:])]
    merged = parts[0].merge(parts[1]).certificate_
    whole = model(**params).fit(X).certificate_
    assert merged.confidence == whole.confidence and merged.confidence is not None
    K = oracle.kernel_matrix("rbf", X, gamma=0.1)
    exact = np.linalg.eigvalsh(oracle.center(K))[::-1][:R]
    assert (merged.likely_lower <= exact).all() and (exact <= merged.likely_upper).all()
    twice = model(**params).fit(X[:400]).merge(model(**params).fit(X[:400]))
    assert twice.certificate_.confidence is None  # the same rows were kept of both


def test_forgetting_means_the_same_in_both_streams():
    """Both follow rows that moved where it is below 1, and neither where it is 1."""
    here = np.random.default_rng(1).standard_normal((400, 3)) * [3.0, 1.0, 0.1]
    there = here[:200, [1, 0, 2]]
    for kind in (StreamingKernelPCA, HebbianKernelPCA):
        kept, moved = (
            kind(1, forgetting=f).partial_fit(here).partial_fit(there) for f in (1.0, 0.98)
        )
        along = [np.ptp(model.inverse_transform([[0.0], [1.0]]), axis=0) for model in (kept, moved)]
        assert along[0][0] > 0.9 and along[1][1] > 0.9, kind


@pytest.mark.parametrize("power", [-27, 0, 27])
def test_a_stream_of_rows_in_any_unit(power):
    """Powers of the matrix, which signs are followed by, stay within the numbers."""
    X = generator(64).standard_normal((90, 6)) * 10.0**power
    options = {"kernel": "poly", "gamma": 1.0, "coef0": 0.0, "degree": 3, "random_state": 0}
    model = StreamingKernelPCA(2, novelty=1e-6, budget=80, **options).fit(X)
    wanted = KernelPCA(2, **options).fit(X)
    np.testing.assert_allclose(model.eigenvalues_, wanted.eigenvalues_, rtol=1e-6)


@pytest.mark.parametrize("scale", [1e-30, 1e-25, 1.0, 1e40, 1e51])
@pytest.mark.parametrize("kind", ["stream", "landmarks"])
def test_bounds_of_large_and_small_kernel_values_are_numbers(kind, scale):
    """Residuals are of the size of the kernel values, and their squares no numbers."""
    X = generator(51).standard_normal((200, 10)) * scale
    options = {"kernel": "poly", "degree": 2, "coef0": 0.0, "gamma": 0.1, "random_state": 0}
    if kind == "stream":
        model = StreamingKernelPCA(1, budget=70, **options)
        for batch in np.array_split(X, 4):
            model.partial_fit(batch)
    else:
        model = KernelPCA(1, basis=Landmarks(50), **options).fit(X)
    known = model.certificate_
    assert np.isfinite(known.eigenvalue_upper).all() and known.widest < 0.5
    assert known.captured_variance[0] > 0.02


def test_the_result_of_a_problem_may_be_asked_for_twice():
    one = model(novelty=0.2).fit(rows())
    problem = stream_problem(one._state.stream, LocalEngine(10**8, 1), True, one._state.reference)
    pairs = leading_pairs(problem, R)
    first, second = (problem.result(pairs) for _ in range(2))
    np.testing.assert_array_equal(first.expansion.frame, second.expansion.frame)
    np.testing.assert_array_equal(first.expansion.frame, one.expansion_.frame)
    for end in ("eigenvalue_lower", "eigenvalue_upper"):
        bounds = [getattr(result.certificate, end) for result in (first, second)]
        np.testing.assert_array_equal(*bounds)


def test_tables_on_disk_keep_their_names(tmp_path):
    """And a batch of a table is taken by name, with the weights of its rows."""
    pa = pytest.importorskip("pyarrow")
    parquet, X = pytest.importorskip("pyarrow.parquet"), rows(60, 3)
    table = pa.table(dict(zip("abc", X.T, strict=True)))
    parquet.write_table(table, tmp_path / "rows.parquet")
    one = model().fit(tmp_path / "rows.parquet")
    assert list(one.feature_names_in_) == ["a", "b", "c"]
    weights = np.arange(60) % 3
    one.partial_fit(table.select(["c", "a", "b"]), sample_weight=weights)
    other = model().fit(X).partial_fit(X, sample_weight=weights)
    np.testing.assert_allclose(one.eigenvalues_, other.eigenvalues_, rtol=1e-9)
    parquet.write_table(table.slice(0, 0), tmp_path / "empty.parquet")
    assert one.partial_fit(tmp_path / "empty.parquet").n_samples_seen_ == other.n_samples_seen_


@pytest.mark.parametrize("make", [StreamingKernelPCA, HebbianKernelPCA])
@pytest.mark.parametrize("seed", range(2))
def test_the_width_does_not_hang_on_how_the_first_rows_come(make, seed, tmp_path):
    """Row by row, in drawn batches or at once, with weights, and through a file on the way."""
    rng = generator(5, seed)
    X = rng.standard_normal((160, 3)) * 10.0 ** rng.uniform(-3, 3)
    streams = make is StreamingKernelPCA
    w = rng.integers(1, 4, 160) if streams and seed else None
    cuts = np.sort(rng.choice(np.arange(12, 90), 4, replace=False))
    whole, parts = make(3, random_state=0), make(3, random_state=0)
    start = np.array([0, *cuts, 103, 160])
    for i, j in ((0, 103), (103, 160)):
        whole.partial_fit(X[i:j], **({} if w is None else {"sample_weight": w[i:j]}))
    for number, (i, j) in enumerate(itertools.pairwise(start)):
        parts.partial_fit(X[i:j], **({} if w is None else {"sample_weight": w[i:j]}))
        if number == 1:
            parts.save(tmp_path / "model.mercer")
            parts = load(tmp_path / "model.mercer")
    assert parts.n_samples_seen_ == 160 and parts.gamma_ == whole.gamma_
    # The width of the first 103 rows: kernel PCA that is not linear.
    assert parts.gamma_ == RBF("median").resolve(X[:103]).gamma
    np.testing.assert_allclose(np.abs(parts.transform(X)), np.abs(whole.transform(X)), atol=1e-8)
    if streams and w is None:
        listed = make(3, random_state=0).fit(np.split(X, start[1:-1]))
        assert listed.gamma_ == parts.gamma_
        one = make(2)
        for row in X:
            one.partial_fit(row[None])
        assert one.gamma_ == RBF("median").resolve(X[:100]).gamma


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(3))
def test_rows_that_differ_by_rounding_have_no_width(seed, dtype):
    rng = generator(6, seed)
    row, eps = rng.standard_normal(4) * 10.0 ** rng.uniform(-3, 3), np.finfo(dtype).eps
    X = (np.tile(row, (60, 1)) * (1 + eps * rng.standard_normal((60, 4)))).astype(dtype)
    assert RBF("median").resolve(X).gamma == RBF("median").resolve(X[:1].repeat(60, 0)).gamma == 1
    Y = X + 1e3 * eps * np.abs(row) * rng.standard_normal((60, 4)).astype(dtype)
    assert RBF("median").resolve(Y.astype(dtype)).gamma != 1
