"""Tanimoto's kernel: bits in every form, counts, memory, devices, and exact fits."""

import numpy as np
import oracle
import pytest
from contracts import check_tile_bytes, generator
from scipy import sparse

import mercer
from mercer import KernelPCA
from mercer.bases import Landmarks
from mercer.kernels import Tanimoto


def fingerprints(n, d, seed=0, density=0.2):
    """Random bits with rows of zeros, of ones, and repeated."""
    B = generator(seed, d).random((n, d)) < density
    B[0], B[1], B[2] = False, False, True
    B[3] = B[4]
    return B


@pytest.mark.parametrize("d", [1, 7, 8, 63, 64, 65, 130, 2048])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bits_in_every_form_have_the_same_values(d, dtype):
    X, Z = fingerprints(40, d), fingerprints(17, d, 1)
    expected = oracle.tanimoto(X.astype(float), Z.astype(float)).astype(dtype)
    for form in (bool, np.uint8, np.int64, np.float32, np.float64):
        np.testing.assert_array_equal(
            Tanimoto()(X.astype(form), Z.astype(form), dtype=dtype), expected
        )
    for form in (sparse.csr_array, sparse.csr_matrix):
        A, B = form(X.astype(float)), form(Z.astype(float))
        np.testing.assert_array_equal(Tanimoto()(A, B, dtype=dtype), expected)
        np.testing.assert_array_equal(Tanimoto()(A, Z, dtype=dtype), expected)
    packed = [np.packbits(A, axis=1) for A in (X, Z)]
    for form in (np.uint8, np.float32, np.float64):
        A, B = (rows.astype(form) for rows in packed)
        np.testing.assert_array_equal(Tanimoto(packed=True)(A, B, dtype=dtype), expected)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_counts_and_tiles_of_both(seed, kind):
    """Some blocks hold bits alone and others counts, with kept rows and without."""
    rng = generator(seed)
    X = rng.poisson(0.5, (60, 70)).astype(float)
    X[:20], X[5:7] = X[:20] > 0, 0
    X[50:] *= rng.random((10, 70))
    expected = oracle.tanimoto(X, X)
    for store in (0, 10**9):
        pairs = Tanimoto().pairs(kind(X), store=store, dtype=np.float64)
        for i in (slice(0, 20), slice(20, 60), slice(3, 18)):
            for j in (slice(0, 20), slice(10, 60)):
                out = np.empty((i.stop - i.start, j.stop - j.start))
                assert pairs.tile(i, j, out) is out
                np.testing.assert_allclose(out, expected[i, j], rtol=1e-14)


def test_a_zero_row_is_like_itself_alone():
    K = Tanimoto()(np.array([[0.0, 0], [0, 0], [2, 1]]))
    np.testing.assert_array_equal(K, [[1, 1, 0], [1, 1, 0], [0, 0, 1]])
    np.testing.assert_array_equal(K, Tanimoto()(sparse.csr_array([[0.0, 0], [0, 0], [2, 1]])))


@pytest.mark.parametrize("bad", [np.full((9, 3), 256.0), np.full((9, 3), 0.5), np.full((9, 3), -1)])
def test_packed_rows_are_bytes(bad):
    with pytest.raises(ValueError, match=r"Tanimoto.*(bytes|whole numbers from 0 to 255)"):
        KernelPCA(2, kernel=Tanimoto(packed=True)).fit(bad)


def test_rows_that_are_no_fingerprints():
    with pytest.raises(ValueError, match="dense rows of bytes"):
        KernelPCA(2, kernel=Tanimoto(packed=True)).fit(sparse.eye_array(9, format="csr"))
    with pytest.raises(ValueError, match="non-negative"):
        KernelPCA(2, kernel="tanimoto").fit(-np.eye(9))
    with pytest.raises(ValueError, match="beyond float64"):
        KernelPCA(2, kernel="tanimoto").fit(np.eye(9) * 1e303)


@pytest.mark.parametrize("form", ["dense", "csr", "packed"])
@pytest.mark.parametrize("basis", ["points", Landmarks(40)], ids=str)
def test_fits_of_fingerprints(tmp_path, form, basis):
    B = fingerprints(150, 100, 3)
    B = B[np.sort(np.unique(B, axis=0, return_index=True)[1])]
    X = {"dense": B, "csr": sparse.csr_array(B.astype(float)), "packed": np.packbits(B, axis=1)}
    kernel = Tanimoto(packed=form == "packed")
    model = KernelPCA(4, kernel=kernel, basis=basis, random_state=0).fit(X[form])
    K = oracle.tanimoto(B.astype(float), B.astype(float))
    values = np.linalg.eigvalsh(oracle.center(K))[::-1][:4]
    found = model.certificate_
    assert (found.eigenvalue_lower <= values * (1 + 1e-9)).all()
    assert (found.eigenvalue_upper >= values * (1 - 1e-9)).all()
    if basis == "points":
        np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-9)
    model.save(tmp_path / "model.mercer")
    loaded = mercer.load(tmp_path / "model.mercer")
    np.testing.assert_array_equal(loaded.transform(X[form]), model.transform(X[form]))


def test_packed_bytes_on_disk_are_read_as_they_are(tmp_path):
    B = fingerprints(300, 256, 4)
    np.save(tmp_path / "rows.npy", np.packbits(B, axis=1))
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    settings = {"kernel": Tanimoto(packed=True), "basis": Landmarks(indices=range(0, 300, 5))}
    expected = KernelPCA(3, **settings).fit(np.packbits(B, axis=1))
    for rows in (mapped, tmp_path / "rows.npy"):
        found = KernelPCA(3, **settings).fit(rows)
        np.testing.assert_allclose(found.eigenvalues_, expected.eigenvalues_, rtol=1e-9)


@pytest.mark.parametrize("packed", [False, True])
def test_work_memory(packed):
    B = fingerprints(600, 4096, 5)
    check_tile_bytes(Tanimoto(packed), np.packbits(B, axis=1) if packed else B.astype(float))
    if not packed:
        check_tile_bytes(Tanimoto(), sparse.csr_array(B.astype(float)))
        counts = B * generator(6).random(B.shape)
        check_tile_bytes(Tanimoto(), counts)
        check_tile_bytes(Tanimoto(), sparse.csr_array(counts))


def test_on_torch():
    torch = pytest.importorskip("torch")
    B = fingerprints(80, 100, 6)
    expected = oracle.tanimoto(B.astype(float), B.astype(float))
    counts = B * generator(7).integers(1, 5, B.shape).astype(float)
    for dtype in (torch.float32, torch.float64):
        rtol = 1e-6 if dtype == torch.float32 else 1e-14
        for kernel, rows in (
            (Tanimoto(), B),
            (Tanimoto(packed=True), np.packbits(B, axis=1)),
        ):
            found = kernel(torch.asarray(rows.astype(float)).to(dtype))
            assert found.dtype == dtype
            np.testing.assert_allclose(found.numpy(), expected, rtol=rtol)
        found = Tanimoto()(torch.asarray(counts).to(dtype)).numpy()
        np.testing.assert_allclose(found, oracle.tanimoto(counts, counts), rtol=10 * rtol)
