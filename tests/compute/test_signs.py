"""Signs: an exact and an approximate fit of the same rows are no mirror images."""

import numpy as np
import pytest
from contracts import generator
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import KernelPCA
from mercer.bases import Landmarks, RandomFeatures
from mercer.files import open_source

DATA = {
    "iris": lambda: load_iris().data,
    "wine": lambda: StandardScaler().fit_transform(load_wine().data),
    "cancer": lambda: StandardScaler().fit_transform(load_breast_cancer().data),
    "digits": lambda: load_digits().data[:900],
    "skewed": lambda: generator(71).exponential(size=(700, 3)),
}
BASES = {"landmarks": Landmarks(120), "features": RandomFeatures(800)}


def peaks(S):
    """The score of largest modulus of every component, and how far it is ahead of the other end."""
    high, low = S.max(axis=0), -S.min(axis=0)
    return np.where(high > low, high, -low), np.abs(high - low) / np.maximum(high, low)


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("name", DATA)
def test_exact_and_approximate_fits_agree(name, basis):
    X = DATA[name]()
    exact = KernelPCA(4, kernel="rbf", gamma="median").fit(X)
    few = KernelPCA(4, kernel="rbf", gamma=exact.gamma_, basis=BASES[basis], random_state=0).fit(X)
    E, S = exact.transform(X), few.transform(X)
    assert (peaks(E)[0] > 0).all() and (peaks(S)[0] > 0).all(), "scikit-learn's convention"
    cosine = np.sum(E * S, axis=0) / np.linalg.norm(E, axis=0) / np.linalg.norm(S, axis=0)
    # A component that the approximation has found, and whose ends are not equally far.
    sure = (np.abs(cosine) > 0.95) & (peaks(E)[1] > 0.1)
    assert (cosine[sure] > 0).all()


def same_signs(fits, X):
    scores = [
        model.transform(X[:60])
        if isinstance(model, mercer.KernelCCA)
        else model.expansion_.scores(X[:60])
        for model in fits
    ]
    for S in scores[1:]:
        assert (np.sum(S * scores[0], axis=0) > 0).all()


def by_states(model, X, cuts):
    """The fit of batches that are merged in another order than that of their rows."""
    parts = list(enumerate(np.split(X, cuts)))[::-1]
    firsts = [0, *cuts]
    while model.stage != "fitted":
        states = [model.partial(rows, first_row=firsts[i]) for i, rows in parts]
        model.advance(mercer.merge(states))
    return model


@pytest.mark.parametrize("n", [3000, 9000])
def test_every_way_to_the_same_rows_has_the_same_landmarks_and_signs(n, tmp_path):
    rng = generator(72)
    X, cuts = rng.exponential(size=(n, 3)), np.sort(rng.integers(1, n, 4))
    basis = Landmarks(60)
    model = KernelPCA(3, kernel="rbf", gamma="median", basis=basis, random_state=0, memory="1GB")
    np.save(tmp_path / "x.npy", X)
    kinds = [open_source(tmp_path / "x.npy"), lambda: iter(np.split(X, cuts))]
    if n < 4000:  # the sample that landmarks are chosen from is all rows
        kinds += [X, lambda: iter([sparse.csr_matrix(X)])]
    try:
        import dask.array as da
        import pandas as pd

        pd.DataFrame(X, columns=list("abc")).to_parquet(tmp_path / "x.parquet", row_group_size=700)
        kinds += [da.from_array(X, chunks=(n // 4, 3)), tmp_path / "x.parquet"]
    except ImportError:
        pass
    fits = [clone(model).fit(kind) for kind in kinds] + [by_states(clone(model), X, cuts)]
    for fitted in fits[1:]:
        points = (
            fitted.landmarks_.toarray() if sparse.issparse(fitted.landmarks_) else fitted.landmarks_
        )
        np.testing.assert_array_equal(points, fits[0].landmarks_)
        assert fitted.eigenvalues_ == pytest.approx(fits[0].eigenvalues_, rel=1e-9)
    same_signs(fits, X)


def mirrored(rng):
    """Rows of components both ends of which are equally far: a sample decides by chance."""
    X = rng.standard_normal((2600, 3))
    given = {"gamma": 0.2, "random_state": 0, "kernel": "rbf"}
    points = Landmarks(points=X[rng.permutation(len(X))[:50]])
    kinds = {
        "landmarks": KernelPCA(4, basis=points, **given),
        "features": KernelPCA(4, basis=RandomFeatures(60), **given),
        "stream": mercer.StreamingKernelPCA(4, basis=points, **given),
        "stream of features": mercer.StreamingKernelPCA(4, basis="features", budget=60, **given),
        "columns": KernelPCA(3),
        "two views": mercer.KernelCCA(3, basis=RandomFeatures(60), **given),
    }
    return X, kinds


@pytest.mark.parametrize("seed", range(4))
def test_no_order_of_rows_changes_signs(seed):
    da = pytest.importorskip("dask.array")
    rng = generator(73, seed)
    X, kinds = mirrored(rng)
    orders = [np.arange(len(X))[::-1], rng.permutation(len(X)), np.argsort(X[:, 0])]
    for name, model in kinds.items():
        fits = []
        for order in [np.arange(len(X)), *orders]:
            rows = np.ascontiguousarray(X[order])
            beside = [np.sin(rows)] if name == "two views" else []
            # Of an array the linear kernel has the signs of scikit-learn: its largest score.
            chunks = da.from_array(rows, chunks=(700, 3))
            fits.append(clone(model).fit(chunks if name == "columns" else rows, *beside))
        if name == "landmarks":
            fits.append(clone(model).fit(lambda rows=rows: iter(np.array_split(rows, 5))))
        same_signs(fits, X)
