"""Kernels that are given by m columns of their matrix and its diagonal."""

import numpy as np
import oracle
import pytest
from contracts import generator
from scipy.sparse import csr_matrix

import mercer
from mercer import KernelPCA, SpectralEmbedding, SupervisedKernelPCA
from mercer.bases import Landmarks, RandomFeatures
from mercer.exceptions import MercerWarning
from mercer.kernels import RBF, Polynomial, Precomputed


def drawn(seed):
    """Rows, a kernel, landmarks (some twice), columns with diagonal; the same of new rows."""
    rng = generator(seed)
    n, d, m = int(rng.integers(60, 300)), int(rng.integers(1, 6)), int(rng.integers(8, 40))
    X, new = rng.standard_normal((n, d)), rng.standard_normal((7, d))
    kernel = [RBF(gamma=0.3), Polynomial(degree=2, gamma=0.5, coef0=1.0)][seed % 2]
    chosen = rng.integers(0, n, m)
    parts = [np.column_stack([kernel(A, X[chosen]), kernel.diag(A)]) for A in (X, new)]
    return X, new, kernel, chosen, *parts


@pytest.mark.parametrize("seed", range(8))
def test_parts_do_what_rows_do(seed, tmp_path):
    X, new, kernel, chosen, C, D = drawn(seed)
    expected = KernelPCA(3, kernel=kernel, basis=Landmarks(indices=chosen)).fit(X)
    given = KernelPCA(3, kernel=Precomputed(list(chosen), definite=True), basis="landmarks")
    scores = expected.transform(new)
    np.save(tmp_path / "C.npy", C)
    single = given.fit(C.astype(np.float32))  # which has fewer independent landmarks
    assert single.eigenvalues_.dtype == np.float32
    assert (single.certificate_.eigenvalue_upper >= expected.eigenvalues_ * (1 - 1e-6)).all()
    for form in (C, np.asfortranarray(C), csr_matrix(C), tmp_path / "C.npy"):
        model, tol = given.fit(form), 1e-7
        np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues_, rtol=tol)
        for rows in (D, D[:, :-1], csr_matrix(D), csr_matrix(D[:, :-1])):
            error = abs(model.transform(rows)) - abs(scores)
            assert abs(error).max() <= 30 * tol * abs(scores).max()
        errors = model.reconstruction_error(D)
        size = abs(D[:, -1]).max()
        np.testing.assert_allclose(errors, expected.reconstruction_error(new), atol=tol * size)
        with pytest.raises(ValueError, match=r"missing or negative.*Give \[K"):
            model.reconstruction_error(D[:, :-1])
    path = tmp_path / "model.mercer"
    model.save(path)
    np.testing.assert_allclose(mercer.load(path).transform(D), model.transform(D))


@pytest.mark.parametrize("seed", range(8))
def test_the_certificate_of_parts_is_true(seed):
    X, _, kernel, chosen, C, _ = drawn(seed + 100)
    K = kernel(X)
    exact = np.linalg.eigvalsh(oracle.center(K))[::-1][:3]
    certificate = KernelPCA(3, kernel=Precomputed(chosen, definite=True)).fit(C).certificate_
    slack = 1e-9 * exact[0]
    assert certificate.kind == "bound"
    assert (certificate.eigenvalue_lower <= exact + slack).all()
    assert (certificate.eigenvalue_upper >= exact - slack).all()
    G, Q = K[np.ix_(chosen, chosen)], K[:, chosen]
    left = np.trace(K) - np.trace(Q @ np.linalg.pinv(G, rcond=1e-12, hermitian=True) @ Q.T)
    gap = certificate.eigenvalue_upper - certificate.eigenvalue_lower
    assert gap.max() <= 2 * left + 1e-6 * np.trace(K)  # some landmarks may be left out
    unsaid = KernelPCA(3, kernel=Precomputed(chosen)).fit(C).certificate_
    assert unsaid.kind == "estimate"


def test_indefinite_parts_are_said_to_be():
    rng = generator(3)
    Q = np.linalg.qr(rng.standard_normal((80, 80)))[0]
    K = (Q * np.linspace(-1, 2, 80)) @ Q.T
    rows = np.column_stack([K[:, :60], abs(np.diag(K))])
    rows[range(60), range(60)] = rows[:60, -1]
    with pytest.warns(MercerWarning, match="indefinite"):
        model = KernelPCA(2, kernel=Precomputed(np.arange(60))).fit(rows)
    assert model.certificate_.indefinite and model.certificate_.kind == "estimate"


def test_other_estimators_of_parts():
    X, _, kernel, chosen, C, _ = drawn(0)
    basis, given = Landmarks(indices=chosen), Precomputed(chosen, definite=True)
    ours = SupervisedKernelPCA(1, kernel=given).fit(C, X[:, 0])
    expected = SupervisedKernelPCA(1, kernel=kernel, basis=basis).fit(X, X[:, 0])
    np.testing.assert_allclose(ours.eigenvalues_, expected.eigenvalues_, rtol=1e-6)
    ours = SpectralEmbedding(2, affinity=given).fit(C)
    expected = SpectralEmbedding(2, affinity=kernel, basis=basis).fit(X)
    np.testing.assert_allclose(ours.eigenvalues_, expected.eigenvalues_, rtol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda C: C[:, :-1], "column_stack"),
        (lambda C: C + np.eye(*C.shape, 1), "symmetric"),
        (lambda C: np.column_stack([C[:, :-1], C[:, -1] / 2]), "Landmark 0 has"),
        (
            lambda C: np.column_stack([C[:, :-1], np.where(np.arange(len(C)) > 9, -2, 1)]),
            "negative",
        ),
        (lambda C: np.column_stack([C[:, :-1], np.where(np.arange(len(C)) > 9, 0, 1)]), "definite"),
    ],
)
def test_parts_that_do_not_fit(change, message):
    X = generator(5).standard_normal((90, 2))
    C = np.column_stack([RBF(gamma=0.1)(X, X[:10]), np.ones(90)])
    with pytest.raises(ValueError, match=message):
        KernelPCA(2, kernel=Precomputed(np.arange(10), definite=True)).fit(change(C))


def test_what_parts_cannot_do():
    _, _, _, chosen, C, D = drawn(0)
    for basis in ("points", "features", Landmarks(5), RandomFeatures(5)):
        with pytest.raises(ValueError, match="only values with these are known"):
            KernelPCA(2, kernel=Precomputed(chosen), basis=basis).fit(C)
    model = KernelPCA(2, kernel=Precomputed(chosen)).fit(C)
    with pytest.raises(ValueError, match="no rows, and therefore no pre-images"):
        model.inverse_transform(model.transform(D))
    rule = mercer.HebbianKernelPCA(2, kernel=Precomputed(chosen), n_passes=20, random_state=0)
    np.testing.assert_allclose(rule.fit(C).eigenvalues_, model.eigenvalues_, rtol=1e-4)
    for other in (mercer.NoveltyDetector, mercer.StreamingKernelPCA):
        with pytest.raises(ValueError, match="precomputed kernel"):
            other(2, kernel=Precomputed(chosen)).fit(C)


def test_landmarks_that_add_nothing_are_left_out():
    """Of many rows only some columns are used."""
    rng = generator(11)
    X, chosen = rng.standard_normal((20_000, 2)), rng.integers(0, 20_000, 60)
    kernel = RBF(gamma=0.05)
    C = np.column_stack([kernel(X, X[chosen]), np.ones(len(X))])
    model = KernelPCA(3, kernel=Precomputed(chosen, definite=True)).fit(C)
    expected = KernelPCA(3, kernel=kernel, basis=Landmarks(indices=chosen)).fit(X)
    np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues_, rtol=1e-6)
