"""scikit-learn's own tests of KernelPCA, run against ours: the drop-in promise.

The functions are collected here under their own names with their own parametrization; while one
runs, the name `KernelPCA` that it looks up is ours.
"""

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition.tests import test_kernel_pca as suite
from sklearn.exceptions import NotFittedError

from mercer import KernelPCA

globals().update({name: test for name, test in vars(suite).items() if name.startswith("test_")})

pytestmark = [
    # Their grid search and perceptron tests stop after five epochs on purpose.
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    # One of theirs has only equal rows, of which ours warns.
    pytest.mark.filterwarnings("ignore:The data have no variance:UserWarning"),
]


@pytest.fixture(autouse=True)
def drop_in(monkeypatch):
    monkeypatch.setattr(suite, "KernelPCA", KernelPCA)


@pytest.fixture(params=[0, 7, 42])
def global_random_seed(request):
    """The fixture of scikit-learn's own conftest, over a few seeds."""
    return request.param


@pytest.mark.parametrize("solver", ["auto", "dense", "arpack", "randomized"])
def test_kernel_pca_precomputed_non_symmetric(solver):
    """A deviation: a Gram matrix is symmetric, so one that is not is a mistake upstream.

    scikit-learn accepts it, and its solvers then each read another part of the matrix.
    """
    kpca = KernelPCA(kernel="precomputed", eigen_solver=solver, n_components=1)
    with pytest.raises(ValueError, match="symmetric"):
        kpca.fit([[1, 2], [3, 40]])


@pytest.mark.parametrize("solver", ["auto", "dense", "arpack", "randomized"])
def test_precomputed_kernel_not_psd(solver):
    """A deviation: "randomized" finds the largest eigenvalues, as all other solvers do.

    scikit-learn's takes the largest moduli, and raises where one of them is negative.
    """
    values = np.array([53.0, 8.0, 7.5, 5.0, 0.0, 0.0, -6.0, -15.0])
    Q, _ = np.linalg.qr(np.column_stack([np.ones(8), np.random.default_rng(0).normal(size=(8, 7))]))
    # The mean is along one of the zeros, so that the matrix is centered.
    Q = np.roll(Q, 4, axis=1)
    K = (Q * values) @ Q.T
    K = (K + K.T) / 2
    with pytest.raises(ValueError, match="There are significant negative eigenvalues"):
        KernelPCA(7, kernel="precomputed", eigen_solver=solver).fit(K)
    kpca = KernelPCA(2, kernel="precomputed", eigen_solver=solver).fit(K)
    np.testing.assert_allclose(kpca.eigenvalues_, [53.0, 8.0], rtol=1e-9)


def test_kernel_pca_raise_not_fitted_error():
    """A deviation: inverse_transform needs no fit_inverse_transform, where there is a way back.

    scikit-learn raises for every model without it. Ours raises where nothing can be done: for
    precomputed kernels.
    """
    X = np.random.default_rng(0).standard_normal((5, 3))
    kpca = KernelPCA().fit(X)
    np.testing.assert_allclose(kpca.inverse_transform(kpca.transform(X)), X)
    with pytest.raises(NotFittedError):
        KernelPCA(kernel="precomputed").fit(X @ X.T).inverse_transform(X)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("eigen_solver", ["auto", "arpack", "randomized"])
@pytest.mark.parametrize("csr_container", [sparse.csr_matrix, sparse.csr_array])
def test_kernel_pca_sparse(csr_container, eigen_solver, kernel, global_random_seed):
    """A deviation: sparse rows have pre-images, where scikit-learn raises NotFittedError."""
    rng = np.random.default_rng(global_random_seed)
    X, Y = csr_container(rng.random((5, 4))), csr_container(rng.random((2, 4)))
    kpca = KernelPCA(4, kernel=kernel, eigen_solver=eigen_solver, random_state=0)
    S = kpca.fit_transform(X)
    np.testing.assert_allclose(np.abs(S), np.abs(kpca.fit(X).transform(X)), atol=1e-6)
    assert kpca.transform(Y).shape[1] == S.shape[1]
    assert kpca.inverse_transform(S[:2]).shape == (2, 4)


def test_suite_is_found():
    assert len([name for name in vars(suite) if name.startswith("test_")]) >= 20
