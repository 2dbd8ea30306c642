"""Novelty detection: honest false alarms, novel rows found, scikit-learn's conventions."""

import os

import numpy as np
import pytest
from contracts import generator
from sklearn.metrics import roc_auc_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import NoveltyDetector


def shell(n, key):
    """A noisy circle in five dimensions."""
    rng = generator(90, key)
    t = rng.uniform(0, 2 * np.pi, n)
    curve = np.column_stack([np.cos(t), np.sin(t), np.zeros((n, 3))])
    return curve + 0.1 * rng.standard_normal((n, 5))


@parametrize_with_checks([NoveltyDetector(), NoveltyDetector(2, basis="points", holdout=0.5)])
def test_estimator(estimator, check):
    check(estimator)


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_false_alarms_are_as_asked(share):
    """On fresh normal rows, within three standard errors of the two samples."""
    detector = NoveltyDetector(10, false_alarms=share, random_state=0).fit(shell(1000, 1))
    alarms = np.mean(detector.predict(shell(2000, 2)) == -1)
    assert abs(alarms - share) < 3 * np.sqrt(share * (1 - share) * (1 / 200 + 1 / 2000))


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
    assert NoveltyDetector(100, random_state=0).fit(X).model_.eigenvalues_.size <= 24


@pytest.mark.skipif("MERCER_DATA" not in os.environ, reason="MERCER_DATA is not set")
def test_usps_digit():
    """One digit against the rest."""
    from mercer.datasets import load_usps

    train, test = load_usps(), load_usps(subset="test")
    rows = train.data[train.target == 3][:500]
    detector = NoveltyDetector(40, random_state=0).fit(rows)
    assert roc_auc_score(test.target == 3, detector.score_samples(test.data)) > 0.9
