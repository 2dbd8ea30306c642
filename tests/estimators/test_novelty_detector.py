"""Novelty detection: honest false alarms, novel rows found, scikit-learn's conventions."""

import os
from functools import partial

import numpy as np
import pytest
from contracts import generator
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import NoveltyDetector, ProcessMonitor
from mercer.kernels import KERNELS


def shell(n, key):
    """A noisy circle in five dimensions."""
    rng = generator(90, key)
    t = rng.uniform(0, 2 * np.pi, n)
    curve = np.column_stack([np.cos(t), np.sin(t), np.zeros((n, 3))])
    return curve + 0.1 * rng.standard_normal((n, 5))


# The checks' own data are too few rows for the default share of false alarms.
@pytest.mark.filterwarnings("ignore:.*rows set the threshold")
@parametrize_with_checks([NoveltyDetector(2, basis="points", holdout=0.5)])
def test_estimator(estimator, check):
    check(estimator)


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_false_alarms_are_as_asked(share):
    """On fresh normal rows, within three standard errors of the two samples."""
    detector = NoveltyDetector(10, false_alarms=share, random_state=0).fit(shell(1000, 1))
    alarms = np.mean(detector.predict(shell(2000, 2)) == -1)
    assert abs(alarms - share) < 3 * np.sqrt(share * (1 - share) * (1 / 200 + 1 / 2000))


@pytest.mark.parametrize("share", [0.05, 0.1, 0.25])
def test_expected_false_alarms_of_few_rows(share):
    """Over many small sets the mean share is what was asked for, or less; never more."""
    normal = generator(92).standard_normal
    shares = [
        np.mean(
            NoveltyDetector(5, false_alarms=share, holdout=0.4, random_state=i)
            .fit(normal((60, 3)))
            .predict(normal((500, 3)))
            < 0
        )
        for i in range(40)
    ]
    error = np.std(shares) / np.sqrt(len(shares))
    assert share - 1 / 25 - 4 * error < np.mean(shares) < share + 4 * error


def test_too_few_rows_for_the_share_are_told():
    with pytest.warns(UserWarning, match="15 rows set the threshold"):
        detector = NoveltyDetector(5, random_state=0).fit(shell(30, 1))
    held = np.setdiff1d(np.arange(30), detector.kept_)
    errors = detector.model_.reconstruction_error(shell(30, 1)[held])
    assert np.isclose(-detector.offset_, errors, rtol=1e-9).any()


@pytest.mark.filterwarnings("ignore:.*rows set the threshold")
@pytest.mark.filterwarnings("ignore:Only .* landmarks were chosen")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "settings",
    [{}, {"basis": "landmarks"}, {"kernel": "laplacian"}, {"kernel": "linear", "n_components": 2}],
)
def test_answers_do_not_depend_on_the_batch(settings, dtype):
    """BLAS rounds a row differently in other batches, which the row of the threshold shows."""
    for seed in range(12):
        rng = generator(94, seed)
        n, d = rng.integers(20, 120), rng.integers(3, 20)
        X = (10 ** rng.uniform(-2, 2) * rng.standard_normal((n, d))).astype(dtype)
        detector = NoveltyDetector(**settings, random_state=seed).fit(X)
        errors = detector.model_.reconstruction_error(X)
        # Among the held-out rows up to the threshold, the one that set it has the largest error.
        held = np.setdiff1d(np.flatnonzero(errors <= -detector.offset_), detector.kept_)
        last = held[np.argmax(errors[held])]
        alone = np.concatenate([detector.predict(X[i : i + 1]) for i in range(n)])
        assert alone[last] == 1
        np.testing.assert_array_equal(detector.predict(X), alone)
        np.testing.assert_array_equal(detector.predict(X[::-1])[::-1], alone)


def outlying(n, share, d, key):
    """Normal rows with a tight cluster among them; which rows are of the cluster."""
    rng, k = generator(93, key), int(share * n)
    X = rng.standard_normal((n, d))
    X[:k] = 6 / np.sqrt(d) + 0.5 * rng.standard_normal((k, d))
    order = rng.permutation(n)
    return X[order], (np.arange(n) < k)[order]


@pytest.mark.parametrize("basis", ["points", "landmarks"])
@pytest.mark.parametrize("n, d", [(100, 5), (400, 5), (3000, 4)])
def test_a_cluster_of_outliers_is_not_learned(n, d, basis):
    """A tenth of the training rows in one place: found without being told, as if they were not."""
    X, planted = outlying(n, 0.08, d, n)
    detector = NoveltyDetector(basis=basis, random_state=0).fit(X)
    assert not planted[detector.kept_].any()
    rows, novel = outlying(600, 0.5, d, n + 1)
    assert roc_auc_score(~novel, detector.score_samples(rows)) > 0.98
    spoiled = NoveltyDetector(40, outliers=0.0, random_state=0).fit(X)
    assert roc_auc_score(~novel, spoiled.score_samples(rows)) < 0.9


def table_with_extremes(seed, n=1500):
    """Columns of several scales, and 5 to 30 rows far from all others, alike or each elsewhere."""
    rng = generator(95, seed)
    incomes = rng.lognormal(10.5, rng.uniform(0.5, 1.0), n)
    columns = [
        incomes,
        rng.normal(45, 15, n),
        rng.poisson(3, n),
        rng.lognormal(0, 0.8, n),
        1e-3 * rng.random(n),
    ]
    X = np.column_stack(columns[: rng.integers(2, 6)])
    extreme = rng.choice(n, rng.integers(5, 31), replace=False)
    # Beyond all others by a few times their range, which the extremes share or not.
    X[extreme, 0] = incomes.max() * (3 + 3 * (seed % 3) * rng.random(len(extreme)))
    if seed % 2:
        X /= X.std(axis=0)
    return X, extreme


@pytest.mark.filterwarnings("ignore:.*held-out rows are far")
@pytest.mark.parametrize("seed", range(6))
def test_extreme_rows_are_never_normal(seed):
    """Among the training rows, where each could have a component of its own, and among new ones."""
    X, extreme = table_with_extremes(seed)
    detector = NoveltyDetector(random_state=seed).fit(X)
    novel = detector.predict(X) < 0
    forest = IsolationForest(random_state=seed).fit(X).predict(X) < 0
    assert novel[extreme].all() and novel[extreme].sum() >= forest[extreme].sum()
    assert novel.mean() < 0.09
    assert not np.intersect1d(extreme, detector.kept_).size
    rng = generator(96, seed)
    far = X[:30] * (1 + 10 ** rng.uniform(2, 200, (30, 1))) * rng.choice([-1, 1], X.shape[1])
    assert (detector.predict(far) == -1).all()


@pytest.mark.filterwarnings("ignore:.*held-out rows are far")
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "matern", "rational_quadratic"])
@pytest.mark.parametrize("seed", range(3))
def test_many_rows_far_from_the_others_are_normal_and_few_are_not(kernel, seed):
    """A third of the rows in a place of its own is no outlier; one or two percent are."""
    rng = generator(98, seed)
    centers = rng.standard_normal((3, 3))
    centers *= 30 / np.linalg.norm(centers, axis=1, keepdims=True)
    X = rng.standard_normal((900, 3)) + np.repeat(centers, 300, axis=0)
    few = rng.choice(900, rng.integers(9, 20), replace=False)
    X[few] = rng.standard_normal((len(few), 3)) - 150 * np.sign(centers[0])
    novel = NoveltyDetector(kernel=kernel, random_state=seed).fit(X).predict(X) < 0
    assert novel[few].all()
    assert np.delete(novel, few).mean() < 0.09


@pytest.mark.filterwarnings("ignore:gamma=")
@pytest.mark.parametrize("kernel", sorted(name for name, kind in KERNELS.items() if kind.metric))
def test_rows_far_from_all_others_are_novel(kernel):
    """Also where most held-out rows are far, which is told, and beyond the range of squares."""
    rng = generator(97)
    X = rng.standard_cauchy((300, 3))
    with pytest.warns(UserWarning, match="of 60 held-out rows are far from all training rows"):
        narrow = NoveltyDetector(kernel=kernel, gamma=1e4, random_state=0).fit(X)
    usual = NoveltyDetector(kernel=kernel, random_state=0).fit(rng.standard_normal((300, 3)))
    far = 10 ** np.linspace(3, 250, 40)[:, None] * rng.choice([-1, 1], (40, 3))
    for detector in (narrow, usual):
        assert np.isfinite(detector.score_samples(far)).all()
        assert (detector.predict(far) == -1).all()


FINITE = sorted(n for n, kind in KERNELS.items() if kind.encoder is None and kind().rank(4))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("make", [NoveltyDetector, partial(ProcessMonitor, whiten=False)])
@pytest.mark.parametrize("kernel", FINITE)
def test_defaults_leave_an_error_to_kernels_of_few_components(kernel, make, seed):
    """Of as many components as there are columns every row was explained, without a word."""
    rng = generator(98, seed)
    units, ways = 10 ** rng.uniform(-2, 2, 4), np.linalg.qr(rng.standard_normal((4, 4)))[0]
    flat = rng.standard_normal((600, 4)) * [3, 2, 0.1, 0.1]
    normal, fresh, off = flat[:300], flat[300:], flat[300:] + [0, 0, 4, 4]
    detector = make(kernel=kernel, random_state=seed).fit(normal @ ways * units)
    assert np.mean(detector.predict(fresh @ ways * units) < 0) < 0.2
    assert np.mean(detector.predict(off @ ways * units) < 0) > 0.2


@pytest.mark.parametrize("make", [NoveltyDetector, ProcessMonitor])
def test_components_that_explain_every_row_are_told(make):
    rows = generator(99).standard_normal((300, 4))
    with pytest.warns(UserWarning, match="smaller n_components"):
        make(4, kernel="linear").fit(rows)


def test_known_outliers_set_the_threshold():
    """Told of the outliers, the threshold leaves them out; else they take up the false alarms."""
    X, _ = outlying(1000, 0.1, 5, 1)
    rows, novel = outlying(2000, 0.3, 5, 2)
    told = NoveltyDetector(outliers=0.1, random_state=0).fit(X).predict(rows) < 0
    assert told[novel].mean() > 0.95 and told[~novel].mean() < 0.12
    assert NoveltyDetector(random_state=0).fit(X).predict(rows)[~novel].mean() > 0.98


def test_training_errors_would_not_do():
    """Why rows are held out: the errors of training rows are too small to set a threshold."""
    detector = NoveltyDetector(60, gamma=3.0, random_state=0).fit(shell(200, 1))
    own = detector.model_.reconstruction_error(detector.model_.X_fit_)
    fresh = detector.model_.reconstruction_error(shell(1000, 2))
    threshold = np.quantile(own, 0.95)
    assert np.mean(fresh > threshold) > 0.15
    assert np.mean(fresh > -detector.offset_) < 0.15


def test_novel_rows_are_found():
    """The middle of the circle is near every mean, and yet novel."""
    normal, novel = shell(500, 2), 0.1 * generator(91).standard_normal((500, 5))
    detector = NoveltyDetector(20, gamma=1.0, random_state=0).fit(shell(600, 1))
    S = detector.score_samples(np.vstack([normal, novel]))
    assert roc_auc_score(np.r_[np.ones(500), np.zeros(500)], S) > 0.99
    np.testing.assert_allclose(
        detector.decision_function(novel), detector.score_samples(novel) - detector.offset_
    )
    assert set(np.unique(detector.predict(novel))) <= {-1, 1}


@pytest.mark.parametrize(
    "settings",
    [
        {"kernel": "linear", "n_components": 2},
        {"kernel": "poly", "n_components": 5},
        {"kernel": "laplacian"},
        {"basis": "landmarks", "n_components": 0.9},
        {"basis": "features", "n_components": 10},
    ],
    ids=str,
)
def test_settings(settings):
    detector = NoveltyDetector(**settings, random_state=0).fit(shell(500, 1))
    assert (detector.predict(np.full((3, 5), 5.0)) == -1).all()
    assert np.mean(detector.predict(shell(300, 2)) == 1) > 0.8


def test_bad_input():
    X = shell(30, 1)
    with pytest.raises(ValueError, match="minimum of 3"):
        NoveltyDetector().fit(X[:2])
    with pytest.raises(ValueError, match="false_alarms"):
        NoveltyDetector(false_alarms=1.5).fit(X)
    with pytest.raises(ValueError, match="NaN"):
        NoveltyDetector().fit(np.where(X > 1, np.nan, X))
    with pytest.raises(ValueError, match="kernel"):
        NoveltyDetector(kernel="precomputed").fit(X @ X.T)
    # More components than rows are as many as there can be.
    few = NoveltyDetector(100, false_alarms=0.2, random_state=0).fit(X)
    assert few.model_.eigenvalues_.size <= 24
    with pytest.raises(ValueError, match="outliers"):
        NoveltyDetector(outliers=0.5).fit(X)


@pytest.mark.skipif("MERCER_DATA" not in os.environ, reason="MERCER_DATA is not set")
def test_usps_digit():
    """One digit against the rest."""
    from papers_data import load_usps

    train, test = load_usps(), load_usps(subset="test")
    rows = train.data[train.target == 3][:500]
    detector = NoveltyDetector(40, random_state=0).fit(rows)
    assert roc_auc_score(test.target == 3, detector.score_samples(test.data)) > 0.9
