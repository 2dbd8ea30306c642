"""Nystroem features: scikit-learn's for the same landmarks, closer with chosen ones."""

import numpy as np
import pytest
from contracts import generator
from scipy import sparse
from sklearn.kernel_approximation import Nystroem as Peer
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

import mercer
from mercer import Nystroem
from mercer.selectors import KMeans, Uniform

KERNELS = {
    "rbf": {"gamma": 0.2},
    "laplacian": {},
    "poly": {"degree": 2, "coef0": 0.5, "gamma": 0.1},
    "cosine": {},
}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("seed", range(2))
def test_features_are_those_of_scikit_learn(seed, kernel):
    """Its landmarks given, the same features; ours given to it, likewise."""
    X, new = (generator(seed + k).standard_normal((n, 6)) for k, n in [(0, 200), (9, 30)])
    ours = Nystroem(kernel, n_components=5, random_state=seed, **KERNELS[kernel]).fit(X)
    assert ours.component_indices_.shape == (5,)
    np.testing.assert_array_equal(ours.components_, X[ours.component_indices_])
    peer = Peer(kernel=kernel, n_components=5, **KERNELS[kernel]).fit(ours.components_)
    order = np.argsort(peer.component_indices_)
    S, T = ours.transform(new), peer.transform(new)[:, order]
    np.testing.assert_allclose(S, T, atol=1e-8)
    np.testing.assert_allclose(S, ours.kernel_(new, ours.components_) @ ours.normalization_.T)


@pytest.mark.parametrize("seed", range(2))
def test_chosen_landmarks_are_closer_than_drawn_ones(seed):
    X = generator(seed).standard_normal((600, 3))
    K = np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(axis=2))

    def error(selector):
        made = Nystroem(gamma=0.3, n_components=40, selector=selector, random_state=seed)
        S = made.fit_transform(X)
        return np.linalg.norm(K - S @ S.T)

    assert error(None) < 0.9 * error(Uniform()) and error("RPCholesky") < error("Uniform")


def test_landmarks_that_are_no_rows_sparse_rows_files_and_saving(tmp_path):
    X = generator(3).standard_normal((80, 4))
    assert (
        Nystroem(n_components=7, selector=KMeans(), random_state=0).fit(X).component_indices_
        is None
    )
    made = Nystroem(n_components=7, random_state=0).fit(X)
    made.save(tmp_path / "features.mercer")
    again = mercer.load(tmp_path / "features.mercer")
    np.testing.assert_array_equal(again.transform(X), made.transform(X))
    np.testing.assert_array_equal(again.component_indices_, made.component_indices_)
    np.save(tmp_path / "rows.npy", X)
    np.testing.assert_allclose(made.transform(tmp_path / "rows.npy"), made.transform(X), atol=1e-12)
    A = sparse.random(60, 9, 0.4, format="csr", random_state=1)
    made = Nystroem(n_components=6, random_state=0).fit(A)
    np.testing.assert_array_equal(made.components_.toarray(), A[made.component_indices_].toarray())
    few = Nystroem(n_components=500, random_state=0).fit(X)
    np.testing.assert_allclose(few.transform(X) @ few.transform(X).T, few.kernel_(X), atol=1e-8)


@pytest.mark.parametrize("kernel", sorted(PAIRWISE_KERNEL_FUNCTIONS))
def test_every_name_has_the_defaults_of_scikit_learn(kernel):
    """Kernel values of scikit-learn's function, called without parameters."""
    X = generator(3).uniform(0, 1, (40, 6))
    if kernel not in mercer.kernels.KERNELS:
        pytest.skip("not a kernel of this package")
    ours = Nystroem(kernel, n_components=5, random_state=0)
    if kernel == "additive_chi2":  # has no parameters, and no inner products
        with pytest.raises(ValueError, match="No row can be a landmark"):
            ours.fit(X)
        return
    ours.fit(X)
    expected = PAIRWISE_KERNEL_FUNCTIONS[kernel](X, ours.components_)
    np.testing.assert_allclose(ours.kernel_(X, ours.components_), expected, rtol=1e-9, atol=1e-12)
