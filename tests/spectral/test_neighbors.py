"""Nearest neighbors are those of scikit-learn up to ties, and graphs those of their formula."""

import numpy as np
import pytest
from contracts import generator
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.neighbors import NearestNeighbors, kneighbors_graph

from mercer import DiffusionMap, SpectralClustering, SpectralEmbedding
from mercer.compute import make_engine
from mercer.exceptions import MercerWarning
from mercer.spectral.graph import NeighborGraph, nearest_given
from mercer.spectral.neighbors import Screen, nearest, neighbors_of_all, search_way


def drawn(trial):
    """Rows that a search has trouble with: far away, in tight groups, repeated, large, small."""
    rng = generator(900 + trial)
    n, d = int(rng.integers(30, 900)), int(rng.integers(1, 60))
    X = rng.standard_normal((n, d))
    X[:, 0] += rng.choice([0.0, 1e3, 1e7])
    X += rng.choice([0.0, 1e4, 1e8]) * (rng.integers(0, 3, (n, 1)) == 0)
    if rng.integers(2):
        X[rng.integers(0, n, n // 3)] = X[0]
    X *= rng.choice([1.0, 1e-12, 1e12])
    return rng, X.astype(rng.choice([np.float32, np.float64])), int(rng.integers(1, min(n, 40)))


def engines():
    yield lambda memory: make_engine(memory=memory, threads=2)
    try:
        import torch
    except ImportError:
        return
    yield lambda memory: make_engine(memory=memory, device=torch.device("cpu"))


@pytest.mark.parametrize("trial", range(24))
@pytest.mark.parametrize("engine", list(engines()))
def test_exact_neighbors(engine, trial):
    rng, X, k = drawn(trial)
    Z = X[rng.permutation(len(X))[: max(k, len(X) // 2)]]
    index, distances = nearest(X, Z, k, engine(int(rng.choice([10**6, 10**8]))))
    D = np.stack([np.linalg.norm((Z.astype(float) - x), axis=1) for x in X.astype(float)])
    np.testing.assert_allclose(distances, np.sort(D, axis=1)[:, :k], rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(distances, np.take_along_axis(D, index, 1), rtol=1e-9, atol=1e-300)
    assert all(np.unique(row).size == k for row in index)


@pytest.mark.parametrize("trial", range(12))
def test_neighbors_of_sparse_rows(trial):
    rng, X, k = drawn(trial + 40)
    X = np.where(rng.random(X.shape) < 0.3, X, 0)
    D = np.stack([np.linalg.norm((X.astype(float) - x), axis=1) for x in X.astype(float)])
    X = sparse.csr_matrix(X)
    index, distances = nearest(X, X, k, make_engine(memory=10**7))
    np.testing.assert_allclose(distances, np.sort(D, axis=1)[:, :k], rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(distances, np.take_along_axis(D, index, 1), rtol=1e-9, atol=1e-300)
    radii = distances[:, -1] * 1.01
    i, j, d = Screen(X, make_engine(memory=10**7)).within(X, radii)
    np.testing.assert_array_equal(sparse.coo_matrix((d >= 0, (i, j)), D.shape).toarray(), radii > D)
    np.testing.assert_allclose(d, D[i, j], rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("columns", [2, 40])
def test_searches_agree(columns):
    X, engine = generator(1).standard_normal((2500, columns)), make_engine(memory=10**8)
    theirs = NearestNeighbors(n_neighbors=15).fit(X).kneighbors(X)[0]
    way, why = search_way(X, "auto", engine)
    assert (way == "tree") == (columns == 2), why
    for way in ("tree", "exact"):
        distances = neighbors_of_all(X, 15, engine, way)[1]
        np.testing.assert_allclose(distances, theirs, atol=1e-6)  # theirs cancel


def test_an_index_finds_nearly_all_and_is_told_of():
    pytest.importorskip("faiss", reason="faiss-cpu is not installed")
    rng = generator(5)
    X = rng.standard_normal((3000, 20)) + 1e3 + rng.integers(0, 4, (3000, 1))
    X[:40] = X[0]
    engine = make_engine(memory=10**8, threads=1)
    index, distances = neighbors_of_all(X, 15, engine, "approximate")
    exact = neighbors_of_all(X, 15, engine, "exact")[1]
    assert np.mean(distances <= exact * (1 + 1e-9) + 1e-12) >= 0.97
    np.testing.assert_allclose(np.linalg.norm(X[index[:, 3]] - X, axis=1), distances[:, 3])
    assert np.all(distances[:, 0] == 0)
    model = SpectralEmbedding(2, neighbor_search="approximate", random_state=0)
    assert "HNSW" in model.fit(X[40:]).plan_.reason
    assert "all pairs" in model.set_params(neighbor_search="exact").fit(X[40:]).plan_.reason


@pytest.mark.parametrize("trial", range(5))
def test_local_weights(trial, tmp_path):
    rng = generator(60 + trial)
    n, k = int(rng.integers(40, 300)), int(rng.integers(3, 12))
    X = rng.standard_normal((n, 3)) * np.exp(rng.standard_normal((n, 1)))
    D = cdist(X, X)
    near = np.argsort(D, axis=1)[:, :k]
    r = np.take_along_axis(D, near, 1)[:, -1]
    W = np.zeros((n, n))
    np.put_along_axis(W, near, np.take_along_axis(np.exp(-(D**2) / np.outer(r, r)), near, 1), 1)
    model = SpectralClustering(2, affinity="nearest_neighbors", n_neighbors=k, random_state=0)
    model.set_params(neighbor_weights="local").fit(X)
    np.testing.assert_allclose(model.affinity_matrix_.toarray(), (W + W.T) / 2, atol=1e-12)
    model.save(tmp_path / "model.mercer")
    from mercer import load

    new = X[: n // 2] + 0.01
    loaded = load(tmp_path / "model.mercer")
    np.testing.assert_allclose(loaded.transform(X), model.transform(X), atol=1e-9)
    np.testing.assert_array_equal(loaded.predict(new), model.predict(new))
    # A new row has the ties that it would have in the graph with it.
    x = new[:1]
    both = NeighborGraph.of(nearest_given(cdist(*2 * (np.vstack([X, x]),)), k + 1), True)
    d = cdist(x, X)[0]
    R = np.sort(d)[k - 1]
    expected = 0.5 * np.exp(-(d**2) / (R * r)) * ((d <= R).astype(float) + (d < r))
    np.testing.assert_allclose(model.graph_.rows(x).toarray()[0], expected, atol=1e-12)
    assert both.matrix.shape == (n + 1, n + 1)


@pytest.mark.parametrize("trial", range(4))
@pytest.mark.parametrize("ties", ["uniform", "local"])
def test_given_neighbors_are_those_of_rows(ties, trial):
    rng = generator(80 + trial)
    X = rng.standard_normal((int(rng.integers(60, 400)), 5))
    k = int(rng.integers(5, 20))
    options = {"neighbor_weights": ties, "random_state": 0}
    rows = DiffusionMap(2, affinity="nearest_neighbors", n_neighbors=k, **options).fit(X)
    distances, index = NearestNeighbors(n_neighbors=k).fit(X).kneighbors(X)
    graph = NearestNeighbors(n_neighbors=k).fit(X).kneighbors_graph(X, mode="distance")
    given = DiffusionMap(2, affinity="precomputed_nearest_neighbors", **options)
    for D in ((index, distances), graph, sparse.csr_array(graph)):
        given.fit(D)
        assert abs(given.affinity_matrix_ - rows.affinity_matrix_).max() <= 1e-12
        np.testing.assert_allclose(np.abs(given.embedding_), np.abs(rows.embedding_), atol=1e-6)
        np.testing.assert_allclose(given.transform(D), given.embedding_, atol=1e-6)
        few = tuple(part[:9] for part in D) if isinstance(D, tuple) else D[:9]
        np.testing.assert_allclose(given.transform(few), given.embedding_[:9], atol=1e-6)
    # All that are given, of any number a row: here without a row's distance to itself.
    ragged = kneighbors_graph(X, k, mode="distance").multiply(cdist(X, X) < 2.5).tocsr()
    ragged = ragged + sparse.diags(np.full(len(X) - 1, 0.1), 1)
    given.fit(ragged)
    stored = (ragged > 0).astype(float)
    expected = (stored + stored.T) / 2
    if ties == "uniform":
        assert abs(given.affinity_matrix_ - expected).max() == 0
    with pytest.raises(ValueError, match=r"given neighbors, and 30 are asked for"):
        given.set_params(n_neighbors=30).fit(graph)


@pytest.mark.parametrize(
    "pair",
    [
        (np.zeros((5, 2), int), np.zeros((5, 3))),
        (np.full((5, 2), 7), np.zeros((5, 2))),
        (np.full((5, 2), -1), np.zeros((5, 2))),
        (np.zeros((5, 2)), np.zeros((5, 2))),
    ],
)
def test_bad_pairs(pair):
    with pytest.raises(ValueError, match=r"pair \(indices, distances\)"):
        SpectralEmbedding(affinity="precomputed_nearest_neighbors").fit(pair)


def test_neighbors_given_twice():
    index, distances = np.tile([0, 1, 2], (6, 1)), np.ones((6, 3))
    index[4, 0] = 2
    with pytest.raises(ValueError, match="Row 4 of the given neighbors has one of them twice"):
        SpectralEmbedding(affinity="precomputed_nearest_neighbors").fit((index, distances))


def test_negative_distances():
    with pytest.raises(ValueError, match="Distances must not be negative"):
        SpectralEmbedding(affinity="precomputed_nearest_neighbors").fit(-np.ones((9, 9)))


@pytest.mark.parametrize("seed", range(4))
def test_rows_in_many_copies(seed):
    """Of pieces without another positive eigenvalue vectors of the eigenvalue zero are found."""
    rng = np.random.default_rng(seed)
    copies, k = int(rng.integers(15, 30)), int(rng.integers(3, 8))
    X = np.repeat(rng.standard_normal((20, 3)), copies, axis=0)
    model = SpectralEmbedding(3, affinity="nearest_neighbors", n_neighbors=k)
    with pytest.warns(MercerWarning, match="pieces that no edge connects"):
        model.fit(X)
    S = model.affinity_matrix_.toarray()
    root = np.sqrt(np.maximum(S.sum(axis=1), 1e-300))
    values = np.linalg.eigvalsh(S / root / root[:, None])[::-1]
    pieces = len(np.unique(model.pieces_))
    np.testing.assert_allclose(model.eigenvalues_, values[pieces : pieces + 3], atol=1e-9)


@pytest.mark.parametrize("kind", [SpectralEmbedding, DiffusionMap])
@pytest.mark.parametrize("seed", range(6))
def test_ties_of_next_to_nothing_join_no_pieces(kind, seed):
    """Rows far away have ties of 1e-40, which products lose: no coordinate tells them apart."""
    rng = generator(seed, 61)
    n, far = int(rng.integers(150, 600)), 10 ** rng.uniform(2, 4)
    angle = np.sort(rng.uniform(0, 3, n))
    X = np.column_stack([np.cos(angle), np.sin(angle)]) + 0.02 * rng.standard_normal((n, 2))
    others = rng.standard_normal(2) + 1e-3 * rng.standard_normal((int(rng.integers(2, 5)), 2))
    rows = np.vstack([X, far * others])
    options = {"affinity": "nearest_neighbors", "neighbor_weights": "local", "random_state": 0}
    with pytest.warns(MercerWarning, match="pieces"):
        model = kind(2, **options).fit(rows)
    assert (model.eigenvalues_ < 1 - 1e-9).all()
    assert (model.pieces_[:n] == model.pieces_[0]).all()
    assert (model.pieces_[n:] != model.pieces_[0]).all()
    alone = kind(2, **options).fit(X)
    np.testing.assert_allclose(model.eigenvalues_, alone.eigenvalues_, rtol=1e-7)
    for found, expected in zip(model.embedding_[:n].T, alone.embedding_.T, strict=True):
        assert abs(np.corrcoef(found, expected)[0, 1]) >= 1 - 1e-6


@pytest.mark.parametrize("trial", range(10))
def test_more_pieces_than_clusters(trial):
    """Rows of pieces that no vector tells apart are zero, and training rows keep their labels."""
    rng = generator(140 + trial)
    X = rng.standard_normal((int(rng.integers(100, 500)), int(rng.integers(2, 7))))
    model = SpectralClustering(int(rng.integers(2, 7)), affinity="nearest_neighbors", n_neighbors=2)
    model.set_params(neighbor_weights="uniform", random_state=0).fit(X)
    np.testing.assert_allclose(model.transform(X), model.embedding_, atol=1e-9)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
