"""AnnData objects: rows in, results beside the cells, the same as of the estimators."""

import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from contracts import generator
from scipy import sparse
from sklearn.neighbors import kneighbors_graph

import mercer.anndata as cells
from mercer import DiffusionMap, KernelPCA

ad = pytest.importorskip("anndata", reason="anndata is not installed")
# Of pandas, at what anndata asks of it.
pytestmark = pytest.mark.filterwarnings("ignore:The 'future.infer_string' option")


def drawn(seed, n=200, d=30, dense=False):
    """Counts of cells along a path, some genes of high variance, and an embedding of them."""
    rng = generator(seed)
    time = rng.uniform(0, 1, n)
    rates = np.exp(np.outer(time, rng.standard_normal(d)) + rng.standard_normal(d))
    X = np.log1p(rng.poisson(rates)).astype(np.float32)
    names = [f"gene {i}" for i in range(d)]
    adata = ad.AnnData(X if dense else sparse.csr_matrix(X), var=pd.DataFrame(index=names))
    adata.obs_names = [f"cell {i}" for i in range(n)]
    adata.layers["counts"] = sparse.csr_matrix(np.expm1(X))
    adata.var["highly_variable"] = rng.uniform(size=d) < 0.6
    adata.obsm["X_pca"] = np.column_stack([time, 0.05 * rng.standard_normal((n, 3))])
    return adata, X, time


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_kernel_pca(seed, dense, tmp_path):
    adata, X, _ = drawn(seed, dense=dense)
    mask = adata.var["highly_variable"].to_numpy()
    settings = {"kernel": "rbf", "gamma": 0.02, "random_state": 0}
    model = cells.kernel_pca(adata, 4, **settings)
    expected = KernelPCA(4, **settings).fit_transform(X[:, mask])
    np.testing.assert_allclose(np.abs(adata.obsm["X_kpca"]), np.abs(expected), atol=1e-4)
    assert not adata.varm["X_kpca"][~mask].any() and adata.varm["X_kpca"][mask].any(axis=1).all()
    cells.kernel_pca(adata, 3, layer="counts", mask_var=None, key_added="all", **settings)
    expected = KernelPCA(3, **settings).fit_transform(np.expm1(X))
    np.testing.assert_allclose(np.abs(adata.obsm["all"]), np.abs(expected), atol=1e-3)
    cells.kernel_pca(adata, 2, use_rep="X_pca", key_added="rep", **settings)
    # Other cells, their genes in another order.
    new = adata[::2, ::-1].copy()
    cells.transform(new, model, adata)
    np.testing.assert_allclose(new.obsm["X_kpca"], adata.obsm["X_kpca"][::2], atol=1e-4)
    missing = adata.var_names[mask][0]
    with pytest.raises(ValueError, match=r"1 of .* genes of the model are missing"):
        cells.transform(adata[:, adata.var_names != missing], model, adata)
    # What is written can be stored, and the certificate is that of the model.
    adata.write_h5ad(tmp_path / "cells.h5ad")
    back = ad.read_h5ad(tmp_path / "cells.h5ad")
    lower = back.uns["X_kpca"]["certificate"]["eigenvalue_lower"]
    np.testing.assert_allclose(lower, model.certificate_.eigenvalue_lower)
    np.testing.assert_array_equal(back.obsm["X_kpca"], adata.obsm["X_kpca"])


@pytest.mark.parametrize("dense", [True, False])
def test_backed_files_are_read_in_blocks(dense, tmp_path, monkeypatch):
    adata, X, _ = drawn(5, dense=dense)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    backed = ad.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    monkeypatch.setattr(cells, "BLOCK_CELLS", 64)
    settings = {"kernel": "rbf", "gamma": 0.02, "basis": "landmarks", "random_state": 0}
    cells.kernel_pca(backed, 3, **settings)
    mask = adata.var["highly_variable"].to_numpy()
    exact = KernelPCA(3, kernel="rbf", gamma=0.02).fit_transform(X[:, mask])
    for a, b in zip(backed.obsm["X_kpca"].T, exact.T, strict=True):
        assert abs(np.corrcoef(a, b)[0, 1]) >= 0.99
    backed.file.close()


@pytest.mark.parametrize("dense", [True, False])
def test_new_cells_of_a_file_are_placed_in_blocks(dense, tmp_path):
    adata, X, _ = drawn(6, d=100, dense=dense)
    settings = {"kernel": "linear", "memory": "4MB"}
    model = cells.kernel_pca(adata, 3, mask_var=None, **settings)
    again = generator(7).integers(0, 200, 60_000)
    cells_there = X[again][:, ::-1] if dense else sparse.csr_matrix(X[again][:, ::-1])
    ad.AnnData(cells_there, var=adata.var[::-1]).write_h5ad(tmp_path / "new.h5ad")
    new = ad.read_h5ad(tmp_path / "new.h5ad", backed="r")
    tracemalloc.start()
    try:
        cells.transform(new, model, adata)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= X[again].nbytes
    np.testing.assert_allclose(new.obsm["X_kpca"], adata.obsm["X_kpca"][again], atol=1e-4)
    new.file.close()


@pytest.mark.parametrize("seed", range(3))
def test_pseudotime_goes_along_the_path(seed, tmp_path):
    adata, _, time = drawn(seed, n=300)
    D = kneighbors_graph(adata.obsm["X_pca"], 20, mode="distance")
    adata.obsp["distances"] = D
    adata.obsp["connectivities"] = ((D > 0) + (D > 0).T).astype(np.float32)
    adata.uns["neighbors"] = {
        "connectivities_key": "connectivities",
        "distances_key": "distances",
    }
    adata.uns["iroot"] = int(time.argmin())
    for use in ("connectivities", "distances"):
        cells.diffusion_map(adata, 6, use=use)
        found = adata.obs["dpt_pseudotime"].to_numpy()
        assert found.min() == 0 and found.max() == 1
        assert np.corrcoef(found, time)[0, 1] >= 0.9
    cells.diffusion_map(adata, 6, use_rep="X_pca", key_added="rows", n_neighbors=20)
    assert np.corrcoef(adata.obs["dpt_pseudotime"], time)[0, 1] >= 0.9
    cells.spectral_embedding(adata, 2)
    assert abs(np.corrcoef(adata.obsm["X_spectral"][:, 0], time)[0, 1]) >= 0.9
    adata.write_h5ad(tmp_path / "cells.h5ad")
    model = cells.diffusion_map(adata, 3, key_added="given")
    with pytest.raises(ValueError, match="given graph"):
        cells.transform(adata, model, adata, key="given")


@pytest.mark.parametrize("seed", range(2))
def test_pseudotime_is_that_of_the_random_walk(seed):
    """Eigenvectors of the symmetric matrix, as scanpy takes them, over the roots of the degrees."""
    adata, _, time = drawn(seed, n=200)
    adata.uns["iroot"] = int(time.argmin())
    model = cells.diffusion_map(adata, 6, use_rep="X_pca", neighbor_weights="local")
    W = sparse.csr_matrix(model.affinity_matrix_).toarray()
    K = W / np.outer(W.sum(axis=1), W.sum(axis=1))
    roots = np.sqrt(K.sum(axis=1))
    values, U = np.linalg.eigh(K / np.outer(roots, roots))
    values, psi = values[-7:-1], U[:, -7:-1] / roots[:, None]
    steps = values / (1 - values) * (psi - psi[adata.uns["iroot"]])
    expected = np.linalg.norm(steps, axis=1)
    np.testing.assert_allclose(adata.obs["dpt_pseudotime"], expected / expected.max(), atol=1e-6)


def test_pseudotime_of_a_graph_in_pieces():
    adata, _, time = drawn(3, n=300)
    group = generator(8).integers(0, 3, 300)
    adata.obsm["X_pca"] = adata.obsm["X_pca"] + 40 * group[:, None]
    root = int(np.flatnonzero(group == 1)[time[group == 1].argmin()])
    adata.uns["iroot"] = root
    with pytest.warns(UserWarning) as told:
        cells.diffusion_map(adata, 5, use_rep="X_pca")
    assert any("cells are in other pieces" in str(one.message) for one in told)
    found = adata.obs["dpt_pseudotime"].to_numpy()
    np.testing.assert_array_equal(np.isfinite(found), group == 1)
    assert np.corrcoef(found[group == 1], time[group == 1])[0, 1] >= 0.9
    # As of the piece alone.
    alone = adata[group == 1].copy()
    alone.uns["iroot"] = int(np.flatnonzero(np.flatnonzero(group == 1) == root)[0])
    cells.diffusion_map(alone, 5, use_rep="X_pca")
    np.testing.assert_allclose(alone.obs["dpt_pseudotime"], found[group == 1], atol=1e-6)


@pytest.mark.parametrize("tie", [1e-12, 1e-20, 1e-38])
def test_pseudotime_over_weak_ties(tie):
    """Never nan: ties that rounding loses join no pieces, and those it keeps are a long way."""
    adata, _, time = drawn(4, n=300)
    group = generator(9).integers(0, 3, 300)
    near = kneighbors_graph(adata.obsm["X_pca"] + 40 * group[:, None], 12)
    first = [int(np.flatnonzero(group == k)[0]) for k in range(3)]
    weak = sparse.coo_matrix(([tie, tie], (first[:2], first[1:])), shape=(300, 300))
    adata.obsp["connectivities"] = sparse.csr_matrix(near + near.T + weak + weak.T)
    adata.uns["iroot"] = int(np.flatnonzero(group == 0)[time[group == 0].argmin()])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        cells.diffusion_map(adata, 6)
    found = adata.obs["dpt_pseudotime"].to_numpy()
    assert not np.isnan(found).any() and np.isfinite(found[group == 0]).all()
    assert np.isfinite(found).all() == (tie == 1e-12)


def test_what_is_not_there():
    adata, _, _ = drawn(0)
    with pytest.raises(ValueError, match=r"There is no 'best' in var"):
        cells.kernel_pca(adata, mask_var="best")
    with pytest.raises(ValueError, match="There is no graph 'mine' in obsp"):
        cells.diffusion_map(adata, neighbors_key="mine")
    with pytest.raises(ValueError, match="must be 'connectivities' or 'distances'"):
        cells.diffusion_map(adata, use="ties")
    model = cells.kernel_pca(adata, 2)
    with pytest.warns(UserWarning, match="not unique"):
        same = adata[:, [0, 0, *range(1, 30)]].copy()
    for wrong, match in (
        (lambda: cells.kernel_pca(adata, use_rep="X_umap"), r"no 'X_umap' in obsm.*'X_pca'"),
        (lambda: cells.kernel_pca(adata, layer="raw"), r"no 'raw' in layers.*'counts'"),
        (lambda: cells.transform(adata, model, adata, key="X"), r"no 'X' in uns.*'X_kpca'"),
        (lambda: cells.transform(same, model, adata), "Genes must have different names"),
        (lambda: cells.kernel_pca(ad.AnnData(obs=adata.obs, var=adata.var)), "has no X"),
    ):
        with pytest.raises(ValueError, match=match):
            wrong()
    for root in (-1, 200):
        adata.uns["iroot"] = root
        with pytest.raises(ValueError, match=f"'iroot'. is {root}, and cells go from 0 to 199"):
            cells.diffusion_map(adata, use_rep="X_pca")
    assert DiffusionMap().density_power == 0.5
