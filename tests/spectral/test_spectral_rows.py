"""Spectral methods by landmarks sum over rows wherever they are."""

import numpy as np
import pytest
from contracts import generator

from mercer import DiffusionMap, SpectralClustering, SpectralEmbedding
from mercer.bases import FourierGrid, Landmarks

LABELS = generator(20).integers(0, 3, 900)
X = 0.4 * generator(21).standard_normal((900, 2)) + np.array([(0, 0), (4, 0), (0, 4)])[LABELS]
BASES = {"landmarks": Landmarks(points=X[:60]), "grid": FourierGrid(box=[(-3, 7), (-3, 7)])}


def models(basis):
    options = {"gamma": 0.5, "basis": basis, "random_state": 0, "memory": "30MB"}
    yield SpectralClustering(3, **options)
    if isinstance(basis, Landmarks):
        yield SpectralEmbedding(2, affinity="rbf", **options)
        yield DiffusionMap(2, **options)


def sources(tmp_path):
    np.save(tmp_path / "rows.npy", X)
    yield tmp_path / "rows.npy"
    yield lambda: iter(np.array_split(X, 7))
    da = pytest.importorskip("dask.array")
    yield da.from_array(X, chunks=(170, 2))


@pytest.mark.parametrize("basis", BASES.values(), ids=BASES)
def test_files_iterators_and_chunks_give_what_an_array_gives(basis, tmp_path):
    for model in models(basis):
        here = model.fit(X)
        values, embedding = here.eigenvalues_, here.embedding_
        for source in sources(tmp_path):
            there = model.fit(source)
            np.testing.assert_allclose(there.eigenvalues_, values, atol=1e-9)
            np.testing.assert_allclose(np.abs(there.embedding_), np.abs(embedding), atol=1e-6)
    assert (
        len(set(zip(LABELS, SpectralClustering(3, basis=basis).fit(X).labels_, strict=True))) == 3
    )


def test_what_needs_one_place_says_so_or_takes_landmarks():
    da = pytest.importorskip("dask.array")
    D = da.from_array(X, chunks=(300, 2))
    with pytest.raises(ValueError, match=r"one place.*basis='landmarks'"):
        SpectralClustering(3, basis="points").fit(D)
    model = SpectralClustering(3, gamma=5.0, random_state=0).fit(D)
    assert len(model.landmarks_) and "not one array in memory" in model.plan_.reason
