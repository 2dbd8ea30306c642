"""The columns as a basis: linear kernel PCA as PCA, in one pass and without loss."""

import pickle

import numpy as np
import pytest
from contracts import generator
from scipy import sparse

import mercer
from mercer import KernelPCA
from mercer.bases import Columns


def cloud(n=300, d=8, far=0.0, seed=0):
    rng = generator(seed)
    return rng.standard_normal((n, d)) / np.sqrt(1 + np.arange(d)) + far * rng.random(d)


def both(X, r=3, **options):
    model = KernelPCA(r, basis="columns", **options).fit(X)
    return model, KernelPCA(r, basis="points", eigen_solver="dense", **options).fit(X)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("kernel", ["linear", "cosine"])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, np.float32])
def test_same_as_all_points(kernel, center, kind):
    X, new = kind(cloud()), kind(cloud(40, seed=1))
    model, exact = both(X, kernel=kernel, center=center)
    tol = 1e-5 if X.dtype == np.float32 else 1e-10
    for name in ("eigenvalues_", "eigenvectors_", "explained_variance_ratio_"):
        np.testing.assert_allclose(getattr(model, name), getattr(exact, name), rtol=tol, atol=tol)
    for verb in ("transform", "reconstruction_error"):
        found, wanted = getattr(model, verb)(new), getattr(exact, verb)(new)
        np.testing.assert_allclose(found, wanted, atol=20 * tol)
        assert found.dtype == X.dtype
    scores = model.fit_transform(X)
    np.testing.assert_allclose(scores, model.eigenvectors_ * model.eigenvalues_**0.5, atol=20 * tol)
    certificate = model.certificate_
    assert certificate.kind == "bound" and certificate.converged
    assert np.all(certificate.eigenvalue_lower <= exact.eigenvalues_ * (1 + tol))
    assert np.all(certificate.eigenvalue_upper >= exact.eigenvalues_ * (1 - tol))


@pytest.mark.parametrize("far", [0.0, 1e3, 1e6])
def test_far_from_the_origin(far):
    """Rows are added up about their mean: the matrix of inner products would lose all digits."""
    X = cloud(5000, far=far)
    wide = X.astype(np.longdouble)
    values = np.linalg.svd((wide - wide.mean(axis=0)).astype(float), compute_uv=False)[:3] ** 2
    model = KernelPCA(3).fit(X)
    assert model.plan_.method == 'basis="columns"'
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-12)
    assert np.all(np.abs(model.eigenvalues_ - values) <= model.certificate_.residuals)
    back = model.inverse_transform(model.transform(X))
    assert np.abs(back - X).max() < 5 + 1e-9 * far


def test_auto_takes_them_where_they_are_cheaper():
    assert KernelPCA(3).fit(cloud(200, 8)).plan_.method == 'basis="columns"'
    assert KernelPCA(3, kernel="cosine").fit(cloud(200, 8)).plan_.method == 'basis="columns"'
    for options in (
        {"kernel": "rbf"},
        {"eigen_solver": "dense"},
        {"fit_inverse_transform": True},
        {"basis": "points"},
    ):
        model = KernelPCA(3, **options).fit(cloud(200, 8))
        assert model.plan_.method != 'basis="columns"' and model.expansion_.basis.spans_data
    assert KernelPCA(3).fit(cloud(30, 40)).expansion_.basis.spans_data, "more columns than rows"
    assert KernelPCA(12).fit(cloud(100, 8)).eigenvalues_.size == 12, "more components than columns"
    assert mercer.plan((100_000, 20), 5, kernel="linear").method == 'basis="columns"'
    assert mercer.plan((100, 2000), 5, kernel="linear").method != 'basis="columns"'


@pytest.mark.parametrize("r", [None, 0.9, 8])
def test_any_number_of_components(r):
    model, exact = both(cloud(), r)
    assert model.eigenvalues_.shape == exact.eigenvalues_.shape
    np.testing.assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=1e-9)


def test_components_without_variance():
    X = np.hstack([cloud(60, 2), np.ones((60, 2))])
    model = KernelPCA(4, basis="columns").fit(X)
    assert np.all(model.eigenvalues_[2:] == 0) and np.all(model.eigenvectors_[:, 2:] == 0)
    assert np.isfinite(model.transform(X)).all()
    with pytest.warns(UserWarning, match="no variance"):
        model = KernelPCA(2, basis="columns").fit(np.full((50, 3), 1.1))
    assert np.all(model.eigenvalues_ == 0)


def test_other_kernels_say_what_to_do():
    with pytest.raises(ValueError, match=r"linear and cosine kernels.*basis='auto'"):
        KernelPCA(2, kernel="rbf", basis=Columns()).fit(cloud())


def test_files_in_one_pass(tmp_path):
    X = cloud(2000, 5, far=10.0)
    np.save(tmp_path / "rows.npy", X)
    here = KernelPCA(3).fit(X)
    for source in (lambda: iter([X[:700], X[700:]]), tmp_path / "rows.npy"):
        found = KernelPCA(3, basis="columns").fit(source)
        np.testing.assert_allclose(found.eigenvalues_, here.eigenvalues_, rtol=1e-12)
        np.testing.assert_allclose(abs(found.transform(X)), abs(here.transform(X)), atol=1e-9)
    small = KernelPCA(3, memory="60kB", n_jobs=1).fit(lambda: iter([X[:700], X[700:]]))
    assert small.expansion_.basis.noun == "columns" and not hasattr(small, "eigenvectors_")


def test_copies_and_files_give_the_same(tmp_path):
    X = cloud()
    model = KernelPCA(3, kernel="cosine").fit(X)
    model.save(tmp_path / "a.mercer")
    for copy in (pickle.loads(pickle.dumps(model)), mercer.load(tmp_path / "a.mercer")):
        np.testing.assert_allclose(copy.transform(X), model.transform(X), atol=1e-14)


def test_rows_are_left_alone():
    X = cloud()
    before = X.copy()
    KernelPCA(2, copy_X=False).fit(X)
    np.testing.assert_array_equal(X, before)
