"""scikit-learn's checks of every public estimator."""

import warnings

from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer
from mercer import (
    HebbianKernelPCA,
    KernelPCA,
    PatchDenoiser,
    ProcessMonitor,
    StreamingKernelPCA,
    SupervisedKernelPCA,
)
from mercer.exceptions import MercerWarning

public = (getattr(mercer, name) for name in mercer.__all__)
AS_THEY_COME = [
    part()
    for part in public
    # Images are no rows, and scikit-learn has no checks for them.
    if isinstance(part, type) and issubclass(part, BaseEstimator) and part is not PatchDenoiser
]
# Options beside those that estimators come with.
ESTIMATORS = [
    KernelPCA(n_components=2, kernel="rbf"),
    KernelPCA(n_components=2, kernel="rbf", eigen_solver="krylov"),
    KernelPCA(n_components=2, kernel="rbf", eigen_solver="gram-power"),
    KernelPCA(n_components=2, kernel="rbf", fit_inverse_transform=True),
    SupervisedKernelPCA(n_components=2, kernel="rbf", unsupervised=0.5),
    HebbianKernelPCA(n_components=2, kernel="rbf", gain="smd", budget=12, novelty=0.01),
    HebbianKernelPCA(n_components=2, kernel="rbf", gain="et", readout="free"),
    StreamingKernelPCA(n_components=2, kernel="rbf", budget=12, forgetting=0.99),
    StreamingKernelPCA(n_components=2, kernel="rbf", basis="features", budget=20),
]


def expected(estimator):
    """Repeated rows in another order, which a stream that forgets is to follow.

    The width is measured on rows, however often they count. `tests/fitting/test_weights.py`
    compares streams of a given width with repeated rows in their own order.
    """
    if not isinstance(estimator, StreamingKernelPCA):
        return {}
    reason = "the check shuffles the rows, and weights have no say in the width"
    checks = (f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse"))
    return dict.fromkeys(checks, reason)


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected)
def test_estimator(estimator, check):
    check(estimator)


def as_they_come(estimator):
    """Of 300 rows of normal operation none needs to be in alarm, with 1 % of new ones asked for."""
    checks = ("check_outliers_train", "check_outliers_train(readonly_memmap=True)")
    checks += ("check_outliers_fit_predict",)
    known = isinstance(estimator, ProcessMonitor)
    return dict.fromkeys(checks, "training rows are normal") if known else expected(estimator)


@parametrize_with_checks(AS_THEY_COME, expected_failed_checks=as_they_come)
def test_as_it_comes(estimator, check):
    assert len(AS_THEY_COME) >= 11
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)  # few rows, and blobs without ties
        check(estimator)
