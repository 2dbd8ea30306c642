"""scikit-learn's checks of every public estimator."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import HebbianKernelPCA, KernelPCA, StreamingKernelPCA

ESTIMATORS = [
    KernelPCA(),
    KernelPCA(n_components=2, kernel="rbf"),
    KernelPCA(n_components=2, kernel="rbf", eigen_solver="krylov"),
    KernelPCA(n_components=2, kernel="rbf", eigen_solver="gram-power"),
    KernelPCA(n_components=2, kernel="rbf", fit_inverse_transform=True),
    HebbianKernelPCA(n_components=2),
    HebbianKernelPCA(n_components=2, kernel="rbf", gain="smd", budget=12, novelty=0.01),
    HebbianKernelPCA(n_components=2, kernel="rbf", gain="et", readout="free"),
    StreamingKernelPCA(n_components=2),
    StreamingKernelPCA(n_components=2, kernel="rbf", budget=12, forgetting=0.99),
    StreamingKernelPCA(n_components=2, kernel="rbf", basis="features", budget=20),
]


@parametrize_with_checks(ESTIMATORS)
def test_estimator(estimator, check):
    check(estimator)
