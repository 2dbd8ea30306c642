"""scikit-learn's checks of every public estimator; those expected to fail say why."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import KernelPCA

ESTIMATORS = [
    KernelPCA(),
    KernelPCA(n_components=2, kernel="rbf"),
    KernelPCA(n_components=2, kernel="rbf", eigen_solver="krylov"),
    KernelPCA(n_components=2, kernel="rbf", fit_inverse_transform=True),
]

# Skipped unless SCIPY_ARRAY_API=1 is set; then it calls inverse_transform of whatever has one.
# scikit-learn runs it on its own KernelPCA with fit_inverse_transform=True, as the last of ours.
NO_PREIMAGE = {"check_array_api_input": "inverse_transform needs fit_inverse_transform=True"}


def expected_failed_checks(estimator):
    return {} if estimator.fit_inverse_transform else NO_PREIMAGE


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failed_checks)
def test_estimator(estimator, check):
    check(estimator)
