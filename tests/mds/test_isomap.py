"""Isomap is that of scikit-learn, and by landmarks near it."""

import numpy as np
import pytest
import sklearn.manifold
from contracts import generator
from scipy.stats import spearmanr
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer.plot
from mercer import ClassicalMDS, Isomap, load


@pytest.mark.filterwarnings("ignore:The graph of neighbors")
@parametrize_with_checks([Isomap(), Isomap(landmarks=0.5, random_state=0)])
def test_estimator(estimator, check):
    check(estimator)


def sheet(seed, n):
    """A rolled-up sheet, as positions on it and as rows in space."""
    rng = generator(seed)
    flat = rng.uniform(0, 1, (n, 2)) * [12, 6]
    angle = 3 + flat[:, 0] / 4
    return flat, np.column_stack([angle * np.cos(angle), flat[:, 1], angle * np.sin(angle)])


@pytest.mark.parametrize("seed", range(4))
def test_exact_is_scikit_learn(seed, tmp_path):
    rng = generator(seed + 50)
    k, p = int(rng.integers(8, 15)), int(rng.integers(1, 5))
    _, X = sheet(seed, int(rng.integers(150, 400)))
    X[3] = X[4]  # a tie of length zero is a tie
    model = Isomap(p, n_neighbors=k, random_state=0).fit(X)
    peer = sklearn.manifold.Isomap(n_components=p, n_neighbors=k).fit(X)
    np.testing.assert_allclose(model.eigenvalues_, peer.kernel_pca_.eigenvalues_, rtol=1e-8)
    np.testing.assert_allclose(model.dissimilarity_matrix_, peer.dist_matrix_, atol=1e-9)
    signs = np.sign(np.sum(model.embedding_ * peer.embedding_, axis=0))
    np.testing.assert_allclose(model.embedding_ * signs, peer.embedding_, atol=1e-6)
    new = X[:40] + 0.05 * rng.standard_normal((40, 3))
    np.testing.assert_allclose(model.transform(new) * signs, peer.transform(new), atol=1e-6)
    np.testing.assert_allclose(model.transform(X), model.embedding_, atol=1e-9)
    certificate = model.certificate_
    assert np.all(certificate.eigenvalue_lower <= peer.kernel_pca_.eigenvalues_ * (1 + 1e-9))
    assert np.all(peer.kernel_pca_.eigenvalues_ <= certificate.eigenvalue_upper * (1 + 1e-9))
    model.save(tmp_path / "model.mercer")
    np.testing.assert_allclose(
        load(tmp_path / "model.mercer").transform(new), model.transform(new), atol=1e-9
    )


@pytest.mark.parametrize("landmarks", [60, 0.2, np.arange(0, 500, 7)])
def test_landmarks_unroll_the_sheet(landmarks, tmp_path):
    flat, X = sheet(9, 500)
    model = Isomap(2, n_neighbors=12, landmarks=landmarks, random_state=0).fit(X)
    assert model.dissimilarity_matrix_.shape == (500, model.landmark_indices_.size)
    exact = Isomap(2, n_neighbors=12).fit(X)
    for a, b in zip(model.embedding_.T, exact.embedding_.T, strict=True):
        assert abs(np.corrcoef(a, b)[0, 1]) >= 0.99
    assert abs(spearmanr(model.embedding_[:, 0], flat[:, 0]).statistic) >= 0.98
    np.testing.assert_allclose(model.transform(X), model.embedding_, atol=1e-9)
    model.save(tmp_path / "model.mercer")
    new = X[:30] + 0.01
    np.testing.assert_allclose(
        load(tmp_path / "model.mercer").transform(new), model.transform(new), atol=1e-9
    )


@pytest.mark.parametrize("seed", range(6))
def test_landmarks_state_no_interval_that_misses(seed, tmp_path):
    """Their eigenvalues are near the exact ones, and nothing says how near."""
    rng = generator(seed + 90)
    _, X = sheet(seed, int(rng.integers(100, 200)))
    p, m = int(rng.integers(1, 4)), int(rng.integers(10, 40))
    if seed % 2:
        exact, some = ClassicalMDS(p, metric="cityblock"), ClassicalMDS(p, metric="cityblock")
    else:
        exact, some = (Isomap(p, n_neighbors=12) for _ in range(2))
    true = exact.fit(X).eigenvalues_
    model = some.set_params(landmarks=m, random_state=seed).fit(X)
    certificate = model.certificate_
    assert certificate.kind == "estimate" and certificate.residuals is None
    assert not certificate.n_proven and certificate.captured_variance is None
    assert (certificate.eigenvalue_lower <= true).all()
    assert (true <= certificate.eigenvalue_upper).all()
    assert "unknown for some" in model.summary()
    mercer.plot.spectrum(model)
    model.report(X).save(tmp_path / "report.html")
    assert "unknown for some" in (tmp_path / "report.html").read_text()


def test_all_rows_as_landmarks():
    _, X = sheet(2, 200)
    model = Isomap(2, n_neighbors=10, landmarks=np.arange(200)).fit(X)
    exact = Isomap(2, n_neighbors=10).fit(X)
    np.testing.assert_allclose(model.embedding_[:, 0], exact.embedding_[:, 0], atol=0.5)


@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")  # theirs
@pytest.mark.parametrize("pieces", [2, 3, 4])
def test_pieces_are_joined_as_by_scikit_learn(pieces):
    rng = generator(pieces)
    X = np.vstack([rng.standard_normal((40, 3)) + 30 * i for i in range(pieces)])
    with pytest.warns(UserWarning, match=f"falls into {pieces} pieces"):
        model = Isomap(2, n_neighbors=8).fit(X)
    with pytest.warns(UserWarning, match="connected components"):
        peer = sklearn.manifold.Isomap(n_components=2, n_neighbors=8).fit(X)
    np.testing.assert_allclose(model.eigenvalues_, peer.kernel_pca_.eigenvalues_, rtol=1e-8)


def test_what_does_not_fit_is_refused():
    _, X = sheet(1, 600)
    with pytest.raises(ValueError, match=r"the paths between 600 and 600 rows\. Give landmarks="):
        Isomap(n_neighbors=12, memory=3 * 10**6).fit(X)
    Isomap(landmarks=100, n_neighbors=12, memory=3 * 10**6, random_state=0).fit(X)
    with pytest.raises(ValueError, match="'n_neighbors' parameter"):
        Isomap(n_neighbors=0).fit(X)
    with pytest.raises(ValueError, match=r"pieces\. Raise n_neighbors"):
        Isomap(n_neighbors=1).fit(generator(0).standard_normal((900, 3)))
