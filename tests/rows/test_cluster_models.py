"""Models of Dask rows, any chunks: sparse and dense, saved, brought back, planned beforehand."""

import dask
import dask.array as da
import numpy as np
import pytest
from contracts import generator
from scipy import sparse
from sklearn.base import clone

import mercer
from mercer import KernelPCA
from mercer.bases import Landmarks, RandomFeatures
from mercer.exceptions import MercerWarning, ModelFileError
from mercer.kernels import Laplacian, Linear, Matern, Polynomial
from mercer.metrics import subspace_error
from mercer.relatives.explaining import gradients
from mercer.saving.archive import open_archive, write_archive

# Clusters of several processes at a time would fight for two cores.
pytestmark = pytest.mark.xdist_group("cluster")


@pytest.fixture(autouse=True)
def scheduler():
    """Few threads, so that tests do not depend on the machine."""
    with dask.config.set(scheduler="threads", num_workers=2):
        yield


def drawn_lengths(rng, n):
    """Lengths of chunks, some of them zero or one."""
    cuts = np.sort(rng.integers(0, n + 1, int(rng.integers(0, 9))))
    return tuple(int(length) for length in np.diff([0, *cuts, n]))


def as_sparse(D):
    return D.map_blocks(sparse.csr_matrix, meta=sparse.csr_matrix((0, 0), dtype=D.dtype))


def unknown(D):
    """The same array with chunks of unknown length."""
    return D[da.ones(D.shape[0], chunks=D.chunks[0], dtype=bool)]


def drawn(seed):
    """Rows in one place, the same ones in chunks, and a model for both."""
    rng = generator(seed, 77)
    n, d = int(rng.integers(40, 300)), int(rng.integers(2, 12))
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.6)
    X = X.astype(np.float32) if rng.random() < 0.3 else X
    columns = tuple(int(k) for k in (d // 2, d - d // 2)) if rng.random() < 0.3 else -1
    D = da.from_array(X, chunks=(drawn_lengths(rng, n), columns))
    if rng.random() < 0.5:
        X, D = sparse.csr_matrix(X), as_sparse(D)
    if rng.random() < 0.3:
        D = unknown(D)
    basis = [Landmarks(25), RandomFeatures(30), "points", "points"][int(rng.integers(4))]
    solver = "krylov" if rng.random() < 0.7 and basis == "points" else "auto"
    options = {"kernel": "rbf", "gamma": 0.2, "basis": basis, "eigen_solver": solver}
    return X, D, KernelPCA(3, random_state=0, **options)


@pytest.mark.parametrize("seed", range(16))
def test_any_chunks_give_the_model_of_one_array(seed, tmp_path):
    X, D, model = drawn(seed)
    here = model.fit(X)
    there = clone(model).fit(D)
    single = X.dtype == np.float32
    scores = here.transform(X)
    np.testing.assert_allclose(there.eigenvalues_, here.eigenvalues_, rtol=1e-3 if single else 1e-7)
    lazy = there.transform(D).compute()
    assert isinstance(lazy, np.ndarray)
    assert subspace_error(scores, lazy) < (1e-2 if single else 1e-5)
    np.testing.assert_allclose(there.transform(X), lazy, atol=1e-4 if single else 1e-9)
    there.save(tmp_path / "model.mercer")
    again = mercer.load(tmp_path / "model.mercer")
    np.testing.assert_allclose(again.transform(X), lazy, atol=1e-4 if single else 1e-9)
    np.testing.assert_allclose(
        there.reconstruction_error(D).compute(), again.reconstruction_error(X), atol=1e-3
    )
    if model.basis == "points":
        kept = again.X_fit_.toarray() if sparse.issparse(X) else again.X_fit_
        np.testing.assert_array_equal(kept, X.toarray() if sparse.issparse(X) else X)


@pytest.mark.parametrize("kernel", [Matern(0.1), Laplacian(0.1), Linear(), Polynomial(2, 0.1)])
@pytest.mark.parametrize("preimage", ["auto", "ridge", "fixed-point", "distance"])
def test_preimages_are_those_of_one_array(kernel, preimage):
    if preimage == "distance" and not isinstance(kernel, Matern):
        pytest.skip("a kernel of the distance only")
    X = generator(5).standard_normal((150, 4))
    options = {"kernel": kernel, "basis": "points", "preimage": preimage, "random_state": 0}
    here = KernelPCA(3, eigen_solver="dense", **options).fit(X)
    there = KernelPCA(3, eigen_solver="krylov", **options).fit(da.from_array(X, chunks=(60, -1)))
    signs = np.sign((here.transform(X) * there.transform(X)).sum(axis=0))
    S = here.transform(X[:20])
    np.testing.assert_allclose(
        there.inverse_transform(S * signs), here.inverse_transform(S), atol=1e-5
    )
    found, expected = (model.denoise(X[:20], noise=np.inf) for model in (there, here))
    np.testing.assert_allclose(found, expected, atol=1e-4)


def many_rows(n=6000, d=12):
    rng = generator(n, d)
    t = rng.uniform(-1, 1, (n, 1))
    return np.sin(t * np.arange(1, d + 1)) + 0.01 * rng.standard_normal((n, d))


# Enough for the vectors of the exact method here, and too little for a fourth of it to hold rows.
TIGHT = {"kernel": "rbf", "gamma": 0.1, "basis": "points", "eigen_solver": "krylov", "tol": 1e-4}


def test_rows_that_do_not_fit_here_are_sampled():
    X = many_rows(1500, 12)
    D = da.from_array(X, chunks=(400, -1))
    with pytest.raises(ValueError, match=r"1,500 points.*on a cluster.*preimage='ridge'"):
        KernelPCA(2, memory="1400KB", preimage="fixed-point", **TIGHT).fit(wide(D))
    model = KernelPCA(4, memory="2MB", **TIGHT).fit(wide(D))
    assert not model.expansion_.basis.at_hand
    assert "from a sample" in model.plan_.reason
    with pytest.warns(MercerWarning, match="centers"):
        back = model.inverse_transform(model.transform(wide(D)[:30].compute()))
    spread = np.square(X[:30] - X[:30].mean(axis=0)).sum()
    assert np.square(back[:, :12] - X[:30]).sum() < 0.2 * spread


def wide(D):
    """The same rows with as many columns of zeros again, several times over."""
    return da.concatenate([D, da.zeros((D.shape[0], 36), chunks=(D.chunks[0], 36))], axis=1)


def test_rows_that_changed_are_not_saved(tmp_path):
    less = []

    def changing(rows):
        return rows[: len(rows) - len(less)]

    D = da.from_array(many_rows(300, 3), chunks=(100, -1)).map_blocks(changing, dtype=float)
    model = KernelPCA(2, **TIGHT).fit(D)
    less.append("a row")
    with pytest.raises(ValueError, match=r"Chunk \d of X has 99 rows, and 100 were promised"):
        model.save(tmp_path / "model.mercer")
    assert not list(tmp_path.iterdir())


def test_no_file_holds_rows_of_a_cluster(tmp_path):
    model = KernelPCA(2, **TIGHT).fit(da.from_array(many_rows(200, 3), chunks=(100, -1)))
    model.save(tmp_path / "good.mercer")
    with open_archive(tmp_path / "good.mercer") as archive:
        header, tensors = archive.header, {name: archive.tensor(name) for name in archive.layout}
    del header["checksum"]
    header["model"]["state"]["items"]["expansion_"]["basis"]["@"] = "ChunkGram"
    write_archive(tmp_path / "bad.mercer", header, tensors)
    with pytest.raises(ModelFileError, match="ChunkGram"):
        mercer.load(tmp_path / "bad.mercer")


def test_auto_takes_landmarks_where_vectors_do_not_fit():
    D = da.from_array(generator(2).standard_normal((8_000, 3)), chunks=(2000, -1))
    with pytest.raises(ValueError, match=r"vectors of .* on the client.*landmarks"):
        KernelPCA(4, kernel="rbf", basis="points", memory="6MB").fit(D)
    model = KernelPCA(4, kernel="rbf", gamma=2.0, memory="6MB", random_state=0).fit(D)
    assert len(model.landmarks_) and "on the client" in model.plan_.reason
    model.set_params(basis="landmarks").fit(D)
    assert "on the client" not in model.plan_.reason


def test_a_plan_says_what_serves_on_a_cluster():
    D = da.from_array(many_rows(20_000, 3), chunks=(5000, -1))
    plan = mercer.plan(D, 4, memory="1GB")
    assert plan.chosen.fits and "saving writes 480 kB" in plan.reason
    assert plan.estimate("krylov, tiles kept") is None
    tight = mercer.plan(D, 4, memory="45MB")
    assert tight.method == 'basis="landmarks"' and "no exact method" in tight.reason
    chunks = as_sparse(D[:, :2].rechunk({1: -1}))
    assert "pre-images need dense rows" in mercer.plan(chunks, 4, memory="1GB").reason
    with pytest.raises(ValueError, match=r"unknown lengths.*compute_chunk_sizes"):
        mercer.plan(unknown(D))


def test_attributions_of_an_exact_model():
    X = many_rows(300, 4)
    here, there = (
        KernelPCA(2, **TIGHT).fit(rows) for rows in (X, da.from_array(X, chunks=(90, -1)))
    )
    np.testing.assert_allclose(there.attribute().size, here.attribute().size, atol=1e-5)
    basis = there.expansion_.basis
    W = generator(3).standard_normal((300, 2))
    np.testing.assert_allclose(
        gradients(basis, X[:5], W), gradients(here.expansion_.basis, X[:5], W), atol=1e-9
    )


@pytest.mark.parametrize("what", ["a hole", "an infinity"])
def test_a_sparse_chunk_that_is_wrong_is_named(what):
    X = np.zeros((60, 4))
    X[::3, 1] = 1.0
    X[47, 2] = np.nan if what == "a hole" else np.inf
    D = as_sparse(da.from_array(X, chunks=(20, -1)))
    with pytest.raises(ValueError, match=r"Chunk 2 of X: row 7 .*holds NaN or infinity"):
        KernelPCA(2, kernel="rbf", basis=Landmarks(5)).fit(D)
