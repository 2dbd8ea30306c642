"""Sparse rows of linear and cosine kernels: products with the rows in place of tiles."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

import mercer
from mercer import KernelPCA
from mercer.compute import TiledEngine
from mercer.kernels import Cosine


def drawn_rows(seed, n=None, d=None, copies=False):
    """Counts with columns of decaying frequency, some rows empty and some, if asked, repeated."""
    rng = np.random.default_rng(seed)
    n, d = n or int(rng.integers(60, 300)), d or int(rng.integers(5, 2000))
    rates = rng.uniform(0.2, 4) / (1 + np.arange(d)) ** rng.uniform(0.3, 1.2)
    counts = rng.poisson(rates * rng.gamma(1, 1, (n, 1))).astype(rng.choice(["f4", "f8", "i4"]))
    if copies:
        counts[n // 2 :] = counts[rng.integers(0, n // 2, n - n // 2)]
    return sparse.csr_matrix(counts * rng.choice([1, 7])), rng


def true_values(X, kernel, weights):
    """Eigenvalues of the weighted centered matrix, and centered rows, from dense rows."""
    Y = X.toarray().astype(float)
    if kernel == "cosine":
        Y = Y / np.where((Y**2).sum(1) > 0, np.sqrt((Y**2).sum(1)), 1)[:, None]
    w = np.ones(len(Y)) if weights is None else weights
    root = np.sqrt(w)
    C = root[:, None] * (Y - w @ Y / w.sum())
    return np.linalg.eigvalsh(C @ C.T)[::-1], (Y - w @ Y / w.sum())


@pytest.mark.parametrize("seed", range(24))
def test_same_as_the_matrix_itself(seed, tmp_path):
    """Eigenvalues, intervals, scores of the rows and of new ones, also of a saved model."""
    X, rng = drawn_rows(seed, copies=seed % 3 == 0)
    kernel = ("linear", "cosine")[seed % 2]
    solver = ("auto", "arpack", "krylov", "lobpcg")[seed // 2 % 4]
    r = int(rng.integers(1, min(8, min(X.shape) // 5 + 1) + 1))
    weights = rng.uniform(0.5, 3, X.shape[0]) if seed % 5 == 0 else None
    # Left to "auto", few columns are taken by their moments.
    model = KernelPCA(r, kernel=kernel, eigen_solver=solver, basis="points", n_jobs=1 + seed % 2)
    scores = model.fit(X, sample_weight=weights).transform(X)
    values, C = true_values(X, kernel, weights)
    scale = values[0]
    np.testing.assert_allclose(model.eigenvalues_, values[:r], rtol=0, atol=1e-9 * scale)
    certificate = model.certificate_
    low, high = certificate.eigenvalue_lower, certificate.eigenvalue_upper
    assert np.all(low <= values[:r] + 1e-14 * scale) and np.all(values[:r] <= high + 1e-14 * scale)
    if certificate.confidence is not None:
        assert np.all(values[:r] <= certificate.likely_upper + 1e-14 * scale)
        assert np.all(certificate.likely_upper <= high)
    if values[r - 1] - values[r] > 1e-4 * scale:  # else the last direction is not determined
        np.testing.assert_allclose(scores @ scores.T, projected(C, weights, r), atol=1e-8 * scale)
    model.save(tmp_path / "model.mercer")
    again = mercer.load(tmp_path / "model.mercer").transform(X[:20])
    np.testing.assert_allclose(again, scores[:20], rtol=0, atol=1e-12 * np.abs(scores).max())


@pytest.mark.parametrize("seed", range(8))
def test_leading_components_are_known_to_be_leading(seed):
    """At a stated confidence, where eigenvalues fall; not all where they hardly do."""
    rng = rng_of(seed)
    rates = rng.gamma(0.2, 1, (6, 900)) / (1 + np.arange(900))
    mixtures = rng.dirichlet(np.full(6, 0.2), 700) @ (200 * rates / rates.sum(1, keepdims=True))
    X = sparse.csr_matrix(rng.poisson(mixtures).astype(float))
    settings = {"kernel": ("linear", "cosine")[seed % 2], "basis": "points", "random_state": seed}
    certificate = KernelPCA(6, eigen_solver="arpack", **settings).fit(X).certificate_
    values, _ = true_values(X, settings["kernel"], None)
    proven = certificate.n_proven
    assert proven >= 2 and certificate.confidence == 1 - 1e-6
    assert np.all(values[:6] <= certificate.likely_upper * (1 + 1e-12))
    np.testing.assert_allclose(certificate.likely_upper[:proven], values[:proven], rtol=1e-5)
    assert "(with confidence 1 - 1e-6)" in repr(certificate)
    flat = sparse.random(700, 900, 0.05, "csr", rng=rng)
    assert KernelPCA(6, **settings).fit(flat).certificate_.n_proven < 6


def projected(C, weights, r):
    """Inner products of centered rows projected on their leading r directions."""
    w = np.ones(len(C)) if weights is None else weights
    V = np.linalg.svd(np.sqrt(w)[:, None] * C, full_matrices=False)[2][:r].T
    return C @ V @ (C @ V).T


@pytest.mark.parametrize("kernel", ["linear", "cosine"])
def test_no_kernel_value_is_computed(kernel, monkeypatch):
    """Neither by the fit, which "auto" does by products, nor by scores of new rows."""
    X, _ = drawn_rows(1, n=3000, d=5000)
    small = KernelPCA(3, kernel=kernel).fit(X[:50])

    def no_tiles(*args, **kwargs):
        raise AssertionError("a tile was made")

    monkeypatch.setattr(TiledEngine, "pair_rows", no_tiles)
    monkeypatch.setattr(TiledEngine, "fill", no_tiles)
    model = KernelPCA(3, kernel=kernel).fit(X)
    assert model.plan_.method == "arpack, products of rows"
    assert model.transform(X[:100]).shape == small.transform(X[:100]).shape == (100, 3)


@pytest.mark.parametrize("memory", ["700kB", "2MB", "40MB"])
def test_within_a_budget(memory):
    """Rows are made again for each product, and some columns taken at a time, where it is small."""
    X, _ = drawn_rows(4, n=400, d=3000)
    exact = KernelPCA(5, kernel="cosine", basis="points").fit(X)
    model = KernelPCA(5, kernel="cosine", basis="points", memory=memory).fit(X)
    np.testing.assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=1e-10)


@pytest.mark.parametrize("solver", ["auto", "krylov"])
def test_resumed_with_the_same_certificate(solver, tmp_path):
    X, _ = drawn_rows(5, n=500, d=800)
    settings = {"kernel": "linear", "basis": "points", "eigen_solver": solver, "random_state": 0}
    whole = KernelPCA(4, **settings).fit(X)
    for _ in range(2):
        model = KernelPCA(4, **settings, checkpoint=tmp_path / "saved").fit(X)
        np.testing.assert_allclose(model.eigenvalues_, whole.eigenvalues_, rtol=1e-12)
        assert model.certificate_.n_proven == whole.certificate_.n_proven


SLOW_SEEDS = [pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 4, 5)]


@pytest.mark.parametrize("seed", [0, 2, 3, *SLOW_SEEDS])
def test_from_files_and_blocks(seed, tmp_path):
    """A stored archive is used from disk, blocks are joined: the same as in memory."""
    rng = rng_of(seed)
    X = sparse.random(800, int(rng.integers(1000, 3000)), 0.1, "csr", rng=rng)
    X = sparse.csr_matrix(X * 10 if seed < 3 else X.astype(np.float32))
    settings = {"n_components": 4, "kernel": ("linear", "cosine")[seed % 2], "basis": "points"}
    exact = KernelPCA(**settings).fit(X)
    path = tmp_path / "rows.npz"
    sparse.save_npz(path, X, compressed=False)
    budgets = (None, "4MB", "1.5MB")
    for source, memory in [(path, m) for m in budgets] + [(lambda: iter([X[:70], X[70:]]), None)]:
        model = KernelPCA(**settings, memory=memory).fit(source)
        np.testing.assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=1e-10)


@pytest.mark.parametrize("kernel", ["linear", "cosine"])
def test_rows_from_disk_stay_in_the_budget(kernel, tmp_path):
    """Those that are mapped share their places with what is held of them between products."""
    rng, n, r = rng_of(7), 2000, 4
    X = sparse.random(n, int(rng.integers(8000, 20_000)), 0.06, "csr", rng=rng)
    X.data /= np.sqrt(1.0 + X.indices)
    path, memory = tmp_path / "rows.npz", int(rng.uniform(1.25, 1.4) * 12 * X.nnz)
    sparse.save_npz(path, X, compressed=False)
    model = KernelPCA(r, kernel=kernel, basis="points", memory=memory, n_jobs=1)
    tracemalloc.start()
    try:
        model.fit(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= memory


def test_archives_that_do_not_fit(tmp_path):
    """Compressed ones say what to save instead; contradictions on disk are refused."""
    X, _ = drawn_rows(3, n=2000, d=3000)
    path = tmp_path / "rows.npz"
    sparse.save_npz(path, X)
    size = X.data.nbytes + X.indices.nbytes
    with pytest.raises(ValueError, match=r"compressed=False\), which is used from disk"):
        KernelPCA(2, kernel="linear", memory=size // 2).fit(path)
    X.indices[-1] = 4000
    sparse.save_npz(path, X, compressed=False)
    with pytest.raises(ValueError, match=r"rows.npz is damaged: .* column numbers outside"):
        KernelPCA(2, kernel="linear", memory=2 * size).fit(path)
    X.indices[-1] = 2999
    sparse.save_npz(path, X.astype(float) * np.nan, compressed=False)
    with pytest.raises(ValueError, match="holds NaN or infinity in column"):
        KernelPCA(2, kernel="linear", memory=2 * size).fit(path)


@pytest.mark.parametrize("seed", range(4))
def test_of_chunks_on_a_cluster(seed):
    """Chunks multiply vectors themselves: the same eigenvalues and scores, and no tile is made."""
    da = pytest.importorskip("dask.array")
    X, rng = drawn_rows(seed + 30, n=400, d=int(rng_of(seed).integers(60, 900)))
    X = X.astype(float)
    cuts = np.sort(rng.choice(np.arange(1, 400), 3, replace=False))
    chunks = [
        da.from_array(X[a:b].toarray(), chunks=(b - a, X.shape[1])).map_blocks(sparse.csr_matrix)
        for a, b in zip([0, *cuts], [*cuts, 400], strict=True)
    ]
    settings = {"n_components": 3, "kernel": ("linear", "cosine")[seed % 2], "basis": "points"}
    exact = KernelPCA(**settings).fit(X)
    model = KernelPCA(**settings, eigen_solver="krylov").fit(da.concatenate(chunks))
    assert model.plan_.method == "krylov, matrix-free"
    np.testing.assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=1e-9)
    assert np.all(model.certificate_.eigenvalue_lower <= exact.certificate_.eigenvalue_upper)
    assert np.all(exact.certificate_.eigenvalue_lower <= model.certificate_.eigenvalue_upper)
    scores = model.transform(da.concatenate(chunks)[:50]).compute()
    np.testing.assert_allclose(
        scores @ scores.T, projections(exact, X[:50]), atol=1e-6 * exact.eigenvalues_[0]
    )


def projections(model, X):
    """Inner products of scores, which signs do not change."""
    scores = model.transform(X)
    return scores @ scores.T


def rng_of(seed):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("seed", range(4))
def test_unit_length_whatever_the_size(seed):
    """Rows of numbers near the ends of their type have unit length, as dense ones have."""
    rng = rng_of(seed)
    kind = (np.float32, np.float64)[seed % 2]
    ends = (-36, 36) if kind is np.float32 else (-300, 300)
    dense = rng.normal(size=(40, 30)) * (rng.random((40, 30)) < 0.3)
    rows = (dense * 10.0 ** rng.uniform(*ends, (40, 1))).astype(kind)
    rows[::7] = 0
    unit = Cosine().embed(sparse.csr_matrix(rows))
    assert unit.dtype == kind
    lengths = np.sqrt((unit.toarray().astype(float) ** 2).sum(axis=1))
    np.testing.assert_allclose(lengths, rows.any(axis=1), rtol=1e-5)
    np.testing.assert_allclose(unit.toarray(), Cosine().embed(rows), rtol=1e-5, atol=1e-12)
