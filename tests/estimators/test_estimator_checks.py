"""scikit-learn's checks of every public estimator."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import HebbianKernelPCA, KernelPCA, StreamingKernelPCA, SupervisedKernelPCA

ESTIMATORS = [
    KernelPCA(),
    KernelPCA(n_components=2, kernel="rbf"),
    KernelPCA(n_components=2, kernel="rbf", eigen_solver="krylov"),
    KernelPCA(n_components=2, kernel="rbf", eigen_solver="gram-power"),
    KernelPCA(n_components=2, kernel="rbf", fit_inverse_transform=True),
    SupervisedKernelPCA(n_components=1),
    SupervisedKernelPCA(n_components=2, kernel="rbf", unsupervised=0.5),
    HebbianKernelPCA(n_components=2),
    HebbianKernelPCA(n_components=2, kernel="rbf", gain="smd", budget=12, novelty=0.01),
    HebbianKernelPCA(n_components=2, kernel="rbf", gain="et", readout="free"),
    StreamingKernelPCA(n_components=2),
    StreamingKernelPCA(n_components=2, kernel="rbf", budget=12, forgetting=0.99),
    StreamingKernelPCA(n_components=2, kernel="rbf", basis="features", budget=20),
]


def expected(estimator):
    """Repeated rows in another order: a stream's dictionary, fading and signs follow the order.

    `tests/fitting/test_weights.py` compares streams with repeated rows in their own order.
    """
    if not isinstance(estimator, StreamingKernelPCA):
        return {}
    checks = ("dense", "sparse")
    return {
        f"check_sample_weight_equivalence_on_{kind}_data": "the check shuffles the rows"
        for kind in checks
    }


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected)
def test_estimator(estimator, check):
    check(estimator)
